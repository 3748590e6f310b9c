"""Least squares for objectives of the groups' losses (Alabi, sec. 1.3.1; theory.md#gram): one
release of the groups' Gram matrices, then linear oracles for free; or a private choice out of a
list.

With r = (1, x, y) and M_k = the sum of r r' over the rows of group k, the loss of coefficients c is

    l_k(c) = (u / n0) sum_{i in k} (y_i - c.(1, x_i))^2 = v' M_k v u / n0,      v = (c, -1),

u the unit that puts squared errors into squared ranges of the target. Losses are squared errors of
targets coded to [-1, 1], over 4; bounds are given, and values reported, in squared units.

`Differs:`
- the paper asks a private gradient descent for every weighted sum of losses; here the M_k are
  released once, and the least value of w.l(c) is post-processing for any w, solved exactly
  (`quadratics`): any number of rounds costs the same;
- rows longer than a clip are clipped, and count as the square of what is left of them; dense numbers
  are scaled by released moments before, for the noise of a Gram matrix is as large in every
  direction;
- where records are protected, the matrix of everybody is in the same release; where features are
  public it is exact, and what clipping takes of it is given back by the groups' shares;
- losses that noise hides are followed part of the way (`quadratics.steadied`);
- sampling from a convex set needs Markov chains, whose distance from the right distribution enters
  delta and has no bound that could be checked: coefficients are chosen from a list or a grid.

Guarantees (tests/methods/test_methods_least_squares.py):
1. The log is the plan: the same releases, whatever is answered and however often oracles are asked.
2. Coefficients depend on the rows through the curator's answers alone; equal answers make equal
   coefficients.
3. Losses at coefficients that were fixed before have the noise that is stated of them; those at
   coefficients found in the same release are off by less than twice what is stated.
4. No neighbour changes the probability of a choice by more than its epsilon says.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.bound import OUTWARDS
from ..core.events import Event, compose
from ..core.promise import Promise
from ..curator import (
    FULL,
    CellCounts,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    NumberMoments,
    Question,
    RowCount,
    Score,
    describe,
    describe_choice,
    largest_of_one,
    moved_by_one,
)
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import BoundedGroupLoss
from ..fairness.functions import (
    GroupFunction,
    Inequality,
    Joint,
    Largest,
    LossFunction,
    Total,
    Worst,
    corollary_4_2,
    gini,
)
from ..fairness.objectives import (
    Bound,
    Constraint,
    Error,
    Frame,
    GroupLoss,
    LargestGroupLoss,
    MeanGroupLoss,
    Objective,
    WeightedError,
)
from ..privacy import calibrate
from .allocation import by_column
from .comparison import Rival
from .descent import Batch, Progress
from .gaussian import OR_EXPONENTIAL, quietest
from .oracles import LEAST_ROWS, Asks
from .outcome import not_met
from .quadratics import (
    CERTAIN,
    LEAST_SHARE,
    METHODS,
    ROUNDS,
    Ended,
    GroupQuadratics,
    Least,
    least,
    steadied,
)
from .systems import NO_GROUPS, heaviest, onto_totals

LENGTH = 1.5  # of the usual length of a row: the longest that counts in full, unless noise is small
LONGEST, HEARD = 4.0, 0.04
"""Where the noise of a group of usual size would still be below `HEARD` of its rows in any
direction, longer rows count in full, up to `LONGEST` usual lengths. Noise grows with the square of
the clip, and losses of clipped rows are not the rows'."""
RADIUS = 10.0  # of coefficients whose losses may get negative weights
MOMENTS_SHARE = 0.05  # of the squared budget
WHOLE_SHARE = 0.3  # of the rest, where records are protected, for one matrix of everybody
CLIP = 4.0  # of the squared error of codes, where coefficients are chosen: that of the range
GRID_RADIUS, GRID_POINTS, GRID_DIMENSIONS = 1.5, 21, 3
PENALTY = 5.0  # G of a choice, whose noise is in proportion to it
SHARES = (0.05, 0.9, 0.05)  # of the squared budget of a choice: counts, choice, losses
PURE_SHARES = (0.1, 0.9)  # of epsilon
CHOSEN = "drawn by the exponential mechanism from {0} candidates"


# ------------------------------------------------------------- what is asked for, and what is said


