"""Checkouts of this library side by side: steps, rounds and fits, job by job in turns, as ratios.

`python benchmarks/trees.py BEFORE [MORE ...] NOW` with folders of checkouts (`git worktree add`).
Each has a process of its own, which imports its sources and its own `steps.py` and `fit_speed.py`.
Least processor time of each job on one thread of BLAS; then the peak memory of all jobs, and what
importing costs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROWS, BATCH = 36_632, 512
IMPORTS = {
    "import fairveil": "import fairveil",
    "an estimator": "import fairveil; fairveil.RateConstrainedClassifier",
}
COST = (
    "; import resource; used = resource.getrusage(resource.RUSAGE_SELF)"
    "; print(used.ru_utime + used.ru_stime)"
)


def jobs() -> dict[str, tuple[Callable[[], Any], int]]:
    """Each job, and how often it is run together."""
    import scipy.sparse

    import fit_speed
    import steps
    from fairveil.curator import Rows
    from fairveil.data import synthetic

    source = synthetic.ManyRows(ROWS, seed=0)
    rows, (X, y, groups) = Rows(source), fit_speed.one_hot(source)
    csr, fit = scipy.sparse.csr_matrix(X), fit_speed.classifier
    return {
        "Poisson step of 512 rows": (steps.stepper(rows, rate=BATCH / ROWS), 100),
        "Poisson round, fair": (steps.rounds(rows, fair=True), 100),
        "Poisson round, logistic regression": (steps.rounds(rows, fair=False), 100),
        "fused pass": (steps.fused_pass(rows), 10),
        "full batch": (steps.stepper(rows), 10),
        "sensitive features alone": (steps.stepper(rows, protects="sensitive_features"), 5),
        "fit, coded rows": (lambda: fit().fit(source), 1),
        "fit, dense one-hot": (lambda: fit().fit(X, y, sensitive_features=groups), 1),
        "fit, CSR": (lambda: fit().fit(csr, y, sensitive_features=groups), 1),
    }


def serve(tree: str) -> None:
    """Run the jobs that are named on standard input, and print the seconds of each."""
    import warnings

    warnings.simplefilter("ignore")
    sys.path[:0] = [f"{tree}/src", f"{tree}/benchmarks"]
    import fairveil

    if not Path(fairveil.__file__).is_relative_to(tree):
        raise SystemExit(f"{fairveil.__file__} is not of {tree}")
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    known = jobs()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in known:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(json.dumps(peak / 1024), flush=True)
            continue
        job, together = known[name]
        job()
        start = time.process_time()
        for _ in range(together):
            job()
        print(json.dumps((time.process_time() - start) / together), flush=True)


def imported(tree: str, code: str) -> float:
    """Processor seconds of a new process."""
    run = [sys.executable, "-c", code + COST]
    env = {**os.environ, "PYTHONPATH": f"{tree}/src"}
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="+", metavar="CHECKOUT", help="folders, the oldest first")
    parser.add_argument("--turns", type=int, default=7, help="how often each job has its turn")
    parser.add_argument("--serve", action="store_true", help="of one tree, in its own process")
    given = parser.parse_args()
    trees = [str(Path(tree).resolve()) for tree in given.trees]
    if given.serve:
        serve(trees[0])
        return
    children = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve", tree],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for tree in trees
    ]

    def ask(child: Any, name: str) -> float:
        child.stdin.write(name + "\n")
        child.stdin.flush()
        return float(json.loads(child.stdout.readline()))

    names = [json.loads(child.stdout.readline()) for child in children if child.stdout][-1]
    heads = [Path(tree).name for tree in trees]
    print(f"| processor ms | {' | '.join(heads)} | last / first |")
    print("|---" * (len(trees) + 2) + "|")

    def show(what: str, found: list[float], factor: float = 1.0) -> None:
        values = " | ".join(f"{factor * one:.4g}" for one in found)
        print(f"| {what} | {values} | {found[-1] / found[0]:.2f} |", flush=True)

    for name in names:
        turns = [[ask(child, name) for child in children] for _ in range(given.turns)]
        show(name, [min(times) for times in zip(*turns, strict=True)], 1e3)
    for name, code in IMPORTS.items():
        turns = [[imported(tree, code) for tree in trees] for _ in range(given.turns)]
        show(name, [min(times) for times in zip(*turns, strict=True)], 1e3)
    show("peak memory of all jobs, MiB", [ask(child, "memory") for child in children])
    for child in children:
        child.communicate()


if __name__ == "__main__":
    main()
