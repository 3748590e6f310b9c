"""Numbers in raw units, with and without a schema: errors, and the warnings that say why.

    python benchmarks/public_warnings.py

People who do not exist: an income (about 50,000), an age (about 40), a share (about 0.5), and a
target linear in them. Each estimator is fitted to the same rows twice: as they come without a
schema, and by a schema with public bounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.data import Category, Number, Schema
from fairveil.errors import FairveilWarning

ROWS = 4_000
SEED = 0
PARITY = "demographic_parity:0.3"
BOUNDS = (0.0, 200.0)
UNITS = {"income": Number(0, 100_000), "age": Number(0, 90), "share": Number(0, 1)}


def people() -> tuple[dict[str, Any], Any, Any, Any]:
    """(columns in raw units, labels, a target that is a number, groups)."""
    rng = np.random.default_rng(SEED)
    groups = rng.integers(2, size=ROWS)
    plain = rng.normal(size=(ROWS, 3)) + 0.3 * groups[:, np.newaxis]
    raw = plain * [15_000, 12, 0.15] + [50_000, 40, 0.5]
    columns = {
        name: raw[:, j].clip(one.low, one.high) for j, (name, one) in enumerate(UNITS.items())
    }
    score = plain @ [1.5, 1.0, -1.0]
    labels = (score + 0.5 * rng.normal(size=ROWS) > 0).astype(int)
    return columns, labels, 100 + 5 * score + 3 * rng.normal(size=ROWS), groups


def schema_of(target: Any) -> Schema:
    """Public bounds."""
    return Schema(UNITS | {"y": target, "group": Category((0, 1))}, target="y", sensitive="group")


def fitted(
    make: Callable[..., Any], X: Any, y: Any, groups: Any, **options: Any
) -> tuple[Any, str]:
    """The predictions of a fit and the library's warnings before it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(random_state=SEED, **options).fit(X, y, sensitive_features={"group": groups})
        by_group = (
            {"sensitive_features": {"group": groups}}
            if isinstance(model, fv.OddsPostProcessor)
            else {}
        )
        predicted = model.predict(X, **by_group)
    ours = [one.category.__name__ for one in caught if issubclass(one.category, FairveilWarning)]
    return predicted, ", ".join(
        name for name in dict.fromkeys(ours) if name != "ConstraintNotMet"
    ) or "none"


def net() -> Any:
    """A small module."""
    import torch

    torch.manual_seed(SEED)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "RateConstrainedClassifier": lambda **more: fv.RateConstrainedClassifier(PARITY, **more),
    "RateConstrainedClassifier, a module": lambda **more: fv.RateConstrainedClassifier(
        PARITY, model=net(), **more
    ),
    "FermiClassifier": lambda **more: fv.FermiClassifier(strength=0.1, **more),
    "OracleGameClassifier": lambda **more: fv.OracleGameClassifier(PARITY, **more),
    "OddsPostProcessor": lambda **more: fv.OddsPostProcessor(constraints=PARITY, **more),
    "GroupObjectiveClassifier": lambda **more: fv.GroupObjectiveClassifier("error", PARITY, **more),
    "TailoredClassifier": lambda **more: fv.TailoredClassifier(**more),
}
REGRESSORS: dict[str, Callable[..., Any]] = {
    "GroupObjectiveRegressor": lambda **more: fv.GroupObjectiveRegressor(**more),
    "TailoredRegressor": lambda **more: fv.TailoredRegressor(**more),
}


def main() -> None:
    """Two tables."""
    columns, labels, target, groups = people()
    raw = np.stack(list(columns.values()), axis=1)
    constant = 100 * min(labels.mean(), 1 - labels.mean())
    print(
        f"{ROWS:,} rows, epsilon 1, records protected; the best constant errs on {constant:.1f} "
        f"%.\n"
    )
    print(
        "| classifier | errors without a schema | warnings | errors with one | warnings "
        "|\n|---|---|---|---|---|"
    )
    of_labels, of_target = schema_of(Category((0, 1))), schema_of(Number(*BOUNDS))
    for name, make in CLASSIFIERS.items():
        cells = [name]
        for X, options in ((raw, {}), (columns, {"schema": of_labels})):
            predicted, said = fitted(make, X, labels, groups, **options)
            cells += [f"{100 * np.mean(predicted != labels):.1f} %", said]
        print(f"| {' | '.join(cells)} |")
    print(f"\nThe target's variance is {target.var():.0f}.\n")
    print(
        "| regressor | mean squared error without a schema | warnings | with one | warnings "
        "|\n|---|---|---|---|---|"
    )
    for name, make in REGRESSORS.items():
        cells = [name]
        for X, options in ((raw, {"target_bounds": BOUNDS}), (columns, {"schema": of_target})):
            predicted, said = fitted(make, X, target, groups, **options)
            cells += [f"{np.mean((predicted - target) ** 2):,.1f}", said]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
