"""Memory of worker processes: kept between blocks, where the C library would give it back and ask
for it again."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

TRIM, MAPPED, KEPT = -1, -3, 1 << 25  # names of the C library's settings, and bytes


@cache
def keep_memory() -> None:
    """A worker scales each block of each pass into some MiB of memory, which it then frees. Here up
    to 64 MiB are kept.

    Dask has its workers' C library give them back at once (MALLOC_TRIM_THRESHOLD_), which makes a
    pass twice as much work.
    """
    if sys.platform != "linux":
        return
    try:
        set_to = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return
    set_to(MAPPED, KEPT)
    set_to(TRIM, 2 * KEPT)
