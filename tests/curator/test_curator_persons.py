"""Persons with several rows: bounds against enumerated persons, the cap, batches and parts of whole
persons, planted bugs.

A neighbour is a table with one person more, fewer, or another in their place. Persons are
enumerated over a pool of rows near, far and extremely far beyond the clip: each row as often as a
person may have rows, the worst of them (theory.md#units), and many of mixed rows. False alarms of
the statistical tests: below 1e-6 each for a fresh seed.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from curator_pools import COMBINATIONS, WIDTH, contributions, norms, pool
from scipy import stats

from fairveil.audit import EventsClaim, audit_scores
from fairveil.core.events import DiscreteLaplace, Gaussian, NoOp, PoissonSampled
from fairveil.core.passes import needs_rows, public_scales, totals
from fairveil.core.persons import kept, persons_of
from fairveil.core.pricing import constant_scale, of_persons
from fairveil.core.questions import ALONE
from fairveil.curator import (
    AttachedHistogram,
    CellCounts,
    CodeHistogram,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    NumberMoments,
    Part,
    Poisson,
    PredictionHistogram,
    RowCount,
    Rows,
    ScoreHistogram,
    describe,
)
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise, Unit, epsilon, full_batch

MOST = 3
ADDED = Promise(1.0, 1e-6, unit=Unit("patient", MOST))
REPLACED = Promise(1.0, 1e-6, neighbours="replace-one", unit=Unit("patient", MOST))
SENSITIVE = Promise(1.0, 1e-6, "sensitive_features", unit=Unit("patient", MOST))
RELATIONS = (ADDED, REPLACED)
LOUD = 1e8  # an epsilon that lets an answer through with hardly any noise
STEEP = np.array([0.0, 40.0, 0, 0, *[0] * 7])


def persons(count, rng):
    """Places of rows in a pool: each row three times over, and mixed persons of one, two and three
    rows."""
    alike = [np.full(MOST, i) for i in range(count)]
    mixed = [rng.integers(0, count, size) for size in (1, 2, 3) for _ in range(80)]
    return [np.sort(one) for one in (*alike, *mixed)]


def by_person(question, scale, rows, people):
    """Each person's integers, as the curator adds them up: (persons, coordinates) for the last
    model."""
    (whole,) = rows.blocks()
    rows.adds_by_person = True
    out = []
    try:
        for one in people:
            block = whole.take(one)
            block.persons = np.zeros(len(one), np.int64)
            out.append(totals([(question, [scale])], rows, [block])[0][-1].ravel())
    finally:
        rows.adds_by_person = False
    return np.array(out, np.float64)


def questions(rows, classes, mode):
    rng = np.random.default_rng(1)
    outputs = 1 if classes == 2 else classes
    model = Linear(rng.normal(size=(outputs, WIDTH)), sharpness=3.0)
    steep = Linear(1e3 * rng.normal(size=(2, outputs, WIDTH)))
    cells = rows.cells(mode)
    costs = 5 * rng.normal(size=(cells.count, classes, classes))
    return [
        RowCount(),
        CellCounts(cells),
        CellCounts(None, by_label=True),
        PredictionHistogram(model, cells, "soft"),
        PredictionHistogram(steep, None, "hard", by_label=True),
        GradientSum(model, 0.7),
        GradientSum(steep, 1e-3, cells, costs),
        GradientSum(model, 50.0, cells, costs[:, :1], loss="none"),
        FeatureSums(cells, 1.5, by_label=True),
        FeatureSums(cells, 0.8, basis=rng.normal(size=(4, WIDTH))),
        NumberMoments(1.5),
        *([ScoreHistogram(model, (-0.5, 0.0, 2.0), cells, by_label=True)] if classes == 2 else []),
        GramMatrices(cells, 1.5, with_target=True),
        GroupLosses(model, cells),
        GroupLosses(steep, cells, "log", 2.0),
    ]


def largest(moves, order):
    """Added or removed, and replaced: over all persons and pairs of them, and against somebody
    without a row."""
    alone = norms(moves, order).max()
    return alone, max(alone, max(norms(moves - one, order).max() for one in moves))


@pytest.mark.parametrize(
    ("classes", "mode", "kind"),
    [
        (2, "product", {}),
        (4, "marginal", {}),
        (2, "marginal", {"weights": True}),
        (2, "product", {"sparse": True}),
    ],
)
def test_no_person_moves_a_total_further_than_its_bound(classes, mode, kind):
    rows = pool(classes, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    people = persons(sum(block.rows for block in rows.blocks()), np.random.default_rng(0))
    for question in questions(rows, classes, mode):
        for order in (1, 2) if question.kind in (CellCounts, ScoreHistogram) else (2,):
            scales = [
                constant_scale(question, rows.layout, promise, cap, order) for promise in RELATIONS
            ]
            # one grid and bound, of which each relation takes its own
            assert scales[0] == scales[1]
            moves = by_person(question, scales[0], rows, people)
            for promise, moved in zip(RELATIONS, largest(moves, order), strict=True):
                assert moved * scales[0].unit <= scales[0].bound.sensitivity(promise.neighbours), (
                    question,
                    order,
                )


def test_the_bounds_are_not_loose_and_the_root_of_the_rows_is_not_enough():
    """All rows of a person may lie in one cell: k, not sqrt(k), for everything but a clipped
    sum."""
    rows = pool(2)
    people = persons(sum(block.rows for block in rows.blocks()), np.random.default_rng(0))
    model, cells = Linear(STEEP), rows.cells()
    for question in (
        RowCount(),
        CellCounts(cells, by_label=True),
        PredictionHistogram(model, cells),
        FeatureSums(cells, 1.5),
        GramMatrices(cells, 1.5),
        GroupLosses(model, cells),
        GradientSum(model, 0.2),
    ):
        scale = constant_scale(question, rows.layout, ADDED, None)
        alone, replaced = (
            moved * scale.unit for moved in largest(by_person(question, scale, rows, people), 2)
        )
        assert alone >= 0.9 * scale.bound.sensitivity("add-remove"), question
        assert replaced >= 0.9 * scale.bound.sensitivity("replace-one"), question
        if question.kind is not GradientSum:
            row = question.scale(rows.layout, None).bound
            assert alone > 1.5 * math.sqrt(MOST) * row.norm, question
    clipped = constant_scale(GradientSum(model, 0.2), rows.layout, ADDED, None).bound
    assert clipped.norm == pytest.approx(0.2, rel=1e-6)  # not three clips


def test_planted_a_clip_by_row_is_caught():
    """The kernel of rows, each clipped by itself, moves the sum by a clip a row: beyond what is
    stated."""
    rows = pool(2)
    (whole,) = rows.blocks()
    question = GradientSum(Linear(STEEP), 0.2)
    scale = constant_scale(question, rows.layout, ADDED, None)
    worst = max(
        float(
            np.linalg.norm(totals([(question, [scale])], rows, [whole.take(np.full(MOST, i))])[0])
        )
        for i in range(0, whole.rows, len(COMBINATIONS))
    )
    assert worst * scale.unit > 2.5 * scale.bound.sensitivity("add-remove")


def test_planted_a_person_in_two_parts_is_caught():
    """Parts by row put a person in several: replacing them moves more than one part. Parts by
    person move one."""
    X, y, a, ids = table(60, people=20, seed=4)
    other = X.copy()
    other[ids == 7] *= 50.0
    for units, most in ((ids, 1), (np.arange(60), 2)):
        here, there = (
            Rows.from_arrays(Z, y, [a], classes=[0, 1], groups=[[0, 1, 2]], units=units)
            for Z in (X, other)
        )
        here, there = (
            one.by_person(60, NoiseSource.seeded(0).stream("units"), adds_by_person=False)
            for one in (here, there)
        )
        measurement = [(FeatureSums(None, 1e3), [FeatureSums(None, 1e3).scale(here.layout, None)])]
        moved = 0
        for number in range(5):
            sums = [
                totals(measurement, rows, rows.part(Part(number, 5)))[0] for rows in (here, there)
            ]
            moved += bool((sums[0] != sums[1]).any())
        assert (moved <= 1) == (most == 1)


def test_planted_the_first_rows_of_a_shuffled_table_hang_on_others():
    """One person more shuffles the table otherwise: the first rows of everybody else change. The
    coins' distribution does not."""
    ids = np.repeat(np.arange(12), 5)

    def first(people):
        order = np.random.default_rng(0).permutation(len(people))
        return {who: tuple(order[people[order] == who][:2]) for who in range(11)}

    assert first(ids) != first(ids[ids < 11])
    # By coins: a given person's pair of rows, out of ten, is uniform with and without the others.
    for people in (ids, ids[ids < 11]):
        counts = np.zeros((5, 5))
        for seed in range(2000):
            chosen = kept(people, 2, NoiseSource.seeded(seed).stream("units"))
            i, j = chosen[people[chosen] == 3] - 15
            counts[i, j] += 1
        assert stats.chisquare(counts[np.triu_indices(5, 1)]).pvalue > 1e-6
        assert counts.sum() == counts[np.triu_indices(5, 1)].sum()


