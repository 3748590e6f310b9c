"""Clusters of public rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fairveil._json import Document
from fairveil.errors import InputError
from fairveil.learning.released import clusters

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
X[:, 3] = RNG.integers(2, size=600)
Y = (X[:, 0] + RNG.normal(size=600) > 0).astype(np.intp)


def made(leaves: int = 30) -> clusters.Clusters:
    return clusters.grown(X, Y, 2, leaves)


def test_guarantee_1_a_rows_cluster_depends_on_itself_alone() -> None:
    found = made()
    codes = found.codes(X, Y)
    order = RNG.permutation(len(X))
    assert (found.codes(X[order], Y[order]) == codes[order]).all()
    assert [int(found.codes(X[[i]], Y[[i]])[0]) for i in range(50)] == codes[:50].tolist()


def test_clusters_never_mix_labels_and_are_all_used() -> None:
    found = made()
    codes = found.codes(X, Y)
    assert (found.labels[codes] == Y).all()
    assert set(codes.tolist()) == set(range(found.count))
    assert 20 <= found.count <= 30


def test_leaves_are_those_of_scikit_learn() -> None:
    """The stored tree sorts rows as the tree that was grown does: as many rows a leaf, at the same
    splits."""
    from sklearn.tree import DecisionTreeRegressor

    found = made()
    at = Y == 1
    z = found.numbers(X)[at]
    size = np.bincount(found.codes(X, Y)[at])
    tree = DecisionTreeRegressor(max_leaf_nodes=int((size > 0).sum()), random_state=0)
    assert found.trees[1].leaves == (size > 0).sum()
    rebuilt = clusters._tree(z, np.ones(z.shape[1]), 9)
    fewest = max(2, len(z) // 36)
    tree = DecisionTreeRegressor(max_leaf_nodes=9, min_samples_leaf=fewest, random_state=0).fit(
        z, z
    )
    pairs = set(zip(rebuilt.codes(z).tolist(), tree.apply(z).tolist(), strict=True))
    assert len(pairs) == rebuilt.leaves == 9


@pytest.mark.parametrize("rows", [1, 5, 100, 5000, 10**6])
@pytest.mark.parametrize("groups", [2, 5, 20])
@pytest.mark.parametrize("deviation", [0.0, 1.4, 14.0])
def test_guarantee_2_leaves_are_few_where_noise_is_large(
    rows: int, groups: int, deviation: float
) -> None:
    found = clusters.leaves_for(rows, 2, groups, deviation)
    assert 2 <= found <= clusters.MOST
    assert found <= clusters.leaves_for(rows, 2, groups, deviation / 2)
    assert found <= clusters.leaves_for(rows, 2, 2, deviation)
    assert found <= clusters.leaves_for(2 * rows, 2, groups, deviation)


@pytest.mark.parametrize(
    "features",
    [np.zeros((40, 3)), X[:1], np.eye(3)[[0] * 30 + [1] * 30]],
    ids=["flat", "one", "two"],
)
def test_rows_that_cannot_be_split_make_one_cluster_a_label(features: np.ndarray) -> None:
    labels = np.zeros(len(features), np.intp)
    found = clusters.grown(features, labels, 2, 10)
    assert found.count >= 2
    assert (found.codes(features, labels) < found.trees[0].leaves).all()


def written(values: object) -> clusters.Clusters:
    return clusters.from_dict(
        Document("groups.json", "Save it again.").node(json.dumps(values).encode())
    )


def test_writing_and_reading_gives_the_same_clusters() -> None:
    found = made()
    again = written(clusters.to_dict(found))
    assert (again.codes(X, Y) == found.codes(X, Y)).all()
    assert clusters.to_dict(again) == clusters.to_dict(found)


@pytest.mark.parametrize(("field", "value"), [("left", 0), ("right", 10**5), ("feature", 99)])
def test_a_tree_that_leads_nowhere_is_refused(field: str, value: int) -> None:
    """A loop would never end."""
    values = clusters.to_dict(made())
    values["trees"][0][field][0] = value
    with pytest.raises(InputError, match=r"nodes lead to later ones|whole number"):
        written(values)
