"""How many rows group objectives really need, beside what theory asks for. Prints one JSON object a
line; minutes on one core.

    python benchmarks/sample_complexity.py --markdown

1. **Exponential mechanism**: f the error, g the equalized-odds gap less a bound, 200 thresholds for
   K groups of equal size, nine problems drawn at random. Losses are those of 40,000 rows, and n
   scales the noise alone, so the chance that f or g exceeds by alpha is a sum of exact
   probabilities, and the fewest rows with which it is at most 0.1 are found by bisection. Four
   numbers (means of logarithms over the problems): what `plan_sample_size` asks for; what a list of
   200 asks for in which one decision is right and all others are off by just more than alpha, the
   bound's own worst case; what these thresholds ask for under the same mechanism; and under the
   library's, whose R comes from slopes and G from f's range at these shares.
2. **The loop** (`GroupObjectiveClassifier`, linear rules): excess of f and g of the mixture,
   measured on the training rows against the fit without noise, for more and more rows, with what
   Corollary 5.11 as corrected asks for at that excess (0.01 if it is less).

Slopes are least squares of logarithms; where a large alpha asks for next to nothing they are steep.
Theory bounds every problem; where a problem's candidates are spread out, or its constraint binds
few of them, far fewer rows do.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil.curator.choices.ranges import of_decisions
from fairveil.facts import Cells, RowLayout
from fairveil.fairness.group_function import GroupFunction, Joint, corollary_4_2, range_of
from fairveil.fairness.objectives import Error, Frame, Gap
from fairveil.study.sample_bounds import least

Floats = npt.NDArray[np.float64]
EPSILON, DELTA, FAILURE, BOUND, LISTED = 1.0, 1e-6, 0.1, 0.1, 200
ALPHAS, GROUPS = (0.2, 0.1, 0.05, 0.02), (2, 4, 8, 16)
ROWS, SEEDS = (1_000, 3_000, 10_000, 30_000, 100_000), (0, 1, 2)
CLASSES = (0, 1)
PROBLEMS, KINDS = 9, ("asked", "hardest", "needed", "needed by the library's")
WAYS = (
    ("linear-oracle", "sensitive_features"),
    ("frank-wolfe", "sensitive_features"),
    ("linear-oracle", "records"),
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Losses of every threshold, (thresholds, groups, labels, classes), and f and g at their
    frame."""

    losses: Floats
    cells: Cells
    shares: Floats
    f: GroupFunction
    g: GroupFunction


def problem(groups: int, seed: int, rows: int = 40_000) -> Problem:
    """Scores with a mean by group and label: the further apart two groups, the further apart their
    rates. Four in ten thresholds keep the bound."""
    rng = np.random.default_rng((seed, groups))
    group, label = np.arange(rows) % groups, (rng.random(rows) < rng.uniform(0.3, 0.7)).astype(int)
    shift = rng.uniform(0.3, 1.2) * np.linspace(0.0, 1.0, groups)
    score = label * rng.uniform(0.5, 2.0) + shift[group] + rng.standard_normal(rows)
    counts = np.zeros((LISTED, groups, 2, 2))
    for c in range(groups):
        for y in CLASSES:
            sorted_scores = np.sort(score[(group == c) & (label == y)])
            below = np.searchsorted(sorted_scores, np.linspace(-2.5, 4.0, LISTED))
            counts[:, c, y] = np.stack([below, len(sorted_scores) - below], axis=1)
    cells, losses = Cells((tuple(range(groups)),)), counts / rows
    shares = losses[0].sum(axis=-1)
    frame = Frame(cells, CLASSES, shares)
    gap = Gap("equalized_odds").at(frame)
    return Problem(
        losses,
        cells,
        shares,
        Error().at(frame),
        gap.less(float(np.quantile(gap.value(losses), 0.4))),
    )


def fewest(values: tuple[Floats, Floats], penalty: float, widest: float, alpha: float) -> int:
    """The fewest rows n with which exp(-epsilon n h / widest) is off by more than alpha with a
    chance of at most 0.1."""
    f, g = values
    h = f + penalty * np.maximum(g, 0.0)
    bad = (f > f[g <= 0.0].min() + alpha) | (g > alpha)

    def enough(n: float) -> bool:
        weights = np.exp(-EPSILON * n * (h - h.min()) / widest)
        return float(weights[bad].sum() / weights.sum()) <= FAILURE

    return least(enough)


