"""What a release costs: events in, epsilon or delta out, by the least of the valid routes; and a cap
on releases that are chosen one after another.

1. One-sided: a price is never below the true cost of the described events. Grids round up, tails
   count as infinite losses, roots come from above.
2. One batch is one event; two `PoissonSampled` are two batches (theory.md#one-batch).
3. The relation changes sampled and per-cell events only: elsewhere it is already in the multiplier
   (theory.md#multipliers).
4. A price is for plans fixed in advance. Of releases that are chosen after seeing earlier answers,
   however adaptively, all that a `Filter` admitted together are within its promise (T10).
5. A fit is charged whole before it runs; one that is interrupted stays charged. A filter is a
   value: `add` returns the next one, and a refused event changes nothing.

Routes: closed form (Gaussians: Balle and Wang 2018, Dong, Roth and Su 2022), privacy-loss
distributions (Sommer, Meiser and Mohammadi 2019; Koskela, Jalko and Honkela 2020), Renyi (Mironov
2017), addition of epsilons. `docs/accounting.md` has the theorem behind every event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import special

from . import checks, compose, curves
from .compose import Losses
from .curves import Profile, gaussian_delta
from .errors import BudgetError, need
from .events import (
    GAUSSIANS,
    Event,
    Gaussian,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    Pure,
    VisiblySampled,
    as_event,
    made_of,
)
from .mechanisms import Inventory, addition, batch, inventory, mechanism, moments
from .promise import Neighbours, Promise, relation

Events = Event | Iterable[Event]

CLOSED_FORM = "closed form"
LOSS_DISTRIBUTION = "privacy-loss distribution"
RENYI = "Renyi"
ADDITION = "addition"
NOTHING = "nothing read"
NO_ROUTE = "none"


@dataclass(frozen=True)
class Price:
    """What events cost: (epsilon, delta) under a relation, and the route that showed it."""

    epsilon: float
    delta: float
    neighbours: Neighbours
    route: str


def epsilon(events: Events, delta: float, neighbours: str = "add-remove") -> float:
    """The epsilon of these events at this delta; inf when they are not private at it.

    >>> from fairveil.core.events import Gaussian, Repeated
    >>> round(epsilon(Repeated(Gaussian(10.0), 100), 1e-6), 4)
    4.8866
    """
    return price(events, delta, neighbours).epsilon


def price(events: Events, delta: float, neighbours: str = "add-remove") -> Price:
    """The least epsilon over all valid routes, and the route that gave it."""
    target = checks.fraction(delta=delta, high_open=True, remedy="Pass delta=1e-6, for example.")
    return _price(as_event(events), target, relation(neighbours))


def delta(events: Events, epsilon: float, neighbours: str = "add-remove") -> float:
    """The delta of these events at this epsilon, at most 1.

    >>> from fairveil.core.events import Laplace
    >>> delta(Laplace(1.0), 1.0)
    0.0
    """
    at = checks.non_negative(epsilon=epsilon, allow_inf=True)
    # Delta never rises with epsilon: beyond what floats follow, that of a smaller one holds.
    return _delta(as_event(events), min(at, 700.0), relation(neighbours))


def routes_of(events: Events, delta: float, neighbours: str = "add-remove") -> dict[str, float]:
    """Every valid route by name, with the epsilon that it gives: each is an upper bound on the true
    one."""
    target = checks.fraction(delta=delta, high_open=True)
    total = inventory(as_event(events), relation(neighbours))
    return {route.name: route.epsilon(target) for route in _routes(total, relation(neighbours))}


@lru_cache(maxsize=4096)
def _price(event: Event, target: float, neighbours: Neighbours) -> Price:
    total = inventory(event, neighbours)
    best = Price(math.inf, target, neighbours, NO_ROUTE)
    for route in _worthwhile(total, neighbours, target):
        found = route.epsilon(target)
        if found < best.epsilon:
            best = Price(found, target, neighbours, route.name)
    if math.isinf(best.epsilon) and total.private and target > 0:
        # The grid has no room for losses as large, or deltas as small, as these: moments have no
        # grid.
        return Price(_by_moments(total, neighbours).epsilon(target), target, neighbours, RENYI)
    return best


@lru_cache(maxsize=4096)
def _delta(event: Event, at: float, neighbours: Neighbours) -> float:
    total, best = inventory(event, neighbours), 1.0
    for route in _worthwhile(total, neighbours, 1.0):
        best = min(best, route.delta(at))
        if best == 0:
            break
    return best


# ---- routes


class Route(NamedTuple):
    """A named way to a total: valid alone, from delta to epsilon and back."""

    name: str
    epsilon: Callable[[float], float]
    delta: Callable[[float], float]


def _routes(total: Inventory, neighbours: Neighbours) -> Iterator[Route]:
    """Every route that can price this inventory, the quickest first; none when something was
    released without noise."""
    if not total.private:
        return
    if total.is_free:
        yield Route(NOTHING, lambda delta: 0.0, lambda epsilon: 0.0)
        return
    if not total.others:
        mu = math.sqrt(total.gaussian)
        closed = lambda delta: gaussian_epsilon(mu, delta)  # noqa: E731
        yield Route(CLOSED_FORM, closed, lambda epsilon: gaussian_delta(epsilon, mu))
    pure, leak = addition(total, neighbours)
    if not math.isinf(pure):
        added = lambda delta: pure if delta >= leak else math.inf  # noqa: E731
        yield Route(ADDITION, added, lambda epsilon: leak if epsilon >= pure else 1.0)
    yield _by_moments(total, neighbours)
    if all(mechanism(event, neighbours).profile for event, _ in total.others):
        yield _by_losses(total, neighbours)


def _worthwhile(total: Inventory, neighbours: Neighbours, target: float) -> Iterator[Route]:
    """The routes that can be the least: moments only where something is known by nothing else, or
    composes closer so."""
    known = [mechanism(event, neighbours) for event, _ in total.others]
    needed = {
        RENYI: any(one.loose or one.profile is None for one in known),
        LOSS_DISTRIBUTION: bool(known),
    }
    for route in _routes(total, neighbours):
        if needed.get(route.name, True) and (target > 0 or route.name not in needed):
            yield route


def _by_moments(total: Inventory, neighbours: Neighbours) -> Route:
    return Route(
        RENYI,
        lambda delta: moments(total, neighbours).epsilon(delta) if delta > 0 else math.inf,
        lambda epsilon: moments(total, neighbours).delta(epsilon),
    )


def _by_losses(total: Inventory, neighbours: Neighbours) -> Route:
    def epsilon(delta: float) -> float:
        if delta <= 0:
            return math.inf
        # Mass that may be called infinite: a millionth of delta, in whole decades so that near
        # deltas share their grids.
        decade = math.floor(math.log10(delta)) - 6 if delta > 1e-290 else -297
        ways = _composition(total, neighbours, float(10.0**decade))
        return max(way.epsilon(delta) for way in ways)

    def delta(epsilon: float) -> float:
        return max(way.delta(epsilon) for way in _composition(total, neighbours, 1e-20))

    return Route(LOSS_DISTRIBUTION, epsilon, delta)


@lru_cache(maxsize=4)
def _composition(
    total: Inventory, neighbours: Neighbours, tail: float
) -> tuple[compose.Total, compose.Total]:
    """Every mechanism's losses on one grid that suits the whole, in both directions."""
    uses: list[tuple[Profile, int, Event | None]] = []
    for event, count in total.others:
        profile = mechanism(event, neighbours).profile
        assert profile is not None
        uses.append((profile, count, event))
    if total.gaussian > 0:
        uses.append((curves.gaussian(math.sqrt(total.gaussian)), 1, None))
    # A profile falls: one that is 0 at 0 costs nothing.
    uses = [use for use in uses if max(curves.at(side, 0.0) for side in use[0].sides) > 0]
    if not uses:
        return compose.Total(1.0, ()), compose.Total(1.0, ())
    times = sum(count for _, count, _ in uses)
    # Each use may lose this much: together no more than the tail that was asked for.
    tail = tail / 10.0 ** math.ceil(math.log10(times))
    step = compose.step_for([(profile, count) for profile, count, _ in uses], tail)
    while True:
        pairs = [
            (compose.on_grid(profile, step, tail), count)
            if event is None
            else (_kept(event, neighbours, step, tail), count)
            for profile, count, event in uses
        ]
        # Every mechanism sees the same pair of neighbours in the same order.
        ahead = compose.Total(step, tuple((pair[0], count) for pair, count in pairs))
        back = compose.Total(step, tuple((pair[1], count) for pair, count in pairs))
        cells = max(ahead.cells(1e-10), back.cells(1e-10))
        if cells <= compose.MOST_CELLS:
            return ahead, back
        # Losses are rounded up to the grid, so a coarser one costs more and never less.
        step *= 1.1 * cells / compose.MOST_CELLS


