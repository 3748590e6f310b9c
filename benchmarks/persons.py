"""Persons with several rows: fits that protect persons, beside group privacy of fits that protect
rows, at equal guarantees.

    python benchmarks/persons.py --seeds 5                        # Parkinsons by subject, and a synthetic panel
    python benchmarks/persons.py --sets panel --people 20000 --seeds 3

Every line of one epsilon and set has the same guarantee: (epsilon, delta) for a person with all of
their rows, add-remove, or replace-one with `--neighbours replace-one`.

- persons: `unit=`, at most `cap` rows of each.
- rows, epsilon / cap: `cap` rows of each are drawn, and a fit protects rows at epsilon / cap and
  delta (e^(epsilon / cap) - 1) / (e^epsilon - 1), which any mechanism turns into (epsilon, delta)
  for `cap` rows. Under replace-one `cap` rows may go and as many come: it divides by twice the cap.
- rows, mu / cap: the same by the curve of Gaussian releases, whose mu grows by the factor `cap`:
  all that group privacy gives.

A seed is a split of persons (a quarter held out) and of the noise. Error, and the gap in
demographic parity with the bound of 0.05, are of the rows of persons held out: mean and standard
error over seeds, in per cent and points. delta is 1e-5. The panel: 1 to 30 rows a person, thirty
features that a person's rows share in half of their variance, a group a person.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import fairveil as fv
from fairveil import data
from fairveil.facts import Category, Number, Schema
from fairveil.privacy import Promise, epsilon, full_batch
from fairveil.privacy.events import Gaussian

DELTA = 1e-5
BOUND = "demographic_parity:0.05"
Table = dict[str, npt.NDArray[Any]]


def main() -> None:
    """Fit, measure, print."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--sets", nargs="+", default=["parkinsons", "panel"])
    options.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 3.0, 10.0])
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--people", type=int, default=2000)
    options.add_argument(
        "--neighbours", default="add-remove", choices=("add-remove", "replace-one")
    )
    options.add_argument("--data", default=os.environ.get("FAIRVEIL_DATA"))
    asked = options.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| set | epsilon | fit | cap | error | error, bound 0.05 | gap, bound 0.05 "
        "|\n|---|---|---|---|---|---|---|"
    )
    for name in asked.sets:
        table, schema, unit, caps = (
            parkinsons(asked.data) if name == "parkinsons" else panel(asked.people)
        )
        splits = [split(table, unit, seed) for seed in range(asked.seeds)]
        _line(name, "-", "one class for everybody", "-", [_constant(one, schema) for one in splits])
        _line(
            name,
            "inf",
            "no privacy",
            "-",
            [_ours(one, schema, math.inf, 0.0, k) for k, one in enumerate(splits)],
        )
        for level in asked.epsilon:
            for cap in caps:
                told = schema.with_unit(unit, cap)
                found = [
                    _ours(one, told, level, DELTA, k, asked.neighbours)
                    for k, one in enumerate(splits)
                ]
                _line(name, level, "persons", cap, found)
            for cap in caps:
                drawn = [
                    (some(train, unit, cap, k), test) for k, (train, test) in enumerate(splits)
                ]
                apart = cap if asked.neighbours == "add-remove" else 2 * cap
                small = DELTA * math.expm1(level / apart) / math.expm1(level)
                for how, at, delta in (
                    ("epsilon", level / apart, small),
                    ("mu", by_mu(level, apart), DELTA),
                ):
                    if cap > 1:
                        found = [_ours(one, schema, at, delta, k) for k, one in enumerate(drawn)]
                        _line(name, level, f"rows, {how} / cap", cap, found)


def by_mu(level: float, apart: int) -> float:
    """The epsilon of rows whose Gaussian releases are (level, DELTA) for so many of them."""
    multiplier = full_batch(Promise(level, DELTA), 1)
    return epsilon(Gaussian(multiplier * apart), DELTA, "add-remove")


def parkinsons(folder: str | None) -> tuple[Table, Schema, str, tuple[int, ...]]:
    """42 patients with 101 to 168 recordings each: is total UPDRS above its median? Groups by
    sex."""
    found = data.get("parkinsons", folder)
    return (
        {name: np.asarray(values) for name, values in found.table.items()},
        found.schema,
        "subject#",
        (1, 20, 168),
    )


