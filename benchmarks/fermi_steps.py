"""One step of DP-FERMI's descent on Poisson batches, logistic regression, as a ratio to a floor in
the same run. Prints JSON.

A step is one joint `answer`: the clipped gradient sum of loss and fairness costs by group, and the
soft histogram of predictions by group, which is W's gradient. New weights and costs each time;
batch, sums, noise, plan and log included. Adult's shape: 36,632 rows, 6 numbers and 7 codes (102
one-hot columns). A batch holds 1,024 rows in the mean; so does the floor's. A whole round is that
step with all around it, as `descend` does it: costs of W, questions, the model's step and W's.

The floor: `X_b w` and `X_b' r` alone on the one-hot matrix in float32, the batch's rows gathered.
Aim: at most 6 times that. It is printed without the gather, too. NumPy's BLAS on one thread and on
all: whichever is faster here is the floor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import threadpoolctl

from steps import ADULT_ROWS, interleaved, stepper

BATCH, AIM = 1024, 6.0


def one_hot(rows: Any) -> npt.NDArray[np.float32]:
    """All rows as numbers and indicator columns."""
    parts = []
    for block in rows.blocks():
        flags = [
            np.eye(size, dtype=np.float32)[codes]
            for codes, size in zip(block.codes, rows.layout.code_sizes, strict=True)
        ]
        parts.append(np.hstack([block.numbers.T.astype(np.float32), *flags]))
    return np.ascontiguousarray(np.vstack(parts))


def floor(matrix: npt.NDArray[np.float32], batch: int, *, gather: bool) -> Callable[[], Any]:
    """Scores and gradient of one batch: two products, the rows gathered first where that is
    asked."""
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(len(matrix), batch, replace=False))
    weights = rng.normal(size=matrix.shape[1]).astype(np.float32)
    residuals = rng.normal(size=batch).astype(np.float32)
    ready = np.ascontiguousarray(matrix[chosen])

    def both() -> Any:
        part = matrix.take(chosen, axis=0) if gather else ready
        return part @ weights, residuals @ part

    return both


def whole_round(rows: Any) -> Callable[[], Any]:
    """A function that makes one round of the search for a logistic regression under the penalty."""
    from fairveil.curator import Curator
    from fairveil.learning import Settings
    from fairveil.learning.lagrangian import fermi
    from fairveil.privacy import Promise

    promise = Promise(3.0, 1e-6)
    settings = Settings(
        sampling_rate=BATCH / ADULT_ROWS, rounds=200_000, thresholds_share=0.0, histogram_share=0.5
    )
    notion = fermi.notion_of("demographic_parity")
    search = fermi.make(
        promise, rows.layout, rows.cells(), notion, [1.0], settings, public_rows=ADULT_ROWS
    )
    curator = Curator(rows, promise, plan=search.plan, public_rows=ADULT_ROWS)
    first = search.first()
    state = search.init(curator.answer(first) if first else [])
    if (scaling := search.scaling(state)) is not None:
        curator.rescale(*scaling)

    def one() -> None:
        nonlocal state
        if search.stop(state) is None:
            state = search.step(
                state,
                curator.answer(
                    search.measurements(state), search.batch_for(state), purpose="round"
                ),
            )

    return one


def main() -> None:
    """Measure, in turns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    turns = 5 if parser.parse_args().quick else 25
    from fairveil.curator import Rows
    from fairveil.data import synthetic

    source = synthetic.ManyRows(ADULT_ROWS, seed=0)
    matrix, rows = one_hot(source), Rows(source)
    rate = BATCH / ADULT_ROWS
    jobs = {
        "step": (stepper(rows, rate=rate, decisions="soft"), 100),
        "whole round": (whole_round(rows), 100),
        "floor": (floor(matrix, BATCH, gather=True), 100),
        "floor without the gather": (floor(matrix, BATCH, gather=False), 100),
    }
    measured = {"all": interleaved(jobs, turns)}
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        measured["one"] = interleaved(jobs, turns)
    best = min(measured.values(), key=lambda part: part["floor"])
    out = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "batch": BATCH,
        "microseconds": {
            f"{name}, BLAS threads: {k}": 1e6 * v
            for k, part in measured.items()
            for name, v in part.items()
        },
        f"step / floor (aim {AIM:g})": best["step"] / best["floor"],
        f"whole round / floor (aim {AIM:g})": best["whole round"] / best["floor"],
        "step / floor without the gather": best["step"] / best["floor without the gather"],
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