def table(n, people, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.r_[np.arange(people), rng.integers(0, people, n - people)]
    return (
        rng.normal(size=(n, 2)) * 3,
        rng.integers(0, 2, n),
        rng.integers(0, 3, n),
        rng.permutation(ids),
    )


def rows_of(X, y, a, ids, **options):
    return Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1, 2]], units=ids, **options)


def test_the_cap_keeps_so_many_rows_of_each_person_whatever_they_hold():
    X, y, a, ids = table(300, 40)
    for values in (X, -X, np.zeros_like(X)):
        rows = rows_of(values, y, a, ids).by_person(
            MOST, NoiseSource.seeded(5).stream("units"), adds_by_person=True
        )
        (block,) = rows.blocks()
        assert rows.exact_units == 40
        assert rows.exact_count == np.minimum(np.bincount(ids), MOST).sum() == block.rows
        assert (
            np.bincount(block.persons) == np.minimum(np.bincount(persons_of(ids, 300)), MOST)
        ).all()
        if values is X:
            places = rows._given[1]
        assert (rows._given[1] == places).all()  # by coins alone


def test_persons_are_numbered_by_their_first_row():
    """So whoever takes a person's place takes their number, whatever the name, and nobody else's
    changes."""
    for ids in (
        ["z", "a", "z", "b"],
        np.array([9, 2, 9, 5]),
        np.array(["z", "a", "z", "b"], object),
    ):
        assert persons_of(ids, 4).tolist() == [0, 1, 0, 2]
    assert persons_of(["c", "a", "c", "b"], 4).tolist() == [0, 1, 0, 2]
    equal = np.array([True, 1, 1.0, Decimal(1), np.True_, 2], object)
    assert persons_of(equal, 6).tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("units", "what"),
    [
        ([1.0, math.nan, 2.0], "missing"),
        (["a", None, "b"], "missing"),
        (["a", "", "b"], "missing"),
        (np.array(["2020-01-01", "NaT", "2020-01-02"], "datetime64[D]"), "missing"),
        (np.ma.masked_array([1, 2, 3], [False, True, False]), "missing"),
        ([1, 2], "3 values"),
        ([[1], [2], [3]], "one column"),
        ("patient", "one column"),
        ([[1], [2, 3], {}], "one name a row|one column"),
        (pd.Series(["a", None, "b"], dtype="string"), "missing"),
        (pd.Series([7, 7, "7"], dtype=object), "one kind"),
        (pd.Series(["a", "b", b"a"], dtype=object), "one kind"),
    ],
)
def test_units_that_do_not_say_whose_each_row_is_are_refused(units, what):
    if what.startswith("one name"):
        ragged = np.empty(3, object)
        ragged[:] = units
        units = ragged
    with pytest.raises(InputError, match=what):
        Rows.from_arrays(np.zeros((3, 1)), units=units)


