"""A powerful statistical test at level 5 %, chosen privately among tests of six statistics (Alabi,
section 1.3.3).

    python examples/powerful_test.py [--rows N] [--out FOLDER]      writes powerful_test.svg

A row is a sample of nine observations: normal ones of variance 1, of mean 0 (H0) or 0.75 (H1). The
candidates reject H0 where a statistic is above a cut: six statistics, forty cuts each. The share of
H1's samples that is missed (1 less the power) is minimized, subject to a share of H0's samples
that is rejected (the level) of at most 4.7 %: a little below 5 %, by as much as samples may differ
from their distribution. Whole samples are protected, epsilon is 1. (Seeds make runs repeat; secure
noise has none.)

Both hypotheses are simple: every test's level and power are known, and none of level 5 % has more
power than the mean's (Neyman and Pearson), Phi(3 x 0.75 - 1.645) = 72.7 %. The choice is told none
of this.
"""

from __future__ import annotations

import argparse
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import fairveil as fv
from fairveil.errors import ConstraintNotMet
from fairveil.facts import Category, Number, Schema
from fairveil.fairness.objectives import FalseNegatives, FalsePositives
from fairveil.show import Axis, Curve, Curves

SIZE, SHIFT, LEVEL, ASKED, RUNS = 9, 0.75, 0.05, 0.047, 5
BEST = float(stats.norm.sf(stats.norm.isf(LEVEL) - math.sqrt(SIZE) * SHIFT))
CUTS = {
    "mean": (0, 1),
    "median": (0, 1.2),
    "largest": (1, 4),
    "least": (-2, 1),
    "above 0": (0, 9),
    "sum of squares": (4, 30),
}
SCHEMA = Schema(
    {**{name: Number(*ends) for name, ends in CUTS.items()}, "truth": Category(("H0", "H1"))},
    target="truth",
)
# Linear rules, the intercept first: a statistic, coded to [-1, 1] by its bounds in the schema, less
# a cut.
CANDIDATES = np.array(
    [(-cut, *slopes) for slopes in np.eye(len(CUTS)) for cut in np.linspace(-1, 1, 40)]
)


def statistics(samples: Any) -> dict[str, Any]:
    """Of samples (n, 9)."""
    values = [
        samples.mean(axis=1),
        np.median(samples, axis=1),
        samples.max(axis=1),
        samples.min(axis=1),
    ]
    return dict(
        zip(CUTS, [*values, (samples > 0).sum(axis=1), (samples**2).sum(axis=1)], strict=True)
    )


def rejection(name: str, cut: float, mean: float) -> float:
    """P(statistic > cut), exactly, where observations have that mean."""
    above = stats.norm.sf(cut - mean)
    if name == "mean":
        return float(stats.norm.sf(math.sqrt(SIZE) * (cut - mean)))
    if name == "sum of squares":
        return float(stats.ncx2.sf(cut, SIZE, SIZE * mean**2) if mean else stats.chi2.sf(cut, SIZE))
    if name == "above 0":
        return float(stats.binom.sf(math.floor(cut), SIZE, stats.norm.cdf(mean)))
    fewest = {"median": (SIZE + 1) // 2, "largest": 1, "least": SIZE}[name]
    return float(stats.binom.sf(fewest - 1, SIZE, above))


def chosen(rows: int, seed: int) -> tuple[str, float]:
    """The test, statistic and cut, that is chosen from so many samples."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=rows)
    samples = rng.normal(SHIFT * truth[:, np.newaxis], size=(rows, SIZE))
    asked = {
        "objective": FalseNegatives("H1"),
        "constraints": FalsePositives("H1").at_most(ASKED),
    }
    selection = fv.FairClassifier(
        solver=fv.GroupObjective(method="exponential", decisions=CANDIDATES),
        epsilon=1.0,
        schema=SCHEMA,
        random_state=seed,
        **asked,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is measured
        selection.fit({**statistics(samples), "truth": np.array(["H0", "H1"])[truth]})
    cut, *slopes = -selection.outcome_.rules[0].weights[0]
    name = list(CUTS)[int(np.argmin(slopes))]
    low, high = CUTS[name]
    return name, low + (cut + 1) / 2 * (high - low)


def main() -> None:
    """Choose tests from more and more samples; print and draw their powers and levels."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--out", type=Path, default=Path("."))
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    sizes, powers, levels = np.unique(np.geomspace(300, asked.rows, 6).astype(int)).tolist(), [], []
    for rows in sizes:
        tests = [chosen(rows, seed) for seed in range(RUNS)]
        powers.append([rejection(*test, SHIFT) for test in tests])
        levels.append(max(rejection(*test, 0.0) for test in tests))
        mean, (name, cut) = float(np.mean(powers[-1])), tests[-1]
        print(
            f"{rows:>8,} samples: power {mean:.3f} (best {BEST:.3f}), largest level "
            f"{levels[-1]:.3f}; last: {name} > {cut:.2f}"
        )
    means = tuple((rows, float(np.mean(some))) for rows, some in zip(sizes, powers, strict=True))
    name = f"power of the chosen test, mean and range of {RUNS} runs"
    curve = Curve(name, means, tuple(map(min, powers)), tuple(map(max, powers)))
    best = Curve("largest power of any test of level 5 %", ((sizes[0], BEST), (sizes[-1], BEST)))
    level = Curve(f"largest level of the {RUNS} tests", tuple(zip(sizes, levels, strict=True)))
    across, up = Axis("samples", log=True), Axis("share of samples rejected", "percent")
    figure = Curves("A test chosen privately, epsilon 1", across, up, (curve, best, level))
    (asked.out / "powerful_test.svg").write_text(figure.to_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
