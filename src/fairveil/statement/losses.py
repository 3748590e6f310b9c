"""What mechanisms with other losses than Gaussian ones cost: profiles, moments, and compositions on a
grid. docs/statement_spec.md, sections 4.3 to 4.5. Loaded only for events that need it.

Guarantees (tests/statement/test_rule.py).
1. Nothing here is below the cost: each mechanism is replaced by a pair that dominates it, grids round
   losses up, what a grid does not hold is an infinite loss, and a bound on the transform's rounding
   is added to every cell.
"""

from __future__ import annotations

import cmath
import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from .counts import (
    LEAVES,
    MOST_ATOMS,
    ROUNDED,
    ZERO,
    Event,
    Inventory,
    Joint,
    batch,
    gaussian_delta,
    inside,
    inventory,
    joint,
    less,
    log_sum,
    log_tail,
    product,
)

Curve = Callable[[float], float]
ORDERS: tuple[float, ...] = tuple(1.0 + 1e-4 * 10.0 ** (k * 11 / 440) for k in range(441))
MOST_CELLS = 1 << 18
FINE, TOTAL_FINE = 0.02, 7e-4
"""The grid's step over the deviation of one loss, and of the total."""
FAR = 1e-200


class Profile(NamedTuple):
    """Hockey-stick divergences of a pair at e^e, e >= 0, in both directions; both are flat beyond
    `top`."""

    forward: Curve
    backward: Curve
    top: float = math.inf


def of_joint(one: Joint) -> Profile:
    """The profile of a joint release; one with discrete Gaussians, by its moments."""
    mu, s, atoms, rho = one
    if rho:
        return of_moments(tuple(_joint_moment(one, a) for a in ORDERS), 0.0)
    if s and mu == 0 and atoms == ZERO:
        return _same(lambda e: -math.expm1(min(e - s, 0.0) / 2), s)
    if s:  # a Laplace as its losses, each rounded up to one of 256
        width = 2 * s / MOST_ATOMS
        edges = [s - k * width for k in range(1, MOST_ATOMS + 1)]
        falls = [math.exp((edge - s) / 2) / 2 for edge in (s, *edges)]
        middle = [
            (edge + width, a - b)
            for edge, (a, b) in zip(edges, itertools.pairwise(falls), strict=False)
        ]
        atoms = product(atoms, ((s, 0.5), *middle, (-s, math.exp(-s) / 2)))
    top = math.inf if mu > 0 else max(loss for loss, _ in atoms)
    if mu > 0 and atoms == ZERO:
        return _same(lambda e: gaussian_delta(e, mu), top)
    if mu > 0:
        return _same(lambda e: math.fsum(p * _mirrored(e - loss, mu) for loss, p in atoms), top)
    rising = sorted(atoms)
    losses = [loss for loss, _ in rising]
    masses = list(itertools.accumulate(p for _, p in reversed(rising)))[::-1]
    weights = list(itertools.accumulate(p * math.exp(-loss) for loss, p in reversed(rising)))[::-1]

    def steps(e: float) -> float:
        at = bisect_right(losses, e)
        return max(0.0, masses[at] - math.exp(e) * weights[at]) if at < len(losses) else 0.0

    return _same(steps, top)


def _mirrored(e: float, mu: float) -> float:
    if e >= 0:
        return gaussian_delta(e, mu)
    return -math.expm1(e) + math.exp(e) * gaussian_delta(-e, mu)


def _same(curve: Curve, top: float = math.inf) -> Profile:
    return Profile(curve, curve, top)


def pure(epsilon: float, delta: float = 0.0) -> Profile:
    """Any (epsilon, delta)-private mechanism."""
    share = (1 - delta) / (1 + math.exp(-epsilon))
    return _same(lambda e: delta + share * -math.expm1(min(e - epsilon, 0.0)), epsilon)


