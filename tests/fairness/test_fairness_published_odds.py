"""Example 8.10's sum of conditional rates, its maximum, and Definition 1.14: against loops over
rows, groups and pairs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness import objectives as ob
from fairveil.fairness.functions import BoltzmannOfGaps

TWO = ("no", "yes")


def people(groups: int, seed: int = 0, n: int = 90) -> tuple[Any, Any, Any]:
    """Groups, labels and decisions; every cell has somebody."""
    rng = np.random.default_rng(seed)
    cell = np.concatenate(
        [np.repeat(np.arange(groups), 2), rng.integers(groups, size=n - 2 * groups)]
    )
    label = np.concatenate([np.tile([0, 1], groups), rng.integers(2, size=n - 2 * groups)])
    return cell, label, rng.integers(2, size=n)


def frame_of(cell: Any, label: Any, groups: int) -> ob.Frame:
    shares = np.array(
        [[((cell == a) & (label == y)).mean() for y in (0, 1)] for a in range(groups)]
    )
    return ob.Frame(Cells((tuple("abcd"[:groups]),)), TWO, shares)


def losses_of(cell: Any, label: Any, decided: Any, groups: int) -> Any:
    out = np.zeros((groups, 2, 2))
    np.add.at(out, (cell, label, decided), 1.0 / len(cell))
    return out


def rates(cell: Any, label: Any, decided: Any, groups: int) -> tuple[Any, Any]:
    """False and true positive rates by group, from the rows."""
    of = [
        [(decided[(cell == a) & (label == y)] == 1).mean() for a in range(groups)] for y in (0, 1)
    ]
    return np.array(of[0]), np.array(of[1])


def smax(numbers: Any, eta: float) -> float:
    """Definition 1.14's, as it is printed."""
    numbers = np.asarray(list(numbers))
    return float((numbers * np.exp(eta * numbers)).sum() / np.exp(eta * numbers).sum())


@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_example_8_10_sums_the_conditional_rates(groups: int, seed: int) -> None:
    cell, label, decided = people(groups, seed)
    frame = frame_of(cell, label, groups)
    fp, tp = rates(cell, label, decided, groups)
    wanted = fp.sum() + (1.0 - tp).sum()  # sum of FP_a + FN_a
    found = ob.SumOfErrorRates().at(frame)
    assert float(found.value(losses_of(cell, label, decided, groups))) == pytest.approx(wanted)
    shares = frame.shares[:, :, np.newaxis] * (1.0 - np.eye(2))  # everybody is wrong
    assert float(found.value(shares)) == pytest.approx(2.0 * groups)
    assert ob.SumOfErrorRates().at_most(1.7).bound == 1.7  # no share: it may be above 1


@pytest.mark.parametrize("groups", [2, 3, 4])
@pytest.mark.parametrize("eta", [1.0, 50.0])
def test_definition_1_14_is_the_formula_over_all_ordered_pairs(groups: int, eta: float) -> None:
    for seed in range(4):
        cell, label, decided = people(groups, seed)
        fp, tp = rates(cell, label, decided, groups)
        each = itertools.product(range(groups), repeat=2)  # a, a' in A: a = a' is one of them
        wanted = smax((max(abs(fp[a] - fp[b]), abs(tp[a] - tp[b])) for a, b in each), eta)
        losses = losses_of(cell, label, decided, groups)
        frame = frame_of(cell, label, groups)
        assert float(ob.SmoothedOddsOfPairs(eta).at(frame).value(losses)) == pytest.approx(wanted)
        largest = float(ob.Gap("equalized_odds").at(frame).value(losses))
        assert largest - 2.0 * math.log(groups) / eta - 1e-12 <= wanted <= largest + 1e-12


@pytest.mark.parametrize("eta", [1.0, 50.0])
def test_example_8_10_takes_the_two_differences_themselves(eta: float) -> None:
    apart = 0.0
    for seed in range(4):
        cell, label, decided = people(2, seed)
        fp, tp = rates(cell, label, decided, 2)
        wanted = smax([abs(fp[0] - fp[1]), abs(tp[0] - tp[1])], eta)
        losses, frame = losses_of(cell, label, decided, 2), frame_of(cell, label, 2)
        assert float(ob.SmoothedOddsOfRates(eta).at(frame).value(losses)) == pytest.approx(wanted)
        other = float(ob.SmoothedOddsOfPairs(eta).at(frame).value(losses))
        apart = max(apart, abs(other - wanted))
    assert apart > 1e-3  # two functions


def test_marginal_groups_are_compared_within_their_column() -> None:
    cells = Cells((("f", "m"), ("x", "y", "z")), mode="marginal")
    frame = ob.Frame(cells, TWO, np.full((5, 2), 0.2))
    names = ob.SmoothedOddsOfRates().at(frame).names
    assert len(names) == 2 * (1 + 3)
    assert not any(
        "f" in name.split("groups")[1] and "x" in name.split("groups")[1] for name in names
    )


@pytest.mark.parametrize("lines", [1, 2])
@pytest.mark.parametrize("zeros", [0, 3])
def test_a_sharp_maximum_is_the_largest_gap_and_a_blunt_one_below(lines: int, zeros: int) -> None:
    v = np.random.default_rng(3).uniform(-1, 1, size=(200, 6))
    largest = np.abs(v).max(axis=-1)
    assert BoltzmannOfGaps(1e4, lines, 2, zeros).value(v) == pytest.approx(largest, abs=1e-3)
    blunt = BoltzmannOfGaps(2.0, lines, 2, zeros).value(v)
    assert (blunt < largest).all()
    assert float(BoltzmannOfGaps(2.0, lines, 2, zeros).value(np.zeros(6))) == 0.0


def test_they_are_for_two_classes_and_several_groups_and_the_maxima_are_not_convex() -> None:
    three = ob.Frame(Cells((("f", "m"),)), ("a", "b", "c"), np.full((2, 3), 1 / 6))
    alone = ob.Frame(Cells((("f",),)), TWO, np.full((1, 2), 0.5))
    for one in (ob.SmoothedOddsOfPairs(), ob.SmoothedOddsOfRates()):
        with pytest.raises(InputError, match="two classes"):
            one.at(three)
        with pytest.raises(InputError, match="at least two groups"):
            one.at(alone)
        assert not one.at(frame_of(*people(2)[:2], 2)).convex
    assert ob.SumOfErrorRates().at(three).convex