def exponential(groups: int, alpha: float) -> dict[str, Any]:
    """One line of the first table: geometric means over problems."""
    found = np.array(
        [_rows_of(problem(groups, seed), alpha) for seed in range(PROBLEMS)], np.float64
    )
    means = np.exp(np.log(found).mean(axis=0)).round().astype(int).tolist()
    spread = [int(end) for end in (found[:, 3].min(), found[:, 3].max())]
    return {
        "what": "exponential",
        "groups": groups,
        "alpha": alpha,
        **dict(zip(KINDS, means, strict=True)),
        "from, to": spread,
    }


def _rows_of(one: Problem, alpha: float) -> list[int]:
    """Of each of `KINDS`."""
    constants = (one.f.lipschitz, one.g.lipschitz)
    plan = fv.plan_sample_size(
        alpha,
        groups=one.losses[0].size,
        candidates=LISTED,
        epsilon=EPSILON,
        failure=FAILURE,
        lipschitz=constants,
    )
    asked = next(line["rows"] for line in plan.table() if line["theorem"] == "Theorem 5.2")
    values = one.f.value(one.losses), one.g.value(one.losses)
    widest = 2.0 * math.sqrt(2.0) * (constants[0] + plan.penalty * constants[1])
    first = np.arange(LISTED) == 0
    hardest = np.where(first, 0.0, alpha * (1.0 + 1e-9)), np.zeros(LISTED)
    penalty = corollary_4_2(one.f, alpha, wide=range_of(one.f, one.shares))
    low, high = Joint(one.f, one.g, penalty).slopes
    layout = RowLayout(
        0, classes=CLASSES, sensitive=one.cells.columns, sensitive_names=one.cells.names
    )
    promise = fv.Promise(EPSILON, DELTA, neighbours="replace-one")
    closer = float(of_decisions(low, high, one.cells, promise, layout, reads_groups=False))
    return [
        asked,
        fewest(hardest, plan.penalty, widest, alpha),
        fewest(values, plan.penalty, widest, alpha),
        fewest(values, penalty, closer, alpha),
    ]


def people(rows: int) -> tuple[Floats, Any, Any]:
    """Two features in the unit ball, labels, two groups, one of which is labelled 1 more often."""
    rng = np.random.default_rng(rows)
    group = rng.integers(2, size=rows)
    features = np.clip(0.3 * rng.standard_normal((rows, 2)) + 0.2 * group[:, np.newaxis], -0.7, 0.7)
    label = (features.sum(axis=1) + 0.3 * rng.standard_normal(rows) > 0.2).astype(int)
    return features, label, group


