"""Gradient sums whose loss counts by cell: against the reference, against the group losses that
they differentiate, and under every relation against enumerated neighbours."""

from __future__ import annotations

import itertools
import math

import numpy as np
import plain_totals as reference
import pytest
from curator_pools import (
    COMBINATIONS,
    WIDTH,
    attribute_move,
    contributions,
    largest_moves,
    norms,
    pool,
)

from covering import pairs
from fairveil.core.events import Gaussian
from fairveil.core.passes import public_scales, totals
from fairveil.core.sums import parted, parted_question, weights_reach
from fairveil.curator import (
    Curator,
    GradientSum,
    GroupLosses,
    Linear,
    Poisson,
    Rows,
)
from fairveil.errors import InputError
from fairveil.facts import Cells, RowBlock
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

KINDS = [{}, {"weights": True}, {"sparse": True}, {"dtype": np.float32}]
SENSITIVE = Promise(1000.0, 1e-6, protects="sensitive_features")
FREE = Promise(math.inf, 0.0)


def asked(
    rows,
    classes=2,
    mode="product",
    models=0,
    clip=0.8,
    loss="log",
    costs=False,
    weight=0.7,
    size=1.0,
    cells=None,
):
    """A question with signed weights by cell, about one model or many."""
    rng = np.random.default_rng(3)
    lead = (models,) if models else ()
    model = Linear(
        size * rng.normal(size=(*lead, 1 if classes == 2 else classes, WIDTH)), sharpness=1.7
    )
    cells = rows.cells(mode) if cells is None else cells
    by_cell = 2 * rng.normal(size=(*lead, cells.count))
    given = rng.normal(size=(*lead, cells.count, classes, classes)) if costs else None
    return GradientSum(model, clip, cells, given, loss, weight, by_cell)


def variants(rows, classes, mode, clip):
    """Weights alone and with costs, equal and unequal, and a model so steep that its rows'
    residuals are 0 or 1."""
    plain = asked(rows, classes, mode, clip=clip)
    equal = GradientSum(
        plain.model, clip, plain.cells, None, "log", 0.7, np.full(plain.cells.count, -1.5)
    )
    costs = asked(rows, classes, mode, clip=clip, costs=True)
    return [
        plain,
        equal,
        costs,
        asked(rows, classes, mode, clip=clip, size=1e3, costs=True),
        asked(rows, classes, mode, clip=clip, size=40),
    ]


def integers(question, rows, scale=None, **given):
    scale = (
        question.scale(rows.layout, rows.max_sample_weight if rows.weighted else None)
        if scale is None
        else scale
    )
    return totals([(question, [scale])], rows, rows.blocks(), **given)[0]


def whole(question, rows, m=0):
    return sum(reference.total(question, block, m) for block in rows.blocks())


# -- the sums --------------------------------------------------------------------------------------


def test_the_reference_weighs_each_rows_loss_by_hand(rows_of):
    """loss_weight x the sum of the row's cells' weights, before the clip of the whole gradient."""
    rows = rows_of(n=40, regression=True, far=False)
    (block,) = rows.blocks()
    question = asked(rows, mode="marginal", loss="squared", clip=1.3)
    theta, total = question.model.array[0, 0], np.zeros(WIDTH)
    for i in range(40):
        row = reference.dense(block)[i]
        weight = (
            question.cell_weights[block.sensitive[0, i]]
            + question.cell_weights[3 + block.sensitive[1, i]]
        )
        gradient = 0.7 * weight * (row @ theta - block.labels[i]) * row
        total += gradient * min(1.0, 1.3 / np.linalg.norm(gradient))
    assert np.allclose(whole(question, rows)[0], total, rtol=1e-12)
    scale = question.scale(rows.layout, None)
    assert np.abs(integers(question, rows)[0, 0] * scale.unit - total).max() < 40 * (
        scale.unit + 1e-12
    )


