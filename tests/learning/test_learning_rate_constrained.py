"""RaCO-DP, corrected: guarantees of `learning/lagrangian/linear.py`, its privacy by enumerated
neighbours, its limits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from descent_samples import distance, others_of, rows_from, run, search_for, table
from scipy.optimize import minimize

from fairveil import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    ErrorRateParity,
    FalseNegativeRate,
    FalsePositiveRateParity,
    Promise,
    RateConstraint,
)
from fairveil.audit import Tape, Witness
from fairveil.core.cost import gaussian_mu
from fairveil.curator import FULL, Curator, Linear, Measurement, Poisson, Rows
from fairveil.errors import InputError
from fairveil.fairness import Event, PredictionRate
from fairveil.learning import LinearDescent, Reason, Settings, descend
from fairveil.learning.lagrangian import planning, players
from fairveil.privacy import NoiseSource
from fairveil.privacy import epsilon as price

INF = math.inf


# ---- privacy
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("companion", [False, True], ids=["alone", "with a companion"])
@pytest.mark.parametrize(
    "notion",
    [DemographicParity(0.02), EqualizedOdds(0.02), FalseNegativeRate(0.1)],
    ids=lambda n: n.kind,
)
@pytest.mark.parametrize("grown", [False, True], ids=["the least clip", "a grown clip"])
def test_no_neighbour_is_further_away_than_the_promise_in_one_step_or_in_a_whole_fit(
    neighbours, notion, companion, grown, monkeypatch
) -> None:
    """The privacy loss of a run is Gaussian with mu^2 = sum over releases of the squared distance,
    which may depend on what was released; for every enumerated neighbour it stays under the
    promise's mu^2, and the worst comes near it."""
    monkeypatch.setattr(players, "HEARD", 0.0)  # of so few rows the rounds would ask otherwise
    promise = Promise(1.0, 1e-5, neighbours=neighbours)
    X, y, A = table(n=40)
    # they contradict each other: one is at the clip all the time
    X[:2], y[:2], A[0][:2] = [30.0, -30.0, 30.0], [0, 1], 0
    rows = rows_from(X, y, A)
    tape: list[list[Measurement]] = []

    class Recorded(Curator):
        def answer(self, measurements, batch=FULL, *, purpose=""):
            tape.append(list(measurements))
            return super().answer(measurements, batch, purpose=purpose)

    # steps are small: noise leaves room
    settings = Settings(rounds=8, rate_most=1e-4 if grown else 1.0)
    told = {"public_rows": 40} if grown and not promise.rows_are_public else {}
    search = search_for(rows, promise, [notion], settings, companion=companion, **told)
    assert (search.planned.clip_at(40.0) > 2 * search.planned.clip) == grown
    public = search.planned.public_rows
    descend(
        Recorded(rows, promise, plan=search.plan, noise=NoiseSource.seeded(1), public_rows=public),
        search,
    )
    mu2 = gaussian_mu(promise.epsilon, promise.delta) ** 2
    steps = 1 / search.planned.gradient_multiplier**2 + 1 / search.planned.histogram_multiplier**2
    found = []
    for i in range(len(y)):
        for other in others_of(X, y, A, i, neighbours):
            releases = [distance(measurements, rows, other, promise) for measurements in tape]
            assert max(releases[1 : 1 + settings.rounds]) <= steps * (1 + 1e-9)
            found.append(sum(releases))
    assert max(found) <= mu2 * (1 + 1e-9)
    assert max(found) >= (0.5 if neighbours == "add-remove" else 0.2) * mu2


@pytest.mark.parametrize("companion", [False, True], ids=["alone", "with a companion"])
@pytest.mark.parametrize(
    "notion", [DemographicParity(0.02), EqualizedOdds(0.02)], ids=lambda n: n.kind
)
def test_a_change_of_a_sensitive_value_stays_under_the_promise(notion, companion) -> None:
    """The same with sensitive features alone protected: exact answers are equal, noisy ones within
    their noise."""
    promise = Promise(1.0, 1e-5, "sensitive_features")
    X, y, A = table(n=40)
    rows = rows_from(X, y, A)
    search = search_for(rows, promise, [notion], Settings(rounds=8), companion=companion)
    tape = Tape()
    heard = tape.around(Curator.answer)

    class Heard(Curator):
        def answer(self, measurements, batch=FULL, *, purpose=""):
            return heard(self, measurements, batch, purpose=purpose)

    descend(
        Heard(rows, promise, plan=search.plan, noise=NoiseSource.seeded(1), public_rows=len(y)),
        search,
    )
    mu = gaussian_mu(promise.epsilon, promise.delta)
    scores = []
    for i in range(len(y)):
        A2 = A[0].copy()
        A2[i] = 1 - A2[i]
        scores.append(Witness(rows, rows_from(X, y, [A2]), promise).score(tape))
    assert np.isfinite(scores).all()  # an exact answer that differed would be distinguished at once
    assert np.max(np.abs(scores)) <= mu * mu / 2 + 6 * mu  # the ratio is N(-mu^2/2, mu^2) at most
    assert np.max(np.abs(scores)) > 0


