"""How an estimator's tables become coded rows, and coefficients the units of the input again.
Fitted once, used at predict.

Three ways, each a frozen object of what is published with the model:
- `SchemaCoding`: by a schema alone (`data.Encoding`); nothing is read from the data;
- `TableCoding`: no schema; numbers as they come, words by the list of those that occurred at fit;
- `RowsCoding`: rows that somebody coded already.

Each may have `Shapes`, the steps of an additive model, and end with a `Standard`: numbers shifted
and scaled by training means and deviations, which no promise covers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import Floats, TableLike
from ...data import Encoding, encode
from ...data.coding import Place, category_codes
from ...errors import InputError, SchemaError
from ...facts import RowBlock, RowLayout, RowSource
from ...facts.columns import Category, Value
from ...facts.rows import CodedSource
from ...tables.frames import Table
from ...tables.grids import FeatureTable, grid_of, numbers_of
from ...tables.raw import Plain, Raw
from .shapes import Shapes
from .standard import Standard

BLOCK_ROWS = 1 << 18


@dataclass(frozen=True)
class Feature:
    """A column that is a feature: a number, or one of the listed words."""

    name: str
    values: tuple[Value, ...] | None = None


class Coding(ABC):
    """How X becomes blocks of coded rows. Abstract."""

    standard: Standard | None
    shapes: Shapes | None

    @property
    @abstractmethod
    def own_layout(self) -> RowLayout:
        """The public shape of the columns, without the steps of an additive model."""

    @property
    @abstractmethod
    def own_names(self) -> tuple[str, ...]:
        """One name a coefficient of these."""

    @abstractmethod
    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """Columns of X, before they are standardised, and without steps."""

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that are features; none where they have no names."""
        return ()

    @property
    def layout(self) -> RowLayout:
        """The public shape of features."""
        return self.own_layout if self.shapes is None else self.shapes.layout(self.own_layout)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a coefficient."""
        if self.shapes is None:
            return self.own_names
        along = {side.name for side in self.shapes.along}
        own = (f"{name}, along its edges" if name in along else name for name in self.own_names)
        return (*own, *self.shapes.names)

    def blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """Features of X as the model takes them."""
        return map(self.finished, coded_blocks(X, self.own_layout) or self.raw_blocks(X))

    def finished(self, block: RowBlock) -> RowBlock:
        """A run of rows with their steps, and standardised."""
        block = block if self.shapes is None else self.shapes.apply(block)
        return block if self.standard is None else self.standard.apply(block)

    def in_input_units(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients (outputs, width) and intercept (outputs,) for X as it was given. Those of
        steps have no unit, nor has that of a number without known bounds, which is of where it lies
        along its edges."""
        own = self.own_layout.width
        undone, intercept = self._undone(weights[:, :own], intercept)
        return np.concatenate([undone, weights[:, own:]], axis=1), intercept

    def _undone(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        return (
            (weights, intercept)
            if self.standard is None
            else self.standard.undone(weights, intercept)
        )


@dataclass(frozen=True)
class SchemaCoding(Coding):
    """By a schema alone."""

    encoding: Encoding
    standard: Standard | None = None
    shapes: Shapes | None = None

    @property
    def own_layout(self) -> RowLayout:
        return self.encoding.layout

    @property
    def own_names(self) -> tuple[str, ...]:
        return self.encoding.feature_names

    @property
    def columns_read(self) -> tuple[str, ...]:
        return self.encoding.features

    def blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """Features of X; coded rows must be of the same columns, not of the same shape alone."""
        if isinstance(X, CodedSource):
            own, given = (
                {name: one.schema.columns[name] for name in one.features}
                for one in (self.encoding, X.encoding)
            )
            if list(own.items()) != list(given.items()):
                remedy = "Code the rows by the schema of the fit."
                raise SchemaError.expected(
                    f"rows of the features {list(own)}, as at fit",
                    of="X",
                    got=f"rows of {list(given)}",
                    remedy=remedy,
                    quote=False,
                )
        return super().blocks(X)

    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        encoding = self.encoding
        rows = encode(
            X,
            encoding.schema,
            names=encoding.features,
            with_target=False,
            with_sensitive=False,
            sensitive_as_feature=encoding.sensitive_as_feature,
            block_rows=BLOCK_ROWS,
            precision=encoding.precision,
        )
        return rows.blocks()

    def _undone(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        return self.encoding.in_input_units(*Coding._undone(self, weights, intercept))


@dataclass(frozen=True)
class TableCoding(Coding):
    """Without a schema. `features` in the order of X; `columns`: all columns of X at fit, sensitive
    ones that are no features among them.

    Numbers come before words in coded rows, each kind in the order of X.
    """

    features: tuple[Feature, ...]
    columns: tuple[str, ...]
    standard: Standard | None = None
    shapes: Shapes | None = None

    @property
    def own_layout(self) -> RowLayout:
        sizes = tuple(
            len(feature.values) for feature in self.features if feature.values is not None
        )
        return RowLayout(len(self.features) - len(sizes), sizes)

    @property
    def own_names(self) -> tuple[str, ...]:
        numbers = (feature.name for feature in self.features if feature.values is None)
        return (
            *numbers,
            *(
                f"{feature.name}={value}"
                for feature in self.features
                for value in feature.values or ()
            ),
        )

    @property
    def columns_read(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        return self.grid_blocks(self._narrowed(grid_of(X)))

    def grid_blocks(self, grid: FeatureTable) -> Iterator[RowBlock]:
        """Blocks of the features of a grid that has all of them, under their names."""
        layout = self.own_layout
        if grid.matrix is not None and not layout.code_sizes:
            yield from _matrix_blocks(self._picked(grid), grid)
            return
        numbers = [feature for feature in self.features if feature.values is None]
        words = [feature for feature in self.features if feature.values is not None]
        single = bool(numbers) and all(_is_single(grid.column(one.name)) for one in numbers)
        kind = np.uint8 if max(layout.code_sizes, default=0) <= 1 << 8 else np.int32
        runs = [slice(a, min(grid.rows, a + BLOCK_ROWS)) for a in range(0, grid.rows, BLOCK_ROWS)]
        blocks = [
            RowBlock(
                np.empty(
                    (len(numbers), run.stop - run.start), np.float32 if single else np.float64
                ),
                np.empty((len(words), run.stop - run.start), kind),
            )
            for run in runs
        ]
        for j, feature in enumerate(numbers):  # a column at a time: no second copy of the table
            line = self._numbers(grid, feature.name)
            for run, block in zip(runs, blocks, strict=True):
                block.numbers[j] = line[run]
        for j, feature in enumerate(words):
            codes = _codes(grid, feature)
            for run, block in zip(runs, blocks, strict=True):
                block.codes[j] = codes[run]
        yield from blocks

    def _picked(self, grid: FeatureTable) -> Any:
        names = [feature.name for feature in self.features]
        if list(grid.names) == names:
            return grid.matrix
        return grid.matrix[:, [grid.names.index(name) for name in names]]

    def _numbers(self, grid: FeatureTable, name: str) -> npt.NDArray[Any]:
        found = numbers_of(grid.column(name), f"column {name!r}")
        if found is None:
            remedy = "Pass numbers where there were numbers at fit."
            raise InputError.expected("numbers", of=f"column {name!r}", got="words", remedy=remedy)
        return found

    def _narrowed(self, grid: FeatureTable) -> FeatureTable:
        """The grid with our names on its columns: by name where both have names, else by
        position."""
        wanted = [feature.name for feature in self.features]
        if grid.named and set(wanted) <= set(grid.names):
            return grid
        for names in (self.columns, tuple(wanted)):
            if len(grid.names) == len(names):
                return _renamed(grid, names)
        raise InputError.expected(
            f"{len(self.columns)} columns, as at fit",
            of="X",
            got=len(grid.names),
            remedy=f"Pass the columns {', '.join(wanted[:20])}.",
        )


@dataclass(frozen=True)
class RowsCoding(Coding):
    """Rows that were coded elsewhere: X is a source of rows, or, where all features are numbers, an
    array of them."""

    numbers: int
    code_sizes: tuple[int, ...] = ()
    standard: Standard | None = None
    shapes: Shapes | None = None

    @property
    def own_layout(self) -> RowLayout:
        return RowLayout(self.numbers, self.code_sizes)

    @property
    def own_names(self) -> tuple[str, ...]:
        codes = (
            f"code{j}={value}" for j, size in enumerate(self.code_sizes) for value in range(size)
        )
        return (*(f"x{j}" for j in range(self.numbers)), *codes)

    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        if self.code_sizes:
            remedy = "Pass a source of rows, or a RowBlock, coded like those of the fit."
            raise InputError.expected("coded rows", of="X", got=type(X).__name__, remedy=remedy)
        return TableCoding(tuple(map(Feature, self.own_names)), self.own_names).raw_blocks(X)


def coded_blocks(X: TableLike, layout: RowLayout) -> Iterator[RowBlock] | None:
    """The blocks of X where it is a source of coded rows or a block, checked against the shape of
    features; else None."""
    if isinstance(X, RowBlock):
        blocks: Iterator[RowBlock] = iter((X,))
    elif isinstance(X, RowSource):
        found, wanted = ((shape.numbers, tuple(shape.code_sizes)) for shape in (X.layout, layout))
        if found != wanted:
            remedy = "Code the rows as those of the fit were."
            raise InputError.expected(
                f"(numbers, sizes of codes) {wanted}", of="X", got=found, remedy=remedy
            )
        blocks = X.blocks()
    else:
        return None
    return blocks


def _codes(grid: FeatureTable, feature: Feature) -> npt.NDArray[np.int32]:
    """Codes of words by the list of the fit; others are an error that names them and the known
    ones."""
    assert feature.values is not None
    return category_codes(
        grid.column(feature.name), Category(feature.values), Place(feature.name, missing_values=())
    )


def _renamed(grid: FeatureTable, names: tuple[str, ...]) -> FeatureTable:
    if grid.table is None:
        return replace(grid, names=names, _seen={})
    return replace(
        grid,
        names=names,
        _seen={},
        table=_Renamed(grid.table, dict(zip(names, grid.table.names, strict=True))),
    )


class _Renamed:
    """A table under other names."""

    def __init__(self, table: Table, old: dict[str, str]) -> None:
        self._table = table
        self._old = old
        self.names = tuple(old)
        self.rows: int = table.rows

    def run(self, name: str, start: int, stop: int) -> Any:
        """Rows start to stop of one column."""
        return self._table.run(self._old[name], start, stop)


def _matrix_blocks(matrix: Floats | sparse.csr_array, grid: FeatureTable) -> Iterator[RowBlock]:
    for a in range(0, grid.rows, BLOCK_ROWS):
        part = matrix[a : a + BLOCK_ROWS]
        none = np.empty((0, part.shape[0]), np.uint8)
        yield RowBlock(
            sparse.csr_array(part) if grid.is_sparse else np.array(part.T, order="C"), none
        )


def _is_single(raw: Raw) -> bool:
    return isinstance(raw, Plain) and raw.values.dtype == np.float32
