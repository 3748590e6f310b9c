"""Least squares for objectives of the groups' losses (Alabi, sec. 1.3.1; theory.md#gram): one
release of the groups' Gram matrices, then linear oracles for free.

With r = (1, x, y) and M_k = the sum of r r' over the rows of group k, the loss of coefficients c is

    l_k(c) = (u / n0) sum_{i in k} (y_i - c.(1, x_i))^2 = v' M_k v u / n0,      v = (c, -1),

u the unit that puts squared errors into squared ranges of the target. Losses are squared errors of
targets coded to [-1, 1], over 4; bounds are given, and values reported, in squared units.

`Differs:`
- the paper asks a private gradient descent for every weighted sum of losses; here the M_k are
  released once, and the least value of w.l(c) is arithmetic on that release for any w, solved
  exactly: any number of rounds costs the same;
- rows longer than a clip are clipped, and count as the square of what is left of them; dense numbers
  are scaled by released moments before, for the noise of a Gram matrix is as large in every
  direction;
- where records are protected, the matrix of everybody is in the same release; where features are
  public it is exact, and what clipping takes of it is given back by the groups' shares;
- losses that noise hides are not followed (`as_known`).

Guarantees (tests/methods/test_methods_least_squares.py):
1. The log is the plan: the same releases, whatever is answered and however often oracles are asked.
2. Coefficients depend on the rows through the curator's answers alone; equal answers make equal
   coefficients.
3. Losses at coefficients that were fixed before have the noise that is stated of them; those at
   coefficients found in the same release are off by less than twice what is stated.
4. No point of a ball has less than that of `least_in_ball`, but for rounding; `Least.lower` <=
   h(l(c)) for every c in reach, and for convex h that grows with every loss the answer is within the
   tolerance of it, unless the rounds end first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq

from .. import _checks
from .._types import Floats
from ..core.bound import OUTWARDS
from ..core.events import Event, compose
from ..curator import (
    FULL,
    GramMatrices,
    Measurement,
    NumberMoments,
    Question,
    RowCount,
    describe,
    largest_of_one,
)
from ..errors import InputError
from ..facts import Cells
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
from .allocation import by_column
from .comparison import Rival
from .descent import Batch, Progress
from .gaussian import quietest
from .mixture import lowest
from .oracles import LEAST_ROWS, Asks
from .outcome import not_met
from .systems import NO_GROUPS, PublicTask, columns_of

LENGTH = 1.5  # of the usual length of a row: the longest that counts in full, unless noise is small
LONGEST, HEARD = 4.0, 0.04
"""Where the noise of a group of usual size would still be below `HEARD` of its rows in any
direction, longer rows count in full, up to `LONGEST` usual lengths. Noise grows with the square of
the clip, and losses of clipped rows are not the rows'."""
RADIUS = 10.0  # of coefficients whose losses may get negative weights
MOMENTS_SHARE = 0.05  # of the squared budget
WHOLE_SHARE = 0.3  # of the rest, where records are protected, for one matrix of everybody
THIN = 1e-13  # of the largest eigenvalue: below it a direction counts as flat
CUT = 1e-10  # of the largest spread: below it a direction is one that no row has, but for rounding
LEAST_SHARE = 1e-12
LOWEST = 1e-140  # of what an eigenvalue is shifted by
RIDGE = 0.4  # of the noise's spectral norm: s
CERTAIN = 3.0  # deviations of the noise
TOLERANCE = 1e-7
ROUNDS = 200
KEPT = 150  # cuts, and points of the hull: the latest
SURE = 1.0  # of the deviation of the noise of what is minimised


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
class RegressionTask(PublicTask):
    """Public facts alone. `cells`: None where the objective tells no groups apart. `unit`: the
    target's squared range. `penalty`: G; None: that of Corollary 4.2 at `alpha`, in squared ranges.
    """

    objective: Objective
    constraint: Constraint
    unit: float = 1.0
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

    def noise(self, asked: Measurement) -> float:
        """The standard deviation of each number of an answer."""
        return 0.0 if self.is_exact else float(asked.multiplier) * self.move(asked.question)

    def event(self, measurements: Sequence[Measurement], batch: Batch = FULL) -> Event:
        """What a joint answer costs."""
        return describe(
            measurements, self.layout, self.promise, batch, max_sample_weight=self.max_sample_weight
        )

    def functions(self, shares: Floats, least: float) -> tuple[GroupFunction, list[GroupFunction]]:
        """f, and the constraints' functions, where groups have these shares."""
        frame = Frame(self.cells or NO_GROUPS, (), shares, least)
        return self.objective.at(frame), _in_ranges(self.constraint, self.unit).at(frame)

    def joint(self, f: GroupFunction, bounds: list[GroupFunction]) -> Joint:
        """h = f + G max(0, g)."""
        if not bounds:
            return Joint(f, None, 0.0)
        g: LossFunction = bounds[0] if len(bounds) == 1 else Worst(tuple(bounds))
        penalty = corollary_4_2(f, self.alpha) if self.penalty is None else self.penalty
        return Joint(f, g, penalty)

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
            sampling=np.array([line[3] for line in drawn]) * math.sqrt(self.heaviest or 1.0),
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


