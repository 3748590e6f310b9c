"""Show a search for a less discriminatory alternative: credit, hiring, and the bar examination.

    python examples/alternatives.py [credit|hiring|law] [--rows N] [--data FOLDER] [--out FOLDER]

Each walks the same way: a model in use, candidates, a plan that is written first, one search, its
record and a page. The first two measure the scores in use by group before. Rows are cut in two: models learn from the first
half, and nobody of the second half was seen by any of them.

*credit*   Made-up applicants. A lender's score reads the postcode, which tells the group and little
           else. Candidates: without it, our fair classifier at two bounds, other cuts of the score.
           Reasons are named for those who are turned away.
*hiring*   Made-up applicants of two sexes and four races, one of them with 1.5 % of people:
           intersections with the 2 % rule, models that differ in their seeds alone, and what one
           more would be worth.
*law*      Law School (in FAIRVEIL_DATA): who passes the bar, by race.

Seeds make runs repeat; secure noise has none.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

import fairveil as fv
from fairveil.errors import FairveilWarning

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))  # with named sets

Half = tuple[Any, Any, Any]
EPSILON = 2.0


def halves(X: Any, y: Any, groups: Any) -> tuple[Half, Half]:
    """Rows to learn from, and rows set aside."""
    first = np.random.default_rng(1).random(len(y)) < 0.5
    parts = [
        (X[some], y[some], {name: column[some] for name, column in groups.items()})
        for some in (first, ~first)
    ]
    return parts[0], parts[1]


def credit(rows: int, _: str | None, out: Path) -> fv.estimators.Alternatives:
    """A lender's score with a postcode."""
    rng = np.random.default_rng(0)
    race = rng.choice(["white", "black", "hispanic"], rows, p=[0.6, 0.2, 0.2])
    income, history = rng.normal(size=(2, rows))
    postcode = rng.normal(size=rows) + 1.2 * (race != "white")
    repaid = (income + history - 0.1 * postcode + rng.normal(size=rows) > -0.6).astype(int)
    X = np.stack([income, history, postcode], axis=1)
    (X, y, groups), (held, outcome, held_groups) = halves(X, repaid, {"race": race})
    past = X @ [1.0, 1.0, -0.6] + rng.normal(size=len(y)) > -0.6  # decisions that the model learnt
    used = LogisticRegression().fit(X, past.astype(int))
    blind = LogisticRegression().fit(X * [1, 1, 0], y)
    fair = {
        f"ours, gap {bound:g}": fv.FairClassifier(
            fv.DemographicParity(bound),
            epsilon=EPSILON,
            random_state=0,
        ).fit(X, y, sensitive_features=groups)
        for bound in (0.05, 0.02)
    }
    score = used.predict_proba(held)[:, 1]
    asked: dict[str, Any] = {"sensitive_features": held_groups, "epsilon": EPSILON}
    print(fv.score_audit(score, outcome, cut=0.5, reference="white", random_state=0, **asked))
    found = fv.lda(
        used,
        held,
        outcome,
        tolerance=0.01,
        candidates={"no postcode": blind, **fair, "lower cut": (score, 0.35)},
        reference="white",
        plan=out / "credit-plan.json",
        random_state=1,
        delta=1e-6,
        **asked,
    )
    turned_away = held[blind.predict(held) == 0][:3]
    names = ("income", "history", "postcode")
    for codes in fv.reason_codes(blind, turned_away * [1, 1, 0], [0.5, 0.5, 0.0], count=2):
        print("reasons:", ", ".join(f"{names[column]} {part:+.2f}" for column, part in codes))
    return found


