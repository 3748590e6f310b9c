"""A stream of random words and the exact samplers over it.

The distribution of each sampler is in `samplers_exact`, its fast path in `samplers_kernels`, the
proofs in docs/noise.md. A call is one compiled pass; what it leaves undecided (one draw in 2^14 at
the largest scale, far fewer at others) is made exactly.
"""

from __future__ import annotations

import importlib
import itertools
import math
import operator
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _checks
from ...errors import InputError
from . import samplers_exact as exact
from .refusals import refuse_copy, refuse_fork

LARGEST_SCALE = 2.0**50
LARGE = 1 << 13  # coordinates, from which `samplers_large` draws: seeds' bits hang on it

SECURE = "ChaCha20 keyed with 256 bits from the operating system"
SEEDED = (
    "INSECURE: ChaCha20 keyed from an integer seed, so whoever knows or guesses the seed can take "
    "the noise away"
)
_MAIN, _EXTENSION, _FLOATS = 0, 1, 2  # lanes: words, further digits, floats

_loaded: Any = None


def _kernels() -> Any:
    """The compiled samplers, loaded when first asked for: numba must not weigh on
    `import fairveil`."""
    global _loaded
    if _loaded is None:
        _loaded = importlib.import_module(".samplers_kernels", __package__)
    return _loaded


