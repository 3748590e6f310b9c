"""The oracle game where it is hard: features that tell the group, many groups, several classes, few
rows. Markdown.

    python benchmarks/hard_games.py                          # synthetic cases and those of data that are at hand, 3 seeds
    python benchmarks/hard_games.py --case adult-margins --epsilons 1 --seeds 5

Sensitive features alone are protected. Each line is a mean over seeds (a split and its noise), in
per cent, with the standard deviation beside it. "mixing" is the model without constraints, into
which a constant is mixed until its gap is the line's own: a line above it has done harm. Gaps and
errors are expectations over the model's draws, on held-out rows.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil import data
from fairveil.facts import Category, Number, RowBlock, Schema
from frontier import splits

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Case:
    """Rows by seed: (training, held out), each coded rows; what is asked."""

    make: Callable[[int, str | None], tuple[splits.Coded, splits.Coded]]
    notion: str
    bounds: tuple[float, ...]


@dataclass(frozen=True)
class Made:
    """Synthetic rows as a coded source with a schema."""

    X: Floats
    y: Ints
    A: Ints


def encoded(made: Made) -> splits.Coded:
    """Numbers coded to [-1, 1] by stated bounds, as a user's schema does."""
    numbers = {f"x{j}": Number(-6.0, 6.0) for j in range(made.X.shape[1])}
    columns: dict[str, Any] = {
        **numbers,
        "group": Category(tuple(str(a) for a in range(int(made.A.max()) + 1))),
        "label": Category(tuple(str(k) for k in range(int(made.y.max()) + 1))),
    }
    schema = Schema(columns, target="label", sensitive=("group",))
    table: dict[str, Any] = {f"x{j}": np.clip(made.X[:, j], -6, 6) for j in range(made.X.shape[1])}
    table |= {"group": made.A.astype(str), "label": made.y.astype(str)}
    rows = data.encode(table, schema)
    (block,) = list(rows.blocks())
    return splits.Coded(rows.encoding, block)


def telling(rows: int) -> Callable[[int, str | None], tuple[splits.Coded, splits.Coded]]:
    """Two groups that one feature tells; the other says the opposite of the label in one of them:
    the constraint costs much."""

    def draw(rng: np.random.Generator, n: int) -> Made:
        A = rng.integers(2, size=n)
        u, sign = rng.normal(size=n), 2 * A - 1
        X = np.column_stack([6.0 * (1.2 * A - 0.6) + 0.6 * rng.normal(size=n), 1.8 * u])
        chances = 1.0 / (1.0 + np.exp(-(1.5 * sign + 3.0 * u * sign)))
        return Made(X, (rng.random(n) < chances).astype(int), A)

    def make(seed: int, _: str | None) -> tuple[splits.Coded, splits.Coded]:
        rng = np.random.default_rng(seed)
        return encoded(draw(rng, rows)), encoded(draw(rng, 30_000))

    return make


def many(
    groups: int, classes: int, rows: int
) -> Callable[[int, str | None], tuple[splits.Coded, splits.Coded]]:
    """Groups of unlike sizes, several classes."""

    def draw(rng: np.random.Generator, n: int) -> Made:
        shares = np.linspace(1.0, 0.25, groups)
        A = rng.choice(groups, size=n, p=shares / shares.sum())
        X = rng.normal(size=(n, 5))
        X[:, :3] += np.random.default_rng(3).normal(size=(groups, 3))[A]
        scores = X @ np.random.default_rng(4).normal(size=(5, classes)) + rng.gumbel(
            size=(n, classes)
        )
        return Made(X, scores.argmax(axis=1), A)

    def make(seed: int, _: str | None) -> tuple[splits.Coded, splits.Coded]:
        rng = np.random.default_rng(seed)
        return encoded(draw(rng, rows)), encoded(draw(rng, 30_000))

    return make


def adult(*names: str) -> Callable[[int, str | None], tuple[splits.Coded, splits.Coded]]:
    """Adult with these sensitive columns."""

    def make(seed: int, folder: str | None) -> tuple[splits.Coded, splits.Coded]:
        found = data.get("adult", folder, sensitive=names)
        blocks = list(found.rows.blocks())
        whole = RowBlock(
            np.concatenate([b.numbers for b in blocks], axis=1),
            np.concatenate([b.codes for b in blocks], axis=1),
            np.concatenate([b.labels for b in blocks if b.labels is not None]),
            np.concatenate([b.sensitive for b in blocks if b.sensitive is not None], axis=1),
        )
        return splits.split(splits.Coded(found.rows.encoding, whole), seed)

    return make


