"""Numbers in other units, a run of rows at a time."""

from __future__ import annotations

from numba import njit

from ..._types import Floats, Numbers


@njit(cache=True, nogil=True, error_model="numpy")
def map_into(
    numbers: Numbers, a: int, b: int, scale: Floats, shift: Floats, most: float, out: Numbers
) -> None:
    """out[j, a:b] = scale[j] x numbers[j, a:b] + shift[j], cut at the largest of out's type."""
    for j in range(numbers.shape[0]):
        line, to, by, add = numbers[j, a:b], out[j, a:b], scale[j], shift[j]
        for t in range(b - a):
            x = line[t] * by + add
            x = most if x > most else x
            to[t] = -most if x < -most else x
