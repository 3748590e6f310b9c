"""Functions of the groups' squared losses, and the coefficients that make one least: post-processing
of released Gram matrices (theory.md#gram).

With r = (1, x, y) and M_k = the sum of r r' over the rows of group k, the loss of coefficients c is

    l_k(c) = (u / n0) sum_{i in k} (y_i - c.(1, x_i))^2 = v' M_k v u / n0,      v = (c, -1),

u the unit that puts squared errors into squared ranges of the target. `Differs:` Alabi asks a private
gradient descent for every weighted sum of losses; here the least value of w.l(c) is arithmetic on
one release for any w, and is solved exactly.

Guarantees (tests/methods/test_methods_quadratics.py):
1. No point of a ball has less than that of `least_in_ball`, but for rounding.
2. `Least.lower` <= h(l(c)) for every c in reach, and `value` = h(l(c)) of the answer; for convex h
   that grows with every loss their difference is at most the tolerance, unless the rounds end first.
3. How far noisy losses are followed is a function of the released matrices and public facts. The
   two halves of a release have independent noise of the variance that is said; without noise losses
   are followed all the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize

from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from ..fairness.functions import GroupFunction, Joint, Largest, LossFunction, Total, Worst
from .descent import Progress
from .mixture import lowest
from .oracles import LEAST_ROWS
from .systems import NO_GROUPS, columns_of

THIN = 1e-13  # of the largest eigenvalue: below it a direction counts as flat
CUT = 1e-10  # of the largest spread: below it a direction is one that no row has, but for rounding
LEAST_SHARE = 1e-12
RIDGE = 0.4  # of the noise's spectral norm: s
CERTAIN = 3.0  # deviations of the noise
METHODS = ("linear-oracle", "frank-wolfe")
TOLERANCE = 1e-7
ROUNDS = 200
KEPT = 150  # cuts, and points of the hull: the latest
WORTH_A_DUAL = 40  # rounds: a step of the dual asks once or twice
ENOUGH = 1e-13  # of the dual's value
STEPS, TIMES, PART = (0.0, 0.25, 0.5, 0.75, 1.0), 12, 0.5
BEYOND, WITHIN = 2.0, 1.0
SEED = 20210


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
    return np.asarray(basis @ _on_sphere(values, b, radius, flat))


def _on_sphere(values: Floats, b: Floats, radius: float, flat: float) -> Floats:
    """In the eigenbasis: the solution of length `radius`."""
    least = max(0.0, -float(values[0]))
    lowest = values <= values[0] + flat if values[0] < 0 else values <= flat

    def length(m: float) -> float:
        return float(np.linalg.norm(b / (values + m)))

    if float(np.abs(b[lowest]).max(initial=0.0)) <= THIN * max(float(np.linalg.norm(b)), 1e-300):
        # The hard case of a trust region: nothing pulls along the lowest eigenvector, which then
        # fills up the length.
        rest = np.where(lowest, 0.0, b / np.where(lowest, 1.0, values + least))
        inside = float(np.linalg.norm(rest))
        if inside <= radius:
            rest[int(np.argmax(lowest))] = math.sqrt(max(0.0, radius**2 - inside**2))
            return rest
        b = np.where(lowest, 0.0, b)
    # |c(least + above)| <= radius, since every eigenvalue + least is at least 0
    above = float(np.linalg.norm(b)) / radius
    high = least + above
    low = least + max(float(np.abs(b[lowest]).max(initial=0.0)) / radius / 2.0, 1e-16 * high)
    while low > least and length(low) < radius:
        low = least + (low - least) / 2.0
    if length(high) >= radius:  # by rounding alone
        root = high
    elif length(low) < radius:
        root = low
    else:
        # 1/radius - 1/|c(m)| is nearly linear in m, where |c(m)| itself has a pole.
        root = brentq(lambda m: 1.0 / radius - 1.0 / length(m), low, high, xtol=1e-300)
    c = b / (values + root)
    return np.asarray(c * (radius / float(np.linalg.norm(c))))


@dataclass(frozen=True, eq=False)
class GroupQuadratics:
    """Group losses as functions of coefficients (1 + width,): released values alone. Make one with
    `of`.

    `released`: M_k u / n0, (cells, d, d); `forms`: those that are minimised; `noise` (cells,): the
    standard deviation of a diagonal entry of M_k; `shares`: the groups' of all rows; `least`: the
    least share of one; `has_rows`: whether the released number of rows can be told from none;
    `made`: what all of these were made of, the arguments of `of`.
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
    made: Mapping[str, Any]

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
        ridge: float | None = None,
    ) -> GroupQuadratics:
        """From released matrices (cells, d, d), made usable by public and released numbers alone.

        `noise`: the deviation of a diagonal entry, one for all or one a cell; `total`: of all rows,
        public or released with `total_noise`: what is missing to it is shared in proportion to the
        variances of the groups' noise, which is likeliest; `lost`: what clipping took from a public
        total, given back by the groups' shares. A group counts two deviations of its noise at least.
        Each form is the nearest positive semi-definite one (losses are then convex), raised in
        directions in which a group's rows are spread less than the noise: by s^2 / max(e, s), e the
        spread and s `ridge`, or `RIDGE` of the noise's spectral norm. So a group of n rows tells
        about n e / s in a direction, e the spread of one row. Losses that are reported are those
        of matrices as they were released.
        """
        answer = np.array(answer, np.float64)
        noise = np.array(np.broadcast_to(noise, len(answer)), np.float64)
        made: dict[str, Any] = {
            "answer": answer.copy(),
            "noise": noise.copy(),
            "cells": cells,
            "total": total,
        }
        made |= {"total_noise": total_noise, "lost": lost, "unit": unit, "ridge": ridge}
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
        if ridge is not None:
            raises = np.full(len(answer), ridge)
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
            made,
        )

    def again(self, **others: Any) -> GroupQuadratics:
        """The same release with some of the arguments of `of` in other forms."""
        return GroupQuadratics.of(**{**self.made, "radius": self.radius, **others})

    def losses(self, c: Floats) -> Floats:
        """l(c), (..., cells), of coefficients (..., 1 + width)."""
        return _values(self.forms, c)

    def measured(self, c: Floats) -> Floats:
        """The same by the matrices as they were released: unbiased at coefficients that do not
        depend on them."""
        return _values(self.released, c)

    def deviation(self, c: Floats, other: Floats | None = None) -> Floats:
        """The standard deviation of each of `measured(c)`, or of its difference to that of another,
        where neither depends on the noise: that has one size in every direction, so it is that
        times |v|^2, or |v v' - w w'|."""
        size = 1.0 + float(c @ c)
        if other is not None:
            v, w = (np.append(one, -1.0) for one in (c, other))
            squares = float(v @ v) ** 2 + float(w @ w) ** 2 - 2.0 * float(v @ w) ** 2
            size = math.sqrt(max(squares, 0.0))
        return np.asarray(self.noise * (self.unit / self.rows * size))

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


