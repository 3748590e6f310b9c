"""How stationary the model of noisy descent-ascent is, against the rate of Lowy et al. (Theorems
3.4 and E.1). Prints JSON.

    python benchmarks/stationarity.py --out benchmarks/results --reuse --markdown

Phi(theta) = max over W of F(theta, W) = mean log loss + strength x D(theta), D the exponential
Renyi mutual information of soft prediction and group. The maximum has a closed form, so |grad
Phi|^2 is measured exactly, on the training rows, at the iterate that the theorem speaks of: one
drawn uniformly from all of them (the last one beside it). The theorem:

    E |grad Phi|^2 = O( sqrt(max(d, k l) ln(1/delta)) / (epsilon n) ),

for some number of rounds of Algorithm 2: `learning.SaddleDescent` with this F, all rows a round,
one step size for all runs. Two sweeps over whole private runs of logistic regression on synthetic
rows:

1. n and epsilon, the best number of rounds each: the measured values against epsilon n, beside the
   rate's line of slope -1 through the first point. A slope of -1 or less is within the rate, which
   is an upper bound.
2. rounds: how many are needed until the mean is below a given value; without noise descent needs
   O(1 / value).

A walk of noise alone ends where predictions saturate and gradients vanish: stationary, and of no
use. So a number of rounds counts only where the mean of Phi is below its value at the start.

Means over seeds, which draw the noise and the iterate; rows are the same for all. The theorem knows
no clipping: the clip is above every row's gradient in theta, and the largest that a row has at the
result is written down.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from fairveil.curator import Block, Curator, Rows
from fairveil.data import synthetic
from fairveil.learning import SaddleDescent, SaddleProblem, descend
from fairveil.privacy import NoiseSource, Promise

Floats = npt.NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
DELTA, STRENGTH, NUMBERS, GROUPS = 1e-6, 1.0, 8, 2
CLIP, CLIP_W, RADIUS, STEP = 2.0, 3.0, 2.0 * math.sqrt(2.0), 0.5
TARGETS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)


@dataclass(frozen=True)
class Run:
    """One private run. `iterate`: "uniform", the theorem's, or "last"."""

    rows: int
    epsilon: float
    rounds: int
    iterate: str
    seed: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of numbers, labels 0 and 1, groups 0, ..., and Phi of a linear model theta = (intercept,
    weights) on them."""

    X: Floats
    y: npt.NDArray[Any]
    groups: npt.NDArray[Any]
    strength: float = STRENGTH

    @property
    def shares(self) -> Floats:
        """p[r]: exact, as in Phi's definition."""
        return np.bincount(self.groups) / len(self.groups)

    def histogram(self, p: Floats) -> Floats:
        """P[r, j], (groups, 2), of soft predictions."""
        ones = np.bincount(self.groups, p) / len(p)
        return np.stack([self.shares - ones, ones], axis=1)

    def phi(self, theta: Floats) -> float:
        """Mean log loss + strength x (sum P[r, j]^2 / (p[r] P[j]) - 1)."""
        score = theta[0] + self.X @ theta[1:]
        loss = float(np.mean(np.logaddexp(0.0, score) - self.y * score))
        both = self.histogram(expit(score))
        return loss + self.strength * (
            float((both**2 / self.shares[:, np.newaxis] / both.sum(axis=0)).sum()) - 1.0
        )

    def gradient(self, theta: Floats) -> Floats:
        """grad Phi."""
        residual = self.residuals(theta)
        return np.concatenate([[residual.mean()], self.X.T @ residual / len(residual)])

    def largest_row(self, theta: Floats) -> float:
        """The largest norm of one row's gradient."""
        return float((np.abs(self.residuals(theta)) * np.sqrt(1.0 + (self.X**2).sum(axis=1))).max())

    def residuals(self, theta: Floats) -> Floats:
        """A row's gradient over (1, x). By Danskin's theorem grad Phi is F's gradient at W's
        maximum, held fixed there: W[r, j] = P[r, j] / (sqrt(p[r]) P[j]).

        There a row of group s costs sum_j F_j c[s, j] with c[s, j] = -|W_j|^2 + 2 W[s, j] /
        sqrt(p[s]) (Lemma D.1).
        """
        p = expit(theta[0] + self.X @ theta[1:])
        both, root = self.histogram(p), np.sqrt(self.shares)[:, np.newaxis]
        w = both / root / both.sum(axis=0)
        costs = 2.0 * w / root - (w**2).sum(axis=0)
        difference = (costs[:, 1] - costs[:, 0])[self.groups]
        return p - self.y + self.strength * difference * p * (1.0 - p)


