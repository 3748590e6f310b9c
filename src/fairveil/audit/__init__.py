"""Ring 5: attacks on callables, estimators and saved models. A lower bound on epsilon, to hold
against the claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .canaries import one_run as one_run
    from .claims import Claim as Claim
    from .claims import EventsClaim as EventsClaim
    from .claims import GaussianClaim as GaussianClaim
    from .claims import PointClaim as PointClaim
    from .finding import Planted as Planted
    from .finding import PrivacyAudit as PrivacyAudit
    from .one_run_result import OneRunAudit as OneRunAudit
    from .pairs import audit_fit as audit_fit
    from .pairs import audit_pair as audit_pair
    from .pairs import audit_scores as audit_scores
    from .result import AuditResult as AuditResult
    from .result import Errors as Errors
    from .result import attach as attach
    from .running import run as run
    from .witness import Tape as Tape
    from .witness import Witness as Witness

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
