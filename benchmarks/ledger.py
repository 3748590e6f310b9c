"""How fast a ledger is, and how it stands up to crowds, kills and power failures.

    python benchmarks/ledger.py                                    # SQLite
    python benchmarks/ledger.py --postgres postgresql://...        # and PostgreSQL, in an empty database
    python benchmarks/ledger.py --kills 300 --stops 300 --markdown

The floor is one bare insertion in a transaction of the same database with the same durability, in
the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairveil.privacy.events import Pure
from fairveil.privacy.ledger import Ledger

SCRIPT = Path(__file__).parent.parent / "tests" / "privacy" / "ledger" / "many_processes.py"
ONE = Pure(1e-6)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--postgres")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--stops", type=int, default=300)
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    rows: list[tuple[str, str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, url in (
            ("SQLite", str(Path(folder) / "budget.db")),
            ("PostgreSQL", given.postgres),
        ):
            if url is not None:
                rows += [(name, what, value) for what, value in _all(url, given, name == "SQLite")]
    line = "| {} | {} | {} |" if given.markdown else "{:12}{:58}{}"
    print(line.format("store", "what", "measured"))
    if given.markdown:
        print("|---|---|---|")
    for row in rows:
        print(line.format(*row))


def _all(url: str, given: argparse.Namespace, is_file: bool) -> list[tuple[str, str]]:
    return [
        *_crowd(url),
        *_kills(url, given.kills),
        *(_stops(url, given.stops) if is_file else []),
        *_speed(url, given.entries),
    ]


def _run(*words: object) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _crowd(url: str) -> list[tuple[str, str]]:
    ledger = Ledger.create(url, "crowd", 1.0, 0.0)
    told = _run("crowd", url, "crowd", "--processes", 8, "--times", 200)
    kept = {line.spend for line in ledger.history() if line.kind == "reserved"}
    lost = len(set(told["spends"]) - kept)
    words = (
        f"{sum(told['granted'])} granted, {lost} lost, in {told['seconds']:.1f} s; slowest call "
        f"{told['slowest']:.2f} s"
    )
    return [("8 processes x 200 reservations, room for 1,000", words)]


def _kills(url: str, times: int) -> list[tuple[str, str]]:
    ledger = Ledger.create(url, "kills", 500.0, 0.0)
    told = _run("kills", url, "kills", "--times", times)
    kinds = {(line.spend, line.kind) for line in ledger.history()}
    said = {
        (spend, what)
        for what, spend, _ in told["said"]
        if what in ("reserved", "committed", "refunded")
    }
    grave = sum(one.grave for one in ledger.check())
    last = ", ".join(f"{name} {count}" for name, count in sorted(told["phases"].items()))
    return [
        (
            f"{times} writers killed",
            f"{len(said - kinds)} of {len(said)} lost, {grave} contradictions (killed after: "
            f"{last})",
        )
    ]


def _stops(url: str, times: int) -> list[tuple[str, str]]:
    Ledger.create(url, "stops", 5000.0, 0.0)
    told = _run("stops", url, "stops", "--times", times)
    words = f"{told['lost']} of {told['acknowledged']} lost, {told['grave']} contradictions"
    return [(f"{times} power failures (stopped, copied, opened again)", words)]


def _speed(url: str, entries: int) -> list[tuple[str, str]]:
    ledger = Ledger.create(url, "speed", 1.0, 0.0)
    before = _times(lambda: ledger.reserve(ONE), 200)
    began = time.perf_counter()
    while ledger.balance().entries < entries:
        for _ in range(1000):
            ledger.reserve(ONE).commit()
    filling = time.perf_counter() - began
    after = _times(lambda: ledger.reserve(ONE), 200)
    floor = _times(_floor(url), 200)
    command = [
        sys.executable,
        "-m",
        "fairveil",
        "ledger",
        "show",
        url,
        "--dataset",
        "speed",
        "--json",
    ]
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    show = _times(lambda: subprocess.run(command, check=True, capture_output=True, env=env), 5)
    balance = _times(lambda: ledger.balance(), 5)
    check = _times(lambda: ledger.check(), 1)
    told = (
        f"{statistics.median(after) * 1e3:.2f} ms (95 of 100 below {sorted(after)[189] * 1e3:.1f})"
    )
    ratio = statistics.median(after) / statistics.median(floor)
    ledger.close()
    return [
        ("a reservation, empty ledger", f"{statistics.median(before) * 1e3:.2f} ms"),
        (f"a reservation, {entries:,} entries", told),
        (
            "... as a ratio to a bare durable insertion",
            f"{ratio:.2f} ({statistics.median(floor) * 1e3:.2f} ms)",
        ),
        (f"{entries:,} entries written", f"{filling:.0f} s"),
        ("`balance()`", f"{statistics.median(balance):.2f} s"),
        (
            "`fairveil ledger show --json`, the process's start included",
            f"{statistics.median(show):.2f} s",
        ),
        ("`check()`", f"{check[0]:.1f} s"),
    ]


def _floor(url: str) -> Callable[[], object]:
    """One durable insertion of a line as long as a ledger's, and nothing else."""
    line = "x" * 700
    if "://" not in url:
        connection = sqlite3.connect(f"{url}.floor", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE lines (number INTEGER PRIMARY KEY, line TEXT)")
        return lambda: connection.execute("INSERT INTO lines (line) VALUES (?)", (line,))
    import psycopg

    server = psycopg.connect(url, autocommit=True)
    server.execute("CREATE TABLE floor_lines (number SERIAL PRIMARY KEY, line TEXT)")
    return lambda: server.execute("INSERT INTO floor_lines (line) VALUES (%s)", (line,))


def _times(call: Callable[[], object], times: int) -> list[float]:
    out = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        out.append(time.perf_counter() - began)
    return out


if __name__ == "__main__":
    main()
