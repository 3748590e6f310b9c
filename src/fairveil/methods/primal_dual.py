"""RaCO-DP for linear models, corrected: private descent on a model, ascent on duals of constraints.

    min_w  E[loss(w)]   such that   value_j(w) <= bound_j,      L(w, duals) = E[loss] + sum_j
    duals_j (value_j - bound_j)

(theory.md#raco). A round is one joint answer: the sum of gradients of the rows' own Lagrangians,
each clipped to norm `clip`, and the histogram of predictions by cell (*hard* decisions for
constraints). The model steps along the first, the max player along the second; nothing else is
read. `fermi` puts DP-FERMI's player in the duals' place, `networks` descends on torch modules.

    mu^2 = counts + report + rounds (1 / z_histogram^2 + 1 / z_gradient^2)          (full batches; theory.md#t1)

Counts of the cells do not change over rounds, so they are released once, before the first, with the
moments by which numbers are scaled where a schema bounds them. The constraints of the final model
are measured after the last round, and its threshold is moved where they do not hold. A threshold
that was picked by noisy values has the luckiest of them, so the values of the moved model are
released anew. A model without constraints (the *companion*) tells what fairness cost: it begins
where the constrained one ended, so that few rounds are enough, and asks for the gradient of the
loss alone; where features are public the opening rounds have found it exactly, for free.

Guarantees (tests/methods/test_methods_primal_dual.py; theory in docs/rate_constrained.md):
1. The plan costs at most the promise, under its relation, and is made of public values alone: it is
   the trace of a run, and two made-up answers give the same one.
2. The log equals the plan; all noise of a round is one event on one batch.
3. Nothing that is asked depends on a row except through released answers: costs, averages and step
   sizes use released counts.
4. A model's bits do not depend on the models that share its passes (`descent.in_step`).
5. The weights that are returned do not depend on the companion, and its values are unbiased.

`Differs:` from the paper on rate constraints (eq. 6-12, alg. 1):
- Gaussian noise for the histogram, jointly with the gradient: one event. The paper samples two
  mechanisms as if independently.
- Full batches unless a sampling rate is given; the paper draws Poisson batches.
- Averages divide by a released or public number of rows, never by the batch; under replace-one all
  scales are doubled.
- The dual step follows hard decisions (its sec. E.4 compares them with soft ones), and is that of
  `duals.ProjectedAscent`.
- The Lagrangian is divided by 1 + dual_ease x the sum of the duals: the more they press, the less
  the loss pulls, and the clip does not clip what constraints add (the paper's sec. E.6 finds
  that it does).
- The handed-out model is the average of the late iterates, not the best on exact training
  statistics.
- Where released counts say that noise hides the constraints, rounds ask for the loss alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._types import Floats
from ..core.events import Event, Gaussian, NoOp
from ..core.promise import Promise
from ..curator import (
    FULL,
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    Measurement,
    Network,
    NetworkHistogram,
    NumberMoments,
    Part,
    Poisson,
    PredictionHistogram,
    Question,
    RowCount,
    ScoreHistogram,
    moved_by_one,
)
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import ConstraintSystem, Notion, deviations
from ..privacy import calibrate
from ..privacy.calibration import full_batch
from . import constants
from .comparison import LOOKS, WORTH, Comparison, DecisionTable, Free, Limits
from .descent import (
    AFTER,
    BEFORE,
    BESIDE,
    ROUND,
    Answers,
    Ask,
    Batch,
    Method,
    Progress,
    Reason,
    Rescale,
    descend,
    plan_of,
    traced,
)
from .duals import AVERAGED, Constraints, PrimalState, ProjectedAscent, aims, ends, weights_of
from .gaussian import averaged, budget_of, joint_multiplier
from .outcome import Outcome
from .systems import (
    heaviest,
    onto_totals,
    slopes_of_counts,
    slopes_of_decisions,
    system_of,
)
from .units import in_coded_units, in_inner_units

if TYPE_CHECKING:
    from ..models import Skeleton

Form = Linear | Network
Shape = Callable[[Floats], Floats]
Told = tuple[Floats, Floats, Floats]
"""Values of constraints, their noise and their sampling error."""

LEAST_RATE = 1e-9  # of Poisson batches; below it the accountant's logarithms run out of digits
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
LOSS_CLIP = 2.0
"""Where features and labels are public and groups are not: the largest norm of one row's exact
gradient of the loss. It needs no clip for privacy; a row that is far off is kept from ruling the
model, which errs less on other people's rows."""
FREE_REPORT = 0.3
"""Of a companion's price, for what it turns out to do."""
LATE = 0.5
"""The share of the companion's rounds, at the end, whose iterates are averaged."""
CURVATURE_ROUNDS, WARM_ROUNDS = 12, 60
"""Where features are public, free: passes of power iteration for the largest curvature, and exact
rounds without constraints before the first noisy one."""
_STEPS = tuple(0.02 * 1.35**k for k in range(25))
EDGES = (*(-step for step in reversed(_STEPS)), 0.0, *_STEPS)
"""Thresholds that the final model may have: zero, and from 0.02 to 27 logits on either side of
it."""
SEEN = (0.1, 0.2)
"""Of the rounds: those whose decisions say, in the mean, how far inside its bounds a search
aims."""
NEGLIGIBLE = 0.002
"""An excess below this is left alone by the threshold."""


class Player(Protocol):
    """A max player: what it makes a prediction cost, and how it answers a released histogram
    (cells, labels, classes), in units of all rows. Pure functions of released values."""

    def begin(self) -> Any:
        """Its state before the first round."""

    def costs(self, state: Any) -> tuple[Floats, float]:
        """What a prediction costs one row, (cells, labels, classes), and the weight of its loss."""

    def step(self, state: Any, histogram: Floats, round: int) -> Any:
        """Its state after a round."""

    def rests(self, before: Any, after: Any, histogram: Floats, round: int, most: float) -> bool:
        """Without noise: whether its play is over if the model moves no more."""

    def duals(self, state: Any) -> Floats:
        """How hard each constraint is pressed."""


Playing = Callable[["Plan", Floats, float], Player | None]
"""From a plan, released counts and the number of rows to the max player."""


