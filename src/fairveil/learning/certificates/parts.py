"""Which released counts a constraint is about: rows are counted by the coarsest parts that still
tell every rate of it.

A rate is P(outcome | event). Two rows that no rate distinguishes are counted together, so a rate is
the sum of as few noises as possible: of demographic parity two counts a group, of a false negative
rate two in all. Rows that no rate looks at are counted together, and not used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...facts import Cells
from ...fairness import Notion
from ...fairness.notions import Rate, RateConstraint
from ...fairness.systems import resolve
from .tails import Counted

Parts = tuple[int, ...]


@dataclass(frozen=True)
class CountedRate:
    """P(outcome | event) as parts of the table: those where the outcome is so (`hits`), and the
    others of the event."""

    name: str
    hits: Parts
    rest: Parts

    def counted(self, counts: Floats) -> Counted:
        """Its two released counts."""
        return Counted(
            float(counts[list(self.hits)].sum()),
            float(counts[list(self.rest)].sum()),
            len(self.hits),
            len(self.rest),
        )

    @property
    def event(self) -> frozenset[int]:
        """All its parts."""
        return frozenset((*self.hits, *self.rest))


@dataclass(frozen=True)
class Line:
    """sum of coefficient x rate <= bound, of the notion of that number."""

    name: str
    notion: int
    terms: tuple[tuple[float, int], ...]
    bound: float


@dataclass(frozen=True, eq=False)
class Layout:
    """What is counted, and what it is for. `part_of` (cells, labels, classes): the part of each
    row; the last is of no use."""

    part_of: npt.NDArray[np.int64]
    rates: tuple[CountedRate, ...]
    lines: tuple[Line, ...]

    @property
    def parts(self) -> int:
        """How many counts are released."""
        return int(self.part_of.max()) + 1

    @property
    def needs_labels(self) -> bool:
        """Whether any rate looks at labels."""
        return bool((self.part_of != self.part_of[:, :1, :]).any())

    @property
    def needs_groups(self) -> bool:
        """Whether any rate tells groups apart."""
        return bool((self.part_of != self.part_of[:1]).any())


def layout_of(notions: Sequence[Notion], cells: Cells, classes: Sequence[Hashable]) -> Layout:
    """The parts, rates and lines of these notions, over product cells."""
    found = _Collected(cells, tuple(classes))
    lines = [
        (str(constraint), at, found.merged(constraint), constraint.bound)
        for at, notion in enumerate(notions)
        for constraint in notion.constraints(cells, classes)
    ]
    masks = list(found.masks.values())
    everything = (
        np.stack([mask.ravel() for pair in masks for mask in pair])
        if masks
        else np.zeros((1, found.size), bool)
    )
    used = everything.any(axis=0)
    _, codes = np.unique(everything[:, used], axis=1, return_inverse=True)
    part_of = np.full(found.size, 0, dtype=np.int64)
    part_of[used] = codes.ravel()
    part_of[~used] = int(codes.max(initial=-1)) + 1

    def parts(mask: npt.NDArray[np.bool_]) -> Parts:
        return tuple(int(part) for part in np.unique(part_of[mask.ravel()]))

    rates = tuple(
        CountedRate(name, parts(hit), parts(event & ~hit))
        for name, (event, hit) in zip(found.names, masks, strict=True)
    )
    return Layout(part_of.reshape(found.shape), rates, tuple(Line(*line) for line in lines))


class _Collected:
    """Distinct rates as masks over (cells, labels, classes), while constraints are read."""

    def __init__(self, cells: Cells, classes: tuple[Hashable, ...]) -> None:
        self.cells, self.classes = cells, classes
        self.shape = (cells.count, len(classes), len(classes))
        self.size = int(np.prod(self.shape))
        self.names: list[str] = []
        self.masks: dict[
            tuple[bytes, bytes], tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
        ] = {}
        self.known: dict[tuple[str, Rate], tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]] = {}

    def merged(self, constraint: RateConstraint) -> tuple[tuple[float, int], ...]:
        """Its terms, with rates of one event that have one coefficient taken together: their sum is
        a rate, too."""
        together: dict[
            tuple[bytes, float], tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], list[str]]
        ] = {}
        for coefficient, rate in constraint.terms:
            event, hit = self._masks(rate, constraint.groups)
            key = (event.tobytes(), coefficient)
            if key in together and not (together[key][1] & hit).any():
                before = together[key]
                together[key] = (event, before[1] | hit, [*before[2], str(rate)])
            elif key not in together:
                together[key] = (event, hit, [str(rate)])
            else:
                together[(event.tobytes() + hit.tobytes(), coefficient)] = (event, hit, [str(rate)])
        summed: dict[int, float] = {}
        for (_, coefficient), (event, hit, names) in together.items():
            at = self._place(event, hit, " + ".join(names))
            summed[at] = summed.get(at, 0.0) + coefficient
        return tuple((coefficient, at) for at, coefficient in summed.items() if coefficient)

    def _place(self, event: npt.NDArray[np.bool_], hit: npt.NDArray[np.bool_], name: str) -> int:
        key = (event.tobytes(), hit.tobytes())
        if key not in self.masks:
            self.masks[key] = (event, hit)
            self.names.append(name)
        return list(self.masks).index(key)

    def _masks(self, rate: Rate, mode: str) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        if (mode, rate) not in self.known:
            system = resolve(
                RateConstraint(((1.0, rate),), 2.0, groups=mode), self.cells, self.classes
            )
            event = np.asarray(system.members.toarray(), bool).reshape(self.shape[:2])
            hit = np.asarray(system.numerators.toarray(), bool).reshape(self.shape)
            self.known[mode, rate] = (
                np.broadcast_to(event[:, :, np.newaxis], self.shape).copy(),
                hit,
            )
        return self.known[mode, rate]
