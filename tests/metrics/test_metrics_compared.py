"""What a group table says beside its rates: intervals of gaps and of the comparison with a constant
cover, and equal those of the literature."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.metrics import GroupTable, group_table


def table_of(wrong: float, share: float, *, rows: int = 2000, seed: int = 1) -> GroupTable:
    """Decisions that are wrong in a share of rows; `share`: of positives."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < share
    decided = np.where(rng.random(rows) < wrong, ~y, y)
    sex = np.where(np.arange(rows) % 2 == 0, "f", "m")
    words = [np.where(which, "yes", "no") for which in (y, decided)]
    return group_table(*words, sex, classes=("no", "yes"))


def test_the_constant_is_compared_row_by_row() -> None:
    """Against counts made by hand, and a bootstrap of the difference."""
    table = table_of(0.25, 0.3, rows=1500, seed=5)
    rng = np.random.default_rng(5)
    y = rng.random(1500) < 0.3
    wrong = rng.random(1500) < 0.25
    found = table.against_constant()
    assert found is not None
    assert (found.answer, found.error) == ("no", pytest.approx(y.mean()))
    each = wrong.astype(float) - y
    assert found.difference == pytest.approx(each.mean())
    draws = np.random.default_rng(0)
    means = [draws.choice(each, 1500).mean() for _ in range(2000)]
    expected = tuple(np.quantile(means, [0.025, 0.975]))
    assert (found.low, found.high) == pytest.approx(expected, abs=0.006)


def test_the_interval_of_the_difference_covers() -> None:
    """Of 400 tables, 95 % or so hold the population's difference."""
    held = 0
    for seed in range(400):
        found = table_of(0.2, 0.35, rows=300, seed=seed).against_constant()
        assert found is not None
        held += found.low <= 0.2 - 0.35 <= found.high
    assert held >= 370


def test_a_constant_is_the_same_and_weights_have_none_to_compare_with() -> None:
    same = group_table(["a", "b", "a"], ["a", "a", "a"], ["f", "m", "f"]).against_constant()
    assert same is not None
    assert (same.verdict, same.answer) == ("the same", "a")
    weighed = group_table(["a", "b"], ["a", "b"], ["f", "m"], sample_weight=[1.0, 3.0])
    assert weighed.against_constant() is None


def test_the_interval_of_a_gap_is_newcombes() -> None:
    """Newcombe (1998), example (a) of his table II: 56/70 against 48/80."""
    decided = ["yes"] * 56 + ["no"] * 14 + ["yes"] * 48 + ["no"] * 32
    table = group_table(["yes"] * 150, decided, ["a"] * 70 + ["b"] * 80, classes=("no", "yes"))
    found = next(one for one in table.gaps() if one.rate == "selection_rate[yes]")
    assert (found.gap, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    assert [one.required for one in table.gaps(("selection_rate",))].count(True) == 1


def test_intervals_of_gaps_cover() -> None:
    """Five equal groups: the population's gap, nothing, is in the interval of 95 % or more."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(150):
        decided = np.where(rng.random(500) < 0.4, "yes", "no")
        table = group_table(["yes"] * 500, decided, np.arange(500) % 5, classes=("no", "yes"))
        missed += next(one for one in table.gaps() if one.rate == "selection_rate[yes]").low > 0
    assert missed <= 0.05 * 150 + 4


def test_one_group_has_no_gaps() -> None:
    assert group_table(["a", "b"] * 10, ["a", "b"] * 10, ["f"] * 20).gaps() == ()
