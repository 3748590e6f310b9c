"""Servers that are killed, disks that fail, ledgers that are away, machines that are started anew:
nothing is charged twice, answered twice, or left open."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from door_faults import faults
from doors import Analyst, Place, Refused, free_port, place_in, served

import fairveil as fv
from fairveil.core.events import Gaussian, Repeated
from fairveil.curator import Measurement, RowCount
from fairveil.errors import DoorError, FairveilError, LedgerAway, LedgerError, PrivacyError
from fairveil.ledger import Ledger, Spend
from fairveil.serving import client
from fairveil.serving.records import Records, Tokens
from fairveil.serving.refusals import SAYINGS
from fairveil.serving.runs import Server

SCRIPT = Path(__file__).parent / "crashing_door.py"
LONG = Measurement(RowCount(copies=2000), 4000.0)
"""Its answer fills several pages of a file."""
Up = tuple[Server, str]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path, epsilon=50.0, seeded=False)


@pytest.fixture
def up(place: Place) -> Iterator[Up]:
    with served(place) as found:
        yield found


@pytest.fixture
def one(up: Up) -> Analyst:
    return Analyst(*up)


def started(config: Path, port: int, *point: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(config), str(port), *point]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


@pytest.mark.parametrize(
    ("point", "number", "when"),
    [
        ("reserve", 1, "after"),  # reserved, and nobody wrote down by which spend
        ("keep", 5, "after"),  # written, and the reply never left
        ("settle", 1, "after"),  # the ledger knows of the end, and the records do not
        ("told", 1, "before"),  # the records know of the end, and the ledger does not
    ],
)
def test_a_killed_server_loses_nothing_and_charges_once(
    point: str, number: int, when: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "WAIT", 0.4)
    port = free_port()
    records = Records(place.folder / "door", serves=False)
    token = Tokens(records).issue("analyst")
    records.close()
    first = started(place.config, port, point, str(number), when)
    after: list[subprocess.Popen[str]] = []

    def follow() -> None:
        assert first.wait(120) == -9
        after.append(started(place.config, port))

    watching = threading.Thread(target=follow)
    watching.start()
    try:
        url = f"http://127.0.0.1:{port}"
        data = fv.remote(url, "applicants", token=token, key=place.public_key)
        clf = fv.FermiClassifier(solver=fv.Descent(rounds=6), epsilon=1.0).fit(data)
        data.close()
    finally:
        watching.join(120)
        for process in (first, *after):
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()
    alone = fv.FermiClassifier(solver=fv.Descent(rounds=6), epsilon=1.0).fit(place.rows)
    assert clf.privacy_.events == alone.privacy_.events  # all of the plan, and each release once
    assert not [finding for finding in clf.privacy_.check() if finding.grave]
    balance = place.ledger().balance()
    assert (balance.open, balance.committed) == (0, 1)
    assert balance.refunded == (1 if point == "reserve" else 0)
    assert place.ledger().check([clf.privacy_.ledger]) == []  # type: ignore[list-item]
    assert faults(place) == []


def test_a_request_that_waited_for_a_run_that_failed_is_answered_by_the_next_curator(
    place: Place, one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails under one request while another waits for its turn: two curators of one run
    must not both answer."""
    inside, go, plain = threading.Event(), threading.Event(), Records.keep
    run = one.open()

    def failing(*given: Any, **named: Any) -> None:
        monkeypatch.setattr(Records, "keep", plain)
        inside.set()
        assert go.wait(60)
        raise sqlite3.OperationalError("disk I/O error")

    said: dict[str, Any] = {}

    def asking(key: str) -> None:
        try:
            said[key] = one.ask(run, key=key)
        except Refused as error:
            said[key] = error

    monkeypatch.setattr(Records, "keep", failing)
    first = threading.Thread(target=asking, args=("the-first",))
    first.start()
    assert inside.wait(60)
    held, waits = one.server.runs._held[run], threading.Event()

    class Watched:
        """The run's lock, which says when somebody asks for it."""

        def __init__(self, lock: Any) -> None:
            self.release, self._lock = lock.release, lock

        def acquire(self, **named: Any) -> bool:
            waits.set()
            return bool(self._lock.acquire(**named))

    held.lock = Watched(held.lock)
    second = threading.Thread(target=asking, args=("the-second",))
    second.start()
    assert waits.wait(60)
    go.set()
    for thread in (first, second):
        thread.join(60)
    assert [said[key].status for key in ("the-first", "the-second")] == [503, 503]
    for key in ("the-first", "the-second", "the-third", "the-fourth"):
        one.ask(run, key=key)
    with pytest.raises(Refused, match="the plan is done"):
        one.ask(run, key="the-fifth")
    one.act(run, "finish", {})
    assert len(one.server.records.entries(run)) == 4
    assert faults(place) == []


