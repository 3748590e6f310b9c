"""How often who may ask, and how many requests are worked on at once."""

from __future__ import annotations

import threading
import time

from .refusals import TOO_MANY, Refusal

MOST_KNOWN = 4096


class Rates:
    """So many requests a minute for each name, in bursts of at most as many as ten seconds allow."""

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
