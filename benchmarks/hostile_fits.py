"""Fits that go wrong: what is said of them, beside what is true. Prints Markdown.

    python benchmarks/hostile_fits.py
    python benchmarks/hostile_fits.py --json after.json       # the table as data
    python benchmarks/hostile_fits.py --before before.json    # with the verdicts of another run beside

Each line is one fit of made-up people, whose error and required values are measured on 200,000
others. A verdict is wrong where "met" is said of a value above its bound, or "not met" of one
below. A model is poor where its error is a point above the best constant's that keeps the bound as
well, or one per cent above that of the mean. Poor models must be warned of, unless what was known
of them was too noisy to tell.
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.estimators.fitting.promises import notions_of
from fairveil.facts import Category, Number, Schema
from fairveil.fairness import resolve

OTHERS = 200_000
INF = math.inf


@dataclass(frozen=True)
class Seen:
    """One line of the table."""

    situation: str
    error: float
    constant: float
    bound: float | None
    truth: float | None
    verdict: str
    said: tuple[str, ...]
    noise: float | None
    right: bool


@dataclass(frozen=True, eq=False)
class Case:
    """A situation: people by number and seed, and the estimator for so many rows."""

    name: str
    people: Callable[[int, int], tuple[Any, Any, Any]]
    rows: int
    make: Callable[[int], Any]
    seed: int = 0


def drawn(
    shares: tuple[float, ...],
    *,
    rare: float = 0.35,
    width: int = 6,
    pull: float = 0.5,
    raw: float = 1.0,
    classes: int = 2,
) -> Callable[[int, int], tuple[Any, Any, Any]]:
    """People of groups with these shares; labels follow features, and features the group."""

    def people(rows: int, seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        weights = np.random.default_rng(99).normal(size=(width, max(1, classes - 1)))
        A = rng.choice(len(shares), size=rows, p=np.array(shares) / sum(shares))
        X = (
            rng.normal(scale=0.35, size=(rows, width))
            + pull * (A / max(1, len(shares) - 1) - 0.5)[:, np.newaxis]
        )
        scores = X @ weights + rng.logistic(scale=0.3, size=(rows, weights.shape[1]))
        if classes == 2:
            y = (scores[:, 0] > np.quantile(scores[:, 0], 1.0 - rare)).astype(int)
        else:
            y = np.concatenate([np.zeros((rows, 1)), scores], axis=1).argmax(axis=1)
        return np.clip(X, -1, 1) * raw, y, A

    return people


def one_alone(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """Two groups, and one person of a third."""
    X, y, A = drawn((0.5, 0.5))(rows, seed)
    A[0] = 2
    return X, y, A


def group_is_label(rows: int, seed: int) -> tuple[Any, Any, Any]:
    """The label is the group, but for 5 %: no model is fair and right."""
    X, y, _ = drawn((1.0,), rare=0.5)(rows, seed)
    flip = np.random.default_rng(seed + 1).random(rows) < 0.05
    return X, y, np.where(flip, 1 - y, y)


def numbers(raw: float = 1.0) -> Callable[[int, int], tuple[Any, Any, Any]]:
    """A number to predict, of variance about 134 where `raw` is 10."""

    def people(rows: int, seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        A = rng.choice(2, size=rows, p=[0.2, 0.8])
        X = rng.normal(size=(rows, 4)) * raw
        return X, X[:, 0] + 0.5 * raw * A + rng.normal(size=rows) * raw * 0.3, A

    return people


def stated(
    low: float, high: float, classes: tuple[int, ...] = (0, 1), groups: tuple[int, ...] = (0, 1)
) -> Schema:
    """A schema of six numbers with these bounds."""
    columns: dict[str, Any] = {f"x{j}": Number(low, high) for j in range(6)}
    return Schema(
        {**columns, "A": Category(groups), "y": Category(classes)}, sensitive=("A",), target="y"
    )


def rate(constraint: Any, **options: Any) -> Callable[[int], Any]:
    """A rate-constrained fit."""
    return lambda rows: fv.RateConstrainedClassifier(constraint, **_usual(rows, options))


def _usual(rows: int, options: dict[str, Any]) -> dict[str, Any]:
    known = (
        {}
        if options.get("protects") or options.get("epsilon") == INF or "schema" in options
        else {"public_rows": rows}
    )
    return {"epsilon": 1.0, "random_state": 0} | known | options


PARITY, ODDS = "demographic_parity:0.05", "equalized_odds:0.05"
FOUR = (0.32, 0.32, 0.32, 0.04)
CASES = [
    Case("two groups, 30,000 rows", drawn((0.4, 0.6)), 30_000, rate(PARITY)),
    Case("two groups, a loose bound", drawn((0.4, 0.6)), 30_000, rate("demographic_parity:0.3")),
    Case("6 groups, 1,500 rows, epsilon 0.5", drawn((1,) * 6), 1500, rate(PARITY, epsilon=0.5)),
    Case("12 groups, 3,000 rows", drawn((1,) * 12), 3000, rate(PARITY)),
    Case("4 groups, one of 4 %, epsilon 3", drawn(FOUR), 20_000, rate(PARITY, epsilon=3.0)),
    Case("4 groups, one of 4 %, epsilon 1", drawn(FOUR), 20_000, rate("demographic_parity:0.02")),
    Case("rare labels (2 %), parity", drawn((0.5, 0.5), rare=0.02), 10_000, rate(PARITY)),
    Case(
        "rare labels (9 %), 20 % missed",
        drawn((0.5, 0.5), rare=0.09),
        20_000,
        rate("false_negative_rate:0.2"),
    ),
    Case(
        "rare labels (2 %), 20 % missed",
        drawn((0.5, 0.5), rare=0.02),
        5000,
        rate("false_negative_rate:0.2,group=each"),
    ),
    Case("one person alone, parity", one_alone, 5000, rate(PARITY)),
    Case("one person alone, odds", one_alone, 5000, rate(ODDS, epsilon=3.0)),
    Case(
        "raw units without a schema",
        drawn((0.5, 0.5), raw=50_000.0),
        10_000,
        rate(PARITY, epsilon=3.0),
    ),
    Case(
        "raw units, groups alone protected",
        drawn((0.5, 0.5), raw=50_000.0),
        10_000,
        rate(PARITY, epsilon=3.0, protects="sensitive_features"),
    ),
    Case(
        "bounds far too narrow",
        drawn((0.5, 0.5)),
        10_000,
        rate(PARITY, epsilon=3.0, schema=stated(-0.01, 0.01)),
    ),
    Case(
        "bounds far too wide",
        drawn((0.5, 0.5)),
        10_000,
        rate(PARITY, epsilon=3.0, schema=stated(-1000.0, 1000.0)),
    ),
    Case("200 rows", drawn((0.5, 0.5)), 200, rate(PARITY)),
    Case("200 rows, epsilon 10", drawn((0.5, 0.5)), 200, rate(PARITY, epsilon=10.0)),
    Case("99 : 1", drawn((0.99, 0.01)), 10_000, rate(PARITY)),
    Case("the label is the group", group_is_label, 10_000, rate(PARITY, epsilon=3.0)),
    Case(
        "parity and odds that contradict",
        group_is_label,
        10_000,
        rate(["demographic_parity:0.02", "equalized_odds:0.02"], epsilon=3.0),
    ),
    Case("5 classes, 4 groups", drawn((1,) * 4, classes=5), 6000, rate(ODDS)),
    Case(
        "without privacy, one rule",
        drawn((0.3, 0.3, 0.4), pull=0.8),
        3000,
        rate("demographic_parity:0.2", epsilon=INF),
    ),
    Case(
        "post-processing, 6 groups, 1,500 rows",
        drawn((1,) * 6),
        1500,
        lambda rows: fv.OddsPostProcessor(None, ODDS, **_usual(rows, {})),
    ),
    Case(
        "game, 4 groups, 4,000 rows",
        drawn(FOUR),
        4000,
        lambda rows: fv.OracleGameClassifier(ODDS, **_usual(rows, {})),
    ),
    Case(
        "group objective, rare labels",
        drawn((0.5, 0.5), rare=0.02),
        5000,
        lambda rows: fv.GroupObjectiveClassifier("error", PARITY, **_usual(rows, {})),
    ),
    Case(
        "tailored, a tiny group",
        drawn((0.99, 0.01), rare=0.1),
        3000,
        lambda rows: fv.TailoredClassifier(**_usual(rows, {"epsilon": 0.2})),
    ),
    Case(
        "regressor, raw units",
        numbers(10.0),
        5000,
        lambda rows: fv.TailoredRegressor(target_bounds=(-60, 60), **_usual(rows, {})),
    ),
    Case(
        "regressor, 300 rows, epsilon 0.1",
        numbers(0.3),
        300,
        lambda rows: fv.GroupObjectiveRegressor(
            "error", target_bounds=(-3, 3), **_usual(rows, {"epsilon": 0.1})
        ),
    ),
]


def main() -> None:
    """Fit, measure, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--json", type=Path)
    options.add_argument("--before", type=Path)
    asked = options.parse_args()
    found = [seen(case) for case in CASES]
    if asked.json:
        asked.json.write_text(json.dumps([asdict(one) for one in found], indent=1))
    before = (
        {one["situation"]: one for one in json.loads(asked.before.read_text())}
        if asked.before
        else {}
    )
    print("\n".join(table(found, before)))


