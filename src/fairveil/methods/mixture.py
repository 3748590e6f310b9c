"""The best mixture of a finite list: one linear program.

Errors and values of constraints are linear in the mixture, so which mixture of known candidates
errs least and keeps the bounds is a linear program.

Guarantees (tests/methods/test_methods_mixture.py):
1. No mixture has a smaller error plus `worth` x the largest excess over a bound.
2. Post-processing: of numbers that were released, or are public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from .._types import Floats


def best_mixture(
    errors: Floats, values: Floats, bounds: Floats, *, worth: float
) -> tuple[Floats, Floats]:
    """The shares (candidates,) that minimise  sum_a q_a error_a + worth t,  and the duals of the
    constraints, such that  sum_a q_a value_aj <= bound_j + t  for every j,  q and t >= 0,  and
    sum_a q_a = 1.

    `values` (candidates, constraints). A constraint takes no part, and its dual is 0, where a
    candidate's value is not a number or the bound is infinite.
    """
    duals = np.zeros(len(bounds))
    kept = np.flatnonzero(np.isfinite(values).all(axis=0) & np.isfinite(bounds))
    if not len(kept):
        return np.eye(len(errors))[int(np.argmin(errors))], duals
    found: Any = linprog(
        np.append(errors, worth),
        A_ub=np.column_stack([values[:, kept].T, -np.ones(len(kept))]),
        b_ub=bounds[kept],
        A_eq=np.append(np.ones(len(errors)), 0.0)[np.newaxis],
        b_eq=[1.0],
        method="highs",
    )
    if not found.success:
        return np.eye(len(errors))[int(np.argmin(errors))], duals
    duals[kept] = np.maximum(-found.ineqlin.marginals, 0.0)
    shares = np.clip(found.x[:-1], 0.0, 1.0)
    return shares / shares.sum(), duals
