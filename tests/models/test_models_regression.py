"""Linear regression models: predictions, checks, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from fairveil import models
from fairveil.errors import InputError
from fairveil.facts import RowBlock, RowLayout
from fairveil.models import RegressionModel


def test_predictions_are_a_matrix_product_and_do_not_depend_on_the_block() -> None:
    rng = np.random.default_rng(0)
    numbers, codes = (
        rng.normal(size=(3, 20_000)),
        rng.integers(4, size=(2, 20_000)).astype(np.uint8),
    )
    weights = rng.normal(size=3 + 8)
    model = RegressionModel(weights, 0.25, layout=RowLayout(3, (4, 4)))
    whole = model.predict_numbers(RowBlock(numbers, codes))
    one_hot = np.concatenate([np.eye(4)[codes[0]], np.eye(4)[codes[1]]], axis=1)
    assert np.allclose(whole, numbers.T @ weights[:3] + one_hot @ weights[3:] + 0.25)
    for row in (0, 8191, 8192, 19_999):
        alone = RowBlock(np.ascontiguousarray(numbers[:, [row]]), codes[:, [row]])
        assert model.predict_numbers(alone).tolist() == [whole[row]]


def test_sparse_rows_get_the_same_bits() -> None:
    X = sparse.random_array((50, 4), density=0.4, rng=np.random.default_rng(1), format="csr")
    model = RegressionModel([1.0, -2.0, 0.5, 3.0], -1.0, layout=RowLayout(4))
    assert (model.predict_numbers(X) == model.predict_numbers(X.toarray())).all()


@pytest.mark.parametrize("weights", [[1.0], [1.0, np.nan], [[1.0, 2.0]]])
def test_weights_that_do_not_fit_are_refused(weights: object) -> None:
    with pytest.raises(InputError, match="weights"):
        RegressionModel(weights, 0.0, layout=RowLayout(2))


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="2 numbers"):
        RegressionModel([1.0, 2.0], 0.0, layout=RowLayout(2)).predict_numbers(np.zeros((3, 1)))


def test_on_disk_to_the_bit(tmp_path: Path) -> None:
    model = RegressionModel([1 / 3, -np.pi], 1e-300, layout=RowLayout(0, (2,)))
    again = models.load(models.save(model, tmp_path / "model"))
    assert isinstance(again, RegressionModel)
    assert again.weights.tolist() == model.weights.tolist()
    assert (again.intercept, again.layout) == (model.intercept, RowLayout(0, (2,)))
