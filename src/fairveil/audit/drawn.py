"""The picture of an audit: the claimed trade-off curve, and the highest one that the measured
mistakes allow.

A mechanism that is (epsilon, delta(epsilon))-private at every epsilon lets no test stay below

    f(a) = max over epsilon of max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)),

a the false alarms, f the misses (Dong, Roth and Su 2022, Proposition 6). What was measured bounds
the mechanism's own curve from above: each threshold's two rates, moved up by what their
distribution functions may be off (Dvoretzky, Kiefer and Wolfowitz, with the constant of Massart
1990), all at once.

Guarantees (tests/audit/test_audit_drawn.py):
1. `claimed` is at or below the trade-off curve of the claim's own mechanism at every point.
2. All points of `measured` are at or above the mechanism's curve with probability `confidence` at
   least.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from .._types import Floats
from ..core import cost as accounting
from ..errors import PrivacyError
from ..show.charts import Axis, Curve, Curves
from .claims import Claim, EventsClaim, GaussianClaim, PointClaim

PLACES = 41
Points = tuple[tuple[float, float], ...]
"""Pairs (false alarms, misses)."""


def claimed(claim: Claim) -> Points:
    """Points (false alarms, misses) of the claim's curve."""
    alarms = np.linspace(0.0, 1.0, PLACES)
    if isinstance(claim, GaussianClaim):
        return _points(alarms, special.ndtr(special.ndtri(1.0 - alarms) - claim.mu))
    return _points(alarms, _below(alarms, _profile(claim)))


def measured(here: Floats, there: Floats, confidence: float) -> Points:
    """Points that the mechanism's curve is at or below, from scores of counted runs."""
    if there.mean() < here.mean():
        here, there = -here, -there
    off = math.sqrt(math.log(4.0 / (1.0 - confidence)) / (2.0 * len(here)))
    cuts = np.unique(np.quantile(np.concatenate((here, there)), np.linspace(0.0, 1.0, PLACES)))
    alarms = [min(1.0, float(np.mean(here > cut)) + off) for cut in cuts]
    misses = [min(1.0, float(np.mean(there <= cut)) + off) for cut in cuts]
    return tuple(sorted(set(zip(alarms, misses, strict=True))))


def curves_of(title: str, claim: Points, band: Points, confidence: float, trials: int) -> Curves:
    """What `claimed` and `measured` gave."""
    curves = (
        Curve("claimed: no test is below", claim),
        Curve(f"measured: some test is at or below ({100 * confidence:g} %)", band),
    )
    notes = (
        f"{trials} pairs of runs. The claim is refuted where the measured curve falls below the "
        f"claimed one.",
        "The verdict comes from bets on one test that was fixed before, which is sharper than this "
        "band of all tests.",
    )
    return Curves(
        title=title,
        across=Axis("false alarms"),
        up=Axis("misses"),
        curves=curves,
        notes=notes,
    )


def _profile(claim: Claim) -> list[tuple[float, float]]:
    """(epsilon, delta) pairs that the claim says hold."""
    if isinstance(claim, PointClaim):
        return [(claim.epsilon, claim.delta), (0.0, claim.total_variation)]
    assert isinstance(claim, EventsClaim)
    found = []
    for epsilon in (0.0, *np.geomspace(0.01, 20.0, 24).tolist()):
        try:
            found.append((epsilon, accounting.delta(claim.events, epsilon, claim.neighbours)))
        except PrivacyError:  # beyond what is followed
            break
        if found[-1][1] < 1e-9:
            break
    return found


def _below(alarms: Floats, profile: list[tuple[float, float]]) -> Floats:
    lines = [np.zeros_like(alarms)]
    for epsilon, delta in profile:
        lines += [
            1.0 - delta - math.exp(epsilon) * alarms,
            math.exp(-epsilon) * (1.0 - delta - alarms),
        ]
    return np.asarray(np.max(lines, axis=0))


def _points(alarms: Floats, misses: Floats) -> Points:
    return tuple((float(a), float(b)) for a, b in zip(alarms, misses, strict=True))
