"""Short fits, and what tables of people are, for the tests of estimators. A name of its own:
conftests are many."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

import fairveil as fv
from knobs import made

Columns = dict[str, npt.NDArray[Any]]


def short(constraints: Any = None, **options: Any) -> fv.FairClassifier:
    """A seeded fit of few rounds."""
    return made(
        fv.FairClassifier,
        constraints,
        **{"random_state": 0, "rounds": 15, "epsilon": 3.0, **options},
    )
