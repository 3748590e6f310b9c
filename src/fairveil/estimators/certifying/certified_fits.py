"""A decorator of `fit`: notions that have a `confidence` are certified on rows set aside; see
`certified_run`.

Three parameters say what is to be certified. `constraints` (notions) and `constraint` (of group
losses, notions among them) are what a fit keeps: it aims inside those with a confidence. `certify`
is of estimators that keep no notion: they fit as they would, and what came of it is certified.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from sklearn.base import BaseEstimator

from ..._types import ColumnsLike, TableLike
from ...errors import InputError
from . import seen
from .asked import CERTIFY, listed_in, parameter_of
from .certified_run import Both

Fit = TypeVar("Fit", bound=Callable[..., Any])


def certified(fit: Fit) -> Fit:
    """A `fit` which certifies, of an estimator with one of these, `public_rows` and
    `certify_share`."""

    @wraps(fit)
    def fitted(
        self: BaseEstimator,
        X: TableLike,
        y: ColumnsLike = None,
        *,
        sensitive_features: ColumnsLike = None,
        sample_weight: ColumnsLike = None,
    ) -> Any:
        of = parameter_of(self)
        notions, beside = listed_in(self, of)
        if notions and (of == CERTIFY or any(notion.confidence is not None for notion in notions)):
            Both(self, fit, of, notions, beside).run(X, y, sensitive_features, sample_weight)
            seen.remember(self, X)
            return self
        if (got := self.certify_share) is not None:
            remedy = (
                f"Pass {of}=DemographicParity(0.05, confidence=0.95), for example, or leave "
                f"certify_share out."
            )
            raise InputError.expected(
                "a constraint with a confidence", of="certify_share", got=got, remedy=remedy
            )
        fit(self, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        forget_certificate(self)
        seen.remember(self, X)
        return self

    return cast(Fit, fitted)


def refuse_certify(estimator: BaseEstimator) -> None:
    """Where a fit is planned or repeated by itself, nothing is set aside."""
    if (got := estimator.certify) is not None:
        remedy = (
            "Leave it out here; a call of fit certifies, and fv.certify certifies a finished model "
            "on other rows."
        )
        raise InputError.expected("None here", of=CERTIFY, got=got, remedy=remedy)


def forget_certificate(estimator: object) -> None:
    """What was certified of an earlier fit, or of other decisions."""
    for name in ("certificate_", "certified_aim_"):
        estimator.__dict__.pop(name, None)
