"""The least value of a quadratic function on a ball, exactly: what a linear oracle for squared
losses is.

min c'A c - 2 b'c over |c| <= r, A symmetric with eigenvalues of any sign. c is a solution exactly
if (A + m I) c = b for some m >= 0 with A + m I positive semi-definite, and m (r - |c|) = 0 (More
and Sorensen). Such m is the root of the secular equation 1/|c(m)| = 1/r, nearly linear in m, found
in the eigenbasis of A; in the hard case, where b is orthogonal to the eigenvectors of the least
eigenvalue and no root is to its right, a step along one of them reaches the sphere.

Guarantees (tests/learning/test_learning_ball.py):
1. No point of the ball has a lower value, but for rounding: against brute force, and against the
   conditions above.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from ..._types import Floats
from ...errors import InputError

THIN = 1e-13  # of the largest eigenvalue: below it a direction counts as flat


def least_in_ball(matrix: Floats, vector: Floats, radius: float = math.inf) -> Floats:
    """The c that makes c'A c - 2 b'c least. Without a radius A must have no direction of descent
    for ever."""
    values, basis = np.linalg.eigh((matrix + matrix.T) / 2.0)
    b = basis.T @ vector
    flat = THIN * max(float(np.abs(values).max(initial=0.0)), 1e-300)
    # A flat direction with a slope falls for ever; without one it adds nothing.
    still = np.abs(b) <= THIN * max(float(np.linalg.norm(b)), 1e-300)
    if values[0] > -flat and (still | (values > flat)).all():
        inside = np.where(values > flat, b / np.where(values > flat, values, 1.0), 0.0)
        if float(np.linalg.norm(inside)) <= radius:
            return np.asarray(basis @ inside)
    if math.isinf(radius):
        remedy = "Pass a radius: the largest norm of coefficients."
        expected = "a sum of squares, which has a least value"
        raise InputError.expected(
            expected, of="radius", got="one that falls for ever, and no radius", remedy=remedy
        )
    return np.asarray(basis @ _on_sphere(values, b, radius, flat))


def _on_sphere(values: Floats, b: Floats, radius: float, flat: float) -> Floats:
    """In the eigenbasis: the solution of length `radius`."""
    least = max(0.0, -float(values[0]))
    lowest = values <= values[0] + flat if values[0] < 0 else values <= flat

    def at(m: float) -> Floats:
        return b / (values + m)

    # perhaps the hard case
    if float(np.abs(b[lowest]).max(initial=0.0)) <= THIN * max(float(np.linalg.norm(b)), 1e-300):
        # The hard case of a trust region: nothing pulls along the lowest eigenvector, which then
        # fills up the length.
        rest = np.where(lowest, 0.0, b / np.where(lowest, 1.0, values + least))
        length = float(np.linalg.norm(rest))
        if length <= radius:
            rest[int(np.argmax(lowest))] = math.sqrt(max(0.0, radius**2 - length**2))
            return rest
        b = np.where(lowest, 0.0, b)
    # |c(least + above)| <= radius, since every eigenvalue + least is at least 0
    above = float(np.linalg.norm(b)) / radius
    high = least + above
    low = least + max(float(np.abs(b[lowest]).max(initial=0.0)) / radius / 2.0, 1e-16 * high)
    while low > least and float(np.linalg.norm(at(low))) < radius:
        low = least + (low - least) / 2.0
    if float(np.linalg.norm(at(high))) >= radius:  # by rounding alone
        root = high
    elif float(np.linalg.norm(at(low))) < radius:
        root = low
    else:
        # 1/radius - 1/|c(m)| is nearly linear in m, where |c(m)| itself has a pole.
        root = brentq(_secular, low, high, (values, b, radius), xtol=1e-300)
    c = at(root)
    return np.asarray(c * (radius / float(np.linalg.norm(c))))


def _secular(m: float, values: Floats, b: Floats, radius: float) -> float:
    return 1.0 / radius - 1.0 / float(np.linalg.norm(b / (values + m)))
