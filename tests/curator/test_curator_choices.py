"""Private choices, by costs and weights, by functions of sums, and among cuts, against enumerated
neighbours."""

from __future__ import annotations

import gc
import itertools
import math
import warnings

import numpy as np
import plain_totals as reference
import pytest
from curator_pools import COMBINATIONS, WIDTH, pool
from scipy import stats
from scipy.special import expit, logsumexp

from covering import pairs
from fairveil.core import choices
from fairveil.core.choices import Costs, rate
from fairveil.core.events import Exponential, NonPrivate, NoOp, Repeated
from fairveil.core.passes import shared, totals
from fairveil.curator import (
    AttachedHistogram,
    CellCounts,
    Curator,
    GroupLosses,
    Linear,
    Measurement,
    PredictionHistogram,
    Rows,
    Score,
    ScoreHistogram,
    describe_choice,
)
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise
from fairveil.statement.document import PrivacyStatement

FALSE_ALARM = 1e-7
ADD = Promise(100.0, 1e-6)
REPLACE = Promise(100.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(100.0, 1e-6, protects="sensitive_features")
NOT_PRIVATE = Promise(math.inf, 0.0)
PROMISES = [ADD, REPLACE, SENSITIVE]
EPSILON = 0.7
EDGES = (-0.75, 0.0, 0.25, 1.5)


def zigzag(low, high):
    """Slopes that change at every whole number between their ends: each sum by itself."""

    def function(sums):
        pairs, rest = np.floor(sums / 2), sums % 2
        return (
            ((low + high) * pairs + high * np.minimum(rest, 1) + low * np.maximum(rest - 1, 0))
            .reshape(len(sums), -1)
            .sum(1)
        )

    return Score(function, low, high)


def curved(low, high):
    """Linear, and a smooth step along all sums together."""

    def function(sums):
        flat, rise = sums.reshape(len(sums), -1), (high - low).ravel()
        return flat @ low.ravel() + np.logaddexp(0, flat @ rise - 30.0)

    return Score(function, low, high)


SHAPES = [zigzag, curved]


def slopes_of(shape, seed=3):
    rng = np.random.default_rng(seed)
    low = np.round(rng.normal(size=shape) * 64) / 64
    return low, low + np.round(rng.exponential(size=shape) * 64) / 64


def candidates(curator, cells, by_label, classes, reads):
    """Linear models, cuts where there are two classes, and handles that decide for one class or, on
    request, by the group."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(6, 1 if classes == 2 else classes, WIDTH))
    out = [PredictionHistogram(Linear(weights), cells, by_label=by_label)]
    if classes == 2:
        out.append(ScoreHistogram(Linear(weights[:3]), EDGES, cells, by_label))
    makers = [lambda b, k=k: np.full(b.rows, k) for k in range(classes)]
    makers += [lambda b, k=k: b.codes[0] % classes == k for k in range(2)]
    for (g, h), k in itertools.product(COMBINATIONS if reads else [], range(classes)):
        makers.append(
            lambda b, g=g, h=h, k=k: np.where(
                (b.sensitive[0] == g) & (b.sensitive[1] == h), k, (k + 1) % classes
            )
        )
    seen = ("features", "sensitive") if reads else ("features",)
    return [
        *out,
        *(
            AttachedHistogram(curator.attach(f, columns_read=seen), cells, by_label, "hard")
            for f in makers
        ),
    ]


def decided(questions, rows):
    """The class that each candidate decides for, by the readable reference: (rows, candidates)."""
    (block,) = rows.blocks()
    lines = []
    for question in questions:
        if question.kind is AttachedHistogram:
            lines.append(question.attached.of(block, 0, block.rows).argmax(axis=1))
            continue
        for m in range(question.model.models):
            if question.kind is ScoreHistogram:
                scores = reference.dense(block) @ question.model.array[m, 0]
                lines += [(scores > edge).astype(int) for edge in question.edges]
            elif question.model.outputs == 1:
                lines.append((reference.predictions(question, block, m)[:, 0] > 0.5).astype(int))
            else:
                lines.append(reference.predictions(question, block, m).argmax(axis=1))
    return np.array(lines).T


def tables(questions, rows, classes, exponent):
    """What each row adds to each candidate's table: (rows, candidates, cells, labels or 1,
    classes)."""
    (block,) = rows.blocks()
    first, chosen = questions[0], decided(questions, rows)
    out = np.zeros(
        (
            *chosen.shape,
            1 if first.cells is None else first.cells.count,
            classes if first.by_label else 1,
            classes,
        )
    )
    weights = (
        np.ldexp(np.rint(np.ldexp(block.weights, exponent)), -exponent)
        if rows.weighted
        else np.ones(block.rows)
    )
    i, h = np.indices(chosen.shape)
    label = block.labels[:, np.newaxis] if first.by_label else 0
    for line in block.cells(first.cells):
        out[i, h, line[:, np.newaxis], label, chosen] += weights[:, np.newaxis]
    return out


def neighbours(v, promise, rng):
    """Sums of a set of a pool's rows, and of its neighbours: (candidates, ...), and as many such as
    there are."""
    inside = rng.random(len(v)) < 0.6
    if promise.protects == "sensitive_features":  # one row a person
        people, at = (
            len(v) // len(COMBINATIONS),
            rng.integers(0, len(COMBINATIONS), len(v) // len(COMBINATIONS)),
        )
        here = np.arange(people) * len(COMBINATIONS) + at
        base = v[here].sum(axis=0)
        by_person = v.reshape(people, len(COMBINATIONS), *v.shape[1:])
        return base, (base - v[here][:, np.newaxis] + by_person).reshape(-1, *base.shape)
    base = v[inside].sum(axis=0)
    if promise.neighbours == "add-remove":
        return base, np.concatenate([base - v[inside], base + v[~inside]])
    gone = v[rng.choice(np.flatnonzero(inside), 6)]
    return base, (base - gone[:, np.newaxis] + v[::2]).reshape(-1, *base.shape)


def values_at(function, sums):
    return function(sums.reshape(-1, *sums.shape[2:])).reshape(sums.shape[:2])


def check_neighbours(contest, function, v, promise, sets=2):
    """The largest range over candidates of a change; the integer scores and the probabilities keep
    theirs."""
    rng, widest = np.random.default_rng(11), 0.0
    per_step = rate(EPSILON, contest.steps)
    for _ in range(sets):
        base, others = neighbours(v, promise, rng)
        before, after = values_at(function, base[np.newaxis]), values_at(function, others)
        widest = max(widest, float(np.ptp(after - before, axis=1).max()))
        one, other = contest.rounded(before), contest.rounded(after)
        assert np.ptp(other - one, axis=1).max() <= contest.steps
        p, q = (
            -per_step * scores - logsumexp(-per_step * scores, axis=1, keepdims=True)
            for scores in (one, other)
        )
        assert np.abs(p - q).max() <= EPSILON * (1 + 1e-9)
    assert widest <= contest.stated
    return widest


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize(
    ("mode", "names"), [("product", None), ("product", ["sensitive_0"]), ("marginal", None)]
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_1_of_decisions_no_neighbour_moves_scores_further_apart_than_the_range(
    promise, mode, names, classes, weights
):
    """Under every relation, with candidates that read groups and without; attained where every
    decision can be had."""
    rows = pool(classes, weights=weights, far=False)
    cells = rows.cells(mode, names)
    for make, reads in itertools.product(SHAPES, (False, True)):
        curator = Curator(rows, promise)
        questions = candidates(curator, cells, True, classes, reads)
        score = make(*slopes_of((cells.count, classes, classes)))
        contest = curator._chooser.contest(tuple(questions), None, None, score)
        v = tables(
            questions,
            rows,
            classes,
            questions[0].scale(rows.layout, 1.5 if weights else None).exponent,
        )
        assert contest.found() == pytest.approx(score.function(v.sum(axis=0)), rel=1e-12)
        widest = check_neighbours(contest, score.function, v, promise)
        if make is zigzag and not weights:
            assert (
                widest >= (0.999 if mode == "product" and promise is ADD else 0.7) * contest.stated
            )


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("by_label", [False, True])
def test_guarantee_1_of_decisions_of_everybody(promise, by_label):
    """Without cells: nothing is free as soon as a candidate reads the groups."""
    rows = pool(2, far=False)
    for reads in (False, True):
        curator = Curator(rows, promise)
        questions = candidates(curator, None, by_label, 2, reads)
        score = zigzag(*slopes_of((1, 2 if by_label else 1, 2)))
        contest = curator._chooser.contest(tuple(questions), None, None, score)
        widest = check_neighbours(contest, score.function, tables(questions, rows, 2, 0), promise)
        moves = promise is not SENSITIVE or reads
        assert curator.describe_choice(questions, EPSILON) == (
            Exponential(EPSILON) if moves else NoOp()
        )
        assert (widest > 0.6 * contest.stated) if moves else (widest == 0.0)


@pytest.mark.parametrize(
    ("promise", "mode", "weights"),
    pairs(PROMISES, ["product", "marginal", None], [False, True]),
)
def test_guarantee_1_of_losses_no_neighbour_moves_scores_further_apart_than_the_range(
    promise, mode, weights
):
    """Zero-one and cut log losses; slopes of both signs, and of one sign, where a row moves all
    scores one way."""
    rows = pool(2, weights=weights, far=False)
    cells = None if mode is None else rows.cells(mode)
    model = Linear(np.random.default_rng(7).normal(size=(9, 1, WIDTH)))
    for (loss, clip), make in itertools.product([("zero-one", None), ("log", 0.75)], SHAPES):
        question = GroupLosses(model, cells, loss, clip)
        curator = Curator(rows, promise)
        whole, unit = losses_of(curator, question, rows)
        v = whole * unit
        low, high = slopes_of(question.shape(rows.layout))
        for up in (0.0, 10.0, -10.0):
            score = make(low + up, high + up)
            contest = curator._chooser.contest((question,), None, None, score)
            assert contest.found() == pytest.approx(score.function(v.sum(axis=0)), rel=1e-12)
            widest = check_neighbours(contest, score.function, v, promise, 1)
            if (
                make is zigzag
                and loss == "zero-one"
                and mode == "product"
                and not weights
                and promise is ADD
            ):
                assert widest >= (0.999 if up else 0.6) * contest.stated


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize(
    ("mode", "names"), [("product", None), ("product", ["sensitive_0"]), ("marginal", None)]
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", [False, True])
def test_guarantee_1_of_costs_no_neighbour_moves_scores_further_apart_than_the_range(
    promise, mode, names, classes, weights
):
    """Exact scores of tables, up to what all candidates share, which enters neither scores nor
    range; the range is attained where every decision can be had."""
    rows = pool(classes, weights=weights, far=False)
    cells = rows.cells(mode, names)
    rng = np.random.default_rng(2)
    for by_label, reads in itertools.product((False, True), repeat=2):
        curator = Curator(rows, promise)
        questions = candidates(curator, cells, by_label, classes, reads)
        scale = questions[0].scale(rows.layout, 1.5 if weights else None)
        v = tables(questions, rows, classes, scale.exponent)
        for labels in {1, classes if by_label else 1}:
            costs = np.round(rng.normal(size=(cells.count, labels, classes)) * 2**20) / 2**20
            shared = np.round(50 * rng.normal(size=(cells.count, labels, 1)))
            contest = curator._chooser.contest(tuple(questions), None, costs + shared, None)
            same = curator._chooser.contest(tuple(questions), None, costs, None)
            assert (same.steps, same.stated) == (contest.steps, contest.stated)
            made = Costs.of(costs, questions[0], rows.layout)
            whole = made.integers.astype(object)

            def exact(sums, whole=whole, to=scale.exponent):
                counts = np.ldexp(sums, to).astype(np.int64).astype(object)
                return (counts * whole).sum(axis=(1, 2, 3))

            wanted, found = exact(v.sum(axis=0)), contest.found()
            assert (found - found[0] == wanted - wanted[0]).all()
            assert found.dtype == (object if weights else np.int64)
            unit = math.ldexp(1.0, -made.exponent - scale.exponent)
            base, others = neighbours(v, promise, np.random.default_rng(11))
            before = exact(base)
            for other in others[:: max(1, len(others) // 25)]:
                after = exact(other)
                changes = after - before
                assert (max(changes) - min(changes)) * unit <= contest.stated
                change = contest.rounded(after) - contest.rounded(before)
                assert np.ptp(change) <= contest.steps
            moved = ((others - base) * np.ldexp(made.integers, -made.exponent)).sum(axis=(2, 3, 4))
            widest = float(np.ptp(moved, axis=1).max())
            assert widest <= contest.stated * (1 + 1e-12)
            tight = 0.6 if mode == "product" and not weights else 0.3
            assert widest >= tight * contest.stated, (by_label, reads)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("loss", ["zero-one", "log"])
def test_guarantee_1_of_weights_no_neighbour_moves_scores_further_apart_than_the_range(
    promise, mode, loss
):
    """Of losses weighed by cell, of one sign and of both; scores are exact."""
    rows = pool(2, far=False)
    cells = rows.cells(mode)
    rng = np.random.default_rng(3)
    clip = None if loss == "zero-one" else 2.0
    question = GroupLosses(Linear(rng.normal(size=(20, 1, WIDTH)) * 3), cells, loss, clip)
    curator = Curator(rows, promise)
    v, _ = losses_of(curator, question, rows)
    for weights in (np.ones(cells.count), rng.normal(size=cells.count)):
        contest = curator._chooser.contest((question,), weights, None, None)
        whole = np.array([round(w * 2**24) for w in weights], object)
        assert (contest.found() == v.sum(axis=0).astype(object) @ whole).all()
        for base, others in [neighbours(v, promise, rng) for _ in range(2)]:
            before = contest.rounded(base.astype(object) @ whole)
            for other in others[:: max(1, len(others) // 25)]:
                change = contest.rounded(other.astype(object) @ whole) - before
                assert np.ptp(change) <= contest.steps


def losses_of(curator, question, rows):
    """Whole numbers of what each row adds, (rows, models, cells), and the step of their grid."""
    scales = curator._bounds.scales(Measurement(question, 1.0))
    scale = scales[0] if len(scales) == 1 else shared(scales, question, rows)
    (whole,) = rows.blocks()
    each = [
        totals([(question, [scale])], rows, [whole.take(np.array([i]))])[0]
        for i in range(whole.rows)
    ]
    return np.array(each), scale.unit


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("mode", ["product", "marginal", None])
def test_linear_scores_are_the_special_case_of_equal_slopes(promise, mode):
    """The same range and, step for step, the same scores as by costs and by weights of cells; so
    does the formula for them."""
    rows = pool(3, far=False)
    cells = None if mode is None else rows.cells(mode)
    count = 1 if cells is None else cells.count
    rng = np.random.default_rng(4)
    for reads in (False, True):
        curator = Curator(rows, promise)
        questions = tuple(candidates(curator, cells, True, 3, reads))
        costs = np.round(rng.normal(size=(count, 3, 3)) * 256) / 256
        by_costs = curator._chooser.contest(questions, None, costs, None)
        linear = Score(lambda sums, c=costs: (sums * c).sum(axis=(1, 2, 3)), costs, costs)
        contest = curator._chooser.contest(questions, None, None, linear)
        assert contest.stated == pytest.approx(by_costs.stated, rel=1e-9, abs=1e-9)
        assert contest.best() == by_costs.best()
        pairs = [(contest.stated, costs, promise, reads)]
        for stated, c, p, r in pairs:
            assert stated == pytest.approx(range_of_costs(c, cells, p, r), rel=1e-9, abs=1e-9)
    model = Linear(rng.normal(size=(5, 3, WIDTH)))
    question, weights = GroupLosses(model, cells), np.round(rng.normal(size=count) * 256) / 256
    curator = Curator(rows, promise)
    by_weights = curator._chooser.contest((question,), weights, None, None)
    contest = curator._chooser.contest(
        (question,), None, None, Score(lambda sums: sums @ weights, weights, weights)
    )
    reach = math.ldexp(by_weights.steps - 2.0, by_weights.exponent)
    assert contest.stated == pytest.approx(reach, rel=1e-9, abs=1e-9)
    assert contest.best() == by_weights.best()


def range_of_costs(costs, cells, promise, reads):
    """theory.md#ranges, written once more: by pairs of classes, columns added up."""
    apart = cells is not None and cells.mode == "marginal"
    columns = np.split(costs, np.cumsum(cells.sizes)[:-1]) if apart else [costs]
    over = np.ptp if promise is SENSITIVE and not reads else np.max
    pairs = itertools.permutations(range(3), 2)
    largest = max(
        sum(over(c[:, :, k] - c[:, :, o], axis=0) for c in columns).max() for k, o in pairs
    )
    if promise is SENSITIVE and reads and cells is not None and cells.mode == "product":
        return np.sort(np.ptp(costs, axis=2), axis=0)[-2:].sum(axis=0).max()
    return largest * (1 if promise is ADD or (promise is SENSITIVE and not reads) else 2)


