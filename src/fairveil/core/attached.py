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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import checks
from .bound import Bound, of_histogram, of_signed
from .errors import PrivacyError, need
from .layout import Cells, Floats, RowLayout
from .promise import Promise
from .questions import (
    FEATURES,
    LABEL,
    SENSITIVE,
    Facts,
    Kind,
    Linear,
    Question,
    Sum,
    cell_count,
    checked_group,
    classes_of,
    read_columns,
)
from .quiet import Troubles, quietly
from .rows import EMPTY_FLOAT, EMPTY_INT, Block, Rows
from .sums import SIMPLEX, Run, added, comes_or_goes, gridded, whole_steps

COLUMNS = frozenset({FEATURES, LABEL, SENSITIVE})
MOST_CODES = 1 << 16


# -- a function of each row ------------------------------------------------------------------------


def row_function(
    facts: Facts,
    function: Callable[[Block], Any],
    width: int,
    clip: float,
    columns_read: frozenset[str] = COLUMNS,
    title: str = "user code",
    _troubles: Troubles | None = None,
) -> Sum:
    """The sum of a user's function of each row, clipped to norm `clip`: shape `(width,)`.

    `function(block)` gets a `Block` (numbers, codes, labels, sensitive) and returns an array (rows,
    width). `columns_read` names what it reads, among "features", "label", "sensitive"; it is not
    given the rest. What fails on every row is better known before anything is released: `rehearse`
    tries the code on made-up rows.
    """
    code = Code(function, width, clip, frozenset(columns_read), title, _troubles or Troubles())
    most, order = facts.cap or 1.0, facts.order

    def total(run: Run, units: Any) -> npt.NDArray[Any]:
        whole = run.n == run.block.rows
        part = run.block if whole else run.block.take(np.arange(run.a, run.a + run.n))
        values = code.bounded(part, order)
        steps = whole_steps(values.T, run.weights, float(np.atleast_1d(units)[0]))
        return np.asarray(steps.astype(np.int64).sum(axis=1)[np.newaxis])

    bound = Bound(clip * most, 2 * clip * most, 1)
    if order == 2:
        bound = of_signed(clip * (1.0 + (width + 32) * 2.0**-52), most)
    head = ("row function", (width,), code.columns_read, bound, 0, total)
    return gridded(Sum(*head, coordinates=width, is_own=True), facts.promise.rows_per_unit)


@dataclass(frozen=True, eq=False)
class Code:
    """A user's function of rows, and what it may do: see `row_function`."""

    function: Callable[[Block], Any]
    width: int
    clip: float
    columns_read: frozenset[str]
    title: str
    troubles: Troubles

    def __post_init__(self) -> None:
        checks.whole(at_least=1, width=self.width)
        checks.positive(clip=self.clip)
        known, words = set(self.columns_read) <= COLUMNS, f"some of {sorted(COLUMNS)}"
        fix = "Say which columns the function reads; it is not given the rest."
        need(known, words, of="columns_read", got=sorted(self.columns_read), fix=fix)

    def bounded(self, block: Block, order: int) -> Floats:
        """The function's output, one row at a time where it fails, finite and clipped to
        `clip`."""
        values = quietly(self.troubles, self._of_all, block)
        finite = np.asarray(np.isfinite(values).all(axis=1))
        if not finite.all():
            self.troubles.append("some rows gave NaN or infinite values; they contributed zero")
            values = np.where(finite[:, np.newaxis], values, 0.0)
        largest = np.abs(values).max(axis=1, initial=0.0)[:, np.newaxis]
        # In units of the largest coordinate, so that neither a square nor a quotient leaves the
        # range of floats.
        largest = np.where(largest > 0, largest, 1.0)
        sizes = np.linalg.norm(values / largest, ord=order, axis=1, keepdims=True)
        clipped = np.minimum(largest, self.clip / np.maximum(sizes, 1.0))
        return np.asarray((values / largest) * clipped)

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
        values = self.of(block)
        if values is None:
            each = [self.of(block.take(np.array([i]))) for i in range(block.rows)]
            lines = [np.zeros((1, self.width)) if row is None else row for row in each]
            values = np.concatenate(lines or [np.zeros((0, 1))])
        return values

    def of(self, block: Block) -> Floats | None:
        try:
            values = np.asarray(self.function(self._shown(block)), np.float64)
        except Exception as error:  # masked on purpose: an error may depend on one private row
            self.troubles.append(f"{type(error).__name__}: {error}")
            return None
        wanted = (block.rows, self.width)
        if values.shape != wanted:
            self.troubles.append(f"expected shape {wanted}, got {values.shape}")
            return None
        return values


