"""What the people of one group spend, where noise differs by group: smaller for some than the
promise that all have.

Guarantees (tests/privacy/test_privacy_by_group.py).

1. `seen_from` is never below the true cost, to a person in that cell, of an event whose multipliers
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from ... import _checks
from ...core import cost
from ...core import inventory as leaves
from ...core.cost import epsilon
from ...core.events import (
    Composed,
    Event,
    Gaussian,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Repeated,
    VisiblySampled,
    compose,
    joint_parts,
)
from ...core.inventory import People
from ...core.promise import Neighbours
from ...core.promise import relation as checked_relation
from ...errors import InputError


def seen_from(
    event: Event, cell: int, column: int, neighbours: str, cells: int | None = None
) -> Event:
    """The event as it is to a person in this cell of this column, as one end of any pair of
    neighbours.

    Releases over the column's cells become Gaussians: under add-remove hers; under replace-one the
    worst over her staying in her cell and any other cell that she comes from or goes to, the same
    one in all unsampled releases. Those of other columns stay, as do those over another number of
    cells than `cells` (None: there is one number).
    Upper bounds, all under replace-one: on a secret batch the largest contribution c and the
    farthest move d may belong to two other cells (theory.md#t3 takes one pair); every batch, and
    every answer on a fixed part of the rows, has its own worst one.

    >>> seen_from(PerCell(((2.0, 5.0),), (2.0,)), 1, 0, "add-remove")
    Gaussian(noise_multiplier=5.0)
    """
    widths = {found.cells for found in _per_cell(event) if found.column == column}
    if cells is None and len(widths) > 1:
        remedy = "Pass cells=, the number of this column's groups."
        raise InputError.expected(
            "releases over as many cells each", of="events", got=sorted(widths), remedy=remedy
        )
    width = cells if cells is not None else max(widths, default=cell + 1)
    if not 0 <= _checks.whole(cell=cell) < width:
        raise InputError.expected(
            f"a cell below {width}", of="cell", got=cell, remedy="Cells are numbered from 0."
        )
    return _View(cell, column, width, checked_relation(neighbours)).of(event)


def by_group(
    events: Event | Iterable[Event],
    delta: float,
    neighbours: str,
    cells: int,
    column: int = 0,
    fixed: bool = True,
) -> tuple[float, ...]:
    """The epsilon, at this delta, of the people of each of the `cells` groups of a sensitive
    column.

    `fixed`: whether the shares were fixed before data were read. If not, `events` must tell this
    column's releases as they were made and all others as they were planned, and the epsilons hold
    after the fact (guarantee 3).

    >>> [
    ...     round(epsilon, 3)
    ...     for epsilon in by_group(PerCell(((5.0, 20.0),), (2.0,)), 1e-6, "add-remove", 2)
    ... ]
    [0.834, 0.189]
    """
    whole = leaves.as_event(events)
    target = _checks.fraction(delta=delta, high_open=True)
    count = _checks.whole(at_least=1, cells=cells)
    widths = {found.cells for found in _per_cell(whole) if found.column == column}
    if widths and count not in widths:
        remedy = "Name every cell of the releases of this column, in their order."
        raise InputError.expected(
            f"one of {sorted(widths)} cells", of="cells", got=count, remedy=remedy
        )
    relation = checked_relation(neighbours)
    if fixed:
        seen = (seen_from(whole, cell, column, relation, count) for cell in range(count))
        return tuple(
            # A group's people are among all people: the price of the whole bounds theirs.
            min(epsilon(one, target, relation), epsilon(whole, target, relation))
            for one in seen
        )
    if cost.whole_error(leaves.inventory(whole, relation), relation) > 0:
        remedy = (
            "Draw noise exactly: what a sampler's error costs depends on the largest epsilon that "
            "there might have been."
        )
        raise InputError.expected(
            "no sampler errors", of="events of shares made later", got="some", remedy=remedy
        )
    common, own = _parted(whole, column, count)
    # One half for what all see, one for what is by group (guarantee 3).
    half = target / 2
    first = epsilon(common, half, relation)
    return tuple(
        first + epsilon(seen_from(own, cell, column, relation, count), half, relation)
        for cell in range(count)
    )


@dataclass(frozen=True)
class _View:
    """Of a person in one cell of one column with this many."""

    cell: int
    column: int
    cells: int
    neighbours: Neighbours

    def of(self, event: Event) -> Event:
        """Her worst other cell is sought once for all that is unsampled here."""
        counts: Counter[PerCell] = Counter()
        self._count(event, 1, counts)
        other = self._other(counts) if counts and self.neighbours == "replace-one" else None
        return self._seen(event, other)

    def _count(self, event: Event, times: int, into: Counter[PerCell]) -> None:
        if isinstance(event, Composed):
            for inner in event.events:
                self._count(inner, times, into)
        elif isinstance(event, Repeated):
            self._count(event.event, times * event.count, into)
        elif self._is_mine(event):
            into[event] += times

    def _is_mine(self, event: Event) -> TypeGuard[PerCell]:
        return _is_of(event, self.column, self.cells)

    def _other(self, counts: Counter[PerCell]) -> int:
        return int(People(counts.items()).replaced(self.cell).argmax())

    def _seen(self, event: Event, other: int | None) -> Event:
        match event:
            case Composed(events):
                return Composed(tuple(self._seen(inner, other) for inner in events))
            case Repeated(inner, count):
                return Repeated(self._seen(inner, other), count)
            case VisiblySampled(rate, inner):
                return VisiblySampled(rate, self.of(inner))
            case PrivateSelection(inner):
                return replace(event, event=self.of(inner))
            case OnPart(inner, part, parts):
                return OnPart(self.of(inner), part, parts)
            case PoissonSampled():
                return self._on_batch(event)
        if not self._is_mine(event):
            return event
        people = People([(event, 1)])
        return _gaussian(
            float(people.alone[self.cell] if other is None else people.replaced(self.cell)[other])
        )

    def _on_batch(self, event: PoissonSampled) -> Event:
        parts = joint_parts(event.event)
        mine = Counter(part for part in parts if self._is_mine(part))
        if not mine:
            return event
        people = People(mine.items())
        spreads = event.spreads or (leaves.LONE_SPREAD,) * len(parts)
        others = [
            (part, spread)
            for part, spread in zip(parts, spreads, strict=True)
            if not self._is_mine(part)
        ]
        rest = tuple(part for part, _ in others)
        if self.neighbours == "add-remove":
            return PoissonSampled(
                event.rate, Composed((*rest, _gaussian(float(people.alone[self.cell]))))
            )
        largest = float(people.alone.max())
        spread = min(2.0, (people.of_cell(self.cell, "replace-one") / largest) ** 0.5)
        joint = Composed((*rest, _gaussian(largest)))
        return PoissonSampled(event.rate, joint, (*(spread for _, spread in others), spread))


def _gaussian(square: float) -> Event:
    return Gaussian(1 / math.sqrt(square)) if square > 0 else NoOp()


def _parted(event: Event, column: int, cells: int) -> tuple[Event, Event]:
    """What holds no release by this column's cells, and what holds one: an answer, or a batch's, is
    one or the other."""
    if isinstance(event, Composed):
        pairs = [_parted(inner, column, cells) for inner in event.events]
        return compose(first for first, _ in pairs), compose(second for _, second in pairs)
    if isinstance(event, Repeated):
        first, second = _parted(event.event, column, cells)
        return compose([Repeated(first, event.count)]), compose([Repeated(second, event.count)])
    return (NoOp(), event) if holds(event, column, cells) else (event, NoOp())


def holds(event: Event, column: int, cells: int) -> bool:
    """Whether any of it is a release over this column's cells, that many."""
    return any(_is_of(found, column, cells) for found in _per_cell(event))


def _is_of(event: Event, column: int, cells: int) -> TypeGuard[PerCell]:
    return isinstance(event, PerCell) and event.column == column and event.cells == cells


def _per_cell(event: Event) -> Iterator[PerCell]:
    match event:
        case PerCell():
            yield event
        case Composed(events):
            for inner in events:
                yield from _per_cell(inner)
        case Repeated() | PoissonSampled() | VisiblySampled() | OnPart() | PrivateSelection():
            yield from _per_cell(event.event)
