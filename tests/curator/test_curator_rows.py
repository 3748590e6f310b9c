"""Rows are checked when they are taken in; nothing that a kernel cannot bear gets past."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import plain_totals as reference
import pytest
import scipy.sparse

from fairveil import Additive
from fairveil.core.passes import totals
from fairveil.curator import (
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    NumberMoments,
    RowFunction,
    Rows,
)
from fairveil.data import encode
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.estimators.coding import SchemaCoding
from fairveil.estimators.reading import Coded, ReadOptions, beside, read
from fairveil.estimators.wrapped import Groupless
from fairveil.facts import Category, Cells, Number, RowBlock, RowLayout, Schema
from fairveil.privacy import Promise


class Source:
    """One block, as it is."""

    def __init__(self, layout, **block):
        self.layout, self._block = layout, block

    def blocks(self):
        yield RowBlock(**self._block)


GOOD = {
    "numbers": np.zeros((2, 4)),
    "codes": np.array([[0, 1, 2, 0]], np.uint8),
    "labels": np.array([0, 1, 0, 1], np.int32),
    "sensitive": np.array([[0, 1, 1, 0]], np.uint16),
    "weights": np.ones(4),
}
LAYOUT = RowLayout(2, (3,), (0, 1), (("f", "m"),), ("sex",))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"numbers": np.full((2, 4), np.nan)}, "numbers"),
        ({"numbers": np.full((2, 4), np.inf)}, "numbers"),
        ({"numbers": np.zeros((3, 4))}, "2 numbers"),
        ({"numbers": np.zeros((2, 5))}, "4 rows"),
        ({"codes": np.array([[0, 1, 3, 0]], np.uint8)}, "codes"),
        ({"codes": np.array([[0, 1, -1, 0]], np.int32)}, "codes"),
        ({"codes": np.zeros((2, 4), np.uint8)}, "coded features"),
        ({"codes": np.zeros((0, 4), np.uint8)}, "coded features"),
        ({"numbers": np.zeros(4)}, "numbers"),
        ({"weights": np.ones((2, 2))}, "weights"),
        ({"labels": np.array([0, 1, 2, 0], np.int32)}, "labels"),
        ({"labels": np.array([0, 1, 0], np.int32)}, "4 labels"),
        ({"sensitive": np.array([[0, 1, 2, 0]], np.uint16)}, "sensitive"),
        ({"sensitive": np.zeros((2, 4), np.uint16)}, "sensitive columns"),
        ({"sensitive": None}, "sensitive columns"),
        ({"sensitive": np.zeros((1, 5), np.uint16)}, "rows of sensitive"),
        ({"weights": np.array([1.0, 1.0, -1.0, 1.0])}, "weights"),
        ({"weights": np.array([1.0, 1.0, np.nan, 1.0])}, "weights"),
        ({"weights": np.ones(3)}, "4 weights"),
        ({"numbers": scipy.sparse.csr_array(np.zeros((4, 3)))}, "2 numbers"),
        ({"numbers": scipy.sparse.csr_array(np.full((4, 2), np.inf))}, "numbers"),
    ],
)
def test_what_a_kernel_cannot_bear_is_refused(change, message):
    Rows(Source(LAYOUT, **GOOD))
    with pytest.raises(InputError, match=message):
        Rows(Source(LAYOUT, **{**GOOD, **change}))


def test_a_stream_is_checked_at_each_pass():
    block = {**GOOD, "codes": GOOD["codes"].copy()}
    rows = Rows(Source(LAYOUT, **block), in_memory=False)
    block["codes"][0, 0] = 200
    with pytest.raises(PrivacyError, match="first pass") as shown:
        list(rows.blocks())
    assert "200" not in str(shown.value)
    assert shown.value.__context__ is None or shown.value.__suppress_context__


class Changing(Source):
    """A source whose later passes give other blocks."""

    def __init__(self, layout, passes):
        self.layout, self._passes = layout, iter(passes)

    def blocks(self):
        yield from next(self._passes)


def test_a_stream_that_changes_its_shape_is_refused():
    one = [RowBlock(**GOOD)]
    fewer = [RowBlock(**{name: value[..., :3] for name, value in GOOD.items()})]
    unweighted = [RowBlock(**{**GOOD, "weights": None})]
    unlabelled = [RowBlock(**{**GOOD, "labels": None})]
    no_number = [RowBlock(**{**GOOD, "weights": np.array(["secret 42"] * 4)})]

    def breaks():
        yield from ()
        raise KeyError("secret 42")

    for other in (one * 2, [], fewer, unweighted, unlabelled, no_number, breaks()):
        rows = Rows(Changing(LAYOUT, [one, other]), in_memory=False)
        with pytest.raises(PrivacyError, match="first pass") as shown:
            list(rows.blocks())
        assert "42" not in str(shown.value)
        assert shown.value.__suppress_context__


def test_weights_in_some_blocks_only_are_refused():
    blocks = [RowBlock(**GOOD), RowBlock(**{**GOOD, "weights": None})]
    with pytest.raises(InputError, match="in all blocks or in none"):
        Rows(Changing(LAYOUT, [blocks]))


def sparse(data, indices, indptr, shape=(4, 2)):
    matrix = scipy.sparse.csr_array(shape)
    matrix.data, matrix.indices, matrix.indptr = (
        np.array(data, float),
        np.array(indices),
        np.array(indptr),
    )
    return matrix


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 1, 50_000_000, 0], [0, 1, 2, 3, 4]),
        ([0, 1, -7, 0], [0, 1, 2, 3, 4]),
        ([0, 1, 0, 0], [0, 1, 2, 3, 400]),
        ([0, 1, 0, 0], [0, 3, 2, 3, 4]),
        ([0, 1, 0, 0], [0, 1, 2, 4]),
        ([0, 1, 0, 0], [1, 1, 2, 3, 4]),
    ],
)
def test_sparse_arrays_that_point_outside_are_refused(indices, indptr):
    matrix = sparse([1.0, 2.0, 3.0, 4.0], indices, indptr)
    matrix.has_canonical_format = True  # scipy's own word for it is not enough
    with pytest.raises(InputError, match="CSR"):
        Rows(Source(LAYOUT, **{**GOOD, "numbers": matrix}))


def test_a_square_csc_array_is_not_read_as_csr():
    with pytest.raises(InputError, match="CSR"):
        Rows(Source(LAYOUT, **{**GOOD, "numbers": scipy.sparse.csc_array(np.eye(4)[:, :2])}))


def test_sparse_columns_that_occur_twice_count_once_and_are_sorted():
    """A row's norm is that of its sum: fifty entries of one column in a row do not count with fifty
    clips."""
    twice = sparse([1.0] * 50 + [1.0, 2.0], [0] * 50 + [1, 0], [0, 50, 52, 52, 52])
    twice.has_canonical_format = True  # it is not
    rows = Rows(Source(LAYOUT, **{**GOOD, "numbers": twice, "weights": None}))
    (block,) = rows.blocks()
    assert block.numbers.tolist() == [[50.0, 2.0, 1.0]]
    assert block.indices.tolist() == [0, 0, 1]
    for question in (
        GradientSum(Linear(np.array([5.0, 1.0, 1.0, 0, 0, 0])), 1.0),
        FeatureSums(None, 1.0),
    ):
        scale = question.scale(rows.layout, None)
        total = totals([(question, [scale])], rows, [block.take(np.array([0]))])[0]
        assert np.linalg.norm(total) * scale.unit <= scale.bound.norm


def test_arrays_of_many_kinds():
    X = np.arange(12).reshape(4, 3)
    for y, classes in (
        (["no", "yes", "no", "no"], ("no", "yes")),
        ([True, False, True, True], (False, True)),
        ([3, 1, 3, 1], (1, 3)),
        ([0.5, 1.5, 0.5, 0.5], (0.5, 1.5)),
        (np.array(["b", "a", "a", "b"], object), ("a", "b")),
    ):
        rows = Rows.from_arrays(X, y, [np.array(["u", "v", "v", "u"])])
        assert rows.layout.classes == classes
        assert rows.read_from_data == ("classes", "groups")
    stated = Rows.from_arrays(
        X, ["a", "a", "a", "a"], [["u"] * 4], classes=["a", "b"], groups=[["u", "v"]]
    )
    assert stated.read_from_data == ()
    assert stated.layout.sensitive == (("u", "v"),)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [0, 1]}, "4 entries"),
        ({"sensitive": [["u"]]}, "4 entries"),
        ({"sample_weight": [1.0]}, "4 entries"),
        ({"y": [0, 1, 2, 1], "classes": [0, 1]}, "one of"),
        ({"sensitive": [["u", "v", "w", "u"]], "groups": [["u", "v"]]}, "one of"),
        ({"sensitive": [["u", "v", "u", "u"]], "groups": [["u", "u"]]}, "distinct"),
        ({"X": np.zeros(4)}, "shape"),
        ({"X": np.array([["a"]] * 4)}, "numbers"),
        ({"X": np.zeros((4, 2), complex)}, "numbers"),
        ({"y": np.zeros((4, 1))}, "one axis"),
        ({"sample_weight": np.ones((2, 4))}, "one number a row"),
        ({"sample_weight": ["a"] * 4}, "one number a row"),
        ({"y": ["a"] * 4, "regression": True}, "one number a row"),
        ({"sensitive": [["u", "v", "w", "u"]], "groups": ["u", "v"]}, "list of at most"),
        ({"sensitive": [["u", None, "w", "u"]]}, "missing ones"),
        ({"y": [0, 1, None, 1]}, "missing ones"),
        ({"y": [0, 1, math.nan, 1]}, "missing ones"),
        ({"classes": [0, 1, 1]}, "distinct classes"),
        ({"codes": np.zeros((4, 1)), "code_sizes": [3]}, "whole numbers"),
        ({"code_sizes": [2.5], "codes": np.zeros((4, 1), int)}, "whole number"),
        ({"X": np.ma.masked_array(np.zeros((4, 2)), mask=True)}, "masked"),
        ({"sensitive": np.array(["u", "v", "w", "u"])}, "one value a row"),
        ({"code_sizes": [3]}, "coded features"),
        ({"max_sample_weight": 0.0}, "max_sample_weight"),
        ({"codes": np.full((4, 1), 7), "code_sizes": [3]}, "codes"),
    ],
)
def test_arrays_that_do_not_fit(options, message):
    options = {"X": np.zeros((4, 2)), "y": [0, 1, 0, 1], **options}
    with pytest.raises(FairveilError, match=message):
        Rows.from_arrays(
            options.pop("X"), options.pop("y"), options.pop("sensitive", ()), **options
        )


def test_weights_are_capped_and_without_a_cap_nothing_is_private():
    X, y = np.zeros((3, 1)), [0, 1, 1]
    rows = Rows.from_arrays(
        X, y, [["a", "b", "b"]], sample_weight=[0.5, 9.0, 1.0], max_sample_weight=2.0
    )
    (counts,) = Curator(rows, Promise(math.inf, 0.0)).answer([(CellCounts(rows.cells()), 0)])
    assert counts.tolist() == [0.5, 3.0]
    free = Rows.from_arrays(
        X, y, [["a", "b", "b"]], sample_weight=[1.0, 9.0, 1.0], max_sample_weight=math.inf
    )
    uncapped = Curator(free, Promise(math.inf, 0.0))
    assert uncapped.answer([(CellCounts(free.cells()), 0)])[0].tolist() == [1.0, 10.0]
    function = RowFunction(lambda block: np.ones((block.rows, 1)), 1, 1.0)
    assert uncapped.answer([(function, 0)])[0].tolist() == pytest.approx([11.0])
    with pytest.raises(PrivacyError, match="max_sample_weight"):
        Curator(free, Promise(1.0, 1e-6))


def test_cells_of_some_columns():
    rows = Rows.from_arrays(
        np.zeros((4, 1)),
        [0, 1, 0, 1],
        [["f", "m", "f", "m"], [1, 1, 2, 2]],
        sensitive_names=["sex", "district"],
    )
    curator = Curator(rows, Promise(math.inf, 0.0))
    for cells, wanted in (
        (rows.cells(), [1, 1, 1, 1]),
        (rows.cells("marginal"), [2, 2, 2, 2]),
        (rows.cells(names=["district"]), [2, 2]),
    ):
        assert curator.answer([(CellCounts(cells), 0)])[0].tolist() == wanted
    with pytest.raises(InputError, match="names among"):
        rows.cells(names=["age"])
    for other in (Cells((("f", "m"),), names=("age",)), Cells((("m", "f"),), names=("sex",))):
        with pytest.raises(InputError, match="cells"):
            curator.answer([(CellCounts(other), 0)])


@pytest.mark.parametrize(
    "change",
    [
        {"codes": np.array([[0.0, 1.7, 2.0, -0.5]])},
        {"codes": np.array([[0, 1, 2, 0]], ">i4")},
        {"codes": np.array([["a", "b", "c", "d"]])},
        {"sensitive": np.array([[0.5, -0.5, 0.5, 0.5]])},
        {"labels": np.array([0.0, 1.0, 0.0, 1.0])},
        {"labels": np.array([0, 1, 0, 1], object)},
        {"weights": np.ones(4, np.longdouble)},
        {"numbers": np.zeros((2, 4), complex)},
        {"numbers": np.zeros((2, 4), int)},
        {"numbers": scipy.sparse.csr_array(np.eye(4)[:, :2].astype(complex))},
    ],
)
def test_kinds_that_the_kernels_do_not_take_are_refused(change):
    with pytest.raises(InputError, match="native"):
        Rows(Source(LAYOUT, **{**GOOD, **change}))


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint64, bool]
)
def test_whole_numbers_of_every_kind_count_alike(kind):
    labels, codes = (
        np.array([0, 1, 0, 1]).astype(kind),
        np.array([[0, 1, 1, 0]]).astype(np.uint8 if kind is bool else kind),
    )
    rows = Rows(Source(LAYOUT, **{**GOOD, "labels": labels, "codes": codes, "weights": None}))
    curator = Curator(rows, Promise(math.inf, 0.0))
    model = Linear(np.array([0.1, 0, 0, 1.0, -1.0, 0]))
    (counts,) = curator.answer([(CellCounts(rows.cells(), by_label=True), 0)])
    assert counts.tolist() == [[1, 1], [1, 1]]
    # every kind is compiled by itself: one stands for the longer kernels
    if kind is not np.uint16:
        return
    losses, gradient = curator.answer([(GroupLosses(model), 0), (GradientSum(model), 0)])
    assert losses.tolist() == [2.0]
    assert np.isfinite(gradient).all()


def test_arrays_changed_afterwards_do_not_reach_the_rows():
    X, codes, y, w = (
        np.zeros((4, 2), order="F"),
        np.zeros((4, 1), np.uint8, order="F"),
        np.array([0, 1, 0, 1]),
        np.ones(4),
    )
    rows = Rows.from_arrays(X, y, codes=codes, code_sizes=[3], sample_weight=w)
    X[:], codes[:], y[:], w[:] = math.nan, 250, 7, -1.0
    (block,) = rows.blocks()
    assert (block.numbers == 0).all()
    assert (block.codes == 0).all()
    assert block.labels.tolist() == [0, 1, 0, 1]
    assert (block.weights == 1).all()


def test_no_rows_and_one_row():
    for n in (0, 1):
        rows = Rows.from_arrays(
            np.zeros((n, 2)), np.zeros(n, int), [["a"] * n], classes=[0, 1], groups=[["a", "b"]]
        )
        (counts,) = Curator(rows, Promise(math.inf, 0.0)).answer(
            [(CellCounts(rows.cells(), by_label=True), 0)]
        )
        assert counts.sum() == n
        assert counts.shape == (2, 2)


@pytest.mark.parametrize("sparse", [False, True])
def test_number_moments_are_the_sums_of_numbers_and_squares(rows_of, sparse):
    rows = rows_of(3, far=False, sparse=sparse)
    (found,) = Curator(rows, Promise(math.inf, 1e-6)).answer([(NumberMoments(), 0.0)])
    block = next(rows.blocks())
    x = block.numbers if not sparse else reference.dense(block)[:, 1:4].T
    assert np.allclose(found, [x.sum(axis=1), (x**2).sum(axis=1)])


@pytest.mark.parametrize("in_memory", [True, False])
def test_rescaled_numbers_are_mapped_inside_and_bounds_hold_in_the_new_units(in_memory):
    rng = np.random.default_rng(0)
    source = Source(
        RowLayout(2, (), classes=(0, 1)),
        numbers=rng.uniform(-1, 1, (2, 50)),
        codes=np.empty((0, 50), np.uint8),
        labels=rng.integers(0, 2, 50),
    )
    curator = Curator(Rows(source, in_memory=in_memory), Promise(math.inf, 1e-6))
    before = curator.answer([(NumberMoments(), 0.0)])[0]
    curator.rescale([2.0, 0.5], [1.0, -3.0])
    after = curator.answer([(NumberMoments(), 0.0)])[0]
    assert np.allclose(after[0], before[0] * [2.0, 0.5] + 50 * np.array([1.0, -3.0]))
    noisy = Curator(Rows(source), Promise(1.0, 1e-6))
    noisy.rescale([1e6, 1e6], [0.0, 0.0])
    (sums,) = noisy.answer([(GradientSum(Linear(np.zeros(3)), 1.0), 200.0)])
    # fifty rows at the clip, and noise for one row of norm 1
    assert np.abs(sums).max() < 200 * 8 + 50
    for scale in ([0.0, 1.0], [math.nan, 1.0], [1.0]):
        with pytest.raises(InputError, match="rescale"):
            noisy.rescale(scale, [0.0, 0.0])


class Passes:
    """A source whose passes may differ: each pass takes the next block of numbers and labels, the
    last one from then on."""

    layout = RowLayout(1, (), classes=(0, 1))

    def __init__(self, *passes):
        self.passes, self.read = passes, 0

    def blocks(self):
        numbers, labels = self.passes[min(self.read, len(self.passes) - 1)]
        self.read += 1
        yield RowBlock(
            numbers, np.empty((0, len(labels)), np.uint8), labels=np.asarray(labels, np.int32)
        )


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_no_row_makes_rescaling_fail_and_what_leaves_the_range_is_put_at_its_end(kind, in_memory):
    """After a release an error, or a warning, that depends on one row would tell of it."""
    most = np.finfo(kind).max
    numbers = np.array([[1.0, -2.0, most, -most, most / 4]], kind)
    rows = Rows(Passes((numbers, [0, 1, 0, 1, 0])), in_memory=in_memory)
    curator = Curator(rows, Promise(1.0, 1e-6))
    curator.answer([(NumberMoments(2.0), 50.0)])
    curator.rescale([8.0], [1.0])
    (block,) = curator._rows.blocks()
    assert block.numbers.dtype == kind
    assert block.numbers.tolist() == [[9.0, -15.0, most, -most, most]]
    curator.rescale([1e300], [-1e308])
    curator.answer([(NumberMoments(2.0), 50.0)])
    (block,) = curator._rows.blocks()
    assert np.isfinite(block.numbers).all()
    assert (np.abs(block.numbers[0, 2:]) == most).all()


@pytest.mark.parametrize("in_memory", [True, False])
def test_sparse_rows_are_not_rescaled_whatever_they_hold(in_memory):
    """Known from how the table is stored: square ones too, and before anything is computed from a
    value."""
    for numbers in (np.diag([1.0, 2.0, 3.0]), np.eye(7, 3), np.zeros((0, 3))):
        n = len(numbers)
        source = Source(
            RowLayout(3, (), classes=(0, 1)),
            numbers=scipy.sparse.csr_array(numbers),
            codes=np.empty((0, n), np.uint8),
            labels=np.zeros(n, np.int32),
        )
        rows = Rows(source, in_memory=in_memory)
        assert rows.sparse
        curator = Curator(rows, Promise(1.0, 1e-6))
        with pytest.raises(
            InputError, match="rows to rescale: expected dense numbers, got 'sparse ones'"
        ):
            curator.rescale([2.0, 3.0, 4.0], [0.0, 0.0, 0.0])
        assert curator.scalings == ()


def test_rescaling_reads_no_source_again_and_a_changed_one_shows_no_value():
    good = (np.ones((1, 5)), [0, 1, 0, 1, 0])
    for other in (
        (np.ones((1, 5)), [1234567] * 5),
        (np.ones((1, 8)), [0] * 8),
        (np.full((1, 5), np.nan), [0] * 5),
        (scipy.sparse.csr_array(np.ones((5, 1))), [0] * 5),
    ):
        source = Passes(good, other)
        curator = Curator(Rows(source, in_memory=False), Promise(1.0, 1e-6))
        curator.rescale([2.0], [0.0])
        assert source.read == 1
        with pytest.raises(
            PrivacyError,
            match="a streamed source: expected the rows of the first pass, got 'other rows'",
        ):
            curator.answer([(NumberMoments(2.0), 50.0)])
    source = Passes(good, (np.full((1, 5), 7.0), [0] * 5))
    kept = Curator(Rows(source), Promise(math.inf, 0.0))
    kept.rescale([2.0], [1.0])
    assert source.read == 1
    assert kept.answer([(NumberMoments(), 0.0)])[0].tolist() == [[15.0], [45.0]]


@pytest.mark.parametrize("in_memory", [True, False])
def test_rescalings_follow_one_another_and_are_public(in_memory):
    rows = Rows(
        Passes((np.array([[0.25, -0.5]]), [0, 1])), in_memory=in_memory, max_sample_weight=2.0
    )
    curator = Curator(rows, Promise(math.inf, 0.0))
    scale = np.array([4.0])
    curator.rescale(scale, [1.0])
    curator.rescale([-0.5 + 1.0], [3.0])
    scale[:] = 9.0
    assert [(a.tolist(), b.tolist()) for a, b in curator.scalings] == [
        ([4.0], [1.0]),
        ([0.5], [3.0]),
    ]
    with pytest.raises(ValueError, match="read-only"):
        curator.scalings[0][0][0] = 2.0
    (block,) = curator._rows.blocks()
    assert block.numbers.tolist() == [[4.0, 2.5]]
    (before,) = rows.blocks()
    assert before.numbers.tolist() == [[0.25, -0.5]]
    for name in (
        "exact_count",
        "weighted",
        "labelled",
        "max_sample_weight",
        "largest_weight",
        "layout",
        "read_from_data",
    ):
        assert getattr(curator._rows, name) == getattr(rows, name)


def test_maxima_over_public_rows_are_found_anew_after_rescaling():
    """What one model's exact answers learnt of the largest row must not serve for rescaled ones:
    integers would overflow."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (200, 2)), rng.integers(0, 2, 200)
    promise = Promise(1.0, 1e-6, "sensitive_features")
    curator, model = Curator(Rows.from_arrays(X, y, classes=(0, 1)), promise), Linear(np.zeros(3))
    curator.answer([(GradientSum(model), 0.0)])
    curator.rescale([1e9, 1e9], [0.0, 0.0])
    (found,) = curator.answer([(GradientSum(model), 0.0)])
    rows = np.column_stack([np.ones(200), X * 1e9])
    assert np.allclose(found[0], (0.5 - y) @ rows, rtol=1e-9, atol=1e-3)


