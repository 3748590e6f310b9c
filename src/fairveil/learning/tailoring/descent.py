"""Private descent whose budget is shared among groups: the paper's second stage, corrected
(theory.md#tailoring).

    min over weights v:   h(l(v)) = f(l(v)) + G max(0, g(l(v))),      l_k(v) the mean loss of group
    k over its share

0. Where numbers are to be scaled their moments; the groups' counts.
1. Stage one, where shares follow standard errors: a private precursor on all rows (one Gram matrix
   for squared loss, a few rounds for log loss), then each group's sum of its losses.
2. Rounds: each group's sum of gradients, clipped row by row to a clip, and, where losses are
   bounded, of losses, all in one joint release with noise by share. The step is sum_k (w_k / n_k)
   G_k, w = the gradient of h at released losses.
3. The groups' losses of the answer.

Without bounds, shares or limits that were asked for, w is constant and one sum in which a row of
group k counts w_k / n_k has all that a step needs: its noise is that of the group that weighs most,
where sums apart bring every group's.

`Differs:` sums are divided by released counts, never by true ones; noise is of the sensitivity of a
sum, not of a mean over unknown sizes; the indicator of g >= 0 is a player whose pressure follows
released excesses, and averages their noise.

Guarantees (tests/learning/test_learning_tailored_descent.py):
1. The log is the plan, or finer: no group spends more than was planned.
2. Shares, steps and weights depend on the rows through the curator's answers alone.
3. Without noise the answer is that of the non-private solver.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats
from ...curator import Curator
from ...errors import InputError
from ...fairness.functions import GroupFunction
from ..allocation import Allocation, Shares
from ..comparison import Rival
from ..descent import Progress, Reason
from ..duals import AscentState, PrimalState
from ..gaussian import quietest
from ..least_squares import RegressionOutcome, RegressionTask, Scaling
from ..oracles import LEAST_ROWS
from ..primal_dual import usual_clip
from ..quadratics import CERTAIN, Ended, GroupQuadratics
from .description import MOST, WARMING, DescribedDescent
from .shared_budget import EXACT_ROUNDS, ROUNDS
from .steps import ITERATES, MOMENTUM, REGIONS, SLOPE, STEP_SIZES, UNIT


@dataclass(frozen=True, eq=False)
class TailoredState:
    """Between rounds: released values only."""

    walk: PrimalState
    pressure: AscentState
    losses: Floats
    round: int = 0


@dataclass(frozen=True, eq=False)
class PosedTask:
    """What released counts make of the task: f, lines of what is bounded, their bounds, the groups'
    shares and the rows."""

    f: GroupFunction
    lines: Floats
    bounds: Floats
    counts: Floats
    rows: float

    def weights(self, losses: Floats, duals: Floats) -> Floats:
        """What one more unit of each group's loss costs."""
        pulled = duals @ self.lines if len(self.bounds) else 0.0
        return np.asarray(self.f.gradient(losses) + pulled)


