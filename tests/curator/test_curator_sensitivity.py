"""Every question under every relation, against enumerated neighbours: rows near, far, and extremely
far beyond the clip.

A total is the sum of its rows' integers (test_curator_totals), so a neighbour moves it by one row's
vector, or by the difference of two: all of them are enumerated over a pool of rows and every
combination of sensitive values.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from curator_pools import (
    COMBINATIONS,
    GROUPS,
    SIZES,
    WIDTH,
    attribute_move,
    contributions,
    largest_moves,
    norms,
    pool,
)

from covering import pairs
from fairveil.core.attached import attached_model
from fairveil.core.events import Gaussian, compose
from fairveil.core.passes import needs_rows, public_scales
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
    describe,
)
from fairveil.facts import RowBlock
from fairveil.privacy import Promise

REPLACE = Promise(1.0, 1e-6, neighbours="replace-one")


def questions(rows, classes, mode):
    rng = np.random.default_rng(1)
    outputs = 1 if classes == 2 else classes
    model = Linear(rng.normal(size=(outputs, WIDTH)), sharpness=3.0)
    steep = Linear(1e3 * rng.normal(size=(2, outputs, WIDTH)))
    cells = rows.cells(mode)
    costs = 5 * rng.normal(size=(cells.count, classes, classes))
    return [
        CellCounts(cells),
        CellCounts(cells, by_label=True),
        CellCounts(None, by_label=True),
        PredictionHistogram(model, cells, "soft"),
        PredictionHistogram(model, cells, "hard"),
        PredictionHistogram(steep, cells, "soft", by_label=True),
        PredictionHistogram(model, None, "soft"),
        PredictionHistogram(model, None, "hard", by_label=True),
        GradientSum(model, 0.7),
        GradientSum(steep, 1e-3, cells, costs),
        GradientSum(model, 50.0, cells, costs[:, :1], loss="none"),
        FeatureSums(cells, 1.5),
        FeatureSums(cells, 1.5, by_label=True),
        FeatureSums(None, 0.3),
        FeatureSums(cells, 0.8, by_label=True, basis=rng.normal(size=(4, WIDTH))),
        FeatureSums(cells, 30.0, basis=np.eye(WIDTH)[[2, 0, 9]]),
        NumberMoments(1.5),
        *([ScoreHistogram(model, (-0.5, 0.0, 2.0), cells, by_label=True)] if classes == 2 else []),
        GramMatrices(cells, 1.5, with_target=True),
        GramMatrices(None, 20.0),
        GroupLosses(model, cells),
        GroupLosses(steep, cells, "log", 2.0),
        GroupLosses(model, None, "log", 0.1),
    ]


def regression_questions(rows, mode):
    model = Linear(np.random.default_rng(2).normal(size=(1, WIDTH)))
    cells = rows.cells(mode)
    return [
        GradientSum(model, 0.7, loss="squared"),
        GroupLosses(model, cells, "squared", 3.0),
        GramMatrices(cells, 1.5, with_target=True),
        FeatureSums(cells, 1.5),
    ]


KINDS = [{}, {"weights": True}, {"dtype": np.float32}, {"sparse": True}]


@pytest.mark.parametrize(
    ("mode", "classes", "kind"),
    pairs(["product", "marginal"], [2, 4], KINDS),
)
def test_guarantee_1_no_neighbour_moves_a_total_further_than_its_bound(mode, classes, kind):
    rows = pool(classes, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    for question in [RowCount(), *questions(rows, classes, mode)]:
        for order in (
            (1, 2)
            if question.kind in (CellCounts, PredictionHistogram, ScoreHistogram, GroupLosses)
            else (2,)
        ):
            scale = question.scale(rows.layout, cap, order)
            alone, replaced = largest_moves(question, scale, rows)
            assert alone * scale.unit <= scale.bound.sensitivity("add-remove"), (question, order)
            assert replaced * scale.unit <= scale.bound.sensitivity("replace-one"), (
                question,
                order,
            )


def test_guarantee_1_for_numeric_targets():
    rows = pool(regression=True)
    for question in regression_questions(rows, "product"):
        scale = question.scale(rows.layout, None)
        alone, replaced = largest_moves(question, scale, rows)
        assert alone * scale.unit <= scale.bound.sensitivity("add-remove"), question
        assert replaced * scale.unit <= scale.bound.sensitivity("replace-one"), question


def test_the_bounds_are_not_loose():
    """A bound twice too large would double the noise: the enumerated worst case comes within ten
    percent of each."""
    rows = pool(2)
    model, cells = Linear(np.array([0.0, 40.0, 0, 0, *[0] * 7])), rows.cells()
    for question, relations in [
        (CellCounts(cells, by_label=True), ("add-remove", "replace-one")),
        (PredictionHistogram(model, cells, "soft"), ("add-remove", "replace-one")),
        (GradientSum(model, 0.2), ("add-remove", "replace-one")),
        (FeatureSums(cells, 1.5), ("add-remove", "replace-one")),
        (FeatureSums(cells, 0.5, basis=np.eye(WIDTH)[1:4]), ("add-remove", "replace-one")),
        (GramMatrices(cells, 1.5), ("add-remove", "replace-one")),
        (GroupLosses(model, cells), ("add-remove", "replace-one")),
        (NumberMoments(1.5), ("add-remove",)),  # replace-one's 2 C is reached as C falls: see below
        (
            ScoreHistogram(model, (-0.5, 0.0, 2.0), cells, by_label=True),
            ("add-remove", "replace-one"),
        ),
    ]:
        scale = question.scale(rows.layout, None)
        moves = dict(
            zip(("add-remove", "replace-one"), largest_moves(question, scale, rows), strict=True)
        )
        for relation in relations:
            assert moves[relation] * scale.unit >= 0.9 * scale.bound.sensitivity(relation), (
                question,
                relation,
            )


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_score_histograms_move_as_far_as_their_bound_and_no_further(mode, weights, order):
    """Worked out here: the largest weight, once in each cell that a row is in; replaced, it leaves
    a bin and enters another."""
    rows = pool(2, weights=weights)
    cells = rows.cells(mode)
    question = ScoreHistogram(
        Linear(np.array([0.0, 40.0, 0, 0, *[0] * 7])), (-0.5, 0.0, 2.0), cells, by_label=True
    )
    scale = question.scale(rows.layout, rows.max_sample_weight if weights else None, order)
    alone, replaced = (moved * scale.unit for moved in largest_moves(question, scale, rows))
    weight, lines = (1.5 if weights else 1.0), (1 if mode == "product" else len(SIZES))
    assert alone == pytest.approx(weight * lines ** (1 / order), rel=1e-6)
    assert replaced == pytest.approx(weight * (2 * lines) ** (1 / order), rel=1e-6)
    for moved, relation in ((alone, "add-remove"), (replaced, "replace-one")):
        assert (
            0.999 * scale.bound.sensitivity(relation) <= moved <= scale.bound.sensitivity(relation)
        )


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("clip", [0.05, 0.5, 20.0])
def test_changed_features_alone_move_number_moments_and_score_histograms_within_their_bounds(
    weights, clip
):
    """One person's numbers and codes change, her label, groups and weight stay: the largest such
    move, over all pairs."""
    (some,) = pool(2).blocks()
    some = some.take(np.arange(0, some.rows, len(COMBINATIONS)))
    # (x, x^2) has norm C: the furthest from (-x, x^2) of all such pairs
    x = math.sqrt((math.sqrt(1 + 4 * clip**2) - 1) / 2)
    X = np.concatenate([some.numbers.T, x * np.eye(3), -x * np.eye(3)])
    n, codes = len(X), np.resize(some.codes.T, (len(X), 2))
    rows = Rows.from_arrays(
        X,
        np.ones(n, int),
        [["b"] * n, ["x"] * n],
        codes=codes,
        code_sizes=SIZES,
        classes=[0, 1],
        groups=GROUPS,
        sample_weight=np.full(n, 9.0) if weights else None,
        max_sample_weight=1.5,
    )
    weight, cells = (1.5 if weights else 1.0), rows.cells("marginal")
    bins = ScoreHistogram(Linear(np.array([0.0, 40.0, 0, 0, *[0] * 7])), (-0.5, 0.0, 2.0), cells)
    for question, by_hand in ((NumberMoments(clip), max(2 * x, math.sqrt(2) * clip)), (bins, 2.0)):
        scale = question.scale(rows.layout, rows.max_sample_weight if weights else None)
        moved = largest_moves(question, scale, rows)[1] * scale.unit
        assert 0.999 * weight * by_hand <= moved <= scale.bound.sensitivity("replace-one")


@pytest.mark.parametrize("kind", [{}, {"weights": True}, {"dtype": np.float32}])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_guarantee_1_holds_for_rescaled_rows_at_the_ends_of_their_range(kind, mode):
    rows = pool(2, **kind).rescaled(np.array([1e12, 3.0, 1e-3]), np.array([0.0, -1e3, 0.5]))
    (block,) = rows.blocks()
    assert np.abs(block.numbers).max() == np.finfo(block.numbers.dtype).max
    cap = rows.max_sample_weight if rows.weighted else None
    for question in questions(rows, 2, mode):
        scale = question.scale(rows.layout, cap)
        alone, replaced = largest_moves(question, scale, rows)
        assert alone * scale.unit <= scale.bound.sensitivity("add-remove"), question
        assert replaced * scale.unit <= scale.bound.sensitivity("replace-one"), question


def test_the_well_known_wrong_bounds_would_be_caught():
    """sqrt(2) R for feature sums under replace-one, and C for signed gradients, are both
    exceeded."""
    rows = pool(2)
    sums = FeatureSums(rows.cells(), 1.5)
    scale = sums.scale(rows.layout, None)
    assert largest_moves(sums, scale, rows)[1] * scale.unit > 1.2 * math.sqrt(2) * 1.5
    gradient = GradientSum(Linear(np.array([0.0, 40.0, 0, 0, *[0] * 7])), 0.2)
    scale = gradient.scale(rows.layout, None)
    assert largest_moves(gradient, scale, rows)[1] * scale.unit > 1.5 * 0.2


@pytest.mark.parametrize(
    ("mode", "classes", "weights"),
    pairs(["product", "marginal"], [2, 4], [False, True]),
)
def test_guarantee_2_sensitive_features_alone(mode, classes, weights):
    rows = pool(classes, weights=weights, far=False)
    cap = rows.max_sample_weight if rows.weighted else None
    for asked in questions(rows, classes, mode):
        if asked.kind is GradientSum and asked.loss != "none":
            continue  # the curator asks its loss and its costs apart: see test_curator_curator
        for question in (asked, _without_clip(asked)):
            scale = (
                public_scales(question, rows)[-1]
                if needs_rows(question, rows.layout)
                else question.scale(rows.layout, cap)
            )
            moved = attribute_move(question, scale, rows) * scale.unit
            assert moved <= scale.bound.sensitivity("replace-one"), question
            if "sensitive" not in question.reads:
                assert moved == 0.0
            elif mode == "product" and moved > 0:
                assert moved >= 0.9 * scale.bound.sensitivity("replace-one"), question


def _without_clip(question):

    clips = question.kind in (GradientSum, FeatureSums, GramMatrices, NumberMoments, GroupLosses)
    return question.but(clip=None) if clips else question


def test_guarantee_2_groups_that_nobody_is_in_count_too():
    """All observed rows are in one cell: the bound is that of all listed cells."""
    rows = pool(2, far=False)
    (whole,) = rows.blocks()

    class OneCell:
        layout = rows.layout

        def blocks(self):
            part = whole.take(np.arange(0, whole.rows, len(COMBINATIONS)))
            yield RowBlock(part.numbers, part.codes, part.labels, part.sensitive)

    alone = Rows(OneCell())
    for question in questions(rows, 2, "product"):
        if needs_rows(question, rows.layout) and not (
            question.kind is GradientSum and question.loss != "none"
        ):
            assert public_scales(question, alone) == public_scales(question, rows), question


@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_guarantee_1_for_attached_models_and_user_code(mode):
    rows = pool(3)
    cells = rows.cells(mode)
    wild = attached_model(
        lambda block: np.stack([block.numbers[0], block.numbers[1], np.ones(block.rows)], 1),
        rows,
        {"features"},
        "wild",
    )
    function = RowFunction(
        lambda block: np.column_stack([block.numbers.T * 1e3, block.labels, block.sensitive.T]),
        6,
        0.7,
    )
    for question in [
        AttachedHistogram(wild, cells),
        AttachedHistogram(wild, cells, by_label=True),
        function,
    ]:
        for order in (1, 2):
            scale = question.scale(rows.layout, None, order)
            alone, replaced = largest_moves(question, scale, rows)
            assert alone * scale.unit <= scale.bound.sensitivity("add-remove"), question
            assert replaced * scale.unit <= scale.bound.sensitivity("replace-one"), question


def joint_moves(questions, scales, rows):
    """The most that one person moves several totals together, in the questions' units."""
    v = np.hstack(
        [
            contributions(q, scale, rows) * scale.unit
            for q, scale in zip(questions, scales, strict=True)
        ]
    )
    return norms(v, 2).max(), max(norms(v - row, 2).max() for row in v)


