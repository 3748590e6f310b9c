"""The holder's rows, read again while the door is open: what goes wrong is the holder's to know."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doors import SCHEMA, Place, place_in, served
from test_serving_joined import prepared
from test_serving_runs import PLAN, PROMISE, Analyst

from fairveil.data import load_csv, write_store
from fairveil.errors import InputError
from fairveil.privacy.events import to_json_dict
from fairveil.serving.analyst.connection import Connection
from fairveil.serving.door.refusals import ROWS_AWAY, Refusal
from fairveil.serving.wire.messages import packed

GOOD = "0.1,0.2,x,f,yes,1.0,1.0,p1"
LINES = {
    "an unknown category": "0.1,0.2,x,Jane Q. Doe,yes,1.0,1.0,p1\n",
    "a word for a number": "secret-4711,0.2,x,f,yes,1.0,1.0,p1\n",
    "too many cells": f"{GOOD},4711,more\n",
    "an open quote": '0.1,0.2,x,"f,yes,1.0,1.0,p1\n',
    "no cell": "\n\n,,,\n",
}
AS_FEATURE: dict[str, Any] = {
    "view": {"sensitive": None, "sensitive_as_feature": True, "steps": None}
}
OTHER_GROUPS: dict[str, Any] = {
    "view": {"sensitive": ["town"], "sensitive_as_feature": False, "steps": None}
}


def _add(line: str) -> Callable[[Place], None]:
    def change(place: Place) -> None:
        with (place.folder / "applicants.csv").open("a") as table:
            table.write(line)

    return change


def _away(place: Place) -> None:
    (place.folder / "applicants.csv").unlink()


def _folder(place: Place) -> None:
    _away(place)
    (place.folder / "applicants.csv").mkdir()


CHANGES = {**{name: _add(line) for name, line in LINES.items()}, "none": _away, "folder": _folder}


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_went_wrong_is_one_constant_sentence(name: str, tmp_path: Path) -> None:
    """No number or place of rows, no path and no folder reaches an analyst; the holder's log has
    the reason."""
    place, log = place_in(tmp_path), io.StringIO()
    with served(place, log) as (door, _):
        CHANGES[name](place)
        for view in (AS_FEATURE,):
            with pytest.raises(Refusal) as refused:
                Analyst(door).open(**view)
            told = json.loads(refused.value.body)
            assert (refused.value.status, told["message"]) == (503, ROWS_AWAY[2])
            assert "applicants: " in refused.value.detail
        assert Analyst(door).open()  # its rows are in memory
        assert not door.records.runs(("opening",))


def test_the_reason_is_in_the_holders_log(tmp_path: Path) -> None:
    place, log = place_in(tmp_path), io.StringIO()
    with served(place, log) as (door, url):
        _add(LINES["too many cells"])(place)
        content = {
            "dataset": "applicants",
            "promise": PROMISE.to_dict(),
            "plan": to_json_dict(PLAN),
            "sources": 1,
            "seeds": None,
            "public_rows": None,
            "stated_clips": None,
            "purpose": "",
            **AS_FEATURE,
        }
        connection = Connection(url, door.tokens.issue("one"))
        status, raw = connection._once(
            "POST",
            "/v1/runs",
            packed(content),
            {"Authorization": f"Bearer {connection._token}", "Idempotency-Key": "a-key-of-mine"},
        )
        connection.close()
    assert (status, b"1502" in raw, str(tmp_path).encode() in raw) == (503, False, False)
    last = json.loads(log.getvalue().splitlines()[-1])
    assert last["status"] == 503
    assert "line 1502" in last["detail"]


def test_a_view_that_a_store_or_a_join_cannot_have_is_refused_by_public_words(
    tmp_path: Path,
) -> None:
    kept = place_in(tmp_path / "store")
    write_store(load_csv(kept.folder / "applicants.csv", SCHEMA), kept.folder / "rows.store")
    kept.config.write_text(kept.config.read_text().replace("applicants.csv", "rows.store"))
    for place in (kept, prepared(tmp_path / "joined")):
        door = place.door()
        protects = door.datasets["applicants"].ledger.promise
        for view in (AS_FEATURE, OTHER_GROUPS):
            with pytest.raises(InputError, match="sensitive"):
                Analyst(door).open(promise=protects, **view)
        door.close()
