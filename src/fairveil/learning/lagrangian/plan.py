"""What a descent against a max player asks, and at what price: made of public values alone, before any data are touched.

    mu^2 = counts + report + rounds (1 / z_histogram^2 + 1 / z_gradient^2)          (full batches; theory.md#t1)

Shares of the budget, step sizes, clip and rounds have defaults from public facts; none is tuned to a data set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Floats
from ...curator import (
    FULL,
    Ask,
    CellCounts,
    GradientSum,
    Linear,
    Network,
    NetworkGradient,
    NetworkHistogram,
    NumberMoments,
    Part,
    Poisson,
    PredictionHistogram,
    Question,
    RowCount,
    ScoreHistogram,
    describe,
    moved_by_one,
)
from ...facts import Cells, RowLayout
from ...fairness import ConstraintSystem, Notion, sampling
from ...privacy import calibrate
from ...privacy.accounting.calibration import full_batch
from ...privacy.events import Composed, Event, Gaussian, Repeated, compose
from ...privacy.promise import Promise
from ..comparison import Tables
from ..descent import Answers, Batch
from ..gaussian import budget_of
from ..systems import onto_totals, slopes_of_counts, slopes_of_decisions, system_of
from .players import AVERAGED, weights_of
from .settings import Settings

if TYPE_CHECKING:
    from ...models import Skeleton

Form = Linear | Network
LONG_ROW = 4.0
_STEPS = tuple(0.02 * 1.35**k for k in range(25))
EDGES = (*(-step for step in reversed(_STEPS)), 0.0, *_STEPS)
"""Thresholds that the model handed out may have: zero, and from 0.02 to 27 logits on either side of it."""
TINY = 1e-12
CONSTRAINED = 1.5
"""How much longer a row's gradient may be where costs stand beside the loss, both are in one clip, and costs are heard."""
ROOMY = 0.06
"""Of the largest step size: where noise leaves room for a larger one, half of the room (in logarithms) goes to the clip."""
ROOMY_OF_TWO = 0.5
"""The same where two groups alone are told apart, and are likely to be large: there a longer clip is noise first."""
LOSS_CLIP = 2.0
"""Where features and labels are public and groups are not: the largest norm of one row's exact gradient of the loss. It needs
no clip for privacy; a row that is far off is kept from ruling the model, which errs less on other people's rows."""
FREE_REPORT = 0.3
"""Of a companion's price, for what it turns out to do."""


