"""DP-FERMI, corrected: its price and log, its privacy by enumerated neighbours, what the penalty
does, many models at once."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from descent_samples import distances

from covering import pairs
from fairveil import Promise
from fairveil.audit import Tape, Witness
from fairveil.core.cost import gaussian_mu
from fairveil.core.events import NoOp, compose, spelled_out
from fairveil.core.passes import public_scales, totals
from fairveil.core.pricing import is_free
from fairveil.curator import Curator, GradientSum, Linear, Measurement, PredictionHistogram, Rows
from fairveil.errors import InputError
from fairveil.facts import Cells
from fairveil.fairness.dependence import Dependence
from fairveil.methods import (
    Penalty,
    PenaltySettings,
    PrimalDual,
    Reason,
    Settings,
    descend,
    fermi,
    in_step,
)
from fairveil.methods.descent import plan_of, traced
from fairveil.methods.primal_dual import usual_clip
from fairveil.privacy import NoiseSource
from fairveil.privacy import epsilon as price
from fairveil.statement.document import PrivacyStatement

NOTIONS = fermi.NOTIONS
PROMISES = {
    "add-remove": Promise(1.0, 1e-5),
    "replace-one": Promise(1.0, 1e-5, neighbours="replace-one"),
    "sensitive features": Promise(1.0, 1e-5, "sensitive_features"),
}
EXACT = Promise(math.inf, 1e-5)


def table(seed: int = 0, n: int = 300, classes: int = 2, groups: tuple[int, ...] = (2,)):
    """Numbers, labels and sensitive columns that go together."""
    rng = np.random.default_rng(seed)
    A = [rng.integers(0, size, n) for size in groups]
    X = rng.normal(scale=0.6, size=(n, 3))
    for j, a in enumerate(A):
        X[:, j] += a / max(groups[j] - 1, 1)
    scores = X @ rng.normal(size=(3, classes)) + rng.gumbel(size=(n, classes))
    scores += np.outer(X.sum(axis=1), np.linspace(0.0, 3.0, classes))
    return X, scores.argmax(axis=1), A


def rows_from(X, y, A, classes: int = 2, groups: tuple[int, ...] = (2,)) -> Rows:
    return Rows.from_arrays(
        X, y, A, classes=range(classes), groups=[tuple(range(size)) for size in groups]
    )


def search_for(
    rows: Rows,
    promise: Promise,
    strength: float = 1.0,
    notion: str = "demographic_parity",
    settings: Settings | None = None,
    mode: str = "product",
    penalty: PenaltySettings | None = None,
    **more: Any,
) -> PrimalDual:
    stated = more.pop("public_rows", None)
    public = rows.exact_count if promise.rows_are_public or not promise.is_private else stated
    positive = 1 if notion == "equal_opportunity" else None
    made = fermi.search_for(
        promise,
        rows.layout,
        rows.cells(mode),
        fermi.notion_of(notion, positive, mode),
        strength,
        settings,
        penalty,
        public_rows=public,
        **more,
    )
    assert isinstance(made, PrimalDual)
    return made


def curator_for(
    rows: Rows, search: PrimalDual, seed: int = 0, kind: type[Curator] = Curator
) -> Curator:
    public = search.planned.public_rows
    return kind(
        rows, search.promise, plan=search.plan, noise=NoiseSource.seeded(seed), public_rows=public
    )


def run(
    rows: Rows,
    promise: Promise,
    strength=1.0,
    notion="demographic_parity",
    settings=None,
    seed=0,
    **more,
):
    search = search_for(rows, promise, strength, notion, settings, **more)
    curator = curator_for(rows, search, seed)
    return search.run(curator), curator, search


def settings(promise: Promise, **given: Any) -> Settings:
    return replace(fermi.usual_settings(promise), **given)


def recorded(rows: Rows, search: PrimalDual, seed: int = 0) -> tuple[Any, Tape]:
    """A run, and all that was asked and answered in it."""
    tape = Tape()
    heard = tape.around(Curator.answer)

    class Heard(Curator):
        def answer(self, *given: Any, **named: Any) -> Any:
            return heard(self, *given, **named)

    return search.run(curator_for(rows, search, seed, Heard)), tape


# ---- the plan
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("relation", "notion", "rate"), pairs(PROMISES, NOTIONS, [None, 0.2]))
def test_a_plan_costs_the_promise_and_the_log_is_the_plan(relation, notion, rate) -> None:
    promise = PROMISES[relation]
    rows = rows_from(*table())
    _, curator, search = run(
        rows, promise, 2.0, notion, settings(promise, rounds=12, sampling_rate=rate)
    )
    assert search.plan is not None
    paid = price(search.plan, promise.delta, promise.neighbours)
    assert 0.97 * promise.epsilon <= paid <= promise.epsilon * (1 + 1e-9)
    assert list(spelled_out(compose(curator.log.events))) == list(spelled_out(search.plan))
    # counts once, before the first round; decisions once, after the last
    assert len(curator.log) == 1 + 12 + 1
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert statement.epsilon <= promise.epsilon * (1 + 1e-9)
    words = "Poisson" if rate else "all rows"
    assert all(words.lower() in entry.batch.lower() for entry in curator.log.entries[1:-1])


def test_plans_and_searches_are_made_of_public_values() -> None:
    promise = PROMISES["replace-one"]
    one, other = (search_for(rows_from(*table(seed)), promise) for seed in (0, 1))
    assert one.plan == other.plan
    assert one.planned.gradient_multiplier == other.planned.gradient_multiplier
    public = PROMISES["add-remove"]
    one, other = (search_for(rows_from(*table(seed, n)), public) for seed, n in ((0, 50), (1, 900)))
    assert one.plan == other.plan


@pytest.mark.parametrize("relation", PROMISES)
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_no_share_of_a_group_is_released_without_noise(relation, mode) -> None:
    """All that a search is told of rows is answers. Every answer that reads the sensitive column
    has an event with noise in the log; those without an event do not read it."""
    promise = PROMISES[relation]
    X, y, A = table(groups=(2, 3))
    rows = rows_from(X, y, A, groups=(2, 3))
    search = search_for(rows, promise, 2.0, "equalized_odds", settings(promise, rounds=5), mode)
    outcome, tape = recorded(rows, search)
    noisy = [
        release for release in tape.heard if not isinstance(_event(release, rows, promise), NoOp)
    ]
    assert len(noisy) == 1 + 5 + 1
    assert list(spelled_out(compose(_event(r, rows, promise) for r in noisy))) == list(
        spelled_out(search.plan)
    )
    for release in tape.heard:
        for measurement in release.measurements:
            if "sensitive" in measurement.question.reads:
                assert measurement.multiplier > 0
                assert not is_free(measurement.question, promise)
    assert np.array_equal(outcome.counts, tape.heard[0].answers[0].reshape(outcome.counts.shape))


@pytest.mark.parametrize("relation", PROMISES)
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_every_cells_count_has_noise_of_its_own_of_the_planned_size(relation, mode) -> None:
    """200 runs' first answers: five standard deviations of the estimates, so one in 10,000 fresh
    seeds fails at most, and noise that is wrong by a factor of 1.5, or shared by two cells, is
    caught."""
    promise = PROMISES[relation]
    X, y, A = table(groups=(2, 3))
    rows = rows_from(X, y, A, groups=(2, 3))
    search = search_for(rows, promise, 2.0, "equalized_odds", mode=mode)
    counts = [
        curator_for(rows, search, seed).answer(search.planned.first())[0].ravel()
        for seed in range(200)
    ]
    exact = np.zeros((rows.cells(mode).count, 2))
    for line in rows.cells(mode).ids(np.stack(A)):
        np.add.at(exact, (line, y), 1.0)
    (measurement,) = search.planned.first()
    size = measurement.multiplier * measurement.question.scale(rows.layout, None).bound.sensitivity(
        promise.neighbours
    )
    off = np.array(counts) - exact.ravel()
    assert off.std(axis=0) == pytest.approx(np.full(exact.size, size), rel=0.25)
    assert np.abs(off.mean(axis=0)).max() <= 5 * size / math.sqrt(200)
    between = np.corrcoef(off.T)[np.triu_indices(exact.size, 1)]
    assert np.abs(between).max() <= 0.36


def _event(release: Any, rows: Rows, promise: Promise) -> Any:
    from fairveil.curator import describe

    return describe(release.measurements, rows.layout, promise, release.batch)


@pytest.mark.parametrize("relation", PROMISES)
def test_two_neighbours_differ_in_noisy_answers_alone(relation) -> None:
    """The same noise on both: counts differ by the one person (as far as their bound says), and
    what is asked next differs through those answers alone. Fed with the other's answers the search
    asks the very same."""
    promise = PROMISES[relation]
    X, y, A = table()
    rows = rows_from(X, y, A)
    if relation == "add-remove":
        other = rows_from(X[1:], y[1:], [A[0][1:]])
    else:
        A2 = A[0].copy()
        A2[0] = 1 - A2[0]
        other = rows_from(X, y, [A2])
    heard = []
    for side in (rows, other):
        search = search_for(side, promise, 2.0, settings=settings(promise, rounds=4))
        heard.append((search, recorded(side, search)[1].heard))
    (one, ours), (two, theirs) = heard
    assert len(ours) == len(theirs)
    moved = np.abs(ours[0].answers[0] - theirs[0].answers[0]).ravel()
    right = [0.0, 1.0] if relation == "add-remove" else [1.0, 1.0]
    assert sorted(moved) == pytest.approx(right, abs=1e-9)
    for search in (one, two):
        method = search.search()
        next(method)
        for release, following in itertools.pairwise(ours[:-1]):
            wanted = method.send(release.answers)
            for mine, was in zip(wanted.measurements, following.measurements, strict=True):
                assert np.array_equal(mine.question.model.array, was.question.model.array)
                if getattr(was.question, "cell_costs", None) is not None:
                    assert np.array_equal(mine.question.cell_costs, was.question.cell_costs)


# ---- neighbours
# --------------------------------------------------------------------------------------------------


def pressed(search: PrimalDual, rows: Rows, seed: int = 3) -> tuple[list[Measurement], np.ndarray]:
    """A round's asks at a model and a W that are not 0; and the costs."""
    rng, planned = np.random.default_rng(seed), search.planned
    counts, about = planned.read_counts(curator_for(rows, search).answer(planned.first()))
    player = search.player(counts, about)
    assert isinstance(player, Penalty)
    costs, ease = player.costs(rng.normal(size=player.shape))
    gradient, *histograms = search.round_measurements(planned.clip)
    weights = rng.normal(scale=0.5, size=planned.model().weights.shape)
    model = planned.model(weights)
    asked = gradient.about(
        gradient.question.at(model=model, cell_costs=costs, loss_weight=np.array([ease]))
    )
    return [asked, *[one.about(one.question.at(model=model)) for one in histograms]], costs


