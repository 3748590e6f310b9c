"""What a regression found, and the scale of its target, as plain JSON values, and back. Numbers to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from ..learning.regression_task import RegressionOutcome
from ..privacy.statement import ORIGINS
from .files_json import numbers
from .targets import TargetScale

ARRAYS = ("coefficients", "bounds", "values", "spread", "pressed", "losses", "losses_noise", "shares")
WORDS = ("reason", "names", "calls", "gap")


def outcome_to_dict(outcome: RegressionOutcome) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float."""
    plain = [one.name for one in fields(outcome) if one.name not in (*ARRAYS, *WORDS)]
    told = {name: numbers(getattr(outcome, name)) for name in (*ARRAYS, *plain)}
    words = {"reason": outcome.reason, "names": list(outcome.names), "calls": outcome.calls}
    return told | words | {"gap": None if outcome.gap is None else numbers(outcome.gap)}


def outcome_from_dict(values: Mapping[str, Any]) -> RegressionOutcome:
    """The inverse of `outcome_to_dict`."""
    plain = [one.name for one in fields(RegressionOutcome) if one.name not in (*ARRAYS, *WORDS)]
    heard: dict[str, Any] = {name: np.array([float(number) for number in values[name]]) for name in ARRAYS}
    heard |= {name: float(values[name][0]) for name in plain}
    words: dict[str, Any] = {
        "reason": str(values["reason"]),
        "names": tuple(map(str, values["names"])),
        "calls": int(values["calls"]),
    }
    gap = None if values["gap"] is None else float(values["gap"][0])
    return RegressionOutcome(**heard, **words, gap=gap)


def target_to_dict(target: TargetScale) -> dict[str, Any]:
    """The bounds, and where they come from."""
    return {"bounds": numbers([target.low, target.high]), "origin": target.origin}


def target_from_dict(values: Mapping[str, Any]) -> TargetScale:
    """The inverse of `target_to_dict`."""
    low, high = map(float, values["bounds"])
    return TargetScale(low, high, ORIGINS[ORIGINS.index(values["origin"])])
