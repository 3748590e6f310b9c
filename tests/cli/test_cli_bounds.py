"""Bounds on the command line: per cent is understood, nothing is refused with a hint, a hundredfold
is asked back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

FIT = ("--epsilon", "3", "--seed", "1", "--out", "model")
ROLES = ("--target", "hired", "--sensitive", "sex", "--unsafe-data-dependent-bounds")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--constraint", "demographic_parity"),
            r"demographic_parity:0.05 or demographic_parity:5%",
        ),
        (
            ("--constraint", "demographic_parity:5"),
            "5 means 500 percentage points: did you mean demographic_parity:0.05 or",
        ),
        (("--constraint", "demographic_parity:1"), "1 means 100 percentage points"),
        (
            ("--constraint", "false_negative_rate:20"),
            "did you mean false_negative_rate:0.2 or false_negative_rate:20%?",
        ),
        (("--constraint", "equalized_odds:inf"), "Leave the option out to require nothing."),
        (
            ("--method", "group-objective", "--constraint", "gmean:30"),
            "did you mean gmean:0.3 or gmean:30%?",
        ),
        (
            ("--method", "group-objective", "--constraint", "largest_group_loss:3"),
            "bound of largest_group_loss",
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_a_bound_that_requires_nothing_is_refused(
    fairveil: Command,
    table: Path,
    schema: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    said: str,
) -> None:
    done = fairveil("fit", table, "--schema", schema, *options, *FIT)
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not (tmp_path / "model").exists()


def test_per_cent_is_understood(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    asked = (
        "--constraint",
        "demographic_parity:20%",
        "--constraint",
        "false_negative_rate,max_rate=80%",
    )
    done = fairveil("fit", table, "--schema", schema, *asked, *FIT)
    assert done.code == 0, done.err
    parameters = json.loads((tmp_path / "model/estimator.json").read_text("utf-8"))["parameters"][
        "constraints"
    ]
    assert [one["notion"].get("max_gap", one["notion"].get("max_rate")) for one in parameters] == [
        0.2,
        0.8,
    ]


@pytest.mark.parametrize(
    ("gaps", "said"),
    [
        ("20,10", "20 means 2000 percentage points: did you mean --gaps 0.2?"),
        ("0.1,inf", "No two rates"),
        ("x%", "0.1,0.05"),
    ],
)
def test_a_frontier_sweeps_bounds_that_require_something(
    fairveil: Command, table: Path, tmp_path: Path, gaps: str, said: str
) -> None:
    done = fairveil("frontier", table, *ROLES, "--gaps", gaps, "--out", "f")
    assert done.code == 2
    assert said in " ".join(done.err.split())
    assert not (tmp_path / "f").exists()


def test_a_frontier_understands_per_cent(fairveil: Command, table: Path, tmp_path: Path) -> None:
    done = fairveil(
        "frontier", table, *ROLES, "--gaps", "20%,0.1", "--epsilons", "inf", "--out", "f"
    )
    assert done.code == 0, done.err
    runs = json.loads((tmp_path / "f/frontier.json").read_text("utf-8"))["runs"]
    assert [run["target"] for run in runs] == [0.2, 0.1]


def test_an_audit_says_verdicts_of_the_rows_and_of_people_like_them(
    fairveil: Command, tmp_path: Path
) -> None:
    """30 of 100 against 25 of 100: within 10 points on these rows, and of others that cannot be
    told."""
    lines = [
        "sex,hired,decision",
        *(f"{sex},{i % 2},{int(i < n)}" for sex, n in (("f", 30), ("m", 25)) for i in range(100)),
    ]
    (tmp_path / "decisions.csv").write_text("\n".join(lines) + "\n")
    call = (
        "audit",
        tmp_path / "decisions.csv",
        "--target",
        "hired",
        "--prediction",
        "decision",
        "--sensitive",
        "sex",
    )
    asked = ("--constraint", "demographic_parity:10%", "--constraint", "demographic_parity:0.01")
    done = fairveil(*call, *asked)
    assert done.code == 1
    assert "met on these rows, inconclusive for people like them" in done.out
    assert "not met on these rows, inconclusive for people like them" in done.out
    assert "BROKEN" not in done.out
    told = json.loads(fairveil(*call, *asked, "--json").out)["constraints"]
    assert [(one["holds"], one["verdict"]) for one in told] == [
        (True, "inconclusive"),
        (False, "inconclusive"),
    ]