def test_guarantee_2_the_grid_is_the_same_whatever_the_rows_are(rows_of):
    """Under add-remove their number does not matter either."""
    for promise, sizes in ((ADD, (40, 300)), (REPLACE, (300, 300)), (SENSITIVE, (300, 300))):
        found = set()
        for seed, n in enumerate(sizes):
            rows = rows_of(seed, n)
            question = PredictionHistogram(
                Linear(np.random.default_rng(seed).normal(size=(4, 1, 11))), rows.cells()
            )
            score = zigzag(*slopes_of((6, 1, 2)))
            contest = Curator(rows, promise)._chooser.contest((question,), None, None, score)
            found.add((contest.exponent, contest.steps, contest.stated))
        assert len(found) == 1
        ((exponent, steps, stated),) = found
        assert 2.0 < steps - stated / 2.0**exponent < 2.5
        assert steps > 60  # what rounding takes is a few parts in a hundred at most


def test_what_floating_point_may_change_is_part_of_the_step():
    """A function that loses as much as it may, in the worst way, still moves no score further than
    the steps say."""
    rows = pool(2, far=False)
    cells = rows.cells()
    low, high = slopes_of((6, 1, 2))
    rng = np.random.default_rng(0)
    plain = zigzag(low, high)
    far, lost = 1e9, 1e9 * choices.ROUNDING  # a value so far from 0 loses as much as that
    noisy = Score(
        lambda sums: plain.function(sums) + far + lost * rng.choice([-1.0, 1.0], len(sums)),
        low,
        high,
    )
    curator = Curator(rows, ADD)
    questions = candidates(curator, cells, False, 2, False)
    contest = curator._chooser.contest(tuple(questions), None, None, noisy)
    assert math.ldexp(1.0, contest.exponent) >= 16.0 * lost
    check_neighbours_of_noise(contest, noisy.function, tables(questions, rows, 2, 0))