def sampled(event: Event, neighbours: str) -> Profile:
    """One secret Poisson batch (theory T2, T3 and the generic bound)."""
    q = float(event[1])
    alone, replaced = batch(event, neighbours)
    base = of_joint(alone)

    def amplified(e: float, top: float) -> float:
        if e < 30:  # noqa: SIM108  # one long line would say less
            at = math.log1p(math.expm1(e) / q)
        else:
            at = e - math.log(q) + math.log1p(-(1 - q) * math.exp(-e))
        return max(at, top) if e >= bound(top) else at

    def bound(top: float) -> float:
        return math.log1p(q * math.expm1(top)) if top <= 700 else top

    if replaced is None:

        def add(e: float) -> float:
            rest = q - (1 - q) * math.expm1(min(e, 700.0))
            return rest * base.forward(max(e + math.log(q / rest), 0.0)) if rest > 0 else 0.0

        return Profile(lambda e: q * base.forward(amplified(e, base.top)), add, bound(base.top))
    if alone[1:] == (0.0, ZERO, 0.0):
        return _same(_replaced(alone[0], replaced[0], q))
    other = of_joint(replaced)
    whole = max(base.top, other.top)

    def generic(e: float) -> float:
        at, b = amplified(e, whole), q / (1 - (1 - q) * math.exp(-e))
        return q * ((1 - b) * base.forward(at) + b * other.forward(at))

    return _same(generic, bound(whole))


def _replaced(c: float, d: float, q: float) -> Curve:
    log_k = math.log1p(-q) - math.log(q) if q < 1 else -math.inf

    def curve(e: float) -> float:
        first = log_k + e + math.log(-math.expm1(-e)) if e > 0 else -math.inf
        one, two = first - c * c / 2, e - d * d / 2
        t = min(-two / d, -one / c if c > 0 else math.inf)
        for _ in range(40):
            a, b = one + c * t, two + d * t
            total = log_sum(a, b)
            step = total / (c * math.exp(a - total) + d * math.exp(b - total))
            t -= step
            if abs(step) <= 1e-13 * abs(t):
                break
        lost = log_sum(first + log_tail(c - t), e + log_tail(d - t))
        return q * less(log_tail(-t), lost)

    return curve


def of_moments(values: tuple[float, ...], leak: float) -> Profile:
    """What divergences at `ORDERS` say of the profile: chords, in e^e, through their bounds."""
    falls = [
        (a - 1) * (v + math.log1p(-1 / a)) - math.log(a)
        for a, v in zip(ORDERS, values, strict=False)
    ]

    def at(e: float) -> float:
        return min(fall - (a - 1) * e for a, fall in zip(ORDERS, falls, strict=False))

    top = values[-1] + 1e-5
    least = min(1e-7, top / 2)
    points = [0.0, *(least * (top / least) ** (k / 1499) for k in range(1500))]
    bounds = [math.exp(min(0.0, at(e))) for e in points]
    bounds[0] = min(bounds[0], math.sqrt(max(values[0], 1e-290) / 2) * (1 + ROUNDED))
    bounds = [min(1.0, value + leak) for value in itertools.accumulate(bounds, min)]

    def curve(e: float) -> float:
        if e >= points[-1]:
            return bounds[-1]
        k = min(bisect_right(points, e), len(points) - 1) - 1
        share = math.expm1(e - points[k]) / math.expm1(points[k + 1] - points[k])
        return bounds[k] + max(0.0, min(share, 1.0)) * (bounds[k + 1] - bounds[k])

    return _same(curve, top)


@cache
def profile(event: Event, neighbours: str) -> Profile:
    """The profile of one mechanism of an inventory."""
    kind = event[0]
    if kind == "poisson-sampled":
        return sampled(event, neighbours)
    if kind == "exponential":
        return _same(
            lambda e: (
                math.expm1(min(e - event[1], 0.0) / 2) ** 2 / -math.expm1(-min(event[1], 700.0))
            ),
            event[1],
        )
    if kind in ("pure", "approximate"):
        return pure(*event[1:])
    if kind in LEAVES:
        return of_joint(joint([(event, 1.0)], "add-remove"))
    if kind == "visibly-sampled":
        within, q = inventory(event[2], neighbours), event[1]
        lone = len(within.others) == 1 and within.others[0][1] == 1 and not within.square
        if not within.others or lone:
            base = (
                profile(within.others[0][0], neighbours)
                if lone
                else of_joint((math.sqrt(within.square), 0.0, ZERO, 0.0))
            )
            return Profile(lambda e: q * base.forward(e), lambda e: q * base.backward(e), base.top)
    values, leak, _ = moments(event, neighbours)
    return of_moments(values, leak)


# ---- moments

Moments = tuple[tuple[float, ...], float, float]
"""Renyi divergences at `ORDERS`, a probability that is lost to delta, and a total variation."""


