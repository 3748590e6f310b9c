"""Trade-off curves in pictures of audits: what is claimed from below, what was measured from above.

False alarms: bands of 40 audits at 90 % are below the truth somewhere in 4 of them in the mean at
most. Seeds are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from fairveil.audit import EventsClaim, GaussianClaim, PointClaim, drawn
from fairveil.core.events import Gaussian
from fairveil.privacy import delta


def exact(alarms: float) -> float:
    """Of a Gaussian pair of mu 1."""
    return float(ndtr(ndtri(1 - alarms) - 1.0))


def test_guarantee_1_claimed_curves_are_at_or_below_their_mechanisms() -> None:
    assert all(b == pytest.approx(exact(a)) for a, b in drawn.claimed(GaussianClaim(1.0)))
    point = drawn.claimed(PointClaim(3.0, delta(Gaussian(1.0), 3.0)))
    events = drawn.claimed(EventsClaim(Gaussian(1.0), "add-remove"))
    for curve in (point, events):
        assert all(b <= exact(a) + 1e-9 for a, b in curve if 0 < a < 1)
    near = max(exact(a) - b for a, b in events if 0 < a < 1)
    assert near < 0.02 < max(exact(a) - b for a, b in point if 0 < a < 1)


def test_guarantee_2_measured_bands_are_at_or_above_the_truth() -> None:
    below, widest = 0, 0.0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        band = drawn.measured(rng.normal(0, 1, 200), rng.normal(1, 1, 200), 0.9)
        below += any(b < exact(a) - 1e-12 for a, b in band if 0 < a < 1)
        widest = max(widest, min(a + b for a, b in band))
    assert below <= 10  # more with probability below 0.003
    assert widest < 1.0  # they tell the two apart


def test_scores_that_fall_are_turned_round() -> None:
    rng = np.random.default_rng(1)
    here, there = rng.normal(0, 1, 100), rng.normal(2, 1, 100)
    assert drawn.measured(here, there, 0.9) == drawn.measured(-here, -there, 0.9)
