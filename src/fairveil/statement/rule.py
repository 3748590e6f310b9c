"""What the events of a statement cost, worked out again: Gaussians, noise by cell and pure mechanisms
in closed form, by `math` alone; everything else by the accountant of `core`, which is loaded for it
alone. docs/statement_spec.md says it in words and formulas, and docs/site/static/check.js works all
of it out in another language.

Guarantees (tests/statement/test_rule.py).
1. `price` is never below the cost of the events.
2. A closed form is the accountant's price but for rounding.
3. It ends, whatever the events are: what is too large for it is `Unpriced`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from .form import FIELDS, Event, inside

GAUSSIANS = ("gaussian", "per-cell")
PURE = ("pure", "exponential", "approximate", "laplace", "discrete-laplace")
MOST_DISTINCT, MOST_RUNS, MOST_PAIRS = 1000, 1_000_000, 4_000_000
MOST_TIMES = 1 << 32
"""Of one mechanism, for losses on a grid."""
SLACK, ON_A_GRID = 1e-9, 1e-3
"""A stated epsilon may fall short of the recomputed one by this fraction: of closed forms, and where
losses were put on a grid, or known by moments."""
ORDERS = tuple(1.0 + 1e-4 * 10.0 ** (k * 11 / 440) for k in range(441))
NOTHING: Event = ("no-op",)
TWO_STEPS = "two-step"


class Unpriced(ValueError):  # noqa: N818  # what it is
    """What the rule does not price."""


# ---- what was done, counted for one person: section 4.1


class Total(NamedTuple):
    """Squared distance of all unsampled Gaussians; the epsilons and deltas of pure parts added up (inf
    where something has none); whether there is anything but Gaussians; whether nothing was released
    without noise; whether all of it has a closed form."""

    square: float
    epsilon: float
    leak: float
    others: bool
    private: bool
    closed: bool

    @property
    def is_free(self) -> bool:
        """Whether all of it depends on nothing that is protected."""
        return self.private and not (self.others or self.square)


@cache
def total(event: Event, neighbours: str) -> Total:
    """All that one person can have been in."""
    counts = counted(event, neighbours)
    kinds = {leaf[0] for leaf in counts}
    if sum(leaf[0] not in GAUSSIANS for leaf in counts) > MOST_DISTINCT:
        raise Unpriced(f"more than {MOST_DISTINCT} different mechanisms")
    if not kinds <= {*GAUSSIANS, *PURE, "non-private"}:
        from ..core.mechanisms import addition, inventory

        cells = _by_cell(event) if neighbours != "add-remove" else set()
        _require_few(sum(len(one[1]) for one in cells), max(map(_width, cells), default=0))
        found = inventory(accountants(event), neighbours)
        sums = addition(found, neighbours)  # type: ignore[arg-type]
        return Total(found.gaussian, *sums, bool(found.others), found.private, closed=False)
    squares = [times / leaf[1] ** 2 for leaf, times in counts.items() if leaf[0] == "gaussian"]
    columns: dict[tuple[int, int], list[tuple[Event, int]]] = {}
    for leaf, times in counts.items():
        if leaf[0] == "per-cell":
            columns.setdefault((leaf[4], _width(leaf)), []).append((leaf, times))
    for (_, size), group in columns.items():
        squares.append(max(max(pairs_of(group, cell, neighbours)) for cell in range(size)))
    pure = [(*_pure(leaf), times) for leaf, times in counts.items() if leaf[0] in PURE]
    square, private = math.fsum(squares), "non-private" not in kinds
    epsilon = math.inf if square else math.fsum(e * times for e, _, times in pure)
    leak = math.fsum(lost * times for _, lost, times in pure)
    return Total(square, epsilon, leak, bool(pure), private, closed=True)


def counted(event: Event, neighbours: str) -> Counter[Event]:
    """Every mechanism with how often one person can have been in it."""
    counts: Counter[Event] = Counter()
    parted: dict[int, dict[int, Counter[Event]]] = {}
    _count(event, 1, counts, parted, neighbours)
    for parts in parted.values():
        most: Counter[Event] = Counter()
        for used in parts.values():
            most |= used
        counts += most
    return counts


def _count(
    event: Event, times: int, into: Counter[Event], parted: dict[int, Any], neighbours: str
) -> None:
    kind = event[0]
    seen = (kind == "visibly-sampled" and event[1] < 1) or (kind == "on-part" and event[3] > 1)
    if seen and neighbours == "add-remove":
        raise Unpriced(f"{kind} under add-remove: it tells who is there")
    if kind == "composed":
        for one in event[1]:
            _count(one, times, into, parted, neighbours)
    elif kind == "repeated":
        if event[2]:
            _count(event[1], times * event[2], into, parted, neighbours)
    elif kind == "on-part":
        if event[3] > 1:
            into = parted.setdefault(event[3], {}).setdefault(event[2], Counter())
        _count(event[1], times, into, parted, neighbours)
    elif kind == "visibly-sampled" and event[1] == 1:
        _count(event[2], times, into, parted, neighbours)
    elif kind == "approximate" and event[2] == 0:
        if event[1] > 0:
            into["pure", event[1]] += times
    elif kind != "no-op" and not (inside(event) and not counted(inside(event)[0], neighbours)):
        into[event] += times


def _pure(leaf: Event) -> tuple[float, float]:
    """(epsilon, delta) of one mechanism."""
    if leaf[0] in ("laplace", "discrete-laplace"):
        return math.nextafter(1 / leaf[1], math.inf), 0.0
    return leaf[1], leaf[2] if leaf[0] == "approximate" else 0.0


def _by_cell(event: Event) -> set[Event]:
    """The releases by cell in an event, each once."""
    if event[0] == "per-cell":
        return {event}
    return set().union(*map(_by_cell, inside(event)))


def _width(event: Event) -> int:
    return len(event[1][0])


def _require_few(rows: int, cells: int) -> None:
    if rows * cells**2 > MOST_PAIRS:
        raise Unpriced("more cells than are compared in pairs")


def pairs_of(releases: Iterable[tuple[Event, int]], cell: int, neighbours: str) -> list[float]:
    """Squared distances of a person in this cell: alone; or against a person in each cell."""
    rows = [
        (part, spread, crossing, times)
        for (_, multipliers, spreads, crossings, _), times in releases
        for part, spread, crossing in zip(
            multipliers, spreads, crossings or (0,) * len(spreads), strict=True
        )
    ]
    if neighbours == "add-remove":
        return [math.fsum(t / part[cell] ** 2 for part, _, _, t in rows)]
    _require_few(len(rows), len(rows[0][0]))
    out = []
    for other in range(len(rows[0][0])):
        terms = []
        for part, spread, crossing, times in rows:
            here, there = 1 / part[cell], 1 / part[other]
            moved = here * here + there * there + 2 * crossing * here * there
            terms.append(times * ((spread * here) ** 2 if other == cell else moved))
        out.append(math.fsum(terms))
    return out


def accountants(event: Event) -> Any:
    """The same as an event of `core.events`."""
    from ..core.events import KINDS

    given = dict(zip(FIELDS[event[0]], event[1:], strict=True))
    if event[0] == "composed":
        given["events"] = tuple(map(accountants, event[1]))
    elif "event" in given:
        given["event"] = accountants(given["event"])
    return KINDS[event[0]](**given)


# ---- the price: sections 4.2 and 4.3


@cache
def price(event: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """The epsilon of these events at this delta, and whether more than a closed form was used."""
    found = total(event, neighbours)
    if not found.private:
        return math.inf, False
    if found.closed and not found.others:
        return gaussian_epsilon(math.sqrt(found.square), delta), False
    counts = counted(event, neighbours).items()
    often = any(times > MOST_TIMES and leaf[0] not in GAUSSIANS for leaf, times in counts)
    if (found.closed and delta == 0) or often:  # epsilons and deltas add up
        return (math.inf if found.leak > delta else found.epsilon), False
    from ..core import cost

    best = cost.price(accountants(event), delta, neighbours)
    return best.epsilon, best.route in (cost.LOSS_DISTRIBUTION, cost.RENYI)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon of N(0, 1) against N(mu, 1) at this delta, from above."""
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-12
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, mu) > delta else (low, middle)
    return high