# -- losses of released matrices, and what makes a function of them least


def least_in_ball(matrix: Floats, vector: Floats, radius: float = math.inf) -> Floats:
    """The c that makes c'A c - 2 b'c least over |c| <= radius, A symmetric with eigenvalues of any
    sign. Without a radius A must have no direction of descent for ever.

    c is a solution exactly if (A + m I) c = b for some m >= 0 with A + m I positive semi-definite,
    and m (radius - |c|) = 0 (More and Sorensen). In the eigenbasis of A, m is the root of the
    secular equation 1/|c(m)| = 1/radius, nearly linear in m.
    """
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2.0)
    b = basis.T @ vector
    flat = THIN * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    # A flat direction with a slope falls for ever; without one it adds nothing.
    still = np.abs(b) <= THIN * max(float(np.linalg.norm(b)), 1e-300)
    if values[0] > -flat and (still | (values > flat)).all():
        inside = np.where(values > flat, b / np.where(values > flat, values, 1.0), 0.0)
        if float(np.linalg.norm(inside)) <= radius:
            return np.asarray(basis @ inside)
    if math.isinf(radius):
        raise InputError.expected(
            "a sum of squares, which has a least value",
            of="radius",
            got="one that falls for ever, and no radius",
            remedy="Pass a radius: the largest norm of coefficients.",
        )
    # on the sphere: eigenvalues are counted from the lowest, if that is negative, and m from there
    above = values - min(float(values[0]), 0.0)

    def away(m: float) -> float:
        """1 / radius - 1 / |c(m)|, nearly linear in m, where |c(m)| itself has a pole."""
        length = float(np.linalg.norm(b / (above + m)))
        return 1.0 / radius - (1.0 / length if length > 0.0 else math.inf)

    high = float(np.linalg.norm(b)) / radius
    if away(LOWEST) < 0.0:
        # The hard case of a trust region: nothing pulls along the lowest eigenvector, which then
        # fills up the length.
        c = b / (above + LOWEST)
        c[0] = 0.0
        c[0] = math.sqrt(max(0.0, radius**2 - float(c @ c)))
    else:
        root = brentq(away, LOWEST, high, xtol=1e-300, maxiter=2000) if away(high) < 0.0 else high
        c = b / (above + root)
    return np.asarray(basis @ (c * (radius / float(np.linalg.norm(c)))))


