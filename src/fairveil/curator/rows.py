"""The rows that a curator holds: blocks of numbers and category codes, ready for the kernels. Nothing here leaves the room.

Checks on rows (finite numbers, weights in range, known labels) are made when the rows are taken in: before any release, and
seen by the data holder only. A streamed source is checked again at each pass, and must give the same rows each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError, complaint
from ..facts import Cells, RowBlock, RowLayout, RowSource

BLOCK_ROWS = 1 << 18
MOST_ROWS = 1 << 33  # sums of contributions below 2^30 grid units stay exact in 64-bit integers; public, fixed

_EMPTY_INT = np.empty(0, np.int32)
_EMPTY_FLOAT = np.empty(0, np.float64)


@dataclass(repr=False)  # a printed block would show rows
class Block:
    """One block as the kernels take it; `numbers` is (columns, rows), or (1, stored values) beside `indptr` and `indices`."""

    layout: RowLayout
    rows: int
    numbers: npt.NDArray[Any]
    indptr: npt.NDArray[np.integer]
    indices: npt.NDArray[np.integer]
    codes: npt.NDArray[np.integer]
    labels: npt.NDArray[Any]
    sensitive: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float64]
    number: int = 0  # which block of the source this is
    chosen: npt.NDArray[np.integer] | None = None  # which of that block's rows these are; None: all
    _cells: dict[Cells, npt.NDArray[np.integer]] = field(default_factory=dict)

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array."""
        return len(self.indptr) > 0

    def cells(self, cells: Cells | None) -> npt.NDArray[np.integer]:
        """Cell ids, (cells a row, rows); one cell for all when `cells` is None."""
        if cells is None:
            return np.zeros((1, self.rows), np.uint8)
        if cells not in self._cells:
            lines = [self._line(name, values) for name, values in zip(cells.names, cells.columns, strict=True)]
            if len(lines) == 1:
                self._cells[cells] = self.sensitive[lines[0] : lines[0] + 1]
            else:
                ids = cells.ids(self.sensitive[lines])
                self._cells[cells] = ids.astype(np.uint16) if cells.count < 1 << 16 else ids
        return self._cells[cells]

    def _line(self, name: str, values: tuple[Hashable, ...]) -> int:
        names = self.layout.sensitive_names
        if name not in names or self.layout.sensitive[names.index(name)] != values:
            raise InputError(
                complaint(
                    expected=f"sensitive columns of {dict(zip(names, self.layout.sensitive, strict=True))}",
                    of="cells",
                    got={name: values},
                    remedy="Make the cells with Rows.cells(), from the layout of the rows that are asked about.",
                )
            )
        return names.index(name)

    def take(self, index: npt.NDArray[np.integer]) -> Block:
        """The rows at `index`, as a block of their own."""
        indptr, indices, numbers = self.indptr, self.indices, self.numbers
        if self.is_sparse:
            import scipy.sparse

            csr = scipy.sparse.csr_array((numbers[0], indices, indptr), shape=(self.rows, self.layout.numbers))[index]
            numbers, indptr, indices = csr.data[np.newaxis, :], csr.indptr, csr.indices
        else:
            numbers = numbers.take(index, axis=1)
        return Block(
            self.layout,
            len(index),
            numbers,
            indptr,
            indices,
            self.codes.take(index, axis=1),
            self.labels.take(index) if len(self.labels) else self.labels,
            self.sensitive.take(index, axis=1),
            self.weights.take(index) if len(self.weights) else self.weights,
            self.number,
            index if self.chosen is None else self.chosen[index],
            {cells: ids.take(index, axis=1) for cells, ids in self._cells.items()},
        )


