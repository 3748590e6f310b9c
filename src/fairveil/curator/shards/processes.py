"""Shards in worker processes of this machine. A worker that is killed, or hangs, is replaced in the
middle of a round."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ... import _checks
from ...errors import PrivacyError
from ..rows.sharded import Recipe
from .asking import Asking
from .serving import VERSION, read, version, write

COMMAND = "from fairveil.curator.shards.serving import serve; serve()"
PATIENCE = 600.0


class ShardsInProcesses(Asking):
    """Worker processes: `workers` of them, with shards dealt out in turn. `threads`: of each."""

    def __init__(
        self,
        recipes: Sequence[Recipe],
        workers: int = 2,
        *,
        threads: int | None = 1,
        patience: float = PATIENCE,
    ) -> None:
        count = min(_checks.whole(at_least=1, workers=workers), max(1, len(recipes)))
        self._workers: list[_Process | None] = [None] * count
        self._threads = threads
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="fairveil-shards")
        self._end = weakref.finalize(self, _end, self._workers, self._pool)
        try:
            super().__init__(recipes, _checks.positive(patience=patience))
        except BaseException:
            self.close()
            raise

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of the workers that run now."""
        return tuple(worker.popen.pid for worker in self._workers if worker is not None)

    def close(self) -> None:
        """End the workers."""
        self._end()

    def _asked(self, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        of_worker: dict[int, dict[int, tuple[str, Any]]] = {}
        for number, one in wanted.items():
            of_worker.setdefault(number % len(self._workers), {})[number] = one
        if not self._end.alive:
            remedy = "Fit before the source is closed."
            raise PrivacyError.expected("workers", of="shards", got="closed ones", remedy=remedy)
        futures = {
            place: self._pool.submit(self._exchange, place, mine)
            for place, mine in of_worker.items()
        }
        answers: dict[int, Any] = {}
        for place, future in futures.items():
            answers |= self._within(place, future)
        return answers

    def _within(self, place: int, future: Future[dict[int, Any]]) -> dict[int, Any]:
        """What a worker answers in time; nothing from one that was lost, which is then no more."""
        try:
            return future.result(self.patience)
        # The pipe broke, or patience is over: the worker is lost, and its shards go to another.
        except (OSError, EOFError, TimeoutError):
            pass
        except BaseException:
            self._lose(place)
            raise
        self._lose(place)
        future.exception()  # it ends, now that the worker has
        return {}

    def _lose(self, place: int) -> None:
        worker, self._workers[place] = self._workers[place], None
        if worker is not None:
            worker.end()

    def _exchange(self, place: int, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        worker = self._workers[place]
        if worker is None:
            worker = self._workers[place] = _Process(self._threads)
            self._require_version(*worker.exchanged([(0, VERSION, None)]))
        before: list[tuple[int, str, Any]] = []
        for number, (what, _) in wanted.items():
            # A new process holds nothing: it opens the shard and is told all that the first one was
            # told.
            if number not in worker.held and what != "open":
                before += [
                    (number, name, self._told(number, name, value))
                    for name, value in self._remade(number)
                ]
        for (number, name, _), answer in zip(
            before, worker.exchanged(before) if before else [], strict=True
        ):
            if name == "open":
                self._require_same(number, answer)
        messages = [
            (number, what, self._told(number, what, value))
            for number, (what, value) in wanted.items()
        ]
        answers = worker.exchanged(messages)
        worker.held |= set(wanted)
        return dict(zip(wanted, answers, strict=True))

    def _told(self, number: int, what: str, value: object) -> Any:
        return self.recipes[number] if what == "open" else value

    def _require_version(self, found: str) -> None:
        if found != version():
            remedy = "Install one version everywhere."
            raise PrivacyError.expected(version(), of="a worker", got=found, remedy=remedy)


class _Process:
    """One worker process, and the shards that it holds."""

    def __init__(self, threads: int | None) -> None:
        self.held: set[int] = set()
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)
        }
        self.popen = subprocess.Popen(
            [sys.executable, "-c", COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        assert self.popen.stdin is not None
        write(self.popen.stdin, threads)  # type: ignore[arg-type]  # a pipe is written like a file

    def exchanged(self, messages: list[tuple[int, str, Any]]) -> list[Any]:
        """The answers to some messages."""
        assert self.popen.stdin is not None
        assert self.popen.stdout is not None
        write(self.popen.stdin, messages)  # type: ignore[arg-type]
        return list(read(self.popen.stdout))  # type: ignore[arg-type]

    def end(self) -> None:
        """Kill it: it holds nothing that is not elsewhere."""
        # Not asked to end: it may hang in the middle of a pass.
        self.popen.kill()
        self.popen.wait()
        for pipe in (self.popen.stdin, self.popen.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not written any more
                    pipe.close()


def _end(workers: list[_Process | None], pool: ThreadPoolExecutor) -> None:
    for place, worker in enumerate(workers):
        workers[place] = None
        if worker is not None:
            worker.end()
    pool.shutdown(wait=False)