def code_of(question: Question) -> Code:
    """The user's function of a `RowFunction`."""
    of = (question.function, question.width, question.clip, frozenset(question.columns_read))
    return Code(*of, question.title, question.values["_troubles"] or Troubles())


def rehearse(
    question: Question, layout: RowLayout, rows: int | None = None, unlike: Collection[int] = ()
) -> None:
    """Try the function of a `RowFunction` on made-up rows, all zeros, before any data are read: what
    is wrong then may be told at once.

    What it returns must be finite numbers of shape (rows, width). `rows`: None for a number unlike
    the width, the columns of the layout and every number in `unlike`, such as the length of another
    parameter: a result that is transposed, or that has one line a parameter, then has another
    shape.
    """
    coded, sensitive = len(layout.code_sizes), len(layout.sensitive)
    taken = {question.width, layout.numbers, coded, sensitive, *unlike}
    if rows is None:
        rows = next(n for n in itertools.count(2) if n not in taken)
    rows = checks.whole(at_least=1, rows=rows)
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
    values = replace(code_of(question), troubles=troubles).of(block)
    got = "NaN or infinite values" if values is not None else "; ".join(troubles)
    need(
        values is not None and np.isfinite(values).all(),
        f"finite numbers of shape (rows, {question.width})",
        of=question.title,
        got=got,
        fix=f"These were {rows} rows of zeros: no data were read. Return one line a row, finite for "
        "zeros too, and try the function on rows of your own making.",
    )


def unclipped_function(question: Question, rows: Rows) -> Question:
    """The same question with a clip that no row reaches: without privacy nothing is clipped."""
    code = replace(code_of(question), clip=1e150)
    sizes = [np.abs(code.bounded(block, 2)).sum(axis=1).max(initial=0.0) for block in rows.blocks()]
    return question.but(clip=max(float(max(sizes, default=0.0)) * 2.0, 1e-150))


def _reads_said(question: Question) -> frozenset[str]:
    return frozenset(question.columns_read)


OUTPUTS_CLIPPED = "outputs are clipped to norm {clip:g}"
RowFunction = Kind("row function", row_function, OUTPUTS_CLIPPED, reads=_reads_said, apart=False)


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
        code = Code(function, width, clip, self.columns_read, self.title, told)
        return [code.bounded(block, 1) for block in self._rows.given.blocks()]

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
        self.classes = classes_of(rows.layout, "an attached model")

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
        out.classes, out.title = classes_of(layout, "an attached model"), title
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
        self.count = checks.whole(at_least=1, count=count)
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


def by_decision(
    facts: Facts,
    name: str,
    cells: Cells | None,
    by_label: bool,
    group: int | None,
    outputs: int,
    decided: Callable[[Run], npt.NDArray[Any]],
    reads: Collection[str],
    *,
    whole: bool,
    codes: int = 0,
) -> Sum:
    """A histogram by cell (and label) of what `decided` says of rows: a code each, (rows,), or
    unless `whole` a point of the simplex each, (rows, outputs).

    A row is in one cell (one of each column, of marginal groups), with one label, and adds one for
    one code, or a point of the simplex: L1 and L2 are those of any histogram, 1 and 1 (add-remove),
    2 and sqrt 2. Whole counts may have discrete Laplace noise. `group`: that one cell alone, of
    product cells. With sensitive features alone protected L1 and L2 are then 1, for a row keeps its
    place and only comes or goes (theory.md#post-processing), so long as what it adds does: that is
    not read from the sensitive columns, or all of them make the cells, and within the group they
    are fixed. `codes`: how many there are, of which the last are told.
    """
    group, per_row = checked_group(cells, group), 1 if cells is None else cells.per_row
    labels = classes_of(facts.layout, name) if by_label else 1
    codes = codes or outputs
    buckets = cell_count(cells) * labels
    own = slice(None) if group is None else slice(group * labels, (group + 1) * labels)
    shape = (cell_count(cells) if group is None else 1, *((labels,) if by_label else ()), outputs)

    def total(run: Run, units: Any) -> npt.NDArray[Any]:
        found, unit = decided(run), float(np.atleast_1d(units)[0])
        lines = run.cells(cells, labels)
        if found.ndim == 2:
            table = added(lines, whole_steps(found.T, run.weights, unit), buckets)
        else:
            ones = whole_steps(np.ones((1, run.n)), run.weights, unit)
            table = added(lines * codes + found, ones, buckets * codes).reshape(-1, codes)
            table = table[:, codes - outputs :]
        return table[own].reshape(1, *shape)

    bound = of_histogram(facts.cap or 1.0, per_row, facts.order)
    read = frozenset(reads) | ({SENSITIVE} if cells is not None else set())
    read |= {LABEL} if by_label else set()
    apart = cells if per_row == 1 and group is None else None
    head = (name, shape, read, bound, 0, total, math.sqrt(2), 0.0, apart)
    one = Sum(*head, coordinates=per_row * (1 if whole else outputs), is_own=True)
    most = facts.promise.rows_per_unit
    one = gridded(one, most, whole=whole and facts.cap is None)
    if facts.alone and group is not None and cells is not None:
        made_of_all = set(cells.names) == set(facts.layout.sensitive_names)
        if SENSITIVE not in reads or made_of_all:
            one = replace(one, limits=comes_or_goes(one.bound))
    return one