def hiring(rows: int, _: str | None, out: Path) -> fv.estimators.Alternatives:
    """A ranking of applicants, and the same procedure with other seeds."""
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], rows)
    race = rng.choice(["asian", "black", "white", "other"], rows, p=[0.2, 0.25, 0.535, 0.015])
    skill = rng.normal(size=(rows, 6))
    gap = 0.6 * (sex == "m") + 0.3 * (race == "white")
    X = np.column_stack(
        [skill, skill[:, 0] + gap + rng.normal(size=rows), rng.normal(size=rows) + gap]
    )
    good = (skill[:, :3].sum(axis=1) + rng.normal(size=rows) > 0).astype(int)
    (X, y, _), (held, outcome, groups) = halves(X, good, {"sex": sex, "race": race})
    past = X[:, :3].sum(axis=1) + X[:, 7] + rng.normal(size=len(y)) > 0.5
    used = LogisticRegression().fit(X, past.astype(int))

    score, few = used.predict_proba(held)[:, 1], {"smallest": 0.02, "epsilon": EPSILON}
    print(fv.score_audit(score, outcome, sensitive_features=groups, cut=0.5, random_state=0, **few))

    def drawn(seed: int) -> Any:
        """One procedure: which columns a model reads, and which rows it learns from, are chances."""
        chance = np.random.default_rng(seed)
        kept, some = chance.random(X.shape[1]) < 0.8, chance.random(len(y)) < 0.1
        kept[7] = True
        return LogisticRegression().fit((X * kept)[some], past[some].astype(int))

    # forty private counts of one crowd would be mostly noise: these people agreed to be counted
    return fv.lda(
        used,
        held,
        outcome,
        sensitive_features=groups,
        smallest=0.02,
        tolerance=0.01,
        candidates={f"seed {seed}": drawn(seed) for seed in range(40)},
        draws=True,
        plan=out / "hiring-plan.json",
        epsilon=float("inf"),
    )


def law(rows: int, folder: str | None, out: Path) -> fv.estimators.Alternatives:
    """Who passes the bar, by race: a model of all columns, and models of fewer."""
    from named import named

    found = named("law_school", folder)
    table = {name: np.asarray(column) for name, column in found.table.items()}
    some = np.random.default_rng(0).permutation(found.size)[:rows]
    columns = [name for name in ("lsat", "ugpa", "fam_inc", "tier") if name in table]
    X = np.stack([table[name].astype(float)[some] for name in columns], axis=1)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    label, race = table[found.schema.target][some], table["race"][some]
    (X, y, _), (held, outcome, groups) = halves(X, label, {"race": race})
    used = LogisticRegression(class_weight="balanced").fit(X, y)
    score, good = used.predict_proba(held)[:, 1], used.classes_[1]
    print(
        columns,
        "favourable:",
        good,
        "base accepts",
        round(float((used.predict(held) == good).mean()), 3),
    )
    some_columns = {
        f"without {name}": LogisticRegression(class_weight="balanced").fit(
            X * (np.arange(X.shape[1]) != j), y
        )
        for j, name in enumerate(columns)
    }
    return fv.lda(
        used,
        held,
        outcome,
        sensitive_features=groups,
        tolerance=0.01,
        candidates={**some_columns, "cut 0.3": (score, 0.3), "cut 0.15": (score, 0.15)},
        smallest=0.02,
        plan=out / "law-plan.json",
        epsilon=EPSILON,
        delta=1e-6,
        random_state=1,
    )


def main(words: list[str] | None = None) -> dict[str, fv.estimators.Alternatives]:
    """Print every search, and write its record and page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("which", nargs="*", help="credit, hiring, law; without it, the first two")
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", type=Path, default=Path())
    asked = parser.parse_args(words)
    ways, found = {"credit": credit, "hiring": hiring, "law": law}, {}
    for name in asked.which or ("credit", "hiring"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairveilWarning)
            found[name] = ways[name](asked.rows, asked.data, asked.out)
        print(found[name])
        found[name].write(asked.out / f"{name}-record.json")
        (asked.out / f"{name}.html").write_text(
            found[name].to_html(f"Alternatives: {name}"), "utf-8"
        )
    return found


if __name__ == "__main__":
    main()
