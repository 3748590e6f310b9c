"""A frontier of 300 models (5 gaps x 4 epsilons x 15 seeds) against one solo fit of the same table.
Prints JSON.

Adult's shape: 36,632 training rows, 6 numbers and 7 codes (102 one-hot columns), 2 groups; 12,211
held-out rows. Aim: at most 120 fits. Both are whole calls: reading the rows, planning and pricing,
training, publishing; the frontier also measures every model on the held-out rows.

The arithmetic floor is the fused pass over the rows, clipped gradient and decisions of one model,
in a panel of 75, and nothing around it: x 120 rounds x 300 models. Jobs take turns in one process,
so that the machine's moods hit all of them; processor seconds (of all threads) stand beside, for
machines that have something else to do: where a job had far fewer cores than there are, judge by
those.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

TRAIN, TEST, PANEL = 36_632, 12_211, 75
GAPS, EPSILONS, SEEDS = (0.2, 0.15, 0.1, 0.05, 0.02), (0.5, 1.0, 2.0, 3.0), 15
ROUNDS = 120
AIM = 120.0


def seconds(job: Callable[[], Any]) -> tuple[float, float]:
    """One run of a job: on the clock, and of the processor."""
    start, worked = time.perf_counter(), time.process_time()
    job()
    return time.perf_counter() - start, time.process_time() - worked


def panel_pass(source: Any, models: int) -> Callable[[], Any]:
    """The fused pass of a panel over all rows: its sums, with nothing around them."""
    from fairveil.curator import GradientSum, Linear, PredictionHistogram, Rows
    from fairveil.curator.totals.passes import Passes

    rows, rng = Rows(source), np.random.default_rng(0)
    cells = rows.cells()
    model = Linear(rng.normal(size=(models, 1, 1 + rows.layout.width)) * 0.1)
    costs = rng.normal(size=(models, cells.count, 1, 2)) * 0.1
    questions = [GradientSum(model, 2.0, cells, costs), PredictionHistogram(model, cells)]
    passes = Passes(
        [(question, [question.scale(rows.layout, None)]) for question in questions], rows
    )
    return lambda: passes.run(questions, rows.blocks())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=3, help="how often each is run")
    given = parser.parse_args()

    import fairveil as fv
    from fairveil.data import synthetic

    train, test = synthetic.ManyRows(TRAIN, seed=0), synthetic.ManyRows(TEST, seed=1)
    grid: dict[str, Any] = {"gaps": GAPS, "epsilons": EPSILONS, "seeds": SEEDS}

    def solo() -> None:
        fv.RateConstrainedClassifier(fv.DemographicParity(0.05), random_state=0).fit(train)

    found: list[fv.Frontier] = []

    def whole() -> None:
        found.append(fv.frontier(train, test=test, **grid))

    floor = panel_pass(train, PANEL)
    for job in (solo, floor):  # compiles
        job()
    fv.frontier(train, gaps=(0.1, 0.05), epsilons=(1.0,), seeds=2)
    times: dict[str, list[tuple[float, float]]] = {"solo fit": [], "frontier": [], "panel pass": []}
    for _ in range(given.turns):
        times["solo fit"] += [seconds(solo) for _ in range(5)]
        times["frontier"].append(seconds(whole))
        times["panel pass"] += [seconds(floor) for _ in range(5)]
        times["solo fit"] += [seconds(solo) for _ in range(5)]
    middle, worked = (
        {name: statistics.median(one[k] for one in values) for name, values in times.items()}
        for k in (0, 1)
    )
    models = len(GAPS) * len(EPSILONS) * SEEDS
    passes = ROUNDS * models / PANEL
    least = middle["panel pass"] * passes
    out = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "models": models,
        "seconds": middle,
        "processor seconds": worked,
        "cores had": {name: worked[name] / middle[name] for name in middle},
        "frontier / solo fit (aim 120)": middle["frontier"] / middle["solo fit"],
        "arithmetic floor, seconds": least,
        "arithmetic floor / solo fit": least / middle["solo fit"],
        "processor: frontier / solo fit": worked["frontier"] / worked["solo fit"],
        "processor: arithmetic floor / solo fit": worked["panel pass"]
        * passes
        / worked["solo fit"],
        "composed epsilon": found[0].epsilon,
        "met": middle["frontier"] <= AIM * middle["solo fit"],
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
