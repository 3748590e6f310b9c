"""The picture of the README: three models of a census, with the rates of women and men and the
error of each.

    python benchmarks/payoff.py [--data FOLDER] [--seeds N]          writes docs/images/payoff.svg, prints its numbers

Who earns more than 50K? Adult, both files without '?', 45,222 rows; a split, three quarters to fit,
for each seed. The sex is no feature. scikit-learn's LogisticRegression, then
RateConstrainedClassifier at epsilon 1 and delta 5e-10 with record-level privacy, without and with
demographic parity within 5 points. Everything else is at its defaults. Means over splits of hard
decisions on held-out rows; seeds repeat the noise.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairveil as fv
from fairveil.figures import with_dark
from fairveil.figures.contents import Measure
from fairveil.figures.scales import AxisScale, axis_title, number, tick_texts, with_unit
from fairveil.figures.styles import AXIS, GRID, OWN_COLOURS, QUIET, Style
from fairveil.figures.svg import Drawing
from sets import dense, load, split

PLACE = Path(__file__).parent.parent / "docs" / "images" / "payoff.svg"
EPSILON, DELTA, GAP = 1.0, 5e-10, 0.05
MODELS = (
    "Logistic regression",
    f"Private, ε = {EPSILON:g}",
    f"Private and fair, gap ≤ {100 * GAP:g} points",
)
GROUPS = ("women", "men")
WOMEN, MEN = (
    Style("circle", True, "", OWN_COLOURS[0], 2.0),
    Style("square", False, "", OWN_COLOURS[1], 2.0),
)
WIDTH, NAMES, NUMBERS, ROW, TOP = 720, 232, 150, 40, 46
Numbers = tuple[float, float, float]  # rate of women, rate of men, error


def decisions(train: Any, test: Any, seed: int) -> list[Any]:
    """What each model decides about the rows held out."""
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)).fit(
        dense(train), train.labels
    )
    found = [plain.predict(dense(test)) == 1]
    for notion in (None, fv.DemographicParity(GAP)):
        clf = fv.RateConstrainedClassifier(notion, epsilon=EPSILON, delta=DELTA, random_state=seed)
        clf.fit(train)
        found.append(clf.predict(test) == clf.classes_[1])
    return found


def measured(folder: str | None, seeds: int) -> list[Numbers]:
    """The mean numbers of each model."""
    rows, every = load("adult", folder), []
    for seed in range(seeds):
        train, test = split(rows, seed)
        codes = test.sensitive[0]
        women = codes == test.layout.sensitive[0].index("Female")
        truth = test.labels == 1
        every.append(
            [
                (one[women].mean(), one[~women].mean(), (one != truth).mean())
                for one in decisions(train, test, seed)
            ]
        )
    return [tuple(map(float, line)) for line in np.mean(every, axis=0)]


def words(lines: Sequence[Numbers]) -> str:
    """The picture in words."""
    told = []
    for name, (women, men, error) in zip(MODELS, lines, strict=True):
        rates = f"{with_unit(women, 'percent')} of women and {with_unit(men, 'percent')} of men"
        told.append(
            f"{name}: predicts more than 50K for {rates}, error {with_unit(error, 'percent')}."
        )
    return " ".join(told)


def drawn(lines: Sequence[Numbers]) -> str:
    """A row a model: the two rates, the gap between them as a line, and the numbers at its end."""
    bottom = TOP + ROW * len(lines)
    drawing = Drawing(WIDTH, bottom + 48, "payoff")
    drawing.add("rect", width=WIDTH, height=drawing.height, fill="#fff")
    scale = AxisScale.over(
        [rate for line in lines for rate in line[:2]], NAMES, WIDTH - NUMBERS - 14, zero=True
    )
    for value, text in zip(scale.ticks, tick_texts(scale.ticks, "percent"), strict=True):
        drawing.line(scale(value), TOP, scale(value), bottom, GRID)
        drawing.text(
            scale(value), bottom + 18, text, 12, "middle", fill=QUIET, data_tick=repr(value)
        )
    drawing.line(NAMES, bottom, scale.end, bottom, AXIS, 1.2)
    drawing.text(
        scale.end, bottom + 38, axis_title(Measure("predicted to earn more than 50K")), 12, "end"
    )
    for at, (style, name) in enumerate(zip((WOMEN, MEN), GROUPS, strict=True)):
        drawing.marker(NAMES + 12 + 90 * at, 20, style, 5.4)
        drawing.text(NAMES + 24 + 90 * at, 24.5, name, 13)
    for at, head in enumerate(("gap, points", "error, %")):
        drawing.text(WIDTH - 76 + 72 * at, 24.5, head, 12, "end", fill=QUIET)
    for at, (name, (women, men, error)) in enumerate(zip(MODELS, lines, strict=True)):
        middle = TOP + ROW * at + ROW / 2
        drawing.text(NAMES - 14, middle + 4.5, name, 13, "end")
        drawing.line(scale(women), middle, scale(men), middle, QUIET, 2.0)
        for rate, style in ((women, WOMEN), (men, MEN)):
            drawing.open("g", data_value=repr(rate))
            drawing.marker(scale(rate), middle, style, 5.4)
            drawing.close("g")
        drawing.text(
            WIDTH - 76, middle + 4.5, number(men - women, "points"), 13, "end", font_weight="bold"
        )
        drawing.text(
            WIDTH - 4, middle + 4.5, number(error, "percent"), 13, "end", data_value=repr(error)
        )
    return drawing.whole(
        "Rates of women and men and error of three models of a census", words(lines)
    )


def main() -> None:
    """Fit, print and draw."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", help="a folder; without it FAIRVEIL_DATA")
    options.add_argument("--seeds", type=int, default=15)
    asked = options.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fv.errors.FairveilWarning)
        lines = measured(asked.data, asked.seeds)
    print(words(lines))
    PLACE.write_text(with_dark(drawn(lines)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
