"""User code beside rows is not heard before the run has ended: neither what it warns of, nor what
it prints or logs.

A plain `np.log` warns exactly when a private row holds a zero. So `quietly` runs a piece of user
code with its warnings, prints, log records and writes to descriptors 1 and 2 kept apart, and tells
them to `Troubles`, as exceptions are told. Other threads of the process are heard as before: what
is changed for a while (see `_Window`) asks which thread speaks.

Guarantees (tests/curator/test_curator_quiet.py):
1. Nothing of it reaches warnings, `sys.stdout`, `sys.stderr`, loggers, hooks of exceptions, or
   descriptors 1 and 2, in the thread that runs it, in threads that it starts, and in threads of
   compiled code. `Troubles` has it: each sentence once, at most a hundred.
2. Filters of warnings and the caller's `np.seterr` change nothing: code runs under numpy's own, and
   no warning is an error to it, unless it asks for that itself. No registry of past warnings keeps
   what was warned of.
3. What other threads warn of, print and log goes where it always goes.
4. Afterwards all is as it was, also after an exception or an interrupt at any point, in a forked
   child, and when nested.

Not covered: time, files, the network, other processes that were running before, threads that go on
after the code has returned, and displays of notebooks. What other threads write to descriptors 1
and 2 past Python, meanwhile, is told with the rest.
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
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
MOST_SENTENCES = 100
LONGEST = 1000
"""Letters of a sentence that are kept."""
MOST_BYTES = 1 << 16
"""What is read of what was written to descriptors."""


class Troubles:
    """What user code said, and what went wrong in it: each sentence once, at most a hundred.
    Private: it may depend on one row."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def append(self, text: str) -> None:
        """One more."""
        if len(self._seen) < MOST_SENTENCES:
            self._seen[text if len(text) <= LONGEST else f"{text[:LONGEST]}..."] = None

    def tell(self, what: str, text: str) -> None:
        """A sentence, and how it was said."""
        if text.strip():
            self.append(f"{what}: {text}")

    def __bool__(self) -> bool:
        return True  # an empty one is still the curator's own

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._seen))