@pytest.mark.parametrize(
    ("relation", "notion", "strength"), pairs(["add-remove", "replace-one"], NOTIONS, [0.3, 20.0])
)
def test_no_neighbour_is_further_away_in_a_round_than_its_noise_says(
    relation, notion, strength
) -> None:
    """Loss and penalty are one gradient of one row, clipped together, at any strength."""
    promise = PROMISES[relation]
    X, y, A = table(n=25)
    X[0] *= 100.0
    rows = rows_from(X, y, A)
    search = search_for(rows, promise, strength, notion, settings(promise, rounds=8))
    measurements, costs = pressed(search, rows)
    assert np.abs(costs).max() > 0.01
    assert [measurement.question.kind for measurement in measurements] == [
        GradientSum,
        PredictionHistogram,
    ]
    assert measurements[0].question.loss == "log"
    limit = 1 / search.planned.gradient_multiplier**2 + 1 / search.planned.histogram_multiplier**2
    others = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        if relation == "add-remove":
            others.append(rows_from(X[keep], y[keep], [A[0][keep]]))
            continue
        for label, group, size in itertools.product((0, 1), (0, 1), (-50.0, 50.0)):
            X2, y2, A2 = X.copy(), y.copy(), A[0].copy()
            X2[i], y2[i], A2[i] = size * np.sign(X[i]), label, group
            others.append(rows_from(X2, y2, [A2]))
    found = distances([measurements], rows, others, promise)
    assert found.max() <= limit * (1 + 1e-9)
    assert found.max() >= limit / 1.5**2


