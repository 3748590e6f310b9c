"""Where an estimator's public numbers come from: what its caller passed, or what the library takes
by itself.

An argument that was passed with its default's value is told as the default: nobody can see the
difference.
"""

from __future__ import annotations

import inspect
from numbers import Real

from sklearn.base import BaseEstimator

from ...statement.document import Origin, PublicFact
from ..settings import stated
from .training import Training

DEFAULT: Origin = "library default"


def of_argument(estimator: object, name: str) -> Origin:
    """Of one argument of an estimator's constructor."""
    default = inspect.signature(type(estimator).__init__).parameters[name].default
    given = getattr(estimator, name)
    return (
        DEFAULT
        if given is default or (type(given) is type(default) and given == default)
        else "argument"
    )


def stated_clips(estimator: BaseEstimator) -> tuple[float, ...]:
    """The clips that the caller passed; what else bounds a row is the library's."""
    clip = stated(estimator, "clip")
    # what is no number is refused where it is used
    return (float(clip),) if isinstance(clip, Real) else ()


def facts_of(estimator: BaseEstimator, training: Training) -> tuple[PublicFact, ...]:
    """Delta, and the cap of sample weights, with where they come from."""
    facts = [PublicFact("delta", f"{float(estimator.delta):g}", of_argument(estimator, "delta"))]
    if training.rows.weighted:
        cap = training.rows.max_sample_weight
        origin: Origin = DEFAULT if estimator._facts.max_sample_weight == 1.0 else "schema"
        facts.append(PublicFact("largest sample weight", f"{cap:g}", origin))
    return tuple(facts)
