"""A ledger on a server: passwords, connections that die at each moment, commits without an answer,
settings and rights."""

from __future__ import annotations

import re
import select
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from typing import Any

import psycopg
import pytest

from fairveil.errors import DataNotFoundError, FairveilError, InputError, LedgerError
from fairveil.privacy.ledger.stores import postgres
from fairveil.privacy.ledger.stores.entries import Entry
from fairveil.privacy.ledger.stores.postgres import PostgresStore

Line = Callable[..., Entry]


def begun(url: str, line: Line, lines: int = 0) -> PostgresStore:
    store = PostgresStore(url, create=True)
    store.create("census", line())
    for _ in range(lines):
        add(store, line)
    return store


def add(store: PostgresStore, line: Line, **changes: Any) -> Entry:
    with store.writing("census") as page:
        new = line(page.head(), **changes)
        page.append(new)
    return new


def end_sessions(url: str) -> None:
    """The server ends every other session, and they are gone."""
    others = (
        "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with closing(psycopg.connect(url, autocommit=True)) as link:
        link.execute(f"SELECT pg_terminate_backend(pid) {others}")
        while link.execute(f"SELECT 1 {others}").fetchall():
            pass


def at_port(url: str, port: int) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", url)


class Wire:
    """Between clients and the server. `cut`: what becomes of the next commit: it does not arrive
    ("before"), its answer does not ("after"), or neither does, nor anything later ("for good")."""

    def __init__(self, port: int) -> None:
        self.cut = ""
        self._server_port = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(client,)))
            self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        with (
            client,
            socket.create_connection(("127.0.0.1", self._server_port)) as server,
            suppress(OSError),
        ):
            answer_is_lost = False
            while self.cut != "all":
                for source in select.select([client, server], [], [], 0.1)[0]:
                    said = source.recv(65536)
                    if not said or (source is server and answer_is_lost):
                        return
                    if source is client and b"COMMIT\0" in said and self.cut:
                        how, self.cut = self.cut, "all" if self.cut == "for good" else ""
                        if how != "after":
                            return
                        answer_is_lost = True
                    (server if source is client else client).sendall(said)

    def close(self) -> None:
        self.cut = "all"
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        for thread in self._threads:
            thread.join()


def broken_off(
    store: PostgresStore, line: Line, url: str, *, appends: int = 1, then: Callable[..., object]
) -> None:
    """A block in which the session ends."""
    with store.writing("census") as page:
        for _ in range(appends):
            page.append(line(page.head()))
        end_sessions(url)
        then(page)


@contextmanager
def wired(url: str) -> Iterator[tuple[Wire, str]]:
    """A wire to the server, and the address at its other end."""
    wire = Wire(int(re.findall(r":(\d+)", url)[0]))
    try:
        yield wire, at_port(url, wire.port)
    finally:
        wire.close()


def test_no_error_and_no_text_shows_a_password(postgres_place: Any, line: Line) -> None:
    url = postgres_place.url
    store = begun(url, line)
    assert "s3cret" in str(store.address)
    for text in (repr(store), str(store), store.shown):
        assert "s3cret" not in text
        assert "***" in text
    for wrong in (
        url.replace("s3cret", "wr0ngs3cret"),
        at_port(url, 1),
        url.replace("127.0.0.1", "no.such.host.invalid"),
        re.sub(r":\d+/", ":port/", url),
        url.replace("/postgres?", "/none?"),
        url.replace("%40", "@"),
        url.replace("%40", "%4"),
        url.replace("me:", "nobody:") + "&nosuchsetting=1",
        "postgresql://127.0.0.1:1/base?user=me&password=s3cret",
        url + "&password=s3cret2&connect_timeout=x",
    ):
        with pytest.raises(FairveilError, match="expected") as caught:
            PostgresStore(wrong, create=False)
        error: BaseException | None = caught.value
        told = "".join(traceback.format_exception(caught.value))
        while error is not None:
            told, error = told + repr(error), error.__context__
        assert "s3cret" not in told
        assert "word" not in told.replace("password", "")
    with pytest.raises(LedgerError) as caught:
        broken_off(store, line, url, then=lambda page: page.append(line(page.head())))
    assert caught.value.__context__ is None


def test_without_psycopg_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'fairveil\[sql\]'"):
        PostgresStore("postgresql://me:hunter2@127.0.0.1:1/x", create=True)


def test_a_connection_that_died_is_opened_again_unless_it_was_written_to(
    postgres_place: Any, line: Line
) -> None:
    store = begun(postgres_place.url, line)
    end_sessions(postgres_place.url)
    assert store.last("census").number == 0
    end_sessions(postgres_place.url)
    add(store, line)
    measurements: list[Callable[..., object]] = [
        lambda page: page.of_spend("s0"),
        lambda page: page.append(line(page.head())),
        lambda page: store.last("census"),
    ]
    for appends, then in [*product((0, 1), measurements), (1, lambda page: None)]:
        with pytest.raises(LedgerError, match="expected"):
            broken_off(store, line, postgres_place.url, appends=appends, then=then)
    # nothing was written: nothing is lost
    broken_off(store, line, postgres_place.url, appends=0, then=lambda page: None)
    assert store.last("census").number == 1
    add(store, line)
    assert [entry.number for entry in store.entries("census")] == [0, 1, 2]


