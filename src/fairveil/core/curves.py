"""What one mechanism gives away: privacy profiles, and Renyi divergences at a grid of orders.

A profile says how far one neighbour is from the other, as hockey-stick divergences. For a pair
(P, Q), `forward(e)` is H(P || Q) at e^e, the sum over outcomes of max(0, P - e^e Q), and
`backward(e)` is H(Q || P), both for e >= 0: together they hold everything that composition needs,
since H(P || Q) at -e is 1 - e^-e + e^-e H(Q || P) at e. All are exact or upper bounds, and keep
their *relative* precision in the tails: each is written as one tail probability times 1 -
e^negative, in logarithms.

`Moments` are Renyi divergences at each of `ORDERS`: for what is known by nothing else, for many
choices, and for filters. They are exact or upper bounds, too.

Letters: q a sampling rate, mu a shift over a Gaussian's standard deviation, s a shift over a
Laplace's scale, e a privacy loss, a an order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, log_ndtr, ndtr

Array = npt.NDArray[np.float64]
Curve = Callable[[Array], Array]
Atoms = tuple[tuple[float, float], ...]
"""(loss, probability) of a discrete privacy loss that is its own mirror image."""

MOST_ATOMS = 256
TINY_MU = 1e-6
"""Below this a difference of two tails would lose its digits."""
ROUNDED = 2.0**-51
"""What a logarithm of a tail may be off by, relative to one more than its size."""
FAR_TAIL = 1e-200
"""Profiles are followed to here for moments; what is beyond is charged to delta, as `leak`."""
ORDERS: Array = 1.0 + np.geomspace(1e-4, 1e7, 441)
"""From 1.0001 to 10 million: promises from 1e-3 to 1e3 find theirs."""
STEPS: Array = ORDERS - 1


@dataclass(frozen=True)
class Profile:
    """Both directions of a dominating pair, and `top`, a loss beyond which both are flat (inf when
    there is none)."""

    forward: Curve
    backward: Curve
    top: float = math.inf

    @property
    def sides(self) -> tuple[Curve, Curve]:
        """Both directions."""
        return self.forward, self.backward

    @staticmethod
    def symmetric(curve: Curve, top: float = math.inf) -> Profile:
        """A pair whose two directions cost the same."""
        return Profile(curve, curve, top)


# ---- profiles


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Phi(x) - e^epsilon Phi(x - mu) with x = mu/2 - epsilon/mu, epsilon >= 0: the exact profile of
    a Gaussian (T1).

    e^epsilon phi(x - mu) = phi(x), so the second term is phi(x) times a scaled complementary error
    function, and nothing overflows or cancels to nothing for mu from 1e-8 to 1e8.
    """
    x = mu / 2 - epsilon / mu
    second = float(erfcx((mu - x) / math.sqrt(2)))
    bell = math.exp(-x * x / 2) / 2
    if mu < TINY_MU:
        return float(bell * _erfcx_fall(np.array(x), mu))
    if x > 0:
        return float(ndtr(x)) - bell * second
    return bell * (float(erfcx(-x / math.sqrt(2))) - second)


def _erfcx_fall(x: Array, mu: float) -> Array:
    """erfcx(-x/sqrt 2) - erfcx((mu-x)/sqrt 2) for a small mu, from above: the size of its slope is
    convex.

    The slope is 2 z erfcx(z) - 2/sqrt(pi), so the chord of its ends is above it.
    """
    ends = [np.clip(z / math.sqrt(2), -26.0, 1e3) for z in (-x, mu - x)]
    slopes = [2 / math.sqrt(math.pi) - 2 * z * erfcx(z) for z in ends]
    return np.asarray(mu / math.sqrt(2) * (slopes[0] + slopes[1]) / 2 * (1 + 1e-9))


def gaussian(mu: float) -> Profile:
    """The array form of `gaussian_delta`."""

    def curve(e: Array) -> Array:
        x = mu / 2 - e / mu
        bell = np.exp(-x * x / 2) / 2
        if mu < TINY_MU:
            return np.asarray(bell * _erfcx_fall(x, mu))
        second = erfcx((mu - x) / math.sqrt(2))
        low = bell * (erfcx(np.maximum(-x, 0.0) / math.sqrt(2)) - second)
        return np.asarray(np.where(x > 0, ndtr(x) - bell * second, low))

    return Profile.symmetric(curve)


