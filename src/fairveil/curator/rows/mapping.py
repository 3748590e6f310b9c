"""Blocks whose numbers are mapped to other units.

Guarantee (tests/curator/test_curator_mapping.py):
1. A pass that maps runs of rows as it comes to them reads the numbers of a block that was mapped
   whole, to the bit.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from .block import Block

Maps = tuple[tuple[Floats, Floats], ...]  # scale and shift of each column, one after another
# memory of blocks before, for those after them
Spare = deque[npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, repr=False)
class Unmapped:
    """A block whose numbers are still to be mapped."""

    block: Block
    maps: Maps
    spare: Spare

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.block.rows

    @property
    def mapped(self) -> Block:
        """The block with its numbers mapped, kept by nobody else."""
        return Mapping(self.block, self.maps, deque()).read(0, self.rows)

    def begin(self) -> Mapping:
        """For one who reads each row once."""
        return Mapping(self.block, self.maps, self.spare)


class Mapping:
    """A block whose numbers are mapped run by run, as threads come to its rows."""

    __slots__ = ("_left", "_lock", "_maps", "_raw", "_spare", "block", "rows")

    def __init__(self, block: Block, maps: Maps, spare: Spare) -> None:
        self.rows, self._raw, self._maps, self._spare = block.rows, block.numbers, maps, spare
        self._left, self._lock = block.rows, Lock()
        out = spare.pop() if spare else self._raw[:0]
        if out.shape != self._raw.shape or out.dtype != self._raw.dtype:
            out = np.empty(self._raw.shape, self._raw.dtype)
        self.block = replace(block, numbers=out)

    def read(self, a: int, b: int) -> Block:
        """The block, whose rows a to b may be read from now on.

        Numbers are kept finite. Never an error or a warning, whatever a row holds.
        """
        from .kernels_mapping import map_into

        of, out = self._raw, self.block.numbers
        most = float(np.finfo(out.dtype).max)
        for scale, shift in self._maps:
            map_into(of, a, b, scale[:, 0], shift[:, 0], most, out)
            of = out
        return self.block

    def done(self, rows: int) -> None:
        """So many rows will not be read again. After the last its memory is another block's."""
        with self._lock:
            self._left -= rows
            ended = self._left == 0
        if ended:
            self._spare.append(self.block.numbers)


def mapped(block: Block, scale: Floats, shift: Floats) -> Block:
    """The block with its numbers mapped and kept finite. Never an error or a warning, whatever a
    row holds."""
    return Unmapped(block, ((scale, shift),), deque()).mapped