def check_neighbours_of_noise(contest, function, v):
    base = v.sum(axis=0)
    before = contest.rounded(function(base))
    for row in v:
        assert np.ptp(contest.rounded(function(base - row)) - before) <= contest.steps


def test_a_choice_by_a_function_is_the_exponential_mechanism(rows_of):
    """Chi-square against exp(-epsilon score / range) / Z, false-alarm rate 1e-7; a rate 1.5 times
    off is rejected."""
    rows = rows_of(n=40)
    cells = rows.cells()
    question = PredictionHistogram(
        Linear(np.random.default_rng(4).normal(size=(5, 1, 11))), cells, by_label=True
    )
    score = Score(
        lambda sums: np.sqrt(1 + sums[:, :, 0, 1].sum(axis=1)) - sums[:, 0, 1, 1],
        [[0.0, 0.0], [0.0, -1.0]],
        [[0.0, 0.5], [0, 0]],
    )
    repeats = 3000
    much = Promise(4000.0, 1e-6)
    curator = Curator(
        rows, much, plan=[Repeated(Exponential(1.0), repeats)], noise=NoiseSource.seeded(5)
    )
    contest = curator._chooser.contest((question,), None, None, score)
    exact = contest.found()
    assert contest.stated == pytest.approx(1.0, rel=1e-9)
    counts = np.bincount(
        [curator.choose(question, 1.0, score=score) for _ in range(repeats)], minlength=5
    )

    def tail(rate):
        p = np.exp(-rate * (exact - exact.min()))
        return stats.chisquare(counts, repeats * p / p.sum()).pvalue

    assert tail(1.0 / contest.steps * math.ldexp(1.0, -contest.exponent)) > FALSE_ALARM
    assert tail(1.5) < FALSE_ALARM
    assert tail(1.0 / 1.5) < FALSE_ALARM
    (bound,) = PrivacyStatement.of_run(curator).bounds
    assert (bound.question, bound.norm, bound.sensitivity) == (
        "choice by prediction histogram",
        "range",
        contest.stated,
    )


