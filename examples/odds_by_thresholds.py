"""Equalized odds by one threshold, with the smooth maximum (Alabi, Example 8.10), chosen by
exponential sampling.

    python examples/odds_by_thresholds.py [--rows N] [--data FOLDER] [--out FOLDER]      writes
    odds_by_thresholds.svg

A quarter of Adult is taken to be public: a linear score of high income is learnt from it. The
decision is one number, the threshold of that score. On the other rows, whole records protected, the
error is minimized subject to

    smax(FPR_f - FPR_m, FPR_m - FPR_f, TPR_f - TPR_m, TPR_m - TPR_f) <= 0.05,
    smax(v) = sum_i v_i e^(100 v_i) / sum_i e^(100 v_i),

which is at most the largest gap, and below it by at most ln(4) / 100. smax is not 1-Lipschitz, as
the example assumes, nor convex; but its slopes are bounded (`fairness.outer.Boltzmann`), and
exponential sampling needs no more.

What is printed: the best thresholds without and with the constraint, by brute force, and those that
ten private runs choose at each epsilon. Adult's files lie in FAIRVEIL_DATA.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.fairness.objectives import SmoothedOddsOfRates
from fairveil.show import Axis, Curve, Curves

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # with named sets

SHARPNESS, BOUND, EPSILONS, RUNS = 100.0, 0.05, (0.1, 0.5, 1.0), 10
CUTS = np.linspace(-4.0, 4.0, 161)


def parts(folder: str | None, rows: int | None) -> list[Any]:
    """A quarter of Adult, the public rows, and the rest."""
    from named import named

    found = named("adult", folder)
    order = np.random.default_rng(0).permutation(found.size)[:rows]
    table = {name: np.asarray(column) for name, column in found.table.items()}
    return [
        data.encode({name: column[some] for name, column in table.items()}, found.schema)
        for some in np.split(order, [len(order) // 4])
    ]


def measured(score: Any, rows: Any) -> tuple[Any, Any]:
    """Every threshold's error and smooth largest gap, exactly."""
    (block,) = rows.blocks()
    decided = score.decision_scores(block)[:, 0] > CUTS[:, np.newaxis]
    cells = [
        [decided[:, (block.sensitive[0] == a) & (block.labels == y)].mean(axis=1) for a in (0, 1)]
        for y in (0, 1)
    ]
    gaps = np.array([abs(one - other) for one, other in cells])
    powers = np.exp(SHARPNESS * gaps)
    return (decided != block.labels).mean(axis=1), (gaps * powers).sum(axis=0) / powers.sum(axis=0)


def chosen(score: Any, rows: Any, epsilon: float, seed: int) -> int:
    """The place of the threshold that a private run chooses."""
    rules = np.column_stack([score.intercept[0] - CUTS, np.tile(score.weights[0], (len(CUTS), 1))])
    constraint = SmoothedOddsOfRates(SHARPNESS).at_most(BOUND)
    selection = fv.FairClassifier(
        constraint,
        solver=fv.GroupObjective(method="exponential", decisions=rules),
        epsilon=epsilon,
        random_state=seed,
    )
    return int(np.abs(selection.fit(rows).outcome_.rules[0].weights[0, 0] - rules[:, 0]).argmin())


def main() -> None:
    """Learn the score, choose thresholds, print and draw."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int)
    options.add_argument("--data", help="a folder; without it FAIRVEIL_DATA")
    options.add_argument("--out", type=Path, default=Path("."))
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    public, rows = parts(asked.data, asked.rows)
    score = fv.FairClassifier(model="linear", epsilon=math.inf, random_state=0).fit(public).model_
    errors, gaps = measured(score, rows)
    best = int(np.where(gaps <= BOUND, errors, np.inf).argmin())
    for name, at in (("no constraint", int(errors.argmin())), ("constraint", best)):
        print(
            f"best threshold, {name}: {CUTS[at]:+.2f}, error {errors[at]:.3f}, smooth gap "
            f"{gaps[at]:.3f}"
        )
    curves = [Curve("error", tuple(zip(CUTS.tolist(), errors.tolist(), strict=True)))]
    curves.append(
        Curve("smooth largest gap", tuple(zip(CUTS.tolist(), gaps.tolist(), strict=True)))
    )
    curves.append(Curve("bound of the gap", ((CUTS[0], BOUND), (CUTS[-1], BOUND))))
    for epsilon in EPSILONS:
        found = [chosen(score, rows, epsilon, seed) for seed in range(RUNS)]
        over, above = max(errors[found]) - errors[best], max(gaps[found]) - BOUND
        print(
            f"epsilon {epsilon:g}, {RUNS} runs: error above the best by at most {over:.3f}, gap "
            f"above its bound by {above:+.3f}"
        )
        curves.append(
            Curve(
                f"error at what is chosen, epsilon {epsilon:g}",
                tuple((CUTS[k], errors[k]) for k in found),
                joined=False,
            )
        )
    title = "One threshold of a public score of income, by sex"
    figure = Curves(title, Axis("threshold"), Axis("error, gap", "percent"), tuple(curves))
    (asked.out / "odds_by_thresholds.svg").write_text(figure.to_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