@dataclass(frozen=True, eq=False)
class GroupQuadratics:
    """Group losses as functions of coefficients (1 + width,): released values alone. Make one with
    `of`.

    `released`: M_k u / n0, (cells, d, d); `forms`: those that are minimised; `noise` (cells,): the
    standard deviation of a diagonal entry of M_k; `shares`: the groups' of all rows; `least`: the
    least share of one; `has_rows`: whether the released number of rows can be told from none.
    """

    released: Floats
    forms: Floats
    shares: Floats
    rows: float
    noise: Floats
    unit: float
    least: float
    radius: float
    has_rows: bool

    @staticmethod
    def of(
        answer: Floats,
        *,
        noise: float | Floats,
        cells: Cells | None,
        total: Floats | None = None,
        total_noise: float = 0.0,
        lost: Floats | None = None,
        unit: float = 0.25,
        radius: float = math.inf,
    ) -> GroupQuadratics:
        """From released matrices (cells, d, d), made usable by public and released numbers alone.

        `noise`: the deviation of a diagonal entry, one for all or one a cell; `total`: of all rows,
        public or released with `total_noise`: what is missing to it is shared in proportion to the
        variances of the groups' noise, which is likeliest; `lost`: what clipping took from a public
        total, given back by the groups' shares. A group counts two deviations of its noise at least.
        Each form is the nearest positive semi-definite one (losses are then convex), raised in
        directions in which a group's rows are spread less than the noise: by s^2 / max(e, s), e the
        spread and s `RIDGE` of the noise's spectral norm. So a group of n rows tells
        about n e / s in a direction, e the spread of one row. Losses that are reported are those
        of matrices as they were released.
        """
        answer = np.array(answer, np.float64)
        noise = np.array(np.broadcast_to(noise, len(answer)), np.float64)
        columns = columns_of(cells or NO_GROUPS)
        for column in columns if total is not None else ():
            variance = noise[column] ** 2
            share = np.full(len(variance), 1.0 / len(variance))
            if variance.any():
                share = variance / (variance.sum() + total_noise**2)
            missing = np.asarray(total).reshape(answer.shape[1:]) - answer[column].sum(axis=0)
            answer[column] = answer[column] + share[:, np.newaxis, np.newaxis] * missing
            noise[column] = noise[column] * np.sqrt(np.maximum(1.0 - share, 0.0))
        # A released size may be below 0 by its noise; what divides is two deviations at least.
        least = np.where(noise > 0.0, np.maximum(LEAST_ROWS, 2.0 * noise), LEAST_SHARE)
        counts = np.maximum(answer[:, 0, 0], least)
        for column in columns if lost is not None else ():
            part = counts[column] / counts[column].sum()
            answer[column] += part[:, np.newaxis, np.newaxis] * lost
        # The first entry of a matrix is its number of rows, as the intercept's coordinate is 1.
        counted = float(answer[:, 0, 0].sum()) > CERTAIN * float(np.linalg.norm(noise))
        has_rows = counted or (total is not None and not total_noise)
        counts = np.maximum(answer[:, 0, 0], least)
        n0 = float(max(counts.sum() / (1 if cells is None else cells.per_row), LEAST_SHARE))
        # The spectral norm of a symmetric matrix of noise is about deviation x sqrt(2 d), with s on
        # the diagonal and s / sqrt(2) beside it.
        raises = RIDGE * noise * math.sqrt(2.0 * answer.shape[-1])
        forms = np.stack(
            [
                _raised(_sum_of_squares(one, exact=bool(s == 0)), float(size))
                for one, s, size in zip(answer, noise, raises, strict=True)
            ]
        )
        of, share_of_one = unit / n0, float(least.min()) / n0
        return GroupQuadratics(
            answer * of,
            forms * of,
            counts / n0,
            n0,
            noise,
            unit,
            share_of_one,
            radius,
            has_rows,
        )

    def losses(self, c: Floats) -> Floats:
        """l(c), (..., cells), of coefficients (..., 1 + width)."""
        return _values(self.forms, c)

    def measured(self, c: Floats) -> Floats:
        """The same by the matrices as they were released: unbiased at coefficients that do not
        depend on them."""
        return _values(self.released, c)

    def deviation(self, c: Floats) -> Floats:
        """The standard deviation of each of `measured(c)` at a c that does not depend on the noise:
        that has one size in every direction, so it is that times |v|^2."""
        return np.asarray(self.noise * (self.unit / self.rows * (1.0 + float(c @ c))))

    def spread(self, c: Floats) -> Floats:
        """The same where c was found in the same matrices, and follows their noise: half of the
        most that it can be in any direction, the spectral norm (sqrt(2 d) deviations). Losses at
        such c are rather too low than too high."""
        return self.deviation(c) * max(1.0, math.sqrt(self.forms.shape[-1] / 2.0))

    def best(self, weights: Floats) -> Floats:
        """The linear oracle: the c in the ball that makes w.l(c) least, for weights of any sign."""
        form = np.einsum("k,kij->ij", weights, self.forms)
        matrix, vector = form[:-1, :-1], form[:-1, -1]
        if math.isfinite(self.radius) or weights.min(initial=0.0) < 0:
            return least_in_ball(matrix, vector, self.radius)
        # without a ball no unit is special: columns of one length lose few digits
        squares = np.diag(matrix)
        sizes = np.where(squares > 0.0, np.sqrt(np.maximum(squares, 0.0)), 1.0)
        values, basis = np.linalg.eigh(matrix / np.outer(sizes, sizes))
        told = values > CUT * max(float(values[-1]), 1e-300)
        return np.asarray(
            basis[:, told] @ (basis[:, told].T @ (vector / sizes) / values[told]) / sizes
        )


