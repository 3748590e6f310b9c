"""How far costs of decisions, and rounding, reach in one row's contribution."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ..questions import cell_weights
from ..questions.cell_weights import columns_of as columns_of
from ..questions.gradients import GradientSum

# of a probability, and of a loss relative to its score: far above what a few operations lose
ROUNDING = 2.0**-40
FORGOTTEN = 1e-120  # times `ROUNDING` above residuals so small that their squares are lost


def reach_of(costs: Floats, labels: int, columns: npt.NDArray[np.int64]) -> Floats:
    """Of one score's costs, for each label: sums over sensitive columns of the largest |cost|, and
    of the range of costs."""
    out = np.zeros((2, labels))
    if costs.shape[1] == 1:
        table = costs[:, 0].reshape(-1, labels)
        for first, last in itertools.pairwise(columns.tolist()):
            out[0] += np.abs(table[first:last]).max(axis=0)
            out[1] += np.ptp(table[first:last], axis=0)
    return out


def rounding_of(question: GradientSum, costs: Floats, terms: float) -> float:
    """What rounding adds, in units of |row|, where the loss weighs `terms`; by cell, its own is in
    units of the residual."""
    if question.cell_weights is not None:
        terms = FORGOTTEN * (
            1.0 + float(cell_weights.reach(question.cell_weights, question.cells)[..., 0].max())
        )
    if question.cell_costs is not None:
        per_row = 1 if question.cells is None else question.cells.per_row
        terms += (
            question.model.sharpness
            * question.model.outputs
            * float(np.abs(costs).max(initial=0.0))
            * per_row
        )
    return ROUNDING * terms
