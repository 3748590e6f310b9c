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
returned, and displays of notebooks.
"""

from __future__ import annotations

import contextvars
import ctypes
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
        self._told, self._begun = list[Troubles](), dict[str, str]()
        self._undo = list[Callable[[], object]]()  # each can be done again
        self._lock = threading.RLock()

    def enter(self, troubles: Troubles) -> None:
        """One more piece of user code."""
        with self._lock:
            self._end_lines()
            self._told.append(troubles)
            if len(self._told) == 1:
                self._back()  # what an interrupt left
                self._lead_away()

    def leave(self, troubles: Troubles) -> None:
        """It has ended."""
        with self._lock:
            self._end_lines()
            if len(self._told) == 1:
                self._back()
            with suppress(ValueError):  # interrupted before it was there
                self._told.remove(troubles)

    def say(self, what: str, text: object) -> None:
        """A sentence, and how it was said."""
        if self._told and str(text).strip():
            self._told[-1].append(f"{what}: {text}")

    def write(self, what: str, text: str) -> int:
        """A part of a line, or lines."""
        *lines, rest = (self._begun.get(what, "") + text).split("\n")
        for line in lines:
            self.say(what, line)
        self._begun[what] = rest[: LONGEST + 1]
        return len(text)

    def _end_lines(self) -> None:
        for what in list(self._begun):
            self.say(what, self._begun.pop(what))

    def _back(self) -> None:
        while self._undo:
            self._undo[-1]()
            self._undo.pop()

    def _put(self, owner: Any, name: str, value: object) -> None:
        """`value` in the place of an attribute, which was the owner's own or its class's."""
        own, there = getattr(owner, name), name in vars(owner)

        def back() -> None:
            if vars(owner).get(name) is value:  # else somebody has put another there since
                setattr(owner, name, own) if there else delattr(owner, name)

        self._undo.append(back)
        setattr(owner, name, value)

    def _lead_away(self) -> None:
        self._descriptors()
        for what, name in (("printed", "stdout"), ("written to standard error", "stderr")):
            for attribute in (name, f"__{name}__"):
                stream = getattr(sys, attribute)
                held, writer = getattr(stream, "__dict__", None), _Writer(self, what)
                if isinstance(held, dict):  # also for who holds the stream itself
                    if not isinstance(held.get("write"), _Writer):
                        self._put(stream, "write", writer)
                elif stream is not None:
                    self._put(sys, attribute, writer)
        hooks: tuple[tuple[Any, str, Callable[[Any], None]], ...] = (
            (warnings, "_showwarnmsg", lambda it: self.say(it.category.__name__, it.message)),
            (logging.Logger, "handle", self._logged),
            (sys, "unraisablehook", lambda it: self.say(it.exc_type.__name__, it.exc_value)),
            (threading, "excepthook", lambda it: self.say(it.exc_type.__name__, it.exc_value)),
        )
        for owner, name, say in hooks:
            self._put(owner, name, lambda *args, say=say: say(args[-1]))
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
        self.say("logged", f"{record.levelname} {record.name}: {text}")

    def _descriptors(self) -> None:
        """Descriptors 1 and 2, where compiled code and other programs write, lead into a file that
        has no name. One that is closed stays closed."""
        _flush()
        memory = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  # closed when it was read
        kept = {at: os.dup(at) for at in (1, 2) if _is_open(at)}

        def back() -> None:
            _flush()
            while kept:
                at, was = next(iter(kept.items()))
                os.dup2(was, at)
                os.close(was)
                kept.pop(at)
            if not memory.closed:
                memory.seek(0)
                for line in memory.read(MOST_BYTES).decode("utf-8", "replace").splitlines():
                    self.say("written to descriptor 1 or 2", line)
                memory.close()

        self._undo.append(back)
        for at in kept:
            os.dup2(memory.fileno(), at)


class _Writer:
    """In the place of a stream, or of its `write`."""

    def __init__(self, away: _Away, what: str) -> None:
        self._away, self._what = away, what

    def __call__(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        return self._away.write(self._what, text)

    write = __call__

    def flush(self) -> None:
        """Nothing is kept."""


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
