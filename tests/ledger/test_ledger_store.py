"""Where lines are kept: files and servers that are damaged, full, moved, named twice, stopped or
nobody's to write."""

from __future__ import annotations

import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fairveil.core.events import Pure
from fairveil.errors import DataNotFoundError, FairveilError, InputError, LedgerAway, LedgerError
from fairveil.ledger import Ledger

Child = Callable[[Callable[[], object]], Callable[[], str]]
Hook = Callable[[Callable[[int, Any], object]], AbstractContextManager[None]]
ONE = Pure(0.001)
TABLE = "fairveil_ledger"


def begun(url: object, spends: int = 1, dataset: str = "census") -> Ledger:
    ledger = Ledger.create(url, dataset, 1.0, 0.0)  # type: ignore[arg-type]
    for _ in range(spends):
        ledger.reserve(ONE).commit()
    return ledger


def numbers(ledger: Ledger) -> list[int]:
    return [line.number for line in ledger.history()]


def is_sound(ledger: Ledger) -> bool:
    return not [found for found in ledger.check() if found.grave]


def link_to(url: str) -> Any:
    """The database itself, without a ledger between."""
    server = url.startswith("postgresql")
    return psycopg.connect(url) if server else sqlite3.connect(url)


# -- every place -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE fairveil_ledger SET spent = 0, units = 0 WHERE number = 4",
        "UPDATE fairveil_ledger SET units = units / 2 WHERE number = 1",
        "UPDATE fairveil_ledger SET purpose = 'x' WHERE number = 0",
        "UPDATE fairveil_ledger SET hash = 'x' WHERE number = 2",
        "DELETE FROM fairveil_ledger WHERE number = 2",
        "DELETE FROM fairveil_ledger WHERE number = 0",
        "DELETE FROM fairveil_ledger WHERE number = 4",
        "UPDATE fairveil_ledger SET at = 'a' || chr(10) WHERE number = 4",
    ],
)
def test_nothing_is_granted_on_damaged_lines(lasting: str, change: str) -> None:
    """A handle that knew them sees all; a new one all but the last ones taken off, which receipts
    tell."""
    ledger = begun(lasting, 2)
    receipt = ledger.reserve(ONE).receipt
    taken_off = change.endswith("4") and "DELETE" in change
    with closing(link_to(lasting)) as link:
        link.execute(change if "postgres" in lasting else change.replace("chr", "char"))
        if taken_off:
            link.execute(f"DELETE FROM {TABLE} WHERE number = 5")
        link.commit()
        before = link.execute(f"SELECT count(*) FROM {TABLE}").fetchone()
    if taken_off:
        with pytest.raises(LedgerError, match="an older copy"):
            ledger.reserve(ONE)
    else:
        with pytest.raises(FairveilError):
            Ledger.open(lasting, "census").reserve(ONE)
    with closing(link_to(lasting)) as link:
        assert link.execute(f"SELECT count(*) FROM {TABLE}").fetchone() == before
    with suppress(FairveilError):  # it cannot even be read
        reader = Ledger.open(lasting, "census", read_only=True)
        assert [found for found in reader.check([receipt]) if found.grave]


def test_a_plan_that_was_changed_after_it_was_read_settles_nothing(lasting: str) -> None:
    """Its promise says what the log costs."""
    ledger = begun(lasting, 0)
    spend = ledger.reserve([ONE, ONE])
    with closing(link_to(lasting)) as link:
        link.execute(f"UPDATE {TABLE} SET content = '{{}}' WHERE number = 1")
        link.commit()
    for ask in (lambda: ledger.standing(spend.id), lambda: spend.commit(ONE)):
        with pytest.raises(LedgerError, match="one that was changed"):
            ask()
    assert numbers(ledger) == [0, 1]


def test_an_older_copy_in_its_place_is_not_gone_on_with_unseen(tmp_path: Path) -> None:
    """A backup that was restored has forgotten what was spent since: who knew it is told."""
    path = tmp_path / "budget.db"
    ledger = begun(path)
    backup = path.read_bytes()
    ledger.reserve(Pure(0.9)).commit()
    (tmp_path / "restored.db").write_bytes(backup)
    os.replace(tmp_path / "restored.db", path)
    with pytest.raises(LedgerError, match="an older copy, or another one in its place"):
        ledger.reserve(ONE)
    Ledger.open(path).reserve(ONE).commit()  # whoever restored it on purpose opens it again


