"""What a search for a group objective found, as plain JSON values, and back. Numbers to the last
bit; rules are the model's."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ... import _checks
from ..._json import Node
from ...learning.group_objective.exponential import Certain
from ...learning.group_objective.found import Found
from ...learning.oracles import Rule
from .values import (
    arrays_from_dict,
    numbers,
    reason_of,
    require_one_each,
    sampling_from,
    sampling_to_list,
)

ARRAYS = ("weights", "bounds", "values", "spread", "duals", "counts", "losses")
NUMBERS = ("rows", "objective", "objective_noise", "penalty")


def found_to_dict(found: Found) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float."""
    arrays = _checks.named(found, ARRAYS)
    return {
        "reason": found.reason.name,
        "rounds": found.rounds,
        "names": list(found.names),
        "numbers": {
            name: numbers(value)[0] for name, value in _checks.named(found, NUMBERS).items()
        },
        "excess": None if found.excess is None else numbers(found.excess)[0],
        "sampling": sampling_to_list(found.sampling),
        "arrays": {
            name: {"shape": list(array.shape), "values": numbers(array)}
            for name, array in arrays.items()
        },
    }


def found_from_dict(node: Node, rules: tuple[Rule, ...]) -> Found:
    """The inverse of `found_to_dict`, given the rules."""
    node.only(("reason", "rounds", "names", "numbers", "excess", "arrays"), ("sampling",))
    arrays = arrays_from_dict(node["arrays"], ARRAYS)
    if arrays["weights"].shape != (len(rules),):
        node["arrays"]["weights"]["shape"].refuse(
            f"[{len(rules)}], a weight for each rule", list(arrays["weights"].shape)
        )
    require_one_each(node, node["names"].texts(), arrays)
    told = node["numbers"].only(NUMBERS)
    plain: dict[str, Any] = {name: told[name].number(words=True) for name in NUMBERS}
    return Found(
        rules=rules,
        reason=reason_of(node["reason"]),
        rounds=node["rounds"].whole(),
        names=node["names"].texts(),
        excess=None if node["excess"].is_null else node["excess"].number(words=True),
        sampling=sampling_from(node),
        **arrays,
        **plain,
    )


def certain_to_dict(certain: Certain | None) -> dict[str, Any] | None:
    """Bounds on what was chosen."""
    return (
        None
        if certain is None
        else {name: numbers(value)[0] for name, value in asdict(certain).items()}
    )


def certain_from_dict(node: Node) -> Certain | None:
    """The inverse of `certain_to_dict`."""
    if node.is_null:
        return None
    names = ("f", "g", "confidence")
    return Certain(*(node.only(names)[name].number(words=True) for name in names))