@lru_cache(maxsize=2)
def problem_of(rows: int) -> Problem:
    """Rows whose numbers, in [-1, 1], tell of label and group alike: both lie along their sum."""
    population = synthetic.GroupedClasses(
        classes=2,
        sensitive_sizes=(GROUPS,),
        numbers=NUMBERS,
        category_sizes=(),
        separation=2.0,
        shift=1.5,
    )
    table = population.draw(rows, 7)
    X = np.clip(np.column_stack([table[f"x{j}"] for j in range(NUMBERS)]) / 4.0, -1.0, 1.0)
    return Problem(X, table["label"], table["group0"])


def saddle(problem: Problem) -> SaddleProblem:
    """f by its gradients (Lemma D.1); w is W[r, j], flattened. Groups' shares are constants of the
    problem, taken as public.

    A row of group s costs F_j c[s, j], c as in `Problem.residuals`; its gradient in W[r, j] is
    strength x 2 F_j (1[r = s] / sqrt(p[s]) - W[r, j]).
    """
    root, strength = np.sqrt(problem.shares), problem.strength

    def soft(block: Block, theta: Floats) -> Floats:
        return np.asarray(expit(theta[0] + theta[1:] @ block.numbers), np.float64)

    def descent(block: Block, theta: Floats, w: Floats) -> Floats:
        p, matrix = soft(block, theta), w.reshape(GROUPS, 2)
        costs = 2.0 * matrix / root[:, np.newaxis] - (matrix**2).sum(axis=0)
        difference = (costs[:, 1] - costs[:, 0])[block.sensitive[0]]
        residual = p - block.labels + strength * difference * p * (1.0 - p)
        return np.asarray(
            (residual * np.concatenate([np.ones((1, block.rows)), block.numbers])).T, np.float64
        )

    def ascent(block: Block, theta: Floats, w: Floats) -> Floats:
        p = soft(block, theta)
        decisions = np.stack([1.0 - p, p], axis=1)  # (rows, 2)
        own = np.eye(GROUPS)[block.sensitive[0]] / root  # (rows, groups)
        pull = own[:, :, np.newaxis] - w.reshape(1, GROUPS, 2)
        return np.asarray(
            (2.0 * strength * pull * decisions[:, np.newaxis, :]).reshape(block.rows, -1)
        )

    # the maximum for predictions that do not depend on groups
    start = np.full((GROUPS, 2), root[:, np.newaxis])
    return SaddleProblem(
        descent, ascent, np.zeros(1 + NUMBERS), start.ravel(), CLIP, CLIP_W, radius_w=RADIUS
    )


def private(problem: Problem, run: Run) -> Floats:
    """theta of one private run, in the units of X: all that knows of the search is here."""
    promise = Promise(run.epsilon, DELTA)
    rows = Rows.from_arrays(
        problem.X, problem.y, [problem.groups], classes=(0, 1), groups=[tuple(range(GROUPS))]
    )
    search = SaddleDescent.of(
        promise,
        rows.layout,
        saddle(problem),
        rounds=run.rounds,
        step_theta=STEP,
        step_w=1.0 / (2.0 * problem.strength),  # 1 / beta_w
        public_rows=len(problem.y),
        iterate=run.iterate,
        generator=np.random.default_rng([run.seed, run.rounds]),
    )
    curator = Curator(
        rows,
        promise,
        plan=search.plan,
        noise=NoiseSource.seeded(run.seed),
        public_rows=len(problem.y),
        threads=1,
    )
    return descend(curator, search).theta