def public_parts(
    measurements: list[Measurement], rows: Rows
) -> list[tuple[np.ndarray, float, bool]]:
    """With features public: each part of a joint answer in its own units, its bound, and whether it
    is exact."""
    out = []
    for measurement in measurements:
        question = measurement.question
        questions = [(question, "sensitive" not in question.reads)]
        if question.kind is GradientSum:
            loss = question.but(cells=None, cell_costs=None, clip=None)
            questions = [(question.but(loss="none"), False), (loss, True)]
        for part, free in questions:
            scales = public_scales(part, rows, exact=free)
            (sums,) = totals([(part, scales)], rows, rows.blocks())
            out.append((sums[0] * scales[0].unit, scales[0].bound.diameter, free))
    return out


@pytest.mark.parametrize(
    ("notion", "sizes", "mode"),
    pairs(NOTIONS, [(2, (2,)), (2, (4,)), (3, (2, 3))], ["product", "marginal"]),
)
def test_with_features_public_no_change_of_group_moves_more_than_the_public_maximum_and_some_moves_as_much(
    notion, sizes, mode
) -> None:
    promise, (classes, groups) = PROMISES["sensitive features"], sizes
    X, y, A = table(n=8, classes=classes, groups=groups)
    rows = rows_from(X, y, A, classes, groups)
    search = search_for(rows, promise, 3.0, notion, settings(promise, rounds=8, clip=1e6), mode)
    measurements, costs = pressed(search, rows)
    cells, before = rows.cells(mode), public_parts(measurements, rows)
    # costs, loss, histogram, its sums over groups
    assert [free for _, _, free in before] == [False, True, False, True]
    most = np.zeros(4)
    for i in range(len(y)):
        for values in itertools.product(*(range(size) for size in groups)):
            B = [a.copy() for a in A]
            for b, value in zip(B, values, strict=True):
                b[i] = value
            after = public_parts(measurements, rows_from(X, y, B, classes, groups))
            for k, ((one, bound, free), (two, other, _)) in enumerate(
                zip(before, after, strict=True)
            ):
                moved = float(np.linalg.norm(one - two))
                assert bound == other  # even the bound knows nothing of anybody's group
                assert not free or np.array_equal(one, two)
                assert moved <= bound * (1 + 1e-12)
                most[k] = max(most[k], moved)
    # The maximum over pairs of groups, by hand: from where everybody is, one change reaches only
    # the pairs with that group.
    model, whole = measurements[0].question.model, np.column_stack([np.ones(len(y)), X])
    z = whole @ model.array[0].T
    p = np.exp(
        z
        - np.logaddexp.reduce(np.column_stack([0 * z, z]) if classes == 2 else z, axis=1)[
            :, np.newaxis
        ]
    )
    p = np.column_stack([1 - p[:, 0], p]) if classes == 2 else p
    all_codes = np.array(list(itertools.product(*(range(size) for size in groups)))).T
    largest = 0.0
    for i in range(len(y)):
        label = y[i] if costs.shape[1] > 1 else 0
        of_values = costs[cells.ids(all_codes), label].sum(axis=0)  # (values, classes)
        for one, two in itertools.combinations(of_values, 2):
            pull = p[i] * ((one - two) - p[i] @ (one - two))
            pull = pull[1:] if classes == 2 else pull
            largest = max(largest, float(np.linalg.norm(pull) * np.linalg.norm(whole[i])))
    assert before[0][1] >= largest * (1 - 1e-9)
    if mode == "product" or len(groups) == 1:
        assert before[0][1] == pytest.approx(largest, rel=1e-6)
    if groups == (2,):  # one change reaches the only pair there is
        assert most[0] == pytest.approx(before[0][1], rel=1e-6)


