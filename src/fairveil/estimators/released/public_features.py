"""Public rows as arrays: features by a coding, labels, decisions; and rows with soft groups for
other learners."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import ColumnsLike, Floats, TableLike
from ...errors import InputError
from ...facts import RowBlock, RowLayout, RowSource
from ...models.linear import is_sparse
from ...tables.columns import same_length
from ..faces import as_array, labels_of
from ..reading.coding import Coding
from ..reading.columns import read_labels
from ..wrapped import codes_of

Ints = npt.NDArray[np.intp]
MOST = 1 << 28
"""Numbers of a dense table of features."""


def features_of(coding: Coding, X: TableLike) -> Floats:
    """Coded features, (rows, width): numbers, then indicators of categories."""
    return np.concatenate([_dense(block, coding.layout) for block in coding.blocks(X)])


def _dense(block: RowBlock, layout: RowLayout) -> Floats:
    rows = block.rows
    if rows * layout.width > MOST:
        got = f"{rows:,} rows of {layout.width:,} numbers"
        raise InputError.expected(
            "a table that fits", of="X", got=got, remedy="Pass fewer columns or rows."
        )
    out = np.zeros((rows, layout.width))
    numbers: Any = block.numbers
    out[:, : layout.numbers] = (
        sparse.csr_array(numbers).toarray() if is_sparse(numbers) else numbers.T
    )
    first = layout.numbers
    for column, size in zip(block.codes, layout.code_sizes, strict=True):
        out[np.arange(rows), first + column.astype(np.intp)] = 1.0
        first += size
    return out


def labels_in(X: TableLike, y: ColumnsLike, classes: tuple[Hashable, ...]) -> npt.NDArray[Any]:
    """Labels as given, or those of coded rows."""
    return (
        labels_of(X, as_array(classes))
        if y is None and isinstance(X, RowSource)
        else read_labels(y)
    )


def distribution_given(predictions: ColumnsLike, classes: Sequence[Hashable], rows: int) -> Floats:
    """Decisions as probabilities (rows, classes): of classes, or as given."""
    given = np.asarray(predictions)
    same_length({"y": rows, "predictions": len(given) if given.ndim else 0})
    if given.ndim == 1:
        return np.asarray(np.eye(len(classes))[codes_of(given, classes, "predictions")])
    law = given.astype(np.float64) if given.dtype.kind in "fiub" else np.full((1, 1), np.nan)
    if (
        law.shape != (rows, len(classes))
        or not (law >= 0).all()
        or np.abs(law.sum(axis=1) - 1.0).max(initial=0.0) > 1e-6
    ):
        remedy = (
            f"Pass a class a row, or probabilities of shape ({rows}, {len(classes)}) that sum to 1."
        )
        got = f"an array of shape {given.shape}"
        raise InputError.expected(
            "decisions", of="predictions", got=got, remedy=remedy, quote=False
        )
    return law


def dealt(codes: Ints, shares: Floats, rng: np.random.Generator) -> Ints:
    """A group for each row: inside a cluster each group's share of rows, up to one that is rounded
    by chance; who they are is by chance alone."""
    order = np.lexsort((rng.random(len(codes)), codes))
    sizes = np.bincount(codes, minlength=len(shares))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(len(codes)) - starts[codes[order]] + rng.random(len(shares))[codes[order]]
    # systematic sampling
    place = np.minimum(place / np.maximum(sizes[codes[order]], 1), 1.0 - 1e-12)
    limits = np.cumsum(shares, axis=1)[codes[order]]
    out = np.empty(len(codes), np.intp)
    out[order] = np.minimum(
        (place[:, np.newaxis] >= limits - 1e-12).sum(axis=1), shares.shape[1] - 1
    )
    return out
