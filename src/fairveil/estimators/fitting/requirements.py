"""What an estimator was asked to keep, as sentences: every bound that requires something, fitted or
read from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ...errors import FairveilError
from ...fairness.objectives import parse_constraint
from ...fairness.sentences import sentence
from ...tables.keys import shown
from ..reading.fitted_parts import classes_of, parts_of
from . import promises


def said(estimator: BaseEstimator) -> tuple[str, ...]:
    """The requirements of an estimator whose groups are known; none where its parameters no longer
    say them."""
    cells, classes = (
        parts_of(estimator).cells,
        tuple(np.asarray(classes_of(estimator)).tolist()),
    )
    try:
        if hasattr(estimator, "group_loss_bound"):
            return _of_losses(
                estimator.group_loss_bound, "mean log loss" if classes else "mean squared error"
            )
        if hasattr(estimator, "constraint"):
            asked = parse_constraint(estimator.constraint)
            losses = estimator.get_params(deep=False).get("loss", "zero_one") != "zero_one"
            listed: list[Any] = [
                *asked.bounds,
                *(one for one in asked.notions if not one.is_vacuous),
            ]
            return tuple(sentence(one, cells, () if losses else classes) for one in listed)
        asked_of = promises.notions_of(estimator.constraints, certified=True)
        return tuple(sentence(one, cells, classes) for one in asked_of if not one.is_vacuous)
    except FairveilError:
        # functions of the user's are not written
        return ()


def _of_losses(bound: object, loss: str) -> tuple[str, ...]:
    if bound is None:
        return ()
    if isinstance(bound, Mapping):
        return tuple(
            f"the {loss} of group {shown(key)} is at most {limit:g}" for key, limit in bound.items()
        )
    return (f"the {loss} of each group is at most {bound:g}",)