@dataclass(frozen=True, eq=False)
class Plan:
    """The asks of a run and their multipliers. `cells` and `by_label`: what histograms tell apart, the least that will do.

    `scales`: whether numbers are scaled by their released moments, inside the curator, before the first round. `decisions`:
    what the histograms of the rounds are of; the last one is of hard decisions. `uses_totals`: whether their sums over groups
    are asked for too, exactly, where features are public. `skeleton`: of a network; None for a linear model.
    """

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
        """Whether the iterate of this round is one of those that the model handed out is the average of."""
        s = self.settings
        if s.iterate == "average":
            return round >= (1.0 - s.averaged) * s.rounds
        return round == (s.rounds - 1 if s.iterate == "last" else s.iterate)

    def fading(self, round: int) -> float:
        """What the step size of a round is multiplied by: where the last iterate is handed out, its noise is made to settle."""
        s = self.settings
        return 1.0 if s.iterate != "last" else min(1.0, (s.rounds - round) / max(1.0, s.averaged * s.rounds))

    @cached_property
    def batch(self) -> Batch:
        """All rows, or Poisson batches; for a network on public features, the first of the parts that take turns."""
        rate = self.settings.sampling_rate
        if rate is None or (self.is_exact and self.skeleton is None):
            return FULL
        return Part(0, self.parts) if self.parts else Poisson(rate)

    @property
    def parts(self) -> int:
        """How many fixed parts of the rows take turns (theory.md#t8); 0 where rows are drawn, or all asked."""
        rate = self.settings.sampling_rate
        return 0 if rate is None or self.skeleton is None or not self.sees_features else max(1, round(1.0 / rate))

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
        """Whether nothing that is asked gets noise: without privacy, or where no question reads what is protected."""
        return self.sees_features and (not self.promise.is_private or self.cells is None)

    @property
    def is_shared(self) -> bool:
        """Whether many models can be looked for in one pass: not where each has noisy moments, and so a scale, of its own."""
        return (not self.scales or self.sees_features) and not self.clips_late

    @property
    def clip(self) -> float:
        """The largest norm of what one row adds to a gradient with noise; the least that `clip_at` gives."""
        return self.settings.clip or usual_clip(self.promise)

    @property
    def clips_late(self) -> bool:
        """Whether the clip follows from the number of rows that is released first."""
        return self.public_rows is None and self._clip_grows

    def clip_at(self, rows: float) -> float:
        """The clip where averages divide by so many rows: under constraints it grows with the room that noise leaves.

        With little noise a clip is a bias and no more, and takes most from small groups. Multipliers are of the plan, and noise
        is in proportion to the clip, so the price is the same. A network's clip, and one that was passed, stay what they are.
        Without constraints a short clip is no loss: it keeps rows that are far off from ruling the model.
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

    def _heard(self, rows: float) -> float:
        """How far the search would follow a constraint if all cells and labels had as many rows: from public facts alone."""
        assert self.system is not None
        cells, labels = self.system.shape[:2]
        each = rows / (cells * labels) * (1 if self.cells is None else self.cells.per_row)
        return float(weights_of(np.array(self.blur * math.sqrt(2.0 / AVERAGED) / each)))

    @property
    def _clip_grows(self) -> bool:
        s = self.settings
        own = s.clip is None and s.clip_growth > 1.0 and self.system is not None
        return own and not self.is_exact and self.skeleton is None

    @property
    def loss_clip(self) -> float | None:
        """The largest norm of one row's exact gradient of the loss; None: any."""
        return LOSS_CLIP if self.sees_features and self.promise.is_private else None

    def histogram(self, model: Form, decisions: str = "hard") -> PredictionHistogram | NetworkHistogram:
        """The question about a model's decisions."""
        if isinstance(model, Network):
            return NetworkHistogram(model, self.cells, decisions, by_label=self.by_label)
        return PredictionHistogram(model, self.cells, decisions, by_label=self.by_label)

    def start(self, models: int | None = None) -> Form:
        """The model, or models, where descent starts: a network as it was handed in, linear models at zero."""
        if self.skeleton is not None:
            return Network(self.skeleton, self.skeleton.start, 1.0 / self.settings.temperature)
        shape = (self.outputs, 1 + self.layout.width)
        return Linear(np.zeros(shape if models is None else (models, *shape)), 1.0 / self.settings.temperature)

    def first(self, models: int | None) -> list[Ask]:
        """Counts of the cells, or the number of rows where it is private; then the moments of numbers that are scaled."""
        out: list[Ask] = []
        if self.system is not None:
            out.append(Ask(CellCounts(self.cells, self.by_label, copies=models), self.counts_multiplier))
        elif self.public_rows is None or self.counts_for_moments:
            out.append(Ask(RowCount(copies=models), self.counts_multiplier))
        if self.scales:
            out.append(Ask(self._moments, self.moments_multiplier))
        return out

    @property
    def counts_for_moments(self) -> bool:
        """Moments divide by a count of the rows that they are of: a public number may be about right only."""
        return self.scales and not self.sees_features and not self.promise.rows_are_public

    @property
    def _moments(self) -> NumberMoments:
        """Numbers within [-1, 1], and their squares, have norm sqrt(2 numbers) at most; where they are public, no bound."""
        return NumberMoments(None if self.sees_features else math.sqrt(2.0 * self.layout.numbers))

    def events(self, models: int | None) -> Event | None:
        """The whole run's events, for one model (None) or several side by side; None without privacy."""
        if not self.promise.is_private:
            return None
        return self._events(self.start(models), models)

    def _events(self, model: Form, models: int | None) -> Event:
        def event(asks: list[Ask], batch: Batch = FULL) -> Event:
            return describe(asks, self.layout, self.promise, batch, max_sample_weight=self.max_sample_weight)

        parts = [event(first)] if (first := self.first(models)) else []
        parts += self._rounds(lambda batch: event(self.round_asks(model, models), batch))
        if last := self.last(model):
            parts.append(event(last))
        if self.follows:
            assert isinstance(model, Linear)
            parts += [Repeated(event(self.free_asks(model)), self.free_rounds)] if self.free_rounds else []
            parts.append(event([*self.settled_asks(model), *self.free_last(model)]))
        return compose(parts)

    def _rounds(self, event: Callable[[Batch], Event]) -> list[Event]:
        """All rounds: the same again and again, or parts that take turns, and what is left of a turn."""
        if not self.parts or self.is_exact:  # what is free is not told apart by part
            return [Repeated(event(self.batch), self.settings.rounds)]
        turn = [event(self.batch_of(j)) for j in range(self.parts)]
        turns, rest = divmod(self.settings.rounds, self.parts)
        return [Repeated(Composed(tuple(turn)), turns), *turn[:rest]] if turns else turn[:rest]

    @property
    def has_thresholds(self) -> bool:
        """Whether the threshold of the model handed out may be moved: two classes, and constraints."""
        linear = self.skeleton is None
        return linear and self.system is not None and self.outputs == 1 and self.settings.thresholds_share > 0

    def last(self, model: Form) -> list[Ask]:
        """The decisions of the model that was found, and how its scores fall between other thresholds; or, where its threshold
        stays, how it decides by label, which is what constants are compared with."""
        out: list[Ask] = []
        if self.system is not None:
            out.append(Ask(self.histogram(model), self.report_multiplier))
        if not self.has_thresholds:
            return [*out, *self.compare_asks(model, self.compare_multiplier)]
        assert isinstance(model, Linear)
        return [*out, Ask(self._scores(model), self.thresholds_multiplier)]

    @property
    def follows(self) -> bool:
        """Whether more is asked once the model is there."""
        return self.companion or self.settles

    @property
    def settles(self) -> bool:
        """Whether a model with its threshold put is measured anew: of the values that chose it, it has the luckiest."""
        return self.has_thresholds and self.settings.compare_share > 0

    def settled_asks(self, model: Linear) -> list[Ask]:
        """What is asked of the model that is handed out, once nothing of it moves."""
        if not self.settles:
            return []
        return [Ask(self.histogram(model), self.report_multiplier), *self.compare_asks(model, self.compare_multiplier)]

    def compare_asks(self, model: Form, multiplier: float) -> list[Ask]:
        """How a model decides by label, whatever the group: one table, each row in one place of it."""
        if not self.settings.compare_share:
            return []
        if isinstance(model, Network):
            asked: Question = NetworkHistogram(model, None, "hard", by_label=True)
        elif self.outputs > 1:
            asked = PredictionHistogram(model, None, "hard", by_label=True)
        else:
            return [Ask(ScoreHistogram(model, (0.0,), None, by_label=True), multiplier)]
        counts = [Ask(CellCounts(None, by_label=True), multiplier)] if self.outputs == 1 else []
        return [Ask(asked, multiplier), *counts]

    def read_compare(self, answers: Answers, models: int, multiplier: float) -> Tables:
        """What `compare_asks` were answered: tables (models, labels, classes), and the noise of each number of them."""
        classes = len(self.layout.classes or ())
        noise = 0.0
        if not self.sees_features:
            model = self.start()
            noise = multiplier * self._unit(self.compare_asks(model, multiplier)[0].question)
        table = np.asarray(answers[0], np.float64).reshape(models, classes, -1)
        if table.shape[-1] == classes:
            return Tables(table, np.full((classes, classes), noise))
        totals = np.asarray(answers[1], np.float64).reshape(1, classes, 1)
        return Tables(np.concatenate([totals - table, table], axis=-1), np.array([[math.sqrt(2.0) * noise, noise]] * classes))

    @property
    def free_rounds(self) -> int:
        """How many rounds the companion takes; none where features are public: the opening rounds have found it."""
        s = self.settings
        if not self.companion:
            return 0
        return 0 if self.sees_features and not self.is_exact else s.free_rounds if not self.is_exact else s.dual_horizon

    def free_asks(self, model: Linear) -> list[Ask]:
        """What a round of the companion asks: the gradient of the loss alone."""
        clip = None if self.is_exact else self.clip
        return [Ask(GradientSum(model, clip, loss_clip=self.loss_clip), self.free_multiplier)]

    def free_last(self, model: Linear) -> list[Ask]:
        """What is asked of the companion: how it decides by cell, and by label."""
        if not self.companion:
            return []
        out = Ask(self.histogram(model), self.free_report_multiplier)
        return [out, *self.compare_asks(model, 0.0 if self.sees_features else self.free_report_multiplier)]

    def _scores(self, model: Linear) -> ScoreHistogram:
        return ScoreHistogram(model, EDGES, self.cells, by_label=True)

    def round_asks(self, model: Form, models: int | None, clip: float | None = None) -> list[Ask]:
        """A round's asks at zero costs: for plans, which depend on shapes alone. `clip`: of a linear model; None: the least."""
        if isinstance(model, Network):
            return self._network_asks(model)
        costs = None
        if self.system is not None:
            cells, labels, classes = self.system.shape
            costs = np.zeros((cells, labels, classes) if models is None else (models, cells, labels, classes))
        loss_scale = np.ones(models or 1) if self.system is not None else 1.0
        asked = GradientSum(model, clip or self.clip, self.cells, costs, loss_weight=loss_scale, loss_clip=self.loss_clip)
        out = [Ask(asked, self.gradient_multiplier)]
        return out if self.system is None else [*out, *self._histograms(model)]

    def _network_asks(self, model: Network) -> list[Ask]:
        """Where features are public, the gradient of the loss and of the costs' centre is exact, and a question of its own.

        It is shortened all the same, so that one step size serves every protection. Without privacy nothing is.
        """
        costs = None if self.system is None else np.zeros(self.system.shape)
        weight = np.ones(1)
        if self.sees_features and self.cells is not None:
            centre = np.zeros((1, *costs.shape[1:])) if costs is not None else None
            out = [
                Ask(NetworkGradient(model, self.clip, None, centre, loss_weight=weight), 0.0),
                Ask(NetworkGradient(model, self.clip, self.cells, costs, "none"), self.gradient_multiplier),
            ]
        else:
            out = [Ask(NetworkGradient(model, self.clip, self.cells, costs, loss_weight=weight), self.gradient_multiplier)]
        return out if self.system is None else [*out, *self._histograms(model)]

    def _histograms(self, model: Form) -> list[Ask]:
        asked = self.histogram(model, self.decisions)
        out = [Ask(asked, self.histogram_multiplier)]
        if self.uses_totals and self.sees_features and not self.is_exact:
            out.append(Ask(replace(asked, cells=None), 0.0))
        return out

    # -- what answers mean -------------------------------------------------------------------------------------------------

    def read_counts(self, answers: Answers, models: int) -> tuple[Floats, Floats]:
        """Rows by (model, cell, label), and the number of rows that averages divide by."""
        if self.system is None:
            asked = self.public_rows is None or self.counts_for_moments
            counts = np.asarray(answers[0]).reshape(-1, 1, 1) if asked else np.full((1, 1, 1), self.public_rows)
            counts = np.broadcast_to(counts, (models, 1, 1)).astype(np.float64)
        else:
            counts = np.broadcast_to(
                np.asarray(answers[0]).reshape(-1, *self.system.shape[:2]), (models, *self.system.shape[:2])
            )
        if self.public_rows is not None:
            return counts, np.full(models, float(self.public_rows))
        per_row = 1 if self.cells is None else self.cells.per_row
        rows = counts.reshape(models, -1).sum(axis=1) / per_row
        return counts, np.maximum(rows, self.floor)

    def standard(self, answers: Answers, counts: Floats, rows: Floats) -> tuple[Floats, Floats] | None:
        """Centre and scale of each number, from its moments: mean and standard deviation. None where numbers are left alone.

        Many models share one scale, so it is made of what they share: the public number of rows, where that is exact.
        A noisy variance is taken to be no less than the noise of a mean, and no more than 1, as numbers lie in [-1, 1].
        """
        if not self.scales:
            return None
        total = float(rows[0])
        if self.counts_for_moments:
            total = max(self.floor, float(counts[0].sum()) / (1 if self.cells is None else self.cells.per_row))
        mean, square = np.asarray(answers[-1]) / total
        if self.sees_features:
            variance = square - mean * mean
            return mean, np.where(variance > 1e-12 * square, np.sqrt(np.maximum(variance, 0.0)), 1.0)
        mean = np.clip(mean, -1.0, 1.0)
        noise = self.moments_multiplier * self._unit(self._moments) / total
        return mean, np.sqrt(np.clip(square - mean * mean, min(noise, 1.0), 1.0))

    def by_class(self, answer: Floats, counts: Floats) -> Floats:
        """A histogram (models, cells, labels, classes); with two classes the first's is what the second's leaves."""
        assert self.system is not None
        histogram = answer.reshape(len(counts), *self.system.shape[:2], self.outputs)
        return np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1) if self.outputs == 1 else histogram

    def onto_totals(self, noisy: Floats, totals: Floats) -> Floats:
        """Histograms (models, cells, ...) whose sums over each column's groups are those of everyone (models, 1, ...)."""
        assert self.cells is not None
        return onto_totals(noisy, totals, self.cells, axis=1)

    @cached_property
    def floor(self) -> float:
        """The least number of rows that a group is taken to have: two standard deviations of its count's noise, at least 1.

        Next to nothing without noise: sample weights may be of any size.
        """
        if not self.promise.is_private or not self.counts_multiplier:
            return TINY
        question = CellCounts(self.cells, self.by_label) if self.system is not None else RowCount()
        return max(1.0, 2.0 * self.counts_multiplier * self._unit(question))

    def _unit(self, question: Question) -> float:
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight)

    def rate(self, rows: Floats) -> Floats:
        """The step size, a number a model: rate_most, or less where the noise of the averaged gradient is large.

        With steps of rate r and momentum m a weight of little curvature walks r T / (1 - m) standard deviations s of the
        averaged run's noise, and a row of norm R has R times that in its score: r is such that this is rate_noise at most.
        R is taken as that of numbers of variance 1, and as no more than LONG_ROW, since many dense columns may be indicators.
        """
        return self.rate_of(rows)

    def rate_of(self, rows: Floats, *, free: bool = False) -> Floats:
        """The same of the companion."""
        if self.is_exact:
            return np.full(len(rows), math.inf)
        multiplier, rounds = (
            (self.free_multiplier, self.free_rounds) if free else (self.gradient_multiplier, self.settings.rounds)
        )
        clips = np.array([self.clip if free else self.clip_at(float(count)) for count in rows])
        most = math.inf if self.sees_features else self.settings.rate_most
        rate = np.minimum(most, self._quiet_rate(rows, multiplier, rounds, clips))
        # Where the number of rows was bought and cannot be told from none, a model would be noise alone: it stays at zero.
        return rate if self.public_rows is not None else np.where(rows > self.floor, rate, 0.0)

    def weight_noise(self, rows: Floats, rates: Floats) -> Floats:
        """A bound on the standard deviation that the gradients' noise leaves in one coefficient, a number a model.

        With momentum m and step r a round's noise s moves a coefficient by r s / (1 - m) in the end; the average of the last K
        of T iterates holds (T - K) + sum_j (j / K)^2 of its squares. Curvature, which pulls coefficients back, is left out, so
        that the true deviation is at most this, to first order (tests/estimators/test_curves.py).
        """
        if self.is_exact or not self.gradient_multiplier:
            return np.zeros(len(rows))
        s = self.settings
        late = min(s.rounds, max(1, round(s.averaged * s.rounds))) if s.iterate == "average" else 1
        squares = s.rounds - late + float(np.square(np.arange(1, late + 1) / late).sum())
        clips = np.array([self.clip_at(float(count)) for count in rows])
        each = self.gradient_multiplier * self.unit_of(clips) / (self.sampling_rate * rows)
        return np.asarray(np.where(np.isfinite(rates), rates, 0.0) * each / (1.0 - s.momentum) * math.sqrt(squares))

    def unit_of(self, clip: Floats | float) -> Floats | float:
        """What noise of a sum of gradients is a multiple of: what one row moves it by; of a secret batch, adds to it."""
        once = self.promise.neighbours == "add-remove" or isinstance(self.batch, Poisson)
        rows = self.promise.rows_per_unit if self.sees_features else 1  # else the sum is clipped
        return clip * (1.0 if once else 2.0) * (self.max_sample_weight or 1.0) * rows

    def _quiet_rate(self, rows: Floats, multiplier: float, rounds: int, clip: Floats | float) -> Floats:
        """The step size at which noise leaves `rate_noise` in a row's score."""
        s = self.settings
        noise = multiplier * self.unit_of(clip) / (self.sampling_rate * rows * math.sqrt(rounds))
        length = min(LONG_ROW, math.sqrt(1.0 + self.layout.numbers + len(self.layout.code_sizes)))
        return np.asarray(s.rate_noise / length * (1.0 - s.momentum) / (noise * rounds))

    @cached_property
    def bin_noise(self) -> float:
        """The standard deviation of the noise of one bin of scores."""
        model = Linear(np.zeros((self.outputs, 1 + self.layout.width)))
        return 0.0 if self.is_exact else self.thresholds_multiplier * self._unit(self._scores(model))

    def noise_of(self, counts: Floats, decisions: Floats, multiplier: float | None = None) -> Callable[[int], Floats]:
        """The standard deviation of each constraint's value from the released decisions (cells, labels, outputs) and counts, to
        first order, as a function of how many bins of scores the threshold was moved across. `multiplier`: of the decisions,
        the last ones' unless it is given."""
        if self.is_exact or self.system is None:
            return lambda bins: np.zeros(0 if self.system is None else len(self.system))
        of_counts = self.count_noise * self._slopes(counts, decisions)
        sizes = slopes_of_decisions(self.system, counts, self.floor, self.outputs)
        noise = (self.report_multiplier if multiplier is None else multiplier) * self._unit(self.histogram(self.start()))

        def spread(bins: int) -> Floats:
            of_bins = math.sqrt(bins * (1.0 if self.by_label else 2.0)) * self.bin_noise if bins else 0.0
            return np.asarray(np.hypot(math.hypot(noise, of_bins) * sizes, of_counts))

        return spread

    @cached_property
    def count_noise(self) -> float:
        """The standard deviation of the noise of one count."""
        return 0.0 if self.is_exact else self.counts_multiplier * self._unit(CellCounts(self.cells, self.by_label))

    @cached_property
    def blur(self) -> float:
        """The standard deviation of the noise of one number of a round's histogram, in units of all rows."""
        if self.is_exact or self.system is None:
            return 0.0
        return self.histogram_multiplier * self._unit(self.histogram(self.start(), self.decisions)) / self.sampling_rate

    def sampling_of(self, counts: Floats, decisions: Floats) -> Floats:
        """The standard deviation of each constraint's value over draws of the rows, from the released decisions (cells, labels,
        outputs) and counts."""
        assert self.system is not None
        histogram = self.by_class(decisions[np.newaxis], counts[np.newaxis])[0]
        return sampling.deviations(self.system, histogram, counts, heaviest=heaviest(self.promise, self.max_sample_weight))

    def _slopes(self, counts: Floats, decisions: Floats) -> Floats:
        assert self.system is not None
        histogram = self.by_class(decisions[np.newaxis], counts[np.newaxis])[0]
        return slopes_of_counts(self.system, counts, histogram, self.floor, self.outputs)


