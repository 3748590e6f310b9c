"""NumPy generators over a secure key that cannot be copied, pickled or looked into, and that a
forked child cannot continue with.

Guarantees (tests/privacy/test_noise_guarded.py), which are guarantee 3 of `noise` for NumPy's
floats:
1. Copying and pickling a generator, or its bit generator, is an error, and so is everything that
   shows, sets or spawns a state.
2. After a fork every use in the child is an error. What reaches the bits by another way there (a
   method that was bound before, another `Generator` around the same bits) draws under a fresh key:
   nothing that the parent draws.
"""

from __future__ import annotations

import os
import secrets
import weakref
from typing import Any, NoReturn

import numpy as np
from randomgen import ChaCha

from ...errors import PrivacyError
from .refusals import refuse_copy, refuse_fork

ROUNDS = 20
NEEDED = frozenset(
    ("capsule", "lock", "random_raw", "__class__", "__dict__", "__doc__", "__module__")
)
"""What a `Generator` reads of its bits, and what everybody may."""
COPIES = ("__reduce__", "__reduce_ex__", "__getstate__", "__copy__", "__deepcopy__")


class GuardedBits(ChaCha):  # type: ignore[misc]  # randomgen has no types
    """ChaCha20 whose state stays inside."""

    _pid: int | None = None

    def __getattribute__(self, name: str) -> Any:
        pid = object.__getattribute__(self, "_pid")
        if pid is not None:  # made, and returned
            _refuse(name, pid)
            if name not in NEEDED:
                _keep_out(name)
        return super().__getattribute__(name)

    def __setattr__(self, name: str, value: object) -> None:
        _keep_out(name)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        refuse_copy("the generator of a secure stream")

    def __reduce__(self) -> NoReturn:
        refuse_copy("the generator of a secure stream")


class GuardedGenerator(np.random.Generator):
    """NumPy's generator over guarded bits."""

    _pid: int | None = None

    def __getattribute__(self, name: str) -> Any:
        pid = object.__getattribute__(self, "_pid")
        if pid is not None:
            _refuse(name, pid)
        return super().__getattribute__(name)


def guarded(key: bytes, counter: int, pid: int) -> np.random.Generator:
    """The generator over this key from this counter on, for the process of this number alone."""
    bits = GuardedBits(key=int.from_bytes(key, "little"), counter=counter, rounds=ROUNDS)
    generator = GuardedGenerator(bits)
    object.__setattr__(bits, "_pid", pid)
    object.__setattr__(generator, "_pid", pid)
    _HANDED_OUT.add(bits)
    return generator


def _keep_out(name: str) -> NoReturn:
    raise PrivacyError.expected(
        "random numbers",
        of="generator of a secure stream",
        got=f"bit_generator.{name}",
        remedy=(
            "Draw from it; its state is secret. For a state of your own use "
            "numpy.random.default_rng."
        ),
    )


def _refuse(name: str, pid: int) -> None:
    if os.getpid() != pid:
        refuse_fork()
    if name in COPIES:
        refuse_copy("the generator of a secure stream")


_HANDED_OUT: weakref.WeakSet[Any] = weakref.WeakSet()


def _renew() -> None:
    """In a forked child: other keys, for whatever still reaches the bits."""
    # A forked child has the parent's memory, its key too: noise drawn twice can be subtracted.
    for bits in list(_HANDED_OUT):
        fresh = ChaCha.state.__get__(ChaCha(key=secrets.randbits(256), rounds=ROUNDS))
        ChaCha.state.__set__(bits, fresh | {"bit_generator": GuardedBits.__name__})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
