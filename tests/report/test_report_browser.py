"""The page in a real browser: Chromium without a head. Skipped, with the reason, where there is
none."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from browsing import Look, Shoot, needs_browser
from fairveil.figures import FrontierFigure, Point, Series, svg_frontier
from fairveil.report import Report, write

pytestmark = needs_browser


# 1280 pixels at 100 %; 640: the same window at 200 %; 320: at 400 %, or a small phone.
@pytest.mark.parametrize("width", [1280, 640, 320])
def test_nothing_is_cut_off_and_letters_stay_readable(
    full: Report, tmp_path: Path, look: Look, width: int
) -> None:
    page = write(tmp_path / "report.html", full).page.read_text("utf-8")
    seen = look(page, width)
    assert seen["client"] == width
    assert seen["scroll"] <= seen["client"], "the page must not scroll sideways"
    assert not seen["beyond"]
    figures = len(full.frontiers) + len(full.gaps) + len(full.tables) + 2  # and two of the ledger
    assert seen["figures"] == figures, "each figure is shown once"
    assert len(seen["letters"]) > 50
    assert not [one["words"] for one in seen["letters"] if one["out"]], "letters leave their figure"
    assert min(one["size"] for one in seen["letters"]) >= 9.5


def test_the_measurement_sees_what_is_cut_off(look: Look) -> None:
    seen = look("<!DOCTYPE html><body><div style='width:900px'>wide</div>", 640)
    assert seen["scroll"] > seen["client"]
    assert seen["beyond"]
    drawn = (
        "<svg viewBox='0 0 100 20' width='100' height='20'><text x='80' y='15' font-size='4'>too "
        "far to the right</text></svg>"
    )
    (letter,) = look(f"<!DOCTYPE html><body>{drawn}", 640)["letters"]
    assert letter["out"]
    assert letter["size"] < 9.5


@pytest.mark.parametrize(("width", "scale"), [(1280, 1.0), (640, 2.0)])
def test_the_picture_is_a_page(
    full: Report, tmp_path: Path, shoot: Shoot, width: int, scale: float
) -> None:
    written = write(tmp_path / "report.html", full)
    picture = shoot(written.page, width, 1800, scale)
    assert picture.shape[1] == width * scale
    grey = picture.mean(axis=2)
    assert 0.5 < (grey > 250).mean() < 0.99, "dark on white"
    assert (grey < 90).mean() > 0.004, "there is something to read"
    coloured = (picture.max(axis=2).astype(int) - picture.min(axis=2)) > 60
    assert coloured.mean() > 0.0005, "the figures are there"


def test_curves_are_distinguished_in_grey(tmp_path: Path, shoot: Shoot) -> None:
    """Nine curves a kind, each mark cut out of a grey picture: no two look alike, whatever their
    shade, but the ninth that has the first one's shape again (and another dash)."""
    made = FrontierFigure(
        "parity",
        "marks",
        tuple(
            Series(
                f"{kind} {k}",
                1.0,
                "records",
                (Point(0.1 + 0.02 * k + lift, 0.02 + 0.02 * k),),
                published=kind == "their",
            )
            for kind, lift in (("own", 0.0), ("their", 0.05))
            for k in range(9)
        ),
        layout="together",
    )
    file = tmp_path / "marks.html"
    drawing = svg_frontier(made, width=720)
    file.write_text(
        f"<!DOCTYPE html><meta charset='utf-8'><body style='margin:0'>{drawing}", encoding="utf-8"
    )
    grey = 255 - shoot(file, 720, 900, 2.0).mean(axis=2)
    marks = {
        one.label: _cut(grey, x, y) for one, (x, y) in zip(made.series, _centres(made), strict=True)
    }
    alike = {
        (a, b)
        for (a, one), (b, other) in combinations(marks.items(), 2)
        if _likeness(one, other) > 0.96
    }
    assert alike == {("own 0", "own 8"), ("their 0", "their 8")}


def _likeness(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """The cosine between two pictures."""
    return float((one * other).sum() / np.sqrt((one**2).sum() * (other**2).sum()))


def _centres(figure: FrontierFigure) -> list[tuple[float, float]]:
    from fairveil.figures.panels import panels

    (panel,) = panels(figure, 720)
    return [panel.spot(one.points[0].error, one.points[0].gap) for one in figure.series]


def _cut(grey: npt.NDArray[np.float64], x: float, y: float) -> npt.NDArray[np.float64]:
    """The mark around a place, its darkest spot as one: only the shape is left."""
    row, column = round(2 * y), round(2 * x)
    piece = grey[row - 14 : row + 15, column - 14 : column + 15]
    return np.asarray(piece / piece.max())
