"""The picture of the README: three models of a census, with the rates of women and men and the
error of each.

    python benchmarks/payoff.py [--data FOLDER] [--seeds N]          writes docs/images/payoff.svg, prints its numbers

Who earns more than 50K? Adult, both files without '?', 45,222 rows; a split, three quarters to fit,
for each seed. The sex is no feature. scikit-learn's LogisticRegression, then
FairClassifier at epsilon 1 and delta 5e-10 with record-level privacy, without and with
demographic parity within 5 points. Everything else is at its defaults. Means over splits of hard
decisions on held-out rows; seeds repeat the noise.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairveil as fv
from fairveil.show import Chart
from fairveil.show.charts import COLORS
from fairveil.show.numbers import number, with_unit
from fairveil.show.pictures import INK
from sets import dense, load, split

PLACE = Path(__file__).parent.parent / "docs" / "images" / "payoff.svg"
EPSILON, DELTA, GAP = 1.0, 5e-10, 0.05
MODELS = (
    "Logistic regression",
    f"Private, ε = {EPSILON:g}",
    f"Private and fair, gap ≤ {100 * GAP:g} points",
)
GROUPS = ("women", "men")
Numbers = tuple[float, float, float]  # rate of women, rate of men, error


def decisions(train: Any, test: Any, seed: int) -> list[Any]:
    """What each model decides about the rows held out."""
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000)).fit(
        dense(train), train.labels
    )
    found = [plain.predict(dense(test)) == 1]
    for notion in (None, fv.DemographicParity(GAP)):
        clf = fv.FairClassifier(notion, epsilon=EPSILON, delta=DELTA, random_state=seed)
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


@dataclass(frozen=True)
class Payoff(Chart):
    """A row a model: the two rates, the gap between them as a line, and the numbers at its end."""

    lines: tuple[Numbers, ...]
    title: str = "Rates of women and men and error of three models of a census"

    @property
    def description(self) -> str:
        """The picture in words."""
        return words(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """The numbers by model."""
        return dict(zip(MODELS, self.lines, strict=True))

    def height(self, width: int) -> float:
        """A row takes the same room on any page."""
        return 48.0 * len(self.lines) + 62.0

    def draw(self, axes: Any) -> list[Any]:
        """Two marks a row, and a line between them."""
        drawn = []
        for at, (name, line) in enumerate(zip(MODELS, self.lines, strict=True)):
            women, men, error = line
            said = f"gap {number(men - women, 'points')} points, error {number(error, 'percent')}%"
            for x, text, side in ((0.0, name, "left"), (1.0, said, "right")):
                axes.text(
                    x, at - 0.34, text, ha=side, va="center", transform=axes.get_yaxis_transform()
                )
            axes.hlines(at, women, men, color=INK, linewidth=1.6)
            looks = zip(GROUPS, (women, men), "os", COLORS[:2], strict=True)
            for group, rate, mark, color in looks:
                label = group if at == 0 else "_"
                drawn += axes.plot([rate], [at], mark, color=color, markersize=9, label=label)
        axes.set_yticks([])
        axes.set_ylim(len(self.lines) - 0.5, -0.7)
        axes.set_xlim(left=0.0)
        axes.set_xlabel("Predicted to earn more than 50K (percent)")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.6g}")
        axes.grid(visible=True, color=INK, alpha=0.15)
        for side in ("left", "right", "top"):
            axes.spines[side].set_visible(False)
        return drawn


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
    PLACE.write_text(Payoff(tuple(lines)).to_svg(720) + "\n", "utf-8")


if __name__ == "__main__":
    main()
