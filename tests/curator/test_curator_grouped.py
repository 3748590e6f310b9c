"""Decisions of linear models with an intercept for each group: their histogram, its bound by
enumerated neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from curator_pools import COMBINATIONS, WIDTH, attribute_move, largest_moves, pool

from fairveil.core.events import Gaussian
from fairveil.curator import Curator, GroupedHistogram, Linear, Measurement, describe
from fairveil.curator.pricing import is_free
from fairveil.errors import InputError, PrivacyError
from fairveil.facts import Cells
from fairveil.privacy import NoiseSource, Promise

SENSITIVE = Promise(1.0, 1e-5, "sensitive_features")
MODES = [("product", None), ("product", ["sensitive_0"]), ("marginal", None), (None, None)]


def question_of(rows, classes, mode, names, by_label, seed=0):
    rng = np.random.default_rng(seed)
    outputs = 1 if classes == 2 else classes
    of = rows.cells()
    return GroupedHistogram(
        Linear(rng.normal(size=(outputs, WIDTH))), 3 * rng.normal(size=(of.count, outputs)), of,
        None if mode is None else rows.cells(mode, names), by_label,
    )  # fmt: skip


@pytest.mark.parametrize(("mode", "names"), MODES)
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("kind", [{}, {"weights": True}, {"dtype": np.float32}, {"sparse": True}])
def test_no_neighbour_moves_it_further_than_its_bound(mode, names, classes, kind):
    rows = pool(classes, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    for by_label in (False, True):
        question = question_of(rows, classes, mode, names, by_label)
        for order in (1, 2):
            scale = question.scale(rows.layout, cap, order)
            alone, replaced = largest_moves(question, scale, rows)
            changed = attribute_move(question, scale, rows)
            assert alone * scale.unit <= scale.bound.sensitivity("add-remove") * (1 + 1e-9)
            assert replaced * scale.unit <= scale.bound.sensitivity("replace-one") * (1 + 1e-9)
            assert changed * scale.unit <= scale.bound.sensitivity("replace-one") * (1 + 1e-9)
            if mode == "product" and order == 2 and not kind and by_label and names is None:
                assert alone == 1
                # the well-known bounds, attained
                assert replaced == changed == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_it_counts_what_numpy_counts(rows_of, classes, weights, sparse):
    rows = rows_of(classes=classes, weights=weights, sparse=sparse, far=False)
    for mode in ("product", "marginal", None):
        question = question_of(rows, classes, mode, None, True)
        (answer,) = Curator(rows, Promise(math.inf, 0.0)).answer([(question, 0.0)])
        (block,) = rows.blocks()
        numbers = block.numbers if not sparse else None
        if numbers is None:
            dense = np.zeros((block.rows, 3))
            for i in range(block.rows):
                at = slice(block.indptr[i], block.indptr[i + 1])
                dense[i, block.indices[at]] = np.asarray(block.numbers).ravel()[at]
            numbers = dense.T
        X = np.vstack(
            [
                np.ones(block.rows),
                numbers,
                *(np.eye(s)[block.codes[j]].T for j, s in enumerate((4, 3))),
            ]
        )
        group = rows.cells().ids(block.sensitive)[0]
        scores = question.model.array[0] @ X + question.offsets[group].T
        decided = (scores[0] > 0).astype(int) if classes == 2 else scores.argmax(axis=0)
        w = block.weights if weights else np.ones(block.rows)
        cells = 1 if mode is None else question.cells.count
        wanted = np.zeros((cells, classes, classes))
        for line in block.cells(question.cells):
            np.add.at(wanted, (line, block.labels, decided), w)
        wanted = wanted[..., 1:] if classes == 2 else wanted
        assert np.allclose(np.asarray(answer).reshape(wanted.shape), wanted, atol=1e-6 * block.rows)


def test_it_reads_the_groups_even_where_it_does_not_tell_them_apart(rows_of):
    rows = rows_of()
    question = question_of(rows, 2, None, None, False)
    assert "sensitive" in question.reads
    assert not is_free(question, SENSITIVE)
    curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(0))
    with pytest.raises(PrivacyError):
        curator.answer([(question, 0.0)])
    (answer,) = curator.answer([(question, 5.0)])
    assert answer.shape == (1, 1)
    assert curator.log.events == (Gaussian(5.0),)
    assert describe([Measurement(question, 5.0)], rows.layout, SENSITIVE) == Gaussian(5.0)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_its_noise_has_the_size_that_was_asked(rows_of, protects):
    """400 answers of 6 cells: the mean square within 15 % of (multiplier x bound)^2; false alarms
    below 1e-6."""
    rows = rows_of(n=50)
    question = question_of(rows, 2, "product", None, False)
    promise = Promise(1e9, 1e-5, protects)
    (exact,) = Curator(rows, Promise(math.inf, 0.0)).answer([(question, 0.0)])
    curator = Curator(rows, promise, noise=NoiseSource.seeded(3))
    off = np.array([np.asarray(curator.answer([(question, 30.0)])[0]) - exact for _ in range(400)])
    size = 30.0 * (math.sqrt(2) if protects == "sensitive_features" else 1.0)
    assert (off**2).mean() == pytest.approx(size**2, rel=0.15)


@pytest.mark.parametrize(
    "change",
    [
        {"offsets": np.zeros((5, 1))},
        {"offsets": np.zeros((6, 2))},
        {"offsets": np.full((6, 1), np.nan)},
        {"model": Linear(np.zeros((2, 1, WIDTH)))},
        {"of": Cells((("a", "b", "c"), ("x", "y")), "marginal")},
    ],
)
def test_what_does_not_fit_is_refused(rows_of, change):
    rows = rows_of()
    good = {"model": Linear(np.zeros((1, WIDTH))), "offsets": np.zeros((6, 1)), "of": rows.cells()}
    assert len(COMBINATIONS) == GroupedHistogram(**good).of.count
    with pytest.raises(InputError, match="offsets"):
        GroupedHistogram(**(good | change))


def test_offsets_are_not_changed_from_outside(rows_of):
    offsets = np.zeros((6, 1))
    question = GroupedHistogram(Linear(np.zeros((1, WIDTH))), offsets, rows_of().cells())
    offsets[:] = 1.0
    assert (question.offsets == 0).all()
    with pytest.raises(ValueError, match="read-only"):
        question.offsets[0] = 1.0
