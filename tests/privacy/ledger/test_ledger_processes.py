"""Many processes on one ledger, and processes that are killed: nothing is granted twice, nothing
that was granted is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairveil.core.events import Pure
from fairveil.privacy.ledger import Ledger

SCRIPT = Path(__file__).parent / "many_processes.py"


def run(*words: object) -> Any:
    """What the script said."""
    done = subprocess.run(
        [sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["sqlite", "postgres"])
def begin(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., tuple[str, Ledger]]:
    """Begins a ledger in either store: its address and itself."""

    def made(dataset: str, epsilon: float) -> tuple[str, Ledger]:
        url = (
            str(tmp_path / "budget.db")
            if request.param == "sqlite"
            else str(request.getfixturevalue("postgres_url"))
        )
        return url, Ledger.create(url, dataset, epsilon, 0.0)

    return made


def test_eight_processes_get_exactly_what_there_is(
    begin: Callable[..., tuple[str, Ledger]],
) -> None:
    url, ledger = begin("crowd", 1.0)  # room for 1,000 releases of 0.001
    told = run("crowd", url, "crowd", "--processes", 8, "--times", 200)
    assert sum(told["granted"]) == 1000
    assert sum(told["refused"]) == 600
    lines = {line.spend for line in ledger.history() if line.kind == "reserved"}
    assert lines == set(told["spends"])
    assert len(told["spends"]) == 1000
    assert not [one for one in ledger.check() if one.grave]


def test_a_writer_killed_at_any_point_loses_no_spend(
    begin: Callable[..., tuple[str, Ledger]],
) -> None:
    url, ledger = begin("kills", 50.0)
    told = run("points", url, "kills")
    assert {one["by"] for one in told} == {str(int(signal.SIGKILL))}  # none of them came to its end
    kinds = {
        "reserve": "reserved",
        "resume": "resumed",
        "commit": "committed",
        "refund": "refunded",
    }
    left = [
        line
        for line in ledger.history()
        if line.kind == "reserved" and line.spend not in {one["spend"] for one in told}
    ]
    # the reservation that was killed after its commit: charged, though nobody was told
    assert len(left) == 1
    for one in told:
        if one["deed"] == "reserve":
            assert one["spend"] == ""
            continue
        standing = ledger.standing(one["spend"])
        is_there = one["point"] == "after the commit"
        assert standing.last == (kinds[one["deed"]] if is_there else "reserved"), one
        assert (standing.units > 0) == (standing.last != "refunded")
    assert not [one for one in ledger.check() if one.grave]
    ledger.reserve(Pure(0.001)).commit()


def test_no_acknowledged_spend_is_lost_when_the_power_fails(tmp_path: Path) -> None:
    path = str(tmp_path / "budget.db")
    Ledger.create(path, "stops", 50.0, 0.0)
    told = run("stops", path, "stops", "--times", 30, "--seed", 3)
    assert told["acknowledged"] > 30
    assert (told["lost"], told["grave"]) == (0, 0)
