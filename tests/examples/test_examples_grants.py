"""examples/grants.py: inequality is as low as was asked for, with far fewer grants than by lot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(example: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    return example("grants")


@pytest.mark.parametrize("bound", [0.16, 0.14, 0.12])
def test_less_inequality_for_fewer_grants(
    script: dict[str, Any], data_folder: Path, bound: float
) -> None:
    """At epsilon 1: within 0.02 of the bound (eight other seeds: within 0.0145), for at most a
    third of the grants by lot."""
    rows = script["people"](str(data_folder), None)
    index, grants = script["measured"](
        script["fitted"](rows, bound, 1.0).predict_proba(rows)[:, 0], rows
    )
    assert index <= bound + 0.02
    share = 3.0 * grants
    assert share <= 1.0
    assert script["measured"](np.full(45_222, share), rows)[0] > index


def test_lots_divide_the_index_as_it_says(script: dict[str, Any], data_folder: Path) -> None:
    rows = script["people"](str(data_folder), 5_000)
    (block,) = rows.blocks()
    (none, _), (half, share) = (script["measured"](np.full(5_000, s), rows) for s in (0.0, 0.5))
    means = [
        np.asarray(script["INCOME"])[block.labels[block.sensitive[0] == a]].mean() for a in range(6)
    ]
    assert share == 0.5
    assert half == pytest.approx(none / (1.0 + script["GRANT"] * 0.5 / np.mean(means)))


def test_it_runs(
    curves_of: Callable[..., list[str]], data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = curves_of("grants", "--rows", "3000", "--data", str(data_folder))
    assert any("by lot" in text for text in words)
    assert capsys.readouterr().out.count("index at most") == 12