@dataclass(frozen=True, eq=False)
class RegressionOutcome:
    """What was found: released values only. Losses are in squared units of the target.

    `coefficients` (1 + width,) of coded rows, the intercept first. `value`: of the objective, as it
    was released, with the deviation of its noise in `value_noise`. `gap`: by how much less other
    coefficients in reach may make what was minimised; None where nothing is known. `penalty`: G.
    `names` to `pressed`: of the constraints. `losses`: the groups' mean losses; `shares`: the
    groups' of all rows. `constant`, `free`: the objective at one prediction for everybody, and at
    least squares without constraint; None where that is not known, and of what was read from disk.
    """

    coefficients: Floats
    value: float
    value_noise: float
    gap: float | None
    penalty: float
    calls: int
    reason: str
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    pressed: Floats
    losses: Floats
    losses_noise: Floats
    shares: Floats
    rows: float
    constant: Rival | None = None
    free: Rival | None = None
    sampling: Floats | None = None

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are not met."""
        return not_met(self.values, self.bounds, self.spread)


@dataclass(frozen=True, eq=False)
class RegressionTask:
    """Public facts alone. `cells`: None where the objective tells no groups apart. `unit`: the
    target's squared range. `penalty`: G; None: that of Corollary 4.2 at `alpha`, in squared ranges.
    """

    promise: Promise
    layout: RowLayout
    cells: Cells | None
    objective: Objective
    constraint: Constraint
    unit: float = 1.0
    public_rows: int | None = None
    max_sample_weight: float | None = None
    penalty: float | None = None
    alpha: float = 1e-4

    def __post_init__(self) -> None:
        for notion in self.constraint.notions:
            if not isinstance(notion, BoundedGroupLoss) or notion.loss != "squared":
                remedy = (
                    "Pass BoundedGroupLoss(max_loss, loss='squared'), a bound on each group's mean "
                    "squared error."
                )
                raise InputError.expected(
                    "bounds on squared losses", of="constraint", got=str(notion), remedy=remedy
                )
        count = 1 if self.cells is None else self.cells.count
        # whatever cannot be said of losses by group is refused here
        self.functions(np.full(count, 1.0 / count), 1e-9)

    @property
    def stated_rows(self) -> int | None:
        """The number that averages divide by, where it is public. Rows with weights are counted by
        them."""
        return None if self.max_sample_weight is not None else self.public_rows

    @property
    def sees_features(self) -> bool:
        """Whether features and targets may be asked about exactly, for free."""
        return self.promise.features_are_public

    @property
    def is_exact(self) -> bool:
        """Whether nothing that is asked gets noise."""
        return not self.promise.is_private or (self.sees_features and self.cells is None)

    def move(self, question: Question, order: int = 2) -> float:
        """How far one person moves the answer to a question whose bound is a constant (L2)."""
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight, order)

    def event(self, measurements: Sequence[Measurement], batch: Batch = FULL) -> Event:
        """What a joint answer costs."""
        return describe(
            measurements, self.layout, self.promise, batch, max_sample_weight=self.max_sample_weight
        )

    def functions(self, shares: Floats, least: float) -> tuple[GroupFunction, list[GroupFunction]]:
        """f, and the constraints' functions, where groups have these shares."""
        frame = Frame(self.cells or NO_GROUPS, (), shares, least)
        return self.objective.at(frame), _in_ranges(self.constraint, self.unit).at(frame)

    def joint(self, f: GroupFunction, bounds: list[GroupFunction], width: float = 0.0) -> Joint:
        """h = f + G max(0, g), smoothed over `width`."""
        if not bounds:
            return Joint(f, None, 0.0)
        g: LossFunction = bounds[0] if len(bounds) == 1 else Worst(tuple(bounds))
        penalty = corollary_4_2(f, self.alpha) if self.penalty is None else self.penalty
        return Joint(f, g, penalty, width)

    def _lines(
        self,
        bounds: list[GroupFunction],
        losses: Floats,
        noise: float | Floats,
        of_means: float | Floats,
    ) -> list[tuple[str, float, float, float]]:
        """What constraints bound: (name, bound, value, deviation of its noise) each."""
        pairs = zip(self.constraint.titles, bounds, strict=True)
        lines = [_lines(*pair, losses, noise, of_means, self.unit) for pair in pairs]
        return list(itertools.chain.from_iterable(lines))

    def rival(
        self,
        outcome: RegressionOutcome,
        losses: Floats,
        shares: Floats,
        *,
        least: float,
        noise: float | Floats,
        count_noise: float | Floats,
    ) -> Rival:
        """Other predictions, by their released losses, beside what was found."""
        f, bounds = self.functions(shares, least)
        of_means = np.hypot(noise, losses / np.maximum(shares, least) * count_noise)
        unit = _unit_of(self.objective, self.unit)
        value = unit * float(f.value(losses))
        lines = [line[2] - line[1] for line in self._lines(bounds, losses, noise, of_means)]
        most = max(0.0, float(np.max(outcome.values - outcome.bounds, initial=-np.inf)))
        admitted = max(lines, default=-np.inf) <= most + 1e-9 * max(1.0, abs(most))
        own = unit * _noise_of(f, losses, noise, of_means)
        deviation = float(np.hypot(outcome.value_noise, own))
        return Rival(value, outcome.value - value, deviation, bool(admitted))

    def outcome(
        self,
        coefficients: Floats,
        losses: Floats,
        shares: Floats,
        *,
        least: float,
        noise: float | Floats,
        count_noise: float | Floats,
        rows: float,
        gap: float | None,
        calls: int,
        reason: str,
        largest: float = 1.0,
    ) -> RegressionOutcome:
        """From released losses (cells,) with noise of this deviation each, and shares with theirs.

        `largest`: M, what one row's loss is at most, in the units of `losses`. With mean m its
        variance is at most m (M - m) (Bhatia and Davis), which bounds the sampling error: the
        variance itself is not released.
        """
        f, bounds = self.functions(shares, least)
        means = losses / np.maximum(shares, least)
        of_means = np.hypot(noise, means * count_noise)  # over a share: that of a group's mean loss
        lines = self._lines(bounds, losses, noise, of_means)
        drawn = self._lines(bounds, losses, *_drawn(means, shares, rows, largest))
        limits, values, spread = (np.array([line[j] for line in lines]) for j in (1, 2, 3))
        # as they were given, before they were put into ranges
        limits = np.array([float(f"{bound:.12g}") for bound in limits])
        penalty = self.joint(f, bounds).penalty
        unit = _unit_of(self.objective, self.unit)
        return RegressionOutcome(
            coefficients=coefficients,
            value=unit * float(f.value(losses)),
            value_noise=unit * _noise_of(f, losses, noise, of_means),
            gap=None if gap is None else unit * gap,
            penalty=penalty,
            calls=calls,
            reason=reason,
            names=tuple(line[0] for line in lines),
            bounds=limits,
            values=values,
            spread=spread,
            pressed=np.where(values >= limits - spread, penalty, 0.0),
            losses=self.unit * means,
            losses_noise=self.unit * of_means / np.maximum(shares, least),
            shares=shares,
            rows=rows,
            sampling=np.array([line[3] for line in drawn])
            * math.sqrt(heaviest(self.promise, self.max_sample_weight) or 1.0),
        )


