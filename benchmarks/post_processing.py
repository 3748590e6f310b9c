"""Post-processing of a million decisions in 20 groups, beyond the base model: fit and predict, and
NumPy's floor. Prints JSON.

    python benchmarks/post_processing.py

The base model answers from one column of X and is already fitted, so that it costs next to nothing;
what it does cost is timed alone and taken off. The floor, in the same run: one `np.bincount` of a
million row keys (group, label, decision), which is what a fit must do at least, and one draw a row
against a looked-up probability, which is what a prediction must do at least.

Aim: fit and predict together under a second beyond the base. Jobs take turns; the least time of
each counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

import fairveil as fv

GROUPS = 20


class FirstColumn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A base that costs next to nothing: it decides by the sign of the first column."""

    def fit(self, X: Any, y: Any) -> FirstColumn:
        """Nothing to learn but the classes."""
        self.classes_ = np.unique(y)
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """By the sign."""
        return self.classes_[(np.asarray(X)[:, 0] > 0).astype(np.intp)]

    def decision_function(self, X: Any) -> npt.NDArray[Any]:
        """The column."""
        return np.asarray(X)[:, 0]


def sample(
    rows: int,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Scores, labels that they foretell better in some groups than in others, and groups of unequal
    sizes."""
    rng = np.random.default_rng(0)
    groups = rng.choice(GROUPS, size=rows, p=np.arange(1, GROUPS + 1) / (GROUPS * (GROUPS + 1) / 2))
    labels = (rng.random(rows) < 0.2 + 0.02 * groups).astype(np.int64)
    scores = (2.0 * labels - 1.0) * (0.5 + 0.05 * groups) + rng.normal(size=rows)
    return np.column_stack([scores, rng.normal(size=rows)]), labels, groups


def least(jobs: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """The least seconds of each job; jobs take turns, after one run that does not count."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def main() -> None:
    """Time, subtract, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--constraint", default="equalized_odds:0.05")
    options.add_argument(
        "--predict-method",
        choices=("auto", "predict"),
        default="predict",
        help="auto: thresholds on the score",
    )
    asked = options.parse_args()
    X, y, groups = sample(asked.rows)
    base = FirstColumn().fit(X, y)
    keys = (groups * 2 + y) * 2 + base.predict(X)
    chances = np.random.default_rng(1).random((GROUPS, 2))
    decisions = base.predict(X)
    draws = np.random.default_rng(2)

    def model() -> Any:
        return fv.OddsPostProcessor(
            base,
            asked.constraint,
            epsilon=1.0,
            delta=1e-7,
            protects="sensitive_features",
            random_state=0,
            predict_method=asked.predict_method,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model().fit(X, y, sensitive_features=groups)
        seconds = least(
            {
                "base predict": lambda: base.predict(X),
                "fit": lambda: model().fit(X, y, sensitive_features=groups),
                "predict": lambda: fitted.predict(X, sensitive_features=groups, random_state=0),
                "predict_proba": lambda: fitted.predict_proba(X, sensitive_features=groups),
                "floor of fit: one bincount": lambda: np.bincount(keys, minlength=4 * GROUPS),
                "floor of predict: look up and draw": lambda: (
                    draws.random(asked.rows) < chances[groups, decisions]
                ),
            },
            asked.turns,
        )
    beyond = {
        name: seconds[name] - seconds["base predict"]
        for name in ("fit", "predict", "predict_proba")
    }
    out = {
        "rows": asked.rows,
        "groups": GROUPS,
        "seconds": seconds,
        "seconds beyond the base": beyond,
        "fit and predict beyond the base (aim: 1)": beyond["fit"] + beyond["predict"],
        "fit / one bincount": beyond["fit"] / seconds["floor of fit: one bincount"],
        "predict / look up and draw": beyond["predict"]
        / seconds["floor of predict: look up and draw"],
        "python": sys.version.split()[0],
        "numpy": np.__version__,
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
