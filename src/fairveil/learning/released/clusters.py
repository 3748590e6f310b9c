"""Clusters of public rows: one function of features and label, which sorts each row by itself and
never reads a group.

    z = (features - centre) @ axes      the leading principal components, and a public score: logistic regression of the label
    cluster = the leaf of z in the tree of the row's label

The trees predict z itself (predictive clustering): leaves are rows that are close in what the
features say, and in the score. Inside a leaf a group's members are taken to be like the others; so
leaves should be small. The noise of a leaf's count does not depend on its size; so they should not
be too small. `leaves_for` says how many, from public facts.

Guarantees (tests/learning/test_learning_clusters.py):
1. A row's cluster is a function of its own features and label, and of public arrays.
2. The number of leaves depends on the number of rows, classes and groups, and the noise of one
   count.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Floats

Ints = npt.NDArray[np.intp]
COMPONENTS = 10
SCORE = 0.5  # the score's weight beside the components, which have a variance of at most 1 together
DEVIATIONS = 8.0
"""Rows of a leaf for each standard deviation of one count's noise and pair of groups: a share is
then known to 1/8."""
FEWEST, MOST = 8, 1024
"""Rows of a leaf at least, and leaves at most."""
NO_CHILD = -1
MOST_NODES = 1 << 20


@dataclass(frozen=True, eq=False)
class Tree:
    """`feature` (nodes,), -1 at a leaf; rows with z <= `threshold` go `left`, others `right`;
    `leaf` numbers the leaves."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    leaf: Ints

    @property
    def leaves(self) -> int:
        """How many."""
        return int((self.feature == NO_CHILD).sum())

    def codes(self, z: npt.NDArray[np.float32]) -> Ints:
        """The leaf of each row."""
        at = np.zeros(len(z), np.intp)
        rows = np.arange(len(z))
        while (inner := self.feature[at] != NO_CHILD).any():
            some = rows[inner]
            node = at[some]
            down = z[some, self.feature[node]] <= self.threshold[node]
            at[some] = np.where(down, self.left[node], self.right[node])
        return np.asarray(self.leaf[at])


@dataclass(frozen=True, eq=False)
class Clusters:
    """`centre` (width,) and `axes` (width, numbers) of the coded features; one tree a label."""

    centre: Floats
    axes: Floats
    trees: tuple[Tree, ...]

    @cached_property
    def count(self) -> int:
        """How many clusters."""
        return sum(tree.leaves for tree in self.trees)

    @cached_property
    def labels(self) -> Ints:
        """The label code of each cluster."""
        return np.repeat(np.arange(len(self.trees)), [tree.leaves for tree in self.trees])

    def codes(self, features: Floats, labels: Ints) -> Ints:
        """The cluster of each row, from coded features (rows, width) and label codes."""
        z = self.numbers(features)
        out, first = np.zeros(len(z), np.intp), 0
        for label, tree in enumerate(self.trees):
            at = labels == label
            out[at] = first + tree.codes(z[at])
            first += tree.leaves
        return out

    def numbers(self, features: Floats) -> npt.NDArray[np.float32]:
        """What the trees split."""
        return np.asarray((features - self.centre) @ self.axes, np.float32)


def leaves_for(rows: int, classes: int, groups: int, deviation: float) -> int:
    """How many clusters, from public facts alone. `deviation`: of the noise of one count.

    >>> (
    ...     leaves_for(1994, 2, 2, 1.36),
    ...     leaves_for(1994, 2, 2, 14.1),
    ...     leaves_for(30_000, 2, 2, 1.36),
    ...     leaves_for(20, 2, 2, 14.1),
    ... )
    (183, 17, 1024, 2)
    """
    each = max(float(FEWEST), DEVIATIONS * deviation * max(1.0, groups / 2.0))
    return int(max(classes, min(MOST, rows / each)))


def grown(features: Floats, labels: Ints, classes: int, leaves: int) -> Clusters:
    """Clusters of these public rows, `leaves` of them or fewer, shared among labels as their rows
    are."""
    centre = features.mean(axis=0)
    spread = features.std(axis=0)
    inverse = np.where(spread > 1e-12, 1.0 / np.where(spread > 1e-12, spread, 1.0), 0.0)
    white = (features - centre) * inverse
    components = _components(white)
    score = _score(white, labels)
    axes = inverse[:, np.newaxis] * np.concatenate([components, score], axis=1)
    unsplit = Clusters(centre, axes, ())
    z = unsplit.numbers(features)
    sizes = np.bincount(labels, minlength=classes)
    weights = np.ones(z.shape[1])
    weights[: components.shape[1]] = 1.0 / math.sqrt(max(1, white.shape[1]))
    deviations = np.maximum(z.std(axis=0)[components.shape[1] :], 1e-12)
    weights[components.shape[1] :] = SCORE / deviations / math.sqrt(max(1, score.shape[1]))
    trees = tuple(
        _tree(z[labels == k], weights, _leaves(leaves, int(size), len(labels)))
        for k, size in enumerate(sizes)
    )
    return Clusters(centre, axes, trees)


def _leaves(leaves: int, size: int, rows: int) -> int:
    return max(1, int(leaves * size / max(1, rows)))


def _components(white: Floats) -> Floats:
    """Leading eigenvectors of the features' correlations, (width, numbers); signs fixed."""
    gram = white.T @ white / max(1, len(white))
    values, vectors = np.linalg.eigh(gram)
    kept = vectors[:, ::-1][:, :COMPONENTS][:, values[::-1][:COMPONENTS] > 1e-9]
    signs = np.sign(kept[np.abs(kept).argmax(axis=0), np.arange(kept.shape[1])])
    return np.asarray(kept * signs)


def _score(white: Floats, labels: Ints) -> Floats:
    """Directions (width, scores) of a logistic regression of the label: a public score, which never
    sees a group."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(labels)) < 2:
        return np.zeros((white.shape[1], 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = LogisticRegression(max_iter=200).fit(white, labels)
    return np.asarray(found.coef_.T, np.float64)


def _tree(z: npt.NDArray[np.float32], weights: Floats, leaves: int) -> Tree:
    """Best-first, by the variance of z that a split takes away."""
    from sklearn.tree import DecisionTreeRegressor

    if leaves < 2 or len(z) < 2 * FEWEST or not z.shape[1]:
        one = np.array([NO_CHILD])
        return Tree(one, np.zeros(1), one, one, np.zeros(1, np.intp))
    fewest = max(2, len(z) // (4 * leaves))
    made = DecisionTreeRegressor(
        max_leaf_nodes=leaves, min_samples_leaf=fewest, random_state=0
    ).fit(z, z * weights)
    tree: Any = made.tree_
    is_leaf = tree.children_left == NO_CHILD
    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, NO_CHILD)
    feature = np.where(is_leaf, NO_CHILD, tree.feature)
    arrays = [
        np.asarray(array, np.intp)
        for array in (feature, tree.children_left, tree.children_right, leaf)
    ]
    return Tree(arrays[0], np.where(is_leaf, 0.0, tree.threshold), arrays[1], arrays[2], arrays[3])