def test_guarantee_1_plans_hold_public_values_only() -> None:
    promise = Promise(1.0, 1e-5)
    plan_of = [
        search_for(rows_from(*table(seed, n)), promise, [EqualizedOdds(0.1)], Settings()).plan
        for seed, n in ((0, 50), (1, 900))
    ]
    assert plan_of[0] == plan_of[1]


def test_vacuous_constraints_are_not_in_the_plan() -> None:
    rows = rows_from(*table())
    promise = Promise(1.0, 1e-5)
    plain = search_for(rows, promise, [], Settings(), public_rows=300)
    vacuous = search_for(
        rows,
        promise,
        [DemographicParity(None), FalseNegativeRate(None)],
        Settings(),
        public_rows=300,
    )
    assert plain.plan == vacuous.plan
    assert vacuous.planned.system is None


def test_questions_tell_no_more_apart_than_constraints_need() -> None:
    rows = rows_from(*table(groups=(2, 3)), groups=(2, 3))
    promise = Promise(1.0, 1e-5)

    def shape(*notions):
        planned = search_for(rows, promise, notions, Settings()).planned
        return planned.cells is not None, planned.by_label, planned.system.shape

    assert shape(DemographicParity(0.1)) == (True, False, (6, 1, 2))
    assert shape(EqualizedOdds(0.1)) == (True, True, (6, 2, 2))
    assert shape(FalseNegativeRate(0.1)) == (False, True, (1, 2, 2))
    assert shape(FalseNegativeRate(0.1), DemographicParity(0.1)) == (True, True, (6, 2, 2))


# ---- many models
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [6.0, INF])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize("classes", [2, 3])
def test_guarantee_4_a_model_is_the_same_alone_and_among_others(epsilon, protects, classes) -> None:
    rows = rows_from(*table(n=500, classes=classes), classes=classes)
    promise = Promise(epsilon, 1e-5, protects)
    settings = Settings(rounds=15, most_rounds=40)
    gaps = (0.3, 0.1, 0.02, 0.05)
    known = {"public_rows": 500} if promise.is_private and not promise.rows_are_public else {}
    solo = [
        run(rows, promise, [EqualizedOdds(gap)], settings, seed=m, **known)[0]
        for m, gap in enumerate(gaps)
    ]
    one = search_for(rows, promise, [EqualizedOdds(gaps[0])], settings, **known)
    bounds = np.stack(
        [
            search_for(rows, promise, [EqualizedOdds(gap)], settings, **known).bounds[0]
            for gap in gaps
        ]
    )
    panel = LinearDescent(one.planned, bounds, many=True)
    whole = promise
    if promise.is_private:
        whole = Promise(
            price(panel.plan, promise.delta, promise.neighbours) * (1 + 1e-9),
            promise.delta,
            protects,
        )
    noise = [NoiseSource.seeded(m) for m in range(len(gaps))]
    curator = Curator(
        rows, whole, plan=panel.plan, noise=noise, public_rows=one.planned.public_rows
    )
    together = descend(curator, panel)
    for alone, beside in zip(solo, together, strict=True):
        assert np.array_equal(alone.weights, beside.weights)
        assert np.array_equal(alone.values, beside.values)
        assert np.array_equal(alone.counts, beside.counts)


