"""Bounds on groups' log losses: what fits reach, beside the bound, the fit without one, and the
best constant. Prints Markdown.

    python benchmarks/group_losses.py --sets unlike law_school adult-sex adult-race --seeds 5
    python benchmarks/group_losses.py --sets unlike --protects records sensitive_features --epsilons
    1 inf --json

Three methods, all linear models of log loss at their defaults: `GroupObjectiveClassifier("error",
BoundedGroupLoss(b, loss="log"), loss="log")`, `TailoredClassifier(group_loss_bound=b)` of people,
and the first without its bound ("free"). Losses are computed exactly from the model's probabilities
on the rows of the fit, since these are what a bound is about: neither noise nor a split stands
between the bound and what is shown. The bound of a set is the part `--part` of the way from the
largest group's loss of the free fit to the least that the largest can be, both without privacy.

`unlike`: 8,000 made-up rows of two numbers in [-1, 1], with log odds 3 a + b in four fifths of them
and 4 b - a in the rest, so that what is best for everyone is bad for the second group. The others
are the files of `fairveil data`: bar passage by race, incomes by sex and by race, all columns but
the sensitive ones, numbers scaled by their public bounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil import data
from fairveil.estimators.settings.setting import built
from fairveil.facts import Category, Number, Schema
from fairveil.fairness import BoundedGroupLoss

Floats = npt.NDArray[np.float64]
REAL = {
    "law_school": ("law_school", "race"),
    "adult-sex": ("adult", "sex"),
    "adult-race": ("adult", "race"),
}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows, with the labels' codes and the groups' keys."""

    rows: Any
    shown: Any
    labels: npt.NDArray[np.intp]
    groups: npt.NDArray[Any]

    @property
    def sizes(self) -> dict[str, int]:
        """By group."""
        keys, counts = np.unique(self.groups.astype(str), return_counts=True)
        return dict(zip(keys.tolist(), counts.tolist(), strict=True))

    def losses(self, law: Floats) -> tuple[float, float]:
        """(the largest group's mean log loss, everyone's)."""
        each = -np.log(np.maximum(law[np.arange(len(law)), self.labels], 1e-12))
        return max(float(each[self.groups == key].mean()) for key in np.unique(self.groups)), float(
            each.mean()
        )

    @property
    def constant(self) -> tuple[float, float]:
        """Of the constant that is best for everyone."""
        shares = np.bincount(self.labels) / len(self.labels)
        return self.losses(np.broadcast_to(shares, (len(self.labels), len(shares))))


def unlike(count: int = 8000, seed: int = 3) -> Table:
    """Two groups whose log odds differ."""
    rng = np.random.default_rng(seed)
    second = (rng.random(count) < 0.2).astype(int)
    X = rng.uniform(-1, 1, size=(count, 2))
    slopes = np.where(second[:, None] == 1, [-1.0, 4.0], [3.0, 1.0])
    y = ((X * slopes).sum(axis=1) + rng.logistic(size=count) > 0).astype(int)
    schema = Schema(
        {"a": Number(-1, 1), "b": Number(-1, 1), "g": Category((0, 1)), "y": Category((0, 1))},
        target="y",
        sensitive=("g",),
    )
    table = {"a": X[:, 0], "b": X[:, 1], "g": second, "y": y}
    return Table(data.encode(table, schema), table, y, second)


def real(name: str, folder: str | None) -> Table:
    """A set of the catalogue, by one sensitive column."""
    of, column = REAL[name]
    found = data.get(of, folder, sensitive=(column,))
    target = found.schema.target
    assert target is not None
    schema = replace(found.schema, sensitive=(column,))
    table = {key: np.asarray(values) for key, values in found.table.items()}
    rows = data.encode(table, schema)
    known = [str(value) for value in rows.layout.classes]
    labels = np.array([known.index(str(value)) for value in table[target].tolist()])
    return Table(rows, table, labels, table[column])