def communities(seed: int, folder: str | None) -> tuple[splits.Coded, splits.Coded]:
    """A community a row: 1,500 to train on."""
    return splits.split(splits.load("communities", folder), seed)


CASES = {
    "telling-odds": Case(telling(3_000), "equalized_odds", (0.05,)),
    "telling-alarms": Case(telling(3_000), "false_positive_rate_parity", (0.05,)),
    "nine-by-four": Case(many(9, 4, 20_000), "demographic_parity", (0.2, 0.1)),
    "four-groups": Case(many(4, 2, 6_000), "equalized_odds", (0.1, 0.05)),
    "adult-margins": Case(adult("sex", "race"), "equalized_odds", (0.08,)),
    "adult-race": Case(adult("race"), "demographic_parity", (0.1, 0.05)),
    "adult-sex": Case(adult("sex"), "equalized_odds", (0.05, 0.03)),
    "communities": Case(communities, "equalized_odds", (0.1, 0.05)),
}


def gap(case: Case, law: Floats, rows: splits.Coded) -> float:
    """The widest difference of rates between groups of one sensitive column."""
    block = rows.block
    assert block.labels is not None
    assert block.sensitive is not None
    labels, widest = block.labels, 0.0
    among = [np.ones(len(labels), bool)]
    if case.notion != "demographic_parity":
        among = [
            labels == y
            for y in ((0,) if case.notion.startswith("false_positive") else range(law.shape[1]))
        ]
    for column in block.sensitive:
        for those in among:
            means = [
                law[those & (column == a)].mean(axis=0)
                for a in np.unique(column)
                if (those & (column == a)).any()
            ]
            widest = max(widest, float(np.ptp(means, axis=0).max()))
    return widest


def error(law: Floats, rows: splits.Coded) -> float:
    """The expected share of wrong decisions."""
    assert rows.block.labels is not None
    return 1.0 - float(law[np.arange(len(law)), rows.block.labels].mean())


def main() -> None:
    """Fit, measure, print."""
    warnings.simplefilter("ignore")
    asked = _options()
    print(
        "| case | method | epsilon | asked | error | gap | mixing at that gap | best constant | "
        "seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in asked.case or CASES:
        for bound in CASES[name].bounds:
            for method in asked.methods:
                for epsilon in asked.epsilons:
                    print(_line(name, method, epsilon, bound, asked), flush=True)


def _line(name: str, method: str, epsilon: float, bound: float, asked: Any) -> str:
    case, found = CASES[name], []
    for seed in range(asked.seeds):
        train, test = case.make(seed, asked.data)
        start = time.perf_counter()
        law = _fitted(case, method, epsilon, bound, train, seed).predict_proba(test)
        seconds = time.perf_counter() - start
        alone = (
            fv.OracleGameClassifier(None, epsilon=epsilon, protects="sensitive_features")
            .fit(train)
            .predict_proba(test)
        )
        assert test.block.labels is not None
        constant = 1.0 - float(np.bincount(test.block.labels).max()) / len(test.block.labels)
        at, wide, without = gap(case, law, test), gap(case, alone, test), error(alone, test)
        mixed = without + max(0.0, 1.0 - at / wide) * (constant - without)
        found.append([error(law, test), at, mixed, constant, seconds])
    mean, spread = (
        np.mean(found, axis=0),
        np.std(found, axis=0, ddof=1) if asked.seeds > 1 else np.zeros(5),
    )
    cells = [f"{100 * m:.1f} ± {100 * s:.1f}" for m, s in zip(mean[:3], spread[:3], strict=True)]
    return (
        f"| {name} | {method} | {epsilon:g} | {100 * bound:g} | {' | '.join(cells)} | "
        f"{100 * mean[3]:.1f} | {mean[4]:.1f} |"
    )


def _fitted(case: Case, method: str, epsilon: float, bound: float, train: Any, seed: int) -> Any:
    notion: Any = f"{case.notion}:{bound}"
    if train.block.sensitive.shape[0] > 1:
        notion = fv.EqualizedOdds(bound, groups="marginal")
    shared = {"epsilon": epsilon, "protects": "sensitive_features", "random_state": seed}
    if method == "descent":
        return fv.RateConstrainedClassifier(notion, **shared).fit(train)
    oracle = None if method == "game" else method.removeprefix("game-")
    return fv.OracleGameClassifier(notion, oracle=oracle, **shared).fit(train)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="*", choices=list(CASES))
    parser.add_argument("--methods", nargs="*", default=["game-regression", "game"])
    parser.add_argument("--epsilons", nargs="*", type=float, default=[1.0, 1e4, math.inf])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", help="the folder of the data sets")
    return parser.parse_args()


if __name__ == "__main__":
    main()
