"""The public shape of rows, rows as a source gives them, and groups as cells: which cell, or cells,
of a histogram a row falls in.

Guarantee: a row is in `per_row` cells of `count`, whatever its values; ids never wrap around.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from . import checks
from .errors import need

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RowLayout:
    """The public shape of coded rows: numbers first, then one block of indicator columns for each
    category column.

    `numbers`: how many numeric features. `code_sizes`: how many categories each coded feature has.
    `classes`: the labels in the order of their codes, or None when the target is a number.
    `sensitive`: the values of each sensitive column, in the order of their codes; `sensitive_names`
    their names. `sensitive_as_features`: the sensitive columns that are features, too: where one
    of them is protected, features are not public.
    """

    numbers: int
    code_sizes: tuple[int, ...] = ()
    classes: tuple[Hashable, ...] | None = None
    sensitive: tuple[tuple[Hashable, ...], ...] = ()
    sensitive_names: tuple[str, ...] = ()
    sensitive_as_features: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many coefficients a linear model of these rows has, without the intercept."""
        return self.numbers + sum(self.code_sizes)

    def cells(self, mode: Any = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of all sensitive columns, or of those named."""
        known = dict(zip(self.sensitive_names, self.sensitive, strict=True))
        asked = (*known,) if names is None else (names,) if isinstance(names, str) else (*names,)
        there, fix = known.keys() >= set(asked), "Give the sensitive columns to the rows first."
        need(there, f"names among {(*known,)}", of="sensitive columns", got=asked, fix=fix)
        return Cells(tuple(known[name] for name in asked), mode, asked)


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

    @property
    def lines(self) -> tuple[npt.NDArray[Any] | None, ...]:
        """All but the numbers, in their order."""
        return self.codes, self.labels, self.sensitive, self.weights, self.persons

    def at(self, places: Any) -> RowBlock:
        """The rows at these places (a slice, or numbers), copied. Those that stand person by person
        do so still."""

        def of(line: Any) -> Any:
            if line is None or not isinstance(places, slice):
                # A gather keeps the order of stored values in a row, so a sum has the same bits.
                return None if line is None else line.take(places, axis=-1)
            return np.array(line[..., places], order="C")

        numbers = self.numbers[places] if hasattr(self.numbers, "indptr") else of(self.numbers)
        rest: Any
        *rest, whose = map(of, self.lines)
        if whose is not None and whose.dtype == PERSON_BY_PERSON and self.persons is not None:
            number = np.cumsum(self.persons["begins"])[places]
            whose["begins"] = np.r_[True, number[1:] != number[:-1]][: len(whose)]
        codes, labels, sensitive, weights = rest
        return RowBlock(numbers, codes, labels, sensitive, weights, whose)

    @staticmethod
    def joined(blocks: Sequence[RowBlock]) -> RowBlock:
        """All rows of some blocks as one; numbers are sparse where those of any block are."""
        if len(blocks) == 1:
            return blocks[0]
        numbers: Any = [block.numbers for block in blocks]
        if any(hasattr(one, "indptr") for one in numbers):
            from scipy.sparse import csr_array, vstack

            csr = [one if hasattr(one, "indptr") else csr_array(one.T) for one in numbers]
            numbers = vstack(csr, format="csr")
        else:
            numbers = np.concatenate(numbers, axis=1)
        lines = zip(*(block.lines for block in blocks), strict=True)
        found: Any = [None if one[0] is None else np.concatenate(one, axis=-1) for one in lines]
        return RowBlock(numbers, *found)


@runtime_checkable
class RowSource(Protocol):
    """Anything that can be read again and again, block by block: a table in memory, files on disk,
    a part that lies elsewhere."""

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        ...

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, once, in any fixed order; a new iterator each time."""
        ...


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


def traits_of(source: object) -> Traits:
    """What a source tells of itself; nothing special where it tells nothing."""
    told = getattr(source, "traits", None)
    return told if isinstance(told, Traits) else Traits()


def held_blocks(source: RowSource) -> Iterator[RowBlock]:
    """All blocks of a source; of one without any an empty block, as private tables of no rows are
    treated like those of one."""
    block = None
    for block in source.blocks():
        yield block
    if block is not None:
        return
    layout = source.layout
    schema = getattr(getattr(source, "encoding", None), "schema", None)  # of coded rows
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


def row_major(
    block: RowBlock, code_sizes: Sequence[int], rows: slice = slice(None), kind: Any = np.float32
) -> npt.NDArray[Any]:
    """Rows written out, (rows, width): numbers, then the one-hot of each coded feature. A number
    beyond the kind is infinite."""
    codes, sparse = block.codes[:, rows], hasattr(block.numbers, "indptr")
    numbers = block.numbers.shape[1] if sparse else block.numbers.shape[0]
    out = np.zeros((codes.shape[1], numbers + sum(code_sizes)), kind)
    with np.errstate(over="ignore"):
        out[:, :numbers] = block.numbers[rows].toarray() if sparse else block.numbers[:, rows].T
    first, at = numbers, np.arange(len(out))
    for line, size in zip(codes, code_sizes, strict=True):
        out[at, first + line.astype(np.intp)] = 1.0  # a narrow code plus an offset would wrap
        first += size
    return out


GroupMode = Literal["product", "marginal"]
"""One cell for each combination of sensitive values, or one for each value of each column."""

GROUP_MODES: tuple[GroupMode, ...] = ("product", "marginal")
"""The modes of groups."""

MOST_VALUES = 1 << 16
"""Values of one sensitive column at most: its codes are 16 bits wide."""


@dataclass(frozen=True)
class Cells:
    """The groups that one or several sensitive columns make. Holds public values only, in the order
    given.

    `"product"`: one cell for each combination of values; a row is in one. `"marginal"`: one cell
    for each value of each column; a row is in one cell a column.

    >>> Cells((("f", "m"), ("x", "y", "z"))).count
    6
    >>> Cells((("f", "m"), ("x", "y", "z")), mode="marginal").count
    5
    >>> Cells((("f", "m"),)).keys
    ('f', 'm')
    """

    columns: tuple[tuple[Hashable, ...], ...]
    mode: GroupMode = "product"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = tuple(tuple(column) for column in self.columns)
        distinct = all(column and len(set(column)) == len(column) for column in columns)
        expected = "at least one column, each a non-empty list of distinct values"
        fix = 'Pass Cells((("f", "m"),)), for example.'
        need(columns and distinct, expected, of="groups", got=self.columns, fix=fix)
        most, expected = max(map(len, columns)), f"at most {MOST_VALUES:,} values a column"
        fix = "Merge values that are rare; make ranges of a number first."
        need(most <= MOST_VALUES, expected, of="groups", got=f"a column of {most:,}", fix=fix)
        checks.normalise(self, columns=columns)
        checks.one_of(GROUP_MODES, groups=self.mode)
        if not self.names:
            checks.normalise(self, names=tuple(f"sensitive_{j}" for j in range(len(columns))))
        named = len(self.names) == len(set(self.names)) == len(columns)
        expected, fix = f"{len(columns)} distinct names", "Name each sensitive column once."
        need(named, expected, of="names", got=self.names, fix=fix)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(len(column) for column in self.columns)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.sizes) if self.mode == "product" else sum(self.sizes)

    @property
    def per_row(self) -> int:
        """How many cells one row is in."""
        return 1 if self.mode == "product" else len(self.columns)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """One key a cell: the value, a tuple of values (product of several), or (name, value)
        (marginal of several)."""
        if len(self.columns) == 1:
            return self.columns[0]
        if self.mode == "product":
            return tuple(itertools.product(*self.columns))
        named = zip(self.names, self.columns, strict=True)
        return tuple((name, value) for name, column in named for value in column)

    def ids(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Cell ids, shape (per_row, rows), from the codes of the sensitive columns, shape (columns,
        rows).

        32 bits wide where all ids fit, else 64: products of sizes are never wrapped.
        """
        right, expected = codes.ndim == 2, f"codes of shape ({len(self.columns)}, rows)"
        right = right and codes.shape[0] == len(self.columns)
        fix = "Give one line of codes a sensitive column."
        need(right, expected, of="sensitive codes", got=codes.shape, fix=fix)
        fix = "Make fewer groups: merge values that are rare, or ask for groups='marginal'."
        few = self.count <= 1 << 63
        need(few, "at most 2^63 cells", of="groups", got=self.count, fix=fix)
        # An id is below the count, so that products of sizes never wrap around.
        kind: Any = np.int32 if self.count <= 1 << 31 else np.int64
        if self.mode == "product":
            ids = np.zeros(codes.shape[1], dtype=kind)
            # Mixed radix: the last column changes fastest, as in `keys`.
            for size, line in zip(self.sizes, codes, strict=True):
                ids *= kind(size)
                ids += line.astype(kind)
            return ids[np.newaxis, :]
        offsets = np.cumsum((0, *self.sizes[:-1]), dtype=kind)
        return np.asarray(codes.astype(kind) + offsets[:, np.newaxis])

    def encode(self, values: list[npt.NDArray[np.object_]]) -> npt.NDArray[np.uint16]:
        """Codes of shape (columns, rows) from raw values; a value that is not listed is an error
        that names it."""
        lines, fix = [], "List every group (a code for missing ones too) in the schema."
        for name, column, line in zip(self.names, self.columns, values, strict=True):
            code_of, given = {value: code for code, value in enumerate(column)}, line.tolist()
            unknown = sorted({value for value in given if value not in code_of}, key=repr)[:5]
            of, words = f"sensitive column {name!r}", f"one of {list(column)}"
            need(not unknown, words, of=of, got=unknown, fix=fix)
            lines.append(np.fromiter((code_of[value] for value in given), np.uint16, len(line)))
        return np.stack(lines)


def lines_of(cells: Cells, layout: RowLayout) -> list[int]:
    """Which sensitive columns of the layout the cells are made of; an error when they are not made
    of them."""
    known = dict(zip(layout.sensitive_names, layout.sensitive, strict=True))
    fix = "Make the cells with Rows.cells(), from the layout of the rows that are asked about."
    for name, values in zip(cells.names, cells.columns, strict=True):
        there = known.get(name) == values
        need(there, f"sensitive columns of {known}", of="cells", got={name: values}, fix=fix)
    return [layout.sensitive_names.index(name) for name in cells.names]


def partition_of(cells: Cells, layout: RowLayout) -> int:
    """The number of the partition that cells make of people, from the columns that they are of.

    Releases over one partition add up by person, and several partitions' worst cells add up
    (`PerCell`): which is which must not be the asker's to say. A column has its place, all columns
    in their order have 0, and every other list of columns, another order too, a number of its own.
    """
    lines, count = lines_of(cells, layout), len(layout.sensitive)
    if len(lines) == 1:
        return lines[0]
    if lines == list(range(count)):
        return 0
    return count + sum((line + 1) * int((count + 1) ** at) for at, line in enumerate(lines))