@dataclass(frozen=True)
class Settings:
    """The public choices of a run. The defaults are the library's, on every data set.

    `clip`: the largest norm of one row's gradient, loss and costs together; None: the plan's own,
    of public facts and of the released number of rows (`Plan.clip_at`), at most `clip_growth` times
    its least. Where only sensitive features are protected the loss is exact and it bounds the costs
    alone. `temperature`: of the soft decisions that costs act on. `rate_most`, `rate_noise`: the
    step size is rate_most, and less where noise is large: the noise that a whole run leaves in the
    score of a row is to be about rate_noise, in logits. `*_share`: of the squared Gaussian budget.
    `averaged`: the share of rounds, at the end, whose iterates are averaged; where `iterate` is
    "last" or a round's number, that one is returned instead, and for the last the step size falls
    to 0 over these rounds. `learning_rate`: of networks, which have a step size of their own.
    `sampling_rate`: of Poisson batches; None asks all rows. `dual_*`: see `ProjectedAscent`; the
    duals begin after dual_start of the rounds, and the Lagrangian is divided by 1 + dual_ease x
    their sum. `compare_share`: for how the model decides by label, to compare it with constants;
    `free_*`: for a model without constraints beside it, and its rounds. Without privacy:
    `tolerance` on the gradient, `most_rounds`, `dual_horizon`.
    """

    rounds: int = 240
    clip: float | None = None
    clip_growth: float = 16.0
    temperature: float = 1.0
    sampling_rate: float | None = None
    momentum: float = 0.9
    rate_most: float = 1.0
    rate_noise: float = 1.5
    averaged: float = 0.5
    iterate: str | int = "average"
    learning_rate: float = 0.1
    histogram_share: float = 0.3
    counts_share: float = 0.02
    report_share: float = 0.02
    thresholds_share: float = 0.03
    moments_share: float = 0.03
    compare_share: float = 0.02
    free_share: float = 0.15
    free_rounds: int = 48
    dual_bound: float = 10.0
    dual_ki: float = 9.0
    dual_kp: float = 1.2
    dual_ema_nu: float = 0.8
    dual_fade: float = 0.1
    dual_unit: str = "length"
    dual_start: float = 0.05
    dual_ease: float = 0.5
    tolerance: float = 1e-5
    most_rounds: int = 2000
    dual_horizon: int = 200

    def __post_init__(self) -> None:
        if self.sampling_rate is not None and self.sampling_rate < LEAST_RATE:
            remedy = "Batches that are empty teach nothing: leave it None to ask all rows."
            got = self.sampling_rate
            raise InputError.expected(
                f"at least {LEAST_RATE}", of="sampling_rate", got=got, remedy=remedy
            )


# -- what is public: questions, multipliers, clips and step sizes ----------------------------------


