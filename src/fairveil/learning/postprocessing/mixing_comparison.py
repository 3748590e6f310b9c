"""A post-processed classifier beside its own base, and beside constants: from the counts that were
released for it.

Guarantees (tests/learning/test_learning_comparison.py):
1. Nothing more is asked: tables, errors and values are those of the released counts.
"""

from __future__ import annotations

import numpy as np

from ..._types import Floats
from ...fairness import ConstraintSystem
from ..comparison import Comparison, DecisionTable, Free, Limits
from .counting import Released
from .mixing import Program
from .mixing_bounds import value_noise


def compared(released: Released, system: ConstraintSystem, table: Floats) -> Comparison:
    """What the counts say of a table of chances (cells, answers of the base, decisions)."""
    program, classes = Program.of(released, system), table.shape[-1]
    base = program.tables.base
    constants = np.zeros((classes, *table.shape))
    for k in range(classes):
        constants[k, ..., k] = 1.0
    limits = Limits(
        program.values(table),
        system.bounds,
        value_noise(released, system, table),
        np.stack([program.values(one) for one in constants]),
        np.stack([value_noise(released, system, one) for one in constants]),
    )
    free = Free(
        None, _table(released, base), program.values(base), value_noise(released, system, base)
    )
    return Comparison(
        _table(released, table), max(float(released.counts.sum()), 1e-9), limits, free
    )


def _table(released: Released, table: Floats) -> DecisionTable:
    """How rows fall by label and decision. Where totals over groups are public, noise is in how
    rows divide among them."""
    counts = np.einsum("cyj,cjk->yk", released.counts, table)
    pulls = table if released.totals is None else table - table.mean(axis=0)
    if released.one_group:
        pulls = (table[0] - table[1])[np.newaxis]
    sizes = released.noise.sd * np.sqrt((pulls**2).sum(axis=(0, 1)))
    return DecisionTable(counts, np.broadcast_to(sizes, (len(counts), table.shape[-1])))
