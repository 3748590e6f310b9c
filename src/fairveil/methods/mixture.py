"""The best mixture of a finite list: one linear program.

Errors and values of constraints are linear in the mixture, so which mixture of known candidates
errs least and keeps the bounds is a linear program. So is which mixture has the lowest highest
tangent of a convex function.

Guarantees (tests/methods/test_methods_mixture.py):
1. No mixture has a smaller error plus `worth` x the largest excess over a bound; none has a lower
   highest tangent.
2. Post-processing: of numbers that were released, or are public.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog

from .._types import Floats

SOLVED: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""What programs over tangents are solved to, in units of the largest difference of two heights:
steep tangents make that large."""


def best_mixture(
    errors: Floats, values: Floats, bounds: Floats, *, worth: float
) -> tuple[Floats, Floats]:
    """The shares (candidates,) that minimise  sum_a q_a error_a + worth t,  and the duals of the
    constraints, such that  sum_a q_a value_aj <= bound_j + t  for every j,  q and t >= 0,  and
    sum_a q_a = 1.

    `values` (candidates, constraints). A constraint takes no part, and its dual is 0, where a
    candidate's value is not a number or the bound is infinite.
    """
    duals, alone = np.zeros(len(bounds)), np.eye(len(errors))[int(np.argmin(errors))]
    kept = np.flatnonzero(np.isfinite(values).all(axis=0) & np.isfinite(bounds))
    if not len(kept):
        return alone, duals
    limits: Any = (0.0, None)
    found = _solved(np.append(errors, worth), values[:, kept].T, bounds[kept], limits)
    if not found.success:
        return alone, duals
    duals[kept] = np.maximum(-found.ineqlin.marginals, 0.0)
    shares = np.clip(found.x[:-1], 0.0, 1.0)
    return shares / shares.sum(), duals


def lowest(
    slopes: Floats, levels: Floats, atoms: Floats, most: Floats | None = None
) -> tuple[Floats, Floats, float]:
    """The mixture of atoms whose highest tangent, level + slope . l, is lowest: its weights, each
    at most `most`, the multiplier of each tangent, and how high it is."""
    # weights add up to 1, so a level is the same for every atom
    heights = slopes @ atoms.T + levels[:, np.newaxis]
    top = float(heights.max())
    heights = heights - top
    scale = float(np.abs(heights).max()) or 1.0  # all tangents may be level
    caps = (np.ones(len(atoms)) if most is None else most).tolist()
    limits: Any = [*((0.0, cap) for cap in caps), (None, None)]
    height = np.append(np.zeros(len(atoms)), 1.0)
    found = _solved(height, heights / scale, np.zeros(len(slopes)), limits, SOLVED)
    if not found.success:
        raise ArithmeticError(f"the program over tangents has no solution: {found.message}")
    weights, multipliers = np.maximum(found.x[:-1], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)
    return (
        weights / weights.sum(),
        multipliers / max(float(multipliers.sum()), 1e-300),
        float(found.fun) * scale + top,
    )


def _solved(costs: Floats, lines: Floats, most: Floats, limits: Any, options: Any = None) -> Any:
    """Over (q, t): the least costs . (q, t) such that lines q <= most + t and q adds up to 1."""
    wanted: Any = costs
    return linprog(
        wanted,
        A_ub=np.column_stack([lines, -np.ones(len(lines))]),
        b_ub=most,
        A_eq=np.append(np.ones(len(costs) - 1), 0.0)[np.newaxis],
        b_eq=np.ones(1),
        bounds=limits,
        method="highs",
        options=options,
    )