def laplace(s: float) -> Profile:
    """1 - e^{(e - s)/2} below s: an L1 shift of s scales (T5)."""
    return Profile.symmetric(
        lambda e: np.where(e >= s, 0.0, -np.expm1(np.minimum(e - s, 0.0) / 2)), s
    )


def discrete_laplace(atoms: Atoms) -> Profile:
    """Of a discrete loss: the sum of its probabilities times 1 - e^{e - loss}."""
    top = max(loss for loss, _ in atoms)

    def curve(e: Array) -> Array:
        total = np.zeros_like(e)
        for loss, probability in atoms:
            total += probability * -np.expm1(np.minimum(e - loss, 0.0))
        return np.where(e >= top, 0.0, total)

    return Profile.symmetric(curve, top)


def discrete_laplace_atoms(scale: float, shift: int) -> Atoms:
    """The privacy loss of P(x) ~ exp(-|x|/scale) on the integers, moved by `shift`.

    At most `MOST_ATOMS` groups of neighbouring atoms, each at its largest loss, which only costs
    more.
    """
    t = 1.0 / scale
    ends = 1.0 / (1.0 + math.exp(-t))
    inside = np.arange(1, shift)
    # The loss at x is (|x - shift| - |x|) / scale: constant outside of 0..shift, and 2 t less at
    # each step inside.
    losses = np.concatenate(([shift * t], (shift - 2.0 * inside) * t, [-shift * t]))
    masses = np.concatenate(
        ([ends], math.tanh(t / 2) * np.exp(-inside * t), [math.exp(-shift * t) * ends])
    )
    starts = np.arange(0, len(losses), math.ceil(len(losses) / MOST_ATOMS))
    return tuple(
        zip(losses[starts].tolist(), np.add.reduceat(masses, starts).tolist(), strict=True)
    )


def pure(epsilon: float, delta: float = 0.0) -> Profile:
    """Any (epsilon, delta)-private mechanism: delta + (1 - delta)(e^epsilon - e^e)/(1 + e^epsilon)
    below epsilon."""

    def curve(e: Array) -> Array:
        response = np.maximum(0.0, -np.expm1(np.minimum(e - epsilon, 0.0))) / (
            1 + math.exp(-epsilon)
        )
        return np.asarray(delta + (1 - delta) * response)

    return Profile.symmetric(curve, epsilon)


def bounded_range(epsilon: float) -> Profile:
    """The exponential mechanism: (1 - e^{(e - epsilon)/2})^2 / (1 - e^-epsilon) below epsilon
    (theory.md#t6)."""

    def curve(e: Array) -> Array:
        return np.asarray(np.expm1(np.minimum(e - epsilon, 0.0) / 2) ** 2 / -math.expm1(-epsilon))

    return Profile.symmetric(curve, epsilon)


def poisson_add_remove(mu: float, q: float) -> Profile:
    """theory.md#t2: the exact amplification of a Gaussian, by a secret Poisson batch, under
    add-remove."""
    base = gaussian(mu).forward

    def remove(e: Array) -> Array:
        # at log(1 + (e^e - 1)/q), without overflow
        near = np.log1p(np.expm1(np.minimum(e, 30.0)) / q)
        far = e - math.log(q) + np.log1p(-(1 - q) * np.exp(-e))
        return np.asarray(q * base(np.asarray(np.where(e < 30.0, near, far))))

    def add(e: Array) -> Array:
        # 1 - a(1 - q), which keeps its digits at small e. Where it is not positive, a new row costs
        # nothing (docs/theory/sampling.md, T2).
        rest = q - (1 - q) * np.expm1(np.minimum(e, 700.0))
        inside = rest > 0
        safe = np.where(inside, rest, q)
        at = np.where(inside, np.maximum(e + math.log(q) - np.log(safe), 0.0), 0.0)
        return np.asarray(np.where(inside, safe * base(at), 0.0))

    return Profile(remove, add)


