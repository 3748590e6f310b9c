"""`benchmarks/frontiers.py`: what it counts as broken, and what it says where published numbers are
missing."""

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
def frontier(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The package, from its own folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import frontier
    from frontier import methods, published

    frontier.parts = (methods, published)
    return frontier


def test_a_bound_is_broken_where_the_report_says_so_and_not_where_it_cannot_tell(
    frontier: Any,
) -> None:
    rng = np.random.default_rng(0)
    X, a = rng.uniform(-1, 1, size=(400, 1)), rng.integers(2, size=400)
    clf = fv.RateConstrainedClassifier("demographic_parity:0.1", epsilon=np.inf)
    clf.fit(X, (X[:, 0] > 0).astype(int), sensitive_features=a)
    line, seen = replace(clf.constraint_report_.lines[0], noise=0.01, sampling=0.01), {}
    for value in (0.01, 0.1, 0.4):
        told = replace(line, value=value, among=1, looks=1)
        clf.constraint_report_ = replace(clf.constraint_report_, lines=(told,))
        seen[told.population_verdict] = frontier.parts[0]._fitted(clf, clf.predict).broken
    assert seen == {MET: False, UNCLEAR: False, NOT_MET: True}


def test_published_numbers_that_are_missing_are_said_to_be_once(
    frontier: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, published = frontier.parts
    for _ in range(2):
        assert published.curves(tmp_path, "adult", "parity") == []
        assert published.fairlearn_of(tmp_path, "parity") == []
    said = capsys.readouterr().err.splitlines()
    assert [line.startswith("NO PUBLISHED NUMBERS: ") for line in said] == [True, True]
    assert "--published FOLDER" in said[0]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "published_frontiers.json").write_text('{"curves": []}', "utf-8")
    assert published.curves(tmp_path / "other", "adult", "parity") == []
    assert capsys.readouterr().err == ""
