"""Writers that compete for a ledger, and writers that are killed: run in a process of its own, by a
test.

    python many_processes.py crowd URL DATASET --processes 8 --times 200
    python many_processes.py points URL DATASET
    python many_processes.py kills URL DATASET --times 30 --seed 0
    python many_processes.py stops FILE DATASET --times 30 --seed 0

prints one JSON object of what was acknowledged, for whoever started it to hold against the ledger.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairveil.core.events import Pure
from fairveil.errors import Overspent
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.stores import sqlite
from fairveil.privacy.ledger.stores.postgres import _Transaction as OnAServer
from fairveil.privacy.ledger.stores.sqlite import _Transaction as InAFile
from fairveil.privacy.ledger.stores.tables import TablePage

ONE = Pure(0.001)
DEEDS = ("reserve", "resume", "commit", "refund")
EVERY = 7  # so many points on, another one of them
POINTS = ("before the line", "before the commit", "after the commit")


def crowd(url: str, dataset: str, processes: int, times: int) -> dict[str, Any]:
    """Each process asks `times` times for the same: how often each was granted, and how long the
    longest wait was."""
    pipes = []
    began = time.perf_counter()
    for _ in range(processes):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os._exit(_ask(url, dataset, times, writer))
        os.close(writer)
        pipes.append(reader)
    told = [json.loads(_all_of(reader)) for reader in pipes]
    for _ in pipes:
        os.wait()
    return {
        "granted": [one["granted"] for one in told],
        "spends": [spend for one in told for spend in one["spends"]],
        "refused": [one["refused"] for one in told],
        "slowest": max(one["slowest"] for one in told),
        "seconds": time.perf_counter() - began,
    }


def _ask(url: str, dataset: str, times: int, writer: int) -> int:
    ledger = Ledger.open(url, dataset)
    spends, refused, slowest = [], 0, 0.0
    for _ in range(times):
        began = time.perf_counter()
        try:
            spends.append(ledger.reserve(ONE).id)
        except Overspent:
            refused += 1
        slowest = max(slowest, time.perf_counter() - began)
    told = {"granted": len(spends), "spends": spends, "refused": refused, "slowest": slowest}
    with os.fdopen(writer, "w") as file:
        json.dump(told, file)
    return 0


def points(url: str, dataset: str) -> list[dict[str, str]]:
    """A writer that is killed at each named point of each deed: which, and the spend that it was
    about, where it was told."""
    told = []
    for deed in DEEDS:
        for point in POINTS:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _die(url, dataset, deed, point, writer)
            os.close(writer)
            said = _all_of(reader).decode()
            _, status = os.waitpid(child, 0)
            told.append(
                {"deed": deed, "point": point, "spend": said, "by": str(os.WTERMSIG(status))}
            )
    return told


def _die(url: str, dataset: str, deed: str, point: str, writer: int) -> None:
    ledger = Ledger.open(url, dataset)
    spend = None if deed == "reserve" else ledger.reserve(ONE)
    if spend is not None:
        os.write(writer, spend.id.encode())

    def at(reached: str) -> None:
        if reached == point:
            os.kill(os.getpid(), signal.SIGKILL)

    _tell(at)
    if spend is None:
        ledger.reserve(ONE)
    elif deed == "resume":
        ledger.resume(spend.id, 1)
    else:
        getattr(spend, deed)()
    os._exit(1)


def _tell(at: Callable[[str], None]) -> None:
    """Have each named point told when it is reached."""
    append = TablePage.append

    def appended(page: TablePage, entry: Any) -> None:
        at("before the line")
        append(page, entry)
        at("before the commit")

    TablePage.append = appended  # type: ignore[method-assign]
    for kind in (InAFile, OnAServer):

        def kept(block: Any, keep: Callable[[Any], None] = kind._keep) -> None:
            keep(block)
            at("after the commit")

        kind._keep = kept  # type: ignore[method-assign]


def kills(url: str, dataset: str, times: int, seed: int) -> dict[str, Any]:
    """Writers that reserve, commit and refund without rest, each killed at a random moment; what
    they said before it."""
    rng = random.Random(seed)
    said: list[list[str]] = []
    phases: dict[str, int] = {}
    for _ in range(times):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _live(url, dataset, rng.random(), writer)
        os.close(writer)
        first = os.read(reader, 1)  # it has opened the store
        time.sleep(rng.uniform(0.0, 0.04))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines = [
            line.split()
            for line in (first + _all_of(reader)).decode().splitlines()
            if line.endswith(".")
        ]
        said += lines
        last = lines[-1][0] if lines else "open"
        phases[last] = phases.get(last, 0) + 1
    return {"said": said, "phases": phases}


def _live(url: str, dataset: str, chance: float, writer: int, every: int = 0) -> None:
    """Without rest; but it stops itself at every so many named points."""
    rng, ledger, reached = random.Random(chance), Ledger.open(url, dataset), 0

    def stop(_: str) -> None:
        nonlocal reached
        reached += 1
        if every and reached % every == 0:
            os.kill(os.getpid(), signal.SIGSTOP)

    _tell(stop)

    def say(what: str, spend: str = "-") -> None:
        os.write(writer, f"{what} {spend} .\n".encode())

    say("opened")
    while True:
        say("reserving")
        spend = ledger.reserve([ONE] * rng.randint(1, 3))
        say("reserved", spend.id)
        end = rng.choice(["commit", "refund", "leave", "break-off"])
        say(f"to-{end}", spend.id)
        if end == "commit":
            spend.commit()
            say("committed", spend.id)
        elif end == "break-off":
            spend.commit([ONE], complete=False)
            say("committed", spend.id)
        elif end == "refund":
            spend.refund()
            say("refunded", spend.id)


def stops(path: str, dataset: str, times: int, seed: int) -> dict[str, Any]:
    """The power fails: a writer is stopped at one named point after another, and the database and
    its log are copied as they are on the disk. What each copy lacks of what was acknowledged
    before."""
    rng, lost, grave = random.Random(seed), 0, 0
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _live(path, dataset, rng.random(), writer, every=EVERY)
    os.close(writer)
    os.set_blocking(reader, False)
    heard, acknowledged = b"", 0
    try:
        for _ in range(times):
            os.waitpid(child, os.WUNTRACED)
            heard += _now_in(reader)
            lines = [line.split() for line in heard.decode().splitlines() if line.endswith(".")]
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder) / "copy.db"
                for end in ("", "-wal"):
                    if Path(path + end).exists():
                        shutil.copy(path + end, f"{copy}{end}")
                found = Ledger.open(copy, dataset)
                kinds = {(line.spend, line.kind) for line in found.history()}
                wanted = {
                    (spend, what)
                    for what, spend, _ in lines
                    if what in ("reserved", "committed", "refunded")
                }
                lost += len(wanted - kinds)
                grave += sum(one.grave for one in found.check())
                acknowledged = len(wanted)
                found.close()
            os.kill(child, signal.SIGCONT)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {"lost": lost, "grave": grave, "acknowledged": acknowledged}


def _now_in(reader: int) -> bytes:
    out = b""
    while True:
        try:
            part = os.read(reader, 1 << 16)
        except BlockingIOError:
            return out
        if not part:
            return out
        out += part


def _all_of(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as file:
        return file.read()


def main() -> None:
    """Run one of the four."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["crowd", "points", "kills", "stops"])
    parser.add_argument("url")
    parser.add_argument("dataset")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sqlite.PATIENCE = 600.0  # of a crowd on a busy machine somebody may wait long
    told: Any
    if given.what == "crowd":
        told = crowd(given.url, given.dataset, given.processes, given.times)
    elif given.what == "points":
        told = points(given.url, given.dataset)
    else:
        told = {"kills": kills, "stops": stops}[given.what](
            given.url, given.dataset, given.times, given.seed
        )
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
