"""`benchmarks/hard_cases.py`: its baselines are what they say, and one tiny case goes through from
rows to the table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def hard(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, from its own folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import hard
    from hard import lines, measured, runs, tables

    assert all(name in sys.modules for name in ("hard.measured", "hard.runs"))
    hard.parts = (measured, runs, lines, tables)
    return hard


def _judge(measured: Any, constraint: str, groups: int, classes: int) -> Any:
    from fairveil.facts import Cells

    return measured.Judge.of(constraint, Cells((tuple(range(groups)),)), classes)


def test_mixing_is_the_best_of_a_fine_grid_of_mixtures(hard: Any) -> None:
    measured = hard.parts[0]
    rng = np.random.default_rng(0)
    for constraint, classes in (
        ("demographic_parity:0.1", 2),
        ("equalized_odds:0.1", 2),
        ("demographic_parity:0.1", 3),
        ("false_negative_rate:0.1", 2),
    ):
        judge = _judge(measured, constraint, 3, classes)
        free = rng.uniform(1, 4, size=(3, classes, classes)) * (1 + 6 * np.eye(classes))
        for gap in (0.4 * judge.gap(free), 0.8 * judge.gap(free), 1.2 * judge.gap(free)):
            grid = [
                (1 - share) * free + share * measured.constant_table(free, k)
                for k in range(classes)
                for share in np.linspace(0, 1, 2001)
            ]
            best = min(measured.error_of(one) for one in grid if judge.gap(one) <= gap + 1e-12)
            assert judge.mixing(free, gap) == pytest.approx(best, abs=1e-3)
            assert judge.mixing(free, gap) <= best + 1e-12


def test_a_constant_counts_only_where_it_keeps_to_the_gap(hard: Any) -> None:
    measured = hard.parts[0]
    judge = _judge(measured, "false_negative_rate:0.2", 1, 2)
    table = np.array([[[90.0, 0.0], [5.0, 5.0]]])
    # "no" for everybody errs by 0.1, and misses them all
    assert judge.constant(table, 0.5) == pytest.approx(0.9)
    assert judge.constant(table, 1.0) == pytest.approx(0.1)


def test_fairlearns_curve_is_a_lower_hull(hard: Any) -> None:
    summary = hard.parts[2]
    curve = summary.hull([(0.3, 0.2), (0.0, 0.4), (0.1, 0.25), (0.2, 0.3), (0.4, 0.21)])
    assert curve == [(0.0, 0.4), (0.1, 0.25), (0.3, 0.2)]
    assert summary.at(curve, 0.05) == pytest.approx(0.325)
    assert np.isnan(summary.at(curve[1:], 0.05))
    assert summary.at(curve, 0.9) == 0.2


def test_a_tiny_case_goes_through_and_is_not_fitted_twice(
    hard: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, running, summary, tables = hard.parts
    methods, notions = ["descent", "fairlearn-threshold"], ["equalized_odds"]
    asked = running.Asked(
        ["small"], methods, [1.0, np.inf], ["records"], [0, 1], notions, [0.1], most=600
    )
    runs = running.run(asked, tmp_path / "runs.jsonl")
    with (tmp_path / "runs.jsonl").open("a") as file:
        file.write('{"case": "sm')  # a run that was interrupted while it wrote
    running.append(tmp_path / "runs.jsonl", runs[-1:])
    monkeypatch.setattr(running.methods, "METHODS", {})
    again = running.run(asked, tmp_path / "runs.jsonl")
    assert again == runs
    assert len(running.read(tmp_path / "runs.jsonl")) == len(runs)
    assert len(runs) == 2 * (2 + 2 + 1)
    lines = list(summary.lines(again))
    assert [line.method for line in lines] == ["fairlearn-threshold", "descent", "descent"]
    assert {line.seeds for line in lines} == {2}
    for line in lines:
        assert line.over_mixing.value == pytest.approx(line.error.value - line.mixing.value)
        assert line.mixing.value <= line.constant.value + 1e-9  # a constant is a mixture
        assert (line.without_privacy is None) == np.isinf(line.epsilon)
    text = "\n".join(tables.whole(lines))
    assert text.count("**`small`**") == 1
    assert "1 private lines" in text
    batched = list(tables.winners(lines))
    assert len(batched) == 2 + 2
    assert all(line.count("|") == batched[0].count("|") for line in batched)
