"""Ring 2: the only room that touches training rows. It answers bounded questions, with noise, and
logs what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core.by_cell import ByCell as ByCell
    from ..core.by_cell import Weighed as Weighed
    from ..core.questions import Linear as Linear
    from ..core.questions import Question as Question
    from ..core.rows import FULL as FULL
    from ..core.rows import Block as Block
    from ..core.rows import Full as Full
    from ..core.rows import Part as Part
    from ..core.rows import Poisson as Poisson
    from ..core.rows import Rows as Rows
    from ..core.sums import CellCounts as CellCounts
    from ..core.sums import FeatureSums as FeatureSums
    from ..core.sums import GradientSum as GradientSum
    from ..core.sums import GramMatrices as GramMatrices
    from ..core.sums import GroupLosses as GroupLosses
    from ..core.sums import NumberMoments as NumberMoments
    from ..core.sums import PredictionHistogram as PredictionHistogram
    from ..core.sums import RowCount as RowCount
    from ..core.sums import ScoreHistogram as ScoreHistogram
    from .attached import Attached as Attached
    from .attached import AttachedCodes as AttachedCodes
    from .attached import AttachedHistogram as AttachedHistogram
    from .attached import CodeHistogram as CodeHistogram
    from .attached import GroupedHistogram as GroupedHistogram
    from .attached import MixtureHistogram as MixtureHistogram
    from .attached import RowFunction as RowFunction
    from .choices import Score as Score
    from .curator import Asked as Asked
    from .curator import Curator as Curator
    from .curator import MadeUp as MadeUp
    from .curator import Trace as Trace
    from .journal import Journal as Journal
    from .journal import Log as Log
    from .journal import LogEntry as LogEntry
    from .networks import Network as Network
    from .networks import NetworkGradient as NetworkGradient
    from .networks import NetworkHistogram as NetworkHistogram
    from .pricing import Measurement as Measurement
    from .pricing import as_measurements as as_measurements
    from .pricing import describe as describe
    from .pricing import describe_choice as describe_choice
    from .pricing import largest_of_one as largest_of_one
    from .pricing import moved_by_one as moved_by_one

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
