"""The kernels: one fixed sequence of operations a row, integers that no order can change."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.core import kernels as elementary
from fairveil.core.bound import Bound
from fairveil.curator.kernels import linear as kernels
from fairveil.curator.kernels import panel as kernels_panel
from fairveil.curator.kernels import tiles
from fairveil.curator.question import gridded
from fairveil.curator.totals.descent_pass import chunk

SIZES = (8, 16, 7, 14, 6, 5, 41)


def table(n=3001, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(6, n))
    numbers[:, ::50] *= 1e8
    codes = np.stack([rng.integers(0, size, n) for size in SIZES]).astype(np.uint8)
    offsets = 7 + np.cumsum((0, *SIZES))[:-1]
    labels = rng.integers(0, 2, n).astype(np.int32)
    cells = rng.integers(0, 3, (2, n)).astype(np.uint16)
    weights = rng.random(n)
    return (
        numbers,
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        codes,
        offsets,
        labels,
        cells,
        weights,
    )


def one_model(
    data,
    coef,
    start,
    stop,
    sharpness=1.0,
    kind=0,
    costs=None,
    clip=1.0,
    loss=0,
    weight=0.8,
    cell_weights=None,
):
    K = coef.shape[0]
    gradient = np.zeros((K, coef.shape[1]), np.int64)
    histogram = np.zeros((6, K), np.int64)
    costs = np.zeros((0, 0)) if costs is None else costs
    pull = (loss, weight, np.empty(0) if cell_weights is None else cell_weights)
    end = (sharpness, costs, 2, clip, 2.0**30, gradient, kind, 2, 2.0**24, histogram)
    kernels.descend(*data, coef, start, stop, *pull, *end, np.empty(0))
    return gradient, histogram


def panel(
    data,
    coefs,
    start,
    stop,
    loss_weights,
    sharpness=1.0,
    kind=0,
    costs=None,
    clip=1.0,
    loss=0,
    cell_weights=None,
):
    M = coefs.shape[0]
    gradient = np.zeros((coefs.shape[1], M), np.int64)
    histogram = np.zeros((6, M), np.int64)
    costs = np.zeros((0, 0)) if costs is None else costs
    coefs = np.ascontiguousarray(coefs.T)
    steps, counts = np.full(M, 2.0**30), np.full(M, 2.0**24)
    kernels_panel.descend_panel(
        *data,
        coefs,
        start,
        stop,
        loss,
        loss_weights,
        np.empty((0, 0)) if cell_weights is None else cell_weights,
        sharpness,
        costs,
        2,
        clip,
        steps,
        gradient,
        kind,
        2,
        counts,
        histogram,
        64,
    )
    return gradient.T, histogram.T


def permuted(data, order):
    numbers, a, b, codes, offsets, labels, cells, weights = data
    return (
        numbers[:, order].copy(),
        a,
        b,
        codes[:, order].copy(),
        offsets,
        labels[order],
        cells[:, order].copy(),
        weights[order],
    )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(
    ("sharpness", "kind", "clip"), [(1.0, 0, 1.0), (2.5, 0, 0.3), (0.7, 1, math.inf)]
)
def test_guarantee_1_integers_do_not_depend_on_order_or_ranges(
    outputs, weighed, sharpness, kind, clip
):
    data = table()
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(outputs, 1 + 6 + sum(SIZES)))
    costs = rng.normal(size=(6, outputs))
    options = {"sharpness": sharpness, "kind": kind, "clip": clip, "costs": costs}
    options["cell_weights"] = rng.normal(size=3) if weighed else None
    gradient, histogram = one_model(data, coef, 0, 3001, **options)
    again, counts = one_model(permuted(data, rng.permutation(3001)), coef, 0, 3001, **options)
    assert (gradient == again).all()
    assert (histogram == counts).all()
    parts = [
        one_model(data, coef, a, b, **options)
        for a, b in [(0, 1), (1, 700), (700, 2049), (2049, 3001)]
    ]
    assert (gradient == sum(g for g, _ in parts)).all()
    assert (histogram == sum(h for _, h in parts)).all()


@pytest.mark.parametrize(
    ("sharpness", "kind", "loss"), [(1.0, 0, 0), (2.5, 0, 0), (0.7, 1, 0), (1.0, 0, 3), (1.0, 1, 1)]
)
@pytest.mark.parametrize("models", [1, 5, 60])
@pytest.mark.parametrize("weighed", [False, True])
def test_guarantee_1_a_model_alone_and_among_many(sharpness, kind, loss, models, weighed):
    data = table(1003)
    rng = np.random.default_rng(2)
    coefs = rng.normal(size=(models, 1 + 6 + sum(SIZES)))
    costs = rng.normal(size=(6, models)) if loss != 1 else None
    options = {"sharpness": sharpness, "kind": kind, "loss": loss}
    loss_weights = np.linspace(0.8, 0.3, models)
    by_cell = rng.normal(size=(3, models)) if weighed else None
    gradient, histogram = panel(
        data, coefs, 0, 1003, loss_weights, costs=costs, cell_weights=by_cell, **options
    )
    for m in {0, models // 2, models - 1}:
        own = None if costs is None else costs[:, m : m + 1].copy()
        pull = {
            "weight": loss_weights[m],
            "cell_weights": by_cell[:, m].copy() if weighed else None,
        }
        alone, counts = one_model(data, coefs[m : m + 1], 0, 1003, costs=own, **pull, **options)
        assert (gradient[m] == alone[0]).all()
        assert (histogram[m] == counts[:, 0]).all()


def test_panel_sums_survive_the_move_from_floats_to_integers():
    """The tests above move sums every 64 rows; a chunk never holds more than float64 adds
    exactly."""
    sums = np.full((1, 2), 2.0**51 - 1)
    out = np.full((1, 2), 2**60, np.int64)
    kernels_panel.flush(sums, out)
    assert (out == 2**60 + 2**51 - 1).all()
    assert (sums == 0).all()
    for norm, bits in ((1.0, 30), (0.7, 30), (3.0, 44), (1e300, 44), (1.0, 10)):
        scale = gridded(Bound(norm, norm), 1, bits)
        assert chunk([scale]) * scale.bound.norm / scale.unit <= 2**53
        assert chunk([scale]) >= kernels_panel.TOGETHER


def fixed_sequence_probability(numbers, codes, offsets, coef, fused=False, library_exp=False):
    """What `kernels` computes for one row, operation by operation, in Python's own IEEE doubles."""
    fma = (
        (lambda a, b, c: float(np.longdouble(a) * np.longdouble(b) + np.longdouble(c)))
        if fused
        else lambda a, b, c: a * b + c
    )
    z = coef[0]
    for j, x in enumerate(numbers):
        z = fma(coef[1 + j], x, z)
    for first, code in zip(offsets, codes, strict=True):
        z = z + coef[first + code]
    y = abs(z * 1.0)
    x = -(y if y < elementary.FARTHEST else elementary.FARTHEST)
    if library_exp:
        e = math.exp(x)
    else:
        n = (x * elementary.LOG2E + elementary.MAGIC) - elementary.MAGIC
        r = (x - n * elementary.LN2_HIGH) - n * elementary.LN2_LOW
        s = 1.6059043836821613e-10
        for c in (
            2.08767569878681e-09,
            2.505210838544172e-08,
            2.755731922398589e-07,
            2.7557319223985893e-06,
            2.48015873015873e-05,
            0.0001984126984126984,
            0.001388888888888889,
            0.008333333333333333,
            0.041666666666666664,
            0.16666666666666666,
            0.5,
            1.0,
            1.0,
        ):
            s = fma(s, r, c)
        e = math.ldexp(s, int(n))
    return (1.0 if z >= 0 else e) / (1.0 + e)


