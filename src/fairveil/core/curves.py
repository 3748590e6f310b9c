"""Privacy profiles: how far one neighbour is from the other, as hockey-stick divergences.

For a pair (P, Q), `forward(e)` is H(P || Q) at e^e, the sum over outcomes of max(0, P - e^e Q), and
`backward(e)` is H(Q || P), both for e >= 0: together they hold everything that composition needs,
since
H(P || Q) at -e is 1 - e^-e + e^-e H(Q || P) at e. All are exact or upper bounds, and keep their
*relative* precision in the tails: each is written as one tail probability times 1 - e^negative, in
logarithms.

Letters: q a sampling rate, mu a shift over a Gaussian's standard deviation, s a shift over a
Laplace's scale, h the step of a grid, e a privacy loss.
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

ONLY_ZERO: Atoms = ((0.0, 1.0),)
MOST_ATOMS = 256
TINY_MU = 1e-6
"""Below this a difference of two tails would lose its digits."""
ROUNDED = 2.0**-51
"""What a logarithm of a tail may be off by, relative to one more than its size."""


@dataclass(frozen=True)
class Profile:
    """Both directions of a dominating pair, and `top`, a loss beyond which both are flat (inf when
    there is none)."""

    forward: Curve
    backward: Curve
    top: float = math.inf


def symmetric(curve: Curve, top: float = math.inf) -> Profile:
    """A pair whose two directions cost the same."""
    return Profile(curve, curve, top)


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

    return symmetric(curve)


def _mirrored(curve: Curve) -> Curve:
    """A symmetric pair's profile at any real e."""

    def everywhere(e: Array) -> Array:
        size = np.abs(e)
        here = curve(size)
        fall = np.exp(-size)
        return np.asarray(np.where(e >= 0, here, -np.expm1(-size) + fall * here))

    return everywhere


def _laplace_gaussian(s: float, mu: float) -> Curve:
    """The joint release of a Laplace and a Gaussian, e >= 0; either may be absent (0).

    The loss of the Laplace is s with probability 1/2, -s with e^-s/2, and has density e^{(l-s)/2}/4
    between; adding the Gaussian loss N(mu^2/2, mu^2) and integrating by parts gives, with u = mu/2
    - (e-s)/mu and v = mu/2 - (e+s)/mu,
        P(loss > e) = Phi(u) - e^{(e-s)/2 - mu^2/8} (Phi(u - mu/2) - Phi(v - mu/2)) / 2,
    and by symmetry Q(loss > e) = P(loss < -e). The profile is their difference, P - e^e Q.
    """
    if s == 0 and mu == 0:
        return lambda e: np.zeros_like(e)
    if mu == 0:
        return lambda e: np.where(e >= s, 0.0, -np.expm1(np.minimum(e - s, 0.0) / 2))
    if s == 0:
        return gaussian(mu).forward

    def curve(e: Array) -> Array:
        u, v = mu / 2 - (e - s) / mu, mu / 2 - (e + s) / mu
        log_u = log_ndtr(u)
        part = -math.log(2) + (e - s) / 2 - mu * mu / 8 + _log_between(v - mu / 2, u - mu / 2)
        log_p = log_u + np.log1p(-np.exp(np.minimum(part - log_u, 0.0) - 1e-300))
        u, v = mu / 2 + (e + s) / mu, mu / 2 + (e - s) / mu
        part = -math.log(2) - (e + s) / 2 - mu * mu / 8 + _log_between(v - mu / 2, u - mu / 2)
        log_q = np.logaddexp(log_ndtr(-u), part)
        # Logarithms of tails are off in their last digits. The profile is raised by what that may
        # be.
        off = ROUNDED * (1 + np.minimum(np.abs(log_p), 800.0))
        return np.asarray(np.exp(log_p) * -np.expm1(np.minimum(e + log_q - log_p, 0.0) - off))

    return curve


def _log_between(low: Array, high: Array) -> Array:
    """log(Phi(high) - Phi(low)), low < high, by whichever tail is the smaller."""
    flip = low > 0
    top, bottom = log_ndtr(np.where(flip, -low, high)), log_ndtr(np.where(flip, -high, low))
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(-np.expm1(np.minimum(bottom - top, 0.0))))


def joint(mu: float, s: float, atoms: Atoms = ONLY_ZERO) -> Profile:
    """Gaussians (merged into mu), Laplaces (merged into s: theory.md#t5) and discrete Laplaces
    (`atoms`), one joint release."""
    inner = _laplace_gaussian(s, mu)
    top = math.inf if mu > 0 else s + max(loss for loss, _ in atoms)
    if atoms == ONLY_ZERO:
        return symmetric(inner, top)
    everywhere = _mirrored(inner)

    def curve(e: Array) -> Array:
        total = np.zeros_like(e)
        for loss, probability in atoms:
            total += probability * everywhere(e - loss)
        return np.where(e >= top, 0.0, total)

    return symmetric(curve, top)


