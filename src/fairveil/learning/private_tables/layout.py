"""What a private table counts: every row once, by group, outcome and decision.

One histogram over the finest groups (all combinations of the sensitive columns) serves the whole
hierarchy: everyone, one column, two, and so on. A coarser group is the sum of m finest ones: m
times the variance of the noise, and m times the people of the average part. Levels with budgets of
their own would share epsilon, and every one of the finest groups would have noise as many times
larger as there are levels (theory.md#hierarchy).

Guarantees (tests/learning/test_learning_table_layout.py):
1. A row is in one part, so one person moves the counts as far as in any histogram.
2. The groups of each level are disjoint, and together are everyone.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...facts import Cells
from ...tables.keys import shown
from ..certificates.tails import Counted

Bools = npt.NDArray[np.bool_]
EVERYONE: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Share:
    """P(hit | event), as kinds of rows."""

    name: str
    hits: Bools
    rest: Bools

    @property
    def together(self) -> frozenset[bytes]:
        """The same for a share and for what is left of it."""
        return frozenset((self.hits.tobytes(), self.rest.tobytes()))


@dataclass(frozen=True)
class TableGroup:
    """A group of the hierarchy: the columns that make it, its key (None: everyone), and its finest
    cells."""

    columns: tuple[int, ...]
    key: Hashable
    cells: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TableLayout:
    """What is counted. A row's kind is (label, decision); without labels there is one label."""

    cells: Cells
    classes: tuple[Hashable, ...]
    labelled: bool
    depth: int = 1

    @property
    def kinds_shape(self) -> tuple[int, int]:
        """(labels, decisions)."""
        labels = len(self.classes) if self.labelled else 1
        return (labels, len(self.classes))

    @property
    def kinds(self) -> int:
        """How many kinds of rows there are in a group."""
        return int(np.prod(self.kinds_shape))

    @property
    def parts(self) -> int:
        """How many counts are released."""
        return self.cells.count * self.kinds

    def part_of(
        self,
        ids: npt.NDArray[np.intp],
        labels: npt.NDArray[np.intp],
        decisions: npt.NDArray[np.intp],
    ) -> npt.NDArray[np.intp]:
        """The part of each row."""
        part = (ids * self.kinds_shape[0] + (labels if self.labelled else 0)) * len(
            self.classes
        ) + decisions
        return np.asarray(part, np.intp)

    @cached_property
    def groups(self) -> tuple[TableGroup, ...]:
        """Everyone, then each column's groups, then those of two columns, up to `depth`."""
        grid = np.indices(self.cells.sizes).reshape(len(self.cells.sizes), -1)
        out = [TableGroup(EVERYONE, None, tuple(range(self.cells.count)))]
        for level in self.levels:
            for values in itertools.product(*(range(self.cells.sizes[j]) for j in level)):
                inside = np.all(
                    [grid[j] == value for j, value in zip(level, values, strict=True)], axis=0
                )
                out.append(
                    TableGroup(
                        level,
                        self._key(level, values),
                        tuple(int(c) for c in np.flatnonzero(inside)),
                    )
                )
        return tuple(out)

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The columns of each level, without that of everyone; a single group is no level."""
        columns = range(len(self.cells.columns)) if self.cells.count > 1 else ()
        return tuple(
            level
            for size in range(1, min(self.depth, len(columns)) + 1)
            for level in itertools.combinations(columns, size)
        )

    def _key(self, level: tuple[int, ...], values: tuple[int, ...]) -> Hashable:
        found = tuple(self.cells.columns[j][value] for j, value in zip(level, values, strict=True))
        if len(level) == len(self.cells.columns):
            return found[0] if len(found) == 1 else found
        named = tuple((self.cells.names[j], value) for j, value in zip(level, found, strict=True))
        return named[0] if len(named) == 1 else named

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Every rate of the table by name, in the order of an exact group table."""
        label, decision = np.indices(self.kinds_shape).reshape(2, -1)
        everything = np.ones(self.kinds, bool)
        found = []
        for k, name in enumerate(self.classes):
            chosen = decision == k
            found.append(_share(f"selection_rate[{shown(name)}]", everything, chosen))
            if self.labelled:
                found.append(_share(f"true_positive_rate[{shown(name)}]", label == k, chosen))
                found.append(_share(f"false_negative_rate[{shown(name)}]", label == k, ~chosen))
                found.append(_share(f"false_positive_rate[{shown(name)}]", label != k, chosen))
        if self.labelled:
            found.append(_share("error", everything, label != decision))
            found.append(_share("accuracy", everything, label == decision))
        return {share.name: share for share in found}

    @cached_property
    def main(self) -> tuple[str, ...]:
        """The rates that are shown, and whose gaps are: of the second of two classes, of every
        class of more; then the rest."""
        names = [
            "selection_rate",
            *(["true_positive_rate", "false_positive_rate"] if self.labelled else []),
        ]
        if len(self.classes) == 2:
            out = [f"{name}[{shown(self.classes[1])}]" for name in names]
        else:
            out = [f"selection_rate[{shown(k)}]" for k in self.classes]
        return (
            *out,
            *(["error"] if self.labelled else []),
        )

    def of_label(self, label: int) -> Bools:
        """The kinds of rows with this label."""
        return np.asarray(np.indices(self.kinds_shape)[0].ravel() == label)


def counted(share: Share, kinds: Floats, noises: int) -> Counted:
    """The two counts of a share in a group: `kinds` are its sums by kind, each with the noise of so
    many counts."""
    hits, rest = float(kinds[share.hits].sum()), float(kinds[share.rest].sum())
    return Counted(hits, rest, noises * int(share.hits.sum()), noises * int(share.rest.sum()))


def _share(name: str, event: Bools, hit: Bools) -> Share:
    return Share(name, event & hit, event & ~hit)
