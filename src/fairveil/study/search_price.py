"""What a search among candidates costs, and how much each of its fits may spend: two ways, priced
before any row is read.

| way | what is released | cost |
|---|---|---|
| selection | of a secret number of runs of random candidates, the one with the best score | `PrivateSelection` of a run |
| all | every candidate's model and private score | the sum of one run of each |

With a floor the estimator's own parameters run once too, whichever way is taken, and whoever wins
is fitted again to all rows.

One run fits on the rows that are kept, and scores on those that are set aside. A person is in one
of both parts, so that a run costs them the larger of the two, not the sum (theory.md#search). The
same total gives each fit less noise one way or the other: which way follows from the number of
candidates and the budget alone.

Guarantees (tests/study/test_study_search_price.py):
1. The accountant's price of `events` is at most the total.
2. `each` costs at least as much as any candidate's plan and as the score, at every order of the
   Renyi curve.
3. `runs` draws the number of runs from the distribution that is priced, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.cost import gaussian_epsilon, gaussian_mu
from ..core.events import (
    Approximate,
    Event,
    Gaussian,
    PrivateSelection,
    Repeated,
    compose,
)
from ..core.mechanisms import inventory
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..errors import BudgetError, PrivacyError
from ..privacy import epsilon as price
from ..statement.document import PrivacyStatement

SELECTION, ALL, DEFAULTS = "selection", "all", "defaults"
WAYS = ("auto", SELECTION, ALL)
GEOMETRIC = 1.0
"""Shape of the number of runs, as a truncated negative binomial."""
STEPS = 30
LOWEST, HIGHEST = 1e-3, 4.0
"""Of the total: where a fit's epsilon is looked for. Its delta is far smaller, so that its epsilon
may be larger."""
Plans = Callable[[float, float], Sequence[Event]]


@dataclass(frozen=True)
class SearchPrice:
    """One way, priced. `epsilon`, `delta`: of each fit. `each`: what covers one run of any
    candidate. `noise_multiplier`: of the score's Gaussian noise; None: discrete Laplace noise of
    `epsilon`. `refit_epsilon`: of the last fit of the winner, at the same delta; None: there is
    none. `floor`: whether the estimator's own parameters had a run of their own, and stay unless a
    candidate is clearly better. `least_gain`: the smallest gain in error that the scores' noise
    would let one tell; None without a floor, or where nobody said how many rows there are."""

    way: str
    epsilon: float
    delta: float
    each: Event
    noise_multiplier: float | None
    events: tuple[Event, ...]
    total: float
    mean: float
    refit_epsilon: float | None = None
    floor: bool = False
    least_gain: float | None = None


def priced(
    promise: Promise,
    plans: Plans,
    candidates: int,
    way: str,
    mean: float,
    refit: float | None = None,
    *,
    floor: bool = False,
) -> SearchPrice:
    """The way that was asked for; for "auto" the one whose fits may spend more, `ALL` where both
    may spend the same. `refit`: the part of the budget, in squares of Gaussian noise (else in
    epsilon), that the winner is fitted with again, to all rows. `floor`: one run more, of the
    estimator's own parameters."""
    ways = [one for one in (ALL, SELECTION) if way in (one, "auto")]
    found, failed = list[SearchPrice](), list[BudgetError]()
    for one in ways:
        try:
            found.append(_priced(promise, plans, candidates, one, mean, refit, floor))
        except BudgetError as error:
            failed.append(error)
    if not found:
        raise failed[0]
    return max(found, key=lambda one: one.epsilon)


def unsearched(promise: Promise, least_gain: float | None) -> SearchPrice:
    """Of one fit with the whole budget, where a search is not worth its price: `least_gain` says
    why."""
    each = Approximate(promise.epsilon, promise.delta)
    return SearchPrice(
        DEFAULTS,
        promise.epsilon,
        promise.delta,
        each,
        None,
        (each,),
        promise.epsilon,
        1.0,
        least_gain=least_gain,
    )


def refit_of(promise: Promise, plans: Plans, share: float, delta: float) -> tuple[float, Event]:
    """(epsilon, event) of the last fit, whichever candidate wins."""
    mu = math.sqrt(share) * gaussian_mu(promise.epsilon, promise.delta)
    epsilon = gaussian_epsilon(mu, delta)
    found = _mu(plans(epsilon, delta), promise)
    if found is None:
        return share * promise.epsilon, Approximate(share * promise.epsilon, delta)
    if found > mu * (1.0 + 1e-6):
        raise PrivacyError.expected(
            "plans that keep the epsilon they are given",
            of="refit",
            got=promise,
            remedy="Search others.",
        )
    return epsilon, Gaussian(1.0 / found)


