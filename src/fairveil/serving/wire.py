"""What goes between analyst and server, as bytes: JSON values beside arrays of plain numbers, and a
closed catalogue of questions. No pickle, no code, nothing that is imported by name.

    b"FVD1" | length of the head, 4 bytes | head, JSON in UTF-8 | the arrays' bytes, one after another

The head says `{"content": ..., "arrays": [{"type": "<f8", "shape": [2, 3]}, ...]}`, and the content
names an array by its place: `{"array": 0}`. All numbers are little-endian. Whoever describes a
question knows the classes of the curator; whoever reads a description makes the same question by the
class's own constructor, which checks it as if the holder had made it. A question that runs a
caller's code (a function of rows, a torch module) has no description, and is refused.

Guarantees (tests/serving/test_serving_wire.py):
1. What was packed is unpacked to the last bit; a question that was described and read again has the
   same key, and the same values.
2. Nothing is allocated for a size that a message only claims. Every byte of it must be used, and
   every array be named by its content.
3. A description names no class, module or file of the reader's choosing; unknown names and fields
   are refused. An answer has at most `MOST_NUMBERS` numbers, whatever a question claims.
4. Whatever else comes is an `InputError`; no other exception leaves this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Document, Node
from ..core.questions import Kind
from ..curator import (
    Attached,
    AttachedCodes,
    AttachedHistogram,
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
from ..curator.attached import ShiftedHistogram
from ..curator.elsewhere import DescribedRule
from ..errors import InputError
from ..facts import Cells, RowLayout
from ..models.files import ARRAYS_FILE, MODEL_FILE, to_files
from ..models.npz import TYPES

MAGIC, LARGEST_HEAD, MOST_ARRAYS, MOST_AXES, DEEPEST = b"FVD1", 4 << 20, 4096, 8, 40
MOST_NUMBERS = 1 << 22
"""Numbers of one answer: 32 MB. A hostile count of copies, cells or edges is refused by it."""
MESSAGE = Document(
    "message", "Speak to a server with fairveil.remote.", largest=LARGEST_HEAD, deepest=DEEPEST
)
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Message:
    """What was unpacked: the content, and the arrays that it names."""

    content: Node
    arrays: tuple[Array, ...]

    def array(self, node: Node) -> Array:
        """The array that a value of the content names."""
        place = node.only(("array",))["array"].whole()
        if place >= len(self.arrays):
            node.refuse(f"an array below number {len(self.arrays)}", place)
        return self.arrays[place]


class Packing:
    """A message in the making: arrays are put in as they are met."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def put(self, array: object) -> dict[str, int]:
        """How the content names this array."""
        found = np.asarray(array)
        kind = found.dtype.newbyteorder("<") if found.dtype.str[0] == ">" else found.dtype
        if kind.str not in TYPES:
            kind = np.dtype("<i8" if kind.kind in "iu" else "<f8")
        # `ascontiguousarray` would give a number an axis
        self.arrays.append(np.asarray(found, dtype=kind, order="C"))
        return {"array": len(self.arrays) - 1}

    def packed(self, content: object) -> bytes:
        """The whole message."""
        facts = [{"type": array.dtype.str, "shape": list(array.shape)} for array in self.arrays]
        values = {"content": content, "arrays": facts}
        head = json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
        start = (MAGIC, len(head).to_bytes(4, "little"), head)
        return b"".join((*start, *(array.tobytes() for array in self.arrays)))


def packed(content: object, arrays: Sequence[Any] = ()) -> bytes:
    """A message whose content names these arrays by their places."""
    packing = Packing()
    for array in arrays:
        packing.put(array)
    return packing.packed(content)


def unpacked(raw: bytes) -> Message:
    """The message in these bytes, all of them."""
    if raw[:4] != MAGIC or len(raw) < 8:
        MESSAGE.refuse("a message of this protocol", f"{len(raw)} other bytes")
    length = int.from_bytes(raw[4:8], "little")
    if length > LARGEST_HEAD or 8 + length > len(raw):
        MESSAGE.refuse(f"a head of at most {min(LARGEST_HEAD, len(raw) - 8)} bytes", length)
    head = MESSAGE.node(raw[8 : 8 + length]).only(("content", "arrays"))
    declared = head["arrays"].list()
    named = set(_named(head["content"].value)) if declared else set()
    if len(declared) > MOST_ARRAYS or not named.issuperset(range(len(declared))):
        head["arrays"].refuse(f"at most {MOST_ARRAYS} arrays, each named", f"{len(declared)}")
    at, arrays = 8 + length, []
    for one in declared:
        array, at = _array_at(raw, at, one.only(("type", "shape")))
        arrays.append(array)
    if at != len(raw):
        MESSAGE.refuse(f"{at} bytes, as its head says", len(raw))
    return Message(head["content"], tuple(arrays))