def _drawn(means: Floats, shares: Floats, rows: float, largest: float) -> tuple[Floats, Floats]:
    """The largest standard deviations that sampling may give losses by cell: those of the losses,
    and at given shares."""
    if math.isinf(largest):
        return np.full(len(means), math.nan), np.full(len(means), math.nan)
    held, sizes = np.clip(means, 0.0, largest), np.maximum(shares, 0.0)
    at_shares = np.sqrt(sizes * held * (largest - held) / rows)
    return np.sqrt(np.maximum(sizes * held * (largest - sizes * held), 0.0) / rows), at_shares


def _unit_of(objective: Objective, unit: float) -> float:
    """What a value of the objective counts in: squared units of the target, or none of its own."""
    of_losses = Error | WeightedError | LargestGroupLoss | GroupLoss | MeanGroupLoss
    return unit if isinstance(objective, of_losses) else 1.0


def _in_ranges(constraint: Constraint, unit: float) -> Constraint:
    """Bounds in squared units of the target as bounds in squared ranges of it."""
    losses = [one for one in constraint.notions if isinstance(one, BoundedGroupLoss)]
    return Constraint(
        tuple(
            Bound(one.objective, one.bound / _unit_of(one.objective, unit))
            for one in constraint.bounds
        ),
        tuple(
            replace(one, max_loss=None if one.max_loss is None else one.max_loss / unit)
            for one in losses
        ),
    )


def _noise_of(
    function: GroupFunction, losses: Floats, noise: float | Floats, of_means: float | Floats
) -> float:
    """The deviation of a function's value. Sums of losses divide by no share, and have no noise of
    it."""
    sizes = noise if type(function.outer) is Total else of_means
    return float(np.linalg.norm(function.gradient(losses) * sizes))


