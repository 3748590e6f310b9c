"""Who gets a grant, so that incomes are less unequal between households: a constraint on a Gini
index, and what it costs.

    python examples/grants.py [--rows N] [--data FOLDER] [--out FOLDER]      writes grants.svg

Adult's people earn 20 or, those with the label ">50K", 80 thousand a year; the mean incomes of the
six positions in a household (wife, husband, own child, ...) have a Gini index of 0.19. A grant of
20 thousand may be given. Rules that see what people are like, but not their position, decide who
gets one: the decision "<=50K". The share of grants is minimized subject to a Gini index of mean
incomes, grants included, that is at most what is asked; by private linear oracles, whole records
protected.

Grants by lot to a share s of all add 20 s to every mean, and divide the index by 1 + 20 s / (mean
of means): what rules must beat. The index is bounded by its convex level set, in units of a mean
income: a unit of it costs many grants, so the penalty is larger than the usual 5. Seeds make runs
repeat; secure noise has none. Adult's files lie in FAIRVEIL_DATA.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.errors import ConstraintNotMet
from fairveil.fairness.functions import gini
from fairveil.fairness.objectives import Gini, WeightedError
from fairveil.show import Axis, Curve, Curves

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # with named sets

INCOME, GRANT = (0.2, 0.8), 0.2  # of 100 thousand
ASKED, EPSILONS, PENALTY = (0.18, 0.16, 0.14, 0.12, 0.1, 0.08), (0.1, 1.0), 20.0
# (labels, decisions): the first decision is a grant
PAYOFF = np.array([[income + GRANT, income] for income in INCOME])
GRANTS = WeightedError(np.array([[1.0, 0.0], [1.0, 0.0]]))


def people(folder: str | None, rows: int | None) -> Any:
    """Adult, or some of it; groups are positions in a household."""
    from named import named

    found = named("adult", folder, sensitive=["relationship"])
    some = np.random.default_rng(0).permutation(found.size)[:rows]
    return data.encode(
        {name: np.asarray(column)[some] for name, column in found.table.items()}, found.schema
    )


def fitted(rows: Any, index: float, epsilon: float) -> Any:
    """Rules that give few grants."""
    solver = fv.GroupObjective(oracle="regression", penalty=PENALTY)
    model = fv.FairClassifier(
        Gini(PAYOFF).at_most(index),
        objective=GRANTS,
        solver=solver,
        epsilon=epsilon,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)  # it is measured
        return model.fit(rows)


def measured(share: Any, rows: Any) -> tuple[float, float]:
    """The index, and the share of grants, where each person gets one with that probability."""
    (block,) = rows.blocks()
    incomes = np.asarray(INCOME)[block.labels] + GRANT * share
    means = np.array([incomes[block.sensitive[0] == a].mean() for a in range(6)])
    return float(gini(means)), float(share.mean())


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
    rows = people(asked.data, asked.rows)
    (block,) = rows.blocks()
    lots = [measured(np.full(block.rows, share), rows) for share in np.linspace(0.0, 1.0, 101)]
    print(f"Gini index {lots[0][0]:.3f} without grants, {lots[-1][0]:.3f} with grants for all")
    curves = [Curve("by lot", tuple(lots))]
    for epsilon in EPSILONS:
        spots = []
        for bound in ASKED:
            index, grants = measured(fitted(rows, bound, epsilon).predict_proba(rows)[:, 0], rows)
            spots.append((index, grants))
            lot = next(
                (f"{share:.1%} by lot" for reached, share in lots if reached <= index),
                "more than all by lot",
            )
            print(
                f"epsilon {epsilon:g}, index at most {bound:g}: index {index:.3f}, grants to "
                f"{grants:.1%} ({lot})"
            )
        curves.append(Curve(f"by rules, epsilon {epsilon:g}", tuple(spots)))
    across, up = (
        Axis("Gini index of mean incomes"),
        Axis("share of people with a grant", "percent"),
    )
    figure = Curves("What less inequality costs", across, up, tuple(curves))
    (asked.out / "grants.svg").write_text(figure.to_svg() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
