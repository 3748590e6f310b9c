"""Renyi curves: for mechanisms that are known by moments only, for many choices, and for filters.

A curve is the Renyi divergence at each of `ORDERS`, from 1.0001 to 10 million: promises from 1e-3
to 1e3 find their order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import gammaln, xlog1py

from . import compose, curves
from .curves import Array, Profile
from .errors import InputError
from .events import (
    Approximate,
    DiscreteGaussian,
    Event,
    Exponential,
    Laplace,
    PoissonSampled,
    PrivateSelection,
    Pure,
    VisiblySampled,
    ZeroConcentrated,
)
from .inventory import Inventory, Joint, inventory, lone, one_batch
from .promise import Neighbours

ORDERS: Array = 1.0 + np.geomspace(1e-4, 1e7, 441)
ROUNDED = 2.0**-53
FAR_TAIL = 1e-200
"""Profiles are followed to here; what is beyond is charged to delta, as `leak`."""


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Divergence at each order, but for an event of probability `leak`, and up to a total
    variation."""

    values: Array
    leak: float = 0.0
    total_variation: float = 0.0

    def __add__(self, other: RenyiCurve) -> RenyiCurve:
        return RenyiCurve(
            self.values + other.values,
            self.leak + other.leak,
            min(1.0, self.total_variation + other.total_variation),
        )

    def times(self, count: int) -> RenyiCurve:
        return RenyiCurve(
            self.values * count, self.leak * count, min(1.0, self.total_variation * count)
        )


FREE = RenyiCurve(np.zeros_like(ORDERS))


def epsilon_of(curve: RenyiCurve, delta: float) -> float:
    """min over orders a of D_a + log(1 - 1/a) - (log delta + log a)/(a - 1) (Canonne, Kamath and
    Steinke 2020, Prop. 12)."""
    if delta <= curve.leak:
        return math.inf
    costs = (
        curve.values
        + np.log1p(-1 / ORDERS)
        - (math.log(delta - curve.leak) + np.log(ORDERS)) / (ORDERS - 1)
    )
    return max(0.0, float(np.min(costs)))


def delta_of(curve: RenyiCurve, epsilon: float) -> float:
    """min over orders of e^{(a-1)(D_a - epsilon)} (1 - 1/a)^{a-1} / a: the inverse of
    `epsilon_of`."""
    return min(
        1.0,
        curve.leak
        + float(np.exp(np.minimum(0.0, np.min(_log_deltas(curve.values, np.array([epsilon])))))),
    )