def _lines(
    title: str,
    function: GroupFunction,
    losses: Floats,
    noise: float | Floats,
    of_means: float | Floats,
    unit: float,
) -> list[tuple[str, float, float, float]]:
    """`of_means`: noise of losses and of the shares that they are divided by, which all rates but
    sums are."""
    rates, outer = function.rates(losses), function.outer
    if isinstance(outer, Largest):
        sizes = np.sqrt(np.asarray(function.lines.power(2) @ of_means**2).ravel())
        columns = zip(function.names, rates.tolist(), sizes.tolist(), strict=True)
        bound = unit * function.bound
        return [(f"{name} <= {bound:g}", bound, unit * rate, unit * s) for name, rate, s in columns]
    size = _noise_of(function, losses, noise, of_means)
    if isinstance(outer, Inequality):
        means = np.maximum(rates, 0.0)
        middle, m = max(float(means.mean()), 1e-12), len(means)
        return [(title, outer.theta, float(gini(means)), size * (m - 1) / m**2 / middle)]
    unit = 1.0 if function.trusted else unit
    value = unit * (float(function.value(losses)) + function.bound)
    return [(title, unit * function.bound, value, unit * size)]


# ------------------------------------------------------------------------- one release for all


@dataclass(frozen=True, eq=False)
class Scaling:
    """Numbers, the target last, as (x - centre) / scale: public or released values. `rows`: how
    many were counted with them."""

    centre: Floats
    scale: Floats
    rows: float = 0.0

    @staticmethod
    def of(rows: float, sums: Floats, squares: Floats, noise: float) -> Scaling:
        """From released sums over rows. A noisy variance is no less than the noise of a mean
        square."""
        n = max(rows, 2.0 * noise, 1e-12)
        mean, square = sums / n, squares / n
        if noise == 0.0:
            variance = square - mean**2
            scale = np.sqrt(np.where(variance > 1e-12 * square, variance, 1.0))
        else:
            mean = np.clip(mean, -1.0, 1.0)
            scale = np.sqrt(np.clip(square - mean**2, min(noise / n, 1.0), 1.0))
        return Scaling(mean, scale, rows)

    @staticmethod
    def of_moments(
        task: RegressionTask, measurements: Sequence[Measurement], answers: Sequence[Floats]
    ) -> Scaling:
        """From the answers to `moments_of`, the first two."""
        noise = 0.0
        if not task.sees_features:
            noise = float(measurements[1].multiplier) * task.move(measurements[1].question)
        sums, squares = np.asarray(answers[1])
        return Scaling.of(float(answers[0][0]), sums, squares, noise)

    def apply(self, curator: Asks) -> Scaling:
        """Have the curator scale the rows' numbers."""
        curator.rescale(1.0 / self.scale, -self.centre / self.scale)
        return self

    def undone(self, c: Floats) -> Floats:
        """Coefficients (1 + width,) that predict scaled targets from scaled numbers, as those of
        the numbers before."""
        numbers = len(self.scale) - 1
        out = c * self.scale[-1]
        out[1 : 1 + numbers] /= self.scale[:-1]
        out[0] += self.centre[-1] - float(out[1 : 1 + numbers] @ self.centre[:-1])
        return np.asarray(out)


def moments_of(task: RegressionTask, multiplier: float) -> list[Measurement]:
    """How many rows there are, and their numbers' moments: nothing within [-1, 1] is clipped."""
    question = NumberMoments(None if task.sees_features else math.sqrt(2.0 * task.layout.numbers))
    return [Measurement(RowCount(), multiplier), Measurement(question, multiplier)]


