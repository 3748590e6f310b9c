"""What is to be certified, as the parameters of an estimator say it."""

from __future__ import annotations

from ...fairness import Notion
from ...fairness.objectives import Bound, parse_constraint
from .. import fitting
from .certifying import notions_of

CONSTRAINTS, CONSTRAINT, CERTIFY = "constraints", "constraint", "certify"
"""The parameters that may say what is certified."""


def parameter_of(estimator: object) -> str:
    """Where this estimator says what is to be certified."""
    return next(name for name in (CONSTRAINTS, CONSTRAINT, CERTIFY) if hasattr(estimator, name))


def listed_in(estimator: object, of: str) -> tuple[list[Notion], list[Bound]]:
    """The notions of this parameter, and bounds on other functions, which cannot be certified."""
    given = getattr(estimator, of)
    if of == CONSTRAINT:
        parsed = parse_constraint(given)
        return list(parsed.notions), list(parsed.bounds)
    if of == CERTIFY and given is not None:
        return notions_of(given, of=of, certified=True), []
    return fitting.notions_of(given, certified=True), []
