"""Minimise f(group losses) subject to g(group losses) <= 0 (Alabi): what is public of a problem, what
it is with cells counted, mixtures of decisions, and a private choice of one out of a list.

    h(l) = f(l) + G max(0, g(l)),      l the losses of decisions by cell, label and class

A problem is posed at *released* counts, once: rates are divided by released shares, which h carries,
so everything that follows depends on the rows through released counts and losses alone. Rates of so
few rows that noise cannot tell them from none take no part: an empty group would rule the others.

`Differs:`
- Algorithm 1's exponent has 2 D, D an L2 Lipschitz constant times sqrt(K)/n, and takes rates as
  averages, which they are not; here it is the range over decisions of what one neighbour changes
  (`curator.ranges`), from the slopes of h, and the choice is exact, epsilon-DP by itself;
- a convex set is sampled on a grid that is fixed without the data. A sampler that is only near its
  distribution needs a proved bound on the distance, which enters delta; diagnostics of a Markov
  chain prove none.

Guarantees (tests/methods/test_methods_objectives.py, test_methods_exponential.py):
1. What a problem is once posed depends on the rows through released counts alone.
2. Without noise what is heard is what there is: duals are the auditor's, bounds those that were asked
   for. What is aimed at is never above the bound, and never below 1 - `ROOM` of it.
3. No mixture of *any* decisions has an h below the base of `Master` plus the least price of a
   decision.
4. A choice's log is its plan. No neighbour changes its probability by more than a factor e^epsilon,
   and the bounds on f and g hold but for the chance that they state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtri

from .. import _checks
from .._types import Floats, Mask
from ..core.choices import range_of_decisions
from ..core.cost import gaussian_mu
from ..core.events import Event, Exponential, compose
from ..core.promise import Promise
from ..curator import Curator, Score
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..fairness import BoundedGroupLoss
from ..fairness.functions import (
    GroupFunction,
    Inequality,
    Joint,
    Largest,
    LossFunction,
    MeanOfRates,
    Stated,
    Total,
    Worst,
    corollary_4_2,
    gini,
    range_of,
)
from ..fairness.objectives import Constraint, Frame, Objective
from ..fairness.systems import ADDED
from ..privacy import calibrate
from ..show.bounds import NO_BOUND, Bound, bounds, points
from ..show.parts import Part, Shown
from .comparison import Constant, Rival
from .descent import Reason
from .mixture import lowest
from .oracles import Asks, Class, GameInstance, LinearRule, Rule, Search
from .outcome import not_met
from .systems import NO_GROUPS

STEP = 1e-4  # of a share, for the slope of a value in it
TINY = 1e-9
INSIDE, ROOM = 1.0, 0.25
# what one unit of g' is worth in units of f: a mixture that is inside is kept at any price of f
PULL = 2.0
PASSES = 25  # tangents a round at most
ENOUGH = 1e-6  # of the scale of h: how far tangents may be below it
LAST_PASSES, NEAR = 200, 1e-4
"""Once the oracle answered with a decision that the program has: its tangents then, and what they
must come to of h's scale."""
CHOICE_SHARE, COUNTS_SHARE = 0.8, 0.1  # of epsilon; the rest measures the chosen decision
PENALTIES = np.geomspace(0.2, 1000.0, 60)
USUAL = 0.02
CHANCE = 0.9  # of 1 - confidence, for the choice; the rest is for the counts


# ----------------------------------------------------------------------------- what is public