@dataclass(frozen=True, eq=False)
class GroupRegression:
    """A regression that is planned and priced: public values alone. Made by `plan_regression`.

    The task's layout has the target as its last number. `scales`: whether numbers are scaled by
    their moments. `clip`: the longest row that counts in full; `radius`: of the ball of
    coefficients, in the units of the search; None: none, or `RADIUS` where weights of losses may be
    negative. `ridge`: s of `GroupQuadratics.of`.
    """

    task: RegressionTask
    scales: bool = False
    clip: float | None = None
    radius: float | None = None
    ridge: float | None = None
    method: str = "linear-oracle"
    rounds: int = ROUNDS
    moments_multiplier: float = 0.0
    multiplier: float = 0.0
    whole_multiplier: float = 0.0

    @cached_property
    def plan(self) -> Event | None:
        """The events of the run; None without privacy."""
        return self.event() if self.task.promise.is_private else None

    def event(self) -> Event:
        """What the run costs."""
        return compose([self.task.event(one) for one in self.asked_in_turn()])

    def asked_in_turn(self) -> list[list[Measurement]]:
        """The joint releases in their order."""
        moments = [self._moments()] if self.scales else []
        return [*moments, self._measurements(self._clip, None)]

    def run(self, curator: Asks, progress: Progress | None = None) -> RegressionOutcome:
        """Release and minimise; the curator is closed afterwards, in every case."""
        with curator:
            quadratics, scaling = self.release(curator)
            curator.finish()
        return self.found(quadratics, scaling, progress)

    def release(self, curator: Asks) -> tuple[GroupQuadratics, Scaling | None]:
        """Ask, and make losses of the answers."""
        scaling = self.scaled(curator)
        return self.matrices(curator, scaling), scaling

    def scaled(self, curator: Asks) -> Scaling | None:
        """Have numbers scaled by their released moments, where they are to be."""
        if not self.scales:
            return None
        one = self._scaled(curator)
        if not self.task.sees_features:
            return one
        # columns far smaller than others are seen once those are scaled
        two = self._scaled(curator)
        return Scaling(one.centre + one.scale * two.centre, one.scale * two.scale, two.rows)

    def _moments(self) -> list[Measurement]:
        return moments_of(self.task, self.moments_multiplier)

    def scaling_of(self, answers: Sequence[Floats]) -> Scaling:
        """From the answers to the moments' questions."""
        return Scaling.of_moments(self.task, self._moments(), answers)

    def _scaled(self, curator: Asks) -> Scaling:
        answers = curator.answer(self._moments(), purpose="moments of the numbers")
        return self.scaling_of(answers).apply(curator)

    def matrices(
        self, curator: Asks, scaling: Scaling | None, tailored: Floats | None = None
    ) -> GroupQuadratics:
        """Ask about rows as they are scaled by now. `tailored`: a multiplier of the noise for each
        cell, over what one row contributes to it, in the place of the one for all over the
        sensitivity."""
        task, purpose = self.task, "Gram matrices of the groups"
        facts: dict[str, Any] = {
            "cells": task.cells,
            "unit": 0.25 if scaling is None else 0.25 * float(scaling.scale[-1]) ** 2,
            "radius": math.inf if self.radius is None else self.radius,
            "ridge": self.ridge,
        }
        if task.is_exact or not task.sees_features:
            clip: float | None = self._clip
            if task.is_exact:
                clip = None
            elif tailored is None and self.clip is None and self.scales:
                rows = task.stated_rows or (0.0 if scaling is None else scaling.rows)
                usual = self._clip / LENGTH
                clip = usual * self._longest(rows, usual)
            measurements = self._measurements(clip, tailored)
            answers = list(curator.answer(measurements, purpose=purpose))
            if self.whole_multiplier and tailored is None:
                noise = self.whole_multiplier * task.move(measurements[-1].question) * OUTWARDS
                facts |= {"total": self._target_last(answers.pop()[0]), "total_noise": noise}
            clip = clip or self._clip
        else:
            ((whole,),) = curator.answer([Measurement(self._question(None, apart=False), 0.0)])
            mean_square = float(np.trace(whole)) / max(float(whole[0, 0]), 1e-9)
            clip = self.clip or self._longest(
                float(whole[0, 0]), math.sqrt(mean_square)
            ) * math.sqrt(mean_square)
            exact = Measurement(self._question(clip, apart=False), 0.0)
            answers = list(
                curator.answer([*self._measurements(clip, tailored), exact], purpose=purpose)
            )
            counted = self._target_last(answers.pop()[0])
            facts |= {"total": counted, "lost": self._target_last(whole) - counted}
        joined = self._target_last(np.concatenate(answers))
        return GroupQuadratics.of(joined, noise=self._noise(clip, tailored), **facts)

    def _measurements(self, clip: float | None, tailored: Floats | None) -> list[Measurement]:
        """The groups' matrices, and everybody's where it is released; with a multiplier for each of
        them one question a sensitive column, whose groups are apart."""
        cells = self.task.cells
        if tailored is None or cells is None:
            apart = Measurement(self._question(clip), self.multiplier)
            whole = Measurement(self._question(clip, apart=False), self.whole_multiplier)
            return [apart, whole] if self.whole_multiplier else [apart]
        return by_column(cells, lambda one: GramMatrices(one, clip), tailored)

    @property
    def _clip(self) -> float:
        """The longest row, unless one was given: of numbers of deviation 1, or within [-1, 1]."""
        layout = self.task.layout
        usual = math.sqrt(1.0 + layout.numbers + len(layout.code_sizes))
        return self.clip or (LENGTH * usual if self.scales else usual)

    def _longest(self, rows: float, usual: float) -> float:
        """In usual lengths, by how much noise a group of usual size would have."""
        cells = self.task.cells
        groups = cells.count / cells.per_row if cells is not None else 1.0
        noise = float(np.max(self._noise(usual)))
        spectral = noise * math.sqrt(2.0 * (2 + self.task.layout.width))
        if spectral <= 0.0:
            return LENGTH
        return min(LONGEST, max(LENGTH, math.sqrt(HEARD * max(rows, 0.0) / groups / spectral)))

    def _question(self, clip: float | None, *, apart: bool = True) -> Question:
        return GramMatrices(self.task.cells if apart else None, clip)

    def _target_last(self, matrices: Floats) -> Floats:
        """With the target's line and column, the last number's, at the end."""
        at = self.task.layout.numbers
        order = [*range(at), *range(at + 1, matrices.shape[-1]), at]
        return np.asarray(matrices[..., order, :][..., order])

    def _noise(self, clip: float, tailored: Floats | None = None) -> float | Floats:
        """The standard deviation of a diagonal entry; where rows are public, a bound on it."""
        task = self.task
        if task.is_exact:
            return 0.0
        if tailored is None:
            return self.multiplier * task.move(self._question(clip)) * OUTWARDS
        question = self._question(clip, apart=False)
        largest = largest_of_one(question, task.layout, task.promise, task.max_sample_weight)
        return np.asarray(tailored * (largest * OUTWARDS))

    def found(
        self,
        quadratics: GroupQuadratics,
        scaling: Scaling | None = None,
        progress: Progress | None = None,
    ) -> RegressionOutcome:
        """The coefficients, for losses that were released: post-processing."""
        task = self.task
        # Frank-Wolfe has no rate at a kink.
        width = task.alpha if self.method == "frank-wolfe" else 0.0

        def h_of(one: GroupQuadratics) -> Joint:
            return task.joint(*task.functions(one.shares, one.least), width)

        def find(one: GroupQuadratics) -> Floats:
            held = replace(one, radius=quadratics.radius)
            return least(held, h_of(one), self.method, rounds=self.rounds).coefficients

        if quadratics.has_rows:
            h = h_of(quadratics)
            if not h.monotone and self.radius is None:
                quadratics = replace(quadratics, radius=RADIUS)
            best = least(quadratics, h, self.method, rounds=self.rounds, progress=progress)
            if h.monotone and task.constraint.is_vacuous:
                best = steadied(quadratics, h, best, find)
        else:
            # rows teach nothing: few, or clipped so far that they count for few
            counted = 0.0 if scaling is None else scaling.rows
            rows = counted if task.stated_rows is None else float(task.stated_rows)
            per_row = 1 if task.cells is None else task.cells.per_row
            hidden = rows * per_row > CERTAIN * float(np.linalg.norm(quadratics.noise))
            nothing = np.zeros(quadratics.forms.shape[-1] - 1)
            reason = Ended.SHORTENED if hidden else Ended.NOTHING
            best = Least(nothing, math.nan, math.nan, 0, reason)
        c = best.coefficients
        told: dict[str, Any] = {"count_noise": quadratics.noise / quadratics.rows}
        outcome = task.outcome(
            c if scaling is None or not quadratics.has_rows else scaling.undone(c),
            quadratics.measured(c),
            quadratics.shares,
            least=quadratics.least,
            noise=quadratics.spread(c),
            rows=quadratics.rows,
            gap=best.gap if math.isfinite(best.gap) else None,
            calls=best.calls,
            reason=best.reason.value,
            **told,
        )
        if not quadratics.has_rows:
            return outcome

        def beside(one: Floats) -> Rival:
            return task.rival(
                outcome,
                quadratics.measured(one),
                quadratics.shares,
                least=quadratics.least,
                noise=quadratics.spread(one),
                **told,
            )

        # the mean of all targets for everybody, and least squares, from the same release
        whole = quadratics.released.sum(axis=0)
        mean = np.zeros(len(whole) - 1)
        mean[0] = whole[0, -1] / max(float(whole[0, 0]), 1e-300)
        free = quadratics.best(np.ones(len(quadratics.forms)))
        return replace(outcome, constant=beside(mean), free=beside(free))


