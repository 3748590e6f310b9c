"""Ring 3: how a model is found. Talks to a curator, never to rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import descent as descent
    from .descent import Reason as Reason
    from .descent import descend as descend
    from .descent import follow as follow
    from .descent import in_step as in_step
    from .duals import AscentState as AscentState
    from .duals import Constraints as Constraints
    from .duals import PrimalState as PrimalState
    from .duals import ProjectedAscent as ProjectedAscent
    from .fermi import Penalty as Penalty
    from .fermi import PenaltySettings as PenaltySettings
    from .networks import NetworkDescent as NetworkDescent
    from .outcome import Outcome as Outcome
    from .primal_dual import Player as Player
    from .primal_dual import PrimalDual as PrimalDual
    from .primal_dual import Settings as Settings
    from .saddle import SaddleDescent as SaddleDescent
    from .saddle import SaddleOutcome as SaddleOutcome
    from .saddle import SaddleProblem as SaddleProblem
    from .saddle import Smoothness as Smoothness

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