def _full(records: Records) -> None:
    pages = int(records._db.execute("PRAGMA page_count").fetchone()[0])
    records._db.execute(f"PRAGMA max_page_count = {pages}").fetchall()


def test_a_full_disk_refuses_and_all_goes_on_when_there_is_room(place: Place, one: Analyst) -> None:
    run, records, asked = one.open(Repeated(Gaussian(4000.0), 8000)), one.server.records, 0
    refused: list[Any] = []
    _full(records)
    while not refused:
        assert asked < 4, "the file has room for all of the plan: make it smaller"
        try:
            one.ask(run, LONG, key=f"ask-{asked}-key")
            asked += 1
        except Refused as error:
            refused.append((error.status, error.word))
    for number in range(200):
        try:
            one.open(Gaussian(4000.0), key=f"open-{number}-key", purpose="x" * 200)
        except Refused as error:
            refused.append((error.status, error.word))
            break
    assert refused == [(503, "records-away")] * 2
    with pytest.raises(DoorError, match="Make room"):
        [one.server.tokens.issue("x" * 100) for _ in range(400)]
    assert not one.server.is_healthy
    assert len(records.entries(run)) == asked
    records._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    one.server.sweep()
    assert one.server.is_healthy
    for number in range(asked, 4):
        one.ask(run, LONG, key=f"ask-{number}-key")
    one.act(run, "finish", {})
    for other in records.runs(("open",)):
        one.act(other.id, "close", {})
    assert not records.runs(("opening",))
    assert faults(place) == []


