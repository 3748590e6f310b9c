"""examples/imbalanced_classes.py: a bound on the G-mean brings back classes that were never
answered, at a small cost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def test_every_class_is_answered_again(
    example: Callable[[str], dict[str, Any]], data_folder: Path
) -> None:
    """At epsilon 1, on all rows."""
    script = example("imbalanced_classes")
    rows = script["students"](str(data_folder), None)
    error, recalls = script["measured"](script["fitted"](rows, 0.0, 1.0), rows)
    bounded, others = script["measured"](script["fitted"](rows, 0.3, 1.0), rows)
    assert (recalls < 0.01).sum() >= 2
    assert (others > 0.08).all()
    assert np.exp(np.log(others).mean()) >= 0.3 - 0.03
    assert bounded <= error + 0.04


def test_it_runs(
    curves_of: Callable[..., list[str]], data_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = curves_of("imbalanced_classes", "--rows", "2000", "--data", str(data_folder))
    assert any("not private" in text for text in words)
    assert capsys.readouterr().out.count("recalls") == 12
