"""Post-processed models: distributions by group and base decision, on disk to the bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import Cells, RowBlock, RowLayout
from fairveil.models import LinearModel, MixtureModel, PostProcessedModel, load, save

CELLS = Cells((("f", "m"), ("x", "y", "z")), names=("sex", "region"))
RNG = np.random.default_rng(0)
TABLE = RNG.dirichlet(np.ones(2), size=(6, 2))


def rows(count: int = 500) -> RowBlock:
    sensitive = np.stack([RNG.integers(2, size=count), RNG.integers(3, size=count)]).astype(
        np.uint16
    )
    return RowBlock(
        RNG.normal(size=(2, count)), np.empty((0, count), np.uint8), sensitive=sensitive
    )


def linear(sign: float = 1.0) -> LinearModel:
    return LinearModel([[sign, 0.5]], [0.1], classes=("no", "yes"), layout=RowLayout(2))


def test_the_distribution_is_the_table_of_the_rows_cell_and_base_decision() -> None:
    model, block = PostProcessedModel(TABLE, ("no", "yes"), CELLS, linear()), rows()
    assert block.sensitive is not None
    decided = linear().predict_codes(block)
    expected = [
        TABLE[3 * a + b, j] for a, b, j in zip(*block.sensitive.astype(int), decided, strict=True)
    ]
    assert np.allclose(model.predict_proba(block), expected, rtol=0, atol=0)
    assert model.is_randomised


def test_draws_follow_the_distribution_and_repeat_with_a_seed() -> None:
    model, block = PostProcessedModel(TABLE, ("no", "yes"), CELLS, linear()), rows(40_000)
    draws = model.predict_codes(block, 3)
    assert (draws == model.predict_codes(block, 3)).all()
    law = model.decision_proba(block)[:, 1]
    # false alarm: |z| > 4.5 for one statistic, below 1e-5
    assert abs((draws - law).sum()) < 4.5 * np.sqrt((law * (1 - law)).sum())


def test_a_base_that_draws_is_followed_in_distribution() -> None:
    mixture, block = MixtureModel([linear(), linear(-1.0)], [0.25, 0.75]), rows()
    model = PostProcessedModel(TABLE, ("no", "yes"), CELLS, mixture)
    one, other = (
        PostProcessedModel(TABLE, ("no", "yes"), CELLS, m).predict_proba(block)
        for m in mixture.models
    )
    assert np.allclose(model.predict_proba(block), 0.25 * one + 0.75 * other)
    everybody = PostProcessedModel(TABLE[:1], ("no", "yes"), None, mixture)
    assert np.allclose(everybody.predict_proba(block), mixture.decision_proba(block) @ TABLE[0])


def test_on_disk_to_the_bit(tmp_path: Path) -> None:
    block = rows()
    for at, model in enumerate(
        [
            PostProcessedModel(TABLE, ("no", "yes"), CELLS, linear()),
            PostProcessedModel(np.eye(3)[np.newaxis], (0, 1, 2)),
        ]
    ):
        again = load(save(model, tmp_path / str(at)))
        assert isinstance(again, PostProcessedModel)
        assert again.mixing.tobytes() == model.mixing.tobytes()
        assert (again.cells, again.classes) == (model.cells, model.classes)
        if model.base is not None:
            assert again.predict_proba(block).tobytes() == model.predict_proba(block).tobytes()


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(InputError, match="probabilities"):
        PostProcessedModel(TABLE * 1.1, ("no", "yes"), CELLS)
    with pytest.raises(InputError, match="mixing"):
        PostProcessedModel(TABLE[:2], ("no", "yes"), CELLS)
    with pytest.raises(InputError, match="product"):
        PostProcessedModel(TABLE[:5], ("no", "yes"), Cells(CELLS.columns, "marginal", CELLS.names))
    with pytest.raises(InputError, match="base's classes"):
        PostProcessedModel(TABLE, (0, 1), CELLS, linear())
    with pytest.raises(InputError, match="base model"):
        PostProcessedModel(TABLE, ("no", "yes"), CELLS).predict_codes(rows())
    with pytest.raises(InputError, match="sensitive codes"):
        PostProcessedModel(TABLE, ("no", "yes"), CELLS, linear()).predict_proba(np.zeros((3, 2)))
