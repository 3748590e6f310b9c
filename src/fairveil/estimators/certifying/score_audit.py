"""Scores counted once by group, label and bin, exactly or with noise: the door of `metrics.scores`.

Guarantees (tests/metrics/test_metrics_scores.py):
1. One person is in one bin of one histogram, which costs at most the promise.
2. Bins come from arguments alone, never from the scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable

import numpy as np

from ... import _checks
from ..._types import ColumnsLike
from ...core.errors import need
from ...facts import Schema
from ...fairness.notions import positive_class
from ...methods.counts import plan_counts
from ...metrics.scores import ScoreTable, score_rows
from ..counted import OWN_DECISIONS, Asked
from ..words import COUNTED, told


@told(COUNTED)
def score_audit(
    scores: ColumnsLike,
    y: ColumnsLike = None,
    *,
    sensitive_features: ColumnsLike,
    cut: float | None = None,
    low: float = 0.0,
    high: float = 1.0,
    bins: int = 32,
    reference: Hashable = None,
    smallest: float = 0.0,
    positive: Hashable = None,
    confidence: float = 0.95,
    epsilon: float | None = None,
    delta: float = 0.0,
    protects: str = "records",
    schema: Schema | None = None,
    random_state: object = None,
    ledger: object = None,
    unit: object = None,
    max_rows_per_unit: int | None = None,
) -> ScoreTable:
    """Measure scores by group, for every set of sensitive columns: AUC, KS, standardised mean
    difference, approval and scoring rates, and impact ratios.

    People are counted once by group, outcome and bin of the score. Ratios compare each group with
    the one that has the largest rate; the scoring rate is the share above the edge that
    is nearest to the median of everyone.

    Parameters
    ----------
    scores : array
        One number a person. A number outside of `low` and `high` counts in the last bin there.
    y : array, default=None
        Known outcomes. None: there is no AUC and no KS.
    cut : float, default=None
        Scores of at least this are approved. None: there is no approval rate.
    low : float, default=0.0
        Smallest score, known in advance.
    high : float, default=1.0
        Largest score, known in advance.
    bins : int, default=32
        Number of bins of equal width. A cut is one more edge.
    reference : group, default=None
        Group that others of its set of columns are compared with. None: the best of each measure.
    smallest : float, default=0.0
        Groups of a smaller share of people are listed, and not compared: 0.02 is the 2 % rule.
    positive : label, default=None
        Favourable outcome. None: the second of two.
    confidence : float, default=0.95
        Confidence with which all intervals hold together.
    Returns
    -------
    ScoreTable
        With `rows`, `privacy_`, `to_html()` and `to_json()`; print it.

    Raises
    ------
    InputError
        If an argument or the table cannot be used.
    Overspent
        If the ledger's budget does not suffice for the cost.

    See Also
    --------
    group_table : Exact rates of decisions.
    lda : Compares models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex, score = rng.choice(["f", "m"], 5000), rng.random(5000)
    >>> paid = rng.random(5000) < score
    >>> found = score_audit(
    ...     score, paid, sensitive_features=sex, cut=0.5, epsilon=1.0, random_state=0
    ... )
    >>> one = found.rows[1]
    >>> one.group, one.measures["auc"].low < 0.83 < one.measures["auc"].high
    ('f', True)
    """
    who = confidence, schema, random_state, ledger, unit, max_rows_per_unit
    asked = Asked.of(epsilon, delta, protects, *who)
    values = np.asarray(scores, np.float64)
    small = _checks.fraction(smallest=smallest, high_open=True)
    numbers = [low, high] if cut is None else [low, high, cut]
    right = values.ndim == 1 and bool(np.isfinite(values).all() and np.isfinite(numbers).all())
    right = right and low < high and low <= (low if cut is None else cut) <= high
    fix = "Pass one finite number a person, low < high, and a cut between them."
    need(right, "scores", of="scores", got=values.shape, fix=fix)
    edges = np.linspace(low, high, _checks.whole(at_least=2, bins=bins) + 1)[1:-1]
    edges = np.unique(edges if cut is None else np.append(edges, float(cut)))
    first = None if cut is None else int(np.searchsorted(edges, cut)) + 1
    decided = y if y is not None else values >= (low + high) / 2.0
    stated = Schema.of(schema).declared
    cells = None if stated is None else stated.cells()
    known = () if stated is None or y is None else tuple(stated.classes or ())
    people = asked.people(decided, None, y, sensitive_features, cells, known)
    each, got = len(values) == len(people.labels), f"{len(values)}, and {len(people.labels)} people"
    fix = "Pass one score a person."
    need(each, "as many scores as people", of="scores", got=got, fix=fix)
    good = people.classes.index(positive_class(positive, people.classes))
    asked.warn(people)
    named = reference if isinstance(reference, tuple) else (reference,)
    known_group = reference is None or {*named} <= {*itertools.chain(*people.cells.columns)}
    fix = f"Groups: {', '.join(map(str, people.cells.keys))}."
    need(known_group, "a known group", of="reference", got=reference, fix=fix)
    labels, size = 2 if people.labelled else 1, len(edges) + 1
    codes = np.searchsorted(edges, values, side="right")
    codes += size * (people.labels == good) * (labels - 1)
    plan = plan_counts(asked.promise)
    counts, statement = asked.count(
        people,
        plan,
        people.codes_by(lambda ids, *_: ids * labels * size + codes),
        people.cells.count * labels * size,
        labels=people.labelled,
        groups=True,
        purpose="score audit",
        what="people by group, label and bin of the score",
        title="group, label and bin of the score of each person",
        not_covered=[OWN_DECISIONS, *asked.beside],
    )
    rows = score_rows(
        counts.reshape(people.cells.count, labels, size),
        people.cells,
        first,
        plan.noise,
        1.0 - asked.confidence,
        reference=reference,
        smallest=float(small),
    )
    return ScoreTable(rows, asked.confidence, cut, statement)
