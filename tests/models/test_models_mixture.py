"""Mixtures: exact distribution, draws that follow it, one deterministic choice by a stated rule."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.facts import RowLayout
from fairveil.models import LinearModel, MixtureModel
from fairveil.models.model import draw_codes


def stump(at, classes=(0, 1)):
    """Decides the second class above `at`."""
    return LinearModel([[1.0]], [-at], classes=classes, layout=RowLayout(1))


def constant(k, classes=3):
    return LinearModel(
        np.zeros((classes, 1)), np.eye(classes)[k], classes=range(classes), layout=RowLayout(1)
    )


def test_the_distribution_is_the_weighted_share_of_decisions():
    mixture = MixtureModel([stump(0.0), stump(1.0), stump(2.0)], [0.5, 0.3, 0.2])
    rows = [[-1.0], [0.5], [1.5], [2.5]]
    expected = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8], [0.0, 1.0]])
    assert mixture.predict_proba(rows) == pytest.approx(expected)
    assert mixture.decision_proba(rows) == pytest.approx(expected)
    assert mixture.is_randomised
    nested = MixtureModel([mixture, stump(9.0)], [0.5, 0.5])
    assert nested.predict_proba(rows)[:, 1] == pytest.approx(expected[:, 1] / 2)
    assert MixtureModel([stump(0.0), stump(1.0)]).weights.tolist() == [0.5, 0.5]
    assert MixtureModel([stump(0.0), stump(1.0)], [3, 1]).weights.tolist() == [0.75, 0.25]


def test_draws_follow_the_distribution_and_repeat_with_their_seed():
    """60,000 draws a class distribution; each share within 4.5 standard errors: false alarms below
    1e-4 over all checks."""
    mixture = MixtureModel([constant(0), constant(1), constant(2)], [0.6, 0.3, 0.1])
    rows = np.zeros((60_000, 1))
    drawn = mixture.predict_codes(rows, 0)
    for k, p in enumerate((0.6, 0.3, 0.1)):
        assert abs((drawn == k).mean() - p) < 4.5 * np.sqrt(p * (1 - p) / len(rows))
    neighbours = (drawn[1:] == drawn[:-1]).mean()  # rows are drawn apart from each other
    assert abs(neighbours - 0.46) < 4.5 * np.sqrt(0.46 * 0.54 / len(rows)) * 1.5
    assert (mixture.predict_codes(rows, 0) == drawn).all()
    assert (mixture.predict_codes(rows, np.random.default_rng(0)) == drawn).all()
    assert (mixture.predict_codes(rows, 1) != drawn).any()
    stream = np.random.default_rng(0)
    first, second = mixture.predict_codes(rows, stream), mixture.predict_codes(rows, stream)
    assert (first == drawn).all()
    assert (first != second).any()
    assert (mixture.predict_codes(rows) != mixture.predict_codes(rows)).any()
    assert (stump(0.0).predict_codes([[1.0]], 3) == stump(0.0).predict_codes([[1.0]], 4)).all()


def test_a_class_of_probability_zero_is_never_drawn():
    """Even by the largest number below 1 when the ends of the distribution round to less than
    that."""
    law = np.array([[0.1] * 7 + [0.3 - 2e-16, 0.0]])
    top = np.nextafter(1.0, 0.0)
    # without a guard class 8 would be drawn
    assert (top >= np.cumsum(law, axis=1)[:, :-1]).sum() == 8

    class Highest(np.random.Generator):
        def random(self, size):
            return np.full(size, top)

    assert draw_codes(law, Highest(np.random.PCG64(0))).tolist() == [7]
    assert draw_codes(np.array([[0.0, 1.0], [1.0, 0.0]]), 0).tolist() == [1, 0]


def test_derandomised_takes_the_likeliest_class():
    mixture = MixtureModel([stump(0.0), stump(1.0), stump(2.0)], [0.5, 0.3, 0.2])
    rows = [[-1.0], [0.5], [1.5]]
    plain = mixture.derandomise()
    assert plain.predict_codes(rows).tolist() == [0, 0, 1]  # one half is a tie: the first class
    assert not plain.is_randomised
    assert (plain.predict_codes(rows, 1) == plain.predict_codes(rows, 2)).all()
    assert plain.decision_proba(rows).tolist() == [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert (plain.predict_proba(rows) == mixture.predict_proba(rows)).all()
    many = MixtureModel([constant(0), constant(1), constant(2)], [0.2, 0.5, 0.3]).derandomise()
    assert many.predict_codes([[0.0]]).tolist() == [1]


def test_models_of_weight_zero_are_not_asked():
    # would refuse these rows
    class_error = LinearModel([[1.0, 1.0]], [0.0], classes=(0, 1), layout=RowLayout(2))
    mixture = MixtureModel([stump(0.0), class_error], [1.0, 0.0])
    assert mixture.predict_proba([[1.0]]).tolist() == [[0.0, 1.0]]
    assert len(mixture.models) == 2


def test_bad_mixtures_are_refused():
    for call, message in (
        (lambda: MixtureModel([]), "at least one model"),
        (lambda: MixtureModel([stump(0.0), stump(0.0, (1, 0))]), "same classes"),
        (lambda: MixtureModel([stump(0.0)], [1.0, 2.0]), r"shape \(1,\)"),
        (lambda: MixtureModel([stump(0.0), stump(1.0)], [1.5, -0.5]), "at least 0"),
        (lambda: MixtureModel([stump(0.0)], [0.0]), "not all 0"),
        (lambda: MixtureModel([stump(0.0)], [np.nan]), "finite"),
        (lambda: MixtureModel([stump(0.0)]).predict([[1.0]], "seed"), "random_state"),
        (lambda: MixtureModel([stump(0.0)]).predict([[1.0]], -1), "random_state"),
        (lambda: MixtureModel([stump(0.0)]).predict([[1.0]], True), "random_state"),
    ):
        with pytest.raises(InputError, match=message):
            call()
