"""What the events of a statement were, counted for one person: the inventory, and what is known of it
in closed form. docs/statement_spec.md, section 4.1. An event is a tuple: its kind, then its fields in
the order of `FIELDS`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

Event = tuple[Any, ...]
Atoms = tuple[tuple[float, float], ...]
FIELDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("no-op", "non-private"), ()),
    **dict.fromkeys(("gaussian", "discrete-gaussian", "laplace"), ("noise_multiplier",)),
    "discrete-laplace": ("noise_multiplier", "sensitivity"),
    **dict.fromkeys(("exponential", "pure"), ("epsilon",)),
    "approximate": ("epsilon", "delta"),
    "zero-concentrated": ("rho",),
    "sampler-error": ("total_variation",),
    "per-cell": ("multipliers", "spreads", "crossings", "column"),
    "composed": ("events",),
    "repeated": ("event", "count"),
    "poisson-sampled": ("rate", "event", "spreads"),
    "visibly-sampled": ("rate", "event"),
    "on-part": ("event", "part", "parts"),
    "private-selection": ("event", "mean", "shape"),
}
LEAVES = ("gaussian", "discrete-gaussian", "laplace", "discrete-laplace", "per-cell")
WITHIN = ("visibly-sampled", "private-selection")
"""Mechanisms around a composition of any others."""
MOST_DISTINCT, MOST_PARTS, MOST_ATOMS = 1000, 1 << 16, 256
ROUNDED = 2.0**-50
ZERO: Atoms = ((0.0, 1.0),)
NOTHING: Event = ("no-op",)


class Unpriced(ValueError):  # noqa: N818  # what it is
    """What the rule does not price."""


# ---- what was done, counted for one person: section 4.1


class Inventory(NamedTuple):
    """Squared distance of all unsampled Gaussians; other mechanisms with their counts; the samplers'
    total variation; whether anything was released without noise."""

    square: float
    others: tuple[tuple[Event, int], ...]
    error: float = 0.0
    private: bool = True

    @property
    def is_free(self) -> bool:
        """Whether all of it depends on nothing that is protected."""
        return self.private and not (self.others or self.square or self.error)


def inside(event: Event) -> tuple[Event, ...]:
    """The events within an event."""
    if event[0] == "composed":
        return tuple(event[1])
    names = FIELDS[event[0]]
    return (event[1 + names.index("event")],) if "event" in names else ()


def made_of(whole: Event, kinds: tuple[str, ...]) -> bool:
    """Whether all that is composed and repeated is of these kinds."""
    if whole[0] in ("composed", "repeated"):
        return all(made_of(one, kinds) for one in inside(whole))
    return whole[0] in kinds


def inventory(event: Event, neighbours: str) -> Inventory:
    """Every mechanism with how often one person can have been in it."""
    counts: Counter[Event] = Counter()
    parted: dict[int, dict[int, Counter[Event]]] = {}
    _count(event, 1, counts, parted, neighbours)
    for parts in parted.values():
        most: Counter[Event] = Counter()
        for used in parts.values():
            most |= used
        counts += most
    cells = [(leaf, times) for leaf, times in counts.items() if leaf[0] == "per-cell"]
    squares = [worst(group, neighbours) for group in _by_column(cells)]
    others, errors, private = [], [0.0], True
    for leaf, times in counts.items():
        square = _square(leaf, neighbours)
        if square is not None:
            squares.append(times * square)
        elif leaf[0] == "sampler-error":
            errors.append(times * leaf[1])
        elif leaf[0] == "non-private":
            private = False
        elif leaf[0] != "per-cell":
            others.append((leaf, times))
            private &= leaf[0] not in WITHIN or inventory(inside(leaf)[0], neighbours).private
    if len(others) > MOST_DISTINCT:
        raise Unpriced(f"more than {MOST_DISTINCT} different mechanisms")
    others.sort(key=repr)
    return Inventory(math.fsum(squares), tuple(others), min(1.0, math.fsum(errors)), private)


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
        part = (
            into
            if event[3] == 1
            else parted.setdefault(event[3], {}).setdefault(event[2], Counter())
        )
        _count(event[1], times, part, parted, neighbours)
    elif kind == "visibly-sampled" and event[1] == 1:
        _count(event[2], times, into, parted, neighbours)
    elif kind == "approximate" and event[2] == 0:
        if event[1] > 0:
            into["pure", event[1]] += times
    elif kind != "no-op" and not (inside(event) and _is_free(inside(event)[0], neighbours)):
        into[event] += times


def _is_free(event: Event, neighbours: str) -> bool:
    counts: Counter[Event] = Counter()
    parted: dict[int, Any] = {}
    _count(event, 1, counts, parted, neighbours)
    return not counts and not any(used for parts in parted.values() for used in parts.values())


def _square(event: Event, neighbours: str) -> float | None:
    """The squared distance of a release that is Gaussian and not sampled."""
    if event[0] == "gaussian":
        return float(event[1]) ** -2
    if event[0] != "poisson-sampled":
        return None
    alone, replaced = batch(event, neighbours)
    free = replaced is not None and replaced == (0.0, 0.0, ZERO, 0.0)
    if free or (event[1] == 1 and is_gaussian(alone)):
        return (replaced or alone)[0] ** 2
    return None


def _by_column(releases: Iterable[tuple[Event, int]]) -> list[list[tuple[Event, int]]]:
    """Releases by cell, apart for each column and number of cells."""
    columns: dict[tuple[int, int], list[tuple[Event, int]]] = {}
    for event, times in releases:
        columns.setdefault((event[4], len(event[1][0])), []).append((event, times))
    return [columns[key] for key in sorted(columns)]


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
    if len(rows) * len(rows[0][0]) ** 2 > 4 * 10**6:
        raise Unpriced("more cells than are compared in pairs")
    out = []
    for other in range(len(rows[0][0])):
        terms = []
        for part, spread, crossing, times in rows:
            here, there = 1 / part[cell], 1 / part[other]
            moved = here * here + there * there + 2 * crossing * here * there
            terms.append(times * ((spread * here) ** 2 if other == cell else moved))
        out.append(math.fsum(terms))
    return out


def worst(releases: list[tuple[Event, int]], neighbours: str) -> float:
    """The largest squared distance over all people."""
    cells = range(len(releases[0][0][1][0]))
    return max(max(pairs_of(releases, cell, neighbours)) for cell in cells)


# ---- one joint release

Joint = tuple[float, float, Atoms, float]
"""mu of the Gaussians, s of the Laplaces, atoms of the discrete ones, rho of discrete Gaussians."""


def is_gaussian(one: Joint) -> bool:
    """Whether nothing else is in it."""
    return one[1:] == (0.0, ZERO, 0.0)


def parts_of(event: Event) -> list[Event]:
    """The leaves of a joint release."""
    if event[0] == "composed":
        return [part for one in event[1] for part in parts_of(one)]
    return parts_of(event[1]) * event[2] if event[0] == "repeated" else [event]


def joint(parts: Iterable[tuple[Event, float]], neighbours: str) -> Joint:
    """One joint release, each part with how far a row moves it in units of its norm."""
    squares, laplaces, rhos, atoms = [0.0], [0.0], [0.0], ZERO
    cells: Counter[Event] = Counter()
    for part, spread in parts:
        if part[0] == "gaussian":
            squares.append((spread / part[1]) ** 2)
        elif part[0] == "laplace":
            laplaces.append(spread / part[1])
        elif part[0] == "discrete-gaussian":
            rhos.append((spread / part[1]) ** 2 / 2)
        elif part[0] == "discrete-laplace":
            shift = math.ceil(spread * part[2])
            if shift:
                atoms = product(atoms, discrete_laplace(part[1] * part[2], shift))
        elif part[0] == "per-cell":
            cells[part] += 1
    squares += [worst(group, neighbours) for group in _by_column(cells.items())]
    return math.sqrt(math.fsum(squares)), math.fsum(laplaces), atoms, math.fsum(rhos)


def batch(event: Event, neighbours: str) -> tuple[Joint, Joint | None]:
    """What a row does to the release on its batch: against no row, and against another row."""
    parts = parts_of(event[2])
    alone = joint([(part, 1.0) for part in parts], "add-remove")
    if neighbours == "add-remove":
        return alone, None
    replaced = joint(zip(parts, event[3] or (2.0,) * len(parts), strict=True), "replace-one")
    return alone, (min(replaced[0], 2 * alone[0]), *replaced[1:])


def discrete_laplace(scale: float, shift: int) -> Atoms:
    """(loss, probability) of P(x) ~ exp(-|x|/scale) on the integers, moved by `shift`; losses in
    between in groups, each at its largest."""
    t = 1.0 / scale
    ends = 1.0 / (1.0 + math.exp(-t))
    size = max(1, math.ceil((shift - 1) / MOST_ATOMS))
    atoms = [(shift * t, ends)]
    for x in range(1, shift, size):
        count = min(size, shift - x)
        mass = math.tanh(t / 2) * math.exp(-x * t) * math.expm1(-count * t) / math.expm1(-t)
        atoms.append(((shift - 2 * x) * t, mass))
    return (*atoms, (-shift * t, math.exp(-shift * t) * ends))


def product(first: Atoms, second: Atoms) -> Atoms:
    """Two independent losses added up; neighbours in groups, each at its largest."""
    pairs = [(a + b, p * r) for a, p in first for b, r in second]
    atoms = sorted(pairs, key=lambda pair: -pair[0])
    group = math.ceil(len(atoms) / MOST_ATOMS)
    return tuple(
        (atoms[at][0], math.fsum(mass for _, mass in atoms[at : at + group]))
        for at in range(0, len(atoms), group)
    )


# ---- tails of a normal


def log_tail(x: float) -> float:
    """log P(Z > x) of a standard normal Z."""
    if x < 25:
        return math.log(math.erfc(x / math.sqrt(2)) / 2)
    below = x
    for k in range(60, 0, -1):
        below = x + k / below
    return -x * x / 2 - math.log(2 * math.pi) / 2 - math.log(below)


def less(first: float, second: float) -> float:
    """e^first - e^second, from above; 0 where the second is larger."""
    return math.exp(first) * -math.expm1(min(second - first, 0.0) - ROUNDED * (1 + abs(first)))


def gaussian_delta(e: float, mu: float) -> float:
    """The profile of N(0, 1) against N(mu, 1)."""
    if mu <= 0 or e / mu >= 1e8:
        return 0.0
    return less(log_tail(e / mu - mu / 2), e + log_tail(e / mu + mu / 2))


def halved(too_low: Callable[[float], bool], low: float, high: float) -> float:
    """Where a monotone condition ends, from above."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    return high


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least e at which that is at most delta."""
    if mu == 0 or gaussian_delta(0.0, mu) <= delta:
        return 0.0
    if delta <= 0:
        return math.inf
    top = mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta)) + 1e-12
    return halved(lambda e: gaussian_delta(e, mu) > delta, 0.0, top)


def log_sum(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    top = max(a, b)
    return top if top == -math.inf else top + math.log1p(math.exp(min(a, b) - top))
