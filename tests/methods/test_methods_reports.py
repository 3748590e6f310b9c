"""Groups that were flipped or drawn: unbiased over all reports, privacy by enumeration, error bars,
what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairveil.errors import InputError
from fairveil.estimators import SoftGroups
from fairveil.facts import Cells
from fairveil.facts.reports import MOST, Reports
from fairveil.fairness import DemographicParity, resolve
from fairveil.methods.counts import EXACT, CountNoise
from fairveil.methods.released import GroupCounts, soft_values
from fairveil.privacy import NoiseSource

ASKED = Reports.randomized_response(("f", "m"), 1.1)
UNEVEN = Reports(("a", "b", "c"), ((0.8, 0.1, 0.1), (0.2, 0.7, 0.1), (0.0, 0.3, 0.7)))
PAIRS = Reports(
    tuple("abcd"),
    (
        (0.45, 0.35, 0.1, 0.1),
        (0.35, 0.45, 0.1, 0.1),
        (0.1, 0.1, 0.45, 0.35),
        (0.1, 0.1, 0.35, 0.45),
    ),
)
"""Two groups together are told from the other two better than each alone is."""


def estimate(reports: Reports, recorded: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    return GroupCounts(recorded, sizes, EXACT, reports).estimates


@pytest.mark.parametrize("reports", [ASKED, UNEVEN], ids=["two", "three"])
def test_guarantee_1_estimates_are_unbiased_over_all_reports_of_all_tables(
    reports: Reports,
) -> None:
    """Four people, every true table, every way in which they may answer."""
    count, rates = len(reports.groups), np.array(reports.rates)
    for truth in itertools.combinations_with_replacement(range(count), 4):
        mean, total = np.zeros(count), 0.0
        for said in itertools.product(range(count), repeat=4):
            likely = math.prod(rates[a, b] for a, b in zip(truth, said, strict=True))
            found = estimate(
                reports,
                np.bincount(said, minlength=count)[:, np.newaxis].astype(float),
                np.array([4.0]),
            )[:, 0]
            assert found.sum() == pytest.approx(4.0)
            mean, total = mean + likely * found, total + likely
        assert total == pytest.approx(1.0)
        assert mean == pytest.approx(np.bincount(truth, minlength=count), abs=1e-9)


def test_the_variance_of_two_groups_is_the_stated_one() -> None:
    """f (1 - f) / (1 - 2 f)^2 for each person, whatever their group."""
    flip = ASKED.rates[0][1]
    for truth in (0, 1):
        line = ASKED.undone[0]
        mean = sum(ASKED.rates[truth][b] * line[b] for b in (0, 1))
        variance = sum(ASKED.rates[truth][b] * (line[b] - mean) ** 2 for b in (0, 1))
        assert variance == pytest.approx(flip * (1 - flip) / (1 - 2 * flip) ** 2)


@pytest.mark.parametrize("epsilon", [0.2, 1.1, 3.0])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_guarantee_2_local_epsilon_is_the_largest_ratio(epsilon: float, count: int) -> None:
    reports = Reports.randomized_response(range(count), epsilon)
    rates = np.array(reports.rates)
    worst = max(rates[a, b] / rates[c, b] for a, b, c in itertools.product(range(count), repeat=3))
    assert reports.epsilon == pytest.approx(math.log(worst)) == pytest.approx(epsilon)
    # a report that one true group never makes
    assert Reports(UNEVEN.groups, UNEVEN.rates).epsilon == math.inf


@pytest.mark.parametrize("reports", [ASKED, UNEVEN, PAIRS], ids=["two", "three", "pairs"])
@pytest.mark.parametrize("central", [0.3, 1.0, 4.0])
def test_guarantee_2_no_central_mechanism_tells_more_of_a_true_group_and_one_tells_as_much(
    reports: Reports, central: float
) -> None:
    """All mechanisms of two outcomes whose probabilities of one of them are at corners, and 2,000
    others."""
    bound, rates = reports.together(central), np.array(reports.rates)
    rng, count = np.random.default_rng(0), len(reports.groups)
    corners = [np.exp(central * np.array(bits)) for bits in itertools.product((0, 1), repeat=count)]
    inner = [np.exp(central * rng.uniform(size=count)) for _ in range(2000)]
    furthest = 0.0
    for likely in (*corners, *inner):
        of_true = rates @ likely
        furthest = max(furthest, math.log(of_true.max() / of_true.min()))
    assert furthest == pytest.approx(bound, rel=1e-9)
    assert bound <= central
    assert bound <= reports.epsilon


def laws(counts: np.ndarray, scale: float, window: np.ndarray) -> np.ndarray:
    """P(noisy count = w), of a true count, on a window."""
    r = math.exp(-1.0 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(window[np.newaxis, :] - counts[:, np.newaxis])


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_guarantee_2_a_count_of_flipped_groups_by_enumeration(epsilon: float) -> None:
    """Three people's reports, counted with discrete Laplace noise: one true group changes."""
    rates, window = np.array(ASKED.rates), np.arange(-30, 34)
    worst = 0.0

    def law(truth: tuple[int, ...]) -> np.ndarray:
        out = np.zeros(len(window))
        for said in itertools.product((0, 1), repeat=3):
            likely = math.prod(rates[a, b] for a, b in zip(truth, said, strict=True))
            out += likely * laws(np.array([said.count(0)]), 1.0 / epsilon, window)[0]
        return out

    for truth in itertools.product((0, 1), repeat=3):
        for at in range(3):
            other = tuple(1 - value if j == at else value for j, value in enumerate(truth))
            worst = max(worst, float(np.abs(np.log(law(truth) / law(other))).max()))
    assert worst <= ASKED.together(epsilon) + 1e-9
    assert worst > 0.95 * ASKED.together(epsilon)


