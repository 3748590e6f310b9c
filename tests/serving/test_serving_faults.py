"""Faults inside a door that goes on: a disk that fails, a ledger that is away, requests that wait
meanwhile. None is charged twice, none is answered twice, and no run is left open."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from door_faults import faults
from doors import Place, place_in
from test_serving_runs import Analyst

from fairveil.core.events import Gaussian, Repeated
from fairveil.curator import Measurement, RowCount
from fairveil.errors import DoorError, FairveilError, LedgerAway
from fairveil.serving.door.door import Door
from fairveil.serving.door.records import Records
from fairveil.serving.door.refusals import Refusal, refusal_of
from fairveil.serving.door.settling import orphans_of

LONG = Measurement(RowCount(copies=2000), 4000.0)
"""Its answer fills several pages of a file."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path, epsilon=50.0, seeded=False)


@pytest.fixture
def door(place: Place) -> Iterator[Door]:
    found = place.door()
    yield found
    found.close()


class Watched:
    """A lock that says when somebody asks for it."""

    def __init__(self, lock: Any, waits: threading.Event) -> None:
        self._lock, self._waits = lock, waits

    def acquire(self, **named: Any) -> bool:
        self._waits.set()
        return bool(self._lock.acquire(**named))

    def release(self) -> None:
        self._lock.release()


