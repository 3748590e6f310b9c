"""A tree of events, read for one relation: every mechanism with how many times it was used.

Two trees that mean the same give the same `Inventory`, so that n-fold repetition equals a list of
n, order does not matter and a no-op is free, whatever route prices it afterwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from . import curves
from .curves import Array, Atoms
from .errors import need
from .events import (
    Approximate,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    PrivateSelection,
    Pure,
    Repeated,
    SamplerError,
    VisiblySampled,
    compose,
    joint_parts,
)
from .promise import Neighbours

LONE_SPREAD = 2.0
Parted = dict[int, dict[int, Counter[Event]]]  # by the number of parts, then by the part


@dataclass(frozen=True)
class Inventory:
    """`gaussian`: the sum of (sensitivity / deviation)^2 of all unsampled Gaussians (theory.md#t1:
    mu^2, exact under adaptive composition), those over cells composed person by person. `others`:
    every other mechanism. `total_variation`: of the samplers (theory.md#t7)."""

    gaussian: float
    others: tuple[tuple[Event, int], ...]
    total_variation: float
    private: bool


def as_event(events: Event | Iterable[Event]) -> Event:
    """One event for an event or several."""
    if isinstance(events, Event):
        return events
    given: Any = events
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
    fix = "Pass fairveil.privacy.events.Gaussian(1.0), or a list."
    need(several, "an event or several", of="events", got=events, fix=fix)
    return compose(Composed(tuple(events)).events)


@lru_cache(maxsize=256)
def inventory(event: Event, neighbours: Neighbours) -> Inventory:
    """What was done, sorted and counted.

    Refuses a visible batch under add-remove: who sees a new member learns of it whatever is asked,
    so its price would have to count the batch itself (theory.md#t4 is for batches whose membership
    says nothing of what is protected). And a fixed part: a row that comes moves others from part to
    part (theory.md#t8).
    """
    if neighbours == "add-remove":
        shown, of = _shows_presence(event), "events under add-remove"
        words = "no visible batch and no fixed part where presence is protected"
        fix = "Keep the batch secret: PoissonSampled. A visible one is for replace-one, where "
        fix += "presence is public."
        need(shown is None, words, of=of, got=shown, fix=fix)
    counts = counted(event)
    per_cell = [(leaf, times) for leaf, times in counts.items() if isinstance(leaf, PerCell)]
    # Releases by cell are added up person by person before the worst one is sought: the worst of
    # each release may be two people.
    squares = [people.worst(neighbours) for people in by_columns(per_cell)]
    errors: list[float] = []
    others: Counter[Event] = Counter()
    private = True
    for leaf, times in counts.items():
        if isinstance(leaf, PerCell):
            continue
        square = gaussian_square(leaf, neighbours)
        if square is not None:
            squares.append(times * square)
        elif isinstance(leaf, SamplerError):
            errors.append(times * leaf.total_variation)
        elif _never_private(leaf):
            private = False
        else:
            others[leaf] += times
    # In one order, so that equal lists share what the caches hold.
    ordered = sorted(others.items(), key=lambda item: repr(item[0]))
    return Inventory(math.fsum(squares), tuple(ordered), min(1.0, math.fsum(errors)), private)


def counted(event: Event) -> Counter[Event]:
    """Every mechanism with how often one person can have been in it.

    Of a partition she is in one part: each of its mechanisms counts as often as on the part that
    used it most, which is at least what any one part used. Partitions add up, for she is in a part
    of each.
    """
    counts: Counter[Event] = Counter()
    parted: Parted = {}
    _count(event, 1, counts, parted)
    for parts in parted.values():
        most: Counter[Event] = Counter()
        for part in parts.values():
            # The larger count of each mechanism, which is what | of counters means.
            most |= part
        counts.update(most)
    return counts


def _count(event: Event, times: int, into: Counter[Event], parted: Parted) -> None:
    if isinstance(event, Composed):
        for inner in event.events:
            _count(inner, times, into, parted)
    elif isinstance(event, Repeated):
        if event.count:
            _count(event.event, times * event.count, into, parted)
    elif isinstance(event, OnPart):
        within = (
            into
            if event.parts == 1
            else parted.setdefault(event.parts, {}).setdefault(event.part, Counter())
        )
        _count(event.event, times, within, parted)
    elif isinstance(event, Approximate) and event.delta == 0:
        if event.epsilon > 0:
            into[Pure(event.epsilon)] += times
    elif isinstance(event, VisiblySampled) and event.rate == 1:
        _count(event.event, times, into, parted)
    elif not isinstance(event, NoOp) and not _is_free(event):
        into[event] += times


def _shows_presence(event: Event) -> str | None:
    """The event inside whose rows tell who is there, by name; None when there is none."""
    if isinstance(event, VisiblySampled) and event.rate < 1:
        return "VisiblySampled"
    if isinstance(event, OnPart):
        return "OnPart" if event.parts > 1 else None
    inside: tuple[Event, ...] = event.events if isinstance(event, Composed) else ()
    if isinstance(event, Repeated | VisiblySampled | PrivateSelection):
        inside = (event.event,) if not isinstance(event, Repeated) or event.count else ()
    return next((shown for one in inside if (shown := _shows_presence(one)) is not None), None)


def _is_free(event: Event) -> bool:
    if isinstance(event, VisiblySampled | PrivateSelection | PoissonSampled):
        return not counted(event.event)
    return False


def _never_private(event: Event) -> bool:
    if isinstance(event, NonPrivate):
        return True
    if isinstance(event, Composed):
        return any(_never_private(inner) for inner in event.events)
    return isinstance(event, Repeated | VisiblySampled | PrivateSelection) and _never_private(
        event.event
    )


def gaussian_square(event: Event, neighbours: Neighbours) -> float | None:
    """mu^2 of one release that is Gaussian and nothing else and not sampled, else None."""
    if isinstance(event, Gaussian):
        return event.noise_multiplier**-2
    if isinstance(event, PerCell):
        return per_cell_squares(event, neighbours)[1]
    if isinstance(event, PoissonSampled):
        batch = one_batch(event, neighbours)
        free = batch.replaced is not None and batch.replaced.is_free
        if free or (event.rate == 1 and batch.alone.is_gaussian):
            return (batch.replaced or batch.alone).mu ** 2
    return None


def per_cell_squares(event: PerCell, neighbours: Neighbours) -> tuple[float, float]:
    """(mu^2 of one row against none, mu^2 under the relation), the worst over people
    (theory.md#cells).

    Add-remove: max_k sum_j 1/m_jk^2. Replace-one: within a cell max_k sum_j (spread_j/m_jk)^2, or
    from one cell to another max_{k != k'} sum_j 1/m_jk^2 + 1/m_jk'^2 + 2 crossing_j/(m_jk m_jk').
    """
    people = People([(event, 1)])
    return people.worst("add-remove"), people.worst(neighbours)


def by_columns(releases: Iterable[tuple[PerCell, int]]) -> list[People]:
    """Who can be in these releases, apart for each column: a person may be in any cell of each."""
    columns: dict[tuple[int, int], list[tuple[PerCell, int]]] = {}
    for event, times in releases:
        columns.setdefault((event.column, event.cells), []).append((event, times))
    return [People(columns[key]) for key in sorted(columns)]


@dataclass(frozen=True)
class Joint:
    """One joint release: Gaussians merged to mu, Laplaces to s, discrete Laplaces to atoms,
    discrete Gaussians to rho."""

    mu: float
    s: float
    atoms: Atoms
    rho: float

    @property
    def is_gaussian(self) -> bool:
        return self.s == 0 and self.rho == 0 and self.atoms == curves.ONLY_ZERO

    @property
    def is_free(self) -> bool:
        return self.mu == 0 and self.is_gaussian

    @property
    def pure(self) -> float:
        """The epsilon at delta 0; inf with Gaussian parts."""
        known = self.mu == 0 and self.rho == 0
        return self.s + max(loss for loss, _ in self.atoms) if known else math.inf


@dataclass(frozen=True)
class Batch:
    """A secret Poisson batch: the release against no row and, under replace-one, against another
    row."""

    rate: float
    alone: Joint
    replaced: Joint | None


@lru_cache(maxsize=1024)
def one_batch(event: PoissonSampled, neighbours: Neighbours) -> Batch:
    """What one row can do to the joint release on its batch: c and, under replace-one, d of
    theory.md#t3."""
    parts = [part for part in joint_parts(event.event) if not isinstance(part, NoOp)]
    alone = _joint([(part, 1.0) for part in parts], "add-remove")
    if neighbours == "add-remove":
        return Batch(event.rate, alone, None)
    spreads = event.spreads or (LONE_SPREAD,) * len(parts)
    far = _joint(list(zip(parts, spreads, strict=True)), "replace-one")
    # Two contributions of norm c are at most 2c apart, whatever the cells say.
    return Batch(event.rate, alone, replace(far, mu=min(far.mu, 2 * alone.mu)))


def _joint(parts: list[tuple[Event, float]], neighbours: Neighbours) -> Joint:
    laplace, rho, atoms = [], [], curves.ONLY_ZERO
    per_cell = Counter(part for part, _ in parts if isinstance(part, PerCell))
    squares = [people.worst(neighbours) for people in by_columns(per_cell.items())]
    for part, spread in parts:
        if isinstance(part, Gaussian):
            squares.append((spread / part.noise_multiplier) ** 2)
        elif isinstance(part, Laplace):
            laplace.append(spread / part.noise_multiplier)
        elif isinstance(part, DiscreteGaussian):
            rho.append((spread / part.noise_multiplier) ** 2 / 2)
        elif isinstance(part, DiscreteLaplace):
            # A count moves by whole numbers: rounded up (docs/theory/numbers.md, other noise).
            shift = math.ceil(spread * part.sensitivity)
            if shift:
                scale = part.noise_multiplier * part.sensitivity
                atoms = curves.product_atoms(atoms, curves.discrete_laplace_atoms(scale, shift))
    return Joint(math.sqrt(math.fsum(squares)), math.fsum(laplace), atoms, math.fsum(rho))


def lone(event: Event) -> Joint | None:
    """One unsampled noise event as a joint release of one part; None for any other event."""
    if isinstance(event, Gaussian | Laplace | DiscreteGaussian | DiscreteLaplace):
        return _joint([(event, 1.0)], "add-remove")
    return None


# What releases with a noise of their own for each cell cost, person by person (theory.md#cells).
# A person is in one cell of a column, the same one in every release, and a neighbour may put her into
# one other cell. So several releases over the same cells are added up by person, and the worst person
# is sought last: exact under adaptive composition of Gaussians whose multipliers are constants
# (theory.md#t1), for each pair of neighbours is a pair of cells.

Counted = Iterable[tuple[PerCell, int]]
"""Releases over the cells of one column, with how often each was made."""


class People:
    """mu^2 of everybody who can be in these releases: by cell, and by pair of cells."""

    def __init__(self, releases: Counted) -> None:
        rows = [
            (part, spread, crossing, times)
            for event, times in sorted(releases, key=repr)
            for part, spread, crossing in zip(
                event.multipliers,
                event.spreads,
                event.crossings or (0,) * len(event.spreads),
                strict=True,
            )
        ]
        multipliers, spreads, crossings, times = zip(*rows, strict=True)
        # How far one row moves its cell, in units of the cell's noise.
        self._sizes: Array = 1 / np.array(multipliers, np.float64)
        self._squares = self._sizes**2
        self._crossings = np.array(crossings, np.float64)[:, np.newaxis]
        self._times = np.array(times, np.float64)
        self.alone: Array = self._times @ self._squares
        self.inside: Array = (self._times * np.array(spreads, np.float64) ** 2) @ self._squares

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.alone)

    def replaced(self, cell: int) -> Array:
        """Of a person in `cell`, against another person in each cell; in the same one at its own
        place."""
        size = self._sizes[:, cell : cell + 1]
        # From cell k to k': 1/m^2 + 1/m'^2 + 2x/(m m') with the crossing x in {-1, 0, 1}
        # (docs/theory/sensitivities.md, noise by cell).
        apart = self._times @ (
            (size + self._crossings * self._sizes) ** 2 + (1 - abs(self._crossings)) * self._squares
        )
        apart[cell] = self.inside[cell]
        return apart

    def worst(self, neighbours: Neighbours) -> float:
        """The worst over all people."""
        if neighbours == "add-remove":
            return float(self.alone.max())
        if self._crossings.any():
            return max(float(self.replaced(cell).max()) for cell in range(self.cells))
        # Where cells have coordinates of their own, the worst pair is the two with least noise.
        two = np.sort(self.alone)[-2:]
        return float(max(self.inside.max(), two.sum() if self.cells > 1 else 0.0))
