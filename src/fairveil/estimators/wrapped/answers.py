"""What a base classifier answers for a row: its decision, or a score whose bin is asked about.

| base | answers |
|---|---|
| two classes, with `decision_function` | that score, above 0 for the second class |
| two classes, with `predict_proba` alone | the logit of the second class |
| several classes, a base that is randomized, or without scores | its decisions |

Guarantees (tests/estimators/test_estimators_base_answers.py):
1. Edges are made of public facts and of what was released; of the scores themselves only where
   these are public, or nothing is promised.
2. A score that is NaN is an error, at the fit and at prediction; the bin of a row is the same at
   both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _checks
from ..._types import Floats, TableLike
from ...curator import Attached, AttachedCodes, Curator, Rows
from ...curator.elsewhere import DescribedRule, Elsewhere
from ...curator.quiet import Troubles, quietly
from ...errors import InputError
from ...learning import score_bins
from ...learning.counts import CountPlan
from ...models.postprocessed import logits
from ...tables.columns import same_length
from ..reading.fitted_parts import classes_of
from ..reading.training import Training
from . import bases, decided
from .decided import Codes, asked_of_base, in_blocks

AUTO, DECIDED = "auto", "predict"
SCORES = ("decision_function", "predict_proba")
METHODS = (AUTO, *SCORES, DECIDED)
FURTHEST = 1e300


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Answers:
    """A code for each training row, or the rule by which a holder finds it: a class, or a bin of
    the score between `edges`. `method`: how the base was asked."""

    method: str
    codes: Codes | DescribedRule
    edges: Floats | None

    def attached(self, curator: Curator, rows: Rows) -> Attached | AttachedCodes:
        """Handed to the curator."""
        blocks: Any = (
            self.codes if isinstance(self.codes, DescribedRule) else in_blocks(self.codes, rows)
        )
        if self.edges is None:
            return curator.attach(blocks, title="base classifier")
        return curator.attach_codes(
            blocks, 1 + len(self.edges), title="bins of the base classifier's score"
        )


def of(
    base: object,
    wanted: str,
    bins: object,
    features: TableLike,
    training: Training,
    plan: CountPlan,
    known: float | None,
    seed: int | None,
) -> Answers:
    """What a fitted base answers about the training rows. `known`: their number, where it is public
    or was released."""
    classes, method = training.classes, method_of(base, wanted, training.classes)
    if isinstance(features, Elsewhere):
        from .elsewhere import scores_rule

        edges = None if method == DECIDED else edges_of(bins, None, plan, known)
        return Answers(method, scores_rule(base, training, features, edges), edges)
    rows = training.rows.exact_count
    if method == DECIDED:
        return Answers(method, decided.decisions_of(base, features, classes, rows, seed), None)
    scores = scores_of(base, method, features, classes, rows=rows)
    edges = edges_of(bins, scores, plan, known)
    return Answers(method, score_bins.codes(scores, edges), edges)


def check(wanted: object, bins: object) -> None:
    """Refuse what can be refused before any row is read."""
    _checks.one_of(METHODS, predict_method=wanted)
    if bins is not None:
        _edges_given(bins)


def method_of(base: object, wanted: object, classes: Sequence[Any]) -> str:
    """Which of the base's methods is asked; "auto": its score, where it has one of two classes."""
    _checks.one_of(METHODS, predict_method=wanted)
    if wanted == DECIDED:
        return DECIDED
    has = [name for name in SCORES if _scores_two(base, classes) and hasattr(base, name)]
    if wanted == AUTO:
        return has[0] if has else DECIDED
    if wanted not in has:
        remedy = "Leave predict_method='auto', or pass 'predict' for the base's decisions."
        got = f"{type(base).__name__}, which has none of two classes"
        raise InputError.expected(f"a base with {wanted}", of="estimator", got=got, remedy=remedy)
    return str(wanted)


def scores_of(
    base: object,
    method: str,
    features: TableLike,
    classes: Sequence[Any],
    *,
    rows: int | None = None,
) -> Floats:
    """The score of each row: above 0 where the base decides for the second of `classes`. `rows`: of
    the training, which the base is asked about unheard, and not at all where there are none."""
    if rows == 0:
        return np.empty(0)
    measurement = getattr(base, method)
    found = asked_of_base(
        lambda: (
            measurement(features) if rows is None else quietly(Troubles(), measurement, features)
        )
    )
    scores = np.asarray(found, np.float64)
    second = scores.ndim == 2 and scores.shape[1] == 2
    scores = (
        logits(scores[:, 1])
        if second and method == "predict_proba"
        else scores.reshape(len(scores), -1)[:, 0]
    )
    if rows is not None:
        same_length({"y": rows, "the base classifier's scores": len(scores)})
    if np.isnan(scores).any():
        remedy = "Fill in missing features, or pass predict_method='predict'."
        raise InputError.expected(
            "a score for every row", of="the base classifier", got="NaN", remedy=remedy
        )
    scores = np.clip(scores, -FURTHEST, FURTHEST)
    if list(_listed(base)) == list(classes):
        return scores
    # the other way round: 0 is for the base's first class
    return np.where(scores == 0.0, np.finfo(np.float64).tiny, -scores)


def edges_of(bins: object, scores: Floats | None, plan: CountPlan, rows: float | None) -> Floats:
    """The edges of the bins: a caller's, quantiles of scores that are public, else fixed ones.
    `scores`: None before there are any. `rows`: their number, where it is public or was
    released."""
    wanted = _edges_given(bins)
    if wanted is not None and wanted.ndim:
        return np.asarray(wanted)
    cells = 1 if plan.cells is None else plan.cells.count
    count = score_bins.number(cells, plan.law(1.0).sd, rows) if wanted is None else int(wanted)
    if scores is not None and (plan.totals_are_public or not plan.promise.is_private):
        return score_bins.quantiles(scores, count)
    return score_bins.fixed(count)


def _edges_given(bins: Any) -> Any:
    """Edges, or a number of bins, as an array; None where nothing was said."""
    if bins is None:
        return None
    if np.ndim(bins) > 0:
        return score_bins.given(bins)
    count = _checks.whole(at_least=2, bins=bins, remedy="Pass bins=32, for example, or None.")
    return np.asarray(count) if count <= score_bins.MOST_GIVEN else score_bins.given(np.zeros(0))


def _scores_two(base: object, classes: Sequence[Any]) -> bool:
    """Whether it tells two classes apart, by a score that its decisions follow."""
    if len(classes) != 2 or bases.is_randomised(base):
        return False
    known = _listed(base)
    return set(known) == set(classes) or not (known or bases.is_fitted(base))


def _listed(base: object) -> tuple[Any, ...]:
    return tuple(np.asarray(classes_of(base)).tolist())