def poisson_replace_one(c: float, d: float, q: float) -> Profile:
    """theory.md#t3: replace-one on a secret Poisson batch, Gaussian noise of deviation 1, |u|, |v|
    <= c and |u - v| <= d.

    q (Phi(t) - k(a-1) Phi(t-c) - a Phi(t-d)) with k = (1-q)/q, where t solves k(a-1) e^{ct-cc/2} +
    a e^{dt-dd/2} = 1. The logarithm of that sum is convex and rises in t, so Newton's steps from
    the right never overshoot; at the solution the value is stationary, so what is left of the error
    in t does not count.
    """
    log_k = math.log1p(-q) - math.log(q) if q < 1 else -math.inf

    def curve(e: Array) -> Array:
        with np.errstate(divide="ignore"):
            first = log_k + e + np.log(-np.expm1(-e))
            first_at_0, second_at_0 = first - c * c / 2, e - d * d / 2
            # Where one term alone is 1 the sum is at least 1: Newton begins at the right of the
            # solution.
            t = np.minimum(-second_at_0 / d, -first_at_0 / c)
            for _ in range(40):
                one, two = first_at_0 + c * t, second_at_0 + d * t
                total = np.logaddexp(one, two)
                slope = c * np.exp(one - total) + d * np.exp(two - total)
                t = t - total / slope
            reach = log_ndtr(t)
            lost = np.logaddexp(first + log_ndtr(t - c), e + log_ndtr(t - d))
            off = ROUNDED * (1 + np.minimum(np.abs(reach), 800.0))
            return np.asarray(q * np.exp(reach) * -np.expm1(np.minimum(lost - reach, 0.0) - off))

    return Profile.symmetric(curve)


def visible(mu: float, q: float) -> Profile:
    """theory.md#t4: when the observer sees who was sampled, the profile is q times the base's, at e
    >= 0."""
    base = gaussian(mu).forward
    return Profile.symmetric(lambda e: q * base(e))


# ---- what profiles are followed and put on points by


def reach(curve: Curve, tail: float, top: float) -> float:
    """A loss beyond which the profile is at most `tail`, or does not fall any more."""
    high = 1e-9
    while high < min(1e9, top) and at(curve, high) > tail:
        high *= 4
    if high >= top:
        return max(top, 1e-9)
    low = high / 4
    while high - low > 1e-2 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if at(curve, middle) > tail else (low, middle)
    return high


def at(curve: Curve, e: float) -> float:
    """The value at one loss."""
    return float(curve(np.array([e]))[0])


def variance(profile: Profile, tail: float) -> float:
    """Twice the larger relative entropy: the variance of the loss when that is small.

    KL(P || Q) is the integral over e >= 0 of H(P || Q) + e^-e H(Q || P), since log is an integral
    of hockey sticks.
    """
    ends = [reach(side, tail, profile.top) for side in profile.sides]
    points: Array = np.concatenate((np.zeros(1), np.geomspace(1e-6 * max(ends), max(ends), 300)))
    ahead, behind, fall = profile.forward(points), profile.backward(points), np.exp(-points)
    return 2 * max(
        float(np.trapezoid(ahead + fall * behind, points)),
        float(np.trapezoid(behind + fall * ahead, points)),
    )


def connect_the_dots(points: Array, forward: Array, backward: Array) -> tuple[Array, Array, float]:
    """Mass under P at `points` (from 0 up) and at `-points[1:]`, and at infinity, of a pair that
    dominates the profile (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022).

    The dominating profile is piecewise linear in e^e, so a cell's mass is a difference of two
    slopes. Values need only be upper bounds: where they are not convex the mass is cut at 0, which
    only raises the profile.
    """
    gaps = np.diff(points[: max(len(forward), len(backward))])
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


# ---- moments


@dataclass(frozen=True, eq=False)
class Moments:
    """Divergence at each order, but for an event of probability `leak`."""

    values: Array
    leak: float = 0.0

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.values + other.values, self.leak + other.leak)

    def times(self, count: int) -> Moments:
        """So often in a row: divergences add (Mironov 2017)."""
        return Moments(self.values * count, self.leak * count)

    def epsilon(self, delta: float) -> float:
        """min over a of D_a + log(1 - 1/a) - (log delta + log a)/(a - 1) (Canonne, Kamath and
        Steinke 2020, Prop. 12)."""
        if delta <= self.leak:
            return math.inf
        lost = (math.log(delta - self.leak) + np.log(ORDERS)) / STEPS
        return max(0.0, float(np.min(self.values + np.log1p(-1 / ORDERS) - lost)))

    def delta(self, epsilon: float) -> float:
        """min over a of e^{(a-1)(D_a - epsilon)} (1 - 1/a)^{a-1} / a: the inverse of `epsilon`."""
        least = np.min(_log_deltas(self.values, np.array([epsilon])))
        return min(1.0, self.leak + float(np.exp(np.minimum(0.0, least))))


