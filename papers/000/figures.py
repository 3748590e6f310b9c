"""The cost of a reductions approach (Alabi): its examples by the library's own public names."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from curves import splits_of
from reproduce import EQUAL, LESS, MORE, SHOWN, Asked, Line, Paper, over_seeds

import fairveil as fv
from fairveil.facts import Category, Number, Schema
from fairveil.fairness.objectives import GMean
from sets import law

PAPER = Paper("000", "The cost of a reductions approach", Path(__file__).parent)


@PAPER.target(
    "ols",
    "Section 1.3.1: least squares whose groups' losses are bounded",
    "same: without privacy it is weighted least squares",
    unit="largest difference of coefficients",
)
def least_squares(asked: Asked) -> Iterator[Line]:
    """The mean of the groups' losses is least squares with weights 1 / n_g."""
    rng = np.random.default_rng(0)
    sizes, slopes = (900, 300), (0.8, -0.4)
    g = np.repeat(np.arange(2), sizes)
    x = rng.uniform(-1, 1, (len(g), 2))
    y = np.clip(
        np.array(slopes)[g] * x[:, 0] + 0.2 * x[:, 1] + 0.1 * rng.normal(size=len(g)), -2, 2
    )
    schema = Schema(
        {"a": Number(-1, 1), "b": Number(-1, 1), "g": Category((0, 1)), "y": Number(-2, 2)},
        target="y",
        sensitive=("g",),
    )
    table = {"a": x[:, 0], "b": x[:, 1], "g": g, "y": y}
    model = fv.FairRegressor(objective="mean_group_loss", epsilon=math.inf, schema=schema)
    model.fit(table)
    design = np.column_stack([np.ones(len(g)), x])
    root = np.sqrt(1.0 / np.array(sizes))[g]
    want, *_ = np.linalg.lstsq(design * root[:, np.newaxis], y * root, rcond=None)
    ours = np.concatenate([[float(np.ravel(model.intercept_)[0])], np.ravel(model.coef_)])
    yield Line("against numpy's", 0.0, float(np.abs(ours - want).max()), how=EQUAL, slack=1e-6)


@PAPER.target(
    "power",
    "Section 1.3.3: powerful tests of a level",
    "works from some 10,000 samples on",
    unit="per cent",
)
def powerful_test(asked: Asked) -> Iterator[Line]:
    """Of the private choice among tests, by its distribution: power and level (examples/)."""
    example = _example("powerful_test")
    for rows in (10_000,) if asked.quick else (10_000, 100_000):
        tests = [example.chosen(rows, seed) for seed in range(asked.seeds)]
        want = PAPER.published["test"]
        power = over_seeds([100 * example.rejection(*one, example.SHIFT) for one in tests])
        yield Line(f"{rows:,} samples: power", want["power"], *power, MORE, 3.0)
        level = over_seeds([100 * example.rejection(*one, 0.0) for one in tests])
        yield Line(f"{rows:,} samples: level", want["level"], *level, LESS, 1.0)


def _example(name: str) -> Any:
    file = PAPER.folder.parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@PAPER.target(
    "ex8.2",
    "Example 8.2: the geometric mean of recalls, Adult, records",
    "short of a bound on misses at epsilon 1",
    sets=("adult",),
    unit="geometric mean of recalls, held out",
)
def gmean(asked: Asked) -> Iterator[Line]:
    """Beside a rate constraint on misses, which reaches more of it."""
    for epsilon in (1.0,) if asked.quick else (1.0, 3.0):
        means, rival = [], []
        for seed, (train, test) in enumerate(splits_of("adult", asked.seeds, asked.folder)):
            shared: Any = {
                "epsilon": epsilon,
                "delta": 1.0 / train.block.rows**2,
                "random_state": seed,
            }
            ours = fv.FairClassifier(objective=GMean(), **shared).fit(train)
            means.append(_gmean(law(ours, test)[:, 1], test))
            other = fv.FairClassifier("false_negative_rate:0.19", **shared).fit(train)
            rival.append(_gmean(law(other, test)[:, 1], test))
        beside, _ = over_seeds(rival)
        yield Line(f"eps {epsilon:g}, beside misses of 19 %", beside, *over_seeds(means), SHOWN)
        yield Line(f"eps {epsilon:g}, at least", 0.78, *over_seeds(means), MORE)


def _gmean(share: Any, rows: Any) -> float:
    true = rows.labels == 1
    return math.sqrt(float(share[true].mean()) * float(1.0 - share[~true].mean()))


@PAPER.target(
    "sec6",
    "Section 6: how many rows suffice, and how many are needed",
    "same orders, with constants",
    unit="rows",
)
def sample_size(asked: Asked) -> Iterator[Line]:
    """The planner's lower bounds are below its upper ones, and grow as the theorems say."""
    found = {}
    for alpha in (0.1, 0.05):
        plan = fv.study.plan_sample_size(alpha, groups=8, candidates=100)
        for line in plan.table():
            if line["rows"] is not None:
                found[line["theorem"], alpha] = float(line["rows"])
    orders = {"Theorem 5.2": 2.0, "Theorem 6.1": 1.0, "Theorem 6.2": 1.0}
    for theorem, order in orders.items():
        grows = math.log2(found[theorem, 0.05] / found[theorem, 0.1])
        yield Line(f"{theorem}: order in 1 / alpha", order, grows, how=EQUAL, slack=0.3)
    yield Line(
        "lower bound 6.1 beside upper 5.2",
        found["Theorem 5.2", 0.05],
        found["Theorem 6.1", 0.05],
        how=LESS,
    )
