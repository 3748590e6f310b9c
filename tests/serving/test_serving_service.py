"""The service over HTTP: typed refusals, sizes, log, health, pages."""

from __future__ import annotations

import http.client
import io
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from doors import Place, place_in, served

import fairveil as fv
from fairveil.errors import DoorError, InputError
from fairveil.serving.analyst.connection import Connection
from fairveil.serving.door.door import Door
from fairveil.serving.door.page import HolderPage
from fairveil.serving.door.request_log import RequestLog
from fairveil.serving.door.running import running
from fairveil.serving.door.service import Service
from fairveil.serving.wire.messages import packed


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(
        tmp_path_factory.mktemp("holder"),
        limits="request_bytes = 200000\nrequests_a_minute = 60000",
    )


@pytest.fixture(scope="module")
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(scope="module")
def door(place: Place, log: io.StringIO) -> Iterator[tuple[Door, int]]:
    found = place.door()
    with running(
        found, Service(found, RequestLog(log)), HolderPage(found, secure=False).routes()
    ) as url:
        yield found, int(url.rpartition(":")[2])
    found.close()


def sent(
    port: int, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, bytes, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def bearer(door: Door, role: str = "analyst") -> str:
    return f"Bearer {door.tokens.issue('somebody', role)}"


def test_everything_but_the_door_itself_needs_a_token(door: tuple[Door, int]) -> None:
    for path in (
        "/v1/datasets",
        "/v1/datasets/applicants",
        "/v1/ledgers/applicants",
        "/v1/statements/applicants",
    ):
        assert sent(door[1], "GET", path)[0] == 401
    assert sent(door[1], "POST", "/v1/runs", b"")[0] == 401
    about = json.loads(sent(door[1], "GET", "/v1")[1])
    assert about["holder"] == "Office"
    assert sent(door[1], "GET", "/healthz")[:2] == (200, b"ok\n")


def test_unknown_and_forbidden_are_one_answer(door: tuple[Door, int]) -> None:
    analyst = bearer(door[0])
    paths = (
        "/v1/datasets/nothing",
        "/v1/datasets/..%2Fdoor.db",
        "/v1/datasets/%27%20OR%201=1",
        "/v1/nothing",
        "/robots.txt",
    )
    found = {sent(door[1], "GET", path, authorization=analyst)[:2] for path in paths}
    runs = {
        sent(
            door[1],
            "POST",
            f"/v1/runs/{run}/{act}",
            packed({}),
            authorization=analyst,
            idempotency_key="some-key-1",
        )[:2]
        for run, act in (("0" * 32, "ask"), ("0" * 32, "__init__"), ("..", "ask"), ("0" * 32, "do"))
    }
    assert len(found | runs) == 1
    assert next(iter(found))[0] == 404


def test_roles(door: tuple[Door, int]) -> None:
    analyst, auditor = bearer(door[0]), bearer(door[0], "auditor")
    assert sent(door[1], "GET", "/v1/ledgers/applicants", authorization=analyst)[0] == 403
    status, body, _ = sent(door[1], "GET", "/v1/ledgers/applicants", authorization=auditor)
    assert status == 200
    assert json.loads(body)
    assert sent(door[1], "GET", "/v1/statements/applicants", authorization=auditor)[0] == 200
    assert sent(door[1], "GET", "/v1/datasets/applicants", authorization=auditor)[0] == 200


def test_a_body_that_is_too_large_is_refused_whatever_its_header_says(
    door: tuple[Door, int],
) -> None:
    analyst = bearer(door[0])
    for headers in ({}, {"content-length": "9" * 30}):
        status, body, _ = sent(
            door[1],
            "POST",
            "/v1/runs",
            bytes(300_000) if not headers else b"x",
            authorization=analyst,
            idempotency_key="a-key-00",
            **headers,
        )
        assert status in (400, 413), body

    def endless() -> Iterator[bytes]:
        for _ in range(300):
            yield bytes(1000)

    connection = http.client.HTTPConnection("127.0.0.1", door[1], timeout=30)
    headers = {
        "Authorization": analyst,
        "Idempotency-Key": "a-key-00",
        "Transfer-Encoding": "chunked",
    }
    try:
        connection.request("POST", "/v1/runs", endless(), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    except OSError:  # cut off before all of it was sent
        pass
    finally:
        connection.close()


def test_the_log_names_no_value(door: tuple[Door, int], place: Place, log: io.StringIO) -> None:
    shown = door[0].tokens.issue("a secret name")
    data = fv.remote(f"http://127.0.0.1:{door[1]}", "applicants", token=shown)
    fv.FermiClassifier(solver=fv.Descent(rounds=3), random_state=0).fit(data)
    data.close()
    text = log.getvalue()
    assert shown.rpartition("_")[2] not in text
    assert "a secret name" not in text
    for line in text.splitlines():
        assert set(json.loads(line)) <= {"at", "act", "status", "ms", "bytes", "token", "run"}


def test_an_error_that_nobody_foresaw_is_one_constant_sentence(
    door: tuple[Door, int], log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("a row: 17, female")

    monkeypatch.setattr(Door, "list", broken)
    status, body, _ = sent(door[1], "GET", "/v1/datasets", authorization=bearer(door[0]))
    assert status == 500
    assert b"17" not in body
    assert "female" not in log.getvalue()


def test_requests_of_one_token_are_limited(tmp_path: Any) -> None:
    place = place_in(tmp_path, limits="requests_a_minute = 60")
    with served(place) as (door, url):
        port, analyst = int(url.rpartition(":")[2]), bearer(door)
        statuses = [sent(port, "GET", "/v1/datasets", authorization=analyst)[0] for _ in range(14)]
        assert statuses[0] == 200
        assert 429 in statuses
        assert sent(port, "GET", "/v1/datasets", authorization=bearer(door))[0] == 200


def test_the_client_speaks_plain_http_to_this_machine_alone() -> None:
    with pytest.raises(InputError, match="HTTPS to another machine"):
        Connection("http://holder.example", "fv_x")
    for url in ("ftp://x", "holder.example", "https://me:word@holder.example", ""):
        with pytest.raises(InputError, match="the address of a door"):
            Connection(url, "fv_x")


def test_a_door_that_is_away_is_an_error_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairveil.serving.analyst.connection.WAIT", 0.001)
    with pytest.raises(DoorError, match="expected an answer"):
        fv.remote("http://127.0.0.1:9", "applicants", token="fv_x")
    with pytest.raises(InputError, match="a token"):
        fv.remote("http://127.0.0.1:9", "applicants", token="")


# -- the holder's page -----------------------------------------------------------------------------


def entered(door: Door, port: int) -> tuple[str, str]:
    """The session's cookie, and the word that its forms hold."""
    form = urlencode({"token": door.tokens.issue("holder", "holder")}).encode()
    status, _, headers = sent(port, "POST", "/holder/enter", form)
    assert status == 303
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=strict" in headers["set-cookie"]
    cookie = headers["set-cookie"].partition(";")[0]
    page = sent(port, "GET", "/holder", cookie=cookie)[1].decode()
    word = re.search(r'name="form" value="([^"]+)"', page)
    assert word is not None
    return cookie, word[1]


def test_only_the_holder_enters_the_page(door: tuple[Door, int]) -> None:
    assert b"Token of the holder" in sent(door[1], "GET", "/holder")[1]
    form = urlencode({"token": door[0].tokens.issue("analyst")}).encode()
    assert sent(door[1], "POST", "/holder/enter", form)[0] == 403
    assert sent(door[1], "POST", "/holder/enter", b"token=x")[0] == 401
    cookie, _ = entered(*door)
    assert b"Budgets" in sent(door[1], "GET", "/holder", cookie=cookie)[1]


def test_the_page_loads_nothing_runs_nothing_and_escapes_all(door: tuple[Door, int]) -> None:
    door[0].tokens.issue("<script>alert(1)</script>")
    cookie, _ = entered(*door)
    _, body, headers = sent(door[1], "GET", "/holder", cookie=cookie)
    page = body.decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    for needed in ('<html lang="en">', "<caption", 'scope="col"', 'class="skip"', "<main"):
        assert needed in page


def test_a_run_and_a_token_are_stopped_by_a_form_of_the_session_alone(
    door: tuple[Door, int], place: Place
) -> None:
    from test_serving_runs import Analyst

    one = Analyst(door[0])
    run = one.open()
    cookie, word = entered(*door)
    assert b"counts" in sent(door[1], "GET", f"/holder/runs/{run}", cookie=cookie)[1] or one.ask(
        run
    )
    for form, status in ((b"", 403), (b"form=x", 403), (urlencode({"form": word}).encode(), 200)):
        assert sent(door[1], "POST", f"/holder/runs/{run}/stop", form, cookie=cookie)[0] == status
    record = door[0].records.run(run)
    assert record is not None
    assert (record.state, record.how) == ("ended", "stopped by the holder")
    assert (
        sent(
            door[1],
            "POST",
            f"/holder/tokens/{one.token.id}/revoke",
            urlencode({"form": word}).encode(),
            cookie=cookie,
        )[0]
        == 200
    )
    assert not next(token for token in door[0].tokens.all() if token.id == one.token.id).holds_at(
        0.0
    )


def test_a_holder_is_let_in_after_a_strangers_wrong_words(tmp_path: Any) -> None:
    """Both may have one address, behind a proxy; only what is wrong is counted."""
    found = place_in(tmp_path).door()
    pages = HolderPage(found, secure=False).routes()
    with running(found, Service(found, RequestLog(None)), pages) as url:
        port = int(url.rpartition(":")[2])
        statuses = [sent(port, "POST", "/holder/enter", b"token=x")[0] for _ in range(40)]
        assert set(statuses) == {401, 429}
        cookie, word = entered(found, port)
        for form in ({"form": "\u00e9"}, {"form": "\ud800".encode("utf-8", "replace")}):
            assert (
                sent(port, "POST", "/holder/leave", urlencode(form).encode(), cookie=cookie)[0]
                == 403
            )
        right = urlencode({"form": word}).encode()
        assert sent(port, "POST", "/holder/leave", right, cookie=cookie)[0] == 303
    found.close()
