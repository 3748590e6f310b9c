"""Parameters, cells and outcomes of estimators as plain JSON values, and back. Numbers to the last
bit."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._json import Node
from ...core.layout import GROUP_MODES
from ...errors import InputError, NotWritten
from ...facts import Cells, Schema
from ...fairness import Notion
from ...fairness.notions import from_dict as notion_from_dict
from ...fairness.objectives import Bound, Constraint, Objective
from ...fairness.objectives import from_dict as objective_from_dict
from ...learning import Outcome, Reason
from ...learning.game import Equilibrium
from ...learning.game_bounds import Guarantee
from ...learning.oracles import Rule
from ...tables import keys
from ..reading.additive import Additive
from ..settings.kinds import SETTINGS
from ..settings.setting import Setting, changed, knobs

TOLD = ("bounds", "values", "spread", "duals", "counts")
ARRAYS = ("weights", *TOLD)
LISTED = {"bounds", "values", "spread", "duals", "pressed"}
"""What an outcome has one of for each constraint."""
MOST_AXES = 8
MOST_CELLS = 1 << 20
"""Groups of an estimator that is read: a key is made for each."""


def parameter(value: object, name: str) -> Any:
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
    if isinstance(value, Additive):
        return {"additive": value.to_dict()}
    if isinstance(value, Setting):
        inside = {knob: parameter(held, knob) for knob, held in changed(value).items()}
        return {"settings": {"kind": type(value).__name__, "values": inside}}
    if isinstance(value, Schema):
        return {"schema": value.to_dict()}
    if isinstance(value, Cells):
        return {"cells": cells_to_dict(value)}
    if isinstance(value, (list, tuple)):
        return [parameter(item, name) for item in value]
    if isinstance(value, Mapping):
        return {
            "by_group": [
                [keys.to_json(key, of=name), parameter(item, name)] for key, item in value.items()
            ]
        }
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and np.isfinite(value).all():
        return {"array": value.tolist()}
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    remedy = "Use parameters that JSON can hold."
    raise InputError.expected(
        "a parameter that can be written", of=name, got=type(value).__name__, remedy=remedy
    )


def _given(name: str) -> str:
    """The word that stands for a user's functions."""
    text = (
        f"{name}: functions of yours are not written. The loaded estimator decides without them; "
        f"to fit it again, set {name} "
        "anew with set_params"
    )
    warnings.warn(text, NotWritten, stacklevel=5)
    return "given"


def read_parameter(node: Node) -> Any:
    """The inverse of `parameter`."""
    if isinstance(node.value, list):
        return [read_parameter(item) for item in node.list()]
    if not isinstance(node.value, dict):
        return node.value
    if len(node.value) != 1:
        words = (
            "'number', 'array', 'additive', 'by_group', 'cells', 'notion', 'asked', 'schema', "
            "'settings'"
        )
        node.refuse(f"an object with one of {words}", node.value)
    readers: dict[str, Callable[[Node], Any]] = {
        "number": lambda given: given.number(words=True) if given.value != "-nan" else math.nan,
        "additive": lambda given: Additive.from_dict(given.mapping()),
        "array": _read_array,
        "by_group": _read_by_group,
        "notion": lambda given: notion_from_dict(given.mapping()),
        "asked": lambda given: objective_from_dict(given.mapping()),
        "schema": lambda given: Schema.from_dict(given.mapping()),
        "cells": cells_from_dict,
        "settings": _read_settings,
    }
    ((word, _),) = node.value.items()
    reader = readers.get(word)
    if reader is None:
        node.refuse(f"an object with one of {sorted(readers)}", node.value)
    return reader(node[word])


def _read_settings(node: Node) -> Setting:
    given = node.only(("kind", "values"))
    kind = SETTINGS[given["kind"].one_of(tuple(SETTINGS))]
    inside = given["values"].only((), tuple(knobs(kind)))
    return kind(**{knob: read_parameter(inside[knob]) for knob in inside.mapping()})


