"""Elementary functions of tiles, compiled: exp, log, sigmoid and softmax of the same bits on every
processor.

They are sums and products in one order, without a library's own exp, so that what one machine
released another can repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from ..._types import Array, Floats

TILE = 512


MAGIC = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to the nearest integer, ties to even


MAGIC_BITS = np.int64(np.float64(MAGIC).view(np.int64))


LOG2E = 1.4426950408889634


LN2_HIGH = 0.693147180369123816490  # the upper 33 bits of ln 2, so that n * LN2_HIGH is exact


LN2_LOW = 1.90821492927058770002e-10


# A norm below this may have lost squares of its parts: a float64 keeps all its digits down to
# 2e-308.
TINY = 1e-140


FARTHEST = 700.0  # beyond this, exp is 0 or saturates: a probability's last bit is long decided


Kernel = Callable[..., Any]


def jit(function: Kernel) -> Kernel:
    """Compiled, cached on disk, without fast-math and without the interpreter's lock.

    Division by zero gives inf or NaN, as IEEE says, not an exception: a check at each division
    would keep loops scalar.
    """
    compiled: Kernel = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


@jit
def exp_into(x: Floats, out: Array, work: Floats, m: int) -> None:
    """out = exp(x) for |x| <= FARTHEST: 2^n times a Taylor polynomial of degree 13 on |r| <=
    ln(2)/2."""
    bits = work.view(np.int64)
    for t in range(m):
        # n = round(x / ln 2) stands in the lowest bits now, where MAGIC's own are zero.
        work[t] = x[t] * LOG2E + MAGIC
    for t in range(m):
        n = work[t] - MAGIC
        # ln 2 in two parts (Cody and Waite): the first product and difference are exact, so r keeps
        # its digits although x and n ln 2 nearly cancel.
        r = (x[t] - n * LN2_HIGH) - n * LN2_LOW
        # 1/13!, 1/12!, ... in Horner's order. What the series leaves out is below 2^-57 of the
        # result.
        s = 1.6059043836821613e-10
        s = s * r + 2.08767569878681e-09
        s = s * r + 2.505210838544172e-08
        s = s * r + 2.755731922398589e-07
        s = s * r + 2.7557319223985893e-06
        s = s * r + 2.48015873015873e-05
        s = s * r + 0.0001984126984126984
        s = s * r + 0.001388888888888889
        s = s * r + 0.008333333333333333
        s = s * r + 0.041666666666666664
        s = s * r + 0.16666666666666666
        s = s * r + 0.5
        s = s * r + 1.0
        out[t] = s * r + 1.0
    for t in range(m):
        # The shift drops all but n plus the bias of exponents: the pattern of 2^n. |n| <= 1010, so
        # it is neither subnormal nor infinite.
        bits[t] = (bits[t] + 1023) << 52
    for t in range(m):
        out[t] = out[t] * work[t]


@jit
def log_into(x: Floats, out: Array, work: Floats, m: int) -> None:
    """out = log(x) for normal x > 0: exponent times ln 2 plus 2 atanh((f - 1)/(f + 1)), f in [1,
    2)."""
    bits = work.view(np.int64)
    for t in range(m):
        work[t] = x[t]
    for t in range(m):
        # x = 2^e f: the exponent as a number, and f with the exponent of 1.
        out[t] = float((bits[t] >> 52) - 1023)
        bits[t] = (bits[t] & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000
    for t in range(m):
        s = (work[t] - 1.0) / (work[t] + 1.0)
        # s is at most 1/3: the terms s^k / k that are left out are below 2^-62 together.
        q = s * s
        a = 1.0 / 35.0
        for k in range(33, 0, -2):
            a = a * q + 1.0 / k
        out[t] = out[t] * 0.6931471805599453 + 2.0 * s * a


@jit
def sigmoid_into(z: Floats, sharpness: float, p: Floats, a: Floats, b: Floats, m: int) -> None:
    """p = 1 / (1 + exp(-sharpness z)), by exp of a non-positive number."""
    for t in range(m):
        # Of minus the size: exp is at most 1, and 1 + e loses nothing at either end.
        y = abs(z[t] * sharpness)
        a[t] = -(y if y < FARTHEST else FARTHEST)
    exp_into(a, p, b, m)
    for t in range(m):
        e = p[t]
        p[t] = (1.0 if z[t] >= 0.0 else e) / (1.0 + e)


@jit
def softmax_into(
    z: Floats, sharpness: float, p: Floats, top: Floats, total: Floats, a: Floats, b: Floats, m: int
) -> None:
    """p[k] = exp(sharpness (z[k] - max z)) / sum, classes in order."""
    K = z.shape[0]
    for t in range(m):
        top[t] = z[0, t]
        total[t] = 0.0
    for k in range(1, K):
        for t in range(m):
            top[t] = z[k, t] if z[k, t] > top[t] else top[t]
    for k in range(K):
        for t in range(m):
            # Without the largest score no exponential is above 1, and their sum lies between 1 and
            # K.
            y = (z[k, t] - top[t]) * sharpness
            a[t] = y if y > -FARTHEST else -FARTHEST
        exp_into(a, p[k], b, m)
        for t in range(m):
            total[t] = total[t] + p[k, t]
    for k in range(K):
        for t in range(m):
            p[k, t] = p[k, t] / total[t]
