"""Connections, one a process and thread, which forks of the process do not tear.

A forked child has copies of its parent's connections. It must not use them, nor close them: a
server would take the child's goodbye for the parent's. With SQLite even a connection of the child's
own is in danger: the copied library takes the parent's locks on the file for its own, locks
nothing, and a commit of the child may be lost when the parent leaves. So the idle connections are
closed just before a fork (the next use opens them again) and nobody begins to use one until it is
over. Where one was in use and could not be waited for, the child is refused its file.

Guarantees (tests/privacy/ledger/test_ledger_forks.py, test_ledger_interrupts.py):
1. A child never uses or closes a connection of its parent, and never shares the parent's locks on a
   file.
2. Connections of threads that ended are closed when the next one is opened, all others at the end
   of the process.
3. A use that was interrupted at any step is over: it keeps no connection from being closed, and no
   process from forking.
"""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

from ....errors import LedgerError

FORK_PATIENCE = 10.0


class Closable(Protocol):
    """What can be let go of."""

    def close(self) -> None:
        """Let go of it; a second time is no error."""


C = TypeVar("C", bound=Closable)
T = TypeVar("T")


class _Held(Generic[C]):
    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.process = os.getpid()
        self.thread = threading.current_thread()
        self.users: set[object] = set()
        self.spoilt = False

    def close(self) -> None:
        if self.process == os.getpid():
            # it is given up: whatever it still says is of no use to anybody
            with suppress(Exception):
                self.connection.close()


class _Gate:
    """Who uses connections now, and whether the process forks."""

    def __init__(self) -> None:
        # Entered as a lock, not as a condition, whose own `__enter__` may be interrupted when it
        # holds the lock.
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.inside: dict[object, int] = {}
        self.forking = 0

    def enter(self, use: object) -> None:
        """Inside, no other thread forks, unless it lost patience."""
        me = threading.get_ident()
        with self.lock:
            self.changed.wait_for(lambda: not self.forking or me in self.inside.values())
            self.inside[use] = me

    def leave(self, use: object) -> None:
        with self.lock:
            if self.inside.pop(use, None) is not None:
                self.changed.notify_all()

    def others_inside(self) -> bool:
        """Whether any thread but this one is."""
        me = threading.get_ident()
        return any(thread != me for thread in self.inside.values())


_gate = _Gate()
_pools: weakref.WeakSet[Connections[Closable]] = weakref.WeakSet()
_inherited_files: set[str] = set()


class Use(Generic[C]):
    """One use of this thread's connection. Left as often as one likes: only the first time
    counts."""

    def __init__(self, pool: Connections[C]) -> None:
        self._pool = pool
        self._held: _Held[C] | None = None
        self._process = os.getpid()

    def __enter__(self) -> C:
        try:
            _gate.enter(self)
            self._held = self._pool._taken(self)
            return self._held.connection
        except BaseException:
            self.leave()
            raise

    def __exit__(self, *_: object) -> None:
        self.leave()

    def spoil(self) -> None:
        """The connection is closed when it is left, and not used again."""
        if self._held is not None:
            self._held.spoilt = True

    def leave(self) -> None:
        """Give the connection back."""
        # It may have been interrupted before it knew which one it had.
        held = self._held or self._pool._held.get(threading.get_ident())
        if held is not None and self in held.users:
            held.users.discard(self)
            if held.spoilt and not held.users:
                self._pool._let_go(held)
        # in a child the gate is another one, which it never entered
        if os.getpid() == self._process:
            _gate.leave(self)


class Connections(Generic[C]):
    """Opens a connection where a thread has none that is `usable`. `file`: what SQLite locks, None
    for a server."""

    def __init__(
        self, connect: Callable[[], C], usable: Callable[[C], bool], file: str | None = None
    ) -> None:
        self._connect = connect
        self._usable = usable
        self._file = file
        self._held: dict[int, _Held[C]] = {}
        weakref.finalize(self, _close_all, self._held)
        with _gate.lock:
            _pools.add(self)  # type: ignore[arg-type]

    def using(self) -> Use[C]:
        """This thread's connection; the same one for blocks inside each other."""
        return Use(self)

    def lent(self, work: Callable[[C], T]) -> T:
        """What `work` answers, given this thread's connection."""
        use = self.using()
        try:
            with use as connection:
                return work(connection)
        finally:
            use.leave()  # where the end of the block was interrupted

    def close(self) -> None:
        """Close what is idle now, and the others at the end of their use."""
        with _gate.lock:
            for held in list(self._held.values()):
                if held.process != os.getpid():
                    continue
                held.spoilt = True
                if not held.users:
                    self._let_go(held)

    def _taken(self, use: Use[C]) -> _Held[C]:
        me = threading.get_ident()
        held = self._held.get(me)
        if held is not None and held.process == os.getpid():
            if held.users or (not held.spoilt and self._usable(held.connection)):
                with _gate.lock:  # another thread may close what is idle
                    if held.users or not held.spoilt:
                        held.users.add(use)
                        return held
            self._let_go(held)
        if self._file in _inherited_files:
            raise LedgerError.expected(
                "a process that was not forked while the ledger was being used",
                of=self._file or "ledger",
                got="a fork inside of a use",
                remedy=(
                    "Start processes outside of such blocks, or with the start method 'spawn'."
                ),
            )
        with _gate.lock:
            for other in list(self._held.values()):
                if not other.thread.is_alive():
                    self._let_go(other)
        held = _Held(self._connect())
        try:
            held.users.add(use)
            self._held[me] = held
            return held
        except BaseException:
            held.close()
            raise

    def _let_go(self, held: _Held[C]) -> None:
        """Closed first: one that is no longer kept here would not be closed before a fork."""
        held.spoilt = True
        held.close()
        for thread, other in list(self._held.items()):
            if other is held:
                self._held.pop(thread, None)

    def before_fork(self) -> None:
        """Close what is idle."""
        for held in list(self._held.values()):
            if not held.users:
                self._let_go(held)

    def in_child(self) -> None:
        """Keep for ever what is the parent's: closing it would harm the parent."""
        for held in self._held.values():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held.connection))
            if self._file is not None:
                _inherited_files.add(self._file)
        self._held.clear()


def _close_all(held: dict[int, _Held[Any]]) -> None:
    for each in list(held.values()):
        if not each.users:
            each.close()


def _before_fork() -> None:
    with _gate.lock:
        _gate.forking += 1
        _gate.changed.wait_for(lambda: not _gate.others_inside(), timeout=FORK_PATIENCE)
        for pool in list(_pools):
            pool.before_fork()


def _in_parent() -> None:
    with _gate.lock:
        _gate.forking -= 1
        _gate.changed.notify_all()


def _in_child() -> None:
    global _gate
    _gate = _Gate()  # the old one's lock may be a thread's that is not in this process
    for pool in list(_pools):
        pool.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
