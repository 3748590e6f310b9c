"""Ring 2: the only room that touches training rows. It answers bounded questions, with noise, and logs what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .attached import Attached as Attached
    from .attached import AttachedHistogram as AttachedHistogram
    from .attached import AttachedLosses as AttachedLosses
    from .attached_codes import AttachedCodes as AttachedCodes
    from .attached_codes import CodeHistogram as CodeHistogram
    from .block import Block as Block
    from .choice_by_function import Score as Score
    from .curator import Curator as Curator
    from .grouped import GroupedHistogram as GroupedHistogram
    from .journal import Journal as Journal
    from .log import Entry as Entry
    from .log import Log as Log
    from .mixture_histogram import MixtureHistogram as MixtureHistogram
    from .model_questions import GradientSum as GradientSum
    from .model_questions import GroupLosses as GroupLosses
    from .model_questions import PredictionHistogram as PredictionHistogram
    from .model_questions import ScoreHistogram as ScoreHistogram
    from .networks import Network as Network
    from .networks import NetworkGradient as NetworkGradient
    from .networks import NetworkHistogram as NetworkHistogram
    from .pricing import Ask as Ask
    from .pricing import describe as describe
    from .pricing import describe_choice as describe_choice
    from .pricing import moved_by_one as moved_by_one
    from .question import Linear as Linear
    from .question import Question as Question
    from .row_function import RowFunction as RowFunction
    from .row_questions import CellCounts as CellCounts
    from .row_questions import FeatureSums as FeatureSums
    from .row_questions import GramMatrices as GramMatrices
    from .row_questions import NumberMoments as NumberMoments
    from .row_questions import RowCount as RowCount
    from .rows import Rows as Rows
    from .sampling import FULL as FULL
    from .sampling import Full as Full
    from .sampling import Part as Part
    from .sampling import Poisson as Poisson
    from .tailored import ByCell as ByCell
    from .tailored import Weighed as Weighed

PLACES = {
    "FULL": ".sampling",
    "Ask": ".pricing",
    "Attached": ".attached",
    "AttachedCodes": ".attached_codes",
    "AttachedHistogram": ".attached",
    "AttachedLosses": ".attached",
    "Block": ".block",
    "ByCell": ".tailored",
    "CellCounts": ".row_questions",
    "CodeHistogram": ".attached_codes",
    "Curator": ".curator",
    "Entry": ".log",
    "FeatureSums": ".row_questions",
    "Full": ".sampling",
    "GradientSum": ".model_questions",
    "GramMatrices": ".row_questions",
    "GroupLosses": ".model_questions",
    "GroupedHistogram": ".grouped",
    "Journal": ".journal",
    "Linear": ".question",
    "Log": ".log",
    "Part": ".sampling",
    "Poisson": ".sampling",
    "MixtureHistogram": ".mixture_histogram",
    "Network": ".networks",
    "NetworkGradient": ".networks",
    "NetworkHistogram": ".networks",
    "NumberMoments": ".row_questions",
    "PredictionHistogram": ".model_questions",
    "Question": ".question",
    "RowCount": ".row_questions",
    "RowFunction": ".row_function",
    "Rows": ".rows",
    "Score": ".choice_by_function",
    "ScoreHistogram": ".model_questions",
    "Weighed": ".tailored",
    "describe": ".pricing",
    "describe_choice": ".pricing",
    "moved_by_one": ".pricing",
}

__all__ = [
    "FULL",
    "Ask",
    "Attached",
    "AttachedCodes",
    "AttachedHistogram",
    "AttachedLosses",
    "Block",
    "ByCell",
    "CellCounts",
    "CodeHistogram",
    "Curator",
    "Entry",
    "FeatureSums",
    "Full",
    "GradientSum",
    "GramMatrices",
    "GroupLosses",
    "GroupedHistogram",
    "Journal",
    "Linear",
    "Log",
    "MixtureHistogram",
    "Network",
    "NetworkGradient",
    "NetworkHistogram",
    "NumberMoments",
    "Part",
    "Poisson",
    "PredictionHistogram",
    "Question",
    "RowCount",
    "RowFunction",
    "Rows",
    "Score",
    "ScoreHistogram",
    "Weighed",
    "describe",
    "describe_choice",
    "moved_by_one",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
