"""Servers that are killed, disks that fail, ledgers that are away, machines that are started anew:
nothing is charged twice, answered twice, or left open."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from doors import Analyst, Place, Refused, faults, free_port, place_in, released, served

import fairveil as fv
import ways
from fairveil.core.events import Gaussian, Repeated
from fairveil.curator import Journal, Measurement, RowCount
from fairveil.errors import DoorError, FairveilError, LedgerAway, LedgerError, PrivacyError
from fairveil.ledger import Ledger, Spend
from fairveil.serving import client
from fairveil.serving.records import Records
from fairveil.serving.refusals import SAYINGS
from fairveil.serving.runs import Run, Server

SCRIPT = Path(__file__).parent / "crashing_door.py"
Up = tuple[Server, str]


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    limits = getattr(request, "param", "")
    return place_in(tmp_path, epsilon=50.0, seeded=False, limits=limits)


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
        ("journal", 5, "before"),  # drawn, and not written
        ("journal", 5, "after"),  # written, and the reply never left
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
    token = records.issue("analyst")
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
        clf = ways.fermi(solver=fv.PrimalDual(rounds=6), epsilon=1.0).fit(data)
        data.close()
    finally:
        watching.join(120)
        for process in (first, *after):
            process.kill()
            process.wait(30)
            assert process.stdout is not None
            process.stdout.close()
    alone = ways.fermi(solver=fv.PrimalDual(rounds=6), epsilon=1.0).fit(place.rows)
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
    inside, go, plain = threading.Event(), threading.Event(), Run.do
    run = one.open()

    def failing(self: Run, act: str, node: Any) -> None:
        monkeypatch.setattr(Run, "do", plain)
        inside.set()
        assert go.wait(60)
        plain(self, act, node)
        raise OSError("disk I/O error")

    said: dict[str, Any] = {}

    def asking(name: str) -> None:
        try:
            said[name] = one.ask(run, number=1)
        except Refused as error:
            said[name] = error

    monkeypatch.setattr(Run, "do", failing)
    first = threading.Thread(target=asking, args=("the first",))
    first.start()
    assert inside.wait(60)
    held, waits = one.server._held[run], threading.Event()

    class Watched:
        """The run's lock, which says when somebody asks for it."""

        def __init__(self, lock: Any) -> None:
            self.release, self._lock = lock.release, lock

        def acquire(self, **named: Any) -> bool:
            waits.set()
            return bool(self._lock.acquire(**named))

    held.lock = Watched(held.lock)
    second = threading.Thread(target=asking, args=("the second",))
    second.start()
    assert waits.wait(60)
    go.set()
    for thread in (first, second):
        thread.join(60)
    assert [said[name].status for name in ("the first", "the second")] == [500, 503]
    one.resume(run)
    for _ in range(4):
        one.ask(run)
    with pytest.raises(Refused, match="the plan is done"):
        one.ask(run)
    one.act(run, "finish", {})
    assert len(released(one.server.records, run)) == 4
    assert faults(place) == []


