"""Rows beyond memory: a pass over a coded store beside the same pass in memory and over Parquet.

    python benchmarks/scale.py --rows 1e6 1e7
    python benchmarks/scale.py --rows 1e8 --kinds store --folder /mnt/large
    python benchmarks/scale.py --rows 1e5 --fit --kinds memory fairlearn opacus --limit 600
    python benchmarks/scale.py --rows 1e7 --kinds memory store --threads 1 2 --repeats 3
    python benchmarks/scale.py --rows 1e6 1e7 --encode
    python benchmarks/scale.py --rows 1e6 2e6 --memory --kinds memory store opened database

Rows have Adult's shape: 6 numbers (float32), 7 categories of 102 columns in all, a label, two
groups. A pass answers what a round of rate-constrained descent asks: the gradient with costs by
group, and the histogram of decisions; numbers are scaled inside, as a fit scales them.

Each kind runs in a process of its own, after passes that are not timed (`--warm`: compilation,
page cache). Shown are the fastest of the others, for other work on the machine only adds to a
pass, their median, and the peak of private memory (`RssAnon`, without pages of mapped files), the
workers' included. CPU time is that of all processes, a pass on the mean: other work on the machine
hardly moves it. `opened` is what `data.open` gives of a Parquet file that is too large to hold,
`database` the same of a table of SQLite. Kinds take turns,
`--repeats` times, and ratios are of the fastest. Stores and files are made once for each number of
rows.

`--fit`: a whole fit of `FairClassifier`, 240 rounds, in place of passes. The kinds
`fairlearn` and `opacus` are fits of these libraries on one dense matrix, for neither streams.
fairlearn: `ExponentiatedGradient` with `LogisticRegression(solver="newton-cholesky")`, demographic
parity within 5 points, not private. opacus: logistic regression in torch, Poisson batches of 512
rows, noise multiplier 1, clip 1, one epoch; not fair. A fit takes as many epochs as somebody
chooses.
`--encode`: writing a coded store from Parquet, beside pyarrow that only reads it.
`--memory`: peak private memory of whole jobs by where the rows lie. Rounds are few, since memory
does not grow with them. What a process holds before it sees rows is told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.curator import Curator, GradientSum, Linear, Measurement, PredictionHistogram, Rows
from fairveil.data.rows import BLOCK_ROWS
from fairveil.facts import Cells, RowBlock, RowLayout
from sets import SCHEMA, Made, dense, whole

KINDS = ("memory", "store", "opened", "database", "dask")
BATCH = 512
NOTHING: dict[str, Any] = {"time": math.nan, "work": math.nan}


def _matrix(made: Made) -> tuple[Any, Any, Any]:
    """Numbers and indicators, labels, groups."""
    rows = whole(data.EncodedRows(made.encoding, tuple(made.blocks())))
    return dense(rows).astype(np.float32), rows.labels.astype(np.int64), rows.sensitive[0]


def _fairlearn(X: Any, y: Any, groups: Any) -> str:
    """One fit; how often its learner was asked."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    learner = LogisticRegression(solver="newton-cholesky")
    model = ExponentiatedGradient(learner, DemographicParity(difference_bound=0.05))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=groups)
    return f"{model.n_oracle_calls_} fits of its learner"


def _opacus(X: Any, y: Any, groups: Any) -> str:
    """One epoch; how many steps that was."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    model = torch.nn.Linear(X.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH)
    steps = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        for batch, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
            steps += 1
    return f"{steps} steps of about {BATCH} rows, one epoch"


RIVALS = {"fairlearn": _fairlearn, "opacus": _opacus}


def _frontier(source: Any, others: Any) -> None:
    few = fv.FairClassifier(solver=fv.PrimalDual(rounds=5))
    asked = {"gaps": (0.2, 0.05), "epsilons": (1.0,), "seeds": 1, "progress": False}
    fv.frontier(source, estimator=few, test=source, **asked)


def _certificate(source: Any, others: Any) -> None:
    model = fv.FairClassifier(
        "demographic_parity:0.05", solver=fv.PrimalDual(rounds=5), random_state=0
    )
    model.fit(others)
    fv.certify(model, source, constraints=fv.DemographicParity(0.2), epsilon=1.0, random_state=0)


def _fit_of(model: Any) -> Callable[[Any, Any], None]:
    return lambda source, others: model.fit(source)


JOBS: dict[str, Callable[[Any, Any], None]] = {
    "fit": _fit_of(
        fv.FairClassifier("demographic_parity:0.05", solver=fv.PrimalDual(rounds=5), random_state=0)
    ),
    "frontier": _frontier,
    "game": _fit_of(
        fv.FairClassifier("equalized_odds:0.1", solver=fv.OracleGame(rounds=3), random_state=0)
    ),
    "group objective": _fit_of(fv.FairClassifier(solver=fv.GroupObjective(), random_state=0)),
    "tailored": _fit_of(fv.FairClassifier(solver=fv.Tailored(rounds=5), random_state=0)),
    "certificate": _certificate,
}


def _job(name: str, source: Any, others: Any) -> None:
    """One job. `others`: rows for a model that has not seen those of the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        JOBS[name](source, others)


