"""Runs of rows shared out among threads: a knob of speed alone, for sums and maxima that no order
can change."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

import numpy as np

CORES = os.cpu_count() or 1
WORTH_A_THREAD = 1 << 14  # rows: below, starting another thread costs more than it saves
WORTH_A_PIECE = 1 << 12  # rows that a thread takes at a time

Part = TypeVar("Part")


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


def beside(job: Callable[[], Part]) -> Callable[[], Part]:
    """Start a job in another thread. The function that is returned waits for it, or does it where
    nobody has begun."""
    started = _pool(os.getpid()).submit(job)
    return lambda: job() if started.cancel() else started.result()


@lru_cache(maxsize=1)
def _pool(process: int) -> ThreadPoolExecutor:
    """One pool a process: a forked child makes its own."""
    return ThreadPoolExecutor(CORES, thread_name_prefix="fairveil-curator")
