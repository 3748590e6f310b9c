"""Rows set aside behind the door, by the holder's coins: certified fits and searches with the same
bits, and hostility."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import PERSONS, Place, place_in, remote_data, served

import fairveil as fv
from fairveil.core.events import Gaussian
from fairveil.curator.elsewhere import curator_of
from fairveil.data import Encoding
from fairveil.errors import DoorError, FairveilError, InputError, Overspent, PrivacyError
from fairveil.serving import RemoteData
from fairveil.serving.door.divisions import DivisionPart, Divisions
from fairveil.serving.door.door import Door
from fairveil.serving.wire.messages import packed

Opened = tuple[RemoteData, Door, str]
PARITY = fv.DemographicParity(0.2, confidence=0.9)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=200.0)


@pytest.fixture(scope="module")
def door(place: Place) -> Iterator[Opened]:
    with remote_data(place) as found:
        yield found


CERTIFIED: dict[str, Any] = {
    "constraint": lambda: fv.RateConstrainedClassifier(
        PARITY, solver=fv.Descent(rounds=5), random_state=3
    ),
    "beside": lambda: fv.FermiClassifier(
        solver=fv.Descent(rounds=5), random_state=3, certify=PARITY
    ),
    "objective": lambda: fv.GroupObjectiveClassifier(constraint=PARITY, random_state=3),
}


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_certified_fit_is_the_local_one_to_the_bit(name: str, place: Place, door: Opened) -> None:
    here, there = CERTIFIED[name]().fit(place.rows), CERTIFIED[name]().fit(door[0])
    assert here.predict_proba(place.rows).tobytes() == there.predict_proba(place.rows).tobytes()
    if name != "objective":  # a mixture draws decisions, by coins of the holder's
        assert here.certificate_.counts.tobytes() == there.certificate_.counts.tobytes()
        assert here.certificate_.certified == there.certificate_.certified
    assert here.privacy_.promise == there.privacy_.promise
    assert (
        "each row with probability 0.7"
        in {fact.name: fact.value for fact in there.privacy_.facts}["rows read"]
    )
    assert place.ledger().balance().open == 0


@pytest.mark.parametrize("way", ["all", "auto"])
def test_a_search_is_the_local_one_to_the_bit(way: str, place: Place, door: Opened) -> None:
    """Of all candidates: every answer reaches the analyst, so no other price is true
    (theory.md#search)."""
    one = fv.FermiClassifier(solver=fv.Descent(rounds=3))
    how: dict[str, Any] = {"epsilon": 3.0, "way": way, "random_state": 3}
    here, there = (
        fv.PrivateSearchCV(one, {"solver__clip": [0.5, 2.0]}, **how).fit(rows)
        for rows in (place.rows, door[0])
    )
    assert there.price_.way == "all"
    assert here.price_.epsilon == there.price_.epsilon
    assert (
        here.cv_results_["mean_test_score"].tobytes()
        == there.cv_results_["mean_test_score"].tobytes()
    )
    assert here.best_params_ == there.best_params_
    assert here.predict_proba(place.rows).tobytes() == there.predict_proba(place.rows).tobytes()
    assert here.privacy_.epsilon == there.privacy_.epsilon
    assert place.ledger().balance().open == 0


def test_a_model_of_one_part_is_certified_on_the_other_alone(door: Opened) -> None:
    kept, aside = door[0].parted(0.3)
    model = fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(kept)
    how: dict[str, Any] = {"constraints": "demographic_parity:0.5", "epsilon": 1.0}
    assert fv.certify(model, aside, **how).counts.sum() > 0
    others = door[0].parted(0.3)
    for seen in (kept, door[0], *others):
        with pytest.raises(InputError, match="whom the model has not seen"):
            fv.certify(model, seen, **how)
    with pytest.raises(InputError, match="a whole data set"):
        kept.parted(0.5)


def test_parts_have_no_row_in_common_and_are_the_same_after_a_restart(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    with served(place) as (opened, url):
        data = fv.remote(url, "applicants", token=opened.tokens.issue("analyst"))
        parts = [DivisionPart(*one.identity[2:]) for one in data.parted(0.4)]  # type: ignore[misc]
        before = [opened.runs.divisions.rows_of(part, 1500) for part in parts]
        data.close()
    again = place.door()
    try:
        after = [again.runs.divisions.rows_of(part, 1500) for part in parts]
        assert np.array_equal(np.sort(np.concatenate(before)), np.arange(1500))
        assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
        assert abs(len(before[1]) - 600) < 120  # 6 deviations of 19: a false alarm in 1e9
    finally:
        again.close()


def test_sizes_of_parts_are_told_where_the_number_of_rows_is_public(tmp_path: Path) -> None:
    """They follow from that number and from coins alone."""
    place = place_in(tmp_path, neighbours="replace-one")
    with served(place) as (opened, url):
        token = opened.tokens.issue("analyst")
        data = fv.remote(url, "applicants", token=token)
        kept, aside = data.parted(0.4)
        assert kept.exact_rows is not None
        assert aside.exact_rows is not None
        assert kept.exact_rows + aside.exact_rows == 1500
        model = fv.FermiClassifier(solver=fv.Descent(rounds=3), neighbours="replace-one").fit(kept)
        assert model.privacy_.promise.neighbours == "replace-one"
        data.close()


@pytest.mark.parametrize(
    "forged", ["another token's", "one that is not there", "a path", "of another data set"]
)
def test_anothers_division_is_told_as_one_that_is_not_there(
    forged: str, place: Place, door: Opened
) -> None:
    data, opened, _ = door
    owner = opened.tokens.issue("owner")
    theirs = fv.remote(data.address, "applicants", token=owner)
    kept, _ = theirs.parted(0.5)
    part = {
        "another token's": kept._part,
        "one that is not there": {"division": secrets.token_hex(16), "number": 0},
        "a path": {"division": "../../' OR 1=1 --", "number": 1},
        "of another data set": None,
    }[forged]
    if part is None:
        mine, _ = data.parted(0.5)
        part = mine._part
        with opened.records.writing() as db:
            db.execute("UPDATE divisions SET dataset = 'others' WHERE id = ?", (part["division"],))
    before = place.ledger().balance().to_dict()["entries"]
    mine = data.parted(0.5)[0]
    mine._part = part
    with pytest.raises(DoorError, match="There is no such data set"):
        fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(mine)
    assert place.ledger().balance().to_dict()["entries"] == before
    theirs.close()


@pytest.mark.parametrize(
    "content",
    [
        {"share": 0.0, "seed": None, "coins": "certificate"},
        {"share": 1.0, "seed": None, "coins": "certificate"},
        {"share": "0.5", "seed": None, "coins": "certificate"},
        {"share": 0.5, "seed": None, "coins": "mine"},
        {"share": 0.5, "seed": "00", "coins": "search"},
        {"share": 0.5, "seed": None},
        {"share": 0.5, "seed": None, "coins": "search", "rows": [1]},
    ],
)
def test_a_hostile_division_is_refused(content: dict[str, Any], door: Opened) -> None:
    with pytest.raises(InputError):
        door[0]._connection.act("datasets", "applicants", "divide", body=packed(content))


@pytest.mark.parametrize("number", [2, -1, 0.5, "0", None])
def test_a_hostile_part_is_refused(number: Any, door: Opened) -> None:
    kept, _ = door[0].parted(0.5)
    assert kept._part is not None
    kept._part = {**kept._part, "number": number}
    with pytest.raises(FairveilError, match="number"):
        fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(kept)


def test_a_repeated_request_names_the_same_division(door: Opened) -> None:
    connection, key = door[0]._connection, secrets.token_hex(16)
    body = packed({"share": 0.5, "seed": None, "coins": "search"})
    first, again = (
        connection.act("datasets", "applicants", "divide", body=body, key=key).content
        for _ in range(2)
    )
    assert first["division"].text() == again["division"].text()
    other = packed({"share": 0.25, "seed": None, "coins": "search"})
    with pytest.raises(PrivacyError, match="key"):
        connection.act("datasets", "applicants", "divide", body=other, key=key)


def test_old_divisions_are_forgotten_when_no_run_is_open(door: Opened) -> None:
    data, opened, _ = door
    kept, _ = data.parted(0.5)
    part = DivisionPart(*kept.identity[2:])  # type: ignore[arg-type]
    divisions = Divisions(opened.records)
    divisions.forget(0.0)
    assert len(divisions.rows_of(part, 100)) <= 100
    rows = data.rows(Encoding(data.schema).layout, data.schema, False)
    with curator_of(rows, fv.Promise(1.0, 1e-6), plan=Gaussian(9.0)):
        divisions.forget(1e12)
        assert len(divisions.rows_of(part, 100)) <= 100
    divisions.forget(1e12)
    with pytest.raises(Exception, match="no such data set"):
        divisions.rows_of(part, 100)


def test_no_seed_reaches_secret_coins(tmp_path: Path) -> None:
    place = place_in(tmp_path, seeded=False)
    with remote_data(place) as (data, _, _):
        with pytest.raises(DoorError, match="secret"):
            data.parted(0.5, 3)
        data.parted(0.5)


def test_a_persons_rows_are_not_parted(tmp_path: Path) -> None:
    place = place_in(tmp_path, schema=PERSONS, unit="person")
    with remote_data(place) as (data, _, _):
        kept, _ = data.parted(0.5)
        with pytest.raises((InputError, PrivacyError), match="persons"):
            fv.FermiClassifier(
                solver=fv.Descent(rounds=3), unit="person", max_rows_per_unit=2, public_rows=900
            ).fit(kept)
        assert place.ledger().balance().open == 0


def test_a_fit_without_room_for_its_certificate_begins_nothing(tmp_path: Path) -> None:
    place = place_in(tmp_path, epsilon=1.5)
    with remote_data(place) as (data, _, _):
        with pytest.raises(Overspent):
            fv.RateConstrainedClassifier(PARITY, solver=fv.Descent(rounds=3)).fit(data)
        with pytest.raises(Overspent):
            fv.PrivateSearchCV(
                fv.FermiClassifier(solver=fv.Descent(rounds=3)),
                {"solver__clip": [0.5, 2.0]},
                epsilon=1.5,
                way="all",
            ).fit(data)
        assert place.ledger().balance().spent_share == 0.0