@dataclass(frozen=True, eq=False)
class TailoredDescent(DescribedDescent):
    """A descent that is planned and priced: public values alone. Made by `plan_tailored_descent`.

    `z`: the noise over the sensitivity, had all of the budget been spent on one Gaussian. `scales`:
    numbers are scaled to mean 0 and deviation 1 by their released moments first, so that columns
    narrow within their bounds are seen. `skeleton`: of a network, descended from where it stands,
    in secret batches of `sampling_rate`.
    """

    # -- what is done ------------------------------------------------------------------------------

    def run(
        self, curator: Curator, progress: Progress | None = None
    ) -> tuple[RegressionOutcome, Shares]:
        """Descend; the curator is closed afterwards, in every case. The outcome's coefficients are
        the model's weights."""
        with curator:
            scaling = self._scaled(curator) if self.scales else None
            sums, counts, rests = self._begun(curator)
            shares, posed = self._shares(sums, counts), self._posed(counts)
            state, reason = self._initial(posed), Ended.NOTHING if rests else Reason.ROUNDS
            while state.round < self.rounds:
                state = self._step(curator, state, posed, shares)
                if progress is not None:
                    progress(state.round, self.rounds)
            found = state.walk.average if self.iterate == "average" else state.walk.weights
            v = self.start if rests else found
            outcome = self._concluded(curator, v, state, posed, reason)
            curator.finish()
            if scaling is not None:
                c = _before(np.atleast_2d(outcome.coefficients), scaling).reshape(
                    outcome.coefficients.shape
                )
                outcome = replace(outcome, coefficients=c)
        return outcome, replace(shares, counts=counts)

    def _scaled(self, curator: Curator) -> Scaling:
        """Have numbers scaled by their means and deviations."""
        measurements = self._moments()
        return Scaling.of_moments(
            self.task, measurements, curator.answer(measurements, purpose="moments of the numbers")
        ).apply(curator)

    def _begun(self, curator: Curator) -> tuple[Floats | None, Floats, bool]:
        """Sums of the precursor's losses by group, sizes, and whether a released number of rows
        cannot be told from none: a model would be noise alone then, and stays where it is."""
        counts = np.concatenate(curator.answer(self._sized(), purpose="counts of the groups"))
        # The sum of the groups' counts has the noise of all of them.
        certain = CERTAIN * self._count_noise * math.sqrt(len(counts))
        rests = self.task.stated_rows is None and 0.0 < certain >= float(counts.sum())
        counts = self._floored(counts)
        if not self.measures_errors:
            return None, counts, rests
        v = self._precursor(curator, self._rows_of(counts))
        return (
            np.concatenate(curator.answer(self._measured(v), purpose="losses of the groups")),
            counts,
            rests,
        )

    def _rows_of(self, counts: Floats) -> float:
        """What averages divide by: the public number of rows, or the released one."""
        return float(
            self.task.stated_rows or max(float(counts.sum()) / self.cells.per_row, LEAST_ROWS)
        )

    def _precursor(self, curator: Curator, rows: float) -> Floats:
        # The precursor tells groups by their errors alone: any rough model does.
        none = np.zeros((self._outputs, 1 + self.task.layout.width))
        if self.loss == "squared":
            measurements = self._warming(none)
            ((matrix,),) = curator.answer(measurements, purpose="Gram matrix of all rows")
            noise = (
                0.0
                if self.task.sees_features
                else float(measurements[0].multiplier) * self.task.move(measurements[0].question)
            )
            told = GroupQuadratics.of(matrix[np.newaxis], noise=noise, cells=None)
            return told.best(np.ones(1))[np.newaxis] if told.has_rows else none
        walk, noise = (
            PrimalState.at(none),
            self._multiplier("precursor", WARMING) * usual_clip(self.task.promise) / rows,
        )
        for _ in range(WARMING):
            (total,) = curator.answer(self._warming(walk.weights), purpose="precursor")
            walk = walk.step(total / rows, self.steps.pace(noise), MOMENTUM, count=True)
        return walk.average

    def _floored(self, counts: Floats) -> Floats:
        """No group is smaller than two deviations of its count's noise."""
        return np.maximum(counts, max(LEAST_ROWS, 2.0 * self._count_noise))

    def _posed(self, counts: Floats) -> PosedTask:
        task = self.task
        rows = self._rows_of(counts)
        f, bounds = task.functions(counts / rows, max(LEAST_ROWS, 2.0 * self._count_noise) / rows)
        lines = [
            np.asarray(one.lines.todense() if hasattr(one.lines, "todense") else one.lines)
            for one in bounds
        ]
        listed = [np.full(len(line), one.bound) for line, one in zip(lines, bounds, strict=True)]
        return PosedTask(
            f,
            np.concatenate([np.zeros((0, len(counts))), *lines]),
            np.concatenate([np.zeros(0), *listed]),
            counts,
            rows,
        )

    def _initial(self, posed: PosedTask) -> TailoredState:
        return TailoredState(
            PrimalState.at(self.start),
            AscentState.begin(len(posed.bounds)),
            np.zeros(self.cells.count),
        )

    def _step(
        self, curator: Curator, state: TailoredState, posed: PosedTask, shares: Shares
    ) -> TailoredState:
        """One round."""
        weights = posed.weights(state.losses, state.pressure.duals)
        factors = self._factors(posed.counts) if self.adds_groups else None
        answers = curator.answer(
            self._asked(state.walk.weights, shares, factors),
            self.batch_of(state.round),
            purpose="gradients of the groups",
        )
        scale = SLOPE[self.loss] * UNIT[self.loss] / posed.rows / self._asked_part
        if self.adds_groups:
            # Rows were weighed after their clip by factors of at most 1: the largest weight brings
            # the sum back to its size.
            gradient, loudest = answers[0] * float(weights.max()), float(weights.max())
        else:
            gradient = np.tensordot(weights, np.concatenate(answers[: len(self.columns)]), axes=1)
            # A group's noise goes with 1 / sqrt(what it spends), and independent noises add up as
            # squares.
            loudest = float(np.linalg.norm(weights / np.sqrt(shares.paid)))
        t, pressure, losses = state.round + 1, state.pressure, state.losses
        if self.bounded:
            sums = np.concatenate(answers[len(self.columns) :])
            # A sum of losses is not negative; what noise makes of it may be.
            losses = np.maximum(sums, 0.0) * UNIT[self.loss] / posed.rows
            pressure = self._auditor.step(pressure, posed.lines @ losses - posed.bounds)
        # of the curvature of sum_k w_k l_k, over that of a mean of rows
        heavy = float(weights @ posed.counts) / posed.rows
        noise = self._noise * loudest * scale
        walk = self.steps.walked(state.walk, gradient * scale, noise, heavy, loudest, t)
        return TailoredState(walk, pressure, losses, t)

    def _concluded(
        self,
        curator: Curator,
        v: Floats,
        state: TailoredState,
        posed: PosedTask,
        reason: Reason | Ended,
    ) -> RegressionOutcome:
        measurements = self._reported(v)
        answers, task, half = (
            curator.answer(measurements, purpose="losses of the groups"),
            self.task,
            len(self.columns),
        )
        noise = (
            0.0
            if self.is_exact
            else float(measurements[0].multiplier) * self.task.move(measurements[0].question)
        )
        if self.skeleton is None:
            sums, per_row = np.concatenate(answers[:half]), UNIT[self.loss] / posed.rows
        else:
            sums, per_row, noise = (
                self._errors(answers[:half], answers[half:]),
                1.0 / posed.rows,
                2.0 * noise,
            )
        outcome = task.outcome(
            np.asarray(v).reshape(-1)
            if self._outputs == 1 and self.skeleton is None
            else np.asarray(v),
            sums * per_row,
            posed.counts / posed.rows,
            least=max(LEAST_ROWS, 2.0 * self._count_noise) / posed.rows,
            noise=noise * per_row,
            count_noise=self._count_noise / posed.rows,
            rows=posed.rows,
            gap=None,
            calls=state.round,
            reason=reason.value,
            largest=self._largest,
        )
        if self.skeleton is not None:
            return outcome
        least = max(LEAST_ROWS, 2.0 * self._count_noise) / posed.rows
        return replace(
            outcome,
            constant=self._constant(outcome, np.concatenate(answers[half:]), posed, least, noise),
        )

    def _constant(
        self,
        outcome: RegressionOutcome,
        labels: Floats,
        posed: PosedTask,
        least: float,
        noise: float,
    ) -> Rival:
        """The classes' shares as everybody's probabilities: their log loss in each group, from how
        many rows have each label (`labels`); of numbers the middle of the target's bounds, whose
        losses were asked for."""
        count, shares = self._count_noise / posed.rows, posed.counts / posed.rows
        unit = UNIT[self.loss] / posed.rows
        if self.loss == "squared":
            return self.task.rival(
                outcome, labels * unit, shares, least=least, noise=noise * unit, count_noise=count
            )
        sizes = np.maximum(labels.sum(axis=0), LEAST_ROWS)
        surprise = np.minimum(-np.log(sizes / sizes.sum()), MOST["log"])
        losses, of_labels = (
            np.maximum(labels, 0.0) @ surprise * unit,
            noise * float(np.linalg.norm(surprise)) * unit,
        )
        return self.task.rival(
            outcome, losses, shares, least=least, noise=of_labels, count_noise=count
        )

    def _errors(self, histograms: Sequence[Floats], counts: Sequence[Floats]) -> Floats:
        """How many decisions of each group are wrong."""
        decided, sizes = np.concatenate(histograms), np.concatenate(counts)
        if decided.shape[-1] == 1:
            return np.asarray(decided[:, 0, 0] + sizes[:, 1] - decided[:, 1, 0])
        return np.asarray(sizes.sum(axis=1) - np.einsum("kll->k", decided))


