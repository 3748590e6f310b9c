"""Any search for a group objective, run to its end with a curator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...curator import Curator
from ..descent import Progress, Reason, run_to_the_end
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
    finish: Callable[[PlayedState, Reason], Found] = search.finish
    return run_to_the_end(curator, search, finish, progress, watch=watch)