def loop(rows: int, protects: str, method: str) -> dict[str, Any]:
    """One line of the second table: the mean excess over seeds, the noise's alone."""
    X, y, group = people(rows)
    counts = np.zeros((2, 2))
    np.add.at(counts, (group, y), 1.0 / rows)
    frame = Frame(Cells(((0, 1),)), CLASSES, counts)
    f, g = Error().at(frame), Gap("equalized_odds").at_most(BOUND).at(frame)

    def falls(epsilon: float, seed: int) -> tuple[float, float]:
        model = fv.GroupObjectiveClassifier(
            "error",
            f"equalized_odds:{BOUND}",
            method,
            epsilon=epsilon,
            delta=DELTA,
            protects=protects,
            unsafe_data_dependent_bounds=True,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chances = model.fit(X, y, sensitive_features=group).predict_proba(X)
        losses = np.zeros(frame.shape)
        np.add.at(losses, (group, y), chances / rows)
        return float(f.value(losses)), float(g.value(losses))

    best, _ = falls(math.inf, 0)
    found = np.array([falls(EPSILON, seed) for seed in SEEDS])
    excess = np.maximum(np.maximum(found[:, 0] - best, found[:, 1]), 0.0)
    alpha = max(float(excess.mean()), 0.01)
    options: dict[str, Any] = (
        {"vc": 3} if protects == "sensitive_features" else {"candidates": 10_000}
    )
    plan = fv.plan_sample_size(
        alpha,
        groups=8,
        epsilon=EPSILON,
        delta=DELTA,
        lipschitz=(f.lipschitz, g.lipschitz),
        **options,
    )
    asked = next(line["rows"] for line in plan.table() if line["theorem"] == "Corollary 5.11")
    return {
        "what": "loop",
        "method": method,
        "protects": protects,
        "rows": rows,
        "excess": float(excess.mean()),
        "excess of f": float((found[:, 0] - best).mean()),
        "excess of g": float(np.maximum(found[:, 1], 0.0).mean()),
        "asked": asked,
    }


def slope(across: Sequence[float], up: Sequence[float]) -> float:
    """Of logarithms, by least squares."""
    return float(np.polyfit(np.log(across), np.log(up), 1)[0])


def slopes(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """In 1/alpha at the most groups, in K at the least alpha, and of the loop's excess in n."""
    found = []
    for name, fixed, value in (("alpha", "groups", GROUPS[-1]), ("groups", "alpha", ALPHAS[-1])):
        chosen = [line for line in lines if line["what"] == "exponential" and line[fixed] == value]
        across = [
            1.0 / line["alpha"] if name == "alpha" else float(line["groups"]) for line in chosen
        ]
        if len(chosen) > 1:
            powers = {kind: slope(across, [line[kind] for line in chosen]) for kind in KINDS}
            found.append(
                {
                    "what": "slope",
                    "in": "1/alpha" if name == "alpha" else "K",
                    fixed: value,
                    **powers,
                }
            )
    for method, protects in WAYS:
        chosen = [
            line
            for line in lines
            if (line.get("method"), line.get("protects")) == (method, protects)
        ]
        if len(chosen) > 1:
            power = slope(
                [line["rows"] for line in chosen], [max(line["excess"], 1e-6) for line in chosen]
            )
            found.append(
                {
                    "what": "slope",
                    "in": "rows",
                    "method": method,
                    "protects": protects,
                    "excess": power,
                }
            )
    return found


def markdown(lines: Sequence[dict[str, Any]]) -> str:
    """Three tables."""
    tables = []
    counts, powers = dict.fromkeys(KINDS, _count), dict.fromkeys(KINDS, _two)
    heads: dict[str, dict[str, Callable[[Any], str]]] = {
        "exponential": {"groups": str, "alpha": str, **counts},
        "loop": {
            "method": str,
            "protects": str,
            "rows": _count,
            "excess of f": _four,
            "excess of g": _four,
            "asked": _count,
        },
        "slope": {
            "in": str,
            "groups": str,
            "alpha": str,
            "method": str,
            "protects": str,
            **powers,
            "excess": _two,
        },
    }
    for what, columns in heads.items():
        chosen = [line for line in lines if line["what"] == what]
        if chosen:
            rows = [
                " | ".join(
                    show(line[name]) if name in line else "" for name, show in columns.items()
                )
                for line in chosen
            ]
            head = [" | ".join(columns), "|".join("---" for _ in columns)]
            tables.append(
                "\n".join(
                    f"| {row} |" if "---" not in row else f"|{row}|" for row in (*head, *rows)
                )
            )
    return "\n\n".join(tables)


def _count(value: Any) -> str:
    return f"{value:,}" if value < 10**7 else f"{value:.1e}"


def _two(value: Any) -> str:
    return f"{value:.2f}"


def _four(value: Any) -> str:
    return f"{value:.4f}"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--alphas", type=float, nargs="+", default=ALPHAS)
    options.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    options.add_argument("--rows", type=int, nargs="*", default=ROWS, help="of the loop")
    options.add_argument("--markdown", action="store_true", help="tables after the lines")
    asked = options.parse_args()
    works: list[Callable[[], dict[str, Any]]] = [
        lambda groups=groups, alpha=alpha: exponential(groups, alpha)  # type: ignore[misc]
        for groups in asked.groups
        for alpha in asked.alphas
    ]
    works += [
        lambda rows=rows, way=way: loop(rows, way[1], way[0])  # type: ignore[misc]
        for way in WAYS
        for rows in asked.rows
    ]
    lines = []
    for work in works:
        lines.append(work())
        print(json.dumps(lines[-1]), flush=True)
    for line in slopes(lines):
        lines.append(line)
        print(json.dumps(line))
    if asked.markdown:
        sys.stdout.write("\n" + markdown(lines) + "\n")


if __name__ == "__main__":
    main()
