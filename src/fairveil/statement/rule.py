"""The rule by which anybody recomputes what a statement's events cost: without NumPy, without the
accountant that stated the price. docs/statement_spec.md says it in words and formulas, and
docs/site/static/check.js is the same rule in another language.

Guarantees (tests/statement/test_rule.py).
1. `price` is never below the cost of the events.
2. It is at most a thousandth above what the accountant states.
3. It ends, whatever the events are: what is too large for it is `Unpriced`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from .counts import (
    FIELDS,
    NOTHING,
    WITHIN,
    Event,
    Inventory,
    Joint,
    Unpriced,
    batch,
    gaussian_epsilon,
    halved,
    inside,
    inventory,
    is_gaussian,
    log_sum,
    log_tail,
    made_of,
)

BY_MOMENTS = ("zero-concentrated", "discrete-gaussian", "private-selection")
MOST_RUNS = 1_000_000
SLACK, ON_A_GRID = 1e-9, 1e-3
"""A stated epsilon may fall short of the recomputed one by this fraction: of closed forms, and where
losses were put on a grid."""
TWO_STEPS = "two-step"


# ---- the least of the routes: section 4.2


def is_within(found: tuple[float, bool], stated: float) -> bool:
    """Whether a stated epsilon covers what was found, but for the tolerance."""
    return found[0] <= stated * (1 + (ON_A_GRID if found[1] else SLACK))


def addition(total: Inventory, neighbours: str) -> tuple[float, float]:
    """Epsilons and deltas of mechanisms with a pure part, add up."""
    pairs = [(*_pure(event, neighbours), times) for event, times in total.others]
    if total.square > 0 or any(math.isinf(epsilon) for epsilon, _, _ in pairs):
        return math.inf, 0.0
    return math.fsum(e * times for e, _, times in pairs), math.fsum(d * t for _, d, t in pairs)


def _pure(event: Event, neighbours: str) -> tuple[float, float]:
    kind = event[0]
    if kind in ("pure", "exponential", "approximate"):
        return event[1], event[2] if kind == "approximate" else 0.0
    if kind in ("laplace", "discrete-laplace"):
        return math.nextafter(1 / event[1], math.inf), 0.0
    if kind == "poisson-sampled":
        most = max(_pure_joint(one) for one in batch(event, neighbours) if one is not None)
        if most < 700:
            most = math.log1p(event[1] * math.expm1(most))
        return most * (1 + 2.0**-48), 0.0
    if kind in WITHIN:
        within, leak = addition(inventory(inside(event)[0], neighbours), neighbours)
        if kind == "visibly-sampled":
            return within, event[1] * leak
        bounded = not math.isinf(event[3]) and leak == 0
        return ((2 + event[3]) * within * (1 + 2.0**-48) if bounded else math.inf), 0.0
    return math.inf, 0.0


def _pure_joint(one: Joint) -> float:
    mu, s, atoms, rho = one
    return math.inf if mu > 0 or rho > 0 else s + max(loss for loss, _ in atoms)


def whole_error(total: Inventory, neighbours: str) -> float:
    """The samplers' total variation, with that inside visible batches and selections."""
    errors = [total.error]
    for event, times in total.others:
        if event[0] in WITHIN:
            runs = event[2] if event[0] == "private-selection" else 1.0
            within = whole_error(inventory(inside(event)[0], neighbours), neighbours)
            errors.append(times * runs * within)
    return min(1.0, math.fsum(errors))


def _with_error(route: Callable[[float], float], delta: float, error: float) -> float:
    """The least e with route(delta - (1 + e^e) error) <= e, from above (theory T7)."""
    if error == 0:
        return route(delta)
    guess = 0.0
    for _ in range(60):
        ahead = guess * (1 + 1e-7) + 1e-12
        left = delta - (1 + math.exp(min(ahead, 700.0))) * error
        guess = route(left) if left > 0 else math.inf
        if guess <= ahead or math.isinf(guess):
            return max(guess, ahead)
    return math.inf


