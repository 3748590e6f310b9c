"""Fused passes over the inputs and slopes of a dense layer: rows are put on their grids, measured
and multiplied, where torch takes eleven operations and writes each row three times.

The whole numbers are those of `torch_layers.Product`, to the bit: every step is exact (a power of
two times a float32, its rounding, sums of squares below 2^53), so no order can change it. A product
of them is exact too (see `torch_gradient`), so multiplying and adding may be one instruction.

Guarantee (tests/curator/test_curator_torch_layers.py):
1. What is added is what torch's operations give, for any float32; a row that holds no number is
   marked by a norm of NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from ..._types import Floats, Numbers, Singles
from ...core.kernels import MAGIC, Kernel, jit

# the bits of a float32 above its 23 of fraction, less this: e of m 2^e with m in [1/2, 1)
EXPONENT = 126
NO_NUMBER = 0x7F800000  # the bits of infinity; NaN's are above
AT_ONCE = 8  # rows that are multiplied together
LINE = 8  # float64 numbers of a cache line: vectors that begin elsewhere take twice as long

Compiler = Callable[[Kernel], Kernel]
# "contract" lets a product and a sum be one instruction, and allows nothing else
contracted: Compiler = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
# "reassoc" lets a row's sum be several, in an order that the loop and the processor fix
summed: Compiler = njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"}
)


@jit
def lengths(
    x: Singles,
    least: int,
    bits: int,
    beside: int,
    up: Floats,
    norms: Floats,
    start: int,
    stop: int,
) -> None:
    """Of rows start to stop of x the units `up` in which they are whole numbers of at most 2^bits,
    and the norms of these numbers.

    `least`: the bits of the float32 below which a row's largest number is not taken to lie.
    `beside`: 1 where a 1 stands behind the row's numbers. The sum of squares is exact, and its root
    is rounded once.
    """
    given, width = x.view(np.int32), x.shape[1]
    for i in range(start, stop):
        # Without its sign, a float32's bits are ordered as the numbers are, with infinity and NaN
        # on top.
        top = np.int32(least)
        for j in range(width):
            size = given[i, j] & np.int32(0x7FFFFFFF)
            top = size if size > top else top
        if top >= NO_NUMBER:
            up[i], norms[i] = 1.0, np.nan
            continue
        # The unit is a power of two: scaling by it changes no digit.
        e = np.int64(top >> 23) - EXPONENT - bits
        inverse = 2.0**-e
        total = np.int64(0)
        for j in range(width):
            number = np.int64(np.int32(np.rint(np.float64(x[i, j]) * inverse)))
            total += number * number
        square = np.float64(total)
        if beside:
            one = np.rint(inverse)
            square += one * one
        up[i], norms[i] = 2.0**e, np.sqrt(square)


@summed
def sizes(d: Singles, norms: Floats, start: int, stop: int) -> None:
    """The norms of rows start to stop of d, each within a few roundings, whatever its size."""
    for i in range(start, stop):
        total = 0.0
        for j in range(d.shape[1]):
            number = np.float64(d[i, j])
            total += number * number
        norms[i] = np.sqrt(total)


@jit
def whole_lines(
    x: Singles,
    d: Singles,
    up: Floats,
    by: Floats,
    beside: int,
    first: int,
    stop: int,
    low: int,
    high: int,
    a: Numbers,
    s: Numbers,
) -> None:
    """The next rows of x, and columns low to high of those of d times a factor each, as whole
    numbers. Zeros from `stop` on, where a factor is zero, and behind a row's numbers."""
    width = x.shape[1]
    for r in range(AT_ONCE):
        i = first + r
        if i >= stop or by[i] == 0.0:
            for j in range(a.shape[1]):
                a[r, j] = 0.0
            for j in range(s.shape[1]):
                s[r, j] = 0.0
            continue
        inverse, factor = 1.0 / up[i], by[i]
        for j in range(width):
            a[r, j] = (np.float64(x[i, j]) * inverse + MAGIC) - MAGIC
        for j in range(width, a.shape[1]):
            a[r, j] = 0.0
        if beside:
            a[r, width] = np.rint(inverse)
        for j in range(high - low):
            s[r, j] = np.rint(np.float64(d[i, low + j]) * factor)


@contracted
def add_product(
    x: Singles,
    d: Singles,
    up: Floats,
    by: Floats,
    beside: int,
    start: int,
    stop: int,
    low: int,
    high: int,
    a: Numbers,
    s: Numbers,
    out: Numbers,
) -> None:
    """out[low:high] += the sum over rows start to stop of (d times `by`, in whole numbers) times
    (x in units of `up`, in whole numbers)'.

    `a` (rows at once, columns of out) and `s` (rows at once, lines) are room to work in. All
    numbers and sums are whole and below 2^53: exact, in whatever order they are added.
    """
    for k in range(start, stop, AT_ONCE):
        whole_lines(x, d, up, by, beside, k, stop, low, high, a, s)
        for o in range(high - low):
            line = out[low + o]
            s0, s1, s2, s3 = s[0, o], s[1, o], s[2, o], s[3, o]
            s4, s5, s6, s7 = s[4, o], s[5, o], s[6, o], s[7, o]
            for j in range(line.shape[0]):
                line[j] += ((s0 * a[0, j] + s1 * a[1, j]) + (s2 * a[2, j] + s3 * a[3, j])) + (
                    (s4 * a[4, j] + s5 * a[5, j]) + (s6 * a[6, j] + s7 * a[7, j])
                )
