"""Runs of rows shared out among threads: a knob of speed alone, for sums and maxima that no order
can change."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import TypeVar

import numpy as np

CORES = os.cpu_count() or 1
WORTH_A_THREAD = 1 << 14  # rows: below, starting another thread costs more than it saves
WORTH_A_PIECE = 1 << 12  # rows that a thread takes at a time, at least
LARGE = 1 << 16  # and at most

Part = TypeVar("Part")
Job = Callable[[Part], None]


def cut(rows: int, left: int, threads: int | None) -> Iterator[tuple[int, int]]:
    """Runs of a block's rows for `in_line`, smaller towards the end of the pass: no thread waits
    long for another then.

    `left`: how many rows the pass has from this block on, at most.
    """
    workers = CORES if threads is None else threads
    alone = workers == 1 or (threads is None and left < 2 * WORTH_A_THREAD)
    least = WORTH_A_PIECE if threads is None else min(WORTH_A_PIECE, -(-rows // workers))
    most, a = rows if alone else LARGE, 0
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
    own, seen = begin(), 0
    waiting, helpers = SimpleQueue[Job[Part] | None](), list[Future[Part]]()

    def work() -> Part:
        part = begin()
        with np.errstate(all="ignore"):
            while (job := waiting.get()) is not None:
                job(part)
        return part

    try:
        # threads do not take it over: no row may make arithmetic warn
        with np.errstate(all="ignore"):
            for rows, job in jobs:
                seen += rows
                workers = min(CORES, seen // WORTH_A_THREAD) if threads is None else threads
                if workers > 1 + len(helpers):
                    helpers.append(_pool(os.getpid()).submit(work))
                waiting.put(job)
                _work_off(waiting, 2 * len(helpers), own)
            _work_off(waiting, 0, own)
    except BaseException:
        _work_off(waiting, 0, None)
        raise
    finally:
        for _ in helpers:
            waiting.put(None)
        begun = [helper for helper in helpers if not helper.cancel()]
    return [own, *(helper.result() for helper in begun)]


def _work_off(waiting: SimpleQueue[Job[Part] | None], most: int, part: Part | None) -> None:
    """Do what waits, until no more than `most` jobs are left; without a part: let it go."""
    while waiting.qsize() > most:
        try:
            job = waiting.get_nowait()
        except Empty:
            return
        if job is not None and part is not None:
            job(part)


def beside(job: Callable[[], Part]) -> Callable[[], Part]:
    """Start a job in another thread. The function that is returned waits for it, or does it where
    nobody has begun."""
    started = _pool(os.getpid()).submit(job)
    return lambda: job() if started.cancel() else started.result()


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool a process: a forked child makes its own."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="fairveil-curator")
