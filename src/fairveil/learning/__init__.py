"""Ring 3: how a model is found. Talks to a curator, never to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import descent as descent
    from .checkpoint import Checkpoint as Checkpoint
    from .descent import Reason as Reason
    from .descent import Search as Search
    from .descent import descend as descend
    from .duals import Pressure as Pressure
    from .duals import ProjectedAscent as ProjectedAscent
    from .fermi import PenaltySettings as PenaltySettings
    from .linear import LinearDescent as LinearDescent
    from .network import NetworkDescent as NetworkDescent
    from .outcome import Outcome as Outcome
    from .players import Constraints as Constraints
    from .players import Penalty as Penalty
    from .players import Player as Player
    from .primal import Walk as Walk
    from .saddle import SaddleDescent as SaddleDescent
    from .saddle import SaddleOutcome as SaddleOutcome
    from .saddle_problem import SaddleProblem as SaddleProblem
    from .saddle_problem import Smoothness as Smoothness
    from .settings import Settings as Settings

PLACES = {
    "Checkpoint": ".checkpoint",
    "Constraints": ".players",
    "LinearDescent": ".linear",
    "NetworkDescent": ".network",
    "Outcome": ".outcome",
    "Penalty": ".players",
    "PenaltySettings": ".fermi",
    "Player": ".players",
    "Pressure": ".duals",
    "ProjectedAscent": ".duals",
    "Reason": ".descent",
    "SaddleDescent": ".saddle",
    "SaddleOutcome": ".saddle",
    "SaddleProblem": ".saddle_problem",
    "Search": ".descent",
    "Settings": ".settings",
    "Smoothness": ".saddle_problem",
    "Walk": ".primal",
    "descend": ".descent",
    "descent": ".descent",
}

__all__ = [
    "Checkpoint",
    "Constraints",
    "LinearDescent",
    "NetworkDescent",
    "Outcome",
    "Penalty",
    "PenaltySettings",
    "Player",
    "Pressure",
    "ProjectedAscent",
    "Reason",
    "SaddleDescent",
    "SaddleOutcome",
    "SaddleProblem",
    "Search",
    "Settings",
    "Smoothness",
    "Walk",
    "descend",
    "descent",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
