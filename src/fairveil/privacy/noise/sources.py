"""Where randomness comes from: one root key, and streams named by what they are for.

Every stream is ChaCha20 (20 rounds, RFC 8439) under a key of its own,

    stream key = BLAKE2b(encoding of the path, keyed with the root key),

so streams are independent, adding a release changes no other release's draws, and one (seed, path)
gives the same bits on every platform. The samplers are exact: see `samplers_exact` for the
distributions and `samplers_kernels` for the fast paths.

Guarantees
    1. A secure root is 256 bits from the operating system. A seeded source says
       `is_secure == False`, and its streams do too.
    2. A source returns each path once: a key never serves two releases.
    3. A secure source or stream is never copied: pickling and copying it, and drawing from it after
       a fork, is an error. So it is for the NumPy generator that a stream returns (`guarded`).
    4. Streams of different paths have different keys; the encoding of paths is injective.
    5. Each sampler returns what an ideal machine with infinitely many random bits would (no total
       variation is lost).

Timing is not covered by 5: how long a draw takes depends on the draw. See docs/noise.md.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable

from ... import _checks
from ...errors import InputError, PrivacyError
from .refusals import refuse_copy, refuse_fork
from .samplers import SECURE, SEEDED, Stream

STREAM_NAMES = ("sampling", "noise", "initialisation", "prediction", "units")


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
        number = _checks.whole(seed=seed)
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
            steps = (_checks.one_of(STREAM_NAMES, name=name), *(_step(step) for step in path))
        # `setdefault` is one step: of two threads that ask for one path, one is refused.
        mark = object()
        if self._given.setdefault(steps, mark) is not mark:
            raise PrivacyError.expected(
                "a path not used before",
                of="stream",
                got=steps,
                remedy=(
                    "Keep the stream that you got, or add the number of the release to the path."
                ),
            )
        digest = self._keyed.copy()
        digest.update(encode_path(steps))
        return Stream(digest.digest(), steps, self._pid)

    def __repr__(self) -> str:
        return f"<NoiseSource, {self.description}>"

    def __reduce__(self) -> tuple[Callable[..., NoiseSource], tuple[bytes]]:
        if self.is_secure:
            refuse_copy("a secure NoiseSource")
        return _revive, (self._root,)


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
    number = _checks.whole(path=step, remedy="Name a stream by words and whole numbers.")
    if number >= 1 << 64:
        raise InputError.expected(
            "numbers below 2^64", of="path", got=step, remedy="Number releases from 0."
        )
    return number


def _revive(root: bytes) -> NoiseSource:
    return NoiseSource(root, secure=False)
