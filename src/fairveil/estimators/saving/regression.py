"""What a regression found, and the scale of its target, as plain JSON values, and back. Numbers to
the last bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from ... import _checks
from ..._json import Node
from ...learning.least_squares import RegressionOutcome
from ...statement.document import ORIGINS
from ..reading.targets import TargetScale
from .values import numbers, require_one_each, sampling_from, sampling_to_list

ARRAYS = (
    "coefficients",
    "bounds",
    "values",
    "spread",
    "pressed",
    "losses",
    "losses_noise",
    "shares",
)
WORDS = ("reason", "names", "calls", "gap", "sampling")
# what a fit was compared with stands beside its outcome, as baselines
UNWRITTEN = ("constant", "free")


def outcome_to_dict(outcome: RegressionOutcome) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float."""
    plain = [one.name for one in fields(outcome) if one.name not in (*ARRAYS, *WORDS, *UNWRITTEN)]
    told = {
        name: numbers(value) for name, value in _checks.named(outcome, (*ARRAYS, *plain)).items()
    }
    words = {"reason": outcome.reason, "names": list(outcome.names), "calls": outcome.calls}
    gap = None if outcome.gap is None else numbers(outcome.gap)
    return told | words | {"gap": gap, "sampling": sampling_to_list(outcome.sampling)}


def outcome_from_dict(node: Node) -> RegressionOutcome:
    """The inverse of `outcome_to_dict`."""
    plain = [
        one.name
        for one in fields(RegressionOutcome)
        if one.name not in (*ARRAYS, *WORDS, *UNWRITTEN)
    ]
    node.only({*ARRAYS, *plain, *WORDS} - {"sampling"}, ("sampling",))
    heard: dict[str, Any] = {
        name: np.array(node[name].numbers(words=True), np.float64) for name in ARRAYS
    }
    require_one_each(node, node["names"].texts(), heard)
    heard |= {name: node[name].numbers(words=True, length=1)[0] for name in plain}
    words: dict[str, Any] = {
        "reason": node["reason"].text(),
        "names": node["names"].texts(),
        "calls": node["calls"].whole(),
    }
    gap = None if node["gap"].is_null else node["gap"].numbers(words=True, length=1)[0]
    return RegressionOutcome(**heard, **words, gap=gap, sampling=sampling_from(node))


def target_to_dict(target: TargetScale) -> dict[str, Any]:
    """The bounds, and where they come from."""
    return {"bounds": numbers([target.low, target.high]), "origin": target.origin}


def target_from_dict(node: Node) -> TargetScale:
    """The inverse of `target_to_dict`."""
    low, high = node.only(("bounds", "origin"))["bounds"].numbers(length=2)
    if low > high:
        node["bounds"].refuse("low <= high", [low, high])
    return TargetScale(low, high, ORIGINS[ORIGINS.index(node["origin"].one_of(ORIGINS))])