def _choice(epsilon: float, a: float) -> float:
    """The worst pair of losses t and t - epsilon (theory T6)."""
    x, most = (a - 1) * epsilon, min(epsilon, a * epsilon * epsilon / 8)
    if x > 600 or epsilon < 1e-7:
        return most
    ratio = (a - 1) * math.expm1(-a * epsilon) / (a * math.expm1(-x))
    below = max(-epsilon, min(0.0, math.log(ratio)))
    p = max(0.0, min(1.0, -math.expm1(below) / -math.expm1(-epsilon)))
    up, down = (a - 1) * (epsilon + below), (a - 1) * below
    moment = p * math.expm1(min(up, 600.0)) + (1 - p) * math.expm1(down)
    return min(most, math.log1p(max(0.0, moment)) / (a - 1) + 2e-15 * epsilon)


def _joint_moment(one: Joint, a: float) -> float:
    mu, s, atoms, rho = one
    out = a * (mu * mu / 2 + rho)
    if s:
        rest = math.expm1(-(2 * a - 1) * s) * (a - 1) / (2 * a - 1)
        out += min(s + math.log1p(rest) / (a - 1) + 1e-15 * s, s, a * s * s / 2)
    if atoms != ZERO:
        most = max(loss for loss, _ in atoms)
        out += min(_log_moment(atoms, a - 1) / (a - 1) + 1e-13 * most, most, a * most * most / 2)
    return out


def _log_moment(atoms: Iterable[tuple[float, float]], step: float) -> float:
    """log sum of mass x e^(step x loss); mass that is missing has loss 0."""
    some = [(loss, mass) for loss, mass in atoms if mass > 0]
    top = step * max(loss for loss, _ in some)
    if top < 600:
        return math.log1p(max(0.0, math.fsum(p * math.expm1(step * loss) for loss, p in some)))
    return top + math.log(math.fsum(p * math.exp(step * loss - top) for loss, p in some))


@cache
def moments(event: Event, neighbours: str, order: float | None = None) -> Moments:
    """Of one mechanism of an inventory; `order`: at this one alone."""
    kind, orders = event[0], ORDERS if order is None else (order,)
    if kind == "zero-concentrated":
        return tuple(a * event[1] for a in orders), 0.0, 0.0
    if kind == "exponential":
        return tuple(_choice(event[1], a) for a in orders), 0.0, 0.0
    if kind in ("pure", "approximate", *LEAVES):
        if kind in LEAVES:
            one = joint([(event, 1.0)], "add-remove")
        else:  # randomised response; delta is lost
            more = 1 / (1 + math.exp(-event[1]))
            one = (0.0, 0.0, ((event[1], more), (-event[1], math.exp(-event[1]) * more)), 0.0)
        leak = event[2] if kind == "approximate" else 0.0
        return tuple(_joint_moment(one, a) for a in orders), leak, 0.0
    if kind == "poisson-sampled":
        alone, replaced = batch(event, neighbours)
        pairs, leak = _uneven(profile(event, neighbours))
        return (
            tuple(
                min(
                    _joint_moment(replaced or alone, a),
                    max(_log_moment(pair, a - 1) / (a - 1) for pair in pairs),
                )
                for a in orders
            ),
            leak,
            0.0,
        )
    selected = kind == "private-selection"
    values, leak, error = total_moments(
        inventory(inside(event)[0], neighbours), neighbours, None if selected else order
    )
    if not selected:
        q = event[1]
        mixed = (
            _mixed((a - 1) * value, q) / (a - 1) for a, value in zip(orders, values, strict=False)
        )
        return tuple(mixed), q * leak, error
    whole = _selected(values, event[2], event[3])
    at = None if order is None else min(range(441), key=lambda k: abs(ORDERS[k] - order))
    out = whole if at is None else (whole[at],)
    return out, 0.0, min(1.0, event[2] * (leak + error))


def _mixed(x: float, q: float) -> float:
    if x < 30:
        return math.log1p(q * math.expm1(x))
    return x + math.log(q) if q == 1 else log_sum(x + math.log(q), math.log1p(-q))


