"""The least noise certainly within a promise; and one more release, chosen after what was released
before it was looked at.

1. One-sided: what is returned was priced by `cost.price` at the promise's delta and relation, and
   is within its epsilon.
2. Nothing here reads data: a plan is a function from a scale to events.
3. No way to choose the second of two releases needs more than the promised delta, among all that
   `TwoSteps` admits; their price is never below that of both as a plan.

Under `epsilon=inf` the multiplier is 0.

Two steps (theory.md#two-steps). `before` is a plan that was fixed before data were read. Its
answers are seen, and only then it is decided what is released next. The tight total of both is no
bound (theory.md#t10). A filter is one way out. This is another, with less noise: two references,
one pure and one Gaussian (delta 0: the pure one alone), that the promise and `before` fix by
themselves.

Theorem. Let `before` lose a probability `lost` for certain, whatever follows (what `Approximate`
events lose), and let each of k references together with `before` cost at most epsilon at delta
`lost + (delta - lost) / k`. Then `before`, and after it any release that is no easier to
distinguish than one of the references, are (epsilon, delta)-differentially private together,
however that release is chosen by what was seen. (The proof is in docs/accounting.md.) The promise
must have been fixed before anything was seen; everything else may be chosen afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .. import _checks
from ..core import cost
from ..core.cost import Events, Price, price
from ..core.events import (
    Event,
    Gaussian,
    NonPrivate,
    NoOp,
    Pure,
    Repeated,
    as_event,
    compose,
    with_noise,
)
from ..core.mechanisms import addition, inventory, mechanism
from ..core.promise import Neighbours, Promise, relation
from ..errors import BudgetError, InputError

Plan = Callable[[float], Event]
"""From a scale to the events of the whole run: a larger scale means more noise, and never costs
more."""

LARGEST_SCALE, SMALLEST_SCALE = 1e9, 1e-6
ROUNDED = 1e-15
REFERENCES = 2
"""Pure and Gaussian: the kinds of noise that are distinguished."""


@dataclass(frozen=True)
class Calibrated:
    """The least scale within a promise, the events at that scale, and what they cost (never more
    than promised)."""

    multiplier: float
    events: Event
    epsilon: float
    route: str


def calibrate(
    promise: Promise, plan: Plan, *, start: float = 1.0, precision: float = 1e-4
) -> Calibrated:
    """The least z for which `plan(z)` is within the promise: its epsilon lies in [(1 - precision)
    promised, promised].

    `plan` maps a scale to an event, monotonically; `scaled(event)` makes one from the event at
    scale 1. The search brackets from `start` upwards, since little noise is slow to price.

    >>> from fairveil.core.events import Gaussian, Repeated
    >>> found = calibrate(Promise(1.0, 1e-6), lambda z: Repeated(Gaussian(z), 100))
    >>> round(found.multiplier, 1), found.epsilon <= 1.0, found.route
    (42.2, True, 'closed form')
    """
    if not promise.is_private:
        return Calibrated(0.0, NonPrivate(), math.inf, cost.NO_ROUTE)
    precision, target = _checks.positive(precision=precision), promise.epsilon
    # No more digits of a scale than matter: epsilons' last bits differ between processors, a seeded
    # fit does not.
    digits = max(7, 3 - math.floor(math.log10(precision)))
    low, high = _bracket(promise, plan, _checks.positive(start=start))
    if low is None:
        return high
    for step in range(200):
        least = high.multiplier <= low.multiplier * (1 + 1e-12)
        if least or high.epsilon >= (1 - precision) * target:
            break
        middle = _between(low, high, target * (1 - precision / 2), halve=step % 3 == 2)
        found = _at(promise, plan, float(f"{middle:.{digits}g}"))
        low, high = (found, high) if found.epsilon > target else (low, found)
    return high


def scaled(event: Event) -> Plan:
    """The plan that multiplies every noise multiplier of `event` by z and divides every epsilon
    (rho by z^2).

    Approximate and non-private events have no noise to scale: they are kept.

    >>> from fairveil.core.events import Gaussian
    >>> scaled(Repeated(Gaussian(2.0), 3))(1.5)
    Repeated(event=Gaussian(noise_multiplier=3.0), count=3)
    """
    return lambda z: with_noise(event, z)


def full_batch(promise: Promise, rounds: int, extra_events: Iterable[Event] = ()) -> float:
    """The least multiplier of `rounds` unsampled Gaussian releases beside `extra_events`, within
    the promise.

    With Gaussian extras it is a closed form: rounds/z^2 + mu_extra^2 = mu^2, where mu is the
    promise's (theory.md#t1).
    """
    rounds = _checks.whole(at_least=1, rounds=rounds)
    extra = as_event(extra_events)
    if not promise.is_private:
        return 0.0

    def plan(z: float) -> Event:
        return compose((Repeated(Gaussian(z), rounds), extra))

    beside = inventory(extra, promise.neighbours)
    if beside.others or not beside.private:
        return calibrate(promise, plan).multiplier
    left = cost.gaussian_mu(promise.epsilon, promise.delta) ** 2 - beside.gaussian
    z, growth = math.sqrt(rounds / left) if left > 0 else math.inf, 1e-12
    # Where the extras use up nearly all, `left` has few digits: ever larger steps, so that the
    # search ends.
    for _ in range(60 if left > 0 else 0):
        if _at(promise, plan, z).epsilon <= promise.epsilon:
            return z
        z, growth = z * (1 + growth), 2 * growth
    raise _beyond(promise, cost.epsilon(extra, promise.delta, promise.neighbours))


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


def _at(promise: Promise, plan: Plan, scale: float) -> Calibrated:
    event = plan(scale)
    fix = "Pass lambda z: Repeated(Gaussian(z), 100), or scaled(event)."
    words = "a function from a scale to an event"
    event = _checks.instance(Event, "plan", event, fix, words)
    found = price(event, promise.delta, promise.neighbours)
    return Calibrated(scale, event, found.epsilon, found.route)


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
        near = min(max(round(1.2 * low.epsilon / promise.epsilon, 3), 1.5), 1e3)
        ratio = 4.0 if math.isinf(low.epsilon) else near
        found = _at(promise, plan, low.multiplier * ratio)
        if found.epsilon <= promise.epsilon:
            return low, found
        low = found
    raise _beyond(promise, low.epsilon)


def _beyond(promise: Promise, least: float) -> BudgetError:
    fix = "What is not scaled is already beyond the guarantee: raise epsilon, or plan fewer such "
    fix += "releases."
    if promise.delta == 0 and math.isinf(least):
        fix = "Gaussian noise is never private at delta=0: pass delta=1e-6, or plan Laplace and "
        fix += "exponential releases."
    words, got = f"a plan that can meet {promise}", f"epsilon {least:.6g} with any noise"
    return BudgetError.expected(words, of="plan", got=got, remedy=fix)


# ---- one release after a plan that was looked at


@dataclass(frozen=True)
class TwoSteps:
    """The rule by which a promise is kept where the last release was chosen after all others were
    looked at: the terms that a `Filter` has for a statement, which asks whether it admits the
    log (`statement.rule.two_steps`)."""

    promise: Promise
    kind: str = "two-step"
    order: float | None = None
    reserve: float = 0.0


def price_after(
    before: Events, after: Events, delta: float, neighbours: str = "add-remove"
) -> Price:
    """What `before`, fixed in advance, and `after`, chosen when the answers of `before` had been
    seen, cost together.

    `after`: pure releases alone, or unsampled Gaussians alone.

    >>> from fairveil.core.events import DiscreteLaplace
    >>> one, other = [Gaussian(8.0)], [DiscreteLaplace(2.0)]
    >>> (
    ...     round(price([*one, *other], 1e-6).epsilon, 3),
    ...     round(price_after(one, other, 1e-6).epsilon, 3),
    ... )
    (0.99, 1.01)
    """
    under = relation(neighbours)
    target = _checks.fraction(delta=delta, high_open=True, remedy="Pass delta=1e-6, for example.")
    first, second = as_event(before), as_event(after)
    if inventory(first, under).is_free or inventory(second, under).is_free:
        return price((first, second), target, under)
    found = price((first, reference(second, under)), share_of(first, target, under), under)
    return Price(found.epsilon, target, under, f"{found.route}, in two steps")


def share_of(before: Event, delta: float, neighbours: Neighbours) -> float:
    """The delta at which `before` and one reference must keep epsilon: what is lost for certain, by
    `Approximate` events, from below, and half of the rest."""
    if delta <= 0.0:
        return delta
    pairs = inventory(before, neighbours).others
    known = [(mechanism(event, neighbours).pure[1], count) for event, count in pairs]
    lost = [(one, count) for one, count in known if one > 0]
    kept = math.fsum(count * math.log1p(-one) for one, count in lost)
    gone = max(0.0, -math.expm1(kept) * (1.0 - 1e-12))
    gone = min(delta, lost[0][0] if len(lost) == 1 and lost[0][1] == 1 else gone)
    return gone + (delta - gone) / REFERENCES


def within(promise: Promise, before: Event) -> Promise:
    """The promise that `before` and one reference must keep."""
    return replace(promise, delta=share_of(before, promise.delta, promise.neighbours))


def reference(after: Event, neighbours: Neighbours) -> Event:
    """The reference that `after` is measured by: everything that is no easier to distinguish is
    admitted alike."""
    total = inventory(after, neighbours)
    if total.private:
        if not total.others:
            mu = math.sqrt(total.gaussian)
            return Gaussian((1.0 - ROUNDED) / mu) if mu > 0 else NoOp()
        epsilon, leak = addition(total, neighbours)
        if math.isfinite(epsilon) and leak == 0.0:
            return Pure(epsilon)
    raise InputError.expected(
        "pure releases alone, or unsampled Gaussians alone",
        of="what was released after the rest was looked at",
        got=after.kind,
        remedy="Cap such releases by a filter: fairveil.privacy.Filter.",
    )
