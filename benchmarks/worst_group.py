"""Worst-group training: groups sampled at rates of their own, the same weights at full batch, and
estimators. Prints Markdown.

    python benchmarks/worst_group.py --data FOLDER --cases adult-product law-race four-groups
    --epsilons 1 3 --seeds 3 python benchmarks/worst_group.py --check          # Renyi divergences
    of a round, sampled and at full batch

`sampled` follows ASC (arXiv 2602.10820) as its abstract tells it: groups with larger losses are
sampled more often, and clipped more tightly, so that each group has one guarantee. `full` takes all
rows in each round, and gives each group a weight in place of a rate. Both are logistic regressions
of this file. Weights are exponentiated group losses, released every tenth round, and the budget of
a round is fixed at one Renyi order, whatever weights follow. theory/later_papers.md proves that
`full` costs no more at every whole order. `even`: the same descent with equal weight for every
person.

The noise here is NumPy's, since nothing is returned; estimators are the library's own. Groups
with fewer than 100 held-out rows are not measured. Errors are shares of wrong decisions in per
cent.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp

import fairveil as fv
from hard.cases import CASES, Case
from hard.methods import _numeric

Floats = npt.NDArray[np.float64]
CLIP, MOST, RATE, MOMENTUM, PUSH, EVERY = 1.0, 3.0, 1.0, 0.9, 1.0, 10
QUIET = 0.05
"""Noise of a group's mean loss above which the group counts as everybody does."""
LOSSES, COUNTS = 0.1, 0.03
"""Shares of the Renyi budget, for group losses and for sizes of groups."""
FEWEST = 100
ORDERS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)


def sampled_cost(order: int, q: float, z: float) -> float:
    """Renyi divergence of whole `order` of a round that takes each row at rate q, with noise z
    times its clip."""
    if q >= 1.0:
        return order / (2.0 * z * z)
    k = np.arange(order + 1)
    chosen = (
        gammaln(order + 1)
        - gammaln(k + 1)
        - gammaln(order - k + 1)
        + k * math.log(q)
        + (order - k) * math.log1p(-q)
    )
    return float(logsumexp(chosen + k * (k - 1) / (2.0 * z * z)) / (order - 1))


def full_cost(order: int, q: float, z: float) -> float:
    """The same of a round with all rows, each gradient times q."""
    return order * q * q / (2.0 * z * z)


@lru_cache(maxsize=4096)
def least_noise(order: int, q: float, budget: float) -> float:
    """The z at which a sampled round costs the budget."""
    low, high = 1e-3, 1e6
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sampled_cost(order, q, middle) > budget else (low, middle)
    return high


def budget(epsilon: float, delta: float) -> tuple[int, float]:
    """The order, and the divergence there, that keep (epsilon, delta): the largest multiplier's."""
    if math.isinf(epsilon):
        return 2, math.inf
    left = {
        a: epsilon - math.log1p(-1.0 / a) + (math.log(delta) + math.log(a)) / (a - 1)
        for a in ORDERS
    }
    order = max(ORDERS, key=lambda a: left[a] / a)
    return order, left[order]


@dataclass(frozen=True)
class Ways:
    """`sampled`: rows are drawn; else weighed. `worst`: groups with larger losses count more.
    `share`: of rows a round."""

    sampled: bool
    worst: bool
    rounds: int
    share: float