def test_without_privacy_the_best_is_chosen(rows_of):
    rows = rows_of(weights=True)
    question = PredictionHistogram(
        Linear(np.random.default_rng(4).normal(size=(50, 1, 11))), rows.cells("marginal")
    )
    curator = Curator(rows, NOT_PRIVATE)
    score = zigzag(*slopes_of((5, 1, 2)))
    table = tables(
        [question], rows, 2, question.scale(rows.layout, curator._bounds.cap).exponent
    ).sum(axis=0)
    assert curator.choose(question, math.inf, score=score) == score.function(table).argmin()
    losses = GroupLosses(question.model, rows.cells())
    nearest = Score(lambda sums: expit(sums[:, 0] - 40.0), 0.0, [1.0, 0, 0, 0, 0, 0])
    (sums,) = curator.answer([(losses, 0.0)])
    assert curator.choose(losses, 1.0, score=nearest) == nearest.function(sums).argmin()


def test_choices_are_priced_before_rows_are_read_and_a_wrong_plan_is_refused(rows_of, monkeypatch):
    rows = rows_of()
    question = PredictionHistogram(Linear(np.zeros((3, 1, 11))), rows.cells())
    seen = []
    score = Score(lambda sums: seen.append(sums.copy()) or sums.sum(axis=(1, 2, 3)), 1.0, 1.0)
    curator = Curator(rows, REPLACE, plan=[curator_event(rows, question)])
    monkeypatch.setattr(choices, "totals", lambda *args: pytest.fail("rows were read"))
    with pytest.raises(PrivacyError, match="next event"):
        curator.choose(question, 0.3, score=score)
    assert all((sums == 0).all() for sums in seen)
    monkeypatch.undo()
    curator = Curator(rows, REPLACE, plan=[curator_event(rows, question)])
    curator.choose(question, 0.2, score=score, purpose="to try")
    assert curator.log.events == (Exponential(0.2),)
    assert curator.finish() == Exponential(0.2)