def measured(run: Run) -> dict[str, Any]:
    """One run and how stationary it is."""
    problem = problem_of(run.rows)
    theta = private(problem, run)
    return {
        **asdict(run),
        "stationarity": float((problem.gradient(theta) ** 2).sum()),
        "phi": problem.phi(theta),
        "largest_row": problem.largest_row(theta),
    }


def rate(rows: int, epsilon: float) -> float:
    """The theorem's bound without its constant: k groups, l = 2 classes."""
    return math.sqrt(max(1 + NUMBERS, 2 * GROUPS) * math.log(1.0 / DELTA)) / (epsilon * rows)


def means(
    runs: Sequence[dict[str, Any]], iterate: str
) -> dict[tuple[int, float], dict[int, tuple[float, float]]]:
    """By rows and epsilon, then by rounds: the mean of |grad Phi|^2 over seeds, and its standard
    error."""
    found: dict[tuple[int, float], dict[int, tuple[float, float]]] = {}
    for rows, epsilon, rounds in sorted(
        {(run["rows"], run["epsilon"], run["rounds"]) for run in runs}
    ):
        here = (rows, epsilon, rounds, iterate)
        values = np.array(
            [
                r["stationarity"]
                for r in runs
                if (r["rows"], r["epsilon"], r["rounds"], r["iterate"]) == here
            ]
        )
        phi = np.array(
            [r["phi"] for r in runs if (r["rows"], r["epsilon"], r["rounds"], r["iterate"]) == here]
        )
        # at the start, where every prediction is 1/2
        if len(values) > 1 and phi.mean() < math.log(2.0):
            error = float(values.std(ddof=1)) / math.sqrt(len(values))
            found.setdefault((rows, epsilon), {})[rounds] = float(values.mean()), error
    return found


def lines_of(runs: Sequence[dict[str, Any]], iterate: str) -> list[dict[str, Any]]:
    """A line for each n and epsilon: the best rounds, what they reach, the rate, and the rounds to
    each target."""
    lines = []
    for (rows, epsilon), by_rounds in means(runs, iterate).items():
        best = min(by_rounds, key=lambda rounds: by_rounds[rounds][0])
        reached = {
            target: [n for n, (mean, _) in by_rounds.items() if mean <= target]
            for target in TARGETS
        }
        lines.append(
            {
                "iterate": iterate,
                "rows": rows,
                "epsilon": epsilon,
                "epsilon_n": epsilon * rows,
                "rounds": best,
                "stationarity": by_rounds[best][0],
                "standard_error": by_rounds[best][1],
                "rate": rate(rows, epsilon),
                "rounds_to": {
                    f"{target:g}": min(some, default=None) for target, some in reached.items()
                },
                "by_rounds": {str(n): mean for n, (mean, _) in by_rounds.items()},
            }
        )
    return sorted(lines, key=lambda line: line["epsilon_n"])


def slope(lines: Sequence[dict[str, Any]]) -> float | None:
    """Least squares in log-log of stationarity on epsilon n, where both are finite."""
    spots = [
        (line["epsilon_n"], line["stationarity"])
        for line in lines
        if math.isfinite(line["epsilon_n"])
    ]
    if len({x for x, _ in spots}) < 2:
        return None
    x, y = np.log(np.array(spots)).T
    return float(np.polyfit(x, y, 1)[0])