def test_promise_and_rows_must_agree_on_who_is_protected():
    X, y, a, ids = table(30, 10)
    plain = Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1, 2]])
    with pytest.raises(PrivacyError, match="rows of known persons"):
        Curator(plain, ADDED)
    with pytest.raises(PrivacyError, match="a guarantee for persons"):
        Curator(rows_of(X, y, a, ids), Promise(1.0, 1e-6))
    with pytest.raises(PrivacyError, match="most rows of one person"):
        Curator(rows_of(X, y, a, ids), Promise(1.0, 1e-6, unit=Unit("patient")))
    most = np.bincount(ids).max()
    with pytest.raises(InputError, match=f"at least {most}, the most rows of one person"):
        Curator(
            rows_of(X, y, a, ids),
            Promise(1.0, 1e-6, "sensitive_features", unit=Unit("patient", int(most) - 1)),
        )
    for wrong in (0, -1, 1.5, True, "12", 1 << 21):
        with pytest.raises(InputError):
            Unit("patient", wrong)
    with pytest.raises(InputError, match="unit"):
        Unit("")


@pytest.mark.parametrize("promise", RELATIONS)
def test_the_number_of_rows_is_private_under_both_relations(promise):
    """Whoever is replaced may have had more rows: only the number of persons is public under
    replace-one."""
    X, y, a, ids = table(30, 10)
    curator = Curator(rows_of(X, y, a, ids), promise)
    with pytest.raises(PrivacyError, match="public number of rows"):
        curator.public_rows  # noqa: B018
    assert isinstance(curator.describe([(RowCount(), 5.0)]), Gaussian)
    alone = Promise(1.0, 1e-6, neighbours="replace-one", unit=Unit("patient", 1))
    assert isinstance(Curator(rows_of(X, y, a, ids), alone).describe([(RowCount(), 5.0)]), NoOp)


