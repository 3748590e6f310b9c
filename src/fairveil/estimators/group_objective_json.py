"""What a search for a group objective found, as plain JSON values, and back. Numbers to the last bit; rules are the model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..learning import Reason
from ..learning.exponential import Certain
from ..learning.group_problem import Found
from ..learning.oracles import Rule
from .files_json import numbers

ARRAYS = ("weights", "bounds", "values", "spread", "duals", "counts", "losses")
NUMBERS = ("rows", "objective", "objective_noise", "penalty")


def found_to_dict(found: Found) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float."""
    arrays = {name: getattr(found, name) for name in ARRAYS}
    return {
        "reason": found.reason.name,
        "rounds": found.rounds,
        "names": list(found.names),
        "numbers": {name: numbers(getattr(found, name))[0] for name in NUMBERS},
        "excess": None if found.excess is None else numbers(found.excess)[0],
        "arrays": {name: {"shape": list(array.shape), "values": numbers(array)} for name, array in arrays.items()},
    }


def found_from_dict(values: Mapping[str, Any], rules: tuple[Rule, ...]) -> Found:
    """The inverse of `found_to_dict`, given the rules."""
    arrays: dict[str, Any] = {
        name: np.array([float(number) for number in values["arrays"][name]["values"]]).reshape(values["arrays"][name]["shape"])
        for name in ARRAYS
    }
    if len(arrays["weights"]) != len(rules):
        raise ValueError(f"{len(rules)} rules and {len(arrays['weights'])} weights")
    plain: dict[str, Any] = {name: float(values["numbers"][name]) for name in NUMBERS}
    return Found(
        rules=rules,
        reason=Reason[values["reason"]],
        rounds=int(values["rounds"]),
        names=tuple(map(str, values["names"])),
        excess=None if values["excess"] is None else float(values["excess"]),
        **arrays,
        **plain,
    )


def certain_to_dict(certain: Certain | None) -> dict[str, Any] | None:
    """Bounds on what was chosen."""
    return None if certain is None else {name: numbers(value)[0] for name, value in asdict(certain).items()}


def certain_from_dict(values: Mapping[str, Any] | None) -> Certain | None:
    """The inverse of `certain_to_dict`."""
    return None if values is None else Certain(*(float(values[name]) for name in ("f", "g", "confidence")))
