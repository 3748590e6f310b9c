"""What a promise leaves for Gaussian noise: mu, all of the squared budget of a run being mu^2
(theory.md#t1)."""

from __future__ import annotations

from ..errors import InputError
from ..privacy.promise import Promise


def budget_of(promise: Promise, way_out: str = "pass delta=1e-6, say") -> float:
    """mu; an error where delta is 0 and there is none."""
    from ..privacy.accounting.routes import gaussian_mu

    mu = gaussian_mu(promise.epsilon, promise.delta)
    if mu <= 0:
        remedy = f"Noise here is Gaussian, which is never private at delta=0: {way_out}."
        raise InputError.expected("a delta above 0", of="delta", got=promise.delta, remedy=remedy)
    return mu
