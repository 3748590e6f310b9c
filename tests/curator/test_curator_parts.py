"""Fixed public parts: who is in them, who moves them, what they cost (`core/rows.py`,
theory.md#t8)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fairveil.core.events import Composed, Gaussian, NonPrivate, NoOp, OnPart, PerCell, Repeated
from fairveil.core.passes import needs_rows, public_scales, totals
from fairveil.core.questions import ALONE
from fairveil.core.rows import public_order
from fairveil.curator import (
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    Part,
    Poisson,
    PredictionHistogram,
    RowCount,
    RowFunction,
    Rows,
    describe,
)
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import NoiseSource, Promise, epsilon
from fairveil.statement.document import PrivacyStatement

REPLACE = Promise(5.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(5.0, 1e-6, "sensitive_features")
NONE = Promise(math.inf, 0.0)
PARTS = 4
WEIGHTS = np.linspace(-1, 1, 3)
FALSE_ALARM = 1e-7


def table(n=18, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)) * 3, rng.integers(0, 2, n), rng.integers(0, 3, n)


def rows_of(X, y, a, **options) -> Rows:
    return Rows.from_arrays(
        X, y, [a], classes=(0, 1), groups=[(0, 1, 2)], sensitive_names=("a",), **options
    )


def questions(rows):
    cells, model = rows.cells(), Linear(WEIGHTS)
    costs = np.random.default_rng(3).normal(size=(cells.count, 2, 2))
    return [
        CellCounts(cells, by_label=True),
        PredictionHistogram(model, cells),
        PredictionHistogram(model, cells, "soft", by_label=True),
        GradientSum(model, 0.7, cells, costs),
        FeatureSums(cells, 1.5),
        GramMatrices(cells, 1.5),
        GroupLosses(model, cells),
    ]


def part_totals(question, scales, rows):
    """The integers of every part."""
    return [
        totals([(question, scales)], rows, rows.part(Part(number, PARTS)))[0]
        for number in range(PARTS)
    ]


@pytest.mark.parametrize("n", [1, 2, 17, 1000])
@pytest.mark.parametrize("parts", [1, 2, 7, 17])
def test_guarantee_1_parts_cut_the_rows_evenly_by_place_alone(n, parts) -> None:
    parts = min(n, parts)
    order = public_order(n)
    cut = [np.sort(order[number::parts]) for number in range(parts)]
    assert sorted(np.concatenate(cut).tolist()) == list(range(n))
    assert max(map(len, cut)) - min(map(len, cut)) <= 1
    assert np.array_equal(order, public_order(n))


def test_guarantee_1_the_order_is_this_one_for_ever() -> None:
    """Another order would put people into other parts between two runs of one plan."""
    assert public_order(8).tolist() == [2, 4, 6, 5, 1, 7, 0, 3]
    mixed = public_order(1000)
    assert abs(stats.spearmanr(np.arange(1000), mixed).statistic) < 0.1
    # a sorted table gives no one-sided part
    assert (np.bincount(mixed[0::10] // 100, minlength=10) > 0).all()


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_guarantee_1_parts_read_the_rows_at_their_places(in_memory, kept, monkeypatch) -> None:
    X, y, a = table(50)
    rows = rows_of(X, y, a)
    whole = Rows(rows._source, in_memory=in_memory)
    if not kept:
        monkeypatch.setattr("fairveil.core.rows.MOST_GATHERED", 0)
    order = public_order(50)
    for question in questions(rows):
        scale = question.scale(rows.layout, None)
        for _ in range(2):  # an epoch, and another
            for number, total in enumerate(part_totals(question, [scale], whole)):
                (block,) = rows.blocks()
                alone = block.take(np.sort(order[number::PARTS]))
                assert np.array_equal(total, totals([(question, [scale])], rows, [alone])[0])


@pytest.mark.parametrize("attributes_alone", [False, True])
def test_guarantee_2_a_neighbour_moves_her_part_by_the_bound_at_most_and_no_other(
    attributes_alone,
) -> None:
    """Every row, replaced by every one of a pool (near, far, other labels), or given every other
    sensitive value."""
    X, y, a = table()
    rows = rows_of(X, y, a)
    pool = list(itertools.product(([0.0, 0.0], [1e9, -1e9], [0.3, 2.0]), (0, 1), (0, 1, 2)))
    part_of = np.empty(len(X), int)
    for number in range(PARTS):
        part_of[public_order(len(X))[number::PARTS]] = number
    for question in questions(rows):
        scales = [question.scale(rows.layout, None)]
        if attributes_alone and needs_rows(question, rows.layout):
            scales = public_scales(question, rows)
        elif attributes_alone:
            scales = [question.scale(rows.layout, None, promise=ALONE)]
        before, largest = part_totals(question, scales, rows), 0.0
        for i in range(len(X)):
            for features, label, group in pool:
                X2, y2, a2 = X.copy(), y.copy(), a.copy()
                a2[i] = group
                if not attributes_alone:
                    X2[i], y2[i] = features, label
                after = part_totals(question, scales, rows_of(X2, y2, a2))
                for number in range(PARTS):
                    if number != part_of[i]:
                        assert np.array_equal(before[number], after[number])
                move = (
                    np.linalg.norm((after[part_of[i]] - before[part_of[i]]).astype(float))
                    * scales[0].unit
                )
                largest = max(largest, move)
        bound = scales[0].bound.sensitivity("replace-one")
        assert 0 < largest <= bound


@pytest.mark.parametrize("promise", [REPLACE, SENSITIVE], ids=["replace-one", "sensitive"])
def test_noise_on_a_part_is_the_multiplier_times_the_sensitivity(promise) -> None:
    """Chi-square of the variance, false-alarm rate 1e-7; 1.5 times off is rejected, both ways."""
    X, y, a = table(40)
    rows = rows_of(X, y, a)
    measurement = Measurement(CellCounts(rows.cells(), by_label=True), 20.0)
    repeats, part = 120, Part(1, PARTS)
    event = describe([measurement], rows.layout, promise, part)
    assert event == OnPart(Gaussian(20.0), 1, PARTS)
    wide = Promise(1000.0, 1e-6, promise.protects, promise.neighbours)
    curator = Curator(rows, wide, plan=[Repeated(event, repeats)], noise=NoiseSource.seeded(1))
    places = np.sort(public_order(40)[1::PARTS])
    exact = np.zeros((3, 2))
    np.add.at(exact, (a[places], y[places]), 1.0)
    drawn = np.array([curator.answer([measurement], part)[0] - exact for _ in range(repeats)])

    def passes(sd):
        statistic = (drawn**2).sum() / sd**2
        return (
            min(stats.chi2.sf(statistic, drawn.size), stats.chi2.cdf(statistic, drawn.size))
            > FALSE_ALARM / 2
        )

    assert passes(20.0 * math.sqrt(2))
    assert not passes(20.0 * math.sqrt(2) * 1.5)
    assert not passes(20.0 * math.sqrt(2) / 1.5)
    assert PrivacyStatement.of_run(curator).check() == []


@pytest.mark.parametrize("promise", [REPLACE, SENSITIVE], ids=["replace-one", "sensitive"])
def test_epochs_over_parts_cost_their_number_and_the_log_is_the_plan(promise) -> None:
    X, y, a = table(60)
    rows = rows_of(X, y, a)
    cells = rows.cells()
    costs = np.random.default_rng(0).normal(size=(3, 1, 2))
    measurements = [
        (GradientSum(Linear(WEIGHTS), 1.0, cells, costs), 12.0),
        (PredictionHistogram(Linear(WEIGHTS), cells), 12.0),
    ]
    events = [
        describe(measurements, rows.layout, promise, Part(number, PARTS)) for number in range(PARTS)
    ]
    plan = Repeated(Composed(tuple(events)), 3)
    curator = Curator(rows, promise, plan=plan, noise=NoiseSource.seeded(0))
    for _ in range(3):
        for number in range(PARTS):
            curator.answer(measurements, Part(number, PARTS))
    curator.finish()
    statement = PrivacyStatement.of_run(curator)
    assert statement.check() == []
    assert statement.epsilon == epsilon([Repeated(Gaussian(12.0), 6)], promise.delta)
    assert [entry.batch for entry in curator.log.entries[:2]] == ["part 1 of 4", "part 2 of 4"]


def test_parts_out_of_turn_are_refused() -> None:
    rows = rows_of(*table())
    measurement = [(CellCounts(rows.cells()), 9.0)]
    plan = [OnPart(Gaussian(9.0), number, 2) for number in range(2)]
    curator = Curator(rows, REPLACE, plan=plan, noise=NoiseSource.seeded(0))
    with pytest.raises(PrivacyError, match="plan's next event"):
        curator.answer(measurement, Part(1, 2))


def test_what_nobody_moves_stays_free_on_a_part() -> None:
    rows = rows_of(*table())
    curator = Curator(rows, SENSITIVE, noise=NoiseSource.seeded(0))
    assert describe([(FeatureSums(None, 1.0), 3.0)], rows.layout, SENSITIVE, Part(0, 3)) == NoOp()
    assert describe([(RowCount(), 3.0)], rows.layout, REPLACE, Part(0, 3)) == NoOp()
    counts = [
        float(curator.answer([(RowCount(), 0.0)], Part(number, 3))[0][0]) for number in range(3)
    ]
    assert counts == [6.0, 6.0, 6.0]
    assert len(curator.log) == 0


def test_multipliers_by_cell_are_priced_on_a_part_as_on_all_rows() -> None:
    rows = rows_of(*table())
    measurement = (CellCounts(rows.cells()), np.array([5.0, 6.0, 7.0]))
    event = describe([measurement], rows.layout, SENSITIVE, Part(2, 3))
    assert event == OnPart(PerCell(((5.0, 6.0, 7.0),), (0.0,)), 2, 3)
    assert Curator(rows, SENSITIVE, plan=[event]).answer([measurement], Part(2, 3))[0].shape == (3,)


def test_user_code_runs_on_its_part_alone() -> None:
    rows = rows_of(*table())
    seen = []

    def ones(block):
        seen.append(block.rows)
        return np.ones((block.rows, 1))

    question = RowFunction(ones, 1, 1.0)
    Curator(rows, REPLACE).answer([(question, 9.0)], Part(0, 3))
    assert max(seen) <= 6


def test_add_remove_refuses_a_part_and_says_the_way_out() -> None:
    rows = rows_of(*table())
    measurement = [(CellCounts(rows.cells()), 9.0)]
    curator = Curator(rows, Promise(5.0, 1e-6))
    for refused in (
        lambda: curator.answer(measurement, Part(0, 2)),
        lambda: describe(measurement, rows.layout, curator.promise, Part(0, 2)),
    ):
        with pytest.raises(
            PrivacyError, match=r"moves others from part to part.*Poisson\(1 / parts\)"
        ):
            refused()
    assert len(curator.log) == 0
    assert curator.answer(measurement, Part(0, 1))[0].shape == (3,)


def test_without_privacy_a_part_stays_a_part_and_is_exact() -> None:
    X, y, a = table()
    rows = rows_of(X, y, a)
    curator = Curator(rows, NONE)
    measurement = [(CellCounts(rows.cells()), 0.0)]
    parts = [curator.answer(measurement, Part(number, 3))[0] for number in range(3)]
    assert np.array_equal(np.sum(parts, axis=0), np.bincount(a, minlength=3))
    assert all(part.sum() == 6 for part in parts)
    assert set(curator.log.events) == {NonPrivate()}
    assert (
        curator.answer(measurement, Poisson(0.1))[0].sum() == 18
    )  # a random batch has no use there


@pytest.mark.parametrize(
    ("number", "parts"), [(2, 2), (-1, 3), (0, 0), (0.5, 2), ("a", 2), (True, 2)]
)
def test_a_part_that_is_none_is_refused(number, parts) -> None:
    with pytest.raises(InputError):
        Part(number, parts)


def test_a_part_that_would_be_empty_is_refused_before_anything_is_charged() -> None:
    rows = rows_of(*table())
    curator = Curator(rows, REPLACE)
    with pytest.raises(InputError, match="at most 18 parts"):
        curator.answer([(CellCounts(rows.cells()), 9.0)], Part(0, 19))
    assert curator.answer([(CellCounts(rows.cells()), 9.0)], Part(17, 18))[0].shape == (3,)


def test_rescaled_rows_are_gathered_anew() -> None:
    X, y, a = table()
    rows = rows_of(X, y, a)
    curator = Curator(rows, NONE)
    measurement = [(FeatureSums(None, None), 0.0)]
    before = curator.answer(measurement, Part(0, 2))[0].ravel()
    curator.rescale([2.0, 2.0], [0.0, 0.0])
    after = curator.answer(measurement, Part(0, 2))[0].ravel()
    assert np.allclose(after[1:], 2 * before[1:])
