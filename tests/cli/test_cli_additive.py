"""`fairveil fit --model additive`: what is fitted, what its report shows, what predicts, and what
is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

import fairveil as fv

PARITY = ("--constraint", "demographic_parity:0.1")


def test_a_report_shows_a_term_a_number_and_the_model_predicts(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    given = (
        "--model",
        "additive",
        "--interaction",
        "age,city",
        "--epsilon",
        3,
        "--seed",
        0,
        "--no-randomised",
    )
    done = fairveil("fit", table, "--schema", schema, *PARITY, *given, "--out", "model")
    assert done.code == 0, done.err
    page = (tmp_path / "model" / "report.html").read_text("utf-8")
    assert "What each number adds" in page
    assert "Term of age in the score" in page
    assert "Noise of privacy moves a step" in page
    clf = fv.load(tmp_path / "model")
    assert clf.model == fv.Additive(interactions=(("age", "city"),))
    assert [term.name for term in clf.terms()] == ["age", "score"]
    assert fairveil("predict", "model", table, "--out", "predicted.csv").code == 0
    assert fairveil("verify", "model/statement.json").code == 0
    facts = json.loads((tmp_path / "model" / "statement.json").read_text("utf-8"))
    assert "additive: steps of age" in json.dumps(facts)


def test_a_linear_model_s_report_has_no_terms(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    assert fairveil("fit", table, "--schema", schema, "--seed", 0, "--out", "model").code == 0
    assert "What each number adds" not in (tmp_path / "model" / "report.html").read_text("utf-8")


@pytest.mark.parametrize("method", ["post-processing", "fermi", "tailored"])
def test_every_method_takes_it(
    method: str, fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        "--method",
        method,
        "--model",
        "additive",
        "--seed",
        0,
        "--out",
        "model",
    )
    assert done.code == 0, done.err
    clf = fv.load(tmp_path / "model")
    inner = clf.estimator_ if method == "post-processing" else clf
    assert inner.coding_.shapes is not None


def test_a_plan_takes_it(fairveil: Command, schema: Path) -> None:
    assert fairveil("plan", "--schema", schema, *PARITY, "--model", "additive").code in (0, 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--model", "cubic"), "model"),
        (("--interaction", "age,score"), "--interaction"),
        (("--model", "additive", "--interaction", "age"), "--interaction"),
        (("--model", "additive", "--interaction", "age,nothing"), "interactions"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    given: tuple[str, ...], words: str, fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    done = fairveil("fit", table, "--schema", schema, *given, "--out", "model")
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "model").exists()
