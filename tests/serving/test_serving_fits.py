"""Fits through the door: the same model to the bit, the same statement, signed; and no row on this
side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import SCHEMA, Place, place_in, remote_data

import fairveil as fv
from fairveil.errors import InputError, Overspent, PrivacyError, SignatureError
from fairveil.serving import RemoteData
from fairveil.serving.door.door import Door
from fairveil.statement import signing
from fairveil.statement.signing import verify_signature


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return place_in(tmp_path_factory.mktemp("holder"), epsilon=60.0)


@pytest.fixture(scope="module")
def door(place: Place) -> Iterator[tuple[RemoteData, Door, str]]:
    with remote_data(place) as found:
        yield found


@pytest.fixture
def data(door: tuple[RemoteData, Door, str]) -> RemoteData:
    return door[0]


FITS: dict[str, Any] = {
    "rate-constrained": lambda: fv.RateConstrainedClassifier(
        "demographic_parity:0.1", solver=fv.Descent(rounds=20), random_state=3
    ),
    "sampled": lambda: fv.RateConstrainedClassifier(
        "equalized_odds:0.2", solver=fv.Descent(rounds=10, sampling_rate=0.3), random_state=5
    ),
    "additive": lambda: fv.RateConstrainedClassifier(
        "demographic_parity:0.1", solver=fv.Descent(rounds=10), model="additive", random_state=3
    ),
    "fermi": lambda: fv.FermiClassifier(solver=fv.Descent(rounds=20), random_state=4),
    "tailored": lambda: fv.TailoredClassifier(solver=fv.GroupDescent(rounds=10), random_state=4),
    "game": lambda: fv.OracleGameClassifier("demographic_parity:0.1", rounds=3, random_state=2),
    "group objective": lambda: fv.GroupObjectiveClassifier(random_state=2),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_through_the_door_is_the_local_fit_to_the_bit(
    name: str, place: Place, data: RemoteData
) -> None:
    here, there = FITS[name]().fit(place.rows), FITS[name]().fit(data)
    assert here.predict_proba(place.rows).tobytes() == there.predict_proba(place.rows).tobytes()
    if hasattr(here, "coef_"):
        assert here.coef_.tobytes() == there.coef_.tobytes()
        assert here.intercept_.tobytes() == there.intercept_.tobytes()
        assert (here.predict(place.rows) == there.predict(place.rows)).all()
    else:
        assert name in ("game", "group objective")
    assert here.groups_ == there.groups_
    for field in (
        "promise",
        "epsilon",
        "events",
        "plan",
        "bounds",
        "releases",
        "noise",
        "stamps",
        "groups",
    ):
        assert getattr(here.privacy_, field) == getattr(there.privacy_, field), field


def test_the_statement_is_signed_by_the_holder_and_names_the_ledger(
    place: Place, data: RemoteData, tmp_path: Path
) -> None:
    clf = fv.FermiClassifier(solver=fv.Descent(rounds=5)).fit(data)
    assert data.signature is not None
    assert data.signature.signer == signing.fingerprint(signing.public_key(place.public_key))
    assert clf.privacy_.ledger is not None
    assert place.ledger().check([clf.privacy_.ledger]) == []
    assert clf.privacy_.noise == "secure"


def test_another_key_is_refused(
    data: RemoteData, door: tuple[RemoteData, Door, str], tmp_path: Path
) -> None:
    signing.new_key(tmp_path / "other.key")
    with pytest.raises(SignatureError, match="the door of the holder of this key"):
        fv.remote(data.address, "applicants", token=door[2], key=tmp_path / "other.pub")


def test_a_statement_that_was_changed_is_refused(data: RemoteData) -> None:
    clf = fv.FermiClassifier(solver=fv.Descent(rounds=5)).fit(data)
    assert data.signature is not None
    changed = clf.privacy_.to_json().replace('"epsilon": 1.0', '"epsilon": 0.5')
    with pytest.raises(SignatureError, match="the signed statement"):
        data.checked(changed, data.signature.to_json())


def test_the_budget_is_the_holders(place: Place, data: RemoteData) -> None:
    before = place.ledger().balance().spent_share
    fv.FermiClassifier(solver=fv.Descent(rounds=5)).fit(data)
    assert place.ledger().balance().spent_share > before
    with pytest.raises(Overspent):
        fv.FermiClassifier(solver=fv.Descent(rounds=5), epsilon=500.0).fit(data)


def test_groups_may_be_named(place: Place, data: RemoteData) -> None:
    def make() -> fv.RateConstrainedClassifier:
        solver = fv.Descent(rounds=5)
        return fv.RateConstrainedClassifier("demographic_parity:0.2", solver=solver, random_state=1)

    here = make().fit(place.rows, sensitive_features="sex")
    assert here.coef_.tobytes() == make().fit(data, sensitive_features="sex").coef_.tobytes()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"y": [0, 1]}, "None beside remote data"),
        ({"sample_weight": [1.0, 2.0]}, "None beside remote data"),
        ({"sensitive_features": np.zeros(3)}, "None beside remote data"),
    ],
)
def test_labels_groups_and_weights_are_the_holders(
    how: dict[str, Any], words: str, data: RemoteData
) -> None:
    with pytest.raises(InputError, match=words):
        fv.RateConstrainedClassifier(solver=fv.Descent(rounds=5)).fit(data, **how)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fv.RateConstrainedClassifier(epsilon=float("inf")),
        lambda: fv.RateConstrainedClassifier(unsafe_data_dependent_bounds=True),
        lambda: fv.RateConstrainedClassifier(ledger=fv.Ledger.create(None, "mine", 1.0, 1e-6)),
        lambda: fv.RateConstrainedClassifier(schema=SCHEMA.without("town")),
        lambda: fv.RateConstrainedClassifier(neighbours="replace-one"),
        lambda: fv.RateConstrainedClassifier(protects="sensitive_features"),
        lambda: fv.GroupObjectiveRegressor(),
    ],
)
def test_what_the_door_cannot_do_is_refused_before_anything_is_reserved(
    make: Any, place: Place, data: RemoteData
) -> None:
    before = place.ledger().balance().to_dict()["entries"]
    with pytest.raises((InputError, PrivacyError)):
        make().fit(data)
    assert place.ledger().balance().to_dict()["entries"] == before


def test_a_choice_by_a_function_is_refused_with_the_reason_and_the_run_is_given_back(
    place: Place, data: RemoteData
) -> None:
    with pytest.raises(InputError, match="a choice by a function"):
        fv.GroupObjectiveClassifier(method="exponential", random_state=1).fit(data)
    assert place.ledger().balance().open == 0


def test_a_curator_here_refuses_rows_that_are_elsewhere(data: RemoteData) -> None:
    """Code that makes its own curator is refused, and does not learn from no rows."""
    from fairveil.curator import Curator
    from fairveil.data import Encoding

    with pytest.raises(InputError, match="rows that are here"):
        Curator(data.rows(Encoding(SCHEMA).layout, SCHEMA, False), fv.Promise(1.0, 1e-6))


def test_a_frontier_is_the_local_one_to_the_bit(place: Place, data: RemoteData) -> None:
    how: dict[str, Any] = {"gaps": [0.1, None], "epsilons": [1.0], "seeds": 2, "progress": False}
    how["estimator"] = fv.RateConstrainedClassifier(solver=fv.Descent(rounds=5))
    here, there = (fv.frontier(rows, **how) for rows in (place.rows, data))
    assert len(here.models) == 4
    for key, model in here.models.items():
        assert (
            model.predict_proba(place.rows).tobytes()
            == there.models[key].predict_proba(place.rows).tobytes()
        )


def test_a_frontier_through_a_door_of_secret_noise_needs_no_argument(tmp_path: Path) -> None:
    """Its usual seeds are left out: one model a point."""
    with remote_data(place_in(tmp_path, seeded=False)) as (data, _, _):
        one = fv.RateConstrainedClassifier(solver=fv.Descent(rounds=3))
        found = fv.frontier(data, estimator=one, gaps=[0.1, None], epsilons=[0.5], progress=False)
        assert len(found.models) == 2
        assert all(model.privacy_.noise == "secure" for model in found.models.values())


def test_a_statement_is_handed_on_with_its_signature(
    place: Place, data: RemoteData, tmp_path: Path
) -> None:
    first, second = (fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(data) for _ in range(2))
    for clf in (first, second):
        path = data.write_statement(clf.privacy_, tmp_path / "statement.json")
        assert verify_signature(path, place.public_key).signer == signing.fingerprint(
            signing.public_key(place.public_key)
        )
        assert fv.PrivacyStatement.from_json(path.read_text()) == clf.privacy_
    with pytest.raises(InputError, match="that this holder signed"):
        data.write_statement(
            fv.FermiClassifier(solver=fv.Descent(rounds=3)).fit(place.rows).privacy_,
            tmp_path / "other.json",
        )
