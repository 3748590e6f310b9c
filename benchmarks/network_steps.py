"""One private step of a network through the curator, as a ratio to plain SGD and to opacus in the
same run. Prints JSON.

A step is `answer` on a clipped gradient sum with group costs and a histogram of hard decisions of
one network: new parameters and costs each time; rows gathered, forward, backward, clipping, exact
sums, noise, plan and log, and the parameters move. Plain SGD gathers the same rows, goes forward
and backward and moves. Opacus: ghost clipping and its ordinary hooks, the batch's rows gathered,
without its Poisson loader.

1. LeNet, MNIST's shape, batch 256. Aims: at most 1.0 of opacus' ghost clipping, at most 2.5 times
   plain SGD.
2. A network with two hidden layers of 64, and one of 256, 105 inputs, two classes, batch 2,048.
   Aim: at most 2 times plain SGD.
3. The integer noise of 60 thousand and 1.6 million parameters by itself.

Needs `torch`; opacus in the same environment, or `--opacus PYTHON` for a Python that has both (then
LeNet's plain SGD is timed there too, and opacus' ratio to it is carried over).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

IMAGES, IMAGE_ROWS, TABLE_ROWS, COLUMNS = 256, 10_240, 36_864, 105
Step = Callable[[], Any]


clock = time.perf_counter


def interleaved(jobs: dict[str, Step], turns: int, together: int = 3) -> dict[str, float]:
    """Median seconds of each job. Jobs take turns, of a few runs each, the first not counted: the
    machine's moods hit all."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(turns):
        for name, job in jobs.items():
            job()
            for _ in range(together):
                start = clock()
                job()
                times[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def lenet() -> Any:
    from torch import nn

    return nn.Sequential(
        *(
            nn.Conv2d(1, 6, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
        ),
        *(
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, 10),
        ),
    )


def dense(hidden: int) -> Any:
    from torch import nn

    return nn.Sequential(
        *(
            nn.Linear(COLUMNS, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 2),
        )
    )


def data(rows: int, columns: int, classes: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return (
        rng.random((rows, columns), np.float32),
        rng.integers(0, classes, rows),
        rng.integers(0, 5, rows),
    )


def plain(module: Any, X: Any, y: Any, batch: int, shape: tuple[int, ...]) -> Step:
    """Plain SGD."""
    import torch

    rng, optimizer, loss = (
        np.random.default_rng(1),
        torch.optim.SGD(module.parameters(), lr=0.01),
        torch.nn.CrossEntropyLoss(),
    )
    given, labels = torch.from_numpy(X), torch.from_numpy(y)

    def step() -> None:
        index = torch.from_numpy(rng.integers(0, len(X), batch))
        optimizer.zero_grad()
        loss(module(given[index].reshape(-1, *shape)), labels[index]).backward()
        optimizer.step()

    return step


def private(module: Any, X: Any, y: Any, A: Any, batch: int, shape: tuple[int, ...]) -> Step:
    """One step through the curator."""
    from fairveil.curator import (
        Curator,
        Network,
        NetworkGradient,
        NetworkHistogram,
        Poisson,
        Rows,
        describe,
    )
    from fairveil.models import Skeleton
    from fairveil.privacy import Promise
    from fairveil.privacy.events import Repeated

    rows = Rows.from_arrays(X, y, [A])
    skeleton = Skeleton.of(module, X.shape[1], len(rows.layout.classes or ()), input_shape=shape)
    cells, promise, at, rng = (
        rows.cells(),
        Promise(1e6, 1e-6),
        Poisson(batch / len(X)),
        np.random.default_rng(2),
    )
    parameters = skeleton.start.copy()
    costs = rng.normal(size=(cells.count, 1, skeleton.classes)) * 0.1
    model = Network(skeleton, parameters)
    gradient, histogram = NetworkGradient(model, 1.0, cells, costs), NetworkHistogram(model, cells)
    event = describe([(gradient, 1.0), (histogram, 20.0)], rows.layout, promise, at)
    curator = Curator(rows, promise, plan=[Repeated(event, 1_000_000)])

    def step() -> None:
        nonlocal parameters
        model = Network(skeleton, parameters)
        measurements = [
            (gradient.at(model, costs * (1 + 0.01 * rng.normal())), 1.0),
            (histogram.at(model), 20.0),
        ]
        found, _ = curator.answer(measurements, at)
        parameters = parameters - 1e-6 / batch * found

    return step


def opacus_steps(X: Any, y: Any, batch: int) -> dict[str, Step]:
    """Opacus' ghost clipping and its ordinary hooks on LeNet, batches gathered as in plain SGD."""
    import torch
    from opacus import PrivacyEngine

    out: dict[str, Step] = {}
    given, labels = torch.from_numpy(X), torch.from_numpy(y)
    for mode in ("ghost", "hooks"):
        torch.manual_seed(0)
        module, rng = lenet(), np.random.default_rng(1)
        loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(given, labels), batch_size=batch
        )
        optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
        kind: dict[str, Any] = {
            "noise_multiplier": 1.0,
            "max_grad_norm": 1.0,
            "poisson_sampling": False,
        }
        if mode == "ghost":
            loss = torch.nn.CrossEntropyLoss()
            made = PrivacyEngine().make_private(
                module=module,
                optimizer=optimizer,
                data_loader=loader,
                criterion=loss,
                grad_sample_mode="ghost",
                **kind,
            )
            module, optimizer, loss, _ = made
        else:
            loss = torch.nn.CrossEntropyLoss()
            module, optimizer, _ = PrivacyEngine().make_private(
                module=module, optimizer=optimizer, data_loader=loader, **kind
            )

        def step(
            module: Any = module, optimizer: Any = optimizer, loss: Any = loss, rng: Any = rng
        ) -> None:
            index = torch.from_numpy(rng.integers(0, len(X), batch))
            optimizer.zero_grad()
            loss(module(given[index].reshape(-1, 1, 28, 28)), labels[index]).backward()
            optimizer.step()

        out[f"opacus {mode}"] = step
    return out


def noise(parameters: int) -> Step:
    """The noise of a step by itself, at the gradient's grid."""
    from fairveil.privacy import NoiseSource

    source, number = NoiseSource.secure(), iter(range(1_000_000))
    return lambda: source.stream("noise", next(number)).rounded_gaussian(2.0**36, parameters)


def opacus_in(python: str, turns: int) -> dict[str, float]:
    done = subprocess.run(
        [python, __file__, "--opacus-only", str(turns)], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument(
        "--threads", type=int, default=0, help="torch's threads; its own choice unless given"
    )
    parser.add_argument(
        "--processor",
        action="store_true",
        help="processor time of all threads, for a machine that others use; with --threads 1",
    )
    parser.add_argument(
        "--opacus", default="", metavar="PYTHON", help="a Python that can import opacus and torch"
    )
    parser.add_argument(
        "--opacus-only",
        type=int,
        default=0,
        metavar="TURNS",
        help="print opacus's seconds a step and end",
    )
    given = parser.parse_args()
    if given.processor:
        global clock
        clock = time.process_time
    warnings.filterwarnings("ignore")
    import torch

    if given.threads:
        torch.set_num_threads(given.threads)
    X, y, A = data(IMAGE_ROWS, 784, 10)
    pictures = {"LeNet, plain SGD": plain(lenet(), X, y, IMAGES, (1, 28, 28))}
    if given.opacus_only:
        print(
            json.dumps(interleaved({**pictures, **opacus_steps(X, y, IMAGES)}, given.opacus_only))
        )
        return
    pictures["LeNet, private"] = private(lenet(), X, y, A, IMAGES, (1, 28, 28))
    if not given.opacus:
        pictures |= opacus_steps(X, y, IMAGES)
    seconds = interleaved(pictures, given.turns)
    if given.opacus:
        there = opacus_in(given.opacus, given.turns)
        rate = seconds["LeNet, plain SGD"] / there["LeNet, plain SGD"]
        seconds |= {
            name: value * rate for name, value in there.items() if name.startswith("opacus")
        }
    X, y, A = data(TABLE_ROWS, COLUMNS, 2)
    for hidden in (64, 256):
        jobs = {
            f"dense {hidden}, plain SGD": plain(dense(hidden), X, y, 2048, (COLUMNS,)),
            f"dense {hidden}, private": private(dense(hidden), X, y, A, 2048, (COLUMNS,)),
        }
        seconds |= interleaved(jobs, given.turns)
    seconds |= interleaved(
        {f"noise of {n:,} parameters": noise(n) for n in (61_706, 1_600_000)}, given.turns
    )
    out: dict[str, Any] = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "milliseconds": {name: round(1e3 * value, 3) for name, value in seconds.items()},
        "LeNet, private / opacus ghost (aim 1.0)": seconds["LeNet, private"]
        / seconds["opacus ghost"],
        "LeNet, private / opacus hooks": seconds["LeNet, private"] / seconds["opacus hooks"],
        "LeNet, private / plain SGD (aim 2.5)": seconds["LeNet, private"]
        / seconds["LeNet, plain SGD"],
        **{
            f"dense {hidden}, private / plain SGD (aim 2)": seconds[f"dense {hidden}, private"]
            / seconds[f"dense {hidden}, plain SGD"]
            for hidden in (64, 256)
        },
    }
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