def plan_regression(task: RegressionTask, **options: Any) -> GroupRegression:
    """The regression whose noise is the least that keeps the promise. `options`: fields of
    `GroupRegression`."""
    _checks.one_of(METHODS, method=options.get("method", "linear-oracle"))
    _checks.whole(at_least=1, rounds=options.get("rounds", ROUNDS))
    for name in ("clip", "radius"):
        if options.get(name) is not None:
            _checks.positive(**{name: options[name]})
    share = MOMENTS_SHARE if options.get("scales") and not task.sees_features else 0.0
    several = task.cells is not None and task.cells.count > 1 and not task.sees_features
    whole = WHOLE_SHARE if several else 0.0

    def at(z: float) -> GroupRegression:
        of_matrices = z / math.sqrt(1.0 - share)
        return GroupRegression(
            task,
            **options,
            # two of them: the number of rows, and the moments
            moments_multiplier=z * math.sqrt(2.0 / share) if share else 0.0,
            multiplier=of_matrices / math.sqrt(1.0 - whole),
            whole_multiplier=of_matrices / math.sqrt(whole) if whole else 0.0,
        )

    return quietest(
        task.promise, at, GroupRegression.event, exact=task.is_exact, way_out=OR_EXPONENTIAL
    )


# --------------------------------------------------------------------------- a choice out of a list