@dataclass(frozen=True, eq=False)
class Problem:
    """Public facts alone: what decisions are about, what is to be small, and what must stay small.

    `loss`: "zero_one", how decisions fall, or "log", the log loss of a model's probabilities, a
    number by group.
    """

    ground: GameInstance
    objective: Objective
    constraint: Constraint
    loss: str = "zero_one"

    @staticmethod
    def of(
        promise: Promise,
        layout: RowLayout,
        cells: Cells | None,
        objective: Objective,
        constraint: Constraint,
        *,
        public_rows: int | None = None,
        max_sample_weight: float | None = None,
        loss: str = "zero_one",
    ) -> Problem:
        """The problem, which counts groups where it tells them apart; an error where groups that it
        needs are not there, or a bound is one on another loss."""
        apart = objective.needs_groups or constraint.needs_groups
        if apart and cells is None:
            what = objective if objective.needs_groups else constraint
            remedy = "Pass fit(X, y, sensitive_features=...): columns, or names of columns of X."
            wanted = f"groups, which {what} compares"
            raise InputError.expected(wanted, of="sensitive_features", got=None, remedy=remedy)
        for notion in constraint.notions:
            told, remedy = loss, ""
            if isinstance(notion, BoundedGroupLoss):
                told = notion.loss
                remedy = f"Pass loss={told!r}, or BoundedGroupLoss(..., loss={loss!r})."
            elif loss != "zero_one":
                told, remedy = str(notion), "Rates are of decisions: leave loss='zero_one'."
            if told != loss:
                wanted = f"bounds on the {loss} loss"
                raise InputError.expected(wanted, of="constraint", got=told, remedy=remedy)
        ground = GameInstance(
            promise,
            layout,
            cells if apart else None,
            by_label=loss == "zero_one",
            priced=True,
            public_rows=public_rows,
            max_sample_weight=max_sample_weight,
        )
        problem = Problem(ground, objective, constraint, loss)
        problem._usual  # noqa: B018  # what cannot be said is refused here
        return problem

    @property
    def cells(self) -> Cells:
        """The groups, or everyone."""
        return self.ground.cells or NO_GROUPS

    @property
    def stated_rows(self) -> int | None:
        """The public number of rows; none where weights are counted."""
        return self.ground.stated_rows

    def functions(self, shares: Floats, least: float) -> tuple[GroupFunction, list[GroupFunction]]:
        """f, and the constraints' functions, where cells and labels have these shares."""
        classes, sizes = self.ground.layout.classes or (), shares
        if not self.ground.by_label:
            classes, sizes = (), shares[:, 0]
        frame = Frame(self.cells, classes, sizes, least)
        return self.objective.at(frame), self.constraint.at(frame)

    @cached_property
    def _usual(self) -> tuple[GroupFunction, list[GroupFunction]]:
        labels = self.ground.classes if self.ground.by_label else 1
        even = np.full((self.ground.groups, labels), 1.0 / self.ground.groups / labels)
        return self.functions(even, TINY)

    @property
    def is_linear(self) -> bool:
        """Whether nothing but a sum of losses is asked to be small: prices never change then, and
        one decision is best."""
        f, constraints = self._usual
        return not constraints and isinstance(f.outer, Total)

    @property
    def is_free(self) -> bool:
        """Whether nothing is constrained."""
        return not self._usual[1]

    def require_convex(self, *, monotone: bool = False) -> None:
        """An error where a search that trusts slopes may end anywhere: f or g is not convex; or, of
        losses that are convex in a model's weights, falls where one grows."""
        f, constraints = self._usual
        for what, function in [(self.objective, f), *((self.constraint, g) for g in constraints)]:
            if not function.convex:
                remedy = (
                    "Pass method='exponential', which needs no convexity, or a convex form: "
                    "Gap(notion, sharpness)."
                )
                expected, got = "a convex function", "one that is not"
                raise InputError.expected(expected, of=str(what), got=got, remedy=remedy)
            if monotone and not function.monotone:
                remedy = "Bound errors instead: loss='zero_one'."
                expected = "a function that grows with every loss"
                got = "one that falls where a group's loss grows"
                raise InputError.expected(expected, of=str(what), got=got, remedy=remedy)

    def pose(self, counts: Floats, multiplier: float, penalty: float) -> ReleasedProblem:
        """The problem at counts (cells, labels) that were released with that multiplier."""
        ground = self.ground
        floor = TINY if ground.is_exact else ground.floor(multiplier)
        rows = float(self.stated_rows or max(floor, counts.sum() / self.cells.per_row))
        shares, least = counts / rows, floor / rows
        f, asked = self.functions(shares, least)
        lower, others = self.functions(shares, least / 2.0)
        pairs = zip([f, *asked], [lower, *others], strict=True)
        told = tuple(_above_floor(one, two) for one, two in pairs)
        f = _with_lines(f, told[0])
        kept = zip(asked, told[1:], strict=True)
        constraints = tuple(_with_lines(one, lines) for one, lines in kept if lines.any())
        h = Joint(f, Worst(constraints) if constraints else None, penalty)
        return ReleasedProblem(self, counts, rows, least, told, tuple(asked), f, constraints, h)


def _above_floor(function: GroupFunction, lower: GroupFunction) -> Mask:
    """The lines that a lower floor leaves as they are: they divide by no share below it. All, of
    functions that need all."""
    if isinstance(function.outer, Total | Stated) and not isinstance(function.outer, MeanOfRates):
        return np.ones(function.lines.shape[0], np.bool_)
    return np.asarray(np.diff((function.lines - lower.lines).tocsr().indptr) == 0)