def _log_deltas(values: Array, epsilons: Array) -> Array:
    steps = ORDERS - 1
    fixed = steps * (values + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    return np.asarray(np.min(fixed[None, :] - steps[None, :] * epsilons[:, None], axis=1))


def largest(epsilon: float, delta: float) -> Array:
    """At each order the largest divergence from which (epsilon, delta) follows; below 0 where none
    does."""
    return np.asarray(
        epsilon - np.log1p(-1 / ORDERS) + (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    )


def profile_of(curve: RenyiCurve) -> Profile:
    """What a Renyi curve says about the profile: an upper bound, so it may be composed with exact
    curves.

    A pair with at least this profile dominates the mechanism, also when its steps are interleaved
    with others': those are post-processing of their own dominating pairs, which can be drawn first.
    """
    top = float(curve.values[-1]) + 1e-5
    points = np.concatenate(([0.0], np.geomspace(min(1e-7, top / 2), top, 1500)))
    values = np.concatenate(([1.0], np.exp(np.minimum(0.0, _log_deltas(curve.values, points[1:])))))
    near_0 = math.exp(min(0.0, float(_log_deltas(curve.values, points[:1])[0])))
    # Pinsker; what is too small for a float is not nothing.
    values[0] = min(near_0, math.sqrt(max(float(curve.values[0]), 1e-290) / 2) * (1 + ROUNDED))
    # A profile falls, so what bounds it at one point bounds it beyond.
    return curves.interpolated(
        points, np.minimum(1.0, np.minimum.accumulate(values) + curve.leak), top
    )


def total(event_inventory: Inventory, neighbours: Neighbours) -> RenyiCurve:
    """The curve of everything: curves add (Mironov 2017), fractions of leaks and total variations
    too."""
    out = RenyiCurve(ORDERS * (event_inventory.gaussian / 2), 0.0, event_inventory.total_variation)
    for event, count in event_inventory.others:
        out = out + curve(event, neighbours).times(count)
    return out


@lru_cache(maxsize=512)
def curve(event: Event, neighbours: Neighbours) -> RenyiCurve:
    """The curve of one mechanism of an `Inventory`."""
    match event:
        case ZeroConcentrated():
            return RenyiCurve(ORDERS * event.rho)
        case DiscreteGaussian():
            return RenyiCurve(ORDERS * (event.noise_multiplier**-2 / 2))
        case Laplace():
            return RenyiCurve(_laplace(1 / event.noise_multiplier))
        case Exponential():
            return RenyiCurve(bounded_range(event.epsilon))
        case Pure():
            return RenyiCurve(_response(event.epsilon))
        case Approximate():
            return RenyiCurve(_response(event.epsilon), leak=event.delta)
        case PoissonSampled():
            return _batch(event, neighbours)
        case VisiblySampled():
            inner = total(inventory(event.event, neighbours), neighbours)
            return RenyiCurve(
                _mixed(inner.values, event.rate), event.rate * inner.leak, inner.total_variation
            )
        case PrivateSelection():
            return _selection(event, total(inventory(event.event, neighbours), neighbours))
    joint = lone(event)
    if joint is None:
        raise InputError.expected(
            "an event of fairveil.core.events",
            of="events",
            got=event,
            remedy="Describe what it costs by Pure, Approximate or ZeroConcentrated.",
        )
    return RenyiCurve(joint_values(joint))


def joint_values(joint: Joint, orders: Array = ORDERS) -> Array:
    """The curve of a joint release: parts add."""
    out = orders * (joint.mu**2 / 2 + joint.rho)
    if joint.s:
        out = out + _laplace(joint.s, orders)
    if joint.atoms != curves.ONLY_ZERO:
        loss, mass = (np.array(column) for column in zip(*joint.atoms, strict=True))
        most = float(loss.max())
        off = (len(loss) + 16) * ROUNDED * most
        exact = _log_moments(loss, mass, orders - 1) / (orders - 1) + off
        out = out + np.clip(exact, 0.0, np.minimum(most, orders * (most * most) / 2))
    return np.asarray(out)


def _log_moments(loss: Array, mass: Array, steps: Array, off: Array | None = None) -> Array:
    """log sum of mass e^{step loss}, at each step; mass that is missing counts as loss 0, so that
    small ones keep their digits.

    `off`: how far each mass may be too low, times its size.
    """
    log_mass, at = np.log(mass[mass > 0]), loss[mass > 0]
    out = np.empty(len(steps))
    for index, step in enumerate(steps):
        if step * float(np.max(loss)) < 600.0:
            excess = np.expm1(step * loss)
            moment = float(mass @ excess) + (0.0 if off is None else float(off @ np.abs(excess)))
            out[index] = math.log1p(max(0.0, moment))
        else:
            out[index] = float(np.logaddexp.reduce(step * at + log_mass))
    return out


def _laplace(s: float, orders: Array = ORDERS) -> Array:
    """log(a/(2a-1) e^{(a-1)s} + (a-1)/(2a-1) e^{-as})/(a-1) (Mironov 2017, Prop. 6), at most s."""
    rest = np.expm1(-(2 * orders - 1) * s) * (orders - 1) / (2 * orders - 1)
    exact = s + np.log1p(rest) / (orders - 1) + 8 * ROUNDED * s
    return np.asarray(np.clip(exact, 0.0, np.minimum(s, orders * s * s / 2)))


def _whole_orders(joint: Joint, q: float) -> Array:
    """A secret batch under add-remove at whole orders: log sum_k C(a,k) (1-q)^{a-k} q^k e^{(k-1)
    D_k} / (a-1).

    Exact for a Gaussian, and the direction "remove" dominates since the pair is its own mirror
    image (Mironov, Talwar and Zhang 2019, Theorem 5). Between whole orders the chord of (a-1) D_a,
    which is convex and 0 at order 1, is an upper bound.
    """
    whole = np.unique(
        np.round(np.concatenate((np.arange(2.0, 33.0), np.geomspace(33.0, 1024.0, 60))))
    )
    uses = np.arange(whole[-1] + 1)
    known = np.zeros_like(uses)
    known[2:] = (uses[2:] - 1) * joint_values(joint, uses[2:])
    # e^{(k-1) D_k} is 1 for k = 0 and 1, so the excess over 1 is a sum of positive terms from k = 2
    # on, and loses no digits.
    with np.errstate(divide="ignore"):
        excess = np.where(known < 30.0, np.log(np.expm1(np.minimum(known, 30.0))), known)
    heights = [0.0]
    for a in whole:
        k = uses[: int(a) + 1]
        choose = gammaln(a + 1) - gammaln(k + 1) - gammaln(a - k + 1)
        terms = choose + xlog1py(a - k, -q) + k * math.log(q) + excess[: len(k)]
        # 1e-11 is above what gammaln and the sum may lose.
        heights.append(float(np.logaddexp(0.0, np.logaddexp.reduce(terms) + 1e-11)))
    out = np.interp(ORDERS - 1, np.concatenate(([0.0], whole - 1)), heights) / (ORDERS - 1)
    return np.asarray(np.where(whole[-1] >= ORDERS, out, np.inf))


def _response(epsilon: float) -> Array:
    """Randomised response, the worst of the epsilon-private (Kairouz, Oh and Viswanath 2015), at
    most a epsilon^2 / 2."""
    steps = ORDERS - 1
    x = steps * epsilon
    near = np.minimum(x, 1.0)
    # p (e^x - 1) + (1 - p)(e^-x - 1) with 2p - 1 = tanh(epsilon / 2), as a sum of positive terms.
    small = np.log1p(2 * np.sinh(near / 2) ** 2 + math.tanh(epsilon / 2) * np.sinh(near))
    large = np.logaddexp(x, -epsilon - x) - math.log1p(math.exp(-epsilon))
    exact = np.where(x < 1.0, small, large) / steps * (1 + 16 * ROUNDED)
    return np.asarray(np.clip(exact, 0.0, np.minimum(epsilon, ORDERS * (epsilon * epsilon) / 2)))


def bounded_range(epsilon: float) -> Array:
    """The worst two-point pair of range epsilon, at each order; never above a epsilon^2 / 8
    (theory.md#t6).

    A pair has losses t and t - epsilon, the first with probability p = (1 - e^{t - epsilon})/(1 -
    e^-epsilon). With x = e^t the log-moment is (a-1) log x + log(p + (1-p) r), r = e^{-(a-1)
    epsilon}, and its maximum over t - epsilon has a closed form (Dong, Durfee and Rogers 2020
    maximise the hockey stick the same way).
    """
    steps = ORDERS - 1
    whole = -math.expm1(-epsilon)
    r = np.exp(-steps * epsilon)
    below = np.log(-steps * np.expm1(-ORDERS * epsilon)) - np.log(
        -ORDERS * np.expm1(-steps * epsilon)
    )
    below = np.clip(below, -epsilon, 0.0)
    p = np.clip(-np.expm1(below) / whole, 0.0, 1.0)
    up, down = np.minimum(steps * (epsilon + below), 30.0), steps * below
    small = np.log1p(np.maximum(0.0, p * np.expm1(up) + (1 - p) * np.expm1(down)))
    large = steps * (epsilon + below) + np.log(p + (1 - p) * r)
    moment = np.where(steps * epsilon < 30.0, small, large)
    # Two terms of size epsilon cancel to order a epsilon^2 / 8: rounded up by what that may lose.
    return np.asarray(
        np.clip(
            moment / steps + 16 * ROUNDED * epsilon,
            0.0,
            np.minimum(epsilon, ORDERS * (epsilon * epsilon) / 8),
        )
    )


def _mixed(values: Array, q: float) -> Array:
    """log(1 - q + q e^{(a-1) D})/(a-1): with probability 1 - q nothing is asked, visibly."""
    steps = ORDERS - 1
    near = np.log1p(q * np.expm1(np.minimum(steps * values, 30.0)))
    far = steps * values + math.log(q)
    return np.asarray(
        np.where(
            steps * values < 30.0, near, np.logaddexp(far, math.log1p(-q) if q < 1 else -np.inf)
        )
        / steps
    )


def batch_profile(event: PoissonSampled, neighbours: Neighbours) -> Profile:
    """The profile of one secret batch: T2 under add-remove, T3 or the generic bound under
    replace-one."""
    batch = one_batch(event, neighbours)
    alone = _base(batch.alone)
    if batch.replaced is None:
        return curves.poisson_add_remove(alone, batch.rate)
    if batch.alone.is_gaussian:
        return curves.poisson_replace_gaussian(batch.alone.mu, batch.replaced.mu, batch.rate)
    # With Laplace parts no exact form is known: convexity bounds it (docs/theory/sampling.md,
    # generic bound).
    return curves.poisson_replace_generic(alone, _base(batch.replaced), batch.rate)


def _base(joint: Joint) -> Profile:
    """The exact profile; with discrete Gaussian parts, whose amplification is known by moments
    only, what those imply."""
    return (
        profile_of(RenyiCurve(joint_values(joint)))
        if joint.rho
        else curves.joint(joint.mu, joint.s, joint.atoms)
    )


def _batch(event: PoissonSampled, neighbours: Neighbours) -> RenyiCurve:
    """Moments of the discrete pair that connects the dots of the profile on an uneven grid: from
    above, at every order.

    A secret batch never costs more than its release on everything, which the last line uses.
    """
    profile = batch_profile(event, neighbours)
    batch = one_batch(event, neighbours)
    full = joint_values(batch.replaced or batch.alone)
    ends = [
        compose.reach(side, FAR_TAIL, profile.top) for side in (profile.forward, profile.backward)
    ]
    scale = min(math.sqrt(compose.variance(profile, 1e-20)), max(ends))
    even = np.linspace(0.0, min(8 * scale, max(ends)), 1200)
    points = np.union1d(even, np.geomspace(1e-4 * scale, 1.001 * max(ends), 1200))
    cut = [points[: int(np.searchsorted(points, end)) + 1] for end in ends]
    values = [profile.forward(cut[0]), profile.backward(cut[1])]
    out, leak = np.zeros_like(ORDERS), 0.0
    for one, other in (values, values[::-1]):
        above, below, never = compose.connect_the_dots(points, one, other)
        place = np.concatenate((points[: len(above)], -points[1 : len(below) + 1]))
        mass = np.concatenate((above, below))
        # A cell's mass is a difference of two slopes, each about the mass beyond it.
        beyond = np.concatenate([np.cumsum(side[::-1])[::-1] for side in (above, below)])
        moments = _log_moments(place, mass, ORDERS - 1, 8 * ROUNDED * beyond)
        out, leak = np.maximum(out, moments / (ORDERS - 1)), max(leak, never)
    if batch.replaced is None and batch.rate < 1:
        full = np.minimum(full, _whole_orders(batch.alone, batch.rate))
    return RenyiCurve(np.minimum(out, full), leak)


def _selection(event: PrivateSelection, inner: RenyiCurve) -> RenyiCurve:
    """Papernot and Steinke 2022: Theorem 2 (truncated negative binomial, shape >= 0) and Theorem 6
    (Poisson).

    A leak of one run, or a sampler's error in it, happens in one of the runs with probability at
    most the mean times as much.
    """
    steps = ORDERS - 1
    if math.isinf(event.shape):
        hats = np.log1p(1 / steps)
        own = np.exp(np.minimum(0.0, _log_deltas(inner.values, hats)))
        out = inner.values + event.mean * own + max(0.0, math.log(event.mean)) / steps
    else:
        # From below: a smaller gamma costs more.
        gamma = stopping(event.mean, event.shape)
        worst = (1 + event.shape) * float(
            np.min((1 - 1 / ORDERS) * inner.values - math.log(gamma) / ORDERS)
        )
        out = inner.values + worst + math.log(event.mean) / steps
    # A divergence rises with its order: what bounds a higher one bounds this one, too.
    out = np.minimum.accumulate(out[::-1])[::-1]
    error = min(1.0, event.mean * (inner.leak + inner.total_variation))
    return RenyiCurve(np.asarray(out), total_variation=error)


def stopping(mean: float, shape: float) -> float:
    """The gamma of the truncated negative binomial of this mean, from below: its mean falls from
    inf to 1 as gamma rises."""
    low, high = -math.log(2 * (shape + 2) * mean) - 60.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_runs(middle, shape) > mean else (low, middle)
    return math.exp(low)


def _mean_runs(log_gamma: float, shape: float) -> float:
    """shape (1 - gamma) / (gamma (1 - gamma^shape)); shape 0 is the limit (1 - gamma) / (gamma
    log(1/gamma))."""
    if log_gamma == 0:
        return 1.0
    down = -math.expm1(log_gamma) * math.exp(-log_gamma)
    return (
        down / -log_gamma
        if shape * -log_gamma < 1e-12
        else down * shape / -math.expm1(shape * log_gamma)
    )
