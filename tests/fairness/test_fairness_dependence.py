"""The mutual information of prediction and group: its min-max form, its gradients (Lemma D.1), its
bounds, bits and errors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from fairveil.curator import Curator, GradientSum, Linear, PredictionHistogram, Rows
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness.dependence import Dependence, projected
from fairveil.privacy import Promise

LEAST = 1e-6  # a floor that no share of these tables reaches


def cells_of(*sizes: int, mode: str = "product") -> Cells:
    return Cells(tuple(tuple(range(size)) for size in sizes), mode)


def table(seed: int, cells: int, labels: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows by (cell, label), each cell with its own distribution of predictions."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 200, (cells, labels)).astype(float)
    return counts[..., np.newaxis] * rng.dirichlet(np.ones(classes), (cells, labels)), counts


def people(seed: int, n: int, sizes: tuple[int, ...], labels: int, classes: int):
    """Sensitive columns, labels and soft predictions of n people that go together."""
    rng = np.random.default_rng(seed)
    A = [rng.integers(0, size, n) for size in sizes]
    y = rng.integers(0, labels, n)
    scores = rng.normal(size=(n, classes)) + sum(
        np.outer(a, rng.normal(size=classes)) for a in [*A, y]
    )
    return A, y, np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def histograms(cells: Cells, A, y, F, labels: int) -> tuple[np.ndarray, np.ndarray]:
    counts = np.zeros((cells.count, labels))
    histogram = np.zeros((cells.count, labels, F.shape[1]))
    for line in cells.ids(np.stack(A)):
        np.add.at(counts, (line, y if labels > 1 else 0 * y), 1.0)
        np.add.at(histogram, (line, y if labels > 1 else 0 * y), F)
    return histogram, counts


def direct(a: np.ndarray, F: np.ndarray) -> float:
    """Definition 3.1 from rows: a group and a soft prediction each."""
    joint = np.stack([F[a == group].sum(axis=0) for group in np.unique(a)]) / len(a)
    return float((joint**2 / np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum() - 1.0)


# ---- the identity (Theorem C.1)
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sizes", "classes"), [((2,), 2), ((5,), 2), ((2,), 6), ((4,), 3)])
def test_the_value_at_the_best_w_is_the_definition(seed, sizes, classes) -> None:
    A, y, F = people(seed, 400, sizes, 2, classes)
    cells = cells_of(*sizes)
    histogram, counts = histograms(cells, A, y, F, 1)
    dependence = Dependence.of(cells, least_share=LEAST)
    assert dependence.information(histogram, counts) == pytest.approx(direct(A[0], F), rel=1e-10)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize(("groups", "classes"), [(2, 2), (3, 4)])
def test_the_maximum_over_w_is_the_information(labels, groups, classes) -> None:
    """Found by an optimiser that knows the value alone (its gradient by differences), from a random
    start."""
    histogram, counts = table(3, groups, labels, classes)
    dependence = Dependence.of(cells_of(groups), tuple(range(labels)), least_share=LEAST)
    shape = histogram.shape
    rng = np.random.default_rng(0)
    found = minimize(
        lambda w: -float(dependence.value(w.reshape(shape), histogram, counts)),
        rng.normal(size=histogram.size),
    )
    information = float(dependence.information(histogram, counts))
    assert -found.fun == pytest.approx(information, abs=1e-7)
    assert np.allclose(found.x.reshape(shape), dependence.best(histogram, counts), atol=2e-3)
    for _ in range(50):  # and nowhere is it more
        w = dependence.best(histogram, counts) + rng.normal(scale=rng.uniform(0, 2), size=shape)
        assert dependence.value(w, histogram, counts) <= information + 1e-12


def test_it_is_at_least_zero_and_zero_only_without_dependence() -> None:
    rng = np.random.default_rng(1)
    cells = cells_of(3)
    dependence = Dependence.of(cells, least_share=LEAST)
    for _ in range(30):
        counts = rng.integers(1, 50, (3, 1)).astype(float)
        law = rng.dirichlet(np.ones(4))
        same = counts[..., np.newaxis] * law
        assert abs(dependence.information(same, counts)) < 1e-12
        moved = same.copy()
        moved[0, 0, :2] += np.array([1.0, -1.0]) * 0.1 * same[0, 0, :2].min()
        assert dependence.information(moved, counts) > 1e-9
    # All the dependence there can be: each group has a class of its own; then D is the number of
    # groups less 1.
    counts = np.array([[7.0], [20.0], [3.0]])
    assert dependence.information(
        np.eye(3)[:, np.newaxis] * counts[..., np.newaxis], counts
    ) == pytest.approx(2.0)


@pytest.mark.parametrize(("groups", "classes"), [(2, 2), (4, 3)])
def test_it_bounds_the_square_of_every_gap(groups, classes) -> None:
    """D = sum_r p[r] sum_j (P[j | r] - P[j])^2 / P[j], so by Cauchy (P[j | r] - P[j | s])^2 is at
    most

        D P[j] (1 - P[j]) (1 / p[r] + 1 / p[s])  <=  D / 4 (1 / p[r] + 1 / p[s]),

    the first with equality for two groups and two classes.
    """
    rng = np.random.default_rng(2)
    dependence = Dependence.of(cells_of(groups), least_share=LEAST)
    tightest = 0.0
    for _ in range(200):
        counts = rng.integers(1, 100, (groups, 1)).astype(float)
        law = rng.dirichlet(np.full(classes, rng.choice([0.2, 1.0, 5.0])), groups)
        information = float(
            dependence.information(law[:, np.newaxis] * counts[..., np.newaxis], counts)
        )
        p = counts[:, 0] / counts.sum()
        share = p @ law
        for (r, s), j in itertools.product(
            itertools.combinations(range(groups), 2), range(classes)
        ):
            bound = information * share[j] * (1 - share[j]) * (1 / p[r] + 1 / p[s])
            gap = (law[r, j] - law[s, j]) ** 2
            assert gap <= bound * (1 + 1e-9) + 1e-12
            assert bound <= information / 4 * (1 / p[r] + 1 / p[s]) * (1 + 1e-9) + 1e-12
            tightest = max(tightest, gap / max(bound, 1e-300)) if bound > 1e-6 else tightest
            if (groups, classes) == (2, 2):
                assert gap == pytest.approx(bound, rel=1e-6, abs=1e-12)
    assert tightest > 1 / 1.5


# ---- labels, columns and shares
# ------------------------------------------------------------------------------------------


def test_given_the_label_it_is_the_sum_of_each_labels_information_by_its_share() -> None:
    A, y, F = people(5, 600, (3,), 4, 3)
    cells = cells_of(3)
    histogram, counts = histograms(cells, A, y, F, 4)
    each = [direct(A[0][y == label], F[y == label]) for label in range(4)]
    shares = np.bincount(y) / len(y)
    odds = Dependence.of(cells, (0, 1, 2, 3), least_share=LEAST)
    assert odds.information(histogram, counts) == pytest.approx(float(shares @ each), rel=1e-10)
    for label in range(4):
        opportunity = Dependence.of(cells, (label,), weighted=False, least_share=LEAST)
        assert opportunity.information(histogram, counts) == pytest.approx(each[label], rel=1e-10)
        paper = Dependence.of(cells, (label,), least_share=LEAST)
        assert paper.information(histogram, counts) == pytest.approx(
            shares[label] * each[label], rel=1e-10
        )
        w = np.ones_like(histogram)
        others = [k for k in range(4) if k != label]
        # a row of another label costs nothing
        assert not opportunity.costs(w, counts)[:, others].any()
        assert opportunity.costs(w, counts)[:, label].any()


@pytest.mark.parametrize("labels", [1, 3])
def test_several_columns_are_one_product_or_add_up(labels) -> None:
    A, y, F = people(6, 900, (2, 3), 3, 3)
    chosen = tuple(range(labels))
    shares = np.bincount(y) / len(y)

    def right(a) -> float:
        if labels == 1:
            return direct(a, F)
        return float(sum(shares[k] * direct(a[y == k], F[y == k]) for k in range(3)))

    product, marginal = cells_of(2, 3), cells_of(2, 3, mode="marginal")
    together = Dependence.of(product, chosen, least_share=LEAST)
    apart = Dependence.of(marginal, chosen, least_share=LEAST)
    assert [block.stop - block.start for block in together.blocks] == [6]
    assert [(block.start, block.stop) for block in apart.blocks] == [(0, 2), (2, 5)]
    assert together.information(*histograms(product, A, y, F, labels)) == pytest.approx(
        right(3 * A[0] + A[1]), rel=1e-10
    )
    assert apart.information(*histograms(marginal, A, y, F, labels)) == pytest.approx(
        right(A[0]) + right(A[1]), rel=1e-10
    )


def test_shares_are_at_least_the_floor_even_where_noise_left_less_than_nothing() -> None:
    dependence = Dependence.of(cells_of(3), (0, 1), least_share=0.05)
    counts = np.array([[100.0, 1.0], [0.0, -7.0], [-3.0, 0.5]])
    shares = dependence.shares(counts)
    assert shares.min() == 0.05
    assert shares.max() <= 1.0
    for noisy in (counts, -counts, 0.0 * counts):
        costs = dependence.costs(np.ones((3, 2, 2)), noisy)
        assert np.isfinite(costs).all()
        assert np.abs(costs).max() <= 3.0 + 2.0 / math.sqrt(0.05)
        assert np.isfinite(dependence.best(np.zeros((3, 2, 2)), noisy)).all()
    given = Dependence.of(cells_of(2, 2, mode="marginal"), least_share=0.1)
    assert given.shares(np.array([[95.0], [5.0], [60.0], [40.0]])) == pytest.approx(
        np.array([[0.95], [0.1], [0.6], [0.4]])
    )


# ---- Lemma D.1
# --------------------------------------------------------------------------------------------------


CASES = [
    (cells_of(3), (0,), 1, True),
    (cells_of(2), (0, 1, 2), 3, True),
    (cells_of(2), (1,), 3, False),
    (cells_of(2, 3, mode="marginal"), (0,), 1, True),
    (cells_of(2, 3, mode="marginal"), (0, 1, 2), 3, True),
]


@pytest.mark.parametrize(("cells", "chosen", "labels", "weighted"), CASES, ids=range(len(CASES)))
def test_lemma_d1_the_gradient_for_w_is_that_of_finite_differences(
    cells, chosen, labels, weighted
) -> None:
    A, y, F = people(7, 500, cells.sizes, 3, 3)
    histogram, counts = histograms(cells, A, y, F, labels)
    # a floor that binds, too
    dependence = Dependence.of(cells, chosen, weighted=weighted, least_share=0.3)
    w = np.random.default_rng(0).normal(size=histogram.shape)
    found = dependence.gradient(w, histogram, counts)
    for place in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[place] = 1e-5
        up, down = (float(dependence.value(w + sign * step, histogram, counts)) for sign in (1, -1))
        assert found[place] == pytest.approx((up - down) / 2e-5, abs=1e-8)
    assert (
        np.abs(dependence.gradient(dependence.best(histogram, counts), histogram, counts)).max()
        < 1e-14
    )


def psi(w: np.ndarray, F: np.ndarray, group: int, shares: np.ndarray) -> float:
    """-Tr(W diag(F) W') + 2 Tr(W F s' P_s^(-1/2)) - 1 with W as (groups, classes): the paper's own
    form, by matrices."""
    s = np.eye(len(w))[group]
    inner = w @ np.outer(F, s) @ np.diag(shares**-0.5)
    return float(-np.trace(w @ np.diag(F) @ w.T) + 2 * np.trace(inner) - 1.0)


def softmax(z: np.ndarray) -> np.ndarray:
    return np.exp(z - z.max()) / np.exp(z - z.max()).sum()


def test_lemma_d1_costs_give_the_gradient_of_psi_for_the_logits_of_each_row() -> None:
    rng = np.random.default_rng(8)
    counts = np.array([[60.0], [25.0], [15.0]])
    dependence = Dependence.of(cells_of(3), least_share=0.01)
    w = rng.normal(size=(3, 1, 4))
    costs = dependence.costs(w, counts)[:, 0]
    for group in range(3):
        z = rng.normal(size=4) * 2
        p = softmax(z)
        assert p @ costs[group] - 1.0 == pytest.approx(
            psi(w[:, 0], p, group, counts[:, 0] / 100), rel=1e-12
        )
        found = p * (costs[group] - p @ costs[group])  # the softmax' own derivative
        for k in range(4):
            step = np.zeros(4)
            step[k] = 1e-5
            up, down = (
                psi(w[:, 0], softmax(z + sign * step), group, counts[:, 0] / 100)
                for sign in (1, -1)
            )
            assert found[k] == pytest.approx((up - down) / 2e-5, abs=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("by_label", [False, True])
@pytest.mark.parametrize("sharpness", [1.0, 1.7])
def test_lemma_d1_the_curators_gradient_of_costs_is_that_of_the_penalty(
    classes, mode, by_label, sharpness
) -> None:
    """d value / d theta by differences of the curator's own soft histograms, W and shares fixed,
    against one GradientSum."""
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, classes, 80)
    groups = [rng.integers(0, 2, 80), rng.integers(0, 3, 80)]
    rows = Rows.from_arrays(X, y, groups, classes=range(classes), groups=[(0, 1), (0, 1, 2)])
    curator, cells = Curator(rows, Promise(math.inf, 1e-6)), rows.cells(mode)
    labels = classes if by_label else 1
    _, counts = histograms(cells, groups, y, np.zeros((80, classes)), labels)
    dependence = Dependence.of(cells, tuple(range(labels)))
    w = rng.normal(size=(cells.count, labels, classes))
    theta = rng.normal(size=(1 if classes == 2 else classes, 3))

    def value(weights) -> float:
        asked = PredictionHistogram(Linear(weights, sharpness), cells, "soft", by_label=by_label)
        (answer,) = curator.answer([(asked, 0.0)])
        histogram = answer.reshape(cells.count, labels, -1)
        if classes == 2:
            histogram = np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)
        return float(dependence.value(w, histogram, counts))

    costs = dependence.costs(w, counts)
    (answer,) = curator.answer(
        [(GradientSum(Linear(theta, sharpness), None, cells, costs, loss="none"), 0.0)]
    )
    found = answer.reshape(theta.shape) / 80
    for place in np.ndindex(theta.shape):
        step = np.zeros_like(theta)
        step[place] = 1e-4
        slope = (value(theta + step) - value(theta - step)) / 2e-4
        assert found[place] == pytest.approx(slope, abs=1e-6)


# ---- many models, the ball, errors
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_one_model_alone_has_the_bits_that_it_has_among_many(mode, labels, weighted) -> None:
    cells = cells_of(2, 3, mode=mode)
    dependence = Dependence.of(cells, tuple(range(labels)), weighted=weighted)
    rng = np.random.default_rng(4)
    counts = rng.normal(100, 30, (7, cells.count, labels))
    histogram = rng.normal(50, 30, (7, cells.count, labels, 3))
    w = rng.normal(size=histogram.shape)
    many = (
        dependence.shares(counts),
        dependence.best(histogram, counts, 2.0),
        dependence.costs(w, counts),
        dependence.gradient(w, histogram, counts),
        projected(w, 1.5),
    )
    for m in range(7):
        for one in (slice(m, m + 1), m):
            alone = (
                dependence.shares(counts[one]),
                dependence.best(histogram[one], counts[one], 2.0),
                dependence.costs(w[one], counts[one]),
                dependence.gradient(w[one], histogram[one], counts[one]),
                projected(w[one], 1.5),
            )
            for whole, part in zip(many, alone, strict=True):
                assert np.array_equal(whole[one], part)
    values = dependence.value(w, histogram, counts)
    assert values.shape == (7,)
    assert values == pytest.approx(
        [float(dependence.value(w[m], histogram[m], counts[m])) for m in range(7)]
    )


def test_projected_is_the_nearest_point_of_each_labels_ball() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        w = rng.normal(scale=rng.choice([0.1, 2.0]), size=(3, 2, 4))
        near = projected(w, 2.0)
        for label in range(2):
            size = np.linalg.norm(w[:, label])
            assert np.linalg.norm(near[:, label]) <= 2.0 * (1 + 1e-12)
            if size <= 2.0:
                assert np.array_equal(near[:, label], w[:, label])
            # the angle to every other point of the ball is at least a right one
            for _ in range(20):
                other = rng.normal(size=(3, 4))
                other *= 2.0 * rng.random() / np.linalg.norm(other)
                assert ((w - near)[:, label] * (other - near[:, label])).sum() <= 1e-9
    assert not projected(np.zeros((2, 1, 2)), 1.0).any()


@pytest.mark.parametrize("least", [0.0, -0.1, 0.50001, 1.0, math.nan, math.inf])
def test_a_least_share_that_is_none_is_refused(least) -> None:
    with pytest.raises(InputError, match="least_share"):
        Dependence.of(cells_of(2), least_share=least)


def test_a_floor_of_rows_bounds_w() -> None:
    """Where hardly any row has a prediction, noise over nothing would be a W of any size."""
    dependence = Dependence.of(cells_of(2), least_share=0.04)
    counts, histogram = np.array([[50.0], [50.0]]), np.array([[[49.0, 1e-9]], [[49.0, 2.0]]])
    assert dependence.best(histogram, counts, 10.0)[..., 1].max() == pytest.approx(
        0.2 / math.sqrt(0.5)
    )
    negative = dependence.best(-histogram, counts, 10.0)
    assert not negative.any()
