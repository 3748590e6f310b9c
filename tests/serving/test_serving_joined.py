"""A data set whose attribute lies in another table, through the door: the joined table's own bits,
under its own rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import doors
import numpy as np
import pandas as pd
import pytest
from doors import SCHEMA, Place, remote_data, served

import fairveil as fv
from fairveil.errors import FairveilError, InputError, PrivacyError
from fairveil.facts import Category, Schema
from fairveil.ledger import Ledger
from fairveil.serving import RemoteData
from fairveil.serving.holder import Holder
from fairveil.serving.runs import Server
from fairveil.statement import signing
from knobs import made

JOINED = Schema(
    {**SCHEMA.columns, "sex": Category(("f", "m", "unknown"), missing="unknown")},
    target="hired",
    sensitive="sex",
    rows=1500,
)
CONFIG = """[door]
name = "Office"
folder = "door"
signing_key = "holder.key"
port = 0
[datasets.applicants]
rows = "company.csv"
attribute = "register.csv"
id = "person"
schema = "applicants.toml"
ledger = "budget.db"
seeded = true
features_served = true
"""


def prepared(folder: Path, *, protects: str = "sensitive_features", config: str = CONFIG) -> Place:
    """The company's table, the holder's register of four in five of them and of others, and the
    table that both make."""
    folder.mkdir(parents=True, exist_ok=True)
    doors.write_table(folder / "all.csv")
    table, rng = pd.read_csv(folder / "all.csv"), np.random.default_rng(0)
    table["person"] = rng.permutation(10**6)[: len(table)]
    table.drop(columns="sex").to_csv(folder / "company.csv", index=False)
    held = table[["person", "sex"]].sample(frac=0.8, random_state=0)
    others = pd.DataFrame({"person": range(10**6, 10**6 + 50), "sex": "f"})
    pd.concat([others, held]).to_csv(folder / "register.csv", index=False)
    table.loc[~table["person"].isin(held["person"]), "sex"] = "unknown"
    table.drop(columns="person").to_csv(folder / "whole.csv", index=False)
    (folder / "applicants.toml").write_text(JOINED.to_toml())
    Ledger.create(str(folder / "budget.db"), "applicants", 40.0, 1e-4, protects=protects).close()
    signing.new_key(folder / "holder.key")
    (folder / "holder.toml").write_text(config)
    return Place(folder, fv.data.open(folder / "whole.csv", JOINED))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return prepared(tmp_path_factory.mktemp("holder"))


@pytest.fixture(scope="module")
def data(place: Place) -> Iterator[RemoteData]:
    with remote_data(place) as (found, _, _):
        yield found


HOW: dict[str, Any] = {"protects": "sensitive_features", "epsilon": 1.0, "random_state": 3}
FITS: dict[str, Any] = {
    "rate-constrained": lambda: made(
        fv.RateConstrainedClassifier, "demographic_parity:0.1", solver=fv.Descent(rounds=10), **HOW
    ),
    "fermi": lambda: made(fv.FermiClassifier, solver=fv.Descent(rounds=10), **HOW),
    "game": lambda: made(fv.OracleGameClassifier, "demographic_parity:0.1", rounds=3, **HOW),
}


@pytest.mark.parametrize("name", FITS)
def test_guarantee_1_a_fit_is_that_on_the_joined_table_to_the_bit(
    name: str, place: Place, data: RemoteData
) -> None:
    here, there = FITS[name]().fit(place.rows), FITS[name]().fit(data)
    assert here.groups_ == there.groups_ == ("f", "m", "unknown")
    assert here.predict_proba(place.rows).tobytes() == there.predict_proba(place.rows).tobytes()
    for field in ("promise", "epsilon", "events", "plan", "bounds", "releases"):
        assert getattr(here.privacy_, field) == getattr(there.privacy_, field), field
    facts = {fact.name: fact.value for fact in there.privacy_.facts}
    assert "by id" in facts["joined sex"]
    assert "unknown" in facts["unmatched ids"]


@pytest.mark.parametrize("how", [HOW, {}], ids=["sensitive features", "records"])
def test_guarantee_2_the_attribute_is_no_feature(how: dict[str, Any], data: RemoteData) -> None:
    with pytest.raises((InputError, PrivacyError), match="sensitive_as_feature"):
        made(
            fv.RateConstrainedClassifier,
            solver=fv.Descent(rounds=5),
            sensitive_as_feature=True,
            **how,
        ).fit(data)


def test_guarantee_2_a_ledger_of_records_is_refused(tmp_path: Path) -> None:
    place = prepared(tmp_path, protects="records")
    with pytest.raises(InputError, match="sensitive features alone"), served(place):
        pass


def test_rows_without_an_entry_may_be_left_out(tmp_path: Path) -> None:
    place = prepared(
        tmp_path, config=CONFIG.replace('id = "person"', 'id = "person"\nunmatched = "drop"')
    )
    with remote_data(place) as (data, _, _):
        assert data.exact_rows == 1200
        clf = FITS["fermi"]().fit(data)
        origins = {fact.name: fact.origin for fact in clf.privacy_.facts}
        assert origins["unmatched ids"] == "read from the data, not covered"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('id = "person"\n', ""),
        ('attribute = "register.csv"\n', ""),
        ('id = "person"', 'id = "a"'),
        ('id = "person"', 'id = "person"\nunmatched = "keep"'),
        ('id = "person"', "id = 3"),
    ],
)
def test_a_join_that_is_not_whole_is_refused_before_anything_is_opened(
    old: str, new: str, place: Place, tmp_path: Path
) -> None:
    (tmp_path / "applicants.toml").write_text(JOINED.to_toml())
    (tmp_path / "holder.toml").write_text(CONFIG.replace(old, new))
    with pytest.raises(FairveilError):
        Holder.load(tmp_path / "holder.toml")
    (tmp_path / "applicants.toml").write_text(SCHEMA.to_toml())
    (tmp_path / "holder.toml").write_text(CONFIG)
    with pytest.raises(FairveilError, match="a value for unmatched ids"):
        Holder.load(tmp_path / "holder.toml")


def test_an_id_that_occurs_twice_keeps_the_door_shut(tmp_path: Path) -> None:
    place = prepared(tmp_path)
    with (tmp_path / "register.csv").open("a") as register:
        register.write("1000000,m\n")
    with pytest.raises(InputError, match="each id once"):
        Server(Holder.load(place.config))
