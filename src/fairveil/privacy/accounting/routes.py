"""The ways to a total: closed form, loss distributions, Renyi, plain addition. Each is valid alone;
the least wins.

Every route answers two questions about an `Inventory`: `epsilon(delta)` and `delta(epsilon)`.
Sampler errors (theory.md#t7) are added on top by `priced`, for every route alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ...core.events import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Laplace,
    PoissonSampled,
    PrivateSelection,
    Pure,
    VisiblySampled,
    ZeroConcentrated,
    joint_parts,
)
from ...core.promise import Neighbours
from . import inventory as leaves
from . import pld as losses
from . import profiles
from . import rdp as renyi
from .inventory import Inventory
from .pld import Losses
from .profiles import Profile, gaussian_delta

CLOSED_FORM = "closed form"
LOSS_DISTRIBUTION = "privacy-loss distribution"
RENYI = "Renyi"
ADDITION = "addition"
NOTHING = "nothing read"
NO_ROUTE = "none"

FINE = 0.03
"""The grid's step over the deviation of one loss: rounding adds step^2/6 to the variance, 1.5e-4 of
it."""
TOTAL_FINE = 1e-3
"""The same over the deviation of the total."""
OUTWARDS = 1.0 + 2.0**-48
"""More than the last digits of a few elementary functions."""


@dataclass(frozen=True, eq=False)
class Route:
    """A named way from delta to epsilon and back; `sampled_error` is charged by T7 beside the
    inventory's own."""

    name: str
    epsilon: Callable[[float], float]
    delta: Callable[[float], float]
    total_variation: float


def valid(total: Inventory, neighbours: Neighbours) -> list[Route]:
    """Every route that can price this inventory, the quickest first. Empty when something was
    released without noise."""
    if not total.private:
        return []
    error = total.total_variation
    if not total.others and total.gaussian == 0:
        return [Route(NOTHING, lambda delta: 0.0, lambda epsilon: 0.0, error)]
    out = []
    if not total.others:
        mu = math.sqrt(total.gaussian)
        out.append(
            Route(
                CLOSED_FORM,
                lambda delta: gaussian_epsilon(mu, delta),
                lambda epsilon: gaussian_delta(epsilon, mu),
                error,
            )
        )
    pure, leak = addition(total, neighbours)
    if not math.isinf(pure):
        out.append(
            Route(
                ADDITION,
                lambda delta: pure if delta >= leak else math.inf,
                lambda epsilon: leak if epsilon >= pure else 1.0,
                whole_error(total, neighbours),
            )
        )
    return out


def whole_error(total: Inventory, neighbours: Neighbours) -> float:
    """The samplers' total variation, with that of samplers inside visible batches and private
    selections (theory.md#t7)."""
    errors = [total.total_variation]
    for event, count in total.others:
        if isinstance(event, VisiblySampled | PrivateSelection):
            runs = event.mean if isinstance(event, PrivateSelection) else 1.0
            errors.append(
                count * runs * whole_error(leaves.inventory(event.event, neighbours), neighbours)
            )
    return min(1.0, math.fsum(errors))


def certain_loss(total: Inventory, neighbours: Neighbours) -> float:
    """The probability of an infinite loss: delta as epsilon grows without end."""
    lost = [0.0]
    for event, count in total.others:
        if isinstance(event, Approximate):
            lost.append(count * event.delta)
        elif isinstance(event, VisiblySampled | PrivateSelection):
            runs = event.mean if isinstance(event, PrivateSelection) else event.rate
            lost.append(
                count * runs * certain_loss(leaves.inventory(event.event, neighbours), neighbours)
            )
    return min(1.0, math.fsum(lost))


def sampler_charge(epsilon: float, error: float) -> float:
    """(1 + e^epsilon) x error, at most 1: what a total variation adds to delta (theory.md#t7).

    >>> sampler_charge(0.0, 1e-9), sampler_charge(2000.0, 1e-306), sampler_charge(2000.0, 0.0)
    (2e-09, 1.0, 0.0)
    """
    if error == 0:
        return 0.0
    if epsilon < 700:
        return min(1.0, (1 + math.exp(epsilon)) * error)
    return min(1.0, error + math.exp(min(0.0, epsilon + math.log(error))))


def moments(total: Inventory, neighbours: Neighbours) -> Route:
    """The Renyi route."""
    curve = renyi.total(total, neighbours)
    return Route(
        RENYI,
        lambda delta: renyi.epsilon_of(curve, delta) if delta > 0 else math.inf,
        lambda epsilon: renyi.delta_of(curve, epsilon),
        curve.total_variation,
    )