def discrete_laplace_atoms(scale: float, shift: int) -> Atoms:
    """The privacy loss of P(x) ~ exp(-|x|/scale) on the integers, moved by `shift`: at most 257
    atoms, rounded up."""
    t = 1.0 / scale
    ends = 1.0 / (1.0 + math.exp(-t))
    inside = np.arange(1, shift)
    # The loss at x is (|x - shift| - |x|) / scale: constant outside of 0..shift, and 2 t less at
    # each step inside.
    losses = np.concatenate(([shift * t], (shift - 2.0 * inside) * t, [-shift * t]))
    masses = np.concatenate(
        ([ends], math.tanh(t / 2) * np.exp(-inside * t), [math.exp(-shift * t) * ends])
    )
    return _thinned(losses, masses)


def product_atoms(first: Atoms, second: Atoms) -> Atoms:
    """Two independent discrete losses added up."""
    losses = np.add.outer([a for a, _ in first], [b for b, _ in second]).ravel()
    masses = np.multiply.outer([p for _, p in first], [p for _, p in second]).ravel()
    order = np.argsort(-losses, kind="stable")
    return _thinned(losses[order], masses[order])


def _thinned(losses: Array, masses: Array) -> Atoms:
    """At most `MOST_ATOMS` groups of neighbouring atoms (descending), each put at its largest loss,
    which only costs more."""
    groups = math.ceil(len(losses) / MOST_ATOMS)
    starts = np.arange(0, len(losses), groups)
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

    return symmetric(curve, epsilon)


def bounded_range(epsilon: float) -> Profile:
    """The exponential mechanism: (1 - e^{(e - epsilon)/2})^2 / (1 - e^-epsilon) below epsilon
    (theory.md#t6)."""

    def curve(e: Array) -> Array:
        return np.asarray(np.expm1(np.minimum(e - epsilon, 0.0) / 2) ** 2 / -math.expm1(-epsilon))

    return symmetric(curve, epsilon)


def poisson_add_remove(base: Profile, q: float) -> Profile:
    """theory.md#t2: the exact amplification, by a secret Poisson batch, of any symmetric pair under
    add-remove."""

    top = base.top if math.isinf(base.top) else math.log1p(q * math.expm1(min(base.top, 700.0)))
    top = top if base.top <= 700.0 else base.top

    def remove(e: Array) -> Array:
        at = _amplified(e, q)
        return np.asarray(q * base.forward(np.where(e >= top, np.maximum(at, base.top), at)))

    def add(e: Array) -> Array:
        # 1 - a(1 - q), which keeps its digits at small e. Where it is not positive, a new row costs
        # nothing (docs/theory/sampling.md, T2).
        rest = q - (1 - q) * np.expm1(np.minimum(e, 700.0))
        inside = rest > 0
        safe = np.where(inside, rest, q)
        at = np.where(inside, np.maximum(e + math.log(q) - np.log(safe), 0.0), 0.0)
        return np.asarray(np.where(inside, safe * base.forward(at), 0.0))

    return Profile(remove, add, top)


def _amplified(e: Array, q: float) -> Array:
    """log(1 + (e^e - 1)/q), without overflow."""
    near = np.log1p(np.expm1(np.minimum(e, 30.0)) / q)
    far = e - math.log(q) + np.log1p(-(1 - q) * np.exp(-e))
    return np.asarray(np.where(e < 30.0, near, far))


def poisson_replace_generic(alone: Profile, replaced: Profile, q: float) -> Profile:
    """Replace-one on a secret Poisson batch, any base: q((1-b) H_alone + b H_replaced) at a0 = 1 +
    (a-1)/q, b = a/a0.

    By advanced joint convexity and convexity; loose by 10 to 90 percent (theory.md#generic).
    """

    whole = max(alone.top, replaced.top)
    top = math.log1p(q * math.expm1(whole)) if whole <= 700.0 else whole

    def curve(e: Array) -> Array:
        at = _amplified(e, q)
        at = np.where(e >= top, np.maximum(at, whole), at)
        b = q / (1 - (1 - q) * np.exp(-e))
        return np.asarray(q * ((1 - b) * alone.forward(at) + b * replaced.forward(at)))

    return symmetric(curve, top)


def poisson_replace_gaussian(c: float, d: float, q: float) -> Profile:
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

    return symmetric(curve)


def visible(base: Profile, q: float) -> Profile:
    """theory.md#t4: when the observer sees who was sampled, the profile is q times the base's, at e
    >= 0."""
    return Profile(lambda e: q * base.forward(e), lambda e: q * base.backward(e), base.top)


def interpolated(points: Array, values: Array, top: float) -> Profile:
    """The chord, in e^e, through upper bounds at `points` (from 0 up): above the convex profile
    everywhere between.

    Beyond the last point the last value holds.
    """

    def curve(e: Array) -> Array:
        index = np.clip(np.searchsorted(points, e, side="right") - 1, 0, len(points) - 2)
        start, width = points[index], points[index + 1] - points[index]
        share = np.minimum(
            np.exp(e - start - width) * -np.expm1(start - e) / -np.expm1(-width), 1.0
        )
        chord = values[index] + np.maximum(share, 0.0) * (values[index + 1] - values[index])
        return np.asarray(np.where(e >= points[-1], values[-1], chord))

    return symmetric(curve, top)