def seen(case: Case) -> Seen:
    """One fit, and what is true of it."""
    X, y, A = case.people(case.rows, case.seed)
    model = case.make(case.rows)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        _fit(model, X, y, A)
    said = tuple(
        sorted(
            {
                type(one.message).__name__
                for one in heard
                if isinstance(one.message, fv.errors.FairveilWarning)
            }
        )
    )
    Xo, yo, Ao = case.people(OTHERS, case.seed + 1000)
    report = model.constraint_report_
    told = (
        {True: "met", False: "not met", None: "cannot be told"}[report.met] if report.lines else "-"
    )
    if np.asarray(y).dtype.kind == "f":
        error, constant = float(np.mean((model.predict(Xo) - yo) ** 2)), float(np.var(yo))
        poor, bound, truth = error > 1.01 * constant, None, None
    else:
        law = _law(model, Xo, Ao)
        error = float(1.0 - law[np.arange(OTHERS), yo].mean())
        bound, truth, constants = required(model, law, yo, Ao)
        admitted = [
            float((yo != k).mean())
            for k in range(law.shape[1])
            if truth is None or constants[k] <= max(bound, truth)
        ]
        constant = min(admitted, default=math.nan)
        poor = error > constant + 0.01
    baselines = getattr(model, "baselines_", None)
    beaten = "WorseThanBaseline" in said or "NoBetterThanConstant" in said
    noise = None if baselines is None else max(line.noise for line in baselines.lines[:1])
    deaf = noise is not None and error - constant < 2 * noise
    wrong = truth is not None and (
        (told == "met" and truth > bound) or (told == "not met" and truth <= bound)
    )
    return Seen(
        case.name,
        error,
        constant,
        bound,
        truth,
        told,
        said,
        noise,
        not wrong and (not poor or beaten or deaf),
    )


