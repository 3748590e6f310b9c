"""What rows look like, and where they come from. Only shapes and public lists here: the rows stay
with their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..core.layout import RowLayout as RowLayout

if TYPE_CHECKING:
    from .schema import Schema


PERSON_BY_PERSON = np.dtype([("place", "<i8"), ("begins", "?")])
"""Of rows that stand person by person: where the row stood in the table, and whether it is the
first of its person."""


@dataclass(frozen=True, repr=False)  # a printed block would show rows
class RowBlock:
    """A run of coded rows, column by column, never one-hot.

    `numbers`: float32 or float64 of shape (numbers, rows), each line contiguous; or a scipy CSR
    array (rows, numbers). `codes`: uint8, uint16 or int32 of shape (coded features, rows).
    `labels`: int32 class codes or float64 targets (rows,), or None. `sensitive`: uint16 codes of
    shape (sensitive columns, rows), or None. `weights`: float64 (rows,), or None for ones.
    `persons`: whose each row is (rows,): bytes that tell persons apart, or `PERSON_BY_PERSON`,
    where no person has rows in two blocks; None where rows are nobody's in particular.
    """

    numbers: Any
    codes: npt.NDArray[np.integer]
    labels: npt.NDArray[Any] | None = None
    sensitive: npt.NDArray[np.uint16] | None = None
    weights: npt.NDArray[np.float64] | None = None
    persons: npt.NDArray[Any] | None = None

    @property
    def rows(self) -> int:
        """How many rows the block holds: private under add-remove."""
        return int(self.codes.shape[1])


@runtime_checkable
class RowSource(Protocol):
    """Anything that can be read again and again, block by block: a table in memory, files on disk,
    a shard."""

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        ...

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, once, in any fixed order; a new iterator each time."""
        ...


@runtime_checkable
class CodedSource(RowSource, Protocol):
    """A source whose rows were coded by a schema, which then states classes and groups."""

    @property
    def encoding(self) -> SchemaCoded:
        """How they were coded."""
        ...


class SchemaCoded(Protocol):
    """How a schema codes rows (`data.encoding.Encoding`)."""

    @property
    def schema(self) -> Schema:
        """The schema."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that are features."""
        ...


def schema_of(source: object) -> Schema | None:
    """The schema by which rows were coded; None where there was none, and of what is no source."""
    return source.encoding.schema if isinstance(source, CodedSource) else None


def held_blocks(source: RowSource) -> Iterator[RowBlock]:
    """All blocks of a source; of one without any an empty block, as private tables of no rows are
    treated like those of one."""
    block = None
    for block in source.blocks():
        yield block
    if block is not None:
        return
    layout, schema = source.layout, schema_of(source)
    labels: npt.NDArray[Any] | None = np.empty(0, np.int32)
    if layout.classes is None:
        labels = None if schema is not None and schema.target is None else np.empty(0)
    yield RowBlock(
        np.empty((layout.numbers, 0)),
        np.empty((len(layout.code_sizes), 0), np.uint8),
        labels,
        np.empty((len(layout.sensitive), 0), np.uint16),
        None,
        None if schema is None or schema.unit is None else np.empty(0, np.bytes_),
    )


@dataclass(frozen=True)
class Traits:
    """What a source tells of itself beside its rows. A source without `traits` has these.

    `is_mapped`: blocks are views of a file. `is_streamed`: they are read again at each pass.
    `is_sharded`: they are in other processes. `read_from_data`: public facts that were not stated
    but read from the rows. `require_same`: an error where a file has changed. `fingerprint`: what
    says that the rows are the same another time.
    """

    is_mapped: bool = False
    is_streamed: bool = False
    is_sharded: bool = False
    read_from_data: tuple[str, ...] = ()
    require_same: Callable[[], None] | None = None
    fingerprint: str | None = None


@runtime_checkable
class _Describing(Protocol):
    @property
    def traits(self) -> Traits: ...


def traits_of(source: object) -> Traits:
    """What a source tells of itself; nothing special where it tells nothing."""
    return source.traits if isinstance(source, _Describing) else Traits()