def _selected(values: tuple[float, ...], mean: float, shape: float) -> tuple[float, ...]:
    """The best of a random number of runs (Papernot and Steinke 2022, Theorems 2 and 6)."""
    if math.isinf(shape):
        falls = [
            (a - 1) * (v + math.log1p(-1 / a)) - math.log(a)
            for a, v in zip(ORDERS, values, strict=False)
        ]
        out = []
        for a, value in zip(ORDERS, values, strict=False):
            hat = math.log1p(1 / (a - 1))
            own = math.exp(
                min(0.0, min(f - (b - 1) * hat for b, f in zip(ORDERS, falls, strict=False)))
            )
            out.append(value + mean * own + max(0.0, math.log(mean)) / (a - 1))
    else:
        low, high = -math.log(2 * (shape + 2) * mean) - 60.0, 0.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if _mean_runs(middle, shape) > mean else (low, middle)
        worst_order = min((1 - 1 / a) * v - low / a for a, v in zip(ORDERS, values, strict=False))
        out = [
            v + (1 + shape) * worst_order + math.log(mean) / (a - 1)
            for a, v in zip(ORDERS, values, strict=False)
        ]
    return tuple(itertools.accumulate(reversed(out), min))[::-1]


def _mean_runs(log_gamma: float, shape: float) -> float:
    if log_gamma == 0:
        return 1.0
    down = -math.expm1(log_gamma) * math.exp(-log_gamma)
    if shape * -log_gamma < 1e-12:
        return down / -log_gamma
    return down * shape / -math.expm1(shape * log_gamma)


def total_moments(total: Inventory, neighbours: str, order: float | None = None) -> Moments:
    """Of everything: divergences, leaks and errors add."""
    orders = ORDERS if order is None else (order,)
    values, leak, error = [a * total.square / 2 for a in orders], 0.0, total.error
    for event, times in total.others:
        more, lost, off = moments(event, neighbours, order)
        values = [v + times * m for v, m in zip(values, more, strict=False)]
        leak, error = leak + times * lost, error + times * off
    return tuple(values), leak, min(1.0, error)


def moments_epsilon(values: Iterable[float], orders: Iterable[float], delta: float) -> float:
    """The conversion of Canonne, Kamath and Steinke 2020, Prop. 12."""
    costs = (
        v + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)
        for v, a in zip(values, orders, strict=False)
    )
    return max(0.0, min(costs))


# ---- losses on a grid


def reach(curve: Curve, tail: float, top: float) -> float:
    """A loss beyond which the profile is at most `tail`, or flat."""
    high = 1e-9
    while high < min(1e9, top) and curve(high) > tail:
        high *= 4
    if high >= top:
        return max(top, 1e-9)
    low = high / 4
    while high - low > 1e-2 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > tail else (low, middle)
    return high


class Losses(NamedTuple):
    """`mass[i]` at the loss number low + i of a list of losses and their negatives, `never` at an
    infinite loss; used `times` times."""

    low: int
    mass: list[float]
    never: float
    times: int = 1


def connect(
    one: Profile, points: list[float], ends: list[float], times: int = 1
) -> tuple[Losses, Losses]:
    """Both directions of the pair whose profile is the chord, in e^e, through the values at these
    points, up to an end each (Doroshenko et al. 2022)."""
    sides = [
        [side(e) for e in points[: bisect_right(points, end) + 1]]
        for side, end in zip(one[:2], ends, strict=False)
    ]
    start = max(side[0] for side in sides)

    def rising(values: list[float]) -> tuple[list[float], float]:
        falling = list(itertools.accumulate(reversed(values), max))[::-1]
        falling[0] = start
        mass = [0.0] * len(falling)
        for k, (here, there) in enumerate(itertools.pairwise(falling)):
            width = min(points[k + 1] - points[k], 700.0)
            mass[k + 1] += (here - there) / -math.expm1(-width)
            mass[k] -= (here - there) / math.expm1(width)
        return [max(0.0, one) for one in mass[1:]], -mass[0]

    above = [rising(side) for side in sides]
    middle = max(0.0, 1.0 - start - above[0][1] - above[1][1])
    # what is above in one direction is below in the other
    under = [[m * math.exp(-e) for m, e in zip(up, points[1:], strict=False)] for up, _ in above]
    first, second = (
        Losses(-len(under[1 - k]), [*under[1 - k][::-1], middle, *up], sides[k][-1], times)
        for k, (up, _) in enumerate(above)
    )
    return first, second


