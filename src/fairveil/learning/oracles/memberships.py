"""Who may be in which group, row by row, from released sums: where features and labels are public
and groups are not.

The multinomial logistic regression of the group on a public row z = (1, z_1 .. z_k) has the score
equations

    sum over rows of P(group = a | z_i) z_i  =  S_a,        S_a = sum of z_i over the rows of group a,

and reads the groups through S alone. So the regression is arithmetic on released sums: maximise

    sum_a theta_a . S_a  -  sum_i ln sum_a exp(theta_a . z_i)  -  ridge / 2 |theta|^2.

Noise in S is a linear term of the objective; a ridge of its size keeps the answer finite (objective
perturbation has the same form). It is made for each label apart, where sums were released so, and
for each sensitive column apart, where groups are marginal. Everything here is post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

from ..._types import Floats
from ...facts import Cells
from ..systems import columns_of

STEPS = 60  # of L-BFGS at most
LEAST = 1e-9  # of a number that divides


def memberships(
    rows: Floats,
    labels: npt.NDArray[np.intp],
    weights: Floats,
    means: Floats,
    counts: Floats,
    cells: Cells,
    noise: float,
) -> Floats:
    """P(group = a | row), (rows, cells). `rows` (rows, k) without the 1; `means` (cells, labels or
    1, k) of rows and `counts` (cells, labels or 1), released; `noise`: the standard deviation of
    one number of the cells' sums."""
    out = np.zeros((len(rows), cells.count))
    design = np.column_stack([np.ones(len(rows)), rows])
    for label in range(counts.shape[1]):
        at = np.flatnonzero(labels == label) if counts.shape[1] > 1 else np.arange(len(rows))
        if not len(at):
            continue
        whole = float(weights[at].sum())
        for column in columns_of(cells):
            sizes = np.maximum(counts[column, label], 1.0)
            sizes = sizes * whole / sizes.sum()
            wanted = np.column_stack([sizes, means[column, label] * sizes[:, np.newaxis]])
            thinner = whole / max(float(np.maximum(counts[column, label], 0.0).sum()), LEAST)
            out[at, column] = _fitted(
                design[at], weights[at], wanted, 1.0 + noise * min(1.0, thinner)
            )
    return out


def _fitted(design: Floats, weights: Floats, wanted: Floats, ridge: float) -> Floats:
    """P(a | row) whose weighted sums of rows are `wanted` (groups, 1 + k), about."""
    groups, width = wanted.shape
    if groups == 1:
        return np.ones((len(design), 1))
    scale = max(float(weights.sum()), LEAST)

    def falls(flat: Floats) -> tuple[float, Floats]:
        theta = flat.reshape(groups, width)
        scores = design @ theta.T
        level = logsumexp(scores, axis=1)
        chances = np.exp(scores - level[:, np.newaxis])
        slopes = theta[:, 1:]
        value = (
            float(weights @ level)
            - float((theta * wanted).sum())
            + 0.5 * ridge * float((slopes**2).sum())
        )
        gradient = (chances * weights[:, np.newaxis]).T @ design - wanted
        gradient[:, 1:] += ridge * slopes
        return value / scale, gradient.ravel() / scale

    start = np.zeros((groups, width))
    start[:, 0] = np.log(wanted[:, 0] / wanted[:, 0].sum())
    options: Any = {"maxiter": STEPS}
    theta = minimize(falls, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(
        groups, width
    )
    scores = design @ theta.T
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1)[:, np.newaxis]))
