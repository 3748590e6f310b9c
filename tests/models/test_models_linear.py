"""Linear models against one-hot matrices, bit-equality over layouts and blocks, decisions, units of
the input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from fairveil.errors import InputError
from fairveil.facts import RowBlock, RowLayout
from fairveil.models import AffineMap, LinearModel, linear

SIZES = (3, 2, 7)


def problem(classes, rows=500, numbers=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    layout = RowLayout(numbers, SIZES)
    outputs = 1 if classes == 2 else classes
    model = LinearModel(
        rng.normal(size=(outputs, layout.width)),
        rng.normal(size=outputs),
        classes=tuple(range(classes)),
        layout=layout,
    )
    codes = np.stack([rng.integers(size, size=rows) for size in SIZES]).astype(np.uint8)
    return model, RowBlock(rng.normal(size=(numbers, rows)).astype(dtype), codes)


def one_hot_matrix(block):
    return np.concatenate(
        [
            block.numbers.T.astype(np.float64),
            *(np.eye(size)[line] for line, size in zip(block.codes, SIZES, strict=True)),
        ],
        1,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_scores_probabilities_and_decisions_equal_those_of_the_one_hot_matrix(classes, dtype):
    model, block = problem(classes, dtype=dtype)
    scores = one_hot_matrix(block) @ model.weights.T + model.intercept
    assert model.decision_scores(block) == pytest.approx(scores, abs=1e-12)
    full = np.concatenate([np.zeros_like(scores), scores], axis=1) if classes == 2 else scores
    for temperature in (1.0, 0.3):
        powers = np.exp(full / temperature)
        expected = powers / powers.sum(axis=1, keepdims=True)
        assert model.predict_proba(block, temperature) == pytest.approx(expected, abs=1e-12)
    assert (model.predict_codes(block) == full.argmax(axis=1)).all()
    assert (model.decision_proba(block) == np.eye(classes)[full.argmax(axis=1)]).all()
    assert not model.is_randomised


@pytest.mark.parametrize("classes", [2, 4])
def test_a_row_has_the_same_bits_alone_in_any_block_dense_or_sparse(classes, monkeypatch):
    model, block = problem(classes, rows=300)
    numbers = block.numbers * (np.random.default_rng(1).random(block.numbers.shape) < 0.4)
    block = RowBlock(numbers, block.codes)
    scores = model.decision_scores(block)
    sparse_block = RowBlock(sparse.csr_array(numbers.T), block.codes)
    assert (model.decision_scores(sparse_block) == scores).all()
    for row in (0, 17, 299):
        alone = RowBlock(np.ascontiguousarray(numbers[:, [row]]), block.codes[:, [row]])
        assert (model.decision_scores(alone) == scores[row]).all()
    order = np.random.default_rng(2).permutation(300)
    assert (
        model.decision_scores(RowBlock(numbers[:, order], block.codes[:, order])) == scores[order]
    ).all()
    for size in (1, 7, 299):
        monkeypatch.setattr(linear, "BLOCK", size)
        assert (model.decision_scores(block) == scores).all()
        assert (model.decision_scores(sparse_block) == scores).all()


def test_plain_arrays_and_sparse_matrices_serve_where_there_are_no_codes():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    model = LinearModel(rng.normal(size=(3, 6)), np.zeros(3), classes="abc", layout=RowLayout(6))
    expected = model.decision_scores(x)
    assert expected == pytest.approx(x @ model.weights.T)
    for given in (
        x.tolist(),
        sparse.csr_matrix(x),
        sparse.csc_array(x),
        sparse.coo_array(x),
        np.asfortranarray(x),
    ):
        assert (model.decision_scores(given) == expected).all()
    assert model.predict_proba(np.zeros((0, 6))).shape == (0, 3)
    assert set(model.predict(x).tolist()) <= set("abc")


def test_ties_go_to_the_first_class():
    rows = np.zeros((1, 2))
    for classes in (2, 3):
        outputs = 1 if classes == 2 else classes
        model = LinearModel(
            np.ones((outputs, 2)), np.zeros(outputs), classes=range(classes), layout=RowLayout(2)
        )
        assert model.predict_codes(rows).tolist() == [0]
        assert model.predict_proba(rows)[0] == pytest.approx(np.full(classes, 1 / classes))


def test_huge_scores_do_not_overflow():
    model = LinearModel([[1e6]], [0.0], classes=(0, 1), layout=RowLayout(1))
    assert model.predict_proba([[1e3], [-1e3]]).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_coefficients_in_the_units_of_the_input_give_the_same_scores():
    model, block = problem(3)
    scale, shift = np.array([0.5, 2.0, 0.01, 1.0]), np.array([-1.0, 0.0, 3.0, 0.25])
    raw = (block.numbers - shift[:, np.newaxis]) / scale[:, np.newaxis]
    coefficients, intercept = model.in_input_units(AffineMap(scale, shift))
    matrix = np.concatenate([raw.T, one_hot_matrix(block)[:, 4:]], axis=1)
    assert matrix @ coefficients.T + intercept == pytest.approx(
        model.decision_scores(block), abs=1e-9
    )
    assert (coefficients[:, 4:] == model.weights[:, 4:]).all()
    with pytest.raises(InputError, match="4 numbers"):
        model.in_input_units(AffineMap(scale[:3], shift[:3]))


def test_labels_keep_their_values_and_types():
    for classes, kinds in (
        (("no", "yes"), "U"),
        ((10, 20), "i"),
        ((False, True), "b"),
        ((0.5, 1.5), "f"),
        ((1, "b"), "O"),
    ):
        model = LinearModel([[1.0]], [0.0], classes=classes, layout=RowLayout(1))
        found = model.predict([[-1.0], [1.0]])
        assert found.dtype.kind == kinds
        assert found.tolist() == list(classes)
        assert model.classes == classes
    assert LinearModel([[1.0]], [0.0], classes=np.array([3, 4]), layout=RowLayout(1)).classes == (
        3,
        4,
    )


def test_a_model_cannot_be_changed():
    weights = np.ones((1, 2))
    model = LinearModel(weights, [0.0], classes=(0, 1), layout=RowLayout(2))
    weights[0, 0] = 5.0
    assert model.weights.tolist() == [[1.0, 1.0]]
    with pytest.raises(ValueError, match="read-only"):
        model.weights[0, 0] = 2.0
    with pytest.raises(AttributeError):
        model.weights = weights


def test_bad_models_and_rows_are_refused():
    def make(weights=((1.0, 2.0),), intercept=(0.0,), classes=(0, 1), layout=None):
        return LinearModel(weights, intercept, classes=classes, layout=layout or RowLayout(2))

    for call, message in (
        (lambda: make(weights=[[1.0]]), r"shape \(1, 2\)"),
        (lambda: make(weights=[[1.0, math.nan]]), "not finite"),
        (lambda: make(classes=(0, 1, 2)), r"shape \(3, 2\)"),
        (lambda: make(intercept=[0.0, 0.0]), "intercept"),
        (lambda: make(classes=(0,)), "two distinct"),
        (lambda: make(classes=(0, 0)), "two distinct"),
        (lambda: make(classes=(0, None)), "two distinct"),
        (lambda: make(classes=(0, math.nan)), "two distinct"),
        (
            lambda: make().predict(np.zeros((3, 3))),
            "2 numbers and 0 category columns, got '3 and 0'",
        ),
        (lambda: make().predict([["a", "b"]]), "Encode the rows first"),
        (lambda: make().predict([[0.0, math.nan]]), "finite"),
        (lambda: make().predict_proba([[0.0, 1.0]], 0.0), "temperature"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    model, block = problem(2, rows=3)
    with pytest.raises(InputError, match="category column 1: expected codes from 0 to 1"):
        model.predict(
            RowBlock(block.numbers, block.codes + np.array([[0], [2], [0]], dtype=np.uint8))
        )
    with pytest.raises(InputError, match="4 numbers and 3 category columns"):
        model.predict(np.zeros((3, 4)))
