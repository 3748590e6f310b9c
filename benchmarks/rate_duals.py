"""Two figures of the paper on rate constraints, by its own algorithm: hard against soft duals
(E.4), and the clip (E.6).

    python benchmarks/rate_duals.py --figure duals --seeds 5       # Adult, demographic parity by sex
    python benchmarks/rate_duals.py --figure clip --seeds 3        # Adult, false negative rate, no noise

The algorithm is written out here, 40 lines, so that nothing of the library's own changes is in it:
descent and ascent on

    mean loss(w) + sum_j duals_j (value_j(w) - bound_j),      every row's gradient of both parts together clipped to C,

with softmax decisions of a temperature in the gradient, and duals that follow either the same soft
decisions or hard ones. Like the paper's: numbers scaled by training moments, constant dual steps,
duals at least 0. Unlike it: all rows in every round, Gaussian noise for gradient (70 % of the
squared budget) and histogram (30 %) as one event, records under add-remove, momentum, and the
average of the last third of the iterates in place of the best checkpoint on exact training data.
Beside it: the library's own fit. The figure of clips prints training value and held-out error in
per cent, that of duals held-out error @ gap.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.errors import FairveilWarning
from fairveil.fairness import ConstraintSystem
from fairveil.learning.gaussian import budget_of
from frontier.methods import dense
from frontier.splits import Coded
from hard.cases import CASES
from hard.measured import Judge, error_of, table_of
from hard.methods import Wanted, descent

Floats = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
ROUNDS, RATE, MOMENTUM, DUAL_RATE, LATE = 400, 0.05, 0.9, 0.3, 1.0 / 3.0
CLIPS = (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.5, 16.0, math.inf)


@dataclass(frozen=True)
class Way:
    """How the published algorithm is run. `clip`: inf for none. `epsilon`: inf for no noise."""

    hard: bool
    temperature: float = 1.0
    clip: float = 6.0
    epsilon: float = 1.0
    rounds: int = ROUNDS


def published(
    X: Floats,
    y: npt.NDArray[Any],
    cells: npt.NDArray[Any],
    system: ConstraintSystem,
    way: Way,
    seed: int,
) -> Floats:
    """The weights, the intercept last. `cells`: the group of each row."""
    rng = np.random.default_rng(seed)
    n, groups = len(y), system.shape[0]
    lengths = np.linalg.norm(X, axis=1)
    promise = fv.Promise(way.epsilon, 1.0 / n**2)
    z = math.sqrt(way.rounds) / budget_of(promise) if math.isfinite(way.epsilon) else 0.0
    of_gradient, of_histogram = z / math.sqrt(0.7) * way.clip if z else 0.0, z / math.sqrt(0.3)
    place = cells * 2 + y
    counts = np.bincount(place, minlength=2 * groups).astype(float).reshape(groups, 2)
    counts = np.maximum(
        counts + of_histogram / math.sqrt(way.rounds) * rng.normal(size=counts.shape), 1.0
    )
    w, velocity, duals = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(len(system.bounds))
    late, kept = np.zeros(X.shape[1]), 0
    for round in range(way.rounds):
        score = X @ w
        soft = _sigmoid(score / way.temperature)
        decided = (score > 0).astype(float) if way.hard else soft
        ones = np.bincount(place, decided, minlength=2 * groups).reshape(groups, 2)
        histogram = np.stack([counts - ones, ones], axis=2)
        histogram[..., 1] += of_histogram * rng.normal(size=counts.shape)
        histogram[..., 0] = counts - histogram[..., 1]
        costs = n * system.cell_costs(duals, counts)
        of_row = (costs[..., 1] - costs[..., 0]).ravel()[place]
        pull = _sigmoid(score) - y + of_row * soft * (1.0 - soft) / way.temperature
        pull *= np.minimum(1.0, way.clip / np.maximum(np.abs(pull) * lengths, 1e-12))
        gradient = (X.T @ pull + of_gradient * rng.normal(size=len(w))) / n
        velocity = MOMENTUM * velocity - RATE * gradient
        w = w + velocity
        duals = np.maximum(
            duals + DUAL_RATE * (system.exact_values(histogram, counts) - system.bounds), 0.0
        )
        if round >= (1.0 - LATE) * way.rounds:
            late, kept = late + w, kept + 1
    return np.asarray(late / kept)


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows as numbers, and held-out rows."""

    train: Coded
    test: Coded
    X: Floats
    held: Floats

    @staticmethod
    def of(seed: int, folder: str | None, most: int | None = None) -> Split:
        """Adult, by sex."""
        train, test = CASES["adult-parity"].parts(seed, folder, most)
        X, held = dense(train), dense(test)
        mean, deviation = X.mean(axis=0), X.std(axis=0)
        deviation[deviation == 0] = 1.0
        numbers = len(train.block.numbers)
        mean[numbers:], deviation[numbers:] = 0.0, 1.0
        one = [
            np.hstack([(part - mean) / deviation, np.ones((len(part), 1))]) for part in (X, held)
        ]
        return Split(train, test, *one)

    def measured(self, law: Floats, held: Floats, constraint: str) -> tuple[float, float, float]:
        """Training value, held-out error and value, of probabilities of the second class."""
        cells = CASES["adult-parity"].cells(self.train)
        judge = Judge.of(constraint, cells, 2)
        tables = [
            table_of(np.stack([1.0 - p, p], axis=1), rows, cells)
            for p, rows in ((law, self.train), (held, self.test))
        ]
        return judge.gap(tables[0]), error_of(tables[1]), judge.gap(tables[1])

    def run(self, constraint: str, way: Way, seed: int) -> tuple[float, float, float]:
        """One fit of the published algorithm."""
        cells = CASES["adult-parity"].cells(self.train)
        assert self.train.block.sensitive is not None
        (groups,) = cells.ids(self.train.block.sensitive)
        w = published(
            self.X,
            np.asarray(self.train.block.labels),
            groups,
            Judge.of(constraint, cells, 2).system,
            way,
            seed,
        )
        return self.measured(
            (self.X @ w > 0).astype(float), (self.held @ w > 0).astype(float), constraint
        )

    def ours(
        self, constraint: str, epsilon: float, clip: float | None, seed: int
    ) -> tuple[float, float, float]:
        """One fit of the library, at its defaults but for the clip."""
        knobs = () if clip is None else (("clip", clip),)
        wanted = Wanted("descent", None, constraint, None, epsilon, "records", seed, knobs)
        fitted = descent(self.train, CASES["adult-parity"].cells(self.train), wanted, None)
        return self.measured(fitted.law(self.train)[:, 1], fitted.law(self.test)[:, 1], constraint)


