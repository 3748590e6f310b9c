"""One release of counts: its plan against enumerated neighbours and the curator's draws, the law of
its noise, possible counts, and bounds of rates by enumeration of all outcomes."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from fairveil import DemographicParity, FalseNegativeRate
from fairveil.core.events import (
    Event,
    Gaussian,
    NonPrivate,
    NoOp,
    PoissonSampled,
    Pure,
    Repeated,
    compose,
)
from fairveil.core.noise import NoiseSource
from fairveil.core.promise import Promise
from fairveil.curator import Curator, Rows
from fairveil.facts import Cells
from fairveil.methods.certificate import layout_of
from fairveil.methods.counts import (
    EXACT,
    CountNoise,
    Pair,
    beside,
    consistent_counts,
    distribution_of_sum,
    fewest_people,
    lower_bounds,
    noise_of,
    onto_totals,
    plan_counts,
    possible_counts,
    upper_bounds,
)
from fairveil.privacy import delta, epsilon
from fairveil.statement.document import PrivacyStatement

PROMISES = [
    Promise(1.0, 0.0),
    Promise(0.1, 1e-6),
    Promise(1.0, 0.0, neighbours="replace-one"),
    Promise(3.0, 1e-6, "sensitive_features"),
]
CELLS = Cells((("f", "m"),), names=("sex",))
LAYOUT = layout_of([DemographicParity(0.1), FalseNegativeRate(0.2)], CELLS, (0, 1))
LAWS = [
    CountNoise("discrete-laplace", 0.7),
    CountNoise("discrete-laplace", 5.0),
    CountNoise("gaussian", 0.6),
    CountNoise("gaussian", 4.22),
]

# -- plans -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_no_neighbour_moves_the_counts_further_than_the_noise_covers(promise: Promise) -> None:
    """All data sets of three people, and all their neighbours: every person is one of (group,
    label, decision)."""

    def counts(people: list[tuple[int, int, int]]) -> np.ndarray:
        return np.bincount([LAYOUT.part_of[person] for person in people], minlength=LAYOUT.parts)

    kinds = list(itertools.product(range(2), repeat=3))
    furthest = 0
    for people in itertools.product(kinds, repeat=3):
        if promise.neighbours == "add-remove":
            others = [[*people[:i], *people[i + 1 :]] for i in range(3)]
        elif promise.protects == "records":
            others = [[*people[:2], kind] for kind in kinds]
        else:
            others = [[*people[:2], (group, *people[2][1:])] for group in range(2)]
        here = counts(list(people))
        moved = [int(np.abs(here - counts(other)).sum()) for other in others]
        furthest = max(furthest, *moved)
    assert furthest == plan_counts(promise).moved


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_the_plan_costs_nearly_all_of_the_promise_and_its_noise_is_what_the_curator_draws(
    promise: Promise,
) -> None:
    """3,000 codes of nobody: the counts are noise alone. A scale that is wrong by 1.3 would be
    seen; false alarm below 1e-6."""
    asked = plan_counts(promise)
    price = epsilon(asked.event, promise.delta, promise.neighbours)
    assert 0.99 * promise.epsilon <= price <= promise.epsilon
    assert noise_of(asked.event, promise.neighbours) == asked.noise
    rows = Rows.from_arrays(np.zeros((2, 1)), np.array([0, 1]), [np.array(["f", "m"])])
    with Curator(rows, promise, plan=asked.event, noise=NoiseSource.seeded(3)) as curator:
        codes = curator.attach_codes(
            lambda block: np.zeros(block.rows), 3000, columns_read={"features", "sensitive"}
        )
        counts = asked.release(curator, codes, "a test").raw[0]
        curator.finish()
    assert (counts == np.rint(counts)).all()
    seen, sd = counts[1:].std(), asked.noise.sd
    kurtosis = 6.0 if asked.noise.kind == "discrete-laplace" else 3.0
    assert abs(seen**2 / sd**2 - 1.0) < 5.5 * math.sqrt((kurtosis + 1.0) / 3000)
    assert PrivacyStatement.of_run(curator).events == (asked.event,)
    many = plan_counts(promise, times=3)
    assert epsilon(many.together, promise.delta, promise.neighbours) <= promise.epsilon
    assert many.together == Repeated(many.event, 3)


def test_counts_that_nobody_protects_are_exact() -> None:
    assert plan_counts(Promise(math.inf, 0.0)).event == NonPrivate()
    free = plan_counts(Promise(1.0, 0.0, "sensitive_features"), reads_groups=False)
    assert (free.event, free.noise.sd) == (NoOp(), 0.0)
    assert plan_counts(Promise(1.0, 0.0), reads_groups=False).noise.sd > 0
    assert noise_of(NonPrivate(), "add-remove") == noise_of(NoOp(), "add-remove") == EXACT
    assert noise_of(Pure(1.0), "add-remove") is None  # no release of counts has it


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_counts_beside_a_release_lose_no_more_than_its_gaussian_part(neighbours: str) -> None:
    promise = Promise(1.0, 1e-6, neighbours=neighbours)
    steps: Event = compose([Repeated(Gaussian(40.0), 60), Gaussian(6.5)])
    found = beside(promise, compose([steps, Pure(0.01)]))
    assert found is not None
    assert found.multiplier >= 1.0 / np.sqrt(60 / 40.0**2 + 1 / 6.5**2) * (1 - 1e-12)
    for at in (0.0, 0.3, 1.0):
        assert delta(found.event, at, neighbours) <= delta(steps, at, neighbours) * (1 + 1e-9)
    assert beside(promise, Pure(1.0)) is None
    assert beside(promise, compose([Gaussian(30.0), PoissonSampled(0.1, Gaussian(1.0))])) is None
    assert beside(Promise(1.0, 0.0, neighbours=neighbours), steps) is None


# -- the law of the noise --------------------------------------------------------------------------


def _drawn(law: CountNoise, shape: tuple[int, ...]) -> np.ndarray:
    stream = NoiseSource.seeded(5).stream("noise", 0)
    draw = stream.rounded_gaussian if law.kind == "gaussian" else stream.discrete_laplace
    return np.asarray(draw(law.scale, math.prod(shape)), np.float64).reshape(shape)


def _one(noise: CountNoise, value: int) -> float:
    if noise.kind == "gaussian":
        ends = stats.norm.cdf((np.array([value - 0.5, value + 0.5])) / noise.scale)
        return float(ends[1] - ends[0])
    r = math.exp(-1.0 / noise.scale)
    return (1 - r) / (1 + r) * r ** abs(value)


@pytest.mark.parametrize("noise", LAWS, ids=str)
def test_one_noise_is_that_of_the_sampler(noise: CountNoise) -> None:
    law = distribution_of_sum(noise, 1)
    for value in range(max(-12, law.low), min(12, law.reach) + 1):
        exact = pytest.approx(_one(noise, value), rel=1e-9, abs=1e-15)
        assert law.weights[value - law.low] == exact
    n = 200_000
    drawn = _drawn(noise, (n,))
    seen = np.array([(drawn == value).sum() for value in range(-3, 4)]) / n
    wanted = law.weights[-3 - law.low : 4 - law.low]
    # false alarm below 1e-7
    assert (np.abs(seen - wanted) < 6 * np.sqrt(wanted * (1 - wanted) / n) + 1e-6).all()


@pytest.mark.parametrize("noise", [LAWS[0], LAWS[2]], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_sums_are_those_of_all_tuples(noise: CountNoise, count: int) -> None:
    law, reach = distribution_of_sum(noise, count), 9
    exact = dict.fromkeys(range(-reach * count, reach * count + 1), 0.0)
    for values in itertools.product(range(-reach, reach + 1), repeat=count):
        exact[sum(values)] += math.prod(_one(noise, value) for value in values)
    for value in range(-4, 5):
        assert law.weights[value - law.low] == pytest.approx(exact[value], abs=1e-5)


@pytest.mark.parametrize("noise", [*LAWS, EXACT], ids=str)
@pytest.mark.parametrize("count", [1, 7, 40])
def test_no_probability_is_lost(noise: CountNoise, count: int) -> None:
    law = distribution_of_sum(noise, count)
    assert 1.0 <= law.weights.sum() + law.missed <= 1.0 + 1e-9
    assert law.variance == pytest.approx(count * distribution_of_sum(noise, 1).variance, rel=1e-6)
    for share in (0.1, 1e-3, 1e-8):
        cut, radius = law.cut(share), law.radius(share)
        assert 1.0 <= cut.weights.sum() + cut.missed <= 1.0 + 1e-9
        assert cut.missed <= law.missed + share * (1 + 1e-9)
        outside = law.weights[np.abs(law.values) > radius].sum() + law.missed
        inside = law.weights[np.abs(law.values) > radius - 1].sum() + law.missed
        assert outside <= share < inside or radius == 0


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("length", "walks"), [(1, 1), (16, 4), (64, 10)])
def test_walks_stay_within_their_bound_and_not_far_within(
    law: CountNoise, length: int, walks: int
) -> None:
    """20,000 draws at 0.05: an excess of 6 % or more has probability below 1e-9 if the bound
    holds."""
    noise = _drawn(law, (20_000, walks, length))
    ways = [np.cumsum(one, axis=-1) for one in (noise, noise[..., ::-1])]
    found = np.max([np.abs(way).max(axis=-1) for way in ways], axis=0).sum(axis=1)
    bound = law.walk_tail(length, walks, 0.05)
    assert (found > bound).mean() < 0.06
    assert bound < 3.0 * np.quantile(found, 0.95) + 2.0
    assert (found > bound / 2.5).mean() > 0.05  # a bound that were so much smaller would be false
    sizes = np.abs(noise[:, 0]).sum(axis=1)
    assert (sizes > law.sum_tail(length, 0.05)).mean() < 0.06
    assert (np.abs(noise[:, 0, 0]) > law.tail(0.05)).mean() < 0.06
    assert EXACT.walk_tail(length, walks, 0.05) == law.walk_tail(0, walks, 0.05) == 0.0


# -- possible counts -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_negative_and_numbers_are_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.uniform(0.05, 30.0, size=(3, 2, 1)), size=(3, 2, 24)).astype(float)
    raw = truth + np.rint(rng.normal(0, 4, size=truth.shape))
    alone = possible_counts(raw, None)
    assert (alone >= 0).all()
    assert np.allclose(alone.sum(axis=2), np.maximum(raw.sum(axis=2), 0.0))
    # what the bounds on errors of decisions need
    assert np.abs(alone - truth).sum() <= np.abs(raw - truth).sum() + 1e-9
    totals = truth.sum(axis=0)
    both = possible_counts(raw, totals)
    assert (both >= 0).all()
    assert np.allclose(both.sum(axis=0), totals)
    numbers = onto_totals(raw.sum(axis=2), totals.sum(axis=1))
    assert np.abs(both.sum(axis=2) - numbers).max() < 0.05 * numbers.max() + 1.0


def test_zeros_do_not_add_up() -> None:
    """A group of 100 rows in 64 bins: the mean of its number over releases is that of the truth,
    not 26 times the noise: 40 rows of noise each, so four standard errors of the mean are 9."""
    truth = np.zeros((1, 1, 64))
    truth[0, 0, 10] = 100.0
    raw = truth + np.random.default_rng(0).normal(0, 5, size=(300, 1, 1, 64))
    kept = [float(possible_counts(one, None).sum()) for one in raw]
    assert abs(np.mean(kept) - 100.0) < 12.0
    assert np.maximum(raw, 0.0).sum(axis=(1, 2, 3)).mean() > 200.0
    assert (possible_counts(np.full((2, 2, 5), -3.0), None) == 0).all()


@pytest.mark.parametrize("seed", range(8))
def test_consistent_counts_are_whole_add_up_and_are_the_nearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    released = rng.integers(-20, 40, size=(4, 6)).astype(float)
    for known in (None, np.array(77.0), rng.integers(0, 90, size=6).astype(float)):
        found = consistent_counts(released, known)
        assert (found >= 0).all()
        assert (found == np.rint(found)).all()
        wanted = max(released.sum(), 0.0) if known is None else known.sum()
        assert found.sum() == wanted
        if known is not None and known.ndim:
            assert (found.sum(axis=0) == known).all()
        assert (consistent_counts(found, known) == found).all()
    line = released[0]
    total = max(line.sum(), 0.0)
    least = optimize.minimize(
        lambda x: ((x - line) ** 2).sum(),
        np.full(6, total / 6),
        jac=lambda x: 2 * (x - line),
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(6)},
        method="SLSQP",
    )
    assert np.abs(consistent_counts(line[np.newaxis], None)[0] - least.x).max() < 1.0 + 1e-4


# -- bounds of a rate ------------------------------------------------------------------------------

LEVELS, MOST, BEYOND = (0.05, 0.3), 7, 4  # noises above it are counted as misses
RATES = (0.01, 0.08, 0.2, 0.37, 0.5, 0.64, 0.9, 0.97)
SMALL = [CountNoise("discrete-laplace", 0.45), CountNoise("gaussian", 0.55)]


@functools.cache
def _bounds(noise: CountNoise) -> np.ndarray:
    """Upper bounds of every outcome that can occur: (selected, others, level)."""
    ends = range(-BEYOND, MOST + BEYOND + 1)
    return np.array([[upper_bounds(Pair(s, m), noise, LEVELS) for m in ends] for s in ends])


@pytest.mark.parametrize("noise", SMALL, ids=str)
def test_no_rate_and_no_number_of_people_is_missed_too_often(noise: CountNoise) -> None:
    """P(the bound lies below p) of n people, with the mass outside of the table as misses."""
    law, table = distribution_of_sum(noise, 1), _bounds(noise)
    reached = range(-BEYOND, BEYOND + 1)
    weights = [law.weights[z - law.low] if abs(z) <= law.reach else 0.0 for z in reached]
    shifted = [np.convolve(one, weights) for one in np.eye(MOST + 1)]
    for at, level in enumerate(LEVELS):
        worst = 0.0
        for n, p in itertools.product(range(MOST + 1), RATES):
            kept = table[:, :, at] >= p
            held = [(np.outer(shifted[k], shifted[n - k]) * kept).sum() for k in range(n + 1)]
            worst = max(worst, 1.0 - float(stats.binom.pmf(range(n + 1), n, p) @ held))
        assert 0.3 * level <= worst <= level  # and not by being useless


def test_bounds_of_much_noise_miss_as_rarely_as_they_say_where_those_of_people_alone_do_not() -> (
    None
):
    """100 draws of 300 people at 5 %: 18 misses or more have probability below 1e-5. Wilson's
    interval of the same counts misses twice as often as it may."""
    noise, rng, p = CountNoise("gaussian", 9.0), np.random.default_rng(0), 0.1
    hits, away = rng.binomial(300, p, 2000), np.rint(rng.normal(0, 9.0, (2, 2000)))
    s, m = hits + away[0], 300 - hits + away[1]
    z, total, share = stats.norm.ppf(0.95), s + m, np.maximum(s, 0) / (s + m)
    wide = np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    wilson = (share + z**2 / (2 * total) + z * wide) / (1 + z**2 / total)
    assert (wilson < p).mean() > 0.1
    pairs = zip(s[:100], m[:100], strict=True)
    misses = sum(upper_bounds(Pair(*pair), noise, [0.05])[0] < p for pair in pairs)
    assert misses <= stats.binom.isf(1e-5, 100, 0.05)


def test_without_noise_it_is_clopper_and_pearson() -> None:
    for s, n in [(0, 12), (3, 40), (40, 40), (700, 20_000)]:
        upper = upper_bounds(Pair(s, n - s), EXACT, [0.025])[0]
        lower = lower_bounds(Pair(s, n - s), EXACT, [0.025])[0]
        high = stats.beta.ppf(0.975, s + 1, n - s) if s < n else 1.0
        low = stats.beta.ppf(0.025, s, n - s + 1) if s else 0.0
        assert high - 1e-9 <= upper <= high + 0.02 * (high - low)
        assert low + 1e-9 >= lower >= low - 0.02 * (high - low)


@pytest.mark.parametrize(
    "seen", [(9, 14, 2, 1), (30, 270, 1, 1), (90, 20, 1, 2), (-2, 40, 1, 1), (5, -3, 1, 1)]
)
@pytest.mark.parametrize("noise", [LAWS[0], CountNoise("gaussian", 1.3)], ids=str)
def test_all_rates_above_a_bound_are_refused_and_one_just_below_is_not(
    seen: tuple[int, int, int, int], noise: CountNoise
) -> None:
    """The p-value, by the sum over all outcomes of people and noise: nothing is assumed of how it
    runs, so a grid of rates above the bound finds none that is kept."""
    counted, level = Pair(*seen), 0.2
    (bound,) = upper_bounds(counted, noise, [level])
    first, second = (distribution_of_sum(noise, k) for k in seen[2:])
    total = counted.selected + counted.others
    whole = distribution_of_sum(noise, seen[2] + seen[3])
    radius = whole.radius(1e-5)
    people = range(int(max(0, total - radius)), int(max(0, total + radius)) + 1)

    def p_value(p: float) -> float:
        """The largest over the people that may be there."""
        found = 0.0
        for n in people:
            k = np.arange(n + 1)[:, np.newaxis, np.newaxis]
            moved = (1 - p) * (k + first.values[:, np.newaxis]) - p * (n - k + second.values)
            refused = moved <= (1 - p) * counted.selected - p * counted.others + 1e-9
            joint = np.outer(first.weights, second.weights)
            found = max(
                found, float(stats.binom.pmf(k[:, 0, 0], n, p) @ (refused * joint).sum((1, 2)))
            )
        return found

    if len(people) * len(first.values) * len(second.values) > 40_000:
        first, second = first.cut(1e-5), second.cut(1e-5)
        people = people[:: max(1, len(people) // 3)]
    for p in np.linspace(bound, 1.0, 5)[:-1]:
        assert bound == 1.0 or p_value(float(p)) <= level + 1e-4
    if min(seen) > 0:
        released = counted.selected / total
        assert p_value(released + 0.75 * float(bound - released)) > 0.95 * level


def test_few_people_are_told_from_none() -> None:
    noise = CountNoise("discrete-laplace", 1.0)
    assert fewest_people(Pair(1, 2), noise, 0.025) == 0
    assert 25 < fewest_people(Pair(10, 30), noise, 0.025) < 40
    assert fewest_people(Pair(1, 0), EXACT, 0.025) == 1
    law = distribution_of_sum(noise, 2)  # as often as said: a group of nobody is taken for somebody
    some = [fewest_people(Pair(int(z), 0), noise, 0.025) > 0 for z in law.values]
    assert law.weights[some].sum() <= 0.025
