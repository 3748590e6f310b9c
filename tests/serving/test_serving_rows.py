"""The holder's rows, read again while the door is open: what goes wrong is the holder's to know."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doors import SCHEMA, WIDE, Place, place_in, served, write_table
from test_serving_joined import prepared
from test_serving_runs import PLAN, PROMISE, Analyst

from fairveil.core.events import to_json_dict
from fairveil.data import load_csv, write_store
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.serving.analyst.connection import Connection
from fairveil.serving.door.refusals import AWAY, ROWS_AWAY, ROWS_CHANGED, Refusal, refusal_of
from fairveil.serving.wire.messages import packed, unpacked

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


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_a_copy_of_what_is_protected_is_no_public_feature(protects: str, tmp_path: Path) -> None:
    """Features are answered exactly where they are public."""
    place = place_in(tmp_path, protects=protects)
    table = tmp_path / "applicants.csv"
    head, *lines = table.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    copied = [",".join([a, b, "x" if sex == "f" else "y", sex, *r]) for a, b, _, sex, *r in cells]
    table.write_text("\n".join([head, *copied]) + "\n")
    if protects == "records":
        place.door().close()
    else:
        with pytest.raises(PrivacyError, match=r"a copy of sensitive column 'sex'.*'town'"):
            place.door()


@pytest.mark.parametrize("protects", ["sensitive_features", "records"])
def test_public_weights_that_follow_from_the_group_are_not_served(
    protects: str, tmp_path: Path
) -> None:
    place = place_in(tmp_path, protects=protects, schema=WIDE, weights="weight")
    table = tmp_path / "applicants.csv"
    place.door().close()
    head, *lines = table.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    told = [",".join([*one[:6], "0.5" if one[3] == "f" else "1", one[7]]) for one in cells]
    table.write_text("\n".join([head, *told]) + "\n")
    if protects == "records":
        place.door().close()
    else:
        with pytest.raises(PrivacyError, match="weights that do not depend on"):
            place.door()


@pytest.mark.parametrize("name", CHANGES)
def test_a_table_that_went_wrong_is_one_constant_sentence(name: str, tmp_path: Path) -> None:
    """No number or place of rows, no path and no folder reaches an analyst; the holder's log has
    the reason."""
    place, log = place_in(tmp_path), io.StringIO()
    with served(place, log) as (door, _):
        CHANGES[name](place)
        for view in (AS_FEATURE, OTHER_GROUPS):
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


def _divided(one: Analyst, key: str = "a-division") -> str:
    body = packed({"share": 0.3, "seed": None, "coins": "certificate"})
    told = unpacked(one.door.runs.divide(one.token, "applicants", key, body))
    return told.content["division"].text()


def _part(division: str, number: int) -> dict[str, Any]:
    part = {"division": division, "number": number}
    return {"view": {"sensitive": None, "sensitive_as_feature": False, "steps": None, "part": part}}


def _reversed(place: Place) -> None:
    table = place.folder / "applicants.csv"
    head, *lines = table.read_text().splitlines()
    table.write_text("\n".join([head, *reversed(lines)]) + "\n")


def _others(place: Place) -> None:
    write_table(place.folder / "applicants.csv", 400, seed=9)


@pytest.mark.parametrize("change", [_reversed, _others], ids=["another order", "another table"])
def test_runs_and_divisions_are_of_the_rows_that_they_began_with(
    change: Callable[[Place], None], tmp_path: Path
) -> None:
    """Coins are thrown by place: of another table those set aside would be rows of the fit."""
    place = place_in(tmp_path)
    kept = (place.folder / "applicants.csv").read_text()
    door = place.door()
    one = Analyst(door)
    division = _divided(one)
    runs = [one.open(key="of-all-rows"), one.open(key="of-one-part", **_part(division, 0))]
    for run in runs:
        one.ask(run)
    door.close()
    change(place)
    door = one.door = place.door()
    for run in runs:
        with pytest.raises(Refusal) as refused:
            one.ask(run)
        assert refused.value.body == Refusal(*ROWS_CHANGED).body
    with pytest.raises(Refusal, match="not those"):
        one.open(key="of-the-other-part", **_part(division, 1))
    with pytest.raises(Refusal, match="not those"):
        _divided(one)
    assert _divided(one, "another-division") != division
    assert one.open(key="of-these-rows")
    door.close()
    (place.folder / "applicants.csv").write_text(kept)  # the holder mends it
    door = one.door = place.door()
    for run in runs:
        one.ask(run)
        one.act(run, "close", {})
    assert one.open(key="of-the-other-part", **_part(division, 1))
    door.close()


@pytest.mark.parametrize("seed", [None, "07" * 32])
def test_a_statement_calls_a_seeded_coin_no_secret(seed: str | None, tmp_path: Path) -> None:
    door = place_in(tmp_path).door()
    one = Analyst(door)
    body = packed({"share": 0.3, "seed": seed, "coins": "certificate"})
    told = unpacked(door.runs.divide(one.token, "applicants", "a-division", body))
    run = one.open(**_part(told.content["division"].text(), 1))
    facts = {fact.name: fact.value for fact in one.statement(run).facts}
    coin = "secret" if seed is None else "seeded"
    assert facts["rows read"] == f"each row with probability 0.3, by a {coin} coin of its own"
    door.close()


def test_all_views_of_an_open_door_are_of_the_same_rows(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    door = place.door()
    assert Analyst(door).open(**OTHER_GROUPS)
    _reversed(place)
    with pytest.raises(Refusal) as refused:
        Analyst(door).open(**AS_FEATURE)
    assert (refused.value.status, refused.value.word) == (503, "rows-away")
    assert "have changed" in refused.value.detail
    door.close()


def test_digests_tell_nothing_without_the_doors_secret(tmp_path: Path) -> None:
    """The same rows in two doors have other digests; a door that is opened again the same."""
    place = place_in(tmp_path)
    digests = []
    for folder in ("door", "other", "door"):
        place.config.write_text(place.config.read_text().replace('"door"', f'"{folder}"', 1))
        door = place.door()
        digests.append(door.datasets["applicants"].rows_digest)
        door.close()
        place.config.write_text(place.config.read_text().replace(f'"{folder}"', '"door"', 1))
    assert digests[0] == digests[2] != digests[1]


def test_what_is_wrong_with_the_ledger_names_no_place(tmp_path: Path) -> None:
    """A ledger that was damaged, replaced or lost under an open door."""
    place = place_in(tmp_path)
    door = place.door()
    one = Analyst(door)
    assert one.open(key="before-that")
    door.datasets["applicants"].ledger.close()
    for ledger in door.runs._ledgers.values():
        ledger.close()
    for file in place.folder.glob("budget.db*"):
        file.unlink()
    for number, change in enumerate((lambda path: None, _write(b"no ledger" * 1000), Path.mkdir)):
        change(place.folder / "budget.db")
        with pytest.raises((FairveilError, Refusal)) as raised:
            Analyst(door).open(key=f"after-that-{number}")
        refused = refusal_of(raised.value)
        assert refused.body == Refusal(*AWAY, kind="LedgerAway").body
        assert "budget.db" in refused.detail
        (place.folder / "budget.db").unlink(missing_ok=True) if number < 2 else None
    door.records.close()


def _write(words: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(words)
