"""Compiled fast paths of the exact samplers, over ChaCha20 words that they make as they go.

Imported only when a sampler is first used, because it loads numba. Every kernel either *decides* a
draw, by integer arithmetic or by floats whose error bound is stated, or goes back to the draw's
first word and returns, and `exact` makes that draw from the same words with as many
further digits as it takes. So no floating-point error enters a distribution, and no answer depends
on the platform's `log`.

The state of a stream is a uint64 array (key: 4 words; position in 32-bit halves; the counter's high
word, called lane; two registers in which a kernel hands over where it stopped) and a buffer of
eight ChaCha blocks. `blur` (or `slack`) makes the fast path pretend not to know that many low bits
(tests use it to force the exact path); it can never change an answer.
"""

from __future__ import annotations

import math

import numpy as np

from .chacha import (
    COUNT,
    CURSOR,
    MASK32,
    ONE,
    POSITION,
    S32,
    S64,
    ZERO,
    half,
    kernel,
    released,
    rewind,
    u64,
    whole_word,
    word,
)
from .chacha import new_state as new_state
from .chacha import new_states as new_states
from .chacha import words as words
from .exact import GAUSSIAN_STEPS

_HIGH_HALF = u64(1 << 63)
_LEAST_REST = u64(1 << 44)

# A library's log, log1p and exp are taken to be right to 2^-46 relative, which is 32 times worse
# than any in use (they are within an ulp or two, 2^-51); twice to four times that covers the few
# further roundings of a formula too.
SLACK = 2.0**-44

_WORD = 2.0**-64
_STEPS = tuple(u64(step) for step in GAUSSIAN_STEPS)
_N_STEPS = len(GAUSSIAN_STEPS)


@kernel
def _shortfall(state, buffer, k, x):  # type: ignore[no-untyped-def]
    """Karney's algorithm B: true (1) with probability exp(-x(2k+x)/(2k+2)); -1 if 32 bits cannot
    tell. x: its top 32 bits."""
    m = u64(2) * k + u64(2)
    y = x
    even = 1
    while True:
        z = half(state, buffer)
        # All digits at hand agree: the exact path draws more.
        if z == y:
            return -1
        if z > y:
            return even
        product = half(state, buffer) * m
        if product & MASK32 < m:
            # 2^32 mod m: without this rejection some faces would be likelier than others.
            least = ((ONE << S32) - m) % m
            while product & MASK32 < least:
                product = half(state, buffer) * m
        die = product >> S32
        if die == ZERO:
            return even
        if die == ONE:
            r = half(state, buffer)
            if r == x:
                return -1
            if r > x:
                return even
        y = z
        even = 1 - even


@kernel
def _normal(state, buffer):  # type: ignore[no-untyped-def]
    """|G| as (sign, k, 64-bit fraction), or sign 2 if the bits at hand cannot tell. See
    `exact.normal`."""
    while True:
        first = half(state, buffer)
        digit = first >> ONE
        k = ZERO
        while True:
            # Steps are cut to 31 digits: at a step itself, or past the last, more digits decide.
            if k == u64(_N_STEPS) or digit == _STEPS[k]:
                return 2, k, ZERO
            if digit < _STEPS[k]:
                break
            k += ONE
        top = half(state, buffer)
        low = half(state, buffer)
        accepted = 1
        for _ in range(k + ONE):
            accepted = _shortfall(state, buffer, k, top)
            if accepted != 1:
                break
        if accepted == -1:
            return 2, k, ZERO
        if accepted == 1:
            return np.int64(first & ONE), k, (top << S32) | low


@kernel
def scaled(bits, k, fraction, blur):  # type: ignore[no-untyped-def]
    """floor(scale (k + x) + 1/2) for all x in the interval that `fraction` leaves, or -1 if they
    differ. Exact integers.

    scale = m 2^e with m < 2^53, and N = (k 2^64 + fraction) m < 2^123 is scale (k + x) in units of
    2^-shift, shift = 64 - e.
    """
    exponent = np.int64((bits >> u64(52)) & u64(0x7FF))
    m = bits & ((ONE << u64(52)) - ONE)
    if exponent == 0:
        exponent = np.int64(1)
    else:
        m |= ONE << u64(52)
    shift = 64 + 1075 - exponent
    if k >= u64(64):
        return np.int64(-1)
    if shift >= 126:  # N + m 2^blur < 2^124 is less than half a unit
        return np.int64(0)
    width_low, width_high = m, ZERO
    if blur >= S64:
        fraction = ZERO
        width_low, width_high = ZERO, m
    elif blur > ZERO:
        fraction = (fraction >> blur) << blur
        width_low, width_high = m << blur, m >> (S64 - blur)
    m0, m1, x0, x1 = m & MASK32, m >> S32, fraction & MASK32, fraction >> S32
    p00, p01, p10 = m0 * x0, m0 * x1, m1 * x0
    middle = (p00 >> S32) + (p01 & MASK32) + (p10 & MASK32)
    low = (middle << S32) | (p00 & MASK32)
    high = m1 * x1 + (p01 >> S32) + (p10 >> S32) + (middle >> S32) + m * k
    # the largest integer that the interval reaches below N + m 2^blur
    if width_low == ZERO:
        width_high -= ONE
    width_low -= ONE
    top_low = low + width_low
    top_high = high + width_high
    # The carry: unsigned sums wrap around.
    if top_low < low:
        top_high += ONE
    half_unit = ONE << u64(shift - 65)
    down = u64(shift - 64)
    value = (high + half_unit) >> down
    if (top_high + half_unit) >> down != value:
        return np.int64(-1)
    return np.int64(value)


