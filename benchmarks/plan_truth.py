"""Does `plan` foretell the noise that fits have? Planned noise against what fits report, and
against what is seen over seeds.

    python benchmarks/plan_truth.py [--seeds 40] [--quick]

For each situation a table is drawn, planned for from its schema alone, and fitted to with `--seeds`
seeds of noise. Of each constraint, in percentage points:

    planned   the deviation of its released value's noise, before any row is read
    reported  the median of what the fits' reports say it was, over planned
    seen      the root mean square of (released value - exact training value), over planned

Ratios are of the noisiest constraint and, pooled, of all. "off" marks what is further than 20 %
from 1. The second table holds the error that noise adds against the same fits without noise.
"""

from __future__ import annotations

import argparse
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.errors import FairveilWarning
from fairveil.facts import Boolean, Category, Number, Schema
from fairveil.fairness import resolve
from fairveil.fairness.notions import parse

warnings.simplefilter("ignore", FairveilWarning)
HALF = (0.5, 0.25, 0.125, 0.0625, 0.03125, 0.03125)


@dataclass(frozen=True)
class Situation:
    """One fit, many times over. `shares`: of the groups; `stated`: what the schema says of them,
    None for the truth."""

    name: str
    estimator: str
    constraint: str
    rows: int
    shares: tuple[float, ...]
    epsilon: float
    options: tuple[tuple[str, Any], ...] = ()
    classes: int = 2


SITUATIONS = (
    Situation(
        "parity, 2 groups", "rate-constrained", "demographic_parity:0.05", 10_000, (0.3, 0.7), 1.0
    ),
    Situation("parity, 6 groups", "rate-constrained", "demographic_parity:0.1", 30_000, HALF, 1.0),
    Situation(
        "parity, few rows", "rate-constrained", "demographic_parity:0.1", 2_000, (0.3, 0.7), 2.0
    ),
    Situation(
        "odds, 3 groups", "rate-constrained", "equalized_odds:0.1", 20_000, (0.5, 0.3, 0.2), 2.0
    ),
    Situation(
        "FNR, 2 groups", "rate-constrained", "false_negative_rate:0.3", 10_000, (0.3, 0.7), 1.0
    ),
    Situation(
        "parity, groups protected",
        "rate-constrained",
        "demographic_parity:0.05",
        10_000,
        (0.3, 0.7),
        0.5,
        (("protects", "sensitive_features"),),
    ),
    Situation(
        "parity, 3 classes",
        "rate-constrained",
        "demographic_parity:0.1",
        20_000,
        (0.3, 0.7),
        1.0,
        (),
        3,
    ),
    Situation("odds, 2 groups", "post-processing", "equalized_odds:0.05", 10_000, (0.3, 0.7), 1.0),
    Situation(
        "odds, 4 groups",
        "post-processing",
        "equalized_odds:0.05",
        20_000,
        (0.4, 0.3, 0.2, 0.1),
        0.5,
    ),
    Situation(
        "odds, groups protected",
        "post-processing",
        "equalized_odds:0.05",
        5_000,
        (0.3, 0.7),
        0.5,
        (("protects", "sensitive_features"),),
    ),
    Situation("parity, 3 groups", "game", "demographic_parity:0.05", 20_000, (0.5, 0.3, 0.2), 1.0),
    Situation(
        "FPR, groups protected",
        "game",
        "false_positive_rate_parity:0.05",
        10_000,
        (0.3, 0.7),
        1.0,
        (("protects", "sensitive_features"),),
    ),
    Situation(
        "odds, descent",
        "game",
        "equalized_odds:0.1",
        10_000,
        (0.3, 0.7),
        10.0,
        (("oracle", "descent"),),
    ),
    Situation("odds, 2 groups", "group-objective", "equalized_odds:0.1", 10_000, (0.3, 0.7), 2.0),
    Situation(
        "odds, groups protected",
        "group-objective",
        "equalized_odds:0.1",
        10_000,
        (0.3, 0.7),
        1.0,
        (("protects", "sensitive_features"),),
    ),
    Situation(
        "parity, one decision",
        "group-objective",
        "demographic_parity:0.1",
        10_000,
        (0.3, 0.7),
        1.0,
        (("method", "exponential"),),
    ),
)