@pytest.mark.parametrize("far", [False, True])
def test_gram_matrices_and_feature_sums_asked_jointly_move_within_their_joint_bound(far):
    """theory.md#feature-sums: R^4 + R^2 squared under add-remove, 2 R^4 + 4 R^2 under replace-one.

    Rows beyond the clip come near: orthogonal ones, though, move both by sqrt 2, opposite ones the
    sums alone.
    """
    rows = pool(2, far=far)
    for clip in (1.0, 1.5, 4.0):
        questions = [GramMatrices(None, clip), FeatureSums(rows.cells(), clip, by_label=True)]
        scales = [question.scale(rows.layout, None) for question in questions]
        alone, replaced = joint_moves(questions, scales, rows)
        for moved, relation, wanted in (
            (alone, "add-remove", clip**4 + clip**2),
            (replaced, "replace-one", 2 * clip**4 + 4 * clip**2),
        ):
            bound = math.hypot(*(scale.bound.sensitivity(relation) for scale in scales))
            assert bound == pytest.approx(math.sqrt(wanted), rel=1e-6)
            assert moved <= bound
            assert not far or moved >= 0.8 * bound
        assert describe(
            [(question, 3.0) for question in questions], rows.layout, REPLACE
        ) == compose([Gaussian(3.0)] * 2)
