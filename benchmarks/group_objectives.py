"""Group objectives beside the error alone, on the rows of the fit. Prints Markdown.

    python benchmarks/group_objectives.py regression --seeds 5
    python benchmarks/group_objectives.py bounds --seeds 5 --epsilons 0.5 1 3
    python benchmarks/group_objectives.py worst --seeds 5 --epsilons 1

`regression`: the largest group's mean squared error of least squares ("error") and of
"largest_group_loss", then everybody's, and in how many runs the second was worse than the first on
the largest by 2 % or more. Sets: `alike`, 3,000 made-up rows of six groups with one line, so that
following small groups brings noise alone; `unlike`, 6,000 rows of five groups, the least with 1 %,
each with a line of its own; `law`, law school, LSAT by race; `voices`, Parkinson's, total UPDRS by
bands of age, columns standardised.

`bounds`: error and largest gap of `GroupObjectiveClassifier("error", "equalized_odds:0.05")` by
oracle; of `rare` the share of missed positives in the gap's place, at most .2 of them being asked
for. Sets: `mild`, 6,000 made-up rows of two groups; `raw`, 3,000 rows without a schema whose
numbers are about 5 and tell the group; `told`, 30,000 rows whose numbers tell the group; `four`,
30,000 rows of four groups, the least with 4 %; `rare`, 60,000 rows of which 9 % are positive;
`adult`, Adult by sex.

`worst`: the largest group's share of wrong decisions of "error" and of "largest_group_loss",
without a constraint. Sets as above, and `apart`, 8,000 rows of two groups whose lines differ, the
second a fifth.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil import data
from fairveil.facts import Category, Number, Schema

Made = tuple[dict[str, Any], Any, Any, Any]


def alike(seed: int, folder: str | None) -> Made:
    """One line for all."""
    rng = np.random.default_rng(seed)
    A = rng.choice(6, size=3000, p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    X = rng.uniform(-1, 1, size=(3000, 5))
    y = X @ [2.0, 1.0, 0.0, -1.0, 0.5] + rng.normal(size=3000) * np.linspace(0.8, 1.1, 6)[A]
    return {"target_bounds": (-6, 6)}, X, y, A


def unlike(seed: int, folder: str | None) -> Made:
    """A line for each."""
    rng = np.random.default_rng(seed)
    A = rng.choice(5, size=6000, p=[0.6, 0.25, 0.1, 0.04, 0.01])
    X = rng.uniform(-1, 1, size=(6000, 4))
    lines = np.array([[2, 1, 0, 0], [2, -1, 0, 0], [1, 1, 1, 0], [0, 1, 0, 2], [-1, 0, 2, 1]])
    y = (X * lines[A]).sum(axis=1) + np.array([0, 0.5, -0.5, 1, 1.5])[A]
    return (
        {"target_bounds": (-6, 6)},
        X,
        y + np.array([0.3, 0.5, 0.4, 1.0, 0.5])[A] * rng.normal(size=6000),
        A,
    )


def law(seed: int, folder: str | None) -> Made:
    """LSAT by race."""
    table = part("law_school", folder, seed)
    numbers = [
        name for name in table if name not in ("lsat", "race") and table[name].dtype.kind in "fi"
    ]
    X = np.column_stack([table[name].astype(float) for name in numbers])
    return {"target_bounds": (10, 50)}, X, table["lsat"].astype(float), table["race"]


def voices(seed: int, folder: str | None) -> Made:
    """UPDRS by bands of age."""
    table = part("parkinsons", folder, seed)
    left = ("total_UPDRS", "motor_UPDRS", "subject#", "age", "sex")
    X = np.column_stack(
        [
            table[name].astype(float)
            for name in table
            if name not in left and table[name].dtype.kind in "fi"
        ]
    )
    A = np.digitize(table["age"].astype(float), [50, 55, 60, 65, 70, 75, 80])
    return (
        {"target_bounds": (0, 60)},
        (X - X.mean(axis=0)) / X.std(axis=0),
        table["total_UPDRS"].astype(float),
        A,
    )


def part(name: str, folder: str | None, seed: int) -> dict[str, Any]:
    """Three quarters of a set's rows, drawn by the seed."""
    found = data.get(name, folder)
    chosen = np.random.default_rng(1000 + seed).permutation(found.size)[: int(0.75 * found.size)]
    return {key: np.asarray(values)[chosen] for key, values in found.table.items()}


def mild(seed: int, folder: str | None) -> Made:
    """Two groups, with a schema."""
    rng = np.random.default_rng(seed)
    A = (rng.random(6000) < 0.3).astype(int)
    X = rng.normal(size=(6000, 5)) + np.outer(A, [1.2, 0, 0, 0, 1.0])
    y = (
        X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2] + 0.6 * A - 0.6 + 0.7 * rng.logistic(size=6000)
        > 0.3
    ).astype(int)
    names = [f"x{j}" for j in range(5)]
    schema = Schema(
        {**{name: Number(-4, 5) for name in names}, "a": Category((0, 1)), "y": Category((0, 1))},
        target="y",
        sensitive=("a",),
    )
    return {"schema": schema}, dict(zip([*names, "a"], [*X.T, A], strict=True)), y, A


