"""Features and labels as an array, where they are public: for searches that are arithmetic on
public numbers.

Guarantees (tests/curator/test_curator_mixture_histogram.py):
1. Only where features and labels are public; the sensitive columns are no part of it.
2. `memberships` are given away by a promise of no privacy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...core.promise import Promise
from ...errors import PrivacyError
from ...facts import Cells
from .block import Block
from .rows import Rows


@dataclass(frozen=True, eq=False, repr=False)  # a printed table would show rows
class PublicTable:
    """Every `step`-th row. `features` (rows, 1 + width), the intercept first, categories as
    indicators; `labels` (rows,) class codes; `weights` (rows,). `memberships` (rows, cells): exact,
    and None where anything is promised."""

    features: Floats
    labels: npt.NDArray[np.intp]
    weights: Floats
    step: int
    memberships: Floats | None


def public_table(rows: Rows, promise: Promise, cells: Cells | None, most: int) -> PublicTable:
    """At most `most` numbers, if it takes leaving out rows; which ones depends on their positions
    alone."""
    if not promise.features_are_public:
        remedy = "Ask bounded questions of the rows."
        raise PrivacyError.expected(
            "public features and labels", of="public_table", got=promise.protects, remedy=remedy
        )
    numbers = rows.exact_count * (1 + rows.layout.width)
    step = max(1, -(-numbers // max(1, most)))
    first, parts = 0, []
    for block in rows.blocks():
        parts.append(block.take(np.arange(-first % step, block.rows, step)))
        first += block.rows
    told = (
        None
        if promise.is_private or cells is None
        else np.concatenate([_cells_of(part, cells) for part in parts])
    )
    return PublicTable(
        np.concatenate([_features_of(part) for part in parts]),
        np.concatenate([np.asarray(part.labels, np.intp) for part in parts]),
        np.concatenate(
            [part.weights if len(part.weights) else np.ones(part.rows) for part in parts]
        ),
        step,
        told,
    )


def _features_of(block: Block) -> Floats:
    layout = block.layout
    out = np.zeros((block.rows, 1 + layout.width))
    out[:, 0] = 1.0
    if block.is_sparse:
        at = np.repeat(np.arange(block.rows), np.diff(block.indptr))
        np.add.at(
            out,
            (at, 1 + np.asarray(block.indices, np.intp)),
            np.asarray(block.numbers[0], np.float64),
        )
    else:
        out[:, 1 : 1 + layout.numbers] = block.numbers.T
    first = 1 + layout.numbers
    for column, size in zip(block.codes, layout.code_sizes, strict=True):
        out[np.arange(block.rows), first + column.astype(np.intp)] = 1.0
        first += size
    return out


def _cells_of(block: Block, cells: Cells) -> Floats:
    out = np.zeros((block.rows, cells.count))
    for line in np.asarray(block.cells(cells), np.intp):
        out[np.arange(block.rows), line] = 1.0
    return out
