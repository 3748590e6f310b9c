"""The rows that a curator holds: blocks of numbers and category codes, ready for the kernels. Nothing here leaves the room.

Rows are checked when they are taken in: before any release, and seen by the data holder only. A streamed source is checked
again at each pass, must give the same rows each time, and an error then shows no value.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError, PrivacyError, complaint
from ..facts import Cells, RowBlock, RowLayout, RowSource
from .arrays import Table
from .block import Block, Drawn, prepare
from .sampling import Part, public_order

Floats = npt.NDArray[np.float64]
MOST_ROWS = 1 << 33  # sums of contributions below 2^30 grid units stay exact in 64-bit integers; public, fixed
MOST_GATHERED = 1 << 29  # bytes of rows that are kept a second time, part by part: a knob of speed only


class Rows:
    """All rows of a source, in memory or streamed from it at every pass.

    `Rows(source)` keeps the source's blocks (without copying where they already fit: do not change them afterwards);
    `Rows(source, in_memory=False)` reads them again at each pass, in bounded memory. `Rows.from_arrays` copies plain arrays.
    """

    def __init__(self, source: RowSource, *, in_memory: bool = True, max_sample_weight: float = 1.0) -> None:
        self.layout = source.layout
        self.max_sample_weight = _checks.positive(max_sample_weight=max_sample_weight, allow_inf=True)
        self._source = source
        self._offsets = _offsets(self.layout)
        self._kept: list[Block] | None = [] if in_memory else None
        self._starts = [0]
        self._maps: tuple[tuple[Floats, Floats], ...] = ()  # scale and shift of numbers, in turn, where rows are streamed
        self._order: npt.NDArray[np.int64] | None = None  # of fixed parts, once they are asked
        self._parts: dict[Part, list[Block]] = {}
        self.sparse = False  # whether any numbers are stored sparse: how a table is stored is public
        self.largest_row: float | None = None  # the largest weight x |row|, once somebody for whom rows are public asked
        self.largest_weight = 0.0  # for promises of no privacy, where no cap is needed
        weighted: set[bool] = set()
        labelled: set[bool] = set()
        for number, raw in enumerate(source.blocks()):
            block = prepare(raw, self.layout, number, self.max_sample_weight)
            self._starts.append(self._starts[-1] + block.rows)
            self.sparse |= block.is_sparse
            weighted.add(raw.weights is not None)
            self.largest_weight = max(self.largest_weight, float(block.weights.max(initial=0.0)))
            labelled.add(raw.labels is not None)
            if self._kept is not None:
                self._kept.append(block)
        for name, found in (("weights", weighted), ("labels", labelled)):
            if len(found) > 1:
                remedy = "Write ones where a row counts once; give every block its labels."
                raise InputError(complaint(expected=f"{name} in all blocks or in none", of="rows", got="some", remedy=remedy))
        self.weighted = True in weighted
        self.labelled = False not in labelled
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
        table = Table(X, y, sensitive, codes, code_sizes, classes, groups, sensitive_names, regression, sample_weight)
        return cls(table, max_sample_weight=max_sample_weight)

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
        names = tuple(self.layout.sensitive_names if names is None else (names,) if isinstance(names, str) else names)
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

    def rescaled(self, scale: Floats, shift: Floats) -> Rows:
        """The same rows, each number x as scale x + shift, in the number type that it had. Dense numbers only.

        What leaves the range of that type is put at its end: this may come after a release, and then no row may fail. Rows are
        not taken in, and so not checked, again: a streamed source is mapped as it is read, after its own masked check.
        """
        if self.sparse:
            raise InputError(
                complaint(
                    expected="dense numbers",
                    of="rows to rescale",
                    got="sparse ones",
                    remedy="A shift fills them in: hold dense numbers, or rows that need no rescaling.",
                )
            )
        by = (np.array(scale, np.float64)[:, np.newaxis], np.array(shift, np.float64)[:, np.newaxis])
        other = copy.copy(self)
        other.largest_row = None
        other._parts = {}
        if self._kept is None:
            other._maps = (*self._maps, by)
        else:
            other._kept = [_mapped(block, *by) for block in self._kept]
        return other

    @property
    def has_schema(self) -> bool:
        """Whether the source was coded by a schema, which then states classes and groups."""
        return getattr(self._source, "encoding", None) is not None

    def blocks(self) -> Iterator[Block]:
        """All blocks, once."""
        if self._kept is not None:
            yield from self._kept
            return
        stream: Iterator[RowBlock] = iter(())
        for number in range(len(self._starts)):
            try:
                stream = iter(self._source.blocks()) if number == 0 else stream
                raw = next(stream, None)
                block = None if raw is None else prepare(raw, self.layout, number, self.max_sample_weight)
            except Exception:  # whatever the source, or a check of its rows, has to say: it may show a value
                _refuse_change()
            if block is None or raw is None:
                if number == len(self._starts) - 1:
                    return
                _refuse_change()
            if block.is_sparse and not self.sparse:
                _refuse_change()
            same = number < len(self._starts) - 1 and block.rows == self._starts[number + 1] - self._starts[number]
            if not same or (raw.weights is not None) != self.weighted or (raw.labels is not None) != self.labelled:
                _refuse_change()
            for scale, shift in self._maps:
                block = _mapped(block, scale, shift)
            yield block

    def batch(self, index: npt.NDArray[np.integer]) -> Iterator[Block]:
        """The rows at the sorted positions `index`."""
        for drawn in self.drawn(index):
            yield drawn.gathered

    def part(self, part: Part) -> Iterator[Block | Drawn]:
        """The rows of a fixed part. It is asked again every epoch, so gathered rows are kept where that is cheap."""
        if part not in self._parts:
            if self._order is None:
                self._order = public_order(self.exact_count)
            index = np.sort(self._order[part.number :: part.parts])
            if self._kept is None or sum(block.size for block in self._kept) > MOST_GATHERED:
                yield from self.drawn(index)
                return
            self._parts[part] = list(self.batch(index))
        yield from self._parts[part]

    def check_part(self, part: Part) -> None:
        """No part may be empty: the number of rows is public where parts are allowed."""
        if part.parts > max(1, self.exact_count):
            remedy = "Ask for fewer parts."
            raise InputError(
                complaint(expected=f"at most {self.exact_count} parts, one a row", of="batch", got=part, remedy=remedy)
            )

    def drawn(self, index: npt.NDArray[np.integer]) -> Iterator[Drawn]:
        """The rows at the sorted positions `index`, not gathered yet."""
        if len(self._starts) == 2 and self._kept is not None:
            yield Drawn(self._kept[0], index)
            return
        cuts = np.searchsorted(index, self._starts)
        for block in self.blocks():
            a, b = cuts[block.number], cuts[block.number + 1]
            if b > a:
                yield Drawn(block, index[a:b] - self._starts[block.number])


def _mapped(block: Block, scale: Floats, shift: Floats) -> Block:
    """The block with its numbers mapped and kept finite. Never an error or a warning, whatever a row holds."""
    kind = block.numbers.dtype
    ends = np.finfo(kind)
    with np.errstate(all="ignore"):
        numbers = block.numbers * scale  # finite factors and a finite shift: infinite perhaps, but always a number
        numbers += shift
        np.clip(numbers, float(ends.min), float(ends.max), out=numbers)
        return replace(block, numbers=numbers.astype(kind, copy=False))


def _offsets(layout: RowLayout) -> npt.NDArray[np.int64]:
    starts = np.cumsum((0, *layout.code_sizes), dtype=np.int64)[:-1]
    return 1 + layout.numbers + starts


def _refuse_change() -> NoReturn:
    """Releases may have begun: the error shows no value."""
    raise PrivacyError(
        complaint(
            expected="the rows of the first pass",
            of="a streamed source",
            got="other rows",
            remedy="Keep the table as it is while a curator holds it, or hold it in memory.",
        )
    ) from None