# ------------------------------------------------------- a function of losses, by oracle calls alone


class Ended(Enum):
    """Why a search for coefficients stopped."""

    GAP = "no coefficients in reach are better by more than the tolerance"
    ROUNDS = "all rounds were done; coefficients in reach may be better by the gap"
    NOISE = (
        "the groups' losses are known through too much noise to be followed all the way: the "
        "coefficients lie between theirs and least squares of everybody"
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


class _Seen:
    """What was seen so far, and the best of it: points with their losses, tangents of h (weights,
    level), h(l) >= level + w.l, and the largest level + min_c w.l(c), below h everywhere."""

    def __init__(self, quadratics: GroupQuadratics, h: LossFunction) -> None:
        self.quadratics, self.h = quadratics, h
        self.points: list[Floats] = []
        self.losses: list[Floats] = []
        self.cuts: list[tuple[Floats, float]] = []
        self.value, self.lower = math.inf, -math.inf
        self.coefficients: Floats = np.zeros(0)
        # A first point: any will do, and least squares of everybody is mostly near.
        weights = np.maximum(h.gradient(np.zeros(len(quadratics.forms))), 0.0)
        self.see(quadratics.best(np.where(weights.any(), weights, 1.0)))

    def see(self, c: Floats) -> Floats:
        """Take coefficients in, and the cut at their losses: h is convex, so its tangent there lies
        below it everywhere."""
        losses = self.quadratics.losses(c)
        value, weights = float(self.h.value(losses)), self.h.gradient(losses)
        self.cuts.append((weights, value - float(weights @ losses)))
        self.points.append(c)
        self.losses.append(losses)
        if value < self.value:
            self.coefficients, self.value = c, value
        return losses

    def ask(self, weights: Floats, level: float) -> Floats:
        """The oracle's answer to w, and its bound."""
        new = self.quadratics.best(weights)
        self.lower = max(self.lower, level + float(weights @ self.quadratics.losses(new)))
        return new

    def ended(self, calls: int, tolerance: float) -> Least | None:
        """The answer, once the gap is closed."""
        if self.value - self.lower > tolerance:
            return None
        return Least(self.coefficients, self.value, min(self.lower, self.value), calls, Ended.GAP)


def least(
    quadratics: GroupQuadratics,
    h: LossFunction,
    method: str = "linear-oracle",
    *,
    rounds: int = ROUNDS,
    tolerance: float = TOLERANCE,
    progress: Progress | None = None,
) -> Least:
    """Coefficients that make a convex h of their losses least, until the bound is `tolerance` below
    the best value, or the rounds end.

    Both methods hold a point of the convex hull of the losses they have seen, with weights q, and a
    lower bound that is certain for every c in reach of the oracle:

    - "linear-oracle", cutting planes (Kelley's, on both sides): q makes the highest tangent least
      over the hull. With t the multipliers of the tangents and w = sum_s t_s w_s the oracle's answer
      gives the bound sum_s t_s (h(l_s) - w_s.l_s) + min_c w.l(c), for tangents are below h. Its
      answer is the next point, the mean's is the next tangent. Where h is the largest of lines the
      multipliers of a few lines are all that is to be found, and mostly close the gap at once
      (`_dual`).
    - "frank-wolfe" (Algorithm 4): l <- (1 - g) l + g l(argmin_c w.l(c)), w = h'(l), g = 2 / (t + 2).
      The bound is h(l) + min_c w.(l(c) - l).

    Where h grows with every loss, the mean coefficients sum_j q_j c_j are at least as good as the
    hull's point (Jensen, twice): the answer is one vector. Where it does not, the answer is the best
    of all vectors seen, and the bound says how far from the best it may be.
    """
    if not h.convex:
        raise InputError.expected(
            "a convex function of group losses",
            of="objective",
            got="another",
            remedy=(
                "A function that is not convex is minimized over a list or a grid: "
                "method='exponential'."
            ),
        )
    if not h.monotone and math.isinf(quadratics.radius):
        remedy = "Some weights may be negative: pass a radius, the largest norm of coefficients."
        raise InputError.expected("a finite radius", of="radius", got=math.inf, remedy=remedy)
    seen, cuts = _Seen(quadratics, h), method == "linear-oracle"
    if cuts and rounds >= WORTH_A_DUAL and (lines := _lines_of(h)) is not None:
        penalty = h.penalty if isinstance(h, Joint) else 0.0
        prices, level, calls = _dual(quadratics, *lines, penalty, rounds // 4)
        seen.see(seen.ask(prices, level))
        if (found := seen.ended(calls, tolerance)) is not None:
            return found
    mean, losses = seen.points[0], seen.losses[0]
    for call in range(1, rounds + 1):
        if cuts:
            slopes, levels = (np.array(part) for part in zip(*seen.cuts[-KEPT:], strict=True))
            shares, prices, _ = lowest(slopes, levels, np.array(seen.losses[-KEPT:]))
            weights, level = np.asarray(prices @ slopes), float(prices @ levels)
            mean = np.asarray(shares @ np.array(seen.points[-KEPT:]))
            seen.see(seen.ask(weights, level))
        else:
            weights, step = h.gradient(losses), 2.0 / (call + 2.0)
            new = seen.ask(weights, float(h.value(losses)) - float(weights @ losses))
            losses = (1.0 - step) * losses + step * seen.see(new)
            mean = (1.0 - step) * mean + step * new
        seen.see(mean)
        if progress is not None:
            progress(call, rounds)
        if (found := seen.ended(call, tolerance)) is not None:
            return found
    lower = min(seen.lower, seen.value)
    return Least(seen.coefficients, seen.value, lower, rounds, Ended.ROUNDS)


Lines = tuple[Floats, Floats]


def _lines_of(h: LossFunction) -> tuple[Lines, Lines] | None:
    """Of f and of g the lines (slopes, levels) whose largest they are; None where they are other
    functions."""
    if not isinstance(h, Joint) or h.width > 0.0:
        return None
    parts = [[h.f], [] if h.g is None else list(h.g.functions) if isinstance(h.g, Worst) else [h.g]]
    found: list[Lines] = []
    for functions in parts:
        slopes, levels = [np.zeros((0, len(h.f.slopes[0])))], [np.zeros(0)]
        for one in functions:
            if not isinstance(one, GroupFunction) or not isinstance(one.outer, Total | Largest):
                return None
            lines = np.asarray(one.lines.todense())
            offsets = np.broadcast_to(np.asarray(one.offsets, np.float64), len(lines))
            if isinstance(one.outer, Total):
                lines, offsets = lines.sum(axis=0, keepdims=True), np.array([offsets.sum()])
            slopes.append(lines)
            levels.append(-offsets - one.bound)
        found.append((np.concatenate(slopes), np.concatenate(levels)))
    return found[0], found[1]


def _dual(
    quadratics: GroupQuadratics, of_f: Lines, of_g: Lines, penalty: float, steps: int
) -> tuple[Floats, float, int]:
    """(w, level, oracle calls): multipliers of f's lines add up to 1, those of g's to the penalty
    at most, and the least value of level + w.l(c) over c is as large as they can make it: level +
    w.l is below h everywhere."""
    slopes, levels = (np.concatenate(pair) for pair in zip(of_f, of_g, strict=True))
    m, k = len(of_f[1]), len(of_g[1])
    calls = 0

    def slack(t: Floats) -> Floats:
        return slopes @ quadratics.losses(quadratics.best(t @ slopes)) + levels

    def falls(t: Floats) -> tuple[float, Floats]:
        nonlocal calls
        calls += 1
        over = slack(t)
        return -float(t @ over) / size, -over / size

    start = np.concatenate([np.full(m, 1.0 / m), np.zeros(k)])
    size = max(abs(float(start @ slack(start))), 1e-12)
    if m + k == 1:
        return slopes[0], float(levels[0]), 1
    of_one = np.arange(m + k) < m
    rules: list[Any] = []
    if m > 1:
        rules += [{"type": "eq", "fun": lambda t: t[:m].sum() - 1.0, "jac": lambda t: of_one}]
    if k:
        down = -1.0 * ~of_one
        rules += [{"type": "ineq", "fun": lambda t: penalty - t[m:].sum(), "jac": lambda t: down}]
    ends: Any = [(1.0, 1.0) if m == 1 else (0.0, 1.0)] * m + [(0.0, penalty)] * k
    options: Any = {"maxiter": steps, "ftol": ENOUGH}
    with np.errstate(all="ignore"):
        found = minimize(
            falls, start, jac=True, bounds=ends, constraints=rules, method="SLSQP", options=options
        )
    t = np.maximum(np.nan_to_num(found.x), 0.0)
    t[:m] = t[:m] / t[:m].sum() if t[:m].sum() > 0.0 else 1.0 / m
    t[m:] *= min(1.0, penalty / max(float(t[m:].sum()), 1e-300)) if k else 1.0
    return np.asarray(t @ slopes), float(t @ levels), calls


# ------------------------------------------------------------ how far noisy losses are followed


def steadied(
    quadratics: GroupQuadratics,
    f: LossFunction,
    found: Least,
    find: Callable[[GroupQuadratics], Floats],
) -> Least:
    """(1 - t) c0 + t c1, c0 least squares of everybody and c1 what was found for an f that grows
    with every loss, where nothing is constrained: c1 follows the luckiest noise, and a largest loss
    the noisiest group. `find`: coefficients in other matrices of the same kind."""
    if len(quadratics.forms) < 2 or not quadratics.made["noise"].any():
        return found
    t = _followed(quadratics, f, find)
    if t == 1.0:
        return found
    mixed = (1.0 - t) * _whole(quadratics, raised=t > 0.0) + t * found.coefficients
    value = float(f.value(quadratics.losses(mixed)))
    return Least(mixed, value, min(found.lower, value), found.calls, Ended.NOISE)


def _followed(
    quadratics: GroupQuadratics, f: LossFunction, find: Callable[[GroupQuadratics], Floats]
) -> float:
    """t, of `STEPS` the one whose f is least in numbers that did not find it.

    With noise N(0, s^2) in M, and Z of the same distribution, M + p Z and M - Z / p have
    independent noise of variance s^2 (1 + p^2) and s^2 (1 + 1/p^2) (p is `PART`): data fission.
    Coefficients are found in the first and measured in the second, `TIMES` times over, Z by a fixed
    seed: nothing is asked of the rows, and nothing is drawn. A group's loss counts less `WITHIN` of
    its own deviations, and t > 0 has to be better than t = 0 by `BEYOND` of the difference's.
    """
    rng = np.random.default_rng(SEED)
    # the mean of the second halves has that much of the noise
    damped = math.sqrt(1.0 + 1.0 / (TIMES * PART**2))
    losses, own, apart = np.zeros((3, len(STEPS), len(quadratics.forms)))
    for _ in range(TIMES):
        first, second = halves(quadratics, rng, PART)
        whole, of_groups = _whole(first), find(first)
        for j, t in enumerate(STEPS):
            c = (1.0 - t) * whole + t * of_groups
            losses[j] += second.measured(c) / TIMES
            own[j] += damped * quadratics.deviation(c) / TIMES
            apart[j] += damped * quadratics.deviation(c, whole) / TIMES
    sure = np.maximum(losses - WITHIN * own.min(axis=0), 0.0)
    slopes = f.gradient(sure)
    spreads = np.maximum(*(np.linalg.norm(one * apart, axis=-1) for one in (slopes, slopes[0])))
    return STEPS[int((f.value(sure) + BEYOND * spreads).argmin())]


def halves(
    quadratics: GroupQuadratics, rng: np.random.Generator, part: float
) -> tuple[GroupQuadratics, GroupQuadratics]:
    """Two releases out of one: M + part Z and M - Z / part, Z of the noise's distribution, have
    independent noise, since cov(Z0 + part Z, Z0 - Z / part) = var Z0 - var Z = 0."""

    def drawn(shape: tuple[int, ...]) -> Floats:
        one = rng.standard_normal(shape)  # variance 1 on the diagonal, half of it beside
        return np.asarray((one + np.swapaxes(one, -1, -2)) / 2.0)

    made = quadratics.made
    total, of_total = made["total"], made["total_noise"]
    z = drawn(made["answer"].shape) * made["noise"][:, np.newaxis, np.newaxis]
    of_everybody = drawn(total.shape) * of_total if of_total and total is not None else None
    found = []
    for by, more in ((part, math.hypot(1.0, part)), (-1.0 / part, math.hypot(1.0, 1.0 / part))):
        whole = total if of_everybody is None else total + by * of_everybody
        noises = {"noise": made["noise"] * more, "total_noise": of_total * more}
        found.append(quadratics.again(answer=made["answer"] + by * z, total=whole, **noises))
    return found[0], found[1]


def everybody(quadratics: GroupQuadratics, *, raised: bool = True) -> GroupQuadratics:
    """All rows as one group, where their matrix is public or released. `raised`: in directions in
    which all rows together are spread less than one group's noise, as a group's are: losses of
    coefficients that are long there are not known in any group. Released ones are always raised, by
    as much as all groups together are."""
    made = quadratics.made
    noise, cells, ridge = made["noise"], made["cells"], made["ridge"]
    if made["total"] is None:
        return quadratics
    whole = np.asarray(made["total"]).reshape(1, *made["answer"].shape[1:])
    usual = RIDGE * math.sqrt(2.0 * whole.shape[-1])
    if not made["total_noise"]:
        size = usual * float(noise.max()) if ridge is None else ridge
        exact = np.zeros(1)
        return quadratics.again(
            answer=whole, noise=exact, cells=None, ridge=size if raised else 0.0
        )
    columns = columns_of(cells or NO_GROUPS)
    size = usual * float(noise.sum()) / len(columns) if ridge is None else ridge
    sums = np.array([whole[0], *(made["answer"][column].sum(axis=0) for column in columns)])
    of_sums = [float((noise[column] ** 2).sum()) for column in columns]
    # The total and the groups' sums are releases of one matrix: each counts by its precision
    # (docs/theory/mechanisms.md, release once).
    precision = 1.0 / np.array([made["total_noise"] ** 2, *of_sums])
    told = {"noise": np.full(1, float(precision.sum()) ** -0.5), "total_noise": 0.0, "ridge": size}
    mean = np.average(sums, axis=0, weights=precision)[np.newaxis]
    return quadratics.again(answer=mean, cells=None, total=None, **told)


def _whole(quadratics: GroupQuadratics, *, raised: bool = True) -> Floats:
    """Least squares of everybody."""
    one = everybody(quadratics, raised=raised)
    return one.best(np.ones(len(one.forms)))
