"""Minimise f(group losses) subject to g(group losses) <= 0: what is public of a problem, and what
it is with cells counted.

Guarantees (tests/learning/test_learning_group_loop.py):
1. What a problem is once posed depends on the rows through released counts alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._types import Floats, Mask
from ...core.promise import Promise
from ...errors import InputError
from ...facts import Cells, RowLayout
from ...fairness.functions import GroupFunction, Joint, Largest, LossFunction, Total, Worst
from ...fairness.objectives import Constraint, Frame, Objective
from ...fairness.systems import ADDED
from ..comparison import Constant, Rival
from ..oracles import GameInstance
from ..systems import NO_GROUPS
from .comparisons import above_floor, each_value, measured_values, shown_of, values_of, with_lines
from .refusals import refuse_bent, require_loss

STEP = 1e-4  # of a share, for the slope of a value in it


TINY = 1e-9


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
        needs are not there."""
        apart = objective.needs_groups or constraint.needs_groups
        if apart and cells is None:
            what = objective if objective.needs_groups else constraint
            remedy = "Pass fit(X, y, sensitive_features=...): columns, or names of columns of X."
            raise InputError.expected(
                f"groups, which {what} compares", of="sensitive_features", got=None, remedy=remedy
            )
        kept = cells if apart else None
        require_loss(constraint, loss)
        ground = GameInstance(
            promise,
            layout,
            None,
            kept,
            loss == "zero_one",
            public_rows,
            max_sample_weight,
            priced=True,
        )
        problem = Problem(ground, objective, constraint, loss)
        problem.functions(problem._even_shares, TINY)
        return problem

    @property
    def _even_shares(self) -> Floats:
        labels = self.ground.classes if self.ground.by_label else 1
        return np.full((self.ground.groups, labels), 1.0 / self.ground.groups / labels)

    @property
    def cells(self) -> Cells:
        """The groups, or everyone."""
        return self.ground.cells or NO_GROUPS

    @property
    def stated_rows(self) -> int | None:
        """The public number of rows; none where weights are counted."""
        return self.ground.public_rows if self.ground.max_sample_weight is None else None

    def functions(self, shares: Floats, least: float) -> tuple[GroupFunction, list[GroupFunction]]:
        """f, and the constraints' functions, where cells and labels have these shares."""
        by_label = self.ground.by_label
        frame = Frame(
            self.cells,
            self.ground.layout.classes or () if by_label else (),
            shares if by_label else shares[:, 0],
            least,
        )
        return self.objective.at(frame), self.constraint.at(frame)

    @property
    def is_linear(self) -> bool:
        """Whether nothing but a sum of losses is asked to be small: prices never change then, and
        one decision is best."""
        f, constraints = self.functions(self._even_shares, TINY)
        return not constraints and isinstance(f.outer, Total)

    @property
    def is_free(self) -> bool:
        """Whether nothing is constrained."""
        return not self.functions(self._even_shares, TINY)[1]

    def require_convex(self, *, monotone: bool = False) -> None:
        """An error where a search that trusts slopes may end anywhere: f or g is not convex; or, of
        losses that are convex in a model's weights, falls where one grows."""
        f, constraints = self.functions(self._even_shares, TINY)
        named = [(self.objective, f), *((self.constraint, one) for one in constraints)]
        refuse_bent(named, monotone=monotone)

    def pose(self, counts: Floats, multiplier: float, penalty: float) -> ReleasedProblem:
        """The problem at counts (cells, labels) that were released with that multiplier."""
        ground = self.ground
        floor = TINY if ground.is_exact else ground.floor(multiplier)
        rows = float(self.stated_rows or max(floor, counts.sum() / self.cells.per_row))
        shares, least = counts / rows, floor / rows
        f, asked = self.functions(shares, least)
        lower, others = self.functions(shares, least / 2.0)
        told = tuple(
            above_floor(one, two) for one, two in zip([f, *asked], [lower, *others], strict=True)
        )
        f = with_lines(f, told[0])
        constraints = tuple(
            with_lines(one, lines)
            for one, lines in zip(asked, told[1:], strict=True)
            if lines.any()
        )
        g = Worst(constraints) if constraints else None
        return ReleasedProblem(
            self, counts, rows, least, told, tuple(asked), f, constraints, Joint(f, g, penalty)
        )


