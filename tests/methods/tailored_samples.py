"""Rows in unlike groups, small tailored runs and their prices by hand. A name of its own: conftests
are many."""

from __future__ import annotations

import math
from typing import Any

import group_samples as s
import numpy as np

from fairveil.core.events import Composed, Gaussian, PerCell, Repeated
from fairveil.curator import Curator, Rows
from fairveil.facts import Cells
from fairveil.fairness.objectives import Constraint, Error, MeanGroupLoss
from fairveil.methods.least_squares import RegressionTask
from fairveil.privacy import NoiseSource, Promise

ADDED = Promise(4.0, 1e-6)
REPLACED = Promise(4.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(4.0, 1e-6, protects="sensitive_features")
PROMISES = {"add": ADDED, "replace": REPLACED, "groups": SENSITIVE}
EXACT = Promise(math.inf, 1e-6)
PLENTY = Promise(1e7, 1e-6)
"""Private, with hardly any noise."""


def sample(
    sizes: tuple[int, ...] = (700, 250, 50), numbers: int = 2, seed: int = 0
) -> tuple[Any, Any, Any]:
    """X in [-1, 1], targets in [-1, 1] and the groups: each has a line and a spread of its own,
    smaller groups a larger one."""
    rng = np.random.default_rng(seed)
    A = np.repeat(np.arange(len(sizes)), sizes)
    rng.shuffle(A)
    X = rng.uniform(-1, 1, size=(len(A), numbers))
    lines = np.random.default_rng(5).uniform(-0.4, 0.4, size=(len(sizes), numbers))
    y = (
        (X * lines[A]).sum(axis=1)
        + 0.1 * A / len(sizes)
        + 0.05 * (1 + 2 * A) * rng.normal(size=len(A))
    )
    return X, np.clip(y, -1, 1), A


def rows_of(
    X: Any,
    y: Any,
    A: Any,
    groups: tuple[int, ...] = (3,),
    weights: Any = None,
    *,
    classes: Any = None,
) -> Rows:
    """Of a regression, with the target as the last number too; or of labels. `A`: a column, or one
    for each of `groups`."""
    columns = [A] if len(groups) == 1 and np.ndim(A) == 1 else list(A)
    facts: dict[str, Any] = {"groups": [tuple(range(size)) for size in groups]}
    facts["sensitive_names"] = [f"s{j}" for j in range(len(groups))]
    if weights is not None:
        facts |= {"sample_weight": weights, "max_sample_weight": 1.5}
    if classes is not None:
        return Rows.from_arrays(X, y, columns, classes=classes, **facts)
    return Rows.from_arrays(np.column_stack([X, y]), y, columns, regression=True, **facts)


def cells_of(groups: tuple[int, ...] = (3,), mode: Any = "product") -> Cells:
    return Cells(
        tuple(tuple(range(size)) for size in groups),
        mode,
        tuple(f"s{j}" for j in range(len(groups))),
    )


def task_of(
    rows: Rows,
    promise: Promise,
    groups: tuple[int, ...] = (3,),
    mode: str = "product",
    bounds: Any = (),
    **options: Any,
) -> RegressionTask:
    objective = Error() if options.pop("people", False) else MeanGroupLoss()
    cap = rows.max_sample_weight if rows.weighted else None
    stated = rows.exact_count if promise.rows_are_public or not promise.is_private else None
    cells = cells_of(groups, mode) if groups else None
    options = {"public_rows": stated, "max_sample_weight": cap, **options}
    return RegressionTask(
        promise, rows.layout, cells, objective, Constraint(tuple(bounds)), **options
    )


def curator_for(planned: Any, rows: Rows, seed: int = 0, of: type[Curator] = Curator) -> Any:
    promise = planned.task.promise
    stated = (
        planned.task.public_rows if promise.is_private and not promise.rows_are_public else None
    )
    return of(rows, promise, plan=planned.plan, noise=NoiseSource.seeded(seed), public_rows=stated)


def ran(
    planned: Any, rows: Rows, seed: int = 0, of: type[Curator] = Curator
) -> tuple[Any, Any, Any]:
    """Outcome, shares and the curator."""
    curator = curator_for(planned, rows, seed, of)
    outcome, shares = planned.run(curator)
    return outcome, shares, curator


class Teller(s.Teller):
    """Says again what a curator said; its numbers are scaled without it."""

    def rescale(self, scale: Any, shift: Any) -> None:
        return None


def own_square(events: Any, group: int, column: int = 0, times: int = 1) -> float:
    """What a person of this group adds to mu squared by releases over the groups, under add-remove:
    one over squared noise."""
    total = 0.0
    for event in events:
        match event:
            case Composed(inner):
                total += own_square(inner, group, column, times)
            case Repeated(inner, count):
                total += own_square([inner], group, column, times * count)
            case PerCell() if event.column == column:
                total += times * sum(1.0 / part[group] ** 2 for part in event.multipliers)
    return total


def common_square(events: Any, column: int = 0, times: int = 1) -> float:
    """What everybody adds by all other releases; by another column's groups, what its worst person
    does."""
    total = 0.0
    for event in events:
        match event:
            case Composed(inner):
                total += common_square(inner, column, times)
            case Repeated(inner, count):
                total += common_square([inner], column, times * count)
            case Gaussian(z):
                total += times / z**2
            case PerCell() if event.column != column:
                sums = [
                    sum(1.0 / part[k] ** 2 for part in event.multipliers)
                    for k in range(event.cells)
                ]
                total += times * max(sums)
    return total


def weighted_squares(
    X: Any, y: Any, A: Any, groups: int, weights: Any = None, *, alike: bool = True
) -> Any:
    """Coefficients by numpy's least squares: each group counts one over K, whatever its rows; or
    each row alike."""
    each = np.ones(len(y)) if weights is None else np.asarray(weights, float)
    sizes = np.array([each[k == A].sum() for k in range(groups)])
    root = np.sqrt(each / (groups * sizes[A]) if alike else each)
    r = np.column_stack([np.ones(len(y)), X])
    return np.linalg.lstsq(r * root[:, np.newaxis], y * root, rcond=None)[0]


def group_errors(c: Any, X: Any, y: Any, A: Any, groups: int) -> Any:
    """Mean squared errors by group."""
    squares = (y - np.column_stack([np.ones(len(y)), X]) @ c) ** 2
    return np.array([squares[k == A].mean() for k in range(groups)])
