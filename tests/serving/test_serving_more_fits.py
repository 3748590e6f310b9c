"""Regressors, weights and persons through the door: the bits of local fits, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import PERSONS, WIDE, Place, place_in, remote_data

import fairveil as fv
from fairveil.errors import InputError, PrivacyError, SchemaError
from fairveil.serving import RemoteData
from fairveil.serving.door.door import Door
from fairveil.serving.door.holder import Holder
from knobs import made


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("wide"), epsilon=90.0, schema=WIDE, weights="weight")


@pytest.fixture(scope="module")
def numbers(wide: Place) -> Iterator[RemoteData]:
    with remote_data(wide) as found:
        yield found[0]


def weights_in(place: Place) -> Any:
    lines = (place.folder / "applicants.csv").read_text().splitlines()
    at = lines[0].split(",").index("weight")
    return np.array([float(line.split(",")[at]) for line in lines[1:]])


REGRESSORS: dict[str, Any] = {
    "group objective": lambda: fv.GroupObjectiveRegressor(random_state=3),
    "squared, bounded": lambda: fv.GroupObjectiveRegressor(
        objective="largest_group_loss", random_state=3
    ),
    "frank-wolfe": lambda: fv.GroupObjectiveRegressor(
        method="frank-wolfe", solver=fv.Moments(rounds=3), random_state=3
    ),
    "tailored": lambda: fv.TailoredRegressor(random_state=4),
    "tailored moments": lambda: fv.TailoredRegressor(solver=fv.Moments(), random_state=4),
    "additive": lambda: fv.TailoredRegressor(
        solver=fv.GroupDescent(rounds=5), model="additive", random_state=4
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_through_the_door_is_the_local_one_to_the_bit(
    name: str, weighted: bool, wide: Place, numbers: RemoteData
) -> None:
    here, there = (
        REGRESSORS[name]().set_params(max_sample_weight=2.5 if weighted else 1.0) for _ in range(2)
    )
    here.fit(wide.rows, sample_weight=weights_in(wide) if weighted else None)
    there.fit(numbers, sample_weight="weight" if weighted else None)
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert here.predict(wide.rows).tobytes() == there.predict(wide.rows).tobytes()
    for field in ("promise", "epsilon", "events", "bounds", "noise", "stamps"):
        assert getattr(here.privacy_, field) == getattr(there.privacy_, field), field
    told = {fact.name: fact.value for fact in there.privacy_.facts}
    assert told["bounds of the target"] == "0 to 10"
    assert told.get("largest sample weight") == ("2.5" if weighted else None)


@pytest.fixture(scope="module")
def weighed(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("weighed"), epsilon=60.0, weights="weight")


@pytest.fixture(scope="module")
def classes(weighed: Place) -> Iterator[tuple[RemoteData, Door, str]]:
    with remote_data(weighed) as found:
        yield found


WEIGHED: dict[str, Any] = {
    "rate-constrained": lambda: fv.RateConstrainedClassifier(
        "demographic_parity:0.1", solver=fv.Descent(rounds=5), random_state=3
    ),
    "fermi": lambda: fv.FermiClassifier(solver=fv.Descent(rounds=5), random_state=4),
    "tailored": lambda: fv.TailoredClassifier(solver=fv.GroupDescent(rounds=5), random_state=4),
    "game": lambda: fv.OracleGameClassifier("demographic_parity:0.1", rounds=3, random_state=2),
    "group objective": lambda: fv.GroupObjectiveClassifier(random_state=2),
}


@pytest.mark.parametrize("cap", [0.5, 4.0])
@pytest.mark.parametrize("name", WEIGHED)
def test_a_weighted_fit_through_the_door_is_the_local_one_to_the_bit(
    name: str, cap: float, weighed: Place, classes: tuple[RemoteData, Door, str]
) -> None:
    """The weights lie between 0 and 5: each cap cuts some of them, and noise follows it."""
    here, there = (WEIGHED[name]().set_params(max_sample_weight=cap) for _ in range(2))
    here.fit(weighed.rows, sample_weight=weights_in(weighed))
    there.fit(classes[0], sample_weight="weight")
    assert here.predict_proba(weighed.rows).tobytes() == there.predict_proba(weighed.rows).tobytes()
    assert here.privacy_.bounds == there.privacy_.bounds


def test_only_the_holders_column_is_a_weight(
    weighed: Place, classes: tuple[RemoteData, Door, str], numbers: RemoteData
) -> None:
    data, before = classes[0], weighed.ledger().balance().to_dict()["entries"]
    clf = fv.FermiClassifier(solver=fv.Descent(rounds=3))
    for given, words in (
        ("a", "the holder's 'weight'"),
        (np.ones(3), "sample_weight='weight'"),
        ("hired", "the holder's"),
    ):
        with pytest.raises(InputError, match=words):
            clf.fit(data, sample_weight=given)
    with pytest.raises((InputError, PrivacyError), match="max_sample_weight"):
        fv.FermiClassifier(solver=fv.Descent(rounds=3), max_sample_weight=float("inf")).fit(
            data, sample_weight="weight"
        )
    assert weighed.ledger().balance().to_dict()["entries"] == before


@pytest.mark.parametrize("cap", [0.0, -1.0, "2", True])
def test_a_hostile_cap_is_refused(
    cap: Any, classes: tuple[RemoteData, Door, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairveil.serving.analyst import remote as there

    plain = there.view_of
    monkeypatch.setattr(there, "view_of", lambda *how: {**plain(*how), "weight_cap": cap})
    with pytest.raises(InputError, match="weight_cap"):
        fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(classes[0])


def test_an_analyst_who_claims_a_smaller_cap_gets_more_cut_and_no_less_noise(
    weighed: Place, classes: tuple[RemoteData, Door, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder's curator knows the cap by itself: the statement has it, whatever the analyst's
    side believed."""
    from fairveil.serving.analyst import remote as there

    plain = there.view_of
    monkeypatch.setattr(there, "view_of", lambda *how: {**plain(*how), "weight_cap": 0.25})
    made = fv.FermiClassifier(solver=fv.Descent(rounds=3), random_state=1).fit(classes[0])
    monkeypatch.undo()
    honest = fv.FermiClassifier(
        solver=fv.Descent(rounds=3), random_state=1, max_sample_weight=0.25
    ).fit(classes[0], sample_weight="weight")
    assert made.privacy_.bounds == honest.privacy_.bounds


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("weights = 'a'", "no feature"),
        ("weights = 'person_2'", "person_2"),
        ("weights = 3", "weights"),
    ],
)
def test_a_holder_names_a_column_of_weights_that_is_there(
    line: str, words: str, tmp_path: Path
) -> None:
    place = place_in(tmp_path)
    place.config.write_text(place.config.read_text() + line + "\n")
    with pytest.raises((InputError, SchemaError), match=words):
        Door.opened(Holder.load(place.config))


