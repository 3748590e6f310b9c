"""Budgets by group on many rows: standard errors and shares, seconds, memory and passes; and a fit
beside scikit-learn's.

    python benchmarks/tailoring_speed.py                     16 million rows, in a process of its own, and the ratio
    python benchmarks/tailoring_speed.py --sizes 8000000 16000000 --rhos 2 4.5 8 12.5 --markdown      tables 2 and 3

Tables 2 and 3 of the paper: a group of N rows and one of 500, each y = x + N(0, 1). "s" is a
released standard error, in units of y, "share" what Algorithm 1 makes of it, s_k^2 / sum s^2; "s /
sqrt(n)" and its squares' shares are what the paper prints. Seconds and memory are of a fit of coded
rows in float32 that are held in memory, in a process of its own after a small fit (imports and
compiled code are not counted). Memory "in all" is the process's peak. Passes: the curator's
answers, and scalings.

The ratio: least squares of 200,000 rows x 20 in four groups, given as arrays, over
`LinearRegression().fit` in the same run, on one BLAS thread and on as many as there are, whichever
is faster. Aims: 90 s, 3 GiB, 3 passes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.curator import Curator
from fairveil.estimators.settings.setting import built
from fit_speed import GIB, least, peak
from tailoring import TAILORED, Arm, Law, epsilon_of, markdown, options_of

SMALL = 500
STEADY, DESCENT_ROUNDS = 200_000, 100


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """What goes over all coded rows meanwhile: the curator's answers, and scaling, which copies the
    numbers."""
    done = {"answers": 0, "scalings": 0}
    answer, rescale = Curator.answer, Curator.rescale

    def answered(*given: Any, **how: Any) -> Any:
        done["answers"] += 1
        return answer(*given, **how)

    def rescaled(*given: Any, **how: Any) -> Any:
        done["scalings"] += 1
        return rescale(*given, **how)

    Curator.answer, Curator.rescale = answered, rescaled  # type: ignore[method-assign]
    try:
        yield done
    finally:
        Curator.answer, Curator.rescale = answer, rescale  # type: ignore[method-assign]


def one_fit(law: Law, rho: float, method: str, arm: Arm, seed: int) -> Any:
    """Not fitted yet."""
    return built(
        fv.TailoredRegressor,
        epsilon=epsilon_of(rho),
        random_state=seed,
        **options_of(method, law.half, arm),
    )


def large(count: int, rho: float, method: str, allocation: str) -> dict[str, Any]:
    """One fit, in this process."""
    spend = "total" if allocation == "standard-error" else "person"
    arm = (
        TAILORED
        if allocation == "standard-error"
        else Arm(allocation, "total", {"allocation": allocation, "spend": spend})
    )
    law = Law((count, SMALL), (1.0, 1.0), (1.0, 1.0))
    few = Law((1_000, SMALL), law.slopes, law.noises)
    one_fit(few, rho, method, arm, 0).fit(few.rows(0, precision="float32"))
    rows = law.rows(0, precision="float32")
    held = peak()
    start = time.perf_counter()
    with counted() as passes:
        told = one_fit(law, rho, method, arm, 0).fit(rows).tailoring_
    seconds = time.perf_counter() - start
    s = np.array(told.errors) * law.half
    each = s**2 / np.array(told.counts)
    return {
        "sizes": law.sizes,
        "rho": rho,
        "method": method,
        "allocation": allocation,
        "runs": 1,
        "no information": int("no information" in told.why),
        "s": s.tolist(),
        "share": list(told.shares),
        "s / sum s": (s / s.sum()).tolist(),
        "s / sqrt(n)": np.sqrt(each).tolist(),
        "share by s^2 / n": (each / each.sum()).tolist(),
        "seconds (aim 90)": seconds,
        "passes (aim 3)": passes,
        "peak in all, GiB (aim 3)": peak() / GIB,
        "growth of the fit, GiB": (peak() - held) / GIB,
    }


def beside(turns: int) -> dict[str, Any]:
    """Against scikit-learn."""
    from sklearn.linear_model import LinearRegression
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (STEADY, 20))
    A = rng.choice(4, STEADY, p=(0.7, 0.2, 0.08, 0.02))
    y = X @ rng.normal(size=20) / 3.0 + 0.3 * A * X[:, 0] + 0.3 * rng.normal(size=STEADY)

    def on_one_thread() -> None:
        with threadpool_limits(1):
            LinearRegression().fit(X, y)

    def fit(**how: Any) -> Callable[[], Any]:
        model = built(fv.TailoredRegressor, target_bounds=(-5.0, 5.0), random_state=0, **how)
        return lambda: model.fit(X, y, sensitive_features=A)

    jobs: dict[str, Callable[[], Any]] = {
        "moments, standard-error": fit(method="moments", allocation="standard-error"),
        "moments, least-noise": fit(method="moments"),
        "descent, standard-error": fit(
            method="descent", allocation="standard-error", rounds=DESCENT_ROUNDS
        ),
        "descent, least-noise": fit(method="descent", rounds=DESCENT_ROUNDS),
        "LinearRegression": lambda: LinearRegression().fit(X, y),
        "LinearRegression, one thread": on_one_thread,
    }
    seconds = least(jobs, turns)
    peer = min(seconds["LinearRegression"], seconds["LinearRegression, one thread"])
    ours = [name for name in jobs if not name.startswith("LinearRegression")]
    return {
        "rows": STEADY,
        "columns": 20,
        "seconds": seconds,
        "over LinearRegression": {name: seconds[name] / peer for name in ours},
        "python": sys.version.split()[0],
        "numpy": np.__version__,
    }


def main() -> None:
    """Fit, time, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sizes", type=int, nargs="*", default=[16_000_000])
    options.add_argument("--rhos", type=float, nargs="+", default=[8.0])
    options.add_argument("--method", choices=("moments", "descent"), default="moments")
    options.add_argument("--allocation", default="standard-error")
    options.add_argument("--turns", type=int, default=5, help="of the ratio; 0: none")
    options.add_argument(
        "--markdown",
        action="store_true",
        help="print the standard errors as a table, the rest as JSON",
    )
    options.add_argument(
        "--here", action="store_true", help="fit the first size in this process, and end"
    )
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    if asked.here:
        print(json.dumps(large(asked.sizes[0], asked.rhos[0], asked.method, asked.allocation)))
        return
    lines = []
    for size in asked.sizes:
        for rho in asked.rhos:
            given = [
                "--sizes",
                str(size),
                "--rhos",
                str(rho),
                "--method",
                asked.method,
                "--allocation",
                asked.allocation,
            ]
            done = subprocess.run(
                [sys.executable, __file__, "--here", *given],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            lines.append(json.loads(done.stdout))
    if asked.markdown and lines:
        print(markdown(lines))
    out = {"many rows": lines} | (
        {"beside scikit-learn": beside(asked.turns)} if asked.turns else {}
    )
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
