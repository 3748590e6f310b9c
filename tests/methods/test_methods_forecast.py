"""What is foretold of a search: its releases are those of its plan, and its formulas agree with
what they are about."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairveil import _verdicts as verdicts
from fairveil.core.events import spelled_out
from fairveil.core.promise import Promise, Unit
from fairveil.facts import Cells, RowLayout
from fairveil.fairness import DemographicParity, EqualizedOdds, FalseNegativeRate, resolve
from fairveil.fairness.objectives import parse_constraint, parse_objective
from fairveil.methods import PrimalDual, PrimalState, Settings, forecast, postprocess
from fairveil.methods.forecast import Supposed
from fairveil.methods.game import plan as plan_game
from fairveil.methods.objective_loop import plan_loop
from fairveil.methods.objectives import Problem, plan_sampling
from fairveil.methods.oracles import Choice, Descent, GameInstance, Regression, thresholds
from fairveil.methods.primal_dual import planned

LAYOUT = RowLayout(3, (4,), (0, 1), (("f", "m"), ("x", "y", "z")), ("sex", "race"))
RECORDS, GROUPS = Promise(1.0, 1e-6), Promise(1.0, 1e-6, "sensitive_features")
BOTH = pytest.mark.parametrize("promise", [RECORDS, GROUPS], ids=["records", "groups"])


def cells(mode: Any = "product") -> Cells:
    return Cells(LAYOUT.sensitive, mode, LAYOUT.sensitive_names)


def descent(promise: Promise, notion: Any = None, **options: Any) -> PrimalDual:
    notions = [DemographicParity(0.05) if notion is None else notion]
    known = {"public_rows": 5000, "scalable": True, **options}
    return PrimalDual(planned(promise, LAYOUT, cells(), notions, **known))


def game(promise: Promise, oracle: Any) -> Any:
    return plan_game(
        GameInstance.of(promise, LAYOUT, cells(), [EqualizedOdds(0.1)], public_rows=5000), oracle
    )


def loop(promise: Promise, oracle: Any) -> Any:
    made = Problem.of(
        promise,
        LAYOUT,
        cells(),
        parse_objective("error"),
        parse_constraint("equalized_odds:0.1"),
        public_rows=5000,
    )
    return plan_sampling(made, thresholds(LAYOUT)) if oracle is None else plan_loop(made, oracle)


SEARCHES = [
    lambda promise: descent(promise),
    lambda promise: descent(promise, companion=True),
    lambda promise: descent(promise, EqualizedOdds(0.1)),
    lambda promise: game(promise, Regression()),
    lambda promise: game(promise, Descent()),
    lambda promise: game(promise, Choice(thresholds(LAYOUT))),
    lambda promise: loop(promise, Descent()),
    lambda promise: loop(promise, Regression()),
    lambda promise: loop(promise, None),
]


@BOTH
@pytest.mark.parametrize("make", SEARCHES)
def test_releases_are_those_of_the_plan(make: Any, promise: Promise) -> None:
    """Guarantee 3: every multiplier, as often as it is drawn."""
    search = make(promise)
    found = forecast.of(search, Supposed.of(LAYOUT, 5000))
    priced: Counter[float] = Counter()
    for event in spelled_out(search.plan):
        priced[
            round(float(getattr(event, "noise_multiplier", 0.0)) or -float(event.epsilon), 9)
        ] += 1  # type: ignore[attr-defined]
    told: Counter[float] = Counter()
    for line in found.releases:
        told[round(line.multiplier or -float(line.epsilon or 0.0), 9)] += line.times
    assert told == priced
    assert math.fsum(line.share for line in found.releases) == pytest.approx(1.0)


def test_shares_of_a_descent_are_the_shares_that_it_was_given() -> None:
    usual = Settings()
    found = {
        line.name: line.share
        for line in forecast.of(descent(RECORDS), Supposed.of(LAYOUT, 5000)).releases
    }
    assert found["rows by group"] == pytest.approx(usual.counts_share)
    assert found["means and deviations of the numbers"] == pytest.approx(usual.moments_share)
    assert found["scores by group, of the model that was found"] == pytest.approx(
        usual.thresholds_share
    )


def test_the_sensitivity_of_gradients_is_the_clip_that_a_fit_has_at_as_many_rows() -> None:
    search = descent(RECORDS)
    for rows in (500.0, 500_000.0):
        (told,) = {
            line.sensitivity
            for line in forecast.of(search, Supposed.of(LAYOUT, rows)).releases
            if "gradients, each" in line.name
        }
        assert told == pytest.approx(search.planned.clip_at(rows), rel=1e-6)
    assert search.planned.clip_at(500_000.0) > 2 * search.planned.clip_at(500.0)


def test_the_noise_is_what_the_plan_itself_reports() -> None:
    """Guarantee 2: at the same counts and decisions the two are one number."""
    search, supposed = descent(RECORDS), Supposed.of(LAYOUT, 5000, {"sex": (0.2, 0.8)}, (0.7, 0.3))
    found = forecast.of(search, supposed)
    counts = supposed.counts(cells(), by_label=False)
    decisions = supposed.decisions(counts)[..., 1:]
    reported = search.planned.noise_of(counts, decisions)
    assert [line.noise for line in found.lines] == reported(0).tolist()


def test_smaller_groups_have_more_noise_and_so_have_fewer_rows() -> None:
    search = descent(RECORDS)
    uneven = forecast.of(
        search, Supposed.of(LAYOUT, 5000, {"sex": (0.1, 0.9), "race": (0.2, 0.3, 0.5)})
    )
    assert 0 in max(uneven.lines, key=lambda line: line.noise).cells  # f and x, 2 % of the rows
    assert 5 in min(uneven.lines, key=lambda line: line.noise).cells
    fewer = forecast.of(
        search, Supposed.of(LAYOUT, 500, {"sex": (0.1, 0.9), "race": (0.2, 0.3, 0.5)})
    )
    assert all(
        less.noise > line.noise for less, line in zip(fewer.lines, uneven.lines, strict=True)
    )


@pytest.mark.parametrize(
    "notion", [DemographicParity(0.05), EqualizedOdds(0.05), FalseNegativeRate(0.2)]
)
def test_sampling_error_is_that_of_other_rows(notion: Any) -> None:
    """Against 4,000 drawn tables: a standard deviation is off by more than 7 % once in 10^9
    times."""
    layout = RowLayout(1, (), (0, 1), (("f", "m"),), ("sex",))
    supposed = Supposed.of(layout, 4000, {"sex": (0.3, 0.7)}, (0.6, 0.4))
    one = Cells((("f", "m"),), names=("sex",))
    system = resolve(notion, one, (0, 1))
    counts = supposed.counts(one, by_label=True)
    histogram = supposed.decisions(counts)
    drawn = (
        np.random.default_rng(0)
        .multinomial(4000, histogram.ravel() / 4000, size=4000)
        .reshape(-1, *histogram.shape)
    )
    seen = system.exact_values(drawn, drawn.sum(axis=-1)).std(axis=0)
    found = forecast._sampling(system, counts, histogram, Promise(1.0, 1e-6))
    np.testing.assert_allclose(found, seen, rtol=0.07)
    # who may have four rows that are alike
    of_persons = Promise(1.0, 1e-6, unit=Unit("patient", 4))
    np.testing.assert_allclose(
        forecast._sampling(system, counts, histogram, of_persons), 2.0 * found
    )


@pytest.mark.parametrize(("looks", "among"), [(1, 1), (2, 6), (100, 30)])
def test_bounds_are_verified_and_breaches_told_as_often_as_is_said(looks: int, among: int) -> None:
    """Of 4,000 draws, by both ends of what may be said: off by more than 1.6 points once in 10^5
    times. What can be verified leaves a fifth of the bound, and counts the noise that a search aims
    through."""
    line = forecast.Line("gap", 0.05, 0.02, None, (0, 1), among, looks)
    noise = np.random.default_rng(1).normal(scale=0.02, size=4000)

    def share(verdict: str, value: float, bound: float) -> float:
        told = [
            verdicts.of_noisy(value + one, bound, 0.02, among=among, looks=looks)
            for one in noise.tolist()
        ]
        return told.count(verdict) / len(told)  # type: ignore[arg-type]

    # no gap seldom looks like one
    assert (noise > line.enforceable).mean() == pytest.approx(0.0228, abs=0.01)
    least = line.verifiable * (1.0 + 1e-9)
    facts = [least], [0.02], [0.0], [0.02 * math.sqrt(2.0)]
    aim = least - verdicts.margins(*facts, looks=looks)[0]
    assert aim == pytest.approx(verdicts.LEAST * least)
    ends = aim + np.random.default_rng(2).normal(scale=0.02, size=4000)
    people = [
        verdicts.of_sampled(value + one, least, 0.02, 0.0, looks=looks)
        for value, one in zip(ends.tolist(), noise.tolist(), strict=True)
    ]
    assert people.count("met") / 4000 == pytest.approx(verdicts.CHANCE, abs=0.032)
    assert share("not met", 0.05 + line.breach, 0.05) == pytest.approx(0.95, abs=0.016)


@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0])
def test_the_response_of_a_descent_is_its_walk(rate: float) -> None:
    """Every kick walked by itself, by the very steps of a fit."""
    rounds, averaged, curvature = 60, 0.35, forecast.CURVATURE

    def walked(pull: float, kicked: int | None) -> float:
        walk = PrimalState.at(np.zeros((1, 1, 1)))
        for t in range(rounds):
            noise = 1.0 if t == kicked else 0.0
            gradient = curvature * (walk.weights - pull) + noise
            walk = walk.step(gradient, rate, 0.9, count=t >= (1.0 - averaged) * rounds)
        return float(walk.average[0, 0, 0])

    told, kicks = forecast.response(rate, 0.9, rounds, averaged)
    assert told == pytest.approx(walked(1.0, None))
    assert kicks == pytest.approx(float(np.linalg.norm([walked(0.0, t) for t in range(rounds)])))


def test_less_is_learnt_of_more_noise_and_nothing_of_noise_alone() -> None:
    plan = descent(RECORDS).planned
    added = [forecast.added_error(plan, rows) for rows in (100.0, 1000.0, 10_000.0)]
    assert sorted(added, reverse=True) == added
    assert 0.0 < added[-1] < 0.001
    assert added[0] > 0.05


def test_noise_of_a_secret_batch_is_a_row_s_whatever_the_relation() -> None:
    """A batch's multiplier is of one row's norm under both relations (`core.pricing`), a full
    pass's of what a row moves."""
    numbers = 200.0
    for batches, ratio in ((0.2, 1.0), (None, 2.0)):
        units, errors = [], []
        for neighbours in ("add-remove", "replace-one"):
            promise = Promise(1.0, 1e-6, neighbours=neighbours)
            plan = planned(
                promise, LAYOUT, None, [], Settings(sampling_rate=batches), public_rows=200
            )
            plan = replace(plan, gradient_multiplier=30.0)
            units.append(plan.unit_of(2.0))
            errors.append(forecast.added_error(plan, numbers))
        assert units[1] == ratio * units[0]
        assert (errors[1] == errors[0]) == (ratio == 1.0)


