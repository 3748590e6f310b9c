"""Events and noise come from one place: the same unit, the same relation, known before data are
touched."""

from __future__ import annotations

import itertools
import math
from dataclasses import fields

import numpy as np
import pytest

from fairveil.core import pricing
from fairveil.core.events import (
    DiscreteLaplace,
    Gaussian,
    NonPrivate,
    NoOp,
    PerCell,
    PoissonSampled,
    Repeated,
    VisiblySampled,
)
from fairveil.core.layout import partition_of
from fairveil.curator import (
    FULL,
    ByCell,
    CellCounts,
    Curator,
    FeatureSums,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Measurement,
    NumberMoments,
    Poisson,
    PredictionHistogram,
    RowCount,
    Rows,
    ScoreHistogram,
    Weighed,
    describe,
)
from fairveil.errors import InputError, PrivacyError
from fairveil.privacy import Promise, epsilon

ADD, REPLACE = Promise(1.0, 1e-6), Promise(1.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-6, protects="sensitive_features")
WEIGHTS = np.linspace(-1, 1, 11)


@pytest.mark.parametrize("promise", [ADD, REPLACE, SENSITIVE], ids=str)
@pytest.mark.parametrize("batch", [FULL, Poisson(0.25)], ids=str)
def test_guarantee_1_described_before_is_logged_after(rows_of, promise, batch):
    rows = rows_of()
    cells, model = rows.cells(), Linear(WEIGHTS)
    costs = np.ones((cells.count, 2, 2)) * np.arange(cells.count)[:, np.newaxis, np.newaxis]
    measurements = [
        (GradientSum(model, 1.0, cells, costs), 30.0),
        (PredictionHistogram(model, cells, "soft"), 40.0),
        (CellCounts(cells), 50.0),
        (GroupLosses(model, cells, "log", 2.0), np.linspace(20, 60, cells.count)),
    ]
    curator = Curator(rows, Promise(50.0, 1e-6, promise.protects, promise.neighbours))
    curator.answer(measurements, batch)
    assert curator.log.events == (describe(measurements, rows.layout, promise, batch),)


@pytest.mark.parametrize("promise", [ADD, REPLACE, SENSITIVE], ids=str)
@pytest.mark.parametrize("batch", [FULL, Poisson(0.25)], ids=str)
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_guarantee_1_for_number_moments_and_score_histograms(
    rows_of, promise, batch, weights, mode
):
    """As part of a plan, too: what is described can be followed to its end, after a rescaling as
    before it."""
    rows = rows_of(weights=weights)
    whole = Promise(50.0, 1e-6, promise.protects, promise.neighbours)
    first = [(NumberMoments(1.5), 30.0)]
    last = [
        (ScoreHistogram(Linear(WEIGHTS), (-1.0, 0.0, 0.5), rows.cells(mode), by_label=True), 40.0)
    ]
    cap = rows.max_sample_weight if weights else None
    plan = [
        describe(measurements, rows.layout, whole, batch, max_sample_weight=cap)
        for measurements in (first, last)
    ]
    curator = Curator(rows, whole, plan=plan)
    curator.answer(first, batch)
    curator.rescale([2.0, 3.0, 0.1], [0.0, 1.0, -1.0])
    curator.answer(last, batch)
    curator.finish()
    assert curator.log.events == tuple(event for event in plan if event != NoOp())
    assert (plan[0] == NoOp()) == (promise is SENSITIVE)


def test_full_batch_events_are_multipliers(rows_of):
    rows = rows_of()
    measurement = [(GradientSum(Linear(WEIGHTS), 1.0), 3.0), (CellCounts(rows.cells()), 4.0)]
    assert (
        describe(measurement, rows.layout, ADD).to_dict()
        == describe(measurement, rows.layout, REPLACE).to_dict()
    )
    assert describe(measurement[:1] * 2, rows.layout, ADD) == Repeated(Gaussian(3.0), 2)


def test_many_models_are_many_releases(rows_of):
    rows = rows_of()
    model = Linear(np.zeros((5, 1, 11)))
    assert describe([(GradientSum(model, 1.0), 3.0)], rows.layout, ADD) == Repeated(
        Gaussian(3.0), 5
    )


def test_poisson_batches_carry_the_spread_of_each_part(rows_of):
    rows = rows_of()
    measurements = [(GradientSum(Linear(WEIGHTS), 1.0), 3.0), (CellCounts(rows.cells()), 4.0)]
    assert describe(measurements, rows.layout, ADD, Poisson(0.1)).spreads is None
    event = describe(measurements, rows.layout, REPLACE, Poisson(0.1))
    assert isinstance(event, PoissonSampled)
    assert event.spreads == pytest.approx((2.0, math.sqrt(2)))
    assert isinstance(
        describe(measurements[1:], rows.layout, SENSITIVE, Poisson(0.1)), VisiblySampled
    )