def panel(people: int) -> tuple[Table, Schema, str, tuple[int, ...]]:
    """Half of the variance of a row's features is its person's."""
    rng = np.random.default_rng(7)
    ids = np.repeat(np.arange(people), rng.integers(1, 31, people))
    group = rng.integers(0, 2, people)
    own, each = rng.normal(size=(people, 30))[ids], rng.normal(size=(len(ids), 30))
    along = np.r_[0.4, 0.4, np.zeros(28)]
    X = np.clip(math.sqrt(0.5) * (own + each) + group[ids, np.newaxis] * along, -4, 4)
    y = X @ np.r_[1.0, 0.5, rng.normal(size=28) * 0.25] + rng.logistic(size=len(ids)) * 0.6 > 0.3
    table: Table = {f"x{j}": X[:, j] for j in range(30)}
    table |= {"person": ids, "group": group[ids], "label": y.astype(int)}
    columns = {f"x{j}": Number(-4, 4) for j in range(30)}
    return (
        table,
        Schema(
            {**columns, "group": Category((0, 1)), "label": Category((0, 1))}, "label", ("group",)
        ),
        "person",
        (1, 5, 30),
    )


def split(table: Table, unit: str, seed: int) -> tuple[Table, Table]:
    """A quarter of the persons held out, with all of their rows."""
    rng = np.random.default_rng(1000 + seed)
    names = np.unique(table[unit])
    out = np.isin(table[unit], rng.permutation(names)[: len(names) // 4])
    return {k: v[~out] for k, v in table.items()}, {k: v[out] for k, v in table.items()}


def some(table: Table, unit: str, cap: int, seed: int) -> Table:
    """At most `cap` rows of each person, drawn."""
    order = np.random.default_rng(2000 + seed).permutation(len(table[unit]))
    names = table[unit][order]
    by_name = np.argsort(names, kind="stable")
    starts = np.r_[
        0, np.flatnonzero(np.diff(np.unique(names, return_inverse=True)[1][by_name])) + 1
    ]
    rank = np.arange(len(names)) - np.repeat(starts, np.diff(np.r_[starts, len(names)]))
    kept = np.sort(order[by_name[rank < cap]])
    return {k: v[kept] for k, v in table.items()}


def _ours(
    one: tuple[Table, Table],
    schema: Schema,
    level: float,
    delta: float,
    seed: int,
    neighbours: str | None = None,
) -> tuple[float, float, float]:
    train, test = one
    y, truth = train[str(schema.target)], test[str(schema.target)]
    out = []
    for bound in (None, BOUND):
        clf = fv.RateConstrainedClassifier(
            bound,
            epsilon=level,
            delta=delta,
            neighbours=neighbours,
            schema=schema,
            random_state=seed,
            randomised=False,
        )
        clf.fit(train, y, sensitive_features=list(schema.sensitive))
        prediction = clf.predict(test)
        out.append(float((prediction != truth).mean()))
    groups = test[schema.sensitive[0]]
    return out[0], out[1], float(fv.demographic_parity_gap(truth, prediction, groups))


def _constant(one: tuple[Table, Table], schema: Schema) -> tuple[float, float, float]:
    train, test = one
    most = np.mean(train[str(schema.target)].astype(float)) > 0.5
    error = float((test[str(schema.target)].astype(bool) != most).mean())
    return error, error, 0.0


def _line(
    name: str, level: float | str, fit: str, cap: int | str, found: list[tuple[float, float, float]]
) -> None:
    shown: Callable[[int], str] = lambda j: _mean([100 * one[j] for one in found])  # noqa: E731
    level = f"{level:g}" if isinstance(level, float) else level
    print(
        f"| {name} | {level} | {fit} | {cap} | {shown(0)} | {shown(1)} | {shown(2)} |", flush=True
    )


def _mean(values: list[float]) -> str:
    spread = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):.1f} ± {spread:.1f}"


if __name__ == "__main__":
    main()
