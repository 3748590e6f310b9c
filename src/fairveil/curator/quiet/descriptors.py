"""Descriptors 1 and 2, where compiled code and other programs write, led into memory for a
while."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, partial
from typing import Any, TextIO

LARGEST = 1 << 16  # bytes that are read of what was written


class Descriptors:
    """Descriptors 1 and 2. Every step can be done again, so that an interrupt between two does no
    harm.

    Where they lead otherwise is kept under numbers that stay the same for good: another thread may
    be about to write there.
    """

    def __init__(self) -> None:
        self._memory = -1
        self._kept: dict[int, int] = {}
        self._away: dict[int, int] = {}
        self._buffered: list[Any] = []

    def flushing(self, streams: Iterable[Any]) -> None:
        """Which streams may hold back what goes to them."""
        self._buffered = [stream for stream in streams if number_of(stream) in (1, 2)]

    def begin(self) -> None:
        """Lead them into memory, after what was written before. A descriptor that is closed stays
        closed."""
        self._flush()
        for descriptor in (1, 2):
            try:
                if self._memory < 0:
                    self._memory = _memory()
                if descriptor not in self._kept:
                    self._kept[descriptor] = os.dup(self._memory)
                if descriptor not in self._away:  # else a beginning was interrupted
                    _lead(self._kept[descriptor], descriptor, inheritable=False)
                    self._away[descriptor] = self._kept[descriptor]
                _lead(descriptor, self._memory)
            except OSError:
                continue

    def write(self, descriptor: int, stream: object, text: object) -> bool:
        """Write what another thread prints to where the descriptor leads otherwise; False where it
        does."""
        kept = self._away.get(descriptor)
        if kept is None or not isinstance(text, str):
            return False
        lines = text if os.linesep == "\n" else text.replace("\n", os.linesep)
        left = memoryview(
            lines.encode(
                getattr(stream, "encoding", None) or "utf-8",
                getattr(stream, "errors", None) or "strict",
            )
        )
        while left:
            left = left[os.write(kept, left) :]
        return True

    def end(self) -> None:
        """Lead them back."""
        if not self._away:
            return
        self._flush()
        for descriptor, kept in list(self._away.items()):
            _lead(descriptor, kept)
            self._away.pop(descriptor)

    def drained(self) -> str:
        """What was written, once; and let go of where the descriptors lead: whoever reads there may
        wait for its end."""
        if self._memory < 0:
            return ""
        for kept in self._kept.values():
            _lead(kept, self._memory, inheritable=False)
        if not _size(self._memory):
            return ""
        os.lseek(self._memory, 0, os.SEEK_SET)
        found = os.read(self._memory, LARGEST)
        os.lseek(self._memory, 0, os.SEEK_SET)
        os.ftruncate(self._memory, 0)
        return found.decode("utf-8", "replace")

    def forget(self) -> None:
        """In a forked child: lead them back, and leave the memory to the parent."""
        self.end()
        for mine in (*self._kept.values(), *((self._memory,) if self._memory >= 0 else ())):
            os.close(mine)
        self._kept.clear()
        self._memory = -1

    def _flush(self) -> None:
        for stream in self._buffered:
            try:
                stream.flush()
            except Exception:
                # closed, or its reader is gone: its owner will be told when she writes
                continue
        for pending, flush in _c_streams():
            if pending():
                flush()


def number_of(stream: TextIO) -> int:
    """The descriptor of a stream, or -1."""
    try:
        return int(stream.fileno())
    except Exception:  # whatever stands in the place of a stream may have none
        return -1


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("fairveil")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


# Each of these is called a few times around every piece of user code. Python's own let another
# thread take over each time, which can cost more than all the rest; these never wait, so they need
# not.


def _lead(descriptor: int, other: int, *, inheritable: bool = True) -> None:
    """Let a descriptor lead where another leads."""
    dup3 = _held().get("dup3")
    if dup3 is None:
        os.dup2(other, descriptor, inheritable=inheritable)
    elif dup3(other, descriptor, 0 if inheritable else os.O_CLOEXEC) < 0:
        raise OSError(f"descriptor {descriptor} cannot lead where {other} leads")


def _size(file: int) -> int:
    lseek = _held().get("lseek")
    return os.fstat(file).st_size if lseek is None else int(lseek(file, 0, os.SEEK_END))


@cache
def _held() -> dict[str, Any]:
    """Functions of the C library that are called without letting go of the interpreter, where it
    has them."""
    found: dict[str, Any] = {}
    with suppress(OSError, TypeError, AttributeError):
        library = ctypes.PyDLL(None)
        for name, takes, gives in (
            ("dup3", (ctypes.c_int, ctypes.c_int, ctypes.c_int), ctypes.c_int),
            ("lseek", (ctypes.c_int, ctypes.c_long, ctypes.c_int), ctypes.c_long),
            ("__fpending", (ctypes.c_void_p,), ctypes.c_size_t),
        ):
            function = getattr(library, name)
            function.argtypes, function.restype = takes, gives
            found[name] = function
    return found


@cache
def _c_streams() -> tuple[tuple[Callable[[], object], Callable[[], object]], ...]:
    """Of both of the C library's streams, where they can be found: whether it holds something back,
    and how to flush it."""
    found: list[tuple[Callable[[], object], Callable[[], object]]] = []
    for symbol in ("stdout", "stderr", "__stdoutp", "__stderrp"):
        with suppress(OSError, ValueError, TypeError):
            library = ctypes.CDLL(None)
            stream = ctypes.c_void_p.in_dll(library, symbol)
            pending = _held().get("__fpending", bool)
            found.append((partial(pending, stream), partial(library.fflush, stream)))
    return tuple(found)
