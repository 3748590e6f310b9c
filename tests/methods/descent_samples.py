"""Rows, searches and distances for tests of descents."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from fairveil import Promise
from fairveil.core.passes import totals
from fairveil.curator import Curator, Measurement, Rows
from fairveil.methods import PrimalDual, Settings
from fairveil.methods.primal_dual import planned
from fairveil.privacy import NoiseSource


def table(seed: int = 0, n: int = 300, classes: int = 2, groups: tuple[int, ...] = (2,)):
    """Numbers within [-1, 1], labels and sensitive columns that go together."""
    rng = np.random.default_rng(seed)
    A = [rng.integers(0, size, n) for size in groups]
    X = np.clip(
        rng.normal(scale=0.5, size=(n, 3)) + 0.2 * A[0][:, None] / max(groups[0] - 1, 1), -1, 1
    )
    scores = X @ rng.normal(size=(3, classes)) * 3 + rng.gumbel(size=(n, classes))
    return X, scores.argmax(axis=1), A


def rows_from(X, y, A, classes: int = 2, groups: tuple[int, ...] = (2,)) -> Rows:
    return Rows.from_arrays(
        X, y, A, classes=range(classes), groups=[tuple(range(size)) for size in groups]
    )


def search_for(
    rows: Rows, promise: Promise, notions, settings: Settings, mode: str = "product", **kwargs
) -> PrimalDual:
    public = (
        rows.exact_count
        if promise.rows_are_public or not promise.is_private
        else kwargs.pop("public_rows", None)
    )
    cells = rows.cells(mode) if rows.layout.sensitive else None
    return PrimalDual(
        planned(promise, rows.layout, cells, notions, settings, public_rows=public, **kwargs)
    )


def run(
    rows: Rows,
    promise: Promise,
    notions=(),
    settings: Settings | None = None,
    seed: int = 0,
    **kwargs,
):
    search = search_for(rows, promise, notions, settings or Settings(), **kwargs)
    public = search.planned.public_rows
    curator = Curator(
        rows, promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=public
    )
    return search.run(curator), curator, search


def others_of(X, y, A, i: int, neighbours: str) -> list[Rows]:
    """The enumerated neighbours of row i: dropped, or replaced by the opposite corner with each
    label and group."""
    if neighbours == "add-remove":
        keep = np.arange(len(y)) != i
        return [rows_from(X[keep], y[keep], [A[0][keep]])]
    others = []
    for label, group in itertools.product((0, 1), (0, 1)):
        X2, y2, A2 = X.copy(), y.copy(), A[0].copy()
        X2[i], y2[i], A2[i] = -X[i], label, group
        others.append(rows_from(X2, y2, [A2]))
    return others


def distances(
    releases: Sequence[Sequence[Measurement]], rows: Rows, others: Sequence[Rows], promise: Promise
) -> np.ndarray:
    """By other rows and joint release: |answer(rows) - answer(other)|^2 over squared noise, at the
    same released parameters."""
    found = np.zeros((len(others), len(releases)))
    for k, release in enumerate(releases):
        for measurement in release:
            scale = measurement.question.scale(rows.layout, None)
            size = measurement.multiplier * scale.bound.sensitivity(promise.neighbours)
            own, *theirs = (
                totals([(measurement.question, [scale])], side, side.blocks())[0]
                for side in (rows, *others)
            )
            found[:, k] += [(((own - one) * scale.unit / size) ** 2).sum() for one in theirs]
    return found
