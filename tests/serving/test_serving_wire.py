"""Messages and questions: to the last bit, or refused."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.curator import (
    ByCell,
    CellCounts,
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
    RowFunction,
    ScoreHistogram,
    Weighed,
)
from fairveil.errors import FairveilError, InputError
from fairveil.facts import Cells, RowLayout
from fairveil.serving.runs import ACTS, Run
from fairveil.serving.wire import (
    KINDS,
    MAGIC,
    MESSAGES,
    MOST_NUMBERS,
    Reader,
    described,
    packed,
    unpacked,
    written,
)

LAYOUT = RowLayout(2, (3,), ("no", "yes"), (("f", "m"),), ("sex",))
CELLS = Cells((("f", "m"),), names=("sex",))
W = np.random.default_rng(0).normal(size=6)


def test_what_was_packed_is_unpacked_to_the_last_bit() -> None:
    arrays = [
        np.array([[0.1, -0.0, np.inf]]),
        np.array(3.5),
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.array([True, False]),
        np.zeros((0, 4)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ]
    content = unpacked(packed({"x": arrays, "words": "ä", "float": 0.1}))
    for found, array in zip(content["x"].value, arrays, strict=True):
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == np.ascontiguousarray(array).tobytes()
    assert (content["words"].text(), content["float"].number()) == ("ä", 0.1)


def head_of(content: object, arrays: list[object], tail: bytes = b"") -> bytes:
    head = json.dumps({"content": content, "arrays": arrays}).encode()
    return MAGIC + len(head).to_bytes(4, "little") + head + tail


ONE = {"x": {"array": 0}}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "other bytes"),
        (b"FVD1", "other bytes"),
        (MAGIC + (1 << 31).to_bytes(4, "little"), "a head of at most"),
        (MAGIC + b"\xff\xff\xff\xff" + b"{}", "a head of at most"),
        (head_of(ONE, [{"type": "<f8", "shape": [1 << 40]}]), "which are there"),
        (head_of(ONE, [{"type": "<f8", "shape": [1 << 40, 0]}]), "which are there"),
        (head_of(ONE, [{"type": "|O", "shape": [1]}], bytes(8)), "one of"),
        (head_of(ONE, [{"type": "<f8", "shape": [-1]}], bytes(8)), "whole number"),
        (head_of(ONE, [{"type": "<f8", "shape": [1] * 9}], bytes(8)), "axes"),
        (head_of(ONE, [{"type": "|b1", "shape": [1]}], b"\x02"), "truth values"),
        (head_of(ONE, [{"type": "<f8", "shape": []}], bytes(7)), "which are there"),
        (head_of({}, [], b"more"), "as its head says"),
        (head_of({"x": {"array": 3}}, []), "array below number 0"),
        (head_of({"x": {"array": -1}}, []), "array below number 0"),
        (head_of({}, [{"type": "<f8", "shape": [1]}], bytes(8)), "each named"),
        (head_of(ONE, [{"type": "<f8", "shape": [1]}] * 2, bytes(16)), "each named"),
        (packed({"x": 1})[:-1], "a head of at most"),
        (MAGIC + (6).to_bytes(4, "little") + b'{"a":1', "JSON|cut|read"),
        (MAGIC + (20_000).to_bytes(4, "little") + b"[" * 10_000 + b"]" * 10_000, "levels"),
    ],
)
def test_other_bytes_are_refused(raw: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        unpacked(raw)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
def test_changed_bytes_raise_nothing_but_the_family(tail: bytes, at: int, byte: int) -> None:
    raw = bytearray(packed({"asks": [{"kind": "row count"}], "x": np.arange(4.0)}) + tail)
    raw[at % len(raw)] = byte
    try:
        unpacked(bytes(raw))
    except FairveilError:
        return


# -- questions -------------------------------------------------------------------------------------

QUESTIONS: list[Question] = [
    RowCount(),
    RowCount(copies=3),
    CellCounts(CELLS, by_label=True),
    CellCounts(CELLS, group=1, copies=2),
    FeatureSums(CELLS, clip=2.0, by_label=True),
    FeatureSums(clip=1.0, basis=np.eye(6)[:2]),
    GramMatrices(CELLS, clip=1.5),
    NumberMoments(clip=2.0),
    PredictionHistogram(Linear(W), CELLS, "soft", True),
    PredictionHistogram(Linear(np.stack([W, W])[:, np.newaxis], 3.0), CELLS),
    ScoreHistogram(Linear(W), (-1.0, 0.0, 0.1), CELLS),
    MixtureHistogram(np.stack([W, -W])[:, np.newaxis], np.array([0.25, 0.75]), CELLS, True),
    GroupedHistogram(Linear(W), np.zeros((2, 1)), CELLS, CELLS, True),
    GroupLosses(Linear(W), CELLS, "log", 5.0),
    GradientSum(Linear(W), 1.0, CELLS, np.arange(8.0).reshape(2, 2, 2), "log", 0.5),
    GradientSum(Linear(np.stack([W, W])[:, np.newaxis]), 1.0, loss_weight=np.array([1.0, 2.0])),
    GradientSum(
        Linear(W), None, CELLS, loss="log", cell_weights=np.array([1.0, 2.0]), loss_clip=3.0
    ),
    ByCell(GradientSum(Linear(W), 1.0), CELLS),
    Weighed(GradientSum(Linear(W), 1.0), CELLS, np.array([0.5, 1.0])),
]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | list) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Linear):
        told = (one.many, one.sharpness) == (other.many, other.sharpness)
        return told and same(one.array, other.array)
    if isinstance(one, Question):
        known = one.values.items()
        return one.kind is other.kind and all(same(v, other.values[name]) for name, v in known)
    return bool(one == other)


def read(content: Any) -> Question:
    return Reader(LAYOUT).question(unpacked(packed(content)))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_a_question_is_the_same_question_behind_the_door(question: Question) -> None:
    found = read(described(question))
    assert found.kind is question.kind
    assert found.key == question.key
    assert same(question, found)


def test_every_field_of_every_question_is_described() -> None:
    """A field that is added to a question, and not here, would be asked at its default."""
    for name, (kind, readers) in KINDS.items():
        _, *names = kind.signature.parameters
        assert set(readers) == set(names), name
    for act in ACTS:
        _, *names = inspect.signature(getattr(Run, act)).parameters
        own = set(MESSAGES[act])
        assert own == set(names) or "told" in names, act


@pytest.mark.parametrize(
    "ask",
    [
        Measurement(RowCount(), 20.0),
        Measurement(CellCounts(CELLS), np.array([3.0, 4.0])),
        Measurement(RowCount(), 2.0, "discrete-laplace"),
    ],
)
def test_the_price_is_described_with_the_question(ask: Measurement) -> None:
    assert Reader(LAYOUT).read(unpacked(packed(written(ask))), "measurement").key == ask.key


def test_code_of_the_caller_has_no_description() -> None:
    with pytest.raises(InputError, match="runs code that is not the holder's"):
        described(RowFunction(lambda block: np.zeros((block.rows, 1)), 1, 1.0))


COUNTS = {"kind": "cell counts", "cells": None, "by_label": False, "group": None, "copies": None}
SEX = {"columns": [["f", "m"]], "mode": "product", "names": ["sex"]}
DEEP: dict[str, Any] = {"kind": "row count", "copies": None}
for _ in range(5):
    DEEP = {"kind": "sums by cell", "inner": DEEP, "cells": SEX}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"kind": "builtins.eval"}, "one of"),
        ({"kind": "RowFunction", "function": "x"}, "one of"),
        ({"kind": "row count"}, "copies"),
        ({"kind": "row count", "copies": 1, "more": 1}, "more"),
        ({"kind": "row count", "copies": MOST_NUMBERS + 1}, "whole number"),
        ({"kind": "row count", "copies": "3"}, "whole number"),
        ({"kind": "row count", "copies": np.ones(1)}, "whole number"),
        ({**COUNTS, "cells": {**SEX, "columns": [["f", "m"]] * 30}}, "distinct names"),
        ({**COUNTS, "kind": "codes", "attached": {"handle": 0}}, "fields"),
        ({"kind": "sums by cell", "cells": None, "inner": {**DEEP}}, "inside another"),
        ({"kind": "sums by cell", "cells": None, "inner": COUNTS}, "an object"),
        ({**COUNTS, "by_label": True, "copies": MOST_NUMBERS}, "at most 4194304 numbers"),
        (DEEP, "inside another"),
    ],
)
def test_a_strange_description_is_refused(content: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(content)
