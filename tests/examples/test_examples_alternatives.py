"""examples/alternatives.py: searches in credit, hiring and at the bar, each with a record that holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairveil as fv


def _run(example: Callable[[str], dict[str, Any]], *words: str) -> fv.estimators.Alternatives:
    (found,) = example("alternatives")["main"](list(words)).values()
    return found


def test_credit_and_hiring_run_as_they_stand(
    example: Callable[[str], dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _run(example, "credit", "--rows", "20000", "--out", str(tmp_path))
    assert found.taken in ("no postcode", "ours, gap 0.05", "ours, gap 0.02")
    record = fv.estimators.Alternatives.from_json(
        (tmp_path / "credit-record.json").read_text("utf-8")
    )
    assert record.verdict == found.verdict
    assert (tmp_path / "credit-plan.json").is_file()
    assert "reasons: " in capsys.readouterr().out
    found = _run(example, "hiring", "--rows", "8000", "--out", str(tmp_path))
    assert found.result.further.beyond is not None
    assert "sex x race" in capsys.readouterr().out
    assert "drawn again" in (tmp_path / "hiring.html").read_text("utf-8")


def test_who_passes_the_bar(
    example: Callable[[str], dict[str, Any]], data_folder: Path, tmp_path: Path
) -> None:
    found = _run(example, "law", "--data", str(data_folder), "--out", str(tmp_path))
    assert found.taken == "cut 0.15"
    assert found.result.base.ratio.high < 0.8 < found.result.candidates[-1].ratio.low
