"""How a permitted miss is shared: the area that is refused, exactly and by drawing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairveil.learning.certificates.levels import area, corners, shares


@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.1, 0.05, 0.01, 1e-3, 1e-6])
def test_the_refused_area_is_alpha_and_no_more(alpha: float) -> None:
    found = corners(alpha)
    assert 0.999 * alpha <= area(found) <= alpha
    firsts, seconds = zip(*found, strict=True)
    assert list(firsts) == sorted(firsts)
    assert list(seconds) == sorted(seconds, reverse=True)
    assert found == tuple((b, a) for a, b in reversed(found)) or np.allclose(
        found, [(b, a) for a, b in reversed(found)]
    )


def test_the_area_is_that_of_the_set() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.random((2, 400_000))
    found = corners(0.05)
    kept = np.zeros(len(u), bool)
    for a, b in found:
        kept |= (u > a) & (v > b)
    assert abs((~kept).mean() - 0.05) < 6 * np.sqrt(0.05 * 0.95 / len(u))  # false alarm below 1e-8
    larger = tuple((1.5 * a, 1.5 * b) for a, b in found)  # a set that is too large would be seen
    kept = np.zeros(len(u), bool)
    for a, b in larger:
        kept |= (u > a) & (v > b)
    assert (~kept).mean() > 0.06


def test_only_separate_pairs_have_steps() -> None:
    assert shares(1, True, 0.05) == ((0.05,),)
    assert shares(2, False, 0.05) == ((0.025, 0.025),)
    assert shares(2, True, 0.05) == corners(0.05)
    assert shares(3, True, 0.06) == ((0.02, 0.02, 0.02),)


@pytest.mark.parametrize("ratio", [1.0, 2.0, 5.0])
def test_steps_are_nearer_than_equal_parts(ratio: float) -> None:
    """In standard deviations, of normal rates whose precisions differ so much."""
    best = stats.norm.ppf(0.95) * np.hypot(1, ratio)
    equal = stats.norm.ppf(0.975) * (1 + ratio)
    ours = max(-stats.norm.ppf(a) - ratio * stats.norm.ppf(b) for a, b in corners(0.05))
    assert best < ours < 0.96 * equal
    assert ours < 1.33 * best
