"""What each mechanism costs: one table, from an event to its pure part, its profile and its moments;
and the inventory of a tree, which says how often one person was in each.

| event | pure | profile | moments | under add-remove | under replace-one |
|---|---|---|---|---|---|
| `Gaussian`, `PerCell` | none | added up to one Gaussian of mu^2 | the same | both | both |
| `Laplace`, `DiscreteLaplace` | exact | exact, at most 256 atoms | exact | both | both |
| `Exponential`, `Pure` | its own | the worst pair | the worst pair | both | both |
| `Approximate` | with its delta | the worst pair | the same, but for delta | both | both |
| `ZeroConcentrated` | none | none | its own | both | both |
| `PoissonSampled` | none | T2 and T3 | of the profile | T2, exact | T3 |
| `VisiblySampled` | none | T4 | mixed with nothing | refused | T4 |
| `OnPart` | | counted in parallel (T8) | | refused | T8 |
| `PrivateSelection` | of finite shape | none | Papernot and Steinke 2022 | both | both |

Two trees that mean the same give the same `Inventory`, so that n-fold repetition equals a list of
n, order does not matter and a no-op is free, whatever route prices it afterwards.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from . import curves
from .curves import Array, Moments, Profile
from .errors import InputError, need
from .events import (
    Approximate,
    Composed,
    DiscreteLaplace,
    Event,
    Exponential,
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
    VisiblySampled,
    ZeroConcentrated,
    joint_parts,
)
from .promise import Neighbours

LONE_SPREAD = 2.0
OUTWARDS = 1.0 + 2.0**-48
"""More than the last digits of a few elementary functions."""

# ---- what was done, counted for one person


def counted(event: Event, neighbours: Neighbours | None = None) -> Counter[Event]:
    """Every mechanism with how often one person can have been in it.

    Of a partition she is in one part: each of its mechanisms counts as often as on the part that
    used it most, which is at least what any one part used. Partitions add up, for she is in a part
    of each. What holds something that is not private counts as `NonPrivate`.

    Under add-remove a visible batch is refused: who sees a new member learns of it whatever is
    asked, so its price would have to count the batch itself (theory.md#t4 is for batches whose
    membership says nothing of what is protected). And a fixed part: a row that comes moves others
    from part to part (theory.md#t8).
    """
    counts: Counter[Event] = Counter()
    parted: dict[int, dict[int, Counter[Event]]] = {}

    def count(event: Event, times: int, into: Counter[Event]) -> None:
        match event:
            case Composed():
                for inner in event.events:
                    count(inner, times, into)
            case Repeated():
                if event.count:
                    count(event.event, times * event.count, into)
            case OnPart() if event.parts > 1:
                _need_presence_public(event, neighbours)
                part = parted.setdefault(event.parts, {}).setdefault(event.part, Counter())
                count(event.event, times, part)
            case OnPart() | VisiblySampled(rate=1):
                count(event.event, times, into)
            case PoissonSampled() | VisiblySampled() | PrivateSelection():
                if isinstance(event, VisiblySampled):
                    _need_presence_public(event, neighbours)
                asked = counted(event.event, neighbours)
                if asked:
                    into[NonPrivate() if NonPrivate() in asked else event] += times
            case Approximate(delta=0):
                if event.epsilon > 0:
                    into[Pure(event.epsilon)] += times
            case NoOp():
                pass
            case _:
                into[event] += times

    count(event, 1, counts)
    for parts in parted.values():
        most: Counter[Event] = Counter()
        for part in parts.values():
            # The larger count of each mechanism, which is what | of counters means.
            most |= part
        counts.update(most)
    return counts


def _need_presence_public(event: Event, neighbours: Neighbours | None) -> None:
    words = "no visible batch and no fixed part where presence is protected"
    fix = "Keep the batch secret: PoissonSampled. A visible one is for replace-one, where "
    fix += "presence is public."
    of, got = "events under add-remove", type(event).__name__
    need(neighbours != "add-remove", words, of=of, got=got, fix=fix)


@dataclass(frozen=True)
class Inventory:
    """`gaussian`: the sum of (sensitivity / deviation)^2 of all unsampled Gaussians (theory.md#t1:
    mu^2, exact under adaptive composition), those over cells composed person by person. `others`:
    every other mechanism."""

    gaussian: float
    others: tuple[tuple[Event, int], ...]
    private: bool

    @property
    def is_free(self) -> bool:
        """Whether nothing that is protected was read."""
        return self.private and not (self.others or self.gaussian)


@lru_cache(maxsize=256)
def inventory(event: Event, neighbours: Neighbours) -> Inventory:
    """What was done, sorted and counted."""
    counts = counted(event, neighbours)
    private = not counts.pop(NonPrivate(), 0)
    # Releases by cell are added up person by person before the worst one is sought: the worst of
    # each release may be two people.
    squares, others = _by_cell(counts, neighbours), Counter[Event]()
    for leaf, times in counts.items():
        match leaf:
            case PerCell():
                pass
            case Gaussian():
                squares.append(times * leaf.noise_multiplier**-2)
            case PoissonSampled() if (mu := batch(leaf, neighbours).unsampled) is not None:
                squares.append(times * mu**2)
            case _:
                others[leaf] += times
    # In one order, so that equal lists share what the caches hold.
    ordered = sorted(others.items(), key=lambda item: repr(item[0]))
    return Inventory(math.fsum(squares), tuple(ordered), private)


def addition(total: Inventory, neighbours: Neighbours) -> tuple[float, float]:
    """Basic composition: epsilons and deltas of mechanisms with a pure part add up. The sums are
    exact, and rounded up once."""
    if total.gaussian > 0:
        return math.inf, 0.0
    pairs = [(mechanism(event, neighbours).pure, count) for event, count in total.others]
    deltas = _up(sum((Fraction(delta) * count for (_, delta), count in pairs), Fraction()))
    if any(math.isinf(epsilon) for (epsilon, _), _ in pairs):
        return math.inf, deltas
    sums = (Fraction(epsilon) * count for (epsilon, _), count in pairs)
    return _up(sum(sums, Fraction())), deltas


def moments(total: Inventory, neighbours: Neighbours) -> Moments:
    """The moments of everything: divergences add (Mironov 2017), and leaks."""
    out = Moments(curves.ORDERS * (total.gaussian / 2))
    for event, count in total.others:
        out = out + mechanism(event, neighbours).moments.times(count)
    return out


def _up(value: Fraction) -> float:
    """The least float that is not below."""
    try:
        found = float(value)
    except OverflowError:
        return math.inf
    return found if Fraction(found) >= value else math.nextafter(found, math.inf)


# ---- one mechanism


class Mechanism:
    """What one mechanism costs by itself, under one relation.

    `pure`: (epsilon, delta) of its own; epsilon inf where it has none. `profile`: None where it is
    known by its moments alone. `loose`: whether moments may compose closer than profiles, since the
    worst pair of each delta is another.
    """

    def __init__(
        self,
        moments: Callable[[], Moments | Array],
        profile: Profile | None = None,
        pure: tuple[float, float] = (math.inf, 0.0),
        *,
        loose: bool = False,
    ) -> None:
        self.profile, self.pure, self.loose = profile, pure, loose
        self._moments = moments

    @cached_property
    def moments(self) -> Moments:
        """Renyi divergences."""
        found = self._moments()
        return found if isinstance(found, Moments) else Moments(found)


@lru_cache(maxsize=512)
def mechanism(event: Event, neighbours: Neighbours) -> Mechanism:
    """What a mechanism of an `Inventory` costs."""
    match event:
        case Laplace():
            s, epsilon = 1 / event.noise_multiplier, _up(1 / Fraction(event.noise_multiplier))
            exact = curves.laplace(s)
            return Mechanism(lambda: curves.moments_of_laplace(s), exact, (epsilon, 0.0))
        case DiscreteLaplace():
            scale = event.noise_multiplier * event.sensitivity
            atoms = curves.discrete_laplace_atoms(scale, event.sensitivity)
            exact, epsilon = (
                curves.discrete_laplace(atoms),
                _up(1 / Fraction(event.noise_multiplier)),
            )
            return Mechanism(lambda: curves.moments_of_atoms(atoms), exact, (epsilon, 0.0))
        case Exponential(epsilon):
            worst = curves.bounded_range(epsilon)
            of_range = curves.moments_of_bounded_range
            return Mechanism(lambda: of_range(epsilon), worst, (epsilon, 0.0), loose=True)
        case Pure(epsilon):
            worst = curves.pure(epsilon)
            return Mechanism(lambda: curves.moments_of_pure(epsilon), worst, (epsilon, 0.0))
        case Approximate(epsilon, delta):
            worst = curves.pure(epsilon, delta)
            return Mechanism(
                lambda: Moments(curves.moments_of_pure(epsilon), delta), worst, (epsilon, delta)
            )
        case ZeroConcentrated(rho):
            return Mechanism(lambda: curves.ORDERS * rho)
        case PoissonSampled():
            drawn = batch(event, neighbours)
            return Mechanism(drawn.moments, drawn.profile)
        case VisiblySampled(rate):
            square = inventory(event.event, neighbours).gaussian
            seen = curves.visible(math.sqrt(square), rate)
            whole = curves.ORDERS * (square / 2)
            return Mechanism(lambda: curves.moments_of_visible(whole, rate), seen)
        case PrivateSelection():
            inner = inventory(event.event, neighbours)
            (epsilon, delta), how = addition(inner, neighbours), (event.mean, event.shape)
            # Papernot and Steinke (2022), for truncated negative binomial numbers of pure runs.
            bounded = not math.isinf(event.shape) and delta == 0
            most = (2 + event.shape) * epsilon * OUTWARDS if bounded else math.inf
            best = curves.moments_of_selection
            return Mechanism(lambda: best(moments(inner, neighbours), *how), pure=(most, 0.0))
    fix = "Describe what it costs by Pure, Approximate or ZeroConcentrated."
    words = "an event of fairveil.core.events"
    raise InputError.expected(words, of="events", got=event, remedy=fix)


class Batch(NamedTuple):
    """A secret Poisson batch: how far one row moves the joint release on it, over its noise, against
    no row and, under replace-one, against another: c and d of theory.md#t3."""

    rate: float
    alone: float
    replaced: float | None

    @property
    def unsampled(self) -> float | None:
        """The mu of the Gaussian release that it is, where it is one: of everybody, or free."""
        free = self.replaced is not None and self.replaced == 0
        if not free and self.rate < 1:
            return None
        return self.alone if self.replaced is None else self.replaced

    @property
    def profile(self) -> Profile:
        """T2 under add-remove, T3 under replace-one."""
        if self.replaced is None:
            return curves.poisson_add_remove(self.alone, self.rate)
        return curves.poisson_replace_one(self.alone, self.replaced, self.rate)

    def moments(self) -> Moments:
        """Of the profile; a batch never costs more than its release on everything."""
        found = curves.moments_of_profile(self.profile)
        mu = self.alone if self.replaced is None else self.replaced
        return Moments(np.minimum(found.values, curves.ORDERS * (mu**2 / 2)), found.leak)


@lru_cache(maxsize=1024)
def batch(event: PoissonSampled, neighbours: Neighbours) -> Batch:
    """What one row can do to the joint release on its batch."""
    parts = joint_parts(event.event)
    alone = _joint(parts, (1.0,) * len(parts), "add-remove")
    if neighbours == "add-remove":
        return Batch(event.rate, alone, None)
    far = _joint(parts, event.spreads or (LONE_SPREAD,) * len(parts), "replace-one")
    # Two contributions of norm c are at most 2c apart, whatever the cells say.
    return Batch(event.rate, alone, min(far, 2 * alone))


def _joint(parts: tuple[Event, ...], spreads: tuple[float, ...], neighbours: Neighbours) -> float:
    squares = _by_cell(Counter(parts), neighbours)
    for part, spread in zip(parts, spreads, strict=True):
        if isinstance(part, Gaussian):
            squares.append((spread / part.noise_multiplier) ** 2)
    return math.sqrt(math.fsum(squares))


# ---- noise that differs by cell, person by person (theory.md#cells)
#
# A person is in one cell of a column, the same one in every release, and a neighbour may put her
# into one other cell. So several releases over the same cells are added up by person, and the worst
# person is sought last: exact under adaptive composition of Gaussians whose multipliers are
# constants (theory.md#t1), for each pair of neighbours is a pair of cells.


def _by_cell(counts: Counter[Event], neighbours: Neighbours) -> list[float]:
    """mu^2 of the worst person of each column: a person may be in any cell of each."""
    columns: dict[tuple[int, int], list[tuple[PerCell, int]]] = {}
    for event, times in counts.items():
        if isinstance(event, PerCell):
            columns.setdefault((event.column, event.cells), []).append((event, times))
    return [People(columns[key]).worst(neighbours) for key in sorted(columns)]


class People:
    """mu^2 of everybody who can be in these releases over the cells of one column, each made so
    often: by cell, and by pair of cells."""

    def __init__(self, releases: Iterable[tuple[PerCell, int]]) -> None:
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
        """The worst over all people: of one row against none, or under the relation."""
        if neighbours == "add-remove":
            return float(self.alone.max())
        if self._crossings.any():
            return max(float(self.replaced(cell).max()) for cell in range(len(self.alone)))
        # Where cells have coordinates of their own, the worst pair is the two with least noise.
        two = np.sort(self.alone)[-2:]
        return float(max(self.inside.max(), two.sum() if len(two) > 1 else 0.0))
