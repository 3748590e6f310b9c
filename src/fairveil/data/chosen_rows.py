"""Some of the rows of a store, gathered block by block at each pass: no copy of them is held.

Guarantees (tests/data/test_data_spilling.py):
1. They are the chosen rows, in their order, to the bit; memory is that of a block, and a bit a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..facts.rows import PERSON_BY_PERSON, RowBlock, RowLayout, Traits
from .encoding import Encoding


@dataclass(frozen=True, repr=False)
class ChosenRows:
    """A `RowSource` of rows that lie on the disk. `_bits`: which ones, eight to a byte."""

    encoding: Encoding
    _blocks: Callable[[], Iterator[RowBlock]]
    _bits: npt.NDArray[np.uint8]

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_streamed=True)

    def blocks(self) -> Iterator[RowBlock]:
        """The chosen rows, in the order of the table."""
        start = 0
        for block in self._blocks():
            first, stop = start // 8, -(-(start + block.rows) // 8)
            inside = np.unpackbits(self._bits[first:stop])[
                start - 8 * first : start - 8 * first + block.rows
            ]
            start += block.rows
            chosen = gathered(block, np.flatnonzero(inside))
            if chosen.rows:
                yield chosen

    def chosen(self, at: npt.NDArray[np.intp]) -> ChosenRows:
        """Some of these."""
        wanted = np.zeros(8 * len(self._bits), np.bool_)
        wanted[np.flatnonzero(np.unpackbits(self._bits))[at]] = True
        return ChosenRows(self.encoding, self._blocks, np.packbits(wanted))

    def __repr__(self) -> str:
        return f"ChosenRows({self.encoding!r})"


def gathered(block: RowBlock, inside: npt.NDArray[np.intp]) -> RowBlock:
    """Some rows of a block, copied."""
    return RowBlock(
        np.ascontiguousarray(block.numbers[:, inside]),
        np.ascontiguousarray(block.codes[:, inside]),
        None if block.labels is None else block.labels[inside],
        None if block.sensitive is None else np.ascontiguousarray(block.sensitive[:, inside]),
        None,
        None if block.persons is None else _persons(block.persons, inside),
    )


def _persons(persons: npt.NDArray[Any], inside: npt.NDArray[np.intp]) -> npt.NDArray[Any]:
    """Whose the chosen rows are. Rows that stand person by person do so still."""
    found = persons[inside]
    if found.dtype == PERSON_BY_PERSON:
        person = np.cumsum(persons["begins"])[inside]
        found["begins"] = np.r_[True, person[1:] != person[:-1]][: len(found)]
    return found