def grid_predictions(data, coef, rows):
    """The kernel's own probabilities, rounded to 2^-51: each row in a cell of its own."""
    numbers, a, b, codes, offsets, labels, _, _ = data
    histogram = np.zeros((rows, 1), np.int64)
    cells = np.arange(rows, dtype=np.uint16)[np.newaxis]
    nothing = np.zeros((1, 0), np.int64)
    tail = (
        0,
        rows,
        0,
        1.0,
        np.empty(0),
        1.0,
        np.zeros((0, 0)),
        1,
        1.0,
        1.0,
        nothing,
        0,
        1,
        2.0**51,
        histogram,
        np.empty(0),
    )
    kernels.descend(numbers, a, b, codes, offsets, labels, cells, np.empty(0), coef, *tail)
    return histogram[:, 0]


@pytest.mark.parametrize("mutation", ["none", "fused multiply-add", "the library's exp"])
def test_each_row_is_one_fixed_sequence_of_operations(mutation):
    """Bit for bit the sequence that the docstring states; with the library's exp or fused
    operations it is not."""
    rows = 6000
    data = table(rows)
    data[0][:, ::50] /= 1e8
    coef = np.random.default_rng(3).normal(size=(1, 1 + 6 + sum(SIZES)))
    found = grid_predictions(data, coef, rows)
    options = {
        "fused": mutation == "fused multiply-add",
        "library_exp": mutation == "the library's exp",
    }
    wanted = [
        round(
            fixed_sequence_probability(
                data[0][:, i].tolist(), data[3][:, i].tolist(), data[4], coef[0].tolist(), **options
            )
            * 2.0**51
        )
        for i in range(rows)
    ]
    differing = int((found != np.array(wanted)).sum())
    assert differing == 0 if mutation == "none" else differing > 5, differing


