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
    from .fermi import PenaltySettings as PenaltySettings
    from .network import NetworkDescent as NetworkDescent
    from .plans import Settings as Settings
    from .players import Constraints as Constraints
    from .players import Penalty as Penalty
    from .players import Player as Player
    from .primal import Walk as Walk
    from .rate_constrained import Outcome as Outcome
    from .rate_constrained import RateConstrained as RateConstrained

PLACES = {
    "Constraints": ".players",
    "NetworkDescent": ".network",
    "Outcome": ".rate_constrained",
    "Penalty": ".players",
    "PenaltySettings": ".fermi",
    "Player": ".players",
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
    "Constraints",
    "NetworkDescent",
    "Outcome",
    "Penalty",
    "PenaltySettings",
    "Player",
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
