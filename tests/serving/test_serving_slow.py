"""Slow and cut connections: a door lets go of who sends or takes too slowly, and answers everybody
else meanwhile.

No test waits for a clock of its own: a connection that is let go of ends a read, which has half a
minute for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from door_faults import faults
from doors import Place, place_in
from starlette.responses import Response
from starlette.routing import Route
from test_serving_runs import CELLS, PLAN, PROMISE
from test_serving_service import bearer, sent

import fairveil as fv
from fairveil.curator import CellCounts, Measurement
from fairveil.data import Encoding
from fairveil.serving.analyst.connection import Connection
from fairveil.serving.analyst.remote_curator import RemoteCurator
from fairveil.serving.door.door import Door
from fairveil.serving.door.page import HolderPage
from fairveil.serving.door.request_log import RequestLog
from fairveil.serving.door.running import running
from fairveil.serving.door.service import AT_ONCE, Service
from fairveil.serving.wire.messages import packed

LARGE = 64 << 20


gone = threading.Event()


class Large:
    """An application whose reply no system takes whole; `gone` says that its sender was let go
    of."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await Response(bytes(LARGE))(scope, receive, send)
        finally:
            gone.set()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(
        tmp_path_factory.mktemp("holder"), limits="request_seconds = 2\nrequest_bytes = 1000000"
    )


@pytest.fixture(scope="module")
def door(place: Place) -> Iterator[tuple[Door, int]]:
    found = place.door()
    large = Route("/large", Large())
    with running(found, Service(found, RequestLog(None)), [large]) as url:
        yield found, int(url.rpartition(":")[2])
    found.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def is_up(port: int) -> bool:
    return sent(port, "GET", "/healthz")[:2] == (200, b"ok\n")


def test_half_a_head_is_let_go_of_and_others_are_answered_meanwhile(door: tuple[Door, int]) -> None:
    held = [connected(door[1]) for _ in range(60)]
    try:
        for one in held[:50]:
            # the other ten say nothing
            one.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        assert is_up(door[1])
        for one in held:
            assert one.recv(1) == b""
    except ConnectionResetError:
        pass
    finally:
        for one in held:
            one.close()
    assert is_up(door[1])


def test_half_a_second_head_on_a_kept_connection_is_let_go_of(door: tuple[Door, int]) -> None:
    with connected(door[1]) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        said = b""
        while b"ok\n" not in said and (part := one.recv(1000)):
            said += part
        assert said.startswith(b"HTTP/1.1 200")
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
        with suppress(ConnectionResetError):
            assert one.recv(1) == b""


def test_a_body_that_does_not_arrive_is_typed(door: tuple[Door, int]) -> None:
    head = (
        f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: "
        f"{bearer(door[0])}\r\nIdempotency-Key: half-a-body\r\n"
    )
    with connected(door[1]) as one:
        one.sendall(f"{head}Content-Length: 1000\r\n\r\nFVD1".encode())
        said = b""
        while b"too-slow" not in said and (part := one.recv(4000)):
            said += part
    assert said.startswith(b"HTTP/1.1 408")
    assert b"too-slow" in said


def test_a_reply_that_nobody_takes_ends_its_connection(door: tuple[Door, int]) -> None:
    with connected(door[1]) as one:
        one.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert gone.wait(60)
    assert is_up(door[1])


