"""What one token may take: prices, codes, bytes, threads. Others, health and the holder's page are
answered meanwhile. Nothing here is timed: what would be held up waits for what is never let go."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import Analyst, Refused, faults, place_in, released, served

from fairveil.core.events import Gaussian, PoissonSampled, Repeated, compose
from fairveil.curator import Measurement, RowCount
from fairveil.serving import app
from fairveil.serving.app import AT_ONCE
from fairveil.serving.pricing import Pricer
from fairveil.serving.runs import MOST_FINISHED, Server
from fairveil.serving.wire import packed

Up = tuple[Server, str]
DEAR = compose(
    PoissonSampled(0.01 + 1e-5 * place, Gaussian(1.5 + 0.013 * place)) for place in range(400)
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    limits = "pricing_seconds = 2\nkept_bytes = 150000\ncodes = 3\nopen_runs = 8"
    with served(place_in(tmp_path_factory.mktemp("holder"), limits=limits)) as found:
        yield found


def got(url: str, path: str, **headers: str) -> int:
    to = url.rpartition("/")[2]
    with closing(http.client.HTTPConnection(to, timeout=120)) as line:
        line.request("GET", path, headers=headers)
        return line.getresponse().status


def test_a_plan_that_takes_too_long_to_price_is_refused_and_holds_nobody_up(up: Up) -> None:
    """It is priced by a process with a limit of its own, and reserves nothing."""
    one, two = Analyst(*up), Analyst(*up)
    run = two.open()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(one.open, DEAR)
        two.ask(run)
        assert two.divide()
        two.act(two.open(), "close", {})
        with pytest.raises(Refused) as refused:
            asked.result()
    assert (refused.value.status, refused.value.word) == (422, "too-costly")
    assert not [record for record in up[0].records.runs() if record.token == one.id]
    two.act(run, "close", {})
    one.act(one.open(), "close", {})  # by a process that was started anew


def held(up: Up, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> Any:
    """A method that waits until it is let go, and a count of those inside."""
    inside, go, plain = threading.Semaphore(0), threading.Event(), getattr(owner, name)

    def slow(*given: Any, **named: Any) -> Any:
        inside.release()
        assert go.wait(120)
        return plain(*given, **named)

    monkeypatch.setattr(owner, name, slow)
    return inside, go


def test_of_one_token_one_plan_is_priced_and_others_open_meanwhile(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Analyst(*up), Analyst(*up)
    names, go, lock, plain = [], threading.Event(), threading.Lock(), Pricer.require

    def slow(self: Pricer, plan: Any, *given: Any) -> None:
        with lock:
            names.append(plan)
            is_first = len(names) == 1
        if is_first:
            assert go.wait(120)
        plain(self, plan, *given)

    monkeypatch.setattr(Pricer, "require", slow)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(one.open) for _ in range(3)]
        while not names:
            two.spent()
        two.act(two.open(), "close", {})
        assert len(names) == 2
        go.set()
        for each in waiting:
            one.act(each.result(), "close", {})


def test_one_token_does_not_take_all_threads(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Analyst(*up), Analyst(*up)
    inside, go = held(up, monkeypatch, Server, "facts")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(one.sent, "GET", "datasets", "applicants") for _ in range(AT_ONCE)]
        for _ in range(AT_ONCE):
            assert inside.acquire(timeout=120)
        with pytest.raises(Refused) as refused:
            one.spent()
        assert refused.value.status == 429
        two.act(two.open(), "close", {})
        go.set()
        assert all(json.loads(each.result()) for each in asked)


def test_health_and_the_holders_page_have_threads_of_their_own(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others wait for what is not let go."""
    inside, go = held(up, monkeypatch, Server, "facts")
    analysts = [Analyst(*up) for _ in range(app.THREADS // AT_ONCE + 1)]
    with ThreadPoolExecutor(AT_ONCE * len(analysts)) as pool:
        asked = [
            pool.submit(one.sent, "GET", "datasets", "applicants")
            for one in analysts
            for _ in range(AT_ONCE)
        ]
        for _ in range(app.THREADS):
            assert inside.acquire(timeout=120)
        secret = up[0].records.issue("holder", "holder")
        told = {"Authorization": "Basic " + base64.b64encode(f"me:{secret}".encode()).decode()}
        assert got(up[1], "/holder", **told) == 200
        assert [got(up[1], path) for path in ("/healthz", "/holder", "/v1")] == [200, 401, 200]
        go.set()
        for each in asked:
            each.result()


def attach(one: Analyst, run: str) -> None:
    codes = {"model": None, "edges": None, "cells": None, "table": None}
    one.act(run, "attach", {**codes, "count": 2, "title": "", "handle": "codes"})


def test_codes_of_a_token_are_bounded_and_free_when_its_runs_end(up: Up) -> None:
    one, server = Analyst(*up), up[0]
    for _ in range(2):
        mine = [one.open(), one.open()]
        attach(one, mine[0])
        attach(one, mine[0])
        attach(one, mine[1])
        with pytest.raises(Refused) as refused:
            attach(one, mine[1])
        assert refused.value.word == "no-room"
        attach(two := Analyst(*up), other := two.open())
        two.act(other, "close", {})
        one.ask(mine[1])
        for run in mine:
            one.act(run, "close", {})
        assert not set(mine) & set(server._held)
    done = [one.open(Gaussian(4000.0)) for _ in range(2)]
    for run in done:  # and a finished one lets go of its own for others
        attach(one, run)
        one.ask(run, Measurement(RowCount(), 4000.0))
        one.act(run, "finish", {})
    assert [run in server._held for run in done] == [False, True]
    one.resume(done[0])
    assert one.statement(done[0]).epsilon > 0
    server.sweep(time.time() + 60.0 * 31)
    assert server._held == {}


LONG = Measurement(RowCount(copies=4000), 4000.0)


def kept(up: Up) -> int:
    return sum(file.stat().st_size for file in up[0].records.journal("x").parent.iterdir())


def test_what_is_kept_of_a_token_is_bounded_and_free_when_its_runs_end(up: Up) -> None:
    """A reply that would be one too many is refused before anything is drawn."""
    one, before = Analyst(*up), kept(up)
    for _ in range(3):
        run, asked = one.open(Repeated(Gaussian(4000.0), 40_000)), 0
        word: Any = ""
        while not word:
            try:
                one.ask(run, LONG)
                asked += 1
            except Refused as refused:
                word = refused.word
        assert word == "no-room"
        assert asked == len(released(up[0].records, run)) / 4000 == 2
        one.act(run, "close", {})
        up[0].sweep()  # settles what a ledger that was held could not be told
        assert kept(up) == before


def test_refused_openings_and_arrays_that_nothing_names_leave_nothing(up: Up) -> None:
    one, folder = Analyst(*up), up[0].records.path.parent
    junk = packed({**one.content(), "purpose": np.zeros(1_000_000)})
    size = sum(file.stat().st_size for file in folder.iterdir())
    for body, status in ((junk, 422), (packed(one.content(Gaussian(0.05))), 409)):
        for _ in range(5):
            with pytest.raises(Refused) as refused:
                one.sent("POST", "runs", body=body)
            assert refused.value.status == status
    assert not [record for record in up[0].records.runs() if record.token == one.id]
    assert sum(file.stat().st_size for file in folder.iterdir()) - size < 5_000_000  # of 40 MB
    assert up[0]._held == {}


def test_a_finished_run_is_stated_until_the_clock_lets_go_of_it(tmp_path: Path) -> None:
    """By its curator, or one that is taken up again."""
    with served(place_in(tmp_path)) as up:
        one, runs = Analyst(*up), []
        for _ in range(MOST_FINISHED + 1):
            runs.append(one.open(Gaussian(4000.0)))
            one.ask(runs[-1], Measurement(RowCount(), 4000.0))
            one.act(runs[-1], "finish", {})
        assert len(up[0]._held) == MOST_FINISHED
        assert one.statement(runs[-1]).epsilon > 0
        one.resume(runs[0])
        assert one.statement(runs[0]).epsilon > 0
        assert kept(up) > 0
        up[0].sweep(time.time() + 60.0 * 31)
        assert (kept(up), up[0]._held) == (0, {})
        assert not list(up[0].records.journal("x").parent.iterdir())
        with pytest.raises(Refused, match="ended"):
            one.statement(runs[0])


def test_one_handle_of_a_ledger_serves_all_analysts(up: Up) -> None:
    """Files that are open do not grow with the number of analysts."""

    def files() -> int:
        return len(os.listdir("/proc/self/fd"))

    def work(number: int) -> None:
        one = Analyst(*up)
        run = one.open()
        one.ask(run)
        one.act(run, "close", {})

    counts = []
    for _ in range(2):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(40)))
        counts.append(files())
    assert counts[1] <= counts[0] + 8
    assert len(up[0].datasets) == 1


