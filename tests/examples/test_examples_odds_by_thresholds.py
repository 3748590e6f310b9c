"""examples/odds_by_thresholds.py: without noise the best threshold by brute force; with it, near
the best and the bound."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairveil as fv


@pytest.fixture(scope="module")
def script(example: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return example("odds_by_thresholds")


@pytest.fixture(scope="module")
def found(script: dict[str, Any], data_folder: Path) -> tuple[Any, Any, Any, Any, int]:
    """The score, the rows, and every threshold's error and smooth gap; the best place."""
    public, rows = script["parts"](str(data_folder), None)
    score = fv.FairClassifier(model="linear", epsilon=math.inf, random_state=0).fit(public).model_
    errors, gaps = script["measured"](score, rows)
    return (
        score,
        rows,
        errors,
        gaps,
        int(np.where(gaps <= script["BOUND"], errors, np.inf).argmin()),
    )


def test_without_noise_the_best_threshold_is_chosen(script: dict[str, Any], found: Any) -> None:
    """The constraint binds: it costs a point of error or more."""
    score, rows, errors, gaps, best = found
    assert script["chosen"](score, rows, math.inf, 0) == best
    assert errors[best] > errors.min() + 0.01
    assert gaps[errors.argmin()] > script["BOUND"] + 0.01


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_private_thresholds_are_near_the_best(
    script: dict[str, Any], found: Any, epsilon: float
) -> None:
    """Eight of ten at least are within 0.05 of the best error and of the bound."""
    score, rows, errors, gaps, best = found
    places = [script["chosen"](score, rows, epsilon, seed) for seed in range(10)]
    near = (errors[places] <= errors[best] + 0.05) & (gaps[places] <= script["BOUND"] + 0.05)
    assert near.sum() >= 8


def test_it_runs(
    curves_of: Callable[..., list[str]], data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = curves_of("odds_by_thresholds", "--rows", "4000", "--data", str(data_folder))
    assert any("smooth largest gap" in text for text in words)
    assert capsys.readouterr().out.count("epsilon") == 3