def by_losses(total: Inventory, neighbours: Neighbours) -> Route:
    """The route by privacy-loss distributions; what is known by its moments only enters by the
    profile that they imply."""
    error = total.total_variation + _hidden_error(total, neighbours)

    def epsilon(delta: float) -> float:
        if delta <= 0:
            return math.inf
        ways = _composition(total, neighbours, _tail(delta))
        return max(losses.epsilon_of(way, delta) for way in ways)

    def delta(epsilon: float) -> float:
        ways = _composition(total, neighbours, 1e-20)
        return max(losses.delta_of(way, epsilon) for way in ways)

    return Route(LOSS_DISTRIBUTION, epsilon, delta, min(1.0, error))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon with `gaussian_delta(epsilon, mu) <= delta`, from above (Balle and Wang
    2018).

    >>> gaussian_epsilon(1.0, 1.0), gaussian_epsilon(1.0, 0.0)
    (0.0, inf)
    """
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    # The loss is normal, of mean mu^2/2 and deviation mu: it is beyond this end with probability
    # below delta.
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-12
    if gaussian_delta(high, mu) > delta:
        return math.inf
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu with `gaussian_delta(epsilon, mu) <= delta`, from below; 0 at delta 0."""
    if delta <= 0:
        return 0.0
    low, high = 0.0, 1e-3
    while gaussian_delta(epsilon, high) <= delta:
        low, high = high, 2 * high
    while high - low > 1e-14 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
        if high < 1e-300:
            return 0.0
    return low


def addition(total: Inventory, neighbours: Neighbours) -> tuple[float, float]:
    """Basic composition: epsilons and deltas of mechanisms with a pure part add up. The sums are
    exact, and rounded up once."""
    if total.gaussian > 0:
        return math.inf, 0.0
    pairs = [(_pure(event, neighbours), count) for event, count in total.others]
    deltas = _up(sum((Fraction(delta) * count for (_, delta), count in pairs), Fraction()))
    if any(math.isinf(epsilon) for (epsilon, _), _ in pairs):
        return math.inf, deltas
    return _up(
        sum((Fraction(epsilon) * count for (epsilon, _), count in pairs), Fraction())
    ), deltas


def _up(value: Fraction) -> float:
    """The least float that is not below."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


def _pure(event: Event, neighbours: Neighbours) -> tuple[float, float]:
    """(epsilon, delta) of one mechanism by itself; epsilon inf when it has Gaussian parts."""
    match event:
        case Pure() | Exponential():
            return event.epsilon, 0.0
        case Approximate():
            return event.epsilon, event.delta
        case Laplace() | DiscreteLaplace():
            return _up(1 / Fraction(event.noise_multiplier)), 0.0
        case PoissonSampled():
            batch = leaves.one_batch(event, neighbours)
            pure = max(batch.alone.pure, batch.replaced.pure if batch.replaced else 0.0)
            # A pure guarantee on a secret batch: log(1 + q (e^epsilon - 1)).
            within = math.log1p(batch.rate * math.expm1(pure)) if pure < 700 else pure
            return within * OUTWARDS, 0.0
        case VisiblySampled():
            inside, leak = addition(leaves.inventory(event.event, neighbours), neighbours)
            return inside, event.rate * leak
        case PrivateSelection():
            inside, leak = addition(leaves.inventory(event.event, neighbours), neighbours)
            bounded = not math.isinf(event.shape) and leak == 0
            # Papernot and Steinke (2022), for truncated negative binomial numbers of pure runs.
            return ((2 + event.shape) * inside * OUTWARDS if bounded else math.inf), 0.0
    joint = leaves.lone(event)
    return (math.inf if joint is None else joint.pure), 0.0


def has_competition(total: Inventory) -> bool:
    """Whether Renyi can beat the loss distributions: moments known only, or choices, whose
    sup-profile composes loosely."""
    return any(
        _by_moments(event)
        or isinstance(event, Exponential | VisiblySampled)
        or (
            isinstance(event, PoissonSampled)
            and any(isinstance(part, DiscreteGaussian) for part in joint_parts(event.event))
        )
        for event, _ in total.others
    )


def only_moments(total: Inventory) -> bool:
    """Whether nothing but moments is known, so that loss distributions have nothing to add."""
    return all(_by_moments(event) for event, _ in total.others)


def _by_moments(event: Event) -> bool:
    return isinstance(event, ZeroConcentrated | DiscreteGaussian | PrivateSelection)


def _hidden_error(total: Inventory, neighbours: Neighbours) -> float:
    nested = [
        (event, count)
        for event, count in total.others
        if isinstance(event, PrivateSelection | VisiblySampled)
    ]
    return math.fsum(
        count * renyi.curve(event, neighbours).total_variation for event, count in nested
    )


def _tail(delta: float) -> float:
    """Mass that may be called infinite: a millionth of delta, in whole decades so that near deltas
    share their grids."""
    return float(10.0 ** (math.floor(math.log10(delta)) - 6)) if delta > 1e-290 else 1e-297


@lru_cache(maxsize=4)
def _composition(
    total: Inventory, neighbours: Neighbours, tail: float
) -> tuple[losses.Parts, losses.Parts]:
    """Every mechanism's losses on one grid that suits the whole, in both directions."""
    uses: list[tuple[Profile, int, Event | None]] = []
    unknown = renyi.FREE
    for event, count in total.others:
        if _by_moments(event):
            unknown = unknown + renyi.curve(event, neighbours).times(count)
        else:
            uses.append((_profile(event, neighbours), count, event))
    if total.gaussian > 0:
        uses.append((profiles.gaussian(math.sqrt(total.gaussian)), 1, None))
    if unknown.values[0] > 0 or unknown.leak > 0:
        uses.append((renyi.profile_of(unknown), 1, None))
    uses = [use for use in uses if losses.costs_anything(use[0])]
    if not uses:
        return losses.Parts(1.0, ()), losses.Parts(1.0, ())
    times = sum(count for _, count, _ in uses)
    # Each use may lose this much: together no more than the tail that was asked for.
    tail = tail / 10.0 ** math.ceil(math.log10(times))
    step = _step([(profile, count) for profile, count, _ in uses], tail)
    while True:
        pairs = [
            (
                losses.on_grid(profile, step, tail)
                if event is None
                else _kept(event, neighbours, step, tail),
                count,
            )
            for profile, count, event in uses
        ]
        ways = losses.both_ways(pairs, step)
        cells = max(losses.window_cells(way, 1e-10) for way in ways)
        if cells <= losses.MOST_CELLS:
            return ways
        # Losses are rounded up to the grid, so a coarser one costs more and never less.
        step *= 1.1 * cells / losses.MOST_CELLS


