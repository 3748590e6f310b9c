"""Group objectives on public rows: neighbours one by one, noise by simulation."""

from __future__ import annotations

import math
from typing import Any

import game_samples as g
import group_samples as s
import numpy as np
import pytest
from scipy import stats

from fairveil.core.promise import Promise
from fairveil.curator import Curator
from fairveil.errors import InputError, PrivacyError
from fairveil.fairness import EqualizedOdds
from fairveil.learning.descent import Reason
from fairveil.learning.group_objective.plan import plan_public
from fairveil.learning.group_objective.public_features import PublicSearch
from fairveil.learning.oracles import PARTS, Responses
from fairveil.privacy import NoiseSource
from fairveil.privacy import epsilon as price

ODDS = "equalized_odds:0.05"


def a_search(
    rows: Any,
    promise: Promise = g.GROUPS,
    objective: Any = "error",
    constraint: Any = ODDS,
    **how: Any,
) -> PublicSearch:
    problem = s.problem_of(rows, promise, objective, constraint, how.pop("mode", "product"))
    return plan_public(problem, Responses(), **how)


def exactly(rows: Any, found: Any, problem: Any) -> Any:
    """The mixture's losses, exactly."""
    tables = (
        np.array([g.exact_table(rows, rule, problem.ground.cells) for rule in found.rules])
        / rows.exact_count
    )
    return np.tensordot(found.weights, tables, axes=1)


# ---- guarantee 1
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "groups", "mode"),
    [(2, (2,), "product"), (3, (2, 2), "marginal"), (2, (2, 3), "product")],
)
@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_1_the_log_is_the_plan_and_costs_the_promise(
    classes: int, groups: tuple[int, ...], mode: str, weights: bool
) -> None:
    data = g.sample(1, 90, classes, groups)
    rows = g.rows_from(
        *data, classes, groups, np.random.default_rng(0).random(90) if weights else None
    )
    for objective, constraint in (
        ("error", EqualizedOdds(0.05, groups=mode)),
        ("gmean", "largest_group_loss:0.3"),
    ):  # type: ignore[arg-type]
        search = a_search(rows, g.GROUPS, objective, constraint, mode=mode, rounds=3)
        curator = s.curator_for(search, rows)
        found = search.run(curator)
        curator.log.reconcile([search.plan])
        spent = price(curator.log.events, g.GROUPS.delta, g.GROUPS.neighbours)
        assert 0.98 * g.GROUPS.epsilon <= spent <= g.GROUPS.epsilon * (1 + 1e-12)
        assert found.weights.sum() == pytest.approx(1.0)
        assert found.reason is Reason.ROUNDS
        with pytest.raises(PrivacyError):
            curator.answer([(search.ground.counts, 5.0)])


def test_guarantee_1_no_neighbour_is_further_away_than_the_plan() -> None:
    """At what a run asked, for every person and every other group; and one comes near, so that no
    noise is wasted."""
    data = g.sample(3, n=24)
    data[0][0] = [30.0, -30.0]
    rows = g.rows_from(*data)
    search = a_search(rows, objective="gmean", rounds=4)
    curator = s.curator_for(search, rows, of=s.Recorded)
    search.run(curator)
    noise = [
        search.counts_multiplier,
        search.oracle.regression.multiplier,
        search.settled_multiplier,
    ]
    planned = sum(z**-2 for z in noise) + 4 / search.audit_multiplier**2
    others = [g.with_person(data, i, group=(1 - data[2][0][i],)) for i in range(24)]
    found = [s.moved(curator.tape, rows, g.rows_from(*other), g.GROUPS) for other in others]
    assert 0.2 * planned <= max(found) <= planned * (1 + 1e-9)


def test_guarantee_1_without_privacy_nothing_is_planned_and_records_are_refused() -> None:
    rows = g.rows_from(*g.sample(1, 80))
    search = a_search(rows, g.EXACT, rounds=3)
    assert search.plan is None
    assert search.run(s.curator_for(search, rows)).objective_noise == 0.0
    with pytest.raises(InputError, match="public features"):
        a_search(rows, g.RECORDS)


# ---- guarantee 2
# --------------------------------------------------------------------------------------------------


def test_guarantee_2_two_data_sets_with_the_same_answers_get_the_same() -> None:
    """Every answer is told again by somebody who holds the public rows and other people's groups:
    the same to the bit."""
    X, y, A = g.sample(1, 200)
    rows = g.rows_from(X, y, A)
    other = g.rows_from(X, y, [np.roll(A[0], 7)])
    for objective, constraint in (("error", ODDS), ("gmean", [ODDS, "gini:0.1"])):
        search = a_search(rows, objective=objective, constraint=constraint, rounds=5)
        curator = s.curator_for(search, rows, 5, s.Recorded)
        first = search.run(curator)

        answers = iter(curator.told)

        class Teller(Curator):
            def answer(self, *given: Any, **named: Any) -> Any:
                super().answer(*given, **named)
                return next(answers)  # noqa: B023

        again = search.run(s.curator_for(search, other, 6, Teller))
        assert s.same(first, again)
        assert not s.same(first, search.run(s.curator_for(search, rows, 6)))


