"""One step of descent through the curator, whole, each as a ratio to a peer or a floor in the same
run. Prints JSON.

A step is `answer` on a clipped gradient sum with group costs and a histogram of hard decisions of
one model: new weights and costs each time, batch, sums, noise, plan and log included. Adult's
shape: 36,632 rows, 6 numbers and 7 codes (102 one-hot columns).

1. A Poisson batch of 512 rows against opacus as documented (Poisson loader, hooks, logistic
   regression on the one-hot matrix, the same rate, clip and noise): the answer alone, a whole round
   of the same job (logistic regression without constraints), and a whole round of the fair search
   (costs, answer, the model's step and the duals').
   Aim: 20 times faster. Needs `opacus`; `--opacus PYTHON` runs that part with another Python.
2. A full batch against its own fused pass. Aim: at most 60 microseconds beyond it.
3. The same with only the sensitive column protected (maxima over public rows, loss exact, costs
   noised) against 2. Aim: 2.5.
4. 75 models side by side, a noise source each, against 2. Aim: 30 (300 models in 120 fits).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ADULT_ROWS, BATCH, COLUMNS, MODELS = 36_632, 512, 102, 75
OPACUS_AS_PUBLISHED = 1.87e-3  # seconds a step on a two-core machine, for runs without opacus


def interleaved(jobs: dict[str, tuple[Callable[[], Any], int]], turns: int) -> dict[str, float]:
    """Median seconds of each job. Jobs take turns, of a few runs each, the first not counted: the
    machine's moods hit all."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, (job, together) in jobs.items():
            job()
            for _ in range(together):
                start = time.perf_counter()
                job()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def stepper(
    rows: Any,
    *,
    protects: str = "records",
    rate: float | None = None,
    models: int = 0,
    decisions: str = "hard",
) -> Callable[[], Any]:
    """A function that makes one step of a planned run."""
    from fairveil.curator import (
        FULL,
        Curator,
        GradientSum,
        Linear,
        Measurement,
        Poisson,
        PredictionHistogram,
        describe,
    )
    from fairveil.privacy import NoiseSource, Promise
    from fairveil.privacy.events import Repeated

    cells, rng = rows.cells(), np.random.default_rng(0)
    # the plan of a benchmark: long, and its price of no interest
    promise = Promise(1e6, 1e-6, protects=protects)
    batch = FULL if rate is None else Poisson(rate)
    lead = (models, 1) if models else ()
    weights = rng.normal(size=(*lead, 1 + rows.layout.width)) * 0.1
    costs = rng.normal(size=(*lead[:1], cells.count, 1, 2)) * 0.1

    model = Linear(weights)
    gradient, histogram = (
        GradientSum(model, 1.0, cells, costs),
        PredictionHistogram(model, cells, decisions=decisions),
    )
    first, second = Measurement(gradient, 2000.0), Measurement(histogram, 3000.0)

    # as searches do: the questions of before, about other weights and costs
    def measurements() -> list[Any]:
        model = Linear(weights)
        return [first.about(gradient.at(model, costs)), second.about(histogram.at(model))]

    event = describe(measurements(), rows.layout, promise, batch)
    noise = [NoiseSource.secure() for _ in range(models)] if models else NoiseSource.secure()
    curator = Curator(rows, promise, plan=[Repeated(event, 20_000)], noise=noise)
    return lambda: curator.answer(measurements(), batch)


def rounds(rows: Any, *, fair: bool) -> Callable[[], Any]:
    """A function that makes one whole round of a search on Poisson batches; with a constraint, the
    duals moving."""
    from fairveil.curator import Curator
    from fairveil.fairness import DemographicParity
    from fairveil.learning import LinearDescent, Settings
    from fairveil.learning.lagrangian import planning
    from fairveil.privacy import Promise

    promise = Promise(3.0, 1e-6)
    settings = Settings(sampling_rate=BATCH / ADULT_ROWS, rounds=100_000, dual_start=0.0)
    notions = [DemographicParity(0.05)] if fair else []
    planned = planning.make(
        promise, rows.layout, rows.cells(), notions, settings, public_rows=ADULT_ROWS
    )
    search = LinearDescent(
        planned, np.zeros((1, 0)) if planned.system is None else planned.system.bounds[np.newaxis]
    )
    curator = Curator(rows, promise, plan=search.plan, public_rows=ADULT_ROWS)
    first = search.first()
    state = search.init(curator.answer(first) if first else [])

    def one() -> None:
        nonlocal state
        state = search.step(state, curator.answer(search.measurements(state), search.batch))

    return one


