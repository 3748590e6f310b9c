"""Ring 4: attacks on finished mechanisms, as callables. A lower bound on epsilon, to hold against the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .claims import Claim as Claim
    from .claims import EventsClaim as EventsClaim
    from .claims import GaussianClaim as GaussianClaim
    from .claims import PointClaim as PointClaim
    from .pairs import audit_fit as audit_fit
    from .pairs import audit_pair as audit_pair
    from .pairs import audit_scores as audit_scores
    from .result import AuditResult as AuditResult
    from .result import Errors as Errors
    from .result import attach as attach
    from .witness import Tape as Tape
    from .witness import Witness as Witness

PLACES = {
    "AuditResult": ".result",
    "Claim": ".claims",
    "Errors": ".result",
    "EventsClaim": ".claims",
    "GaussianClaim": ".claims",
    "PointClaim": ".claims",
    "Tape": ".witness",
    "Witness": ".witness",
    "attach": ".result",
    "audit_fit": ".pairs",
    "audit_pair": ".pairs",
    "audit_scores": ".pairs",
}

__all__ = [
    "AuditResult",
    "Claim",
    "Errors",
    "EventsClaim",
    "GaussianClaim",
    "PointClaim",
    "Tape",
    "Witness",
    "attach",
    "audit_fit",
    "audit_pair",
    "audit_scores",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, PLACES)
