"""Descriptors 1 and 2, where compiled code and other programs write, led into memory for a while."""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

LARGEST = 1 << 16  # bytes that are read of what was written


class Descriptors:
    """Descriptors 1 and 2. Every step can be done again, so that an interrupt between two does no harm.

    Where they lead otherwise is kept under numbers that stay the same for good: another thread may be about to write there.
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
        """Lead them into memory, after what was written before. A descriptor that is closed stays closed."""
        self._flush()
        for descriptor in (1, 2):
            try:
                if self._memory < 0:
                    self._memory = _memory()
                if descriptor not in self._kept:
                    self._kept[descriptor] = os.dup(self._memory)
                if descriptor not in self._away:  # else a beginning was interrupted
                    os.dup2(descriptor, self._kept[descriptor], inheritable=False)
                    self._away[descriptor] = self._kept[descriptor]
                os.dup2(self._memory, descriptor)
            except OSError:
                continue

    def write(self, descriptor: int, stream: Any, text: Any) -> bool:
        """Write what another thread prints to where the descriptor leads otherwise; False where it does."""
        kept = self._away.get(descriptor)
        if kept is None or not isinstance(text, str):
            return False
        lines = text if os.linesep == "\n" else text.replace("\n", os.linesep)
        left = memoryview(
            lines.encode(getattr(stream, "encoding", None) or "utf-8", getattr(stream, "errors", None) or "strict")
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
            os.dup2(kept, descriptor)
            self._away.pop(descriptor)

    def drained(self) -> str:
        """What was written, once; and let go of where the descriptors lead: whoever reads there may wait for its end."""
        if self._memory < 0:
            return ""
        for kept in self._kept.values():
            os.dup2(self._memory, kept, inheritable=False)
        if not os.fstat(self._memory).st_size:
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
            except Exception:  # closed, or its reader is gone: its owner will be told when she writes
                continue
        for flush in _c_streams():
            flush()


def number_of(stream: Any) -> int:
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


@cache
def _c_streams() -> tuple[Callable[[], object], ...]:
    """How to flush the C library's own buffers of both, where they can be found."""
    flushes = []
    for name in ("stdout", "stderr"):
        for symbol in (name, f"__{name}p"):
            try:
                library = ctypes.CDLL(None)
                stream = ctypes.c_void_p.in_dll(library, symbol)
            except (OSError, ValueError, TypeError):
                continue
            flush = library.fflush
            flushes.append(lambda flush=flush, stream=stream: flush(stream))
            break
    return tuple(flushes)