def test_what_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    (tmp_path / "text.db").write_text("no database at all" * 100)
    with closing(sqlite3.connect(tmp_path / "other.db")) as link:
        link.execute("CREATE TABLE t (x)")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for name, kind in (
        *(("none.db", DataNotFoundError), ("empty.db", DataNotFoundError), ("", DataNotFoundError)),
        *(
            ("text.db", LedgerError),
            ("other.db", DataNotFoundError),
            ("no/budget.db", DataNotFoundError),
        ),
        *(("text.db/x", LedgerError), ("a\0b", LedgerError), ("n" * 300, LedgerError)),
    ):
        for read_only in (False, True):
            with pytest.raises(kind):
                Ledger.open(tmp_path / name, read_only=read_only)
    for name in ("text.db", "other.db", "no/budget.db", "text.db/x", "a\0b", ""):
        with pytest.raises(FairveilError):
            begun(tmp_path / name)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    begun(tmp_path / "empty.db")  # an empty file is as good as none


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    begun("sqlite:///a b.db")
    begun(f"sqlite:///{tmp_path}/c.db".replace("///", "////", 1))
    for name in ("file:d.db", "#e f%20.db", "mysql.db", "-x"):
        begun(Path(name))
    names = ("-x", "#e f%20.db", "a b.db", "c.db", "file:d.db", "mysql.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(names)
    bad = ("", ":memory:", b":memory:", Path(":memory:"), "file::memory:", "mysql://a:s3cret@b/c")
    more = ("sqlite://x", "sqlite:///", "postgresql:x", "me:s3cret@host/base", "a?password=s3cret")
    for url in (*bad, *more, 3, ["a"]):
        for use in (lambda url=url: begun(url), lambda url=url: Ledger.open(url)):
            with pytest.raises(InputError) as told:
                use()
            assert "s3cret" not in str(told.value)
    assert len(list(tmp_path.iterdir())) == 6


# -- files -----------------------------------------------------------------------------------------


def test_a_file_is_its_owners_alone_and_every_commit_is_on_the_disk(
    tmp_path: Path, after_statements: Hook
) -> None:
    path, found = tmp_path / "budget.db", []

    def look(count: int, link: Any) -> None:
        names = ("synchronous", "journal_mode", "fullfsync")
        found.append([link.execute(f"PRAGMA {name}").fetchone()[0] for name in names])

    mask = os.umask(0)
    try:
        ledger = begun(path)
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as link:  # somebody's other mode is put back
        assert link.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    with after_statements(look):
        ledger.reserve(ONE)
    assert found[-1] == [3, "delete", 1]
    assert [file.name for file in tmp_path.iterdir()] == ["budget.db"]


def test_nobody_can_charge_between_reading_and_charging(
    tmp_path: Path, after_statements: Hook
) -> None:
    path, tried = tmp_path / "budget.db", []
    ledger = begun(path)

    def other(count: int, ours: Any) -> None:
        if ours.in_transaction:
            with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as link:
                tried.append(count)
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    link.execute("BEGIN IMMEDIATE")

    with after_statements(other):
        ledger.reserve(ONE)
    assert len(tried) == 3


def test_whoever_waits_too_long_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = begun(tmp_path / "budget.db")
    monkeypatch.setattr("fairveil.ledger.store.PATIENCE", 0.3)
    with closing(sqlite3.connect(tmp_path / "budget.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerAway, match="its turn within"):
            ledger.reserve(ONE)
    ledger.reserve(ONE)
    assert numbers(ledger) == [0, 1, 2, 3]


def test_a_full_disk_is_told_and_nothing_is_half_written(tmp_path: Path, in_child: Child) -> None:
    path = tmp_path / "budget.db"
    begun(path)

    def fill() -> str:
        ledger, spends = Ledger.open(path), 0
        # no file may grow beyond
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
        try:
            while spends < 200:
                ledger.reserve([Pure(1e-6 * k) for k in range(1, 40)])
                spends += 1
        except LedgerError as error:
            told = str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, resource.RLIM_INFINITY))
        with pytest.raises(LedgerError, match="expected"):
            begun(tmp_path / "new.db", 0)
        assert not (tmp_path / "new.db").exists()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ledger.reserve(ONE)
        assert len(numbers(ledger)) == 3 + spends + 1
        return told

    told = in_child(fill)()
    assert told.startswith(str(path)), told
    assert is_sound(Ledger.open(path))


@pytest.mark.parametrize("keep", [0, 1])
def test_a_journal_that_was_left_is_rolled_back(tmp_path: Path, keep: int) -> None:
    """A writer that died in the middle of a commit: half of its pages are in the file."""
    path = tmp_path / "budget.db"
    ledger = begun(path, 5)
    wanted = [line.hash for line in ledger.history()]
    code = (
        "import sqlite3, os, sys; link = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "link.execute('PRAGMA cache_size = 1'); link.execute('PRAGMA cache_spill = 1');"
        "link.execute('BEGIN IMMEDIATE');"
        "link.execute('DELETE FROM fairveil_ledger'); link.execute('CREATE TABLE t (x)');"
        "link.executemany('INSERT INTO t VALUES (?)', [('x' * 3000,)] * 300); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path]).returncode == 9
    assert Path(f"{path}-journal").exists()
    reader = Ledger.open(path, read_only=bool(keep))
    assert [line.hash for line in reader.history()] == wanted
    ledger.reserve(ONE).commit()
    assert is_sound(ledger)


@pytest.mark.parametrize("seed", range(6))
def test_a_damaged_page_is_a_typed_error_or_harmless(tmp_path: Path, seed: int) -> None:
    path, chance = tmp_path / "budget.db", random.Random(seed)
    begun(path, 40)
    text, kept = bytearray(path.read_bytes()), path.read_bytes()
    for _ in range(12):
        damaged, at = bytearray(text), chance.randrange(len(text) - 400)
        damaged[at : at + 400] = chance.randbytes(400) if chance.random() < 0.5 else bytes(400)
        path.write_bytes(damaged)
        try:
            ledger = Ledger.open(path)
            ledger.reserve(ONE)
        except FairveilError:
            continue
        assert is_sound(Ledger.open(path)), at  # an unused place
        assert numbers(ledger) == list(range(82))
    path.write_bytes(kept)
    assert is_sound(Ledger.open(path))


def test_a_file_that_is_moved_or_linked_in_the_middle_of_a_use_is_refused(
    tmp_path: Path, after_statements: Hook
) -> None:
    path, away, ledger = tmp_path / "budget.db", tmp_path / "away.db", begun(tmp_path / "budget.db")

    def doing(deed: Callable[[], object]) -> None:
        def once(count: int, link: Any) -> None:
            if link.total_changes and not done:
                done.append(deed())

        done: list[object] = []
        with pytest.raises((LedgerError, DataNotFoundError)), after_statements(once):
            ledger.reserve(ONE)
        assert done

    doing(lambda: os.rename(path, away))
    os.rename(away, path)
    doing(lambda: os.link(path, away))
    os.unlink(away)
    shutil.copy(path, away)
    doing(lambda: os.replace(away, path))
    ledger.reserve(ONE)
    assert numbers(ledger) == [0, 1, 2, 3]


SPEND = """import sys, fairveil as fv
from fairveil.core.events import Pure
fv.Ledger.open(sys.argv[1]).reserve(Pure(0.45)).commit()
"""


def elsewhere(path: Path, *before: str) -> str:
    """What another process is told that spends by this name."""
    words = [*before, sys.executable, "-c", SPEND, str(path)]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.stderr.strip().splitlines()[-1] if done.returncode else "granted"


def test_a_hard_link_is_refused_by_both_names_and_a_symbolic_one_is_the_same_name(
    tmp_path: Path,
) -> None:
    one, two = tmp_path / "one.db", tmp_path / "b" / "two.db"
    ledger = begun(one, 0)
    two.parent.mkdir()
    os.link(one, two)
    for path in (one, two):
        assert "2 hard links" in elsewhere(path)
    for action in (lambda: ledger.reserve(ONE), lambda: Ledger.open(two, read_only=True)):
        with pytest.raises(LedgerError, match=r"a file with one name.*Remove the other name"):
            action()
    two.unlink()
    two.symlink_to(one)
    assert elsewhere(two) == elsewhere(one) == "granted"
    assert f"{ledger.balance().spent_share:.1f}" == "0.9"
    begun(tmp_path / "three.db")
    other = Ledger.open(two)
    two.unlink()
    two.symlink_to(tmp_path / "three.db")
    with pytest.raises(LedgerError):  # it leads to another ledger now
        other.reserve(ONE)


def test_a_file_that_is_mounted_alone_is_refused_and_a_folder_is_not(tmp_path: Path) -> None:
    mount = ["unshare", "-m", "mount", "--bind", __file__, __file__]
    able = os.geteuid() == 0 and shutil.which("unshare") is not None
    if not able or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only the superuser may mount a file, in a mount namespace of its own")
    (tmp_path / "a").mkdir()
    path, alone, folder = tmp_path / "a" / "x.db", tmp_path / "alone.db", tmp_path / "folder"
    ledger = begun(path, 0)
    alone.touch()
    folder.mkdir()
    script = ("unshare", "-m", "sh", "-c", 'mount --bind "$1" "$2" && shift 2 && exec "$@"', "sh")
    told = elsewhere(alone, *script, str(path), str(alone))
    assert "a mount point: the file alone is mounted there" in told
    assert elsewhere(folder / "x.db", *script, str(path.parent), str(folder)) == "granted"
    assert f"{ledger.balance().spent_share:.2f}" == "0.45"


# -- servers ---------------------------------------------------------------------------------------


def at_port(url: str, port: int) -> str:
    return re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", url)


def test_no_error_and_no_text_shows_a_password(server: str) -> None:
    ledger = begun(server)
    assert "s3cret" in str(ledger.address)
    for text in (repr(ledger), ledger.shown, str(ledger.reserve(ONE))):
        assert "s3cret" not in text
        assert "***" in text
    for wrong in (
        *(server.replace("s3cret", "wr0ngs3cret"), at_port(server, 1)),
        server.replace("127.0.0.1", "no.such.host.invalid"),
        re.sub(r":\d+/", ":port/", server),
        *(server.replace("/postgres?", "/none?"), server.replace("%40", "@")),
        *(server.replace("%40", "%4"), server.replace("me:", "nobody:") + "&nosuchsetting=1"),
        "postgresql://127.0.0.1:1/base?user=me&password=s3cret",
        server + "&password=s3cret2&connect_timeout=x",
    ):
        with pytest.raises(FairveilError, match="expected") as caught:
            Ledger.open(wrong)
        error: BaseException | None = caught.value
        told = "".join(traceback.format_exception(caught.value))
        while error is not None:
            told, error = told + repr(error), error.__context__
        assert "s3cret" not in told
        assert "word" not in told.replace("password", "")


def test_without_psycopg_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'fairveil\[sql\]'"):
        Ledger.open("postgresql://me:hunter2@127.0.0.1:1/x")


def test_a_commit_waits_for_the_disk_whatever_the_default(
    server: str, after_statements: Hook
) -> None:
    begun(server, 0)
    names = ("synchronous_commit", "transaction_isolation", "lock_timeout")
    names = (*names, "idle_in_transaction_session_timeout")
    for default, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
        wishes = f"%20-csynchronous_commit%3D{default}"
        wishes += "%20-cdefault_transaction_isolation%3Dserializable"
        ledger, found = Ledger.open(server + wishes), []

        def look(count: int, link: Any, found: list[Any] = found) -> None:
            if link.info.transaction_status.name == "INTRANS":
                found.append([link.execute(f"SHOW {name}").fetchone()[0] for name in names])

        with after_statements(look):
            ledger.reserve(ONE)
        assert found[-1] == [expected, "read committed", "1min", "45s"]


def test_a_server_that_stopped_is_waited_for_by_nobody_and_lost_nothing(
    server: str, postgres: Any
) -> None:
    ledger = begun(server)
    postgres.stop()
    try:
        for ask in (lambda: ledger.reserve(ONE), lambda: Ledger.open(server), ledger.balance):
            with pytest.raises(LedgerAway, match="a server that answers"):
                ask()
    finally:
        postgres.start()
    ledger.reserve(ONE).commit()
    assert numbers(ledger) == [0, 1, 2, 3, 4]
    assert is_sound(ledger)


def test_a_session_that_is_ended_in_the_middle_writes_nothing(
    server: str, after_statements: Hook
) -> None:
    ledger = begun(server)

    def end(count: int, ours: Any) -> None:
        if count == 2:
            with closing(psycopg.connect(server, autocommit=True)) as link:
                link.execute("SELECT pg_terminate_backend(%s)", [ours.info.backend_pid])

    with pytest.raises(LedgerAway), after_statements(end):
        ledger.reserve(ONE)
    ledger.reserve(ONE)
    assert numbers(ledger) == [0, 1, 2, 3]