def gaussian_delta(e: float, mu: float) -> float:
    """P(Z > e/mu - mu/2) - e^e P(Z > e/mu + mu/2), raised by what its logarithms may be off."""
    if mu <= 0 or e / mu >= 1e8:
        return 0.0
    first, second = _log_tail(e / mu - mu / 2), e + _log_tail(e / mu + mu / 2)
    return math.exp(first) * -math.expm1(min(second - first, 0.0) - 2.0**-50 * (1 + abs(first)))


def _log_tail(x: float) -> float:
    """log P(Z > x) of a standard normal Z."""
    if x < 25:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    below = x
    for k in range(60, 0, -1):
        below = x + k / below
    return -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(below)


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
    kinds = {planned[0], done[0]}
    if planned == done:
        return True
    if (planned[0], done[0]) == GAUSSIANS:
        room = total(planned, neighbours).square * (1 + 1e-12)
        return total(done, neighbours).square <= room
    if len(kinds) > 1 or not kinds <= {"poisson-sampled", "visibly-sampled", "on-part"}:
        return False
    from ..core import cost

    return cost.covers(accountants(planned), accountants(done), neighbours)


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


def is_within(found: tuple[float, bool], stated: float) -> bool:
    """Whether a stated epsilon covers what was found, but for the tolerance."""
    return found[0] <= stated * (1 + (ON_A_GRID if found[1] else SLACK))