def _uneven(one: Profile) -> tuple[list[list[tuple[float, float]]], float]:
    """Both directions on points that are close at small losses and go far: for moments."""
    ends = [reach(side, FAR, one.top) for side in one[:2]]
    scale = min(math.sqrt(variance(one, 1e-20)), max(ends))
    even, low, high = min(8 * scale, max(ends)), 1e-4 * scale, 1.001 * max(ends)
    close = (even * k / 1199 for k in range(1200))
    points = sorted({*close, *(low * (high / low) ** (k / 1199) for k in range(1200))})
    around = {k: math.copysign(points[abs(k)], k) for k in range(-len(points) + 1, len(points))}
    pair = connect(one, points, ends)
    losses = [[(around[side.low + k], p) for k, p in enumerate(side.mass)] for side in pair]
    return losses, max(side.never for side in pair)


def variance(one: Profile, tail: float) -> float:
    """Twice the larger relative entropy, an integral of the profile."""
    end = max(reach(side, tail, one.top) for side in one[:2])
    points = [0.0, *(end * 10 ** (6 * (k / 299 - 1)) for k in range(300))]
    ahead, behind = ([side(e) for e in points] for side in one[:2])
    both = [
        [a + math.exp(-e) * b for a, b, e in zip(first, second, points, strict=False)]
        for first, second in ((ahead, behind), (behind, ahead))
    ]
    return 2 * max(
        math.fsum(
            (points[k + 1] - points[k]) * (side[k] + side[k + 1]) / 2
            for k in range(len(points) - 1)
        )
        for side in both
    )


Cells = list[tuple[float, float]]


def cumulant(parts: Iterable[tuple[Cells, int]], tilt: float) -> float:
    """log E e^(tilt x total loss), over finite losses; parts as (loss, mass) and how often."""
    total = 0.0
    for cells, count in parts:
        top = max(tilt * cells[0][0], tilt * cells[-1][0])
        inner = math.fsum(p * math.exp(tilt * loss - top) for loss, p in cells)
        total += count * (top + (math.log(inner) if inner > 0 else -745.0))
    return total