@dataclass(frozen=True, eq=False)
class Plan:
    """What is public of a descent: what it asks, at which multipliers, and what follows of them.
    Made by `planned`.

    `cells` and `by_label`: what histograms distinguish, the least that will do. `scales`: whether
    numbers are scaled by their released moments, inside the curator, before the first round.
    `decisions`: what the histograms of the rounds are of; the last one is of hard decisions.
    `uses_totals`: whether their sums over groups are asked for too, exactly, where features are
    public. `skeleton`: of a network; None for a linear model. `shape`: what weights in the units of
    coded rows are made before anything is released of the model that they are of.
    """

    promise: Promise
    layout: RowLayout
    settings: Settings
    system: ConstraintSystem | None = None
    cells: Cells | None = None
    by_label: bool = False
    public_rows: int | None = None
    max_sample_weight: float | None = None
    scales: bool = False
    decisions: str = "hard"
    uses_totals: bool = False
    skeleton: Skeleton | None = None
    companion: bool = False
    shape: Shape | None = None
    counts_multiplier: float = 0.0
    report_multiplier: float = 0.0
    histogram_multiplier: float = 0.0
    gradient_multiplier: float = 0.0
    moments_multiplier: float = 0.0
    thresholds_multiplier: float = 0.0
    compare_multiplier: float = 0.0
    free_multiplier: float = 0.0
    free_report_multiplier: float = 0.0

    # -- which rows are asked, and how often

    @property
    def outputs(self) -> int:
        """1 for two classes, else one a class."""
        classes = len(self.layout.classes or ())
        return 1 if classes <= 2 else classes

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
    def rounds(self) -> int:
        """How many at most."""
        to_the_end = self.is_exact and self.skeleton is None
        return self.settings.most_rounds if to_the_end else self.settings.rounds

    @property
    def parts(self) -> int:
        """How many fixed parts of the rows take turns (theory.md#t8); 0 where rows are drawn, or
        all asked."""
        rate = self.settings.sampling_rate
        fixed = rate is not None and self.skeleton is not None and self.sees_features
        return max(1, round(1.0 / rate)) if fixed and rate is not None else 0

    def batch_of(self, round: int) -> Batch:
        """All rows, a Poisson batch, or for a network on public features a fixed part: batches that
        can be seen are not amplified, and parts compose in parallel (docs/theory/sampling.md, T4
        and T8)."""
        rate = self.settings.sampling_rate
        if self.parts:
            return Part(round % self.parts, self.parts)
        return FULL if rate is None or self.is_exact else Poisson(rate)

    @cached_property
    def sampling_rate(self) -> float:
        """What a sum over a batch is divided by, to estimate the sum over all rows."""
        batch = self.batch_of(0)
        return batch.rate if isinstance(batch, Poisson) else 1.0 / (self.parts or 1)

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
        late = max(1.0, s.averaged * s.rounds)
        return 1.0 if s.iterate != "last" else min(1.0, (s.rounds - round) / late)

    @property
    def is_shared(self) -> bool:
        """Whether many models can be looked for in one pass: not where each has noisy moments, and
        so a scale, of its own; nor where its own counts say what its rounds ask, or nothing has
        noise and each stops when it has converged."""
        own_scale = self.scales and not self.sees_features
        own_clip = self.public_rows is None and self._clip_grows
        return not (own_scale or own_clip or self.may_ask_loss_alone or self.is_exact)

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
    def has_thresholds(self) -> bool:
        """Whether the threshold of the final model may be moved: two classes, and
        constraints."""
        linear = self.skeleton is None and self.outputs == 1
        return linear and self.system is not None and self.settings.thresholds_share > 0

    @property
    def settles(self) -> bool:
        """Whether a model with its threshold put is measured anew: of the values that chose it, it
        has the luckiest."""
        return self.has_thresholds and self.settings.compare_share > 0

    @property
    def free_rounds(self) -> int:
        """How many rounds the companion takes; none where features are public: the opening rounds
        have found it."""
        if not self.companion or (self.sees_features and not self.is_exact):
            return 0
        return self.settings.dual_horizon if self.is_exact else self.settings.free_rounds

    @property
    def continues(self) -> bool:
        """Whether the companion's rounds continue those that asked for the loss alone: its model
        is then the model. It is an average of late iterates."""
        return self.companion and self.settings.iterate == "average"

    def shaped(self, weights: Floats, standard: tuple[Floats, Floats] | None) -> Floats:
        """Weights of a search as they are returned; post-processing of released ones."""
        if self.shape is None:
            return weights
        return in_inner_units(self.shape(in_coded_units(weights, standard)), standard)

    # -- questions

    def model(self, weights: Floats | None = None) -> Form:
        """The model at these weights; None: where descent starts, a network as it was handed in, a
        linear model at zero."""
        sharpness = 1.0 / self.settings.temperature
        if self.skeleton is not None:
            start = self.skeleton.start if weights is None else weights
            return Network(self.skeleton, start, sharpness)
        if weights is None:
            weights = np.zeros((self.outputs, 1 + self.layout.width))
        return Linear(weights, sharpness)

    def first(self) -> list[Measurement]:
        """Counts of the cells, or the number of rows where it is private; then the moments of
        numbers that are scaled. Moments divide by a count of the rows that they are of: a public
        number may be about right only."""
        out: list[Measurement] = []
        if self.system is not None:
            out.append(Measurement(self._counts, self.counts_multiplier))
        elif self.counts_rows:
            out.append(Measurement(RowCount(), self.counts_multiplier))
        if self.scales:
            out.append(Measurement(self._moments, self.moments_multiplier))
        return out

    @property
    def counts_for_moments(self) -> bool:
        """Whether moments divide by a count of their own."""
        return self.scales and not self.sees_features and not self.promise.rows_are_public

    @property
    def counts_rows(self) -> bool:
        """Whether the number of rows is asked for, where nothing is constrained."""
        return self.public_rows is None or self.counts_for_moments

    @property
    def _counts(self) -> Question:
        return CellCounts(self.cells, self.by_label)

    @property
    def _moments(self) -> Question:
        """Numbers within [-1, 1], and their squares, have norm sqrt(2 numbers) at most; where they
        are public, no bound."""
        return NumberMoments(None if self.sees_features else math.sqrt(2.0 * self.layout.numbers))

    def histogram(self, model: Form, decisions: str = "hard") -> Any:
        """The question about a model's decisions."""
        kind: Any = NetworkHistogram if isinstance(model, Network) else PredictionHistogram
        return kind(model, self.cells, decisions, by_label=self.by_label)

    def histograms(self, model: Form) -> list[Measurement]:
        """A round's, noisy and, where features are public, of everybody."""
        asked = self.histogram(model, self.decisions)
        out = [Measurement(asked, self.histogram_multiplier)]
        if self.uses_totals and self.sees_features and not self.is_exact:
            out.append(Measurement(asked.but(cells=None), 0.0))
        return out

    def round_measurements(self, clip: float) -> list[Measurement]:
        """A round of a linear model, at zero weights and costs."""
        model, none = self.model(), self.system is None
        costs = None if self.system is None else np.zeros(self.system.shape)
        weight = 1.0 if none else np.ones(1)
        facts: dict[str, Any] = {"loss_weight": weight, "loss_clip": self.loss_clip}
        asked = GradientSum(model, clip, self.cells, costs, **facts)
        out = [Measurement(asked, self.gradient_multiplier)]
        return out if none else [*out, *self.histograms(model)]

    def loss_measurements(self) -> list[Measurement]:
        """What a round asks where noise hides the constraints: the gradient of the loss alone, once
        for each price of the round. So its event is that of any other round, whatever was
        released."""
        asked = self._loss(self.clip)
        prices = self.gradient_multiplier, self.histogram_multiplier
        return [Measurement(asked, multiplier) for multiplier in prices]

    def free_measurements(self) -> list[Measurement]:
        """What a round of the companion asks: the gradient of the loss alone."""
        return [Measurement(self._loss(None if self.is_exact else self.clip), self.free_multiplier)]

    def _loss(self, clip: float | None) -> Question:
        return GradientSum(self.model(), clip, loss_clip=self.loss_clip)

    def last(self, model: Form) -> list[Measurement]:
        """The decisions of the model that was found, and how its scores fall between other
        thresholds; or, where its threshold stays, how it decides by label, which is what constants
        are compared with."""
        out: list[Measurement] = []
        if self.system is not None:
            out.append(Measurement(self.histogram(model), self.report_multiplier))
        if not self.has_thresholds:
            return [*out, *self.compare_measurements(model, self.compare_multiplier)]
        return [*out, Measurement(self._scores(model), self.thresholds_multiplier)]

    def settled_measurements(self, model: Form) -> list[Measurement]:
        """What is asked of the final model, once nothing of it moves."""
        if not self.settles:
            return []
        told = self.compare_measurements(model, self.compare_multiplier)
        return [Measurement(self.histogram(model), self.report_multiplier), *told]

    def free_last(self, model: Form) -> list[Measurement]:
        """What is asked of the companion: how it decides by cell, and by label."""
        if not self.companion:
            return []
        price = self.free_report_multiplier
        told = self.compare_measurements(model, 0.0 if self.sees_features else price)
        return [Measurement(self.histogram(model), price), *told]

    def compare_measurements(self, model: Form, multiplier: float) -> list[Measurement]:
        """How a model decides by label, whatever the group: one table, each row in one place of
        it."""
        if not self.settings.compare_share:
            return []
        if isinstance(model, Network):
            asked: Question = NetworkHistogram(model, None, "hard", by_label=True)
        elif self.outputs > 1:
            asked = PredictionHistogram(model, None, "hard", by_label=True)
        else:
            return [Measurement(ScoreHistogram(model, (0.0,), None, by_label=True), multiplier)]
        counts = [CellCounts(None, by_label=True)] if self.outputs == 1 else []
        return [Measurement(one, multiplier) for one in (asked, *counts)]

    def _scores(self, model: Form) -> Question:
        return ScoreHistogram(model, EDGES, self.cells, by_label=True)

    # -- clips, step sizes and noise

    @property
    def loss_clip(self) -> float | None:
        """The largest norm of one row's exact gradient of the loss; None: any."""
        return LOSS_CLIP if self.sees_features and self.promise.is_private else None

    @property
    def clip(self) -> float:
        """The largest norm of what one row adds to a gradient with noise; the least that `clip_at`
        gives."""
        return self.settings.clip or usual_clip(self.promise)

    def clip_at(self, rows: float) -> float:
        """The clip where averages divide by so many rows: under constraints it grows with the room
        that noise leaves.

        With little noise a clip is a bias and no more, and takes most from small groups.
        Multipliers are of the plan, and noise is in proportion to the clip, so the price is the
        same (docs/theory/gaussian.md, T9). A network's clip, and one that was passed, stay what
        they are. Without constraints a short clip is no loss: it keeps rows that are far off from
        ruling the model.
        """
        if not self._clip_grows or (self.public_rows is None and not rows > self.floor):
            return self.clip
        assert self.system is not None
        s, clip = self.settings, self.clip
        crowded = math.prod(self.system.shape[:2]) > 2
        if crowded and not self.sees_features:
            clip *= 1.0 + (CONSTRAINED - 1.0) * self._heard(rows)
        step = self._quiet_rate(rows, self.gradient_multiplier, s.rounds, clip)
        room = step / ((ROOMY if crowded else ROOMY_OF_TWO) * s.rate_most)
        return clip * min(max(1.0, math.sqrt(room)), s.clip_growth)

    @property
    def _clip_grows(self) -> bool:
        s = self.settings
        own = s.clip is None and s.clip_growth > 1.0 and self.system is not None
        return own and not self.is_exact and self.skeleton is None

    def momentum_at(self, clip: float) -> float:
        """Less where noise left room for a clip `ROOM_TO_SPARE` times its least and more: duals
        swing with what the model is late by, and nothing needs averaging there."""
        s = self.settings
        grown = math.log(max(1.0, clip / self.clip / ROOM_TO_SPARE)) if self._clip_grows else 0.0
        fall = max(0.0, s.momentum - QUIET_MOMENTUM)
        return s.momentum - min(1.0, grown / math.log(ROOM_TO_SPARE)) * fall

    def _heard(self, rows: float) -> float:
        """How far the search would follow a constraint if all cells and labels had as many rows:
        from public facts alone."""
        assert self.system is not None
        cells, labels = self.system.shape[:2]
        each = rows / (cells * labels) * (1 if self.cells is None else self.cells.per_row)
        return float(weights_of(np.array(self.blur * math.sqrt(2.0 / AVERAGED) / each)))

    @property
    def whole_multiplier(self) -> float:
        """The noise of a gradient that is asked for at both prices of a round, when the two answers
        are averaged by their precision."""
        return joint_multiplier((self.gradient_multiplier, self.histogram_multiplier))

    @cached_property
    def floor(self) -> float:
        """The least number of rows that a group is taken to have: two standard deviations of its
        count's noise, at least 1.

        Next to nothing without noise: sample weights may be of any size.
        """
        if not self.promise.is_private or not self.counts_multiplier:
            return TINY
        question = self._counts if self.system is not None else RowCount()
        # A count of nobody is above this once in forty times; less is never divided by.
        return max(1.0, 2.0 * self.counts_multiplier * self.unit_of_question(question))

    def unit_of_question(self, question: Question) -> float:
        """What one row moves an answer by."""
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight)

    def rate_of(self, rows: float, *, free: bool = False, loss_alone: bool = False) -> float:
        """The step size of the rounds, of the companion, or of rounds that ask for the loss alone:
        rate_most, or less where the noise of the averaged gradient is large.

        With steps of rate r and momentum m a weight of little curvature walks r T / (1 - m)
        standard deviations s of the averaged run's noise, and a row of norm R has R times that in
        its score: r is such that this is rate_noise at most. R is taken as that of numbers of
        variance 1, and as no more than LONG_ROW, since many dense columns may be indicators.
        """
        if self.is_exact:
            return math.inf
        multiplier = self.free_multiplier if free else self.gradient_multiplier
        rounds = self.free_rounds if free else self.settings.rounds
        if loss_alone:
            multiplier = self.whole_multiplier
            rounds += self.free_rounds if self.continues else 0
        clip = self.clip if free or loss_alone else self.clip_at(rows)
        most = math.inf if self.sees_features else self.settings.rate_most
        rate = min(most, self._quiet_rate(rows, multiplier, rounds, clip))
        # Where the number of rows was released and cannot be told from none, a model would be noise
        # alone: it stays at zero.
        return rate if self.public_rows is not None or rows > self.floor else 0.0

    def _quiet_rate(self, rows: float, multiplier: float, rounds: int, clip: float) -> float:
        """The step size at which noise leaves `rate_noise` in a row's score."""
        s = self.settings
        noise = multiplier * self.unit_of(clip) / (self.sampling_rate * rows * math.sqrt(rounds))
        length = min(LONG_ROW, math.sqrt(1.0 + self.layout.numbers + len(self.layout.code_sizes)))
        return s.rate_noise / length * (1.0 - s.momentum) / (noise * rounds)

    def unit_of(self, clip: float) -> float:
        """What noise of a sum of gradients is a multiple of: what one row moves it by; of a secret
        batch, adds to it."""
        once = self.promise.neighbours == "add-remove" or isinstance(self.batch_of(0), Poisson)
        rows = self.promise.rows_per_unit if self.sees_features else 1  # else the sum is clipped
        return clip * (1.0 if once else 2.0) * (self.max_sample_weight or 1.0) * rows

    def weight_noise(self, rows: float, rate: float, loss_alone: bool = False) -> float:
        """A bound on the standard deviation that the gradients' noise leaves in one coefficient.

        With momentum m and step r a round's noise s moves a coefficient by r s / (1 - m) in the
        end; the average of the last K of T iterates holds (T - K) + sum_j (j / K)^2 of its squares.
        Curvature, which pulls coefficients back, is left out, so that the true deviation is at most
        this, to first order (tests/estimators/test_curves.py). Where rounds ask
        for the loss alone the companion's continue them: all are taken to be as noisy as the
        noisier.
        """
        if self.is_exact or not self.gradient_multiplier:
            return 0.0
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
        clip = self.clip if loss_alone else self.clip_at(rows)
        each = multiplier * self.unit_of(clip) / (self.sampling_rate * rows)
        return (
            (rate if math.isfinite(rate) else 0.0) * each / (1.0 - s.momentum) * math.sqrt(squares)
        )

    @cached_property
    def count_noise(self) -> float:
        """The standard deviation of the noise of one count."""
        return (
            0.0 if self.is_exact else self.counts_multiplier * self.unit_of_question(self._counts)
        )

    @cached_property
    def bin_noise(self) -> float:
        """The standard deviation of the noise of one bin of scores."""
        unit = 0.0 if self.is_exact else self.unit_of_question(self._scores(self.model()))
        return self.thresholds_multiplier * unit

    @cached_property
    def blur(self) -> float:
        """The standard deviation of the noise of one number of a round's histogram, in units of all
        rows."""
        if self.is_exact or self.system is None:
            return 0.0
        unit = self.unit_of_question(self.histogram(self.model(), self.decisions))
        return self.histogram_multiplier * unit / self.sampling_rate

    def noise_of(
        self, counts: Floats, decisions: Floats, multiplier: float | None = None
    ) -> Callable[[int], Floats]:
        """The standard deviation of each constraint's value from the released decisions (cells,
        labels, outputs) and counts, to first order, as a function of how many bins of scores the
        threshold was moved across. `multiplier`: of the decisions, the last ones' unless it is
        given."""
        if self.is_exact or self.system is None:
            return lambda bins: np.zeros(0 if self.system is None else len(self.system))
        known = (counts, self.by_class(decisions, counts), self.floor, self.outputs)
        of_counts = self.count_noise * slopes_of_counts(self.system, *known)
        sizes = slopes_of_decisions(self.system, counts, self.floor, self.outputs)
        unit = self.unit_of_question(self.histogram(self.model()))
        noise = (self.report_multiplier if multiplier is None else multiplier) * unit

        def spread(bins: int) -> Floats:
            # Without labels a bin of scores is the sum of two released ones.
            width = math.sqrt(bins * (1.0 if self.by_label else 2.0))
            of_bins = width * self.bin_noise if bins else 0.0
            return np.asarray(np.hypot(math.hypot(noise, of_bins) * sizes, of_counts))

        return spread

    def sampling_of(self, counts: Floats, decisions: Floats) -> Floats:
        """The standard deviation of each constraint's value over draws of the rows, from the
        released decisions (cells, labels, outputs) and counts."""
        assert self.system is not None
        weight = heaviest(self.promise, self.max_sample_weight)
        return deviations(self.system, self.by_class(decisions, counts), counts, heaviest=weight)

    def aims(
        self,
        bounds: Floats,
        counts: Floats,
        decisions: Floats | None = None,
        *,
        judged: bool = True,
    ) -> Floats:
        """Where the search aims, inside the bounds, for decisions (cells, labels, outputs) like
        these; None: as many of each class. Of released numbers alone."""
        assert self.system is not None
        if decisions is None:
            each = 1.0 / self.system.shape[2]
            decisions = np.repeat(counts[..., np.newaxis] * each, self.outputs, axis=-1)
        noise = self.noise_of(counts, decisions)(0)
        errors = noise, self.sampling_of(counts, decisions), ends(noise)
        known = self.by_class(decisions, counts), counts, self.floor
        looks = (LOOKS if self.companion else 1) if judged else 0
        return aims(self.system, bounds, *known, errors, looks)

    # -- what answers mean

    def by_class(self, answer: Floats, counts: Floats) -> Floats:
        """A histogram (..., cells, labels, classes); with two classes the first's is what the
        second's leaves: no noise of its own."""
        assert self.system is not None
        shape = (*counts.shape[:-2], *self.system.shape[:2], self.outputs)
        histogram = answer.reshape(shape)
        if self.outputs > 1:
            return histogram
        return np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)

    def of_round(self, answers: Answers, counts: Floats) -> Floats:
        """A round's histogram by class, in units of all rows; put onto its exact totals where they
        were asked for."""
        histogram = answers[0] / self.sampling_rate
        if len(answers) > 1:
            assert self.cells is not None
            totals = answers[1] / self.sampling_rate
            histogram = onto_totals(histogram[np.newaxis], totals[np.newaxis], self.cells, axis=1)
        return self.by_class(histogram, counts)

    def read_counts(self, answers: Answers) -> tuple[Floats, float]:
        """Rows by (cell, label), and the number of rows that averages divide by."""
        if self.system is not None:
            counts = np.asarray(answers[0], np.float64).reshape(self.system.shape[:2])
        else:
            known = answers[0] if self.counts_rows else np.full(1, self.public_rows)
            counts = np.asarray(known, np.float64).reshape(1, 1)
        if self.public_rows is not None:
            return counts, float(self.public_rows)
        return counts, max(self._sum_of(counts), self.floor)

    def _sum_of(self, counts: Floats) -> float:
        return float(counts.sum()) / (1 if self.cells is None else self.cells.per_row)

    def standard(
        self, answers: Answers, counts: Floats, rows: float
    ) -> tuple[Floats, Floats] | None:
        """Centre and scale of each number, from its moments: mean and standard deviation. None
        where numbers are left alone.

        A noisy variance is taken to be no less than the noise of a mean, and no more than 1, as
        numbers lie in [-1, 1].
        """
        if not self.scales:
            return None
        total = max(self.floor, self._sum_of(counts)) if self.counts_for_moments else rows
        mean, square = np.asarray(answers[-1]) / total
        if self.sees_features:
            variance = square - mean * mean
            told = variance > 1e-12 * square
            return mean, np.where(told, np.sqrt(np.maximum(variance, 0.0)), 1.0)
        mean = np.clip(mean, -1.0, 1.0)
        noise = self.moments_multiplier * self.unit_of_question(self._moments) / total
        return mean, np.sqrt(np.clip(square - mean * mean, min(noise, 1.0), 1.0))

    def read_loss(self, answers: Answers) -> Floats:
        """The mean of the answers to `loss_measurements`, weighed by their precision."""
        return averaged(answers, (self.gradient_multiplier, self.histogram_multiplier))

    def told(self, answer: Floats, counts: Floats, multiplier: float | None = None) -> Told:
        """The constraints' values of decisions of all rows that were released at that multiplier
        (the last ones' unless it is given), their noise and their sampling error."""
        assert self.system is not None
        decided = answer.reshape(*self.system.shape[:2], -1)
        values = self.system.exact_values(self.by_class(decided, counts), counts, self.floor)
        noise = self.noise_of(counts, decided, multiplier)(0)
        return values, noise, self.sampling_of(counts, decided)

    def table(self, answers: Answers, multiplier: float) -> DecisionTable:
        """What `compare_measurements` were answered."""
        classes = len(self.layout.classes or ())
        noise = 0.0
        if not self.sees_features:
            asked = self.compare_measurements(self.model(), multiplier)[0]
            noise = multiplier * self.unit_of_question(asked.question)
        table = np.asarray(answers[0], np.float64).reshape(classes, -1)
        if table.shape[-1] == classes:
            return DecisionTable(table, np.full((classes, classes), noise))
        totals = np.asarray(answers[1], np.float64).reshape(classes, 1)
        counts = np.concatenate([totals - table, table], axis=-1)
        return DecisionTable(counts, np.array([[math.sqrt(2.0) * noise, noise]] * classes))

    def compared(self, found: Outcome, table: DecisionTable) -> Outcome:
        """An outcome with what was released to compare it."""
        if not found.rows > 0:
            return found
        limits = None
        if self.system is not None:
            known = (self.system, found.counts, self.floor)
            noise = constants.noise_of(*known, self.count_noise)
            drawn = constants.sampling_of(*known, self.max_sample_weight)
            told = (found.values, found.aims, found.spread)
            limits = Limits(*told, constants.values_of(*known), noise, drawn)
        return replace(found, comparison=Comparison(table, found.rows, limits))


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


