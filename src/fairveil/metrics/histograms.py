"""Histograms of decisions and of soft predictions by cell, label and class.

The plain reference: the curator's kernels total the same quantities over private rows, and add
noise. Arrays of rows are `labels` (rows,) class codes, or None for a system without labels;
`cell_ids` (cells per row, rows), as `Cells.ids` gives them.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .._types import Floats

Codes = npt.NDArray[np.integer]
BLOCK = 1 << 16


def cell_counts(
    labels: Codes | None, cell_ids: Codes, shape: tuple[int, ...], weights: Floats | None = None
) -> Floats:
    """N[c, y]: the (weighted) number of rows, for shape (cells, labels, classes)."""
    return _counted(None, labels, cell_ids, shape[:2], weights)


def hard_histogram(
    decisions: Codes,
    labels: Codes | None,
    cell_ids: Codes,
    shape: tuple[int, int, int],
    weights: Floats | None = None,
) -> Floats:
    """H[c, y, k]: the (weighted) number of rows that were decided to be of class k."""
    return _counted(decisions, labels, cell_ids, shape, weights)


def soft_histogram(
    probabilities: Floats,
    labels: Codes | None,
    cell_ids: Codes,
    shape: tuple[int, int, int],
    weights: Floats | None = None,
) -> Floats:
    """H[c, y, k]: the (weighted) sum of the rows' probabilities of class k."""
    chances = probabilities if weights is None else probabilities * weights[:, np.newaxis]
    columns = [_counted(None, labels, cell_ids, shape[:2], line) for line in chances.T]
    return np.stack(columns, axis=-1)


def _counted(
    decisions: Codes | None,
    labels: Codes | None,
    cell_ids: Codes,
    shape: tuple[int, ...],
    weights: Floats | None,
) -> Floats:
    """Sums of weights by place. Whole numbers add up to the same in any parts, and places are eight
    bytes each: so runs of rows are counted one after another, where there are no weights."""
    size, rows = math.prod(shape), cell_ids.shape[1]
    run = max(1, rows) if weights is not None else BLOCK
    total: npt.NDArray[np.number] = np.zeros(size, np.intp if weights is None else np.float64)
    for a in range(0, rows, run):
        part = slice(a, a + run)
        places = cell_ids[:, part].astype(np.intp) * shape[1]
        places = places if labels is None else places + labels[part]
        places = places if decisions is None else places * shape[2] + decisions[part]
        given = None if weights is None else np.broadcast_to(weights[part], places.shape).ravel()
        total = total + np.bincount(places.ravel(), given, size)
    return total.astype(np.float64).reshape(shape)
