"""`fairveil attribute`: joined by id where the attribute lies, released once as a signed file, and
fitted to elsewhere."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pandas as pd
import pytest
from people_who_do_not_exist import Command

import fairveil as fv
from fairveil.facts import Category, Schema

HOW = ("--attribute", "register.csv", "--id", "person", "--schema", "t.toml")


@pytest.fixture
def folder(fairveil: Command, table: Path, schema: Path, tmp_path: Path) -> Path:
    """The company's table without the sex, the holder's register of nine in ten of them and of
    others, a schema and a key."""
    draw, whole = random.Random(0), pd.read_csv(table)
    ids = draw.sample(range(10**6), len(whole))
    company = whole.drop(columns="sex").assign(person=[f"p{one}" for one in ids])
    company.to_csv(tmp_path / "company.csv", index=False)
    lines = [
        (f"p{one}", sex) for one, sex in zip(ids, whole["sex"], strict=True) if draw.random() < 0.9
    ]
    lines += [(f"q{one}", "male") for one in range(300)]
    draw.shuffle(lines)
    pd.DataFrame(lines, columns=["person", "sex"]).to_csv(tmp_path / "register.csv", index=False)
    known = Schema.load(schema)
    columns = {**known.columns, "sex": Category(("female", "male", "unknown"), missing="unknown")}
    Schema(columns, target="hired", sensitive=("sex",), rows=4000).save(tmp_path / "t.toml")
    assert fairveil("sign", "--new-key", "holder.key").code == 0
    return tmp_path


def test_a_release_is_signed_verified_and_fitted_to_by_the_company(
    fairveil: Command, folder: Path
) -> None:
    budget = (
        "--epsilon",
        1,
        "--delta",
        0,
        "--protects",
        "sensitive-features",
        "--schema",
        "t.toml",
    )
    assert fairveil("ledger", "create", "b.db", "people", *budget).code == 0
    release = (
        "attribute",
        "release",
        "company.csv",
        *HOW,
        "--epsilon",
        1,
        "--ledger",
        "b.db",
        "--key",
        "holder.key",
    )
    done = fairveil(*release, "--out", "r.json")
    assert done.code == 0, done.err
    assert "female, male, unknown" in done.out
    assert "signed" in done.out
    verified = fairveil("verify", "r.json", "--key", "holder.pub", "--json")
    assert verified.code == 0
    told = json.loads(verified.out)
    assert told["consistent"]
    assert told["signature"]["valid"]
    again = fairveil(*release, "--out", "s.json")
    assert again.code == 2
    assert not Path("s.json").exists()

    released = fv.ReleasedGroups.load("r.json", key="holder.pub")
    assert released.privacy.epsilon == 1.0
    assert released.privacy.ledger is not None
    company = pd.read_csv("company.csv")
    y = company.pop("hired")
    clf = released.fit(company, y, "demographic_parity:0.1")
    assert set(clf.predict(company[:20], random_state=0)) <= {"no", "yes"}


def test_what_was_changed_or_signed_by_another_is_said(fairveil: Command, folder: Path) -> None:
    assert (
        fairveil(
            "attribute", "release", "company.csv", *HOW, "--key", "holder.key", "--out", "r.json"
        ).code
        == 0
    )
    assert fairveil("sign", "--new-key", "other.key").code == 0
    other = fairveil("verify", "r.json", "--key", "other.pub")
    assert other.code == 1
    assert "NOT SIGNED" in other.out
    content = json.loads(Path("r.json").read_text())
    content["groups"]["counts"][0][0] += 1
    Path("r.json").write_text(json.dumps(content))
    assert fairveil("verify", "r.json", "--key", "holder.pub").code == 2
    assert fairveil("verify", "r.json", "--signature", "x.sig", "--key", "holder.pub").code == 2


def test_unmatched_rows_may_be_left_out_and_the_statement_says_what_that_shows(
    fairveil: Command, folder: Path
) -> None:
    done = fairveil(
        "attribute", "release", "company.csv", *HOW, "--unmatched", "drop", "--out", "r.json"
    )
    assert done.code == 0, done.err
    facts = {
        fact["name"]: fact for fact in json.loads(Path("r.json").read_text())["statement"]["facts"]
    }
    assert facts["unmatched ids"]["origin"] == "read from the data, not covered"
    assert fv.ReleasedGroups.load("r.json").counts.sizes.sum() < 4000


def test_check_counts_for_the_holder_alone_and_spends_nothing(
    fairveil: Command, folder: Path
) -> None:
    done = fairveil("attribute", "check", "company.csv", *HOW)
    register = pd.read_csv("register.csv")
    known = register["person"].str.startswith("p").sum()
    assert done.code == 0
    assert f"{known:,} of 4,000 rows" in done.out
    assert "300 entries belong to no row" in done.out
    register["person"] = register["person"].str.upper()
    register.to_csv("register.csv", index=False)
    assert fairveil("attribute", "check", "company.csv", *HOW).code == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("--schema", "applicants.toml"), "a value for unmatched ids"),
        (("--id", "score"), "no feature"),
        (("--epsilon", "0"), "epsilon"),
        (("--key", "holder.pub"), "key"),
        (("--note", "spring"), "--key"),
        (("--unmatched", "keep"), "unmatched"),
    ],
)
def test_what_is_refused_writes_nothing(
    fairveil: Command, folder: Path, change: tuple[str, str], said: str
) -> None:
    done = fairveil("attribute", "release", "company.csv", *HOW, *change, "--out", "r.json")
    assert done.code == 2
    assert said in done.err
    assert not Path("r.json").exists()
