"""One-hot columns of numbers are read as codes by passes that repeat, and no bit changes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fairveil.core.passes import Passes
from fairveil.core.rows import WORTH_CODING, one_hot
from fairveil.core.sums import PANEL_FROM_FEW, Run
from fairveil.curator import GradientSum, Linear, PredictionHistogram, Rows

SIZES = (3, 16, 2, 200)
NONE = np.empty(0, np.int32)


def table(n, *, kind="float64", numbers=3, seed=0):
    """Rows of numbers of any size, some 0, and then one-hot columns."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, numbers)) * 10.0 ** rng.integers(-3, 4, (n, numbers))
    values[rng.random(values.shape) < 0.2] = 0.0
    places = [np.eye(size)[rng.integers(0, size, n)] for size in SIZES]
    return np.hstack([values, *places]).astype(kind)


def totals_of(rows, *, classes=2, again=0, seed=1, threads=None):
    """Sums of the last of some passes, and the blocks."""
    rng, cells = np.random.default_rng(seed), rows.cells()
    shape = (1 + rows.layout.width,) if classes == 2 else (classes, 1 + rows.layout.width)
    model = Linear(rng.normal(size=shape))
    gradient = GradientSum(model, 0.7, cells, rng.normal(size=(cells.count, 1, classes)))
    questions = [gradient, PredictionHistogram(model, cells)]
    passes = Passes([(one, [one.scale(rows.layout, None)]) for one in questions], rows)
    for _ in range(again):
        passes.run(questions, rows.blocks(), threads)
    return passes.run(questions, rows.blocks(), threads), list(rows.blocks())


def rows_of(X, classes=2):
    rng = np.random.default_rng(2)
    y, groups = rng.integers(0, classes, X.shape[0]), rng.integers(0, 3, X.shape[0])
    return Rows.from_arrays(X, y, [groups], classes=range(classes), groups=[range(3)])


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("classes", "kind", "numbers"), [(2, "float64", 3), (3, "float32", 3), (2, "float64", 0)]
)
def test_guarantee_1_no_bit_of_a_pass_changes(form, classes, kind, numbers):
    X = form(table(5_003, kind=kind, numbers=numbers))
    first, blocks = totals_of(rows_of(X, classes), classes=classes)
    assert all(block.repeats.coded is None for block in blocks)
    for threads in (1, 3):
        later, blocks = totals_of(
            rows_of(X, classes), classes=classes, again=WORTH_CODING, threads=threads
        )
        assert all(block.repeats.coded is not None for block in blocks)
        for one, other in zip(first, later, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_guarantee_1_squares_are_added_up_as_the_kernels_do(form):
    """In another order about one row in ten has another last bit."""
    rows = rows_of(form(table(5_003)))
    (block,) = rows.blocks()
    fixed = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets)
    found = one_hot(*fixed[:3], rows.layout.numbers)
    none = np.zeros((1, 1 + rows.layout.width))
    _, squares = Run(block, rows.offsets, 0, 5_003).scores(none, apart=True)
    np.testing.assert_array_equal(found.sizes, squares)
    other = 1.0 + len(found.codes) + (found.numbers**2).sum(axis=0)
    assert (other != squares).any()


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, scipy.sparse.csr_array])
def test_rows_are_the_numbers_as_they_came(form):
    X = table(9_001)
    numbers = form(X)
    if hasattr(numbers, "indptr"):
        numbers.data[np.flatnonzero(numbers.indices < 3)[:9]] = 0.0  # zeros may be stored
        X, parts = numbers.toarray(), (numbers.data[np.newaxis], numbers.indptr, numbers.indices)
    else:
        parts = (numbers.T, NONE, NONE)
    found = one_hot(*parts, X.shape[1])
    back = np.zeros(X.shape)
    back[:, : len(found.numbers)] = found.numbers.T
    for line, first in zip(found.codes, found.offsets, strict=True):
        back[np.arange(len(X)), first - 1 + line] = 1.0
    np.testing.assert_array_equal(back, X)
    coded = found.numbers.nbytes + found.codes.nbytes + found.sizes.nbytes
    assert coded <= sum(part.nbytes for part in parts)
    np.testing.assert_allclose(found.sizes, 1.0 + (X**2).sum(axis=1), rtol=1e-12)


def with_two(X):
    X[4_999, -3:] = 1.0
    return X


def with_none(X):
    X[17, 3:6] = 0.0
    return X


def with_half(X):
    X[4_000, -1] = 0.5
    return X


def with_a_flag(X):
    return np.hstack([X, np.arange(len(X))[:, np.newaxis] % 2])


def too_wide(X):
    places = np.arange(len(X)) % 300
    return np.hstack([X[:, :3], np.eye(300)[places]])


@pytest.mark.parametrize("change", [with_two, with_none, with_half, with_a_flag, too_wide])
@pytest.mark.parametrize("sparse", [False, True])
def test_guarantee_2_rows_of_another_form_stay_as_they_are(change, sparse):
    X = change(table(5_000))
    if not sparse:
        assert one_hot(X.T, NONE, NONE, X.shape[1]) is None
        return
    csr = scipy.sparse.csr_array(X)
    assert one_hot(csr.data[np.newaxis], csr.indptr, csr.indices, X.shape[1]) is None


def test_guarantee_2_wide_sparse_numbers_are_not_made_dense():
    values = scipy.sparse.random(500, 1_000, density=0.01, random_state=0, format="csr")
    X = scipy.sparse.csr_array(scipy.sparse.hstack([values, np.eye(4)[np.arange(500) % 4]]))
    assert one_hot(X.data[np.newaxis], X.indptr, X.indices, X.shape[1]) is None


def test_blocks_that_lie_on_the_disk_have_no_second_copy():
    rows = rows_of(table(600))
    for block in rows.blocks():
        block.is_mapped = True
    _, blocks = totals_of(rows, again=WORTH_CODING + 2)
    assert all(block.repeats.coded is None for block in blocks)


def test_models_side_by_side_read_the_numbers_as_they_came():
    rows = rows_of(table(600))
    question = GradientSum(Linear(np.zeros((PANEL_FROM_FEW, 1, 1 + rows.layout.width))), 1.0)
    passes = Passes([(question, [question.scale(rows.layout, None)])], rows)
    for _ in range(WORTH_CODING + 2):
        passes.run([question], rows.blocks())
    assert all(block.repeats.passes == 0 for block in rows.blocks())
