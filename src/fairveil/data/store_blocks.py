"""How a block of coded rows lies in a store: its arrays one after another, each at a multiple of 64
bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..facts.rows import PERSON_BY_PERSON, RowBlock, RowLayout

# A cache line, and the widest vector of today's processors.
ALIGNED = 64
NUMBERS, CODES, LABELS = ("<f8", "<f4"), ("|u1", "<u2", "<i4"), ("<i4", "<f8")
GROUPS = "<u2"


@dataclass(frozen=True)
class Shape:
    """The arrays of a block of `rows` rows, with their types; `labels`, `persons`: whether there
    are any."""

    rows: int
    numbers: int
    codes: int
    sensitive: int
    labels: bool
    types: tuple[str, str, str]
    # checksums of stores without them are of what is printed
    persons: bool = field(default=False, repr=False)

    @staticmethod
    def of(
        layout: RowLayout,
        rows: int,
        labels: bool,
        sensitive: bool,
        types: tuple[str, ...],
        persons: bool = False,
    ) -> Shape | None:
        """None where the types are others than a block has."""
        known = len(types) == 3 and types[0] in NUMBERS and types[1] in CODES and types[2] in LABELS
        groups = len(layout.sensitive) if sensitive else 0
        counts = (layout.numbers, len(layout.code_sizes), groups)
        return (
            Shape(rows, *counts, labels, (types[0], types[1], types[2]), persons) if known else None
        )

    def of_rows(self, rows: int) -> Shape:
        """The same of a shorter block."""
        return replace(self, rows=rows)

    @property
    def arrays(self) -> tuple[tuple[Any, tuple[int, ...]], ...]:
        """Type and shape of numbers, codes, labels, groups and persons; those that are not there
        have no rows."""
        return (
            (self.types[0], (self.numbers, self.rows)),
            (self.types[1], (self.codes, self.rows)),
            (self.types[2], (self.rows if self.labels else 0,)),
            (GROUPS, (self.sensitive, self.rows)),
            (PERSON_BY_PERSON, (self.rows if self.persons else 0,)),
        )

    @property
    def nbytes(self) -> int:
        """Of the block, with what keeps its arrays apart."""
        return sum(_padded(kind, shape) for kind, shape in self.arrays)


def types_of(block: RowBlock) -> tuple[str, ...]:
    """Of a block's numbers, codes and labels; numbers that are not dense have none that a store
    knows."""
    numbers = block.numbers.dtype if isinstance(block.numbers, np.ndarray) else None
    labels = LABELS[0] if block.labels is None else block.labels.dtype.newbyteorder("<").str
    return (
        "sparse" if numbers is None else numbers.newbyteorder("<").str,
        block.codes.dtype.newbyteorder("<").str,
        labels,
    )


def bytes_of(block: RowBlock, shape: Shape) -> bytearray:
    """A block as it is written."""
    out = bytearray(shape.nbytes)
    view, start = np.frombuffer(out, np.uint8), 0
    labels = np.empty(0, shape.types[2]) if block.labels is None else block.labels
    groups = (
        np.empty((0, shape.rows), GROUPS)
        if block.sensitive is None or not shape.sensitive
        else block.sensitive
    )
    persons = np.empty(0, PERSON_BY_PERSON) if block.persons is None else block.persons
    for (kind, size), values in zip(
        shape.arrays, (block.numbers, block.codes, labels, groups, persons), strict=True
    ):
        raw = np.ascontiguousarray(values, kind).reshape(size)
        view[start : start + raw.nbytes] = raw.ravel().view(np.uint8)
        start += _padded(kind, size)
    return out


def read_block(raw: npt.NDArray[np.uint8], start: int, shape: Shape) -> RowBlock:
    """The block that begins there: views, nothing copied."""
    found: list[Any] = []
    for kind, size in shape.arrays:
        count = int(np.prod(size))
        whole = np.dtype(kind).itemsize * count
        found.append(raw[start : start + whole].view(kind).reshape(size))
        start += _padded(kind, size)
    numbers, codes, labels, groups, persons = found
    told = (
        labels if shape.labels else None,
        groups if shape.sensitive else None,
        None,
        persons if shape.persons else None,
    )
    return RowBlock(numbers, codes, *told)


def checksum(raw: Any, shape: Shape) -> str:
    """Of a block's bytes and of what they are said to be: shows damage, not authorship."""
    # With the shape, else bytes could be read as another kind of block and still agree.
    found = hashlib.blake2b((repr(shape) + " by person" * shape.persons).encode(), digest_size=16)
    found.update(raw)
    return found.hexdigest()


def _padded(kind: npt.DTypeLike, size: tuple[int, ...]) -> int:
    whole = int(np.dtype(kind).itemsize) * int(np.prod(size))
    return -(-whole // ALIGNED) * ALIGNED
