"""The log of the service: never a value of a row, an answer or a token.

Guarantees (tests/serving/test_serving_service.py):
1. A line of the log holds a time, what was asked, the status, how long it took, and the ids of
   token and run; no body. Where the holder's own rows or disk failed, it says how.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TextIO


class RequestLog:
    """A line of JSON for each request; None: no lines."""

    def __init__(self, log: TextIO | None = sys.stderr) -> None:
        self._log = log

    def request(
        self,
        act: str,
        status: int,
        seconds: float,
        token: str = "",
        run: str = "",
        size: int = 0,
        detail: str = "",
    ) -> None:
        """One request was answered."""
        if self._log is None:
            return
        line = {
            "at": round(time.time(), 3),
            "act": act,
            "status": status,
            "ms": round(1e3 * seconds, 2),
            "bytes": size,
        }
        named = {"token": token, "run": run, "detail": detail}
        told = {**line, **{name: words for name, words in named.items() if words}}
        self._log.write(json.dumps(told) + "\n")