def test_a_request_that_waited_for_a_run_that_failed_is_answered_by_the_next_curator(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk fails under one request while another waits for its turn: two curators of one run
    must not both answer."""
    one, inside, go, plain = Analyst(door), threading.Event(), threading.Event(), Records.keep
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
        except (Refusal, sqlite3.OperationalError) as error:
            said[key] = error

    monkeypatch.setattr(Records, "keep", failing)
    first = threading.Thread(target=asking, args=("the-first",))
    first.start()
    assert inside.wait(60)
    waits = threading.Event()
    door.runs._held[run].lock = Watched(door.runs._held[run].lock, waits)
    second = threading.Thread(target=asking, args=("the-second",))
    second.start()
    assert waits.wait(60)
    go.set()
    first.join(60)
    second.join(60)
    assert isinstance(said["the-first"], sqlite3.OperationalError)
    assert said["the-second"].status == 503  # so that the client sends it again
    for key in ("the-first", "the-second", "the-third", "the-fourth"):
        one.ask(run, key=key)
    with pytest.raises(FairveilError, match="the plan is done"):
        one.ask(run, key="the-fifth")
    one.act(run, "finish", {})
    assert len(door.records.entries(run)) == 4
    assert faults(place) == []


def test_a_full_disk_refuses_a_reply_and_the_run_goes_on_when_there_is_room(
    place: Place, door: Door
) -> None:
    one, records = Analyst(door), door.records
    run = one.open(Repeated(Gaussian(4000.0), 8000))
    pages = int(records.rows("PRAGMA page_count")[0][0])
    records.rows(f"PRAGMA max_page_count = {pages}")
    asked, full = 0, False
    while not full:
        assert asked < 4, "the file has room for all of the plan: make it smaller"
        try:
            one.ask(run, LONG, key=f"ask-{asked}-key")
            asked += 1
        except DoorError as error:
            refused = refusal_of(error)
            assert (refused.status, refused.word) == (503, "records-away")
            full = True
    assert len(records.entries(run)) == asked
    records.rows("PRAGMA max_page_count = 1000000")
    for number in range(asked, 4):
        one.ask(run, LONG, key=f"ask-{number}-key")
    one.act(run, "finish", {})
    assert len(records.entries(run)) == 4
    assert faults(place) == []


def test_a_run_whose_opening_fails_by_anything_is_given_back(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, plain = Analyst(door), Records.put

    def failing(records: Records, run: str, **values: Any) -> None:
        if values.get("state") == "open":
            raise OSError("no room")
        plain(records, run, **values)

    monkeypatch.setattr(Records, "put", failing)
    with pytest.raises(OSError, match="no room"):
        one.open()
    assert faults(place) == []  # ended, and nothing is reserved
    monkeypatch.undo()
    one.act(one.open(), "close", {})  # under the same key
    assert faults(place) == []


def test_a_finished_run_whose_ledger_was_away_is_finished_there_later(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger is told of the end by the clock, as of a whole run; any server gives its
    statement."""
    one = Analyst(door)
    run = one.open()
    for _ in range(4):
        one.ask(run)
    monkeypatch.setattr("fairveil.ledger.Ledger._settle", _away)
    with pytest.warns(UserWarning, match="stays charged"):
        one.act(run, "finish", {})
    monkeypatch.undo()
    assert [record.state for record in door.records.runs()] == ["settling"]
    door.runs.sweep()
    assert faults(place) == []
    last = [line for line in place.ledger().history() if line.kind == "committed"]
    assert [line.values["complete"] for line in last] == [True]
    door.close()
    with_next = place.door()
    two = Analyst(with_next)
    two.token = one.token
    statement = two.statement(run)
    assert place.ledger().check([statement.ledger]) == []  # type: ignore[list-item]
    # taken up for its statement alone, it is let go of after a while
    assert with_next.runs._held[run].ended is not None
    with_next.close()


def _away(*_: Any, **__: Any) -> None:
    raise LedgerAway("a server at budget:5432 does not answer")


def test_a_ledger_that_is_away_is_busy_and_says_nothing_of_where_it_is(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither an opening nor a run that is taken up again is lost by it: the same request goes on
    later."""
    one = Analyst(door)
    monkeypatch.setattr("fairveil.ledger.Ledger.reserve", _away)
    with pytest.raises(LedgerAway) as error:
        one.open()
    refusal = refusal_of(error.value)
    assert (refusal.status, "5432" in refusal.body.decode()) == (503, False)
    monkeypatch.undo()
    run = one.open()
    one.ask(run)
    door.close()
    with_next = place.door()
    two = Analyst(with_next)
    two.token = one.token
    monkeypatch.setattr("fairveil.ledger.Ledger.resume", _away)
    with pytest.raises(LedgerAway):
        two.ask(run)
    monkeypatch.undo()
    for _ in range(3):
        two.ask(run)
    two.act(run, "finish", {})
    with_next.close()
    assert faults(place) == []


def test_a_run_that_ended_while_it_was_being_taken_up_is_not_asked(
    place: Place, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between a request's look at the run and its turn the clock ends it, and the ledger is away:
    nothing more is released."""
    one = Analyst(door)
    run = one.open(Gaussian(20.0))
    door.runs._held.clear()  # as after a start
    plain, took = door.runs._run, []

    def late(*given: Any) -> Any:
        if not took:
            took.append(run)
            monkeypatch.setattr("fairveil.serving.door.runs.settle", _away)
            door.runs.end(run, "ended by the clock")
        return plain(*given)

    monkeypatch.setattr(door.runs, "_run", late)
    with pytest.raises(Refusal, match="ended"):
        one.ask(run)
    monkeypatch.undo()
    door.runs.sweep()
    assert door.records.entries(run) == []
    assert faults(place) == []


@pytest.mark.parametrize("how", ["another boot", "the same boot", "closed"])
def test_open_runs_are_charged_whole_when_their_machine_was_started_anew(
    how: str, place: Place, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut the last replies may be missing: no run goes on, and none is charged less
    than it can have released."""
    one = Analyst(door)
    run, done = one.open(), one.open(key="another-run")
    reserved = place.ledger().balance().spent_share
    for asked in (run, done, done, done, done):
        one.ask(asked)
    one.act(done, "finish", {})
    if how != "closed":  # killed: the lock goes with the process, and nothing is tidied up
        door.records._waits = True
    door.close()
    if how != "the same boot":
        (tmp_path / "boot").write_text("another one")
        monkeypatch.setattr("fairveil.serving.door.records.BOOT", tmp_path / "boot")
    after = place.door()
    two = Analyst(after)
    two.token = one.token
    if how == "another boot":
        with pytest.raises(Refusal, match="ended"):
            two.ask(run)
        record = after.records.run(run)
        assert record is not None
        assert record.how == "the machine was started anew, charged whole"
        assert place.ledger().balance().spent_share == pytest.approx(reserved)
    else:
        for _ in range(3):
            two.ask(run)
        two.act(run, "finish", {})
    assert two.statement(done).epsilon <= 1.0
    after.close()
    assert faults(place) == []


def test_a_full_disk_refuses_an_opening_which_is_given_back_when_there_is_room(
    place: Place, door: Door
) -> None:
    one, records = Analyst(door), door.records
    assert door.healthy()
    records.rows(f"PRAGMA max_page_count = {int(records.rows('PRAGMA page_count')[0][0])}")
    refused: list[Exception] = []
    for number in range(200):
        try:
            one.open(Gaussian(4000.0), key=f"open-{number}-key", purpose="x" * 200)
        except DoorError as error:
            refused.append(error)
            break
    assert [refusal_of(error).word for error in refused] == ["records-away"]
    assert not door.healthy()
    for change in (
        lambda: [door.tokens.issue("x" * 100) for _ in range(200)],
        lambda: [door.tokens.issue("x" * 100) for _ in range(200)],
    ):
        with pytest.raises(DoorError, match="Make room"):
            change()
    records.rows("PRAGMA max_page_count = 1000000")
    door.runs.sweep()
    assert door.healthy()
    assert not records.runs(("opening",))
    for run in records.runs(("open",)):
        one.act(run.id, "close", {})
    assert faults(place) == []


def test_a_run_that_nobody_is_opening_any_more_is_given_back_by_the_next_sweep(
    place: Place, door: Door
) -> None:
    one = Analyst(door)
    run = one.open()
    door.records.put(run, state="opening")  # as when nothing more could be written
    door.runs.sweep()
    record = door.records.run(run)
    assert record is not None
    assert (record.state, record.how) == ("ended", "never began")
    assert place.ledger().balance().open == 0


def test_a_purpose_that_names_another_run_gives_nothing_back(place: Place, door: Door) -> None:
    """The ledger's line has the run's own name first, then the analyst's words."""
    one = Analyst(door)
    named = one.open(key="first-of-two")
    one.act(named, "close", {})
    run = one.open(key="second-of-two", purpose=f"run {named}: a word of the analyst's")
    record = door.records.run(named)
    assert record is not None
    ledger = door.datasets["applicants"].ledger
    assert orphans_of(record, ledger) == 0
    assert ledger.balance().open == 1
    own = door.records.run(run)
    assert own is not None
    assert orphans_of(own, ledger) == 1