@lru_cache(maxsize=8)
def _kept(event: Event, neighbours: Neighbours, step: float, tail: float) -> tuple[Losses, Losses]:
    profile = mechanism(event, neighbours).profile
    assert profile is not None
    return compose.on_grid(profile, step, tail)


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


def in_a_row(event: Event, neighbours: Neighbours, times: int) -> Event | None:
    """The event that bounds these, released under `neighbours`, between data sets `times` neighbours
    apart; None where there is no closed form. G_mu between neighbours is G_(k mu) there (Dong, Roth
    and Su 2022, Theorem 2.14), and what is epsilon-private is k epsilon-private.

    >>> from fairveil.core.events import Gaussian, Pure
    >>> in_a_row(Gaussian(4.0), "add-remove", 2).noise_multiplier <= 2.0
    True
    >>> in_a_row(Pure(0.5), "replace-one", 2)
    Pure(epsilon=1.0)
    """
    total = inventory(event, neighbours)
    if times == 1:
        return event
    if not total.private:
        return None
    if not total.others:
        mu = math.sqrt(total.gaussian)
        return Gaussian(1.0 / times / mu * (1 - 1e-15)) if mu > 0 else NoOp()
    epsilon, leak = addition(total, neighbours)
    if leak > 0 or math.isinf(epsilon):
        return None
    exact = 1.0 if times == 2 else 1 + 1e-15
    return Pure(times * epsilon * exact) if epsilon > 0 else NoOp()