def make(
    promise: Promise,
    layout: RowLayout,
    cells: Cells | None,
    notions: Sequence[Notion],
    settings: Settings | None = None,
    *,
    public_rows: int | None = None,
    max_sample_weight: float | None = None,
    scalable: bool = False,
    decisions: str = "hard",
    uses_totals: bool = False,
    skeleton: Skeleton | None = None,
    companion: bool = False,
) -> Plan:
    """The plan of one model's run, its noise the least that keeps the promise.

    `cells`: the groups that `notions` are about, None where rows have no sensitive column. `public_rows`: the number of rows
    where it is public or was stated; None has it bought. `max_sample_weight`: the cap, where rows have weights. `scalable`:
    numbers are dense, and known to lie in [-1, 1] where they are protected: then they are scaled by their released moments.
    `companion`: whether a model without constraints is wanted, to compare with: of one linear model, on all rows.
    """
    settings = settings or Settings()
    system = system_of(notions, cells, layout)
    by_label = system is not None and system.needs_labels
    kept = cells if system is not None and system.needs_groups else None
    if system is not None:
        system = system if by_label else system.without_labels()
        system = system if kept is not None else system.without_groups()
    plan = Plan(promise, layout, settings, system, kept, by_label, 0.0, 0.0, 0.0, 0.0, public_rows, max_sample_weight)
    scales = scalable and layout.numbers > 0 and settings.moments_share > 0
    plan = replace(plan, scales=scales, decisions=decisions, uses_totals=uses_totals, skeleton=skeleton)
    wanted = companion and system is not None and skeleton is None and settings.sampling_rate is None
    plan = replace(plan, companion=wanted and settings.free_share > 0 and settings.compare_share > 0)
    return plan if plan.is_exact else _priced(plan)


