"""Privacy-loss distributions on a grid: from profiles, composed by one Fourier transform, read back
as epsilon or delta.

Every step only adds cost. The discrete pair connects the dots of the profile (Doroshenko, Ghazi,
Kamath, Kumar and Manurangsi 2022), so it dominates; what lies beyond the grid becomes an infinite
loss; a bound on the transform's rounding is added to every cell. The distribution is tilted by
e^{lambda loss} before the transform and back after it, with lambda at the saddle point, so that the
precision is relative to the tail that delta asks about: delta = 1e-30 is as good as 1e-3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from .curves import Array, Curve, Profile

MOST_CELLS = 1 << 21
TILTED_TAIL = 30.0
"""-log of the tilted mass that may lie outside the window of the transform (1e-13)."""
ROUNDING = 2.0**-53
NEGLIGIBLE = 1e-290


@dataclass(frozen=True, eq=False)
class Losses:
    """One direction of one pair: `mass[i]` at loss (low + i) * step, `never` at an infinite
    loss."""

    step: float
    low: int
    mass: Array
    never: float

    @property
    def losses(self) -> Array:
        return np.asarray((self.low + np.arange(len(self.mass))) * self.step)


def connect_the_dots(points: Array, forward: Array, backward: Array) -> tuple[Array, Array, float]:
    """Mass under P at `points` (from 0 up) and at `-points[1:]`, and at infinity, of a pair that
    dominates the profile.

    The dominating profile is piecewise linear in e^e, so a cell's mass is a difference of two
    slopes. Values need only be upper bounds: where they are not convex the mass is cut at 0, which
    only raises the profile.
    """
    size = max(len(forward), len(backward))
    gaps = np.diff(points[:size])
    start = max(forward[0], backward[0])

    def rising(values: Array) -> tuple[Array, float]:
        # A profile falls. Where computed bounds rise, the larger one holds before, too.
        values = np.maximum.accumulate(values[::-1])[::-1].copy()
        values[0] = start
        # In a cell H = A - B e^e, so P(loss = l) = e^l (B before l - B after l).
        falls, widths = -np.diff(values), np.minimum(gaps[: len(values) - 1], 700.0)
        mass = np.zeros(len(values))
        mass[1:] = falls / -np.expm1(-widths)
        mass[:-1] -= falls / np.expm1(widths)
        return np.maximum(mass[1:], 0.0), float(falls[0] / np.expm1(widths[0]))

    above, lost_above = rising(forward)
    below, lost_below = rising(backward)
    # The rest of the mass has loss 0, where it adds to no divergence.
    middle = max(0.0, 1.0 - float(start) - lost_above - lost_below)
    return (
        np.concatenate(([middle], above)),
        # A loss of -l has e^-l times the mass under P that the loss l has under Q.
        below * np.exp(-points[1 : len(below) + 1]),
        float(forward[-1]),
    )


def reach(curve: Curve, tail: float, top: float) -> float:
    """A loss beyond which the profile is at most `tail`, or does not fall any more."""
    high = 1e-9
    while high < min(1e9, top) and _at(curve, high) > tail:
        high *= 4
    if high >= top:
        return max(top, 1e-9)
    low = high / 4
    while high - low > 1e-2 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _at(curve, middle) > tail else (low, middle)
    return high


def _at(curve: Curve, e: float) -> float:
    return float(curve(np.array([e]))[0])


def on_grid(profile: Profile, step: float, tail: float) -> tuple[Losses, Losses]:
    """Both directions of a profile on multiples of `step`."""
    sizes = [
        _cells(reach(curve, tail, profile.top), step)
        for curve in (profile.forward, profile.backward)
    ]
    points: Array = np.asarray(step * np.arange(max(sizes) + 1), dtype=np.float64)
    forward, backward = (
        profile.forward(points[: sizes[0] + 1]),
        profile.backward(points[: sizes[1] + 1]),
    )
    out = []
    for one, other in ((forward, backward), (backward, forward)):
        above, below, never = connect_the_dots(points, one, other)
        out.append(_trimmed(step, -len(below), np.concatenate((below[::-1], above)), never))
    return out[0], out[1]


def _cells(end: float, step: float) -> int:
    """How many steps reach `end` for certain: a bounded loss that stays short of its bound would
    count as infinite."""
    cells = max(1, math.ceil(end / step))
    return cells if cells * step >= end else cells + 1


def costs_anything(profile: Profile) -> bool:
    """Whether the profile is above 0 anywhere: it falls, so whether it is at 0."""
    return _at(profile.forward, 0.0) > 0 or _at(profile.backward, 0.0) > 0


def _trimmed(step: float, low: int, mass: Array, never: float) -> Losses:
    """Without the empty cells at the ends; cells too light for arithmetic count as infinite
    losses."""
    heavy = np.flatnonzero(mass > NEGLIGIBLE)
    if not len(heavy) or not np.all(np.isfinite(mass)):  # losses too large for arithmetic
        return Losses(step, 0, np.array([NEGLIGIBLE]), 1.0)
    first, last = int(heavy[0]), int(heavy[-1]) + 1
    return Losses(
        step,
        low + first,
        mass[first:last],
        never + float(mass[:first].sum()) + float(mass[last:].sum()),
    )


def variance(profile: Profile, tail: float) -> float:
    """Twice the larger relative entropy: the variance of the loss when that is small.

    KL(P || Q) is the integral over e >= 0 of H(P || Q) + e^-e H(Q || P), since log is an integral
    of hockey sticks.
    """
    ends = [reach(curve, tail, profile.top) for curve in (profile.forward, profile.backward)]
    points: Array = np.concatenate((np.zeros(1), np.geomspace(1e-6 * max(ends), max(ends), 300)))
    ahead, behind, fall = profile.forward(points), profile.backward(points), np.exp(-points)
    return 2 * max(
        float(np.trapezoid(ahead + fall * behind, points)),
        float(np.trapezoid(behind + fall * ahead, points)),
    )


@dataclass(frozen=True, eq=False)
class Parts:
    """One direction of a composition: each loss distribution with how many times it is used, all on
    one grid."""

    step: float
    parts: tuple[tuple[Losses, int], ...]

    @property
    def never(self) -> float:
        return math.fsum(part.never * count for part, count in self.parts)

    def cumulant(self, tilt: float) -> float:
        """log E e^{tilt x total loss}, over finite losses."""
        return math.fsum(
            count * _log_mean_exp(part.mass, tilt * part.losses) for part, count in self.parts
        )


def _log_mean_exp(mass: Array, exponents: Array) -> float:
    # Losses rise along the grid, so the largest exponent is at one of its ends.
    top = float(max(exponents[0], exponents[-1]))
    total = float(mass @ np.exp(exponents - top))
    return top + math.log(total) if total > 0 else top - 745.0


@dataclass(frozen=True, eq=False)
class _Sketch:
    """A few hundred cells for each part: enough to choose the tilt and the window, which need no
    certainty."""

    parts: tuple[tuple[Array, Array, int], ...]

    @staticmethod
    def of(parts: Parts) -> _Sketch:
        out = []
        for part, count in parts.parts:
            tip = max(0, len(part.mass) - 128)
            starts = np.concatenate(
                (np.arange(0, tip, max(1, tip // 512)), np.arange(tip, len(part.mass)))
            )
            mass = np.add.reduceat(part.mass, starts)
            centre = np.add.reduceat(part.mass * part.losses, starts) / np.maximum(mass, 1e-300)
            keep = mass > 0
            out.append((mass[keep], centre[keep], count))
        return _Sketch(tuple(out))

    def cumulant(self, tilt: float) -> float:
        return math.fsum(
            count * _log_mean_exp(mass, tilt * losses) for mass, losses, count in self.parts
        )

    def deviation(self) -> float:
        """The standard deviation of the total, or so."""
        total = 0.0
        for mass, losses, count in self.parts:
            mean = float(mass @ losses) / float(mass.sum())
            total += count * max(float(mass @ (losses - mean) ** 2), abs(mean) ** 2 * 1e-6)
        return math.sqrt(total) or 1e-9


def _steepest(scale: float, step: float) -> float:
    """The largest tilt worth trying: beyond it one cell holds everything."""
    return max(min(1e3 / scale, 30.0 / step), 2e-3 / scale)


def _tilt_for_delta(sketch: _Sketch, delta: float, scale: float, most: float) -> float:
    tilts = np.geomspace(1e-3 / scale, most, 61)
    # log delta <= K(t) - t epsilon + gain(t), for every t > 0: the least epsilon that it permits.
    costs = [(sketch.cumulant(t) - math.log(delta) + _gain(t)) / t for t in tilts]
    return float(tilts[int(np.argmin(costs))])


def _gain(t: float) -> float:
    """What the hockey stick's 1 - e^-(loss - epsilon) adds to a Chernoff bound's logarithm, as in
    Renyi conversion."""
    return t * math.log(t / (t + 1)) - math.log(t + 1) if t > 0 else 0.0


def _tilt_for_epsilon(sketch: _Sketch, epsilon: float, scale: float, most: float) -> float:
    tilts = np.concatenate(([0.0], np.geomspace(1e-3 / scale, most, 61)))
    costs = [sketch.cumulant(t) - t * epsilon + _gain(t) for t in tilts]
    return float(tilts[int(np.argmin(costs))])


@dataclass(frozen=True, eq=False)
class _Tilted:
    """The total's mass is `mass` x exp(scale - tilt x (loss - centre)); `never` includes what lies
    above the window."""

    losses: Array
    mass: Array
    tilt: float
    centre: float
    scale: float
    never: float

    def sums(self) -> tuple[Array, Array, Array]:
        """Losses from where it can be computed, and from each cell up: the mass, and the mass x
        e^-(loss - centre)."""
        away = self.losses - self.centre
        first = int(np.searchsorted(away, -600.0 / (1.0 + self.tilt)))
        away = away[first:]
        mass = self.mass[first:] * np.exp(-self.tilt * away)
        from_top = np.cumsum(mass[::-1])[::-1]
        weighed = np.cumsum((mass * np.exp(-away))[::-1])[::-1]
        return self.losses[first:], from_top, weighed


def window_cells(parts: Parts, delta: float) -> int:
    """How many cells the transform for this delta needs."""
    sketch = _Sketch.of(parts)
    scale = sketch.deviation()
    low, high, _ = _window(
        parts, sketch, _tilt_for_delta(sketch, delta, scale, _steepest(scale, parts.step)), scale
    )
    return high - low


def _window(parts: Parts, sketch: _Sketch, tilt: float, scale: float) -> tuple[int, int, float]:
    """First and last cell of the window, and the exponent that certifies its upper end."""
    here = sketch.cumulant(tilt)
    # Chernoff under the tilted distribution: P(total > high) <= exp(K(tilt + u) - K(tilt) - u high),
    # which is e^-TILTED_TAIL at the smallest `high` below; the lower end is the same the other way.
    turns = np.geomspace(1e-2, 1e2, 41) / scale
    above = [(sketch.cumulant(tilt + t) - here + TILTED_TAIL) / t for t in turns]
    below = [(sketch.cumulant(tilt - t) - here + TILTED_TAIL) / t for t in turns]
    best = int(np.argmin(above))
    most = sum(count * (part.low + len(part.mass) - 1) for part, count in parts.parts)
    least = sum(count * part.low for part, count in parts.parts)
    # The sketch may only choose. What lies above the window is bounded by true cumulants.
    witness = tilt + float(turns[best])
    bound = (parts.cumulant(witness) - parts.cumulant(tilt) + TILTED_TAIL) / float(turns[best])
    high = min(most, math.ceil(min(bound / parts.step, 2.0**60)) + 1)
    low = max(least, math.floor(max(-min(below) / parts.step, -(2.0**60))) - 1)
    return low, max(high, low + 1), witness if high < most else math.inf


def _compose(parts: Parts, sketch: _Sketch, tilt: float, scale: float) -> _Tilted:
    low, high, witness = _window(parts, sketch, tilt, scale)
    cells = next_fast_len(high - low + 1, real=True)
    spectrum = np.ones(cells // 2 + 1, dtype=np.complex128)
    cumulant, uses = 0.0, 0
    for part, count in parts.parts:
        # Mass times e^(tilt x loss - K): the tail that delta is about is then of size 1, and what
        # the transform rounds is small beside it.
        exponents = tilt * part.losses
        one = _log_mean_exp(part.mass, exponents)
        weights = part.mass * np.exp(exponents - one)
        # Sums go round a circle of `cells`; the window says which turn a cell belongs to.
        where = (part.low + np.arange(len(weights))) % cells
        spectrum *= rfft(np.bincount(where, weights=weights, minlength=cells)) ** count
        cumulant, uses = cumulant + count * one, uses + count
    # What lies outside of the window comes round into it, and only adds. Below the window it would
    # count for nothing; above, `never` has it as well.
    mass = np.roll(irfft(spectrum, cells), -(low % cells))
    # Each of `uses` factors is off by a few roundings of the transform; the mean modulus bounds the
    # error of every cell.
    slack = 4 * ROUNDING * (uses + 1) * (math.log2(cells) + 4) * float(np.mean(np.abs(spectrum)))
    losses: Array = np.asarray((float(low) + np.arange(cells)) * parts.step, np.float64)
    never = parts.never
    if not math.isinf(witness):
        # Markov's bound on the mass above the window, which counts as an infinite loss.
        never += math.exp(min(0.0, parts.cumulant(witness) - witness * float(losses[-1])))
    weights = np.maximum(mass, 0.0)
    centre = float(weights @ losses / max(float(weights.sum()), 1e-300))
    return _Tilted(losses, weights + slack, tilt, centre, cumulant - tilt * centre, never)


def epsilon_of(parts: Parts, delta: float) -> float:
    """The least epsilon at delta > 0, from above; inf when delta does not cover the infinite
    losses."""
    if not parts.parts:
        return 0.0
    sketch = _Sketch.of(parts)
    scale = sketch.deviation()
    tilt = _tilt_for_delta(sketch, delta, scale, _steepest(scale, parts.step))
    found = math.inf
    for _ in range(4):
        total = _compose(parts, sketch, tilt, scale)
        if delta <= total.never:
            return math.inf
        losses, mass, weighed = total.sums()
        share = math.exp(min(700.0, math.log(delta - total.never) - total.scale))
        after = np.append(mass[1:], 0.0) - np.exp(
            np.minimum(losses - total.centre, 700.0)
        ) * np.append(weighed[1:], 0.0)
        # `after` is the divergence at the loss of each cell. The first cell where delta covers it
        # bounds epsilon from above.
        index = int(np.argmax(after <= share))
        found = min(found, float(losses[index]))
        if index > 0:
            # Within a cell the divergence is mass - e^epsilon x weighed, which is solved for
            # epsilon.
            left, weight = float(mass[index]) - share, float(weighed[index])
            inside = (
                total.centre + math.log(left / weight)
                if left > 0 and weight > 0
                else float(losses[index])
            )
            return max(0.0, min(float(losses[index]), max(float(losses[index - 1]), inside)))
        if found <= 0:
            return 0.0
        # The answer lies below the first cell that this tilt can show: a smaller tilt shows smaller
        # losses.
        tilt /= 8
    return max(0.0, found)


def delta_of(parts: Parts, epsilon: float) -> float:
    """The least delta at epsilon >= 0, from above."""
    if not parts.parts:
        return 0.0
    sketch = _Sketch.of(parts)
    scale = sketch.deviation()
    total = _compose(
        parts,
        sketch,
        _tilt_for_epsilon(sketch, epsilon, scale, _steepest(scale, parts.step)),
        scale,
    )
    losses, mass, weighed = total.sums()
    if epsilon < losses[0]:
        return 1.0
    index = int(np.searchsorted(losses, epsilon, side="right"))
    if index == len(losses):
        return min(1.0, total.never)
    share = float(mass[index]) - math.exp(min(epsilon - total.centre, 700.0)) * float(
        weighed[index]
    )
    if share <= 0:
        return min(1.0, total.never)
    return min(1.0, total.never + math.exp(min(0.0, total.scale + math.log(share))))


def both_ways(
    parts: Sequence[tuple[tuple[Losses, Losses], int]], step: float
) -> tuple[Parts, Parts]:
    """A composition in its two directions: every mechanism sees the same pair of neighbours in the
    same order."""
    return (
        Parts(step, tuple((pair[0], count) for pair, count in parts)),
        Parts(step, tuple((pair[1], count) for pair, count in parts)),
    )
