"""Exponential sampling: guarantees of `methods.objectives.Sampling`, by exact
probabilities, one by one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from scipy.special import logsumexp

from fairveil.core import choices
from fairveil.core.events import DiscreteLaplace, Exponential, spelled_out
from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import PrivacyError
from fairveil.fairness import EqualizedOdds
from fairveil.fairness.objectives import GMean, SmoothedOddsOfPairs, SmoothedOddsOfRates
from fairveil.methods.objectives import Found, Sampling, plan_sampling
from fairveil.methods.oracles import (
    Labellings,
    LinearClass,
    Listed,
    directions,
    thresholds,
)
from fairveil.privacy import epsilon as price

ODDS = "equalized_odds:0.1"
PURE = {
    "add": Promise(2.0, 0.0),
    "replace": Promise(2.0, 0.0, neighbours="replace-one"),
    "groups": Promise(2.0, 0.0, "sensitive_features"),
}
SLOPES = np.random.default_rng(7).normal(size=(2, 2))


def listed() -> Listed:
    """Models made elsewhere, by how they decide for a block: public lines, and constants."""

    def line(block: Any, k: int) -> Any:
        return (np.array([math.cos(k), math.sin(k)]) @ block.numbers > 0.1 * k - 0.2).astype(int)

    return Listed(
        [
            *(lambda block, k=k: line(block, k) for k in range(5)),
            lambda block: np.ones(block.rows, int),
        ]
    )


CLASSES: dict[str, Any] = {
    "thresholds": thresholds,
    "directions": lambda layout: directions(layout, 12, 8),
    "labellings": Labellings,
    "list": lambda layout: listed(),
    "weights": lambda layout: LinearClass(np.random.default_rng(1).normal(size=(7, 1, 3))),
}


def sampling_of(
    rows: Any, promise: Promise, of: str = "thresholds", *given: Any, **options: Any
) -> Sampling:
    problem = s.problem_of(
        rows, promise, *(given or ("error", ODDS)), stated=options.pop("stated", None)
    )
    return plan_sampling(problem, CLASSES[of](rows.layout), **options)


def ran(rows: Any, sampling: Sampling, seed: int = 0) -> tuple[Any, Found, Any]:
    curator = s.curator_for(sampling, rows, seed, s.Recorded)
    found, certain = sampling.run(curator)
    assert curator.trouble() == ()
    return curator, found, certain


# ---- guarantee 1
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "of", "pure"),
    [
        *(("groups", of, False) for of in CLASSES),
        ("add", "weights", False),
        ("replace", "directions", False),
        ("groups", "labellings", True),
        ("add", "thresholds", True),
        ("replace", "list", True),
        ("add", "labellings", False),
    ],
)
def test_guarantee_1_the_log_is_the_plan_and_costs_the_promise(
    relation: str, of: str, pure: bool
) -> None:
    """At delta = 0 all of it is pure: counts and the report have discrete Laplace noise."""
    promise = (PURE if pure else g.PROMISES)[relation]
    rows = g.rows_from(*g.sample(1, 90))
    if of == "labellings" and relation != "groups":
        with pytest.raises(Exception, match="public features"):
            sampling_of(rows, promise, of)
        return
    for objective, constraint, stated in (("error", ODDS, None), ("gmean", [ODDS, "gini:0.1"], 90)):
        sampling = sampling_of(rows, promise, of, objective, constraint, stated=stated)
        curator, found, certain = ran(rows, sampling)
        curator.log.reconcile([sampling.plan])
        spent = price(curator.log.events, promise.delta, promise.neighbours)
        assert 0.98 * promise.epsilon <= spent <= promise.epsilon * (1 + 1e-12)
        kinds = [type(event) for event in spelled_out(sampling.plan)]
        assert kinds.count(Exponential) == 1
        assert (DiscreteLaplace in kinds) == pure
        assert math.isinf(price(curator.log.events, 0.0, promise.neighbours)) == (not pure)
        assert (len(found.rules), found.weights.tolist(), found.rounds) == (1, [1.0], 1)
        assert certain.f > 0
        with pytest.raises(PrivacyError):
            curator.answer([(sampling.ground.counts, 5.0)])


@pytest.mark.parametrize(("relation", "weights"), [("add", True), ("replace", False)])
def test_guarantee_1_with_classes_columns_and_weights(relation: str, weights: bool) -> None:
    data = g.sample(1, 90, 3, (2, 2))
    rows = g.rows_from(*data, 3, (2, 2), np.random.default_rng(0).random(90) if weights else None)
    for promise in (g.PROMISES[relation], *([] if weights else [PURE[relation]])):
        for mode in ("product", "marginal"):
            problem = s.problem_of(
                rows, promise, "gmean", EqualizedOdds(0.1, groups=mode), mode, 90
            )
            sampling = plan_sampling(problem, thresholds(rows.layout))
            curator, found, _ = ran(rows, sampling)
            curator.log.reconcile([sampling.plan])
            assert np.isfinite(found.objective_noise)


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


def log_law(
    rows: Any, sampling: Sampling, questions: Any, score: Any, stated: int | None
) -> tuple[Any, Any]:
    """Exact log probabilities of a choice, of the integer scores that are drawn from; and these as
    scores."""
    curator = Curator(rows, sampling.ground.promise, public_rows=stated)
    contest = curator._chooser.contest(
        tuple(again(questions, curator, sampling)), None, None, score
    )
    values = contest.rounded(contest.found())
    logits = -choices.rate(sampling.epsilon, contest.steps) * values
    return logits - logsumexp(logits), values


def again(questions: Any, curator: Curator, sampling: Sampling) -> Any:
    """The same candidates for another curator: handles are its own."""
    return (
        sampling.of.gather(curator, sampling.ground)[0]
        if isinstance(sampling.of, Listed)
        else questions
    )


def neighbours(data: Any, relation: str, sizes: tuple[int, ...]) -> Any:
    X, y, A = data
    cells = list(itertools.product(*map(range, sizes)))
    for i in range(0, len(y), 3):
        if relation == "add":
            keep = np.arange(len(y)) != i
            yield X[keep], y[keep], [a[keep] for a in A]
        elif relation == "groups":
            for cell in cells:
                yield g.with_person(data, i, group=cell)
        else:
            for label, cell in itertools.product((0, 1), cells):
                yield g.with_person(data, i, x=-X[i], label=label, group=cell)


BOLTZMANN = SmoothedOddsOfPairs(20.0), GMean().at_least(0.4)


@pytest.mark.parametrize(
    ("relation", "of", "asked"),
    [
        ("add", "thresholds", ("gmean", "gini:0.1")),
        ("add", "directions", ("error", ODDS)),
        ("add", "list", BOLTZMANN),
        ("replace", "thresholds", BOLTZMANN),
        ("replace", "weights", ("error", ODDS)),
        ("groups", "labellings", ("error", ODDS)),
        ("groups", "directions", BOLTZMANN),
        ("groups", "list", ("gmean", "gini:0.1")),
    ],
)
def test_guarantee_2_no_neighbour_changes_a_probability_by_more_than_e_to_the_epsilon(
    relation: str, of: str, asked: tuple[Any, Any]
) -> None:
    """Exactly, for neighbours of a small table, at the counts that a run released, at epsilon 200
    so that these say something; candidates are the same ones."""
    objective, constraint = asked
    promise = Promise(200.0, 1e-5, g.PROMISES[relation].protects, g.PROMISES[relation].neighbours)
    data = g.sample(3, n=24)
    rows = g.rows_from(*data)
    sampling = sampling_of(rows, promise, of, objective, constraint, stated=24)
    curator, _, _ = ran(rows, sampling, 2)
    ((questions, epsilon, _, score),) = curator.choices
    assert epsilon == sampling.epsilon
    stated = 24 if relation == "add" else None
    here, _ = log_law(rows, sampling, questions, score, stated)
    largest = 0.0
    for other in neighbours(data, relation, (2,)):
        there, _ = log_law(g.rows_from(*other), sampling, questions, score, stated)
        largest = max(largest, float(np.abs(here - there).max()))
    assert largest <= epsilon * (1 + 1e-9)
    assert largest > 0.01 * epsilon


@pytest.mark.parametrize("relation", list(g.PROMISES))
def test_guarantee_2_marginal_groups(relation: str) -> None:
    promise = Promise(200.0, 1e-5, g.PROMISES[relation].protects, g.PROMISES[relation].neighbours)
    data = g.sample(3, n=16, groups=(2, 2))
    rows = g.rows_from(*data, groups=(2, 2))
    problem = s.problem_of(
        rows, promise, "error", EqualizedOdds(0.1, groups="marginal"), "marginal", 16
    )
    sampling = plan_sampling(problem, thresholds(rows.layout))
    curator, _, _ = ran(rows, sampling, 2)
    ((questions, epsilon, _, score),) = curator.choices
    stated = 16 if relation == "add" else None
    here, _ = log_law(rows, sampling, questions, score, stated)
    found = []
    for other in neighbours(data, relation, (2, 2)):
        there, _ = log_law(g.rows_from(*other, groups=(2, 2)), sampling, questions, score, stated)
        found.append(float(np.abs(here - there).max()))
    assert 0.01 * epsilon < max(found) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("stated", [20, 200])
def test_guarantee_2_a_wrong_number_of_rows_costs_accuracy_alone(stated: int) -> None:
    """Under add-remove the stated number is only divided by: with ten times as many rows the bound
    holds as it did."""
    promise, data = Promise(200.0, 1e-5), g.sample(3, n=200)
    rows = g.rows_from(*data)
    sampling = sampling_of(rows, promise, "weights", "gmean", ODDS, stated=stated)
    curator, _, _ = ran(rows, sampling, 2)
    ((questions, epsilon, _, score),) = curator.choices
    here, _ = log_law(rows, sampling, questions, score, stated)
    X, y, A = data
    for i in range(0, 200, 5):
        keep = np.arange(200) != i
        there, _ = log_law(
            g.rows_from(X[keep], y[keep], [A[0][keep]]), sampling, questions, score, stated
        )
        assert np.abs(here - there).max() <= epsilon * (1 + 1e-9)


# ---- guarantee 3
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("relation", "confidence", "options"),
    [
        ("add", 0.9, {}),
        ("replace", 0.5, {}),
        ("groups", 0.5, {}),
        ("groups", 0.9, {"alpha": 0.2}),
        ("add", 0.5, {"penalty": 2.0}),
    ],
)
def test_guarantee_3_bounds_hold_but_for_the_chance_that_they_state(
    relation: str, confidence: float, options: Any
) -> None:
    """By exact probabilities of every decision: of those whose f or g is above its bound, over runs
    whose counts differ."""
    promise = Promise(6.0, 1e-5, g.PROMISES[relation].protects, g.PROMISES[relation].neighbours)
    rows = g.rows_from(*g.sample(1, 600))
    missed, loose = [], []
    for objective, constraint in (
        ("error", "equalized_odds:0.2"),
        ("gmean", "gini:0.2"),
        ("largest_group_loss", None),
    ):
        sampling = sampling_of(
            rows,
            promise,
            "thresholds",
            objective,
            constraint,
            stated=600,
            confidence=confidence,
            **options,
        )
        tables = s.tables_of(rows, sampling.of, sampling.problem)
        for seed in range(2):
            curator, found, certain = ran(rows, sampling, seed)
            ((questions, _, _, score),) = curator.choices
            law, _ = log_law(rows, sampling, questions, score, 600 if relation == "add" else None)
            posed = sampling.problem.pose(found.counts, sampling.counts_multiplier, found.penalty)
            scaled = tables * 600 / posed.rows
            f = posed.f.value(scaled)
            excess = np.array([posed.excesses(one).max(initial=-np.inf) for one in scaled])
            best = float(f[excess <= 0].min())
            wrong = (f > best + certain.f) | (excess > certain.g)
            missed.append(float(np.exp(law)[wrong].sum()))
            loose.append(certain.f)
            assert certain.confidence == confidence
    assert np.mean(missed) <= 1.0 - confidence
    assert max(missed) <= 1.0 - confidence
    assert min(loose) > 0.0


def test_guarantee_3_the_bound_on_scores_is_of_the_distribution_that_is_drawn_from() -> None:
    """Rounding of scores is part of it: with m equally bad decisions the chance is near what is
    stated, and not above."""
    rows = g.rows_from(*g.sample(1, 400))
    sampling = sampling_of(
        rows, Promise(4.0, 1e-5), "thresholds", "error", stated=400, confidence=0.9
    )
    curator, _, certain = ran(rows, sampling, 1)
    ((questions, epsilon, _, score),) = curator.choices
    contest = Curator(rows, sampling.ground.promise, public_rows=400)._chooser.contest(
        tuple(questions), None, None, score
    )
    step, m = math.ldexp(1.0, contest.exponent), sampling.of.size
    # the first score that is surely above the bound, rounding and all
    above = math.floor((certain.f + step) / step)
    worst = np.array([0, *([above] * (m - 1))])
    logits = -choices.rate(epsilon, contest.steps) * worst
    chance = 1.0 - math.exp(logits[0] - logsumexp(logits))
    assert 0.03 < chance <= 0.1


# ---- what is chosen
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "objective", "constraint"),
    [
        ("thresholds", "error", ODDS),
        ("directions", "gmean", "gini:0.1"),
        ("labellings", SmoothedOddsOfRates(30.0), "error:0.4"),
        ("list", "error", None),
    ],
)
def test_without_privacy_the_best_of_the_list_is_chosen(
    of: str, objective: Any, constraint: Any
) -> None:
    """Non-convex ones too."""
    rows = g.rows_from(*g.sample(0, 700))
    sampling = sampling_of(rows, g.EXACT, of, objective, constraint)
    _, found, certain = ran(rows, sampling)
    tables = s.tables_of(rows, sampling.of, sampling.problem)
    posed = s.posed_exactly(rows, sampling.problem, found.penalty)
    assert float(posed.h.value(found.losses)) == pytest.approx(
        float(posed.h.value(tables).min()), abs=1e-5
    )
    assert certain.f == 0.0
    assert found.objective_noise == 0.0


@pytest.mark.parametrize("relation", ["add", "groups"])
def test_the_noise_of_a_pure_report_is_what_it_says(relation: str) -> None:
    """f of the chosen decision, told 60 times: its distance from the truth in deviations has the
    size 1, within 45 %."""
    rows = g.rows_from(*g.sample(0, 500))
    sampling = sampling_of(
        rows, PURE[relation], "weights", "gmean", "largest_group_loss:0.4", stated=500
    )
    off, posed = [], s.posed_exactly(rows, sampling.problem, 1.0)
    for seed in range(60):
        _, found, _ = ran(rows, sampling, seed)
        table = g.exact_table(rows, found.rules[0], rows.cells()) / 500
        off.append((found.values - posed.values(table)[2]) / found.spread)
    assert np.std(np.array(off)[:, 0]) == pytest.approx(1.0, rel=0.45)


def test_groups_alone_without_groups_are_nothing_to_protect() -> None:
    rows = g.rows_from(*g.sample(1, 200))
    sampling = sampling_of(rows, g.GROUPS, "thresholds", "gmean", None)
    curator, found, certain = ran(rows, sampling)
    assert len(curator.log.events) == 0
    assert (certain.f, found.objective_noise) == (0.0, 0.0)
