"""Rows as the curator holds them: coded columns in blocks, checked when they come, read in passes,
batches and parts, in other units where that was asked. Nothing here leaves the room.

Rows are checked when they are taken in: before any release, and seen by the data holder only. A
streamed source is checked again at each pass, must give the same rows each time, and an error then
shows no value.

Guarantees (tests/core/test_core_rows.py; tests/curator/test_curator_rows.py, test_curator_parts.py,
test_curator_persons.py, test_curator_mapping.py):
1. What a loop cannot bear (a code outside its list, an index outside the row, NaN) is not let in.
2. Which rows are in a part depends on how many rows there are and on nothing else; the parts of a
   partition have no row in common, leave none out, and differ in size by one row at most.
3. A batch, and a part, holds all kept rows of a person or none.
4. In one group all kept rows of a person have the same sensitive values, whatever the rows of
   others are.
5. Numbers in other units are to the bit those of the formula.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from . import checks, persons
from .errors import InputError, PrivacyError, need
from .layout import (
    Array,
    Cells,
    Floats,
    Ints,
    Mask,
    RowBlock,
    RowLayout,
    RowSource,
    Traits,
    held_blocks,
    lines_of,
    traits_of,
)
from .noise import Stream

EMPTY_INT = np.empty(0, np.int32)
EMPTY_FLOAT: Floats = np.empty(0, np.float64)
MOST_ROWS = 1 << 33
"""Sums of contributions below 2^30 grid units stay exact in 64-bit integers."""
MOST_GATHERED = 1 << 29
"""Bytes of rows that are kept a second time, part by part: a knob of speed only."""
ARRAY_ROWS = 1 << 18
"""Rows of a block of plain arrays."""

# -- which rows are asked --------------------------------------------------------------------------


@dataclass(frozen=True)
class Full:
    """Every row. Needs no analysis of sampling, and as a rule gives the best accuracy at a given
    epsilon."""


@dataclass(frozen=True)
class Poisson:
    """Every row with probability `rate`, independently. Who was drawn, and how many, is never used
    and never released."""

    rate: float

    def __post_init__(self) -> None:
        rate = checks.fraction(rate=self.rate, low_open=True, remedy="Use Full() to ask all rows.")
        checks.normalise(self, rate=rate)


@dataclass(frozen=True)
class Part:
    """Part `number` (from 0) of `parts` into which all rows are cut, the same ones in every epoch
    (theory.md#t8).

    Who is where is public: a row's part is decided by its place in the table and the number of
    rows, in one pseudo-random order that never changes. So it is for promises under which that
    number is public: replace-one, sensitive features, none.
    """

    number: int
    parts: int

    def __post_init__(self) -> None:
        parts = checks.whole(at_least=1, parts=self.parts)
        checks.normalise(self, parts=parts, number=checks.whole(number=self.number))
        below, fix = f"a number below {parts}", "Parts are numbered from 0."
        need(self.number < parts, below, of="Part", got=self.number, fix=fix)


Batch = Full | Poisson | Part
FULL = Full()
"""All rows: what `answer` asks unless told otherwise."""


def public_order(rows: int) -> Ints:
    """The places 0 ... rows - 1 in the order of a hash of each: a bijection of 64-bit numbers, so
    no two are equal.

    The last mixing of SplitMix64 (Steele, Lea and Flood 2014). It needs no secret: privacy rests on
    who is where being public; the mixing only keeps tables that are sorted from giving one-sided
    parts.
    """
    x = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.argsort(x ^ (x >> np.uint64(31)), kind="stable").astype(np.int64)


# -- blocks ----------------------------------------------------------------------------------------


@dataclass(repr=False)  # a printed block would show rows
class Block:
    """One block as the loops take it; `numbers` is (columns, rows), or (1, stored values) beside
    `indptr` and `indices`.

    `number`: which block of the source this is. `is_mapped`: its arrays lie on the disk, and no
    second copy of them may stay in memory. `chosen`: which of that block's rows these are; None:
    all. `persons`: whose each row is; empty: of rows. `reach`: times a person's clip; empty: 1.
    """

    layout: RowLayout
    rows: int
    numbers: Array
    indptr: Array
    indices: Array
    codes: Array
    labels: Array
    sensitive: Array
    weights: Floats
    number: int = 0
    is_mapped: bool = False
    chosen: Array | None = None
    persons: Ints = field(default_factory=lambda: persons.NOBODY)
    reach: Floats = field(default_factory=lambda: EMPTY_FLOAT)
    _cells: dict[Cells | None, Array] = field(default_factory=dict)
    # of these rows as they are, so never copied along
    in_order: dict[Cells, Any] = field(default_factory=dict, init=False)

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array."""
        return len(self.indptr) > 0

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        features = (self.numbers, self.indptr, self.indices, self.codes)
        return sum(one.nbytes for one in (*features, self.labels, self.sensitive, self.weights))

    @staticmethod
    def of(raw: RowBlock, layout: RowLayout, number: int = 0) -> Block:
        """A block as a source has it, unchecked."""
        numbers, indptr, indices = raw.numbers, EMPTY_INT, EMPTY_INT
        if hasattr(numbers, "indptr"):
            numbers, indptr, indices = numbers.data[np.newaxis, :], numbers.indptr, numbers.indices
        sensitive = np.empty((0, raw.rows), np.uint16) if raw.sensitive is None else raw.sensitive
        labels = EMPTY_INT if raw.labels is None else raw.labels
        weights = EMPTY_FLOAT if raw.weights is None else raw.weights
        kept = (indptr, indices, raw.codes, labels, sensitive, weights)
        return Block(layout, raw.rows, numbers, *kept, number)

    @property
    def raw(self) -> RowBlock:
        """The rows as a source has them."""
        numbers: Any = self.numbers
        if self.is_sparse:
            import scipy.sparse

            parts = (numbers[0], self.indices, self.indptr)
            numbers = scipy.sparse.csr_array(parts, shape=(self.rows, self.layout.numbers))
        labels, weights = self.labels, self.weights
        there: list[Any] = [labels, self.sensitive, weights, self.persons]
        return RowBlock(
            numbers, self.codes, *(one if one.shape[-1] == self.rows else None for one in there)
        )

    def arrays(self, offsets: Ints) -> tuple[Array, ...]:
        """What compiled loops read of the rows' features, in the order in which they take it."""
        return self.numbers, self.indptr, self.indices, self.codes, offsets

    def cells(self, cells: Cells | None) -> Array:
        """Cell ids, (cells a row, rows); one cell for all when `cells` is None."""
        kept = self._cells.get(cells)
        if kept is None:
            if cells is None:
                # of the kind that groups have: another would have loops compiled once more
                kept = np.zeros((1, self.rows), self.sensitive.dtype)
            elif len(lines := lines_of(cells, self.layout)) == 1:
                kept = self.sensitive[lines[0] : lines[0] + 1]  # one column's codes are its cells
            else:
                kept = cells.ids(self.sensitive[lines])
                # Two bytes a row where they suffice: every pass reads them.
                kept = kept.astype(np.uint16) if cells.count < 1 << 16 else kept
            self._cells[cells] = kept
        return kept

    def weighed(self, weights: Floats, reach: Floats = EMPTY_FLOAT) -> Block:
        """The same rows with other weights. `reach`: by how much these multiply what a person may
        add at most."""
        other = copy.copy(self)
        other.weights, other.reach, other.in_order = weights, reach, {}
        return other

    def take(self, index: Array) -> Block:
        """The rows at `index`, as a block of their own."""
        raw = self.raw.at(index)
        block = Block.of(raw, self.layout, self.number)
        block.chosen = index if self.chosen is None else self.chosen[index]
        block.persons = persons.NOBODY if raw.persons is None else raw.persons
        kept = list(self._cells.items())
        block._cells = {cells: ids.take(index, axis=1) for cells, ids in kept}
        return block

    def of_persons(self, known: Array, inside: Mask) -> Block:
        """The rows inside of a block that stands person by person (`known` says how), which knows
        whose each is; without a copy where all are."""
        block, number = self, np.cumsum(known["begins"], dtype=np.int64)
        if not inside.all():
            block, number = block.take(np.flatnonzero(inside)), number[inside]
        return replace(block, chosen=None, persons=number)

    def in_one_group(self) -> Block:
        """The same rows, each with the sensitive values that most rows of its person have, column
        by column; of equals the value that is listed first. Whole persons stand here."""
        if not self.rows or not len(self.sensitive):
            return self
        starts = persons.starts_of(self.persons)
        number = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        sensitive = np.empty_like(self.sensitive)
        for line, values in enumerate(self.layout.sensitive):
            at = number * len(values) + self.sensitive[line].astype(np.int64)
            counts = np.bincount(at, minlength=(len(starts) - 1) * len(values))
            sensitive[line] = counts.reshape(-1, len(values)).argmax(axis=1)[number]
        return replace(self, sensitive=sensitive, _cells={})


# -- numbers in other units ------------------------------------------------------------------------

Maps = tuple[tuple[Floats, Floats], ...]
"""Scale and shift of each column, (columns, 1), one after another."""


def mapped(block: Block, maps: Maps) -> Block:
    """The block with its numbers mapped and kept finite, in memory of their own. Never an error or
    a warning, whatever a row holds."""
    from .kernels import map_into

    of, out = block.numbers, np.empty_like(block.numbers)
    most = float(np.finfo(out.dtype).max)
    for scale, shift in maps:
        map_into(of, 0, block.rows, scale[:, 0], shift[:, 0], most, out)
        of = out
    return replace(block, numbers=out)


# -- checks ----------------------------------------------------------------------------------------


def prepare(raw: RowBlock, layout: RowLayout, number: int, cap: float) -> Block:
    """A block for the loops, checked. Without copying, but for weights above the cap and unsorted
    sparse rows."""
    n, sparse = raw.rows, hasattr(raw.numbers, "indptr")
    _check_kinds(raw, layout)
    labels, sensitive = (
        None if one is None else _signed(one) for one in (raw.labels, raw.sensitive)
    )
    weights = None if raw.weights is None else np.minimum(raw.weights, cap)
    numbers = _canonical(raw.numbers) if sparse else raw.numbers
    signed = RowBlock(numbers, _signed(raw.codes), labels, sensitive, weights)
    block = Block.of(signed, layout, number)
    shape = raw.numbers.shape if raw.numbers.ndim == 2 else (-1, -1)
    groups = 0 if raw.sensitive is None else len(block.sensitive)
    for name, got, wanted in (
        ("numbers", shape[1 if sparse else 0], layout.numbers),
        ("coded features", len(block.codes), len(layout.code_sizes)),
        ("sensitive columns", groups, len(layout.sensitive)),
        ("rows of numbers", shape[0 if sparse else 1], n),
        ("rows of sensitive codes", block.sensitive.shape[-1], n),
        ("labels", n if raw.labels is None else block.labels.size, n),
        ("weights", n if raw.weights is None else block.weights.size, n),
        ("axes of labels", block.labels.ndim, 1),
        ("axes of weights", block.weights.ndim, 1),
        ("axes of sensitive codes", block.sensitive.ndim, 2),
    ):
        fix = "Make blocks of the shape that the layout states."
        need(got == wanted, f"{wanted} {name}", of="block", got=got, fix=fix)
    _check_values(block)
    return block


def _check_kinds(raw: RowBlock, layout: RowLayout) -> None:
    """Arrays of plain numbers: object, complex and foreign byte orders are code, or change
    silently."""
    numbers = getattr(raw.numbers, "data", None) if hasattr(raw.numbers, "indptr") else raw.numbers
    labels = "iub" if layout.classes is not None else "fiub"
    for name, values, kinds in (
        ("numbers", numbers, "f"),
        ("codes", raw.codes, "iu"),
        ("labels", raw.labels, labels),
        ("sensitive codes", raw.sensitive, "iu"),
        ("weights", raw.weights, "f"),
    ):
        if values is None:
            continue
        dtype: Any = values.dtype if isinstance(values, np.ndarray) else None
        good = dtype is not None and dtype.kind in kinds and dtype.isnative
        good = good and (dtype.kind != "f" or dtype.itemsize in (4, 8))
        expected = "native " + ("float32 or float64" if "f" in kinds else "whole numbers")
        fix = "Convert it first: values.astype(np.int32), for example, or np.float64."
        need(good, expected, of=name, got=str(dtype or type(values).__name__), fix=fix)


def _signed(codes: Array) -> Array:
    """Codes of 64 bits without a sign as signed ones: the sum of one and a signed offset would be a
    float. Checked later."""
    return codes.astype(np.int64) if codes.dtype == np.uint64 else codes


def _canonical(numbers: Any) -> Any:
    """A CSR array whose columns rise within each row. Nothing that scipy says of it is believed: a
    column twice in one row would count with twice its clip, and an index outside is another row's
    memory."""
    right = getattr(numbers, "format", "") == "csr" and len(numbers.shape) == 2
    rows, columns = numbers.shape if right else (0, 0)
    at, ptr = numbers.indices, numbers.indptr
    right = right and len(ptr) == rows + 1 and ptr[0] == 0 and not (np.diff(ptr) < 0).any()
    right = right and ptr[-1] == len(at) == len(numbers.data)
    right = right and (len(at) == 0 or (int(at.min()) >= 0 and int(at.max()) < columns))
    expected = "a CSR array whose row bounds and column indices lie inside its shape"
    fix = "Build it with scipy.sparse.csr_array(...), and call check_format()."
    need(right, expected, of="numbers", got="another", fix=fix)
    rises, starts = np.diff(at.astype(np.int64)) > 0, ptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(at))] - 1] = True
    if rises.all():
        return numbers
    import scipy.sparse

    parts = (numbers.data.copy(), at.copy(), ptr.copy())
    copied = scipy.sparse.csr_array(parts, shape=numbers.shape)
    copied.sum_duplicates()
    return copied


