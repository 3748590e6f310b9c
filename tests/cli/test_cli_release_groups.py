"""`fairveil release-groups`: a folder that is verified, loaded, and fitted to."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from people_who_do_not_exist import Command

import fairveil as fv


def test_a_release_is_written_verified_and_fitted_to(
    fairveil: Command, table: Path, schema: Path
) -> None:
    done = fairveil(
        "release-groups", table, "--schema", schema, "--epsilon", 0.5, "--seed", 1, "--out", "g"
    )
    assert done.code == 0, done.err
    assert "female, male" in done.out
    assert sorted(path.name for path in Path("g").iterdir()) == ["groups.json", "statement.json"]
    assert fairveil("verify", "g").code == 0
    released = fv.ReleasedGroups.load("g")
    assert 0.4999 < released.privacy.epsilon <= 0.5
    rows = pd.read_csv(table)
    y = rows.pop("hired")
    clf = released.fit(rows, y, "demographic_parity:0.05")
    assert set(clf.predict(rows[:20], random_state=0)) <= {"no", "yes"}


def test_without_a_schema_groups_are_read_from_the_data(fairveil: Command, table: Path) -> None:
    done = fairveil(
        "release-groups",
        table,
        "--target",
        "hired",
        "--sensitive",
        "sex",
        "--clusters",
        9,
        "--out",
        "g",
    )
    assert done.code == 0, done.err
    origins = {
        fact["name"]: fact["origin"]
        for fact in json.loads(Path("g/statement.json").read_text())["facts"]
    }
    assert origins["groups of sex"] == "read from the data, not covered"
    assert origins["clusters"] == "public features"
    assert fv.ReleasedGroups.load("g").clusters.count <= 9


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--protects", "records"), "protects"),
        (("--epsilon", "0"), "epsilon"),
        (("--clusters", "0"), "clusters"),
    ],
)
def test_what_is_refused_writes_nothing(
    fairveil: Command, table: Path, schema: Path, words: tuple[str, str], said: str
) -> None:
    done = fairveil("release-groups", table, "--schema", schema, *words, "--out", "g")
    assert done.code == 2
    assert said in done.err
    assert not Path("g").exists()


def test_a_ledger_holds_it_once(fairveil: Command, table: Path, schema: Path) -> None:
    budget = ("--epsilon", 1, "--delta", 1e-6, "--protects", "sensitive-features")
    made = fairveil("ledger", "create", "b.db", "people", *budget)
    assert made.code == 0, made.err
    release = ("release-groups", table, "--schema", schema, "--delta", 1e-6, "--ledger", "b.db")
    assert fairveil(*release, "--out", "g").code == 0
    again = fairveil(*release, "--out", "h")
    assert again.code == 2
    assert not Path("h").exists()
