"""Ctrl-C at every step of writing: afterwards others may write, this process may go on, and nothing
was charged less."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from interrupting import Interrupted, interrupted

import fairveil as fv
from fairveil.core.events import Pure
from fairveil.privacy.ledger import Ledger, Spend
from fairveil.privacy.ledger.stores import connections

MOST, LESS = Pure(0.002), Pure(0.001)

# A file that was opened when Ctrl-C came, and that nobody had been given yet, is closed by the
# interpreter, which says so.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


def begun(place: Any) -> Ledger:
    ledger = Ledger.create(place.url, "census", 100.0, 0.0)
    ledger.reserve(MOST).commit()
    return ledger


def is_free(place: Any) -> bool:
    """Whether somebody else may write now."""
    if place.kind == "sqlite":
        with closing(sqlite3.connect(place.url, timeout=0, isolation_level=None)) as link:
            try:
                link.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
        return True
    with closing(psycopg.connect(place.url, autocommit=True)) as link:
        link.execute("BEGIN")
        # the server ends what was interrupted, in its own time
        link.execute("SET LOCAL lock_timeout = '30s'")
        return bool(link.execute("SELECT 1 FROM fairveil_ledger_heads FOR UPDATE").fetchall())


def deeds(ledger: Ledger, done: list[Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is interrupted."""

    def reserve() -> None:
        done.append(ledger.reserve(MOST))

    def first() -> None:
        ledger.close()
        done.append(ledger.reserve(MOST))

    while True:
        yield "reserve", reserve
        yield "first", first
        spend = ledger.reserve(MOST)
        yield "commit", lambda spend=spend: (spend.commit(LESS), done.append(spend))  # type: ignore[misc]
        spend = ledger.reserve(MOST)
        yield "refund", lambda spend=spend: (spend.refund(), done.append(spend))  # type: ignore[misc]


def is_held(lock: Any) -> bool:
    """Whether no other thread could have the lock."""
    got: list[bool] = []
    thread = threading.Thread(
        target=lambda: got.append(lock.acquire(blocking=False)) or (got[0] and lock.release())
    )
    thread.start()
    thread.join()
    return not got[0]


def interrupt_all(place: Any, stride: int) -> dict[str, int]:
    """Each deed, interrupted at one step after another. How many steps each has."""
    ledger, done, at = begun(place), [], 0
    steps: dict[str, int] = {}
    for name, deed in deeds(ledger, done):
        if name == "reserve":
            if len(steps) == 4:
                return steps
            at += stride
        if name in steps:
            continue
        done.clear()
        error = interrupted(deed, at)  # it is held, as a notebook holds its last one
        if error is None:
            steps[name] = at
            continue
        assert is_free(place), f"{name}: others are locked out after {error}"
        assert not is_held(connections._gate.lock), f"{name}: a lock is kept after {error}"
        assert not connections._gate.inside, f"{name}: it counts as inside after {error}"
        assert not any(held.users for held in ledger._store._connections._held.values()), error  # type: ignore[attr-defined]
        before = ledger.balance().spent_share
        ledger.reserve(LESS).commit()
        assert ledger.balance().spent_share > before
        for spend in done:
            assert isinstance(spend, Spend)
            assert ledger.standing(spend.id).reserved.hash == spend.hash
    raise AssertionError


def test_guarantee_1_after_ctrl_c_at_any_step_the_next_call_works(lasting: Any) -> None:
    steps = interrupt_all(lasting, 7 if lasting.kind == "sqlite" else 11)
    assert min(steps.values()) > 100, steps
    ledger = Ledger.open(lasting.url, "census")
    assert not [found.sentence for found in ledger.check() if found.grave]
    lines = list(ledger.history())
    assert lines[-1].spent == sum(line.units for line in lines)


def test_guarantee_1_in_memory() -> None:
    ledger = Ledger.create(None, "census", 100.0, 0.0)
    ledger.reserve(MOST)
    for at in range(100_000):
        spends: list[Spend] = []
        error = interrupted(lambda spends=spends: spends.append(ledger.reserve(MOST)), at)  # type: ignore[misc]
        ledger.reserve(LESS).commit()
        if error is None:
            break
    assert at > 50
    assert not [found for found in ledger.check() if found.grave]


def test_guarantee_2_what_was_granted_is_charged_and_what_was_interrupted_is_whole_or_not_there(
    tmp_path: Path,
) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "census", 100.0, 0.0)
    ledger.reserve(MOST)
    whole = 0
    for at in range(0, 100_000, 17):
        before, granted = ledger.balance(), []
        error = interrupted(lambda granted=granted: granted.append(ledger.reserve(MOST)), at)  # type: ignore[misc]
        after = ledger.balance()
        added = after.entries - before.entries
        assert added in (0, 1)
        assert len(granted) <= added  # whoever was granted something is charged
        whole += added
        if error is None:
            break
    assert whole > 1  # also an interrupt after the commit: charged, and not granted


def test_after_a_real_signal_another_process_may_write(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    ledger = Ledger.create(path, "census", 1.0, 0.0)
    store: Any = ledger._store
    real = store._patiently

    def signalled(action: Callable[[], object]) -> object:
        real(action)
        store._patiently = real
        raise Interrupted("seen as soon as BEGIN has returned")

    store._patiently = signalled
    with pytest.raises(Interrupted) as kept:
        ledger.reserve(MOST)
    code = (
        "import sys, fairveil as fv; from fairveil.core.events import Pure; "
        "fv.Ledger.open(sys.argv[1]).reserve(Pure(0.1))"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    ledger.reserve(MOST)
    assert ledger.balance().open == 2
    assert kept.value is not None


def test_a_fit_that_was_interrupted_leaves_a_ledger_that_can_be_used(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "budget.db", "people", 50.0, 1e-5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.integers(0, 2, 80)

    def fit() -> None:
        fv.RateConstrainedClassifier(
            None, epsilon=0.1, delta=1e-8, public_rows=80, ledger=ledger
        ).fit(X, y)

    fit()
    told = 0
    for at in (0, 40, 150, 230, 300, 380, 450, 520, 700, 900):
        before = ledger.balance()
        error = interrupted(fit, at)
        told += error is not None
        with closing(
            sqlite3.connect(tmp_path / "budget.db", timeout=0, isolation_level=None)
        ) as link:
            link.execute("BEGIN IMMEDIATE")
        assert ledger.balance().spent_share >= before.spent_share
    assert told > 5
    fit()
    assert not [found for found in ledger.check() if found.grave]
