"""The curator's passes, each as a ratio to a named peer in the same run. Prints JSON; `--quick` for
a look.

1. One fused private pass (clipped gradient with group costs, histogram by group, exact sums) over
   Adult's shape, 6 numbers and 7 codes, against NumPy's two float64 matrix-vector products on the
   one-hot matrix. Aim: at most 0.5.
2. The same kernel with the rounding to the grid taken out (and float sums the compiler may
   reorder): what exactness costs. Aim: at most 1.5.
3. Sixty models in one pass against one model. Aim: at most 30.
4. One to ten million rows: time in proportion, memory against the coded rows. Aim: linear, at most
   1.3.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from fairveil.curator import GradientSum, Linear, PredictionHistogram, Rows
from fairveil.curator.kernels import elementary
from fairveil.curator.kernels import linear as kernels
from fairveil.curator.totals.passes import totals
from fairveil.data import synthetic

ADULT_ROWS = 36_632


def interleaved(
    jobs: dict[str, Callable[[], Any]], repeats: int, together: int = 5
) -> dict[str, float]:
    """Median seconds of each job. Jobs take turns, so that the machine's moods hit all alike; each
    turn is a few runs, of which the first is not counted, so that none is timed with a cache that
    another job has filled; and after a pause, in which BLAS lets go of the cores that its threads
    keep busy waiting."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, job in jobs.items():
            time.sleep(0.1)
            job()
            for _ in range(together):
                start = time.perf_counter()
                job()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def inexact_kernels() -> Any:
    """`kernels` compiled without the grid: no rounding, float64 sums, and leave to reorder them
    (fast-math's `reassoc`)."""
    source = Path(kernels.__file__).read_text("utf-8")
    changes = [
        ("np.float64(column[t]) + MAGIC", "np.float64(column[t])"),
        ("work[t] = r[k, t] + MAGIC\n", "work[t] = r[k, t]\n"),
        ("            bits[t] = bits[t] - MAGIC_BITS\n", "            work[t] = work[t]\n"),
        ("total = np.int64(0)", "total = 0.0"),
        ("total += bits[t]", "total += work[t]"),
        ("total - m * MAGIC_BITS", "total"),
        ("grad[first + line[t]] += bits[t]", "grad[first + line[t]] += work[t]"),
        ("b = bits[t]", "b = work[t]"),
        (
            "work[t] = (v if abs(v) < np.inf else 0.0) + MAGIC",
            "work[t] = v if abs(v) < np.inf else 0.0",
        ),
        ("out[index[t], k] += bits[t] - MAGIC_BITS", "out[index[t], k] += work[t]"),
        ("@jit\n", "@njit(nogil=True, error_model='numpy', fastmath={'reassoc'})\n"),
        ("import numpy as np\n", "import numpy as np\nfrom numba import njit\n"),
        ("from .elementary", "from fairveil.curator.kernels.elementary"),
        ("from .tiles", "from fairveil.curator.kernels.tiles"),
        ("from ..._types", "from fairveil._types"),
    ]
    for exact, inexact in changes:
        assert exact in source, (
            f"the kernel has changed: {exact!r} is gone, so this comparison must be rewritten"
        )
        source = source.replace(exact, inexact)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels_inexact.py"
        path.write_text(source, "utf-8")
        spec = importlib.util.spec_from_file_location("kernels_inexact", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # exp must keep its rounding trick, which reassociation would remove: it comes from the
        # exact module.
        spec.loader.exec_module(module)
    module.exp_into = elementary.exp_into
    return module


def fused(rows: Rows, repeats: int) -> dict[str, Any]:
    (block,) = rows.blocks()
    cells = rows.cells()
    rng = np.random.default_rng(0)
    width = 1 + rows.layout.width
    costs = rng.normal(size=(cells.count, 1, 2))

    def asked(models: int) -> list[Any]:
        weights = rng.normal(size=(models, 1, width)) * 0.1
        model = Linear(weights if models > 1 else weights[0])
        questions = [GradientSum(model, 1.0, cells, costs), PredictionHistogram(model, cells)]
        return [(q, [q.scale(rows.layout, None)]) for q in questions]

    one, sixty = asked(1), asked(60)
    one_hot = np.zeros((block.rows, width - 1))
    one_hot[:, : rows.layout.numbers] = block.numbers.T
    for line, first in zip(block.codes, rows.offsets, strict=True):
        one_hot[np.arange(block.rows), first - 1 + line] = 1.0
    w = rng.normal(size=width - 1)
    exact, inexact = (
        kernel_only(kernels, block, rows, np.int64),
        kernel_only(inexact_kernels(), block, rows, np.float64),
    )
    # In turn with BLAS, whose threads go on waiting busily, the pass has about one core; by itself
    # it has two. Both are shown.
    products = interleaved(
        {
            "two products": lambda: one_hot.T @ (one_hot @ w),
            "in turn": lambda: totals(one, rows, rows.blocks()),
        },
        repeats,
    )
    grid = interleaved({"kernel, exact": exact, "kernel, inexact": inexact}, repeats)
    models = interleaved(
        {
            "fused pass": lambda: totals(one, rows, rows.blocks()),
            "sixty models": lambda: totals(sixty, rows, rows.blocks()),
        },
        repeats,
    )
    return {
        "milliseconds": {
            name: 1e3 * value for name, value in {**products, **grid, **models}.items()
        },
        "fused pass / two products (aim 0.5)": models["fused pass"] / products["two products"],
        "the same, in turn with BLAS": products["in turn"] / products["two products"],
        "exact / inexact kernel (aim 1.5)": grid["kernel, exact"] / grid["kernel, inexact"],
        "sixty models / one (aim 30)": models["sixty models"] / models["fused pass"],
    }


def kernel_only(module: Any, block: Any, rows: Rows, kind: type) -> Callable[[], None]:
    coef = np.random.default_rng(1).normal(size=(1, 1 + rows.layout.width)) * 0.1
    fixed = (block.numbers, block.indptr, block.indices, block.codes, rows.offsets, block.labels)
    cells = rows.cells()
    costs = np.array([[0.3]] * cells.count)

    def run() -> None:
        gradient, histogram = np.zeros(coef.shape, kind), np.zeros((cells.count, 1), kind)
        tail = (
            0,
            block.rows,
            0,
            1.0,
            np.empty(0),
            1.0,
            costs,
            1,
            1.0,
            2.0**30,
            gradient,
            1,
            1,
            1.0,
            histogram,
            np.empty(0),
        )
        module.descend(*fixed, block.cells(cells), block.weights, coef, *tail)

    return run


def large(millions: int, repeats: int) -> dict[str, Any]:
    """Rows held in memory: what a pass costs, and what the process grew by while holding and
    passing over them."""
    process = psutil.Process()
    source = synthetic.ManyRows(1_000_000 * millions, seed=1)
    before = process.memory_info().rss
    rows = Rows(source)
    cells = rows.cells()
    model = Linear(np.random.default_rng(2).normal(size=1 + rows.layout.width) * 0.1)
    questions = [GradientSum(model, 1.0), PredictionHistogram(model, cells)]
    measurements = [(q, [q.scale(rows.layout, None)]) for q in questions]
    seconds = interleaved({"pass": lambda: totals(measurements, rows, rows.blocks())}, repeats)[
        "pass"
    ]
    coded = sum(
        array.nbytes
        for block in rows.blocks()
        for array in (block.numbers, block.codes, block.labels, block.sensitive)
    )
    return {
        "rows": rows.exact_count,
        "seconds a pass": seconds,
        "million rows a second": millions / seconds,
        "coded bytes a row": coded / rows.exact_count,
        "process growth / coded rows (aim 1.3)": (process.memory_info().rss - before) / coded,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats, fewer rows")
    quick = parser.parse_args().quick
    adult = Rows(synthetic.ManyRows(ADULT_ROWS, seed=0))
    out: dict[str, Any] = {"python": sys.version.split()[0], "numpy": np.__version__}
    out["adult's shape"] = fused(adult, 5 if quick else 31)
    sizes = (1, 2) if quick else (1, 2, 5, 10)
    passes = [large(millions, 1 if quick else 2) for millions in sizes]
    out["many rows"] = passes
    out["time a row, most rows / fewest"] = (passes[-1]["seconds a pass"] / sizes[-1]) / (
        passes[0]["seconds a pass"] / sizes[0]
    )
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
