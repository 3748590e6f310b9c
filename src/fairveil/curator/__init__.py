"""Ring 2: the only room that touches training rows. It answers bounded questions, with noise, and logs what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .attached import Attached as Attached
    from .attached import AttachedHistogram as AttachedHistogram
    from .attached import AttachedLosses as AttachedLosses
    from .block import Block as Block
    from .curator import Curator as Curator
    from .log import Entry as Entry
    from .log import Log as Log
    from .pricing import Ask as Ask
    from .pricing import describe as describe
    from .questions import CellCounts as CellCounts
    from .questions import FeatureSums as FeatureSums
    from .questions import GradientSum as GradientSum
    from .questions import GramMatrices as GramMatrices
    from .questions import GroupLosses as GroupLosses
    from .questions import Linear as Linear
    from .questions import PredictionHistogram as PredictionHistogram
    from .questions import Question as Question
    from .questions import RowCount as RowCount
    from .row_function import RowFunction as RowFunction
    from .rows import Rows as Rows
    from .sampling import FULL as FULL
    from .sampling import Full as Full
    from .sampling import Poisson as Poisson

PLACES = {
    "FULL": ".sampling",
    "Ask": ".pricing",
    "Attached": ".attached",
    "AttachedHistogram": ".attached",
    "AttachedLosses": ".attached",
    "Block": ".block",
    "CellCounts": ".questions",
    "Curator": ".curator",
    "Entry": ".log",
    "FeatureSums": ".questions",
    "Full": ".sampling",
    "GradientSum": ".questions",
    "GramMatrices": ".questions",
    "GroupLosses": ".questions",
    "Linear": ".questions",
    "Log": ".log",
    "Poisson": ".sampling",
    "PredictionHistogram": ".questions",
    "Question": ".questions",
    "RowCount": ".questions",
    "RowFunction": ".row_function",
    "Rows": ".rows",
    "describe": ".pricing",
}

__all__ = [
    "FULL",
    "Ask",
    "Attached",
    "AttachedHistogram",
    "AttachedLosses",
    "Block",
    "CellCounts",
    "Curator",
    "Entry",
    "FeatureSums",
    "Full",
    "GradientSum",
    "GramMatrices",
    "GroupLosses",
    "Linear",
    "Log",
    "Poisson",
    "PredictionHistogram",
    "Question",
    "RowCount",
    "RowFunction",
    "Rows",
    "describe",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
