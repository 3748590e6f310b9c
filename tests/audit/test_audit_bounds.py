"""The bounds by themselves: exact coverage, exact inequalities, claims that agree with each
other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fairveil.audit import EventsClaim, GaussianClaim, PointClaim
from fairveil.audit import scores as bounds
from fairveil.core.events import Composed, Gaussian, Laplace, PoissonSampled, Repeated
from fairveil.errors import InputError
from fairveil.privacy import delta as delta_of
from fairveil.privacy import epsilon

CONFIDENCES = (0.75, 0.95, 0.99)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("trials", [1, 7, 60, 1000])
def test_a_rate_is_covered_whatever_it_is(trials, confidence):
    """Guarantee 1, by summing the binomial distribution: no false alarm of the test itself."""
    errors = np.arange(trials + 1)
    upper = bounds.most_probable(errors, trials, confidence)
    assert upper[-1] == 1.0
    for p in (1e-4, 0.003, 0.02, 0.1, 0.3, 0.5, 0.7, 0.97, 0.9999):
        missed = stats.binom.pmf(errors, trials, p)[upper < p].sum()
        assert missed <= 1 - confidence + 1e-12
    # It is the interval's end and not merely a safe number: one error fewer there would be rarer
    # than allowed.
    assert stats.binom.cdf(errors[:-1], trials, upper[:-1]) == pytest.approx(1 - confidence)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("trials", [2, 5, 40, 300])
def test_an_average_is_covered_however_unequal_the_two_rates(trials, confidence):
    """Guarantee 2, by convolving two binomial distributions."""
    rates = (0.0, 0.001, 0.05, 0.2, 0.45, 0.5, 0.6, 0.9, 1.0)
    upper = np.array(
        [float(bounds.most_average(total, trials, confidence)) for total in range(2 * trials + 1)]
    )
    worst = 0.0
    for fpr in rates:
        for fnr in rates:
            counts = np.arange(trials + 1)
            law = np.convolve(
                stats.binom.pmf(counts, trials, fpr), stats.binom.pmf(counts, trials, fnr)
            )
            worst = max(worst, law[upper < min((fpr + fnr) / 2, 0.5)].sum())
    assert worst <= 1 - confidence + 1e-12
    assert trials < 40 or worst > 0.4 * (1 - confidence)


def test_the_average_of_two_rates_is_known_better_than_the_two():
    single = bounds.most_probable(400, 1000, 0.975)
    assert 0.4 < bounds.most_average(800, 1000, 0.95) < single


def test_randomised_response_is_bounded_by_its_epsilon_and_no_more():
    """Guarantee 3, where it is an equality: a lie with probability 1 / (1 + e^epsilon)."""
    for eps in (0.1, 1.0, 3.0):
        lie = 1 / (1 + math.exp(eps))
        assert bounds.epsilon_of(lie, lie, 0.0) == pytest.approx(eps)
        assert bounds.epsilon_of_average(lie, 0.0) == pytest.approx(eps)


@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_no_threshold_on_gaussian_noise_shows_more_than_the_accountant_says(delta):
    """Guarantee 3 for a mechanism with a delta; the best threshold comes within a twentieth of the
    price at delta 1e-5."""
    mu = 0.27
    claimed = epsilon(Gaussian(1 / mu), delta)
    at = np.linspace(-9, 9, 2001)
    shown = bounds.epsilon_of(stats.norm.sf(at), stats.norm.cdf(at - mu), delta)
    assert shown.max() <= claimed
    from_average = bounds.epsilon_of_average(
        (stats.norm.sf(at) + stats.norm.cdf(at - mu)) / 2, delta
    )
    assert 0.1 * claimed < from_average.max() <= claimed
    assert shown.max() > 0.95 * claimed


def test_worse_than_chance_shows_nothing():
    assert bounds.epsilon_of(0.5, 0.5, 0.0) == bounds.epsilon_of_average(0.5, 0.0) == 0
    assert bounds.epsilon_of(1.0, 0.3, 0.1) == 0
    assert bounds.most_average(1800, 1000, 0.95) == 0.5
    assert bounds.mu_of(0.0) == 0
    assert math.isinf(bounds.mu_of(1.0))


def test_mu_is_that_of_the_published_formula_at_the_middle():
    """Nasr et al. 2023: mu = Phi^-1(1 - FPR) - Phi^-1(FNR)."""
    mu = 0.8
    rate = stats.norm.sf(mu / 2)
    assert stats.norm.ppf(1 - rate) - stats.norm.ppf(rate) == pytest.approx(mu)
    assert bounds.mu_of(1 - 2 * rate) == pytest.approx(mu)


def test_claims_about_one_mechanism_agree():
    mu = 0.5
    of_events = EventsClaim(Repeated(Gaussian(4.0), 4))
    assert of_events.total_variation == pytest.approx(GaussianClaim(mu).total_variation, rel=1e-6)
    assert of_events.total_variation >= GaussianClaim(mu).total_variation * (1 - 1e-9)
    # A point says less than the curve that it lies on.
    assert (
        PointClaim(epsilon(Gaussian(2.0), 1e-5), 1e-5).total_variation > of_events.total_variation
    )
    assert EventsClaim([Laplace(1.0)]).total_variation == pytest.approx(
        1 - math.exp(-0.5), rel=1e-3
    )
    assert PointClaim(1.0, 0.0).total_variation == pytest.approx(math.tanh(0.5))
    sampled = EventsClaim(PoissonSampled(0.1, Gaussian(1.0)))
    assert sampled.total_variation == pytest.approx(
        0.1 * GaussianClaim(1.0).total_variation, rel=1e-3
    )

    assert EventsClaim(Composed((Gaussian(2.0), Gaussian(2.0), Laplace(1.0)))).gaussian == (
        pytest.approx(0.5)
    )
    assert GaussianClaim(1.0).gaussian == PointClaim(1.0, 0.1).gaussian == math.inf
    assert of_events.is_gaussian
    assert GaussianClaim(1.0).is_gaussian
    assert not sampled.is_gaussian
    assert not PointClaim(1.0, 0.0).is_gaussian


def test_claimed_curves_are_at_or_below_their_mechanisms():
    alarms = np.linspace(0.02, 0.98, 40)
    exact = stats.norm.cdf(stats.norm.ppf(1 - alarms) - 1.0)  # of a Gaussian pair of mu 1
    assert GaussianClaim(1.0).curve(alarms) == pytest.approx(exact)
    point = PointClaim(3.0, delta_of(Gaussian(1.0), 3.0)).curve(alarms)
    events = EventsClaim(Gaussian(1.0), "add-remove").curve(alarms)
    assert (point <= exact + 1e-9).all()
    assert (events <= exact + 1e-9).all()
    assert (exact - events).max() < 0.02 < (exact - point).max()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: PointClaim(-1, 0),
        lambda: PointClaim(1, 1.0),
        lambda: GaussianClaim(-0.1),
        lambda: EventsClaim([], "near"),
    ],
)
def test_malformed_claims_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()
