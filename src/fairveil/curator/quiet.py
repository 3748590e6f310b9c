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
from functools import cache
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
            # Inside of the try: an interrupt between the two lines would leave the window open for
            # good.
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
            code = _window.only()  # a thread of compiled code, torch's, say
    return code


# -- what is changed for a while, each step of which can be done again ---------------------------


class _Place:
    """An attribute that is another for a while; what `make` gives must do no harm when it stays for
    good, because another program may have kept it, to put it back later."""

    def __init__(self, owner: object, name: str, make: Callable[[Any], Any]) -> None:
        self._owner, self._name, self._make = owner, name, make
        self._own: Any = None  # what the owner itself has there; else it is its class's
        self._ours: Any = None

    def begin(self) -> None:
        found = self._owner.__dict__.get(self._name)
        if found is not None and found is self._ours:
            return
        if self._ours is None or found is not self._own:
            self._own, self._ours = found, self._make(getattr(self._owner, self._name))
        setattr(self._owner, self._name, self._ours)

    def end(self) -> None:
        """Take it away, unless somebody else has put another in its place since."""
        if self._ours is None or self._owner.__dict__.get(self._name) is not self._ours:
            return
        if self._own is None:
            delattr(self._owner, self._name)
        else:
            setattr(self._owner, self._name, self._own)


class _Descriptors:
    """Descriptors 1 and 2, where compiled code and other programs write, led into memory. Where
    they lead otherwise is kept under numbers that stay the same for good: another thread may be
    about to write there."""

    def __init__(self) -> None:
        self._memory = -1
        self._kept: dict[int, int] = {}
        self._away: dict[int, int] = {}
        self.streams: tuple[Any, ...] = ()

    def begin(self) -> None:
        """Lead them away, after what was written before. One that is closed stays closed."""
        self._flush()
        for descriptor in (1, 2):
            with suppress(OSError):
                if self._memory < 0:
                    self._memory = _memory()
                if descriptor not in self._kept:
                    self._kept[descriptor] = os.dup(self._memory)
                if descriptor not in self._away:  # else a beginning was interrupted
                    os.dup2(descriptor, self._kept[descriptor], inheritable=False)
                    self._away[descriptor] = self._kept[descriptor]
                os.dup2(self._memory, descriptor)

    def write(self, descriptor: int, stream: object, text: object) -> bool:
        """Write what another thread prints to where the descriptor leads otherwise; False where it
        does not."""
        kept = self._away.get(descriptor)
        if kept is None or not isinstance(text, str):
            return False
        lines = text if os.linesep == "\n" else text.replace("\n", os.linesep)
        how = (getattr(stream, "encoding", None), getattr(stream, "errors", None))
        left = memoryview(lines.encode(how[0] or "utf-8", how[1] or "strict"))
        while left:
            left = left[os.write(kept, left) :]
        return True

    def end(self) -> None:
        """Lead them back."""
        if self._away:
            self._flush()
        for descriptor, kept in list(self._away.items()):
            os.dup2(kept, descriptor)
            self._away.pop(descriptor)

    def drained(self) -> str:
        """What was written, once; and let go of where the descriptors lead: whoever reads there may
        wait for its end."""
        if self._memory < 0:
            return ""
        for kept in self._kept.values():
            os.dup2(self._memory, kept, inheritable=False)
        if not os.fstat(self._memory).st_size:
            return ""
        os.lseek(self._memory, 0, os.SEEK_SET)
        found = os.read(self._memory, MOST_BYTES)
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
        for stream in self.streams:
            if _number(stream) in (1, 2):
                # closed, or its reader is gone: its owner will be told when she writes
                with suppress(Exception):
                    stream.flush()
        library, streams = _c_streams()
        for stream in streams:
            library.fflush(stream)


