"""The epsilon that is proved for what ran, where it is not the one that a library was asked for.

diffprivlib 0.6.6's `LogisticRegression` minimises the sum of log losses + alpha |w|^2 / 2 + b.w + m
|w|^2 / 2 (Chaudhuri, Monteleoni and Sarwate 2011). alpha = 1 / C; b has density proportional to
exp(-e |b| / (2 R)), with rows of norm at most R. Let a = R / 4, as the library computes it. Where
epsilon > 2 log(1 + a / alpha), e = epsilon - 2 log(1 + a / alpha) and m = 0. Else e = epsilon / 2,
and m makes alpha + m = a / (exp(epsilon / 4) - 1).

Replace one row. The densities of w differ by the noise's, at most exp(e), because gradients differ
by at most 2 R. And by the Jacobian's, det(A + E) / det(A + E') for Hessians A of the shared rows
and the penalty, E and E' of the two rows, each of rank one. That is at most 1 + x.A^-1 x / 4 <= 1 +
R^2 / (4 (alpha + m)), where A is at least (alpha + m) I. So e + log(1 + R^2 / (4 (alpha + m))) is
proved. The library has R where this has R^2, and twice the logarithm: it is under its claim for R =
1, and may be over it for R > 1.

The library's own intercept is not penalised by alpha, only by m. Where m = 0 the bound is infinite,
and so is the ratio itself: all shared rows may be certain at some w at which the replaced row is
not.
"""

from __future__ import annotations

import math


def diffprivlib_logistic(
    claimed: float, norm: float, strength: float = 1.0, *, intercept: bool
) -> float:
    """What is proved of a fit that was asked for `claimed`, under replace-one.

    `norm`: of a row without its intercept; `strength`: alpha; `intercept`: the library's own, not a
    column of ones.
    """
    wide = math.sqrt(norm**2 + intercept)
    slope = wide / 4
    left = claimed - 2 * math.log1p(slope / strength)
    more = 0.0
    if left <= 0:
        left, more = claimed / 2, slope / math.expm1(claimed / 4) - strength
    if intercept and more <= 0:
        return math.inf
    moved = norm**2 / (strength + more) + (1 / more if intercept else 0.0)
    return left + math.log1p(moved / 4)


def diffprivlib_claim(proved: float, norm: float, strength: float = 1.0) -> float:
    """What to ask for so that so much is proved, with no intercept of the library's."""
    low, high = 1e-6, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (
            (middle, high)
            if diffprivlib_logistic(middle, norm, strength, intercept=False) <= proved
            else (low, middle)
        )
    return low