@pytest.mark.parametrize("clip", [0.05, 0.4])
def test_with_features_public_a_clip_bounds_the_penaltys_part_alone(clip) -> None:
    promise = PROMISES["sensitive features"]
    X, y, A = table(n=12)
    rows = rows_from(X, y, A)
    search = search_for(rows, promise, 30.0, settings=settings(promise, rounds=8, clip=clip))
    measurements, _ = pressed(search, rows)
    before = public_parts(measurements, rows)
    assert before[0][1] <= 2 * clip * (1 + 1e-8)
    found = 0.0
    for i in range(len(y)):
        B = A[0].copy()
        B[i] = 1 - B[i]
        after = public_parts(measurements, rows_from(X, y, [B]))
        found = max(found, float(np.linalg.norm(before[0][0] - after[0][0])))
        assert np.array_equal(before[1][0], after[1][0])
    assert found <= before[0][1] * (1 + 1e-12)
    whole = public_parts([Measurement(measurements[0].question.but(clip=1e9), 1.0)], rows)[1][0]
    assert before[1][0] == pytest.approx(whole)  # the loss is not clipped


@pytest.mark.parametrize("relation", PROMISES)
def test_a_whole_fit_tells_neighbours_apart_no_better_than_its_promise(relation) -> None:
    """The log likelihood ratio of a run is N(-mu^2 / 2, mu^2) at most; an exact answer that
    differed would make it infinite."""
    promise = PROMISES[relation]
    X, y, A = table(n=40)
    X[0] = [30.0, -30.0, 30.0]
    rows = rows_from(X, y, A)
    search = search_for(rows, promise, 3.0, "equalized_odds", settings(promise, rounds=8))
    _, tape = recorded(rows, search)
    mu = gaussian_mu(promise.epsilon, promise.delta)
    scores = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        B = np.where(keep, A[0], 1 - A[0])
        if relation == "add-remove":
            other = rows_from(X[keep], y[keep], [A[0][keep]])
        elif relation == "replace-one":
            other = rows_from(np.where(keep[:, np.newaxis], X, -X), np.where(keep, y, 1 - y), [B])
        else:
            other = rows_from(X, y, [B])
        scores.append(Witness(rows, other, promise).score(tape))
    assert np.isfinite(scores).all()
    assert np.max(np.abs(scores)) <= mu * mu / 2 + 6 * mu
    assert np.max(np.abs(scores)) > 0