def _check_values(block: Block) -> None:
    layout, labelled = block.layout, len(block.labels) > 0
    weights = bool(np.isfinite(block.weights).all() and (block.weights >= 0).all())
    targets = layout.classes is not None or bool(np.isfinite(block.labels).all())
    fix = "Declare a code for missing values in the schema, or fill them in."
    for name, good, remedy in (
        ("numbers", bool(np.isfinite(block.numbers).all()), fix),
        ("weights", weights, "Weights are at least 0."),
        ("labels", targets, "Targets are finite numbers."),
    ):
        need(good, "finite values", of=name, got="NaN, infinite or negative", fix=remedy)
    classes = [(block.labels, len(layout.classes))] if layout.classes is not None else []
    for name, lines in (
        ("labels", classes if labelled else []),
        ("codes", list(zip(block.codes, layout.code_sizes, strict=True))),
        ("sensitive", list(zip(block.sensitive, map(len, layout.sensitive), strict=True))),
    ):
        for j, (values, size) in enumerate(lines):
            low, high = int(values.min(initial=0)), int(values.max(initial=0))
            of = name if name == "labels" else f"{name}[{j}]"
            fix = "Encode with the schema that the layout was made from."
            within = not len(values) or (low >= 0 and high < size)
            need(within, f"codes from 0 to {size - 1}", of=of, got=f"{low} to {high}", fix=fix)


