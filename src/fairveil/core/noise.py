"""Where randomness comes from: one root key, and streams named by what they are for.

Every stream is ChaCha20 (20 rounds, RFC 8439) under a key of its own,

    stream key = BLAKE2b(encoding of the path, keyed with the root key),

so streams are independent, adding a release changes no other release's draws, and one (seed, path)
gives the same bits on every platform. The distribution of each sampler is in `exact`, its compiled
fast path in `fast`, the proofs in docs/noise.md: a call is one compiled pass, and what it leaves
undecided (one draw in 2^14 at the largest scale, far fewer at others) is made exactly.

Guarantees
    1. A secure root is 256 bits from the operating system. A seeded source says
       `is_secure == False`, and its streams do too.
    2. A source returns each path once: a key never serves two releases.
    3. A secure source or stream is never copied: pickling and copying it, and drawing from it after
       a fork, is an error.
    4. Streams of different paths have different keys; the encoding of paths is injective.
    5. Each sampler returns what an ideal machine with infinitely many random bits would: no total
       variation is lost, which would be charged (theory.md#t7).

Timing is not covered by 5: how long a draw takes depends on the draw. See docs/noise.md.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import itertools
import math
import operator
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import checks, exact
from .errors import PrivacyError, need

STREAM_NAMES = ("sampling", "noise", "initialisation", "prediction", "units")
LARGEST_SCALE = 2.0**50
SECURE = "ChaCha20 keyed with 256 bits from the operating system"
SEEDED = (
    "INSECURE: ChaCha20 keyed from an integer seed, so whoever knows or guesses the seed can take "
    "the noise away"
)
_MAIN, _EXTENSION, _FLOATS = 0, 1, 2  # lanes: words, further digits, floats


class NoiseSource:
    """One root of randomness. `NoiseSource.secure()` for releases, `NoiseSource.seeded(7)` for
    tests.

    >>> source = NoiseSource.seeded(7)
    >>> source.stream("noise", 1).rounded_gaussian(10.0, 4)
    array([-12,  -2, -10, -15])
    >>> source.is_secure
    False
    """

    __slots__ = ("_given", "_keyed", "_pid", "_root")

    def __init__(self, root: bytes, *, secure: bool) -> None:
        self._root = root
        self._keyed = hashlib.blake2b(key=root, digest_size=32, person=b"fairveil stream")
        self._pid = os.getpid() if secure else None
        self._given: dict[tuple[str | int, ...], object] = {}

    @staticmethod
    def secure() -> NoiseSource:
        """A fresh 256-bit key from the operating system, known to nobody."""
        return NoiseSource(secrets.token_bytes(32), secure=True)

    @staticmethod
    def seeded(seed: int) -> NoiseSource:
        """Reproducible, and flagged insecure. `seed` is any integer from 0 on."""
        number = checks.whole(seed=seed)
        size = (number.bit_length() + 7) // 8
        # The `person` parts seeds from paths: no seed's root is a stream's key.
        root = hashlib.blake2b(
            number.to_bytes(size, "little"), digest_size=32, person=b"fairveil seed"
        )
        return NoiseSource(root.digest(), secure=False)

    @staticmethod
    def of(random_state: int | None) -> NoiseSource:
        """What `random_state` means to an estimator: None is secure, an integer is a seed."""
        return NoiseSource.secure() if random_state is None else NoiseSource.seeded(random_state)

    @property
    def is_secure(self) -> bool:
        """Whether nobody can know these bits."""
        return self._pid is not None

    @property
    def description(self) -> str:
        """Words for the privacy statement."""
        return SECURE if self.is_secure else SEEDED

    @property
    def seeded_root(self) -> bytes | None:
        """The key of a seeded source, with which another makes the same bits; None of a secure one,
        which nobody sees."""
        return None if self.is_secure else self._root

    def stream(self, name: str, *path: str | int) -> Stream:
        """The stream of this name (one of `STREAM_NAMES`) and path, such as ("noise", number of the
        release). Once each.

        Raises `PrivacyError` for a path that was returned before (guarantee 2) or in a forked
        process (guarantee 3).
        """
        if self._pid is not None and os.getpid() != self._pid:
            refuse_fork()
        steps = (name, *path)
        if name not in STREAM_NAMES or not all(
            type(step) is int and 0 <= step < 1 << 64 for step in path
        ):
            steps = (checks.one_of(STREAM_NAMES, name=name), *(_step(step) for step in path))
        # `setdefault` is one step: of two threads that ask for one path, one is refused.
        mark = object()
        fresh, words = self._given.setdefault(steps, mark) is mark, "a path not used before"
        fix = "Keep the stream that you got, or add the number of the release to the path."
        need(fresh, words, of="stream", got=steps, fix=fix, error=PrivacyError)
        digest = self._keyed.copy()
        digest.update(encode_path(steps))
        return Stream(digest.digest(), steps, self._pid)

    def __repr__(self) -> str:
        return f"<NoiseSource, {self.description}>"

    def __reduce__(self) -> tuple[Callable[..., NoiseSource], tuple[bytes]]:
        if self.is_secure:
            refuse_copy("a secure NoiseSource")
        return _revive, (self._root,)


def _revive(root: bytes) -> NoiseSource:
    return NoiseSource(root, secure=False)


def encode_path(steps: tuple[str | int, ...]) -> bytes:
    """A path as bytes, injectively: each step is its type's letter and eight bytes, which are the
    number or the text's length.

    >>> encode_path(("noise", 1)).hex()
    '7305000000000000006e6f697365690100000000000000'
    """
    parts: list[bytes] = []
    for step in steps:
        if isinstance(step, str):
            text = step.encode()
            # With the length before the text no two paths have one code (guarantee 4).
            parts += (b"s", len(text).to_bytes(8, "little"), text)
        else:
            parts += (b"i", step.to_bytes(8, "little"))
    return b"".join(parts)


def _step(step: object) -> str | int:
    if isinstance(step, str):
        return step
    number = checks.whole(path=step, remedy="Name a stream by words and whole numbers.")
    fix = "Number releases from 0."
    need(number < 1 << 64, "numbers below 2^64", of="path", got=step, fix=fix)
    return number


@functools.cache
def _fast() -> Any:
    """The compiled samplers, loaded when first asked for: numba must not weigh on
    `import fairveil`."""
    return importlib.import_module(".fast", __package__)


class Stream:
    """The random bits of one path, and the exact samplers over them. Not for use by two threads at
    once.

    `size` is a number of coordinates; every sampler returns a new int64 array (`choose` one
    integer).
    """

    __slots__ = ("_apart", "_blur", "_buffer", "_key", "_pid", "_state", "_tape", "path")

    def __init__(self, key: bytes, path: tuple[str | int, ...], pid: int | None) -> None:
        self._key, self.path, self._pid = key, path, pid
        self._state: NDArray[np.uint64] | None = None
        self._buffer: NDArray[np.uint32] | None = None
        self._tape: exact.Tape | None = None
        self._apart: Any = None  # state and buffer of the lane of floats
        # low bits that the fast path pretends not to know; a test's knob, which cannot change an
        # answer
        self._blur = 0

    @property
    def is_secure(self) -> bool:
        """Whether nobody can know these bits."""
        return self._pid is not None

    def words(self, size: int) -> NDArray[np.uint64]:
        """Raw ChaCha20 output as 64-bit little-endian words."""
        out = np.empty(checks.whole(size=size), dtype=np.uint64)
        _fast().words(*self._ready(), out)
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
        (state, buffer), fast = self._ready(), _fast()
        bits, ends = scales.view(np.uint64), np.array([0, out.size])
        while True:
            if not left:
                reached, one = np.array([at]), (state[np.newaxis], buffer[np.newaxis])
                fast.rounded_gaussians(*one, bits, ends, out, reached, np.uint64(self._blur))
                at = int(reached[0])
            if at >= out.size:
                return
            scale = float(scales[at if scales.size > 1 else 0])
            out[at] = exact.rounded_gaussian(self._digits(), scale)
            at, left = at + 1, False

    def discrete_laplace(self, scale: float, size: int) -> NDArray[np.int64]:
        """P(x) ~ exp(-|x| / scale) on the integers, exactly."""
        scale, kernel = _scale(scale=scale), _fast().discrete_laplace
        head, slack = (*self._ready(), scale), 2.0**self._blur
        out = np.empty(checks.whole(size=size), dtype=np.int64)
        at = kernel(*head, out, 0, slack)
        while at < out.size:
            out[at] = exact.discrete_laplace(self._digits(), scale)
            at = kernel(*head, out, at + 1, slack)
        return out

    def choose(self, scores: ArrayLike, rate: float) -> int:
        """The exponential mechanism: index i with probability exp(-rate scores_i) / sum_j exp(-rate
        scores_j), exactly.

        `scores` are float64, or int64 (then in units that `rate` carries): each is taken as the
        rational number that it is.
        """
        values = _scores(scores)
        rate = checks.non_negative(rate=rate)
        state, buffer = self._ready()
        low, drawn = np.empty(values.size + 1), np.empty(values.size, dtype=np.uint64)
        _align(state)
        head = (state, buffer, _excess(values), rate, low, drawn)
        winner = int(_fast().choose(*head, 2.0**self._blur))
        if winner >= 0:
            return winner
        # Who is surely above the least upper bound cannot win; further digits decide the rest.
        left = np.flatnonzero(low[:-1] <= low[-1])
        scored = (left.tolist(), values[left].tolist(), rate, drawn[left].tolist())
        return exact.choose(self._digits(), *scored)

    def poisson_batch(self, rows: int, rate: float) -> NDArray[np.int64]:
        """The rows of a Poisson batch in order: each of 0..rows-1 with probability exactly `rate`,
        independently.

        By the gaps between rows that are kept, which are geometric. The batch is secret, and so is
        its size.
        """
        if type(rows) is not int or rows < 0 or type(rate) is not float or not 0.0 < rate <= 1.0:
            rows, rate = checks.whole(rows=rows), checks.fraction(rate=rate, low_open=True)
        state, buffer = self._ready()
        _align(state)
        # geometric gaps: floor(E / -ln(1 - rate)), E exponential
        mean_gap = 0.0 if rate == 1.0 else -1.0 / math.log1p(-rate)
        expected = rows * rate
        out = np.empty(min(rows, int(expected + 6.0 * math.sqrt(expected)) + 16), dtype=np.int64)
        fast, slack = _fast(), 2.0**self._blur
        state[fast.COUNT] = state[fast.CURSOR] = 0
        while status := fast.poisson_batch(state, buffer, rows, mean_gap, out, slack):
            if status == 1:
                more = np.empty(min(rows, 2 * out.size) - out.size, dtype=np.int64)
                out = np.concatenate([out, more])
                continue
            count, row = int(state[fast.COUNT]), int(state[fast.CURSOR])
            row += exact.gap(self._digits(), rate)
            if row < rows:
                out[count] = row
                state[fast.COUNT] = count + 1
            state[fast.CURSOR] = min(row + 1, rows)
        return out[: int(state[fast.COUNT])]

    def uniforms(self, size: int) -> NDArray[np.float64]:
        """Floats in [0, 1), multiples of 2^-53, for divisions of rows and numbers of runs. Their
        words are a lane apart from those of the samplers."""
        words = np.empty(checks.whole(size=size), dtype=np.uint64)
        _fast().words(*self._lane(), words)
        return np.asarray((words >> np.uint64(11)) * 2.0**-53)

    def below(self, count: int) -> int:
        """A whole number from 0 to count - 1, each equally likely; from the lane of floats."""
        number, lane = checks.whole(at_least=1, count=count), self._lane()
        need(number < 1 << 32, "at most 2^32", of="count", got=count, fix="Draw from fewer.")
        return 0 if number == 1 else exact.below(lambda: int(_fast().half(*lane)), number)

    def trials(self, rate: float) -> int:
        """How many trials until one succeeds, each with probability exactly `rate`; from the lane of
        floats."""
        rate, lane = checks.fraction(rate=rate, low_open=True), self._lane()
        more, fast = self._digits().more, _fast()
        tape = exact.Tape(lambda: int(fast.half(*lane)), lambda: int(fast.word(*lane)), more)
        return exact.gap(tape, rate) + 1

    def __repr__(self) -> str:
        return f"<Stream {'/'.join(map(str, self.path))}, {SECURE if self.is_secure else SEEDED}>"

    def __reduce__(self) -> NoReturn:
        refuse_copy("a Stream")

    def _check(self) -> None:
        if self._pid is not None and os.getpid() != self._pid:
            refuse_fork()

    def _ready(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        self._check()
        if self._state is None or self._buffer is None:
            self._state, self._buffer = _fast().new_state(self._key, _MAIN)
        return self._state, self._buffer

    def _lane(self) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
        self._check()
        if self._apart is None:
            self._apart = _fast().new_state(self._key, _FLOATS)
        return self._apart  # type: ignore[no-any-return]

    def _digits(self) -> exact.Tape:
        """The words as Python integers, for the draws that the fast path leaves undecided."""
        if self._tape is None:
            fast, main = _fast(), self._ready()
            more = fast.new_state(self._key, _EXTENSION)
            self._tape = exact.Tape(
                lambda: int(fast.half(*main)),
                lambda: int(fast.word(*main)),
                lambda: int(fast.word(*more)),
            )
        return self._tape


def symmetric_gaussians(
    stream: Stream, size: float | NDArray[np.float64], shape: tuple[int, ...]
) -> NDArray[np.int64]:
    """Symmetric matrices of noise: standard deviation s on the diagonal and s / sqrt(2) beside it.

    The L2 norm of a matrix counts what is beside the diagonal twice: with s / sqrt(2) there, noise
    of the whole matrix is s in every direction (docs/theory/sensitivities.md, Gram matrices).
    """
    a, b = np.triu_indices(shape[-1])
    each = np.broadcast_to(np.asarray(size, np.float64), shape)[..., 0, 0]
    scales = each[..., np.newaxis] * np.where(a == b, 1.0, math.sqrt(0.5))
    noise = np.zeros(shape, np.int64)
    noise[..., a, b] = stream.rounded_gaussian(scales.ravel()).reshape(*each.shape, -1)
    noise[..., b, a] = noise[..., a, b]
    return noise


class Gaussians:
    """`stream.rounded_gaussian(scale, size)` of a stream for each scale and size, to the bit and one
    after the other, in one compiled pass: checked and laid out once for many draws.

    >>> one, other = (NoiseSource.seeded(7).stream("noise", n) for n in (1, 2))
    >>> Gaussians([10.0, 1e6], [4, 2]).draw([one, other])
    array([    -12,      -2,     -10,     -15, -219748, -268257])
    """

    __slots__ = ("_bits", "_scales", "_starts", "sizes")

    def __init__(self, scales: Sequence[float], sizes: Sequence[int]) -> None:
        self._scales = np.array([_scale(scale=scale) for scale in scales], dtype=np.float64)
        self._bits = self._scales.view(np.uint64)
        self.sizes = tuple(checks.whole(size=size) for size in sizes)
        self._starts = np.array([0, *itertools.accumulate(self.sizes)])
        got = f"{len(scales)} scales, {len(sizes)} sizes"
        fix = "Pass one scale and one size a stream."
        need(len(scales) == len(sizes), "a size a scale", of="sizes", got=got, fix=fix)

    def draw(self, streams: Sequence[Stream]) -> NDArray[np.int64]:
        """One run of draws after the other; each stream must be a new one."""
        for stream in streams:
            stream._check()
        used = any(stream._state is not None for stream in streams)
        got = f"{len(streams)} streams for {len(self.sizes)} scales"
        got += ", one already drawn from" if used else ""
        right = not used and len(set(map(id, streams))) == len(streams) == len(self.sizes)
        fix = "Pass a stream a scale, each once, and none already drawn from."
        need(right, "a new stream a scale", of="streams", got=got, fix=fix)
        out = np.empty(sum(self.sizes), dtype=np.int64)
        reached = np.zeros(len(streams), dtype=np.int64)
        fast = _fast()
        blur = np.uint64(max((stream._blur for stream in streams), default=0))
        states, buffers = fast.new_states(b"".join(stream._key for stream in streams), _MAIN)
        fast.rounded_gaussians(states, buffers, self._bits, self._starts, out, reached, blur)
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
    number = checks.positive(remedy="", allow_inf=False, **named)
    need(number <= LARGEST_SCALE, "at most 2^50", of=name, got=value, fix="Use a coarser grid.")
    return number


def _scales(
    scale: float | NDArray[np.float64], size: int | None
) -> tuple[NDArray[np.float64], int]:
    if not isinstance(scale, np.ndarray):
        fix = "Pass size, the number of coordinates."
        return np.array([_scale(scale=scale)]), checks.whole(size=size, remedy=fix)
    scales = np.ascontiguousarray(scale, dtype=np.float64)
    right = scales.ndim == 1 and (size is None or operator.index(size) == scales.size)
    words = f"a vector{'' if size is None else f' of {size} scales'}"
    fix, got = (
        "Pass one scale a coordinate, or one and a size.",
        f"an array of shape {scales.shape}",
    )
    need(right, words, of="scale", got=got, fix=fix)
    bad = scales[~((scales > 0.0) & (scales <= LARGEST_SCALE))].tolist()
    words, fix = "numbers above 0, at most 2^50", "Check the multipliers."
    need(not bad, words, of="scale", got=bad[:1], fix=fix)
    return scales, scales.size


def _scores(scores: ArrayLike) -> NDArray[np.float64] | NDArray[np.int64]:
    values = np.asarray(scores)
    good = values.ndim == 1 and values.size > 0 and values.dtype in (np.float64, np.int64)
    words, fix = "a vector of finite float64 or int64", "Clip the scores; give at least one."
    got = f"an array of shape {values.shape} and type {values.dtype}"  # never a score
    need(good and np.isfinite(values).all(), words, of="scores", got=got, fix=fix)
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
    position = _fast().POSITION
    state[position] += state[position] & np.uint64(1)


def refuse_fork() -> NoReturn:
    """Of a source or stream in a forked child."""
    words, got = "the process that made it", "a forked child, which would repeat the parent's noise"
    fix = "Make a new NoiseSource.secure() in the child."
    raise PrivacyError.expected(words, of="noise source", got=got, remedy=fix)


def refuse_copy(what: str) -> NoReturn:
    """Of a secure source or stream that is copied or pickled."""
    fix = "A copied key gives the same noise twice: make a new source where it is needed."
    got = f"a copy or pickle of {what}"
    raise PrivacyError.expected("one owner", of="noise source", got=got, remedy=fix)