def test_a_run_whose_opening_fails_is_given_back(
    place: Place, one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Records.put

    def failing(records: Records, run: str, **values: Any) -> None:
        if values.get("state") == "open":
            raise OSError("no room")
        plain(records, run, **values)

    monkeypatch.setattr(Records, "put", failing)
    with pytest.raises(Refused):
        one.open(key="the-same-key")
    assert faults(place) == []  # ended, and nothing is reserved
    monkeypatch.undo()
    run = one.open(key="the-same-key")
    one.server.records.put(run, state="opening")  # as when nothing more could be written
    one.server.runs._held.clear()
    one.server.runs.sweep()
    assert one.server.records.run(run) is None
    assert faults(place) == []


def _away(*_: Any, **__: Any) -> None:
    raise LedgerAway("a server at budget:5432 does not answer")


def test_a_ledger_that_is_away_says_nothing_of_where_it_is_and_is_told_later(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an opening, a run that is taken up again nor an end is lost by it."""
    with served(place) as up:
        one = Analyst(*up)
        monkeypatch.setattr(Ledger, "reserve", _away)
        with pytest.raises(Refused) as refused:
            one.open()
        assert (refused.value.status, b"5432" in refused.value.raw) == (503, False)
        monkeypatch.undo()
        run = one.open()
        one.ask(run)
    with served(place) as up:
        one = Analyst(*up, token=one.token)
        monkeypatch.setattr(Ledger, "resume", _away)
        with pytest.raises(Refused) as refused:
            one.ask(run)
        assert refused.value.status == 503
        monkeypatch.undo()
        for _ in range(3):
            one.ask(run)
        monkeypatch.setattr(Spend, "commit", _away)
        monkeypatch.setattr("fairveil.serving.runs.settle", _away)
        with pytest.warns(UserWarning, match="stays charged"):
            one.act(run, "finish", {})
        monkeypatch.undo()
        states = {record.id: record.state for record in up[0].records.runs()}
        assert states[run] == "settling"
        up[0].runs.sweep()
        last = [line for line in place.ledger().history() if line.kind == "committed"]
        assert [line.values["complete"] for line in last] == [True]
        assert place.ledger().check([one.statement(run).ledger]) == []  # type: ignore[list-item]
    assert faults(place) == []


def test_a_run_that_ended_while_a_request_was_on_its_way_is_not_asked(
    place: Place, one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a request's look at the run and its turn the clock ends it, and the ledger is away."""
    runs, run = one.server.runs, one.open(Gaussian(20.0))
    runs._held.clear()  # as after a start
    plain = runs._run

    def late(id: str) -> Any:
        monkeypatch.setattr(runs, "_run", plain)
        monkeypatch.setattr("fairveil.serving.runs.settle", _away)
        runs.end(run, "ended by the clock")
        return plain(id)

    monkeypatch.setattr(runs, "_run", late)
    with pytest.raises(Refused, match="ended"):
        one.ask(run)
    monkeypatch.undo()
    runs.sweep()
    assert one.server.records.entries(run) == []
    assert faults(place) == []


@pytest.mark.parametrize("how", ["another boot", "the same boot", "closed"])
def test_open_runs_are_charged_whole_when_their_machine_was_started_anew(
    how: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut the last replies may be missing: no run goes on, and none is charged less
    than it can have released."""
    with served(place) as up:
        one = Analyst(*up)
        run, done = one.open(), one.open()
        reserved = place.ledger().balance().spent_share
        for asked in (run, done, done, done, done):
            one.ask(asked)
        one.act(done, "finish", {})
        if how != "closed":  # killed: the lock goes with the process, and nothing is tidied up
            up[0].records._waits = True
    if how != "the same boot":
        (tmp_path / "boot").write_text("another one")
        monkeypatch.setattr("fairveil.serving.records.BOOT", tmp_path / "boot")
    with served(place) as up:
        two = Analyst(*up, token=one.token)
        if how == "another boot":
            with pytest.raises(Refused, match="ended"):
                two.ask(run)
            record = up[0].records.run(run)
            assert record is not None
            assert record.how == "the machine was started anew, charged whole"
            assert place.ledger().balance().spent_share == pytest.approx(reserved)
        else:
            for _ in range(3):
                two.ask(run)
            two.act(run, "finish", {})
        assert two.statement(done).epsilon <= 1.0
    assert faults(place) == []


def test_a_purpose_that_names_another_run_gives_nothing_back(place: Place, one: Analyst) -> None:
    """The ledger's line has the run's own name first, then the analyst's words."""
    named = one.open()
    run = one.open(purpose=f"run {named}: a word of the analyst's")
    for id in (named, run):  # as when the server died before it wrote down by which spend
        one.server.records.put(id, spend=None, state="opening")
    one.server.runs._held.pop(named)
    one.server.runs.sweep()
    assert one.server.records.run(named) is None
    assert place.ledger().balance().open == 1
    one.server.runs._held.pop(run)
    one.server.runs.sweep()
    assert faults(place) == []


# -- folders and ledgers that are not what they were -----------------------------------------------


def test_a_ledger_that_lacks_what_runs_spent_is_refused(place: Place) -> None:
    """An older copy is put back, before a start and under a server that is up."""
    ledger, kept = place.folder / "budget.db", place.folder / "old.db"
    shutil.copy(ledger, kept)
    with served(place) as up:
        one = Analyst(*up)
        run = one.open()
        one.ask(run)
        up[0].datasets["applicants"].ledger.close()
        for file in place.folder.glob("budget.db*"):
            file.unlink()
        shutil.copy(kept, ledger)
        up[0].sweep()
        assert not up[0].is_healthy
        for call in (one.open, lambda: one.ask(run)):
            with pytest.raises(Refused) as refused:
                call()
            assert refused.value.word == "ledger-away"
        assert len(up[0].records.entries(run)) == 1
    with pytest.raises(LedgerError, match="lacks spend"):
        place.door()


def _write(words: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(words)


def test_a_ledger_that_is_gone_is_one_constant_sentence(place: Place, one: Analyst) -> None:
    one.open()
    one.server.datasets["applicants"].ledger.close()
    for file in place.folder.glob("budget.db*"):
        file.unlink()
    for change in (lambda path: None, _write(b"no ledger" * 1000)):
        change(place.folder / "budget.db")
        with pytest.raises(Refused) as refused:
            one.open()
        assert str(refused.value) == SAYINGS["ledger-away"][1]
        (place.folder / "budget.db").unlink(missing_ok=True)


def test_a_second_server_is_refused_and_a_look_is_not(place: Place, up: Up) -> None:
    with pytest.raises(PrivacyError, match="no other server"):
        place.door()
    Records(place.folder / "door", serves=False).close()
    for path in (place.folder / "door", place.folder / "door" / "door.db"):
        assert path.stat().st_mode & 0o077 == 0


def test_a_release_and_its_reply_are_written_together(
    one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on the disk, where boots have no name; a second reply of one key is refused."""
    run, records = one.open(), one.server.records
    one.ask(run, key="the-only-key")
    (entry,), reply = records.entries(run), records.reply(run, "the-only-key")
    assert reply is not None
    with pytest.raises(sqlite3.IntegrityError):
        records.keep(run, reply, [entry], (), ())
    assert len(records.entries(run)) == 1
    assert records._db.execute("PRAGMA synchronous").fetchone()[0] == 1  # it may be on its way
    one.act(run, "close", {})
    assert records._db.execute("PRAGMA synchronous").fetchone()[0] == 2
    records._boot = None
    records.note_boot()
    one.ask(one.open())
    assert records._db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_a_folder_of_another_version_is_refused_with_its_number(
    place: Place, tmp_path: Path
) -> None:
    records = Records(tmp_path / "door")
    with records.writing() as db:
        db.execute("UPDATE facts SET version = 1")
    records.close()
    with pytest.raises(FairveilError, match="version 1"):
        place.door()
