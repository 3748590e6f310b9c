"""The steps of an additive model: beside each number the code of the step that it lies on, and
codes of pairs of columns.

    score(x) = b + sum_j ( w_j x_j + f_j(x_j) ) + sum_{j, k} f_{jk}(x_j, x_k),    f_j and f_{jk} constant between public edges

A step is a category like any other: rows stay codes, and whoever asks about them asks as before.

Guarantees (tests/estimators/test_shapes.py):
1. A row's codes depend on that row and public edges, on nothing else.
2. Codes are added: numbers, and the codes that were there, keep their places, and numbers with
   known bounds their values.
3. A number whose bounds are not known is replaced by one in [-1, 1].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ...facts import RowBlock, RowLayout

Codes = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Side:
    """A column as positions: a number between edges, or a category by its code.

    `along`: whether the number itself is replaced by where it lies along the edges, in [-1, 1]:
    where no bounds are known. `place`: among numbers, or among the codes that were there. `edges`:
    in the units of coded numbers, `marks`: the same in the units of the table; a number on an edge
    lies above it. Of a category they are empty, and `values` are its values.
    """

    name: str
    place: int
    edges: tuple[float, ...] = ()
    marks: tuple[float, ...] = ()
    values: tuple[str, ...] = ()
    along: bool = False

    @property
    def size(self) -> int:
        """How many positions."""
        return len(self.values) or len(self.edges) + 1

    def positions(self, block: RowBlock) -> Codes:
        """Of each row."""
        if self.values:
            return np.asarray(block.codes[self.place])
        return np.searchsorted(
            self.edges, np.asarray(block.numbers[self.place], np.float64), side="right"
        )

    def placed(self, numbers: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Where numbers lie along the edges: linear between two of them, -1 and 1 beyond the
        outermost.

        >>> Side("income", 0, (0.0, 1.0, 10.0), (0.0, 1.0, 10.0)).placed(
        ...     np.array([-5.0, 0.5, 10.0, 1e9])
        ... ).tolist()
        [-1.0, -0.5, 1.0, 1.0]
        """
        return np.interp(
            np.asarray(numbers, np.float64), self.edges, np.linspace(-1.0, 1.0, len(self.edges))
        )

    @cached_property
    def words(self) -> tuple[str, ...]:
        """One a position.

        >>> Side("age", 0, (-0.5, 0.5), (18.0, 65.0)).words
        ('below 18', '18 to 65', 'from 65')
        """
        if self.values:
            return self.values
        marks = [f"{mark:.6g}" for mark in self.marks]
        if not marks:
            return ("any",)
        between = [f"{low} to {high}" for low, high in pairwise(marks)]
        return (f"below {marks[0]}", *between, f"from {marks[-1]}")


@dataclass(frozen=True)
class Shapes:
    """What codes are added: `steps` of numbers, then `pairs` of columns, each in its order."""

    steps: tuple[Side, ...]
    pairs: tuple[tuple[Side, Side], ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the codes that are added."""
        return (
            *(side.size for side in self.steps),
            *(one.size * other.size for one, other in self.pairs),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """One a coefficient that is added."""
        return tuple(self._names())

    def _names(self) -> Iterator[str]:
        for side in self.steps:
            yield from (f"{side.name}: {words}" for words in side.words)
        for one, other in self.pairs:
            for words in one.words:
                yield from (
                    f"{one.name}: {words}, {other.name}: {others}" for others in other.words
                )

    @property
    def along(self) -> tuple[Side, ...]:
        """The sides whose numbers are replaced."""
        return tuple(side for side in self.steps if side.along)

    def layout(self, before: RowLayout) -> RowLayout:
        """The shape of rows that have the codes."""
        return replace(before, code_sizes=(*before.code_sizes, *self.sizes))

    def apply(self, block: RowBlock) -> RowBlock:
        """The same rows with the codes; guarantees 1 and 2."""
        kind = np.result_type(block.codes.dtype, *map(_kind, self.sizes))
        codes = np.empty(
            (len(block.codes) + len(self.sizes), block.rows),
            kind if kind.itemsize <= 2 else np.int32,
        )
        codes[: len(block.codes)] = block.codes
        lines = iter(codes[len(block.codes) :])
        for side in self.steps:
            next(lines)[:] = side.positions(block)
        for one, other in self.pairs:
            next(lines)[:] = one.positions(block).astype(np.int64) * other.size + other.positions(
                block
            )
        return replace(block, codes=codes, numbers=self._numbers(block))

    def _numbers(self, block: RowBlock) -> Any:
        if not self.along:
            return block.numbers
        numbers = np.array(block.numbers)
        for side in self.along:
            numbers[side.place] = side.placed(block.numbers[side.place])
        return numbers


def _kind(size: int) -> type[np.integer]:
    return np.uint8 if size <= 1 << 8 else np.uint16