# -- the plan: multipliers whose noise is the least that keeps the promise -------------------------


def planned(
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
    shape: Shape | None = None,
    search: Callable[[Plan], Method[Any]] | None = None,
) -> Plan:
    """The plan of one model's run, its noise the least that keeps the promise.

    `cells`: the groups that `notions` are about, None where rows have no sensitive column.
    `public_rows`: the number of rows where it is public or was stated; None has it released.
    `max_sample_weight`: the cap, where rows have weights. `scalable`: numbers are dense, and known
    to lie in [-1, 1] where they are protected: then they are scaled by their released moments.
    `companion`: whether a model without constraints is wanted, to compare with: of one linear
    model, on all rows. `shape`: see `Plan`. `search`: the run, which is traced where no closed form
    prices it; None:
    that of `PrimalDual`.
    """
    settings = settings or Settings()
    system = system_of(notions, cells, layout)
    by_label = system is not None and system.needs_labels
    kept = cells if system is not None and system.needs_groups else None
    if system is not None:
        system = system if by_label else system.without_labels()
        system = system if kept is not None else system.without_groups()
    wanted = companion and system is not None and settings.sampling_rate is None
    wanted = wanted and skeleton is None and settings.free_share > 0 and settings.compare_share > 0
    plan = Plan(
        promise,
        layout,
        settings,
        system,
        kept,
        by_label,
        public_rows,
        max_sample_weight,
        scalable and layout.numbers > 0 and settings.moments_share > 0,
        decisions,
        uses_totals,
        skeleton,
        wanted,
        shape,
    )
    if plan.is_exact:
        return plan
    return _priced(plan, search or (lambda plan: PrimalDual(plan).search()))