def duals(splits: Sequence[Split], epsilon: float) -> Iterator[tuple[str, ...]]:
    """Hard against soft duals, at temperatures; the library's own fit beside them."""
    ways = {"hard duals": Way(True, epsilon=epsilon)}
    ways |= {
        f"soft duals, temperature {t:g}": Way(False, t, epsilon=epsilon)
        for t in (1.0, 0.5, 0.25, 0.1)
    }
    ways |= {f"hard duals, temperature {t:g}": Way(True, t, epsilon=epsilon) for t in (0.25,)}
    bounds = (0.15, 0.1, 0.05, 0.02)
    yield ("duals", *(f"asked {100 * bound:g}" for bound in bounds))
    for name, way in ways.items():
        yield (
            name,
            *(
                _point([s.run(f"demographic_parity:{b}", way, j) for j, s in enumerate(splits)])
                for b in bounds
            ),
        )
    ours = [
        [s.ours(f"demographic_parity:{b}", epsilon, None, j) for j, s in enumerate(splits)]
        for b in bounds
    ]
    yield ("the library's fit", *(_point(one) for one in ours))


def clips(splits: Sequence[Split], bound: float) -> Iterator[tuple[str, ...]]:
    """The training value of the false negative rate, and the held-out error, by the clip."""
    constraint = f"false_negative_rate:{bound:g}"
    yield ("clip", "hard duals", "soft duals", "the library, epsilon 10,000")
    for clip in CLIPS:
        found = [
            [
                s.run(constraint, Way(hard, clip=clip, epsilon=math.inf, rounds=800), j)
                for j, s in enumerate(splits)
            ]
            for hard in (True, False)
        ]
        name = f"{clip:g}" if math.isfinite(clip) else "none"
        finite = math.isfinite(clip)
        ours = [
            s.ours(constraint, 10_000.0 if finite else math.inf, clip if finite else None, j)
            for j, s in enumerate(splits)
        ]
        yield (name, *(_value(one) for one in (*found, ours)))


def _point(runs: list[tuple[float, float, float]]) -> str:
    mean = np.mean(runs, axis=0)
    return f"{100 * mean[1]:.1f} @ {100 * mean[2]:.1f}"


def _value(runs: list[tuple[float, float, float]]) -> str:
    mean = np.mean(runs, axis=0)
    return f"{100 * mean[0]:.1f} ({100 * mean[1]:.1f})"


def main() -> None:
    """Fit, print Markdown."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--figure", choices=("duals", "clip"), default="duals")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--epsilon", type=float, default=1.0, help="of the figure of duals")
    options.add_argument("--bound", type=float, default=0.1, help="of the figure of clips")
    options.add_argument("--most", type=int, help="so many rows at most, for a quick look")
    beside = ROOT.parent / "shared" / "data"
    options.add_argument(
        "--data",
        default=os.environ.get("FAIRVEIL_DATA") or (str(beside) if beside.is_dir() else None),
    )
    asked = options.parse_args()
    warnings.simplefilter("ignore", FairveilWarning)
    splits = [Split.of(seed, asked.data, asked.most) for seed in range(asked.seeds)]
    found = duals(splits, asked.epsilon) if asked.figure == "duals" else clips(splits, asked.bound)
    for place, line in enumerate(found):
        print("| " + " | ".join(line) + " |", flush=True)
        if place == 0:
            print("|" + " --- |" * len(line))


if __name__ == "__main__":
    main()