def main() -> None:
    """A line a kind and number of rows."""
    asked = _options()
    if asked.one is not None:
        print(json.dumps(_measured(asked)))
        return
    if asked.encode:
        print("| rows | what | CPU, ns a row | x first | wall, ns a row | x first |")
        print("|---|---|---|---|---|---|")
    elif asked.memory:
        print(f"| rows | job | {' | '.join(f'{kind}, MiB' for kind in asked.kinds)} |")
        print("|---|---|" + "---|" * len(asked.kinds))
    else:
        unit = "s" if asked.fit else "ns a row"
        head = f"{'fit' if asked.fit else 'pass'}, wall {unit} | median | x first"
        print(
            f"| rows | kind | threads | {head} | CPU, {unit} | x first "
            "| private memory, GiB | on disk, B a row | made in, s |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
    for rows in map(int, asked.rows):
        folder = Path(tempfile.mkdtemp(dir=asked.folder))
        try:
            if asked.encode:
                _encoding(rows, folder, asked.repeats)
            elif asked.memory:
                _memory(asked, rows, folder)
            else:
                _lines(asked, rows, folder)
        finally:
            shutil.rmtree(folder)


def _lines(asked: Any, rows: int, folder: Path) -> None:
    """Print one number of rows."""
    ways = list(itertools.product(asked.kinds, asked.threads))
    found: dict[Any, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(asked.repeats):
        for kind, threads in ways:
            found[kind, threads].append(_apart(asked, kind, threads, rows, folder))
    base, base_work = (min(one[name] for one in found[ways[0]]) for name in ("time", "work"))
    unit = 1.0 if asked.fit else 1e9 / rows
    for kind, threads in ways:
        runs = found[kind, threads]
        if any("failed" in one for one in runs):
            print(f"| {rows:.1e} | {kind} | {threads or 'all'} | {runs[0]['failed']} |" + " |" * 7)
            continue
        best, work = (min(one[name] for one in runs) for name in ("time", "work"))
        median = statistics.median(one["median"] for one in runs)
        peak, size, made = (max(one[name] for one in runs) for name in ("peak", "bytes", "made"))
        print(
            f"| {rows:.1e} | {kind}{runs[0]['told']} | {threads or 'all'} "
            f"| {best * unit:.1f} | {median * unit:.1f} | {best / base:.2f} "
            f"| {work * unit:.1f} | {work / base_work:.2f} "
            f"| {peak:.2f} | {size:.0f} | {made:.1f} |",
            flush=True,
        )


def _memory(asked: Any, rows: int, folder: Path) -> None:
    """A line a job."""
    for job in JOBS:
        cells = []
        for kind in asked.kinds:
            found = _apart(asked, kind, None, rows, folder, "--job", job)
            more = f"{found['before'] * 1024:.0f} + " if "before" in found else ""
            peak = (found.get("peak", 0.0) - found.get("before", 0.0)) * 1024
            cells.append(found.get("failed") or f"{more}{peak:.0f}")
        print(f"| {rows:.1e} | {job} | {' | '.join(cells)} |", flush=True)


def _apart(
    asked: Any, kind: str, threads: int | None, rows: int, folder: Path, *more: str
) -> dict[str, Any]:
    """One kind in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, "--rows", str(rows)]
    command += ["--folder", str(folder), "--threads", str(threads or 0)]
    for name in ("workers", "passes", "warm"):
        command += [f"--{name}", str(getattr(asked, name))]
    command += ["--fit"] if asked.fit else []
    command += more
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=asked.limit)
    except subprocess.TimeoutExpired:
        return NOTHING | {"failed": f"not finished in {asked.limit:.0f} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["killed"])[-1]
        return NOTHING | {"failed": f"died: {last[:80]}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measured_job(asked: Any) -> dict[str, Any]:
    few, others = (data.EncodedRows(Made.encoding, tuple(Made(n).blocks())) for n in (1000, 999))
    _job(asked.job, few, others)  # compiled
    if asked.one != "memory":  # and for arrays that may not be written
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            _job(asked.job, data.write_store(Made(1000), Path(folder) / "s"), others)
    if asked.one in ("opened", "database"):  # not what writing the file takes
        _source(asked.one, int(asked.rows[0]), Path(asked.folder), 0, only_written=True)
    before = _private(os.getpid())
    with _Watched(0.02) as watched:
        source, _ = _source(asked.one, int(asked.rows[0]), Path(asked.folder), 0)
        _job(asked.job, source, others)
    return {"before": before / 2**30, "peak": max(watched.peak, before) / 2**30}


def _measured(asked: Any) -> dict[str, Any]:
    if asked.job:
        return _measured_job(asked)
    kind, rows, folder = asked.one, int(asked.rows[0]), Path(asked.folder)
    start, told = time.perf_counter(), ""
    source, size = _source(kind, rows, folder, asked.workers)
    made = time.perf_counter() - start
    with _Watched() as watched:
        if asked.fit:
            if kind not in RIVALS:
                few = Made(1000)
                _fitted(data.EncodedRows(few.encoding, tuple(few.blocks())))  # compiled
            start, before = time.perf_counter(), _cpu() - watched.work
            if kind in RIVALS:
                told = f" ({RIVALS[kind](*source)})"
            else:
                _fitted(source)
            times = [time.perf_counter() - start]
        else:
            rows_held = _held(kind, source)  # workers live as long as these
            passing = _passes(rows_held, asked.threads[0] or None, asked.warm + asked.passes)
            for _ in range(asked.warm):
                next(passing)  # compiled, and in the page cache
            before = _cpu() - watched.work
            times = list(passing)
        work = (_cpu() - watched.work - before) / len(times)
    if hasattr(source, "close"):
        source.close()
    return {
        "time": min(times),
        "median": statistics.median(times),
        "work": work,
        "peak": watched.peak / 2**30,
        "bytes": size / rows,
        "made": made,
        "told": told,
    }


def _fitted(source: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fv.FairClassifier("demographic_parity:0.05", random_state=0).fit(source)


def _encoding(rows: int, folder: Path, repeats: int) -> None:
    """A coded store from Parquet, beside pyarrow that reads the file and gives nothing: in turn."""
    from pyarrow import parquet

    path, out = _parquet(rows, folder), folder / "encoded"

    def read() -> None:
        for _ in parquet.ParquetFile(path).iter_batches(BLOCK_ROWS):
            pass

    def held() -> None:
        for _ in data.open(path, SCHEMA, precision="float32").blocks():
            pass

    def encoded() -> None:
        data.encode(path, SCHEMA, out, precision="float32", overwrite=True)

    ways = {"pyarrow alone": read, "coded in memory": held, "encoded": encoded}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(1 + repeats):
        for name, work in ways.items():
            start, before = time.perf_counter(), time.process_time()
            work()
            found[name].append((time.process_time() - before, time.perf_counter() - start))
    least = {
        name: [min(column) for column in zip(*runs[1:], strict=True)]
        for name, runs in found.items()
    }
    for name, (work, wall) in least.items():
        base, base_wall = least["pyarrow alone"]
        print(
            f"| {rows:.1e} | {name} | {work / rows * 1e9:.0f} | {work / base:.2f} "
            f"| {wall / rows * 1e9:.0f} | {wall / base_wall:.2f} |"
        )


def _held(kind: str, source: Any) -> Rows:
    """The rows of a curator, scaled inside."""
    if kind == "dask":
        from fairveil.core.extra.sharded import ShardedRows, Taking

        rows: Rows = ShardedRows(source.shards(), Taking(source.layout), source)
    else:
        rows = Rows(source)
    return rows.rescaled(np.full(6, 1.7), np.full(6, 0.01))


class _Watched:
    """The most private memory of this process and those below it, looked at now and then.

    Looking takes time of its own, which `work` has, and would slow a cluster whose scheduler lives
    in this process.
    """

    def __init__(self, every: float = 0.25) -> None:
        self.peak, self.work, self._ended, self._every = 0, 0.0, threading.Event(), every
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._every):
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


def _measurements(layout: RowLayout) -> list[Measurement]:
    """What a round of rate-constrained descent asks."""
    cells, model = (
        Cells(layout.sensitive, "product", layout.sensitive_names),
        Linear(np.full((1, 1 + layout.width), 0.1)),
    )
    return [
        Measurement(GradientSum(model, 1.0, cells, np.full((2, 1, 2), 0.3)), 0.0),
        Measurement(PredictionHistogram(model, cells, "hard", by_label=True), 0.0),
    ]


def _passes(rows: Rows, threads: int | None, count: int) -> Iterator[float]:
    """Seconds."""
    curator = Curator(rows, fv.Promise(float("inf"), 0.0), threads=threads)
    measurements = _measurements(rows.layout)
    for _ in range(count):
        start = time.perf_counter()
        curator.answer(measurements)
        yield time.perf_counter() - start


def _source(
    kind: str, rows: int, folder: Path, workers: int, *, only_written: bool = False
) -> tuple[Any, float]:
    """The rows, and what they take on the disk; a store or a file that is there is used again."""
    made = Made(rows)
    if kind in ("store", "dask"):
        there = (folder / "s").exists()
        store = data.open_store(folder / "s") if there else data.write_store(made, folder / "s")
        if kind == "dask":
            import distributed

            from fairveil.distributed import DaskRows, local_cluster

            return DaskRows(distributed.Client(local_cluster(workers)), store), store.nbytes
        return store, store.nbytes
    if kind in RIVALS:
        return _matrix(made), 0.0
    if kind == "memory":
        return data.EncodedRows(made.encoding, tuple(made.blocks())), 0.0
    if kind == "database":
        names = tuple(SCHEMA.columns)
        path = _database(made.blocks(), names, folder / "t.db")
    else:
        path = _parquet(rows, folder)
    if only_written:
        return None, 0.0
    os.environ |= {"FAIRVEIL_MEMORY": "1", "FAIRVEIL_SPILL": str(folder)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        query = {"query": "people"} if kind == "database" else {}
        return data.open(path, SCHEMA, precision="float32", **query), path.stat().st_size


def _database(blocks: Iterable[Any], names: tuple[str, ...], path: Path) -> Path:
    """The rows as a table of SQLite, written once."""
    if not path.exists():
        made = sqlite3.connect(path)
        made.execute(f"CREATE TABLE people ({', '.join(names)})")
        filled = f"INSERT INTO people VALUES ({', '.join('?' * len(names))})"
        for block in blocks:
            columns = [line.tolist() for line in (*block.numbers, *block.codes)]
            columns.append([("f", "m")[code] for code in block.sensitive[0].tolist()])
            columns.append([("no", "yes")[code] for code in block.labels.tolist()])
            made.executemany(filled, zip(*columns, strict=True))
        made.commit()
        made.close()
    return path


def _parquet(rows: int, folder: Path) -> Path:
    path = folder / "t.parquet"
    if not path.exists():
        _write_parquet(Made(rows), path)
    return path


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
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, *RIVALS), default=list(KINDS))
    parser.add_argument("--folder", help="where stores and files are made, and deleted")
    parser.add_argument("--fit", action="store_true")
    threads = "of a pass; 0: all"
    parser.add_argument("--threads", type=int, nargs="+", default=[None], help=threads)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--passes", type=int, default=7)
    parser.add_argument("--warm", type=int, default=1, help="passes before those that count")
    parser.add_argument("--workers", type=int, default=2, help="of the kind dask")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds of one kind at most")
    parser.add_argument("--encode", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--one", choices=(*KINDS, *RIVALS), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if set(asked.kinds) & set(RIVALS) and not asked.fit:
        parser.error("fairlearn and opacus have no pass: add --fit")
    return asked


if __name__ == "__main__":
    main()
