"""`certify`: does it hold for the next people? From private counts of people whom the model has not
seen.

Guarantees (tests/estimators/test_estimators_certify.py):
1. The rows are counted once, by one event that costs at most the promise; everything else is
   computed from that release.
2. If a notion is broken in the population, it is certified with probability at most 1 - confidence,
   over people and noise.
3. A refusal is an answer: it costs what a certificate costs, and says how many people it would
   take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...curator.elsewhere import curator_of
from ...errors import InputError
from ...facts import Cells, Schema
from ...fairness import BoundedGroupLoss, Notion
from ...fairness.notions import SelectionRateRatio, uses_groups
from ...fairness.objectives import Bound, Constraint
from ...ledger import current, given_ledger
from ...methods.certificate import Layout, certified, layout_of
from ...methods.counts import CountPlan, plan_counts
from .. import fitting, wrapped
from ..reading import cautions, units
from ..reading.units import Whose
from ..wrapped import DecidedPeople as DecidedRows
from . import seen
from .certificate import ASSUMED, Certificate

ONE_ROW = "each person counts once, by one of their rows, which a coin chose whatever it holds"
OWN_DECISIONS = (
    "the model, and what it decides about a person, are taken to be public: what the model itself "
    "tells of the rows that it "
    "was fitted to is in its own statement"
)


def certify(
    model: object,
    X: TableLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike = None,
    constraints: object = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float = 0.0,
    protects: str = "records",
    neighbours: str | None = None,
    schema: Schema | None = None,
    random_state: object = None,
    ledger: object = None,
    assumptions: Iterable[str] = (),
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> Certificate:
    """Certify that constraints hold in the population, from private counts of people set aside.

    The people are counted by group, label and decision, once, with noise. Bounds on the
    population's rates and gaps follow by exact tails of sampling and noise together. See
    docs/certificates.md.

    Parameters
    ----------
    model : fitted model, callable or array
        An estimator of this library or another, a function of the features, or one decision for
        each person. It must have been made without these people.
    X : table or array
        Features of the people set aside; None where `model` is an array of decisions.
    y : array, default=None
        Their known outcomes. None: demographic parity and ratios of selection rates need none.
    sensitive_features : array, table or names of columns of X, default=None
        Groups: one column or several. Several make a hierarchy of groups. None: the schema's.
    constraints : notion, str or list of these, default=None
        What is to be certified, for example ``DemographicParity(0.05)``, ``"equalized_odds:0.1"``
        or ``"selection_rate_ratio:0.8"``. It must be given.
    confidence : float, default=0.95
        If a constraint is broken in the population, it is certified with probability at most ``1 -
        confidence``.
    epsilon : float, default=None
        Privacy budget of the counts. ``float('inf')`` counts exactly: for people who are public or
        have consented. It must be given.
    delta : float, default=0.0
        Slack that is added to the epsilon bound: one row changes the probability of any results by
        a factor of at most e^epsilon, plus delta.
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
    assumptions : iterable of str, default=()
        Further sentences about how the people were drawn, to be printed beside the certificate.
    unit : str, mapping of one name, or one value a row, default=None
        Column of X that tells persons apart, where a person may have several rows. Persons are then
        protected, with all of their rows. The model does not see the column. None: protects each
        row by itself.
    max_rows_per_unit : int, default=None
        Must be 1 with `unit`: one row of each person is counted, drawn by a coin, because intervals
        assume independent rows.

    Returns
    -------
    Certificate
        With `certified`, `bounds`, `verdict`, `rates`, `assumptions`, `privacy_` and `to_json()`.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    private_audit : Shows rates and gaps without a verdict.
    Monitor : Watches them over time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> A = rng.integers(2, size=4000)
    >>> hired = rng.random(4000) < 0.3
    >>> found = certify(
    ...     hired,
    ...     None,
    ...     sensitive_features=A,
    ...     constraints="demographic_parity:0.1",
    ...     epsilon=1.0,
    ...     random_state=0,
    ... )
    >>> found.certified
    True
    """
    return certify_beside(
        model,
        X,
        y,
        sensitive_features=sensitive_features,
        constraints=constraints,
        confidence=confidence,
        epsilon=epsilon,
        delta=delta,
        protects=protects,
        neighbours=neighbours,
        schema=schema,
        random_state=random_state,
        ledger=ledger,
        assumptions=assumptions,
        unit=unit,
        max_rows_per_unit=max_rows_per_unit,
    )


def certify_beside(
    model: object,
    X: TableLike,
    y: ColumnsLike,
    *,
    sensitive_features: ColumnsLike,
    constraints: object,
    confidence: object,
    epsilon: float | None,
    delta: float,
    protects: str,
    neighbours: str | None,
    schema: Schema | None,
    random_state: object,
    ledger: object,
    assumptions: Iterable[str],
    unit: object = None,
    max_rows_per_unit: int | None = None,
    asked: CountPlan | None = None,
) -> Certificate:
    """`certify`, of people whose counts are part of another release (`asked`): then that has been
    charged."""
    whose = one_row_each(unit, max_rows_per_unit, schema, epsilon)
    promise = required_promise(epsilon, delta, protects, neighbours, whose)
    confidence = confidence_of(confidence)
    notions = notions_of(constraints)
    seed = fitting.seed_of(random_state)
    book = given_ledger(ledger) or current()
    if book is not None:
        book.require(promise, secure=seed is None)
    seen.refuse(model, X)
    people = wrapped.people_of(model, X, y, sensitive_features, schema, promise, seed, whose)
    _require_groups(notions, people)
    layout = layout_of(notions, people.cells, people.classes)
    require_compared(layout, notions, people.cells)
    wrapped.require_labels(
        people.labelled, layout.needs_labels, [notion.kind.replace("_", " ") for notion in notions]
    )
    cautions.of_promise(promise, people.rows.exact_count if promise.rows_are_public else None)
    read = {
        "features",
        *(["label"] if layout.needs_labels else ()),
        *(["sensitive"] if layout.needs_groups else ()),
    }
    read |= {"sensitive"} if people.by_group else set()
    asked = plan_counts(promise, reads_groups="sensitive" in read) if asked is None else asked
    noise = NoiseSource.of(wrapped.derived_seed(seed, 2))
    event = asked.event if promise.is_private else None
    options: dict[str, Any] = {"facts": people.facts, "ledger": ledger, "purpose": "certify"}
    with curator_of(people.rows, promise, plan=event, noise=noise, **options) as curator:
        attached = curator.attach_codes(
            people.parts(layout.part_of),
            layout.parts,
            columns_read=read,
            title="group, label and decision of each person",
        )
        counts = asked.release(curator, attached, "people set aside by group, label and decision")
        curator.finish()
    statement = curator.statement(not_covered=[*people.not_covered, OWN_DECISIONS])
    found = certified(layout, len(notions), counts, asked.noise, confidence)
    said = (*ASSUMED, *([] if whose is None else [ONE_ROW]), *(str(one) for one in assumptions))
    return Certificate(
        tuple(notions),
        people.cells,
        people.classes,
        counts,
        asked.noise,
        confidence,
        statement,
        people.model,
        said,
        found,
    )


def require_compared(layout: Layout, notions: Sequence[Notion], cells: Cells) -> None:
    """A comparison of groups where there is one group would be certified whatever the model
    does."""
    compared = {line.notion for line in layout.lines}
    for at, notion in enumerate(notions):
        if at not in compared:
            remedy = (
                "Pass people of all groups, or schema=, which lists groups of whom nobody is there."
            )
            expected = f"at least two groups, which {type(notion).__name__} compares"
            raise InputError.expected(
                expected, of="sensitive_features", got=list(cells.keys), remedy=remedy
            )


def _listed(constraints: object, of: str) -> list[Any]:
    if isinstance(constraints, str | Notion) or constraints is None:
        return [constraints]
    if isinstance(constraints, Bound | Constraint) or not isinstance(constraints, Iterable):
        remedy = (
            "Pass DemographicParity(0.05), for example: bounds on other functions than rates "
            "cannot be certified."
        )
        raise InputError.expected("notions of fairness", of=of, got=constraints, remedy=remedy)
    return list(constraints)


def _refuse_other_losses(notions: list[Notion], of: str) -> None:
    """Losses of probabilities and numbers are no rates of decisions."""
    for one in notions:
        if isinstance(one, BoundedGroupLoss) and one.loss != "zero_one":
            remedy = "Certify a notion on rates of decisions."
            raise InputError.expected(
                "a loss of decisions", of=of, got=f"the {one.loss} loss", remedy=remedy
            )


def notions_of(
    constraints: object, *, of: str = "constraints", certified: bool = False
) -> list[Notion]:
    """Notions, or their names and bounds; "selection_rate_ratio:0.8" among them. Those that ask for
    nothing are refused. `of`: the argument; `certified`: whether they may have a confidence."""
    listed = _listed(constraints, of)
    out: list[Notion] = []
    for one in listed:
        out += (
            [_ratio(one)]
            if isinstance(one, str) and one.replace("-", "_").startswith(SelectionRateRatio.kind)
            else fitting.notions_of(one, certified=certified)
        )
    empty = [one.kind for one in out if one.is_vacuous]
    if not out or empty:
        remedy = (
            "Pass DemographicParity(0.05), 'equalized_odds:0.1' or 'selection_rate_ratio:0.8', for "
            "example."
        )
        raise InputError.expected("notions with a bound", of=of, got=empty or None, remedy=remedy)
    _refuse_other_losses(out, of)
    return out


def _ratio(text: str) -> SelectionRateRatio:
    _, _, bound = text.partition(":")
    try:
        ratio = float(bound.strip().removesuffix("%")) / (
            100.0 if bound.strip().endswith("%") else 1.0
        )
    except ValueError:
        remedy = "Write selection_rate_ratio:0.8, for example."
        raise InputError.expected("a ratio", of="constraint", got=text, remedy=remedy) from None
    return SelectionRateRatio(ratio)


def one_row_each(
    unit: object, most: int | None, schema: object, epsilon: float | None
) -> Whose | None:
    """Who is protected: persons only where each counts once."""
    found = units.whose(unit, most, schema)
    if found is None:
        return None
    if found.unit.max_rows != 1 or epsilon == math.inf:
        got = found.unit.max_rows if epsilon != math.inf else "all rows, without privacy"
        remedy = (
            "Rows of one person are no independent draws: pass max_rows_per_unit=1, and a finite "
            "epsilon."
        )
        raise InputError.expected(
            "one row of each person", of="max_rows_per_unit", got=got, remedy=remedy
        )
    return found


def required_promise(
    epsilon: float | None,
    delta: float,
    protects: str,
    neighbours: str | None,
    whose: Whose | None = None,
) -> Promise:
    if epsilon is None:
        remedy = (
            "Pass epsilon=1.0, for example; float('inf') for people who are public or have "
            "consented."
        )
        raise InputError.expected("a privacy budget", of="epsilon", got=None, remedy=remedy)
    return fitting.promise_of(epsilon, delta, protects, neighbours, whose)


def confidence_of(confidence: object) -> float:
    remedy = "Pass confidence=0.95, for example: no finite number of people makes anything certain."
    found = _checks.fraction(confidence=confidence, low_open=True, high_open=True, remedy=remedy)
    if not 0.5 <= found <= 1.0 - 1e-9 or math.isnan(found):
        raise InputError.expected(
            "0.5 or more, and at most 1 - 1e-9", of="confidence", got=found, remedy=remedy
        )
    return float(found)


def _require_groups(notions: list[Notion], people: DecidedRows) -> None:
    compared = [one for one in notions if isinstance(one, SelectionRateRatio) or uses_groups(one)]
    if compared and not people.rows.layout.sensitive:
        remedy = "Pass sensitive_features=...: columns, or names of columns of X."
        name = type(compared[0]).__name__
        raise InputError.expected(
            f"groups, which {name} compares", of="sensitive_features", got=None, remedy=remedy
        )
