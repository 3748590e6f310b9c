"""Histograms of decisions and of soft predictions by cell, label and class.

The plain reference: the curator's kernels total the same quantities over private rows, and add
noise. Arrays of rows are `labels` (rows,) class codes, or None for a system without labels;
`cell_ids` (cells per row, rows), as `Cells.ids` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from .._types import Floats

Codes = npt.NDArray[np.integer]
BLOCK = 1 << 16


def cell_counts(
    labels: Codes | None, cell_ids: Codes, shape: tuple[int, ...], weights: Floats | None = None
) -> Floats:
    """N[c, y]: the (weighted) number of rows, for shape (cells, labels, classes)."""
    size = shape[0] * shape[1]
    if weights is None:
        whole = np.zeros(size, np.intp)
        for run in _runs(labels, cell_ids):
            whole += np.bincount(_places(*run, shape).ravel(), minlength=size)
        return np.asarray(whole.astype(np.float64).reshape(shape[:2]))
    places = _places(labels, cell_ids, shape)
    counts: Floats = np.bincount(
        places.ravel(), np.broadcast_to(weights, places.shape).ravel(), size
    ).astype(np.float64)
    return np.asarray(counts.reshape(shape[:2]))


def hard_histogram(
    decisions: Codes,
    labels: Codes | None,
    cell_ids: Codes,
    shape: tuple[int, int, int],
    weights: Floats | None = None,
) -> Floats:
    """H[c, y, k]: the (weighted) number of rows that were decided to be of class k."""
    size = shape[0] * shape[1] * shape[2]
    if weights is None:
        whole, a = np.zeros(size, np.intp), 0
        for run in _runs(labels, cell_ids):
            b = a + run[1].shape[1]
            whole += np.bincount(
                (_places(*run, shape) * shape[2] + decisions[a:b]).ravel(), minlength=size
            )
            a = b
        return whole.astype(np.float64).reshape(shape)
    places = (_places(labels, cell_ids, shape) * shape[2] + decisions).ravel()
    histogram: Floats = np.bincount(
        places, np.broadcast_to(weights, cell_ids.shape).ravel(), size
    ).astype(np.float64)
    return histogram.reshape(shape)


def soft_histogram(
    probabilities: Floats,
    labels: Codes | None,
    cell_ids: Codes,
    shape: tuple[int, int, int],
    weights: Floats | None = None,
) -> Floats:
    """H[c, y, k]: the (weighted) sum of the rows' probabilities of class k."""
    places = _places(labels, cell_ids, shape).ravel()
    columns: list[Floats] = []
    for k in range(shape[2]):
        line = probabilities[:, k] if weights is None else probabilities[:, k] * weights
        given: Floats = np.broadcast_to(line, cell_ids.shape).ravel()
        columns.append(np.bincount(places, given, shape[0] * shape[1]).astype(np.float64))
    return np.stack(columns, axis=-1).reshape(shape)


def _runs(labels: Codes | None, cell_ids: Codes) -> Iterator[tuple[Codes | None, Codes]]:
    """Runs of rows: whole numbers add up to the same in any parts, and places are eight bytes
    each."""
    for a in range(0, cell_ids.shape[1], BLOCK):
        b = a + BLOCK
        yield None if labels is None else labels[a:b], cell_ids[:, a:b]


def _places(labels: Codes | None, cell_ids: Codes, shape: tuple[int, ...]) -> npt.NDArray[np.intp]:
    at = 0 if labels is None else labels
    return np.asarray(cell_ids.astype(np.intp) * shape[1] + at)
