"""What goes between analyst and server, as bytes: JSON values with arrays of plain numbers among
them, and a closed catalogue of messages and questions. No pickle, no code, nothing that is imported
by name.

    b"FVD1" | length of the head, 4 bytes | head, JSON in UTF-8 | the arrays' bytes, one after another

The head says `{"content": ..., "arrays": [{"type": "<f8", "shape": [2, 3]}, ...]}`, and the content
names an array by its place: `{"array": 0}`. All numbers are little-endian. `MESSAGES` and `KINDS`
say which fields a message and a question have, and of which kind each is; whoever reads a question
makes it by its own constructor, which checks it as if the holder had made it.

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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import curator
from .._json import Document, Node
from ..core.attached import ShiftedHistogram
from ..core.errors import need
from ..core.events import from_json_dict
from ..core.promise import Promise
from ..core.questions import Kind
from ..curator import FULL, Attached, Full, Linear, Measurement, Part, Poisson, Question
from ..data.elsewhere import DescribedRule
from ..facts import Cells, RowLayout
from ..models.files import ARRAYS_FILE, MODEL_FILE, to_files
from ..models.npz import TYPES

MAGIC, LARGEST_HEAD, MOST_ARRAYS, MOST_AXES, DEEPEST = b"FVD1", 4 << 20, 4096, 8, 40
MOST_NUMBERS = 1 << 22
"""Numbers of one answer: 32 MB. A hostile count of copies, cells or edges is refused by it."""
MOST_LISTED, MOST_LINE, MOST_SENTENCE, MOST_CLIPS = 256, 200, 1000, 64
MESSAGE = Document(
    "message", "Speak to a server with fairveil.remote.", largest=LARGEST_HEAD, deepest=DEEPEST
)
SAID = "said by the analyst: "
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
    at, arrays, named = 8 + length, list[Array](), set[int]()
    for one in head["arrays"].list()[: most + 1]:
        array, at = _array_at(raw, at, one.only(("type", "shape")))
        arrays.append(array)
    if at != len(raw) or len(arrays) > most:
        MESSAGE.refuse(f"{at} bytes and {most} arrays, as its head says", len(raw))

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
    if kind == "|b1" and count and int(np.frombuffer(raw, np.uint8, count, at).max()) > 1:
        facts.refuse("truth values", "other bytes")
    array = np.frombuffer(raw, dtype=kind, count=count, offset=at).reshape(shape)
    array.setflags(write=False)
    return array, at + count * item


def array_of(node: Node) -> Array:
    """An array of the content."""
    if not isinstance(node.value, np.ndarray):
        node.refuse("an array", node.value)
    return node.value


# -- messages --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class View:
    """How a method reads the holder's rows, whose columns and groups are the holder's to say: the
    steps of an additive model; the target as the last number; all rows of a person in one group;
    `part`: of a division, 0 or 1."""

    steps: str | None = None
    target_as_number: bool = False
    one_group: bool = False
    division: str | None = None
    part: int = 0


def _fields(told: str) -> dict[str, str]:
    return dict(field.split(":") for field in told.split())


VIEW = _fields("steps:word? target_as_number:truth one_group:truth division:word? part:whole")
MESSAGES = {
    name: _fields(told)
    for name, told in {
        "open": "dataset:word promise:promise plan:event view:view sources:whole seeds:words? "
        "public_rows:whole? stated_clips:floats? purpose:line",
        "divide": "share:number seed:word? coins:word",
        "ask": "asks:measurements batch:batch purpose:line",
        "choose": "questions:questions epsilon:number cell_weights:array? costs:array? "
        "purpose:line",
        "attach": "model:node? edges:array? cells:cells? table:node? count:whole title:line "
        "handle:word",
        "rescale": "scale:array shift:array",
        "table": "most:whole",
        "finish": "",
        "statement": "not_covered:sentences",
    }.items()
}
"""The fields of each message, and of which kind they are; those with ? may be null."""

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
KINDS = {name: (kind, _fields(told)) for name, (kind, told) in _FIELDS.items()}
NAMES = {kind: name for name, (kind, _) in KINDS.items()}


def described(question: Question) -> dict[str, Any]:
    """A question as plain values and arrays."""
    got = f"{question.name}, which runs code that is not the holder's"
    fix = "Bring the rows to the code, or fit what the catalogue has: linear and additive models."
    expected = f"a question of the catalogue: {', '.join(sorted(KINDS))}"
    need(question.kind in NAMES, expected, of="the door", got=got, fix=fix, quote=False)
    return {"kind": NAMES[question.kind], **{n: written(v) for n, v in question.values.items()}}


def rule_described(rule: DescribedRule) -> dict[str, Any]:
    """A rule that gives each row a code: a finished model's files, edges, and a table of whole
    numbers."""
    model = None
    if rule.model is not None:
        files = to_files(rule.model)
        arrays = np.frombuffer(files[ARRAYS_FILE], np.uint8)
        model = {"files": files[MODEL_FILE].decode(), "arrays": arrays}
    table = None if rule.table is None else np.asarray(rule.table, np.int64)
    told = {"model": model, "edges": None if rule.edges is None else written(rule.edges)}
    return {**told, "cells": written(rule.cells), "table": table}


class RemoteHandle(Attached):
    """What the analyst's side holds of what is kept beside the rows: its number in the run, and no
    row."""

    number_in_run: int


def written(value: object) -> Any:
    """A field of a message or a question as plain values and arrays."""
    match value:
        case None | bool() | str() | dict():
            return value
        case Cells():
            columns = [list(column) for column in value.columns]
            return {"columns": columns, "mode": value.mode, "names": list(value.names)}
        case Linear():
            weights = np.asarray(value.weights, np.float64)
            return {"weights": weights, "sharpness": value.sharpness}
        case Question():
            return described(value)
        case Measurement():
            price = value.multiplier
            told = price if isinstance(price, float) else np.asarray(price, float)
            return {"question": described(value.question), "multiplier": told, "noise": value.noise}
        case Full() | Poisson() | Part():
            return {"kind": type(value).__name__.lower(), **asdict(value)}
        case RemoteHandle():
            return {"handle": value.number_in_run}
        case int() | np.integer():
            return int(value)
        case float() | np.floating():
            return float(value)
        case _:
            return np.asarray(value, np.float64)


class Reader:
    """Reads messages about rows of a layout, in a run where these handles were attached."""

    def __init__(self, layout: RowLayout | None = None, handles: Handles = {}) -> None:  # noqa: B006
        self._layout, self._handles = layout, handles

    def fields(self, node: Node, told: Mapping[str, str], more: str = "") -> dict[str, Any]:
        """The fields of an object, each of its kind, and no others but `more`."""
        node.only((*((more,) if more else ()), *told))
        return {name: self.read(node[name], kind) for name, kind in told.items()}

    def question(self, node: Node) -> Question:
        """The question that was described."""
        if node.place.count("inner") > 1:
            node.refuse("one question inside another", "more")
        kind, told = KINDS[node["kind"].one_of(KINDS)]
        question = kind(**self.fields(node, told, "kind"))
        assert self._layout is not None
        numbers = question.models * math.prod(question.shape(self._layout))
        of, fix = f"the answer to {question.name!r}", "Ask about fewer groups, models or edges."
        few = numbers <= MOST_NUMBERS
        need(few, f"at most {MOST_NUMBERS} numbers", of=of, got=numbers, fix=fix)
        return question

    def read(self, node: Node, kind: str) -> Any:
        """One field."""
        if kind.endswith("?"):
            return None if node.is_null else self.read(node, kind[:-1])
        if kind == "number|array":
            kind = "array" if isinstance(node.value, np.ndarray) else "number"
        match kind:
            case "array":
                return np.asarray(array_of(node), np.float64)
            case "numbers":
                return tuple(np.asarray(array_of(node), np.float64).ravel().tolist())
            case "number":
                return node.number()
            case "floats":
                return node.numbers()[:MOST_CLIPS]
            case "whole":
                return node.whole(at_most=MOST_NUMBERS)
            case "truth":
                return node.truth()
            case "word":
                return node.text()
            case "words":
                return node.texts()
            case "line":
                return _printable(node, MOST_LINE)
            case "sentence":  # marked as the analyst's
                return f"{SAID}{_printable(node, MOST_SENTENCE, empty=False)}"
            case "node":
                return node
            case "question":
                return self.question(node)
            case "cells":
                return self._cells(node)
            case "linear":
                return Linear(**self.fields(node, {"weights": "array", "sharpness": "number"}))
            case "batch":
                return self._batch(node)
            case "measurement":
                told = {"question": "question", "multiplier": "number|array", "noise": "word"}
                return Measurement(**self.fields(node, told))
            case "promise":
                return Promise.from_dict(node.mapping())
            case "event":
                return from_json_dict(node.mapping())
            case "view":
                return View(**self.fields(node, VIEW))
            case "measurements" | "questions" | "sentences":
                listed = node.list()
                if len(listed) > MOST_LISTED or (kind == "measurements" and not listed):
                    node.refuse(f"1 to {MOST_LISTED} {kind}", len(listed))
                return [self.read(one, kind[:-1]) for one in listed]
        found = self._handles.get(node.only(("handle",))["handle"].whole())
        if found is None or found.is_code != (kind == "codes"):
            node.refuse(f"a handle of {kind} that was attached in this run", node.value)
        return found

    def _batch(self, node: Node) -> Full | Poisson | Part:
        match node["kind"].one_of(("full", "poisson", "part")):
            case "poisson":
                return Poisson(**self.fields(node, {"rate": "number"}, "kind"))
            case "part":
                return Part(**self.fields(node, {"number": "whole", "parts": "whole"}, "kind"))
        node.only(("kind",))
        return FULL

    def _cells(self, node: Node) -> Cells:
        node.only(("columns", "mode", "names"))
        columns = []
        for column in node["columns"].list():
            for value in column.list():
                if not isinstance(value.value, str | bool | int | float):
                    value.refuse("a word, a number or a truth value", value.value)
            columns.append(tuple(column.value))
        mode: Any = node["mode"].one_of(("product", "marginal"))
        return Cells(tuple(columns), mode, node["names"].texts())


def _printable(node: Node, most: int, *, empty: bool = True) -> str:
    """A line of words that is safe to be written down and shown."""
    text = node.text()
    if len(text) > most or not (text.isprintable() and (empty or text.strip())):
        node.refuse(f"a printable line of at most {most} letters", f"{len(text)} letters")
    return text
