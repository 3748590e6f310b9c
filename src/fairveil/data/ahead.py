"""Items made in another thread while the caller works on those before it.

A file is read so while its rows are coded. Guarantees (tests/data/test_data_ahead.py):
1. The items are those of the generator, in its order. At most `AHEAD` wait, beside the one in use
   and the one that is being made.
2. An error of the other thread is raised to the caller, where the next item would have come.
3. When the caller stops (an error, an interrupt, a loop that is left), so does the thread, and the
   generator is closed in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

AHEAD = 2  # items: neither side waits for a short hitch of the other

Item = TypeVar("Item")
Made = Callable[[], Iterator[Item]]


def ahead(make: Made[Item]) -> Iterator[Item]:
    """The items of the generator that `make()` gives, made in a thread of their own.

    >>> list(ahead(lambda: (n * n for n in range(4))))
    [0, 1, 4, 9]
    """
    line = _Line(make)
    thread = Thread(target=line.fill, name="fairveil-ahead", daemon=True)
    try:
        thread.start()
        yield from line.taken()
    finally:
        # Also where the caller stops early: a thread that waits for room would wait for ever.
        line.stop()
        if thread.ident is not None:  # an interrupt may come before it has begun
            thread.join()
    if line.error is not None:
        raise line.error


class _Line(Generic[Item]):
    """A short line of items between two threads."""

    def __init__(self, make: Made[Item]) -> None:
        self._make, self._items, self._changed = make, deque[Item](), Condition()
        self._ended = self._stopped = False
        self.error: BaseException | None = None

    def fill(self) -> None:
        """In the other thread: until there are no more items, one fails, or nobody wants more."""
        try:
            made: Any = self._make()
            with closing(made) as items:
                for item in items:
                    if not self._put(item):
                        break
        # Raised in the caller's thread, where somebody can catch it.
        except BaseException as error:  # whatever it is, it is the caller's to raise
            self.error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _put(self, item: Item) -> bool:
        """Whether more are wanted, once there is room."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or len(self._items) < AHEAD)
            self._items.append(item)
            self._changed.notify_all()
            return not self._stopped

    def taken(self) -> Iterator[Item]:
        """For the caller."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or self._items)
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
            del item  # not held while the caller waits for the next

    def stop(self) -> None:
        """No more are wanted."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
