"""Estimators made from knobs by their own names, wherever in the settings these are:
`made(fv.FermiClassifier, rounds=8)`."""

from __future__ import annotations

import inspect
from typing import Any


def made(kind: Any, *given: Any, **options: Any) -> Any:
    """An estimator with these options: parameters as they are, knobs in their settings, which the
    fit checks."""
    names = inspect.signature(kind).parameters
    estimator = kind(*given, **{name: value for name, value in options.items() if name in names})
    estimator._take(
        {name: value for name, value in options.items() if name not in names}, warn=False
    )
    return estimator