# ---- guarantees 3 and 4
# --------------------------------------------------------------------------------------------------


def test_guarantee_3_what_is_reported_is_right_on_average_and_as_far_off_as_it_says() -> None:
    """60 runs. False alarms: 1e-6 each. Twice or half the noise would be found."""
    rows = g.rows_from(*g.sample(2, 400))
    search = a_search(
        rows, Promise(1.0, 1e-5, "sensitive_features"), objective="largest_group_loss", rounds=8
    )
    posed = s.posed_exactly(rows, search.problem, 20.0)
    off = []
    for seed in range(60):
        found = search.run(s.curator_for(search, rows, seed))
        frequency = (found.losses - exactly(rows, found, search.problem))[1, 1, 1]
        off.append(frequency / (search.noise_of_mixture(posed, posed.chance) / 400))
    limit = stats.norm.isf(0.5e-6)
    # two groups are put onto a public total: half of the noise's square is left
    scale = math.sqrt(0.5)
    assert abs(np.mean(off)) * math.sqrt(60) < limit * scale
    squares = float(((np.array(off) / scale) ** 2).sum())
    assert stats.chi2.ppf(0.5e-6, 60) < squares < stats.chi2.isf(0.5e-6, 60)


def test_guarantee_4_no_mixture_of_what_was_met_is_better() -> None:
    """Without noise, against a linear program of its own over the same rules."""
    rows = g.rows_from(*g.sample(0, 1000))
    search = a_search(rows, g.EXACT, rounds=15)
    curator = s.curator_for(search, rows)
    state = search.init(curator)
    while search.stop(state) is None:
        state = search.step(curator, state)
    found = search.finish(curator, state, Reason.ROUNDS)
    rules = [atom.rule for atom in state.told.atoms.values()]
    tables = np.array([g.exact_table(rows, rule, rows.cells()) for rule in rules])
    best = g.program(tables, [EqualizedOdds(0.05)], rows.cells())
    losses = exactly(rows, found, search.problem)
    posed = s.posed_exactly(rows, search.problem, 20.0)
    assert float(posed.f.value(losses)) <= best + 10.0 / PARTS
    assert float(posed.excesses(losses).max()) <= 10.0 / PARTS


# ---- what fits find
# --------------------------------------------------------------------------------------------------


def tells(n: int, groups: int = 2) -> Any:
    """Numbers that tell the group, which tells the label."""
    rng = np.random.default_rng(2)
    A = rng.integers(groups, size=n)
    X = rng.normal(size=(n, 4))
    X[:, 3] = 1.5 * (2 * A - 1) + 0.5 * X[:, 3]
    X[:, 2] += A
    y = (0.8 * X[:, 0] + 0.4 * X[:, 1] + 1.2 * (2 * A - 1) + 0.7 * rng.logistic(size=n) > 0).astype(
        int
    )
    return X / 5.0, y, [A]


def test_a_mixture_ends_at_its_bound_or_inside_and_its_error_is_near_the_best() -> None:
    """The regression oracle ended at gaps of .061 where .05 was asked; the best mixture of many
    directions errs .27."""
    rows = g.rows_from(*tells(12_000))
    search = a_search(rows, Promise(1.0, 1e-6, "sensitive_features"))
    posed = s.posed_exactly(rows, search.problem, 20.0)
    ends = [
        exactly(rows, search.run(s.curator_for(search, rows, seed)), search.problem)
        for seed in range(3)
    ]
    assert np.mean([float(posed.excesses(one).max()) for one in ends]) <= 0.0
    assert max(float(posed.f.value(one)) for one in ends) < 0.30


def test_the_worst_groups_error_is_no_larger_than_that_of_the_models_of_everybody() -> None:
    """Three groups of one line, few rows: following the noisiest group made it a quarter larger."""
    rng = np.random.default_rng(4)
    n = 3000
    A = rng.choice(3, size=n, p=[0.6, 0.3, 0.1])
    X = np.clip((rng.normal(size=(n, 4)) + 0.5 * A[:, None] * [1, 0, 0, 0]) / 4.0, -1, 1)
    y = (4.0 * X @ [1.0, 0.8, -0.5, 0.0] + 0.5 * rng.logistic(size=n) > 0.3).astype(int)
    rows = g.rows_from(X, y, [A], 2, (3,))
    search = a_search(rows, Promise(1.0, 1e-6, "sensitive_features"), "largest_group_loss", None)
    posed = s.posed_exactly(rows, search.problem, 20.0)
    curator = Curator(rows, search.ground.promise, plan=search.plan, noise=NoiseSource.seeded(0))
    _, told = search.oracle.prepare(curator, search.ground, search.counts_multiplier)
    everybody = g.exact_table(rows, told.atoms[told.free].rule, rows.cells()) / n
    ends = [
        exactly(rows, search.run(s.curator_for(search, rows, seed)), search.problem)
        for seed in range(4)
    ]
    assert (
        np.mean([float(posed.f.value(one)) for one in ends])
        <= float(posed.f.value(everybody)) + 0.005
    )
