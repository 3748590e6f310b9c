"""Held-out rows that are too few: said beside an inconclusive verdict, and nowhere else."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from people_who_do_not_exist import Command, applicants, write_csv

from fairveil.cli.few_rows import rows_for, warn_of_few
from fairveil.errors import TooFewRows
from fairveil.metrics import group_table
from fairveil.show import Requirement

PARITY = ("--constraint", "demographic_parity:0.05")
RNG = np.random.default_rng(0)
SEX = np.array(["f"] * 30 + ["m"] * 90)
TABLE = group_table(RNG.integers(2, size=120), RNG.integers(2, size=120), SEX)


def figure(low: float, high: float, target: float | None = 0.05) -> Requirement:
    return Requirement("demographic parity", target, None, (low + high) / 2, low, high, 0.95)


def said(*figures: Requirement) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_few(figures, TABLE)
    assert all(one.category is TooFewRows for one in caught)
    return [str(one.message) for one in caught]


def test_an_interval_wider_than_the_bound_says_how_many_rows_would_do() -> None:
    (text,) = said(figure(0.0, 0.2))
    assert (
        "held-out rows: expected enough of every group to tell whether the demographic parity gap "
        "is at most 5.0 points" in text
    )
    assert "got 30 of group f, and an interval 20.0 points wide" in text
    assert "About 480 of that group would do" in text


@pytest.mark.parametrize(
    ("low", "high", "target"),
    [(0.0, 0.04, 0.05), (0.06, 0.3, 0.05), (0.03, 0.07, 0.05), (0.0, 0.3, None)],
    ids=["met", "not met", "narrow enough", "nothing required"],
)
def test_nothing_is_said_where_rows_suffice(low: float, high: float, target: float | None) -> None:
    assert said(figure(low, high, target)) == []


def test_rows_grow_with_the_square_of_the_width() -> None:
    assert rows_for(1000, 0.1, 0.05) == 4000
    assert all(rows_for(n, 0.2, 0.1) >= 4 * n for n in range(1, 500))


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_the_command_notes_it_and_the_page_has_it(
    fairveil: Command, table: Path, schema: Path, tmp_path: Path
) -> None:
    few = write_csv(tmp_path / "few.csv", applicants(60, 2))
    done = fairveil(
        "fit", table, "--schema", schema, *PARITY, "--test", few, "--out", "model", "--seed", 0
    )
    assert done.code == 0, done.err
    assert "held-out rows: expected enough of every group" in done.err
    assert "held-out rows: expected enough of every group" in (
        tmp_path / "model/report.json"
    ).read_text("utf-8")
