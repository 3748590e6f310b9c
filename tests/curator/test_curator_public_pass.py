"""Rounds of descent over public rows: neither blocks nor threads change a bit, and nothing fails after
a charge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fairveil.curator import Curator, GradientSum, Linear, PredictionHistogram, Rows
from fairveil.errors import InputError
from fairveil.facts import RowBlock, RowLayout
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

ALONE = Promise(1e5, 1e-6, protects="sensitive_features")
WIDTH = 1 + 3 + 4 + 3


def rounds_of(rows, *, decisions="hard", mode="product", clip=0.7):
    """Asks of six rounds: weights and costs that jump by powers of two, vanish, and come back."""
    rng = np.random.default_rng(5)
    cells = rows.cells(mode)
    for size in (1.0, 300.0, 0.0, 1e-9, 0.7, 4.0):
        model = Linear(rng.normal(size=WIDTH) * 0.3, 2.0)
        costs = rng.normal(size=(cells.count, 2, 2)) * size
        pull = {"loss_weight": np.array([rng.random()]), "loss_clip": 1.5}
        yield [
            (GradientSum(model, clip, cells, costs, **pull), 3.0),
            (PredictionHistogram(model, cells, decisions, by_label=True), 4.0),
            (PredictionHistogram(model, None, decisions), 0.0),
        ]


def answered(rows, rounds, **settings):
    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(3), **settings)
    found = [curator.answer(measurements) for measurements in rounds]
    return found, curator.log.events, PrivacyStatement.of_run(curator).to_dict()


def cut(rows, *places):
    """The same rows in blocks."""
    (block,) = rows.blocks()
    layout = rows.layout

    class Source:
        def __init__(self):
            self.layout: RowLayout = layout

        def blocks(self):
            for a, b in itertools.pairwise((0, *places, block.rows)):
                columns = (block.numbers, block.codes)
                numbers, codes = (column[:, a:b] for column in columns)
                yield RowBlock(numbers, codes, block.labels[a:b], block.sensitive[:, a:b])

    return Rows(Source())


@pytest.mark.parametrize(
    "asked",
    [{"decisions": "soft"}, {"mode": "marginal", "clip": None}],
    ids=["soft", "marginal, no clip"],
)
def test_guarantee_1_neither_blocks_nor_threads_change_a_bit(rows_of, asked):
    rows = rows_of(n=1500)
    whole = answered(rows, rounds_of(rows, **asked))
    for parts, threads in ((rows, 3), (cut(rows, 1, 700), None), (cut(rows, 513), 2)):
        found = answered(parts, rounds_of(parts, **asked), threads=threads)
        for one, other in zip(itertools.chain(*found[0]), itertools.chain(*whole[0]), strict=True):
            np.testing.assert_array_equal(one, other)
        assert found[1:] == whole[1:]


def test_guarantee_2_what_overflows_is_an_error_before_the_charge(rows_of):
    rows = rows_of(n=200)
    cells, model = rows.cells(), Linear(np.full(WIDTH, 1e-8))  # rows far outside do not saturate

    def measurements(cost):
        table = np.linspace(-cost, cost, cells.count * 2).reshape(cells.count, 1, 2)
        gradient = GradientSum(model, None, cells, table)
        return [(gradient, 3.0), (PredictionHistogram(model, cells), 4.0)]

    curator = Curator(rows, ALONE, noise=NoiseSource.seeded(0))
    curator.answer(measurements(1.0))
    with pytest.raises(InputError, match="finite"):
        curator.answer(measurements(1e306))
    assert len(curator.log) == 1
    assert not curator.has_failed
    assert np.isfinite(curator.answer(measurements(2.0))[0]).all()


def test_guarantee_2_a_long_row_that_hardly_counts_adds_finite_numbers_or_is_told_before():
    """Its score overflows, though weight x |row| is small."""
    X = np.array([[0.1, 1e150], [0.2, 0.3], [0.3, 0.1]])
    weights = np.array([1e-150, 1.0, 1.0])
    rows = Rows.from_arrays(X, [0, 1, 1], [["a", "b", "a"]], sample_weight=weights)
    cells = rows.cells()
    for size, fails in ((1.0, False), (1e160, True)):
        curator = Curator(rows, ALONE, noise=NoiseSource.seeded(0))
        model = Linear(np.array([0.0, size, -size]))
        gradient = GradientSum(model, 1.0, cells, np.ones((cells.count, 1, 2)))
        asked = [(gradient, 3.0), (PredictionHistogram(model, cells), 4.0)]
        try:
            answers = curator.answer(asked)
        except InputError:
            assert fails
            assert not curator.log
            assert not curator.has_failed
        else:
            assert all(np.isfinite(answer).all() for answer in answers)
