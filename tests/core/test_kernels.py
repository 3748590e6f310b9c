"""The loops over features: one fixed sequence of operations a row, integers that no order can change,
and the fused loop and the panel equal to the sums that they stand for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fairveil.core import kernels as elementary
from fairveil.core import sums
from fairveil.core.promise import Promise
from fairveil.core.questions import Facts, Linear, Sum
from fairveil.core.sums import Run
from fairveil.curator import Rows

SIZES = (8, 16, 7, 14, 6, 5, 41)
WIDTH = 1 + 6 + sum(SIZES)


def table(n: int = 3001, classes: int = 2, far: float = 1e8, *, sparse: bool = False) -> Rows:
    rng = np.random.default_rng(0)
    numbers: Any = rng.normal(size=(n, 6))
    numbers[::50] *= far
    codes = np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(np.uint8)
    if sparse:
        import scipy.sparse

        numbers[rng.random(numbers.shape) < 0.6] = 0.0
        numbers = scipy.sparse.csr_array(numbers)
    return Rows.from_arrays(
        numbers,
        rng.integers(0, classes, n),
        [rng.integers(0, 3, n), rng.integers(0, 2, n)],
        codes=codes,
        code_sizes=SIZES,
        classes=range(classes),
        groups=[range(3), range(2)],
        sample_weight=rng.random(n),
        max_sample_weight=1.0,
    )


def asked(rows: Rows, models: int, options: dict[str, Any]) -> tuple[Sum, Sum]:
    rng, facts = np.random.default_rng(1), Facts(rows.layout, Promise(1.0, 1e-6), 1.0)
    outputs = 1 if len(rows.layout.classes or ()) == 2 else 3
    cells = rows.cells("marginal")
    w = rng.normal(size=(models, outputs, WIDTH))
    costs = rng.normal(size=(models, cells.count, 2 if outputs == 1 else 3, max(2, outputs)))
    own: dict[str, Any] = (
        {"cell_weights": rng.normal(size=(models, cells.count))} if options["weighed"] else {}
    )
    loss, pull = options["loss"], np.linspace(0.8, 0.3, models)
    paid = None if loss == "squared" else costs
    model = Linear(w, options["sharpness"])
    gradient = sums.gradient(facts, model, options["clip"], cells, paid, loss, pull, **own)
    return gradient, sums.decisions(facts, model, cells, options["kind"], True)


OPTIONS = [
    {"sharpness": 1.0, "kind": "soft", "loss": "log", "clip": 1.0, "weighed": False},
    {"sharpness": 2.5, "kind": "soft", "loss": "log", "clip": 0.3, "weighed": True},
    {"sharpness": 0.7, "kind": "hard", "loss": "none", "clip": 1e300, "weighed": False},
    {"sharpness": 1.0, "kind": "hard", "loss": "squared", "clip": 1.0, "weighed": True},
]


def totals(pair: tuple[sums.Sum, ...], rows: Rows, a: int = 0, b: int = 3001) -> list[Any]:
    (block,) = rows.blocks()
    run = Run(block, rows.offsets, a, b)
    with np.errstate(all="ignore"):
        return [one.total(run, 2.0**30) for one in pair]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_fused_loop_and_the_panel_add_what_the_sums_add(
    options: dict[str, Any], sparse: bool
) -> None:
    rows = table(sparse=sparse)
    (block,) = rows.blocks()
    run = Run(block, rows.offsets, 0, 3001)
    many = totals(asked(rows, 60, options), rows)  # a panel
    for models in (1, 5):
        pair = asked(rows, models, options)
        for one, other in zip(
            totals(pair, rows), sums.fused(*pair, run, 2.0**30, 2.0**30), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        alone = (
            sums.fused(pair[0], None, run, 2.0**30, 1.0)[0],
            sums.fused(None, pair[1], run, 1.0, 2.0**30)[1],
        )
        for one, other in zip(totals(pair, rows), alone, strict=True):
            np.testing.assert_array_equal(one, other)
    (block,) = rows.blocks()
    pair = asked(rows, 60, options)
    for one, other in zip(many, sums.fused(*pair, run, 2.0**30, 2.0**30), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("models", [1, 40])
def test_guarantee_1_integers_do_not_depend_on_order_or_ranges(classes: int, models: int) -> None:
    options = OPTIONS[1]
    rows = table(classes=classes)
    whole = totals(asked(rows, models, options), rows)
    (block,) = rows.blocks()
    shuffled = block.take(np.random.default_rng(2).permutation(3001))
    pair = asked(rows, models, options)
    with np.errstate(all="ignore"):
        again = [one.total(Run(shuffled, rows.offsets, 0, 3001), 2.0**30) for one in pair]
    cuts = [(0, 1), (1, 700), (700, 2049), (2049, 3001)]
    parts = [totals(pair, rows, a, b) for a, b in cuts]
    for i, wanted in enumerate(whole):
        np.testing.assert_array_equal(again[i], wanted)
        np.testing.assert_array_equal(sum(part[i] for part in parts), wanted)


def fixed_sequence_probability(
    numbers: Any,
    codes: Any,
    offsets: Any,
    coef: Any,
    *,
    fused: bool = False,
    library_exp: bool = False,
) -> float:
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


@pytest.mark.parametrize("mutation", ["none", "fused multiply-add", "the library's exp"])
def test_each_row_is_one_fixed_sequence_of_operations(mutation: str) -> None:
    """Bit for bit the sequence that the docstring states; with the library's exp or fused
    operations it is not."""
    n = 6000
    rows = table(n, far=1.0)
    (block,) = rows.blocks()
    w = np.random.default_rng(3).normal(size=(1, WIDTH))
    found = Run(block, rows.offsets, 0, n).soft(w, 1.0, apart=True)[0]
    options = {
        "fused": mutation == "fused multiply-add",
        "library_exp": mutation == "the library's exp",
    }
    wanted = [
        fixed_sequence_probability(
            block.numbers[:, i].tolist(), block.codes[:, i].tolist(), rows.offsets, w[0], **options
        )
        for i in range(n)
    ]
    differing = int((found != np.array(wanted)).sum())
    assert differing == 0 if mutation == "none" else differing > 5, differing


def test_exp_and_log_are_accurate() -> None:
    x = np.linspace(-700, 700, 100_001)
    out, work = np.empty_like(x), np.empty_like(x)
    elementary.exp_into(x, out, work, len(x))
    assert np.max(np.abs(out / np.exp(x) - 1)) < 1e-13
    y = np.concatenate([np.linspace(1.0, 2.0, 1001), np.geomspace(1e-300, 1e300, 10_001)])
    out, work = np.empty_like(y), np.empty_like(y)
    elementary.log_into(y, out, work, len(y))
    assert np.max(np.abs(out - np.log(y)) / np.maximum(1.0, np.abs(np.log(y)))) < 1e-14


@pytest.mark.parametrize("far", [1e4, 1e155, 1e300, np.finfo(np.float64).max, 5e-324])
@pytest.mark.parametrize("outputs", [1, 3])
def test_guarantee_2_one_row_never_exceeds_the_clip(far: float, outputs: int) -> None:
    rng, classes = np.random.default_rng(4), 2 if outputs == 1 else 3
    for _ in range(50):
        numbers = rng.normal(size=(1, 6)) * rng.choice([0.0, 1e-3, 1.0], (1, 6))
        numbers *= far / max(1.0, np.abs(numbers).max())
        rows = Rows.from_arrays(numbers, [1], [["a"]], classes=range(classes), groups=[("a", "b")])
        (block,) = rows.blocks()
        facts, cells = Facts(rows.layout, Promise(1.0, 1e-6)), rows.cells()
        w = rng.normal(size=(1, outputs, 7)) * rng.choice([1e-3, 1.0, 1e3, 1e200])
        costs = rng.normal(size=(2, 1, max(2, outputs))) * 10
        by_cell = rng.choice([0.0, -1.0, 1e9, 1e300], 2) if rng.random() < 0.5 else None
        one = sums.gradient(facts, w, 0.25, cells, costs, cell_weights=by_cell)
        run = Run(block, rows.offsets, 0, 1)
        with np.errstate(all="ignore"):
            found = [one.total(run, 2.0**30)]
        if outputs == 1:
            found.append(sums.fused(one, None, run, 2.0**30, 1.0)[0])
        for total in found:
            size = math.sqrt(sum(int(v) ** 2 for v in total.ravel()))
            assert size <= 0.25 * 2.0**30 * (1 + 1e-12) + math.sqrt(outputs * 7) / 2


def test_guarantee_3_what_is_not_finite_contributes_zero() -> None:
    X = np.array([[1e308, 1e308], [-1e308, 1e308], [1e308, -1e308]])
    rows = Rows.from_arrays(X, [0, 1, 1], [["a", "b", "a"]])
    (block,) = rows.blocks()
    facts, run = Facts(rows.layout, Promise(1.0, 1e-6)), Run(block, rows.offsets, 0, 3)
    w = np.array([1e10, 1e10, -1e10])  # inf - inf
    one = sums.gradient(facts, w, 1.0)
    with np.errstate(all="ignore"):
        assert (one.total(run, 2.0**30) == 0).all()
    assert (sums.fused(one, None, run, 2.0**30, 1.0)[0] == 0).all()
