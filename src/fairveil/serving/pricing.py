"""Plans are priced in processes of their own, with a limit of seconds: an analyst may ask for what
takes minutes, and nobody else waits for it.

    python -m fairveil.serving.pricing 5    # reads a plan a line, writes what is wrong with it

Guarantees (tests/serving/test_serving_limits.py):
1. A plan whose price takes more than `seconds` of a processor, or more memory than a price needs,
   is refused. Nothing is reserved or read for it, and no lock is held meanwhile.
2. A process sees public events alone: neither rows nor a place of the holder's.
"""

from __future__ import annotations

import json
import math
import os
import queue
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..core.cost import price
from ..core.events import Event, from_json_dict, to_json_dict
from ..errors import FairveilError, InputError
from .refusals import Refusal

try:
    import resource
except ImportError:  # a system without limits of processes: the clock alone ends them
    resource = None  # type: ignore[assignment]

MEMORY = 3 << 30
"""Bytes of addresses of one process."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Pricer:
    """So many processes that price plans, each one plan at a time. They are started at once, and
    again where one was ended."""

    def __init__(self, seconds: float, at_once: int = 2) -> None:
        self._seconds = seconds
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        for _ in range(at_once):
            self._idle.put(self._started())

    def require(self, plan: Event, deltas: Sequence[float], relation: str, until: float) -> None:
        """A refusal unless a plan can be priced at these deltas; `until`: by the monotonic clock."""
        told = {"plan": to_json_dict(plan), "deltas": list(deltas), "relation": relation}
        line = json.dumps(told).encode()
        try:
            worker = self._idle.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise Refusal("busy") from None
        raw, late = b"", False
        try:
            raw, late = _answer(worker, line + b"\n", until)
        finally:
            if not raw.endswith(b"\n"):  # it was ended, or is late
                _end(worker)
                worker = self._started()
            self._idle.put(worker)
        if not raw.endswith(b"\n"):
            raise Refusal("busy") if late else Refusal("too-costly", kind="InputError")
        if said := json.loads(raw):
            raise InputError(said)

    def close(self) -> None:
        """End the processes that are idle; the others end when their input does."""
        while not self._idle.empty():
            _end(self._idle.get())

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "fairveil.serving.pricing", str(self._seconds)]
        env = {**os.environ, **dict.fromkeys(THREADS, "1")}
        env["PYTHONPATH"] = os.pathsep.join(one for one in sys.path if one)
        pipe, quiet = subprocess.PIPE, subprocess.DEVNULL
        # Ctrl-C is the server's to hear
        how: dict[str, Any] = {"env": env, "start_new_session": True, "stderr": quiet}
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, **how)


def _answer(worker: subprocess.Popen[bytes], line: bytes, until: float) -> tuple[bytes, bool]:
    """Its answer, and whether none came in time; no end of line: there is no answer."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(line)
        worker.stdin.flush()
    except OSError:
        return b"", False
    ready, _, _ = select.select([worker.stdout], [], [], max(0.0, until - time.monotonic()))
    return (worker.stdout.readline(), False) if ready else (b"", True)


def _end(worker: subprocess.Popen[bytes]) -> None:
    """End a process now, and wait for it."""
    worker.kill()
    for pipe in (worker.stdin, worker.stdout):
        with suppress(OSError):  # what it did not read any more
            assert pipe is not None
            pipe.close()
    worker.wait()


def main(seconds: float) -> None:
    """Price the plans that come, each within its own seconds: the system ends the process else."""
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in sys.stdin.buffer:
        if resource is not None:
            most = math.ceil(time.process_time() + seconds)
            resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        job = json.loads(line)
        try:
            plan = from_json_dict(job["plan"])
            for delta in job["deltas"]:
                price(plan, delta, job["relation"])
            said = ""
        except FairveilError as error:
            said = str(error)
        sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(float(sys.argv[1]))
