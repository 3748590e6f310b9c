"""What every store promises (stores/store.py), by one suite for all; forks, versions and rules for
those that last."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from fairveil.errors import DataNotFoundError, LedgerError
from fairveil.privacy.ledger.stores import creating, sqlite
from fairveil.privacy.ledger.stores.entries import Entry
from fairveil.privacy.ledger.stores.store import Store

Line = Callable[..., Entry]
Child = Callable[[Callable[[], object]], Callable[[], str]]
NAME = 'Bürger\'s "census"; -- %s ? 🏛'


def begun(place: Any, line: Line, lines: int = 0) -> Store:
    store: Store = place.open(create=True)
    store.create(NAME, line())
    for _ in range(lines):
        add(store, line)
    return store


def add(store: Store, line: Line, **changes: Any) -> Entry:
    with store.writing(NAME) as page:
        new = line(page.head(), **changes)
        page.append(new)
    return new


def whole(store: Store) -> list[Entry]:
    """Its lines, which are chained and end at the head."""
    lines = list(store.entries(NAME))
    assert [entry.number for entry in lines] == list(range(len(lines)))
    assert all(after.previous == before.hash for before, after in pairwise(lines))
    assert all(entry.hash == entry.digest() for entry in lines)
    assert store.kept_head(NAME) == (lines[-1].number, lines[-1].hash)
    return lines


def raw(place: Any, *statements: str) -> list[Any]:
    """What somebody does to the tables without the library."""
    if place.kind == "sqlite":
        with closing(sqlite.sqlite3.connect(place.url, isolation_level=None)) as link:
            return [link.execute(statement).fetchall() for statement in statements]
    with closing(psycopg.connect(place.url, autocommit=True)) as link:
        cursors = [link.execute(statement.encode()) for statement in statements]
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def test_what_was_written_is_read(place: Any, line: Line) -> None:
    store = begun(place, line)
    store.create("another", line(purpose="another"))
    content = '{"say":"' + "'\\\"; DROP TABLE fairveil_ledger_entries; -- ? %s $1" * 20_000 + '"}'
    odd = add(
        store,
        line,
        content=content,
        purpose="naïve – “quoted” 漢🙂",
        units=2**60,
        spent=2**60 + 2**20,
        leak=-(2**61),
    )
    for spend in ("a", "b", "a", "a"):
        add(store, line, spend=spend, spent=3)
    lines = whole(place.open())
    assert lines[1] == odd
    assert store.last(NAME) == lines[-1]
    assert list(store.entries(NAME, 2)) == lines[2:]
    assert list(store.entries(NAME, 1, 3)) == lines[1:4]
    assert list(store.entries(NAME, 0, 0)) == list(store.entries(NAME, 99)) == []
    assert store.of_spend(NAME, "a") == [lines[2], lines[4], lines[5]]
    assert store.of_spend(NAME, "none\0") == store.of_spend("another", "a") == []
    assert list(store.charges(NAME)) == [
        (entry.kind, entry.spend, entry.under, entry.units) for entry in lines
    ]
    assert store.datasets() == sorted([NAME, "another"])
    with store.writing(NAME) as page:
        assert page.of_spend("a") == [lines[2], lines[4], lines[5]]
        page.append(line(page.head(), spend="a", spent=3))
        assert len(page.of_spend("a")) == 4
    store.close()
    assert len(whole(store)) == 7


def test_long_ledgers_are_read_part_by_part(
    place: Any, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairveil.privacy.ledger.stores.tables.LINES_AT_ONCE", 7)
    monkeypatch.setattr("fairveil.privacy.ledger.stores.tables.CHARGES_AT_ONCE", 7)
    store = begun(place, line)
    with store.writing(NAME) as page:
        for _ in range(40):
            page.append(line(page.head()))
    lines = whole(store)
    assert len(lines) == len(list(store.charges(NAME))) == 41
    assert list(store.entries(NAME, 5, 14)) == lines[5:19]
    reading = store.entries(NAME)
    assert next(reading) == lines[0]
    add(store, line)  # what comes later is not in an answer that has begun
    assert len(list(reading)) == 40


def test_what_is_not_there_is_said(place: Any, line: Line) -> None:
    store = begun(place, line)
    for name in ("none", "", "nul\0", "\ud800"):
        for ask in (store.last, store.kept_head, store.entries, store.charges):
            with pytest.raises(DataNotFoundError, match=r"expected one of"):
                ask(name)
        with pytest.raises(DataNotFoundError), store.writing(name):
            pytest.fail("a block of nothing")
    with pytest.raises(LedgerError, match="another name"):
        store.create(NAME, line(purpose="again"))
    assert len(whole(store)) == 1


def test_a_line_that_does_not_follow_is_refused(place: Any, line: Line) -> None:
    store = begun(place, line, 2)
    head = store.last(NAME)
    good = line(head)
    wrong = [
        replace(good, number=head.number).sealed(),
        replace(good, number=head.number + 2).sealed(),
        replace(good, previous=store.entries(NAME).__next__().hash).sealed(),
        replace(good, units=0),
        replace(good, hash=""),
    ]
    with store.writing(NAME) as page:
        for entry in wrong:
            with pytest.raises(LedgerError, match="chained and sealed"):
                page.append(entry)
        page.append(good)
        with pytest.raises(LedgerError):
            page.append(good)
    for entry in (
        good,
        replace(line(), previous=head.hash).sealed(),
        replace(line(), purpose="else"),
    ):
        with pytest.raises(LedgerError):
            store.create("new", entry)
    assert whole(store)[3:] == [good]
    assert store.datasets() == [NAME]


def test_a_block_that_raises_has_written_nothing(place: Any, line: Line) -> None:
    store = begun(place, line, 1)
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with suppress(error), store.writing(NAME) as page:
            page.append(line(page.head()))
            page.append(line(page.head()))
            raise error
    assert len(whole(store)) == 2
    add(store, line)
    assert len(whole(place.open())) == 3


def test_threads_write_one_after_another(place: Any, line: Line) -> None:
    store = begun(place, line)
    inside: list[int] = []

    def write() -> None:
        for _ in range(10):
            with store.writing(NAME) as page:
                inside.append(1)
                assert len(inside) == 1
                head = page.head()
                time.sleep(0.001)
                page.append(line(head))
                inside.pop()

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(whole(store)) == 61


@contextmanager
def writer_elsewhere(place: Any, line: Line, in_child: Child) -> Iterator[Callable[[], object]]:
    """Another process is inside `writing` and stays there until told to append and go."""
    inside, go_on = os.pipe(), os.pipe()

    def hold() -> None:
        with place.open().writing(NAME) as page:
            os.write(inside[1], b".")
            os.read(go_on[0], 1)
            page.append(line(page.head(), purpose="elsewhere"))

    answer = in_child(hold)
    os.read(inside[0], 1)
    try:
        yield lambda: os.write(go_on[1], b".")
    finally:
        os.write(go_on[1], b".")  # where the test has failed before it let go
        assert answer() == "None"
        for end in (*inside, *go_on):
            os.close(end)


def test_a_writer_in_another_process_is_waited_for(
    lasting: Any, line: Line, in_child: Child
) -> None:
    store = begun(lasting, line)
    with writer_elsewhere(lasting, line, in_child) as let_go:
        assert len(whole(store)) == 1  # readers wait for nobody, and see what is committed
        later = threading.Timer(0.3, let_go)
        later.start()
        with store.writing(NAME) as page:
            assert page.head().purpose == "elsewhere"
            page.append(line(page.head()))
        later.join()
    assert len(whole(store)) == 3


def test_whoever_waits_too_long_is_told(
    lasting: Any, line: Line, in_child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = begun(lasting, line)
    with writer_elsewhere(lasting, line, in_child) as let_go:
        monkeypatch.setattr("fairveil.privacy.ledger.stores.sqlite.PATIENCE", 0.2)
        monkeypatch.setattr(
            "fairveil.privacy.ledger.stores.postgres._SETTINGS",
            "SELECT set_config('lock_timeout', '200ms', true)",
        )
        with pytest.raises(LedgerError, match="its turn within"):
            add(store, line)
        let_go()
    add(store, line)
    assert len(whole(store)) == 3


def test_the_tables_refuse_to_change(lasting: Any, line: Line) -> None:
    store = begun(lasting, line, 2)
    before = whole(store)
    entries, heads = "fairveil_ledger_entries", "fairveil_ledger_heads"
    columns = (
        "dataset, number, kind, spend, at, who, code, purpose, under, units, leak, spent, leaked, "
        "previous, hash, content"
    )

    def copied(number: str, hashed: str, spent: str = "spent", leaked: str = "leaked") -> str:
        chosen = (
            f"dataset, {number}, kind, spend, at, who, code, purpose, under, units, leak, {spent}, "
            f"{leaked}, previous, {hashed}"
        )
        return (
            f"INSERT INTO {entries} ({columns}) SELECT {chosen}, content FROM {entries} WHERE "
            f"number = 1"
        )

    statements = [
        f"UPDATE {entries} SET units = 0 WHERE number = 1",
        f"DELETE FROM {entries} WHERE number = 2",
        f"DELETE FROM {heads}",
        f"UPDATE {heads} SET number = 0",
        f"UPDATE {heads} SET number = number + 2",
        f"UPDATE {heads} SET dataset = 'other', number = number + 1",
        f"INSERT INTO {heads} (dataset, number, hash) VALUES ('other', 3, 'x')",
        copied("number + 3", "'new'"),
        copied("number", "'new'"),
        copied("number + 2", "hash"),
        copied("number + 2", "'new'", spent=str(creating.MOST_CHARGED + 1)),
        copied("number + 2", "'new'", spent="-1"),
        copied("number + 2", "'new'", leaked=str(creating.MOST_CHARGED + 1)),
        copied("number + 2", "'new'", leaked="-1"),
    ]
    if lasting.kind == "sqlite":
        statements += [
            statement.replace("INSERT", "INSERT OR REPLACE")
            for statement in statements
            if "INSERT" in statement
        ]
        statements += [f"INSERT OR REPLACE INTO {heads} SELECT dataset, 0, hash FROM {heads}"]
    else:
        statements += [f"TRUNCATE {entries}", f"TRUNCATE {heads}"]
    for statement in statements:
        with pytest.raises((sqlite.sqlite3.IntegrityError, psycopg.IntegrityError)):
            raw(lasting, statement)
    assert whole(store) == before
    # the same statement within the rules
    raw(lasting, "BEGIN", copied("number + 2", "'new'"), "ROLLBACK")
    for spent in (-1, creating.MOST_CHARGED + 1):
        with pytest.raises(LedgerError, match="keeps the rules"):
            add(store, line, spent=spent)
    assert whole(store) == before


def test_tables_that_somebody_changed_are_not_written_to(lasting: Any, line: Line) -> None:
    store = begun(lasting, line, 3)
    if lasting.kind == "sqlite":
        names = raw(lasting, "SELECT name FROM sqlite_master WHERE type = 'trigger'")[0]
        raw(lasting, *(f"DROP TRIGGER {name}" for (name,) in names))
    else:
        raw(
            lasting,
            *(
                f"ALTER TABLE fairveil_ledger_{table} DISABLE TRIGGER ALL"
                for table in ("entries", "heads")
            ),
        )
    raw(lasting, "DELETE FROM fairveil_ledger_entries WHERE number = 3")
    with pytest.raises(LedgerError, match="taken away or added"):
        add(store, line)
    raw(lasting, "DELETE FROM fairveil_ledger_heads")
    # SQLite's rules are looked at first
    with pytest.raises(LedgerError, match=r"no head|taken away or added"):
        add(store, line)
    with pytest.raises(LedgerError, match="no head"):
        store.kept_head(NAME)
    with pytest.raises(
        LedgerError, match=r"no ledger of|taken away or added"
    ):  # what was spent is not forgotten by beginning anew
        store.create(NAME, line(purpose="fresh"))
    assert len(list(store.entries(NAME))) == 3
    raw(lasting, "UPDATE fairveil_ledger_entries SET kind = 'gone' WHERE number = 1")
    with pytest.raises(LedgerError, match="Only a ledger writes"):
        list(store.entries(NAME))


def test_a_block_in_which_the_database_refused_is_not_half_written(
    lasting: Any, line: Line
) -> None:
    store = begun(lasting, line)

    def go_on_after_a_refusal() -> None:
        with store.writing(NAME) as page:
            page.append(line(page.head()))
            with suppress(LedgerError):
                page.append(line(page.head(), spent=-1))

    with pytest.raises(LedgerError, match="as a whole"):
        go_on_after_a_refusal()
    assert len(whole(store)) == 1


def test_a_thread_writes_one_block_after_another(place: Any, line: Line) -> None:
    store = begun(place, line)

    def one_inside_another() -> None:
        with store.writing(NAME) as page:
            page.append(line(page.head()))
            add(store, line)

    with pytest.raises(LedgerError, match="inside another"):
        one_inside_another()
    assert len(whole(store)) == 1
    add(store, line)
    assert len(whole(store)) == 2


def test_a_handle_for_reading_only_reads(lasting: Any, line: Line) -> None:
    store = begun(lasting, line, 2)
    reader = lasting.open(read_only=True)
    assert whole(reader) == whole(store)
    with pytest.raises(LedgerError, match="read_only=True"):
        add(reader, line)
    with pytest.raises(LedgerError, match="read_only=True"):
        reader.create("new", line(purpose="new"))
    with pytest.raises(LedgerError, match="read_only=True"):
        lasting.open(create=True, read_only=True)
    with pytest.raises(LedgerError):  # the database keeps it, too
        reader._ask("UPDATE fairveil_ledger_heads SET number = number + 1", ())
    store.close()
    assert len(whole(reader)) == 3


def test_a_newer_version_is_refused_and_stays_as_it_is(lasting: Any, line: Line) -> None:
    store = begun(lasting, line)
    newer = creating.VERSION + 1
    mark = (
        f"PRAGMA user_version = {newer}"
        if lasting.kind == "sqlite"
        else f"UPDATE fairveil_ledger_version SET version = {newer}"
    )
    raw(lasting, mark)
    for options in ({}, {"read_only": True}, {"create": True}):
        with pytest.raises(LedgerError, match="pip install --upgrade fairveil"):
            lasting.open(**options)
    with pytest.raises(LedgerError, match="pip install --upgrade fairveil"):
        add(store, line)  # opened before somebody else changed it
    assert len(list(store.entries(NAME))) == 1


def test_many_processes_may_begin_at_once(lasting: Any, line: Line, in_child: Child) -> None:
    def begin(number: int) -> None:
        store = lasting.open(create=True)
        store.create(f"set {number}", line(purpose=str(number)))
        with suppress(LedgerError):
            store.create("shared", line(purpose=f"shared {number}"))

    answers = [in_child(lambda number=number: begin(number)) for number in range(6)]
    assert [answer() for answer in answers] == ["None"] * 6
    store = lasting.open()
    assert store.datasets() == sorted(["shared", *(f"set {number}" for number in range(6))])
    assert len(list(store.entries("shared"))) == 1


def test_many_first_lines_are_all_there_or_none(place: Any, line: Line) -> None:
    store, lines = begun(place, line), [line(purpose="restored")]
    for _ in range(4):
        lines.append(line(lines[-1]))
    with pytest.raises(LedgerError):
        store.create("restored", lines[0], [*lines[1:3], lines[4]])
    assert "restored" not in store.datasets()
    store.create("restored", lines[0], lines[1:])
    assert list(store.entries("restored")) == lines
    assert store.kept_head("restored") == (4, lines[4].hash)
