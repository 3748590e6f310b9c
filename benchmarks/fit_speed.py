"""Whole fits through the public estimator, against scikit-learn in the same run. Prints JSON.

1. A default fit (epsilon 1, demographic parity 0.05) on Adult's coded rows against
   `LogisticRegression()` on their one-hot matrix, as CSR and as a dense array, on all threads of
   BLAS and on one: whichever is fastest counts. Aim: at most a third.
2. The same fit given that one-hot matrix itself, dense and as CSR, against `LogisticRegression()`
   on it. Aim: at most a half, and a third on CSR.
   Beside both stands the floor: the processor time of a fit's compiled passes over the rows alone.
   A fit without private steps around it could not take less.

Adult is looked for where `FAIRVEIL_DATA` says; without it, synthetic rows of its
shape. Many rows: `scale.py --fit`.
Jobs take turns, and the least time of each counts: what is left out is what other processes took.
`--processor` counts processor seconds on one thread of BLAS, which holds better on a busy machine.
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

from named import named
from sets import Made, dense, whole

ADULT_ROWS = 36_632


def adult() -> tuple[Any, str]:
    """Adult's rows, coded by its schema, or synthetic ones of its shape."""
    from fairveil.errors import DataNotFoundError

    try:
        found = named("adult")
    except DataNotFoundError:
        return Made(ADULT_ROWS), f"NOT ADULT: {ADULT_ROWS:,} synthetic rows of its shape"
    return found.rows, f"Adult, {found.size:,} rows (of the published files)"


def least(
    jobs: dict[str, Callable[[], Any]],
    turns: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """The least seconds of each job; jobs take turns, after one run that does not count."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            start = clock()
            job()
            if turn:
                times[name].append(clock() - start)
    return {name: min(values) for name, values in times.items()}


def classifier() -> Any:
    """The estimator at its defaults."""
    import fairveil as fv

    return fv.FairClassifier(fv.DemographicParity(0.05), epsilon=1.0)


def floor(fit: Callable[[], Any], rows: int, turns: int) -> dict[str, float]:
    """The compiled passes of a fit alone: how many, and their least processor time."""
    from fairveil.core import sums

    plain, found = sums.descend, []
    for _ in range(turns):
        runs: list[tuple[int, float]] = []

        def timed(*given: Any, runs: list[tuple[int, float]] = runs) -> None:
            start = time.thread_time()
            plain(*given)
            runs.append((given[10] - given[9], time.thread_time() - start))

        sums.descend = timed
        try:
            fit()
        finally:
            sums.descend = plain
        found.append((sum(count for count, _ in runs), sum(spent for _, spent in runs)))
    read, spent = min(found, key=lambda one: one[1])
    return {
        "passes": read / rows,
        "processor seconds in passes": spent,
        "nanoseconds a row and pass": 1e9 * spent / read,
    }


def against_sklearn(turns: int, processor: bool) -> dict[str, Any]:
    """Parts 1 and 2."""
    import scipy.sparse
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    def on_one_thread(X: Any, y: Any) -> None:
        with threadpool_limits(1):
            LogisticRegression().fit(X, y)

    rows, source = adult()
    coded = whole(rows)
    X, y, groups = dense(coded), coded.labels, coded.sensitive[0]
    csr = scipy.sparse.csr_matrix(X)
    clock = time.process_time if processor else time.perf_counter
    limited = threadpool_limits(1 if processor else None)
    seconds = least(
        {
            "fit on coded rows": lambda: classifier().fit(rows),
            "fit on the dense matrix": lambda: classifier().fit(X, y, sensitive_features=groups),
            "fit on the CSR matrix": lambda: classifier().fit(csr, y, sensitive_features=groups),
            "LogisticRegression, csr": lambda: LogisticRegression().fit(csr, y),
            "LogisticRegression, dense": lambda: LogisticRegression().fit(X, y),
            "LogisticRegression, dense, one thread": lambda: on_one_thread(X, y),
        },
        turns,
        clock,
    )
    floors = {
        "coded rows": floor(lambda: classifier().fit(rows), len(y), turns),
        "CSR matrix": floor(
            lambda: classifier().fit(csr, y, sensitive_features=groups), len(y), turns
        ),
    }
    iterations = int(LogisticRegression().fit(csr, y).n_iter_[0])
    limited.restore_original_limits()
    on_dense = min(
        seconds["LogisticRegression, dense"], seconds["LogisticRegression, dense, one thread"]
    )
    peer = min(seconds["LogisticRegression, csr"], on_dense)
    on_csr = seconds["fit on the CSR matrix"] / seconds["LogisticRegression, csr"]
    return {
        "rows": source,
        "columns of the one-hot matrix": X.shape[1],
        "seconds": seconds,
        "coded rows / LogisticRegression (aim 1/3)": seconds["fit on coded rows"] / peer,
        "dense matrix / LogisticRegression on it (aim 1/2)": (
            seconds["fit on the dense matrix"] / on_dense
        ),
        "CSR matrix / LogisticRegression on it (aim 1/3)": on_csr,
        "seconds are": "processor time, one thread" if processor else "wall time",
        "floor": floors,
        "iterations of LogisticRegression on CSR": iterations,
        "floor of CSR / LogisticRegression on it": floors["CSR matrix"][
            "processor seconds in passes"
        ]
        / seconds["LogisticRegression, csr"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processor", action="store_true", help="processor seconds on one thread")
    parser.add_argument(
        "--turns", type=int, default=15, help="how often each job is run (default 15)"
    )
    given = parser.parse_args()
    # scikit-learn says that it did not converge, we that delta is large: not the point here
    warnings.simplefilter("ignore")
    out: dict[str, Any] = {"python": sys.version.split()[0], "numpy": np.__version__}
    out["against scikit-learn"] = against_sklearn(given.turns, given.processor)
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