@dataclass(frozen=True, eq=False)
class ReleasedProblem:
    """A problem with its cells counted: released values. h = f + G max(0, g).

    Rates of so few rows that noise cannot tell them from none take no part: an empty group would
    rule the others. `told`: the lines that do, of f and of each constraint in `asked`; values of
    others are NaN.
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

    @property
    def shares(self) -> Floats:
        """Of cells and labels, (cells, labels): none below 0."""
        return np.maximum(self.counts, 0.0) / self.rows

    @property
    def chance(self) -> Floats:
        """The losses of decisions by chance, each class as likely."""
        classes = self.problem.ground.classes
        return np.repeat(self.shares[..., np.newaxis] / classes, classes, axis=-1)

    def possible(self, losses: Floats) -> Floats:
        """Noisy frequencies as frequencies could be: none below 0, and of a cell and label together
        its share."""
        positive = np.maximum(losses, 0.0)
        total = positive.sum(axis=-1, keepdims=True)
        even = np.full_like(positive, 1.0 / positive.shape[-1])
        return np.asarray(
            self.shares[..., np.newaxis]
            * np.where(total > 0, positive / np.where(total > 0, total, 1.0), even)
        )

    def values(self, losses: Floats) -> tuple[tuple[str, ...], Floats, Floats]:
        """(names, bounds, values) of what is constrained, a line a comparison."""
        shown = shown_of(self.asked, self.told[1:])
        names, bounds, values = values_of(shown, losses, self.problem.constraint.titles)
        return names, bounds, np.where(self.defined, values, np.nan)

    def cells_of_values(self) -> tuple[tuple[int, ...], ...]:
        """The groups that each value is about, by number."""
        found: list[tuple[int, ...]] = []
        groups = self.problem.ground.groups
        for function in self.asked:
            sizes = (
                np.asarray(abs(function.lines).toarray())
                .reshape(function.lines.shape[0], groups, -1)
                .sum(axis=2)
            )
            lines = sizes if isinstance(function.outer, Largest) else sizes.sum(axis=0)[np.newaxis]
            found += [tuple(np.flatnonzero(line).tolist()) for line in lines]
        return tuple(found)

    @property
    def defined(self) -> Mask:
        """Which of the values are."""
        parts = [
            lines if isinstance(function.outer, Largest) else np.array([lines.any()])
            for function, lines in zip(self.asked, self.told[1:], strict=True)
        ]
        return np.concatenate(parts) if parts else np.zeros(0, np.bool_)

    def placed(self, of_excesses: Floats) -> Floats:
        """One number for each value, of one for each excess: 0 for what takes no part."""
        out = np.zeros(len(self.defined))
        out[self.defined] = of_excesses
        return out

    def excesses(self, losses: Floats) -> Floats:
        """How far each comparison is above its bound, or each constraint where it is none: their
        largest is g."""
        parts = [each_value(function, losses) for function in self.constraints]
        return np.concatenate(parts) if parts else np.zeros(0)

    def pull(self, duals: Floats, losses: Floats) -> Floats:
        """The slope of sum_j duals_j excess_j in losses."""
        out, at = np.zeros_like(losses), 0
        for function in self.constraints:
            if isinstance(function.outer, Largest):
                count = function.lines.shape[0]
                out += np.asarray(function.lines.T @ duals[at : at + count]).reshape(out.shape)
            else:
                count = 1
                out += duals[at] * function.gradient(losses)
            at += count
        return out

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
        at = function(losses)
        known = np.zeros(losses.shape[-1]) if constant is None else constant
        counted = np.array([1.0 - known[1], known[1]]) if self._pairs else known
        slopes, of_counts = (
            np.zeros((*losses.shape, len(at))),
            np.zeros((*self.shares.shape, len(at))),
        )
        for place in np.ndindex(losses.shape):
            if self._pairs and place[-1] == 0:
                continue
            step = STEP * max(
                float(self.shares[place[:2] if losses.ndim == 3 else (*place, 0)]), self.least
            )
            bumped = losses.copy()
            bumped[place] += step
            if self._pairs:
                bumped[(*place[:-1], 0)] -= step
            slopes[place] = (function(bumped) - at) / step
        for place in np.ndindex(self.shares.shape):
            step = STEP * max(float(self.shares[place]), self.least)
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
        moves = np.concatenate(
            [part.reshape(-1, len(at)) for part in (slopes * noise, of_counts * count_noise)]
        )
        deviations = np.linalg.norm(moves, axis=0)
        return float(deviations[0]), deviations[1:]

    def best_constant(self, losses: Floats, noise: float, count_noise: float) -> Constant | None:
        """Of deciding for one class, whatever the row, the one that makes f least, among those that
        keep what is constrained as well as these losses do, if there are any. Its losses are in the
        counts."""
        if not self.problem.ground.by_label or losses.ndim != 3:
            return None
        value, most = (
            float(self.f.value(losses)),
            max(0.0, float(self.excesses(losses).max(initial=-np.inf))),
        )
        found = []
        for k in range(losses.shape[-1]):
            alike = np.zeros_like(losses)
            alike[..., k] = self.shares
            admitted = float(self.excesses(alike).max(initial=-np.inf)) <= most + TINY
            known = np.zeros(losses.shape[-1])
            known[k] = 1.0
            of_counts = self.spread(alike, 0.0, count_noise, known)[0]
            told = float(self.f.value(alike))
            found.append(
                Constant(told, value - told, float(np.hypot(noise, of_counts)), admitted, k)
            )
        return min(found, key=lambda one: (not one.admitted, one.error))

    def beside(self, losses: Floats, other: Floats, noise: float, noise_of_other: float) -> Rival:
        """Another rule by the objective, from releases of its own: numbers of that noise, and these
        losses'."""
        value, told = float(self.f.value(losses)), float(self.f.value(other))
        parts = self.spread(losses, noise, 0.0)[0], self.spread(other, noise_of_other, 0.0)[0]
        most = max(0.0, float(self.excesses(losses).max(initial=-np.inf)))
        admitted = float(self.excesses(other).max(initial=-np.inf)) <= most + TINY
        return Rival(told, value - told, math.hypot(*parts), admitted)

    def sampling(self, losses: Floats) -> Floats:
        """The standard deviation of each constraint's value over draws of the rows, from released
        losses of decisions: one more row in a place moves its frequency and its share. NaN for
        losses that are numbers, whose spread is not released.

        Rates of few rows are moved towards each other, as in `fairness.deviations`."""
        if losses.ndim != 3:
            return np.full(len(self.defined), np.nan)
        shares, added = self.shares[..., np.newaxis], ADDED / self.rows
        drawn = (
            shares * (np.clip(losses, 0.0, shares) + added) / (shares + losses.shape[-1] * added)
        )
        at, moves = self._numbers(self.shares)(drawn), []
        for place in np.ndindex(losses.shape):
            step = STEP * max(float(self.shares[place[:2]]), self.least)
            bumped, more = drawn.copy(), self.shares.copy()
            bumped[place] += step
            more[place[:2]] += step
            moves.append((self._numbers(more)(bumped) - at)[1:] / step)
        influence, weights = np.array(moves), drawn.ravel()[:, np.newaxis]
        per_row, heaviest = self.problem.cells.per_row, self.problem.ground.heaviest or 1.0
        centre = (weights * influence).sum(axis=0) ** 2 if per_row == 1 else 0.0
        variance = (
            np.maximum((weights * influence**2).sum(axis=0) * per_row - centre, 0.0)
            * heaviest
            / self.rows
        )
        return np.asarray(np.sqrt(variance))

    @property
    def _pairs(self) -> bool:
        """Two classes: the first's frequency is what the second's leaves of the cell's share."""
        return self.problem.ground.by_label and self.problem.ground.outputs == 1

    def _numbers(self, shares: Floats) -> Callable[[Floats], Floats]:
        """f and the constraints' values of losses, where cells and labels have these shares."""
        f, asked = self.problem.functions(shares, self.least)
        told, shown = with_lines(f, self.told[0]), shown_of(asked, self.told[1:])
        return lambda losses: np.concatenate(
            [[float(told.value(losses))], measured_values(shown, losses)]
        )
