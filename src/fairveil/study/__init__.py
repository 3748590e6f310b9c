"""Ring 5: many fits looked at together, and what looking at them all has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .families import Family as Family
    from .result import Frontier as Frontier
    from .runs import Run as Run
    from .sweep import frontier as frontier

PLACES = {
    "Family": ".families",
    "Frontier": ".result",
    "Run": ".runs",
    "frontier": ".sweep",
}

__all__ = ["Family", "Frontier", "Run", "frontier"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