def _refuse_change() -> NoReturn:
    """Releases may have begun: the error shows no value."""
    raise PrivacyError.expected(
        "the rows of the first pass",
        of="a streamed source",
        got="other rows",
        remedy="Keep the table as it is while a curator holds it, or hold it in memory.",
    ) from None


# -- rows ------------------------------------------------------------------------------------------


class Rows:
    """All rows of a source, in memory, mapped from the disk, or streamed from the source at every
    pass.

    `Rows(source)` keeps the source's blocks (without copying where they already fit: do not change
    them afterwards). Those of a source that `is_mapped` are views of a file, and stay so: what is
    made of their numbers is made anew at every pass. `Rows(source, in_memory=False)` reads them
    again at each pass, in bounded memory. `Rows.from_arrays` copies plain arrays. `units`: whose
    each row is, one value a row of all blocks together, for promises that protect persons.

    `sparse`: whether any numbers are stored so, which is public. `largest_weight`: for promises of
    no privacy, where no cap is needed. `largest_row`: weight x |row|, once somebody for whom rows
    are public asked. `adds_by_person`: gradients, before they are clipped. `one_group`: all rows of
    a person count in one group.
    """

    is_elsewhere = False  # with another holder, whose curator is asked
    is_sharded = False  # in other processes, which are asked for totals and maxima
    layout: RowLayout
    max_sample_weight: float
    sparse = weighted = labelled = adds_by_person = one_group = False
    largest_weight = 0.0
    largest_row: float | None = None
    _source: RowSource
    _kept: list[Block] | None = None
    _is_mapped = False
    _require_same: Any = None  # of a file, at every pass
    _starts: list[int]
    _maps: Maps = ()  # of numbers, where they are streamed
    _order: Ints | None = None  # of fixed parts, once they are asked
    _begins: Ints | None = None  # of each person's rows, once they stand person by person
    _persons: Ints | None = None
    _given: tuple[Rows, Ints] | None = None  # rows as they came, and which of them these are
    _by_person: list[Array] | None = None  # of each block that stands person by person
    _inside: list[Mask] | None = None  # which rows of such blocks are read

    def __init__(
        self,
        source: RowSource,
        *,
        in_memory: bool = True,
        max_sample_weight: float = 1.0,
        units: object = None,
    ) -> None:
        self.layout, self._source = source.layout, source
        self.max_sample_weight = checks.positive(
            max_sample_weight=max_sample_weight, allow_inf=True
        )
        traits, kept = traits_of(source), list[Block]()
        self._is_mapped, self._require_same = traits.is_mapped, traits.require_same
        self._starts = [0]
        self._parts: dict[Part, list[Block]] = {}
        told, weighted, labelled = list[Array | None](), set[bool](), set[bool]()
        for number, raw in enumerate(held_blocks(source) if in_memory else source.blocks()):
            block = prepare(raw, self.layout, number, self.max_sample_weight)
            block.is_mapped = self._is_mapped
            self._starts.append(self._starts[-1] + block.rows)
            require_few(self._starts[-1])
            self.sparse |= block.is_sparse
            self.largest_weight = max(self.largest_weight, float(block.weights.max(initial=0.0)))
            weighted.add(raw.weights is not None)
            labelled.add(raw.labels is not None)
            told.append(raw.persons)
            kept += [block] if in_memory else []
        self._kept = kept if in_memory else None
        for name, found in (("weights", weighted), ("labels", labelled)):
            fix = "Write ones where a row counts once; give every block its labels."
            expected = f"{name} in all blocks or in none"
            need(len(found) <= 1, expected, of="rows", got="some", fix=fix)
        self.weighted, self.labelled = True in weighted, False not in labelled
        self._by_person = persons.by_person(told, units is not None)
        if units is None and self._by_person is None and told and told[0] is not None:
            units = np.concatenate([one for one in told if one is not None])
        if units is not None:
            expected, got = "rows in memory or in a coded store", "streamed rows, not grouped"
            fix = "A person's rows may lie in any block: data.encode(source, schema, out)."
            need(in_memory, expected, of="unit", got=got, fix=fix)
            self._persons = persons.persons_of(units, self._starts[-1])

    @classmethod
    def from_arrays(
        cls,
        X: object,
        y: object = None,
        sensitive: Sequence[Any] = (),
        *,
        codes: object = None,
        code_sizes: Sequence[int] = (),
        classes: Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        sensitive_names: Sequence[str] = (),
        regression: bool = False,
        sample_weight: object = None,
        max_sample_weight: float = 1.0,
        units: object = None,
    ) -> Rows:
        """Rows from arrays: X (rows, numbers) dense or sparse, y labels (or targets), one array a
        sensitive column. `units`: whose each row is, where persons are to be protected.

        Classes and groups that are not given are read from the data, and `read_from_data` says so.
        """
        numbers, read = _as_numbers(X), list[str]()
        n = numbers.shape[0]
        labels, classes = _labels(y, classes, regression, read)
        columns = [np.asarray(column, dtype=object) for column in sensitive]
        for j, column in enumerate(columns):
            fix, got = "Pass a list with one array a sensitive column.", f"{column.ndim} axes"
            need(column.ndim == 1, "one value a row", of=f"sensitive[{j}]", got=got, fix=fix)
        if groups is None:
            groups = [_distinct(column, f"sensitive[{j}]") for j, column in enumerate(columns)]
            read += ["groups"] if columns else []
        for values in groups:
            listed = not isinstance(values, str) and isinstance(values, Sequence | np.ndarray)
            expected = "a list of at most 65,536 groups a column"
            fix = 'Pass groups=[["f", "m"]], one list a sensitive column.'
            need(listed and len(values) <= 1 << 16, expected, of="groups", got=values, fix=fix)
        sizes = tuple(checks.whole(at_least=1, code_sizes=size) for size in code_sizes)
        names = tuple(sensitive_names) or tuple(f"sensitive_{j}" for j in range(len(columns)))
        listed_groups = tuple(map(tuple, groups))
        layout = RowLayout(numbers.shape[1], sizes, classes, listed_groups, names)
        coded = np.empty((0, n), np.uint16)
        coded = Cells(listed_groups, names=names).encode(columns) if columns else coded
        weights = None if sample_weight is None else _floats(sample_weight, "sample_weight")
        lines = np.empty((0, n), np.uint8) if codes is None else _codes(codes)
        for name, array in (
            ("y", labels),
            ("sensitive_features", coded),
            ("codes", lines),
            ("sample_weight", weights),
        ):
            length = n if array is None else array.shape[-1]
            expected = f"{n} entries, as many as X has rows"
            need(length == n, expected, of=name, got=length, fix="Align them.")
        by_column = numbers if hasattr(numbers, "indptr") else numbers.T
        whole = RowBlock(by_column, lines, labels, coded, weights)
        source = _Arrays(layout, whole, Traits(read_from_data=tuple(read)))
        return cls(source, max_sample_weight=max_sample_weight, units=units)

    # -- what is known of them ---------------------------------------------------------------------

    @property
    def read_from_data(self) -> tuple[str, ...]:
        """Public facts that were not stated but read from the rows ("classes", "groups"): not
        covered by any promise."""
        return traits_of(self._source).read_from_data

    @property
    def has_schema(self) -> bool:
        """Whether the source was coded by a schema, which then states classes and groups."""
        return hasattr(self._source, "encoding")

    @property
    def exact_count(self) -> int:
        """How many rows there are: the curator's to know, and under add-remove nobody else's."""
        return self._starts[-1]

    @property
    def exact_units(self) -> int:
        """How many are protected: persons, where a promise protects these and rows stand person by
        person; else rows."""
        return self.exact_count if self._begins is None else len(self._begins) - 1

    @property
    def knows_persons(self) -> bool:
        """Whether it was said whose each row is."""
        return self._persons is not None or self._by_person is not None

    @property
    def persons(self) -> Ints | None:
        """A number for each row: whose it is. None where rows stand person by person, or nobody
        said."""
        return self._persons

    @property
    def person_by_person(self) -> list[Array] | None:
        """Of rows that stand person by person, what blocks say of them (`PERSON_BY_PERSON`)."""
        return self._by_person

    @property
    def most_per_person(self) -> int:
        """The most rows that one person has: private, but where rows are public."""
        if self._by_person is not None:
            begins = persons.begins_in(self._by_person) if self._begins is None else self._begins
            return int(np.diff(begins).max(initial=0))
        return 0 if self._persons is None else int(np.bincount(self._persons).max(initial=0))

    @property
    def groups_are_own(self) -> bool:
        """Whether each who is protected is in one group of a column: a row, or a person whose rows
        all count in one."""
        return self._begins is None or self.one_group

    @property
    def most_of_one(self) -> int:
        """The most rows of one who is protected; 1 where rows are. Private, but where rows are
        public."""
        return 1 if self._begins is None else max(1, self.most_per_person)

    @property
    def offsets(self) -> Ints:
        """Where each coded feature's coefficients begin, after the intercept and the numbers."""
        starts = np.cumsum((0, *self.layout.code_sizes), dtype=np.int64)[:-1]
        return 1 + self.layout.numbers + starts

    def cells(self, mode: Any = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of all sensitive columns, or of those named."""
        return self.layout.cells(mode, names)

    @property
    def largest_number(self) -> float:
        """The largest |number|, for the data holder's own check before any release."""
        ends = (
            (one.numbers.max(initial=0.0), one.numbers.min(initial=0.0)) for one in self.blocks()
        )
        return max((float(max(high, -low)) for high, low in ends), default=0.0)

    # -- the same rows otherwise -------------------------------------------------------------------

    def _other(self) -> Rows:
        other = copy.copy(self)
        other._order, other._parts, other.largest_row = None, {}, None
        return other

    def by_person(
        self, most: int, coins: Stream, *, adds_by_person: bool, one_group: bool = False
    ) -> Rows:
        """At most so many rows of each person, chosen by coins, person by person, in one group
        perhaps: see `persons`."""
        if self._by_person is not None:
            inside = persons.kept_in_blocks(self._by_person, most, coins)
            return self.reading(inside, adds_by_person=adds_by_person, one_group=one_group)
        assert self._persons is not None
        assert self._kept is not None
        assert self._given is None
        index = persons.kept(self._persons, most, coins)
        raw = RowBlock.joined([one.raw for one in self._kept]).at(index)
        block = replace(Block.of(raw, self.layout), persons=self._persons[index])
        block = block.in_one_group() if one_group else block
        other = self._other()
        other._kept, other._starts, other._persons = [block], [0, block.rows], block.persons
        other._begins, other._given = persons.starts_of(block.persons), (self, index)
        # Gathered rows are a copy in memory: no file can change them any more.
        other._is_mapped, other._require_same = False, None
        other.adds_by_person, other.one_group = adds_by_person, one_group
        return other

    def reading(self, inside: list[Mask], *, adds_by_person: bool, one_group: bool = False) -> Rows:
        """Some rows of each block, where rows stand person by person: gathered at each pass."""
        assert self._by_person is not None
        assert self._given is None
        other = self._other()
        other._kept, other._inside, other._given = None, inside, (self, persons.NOBODY)
        other._starts = [0, *np.cumsum([int(one.sum()) for one in inside], dtype=np.int64).tolist()]
        other._begins = persons.begins_in(self._by_person, inside)
        other.adds_by_person, other.one_group = adds_by_person, one_group
        return other

    @property
    def given(self) -> Rows:
        """The rows as they came: all of them, in the order of their source."""
        return self if self._given is None else self._given[0]

    def of_given(self, found: list[Array]) -> list[Array]:
        """What was found of the rows as they came, block by block, for these rows."""
        if self._inside is not None:
            return [one[inside] for one, inside in zip(found, self._inside, strict=True)]
        return found if self._given is None else [np.concatenate(found)[self._given[1]]]

    def rescaled(self, scale: Floats, shift: Floats) -> Rows:
        """The same rows, each number x as scale x + shift, in the number type that it had. Dense
        numbers only.

        What leaves the range of that type is put at its end: this may come after a release, and
        then no row may fail. Rows are not taken in, and so not checked, again: a streamed source is
        mapped as it is read, after its own masked check.
        """
        fix = "A shift fills them in: hold dense numbers, or rows that need no rescaling."
        need(not self.sparse, "dense numbers", of="rows to rescale", got="sparse ones", fix=fix)
        by = tuple(np.array(one, np.float64)[:, np.newaxis] for one in (scale, shift))
        other = self._other()
        other._order = self._order
        if self._given is not None:
            other._given = (self._given[0].rescaled(scale, shift), self._given[1])
        if self._kept is None or self._is_mapped:
            other._maps = (*self._maps, (by[0], by[1]))
        else:
            maps = ((by[0], by[1]),)
            other._kept = [mapped(block, maps) for block in self._kept]
        return other

    # -- passes ------------------------------------------------------------------------------------

    def blocks(self) -> Iterator[Block]:
        """All blocks, once."""
        if self._inside is None or self._by_person is None:
            yield from map(self._through, self._unmapped())
            return
        # Gathered at each pass: a second copy of a large table is never held.
        for given in self.given.blocks():
            own = given.of_persons(self._by_person[given.number], self._inside[given.number])
            yield own.in_one_group() if self.one_group else own

    def _unmapped(self) -> Iterator[Block]:
        """All blocks, with numbers as the source has them."""
        if self._kept is None:
            yield from self._again()
            return
        if self._require_same is not None:
            self._require_same()
        yield from self._kept
        if self._require_same is not None:
            self._require_same()

    def _again(self) -> Iterator[Block]:
        """The blocks of a streamed source, checked as the first time. What is public of the first
        pass must hold in all: plans were made by it."""
        stream: Iterator[RowBlock] = iter(())
        for number in range(len(self._starts)):
            try:
                stream = iter(self._source.blocks()) if number == 0 else stream
                raw = next(stream, None)
                cap = self.max_sample_weight
                block = None if raw is None else prepare(raw, self.layout, number, cap)
            except Exception:
                # whatever the source, or a check of its rows, has to say: it may show a value
                _refuse_change()
            if number == len(self._starts) - 1 and raw is None:
                return
            if number == len(self._starts) - 1 or block is None or raw is None:
                _refuse_change()
            same = block.rows == self._starts[number + 1] - self._starts[number]
            same &= (raw.weights is not None) == self.weighted
            same &= (raw.labels is not None) == self.labelled
            if not same or (block.is_sparse and not self.sparse):
                _refuse_change()
            yield block

    def _through(self, block: Block) -> Block:
        """A block with its numbers mapped as they were asked to be."""
        return mapped(block, self._maps) if self._maps else block

    def of_units(self, index: Array) -> Iterator[Block]:
        """The rows of those at the sorted places `index`: persons with all that they have, or
        rows."""
        return self.drawn(self._rows_of_units(index))

    def _rows_of_units(self, index: Array) -> Array:
        return index if self._begins is None else persons.rows_of(self._begins, index)

    def part(self, part: Part) -> Iterator[Block]:
        """The rows of a fixed part. It is asked again every epoch, so gathered rows are kept where
        that is cheap."""
        if part not in self._parts:
            index = self._places_in(part)
            if self._kept is None or sum(block.size for block in self._kept) > MOST_GATHERED:
                yield from self.drawn(index)
                return
            self._parts[part] = list(self.drawn(index))
        yield from self._parts[part]

    def _places_in(self, part: Part) -> Array:
        if self._order is None:
            self._order = public_order(self.exact_units)
        return self._rows_of_units(np.sort(self._order[part.number :: part.parts]))

    def check_part(self, part: Part) -> None:
        """No part may be empty: the number of rows is public where parts are allowed."""
        units, one = self.exact_units, "row" if self._begins is None else "person"
        expected, fix = f"at most {units} parts, one a {one}", "Ask for fewer parts."
        need(part.parts <= max(1, units), expected, of="batch", got=part, fix=fix)

    def drawn(self, index: Array) -> Iterator[Block]:
        """The rows at the sorted positions `index`. Where numbers are still to be mapped, those of
        these rows alone are."""
        if len(self._starts) == 2 and self._kept is not None and self._require_same is None:
            yield self._through(self._kept[0].take(index))
            return
        cuts, gathered = np.searchsorted(index, self._starts), self._inside is not None
        for block in self.blocks() if gathered else self._unmapped():
            a, b = cuts[block.number], cuts[block.number + 1]
            if b > a:
                own = block.take(index[a:b] - self._starts[block.number])
                yield own if gathered else self._through(own)


def require_few(rows: int) -> None:
    """Refuse more rows than exact sums can hold: told as soon as it is known."""
    fix = "Sums are exact up to there; split the table over several curators."
    need(rows <= MOST_ROWS, f"at most {MOST_ROWS} rows", of="rows", got="more", fix=fix)


# -- plain arrays ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class _Arrays:
    """Arrays in memory as a `RowSource`: runs of ARRAY_ROWS rows. One of no rows where there are
    none: that rows have weights does not hang on whether somebody is there."""

    layout: RowLayout
    whole: RowBlock
    traits: Traits

    def blocks(self) -> Iterator[RowBlock]:
        n = self.whole.rows
        for a in range(0, max(n, 1), ARRAY_ROWS):
            yield self.whole.at(slice(a, min(n, a + ARRAY_ROWS)))


def _as_numbers(X: Any) -> Any:
    """X (rows, numbers): CSR, or of float32 or float64."""
    import scipy.sparse

    if scipy.sparse.issparse(X):
        sparse: Any = X
        return scipy.sparse.csr_array(sparse)
    fix = "Fill them in, or code them by a schema."
    filled = not np.ma.is_masked(X)
    need(filled, "numbers in every place", of="X", got="masked ones", fix=fix)
    numbers: Any = np.asarray(X)
    if numbers.dtype not in (np.float32, np.float64):
        kind = numbers.dtype
        with suppress(TypeError, ValueError):
            numbers = None if np.iscomplexobj(numbers) else numbers.astype(np.float64)
        right = numbers is not None and numbers.dtype == np.float64
        fix = "Encode words with a schema (fairveil.data.encode), or pass them as codes."
        need(right, "numbers", of="X", got=f"values of type {kind}", fix=fix)
    expected, got = "a table of shape (rows, numbers)", f"shape {numbers.shape}"
    need(numbers.ndim == 2, expected, of="X", got=got, fix="Reshape X.")
    return numbers


def _labels(
    y: object, classes: Sequence[Hashable] | None, regression: bool, read: list[str]
) -> tuple[Array | None, tuple[Hashable, ...] | None]:
    """Codes of labels and their classes, or targets."""
    if classes is not None:
        distinct, fix = len(set(classes)) == len(tuple(classes)), "Name each class once."
        need(distinct, "distinct classes", of="classes", got=classes, fix=fix)
    if y is None or regression:
        listed = None if classes is None or regression else tuple(classes)
        return None if y is None else _floats(y, "y"), listed
    labels = np.asarray(y)
    got = f"{labels.ndim} axes"
    need(labels.ndim == 1, "one axis", of="y", got=got, fix="Pass one label a row.")
    if classes is None:
        classes = _distinct(labels, "y")
        read.append("classes")
    code_of = {label: code for code, label in enumerate(classes)}
    try:
        coded = np.fromiter((code_of[label] for label in labels.tolist()), np.int32, len(labels))
    except KeyError as unknown:
        fix = "List every class in classes= or in the schema."
        expected = f"one of {list(classes)}"
        raise InputError.expected(expected, of="label", got=unknown.args[0], remedy=fix) from None
    return coded, tuple(classes)


def _distinct(values: Array, name: str) -> tuple[Hashable, ...]:
    """The values that occur, sorted; a missing one is not a value of its own unless somebody lists
    it."""
    try:
        found = set(values.tolist())
    except TypeError:
        found = {None}
    there = not any(value is None or value != value for value in found)
    fix = "List the values yourself (classes=, groups=), or use a schema."
    need(there, "a value in every row", of=name, got="missing ones", fix=fix)
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=repr))


def _floats(values: object, name: str) -> Floats:
    floats: Floats = np.empty((0, 0))
    with suppress(TypeError, ValueError):
        floats = np.array(values, np.float64)
    fix, got = "Pass one number a row.", type(values).__name__
    need(floats.ndim == 1, "one number a row", of=name, got=got, fix=fix)
    return floats


def _codes(codes: Any) -> Array:
    """(coded features, rows), a copy in native byte order."""
    lines = np.atleast_2d(np.asarray(codes).T)
    right, fix = lines.ndim == 2 and lines.dtype.kind in "iub", "Pass a column a coded feature."
    need(right, "whole numbers", of="codes", got=str(lines.dtype), fix=fix)
    native = np.uint8 if lines.dtype.kind == "b" else lines.dtype.newbyteorder("=")
    return np.array(lines, dtype=native, order="C")