def curator_event(rows, question):
    return Curator(rows, REPLACE).describe_choice(question, 0.2)


def failing(how, where):
    """A score that fails on sums of rows, never on zeros; `where`: for which candidates."""

    def function(sums):
        value = sums[:, :, :, 1].sum(axis=(1, 2)) + 987654321.0
        bad = where(sums) & (sums.sum(axis=(1, 2, 3)) > 0)
        if how == "raises" and bad.any():
            raise ValueError(f"a private value: {value.max()}")
        if how == "shape" and bad.any():
            return value[:, np.newaxis] * np.ones(3)
        if how == "warns" and bad.any():
            value = value / np.where(bad, 0.0, 1.0)
        return np.where(bad, np.nan, value) if how == "nan" else value

    return Score(function, 0.0, 1.0)


@pytest.mark.parametrize("how", ["raises", "shape", "nan", "warns"])
@pytest.mark.parametrize("everywhere", [False, True])
def test_guarantee_4_what_fails_on_private_sums_is_not_shown_before_the_run_has_ended(
    rows_of, how, everywhere
):
    """A candidate that fails counts as the largest; the others compete as ever."""
    rows = rows_of()
    model = np.zeros((4, 1, 11))
    model[:, 0, 0] = (-1.0, 0.0, 1.0, 1.0)
    model[2:, 0, 1:4] = np.random.default_rng(1).normal(size=(2, 3))
    question = PredictionHistogram(Linear(model), rows.cells())
    few = [
        sums[:, :, :, 1].sum()
        for sums in (tables([question], rows, 2, 0).sum(axis=0)[h : h + 1] for h in range(4))
    ]
    assert few[0] == few[1] == 0 < min(few[2:])
    score = failing(
        how,
        (lambda sums: np.full(len(sums), True))
        if everywhere
        else lambda s: s[:, :, :, 1].sum(axis=(1, 2)) == 0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for promise, epsilon in ((ADD, 50.0), (NOT_PRIVATE, math.inf)):
            curator = Curator(rows, promise, noise=NoiseSource.seeded(3))
            index = curator.choose(question, epsilon, score=score)
            assert index in range(4) if everywhere else index == 2 + (few[3] < few[2])
            assert len(curator.log) == 1
            with pytest.raises(PrivacyError, match="has ended") as refused:
                curator.trouble()
            assert "987" not in str(refused.value)
            assert PrivacyStatement.of_run(curator).user_code == "trusted"
            curator.finish()
            assert curator.trouble()


def test_guarantee_4_no_warning_on_private_sums_is_shown(rows_of):
    rows = rows_of()

    def function(sums):
        if sums.any():
            warnings.warn(f"a private value: {sums.sum()}", stacklevel=1)
            np.nanmean(np.empty(0))  # a warning of NumPy's that is no matter of errstate
        # and one of its own conversion
        return sums[:, :, :, 1].sum(axis=(1, 2)) + (1j if sums.any() else 0.0)

    question = PredictionHistogram(Linear(np.zeros((3, 1, 11))), rows.cells())
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        Curator(rows, ADD).choose(question, 1.0, score=Score(function, 0.0, 1.0))
    assert not shown


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Score(3, 0.0, 1.0), "a function"),
        (lambda: Score(np.sum, 1.0, 0.0), "none above highest"),
        (lambda: Score(np.sum, np.zeros(3), np.zeros(2)), "of one shape"),
        (lambda: Score(np.sum, np.nan, 1.0), "Score.lowest"),
        (lambda: Score(np.sum, 0.0, 1e300), "Score.highest"),
        (lambda: Score(np.sum, 0.0, "steep"), "Score.highest"),
        (
            lambda: Score(lambda s: s.sum(axis=(1, 2, 3)), np.zeros((5, 1, 2)), 1.0),
            r"shape \(6, 1, 2\)",
        ),
        (lambda: Score(lambda s: s.sum(axis=1), 0.0, 1.0), r"\(candidates, 6, 1, 2\)"),
        (
            lambda: Score(lambda s: s.sum(axis=(1, 2, 3)) / 0.0, 0.0, 1.0),
            "finite number a candidate",
        ),
        (lambda: Score(lambda s: 1 // 0, 0.0, 1.0), "ZeroDivisionError"),
        (
            lambda: Score(lambda s: s.sum(axis=(1, 2, 3)) + np.finfo(float).max, 0.0, 1.0),
            "finite size",
        ),
        (lambda: "a score", "a Score"),
    ],
)
def test_what_is_no_score_is_refused_before_anything_is_charged(rows_of, make, message):
    rows = rows_of()
    curator = Curator(rows, ADD)
    with pytest.raises(InputError, match=message):
        curator.choose(
            PredictionHistogram(Linear(np.zeros((3, 1, 11))), rows.cells()), 1.0, score=make()
        )
    assert len(curator.log) == 0


