"""A ledger in a file: rights, odd paths, other files, full disks, torn logs, and who copies the log
when."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairveil.errors import DataNotFoundError, InputError, LedgerError
from fairveil.privacy.ledger.stores import sqlite, sqlite_file
from fairveil.privacy.ledger.stores.entries import Entry
from fairveil.privacy.ledger.stores.opening import store_of
from fairveil.privacy.ledger.stores.sqlite import SQLiteStore

Line = Callable[..., Entry]
Child = Callable[[Callable[[], object]], Callable[[], str]]


def begun(path: Any, line: Line, lines: int = 0) -> SQLiteStore:
    store = SQLiteStore(path, create=True)
    store.create("census", line())
    for _ in range(lines):
        add(store, line)
    return store


def add(store: SQLiteStore, line: Line, **changes: Any) -> None:
    with store.writing("census") as page:
        page.append(line(page.head(), **changes))


def mode(path: Any) -> str:
    return oct(os.stat(path).st_mode & 0o777)


def test_the_file_is_its_owners_alone_from_the_first_moment(
    tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "budget.db", []
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *words, **named: (seen.append(mode(path)), connect(*words, **named))[1],
    )
    before = os.umask(0)
    try:
        store = begun(path, line)
    finally:
        os.umask(before)
    assert set(seen) == {"0o600"}
    assert [mode(f"{path}{end}") for end in ("", "-wal", "-shm")] == ["0o600"] * 3
    store.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["budget.db"]


@pytest.mark.parametrize(
    "name", ["a b.db", "50%.db", "why?mode=memory.db", "#1&x=y.db", "ä🏛.db", "'q\"`.db", ":memory:"]
)
def test_any_name_is_a_file_of_that_name(
    name: str, tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    begun(name, line, 1).close()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    reader = store_of(tmp_path / name, create=False, read_only=True)
    assert reader.last("census").number == 1
    assert reader.address == reader.shown == str(tmp_path / name)


def test_addresses(tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begun("what?.db", line).close()
    for url in (
        "what?.db",
        f"{tmp_path}/what?.db",
        "sqlite:///what%3F.db",
        f"SQLite:///{tmp_path}/what%3F.db",
    ):
        store = store_of(url, create=False)
        assert store.datasets() == ["census"]
        store.close()
    assert store_of(None, create=False).datasets() == []
    wrong = [
        "mysql://me:hunter2@host/x",
        "file://x.db",
        "sqlite://x.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///x.db?mode=ro",
    ]
    wrong += ["postgresql:me:hunter2@host/x", "me:hunter2@host", "host=here password=hunter2", ""]
    for url in wrong:
        with pytest.raises(InputError, match=r"expected (an address|sqlite:///FILE)") as caught:
            store_of(url, create=True)
        assert "hunter2" not in repr(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["what?.db"]


def test_a_file_that_is_no_ledger_is_refused_and_stays_as_it_is(tmp_path: Path, line: Line) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as link:
        link.execute("CREATE TABLE people (age)")
    with closing(sqlite3.connect(tmp_path / "marked.db")) as link:
        link.execute("PRAGMA application_id = 7")
    (tmp_path / "text.db").write_text("this is not a database at all" * 100)
    torn = begun(tmp_path / "torn.db", line, 200)
    torn.close()
    (tmp_path / "torn.db").write_bytes((tmp_path / "torn.db").read_bytes()[:5000])
    for name in ("other.db", "marked.db", "text.db", "torn.db"):
        before = (tmp_path / name).read_bytes()
        for options in ({"create": True}, {"create": False}, {"create": False, "read_only": True}):
            with pytest.raises(LedgerError, match="expected the file of a ledger"):
                list(SQLiteStore(tmp_path / name, **options).entries("census"))
        assert (tmp_path / name).read_bytes() == before
    assert not [
        entry.name
        for entry in tmp_path.iterdir()
        if entry.suffix != ".db" and "torn" not in entry.name
    ]


def test_what_is_not_there_or_cannot_be_reached(tmp_path: Path, line: Line) -> None:
    (tmp_path / "empty.db").touch()
    for name, kind in (
        ("none.db", DataNotFoundError),
        (".", DataNotFoundError),
        ("empty.db", LedgerError),
        ("a\0b", LedgerError),
    ):
        with pytest.raises(kind, match="expected"):
            SQLiteStore(tmp_path / name, create=False)
    with pytest.raises(DataNotFoundError, match="Make the folder first"):
        SQLiteStore(tmp_path / "no" / "budget.db", create=True)
    with pytest.raises(LedgerError, match="can be reached"):
        SQLiteStore(tmp_path / "empty.db" / "budget.db", create=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["empty.db"]
    begun(tmp_path / "empty.db", line)  # an empty file is as good as none


def test_a_folder_that_may_not_be_written_to(line: Line, in_child: Child) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's folders are their owner's alone
        path = Path(name) / "budget.db"
        begun(path, line).close()
        os.chmod(path, 0o644)
        os.chmod(name, 0o555)

        def look(action: Callable[[], object]) -> str:
            def as_somebody() -> object:
                if os.geteuid() == 0:  # the superuser may write everywhere
                    os.setuid(65534)
                return action()

            return in_child(as_somebody)()

        told = [
            look(lambda: SQLiteStore(Path(name) / "new.db", create=True)),
            look(lambda: add(SQLiteStore(path, create=False), line)),
            look(lambda: SQLiteStore(path, create=False, read_only=True).last("census")),
        ]
        os.chmod(name, 0o700)
        assert "Name a file in a folder that you may write to" in told[0]
        assert all("ask for the rights to the folder" in words for words in told[1:]), told
        assert os.listdir(name) == ["budget.db"]


def test_a_full_disk_is_told_and_nothing_is_half_written(
    tmp_path: Path, line: Line, in_child: Child
) -> None:
    path = tmp_path / "budget.db"
    begun(path, line, 3).close()

    def fill() -> str:
        store, lines = SQLiteStore(path, create=False), 4
        add(store, line)
        # no file may grow beyond
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        try:
            while lines < 100:
                lines += 1
                add(store, line, content='"' + "x" * 9_000 + '"')
        except LedgerError as error:
            refused = str(error)
        still = store.last("census").number
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        add(store, line)
        assert "expected" in refused
        assert still == lines - 1
        return str(lines)

    lines = int(in_child(fill)())
    assert 5 < lines < 100
    reader = SQLiteStore(path, create=False, read_only=True)
    assert [entry.number for entry in reader.entries("census")] == list(range(lines + 1))
    assert reader.kept_head("census")[0] == lines

    def begin() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        with pytest.raises(LedgerError):
            SQLiteStore(tmp_path / "new.db", create=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return begun(tmp_path / "new.db", line, 1).last("census").spend

    assert in_child(begin)() == "s0"


def test_a_log_torn_at_any_byte_keeps_every_line_that_was_acknowledged(
    tmp_path: Path, line: Line
) -> None:
    path, log = tmp_path / "budget.db", tmp_path / "budget.db-wal"
    store, copy = begun(path, line), tmp_path / "copy.db"
    rng, marks = random.Random(5), [log.stat().st_size]
    for _ in range(30):
        add(store, line, content='"' + "x" * rng.choice([10, 5_000]) + '"')
        marks.append(log.stat().st_size)
    database, written = path.read_bytes(), log.read_bytes()
    for acknowledged, (start, end) in enumerate(
        zip(marks, [*marks[1:], marks[-1] + 1], strict=True)
    ):
        cut = rng.randrange(start, end)
        copy.write_bytes(database)
        (tmp_path / "copy.db-wal").write_bytes(
            written[:cut] + rng.randbytes(rng.choice([0, 10_000]))
        )
        opened = SQLiteStore(copy, create=False)
        lines = list(opened.entries("census"))
        assert [entry.number for entry in lines] == list(range(acknowledged + 1))
        assert opened.kept_head("census") == (acknowledged, lines[-1].hash)
        add(opened, line)
        opened.close()
        copy.unlink()


def test_every_commit_goes_to_the_disk(tmp_path: Path, line: Line) -> None:
    store = begun(tmp_path / "budget.db", line)
    wanted = {
        "synchronous": 2,
        "journal_mode": "wal",
        "fullfsync": 1,
        "checkpoint_fullfsync": 1,
        "wal_autocheckpoint": 0,
    }
    assert {name: store._ask(f"PRAGMA {name}", ())[0][0] for name in wanted} == wanted


def test_the_log_is_copied_only_while_nobody_may_write(
    tmp_path: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LONG_LOG", 100_000)
    monkeypatch.setattr(sqlite_file, "SHORT_LOG", 50_000)
    path = tmp_path / "budget.db"
    store = begun(path, line)
    tried, sizes = [], []
    shorten = SQLiteStore._shorten

    def watched(self: SQLiteStore, connection: Any) -> None:
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            tried.append(
                other.execute("SELECT count(*) FROM fairveil_ledger_entries").fetchone()[0]
            )
        shorten(self, connection)

    monkeypatch.setattr(SQLiteStore, "_shorten", watched)
    for _ in range(100):
        add(store, line, content='"' + "x" * 9_000 + '"')
        sizes.append(os.stat(f"{path}-wal").st_size)
    assert len(tried) > 5
    assert max(sizes) < 200_000
    # Somebody who reads on and on keeps the log from beginning anew: it grows, and is tried again
    # now and then.
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM fairveil_ledger_entries").fetchone()
        before = len(tried)
        for _ in range(30):
            add(store, line, content='"' + "x" * 9_000 + '"')
        assert 0 < len(tried) - before < 15
    for _ in range(30):
        add(store, line, content='"' + "x" * 9_000 + '"')
    assert os.stat(f"{path}-wal").st_size < 200_000
    assert [entry.number for entry in store.entries("census")] == list(range(161))


def test_a_file_that_was_moved_away_is_not_written_to(tmp_path: Path, line: Line) -> None:
    path = tmp_path / "budget.db"
    store = begun(path, line, 1)
    os.rename(path, tmp_path / "away.db")
    with pytest.raises(DataNotFoundError, match="the file of a ledger"):
        add(store, line)
    begun(path, line, 4).close()
    add(store, line)
    assert store.last("census").number == 5


def test_a_damaged_line_is_a_typed_error(tmp_path: Path, line: Line) -> None:
    changes = [
        "units = 'many'",
        "who = CAST(x'ff41' AS TEXT)",
        "spend = x'00'",
        "kind = 'none'",
        "number = 'x'",
        "units = 0.5",
    ]
    for number, change in enumerate(changes):
        path = tmp_path / f"{number}.db"
        store = begun(path, line, 2)
        store.close()
        with closing(sqlite3.connect(path, isolation_level=None)) as link:
            link.execute("DROP TRIGGER fairveil_ledger_entries_update")
            link.execute(f"UPDATE fairveil_ledger_entries SET {change} WHERE number = 1")
        with pytest.raises(LedgerError, match="expected"):
            list(store.entries("census"))
        if "units" in change:
            with pytest.raises(LedgerError, match="expected"):
                list(store.charges("census"))


def test_lines_of_a_spend_are_found_without_reading_the_others(tmp_path: Path, line: Line) -> None:
    asked: list[str] = []
    store = begun(tmp_path / "budget.db", line, 3)
    with store._connections.using() as connection:
        connection.link.set_trace_callback(asked.append)
        assert [entry.number for entry in store.of_spend("census", "s1")] == [2]
        connection.link.set_trace_callback(None)
        plan = connection.link.execute(f"EXPLAIN QUERY PLAN {asked[-1]}").fetchall()
    assert "fairveil_ledger_spends (dataset=? AND spend=?" in str(plan)