def _priced(plan: Plan, search: Callable[[Plan], Method[Any]]) -> Plan:
    """The multipliers: fixed shares for what is released once, the rest for the rounds."""
    s, promise, constrained = plan.settings, plan.promise, plan.system is not None
    mu = budget_of(promise)

    def of(share: float, times: float = 1.0) -> float:
        return math.sqrt(times) / (mu * math.sqrt(share))

    compared = 0 if plan.sees_features else len(plan.compare_measurements(plan.model(), 0.0))
    plan = replace(
        plan,
        counts_multiplier=of(s.counts_share),
        moments_multiplier=of(s.moments_share) if plan.scales and not plan.sees_features else 0.0,
        report_multiplier=of(s.report_share) if constrained else 0.0,
        thresholds_multiplier=of(s.thresholds_share) if plan.has_thresholds else 0.0,
        compare_multiplier=of(s.compare_share, compared) if compared else 0.0,
    )
    beside: list[Gaussian] = []
    if plan.companion:
        shown = 1 + compared  # tables of the companion, as expensive as a quarter of its rounds are
        rounds = plan.free_rounds
        of_rounds = (1.0 - FREE_REPORT) if rounds else 0.0
        report = math.sqrt(shown / (1.0 - of_rounds) / s.free_share) / mu
        gradient = math.sqrt(rounds / of_rounds / s.free_share) / mu if rounds else 0.0
        plan = replace(plan, free_multiplier=gradient, free_report_multiplier=report)
        beside = [Gaussian(report)] * shown + ([Gaussian(gradient)] * rounds if rounds else [])
    share = s.histogram_share if constrained else 0.0

    def at(z: float) -> Plan:
        gradient = z / math.sqrt(1.0 - share) * (1.0 + 1e-12)
        histogram = z / math.sqrt(share) if constrained else 0.0
        return replace(plan, gradient_multiplier=gradient, histogram_multiplier=histogram)

    if s.sampling_rate is not None and not (plan.parts and s.rounds % plan.parts == 0):
        trace, unit = traced(search(at(1.0)), plan.layout, promise, plan.max_sample_weight), at(1.0)
        asked = [one for one in trace.asked if one.purpose == ROUND]
        rounds_of = {part.key for one in asked for part in one.measurements}

        def events(z: float) -> Event:
            now = at(z)
            prices = {
                unit.gradient_multiplier: now.gradient_multiplier,
                unit.histogram_multiplier: now.histogram_multiplier,
            }
            return trace.repriced(
                lambda part: (
                    prices.get(part.multiplier, part.multiplier)
                    if part.key in rounds_of
                    else part.multiplier
                )
            )

        return at(calibrate(promise, events).multiplier)
    once = [one.multiplier for one in plan.first()]
    once += [plan.report_multiplier, plan.thresholds_multiplier]
    once += [plan.compare_multiplier] * compared + [plan.report_multiplier] * plan.settles
    # each part costs as often as its turn comes
    rounds = s.rounds // plan.parts if plan.parts else s.rounds
    told = [Gaussian(multiplier) for multiplier in once if multiplier]
    return at(full_batch(promise, rounds, [*told, *beside]))


