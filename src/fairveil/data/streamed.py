"""Rows that stay where they are (a file, a database) and are coded block by block, again at each
pass.

Guarantees, each with a test:
1. Every row is checked against the schema before the source is returned, hence before any
   release.
2. No error shows a value of a row: it names column and row. Rows that are not those that were
   checked are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from .. import _checks
from ..errors import PrivacyError
from ..facts.rows import RowBlock, Traits
from ..tables.raw import Raw
from .encoded import BLOCK_ROWS, EncodedRows, in_blocks_of
from .encoding import ByEncoding, Encoding
from .person_names import require_one_kind
from .spilling import spilled, too_large, within


@dataclass(frozen=True)
class Chunk:
    """A run of raw rows. `text`: cells are text to be parsed."""

    columns: Mapping[str, Raw]
    rows: int
    text: bool = False


class Reader(Protocol):
    """A place that rows can be read from, again and again."""

    @property
    def place(self) -> str:
        """Where, in words, without a password."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """All rows, in a fixed order."""
        ...

    def identity(self) -> object:
        """What changes when the rows do, as far as can be told without reading them; None where
        nothing tells."""
        ...

    def counted(self) -> int | None:
        """How many rows there are, where the place says so without their being read."""
        ...


class StreamedRows(ByEncoding):
    """A `RowSource` that reads its rows anew at each pass; memory is that of a block."""

    def __init__(self, reader: Reader, encoding: Encoding, block_rows: int = BLOCK_ROWS) -> None:
        self._reader = reader
        self._encoding = encoding
        self._block_rows = _checks.whole(block_rows=block_rows, at_least=1)
        self._identity = reader.identity()
        # The pass that may still show the data holder what is wrong: guarantee 1.
        self._rows = sum(block.rows for block in coded(self._reader, self._encoding))
        self._require(self._identity == reader.identity())

    @property
    def row_count(self) -> int:
        """How many rows there are; private where that number is."""
        return self._rows

    def settled(self) -> EncodedRows:
        """The rows as a fit holds them: in memory where they fit it, else in a coded store of their
        own (`spilling`)."""
        found = within(self.blocks(), self._encoding, self._block_rows)
        return spilled(self, self._rows, self._encoding) if found is None else found

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(settled=self.settled, row_count=self._rows, identity=self._identity)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, once; guarantee 2."""
        self._require(self._identity == self._reader.identity())
        rows = 0
        passing = in_blocks_of(coded(self._reader, self._encoding), self._block_rows)
        while True:
            block = self._next(passing)
            if block is None:
                break
            rows += block.rows
            yield block
        self._require(rows == self._rows and self._identity == self._reader.identity())

    def _next(self, passing: Iterator[RowBlock]) -> RowBlock | None:
        try:
            return next(passing, None)
        except Exception:
            # whatever it is: after the check a reader fails only when the place has changed
            failed = True
        # Raised out here, so that the error and the values in its message are not kept as its
        # context.
        self._require(not failed)
        return None

    def _require(self, unchanged: bool) -> None:
        if not unchanged:
            raise PrivacyError.expected(
                "the rows that were checked when the source was made",
                of=self._reader.place,
                got=_Changed(),
                remedy="Read a copy that nobody writes to, and load it anew.",
            )

    def __repr__(self) -> str:
        return f"StreamedRows({self._reader.place})"


class FirstPass(StreamedRows):
    """Rows that are checked by the one pass that copies them: never handed out. Guarantee 1."""

    def __init__(self, reader: Reader, encoding: Encoding, block_rows: int, rows: int) -> None:
        self._reader, self._encoding, self._block_rows = reader, encoding, block_rows
        self._identity, self._rows = reader.identity(), rows

    def _next(self, passing: Iterator[RowBlock]) -> RowBlock | None:
        return next(passing, None)  # its errors are for the data holder


def to_copy(reader: Reader, encoding: Encoding, block_rows: int) -> StreamedRows:
    """Rows for one who copies all of them: read once where the place says how many there are, else
    once before to count."""
    rows = reader.counted()
    if rows is None:
        return StreamedRows(reader, encoding, block_rows)
    return FirstPass(reader, encoding, block_rows, rows)


class _Changed:
    def __repr__(self) -> str:
        return "others"


def coded(reader: Reader, encoding: Encoding) -> Iterator[RowBlock]:
    """One pass over a reader's rows."""
    first_row, kinds = 0, set[int]()
    for chunk in reader.chunks():
        block = encoding.block(
            chunk.columns, rows=chunk.rows, first_row=first_row, text=chunk.text, shows_values=False
        )
        if block.persons is not None:
            kinds = require_one_kind(block.persons, str(encoding.schema.unit), kinds)
        yield block
        first_row += chunk.rows


def rows_of(
    reader: Reader, encoding: Encoding, in_memory: bool | None, block_rows: int
) -> StreamedRows | EncodedRows:
    """The rows of a reader: streamed, or coded once and kept. None: kept in memory where they fit
    it, else on the disk."""
    block_rows = _checks.whole(block_rows=block_rows, at_least=1)
    if in_memory is None:
        rows = reader.counted()
        source: StreamedRows | None = None
        if rows is not None:
            source = FirstPass(reader, encoding, block_rows, rows)
        if source is None or not too_large(source, source.row_count, encoding):
            found = within(coded(reader, encoding), encoding, block_rows)
            if found is not None:
                return found
        source = source or StreamedRows(reader, encoding, block_rows)
        return spilled(source, source.row_count, encoding)
    if not in_memory:
        return StreamedRows(reader, encoding, block_rows)
    return EncodedRows(encoding, tuple(in_blocks_of(coded(reader, encoding), block_rows)))
