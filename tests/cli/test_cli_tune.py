"""`fairveil tune`: 0 the best model and the statement of the search are written; 2 refused, nothing
written or spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from people_who_do_not_exist import Command, applicants, write_csv

import fairveil as fv

GRID = ("--grid", "clip=0.5,2", "--grid", "rounds=4")


@pytest.fixture
def few(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "few.csv", applicants(900, 1))


@pytest.mark.parametrize("way", ["all", "selection"])
def test_a_search_writes_the_best_model_with_its_own_statement(
    fairveil: Command, few: Path, schema: Path, way: str
) -> None:
    ledger = ("--ledger", "budget.db")
    made = fairveil("ledger", "create", "budget.db", "people", "--epsilon", 3, "--delta", 1e-5)
    assert made.code == 0
    done = fairveil("tune", few, "--schema", schema, *GRID, "--way", way, "--out", "model", *ledger)
    assert done.code == 0
    assert done.out.startswith("best ")
    labels = [line.split(" ")[0] for line in done.out.splitlines()]
    assert {"score", "way", "privacy", "written", "recorded"} <= set(labels)
    loaded = fv.load("model")
    assert loaded.solver.clip in (0.5, 2)
    assert loaded.privacy_.epsilon <= 1.0
    assert "private search" in loaded.privacy_.summary()
    assert not loaded.privacy_.check()
    assert fairveil("verify", "model/statement.json").code == 0
    assert fv.Ledger.open("budget.db").balance().committed == 1


def test_where_noise_would_hide_every_gain_the_defaults_get_the_whole_budget(
    fairveil: Command, few: Path, schema: Path
) -> None:
    done = fairveil("tune", few, "--schema", schema, *GRID, "--public-rows", 900, "--out", "model")
    assert done.code == 0
    assert done.out.startswith("best ")
    assert "the defaults" in done.out
    assert "one fit, no search: noise would hide gains below" in done.out
    loaded = fv.load("model")
    assert loaded.solver is None
    assert "not searched, by public facts" in loaded.privacy_.summary()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "--grid"),
        (("--grid", "clip"), "--grid"),
        (("--grid", "clip="), "--grid"),
        (("--grid", "clop=1"), "--grid"),
        ((*GRID, "--way", "grid"), "--way"),
        ((*GRID, "--scoring", "karma"), "--scoring"),
        ((*GRID, "--scoring", "gap"), "--constraint"),
        ((*GRID, "--runs", 0), "--runs"),
        ((*GRID, "--holdout", 1), "--holdout"),
        ((*GRID, "--epsilon", "inf"), "--epsilon"),
        ((*GRID, "--method", "post-processing"), "--method"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    fairveil: Command, few: Path, schema: Path, words: tuple[object, ...], told: str
) -> None:
    done = fairveil("tune", few, "--schema", schema, "--out", "model", *words)
    assert done.code == 2
    assert told in done.err
    assert not Path("model").exists()
