"""What a regression for group objectives is asked for, and what is said of the coefficients that
were found: no rows here.

Losses are squared errors of targets coded to [-1, 1], over 4: in [0, 1], in units of the target's
squared range. Bounds are given, and values reported, in squared units of the target.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..._types import Floats
from ...core.events import Event
from ...core.promise import Promise
from ...curator import FULL, Measurement, Question, describe, moved_by_one
from ...errors import InputError
from ...facts import Cells, RowLayout
from ...fairness import BoundedGroupLoss
from ...fairness.functions import (
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
from ...fairness.objectives import (
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
from ..comparison import Rival
from ..descent import Batch
from ..outcome import not_met
from ..systems import NO_GROUPS, heaviest


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
    target's squared range.

    `penalty`: G; None: that of Corollary 4.2 at `alpha`, in squared ranges.
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

    def move(self, question: Question) -> float:
        """How far one person moves the answer to a question whose bound is a constant (L2)."""
        return moved_by_one(question, self.layout, self.promise, self.max_sample_weight)

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
        return Joint(
            f, g, corollary_4_2(f, self.alpha) if self.penalty is None else self.penalty, width
        )

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
        lines = [
            line[2] - line[1]
            for title, function in zip(self.constraint.titles, bounds, strict=True)
            for line in _lines(title, function, losses, noise, of_means, self.unit)
        ]
        most = max(0.0, float(np.max(outcome.values - outcome.bounds, initial=-np.inf)))
        admitted = max(lines, default=-np.inf) <= most + 1e-9 * max(1.0, abs(most))
        deviation = float(
            np.hypot(outcome.value_noise, unit * _noise_of(f, losses, noise, of_means))
        )
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
        titled = zip(self.constraint.titles, bounds, strict=True)
        lines = [
            line
            for title, function in titled
            for line in _lines(title, function, losses, noise, of_means, self.unit)
        ]
        drawn = _drawn(means, shares, rows, largest)
        sampled = [
            line
            for title, function in zip(self.constraint.titles, bounds, strict=True)
            for line in _lines(title, function, losses, *drawn, self.unit)
        ]
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
            sampling=np.array([line[3] for line in sampled])
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
    return (
        unit
        if isinstance(
            objective, Error | WeightedError | LargestGroupLoss | GroupLoss | MeanGroupLoss
        )
        else 1.0
    )


def _in_ranges(constraint: Constraint, unit: float) -> Constraint:
    """Bounds in squared units of the target as bounds in squared ranges of it."""
    bounds = tuple(
        Bound(one.objective, one.bound / _unit_of(one.objective, unit)) for one in constraint.bounds
    )
    losses = [one for one in constraint.notions if isinstance(one, BoundedGroupLoss)]
    limits = [None if one.max_loss is None else one.max_loss / unit for one in losses]
    return Constraint(
        bounds,
        tuple(replace(one, max_loss=limit) for one, limit in zip(losses, limits, strict=True)),
    )


def _noise_of(
    function: GroupFunction, losses: Floats, noise: float | Floats, of_means: Floats
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
    of_means: Floats,
    unit: float,
) -> list[tuple[str, float, float, float]]:
    """What a constraint bounds: (name, bound, value, deviation of its noise) each.

    `of_means`: noise of losses and of the shares that they are divided by, which all rates but sums
    are.
    """
    rates, outer = function.rates(losses), function.outer
    if isinstance(outer, Largest):
        sizes = np.sqrt(np.asarray(function.lines.power(2) @ of_means**2).ravel())
        columns = zip(function.names, rates.tolist(), sizes.tolist(), strict=True)
        bound = unit * function.bound
        return [
            (f"{name} <= {bound:g}", bound, unit * rate, unit * size)
            for name, rate, size in columns
        ]
    size = _noise_of(function, losses, noise, of_means)
    if isinstance(outer, Inequality):
        means = np.maximum(rates, 0.0)
        middle, m = max(float(means.mean()), 1e-12), len(means)
        return [(title, outer.theta, float(gini(means)), size * (m - 1) / m**2 / middle)]
    unit = 1.0 if function.trusted else unit
    return [
        (
            title,
            unit * function.bound,
            unit * (float(function.value(losses)) + function.bound),
            unit * size,
        )
    ]