def _read_by_handle(question: Question) -> frozenset[str]:
    return read_columns(question, question.attached.columns_read)


def attached_histogram(
    facts: Facts,
    attached: Attached,
    cells: Cells | None = None,
    by_label: bool = False,
    decisions: str = "soft",
    group: int | None = None,
) -> Sum:
    """How an attached model's predictions fall in each cell (and label): shape (cells[, labels],
    classes). See `by_decision` for bounds and `group`.

    `decisions="soft"`: a row adds its probabilities; `"hard"`: one for the class of the largest,
    the first of equal ones (even of zeros).
    """
    hard = checks.one_of(("soft", "hard"), decisions=decisions) == "hard"

    def decided(run: Run) -> npt.NDArray[Any]:
        shares = attached.of(run.block, run.a, run.a + run.n)
        return np.asarray(shares.argmax(axis=1)) if hard else shares

    of = (facts, "histogram of an attached model", cells, by_label, group, attached.classes)
    return by_decision(*of, decided, attached.columns_read, whole=hard)


AttachedHistogram = Kind(
    "histogram of an attached model", attached_histogram, SIMPLEX, reads=_read_by_handle
)


def shifted_histogram(
    facts: Facts,
    attached: Attached,
    cells: Cells | None = None,
    by_label: bool = False,
    decisions: str = "soft",
    group: int | None = None,
    offsets: Any = None,
    temperature: float = 1.0,
) -> Sum:
    """How decisions by p(k | x) - offsets[cell, k] fall in each product cell: shape (cells,
    classes). Offsets are public or released (theory.md#moved-decisions).

    `decisions="soft"`: a row adds the softmax of these differences over `temperature`, a point of
    the simplex. `"hard"`: one for the largest of them.
    """
    hard = checks.one_of(("soft", "hard"), decisions=decisions) == "hard"
    checks.positive(temperature=temperature)
    fix = "Pass product cells, and neither by_label nor group."
    apart = cells is not None and cells.mode == "product" and group is None and not by_label
    need(apart, "cells that do not overlap", of="cells", got=cells, fix=fix)
    table = _offsets(offsets, (cell_count(cells), attached.classes), apart=True)

    def decided(run: Run) -> npt.NDArray[Any]:
        (line,) = run.cells(cells)
        moved = attached.of(run.block, run.a, run.a + run.n) - table[line]
        if hard:
            return np.asarray(moved.argmax(axis=1))
        shares = np.exp((moved - moved.max(axis=1, keepdims=True)) / temperature)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    of = (facts, "histogram of shifted decisions", cells, by_label, group, attached.classes)
    return by_decision(*of, decided, attached.columns_read, whole=hard)


ShiftedHistogram = Kind(
    "histogram of shifted decisions",
    shifted_histogram,
    "a row's decision is a point of the simplex",
    reads=_read_by_handle,
)


def code_histogram(
    facts: Facts,
    attached: AttachedCodes,
    cells: Cells | None = None,
    by_label: bool = False,
    group: int | None = None,
) -> Sum:
    """How many rows (their weights) of each cell (and label) have each code: shape (cells[,
    labels], codes). See `by_decision` for bounds and `group`."""

    def decided(run: Run) -> npt.NDArray[Any]:
        return attached.of(run.block, run.a, run.a + run.n)

    of = (facts, "histogram of attached codes", cells, by_label, group, attached.count)
    return by_decision(*of, decided, attached.columns_read, whole=True)


