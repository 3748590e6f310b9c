"""The bins of scores."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.errors import InputError
from fairveil.methods import score_bins


def test_guarantee_1_numbers_and_fixed_edges_follow_from_public_facts() -> None:
    assert set(inspect.signature(score_bins.number).parameters) == {"cells", "noise", "rows"}
    assert set(inspect.signature(score_bins.fixed).parameters) == {"count"}
    for cells in (1, 2, 5, 40):
        for noise in (0.3, 1.4, 7.0, 70.0, 1e6):
            found = [score_bins.number(cells, noise, rows) for rows in (None, 10.0, 1e3, 1e6)]
            assert all(
                score_bins.LEAST <= count <= score_bins.MOST and count % 2 == 0 for count in found
            )
            assert found[1:] == sorted(found[1:])  # more rows, more bins
            assert found[0] == score_bins.number(cells, noise, score_bins.SUPPOSED)
    assert score_bins.number(3, 0.0, None) == score_bins.MOST_EXACT


@pytest.mark.parametrize("count", [2, 4, 7, 16, 64])
def test_fixed_edges_rise_from_one_end_to_the_other_through_zero(count: int) -> None:
    edges = np.unique(np.append(score_bins.fixed(count), 0.0))
    assert (np.diff(edges) > 0).all()
    assert np.allclose(edges, -edges[::-1])
    assert np.abs(edges).max() < score_bins.WIDEST


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.integers(2, 40))
def test_guarantee_2_a_larger_score_never_has_a_lower_bin(scores: list[float], count: int) -> None:
    some = np.array(scores)
    for edges in (
        score_bins.fixed(count),
        score_bins.quantiles(some, count),
        score_bins.given(np.array([-1.0, 2.5])),
    ):
        found = score_bins.codes(np.append(some, [-np.inf, np.inf]), edges)
        order = np.argsort(np.append(some, [-np.inf, np.inf]), kind="stable")
        assert (np.diff(found[order]) >= 0).all()
        assert found.min() >= 0
        assert found.max() <= len(edges)
        usual = score_bins.usual(edges)
        assert (
            (found >= usual) == (np.append(some, [-np.inf, np.inf]) > 0)
        ).all() or 0.0 not in edges


def test_quantiles_have_about_as_many_scores_each_and_lie_between_two() -> None:
    scores = np.random.default_rng(0).normal(size=5000)
    edges = score_bins.quantiles(scores, 32)
    counts = np.bincount(score_bins.codes(scores, edges), minlength=len(edges) + 1)
    assert 31 <= len(edges) <= 32
    assert counts.max() <= 5000 / 32 + 1
    assert not set(edges) & set(scores)
    for same in (np.zeros(9), np.full(9, 3.0), np.full(9, -2.0)):
        assert score_bins.quantiles(same, 8).tolist() == [0.0]
    two = score_bins.quantiles(np.array([-40.0] * 5 + [40.0] * 5), 8)
    assert two.tolist() == [0.0]


@pytest.mark.parametrize(
    "wrong",
    [(), (1.0, 1.0), (2.0, 1.0), (math.nan,), (math.inf, 1.0), "few", [[1.0]], np.arange(2000.0)],
)
def test_edges_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="bins"):
        score_bins.given(wrong)