# ---- a plan and its log
#
# A plan may say the worst person's noise where the log says everybody's. Shares of a budget by group
# may be made of answers that were released before. Then a plan cannot name them; it says the bound
# that they keep, `Gaussian(z)`, and the log says what was done, `PerCell(...)`. Whatever was seen
# before, such a release is at most 1/z-Gaussian private, and 1/z is a constant: that is all that
# adaptive composition asks for (theory.md#t1, #t9).

COVERED = 1e-12
"""What the square of a release may be above its bound: the last bits of a sum."""


@lru_cache(maxsize=4096)
def covers(planned: Event, done: Event, neighbours: Neighbours | None) -> bool:
    """Whether an answer that was planned is a bound on the one that was given: the same, or no less
    noise for anybody.

    Without a relation nothing is known of people, and only the same is.
    A planned `PerCell` bounds itself alone: a plan's are composed person by person, and what is
    worse for one and better for another would not be in its price. Of a secret batch the price is
    everybody's worst, so there it may stand for another.

    >>> covers(Gaussian(2.0), PerCell(((2.0, 3.0),), (2.0,)), "add-remove")
    True
    >>> covers(Gaussian(2.0), PerCell(((2.0, 1.0),), (2.0,)), "add-remove")
    False
    """
    if planned == done or neighbours is None:
        return planned == done
    match planned, done:
        case PoissonSampled(rate), PoissonSampled():
            # c and d of theory.md#t3, neither of them larger: all that the price depends on
            one, other = batch(planned, neighbours), batch(done, neighbours)
            pairs = [(one.alone, other.alone), (one.replaced or 0.0, other.replaced or 0.0)]
            most = 1 + COVERED
            return rate == done.rate and all(b**2 <= a**2 * most for a, b in pairs)
        case VisiblySampled(rate), VisiblySampled():
            return rate == done.rate and _at_most(planned.event, done.event, neighbours)
        case OnPart(_, part, parts), OnPart():
            same = (part, parts) == (done.part, done.parts)
            return same and _at_most(planned.event, done.event, neighbours)
        case Gaussian(), PerCell():
            return _at_most(planned, done, neighbours)
    return False


def _at_most(planned: Event, done: Event, neighbours: Neighbours) -> bool:
    """Of what is made of unsampled Gaussians; those that are planned are the same for everybody."""
    if not made_of(planned, (Gaussian,)) or not made_of(done, GAUSSIANS):
        return False
    room = inventory(planned, neighbours).gaussian
    return inventory(done, neighbours).gaussian <= room * (1 + COVERED)


