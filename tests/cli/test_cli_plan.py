"""`fairveil plan`: 0 what is required can be enforced, 1 it cannot, 2 the command is wrong; no
table is read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from people_who_do_not_exist import Command

PARITY = ("--constraint", "demographic_parity:0.05")


def test_a_plan_is_printed_fact_by_fact(fairveil: Command, schema: Path) -> None:
    done = fairveil("plan", "--schema", schema, *PARITY, "--epsilon", 3)
    assert done.code == 0
    first, *facts = done.out.splitlines()
    assert first.startswith("plan ")
    assert "can be enforced" in first
    for label in (
        "privacy",
        "rows",
        "groups",
        "noise",
        "enforceable",
        "verifiable",
        "to verify",
        "added error",
    ):
        assert any(line.startswith(f"{label} ") for line in facts), label
    assert "gradients, each round" in done.out


def test_a_bound_that_noise_would_hide_is_status_1(fairveil: Command, schema: Path) -> None:
    done = fairveil(
        "plan", "--schema", schema, *PARITY, "--shares", "sex=female:0.01,male:0.99", "--rows", 2000
    )
    assert done.code == 1
    assert "nothing can be enforced" in done.out
    assert not done.err


@pytest.mark.parametrize(
    "method",
    [
        "rate-constrained",
        "post-processing",
        "parity-post-processing",
        "game",
        "group-objective",
        "fermi",
        "tailored",
    ],
)
def test_every_method_can_be_planned(fairveil: Command, schema: Path, method: str) -> None:
    bounded = () if method in ("fermi", "tailored") else PARITY
    done = fairveil(
        "plan", "--schema", schema, *bounded, "--method", method, "--epsilon", 5, "--json"
    )
    values = json.loads(done.out)
    assert done.code == (1 if values["can_be_enforced"] is False else 0)
    assert values["releases"]
    assert bool(values["constraints"]) == (method != "tailored")


@pytest.mark.parametrize("ending", ["svg", "json", "txt"])
def test_the_plan_is_written(fairveil: Command, schema: Path, ending: str) -> None:
    done = fairveil("plan", "--schema", schema, *PARITY, "--out", f"plan.{ending}")
    assert f"Written: plan.{ending}" in done.out
    text = Path(f"plan.{ending}").read_text("utf-8")
    if ending == "svg":
        ET.fromstring(text)
    elif ending == "json":
        assert json.loads(text)["estimator"] == "RateConstrainedClassifier"
    else:
        assert text.splitlines()[0] == done.out.splitlines()[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--out", "plan.png"), "--out"),
        (("--shares", "sex"), "--shares"),
        (("--shares", "age=a:1"), "category or boolean"),
        (("--shares", "sex=female:half,male:half"), "--shares"),
        (("--shares", "sex=female:0.5"), "a share for each value of 'sex'"),
        (("--rows", "0"), "rows"),
        (("--method", "guess"), "method"),
        (("--out", "nowhere/plan.json"), "a folder that is there"),
    ],
)
def test_a_wrong_command_is_status_2_and_writes_nothing(
    fairveil: Command, schema: Path, options: tuple[str, ...], words: str
) -> None:
    done = fairveil("plan", "--schema", schema, *PARITY, *options)
    assert done.code == 2
    assert words in done.err
    assert not list(Path().glob("plan*"))