def _coarse(cells: Cells) -> Cells:
    """A few hundred of them: enough to choose by."""
    out, width = [], max(1, len(cells) // 600)
    for at in range(0, len(cells), width):
        group = cells[at : at + width]
        whole = math.fsum(p for _, p in group)
        out.append((math.fsum(loss * p for loss, p in group) / whole, whole))
    return out


@cache
def _roots(size: int, way: int) -> list[complex]:
    return [cmath.rect(1.0, way * 2 * math.pi * k / size) for k in range(size // 2)]


def transform(values: list[complex], way: int) -> list[complex]:
    """The discrete Fourier transform of a power of two of values; `way` -1 or 1."""
    if len(values) == 2:
        return [values[0] + values[1], values[0] - values[1]]
    first, second = transform(values[::2], way), transform(values[1::2], way)
    turned = [root * z for root, z in zip(_roots(len(values), way), second, strict=True)]
    pairs = list(zip(first, turned, strict=True))
    return [a + b for a, b in pairs] + [a - b for a, b in pairs]


def composed_epsilon(parts: list[Losses], step: float, delta: float, scale: float) -> float | None:
    """The least epsilon at delta of a composition, from above; None where the cells run out.
    `scale`: about the deviation of the total."""
    room = delta - math.fsum(part.never * part.times for part in parts)
    if room <= 0:
        return math.inf
    exact = [
        ([(step * (low + k), p) for k, p in enumerate(mass) if p > 0], times)
        for low, mass, _, times in parts
    ]
    sketch = [(_coarse(cells), times) for cells, times in exact]

    def about(tilt: float) -> float:
        return cumulant(sketch, tilt)

    # any tilt gives a bound: the one at which a Chernoff bound is least gives a good one
    most = max(min(1e3 / scale, 30.0 / step), 2e-3 / scale)
    tilts = [1e-3 / scale * (most * scale * 1e3) ** (k / 40) for k in range(41)]
    tilt = min(
        tilts,
        key=lambda t: (
            (about(t) - math.log(delta) + t * math.log(t / (t + 1)) - math.log(t + 1)) / t
        ),
    )
    turns = [1e-2 * 10 ** (k / 5) / scale for k in range(21)]
    witness = min(turns, key=lambda t: (about(tilt + t) - about(tilt)) / t + 35.0 / t)
    least_cell, most_cell = (
        sum(part.times * (part.low + end * (len(part.mass) - 1)) for part in parts)
        for end in (0, 1)
    )
    here, there = (cumulant(exact, tilt + t) for t in (0.0, witness))
    high = min(most_cell, math.ceil(((there - here) + 35.0) / witness / step) + 1)
    low = -min((about(tilt - t) - about(tilt) + 35.0) / t for t in turns)
    low = max(least_cell, min(math.floor(low / step) - 1, high - 1))
    if high - low + 1 > MOST_CELLS:
        return None
    size = 1 << (high - low).bit_length()
    if high < most_cell:
        # Markov's bound on what lies above the window, which counts as an infinite loss
        room -= math.exp(min(0.0, there - (tilt + witness) * high * step))
        if room <= 0:
            return math.inf
    spectrum = [1.0 + 0j] * size
    for (cells, times), (first, mass, _, _) in zip(exact, parts, strict=True):
        own, around = cumulant([(cells, 1)], tilt), [0j] * size
        for k, p in enumerate(mass):
            around[(first + k) % size] += p * math.exp(tilt * step * (first + k) - own) if p else 0
        powers = (_power(z, times) for z in transform(around, -1))
        spectrum = [z * w for z, w in zip(spectrum, powers, strict=True)]
    uses = sum(part.times for part in parts)
    off = 2.0**-50 * (uses + 1) * (math.log2(size) + 4) * math.fsum(map(abs, spectrum)) / size
    found = transform(spectrum, 1)
    share = math.log(room) - here
    # mass beyond a cell, and the same x e^-(loss - that of the cell), both x e^-(tilt x loss)
    beyond, weighed, fall, ease = 0.0, 0.0, math.exp(tilt * step), math.exp(step)
    for cell in range(high, low - 1, -1):
        loss = cell * step
        if beyond > 0:
            asked = math.exp(min(700.0, share + tilt * loss))
            if beyond - weighed > asked:
                return max(0.0, min(loss + math.log((beyond - asked) / weighed), loss + step))
        if loss <= 0:
            return 0.0
        more = max(0.0, found[cell % size].real / size) + off
        # one cell down: e^(-tilt x loss) is larger there, so what is beyond counts less
        beyond, weighed = (beyond + more) / fall, (weighed + more) / fall / ease
    return max(0.0, low * step)


def _power(z: complex, count: int) -> complex:
    out = 1.0 + 0j
    while count:
        if count & 1:
            out *= z
        z, count = z * z, count >> 1
    return out


def by_losses(total: Inventory, delta: float, neighbours: str) -> float:
    """The route by privacy-loss distributions (spec, section 4.4)."""
    uses = [(profile(event, neighbours), times) for event, times in total.others]
    if total.square > 0:
        uses.append((of_joint((math.sqrt(total.square), 0.0, ZERO, 0.0)), 1))
    uses = [use for use in uses if use[0].forward(0.0) > 0 or use[0].backward(0.0) > 0]
    if not uses:
        return 0.0
    times = sum(count for _, count in uses)
    tail = max(delta * 1e-7 / times, 1e-280)
    scale = math.sqrt(math.fsum(count * variance(one, tail) for one, count in uses))
    far = [[reach(side, tail, one.top) for side in one[:2]] for one, _ in uses]
    furthest, all_far = max(map(max, far)), sum(map(sum, far))
    step = max(
        min(FINE * scale / math.sqrt(times), TOTAL_FINE * scale), furthest / MOST_CELLS, 1e-12
    )
    top = min((one.top for one, _ in uses if one.top <= furthest), default=0.0)
    if top > step:  # a bounded loss falls on the grid
        step = top / math.ceil(top / step)
        while step * round(top / step) < top:
            step = math.nextafter(step, math.inf)
    while step < 1e6:
        step = max(step, all_far / MOST_CELLS / 16)
        both = [_on_grid(one, step, ends, n) for (one, n), ends in zip(uses, far, strict=True)]
        same = all(one.forward is one.backward for one, _ in uses)
        found = [
            composed_epsilon([pair[way] for pair in both], step, delta, scale)
            for way in ((0,) if same else (0, 1))
        ]
        if None not in found:
            return max(one for one in found if one is not None)
        step *= 1.5
    return math.inf


def _on_grid(one: Profile, step: float, far: list[float], times: int) -> tuple[Losses, Losses]:
    """Both directions on multiples of the step; where a bounded loss falls on one, not beyond it."""
    ends = [max(1, math.ceil(end / step)) for end in far]
    ends = [n if n * step >= one.top or n * step < one.top - step else n + 1 for n in ends]
    points = [k * step for k in range(max(ends) + 1)]
    return connect(one, points, [points[n] - step / 2 for n in ends], times)
