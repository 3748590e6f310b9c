"""A game of 500 rounds on Adult over the time of one least-squares fit of the same rows. Prints
JSON.

    python benchmarks/game_speed.py

The least-squares fits, each on one BLAS thread and on as many as the library takes by itself ("as
shipped"): scikit-learn's `LinearRegression` and `np.linalg.lstsq` on the dense one-hot matrix with
an intercept, and, for whoever wants the stricter yardstick, the normal equations (`X'X`, `X'y`, one
`solve`) that a game may use itself. Aim: under ten times `LinearRegression` as shipped or on one
thread, whichever is faster. Jobs take turns; the least time of each counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LinearRegression
from threadpoolctl import threadpool_limits

import fairveil as fv
from fit_speed import adult, least, one_hot


def main() -> None:
    """Time, divide, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--rounds", type=int, default=500)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--constraint", default="equalized_odds:0.05")
    asked = options.parse_args()
    rows, source = adult()
    X, y, _ = one_hot(rows)
    ones = np.column_stack([np.ones(len(X)), X])
    target = y.astype(np.float64)

    def game() -> Any:
        model = fv.OracleGameClassifier(
            asked.constraint,
            epsilon=1.0,
            delta=1e-9,
            protects="sensitive_features",
            rounds=asked.rounds,
            random_state=0,
        )
        return model.fit(rows)

    def normal() -> Any:
        """The one-hot columns of a category add up to the intercept: a touch of ridge keeps the
        system regular."""
        return np.linalg.solve(ones.T @ ones + 1e-6 * np.eye(ones.shape[1]), ones.T @ target)

    fits: dict[str, Callable[[], Any]] = {
        "LinearRegression": lambda: LinearRegression().fit(X, target),
        "np.linalg.lstsq": lambda: np.linalg.lstsq(ones, target, rcond=None),
        "normal equations": normal,
    }

    def on_one_thread(job: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            with threadpool_limits(1):
                return job()

        return run

    jobs: dict[str, Callable[[], Any]] = {"game": game, "game, one thread": on_one_thread(game)}
    for name, fit in fits.items():
        jobs |= {name: fit, f"{name}, one thread": on_one_thread(fit)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = least(jobs, asked.turns)
    faster = {name: min(seconds[name], seconds[f"{name}, one thread"]) for name in ("game", *fits)}
    out = {
        "rows": source,
        "columns of the one-hot matrix": X.shape[1],
        "rounds": asked.rounds,
        "seconds": seconds,
        "game / LinearRegression (aim: 10)": faster["game"] / faster["LinearRegression"],
        "game / np.linalg.lstsq": faster["game"] / faster["np.linalg.lstsq"],
        "game / normal equations": faster["game"] / faster["normal equations"],
        "python": sys.version.split()[0],
        "numpy": np.__version__,
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