def table(lines: Sequence[dict[str, Any]]) -> str:
    """The lines as Markdown."""
    heads = [
        "iterate",
        "n",
        "epsilon",
        "best rounds",
        "mean squared gradient (s.e.)",
        "over the rate",
    ]
    out = [
        "| " + " | ".join([*heads, *(f"rounds to {t:g}" for t in TARGETS)]) + " |",
        "| --- " * (6 + len(TARGETS)) + "|",
    ]
    for line in lines:
        cells = [line["iterate"], f"{line['rows']:,}", f"{line['epsilon']:g}", str(line["rounds"])]
        cells += [f"{line['stationarity']:.2e} ({line['standard_error']:.0e})"]
        cells += [f"{line['stationarity'] / line['rate']:.2f}" if line["rate"] else "-"]
        cells += ["-" if n is None else str(n) for n in line["rounds_to"].values()]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def draw(lines: Sequence[dict[str, Any]], file: Path) -> None:
    """Stationarity against epsilon n beside the rate; and against rounds."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "stationarity"  # the same file for the same numbers
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for iterate, marker in (("uniform", "o"), ("last", "s")):
        mine = [
            line for line in lines if line["iterate"] == iterate and math.isfinite(line["epsilon"])
        ]
        if not mine:
            continue
        x, y = [line["epsilon_n"] for line in mine], [line["stationarity"] for line in mine]
        left.errorbar(
            x,
            y,
            [2 * line["standard_error"] for line in mine],
            fmt=marker,
            label=f"{iterate} iterate",
        )
        if iterate == "uniform":
            through = y[0] / mine[0]["rate"]
            left.plot(x, [through * line["rate"] for line in mine], "k--", label="the rate's slope")
    for line in (line for line in lines if line["iterate"] == "uniform"):
        rounds = [int(n) for n in line["by_rounds"]]
        words = f"n = {line['rows']:,}, epsilon {line['epsilon']:g}"
        right.plot(rounds, list(line["by_rounds"].values()), marker=".", label=words)
    for axes, name in ((left, "epsilon n"), (right, "rounds, uniform iterate")):
        axes.set(xscale="log", yscale="log", xlabel=name, ylabel="mean of |grad Phi|^2")
        axes.legend(fontsize=7)
    figure.savefig(
        file,
        metadata={"Date": None, "Title": "Stationarity of noisy descent-ascent against the rate"},
    )


def stored(file: Path) -> list[dict[str, Any]]:
    """The runs of a file, whole lines alone."""
    lines = file.read_text("utf-8").split("\n")[:-1] if file.is_file() else []
    return [{**run, "epsilon": float(run["epsilon"])} for run in map(json.loads, lines)]


def main() -> None:
    """Run what is lacking, then tell."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="folder")
    options.add_argument(
        "--reuse", action="store_true", help="go on with the runs that the folder's file lacks"
    )
    options.add_argument("--rows", type=int, nargs="+", default=(2_000, 8_000, 32_000))
    options.add_argument("--epsilons", type=float, nargs="+", default=(0.5, 2.0, 8.0))
    options.add_argument("--rounds", type=int, nargs="+", default=(10, 30, 100, 300, 1_000))
    options.add_argument("--seeds", type=int, default=15)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--markdown", action="store_true")
    asked = options.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    file = asked.out / "stationarity.jsonl"
    if file.is_file() and not asked.reuse:
        sys.exit(f"{file} is there: pass --reuse to go on, or another --out.")
    names = ("rows", "epsilon", "rounds", "iterate", "seed")
    done = {tuple(run[name] for name in names) for run in stored(file)}
    every = product(
        asked.rows, asked.epsilons, asked.rounds, ("uniform", "last"), range(asked.seeds)
    )
    left = [Run(*one) for one in every if one not in done]
    if left:
        with (
            ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as pool,
            file.open("a", encoding="utf-8") as out,
        ):
            for ended in as_completed([pool.submit(measured, run) for run in left]):
                run = ended.result()
                out.write(json.dumps({**run, "epsilon": str(run["epsilon"])}) + "\n")
                out.flush()
    runs = stored(file)
    lines = [*lines_of(runs, "uniform"), *lines_of(runs, "last")]
    draw(lines, asked.out / "stationarity.svg")
    slopes = {
        iterate: slope([line for line in lines if line["iterate"] == iterate])
        for iterate in ("uniform", "last")
    }
    if asked.markdown:
        print(table(lines))
        print(f"Slopes in log-log (the rate: -1): {slopes}")
    else:
        print(json.dumps({"slopes (the rate: -1)": slopes, "lines": lines}, indent=2))


if __name__ == "__main__":
    main()