def schema_of(one: Situation) -> Schema:
    """Public facts, the groups' and classes' shares among them."""
    columns: dict[str, Any] = {f"x{j}": Number(-4.0, 4.0) for j in range(5)}
    columns["group"] = Category(tuple("abcdef"[: len(one.shares)]), shares=one.shares)
    even = tuple([1.0 / one.classes] * one.classes)
    columns["label"] = (
        Boolean(shares=(0.6, 0.4))
        if one.classes == 2
        else Category(tuple(range(one.classes)), shares=even)
    )
    return Schema(columns, target="label", sensitive=["group"], rows=one.rows)


def table_of(one: Situation, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Rows whose groups differ in the first number, on which the label depends."""
    rng = np.random.default_rng(seed)
    group = rng.choice(len(one.shares), one.rows, p=one.shares)
    X = rng.normal(size=(one.rows, 5))
    X[:, 0] += 0.4 * group
    score = X[:, 0] + X[:, 1] - 0.5 * X[:, 2] + rng.normal(size=one.rows)
    cuts = np.quantile(
        score,
        [0.6] if one.classes == 2 else [(k + 1) / one.classes for k in range(one.classes - 1)],
    )
    y = np.searchsorted(cuts, score)
    table: dict[str, Any] = {f"x{j}": X[:, j] for j in range(5)}
    table["group"] = np.array(list("abcdef"))[group]
    return table, y.astype(bool) if one.classes == 2 else y


def estimator_of(one: Situation, epsilon: float, seed: int | None) -> Any:
    """The estimator, not fitted."""
    options = {
        "epsilon": epsilon,
        "schema": schema_of(one),
        "random_state": seed,
        **dict(one.options),
    }
    if one.estimator == "post-processing":
        return fv.OddsPostProcessor(constraints=one.constraint, **options)
    if one.estimator == "group-objective":
        return fv.GroupObjectiveClassifier("error", one.constraint, **options)
    made = {"rate-constrained": fv.RateConstrainedClassifier, "game": fv.OracleGameClassifier}[
        one.estimator
    ]
    return made(one.constraint, **options)


def law_of(clf: Any, table: dict[str, Any]) -> Any:
    """The distribution of its decisions, (rows, classes)."""
    if isinstance(clf, fv.OddsPostProcessor):
        return clf.predict_proba(table, sensitive_features=["group"])
    if isinstance(clf, fv.RateConstrainedClassifier):
        return clf.predict(table)[:, np.newaxis] == clf.classes_
    return clf.predict_proba(table)


def exact_values(one: Situation, clf: Any, table: dict[str, Any], y: Any) -> dict[str, float]:
    """Each constraint's exact training value, by name."""
    cells, classes = clf.cells_, tuple(clf.classes_.tolist())
    system = resolve(parse(one.constraint), cells, classes)
    ids = np.searchsorted(np.array(list("abcdef")[: len(one.shares)]), table["group"])
    labels = np.searchsorted(clf.classes_, y)
    histogram = np.zeros(system.shape)
    np.add.at(histogram, (ids, labels), np.asarray(law_of(clf, table), np.float64))
    return dict(
        zip(
            system.names,
            system.exact_values(histogram, histogram.sum(axis=2)).tolist(),
            strict=True,
        )
    )


def measured(one: Situation, seeds: int) -> tuple[Any, list[dict[str, float]]]:
    """The plan, and a line for each fit and constraint: reported, and how far the value is off,
    over what was planned."""
    plan = estimator_of(one, one.epsilon, None).plan()
    table, y = table_of(one)
    lines = []
    for seed in range(seeds):
        clf = estimator_of(one, one.epsilon, seed).fit(table, y)
        exact = exact_values(one, clf, table, y)
        told = {line.target: line for line in clf.constraint_report_.lines}
        for place, line in enumerate(plan.lines):
            report = told[line.name]
            off = (report.value - exact[line.name]) / line.noise
            lines.append({"place": place, "reported": report.noise / line.noise, "off": off})
    return plan, lines


def row_of(one: Situation, seeds: int) -> tuple[str, ...]:
    """One line of the table."""
    plan, lines = measured(one, seeds)
    worst = max(range(len(plan.lines)), key=lambda place: plan.lines[place].noise)
    alone = [line for line in lines if line["place"] == worst]
    reported = [float(np.median([line["reported"] for line in some])) for some in (alone, lines)]
    seen = [
        math.sqrt(float(np.mean([line["off"] ** 2 for line in some]))) for some in (alone, lines)
    ]
    off = "" if all(0.8 <= ratio <= 1.2 for ratio in (*reported, *seen)) else "off"
    return (
        one.estimator,
        one.name,
        f"{one.rows:,}",
        f"{one.epsilon:g}",
        f"{100 * plan.lines[worst].noise:.2f}",
        f"{reported[0]:.2f}",
        f"{reported[1]:.2f}",
        f"{seen[0]:.2f}",
        f"{seen[1]:.2f}",
        off,
    )


def error_rows(seeds: int) -> list[tuple[str, ...]]:
    """The error that noise adds: planned, and the mean over seeds of error with noise less error
    without."""
    out = []
    for rows, epsilon in (
        (500, 1.0),
        (1_000, 1.0),
        (2_000, 1.0),
        (5_000, 1.0),
        (2_000, 0.3),
        (10_000, 0.1),
        (30_000, 1.0),
    ):
        one = Situation(
            "no constraint",
            "rate-constrained",
            "demographic_parity:0.05",
            rows,
            (0.3, 0.7),
            epsilon,
        )
        schema = schema_of(one)
        table, y = table_of(one)
        other, truth = table_of(
            Situation(one.name, one.estimator, one.constraint, 20_000, one.shares, epsilon), 1
        )
        usual = (
            fv.RateConstrainedClassifier(None, epsilon=math.inf, schema=schema)
            .fit(table, y)
            .score(other, truth)
        )
        noisy = [
            fv.RateConstrainedClassifier(None, epsilon=epsilon, schema=schema, random_state=seed)
            .fit(table, y)
            .score(other, truth)
            for seed in range(seeds)
        ]
        plan = fv.RateConstrainedClassifier(None, epsilon=epsilon, schema=schema).plan()
        added = [usual - score for score in noisy]
        out.append(
            (
                f"{rows:,}",
                f"{epsilon:g}",
                f"{100 * plan.forecast.added_error:.1f}",
                f"{100 * float(np.mean(added)):.1f}",
                f"{100 * float(np.std(added)) / math.sqrt(seeds):.1f}",
                f"{100 * (1 - usual):.1f}",
            )
        )
    return out


def show(rows: list[tuple[str, ...]]) -> None:
    """An aligned table."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(),
            flush=True,
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--only", type=int, default=None, help="one situation, by number")
    asked = parser.parse_args()
    heads = (
        "estimator",
        "situation",
        "rows",
        "epsilon",
        "planned",
        "reported",
        "all",
        "seen",
        "all",
        "",
    )
    chosen = SITUATIONS if asked.only is None else SITUATIONS[asked.only : asked.only + 1]
    show([heads, *(row_of(one, asked.seeds) for one in chosen)])
    print()
    if asked.only is None:
        show(
            [
                ("rows", "epsilon", "added, planned", "added, seen", "+-", "error without noise"),
                *error_rows(asked.seeds),
            ]
        )


if __name__ == "__main__":
    main()
