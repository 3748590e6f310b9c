"""Ring 5: attacks on callables, estimators and saved models. A lower bound on epsilon, to hold
against the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .claims import Claim as Claim
    from .claims import EventsClaim as EventsClaim
    from .claims import GaussianClaim as GaussianClaim
    from .claims import PointClaim as PointClaim
    from .running import Planted as Planted
    from .running import PrivacyAudit as PrivacyAudit
    from .running import run as run
    from .scores import AuditResult as AuditResult
    from .scores import Errors as Errors
    from .scores import audit_fit as audit_fit
    from .scores import audit_scores as audit_scores
    from .witness import Tape as Tape
    from .witness import Witness as Witness

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
