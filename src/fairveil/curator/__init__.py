"""The public names of the trusted room (`core`), which alone touches training rows: it answers bounded
questions, with noise, and logs what they cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core.attached import Attached as Attached
    from ..core.attached import AttachedHistogram as AttachedHistogram
    from ..core.attached import CodeHistogram as CodeHistogram
    from ..core.attached import GroupedHistogram as GroupedHistogram
    from ..core.attached import MixtureHistogram as MixtureHistogram
    from ..core.attached import RowFunction as RowFunction
    from ..core.by_cell import ByCell as ByCell
    from ..core.by_cell import Weighed as Weighed
    from ..core.choices import Score as Score
    from ..core.curator import Asked as Asked
    from ..core.curator import Curator as Curator
    from ..core.curator import MadeUp as MadeUp
    from ..core.curator import Trace as Trace
    from ..core.extra.networks import Network as Network
    from ..core.extra.networks import NetworkGradient as NetworkGradient
    from ..core.extra.networks import NetworkHistogram as NetworkHistogram
    from ..core.journal import Journal as Journal
    from ..core.journal import Log as Log
    from ..core.journal import LogEntry as LogEntry
    from ..core.pricing import Measurement as Measurement
    from ..core.pricing import as_measurements as as_measurements
    from ..core.pricing import describe as describe
    from ..core.pricing import describe_choice as describe_choice
    from ..core.pricing import largest_of_one as largest_of_one
    from ..core.pricing import moved_by_one as moved_by_one
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

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