@dataclass(frozen=True, eq=False)
class CoefficientChoice:
    """A choice by the exponential mechanism that is planned and priced: public values alone. Made
    by `plan_choice`.

    Three releases: the groups' counts, which losses are divided by; the choice, by a function of
    clipped losses; the losses of what was chosen. With delta = 0 the counts get discrete Laplace
    noise, and the last is left out. `candidates` (m, 1 + width), of coded rows, the intercept first.
    `scale`: z; more is more noise.
    """

    task: RegressionTask
    candidates: Floats
    scale: float = 0.0

    @cached_property
    def plan(self) -> Event | None:
        """The events of the run; None without privacy."""
        return self.event() if self.task.promise.is_private else None

    @property
    def is_pure(self) -> bool:
        """Without delta no noise may be Gaussian."""
        return not self.task.is_exact and self.task.promise.delta == 0.0

    def event(self) -> Event:
        """What the run costs."""
        before, *after = (self.task.event([one]) for one in (self._counts, *self._measure(0)))
        choice = describe_choice(self._question(self.candidates), self._epsilon, self.task.promise)
        return compose([before, choice, *after])

    def run(self, curator: Asks, _: Progress | None = None) -> RegressionOutcome:
        """Count, choose, measure; the curator is closed afterwards, in every case."""
        with curator:
            outcome = self._run(curator)
            curator.finish()
        return outcome

    def _run(self, curator: Asks) -> RegressionOutcome:
        task, cells = self.task, self.task.cells or NO_GROUPS
        (counts,) = curator.answer([self._counts], purpose="counts of the groups")
        count_noise = self._noise(self._counts)
        if task.sees_features and not task.is_exact:
            ((total,),) = curator.answer([(CellCounts(None), 0.0)])
            counts = onto_totals(counts, np.asarray(total), cells, axis=0)
        least = max(LEAST_ROWS, 2.0 * count_noise) if count_noise > 0 else LEAST_SHARE
        counts = np.maximum(counts, least)
        rows = float(task.stated_rows or max(counts.sum() / cells.per_row, LEAST_ROWS))
        shares = counts / rows
        h, unit = task.joint(*task.functions(shares, least / rows)), 1.0 / (4.0 * rows)
        low, high = h.slopes
        score = Score(lambda sums: h.value(sums * unit), low * unit, high * unit, trusted=h.trusted)
        question = self._question(self.candidates)
        at = curator.choose(question, self._epsilon, score=score, purpose="coefficients")
        losses, noise = np.full(cells.count, np.nan), math.nan
        for measurement in self._measure(at):
            (sums,) = curator.answer([measurement], purpose="losses of the coefficients")
            losses, noise = np.asarray(sums) * unit, self._noise(measurement) * unit
        return task.outcome(
            self.candidates[at],
            losses,
            shares,
            least=least / rows,
            noise=noise,
            count_noise=count_noise / rows,
            rows=rows,
            gap=None,
            calls=1,
            reason=CHOSEN.format(len(self.candidates)),
        )

    def _question(self, coefficients: Floats) -> Question:
        models = coefficients[:, np.newaxis] if coefficients.ndim == 2 else coefficients
        return GroupLosses(Linear(models), self.task.cells, "squared", clip=CLIP)

    @property
    def _counts(self) -> Measurement:
        question = CellCounts(self.task.cells)
        if self.is_pure:
            return Measurement(question, self.scale / PURE_SHARES[0], "discrete-laplace")
        return Measurement(question, self._multiplier(SHARES[0]))

    @property
    def _epsilon(self) -> float:
        if self.task.is_exact:
            return math.inf
        share = PURE_SHARES[1] if self.is_pure else 2.0 * math.sqrt(SHARES[1])
        return share / self.scale

    def _measure(self, at: int) -> list[Measurement]:
        """The losses of a candidate, unless there is no room for them."""
        question = self._question(self.candidates[at])
        return [] if self.is_pure else [Measurement(question, self._multiplier(SHARES[2]))]

    def _multiplier(self, share: float) -> float:
        """Of a Gaussian: 1/z^2 times the share is its 1/multiplier^2, and a choice of epsilon e
        counts as e^2/4."""
        return 0.0 if self.task.is_exact else self.scale / math.sqrt(share)

    def _noise(self, measurement: Measurement) -> float:
        """A bound on the standard deviation of one number of an answer."""
        if self.task.is_exact:
            return 0.0
        moved = self.task.move(measurement.question, measurement.order)
        size = math.sqrt(2.0) if measurement.order == 1 else 1.0
        return float(measurement.multiplier) * moved * size