def test_a_score_stands_alone(rows_of):
    rows = rows_of()
    curator, score = (
        Curator(rows, ADD),
        Score(lambda s: s.reshape(len(s), -1).sum(axis=1), 1.0, 1.0),
    )
    model = Linear(np.zeros((3, 1, 11)))
    with pytest.raises(InputError, match="costs"):
        curator.choose(
            PredictionHistogram(model, rows.cells()), 1.0, score=score, costs=np.zeros((6, 1, 2))
        )
    with pytest.raises(InputError, match="cell_weights"):
        curator.choose(GroupLosses(model, rows.cells()), 1.0, score=score, cell_weights=np.zeros(6))


def whole_rows(n=600, weights=False):
    """Rows of few whole numbers, so that scores often are at an edge."""
    rng = np.random.default_rng(2)
    return Rows.from_arrays(
        rng.integers(-3, 4, (n, 3)).astype(float),
        rng.integers(0, 2, n),
        [rng.choice(list("abc"), n), rng.choice(list("xy"), n)],
        classes=[0, 1],
        groups=(tuple("abc"), tuple("xy")),
        sample_weight=rng.random(n) if weights else None,
    )


@pytest.mark.parametrize("mode", ["product", "marginal", None])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("by_label", [False, True])
def test_guarantee_5_cuts_are_linear_models_with_the_edge_taken_from_their_intercept(
    mode, weights, by_label
):
    """Bit for bit, at an edge too; candidate `direction * edges + edge`; and the first class has
    the other rows."""
    rows = whole_rows(weights=weights)
    cells = None if mode is None else rows.cells(mode)
    directions = np.round(np.random.default_rng(1).normal(size=(4, 1, 4)) * 2) / 2
    edges = np.array([-1.5, -0.5, 0.0, 0.5, 2.0])
    moved = np.repeat(directions, len(edges), axis=0)
    moved[:, 0, 0] -= np.tile(edges, len(directions))
    cuts = ScoreHistogram(Linear(directions), tuple(edges), cells, by_label)
    rules = PredictionHistogram(Linear(moved), cells, by_label=by_label)
    (block,) = rows.blocks()
    assert np.isin(reference.dense(block) @ directions[0, 0], edges).mean() > 0.1
    count = 1 if cells is None else cells.count
    rng = np.random.default_rng(4)
    costs = rng.normal(size=(count, 1, 2))
    score = curved(*slopes_of((count, 2 if by_label else 1, 2)))
    curator = Curator(rows, ADD)
    one, other = (
        curator._chooser.contest((question,), None, costs, None) for question in (cuts, rules)
    )
    assert (one.found() == other.found()).all()
    assert (one.steps, one.exponent, one.stated) == (other.steps, other.exponent, other.stated)
    one, other = (
        curator._chooser.contest((question,), None, None, score) for question in (cuts, rules)
    )
    assert (one.found() == other.found()).all()
    scale = cuts.scale(rows.layout, 1.0 if weights else None)
    table = tables([cuts], rows, 2, scale.exponent).sum(axis=0)
    assert one.found() == pytest.approx(score.function(table), rel=1e-12)
    assert (one.steps, one.stated, one.exponent) == (other.steps, other.stated, other.exponent)
    free = Curator(rows, NOT_PRIVATE)
    assert free.choose(cuts, 1.0, score=score) == free.choose(rules, 1.0, score=score)
    assert free.choose(cuts, 1.0, costs=costs) == free.choose(rules, 1.0, costs=costs)
    both = free.choose([rules, cuts], 1.0, costs=costs)
    assert both == free.choose(rules, 1.0, costs=costs)


