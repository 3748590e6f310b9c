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
       further than its bound, under every relation, whatever models, codes, offsets and shares are;
       it does not depend on how many codes there are.
    4. An exception does not end the fit and is not shown before it has ended, nor is what the code
       warns of, prints or logs (`quiet`): `Curator.trouble()` then tells the data holder.
    5. Codes given as an array are taken only where features and labels are public, one whole number
       a row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import checks
from .bound import Bound, of_signed
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
    classes_of,
    read_columns,
)
from .quiet import Troubles, quietly
from .rows import EMPTY_FLOAT, EMPTY_INT, Block, Rows
from .sums import SIMPLEX, Run, gridded, histogram, whole_steps

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


class Attached:
    """A handle on what the curator keeps of each row, of which nothing can be read: a point of the
    simplex over `count` classes, the prediction of a model (`Curator.attach` makes it), or one of
    `count` codes, such as the bin of a score (`Curator.attach_codes`)."""

    __slots__ = ("_kept", "_rows", "columns_read", "count", "is_code", "title")

    def __init__(
        self,
        count: int,
        columns_read: Iterable[str],
        title: str,
        *,
        is_code: bool = False,
        rows: Rows | None = None,
        kept: Sequence[npt.NDArray[Any]] = (),
    ) -> None:
        self.count, self.columns_read, self.title = count, frozenset(columns_read), title
        self.is_code, self._rows, self._kept = is_code, rows, kept

    def is_of(self, rows: Rows) -> bool:
        """Whether it is of these rows."""
        return self._rows is rows

    def of(self, block: Block, a: int, b: int) -> npt.NDArray[Any]:
        """What was attached to rows a to b of a block."""
        whole = self._kept[block.number]
        return np.asarray(whole[a:b] if block.chosen is None else whole[block.chosen[a:b]])


def attached_model(
    function: Callable[[Block], Any],
    rows: Rows,
    columns_read: Collection[str],
    title: str,
    troubles: Troubles | None = None,
) -> Attached:
    """A model made elsewhere: from a block to class codes (rows,) or shares (rows, classes)."""
    count = classes_of(rows.layout, "an attached model")

    def shares(block: Block) -> Floats:
        out = np.asarray(function(block))
        out = out.astype(np.int64) if out.dtype == np.bool_ else out
        return np.asarray(np.eye(count)[out] if out.ndim == 1 else out, np.float64)

    code = Code(shares, count, 1.0, frozenset(columns_read), title, troubles or Troubles())
    found = [np.maximum(code.bounded(block, 1), 0.0) for block in rows.given.blocks()]
    # nonnegative rows whose sum is at most 1
    kept = rows.of_given([p / np.maximum(1.0, p.sum(axis=1, keepdims=True)) for p in found])
    return Attached(count, columns_read, title, rows=rows, kept=kept)


def attached_codes(
    function: Callable[[Block], Any],
    rows: Rows,
    count: int,
    columns_read: Collection[str],
    title: str,
    troubles: Troubles | None = None,
) -> Attached:
    """Codes made elsewhere: from a block to whole numbers (rows,) from 0 to `count` - 1."""
    count = checks.whole(at_least=1, count=count)
    few, words = count <= MOST_CODES, f"at most {MOST_CODES} codes"
    need(few, words, of="count", got=count, fix="Take wider bins.")

    def column(block: Block) -> Floats:
        return np.asarray(function(block), np.float64).reshape(block.rows, -1)

    told = troubles or Troubles()
    code = Code(column, 1, float(count), frozenset(columns_read), title, told)
    found = [code.bounded(block, 1)[:, 0] for block in rows.given.blocks()]
    kept = [np.clip(np.rint(codes), 0, count - 1).astype(np.intp) for codes in rows.of_given(found)]
    return Attached(count, columns_read, title, is_code=True, rows=rows, kept=kept)


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


def _read_by_handle(question: Question) -> frozenset[str]:
    return read_columns(question, question.attached.columns_read)


