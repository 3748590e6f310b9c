"""What is public of a planned descent before its noise: batches, start, and what is asked of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Floats
from ...core.promise import Promise
from ...curator import (
    FULL,
    Linear,
    Network,
    NetworkHistogram,
    NumberMoments,
    Part,
    Poisson,
    PredictionHistogram,
    ScoreHistogram,
)
from ...facts import Cells, RowLayout
from ...fairness import ConstraintSystem
from ..descent import Batch
from ..systems import onto_totals
from .settings import Settings

if TYPE_CHECKING:
    from ...models import Skeleton

Form = Linear | Network
_STEPS = tuple(0.02 * 1.35**k for k in range(25))
EDGES = (*(-step for step in reversed(_STEPS)), 0.0, *_STEPS)
"""Thresholds that the final model may have: zero, and from 0.02 to 27 logits on either side of
it."""
LOSS_CLIP = 2.0
"""Where features and labels are public and groups are not: the largest norm of one row's exact
gradient of the loss. It needs no clip for privacy; a row that is far off is kept from ruling the
model, which errs less on other people's rows."""


@dataclass(frozen=True, eq=False)
class PlannedBatches:
    """What is public of a descent, and which rows it asks about what. Abstract: see `PlannedNoise`."""

    promise: Promise
    layout: RowLayout
    settings: Settings
    system: ConstraintSystem | None
    cells: Cells | None
    by_label: bool
    counts_multiplier: float
    report_multiplier: float
    histogram_multiplier: float
    gradient_multiplier: float
    public_rows: int | None
    max_sample_weight: float | None
    scales: bool = False
    moments_multiplier: float = 0.0
    thresholds_multiplier: float = 0.0
    decisions: str = "hard"
    uses_totals: bool = False
    skeleton: Skeleton | None = None
    compare_multiplier: float = 0.0
    companion: bool = False
    free_multiplier: float = 0.0
    free_report_multiplier: float = 0.0

    @property
    def outputs(self) -> int:
        """1 for two classes, else one a class."""
        classes = len(self.layout.classes or ())
        return 1 if classes <= 2 else classes

    def counts_iterate(self, round: int) -> bool:
        """Whether the iterate of this round is one of those that the final model is the
        average of."""
        s = self.settings
        if s.iterate == "average":
            return round >= (1.0 - s.averaged) * s.rounds
        return round == (s.rounds - 1 if s.iterate == "last" else s.iterate)

    def fading(self, round: int) -> float:
        """What the step size of a round is multiplied by: where the last iterate is returned, its
        noise is made to settle."""
        s = self.settings
        return (
            1.0
            if s.iterate != "last"
            else min(1.0, (s.rounds - round) / max(1.0, s.averaged * s.rounds))
        )

    @cached_property
    def batch(self) -> Batch:
        """All rows, or Poisson batches; for a network on public features, the first of the parts
        that take turns."""
        rate = self.settings.sampling_rate
        if rate is None or (self.is_exact and self.skeleton is None):
            return FULL
        # Fixed parts where features are public: batches that can be seen are not amplified, and
        # parts compose in parallel (docs/theory/sampling.md, T4 and T8).
        return Part(0, self.parts) if self.parts else Poisson(rate)

    @property
    def parts(self) -> int:
        """How many fixed parts of the rows take turns (theory.md#t8); 0 where rows are drawn, or
        all asked."""
        rate = self.settings.sampling_rate
        return (
            0
            if rate is None or self.skeleton is None or not self.sees_features
            else max(1, round(1.0 / rate))
        )

    def batch_of(self, round: int) -> Batch:
        """The batch of a round."""
        return Part(round % self.parts, self.parts) if self.parts else self.batch

    @cached_property
    def sampling_rate(self) -> float:
        """What a sum over a batch is divided by, to estimate the sum over all rows."""
        return self.batch.rate if isinstance(self.batch, Poisson) else 1.0 / (self.parts or 1)

    @property
    def sees_features(self) -> bool:
        """Whether features and labels may be asked about exactly, for free."""
        return self.promise.features_are_public

    @property
    def is_exact(self) -> bool:
        """Whether nothing that is asked gets noise: without privacy, or where no question reads
        what is protected."""
        return self.sees_features and (not self.promise.is_private or self.cells is None)

    @property
    def loss_clip(self) -> float | None:
        """The largest norm of one row's exact gradient of the loss; None: any."""
        return LOSS_CLIP if self.sees_features and self.promise.is_private else None

    def histogram(
        self, model: Form, decisions: str = "hard"
    ) -> PredictionHistogram | NetworkHistogram:
        """The question about a model's decisions."""
        if isinstance(model, Network):
            return NetworkHistogram(model, self.cells, decisions, by_label=self.by_label)
        return PredictionHistogram(model, self.cells, decisions, by_label=self.by_label)

    def start(self, models: int | None = None) -> Form:
        """The model, or models, where descent starts: a network as it was handed in, linear models
        at zero."""
        if self.skeleton is not None:
            return Network(self.skeleton, self.skeleton.start, 1.0 / self.settings.temperature)
        shape = (self.outputs, 1 + self.layout.width)
        return Linear(
            np.zeros(shape if models is None else (models, *shape)), 1.0 / self.settings.temperature
        )

    @property
    def counts_for_moments(self) -> bool:
        """Moments divide by a count of the rows that they are of: a public number may be about
        right only."""
        return self.scales and not self.sees_features and not self.promise.rows_are_public

    @property
    def _moments(self) -> NumberMoments:
        """Numbers within [-1, 1], and their squares, have norm sqrt(2 numbers) at most; where they
        are public, no bound."""
        return NumberMoments(None if self.sees_features else math.sqrt(2.0 * self.layout.numbers))

    @property
    def free_rounds(self) -> int:
        """How many rounds the companion takes; none where features are public: the opening rounds
        have found it."""
        s = self.settings
        if not self.companion:
            return 0
        return (
            0
            if self.sees_features and not self.is_exact
            else s.free_rounds
            if not self.is_exact
            else s.dual_horizon
        )

    def _scores(self, model: Linear) -> ScoreHistogram:
        return ScoreHistogram(model, EDGES, self.cells, by_label=True)

    def by_class(self, answer: Floats, counts: Floats) -> Floats:
        """A histogram (models, cells, labels, classes); with two classes the first's is what the
        second's leaves."""
        assert self.system is not None
        histogram = answer.reshape(len(counts), *self.system.shape[:2], self.outputs)
        return (
            # What is not decided for the second class is decided for the first: no noise of its
            # own.
            np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)
            if self.outputs == 1
            else histogram
        )

    def onto_totals(self, noisy: Floats, totals: Floats) -> Floats:
        """Histograms (models, cells, ...) whose sums over each column's groups are those of
        everyone (models, 1, ...)."""
        assert self.cells is not None
        return onto_totals(noisy, totals, self.cells, axis=1)
