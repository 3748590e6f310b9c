"""Compiled fast paths of the exact samplers, over ChaCha20 words that they make as they go.

Imported only when a sampler is first used, because it loads numba. Every kernel either *decides* a draw, by integer
arithmetic or by floats whose error bound is stated, or goes back to the draw's first word and returns, and
`samplers_exact` makes that draw from the same words with as many further digits as it takes. So no floating-point error
enters a law, and no answer depends on the platform's `log`.

The state of a stream is a uint64 array (key: 4 words; position in 32-bit halves; the counter's high word, called lane; two
registers in which a kernel hands over where it stopped) and a buffer of eight ChaCha blocks. `blur` (or `slack`) makes the
fast path pretend not to know that many low bits (tests use it to force the exact path); it can never change an answer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .samplers_exact import GAUSSIAN_STEPS

# _nrt=False: no kernel here makes an array, so none needs numba's counting of references, which costs four locked additions a
# word, five times the word itself
_OPTIONS: Any = {"cache": True, "error_model": "numpy", "_nrt": False}
_kernel: Any = njit(**_OPTIONS)
_released: Any = njit(**_OPTIONS, nogil=True)  # of the interpreter's lock
# inlined by numba itself, because LLVM vectorises a loop only when its body is flat before it looks
_inlined: Any = njit(**_OPTIONS, inline="always")
_u32 = np.uint32
_u64 = np.uint64

POSITION, LANE, COUNT, CURSOR, STATE_SIZE = 4, 5, 6, 7, 8
LANES = 8

_CONSTANTS = (_u32(0x61707865), _u32(0x3320646E), _u32(0x79622D32), _u32(0x6B206574))  # "expand 32-byte k"
_HALVES = _u64(16 * LANES)
_MASK32 = _u64(0xFFFFFFFF)
_S32 = _u64(32)
_S64 = _u64(64)
_ONE = _u64(1)
_ZERO = _u64(0)
_HIGH_HALF = _u64(1 << 63)
_LEAST_REST = _u64(1 << 44)

# A library's log, log1p and exp are taken to be right to 2^-46 relative, which is 32 times worse than any in use (they are
# within an ulp or two, 2^-51); twice to four times that covers the few further roundings of a formula too.
_SLACK = 2.0**-44
_WORD = 2.0**-64

_STEPS = tuple(_u64(step) for step in GAUSSIAN_STEPS)
_N_STEPS = len(GAUSSIAN_STEPS)


@_inlined
def _quarter(a, b, c, d):  # type: ignore[no-untyped-def]
    a = _u32(a + b)
    d = _u32(d ^ a)
    d = _u32((d << _u32(16)) | (d >> _u32(16)))
    c = _u32(c + d)
    b = _u32(b ^ c)
    b = _u32((b << _u32(12)) | (b >> _u32(20)))
    a = _u32(a + b)
    d = _u32(d ^ a)
    d = _u32((d << _u32(8)) | (d >> _u32(24)))
    c = _u32(c + d)
    b = _u32(b ^ c)
    b = _u32((b << _u32(7)) | (b >> _u32(25)))
    return a, b, c, d


@_kernel
def _input_row(state, low, row):  # type: ignore[no-untyped-def]
    """Word `row` of a ChaCha block before its rounds, for a block whose counter's low 64 bits are `low`."""
    if row < 4:
        return _CONSTANTS[row]
    if row < 12:
        return _u32(state[(row - 4) >> 1] >> (_S32 * _u64(row & 1)))
    return _u32((low if row < 14 else state[LANE]) >> (_S32 * _u64(row & 1)))