def test_bins_of_any_number_of_edges():
    """A score is in the bin of as many edges as it is above, an infinite one at an end, and what is
    no number in the first."""
    rows = pool(2)
    (block,) = rows.blocks()
    for size, (many, weights) in itertools.product(
        (1.0, 1e200), enumerate(np.random.default_rng(3).normal(size=(12, WIDTH)))
    ):
        edges = np.arange(1.0 + many) - many / 2
        question = ScoreHistogram(Linear(size * weights), tuple(edges))
        with np.errstate(all="ignore"):
            scores = reference.dense(block) @ (size * weights)
        wanted = np.bincount((scores[:, np.newaxis] > edges).sum(axis=1), minlength=2 + many)
        assert totals([(question, [question.scale(rows.layout, None)])], rows, [block])[
            0
        ].tolist() == [[wanted.tolist()]]
        assert size == 1.0 or not np.isfinite(scores).all()


def test_cuts_have_two_classes(rows_of):
    rows = rows_of(classes=3)
    with pytest.raises(InputError, match="two classes"):
        Curator(rows, ADD).choose(
            ScoreHistogram(Linear(np.zeros((2, 3, 11))), EDGES, rows.cells()),
            1.0,
            costs=np.zeros((6, 1, 3)),
        )


def test_guarantee_3_tables_are_totalled_once_for_as_long_as_a_question_is_held(monkeypatch):
    """Cuts, and the rows of cells that the first class needs; other units are other tables."""
    rows = whole_rows()
    curator = Curator(rows, NOT_PRIVATE)
    cuts = ScoreHistogram(
        Linear(np.random.default_rng(1).normal(size=(4, 1, 4))), EDGES, rows.cells()
    )
    asked = []
    real = choices.totals
    monkeypatch.setattr(
        choices,
        "totals",
        lambda pairs, *rest: asked.append(pairs[0][0].kind) or real(pairs, *rest),
    )
    scores = [zigzag(*slopes_of((6, 1, 2), seed)) for seed in range(4)]
    first = [curator.choose(cuts, 1.0, score=score) for score in scores]
    curator.choose(cuts, 1.0, costs=np.ones((6, 1, 2)))
    assert asked == [ScoreHistogram, CellCounts]
    assert first == [Curator(rows, NOT_PRIVATE).choose(cuts, 1.0, score=score) for score in scores]
    count = len(asked)
    curator.rescale(np.full(3, 2.0), np.zeros(3))
    curator.choose(cuts, 1.0, score=scores[0])
    assert asked[count:] == [ScoreHistogram, CellCounts]
    del cuts
    asked.clear()
    gc.collect()
    assert len(curator._chooser) == 0


def constant(k, classes, width=WIDTH):
    """A model that decides for class k, whatever the row."""
    weights = np.zeros((1 if classes == 2 else classes, width))
    weights[0 if classes == 2 else k, 0] = -1.0 if classes == 2 and k == 0 else 1.0
    return weights


def linear_candidates(classes, width=WIDTH):
    rng = np.random.default_rng(7)
    some = rng.normal(size=(12, 1 if classes == 2 else classes, width))
    return Linear(
        np.concatenate([np.stack([constant(k, classes, width) for k in range(classes)]), some])
    )


def test_one_question_or_several_number_candidates_in_order(rows_of):
    rows = rows_of(classes=3)
    model = linear_candidates(3, 11)
    curator = Curator(rows, NOT_PRIVATE)
    whole = PredictionHistogram(model, rows.cells())
    parts = [
        PredictionHistogram(Linear(model.array[i : i + 5]), rows.cells()) for i in range(0, 15, 5)
    ]
    for k in range(6):
        costs = np.random.default_rng(k).normal(size=(6, 1, 3))
        assert curator.choose(whole, math.inf, costs=costs) == curator.choose(
            parts, 1.0, costs=costs
        )
    assert curator.log.entries[0].questions == ("choice by prediction histogram",)