def charge(said: Said) -> tuple[float, bool]:
    """What is charged: the whole plan; else what the cap allows, provided that it admits the log;
    else, nothing having been fixed in advance, inf. And whether more than a closed form was used."""
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
    found = total(said.plan or said.events, said.neighbours)
    if not found.private:
        return True  # the price tells
    if found.others:
        return route in ("addition", "privacy-loss distribution", "Renyi")
    return route == ("closed form" if found.square else "nothing read")


def _filtered(cap: Mapping[str, Any], said: Said) -> tuple[float, bool]:
    """The epsilon of the filter's own sum."""
    kind, order, found = cap["kind"], cap["order"], total(said.events, said.neighbours)
    if not found.private or math.isinf(said.budget):
        return math.inf, False
    left = 0.0 if kind == "pure" else said.delta * (1 - cap["reserve"])
    if kind == "renyi":
        if order is None or left <= 0:
            raise Unpriced("a Renyi filter names its order, and keeps some delta")
        order = min(ORDERS, key=lambda a: abs(a - order))
    if found.closed and kind == "pure":
        spent, leak = found.epsilon, found.leak
    elif found.closed and not found.others:
        factors = {"gaussian": 1.0, "renyi": (order or 0.0) / 2}
        spent, leak = found.square * factors[kind], 0.0
    else:
        from ..core.cost import Filter
        from ..core.promise import Promise

        promise = Promise(said.budget, said.delta, neighbours=said.neighbours)
        filled = Filter.create(promise, kind, order=order, reserve=cap["reserve"])
        spent, leak = filled.cost(accountants(said.events))
    if leak > (said.delta - left) * (1 + SLACK):
        return math.inf, False
    if kind == "pure":
        return spent, False
    if kind == "gaussian":
        return gaussian_epsilon(math.sqrt(spent), left), False
    # the conversion of Canonne, Kamath and Steinke (2020)
    cost = math.log1p(-1 / order) - (math.log(left) + math.log(order)) / (order - 1)
    return max(0.0, spent + cost), True


def two_steps(whole: Event, delta: float, neighbours: str) -> tuple[float, bool]:
    """All releases but the last, and the last with one of two references."""
    before, after = _last_apart(kept(whole) or NOTHING)
    last = total(after, neighbours)
    if last.is_free or total(before, neighbours).is_free:
        return price(("composed", (before, after)), delta, neighbours)
    if not last.private or (last.others and (math.isinf(last.epsilon) or last.leak)):
        raise Unpriced("a release after the others were seen is pure, or Gaussian")
    reference: Event = ("pure", last.epsilon)
    if not last.others:
        reference = ("gaussian", (1 - 1e-15) / math.sqrt(last.square))
    lost = [one for one in counted(before, neighbours).items() if one[0][0] == "approximate"]
    stays = math.fsum(times * math.log1p(-one[2]) for one, times in lost)
    rounded = max(0.0, -math.expm1(stays) * (1 - 1e-12))
    once = len(lost) == 1 and lost[0][1] == 1
    share = min(delta, lost[0][0][2] if once else rounded)
    return price(("composed", (before, reference)), share + (delta - share) / 2, neighbours)


def _last_apart(whole: Event) -> tuple[Event, Event]:
    """All releases but the last, and the last, of an event without free ones."""
    if whole[0] == "composed":
        before, after = _last_apart(whole[1][-1])
        return ("composed", (*whole[1][:-1], before)), after
    if whole[0] == "repeated":
        before, after = _last_apart(whole[1])
        return ("composed", (("repeated", whole[1], whole[2] - 1), before)), after
    return NOTHING, whole