def _before(weights: Floats, scaling: Scaling) -> Floats:
    """Coefficients (outputs, 1 + width) of scaled numbers as those of the numbers before."""
    out, numbers = weights.copy(), slice(1, 1 + len(scaling.scale))
    out[:, numbers] = weights[:, numbers] / scaling.scale
    out[:, 0] -= out[:, numbers] @ scaling.centre
    return out


def plan_tailored_descent(
    task: RegressionTask, allocation: Allocation, **options: Any
) -> TailoredDescent:
    """The descent whose noise is the least that keeps the promise. `options`: fields of
    `TailoredDescent`."""
    _checks.one_of(REGIONS, region=options.get("region", "ball"))
    _checks.one_of(STEP_SIZES, step_size=options.get("step_size", "steady"))
    _checks.one_of(ITERATES, iterate=options.get("iterate", "average"))
    for name in ("clip", "radius", "learning_rate"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    if options.get("step_size") == "decaying" and (
        options.get("radius") is None or options.get("skeleton") is not None
    ):
        remedy = (
            "The steps of appendix E are for a bounded region of coefficients: pass radius=5.0, or "
            "step_size='steady'."
        )
        raise InputError.expected(
            "a radius, of a linear model", of="step_size", got="decaying", remedy=remedy
        )
    if allocation.has_limits and options.get("sampling_rate", 1.0) < 1.0:
        remedy = (
            "Pass sampling_rate=1.0, or leave limits out: they are kept by adding up Gaussians, "
            "which batches are not."
        )
        got = "secret batches"
        raise InputError.expected(
            "all rows in every round", of="min_epsilon, max_epsilon", got=got, remedy=remedy
        )
    exact = not task.promise.is_private
    options.setdefault(
        "rounds", EXACT_ROUNDS if exact and options.get("skeleton") is None else ROUNDS
    )
    make = partial(TailoredDescent, task, allocation, **options)
    planned = quietest(task.promise, lambda z: make(z=z), TailoredDescent.event, exact=exact)
    if not exact:
        planned._shares(None, None)  # limits that cannot be kept are refused now
    return planned
