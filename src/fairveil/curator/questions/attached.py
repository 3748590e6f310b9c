"""Questions whose contributions are found outside the loops: code of the caller beside the rows,
models and codes made elsewhere, mixtures of rules, rules with an intercept for every group.

What is enforced of a caller's code: its output is checked to be finite, clipped, and put on the
grid. What is trusted: that each row's output depends on that row alone and leaves no trace
elsewhere. The statement says that user code was trusted.

Guarantees (tests/curator/test_curator_attached.py, test_curator_row_function.py)
    1. What was attached stays with the rows; a handle holds none of it that can be read.
    2. Whatever code of the caller returns, a row contributes what depends on that row's output
       alone: a vector within the clip, a point of the simplex (or its shrinking), or one code.
       A row whose output is not finite, or that fails, contributes zero, and no other row does.
    3. No neighbour moves a histogram, of all groups or of one, of soft or of hard decisions,
       further than `scale` and `scale_of_change` say, under every relation, whatever models, codes,
       offsets and shares are. Its bound does not depend on how many codes there are.
    4. An exception does not end the fit and is not shown before it has ended, nor is what the code
       warns of, prints or logs (`quiet`): `Curator.trouble()` then tells the data holder.
    5. Codes given as an array are taken only where features and labels are public, one whole number
       a row.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats, Ints
from ...core import bound as sensitivity
from ...core.bound import Bound
from ...core.errors import need
from ...core.promise import Promise
from ...core.rows import EMPTY_FLOAT, EMPTY_INT, Block, Rows
from ...core.sums import Run, added, whole_steps
from ...errors import PrivacyError
from ...facts import Cells, RowLayout
from ...models.shifted import softened
from ..question import (
    Linear,
    OwnJob,
    Scale,
    cell_count,
    check_group,
    comes_or_goes,
    gridded,
    need_classes,
)
from ..quiet import Troubles, quietly

Job = Callable[[Block, int, int], tuple[Ints, ...]]
COLUMNS = frozenset({"features", "label", "sensitive"})
MOST_CODES = 1 << 16


# -- a function of each row ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowFunction(OwnJob):
    """The sum of a user's function of each row, clipped to norm `clip`: shape `(width,)`.

    `function(block)` gets a `Block` (numbers, codes, labels, sensitive) and returns an array (rows,
    width). `columns_read` names what it reads, among "features", "label", "sensitive"; it is not
    given the rest. What fails on every row is better known before anything is released: `rehearse`
    tries the code on made-up rows.
    """

    name: ClassVar[str] = "row function"
    function: Callable[[Block], Any]
    width: int
    clip: float = field()
    columns_read: frozenset[str] = COLUMNS
    cells: Cells | None = None
    title: str = "user code"
    # the asking curator's own, kept until the run has ended
    _troubles: Troubles = field(default_factory=Troubles, repr=False)

    def __post_init__(self) -> None:
        _checks.whole(at_least=1, width=self.width)
        _checks.positive(clip=self.clip)
        known, words = set(self.columns_read) <= COLUMNS, f"some of {sorted(COLUMNS)}"
        fix = "Say which columns the function reads; it is not given the rest."
        need(known, words, of="columns_read", got=sorted(self.columns_read), fix=fix)

    @property
    def why(self) -> str:
        return f"outputs are clipped to norm {self.clip:g}"

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.columns_read)

    @property
    def per_row(self) -> int:
        return 1

    @property
    def has_cells(self) -> bool:
        return False

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        return (self.width,)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        clip, most = self.clip, cap or 1.0
        if order == 1:
            return gridded(Bound(clip * most, 2 * clip * most, 1), self.width)
        rounding = 1.0 + (self.width + 32) * 2.0**-52
        return gridded(sensitivity.of_signed(clip * rounding, most), self.width)

    def job(self, scale: Scale, layout: RowLayout) -> Job:
        """Total rows a to b of a block."""

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            part = block if (a, b) == (0, block.rows) else block.take(np.arange(a, b))
            values = self.bounded(part, 1 if scale.bound.order == 1 else 2)
            if len(part.weights):
                values = values * part.weights[:, np.newaxis]
            return (_steps(values, scale).sum(axis=0),)

        return job

    def bounded(self, block: Block, order: int) -> Floats:
        """The function's output, one row at a time where it fails, finite and clipped to
        `clip`."""
        values = quietly(self._troubles, self._of_all, block)
        finite = np.asarray(np.isfinite(values).all(axis=1))
        if not finite.all():
            self._troubles.append("some rows gave NaN or infinite values; they contributed zero")
            values = np.where(finite[:, np.newaxis], values, 0.0)
        largest = np.abs(values).max(axis=1, initial=0.0)[:, np.newaxis]
        # In units of the largest coordinate, so that neither a square nor a quotient leaves the
        # range of floats.
        largest = np.where(largest > 0, largest, 1.0)
        sizes = np.linalg.norm(values / largest, ord=order, axis=1, keepdims=True)
        clipped = np.minimum(largest, self.clip / np.maximum(sizes, 1.0))
        return np.asarray((values / largest) * clipped)

    def rehearse(
        self, layout: RowLayout, rows: int | None = None, unlike: Collection[int] = ()
    ) -> None:
        """Try the function on made-up rows, all zeros, before any data are read: what is wrong
        then may be told at once.

        What it returns must be finite numbers of shape (rows, width). `rows`: None for a number
        unlike the width, the columns of the layout and every number in `unlike`, such as the length
        of another parameter: a result that is transposed, or that has one line a parameter, then
        has another shape.
        """
        coded, sensitive = len(layout.code_sizes), len(layout.sensitive)
        taken = {self.width, layout.numbers, coded, sensitive, *unlike}
        if rows is None:
            rows = next(n for n in itertools.count(2) if n not in taken)
        rows = _checks.whole(at_least=1, rows=rows)
        block = Block(
            layout,
            rows,
            np.zeros((layout.numbers, rows)),
            EMPTY_INT,
            EMPTY_INT,
            np.zeros((coded, rows), np.uint8),
            np.zeros(rows, np.float64 if layout.classes is None else np.int32),
            np.zeros((sensitive, rows), np.uint16),
            EMPTY_FLOAT,
        )
        troubles = Troubles()
        values = replace(self, _troubles=troubles)._of(block)
        got = "NaN or infinite values" if values is not None else "; ".join(troubles)
        need(
            values is not None and np.isfinite(values).all(),
            f"finite numbers of shape (rows, {self.width})",
            of=self.title,
            got=got,
            fix=f"These were {rows} rows of zeros: no data were read. Return one line a row, "
            "finite for zeros too, and try the function on rows of your own making.",
        )

    def unclipped(self, rows: Rows) -> RowFunction:
        """The same question with a clip that no row reaches: without privacy nothing is clipped."""
        whole = replace(self, clip=1e150)
        sizes = [
            np.abs(whole.bounded(block, 2)).sum(axis=1).max(initial=0.0) for block in rows.blocks()
        ]
        return replace(self, clip=max(float(max(sizes, default=0.0)) * 2.0, 1e-150))

    def _shown(self, block: Block) -> Block:
        """The block, read-only, without the columns that the function is not said to read."""
        reads, none = self.columns_read, (0, block.rows)
        hidden = replace(block, weights=np.empty(0), chosen=None, _cells={})
        if "label" not in reads:
            hidden.labels = np.empty(0, np.int32)
        if "sensitive" not in reads:
            hidden.sensitive = np.empty(none, np.uint16)
        if "features" not in reads:
            hidden.numbers, hidden.codes = np.empty(none), np.empty(none, np.uint8)
            hidden.indptr = hidden.indices = np.empty(0, np.int32)
        for name in ("numbers", "indptr", "indices", "codes", "labels", "sensitive"):
            view = getattr(hidden, name).view()
            view.setflags(write=False)
            setattr(hidden, name, view)
        return hidden

    def _of_all(self, block: Block) -> Floats:
        values = self._of(block)
        if values is None:
            each = [self._of(block.take(np.array([i]))) for i in range(block.rows)]
            lines = [np.zeros((1, self.width)) if row is None else row for row in each]
            values = np.concatenate(lines or [np.zeros((0, 1))])
        return values

    def _of(self, block: Block) -> Floats | None:
        try:
            values = np.asarray(self.function(self._shown(block)), np.float64)
        except Exception as error:  # masked on purpose: an error may depend on one private row
            self._troubles.append(f"{type(error).__name__}: {error}")
            return None
        wanted = (block.rows, self.width)
        if values.shape != wanted:
            self._troubles.append(f"expected shape {wanted}, got {values.shape}")
            return None
        return values


# -- what is attached to rows ----------------------------------------------------------------------


class Handle:
    """What the curator keeps of each row, attached; nothing of it can be read. Abstract."""

    __slots__ = ("_kept", "_rows", "columns_read", "title")

    def __init__(self, rows: Rows, columns_read: frozenset[str], title: str) -> None:
        self._rows, self.columns_read, self.title = rows, columns_read, title
        self._kept: list[npt.NDArray[Any]] = []

    def _found(
        self,
        function: Callable[[Block], Floats],
        width: int,
        clip: float,
        troubles: Troubles | None,
    ) -> list[Floats]:
        """What a caller's function gives of each row that was given, bounded, block by block."""
        told = troubles or Troubles()
        asked = RowFunction(function, width, clip, columns_read=self.columns_read, _troubles=told)
        return [asked.bounded(block, 1) for block in self._rows.given.blocks()]

    def is_of(self, rows: Rows) -> bool:
        """Whether it is of these rows."""
        return self._rows is rows

    def of(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        """What was attached to rows a to b of a block."""
        whole = self._kept[block.number]
        return np.asarray(whole[a:b] if block.chosen is None else whole[block.chosen[a:b]])


class Attached(Handle):
    """A handle on a model whose predictions for the rows the curator keeps. `Curator.attach` makes
    it."""

    __slots__ = ("classes",)

    def __init__(
        self,
        function: Callable[[Block], Any],
        rows: Rows,
        columns_read: frozenset[str],
        title: str,
        troubles: Troubles | None = None,
    ) -> None:
        super().__init__(rows, columns_read, title)
        self.classes = need_classes(rows.layout, "an attached model")

        def shares(block: Block) -> Floats:
            out = np.asarray(function(block))
            out = out.astype(np.int64) if out.dtype == np.bool_ else out
            return np.asarray(np.eye(self.classes)[out] if out.ndim == 1 else out, np.float64)

        found = [np.maximum(p, 0.0) for p in self._found(shares, self.classes, 1.0, troubles)]
        # nonnegative rows whose sum is at most 1
        self._kept = rows.of_given(
            [p / np.maximum(1.0, p.sum(axis=1, keepdims=True)) for p in found]
        )

    @staticmethod
    def unseen(layout: RowLayout, columns_read: Collection[str], title: str) -> Attached:
        """A handle without rows, for plans: what may be asked about it, and at what price."""
        out = Attached.__new__(Attached)
        out.classes, out.title = need_classes(layout, "an attached model"), title
        out.columns_read = frozenset(columns_read)
        return out


class AttachedCodes(Handle):
    """A handle on a code for each row, such as the bin of a score, which the curator keeps.
    `Curator.attach_codes` makes it."""

    __slots__ = ("count",)

    def __init__(
        self,
        function: Callable[[Block], Any],
        rows: Rows,
        count: int,
        columns_read: frozenset[str],
        title: str,
        troubles: Troubles | None = None,
    ) -> None:
        super().__init__(rows, columns_read, title)
        self.count = _checks.whole(at_least=1, count=count)
        few, words = self.count <= MOST_CODES, f"at most {MOST_CODES} codes"
        need(few, words, of="count", got=count, fix="Take wider bins.")

        def column(block: Block) -> Floats:
            return np.asarray(function(block), np.float64).reshape(block.rows, -1)

        found = self._found(column, 1, float(self.count), troubles)
        self._kept = [
            np.clip(np.rint(codes), 0, self.count - 1).astype(np.intp)
            for codes in rows.of_given([codes[:, 0] for codes in found])
        ]


def given_codes(codes: object, rows: Rows, promise: Promise) -> Callable[[Block], Any]:
    """Codes of all rows that were made of public columns, block by block."""
    public, fix = promise.features_are_public, "Pass a function of a block: it runs inside."
    words = "public features and labels"
    need(public, words, of="codes", got=promise.protects, fix=fix, error=PrivacyError)
    array, rows = np.asarray(codes), rows.given
    right = array.shape == (rows.exact_count,) and array.dtype.kind in "iu"
    words, got = f"{rows.exact_count} whole numbers", f"{array.dtype} of shape {array.shape}"
    need(right, words, of="codes", got=got, fix="Pass one code a row, in the order of the rows.")
    parts = np.split(array, np.cumsum([block.rows for block in rows.blocks()])[:-1])
    return lambda block: parts[block.number]


# -- histograms ------------------------------------------------------------------------------------


class ByDecision(OwnJob):
    """A histogram by cell (and label) of what `decided` says of rows. Abstract.

    A row is in one cell (one of each column, of marginal groups), with one label, and adds one for
    one code, or a point of the simplex: L1 and L2 are those of any histogram, 1 and 1 (add-remove),
    2 and sqrt 2. Whole counts may have discrete Laplace noise. `group`: that one cell alone, of
    product cells. With sensitive features alone protected L1 and L2 are then 1, for a row keeps its
    place and only comes or goes (theory.md#post-processing), so long as what it adds does: that is
    not read from the sensitive columns, or all of them make the cells, and within the group they
    are fixed.
    """

    cells: Cells | None
    by_label: bool

    @property
    def is_whole(self) -> bool:
        """Whether a row adds one for one code."""
        return True

    @property
    def read_by_decisions(self) -> frozenset[str]:
        """What decisions depend on."""
        return self.columns

    def outputs(self, layout: RowLayout) -> int:
        """How many codes are told."""
        raise NotImplementedError

    def codes(self, layout: RowLayout) -> int:
        """How many codes there are, of which the last are told."""
        return self.outputs(layout)

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        """Of rows a to b: a code each, (rows,), or a point of the simplex each, (rows, outputs)."""
        raise NotImplementedError

    @property
    def why(self) -> str:
        return "a row has one decision in one cell"

    @property
    def reads(self) -> frozenset[str]:
        read = super().reads | self.read_by_decisions
        return read | {"label"} if self.by_label else read

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        labels = (need_classes(layout, self.name),) if self.by_label else ()
        return (cell_count(self.cells) if self.group is None else 1, *labels, self.outputs(layout))

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        bound = sensitivity.of_histogram(cap or 1.0, self.per_row, order)
        if not self.is_whole:
            return gridded(bound, self.per_row * self.outputs(layout))
        return Scale(bound, 0) if cap is None else gridded(bound, self.per_row)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        scale = self.scale(layout, cap, order)
        if self.group is None or self.cells is None:
            return scale
        made_of_all = set(self.cells.names) == set(layout.sensitive_names)
        fixed = "sensitive" not in self.read_by_decisions or made_of_all
        return comes_or_goes(scale) if fixed else scale

    def job(self, scale: Scale, layout: RowLayout) -> Job:
        """Count decisions by cell."""
        labels = need_classes(layout, self.name) if self.by_label else 1
        codes = self.codes(layout)
        first = codes - self.outputs(layout)

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            found = self.decided(block, a, b)
            if found.ndim == 2:
                table = scattered(self.cells, block, a, b, found, labels, scale)
            else:
                table = _counted(self, block, a, b, found, labels, codes, scale)[:, first:]
            one = self.group
            return (table if one is None else table[one * labels : (one + 1) * labels],)

        return job


def _counted(
    question: ByDecision,
    block: Block,
    a: int,
    b: int,
    codes: npt.NDArray[Any],
    labels: int,
    count: int,
    scale: Scale,
) -> Ints:
    """How many rows, or what weight, of each cell and label have each code, in grid units."""
    label = np.asarray(block.labels[a:b], np.intp) if question.by_label else 0
    out = np.zeros(cell_count(question.cells) * labels * count, np.int64)
    for line in block.cells(question.cells)[:, a:b]:
        places = (line.astype(np.intp) * labels + label) * count + codes
        if len(block.weights):
            np.add.at(out, places, _steps(block.weights[a:b], scale))
        else:
            out += np.bincount(places, minlength=len(out)) * int(math.ldexp(1.0, scale.exponent))
    return out.reshape(-1, count)


def scattered(
    cells: Cells | None, block: Block, a: int, b: int, values: Floats, labels: int, scale: Scale
) -> Ints:
    """Sums of values (rows, k) by cell and label, in grid units."""
    weights = block.weights[a:b] if len(block.weights) else 1.0
    lines = block.cells(cells)[:, a:b].astype(np.int64) * labels
    lines = lines + (block.labels[a:b] if labels > 1 else 0)
    steps = whole_steps(values.T, weights, math.ldexp(1.0, scale.exponent))
    return added(lines, steps, cell_count(cells) * labels)


def _steps(values: Floats, scale: Scale) -> Ints:
    return np.asarray(np.rint(values * math.ldexp(1.0, scale.exponent)), np.int64)


@dataclass(frozen=True, eq=False)
class AttachedHistogram(ByDecision):
    """How an attached model's predictions fall in each cell (and label): shape (cells[, labels],
    classes). See `ByDecision` for bounds and `group`.

    `decisions="soft"`: a row adds its probabilities; `"hard"`: one for the class of the largest,
    the first of equal ones (even of zeros).
    """

    name: ClassVar[str] = "histogram of an attached model"
    attached: Attached = field()
    cells: Cells | None = None
    by_label: bool = False
    decisions: str = "soft"
    group: int | None = None

    def __post_init__(self) -> None:
        _checks.one_of(("soft", "hard"), decisions=self.decisions)
        _checks.normalise(self, group=check_group(self.cells, self.group))

    @property
    def is_whole(self) -> bool:
        return self.decisions == "hard"

    @property
    def why(self) -> str:
        return "a row's prediction is a point of the simplex"

    @property
    def read_by_decisions(self) -> frozenset[str]:
        return self.attached.columns_read

    def outputs(self, layout: RowLayout) -> int:
        return self.attached.classes

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        shares = self.attached.of(block, a, b)
        return np.asarray(shares.argmax(axis=1)) if self.is_whole else shares


@dataclass(frozen=True, eq=False)
class ShiftedHistogram(AttachedHistogram):
    """How decisions by p(k | x) - offsets[cell, k] fall in each product cell: shape (cells,
    classes). Offsets are public or released (theory.md#moved-decisions).

    `decisions="soft"`: a row adds the softmax of these differences over `temperature`, a point of
    the simplex. `"hard"`: one for the largest of them.
    """

    name: ClassVar[str] = "histogram of shifted decisions"
    offsets: Any = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.positive(temperature=self.temperature)
        cells, fix = self.cells, "Pass product cells, and neither by_label nor group."
        apart = cells is not None and cells.mode == "product"
        apart = apart and self.group is None and not self.by_label
        need(apart, "cells that do not overlap", of="cells", got=cells, fix=fix)
        wanted = (cell_count(cells), self.attached.classes)
        _checks.normalise(self, offsets=_offsets(self.offsets, wanted, apart=True))

    @property
    def why(self) -> str:
        return "a row's decision is a point of the simplex"

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        (line,) = block.cells(self.cells)[:, a:b]
        moved = self.attached.of(block, a, b) - self.offsets[line]
        return np.asarray(
            moved.argmax(axis=1) if self.is_whole else softened(moved, self.temperature)
        )


@dataclass(frozen=True, eq=False)
class CodeHistogram(ByDecision):
    """How many rows (their weights) of each cell (and label) have each code: shape (cells[,
    labels], codes). See `ByDecision` for bounds and `group`."""

    name: ClassVar[str] = "histogram of attached codes"
    columns: ClassVar[frozenset[str]] = frozenset()
    attached: AttachedCodes = field()
    cells: Cells | None = None
    by_label: bool = False
    group: int | None = None

    def __post_init__(self) -> None:
        _checks.normalise(self, group=check_group(self.cells, self.group))

    @property
    def why(self) -> str:
        return "a row has one code"

    @property
    def read_by_decisions(self) -> frozenset[str]:
        return self.attached.columns_read

    def outputs(self, layout: RowLayout) -> int:
        return self.attached.count

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        return self.attached.of(block, a, b)


@dataclass(frozen=True, eq=False)
class GroupedHistogram(ByDecision):
    """How the decisions of score + offsets[group] fall in each cell (and label): shape (cells[,
    labels], outputs).

    `of`: the product cells that decide; `offsets` (groups, outputs). A row's cell and its decision
    may both change with its sensitive features (theory.md#counts).
    """

    name: ClassVar[str] = "histogram of decisions by group"
    model: Linear = field()
    offsets: Any
    of: Cells
    cells: Cells | None = None
    by_label: bool = False

    def __post_init__(self) -> None:
        apart = self.of.mode == "product" and not self.model.many
        wanted = (self.of.count, self.model.outputs)
        _checks.normalise(self, offsets=_offsets(self.offsets, wanted, apart=apart))

    @property
    def read_by_decisions(self) -> frozenset[str]:
        return self.columns | {"sensitive"}

    def outputs(self, layout: RowLayout) -> int:
        self.model.check(layout)
        return self.model.outputs

    def codes(self, layout: RowLayout) -> int:
        return max(2, self.model.outputs)  # of two classes the second's rows are told

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        layout = block.layout
        places = np.cumsum([1 + layout.numbers, *layout.code_sizes], dtype=np.int64)[:-1]
        z, _ = Run(block, places, a, b).scores(self.model.array[0], apart=False)
        z = z + self.offsets[block.cells(self.of)[0][a:b]].T
        return np.asarray((z[0] > 0) if len(z) == 1 else z.argmax(axis=0), np.int64)


def _offsets(given: object, wanted: tuple[int, int], *, apart: bool) -> Floats:
    table = np.array(given, np.float64)
    right = apart and table.shape == wanted and np.isfinite(table).all()
    expected = f"finite offsets of shape {wanted}, of product groups"
    fix = "Give one line of offsets a group, a number for each class or score, and one model."
    need(right, expected, of="offsets", got=table.shape, fix=fix)
    table.setflags(write=False)
    return table


@dataclass(frozen=True, eq=False)
class MixtureHistogram(ByDecision):
    """The expected decisions of a mixture of linear rules, by cell (and label): shape (cells[,
    labels], classes). One release for the whole mixture, whatever it is made of.

    `weights` (rules, outputs, 1 + width): linear rules, the intercept first. `shares` (rules,): how
    much of the mixture each is, not negative, 1 together. A row adds the share of rules that decide
    for each class, a function of that row alone, to the bit: no product of matrices decides in
    which order it is added.
    """

    name: ClassVar[str] = "histogram of a mixture"
    weights: Any
    shares: Any
    cells: Cells | None = None
    by_label: bool = False

    def __post_init__(self) -> None:
        weights, shares = np.array(self.weights, np.float64), np.array(self.shares, np.float64)
        fits = weights.ndim == 3 and shares.shape == weights.shape[:1] and len(shares) > 0
        right = fits and np.isfinite(weights).all() and (shares >= 0).all()
        right = right and abs(shares.sum() - 1.0) < 1e-6
        got = f"shapes {weights.shape} and {shares.shape}"
        fix = "One line a rule, and one share each; shares add up to 1."
        need(right, "rules and their shares", of=self.name, got=got, fix=fix)
        for array in (weights, shares):
            array.setflags(write=False)
        _checks.normalise(self, weights=weights, shares=shares)

    @property
    def is_whole(self) -> bool:
        return False

    @property
    def why(self) -> str:
        return "a row's expected decision is a point of the simplex"

    def outputs(self, layout: RowLayout) -> int:
        classes = need_classes(layout, self.name)
        wanted = (1 if classes <= 2 else classes, 1 + layout.width)
        fix = "The intercept comes first, then numbers, then the categories of each coded feature."
        got = self.weights.shape[1:]
        need(got == wanted, f"rules {wanted}", of=self.name, got=got, fix=fix)
        return classes

    def decided(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        law = np.zeros((b - a, self.outputs(block.layout)))
        for weights, share in zip(self.weights, self.shares, strict=True):
            law[np.arange(b - a), rule_decisions(block, a, b, weights)] += share
        return np.asarray(law / np.maximum(1.0, law.sum(axis=1, keepdims=True)))


def rule_decisions(block: Block, a: int, b: int, weights: Floats) -> npt.NDArray[np.intp]:
    """The class that a linear rule (outputs, 1 + width) decides for, rows a to b: sums in one fixed
    order a row."""
    scores = np.repeat(weights[:, :1], b - a, axis=1)
    if block.is_sparse:
        at = np.repeat(np.arange(b - a), np.diff(block.indptr[a : b + 1]))
        stored = slice(block.indptr[a], block.indptr[b])
        values = np.asarray(block.numbers[0, stored], np.float64)
        for line, w in zip(scores, weights, strict=True):
            np.add.at(line, at, w[1 + block.indices[stored]] * values)
    else:
        for j, column in enumerate(block.numbers[:, a:b]):
            scores += weights[:, 1 + j, np.newaxis] * np.asarray(column, np.float64)
    first = 1 + block.layout.numbers
    for column, size in zip(block.codes[:, a:b], block.layout.code_sizes, strict=True):
        scores += weights[:, first + column.astype(np.intp)]
        first += size
    two = len(scores) == 1
    return np.asarray((scores[0] > 0).astype(np.intp) if two else scores.argmax(axis=0))