def test_without_weights_by_cell_nothing_changes_and_ones_weigh_nothing(rows_of):
    rows = rows_of()
    for models, mode in itertools.product((0, 7), ("product", "marginal")):
        question = asked(rows, models=models, mode=mode, costs=True)
        plain = GradientSum(
            question.model, 0.8, question.cells, question.cell_costs, loss_weight=0.7
        )
        ones = np.full(question.cells.count, 1.0 / question.cells.per_row)
        weighed = GradientSum(
            question.model,
            0.8,
            question.cells,
            question.cell_costs,
            loss_weight=0.7,
            cell_weights=ones,
        )
        assert (integers(plain, rows) == integers(weighed, rows)).all()


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("costs", [False, True])
def test_one_model_and_many_are_the_same_bit_for_bit(rows_of, classes, costs):
    """70 binary models go side by side; weights by cell of each model, or one for all."""
    rows = rows_of(classes=classes)
    for mode in ("product", "marginal"):
        question = asked(rows, classes, mode, 70 if classes == 2 else 4, costs=costs, weight=0.7)
        scale = question.scale(rows.layout, None)
        together = integers(question, rows)
        shared = GradientSum(
            question.model, 0.8, question.cells, None, "log", 0.7, question.cell_weights[1]
        )
        for m in (0, 1, question.models - 1):
            one = Linear(question.model.array[m], sharpness=1.7)
            given = None if question.cell_costs is None else question.cell_costs[m]
            alone = GradientSum(
                one, 0.8, question.cells, given, "log", 0.7, question.cell_weights[m]
            )
            assert (integers(alone, rows, scale)[0] == together[m]).all()
            alone = GradientSum(
                one, 0.8, question.cells, None, "log", 0.7, question.cell_weights[1]
            )
            assert (integers(alone, rows, scale)[0] == integers(shared, rows)[m]).all()


# -- what they differentiate -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("classes", [2, 4, None])
@pytest.mark.parametrize("weights", [False, True])
def test_they_are_gradients_of_weighed_group_losses(rows_of, mode, classes, weights):
    """Central differences of sum_c w_c x group loss, nothing clipped; the gradient's squared loss
    is half the square.

    At a step h they are off by about h^2 and by the grid's 2^-44 over h.
    """
    rows = rows_of(
        n=200, classes=classes or 2, regression=classes is None, weights=weights, far=False
    )
    loss, factor = ("squared", 0.5) if classes is None else ("log", 1.0)
    question = asked(rows, classes or 2, mode, loss=loss, clip=None, size=0.3)
    (gradient,) = Curator(rows, FREE).answer([(question, 0.0)])
    theta, h = question.model.array[0], 1e-4
    moved = np.array(
        [theta + sign * h * e.reshape(theta.shape) for e in np.eye(theta.size) for sign in (1, -1)]
    )
    (losses,) = Curator(rows, FREE).answer(
        [(GroupLosses(Linear(moved, sharpness=1.7), question.cells, loss), 0.0)]
    )
    objective = 0.7 * factor * losses @ question.cell_weights
    slopes = (objective[::2] - objective[1::2]) / (2 * h)
    assert np.abs(slopes - gradient.ravel()).max() < 1e-5 * np.abs(gradient).max()


@pytest.mark.parametrize("promise", [FREE, Promise(math.inf, 0.0, "sensitive_features")], ids=str)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("models", [0, 7])
def test_without_noise_answers_are_exact_and_unclipped(rows_of, promise, classes, models):
    rows = rows_of(classes=classes, far=False)
    for mode, costs in itertools.product(("product", "marginal"), (False, True)):
        question = asked(rows, classes, mode, models, clip=1e-3, costs=costs)
        (answer,) = Curator(rows, promise).answer([(question, 5.0)])
        free = asked(rows, classes, mode, models, clip=None, costs=costs)
        wanted = np.array([whole(free, rows, m) for m in range(free.models)])
        assert np.abs(answer.reshape(wanted.shape) - wanted).max() < 1e-8 * np.abs(wanted).max()


