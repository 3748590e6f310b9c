"""`MixtureHistogram` and `public_table`: what neighbours move, what a row adds, and what is given
away."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from fairveil.core.promise import Promise
from fairveil.curator import Curator, Rows
from fairveil.curator.questions.attached import MixtureHistogram, rule_decisions
from fairveil.errors import InputError, PrivacyError
from fairveil.models import LinearModel

EXACT = Promise(float("inf"), 0.0)
WEIGHTS = np.array(
    [[[0.1, 1.0, -0.5, 0.3, -0.2]], [[-0.3, 0.2, 0.9, -0.1, 0.4]], [[-1.0, 0.0, 0.0, 0.0, 0.0]]]
)
SHARES = np.array([0.5, 0.3, 0.2])


def rows_of(X: Any, y: Any, A: Any, codes: Any, classes: int = 2, weights: Any = None) -> Rows:
    return Rows.from_arrays(
        X,
        y,
        [A],
        codes=codes.T,
        code_sizes=(2,),
        classes=range(classes),
        groups=[(0, 1, 2)],
        sample_weight=weights,
    )


def drawn(n: int = 12, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = np.ascontiguousarray(rng.normal(size=(n, 2)))
    return (
        X,
        rng.integers(2, size=n),
        rng.integers(3, size=n),
        rng.integers(2, size=(1, n)).astype(np.uint8),
    )


def table(rows: Rows, by_label: bool = True) -> Any:
    question = MixtureHistogram(WEIGHTS, SHARES, rows.cells(), by_label)
    return Curator(rows, EXACT).answer([(question, 0.0)])[0]


def test_it_is_the_expected_histogram_of_linear_models() -> None:
    X, y, A, codes = drawn(200)
    rows = rows_of(X, y, A, codes)
    (block,) = list(rows.blocks())
    law = np.zeros((200, 2))
    for weights, share in zip(WEIGHTS, SHARES, strict=True):
        model = LinearModel(weights[:, 1:], weights[:, 0], classes=(0, 1), layout=rows.layout)
        features = np.column_stack([np.ones(200), X, np.eye(2)[codes[0]]])
        chosen = (features @ weights[0] > 0).astype(int)
        law[np.arange(200), chosen] += share
        assert (rule_decisions(block, 0, 200, weights) == chosen).all()
        assert model.classes == (0, 1)
    wanted = np.array([[law[(a == A) & (y == k)].sum(axis=0) for k in (0, 1)] for a in range(3)])
    assert np.allclose(table(rows), wanted, atol=1e-6)
    sparse = rows_of(scipy.sparse.csr_array(X), y, A, codes)
    assert np.allclose(table(sparse), wanted, atol=1e-6)
    assert np.allclose(table(rows, by_label=False), wanted.sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "groups"])
def test_guarantee_1_no_neighbour_moves_it_further_than_its_bound(relation: str) -> None:
    X, y, A, codes = drawn()
    rows = rows_of(X, y, A, codes)
    here, moves = table(rows), []
    for i in range(len(y)):
        if relation == "add-remove":
            keep = np.arange(len(y)) != i
            moves.append(here - table(rows_of(X[keep], y[keep], A[keep], codes[:, keep])))
            continue
        for group, label, sign in itertools.product(range(3), (0, 1), (1.0, -1.0)):
            x, b, a = X.copy(), y.copy(), A.copy()
            a[i] = group
            if relation == "replace-one":
                x[i], b[i] = sign * x[i], label
            moves.append(here - table(rows_of(x, b, a, codes)))
    question = MixtureHistogram(WEIGHTS, SHARES, rows.cells(), True)
    neighbours = "add-remove" if relation == "add-remove" else "replace-one"
    bound = question.scale(rows.layout, None).bound.sensitivity(neighbours)
    far = max(float(np.linalg.norm(move)) for move in moves)
    assert 0.5 * bound <= far <= bound * (1 + 1e-9)


def test_guarantee_2_a_row_adds_the_same_whatever_is_beside_it() -> None:
    X, y, A, codes = drawn(64)
    (block,) = list(rows_of(X, y, A, codes).blocks())
    whole = [rule_decisions(block, 0, 64, weights) for weights in WEIGHTS]
    for i in range(64):
        assert [one[i] for one in whole] == [
            rule_decisions(block, i, i + 1, weights)[0] for weights in WEIGHTS
        ]


def test_what_does_not_fit_is_refused() -> None:
    rows = rows_of(*drawn())
    for weights, shares in (
        (WEIGHTS, SHARES[:2]),
        (WEIGHTS[0], SHARES),
        (WEIGHTS, -SHARES),
        (WEIGHTS * np.nan, SHARES),
    ):
        with pytest.raises(InputError, match="shares"):
            MixtureHistogram(weights, shares)
    with pytest.raises(InputError, match="rules"):
        Curator(rows, EXACT).answer([(MixtureHistogram(WEIGHTS[:, :, :3], SHARES), 0.0)])


def test_the_public_table_has_features_and_labels_and_no_groups() -> None:
    X, y, A, codes = drawn(50)
    rows, other = rows_of(X, y, A, codes), rows_of(X, y, (A + 1) % 3, codes)
    promise = Promise(1.0, 1e-6, "sensitive_features")
    found, same = (Curator(each, promise).public_table(each.cells()) for each in (rows, other))
    assert np.array_equal(found.features, np.column_stack([np.ones(50), X, np.eye(2)[codes[0]]]))
    assert np.array_equal(found.labels, y)
    assert np.array_equal(found.weights, np.ones(50))
    assert found.memberships is None
    for name in ("features", "labels", "weights"):
        assert np.array_equal(getattr(found, name), getattr(same, name))
    thin = Curator(rows, promise).public_table(most=5 * 20)
    assert thin.step == 3
    assert np.array_equal(thin.labels, y[::3])
    sparse = Curator(rows_of(scipy.sparse.csr_array(X), y, A, codes), promise).public_table()
    assert np.array_equal(sparse.features, found.features)
    exact = Curator(rows, EXACT).public_table(rows.cells())
    assert exact.memberships is not None
    assert np.array_equal(exact.memberships, np.eye(3)[A])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_public_table_is_refused_where_records_are_protected(neighbours: Any) -> None:
    with pytest.raises(PrivacyError, match="public features"):
        Curator(rows_of(*drawn()), Promise(1.0, 1e-6, neighbours=neighbours)).public_table()