@pytest.mark.parametrize("relation", PROMISES)
@pytest.mark.parametrize("way", ["strength 0", "no cells"])
def test_without_a_penalty_nothing_is_asked_about_groups(relation, way) -> None:
    promise = PROMISES[relation]
    rows = rows_from(*table())
    public = rows.exact_count if promise.rows_are_public else None
    cells, strength = (rows.cells(), 0.0) if way == "strength 0" else (None, 5.0)
    notion = fermi.notion_of("demographic_parity")
    search = fermi.search_for(
        promise,
        rows.layout,
        cells,
        notion,
        strength,
        settings(promise, rounds=6, most_rounds=20),
        public_rows=public,
    )
    assert isinstance(search, PrimalDual)
    outcome, tape = recorded(rows, search)
    assert all(
        "sensitive" not in measurement.question.reads
        for release in tape.heard
        for measurement in release.measurements
    )
    assert outcome.names == ()
    if relation == "sensitive features":
        assert isinstance(search.plan, NoOp) or not list(spelled_out(search.plan))
    else:
        assert price(search.plan, promise.delta, promise.neighbours) <= promise.epsilon * (1 + 1e-9)


# ---- what the penalty does
# -----------------------------------------------------------------------------------------------


def soft_information(
    rows: Rows, weights, notion: str, mode: str = "product", classes: int = 2
) -> float:
    """The exact mutual information of a model's soft predictions and the groups, as the notion has
    it."""
    cells = rows.cells(mode)
    by_label = notion != "demographic_parity"
    curator = Curator(rows, EXACT)
    asked = PredictionHistogram(Linear(weights), cells, "soft", by_label=by_label)
    from fairveil.curator import CellCounts

    answer, counts = curator.answer([(asked, 0.0), (CellCounts(cells, by_label), 0.0)])
    labels = classes if by_label else 1
    counts = counts.reshape(cells.count, labels)
    histogram = answer.reshape(cells.count, labels, -1)
    if classes == 2:
        histogram = np.concatenate([counts[..., np.newaxis] - histogram, histogram], axis=-1)
    chosen = (1,) if notion == "equal_opportunity" else tuple(range(labels))
    dependence = Dependence.of(cells, chosen, weighted=notion != "equal_opportunity")
    return float(dependence.information(histogram, counts))


@pytest.mark.parametrize("notion", NOTIONS)
def test_without_noise_information_falls_as_strength_rises(notion) -> None:
    rows = rows_from(*table(n=1500))
    strengths = (0.0, 0.2, 1.0, 5.0, 25.0)
    outcomes = [run(rows, EXACT, s, notion)[0] for s in strengths]
    assert all(outcome.reason is Reason.CONVERGED for outcome in outcomes)
    found = [soft_information(rows, outcome.weights, notion) for outcome in outcomes]
    assert found[0] > 0.01
    assert all(after < before for before, after in itertools.pairwise(found))
    assert found[-1] < 0.02 * found[0]


