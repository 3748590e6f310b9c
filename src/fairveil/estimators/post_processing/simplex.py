"""Probabilities that a base gives, checked to be points of the simplex without showing a row."""

from __future__ import annotations

import numpy as np

from ..._types import Floats
from ...errors import InputError

CLOSE = 1e-6


def checked(law: Floats) -> Floats:
    """Points of the simplex, or an error that shows no row."""
    if not np.isfinite(law).all():
        remedy = "Its predict_proba must give a share to each of classes_."
        raise InputError.expected(
            "probabilities", of="estimator", got="NaN or infinite values", remedy=remedy
        )
    if law.min(initial=0.0) < -CLOSE or np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) > CLOSE:
        remedy = "Calibrate it, or divide by the sum."
        raise InputError.expected(
            "probabilities that sum to one", of="estimator", got="others", remedy=remedy
        )
    return law