def _read_array(node: Node) -> npt.NDArray[Any]:
    """Numbers in lists of one shape. Nothing else: an array of texts or of objects was never
    written."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one.value, list):
            waiting += [item for item in one.list() if type(item.value) is not float]
        else:
            one.number()
    try:
        return np.array(node.value)
    except (ValueError, OverflowError):
        node.refuse("lists of one length", node.value)


def _read_by_group(node: Node) -> dict[Any, Any]:
    pairs = [pair.list(2) for pair in node.list()]
    return {keys.plain(key.value, of=key.place): read_parameter(item) for key, item in pairs}


def cells_to_dict(cells: Cells | None) -> dict[str, Any] | None:
    """The cells of an estimator."""
    if cells is None:
        return None
    columns = [[keys.to_json(value, of="groups") for value in column] for column in cells.columns]
    return {"columns": columns, "mode": cells.mode, "names": list(cells.names)}


def cells_from_dict(node: Node) -> Cells | None:
    """The inverse of `cells_to_dict`."""
    if node.is_null:
        return None
    node.only(("columns", "mode", "names"))
    columns = [
        [keys.plain(value.value, of=value.place) for value in column.list()]
        for column in node["columns"].list()
    ]
    mode = node["mode"].one_of(GROUP_MODES)
    sizes = [len(column) for column in columns]
    if (math.prod(sizes) if mode == "product" else sum(sizes)) > MOST_CELLS:
        node.refuse(f"at most {MOST_CELLS} groups", "more")
    return Cells(tuple(map(tuple, columns)), mode, node["names"].texts())  # type: ignore[arg-type]


def outcome_to_dict(outcome: Outcome, *, weights: bool = True) -> dict[str, Any]:
    """JSON writes the shortest text that reads back as the same float. `weights`: not of a network,
    whose model has them."""
    return _told(outcome, ARRAYS if weights else TOLD) | {
        "looks": outcome.looks,
        "sampling": sampling_to_list(outcome.sampling),
        "weight_noise": outcome.weight_noise,
    }


def outcome_from_dict(node: Node, weights: Any = None) -> Outcome:
    """The inverse of `outcome_to_dict`, given the weights that it left out."""
    given = {} if weights is None else {"weights": weights}
    told = node["weight_noise"]
    fields = _heard(node, TOLD if given else ARRAYS, ("looks", "sampling", "weight_noise"))
    return Outcome(
        **given,
        **fields,
        looks=node["looks"].whole(at_least=1),
        sampling=sampling_from(node),
        weight_noise=None if told.is_null else told.number(),
    )


def equilibrium_to_dict(outcome: Equilibrium) -> dict[str, Any]:
    """The same of a game. Its rules are the model's."""
    guarantee = None if outcome.guarantee is None else outcome.guarantee.to_dict()
    sampling = sampling_to_list(outcome.sampling)
    beside = {
        "plays": list(outcome.plays),
        "guarantee": guarantee,
        "sampling": sampling,
        "looks": outcome.looks,
    }
    return _told(outcome, TOLD) | beside


def equilibrium_from_dict(node: Node, rules: tuple[Rule, ...]) -> Equilibrium:
    """The inverse of `equilibrium_to_dict`."""
    told = node["guarantee"]
    guarantee = (
        None
        if told.is_null
        else Guarantee.from_dict(guarantee_fields(told, ("measured",), unknown=True))
    )
    plays = tuple(count.whole() for count in node["plays"].list())
    fields = _heard(node, TOLD, ("plays", "guarantee", "sampling", "looks"))
    return Equilibrium(
        rules=rules,
        plays=plays,
        guarantee=guarantee,
        **fields,
        sampling=sampling_from(node),
        looks=node["looks"].whole(at_least=1),
    )


def sampling_to_list(sampling: object) -> list[Any] | None:
    """The sampling errors of constraints."""
    return None if sampling is None else numbers(sampling)


