"""examples/mean_of_recalls.py runs, its formulas are its matrices', and the paper's figure 2 is not
what is."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mean_of_recalls.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def test_it_writes_both_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(EXAMPLE), "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "mean_of_recalls_equal.svg",
        "mean_of_recalls_falling.svg",
    ]
    for place in tmp_path.iterdir():
        root = ElementTree.fromstring(place.read_text("utf-8"))
        (said,) = root.iter("{http://www.w3.org/2000/svg}desc")
        assert (
            "G-mean of recalls: 0.5 at 2 to 0.1 at 10" in str(said.text) or "falling" in place.name
        )
        assert "H-mean of recalls: " in str(said.text)
    assert "0.1, 0.1" in capsys.readouterr().out


@pytest.mark.parametrize("size", range(2, 11))
def test_the_means_are_the_closed_forms(example: dict[str, Any], size: int) -> None:
    equal, falling = example["equal"](size), example["falling"](size)
    assert equal.sum() == pytest.approx(1.0)
    assert falling.sum() == pytest.approx(1.0)
    for mean in ("g_mean", "h_mean", "h_mean_of_columns"):
        assert example[mean](equal) == pytest.approx(1 / size)
    r = (2 / 3) / (1 - 3.0**-size)
    assert example["g_mean"](falling) == pytest.approx(r * 3.0 ** (-(size - 1) / 2))
    assert example["h_mean"](falling) == pytest.approx(2 * size * r / (3.0**size - 1))
    precisions = [
        3.0 ** (-size * p) * (1 - 3.0**-size) / (1 - 3.0 ** (-(size**2))) for p in range(size)
    ]
    assert example["h_mean_of_columns"](falling) == pytest.approx(
        size / sum(1 / each for each in precisions)
    )


def test_what_the_paper_says_of_its_figure_is_not_so(example: dict[str, Any]) -> None:
    falling = [example["falling"](size) for size in range(2, 11)]
    g, h, columns = (
        [example[mean](each) for each in falling]
        for mean in ("g_mean", "h_mean", "h_mean_of_columns")
    )
    assert all(below < above for below, above in zip(h, g, strict=True))
    assert all(below < above for below, above in zip(columns, h, strict=True))
    for falls in (g, h, columns):
        assert falls == sorted(falls, reverse=True)