@released
def rounded_gaussians(states, buffers, bits, starts, out, reached, blur):  # type: ignore[no-untyped-def]
    """round(scale G) for the coordinates of many streams: out[starts[s] : starts[s + 1]] from stream
    s, from the one of number reached[s] on, which becomes that of the first that is undecided, or
    how many there are.

    `bits`: those of one float a stream; of one stream those of one a coordinate, too.
    """
    apart = bits.size > 1 and states.shape[0] == 1
    for s in range(states.shape[0]):
        state, buffer = states[s], buffers[s]
        i = starts[s] + reached[s]
        while i < starts[s + 1]:
            mark = state[POSITION]
            sign, k, fraction = _normal(state, buffer)
            value = np.int64(-1)
            if sign != 2:
                value = scaled(bits[i if apart else s], k, fraction, blur)
            if value < 0:
                rewind(state, buffer, mark)
                break
            out[i] = -value if sign == 1 else value
            i += 1
        reached[s] = i - starts[s]


@kernel
def _exponential(y):  # type: ignore[no-untyped-def]
    """E = -ln(1 - W), W = (y + theta) / 2^64, and a bound on its absolute error over theta in [0,
    1].

    1 - W lies in [rest, rest + 1] / 2^64 with rest = 2^64 - 1 - y. While rest >= 2^44, its middle
    as a float is within a relative 2^-45 + 2^-52 of it, which is the absolute error of E, beside
    the library's relative one.
    """
    rest = ~y
    value = -math.log((np.float64(rest) + 0.5) * _WORD)
    return value, (math.inf if rest < _LEAST_REST else (value + 1.0) * SLACK)


@kernel
def _log_exponential(y):  # type: ignore[no-untyped-def]
    """ln E for the E of `_exponential`, and a bound on its absolute error.

    W (when below 1/2, else 1 - W) is known to relative 1/(y + 1) (y >= 1) and 2^-52; d ln E / d ln
    W is at most 1.45 on each branch; `SLACK` covers the rest. Near either end the bound is inf.
    """
    if y < _HIGH_HALF:
        known = y
        exponential = -math.log1p(-(np.float64(y) + 0.5) * _WORD)
    else:
        known = ~y
        exponential = -math.log((np.float64(known) + 0.5) * _WORD)
    value = math.log(exponential)
    error = (abs(value) + 1.0) * SLACK + 4.0 / (np.float64(known) + 1.0)
    return value, (math.inf if known < u64(64) else error)


@kernel
def poisson_batch(state, buffer, rows, mean_gap, out, slack):  # type: ignore[no-untyped-def]
    """Rows kept, by gaps floor(E mean_gap); 0: done, 1: `out` is full, 2: the next gap is
    undecided.

    Registers COUNT and CURSOR hold how many are in `out` and the first row not yet looked at. The
    words are whole ones.
    """
    count, cursor = np.int64(state[COUNT]), np.int64(state[CURSOR])
    status = 0
    while cursor < rows:
        if count == out.size:
            status = 1
            break
        mark = state[POSITION]
        exponential, error = _exponential(whole_word(state, buffer))
        gap = exponential * mean_gap
        error = (mean_gap * error + gap * SLACK) * slack
        # Past the last row, however large the error is within its bound.
        if gap - error >= rows - cursor:
            cursor = rows
            break
        floor = np.floor(gap - error)
        # Decided only if both ends of the interval have one floor; NaN fails, too.
        if not (floor >= 0 and gap + error < floor + 1):
            rewind(state, buffer, mark)
            status = 2
            break
        cursor += np.int64(floor)
        if cursor < rows:
            out[count] = cursor
            count += 1
        cursor += 1
    state[COUNT], state[CURSOR] = u64(count), u64(cursor)
    return status


@kernel
def discrete_laplace(state, buffer, scale, out, start, slack):  # type: ignore[no-untyped-def]
    """P(x) ~ exp(-|x| / scale) for each coordinate from `start`: floor(scale E) with a fair sign,
    and never minus zero. The index of the first undecided one, or out.size."""
    for i in range(start, out.size):
        mark = state[POSITION]
        while True:
            exponential, error = _exponential(word(state, buffer))
            size = exponential * scale
            error = (scale * error + size * SLACK) * slack
            floor = np.floor(size - error)
            if not (floor >= 0 and size + error < floor + 1 and size < 2.0**52):
                rewind(state, buffer, mark)
                return i
            sign = half(state, buffer) & ONE
            if sign == ZERO or floor > 0:
                out[i] = -np.int64(floor) if sign == ONE else np.int64(floor)
                break
    return out.size


@kernel
def choose(state, buffer, excess, rate, low, drawn, slack):  # type: ignore[no-untyped-def]
    """The index that surely minimises ln E_i + rate excess_i, or -1.

    low[i] becomes a lower bound of each, low[n] the least upper bound. Both passes read every
    candidate, whoever wins.
    """
    least = math.inf
    n = excess.size
    for i in range(n):
        y = whole_word(state, buffer)
        drawn[i] = y
        centre, error = _log_exponential(y)
        if error < 1.0:
            cost = rate * excess[i]
            error = (error + abs(cost) * SLACK) * slack
            below = centre + cost - error
            above = centre + cost + error
            # overflow: very large, how large is not known (and with it a difference that
            # overflowed)
            if not cost < 1e300:
                below = min(rate, 1.0) * 1e299 - 1000.0
                above = math.inf
        else:
            below, above = -math.inf, math.inf
        low[i] = below
        least = min(least, above)
    low[n] = least
    contenders = 0
    winner = -1
    for i in range(n):
        inside = low[i] <= least
        contenders += inside
        winner = i if inside else winner
    return winner if contenders == 1 else -1