@_kernel
def refill(state, buffer, chunk):  # type: ignore[no-untyped-def]
    """Eight ChaCha20 blocks (RFC 8439 sec. 2.3): word r of block b goes to buffer[8 r + b].

    Words 12 to 15 of a block's input are a 128-bit counter, its low half 8 chunk + b, its high half the lane. Eight blocks go
    side by side so that the compiler makes one vector instruction of each operation.
    """
    first = chunk * _u64(LANES)
    for row in range(16):
        value = _input_row(state, first, row)
        for b in range(LANES):
            buffer[row * LANES + b] = value
    for b in range(LANES):
        buffer[12 * LANES + b] += _u32(b)  # no carry: `first` is a multiple of LANES
    for _ in range(10):
        for b in range(LANES):
            i = _u64(b)
            x0, x1, x2, x3 = buffer[i], buffer[i + _u64(8)], buffer[i + _u64(16)], buffer[i + _u64(24)]
            x4, x5, x6, x7 = buffer[i + _u64(32)], buffer[i + _u64(40)], buffer[i + _u64(48)], buffer[i + _u64(56)]
            x8, x9, xa, xb = buffer[i + _u64(64)], buffer[i + _u64(72)], buffer[i + _u64(80)], buffer[i + _u64(88)]
            xc, xd, xe, xf = buffer[i + _u64(96)], buffer[i + _u64(104)], buffer[i + _u64(112)], buffer[i + _u64(120)]
            x0, x4, x8, xc = _quarter(x0, x4, x8, xc)
            x1, x5, x9, xd = _quarter(x1, x5, x9, xd)
            x2, x6, xa, xe = _quarter(x2, x6, xa, xe)
            x3, x7, xb, xf = _quarter(x3, x7, xb, xf)
            x0, x5, xa, xf = _quarter(x0, x5, xa, xf)
            x1, x6, xb, xc = _quarter(x1, x6, xb, xc)
            x2, x7, x8, xd = _quarter(x2, x7, x8, xd)
            x3, x4, x9, xe = _quarter(x3, x4, x9, xe)
            buffer[i], buffer[i + _u64(8)], buffer[i + _u64(16)], buffer[i + _u64(24)] = x0, x1, x2, x3
            buffer[i + _u64(32)], buffer[i + _u64(40)], buffer[i + _u64(48)], buffer[i + _u64(56)] = x4, x5, x6, x7
            buffer[i + _u64(64)], buffer[i + _u64(72)], buffer[i + _u64(80)], buffer[i + _u64(88)] = x8, x9, xa, xb
            buffer[i + _u64(96)], buffer[i + _u64(104)], buffer[i + _u64(112)], buffer[i + _u64(120)] = xc, xd, xe, xf
    for row in range(16):
        value = _input_row(state, first, row)
        for b in range(LANES):
            buffer[row * LANES + b] += value
    for b in range(LANES):
        buffer[12 * LANES + b] += _u32(b)