def test_models_that_release_their_number_of_rows_have_clips_of_their_own() -> None:
    """Each follows from its own noisy count, so they cannot share a pass; with a clip that was
    passed they can."""
    rows, promise = rows_from(*table(n=500)), Promise(1.0, 1e-5)
    for clip, shared in ((None, False), (2.0, True)):
        planned = search_for(rows, promise, [DemographicParity(0.1)], Settings(clip=clip)).planned
        assert planned.is_shared is shared
    many = search_for(rows, promise, [DemographicParity(0.1)], Settings()).planned
    with pytest.raises(InputError, match="one after another"):
        LinearDescent(many, np.zeros((2, len(many.system))), many=True)


# ---- limits and accuracy
# -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_without_privacy_and_constraints_it_is_logistic_regression(classes) -> None:
    X, y, A = table(n=800, classes=classes)
    outcome, _, _ = run(rows_from(X, y, A, classes), Promise(INF, 1e-5))
    assert outcome.reason is Reason.CONVERGED
    design = np.column_stack([np.ones(len(y)), X])

    def loss(flat):
        W = flat.reshape(-1, 4)
        Z = design @ W.T
        Z = np.column_stack([np.zeros(len(y)), Z]) if classes == 2 else Z
        return float((np.logaddexp.reduce(Z, axis=1) - Z[np.arange(len(y)), y]).mean())

    best = minimize(loss, np.zeros(outcome.weights.size), method="BFGS", options={"gtol": 1e-7})
    assert loss(outcome.weights.ravel()) <= best.fun + 1e-7


def test_without_privacy_a_constraint_is_met_at_nearly_the_least_loss() -> None:
    """Judged by brute force: the best of a grid of three-weight models whose hard gap is within the
    bound."""
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 2000)
    X = np.clip(rng.normal(scale=0.4, size=(2000, 2)) + np.outer(a - 0.5, [0.5, 0.0]), -1, 1)
    y = (X @ [2.5, 2.0] + rng.logistic(size=2000) > 0).astype(int)
    rows = rows_from(X, y, [a])
    outcome, _, _ = run(rows, Promise(INF, 1e-5), [DemographicParity(0.1)])
    plain, _, _ = run(rows, Promise(INF, 1e-5))

    def value(bias, *slopes):
        z = bias + X @ np.array(slopes)
        gap = abs((z[a == 1] > 0).mean() - (z[a == 0] > 0).mean())
        return float(np.logaddexp(0, np.where(y == 1, -z, z)).mean()), gap

    axes = np.linspace(-1, 1, 21), np.linspace(-0.5, 3, 36), np.linspace(0, 4, 21)
    grid = [value(*weights) for weights in itertools.product(*axes)]
    best = min(loss for loss, gap in grid if gap <= 0.1)
    loss, gap = value(*outcome.weights[0])
    assert gap <= 0.1 + 0.015
    assert value(*plain.weights[0])[1] > 0.2  # it binds
    assert loss <= best + 0.02


def test_a_constraint_that_cannot_bind_changes_nothing_without_privacy() -> None:
    rows = rows_from(*table())
    plain, _, _ = run(rows, Promise(INF, 1e-5))
    loose, _, _ = run(rows, Promise(INF, 1e-5), [DemographicParity(0.95), FalseNegativeRate(0.999)])
    assert np.array_equal(plain.weights, loose.weights)
    assert plain.rounds == loose.rounds


NOTIONS = [
    DemographicParity(0.05),
    DemographicParity(0.05, compare="rest"),
    EqualizedOdds(0.08),
    EqualOpportunity(0.05, positive=1),
    FalsePositiveRateParity(0.05, positive=1),
    ErrorRateParity(0.05),
    FalseNegativeRate(0.3, positive=1),
    FalseNegativeRate(0.3, group="each", positive=1),
    BoundedGroupLoss(0.5),
    RateConstraint(
        (
            (1.0, PredictionRate(1, Event(groups=(0,)))),
            (-0.8, PredictionRate(1, Event(groups=(1,)))),
        ),
        bound=0.0,
    ),
]


@pytest.mark.parametrize("notion", NOTIONS, ids=range(len(NOTIONS)))
@pytest.mark.parametrize("classes", [2, 5])
def test_every_notion_comes_nearer_to_its_bound(notion, classes) -> None:
    groups = (2,)
    rows = rows_from(*table(n=4000, classes=classes, groups=groups), classes=classes, groups=groups)
    promise = Promise(INF, 1e-5)
    settings = Settings(most_rounds=300)
    outcome, _, search = run(rows, promise, [notion], settings)
    plain, _, _ = run(rows, promise, [], settings)
    system = search.planned.system
    curator = Curator(rows, promise)
    (histogram,) = curator.answer(
        [Measurement(search.planned.histogram(Linear(plain.weights)), 0.0)]
    )
    counts = outcome.counts[np.newaxis]
    before = system.exact_values(
        search.planned.by_class(histogram[np.newaxis], counts), counts, 1.0
    )[0]
    worst = float((before - system.bounds).max())
    assert float((outcome.values - outcome.bounds).max()) <= max(0.01, 0.5 * worst)