def attached_histogram(
    facts: Facts,
    attached: Attached,
    cells: Cells | None = None,
    by_label: bool = False,
    decisions: str = "soft",
    group: int | None = None,
    offsets: Any = None,
    temperature: float = 1.0,
) -> Sum:
    """How what is attached falls in each cell (and label): shape (cells[, labels], count). See
    `sums.histogram` for bounds and `group`.

    A code adds one. Of a model's shares, `decisions="soft"`: a row adds its probabilities;
    `"hard"`: one for the class of the largest, the first of equal ones (even of zeros). `offsets`
    (product cells, classes), public or released: decisions are by p(k | x) - offsets[cell, k]
    (theory.md#moved-decisions); soft ones are the softmax of these differences over `temperature`.
    """
    hard = checks.one_of(("soft", "hard"), decisions=decisions) == "hard"
    hard, count, name = hard or attached.is_code, attached.count, "histogram of what is attached"
    table = None
    if offsets is not None:
        checks.positive(temperature=temperature)
        fix = "Pass product cells, and neither by_label nor group."
        apart = cells is not None and cells.mode == "product" and group is None and not by_label
        need(apart, "cells that do not overlap", of="cells", got=cells, fix=fix)
        table = _offsets(offsets, (cell_count(cells), count), apart=not attached.is_code)

    def found(run: Run) -> npt.NDArray[Any]:
        own = attached.of(run.block, run.a, run.a + run.n)
        if table is not None:
            own = own - table[run.cells(cells)[0]]
            if not hard:
                own = np.exp((own - own.max(axis=1, keepdims=True)) / temperature)
                own = own / own.sum(axis=1, keepdims=True)
        return own if attached.is_code or not hard else np.asarray(own.argmax(axis=1))

    head = (facts, name, cells, by_label, count, attached.columns_read)
    if hard:
        return histogram(*head, codes=found, whole=True, group=group, is_own=True)
    how: dict[str, Any] = {"whole": False, "coordinates": count, "group": group, "is_own": True}
    return histogram(*head, values=lambda run: found(run).T[np.newaxis], **how)


AttachedHistogram, ShiftedHistogram, CodeHistogram = (
    Kind(name, attached_histogram, why, reads=_read_by_handle)
    for name, why in (
        ("histogram of an attached model", SIMPLEX),
        ("histogram of shifted decisions", "a row's decision is a point of the simplex"),
        ("histogram of attached codes", "a row has one code"),
    )
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
    weights, outputs, name = model.array[0], model.outputs, "histogram of decisions by group"
    apart = of.mode == "product" and not model.many
    table = _offsets(offsets, (of.count, outputs), apart=apart)
    _require_rules(facts, weights, name)

    def values(run: Run) -> npt.NDArray[Any]:
        z = run.scores(weights, apart=False)[0] + table[run.cells(of)[0]].T
        if outputs == 1:  # of two classes the second's rows are told
            return np.asarray((z > 0) * 1.0)[np.newaxis]
        return np.asarray((z.argmax(axis=0) == np.arange(outputs)[:, None]) * 1.0)[np.newaxis]

    head = (facts, name, cells, by_label, outputs, (FEATURES, SENSITIVE))
    return histogram(*head, values=values, whole=True, is_own=True)


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

    def law_of(run: Run) -> npt.NDArray[Any]:
        law = np.zeros((run.n, classes))
        for rule, share in zip(rules, parts, strict=True):
            z, _ = run.scores(rule, apart=False)
            best = (z[0] > 0).astype(np.intp) if len(z) == 1 else z.argmax(axis=0)
            law[np.arange(run.n), best] += share
        law = law / np.maximum(1.0, law.sum(axis=1, keepdims=True))
        return np.asarray(law.T[np.newaxis])

    how: dict[str, Any] = {"whole": False, "coordinates": classes, "is_own": True}
    return histogram(facts, name, cells, by_label, classes, (FEATURES,), values=law_of, **how)


MixtureHistogram = Kind(
    "histogram of a mixture",
    mixture_histogram,
    "a row's expected decision is a point of the simplex",
)