class Rows:
    """All rows of a source, in memory or streamed from it at every pass.

    `Rows(source)` keeps the source's blocks (without copying where they already fit); `Rows(source, in_memory=False)` reads
    them again at each pass, in bounded memory. `Rows.from_arrays` takes plain arrays.
    """

    def __init__(self, source: RowSource, *, in_memory: bool = True, max_sample_weight: float = 1.0) -> None:
        self.layout = source.layout
        self.max_sample_weight = _checks.positive(max_sample_weight=max_sample_weight, allow_inf=True)
        self._source = source
        self._offsets = _offsets(self.layout)
        self._kept: list[Block] | None = [] if in_memory else None
        self._starts = [0]
        self.weighted = False
        self.labelled = True
        for number, raw in enumerate(source.blocks()):
            block = self._prepare(raw, number)
            self._starts.append(self._starts[-1] + block.rows)
            self.weighted = self.weighted or len(block.weights) > 0
            self.labelled = self.labelled and len(block.labels) == block.rows
            if self._kept is not None:
                self._kept.append(block)
        if self._starts[-1] > MOST_ROWS:
            raise InputError(
                complaint(
                    expected=f"at most {MOST_ROWS} rows",
                    of="rows",
                    got="more",
                    remedy="Sums are exact up to there; split the table over several curators.",
                )
            )

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any = None,
        sensitive: Sequence[Any] = (),
        *,
        codes: Any = None,
        code_sizes: Sequence[int] = (),
        classes: Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        sensitive_names: Sequence[str] = (),
        regression: bool = False,
        sample_weight: Any = None,
        max_sample_weight: float = 1.0,
    ) -> Rows:
        """Rows from arrays: X (rows, numbers) dense or sparse, y labels (or targets), one array a sensitive column.

        Classes and groups that are not given are read from the data, and `read_from_data` says so.
        """
        table = _Table(X, y, sensitive, codes, code_sizes, classes, groups, sensitive_names, regression, sample_weight)
        rows = cls(table, max_sample_weight=max_sample_weight)
        rows._source = table
        return rows

    @property
    def read_from_data(self) -> tuple[str, ...]:
        """Public facts that were not stated but read from the rows ("classes", "groups"): not covered by any promise."""
        return tuple(getattr(self._source, "read_from_data", ()))

    @property
    def exact_count(self) -> int:
        """How many rows there are: the curator's to know, and under add-remove nobody else's."""
        return self._starts[-1]

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each coded feature's coefficients begin, after the intercept and the numbers."""
        return self._offsets

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of all sensitive columns, or of those named."""
        names = tuple(self.layout.sensitive_names if names is None else names)
        try:
            columns = tuple(self.layout.sensitive[self.layout.sensitive_names.index(name)] for name in names)
        except ValueError:
            raise InputError(
                complaint(
                    expected=f"names among {self.layout.sensitive_names}",
                    of="sensitive columns",
                    got=names,
                    remedy="Give the sensitive columns to the rows first.",
                )
            ) from None
        return Cells(columns, mode, names)  # type: ignore[arg-type]  # Cells checks the mode

    def blocks(self) -> Iterator[Block]:
        """All blocks, once."""
        if self._kept is not None:
            yield from self._kept
        else:
            for number, raw in enumerate(self._source.blocks()):
                yield self._prepare(raw, number)

    def batch(self, index: npt.NDArray[np.integer]) -> Iterator[Block]:
        """The rows at the sorted positions `index`."""
        if len(self._starts) == 2 and self._kept is not None:
            yield self._kept[0].take(index)
            return
        cuts = np.searchsorted(index, self._starts)
        for block, start, a, b in zip(self.blocks(), self._starts[:-1], cuts[:-1], cuts[1:], strict=True):
            if b > a:
                yield block.take(index[a:b] - start)

    def _prepare(self, raw: RowBlock, number: int) -> Block:
        layout = self.layout
        numbers, indptr, indices = raw.numbers, _EMPTY_INT, _EMPTY_INT
        if hasattr(numbers, "indptr"):
            numbers, indptr, indices = raw.numbers.data[np.newaxis, :], raw.numbers.indptr, raw.numbers.indices
        n = raw.rows
        block = Block(
            layout,
            n,
            numbers,
            indptr,
            indices,
            raw.codes,
            np.empty(0, np.int32) if raw.labels is None else raw.labels,
            np.empty((0, n), np.uint16) if raw.sensitive is None else raw.sensitive,
            _EMPTY_FLOAT if raw.weights is None else np.minimum(raw.weights, self.max_sample_weight),
            number,
        )
        _check_block(block, raw)  # at every pass over a stream: the kernels must never meet a code out of range
        return block


class _Table:
    """Arrays in memory as a `RowSource`."""

    def __init__(
        self,
        X: Any,
        y: Any,
        sensitive: Sequence[Any],
        codes: Any,
        code_sizes: Sequence[int],
        classes: Sequence[Hashable] | None,
        groups: Sequence[Sequence[Hashable]] | None,
        sensitive_names: Sequence[str],
        regression: bool,
        sample_weight: Any,
    ) -> None:
        import scipy.sparse

        self.read_from_data: list[str] = []
        self._sparse = scipy.sparse.issparse(X)
        self._X = scipy.sparse.csr_array(X) if self._sparse else _as_numbers(X)
        n = int(self._X.shape[0])
        self._codes = np.empty((0, n), np.uint8) if codes is None else np.ascontiguousarray(np.asarray(codes).T)
        self._labels, known = self._encode_labels(y, classes, regression)
        columns = [np.asarray(column, dtype=object) for column in sensitive]
        if groups is None:
            groups = [_distinct(column) for column in columns]
            if columns:
                self.read_from_data.append("groups")
        names = tuple(sensitive_names) or tuple(f"sensitive_{j}" for j in range(len(columns)))
        self._sensitive = (
            Cells(tuple(map(tuple, groups)), names=names).encode(columns) if columns else np.empty((0, n), np.uint16)
        )
        self._weights = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        for name, length in (
            ("y", None if self._labels is None else len(self._labels)),
            ("sensitive_features", self._sensitive.shape[1]),
            ("codes", self._codes.shape[1]),
            ("sample_weight", None if self._weights is None else len(self._weights)),
        ):
            if length is not None and length != n:
                raise InputError(
                    complaint(expected=f"{n} entries, as many as X has rows", of=name, got=length, remedy="Align them.")
                )
        self.layout = RowLayout(int(self._X.shape[1]), tuple(code_sizes), known, tuple(map(tuple, groups)), names)

    def _encode_labels(
        self, y: Any, classes: Sequence[Hashable] | None, regression: bool
    ) -> tuple[npt.NDArray[Any] | None, tuple[Hashable, ...] | None]:
        if y is None:
            return None, None if classes is None else tuple(classes)
        if regression:
            return np.asarray(y, np.float64), None
        labels = np.asarray(y)
        if classes is None:
            classes = _distinct(labels)
            self.read_from_data.append("classes")
        code_of = {label: code for code, label in enumerate(classes)}
        try:
            coded = np.fromiter((code_of[label] for label in labels.tolist()), np.int32, len(labels))
        except KeyError as unknown:
            raise InputError(
                complaint(
                    expected=f"one of {list(classes)}",
                    of="label",
                    got=unknown.args[0],
                    remedy="List every class in classes= or in the schema.",
                )
            ) from None
        return coded, tuple(classes)

    def blocks(self) -> Iterator[RowBlock]:
        """Runs of BLOCK_ROWS rows."""
        n = int(self._X.shape[0])
        for a in range(0, n, BLOCK_ROWS):
            b = min(n, a + BLOCK_ROWS)
            yield RowBlock(
                self._X[a:b] if self._sparse else np.ascontiguousarray(self._X[a:b].T),
                np.ascontiguousarray(self._codes[:, a:b]),
                None if self._labels is None else self._labels[a:b],
                np.ascontiguousarray(self._sensitive[:, a:b]),
                None if self._weights is None else self._weights[a:b],
            )


def _as_numbers(X: Any) -> npt.NDArray[Any]:
    numbers = np.asarray(X)
    if numbers.dtype not in (np.float32, np.float64):
        try:
            numbers = numbers.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError(
                complaint(
                    expected="numbers",
                    of="X",
                    got=f"values of type {numbers.dtype}",
                    remedy="Encode words with a schema (fairveil.data.encode), or pass them as codes.",
                )
            ) from None
    if numbers.ndim != 2:
        raise InputError(
            complaint(expected="a table of shape (rows, numbers)", of="X", got=f"shape {numbers.shape}", remedy="Reshape X.")
        )
    return numbers


def _distinct(values: npt.NDArray[Any]) -> tuple[Hashable, ...]:
    found = set(values.tolist())
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=repr))


def _offsets(layout: RowLayout) -> npt.NDArray[np.int64]:
    starts = np.cumsum((0, *layout.code_sizes), dtype=np.int64)[:-1]
    return 1 + layout.numbers + starts


def _check_block(block: Block, raw: RowBlock) -> None:
    """What the kernels rely on. Seen by the data holder only: nothing has been released yet."""
    layout = block.layout
    for name, bad, remedy in (
        ("numbers", not np.isfinite(block.numbers).all(), "Declare a code for missing values in the schema, or fill them in."),
        ("weights", not (np.isfinite(block.weights).all() and (block.weights >= 0).all()), "Weights are at least 0."),
        ("labels", layout.classes is None and not np.isfinite(block.labels).all(), "Targets are finite numbers."),
    ):
        if bad:
            raise InputError(complaint(expected="finite values", of=name, got="NaN, infinite or negative", remedy=remedy))
    for name, values, size in (
        ("labels", block.labels if layout.classes is not None else _EMPTY_INT, len(layout.classes or ())),
        *((f"codes[{j}]", block.codes[j], size) for j, size in enumerate(layout.code_sizes)),
        *((f"sensitive[{j}]", block.sensitive[j], len(v)) for j, v in enumerate(layout.sensitive) if len(block.sensitive)),
    ):
        if len(values) and not (int(values.min()) >= 0 and int(values.max()) < size):
            raise InputError(
                complaint(
                    expected=f"codes from 0 to {size - 1}",
                    of=name,
                    got=f"{values.min()} to {values.max()}",
                    remedy="Encode with the schema that the layout was made from.",
                )
            )
    for name, found, wanted in (
        ("coded features", len(block.codes), len(layout.code_sizes)),
        ("sensitive columns", 0 if raw.sensitive is None else len(block.sensitive), len(layout.sensitive)),
    ):
        if found != wanted:
            remedy = "Give one line of codes for each column that the layout states."
            raise InputError(complaint(expected=f"{wanted} {name}", of="block", got=found, remedy=remedy))
    found, length = raw.numbers.shape[::-1] if block.is_sparse else raw.numbers.shape
    lengths = (length, block.sensitive.shape[1])
    if (
        found != layout.numbers
        or any(n != block.rows for n in lengths)
        or any(len(v) not in (0, block.rows) for v in (block.labels, block.weights))
    ):
        raise InputError(
            complaint(
                expected=f"{layout.numbers} numbers and {block.rows} rows throughout",
                of="block",
                got=f"{found} numbers",
                remedy="Make blocks of the shape that the layout states.",
            )
        )