@pytest.mark.parametrize(
    ("promise", "batch", "sensitivity"),
    [
        (ADD, FULL, 1.0),
        (REPLACE, FULL, 2.0),
        (ADD, Poisson(0.5), 1.0),
        (REPLACE, Poisson(0.5), 1.0),  # over the largest norm: the spread, 2, is the event's
    ],
    ids=str,
)
def test_guarantee_2_noise_is_multiplier_times_the_unit_that_the_event_counts_in(
    rows_of, promise, batch, sensitivity
):
    rows = rows_of()
    question = GradientSum(Linear(WEIGHTS), 1.0)
    scale = question.scale(rows.layout, None)
    size = pricing.noise_scale(
        Measurement(question, 3.0), scale, promise, batch, question.shape(rows.layout)
    )
    assert size * scale.unit == pytest.approx(3.0 * sensitivity, rel=1e-6)
    assert size * scale.unit >= 3.0 * sensitivity


def test_guarantee_2_by_cell_noise_is_over_the_norm(rows_of):
    rows = rows_of()
    cells = rows.cells()
    question = FeatureSums(cells, 1.5)
    vector = np.linspace(1, 6, cells.count)
    scale = question.scale(rows.layout, None)
    for promise, within in ((ADD, 2.0), (REPLACE, 2.0), (SENSITIVE, 0.0)):
        size = pricing.noise_scale(
            Measurement(question, vector), scale, promise, FULL, question.shape(rows.layout)
        )
        assert (size[:, 0] * scale.unit) == pytest.approx(1.5 * vector, rel=1e-6)
        assert describe([(question, vector)], rows.layout, promise) == PerCell(
            (tuple(vector),), (within,)
        )


def test_by_cell_noise_costs_what_one_multiplier_costs_when_all_are_equal(rows_of):
    rows = rows_of()
    cells = rows.cells()
    for question in (
        CellCounts(cells),
        FeatureSums(cells, 1.5),
        GramMatrices(cells, 1.5),
        GroupLosses(Linear(WEIGHTS), cells),
    ):
        scale = question.scale(rows.layout, None)
        for promise in (ADD, REPLACE):
            vector = np.full(cells.count, 7.0)
            by_cell = epsilon(
                describe([(question, vector)], rows.layout, promise), 1e-6, promise.neighbours
            )
            same = 7.0 * scale.bound.norm / scale.bound.sensitivity(promise.neighbours)
            assert by_cell == pytest.approx(epsilon(Gaussian(same), 1e-6), rel=1e-4), question


def test_counts_by_discrete_noise(rows_of):
    rows = rows_of()
    counts = CellCounts(rows.cells())
    assert describe(
        [Measurement(counts, 2.0, "discrete-laplace")], rows.layout, ADD
    ) == DiscreteLaplace(2.0, 1)
    assert describe(
        [Measurement(counts, 2.0, "discrete-laplace")], rows.layout, REPLACE
    ) == DiscreteLaplace(2.0, 2)
    assert describe(
        [Measurement(counts, 2.0, "discrete-laplace")], rows.layout, SENSITIVE
    ) == DiscreteLaplace(2.0, 2)
    two = CellCounts(rows.cells("marginal"))
    assert describe(
        [Measurement(two, 2.0, "discrete-laplace")], rows.layout, REPLACE
    ) == DiscreteLaplace(2.0, 4)
    measurement = Measurement(counts, 2.0, "discrete-laplace")
    assert (
        pricing.noise_scale(measurement, counts.scale(rows.layout, None, 1), REPLACE, FULL, (6,))
        == 4.0
    )
    with pytest.raises(InputError, match="counts whole rows"):
        describe(
            [
                Measurement(
                    GroupLosses(Linear(WEIGHTS), rows.cells(), "log", 2.0), 2.0, "discrete-laplace"
                )
            ],
            rows.layout,
            ADD,
        )
    with pytest.raises(InputError, match="Gaussian noise on a Poisson batch"):
        describe([measurement], rows.layout, ADD, Poisson(0.1))