def _values(forms: Floats, c: Floats) -> Floats:
    c = np.asarray(c, np.float64)
    v = np.concatenate([c, np.full((*c.shape[:-1], 1), -1.0)], axis=-1)
    return np.asarray(np.einsum("...i,kij,...j->...k", v, forms, v))


def _sum_of_squares(matrix: Floats, *, exact: bool) -> Floats:
    """The nearest positive semi-definite matrix (Frobenius). Of an exact one, in units in which all
    columns have one length, and without what rounding alone has left in directions that no row has,
    and in columns that never change."""
    squares = np.diag(matrix)
    there = squares > CUT**2 * squares.max(initial=0.0) if exact else np.ones(len(matrix), bool)
    sizes = np.where(there & exact, np.sqrt(np.maximum(squares, 0.0)), 1.0)
    values, basis = np.linalg.eigh(
        (matrix + matrix.T) / 2.0 * np.outer(there / sizes, there / sizes)
    )
    kept = np.where(values > CUT * max(float(values[-1]), 1e-300), values, 0.0)
    return np.asarray((basis * kept) @ basis.T * np.outer(there * sizes, there * sizes))


def _raised(matrix: Floats, size: float) -> Floats:
    """With more where rows are spread less than `size`; the target's own line and column are left
    as they are."""
    if size == 0.0:
        return matrix
    values, basis = np.linalg.eigh(matrix[:-1, :-1])
    out = matrix.copy()
    out[:-1, :-1] += (basis * (size**2 / np.maximum(values, size))) @ basis.T
    return out


class Ended(Enum):
    """Why a search for coefficients stopped."""

    GAP = "no coefficients in reach are better by more than the tolerance"
    ROUNDS = "all rounds were done; coefficients in reach may be better by the gap"
    NOISE = (
        "the groups' losses are known through too much noise to be followed: the coefficients are "
        "least squares of everybody"
    )
    NOTHING = (
        "the released number of rows cannot be told from none: the coefficients were left at zero"
    )
    SHORTENED = (
        "numbers are so large that rows, clipped, are hidden by the noise: the coefficients were "
        "left at zero; pass schema=, with bounds of the columns, or scale numbers to [-1, 1] by "
        "public constants"
    )


@dataclass(frozen=True, eq=False)
class Least:
    """The answer: coefficients, h of their losses, the bound below all, and how often the oracle
    was asked. `gap`: how much better any coefficients in reach can be."""

    coefficients: Floats
    value: float
    lower: float
    calls: int
    reason: Ended

    @property
    def gap(self) -> float:
        return self.value - self.lower


