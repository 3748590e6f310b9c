"""Whole fits of group objectives on Adult over scikit-learn's logistic regression and the oracle
game. Prints JSON.

    python benchmarks/group_objective_speed.py

Error subject to an equalized-odds gap of 0.05, epsilon 1, at the defaults, under either protection:
the linear-oracle loop of `--rounds` rounds and Frank-Wolfe on all of Adult's columns; exponential
sampling among thresholds of all columns, and among 10,000 linear rules of three numbers (100
directions cut 100 times). `OracleGameClassifier` plays as many rounds as the loop, under the same
protection, by regression: so the loop is timed with that oracle, too. `LogisticRegression()` is
fitted to the dense one-hot matrix. Everything on one BLAS thread and on as many as the library
takes by itself, whichever is faster. Jobs take turns; the least time of each counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import fairveil as fv
from excess import source_of, usual_folder
from fairveil.estimators.settings.setting import built
from fit_speed import least, one_hot

CONSTRAINT = "equalized_odds:0.05"


def main() -> None:
    """Time, divide, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--data", default=usual_folder())
    asked = options.parse_args()
    rows, numbers = source_of(asked.data, "thresholds"), source_of(asked.data, "grid")
    X, y, _ = one_hot(rows)

    def found(source: Any, protects: str, **how: Any) -> Callable[[], Any]:
        promise = {"epsilon": 1.0, "delta": 1e-9, "protects": protects, "random_state": 0}
        return lambda: built(
            fv.GroupObjectiveClassifier, "error", CONSTRAINT, **promise, **how
        ).fit(source)

    def played(protects: str) -> Callable[[], Any]:
        promise = {"epsilon": 1.0, "delta": 1e-9, "protects": protects, "random_state": 0}
        return lambda: fv.OracleGameClassifier(CONSTRAINT, rounds=asked.rounds, **promise).fit(rows)

    peer, game = "LogisticRegression", "OracleGameClassifier"
    jobs: dict[str, Callable[[], Any]] = {peer: lambda: LogisticRegression().fit(X, y)}
    for protects in ("records", "sensitive_features"):
        jobs |= {
            f"{game}, {protects}": played(protects),
            f"linear-oracle, {protects}": found(rows, protects, rounds=asked.rounds),
            f"linear-oracle by regression, {protects}": found(
                rows, protects, rounds=asked.rounds, oracle="regression"
            ),
            f"frank-wolfe, {protects}": found(
                rows, protects, rounds=asked.rounds, method="frank-wolfe"
            ),
            f"exponential, thresholds, {protects}": found(rows, protects, method="exponential"),
            f"exponential, 10,000 rules, {protects}": found(
                numbers, protects, method="exponential", decisions="directions"
            ),
        }

    def on_one_thread(job: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with threadpool_limits(1):
                return job()

        return run

    with warnings.catch_warnings():
        # scikit-learn says that it did not converge, we that a bound is not met
        warnings.simplefilter("ignore")
        seconds = least(
            jobs | {f"{name}, one thread": on_one_thread(job) for name, job in jobs.items()},
            asked.turns,
        )
    faster = {name: min(seconds[name], seconds[f"{name}, one thread"]) for name in jobs}
    out = {
        "rows": len(X),
        "columns of the one-hot matrix": X.shape[1],
        "rounds": asked.rounds,
        "seconds": seconds,
        f"over {peer}": {name: faster[name] / faster[peer] for name in jobs if name != peer},
        f"over {game}": {
            name: faster[name] / faster[f"{game}, {name.rsplit(', ', 1)[-1]}"]
            for name in jobs
            if "-" in name
        },
        "python": sys.version.split()[0],
        "numpy": np.__version__,
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