@_inlined
def half(state, buffer):  # type: ignore[no-untyped-def]
    """The next 32 bits."""
    at = state[POSITION]
    offset = at & (_HALVES - _ONE)
    if offset == _ZERO:
        refill(state, buffer, at // _HALVES)
    state[POSITION] = at + _ONE
    return _u64(buffer[((offset & _u64(15)) << _u64(3)) | (offset >> _u64(4))])


@_inlined
def word(state, buffer):  # type: ignore[no-untyped-def]
    """The next 64 bits, low half first."""
    low = half(state, buffer)
    return low | (half(state, buffer) << _S32)


@_inlined
def _whole_word(state, buffer):  # type: ignore[no-untyped-def]
    """`word` where the position is known to be even."""
    at = state[POSITION]
    offset = at & (_HALVES - _ONE)
    if offset == _ZERO:
        refill(state, buffer, at // _HALVES)
    state[POSITION] = at + _u64(2)
    place = ((offset & _u64(15)) << _u64(3)) | (offset >> _u64(4))
    return _u64(buffer[place]) | (_u64(buffer[place + _u64(LANES)]) << _S32)


@_kernel
def rewind(state, buffer, position):  # type: ignore[no-untyped-def]
    """Back to a position already read, so that the same bits come again."""
    if position & (_HALVES - _ONE) != _ZERO and position // _HALVES != (state[POSITION] - _ONE) // _HALVES:
        refill(state, buffer, position // _HALVES)
    state[POSITION] = position


@_kernel
def words(state, buffer, out):  # type: ignore[no-untyped-def]
    """Fill `out` with raw words, from the next whole word on."""
    state[POSITION] += state[POSITION] & _ONE
    for i in range(out.size):
        out[i] = _whole_word(state, buffer)


@_kernel
def _shortfall(state, buffer, k, x):  # type: ignore[no-untyped-def]
    """Karney's algorithm B: true (1) with probability exp(-x(2k+x)/(2k+2)); -1 if 32 bits cannot tell. x: its top 32 bits."""
    m = _u64(2) * k + _u64(2)
    y = x
    even = 1
    while True:
        z = half(state, buffer)
        if z == y:
            return -1
        if z > y:
            return even
        product = half(state, buffer) * m
        if product & _MASK32 < m:
            least = ((_ONE << _S32) - m) % m
            while product & _MASK32 < least:
                product = half(state, buffer) * m
        die = product >> _S32
        if die == _ZERO:
            return even
        if die == _ONE:
            r = half(state, buffer)
            if r == x:
                return -1
            if r > x:
                return even
        y = z
        even = 1 - even


@_kernel
def _normal(state, buffer):  # type: ignore[no-untyped-def]
    """|G| as (sign, k, 64-bit fraction), or sign 2 if the bits at hand cannot tell. See `samplers_exact.normal`."""
    while True:
        first = half(state, buffer)
        digit = first >> _ONE
        k = _ZERO
        while True:
            if k == _u64(_N_STEPS) or digit == _STEPS[k]:
                return 2, k, _ZERO
            if digit < _STEPS[k]:
                break
            k += _ONE
        top = half(state, buffer)
        low = half(state, buffer)
        accepted = 1
        for _ in range(k + _ONE):
            accepted = _shortfall(state, buffer, k, top)
            if accepted != 1:
                break
        if accepted == -1:
            return 2, k, _ZERO
        if accepted == 1:
            return np.int64(first & _ONE), k, (top << _S32) | low


@_kernel
def _scaled(bits, k, fraction, blur):  # type: ignore[no-untyped-def]
    """floor(scale (k + x) + 1/2) for all x in the interval that `fraction` leaves, or -1 if they differ. Exact integers.

    scale = m 2^e with m < 2^53, and N = (k 2^64 + fraction) m < 2^123 is scale (k + x) in units of 2^-shift, shift = 64 - e.
    """
    exponent = np.int64((bits >> _u64(52)) & _u64(0x7FF))
    m = bits & ((_ONE << _u64(52)) - _ONE)
    if exponent == 0:
        exponent = np.int64(1)
    else:
        m |= _ONE << _u64(52)
    shift = 64 + 1075 - exponent
    if k >= _u64(64):
        return np.int64(-1)
    if shift >= 126:  # N + m 2^blur < 2^124 is less than half a unit
        return np.int64(0)
    width_low, width_high = m, _ZERO
    if blur >= _S64:
        fraction = _ZERO
        width_low, width_high = _ZERO, m
    elif blur > _ZERO:
        fraction = (fraction >> blur) << blur
        width_low, width_high = m << blur, m >> (_S64 - blur)
    m0, m1, x0, x1 = m & _MASK32, m >> _S32, fraction & _MASK32, fraction >> _S32
    p00, p01, p10 = m0 * x0, m0 * x1, m1 * x0
    middle = (p00 >> _S32) + (p01 & _MASK32) + (p10 & _MASK32)
    low = (middle << _S32) | (p00 & _MASK32)
    high = m1 * x1 + (p01 >> _S32) + (p10 >> _S32) + (middle >> _S32) + m * k
    # the largest integer that the interval reaches below N + m 2^blur
    if width_low == _ZERO:
        width_high -= _ONE
    width_low -= _ONE
    top_low = low + width_low
    top_high = high + width_high
    if top_low < low:
        top_high += _ONE
    half_unit = _ONE << _u64(shift - 65)
    down = _u64(shift - 64)
    value = (high + half_unit) >> down
    if (top_high + half_unit) >> down != value:
        return np.int64(-1)
    return np.int64(value)


@_released
def rounded_gaussian(state, buffer, scales, out, start, blur):  # type: ignore[no-untyped-def]
    """round(scale G) for each coordinate from `start`; the index of the first that is undecided, or out.size.

    `scales` holds the bits of one float, or of one a coordinate.
    """
    step = 0 if scales.size == 1 else 1
    for i in range(start, out.size):
        mark = state[POSITION]
        sign, k, fraction = _normal(state, buffer)
        value = _scaled(scales[i * step], k, fraction, blur) if sign != 2 else np.int64(-1)
        if value < 0:
            rewind(state, buffer, mark)
            return i
        out[i] = -value if sign == 1 else value
    return out.size


@_released
def rounded_gaussians(states, buffers, bits, starts, out, reached, blur):  # type: ignore[no-untyped-def]
    """`rounded_gaussian` of many streams: out[starts[s] : starts[s + 1]] from stream s, with the scale of bits[s].

    reached[s]: how far stream s came, as `rounded_gaussian` returns it.
    """
    for s in range(states.shape[0]):
        part = out[starts[s] : starts[s + 1]]
        reached[s] = rounded_gaussian(states[s], buffers[s], bits[s : s + 1], part, 0, blur)


@_kernel
def _exponential(y):  # type: ignore[no-untyped-def]
    """E = -ln(1 - W), W = (y + theta) / 2^64, and a bound on its absolute error over theta in [0, 1].

    1 - W lies in [rest, rest + 1] / 2^64 with rest = 2^64 - 1 - y. While rest >= 2^44, its middle as a float is within a
    relative 2^-45 + 2^-52 of it, which is the absolute error of E, beside the library's relative one.
    """
    rest = ~y
    value = -math.log((np.float64(rest) + 0.5) * _WORD)
    return value, (math.inf if rest < _LEAST_REST else (value + 1.0) * _SLACK)


@_kernel
def _log_exponential(y):  # type: ignore[no-untyped-def]
    """ln E for the E of `_exponential`, and a bound on its absolute error.

    W (when below 1/2, else 1 - W) is known to relative 1/(y + 1) (y >= 1) and 2^-52; d ln E / d ln W is at most 1.45 on each
    branch; `_SLACK` covers the rest. Near either end the bound is inf.
    """
    if y < _HIGH_HALF:
        known = y
        exponential = -math.log1p(-(np.float64(y) + 0.5) * _WORD)
    else:
        known = ~y
        exponential = -math.log((np.float64(known) + 0.5) * _WORD)
    value = math.log(exponential)
    error = (abs(value) + 1.0) * _SLACK + 4.0 / (np.float64(known) + 1.0)
    return value, (math.inf if known < _u64(64) else error)


@_kernel
def poisson_batch(state, buffer, rows, mean_gap, out, slack):  # type: ignore[no-untyped-def]
    """Rows kept, by gaps floor(E mean_gap); 0: done, 1: `out` is full, 2: the next gap is undecided.

    Registers COUNT and CURSOR hold how many are in `out` and the first row not yet looked at. The words are whole ones.
    """
    count, cursor = np.int64(state[COUNT]), np.int64(state[CURSOR])
    status = 0
    while cursor < rows:
        if count == out.size:
            status = 1
            break
        mark = state[POSITION]
        exponential, error = _exponential(_whole_word(state, buffer))
        gap = exponential * mean_gap
        error = (mean_gap * error + gap * _SLACK) * slack
        if gap - error >= rows - cursor:
            cursor = rows
            break
        floor = np.floor(gap - error)
        if not (floor >= 0 and gap + error < floor + 1):
            rewind(state, buffer, mark)
            status = 2
            break
        cursor += np.int64(floor)
        if cursor < rows:
            out[count] = cursor
            count += 1
        cursor += 1
    state[COUNT], state[CURSOR] = _u64(count), _u64(cursor)
    return status


@_kernel
def _laplace(state, buffer, scale, slack):  # type: ignore[no-untyped-def]
    """(decided, |Y|, sign) of a discrete Laplace of this scale: floor(scale E), and never minus zero."""
    while True:
        exponential, error = _exponential(word(state, buffer))
        size = exponential * scale
        error = (scale * error + size * _SLACK) * slack
        floor = np.floor(size - error)
        if not (floor >= 0 and size + error < floor + 1 and size < 2.0**52):
            return False, np.int64(0), _ZERO
        sign = half(state, buffer) & _ONE
        if sign == _ZERO or floor > 0:
            return True, np.int64(floor), sign


@_kernel
def discrete_laplace(state, buffer, scale, out, start, slack):  # type: ignore[no-untyped-def]
    """P(x) ~ exp(-|x| / scale) for each coordinate from `start`; the index of the first undecided one, or out.size."""
    for i in range(start, out.size):
        mark = state[POSITION]
        decided, size, sign = _laplace(state, buffer, scale, slack)
        if not decided:
            rewind(state, buffer, mark)
            return i
        out[i] = -size if sign == _ONE else size
    return out.size


@_kernel
def _discrete_normal(state, buffer, sigma, slack):  # type: ignore[no-untyped-def]
    """(decided, |Y|, sign): a discrete Laplace of scale t = floor(sigma) + 1, kept with probability
    exp(-(|Y| - sigma^2/t)^2 / (2 sigma^2)) (Canonne, Kamath and Steinke, algorithm 3)."""
    t = math.floor(sigma) + 1.0
    centre = sigma * sigma / t
    while True:
        decided, size, sign = _laplace(state, buffer, t, slack)
        if not decided:
            return False, size, sign
        away = abs(size - centre)
        blur = (size + centre) * _SLACK
        cost = away * away / (2.0 * sigma * sigma)
        error = blur * (2.0 * away + blur) / (2.0 * sigma * sigma) + cost * _SLACK
        chance = math.exp(-cost)
        u = (np.float64(word(state, buffer)) + 0.5) * _WORD
        # |e^-x' - e^-x| <= 2 error e^-x while error < 1
        tolerance = (chance * (2.0 * error + _SLACK) + u * _SLACK + 2.0 * _WORD) * slack
        if not error < 1.0 or not abs(u - chance) > tolerance:
            return False, size, sign
        if u < chance:
            return True, size, sign


@_kernel
def discrete_gaussian(state, buffer, sigma, out, start, slack):  # type: ignore[no-untyped-def]
    """P(x) ~ exp(-x^2 / (2 sigma^2)) for each coordinate from `start`; the index of the first undecided one, or out.size."""
    for i in range(start, out.size):
        mark = state[POSITION]
        decided, size, sign = _discrete_normal(state, buffer, sigma, slack)
        if not decided:
            rewind(state, buffer, mark)
            return i
        out[i] = -size if sign == _ONE else size
    return out.size


@_kernel
def choose(state, buffer, excess, rate, low, drawn, slack):  # type: ignore[no-untyped-def]
    """The index that surely minimises ln E_i + rate excess_i, or -1.

    low[i] becomes a lower bound of each, low[n] the least upper bound. Both passes read every candidate, whoever wins.
    """
    least = math.inf
    n = excess.size
    for i in range(n):
        y = _whole_word(state, buffer)
        drawn[i] = y
        centre, error = _log_exponential(y)
        if error < 1.0:
            cost = rate * excess[i]
            error = (error + abs(cost) * _SLACK) * slack
            below = centre + cost - error
            above = centre + cost + error
            if not cost < 1e300:  # overflow: very large, how large is not known (and with it a difference that overflowed)
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


def new_state(key: bytes, lane: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """State and buffer of a stream at its first word. Lanes of one key are disjoint."""
    state = np.zeros(STATE_SIZE, dtype=np.uint64)
    state[:4] = np.frombuffer(key, dtype="<u8")
    state[LANE] = lane
    return state, np.empty(16 * LANES, dtype=np.uint32)


def new_states(keys: bytes, lane: int) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """States and buffers of many streams, a line each; `keys` one after the other."""
    words = np.frombuffer(keys, dtype="<u8").reshape(-1, 4)
    states = np.zeros((len(words), STATE_SIZE), dtype=np.uint64)
    states[:, :4] = words
    states[:, LANE] = lane
    return states, np.empty((len(words), 16 * LANES), dtype=np.uint32)