def least(
    quadratics: GroupQuadratics,
    h: LossFunction,
    *,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Least:
    """Coefficients that make a convex h of their losses least, by cutting planes (Kelley's, on both
    sides), until the bound is `tolerance` below the best value, or the rounds end.

    A point of the convex hull of the losses seen so far, with weights q, makes the highest tangent of
    h least. With t the multipliers of the tangents and w = sum_s t_s w_s the oracle's answer gives the
    bound sum_s t_s (h(l_s) - w_s.l_s) + min_c w.l(c) for every c in reach, since tangents are below h.
    Its answer is the next point, the mean's is the next tangent. Where h grows with every loss, the
    mean coefficients sum_j q_j c_j are at least as good as the hull's point (Jensen, twice): the
    answer is one vector. Where it does not, the answer is the best of all vectors seen, and the bound
    says how far from the best it may be.
    """
    if not h.convex:
        raise InputError.expected(
            "a convex function of group losses",
            of="objective",
            got="another",
            remedy="Minimize a largest, mean or weighted loss, or the error.",
        )
    if not h.monotone and math.isinf(quadratics.radius):
        remedy = "Some weights may be negative: pass a radius, the largest norm of coefficients."
        raise InputError.expected("a finite radius", of="radius", got=math.inf, remedy=remedy)
    points, losses, slopes, levels = list[Floats](), list[Floats](), list[Floats](), list[float]()
    best, value, lower = np.zeros(0), math.inf, -math.inf

    def see(c: Floats) -> None:
        """Take coefficients in, and the tangent of h at their losses."""
        nonlocal best, value
        points.append(c)
        losses.append(quadratics.losses(c))
        slopes.append(h.gradient(losses[-1]))
        found = float(h.value(losses[-1]))
        levels.append(found - float(slopes[-1] @ losses[-1]))
        if found < value:
            best, value = c, found

    # A first point: any will do, and least squares of everybody is mostly near.
    first = np.maximum(h.gradient(np.zeros(len(quadratics.forms))), 0.0)
    see(quadratics.best(np.where(first.any(), first, 1.0)))
    for call in range(1, rounds + 1):
        w, level = np.array(slopes[-KEPT:]), np.array(levels[-KEPT:])
        shares, prices, _ = lowest(w, level, np.array(losses[-KEPT:]))
        mean = np.asarray(shares @ np.array(points[-KEPT:]))
        weights = np.asarray(prices @ w)
        new = quadratics.best(weights)
        lower = max(lower, float(prices @ level) + float(weights @ quadratics.losses(new)))
        see(new)
        see(mean)
        if progress is not None:
            progress(call, rounds)
        if value - lower <= tolerance:
            return Least(best, value, min(lower, value), call, Ended.GAP)
    return Least(best, value, min(lower, value), rounds, Ended.ROUNDS)


def as_known(quadratics: GroupQuadratics, f: LossFunction, found: Least, free: Floats) -> Least:
    """What was found for an f that grows with every loss, where nothing is constrained; or least
    squares of everybody, `free`, where that is not better by `SURE` deviations of its noise. What was found
    follows the luckiest noise, and a largest loss the noisiest group."""
    losses = quadratics.losses(free)
    value = float(f.value(losses))
    doubt = float(np.linalg.norm(f.gradient(losses) * quadratics.spread(found.coefficients)))
    if value - found.value > SURE * doubt or value - found.value <= TOLERANCE:
        return found
    return Least(free, value, min(found.lower, value), found.calls, Ended.NOISE)


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
    negative.
    """

    task: RegressionTask
    scales: bool = False
    clip: float | None = None
    radius: float | None = None
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
        # everybody's least squares, from the same release
        free = quadratics.best(np.ones(len(quadratics.forms)))
        if quadratics.has_rows:
            h = task.joint(*task.functions(quadratics.shares, quadratics.least))
            if not h.monotone and self.radius is None:
                quadratics = replace(quadratics, radius=RADIUS)
            best = least(quadratics, h, rounds=self.rounds, progress=progress)
            if h.monotone and task.constraint.is_vacuous:
                best = as_known(quadratics, h, best, free)
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

        # the mean of all targets for everybody
        whole = quadratics.released.sum(axis=0)
        mean = np.zeros(len(whole) - 1)
        mean[0] = whole[0, -1] / max(float(whole[0, 0]), 1e-300)
        return replace(outcome, constant=beside(mean), free=beside(free))


def plan_regression(task: RegressionTask, **options: Any) -> GroupRegression:
    """The regression whose noise is the least that keeps the promise. `options`: fields of
    `GroupRegression`."""
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

    return quietest(task.promise, at, GroupRegression.event, exact=task.is_exact)
