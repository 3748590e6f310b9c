"""The server is killed in the middle, and another one takes its place: the fit goes on, and is
charged once."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from door_faults import faults
from doors import place_in

import fairveil as fv
from fairveil.serving.door.records import Records
from fairveil.serving.door.tokens import Tokens

SCRIPT = Path(__file__).parent / "crashing_door.py"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


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
    point: str, number: int, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairveil.serving.analyst.connection.WAIT", 0.2)
    place, port = place_in(tmp_path, seeded=False), free_port()
    records = Records(tmp_path / "door", serves=False)
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
        data = fv.remote(
            f"http://127.0.0.1:{port}", "applicants", token=token, key=place.public_key
        )
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
    balance, ledger = place.ledger().balance(), place.ledger()
    assert (balance.open, balance.committed) == (0, 1)
    assert balance.refunded == (1 if point == "reserve" else 0)
    assert ledger.check([clf.privacy_.ledger]) == []  # type: ignore[list-item]
    assert faults(place) == []