@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize(
    "promise",
    [Promise(2.0, 1e-5), Promise(2.0, 1e-5, "sensitive_features")],
    ids=["records", "sensitive"],
)
def test_several_sensitive_columns_and_combined_notions(mode, promise) -> None:
    rows = rows_from(*table(n=3000, groups=(2, 3)), groups=(2, 3))
    notions = [
        DemographicParity(0.1, groups=mode),
        EqualOpportunity(0.1, groups=mode, compare="rest"),
    ]
    outcome, curator, _ = run(rows, promise, notions, mode=mode)
    assert np.isfinite(outcome.weights).all()
    assert curator.statement().check() == []


def test_poisson_batches() -> None:
    rows = rows_from(*table(n=2000))
    outcome, curator, search = run(
        rows, Promise(2.0, 1e-5), [DemographicParity(0.1)], Settings(sampling_rate=0.1, rounds=80)
    )
    assert search.batch == Poisson(0.1)
    assert "Poisson" in str(curator.log.events[1])
    assert np.isfinite(outcome.weights).all()
    assert curator.statement().epsilon <= 2.0


# ---- errors
# --------------------------------------------------------------------------------------------------


def test_a_constraint_without_effect_on_the_gradient_is_refused() -> None:
    rows = rows_from(*table())
    constant = RateConstraint(
        tuple((1.0, PredictionRate(k, Event(groups=(0,)))) for k in (0, 1)), bound=0.9
    )
    with pytest.raises(InputError, match="gradient is zero"):
        search_for(rows, Promise(1.0, 1e-5), [constant], Settings())


def test_one_group_has_nobody_to_be_compared_with() -> None:
    X, y, A = table()
    rows = Rows.from_arrays(X, y, [A[0] * 0], classes=(0, 1), groups=[(0,)])
    with pytest.raises(InputError, match="two groups"):
        search_for(rows, Promise(1.0, 1e-5), [DemographicParity(0.1)], Settings())


def test_gaussian_noise_needs_a_delta() -> None:
    with pytest.raises(InputError, match="delta"):
        search_for(rows_from(*table()), Promise(1.0, 0.0), [DemographicParity(0.1)], Settings())


def test_what_cannot_be_met_is_said() -> None:
    """Both at once leave only models that say yes to nobody, which miss every positive."""
    rows = rows_from(*table(n=4000))
    never = RateConstraint(((1.0, PredictionRate(1, Event())),), bound=0.02)
    outcome, _, _ = run(rows, Promise(5.0, 1e-5), [never, FalseNegativeRate(0.1)])
    assert outcome.broken
    met, _, _ = run(rows, Promise(5.0, 1e-5), [DemographicParity(0.25)])
    assert not met.broken


@pytest.mark.parametrize("notions", [(), (DemographicParity(0.1),)], ids=["none", "parity"])
def test_numbers_are_scaled_right_though_the_public_number_of_rows_is_about_right_only(
    notions,
) -> None:
    X, y, A = table(n=5000)
    X[:, 0] = 0.1 * X[:, 0] + 0.7
    rows = rows_from(X, y, A)
    plan = planning.make(
        Promise(5.0, 1e-5),
        rows.layout,
        rows.cells(),
        notions,
        Settings(),
        public_rows=9000,
        scalable=True,
    )
    bounds = np.zeros((1, 0)) if plan.system is None else plan.system.bounds[np.newaxis]
    search = LinearDescent(plan, bounds)
    curator = Curator(
        rows, search.promise, plan=search.plan, noise=NoiseSource.seeded(0), public_rows=9000
    )
    state = search.init(curator.answer(search.first()))
    assert state.standard is not None
    centre, scale = state.standard
    assert np.allclose(centre, X.mean(axis=0), atol=0.03)
    assert np.allclose(scale, X.std(axis=0), atol=0.05)
    assert state.rows[0] == 9000.0
