"""Connections, one a process and thread, which forks of the process do not tear.

A forked child has copies of its parent's connections. It must not use them, nor close them: a server would take the child's
goodbye for the parent's. With SQLite even a connection of the child's own is in danger: the copied library takes the parent's
locks on the file for its own, locks nothing, and a commit of the child may be lost when the parent leaves. So the idle
connections are closed just before a fork (the next use opens them again) and nobody begins to use one until it is over. Where
one was in use and could not be waited for, the child is refused its file.

Guarantees (tests/privacy/ledger/test_ledger_forks.py):
1. A child never uses or closes a connection of its parent, and never shares the parent's locks on a file.
2. Connections of threads that ended are closed when the next one is opened, all others at the end of the process.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

from ...errors import LedgerError, complaint

FORK_PATIENCE = 10.0


class Closable(Protocol):
    """What can be let go of."""

    def close(self) -> None:
        """Let go of it."""


C = TypeVar("C", bound=Closable)


class _Held(Generic[C]):
    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.thread = threading.current_thread()
        self.uses = 0
        self.spoilt = False

    def close(self) -> None:
        if self.process == os.getpid():
            with suppress(Exception):  # it is given up: whatever it still says is of no use to anybody
                self.connection.close()


class _Gate:
    """Who uses connections now, and whether the process forks."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: Counter[int] = Counter()
        self.forking = 0

    @contextmanager
    def passed(self) -> Iterator[None]:
        """Inside, no other thread forks, unless it lost patience."""
        me, process = threading.get_ident(), os.getpid()
        with self.changed:
            self.changed.wait_for(lambda: not self.forking or self.inside[me] > 0)
            self.inside[me] += 1
        try:
            yield
        finally:
            if os.getpid() == process:
                with self.changed:
                    self.inside[me] -= 1
                    if not self.inside[me]:
                        del self.inside[me]
                    self.changed.notify_all()

    def others_inside(self) -> bool:
        """Whether any thread but this one is."""
        me = threading.get_ident()
        return any(count for thread, count in self.inside.items() if thread != me)


_gate = _Gate()
_pools: weakref.WeakSet[Connections[Closable]] = weakref.WeakSet()
_inherited_files: set[str] = set()


class Connections(Generic[C]):
    """Opens a connection where a thread has none that is `usable`. `file`: what SQLite locks, None for a server."""

    def __init__(self, connect: Callable[[], C], usable: Callable[[C], bool], file: str | None = None) -> None:
        self._connect = connect
        self._usable = usable
        self._file = file
        self._held: dict[int, _Held[C]] = {}
        weakref.finalize(self, _close_all, self._held)
        with _gate.changed:
            _pools.add(self)  # type: ignore[arg-type]

    @contextmanager
    def using(self) -> Iterator[C]:
        """This thread's connection; the same one for blocks inside each other."""
        with _gate.passed():
            held = self._mine()
            held.uses += 1
            try:
                yield held.connection
            finally:
                held.uses -= 1
                if held.spoilt and not held.uses:
                    self._let_go(held)

    def spoil(self) -> None:
        """This thread's connection is closed at the end of its use, and not used again."""
        held = self._held.get(threading.get_ident())
        if held is not None:
            held.spoilt = True

    def close(self) -> None:
        """Close what is idle now, and the others at the end of their use."""
        with _gate.changed:
            for held in list(self._held.values()):
                if held.process != os.getpid():
                    continue
                held.spoilt = True
                if not held.uses:
                    self._let_go(held)

    def _mine(self) -> _Held[C]:
        me = threading.get_ident()
        held = self._held.get(me)
        if held is not None and held.process == os.getpid():
            if held.uses or (not held.spoilt and self._usable(held.connection)):
                return held
            self._let_go(held)
        if self._file in _inherited_files:
            raise LedgerError(
                complaint(
                    expected="a process that was not forked while the ledger was being used",
                    of=self._file or "ledger",
                    got="a fork inside of a use",
                    remedy="Start processes outside of such blocks, or with the start method 'spawn'.",
                )
            )
        with _gate.changed:
            for other in list(self._held.values()):
                if not other.thread.is_alive():
                    self._let_go(other)
        held = self._held[me] = _Held(self._connect())
        return held

    def _let_go(self, held: _Held[C]) -> None:
        held.close()
        for thread, other in list(self._held.items()):
            if other is held:
                del self._held[thread]

    def before_fork(self) -> None:
        """Close what is idle."""
        for held in list(self._held.values()):
            if not held.uses:
                self._let_go(held)

    def in_child(self) -> None:
        """Keep for ever what is the parent's: closing it would harm the parent."""
        for held in self._held.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held.connection))
            if self._file is not None:
                _inherited_files.add(self._file)
        self._held.clear()


def _close_all(held: dict[int, _Held[C]]) -> None:
    for each in list(held.values()):
        if not each.uses:
            each.close()


def _before_fork() -> None:
    with _gate.changed:
        _gate.forking += 1
        _gate.changed.wait_for(lambda: not _gate.others_inside(), timeout=FORK_PATIENCE)
        for pool in list(_pools):
            pool.before_fork()


def _in_parent() -> None:
    with _gate.changed:
        _gate.forking -= 1
        _gate.changed.notify_all()


def _in_child() -> None:
    global _gate
    _gate = _Gate()  # the old one's lock may be a thread's that is not in this process
    for pool in list(_pools):
        pool.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
