"""`fairveil audit-privacy`: 0 the claim was not refuted, 1 it was, 2 the command is wrong; no table
is read."""

from __future__ import annotations

import html
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

import fairveil as fv
from fairveil import PrivacyStatement
from fairveil.audit.corners import ordinary
from fairveil.facts import Schema

MINE = """
import numpy as np

def kept(table, seed, epsilon):
    return len(table["sex"]) + np.random.default_rng(seed).laplace() / epsilon

def broken(table, seed):
    return len(table["sex"])

def telling(table, seed):
    rows = set(zip(*(values.tolist() for values in table.values())))
    return lambda others: [one in rows for one in zip(*(others[name].tolist() for name in table))]
"""
CLAIM = ("--epsilon", 1, "--delta", 0, "--trials", 60)


@pytest.fixture
def mine(schema: Path) -> Path:
    (schema.parent / "mechanisms_of_mine.py").write_text(MINE)
    return schema


def test_a_function_that_keeps_its_claim_is_status_0_and_written(
    fairveil: Command, mine: Path
) -> None:
    done = fairveil(
        "audit-privacy", "mechanisms_of_mine:kept", "--schema", mine, *CLAIM, "--out", "a.json"
    )
    assert done.code == 0
    first, *facts = done.out.splitlines()
    assert first.startswith("verdict ")
    assert "inconclusive" in first
    assert any(line.startswith("planted ") and "one seed" in line for line in facts)
    assert "no proof" in done.out
    values = json.loads(Path("a.json").read_text("utf-8"))
    assert not values["refuted"]
    again = fairveil(
        "audit-privacy", "mechanisms_of_mine:kept", "--schema", mine, *CLAIM, "--out", "a.json"
    )
    assert again.code == 2
    assert json.loads(Path("a.json").read_text("utf-8")) == values


def test_without_planted_bugs_it_says_that_its_power_is_not_known(
    fairveil: Command, mine: Path
) -> None:
    done = fairveil(
        "audit-privacy", "mechanisms_of_mine:kept", "--schema", mine, *CLAIM, "--no-power"
    )
    assert done.code == 0
    assert any(line.startswith("power ") and "not known" in line for line in done.out.splitlines())


def test_a_broken_function_is_status_1_with_a_picture(fairveil: Command, mine: Path) -> None:
    done = fairveil(
        "audit-privacy",
        "mechanisms_of_mine:broken",
        "--schema",
        mine,
        *CLAIM,
        "--json",
        "--out",
        "a.svg",
    )
    assert done.code == 1
    assert json.loads(done.out)["verdict"] == "not met"
    ET.fromstring(Path("a.svg").read_text("utf-8"))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("rate-constrained",), "--schema"),
        (("mechanisms_of_mine:kept",), "--schema"),
        (("mechanisms_of_mine:absent", "--schema", "applicants.toml", "--epsilon", 1), "TARGET"),
        (("nowhere_at_all:fit", "--schema", "applicants.toml", "--epsilon", 1), "TARGET"),
        (("mechanisms_of_mine:kept", "--schema", "applicants.toml"), "--epsilon"),
        (
            (
                "mechanisms_of_mine:kept",
                "--schema",
                "applicants.toml",
                "--constraint",
                "demographic_parity:0.1",
            ),
            "--constraint",
        ),
        (("rate-constrained", "--schema", "applicants.toml", "--minutes", 0), "--minutes"),
        (("rate-constrained", "--schema", "applicants.toml", "--trials", 2), "--trials"),
        (("rate-constrained", "--schema", "applicants.toml", "--confidence", 0.2), "--confidence"),
        (("rate-constrained", "--schema", "applicants.toml", "--epsilon", "inf"), "finite"),
        (("rate-constrained", "--schema", "applicants.toml", "--out", "a.png"), "--out"),
        (("no_such_folder",), "no_such_folder"),
    ],
)
def test_what_is_wrong_is_refused(
    fairveil: Command, mine: Path, words: tuple[object, ...], told: str
) -> None:
    done = fairveil("audit-privacy", *words)
    assert done.code == 2
    assert told in done.err


def test_a_page_has_a_section_of_the_audit(fairveil: Command, mine: Path) -> None:
    done = fairveil(
        "audit-privacy", "mechanisms_of_mine:kept", "--schema", mine, *CLAIM, "--out", "a.html"
    )
    assert done.code == 0, done.err
    page, twin = (Path(name).read_text("utf-8") for name in ("a.html", "a.json"))
    found = json.loads(twin)["results"]["What an audit found"]
    (section,) = (one for one in json.loads(twin)["sections"] if "audit" in one["heading"])
    assert ">What an audit found</a>" in page
    assert page.count("<svg") == 2  # wide and narrow
    assert section["parts"]["verdict"].startswith("inconclusive")
    for words in (section["parts"]["verdict"], section["parts"]["measured"], found["no_proof"]):
        assert html.escape(words) in page
    assert found["epsilon_lower"] <= 1.0


def test_a_statement_carries_the_audit_of_its_model(fairveil: Command, mine: Path) -> None:
    schema = Schema.load(mine)
    clf = fv.RateConstrainedClassifier(schema=schema, solver=fv.Descent(rounds=2), random_state=0)
    fv.save(clf.fit(fv.data.encode(ordinary(schema, 200, 0), schema)), "model")
    run = ("--trials", 50, "--no-power")
    done = fairveil(
        "audit-privacy", "model", *run, "--statement", "audited.json", "--out", "model.html"
    )
    assert done.code == 0, done.err
    statement = PrivacyStatement.from_json(Path("audited.json").read_text("utf-8"))
    assert statement.audit is not None
    assert statement.audit.epsilon <= statement.epsilon
    assert "audit of RateConstrainedClassifier" in statement.summary()
    assert fairveil("verify", "audited.json").code == 0
    assert (
        json.loads(Path("model.json").read_text("utf-8"))["statement"]["audit"]["epsilon"]
        == statement.audit.epsilon
    )
    done = fairveil(
        "audit-privacy",
        "mechanisms_of_mine:kept",
        "--schema",
        mine,
        *CLAIM,
        "--statement",
        "none.json",
    )
    assert done.code == 2
    assert "--statement" in done.err
    assert not Path("none.json").exists()