def constraints_of(plan: Plan, bounds: Floats) -> Playing:
    """The max player that holds the duals of the plan's constraints, at these bounds."""
    s = plan.settings
    # a search that stops when it has converged
    to_the_end = plan.is_exact and plan.skeleton is None
    horizon = s.dual_horizon if to_the_end else s.rounds
    ways = (s.dual_bound, s.dual_ki, s.dual_kp, s.dual_ema_nu, s.dual_fade, s.dual_unit)

    def player(plan: Plan, counts: Floats, rows: float) -> Player | None:
        if plan.system is None:
            return None
        ascent = ProjectedAscent(horizon, *ways)
        known = (plan.system, bounds, ascent, counts, rows, plan.floor)
        return Constraints(*known, s.dual_start * horizon, s.dual_ease, plan.blur)

    return player


@dataclass(frozen=True, eq=False)
class Search:
    """A descent for one model. `planned`: what is asked, and at what price; `bounds` (constraints,)
    of the values; None: the system's own. `playing`: the max player; None: duals of the
    constraints. `judged`: whether its own values are to say "met"; else a certificate is, and
    the bounds are inside by what that needs. Abstract: `search` is the run."""

    planned: Plan
    bounds: Floats | None = None
    playing: Playing | None = None
    judged: bool = True

    def search(self) -> Method[Outcome]:
        """The run."""
        raise NotImplementedError

    def round_measurements(self, clip: float) -> list[Measurement]:
        """A round, at the start."""
        return self.planned.round_measurements(clip)

    @property
    def promise(self) -> Promise:
        """What it may cost."""
        return self.planned.promise

    @property
    def system(self) -> ConstraintSystem | None:
        """The constraints, or None."""
        return self.planned.system

    @property
    def rounds(self) -> int:
        """How many at most."""
        return self.planned.rounds

    @property
    def limits(self) -> Floats:
        """The bounds of the constraints; none without any."""
        if self.bounds is not None:
            return self.bounds
        return np.zeros(0) if self.system is None else self.system.bounds

    @cached_property
    def plan(self) -> Event | None:
        """The events of the whole run, priced before any data are read; None without privacy."""
        if not self.promise.is_private:
            return None
        if self.planned.is_exact:
            return NoOp()
        known = (self.planned.layout, self.promise, self.planned.max_sample_weight)
        return plan_of(traced(self.search(), *known))

    def aims(self, counts: Floats, decisions: Floats | None = None) -> Floats:
        """Where it aims, inside the bounds."""
        given, planned = self.limits, self.planned
        if planned.system is None or self.playing is not None:
            return given
        return planned.aims(given, counts, decisions, judged=self.judged)

    def player(self, counts: Floats, rows: float) -> Player | None:
        """The max player at released counts."""
        playing = self.playing or constraints_of(self.planned, self.aims(counts))
        return playing(self.planned, counts, rows)

    def run(self, curator: Curator, progress: Progress | None = None) -> Outcome:
        """Ask a curator that was made for the plan; it is closed afterwards, in every case."""
        return descend(curator, self.search(), progress, self.rounds)


@dataclass(eq=False)
class Sight:
    """Of one run at released counts: what its rounds `SEEN` decided, in the mean, which says how
    far inside the bounds it aims from then on."""

    search: Search
    counts: Floats
    seen: Any = 0.0

    def after(self, round: int, histogram: Floats, player: Player) -> Player:
        """The player of the next round."""
        rounds = self.search.planned.settings.rounds
        begin, end = (math.ceil(share * rounds) for share in SEEN)
        if not isinstance(player, Constraints) or not begin <= round < end:
            return player
        self.seen = self.seen + histogram
        if round < end - 1:
            return player
        seen = self.seen / (end - begin)
        seen = seen[..., 1:] if self.search.planned.outputs == 1 else seen
        return replace(player, bounds=self.search.aims(self.counts, seen))


# -- the run ---------------------------------------------------------------------------------------


