"""Totals: every question against the readable reference, and the same integers however the rows are
laid out."""

from __future__ import annotations

import numpy as np
import plain_totals as reference
import pytest

from covering import pairs
from fairveil.core import passes as totals_module
from fairveil.core import sums
from fairveil.core.attached import attached_model
from fairveil.core.passes import totals
from fairveil.core.rows import MOST_ROWS
from fairveil.curator import (
    AttachedHistogram,
    CellCounts,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    NumberMoments,
    PredictionHistogram,
    RowCount,
    RowFunction,
    Rows,
    ScoreHistogram,
)
from fairveil.facts import RowBlock

WIDTH = 1 + 3 + 4 + 3


def questions(rows, classes=2, mode="product", many=False):
    """One of every kind, for a table of the given kind."""
    rng = np.random.default_rng(11)
    outputs = 1 if classes == 2 else classes
    shape = (outputs, WIDTH)
    weights = rng.normal(size=(7, *shape) if many else shape)
    model, cells = Linear(weights, sharpness=1.7), rows.cells(mode)
    costs = rng.normal(size=(cells.count, classes, classes))
    return [
        RowCount(),
        CellCounts(cells),
        CellCounts(cells, by_label=True),
        PredictionHistogram(model, cells, "soft"),
        PredictionHistogram(model, cells, "hard", by_label=True),
        PredictionHistogram(model, None, "soft"),
        GradientSum(model, 0.8),
        GradientSum(model, 0.8, cells, costs, loss_weight=0.5),
        GradientSum(model, 0.8, cells, costs[:, :1], loss="none"),
        GradientSum(model, 0.8, cells, cell_weights=rng.normal(size=cells.count)),
        GradientSum(model, 0.8, cells, costs, "log", 0.7, 2.0 * rng.normal(size=cells.count)),
        FeatureSums(cells, 1.5),
        FeatureSums(cells, 1.5, by_label=True),
        FeatureSums(cells, 0.9, by_label=True, basis=rng.normal(size=(5, WIDTH))),
        FeatureSums(None, 3.0, basis=rng.normal(size=(2, WIDTH))),
        NumberMoments(1.5),
        *([ScoreHistogram(model, (-0.5, 0.0, 2.0), cells, by_label=True)] if classes == 2 else []),
        GramMatrices(cells, 1.5),
        GramMatrices(None, 1.5, with_target=True),
        GroupLosses(model, cells),
        GroupLosses(model, cells, "log", 2.0),
    ]


def regression_questions(rows):
    cells = rows.cells()
    model = Linear(np.random.default_rng(12).normal(size=(1, WIDTH)))
    return [
        GradientSum(model, 0.8, loss="squared"),
        GroupLosses(model, cells, "squared", 3.0),
        GramMatrices(cells, 1.5, with_target=True),
        FeatureSums(cells, 1.5),
    ]


def integers(question, rows, threads=None):
    cap = rows.max_sample_weight if rows.weighted else None
    return totals([(question, [question.scale(rows.layout, cap)])], rows, rows.blocks(), threads)[0]


@pytest.mark.parametrize(
    ("mode", "classes", "many", "kind"),
    pairs(
        ["product", "marginal"],
        [2, 5],
        [False, True],
        [{}, {"weights": True}, {"sparse": True}, {"dtype": np.float32}],
    ),
)
def test_guarantee_2_agrees_with_the_reference(rows_of, mode, classes, many, kind):
    rows = rows_of(classes=classes, **kind)
    cap = 1.0 if rows.weighted else None
    for question in questions(rows, classes, mode, many):
        scale = question.scale(rows.layout, cap)
        found = integers(question, rows)
        for m in range(question.models):
            wanted = sum(reference.total(question, block, m) for block in rows.blocks())
            error = np.abs(found[m] * scale.unit - wanted).max()
            assert error < 700 * (scale.unit + 1e-12 * scale.bound.norm), (question.name, error)


def test_guarantee_2_for_numeric_targets(rows_of):
    rows = rows_of(regression=True)
    for question in regression_questions(rows):
        scale = question.scale(rows.layout, None)
        wanted = sum(reference.total(question, block) for block in rows.blocks())
        assert np.abs(integers(question, rows)[0] * scale.unit - wanted).max() < 700 * (
            scale.unit + 1e-12
        )


class Split:
    """The same rows in other blocks, as a source that is read again at each pass."""

    def __init__(self, rows: Rows, cuts: list[int]) -> None:
        self.layout, self._rows, self._cuts = rows.layout, rows, cuts

    def blocks(self):
        whole = list(self._rows.blocks())
        assert len(whole) == 1
        for a, b in zip(self._cuts[:-1], self._cuts[1:], strict=True):
            part = whole[0].take(np.arange(a, b))
            numbers = part.numbers
            if part.is_sparse:
                import scipy.sparse

                numbers = scipy.sparse.csr_array(
                    (part.numbers[0], part.indices, part.indptr), shape=(b - a, 3)
                )
            weights = part.weights if len(part.weights) else None
            yield RowBlock(numbers, part.codes, part.labels, part.sensitive, weights)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("kind", [{}, {"weights": True}, {"sparse": True}, {"dtype": np.float32}])