# -- how far one person moves them -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "classes", "kind"),
    pairs(["product", "marginal"], [2, 4, None], KINDS),
)
def test_rows_that_come_go_or_are_replaced_move_them_by_the_clip_and_twice_the_clip(
    mode, classes, kind
):
    rows = pool(classes or 2, regression=classes is None, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    for clip in (1e-3, 2.0):
        if classes is None:
            questions = [
                asked(rows, 2, mode, clip=clip, loss="squared"),
                asked(rows, 2, mode, clip=clip, loss="squared", models=3),
            ]
        else:
            questions = variants(rows, classes, mode, clip)
        for question in questions:
            scale = question.scale(rows.layout, cap)
            assert scale == GradientSum(question.model, clip, loss=question.loss).scale(
                rows.layout, cap
            )
            alone, replaced = (moved * scale.unit for moved in largest_moves(question, scale, rows))
            assert alone <= scale.bound.sensitivity("add-remove")
            assert replaced <= scale.bound.sensitivity("replace-one")
            if clip == 1e-3 and classes != 4:  # residuals of several classes are never opposite
                assert alone >= 0.99 * scale.bound.sensitivity("add-remove")
                assert replaced >= 0.9 * scale.bound.sensitivity("replace-one")


@pytest.mark.parametrize(
    ("mode", "classes", "weights", "clip"),
    pairs(["product", "marginal"], [2, 4, None], [False, True], [None, 0.05, 1.5]),
)
def test_other_sensitive_values_move_them_within_their_bound(mode, classes, weights, clip):
    """The part that is answered exactly moves by nothing, the other by no more than its bound,
    which is reached."""
    rows = pool(classes or 2, regression=classes is None, weights=weights, far=False)
    squared = asked(rows, 2, mode, clip=clip, loss="squared", models=2)
    for question in [squared] if classes is None else variants(rows, classes, mode, clip):
        common, rest = parted_question(question)
        assert "sensitive" not in common.reads
        assert "sensitive" in rest.reads
        (exact, *_), scale = (
            public_scales(common, rows, exact=True),
            public_scales(rest, rows)[-1],
        )
        assert attribute_move(common, exact, rows) == 0.0
        moved, bound = (
            attribute_move(rest, scale, rows) * scale.unit,
            scale.bound.sensitivity("replace-one"),
        )
        assert moved <= bound
        if clip is None:
            assert norms(contributions(rest, scale, rows), 2).max() * scale.unit <= scale.bound.norm
            # of two columns the moves of a vector add up to less
            several = mode == "marginal" and classes == 4
            assert several or moved >= 0.999 * bound or bound < 1e-100
        assert clip is None or bound <= 2 * clip * (1.5 if weights else 1.0) * (1 + 1e-6)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_weights_alone_move_a_row_by_their_range_and_halves_of_it_are_clipped(clip):
    """By hand: |row| |p - y| x the range of the weights (summed over columns), or twice the clip;
    not by their size."""
    rows = Rows.from_arrays(
        np.array([[3.0]]), [1], [["a"], ["x"]], classes=[0, 1], groups=[["a", "b", "c"], ["x", "y"]]
    )
    model, row = Linear(np.zeros(2)), math.sqrt(10.0)
    for mode, weights, span in (
        ("product", [100.0, 101.0, 100.5, 100.0, 100.0, 100.0], 1.0),
        ("product", [-2.0, 0.0, 0.0, 0.0, 0.0, 5.0], 7.0),
        ("marginal", [100.0, 101.0, 100.5, -3.0, -1.0], 3.0),
    ):
        question = GradientSum(model, clip, rows.cells(mode), None, "log", 0.5, np.array(weights))
        curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(0))
        curator.answer([(question, 3.0)])
        (bound,) = PrivacyStatement.of_run(curator).bounds
        assert bound.sensitivity == pytest.approx(
            min(0.5 * 0.5 * row * span, math.inf if clip is None else 2 * clip)
        )
        assert bound.reason == "largest over the public rows and all listed groups"


def test_groups_that_nobody_is_in_count_too(rows_of):
    """All observed rows are in one cell: bound and grid are those of all listed cells."""
    rows = pool(2, far=False)
    (block,) = rows.blocks()

    class OneCell:
        layout = rows.layout

        def blocks(self):
            part = block.take(np.arange(0, block.rows, len(COMBINATIONS)))
            yield RowBlock(part.numbers, part.codes, part.labels, part.sensitive)

    alone = Rows(OneCell())
    for mode in ("product", "marginal"):
        for question in variants(rows, 2, mode, None):
            for part, exact in zip(parted_question(question), (True, False), strict=True):
                assert public_scales(part, alone, exact=exact) == public_scales(
                    part, rows, exact=exact
                )