def test_a_batch_holds_all_rows_of_a_person_or_none():
    X, y, a, ids = table(400, 60)
    curator = Curator(rows_of(X, y, a, ids), ADDED, noise=NoiseSource.seeded(3))
    drawn = np.zeros(60)
    for number in range(300):
        (batch,) = curator._chosen(Poisson(0.3), number)
        there = np.bincount(batch.persons, minlength=60)
        assert set(np.unique(there / np.bincount(curator._rows._persons))) <= {0.0, 1.0}
        drawn += there > 0
    assert stats.kstest(drawn, stats.binom(300, 0.3).cdf).statistic < 0.6
    assert stats.binomtest(int(drawn.sum()), 300 * 60, 0.3).pvalue > 1e-6


def test_parts_are_of_persons_and_only_where_their_number_is_public():
    X, y, a, ids = table(400, 60)
    rows = rows_of(X, y, a, ids).by_person(
        MOST, NoiseSource.seeded(0).stream("units"), adds_by_person=False
    )
    seen = [
        np.unique(np.concatenate([block.persons for block in rows.part(Part(j, 7))]))
        for j in range(7)
    ]
    assert sorted(np.concatenate(seen).tolist()) == list(range(60))
    with pytest.raises(PrivacyError, match="add-remove"):
        describe([(CellCounts(rows.cells()), 5.0)], rows.layout, ADDED, Part(0, 7))
    assert describe([(CellCounts(rows.cells()), 5.0)], rows.layout, REPLACED, Part(0, 7)).parts == 7
    with pytest.raises(InputError, match="one a person"):
        rows.check_part(Part(0, 61))


def test_prices_are_of_persons():
    """A batch is priced by its rate of persons; discrete noise is for k and 2 k steps; a clipped
    sum costs no more for k."""
    rows = pool(2)
    cells, model = rows.cells(), Linear(np.zeros(WIDTH))
    measurements = [Measurement(GradientSum(model, 1.0), 2.0), Measurement(RowCount(), 4.0)]
    found = describe(measurements, rows.layout, REPLACED, Poisson(0.1))
    assert isinstance(found, PoissonSampled)
    assert found.rate == 0.1
    assert found.spreads[0] == pytest.approx(2.0)
    # whoever comes may have more rows than whoever goes
    assert found.spreads[1] == pytest.approx(1.0)
    for promise, steps in ((ADDED, MOST), (REPLACED, 2 * MOST)):
        event = describe(
            [Measurement(CellCounts(cells), 3.0, "discrete-laplace")], rows.layout, promise
        )
        assert event == DiscreteLaplace(3.0, steps)
    assert describe(measurements[:1], rows.layout, ADDED) == Gaussian(2.0)