def test_exp_and_log_are_accurate():
    x = np.linspace(-700, 700, 100_001)
    out, work = np.empty_like(x), np.empty_like(x)
    elementary.exp_into(x, out, work, len(x))
    assert np.max(np.abs(out / np.exp(x) - 1)) < 1e-13
    y = np.concatenate([np.linspace(1.0, 2.0, 1001), np.geomspace(1e-300, 1e300, 10_001)])
    out, work = np.empty_like(y), np.empty_like(y)
    tiles.log_into(y, out, work, len(y))
    assert np.max(np.abs(out - np.log(y)) / np.maximum(1.0, np.abs(np.log(y)))) < 1e-14


@pytest.mark.parametrize("far", [1e4, 1e155, 1e300, np.finfo(np.float64).max, 5e-324])
@pytest.mark.parametrize("outputs", [1, 3])
def test_guarantee_2_one_row_never_exceeds_the_clip(far, outputs):
    rng = np.random.default_rng(4)
    for _ in range(50):
        numbers, a, b, codes, offsets, labels, cells, _ = table(1, seed=int(rng.integers(1 << 30)))
        numbers *= rng.choice([0.0, 1e-3, 1.0], (6, 1)) / np.abs(numbers).max()
        numbers *= far
        coef = rng.normal(size=(outputs, 1 + 6 + sum(SIZES))) * rng.choice([1e-3, 1.0, 1e3, 1e200])
        data = (numbers, a, b, codes, offsets, labels, cells, np.empty(0))
        costs = rng.normal(size=(6, outputs)) * 10
        by_cell = rng.choice([0.0, -1.0, 1e9, 1e300], 3) if rng.random() < 0.5 else None
        gradient, histogram = one_model(
            data, coef, 0, 1, costs=costs, clip=0.25, cell_weights=by_cell
        )
        size = math.sqrt(sum(int(v) ** 2 for v in gradient.ravel()))
        assert size <= 0.25 * 2.0**30 * (1 + 1e-12) + math.sqrt(outputs * 14) / 2
        assert np.abs(histogram).max() <= 2 * 2**24  # the row is in two cells, which may be one


def test_guarantee_3_what_is_not_finite_contributes_zero():
    numbers, a, b, codes, offsets, labels, cells, _ = table(3)
    numbers[0] = [1e308, -1e308, 1e308]
    numbers[1] = [1e308, 1e308, -1e308]
    coef = np.full((1, 1 + 6 + sum(SIZES)), 1e10)
    coef[0, 2] = -1e10  # inf - inf
    gradient, histogram = one_model(
        (numbers, a, b, codes, offsets, labels, cells, np.empty(0)), coef, 0, 3
    )
    assert (gradient == 0).all()
    assert np.abs(histogram).max() <= 2 * 3 * 2**24