def raw(seed: int, folder: str | None) -> Made:
    """Numbers whose bounds are not stated, and that tell the group."""
    rng = np.random.default_rng(seed)
    A = (rng.random(3000) < 0.5).astype(int)
    X = rng.normal(size=(3000, 4))
    X[:, 3] = 1.5 * (2 * A - 1) + 0.5 * X[:, 3]
    X[:, 2] += A
    y = (
        0.8 * X[:, 0] + 0.4 * X[:, 1] + 1.2 * (2 * A - 1) + 0.7 * rng.logistic(size=3000) > 0
    ).astype(int)
    return {}, 5.0 * X, y, A


def adult(seed: int, folder: str | None) -> Made:
    """Incomes by sex."""
    schema = data.get("adult", folder).schema.with_roles(target="income", sensitive=("sex",))
    table = part("adult", folder, seed)
    y = table.pop("income")
    return {"schema": schema}, table, y, table["sex"]


def told(seed: int, folder: str | None) -> Made:
    """Numbers that tell the group, with bounds."""
    rng = np.random.default_rng(seed)
    A = (rng.random(30_000) < 0.5).astype(int)
    X = rng.normal(size=(len(A), 4))
    X[:, 3] = 1.5 * (2 * A - 1) + 0.5 * X[:, 3]
    X[:, 2] += A
    y = (
        0.8 * X[:, 0] + 0.4 * X[:, 1] + 1.2 * (2 * A - 1) + 0.7 * rng.logistic(size=len(A)) > 0
    ).astype(int)
    return bounded(X, y, A, 5.0)


def four(seed: int, folder: str | None) -> Made:
    """Four groups, one of 4 %, with fewer positives."""
    rng = np.random.default_rng(seed)
    A = rng.choice(4, size=30_000, p=[0.5, 0.3, 0.16, 0.04])
    X = rng.normal(size=(len(A), 5)) + np.outer(A, [0.6, 0, -0.3, 0, 0])
    score = X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2] - 0.7 * (A == 3)
    return bounded(X, (score + 0.7 * rng.logistic(size=len(A)) > 0.7).astype(int), A, 6.0)


def rare(seed: int, folder: str | None) -> Made:
    """Few positives."""
    rng = np.random.default_rng(seed)
    A = (rng.random(60_000) < 0.3).astype(int)
    X = rng.normal(size=(len(A), 5))
    y = (X @ [0.9, 0.6, -0.5, 0.3, 0.0] - 2.9 + 0.3 * A + rng.logistic(size=len(A)) > 0).astype(int)
    return bounded(X, y, A, 5.0)


def apart(seed: int, folder: str | None) -> Made:
    """A line for each of two groups."""
    rng = np.random.default_rng(seed)
    A = (rng.random(8000) < 0.2).astype(int)
    X = rng.uniform(-1, 1, size=(len(A), 2))
    score = np.where(A == 1, 4 * X[:, 1] - X[:, 0], 3 * X[:, 0] + X[:, 1])
    return bounded(X, (score + rng.logistic(size=len(A)) > 0).astype(int), A, 1.0)


def bounded(X: Any, y: Any, A: Any, most: float) -> Made:
    """A table with a schema, numbers cut at its bounds."""
    names = [f"x{j}" for j in range(X.shape[1])]
    columns = {name: Number(-most, most) for name in names}
    groups = Category(tuple(range(int(A.max()) + 1)))
    schema = Schema({**columns, "a": groups, "y": Category((0, 1))}, target="y", sensitive=("a",))
    return (
        {"schema": schema},
        dict(zip([*names, "a"], [*np.clip(X, -most, most).T, A], strict=True)),
        y,
        A,
    )


REGRESSION: dict[str, Callable[[int, str | None], Made]] = {
    "alike": alike,
    "unlike": unlike,
    "law": law,
    "voices": voices,
}
BOUNDS: dict[str, Callable[[int, str | None], Made]] = {
    "mild": mild, "raw": raw, "told": told, "four": four, "rare": rare, "adult": adult,
}  # fmt: skip
WORST = {**BOUNDS, "apart": apart}


def squares(objective: str, made: Made, **how: Any) -> tuple[float, float]:
    """The largest group's mean squared error, and everybody's."""
    options, X, y, A = made
    fitted = fv.GroupObjectiveRegressor(objective, **options, **how).fit(X, y, sensitive_features=A)
    each = (np.asarray(fitted.predict(X)) - y) ** 2
    return max(float(each[key == A].mean()) for key in np.unique(A)), float(each.mean())


def law_of(clf: Any, made: Made) -> tuple[Any, Any]:
    """The exact distribution of decisions, and each row's chance of a wrong one."""
    _, X, y, A = made
    law = clf.fit(X, y, sensitive_features=A).predict_proba(X)
    right = np.array([clf.classes_.tolist().index(label) for label in np.asarray(y).tolist()])
    return law, 1.0 - law[np.arange(len(right)), right]