def test_guarantee_1_order_blocks_shards_and_threads_change_no_bit(rows_of, classes, kind):
    rows = rows_of(classes=classes, **kind)
    order = np.random.default_rng(5).permutation(700)
    permuted = rows_of(classes=classes, order=order, **kind)
    streamed = Rows(Split(rows, [0, 1, 130, 511, 700]), in_memory=False)
    shards = [Rows(Split(rows, [0, 300])), Rows(Split(rows, [300, 700]))]
    for question in questions(rows, classes) + questions(rows, classes, "marginal", many=True):
        wanted = integers(question, rows)
        assert (integers(question, permuted) == wanted).all(), question.name
        assert (integers(question, rows, threads=2) == wanted).all(), question.name
        assert (integers(question, rows, threads=5) == wanted).all(), question.name
        assert (integers(question, streamed) == wanted).all(), question.name
        assert (sum(integers(question, shard) for shard in shards) == wanted).all(), question.name


def test_guarantee_1_many_models_in_one_pass_are_each_alone(rows_of):
    rows = rows_of()
    weights = np.random.default_rng(6).normal(size=(70, 1, WIDTH))
    cells = rows.cells()
    costs = np.random.default_rng(7).normal(size=(70, cells.count, 2, 2))
    scale = GradientSum(Linear(weights), 0.8).scale(rows.layout, None)
    together = totals(
        [(GradientSum(Linear(weights), 0.8, cells, costs), [scale])], rows, rows.blocks()
    )[0]
    for m in (0, 1, 63, 64, 69):
        alone = GradientSum(Linear(weights[m]), 0.8, cells, costs[m])
        assert (totals([(alone, [scale])], rows, rows.blocks())[0][0] == together[m]).all()
    losses = integers(GroupLosses(Linear(weights), cells, "log", 2.0), rows)
    for m in (0, 69):
        assert (
            integers(GroupLosses(Linear(weights[m]), cells, "log", 2.0), rows)[0] == losses[m]
        ).all()


def test_a_gradient_and_a_histogram_of_one_model_share_a_pass(rows_of):
    rows = rows_of()
    cells = rows.cells()
    model = Linear(np.random.default_rng(8).normal(size=(1, WIDTH)))
    gradient, histogram = GradientSum(model, 0.8), PredictionHistogram(model, cells)
    other = PredictionHistogram(Linear(np.zeros((1, WIDTH))), cells)
    measurements = [(q, [q.scale(rows.layout, None)]) for q in (histogram, other, gradient)]
    assert totals_module._passes([one for one, _ in measurements]) == [(2, 0), (1,)]
    for (question, _), found in zip(
        measurements, totals(measurements, rows, rows.blocks()), strict=True
    ):
        assert (found == integers(question, rows)).all()


def test_a_batch_is_the_rows_at_its_positions(rows_of):
    rows = rows_of()
    index = np.sort(np.random.default_rng(9).choice(700, 90, replace=False))
    chosen = rows_of(order=index)
    streamed = Rows(Split(rows, [0, 250, 700]))
    for question in questions(rows):
        scale = question.scale(rows.layout, None)
        wanted = integers(question, chosen)
        assert (totals([(question, [scale])], rows, rows.drawn(index))[0] == wanted).all(), (
            question.name
        )
        assert (
            totals([(question, [scale])], streamed, streamed.drawn(index))[0] == wanted
        ).all(), question.name
    nothing = np.empty(0, np.int64)
    assert (totals([(question, [scale])], rows, rows.drawn(nothing))[0] == 0).all()


def test_attached_models_and_user_code_keep_their_integers_too(rows_of):
    rows, permuted = (
        rows_of(classes=3),
        rows_of(classes=3, order=np.random.default_rng(5).permutation(700)),
    )

    def decide(block):
        return (block.codes[0] % 3).astype(int)

    def features(block):
        return np.column_stack([block.numbers.T, block.labels])

    for table in (rows, permuted):
        table.attached = attached_model(decide, table, {"features"}, "codes")
    cells = rows.cells()
    scale = AttachedHistogram(rows.attached, cells).scale(rows.layout, None)
    for make in (lambda table: AttachedHistogram(table.attached, cells, by_label=True),):
        a = totals([(make(rows), [scale])], rows, rows.blocks())[0]
        b = totals([(make(permuted), [scale])], permuted, permuted.blocks(), threads=3)[0]
        assert (a == b).all()
    question = RowFunction(features, 4, 0.5)
    assert (integers(question, rows) == integers(question, permuted, threads=3)).all()


def test_many_rows_fit_the_integers():
    """2^33 rows of the largest contribution stay below 2^63, and a pass of blocks does not lose its
    place."""
    assert MOST_ROWS * 2**30 <= 2**63
    rows = Rows.from_arrays(np.full((200_000, 1), 1e3), np.ones(200_000, int), classes=[0, 1])
    question = GradientSum(Linear(np.array([-50.0, -1.0])), 1.0)
    scale = question.scale(rows.layout, None)
    total = totals([(question, [scale])], rows, rows.blocks(), threads=2)[0]
    assert total[0, 0, 1] * scale.unit == pytest.approx(-200_000 * 1e3 / np.hypot(1e3, 1), rel=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_models_side_by_side_and_one_by_one_have_the_same_bits(rows_of, monkeypatch, sparse):
    """How many models there are says which way is faster; both give the same integers."""
    rows, rng = rows_of(n=700, sparse=sparse), np.random.default_rng(4)
    cells = rows.cells()
    model = Linear(rng.normal(size=(9, 1, 1 + rows.layout.width)))
    costs = rng.normal(size=(9, cells.count, 1, 2))
    questions = [GradientSum(model, 1.0, cells, costs), PredictionHistogram(model, cells, "soft")]
    asked = [(question, [question.scale(rows.layout, None)]) for question in questions]
    found = []
    for least in (1, 10):
        monkeypatch.setattr(sums, "PANEL_FROM", least)
        monkeypatch.setattr(sums, "PANEL_FROM_FEW", least)
        found.append(totals(asked, rows, rows.blocks()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