def test_without_noise_it_ends_where_no_model_has_less_loss_plus_information() -> None:
    """At the saddle the penalty is the information itself: judged by another optimiser on loss +
    strength x information."""
    from scipy.optimize import minimize

    X, y, A = table(n=800)
    rows, strength = rows_from(X, y, A), 1.5
    outcome, _, _ = run(
        rows, EXACT, strength, settings=Settings(thresholds_share=0.0, most_rounds=4000)
    )
    whole, a = np.column_stack([np.ones(len(y)), X]), A[0]
    p = np.bincount(a) / len(a)

    def objective(w: np.ndarray) -> float:
        z = whole @ w
        F = 1 / (1 + np.exp(-z))
        joint = np.array([[(1 - F[a == r]).sum(), F[a == r].sum()] for r in (0, 1)]) / len(a)
        information = (joint**2 / (p[:, np.newaxis] * joint.sum(axis=0))).sum() - 1
        return float(np.logaddexp(0, np.where(y == 1, -z, z)).mean() + strength * information)

    best = min(
        (
            minimize(objective, start, method="BFGS", options={"gtol": 1e-8})
            for start in (np.zeros(4), np.ones(4))
        ),
        key=lambda f: f.fun,
    )
    assert objective(outcome.weights[0]) <= best.fun + 1e-6
    assert objective(np.zeros(4)) > best.fun + 0.01


@pytest.mark.parametrize(
    ("notion", "mode", "sizes"),
    [
        (NOTIONS[0], "marginal", (2, (5,))),
        (NOTIONS[1], "product", (3, (2, 3))),
        (NOTIONS[2], "marginal", (3, (2, 3))),
        (NOTIONS[0], "product", (5, (2,))),
    ],
)
def test_many_classes_groups_and_columns(notion, mode, sizes) -> None:
    classes, groups = sizes
    rows = rows_from(*table(n=900, classes=classes, groups=groups), classes=classes, groups=groups)
    few = Settings(thresholds_share=0.0, most_rounds=250)
    plain, fair = (run(rows, EXACT, s, notion, few, mode=mode)[0] for s in (0.0, 4.0))
    before, after = (
        soft_information(rows, outcome.weights, notion, mode, classes) for outcome in (plain, fair)
    )
    assert after < 0.6 * before
    for promise in (PROMISES["add-remove"], PROMISES["sensitive features"]):
        noisy, curator, _ = run(rows, promise, 4.0, notion, settings(promise, rounds=6), mode=mode)
        assert np.isfinite(noisy.weights).all()
        assert PrivacyStatement.of_run(curator).check() == []
        assert len(noisy.names) == len(noisy.values) > 0


@pytest.mark.parametrize(
    "promise",
    [Promise(20.0, 1e-5), Promise(20.0, 1e-5, "sensitive_features")],
    ids=["rows", "groups"],
)
@pytest.mark.parametrize("scalable", [False, True])
def test_with_noise_the_penalty_still_presses(promise, scalable) -> None:
    X, y, A = table(n=4000)
    rows = rows_from(np.clip(X / 3, -1, 1), y, A)
    plain, fair = (
        run(rows, promise, s, scalable=scalable, public_rows=4000)[0] for s in (0.0, 4.0)
    )
    before, after = (
        soft_information(rows, outcome.weights, "demographic_parity") for outcome in (plain, fair)
    )
    assert after < 0.3 * before


def test_batches_of_rows_lead_to_the_model_of_all_rows() -> None:
    """With features public the histogram is put onto its exact sums over groups: both in units of
    all rows."""
    promise, rows = Promise(50.0, 1e-5, "sensitive_features"), rows_from(*table(n=4000))
    whole, drawn = (
        run(rows, promise, settings=settings(promise, sampling_rate=rate))[0]
        for rate in (None, 0.2)
    )
    right, found = (
        soft_information(rows, outcome.weights, "demographic_parity") for outcome in (whole, drawn)
    )
    assert found == pytest.approx(right, rel=0.15)


