"""The service over HTTP: who is answered, typed refusals, sizes, slow and cut connections, the log,
and the holder's page. Whoever is let go of ends a read, for which there is half a minute."""

from __future__ import annotations

import base64
import http.client
import io
import json
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from doors import COUNTS, PLAN, PROMISE, Analyst, Place, Refused, faults, place_in, released, served

import fairveil as fv
import ways
from fairveil.data import Encoding
from fairveil.errors import DoorError, InputError
from fairveil.serving import app, client
from fairveil.serving.app import Clocked
from fairveil.serving.client import Connection, RemoteCurator
from fairveil.serving.runs import Server
from fairveil.serving.wire import packed

Up = tuple[Server, str]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    limits = "request_bytes = 200000\nrequests_a_minute = 60000\nrequest_seconds = 3"
    return place_in(tmp_path_factory.mktemp("holder"), limits=limits)


@pytest.fixture(scope="module")
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="module")
def up(place: Place, log: io.StringIO) -> Iterator[Up]:
    with served(place, log) as found:
        yield found


def port_of(up: Up) -> int:
    return int(up[1].rpartition(":")[2])


def sent(
    up: Up, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, bytes, Any]:
    line = http.client.HTTPConnection("127.0.0.1", port_of(up), timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        line.request(method, path, body, named, encode_chunked="Transfer-Encoding" in named)
        response = line.getresponse()
        return response.status, response.read(), response.headers
    finally:
        line.close()


def bearer(up: Up, role: str = "analyst") -> str:
    return f"Bearer {up[0].records.issue('somebody', role)}"


def is_up(up: Up) -> bool:
    return sent(up, "GET", "/healthz")[:2] == (200, b"ok\n")


def test_everything_but_the_service_itself_needs_a_token(up: Up) -> None:
    paths = ("datasets/applicants", "datasets/others")
    statuses = {}
    for role in ("", "analyst", "holder"):
        told = {"authorization": bearer(up, role)} if role else {}
        statuses[role] = [sent(up, "GET", f"/v1/{path}", **told)[0] for path in paths]
    assert statuses == {"": [401] * 2, "analyst": [200, 404], "holder": [200, 404]}
    assert sent(up, "POST", "/v1/runs", b"")[0] == 401
    assert json.loads(sent(up, "GET", "/v1")[1])["holder"] == "Office"
    assert is_up(up)


def test_unknown_and_forbidden_are_one_answer(up: Up) -> None:
    analyst = bearer(up)
    names = ("datasets/nothing", "datasets/..%2Fdoor.db", "datasets/%27%20OR%201=1", "nothing")
    found = {sent(up, "GET", f"/v1/{one}", authorization=analyst)[:2] for one in names}
    told = {"authorization": analyst, "idempotency_key": "some-key-1"}
    for run, act in (("0" * 32, "ask"), ("0" * 32, "__init__"), ("..", "ask"), ("0" * 32, "do")):
        found.add(sent(up, "POST", f"/v1/runs/{run}/{act}", packed({}), **told)[:2])
    found.add(sent(up, "GET", "/robots.txt")[:2])
    assert [status for status, _ in found] == [404]


def test_a_body_is_bounded_whatever_its_header_says(
    up: Up, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"authorization": bearer(up), "idempotency_key": "a-key-000"}
    assert sent(up, "POST", "/v1/runs", bytes(300_000), **told)[0] == 413
    chunks = (bytes(1000) for _ in range(300))
    with suppress(OSError):  # cut off before all of it was sent
        assert sent(up, "POST", "/v1/runs", chunks, Transfer_Encoding="chunked", **told)[0] == 413
    assert sent(up, "POST", "/nothing", bytes(5000))[0] == 413
    assert sent(up, "POST", "/v1/runs", bytes(5000))[0] == 401  # before its body is read
    assert sent(up, "POST", "/v1/runs", bytes(100_000), **told)[0] == 422
    monkeypatch.setattr(app, "BODIES", 0.1)
    assert sent(up, "POST", "/v1/runs", bytes(100_000), **told)[0] == 503
    assert sent(up, "POST", "/v1/runs", packed({}), authorization=told["authorization"])[0] == 422


def test_the_log_names_no_value(up: Up, log: io.StringIO) -> None:
    shown = up[0].records.issue("a secret name")
    data = fv.remote(up[1], "applicants", token=shown)
    ways.fermi(solver=fv.PrimalDual(rounds=3), random_state=0).fit(data)
    data.close()
    sent(up, "POST", "/v1/runs/4711-a-word/of-somebody", b"")
    text = log.getvalue()
    for word in (shown.rpartition("_")[2], "a secret name", "4711", "of-somebody"):
        assert word not in text
    known = {"at", "act", "status", "ms", "bytes", "token", "run", "detail"}
    for line in text.splitlines():
        assert set(json.loads(line)) <= known


def test_an_error_that_nobody_foresaw_is_one_constant_sentence(
    up: Up, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("a row: 17, female")

    monkeypatch.setattr(Server, "facts", broken)
    status, body, _ = sent(up, "GET", "/v1/datasets/applicants", authorization=bearer(up))
    assert (status, b"17" in body, "female" in log.getvalue()) == (500, False, False)


def test_requests_of_one_token_are_limited(tmp_path: Path) -> None:
    with served(place_in(tmp_path, limits="requests_a_minute = 60")) as up:
        one = bearer(up)
        statuses = [
            sent(up, "GET", "/v1/datasets/applicants", authorization=one)[0] for _ in range(14)
        ]
        assert (statuses[0], statuses[-1]) == (200, 429)
        assert sent(up, "GET", "/v1/datasets/applicants", authorization=bearer(up))[0] == 200


def test_the_client_speaks_plain_http_to_this_machine_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="HTTPS to another machine"):
        Connection("http://holder.example", "fv_x")
    for url in ("ftp://x", "holder.example", "https://me:word@holder.example", ""):
        with pytest.raises(InputError, match="the address of a door"):
            Connection(url, "fv_x")
    monkeypatch.setattr(client, "WAIT", 0.001)
    with pytest.raises(DoorError, match="expected an answer"):
        fv.remote("http://127.0.0.1:9", "applicants", token="fv_x")
    with pytest.raises(InputError, match="a token"):
        fv.remote("http://127.0.0.1:9", "applicants", token="")


# -- slow and cut connections ----------------------------------------------------------------------

TOKEN = b"Authorization: Bearer %s\r\nIdempotency-Key: half-a-body\r\n"
SLOW = [
    (b"", b""),
    (b"POST /v1/runs HTTP/1.1\r\nX-Slow: ", b""),
    (b"POST /holder/runs/x HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"401"),
    (b"POST /holder/runs/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"401"),
    (b"GET /holder HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"401"),
    (b"POST /v1/runs HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"401"),
    (b"POST /v1/runs HTTP/1.1\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n", b"401"),
    (b"POST /v1/runs HTTP/1.1\r\n" + TOKEN + b"Content-Length: 99\r\n\r\nFVD1", b"408"),
    (b"POST /v1/runs HTTP/1.1\r\n" + TOKEN + b"Content-Length: 999999\r\n\r\n", b"413"),
    (b"GET /healthz HTTP/1.1\r\nContent-Length: 9000\r\n\r\n", b"413"),
    (b"GET /v1 HTTP/1.1\r\nContent-Length: 100\r\n\r\n", b"408"),
    (b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nX: ", b"200"),
]


def test_whoever_sends_no_whole_request_is_let_go_of(up: Up) -> None:
    """Whatever was answered, and one byte later; others are answered meanwhile."""
    token, held = up[0].records.issue("somebody").encode(), []
    for first, status in SLOW * 3:
        one = socket.create_connection(("127.0.0.1", port_of(up)), timeout=30)
        told = first.replace(b"HTTP/1.1\r\n", b"HTTP/1.1\r\nHost: x\r\n").replace(b"%s", token)
        one.sendall(told)
        held.append((one, status))
    assert is_up(up)
    for one, status in held:
        said = b""
        with suppress(ConnectionResetError, BrokenPipeError):
            if status:
                said = one.recv(64)
                one.sendall(b"x")
            while one.recv(4000):
                pass
        assert said.startswith(b"HTTP/1.1 " + status if status else b"")
        one.close()
    assert is_up(up)


def test_a_reply_that_nobody_takes_ends_its_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server, "facts", lambda *_: {"x": "x" * (64 << 20)})
    seen, made = list[Any](), Clocked.connection_made

    def noted(self: Clocked, transport: Any) -> None:
        seen.append(self)
        made(self, transport)

    monkeypatch.setattr(Clocked, "connection_made", noted)
    with served(place_in(tmp_path, limits="request_seconds = 0.1")) as up:
        with socket.create_connection(("127.0.0.1", port_of(up)), timeout=60) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET /v1/datasets/applicants HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer(up)}"
            one.sendall(head.encode() + b"\r\n\r\n")
            (line,) = _writing(seen, 1)
            _writing(seen, 0)
        assert line.transport.is_closing()
        assert is_up(up)


def _writing(seen: list[Any], count: int) -> list[Any]:
    """The connections that write, once they are so many."""
    import time

    for _ in range(6000):
        here = [one for one in seen if one.transport and not one.transport.is_closing()]
        here = [one for one in here if one.transport.get_write_buffer_size() > 0]
        if len(here) == count:
            return here
        time.sleep(0.01)
    raise AssertionError(f"{len(here)} connections")


def test_a_connection_that_is_cut_in_the_reply_costs_one_release(
    up: Up, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every second reply is cut off: the client asks again under the same key, and has the same
    answer."""
    monkeypatch.setattr(client, "WAIT", 0.001)
    data = fv.remote(up[1], "applicants", token=up[0].records.issue("analyst"))
    plain, count = Connection._once, [0]

    def cut(self: Connection, *request: Any) -> tuple[int, bytes]:
        found = plain(self, *request)
        count[0] += 1
        if count[0] % 2:
            raise ConnectionResetError
        return found

    monkeypatch.setattr(Connection, "_once", cut)
    rows: Any = data.rows(Encoding(data.schema).layout, data.schema, False)
    with RemoteCurator(rows, PROMISE, plan=PLAN) as curator:
        for _ in range(4):
            curator.answer([COUNTS])
        run = curator._run
        curator.finish()
    assert len(released(up[0].records, run)) == 4
    data.close()
    assert faults(place) == []


# -- the holder's page -----------------------------------------------------------------------------


def holder(up: Up, role: str = "holder") -> dict[str, str]:
    """What a browser sends for a token that was given as a password."""
    told = f"me:{up[0].records.issue('<script>alert(1)</script>', role)}".encode()
    return {"authorization": f"Basic {base64.b64encode(told).decode()}"}


def word_in(page: bytes) -> str:
    found = re.search(r'name="form" value="([^"]+)"', page.decode())
    assert found is not None
    return found[1]


def test_only_the_holder_enters_the_page(up: Up) -> None:
    """And is let in after a stranger's wrong words: both may have one address, behind a proxy."""
    own, analyst = holder(up), holder(up, "analyst")
    bare = {"authorization": bearer(up, "holder")}
    odd = [{"authorization": f"Basic {one}"} for one in ("", "é", "x", "bWU6eA==")]
    for told in ({}, analyst, bare, *odd * 10):
        status, body, headers = sent(up, "GET", "/holder", **told)
        assert (status, b"Budgets" in body) == (401, False)
        assert headers["www-authenticate"].startswith("Basic")
    status, body, headers = sent(up, "GET", "/holder", **own)
    page = body.decode()
    assert (status, "Budgets" in page, "<script" in page) == (200, True, False)
    assert "&lt;script&gt;" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    for needed in ('<html lang="en">', "<caption", 'scope="col"', 'class="skip"', "<main"):
        assert needed in page


def test_a_run_and_a_token_are_stopped_by_a_form_of_the_page_alone(up: Up) -> None:
    one, own, other = Analyst(*up), holder(up), holder(up)
    run = one.open()
    word, others = (word_in(sent(up, "GET", "/holder", **told)[1]) for told in (own, other))
    forms = [urlencode({"form": given}).encode() for given in ("é", "x", "", others)]
    for form in (b"", *forms):
        assert sent(up, "POST", f"/holder/runs/{run}", form, **own)[0] == 403
    right = urlencode({"form": word}).encode()
    assert sent(up, "POST", f"/holder/runs/{run}", right)[0] == 401
    assert sent(up, "POST", f"/holder/others/{run}", right, **own)[0] == 404
    status, page, _ = sent(up, "POST", f"/holder/runs/{run}", right, **own)
    assert (status, b"The run was stopped." in page) == (200, True)
    record = up[0].records.run(run)
    assert record is not None
    assert (record.state, record.how) == ("ended", "stopped by the holder")
    assert sent(up, "POST", f"/holder/tokens/{one.id}", right, **own)[0] == 200
    with pytest.raises(Refused) as refused:
        one.open()
    assert refused.value.status == 401
