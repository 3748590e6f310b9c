"""`private_audit`: the group table of any decisions, from one private count.

Guarantees (tests/estimators/test_estimators_private_audit.py):
1. The rows are counted once, by one event that costs at most the promise; everything else is
   computed from that release.
2. An interval misses the population's rate or gap (a count: that of these rows) with probability at
   most 1 - confidence; of `intervals="all"` any of the table's does.
3. Bad input is refused before anything is spent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator.attached import MOST_CODES
from ...curator.elsewhere import Elsewhere, RowsElsewhere, curator_of
from ...errors import InputError
from ...facts import Cells, Schema
from ...ledger import current, given_ledger
from ...methods.counts import plan_counts
from ...methods.tables import TableLayout
from ...statement.document import PublicFact
from ...tables import keys
from .. import fitting, wrapped
from ..reading import cautions
from ..reading.soft_groups import SoftGroups
from ..reading.units import Whose
from ..wrapped import DecidedPeople as DecidedRows
from .certifying import ONE_ROW, OWN_DECISIONS, confidence_of, one_row_each, required_promise
from .private_table import ALL, EACH, PrivateTable

OUTCOMES = "the outcomes themselves"
DRAWN = "each drawn from that person's distribution over groups"


def private_audit(
    model: object,
    X: TableLike = None,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    intervals: str = EACH,
    depth: int | None = None,
    small_below: int = 30,
    protects: str = "records",
    neighbours: str | None = None,
    schema: Schema | None = None,
    random_state: object = None,
    ledger: object = None,
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> PrivateTable:
    """Rates, counts and gaps by group of any decisions, with noise and with honest intervals.

    The rows are counted once by group, outcome and decision. Everything in the table follows from
    that count. See docs/private_tables.md. `sensitive_features` may be `SoftGroups`: then one group
    is drawn for each row.

    Parameters
    ----------
    model : fitted model, callable, array or None
        An estimator of this library or another, a function of the features, or one decision for
        each person. None: `y` itself is counted, by group.
    X : table or array, default=None
        Features of the people. None: `model` is an array of decisions.
    y : array, default=None
        Their known outcomes. None: the table has selection rates alone.
    sensitive_features : array, table or names of columns of X, default=None
        Groups: one column or several. Several make a hierarchy of groups. None: the schema's.
    epsilon : float, default=None
        Privacy budget of the counts. ``float('inf')`` counts exactly: for people who are public or
        have consented. It must be given.
    delta : float, default=0.0
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta.
    confidence : float, default=0.95
        Confidence of the intervals.
    intervals : {"each", "all"}, default="each"
        Whether each interval holds with this confidence by itself, or all of the table hold
        together.
    depth : int, default=None
        Groups of up to so many columns at once are listed. None: all of them.
    small_below : int, default=30
        Groups that may have fewer people are flagged.
    protects : {"records", "sensitive_features"}, default="records"
        What is protected. ``"records"``: all of a row. ``"sensitive_features"``: the sensitive
        attributes alone; features and labels are then public.
    neighbours : {"add-remove", "replace-one"}, default=None
        Adjacency relation: one record is added or removed, or one is replaced. None:
        ``"add-remove"`` for records, ``"replace-one"`` for sensitive features.
    schema : Schema, default=None
        Public facts of the table. None: classes and groups are those of the model, or read from the
        data.
    random_state : int, default=None
        None draws secure noise. An integer repeats the release and flags the statement INSECURE.
    ledger : Ledger, default=None
        Where the release is recorded. None: the ledger of the ``with ledger.recording():`` block,
        if there is one.
    unit : str, mapping of one name, or one value a row, default=None
        Column of X that tells persons apart, where a person may have several rows. Persons are then
        protected, with all of their rows. The model does not see the column. None: protects each
        row by itself.
    max_rows_per_unit : int, default=None
        Must be 1 with `unit`: one row of each person is counted, drawn by a coin, because intervals
        assume independent rows.

    Returns
    -------
    PrivateTable
        With `by_group`, `overall`, `difference()`, `ratio()`, `to_frame()`, `plot()`, `privacy_`
        and `to_json()`.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    group_table : Exact rates, for rows that need no privacy.
    certify : Certifies bounds on gaps.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> hired = rng.random(4000) < 0.3 + 0.1 * A
    >>> found = private_audit(hired, sensitive_features=A, epsilon=1.0, random_state=0)
    >>> gap = found.difference("selection_rate[True]")
    >>> gap.low < 0.1 < gap.high, gap.pair
    (True, (1, 0))
    """
    whose = one_row_each(unit, max_rows_per_unit, schema, epsilon)
    promise = required_promise(epsilon, delta, protects, neighbours, whose)
    confidence = confidence_of(confidence)
    _checks.one_of((EACH, ALL), intervals=intervals)
    small = _checks.whole(at_least=1, small_below=small_below)
    seed = fitting.seed_of(random_state)
    book = given_ledger(ledger) or current()
    if book is not None:
        book.require(promise, secure=seed is None)
    drawn = isinstance(sensitive_features, SoftGroups)
    stated = None
    if isinstance(sensitive_features, SoftGroups):
        stated = Cells((sensitive_features.groups,))
        sensitive_features = sensitive_features.drawn(NoiseSource.of(wrapped.derived_seed(seed, 4)))
    people, name = _read(model, X, y, sensitive_features, schema, promise, seed, whose, stated)
    labelled = people.labelled and model is not None
    layout = _layout(people, labelled, depth)
    cautions.of_promise(promise, people.rows.exact_count if promise.rows_are_public else None)
    codes = people.codes_by(layout.part_of)
    grouped = bool(people.rows.layout.sensitive)
    read = {
        "features",
        *(["label"] if labelled else ()),
        *(["sensitive"] if grouped or people.by_group else ()),
    }
    asked = plan_counts(promise, reads_groups="sensitive" in read)
    event = asked.event if promise.is_private else None
    facts = [*people.facts, *([PublicFact("recorded groups", DRAWN, "argument")] if drawn else [])]
    options: dict[str, Any] = {"facts": facts, "ledger": ledger, "purpose": "private audit"}
    with curator_of(
        people.rows,
        promise,
        plan=event,
        noise=NoiseSource.of(wrapped.derived_seed(seed, 2)),
        **options,
    ) as curator:
        title = "group, label and decision of each person"
        attached = curator.attach_codes(codes, layout.parts, columns_read=read, title=title)
        counts = asked.release(curator, attached, "rows by group, label and decision")
        curator.finish()
    known = _known(promise, people, layout)
    return PrivateTable(
        layout,
        counts,
        asked.noise,
        known,
        confidence,
        intervals,
        small,
        curator.statement(not_covered=_not_covered(people, whose, model)),
        name,
    )


def _not_covered(people: DecidedRows, whose: Whose | None, model: object) -> list[str]:
    """What the statement does not cover."""
    return [
        *people.not_covered,
        *([] if whose is None else [ONE_ROW]),
        *([] if model is None else [OWN_DECISIONS]),
    ]


def _read(
    model: object,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    schema: Schema | None,
    promise: Promise,
    seed: int | None,
    whose: Whose | None,
    stated: Cells | None,
) -> tuple[DecidedRows, str]:
    if model is None and isinstance(X, Elsewhere):
        return wrapped.people_of(
            None, X, y, sensitive_features, schema, promise, seed, whose
        ), OUTCOMES
    if model is None and y is None:
        remedy = "Pass a model or decisions, or y, whose rates by group are then counted."
        raise InputError.expected("something to count", of="model", got=None, remedy=remedy)
    people = wrapped.people_of(
        y if model is None else model,
        X,
        y,
        sensitive_features,
        schema,
        promise,
        seed,
        whose,
        stated,
    )
    return people, OUTCOMES if model is None else people.model


def _layout(people: DecidedRows, labelled: bool, depth: int | None) -> TableLayout:
    most = len(people.cells.columns)
    deep = most if depth is None else _checks.whole(at_least=1, depth=depth)
    layout = TableLayout(people.cells, people.classes, labelled, min(deep, most))
    if layout.parts > MOST_CODES:
        remedy = "Take fewer sensitive columns at once, or merge groups or classes."
        got = f"{people.cells.count} groups x {layout.kinds} kinds of rows"
        raise InputError.expected(
            f"at most {MOST_CODES} counts", of="the table", got=got, remedy=remedy
        )
    if len({keys.shown(name) for name in people.classes}) < len(people.classes):
        remedy = "Give classes names that differ when they are printed."
        raise InputError.expected(
            "different names", of="classes", got=list(people.classes), remedy=remedy
        )
    return layout


def _known(
    promise: Promise,
    people: DecidedRows,
    layout: TableLayout,
) -> npt.NDArray[np.float64] | None:
    """What is public of the counts: the number of rows, or how many of each label and decision
    there are. Read nowhere else."""
    here = not isinstance(people.rows, RowsElsewhere)
    if (
        promise.is_private
        and promise.protects == "sensitive_features"
        and not people.by_group
        and here
    ):
        parts = layout.part_of(np.zeros_like(people.ids), people.labels, people.decisions)
        return np.bincount(parts, minlength=layout.kinds).astype(np.float64)
    if promise.is_private and not promise.rows_are_public:
        return None
    return np.array(float(people.rows.exact_count))