SHARED = Schema(
    {
        "age": Number(0, 100),
        "job": Category(("none", "some")),
        "sex": Category(("f", "m")),
        "pay": Number(0, 10),
    },
    target="pay",
    sensitive=("sex", "job"),
)


def coded_ways(tmp_path):
    """Sources of rows whose features hold a sensitive column, by each way in which they are
    made."""
    rng = np.random.default_rng(0)
    table = {
        "age": rng.uniform(0, 100, 40),
        "job": rng.choice(["none", "some"], 40),
        "sex": rng.choice(["f", "m"], 40),
        "pay": rng.uniform(0, 10, 40),
    }
    memory = encode(table, SHARED, sensitive_as_feature=True)
    store = encode(table, SHARED, tmp_path / "rows.store", sensitive_as_feature=True)
    coding = SchemaCoding(memory.encoding)
    steps = Additive().shapes(coding, 40)
    numbered = replace(memory.layout, numbers=2)
    one = replace(memory.layout, sensitive=(("f", "m"),), sensitive_names=("sex",))
    ways = ReadOptions(sensitive_as_feature=True)
    as_it_comes = read(table, table["pay"] > 5, ["sex"], None, ways)
    blocks = list(memory.blocks())
    return {
        "coded": Rows(memory),
        "stored": Rows(store),
        "chosen": Rows(store.chosen(np.arange(0, 40, 2))),
        "streamed": Rows(memory, in_memory=False),
        "steps": Rows(Coded(steps.layout(memory.layout), list(map(steps.apply, blocks)))),
        "target as number": Rows(Coded(numbered, list(map(beside, blocks)))),
        "of one column": Rows(Coded(one, [replace(b, sensitive=b.sensitive[:1]) for b in blocks])),
        "without groups": Rows(Groupless(memory)),
        "without a schema": as_it_comes.rows,
    }


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_sensitive_columns_are_no_public_features_however_rows_were_coded(tmp_path, epsilon):
    for way, rows in coded_ways(tmp_path).items():
        with pytest.raises(PrivacyError, match=r"'sex'.*sensitive_as_feature"):
            Curator(rows, Promise(epsilon, 1e-6, "sensitive_features"))
        for neighbours in ("add-remove", "replace-one"):
            curator = Curator(rows, Promise(epsilon, 1e-6, "records", neighbours))
            if math.isfinite(epsilon):
                with pytest.raises(PrivacyError):
                    curator.answer([(GramMatrices(None, clip=1.0), 0.0)])
            assert not curator.log, way