def _with_lines(function: GroupFunction, lines: Mask) -> GroupFunction:
    """The function of these rates alone; of nothing but zeros, if there are none."""
    if lines.all():
        return function
    if function.outer.keeps_lines:
        return replace(function, lines=function.lines.multiply(lines[:, np.newaxis]).tocsr())
    kept = lines if lines.any() else np.arange(len(lines)) == 0
    offsets = function.offsets
    return replace(
        function,
        lines=function.lines[kept] * float(lines.any()),
        offsets=offsets if np.ndim(offsets) == 0 else np.asarray(offsets)[kept],
        names=tuple(itertools.compress(function.names, kept)),
    )


def _is_largest(function: GroupFunction) -> bool:
    """Whether each of its lines is a comparison of its own."""
    return isinstance(function.outer, Largest)


def _measured(constraints: Sequence[GroupFunction], losses: Floats) -> Floats:
    """The values of what is constrained: of each comparison of a largest, of any other function."""
    values: list[Any] = [np.zeros(0)]
    for function in constraints:
        if _is_largest(function):
            values.append(function.rates(losses))
        elif isinstance(function.outer, Inequality):
            values.append([float(gini(np.maximum(function.rates(losses), 0.0)))])
        else:
            values.append([float(function.value(losses)) + function.bound])
    return np.concatenate(values)


# --------------------------------------------------------------------- what it is with cells counted


