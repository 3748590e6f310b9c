"""What a grant relies on is verified before it: flipped bytes, tables without their rules, and what
is no file at all."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fairveil.core.events import Pure
from fairveil.errors import DataNotFoundError, FairveilError, LedgerError
from fairveil.privacy.ledger import Ledger
from fairveil.privacy.ledger.stores import sqlite_rules, tables, verifying

Child = Callable[[Callable[[], object]], Callable[[], str]]
SMALL = Pure(0.01)
FLIPS = 250


def begun(path: Path, spends: int = 8) -> Ledger:
    ledger = Ledger.create(path, "d", 1.0, 0.0)
    for _ in range(spends):
        ledger.reserve(SMALL).commit()
    return ledger


def outcome(path: Path) -> str:
    """What somebody meets who opens it, reserves, and then checks."""
    try:
        ledger = Ledger.open(path, "d")
        try:
            granted = ledger.reserve(SMALL)
            grave = [found.sentence for found in ledger.check() if found.grave]
            return (
                f"granted against {grave}" if grave else f"granted {ledger._store.last('d').spent}"
            )
        finally:
            ledger.close()
            del granted
    except FairveilError:
        return "refused"
    except UnboundLocalError:
        return "refused"


def flipped(raw: bytes, rng: random.Random) -> bytes:
    """One to ten bits are others: anywhere, or on the first page, which holds the header and the
    rules."""
    out = bytearray(raw)
    within = len(out) if rng.random() < 0.6 else 4096
    for _ in range(rng.choice([1, 1, 3, 10])):
        out[rng.randrange(within)] ^= 1 << rng.randrange(8)
    return bytes(out)


def test_flipped_bits_are_refused_or_do_no_harm(tmp_path: Path) -> None:
    begun(tmp_path / "whole.db").close()
    raw, rng = (tmp_path / "whole.db").read_bytes(), random.Random(16)
    clean = outcome(tmp_path / "whole.db")
    assert clean.startswith("granted ")
    told: Counter[str] = Counter()
    for number in range(FLIPS):
        path = tmp_path / f"{number}.db"
        path.write_bytes(flipped(raw, rng))
        told[outcome(path)] += 1
        path.unlink()
    assert set(told) == {"refused", clean}, told
    assert told["refused"] > FLIPS / 2


def damage(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        for statement in statements:
            link.execute(statement)


def without_rules(path: Path) -> tuple[list[str], list[str]]:
    """What takes the triggers away, and what puts them back."""
    with closing(sqlite3.connect(path)) as link:
        found = link.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
    return [f"DROP TRIGGER {name}" for name, _ in found], [sql for _, sql in found]


@pytest.mark.parametrize(
    "change",
    [
        "purpose = 'else' WHERE number = 3",
        "units = units - 1 WHERE number = 3",
        "spent = spent - 1 WHERE number = 16",
        "content = replace(content, '0.01', '0.02') WHERE number = 1",
        "hash = previous WHERE number = 0",
        "previous = hash WHERE number = 16",
        "under = CAST(x'ff41' AS TEXT) WHERE number = 5",
        "units = 0.5 WHERE number = 5",
        "who = x'00' WHERE number = 7",
    ],
)
def test_guarantee_1_a_line_that_was_changed_is_found_before_the_next_is_added(
    tmp_path: Path, change: str
) -> None:
    path = tmp_path / "budget.db"
    begun(path).close()
    take, put = without_rules(path)
    damage(path, *take, f"UPDATE fairveil_ledger_entries SET {change}", *put)
    with pytest.raises(LedgerError, match="expected"):
        Ledger.open(path).reserve(SMALL)
    with closing(sqlite3.connect(path)) as link:
        assert link.execute("SELECT max(number) FROM fairveil_ledger_entries").fetchone() == (16,)


def test_guarantee_1_a_whole_chain_of_wrong_sums_is_found(tmp_path: Path) -> None:
    """Hashes that fit do not help where the sums do not."""
    path = tmp_path / "budget.db"
    ledger = begun(path, 2)
    lines = list(ledger.history())
    ledger.close()
    from dataclasses import replace

    last = replace(lines[4], spent=lines[4].spent - 1).sealed()
    take, put = without_rules(path)
    damage(
        path,
        *take,
        f"UPDATE fairveil_ledger_entries SET spent = {last.spent}, hash = '{last.hash}' WHERE "
        f"number = 4",
        f"UPDATE fairveil_ledger_heads SET hash = '{last.hash}'",
        *put,
    )
    with pytest.raises(LedgerError, match="whose sums are not those of the lines before it"):
        Ledger.open(path).reserve(SMALL)


def test_lines_that_are_damaged_later_are_found_where_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = begun(path)
    take, put = without_rules(path)
    damage(
        path, *take, "UPDATE fairveil_ledger_entries SET spent = spent - 1 WHERE number = 16", *put
    )
    with pytest.raises(LedgerError, match="line 16, which is not what its hash was made of"):
        ledger.reserve(SMALL)


def test_a_damaged_index_is_found(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    begun(path).close()
    with closing(sqlite3.connect(path)) as link:
        root, size = link.execute(
            "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_master WHERE "
            "name = 'fairveil_ledger_spends'"
        ).fetchone()
        spend = link.execute(
            "SELECT spend FROM fairveil_ledger_entries WHERE number = 2"
        ).fetchone()[0]
    raw = bytearray(path.read_bytes())
    at = raw.index(spend.encode(), (root - 1) * size)
    assert at < root * size
    raw[at : at + 4] = b"zzzz"
    path.write_bytes(raw)
    with pytest.raises(LedgerError, match="expected lines that fit each other"):
        Ledger.open(path).reserve(SMALL)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TRIGGER fairveil_ledger_entries_delete",
        "DROP INDEX fairveil_ledger_spends",
        "CREATE TRIGGER more AFTER INSERT ON fairveil_ledger_entries BEGIN DELETE FROM "
        "fairveil_ledger_heads; END",
    ],
)
def test_nothing_is_granted_in_tables_without_their_rules(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "budget.db"
    ledger = begun(path)
    damage(path, statement)  # while it is in use
    for handle in (ledger, Ledger.open(path)):
        with pytest.raises(LedgerError, match="expected the rules of a ledger"):
            handle.reserve(SMALL)
        handle.close()
    # it may still be looked at, and exported
    assert Ledger.open(path, read_only=True).balance().entries == 17
    damage(path, "CREATE TABLE IF NOT EXISTS notes (words)")


def test_guarantee_2_what_is_read_does_not_grow_with_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    real = verifying.read_on

    def counted(mark: Any, rows: Any, of: str) -> Any:
        rows = list(rows)
        read.append(len(rows))
        return real(mark, rows, of)

    monkeypatch.setattr(tables, "read_on", counted)
    monkeypatch.setattr(tables, "MOST_READ", 10)
    begun(tmp_path / "budget.db", 20).close()
    read.clear()
    ledger, other = Ledger.open(tmp_path / "budget.db"), Ledger.open(tmp_path / "budget.db")
    for _ in range(5):
        ledger.reserve(SMALL).commit()
    assert read == [10]  # once in a store
    other.reserve(SMALL)
    ledger.reserve(SMALL)
    assert read[1:] == [10, 1]  # and what somebody else wrote since


def test_a_large_file_is_not_searched_for_damaged_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairveil.privacy.ledger.stores.sqlite.SMALL", 0)
    begun(tmp_path / "budget.db").reserve(SMALL)
    assert sqlite_rules.SMALL > 1 << 20


def test_what_is_no_file_is_called_what_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, kind in (
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a pipe"),
        (Path("/dev/null"), "a device"),
    ):
        for ask in (
            lambda place=place: Ledger.open(place),
            lambda place=place: Ledger.create(place, "d", 1.0, 0.0),
        ):  # type: ignore[misc]
            with pytest.raises(
                DataNotFoundError, match=f"expected the file of a ledger, got '{kind}, "
            ):
                ask()


def test_a_full_disk_leaves_no_empty_file(tmp_path: Path, in_child: Child) -> None:
    path = tmp_path / "budget.db"

    def begin() -> str:
        told = []
        for room in (0, 10_000, 30_000):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            with pytest.raises(LedgerError, match="expected") as caught:
                Ledger.create(path, "d", 1.0, 0.0)
            told.append(str(caught.value).partition("expected")[2])
            assert os.listdir(tmp_path) == []
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        Ledger.create(path, "d", 1.0, 0.0).close()
        return str(os.listdir(tmp_path))

    assert in_child(begin)() == "['budget.db']"


def test_a_full_disk_that_is_one(tmp_path: Path) -> None:
    """A file system of 16 KiB, in a mount namespace of its own."""
    code = "import sys, fairveil as fv; fv.Ledger.create(sys.argv[1] + '/budget.db', 'd', 1.0, 0.0)"
    script = (
        'mount -t tmpfs -o size=16k none "$1" && { "$2" -c "$3" "$1" 2>&1; ls -A "$1" | sed '
        "s/^/left:/; }"
    )
    command = ["unshare", "-m", "sh", "-c", script, "sh", str(tmp_path), os.sys.executable, code]  # type: ignore[attr-defined]
    if (
        os.geteuid() != 0
        or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0
    ):
        pytest.skip("only the superuser may mount a file system")
    done = subprocess.run(command, capture_output=True, text=True)
    if "mount:" in done.stderr:
        pytest.skip("no file system may be mounted here")
    assert "LedgerError" in done.stdout
    assert "left:" not in done.stdout


def test_nobody_elses_ledger_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = begun(path)
    with pytest.raises(LedgerError, match="no ledger of"):
        Ledger.create(path, "d", 1.0, 0.0)
    assert ledger.balance().entries == 17
