"""Any search for a group objective, run to its end with a curator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...curator import Curator
from ..descent import Progress
from .found import Found
from .played import PlayedState


def run(
    curator: Curator,
    search: Any,
    progress: Progress | None = None,
    *,
    watch: Callable[[PlayedState], None] | None = None,
) -> Found:
    """Run a loop to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case."""
    try:
        state = search.init(curator)
        while (reason := search.stop(state)) is None:
            state = search.step(curator, state)
            if watch is not None:
                watch(state)
            if progress is not None:
                progress(state.round, search.rounds)
        found: Found = search.finish(state, reason)
        curator.finish()
    finally:
        curator.close()
    return found
