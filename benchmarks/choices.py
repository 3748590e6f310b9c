"""Scoring 10,000 candidate decisions on Adult in one pass against one pass each. Prints JSON, a
line a kind of candidates.

    python benchmarks/choices.py

One pass is a whole `Curator.choose` among candidates that were not counted before, without noise:
rows to counts of decisions by sex and label, counts to scores, scores to the best. The scores are a
cost a decision, or, "by a function", a `Score` that is not linear. Kinds of candidates:

- cuts: 100 directions with 100 edges each, one `ScoreHistogram`. Aim: at least 20 times faster than
  one pass each;
- thresholds: one direction with 10,000 edges, one `ScoreHistogram`;
- rules: 10,000 linear rules that have nothing in common, one `PredictionHistogram`.

A pass each is, of the same rules one by one, the bare pass over the rows, to counts; "a choice
each" is all that one pass does. They are timed for `--sample` rules of the 10,000, spread evenly,
and multiplied. All on one thread and on as many as the curator takes by itself, whichever is
faster. Jobs take turns; the least time of each counts.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.curator import (
    Curator,
    Linear,
    PredictionHistogram,
    Question,
    Rows,
    Score,
    ScoreHistogram,
)
from fairveil.curator.totals.passes import totals
from fit_speed import adult, least

CANDIDATES = 10_000
Floats = npt.NDArray[np.float64]


def kinds(width: int) -> Iterator[tuple[str, Callable[[Any], Question], Floats]]:
    """Name, question about all candidates (of cells), and the same candidates as linear rules, in
    the same order."""
    rng = np.random.default_rng(0)
    for name, directions in (("cuts", 100), ("thresholds", 1)):
        coef = rng.normal(size=(directions, 1, width))
        edges = np.linspace(-4.0, 4.0, CANDIDATES // directions)
        rules = np.repeat(coef, len(edges), axis=0)
        rules[:, 0, 0] -= np.tile(edges, directions)

        def cuts(cells: Any, coef: Floats = coef, edges: Floats = edges) -> Question:
            return ScoreHistogram(Linear(coef), tuple(edges.tolist()), cells, by_label=True)

        yield name, cuts, rules
    rules = rng.normal(size=(CANDIDATES, 1, width))

    def at_large(cells: Any) -> Question:
        return PredictionHistogram(Linear(rules), cells, by_label=True)

    yield "rules", at_large, rules


def unfairness(cells: int, rows: int) -> Score:
    """Errors, and ten times by how much the groups' shares of wrong decisions for the second class
    lie apart."""

    def function(sums: Floats) -> Floats:
        errors = sums[:, :, 0, 1] + sums[:, :, 1, 0]
        return np.asarray(errors.sum(axis=1) + 10.0 * np.ptp(sums[:, :, 0, 1], axis=1)) / rows

    low, high = np.zeros((cells, 2, 2)), np.zeros((cells, 2, 2))
    low[:, 0, 1], high[:, 0, 1], low[:, 1, 0], high[:, 1, 0] = -9.0, 11.0, 1.0, 1.0
    return Score(function, low / rows, high / rows)


def main() -> None:
    """Time, divide, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sample", type=int, default=50)
    options.add_argument("--turns", type=int, default=5)
    asked = options.parse_args()
    source, name_of_rows = adult()
    rows = Rows(source)
    cells = rows.cells(names=[rows.layout.sensitive_names[0]])
    costs = np.broadcast_to([[0.0, 1.0], [1.0, 0.0]], (cells.count, 2, 2))
    score = unfairness(cells.count, rows.exact_count)
    free = fv.Promise(math.inf, 0.0)
    for name, question, rules in kinds(1 + rows.layout.width):
        some = [
            Linear(rule) for rule in rules[:: max(1, CANDIDATES // asked.sample)][: asked.sample]
        ]

        def together(threads: int | None, by: dict[str, Any], question: Any = question) -> int:
            return Curator(rows, free, threads=threads).choose(question(cells), math.inf, **by)

        def apart(threads: int | None, some: list[Linear] = some) -> list[int]:
            curator = Curator(rows, free, threads=threads)
            questions = [PredictionHistogram(rule, cells, by_label=True) for rule in some]
            return [curator.choose(one, math.inf, costs=costs) for one in questions]

        def bare(threads: int | None, some: list[Linear] = some) -> None:
            for rule in some:
                one = PredictionHistogram(rule, cells, by_label=True)
                totals([(one, [one.scale(rows.layout, None)])], rows, rows.blocks(), threads)

        jobs: dict[str, Callable[[], Any]] = {}
        for threads, suffix in ((None, ""), (1, ", one thread")):
            jobs[f"one pass{suffix}"] = partial(together, threads, {"costs": costs})
            jobs[f"one pass, by a function{suffix}"] = partial(together, threads, {"score": score})
            jobs[f"a pass each{suffix}"] = partial(bare, threads)
            jobs[f"a choice each{suffix}"] = partial(apart, threads)
        seconds = least(jobs, asked.turns)
        seconds |= {
            job: t * CANDIDATES / len(some) for job, t in seconds.items() if job.startswith("a ")
        }
        faster = {
            job: min(t, seconds[f"{job}, one thread"])
            for job, t in seconds.items()
            if "thread" not in job
        }
        line = {
            "candidates": name,
            "how many": len(rules),
            "rows": name_of_rows,
            "seconds": {job: round(t, 4) for job, t in seconds.items()},
            "each is": f"an estimate from {len(some)} passes",
            "times faster than a pass each": round(faster["a pass each"] / faster["one pass"], 1),
            "times faster than a pass each, by a function": round(
                faster["a pass each"] / faster["one pass, by a function"], 1
            ),
            "times faster than a choice each": round(
                faster["a choice each"] / faster["one pass"], 1
            ),
            "aim": 20 if name == "cuts" else None,
            "python": sys.version.split()[0],
            "numpy": np.__version__,
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