@pytest.mark.parametrize("place", ["open_runs = 100"], indirect=True)
def test_a_full_disk_refuses_and_all_goes_on_when_there_is_room(
    place: Place, one: Analyst, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is drawn, where the disk says so; and where it does not, nothing is begun."""
    run, records = one.open(Repeated(Gaussian(4000.0), 4)), one.server.records
    small = Measurement(RowCount(), 4000.0)

    def words(call: Any) -> Any:
        try:
            call()
        except Refused as refused:
            return refused.status, refused.word

    plain = shutil.disk_usage(place.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: plain._replace(free=1000))
    for call in (lambda: one.ask(run, small), one.open):
        assert words(call) == (503, "records-away")
    one.server.sweep()
    assert not one.server.is_healthy
    assert released(records, run) == []
    monkeypatch.undo()
    pages = int(records._db.execute("PRAGMA page_count").fetchone()[0])
    records._db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(DoorError, match="Make room"):
        [records.issue("x" * 100) for _ in range(400)]
    opened = next(filter(None, (words(one.open) for _ in range(80))))
    assert opened == (503, "records-away")
    assert not one.server.is_healthy
    records._db.execute("PRAGMA max_page_count = 1000000").fetchall()
    one.server.sweep()
    assert one.server.is_healthy
    one.resume(run)
    for _ in range(4):
        one.ask(run, small)
    one.act(run, "finish", {})
    for other in records.runs("open"):
        one.act(other.id, "close", {})
    assert not records.runs("opening")
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
    one.server._held.clear()
    one.server.sweep()
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
        one.server, one.url = up
        monkeypatch.setattr(Ledger, "resume", _away)
        with pytest.raises(Refused) as refused:
            one.resume(run)
        assert refused.value.status == 503
        monkeypatch.undo()
        one.resume(run)
        for _ in range(3):
            one.ask(run)
        monkeypatch.setattr(Spend, "commit", _away)
        monkeypatch.setattr("fairveil.serving.runs.settle", _away)
        with pytest.warns(UserWarning, match="stays charged"):
            one.act(run, "finish", {})
        monkeypatch.undo()
        states = {record.id: record.state for record in up[0].records.runs()}
        assert states[run] == "settling"
        up[0].sweep()
        last = [line for line in place.ledger().history() if line.kind == "committed"]
        assert [line.values["complete"] for line in last] == [True]
        assert place.ledger().check([one.statement(run).ledger]) == []  # type: ignore[list-item]
    assert faults(place) == []


def test_an_answer_that_was_written_in_part_ends_its_run_which_is_charged_whole(
    place: Place,
) -> None:
    """As by a power cut: it may have been seen. So does one whose journal is not there, or went on
    elsewhere. A whole one goes on."""
    with served(place) as up:
        one = Analyst(*up)
        runs = [one.open() for _ in range(6)]
        for run in runs:
            one.ask(run)
        reserved = place.ledger().balance().spent_share
    for run in runs[:2]:
        journal = up[0].records.journal(run)
        journal.write_bytes(journal.read_bytes() + b'{"event":{"kind":"gaussian"')
    for run in runs[2:4]:
        up[0].records.journal(run).unlink()
    spend = Journal(up[0].records.journal(runs[4])).ledger
    assert spend is not None
    place.ledger().resume(spend[1], 7)
    with served(place) as up:
        one.server, one.url = up
        for run in (runs[0], runs[2]):
            with pytest.raises(Refused, match="ended"):
                one.resume(run)
        for run in (runs[1], runs[3], runs[4]):
            one.act(run, "close", {})
        one.resume(runs[5])
        one.ask(runs[5])
        assert place.ledger().balance().spent_share == pytest.approx(reserved)
        one.act(runs[5], "close", {})
        assert place.ledger().balance().spent_share < reserved
    assert faults(place) == []


def test_a_purpose_that_names_another_run_gives_nothing_back(place: Place, one: Analyst) -> None:
    """The ledger's line has the run's own name first, then the analyst's words."""
    named = one.open()
    run = one.open(purpose=f"run {named}: a word of the analyst's")
    for id in (named, run):  # as when the server died before it wrote down by which spend
        one.server.records.put(id, spend=None, state="opening")
    one.server._held.pop(named)
    one.server.sweep()
    assert one.server.records.run(named) is None
    assert place.ledger().balance().open == 1
    one.server._held.pop(run)
    one.server.sweep()
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
        assert len(released(up[0].records, run)) == 1
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
    """Nor is a folder of another version taken, which is told with its number."""
    with pytest.raises(PrivacyError, match="no other server"):
        place.door()
    Records(place.folder / "door", serves=False).close()
    for path in (place.folder / "door", place.folder / "door" / "door.db"):
        assert path.stat().st_mode & 0o077 == 0
    with up[0].records.writing() as db:
        db.execute("UPDATE facts SET version = 2")
    with pytest.raises(FairveilError, match="version 2"):
        Records(place.folder / "door", serves=False)