def heaviest(promise: Promise, max_sample_weight: float | None) -> float | None:
    """How much one who is drawn may count: a person's rows come together, and may all be alike."""
    rows = promise.rows_per_unit
    return max_sample_weight if rows == 1 else rows * (max_sample_weight or 1.0)


def usual_clip(promise: Promise) -> float:
    """The largest norm of one row's gradient: loss and costs together, or the costs' part alone where the loss's is exact. Of
    persons that of the sum over their rows: far below so many clips, as few persons have so many rows, and theirs differ. On
    panels (benchmarks/persons.py) 2 to 8 serves from 5 rows to 30; the fourth root is between them."""
    if promise.protects == "sensitive_features":
        return 1.0
    return 2.0 * math.sqrt(math.sqrt(promise.rows_per_unit))


def _priced(plan: Plan) -> Plan:
    """The multipliers: fixed shares for counts and report, the rest for the rounds."""
    s, promise = plan.settings, plan.promise
    constrained = plan.system is not None
    mu = budget_of(promise)
    plan = replace(plan, counts_multiplier=1.0 / (mu * math.sqrt(s.counts_share)))
    if plan.scales and not plan.sees_features:
        plan = replace(plan, moments_multiplier=1.0 / (mu * math.sqrt(s.moments_share)))
    share = s.histogram_share if constrained else 0.0
    if constrained:
        plan = replace(plan, report_multiplier=1.0 / (mu * math.sqrt(s.report_share)))
    if plan.has_thresholds:
        plan = replace(plan, thresholds_multiplier=1.0 / (mu * math.sqrt(s.thresholds_share)))
    compared = 0 if plan.sees_features else len(plan.compare_asks(plan.start(), 0.0))
    if compared:
        plan = replace(plan, compare_multiplier=math.sqrt(compared) / (mu * math.sqrt(s.compare_share)))
    beside: list[Gaussian] = []
    if plan.companion:
        shown = 1 + compared  # tables of the companion, as dear as a quarter of its rounds are
        rounds = plan.free_rounds
        of_rounds = (1.0 - FREE_REPORT) if rounds else 0.0
        report = math.sqrt(shown / (1.0 - of_rounds) / s.free_share) / mu
        gradient = math.sqrt(rounds / of_rounds / s.free_share) / mu if rounds else 0.0
        plan = replace(plan, free_multiplier=gradient, free_report_multiplier=report)
        beside = [Gaussian(report)] * shown + ([Gaussian(gradient)] * rounds if rounds else [])

    def at(z: float) -> Plan:
        gradient = z / math.sqrt(1.0 - share) * (1.0 + 1e-12)
        return replace(plan, gradient_multiplier=gradient, histogram_multiplier=z / math.sqrt(share) if constrained else 0.0)

    def events(z: float) -> Event:
        found = at(z).events(None)
        assert found is not None
        return found

    if s.sampling_rate is not None and not (plan.parts and s.rounds % plan.parts == 0):
        return at(calibrate(promise, events).multiplier)
    once = [ask.multiplier for ask in plan.first(None)] + [plan.report_multiplier, plan.thresholds_multiplier]
    once += [plan.compare_multiplier] * compared + [plan.report_multiplier] * plan.settles
    rounds = s.rounds // plan.parts if plan.parts else s.rounds  # each part costs as often as its turn comes
    return at(full_batch(promise, rounds, [*(Gaussian(multiplier) for multiplier in once if multiplier), *beside]))
