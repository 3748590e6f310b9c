"""Questions: what their keys depend on, that nobody can change them, and what `at` refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from fairveil.core.by_cell import ByCell, Weighed
from fairveil.core.errors import InputError
from fairveil.core.promise import Promise
from fairveil.core.questions import ALONE, Facts, Linear, Question
from fairveil.core.sums import (
    CellCounts,
    FeatureSums,
    GradientSum,
    GramMatrices,
    PredictionHistogram,
    RowCount,
    ScoreHistogram,
)
from fairveil.facts import Cells, RowLayout

CELLS = Cells(((0, 1, 2),), names=("g",))
LAYOUT = RowLayout(2, (2,), (0, 1), CELLS.columns, ("g",))
W = np.array([0.3, -1.2, 0.8, 0.5, -0.4])
COSTS = np.zeros((3, 2, 2))


def gradient(**changed: Any) -> Question:
    given: dict[str, Any] = {"cells": CELLS, "cell_costs": COSTS, "loss_weight": np.ones(1)}
    return GradientSum(Linear(W), 1.5, **(given | changed))


QUESTIONS = [
    CellCounts(CELLS, by_label=True),
    RowCount(copies=3),
    gradient(),
    FeatureSums(CELLS, 1.0, basis=np.ones((2, 5))),
    ScoreHistogram(Linear(W), (-1.0, 0.5), CELLS),
    ByCell(GramMatrices(clip=1.0), CELLS),
    Weighed(GramMatrices(clip=1.0), CELLS, [1.0, 2.0, 0.5]),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=[one.name for one in QUESTIONS])
def test_a_question_that_is_sent_is_the_same_question(question: Question) -> None:
    other = pickle.loads(pickle.dumps(question))
    assert other.key == question.key
    assert other.shape(LAYOUT) == question.shape(LAYOUT)
    for promise in (Promise(1.0, 1e-6), ALONE):
        one, again = (asked.sum(Facts(LAYOUT, promise)) for asked in (question, other))
        assert one.bound == again.bound
        assert one.reads == question.reads
        assert one.models == question.models


def test_keys_depend_on_all_but_numbers_of_a_round() -> None:
    moved = gradient(cell_costs=COSTS + 1.0, loss_weight=np.full(1, 0.3))
    assert moved.key == gradient().key
    assert gradient().at(model=Linear(-W), cell_costs=COSTS - 2.0).key is not None
    others = [
        gradient(cell_costs=COSTS[:, :1]),
        gradient(loss="squared", cell_costs=None),
        gradient(loss_weight=1.0),
        gradient(loss_clip=0.5),
        GradientSum(Linear(W), 1.6, CELLS, COSTS, loss_weight=np.ones(1)),
        GradientSum(Linear(W, 2.0), 1.5, CELLS, COSTS, loss_weight=np.ones(1)),
        GradientSum(Linear(W[None, None]), 1.5, CELLS, COSTS, loss_weight=np.ones(1)),
        ScoreHistogram(Linear(W), (0.0, 0.5)),
        ScoreHistogram(Linear(W), (0.0, 0.6)),
        Weighed(GramMatrices(clip=1.0), CELLS, [1.0, 2.0, 0.5]),
        Weighed(GramMatrices(clip=1.0), CELLS, [1.0, 2.0, 0.6]),
        Weighed(GramMatrices(clip=1.1), CELLS, [1.0, 2.0, 0.6]),
    ]
    assert len({one.key for one in [gradient(), *others]}) == 1 + len(others)


def test_arrays_are_copies_that_nobody_can_change() -> None:
    costs = COSTS.copy()
    question = gradient(cell_costs=costs)
    costs += 1.0
    assert not question.cell_costs.any()
    with pytest.raises(ValueError, match="read-only"):
        question.cell_costs[0] = 1.0


def test_a_round_has_the_same_key_or_is_refused() -> None:
    first = gradient()
    later = first.at(model=first.model.at(-W), cell_costs=COSTS + 1.0)
    assert later.key is first.key
    assert (later.cell_costs == 1.0).all()
    weighed = Weighed(GramMatrices(clip=1.0), CELLS, [1.0, 2.0, 0.5])
    assert weighed.at(factors=[1.0, 2.0, 0.5]).key is weighed.key
    assert weighed.at(factors=[1.0, 2.0, 0.6]).key != weighed.key
    for values in (
        {"cell_costs": COSTS[:2]},
        {"cell_costs": None},
        {"cell_costs": np.full_like(COSTS, np.nan)},
        {"loss_weight": 1.0},
        {"model": Linear(W, 2.0)},
        {"clip": 2.0},
    ):
        with pytest.raises(InputError, match=r"form|finite"):
            first.at(**values)


@pytest.mark.parametrize(
    ("question", "match"),
    [
        (CellCounts(CELLS, group=3), "below 3"),
        (CellCounts(None, group=0), "overlap"),
        (PredictionHistogram(Linear(W), CELLS, "fuzzy"), "hard"),
        (ScoreHistogram(Linear(W), (1.0, 1.0)), "rising"),
        (gradient(loss_weight=np.full(1, -1.0)), "loss_weight"),
        (gradient(loss="hinge"), "log"),
        (gradient(cell_weights=np.ones(2)), "cell_weights"),
        (gradient(cell_weights=np.full(3, 1e308)), "sum is finite"),
        (FeatureSums(clip=1.0, basis=np.ones((2, 4))), "basis"),
        (Weighed(GramMatrices(clip=1.0), CELLS, [0.0, 0.0, 0.0]), "not all of them 0"),
        (Weighed(GramMatrices(CELLS, 1.0), CELLS, [1.0, 1.0, 1.0]), "without cells"),
        (ByCell(gradient(), CELLS), "without cells"),
    ],
)
def test_what_is_wrong_with_arguments_is_said_before_rows_are_read(
    question: Question, match: str
) -> None:
    with pytest.raises(InputError, match=match):
        question.shape(LAYOUT)
