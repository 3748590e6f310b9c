"""The least noise, or the most rounds, certainly within a promise.

1. One-sided: what is returned was priced by `cost.price` at the promise's delta and relation,
   and is within its epsilon.
2. Nothing here reads data: a plan is a function from a scale to events.
3. A remembered answer is priced again before it is used.

Under `epsilon=inf` the multiplier is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ... import _checks
from ...core import cost
from ...core import inventory as leaves
from ...core.events import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    VisiblySampled,
    ZeroConcentrated,
    compose,
)
from ...core.promise import Promise
from ...errors import BudgetError, FairveilError, InputError
from . import cache as calibration_cache

Plan = Callable[[float], Event]
"""From a scale to the events of the whole run: a larger scale means more noise, and never costs
more."""

LARGEST_SCALE = 1e9
SMALLEST_SCALE = 1e-6
MOST_ROUNDS = 10**9


@dataclass(frozen=True)
class Calibrated:
    """The least scale within a promise, the events at that scale, and what they cost (never more
    than promised)."""

    multiplier: float
    events: Event
    epsilon: float
    route: str


def calibrate(
    promise: Promise, plan: Plan, *, start: float = 1.0, precision: float = 1e-4, cache: bool = True
) -> Calibrated:
    """The least z for which `plan(z)` is within the promise: its epsilon lies in [(1 - precision)
    promised, promised].

    `plan` maps a scale to an event, monotonically; `scaled(event)` makes one from the event at
    scale 1. The search brackets from `start` upwards, since little noise is slow to price. Plans
    that are slow to price are remembered in the user's cache directory unless `cache=False`.

    >>> from fairveil.core.events import Gaussian, Repeated
    >>> found = calibrate(Promise(1.0, 1e-6), lambda z: Repeated(Gaussian(z), 100))
    >>> round(found.multiplier, 1), found.epsilon <= 1.0, found.route
    (42.2, True, 'closed form')
    """
    if not promise.is_private:
        return Calibrated(0.0, NonPrivate(), math.inf, cost.NO_ROUTE)
    start = _checks.positive(start=start)
    precision = _checks.positive(precision=precision)
    slow = cache and bool(leaves.inventory(_planned(plan, start), promise.neighbours).others)
    key = (
        calibration_cache.key(
            promise, [_planned(plan, start * k) for k in (1.0, 2.0, 3.7)], precision
        )
        if slow
        else ""
    )
    known = calibration_cache.recall(key) if slow else None
    if known is not None and SMALLEST_SCALE / 2 <= known <= 1e3 * LARGEST_SCALE:
        try:
            found = _at(promise, plan, known)
        except (FairveilError, ArithmeticError, LookupError, ValueError):
            found = Calibrated(known, NonPrivate(), math.inf, cost.NO_ROUTE)
        # What was remembered is a guess, priced anew (guarantee 3): a wrong file costs time alone.
        if (1 - precision) * promise.epsilon <= found.epsilon <= promise.epsilon:
            return found
    found = _search(promise, plan, start, precision)
    if slow:
        calibration_cache.remember(key, found.multiplier)
    return found


def scaled(event: Event) -> Plan:
    """The plan that multiplies every noise multiplier of `event` by z and divides every epsilon
    (rho by z^2).

    Approximate, sampler-error and non-private events have no noise to scale: they are kept.

    >>> from fairveil.core.events import Gaussian
    >>> scaled(Repeated(Gaussian(2.0), 3))(1.5)
    Repeated(event=Gaussian(noise_multiplier=3.0), count=3)
    """
    return lambda z: _scaled(event, z)


def _scaled(event: Event, z: float) -> Event:
    match event:
        case Composed():
            return Composed(tuple(_scaled(inner, z) for inner in event.events))
        case PerCell():
            return replace(
                event, multipliers=tuple(tuple(m * z for m in part) for part in event.multipliers)
            )
        case Exponential() | Pure():
            return replace(event, epsilon=event.epsilon / z)
        case ZeroConcentrated():
            return replace(event, rho=event.rho / z**2)
        case Repeated() | PoissonSampled() | VisiblySampled() | OnPart() | PrivateSelection():
            return replace(event, event=_scaled(event.event, z))
        case Gaussian() | DiscreteGaussian() | Laplace() | DiscreteLaplace():
            return replace(event, noise_multiplier=event.noise_multiplier * z)
    return event


def full_batch(promise: Promise, rounds: int, extra_events: Iterable[Event] = ()) -> float:
    """The least multiplier of `rounds` unsampled Gaussian releases beside `extra_events`, within
    the promise.

    With Gaussian extras it is a closed form: rounds/z^2 + mu_extra^2 = mu^2, where mu is the
    promise's (theory.md#t1).
    """
    rounds = _checks.whole(at_least=1, rounds=rounds)
    extra = leaves.as_event(extra_events)
    if not promise.is_private:
        return 0.0
    beside = leaves.inventory(extra, promise.neighbours)
    if beside.others or beside.total_variation or not beside.private:
        return calibrate(
            promise, lambda z: compose((Repeated(Gaussian(z), rounds), extra))
        ).multiplier
    left = cost.gaussian_mu(promise.epsilon, promise.delta) ** 2 - beside.gaussian
    if left <= 0:
        raise _beyond(promise, cost.epsilon(extra, promise.delta, promise.neighbours))
    z, growth = math.sqrt(rounds / left), 1e-12
    # Where the extras use up nearly all, `left` has few digits: ever larger steps, so that the
    # search ends.
    for _ in range(60):
        if (
            _at(
                promise, lambda scale: compose((Repeated(Gaussian(scale), rounds), extra)), z
            ).epsilon
            <= promise.epsilon
        ):
            return z
        z, growth = z * (1 + growth), 2 * growth
    raise _beyond(promise, cost.epsilon(extra, promise.delta, promise.neighbours))


def most_rounds(promise: Promise, one_round: Event, extra_events: Iterable[Event] = ()) -> int:
    """The largest number of times that `one_round` fits into the promise, beside `extra_events`; at
    most a billion.

    >>> from fairveil.core.events import Gaussian
    >>> most_rounds(Promise(1.0, 1e-6), Gaussian(20.0))
    22
    """
    extra = leaves.as_event(extra_events)

    def fits(rounds: int) -> bool:
        events = compose((Repeated(one_round, rounds), extra))
        return cost.epsilon(events, promise.delta, promise.neighbours) <= promise.epsilon

    if not promise.is_private or cost.epsilon(one_round, 0.0, promise.neighbours) == 0:
        raise InputError.expected(
            "a finite epsilon and a round that costs something",
            of="most_rounds",
            got=(promise, one_round),
            remedy="Any number of rounds fits: choose it by what it is for.",
        )
    if not fits(0):
        raise _beyond(promise, cost.epsilon(extra, promise.delta, promise.neighbours))
    low, high = 0, 1
    while fits(high):
        if high >= MOST_ROUNDS:
            return MOST_ROUNDS
        low, high = high, min(2 * high, MOST_ROUNDS)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def split(z: float, cost_first: float, cost_second: float) -> tuple[float, float]:
    """Two Gaussians of one joint release that cost what one of multiplier z costs, with the least
    cost_first z_first^2 + cost_second z_second^2 (theory.md#raco).

    z_first^2 = z^2 (1 + sqrt(cost_second / cost_first)), and the other way round.

    >>> split(1.0, 1.0, 1.0)[0] ** 2
    2.0000000000000...
    """
    z = _checks.positive(z=z)
    ratio = math.sqrt(
        _checks.positive(cost_second=cost_second) / _checks.positive(cost_first=cost_first)
    )
    first, second = z * math.sqrt(1 + ratio), z * math.sqrt(1 + 1 / ratio)
    # Until both together cost no more than z in floats as well.
    while math.fsum((first**-2, second**-2)) > z**-2:
        first, second = first * (1 + 1e-15), second * (1 + 1e-15)
    return first, second


def _planned(plan: Plan, scale: float) -> Event:
    event = plan(scale)
    if not isinstance(event, Event):
        raise InputError.expected(
            "a function from a scale to an event",
            of="plan",
            got=event,
            remedy="Pass lambda z: Repeated(Gaussian(z), 100), or scaled(event).",
        )
    return event


def _at(promise: Promise, plan: Plan, scale: float) -> Calibrated:
    event = _planned(plan, scale)
    price = cost.price(event, promise.delta, promise.neighbours)
    return Calibrated(scale, event, price.epsilon, price.route)


def _search(promise: Promise, plan: Plan, start: float, precision: float) -> Calibrated:
    low, high = _bracket(promise, plan, start)
    if low is None:
        return high
    target = promise.epsilon
    for step in range(200):
        if high.epsilon >= (1 - precision) * target or high.multiplier <= low.multiplier * (
            1 + 1e-12
        ):
            return high
        middle = _between(low, high, target * (1 - precision / 2), halve=step % 3 == 2)
        found = _at(promise, plan, middle)
        low, high = (found, high) if found.epsilon > target else (low, found)
    return high


def _between(low: Calibrated, high: Calibrated, target: float, *, halve: bool) -> float:
    """By the line through both ends in logarithms, or half way (every third time, so that the
    bracket always shrinks)."""
    left, right = math.log(low.multiplier), math.log(high.multiplier)
    if halve or math.isinf(low.epsilon) or high.epsilon <= 0:
        return math.exp((left + right) / 2)
    top, bottom, aim = math.log(low.epsilon), math.log(high.epsilon), math.log(target)
    share = (top - aim) / (top - bottom)
    return math.exp(left + min(max(share, 1e-3), 1 - 1e-3) * (right - left))


def _bracket(promise: Promise, plan: Plan, start: float) -> tuple[Calibrated | None, Calibrated]:
    """A scale that is beyond the promise and one that is within it; None when even the least is
    within it."""
    found = _at(promise, plan, start)
    if found.epsilon <= promise.epsilon:
        high = found
        while high.multiplier > SMALLEST_SCALE:
            found = _at(promise, plan, high.multiplier / 2)
            if found.epsilon > promise.epsilon:
                return found, high
            high = found
        return None, high
    low = found
    while low.multiplier < LARGEST_SCALE:
        ratio = (
            4.0
            if math.isinf(low.epsilon)
            else min(max(1.2 * low.epsilon / promise.epsilon, 1.5), 1e3)
        )
        found = _at(promise, plan, low.multiplier * ratio)
        if found.epsilon <= promise.epsilon:
            return low, found
        low = found
    raise _beyond(promise, low.epsilon)


def _beyond(promise: Promise, least: float) -> BudgetError:
    if promise.delta == 0 and math.isinf(least):
        remedy = (
            "Gaussian noise is never private at delta=0: pass delta=1e-6, or plan Laplace and "
            "exponential releases."
        )
    else:
        remedy = (
            "What is not scaled is already beyond the guarantee: raise epsilon, or plan fewer such "
            "releases."
        )
    got = f"epsilon {least:.6g} with any noise"
    return BudgetError.expected(
        f"a plan that can meet {promise}", of="plan", got=got, remedy=remedy
    )
