"""Privacy-loss distributions on a grid: from profiles, composed by one Fourier transform, read back
as epsilon or delta.

Every step only adds cost. The discrete pair connects the dots of the profile, so it dominates; what
lies beyond the grid becomes an infinite loss; a bound on the transform's rounding is added to every
cell. The distribution is tilted by e^{lambda loss} before the transform and back after it, with
lambda at the saddle point, so that the precision is relative to the tail that delta asks about:
delta = 1e-30 is as good as 1e-3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from .curves import Array, Profile, connect_the_dots, reach, variance

MOST_CELLS = 1 << 21
TILTED_TAIL = 30.0
"""-log of the tilted mass that may lie outside the window of the transform (1e-13)."""
ROUNDING = 2.0**-53
NEGLIGIBLE = 1e-290
FINE = 0.03
"""The grid's step over the deviation of one loss: rounding adds step^2/6 to the variance, 1.5e-4 of
it."""
TOTAL_FINE = 1e-3
"""The same over the deviation of the total."""


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
        """Of each cell."""
        return np.asarray((self.low + np.arange(len(self.mass))) * self.step)


def on_grid(profile: Profile, step: float, tail: float) -> tuple[Losses, Losses]:
    """Both directions of a profile on multiples of `step`."""
    sizes = [_cells(reach(side, tail, profile.top), step) for side in profile.sides]
    points: Array = np.asarray(step * np.arange(max(sizes) + 1), dtype=np.float64)
    values = [side(points[: size + 1]) for side, size in zip(profile.sides, sizes, strict=True)]
    out = []
    for one, other in (values, values[::-1]):
        above, below, never = connect_the_dots(points, one, other)
        out.append(_trimmed(step, -len(below), np.concatenate((below[::-1], above)), never))
    return out[0], out[1]


def _cells(end: float, step: float) -> int:
    """How many steps reach `end` for certain: a bounded loss that stays short of its bound would
    count as infinite."""
    cells = max(1, math.ceil(end / step))
    return cells if cells * step >= end else cells + 1


def _trimmed(step: float, low: int, mass: Array, never: float) -> Losses:
    """Without the empty cells at the ends; cells too light for arithmetic count as infinite
    losses."""
    heavy = np.flatnonzero(mass > NEGLIGIBLE)
    if not len(heavy) or not np.all(np.isfinite(mass)):  # losses too large for arithmetic
        return Losses(step, 0, np.array([NEGLIGIBLE]), 1.0)
    first, last = int(heavy[0]), int(heavy[-1]) + 1
    lost = float(mass[:first].sum()) + float(mass[last:].sum())
    return Losses(step, low + first, mass[first:last], never + lost)


def step_for(uses: Sequence[tuple[Profile, int]], tail: float) -> float:
    """Small against one loss and against the total, not so small that the cells run out; a bounded
    loss falls on the grid."""
    times = sum(count for _, count in uses)
    total = math.fsum(count * variance(profile, tail) for profile, count in uses)
    step = min(FINE * math.sqrt(total / times), TOTAL_FINE * math.sqrt(total))
    if step > 0:
        step = float(2.0 ** (math.floor(4 * math.log2(step)) / 4))
    reached = [reach(side, tail, profile.top) for profile, _ in uses for side in profile.sides]
    step = max(step, math.fsum(reached) / MOST_CELLS, max(reached) * 1e-6)
    least = min((profile.top for profile, _ in uses if profile.top <= max(reached)), default=0.0)
    if least <= step:
        return step
    cells = math.ceil(least / step)
    step = least / cells
    # A bound that fell short of its own cell would be put one cell higher.
    while step * cells < least:
        step = math.nextafter(step, math.inf)
    return step


@dataclass(frozen=True, eq=False)
class Total:
    """One direction of a composition: each loss distribution with how many times it is used, all on
    one grid."""

    step: float
    parts: tuple[tuple[Losses, int], ...]

    def epsilon(self, delta: float) -> float:
        """The least epsilon at delta > 0, from above; inf when delta does not cover the infinite
        losses."""
        if not self.parts:
            return 0.0
        tilt, found = self._tilt_for_delta(delta), math.inf
        for _ in range(4):
            total = self._composed(tilt)
            if delta <= total.never:
                return math.inf
            losses, mass, weighed = total.sums()
            share = math.exp(min(700.0, math.log(delta - total.never) - total.scale))
            after = np.append(mass[1:], 0.0) - np.exp(
                np.minimum(losses - total.centre, 700.0)
            ) * np.append(weighed[1:], 0.0)
            # `after` is the divergence at the loss of each cell. The first cell where delta covers
            # it bounds epsilon from above.
            index = int(np.argmax(after <= share))
            end = float(losses[index])
            found = min(found, end)
            if index > 0:
                # Within a cell the divergence is mass - e^epsilon x weighed, which is solved for
                # epsilon.
                left, weight = float(mass[index]) - share, float(weighed[index])
                inside = left > 0 and weight > 0
                exact = total.centre + math.log(left / weight) if inside else end
                return max(0.0, min(end, max(float(losses[index - 1]), exact)))
            if found <= 0:
                return 0.0
            # The answer lies below the first cell that this tilt can show: a smaller tilt shows
            # smaller losses.
            tilt /= 8
        return max(0.0, found)

    def delta(self, epsilon: float) -> float:
        """The least delta at epsilon >= 0, from above."""
        if not self.parts:
            return 0.0
        total = self._composed(self._tilt_for_epsilon(epsilon))
        losses, mass, weighed = total.sums()
        if epsilon < losses[0]:
            return 1.0
        index, share = int(np.searchsorted(losses, epsilon, side="right")), 0.0
        if index < len(losses):
            beyond = math.exp(min(epsilon - total.centre, 700.0)) * float(weighed[index])
            share = float(mass[index]) - beyond
        more = math.exp(min(0.0, total.scale + math.log(share))) if share > 0 else 0.0
        return min(1.0, total.never + more)

    def cells(self, delta: float) -> int:
        """How many cells the transform for this delta needs."""
        low, high, _ = self._window(self._tilt_for_delta(delta))
        return high - low

    def cumulant(self, tilt: float) -> float:
        """log E e^{tilt x total loss}, over finite losses."""
        return math.fsum(
            count * _log_mean_exp(part.mass, tilt * part.losses) for part, count in self.parts
        )

    # The tilt and the window need no certainty, so a few hundred cells for each part choose them.

    @cached_property
    def _sketch(self) -> list[tuple[Array, Array, int]]:
        out = []
        for part, count in self.parts:
            tip = max(0, len(part.mass) - 128)
            starts = np.concatenate(
                (np.arange(0, tip, max(1, tip // 512)), np.arange(tip, len(part.mass)))
            )
            mass = np.add.reduceat(part.mass, starts)
            centre = np.add.reduceat(part.mass * part.losses, starts) / np.maximum(mass, 1e-300)
            out.append((mass[mass > 0], centre[mass > 0], count))
        return out

    def _about(self, tilt: float) -> float:
        """The cumulant of the sketch."""
        return math.fsum(n * _log_mean_exp(mass, tilt * losses) for mass, losses, n in self._sketch)

    @cached_property
    def _scale(self) -> float:
        """The standard deviation of the total, or so."""
        total = 0.0
        for mass, losses, count in self._sketch:
            mean = float(mass @ losses) / float(mass.sum())
            total += count * max(float(mass @ (losses - mean) ** 2), abs(mean) ** 2 * 1e-6)
        return math.sqrt(total) or 1e-9

    def _tilt_for_delta(self, delta: float) -> float:
        # log delta <= K(t) - t epsilon + gain(t), for every t > 0: the least epsilon that it
        # permits.
        gone = math.log(delta)
        return self._best_tilt((), lambda t: (self._about(t) - gone + _gain(t)) / t)

    def _tilt_for_epsilon(self, epsilon: float) -> float:
        return self._best_tilt((0.0,), lambda t: self._about(t) - t * epsilon + _gain(t))

    def _best_tilt(self, more: tuple[float, ...], cost: Callable[[float], float]) -> float:
        # Beyond the steepest one cell holds everything.
        steepest = max(min(1e3 / self._scale, 30.0 / self.step), 2e-3 / self._scale)
        tilts = [*more, *np.geomspace(1e-3 / self._scale, steepest, 61)]
        return float(tilts[int(np.argmin([cost(t) for t in tilts]))])

    def _window(self, tilt: float) -> tuple[int, int, float]:
        """First and last cell of the window, and the exponent that certifies its upper end."""
        here, step = self._about(tilt), self.step
        # Chernoff under the tilted distribution: P(total > high) <= exp(K(tilt + u) - K(tilt) - u
        # high), which is e^-TILTED_TAIL at the smallest `high` below; the lower end is the same the
        # other way.
        turns = np.geomspace(1e-2, 1e2, 41) / self._scale
        above = [(self._about(tilt + t) - here + TILTED_TAIL) / t for t in turns]
        below = [(self._about(tilt - t) - here + TILTED_TAIL) / t for t in turns]
        turn = float(turns[int(np.argmin(above))])
        most = sum(count * (part.low + len(part.mass) - 1) for part, count in self.parts)
        least = sum(count * part.low for part, count in self.parts)
        # The sketch may only choose. What lies above the window is bounded by true cumulants.
        witness = tilt + turn
        bound = (self.cumulant(witness) - self.cumulant(tilt) + TILTED_TAIL) / turn
        high = min(most, math.ceil(min(bound / step, 2.0**60)) + 1)
        low = max(least, math.floor(max(-min(below) / step, -(2.0**60))) - 1)
        return low, max(high, low + 1), witness if high < most else math.inf

    def _composed(self, tilt: float) -> _Tilted:
        low, high, witness = self._window(tilt)
        cells = next_fast_len(high - low + 1, real=True)
        spectrum = np.ones(cells // 2 + 1, dtype=np.complex128)
        cumulant, uses = 0.0, 0
        for part, count in self.parts:
            # Mass times e^(tilt x loss - K): the tail that delta is about is then of size 1, and
            # what the transform rounds is small beside it.
            exponents = tilt * part.losses
            one = _log_mean_exp(part.mass, exponents)
            weights = part.mass * np.exp(exponents - one)
            # Sums go round a circle of `cells`; the window says which turn a cell belongs to.
            where = (part.low + np.arange(len(weights))) % cells
            spectrum *= rfft(np.bincount(where, weights=weights, minlength=cells)) ** count
            cumulant, uses = cumulant + count * one, uses + count
        # What lies outside of the window comes round into it, and only adds. Below the window it
        # would count for nothing; above, `never` has it as well.
        mass = np.roll(irfft(spectrum, cells), -(low % cells))
        # Each of `uses` factors is off by a few roundings of the transform; the mean modulus bounds
        # the error of every cell.
        size = float(np.mean(np.abs(spectrum)))
        slack = 4 * ROUNDING * (uses + 1) * (math.log2(cells) + 4) * size
        losses: Array = np.asarray((float(low) + np.arange(cells)) * self.step, np.float64)
        never = math.fsum(part.never * count for part, count in self.parts)
        if not math.isinf(witness):
            # Markov's bound on the mass above the window, which counts as an infinite loss.
            never += math.exp(min(0.0, self.cumulant(witness) - witness * float(losses[-1])))
        weights = np.maximum(mass, 0.0)
        centre = float(weights @ losses / max(float(weights.sum()), 1e-300))
        return _Tilted(losses, weights + slack, tilt, centre, cumulant - tilt * centre, never)


def _gain(t: float) -> float:
    """What the hockey stick's 1 - e^-(loss - epsilon) adds to a Chernoff bound's logarithm, as in
    Renyi conversion."""
    return t * math.log(t / (t + 1)) - math.log(t + 1) if t > 0 else 0.0


def _log_mean_exp(mass: Array, exponents: Array) -> float:
    # Losses rise along the grid, so the largest exponent is at one of its ends.
    top = float(max(exponents[0], exponents[-1]))
    total = float(mass @ np.exp(exponents - top))
    return top + math.log(total) if total > 0 else top - 745.0


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