def decided(name: str, oracle: str | None, made: Made, **how: Any) -> tuple[float, float]:
    """Error, and largest gap or share of misses."""
    options, _, y, A = made
    asked = "false_negative_rate:0.2" if name == "rare" else "equalized_odds:0.05"
    clf = fv.GroupObjectiveClassifier(
        "error", asked, solver=fv.LinearOracle(oracle=oracle), **options, **how
    )
    law, wrong = law_of(clf, made)
    missed = float(wrong[y == 1].mean()) if name == "rare" else 0.0
    return float(wrong.mean()), missed or fv.equalized_odds_gap(
        y, law, A, classes=tuple(clf.classes_)
    )


def worst(asked: argparse.Namespace) -> Iterator[list[str]]:
    """A line a set, promise and epsilon."""
    yield ["set", "protects", "epsilon", "error", "largest group loss"]
    for name in asked.sets or WORST:
        for protects in asked.protects:
            for epsilon in asked.epsilons:
                shown = []
                for objective in ("error", "largest_group_loss"):
                    runs = []
                    for seed in range(asked.seeds):
                        made = WORST[name](seed, asked.data)
                        how = {"epsilon": epsilon, "protects": protects, "random_state": seed}
                        wrong = law_of(
                            fv.GroupObjectiveClassifier(objective, **made[0], **how), made
                        )[1]
                        runs.append(
                            max(float(wrong[made[3] == key].mean()) for key in np.unique(made[3]))
                        )
                    shown.append(f"{np.mean(runs):.3f} ± {np.std(runs):.3f}")
                yield [name, protects, f"{epsilon:g}", *shown]


def regression(asked: argparse.Namespace) -> Iterator[list[str]]:
    """A line a set, promise and epsilon."""
    yield ["set", "protects", "epsilon", "error", "largest group loss", "worse by 2 %"]
    for name in asked.sets or REGRESSION:
        for protects in asked.protects:
            for epsilon in asked.epsilons:
                runs = []
                for seed in range(asked.seeds):
                    made, how = (
                        REGRESSION[name](seed, asked.data),
                        {"epsilon": epsilon, "protects": protects},
                    )
                    both = [
                        squares(one, made, random_state=seed, **how)
                        for one in ("error", "largest_group_loss")
                    ]
                    runs.append(np.array(both))
                told = np.array(runs)
                shown = [
                    f"{told[:, j, 0].mean():.3g} ± {told[:, j, 0].std():.2g}, "
                    f"{told[:, j, 1].mean():.3g}"
                    for j in (0, 1)
                ]
                worse = int((told[:, 1, 0] > 1.02 * told[:, 0, 0]).sum())
                yield [name, protects, f"{epsilon:g}", *shown, f"{worse} of {len(told)}"]


def bounds(asked: argparse.Namespace) -> Iterator[list[str]]:
    """A line a set, promise and epsilon."""
    yield ["set", "protects", "epsilon", *asked.oracles]
    for name in asked.sets or BOUNDS:
        for protects in asked.protects:
            for epsilon in asked.epsilons:
                shown = []
                for oracle in asked.oracles:
                    given = None if oracle == "default" else oracle
                    runs = []
                    for seed in range(asked.seeds):
                        how = {"epsilon": epsilon, "protects": protects, "random_state": seed}
                        runs.append(decided(name, given, BOUNDS[name](seed, asked.data), **how))
                    told = np.array(runs)
                    spread = told.std(axis=0)
                    shown.append(
                        f"{told[:, 0].mean():.3f} ± {spread[0]:.3f} @ {told[:, 1].mean():.3f} ± "
                        f"{spread[1]:.3f}"
                    )
                yield [name, protects, f"{epsilon:g}", *shown]


def usual_folder() -> str | None:
    """Where the data are looked for first."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return os.environ.get("FAIRVEIL_DATA") or (str(beside) if beside.is_dir() else None)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("what", choices=("regression", "bounds", "worst"))
    options.add_argument("--sets", nargs="+", choices=[*REGRESSION, *WORST])
    options.add_argument("--oracles", nargs="+", default=["default"])
    options.add_argument("--protects", nargs="+", default=["records", "sensitive_features"])
    options.add_argument(
        "--epsilons", type=float, nargs="+", default=[0.5, 1.0, 3.0, 1000.0, math.inf]
    )
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--data", default=usual_folder())
    asked = options.parse_args()
    # that a bound is missed, and that bounds of columns are not stated: the tables show both
    warnings.simplefilter("ignore")
    for count, line in enumerate(
        {"regression": regression, "bounds": bounds, "worst": worst}[asked.what](asked)
    ):
        print("| " + " | ".join(line) + " |", flush=True)
        if count == 0:
            print("|" + " --- |" * len(line), flush=True)


if __name__ == "__main__":
    main()