def quietly(troubles: Troubles, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Call user code. What it says is told to `troubles`; what it returns or raises is the caller's
    to look at."""
    code = _Code(troubles)
    try:
        try:
            # Inside of the try: an interrupt between the two would leave the window open for good.
            _window.enter(code)
            # A context of its own, thrown away afterwards: whatever is set in it needs no undoing.
            result: T = contextvars.copy_context().run(_as_code, code, function, *args, **kwargs)
            return result
        finally:
            _window.leave(code)
    except BaseException:
        _window.leave(code)  # it may have been interrupted; each of its steps can be done again
        raise


def _as_code(code: _Code, function: Callable[..., T], *args: object, **kwargs: object) -> T:
    _running.set(code)
    # So that NumPy's errors are told, as warnings, and none is raised: an exception could depend on
    # one row.
    np.seterr(divide="warn", over="warn", under="ignore", invalid="warn")
    if sys.version_info >= (3, 14) and sys.flags.context_aware_warnings:
        warnings.catch_warnings().__enter__()  # of this context alone
        warnings.simplefilter("always")
    return function(*args, **kwargs)


class _Code:
    """One piece of user code that runs, and who is told what it says."""

    def __init__(self, troubles: Troubles) -> None:
        self.troubles = troubles
        self._begun: dict[str, str] = {}

    def printed(self, where: str, text: str) -> None:
        """A part of a line, or lines."""
        *lines, rest = (self._begun.get(where, "") + text).split("\n")
        for line in lines:
            self.troubles.tell(where, line)
        self._begun[where] = rest[: LONGEST + 1]

    def end(self) -> None:
        """Lines that were not ended."""
        for where in list(self._begun):
            self.troubles.tell(where, self._begun.pop(where))


_running: contextvars.ContextVar[_Code | None] = contextvars.ContextVar(
    "fairveil user code", default=None
)
_started: weakref.WeakKeyDictionary[threading.Thread, _Code] = weakref.WeakKeyDictionary()


def _speaker() -> _Code | None:
    """The user code that this thread runs, or was started by; None where it is anybody else's."""
    code = _running.get()
    if code is None and _window.users:
        thread = threading.current_thread()
        code = _started.get(thread)
        if code is None and isinstance(thread, threading._DummyThread):
            # a thread of compiled code, torch's, say: whose it must be, else nobody is told
            one = len(_window.told) == 1
            code = next(iter(_window.users), None) if one else _Code(Troubles())
    return code


class _ByUserCode:
    """Stands in a filter where others have a pattern for the message: it fits whatever user code
    warns of, and no more. `pattern`: what scikit-learn writes into the filters of its worker
    threads in place of a compiled one: any message."""

    pattern = ""

    def match(self, text: str) -> bool:
        return _speaker() is not None


# "always" keeps no registry, so that no later warning is left out because of this one.
_FILTER: Any = ("always", _ByUserCode(), Warning, None, 0)


class _Window:
    """What is changed in the process while user code runs in any thread: opened by the first,
    closed by the last. What is put in the place of something passes on whatever is not user code's:
    another program may have kept it, to put it back later."""

    def __init__(self) -> None:
        self.users: dict[_Code, None] = {}
        self.told: dict[int, Troubles] = {}
        self.away: dict[int, int] = {}  # where descriptors lead otherwise
        # numbers that stay the same for good: another thread may be about to write there
        self._memory, self._spare = -1, dict[int, int]()
        self._undo: list[Callable[[], None]] = []  # each can be done again
        self._lock = threading.RLock()

    def enter(self, code: _Code) -> None:
        """One more piece of user code."""
        with self._lock:
            self.users[code] = None
            self.told[id(code.troubles)] = code.troubles
            if len(self.users) > 1:
                return
            self._close()  # what an interrupt left open
            self.told[id(code.troubles)] = code.troubles
            self._undo += [self.told.clear, self._lead_back]
            self._lead_away()
            for owner, name, make in (*_streams(), *_HOOKS):
                self._put(owner, name, make)
            filters: Any = warnings.filters
            self._undo.append(lambda: _take_out(filters))
            filters.insert(0, _FILTER)
            _look_again()

    def leave(self, code: _Code) -> None:
        """It has ended."""
        with self._lock:
            code.end()
            self.users.pop(code, None)
            if not self.users:
                self._close()

    def forked(self) -> None:
        """In a child: where its one thread runs user code, all stays; else nobody would ever end
        it, and the child must not write what the parent has kept of its rows."""
        self._lock = threading.RLock()
        if self.users and _speaker() is None:
            self.users.clear()
            self.told.clear()
            self._memory, memory = -1, self._memory
            self._close()
            for mine in (*self._spare.values(), memory):
                os.close(mine)
            self._spare.clear()

    def _close(self) -> None:
        while self._undo:
            self._undo[-1]()
            self._undo.pop()

    def _put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        own, ours = owner.__dict__.get(name), make(getattr(owner, name))

        def back() -> None:
            if owner.__dict__.get(name) is ours:  # else somebody has put another there since
                delattr(owner, name) if own is None else setattr(owner, name, own)

        self._undo.append(back)
        setattr(owner, name, ours)

    def _lead_away(self) -> None:
        """Descriptors 1 and 2, where compiled code and other programs write, lead into memory for a
        while. One that is closed stays closed."""
        _flush()
        for descriptor in (1, 2):
            with suppress(OSError):
                if self._memory < 0:
                    with tempfile.TemporaryFile(buffering=0) as file:
                        self._memory = os.dup(file.fileno())
                if descriptor not in self._spare:
                    self._spare[descriptor] = os.dup(self._memory)
                os.dup2(descriptor, self._spare[descriptor], inheritable=False)
                self.away[descriptor] = self._spare[descriptor]
                os.dup2(self._memory, descriptor)

    def _lead_back(self) -> None:
        """Lead them back, and let go of where they lead: whoever reads there may wait for its
        end."""
        _flush()
        for descriptor, kept in list(self.away.items()):
            os.dup2(kept, descriptor)
            self.away.pop(descriptor)
        if self._memory < 0:
            return
        for kept in self._spare.values():
            os.dup2(self._memory, kept, inheritable=False)
        os.lseek(self._memory, 0, os.SEEK_SET)
        written = os.read(self._memory, MOST_BYTES)
        # Compiled code has no name: where two pieces ran, nobody can say whose the words are.
        for troubles in self.told.values() if len(self.told) == 1 else ():
            for line in written.decode("utf-8", "replace").splitlines():
                troubles.tell("written to descriptor 1 or 2", line)
        os.lseek(self._memory, 0, os.SEEK_SET)
        os.ftruncate(self._memory, 0)

    def write(self, stream: Any, text: object) -> bool:
        """Write what another thread prints to where its descriptor leads otherwise; False where
        none is led away."""
        kept = self.away.get(_number(stream))
        if kept is None or not isinstance(text, str):
            return False
        lines = text if os.linesep == "\n" else text.replace("\n", os.linesep)
        left = memoryview(lines.encode(stream.encoding or "utf-8", stream.errors or "strict"))
        while left:
            left = left[os.write(kept, left) :]
        return True


def _number(stream: Any) -> int:
    """The descriptor of a stream, or -1."""
    try:
        return int(stream.fileno())
    except Exception:  # whatever stands in the place of a stream may have none
        return -1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if _number(stream) in (1, 2):
            # closed, or its reader is gone: its owner will be told when she writes
            with suppress(Exception):
                stream.flush()  # type: ignore[union-attr]
    for symbol in ("stdout", "stderr", "__stdoutp", "__stderrp"):  # of C, where they can be found
        with suppress(OSError, ValueError, TypeError):
            library = ctypes.CDLL(None)
            library.fflush(ctypes.c_void_p.in_dll(library, symbol))


def _take_out(filters: Any) -> None:
    """User code may put another list in place of this one; the filter is taken out of both."""
    current: Any = warnings.filters
    for kept in (filters, current):
        while _FILTER in kept:
            kept.remove(_FILTER)


def _look_again() -> None:
    """Registries of past warnings are of the filters before: else what somebody saw before would
    not be told."""
    module: Any = warnings
    if hasattr(module, "_filters_mutated"):
        module._filters_mutated()
        return
    with module._lock:  # Python 3.14
        module._filters_mutated_lock_held()


Place = tuple[Any, str, Callable[[Any], Any]]


def _streams() -> Iterator[Place]:
    """Where streams are written to, each stream once; whoever held one before holds it still."""
    seen: list[Any] = [None]
    for name, where in (("stdout", "printed"), ("stderr", "written to standard error")):
        for attribute in (name, f"__{name}__"):
            stream: Any = getattr(sys, attribute)
            if any(stream is one for one in seen):
                continue
            seen.append(stream)
            if isinstance(getattr(stream, "__dict__", None), dict):
                yield stream, "write", _writing(where, stream)
            else:  # it takes no attributes
                yield sys, attribute, _standing_in(where)


def _standing_in(where: str) -> Callable[[Any], Any]:
    def make(stream: Any) -> Any:
        """A stream, but for what is written to it."""

        class StandIn:
            write = staticmethod(_writing(where, stream)(stream.write))

            def __getattr__(self, name: str) -> Any:
                return getattr(stream, name)

        return StandIn()

    return make


def _writing(where: str, stream: Any) -> Callable[[Any], Any]:
    def make(write: Callable[[str], int]) -> Any:
        def written(text: Any) -> Any:
            code = _speaker()
            if code is None:
                return len(text) if _window.write(stream, text) else write(text)
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            code.printed(where, text)
            return len(text)

        return written

    return make


def _or_told(say: Callable[[Troubles, Any], None]) -> Callable[[Any], Any]:
    """A hook of one argument, the last, that is told instead where user code calls it."""

    def make(hook: Callable[..., object]) -> Any:
        def called(*args: object, **kwargs: object) -> Any:
            code = _speaker()
            if code is None:
                return hook(*args, **kwargs)
            return say(code.troubles, args[-1] if args else None)

        return called

    return make


def _warned(troubles: Troubles, warning: warnings.WarningMessage) -> None:
    troubles.tell(warning.category.__name__, str(warning.message))


def _logged(troubles: Troubles, record: logging.LogRecord) -> None:
    try:
        text = record.getMessage()
    except Exception:  # a format and its arguments that do not fit
        text = str(record.msg)
    troubles.tell("logged", f"{record.levelname} {record.name}: {text}")


def _raised(troubles: Troubles, args: threading.ExceptHookArgs) -> None:
    troubles.tell(args.exc_type.__name__, str(args.exc_value))


def _starting(start: Callable[..., None]) -> Any:
    def started(thread: threading.Thread, *args: object, **kwargs: object) -> Any:
        code = _speaker()
        if code is not None:
            _started[thread] = code
        return start(thread, *args, **kwargs)

    return started


_HOOKS: tuple[Place, ...] = (
    (warnings, "_showwarnmsg", _or_told(_warned)),
    (logging.Logger, "handle", _or_told(_logged)),
    (sys, "unraisablehook", _or_told(_raised)),
    (threading, "excepthook", _or_told(_raised)),
    (threading.Thread, "start", _starting),
)
_window = _Window()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _window.forked())