def sampling_from(node: Node) -> Any:
    """The inverse, of a field "sampling"."""
    if node["sampling"].is_null:
        return None
    return np.array(
        node["sampling"].numbers(words=True, length=len(node["names"].texts())), np.float64
    )


def guarantee_fields(
    node: Node, lists: Collection[str], *, unknown: bool = False
) -> dict[str, Any]:
    """The numbers and lists of numbers of a guarantee, checked. `unknown`: null stands for what is
    not known."""

    def check(one: Node) -> None:
        if not (unknown and one.is_null):
            one.number(words=True)

    count = len(node["names"].texts()) if "names" in node.mapping() else None
    for name in node.mapping():
        if name == "names":
            continue
        if name in lists:
            for one in node[name].list(count):
                check(one)
        else:
            check(node[name])
    return node.mapping()


def released_fields(node: Node) -> dict[str, Any]:
    """Released counts, checked: the shape, as many numbers as it needs, the noise."""
    node.only(
        (
            "raw",
            "shape",
            "totals",
            "noise",
            "rows",
            *(("edges",) if "edges" in node.mapping() else ()),
        )
    )
    shape = [size.whole(at_most=1 << 32) for size in node["shape"].list(3)]
    kind, scale = node["noise"].list(2)
    kind.text()
    scale.number()
    node["raw"].numbers(length=math.prod(shape))
    if not node["totals"].is_null:
        node["totals"].numbers(length=math.prod(shape[1:]))
    if not node["rows"].is_null:
        node["rows"].number()
    if "edges" in node.mapping() and not node["edges"].is_null:
        node["edges"].numbers(length=shape[2] - 1)
    return node.mapping()


def _told(outcome: Outcome | Equilibrium, names: tuple[str, ...]) -> dict[str, Any]:
    arrays = _checks.named(outcome, names)
    listed = {
        name: {"shape": list(array.shape), "values": numbers(array)}
        for name, array in arrays.items()
    }
    return {
        "reason": outcome.reason.name,
        "rounds": outcome.rounds,
        "names": list(outcome.names),
        "rows": outcome.rows,
        "arrays": listed,
    }


def _heard(node: Node, names: tuple[str, ...], beside: Collection[str] = ()) -> dict[str, Any]:
    node.only(("reason", "rounds", "names", "rows", "arrays", *beside))
    arrays = arrays_from_dict(node["arrays"], names)
    plain = {
        "reason": reason_of(node["reason"]),
        "rounds": node["rounds"].whole(),
        "rows": node["rows"].number(words=True),
    }
    names_told = node["names"].texts()
    require_one_each(node, names_told, arrays)
    return arrays | plain | {"names": names_told}


def require_one_each(node: Node, names: Collection[str], arrays: Mapping[str, Any]) -> None:
    """One bound, value, deviation and pressure for each constraint."""
    for name in LISTED & set(arrays):
        if arrays[name].shape != (len(names),):
            node.refuse(f"{len(names)} {name}, one for each of 'names'", list(arrays[name].shape))


def reason_of(node: Node) -> Reason:
    """Why a search ended, by its name."""
    return Reason[node.one_of([reason.name for reason in Reason])]


def arrays_from_dict(node: Node, names: Collection[str]) -> dict[str, Any]:
    """Arrays by their names: a shape, and as many numbers as it needs."""
    node.only(names)
    found = {}
    for name in names:
        shape = [
            size.whole(at_most=1 << 40)
            for size in node[name].only(("shape", "values"))["shape"].list()
        ]
        if len(shape) > MOST_AXES:
            node[name]["shape"].refuse(f"at most {MOST_AXES} axes", len(shape))
        values = node[name]["values"].numbers(words=True, length=math.prod(shape))
        found[name] = np.array(values, dtype=np.float64).reshape(shape)
    return found


def numbers(array: object) -> list[Any]:
    """Numbers in a list; those that are not finite as texts."""
    return [
        number if math.isfinite(number) else str(number)
        for number in np.asarray(array, np.float64).ravel().tolist()
    ]