def _named(value: object) -> Iterator[int]:
    """The arrays that a content names, at any depth that was read."""
    if isinstance(value, dict):
        if value.keys() == {"array"} and type(value["array"]) is int:
            yield value["array"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            if isinstance(one, dict | list):
                yield from _named(one)


def _array_at(raw: bytes, at: int, facts: Node) -> tuple[Array, int]:
    kind, sizes = facts["type"].one_of(TYPES), facts["shape"].list()
    if len(sizes) > MOST_AXES:
        facts["shape"].refuse(f"at most {MOST_AXES} axes", len(sizes))
    shape = tuple(size.whole() for size in sizes)
    item, count = np.dtype(kind).itemsize, math.prod(shape)
    # a length of 0 makes any other length cost nothing here, and too much where the shape is used
    if max(shape, default=0) > len(raw) or count * item > len(raw) - at:
        left, got = len(raw) - at, f"shape {list(shape)[:8]}"
        facts.refuse(f"an array of at most {left} bytes, which are there", got)
    flat = np.frombuffer(raw, dtype=kind, count=count, offset=at)
    if kind == "|b1" and count and int(np.frombuffer(raw, np.uint8, count, at).max()) > 1:
        facts.refuse("truth values", "other bytes")
    array = flat.reshape(shape)
    array.setflags(write=False)
    return array, at + count * item


# -- the catalogue ---------------------------------------------------------------------------------


class ModelHandle(Attached):
    """What the analyst's side holds of a model that is kept beside the rows: its number in the run,
    and no row."""

    def __init__(self, number: int, classes: int, reads: frozenset[str], title: str) -> None:
        self.number_in_run, self.classes, self.title = number, classes, title
        self.columns_read = reads


class CodesHandle(AttachedCodes):
    """The same of codes."""

    def __init__(self, number: int, count: int, reads: frozenset[str], title: str) -> None:
        self.number_in_run, self.count, self.title = number, count, title
        self.columns_read = reads


@dataclass(frozen=True, eq=False)
class Reading:
    """What a description is read with: the arrays beside it, the shape of the rows, and models
    attached in this run."""

    message: Message
    layout: RowLayout
    handles: Mapping[int, Attached | AttachedCodes]
    depth: int = 0


_GROUPED = "cells:cells? by_label:truth"
_ONE_GROUP = f"{_GROUPED} group:whole?"
_FIELDS: dict[str, tuple[Kind[...], str]] = {
    "row count": (RowCount, "copies:whole?"),
    "cell counts": (CellCounts, f"{_ONE_GROUP} copies:whole?"),
    "feature sums": (FeatureSums, f"{_GROUPED} clip:number? basis:array?"),
    "gram matrices": (GramMatrices, "cells:cells? clip:number? with_target:truth"),
    "number moments": (NumberMoments, "clip:number?"),
    "prediction histogram": (PredictionHistogram, f"model:linear {_GROUPED} decisions:word"),
    "score histogram": (ScoreHistogram, f"model:linear edges:numbers {_GROUPED}"),
    "mixture histogram": (MixtureHistogram, f"weights:array shares:array {_GROUPED}"),
    "grouped histogram": (GroupedHistogram, f"model:linear offsets:array of:cells {_GROUPED}"),
    "group losses": (GroupLosses, "model:linear cells:cells? loss:word clip:number?"),
    "gradient sum": (
        GradientSum,
        "model:linear clip:number? cells:cells? cell_costs:array? loss:word "
        "loss_weight:number|array cell_weights:array? loss_clip:number?",
    ),
    "sums by cell": (ByCell, "inner:question cells:cells"),
    "sums weighed by cell": (Weighed, "inner:question cells:cells factors:array"),
    "codes": (CodeHistogram, f"attached:codes {_ONE_GROUP}"),
    "decisions": (AttachedHistogram, f"attached:model {_ONE_GROUP} decisions:word"),
    "shifted decisions": (
        ShiftedHistogram,
        f"attached:model {_ONE_GROUP} decisions:word offsets:array temperature:number",
    ),
}
KINDS = {
    name: (kind, dict(field.split(":") for field in told.split()))
    for name, (kind, told) in _FIELDS.items()
}
NAMES = {kind: name for name, (kind, _) in KINDS.items()}


def described(question: Question, packing: Packing) -> dict[str, Any]:
    """A question as plain values."""
    kind = question.kind
    if kind not in NAMES:
        remedy = "Bring the rows to the code, or fit what the catalogue has: linear and additive models, counts."
        raise InputError.expected(
            f"a question of the catalogue: {', '.join(sorted(KINDS))}",
            of="the door",
            got=f"{question.name}, which runs code that is not the holder's",
            remedy=remedy,
            quote=False,
        )
    values = {name: _written(one, packing) for name, one in question.values.items()}
    return {"kind": NAMES[kind], **values}


def measurement_described(measurement: Measurement, packing: Packing) -> dict[str, Any]:
    """A question with its price."""
    question, multiplier = described(measurement.question, packing), measurement.multiplier
    told = (
        multiplier if isinstance(multiplier, float) else packing.put(np.asarray(multiplier, float))
    )
    return {"question": question, "multiplier": told, "noise": measurement.noise}


def cells_described(cells: Cells | None) -> dict[str, Any] | None:
    """Groups as plain values."""
    if cells is None:
        return None
    columns = [list(column) for column in cells.columns]
    return {"columns": columns, "mode": cells.mode, "names": list(cells.names)}


def rule_described(rule: DescribedRule, packing: Packing) -> dict[str, Any]:
    """A rule that gives each row a code: a finished model's files, edges, and a table of whole
    numbers."""
    model = None
    if rule.model is not None:
        files = to_files(rule.model)
        arrays = packing.put(np.frombuffer(files[ARRAYS_FILE], np.uint8))
        model = {"files": files[MODEL_FILE].decode(), "arrays": arrays}
    return {
        "model": model,
        "edges": None if rule.edges is None else packing.put(np.asarray(rule.edges, np.float64)),
        "cells": cells_described(rule.cells),
        "table": None if rule.table is None else packing.put(np.asarray(rule.table, np.int64)),
    }


def _written(value: object, packing: Packing) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Cells():
            return cells_described(value)
        case Linear():
            weights = packing.put(np.asarray(value.weights, np.float64))
            return {"weights": weights, "sharpness": value.sharpness}
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


def measurement_of(node: Node, reading: Reading) -> Measurement:
    """The question with its price that was described."""
    node.only(("question", "multiplier", "noise"))
    multiplier = _number_or_array(node["multiplier"], reading)
    return Measurement(question_of(node["question"], reading), multiplier, node["noise"].text())


def question_of(node: Node, reading: Reading) -> Question:
    """The question that was described."""
    if reading.depth > 1:
        node.refuse("one question inside another", "more")
    kind, told = KINDS[node["kind"].one_of(KINDS)]
    node.only(("kind", *told))
    values = {name: _read(node[name], of, reading) for name, of in told.items()}
    question = kind(**values)
    numbers = question.models * math.prod(question.shape(reading.layout))
    if numbers > MOST_NUMBERS:
        remedy = "Ask about fewer groups, models or edges at a time."
        of = f"the answer to {question.name!r}"
        raise InputError.expected(
            f"at most {MOST_NUMBERS} numbers", of=of, got=numbers, remedy=remedy
        )
    return question


def cells_of(node: Node) -> Cells | None:
    """Groups that were described."""
    if node.is_null:
        return None
    node.only(("columns", "mode", "names"))
    columns = []
    for column in node["columns"].list():
        for value in column.list():
            if not isinstance(value.value, str | bool | int | float):
                value.refuse("a word, a number or a truth value", value.value)
        columns.append(tuple(column.value))
    mode: Any = node["mode"].one_of(("product", "marginal"))
    return Cells(tuple(columns), mode, node["names"].texts())


def _read(node: Node, kind: str, reading: Reading) -> Any:
    """A field of a question: one of the kinds of `_FIELDS`, of which those with ? may be null."""
    if kind.endswith("?"):
        return None if node.is_null else _read(node, kind[:-1], reading)
    match kind:
        case "cells":
            return cells_of(node) or node.refuse("groups", None)
        case "linear":
            node.only(("weights", "sharpness"))
            return Linear(_array(node["weights"], reading), node["sharpness"].number())
        case "array":
            return _array(node, reading)
        case "numbers":
            return tuple(_array(node, reading).ravel().tolist())
        case "number|array":
            return _number_or_array(node, reading)
        case "number":
            return node.number()
        case "whole":
            return node.whole(at_most=MOST_NUMBERS)
        case "truth":
            return node.truth()
        case "word":
            return node.text()
        case "question":
            return question_of(node, replace(reading, depth=reading.depth + 1))
    number = node.only(("handle",))["handle"].whole()
    found = reading.handles.get(number)
    if not isinstance(found, AttachedCodes if kind == "codes" else Attached):
        node.refuse(f"a handle of {kind} that was attached in this run", number)
    return found


def _array(node: Node, reading: Reading) -> Any:
    return np.asarray(reading.message.array(node), np.float64)


def _number_or_array(node: Node, reading: Reading) -> Any:
    return _array(node, reading) if isinstance(node.value, dict) else node.number()
