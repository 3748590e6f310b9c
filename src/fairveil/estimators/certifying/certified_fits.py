"""A decorator of `fit`: constraints that have a `confidence` are certified on rows set aside; see `certified_run`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ...errors import InputError, complaint
from ..fitting import promises

REPLACE = "replace"
IF_REFUSED = (REPLACE, "keep")
"""What becomes of a model that is not certified."""

Fit = TypeVar("Fit", bound=Callable[..., Any])


def certified(fit: Fit) -> Fit:
    """A `fit` of an estimator with `constraints`, `public_rows`, `certify_share` and `if_refused`, which also certifies."""

    @wraps(fit)
    def fitted(self: Any, X: Any, y: Any = None, *, sensitive_features: Any = None, sample_weight: Any = None) -> Any:
        notions = promises.notions_of(self.constraints, certified=True)
        if any(getattr(notion, "confidence", None) is not None for notion in notions):
            from .certified_run import Both  # it certifies with estimators that are decorated here

            return Both(self, fit, notions).run(X, y, sensitive_features, sample_weight)
        for name, usual in (("certify_share", None), ("if_refused", REPLACE)):
            if (got := getattr(self, name)) != usual:
                remedy = f"Pass DemographicParity(0.05, confidence=0.95), for example, or leave {name} out."
                raise InputError(complaint(expected="a constraint with a confidence", of=name, got=got, remedy=remedy))
        fit(self, X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        forget_certificate(self)
        return self

    return cast(Fit, fitted)


def forget_certificate(estimator: Any) -> None:
    """What was certified of an earlier fit, or of other decisions."""
    for name in ("certificate_", "certified_aim_"):
        estimator.__dict__.pop(name, None)
