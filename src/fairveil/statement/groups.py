"""What the people of each group of a statement pay, where noise differs by group.
docs/statement_spec.md, section 4.8. Loaded only for statements that name groups."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from . import counts, rule
from .counts import Event, Unpriced
from .log import Said, covers, side_by_side


def group_epsilons(said: Said, cells: int, column: int, fixed: bool) -> list[tuple[float, bool]]:
    """What the people of each cell of a column pay (spec, section 4.8): inf where shares were made
    later and the run was interrupted, for what was left to do is not known by group."""
    if said.plan is None:
        return [(said.epsilon, False)] * cells
    whole = said.plan
    if not fixed:
        done = []
        for planned, made, count in side_by_side(said.events, said.plan):
            if planned is None or made is None or not covers(planned, made, said.neighbours):
                return [(math.inf, False)] * cells
            done.append(("repeated", made if _holds(made, column, cells) else planned, count))
        whole = ("composed", tuple(done))
    widths = {len(one[1][0]) for one in _per_cell(whole) if one[4] == column}
    if widths and cells not in widths:
        raise Unpriced(f"one of {sorted(widths)} cells")
    if fixed:
        everybody = rule.price(whole, said.delta, said.neighbours)
        return [
            min(
                rule.price(
                    seen(whole, cell, column, cells, said.neighbours), said.delta, said.neighbours
                ),
                everybody,
            )
            for cell in range(cells)
        ]
    if rule.whole_error(counts.inventory(whole, said.neighbours), said.neighbours) > 0:
        raise Unpriced("shares that were made later, and samplers with an error")
    common, own = _parted(whole, column, cells)
    first = rule.price(common, said.delta / 2, said.neighbours)
    out = []
    for cell in range(cells):
        second = rule.price(
            seen(own, cell, column, cells, said.neighbours), said.delta / 2, said.neighbours
        )
        out.append((first[0] + second[0], first[1] or second[1]))
    return out


def _per_cell(whole: Event) -> Iterator[Event]:
    if whole[0] == "per-cell":
        yield whole
    for one in counts.inside(whole):
        yield from _per_cell(one)


def _holds(whole: Event, column: int, cells: int) -> bool:
    return any(one[4] == column and len(one[1][0]) == cells for one in _per_cell(whole))


def _parted(whole: Event, column: int, cells: int) -> tuple[Event, Event]:
    """What holds no release by this column's cells, and what holds one."""
    if whole[0] == "composed":
        pairs = [_parted(one, column, cells) for one in whole[1]]
        return tuple(("composed", tuple(pair[at] for pair in pairs)) for at in (0, 1))  # type: ignore[return-value]
    if whole[0] == "repeated":
        first, second = _parted(whole[1], column, cells)
        return ("repeated", first, whole[2]), ("repeated", second, whole[2])
    return (("no-op",), whole) if _holds(whole, column, cells) else (whole, ("no-op",))


def seen(whole: Event, cell: int, column: int, cells: int, neighbours: str) -> Event:
    """The event as it is to a person in this cell (spec, section 4.8)."""
    mine: Counter[Event] = Counter()

    def is_mine(one: Event) -> bool:
        return bool(one[0] == "per-cell" and one[4] == column and len(one[1][0]) == cells)

    def count(one: Event, times: int) -> None:
        if one[0] == "composed":
            for inner in one[1]:
                count(inner, times)
        elif one[0] == "repeated":
            count(one[1], times * one[2])
        elif is_mine(one):
            mine[one] += times

    def gaussian(square: float) -> Event:
        return ("gaussian", 1 / math.sqrt(square)) if square > 0 else ("no-op",)

    def view(one: Event) -> Event:
        kind = one[0]
        if kind == "composed":
            return ("composed", tuple(view(inner) for inner in one[1]))
        if kind == "repeated":
            return ("repeated", view(one[1]), one[2])
        if kind == "poisson-sampled":
            return on_batch(one)
        if kind in ("visibly-sampled", "private-selection", "on-part"):
            at = counts.FIELDS[kind].index("event") + 1
            return (*one[:at], seen(one[at], cell, column, cells, neighbours), *one[at + 1 :])
        if not is_mine(one):
            return one
        return gaussian(counts.pairs_of([(one, 1)], cell, neighbours)[other])

    def on_batch(one: Event) -> Event:
        parts = counts.parts_of(one[2])
        own = list(Counter(part for part in parts if is_mine(part)).items())
        if not own:
            return one
        spreads = one[3] or (2.0,) * len(parts)
        rest = [(p, s) for p, s in zip(parts, spreads, strict=True) if not is_mine(p)]
        alone = [counts.pairs_of(own, k, "add-remove")[0] for k in range(cells)]
        if neighbours == "add-remove":
            joint = ("composed", (*(p for p, _ in rest), gaussian(alone[cell])))
            return ("poisson-sampled", one[1], joint, None)
        spread = min(2.0, math.sqrt(max(counts.pairs_of(own, cell, neighbours)) / max(alone)))
        joint = ("composed", (*(p for p, _ in rest), gaussian(max(alone))))
        return ("poisson-sampled", one[1], joint, (*(s for _, s in rest), spread))

    count(whole, 1)
    other = 0
    if mine and neighbours == "replace-one":
        pairs = counts.pairs_of(list(mine.items()), cell, neighbours)
        other = pairs.index(max(pairs))
    return view(whole)


def keeps(said: Said, limit: float, cell: int, column: int, cells: int) -> bool:
    """Whether what its people see are Gaussians within the limit, a sum fixed in advance."""
    view = seen(said.events, cell, column, cells, said.neighbours)
    total = counts.inventory(view, said.neighbours)
    if not total.private or total.others or total.error:
        return False
    return counts.gaussian_epsilon(math.sqrt(total.square), said.delta) <= limit * (1 + rule.SLACK)
