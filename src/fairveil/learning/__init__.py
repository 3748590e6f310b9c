"""Ring 3: how a model is found. Talks to a curator, never to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import descent as descent
    from .descent import Reason as Reason
    from .descent import Search as Search
    from .descent import descend as descend
    from .lagrangian.duals import AscentState as AscentState
    from .lagrangian.duals import ProjectedAscent as ProjectedAscent
    from .lagrangian.fermi import PenaltySettings as PenaltySettings
    from .lagrangian.linear import LinearDescent as LinearDescent
    from .lagrangian.network import NetworkDescent as NetworkDescent
    from .lagrangian.players import Constraints as Constraints
    from .lagrangian.players import Penalty as Penalty
    from .lagrangian.players import Player as Player
    from .lagrangian.primal import PrimalState as PrimalState
    from .lagrangian.settings import Settings as Settings
    from .outcome import Outcome as Outcome
    from .saddle.descent import SaddleDescent as SaddleDescent
    from .saddle.descent import SaddleOutcome as SaddleOutcome
    from .saddle.problem import SaddleProblem as SaddleProblem
    from .saddle.problem import Smoothness as Smoothness

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
