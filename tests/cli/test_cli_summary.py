"""What a fit prints: a line a fact, verdicts first, and "met" only where everything about a
constraint is met."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import Command, write_csv

from fairveil._verdicts import MET, NOT_MET, UNCLEAR
from fairveil.cli import summary
from fairveil.figures import GapFigure
from fairveil.report import Baseline, Baselines, Report

LABELS = ["fairness", "privacy", "error", "other gaps", "written", "check"]


def labels(out: str) -> list[str]:
    return [line[:12].strip() for line in out.splitlines() if line[:12].strip()]


def test_a_fit_prints_a_line_a_fact(fairveil: Command, table: Path, schema: Path) -> None:
    asked = (
        "--constraint",
        "demographic_parity:5%",
        "--constraint",
        "false_negative_rate:0.3,group=each",
    )
    done = fairveil(
        "fit", table, "--schema", schema, *asked, "--holdout", 0.25, "--seed", 3, "--out", "model"
    )
    assert done.code == 0, done.err
    assert labels(done.out) == ["warning", "fairness", *LABELS]
    first, people, training, held = done.out.splitlines()[1:5]
    assert people.strip().startswith("The people that the training rows were drawn from: ")
    assert first.split()[1] in ("met", "not", "cannot")
    assert "the selection rates of any two groups of sex differ by at most 5.0 points" in first
    assert training.strip().startswith("Training rows: ")
    assert held.strip().startswith("Held-out people: ")
    assert "each sex's positives are missed" in done.out
    assert "Against the best constant on these rows, always yes, " in done.out
    assert "Largest other gaps on held-out people" in done.out.partition("other gaps")[2]
    assert done.out.splitlines()[-1] == "check       fairveil verify model/statement.json"
    assert "INSECURE" in done.out
    more = fairveil(
        "fit",
        table,
        "--schema",
        schema,
        *asked,
        "--seed",
        3,
        "--out",
        "model",
        "--force",
        "--verbose",
    )
    assert "Definition and parameters" in more.out
    assert "Definition and parameters" not in done.out


def test_without_held_out_rows_a_fit_says_how_to_have_them(
    fairveil: Command, table: Path, schema: Path
) -> None:
    done = fairveil("fit", table, "--schema", schema, "--seed", 3, "--out", "model")
    assert labels(done.out) == ["warning", *LABELS]
    assert "--holdout 0.25 or --test TABLE" in done.out
    assert "nothing was required" in done.out


@pytest.mark.parametrize(
    ("train", "held"), list(itertools.product((MET, NOT_MET, UNCLEAR, None), repeat=2))
)
def test_guarantee_1_met_is_the_first_word_only_where_all_is_met(
    train: str | None, held: str | None
) -> None:
    words, verdicts = summary.in_short(train, held)
    told = {one for one in (train, held) if one is not None}
    assert (words == MET) == (train == held == MET)
    if words.startswith("met "):
        assert words.startswith("met in training") == (train == MET)
        assert all(word in words for word in told)
    assert set(verdicts) == told


def test_what_is_printed_is_what_the_page_says(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    asked = (
        "--constraint",
        "demographic_parity:5%",
        "--holdout",
        0.25,
        "--seed",
        3,
        "--out",
        "model",
    )
    done = fairveil("fit", table, "--schema", schema, *asked)
    assert done.code == 0, done.err
    twin = json.loads((tmp_path / "model/report.json").read_text("utf-8"))
    said = " ".join(done.out.split())
    for line in twin["first_lines"]:
        for part in (part for paragraph in line["paragraphs"] for part in paragraph):
            words = part["words"].removeprefix("Required: ").removesuffix(".")
            assert " ".join(words.split()) in said
            assert part["verdict"] is None or f"{words}: {part['verdict']}" in said


def test_the_error_stands_beside_what_is_simpler_and_the_worse_comes_first() -> None:
    against = Baseline("the best constant", "always 'no'", 0.1, 0.21, 0.012, "worse", True)
    report = Report(
        "Model report: hired",
        method="x",
        baselines=Baselines(0.31, 0.012, "error", (against,), "model"),
    )
    found = list(summary.facts(report))
    assert [fact.label for fact in found if fact.label] == [
        "warning",
        "fairness",
        "error",
        "other gaps",
    ]
    assert found[0].words.startswith("WORSE THAN THE BEST CONSTANT")
    said = "\n".join(fact.words for fact in found)
    assert "31.0% are decided wrongly" in said
    assert "Against the best constant, always 'no', 10.0%: worse" in said


def bounded(against: str, handed_out: str = "model", remark: str = "") -> Report:
    """A fit that met its bound, and how its error stands beside the best constant's."""
    line = Baseline("the best constant", "always 'no'", 0.31, 0.0, 0.012, against, False)
    gap = GapFigure(
        "demographic parity", 0.05, 0.002, training_noise=0.004, population_verdict="met"
    )
    found = Baselines(0.31, 0.012, "error", (line,), handed_out, remark)
    return Report("Model report: hired", method="x", gaps=(gap,), baselines=found)


@pytest.mark.parametrize(
    ("report", "head"),
    [
        (bounded("better"), "met: "),
        (
            bounded("cannot be told"),
            "The model is not shown to be better than a constant, always 'no'; met: ",
        ),
        (
            bounded("cannot be told", "constant", "always 'no'"),
            "The model is a constant, always 'no'; met: ",
        ),
    ],
)
def test_fairness_is_not_met_by_a_constant_without_saying_that_it_is_one(
    report: Report, head: str
) -> None:
    found = next(fact for fact in summary.facts(report) if fact.label == "fairness")
    assert found.words.startswith(head)
    assert bool(found.verdicts) is head.startswith("met")


def test_a_fit_without_public_bounds_says_that_its_model_is_a_constant(
    fairveil: Command, tmp_path: Path
) -> None:
    """Raw incomes, gradients clipped to 1: the model says "no" to everybody."""
    rng = np.random.default_rng(1)
    income = rng.lognormal(10, 1, 8000).round()
    rows = [
        [value, sex, "yes" if value > 60000 else "no"]
        for value, sex in zip(income, rng.choice(["f", "m"], 8000), strict=True)
    ]
    table = write_csv(tmp_path / "raw.csv", rows, ["income", "sex", "paid"])
    asked = ("--target", "paid", "--sensitive", "sex", "--constraint", "demographic_parity:5%")
    done = fairveil("fit", table, *asked, "--seed", 0, "--out", "model")
    assert done.code == 0, done.err
    assert "may learn nothing" in done.err
    (line,) = (line for line in done.out.splitlines() if line.startswith("fairness"))
    assert line.split(maxsplit=1)[1].startswith("The model is ")
    assert "constant, always 'no'; met" in line
