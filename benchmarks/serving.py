"""A door under load, faults and noise: figures for docs/serving_measured.md.
`python benchmarks/serving.py --help`.

--analysts 50 --runs 2000     as many analysts at once, as many runs in all: budget exactly spent, none lost
--kills 200                   server and analyst are killed at random points; every fit goes on or is charged, once
--fuzz 100000                 mutated requests over HTTP: typed 4xx, no 5xx, memory flat
--latency 200                 an ask on Adult through the door beside the local call, p50 and p99; a default fit
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "serving"))

import crashing_analyst
import crashing_door
from crashing_door import POINTS
from door_faults import faults
from doors import SCHEMA, place_in, served
from test_serving_crashes import free_port, started

import fairveil as fv
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    Measurement,
    PredictionHistogram,
    Rows,
)
from fairveil.data import Encoding, get, open_store, write_store
from fairveil.facts import Cells
from fairveil.privacy.events import Gaussian, Repeated, compose
from fairveil.privacy.promise import Promise
from fairveil.privacy.statement import signing_keys
from fairveil.privacy.statement.statement import PrivacyStatement
from fairveil.serving.analyst import connection
from fairveil.serving.analyst.remote_curator import RemoteCurator
from fairveil.serving.door.records import Records
from fairveil.serving.door.tokens import Tokens
from fairveil.serving.wire.catalogue import measurement_described
from fairveil.serving.wire.messages import Packing

CELLS = Cells((("f", "m"),), names=("sex",))
GENEROUS = "requests_a_minute = 1000000\nopen_runs = 10000\nopen_runs_in_all = 10000"


def rows_elsewhere(data: Any) -> Any:
    return data.rows(Encoding(SCHEMA).layout, SCHEMA, False)


def load(analysts: int, runs: int, folder: Path) -> None:
    """So many analysts at once; the budget is for exactly so many runs, and a tenth more are
    tried."""
    plan, promise = Repeated(Gaussian(40.0), 3), Promise(1.0, 1e-6)
    probe = fv.Ledger.create(None, "probe", 1000.0, 1e-4)
    probe.reserve(plan, promise, purpose="probe").commit()
    probe.reserve(plan, promise, purpose="probe").commit()
    # In a Renyi filter every run costs alike: the epsilon that so many runs need is read off a
    # ledger of plenty.
    each = probe.balance().spent_share / 2
    place = place_in(folder, epsilon=1000.0, seeded=False, limits=GENEROUS)
    done: Counter[str] = Counter()
    lock = threading.Lock()
    with served(place) as (door, url):
        begin = time.perf_counter()

        def work(number: int) -> None:
            data = fv.remote(url, "applicants", token=door.tokens.issue(f"analyst {number}"))
            for _ in range(runs // analysts + (number < runs % analysts)):
                try:
                    with RemoteCurator(rows_elsewhere(data), promise, plan=plan) as curator:
                        for _ in range(3):
                            curator.answer([Measurement(CellCounts(CELLS), 40.0)])
                        curator.finish()
                    word = "finished"
                except fv_errors() as error:
                    word = type(error).__name__
                with lock:
                    done[word] += 1
            data.close()

        with ThreadPoolExecutor(analysts) as pool:
            list(pool.map(work, range(analysts)))
        seconds = time.perf_counter() - begin
        states = Counter(run.state + " " + run.how for run in door.records.runs(most=10**6))
    balance = place.ledger().balance()
    rate = 5 * runs / seconds
    print(
        f"load: {analysts} analysts, {runs} runs of 3 asks in {seconds:.0f} s ({rate:.0f} "
        f"requests/s): {dict(done)}"
    )
    print(
        f"  records {dict(states)}; ledger: committed {balance.committed}, open {balance.open}, "
        f"refunded {balance.refunded}"
    )
    print(
        f"  spent share {balance.spent_share:.9f}, expected {each * done['finished']:.9f}; "
        f"findings {place.ledger().check()}"
    )


def exact(folder: Path) -> None:
    """Runs at once for a budget that holds only some of them: what was granted fits, and what was
    refused would not have."""
    plan, promise = Repeated(Gaussian(4.0), 4), Promise(4.0, 1e-6)
    place = place_in(folder, epsilon=20.0, seeded=False, limits=GENEROUS)
    done: Counter[str] = Counter()
    with served(place) as (door, url):

        def work(number: int) -> None:
            data = fv.remote(url, "applicants", token=door.tokens.issue(f"analyst {number}"))
            try:
                with RemoteCurator(rows_elsewhere(data), promise, plan=plan) as curator:
                    for _ in range(4):
                        curator.answer([Measurement(CellCounts(CELLS), 4.0)])
                    curator.finish()
                done["finished"] += 1
            except fv_errors() as error:
                done[type(error).__name__] += 1
            data.close()

        with ThreadPoolExecutor(50) as pool:
            list(pool.map(work, range(200)))
        fits = door.datasets["applicants"].ledger.fits(plan, promise)
    balance = place.ledger().balance()
    print(
        f"exactly spent: {dict(done)}; spent {balance.spent_share:.4f}, one more fits: {fits}, "
        f"open {balance.open}"
    )


def fv_errors() -> type[Exception]:
    from fairveil.errors import FairveilError

    return FairveilError


def kills(count: int, folder: Path, seed: int = 0) -> None:
    """One place, one fit after another; in each the server or the analyst is killed at a random
    call of a random point.

    Both are forks of one process that has imported all, so that a server is up again soon. At the
    end the clock ends what killed analysts left, and records and ledger are compared, run by run.
    """
    connection.WAIT = 0.2
    rng, place, port = (
        random.Random(seed),
        place_in(folder, epsilon=5000.0, seeded=False, limits=GENEROUS),
        free_port(),
    )
    records = Records(folder / "door", serves=False)
    token = Tokens(records).issue("analyst")
    records.close()
    alone = fv.FermiClassifier(solver=fv.Descent(rounds=6)).fit(place.rows).privacy_.events
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["crashing_door", "crashing_analyst"])
    outcomes: Counter[str] = Counter()
    servers = Servers(forks, place.config, port)
    for number in range(count):
        point, at, when = (
            rng.choice(list(POINTS)),
            rng.randint(1, 6),
            rng.choice(["before", "after"]),
        )
        of_analyst = point == "sent"
        servers.start(*(() if of_analyst else (point, str(at), when)))
        told, tell = forks.Pipe(duplex=False)
        options = (at + rng.randint(0, 6), when) if of_analyst else ()
        given = (f"http://127.0.0.1:{port}", token, str(place.public_key), tell, *options)
        analyst = forks.Process(target=crashing_analyst.fit, args=given)
        analyst.start()
        tell.close()
        found: Any = None
        try:
            found = told.recv() if told.poll(300) else "no answer in 300 seconds"
        except EOFError:
            outcomes["analysts killed"] += 1
        analyst.join()
        outcomes["servers killed"] += servers.stop()
        if isinstance(found, str):
            outcomes[f"ended at {point} {at} {when}: {found}"[:200]] += 1
        elif found is not None:
            statement = PrivacyStatement.from_json(found[0])
            wrong = [] if statement.events == alone else ["other events than the plan's"]
            wrong += [
                str(finding)
                for finding in place.ledger().check([statement.ledger])
                if finding.grave
            ]
            wrong += [str(finding) for finding in statement.check() if finding.grave]
            wrong += faults(place, ended=False)
            outcomes[f"WRONG {point} {at} {when}: {wrong}" if wrong else "whole, paid once"] += 1
        if number % 20 == 19:
            print(f"  {number + 1} points: {dict(outcomes)}", flush=True)
    door = place.door()
    ended = door.runs.sweep(time.time() + 3600.0)
    door.close()
    balance = place.ledger().balance()
    print(f"kills: {dict(outcomes)}; ended by the clock {ended}")
    print(
        f"  ledger: committed {balance.committed}, open {balance.open}, refunded "
        f"{balance.refunded}; faults {faults(place)}"
    )


class Servers:
    """One server after another on one port: who is killed is followed by the next, until they are
    stopped."""

    def __init__(self, forks: Any, config: Path, port: int) -> None:
        self._forks, self._given = forks, (str(config), str(port))

    def start(self, *point: str) -> None:
        """The first one, which is killed at a point."""
        self._over, self._started = threading.Event(), [self._next(*point)]
        self._watching = threading.Thread(target=self._follow)
        self._watching.start()

    def stop(self) -> int:
        """How many were killed before."""
        self._over.set()
        self._watching.join()
        self._started[-1].kill()
        self._started[-1].join()
        return len(self._started) - 1

    def _next(self, *point: str) -> Any:
        up = self._forks.Event()
        process = self._forks.Process(
            target=crashing_door.main, args=(*self._given, *point), kwargs={"up": up.set}
        )
        process.start()
        while not up.wait(0.02) and process.is_alive():
            pass
        return process

    def _follow(self) -> None:
        while not self._over.is_set():
            self._started[-1].join(0.02)
            if self._started[-1].exitcode is not None and not self._over.is_set():
                self._started.append(self._next())


def fuzz(count: int, folder: Path, seed: int = 0) -> None:
    """Mutations of good requests, over HTTP."""
    rng = random.Random(seed)
    place = place_in(folder, epsilon=1000.0, seeded=False, limits=GENEROUS)
    statuses: Counter[int] = Counter()
    with served(place) as (door, url):
        token = door.tokens.issue("hostile")
        data = fv.remote(url, "applicants", token=token)
        curator = RemoteCurator(
            rows_elsewhere(data), Promise(50.0, 1e-6), plan=Repeated(Gaussian(60.0), 100_000)
        )
        packing = Packing()
        told = measurement_described(
            Measurement(GradientSum(Linear(np.zeros(6)), 1.0, CELLS), 60.0), packing
        )
        good = packing.packed({"asks": [told], "batch": {"kind": "full"}, "purpose": ""})
        words = [
            b"null",
            b"1e999",
            b"-1",
            b'"x"',
            b"[" * 50,
            b"{}",
            b"true",
            b"9" * 30,
            b'"\\ud800"',
            bytes(64),
        ]
        line = http.client.HTTPConnection("127.0.0.1", int(url.rpartition(":")[2]), timeout=60)
        begin, first = time.perf_counter(), 0
        for number in range(count):
            raw = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                at = rng.randrange(len(raw))
                if rng.random() < 0.5:
                    raw[at] = rng.randrange(256)
                else:
                    raw[at : at + rng.randrange(9)] = rng.choice(words)
            if rng.random() < 0.6 and len(raw) > 8:
                raw[4:8] = min(
                    (len(raw) - 8), int.from_bytes(good[4:8], "little") + rng.randint(-2, 2)
                ).to_bytes(4, "little")
            act = rng.choice(
                ["ask", "ask", "ask", "choose", "attach", "rescale", "statement", "table", "x"]
            )
            path = f"/v1/runs/{curator._run if rng.random() < 0.95 else 'f' * 32}/{act}"
            headers = {
                "Authorization": f"Bearer {token if rng.random() < 0.98 else token[:-1]}",
                "Idempotency-Key": f"fuzz-{number:08d}",
            }
            try:
                line.request("POST", path, bytes(raw), headers)
                response = line.getresponse()
                response.read()
                statuses[response.status] += 1
            except (OSError, http.client.HTTPException):
                statuses[0] += 1
                line.close()
            if number == count // 10:
                first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = time.perf_counter() - begin
        released = len(door.records.entries(curator._run))
        line.close()
        curator.close()
        data.close()
    last = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"fuzz: {count} requests in {seconds:.0f} s: {dict(sorted(statuses.items()))}, releases "
        f"{released}"
    )
    print(
        f"  peak memory after a tenth {first / 1024:.0f} MB, at the end {last / 1024:.0f} MB "
        f"(server and client in one process)"
    )


def latency(count: int, folder: Path) -> None:
    """Adult: a round of descent, asked through the door and beside the rows; and default fits."""
    folder.mkdir(parents=True, exist_ok=True)
    adult = get("adult")
    schema = adult.schema
    (folder / "adult.toml").write_text(schema.to_toml())
    write_store(adult.rows, folder / "adult.store")
    fv.Ledger.create(str(folder / "budget.db"), "adult", 10_000.0, 1e-4)
    signing_keys.new_key(folder / "holder.key")
    (folder / "holder.toml").write_text(
        '[door]\nname = "O"\nfolder = "door"\nsigning_key = "holder.key"\nport = '
        "0\n[limits]\nrequests_a_minute = 1000000\n"
        '[datasets.adult]\nrows = "adult.store"\nschema = "adult.toml"\nledger = '
        '"budget.db"\nseeded = true\n'
    )
    records = Records(folder / "door", serves=False)
    token = Tokens(records).issue("analyst")
    records.close()
    port = free_port()
    server = started(folder / "holder.toml", port)  # a process of its own, as a holder runs it
    rows = open_store(folder / "adult.store").rows(schema)
    layout = rows.layout
    model = Linear(np.zeros(1 + layout.width))
    cells = Cells(layout.sensitive, names=layout.sensitive_names)
    asks = [
        Measurement(GradientSum(model, 1.0, cells, np.zeros((cells.count, 1, 2))), 60.0),
        Measurement(PredictionHistogram(model, cells), 60.0),
    ]
    plan = Repeated(compose([Gaussian(60.0), Gaussian(60.0)]), count)
    promise = Promise(20.0, 1e-6)
    try:
        data = fv.remote(f"http://127.0.0.1:{port}", "adult", token=token)
        local, far = (
            Curator(Rows(rows), promise, plan=plan),
            RemoteCurator(data.rows(layout, schema, False), promise, plan=plan),
        )
        for name, curator in (("local", local), ("through the door", far)):
            times = []
            for _ in range(count):
                begin = time.perf_counter()
                curator.answer(asks)
                times.append(1e3 * (time.perf_counter() - begin))
            p50, p99 = np.percentile(times[5:], [50, 99])
            print(
                f"latency of an ask on Adult, {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms ({count} "
                f"asks)"
            )
            curator.close()
        for name, make in (
            (
                "RateConstrainedClassifier",
                lambda: fv.RateConstrainedClassifier("demographic_parity:0.05", random_state=0),
            ),
            ("FermiClassifier", lambda: fv.FermiClassifier(random_state=0)),
        ):
            make().fit(rows)
            spans: dict[str, list[float]] = {"local": [], "door": []}
            for _ in range(15):
                for place, given in (("local", rows), ("door", data)):
                    begin = time.perf_counter()
                    found = make().fit(given)
                    spans[place].append(time.perf_counter() - begin)
            here, there = (float(np.median(spans[place])) for place in ("local", "door"))
            same = (make().fit(rows).predict_proba(rows) == found.predict_proba(rows)).all()
            # what other work on the machine disturbed least
            fastest = min(spans["door"]) / min(spans["local"])
            told = (
                f"local {here:.2f} s, door {there:.2f} s, {there / here:.1f} times, fastest of 15 "
                f"{fastest:.1f} times"
            )
            told += f" ({min(spans['local']):.2f} and {min(spans['door']):.2f} s); same bits {same}"
            print(f"default fit of {name} on Adult: {told}")
        data.close()
    finally:
        server.kill()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, usual in (
        ("analysts", 50),
        ("runs", 2000),
        ("kills", 200),
        ("fuzz", 100_000),
        ("latency", 200),
    ):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    print(f"cores {os.cpu_count()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if given.latency:
            latency(given.latency, place / "latency")
        if given.runs:
            load(given.analysts, given.runs, place / "load")
            exact(place / "exact")
        if given.fuzz:
            fuzz(given.fuzz, place / "fuzz")
        if given.kills:
            kills(given.kills, place / "kills")


if __name__ == "__main__":
    main()