@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_parts_of_weights_and_their_reach_hold_for_every_row(mode):
    cells = Cells((("a", "b", "c"), ("x", "y")), mode)
    weights = (
        np.random.default_rng(0).normal(size=(5, cells.count)) * 10.0 ** np.arange(5)[:, np.newaxis]
    )
    common, rest = parted(weights, cells)
    ids = cells.ids(np.array(COMBINATIONS).T)
    sums = weights[:, ids].sum(axis=1)
    assert np.allclose(common + rest[:, ids].sum(axis=1), sums, rtol=1e-14)
    for part, total in ((weights, sums), (rest, sums - common)):
        size, spread = weights_reach(part, cells).T
        assert (np.abs(total).max(axis=1) <= size * (1 + 1e-14)).all()
        assert np.allclose(np.ptp(total, axis=1), spread)
    assert np.allclose(2 * weights_reach(rest, cells)[:, 0], weights_reach(rest, cells)[:, 1])


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("costs", [False, True])
def test_with_sensitive_features_alone_protected_the_noise_is_of_the_stated_bound(
    rows_of, mode, costs
):
    """Each coordinate's error over multiplier x bound, 30 releases: standard normal by chi-square,
    false alarms 1e-6."""
    rows = rows_of(far=False)
    question = asked(rows, mode=mode, clip=None, costs=costs)
    curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(5))
    wanted = whole(question, rows)
    errors = np.array([curator.answer([(question, 4.0)])[0] - wanted for _ in range(30)])
    (bound,) = PrivacyStatement.of_run(curator).bounds
    assert {type(event) for event in curator.log.events} == {Gaussian}
    count = errors.size
    assert abs((errors**2).sum() / (4.0 * bound.sensitivity) ** 2 - count) < 5 * math.sqrt(
        2 * count
    )


def test_equal_weights_read_no_group_in_effect(rows_of):
    """No noise, though the event is counted; a Poisson batch is one for both parts."""
    rows = rows_of(far=False)
    plain = GradientSum(Linear(np.linspace(-1, 1, WIDTH)))
    equal = GradientSum(plain.model, 0.1, rows.cells(), cell_weights=np.full(6, -1.5))
    for batch, events in ((None, (Gaussian(3.0),)), (Poisson(0.3), None)):
        curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(2))
        given = {} if batch is None else {"batch": batch}
        answer, alone = curator.answer([(equal, 3.0), (plain, 0.0)], **given)
        assert np.allclose(answer, -1.5 * alone, rtol=1e-9)
        assert events is None or curator.log.events == events
        assert curator.log.events == (curator.describe([(equal, 3.0), (plain, 0.0)], **given),)


def test_what_reads_groups_is_said(rows_of):
    rows = rows_of()
    question = asked(rows)
    assert question.reads == {"features", "label", "sensitive"}
    alone = GradientSum(question.model, 0.8, cell_weights=[-2.0])
    assert alone.reads == {"features", "label"}
    curator = Curator(rows, SENSITIVE)
    twice, once = curator.answer([(alone, 0.0), (GradientSum(question.model), 0.0)])
    assert np.allclose(twice, -2.0 * once, rtol=1e-9)
    assert not curator.log.entries
    weights = np.ones(6)
    kept = GradientSum(question.model, 0.8, question.cells, cell_weights=weights)
    weights[:] = 9.0
    assert (kept.cell_weights == 1.0).all()
    with pytest.raises(ValueError, match="read-only"):
        kept.cell_weights[:] = 0.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cell_weights": np.ones(5)}, "cell_weights"),
        ({"cell_weights": np.ones((2, 6))}, "cell_weights"),
        ({"cell_weights": 1.0}, "cell_weights"),
        ({"cell_weights": ["a"] * 6}, "cell_weights"),
        ({"cell_weights": [math.nan] + [1.0] * 5}, "NaN, inf"),
        ({"cell_weights": [math.inf] + [1.0] * 5}, "NaN, inf"),
        ({"cell_weights": [1e308] * 6}, "sum is finite"),
        ({"cell_weights": np.ones(6), "loss": "none"}, "a loss to weigh"),
    ],
)
def test_weights_that_are_none_are_refused(rows_of, given, message):
    with pytest.raises(InputError, match=message):
        GradientSum(Linear(np.zeros(WIDTH)), 1.0, rows_of().cells(), **given).shape(
            rows_of().layout
        )


@pytest.mark.parametrize("promise", [FREE, SENSITIVE], ids=str)
@pytest.mark.parametrize("costs", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_contributions_that_overflow_are_refused_before_they_are_charged(
    rows_of, promise, costs, classes
):
    rows = rows_of(classes=classes)
    question = asked(rows, classes, clip=None, costs=costs, weight=1e200)
    heavy = question.at(cell_weights=1e150 * question.cell_weights)
    curator = Curator(rows, promise)
    with pytest.raises(InputError, match="overflow"):
        curator.answer([(heavy, 3.0)])
    assert not curator.log.entries


def test_a_regression_has_no_costs_beside_its_weights(rows_of):
    rows = rows_of(regression=True)
    question = asked(rows, loss="squared", costs=True)
    with pytest.raises(InputError, match="costs of classes"):
        Curator(rows, FREE).answer([(question, 3.0)])
