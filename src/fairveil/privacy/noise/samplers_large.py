"""Rounded Gaussians of many coordinates, 32 proposals at a time: two and a half times as fast as
one by one.

The distribution is that of `samplers_kernels.rounded_gaussian`, from other bits: a proposal takes
four halves, whatever becomes of it, so that all of a buffer are looked at side by side. As there,
a draw that floats or 64 digits cannot decide is left to `samplers_exact`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .samplers_exact import GAUSSIAN_STEPS
from .samplers_kernels import SLACK, scaled
from .samplers_words import LANES, ONE, POSITION, S32, ZERO, kernel, refill, released, u32, u64

HALVES = 4  # that a proposal takes: sign and k, the coin, and 64 digits of x
_PROPOSALS = 16 * LANES // HALVES  # of a buffer
_TIED = 1 << 8  # marks a k that 31 digits cannot tell
_STEPS = tuple(u32(step) for step in GAUSSIAN_STEPS)
_0, _1, _2, _3, _4, _5, _6 = _STEPS
_MAGIC = 6755399441055744.0  # 1.5 x 2^52: adding it rounds to the nearest integer
_LOG2E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10


def room() -> tuple[Any, ...]:
    """Memory to work in: chances, powers of two, the bits of these, whole parts."""
    powers = np.empty(_PROPOSALS)
    return np.empty(_PROPOSALS), powers, powers.view(np.int64), np.empty(_PROPOSALS, np.uint32)


def in_room() -> Any:
    """`rounded_gaussian` with memory of its own, so that it takes what that of few takes."""
    return partial(rounded_gaussian, room=room())


@kernel
def _weigh(buffer, chances, powers, bits, wholes):  # type: ignore[no-untyped-def]
    """Of each proposal in a buffer its k, and 2^32 exp(-x(2k + x)/2).

    Relative error: x is known to 2^-52, so the exponent, of at most 6.5, to 2^-48; the polynomial
    and its roundings are within 2^-50. All of it is below a quarter of `SLACK`. Halves of one place
    in eight blocks lie side by side, so the order here is not that of the stream.
    """
    for q in range(HALVES):
        for b in range(LANES):
            digit = buffer[u64(32 * q + b)] >> u32(1)
            k = u32(digit > _0) + u32(digit > _1) + u32(digit > _2) + u32(digit > _3)
            k += u32(digit > _4) + u32(digit > _5) + u32(digit > _6)
            tied = u32(digit == _0) | u32(digit == _1) | u32(digit == _2) | u32(digit == _3)
            tied |= u32(digit == _4) | u32(digit == _5) | u32(digit == _6)
            wholes[u64(8 * q + b)] = u32(k) | (u32(tied) * u32(_TIED))
    for q in range(HALVES):
        for b in range(LANES):
            at = u64(32 * q + b)
            top, low = np.float64(buffer[at + u64(16)]), np.float64(buffer[at + u64(24)])
            chances[u64(8 * q + b)] = top * 2.0**-32 + low * 2.0**-64
    for c in range(_PROPOSALS):
        i = u64(c)
        x, whole = chances[i], np.float64(wholes[i] & u32(_TIED - 1))
        t = x * (whole + whole + x) * -0.5
        y = t * _LOG2E + _MAGIC
        n = y - _MAGIC
        r = (t - n * _LN2_HIGH) - n * _LN2_LOW
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
        chances[i] = s * r + 1.0
        powers[i] = y
    for c in range(_PROPOSALS):
        bits[u64(c)] = (bits[u64(c)] + 1023 + 32) << 52
    for c in range(_PROPOSALS):
        chances[u64(c)] *= powers[u64(c)]


@released
def rounded_gaussian(state, buffer, scales, out, start, blur, room):  # type: ignore[no-untyped-def]
    """round(scale G) for each coordinate from `start`; the index of the first that is undecided, or
    out.size.

    The stream then stands before the proposal that was undecided. `scales` holds the bits of one
    float, or of one a coordinate.
    """
    chances, powers, bits, wholes = room
    step = 0 if scales.size == 1 else 1
    halves = u64(16 * LANES)
    at = (state[POSITION] + u64(HALVES - 1)) & ~u64(HALVES - 1)
    slack = SLACK * 2.0 ** np.float64(blur)
    i = start
    while i < out.size:
        offset = at & (halves - ONE)
        if offset == ZERO:
            refill(state, buffer, at // halves)
        _weigh(buffer, chances, powers, bits, wholes)
        for c in range(np.int64(offset) // HALVES, _PROPOSALS):
            if i == out.size:
                break
            block, q = u64(c // HALVES), u64(c % HALVES)
            lane, place = u64(8) * q + block, u64(32) * q + block
            chance, coin = chances[lane], np.float64(buffer[place + u64(8)])
            if wholes[lane] >= u32(_TIED):
                state[POSITION] = at
                return i
            if coin + 1.0 <= chance * (1.0 - slack):
                fraction = (u64(buffer[place + u64(16)]) << S32) | u64(buffer[place + u64(24)])
                value = scaled(scales[i * step], u64(wholes[lane]), fraction, blur)
                if value < 0:
                    state[POSITION] = at
                    return i
                out[i] = -value if buffer[place] & u32(1) else value
                i += 1
            elif coin < chance * (1.0 + slack):
                state[POSITION] = at
                return i
            at += u64(HALVES)
    state[POSITION] = at
    return out.size