@pytest.mark.parametrize("cell", ["", "-1", "inf", "nan", "many"])
def test_a_weight_that_is_none_is_refused_by_its_row_and_not_shown(
    cell: str, tmp_path: Path
) -> None:
    place = place_in(tmp_path, weights="weight")
    lines = (tmp_path / "applicants.csv").read_text().splitlines()
    cells = lines[7].split(",")
    cells[6] = cell
    lines[7] = ",".join(cells)
    (tmp_path / "applicants.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(SchemaError, match="weight") as found:
        Door.opened(Holder.load(place.config))
    assert "many" not in str(found.value)


# -- persons ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def patients(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("persons"), epsilon=60.0, schema=PERSONS, unit="person")


@pytest.fixture(scope="module")
def people(patients: Place) -> Iterator[RemoteData]:
    with remote_data(patients) as found:
        yield found[0]


OF_PERSONS: dict[str, Any] = {
    "rate-constrained": lambda **how: made(
        fv.RateConstrainedClassifier,
        "demographic_parity:0.1",
        solver=fv.Descent(rounds=5),
        public_rows=1500,
        random_state=3,
        **how,
    ),
    "fermi": lambda **how: made(
        fv.FermiClassifier, solver=fv.Descent(rounds=5), public_rows=1500, random_state=4, **how
    ),
    "tailored": lambda **how: fv.TailoredClassifier(
        solver=fv.GroupDescent(rounds=5), random_state=5, **how
    ),
}


@pytest.mark.parametrize("most", [2, 4])
@pytest.mark.parametrize("name", OF_PERSONS)
def test_a_fit_for_persons_is_the_local_one_to_the_bit(
    name: str, most: int, patients: Place, people: RemoteData
) -> None:
    how: dict[str, Any] = {"unit": "person", "max_rows_per_unit": most}
    here, there = OF_PERSONS[name](**how).fit(patients.rows), OF_PERSONS[name](**how).fit(people)
    assert here.coef_.tobytes() == there.coef_.tobytes()
    assert there.privacy_.promise.unit is not None
    assert here.privacy_.promise == there.privacy_.promise
    assert here.privacy_.bounds == there.privacy_.bounds


def test_people_are_counted_by_person(patients: Place, people: RemoteData) -> None:
    clf = OF_PERSONS["fermi"](unit="person", max_rows_per_unit=2).fit(people)
    how: dict[str, Any] = {
        "epsilon": 1.0,
        "unit": "person",
        "max_rows_per_unit": 1,
        "random_state": 5,
    }
    here, there = fv.private_audit(clf, patients.rows, **how), fv.private_audit(clf, people, **how)
    assert here.counts.tobytes() == there.counts.tobytes()
    assert there.privacy_.promise.unit is not None


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({}, "a schema of rows"),
        ({"unit": "town", "max_rows_per_unit": 2}, "the holder's column 'person'"),
        ({"unit": np.zeros(3), "max_rows_per_unit": 2}, "the holder's column 'person'"),
        ({"unit": "person"}, "the most rows of one person"),
    ],
)
def test_who_is_protected_is_the_holders_to_say(
    how: dict[str, Any], words: str, patients: Place, people: RemoteData
) -> None:
    before = patients.ledger().balance().to_dict()["entries"]
    with pytest.raises((InputError, PrivacyError), match=words):
        made(fv.FermiClassifier, solver=fv.Descent(rounds=3), **how).fit(people)
    assert patients.ledger().balance().to_dict()["entries"] == before


def test_a_hostile_promise_for_rows_of_persons_reserves_nothing(
    patients: Place, people: RemoteData
) -> None:
    """Past the checks of the analyst's own side: the door compares the guarantee with its
    schema."""
    from fairveil.core.events import Gaussian
    from fairveil.core.promise import Unit
    from fairveil.curator.elsewhere import curator_of
    from fairveil.data import Encoding

    before = patients.ledger().balance().to_dict()["entries"]
    rows = people.rows(Encoding(PERSONS).layout, PERSONS, False)
    for unit in (None, Unit("town", 2), Unit("person", None)):
        with pytest.raises((InputError, PrivacyError)):
            curator_of(rows, fv.Promise(1.0, 1e-6, unit=unit), plan=Gaussian(9.0))
    assert patients.ledger().balance().to_dict()["entries"] == before


def test_a_ledger_of_rows_does_not_serve_persons(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a ledger of persons by 'person'"):
        Door.opened(Holder.load(place_in(tmp_path / "a", schema=PERSONS).config))
    with pytest.raises(InputError, match="a ledger of rows"):
        Door.opened(Holder.load(place_in(tmp_path / "b", unit="person").config))
