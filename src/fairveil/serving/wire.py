"""What goes between analyst and server, as bytes: JSON values with arrays of plain numbers among
them, and a closed catalogue of questions. No pickle, no code, nothing that is imported by name.

    b"FVD1" | length of the head, 4 bytes | head, JSON in UTF-8 | the arrays' bytes, one after another

The head says `{"content": ..., "arrays": [{"type": "<f8", "shape": [2, 3]}, ...]}`, and the content
names an array by its place: `{"array": 0}`. All numbers are little-endian. Whoever reads a
description makes the question by the class's own constructor, which checks it as if the holder had
made it. A question that runs a caller's code has no description, and is refused.

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
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks, curator
from .._json import Document, Node
from ..core.attached import ShiftedHistogram
from ..core.errors import need
from ..core.questions import Kind
from ..curator import (
    FULL,
    Attached,
    Full,
    Linear,
    Measurement,
    Part,
    Poisson,
    Question,
)
from ..data.elsewhere import DescribedRule
from ..facts import Cells, RowLayout
from ..models.files import ARRAYS_FILE, MODEL_FILE, to_files
from ..models.npz import TYPES

MAGIC, LARGEST_HEAD, MOST_ARRAYS, MOST_AXES, DEEPEST = b"FVD1", 4 << 20, 4096, 8, 40
MOST_NUMBERS = 1 << 22
"""Numbers of one answer: 32 MB. A hostile count of copies, cells or edges is refused by it."""
_FIX = "Speak to a server with fairveil.remote."
MESSAGE = Document("message", _FIX, largest=LARGEST_HEAD, deepest=DEEPEST)
Array = npt.NDArray[Any]
Handles = Mapping[int, Attached]


# -- bytes -----------------------------------------------------------------------------------------


def packed(content: object) -> bytes:
    """The message of JSON values and arrays."""
    arrays: list[Array] = []

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return list(map(plain, value))
        if not isinstance(value, np.ndarray):
            return value
        kind = value.dtype.newbyteorder("<")
        if kind.str not in TYPES:
            kind = np.dtype("<i8" if kind.kind in "iu" else "<f8")
        # `ascontiguousarray` would give a number an axis
        arrays.append(np.asarray(value, dtype=kind, order="C"))
        return {"array": len(arrays) - 1}

    told = plain(content)
    facts = [{"type": array.dtype.str, "shape": list(array.shape)} for array in arrays]
    values = {"content": told, "arrays": facts}
    head = json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
    start = (MAGIC, len(head).to_bytes(4, "little"), head)
    return b"".join((*start, *(array.tobytes() for array in arrays)))


def unpacked(raw: bytes, *, most: int = MOST_ARRAYS) -> Node:
    """The content of the message in these bytes, all of them; `most`: arrays in it."""
    if raw[:4] != MAGIC or len(raw) < 8:
        MESSAGE.refuse("a message of this protocol", f"{len(raw)} other bytes")
    length = int.from_bytes(raw[4:8], "little")
    if length > LARGEST_HEAD or 8 + length > len(raw):
        MESSAGE.refuse(f"a head of at most {min(LARGEST_HEAD, len(raw) - 8)} bytes", length)
    head = MESSAGE.node(raw[8 : 8 + length]).only(("content", "arrays"))
    at, declared = 8 + length, head["arrays"].list()
    if len(declared) > most:
        head["arrays"].refuse(f"at most {most} arrays", len(declared))
    arrays: list[Array] = []
    for one in declared:
        array, at = _array_at(raw, at, one.only(("type", "shape")))
        arrays.append(array)
    if at != len(raw):
        MESSAGE.refuse(f"{at} bytes, as its head says", len(raw))
    named: set[int] = set()

    def whole(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(whole, value))
        if not isinstance(value, dict):
            return value
        place = value.get("array")
        if len(value) != 1 or type(place) is not int:
            return {name: whole(one) for name, one in value.items()}
        if not 0 <= place < len(arrays):
            head["content"].refuse(f"an array below number {len(arrays)}", place)
        named.add(place)
        return arrays[place]

    content = replace(head["content"], value=whole(head["content"].value))
    if len(named) < len(arrays):
        head["arrays"].refuse("arrays that are each named", f"{len(arrays) - len(named)} others")
    return content


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


def array_of(node: Node) -> Array:
    """An array of the content."""
    if not isinstance(node.value, np.ndarray):
        node.refuse("an array", node.value)
    return node.value


def floats_of(node: Node) -> npt.NDArray[np.float64]:
    """The same, of numbers."""
    return np.asarray(array_of(node), np.float64)


# -- views -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """Which of the schema's columns make the groups, whether they are features, too, and the steps
    of an additive model.

    `weight_cap`: where the holder's weights are cut; None: rows count once. `target_as_number`: the
    target is the last number, too. `part`: of a division, its id and 0 or 1; None: all rows.
    `one_group`: all rows of a person count in one group.
    """

    sensitive: tuple[str, ...] | None = None
    sensitive_as_feature: bool = False
    steps: str | None = None
    weight_cap: float | None = None
    target_as_number: bool = False
    part: tuple[str, int] | None = None
    one_group: bool = False

    def described(self) -> dict[str, Any]:
        """As plain values."""
        part = None if self.part is None else {"division": self.part[0], "number": self.part[1]}
        return {**asdict(self), "part": part}

    @staticmethod
    def of(node: Node) -> View:
        """The view that was described."""
        needed = ("sensitive", "sensitive_as_feature", "steps")
        given = node.only(needed, [one.name for one in fields(View)]).mapping().items()
        read: dict[str, Callable[[Node], Any]] = {"sensitive": Node.texts, "steps": Node.text}
        read |= {"weight_cap": Node.number, "part": _part_of}
        told = (name for name, value in given if value is not None)
        view = View(**{name: read.get(name, Node.truth)(node[name]) for name in told})
        if view.weight_cap is not None:
            _checks.positive(weight_cap=view.weight_cap)
        return view


def _part_of(node: Node) -> tuple[str, int]:
    node.only(("division", "number"))
    return node["division"].text(), node["number"].whole(at_most=1)


# -- the catalogue ---------------------------------------------------------------------------------


class RemoteHandle(Attached):
    """What the analyst's side holds of what is kept beside the rows: its number in the run, and no
    row."""

    number_in_run: int


_GROUPED = "cells:cells? by_label:truth"
_ONE_GROUP = f"{_GROUPED} group:whole?"
_DECIDED = f"{_ONE_GROUP} decisions:word offsets:array? temperature:number"
_FIELDS: dict[str, tuple[Kind[...], str]] = {
    "row count": (curator.RowCount, "copies:whole?"),
    "cell counts": (curator.CellCounts, f"{_ONE_GROUP} copies:whole?"),
    "feature sums": (curator.FeatureSums, f"{_GROUPED} clip:number? basis:array?"),
    "gram matrices": (curator.GramMatrices, "cells:cells? clip:number? with_target:truth"),
    "number moments": (curator.NumberMoments, "clip:number?"),
    "prediction histogram": (
        curator.PredictionHistogram,
        f"model:linear {_GROUPED} decisions:word",
    ),
    "score histogram": (curator.ScoreHistogram, f"model:linear edges:numbers {_GROUPED}"),
    "mixture histogram": (curator.MixtureHistogram, f"weights:array shares:array {_GROUPED}"),
    "grouped histogram": (
        curator.GroupedHistogram,
        f"model:linear offsets:array of:cells {_GROUPED}",
    ),
    "group losses": (curator.GroupLosses, "model:linear cells:cells? loss:word clip:number?"),
    "gradient sum": (
        curator.GradientSum,
        "model:linear clip:number? cells:cells? cell_costs:array? loss:word "
        "loss_weight:number|array cell_weights:array? loss_clip:number?",
    ),
    "sums by cell": (curator.ByCell, "inner:question cells:cells"),
    "sums weighed by cell": (curator.Weighed, "inner:question cells:cells factors:array"),
    "codes": (curator.CodeHistogram, f"attached:codes {_DECIDED}"),
    "decisions": (curator.AttachedHistogram, f"attached:model {_DECIDED}"),
    "shifted decisions": (ShiftedHistogram, f"attached:model {_DECIDED}"),
}
KINDS = {
    name: (kind, dict(field.split(":") for field in told.split()))
    for name, (kind, told) in _FIELDS.items()
}
NAMES = {kind: name for name, (kind, _) in KINDS.items()}


def described(question: Question) -> dict[str, Any]:
    """A question as plain values and arrays."""
    kind, names = question.kind, ", ".join(sorted(KINDS))
    got = f"{question.name}, which runs code that is not the holder's"
    fix = "Bring the rows to the code, or fit what the catalogue has: linear and additive models."
    expected = f"a question of the catalogue: {names}"
    need(kind in NAMES, expected, of="the door", got=got, fix=fix, quote=False)
    values = {name: _written(one) for name, one in question.values.items()}
    return {"kind": NAMES[kind], **values}


def measurement_described(measurement: Measurement) -> dict[str, Any]:
    """A question with its price."""
    multiplier = measurement.multiplier
    told = multiplier if isinstance(multiplier, float) else np.asarray(multiplier, float)
    question = described(measurement.question)
    return {"question": question, "multiplier": told, "noise": measurement.noise}


def batch_described(batch: Full | Poisson | Part) -> dict[str, Any]:
    """Which rows are asked."""
    return {"kind": type(batch).__name__.lower(), **asdict(batch)}


def cells_described(cells: Cells | None) -> dict[str, Any] | None:
    """Groups as plain values."""
    if cells is None:
        return None
    columns = [list(column) for column in cells.columns]
    return {"columns": columns, "mode": cells.mode, "names": list(cells.names)}


def rule_described(rule: DescribedRule) -> dict[str, Any]:
    """A rule that gives each row a code: a finished model's files, edges, and a table of whole
    numbers."""
    model = None
    if rule.model is not None:
        files = to_files(rule.model)
        arrays = np.frombuffer(files[ARRAYS_FILE], np.uint8)
        model = {"files": files[MODEL_FILE].decode(), "arrays": arrays}
    return {
        "model": model,
        "edges": None if rule.edges is None else np.asarray(rule.edges, np.float64),
        "cells": cells_described(rule.cells),
        "table": None if rule.table is None else np.asarray(rule.table, np.int64),
    }


def _written(value: object) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Cells():
            return cells_described(value)
        case Linear():
            weights = np.asarray(value.weights, np.float64)
            return {"weights": weights, "sharpness": value.sharpness}
        case Question():
            return described(value)
        case RemoteHandle():
            return {"handle": value.number_in_run}
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value)
        case _:
            return np.asarray(value, np.float64)


def measurement_of(node: Node, layout: RowLayout, handles: Handles) -> Measurement:
    """The question with its price that was described."""
    node.only(("question", "multiplier", "noise"))
    multiplier = _read(node["multiplier"], "number|array", layout, handles, 0)
    question = question_of(node["question"], layout, handles)
    return Measurement(question, multiplier, node["noise"].text())


def question_of(node: Node, layout: RowLayout, handles: Handles, depth: int = 0) -> Question:
    """The question that was described, of rows of this layout. `handles`: what was attached in this
    run."""
    if depth > 1:
        node.refuse("one question inside another", "more")
    kind, told = KINDS[node["kind"].one_of(KINDS)]
    node.only(("kind", *told))
    given = {name: _read(node[name], of, layout, handles, depth) for name, of in told.items()}
    question = kind(**given)
    numbers, fix = question.models * math.prod(question.shape(layout)), "Ask about fewer groups, "
    few, of = numbers <= MOST_NUMBERS, f"the answer to {question.name!r}"
    fix += "models or edges at a time."
    need(few, f"at most {MOST_NUMBERS} numbers", of=of, got=numbers, fix=fix)
    return question


def batch_of(node: Node) -> Full | Poisson | Part:
    """Which rows are asked."""
    kind = node["kind"].one_of(("full", "poisson", "part"))
    if kind == "full":
        node.only(("kind",))
        return FULL
    if kind == "poisson":
        return Poisson(node.only(("kind", "rate"))["rate"].number())
    node.only(("kind", "number", "parts"))
    return Part(node["number"].whole(), node["parts"].whole(at_least=1))


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


def _read(node: Node, kind: str, layout: RowLayout, handles: Handles, depth: int) -> Any:
    """A field of a question: one of the kinds of `_FIELDS`, of which those with ? may be null."""
    if kind.endswith("?"):
        return None if node.is_null else _read(node, kind[:-1], layout, handles, depth)
    if kind == "number|array":
        kind = "array" if isinstance(node.value, np.ndarray) else "number"
    match kind:
        case "cells":
            return cells_of(node) or node.refuse("groups", None)
        case "linear":
            node.only(("weights", "sharpness"))
            return Linear(floats_of(node["weights"]), node["sharpness"].number())
        case "array":
            return floats_of(node)
        case "numbers":
            return tuple(floats_of(node).ravel().tolist())
        case "number":
            return node.number()
        case "whole":
            return node.whole(at_most=MOST_NUMBERS)
        case "truth":
            return node.truth()
        case "word":
            return node.text()
        case "question":
            return question_of(node, layout, handles, depth + 1)
    found = handles.get(node.only(("handle",))["handle"].whole())
    if found is None or found.is_code != (kind == "codes"):
        node.refuse(f"a handle of {kind} that was attached in this run", node.value)
    return found
