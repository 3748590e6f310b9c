"""Ring 2: the only room that touches training rows. It answers bounded questions, with noise, and
logs what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core.rows import FULL as FULL
    from ..core.rows import Block as Block
    from ..core.rows import Full as Full
    from ..core.rows import Part as Part
    from ..core.rows import Poisson as Poisson
    from ..core.rows import Rows as Rows
    from .choices import Score as Score
    from .curator import Asked as Asked
    from .curator import Curator as Curator
    from .curator import MadeUp as MadeUp
    from .curator import Trace as Trace
    from .journal import Journal as Journal
    from .journal import Log as Log
    from .journal import LogEntry as LogEntry
    from .pricing import Measurement as Measurement
    from .pricing import as_measurements as as_measurements
    from .pricing import describe as describe
    from .pricing import describe_choice as describe_choice
    from .pricing import largest_of_one as largest_of_one
    from .pricing import moved_by_one as moved_by_one
    from .question import Linear as Linear
    from .question import Question as Question
    from .questions.attached import Attached as Attached
    from .questions.attached import AttachedCodes as AttachedCodes
    from .questions.attached import AttachedHistogram as AttachedHistogram
    from .questions.attached import CodeHistogram as CodeHistogram
    from .questions.attached import GroupedHistogram as GroupedHistogram
    from .questions.attached import MixtureHistogram as MixtureHistogram
    from .questions.attached import RowFunction as RowFunction
    from .questions.by_cell import ByCell as ByCell
    from .questions.by_cell import Weighed as Weighed
    from .questions.gradients import GradientSum as GradientSum
    from .questions.histograms import PredictionHistogram as PredictionHistogram
    from .questions.histograms import ScoreHistogram as ScoreHistogram
    from .questions.networks import Network as Network
    from .questions.networks import NetworkGradient as NetworkGradient
    from .questions.networks import NetworkHistogram as NetworkHistogram
    from .questions.of_models import GroupLosses as GroupLosses
    from .questions.of_rows import CellCounts as CellCounts
    from .questions.of_rows import FeatureSums as FeatureSums
    from .questions.of_rows import GramMatrices as GramMatrices
    from .questions.of_rows import NumberMoments as NumberMoments
    from .questions.of_rows import RowCount as RowCount

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
