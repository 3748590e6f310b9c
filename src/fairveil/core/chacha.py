"""Compiled ChaCha20: the words that samplers read, made eight blocks at a time as they are needed
(RFC 8439)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# _nrt=False: no kernel here makes an array, so none needs numba's counting of references, which
# costs four locked additions a word, five times the word itself
_OPTIONS: Any = {"cache": True, "error_model": "numpy", "_nrt": False}

kernel: Any = njit(**_OPTIONS)
released: Any = njit(**_OPTIONS, nogil=True)  # of the interpreter's lock
# inlined by numba itself, because LLVM vectorises a loop only when its body is flat before it looks
inlined: Any = njit(**_OPTIONS, inline="always")

u32, u64 = np.uint32, np.uint64
POSITION, LANE, COUNT, CURSOR, STATE_SIZE = 4, 5, 6, 7, 8
LANES = 8
# "expand 32-byte k"
_CONSTANTS = (u32(0x61707865), u32(0x3320646E), u32(0x79622D32), u32(0x6B206574))
_HALVES = u64(16 * LANES)
MASK32, S32, S64 = u64(0xFFFFFFFF), u64(32), u64(64)
ONE, ZERO = u64(1), u64(0)
_8, _16, _24, _32, _40 = u64(8), u64(16), u64(24), u64(32), u64(40)
_48, _56, _64, _72, _80 = u64(48), u64(56), u64(64), u64(72), u64(80)
_88, _96, _104, _112, _120 = u64(88), u64(96), u64(104), u64(112), u64(120)


@inlined
def _quarter(a, b, c, d):  # type: ignore[no-untyped-def]
    a = u32(a + b)
    d = u32(d ^ a)
    d = u32((d << u32(16)) | (d >> u32(16)))
    c = u32(c + d)
    b = u32(b ^ c)
    b = u32((b << u32(12)) | (b >> u32(20)))
    a = u32(a + b)
    d = u32(d ^ a)
    d = u32((d << u32(8)) | (d >> u32(24)))
    c = u32(c + d)
    b = u32(b ^ c)
    b = u32((b << u32(7)) | (b >> u32(25)))
    return a, b, c, d


@kernel
def _input_row(state, low, row):  # type: ignore[no-untyped-def]
    """Word `row` of a ChaCha block before its rounds, for a block whose counter's low 64 bits are
    `low`."""
    if row < 4:
        return _CONSTANTS[row]
    if row < 12:
        return u32(state[(row - 4) >> 1] >> (S32 * u64(row & 1)))
    return u32((low if row < 14 else state[LANE]) >> (S32 * u64(row & 1)))


@kernel
def refill(state, buffer, chunk):  # type: ignore[no-untyped-def]
    """Eight ChaCha20 blocks (RFC 8439 sec. 2.3): word r of block b goes to buffer[8 r + b].

    Words 12 to 15 of a block's input are a 128-bit counter, its low half 8 chunk + b, its high half
    the lane. Eight blocks go side by side so that the compiler makes one vector instruction of each
    operation.
    """
    first = chunk * u64(LANES)
    for row in range(16):
        value = _input_row(state, first, row)
        for b in range(LANES):
            buffer[row * LANES + b] = value
    for b in range(LANES):
        buffer[12 * LANES + b] += u32(b)  # no carry: `first` is a multiple of LANES
    for _ in range(10):
        for b in range(LANES):
            i = u64(b)
            x0, x1, x2, x3 = buffer[i], buffer[i + _8], buffer[i + _16], buffer[i + _24]
            x4, x5, x6, x7 = buffer[i + _32], buffer[i + _40], buffer[i + _48], buffer[i + _56]
            x8, x9, xa, xb = buffer[i + _64], buffer[i + _72], buffer[i + _80], buffer[i + _88]
            xc, xd, xe, xf = buffer[i + _96], buffer[i + _104], buffer[i + _112], buffer[i + _120]
            x0, x4, x8, xc = _quarter(x0, x4, x8, xc)
            x1, x5, x9, xd = _quarter(x1, x5, x9, xd)
            x2, x6, xa, xe = _quarter(x2, x6, xa, xe)
            x3, x7, xb, xf = _quarter(x3, x7, xb, xf)
            x0, x5, xa, xf = _quarter(x0, x5, xa, xf)
            x1, x6, xb, xc = _quarter(x1, x6, xb, xc)
            x2, x7, x8, xd = _quarter(x2, x7, x8, xd)
            x3, x4, x9, xe = _quarter(x3, x4, x9, xe)
            buffer[i], buffer[i + _8], buffer[i + _16], buffer[i + _24] = x0, x1, x2, x3
            buffer[i + _32], buffer[i + _40], buffer[i + _48], buffer[i + _56] = x4, x5, x6, x7
            buffer[i + _64], buffer[i + _72], buffer[i + _80], buffer[i + _88] = x8, x9, xa, xb
            buffer[i + _96], buffer[i + _104], buffer[i + _112], buffer[i + _120] = xc, xd, xe, xf
    for row in range(16):
        value = _input_row(state, first, row)
        for b in range(LANES):
            buffer[row * LANES + b] += value
    for b in range(LANES):
        buffer[12 * LANES + b] += u32(b)


@inlined
def half(state, buffer):  # type: ignore[no-untyped-def]
    """The next 32 bits."""
    at = state[POSITION]
    offset = at & (_HALVES - ONE)
    if offset == ZERO:
        refill(state, buffer, at // _HALVES)
    state[POSITION] = at + ONE
    return u64(buffer[((offset & u64(15)) << u64(3)) | (offset >> u64(4))])


@inlined
def word(state, buffer):  # type: ignore[no-untyped-def]
    """The next 64 bits, low half first."""
    low = half(state, buffer)
    return low | (half(state, buffer) << S32)


@inlined
def whole_word(state, buffer):  # type: ignore[no-untyped-def]
    """`word` where the position is known to be even."""
    at = state[POSITION]
    offset = at & (_HALVES - ONE)
    if offset == ZERO:
        refill(state, buffer, at // _HALVES)
    state[POSITION] = at + u64(2)
    place = ((offset & u64(15)) << u64(3)) | (offset >> u64(4))
    return u64(buffer[place]) | (u64(buffer[place + u64(LANES)]) << S32)


@kernel
def rewind(state, buffer, position):  # type: ignore[no-untyped-def]
    """Back to a position already read, so that the same bits come again."""
    if (
        position & (_HALVES - ONE) != ZERO
        and position // _HALVES != (state[POSITION] - ONE) // _HALVES
    ):
        refill(state, buffer, position // _HALVES)
    state[POSITION] = position


@kernel
def words(state, buffer, out):  # type: ignore[no-untyped-def]
    """Fill `out` with raw words, from the next whole word on."""
    state[POSITION] += state[POSITION] & ONE
    for i in range(out.size):
        out[i] = whole_word(state, buffer)


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