def plan_choice(
    task: RegressionTask, candidates: object = None, *, radius: float | None = None
) -> CoefficientChoice:
    """The choice whose noise is the least that keeps the promise. `candidates`: None: a grid of the
    ball of that radius."""
    task = replace(task, penalty=PENALTY) if task.penalty is None else task
    width = task.layout.width
    listed = grid(1 + width, radius) if candidates is None else checked(candidates, width)
    if task.is_exact:
        return CoefficientChoice(task, listed)

    def event(z: float) -> Event:
        return CoefficientChoice(task, listed, z).event()

    return CoefficientChoice(task, listed, calibrate(task.promise, event).multiplier)


def grid(dimensions: int, radius: float | None = None) -> Floats:
    """Evenly spaced points of the ball, (points, dimensions), in at most three dimensions.

    >>> len(grid(1, 1.0)), grid(2, 1.0).shape, float(np.linalg.norm(grid(3), axis=1).max()) <= 1.5
    (21, (317, 2), True)
    """
    if dimensions > GRID_DIMENSIONS:
        raise InputError.expected(
            f"at most {GRID_DIMENSIONS} coefficients, the intercept's included, for a grid",
            of="decisions",
            got=dimensions,
            remedy=(
                "Pass decisions=, a public list of coefficients, or method='linear-oracle'. "
                "A Markov chain is no way out: how far it is from the right one would enter delta, "
                "and nothing here could prove a bound of that."
            ),
        )
    reach = GRID_RADIUS if radius is None else _checks.positive(radius=radius)
    line = np.linspace(-reach, reach, GRID_POINTS)
    points = np.array(list(itertools.product(line, repeat=dimensions)))
    return np.asarray(points[np.linalg.norm(points, axis=1) <= reach * (1.0 + 1e-12)])


def checked(candidates: object, width: int) -> Floats:
    """A public list of coefficients as an array (m, 1 + width)."""
    try:
        listed = np.array(candidates, np.float64)
    except (TypeError, ValueError):
        listed = np.empty(0)
    fits = listed.ndim == 2 and len(listed) > 0 and listed.shape[1] == 1 + width
    if not fits or not np.isfinite(listed).all():
        raise InputError.expected(
            f"finite numbers (candidates, {1 + width})",
            of="decisions",
            got=f"shape {listed.shape}",
            remedy=(
                "One line a candidate: the intercept, then one for each of coef_names_; public "
                "numbers, not fitted to rows."
            ),
        )
    return listed
