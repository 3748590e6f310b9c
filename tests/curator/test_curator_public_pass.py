"""A round of descent over public rows in one pass: the bits of several passes, and nothing that
fails after a charge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairveil.curator import Curator, GradientSum, Linear, Poisson, PredictionHistogram, Rows
from fairveil.curator.kernels import linear, public, public_descent
from fairveil.curator.totals.public_pass import PublicPass
from fairveil.curator.totals.reach import reach_of
from fairveil.errors import InputError
from fairveil.facts import RowBlock, RowLayout
from fairveil.privacy import NoiseSource, Promise

ALONE = Promise(1e5, 1e-6, protects="sensitive_features")
WIDTH = 1 + 3 + 4 + 3


def rounds_of(
    rows,
    *,
    decisions="hard",
    sharpness=1.0,
    by_label=True,
    mode="product",
    everybody=False,
    clip=0.7,
):
    """Asks of eight rounds: weights and costs that jump by powers of two, vanish, and come back."""
    rng = np.random.default_rng(5)
    cells = rows.cells(mode)
    for size in (1.0, 1.0, 300.0, 0.0, 0.0, 1e-9, 0.7, 4.0):
        model = Linear(rng.normal(size=WIDTH) * 0.3, sharpness)
        costs = rng.normal(size=(cells.count, 2 if by_label else 1, 2)) * size
        gradient = GradientSum(
            model, clip, cells, costs, loss_weight=np.array([rng.random()]), loss_clip=1.5
        )
        histogram = PredictionHistogram(model, cells, decisions, by_label=by_label)
        measurements = [(gradient, 3.0), (histogram, 4.0)]
        yield measurements + (
            [(PredictionHistogram(model, None, decisions, by_label=by_label), 0.0)]
            if everybody
            else []
        )


def answered(rows, rounds, **settings):
    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(3), **settings)
    found = [curator.answer(measurements) for measurements in rounds]
    return found, curator.log.events, curator.statement().to_dict()


def cut(rows, *places):
    """The same rows in blocks."""
    (block,) = rows.blocks()
    layout = rows.layout

    class Source:
        def __init__(self):
            self.layout: RowLayout = layout

        def blocks(self):
            for a, b in itertools.pairwise((0, *places, block.rows)):
                yield RowBlock(
                    block.numbers[:, a:b],
                    block.codes[:, a:b],
                    block.labels[a:b],
                    block.sensitive[:, a:b],
                )

    return Rows(Source())


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"weights": True},
        {"weights": True, "mode": "marginal", "everybody": True, "clip": None},
        {"decisions": "soft", "everybody": True},
        {
            "decisions": "soft",
            "sharpness": 3.0,
            "mode": "marginal",
            "by_label": False,
            "everybody": True,
        },
        {"mode": "marginal", "clip": None},
        {"sharpness": 0.5, "clip": 1e6},
        {"by_label": False, "everybody": True},
    ],
)
@pytest.mark.parametrize("sparse", [False, True])
def test_guarantee_1_one_pass_gives_the_bits_of_many(rows_of, monkeypatch, settings, sparse):
    settings = dict(settings)
    rows = rows_of(n=1500, sparse=sparse, weights=settings.pop("weights", False))
    assert PublicPass.takes([q for q, _ in next(rounds_of(rows, **settings))], rows)
    found = answered(rows, rounds_of(rows, **settings))
    monkeypatch.setattr(PublicPass, "takes", staticmethod(lambda questions, rows: False))
    wanted = answered(rows, rounds_of(rows, **settings))
    for one, other in zip(found[0], wanted[0], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert found[1:] == wanted[1:]


def test_guarantee_1_neither_blocks_nor_threads_change_a_bit(rows_of):
    rows = rows_of(n=1500)
    whole = answered(rows, rounds_of(rows, decisions="soft", everybody=True))
    for parts, threads in ((rows, 3), (cut(rows, 1, 700), None), (cut(rows, 513), 2)):
        found = answered(parts, rounds_of(parts, decisions="soft", everybody=True), threads=threads)
        for one, other in zip(itertools.chain(*found[0]), itertools.chain(*whole[0]), strict=True):
            np.testing.assert_array_equal(one, other)
        assert found[1:] == whole[1:]


@pytest.mark.parametrize("n", [1, 511, 512, 1300])
@pytest.mark.parametrize("labels", [1, 2])
def test_guarantee_1_the_kernel_adds_and_compares_as_those_apart(rows_of, n, labels):
    rows = rows_of(n=n)
    (block,) = rows.blocks()
    cells, rng = rows.cells(), np.random.default_rng(n)
    coef, costs = rng.normal(size=(1, WIDTH)), rng.normal(size=(cells.count * labels, 1))
    ends = np.array([0, cells.count])
    reach, nothing, none = reach_of(costs, labels, ends), np.empty((0, 0)), np.empty(0)
    head = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets, block.labels)
    fixed = (*head, block.cells(cells))
    by_loss, by_costs = np.zeros((1, WIDTH), np.int64), np.zeros((1, WIDTH), np.int64)
    histogram, moves = np.zeros((cells.count, 1), np.int64), np.zeros(3)
    tail = (by_loss, 1, 1, 1.0, np.zeros((0, 1), np.int64))
    before = (*fixed, none, coef, 0, n)
    linear.descend(*before, 0, 0.4, none, 2.0, nothing, 1, 0.9, 2.0**28, *tail, none)
    tail = (by_costs, 1, 1, 1.0, histogram)
    linear.descend(*before, 3, 0.4, none, 2.0, costs, labels, 0.8, 2.0**30, *tail, none)
    public.largest_moves(
        *head,
        none,
        coef,
        0,
        n,
        3,
        0.4,
        none,
        np.zeros(3),
        2.0,
        costs,
        labels,
        ends,
        reach,
        1e-9,
        moves,
    )
    pair, found, again = (
        np.zeros((WIDTH, 2), np.int64),
        np.zeros(4),
        np.zeros((cells.count, 1), np.int64),
    )
    everybody = np.zeros((1, 1), np.int64)
    head = (
        coef,
        0,
        n,
        0.4,
        0.9,
        2.0**28,
        2.0,
        costs,
        labels,
        0.8,
        2.0**30,
        reach,
        1e-9,
        1,
        1,
        1.0,
        again,
        1,
        1.0,
    )
    public_descent.descend_public(*fixed, none, *head, everybody, pair, found, none)
    np.testing.assert_array_equal(pair.T, np.concatenate([by_loss, by_costs]))
    np.testing.assert_array_equal(again, histogram)
    np.testing.assert_array_equal(found[:3], moves)
    assert everybody.sum() == histogram.sum()


def test_a_round_is_one_pass_unless_its_grid_moved(rows_of, monkeypatch):
    """Twenty rounds whose costs change by powers of two take a pass each, after a second one in the
    first."""
    rows = rows_of(n=600, far=False)
    passes, kernel = [], public_descent.descend_public
    monkeypatch.setattr(
        public_descent, "descend_public", lambda *args: passes.append(1) or kernel(*args)
    )
    cells, model = rows.cells(), Linear(np.full(WIDTH, 0.1))
    costs = np.random.default_rng(0).normal(size=(cells.count, 1, 2))
    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(0))
    for k in range(20):
        gradient = GradientSum(model, None, cells, costs * 2.0**k)
        curator.answer([(gradient, 3.0), (PredictionHistogram(model, cells), 4.0)])
    assert 20 <= len(passes) <= 22


def test_guarantee_2_what_overflows_is_an_error_before_the_charge(rows_of):
    rows = rows_of(n=200)
    cells, model = rows.cells(), Linear(np.full(WIDTH, 1e-8))  # rows far outside do not saturate

    def measurements(cost, model=model):
        table = np.linspace(-cost, cost, cells.count * 2).reshape(cells.count, 1, 2)
        return [
            (GradientSum(model, None, cells, table), 3.0),
            (PredictionHistogram(model, cells), 4.0),
        ]

    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(0))
    curator.answer(measurements(1.0))
    with pytest.raises(InputError, match="finite"):
        curator.answer(measurements(1e306))
    assert len(curator.log) == 1
    assert not curator.has_failed
    assert np.isfinite(curator.answer(measurements(2.0))[0]).all()
    passed = PublicPass([question for question, _ in measurements(1.0)], rows)
    for cost, size, safe in (
        (1.0, 0.1, True),
        (1e306, 0.1, False),
        (1.0, 1e300, False),
        (1e200, 1e200, True),
    ):
        questions = [question for question, _ in measurements(cost, Linear(np.full(WIDTH, size)))]
        assert passed.is_safe(questions) is safe


def test_what_the_pass_does_not_take_goes_the_other_way(rows_of):
    rows = rows_of(n=300)
    cells, model = rows.cells(), Linear(np.zeros(WIDTH))
    gradient = GradientSum(model, 1.0, cells, np.zeros((cells.count, 1, 2)))
    histogram = PredictionHistogram(model, cells)
    assert PublicPass.takes([gradient, histogram], rows)
    other = PredictionHistogram(Linear(np.zeros(WIDTH)), cells)
    for refused in (
        [gradient],
        [histogram, gradient],
        [gradient, other],
        [gradient, histogram, histogram],
    ):
        assert not PublicPass.takes(refused, rows)
    soft = [gradient, PredictionHistogram(model, cells, "soft")]
    assert PublicPass.takes(soft, rows)
    assert not PublicPass.takes(soft, rows_of(n=300, weights=True))
    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(0))
    assert len(curator.answer([(gradient, 3.0), (histogram, 4.0)], Poisson(0.5))) == 2


def test_a_long_row_that_hardly_counts_is_seen_before_the_charge():
    """Its score might overflow, though weight x |row| is small."""
    X = np.array([[0.1, 1e150], [0.2, 0.3], [0.3, 0.1]])
    rows = Rows.from_arrays(
        X, [0, 1, 1], [["a", "b", "a"]], sample_weight=np.array([1e-150, 1.0, 1.0])
    )
    cells = rows.cells()
    for size, safe in ((1.0, True), (1e150, False)):
        model = Linear(np.full(3, size))
        gradient = GradientSum(model, 1.0, cells, np.ones((cells.count, 1, 2)))
        questions = [gradient, PredictionHistogram(model, cells)]
        assert PublicPass.takes(questions, rows)
        assert PublicPass(questions, rows).is_safe(questions) is safe
