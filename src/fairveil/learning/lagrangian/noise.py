"""How much noise a planned descent leaves in its releases, and which clips and steps follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._types import Floats
from ...core.promise import Promise
from ...curator import CellCounts, Linear, Poisson, Question, RowCount, moved_by_one
from ...fairness import deviations
from ..gaussian import joint_multiplier
from ..systems import heaviest, slopes_of_counts, slopes_of_decisions
from .batches import PlannedBatches
from .duals import AVERAGED, weights_of

LONG_ROW = 4.0


TINY = 1e-12


CONSTRAINED = 1.5
"""How much longer a row's gradient may be where costs stand beside the loss, both are in one clip,
and costs are heard."""


ROOMY = 0.06
"""Of the largest step size: where noise leaves room for a larger one, half of the room (in
logarithms) goes to the clip."""


ROOMY_OF_TWO = 0.5
"""The same where two groups alone are distinguished, and are likely to be large: there a longer
clip is noise first."""


ROOM_TO_SPARE, QUIET_MOMENTUM = 4.0, 0.7
"""From that many times the least clip on, where noise is next to nothing, momentum falls: to this,
at the square of it."""


SURELY_HEARD = 0.5
"""Where public facts alone say that an excess would be followed by so much, no round asks for the
loss alone."""


@dataclass(frozen=True, eq=False)
class PlannedNoise(PlannedBatches):
    """What is public of a descent, and how noisy it will be. Abstract: see `Plan`, which says what
    is asked."""

    @property
    def is_shared(self) -> bool:
        """Whether many models can be looked for in one pass: not where each has noisy moments, and
        so a scale, of its own; nor where its own counts say what its rounds ask."""
        own_scale = self.scales and not self.sees_features
        return not (own_scale or self.clips_late or self.may_ask_loss_alone)

    @property
    def clip(self) -> float:
        """The largest norm of what one row adds to a gradient with noise; the least that `clip_at`
        gives."""
        return self.settings.clip or usual_clip(self.promise)

    @property
    def clips_late(self) -> bool:
        """Whether the clip follows from the number of rows that is released first."""
        return self.public_rows is None and self._clip_grows

    @cached_property
    def may_ask_loss_alone(self) -> bool:
        """Whether the rounds may ask for the gradient of the loss alone, at their whole price: if
        released counts say that noise hides the constraints.

        Of linear models and all rows, with records protected: there a round's price does not depend
        on what it asks. Where only sensitive features are, the loss is free. Where the public
        number of rows is such that constraints are heard in groups of one size, rounds ask for them
        whatever the counts. A penalty, which reads soft decisions, is always asked for.
        """
        whole = self.settings.sampling_rate is None and self.skeleton is None
        if self.system is None or self.sees_features or self.decisions == "soft" or not whole:
            return False
        if self.public_rows is None:
            return self._clip_grows
        return self._heard(float(self.public_rows)) < SURELY_HEARD

    @property
    def whole_multiplier(self) -> float:
        """The noise of a gradient that is asked for at both prices of a round, when the two answers
        are averaged by their precision."""
        return joint_multiplier((self.gradient_multiplier, self.histogram_multiplier))

    @property
    def continues(self) -> bool:
        """Whether the companion's rounds continue those that asked for the loss alone: its model
        is then the model. It is an average of late iterates."""
        return self.companion and self.settings.iterate == "average"

    def clip_at(self, rows: float) -> float:
        """The clip where averages divide by so many rows: under constraints it grows with the room
        that noise leaves.

        With little noise a clip is a bias and no more, and takes most from small groups.
        Multipliers are of the plan, and noise is in proportion to the clip, so the price is the
        same. A network's clip, and one that was passed, stay what they are. Without constraints a
        short clip is no loss: it keeps rows that are far off from ruling the model.
        """
        if not self._clip_grows or (self.public_rows is None and not rows > self.floor):
            return self.clip
        assert self.system is not None
        s, clip = self.settings, self.clip
        crowded = math.prod(self.system.shape[:2]) > 2
        if crowded and not self.sees_features:
            clip *= 1.0 + (CONSTRAINED - 1.0) * self._heard(rows)
        step = self._quiet_rate(np.array([rows]), self.gradient_multiplier, s.rounds, clip)[0]
        room = step / ((ROOMY if crowded else ROOMY_OF_TWO) * s.rate_most)
        return clip * float(min(max(1.0, math.sqrt(room)), s.clip_growth))

    def momentum_at(self, clip: float) -> float:
        """Less where noise left room for a clip `ROOM_TO_SPARE` times its least and more: duals
        swing with what the model is late by, and nothing needs averaging there."""
        s = self.settings
        grown = math.log(max(1.0, clip / self.clip / ROOM_TO_SPARE)) if self._clip_grows else 0.0
        return s.momentum - min(1.0, grown / math.log(ROOM_TO_SPARE)) * max(
            0.0, s.momentum - QUIET_MOMENTUM
        )

    def _heard(self, rows: float) -> float:
        """How far the search would follow a constraint if all cells and labels had as many rows:
        from public facts alone."""
        assert self.system is not None
        cells, labels = self.system.shape[:2]
        each = rows / (cells * labels) * (1 if self.cells is None else self.cells.per_row)
        return float(weights_of(np.array(self.blur * math.sqrt(2.0 / AVERAGED) / each)))

    @property
    def _clip_grows(self) -> bool:
        s = self.settings
        own = s.clip is None and s.clip_growth > 1.0 and self.system is not None
        return own and not self.is_exact and self.skeleton is None

    @cached_property
    def floor(self) -> float:
        """The least number of rows that a group is taken to have: two standard deviations of its
        count's noise, at least 1.

        Next to nothing without noise: sample weights may be of any size.
        """
        if not self.promise.is_private or not self.counts_multiplier:
            return TINY
        question = CellCounts(self.cells, self.by_label) if self.system is not None else RowCount()
        # A count of nobody is above this once in forty times; less is never divided by.
        return max(1.0, 2.0 * self.counts_multiplier * self._unit(question))

    def _unit(self, question: Question) -> float:
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight)

    def rate(self, rows: Floats) -> Floats:
        """The step size, a number a model: rate_most, or less where the noise of the averaged
        gradient is large.

        With steps of rate r and momentum m a weight of little curvature walks r T / (1 - m)
        standard deviations s of the averaged run's noise, and a row of norm R has R times that in
        its score: r is such that this is rate_noise at most. R is taken as that of numbers of
        variance 1, and as no more than LONG_ROW, since many dense columns may be indicators.
        """
        return self.rate_of(rows)

    def rate_of(self, rows: Floats, *, free: bool = False, loss_alone: bool = False) -> Floats:
        """The same of the companion, or of rounds that ask for the loss alone."""
        if self.is_exact:
            return np.full(len(rows), math.inf)
        multiplier, rounds = (
            (self.free_multiplier, self.free_rounds)
            if free
            else (self.gradient_multiplier, self.settings.rounds)
        )
        if loss_alone:
            multiplier = self.whole_multiplier
            rounds += self.free_rounds if self.continues else 0
        least = free or loss_alone
        clips = np.array([self.clip if least else self.clip_at(float(count)) for count in rows])
        most = math.inf if self.sees_features else self.settings.rate_most
        rate = np.minimum(most, self._quiet_rate(rows, multiplier, rounds, clips))
        # Where the number of rows was released and cannot be told from none, a model would be noise
        # alone: it stays at zero.
        return rate if self.public_rows is not None else np.where(rows > self.floor, rate, 0.0)

    def weight_noise(self, rows: Floats, rates: Floats, loss_alone: bool = False) -> Floats:
        """A bound on the standard deviation that the gradients' noise leaves in one coefficient, a
        number a model.

        With momentum m and step r a round's noise s moves a coefficient by r s / (1 - m) in the
        end; the average of the last K of T iterates holds (T - K) + sum_j (j / K)^2 of its squares.
        Curvature, which pulls coefficients back, is left out, so that the true deviation is at most
        this, to first order (tests/estimators/test_curves.py). Where rounds ask
        for the loss alone the companion's continue them: all are taken to be as noisy as the
        noisier.
        """
        if self.is_exact or not self.gradient_multiplier:
            return np.zeros(len(rows))
        s = self.settings
        # The last iterate alone is an average of one.
        late = min(s.rounds, max(1, round(s.averaged * s.rounds))) if s.iterate == "average" else 1
        before, multiplier = s.rounds - late, self.gradient_multiplier
        if loss_alone:
            multiplier = max(self.whole_multiplier, self.free_multiplier if self.continues else 0.0)
            late += self.free_rounds if self.continues else 0
        # Noise of a round before the average is in all of its iterates; that of round j from the
        # end is in j of them.
        squares = before + float(np.square(np.arange(1, late + 1) / late).sum())
        clips = np.array([self.clip if loss_alone else self.clip_at(float(n)) for n in rows])
        each = multiplier * self.unit_of(clips) / (self.sampling_rate * rows)
        return np.asarray(
            np.where(np.isfinite(rates), rates, 0.0)
            * each
            / (1.0 - s.momentum)
            * math.sqrt(squares)
        )

    def unit_of(self, clip: Floats | float) -> Floats | float:
        """What noise of a sum of gradients is a multiple of: what one row moves it by; of a secret
        batch, adds to it."""
        once = self.promise.neighbours == "add-remove" or isinstance(self.batch, Poisson)
        rows = self.promise.rows_per_unit if self.sees_features else 1  # else the sum is clipped
        return clip * (1.0 if once else 2.0) * (self.max_sample_weight or 1.0) * rows

    def _quiet_rate(
        self, rows: Floats, multiplier: float, rounds: int, clip: Floats | float
    ) -> Floats:
        """The step size at which noise leaves `rate_noise` in a row's score."""
        s = self.settings
        noise = multiplier * self.unit_of(clip) / (self.sampling_rate * rows * math.sqrt(rounds))
        length = min(LONG_ROW, math.sqrt(1.0 + self.layout.numbers + len(self.layout.code_sizes)))
        return np.asarray(s.rate_noise / length * (1.0 - s.momentum) / (noise * rounds))

    @cached_property
    def bin_noise(self) -> float:
        """The standard deviation of the noise of one bin of scores."""
        model = Linear(np.zeros((self.outputs, 1 + self.layout.width)))
        return (
            0.0 if self.is_exact else self.thresholds_multiplier * self._unit(self._scores(model))
        )

    def noise_of(
        self, counts: Floats, decisions: Floats, multiplier: float | None = None
    ) -> Callable[[int], Floats]:
        """The standard deviation of each constraint's value from the released decisions (cells,
        labels, outputs) and counts, to first order, as a function of how many bins of scores the
        threshold was moved across. `multiplier`: of the decisions, the last ones' unless it is
        given."""
        if self.is_exact or self.system is None:
            return lambda bins: np.zeros(0 if self.system is None else len(self.system))
        of_counts = self.count_noise * self._slopes(counts, decisions)
        sizes = slopes_of_decisions(self.system, counts, self.floor, self.outputs)
        noise = (self.report_multiplier if multiplier is None else multiplier) * self._unit(
            self.histogram(self.start())
        )

        def spread(bins: int) -> Floats:
            # Without labels a bin of scores is the sum of two released ones.
            of_bins = (
                math.sqrt(bins * (1.0 if self.by_label else 2.0)) * self.bin_noise if bins else 0.0
            )
            return np.asarray(np.hypot(math.hypot(noise, of_bins) * sizes, of_counts))

        return spread

    @cached_property
    def count_noise(self) -> float:
        """The standard deviation of the noise of one count."""
        return (
            0.0
            if self.is_exact
            else self.counts_multiplier * self._unit(CellCounts(self.cells, self.by_label))
        )

    @cached_property
    def blur(self) -> float:
        """The standard deviation of the noise of one number of a round's histogram, in units of all
        rows."""
        if self.is_exact or self.system is None:
            return 0.0
        return (
            self.histogram_multiplier
            * self._unit(self.histogram(self.start(), self.decisions))
            / self.sampling_rate
        )

    def sampling_of(self, counts: Floats, decisions: Floats) -> Floats:
        """The standard deviation of each constraint's value over draws of the rows, from the
        released decisions (cells, labels, outputs) and counts."""
        assert self.system is not None
        histogram = self.by_class(decisions[np.newaxis], counts[np.newaxis])[0]
        return deviations(
            self.system, histogram, counts, heaviest=heaviest(self.promise, self.max_sample_weight)
        )

    def _slopes(self, counts: Floats, decisions: Floats) -> Floats:
        assert self.system is not None
        histogram = self.by_class(decisions[np.newaxis], counts[np.newaxis])[0]
        return slopes_of_counts(self.system, counts, histogram, self.floor, self.outputs)


def usual_clip(promise: Promise) -> float:
    """The largest norm of one row's gradient: loss and costs together, or the costs' part alone
    where the loss's is exact."""
    return 1.0 if promise.protects == "sensitive_features" else 2.0 * of_persons(promise)


def of_persons(promise: Promise) -> float:
    """By how much the clip of a person's summed gradients is larger than a row's: far less than
    their rows, as few persons have so many, and theirs differ. On panels (results/persons.md of
    benchmarks) clips of 2 to 8 serve from 5 rows to 30; the fourth root is between them."""
    if promise.protects == "sensitive_features":
        return 1.0
    return math.sqrt(math.sqrt(promise.rows_per_unit))
