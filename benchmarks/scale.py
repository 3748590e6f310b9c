"""Rows beyond memory: a pass over a coded store beside the same pass in memory and over Parquet, in rows of Adult's shape.

    python benchmarks/scale.py --rows 1e6 1e7
    python benchmarks/scale.py --rows 1e8 --kinds store --folder /mnt/large
    python benchmarks/scale.py --rows 1e6 --fit

6 numbers (float32), 7 categories of 102 columns in all, a label, two groups. A pass answers what a round of rate-constrained
descent asks: the gradient with costs by group, and the histogram of decisions; numbers are scaled inside, as a fit scales them.
Each kind runs in a process of its own, after one pass that is not timed (compilation, page cache); the median of the others is
shown, and the process' peak memory. `--fit`: a whole fit of `RateConstrainedClassifier`, 240 rounds, in place of passes.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.curator import Ask, Curator, GradientSum, Linear, PredictionHistogram, Rows
from fairveil.data.encoded import BLOCK_ROWS
from fairveil.facts import RowBlock, RowLayout

SIZES = (9, 16, 7, 15, 6, 5, 38)
KINDS = ("memory", "store", "parquet")
PASSES = 5
SCHEMA = data.Schema(
    {f"n{j}": data.Number(-1, 1) for j in range(6)}
    | {f"c{j}": data.Category(tuple(range(size))) for j, size in enumerate(SIZES)}
    | {"sex": data.Category(("f", "m")), "hired": data.Category(("no", "yes"))},
    target="hired",
    sensitive="sex",
)


class Made:
    """Rows drawn block by block, the same at each pass."""

    encoding = data.Encoding(SCHEMA, precision="float32")

    def __init__(self, rows: int) -> None:
        self.rows = rows

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return self.encoding.layout

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        rng = np.random.default_rng(0)
        for start in range(0, self.rows, BLOCK_ROWS):
            n = min(BLOCK_ROWS, self.rows - start)
            numbers = rng.uniform(-1, 1, (6, n)).astype(np.float32)
            codes = np.stack([rng.integers(0, size, n, np.uint8) for size in SIZES])
            groups = rng.integers(0, 2, (1, n), np.uint16)
            labels = (numbers.sum(axis=0) + 0.5 * groups[0] + rng.normal(size=n) > 0).astype(np.int32)
            yield RowBlock(numbers, codes, labels, groups)


def main() -> None:
    """A line a kind and number of rows."""
    asked = _options()
    if asked.one is not None:
        print(json.dumps(_measured(asked.one, int(asked.rows[0]), Path(asked.folder), asked.fit)))
        return
    what = "fit, s" if asked.fit else "pass, ns a row"
    print(
        f"| rows | kind | {what} | x memory | peak memory, GiB | on disk, B a row | made in, s |\n|---|---|---|---|---|---|---|"
    )
    for rows in map(int, asked.rows):
        base = None
        for kind in asked.kinds:
            folder = Path(tempfile.mkdtemp(dir=asked.folder))
            try:
                command = [sys.executable, __file__, "--one", kind, "--rows", str(rows), "--folder", str(folder)]
                command += ["--fit"] if asked.fit else []
                found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            finally:
                shutil.rmtree(folder)
            base = found["time"] if kind == "memory" else base
            ratio = "-" if base is None else f"{found['time'] / base:.2f}"
            print(
                f"| {rows:.0e} | {kind} | {found['time']:.1f} | {ratio} | {found['peak']:.2f} | {found['bytes']:.0f} "
                f"| {found['made']:.1f} |",
                flush=True,
            )


def _measured(kind: str, rows: int, folder: Path, fit: bool) -> dict[str, float]:
    start = time.perf_counter()
    source, size = _source(kind, rows, folder)
    made = time.perf_counter() - start
    if fit:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = fv.RateConstrainedClassifier("demographic_parity:0.05", random_state=0)
            start = time.perf_counter()
            clf.fit(source)
        taken = time.perf_counter() - start
    else:
        held = Rows(source, in_memory=kind != "parquet").rescaled(np.full(6, 1.7), np.full(6, 0.01))
        taken = statistics.median(_passes(held)) / rows * 1e9
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"time": taken, "peak": peak, "bytes": size / rows, "made": made}


def _passes(rows: Rows) -> Iterator[float]:
    curator, cells = Curator(rows, fv.Promise(float("inf"), 0.0)), rows.cells()
    model = Linear(np.full((1, 1 + rows.layout.width), 0.1))
    asks = [
        Ask(GradientSum(model, None, cells, np.full((2, 1, 2), 0.3)), 0.0),
        Ask(PredictionHistogram(model, cells, "hard", by_label=True), 0.0),
    ]
    for number in range(1 + PASSES):
        start = time.perf_counter()
        curator.answer(asks)
        if number:
            yield time.perf_counter() - start


def _source(kind: str, rows: int, folder: Path) -> tuple[Any, float]:
    made = Made(rows)
    if kind == "store":
        store = data.write_store(made, folder / "s")
        return store, store.nbytes
    if kind == "memory":
        held = data.EncodedRows(made.encoding, tuple(made.blocks()))
        return held, 0.0
    path = folder / "t.parquet"
    _write_parquet(made, path)
    return data.load_parquet(path, SCHEMA, precision="float32"), path.stat().st_size


def _write_parquet(made: Made, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    def table(block: RowBlock) -> Any:
        columns = {f"n{j}": line for j, line in enumerate(block.numbers)}
        columns |= {f"c{j}": line for j, line in enumerate(block.codes)}
        assert block.labels is not None
        assert block.sensitive is not None
        columns["sex"] = pa.DictionaryArray.from_arrays(block.sensitive[0].astype(np.int8), ["f", "m"])
        columns["hired"] = pa.DictionaryArray.from_arrays(block.labels.astype(np.int8), ["no", "yes"])
        return pa.table(columns)

    writer = None
    for block in made.blocks():
        found = table(block)
        writer = writer or parquet.ParquetWriter(path, found.schema)
        writer.write_table(found)
    assert writer is not None
    writer.close()


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--folder", default=None, help="where stores and files are made, and deleted")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--one", choices=KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