def _step(uses: list[tuple[Profile, int]], tail: float) -> float:
    """Small against one loss and against the total, not so small that the cells run out; a bounded
    loss falls on the grid."""
    times = sum(count for _, count in uses)
    variance = math.fsum(count * losses.variance(profile, tail) for profile, count in uses)
    step = min(FINE * math.sqrt(variance / times), TOTAL_FINE * math.sqrt(variance))
    if step > 0:
        step = float(2.0 ** (math.floor(4 * math.log2(step)) / 4))
    reached = [
        losses.reach(side, tail, profile.top)
        for profile, _ in uses
        for side in (profile.forward, profile.backward)
    ]
    step = max(step, math.fsum(reached) / losses.MOST_CELLS, max(reached) * 1e-6)
    bounded = [profile.top for profile, _ in uses if profile.top <= max(reached)]
    least = min(bounded, default=0.0)
    if least <= step:
        return step
    cells = math.ceil(least / step)
    step = least / cells
    # A bound that fell short of its own cell would be put one cell higher.
    while step * cells < least:
        step = math.nextafter(step, math.inf)
    return step


@lru_cache(maxsize=8)
def _kept(event: Event, neighbours: Neighbours, step: float, tail: float) -> tuple[Losses, Losses]:
    return losses.on_grid(_profile(event, neighbours), step, tail)


@lru_cache(maxsize=128)
def _profile(event: Event, neighbours: Neighbours) -> Profile:
    """The profile of one mechanism of an inventory that is not known by its moments only."""
    match event:
        case PoissonSampled():
            return renyi.batch_profile(event, neighbours)
        case Exponential():
            return profiles.bounded_range(event.epsilon)
        case Pure():
            return profiles.pure(event.epsilon)
        case Approximate():
            return profiles.pure(event.epsilon, event.delta)
        case VisiblySampled():
            return profiles.visible(_inner_profile(event.event, neighbours), event.rate)
    joint = leaves.lone(event)
    return (
        profiles.joint(joint.mu, joint.s, joint.atoms)
        if joint
        else renyi.profile_of(renyi.curve(event, neighbours))
    )


def _inner_profile(event: Event, neighbours: Neighbours) -> Profile:
    """Of what is asked of a visible batch: exact for Gaussians or one mechanism, else what its
    moments imply."""
    inside = leaves.inventory(event, neighbours)
    if not inside.others and inside.gaussian == 0:
        return profiles.joint(0.0, 0.0)
    if not inside.others:
        return profiles.gaussian(math.sqrt(inside.gaussian))
    if (
        inside.gaussian == 0
        and len(inside.others) == 1
        and inside.others[0][1] == 1
        and not _by_moments(inside.others[0][0])
    ):
        return _profile(inside.others[0][0], neighbours)
    return renyi.profile_of(renyi.total(inside, neighbours))
