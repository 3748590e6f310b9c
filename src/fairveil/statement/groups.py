"""What the people of each group of a statement pay, where noise differs by group.
docs/statement_spec.md, section 4.8. Loaded only for statements that name groups.

Guarantees (tests/privacy/test_privacy_by_group.py).

1. `seen` is never below the true cost, to a person in that cell, of an event whose multipliers
   are constants. It is exact for unsampled Gaussian releases by cell; where it is an upper bound,
   its words say so.
2. With shares that were fixed before data were read, a group's epsilon is the price of what its
   people see.
3. With shares that were made of earlier answers no constant is a group's epsilon: its multipliers
   depend on what was seen. Then it is a function E(o) of the outcome o, known after the fact, with
   sum over o of max(0, P(o) - e^E(o) Q(o)) <= delta  for every pair of neighbours of which one has
   the person in that group: E = eps1 + eps2(o1), where o1 are the answers that read no group's
   share, (eps1, delta/2)-private together, and the releases by cell are (eps2(o1), delta/2)-private
   given o1.

   Proof. P1 = A + B with A <= e^eps1 Q1 and a rest B of mass at most delta/2. Then max(0, P1 P2 -
   e^E Q1 Q2) is at most B P2 + max(0, A P2 - e^eps2(o1) A Q2), for e^eps1 Q1 >= A; the first sums
   to at most delta/2, and so does the second, for given o1 it sums to at most A(o1) delta/2. Where
   releases of both kinds alternate, those that follow the shares are drawn from their dominating
   pairs, which do not depend on what came between, and what is seen is made of these.

   It needs shares that are made once, of answers that are no releases by cell of that column, and
   are kept from then on. It is not the price of all events at delta: that one fails where the
   choice of shares and the loss so far go together.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from .form import FIELDS, Event, inside
from .rule import (
    NOTHING,
    SLACK,
    Said,
    Unpriced,
    covers,
    gaussian_epsilon,
    pairs_of,
    price,
    side_by_side,
    total,
)


class Cells(NamedTuple):
    """The releases by the cells of one sensitive column."""

    number: int
    size: int

    def has(self, one: Event) -> bool:
        """Whether this event is one of them."""
        return bool(one[0] == "per-cell" and one[4] == self.number and len(one[1][0]) == self.size)

    def is_in(self, whole: Event) -> bool:
        """Whether one of them is in this event."""
        return self.has(whole) or any(map(self.is_in, inside(whole)))


def group_epsilons(said: Said, column: Cells, fixed: bool) -> list[tuple[float, bool]]:
    """What the people of each cell of a column pay: inf where shares were made later and the run was
    interrupted, for what was left to do is not known by group."""
    cells, delta, neighbours = range(column.size), said.delta, said.neighbours
    if said.plan is None:
        return [(said.epsilon, False) for _ in cells]
    whole = said.plan
    if not fixed:
        done = []
        for planned, made, count in side_by_side(said.events, said.plan):
            if planned is None or made is None or not covers(planned, made, neighbours):
                return [(math.inf, False) for _ in cells]
            done.append(("repeated", made if column.is_in(made) else planned, count))
        whole = ("composed", tuple(done))
    widths = set(_widths(whole, column.number))
    if widths and column.size not in widths:
        raise Unpriced(f"one of {sorted(widths)} cells")

    def pays(part: Event, cell: int, at: float) -> tuple[float, bool]:
        return price(seen(part, cell, column, neighbours), at, neighbours)

    if fixed:
        everybody = price(whole, delta, neighbours)
        return [min(pays(whole, cell, delta), everybody) for cell in cells]
    common, own = _parted(whole, column)
    first = price(common, delta / 2, neighbours)
    seconds = [pays(own, cell, delta / 2) for cell in cells]
    return [(first[0] + second[0], first[1] or second[1]) for second in seconds]


def _widths(whole: Event, column: int) -> Iterator[int]:
    if whole[0] == "per-cell" and whole[4] == column:
        yield len(whole[1][0])
    for one in inside(whole):
        yield from _widths(one, column)


def _parted(whole: Event, column: Cells) -> tuple[Event, Event]:
    """What holds no release by this column's cells, and what holds one."""
    if whole[0] == "composed":
        pairs = [_parted(one, column) for one in whole[1]]
        return ("composed", tuple(a for a, _ in pairs)), ("composed", tuple(b for _, b in pairs))
    if whole[0] == "repeated":
        first, second = _parted(whole[1], column)
        return ("repeated", first, whole[2]), ("repeated", second, whole[2])
    return (NOTHING, whole) if column.is_in(whole) else (whole, NOTHING)


def _parts(one: Event, times: int = 1) -> Iterator[tuple[Event, int]]:
    """What is composed and repeated, with how often."""
    if one[0] in ("composed", "repeated"):
        for inner in inside(one):
            yield from _parts(inner, times * (one[2] if one[0] == "repeated" else 1))
    else:
        yield one, times


def seen(whole: Event, cell: int, column: Cells, neighbours: str) -> Event:
    """The event as it is to a person in this cell."""
    mine: Counter[Event] = Counter()
    for one, times in _parts(whole):
        if times and column.has(one):
            mine[one] += times
    pairs = pairs_of(mine.items(), cell, neighbours) if mine else [0.0]
    other = pairs.index(max(pairs))

    def view(one: Event) -> Event:
        kind = one[0]
        if kind == "composed":
            return ("composed", tuple(view(inner) for inner in one[1]))
        if kind == "repeated":
            return ("repeated", view(one[1]), one[2])
        if kind == "poisson-sampled":
            return _seen_batch(one, cell, column, neighbours)
        if inside(one):
            at = FIELDS[kind].index("event") + 1
            return (*one[:at], seen(one[at], cell, column, neighbours), *one[at + 1 :])
        return _gaussian(pairs_of([(one, 1)], cell, neighbours)[other]) if column.has(one) else one

    return view(whole)


def _in_order(one: Event) -> list[Event]:
    """The leaves of one joint release, as spreads are listed."""
    if one[0] == "composed":
        return [part for inner in one[1] for part in _in_order(inner)]
    return _in_order(one[1]) * one[2] if one[0] == "repeated" else [one]


def _gaussian(square: float) -> Event:
    return ("gaussian", 1 / math.sqrt(square)) if square > 0 else NOTHING


def _seen_batch(one: Event, cell: int, column: Cells, neighbours: str) -> Event:
    parts = _in_order(one[2])
    own = Counter(part for part in parts if column.has(part)).items()
    if not own:
        return one
    spreads = one[3] or (2.0,) * len(parts)
    rest = [(p, s) for p, s in zip(parts, spreads, strict=True) if not column.has(p)]
    alone = [pairs_of(own, k, "add-remove")[0] for k in range(column.size)]
    square = alone[cell] if neighbours == "add-remove" else max(alone)
    joined = ("composed", (*(p for p, _ in rest), _gaussian(square)))
    if neighbours == "add-remove":
        return ("poisson-sampled", one[1], joined, None)
    spread = min(2.0, math.sqrt(max(pairs_of(own, cell, neighbours)) / max(alone)))
    return ("poisson-sampled", one[1], joined, (*(s for _, s in rest), spread))


def keeps(said: Said, limit: float, cell: int, column: Cells) -> bool:
    """Whether what its people see are Gaussians within the limit, a sum fixed in advance."""
    found = total(seen(said.events, cell, column, said.neighbours), said.neighbours)
    if not found.private or found.others:
        return False
    return gaussian_epsilon(math.sqrt(found.square), said.delta) <= limit * (1 + SLACK)