CodeHistogram = Kind(
    "histogram of attached codes", code_histogram, "a row has one code", reads=_read_by_handle
)


def grouped_histogram(
    facts: Facts,
    model: Linear,
    offsets: Any,
    of: Cells,
    cells: Cells | None = None,
    by_label: bool = False,
) -> Sum:
    """How the decisions of score + offsets[group] fall in each cell (and label): shape (cells[,
    labels], outputs).

    `of`: the product cells that decide; `offsets` (groups, outputs). A row's cell and its decision
    may both change with its sensitive features (theory.md#counts).
    """
    weights, outputs = model.array[0], model.outputs
    apart = of.mode == "product" and not model.many
    table = _offsets(offsets, (of.count, outputs), apart=apart)
    _require_rules(facts, weights, "histogram of decisions by group")

    def decided(run: Run) -> npt.NDArray[Any]:
        z = run.scores(weights, apart=False)[0] + table[run.cells(of)[0]].T
        return np.asarray((z[0] > 0) if len(z) == 1 else z.argmax(axis=0), np.int64)

    head = (facts, "histogram of decisions by group", cells, by_label, None, outputs)
    codes = max(2, outputs)  # of two classes the second's rows are told
    return by_decision(*head, decided, (FEATURES, SENSITIVE), whole=True, codes=codes)


GroupedHistogram = Kind(
    "histogram of decisions by group",
    grouped_histogram,
    "a row has one decision in one cell",
    reads=(FEATURES, SENSITIVE),
)


def _require_rules(facts: Facts, weights: Floats, name: str) -> int:
    """Linear rules (outputs, 1 + width) fit the rows; how many classes these have."""
    classes = classes_of(facts.layout, name)
    wanted = (1 if classes <= 2 else classes, 1 + facts.layout.width)
    fix = "The intercept comes first, then numbers, then the categories of each coded feature."
    got = weights.shape[-2:]
    need(got == wanted, f"rules {wanted}", of=name, got=got, fix=fix)
    return classes


def _offsets(given: object, wanted: tuple[int, int], *, apart: bool) -> Floats:
    table = np.array(given, np.float64)
    right = apart and table.shape == wanted and np.isfinite(table).all()
    expected = f"finite offsets of shape {wanted}, of product groups"
    fix = "Give one line of offsets a group, a number for each class or score, and one model."
    need(right, expected, of="offsets", got=table.shape, fix=fix)
    return table


def mixture_histogram(
    facts: Facts,
    weights: Any,
    shares: Any,
    cells: Cells | None = None,
    by_label: bool = False,
) -> Sum:
    """The expected decisions of a mixture of linear rules, by cell (and label): shape (cells[,
    labels], classes). One release for the whole mixture, whatever it is made of.

    `weights` (rules, outputs, 1 + width): linear rules, the intercept first. `shares` (rules,): how
    much of the mixture each is, not negative, 1 together. A row adds the share of rules that decide
    for each class, a function of that row alone, to the bit: no product of matrices decides in
    which order it is added.
    """
    rules, parts, name = np.asarray(weights), np.asarray(shares), "histogram of a mixture"
    fits = rules.ndim == 3 and parts.shape == rules.shape[:1] and len(parts) > 0
    right = fits and (parts >= 0).all() and abs(parts.sum() - 1.0) < 1e-6
    got, fix = f"shapes {rules.shape} and {parts.shape}", "One line a rule, and one share each."
    need(right, "rules and their shares, 1 together", of=name, got=got, fix=fix)
    classes = _require_rules(facts, rules, name)

    def decided(run: Run) -> npt.NDArray[Any]:
        law = np.zeros((run.n, classes))
        for rule, share in zip(rules, parts, strict=True):
            z, _ = run.scores(rule, apart=False)
            best = (z[0] > 0).astype(np.intp) if len(z) == 1 else z.argmax(axis=0)
            law[np.arange(run.n), best] += share
        return np.asarray(law / np.maximum(1.0, law.sum(axis=1, keepdims=True)))

    of = (facts, name, cells, by_label, None, classes)
    return by_decision(*of, decided, (FEATURES,), whole=False)


MixtureHistogram = Kind(
    "histogram of a mixture",
    mixture_histogram,
    "a row's expected decision is a point of the simplex",
)
