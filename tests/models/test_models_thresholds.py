"""Thresholds on a base's score, as a model: which bin a row is in, in memory and on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import Cells, RowBlock, RowLayout
from fairveil.models import LinearModel, PostProcessedModel, load, save
from fairveil.models.postprocessed import logits, scores_of

CELLS = Cells((("f", "m"),))
BASE = LinearModel([[1.0]], [0.0], classes=("no", "yes"), layout=RowLayout(1, ()))
EDGES = (-1.0, 0.0, 1.5)
TABLE = [[[1, 0], [1, 0], [1, 0], [0, 1]], [[1, 0], [0.4, 0.6], [0, 1], [0, 1]]]


def rows(numbers: list[float], groups: list[int]) -> RowBlock:
    return RowBlock(
        np.array([numbers]),
        np.empty((0, len(numbers)), np.uint8),
        sensitive=np.array([groups], np.uint16),
    )


def test_a_row_is_decided_by_the_bin_of_its_score_and_its_group(tmp_path: Path) -> None:
    model = PostProcessedModel(TABLE, ("no", "yes"), CELLS, BASE, EDGES)
    block = rows([-2.0, -1.0, 0.0, 0.1, 1.5, 1.6], [1, 1, 1, 1, 0, 0])
    law = model.decision_proba(block)
    assert law[:, 1].tolist() == [0.0, 0.0, 0.6, 1.0, 0.0, 1.0]  # an edge itself is below
    assert model.is_randomised
    again = load(save(model, tmp_path / "model"))
    assert (again.edges == model.edges).all()
    assert again.decision_proba(block).tobytes() == law.tobytes()
    shared = PostProcessedModel(TABLE[:1], ("no", "yes"), None, BASE, EDGES)
    assert not shared.reads_groups
    assert shared.predict_codes(rows([1.0, 2.0], [0, 0])).tolist() == [0, 1]


def test_scores_are_a_models_own_or_logits_and_nan_is_none() -> None:
    assert scores_of(BASE, rows([0.3], [0])).tolist() == [0.3]
    assert logits([0.0, 0.5, 1.0, 0.2]).round(3).tolist() == [-40.0, 0.0, 40.0, -1.386]
    model = PostProcessedModel(TABLE, ("no", "yes"), CELLS, BASE, EDGES)
    with pytest.raises(InputError, match="NaN"):
        model.bins(np.array([0.0, np.nan]))
    assert model.bins(np.array([-np.inf, np.inf])).tolist() == [0, 3]
    with pytest.raises(InputError, match="decisions"):
        PostProcessedModel([np.eye(2)], ("no", "yes")).bins(np.zeros(1))


def test_thresholds_need_two_classes_rising_edges_and_a_bin_more() -> None:
    for table, classes, edges in (
        (np.eye(3)[np.newaxis], ("a", "b", "c"), (0.0, 1.0)),
        ([[[1, 0], [0, 1], [0, 1]]], ("a", "b"), (1.0, 0.0)),
        ([[[1, 0], [0, 1]]], ("a", "b"), (0.0, 1.0)),
        ([[[1, 0], [0, 1], [0, 1]]], ("a", "b"), (0.0, np.inf)),
    ):
        with pytest.raises(InputError):
            PostProcessedModel(table, classes, edges=edges)
