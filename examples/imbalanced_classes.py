"""Error under a constraint on the G-mean of recalls: six classes, the least of them 2 % of people.

    python examples/imbalanced_classes.py [--rows N] [--data FOLDER] [--out FOLDER]      writes
    imbalanced_classes.svg

To which of six tiers of law schools does a student go, by grades, income and family? Tier 3 has 37
% of them, tier 1 has 2 %, and decisions that are seldom wrong never answer 1: their recall there is
0, and so is the geometric mean of recalls, the G-mean (Example 8.2). Here the error is minimized
subject to a G-mean that is at least 0 to 0.3, by private linear oracles: mixtures of linear rules,
whole records protected. Errors and recalls are expectations over a mixture's own draws, from
`predict_proba`.

Seeds make runs repeat; secure noise has none. The law-school set lies in
FAIRVEIL_DATA.
"""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.errors import ConstraintNotMet
from fairveil.fairness.objectives import GMean
from fairveil.show import Axis, Curve, Curves

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # with named sets

ASKED, EPSILONS = (0.0, 0.2, 0.25, 0.3), (0.5, 1.0, math.inf)


def students(folder: str | None, rows: int | None) -> Any:
    """The law-school set, or some of it, with the tier as its label."""
    from named import named

    found = named("law_school", folder, target="tier")
    some = np.random.default_rng(0).permutation(found.size)[:rows]
    return data.encode(
        {name: np.asarray(column)[some] for name, column in found.table.items()}, found.schema
    )


def fitted(rows: Any, least: float, epsilon: float) -> Any:
    """Decisions with a G-mean of at least that; of any for 0."""
    constraint = GMean().at_least(least) if least else None
    solver = fv.GroupObjective(oracle="regression")
    model = fv.FairClassifier(constraint, solver=solver, epsilon=epsilon, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is measured
        return model.fit(rows)


def measured(model: Any, rows: Any) -> tuple[float, Any]:
    """The error, and every class's recall."""
    (block,) = rows.blocks()
    chances = model.predict_proba(rows)
    right = chances[np.arange(len(chances)), block.labels]
    return 1.0 - float(right.mean()), np.array(
        [right[block.labels == label].mean() for label in range(chances.shape[1])]
    )


def main() -> None:
    """Fit at each bound and epsilon, print and draw."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int)
    options.add_argument("--data", help="a folder; without it FAIRVEIL_DATA")
    options.add_argument("--out", type=Path, default=Path("."))
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    rows, curves = students(asked.data, asked.rows), []
    for epsilon in EPSILONS:
        spots = []
        for least in ASKED:
            error, recalls = measured(fitted(rows, least, epsilon), rows)
            mean = float(np.exp(np.log(np.maximum(recalls, 1e-12)).mean()))
            spots.append((mean, error))
            words = " ".join(f"{recall:.2f}" for recall in recalls)
            print(
                f"epsilon {epsilon:g}, G-mean of at least {least:g}: error {error:.3f}, G-mean "
                f"{mean:.3f}, recalls {words}"
            )
        whose = "not private" if math.isinf(epsilon) else f"epsilon {epsilon:g}"
        curves.append(Curve(whose, tuple(spots)))
    figure = Curves(
        "Six tiers of law schools",
        Axis("G-mean of recalls"),
        Axis("error", "percent"),
        tuple(curves),
    )
    (asked.out / "imbalanced_classes.svg").write_text(figure.to_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
