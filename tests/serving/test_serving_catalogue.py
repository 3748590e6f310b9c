"""Questions described and read again; everything else refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
from fairveil.errors import InputError
from fairveil.facts import Cells, RowLayout
from fairveil.serving.wire import (
    KINDS,
    MOST_NUMBERS,
    Packing,
    Reading,
    described,
    measurement_described,
    measurement_of,
    question_of,
    unpacked,
)

LAYOUT = RowLayout(2, (3,), ("no", "yes"), (("f", "m"),), ("sex",))
CELLS = Cells((("f", "m"),), names=("sex",))
W = np.random.default_rng(0).normal(size=6)
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


def again(question: Question) -> Question:
    packing = Packing()
    content = described(question, packing)
    message = unpacked(packing.packed(content))
    return question_of(message.content, Reading(message, LAYOUT, {}))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray | list) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, Linear):
        return (
            same(one.array, other.array)
            and one.many == other.many
            and one.sharpness == other.sharpness
        )
    if isinstance(one, Question):
        known = one.values.items()
        return one.kind is other.kind and all(same(v, other.values[name]) for name, v in known)
    return bool(one == other)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.name)
def test_a_question_is_the_same_question_behind_the_door(question: Question) -> None:
    found = again(question)
    assert found.key == question.key
    assert same(question, found)


def test_every_field_of_every_question_is_described() -> None:
    """A field that is added to a question, and not here, would be asked at its default."""
    for name, (kind, readers) in KINDS.items():
        _, *names = kind.signature.parameters
        assert set(readers) == set(names), name


def test_the_price_is_described_with_the_question() -> None:
    for ask in (
        Measurement(RowCount(), 20.0),
        Measurement(CellCounts(CELLS), np.array([3.0, 4.0])),
        Measurement(RowCount(), 2.0, "discrete-laplace"),
    ):
        packing = Packing()
        message = unpacked(packing.packed(measurement_described(ask, packing)))
        assert measurement_of(message.content, Reading(message, LAYOUT, {})).key == ask.key


def test_code_of_the_caller_has_no_description() -> None:
    question = RowFunction(lambda block: np.zeros((block.rows, 1)), 1, 1.0)
    with pytest.raises(InputError, match="runs code that is not the holder's"):
        described(question, Packing())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"kind": "builtins.eval"}, "one of"),
        ({"kind": "RowFunction", "function": "x"}, "one of"),
        ({"kind": "row count"}, "copies"),
        ({"kind": "row count", "copies": 1, "more": 1}, "more"),
        ({"kind": "row count", "copies": MOST_NUMBERS + 1}, "whole number"),
        ({"kind": "row count", "copies": "3"}, "whole number"),
        (
            {
                "kind": "cell counts",
                "cells": {"columns": [["f", "m"]] * 30, "mode": "product", "names": ["a"]},
                "by_label": False,
                "group": None,
                "copies": None,
            },
            "distinct names",
        ),
        (
            {
                "kind": "codes",
                "attached": {"handle": 0},
                "cells": None,
                "by_label": False,
                "group": None,
            },
            "handle",
        ),
        (
            {"kind": "sums by cell", "cells": None, "inner": {"kind": "row count", "copies": None}},
            "groups",
        ),
    ],
)
def test_a_strange_description_is_refused(content: dict[str, Any], words: str) -> None:
    message = unpacked(Packing().packed(content))
    with pytest.raises(InputError, match=words):
        question_of(message.content, Reading(message, LAYOUT, {}))


def test_an_answer_that_is_too_large_is_refused_before_it_is_made() -> None:
    message = unpacked(
        Packing().packed(
            {
                "kind": "cell counts",
                "cells": None,
                "by_label": True,
                "group": None,
                "copies": MOST_NUMBERS,
            }
        )
    )
    with pytest.raises(InputError, match="at most 4194304 numbers"):
        question_of(message.content, Reading(message, LAYOUT, {}))


def test_questions_inside_questions_end() -> None:
    deep: dict[str, Any] = {"kind": "row count", "copies": None}
    for _ in range(5):
        deep = {
            "kind": "sums by cell",
            "inner": deep,
            "cells": {"columns": [["f", "m"]], "mode": "product", "names": ["sex"]},
        }
    message = unpacked(Packing().packed(deep))
    with pytest.raises(InputError):
        question_of(message.content, Reading(message, LAYOUT, {}))