class PrimalDual(Search):
    """The descent of a linear model: see the head of this file."""

    def search(self) -> Method[Outcome]:
        planned, s = self.planned, self.planned.settings
        first = planned.first()
        answers: Answers = (yield Ask(first, FULL, BEFORE)) if first else []
        counts, rows = planned.read_counts(answers)
        standard = planned.standard(answers, counts, rows)
        player = self.player(counts, rows)
        play = None if player is None else player.begin()
        # Whether released counts say that noise hides the constraints from all rounds.
        may = planned.may_ask_loss_alone and isinstance(player, Constraints)
        alone = may and not player.hears  # type: ignore[union-attr]
        if standard is not None:
            yield Rescale(1.0 / standard[1], -standard[0] / standard[1])
        # Chosen by the released number of rows: the multiplier, which alone is priced, does not
        # change.
        clip = planned.clip_at(rows)
        rate = reach = planned.rate_of(rows, loss_alone=alone)
        model: Any = planned.model()
        walk, opened = PrimalState.at(np.array(model.weights)), None
        if planned.sees_features:
            rate = yield from _step_of(planned, rows)
            if not planned.is_exact:
                opened = yield from _opening(planned, rows, rate)
                walk = PrimalState.at(opened)
        asked = planned.loss_measurements() if alone else planned.round_measurements(clip)
        reason = Reason.LIMIT if planned.is_exact else Reason.ROUNDS
        batch, age, done = planned.batch_of(0), 0.0, 0
        sight = Sight(self, counts)
        share, momentum = planned.sampling_rate * rows, planned.momentum_at(clip)
        while done < self.rounds and reason is not Reason.CONVERGED:
            costs: Floats | None = None
            loss_scale = None
            if player is not None and not alone:
                costs, ease = player.costs(play)
                loss_scale = np.array([ease])
            now = model.at(walk.weights)
            answers = yield Ask([_about(one, now, costs, loss_scale) for one in asked], batch)
            before = play
            if player is not None and not alone:
                histogram = planned.of_round(answers[1:], counts)
                play = player.step(play, histogram, done)
                player = sight.after(done, histogram, player)
            if not planned.is_exact:
                answer = planned.read_loss(answers) if alone else answers[0]
                pace = min(rate, reach) * planned.fading(done)
                counted = planned.counts_iterate(done)
                walk = walk.along(answer, share, pace, momentum, count=counted)
            else:
                # Without noise there is nothing to average out: accelerated descent, to
                # convergence.
                gradient = answers[0] / share
                counted = done >= s.most_rounds // 2
                walk, age = _accelerated(walk, gradient, rate, age, count=counted)
                still = bool(np.abs(gradient).max() <= s.tolerance)
                if still and (
                    player is None or player.rests(before, play, histogram, done, s.tolerance)
                ):
                    reason = Reason.CONVERGED
            done += 1
        found = walk.weights if reason is Reason.CONVERGED else walk.average
        found = planned.shaped(found, standard)
        answers = yield from last_of(planned, model.at(found))
        weights, told, looks = found, (np.zeros(0),) * 3, 1
        names: tuple[str, ...] = ()
        inside: Floats | None = None
        if planned.system is not None:
            names = planned.system.names
            inside = self.aims(counts, answers[0].reshape(*planned.system.shape[:2], -1))
            if planned.has_thresholds:
                weights, told, looks = moved(planned, found, answers, inside, counts, rows)
            else:
                told = planned.told(answers[0], counts)
        outcome = Outcome(
            in_coded_units(weights, standard).copy(),
            reason,
            done,
            names,
            self.limits,
            told[0],
            told[1],
            np.zeros(0) if player is None else player.duals(play),
            counts,
            rows,
            looks,
            sampling=told[2],
            weight_noise=planned.weight_noise(rows, rate, alone),
            standard=standard,
            inside=inside,
        )
        compared = planned.compare_measurements(model, 0.0)
        if compared and not planned.has_thresholds:
            table = planned.table(answers[-len(compared) :], planned.compare_multiplier)
            outcome = planned.compared(outcome, table)
        if not (planned.companion or planned.settles):
            return outcome
        if alone and planned.continues:
            return (yield from _gone_on(planned, outcome, walk, rate))
        if planned.free_rounds and not planned.is_exact:
            rate = planned.rate_of(rows, free=True)
        begin = found if opened is None else opened
        return (yield from _beside(planned, outcome, begin, rate))


def last_of(planned: Plan, model: Form) -> Generator[Ask, Answers, Answers]:
    """What is asked of the model that was found."""
    asked = planned.last(model)
    return (yield Ask(asked, FULL, AFTER)) if asked else []


def _about(
    measurement: Measurement, model: Any, costs: Floats | None, loss_scale: Floats | None
) -> Measurement:
    """A measurement of the first round about another round's model."""
    question, changed = measurement.question, dict[str, Any](model=model)
    if question.kind is GradientSum:
        changed["cell_costs"] = costs
        if loss_scale is not None:
            changed["loss_weight"] = loss_scale
    return measurement.about(question.at(**changed))


def _accelerated(
    walk: PrimalState, gradient: Floats, rate: float, age: float, *, count: bool
) -> tuple[PrimalState, float]:
    """A step along an exact gradient: Nesterov's growing momentum, begun anew where it points
    uphill (O'Donoghue and Candes 2015). `age`: rounds since it began."""
    if (walk.velocity * gradient).sum() > 0:
        walk, age = replace(walk, velocity=np.zeros_like(walk.velocity)), 0.0
    return walk.step(gradient, rate, (age + 1.0) / (age + 4.0), count=count), age + 1.0


def _step_of(planned: Plan, rows: float) -> Method[float]:
    """One over the largest curvature, by power iteration of X'X / rows with exact answers about
    public features.

    The gradient of the squared loss at v is X'(Xv - y); at zero it is -X'y. The log loss is at
    most a quarter as curved (half with several classes).
    """
    model: Any = Linear(np.zeros((1, 1 + planned.layout.width)), 1.0 / planned.settings.temperature)
    # A direction that no symmetry of the features is likely to be orthogonal to.
    line = np.cos(np.arange(1.0, planned.layout.width + 2.0))
    probe = (line / np.sqrt((line * line).sum()))[np.newaxis]

    def asked(weights: Floats) -> Ask:
        question = GradientSum(model.at(weights), None, loss="squared")
        return Ask([Measurement(question, 0.0)])

    (pull,), size = (yield asked(np.zeros_like(probe))), 0.0
    for _ in range(CURVATURE_ROUNDS):
        (gradient,) = yield asked(probe)
        image = (gradient - pull) / rows
        size = float(np.sqrt((image * image).sum()))
        probe = image / max(size, 1e-300)
    return 1.0 / ((0.25 if planned.outputs == 1 else 0.5) * 1.1 * max(size, 1e-300))


def _opening(planned: Plan, rows: float, rate: float) -> Method[Floats]:
    """Where exact rounds that press no constraint end, before the first noisy one: they are
    free."""
    model: Any = planned.model()
    question = GradientSum(model, None, loss_clip=planned.loss_clip)
    walk, age = PrimalState.at(np.array(model.weights)), 0.0
    for _ in range(WARM_ROUNDS):
        (answer,) = yield Ask([Measurement(question.at(model=model.at(walk.weights)), 0.0)])
        walk, age = _accelerated(walk, answer / rows, rate, age, count=False)
    return walk.weights


def _companion(
    planned: Plan, walk: PrimalState, rows: float, rate: float, *, all_count: bool
) -> Method[PrimalState]:
    """Rounds that ask for the gradient of the loss alone."""
    model: Any = planned.model()
    momentum, rounds = planned.settings.momentum, planned.free_rounds
    (asked,) = planned.free_measurements()
    question: Any = asked.question
    for t in range(rounds):
        now = asked.about(question.at(model=model.at(walk.weights)))
        (answer,) = yield Ask([now], FULL, BESIDE)
        counted = all_count or t >= (1.0 - LATE) * rounds
        walk = walk.step(answer / rows, rate, momentum, count=counted)
    return walk