def test_events_of_choices_are_known_in_advance(rows_of):
    rows = rows_of(classes=3)
    cells = rows.cells()
    model = linear_candidates(3, 11)
    losses, groups, whole = (
        GroupLosses(model, cells),
        PredictionHistogram(model, cells),
        PredictionHistogram(model, None),
    )
    for question, promise, event in (
        (losses, ADD, Exponential(0.5)),
        (groups, REPLACE, Exponential(0.5)),
        ([groups, groups], SENSITIVE, Exponential(0.5)),
        (whole, ADD, Exponential(0.5)),
        (whole, SENSITIVE, NoOp()),
        ([whole, groups], SENSITIVE, Exponential(0.5)),
        (whole, NOT_PRIVATE, NonPrivate()),
    ):
        assert describe_choice(question, 0.5, promise) == event
        if isinstance(question, list) and whole in question:
            continue
        curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
        assert curator.describe_choice(question, 0.5) == event
        of = question[0] if isinstance(question, list) else question
        costs = (
            None
            if of is losses
            else np.random.default_rng(3).normal(size=(6 if of.cells else 1, 1, 3))
        )
        curator.choose(question, 0.5, costs=costs)
        assert curator.log.events == (() if event == NoOp() else (event,))
        if isinstance(event, Exponential) and of is not losses:
            (bound,) = PrivacyStatement.of_run(curator).bounds
            assert (bound.question, bound.norm) == ("choice by prediction histogram", "range")
            made = Costs.of(costs, of, rows.layout)
            reach = made.reach(promise, rows.layout, reads_groups=False)
            assert bound.sensitivity == pytest.approx(reach / 2**made.exponent, rel=1e-9)
    free = [
        Curator(rows, SENSITIVE).choose(whole, epsilon, costs=[[[0.0, 1.0, 2.0]]])
        for epsilon in (1e-9, math.inf)
    ]
    assert free == [0, 0]  # decides for class 0, which is cheapest, always; the first of the best
    with pytest.raises(PrivacyError, match="finite epsilon"):
        describe_choice(groups, math.inf, SENSITIVE)


@pytest.mark.parametrize(
    ("make", "costs", "weights", "message"),
    [
        (
            lambda m, c, a: PredictionHistogram(m, c, "soft"),
            np.zeros((6, 1, 3)),
            None,
            "hard decisions",
        ),
        (lambda m, c, a: AttachedHistogram(a, c), np.zeros((6, 1, 3)), None, "hard decisions"),
        (
            lambda m, c, a: AttachedHistogram(a, c, False, "hard", 1),
            np.zeros((1, 1, 3)),
            None,
            "one group alone",
        ),
        (
            lambda m, c, a: [PredictionHistogram(m, c), PredictionHistogram(m)],
            np.zeros((6, 1, 3)),
            None,
            "same cells",
        ),
        (
            lambda m, c, a: [PredictionHistogram(m, c), AttachedHistogram(a, c, True, "hard")],
            np.zeros((6, 1, 3)),
            None,
            "same",
        ),
        (lambda m, c, a: PredictionHistogram(m, c), None, None, "costs"),
        (lambda m, c, a: PredictionHistogram(m, c), np.zeros((6, 3, 3)), None, "shape"),
        (lambda m, c, a: PredictionHistogram(m, c), np.full((6, 1, 3), np.nan), None, "finite"),
        (lambda m, c, a: PredictionHistogram(m, c), np.full((6, 1, 3), 1e200), None, "2\\^500"),
        (lambda m, c, a: PredictionHistogram(m, c), "a", None, "costs"),
        (lambda m, c, a: PredictionHistogram(m, c), np.zeros((6, 1, 3)), [1.0], "cell_weights"),
        (lambda m, c, a: GroupLosses(m, c), np.zeros((6, 1, 3)), None, "costs"),
        (
            lambda m, c, a: [GroupLosses(m, c), PredictionHistogram(m, c)],
            np.zeros((6, 1, 3)),
            None,
            "question",
        ),
        (lambda m, c, a: [], np.zeros((6, 1, 3)), None, "question"),
    ],
)
def test_what_cannot_be_chosen_by_is_refused_before_anything_is_charged(
    rows_of, make, costs, weights, message
):
    rows = rows_of(classes=3)
    curator = Curator(rows, ADD)
    attached = curator.attach(lambda block: block.codes[0] % 3)
    question = make(linear_candidates(3, 11), rows.cells(), attached)
    with pytest.raises(InputError, match=message):
        curator.choose(question, 1.0, costs=costs, cell_weights=weights)
    assert len(curator.log) == 0


def test_equal_costs_leave_a_change_of_group_nothing_to_move(rows_of):
    """The range is zero: chosen as good as exactly, never a division by zero, and charged all the
    same."""
    rows = rows_of(classes=3)
    curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(1))
    question = PredictionHistogram(linear_candidates(3, 11), rows.cells())
    costs = np.broadcast_to([0.5, 0.25, 1.0], (6, 1, 3))
    assert curator.choose(question, 1.0, costs=costs) == 1
    assert curator.log.events == (Exponential(1.0),)


def test_the_unit_of_costs_does_not_matter_nor_do_numbers_beyond_64_bits():
    """Costs of a mean, a millionth of a sum's, are as fine."""
    rows = pool(3, far=False)
    costs = np.random.default_rng(5).normal(size=(6, 3, 3))
    question = PredictionHistogram(linear_candidates(3), rows.cells(), by_label=True)
    curator = Curator(rows, SENSITIVE)
    one, other = (
        curator._chooser.contest((question,), None, c, None) for c in (costs, np.ldexp(costs, -300))
    )
    assert one.steps == other.steps
    assert (one.found() == other.found()).all()
    assert other.stated == math.ldexp(one.stated, -300)
    made = Costs.of(costs, question, rows.layout)
    counts = np.random.default_rng(1).integers(0, 99, (15, 6 * 3 * 2))
    small, large = (made.scores(counts, most) for most in (99, 1 << 40))
    assert (small.dtype, large.dtype) == (np.int64, object)
    assert (small == large).all()