def test_attribute_changes_of_all_rows_of_a_person_stay_within_the_bound():
    """Sensitive features alone: a person's values may change in each row by itself; the worst is
    all alike."""
    rows = pool(2, far=False)
    rng = np.random.default_rng(2)
    cells, model = rows.cells(), Linear(np.random.default_rng(1).normal(size=WIDTH))
    costs = rng.normal(size=(cells.count, 2, 2))
    each = len(COMBINATIONS)
    for question in (
        CellCounts(cells),
        PredictionHistogram(model, cells, "soft"),
        GradientSum(model, None, cells, costs, loss="none"),
        FeatureSums(cells, 1.5),
        GroupLosses(model, cells),
    ):
        if needs_rows(question, rows.layout):
            row = public_scales(question, rows)[0]
        else:
            row = question.scale(rows.layout, None, promise=ALONE)
        scale = of_persons(row, MOST)
        v = contributions(question, row, rows).reshape(
            -1, each, math.prod(question.shape(rows.layout))
        )
        worst = 0.0
        for person in range(len(v)):
            for a, b in itertools.combinations(range(each), 2):
                worst = max(worst, MOST * float(np.linalg.norm(v[person, a] - v[person, b])))
        for _ in range(300):
            people = rng.integers(0, len(v), MOST)
            change = sum(v[i, rng.integers(each)] - v[i, rng.integers(each)] for i in people)
            worst = max(worst, float(np.linalg.norm(change)))
        assert (
            0.9 * scale.bound.sensitivity("replace-one")
            <= worst * scale.unit
            <= scale.bound.sensitivity("replace-one")
        )


@pytest.mark.parametrize("promise", [ADDED, REPLACED, SENSITIVE])
def test_choices_range_no_further_than_a_person_moves_them(promise):
    """All persons of a small pool, all tables of costs: the exponential mechanism's range,
    enumerated."""
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(8, 2)), rng.integers(0, 2, 8)
    a = np.tile([0, 1], 4)
    rows = Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1]], units=np.arange(8))
    curator = Curator(
        rows, Promise(LOUD, 1e-6, promise.protects, promise.neighbours, Unit("patient", MOST))
    )
    models = Linear(rng.normal(size=(5, 1, 3)))
    question, costs = (
        PredictionHistogram(models, curator.cells(), "hard"),
        rng.integers(-4, 5, (2, 1, 2)).astype(float),
    )
    contest = curator._chooser.contest((question,), None, costs, None)
    score = np.array([[_decided(models.array[m, 0], X[i]) for i in range(8)] for m in range(5)])

    def added(i, group):
        return np.array([costs[group, 0, score[m, i]] for m in range(5)])

    moves = []
    if promise.protects == "records":
        single = [added(i, a[i]) for i in range(8)]
        alone = [
            sum(one)
            for size in (1, 2, 3)
            for one in itertools.combinations_with_replacement(single, size)
        ]
        moves = (
            alone if promise.neighbours == "add-remove" else [p - q for p in alone for q in alone]
        )
    else:
        single = [added(i, 1 - g) - added(i, g) for i in range(8) for g in (0, 1)]
        moves = [sum(one) for one in itertools.combinations_with_replacement(single, MOST)]
    found = max(float(np.ptp(move)) for move in moves)
    assert found <= contest.stated
    assert found >= 0.45 * contest.stated


def _decided(weights, x):
    return int(weights[0] + weights[1:] @ x > 0)


def test_sums_by_person_do_not_hang_on_order_threads_or_companions():
    X, y, a, ids = table(5000, 700)
    order = np.random.default_rng(9).permutation(5000)
    question = GradientSum(Linear(np.array([0.1, 0.5, -1.0])), 2.0)
    found = []
    for at, threads in ((np.arange(5000), 1), (np.arange(5000), 3), (order, 2)):
        rows = rows_of(X[at], y[at], a[at], ids[at])
        rows = rows.by_person(10_000, NoiseSource.seeded(0).stream("units"), adds_by_person=True)
        scale = constant_scale(question, rows.layout, ADDED, None)
        found.append(totals([(question, [scale])], rows, rows.blocks(), threads)[0])
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    by_hand = np.zeros(3)
    z = 0.1 + X @ [0.5, -1.0]
    rest = 1 / (1 + np.exp(-z)) - y
    longest = np.sqrt(1 + (X**2).sum(axis=1))
    rest *= np.minimum(1.0, 2.0 / np.maximum(np.abs(rest) * longest, 1e-300))
    for person in range(700):
        mine = (rest[:, np.newaxis] * np.c_[np.ones(5000), X])[ids == person].sum(axis=0)
        by_hand += mine * min(1.0, 2.0 / np.linalg.norm(mine))
    assert np.allclose(found[0].ravel() * scale.unit, by_hand, atol=1e-5)


