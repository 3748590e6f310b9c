"""Rounds, seconds and the gap that is left where nothing is private: bounds on means of recalls.
Prints Markdown.

    python benchmarks/stopping.py

`GroupObjectiveClassifier("error", bound, epsilon=inf)` among thresholds and lists of linear rules,
on 3,000 made-up rows of two to four classes. Of three and four classes the first bound cannot be
met. "above the least": no mixture is better by more.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.fairness import objectives


def rows_of(classes: int, seed: int = 0, count: int = 3000) -> tuple[Any, Any, Any]:
    """Three numbers, the first of which goes with the group, and labels that hang on their sum."""
    rng = np.random.default_rng(seed)
    A = rng.integers(2, size=count)
    X = rng.normal(size=(count, 3)) + (A == 1)[:, None] * [1.0, 0.0, 0.0]
    cuts = {2: [1.2], 3: [0.0, 2.0], 4: [-0.5, 1.0, 2.5]}[classes]
    return X, np.digitize(X.sum(axis=1) + rng.normal(size=count), cuts), A


def settings() -> Iterator[tuple[str, int, Any, dict[str, Any]]]:
    """(name, classes, constraint, options)."""
    for classes, bounds in ((2, (0.30, 0.32)), (3, (0.40, 0.56)), (4, (0.50, 0.68))):
        for kind in (objectives.GMean(), objectives.HMean()):
            for bound in bounds:
                name = f"{type(kind).__name__} <= {bound:g}, {classes} classes"
                yield name, classes, kind.at_most(bound), {"decisions": "thresholds"}
    for kind in (objectives.GMean(), objectives.HMean()):
        yield (
            f"{type(kind).__name__} <= 0.155, directions",
            2,
            kind.at_most(0.155),
            {"decisions": "directions"},
        )


def main() -> None:
    """Fit and print."""
    rows = [
        [
            "bound",
            "rounds",
            "seconds",
            "why it stopped",
            "rules",
            "error",
            "mean",
            "above the least",
        ],
        ["---"] * 8,
    ]
    for name, classes, constraint, options in settings():
        X, y, A = rows_of(classes)
        clf = fv.GroupObjectiveClassifier(
            "error",
            constraint,
            epsilon=math.inf,
            protects="sensitive_features",
            random_state=0,
            **options,
        )
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = clf.fit(X, y, sensitive_features=A).outcome_
        seconds = time.perf_counter() - start
        numbers = [f"{found.objective:.5f}", f"{found.values[0]:.5f}", f"{found.excess:.1e}"]
        rows.append(
            [
                name,
                str(found.rounds),
                f"{seconds:.1f}",
                found.reason.name,
                str(len(found.rules)),
                *numbers,
            ]
        )
    print("\n".join("| " + " | ".join(row) + " |" for row in rows))


if __name__ == "__main__":
    main()