def fused_pass(rows: Any) -> Callable[[], Any]:
    """The floor of a full-batch step: its fused pass over the rows, with nothing around it."""
    from fairveil.curator import GradientSum, Linear, PredictionHistogram
    from fairveil.curator.totals.passes import Passes

    cells, rng = rows.cells(), np.random.default_rng(0)
    model = Linear(rng.normal(size=1 + rows.layout.width) * 0.1)
    questions = [
        GradientSum(model, 1.0, cells, rng.normal(size=(cells.count, 1, 2))),
        PredictionHistogram(model, cells),
    ]
    passes = Passes(
        [(question, [question.scale(rows.layout, None)]) for question in questions], rows
    )
    return lambda: passes.run(questions, rows.blocks())


def opacus_seconds(steps: int) -> float:
    """Seconds a step of opacus as its documentation has it: `make_private` with a Poisson loader,
    hooks, SGD."""
    import warnings

    import torch  # both of another environment, as a rule
    from opacus import PrivacyEngine

    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    X = (torch.rand(ADULT_ROWS, COLUMNS) < 13 / COLUMNS).float()
    y = (torch.rand(ADULT_ROWS, 1) < 0.25).float()
    model = torch.nn.Linear(COLUMNS, 1)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, y), batch_size=BATCH)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=loader,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )
    loss = torch.nn.BCEWithLogitsLoss()
    medians = []
    for threads in (1, torch.get_num_threads()):  # whichever is faster here
        torch.set_num_threads(threads)
        times: list[float] = []
        while len(times) < steps:
            start = time.perf_counter()
            for rows, labels in loader:
                optimizer.zero_grad()
                loss(model(rows), labels).backward()
                optimizer.step()
                now = time.perf_counter()
                times.append(now - start)
                start = now
        medians.append(statistics.median(times[5:]))
    return min(medians)


def opacus_in(python: str, steps: int) -> tuple[float, str]:
    """Opacus's figure and where it comes from: this Python, the other one named, or the published
    figure."""
    if python:
        done = subprocess.run(
            [python, __file__, "--opacus-only", str(steps)],
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout), f"measured in this run with {python}"
    try:
        import opacus
    except ImportError:
        return (
            OPACUS_AS_PUBLISHED,
            "NOT MEASURED HERE (opacus cannot be imported): 1.87 ms, as on another two-core "
            "machine",
        )
    return opacus_seconds(steps), f"measured in this run, opacus {opacus.__version__}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument(
        "--opacus", default="", metavar="PYTHON", help="a Python that can import opacus and torch"
    )
    parser.add_argument(
        "--opacus-only",
        type=int,
        default=0,
        metavar="STEPS",
        help="print opacus's seconds a step and end",
    )
    given = parser.parse_args()
    if given.opacus_only:
        print(opacus_seconds(given.opacus_only))
        return
    from fairveil.curator import Rows
    from fairveil.data import synthetic

    rows = Rows(synthetic.ManyRows(ADULT_ROWS, seed=0))
    batch = {
        "Poisson": (stepper(rows, rate=BATCH / ADULT_ROWS), 200),
        "Poisson round": (rounds(rows, fair=True), 200),
        "Poisson round, logistic regression alone": (rounds(rows, fair=False), 200),
    }
    whole = {
        "fused pass": (fused_pass(rows), 10),
        "full batch": (stepper(rows), 10),
        "sensitive features": (stepper(rows, protects="sensitive_features"), 5),
        "75 models": (stepper(rows, models=MODELS), 2),
    }
    turns = 3 if given.quick else 15
    before, source = opacus_in(given.opacus, 200)
    seconds = {**interleaved(batch, turns), **interleaved(whole, turns)}
    after, _ = opacus_in(given.opacus, 200)
    opacus = statistics.mean([before, after])
    out: dict[str, Any] = {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "opacus": source,
        "milliseconds": {
            name: 1e3 * value for name, value in {**seconds, "opacus": opacus}.items()
        },
        "opacus / Poisson step (aim 20)": opacus / seconds["Poisson"],
        "opacus / whole Poisson round (aim 20)": opacus / seconds["Poisson round"],
        "opacus / the same job, logistic regression alone (aim 20)": opacus
        / seconds["Poisson round, logistic regression alone"],
        "full batch beyond its pass, microseconds (aim 60)": 1e6
        * (seconds["full batch"] - seconds["fused pass"]),
        "sensitive features / full batch (aim 2.5)": seconds["sensitive features"]
        / seconds["full batch"],
        "75 models / full batch (aim 30)": seconds["75 models"] / seconds["full batch"],
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