def test_what_is_measured_at_the_end_is_the_notions_gap_of_decisions() -> None:
    X, y, A = table(n=1000)
    outcome, _, _ = run(rows_from(X, y, A), EXACT, 0.5)
    yes = np.column_stack([np.ones(len(y)), X]) @ outcome.weights[0] > 0
    gap = yes[A[0] == 1].mean() - yes[A[0] == 0].mean()
    assert np.abs(outcome.values).max() == pytest.approx(abs(gap), abs=1e-9)
    assert not outcome.broken  # a penalty bounds nothing


# ---- iterates and many models
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["add-remove", "sensitive features"])
def test_which_iterate_is_returned(relation) -> None:
    """The noise is the same, so the walks are; an iterate is what the next round asks about."""
    promise, rows = PROMISES[relation], rows_from(*table())

    def outcome_of(iterate):
        few = settings(promise, rounds=10, iterate=iterate)
        return recorded(rows, search_for(rows, promise, settings=few))

    single = {}
    for iterate in (0, 4, 7, 8, 9):
        found, tape = outcome_of(iterate)
        rounds = [one.measurements[0].question for one in tape.heard if len(one.measurements) > 1]
        rounds = [one for one in rounds if one.kind is GradientSum]
        single[iterate] = found.weights
        if iterate < 9:
            assert np.array_equal(found.weights, rounds[iterate + 1].model.array[0])
    average = np.mean([single[k] for k in (7, 8, 9)], axis=0)
    assert outcome_of("average")[0].weights == pytest.approx(average, rel=1e-12)
    # its steps fade
    assert not np.array_equal(outcome_of("last")[0].weights, single[9])


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
@pytest.mark.parametrize(
    ("classes", "mode", "notion"), [(2, "product", NOTIONS[0]), (3, "marginal", NOTIONS[1])]
)
def test_a_model_is_the_same_alone_and_beside_other_strengths(
    protects, classes, mode, notion
) -> None:
    rows = rows_from(*table(n=400, classes=classes, groups=(2, 2)), classes=classes, groups=(2, 2))
    promise = Promise(1.0, 1e-5, protects)
    few = settings(promise, rounds=12, iterate="last")
    strengths = (0.2, 1.0, 30.0, 5.0)
    solo = [
        run(rows, promise, s, notion, few, seed=m, mode=mode)[0] for m, s in enumerate(strengths)
    ]
    searches = [search_for(rows, promise, s, notion, few, mode) for s in strengths]
    plan = plan_of(traced(in_step([one.search() for one in searches]), rows.layout, promise))
    spent = price([plan], promise.delta, promise.neighbours) * (1 + 1e-9)
    noise = [NoiseSource.seeded(m) for m in range(len(strengths))]
    public = searches[0].planned.public_rows
    whole = Promise(spent, promise.delta, protects)
    curator = Curator(rows, whole, plan=plan, noise=noise, public_rows=public)
    together = descend(curator, in_step([one.search() for one in searches]))
    for alone, beside in zip(solo, together, strict=True):
        assert np.array_equal(alone.weights, beside.weights)
        assert np.array_equal(alone.values, beside.values)
        assert np.array_equal(alone.counts, beside.counts)


# ---- the max player
# --------------------------------------------------------------------------------------------------


