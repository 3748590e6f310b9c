"""What a fit that certifies itself cannot do, refused before anything is released."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, TableLike
from ...core.promise import Promise
from ...curator.elsewhere import Elsewhere
from ...errors import InputError
from ...facts import RowSource
from ...fairness import Notion
from ..reading.columns import read_labels
from .asked import CERTIFY
from .certified_aim import notion_confidence
from .certifying import confidence_of

DECISIONS = "zero_one"
CONFIDENCE = 0.95
"""That of notions in `certify` which state none."""


def one_confidence(notions: Sequence[Notion], of: str) -> float:
    """The confidence of all that are to be certified."""
    found = {one for notion in notions if (one := notion_confidence(notion)) is not None}
    if len(found) > 1:
        remedy = "All of them are certified together: give them one confidence."
        raise InputError.expected("one confidence", of=of, got=sorted(found), remedy=remedy)
    return confidence_of(found.pop() if found else CONFIDENCE)


def require_classes(parts: list[tuple[Any, Any, Any]], y: ColumnsLike) -> None:
    """A class that only those set aside have: told before anything is released."""
    if y is None:
        return
    known, others = (set(read_labels(part[1]).tolist()) for part in parts)
    if not others <= known:
        remedy = "Pass schema=, which lists the classes, or more rows."
        got = sorted(map(str, others - known))
        raise InputError.expected("classes that the model sees", of="y", got=got, remedy=remedy)


def require_certifiable(
    estimator: BaseEstimator, promise: Promise, of: str, X: TableLike, sample_weight: ColumnsLike
) -> None:
    """A table whose rows can be set aside, of people who count once, and no losses."""
    given = estimator.get_params(deep=False)
    found: list[tuple[str, str, Any]] = []
    if isinstance(X, RowSource) and not hasattr(X, "chosen"):
        found.append(("X", "a table in memory, whose rows can be set aside", type(X).__name__))
    if sample_weight is not None:
        of_people = "None: a certificate is about people, who count once"
        found.append(("sample_weight", of_people, "weights"))
    if promise.unit is not None:
        if promise.protects == "sensitive_features" or not promise.is_private:
            each = (
                "None without privacy or with protects='sensitive_features': a certificate counts "
                "one row of each person"
            )
            found.append(("unit", each, "persons"))
        if isinstance(X, Elsewhere):
            by_row = "None beside remote data, whose holder throws coins for rows"
            found.append(("unit", by_row, "persons"))
    if given.get("checkpoint") is not None:
        anew = "None: coins are thrown anew, and a resumed fit would see other rows"
        found.append(("checkpoint", anew, "a folder"))
    if given.get("loss", DECISIONS) != DECISIONS:
        none = f"{DECISIONS!r}: bounds on losses of probabilities are none on decisions"
        found.append(("loss", none, estimator.loss))
    for name, expected, got in found:
        remedy = "Or pass notions without confidence=, and call fv.certify with other rows."
        if of == CERTIFY:
            remedy = "Or leave certify=None, and call fv.certify with other rows."
        raise InputError.expected(expected, of=name, got=got, remedy=remedy)
