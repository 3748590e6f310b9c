"""How a table becomes coded rows, as a fit publishes it and a prediction uses it, and coefficients
the units of the input again.

A coding is public: by a schema (`SchemaCoding`, nothing is read from the data), of a table as it
came (`TableCoding`: numbers as they are, words by those that occurred at fit), or of rows that
somebody coded already (`RowsCoding`). Each may have `Shapes`, the steps of an additive model, and
end with a `Standard`, a scale read from the rows, which no promise covers.

    score(x) = b + sum_j ( w_j x_j + f_j(x_j) ) + sum_{j, k} f_{jk}(x_j, x_k),    f_j and f_{jk} constant between public edges

A step is a category like any other: rows stay codes, and whoever asks about them asks as before.
Edges are public always: declared (`Number(low, high, edges=...)`), or made from declared bounds,
or, where no bounds are known, the same for every column. Why none are released:
docs/additive_models.md.

Guarantees (tests/estimators/test_shapes.py):
1. A row's codes depend on that row and public edges, on nothing else.
2. Codes are added: numbers, and the codes that were there, keep their places, and numbers with
   known bounds their values.
3. A number whose bounds are not known is replaced by one in [-1, 1].
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import isotonic_regression

from .. import _checks
from .._codec import Codec, Kind
from .._json import Node
from .._types import Floats, TableLike
from ..core.errors import need
from ..data import Encoding, encode
from ..data.coding import Place, category_codes
from ..data.encoding import Affine
from ..errors import NoSteps, SchemaError
from ..facts import Cells, RowBlock, RowLayout, RowSource
from ..facts.columns import Category, Value
from ..facts.rows import CodedSource
from ..models.model import Predictor
from ..tables.columns import Plain, Raw
from ..tables.frames import Table, grid_of, numbers_of

BLOCK_ROWS = 1 << 18
Known = tuple[str, Affine | None, tuple[float, ...] | None]
"""A number: its name, and its scale and declared edges where they are known."""
Listed = tuple[str, tuple[Value, ...]]


# ------------------------------ scales and steps


@dataclass(frozen=True)
class Standard:
    """z = (x - mean) / deviation for each number, both read from the training rows: what the papers
    do, and unsafe."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    @staticmethod
    def of(blocks: Iterable[RowBlock], numbers: int) -> Standard:
        """The means and deviations of coded rows. Sparse numbers keep their zeros: they are not
        shifted."""
        rows = max(1, sum(block.rows for block in blocks))

        def mean(of: Callable[[Any], Any]) -> Floats:
            total = np.zeros(numbers)
            for block in blocks:
                total += of(block.numbers)
            return total / rows

        def squared(X: Any) -> Any:
            exact = X.astype(np.float64)
            return np.asarray(exact.multiply(exact).sum(axis=0)).ravel()

        with np.errstate(over="ignore", invalid="ignore"):
            if any(sparse.issparse(block.numbers) for block in blocks):
                means = np.zeros(numbers)
                firsts = mean(lambda X: np.asarray(X.sum(axis=0), np.float64).ravel())
                deviations = np.sqrt(np.maximum(mean(squared) - firsts**2, 0.0))
            else:
                means = mean(lambda X: X.astype(np.float64).sum(axis=1))
                centre = means[:, np.newaxis]
                centred = mean(lambda X: ((X.astype(np.float64) - centre) ** 2).sum(axis=1))
                deviations = np.sqrt(centred)
        finite = bool(np.isfinite(means).all() and np.isfinite(deviations).all())
        fix = "Scale those columns before, or declare their bounds in a schema."
        need(finite, "numbers whose squares are finite", of="X", got="some that overflow", fix=fix)
        deviations[~(deviations > 0)] = 1.0
        return Standard(tuple(means.tolist()), tuple(deviations.tolist()))

    def apply(self, block: RowBlock) -> RowBlock:
        """The same rows, standardised."""
        numbers: Any = block.numbers
        if sparse.issparse(block.numbers):
            data = numbers.data / np.asarray(self.deviations)[numbers.indices]
            of = (data, numbers.indices, numbers.indptr)
            return replace(block, numbers=sparse.csr_array(of, shape=numbers.shape))
        means, deviations = (
            np.asarray(line)[:, np.newaxis] for line in (self.means, self.deviations)
        )
        scaled = np.ascontiguousarray((numbers - means) / deviations)
        return replace(block, numbers=scaled.astype(numbers.dtype, copy=False))

    def undone(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients for numbers as they were: w (x - m) / s + b = (w / s) x + (b - w m / s)."""
        out, count = np.array(weights), len(self.means)
        out[:, :count] /= np.asarray(self.deviations)
        return out, intercept - out[:, :count] @ np.asarray(self.means)


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

    def positions(self, block: RowBlock) -> npt.NDArray[np.integer]:
        """Of each row."""
        if self.values:
            return np.asarray(block.codes[self.place])
        numbers = np.asarray(block.numbers[self.place], np.float64)
        return np.searchsorted(self.edges, numbers, side="right")

    def placed(self, numbers: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
        """Where numbers lie along the edges: linear between two of them, -1 and 1 beyond the
        outermost.

        >>> Side("income", 0, (0.0, 1.0, 10.0), (0.0, 1.0, 10.0)).placed(
        ...     np.array([-5.0, 0.5, 10.0, 1e9])
        ... ).tolist()
        [-1.0, -0.5, 1.0, 1.0]
        """
        ends = np.linspace(-1.0, 1.0, len(self.edges))
        return np.interp(np.asarray(numbers, np.float64), self.edges, ends)

    @property
    def middles(self) -> Floats:
        """Where the line is in the middle of each position."""
        between = np.linspace(-1.0, 1.0, len(self.edges)) if self.along else self.edges
        ends = np.array([-1.0, *between, 1.0])
        return np.asarray((ends[:-1] + ends[1:]) / 2.0)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """One a position.

        >>> Side("age", 0, (-0.5, 0.5), (18.0, 65.0)).words
        ('below 18', '18 to 65', 'from 65')
        """
        marks = [f"{mark:.6g}" for mark in self.marks]
        if self.values or not marks:
            return self.values or ("any",)
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
        crossed = (one.size * other.size for one, other in self.pairs)
        return (*(side.size for side in self.steps), *crossed)

    @property
    def names(self) -> tuple[str, ...]:
        """One a coefficient that is added."""
        names = [f"{side.name}: {words}" for side in self.steps for words in side.words]
        for one, other in self.pairs:
            both = ((words, others) for words in one.words for others in other.words)
            names += [f"{one.name}: {words}, {other.name}: {others}" for words, others in both]
        return tuple(names)

    @property
    def along(self) -> tuple[Side, ...]:
        """The sides whose numbers are replaced."""
        return tuple(side for side in self.steps if side.along)

    def layout(self, before: RowLayout) -> RowLayout:
        """The shape of rows that have the codes."""
        return replace(before, code_sizes=(*before.code_sizes, *self.sizes))

    def apply(self, block: RowBlock) -> RowBlock:
        """The same rows with the codes; guarantees 1 and 2."""
        kinds = (np.uint8 if size <= 1 << 8 else np.uint16 for size in self.sizes)
        kind = np.result_type(block.codes.dtype, *kinds)
        own, shape = len(block.codes), (len(block.codes) + len(self.sizes), block.rows)
        codes = np.empty(shape, kind if kind.itemsize <= 2 else np.int32)
        codes[:own] = block.codes
        lines = iter(codes[own:])
        for side in self.steps:
            next(lines)[:] = side.positions(block)
        for one, other in self.pairs:
            next(lines)[:] = one.positions(block).astype(np.int64) * other.size + other.positions(
                block
            )
        numbers: Any = np.array(block.numbers) if self.along else block.numbers
        for side in self.along:
            numbers[side.place] = side.placed(block.numbers[side.place])
        return replace(block, codes=codes, numbers=numbers)


# ------------------------------ codings


class Coding(ABC):
    """How X becomes blocks of coded rows. Abstract."""

    standard: Standard | None
    shapes: Shapes | None

    @property
    @abstractmethod
    def numbers_known(self) -> tuple[Known, ...]:
        """The numbers, in the order of coded rows."""

    @property
    @abstractmethod
    def words_known(self) -> tuple[Listed, ...]:
        """The columns of listed values, in the order of their codes."""

    @abstractmethod
    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """Columns of X, before they are standardised, and without steps."""

    @property
    def own_layout(self) -> RowLayout:
        """The public shape of the columns, without the steps of an additive model."""
        return RowLayout(
            len(self.numbers_known), tuple(len(values) for _, values in self.words_known)
        )

    @property
    def names_coded(self) -> tuple[str, ...]:
        """The features by name, in the order of coded rows."""
        return (*(one[0] for one in self.numbers_known), *(one[0] for one in self.words_known))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns that are features, as the table has them; none where they have no names."""
        return ()

    @property
    def layout(self) -> RowLayout:
        """The public shape of features."""
        return self.own_layout if self.shapes is None else self.shapes.layout(self.own_layout)

    @property
    def own_names(self) -> tuple[str, ...]:
        """One name a coefficient, without steps: numbers, then "column=value"."""
        words = (f"{name}={value}" for name, values in self.words_known for value in values)
        return (*(name for name, *_ in self.numbers_known), *words)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One name a coefficient."""
        if self.shapes is None:
            return self.own_names
        along = {side.name for side in self.shapes.along}
        own = (f"{name}, along its edges" if name in along else name for name in self.own_names)
        return (*own, *self.shapes.names)

    def blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """Features of X as the model takes them: of a table, or of coded rows of the same shape."""
        if isinstance(X, RowBlock):
            return map(self.finished, (X,))
        if not isinstance(X, RowSource):
            return map(self.finished, self.raw_blocks(X))
        found, own = ((one.numbers, tuple(one.code_sizes)) for one in (X.layout, self.own_layout))
        fix = "Code the rows as those of the fit were."
        need(found == own, f"(numbers, sizes of codes) {own}", of="X", got=found, fix=fix)
        return map(self.finished, X.blocks())

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
        if self.standard is None:
            return weights, intercept
        return self.standard.undone(weights, intercept)


@dataclass(frozen=True)
class SchemaCoding(Coding):
    """By a schema alone."""

    encoding: Encoding
    standard: Standard | None = None
    shapes: Shapes | None = None

    @property
    def numbers_known(self) -> tuple[Known, ...]:
        declared: Any = self.encoding.schema.columns
        return tuple((one.name, one, declared[one.name].edges) for one in self.encoding.numbers)

    @property
    def words_known(self) -> tuple[Listed, ...]:
        return tuple((name, self.encoding.schema.listed(name)) for name in self.encoding.coded)

    @property
    def own_layout(self) -> RowLayout:
        return self.encoding.layout

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
            same, got = list(own.items()) == list(given.items()), f"rows of {list(given)}"
            expected = f"rows of the features {list(own)}, as at fit"
            fix = "Code the rows by the schema of the fit."
            need(same, expected, of="X", got=got, fix=fix, error=SchemaError, quote=False)
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
class Feature:
    """A column that is a feature: a number, or one of the listed words."""

    name: str
    values: tuple[Value, ...] | None = None


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
    def numbers_known(self) -> tuple[Known, ...]:
        return tuple((one.name, None, None) for one in self.features if one.values is None)

    @property
    def words_known(self) -> tuple[Listed, ...]:
        return tuple((one.name, one.values) for one in self.features if one.values is not None)

    @property
    def columns_read(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        """By name where both have names, else by position."""
        grid, wanted = grid_of(X), self.columns_read
        if not (grid.named and set(wanted) <= set(grid.names)):
            fits = [names for names in (self.columns, wanted) if len(names) == len(grid.names)]
            fix, got = f"Pass the columns {', '.join(wanted[:20])}.", len(grid.names)
            need(bool(fits), f"{len(self.columns)} columns, as at fit", of="X", got=got, fix=fix)
            grid = grid.renamed(fits[0])
        return self.grid_blocks(grid)

    def grid_blocks(self, grid: Table) -> Iterator[RowBlock]:
        """Blocks of the features of a grid that has all of them, under their names."""
        numbers, words = self.numbers_known, self.words_known
        runs = [slice(a, min(grid.rows, a + BLOCK_ROWS)) for a in range(0, grid.rows, BLOCK_ROWS)]
        if grid.matrix is not None and not words:
            at = [grid.names.index(name) for name in self.columns_read]
            matrix = grid.matrix if at == list(range(len(grid.names))) else grid.matrix[:, at]
            for run in runs:
                none = np.empty((0, run.stop - run.start), np.uint8)
                part: Any = matrix[run]
                yield RowBlock(
                    sparse.csr_array(part) if grid.is_sparse else np.array(part.T, order="C"), none
                )
            return
        single = bool(numbers) and all(_is_single(grid.column(name)) for name, *_ in numbers)
        kind = np.float32 if single else np.float64
        of_codes = np.uint8 if max(self.own_layout.code_sizes, default=0) <= 1 << 8 else np.int32
        blocks = [
            RowBlock(
                np.empty((len(numbers), run.stop - run.start), kind),
                np.empty((len(words), run.stop - run.start), of_codes),
            )
            for run in runs
        ]
        for j, (name, *_) in enumerate(numbers):  # a column at a time: no second copy of the table
            line: Any = numbers_of(grid.column(name), f"column {name!r}")
            fix = "Pass numbers where there were numbers at fit."
            need(line is not None, "numbers", of=f"column {name!r}", got="words", fix=fix)
            for run, block in zip(runs, blocks, strict=True):
                block.numbers[j] = line[run]
        for j, (name, values) in enumerate(words):
            place = Place(name, missing_values=())
            codes = category_codes(grid.column(name), Category(values), place)
            for run, block in zip(runs, blocks, strict=True):
                block.codes[j] = codes[run]
        yield from blocks


def _is_single(raw: Raw) -> bool:
    return isinstance(raw, Plain) and raw.values.dtype == np.float32


@dataclass(frozen=True)
class RowsCoding(Coding):
    """Rows that were coded elsewhere: X is a source of rows, or, where all features are numbers, an
    array of them."""

    numbers: int
    code_sizes: tuple[int, ...] = ()
    standard: Standard | None = None
    shapes: Shapes | None = None

    @property
    def numbers_known(self) -> tuple[Known, ...]:
        return tuple((f"x{j}", None, None) for j in range(self.numbers))

    @property
    def words_known(self) -> tuple[Listed, ...]:
        return tuple((f"code{j}", tuple(range(size))) for j, size in enumerate(self.code_sizes))

    @property
    def own_layout(self) -> RowLayout:
        return RowLayout(self.numbers, self.code_sizes)

    def raw_blocks(self, X: TableLike) -> Iterator[RowBlock]:
        fix = "Pass a source of rows, or a RowBlock, coded like those of the fit."
        need(not self.code_sizes, "coded rows", of="X", got=type(X).__name__, fix=fix)
        return TableCoding(tuple(map(Feature, self.own_names)), self.own_names).raw_blocks(X)


# ------------------------------ additive models

AUTO, WORDS = "auto", "'auto', 'linear', 'additive', an Additive"
BINS = 16
HALVINGS = 8
"""How often the part of a range that is next to zero (or to the end next to zero) is cut in half
again: columns of money have most of their rows there. A part where nobody is costs next to nothing:
docs/additive_models.md."""
ANYWHERE = tuple(
    sorted({0.0, *(sign * 2.0 ** (power / 2) for power in range(-20, 41) for sign in (-1.0, 1.0))})
)
"""Edges of a number whose bounds are not known: zero, and two an octave from 0.001 to a million on
either side."""
MANY = 32
ROWS_A_NUMBER = 300
"""A table of more numbers than `MANY` gets steps only where so many rows a number are known to be
there."""
LEAST_ROWS, ROWS_AT_ONE = 2_000, 100
"""What `AUTO` needs for steps: so many rows, and so many a number, times 1 / epsilon where that is
below 1 (docs/additive_models.md has what was measured)."""
MOST_BINS = 256
COARSE, MOST_SIDE, MOST_CELLS = 8, 33, 4_096  # of pairs


@dataclass(frozen=True)
class Additive:
    """Model that is a sum over columns: of each number a line and steps, of each category a term.

    Parameters
    ----------
    bins : int, default=16
        Number of equal parts that a declared range is cut into. The part next to zero, or to the
        end next to zero, is halved eight times more. A column with declared edges
        (`Number(low, high, edges=...)`) has those.
    columns : tuple of str, default=None
        Names of the numbers that get steps. None: all. A table with more than 32 numbers and fewer
        than 300 known rows a number gets none, and a warning says so.
    interactions : tuple of pairs of str, default=()
        Pairs of columns whose combinations get a term each.
    increasing, decreasing : tuple of str, default=()
        Names of the numbers along which the score of the second of two classes never falls, or
        never rises. The released term is replaced by the nearest such term before anything is
        measured of the model, which costs no privacy. `PrimalDual` and `Fermi` take them.

    See Also
    --------
    FairClassifier : Takes it as `model`.

    Examples
    --------
    >>> Additive(interactions=[("age", "hours")])
    Additive(bins=16, columns=None, interactions=(('age', 'hours'),), increasing=(), decreasing=())
    """

    bins: int = BINS
    columns: tuple[str, ...] | None = None
    interactions: tuple[tuple[str, str], ...] = ()
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        few, fix = _checks.whole(bins=self.bins, at_least=2), "Pass bins=16, for example."
        need(few <= MOST_BINS, f"at most {MOST_BINS}", of="bins", got=self.bins, fix=fix)
        if self.columns is not None:
            fix = 'Pass ["age", "hours"], for example; or None, for all.'
            names = _names(self.columns)
            need(names, "a list of distinct names", of="columns", got=self.columns, fix=fix)
            _checks.normalise(self, columns=names)
        given: Any = self.interactions
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        wrong = [pair for pair in given if len(_names(pair)) != 2] if is_list else [given]
        fix, got = 'Pass interactions=[("age", "hours")], for example.', [*wrong, None][0]
        need(not wrong, "pairs of distinct names", of="interactions", got=got, fix=fix)
        _checks.normalise(self, interactions=tuple(map(tuple, given)))
        for of, listed in _checks.named(self, ("increasing", "decreasing")).items():
            names, fix = _names(listed), 'Pass ["income"], for example.'
            need(names or listed in ((), []), "a list of names", of=of, got=listed, fix=fix)
            _checks.normalise(self, **{of: names})
        both = sorted({*self.increasing} & {*self.decreasing})
        need(not both, "columns that are not increasing", of="decreasing", got=both, fix="Choose.")
        crossed = sorted({*self.directions} & {name for pair in self.interactions for name in pair})
        fix = "Leave the pair out: its term may turn the score back."
        need(
            not crossed,
            "no increasing or decreasing column",
            of="interactions",
            got=crossed,
            fix=fix,
        )

    @property
    def directions(self) -> dict[str, float]:
        """1 of each number that increases the score, -1 of each that decreases it."""
        return {**dict.fromkeys(self.increasing, 1.0), **dict.fromkeys(self.decreasing, -1.0)}

    def shapes(self, coding: Coding, rows: int | None) -> Shapes | None:
        """Steps of rows of this coding.

        Parameters
        ----------
        coding : Coding
            How the table is coded.
        rows : int or None
            Number of rows, where that is public.

        Returns
        -------
        Shapes or None
            The steps; None where there are to be none.
        """
        numbers, words = coding.numbers_known, coding.words_known
        steps = [self._side(place, *number) for place, number in enumerate(numbers)]
        if self.columns is not None:
            _require_known(self.columns, [side.name for side in steps], "columns")
            steps = [side for side in steps if side.name in self.columns]
        elif len(steps) > MANY and (rows is None or rows < ROWS_A_NUMBER * len(steps)):
            declared = {name for name, _, edges in numbers if edges is not None}
            if not declared:
                _warn_of_many(len(steps))
            steps = [side for side in steps if side.name in declared]
        listed = enumerate(words)
        sides = {number[0]: (place, *number) for place, number in enumerate(numbers)}
        codes = {one: Side(one, at, values=tuple(map(str, of))) for at, (one, of) in listed}
        pairs = []
        for pair in self.interactions:
            _require_known(pair, [*sides, *codes], "interactions")
            one, other = (codes.get(name) or self._side(*sides[name], True) for name in pair)
            cells, fix = one.size * other.size, "Leave it out, or join values in the schema."
            expected, got = f"at most {MOST_CELLS} cells", f"{pair[0]} x {pair[1]}: {cells}"
            need(cells <= MOST_CELLS, expected, of="interactions", got=got, fix=fix)
            pairs.append((one, other))
        shapes = Shapes(tuple(side for side in steps if side.edges), tuple(pairs))
        return shapes if shapes.sizes else None

    def _side(
        self,
        place: int,
        name: str,
        scale: Affine | None,
        declared: tuple[float, ...] | None,
        of_pair: bool = False,
    ) -> Side:
        """A number as steps; coarser of a pair."""
        if scale is None:
            every = ANYWHERE[2::4] if of_pair else ANYWHERE
            return Side(name, place, every, every, along=not of_pair)
        if declared is not None:
            # as `data.coding.number_codes` codes numbers, so that a number on an edge lies on it
            edges = (np.array(declared, np.float64) - scale.center) / scale.half
            edges = edges[:: -(-len(edges) // MOST_SIDE)] if of_pair and len(edges) else edges
        else:
            bins, halvings = (min(COARSE, self.bins), 2) if of_pair else (self.bins, HALVINGS)
            # equal parts of [-1, 1], and halves of halves towards zero, or the end next to it
            zero = min(1.0, max(-1.0, -scale.center / scale.half))
            steps = 2.0 / bins * 0.5 ** np.arange(1, halvings + 1)
            parts: list[Any] = [
                np.linspace(-1.0, 1.0, bins + 1),
                zero - steps,
                [zero],
                zero + steps,
            ]
            edges = np.unique(np.concatenate(parts))
            edges = edges[(edges > -1.0) & (edges < 1.0)]
        return Side(name, place, tuple(edges.tolist()), tuple(scale.undo(edges).tolist()))


@dataclass(frozen=True)
class Usual(Additive):
    """What ``model="auto"`` stands for at this `epsilon`: steps where public facts say that they pay
    (docs/additive_models.md), else a linear model."""

    epsilon: float = math.inf

    def shapes(self, coding: Coding, rows: int | None) -> Shapes | None:
        """Steps where every number has declared bounds, and enough rows are known to be there."""
        numbers = coding.numbers_known
        declared = isinstance(coding, SchemaCoding) and 0 < len(numbers) <= MANY
        least = max(LEAST_ROWS, ROWS_AT_ONE * len(numbers) / min(1.0, self.epsilon))
        if not declared or rows is None or rows < least:
            return None
        return super().shapes(coding, rows)


def directed(of: Additive, coding: Coding, classes: int) -> Callable[[Floats], Floats] | None:
    """What makes the weights of one score, (1, 1 + width), keep the directions; None without
    any."""
    if not of.directions:
        return None
    fix = "Leave increasing and decreasing out: several classes have no one score."
    need(classes == 2, "two classes", of="increasing, decreasing", got=classes, fix=fix)
    known = [name for name, *_ in coding.numbers_known]
    _require_known(tuple(of.directions), known, "increasing, decreasing")
    steps, at = dict[str, tuple[slice, Side]](), 1 + coding.own_layout.width
    for side in coding.shapes.steps if coding.shapes else ():
        steps[side.name] = (slice(at, at + side.size), side)
        at += side.size

    def kept(weights: Floats) -> Floats:
        out = weights.copy()
        for name, sign in of.directions.items():
            line = 1 + known.index(name)
            if name not in steps:
                out[0, line] = sign * max(0.0, sign * weights[0, line])
            else:
                where, side = steps[name]
                term = rising(sign * weights[0, line], sign * weights[0, where], side.middles)
                out[0, line], out[0, where] = sign * term[0], sign * term[1]
        return out

    return kept


def rising(slope: float, steps: Floats, middles: Floats) -> tuple[float, Floats]:
    """The term that never falls whose values at the `middles` of its positions are nearest to those
    of this one, as a line and steps; the same where it never falls.

    Nearest in the sum of squares, as the noise of all steps is alike: isotonic regression. Its line
    rises by no more than the values do anywhere, so no step falls.

    >>> rising(-1.0, np.array([0.0, 2.0, 2.0]), np.array([-1.0, 0.0, 1.0]))
    (0.0, array([1. , 1.5, 1.5]))
    """
    values = np.asarray(isotonic_regression(slope * middles + steps).x)
    least = float((np.diff(values) / np.diff(middles)).min())
    line = min(max(slope, 0.0), max(least, 0.0))
    return line, values - line * middles


def takes_steps(model: object) -> bool:
    """Whether a table must be dense for it."""
    return isinstance(model, Additive) or (isinstance(model, str) and model == "additive")


def module_of(model: object) -> Any:
    """A torch module, or None where the model is linear or additive."""
    return None if isinstance(model, str | Additive) else model


def wanted(
    model: object,
    *,
    modules: bool = True,
    epsilon: float | None = None,
    directions: bool = False,
) -> Additive | None:
    """What `model=` asks for: None for a linear model, or a module, where `modules` are fitted.
    `epsilon`: of a search in which steps may pay; None: `AUTO` is linear. `directions`: whether
    the search keeps those of terms."""
    if isinstance(model, Additive):
        fix = "Pass solver=PrimalDual() or Fermi() to FairClassifier, or leave them out."
        got = ", ".join(model.directions)
        right = directions or not model.directions
        need(right, "none of this solver", of="increasing, decreasing", got=got, fix=fix)
        return model
    if isinstance(model, str) and model == AUTO:
        return None if epsilon is None else Usual(epsilon=epsilon)
    known = not isinstance(model, str) or model in (AUTO, "linear", "additive")
    fix = "Pass model='additive', or model='linear'."
    need(known, f"{WORDS}, a torch.nn.Module or None", of="model", got=model, fix=fix)
    fix = "Pass model='additive' or 'linear'; modules are fitted by FairClassifier."
    right = modules or module_of(model) is None
    need(right, f"{WORDS} or None", of="model", got=type(model).__name__, fix=fix)
    return Additive() if takes_steps(model) else None


def words_of(shapes: Shapes | None) -> str:
    """For a statement."""
    if shapes is None:
        return "linear: no number has steps"
    told = [f"steps of {side.name} at {len(side.edges)} edges" for side in shapes.steps]
    told += [f"cells of {one.name} x {other.name}" for one, other in shapes.pairs]
    return "additive: " + "; ".join(told)


def _names(given: object) -> tuple[str, ...]:
    """A list of distinct names; none of anything else."""
    listed = () if isinstance(given, str) or not isinstance(given, Sequence) else tuple(given)
    texts = all(isinstance(name, str) for name in listed)
    return listed if texts and len(set(listed)) == len(listed) else ()


def _require_known(names: Sequence[str], known: Sequence[str], of: str) -> None:
    strange = [name for name in names if name not in known]
    fix = "Name features as the schema does, or as the table at fit."
    need(not strange, f"names among {list(known)}", of=of, got=strange, fix=fix)


def _warn_of_many(numbers: int) -> None:
    text = (
        f"{numbers} numbers, and not {ROWS_A_NUMBER} rows for each are known to be there: the "
        f"model is linear, as steps for "
        'all would be noise. Pass model=Additive(columns=["age", ...]) to name those that matter; '
        "or schema=Schema(rows=...), if there are more."
    )
    warnings.warn(text, NoSteps, stacklevel=3)


# ------------------------------ in documents: what is read agrees with itself

MOST_CODES, MOST_EDGES = 1 << 31, 4_096
MOST_GROUPS = 1 << 20
"""A key is made for each."""


def _check_cells(found: dict[str, Any], node: Node) -> None:
    sizes = [len(column) for column in found["columns"]]
    if (math.prod(sizes) if found["mode"] == "product" else sum(sizes)) > MOST_GROUPS:
        node.refuse(f"at most {MOST_GROUPS} groups", "more")


def _check_standard(found: dict[str, Any], node: Node) -> None:
    if len(found["means"]) != len(found["deviations"]):
        node["deviations"].refuse(f"{len(found['means'])} numbers", len(found["deviations"]))
    if not all(0.0 < one < math.inf for one in found["deviations"]):
        node["deviations"].refuse("deviations above 0", min(found["deviations"]))


def _check_feature(found: dict[str, Any], node: Node) -> None:
    if found["values"] is not None:
        found["values"] = Category(found["values"]).values


def _check_side(found: dict[str, Any], node: Node) -> None:
    edges, marks = found["edges"], found["marks"]
    ascending = all(low < high for line in (edges, marks) for low, high in pairwise(line))
    beside = len(edges) != len(marks) or (found["values"] and edges)
    if not ascending or beside or len(edges) > MOST_EDGES:
        expected = f"at most {MOST_EDGES} ascending numbers, as many as marks"
        node["edges"].refuse(expected, len(edges))
    if found["along"] and len(edges) < 2:
        node["along"].refuse("false, where there are no two edges", True)


def _check_coding(cls: type[Any]) -> Any:
    """Columns, steps and scales of one coding fit together."""

    def check(found: dict[str, Any], node: Node) -> None:
        if cls is TableCoding and not {one.name for one in found["features"]} <= set(
            found["columns"]
        ):
            node["columns"].refuse("the names of all features", found["columns"])
        if cls is RowsCoding:
            node["numbers"].whole(at_most=MOST_CODES)
            for size in node["code_sizes"].list():
                size.whole(at_least=1, at_most=MOST_CODES)
        layout = cls(**found | {"standard": None, "shapes": None}).own_layout
        if (shapes := found["shapes"]) is not None:
            require_steps(shapes, layout, node["shapes"])
            layout = shapes.layout(layout)
        if (standard := found["standard"]) is not None and len(standard.means) != layout.numbers:
            node["standard"].refuse(f"means of {layout.numbers} numbers", len(standard.means))

    return check


def require_steps(shapes: Shapes, layout: RowLayout, node: Node) -> None:
    """Steps of columns of this shape; else the error of the document."""
    if any(side.values for side in shapes.steps):
        node["steps"].refuse("numbers alone", "a category")
    for side in (*shapes.steps, *(side for pair in shapes.pairs for side in pair)):
        sizes = layout.code_sizes if side.values else (0,) * layout.numbers
        there = 0 <= side.place < len(sizes)
        if not there or (side.values and sizes[side.place] != len(side.values)):
            node.refuse("columns that the coding has", f"place {side.place}")
    if any(one.size * other.size > MOST_CELLS for one, other in shapes.pairs):
        node["pairs"].refuse(f"two columns of at most {MOST_CELLS} cells", "more")


CODINGS = Codec(
    Kind(Cells, check=_check_cells),
    Kind(Encoding, write=Encoding.to_dict, read=lambda node: Encoding.from_dict(node.mapping())),
    Kind(Standard, check=_check_standard),
    Kind(Feature, check=_check_feature),
    Kind(Side, check=_check_side),
    Kind(Shapes),
    *(Kind(cls, check=_check_coding(cls)) for cls in (SchemaCoding, TableCoding, RowsCoding)),
)


def steps_of(node: Node, layout: RowLayout) -> Shapes:
    """The steps in a document, for rows of this shape."""
    found: Shapes = CODINGS.read(node, Shapes)
    require_steps(found, layout, node)
    return found


# ------------------------------ what a fitted estimator has


@dataclass(frozen=True, eq=False, repr=False)
class FittedParts:
    """Fitted attributes by their names without the underscore at the end; None where there is
    none. Those that fits publish for reports are of whatever kind the fit gave them."""

    model: Predictor | None = None
    coding: Coding | None = None
    cells: Cells | None = None
    groups: Sequence[Any] | None = None
    outcome: Any = None
    privacy: Any = None
    released: Any = None
    tailoring: Any = None
    baselines: Any = None
    candidates: Any = None
    certificate: Any = None
    certified_aim: Any = None
    constraint_report: Any = None
    gap_report: Any = None


def parts_of(estimator: object) -> FittedParts:
    """The fitted attributes of any object."""
    named = fields(FittedParts)
    return FittedParts(**{one.name: getattr(estimator, f"{one.name}_", None) for one in named})


def classes_of(estimator: object) -> tuple[Any, ...]:
    """The classes of a fitted classifier; none of anything else."""
    return tuple(getattr(estimator, "classes_", ()))


def names_of_features(estimator: object) -> tuple[str, ...]:
    """The names of the columns that an estimator was fitted to; none where these had no names."""
    return tuple(getattr(estimator, "feature_names_in_", ()))


def width_of(estimator: object, otherwise: int) -> int:
    """How many columns an estimator was fitted to, where it says so."""
    return int(getattr(estimator, "n_features_in_", otherwise))