def train(
    X: Floats,
    y: Floats,
    groups: Any,
    count: int,
    ways: Ways,
    epsilon: float,
    delta: float,
    seed: int,
) -> Floats:
    """The mean weights of the second half of the rounds."""
    rng = np.random.default_rng(seed)
    order, whole = budget(epsilon, delta)
    private = math.isfinite(whole)
    told = -(-ways.rounds // EVERY)
    each = whole * (1.0 - LOSSES - COUNTS) / ways.rounds if private else 0.0
    of_losses = MOST * math.sqrt(order * told / (2.0 * LOSSES * whole)) if private else 0.0
    of_counts = math.sqrt(order / (2.0 * COUNTS * whole)) if private else 0.0
    sizes = np.maximum(
        np.bincount(groups, minlength=count) + of_counts * rng.normal(size=count), 10.0
    )
    X = np.concatenate([np.ones((len(X), 1)), X], axis=1)
    norms, expected = np.linalg.norm(X, axis=1), ways.share * sizes.sum()
    noise = 0.0
    if private:
        of_rate = (
            least_noise(order, ways.share, each)
            if ways.sampled
            else ways.share * math.sqrt(order / (2.0 * each))
        )
        noise = CLIP * of_rate
    lean, v, speed, mean, added = (
        np.zeros(count),
        np.zeros(X.shape[1]),
        np.zeros(X.shape[1]),
        np.zeros(X.shape[1]),
        0,
    )
    for done in range(ways.rounds):
        if ways.worst and done % EVERY == 0:
            score = X @ v
            each_row = np.minimum(np.logaddexp(0.0, score) - y * score, MOST)
            sums = np.bincount(groups, each_row, count) + of_losses * rng.normal(size=count)
            known = of_losses / sizes <= QUIET
            lean += PUSH * np.where(
                known, np.clip(sums / sizes, 0.0, MOST), max(0.0, sums.sum() / sizes.sum())
            )
        shares = np.exp(lean - lean.max()) if ways.worst else sizes.copy()
        shares /= shares.sum()
        rates = np.minimum(expected * shares / sizes, 1.0)
        clips = (
            np.array([_clip(ways, order, float(q), each, noise) for q in rates])
            if private
            else np.full(count, np.inf)
        )
        drawn = ways.sampled and private  # without privacy there is no reason to
        rows: Any = np.flatnonzero(rng.random(len(X)) < rates[groups]) if drawn else slice(None)
        some, of = X[rows], groups[rows]
        off = 1.0 / (1.0 + np.exp(-some @ v)) - y[rows]
        kept = np.minimum(1.0, clips[of] / np.maximum(np.abs(off) * norms[rows], 1e-12))
        total = some.T @ (off * kept * (1.0 if drawn else rates[of])) + noise * rng.normal(
            size=X.shape[1]
        )
        speed = MOMENTUM * speed + total / expected
        v = v - RATE * (1.0 - MOMENTUM) * speed
        if done >= ways.rounds // 2:
            mean, added = mean + v, added + 1
    return mean / added


def _clip(ways: Ways, order: int, q: float, each: float, noise: float) -> float:
    """So that a person of a group with this rate spends what a round may cost."""
    if not ways.sampled:
        return noise * math.sqrt(2.0 * each / order) / q
    step = 0.02
    # the next larger of a few rates: it costs no less
    up = min(1.0, math.exp(step * math.ceil(math.log(q) / step)))
    return noise / least_noise(order, up, each)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to train on and to measure on, coded and as numbers."""

    coded: Any
    held: Any
    numbers: Any
    other: Any
    count: int


def measured(table: Table, wrong: Any) -> tuple[float, float]:
    """(the worst group's error, everyone's), in per cent."""
    groups = table.other.groups
    large = [k for k in range(table.count) if (groups == k).sum() >= FEWEST]
    return 100 * max(float(wrong[groups == k].mean()) for k in large), 100 * float(wrong.mean())


def of_descent(ways: Ways) -> Callable[..., tuple[float, float]]:
    """A method of this file."""

    def fitted(table: Table, epsilon: float, seed: int) -> tuple[float, float]:
        rows = table.numbers
        delta = 1.0 / len(rows.y) ** 2
        v = train(
            rows.X, rows.y.astype(float), rows.groups, table.count, ways, epsilon, delta, seed
        )
        score = table.other.X @ v[1:] + v[0]
        return measured(table, (score > 0) != table.other.y)

    return fitted


def of_estimator(make: Callable[..., Any]) -> Callable[..., tuple[float, float]]:
    """A method of the library."""

    def fitted(table: Table, epsilon: float, seed: int) -> tuple[float, float]:
        model = make(epsilon=epsilon, delta=1.0 / table.coded.block.rows**2, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decided = np.asarray(model.fit(table.coded).predict(table.held))
        return measured(table, decided != model.classes_[np.asarray(table.held.block.labels)])

    return fitted


METHODS: dict[str, Callable[..., tuple[float, float]]] = {
    "`sampled`, 5 % of rows, 100 rounds": of_descent(Ways(True, True, 100, 0.05)),
    "`sampled`, 5 % of rows, 400 rounds": of_descent(Ways(True, True, 400, 0.05)),
    "`sampled`, 20 % of rows, 100 rounds": of_descent(Ways(True, True, 100, 0.2)),
    "`full`, 100 rounds": of_descent(Ways(False, True, 100, 0.05)),
    "`full`, 400 rounds": of_descent(Ways(False, True, 400, 0.05)),
    "`even`, 100 rounds": of_descent(Ways(False, False, 100, 0.05)),
    "`even`, 400 rounds": of_descent(Ways(False, False, 400, 0.05)),
    '`GroupObjectiveClassifier("largest_group_loss", loss="log")`': of_estimator(
        lambda **how: fv.GroupObjectiveClassifier("largest_group_loss", loss="log", **how)
    ),
    '`GroupObjectiveClassifier(..., method="worst-group")`': of_estimator(
        lambda **how: fv.GroupObjectiveClassifier(
            "largest_group_loss", method="worst-group", loss="log", **how
        )
    ),
    '`GroupObjectiveClassifier("error", loss="log")`': of_estimator(
        lambda **how: fv.GroupObjectiveClassifier("error", loss="log", **how)
    ),
    "`TailoredClassifier()`": of_estimator(
        lambda **how: fv.TailoredClassifier(limits=fv.GroupLimits(objective="groups"), **how)
    ),
    "`RateConstrainedClassifier(None)`": of_estimator(
        lambda **how: fv.RateConstrainedClassifier(None, **how)
    ),
}


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--cases", nargs="+", default=["adult-product", "law-race", "four-groups"])
    options.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0, math.inf])
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument(
        "--json",
        type=Path,
        help="a file of runs: new ones are appended, and those in it are not repeated",
    )
    options.add_argument("--methods", nargs="+", help="parts of names")
    options.add_argument("--data", default=os.environ.get("FAIRVEIL_DATA"))
    options.add_argument("--check", action="store_true")
    asked = options.parse_args()
    if asked.check:
        check()
        return
    chosen = {
        name: one
        for name, one in METHODS.items()
        if not asked.methods or any(part in name for part in asked.methods)
    }
    for name in asked.cases:
        case = CASES[name]
        done = _kept(asked.json)
        for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
            pairs = [(method, epsilon) for method in chosen for epsilon in asked.epsilons]
            missing = [pair for pair in pairs if (name, seed, *pair) not in done]
            table = table_of(case, seed, asked.data) if missing else None
            for method, epsilon in missing:
                done[name, seed, method, epsilon] = chosen[method](table, epsilon, seed)
                if asked.json:
                    with asked.json.open("a", encoding="utf-8") as file:
                        file.write(
                            json.dumps(
                                [[name, seed, method, epsilon], done[name, seed, method, epsilon]]
                            )
                            + "\n"
                        )
        found: dict[tuple[str, float], list[tuple[float, float]]] = {}
        for (one, _, method, epsilon), errors in sorted(done.items()):
            if one == name:
                found.setdefault((method, epsilon), []).append(errors)
        print(f"\n{case.words}: worst group's error, everyone's\n")
        print("| method | " + " | ".join(f"epsilon {e:g}" for e in asked.epsilons) + " |")
        print("|---" * (1 + len(asked.epsilons)) + "|")
        for method in chosen:
            print(
                f"| {method} | "
                + " | ".join(_shown(found[method, e]) for e in asked.epsilons)
                + " |",
                flush=True,
            )


def _kept(file: Path | None) -> dict[tuple[str, int, str, float], tuple[float, float]]:
    if file is None or not file.exists():
        return {}
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return {tuple(key): tuple(errors) for key, errors in lines}


def _shown(runs: list[tuple[float, float]]) -> str:
    values = np.array(runs)
    spread = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.zeros(2)
    return (
        f"{values[:, 0].mean():.1f} ± {spread[0]:.1f}, {values[:, 1].mean():.1f} ± {spread[1]:.1f}"
    )


def table_of(case: Case, seed: int, folder: str | None) -> Table:
    """Rows of a case."""
    coded, held = case.parts(seed, folder)
    cells = case.cells(coded)
    return Table(coded, held, _numeric(coded, cells), _numeric(held, cells, coded), cells.count)


def check() -> None:
    """How much more a sampled round costs than the same weights at full batch, at whole orders."""
    print(
        "| order | rate | noise over clip | sampled | full batch | ratio "
        "|\n|---|---|---|---|---|---|"
    )
    for order in (2, 8, 32):
        for q in (0.01, 0.05, 0.2, 0.5):
            for z in (0.7, 2.0):
                one, other = sampled_cost(order, q, z), full_cost(order, q, z)
                print(f"| {order} | {q:g} | {z:g} | {one:.3g} | {other:.3g} | {one / other:.3g} |")


if __name__ == "__main__":
    main()
