"""The master program: the best mixture of decisions whose losses were released, and the prices that
a better one must beat.

    min over weights q of a mixture:   h(sum_t q_t l_t)

h is convex, so it is the largest of its tangents h(x) + h'(x)(. - x). The program is solved over
the tangents found so far, a linear program, and a tangent is added at its solution until they
agree. Its dual variables mix the tangents to one price of losses, w: no mixture of *any* decisions
has an h below

    sum_j mu_j (h(x_j) - w_j x_j)  +  min over decisions c of w l(c),

so the oracle that is asked for the least w l(c) either finds a better decision or shows that there
is none, within its tolerance: column generation. An answer that the program has already is such a
proof: at its prices none of its decisions is below its value, so no decision at all is, and only
tangents are missing, which need no oracle. With a single tangent, at the mean, this is Frank-Wolfe.
`Differs:` the paper takes w at the last decision alone, where an indicator 1[g >= 0] flips from
round to round; prices do not.

Everything here is post-processing of released values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog

from ..._types import Floats
from ...fairness.functions import LossFunction

PASSES = 25  # tangents a round at most
ENOUGH = 1e-6  # of the scale of h: how far tangents may be below it
LAST_PASSES, NEAR = 200, 1e-4
"""Once the oracle answered with a decision that the program has: its tangents then, and what they
must come to of h's scale."""
SOLVED: Any = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""What the linear programs are solved to, in units of the largest difference of two heights: steep
tangents make that large."""


@dataclass(eq=False)
class Master:
    """Losses of decisions, (atoms, *shape), and tangents of h; both grow from round to round."""

    h: LossFunction
    slopes: list[Floats] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)  # h(x_j) - w_j x_j

    def touch(self, point: Floats) -> float:
        """Add the tangent at a point; h there."""
        value, slope = float(self.h.value(point)), self.h.gradient(point)
        self.slopes.append(slope.ravel())
        self.levels.append(value - float((slope * point).sum()))
        return value

    def solve(
        self, atoms: Floats, most: Floats | None = None, passes: int = PASSES
    ) -> tuple[Floats, Floats, float]:
        """(weights, price, base): the best mixture; no mixture is below base + the least price x
        losses. `most`: what each may weigh. `passes`: tangents that are added at most."""
        flat = atoms.reshape(len(atoms), -1)
        if not self.slopes:
            self.touch(atoms.mean(axis=0))
        weights, price, base = np.full(len(flat), 1.0 / len(flat)), np.zeros(flat.shape[1]), 0.0
        best, kept = np.inf, weights
        for _ in range(passes):
            weights, mu, low = program(np.array(self.slopes), np.array(self.levels), flat, most)
            price, base = mu @ np.array(self.slopes), float(mu @ np.array(self.levels))
            value = self.touch((weights @ flat).reshape(self.h.shape))
            if value < best:
                best, kept = value, weights
            if best - low <= ENOUGH * max(1.0, abs(best)):
                break
        return kept, price.reshape(self.h.shape), base


def program(
    slopes: Floats, levels: Floats, atoms: Floats, most: Floats | None = None
) -> tuple[Floats, Floats, float]:
    """The mixture of atoms whose highest tangent, level + slope . l, is lowest: its weights, each
    at most `most`, the multiplier of each tangent, and how high it is."""
    # weights add up to 1, so a level is the same for every atom
    heights = slopes @ atoms.T + levels[:, np.newaxis]
    top = float(heights.max())
    heights = heights - top
    scale = float(np.abs(heights).max()) or 1.0  # all tangents may be level
    found: Any = linprog(
        np.append(np.zeros(len(atoms)), 1.0),
        A_ub=np.column_stack([heights / scale, -np.ones(len(slopes))]),
        b_ub=np.zeros(len(slopes)),
        A_eq=np.append(np.ones(len(atoms)), 0.0)[np.newaxis],
        b_eq=np.ones(1),
        bounds=[
            *((0.0, cap) for cap in (np.ones(len(atoms)) if most is None else most).tolist()),
            (None, None),
        ],
        method="highs",
        options=SOLVED,
    )
    if not found.success:
        raise ArithmeticError(f"the master program has no solution: {found.message}")
    weights, multipliers = np.maximum(found.x[:-1], 0.0), np.maximum(-found.ineqlin.marginals, 0.0)
    return (
        weights / weights.sum(),
        multipliers / max(float(multipliers.sum()), 1e-300),
        float(found.fun) * scale + top,
    )