def test_a_commit_without_an_answer_is_looked_up_and_never_repeated(
    postgres_place: Any, line: Line
) -> None:
    direct = begun(postgres_place.url, line)
    with wired(postgres_place.url) as (wire, url):
        store = PostgresStore(url, create=False)
        add(store, line)
        wire.cut = "after"
        add(store, line)  # it was written: no error
        assert direct.last("census").number == 2
        wire.cut = "before"
        with pytest.raises(LedgerError, match="a server that answers"):
            add(store, line)
        assert direct.last("census").number == 2
        wire.cut = "after"
        store.create("second", line(purpose="second"))
        wire.cut = "before"
        with pytest.raises(LedgerError, match="a server that answers"):
            store.create("third", line(purpose="third"))
        assert store.datasets() == ["census", "second"]
        wire.cut = "for good"
        with pytest.raises(
            LedgerError, match=r"expected an answer to a commit.*Look for line 3"
        ) as caught:
            add(store, line)
        assert "s3cret" not in str(caught.value)
        store.close()
    add(direct, line)
    assert [entry.number for entry in direct.entries("census")] == [0, 1, 2, 3]


def test_a_commit_waits_for_the_disk_whatever_the_default(postgres_place: Any, line: Line) -> None:
    names = ("synchronous_commit", "transaction_isolation", "lock_timeout")
    for default, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        wishes = (
            f"%20-csynchronous_commit%3D{default}%20-cdefault_transaction_isolation%3Dserializable"
        )
        store = PostgresStore(postgres_place.url + wishes, create=True)
        if not store.datasets():
            store.create("census", line())
        with store.writing("census") as page:
            found = [page._ask(f"SHOW {name}", ())[0][0] for name in names]  # type: ignore[attr-defined]
            page.append(line(page.head()))
        assert found == [expected, "read committed", "1min"]


def test_a_session_that_stops_in_a_block_is_ended(postgres_place: Any, line: Line) -> None:
    store = begun(postgres_place.url, line)
    assert (
        f"'idle_in_transaction_session_timeout', '{postgres.IDLE_PATIENCE}s'" in postgres._SETTINGS
    )
    other = PostgresStore(postgres_place.url, create=False)

    def stop_in_a_block() -> None:
        with store.writing("census") as page:
            page.append(line(page.head()))
            # Here only: between two statements of a busy machine there may be as much.
            page._ask("SELECT set_config('idle_in_transaction_session_timeout', '50ms', true)", ())  # type: ignore[attr-defined]
            # waits for the session's end
            thread = threading.Thread(target=lambda: add(other, line, purpose="other"))
            thread.start()
            thread.join()

    with pytest.raises(LedgerError, match="expected"):
        stop_in_a_block()
    assert [entry.number for entry in store.entries("census")] == [0, 1]


def test_what_the_database_lacks_or_forbids_is_said(postgres_place: Any, line: Line) -> None:
    url = postgres_place.url
    for options in ({}, {"read_only": True}):
        with pytest.raises(DataNotFoundError, match=r"Ledger\.create"):
            PostgresStore(url, create=False, **options)
    with closing(psycopg.connect(url, autocommit=True)) as link:
        assert link.execute(
            "SELECT count(*) FROM pg_class WHERE pg_table_is_visible(oid) AND relname LIKE 'fair%'"
        ).fetchone() == (0,)
        link.execute("CREATE TABLE fairveil_ledger_heads (x int)")
        with pytest.raises(LedgerError, match="without other tables of these names"):
            PostgresStore(url, create=True)
        link.execute("DROP TABLE fairveil_ledger_heads")
        begun(url, line)
        schema = link.execute("SELECT current_schema()").fetchone()
        assert schema is not None
        for statement in (
            "CREATE ROLE {0} LOGIN PASSWORD 'l00k'",
            "GRANT USAGE ON SCHEMA {0} TO {0}",
            "GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {0}",
        ):
            link.execute(psycopg.sql.SQL(statement).format(psycopg.sql.Identifier(schema[0])))
    theirs = url.replace("me:s3cret%40word", f"{schema[0]}:l00k")
    assert PostgresStore(theirs, create=False, read_only=True).last("census").number == 0
    with pytest.raises(LedgerError, match="a user who may do this"):
        add(PostgresStore(theirs, create=False), line)
    with pytest.raises(LedgerError, match="a server that may be written to"):
        PostgresStore(url, create=False, read_only=True)._ask("CREATE TABLE x (y int)", ())
