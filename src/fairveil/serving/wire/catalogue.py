"""The questions that go through the door, each described by its name and plain fields. There are no
others.

Whoever describes a question knows the classes of the curator; whoever reads a description makes the
same question by the class's own constructor, which checks it as if the holder had made it. A
question that runs a caller's code (a function of rows, a torch module) has no description, and is
refused with that reason.

Guarantees (tests/serving/test_serving_catalogue.py):
1. A question that was described and read again has the same key, and the same values to the last
   bit.
2. A description names no class, module or file of the reader's choosing; unknown names and fields
   are refused.
3. An answer has at most `MOST_NUMBERS` numbers, whatever a question claims: refused before anything
   is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np

from ... import _checks
from ..._json import Node
from ...curator import (
    Attached,
    AttachedCodes,
    AttachedHistogram,
    AttachedLosses,
    ByCell,
    CellCounts,
    CodeHistogram,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupedHistogram,
    GroupLosses,
    Linear,
    Measurement,
    MixtureHistogram,
    NumberMoments,
    PredictionHistogram,
    Question,
    RowCount,
    ScoreHistogram,
    Weighed,
)
from ...curator.questions.shifted import ShiftedHistogram
from ...errors import InputError
from ...facts import Cells, RowLayout
from .messages import Message, Packing

MOST_NUMBERS = 1 << 22
"""Numbers of one answer: 32 MB. A hostile count of copies, cells or edges is refused by it."""
MOST_MEASUREMENTS = 256
GROUP_MODES = ("product", "marginal")


class ModelHandle(Attached):
    """What the analyst's side holds of a model that the holder keeps beside the rows: its number in
    the run, and no row."""

    def __init__(self, number: int, classes: int, reads: frozenset[str], title: str) -> None:
        self.number_in_run, self.classes, self.columns_read, self.title = (
            number,
            classes,
            reads,
            title,
        )


class CodesHandle(AttachedCodes):
    """The same of codes."""

    def __init__(self, number: int, count: int, reads: frozenset[str], title: str) -> None:
        self.number_in_run, self.count, self.columns_read, self.title = number, count, reads, title


@dataclass(frozen=True, eq=False)
class Reading:
    """What a description is read with: the arrays beside it, the shape of the rows, and models
    attached in this run."""

    message: Message
    layout: RowLayout
    handles: Mapping[int, Attached | AttachedCodes]
    depth: int = 0


# -- writing ---------------------------------------------------------------------------------------


def described(question: Question, packing: Packing) -> dict[str, Any]:
    """A question as plain values."""
    kind = type(question)
    if kind not in NAMES:
        remedy = (
            "Bring the rows to the code instead, or fit what the catalogue has: linear and "
            "additive models, counts."
        )
        raise InputError.expected(
            f"a question of the catalogue: {', '.join(sorted(KINDS))}",
            of="the door",
            got=f"{question.name or kind.__name__}, which runs code that is not the holder's",
            remedy=remedy,
            quote=False,
        )
    names = (
        field.name
        for field in fields(cast(Any, question))
        if field.init and not field.name.startswith("_")
    )
    return {
        "kind": NAMES[kind],
        **{
            name: _written(value, packing) for name, value in _checks.named(question, names).items()
        },
    }


def measurement_described(measurement: Measurement, packing: Packing) -> dict[str, Any]:
    """A question with its price."""
    multiplier = (
        measurement.multiplier
        if isinstance(measurement.multiplier, float)
        else packing.put(np.asarray(measurement.multiplier, np.float64))
    )
    question = described(measurement.question, packing)
    return {
        "question": question,
        "multiplier": multiplier,
        "noise": measurement.noise,
    }


def cells_described(cells: Cells | None) -> dict[str, Any] | None:
    """Groups as plain values."""
    if cells is None:
        return None
    return {
        "columns": [list(column) for column in cells.columns],
        "mode": cells.mode,
        "names": list(cells.names),
    }


def _written(value: object, packing: Packing) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Cells():
            return cells_described(value)
        case Linear():
            return {
                "weights": packing.put(np.asarray(value.weights, np.float64)),
                "sharpness": value.sharpness,
            }
        case Question():
            return described(value, packing)
        case ModelHandle() | CodesHandle():
            return {"handle": value.number_in_run}
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value)
        case _:
            return packing.put(np.asarray(value, np.float64))


# -- reading ---------------------------------------------------------------------------------------

Read = Callable[[Node, Reading], Any]


def measurement_of(node: Node, reading: Reading) -> Measurement:
    """The question with its price that was described."""
    node.only(("question", "multiplier", "noise"))
    multiplier: Any = node["multiplier"]
    multiplier = (
        _array(multiplier, reading)
        if isinstance(multiplier.value, dict)
        else float(multiplier.number())
    )
    return Measurement(question_of(node["question"], reading), multiplier, node["noise"].text())


def question_of(node: Node, reading: Reading) -> Question:
    """The question that was described."""
    if reading.depth > 1:
        node.refuse("one question inside another", "more")
    name = node["kind"].one_of(KINDS)
    kind, readers = KINDS[name]
    node.only(("kind", *readers))
    values = {field: read(node[field], reading) for field, read in readers.items()}
    question: Question = kind(**values)
    _require_size(question, reading.layout)
    return question


def _require_size(question: Question, layout: RowLayout) -> None:
    numbers = question.models * math.prod(question.shape(layout))
    if numbers > MOST_NUMBERS:
        remedy = "Ask about fewer groups, models or edges at a time."
        raise InputError.expected(
            f"at most {MOST_NUMBERS} numbers",
            of=f"the answer to {question.name!r}",
            got=numbers,
            remedy=remedy,
        )


def cells_of(node: Node, reading: Reading | None = None) -> Cells | None:
    """Groups that were described."""
    if node.is_null:
        return None
    node.only(("columns", "mode", "names"))
    columns = tuple(
        tuple(_plain(value) for value in column.list()) for column in node["columns"].list()
    )
    mode = node["mode"].one_of(GROUP_MODES)
    return Cells(columns, mode, node["names"].texts())  # type: ignore[arg-type]  # checked above


def _plain(node: Node) -> Any:
    value = node.value
    if not isinstance(value, str | bool | int | float):
        node.refuse("a word, a number or a truth value", value)
    return value


def _some_cells(node: Node, reading: Reading) -> Cells:
    found = cells_of(node)
    if found is None:
        node.refuse("groups", None)
    return found


def _linear(node: Node, reading: Reading) -> Linear:
    node.only(("weights", "sharpness"))
    return Linear(_array(node["weights"], reading), node["sharpness"].number())


def _array(node: Node, reading: Reading) -> Any:
    return np.asarray(reading.message.array(node), np.float64)


def _maybe_array(node: Node, reading: Reading) -> Any:
    return None if node.is_null else _array(node, reading)


def _number_or_array(node: Node, reading: Reading) -> Any:
    return _array(node, reading) if isinstance(node.value, dict) else float(node.number())


def _numbers(node: Node, reading: Reading) -> tuple[float, ...]:
    return tuple(_array(node, reading).ravel().tolist())


def _truth(node: Node, reading: Reading) -> bool:
    return node.truth()


def _word(node: Node, reading: Reading) -> str:
    return node.text()


def _whole(node: Node, reading: Reading) -> int | None:
    return None if node.is_null else node.whole(at_most=MOST_NUMBERS)


def _positive(node: Node, reading: Reading) -> float | None:
    return None if node.is_null else float(node.number())


def _scalar(node: Node, reading: Reading) -> float:
    return float(node.number())


def _inner(node: Node, reading: Reading) -> Question:
    return question_of(node, replace(reading, depth=reading.depth + 1))


def _codes(node: Node, reading: Reading) -> AttachedCodes:
    found = _handle(node, reading)
    return (
        found
        if isinstance(found, AttachedCodes)
        else node.refuse("codes that were attached", "a model")
    )


def _model(node: Node, reading: Reading) -> Attached:
    found = _handle(node, reading)
    return (
        found if isinstance(found, Attached) else node.refuse("a model that was attached", "codes")
    )


def _handle(node: Node, reading: Reading) -> Attached | AttachedCodes:
    number = node.only(("handle",))["handle"].whole()
    if number not in reading.handles:
        node.refuse("a handle of this run", number)
    return reading.handles[number]


_CELLS: dict[str, Read] = {"cells": cells_of}
_LABELLED: dict[str, Read] = {**_CELLS, "by_label": _truth}
_ONE_GROUP: dict[str, Read] = {**_LABELLED, "group": _whole}
KINDS: dict[str, tuple[Callable[..., Question], dict[str, Read]]] = {
    "row count": (RowCount, {"copies": _whole}),
    "cell counts": (CellCounts, {**_ONE_GROUP, "copies": _whole}),
    "feature sums": (FeatureSums, {**_LABELLED, "clip": _positive, "basis": _maybe_array}),
    "gram matrices": (GramMatrices, {**_CELLS, "clip": _positive, "with_target": _truth}),
    "number moments": (NumberMoments, {"clip": _positive}),
    "prediction histogram": (
        PredictionHistogram,
        {"model": _linear, **_LABELLED, "decisions": _word},
    ),
    "score histogram": (ScoreHistogram, {"model": _linear, "edges": _numbers, **_LABELLED}),
    "mixture histogram": (MixtureHistogram, {"weights": _array, "shares": _array, **_LABELLED}),
    "grouped histogram": (
        GroupedHistogram,
        {"model": _linear, "offsets": _array, "of": _some_cells, **_LABELLED},
    ),
    "group losses": (GroupLosses, {"model": _linear, **_CELLS, "loss": _word, "clip": _positive}),
    "gradient sum": (
        GradientSum,
        {
            "model": _linear,
            "clip": _positive,
            **_CELLS,
            "cell_costs": _maybe_array,
            "loss": _word,
            "loss_weight": _number_or_array,
            "cell_weights": _maybe_array,
            "loss_clip": _positive,
        },
    ),
    "sums by cell": (ByCell, {"inner": _inner, "cells": _some_cells}),
    "sums weighed by cell": (Weighed, {"inner": _inner, "cells": _some_cells, "factors": _array}),
    "codes": (CodeHistogram, {"attached": _codes, **_ONE_GROUP}),
    "decisions": (AttachedHistogram, {"attached": _model, **_ONE_GROUP, "decisions": _word}),
    "shifted decisions": (
        ShiftedHistogram,
        {
            "attached": _model,
            **_ONE_GROUP,
            "decisions": _word,
            "offsets": _array,
            "temperature": _scalar,
        },
    ),
    "losses": (
        AttachedLosses,
        {"attached": _model, **_CELLS, "loss": _word, "clip": _number_or_array},
    ),
}
NAMES: dict[type, str] = {cast(type, kind): name for name, (kind, _) in KINDS.items()}