def _fit(model: Any, X: Any, y: Any, A: Any) -> None:
    if getattr(model, "schema", None) is None:
        model.fit(X, y, sensitive_features=A)
        return
    model.fit({f"x{j}": X[:, j] for j in range(X.shape[1])} | {"A": A, "y": y})


def _law(model: Any, X: Any, A: Any) -> Any:
    given: Any = (
        X
        if getattr(model, "schema", None) is None
        else {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"A": A}
    )
    options = {"sensitive_features": A} if isinstance(model, fv.OddsPostProcessor) else {}
    if isinstance(
        model, fv.OddsPostProcessor | fv.OracleGameClassifier | fv.GroupObjectiveClassifier
    ):
        return model.predict_proba(given, **options)
    decided = model.predict(given)
    return (decided[:, np.newaxis] == model.classes_).astype(float)


def required(model: Any, law: Any, y: Any, A: Any) -> tuple[Any, Any, Any]:
    """The bound that is furthest from being kept, the true value, and that of deciding for one
    class."""
    constraints = getattr(model, "constraints", getattr(model, "constraint", None))
    if constraints is None or not isinstance(constraints, str | list):
        return None, None, None
    groups = tuple(range(int(A.max()) + 1))
    system = resolve(notions_of(constraints), fv.facts.Cells((groups,)), tuple(range(law.shape[1])))
    histogram = np.zeros(system.shape)
    np.add.at(histogram, (A, y), law)
    counts = histogram.sum(axis=2)
    values = system.exact_values(histogram, counts)
    j = int(np.nanargmax(values - system.bounds))
    alike = [
        np.nanmax(system.exact_values(counts[..., np.newaxis] * np.eye(law.shape[1])[k], counts))
        for k in range(law.shape[1])
    ]
    return float(system.bounds[j]), float(values[j]), alike


def table(found: list[Seen], before: dict[str, Any]) -> Iterator[str]:
    """Lines of Markdown."""
    heads = [
        "situation",
        "error",
        "best constant",
        "required",
        "true value",
        *(["said before"] if before else []),
        "said",
        "right",
    ]
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for one in found:
        squares = one.bound is None and one.error > 1.0
        size = (
            (lambda value: f"{value:.4g}")
            if squares or "regressor" in one.situation
            else (lambda value: f"{100 * value:.1f} %")
        )
        bound = "-" if one.bound is None else f"{100 * one.bound:.0f}"
        truth = "-" if one.truth is None else f"{100 * one.truth:.1f}"
        earlier = (
            [words(before[one.situation])] if one.situation in before else ["-"] if before else []
        )
        cells = [
            one.situation,
            size(one.error),
            size(one.constant),
            bound,
            truth,
            *earlier,
            words(asdict(one)),
        ]
        yield "| " + " | ".join([*cells, "yes" if one.right else "**no**"]) + " |"
    wrong = sum(not one.right for one in found)
    yield ""
    yield f"{len(found)} fits, {wrong} of which something wrong is said."


def words(one: dict[str, Any]) -> str:
    """The verdict and the warnings."""
    return "; ".join([one["verdict"], *one["said"]])


if __name__ == "__main__":
    main()
