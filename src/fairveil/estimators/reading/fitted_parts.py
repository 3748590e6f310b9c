"""What a fitted estimator has, of ours or of others', each of which may lack some of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ...facts import Cells
from ...models.model import Predictor
from .coding import Coding


@dataclass(frozen=True, eq=False, repr=False)
class FittedParts:
    """Fitted attributes by their names without the underscore at the end; None where there is
    none. Those that fits publish for reports are of whatever kind the fit gave them."""

    model: Predictor | None = None
    coding: Coding | None = None
    cells: Cells | None = None
    groups: Sequence[Any] | None = None
    outcome: Any = None
    privacy: Any = None
    released: Any = None
    tailoring: Any = None
    baselines: Any = None
    candidates: Any = None
    certificate: Any = None
    certified_aim: Any = None
    constraint_report: Any = None
    gap_report: Any = None


def parts_of(estimator: object) -> FittedParts:
    """The fitted attributes of any object."""
    named = fields(FittedParts)
    return FittedParts(**{one.name: getattr(estimator, f"{one.name}_", None) for one in named})


def classes_of(estimator: object) -> tuple[Any, ...]:
    """The classes of a fitted classifier; none of anything else."""
    return tuple(getattr(estimator, "classes_", ()))


def names_of_features(estimator: object) -> tuple[str, ...]:
    """The names of the columns that an estimator was fitted to; none where these had no names."""
    return tuple(getattr(estimator, "feature_names_in_", ()))


def width_of(estimator: object, otherwise: int) -> int:
    """How many columns an estimator was fitted to, where it says so."""
    return int(getattr(estimator, "n_features_in_", otherwise))
