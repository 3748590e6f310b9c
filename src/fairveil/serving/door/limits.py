"""How often who may ask, and how many requests are worked on at once."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from .refusals import TOO_MANY, Refusal

MOST_KNOWN = 4096


class Rates:
    """So many requests a minute for each name, in bursts of at most as many as ten seconds
    allow."""

    def __init__(self, a_minute: int) -> None:
        self._rate, self._most = a_minute / 60.0, max(1.0, a_minute / 6.0)
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def require(self, name: str) -> None:
        """Count one request, or refuse it."""
        now = time.monotonic()
        with self._lock:
            left, at = self._left.get(name, (self._most, now))
            left = min(self._most, left + (now - at) * self._rate)
            if left < 1.0:
                raise Refusal(*TOO_MANY)
            if len(self._left) >= MOST_KNOWN:
                self._left.clear()
            self._left[name] = (left - 1.0, now)


class AtOnce:
    """So many requests of one name that are answered at once, so that no name takes all workers. Of
    one thread: the loop's."""

    def __init__(self, most: int) -> None:
        self._most, self._inside = most, Counter[str]()

    @contextmanager
    def one(self, name: str | None) -> Iterator[None]:
        """Count one while it lasts, or refuse it; None: of nobody, which nothing counts."""
        if name is None:
            yield
            return
        if self._inside[name] >= self._most:
            raise Refusal(*TOO_MANY)
        self._inside[name] += 1
        try:
            yield
        finally:
            self._inside[name] -= 1
            self._inside += Counter()  # drops who has none
