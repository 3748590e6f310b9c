"""What is counted of the service itself, in Prometheus' text, and its log: never a value of a row,
an answer or a token.

Guarantees (tests/serving/test_serving_service.py):
1. A line of the log holds a time, what was asked, the status, how long it took, and the ids of
   token and run; no body. Where the holder's own rows or disk failed, it says how.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from typing import Any, TextIO

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Measures:
    """Counts of requests and refusals, and latencies."""

    def __init__(self, log: TextIO | None = sys.stderr) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._slower: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._began = time.time()

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
        with self._lock:
            self._requests[act, status] += 1
            self._seconds[act] += seconds  # type: ignore[assignment]  # a counter takes any number
            for bucket in BUCKETS:
                self._slower[act, bucket] += seconds <= bucket
        if self._log is not None:
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

    def text(self, gauges: dict[str, Any]) -> str:
        """In Prometheus' text format."""
        out = ["# TYPE fairveil_requests_total counter"]
        with self._lock:
            for (act, status), count in sorted(self._requests.items()):
                out.append(f'fairveil_requests_total{{act="{act}",status="{status}"}} {count}')
            out.append("# TYPE fairveil_request_seconds histogram")
            for act in sorted(self._seconds):
                total = sum(count for (name, _), count in self._requests.items() if name == act)
                for bucket in BUCKETS:
                    out.append(
                        f'fairveil_request_seconds_bucket{{act="{act}",le="{bucket:g}"}} '
                        f"{self._slower[act, bucket]}"
                    )
                out.append(f'fairveil_request_seconds_bucket{{act="{act}",le="+Inf"}} {total}')
                out.append(f'fairveil_request_seconds_sum{{act="{act}"}} {self._seconds[act]:.6f}')
                out.append(f'fairveil_request_seconds_count{{act="{act}"}} {total}')
        for name, value in gauges.items():
            out += [f"# TYPE fairveil_{name} gauge", f"fairveil_{name} {value}"]
        out += [
            "# TYPE fairveil_up_seconds gauge",
            f"fairveil_up_seconds {time.time() - self._began:.0f}",
        ]
        return "\n".join(out) + "\n"