def _log_deltas(values: Array, epsilons: Array) -> Array:
    fixed = STEPS * (values + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    return np.asarray(np.min(fixed[None, :] - STEPS[None, :] * epsilons[:, None], axis=1))


def largest_moments(epsilon: float, delta: float) -> Array:
    """At each order the largest divergence from which (epsilon, delta) follows; below 0 where none
    does."""
    return np.asarray(epsilon - np.log1p(-1 / ORDERS) + (math.log(delta) + np.log(ORDERS)) / STEPS)


def moments_of_laplace(s: float) -> Array:
    """log(a/(2a-1) e^{(a-1)s} + (a-1)/(2a-1) e^{-as})/(a-1) (Mironov 2017, Prop. 6), at most s."""
    rest = np.expm1(-(2 * ORDERS - 1) * s) * STEPS / (2 * ORDERS - 1)
    exact = s + np.log1p(rest) / STEPS + 2 * ROUNDED * s
    return np.asarray(np.clip(exact, 0.0, np.minimum(s, ORDERS * s * s / 2)))


def moments_of_atoms(atoms: Atoms) -> Array:
    """Of a discrete loss."""
    loss, mass = (np.array(column) for column in zip(*atoms, strict=True))
    most = float(loss.max())
    off = (len(loss) + 16) * ROUNDED / 4 * most
    exact = _log_moments(loss, mass) / STEPS + off
    return np.asarray(np.clip(exact, 0.0, np.minimum(most, ORDERS * (most * most) / 2)))


def _log_moments(loss: Array, mass: Array, off: Array | None = None) -> Array:
    """log sum of mass e^{(a - 1) loss}; mass that is missing counts as loss 0, so that small ones
    keep their digits.

    `off`: how far each mass may be too low, times its size.
    """
    log_mass, place = np.log(mass[mass > 0]), loss[mass > 0]
    out = np.empty(len(STEPS))
    for index, step in enumerate(STEPS):
        if step * float(np.max(loss)) < 600.0:
            excess = np.expm1(step * loss)
            moment = float(mass @ excess) + (0.0 if off is None else float(off @ np.abs(excess)))
            out[index] = math.log1p(max(0.0, moment))
        else:
            out[index] = float(np.logaddexp.reduce(step * place + log_mass))
    return out


def moments_of_pure(epsilon: float) -> Array:
    """Randomised response, the worst of the epsilon-private (Kairouz, Oh and Viswanath 2015), at
    most a epsilon^2 / 2."""
    x = STEPS * epsilon
    near = np.minimum(x, 1.0)
    # p (e^x - 1) + (1 - p)(e^-x - 1) with 2p - 1 = tanh(epsilon / 2), as a sum of positive terms.
    small = np.log1p(2 * np.sinh(near / 2) ** 2 + math.tanh(epsilon / 2) * np.sinh(near))
    large = np.logaddexp(x, -epsilon - x) - math.log1p(math.exp(-epsilon))
    exact = np.where(x < 1.0, small, large) / STEPS * (1 + 4 * ROUNDED)
    return np.asarray(np.clip(exact, 0.0, np.minimum(epsilon, ORDERS * (epsilon * epsilon) / 2)))


def moments_of_bounded_range(epsilon: float) -> Array:
    """The worst two-point pair of range epsilon; never above a epsilon^2 / 8 (theory.md#t6).

    A pair has losses t and t - epsilon, the first with probability p = (1 - e^{t - epsilon})/(1 -
    e^-epsilon). With x = e^t the log-moment is (a-1) log x + log(p + (1-p) r), r = e^{-(a-1)
    epsilon}, and its maximum over t - epsilon has a closed form (Dong, Durfee and Rogers 2020
    maximise the hockey stick the same way).
    """
    whole = -math.expm1(-epsilon)
    r = np.exp(-STEPS * epsilon)
    below = np.log(-STEPS * np.expm1(-ORDERS * epsilon)) - np.log(
        -ORDERS * np.expm1(-STEPS * epsilon)
    )
    below = np.clip(below, -epsilon, 0.0)
    p = np.clip(-np.expm1(below) / whole, 0.0, 1.0)
    up, down = np.minimum(STEPS * (epsilon + below), 30.0), STEPS * below
    small = np.log1p(np.maximum(0.0, p * np.expm1(up) + (1 - p) * np.expm1(down)))
    large = STEPS * (epsilon + below) + np.log(p + (1 - p) * r)
    moment = np.where(STEPS * epsilon < 30.0, small, large)
    # Two terms of size epsilon cancel to order a epsilon^2 / 8: rounded up by what that may lose.
    exact = moment / STEPS + 4 * ROUNDED * epsilon
    return np.asarray(np.clip(exact, 0.0, np.minimum(epsilon, ORDERS * (epsilon * epsilon) / 8)))


def moments_of_visible(values: Array, q: float) -> Array:
    """log(1 - q + q e^{(a-1) D})/(a-1): with probability 1 - q nothing is asked, visibly."""
    near = np.log1p(q * np.expm1(np.minimum(STEPS * values, 30.0)))
    far = STEPS * values + math.log(q)
    rest = math.log1p(-q) if q < 1 else -np.inf
    return np.asarray(np.where(STEPS * values < 30.0, near, np.logaddexp(far, rest)) / STEPS)


def moments_of_profile(profile: Profile) -> Moments:
    """Of the discrete pair that connects the dots of the profile on an uneven grid: from above, at
    every order."""
    ends = [reach(side, FAR_TAIL, profile.top) for side in profile.sides]
    scale = min(math.sqrt(variance(profile, 1e-20)), max(ends))
    even = np.linspace(0.0, min(8 * scale, max(ends)), 1200)
    points = np.union1d(even, np.geomspace(1e-4 * scale, 1.001 * max(ends), 1200))
    values = [
        side(points[: int(np.searchsorted(points, end)) + 1])
        for side, end in zip(profile.sides, ends, strict=True)
    ]
    out, leak = np.zeros_like(ORDERS), 0.0
    for one, other in (values, values[::-1]):
        above, below, never = connect_the_dots(points, one, other)
        place = np.concatenate((points[: len(above)], -points[1 : len(below) + 1]))
        mass = np.concatenate((above, below))
        # A cell's mass is a difference of two slopes, each about the mass beyond it.
        beyond = np.concatenate([np.cumsum(side[::-1])[::-1] for side in (above, below)])
        moments = _log_moments(place, mass, 2 * ROUNDED * beyond)
        out, leak = np.maximum(out, moments / STEPS), max(leak, never)
    return Moments(out, leak)


def moments_of_selection(inner: Moments, mean: float, shape: float) -> Moments:
    """The best of a random number of runs: Papernot and Steinke 2022, Theorem 2 (truncated negative
    binomial, shape >= 0) and Theorem 6 (Poisson, shape inf).

    A leak happens in one of the runs with probability at most the mean times as much
    (docs/theory/choices.md, claim 3).
    """
    if math.isinf(shape):
        own = np.exp(np.minimum(0.0, _log_deltas(inner.values, np.log1p(1 / STEPS))))
        out = inner.values + mean * own + max(0.0, math.log(mean)) / STEPS
    else:
        # From below: a smaller gamma costs more.
        gamma = stopping(mean, shape)
        least = np.min((1 - 1 / ORDERS) * inner.values - math.log(gamma) / ORDERS)
        out = inner.values + (1 + shape) * float(least) + math.log(mean) / STEPS
    # A divergence rises with its order: what bounds a higher one bounds this one, too.
    out = np.minimum.accumulate(out[::-1])[::-1]
    return Moments(np.asarray(out), min(1.0, mean * inner.leak))


def stopping(mean: float, shape: float) -> float:
    """The gamma of the truncated negative binomial of this mean, from below: its mean shape (1 -
    gamma) / (gamma (1 - gamma^shape)) falls from inf to 1 as gamma rises; shape 0 is the limit."""

    def runs(log_gamma: float) -> float:
        if log_gamma == 0:
            return 1.0
        down = -math.expm1(log_gamma) * math.exp(-log_gamma)
        if shape * -log_gamma < 1e-12:
            return down / -log_gamma
        return down * shape / -math.expm1(shape * log_gamma)

    low, high = -math.log(2 * (shape + 2) * mean) - 60.0, 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if runs(middle) > mean else (low, middle)
    return math.exp(low)
