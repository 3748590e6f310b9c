"""Parameters, cells and outcomes of estimators as plain JSON values, and back. Numbers to the last bit."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import InputError, NotWritten, complaint
from ..facts import Cells, Schema
from ..fairness import Notion, keys
from ..fairness.notions import from_dict as notion_from_dict
from ..fairness.objectives import Bound, Constraint, Objective
from ..fairness.objectives import from_dict as objective_from_dict
from ..learning import Outcome, Reason
from ..learning.game import Equilibrium
from ..learning.game_bounds import Guarantee
from ..learning.oracles import Rule

TOLD = ("bounds", "values", "spread", "duals", "counts")
ARRAYS = ("weights", *TOLD)


def parameter(value: Any, name: str) -> Any:
    """A parameter: plain values as they are, the rest under a word that says what it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, Notion):
        return {"notion": value.to_dict()}
    if isinstance(value, Objective | Bound | Constraint):
        return {"asked": value.to_dict()} if value.is_written else _given(name)
    if isinstance(value, Schema):
        return {"schema": value.to_dict()}
    if isinstance(value, (list, tuple)):
        return [parameter(item, name) for item in value]
    if isinstance(value, Mapping):
        return {"by_group": [[keys.to_json(key, of=name), parameter(item, name)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and np.isfinite(value).all():
        return {"array": value.tolist()}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    remedy = "Use parameters that JSON can hold."
    raise InputError(complaint(expected="a parameter that can be written", of=name, got=type(value).__name__, remedy=remedy))


def _given(name: str) -> str:
    """The word that stands for a user's functions."""
    text = (
        f"{name}: functions of yours are not written. The loaded estimator decides without them; to fit it again, set {name} "
        "anew with set_params"
    )
    warnings.warn(text, NotWritten, stacklevel=5)
    return "given"


def read_parameter(value: Any) -> Any:
    """The inverse of `parameter`."""
    if isinstance(value, list):
        return [read_parameter(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((word, content),) = value.items()
    readers: dict[str, Callable[[Any], Any]] = {
        "number": float,
        "array": np.array,
        "by_group": lambda pairs: {_hashable(key): read_parameter(item) for key, item in pairs},
        "notion": notion_from_dict,
        "asked": objective_from_dict,
        "schema": Schema.from_dict,
    }
    return readers[word](content)


def cells_to_dict(cells: Cells | None) -> dict[str, Any] | None:
    """The cells of an estimator."""
    if cells is None:
        return None
    columns = [[keys.to_json(value, of="groups") for value in column] for column in cells.columns]
    return {"columns": columns, "mode": cells.mode, "names": list(cells.names)}


def cells_from_dict(values: Any) -> Cells | None:
    """The inverse of `cells_to_dict`."""
    if values is None:
        return None
    return Cells(tuple(tuple(map(_hashable, column)) for column in values["columns"]), values["mode"], tuple(values["names"]))


def outcome_to_dict(outcome: Outcome, *, weights: bool = True) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float. `weights`: not of a network, whose model has them."""
    return _told(outcome, ARRAYS if weights else TOLD)


def outcome_from_dict(values: Mapping[str, Any], weights: Any = None) -> Outcome:
    """The inverse of `outcome_to_dict`, given the weights that it left out."""
    if weights is None:
        return Outcome(**_heard(values, ARRAYS))
    return Outcome(weights=weights, **_heard(values, TOLD))


def equilibrium_to_dict(outcome: Equilibrium) -> dict[str, Any]:
    """The same of a game. Its rules are the model's."""
    guarantee = None if outcome.guarantee is None else outcome.guarantee.to_dict()
    return _told(outcome, TOLD) | {"plays": list(outcome.plays), "guarantee": guarantee}


def equilibrium_from_dict(values: Mapping[str, Any], rules: tuple[Rule, ...]) -> Equilibrium:
    """The inverse of `equilibrium_to_dict`."""
    guarantee = None if values["guarantee"] is None else Guarantee.from_dict(values["guarantee"])
    plays = tuple(int(count) for count in values["plays"])
    return Equilibrium(rules=rules, plays=plays, guarantee=guarantee, **_heard(values, TOLD))


def _told(outcome: Outcome | Equilibrium, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = {name: getattr(outcome, name) for name in names}
    listed = {name: {"shape": list(array.shape), "values": numbers(array)} for name, array in arrays.items()}
    return {
        "reason": outcome.reason.name,
        "rounds": outcome.rounds,
        "names": list(outcome.names),
        "rows": outcome.rows,
        "arrays": listed,
    }


def _heard(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    arrays = {
        name: np.array([float(number) for number in values["arrays"][name]["values"]]).reshape(values["arrays"][name]["shape"])
        for name in names
    }
    plain = {"reason": Reason[values["reason"]], "rounds": int(values["rounds"]), "rows": float(values["rows"])}
    return arrays | plain | {"names": tuple(map(str, values["names"]))}


def numbers(array: Any) -> list[Any]:
    """Numbers in a list; those that are not finite as texts."""
    return [number if math.isfinite(number) else str(number) for number in np.asarray(array, np.float64).ravel().tolist()]


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value
