"""What a fit prints: a line a fact, verdicts first, and "met" only where everything about a
constraint is met."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from people_who_do_not_exist import Command, write_csv

LABELS = ["fairness", "privacy", "error", "other gaps", "unassessed", "written", "check"]


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
    assert "The people that the training rows were drawn from" in people
    assert first.split()[1] in ("met:", "not", "inconclusive:")
    assert "the selection rates of any two groups of sex differ by at most 5.0 points" in first
    assert ": Training rows: " in training
    assert ": Held-out people (" in held
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
    others = [label for label in LABELS if label != "other gaps"]
    assert labels(done.out) == ["warning", *others]
    assert "--holdout 0.25 or --test TABLE" in done.out
    assert "nothing was required" in done.out


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
    for fact in twin["decision"]:
        words = " ".join(fact["words"].removesuffix(".").split())
        assert (f"{fact['verdict']}: {words}" if fact["verdict"] else words) in said


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
    assert line.split(maxsplit=1)[1].startswith("no verdict: The model is ")
    assert "constant, always 'no'. Required: " in line