class Stream:
    """The random bits of one path, and the exact samplers over them. Not for use by two threads at
    once.

    `size` is a number of coordinates; every sampler returns a new int64 array (`choose` one
    integer).
    """

    __slots__ = ("_blur", "_buffer", "_generator", "_key", "_pid", "_state", "_tape", "path")

    def __init__(self, key: bytes, path: tuple[str | int, ...], pid: int | None) -> None:
        self._key = key
        self.path = path
        self._pid = pid
        self._state: NDArray[np.uint64] | None = None
        self._buffer: NDArray[np.uint32] | None = None
        self._tape: exact.Tape | None = None
        self._generator: np.random.Generator | None = None
        # low bits that the fast path pretends not to know; a test's knob, which cannot change an
        # answer
        self._blur = 0

    @property
    def is_secure(self) -> bool:
        """Whether nobody can know these bits."""
        return self._pid is not None

    def words(self, size: int) -> NDArray[np.uint64]:
        """Raw ChaCha20 output as 64-bit little-endian words."""
        out = np.empty(_checks.whole(size=size), dtype=np.uint64)
        _kernels().words(*self._ready(), out)
        return out

    def rounded_gaussian(
        self, scale: float | NDArray[np.float64], size: int | None = None
    ) -> NDArray[np.int64]:
        """round(scale G), G standard normal, exactly (theory.md#noise): `scale` one number, or an
        array with one a coordinate.

        A scale is at most 2^50. Post-processing of the real-valued Gaussian, so accounted as that.
        """
        scales, size = _scales(scale, size)
        out = np.empty(size, dtype=np.int64)
        self._gaussians(scales, out, 0)
        return out

    def _gaussians(
        self, scales: NDArray[np.float64], out: NDArray[np.int64], at: int, left: bool = False
    ) -> None:
        """The draws from `at` on, which was `left` undecided: what is left is made exactly."""
        head = (*self._ready(), scales.view(np.uint64), out)
        kernel, law, blur = _kernels().rounded_gaussian, exact.normal, np.uint64(self._blur)
        if out.size >= LARGE:
            large = importlib.import_module(".samplers_large", __package__)
            kernel, law = large.in_room(), exact.normal_by_coin
        at = at if left else kernel(*head, at, blur)
        while at < out.size:
            scale = float(scales[at if scales.size > 1 else 0])
            out[at] = exact.rounded_gaussian(self._digits(), scale, law)
            at = kernel(*head, at + 1, blur)

    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]:
        """P(x) ~ exp(-x^2 / (2 sigma^2)) on the integers, exactly (Canonne, Kamath and Steinke
        2020)."""
        sigma = _scale(sigma=sigma)
        return self._each(
            _kernels().discrete_gaussian,
            lambda tape: exact.discrete_gaussian(tape, sigma),
            sigma,
            size,
        )

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """P(x) ~ exp(-|x| / scale) on the integers, exactly."""
        scale = _scale(scale=scale)
        return self._each(
            _kernels().discrete_laplace,
            lambda tape: exact.discrete_laplace(tape, scale),
            scale,
            size,
        )

    def choose(self, scores: ArrayLike, rate: float) -> int:
        """The exponential mechanism: index i with probability exp(-rate scores_i) / sum_j exp(-rate
        scores_j), exactly.

        `scores` are float64, or int64 (then in units that `rate` carries): each is taken as the
        rational number that it is.
        """
        values = _scores(scores)
        rate = _checks.non_negative(rate=rate)
        state, buffer = self._ready()
        low = np.empty(values.size + 1)
        drawn = np.empty(values.size, dtype=np.uint64)
        _align(state)
        winner = int(
            _kernels().choose(state, buffer, _excess(values), rate, low, drawn, 2.0**self._blur)
        )
        if winner >= 0:
            return winner
        # Who is surely above the least upper bound cannot win; further digits decide the rest.
        left = np.flatnonzero(low[:-1] <= low[-1])
        return exact.choose(
            self._digits(), left.tolist(), values[left].tolist(), rate, drawn[left].tolist()
        )

    def poisson_batch(self, rows: int, rate: float) -> NDArray[np.int64]:
        """The rows of a Poisson batch in order: each of 0..rows-1 with probability exactly `rate`,
        independently.

        By the gaps between rows that are kept, which are geometric. The batch is secret, and so is
        its size.
        """
        if type(rows) is not int or rows < 0 or type(rate) is not float or not 0.0 < rate <= 1.0:
            rows, rate = _checks.whole(rows=rows), _checks.fraction(rate=rate, low_open=True)
        state, buffer = self._ready()
        _align(state)
        # geometric gaps: floor(E / -ln(1 - rate)), E exponential
        mean_gap = 0.0 if rate == 1.0 else -1.0 / math.log1p(-rate)
        expected = rows * rate
        out = np.empty(min(rows, int(expected + 6.0 * math.sqrt(expected)) + 16), dtype=np.int64)
        kernels, slack = _kernels(), 2.0**self._blur
        state[kernels.COUNT] = state[kernels.CURSOR] = 0
        while status := kernels.poisson_batch(state, buffer, rows, mean_gap, out, slack):
            if status == 1:
                out = np.concatenate(
                    [out, np.empty(min(rows, 2 * out.size) - out.size, dtype=np.int64)]
                )
                continue
            count, row = (
                int(state[kernels.COUNT]),
                int(state[kernels.CURSOR]) + exact.gap(self._digits(), rate),
            )
            if row < rows:
                out[count] = row
                state[kernels.COUNT] = count + 1
            state[kernels.CURSOR] = min(row + 1, rows)
        return out[: int(state[kernels.COUNT])]

    def generator(self) -> np.random.Generator:
        """NumPy's floats over this stream's key, for initialisation and prediction. Not for noise:
        those distributions are not exact.

        The same generator each time; its words are a lane apart from those of the samplers. That of
        a secure stream cannot be copied, pickled or used after a fork, as the stream cannot.
        """
        self._check()
        if self._generator is None:
            counter = _FLOATS << 68  # randomgen counts 32-bit words, 16 a block
            if self._pid is not None:
                from .guarded import guarded

                self._generator = guarded(self._key, counter, self._pid)
            else:
                from randomgen import ChaCha

                bits = ChaCha(key=int.from_bytes(self._key, "little"), counter=counter, rounds=20)
                self._generator = np.random.Generator(bits)
        return self._generator

    def uniforms(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Floats in [0, 1), for initialisation and prediction."""
        return self.generator().random(size)

    def normals(self, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Normal floats, for initialisation. Not for noise."""
        return self.generator().standard_normal(size)

    def __repr__(self) -> str:
        return f"<Stream {'/'.join(map(str, self.path))}, {SECURE if self.is_secure else SEEDED}>"

    def __reduce__(self) -> NoReturn:
        refuse_copy("a Stream")

    def _check(self) -> None:
        if self._pid is not None and os.getpid() != self._pid:
            refuse_fork()

    def _ready(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        if self._pid is not None and os.getpid() != self._pid:
            refuse_fork()
        if self._state is None or self._buffer is None:
            self._state, self._buffer = _kernels().new_state(self._key, _MAIN)
        return self._state, self._buffer

    def _digits(self) -> exact.Tape:
        """The words as Python integers, for the draws that the fast path leaves undecided."""
        if self._tape is None:
            kernels, main = _kernels(), self._ready()
            more = kernels.new_state(self._key, _EXTENSION)
            self._tape = exact.Tape(
                lambda: int(kernels.half(*main)),
                lambda: int(kernels.word(*main)),
                lambda: int(kernels.word(*more)),
            )
        return self._tape

    def _each(
        self, kernel: Callable[..., int], slow: Callable[[exact.Tape], int], scale: float, size: int
    ) -> NDArray[np.int64]:
        state, buffer = self._ready()
        out = np.empty(_checks.whole(size=size), dtype=np.int64)
        slack = 2.0**self._blur
        at = kernel(state, buffer, scale, out, 0, slack)
        while at < out.size:
            out[at] = slow(self._digits())
            at = kernel(state, buffer, scale, out, at + 1, slack)
        return out


def rounded_gaussians(
    streams: Sequence[Stream], scales: Sequence[float], sizes: Sequence[int]
) -> NDArray[np.int64]:
    """`stream.rounded_gaussian(scale, size)` of each stream, to the bit and one after the other, in
    one compiled pass.

    For joint answers about many models, whose noise comes from a stream each. The streams must be
    new ones.

    >>> from fairveil.privacy.noise.sources import NoiseSource
    >>> one, other = (NoiseSource.seeded(7).stream("noise", n) for n in (1, 2))
    >>> rounded_gaussians([one, other], [10.0, 1e6], [4, 2])
    array([    -12,      -2,     -10,     -15, -219748, -268257])
    """
    return Gaussians(scales, sizes).draw(streams)


class Gaussians:
    """`rounded_gaussians` of these scales and sizes, checked and laid out once for many draws."""

    __slots__ = ("_bits", "_scales", "_starts", "sizes")

    def __init__(self, scales: Sequence[float], sizes: Sequence[int]) -> None:
        self._scales = np.array([_scale(scale=scale) for scale in scales], dtype=np.float64)
        self._bits = self._scales.view(np.uint64)
        self.sizes = tuple(_checks.whole(size=size) for size in sizes)
        self._starts = np.array([0, *itertools.accumulate(self.sizes)])
        if len(scales) != len(sizes):
            remedy = "Pass one scale and one size a stream."
            got = f"{len(scales)} scales, {len(sizes)} sizes"
            raise InputError.expected("a size a scale", of="sizes", got=got, remedy=remedy)

    def draw(self, streams: Sequence[Stream]) -> NDArray[np.int64]:
        """One run of draws after the other; each stream must be a new one."""
        used, keys = False, []
        for stream in streams:
            stream._check()
            used = used or stream._state is not None
            keys.append(stream._key)
        if used or len(set(map(id, streams))) < len(streams) or len(streams) != len(self.sizes):
            got = f"{len(streams)} streams for {len(self.sizes)} scales" + (
                ", one already drawn from" if used else ""
            )
            remedy = "Pass a stream a scale, each once, and none already drawn from."
            raise InputError.expected("a new stream a scale", of="streams", got=got, remedy=remedy)
        out, reached = (
            np.empty(sum(self.sizes), dtype=np.int64),
            np.empty(len(keys), dtype=np.int64),
        )
        if max(self.sizes, default=0) >= LARGE:
            for s, stream in enumerate(streams):
                part = out[self._starts[s] : self._starts[s + 1]]
                stream._gaussians(self._scales[s : s + 1], part, 0)
            return out
        kernels = _kernels()
        blur = np.uint64(max((stream._blur for stream in streams), default=0))
        states, buffers = kernels.new_states(b"".join(keys), _MAIN)
        kernels.rounded_gaussians(states, buffers, self._bits, self._starts, out, reached, blur)
        for s, at in enumerate(reached.tolist()):
            streams[s]._state, streams[s]._buffer = states[s], buffers[s]
            if at < self.sizes[s]:
                part = out[self._starts[s] : self._starts[s + 1]]
                streams[s]._gaussians(self._scales[s : s + 1], part, at, left=True)
        return out


def _scale(**named: object) -> float:
    ((name, value),) = named.items()
    if type(value) is float and 0.0 < value <= LARGEST_SCALE:
        return value
    number = _checks.positive(remedy="", allow_inf=False, **named)
    if number > LARGEST_SCALE:
        raise InputError.expected("at most 2^50", of=name, got=value, remedy="Use a coarser grid.")
    return number


def _scales(
    scale: float | NDArray[np.float64], size: int | None
) -> tuple[NDArray[np.float64], int]:
    if not isinstance(scale, np.ndarray):
        return np.array([_scale(scale=scale)]), _checks.whole(
            size=size, remedy="Pass size, the number of coordinates."
        )
    scales = np.ascontiguousarray(scale, dtype=np.float64)
    if scales.ndim != 1 or (size is not None and operator.index(size) != scales.size):
        raise InputError.expected(
            f"a vector{'' if size is None else f' of {size} scales'}",
            of="scale",
            got=f"an array of shape {scales.shape}",
            remedy="Pass one scale a coordinate, or a single number and size.",
        )
    if scales.size and not (scales.min() > 0.0 and scales.max() <= LARGEST_SCALE):
        bad = scales[~((scales > 0.0) & (scales <= LARGEST_SCALE))]
        raise InputError.expected(
            "numbers above 0, at most 2^50",
            of="scale",
            got=float(bad[0]),
            remedy="Check the multipliers.",
        )
    return scales, scales.size


def _scores(scores: ArrayLike) -> NDArray[np.float64] | NDArray[np.int64]:
    values = np.asarray(scores)
    good = values.ndim == 1 and values.size > 0 and values.dtype in (np.float64, np.int64)
    if not good or not np.isfinite(values).all():
        raise InputError.expected(
            "a vector of at least one finite float64 or int64",
            of="scores",
            # never a score: they are private
            got=f"an array of shape {values.shape} and type {values.dtype}",
            remedy="Clip the scores, and give at least one candidate.",
        )
    return values


def _excess(values: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    """values - min(values), each within one rounding of the truth (a difference beyond all floats
    is inf)."""
    least = values.min()
    if values.dtype == np.int64:
        # Modulo 2^64: the difference of two int64 numbers always fits an unsigned one.
        wrapped: NDArray[np.uint64] = values.view(np.uint64) - least.astype(np.uint64)
        return wrapped.astype(np.float64)
    with np.errstate(over="ignore"):
        excess: NDArray[np.float64] = np.subtract(values, least, dtype=np.float64)
    return excess


def _align(state: NDArray[np.uint64]) -> None:
    """On to the next whole word (a position counts 32-bit halves)."""
    position = _kernels().POSITION
    state[position] += state[position] & np.uint64(1)