def test_with_one_row_each_answers_are_those_of_rows():
    X, y, a, _ = table(200, 200)
    plain = Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1, 2]])
    measurements = [
        (GradientSum(Linear(np.array([0.1, 0.5, -1.0])), 1.0), 3.0),
        (CellCounts(plain.cells()), 4.0),
    ]
    rows = rows_of(X, y, a, np.arange(200)[::-1])
    for batch in (Poisson(0.2), None):
        options = {} if batch is None else {"batch": batch}
        one = Curator(plain, Promise(10.0, 1e-6), noise=NoiseSource.seeded(1)).answer(
            measurements, **options
        )
        unit = Promise(10.0, 1e-6, unit=Unit("patient", 1))
        other = Curator(rows, unit, noise=NoiseSource.seeded(1)).answer(measurements, **options)
        assert all((a == b).all() for a, b in zip(one, other, strict=True))


def test_what_is_made_elsewhere_row_by_row_stays_with_its_row():
    """Codes and predictions are given in the order of the table, and the curator reads other rows,
    in another order."""
    X, y, a, ids = table(200, 50)
    rows = rows_of(X, y, a, ids)
    promise = Promise(LOUD, 1e-6, unit=Unit("patient", 2))
    codes = (X[:, 0] > 0).astype(np.int64)
    curator = Curator(rows, promise, noise=NoiseSource.seeded(0))
    attached = curator.attach_codes(lambda block: codes, 2)
    model = curator.attach(lambda block: codes)
    for question in (CodeHistogram(attached), AttachedHistogram(model)):
        (found,) = curator.answer([(question, 1e-2)])
        there = curator._rows._given[1]
        assert np.allclose(found.ravel()[-2:], np.bincount(codes[there], minlength=2), atol=0.4)


def test_an_audit_stays_below_the_claim_and_finds_a_clip_by_row():
    """Runs with and without one person whose rows all pull one way: what is found is below the
    claim, and not far below.

    40,000 runs of each; a bound at confidence 99.9999 % is above the truth with probability
    1e-6."""
    X, y, a, ids = table(40, 20, seed=8)
    far = (
        np.r_[X, np.full((MOST, 2), 1e6)],
        np.r_[y, [0] * MOST],
        np.r_[a, [0] * MOST],
        np.r_[ids, [99] * MOST],
    )
    model, z = GradientSum(Linear(np.zeros(3)), 1.0), full_batch(Promise(3.0, 1e-6), 1)
    scale = constant_scale(model, rows_of(X, y, a, ids).layout, ADDED, None)
    rng = np.random.default_rng(0)
    event = Gaussian(z)
    for by_person, honest in ((True, True), (False, False)):
        means = []
        for rows in (rows_of(X, y, a, ids), rows_of(*far)):
            rows = rows.by_person(
                MOST, NoiseSource.seeded(0).stream("units"), adds_by_person=by_person
            )
            means.append(totals([(model, [scale])], rows, rows.blocks())[0].ravel() * scale.unit)
        toward = (means[1] - means[0]) / np.linalg.norm(means[1] - means[0])
        size = z * scale.bound.sensitivity("add-remove")
        scores = [(mean - means[0] + rng.normal(0, size, (40_000, 3))) @ toward for mean in means]
        found = audit_scores(*scores, delta=1e-6, confidence=0.999999)
        claim = EventsClaim(event, neighbours="add-remove")
        assert found.contradicts(claim) is not honest
        if honest:
            assert found.epsilon_lower <= epsilon(event, 1e-6, "add-remove")
            assert found.mu_lower >= 0.85 / z
