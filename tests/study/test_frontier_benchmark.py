"""`benchmarks/frontiers.py`: what it counts as broken, and how it compares at equal gap."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv
from fairveil._verdicts import MET, NOT_MET, UNCLEAR

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def frontiers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The program, from its own folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import frontiers

    return frontiers


def test_a_bound_is_broken_where_the_report_says_so_and_not_where_it_cannot_tell(
    frontiers: Any,
) -> None:
    rng = np.random.default_rng(0)
    X, a = rng.uniform(-1, 1, size=(400, 1)), rng.integers(2, size=400)
    clf = fv.FairClassifier("demographic_parity:0.1", epsilon=np.inf)
    clf.fit(X, (X[:, 0] > 0).astype(int), sensitive_features=a)
    line, seen = replace(clf.constraint_report_.lines[0], noise=0.01, sampling=0.01), {}
    for value in (0.01, 0.1, 0.4):
        told = replace(line, value=value, among=1, looks=1)
        clf.constraint_report_ = replace(clf.constraint_report_, lines=(told,))
        seen[told.population_verdict] = frontiers.broken(clf)
    assert seen == {MET: False, UNCLEAR: False, NOT_MET: True}


@pytest.mark.parametrize(
    ("error", "gap", "ours", "verdict"),
    [
        (0.30, 0.15, 0.15, "below"),
        (0.10, 0.15, 0.15, "not below"),
        (0.10, 0.05, 0.20, "not below: our curve ends at a larger gap"),
        (0.05, 0.40, 0.10, "not below: our widest point has less gap and more error"),
        (0.30, 0.005, 0.20, "not compared: under the floor"),
    ],
)
def test_a_point_is_compared_with_our_line_at_its_own_gap(
    frontiers: Any, error: float, gap: float, ours: float, verdict: str
) -> None:
    """Three splits of one line: error .1 at a gap of .2, .2 at .1."""
    one = np.ones((3, 1))
    line = frontiers.Sweep(one * [0.1, 0.2], one * [0.2, 0.1], one * [0.01, 0.01], 0.5)
    found = frontiers.against(line, error * one[:, 0], gap * one[:, 0])
    assert found["ours"] == pytest.approx(ours)
    assert found["verdict"] == verdict
