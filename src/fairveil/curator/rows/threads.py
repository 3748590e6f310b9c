"""Runs of rows shared out among threads: a knob of speed alone, for sums and maxima that no order
can change."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from threading import Condition
from typing import Generic, TypeVar

import numpy as np

CORES = os.cpu_count() or 1
WORTH_A_THREAD = 1 << 14  # rows: below, starting another thread costs more than it saves
WORTH_A_PIECE = 1 << 12  # rows that a thread takes at a time, at least
SMALL, LARGE = 1 << 14, 1 << 16  # and at most

Part = TypeVar("Part")
Job = Callable[[Part], None]


def in_pieces(job: Callable[[int, int], Part], rows: int, threads: int | None = None) -> list[Part]:
    """job(a, b) over runs of rows a to b, which together are all of them; in no order.

    The caller works too, and takes what another thread is late to take: where the cores are busy
    with something else, that is all of it, and nothing waits.
    """
    workers = (
        max(1, min(CORES, rows // WORTH_A_THREAD))
        if threads is None
        else min(threads, max(1, rows))
    )
    if workers == 1:
        return [job(0, rows)]
    pieces = (
        workers
        if threads is not None
        else workers * max(1, min(4, rows // workers // WORTH_A_PIECE))
    )
    cuts = [rows * i // pieces for i in range(pieces + 1)]
    # next() on it is one step of the interpreter: no two threads get the same piece
    to_do = iter(range(pieces))

    def work() -> list[Part]:
        # threads do not take it over: no row may make arithmetic warn
        with np.errstate(all="ignore"):
            return [job(cuts[i], cuts[i + 1]) for i in to_do]

    pool = _pool(os.getpid())
    helpers = [pool.submit(work) for _ in range(workers - 1)]
    try:
        done = work()
    finally:
        begun = [helper for helper in helpers if not helper.cancel()]
    return done + [part for helper in begun for part in helper.result()]


def cut(
    rows: int, left: int, threads: int | None, *, small: bool = False
) -> Iterator[tuple[int, int]]:
    """Runs of a block's rows for `in_line`, smaller towards the end of the pass: no thread waits
    long for another then.

    `left`: how many rows the pass has from this block on, at most. `small`: for runs of which
    copies are made, which are to stay in a core's cache.
    """
    workers = CORES if threads is None else threads
    alone = workers == 1 or (threads is None and left < 2 * WORTH_A_THREAD)
    least = WORTH_A_PIECE if threads is None else min(WORTH_A_PIECE, -(-rows // workers))
    most, a = SMALL if small else rows if alone else LARGE, 0
    while a < rows:
        size = most if alone else max(least, min(most, (left - a) // (4 * workers)))
        b = a + size if rows - a > size + size // 2 else rows
        yield a, b
        a = b


def in_line(
    jobs: Iterator[tuple[int, Job[Part]]], begin: Callable[[], Part], threads: int | None = None
) -> list[Part]:
    """Jobs over runs of rows, shared out among threads; each adds to a `begin()` of its thread: all
    of these.

    Beside a job stands how many rows begin with it: those of its block, if it is the first there.
    The caller alone makes jobs, so one thread reads a source. It works too, and does what another
    thread is late to take: where the cores are busy with something else, that is all of it, and
    nothing waits.
    """
    own, line = begin(), _Line(begin, threads)
    # threads do not take it over: no row may make arithmetic warn
    with np.errstate(all="ignore"):
        for rows, job in jobs:
            if line.is_worth_more(rows):
                return [own, *line.done(job, jobs, own)]
            job(own)
    return [own]


class _Line(Generic[Part]):
    """Jobs that wait for threads: two for each."""

    def __init__(self, begin: Callable[[], Part], threads: int | None) -> None:
        self._begin, self._most, self._seen = begin, CORES if threads is None else threads, 0
        self._least = 1 if threads is None else threads
        self._workers = 1
        self._jobs, self._changed, self._ended = deque[Job[Part]](), Condition(), False

    def is_worth_more(self, rows: int) -> bool:
        """Whether so many rows more are worth another thread than the caller's."""
        self._seen += rows
        self._workers = min(self._most, max(self._least, self._seen // WORTH_A_THREAD))
        return self._workers > 1

    def done(
        self, first: Job[Part], jobs: Iterator[tuple[int, Job[Part]]], own: Part
    ) -> list[Part]:
        """What other threads added to, once all jobs are done; the caller adds to `own`."""
        pool, helpers = _pool(os.getpid()), list[Future[Part]]()
        self._jobs.append(first)
        try:
            while True:
                while len(self._jobs) < 2 * self._workers and not self._ended:
                    self._put(next(jobs, None))
                    if len(helpers) < self._workers - 1:
                        helpers.append(pool.submit(self._work))
                job = self._next()
                if job is None:
                    break
                job(own)
        except BaseException:
            self._jobs.clear()
            raise
        finally:
            self._put(None)
            begun = [helper for helper in helpers if not helper.cancel()]
        return [helper.result() for helper in begun]

    def _work(self) -> Part:
        """In another thread: until there are no more jobs."""
        own = self._begin()
        with np.errstate(all="ignore"):
            while (job := self._next(wait=True)) is not None:
                job(own)
        return own

    def _put(self, made: tuple[int, Job[Part]] | None) -> None:
        """One more; None: there are no more."""
        with self._changed:
            if made is None:
                self._ended = True
                self._changed.notify_all()
            else:
                self.is_worth_more(made[0])
                self._jobs.append(made[1])
                self._changed.notify()

    def _next(self, *, wait: bool = False) -> Job[Part] | None:
        """The job that has waited longest; None where there is none, or, to `wait`, no more."""
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: self._jobs or self._ended)
            return self._jobs.popleft() if self._jobs else None


def beside(job: Callable[[], Part]) -> Callable[[], Part]:
    """Start a job in another thread. The function that is returned waits for it, or does it where
    nobody has begun."""
    started = _pool(os.getpid()).submit(job)
    return lambda: job() if started.cancel() else started.result()


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool a process: a forked child makes its own."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="fairveil-curator")
