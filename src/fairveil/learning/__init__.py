"""Ring 3: how a model is found. Talks to a curator, never to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .descent import Reason as Reason
    from .descent import Search as Search
    from .descent import descend as descend
    from .duals import Pressure as Pressure
    from .duals import ProjectedAscent as ProjectedAscent
    from .plans import Settings as Settings
    from .primal import Walk as Walk
    from .rate_constrained import Outcome as Outcome
    from .rate_constrained import RateConstrained as RateConstrained

PLACES = {
    "Outcome": ".rate_constrained",
    "Pressure": ".duals",
    "ProjectedAscent": ".duals",
    "RateConstrained": ".rate_constrained",
    "Reason": ".descent",
    "Search": ".descent",
    "Settings": ".plans",
    "Walk": ".primal",
    "descend": ".descent",
}

__all__ = [
    "Outcome",
    "Pressure",
    "ProjectedAscent",
    "RateConstrained",
    "Reason",
    "Search",
    "Settings",
    "Walk",
    "descend",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