# ---- a cap on fits that are chosen one after another, each after seeing what came before

Kind = Literal["gaussian", "renyi", "pure"]
KINDS: tuple[Kind, ...] = ("gaussian", "renyi", "pure")
FORMAT_VERSION = 1
RESERVE = 0.01
ROUNDED = 1e-12


@dataclass(frozen=True)
class Filter:
    """A cap on answers that are chosen one after another: what fits is added up, what does not is
    refused (theory.md#t10).

    A tight total of a fixed list is *not* such a cap: two mechanisms may each complete a list to
    exactly (epsilon, delta), and choosing between them by an earlier answer goes beyond it. A
    filter fixes, before anything is asked, one number that only adds up:

    - `gaussian`: the sum of mu^2 of releases that are each no easier to distinguish than a Gaussian
      of mu (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023): unsampled Gaussians
      exactly, pure ones by the Gaussian just below their trade-off curve.
    - `renyi`: the sum of the divergences at ONE order, fixed at creation (Feldman and Zrnic 2021).
      "Some order still has room" would be a choice made after seeing the answers; so the order
      never changes.
    - `pure`: the sum of epsilons (Rogers, Roth, Ullman and Vadhan 2016).

    What is lost to delta beside (an `Approximate` event's delta) adds up too, within a part of delta
    that is reserved at creation. `spent` of `budget`, in the kind's own
    unit, and `leaked` of the reserved part.

    Make one by `Filter.create`.

    >>> from fairveil.core.events import Gaussian
    >>> cap = Filter.create(Promise(1.0, 1e-6))
    >>> cap = cap.add(Gaussian(6.0))
    >>> cap.fits(Gaussian(6.0)), cap.fits(Gaussian(5.0))
    (True, False)
    """

    promise: Promise
    kind: Kind
    order: float | None
    reserve: float
    budget: float
    spent: float = 0.0
    leaked: float = 0.0
    admitted: int = 0

    @staticmethod
    def create(
        promise: Promise,
        kind: str = "gaussian",
        *,
        typical: Event | None = None,
        order: float | None = None,
        reserve: float = RESERVE,
    ) -> Filter:
        """A fresh filter. For `renyi` the order is the one given (rounded to the grid), else the
        best for many fits like `typical`, else for many Gaussians; `reserve` is the share of delta
        kept for leaks."""
        name = checks.one_of(KINDS, kind=kind)
        chosen = next(known for known in KINDS if known == name)
        reserve = checks.fraction(reserve=reserve, high_open=True)
        fix = "Without a finite epsilon no filter is needed."
        need(promise.is_private, "a finite epsilon", of="promise", got="inf", fix=fix)
        delta, budget, at = promise.delta * (1 - reserve), 0.0, None
        if chosen == "pure":
            budget = promise.epsilon
        elif delta > 0 and chosen == "gaussian":
            budget = math.nextafter(gaussian_mu(promise.epsilon, delta) ** 2, 0.0)
        elif delta > 0:
            # Fixed before any answer. An order that is chosen by the answers would cap nothing
            # (docs/theory/composition.md, filters).
            largest = curves.largest_moments(promise.epsilon, delta)
            cost = curves.ORDERS
            if typical is not None:
                one = inventory(typical, promise.neighbours)
                cost = np.maximum(moments(one, promise.neighbours).values, 1e-300)
            index = int(np.argmax(largest / cost))
            if order is not None:
                index = _nearest(checks.positive(order=order))
            budget, at = float(largest[index]), float(curves.ORDERS[index])
        words, of = "a guarantee that a filter of this kind can keep", f"filter of kind {chosen!r}"
        fix = "Pass delta above 0, a smaller reserve, or kind='pure' for pure mechanisms."
        need(budget > 0, words, of=of, got=str(promise), fix=fix, error=BudgetError)
        return Filter(promise, chosen, at, reserve, budget)

    def room(self) -> float:
        """What is left, in the kind's own unit."""
        return max(0.0, self.budget - self.spent)

    def as_release(self, amount: float) -> float:
        """The epsilon, at the promise's delta, of one release that adds this much: a Gaussian, or a
        pure one."""
        if self.kind == "pure":
            return amount
        square = amount if self.kind == "gaussian" else 2.0 / (self.order or 1.0) * amount
        return min(self.promise.epsilon, gaussian_epsilon(math.sqrt(square), self.promise.delta))

    @property
    def allowance(self) -> float:
        """The part of delta that leaks may use."""
        return self.promise.delta if self.kind == "pure" else self.promise.delta * self.reserve

    def fits(self, events: Events) -> bool:
        """Whether `add` would admit these."""
        return self._within(*self.cost(events))

    def add(self, events: Events) -> Filter:
        """The filter after these; a `BudgetError` with spent, asked, left, and the largest epsilon
        that fits."""
        cost, leak = self.cost(events)
        if not self._within(cost, leak):
            used = f"{self.kind}; spent {self.spent:.6g} of {self.budget:.6g}"
            words = f"a fit of at most {self.room():.6g} ({used})"
            got = f"{cost:.6g}, leaking {leak:.3g} of {self.allowance - self.leaked:.3g} left"
            fix = f"The largest epsilon that fits is {self.as_release(self.room()):.6g} at "
            fix += f"delta {self.promise.delta:g}."
            raise BudgetError.expected(words, of="filter", got=got, remedy=fix)
        # Rounded up each time: many fits could else round their way past the cap.
        spent, leaked = _up(self.spent + cost, cost), _up(self.leaked + leak, leak)
        return replace(self, spent=spent, leaked=leaked, admitted=self.admitted + 1)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, for a journal: all but the budget, which follows from the rest."""
        values = checks.fields_of(self) | {"promise": self.promise.to_dict()}
        del values["budget"]
        return {"version": FORMAT_VERSION, **values}

    def _within(self, cost: float, leak: float) -> bool:
        return _up(self.spent + cost, cost) <= self.budget and (
            leak == 0 or _up(self.leaked + leak, leak) <= self.allowance
        )

    def cost(self, events: Events) -> tuple[float, float]:
        """What these add to the sum, and to what is lost to delta; inf where they are not
        private."""
        under = self.promise.neighbours
        total = inventory(as_event(events), under)
        if not total.private:
            return math.inf, 0.0
        if self.kind == "pure":
            return addition(total, under)
        if self.kind == "gaussian":
            return self._gaussian(total)
        curve = moments(total, under)
        return float(curve.values[_nearest(self.order or 0.0)]), curve.leak

    def _gaussian(self, total: Inventory) -> tuple[float, float]:
        """The sum of mu^2, and the deltas of those that hold but for a delta (Kairouz, Oh and
        Viswanath 2015: each is the pure one, but for a part of probability delta)."""
        squares, leaks = [total.gaussian], [0.0]
        for event, count in total.others:
            epsilon, leak = mechanism(event, self.promise.neighbours).pure
            words, of = "unsampled Gaussian releases, and pure ones", "events"
            fix = "Make the filter of kind 'renyi', which takes every event."
            need(not math.isinf(epsilon), words, of=of, got=event.kind, fix=fix)
            # What is epsilon-private is post-processing of this Gaussian pair
            # (docs/theory/composition.md, filters).
            squares.append(count * gaussian_below(epsilon) ** 2)
            leaks.append(count * leak)
        return math.fsum(squares), math.fsum(leaks)


def gaussian_below(epsilon: float) -> float:
    """The mu of the Gaussian whose trade-off curve lies just below that of every pure mechanism of
    this epsilon.

    That curve is two lines, which meet where both errors are 1/(1 + e^epsilon); a Gaussian's is
    convex between the same ends, so it lies below as soon as it does there: Phi(-mu/2) = 1/(1 +
    e^epsilon), or erf(mu/sqrt 8) = tanh(epsilon/2), which keeps the digits of small ones (after
    Dong, Roth and Su 2022).

    >>> round(gaussian_below(1.0), 4)
    1.232
    """
    if epsilon < 1.0:
        mu = math.sqrt(8.0) * float(special.erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(special.ndtri_exp(-np.logaddexp(0.0, epsilon)))
    return mu * (1.0 + ROUNDED)


def _nearest(order: float) -> int:
    """The place of the order of the grid that is nearest."""
    return int(np.argmin(np.abs(curves.ORDERS - order)))


def _up(total: float, added: float) -> float:
    """A sum rounded up."""
    return math.nextafter(total, math.inf) if added else total