@cache
def price(event: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """The epsilon of these events at this delta, and whether a grid was used for it."""
    total = inventory(event, neighbours)
    if not total.private:
        return math.inf, False
    error = whole_error(total, neighbours)
    if not total.others:
        mu = math.sqrt(total.square)
        return _with_error(lambda room: gaussian_epsilon(mu, room), delta, error), False
    plain, leak = addition(total, neighbours)
    best = _with_error(lambda room: plain if room * (1 + 1e-12) >= leak else math.inf, delta, error)
    if delta == 0:
        return best, False
    from . import losses

    kinds = {event[0] for event, _ in total.others}
    sampled = [event for event, _ in total.others if event[0] == "poisson-sampled"]
    found = [math.inf]
    if kinds & {*BY_MOMENTS, "exponential", "visibly-sampled"} or any(
        batch(event, neighbours)[0][3] for event in sampled
    ):
        values, lost, off = losses.total_moments(total, neighbours)

        def by_moments(room: float) -> float:
            left = room - lost
            return losses.moments_epsilon(values, losses.ORDERS, left) if left > 0 else math.inf

        found.append(_with_error(by_moments, delta, off))
    if kinds - set(BY_MOMENTS):
        found.append(
            _with_error(lambda room: losses.by_losses(total, room, neighbours), delta, error)
        )
    return min(best, *found), min(found) < best


# ---- log and plan: section 4.9


def kept(whole: Event) -> Event | None:
    """The event without what is free; None where nothing is left."""
    if whole[0] == "composed":
        parts = tuple(part for part in map(kept, whole[1]) if part is not None)
        return ("composed", parts) if parts else None
    if whole[0] == "repeated":
        part = kept(whole[1]) if whole[2] else None
        return None if part is None else ("repeated", part, whole[2])
    return None if whole[0] == "no-op" else whole


def _runs(whole: Event | None, times: int = 1) -> Iterator[tuple[Event, int]]:
    """(event, how often in a row), composition and repetition spelled out."""
    if whole is None:
        return
    if whole[0] == "repeated":
        yield from _runs(whole[1], times * whole[2])
    elif whole[0] == "composed":
        for _ in range(times):
            for one in whole[1]:
                yield from _runs(one)
    else:
        yield whole, times


def side_by_side(log: Event, plan: Event) -> Iterator[tuple[Event | None, Event | None, int]]:
    """(what was planned, what was done, how often in a row) until the log ends; then what is left."""
    to_come = _runs(kept(plan))
    planned: Event | None = None
    left = 0
    for done, count in _runs(kept(log)):
        while count > 0:
            if left == 0:
                planned, left = next(to_come, (None, count))
            step = min(count, left)
            yield planned, done, step
            count, left = count - step, left - step
    if left == 0:
        planned, left = next(to_come, (None, 0))
    if left:
        yield planned, None, left


@cache
def covers(planned: Event, done: Event, neighbours: str) -> bool:
    """Whether a planned answer bounds the one that was given: the same, or noise by cell with no
    less of it for anybody."""
    if planned == done:
        return True
    kinds = planned[0], done[0]
    if kinds == ("poisson-sampled",) * 2 and planned[1] == done[1]:
        pairs = zip(batch(planned, neighbours), batch(done, neighbours), strict=True)
        return all(
            is_gaussian(a) and is_gaussian(b) and b[0] ** 2 <= a[0] ** 2 * (1 + 1e-12)
            for a, b in pairs
            if a is not None and b is not None
        )
    if kinds == ("visibly-sampled",) * 2 and planned[1] == done[1]:
        return _no_worse(planned[2], done[2], neighbours)
    if kinds == ("on-part",) * 2 and planned[2:] == done[2:]:
        return _no_worse(planned[1], done[1], neighbours)
    return kinds == ("gaussian", "per-cell") and _no_worse(planned, done, neighbours)


def _no_worse(planned: Event, done: Event, neighbours: str) -> bool:
    if not made_of(planned, ("gaussian",)) or not made_of(done, ("gaussian", "per-cell")):
        return False
    first, second = (inventory(one, neighbours).square for one in (planned, done))
    return second <= first * (1 + 1e-12)


def is_prefix(log: Event, plan: Event, neighbours: str, *, whole: bool = False) -> bool:
    """Whether the log, spelled out, is how the plan begins, or finer; `whole`: to the end of both."""
    if log == plan:
        return True
    for number, (planned, done, _) in enumerate(side_by_side(log, plan)):
        if done is None:
            return not whole
        if number == MOST_RUNS or planned is None or not covers(planned, done, neighbours):
            return False
    return True


# ---- what is charged: sections 4.6 and 4.7


class Said(NamedTuple):
    """What prices follow from: the log, the plan, the filter's terms, the stated epsilon, and the
    guarantee."""

    events: Event
    plan: Event | None
    cap: Mapping[str, Any] | None
    epsilon: float
    budget: float
    delta: float
    neighbours: str

    @property
    def nothing(self) -> bool:
        """Whether nothing was released that costs anything."""
        return kept(self.events) is None


def charge(said: Said) -> tuple[float, bool]:
    """What is charged: the whole plan; else what the cap allows, provided that it admits the log;
    else, nothing having been fixed in advance, inf. And whether a grid was used."""
    cap = said.cap
    if said.plan is not None:
        return price(said.plan, said.delta, said.neighbours)
    if cap is None:
        return (0.0 if said.nothing else math.inf), False
    steps = cap["kind"] == TWO_STEPS
    found = two_steps(said.events, said.delta, said.neighbours) if steps else _filtered(cap, said)
    # what a filter admits is charged with what it allows
    return (said.budget if is_within(found, said.budget) else found[0]), found[1]


def is_route(route: str, said: Said) -> bool:
    """Whether a price of these events can have been computed so (section 5)."""
    if said.plan is None and said.cap is not None:
        kind = said.cap["kind"]
        return route == ("two steps" if kind == TWO_STEPS else f"{kind} filter")
    if math.isinf(said.epsilon):
        return route in ("none", "Renyi")
    total = inventory(said.plan or said.events, said.neighbours)
    if not total.private:
        return True  # the price tells
    if total.others:
        return route in ("addition", "privacy-loss distribution", "Renyi")
    return route == ("closed form" if total.square else "nothing read")


def _filtered(cap: Mapping[str, Any], said: Said) -> tuple[float, bool]:
    """The epsilon of the filter's own sum (spec, section 4.6)."""
    from . import losses

    kind, delta, neighbours = cap["kind"], said.delta, said.neighbours
    total = inventory(said.events, neighbours)
    if not total.private or math.isinf(said.budget):
        return math.inf, False
    left, error = delta * (1 - cap["reserve"]), whole_error(total, neighbours)
    if kind == "pure":
        found, leak = addition(total, neighbours)
        left = 0.0
    elif kind == "gaussian":
        square, leak = total.square, 0.0
        for one, times in total.others:
            own, lost = addition(Inventory(0.0, ((one, 1),)), neighbours)
            if math.isinf(own):
                raise Unpriced("a filter of Gaussians takes Gaussian and pure releases alone")
            # a Gaussian of mu is no easier to keep apart where P(Z > mu/2) = 1/(1 + e^epsilon)
            level, top = -log_sum(0.0, own), 2.0 * math.sqrt(2 * own + 4)
            mu = halved(lambda mu, level=level: log_tail(mu / 2) > level, 0.0, top)  # type: ignore[misc]
            square, leak = square + times * mu**2, leak + times * lost
        found = gaussian_epsilon(math.sqrt(square), left)
    else:
        order = None
        if kind == "renyi":
            if cap["order"] is None or left <= 0:
                raise Unpriced("a Renyi filter names its order, and keeps some delta")
            order = min(losses.ORDERS, key=lambda a: abs(a - cap["order"]))
        orders = losses.ORDERS if order is None else (order,)
        values, leak, error = losses.total_moments(total, neighbours, order)
        rho = max(value / a for value, a in zip(values, orders, strict=True))
        found = losses.moments_epsilon((rho * a for a in orders), orders, left)
    leak += (1 + math.exp(min(said.budget, 700.0))) * error if error else 0.0
    room = (delta - left) * (1 + SLACK)
    return (found if leak <= room else math.inf), kind in ("renyi", "zcdp")


def two_steps(whole: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """All releases but the last, and the last with one of two references."""
    before, after = _last_apart(kept(whole) or NOTHING)
    first, second = (inventory(one, neighbours) for one in (before, after))
    if first.is_free or second.is_free:
        return price(("composed", (before, after)), delta, neighbours)
    epsilon, leak = addition(second, neighbours)
    if not second.private or second.error:
        raise Unpriced("a release after the others were seen is pure, or Gaussian")
    if not second.others:
        reference: Event = ("gaussian", (1 - 1e-15) / math.sqrt(second.square))
    elif math.isinf(epsilon) or leak:
        raise Unpriced("a release after the others were seen is pure, or Gaussian")
    else:
        reference = ("pure", epsilon)
    stays = math.fsum(t * math.log1p(-one[2]) for one, t in first.others if one[0] == "approximate")
    lost = min(delta, max(0.0, -math.expm1(stays) * (1 - 1e-12)))
    share = lost + (delta - lost) / 2
    return price(("composed", (before, reference)), share, neighbours)


def _last_apart(whole: Event) -> tuple[Event, Event]:
    """All releases but the last, and the last, of an event without free ones."""
    if whole[0] == "composed":
        before, after = _last_apart(whole[1][-1])
        return ("composed", (*whole[1][:-1], before)), after
    if whole[0] == "repeated":
        before, after = _last_apart(whole[1])
        return ("composed", (("repeated", whole[1], whole[2] - 1), before)), after
    return NOTHING, whole


# ---- the table of releases: section 4.10

ALL_ROWS = "all rows"
MECHANISMS = {
    "gaussian": "Gaussian",
    "discrete-gaussian": "discrete Gaussian",
    "laplace": "Laplace",
    "discrete-laplace": "discrete Laplace",
    "per-cell": "Gaussian by cell",
    "sampler-error": "sampler error",
    "non-private": "exact",
}


def leaves(whole: Event, times: int = 1, rows: str = ALL_ROWS) -> Iterator[tuple[Any, ...]]:
    """(mechanism, numbers, rows, times) of everything that was released."""
    kind = whole[0]
    if kind == "repeated":
        times *= whole[2]
    elif kind == "poisson-sampled":
        rows = f"a secret random batch, each row with probability {whole[1]:g}"
    elif kind == "visibly-sampled":
        rows = f"a random batch that can be seen, each row with probability {whole[1]:g}"
    elif kind == "on-part":
        rows = f"one of {whole[3]} fixed parts of the rows"
    elif kind == "private-selection":
        rows += f", in the best of a random number of runs (mean {whole[2]:g}, shape {whole[3]:g})"
    if kind == "composed" or "event" in FIELDS[kind]:
        for one in inside(whole) if times else ():
            yield from leaves(one, times, rows)
    elif kind != "no-op":
        numbers = [n for part in whole[1] for n in part] if kind == "per-cell" else whole[1:]
        numbers = numbers[:1] if kind == "discrete-laplace" else numbers
        yield MECHANISMS.get(kind, kind), tuple(map(float, numbers)), rows, times


def same_releases(told: Iterable[tuple[Any, ...]], done: Iterable[tuple[Any, ...]]) -> bool:
    """Whether two tables of (mechanism, numbers, rows, times) say the same."""
    sums: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
    for table, lines in zip(sums, (told, done), strict=True):
        for *line, times in lines:
            table[tuple(line)] += times
    return sums[0] == sums[1]