def test_guarantee_2_a_distribution_that_changes_is_protected_by_enumeration() -> None:
    """Two people's groups are drawn and counted with noise of epsilon 1; one distribution becomes
    any other on a grid."""
    window, grid = np.arange(-30, 33), np.linspace(0.0, 1.0, 5)

    def law(p: float, q: float) -> np.ndarray:
        shares = np.array([(1 - p) * (1 - q), p * (1 - q) + (1 - p) * q, p * q])
        return np.asarray(shares @ laws(np.arange(3), 1.0, window))

    worst = max(
        float(np.abs(np.log(law(p, q) / law(o, q))).max())
        for p, o, q in itertools.product(grid, repeat=3)
    )
    assert worst == pytest.approx(1.0)  # from a sure one to the other: neither more nor less


@pytest.mark.parametrize(
    "rates",
    [
        [[0.5, 0.5], [0.5, 0.5]],
        [[0.502, 0.498], [0.498, 0.502]],
        [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.35, 0.4, 0.25]],
        [[0.9, 0.2], [0.1, 0.8]],
        [[1.1, -0.1], [0.0, 1.0]],
        [[1.0, 0.0]],
    ],
)
def test_guarantee_3_rates_that_cannot_be_undone_are_refused(rates: list[list[float]]) -> None:
    groups = "ab" if len(rates[0]) == 2 else "abc"
    with pytest.raises(InputError, match="rates"):
        Reports(tuple(groups), tuple(map(tuple, rates)))
    assert Reports(("a", "b"), ((0.51, 0.49), (0.49, 0.51))).largest < MOST


def test_guarantee_4_a_draw_hangs_on_its_own_row_alone() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([1.0, 1.0, 1.0], size=200)
    drawn = SoftGroups(shares, ("a", "b", "c")).drawn(NoiseSource.seeded(1))
    other = shares.copy()
    other[17] = [0.0, 0.0, 1.0] if drawn[17] != "c" else [1.0, 0.0, 0.0]
    again = SoftGroups(other, ("a", "b", "c")).drawn(NoiseSource.seeded(1))
    assert np.flatnonzero(drawn != again).tolist() == [17]


def test_guarantee_4_draws_follow_the_distributions() -> None:
    """20,000 rows; a share within 5 standard errors, so a false alarm is one in a million for each
    of three."""
    shares = np.tile([0.2, 0.5, 0.3], (20_000, 1))
    drawn = SoftGroups(shares, ("a", "b", "c")).drawn(NoiseSource.seeded(2))
    for group, share in zip("abc", (0.2, 0.5, 0.3), strict=True):
        assert abs((drawn == group).mean() - share) < 5 * math.sqrt(share * (1 - share) / 20_000)
    sure = SoftGroups([[1.0, 0.0], [0.0, 1.0]] * 500, ("a", "b")).drawn(NoiseSource.secure())
    assert (sure == np.array(["a", "b"] * 500)).all()


@pytest.mark.parametrize(
    "shares", [[[0.5, 0.6]], [[1.2, -0.2]], [[np.nan, 1.0]], [[1.0]], [0.5, 0.5]]
)
def test_what_is_no_distribution_is_refused(shares: list[object]) -> None:
    with pytest.raises(InputError, match="probabilities of groups"):
        SoftGroups(np.array(shares, np.float64), ("a", "b"))


@pytest.mark.parametrize(
    "noise", [EXACT, CountNoise("discrete-laplace", 1.0)], ids=["flips", "flips and noise"]
)
def test_error_bars_cover_flips_and_noise_and_forgetting_the_flips_is_caught(
    noise: CountNoise,
) -> None:
    """100 draws at 95 %. More than 18 misses, of 5 expected at most, are a false alarm of 2e-6.
    Bars that take reports for the truth, the planted bug, miss the gap nearly always."""
    rng = np.random.default_rng(0)
    codes = np.arange(4000) % 40
    sizes = np.bincount(codes).astype(float)
    q = (codes % 5) / 5.0 * 0.5 + 0.5 * (codes % 2)
    truth = np.where(rng.uniform(size=4000) < 0.15 + 0.7 * q, 1, 0)
    law = np.stack([1 - q, q], axis=1)
    system = resolve([DemographicParity(0.05)], Cells((("f", "m"),), names=("sex",)), (0, 1))
    exact = GroupCounts(_counts(truth, codes), sizes, EXACT)
    labels = np.zeros(40, np.intp)
    wanted = [line.value for line in soft_values(exact, codes, labels, law, system, 0.05)]
    missed = planted = 0
    for _ in range(100):
        said = np.where(rng.uniform(size=4000) < ASKED.rates[0][1], 1 - truth, truth)
        raw = _counts(said, codes)
        if noise.kind != "none":
            r = math.exp(-1.0 / noise.scale)
            z = rng.geometric(1 - r, size=40) - rng.geometric(1 - r, size=40)
            raw = raw + np.stack([z, -z])
        for reports in (ASKED, None):
            found = soft_values(
                GroupCounts(raw, sizes, noise, reports), codes, labels, law, system, 0.05
            )
            wrong = any(
                not line.low <= value <= line.high
                for line, value in zip(found, wanted, strict=True)
            )
            missed, planted = (
                missed + (wrong and reports is not None),
                planted + (wrong and reports is None),
            )
    assert missed <= 18
    assert planted > 90


def _counts(groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.stack([np.bincount(codes[groups == g], minlength=40) for g in (0, 1)]).astype(float)
