"""User code beside rows is not heard before the run has ended: neither what it warns of, nor what
it prints or logs.

A plain `np.log` warns exactly when a private row holds a zero. So `quietly` runs a piece of user
code with the process's warnings, prints, log records and descriptors 1 and 2 led away, and tells
them to `Troubles`, as exceptions are told. What other threads say meanwhile is told with it.

Guarantees (tests/curator/test_curator_quiet.py):
1. Nothing of it reaches warnings, streams, loggers, hooks of exceptions, or descriptors 1 and 2, in
   whatever thread it speaks. `Troubles` has it: each sentence once, at most a hundred.
2. Filters of warnings and the caller's `np.seterr` change nothing: no warning is an error to it.
3. Afterwards all is as it was, also after an exception or an interrupt, and when nested.

Not covered: time, files, the network, other processes, threads that go on after the code has
returned, displays of notebooks, and streams without a descriptor that the code held before.
"""

from __future__ import annotations

import contextvars
import ctypes
import io
import logging
import os
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
MOST_SENTENCES, LONGEST, MOST_BYTES = 100, 1000, 1 << 16
"""Sentences that are kept, letters of each, and bytes that are read of descriptors."""
ALWAYS: Any = ("always", None, Warning, None, 0)
"""A filter that keeps no registry, so that no later warning is left out because of this one."""


class Troubles:
    """What user code said, and what went wrong in it: each sentence once, at most a hundred.
    Private: it may depend on one row."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def append(self, text: str) -> None:
        """One more."""
        if len(self._seen) < MOST_SENTENCES:
            self._seen[text if len(text) <= LONGEST else f"{text[:LONGEST]}..."] = None

    def __bool__(self) -> bool:
        return True  # an empty one is still the curator's own

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._seen))


def quietly(troubles: Troubles, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call user code. What it says is told to `troubles`; what it returns or raises is the caller's
    to look at."""

    def run() -> T:
        # NumPy's errors are told, as warnings: an exception could depend on one row
        np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
        if sys.version_info >= (3, 14) and sys.flags.context_aware_warnings:
            warnings.catch_warnings().__enter__()  # of this context alone
            warnings.simplefilter("always")
        return function(*args, **kwargs)

    try:
        _away.enter(troubles)
        # a context of its own, thrown away afterwards: what is set in it needs no undoing
        return contextvars.copy_context().run(run)
    finally:
        _away.leave(troubles)


class _Away:
    """What is changed in the process while user code runs: by the first piece, until the last. Of
    nested pieces the inner one hears."""

    def __init__(self) -> None:
        self._told, self._undo = list[Troubles](), list[Callable[[], object]]()
        self._file: io.FileIO | None = None  # without a name; all that is printed goes there
        self._lock = threading.RLock()

    def enter(self, troubles: Troubles) -> None:
        """One more piece of user code."""
        with self._lock:
            self._read()
            self._told.append(troubles)
            if len(self._told) == 1:
                self._back()  # what an interrupt left
                self._lead_away()

    def leave(self, troubles: Troubles) -> None:
        """It has ended."""
        with self._lock:
            self._read()
            if len(self._told) == 1:
                self._back()
            with suppress(ValueError):  # interrupted before it was there
                self._told.remove(troubles)

    def _say(self, what: str, text: object) -> None:
        if self._told and str(text).strip():
            self._told[-1].append(f"{what}: {text}")

    def _read(self) -> None:
        """Tell what was printed since the last look."""
        if self._file is not None:
            _flush()
            self._file.seek(0)
            found = self._file.read(MOST_BYTES).decode("utf-8", "replace")
            self._file.seek(0)
            self._file.truncate()
            for line in found.splitlines():
                self._say("printed", line)

    def _back(self) -> None:
        while self._undo:
            self._undo[-1]()  # each can be done again
            self._undo.pop()

    def _put(self, owner: Any, name: str, value: object) -> None:
        """`value` in the place of an attribute, unless somebody puts another there meanwhile."""
        own = getattr(owner, name)

        def back() -> None:
            if getattr(owner, name) is value:
                setattr(owner, name, own)

        self._undo.append(back)
        setattr(owner, name, value)

    def _lead_away(self) -> None:
        file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed by `back`
        kept = {at: os.dup(at) for at in (1, 2) if _is_open(at)}
        self._file = file

        def back() -> None:
            _flush()
            while kept:
                at, was = next(iter(kept.items()))
                os.dup2(was, at)
                os.close(was)
                kept.pop(at)
            self._file = None
            file.close()

        _flush()
        self._undo.append(back)
        for at in kept:  # where compiled code and other programs write; what is closed stays so
            os.dup2(file.fileno(), at)
        hooks: tuple[tuple[Any, str, Callable[[Any], None]], ...] = (
            (warnings, "_showwarnmsg", lambda it: self._say(it.category.__name__, it.message)),
            (logging.Logger, "handle", self._logged),
            (sys, "unraisablehook", lambda it: self._say(it.exc_type.__name__, it.exc_value)),
            (threading, "excepthook", lambda it: self._say(it.exc_type.__name__, it.exc_value)),
        )
        for owner, name, say in hooks:
            self._put(owner, name, lambda *args, say=say: say(args[-1]))
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is not None:
                self._put(sys, name, _Stream(file))
        filters: Any = warnings.filters
        self._undo.append(lambda: [one.remove(ALWAYS) for one in (filters,) if ALWAYS in one])
        filters.insert(0, ALWAYS)
        module: Any = warnings
        with getattr(module, "_lock", nullcontext()):  # registries are of the filters before
            names = ("_filters_mutated", "_filters_mutated_lock_held")
            next(getattr(module, name) for name in names if hasattr(module, name))()

    def _logged(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:  # a format and its arguments that do not fit
            text = str(record.msg)
        self._say("logged", f"{record.levelname} {record.name}: {text}")


class _Stream(io.TextIOBase):
    """In the place of a stream: the file, for as long as it is there."""

    encoding = "utf-8"

    def __init__(self, file: io.FileIO) -> None:
        self.buffer = file

    def fileno(self) -> int:
        return self.buffer.fileno()

    def write(self, text: str) -> int:
        data = text.encode("utf-8", "replace")
        with suppress(ValueError):  # a thread that went on
            self.buffer.write(data)
        return len(text)


def _is_open(descriptor: int) -> bool:
    with suppress(OSError):
        os.fstat(descriptor)
        return True
    return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        # closed, or its reader is gone: its owner will be told when she writes
        with suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).fflush(None)  # of C, where it can be found


_away = _Away()
