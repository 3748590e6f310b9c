"""How fast rows are coded, and in how much memory. Prints JSON.

    python benchmarks/encoding.py [--rows 200000]

The table has Adult's shape (6 numbers, 7 categories, a label, a group). `copy_seconds` is a pass of
NumPy that only copies the columns, the floor. Memory is the peak resident set of a process that
streams the CSV file, less that of one that only imports.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fairveil import data
from fairveil.data import EncodedRows, StreamedRows
from fairveil.data.synthetic.stream import ADULT_SIZES


def schema() -> data.Schema:
    columns: dict[str, Any] = {f"x{j}": data.Number(-1, 1) for j in range(6)}
    columns |= {
        f"c{j}": data.Category(tuple(f"value {v}" for v in range(size)))
        for j, size in enumerate(ADULT_SIZES)
    }
    columns |= {"group": data.Category(("a", "b")), "label": data.Category((0, 1))}
    return data.Schema(columns, target="label", sensitive="group")


def table(rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{j}": rng.uniform(-1.2, 1.2, rows) for j in range(6)}
    for j, size in enumerate(ADULT_SIZES):
        columns[f"c{j}"] = np.array([f"value {v}" for v in range(size)], dtype=object)[
            rng.integers(size, size=rows)
        ]
    columns["group"] = np.array(["a", "b"], dtype=object)[rng.integers(2, size=rows)]
    return {**columns, "label": rng.integers(2, size=rows)}


def seconds(work: Callable[[], object], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def coded_bytes(rows: EncodedRows | StreamedRows) -> int:
    return sum(
        part.nbytes
        for block in rows.blocks()
        for part in (block.numbers, block.codes, block.labels, block.sensitive)
        if part is not None
    )


def peak_mib(path: Path | None) -> float:
    """The peak memory of a fresh process that streams the file twice (or only imports)."""
    done = subprocess.run(
        [sys.executable, __file__, "--stream", str(path or "")],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def peak_of_this_process() -> float:
    """In MiB. Linux counts it anew for each program in VmHWM; ru_maxrss would be that of the
    parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def stream(path: str) -> None:
    if path:
        rows = data.load_csv(path, schema())
        for _ in rows.blocks():
            pass
    else:
        import pyarrow.csv  # noqa: F401  # what a stream loads, too
    print(peak_of_this_process())


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--stream", default=None)
    asked = options.parse_args()
    if asked.stream is not None:
        stream(asked.stream)
        return
    rows, columns = asked.rows, table(asked.rows)
    result: dict[str, Any] = {"rows": rows, "cores": os.cpu_count()}
    copy = seconds(lambda: [column.copy() for column in columns.values()])
    makes: dict[str, Callable[[], Any]] = {"arrays": lambda: columns}
    for name, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        if importlib.util.find_spec(name):
            makes[name] = lambda name=name, make=make: getattr(__import__(name), make)(columns)
    result["encode_seconds"] = {}
    for name, made in makes.items():
        given = made()
        result["encode_seconds"][name] = round(
            seconds(lambda given=given: data.encode(given, schema())), 4
        )
    result["copy_seconds"] = round(copy, 4)
    result["coded_mib"] = round(coded_bytes(data.encode(columns, schema())) / 2**20, 1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w") as text:
            text.write(",".join(columns) + "\n")
            text.writelines(
                ",".join(map(str, row)) + "\n"
                for row in zip(*(c.tolist() for c in columns.values()), strict=True)
            )
        result["csv_mib"] = round(path.stat().st_size / 2**20, 1)
        engines = ["csv", *(["pyarrow"] if importlib.util.find_spec("pyarrow") else [])]
        result["csv_check_seconds"] = {
            e: round(seconds(lambda e=e: data.load_csv(path, schema(), engine=e), 1), 3)
            for e in engines
        }
        result["streaming_peak_mib"] = round(peak_mib(path) - peak_mib(None), 1)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