def _number(stream: Any) -> int:
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
def _c_streams() -> tuple[Any, list[ctypes.c_void_p]]:
    """The C library, and those of its streams that can be found."""
    found, library = list[ctypes.c_void_p](), None
    for symbol in ("stdout", "stderr", "__stdoutp", "__stderrp"):
        with suppress(OSError, ValueError, TypeError):
            library = ctypes.CDLL(None)
            found.append(ctypes.c_void_p.in_dll(library, symbol))
    return library, found


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
    closed by the last."""

    def __init__(self) -> None:
        self.users: dict[_Code, None] = {}
        self._lock = threading.RLock()
        self._is_open = False
        self._places: list[_Place] = []
        self._lists: list[list[Any]] = []
        self._told: list[Troubles] = []
        self._descriptors = _Descriptors()

    def enter(self, code: _Code) -> None:
        """One more piece of user code."""
        with self._lock:
            self.users[code] = None
            if not any(code.troubles is one for one in self._told):
                self._told.append(code.troubles)
            if not self._is_open:
                self._open()

    def leave(self, code: _Code) -> None:
        """It has ended."""
        with self._lock:
            code.end()
            self.users.pop(code, None)
            if not self.users:
                self._close()

    def only(self) -> _Code:
        """Whoever it must be, where there is no choice; else nobody is told."""
        codes = list(self.users)
        return codes[0] if len(self._told) == 1 and codes else _Code(Troubles())

    def forked(self) -> None:
        """In a child: its one thread goes on. Where that runs user code, all stays; else nobody
        would ever end it, and the child must not write what the parent has kept of its rows."""
        self._lock = threading.RLock()
        if self.users and _speaker() is not None:
            return
        self.users.clear()
        self._told.clear()
        self._descriptors.forget()
        self._close()

    def _open(self) -> None:
        if len(self.users) > 1:  # another's beginning was interrupted
            for place in self._places:
                place.end()
        streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        if not self._places or list(map(id, streams)) != list(map(id, self._descriptors.streams)):
            self._descriptors.streams = streams
            self._places = [*_streams(self._descriptors), *_HOOKS]
        self._descriptors.begin()
        for place in self._places:
            place.begin()
        filters: Any = warnings.filters
        # User code may put another list in place of this one; the filter has to be taken out of
        # both.
        self._lists.append(filters)
        filters.insert(0, _FILTER)
        _look_again()
        self._is_open = True

    def _close(self) -> None:
        self._descriptors.end()
        for place in reversed(self._places):
            place.end()
        current: Any = warnings.filters
        for kept in (current, *(one for one in self._lists if one is not current)):
            # An interrupted opening may have put it in twice.
            while _FILTER in kept:
                kept.remove(_FILTER)
        written = self._descriptors.drained()
        # Compiled code has no name: where two pieces ran, nobody can say whose the words are.
        if len(self._told) == 1:
            for line in written.splitlines():
                self._told[0].tell("written to descriptor 1 or 2", line)
        self._lists.clear()
        self._told.clear()
        self._is_open = False


def _look_again() -> None:
    """Registries of past warnings are of the filters before: else what somebody saw before would
    not be told."""
    module: Any = warnings
    if hasattr(module, "_filters_mutated"):
        module._filters_mutated()
        return
    with module._lock:  # Python 3.14
        module._filters_mutated_lock_held()


def _streams(descriptors: _Descriptors) -> Iterator[_Place]:
    """Where streams are written to, each stream once; whoever held one before holds it still."""
    seen: list[Any] = [None]
    for name, where in (("stdout", "printed"), ("stderr", "written to standard error")):
        for attribute in (name, f"__{name}__"):
            stream: Any = getattr(sys, attribute)
            if any(stream is one for one in seen):
                continue
            seen.append(stream)
            if isinstance(getattr(stream, "__dict__", None), dict):
                yield _Place(stream, "write", _writing(where, stream, descriptors))
            else:  # it takes no attributes
                yield _Place(sys, attribute, _StandIn(where, descriptors))


class _StandIn:
    """A stream, but for what is written to it; called with a stream it makes another for that."""

    def __init__(self, where: str, descriptors: _Descriptors, stream: Any = None) -> None:
        self._where, self._descriptors, self._stream = where, descriptors, stream
        if stream is not None:
            self.write = _writing(where, stream, descriptors)(stream.write)

    def __call__(self, stream: Any) -> _StandIn:
        return _StandIn(self._where, self._descriptors, stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _writing(where: str, stream: Any, descriptors: _Descriptors) -> Callable[[Any], Any]:
    descriptor = _number(stream)

    def make(write: Callable[[str], int]) -> Any:
        def written(text: Any) -> Any:
            code = _speaker()
            if code is None:
                return write(text) if not descriptors.write(descriptor, stream, text) else len(text)
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


_HOOKS = (
    _Place(warnings, "_showwarnmsg", _or_told(_warned)),
    _Place(logging.Logger, "handle", _or_told(_logged)),
    _Place(sys, "unraisablehook", _or_told(_raised)),
    _Place(threading, "excepthook", _or_told(_raised)),
    _Place(threading.Thread, "start", _starting),
)
_window = _Window()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _window.forked())