@dataclass(frozen=True, eq=False)
class ReleasedProblem:
    """A problem with its cells counted: released values. h = f + G max(0, g).

    `told`: the lines that take part, of f and of each constraint in `asked`; values of others are
    NaN.
    """

    problem: Problem
    counts: Floats
    rows: float
    least: float
    told: tuple[Mask, ...]
    asked: tuple[GroupFunction, ...]
    f: LossFunction
    constraints: tuple[GroupFunction, ...]
    h: Joint

    @cached_property
    def shares(self) -> Floats:
        """Of cells and labels, (cells, labels): none below 0."""
        return np.maximum(self.counts, 0.0) / self.rows

    @property
    def chance(self) -> Floats:
        """The losses of decisions by chance, each class as likely."""
        classes = self.problem.ground.classes
        return np.repeat(self.shares[..., np.newaxis] / classes, classes, axis=-1)

    def constant(self, k: int) -> Floats:
        """The losses of deciding for class k, whatever the row."""
        alike = np.zeros((*self.shares.shape, self.problem.ground.classes))
        alike[..., k] = self.shares
        return alike

    def possible(self, losses: Floats) -> Floats:
        """Noisy frequencies as frequencies could be: none below 0, and of a cell and label together
        its share."""
        positive = np.maximum(losses, 0.0)
        total = positive.sum(axis=-1, keepdims=True)
        even = np.full_like(positive, 1.0 / positive.shape[-1])
        parts = np.where(total > 0, positive / np.where(total > 0, total, 1.0), even)
        return np.asarray(self.shares[..., np.newaxis] * parts)

    # -- values: a line a comparison ---------------------------------------------------------------

    def _shown(self, asked: Sequence[GroupFunction]) -> list[GroupFunction]:
        """What values are reported of: all comparisons of a largest, and other functions of the
        rates that take part."""
        pairs = zip(asked, self.told[1:], strict=True)
        return [one if _is_largest(one) else _with_lines(one, lines) for one, lines in pairs]

    def values(self, losses: Floats) -> tuple[tuple[str, ...], Floats, Floats]:
        """(names, bounds, values) of what is constrained, a line a comparison."""
        names: list[str] = []
        bounds: list[Floats] = [np.zeros(0)]
        shown = self._shown(self.asked)
        for title, one in zip(self.problem.constraint.titles, shown, strict=True):
            if _is_largest(one):
                own = np.ndim(one.offsets) > 0
                names += [name if own else f"{name} <= {one.bound:g}" for name in one.names]
                bounds.append(np.broadcast_to(one.offsets, len(one.names)) + one.bound)
            else:
                names.append(title)
                unequal = isinstance(one.outer, Inequality)
                bounds.append(np.array([one.outer.theta if unequal else one.bound]))  # type: ignore[attr-defined]
        values = np.where(self.defined, _measured(shown, losses), np.nan)
        return tuple(names), np.concatenate(bounds), values

    def cells_of_values(self) -> tuple[tuple[int, ...], ...]:
        """The groups that each value is about, by number."""
        found: list[tuple[int, ...]] = []
        groups = self.problem.ground.groups
        for one in self.asked:
            lines = np.asarray(abs(one.lines).toarray()).reshape(one.lines.shape[0], groups, -1)
            sizes = lines.sum(axis=2)
            each = sizes if _is_largest(one) else sizes.sum(axis=0)[np.newaxis]
            found += [tuple(np.flatnonzero(line).tolist()) for line in each]
        return tuple(found)

    @cached_property
    def defined(self) -> Mask:
        """Which of the values are."""
        pairs = zip(self.asked, self.told[1:], strict=True)
        parts = [lines if _is_largest(one) else np.array([lines.any()]) for one, lines in pairs]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)

    def placed(self, of_excesses: Floats) -> Floats:
        """One number for each value, of one for each excess: 0 for what takes no part."""
        out = np.zeros(len(self.defined))
        out[self.defined] = of_excesses
        return out

    def excesses(self, losses: Floats) -> Floats:
        """How far each comparison is above its bound, or each constraint where it is none: their
        largest is g."""
        parts = [
            np.asarray(one.rates(losses) - one.offsets - one.bound)
            if _is_largest(one)
            else np.array([float(one.value(losses))])
            for one in self.constraints
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _parts(self, of_excesses: Floats) -> Iterator[tuple[GroupFunction, Floats]]:
        """Each constraint with its own of these numbers."""
        at = 0
        for function in self.constraints:
            count = function.lines.shape[0] if _is_largest(function) else 1
            yield function, of_excesses[at : at + count]
            at += count

    def pull(self, duals: Floats, losses: Floats) -> Floats:
        """The slope of sum_j duals_j excess_j in losses."""
        out = np.zeros_like(losses)
        for function, own in self._parts(duals):
            if _is_largest(function):
                out += np.asarray(function.lines.T @ own).reshape(out.shape)
            else:
                out += own[0] * function.gradient(losses)
        return out

    def tightened(self, by: Floats) -> Worst:
        """g with each bound smaller by so much."""
        return Worst(
            tuple(
                replace(one, offsets=one.offsets - own)
                if _is_largest(one)
                else one.less(-float(own[0]))
                for one, own in self._parts(by)
            )
        )

    def aimed(self, losses: Floats, noise: Floats) -> Joint:
        """h + `PULL` max(0, g'), g' with bounds that are tighter by `INSIDE` deviations of the noise
        in each excess, and at most `ROOM` of the bound: the best mixture of released values lies
        at a bound, or as often above it as below."""
        bounds = np.abs(self.values(losses)[1][self.defined])
        by = np.minimum(INSIDE * noise, ROOM * bounds)
        return Joint(self.h, self.tightened(by), PULL) if by.any() else self.h

    # -- noise -------------------------------------------------------------------------------------

    @property
    def _pairs(self) -> bool:
        """Two classes: the first's frequency is what the second's leaves of the cell's share."""
        return self.problem.ground.by_label and self.problem.ground.outputs == 1

    def _numbers(self, shares: Floats) -> Callable[[Floats], Floats]:
        """f and the constraints' values of losses, where cells and labels have these shares."""
        f, asked = self.problem.functions(shares, self.least)
        told, shown = _with_lines(f, self.told[0]), self._shown(asked)
        return lambda losses: np.concatenate(
            [[float(told.value(losses))], _measured(shown, losses)]
        )

    def _step(self, place: tuple[int, ...]) -> float:
        return STEP * max(float(self.shares[place]), self.least)

    def spread(
        self, losses: Floats, noise: float, count_noise: float, constant: Floats | None = None
    ) -> tuple[float, Floats]:
        """The standard deviations, by noise of this size in each released number, of f and of the
        constraints' values.

        `constant`: how much of the mixture decides for each class whatever the row: those losses
        are counts. Where features are public, releases were put onto totals over groups, and so are
        the slopes here. Counts are the number of rows, too, where that is not public.
        """
        function, ground = self._numbers(self.shares), self.problem.ground
        at, pairs = function(losses), self._pairs
        known = np.zeros(losses.shape[-1]) if constant is None else constant
        counted = np.array([1.0 - known[1], known[1]]) if pairs else known
        slopes = np.zeros((*losses.shape, len(at)))
        of_counts = np.zeros((*self.shares.shape, len(at)))
        for place in np.ndindex(losses.shape):
            if pairs and place[-1] == 0:
                continue
            step = self._step(place[:2] if losses.ndim == 3 else (*place, 0))
            bumped = losses.copy()
            bumped[place] += step
            if pairs:
                bumped[(*place[:-1], 0)] -= step
            slopes[place] = (function(bumped) - at) / step
        for place in np.ndindex(self.shares.shape):
            step = self._step(place)
            shares, bumped = self.shares.copy(), losses.copy()
            shares[place] += step
            if losses.ndim == 3:
                bumped[place] += step * counted
            more = 1.0 if self.problem.stated_rows else 1.0 + step / self.problem.cells.per_row
            of_counts[place] = (self._numbers(shares / more)(bumped / more) - at) / step
        if ground.sees_features and not ground.is_exact:
            slopes, of_counts = (
                ground.onto_totals(one, np.zeros(one.shape[1:])) for one in (slopes, of_counts)
            )
        parts = (slopes * noise, of_counts * count_noise)
        moves = np.concatenate([part.reshape(-1, len(at)) for part in parts])
        deviations = np.linalg.norm(moves, axis=0)
        return float(deviations[0]), deviations[1:]

    def noise_of_excesses(self, losses: Floats, noise: float) -> Floats:
        """The deviation of each excess, where each released number has noise of that size."""
        if noise == 0.0:
            return np.zeros(len(self.excesses(losses)))
        return np.asarray(self.spread(losses, noise / self.rows, 0.0)[1][self.defined])

    def sampling(self, losses: Floats) -> Floats:
        """The standard deviation of each constraint's value over draws of the rows, from released
        losses of decisions: one more row in a place moves its frequency and its share. NaN for
        losses that are numbers, whose spread is not released.

        Rates of few rows are moved towards each other, as in `fairness.deviations`."""
        if losses.ndim != 3:
            return np.full(len(self.defined), np.nan)
        shares, added = self.shares[..., np.newaxis], ADDED / self.rows
        frequencies = np.clip(losses, 0.0, shares) + added
        drawn = shares * frequencies / (shares + losses.shape[-1] * added)
        at, moves = self._numbers(self.shares)(drawn), []
        for place in np.ndindex(losses.shape):
            step = self._step(place[:2])
            bumped, more = drawn.copy(), self.shares.copy()
            bumped[place] += step
            more[place[:2]] += step
            moves.append((self._numbers(more)(bumped) - at)[1:] / step)
        influence, weights = np.array(moves), drawn.ravel()[:, np.newaxis]
        per_row, heaviest = self.problem.cells.per_row, self.problem.ground.heaviest or 1.0
        centre = (weights * influence).sum(axis=0) ** 2 if per_row == 1 else 0.0
        squares = (weights * influence**2).sum(axis=0) * per_row
        return np.asarray(np.sqrt(np.maximum(squares - centre, 0.0) * heaviest / self.rows))

    # -- beside what costs nothing -----------------------------------------------------------------

    def _most(self, losses: Floats) -> float:
        """How far the furthest excess may be above its bound, to be kept as well as by these."""
        return max(0.0, float(self.excesses(losses).max(initial=-np.inf))) + TINY

    def best_constant(self, losses: Floats, noise: float, count_noise: float) -> Constant | None:
        """Of deciding for one class, whatever the row, the one that makes f least, among those that
        keep what is constrained as well as these losses do, if there are any. Its losses are in the
        counts."""
        if not self.problem.ground.by_label or losses.ndim != 3:
            return None
        value, most, found = float(self.f.value(losses)), self._most(losses), []
        for k in range(losses.shape[-1]):
            alike, known = self.constant(k), np.eye(losses.shape[-1])[k]
            admitted = float(self.excesses(alike).max(initial=-np.inf)) <= most
            doubt = float(np.hypot(noise, self.spread(alike, 0.0, count_noise, known)[0]))
            told = float(self.f.value(alike))
            found.append(Constant(told, value - told, doubt, admitted, k))
        return min(found, key=lambda one: (not one.admitted, one.error))

    def beside(self, losses: Floats, other: Floats, noise: float, noise_of_other: float) -> Rival:
        """Another rule by the objective, from releases of its own: numbers of that noise, and these
        losses'."""
        value, told = float(self.f.value(losses)), float(self.f.value(other))
        parts = self.spread(losses, noise, 0.0)[0], self.spread(other, noise_of_other, 0.0)[0]
        admitted = float(self.excesses(other).max(initial=-np.inf)) <= self._most(losses)
        return Rival(told, value - told, math.hypot(*parts), admitted)


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: released values only.

    `rules` with their `weights`; `objective`: f of the mixture, with the deviation of its noise in
    `objective_noise`; `values` of what is constrained, with `spread` of noise and `sampling` error;
    `duals`: how hard each was pressed. `losses`: the mixture's, as released. `excess`: no mixture's
    h is lower by more, if the oracle is as good as without noise; None where nothing is known.
    `constant`: the best decision that is the same for everybody, by the objective; None where
    decisions are not counted by label, and of what was read from disk. `free`: the rule without
    constraints, beside it; None where there is none, too. `kept`: of the final model, the share
    of the mixture that was found; 1 of what was read.
    """

    rules: tuple[Rule, ...]
    weights: Floats
    reason: Reason
    rounds: int
    names: tuple[str, ...]
    bounds: Floats
    values: Floats
    spread: Floats
    duals: Floats
    counts: Floats
    rows: float
    losses: Floats
    objective: float
    objective_noise: float
    penalty: float
    excess: float | None = None
    constant: Constant | None = None
    sampling: Floats | None = None
    free: Rival | None = None
    kept: float = 1.0

    @property
    def broken(self) -> tuple[int, ...]:
        """The constraints that are not met."""
        return not_met(self.values, self.bounds, self.spread)

    @property
    def learnt(self) -> bool:
        """Whether there is anything in the rules."""
        return any(rule.learnt for rule in self.rules)

    @staticmethod
    def of(
        posed: ReleasedProblem,
        rules: Sequence[Rule],
        weights: Floats,
        measured: Floats,
        *,
        noise: float,
        count_noise: float,
        duals: Floats,
        reason: Reason,
        rounds: int,
        excess: float | None = None,
        constant: Floats | None = None,
        free: tuple[Floats, float] | None = None,
        kept: float = 1.0,
    ) -> Found:
        """From losses (rules, *shape) that were released with that noise, each number's, and
        independent of the weights.

        `constant`: see `ReleasedProblem.spread`. `free`: losses of a rule without constraints, and
        their noise."""
        losses = np.tensordot(weights, measured, axes=1)
        names, bounds, values = posed.values(losses)
        own, of_counts = noise / posed.rows, count_noise / posed.rows
        of_objective, spread = posed.spread(losses, own, of_counts, constant)
        return Found(
            rules=tuple(rule.published() for rule in rules),
            weights=weights,
            reason=reason,
            rounds=rounds,
            names=names,
            bounds=bounds,
            values=values,
            spread=spread,
            duals=posed.placed(duals),
            counts=posed.counts,
            rows=posed.rows,
            losses=losses,
            objective=float(posed.f.value(losses)),
            objective_noise=of_objective,
            penalty=posed.h.penalty,
            excess=excess,
            constant=posed.best_constant(losses, of_objective, of_counts),
            sampling=posed.sampling(losses),
            free=None if free is None else posed.beside(losses, free[0], own, free[1] / posed.rows),
            kept=kept,
        )


# ------------------------------------------------------------------------------ mixtures of decisions


@dataclass(eq=False)
class Master:
    """The master program: the best mixture of decisions whose losses were released, and the prices
    that a better one must beat. Post-processing of released values.

        min over weights q of a mixture:   h(sum_t q_t l_t)

    h is convex, so it is the largest of its tangents h(x) + h'(x)(. - x). The program is solved over
    the tangents found so far, a linear program, and a tangent is added at its solution until they
    agree. Its dual variables mix the tangents to one price of losses, w: no mixture of *any*
    decisions has an h below

        sum_j mu_j (h(x_j) - w_j x_j)  +  min over decisions c of w l(c),

    so the oracle that is asked for the least w l(c) either finds a better decision or shows that
    there is none, within its tolerance: column generation. With a single tangent, at the mean, this
    is Frank-Wolfe. `Differs:` the paper takes w at the last decision alone, where an indicator
    1[g >= 0] flips from round to round; prices do not.
    """

    h: LossFunction
    slopes: list[Floats] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)  # h(x_j) - w_j x_j

    def touch(self, point: Floats) -> float:
        """Add the tangent at a point; h there."""
        value, slope = float(self.h.value(point)), self.h.gradient(point)
        self.slopes.append(slope.ravel())
        self.levels.append(value - float((slope * point).sum()))
        return value

    def solve(
        self, atoms: Floats, most: Floats | None = None, passes: int = PASSES
    ) -> tuple[Floats, Floats, float]:
        """(weights, price, base) for losses (atoms, *shape): the best mixture; no mixture is below
        base + the least price x losses. `most`: what each may weigh. `passes`: tangents that are
        added at most."""
        flat = atoms.reshape(len(atoms), -1)
        if not self.slopes:
            self.touch(atoms.mean(axis=0))
        weights, price, base = np.full(len(flat), 1.0 / len(flat)), np.zeros(flat.shape[1]), 0.0
        best, kept = np.inf, weights
        for _ in range(passes):
            weights, mu, low = lowest(np.array(self.slopes), np.array(self.levels), flat, most)
            price, base = mu @ np.array(self.slopes), float(mu @ np.array(self.levels))
            value = self.touch((weights @ flat).reshape(self.h.shape))
            if value < best:
                best, kept = value, weights
            if best - low <= ENOUGH * max(1.0, abs(best)):
                break
        return kept, price.reshape(self.h.shape), base


# ------------------------------------------------------- one decision of a list (Algorithm 1)


@dataclass(frozen=True, slots=True)
class Certain(Shown):
    """What holds but for probability 1 - `confidence`: the chosen f is above the best feasible one
    by at most `f`, and its g above 0 by at most `g`, or above the least that there is, where no
    decision is feasible. f and g are of exact counts over released shares: a rate over exact shares
    differs by their noise, and rates that noise hides take no part."""

    f: float
    g: float
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is None."""
        numbers = {"objective": self.f, "bound": self.g, "confidence": self.confidence}
        return {name: value if math.isfinite(value) else None for name, value in numbers.items()}

    def parts(self) -> Iterator[Part]:
        """The bounds, and what they are conditional on."""
        what = f"the objective of the chosen decision is not bounded: {NO_BOUND}"
        if math.isfinite(self.f):
            what = (
                f"the objective of the chosen decision is above that of the best one in the list by "
                f"at most {points(self.f)}"
            )
        yield from bounds(
            self.confidence,
            what,
            (
                Bound("objective above that of the best decision that keeps the bounds", self.f),
                Bound("furthest above a bound", self.g),
            ),
            "The best decision is that of the same list of decisions, which was fixed without the "
            "data. Where none of them keeps the bounds, what was chosen is compared with the one that "
            "comes nearest to them.",
            "Rates are taken over the released numbers of rows, without those of so few rows that "
            "noise hides them: a rate over exact numbers differs by their noise.",
        )


@dataclass(frozen=True, eq=False)
class Sampling(Search[tuple[Found, Certain]]):
    """Exponential sampling from a finite list of decisions (Algorithm 1 in the form of
    theory.md#objectives), planned and priced. Made by `plan_sampling`.

        P(c) ~ exp(-epsilon u(c) / R),     u(c) = h(S(c) / n0) = f + G max(0, g),

    S(c) exact counts of decisions by cell, label and class, n0 the public (or released) number of
    rows, R the range over decisions of what one neighbour changes. Counts come first, the choice
    then, and last how the chosen decision falls, for the report. At delta = 0 counts have discrete
    Laplace noise, and all of it is pure.

    **What is certain.** But for probability p, u(chosen) <= least u + e, e = R (ln m - ln p) /
    epsilon for m decisions, rounding of scores included. Hence (Lemma 4.1) f(chosen) <= f(best
    feasible) + e, and g(chosen) <= (e + span f) / G, span f the range of f. A tenth of 1 -
    confidence is for the released shares, of which span f is made, and nine tenths are p. G:
    Corollary 4.2's for the `alpha` asked for, where e is no more than alpha, so that the corollary
    says something; else the one for which the larger of the two bounds is least, were span f `USUAL`
    times what it is: what a constraint costs is mostly far below the whole range of f, and noise
    grows with G.
    """

    problem: Problem
    of: Class
    epsilon: float
    counts_multiplier: float
    audit_multiplier: float
    noise: str = "gaussian"
    penalty: float | None = None
    alpha: float | None = None
    confidence: float = 0.9

    @cached_property
    def event(self) -> Event:
        """Counts, the choice, and the measurement: a trace has no scores to choose by."""
        ground, trace = self.ground, self.ground.trace()
        counts = ground.count(trace, self.counts_multiplier, self.noise)
        ground.audit(trace, LinearRule(ground.zeros), [self.audit_multiplier], counts, self.noise)
        counting, audit = (one.event for one in trace.asked)
        return compose([counting, *([] if ground.is_exact else [Exponential(self.epsilon)]), audit])

    def play(self, curator: Asks) -> Generator[None, None, tuple[Found, Certain]]:
        ground, noise = self.ground, self.noise
        assert isinstance(curator, Curator)
        yield
        counts = ground.count(curator, self.counts_multiplier, noise)
        posed = self.problem.pose(counts, self.counts_multiplier, 1.0)
        h = replace(posed.h, penalty=self._penalty(posed))
        posed, rows = replace(posed, h=h), posed.rows
        questions, rules = self.of.gather(curator, ground)
        low, high = h.slopes
        score = Score(lambda sums: h.value(sums / rows), low / rows, high / rows, trusted=h.trusted)
        moves, step = curator.describe_range(questions, score)
        # Two scores on a grid are rounded by half a step each, and arithmetic loses less than an
        # eighth.
        e = self._excess(moves) + (0.0 if ground.is_exact else 1.125 * step)
        g = 0.0 if h.g is None else (e + self._wide(posed)) / h.penalty
        purpose = "the choice of a decision"
        at = curator.choose(questions, self.epsilon, score=score, purpose=purpose)
        (told,) = ground.audit(curator, rules[at], [self.audit_multiplier], counts, noise)
        yield
        excesses = posed.excesses(told / rows)
        pressed = (excesses == excesses.max(initial=-math.inf)) & (excesses >= 0.0)
        own = rules[at].decisions(ground.cells, ground.by_label)
        found = Found.of(
            posed,
            (rules[at],),
            np.ones(1),
            told[np.newaxis] / rows,
            noise=ground.deviation(own, self.audit_multiplier, noise),
            count_noise=self.deviations[1],
            duals=np.where(pressed, h.penalty, 0.0),
            reason=Reason.CHOSEN,
            rounds=1,
        )
        return found, Certain(e, g, self.confidence)

    def _range(self, posed: ReleasedProblem, penalty: float) -> float:
        """R of the means: what one neighbour changes, over all decisions."""
        ground = self.ground
        low, high = replace(posed.h, penalty=penalty).slopes
        reads = self.of.reads_groups
        worst = range_of_decisions(
            low, high, ground.cells, ground.promise, ground.layout, reads_groups=reads
        )
        return float(worst) * (ground.heaviest or 1.0) / posed.rows

    def _excess(self, moves: float) -> float:
        """e of scores that one neighbour moves so far apart."""
        if self.ground.is_exact:
            return 0.0
        tail = CHANCE * (1.0 - self.confidence)
        return moves * (math.log(self.of.size) - math.log(tail)) / self.epsilon

    def _penalty(self, posed: ReleasedProblem) -> float:
        """G."""
        if self.penalty is not None or posed.h.g is None:
            return self.penalty or 1.0
        if self.alpha is not None:
            promising = corollary_4_2(posed.f, self.alpha, wide=self._wide(posed))
            if self._excess(self._range(posed, promising)) <= self.alpha:
                return promising
        if self.ground.is_exact:
            return float(PENALTIES[-1])
        cost = USUAL * self._wide(posed)
        sizes = [self._excess(self._range(posed, G)) for G in PENALTIES.tolist()]
        worse = [max(e, (e + cost) / G) for e, G in zip(sizes, PENALTIES.tolist(), strict=True)]
        return float(PENALTIES[int(np.argmin(worse))])

    def _wide(self, posed: ReleasedProblem) -> float:
        """A bound on the range of f, but for (1 - `CHANCE`) (1 - confidence): shares are released
        ones, and may be larger."""
        per_row = self.problem.cells.per_row
        tail = (1.0 - CHANCE) * (1.0 - self.confidence) / posed.shares.size
        above = self.deviations[1] / posed.rows
        if self.noise == "gaussian":
            above *= float(ndtri(1.0 - tail))
        else:
            above *= -math.log(tail) / math.sqrt(2.0)
        shares = posed.shares + max(0.0, above)
        exact = self.ground.promise.rows_are_public and self.ground.max_sample_weight is None
        more = 1.0 if exact else max(1.0, float(shares.sum()) / per_row)
        return range_of(posed.f, shares, per_row) * more

    @property
    def deviations(self) -> tuple[float, float]:
        """Of each number that is reported of the decision, and of each count."""
        g = self.ground
        pairs = (g.decisions, self.audit_multiplier), (g.counts, self.counts_multiplier)
        audit, counting = (g.deviation(*one, self.noise) for one in pairs)
        return audit, counting


def plan_sampling(
    problem: Problem,
    of: Class,
    *,
    penalty: float | None = None,
    alpha: float | None = None,
    confidence: float = 0.9,
) -> Sampling:
    """The sampling whose noise is the least that keeps the promise."""
    ground = problem.ground
    of.require(ground)
    pressed = None if penalty is None else _checks.positive(penalty=penalty)
    aim = None if alpha is None else _checks.positive(alpha=alpha)
    epsilon, delta = ground.promise.epsilon, ground.promise.delta
    shares = COUNTS_SHARE, 1.0 - CHOICE_SHARE - COUNTS_SHARE
    noise = "gaussian" if delta > 0 or ground.is_exact else "discrete-laplace"
    told = (noise, pressed, aim, confidence)
    if ground.is_exact:
        return Sampling(ground, 1, problem, of, math.inf, 0.0, 0.0, *told)

    def at(z: float) -> Sampling:
        if noise == "gaussian":
            counts, audit = (1.0 / gaussian_mu(share * epsilon, delta) for share in shares)
        else:
            counts, audit = (1.0 / (share * epsilon) for share in shares)
        epsilons = CHOICE_SHARE * epsilon / z
        return Sampling(ground, 1, problem, of, epsilons, z * counts, z * audit, *told)

    return at(calibrate(ground.promise, lambda z: at(z).event, start=1.0).multiplier)
