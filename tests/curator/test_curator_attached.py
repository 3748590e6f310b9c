"""Models made elsewhere, scored inside."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.curator import AttachedHistogram, AttachedLosses, Curator
from fairveil.errors import InputError
from fairveil.privacy import NoiseSource, Promise

NOT_PRIVATE = Promise(math.inf, 0.0)


def by_code(block):
    return (block.codes[0] % 3).astype(int)


def probabilities(block):
    p = np.column_stack([block.codes[0] + 1.0, np.ones(block.rows), np.ones(block.rows)])
    return p / p.sum(axis=1, keepdims=True)


def test_histograms_and_losses_of_an_attached_model(rows_of):
    rows = rows_of(classes=3)
    curator = Curator(rows, NOT_PRIVATE)
    cells = rows.cells()
    (block,) = rows.blocks()
    decided = by_code(block)
    attached = curator.attach(by_code, title="codes")
    histogram, losses = curator.answer([(AttachedHistogram(attached, cells, by_label=True), 0), (AttachedLosses(attached), 0)])
    for cell in range(cells.count):
        for label in range(3):
            for k in range(3):
                wanted = ((block.cells(cells)[0] == cell) & (block.labels == label) & (decided == k)).sum()
                assert histogram[cell, label, k] == wanted
    assert losses[0] == (decided != block.labels).sum()
    soft = curator.attach(probabilities)
    (mean,) = curator.answer([(AttachedHistogram(soft), 0)])
    assert np.allclose(mean[0], probabilities(block).sum(axis=0))
    (log,) = curator.answer([(AttachedLosses(soft, loss="log", clip=10.0), 0)])
    assert np.allclose(log[0], -np.log(probabilities(block)[np.arange(700), block.labels]).sum())
    assert curator.statement().user_code == "trusted"


def test_guarantee_1_the_handle_shows_no_prediction(rows_of):
    attached = Curator(rows_of(classes=3), NOT_PRIVATE).attach(by_code)
    assert not hasattr(attached, "__dict__")
    assert {name for name in dir(attached) if not name.startswith("_")} == {"classes", "columns_read", "is_of", "of", "title"}


def test_guarantee_2_whatever_a_model_returns_is_brought_onto_the_simplex(rows_of):
    rows = rows_of(classes=3)

    def wild(block):
        out = np.full((block.rows, 3), 1e9)
        out[::2] = -5.0
        out[::3] = math.inf
        return out

    curator = Curator(rows, NOT_PRIVATE)
    attached = curator.attach(wild)
    (block,) = rows.blocks()
    p = attached.of(block, 0, block.rows)
    assert (p >= 0).all()
    assert (p.sum(axis=1) <= 1 + 1e-12).all()
    curator.close()
    assert curator.trouble()


def test_yes_and_no_are_classes(rows_of):
    curator = Curator(rows_of(), NOT_PRIVATE)
    (counts,) = curator.answer([(AttachedHistogram(curator.attach(lambda block: block.codes[0] > 1)), 0)])
    assert counts.sum() == 700
    assert counts.min() > 0


def test_a_model_that_reads_the_group_moves_its_own_cell_too(rows_of):
    """Noise that differs by cell is then priced with moves inside a cell."""
    rows = rows_of(classes=3)
    curator = Curator(rows, Promise(1.0, 1e-6, protects="sensitive_features"))
    group = curator.attach(lambda block: block.sensitive[0] % 3, columns_read=("features", "sensitive"))
    event = curator.describe([(AttachedHistogram(group, rows.cells(names=["sensitive_1"])), np.array([30.0, 40.0]))])
    assert event.spreads[0] >= math.sqrt(2)


def test_a_model_that_reads_the_group_is_not_free(rows_of):
    rows = rows_of(classes=3)
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
    fair = curator.attach(by_code)
    curator.answer([(AttachedHistogram(fair), 0)])
    assert len(curator.log) == 0
    group = curator.attach(lambda block: block.sensitive[0] % 3, columns_read=("features", "sensitive"))
    curator.answer([(AttachedHistogram(group), 30.0)])
    assert len(curator.log) == 1


def test_class_labels_are_needed(rows_of):
    with pytest.raises(InputError, match="class labels"):
        Curator(rows_of(regression=True), NOT_PRIVATE).attach(by_code)


def test_a_handle_of_another_curator_is_refused(rows_of):
    """Else rows of one curator would leave through the other, with nothing in the first one's log."""
    attached = Curator(rows_of(classes=3), NOT_PRIVATE).attach(by_code)
    other = Curator(rows_of(classes=3, seed=1), NOT_PRIVATE)
    for question in (AttachedHistogram(attached), AttachedLosses(attached)):
        with pytest.raises(InputError, match="handle of this curator"):
            other.answer([(question, 1.0)])
