"""Fused passes over the inputs and slopes of a dense layer: rows put on their grids in one go,
where torch takes eight.

The same whole numbers as `torch_layers.Product` makes with torch's own operations, to the bit:
every step is exact (a power of two times a float32, its rounding, sums of squares below 2^53), so
no order can change it.

Guarantee (tests/curator/test_curator_torch_layers.py):
1. What is written is what torch's operations give, for any float32; a row that holds no number is
   marked by a norm of NaN.
"""

from __future__ import annotations

import numpy as np

from ..._types import Numbers, Singles
from .elementary import MAGIC, MAGIC_BITS, jit

# the bits of a float32 above its 23 of fraction, less this: e of m 2^e with m in [1/2, 1)
EXPONENT = 126
NO_NUMBER = 0x7F800000  # the bits of infinity; NaN's are above


@jit
def whole_numbers(
    x: Singles,
    least: int,
    bits: int,
    width: int,
    a: Numbers,
    up: Numbers,
    norms: Numbers,
    start: int,
    stop: int,
) -> None:
    """Rows start to stop of x (rows, width) as whole numbers of at most 2^bits, `a`, in units of
    `up` a row.

    `least`: the bits of the float32 below which a row's largest number is not taken to lie. A
    column of `a` beyond `width` gets what 1 is in those units. `norms`: of the lines of `a`; the
    sum of squares is exact, and its root is rounded once.
    """
    given = x.view(np.int32)
    work = np.empty(width)
    found = work.view(np.int64)
    for i in range(start, stop):
        top = np.int32(least)
        for j in range(width):
            size = given[i, j] & np.int32(0x7FFFFFFF)
            top = size if size > top else top
        if top >= NO_NUMBER:
            for j in range(a.shape[1]):
                a[i, j] = 0.0
            up[i], norms[i] = 1.0, np.nan
            continue
        e = np.int64(top >> 23) - EXPONENT - bits
        unit, inverse = 2.0**e, 2.0**-e
        for j in range(width):
            work[j] = np.float64(x[i, j]) * inverse + MAGIC
        total = np.int64(0)
        for j in range(width):
            number = found[j] - MAGIC_BITS
            total += number * number
        for j in range(width):
            a[i, j] = work[j] - MAGIC
        square = np.float64(total)
        if a.shape[1] > width:
            one = np.rint(inverse)
            a[i, width] = one
            square += one * one
        up[i], norms[i] = unit, np.sqrt(square)


@jit
def scaled(d: Numbers, factors: Numbers, start: int, stop: int) -> None:
    """Rows start to stop of d times a factor each, rounded to whole numbers."""
    for i in range(start, stop):
        factor = factors[i]
        for j in range(d.shape[1]):
            d[i, j] = np.rint(d[i, j] * factor)
