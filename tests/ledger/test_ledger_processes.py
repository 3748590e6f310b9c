"""Many processes on one ledger, processes that are killed at any statement, forks, Ctrl-C at any
step, and a power failure: nothing is granted twice, nothing that was granted is lost, and nobody is
locked out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import sqlalchemy as sa

import fairveil.ledger.store as stores
from fairveil.core.events import Pure
from fairveil.errors import Overspent
from fairveil.ledger import Ledger, Spend

Child = Callable[[Callable[[], object]], Callable[[], str]]
Hook = Callable[[Callable[[int, Any], object]], contextlib.AbstractContextManager[None]]
ONE, TWO = Pure(0.001), Pure(0.002)
CROWD = int(os.environ.get("FAIRVEIL_CROWD", "12"))
"""Processes on one ledger at once: set it to 50 where there is a machine for them."""

# A connection that was opened when Ctrl-C came, and that nobody had been given yet, is closed by
# the interpreter, which says so.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def is_sound(ledger: Ledger) -> bool:
    return not [found for found in ledger.check() if found.grave]


def test_a_crowd_of_processes_gets_exactly_what_there_is(
    lasting: str, in_child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(lasting, "crowd", CROWD * 0.02, 0.0)
    monkeypatch.setattr(stores, "PATIENCE", 600.0)  # on a busy machine somebody may wait long

    def ask() -> str:
        mine, spends = Ledger.open(lasting, "crowd"), []
        for _ in range(3):
            with suppress(Overspent):
                spends.append(mine.reserve(Pure(0.01)).id)
        return json.dumps(spends)

    answers = [in_child(ask) for _ in range(CROWD)]
    granted = [spend for answer in answers for spend in json.loads(answer())]
    assert len(granted) == len(set(granted)) == 2 * CROWD
    assert sorted(granted) == sorted(line.spend for line in ledger.history(1))
    assert ledger.balance().more == 0
    assert is_sound(ledger)


# -- killed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lasting", "deed"),
    [
        *(("sqlite", deed) for deed in ("reserve", "resume", "commit", "refund")),
        *(("postgresql", deed) for deed in ("reserve", "commit")),
    ],
    indirect=["lasting"],
)
def test_a_writer_killed_at_any_statement_loses_no_spend(
    lasting: str, deed: str, in_child: Child, after_statements: Hook
) -> None:
    ledger = Ledger.create(lasting, "kills", 50.0, 0.0)
    kinds = {"resume": "resumed", "commit": "committed", "refund": "refunded"}
    seen = set()
    for number in range(1, 100):
        spend = ledger.reserve(ONE)
        before = ledger.balance().entries

        def kill(count: int, _: object, number: int = number) -> None:
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

        def die(spend: Spend = spend, kill: Callable[[int, Any], None] = kill) -> str:
            mine = Ledger.open(lasting, "kills")
            held = Spend(mine, mine.standing(spend.id).reserved)
            deeds = {
                "reserve": lambda: mine.reserve(ONE),
                "resume": lambda: mine.resume(held.id, 1),
            }
            with after_statements(kill):
                deeds.get(deed, getattr(held, deed, None))()
            return "done"

        told = in_child(die)()
        added, now = ledger.balance().entries - before, ledger.standing(spend.id)
        assert added in (0, 1)
        if deed != "reserve":
            assert now.last == (kinds[deed] if added else "reserved")
        assert (now.units > 0) == (now.last != "refunded")
        assert (told, added) != ("done", 0)
        seen.add((told, added))
        if told:
            break
    assert seen == {("", 0), ("", 1), ("done", 1)}  # also one that died after its commit
    assert is_sound(ledger)


def test_no_acknowledged_spend_is_lost_when_the_power_fails(
    tmp_path: Path, in_child: Child, after_statements: Hook
) -> None:
    """The file and its journal as they are on the disk at every statement."""
    path, copies = tmp_path / "budget.db", tmp_path / "copies"
    Ledger.create(path, "people", 50.0, 0.0).reserve(ONE).commit()
    copies.mkdir()

    def work() -> str:
        ledger, done = Ledger.open(path), 3

        def copied(count: int, _: object) -> None:
            for end in ("", "-journal"):
                if (place := Path(f"{path}{end}")).exists():
                    shutil.copy(place, copies / f"{count}-{done}.db{end}")

        with after_statements(copied):
            for _ in range(2):
                spend = ledger.reserve(ONE)
                done += 1
                spend.commit()
                done += 1
        return "done"

    assert in_child(work)() == "done"
    acknowledged = set()
    for copy in copies.glob("*.db"):
        least = int(copy.stem.rpartition("-")[2])
        found = Ledger.open(copy)
        assert found.balance().entries in (least, least + 1)
        assert is_sound(found)
        found.reserve(ONE)
        acknowledged.add(least)
    assert {3, 4, 5, 6} <= acknowledged


# -- forks -----------------------------------------------------------------------------------------


def test_what_a_child_writes_stays_and_a_fork_waits_for_writers(
    lasting: str, in_child: Child
) -> None:
    ledger = Ledger.create(lasting, "people", 50.0, 0.0)
    stop, written = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            written.append(ledger.reserve(ONE).id)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        answers = [in_child(lambda: ledger.reserve(ONE).id) for _ in range(4)]
        written += [answer() for answer in answers]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert sorted(written) == sorted(line.spend for line in ledger.history(1))
    assert is_sound(ledger)


# -- Ctrl-C ----------------------------------------------------------------------------------------

PLACES = (
    os.path.dirname(stores.__file__),
    contextlib.__file__,
    os.path.dirname(sa.engine.__file__),
)


class Interrupted(KeyboardInterrupt):
    """Raised by `interrupted`, and by nobody else."""


def interrupted(action: Callable[[], object], at: int) -> Interrupted | None:
    """The action, interrupted at the step number `at` in the ledger's modules. None: it has no so
    many.

    Steps are where a function begins and where compiled code has returned. Elsewhere no signal is
    seen: an exception between the last line of a `with lock:` and the end of the block would
    keep a lock that Ctrl-C cannot.
    """
    left, error = at, None

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left, error
        here = frame.f_code.co_filename.startswith(PLACES)
        if event in ("call", "c_return") and error is None and here:
            left -= 1
            if left < 0:
                error = Interrupted(f"{frame.f_code.co_filename}:{frame.f_lineno}")
                raise error

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        action()
    except Interrupted as seen:
        return seen
    finally:
        sys.setprofile(before)
    return error


def deeds(ledger: Ledger, done: list[Spend]) -> Iterator[Callable[[], object]]:
    """What is interrupted."""
    yield lambda: done.append(ledger.reserve(TWO))
    spend, held = ledger.reserve(TWO), ledger.reserve(TWO)
    yield lambda: (spend.commit(ONE), done.append(spend))
    yield lambda: (held.refund(), done.append(held))


@pytest.mark.parametrize("stride", [41, 37])
def test_after_ctrl_c_at_any_step_the_next_call_works_and_what_was_granted_is_charged(
    tmp_path: Path, stride: int
) -> None:
    url = tmp_path / "budget.db" if stride == 41 else None
    ledger, at, whole, steps = Ledger.create(url, "census", 100.0, 0.0), 0, 0, [0, 0, 0]
    ledger.reserve(TWO)
    while not all(steps):
        at += stride
        for place in [place for place in range(3) if not steps[place]]:
            done: list[Spend] = []
            every = list(deeds(ledger, done))
            before = ledger.balance().entries
            error = interrupted(every[place], at)  # it is held, as a notebook holds its last one
            if error is None:
                steps[place] = at
                continue
            if url is not None:
                with closing(sqlite3.connect(url, timeout=0, isolation_level=None)) as other:
                    other.execute("BEGIN IMMEDIATE")  # nobody is locked out
            added: list[int] = []
            thread = threading.Thread(target=lambda n=added: n.append(ledger.balance().entries))
            thread.start()
            thread.join(600)
            assert added, f"a lock is kept after {error}"
            assert added[0] - before in (0, 1), error
            assert len(done) <= added[0] - before, error  # who was granted something is charged
            whole += added[0] - before
            ledger.reserve(ONE).commit()
    assert min(steps) > 300, steps
    assert whole  # also an interrupt after the commit: charged, and not granted
    assert is_sound(ledger)
