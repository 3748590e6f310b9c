"""Weights of the loss by cell: a row's loss counts as often as its cells weigh together. Signed;
public or released numbers.

A run for a group objective minimises sum_c w_c sum_{i in c} loss_i, with w a gradient of the
objective at released losses (theory.md#objectives), which is negative where the objective falls in
a group's loss.

With sensitive features alone protected only differences of weights matter: v = w_mid loss_i is the
same under every group, so `parted` takes w_mid, for each sensitive column the midpoint of its
listed cells' weights, out of the private part (theory.md#public).

Guarantees (tests/curator/test_curator_cell_weights.py):
1. Both parts' weights of a row add up to its own, to within rounding, and the common part is the
   same under every group.
2. What `weights_reach` gives is never exceeded by a row in any listed cells, observed or not.
"""

from __future__ import annotations

import numpy as np

from ..._types import Floats
from ...errors import InputError
from ...facts import Cells
from ..question import cell_count


def checked(given: object, models: int, cells: Cells | None) -> Floats:
    """A copy of weights (cells,) or (models, cells), which nobody can change."""
    count = cell_count(cells)
    try:
        weights = np.array(given, np.float64)
    except (TypeError, ValueError):
        weights = np.empty((0, 0, 0))
    fits = weights.shape in ((count,), (models, count))
    with np.errstate(over="ignore"):
        finite = fits and bool(np.isfinite(np.abs(weights).sum(axis=-1)).all())
    if not finite:
        raise InputError.expected(
            (
                f"finite numbers of shape ({count},), or ({models}, {count}), whose sum "
                f"is finite too"
            ),
            of="cell_weights",
            got="NaN, inf or too large ones" if fits else weights.shape,
            remedy=("One weight of the loss for each cell, and for each model where they differ."),
        )
    weights.setflags(write=False)
    return weights
