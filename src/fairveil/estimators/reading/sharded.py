"""Rows in shards, as an estimator takes them: what can be asked of shards is let through, the rest
is refused here, early.

Guarantees (tests/estimators/test_estimators_sharded.py):
1. A fit of shards is that of the same rows in memory, to the bit.
2. What shards cannot answer is refused before anything is reserved or released.
3. A public feature that is a copy of a sensitive column is refused as in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._types import ColumnsLike
from ...core.extra.sharded import ShardedRows, Taking, refuse
from ...estimators.reading.units import Whose
from ...facts import RowLayout
from .blocks import Blocks
from .copies import copies_among, copy_of, repeats


def refuse_what_needs_rows(
    sample_weight: ColumnsLike, whose: Whose | None, standardise: bool
) -> None:
    """Of arguments that say something of each row."""
    for given, got in (
        (sample_weight is not None, "sample_weight, one a row"),
        (whose is not None and whose.column is None, "unit=, one value a row"),
        (standardise, "unsafe_data_dependent_bounds=True"),
    ):
        if given:
            refuse(got)


def rows_of(shards: Any, blocks: Blocks, layout: RowLayout, cap: float) -> ShardedRows:
    """The rows of a curator."""
    return ShardedRows(shards, Taking(layout, blocks.changes, cap), blocks.source)


def refuse_copies(rows: ShardedRows, before: RowLayout, names: Sequence[str]) -> None:
    """`copies.refuse_copies` of shards. `before`: the layout without what a fit adds."""
    own = np.r_[np.arange(before.numbers), rows.layout.numbers + np.arange(len(before.code_sizes))]
    for j, column in enumerate(rows.layout.sensitive_names):
        counts, low, high = rows.extremes(j)
        if not repeats(counts):
            continue
        found = copies_among(low[own], high[own], counts)
        if len(found):
            raise copy_of(column, names[found[0]])