def test_a_body_of_nobody_is_small_and_bodies_together_are_bounded(
    door: tuple[Door, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sent(door[1], "POST", "/nothing", bytes(5000))[0] == 413
    assert sent(door[1], "POST", "/v1/runs", bytes(5000))[0] == 401  # before its body is read
    monkeypatch.setattr("fairveil.serving.door.service.BODIES", 0.1)
    headers = {"authorization": bearer(door[0]), "idempotency_key": "a-key-000"}
    assert sent(door[1], "POST", "/v1/runs", bytes(200_000), **headers)[0] == 503
    monkeypatch.undo()
    assert sent(door[1], "POST", "/v1/runs", bytes(200_000), **headers)[0] == 422


def test_one_token_does_not_take_all_workers(
    door: tuple[Door, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, go, plain = threading.Semaphore(0), threading.Event(), Door.list

    def slow(self: Door, token: Any) -> Any:
        inside.release()
        assert go.wait(60)
        return plain(self, token)

    monkeypatch.setattr(Door, "list", slow)
    one, other = bearer(door[0]), bearer(door[0])
    with ThreadPoolExecutor(AT_ONCE + 1) as pool:
        asked = [
            pool.submit(sent, door[1], "GET", "/v1/datasets", authorization=one)
            for _ in range(AT_ONCE)
        ]
        for _ in range(AT_ONCE):
            assert inside.acquire(timeout=60)
        assert sent(door[1], "GET", "/v1/datasets", authorization=one)[0] == 429
        assert sent(door[1], "GET", "/v1/datasets/applicants", authorization=other)[0] == 200
        go.set()
        assert [each.result()[0] for each in asked] == [200] * AT_ONCE
    assert sent(door[1], "GET", "/v1/datasets", authorization=one)[0] == 200


def test_a_connection_that_is_cut_in_the_reply_costs_one_release(
    door: tuple[Door, int], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second reply is cut off: the client asks again under the same key, and has the same
    answer."""
    monkeypatch.setattr("fairveil.serving.analyst.connection.WAIT", 0.001)
    data = fv.remote(
        f"http://127.0.0.1:{door[1]}", "applicants", token=door[0].tokens.issue("analyst")
    )
    plain, count = Connection._once, [0]

    def cut(self: Connection, *request: Any) -> tuple[int, bytes]:
        found = plain(self, *request)
        count[0] += 1
        if count[0] % 2:
            raise ConnectionResetError
        return found

    monkeypatch.setattr(Connection, "_once", cut)
    rows = data.rows(Encoding(data.schema).layout, data.schema, False)
    with RemoteCurator(rows, PROMISE, plan=PLAN) as curator:
        for _ in range(4):
            curator.answer([Measurement(CellCounts(CELLS), 20.0)])
        run = curator._run
        curator.finish()
    assert len(door[0].records.entries(run)) == 4
    data.close()
    assert faults(place) == []


def test_half_a_request_that_is_cut_leaves_nothing(door: tuple[Door, int], place: Place) -> None:
    head = (
        f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: "
        f"{bearer(door[0])}\r\nIdempotency-Key: cut-in-the-body\r\n"
    )
    before, body = len(door[0].records.runs()), packed({})
    for part in (b"", body[:3], body[:-1]):
        with connected(door[1]) as one:
            one.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + part)
    assert is_up(door[1])
    assert len(door[0].records.runs()) == before


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /holder/enter HTTP/1.1\r\nContent-Length: 100\r\n", 408),
        (b"POST /holder/leave HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", 408),
        (b"POST /holder/enter HTTP/1.1\r\nContent-Length: 9000\r\n", 408),
        (b"GET /holder HTTP/1.1\r\nContent-Length: 100\r\n", 200),
        (b"POST /v1/runs HTTP/1.1\r\nContent-Length: 100\r\n", 401),
        (b"POST /v1/runs HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 100\r\n", 401),
        (b"GET /healthz HTTP/1.1\r\nContent-Length: 9000\r\n", 413),
        (b"GET /v1 HTTP/1.1\r\nContent-Length: 100\r\n", 408),
    ],
)
def test_a_stranger_whose_body_does_not_arrive_holds_no_connection(
    head: bytes, status: int, tmp_path: Path
) -> None:
    """One byte after an answer ends the server's own clock for kept connections."""
    found = place_in(tmp_path, limits="request_seconds = 2").door()
    pages = HolderPage(found, secure=False).routes()
    with (
        running(found, Service(found, RequestLog(None)), pages) as url,
        connected(int(url.rpartition(":")[2])) as one,
    ):
        one.settimeout(20)
        one.sendall(head + b"Host: x\r\n\r\n")
        said = one.recv(64)
        assert said.startswith(f"HTTP/1.1 {status}".encode())
        with suppress(BrokenPipeError, ConnectionResetError):
            one.sendall(b"x")
            while one.recv(4000):
                pass
    found.close()
