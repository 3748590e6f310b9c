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
import logging
import operator
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeVar

import numpy as np

from .descriptors import Descriptors, number_of
from .places import Place, StandIn

T = TypeVar("T")
MOST_SENTENCES = 100
LONGEST = 1000  # letters of a sentence that are kept


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
            self.tell(where, line)
        self._begun[where] = rest[: LONGEST + 1]

    def tell(self, what: str, text: str) -> None:
        """A sentence."""
        if text.strip():
            self.troubles.append(f"{what}: {text}")

    def end(self) -> None:
        """Lines that were not ended."""
        for where in list(self._begun):
            self.tell(where, self._begun.pop(where))


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


class _ByUserCode:
    """Stands in a filter where others have a pattern for the message: it fits whatever user code
    warns of, and no more.

    `pattern`: what scikit-learn writes into the filters of its worker threads in place of a
    compiled one: any message.
    """

    pattern = ""

    def match(self, text: str) -> bool:
        """Whether the filter holds."""
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
        self._streams: tuple[Any, ...] = ()
        self._places: list[Place] = []
        self._lists: list[list[Any]] = []
        self._once: dict[Any, Any] = {}
        self._told: list[Troubles] = []
        self._descriptors = Descriptors()

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
        would ever end it."""
        self._lock = threading.RLock()
        if self.users and _speaker() is not None:
            return
        self.users.clear()
        self._told.clear()
        # The child must not write what the parent has kept of its rows.
        self._descriptors.forget()  # the memory is the parent's
        self._close()

    def _open(self) -> None:
        if len(self.users) > 1:  # another's beginning was interrupted
            for place in self._places:
                place.end()
        streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        if len(self._streams) != len(streams) or not all(map(operator.is_, streams, self._streams)):
            self._descriptors.flushing(streams)
            self._places = [*_places(self._descriptors), *_HOOKS]
            self._streams = streams
        self._descriptors.begin()
        for place in self._places:
            place.begin()
        self._once = dict(warnings.onceregistry)  # type: ignore[attr-defined]
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
        once: dict[Any, Any] = warnings.onceregistry  # type: ignore[attr-defined]
        if self._is_open and once:
            for key in once.keys() - self._once.keys():
                once.pop(key, None)
        written = self._descriptors.drained()
        # Compiled code has no name: where two pieces ran, nobody can say whose the words are.
        if written and len(self._told) == 1:
            for line in written.splitlines():
                _Code(self._told[0]).tell("written to descriptor 1 or 2", line)
        self._lists.clear()
        self._told.clear()
        self._is_open = False


_MUTATED: Callable[[], None] | None = getattr(warnings, "_filters_mutated", None)


def _look_again() -> None:
    """Registries of past warnings are of the filters before: else what somebody saw before would
    not be told."""
    if _MUTATED is not None:
        _MUTATED()
        return
    newer: Any = warnings  # Python 3.14
    with newer._lock:
        newer._filters_mutated_lock_held()


# Each of these makes what stands in a place for a while. It must do no harm when it stays there for
# good, because another program may have kept it, to put it back later.


def _places(descriptors: Descriptors) -> Iterator[Place]:
    """Where streams are written to, each stream once; whoever held one before holds it still."""
    seen: list[Any] = []
    for name, where in (("stdout", "printed"), ("stderr", "written to standard error")):
        for attribute in (name, f"__{name}__"):
            stream: Any = getattr(sys, attribute)
            if stream is None or any(stream is one for one in seen):
                continue
            seen.append(stream)
            make = _past(where, stream, descriptors)
            if isinstance(getattr(stream, "__dict__", None), dict):
                yield Place(stream, "write", make)
            else:  # it takes no attributes
                yield Place(sys, attribute, _standing_in(make))


def _standing_in(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda stream: StandIn(stream, make(stream.write))


def _past(where: str, stream: TextIO, descriptors: Descriptors) -> Callable[[Any], Any]:
    descriptor = number_of(stream)

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


def _or_told(say: Callable[[_Code, Any], None]) -> Callable[[Any], Any]:
    """A hook of one argument, the last, that is told instead where user code calls it."""

    def make(hook: Callable[..., object]) -> Any:
        def called(*args: object, **kwargs: object) -> Any:
            code = _speaker()
            return hook(*args, **kwargs) if code is None else say(code, args[-1] if args else None)

        return called

    return make


def _warned(code: _Code, warning: warnings.WarningMessage) -> None:
    code.tell(warning.category.__name__, str(warning.message))


def _logged(code: _Code, record: logging.LogRecord) -> None:
    try:
        text = record.getMessage()
    except Exception:  # a format and its arguments that do not fit
        text = str(record.msg)
    code.tell("logged", f"{record.levelname} {record.name}: {text}")


def _raised(code: _Code, args: threading.ExceptHookArgs) -> None:
    code.tell(args.exc_type.__name__, str(args.exc_value))


def _starting(start: Callable[..., None]) -> Any:
    def started(thread: threading.Thread, *args: object, **kwargs: object) -> Any:
        code = _speaker()
        if code is not None:
            _started[thread] = code
        return start(thread, *args, **kwargs)

    return started


_HOOKS = (
    Place(warnings, "_showwarnmsg", _or_told(_warned)),
    Place(logging.Logger, "handle", _or_told(_logged)),
    Place(sys, "unraisablehook", _or_told(_raised)),
    Place(threading, "excepthook", _or_told(_raised)),
    Place(threading.Thread, "start", _starting),
)
_window = _Window()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _window.forked())
