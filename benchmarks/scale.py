"""Rows beyond memory: a pass over a coded store beside the same pass in memory and over Parquet, in
rows of Adult's shape.

    python benchmarks/scale.py --rows 1e6 1e7
    python benchmarks/scale.py --rows 1e8 --kinds store --folder /mnt/large
    python benchmarks/scale.py --rows 1e6 --fit
    python benchmarks/scale.py --rows 1e7 --kinds store processes dask --workers 2
    python benchmarks/scale.py --rows 1e7 --kinds store --threads 1 2 --repeats 3
    python benchmarks/scale.py --rows 6.4e7 --machines 64

6 numbers (float32), 7 categories of 102 columns in all, a label, two groups. A pass answers what a
round of rate-constrained descent asks: the gradient with costs by group, and the histogram of
decisions; numbers are scaled inside, as a fit scales them. Each kind runs in a process of its own,
after one pass that is not timed (compilation, page cache). Shown are the fastest of the others, for
other work on the machine only adds to a pass, their median, and the peak of private memory
(`RssAnon`, without pages of mapped files), the workers' included. CPU time is that of all
processes, a pass on the mean: other work on the machine hardly moves it. `opened` is what
`data.open` gives of a Parquet file that is too large to hold; `parquet` streams. Kinds take turns,
`--repeats` times, and ratios are of the fastest.
`--fit`: a whole fit of `RateConstrainedClassifier`, 240 rounds, in place of passes.
`--machines M`: M shards of one store are asked one after another, each by one thread, and a round
on M machines is put together from the times: slowest shard, packing and unpacking as measured, and
a network of .5 ms a message and 1 Gbit/s at the driver.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.curator import Ask, Curator, GradientSum, Linear, PredictionHistogram, Rows
from fairveil.curator.rows.sharded import ShardedRows, Taking, Total
from fairveil.curator.shards.shard import Shard, packed, unpacked
from fairveil.data.encoded import BLOCK_ROWS
from fairveil.data.pieces import pieces_of
from fairveil.distributed import DaskRows, ProcessRows, local_cluster
from fairveil.facts import Cells, RowBlock, RowLayout

SIZES = (9, 16, 7, 15, 6, 5, 38)
KINDS = ("memory", "store", "opened", "parquet", "processes", "dask")
PASSES = 7
# of the network that is supposed: seconds a message, bytes a second at the driver
LATENCY, BANDWIDTH = 0.5e-3, 125e6
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
            labels = (numbers.sum(axis=0) + 0.5 * groups[0] + rng.normal(size=n) > 0).astype(
                np.int32
            )
            yield RowBlock(numbers, codes, labels, groups)


def main() -> None:
    """A line a kind and number of rows."""
    asked = _options()
    if asked.one is not None:
        threads = asked.threads[0]
        print(
            json.dumps(
                _measured(
                    asked.one,
                    int(asked.rows[0]),
                    Path(asked.folder),
                    asked.fit,
                    threads,
                    asked.workers,
                )
            )
        )
        return
    if asked.machines:
        _machines(int(asked.rows[0]), asked.machines, asked.folder)
        return
    what = "fit, s" if asked.fit else "pass, ns a row"
    print(
        f"| rows | kind | threads | {what} | median | x first | CPU, ns a row | x first | private "
        f"memory, GiB "
        "| on disk, B a row | made in, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for rows in map(int, asked.rows):
        ways = list(itertools.product(asked.kinds, asked.threads))
        found: dict[Any, list[dict[str, float]]] = {way: [] for way in ways}
        for _ in range(asked.repeats):
            for kind, threads in ways:
                found[kind, threads].append(_apart(asked, kind, threads, rows))
        base, base_work = (min(one[name] for one in found[ways[0]]) for name in ("time", "work"))
        for kind, threads in ways:
            runs = found[kind, threads]
            best, median = (
                min(one["time"] for one in runs),
                statistics.median(one["median"] for one in runs),
            )
            work = min(one["work"] for one in runs)
            peak, size, made = (
                max(one[name] for one in runs) for name in ("peak", "bytes", "made")
            )
            print(
                f"| {rows:.1e} | {kind} | {threads or 'all'} | {best:.1f} | {median:.1f} | "
                f"{best / base:.2f} | {work:.1f} "
                f"| {work / base_work:.2f} | {peak:.2f} "
                f"| {size:.0f} | {made:.1f} |",
                flush=True,
            )


def _apart(asked: Any, kind: str, threads: int | None, rows: int) -> dict[str, float]:
    """One kind in a process of its own."""
    folder = Path(tempfile.mkdtemp(dir=asked.folder))
    try:
        command = [
            sys.executable,
            __file__,
            "--one",
            kind,
            "--rows",
            str(rows),
            "--folder",
            str(folder),
        ]
        command += [
            "--workers",
            str(asked.workers),
            "--threads",
            str(threads or 0),
            *(["--fit"] if asked.fit else []),
        ]
        found: dict[str, float] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        return found
    finally:
        shutil.rmtree(folder)


def _measured(
    kind: str, rows: int, folder: Path, fit: bool, threads: int | None, workers: int
) -> dict[str, float]:
    start = time.perf_counter()
    source, size = _source(kind, rows, folder, workers)
    made = time.perf_counter() - start
    with _Watched() as watched:
        if fit:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clf = fv.RateConstrainedClassifier("demographic_parity:0.05", random_state=0)
                start, before = time.perf_counter(), _cpu() - watched.work
                clf.fit(source)
            times = [time.perf_counter() - start]
        else:
            rows_held = _held(kind, source)  # workers live as long as these
            passing = _passes(rows_held, threads or None)
            next(passing)  # compiled, and in the page cache
            before = _cpu() - watched.work
            times = [one / rows * 1e9 for one in passing]
        work = (_cpu() - watched.work - before) / len(times) / rows * 1e9
    if hasattr(source, "close"):
        source.close()
    return {
        "time": min(times),
        "median": statistics.median(times),
        "work": work,
        "peak": watched.peak / 2**30,
        "bytes": size / rows,
        "made": made,
    }


def _held(kind: str, source: Any) -> Rows:
    """The rows of a curator, scaled inside."""
    if kind in ("processes", "dask"):
        rows: Rows = ShardedRows(source.shards(), Taking(source.layout), source)
    else:
        rows = Rows(source, in_memory=kind != "parquet")
    return rows.rescaled(np.full(6, 1.7), np.full(6, 0.01))


class _Watched:
    """The most private memory of this process and those below it, looked at now and then: looking
    takes time of its own, which `work` has, and would slow a cluster whose scheduler lives in this
    process."""

    def __init__(self) -> None:
        self.peak, self.work, self._ended = 0, 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, sum(map(_private, _family(os.getpid()))))
            self.work = time.thread_time()


def _family(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                yield from _family(int(child))


def _private(process: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return 1024 * int(line.split()[1])
    return 0


def _cpu() -> float:
    """Seconds of all processors that this process and those below it have had."""
    found, ticks = time.process_time(), os.sysconf("SC_CLK_TCK")
    for process in itertools.islice(_family(os.getpid()), 1, None):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            found += (int(fields[11]) + int(fields[12])) / ticks
    return found


def _machines(rows: int, machines: int, folder: str | None) -> None:
    """A round on many machines, put together from the times of its shards."""
    place = Path(tempfile.mkdtemp(dir=folder))
    try:
        store = data.write_store(Made(rows), place / "s")
        _, pieces = pieces_of(store, shards=machines)
        taking = Taking(store.layout)
        asks = [(ask.question, tuple(_scales(ask, store.layout))) for ask in _asks(store.layout)]
        request = Total(tuple(asks))
        slowest, sent, came, work = 0.0, 0, 0, 0.0
        for piece in pieces:
            shard = Shard(piece, threads=1)
            shard.take(taking)
            shard.answer(request)  # compiled, and in the page cache
            times = []
            for _ in range(3):
                start = time.perf_counter()
                found = shard.answer(request)
                times.append(time.perf_counter() - start)
            start = time.perf_counter()
            message, answer = packed(request), packed(found)
            unpacked(message)
            unpacked(answer)
            work += time.perf_counter() - start
            slowest, sent, came = max(slowest, min(times)), sent + len(message), came + len(answer)
    finally:
        shutil.rmtree(place)
    network = 2 * LATENCY + (sent + came) / BANDWIDTH
    print(
        "| machines | rows each | slowest shard, ms | packing, ms | network, ms | a round, ms | ns "
        "a row and machine |"
    )
    print("|---|---|---|---|---|---|---|")
    for each in (rows // machines, 1e9 / machines):
        shard_time = slowest * each / (rows // machines)
        whole = shard_time + work + network
        mark = "" if each == rows // machines else " (extrapolated)"
        print(
            f"| {machines} | {each:.2e}{mark} | {shard_time * 1e3:.1f} | {work * 1e3:.1f} | "
            f"{network * 1e3:.1f} "
            f"| {whole * 1e3:.1f} | {whole / each * 1e9:.1f} |"
        )


def _asks(layout: RowLayout) -> list[Ask]:
    """What a round of rate-constrained descent asks."""
    cells, model = (
        Cells(layout.sensitive, "product", layout.sensitive_names),
        Linear(np.full((1, 1 + layout.width), 0.1)),
    )
    return [
        Ask(GradientSum(model, 1.0, cells, np.full((2, 1, 2), 0.3)), 0.0),
        Ask(PredictionHistogram(model, cells, "hard", by_label=True), 0.0),
    ]


def _scales(ask: Ask, layout: RowLayout) -> Iterator[Any]:
    yield ask.question.scale(layout, None)


def _passes(rows: Rows, threads: int | None) -> Iterator[float]:
    curator, asks = (
        Curator(rows, fv.Promise(float("inf"), 0.0), threads=threads),
        _asks(rows.layout),
    )
    for _ in range(1 + PASSES):
        start = time.perf_counter()
        curator.answer(asks)
        yield time.perf_counter() - start


def _source(kind: str, rows: int, folder: Path, workers: int) -> tuple[Any, float]:
    made = Made(rows)
    if kind in ("store", "processes", "dask"):
        store = data.write_store(made, folder / "s")
        if kind == "processes":
            return ProcessRows(store, workers=workers), store.nbytes
        if kind == "dask":
            return DaskRows(distributed_client(workers), store), store.nbytes
        return store, store.nbytes
    if kind == "memory":
        held = data.EncodedRows(made.encoding, tuple(made.blocks()))
        return held, 0.0
    path = folder / "t.parquet"
    _write_parquet(made, path)
    if kind == "opened":
        os.environ |= {"FAIRVEIL_MEMORY": "1", "FAIRVEIL_SPILL": str(folder)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return data.open(path, SCHEMA, precision="float32"), path.stat().st_size
    return data.load_parquet(path, SCHEMA, precision="float32"), path.stat().st_size


def distributed_client(workers: int) -> Any:
    """Of worker processes of this machine under dask."""
    import distributed

    return distributed.Client(local_cluster(workers))


def _write_parquet(made: Made, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    def table(block: RowBlock) -> Any:
        columns = {f"n{j}": line for j, line in enumerate(block.numbers)}
        columns |= {f"c{j}": line for j, line in enumerate(block.codes)}
        assert block.labels is not None
        assert block.sensitive is not None
        columns["sex"] = pa.DictionaryArray.from_arrays(
            block.sensitive[0].astype(np.int8), ["f", "m"]
        )
        columns["hired"] = pa.DictionaryArray.from_arrays(
            block.labels.astype(np.int8), ["no", "yes"]
        )
        return pa.table(columns)

    writer = None
    for block in made.blocks():
        found = table(block)
        writer = writer or parquet.ParquetWriter(path, found.schema)
        writer.write_table(found)
    assert writer is not None
    writer.close()


def _options() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--folder", default=None, help="where stores and files are made, and deleted"
    )
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--threads", type=int, nargs="+", default=[None], help="of a pass; 0: all")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2, help="of the kinds processes and dask")
    parser.add_argument("--machines", type=int, default=0)
    parser.add_argument("--one", choices=KINDS, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