def _priced(
    promise: Promise,
    plans: Plans,
    candidates: int,
    way: str,
    mean: float,
    refit: float | None,
    floor: bool,
) -> SearchPrice:
    """The largest epsilon of a fit that the total has room for, by bisection; checked with the
    plans themselves."""
    # A quarter of delta for all fits together; the rest is for their composition.
    delta = promise.delta / (4.0 * max(mean, float(candidates) + floor))
    last = None if refit is None else refit_of(promise, plans, refit, delta)
    after = () if last is None else (last[1],)

    def events_of(each: Event) -> tuple[Event, ...]:
        if way == ALL:
            return (Repeated(each, candidates + floor), *after)
        return (
            *((each,) if floor else ()),
            PrivateSelection(each, mean, GEOMETRIC),
            *after,
        )

    def cost(each: Event) -> float:
        return price(events_of(each), promise.delta, promise.neighbours)

    gaussian = _mu(plans(promise.epsilon, delta), promise) is not None

    def supposed(epsilon: float) -> Event:
        return (
            Gaussian(1.0 / gaussian_mu(epsilon, delta)) if gaussian else Approximate(epsilon, delta)
        )

    # By supposed plans, which are quick to price; the plans themselves are asked below.
    epsilon = _largest(lambda e: cost(supposed(e)), promise, candidates)
    for _ in range(STEPS):
        planned = plans(epsilon, delta)
        mu = _mu(planned, promise) if gaussian else None
        each: Event = Approximate(epsilon, delta) if mu is None else Gaussian(1.0 / mu)
        total = cost(each)
        if total <= promise.epsilon:
            z, again = None if mu is None else 1.0 / mu, None if last is None else last[0]
            number = float(candidates) if way == ALL else mean
            return SearchPrice(
                way, epsilon, delta, each, z, events_of(each), total, number, again, floor
            )
        # The plans cost a little more than was supposed: less, until they fit.
        epsilon *= 0.97
    raise PrivacyError.expected(
        "plans that keep the epsilon they are given",
        of="estimator",
        got=promise,
        remedy="Search others.",
    )


def _largest(cost: Callable[[float], float], promise: Promise, candidates: int) -> float:
    """The largest epsilon of a fit whose search costs what is promised, by bisection."""
    low, high = promise.epsilon * LOWEST, promise.epsilon * HIGHEST
    if cost(low) > promise.epsilon:
        remedy = "Search fewer candidates, or raise epsilon or delta."
        got = f"{candidates} candidates at {promise}"
        raise BudgetError.expected(
            "a budget that a search fits into", of="epsilon", got=got, remedy=remedy
        )
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if cost(middle) <= promise.epsilon else (low, middle)
    return low


def _mu(planned: Sequence[Event], promise: Promise) -> float | None:
    """The largest mu of plans that are unsampled Gaussian noise and nothing else; None where one is
    not."""
    found = [inventory(compose([event]), promise.neighbours) for event in planned]
    if any(one.others or not one.private for one in found):
        return None
    return math.sqrt(max(one.gaussian for one in found)) * (1.0 + 1e-12)


def require_refit_covered(statement: PrivacyStatement, price: SearchPrice) -> None:
    """An error unless what the last fit states costs no more than what was priced for it, the last
    of all events."""
    last = price.events[-1]
    assert isinstance(last, Gaussian | Approximate)
    assert price.refit_epsilon is not None
    noise = last.noise_multiplier if isinstance(last, Gaussian) else None
    require_covered(
        statement, replace(price, epsilon=price.refit_epsilon, noise_multiplier=noise, each=last)
    )


def require_covered(statement: PrivacyStatement, price: SearchPrice) -> None:
    """An error unless what a fit states costs no more than the run that was priced."""
    plan = () if statement.plan is None else statement.plan
    if price.noise_multiplier is None:
        covered = statement.epsilon <= price.epsilon and statement.delta <= price.delta
    else:
        mu = _mu(plan, statement.promise)
        covered = (
            statement.plan is not None
            and mu is not None
            # By the statement's own plan, not by its epsilon: the search was priced by mu.
            and mu <= (1.0 + 1e-9) / price.noise_multiplier
        )
    if not covered:
        remedy = (
            "This is an error of the library: please report it. What was reserved stays charged."
        )
        got = f"epsilon {statement.epsilon:g} at delta {statement.delta:g}"
        raise PrivacyError.expected(
            f"a fit that costs {price.each}", of="PrivateSearchCV", got=got, remedy=remedy
        )


def runs(mean: float, source: NoiseSource) -> int:
    """How many runs a selection makes: a geometric number of this mean, or a hair less."""
    return source.stream("sampling", "runs").trials(min(1.0, math.nextafter(1.0 / mean, 1.0)))
