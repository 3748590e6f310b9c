"""A door whose ledger is in PostgreSQL."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from doors import CELLS, PLAN, PROMISE, Place, faults, place_in, remote_data

import fairveil as fv
from fairveil.curator import CellCounts, Measurement
from fairveil.data import Encoding
from fairveil.serving import RemoteData
from fairveil.serving.client import Connection, RemoteCurator


def in_postgres(place: Place, url: str, name: str) -> Place:
    """The place, with its ledger in a database."""
    fv.Ledger.create(url, name, 5.0, 1e-6).close()
    text = place.config.read_text()
    place.config.write_text(
        text.replace('ledger = "budget.db"', f'ledger = "{url}"\nledger_name = "{name}"')
    )
    return place


def opened(data: RemoteData) -> RemoteCurator:
    rows = data.rows(Encoding(data.schema).layout, data.schema, False)
    return RemoteCurator(rows, PROMISE, plan=PLAN)  # type: ignore[arg-type]  # rows of a door


def test_a_database_that_is_restarted_under_runs_loses_nothing(
    tmp_path: Path, postgres: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It crashes while one run is asked: the run goes on and is settled later. One that is opened
    meanwhile waits for it."""
    monkeypatch.setattr("fairveil.serving.client.WAIT", 0.3)
    place, ask = (
        in_postgres(place_in(tmp_path, seeded=False), postgres.url, "restarted"),
        [Measurement(CellCounts(CELLS), 20.0)],
    )
    plain, refused = Connection._once, threading.Event()

    def watched(self: Connection, *request: Any) -> tuple[int, bytes]:
        found = plain(self, *request)
        if found[0] == 503:
            assert b"does not answer" in found[1] or b"busy" in found[1]
            assert b"127.0.0.1" not in found[1]
            refused.set()
        return found

    monkeypatch.setattr(Connection, "_once", watched)

    def back() -> None:
        assert refused.wait(120)
        postgres.start()

    with remote_data(place) as (data, door, _):
        first = opened(data)
        for _ in range(2):
            first.answer(ask)
        postgres.stop()
        try:
            for _ in range(2):
                first.answer(ask)
            with pytest.warns(UserWarning, match="stays charged"):
                first.finish()
            receipt = first.statement().ledger
            assert [run.state for run in door.records.runs()] == ["settling"]
            again = threading.Thread(target=back)
            again.start()
            second = opened(data)  # the same request, until the database is back
            again.join(120)
        finally:
            if not refused.is_set():
                postgres.start()
        for _ in range(4):
            second.answer(ask)
        second.finish()
        door.sweep()
        ledger = fv.Ledger.open(postgres.url, "restarted")
        assert receipt is not None
        assert ledger.check([receipt]) == []
        assert ledger.balance().committed == 2
        assert faults(place, ledger=ledger) == []
        ledger.close()