def methods(bound: float) -> dict[str, Callable[..., Any]]:
    """By name: an estimator from its promise."""
    kept = BoundedGroupLoss(bound, loss="log")
    return {
        "free": lambda **how: built(fv.GroupObjectiveClassifier, "error", loss="log", **how),
        "group objective": lambda **how: built(
            fv.GroupObjectiveClassifier, "error", kept, loss="log", **how
        ),
        "tailored": lambda **how: fv.TailoredClassifier(
            limits=fv.GroupLimits(objective="people"), group_loss_bound=bound, **how
        ),
    }


def reached(make: Callable[..., Any], table: Table, **how: Any) -> tuple[float, float]:
    """Of one fit."""
    with warnings.catch_warnings():
        # that a bound is certainly not met: it is what the table shows
        warnings.simplefilter("ignore")
        fitted = make(**how).fit(table.rows)
    return table.losses(np.asarray(fitted.predict_proba(table.shown)))


def measured(asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A line a set, promise, epsilon and method."""
    for name in asked.sets:
        table = unlike() if name == "unlike" else real(name, asked.data)
        exact = {"epsilon": math.inf, "random_state": 0}
        free = reached(methods(1.0)["free"], table, **exact)
        worst = reached(
            lambda **how: built(
                fv.GroupObjectiveClassifier, "largest_group_loss", loss="log", **how
            ),
            table,
            **exact,
        )
        bound = round(free[0] + asked.part * (worst[0] - free[0]), 3)
        head = {
            "set": name,
            "groups": table.sizes,
            "bound": bound,
            "least": worst[0],
            "constant": table.constant,
        }
        for protects in asked.protects:
            for epsilon in asked.epsilons:
                for method, make in methods(bound).items():
                    if method not in asked.methods:
                        continue
                    how = {"epsilon": epsilon, "protects": protects}
                    runs = [
                        reached(make, table, random_state=seed, **how)
                        for seed in range(asked.seeds)
                    ]
                    told = np.array(runs if math.isfinite(epsilon) else runs[:1])
                    line = {
                        "protects": protects,
                        "epsilon": epsilon,
                        "method": method,
                        "runs": len(told),
                    }
                    line |= {
                        "largest": told[:, 0].mean(),
                        "worst run": told[:, 0].max(),
                        "overall": told[:, 1].mean(),
                    }
                    yield head | line


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """A row a set, promise and epsilon; of each method the largest group's loss (of the worst run)
    and everyone's."""
    names = list(dict.fromkeys(line["method"] for line in lines))
    head = ["set", "protects", "bound", "best constant", "epsilon", *names]
    rows = [head, ["---"] * len(head)]
    by: dict[tuple[Any, ...], dict[str, Any]] = {}
    for line in lines:
        key = (
            line["set"],
            line["protects"],
            line["bound"],
            tuple(line["constant"]),
            line["epsilon"],
        )
        by.setdefault(key, {})[line["method"]] = line
    for (name, protects, bound, constant, epsilon), told in by.items():
        cells = [
            f"{one['largest']:.3f} ({one['worst run']:.3f}), {one['overall']:.3f}"
            for one in map(told.get, names)
            if one
        ]
        rows.append(
            [
                name,
                protects,
                f"{bound:.3f}",
                f"{constant[0]:.3f}, {constant[1]:.3f}",
                f"{epsilon:g}",
                *cells,
            ]
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def usual_folder() -> str | None:
    """Where the data are looked for first."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return os.environ.get("FAIRVEIL_DATA") or (str(beside) if beside.is_dir() else None)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sets", nargs="+", choices=["unlike", *REAL], default=["unlike", *REAL])
    options.add_argument(
        "--protects", nargs="+", choices=("records", "sensitive_features"), default=["records"]
    )
    options.add_argument(
        "--epsilons", type=float, nargs="+", default=[0.5, 1.0, 5.0, 1000.0, math.inf]
    )
    options.add_argument("--methods", nargs="+", default=["free", "group objective", "tailored"])
    options.add_argument("--part", type=float, default=0.5)
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--data", default=usual_folder())
    options.add_argument(
        "--json", action="store_true", help="print a line of JSON for each, instead of a table"
    )
    asked = options.parse_args()
    lines = []
    for line in measured(asked):
        lines.append(line)
        if asked.json:
            print(json.dumps(line), flush=True)
    if not asked.json:
        print(markdown(lines))


if __name__ == "__main__":
    main()
