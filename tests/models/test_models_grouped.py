"""Linear models with an intercept for each group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairveil import models
from fairveil.errors import InputError
from fairveil.facts import Cells, RowBlock, RowLayout
from fairveil.models import GroupedLinearModel, LinearModel, MixtureModel

CELLS = Cells((("a", "b", "c"), (0, 1)), names=("first", "second"))


def block_of(rows: int = 40, sensitive: bool = True) -> RowBlock:
    rng = np.random.default_rng(0)
    groups = (
        np.stack([rng.integers(0, 3, rows), rng.integers(0, 2, rows)]).astype(np.uint16)
        if sensitive
        else None
    )
    return RowBlock(rng.normal(size=(2, rows)), np.empty((0, rows), np.uint8), None, groups, None)


def model_of(classes: int, seed: int = 0) -> GroupedLinearModel:
    rng = np.random.default_rng(seed)
    outputs = 1 if classes == 2 else classes
    names = tuple(f"class {k}" for k in range(classes))
    layout = RowLayout(2, (), names, CELLS.columns, CELLS.names)
    linear = LinearModel(
        rng.normal(size=(outputs, 2)), rng.normal(size=outputs), classes=names, layout=layout
    )
    return GroupedLinearModel(linear, rng.normal(size=(6, outputs)) * 2, CELLS)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_largest_score_with_the_groups_own_intercept_decides(classes: int) -> None:
    model, block = model_of(classes), block_of()
    assert block.sensitive is not None
    group = block.sensitive[0].astype(int) * 2 + block.sensitive[1]
    scores = (
        block.numbers.T @ model.linear.weights.T + model.linear.intercept + model.offsets[group]
    )
    wanted = (scores[:, 0] > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    assert (model.predict_codes(block) == wanted).all()
    assert (model.predict_proba(block) == np.eye(classes)[wanted]).all()
    assert (model.decision_proba(block) == np.eye(classes)[wanted]).all()
    assert not model.is_randomised
    assert model.classes == tuple(f"class {k}" for k in range(classes))
    plain = GroupedLinearModel(model.linear, np.zeros_like(model.offsets), CELLS)
    assert (plain.predict_codes(block) == model.linear.predict_codes(block)).all()
    assert (model.predict_codes(block) != plain.predict_codes(block)).any()


def test_rows_without_groups_and_offsets_that_do_not_fit_are_refused() -> None:
    model = model_of(2)
    for rows in (block_of(sensitive=False), np.zeros((3, 2))):
        with pytest.raises(InputError, match="sensitive codes"):
            model.predict_codes(rows)
    for offsets in (np.zeros((5, 1)), np.zeros(6), np.full((6, 1), np.inf)):
        with pytest.raises(InputError, match="offsets"):
            GroupedLinearModel(model.linear, offsets, CELLS)
    with pytest.raises(InputError, match="product"):
        GroupedLinearModel(
            model.linear, np.zeros((5, 1)), Cells(CELLS.columns, "marginal", CELLS.names)
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_on_disk_and_back_alone_and_in_a_mixture(classes: int, tmp_path: Path) -> None:
    block = block_of()
    several: list[Any] = [model_of(classes, 1), model_of(classes, 2).linear, model_of(classes, 3)]
    for name, model in (("alone", several[0]), ("mixed", MixtureModel(several, [0.5, 0.2, 0.3]))):
        again = models.load(models.save(model, tmp_path / name))
        assert type(again) is type(model)
        assert (again.decision_proba(block) == model.decision_proba(block)).all()
        assert again.classes == model.classes
    assert again.models[0].cells == CELLS
    assert isinstance(again.models[1], LinearModel)


def test_offsets_are_not_changed_from_outside() -> None:
    offsets = np.zeros((6, 1))
    model = GroupedLinearModel(model_of(2).linear, offsets, CELLS)
    offsets[:] = 5.0
    assert (model.offsets == 0).all()