def test_guarantee_3_exact_answers_only_where_nothing_protected_is_read(rows_of):
    rows = rows_of()
    free = GradientSum(Linear(WEIGHTS))
    assert describe([(free, 0.0)], rows.layout, SENSITIVE) == NoOp()
    assert describe([(free, 9.0)], rows.layout, SENSITIVE) == NoOp()
    assert describe([(RowCount(), 0.0)], rows.layout, REPLACE) == NoOp()
    assert (
        describe([(CellCounts(rows.cells()), 0.0)], rows.layout, Promise(math.inf, 0.0))
        == NonPrivate()
    )
    for promise, question in (
        (ADD, RowCount()),
        (REPLACE, CellCounts(None, by_label=True)),
        (SENSITIVE, CellCounts(rows.cells())),
    ):
        with pytest.raises(PrivacyError, match="multiplier above 0"):
            describe([(question, 0.0)], rows.layout, promise)


@pytest.mark.parametrize("multiplier", [-1.0, math.nan, math.inf, [1.0, 0.0], [], [[1.0]], 1e9])
def test_multipliers_that_mean_nothing_are_refused(multiplier):
    with pytest.raises(InputError, match="multiplier"):
        Measurement(RowCount(), multiplier)


def test_vectors_of_multipliers_need_cells_that_do_not_overlap(rows_of):
    rows = rows_of()
    marginal = rows.cells("marginal")
    with pytest.raises(InputError, match="do not overlap"):
        describe([(CellCounts(marginal), np.ones(marginal.count))], rows.layout, ADD)


def partitioned(names, values=("a", "b", "c")):
    """Rows with these sensitive columns, of as many values each."""
    rng = np.random.default_rng(1)
    columns = [rng.choice(values, 30) for _ in names]
    return Rows.from_arrays(
        rng.normal(size=(30, 2)),
        rng.integers(0, 2, 30),
        columns,
        classes=[0, 1],
        groups=[values] * len(names),
        sensitive_names=names,
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace-one", "sensitive_features"])
@pytest.mark.parametrize("weighs", [False, True])
def test_releases_over_different_columns_are_priced_for_the_worst_combination(relation, weighs):
    """Each release has little noise in one cell of its column; a person may be in all of those
    cells, and the price is hers whatever columns are asked, in whatever order."""
    promise = (
        Promise(9.0, 1e-6, relation)
        if relation == "sensitive_features"
        else Promise(9.0, 1e-6, neighbours=relation)
    )
    rows, inner = partitioned(["p", "q", "r"]), FeatureSums(None, clip=1.0)

    def ask(names, cell):
        cells = rows.cells(names=names)
        if weighs:
            factors = np.full(cells.count, 1e-3)
            factors[cell] = 1.0
            return Measurement(Weighed(inner, cells, factors), 5.0)
        vector = np.full(cells.count, 2.0**17)
        vector[cell] = 5.0
        return Measurement(ByCell(inner, cells), vector)

    def price(*asked):
        return epsilon(describe(asked, rows.layout, promise), promise.delta, promise.neighbours)

    alone = price(ask(["p"], 0))
    twice = price(ask(["p"], 0), ask(["p"], 0))
    assert twice > 1.3 * alone
    for first, second in (
        (["p"], ["q"]),
        (["r"], ["p"]),
        (["p", "q"], ["q", "r"]),
        (["p", "q"], ["q", "p"]),
        (["p", "q", "r"], ["r", "q", "p"]),
        (["p"], ["p", "q"]),
    ):
        # one person is in cell 0 of the first and in the last cell of the second
        other = rows.cells(names=second).count - 1
        both = price(ask(first, 0), ask(second, other))
        assert both >= 0.98 * twice, (first, second)
    if relation == "add-remove":  # of one column nobody is in two cells
        assert price(ask(["p"], 0), ask(["p"], 2)) <= 1.02 * alone


def test_every_list_of_columns_is_a_partition_of_its_own():
    rows = partitioned(["p", "q", "r"], ("a", "b"))
    lists = [
        list(names) for size in (1, 2, 3) for names in itertools.permutations(["p", "q", "r"], size)
    ]
    keys = {
        (partition_of(cells, rows.layout), cells.count)
        for cells in (rows.cells(names=names) for names in lists)
    }
    assert len(keys) == len(lists)
    assert [partition_of(rows.cells(names=[one]), rows.layout) for one in "pqr"] == [0, 1, 2]
    assert partition_of(rows.cells(), rows.layout) == 0
    strange = partitioned(["p", "other"], ("a", "b")).cells(names=["other"])
    with pytest.raises(InputError, match="sensitive columns"):
        describe([(ByCell(FeatureSums(None, 1.0), strange), [2.0, 3.0])], rows.layout, ADD)


def test_nothing_that_is_asked_says_of_which_column_cells_are():
    assert "column" not in {one.name for one in fields(Measurement)}
    with pytest.raises(TypeError, match="column"):
        Measurement(CellCounts(partitioned(["p"]).cells()), [2.0, 3.0, 4.0], column=1)
