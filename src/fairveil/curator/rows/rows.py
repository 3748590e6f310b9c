"""The rows that a curator holds: blocks of numbers and category codes, ready for the kernels.
Nothing here leaves the room.

Rows are checked when they are taken in: before any release, and seen by the data holder only. A
streamed source is checked again at each pass, must give the same rows each time, and an error then
shows no value.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, Floats, Mask, TableLike
from ...core.noise import Stream
from ...errors import InputError
from ...facts import Cells, RowSource
from ...facts.rows import CodedSource, held_blocks, traits_of
from . import persons
from .arrays import ArrayRows
from .block import Block, Drawn
from .layouts import cells_of, offsets_of
from .mapping import Spare, Unmapped, mapped
from .prepared import prepare, prepared_again
from .refusals import refuse_scattered, refuse_sparse, require_alike, require_few
from .sampling import Part, public_order
from .threads import CORES

# sums of contributions below 2^30 grid units stay exact in 64-bit integers; public, fixed
MOST_GATHERED = 1 << 29


class Rows:
    """All rows of a source, in memory, mapped from the disk, or streamed from the source at every
    pass.

    `Rows(source)` keeps the source's blocks (without copying where they already fit: do not change
    them afterwards). Those of a source that `is_mapped` are views of a file, and stay so: what is
    made of their numbers is made anew at every pass. `Rows(source, in_memory=False)` reads them
    again at each pass, in bounded memory. `Rows.from_arrays` copies plain arrays. `units`: whose
    each row is, one value a row of all blocks together, for promises that protect persons.
    """

    is_elsewhere = False  # with another holder, whose curator is asked

    def __init__(
        self,
        source: RowSource,
        *,
        in_memory: bool = True,
        max_sample_weight: float = 1.0,
        units: ColumnsLike = None,
    ) -> None:
        self.layout = source.layout
        self.max_sample_weight = _checks.positive(
            max_sample_weight=max_sample_weight, allow_inf=True
        )
        self._source = source
        self._offsets = offsets_of(self.layout)
        self._kept: list[Block] | None = [] if in_memory else None
        traits = traits_of(source)
        self._is_mapped = traits.is_mapped
        self._require_same = traits.require_same  # of a file, at every pass
        self._starts = [0]
        # scale and shift of numbers, in turn, where rows are streamed
        self._maps: tuple[tuple[Floats, Floats], ...] = ()
        self._spare: Spare = deque(maxlen=2 * CORES)
        self._order: npt.NDArray[np.int64] | None = None  # of fixed parts, once they are asked
        self._parts: dict[Part, list[Block]] = {}
        # whether any numbers are stored sparse: how a table is stored is public
        self.sparse = False
        # the largest weight x |row|, once somebody for whom rows are public asked
        self.largest_row: float | None = None
        self.largest_weight = 0.0  # for promises of no privacy, where no cap is needed
        told: list[npt.NDArray[Any] | None] = []
        weighted: set[bool] = set()
        labelled: set[bool] = set()
        for number, raw in enumerate(held_blocks(source) if in_memory else source.blocks()):
            block = prepare(raw, self.layout, number, self.max_sample_weight)
            block.is_mapped = self._is_mapped
            self._starts.append(self._starts[-1] + block.rows)
            require_few(self._starts[-1])
            self.sparse |= block.is_sparse
            weighted.add(raw.weights is not None)
            self.largest_weight = max(self.largest_weight, float(block.weights.max(initial=0.0)))
            labelled.add(raw.labels is not None)
            told.append(raw.persons)
            if self._kept is not None:
                self._kept.append(block)
        require_alike(weights=weighted, labels=labelled)
        self.weighted = True in weighted
        self.labelled = False not in labelled
        self.adds_by_person = False  # gradients, before they are clipped
        self.one_group = False  # all rows of a person count in one group
        # of each person's rows, once they stand person by person
        self._begins: npt.NDArray[np.int64] | None = None
        self._persons: npt.NDArray[np.int64] | None = None
        # rows as they came, and which of them these are
        self._given: tuple[Rows, npt.NDArray[np.int64]] | None = None
        # of each block that stands person by person
        self._by_person = persons.by_person(told, units is not None)
        self._inside: list[Mask] | None = None  # which rows of such blocks are read
        if units is None and self._by_person is None and told and told[0] is not None:
            units = np.concatenate(told)  # type: ignore[arg-type]  # all blocks have them
        if units is not None:
            if not in_memory:
                refuse_scattered()
            self._persons = persons.persons_of(units, self._starts[-1])

    @classmethod
    def from_arrays(
        cls,
        X: TableLike,
        y: ColumnsLike = None,
        sensitive: Sequence[Any] = (),
        *,
        codes: object = None,
        code_sizes: Sequence[int] = (),
        classes: Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        sensitive_names: Sequence[str] = (),
        regression: bool = False,
        sample_weight: ColumnsLike = None,
        max_sample_weight: float = 1.0,
        units: object = None,
    ) -> Rows:
        """Rows from arrays: X (rows, numbers) dense or sparse, y labels (or targets), one array a
        sensitive column. `units`: whose each row is, where persons are to be protected.

        Classes and groups that are not given are read from the data, and `read_from_data` says so.
        """
        table = ArrayRows(
            X,
            y,
            sensitive,
            codes,
            code_sizes,
            classes,
            groups,
            sensitive_names,
            regression,
            sample_weight,
        )
        return cls(table, max_sample_weight=max_sample_weight, units=units)

    @property
    def read_from_data(self) -> tuple[str, ...]:
        """Public facts that were not stated but read from the rows ("classes", "groups"): not
        covered by any promise."""
        return traits_of(self._source).read_from_data

    @property
    def exact_count(self) -> int:
        """How many rows there are: the curator's to know, and under add-remove nobody else's."""
        return self._starts[-1]

    @property
    def knows_persons(self) -> bool:
        """Whether it was said whose each row is."""
        return self._persons is not None or self._by_person is not None

    @property
    def persons(self) -> npt.NDArray[np.int64] | None:
        """A number for each row: whose it is. None where rows stand person by person, or nobody
        said."""
        return self._persons

    @property
    def person_by_person(self) -> list[npt.NDArray[Any]] | None:
        """Of rows that stand person by person, what blocks say of them (`PERSON_BY_PERSON`)."""
        return self._by_person

    @property
    def most_per_person(self) -> int:
        """The most rows that one person has: private, but where rows are public."""
        if self._by_person is not None:
            begins = self._begins
            begins = persons.begins_of_all(self._by_person) if begins is None else begins
            return int(np.diff(begins).max(initial=0))
        return 0 if self._persons is None else int(np.bincount(self._persons).max(initial=0))

    @property
    def exact_units(self) -> int:
        """How many are protected: persons, where a promise protects these and rows stand person by
        person; else rows."""
        return self.exact_count if self._begins is None else len(self._begins) - 1

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
        other = copy.copy(self)
        block = persons.gathered(self._kept, index, self._persons)
        block = persons.in_one_group(block) if one_group else block
        other._kept, other._starts, other._persons = [block], [0, block.rows], block.persons
        other._begins = persons.starts_of(block.persons)
        # Gathered rows are a copy in memory: no file can change them any more.
        other._is_mapped, other._require_same = False, None
        other._order, other._parts, other.largest_row = None, {}, None
        other.adds_by_person, other.one_group = adds_by_person, one_group
        other._given = (self, index)
        return other

    def reading(self, inside: list[Mask], *, adds_by_person: bool, one_group: bool = False) -> Rows:
        """Some rows of each block, where rows stand person by person: gathered at each pass."""
        assert self._by_person is not None
        assert self._given is None
        other = copy.copy(self)
        other._kept, other._inside, other._given = None, inside, (self, persons.NOBODY)
        other._starts = [0, *np.cumsum([int(one.sum()) for one in inside], dtype=np.int64).tolist()]
        other._begins = persons.begins_in(self._by_person, inside)
        other.adds_by_person, other.one_group = adds_by_person, one_group
        other._order, other._parts, other.largest_row = None, {}, None
        return other

    @property
    def given(self) -> Rows:
        """The rows as they came: all of them, in the order of their source."""
        return self if self._given is None else self._given[0]

    def of_given(self, found: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """What was found of the rows as they came, block by block, for these rows."""
        if self._inside is not None:
            return [one[inside] for one, inside in zip(found, self._inside, strict=True)]
        return found if self._given is None else [np.concatenate(found)[self._given[1]]]

    def of_units(self, index: npt.NDArray[np.integer]) -> Iterator[Drawn]:
        """The rows of those at the sorted places `index`: persons with all that they have, or
        rows."""
        yield from self.drawn(
            index if self._begins is None else persons.rows_of(self._begins, index)
        )

    @property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each coded feature's coefficients begin, after the intercept and the numbers."""
        return self._offsets

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of all sensitive columns, or of those named."""
        return cells_of(self.layout, mode, names)

    def rescaled(self, scale: Floats, shift: Floats) -> Rows:
        """The same rows, each number x as scale x + shift, in the number type that it had. Dense
        numbers only.

        What leaves the range of that type is put at its end: this may come after a release, and
        then no row may fail. Rows are not taken in, and so not checked, again: a streamed source is
        mapped as it is read, after its own masked check.
        """
        if self.sparse:
            refuse_sparse()
        by = (
            np.array(scale, np.float64)[:, np.newaxis],
            np.array(shift, np.float64)[:, np.newaxis],
        )
        other = copy.copy(self)
        other.largest_row = None
        other._parts = {}
        other._given = (
            None if self._given is None else (self._given[0].rescaled(scale, shift), self._given[1])
        )
        if self._kept is None or self._is_mapped:
            other._maps = (*self._maps, by)
        else:
            other._kept = [mapped(block, *by) for block in self._kept]
        return other

    @property
    def largest_number(self) -> float:
        """The largest |number|, for the data holder's own check before any release."""
        ends = (
            (block.numbers.max(initial=0.0), -block.numbers.min(initial=0.0))
            for block in self.blocks()
        )
        return max((float(max(pair)) for pair in ends), default=0.0)

    @property
    def has_schema(self) -> bool:
        """Whether the source was coded by a schema, which then states classes and groups."""
        return isinstance(self._source, CodedSource)

    def blocks(self) -> Iterator[Block]:
        """All blocks, once."""
        # Gathered at each pass: a second copy of a large table is never held.
        if self._inside is not None and self._by_person is not None:
            for given in self.given.blocks():
                own = persons.only(given, self._by_person[given.number], self._inside[given.number])
                yield persons.in_one_group(own) if self.one_group else own
            return
        yield from map(self._through, self._unmapped())

    def passed(self) -> Iterator[Block | Unmapped]:
        """All blocks, once, for a pass that maps numbers as it comes to them."""
        if self._inside is not None or not self._maps:
            yield from self.blocks()
            return
        for block in self._unmapped():
            yield Unmapped(block, self._maps, self._spare)

    def _unmapped(self) -> Iterator[Block]:
        """All blocks, with numbers as the source has them."""
        if self._kept is None:
            known = (self._starts, self.sparse, self.weighted, self.labelled)
            yield from prepared_again(self._source, self.max_sample_weight, *known)
            return
        if self._require_same is not None:
            self._require_same()
        yield from self._kept
        if self._require_same is not None:
            self._require_same()

    def _through(self, block: Block) -> Block:
        """A block with its numbers mapped as they were asked to be."""
        return Unmapped(block, self._maps, deque()).mapped if self._maps else block

    def batch(self, index: npt.NDArray[np.integer]) -> Iterator[Block]:
        """The rows at the sorted positions `index`."""
        for drawn in self.drawn(index):
            yield drawn.gathered

    def part(self, part: Part) -> Iterator[Block | Drawn]:
        """The rows of a fixed part. It is asked again every epoch, so gathered rows are kept where
        that is cheap."""
        if part not in self._parts:
            if self._order is None:
                self._order = public_order(self.exact_units)
            index = np.sort(self._order[part.number :: part.parts])
            index = index if self._begins is None else persons.rows_of(self._begins, index)
            if self._kept is None or sum(block.size for block in self._kept) > MOST_GATHERED:
                yield from self.drawn(index)
                return
            self._parts[part] = list(self.batch(index))
        yield from self._parts[part]

    def check_part(self, part: Part) -> None:
        """No part may be empty: the number of rows is public where parts are allowed."""
        if part.parts > max(1, self.exact_units):
            remedy, one = "Ask for fewer parts.", "row" if self._begins is None else "person"
            raise InputError.expected(
                f"at most {self.exact_units} parts, one a {one}",
                of="batch",
                got=part,
                remedy=remedy,
            )

    def drawn(self, index: npt.NDArray[np.integer]) -> Iterator[Drawn]:
        """The rows at the sorted positions `index`, not gathered yet."""
        if len(self._starts) == 2 and self._kept is not None and self._require_same is None:
            yield self._drawn(self._kept[0], index)
            return
        cuts = np.searchsorted(index, self._starts)
        for block in self.blocks() if self._inside is not None else self._unmapped():
            a, b = cuts[block.number], cuts[block.number + 1]
            if b > a:
                yield self._drawn(block, index[a:b] - self._starts[block.number])

    def _drawn(self, block: Block, index: npt.NDArray[np.integer]) -> Drawn:
        """Rows of a block. Where numbers are still to be mapped, those of these rows alone are."""
        if not self._maps or self._inside is not None:
            return Drawn(block, index)
        return Drawn(self._through(block.take(index)), np.arange(len(index)))