def _beside(planned: Plan, outcome: Outcome, begin: Floats, rate: float) -> Method[Outcome]:
    """The model with its values anew, if they chose its threshold, and the companion beside it."""
    walk = PrimalState.at(begin)
    if planned.companion:
        walk = yield from _companion(planned, walk, outcome.rows, rate, all_count=False)
    own = planned.settled_measurements(
        planned.model(in_inner_units(outcome.weights, outcome.standard))
    )
    other = planned.shaped(walk.average, outcome.standard)
    free = planned.free_last(planned.model(other))
    answers = yield Ask([*own, *free], FULL, BESIDE)
    if own:
        values, spread, drawn = planned.told(answers[0], outcome.counts, planned.report_multiplier)
        outcome = replace(outcome, values=values, spread=spread, sampling=drawn, looks=1)
        table = planned.table(answers[1 : len(own)], planned.compare_multiplier)
        outcome = planned.compared(outcome, table)
    if not planned.companion or outcome.comparison is None:
        return outcome
    price, told = planned.free_report_multiplier, answers[len(own) :]
    values, spread, drawn = planned.told(told[0], outcome.counts, price)
    weights, table = in_coded_units(other, outcome.standard), planned.table(told[1:], price)
    beside = Free(weights, table, values, spread, drawn)
    return replace(outcome, comparison=replace(outcome.comparison, free=beside))


def _gone_on(planned: Plan, outcome: Outcome, walk: PrimalState, rate: float) -> Method[Outcome]:
    """The model where a walk that asked for the loss alone ends, after the companion's rounds too.
    Both reports are of it, so they are taken together; and it is the model without constraints."""
    price = planned.free_report_multiplier
    walk = yield from _companion(planned, walk, outcome.rows, rate, all_count=True)
    found = planned.shaped(walk.average, outcome.standard)
    model = planned.model(found)
    own = planned.settled_measurements(model)
    answers = yield Ask([*own, *planned.free_last(model)], FULL, BESIDE)
    told = [(answer, price) for answer in answers[len(own) :]]
    if own:
        prices = [planned.report_multiplier, *[planned.compare_multiplier] * (len(own) - 1)]
        pairs = zip(answers, prices, told, strict=False)
        told = [
            (averaged((one, other), (z, price)), joint_multiplier((z, price)))
            for one, z, (other, _) in pairs
        ]
    table = planned.table([answer for answer, _ in told[1:]], told[1][1])
    values, spread, drawn = planned.told(told[0][0], outcome.counts, told[0][1])
    weights = in_coded_units(found, outcome.standard)
    outcome = replace(outcome, weights=weights.copy(), rounds=outcome.rounds + planned.free_rounds)
    outcome = replace(outcome, values=values, spread=spread, sampling=drawn, looks=1)
    outcome = planned.compared(outcome, table)
    if outcome.comparison is None:
        return outcome
    other = Free(weights, table, values, spread, drawn)
    return replace(outcome, comparison=replace(outcome.comparison, free=other))


# -- the threshold ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Threshold:
    """The threshold, the constraints' values and the decisions there, and how many bins of scores
    lie between it and zero.

    `looks`: the values say which threshold is taken, and the luckiest of many looks better than it
    is. A verdict on them is right if zero may be wrong with half of what is left to chance, and all
    `edges - 1` others together with the other half.
    """

    at: float
    values: Floats
    decisions: Floats
    bins: int
    looks: int


def moved(
    planned: Plan, found: Floats, answers: Answers, bounds: Floats, counts: Floats, rows: float
) -> tuple[Floats, Told, int]:
    """The model with its threshold where the constraints hold, if they do not at zero; its values,
    their noise and sampling error, and from how many thresholds it was picked by them."""
    assert planned.system is not None
    decisions = answers[0].reshape(planned.system.shape[:2])
    per_row = 1 if planned.cells is None else planned.cells.per_row

    def values_of(decisions: Floats) -> Floats:
        known = np.broadcast_to(counts, decisions.shape)
        histogram = planned.by_class(decisions, known)
        return planned.system.exact_values(histogram, counts, planned.floor)  # type: ignore[union-attr]

    noise = planned.noise_of(counts, decisions[..., np.newaxis])
    facts = (values_of, bounds, noise, planned.bin_noise, rows * per_row)
    chosen = choose(EDGES, decisions, answers[1], *facts)
    decided = chosen.decisions[..., np.newaxis]
    weights = found.copy()
    weights[0, 0] -= chosen.at
    spread = planned.noise_of(counts, decided)(chosen.bins)
    return weights, (chosen.values, spread, planned.sampling_of(counts, decided)), chosen.looks


def choose(
    edges: tuple[float, ...],
    decisions: Floats,
    scores: Floats,
    values_of: Callable[[Floats], Floats],
    bounds: Floats,
    spread: Callable[[int], Floats],
    bin_noise: float,
    rows: float,
) -> Threshold:
    """Zero where every constraint holds there; else the edge with the least error plus WORTH times
    the largest excess. Post-processing of one joint release.

    A model with several thresholds is a line of models: every constraint's value, and the change of
    the error, follow at each of them. A short run's search comes to rest near what was asked; a
    small step along this line puts right what is left, and a large one finds the way out where
    every feature goes with the group and no other direction has one.

    `decisions` (cells, labels or 1): how many rows are decided for the second class at zero, which
    is one of the edges. `scores` (cells, 2 labels, bins), of `rows` rows. `values_of` maps
    decisions (thresholds, cells, labels or 1) to values. An estimate across many bins is noisy: of
    each, one standard deviation is added (`spread(bins)` of values, `bin_noise` of a bin), so that
    a far threshold is not taken for its luck.
    """
    zero = edges.index(0.0)
    bins = np.abs(np.arange(len(edges)) - zero)
    below = np.cumsum(scores, axis=-1)[..., :-1]  # at each edge, rows whose score is not above it
    # (edges, cells, 2 labels): no longer decided for
    passed = np.moveaxis(below - below[..., zero : zero + 1], -1, 0)
    by_label = decisions.shape[1] == 2
    at_edges = decisions - (passed if by_label else passed.sum(axis=2, keepdims=True))
    values = values_of(at_edges)
    excess = np.nan_to_num(values - bounds, nan=0.0)
    # Nothing to mend. Two looks all the same: these values decided that zero is kept.
    if (excess[zero] <= NEGLIGIBLE).all():
        return Threshold(0.0, values[zero], decisions, 0, 2)
    noise = np.stack([spread(n) for n in range(bins.max() + 1)])[bins]
    # Rows that are decided the other way: those of the second class are errors now, those of the
    # first no longer.
    errors = (
        passed[:, :, 1].sum(axis=1)
        - passed[:, :, 0].sum(axis=1)
        + bin_noise * np.sqrt(bins * passed[0].size)
    )
    worst = np.maximum(excess + noise - noise[zero], 0.0).max(axis=1)
    best = int(np.argmin(errors / rows + WORTH * worst))
    looks = 2 if best == zero else 2 * (len(edges) - 1)
    return Threshold(edges[best], values[best], at_edges[best], int(bins[best]), looks)