def penalty(strength=10.0, labels=2, classes=2, radius=1e6, seed=3, **more):
    """A max player at released counts, with a histogram."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(200, 400, (3, labels)) + rng.normal(scale=5, size=(3, labels))
    histogram = counts[..., np.newaxis] * rng.dirichlet(np.ones(classes), (3, labels))
    histogram = np.maximum(histogram + rng.normal(scale=5, size=histogram.shape), 20.0)
    dependence = Dependence.of(Cells((("f", "m", "x"),)), tuple(range(labels)))
    how = {"pace": 0.1, "loss_scale": 0.25, **more}
    player = Penalty(dependence.at(counts), histogram.shape, strength, radius, 3.0, **how)
    return player, dependence, counts, histogram


@pytest.mark.parametrize(("labels", "classes"), [(1, 2), (2, 2), (1, 4), (4, 4)])
@pytest.mark.parametrize("pace", [0.1, 0.7])
def test_guarantee_1_costs_are_psi_and_a_step_is_its_gradient_over_its_own_curvature(
    labels, classes, pace
) -> None:
    """Lemma D.1's gradient times the strength, divided by 2 strength H[j] / rows; so it points
    uphill."""
    player, dependence, counts, histogram = penalty(labels=labels, classes=classes, pace=pace)
    assert not player.costs(player.begin())[0].any()  # at 0 no prediction costs anything
    w = np.random.default_rng(0).normal(size=histogram.shape)
    costs, ease = player.costs(w)
    assert ease == pytest.approx(1 / 3.5)
    assert costs == pytest.approx(10.0 * ease * dependence.costs(w, counts), rel=1e-12)
    moved, gradient = player.step(w, histogram, 0) - w, dependence.gradient(w, histogram, counts)
    curvature = 2 * histogram.sum(axis=0, keepdims=True) / counts.sum()
    assert moved == pytest.approx(pace * gradient / curvature, rel=1e-9, abs=1e-12)
    before, after = (dependence.value(at, histogram, counts) for at in (w, w + moved))
    assert after > before


def test_guarantee_1_many_steps_reach_the_best_w_within_the_ball() -> None:
    for radius in (1e6, 0.5):
        player, dependence, counts, histogram = penalty(classes=3, radius=radius)
        w, resting = player.begin(), False
        for round in range(300):
            after = player.step(w, histogram, round)
            assert (np.sqrt((after**2).sum(axis=(0, 2))) <= radius * (1 + 1e-12)).all()
            resting, w = player.rests(w, after, histogram, round, 1e-9), after
        assert resting
        if radius > 1:
            assert w == pytest.approx(dependence.best(histogram, counts), abs=1e-9)
        else:
            assert np.sqrt((w**2).sum(axis=(0, 2))) == pytest.approx(0.5)


def test_h2_the_noise_of_ws_gradient_is_multiplied_by_the_strength_as_the_gradient_is() -> None:
    """theory.md#fermi, H2: the paper adds noise of one size to strength x gradient, so a strength
    above 1 spends more than is said. Here the noise is the released histogram's, which no strength
    changes: the gradient that a step implies, and what reaches the model, have at strength 10 ten
    times the noise that they have at strength 1."""
    implied, reached = [], []
    for strength in (1.0, 10.0):
        player, _, counts, histogram = penalty(strength, classes=3)
        noise = np.random.default_rng(1).normal(scale=4.0, size=histogram.shape)
        w, ends = np.random.default_rng(2).normal(size=histogram.shape), []
        for heard in (histogram, histogram + noise):
            after = player.step(w, heard, 0)
            curvature = 2 * strength * heard.sum(axis=0, keepdims=True) / counts.sum()
            costs, ease = player.costs(after)
            ends.append(((after - w) * curvature / player.pace, costs / ease))
        implied.append(ends[1][0] - ends[0][0])
        reached.append(ends[1][1] - ends[0][1])
    assert np.abs(implied[0]).max() > 1e-3
    assert implied[1] == pytest.approx(10.0 * implied[0], rel=1e-9, abs=1e-11)
    assert reached[1] == pytest.approx(10.0 * reached[0], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_h2_no_strength_changes_the_multipliers_of_a_plan(protects) -> None:
    """The other half: the histogram is released at a price that does not know the strength."""
    rows, promise = rows_from(*table(n=50)), Promise(1.0, 1e-6, protects)
    made = [
        search_for(rows, promise, s, "equalized_odds", public_rows=50) for s in (0.01, 1.0, 100.0)
    ]
    for name in ("counts_multiplier", "histogram_multiplier", "gradient_multiplier", "clip"):
        assert len({getattr(search.planned, name) for search in made}) == 1
    assert made[0].planned.clip <= usual_clip(promise)
    assert made[0].plan == made[1].plan == made[2].plan


# ---- errors
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [-1.0, math.nan, math.inf, "much"])
def test_a_strength_that_is_none_is_refused(strength) -> None:
    with pytest.raises(InputError, match="strength"):
        search_for(rows_from(*table()), PROMISES["replace-one"], strength)


def test_a_notion_without_a_penalty_is_refused() -> None:
    with pytest.raises(InputError, match="notion"):
        fermi.notion_of("false_negative_rate")


def test_one_group_has_nobody_to_be_compared_with() -> None:
    X, y, A = table()
    rows = Rows.from_arrays(X, y, [A[0] * 0], classes=(0, 1), groups=[(0,)])
    with pytest.raises(InputError, match="two groups"):
        search_for(rows, PROMISES["replace-one"])
