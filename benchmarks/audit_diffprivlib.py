"""Linear regression of diffprivlib, audited as a function of the user's: moments without noise.

    pip install diffprivlib
    python benchmarks/audit_diffprivlib.py [--epsilon 1] [--trials 1000] [--rows 1]

diffprivlib is no dependency of this library, and needs scikit-learn below 1.7. It claims pure privacy when a
row is replaced. Its second moments have no noise where bounds begin at 0.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import LinearRegression

import fairveil as fv
from fairveil.facts import Number, Schema


def regression(low: float) -> Any:
    """A user's `fit`: hours and pay between `low` and 1."""

    def diffprivlib_regression(table: dict[str, Any], seed: int, epsilon: float) -> Any:
        hours, pay = np.asarray(table["hours"])[:, None], np.asarray(table["pay"])
        clf = LinearRegression(
            epsilon=epsilon,
            bounds_X=(low, 1.0),
            bounds_y=(low, 1.0),
            fit_intercept=False,
            random_state=np.random.RandomState(seed),
        )
        return clf.fit(hours, pay).coef_

    return diffprivlib_regression


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--trials", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for low in (0.0, -1.0):
        schema = Schema({"hours": Number(low, 1.0), "pay": Number(low, 1.0)}, target="pay")
        start = time.process_time()
        found = fv.audit.run(
            regression(low),
            schema=schema,
            epsilon=given.epsilon,
            delta=0.0,
            neighbours="replace-one",
            trials=given.trials,
            rows=given.rows,
            power=False,
            progress=False,
        )
        print(f"bounds from {low:g} to 1, {time.process_time() - start:.1f} s of the processor")
        print(found, "\n", flush=True)


if __name__ == "__main__":
    main()