def test_a_stranger_with_many_connections_is_let_go_of_for_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "MOST_CONNECTIONS", 40)
    with served(place_in(tmp_path)) as up:
        held = []
        for _ in range(120):
            one = socket.create_connection(("127.0.0.1", int(up[1].rpartition(":")[2])), timeout=60)
            one.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 10")
            held.append(one)
        assert got(up[1], "/healthz") == 200
        assert Analyst(*up).spent() == 0.0
        for one in held[:60]:  # those that waited longest
            with closing(one), suppress(ConnectionResetError):
                assert one.recv(10) == b""
        for one in held[60:]:
            one.close()


def test_many_analysts_share_one_budget_to_its_end(tmp_path: Path) -> None:
    """Twenty at once, each on its own: what is granted is within the cap, and all of it settled."""
    place = place_in(tmp_path, epsilon=8.0)
    words: set[Any] = set()
    with served(place) as up:

        def work(number: int) -> int:
            one, granted = Analyst(*up), 0
            for _ in range(3):
                try:
                    run = one.open(Repeated(Gaussian(6.0), 2))
                except Refused as refused:
                    words.add(refused.word)
                    continue
                granted += 1
                for _ in range(number % 3):
                    one.ask(run, Measurement(RowCount(), 6.0))
                one.act(run, "finish" if number % 3 == 2 else "close", {})
            return granted

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(work, range(20))) > 3
        assert words <= {"overspent", "budget"}
        balance = up[0].datasets["applicants"].ledger.balance()
        assert balance.spent_share <= 1.0
        assert balance.open == 0
    assert faults(place) == []