def test_what_is_not_listed_says_so_and_never_guesses() -> None:
    class Other:
        plan = descent(RECORDS).plan

    found = forecast.of(Other(), Supposed.of(LAYOUT, 100))
    assert not found.lines
    assert found.why
    assert len(found.releases) > 1


def test_marginal_groups_and_products_have_the_shares_of_their_columns() -> None:
    supposed = Supposed.of(LAYOUT, 1000, {"sex": (0.25, 0.75)}, (0.9, 0.1))
    assert supposed.guessed == ("race",)
    np.testing.assert_allclose(supposed.shares(cells()), np.repeat([0.25, 0.75], 3) / 3)
    np.testing.assert_allclose(
        supposed.shares(cells("marginal")), [0.25, 0.75, 1 / 3, 1 / 3, 1 / 3]
    )
    counts = supposed.counts(cells(), by_label=True)
    assert counts.sum() == pytest.approx(1000.0)
    np.testing.assert_allclose(supposed.decisions(counts).sum(axis=-1), counts)


def test_two_groups_with_public_totals_are_one_release() -> None:
    """A post-processor asks the counts of one group: its noise is in both, and moves a gap
    twice."""
    layout = RowLayout(0, (), (0, 1), (("f", "m"),), ("sex",))
    one = Cells((("f", "m"),), names=("sex",))
    system = resolve(DemographicParity(0.05), one, (0, 1))
    supposed = Supposed.of(layout, 4000, {"sex": (0.5, 0.5)}, (0.5, 0.5))
    both = [
        forecast.of_counts(postprocess.plan(promise, one), system, supposed)
        for promise in (RECORDS, GROUPS)
    ]
    assert [line.releases[0].sensitivity for line in both] == [1.0, 1.0]
    assert both[1].lines[0].noise == pytest.approx(
        both[0].lines[0].noise * math.sqrt(2.0), rel=0.01
    )
