"""The trusted room's curator against the one that fits use: the same events, and seeded answers of
the same bits; what it refuses; who listens to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from fairveil.core import curator as new
from fairveil.core import sums
from fairveil.core.errors import BudgetError, FairveilError, InputError, PrivacyError
from fairveil.core.events import Event, Gaussian, NoOp, PerCell, PoissonSampled, compose
from fairveil.core.filters import Filter
from fairveil.core.noise import NoiseSource
from fairveil.core.promise import Promise, Unit
from fairveil.core.sums import Facts, Sum
from fairveil.curator import (
    ByCell,
    CellCounts,
    Curator,
    GradientSum,
    GramMatrices,
    GroupLosses,
    Linear,
    Poisson,
    PredictionHistogram,
    Rows,
    ScoreHistogram,
    describe,
)

ROWS = 700
RELATIONS = ("add-remove", "replace-one")


class Held:
    """Rows as the trusted room asks for them."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    def of_units(self, index: Any) -> Iterator[Any]:
        for drawn in self._rows.of_units(index):
            yield getattr(drawn, "gathered", drawn)


def made(classes: int = 2, *, weights: bool = False, sparse: bool = False, seed: int = 3) -> Rows:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (ROWS, 4))
    X[rng.random(X.shape) < (0.7 if sparse else 0.0)] = 0.0
    codes = np.array([rng.integers(0, k, ROWS) for k in (3, 5)], np.uint8).T
    groups = [rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS)]
    more = {"sample_weight": rng.random(ROWS) * 1.2, "max_sample_weight": 1.2} if weights else {}
    return Rows.from_arrays(
        scipy.sparse.csr_array(X) if sparse else X,
        rng.integers(0, classes, ROWS),
        groups,
        codes=codes,
        code_sizes=(3, 5),
        classes=tuple(range(classes)),
        groups=[(0, 1, 2), (0, 1)],
        sensitive_names=("g", "h"),
        **more,
    )


def asked(rows: Rows, facts: Facts, mode: str, names: Any = None) -> list[tuple[Any, Sum, Any]]:
    """Questions of today's curator, the sums that they are, and multipliers."""
    layout, rng = rows.layout, np.random.default_rng(8)
    K = 1 if len(layout.classes or ()) == 2 else len(layout.classes or ())
    cells = rows.cells(mode, names)
    w = rng.normal(size=(K, 1 + layout.width)) * 0.4
    model = Linear(w[0] if K == 1 else w, 1.0 if K == 1 else 2.0)
    sharp = model.sharpness
    costs = rng.normal(size=(cells.count, max(2, K), max(2, K)))
    gradient = GradientSum(model, 1.5, cells, costs, loss_weight=0.7)
    out: list[tuple[Any, Sum, Any]] = [
        (CellCounts(cells, True), sums.counts(facts, cells, True), 3.0),
        (gradient, sums.gradient(facts, w, 1.5, cells, costs, pull=0.7, sharpness=sharp), 9.0),
        (
            PredictionHistogram(model, cells, "hard", by_label=True),
            sums.decisions(facts, w, cells, True),
            8.0,
        ),
    ]
    if not facts.alone:
        soft = sums.decisions(facts, w, cells, False, "soft", sharp)
        out += [
            (PredictionHistogram(model, cells, "soft"), soft, 8.0),
            (GramMatrices(cells, 1.2), sums.gram_matrices(facts, 1.2, cells), 7.0),
            (CellCounts(), sums.counts(facts), 4.0),
        ]
    if not facts.alone and K == 1:
        bins = sums.score_bins(facts, w, (-1.0, 0.0, 0.5), cells, True)
        squared = GradientSum(model, 0.8, loss="squared")
        out += [
            (ScoreHistogram(model, (-1.0, 0.0, 0.5), cells, True), bins, 6.0),
            (GroupLosses(model, cells, "zero-one"), sums.losses(facts, w, cells), 5.0),
            (
                GroupLosses(model, cells, "squared", 0.5),
                sums.losses(facts, w, cells, "squared", 0.5),
                5.0,
            ),
            (squared, sums.gradient(facts, w, 0.8, loss="squared"), 6.0),
        ]
    if not facts.alone and cells.per_row == 1:
        by_cell = np.linspace(2.0, 6.0, cells.count)
        inner = sums.gram_matrices(facts, 1.1)
        out += [
            (CellCounts(cells), sums.counts(facts, cells), by_cell),
            (ByCell(GramMatrices(None, 1.1), cells), sums.told_apart(facts, inner, cells), by_cell),
        ]
    return out


def compared(rows: Rows, facts: Facts, some: list[tuple[Any, Sum, Any]], rate: Any = None) -> None:
    batch = {} if rate is None else {"batch": Poisson(rate)}
    old = [(question, multiplier) for question, _, multiplier in some]
    now = [(one, multiplier) for _, one, multiplier in some]
    planned = describe(old, rows.layout, facts.promise, **batch, max_sample_weight=facts.cap)
    event = new.event_of(now, facts, rate)
    assert event == planned
    theirs = Curator(
        rows, facts.promise, plan=[planned], noise=NoiseSource.seeded(7), threads=1
    ).answer(old, **batch)
    ours = new.Curator(Held(rows), facts, NoiseSource.seeded(7), plan=event).answer(now, rate)
    for (question, _, _), mine, their in zip(some, ours, theirs, strict=True):
        np.testing.assert_array_equal(mine.values, their.reshape(mine.values.shape), question.name)


@pytest.mark.parametrize("neighbours", RELATIONS)
@pytest.mark.parametrize("mode", ["product", "marginal"])
@pytest.mark.parametrize("classes", [2, 3])
def test_answers_are_those_of_the_curator_of_fits(classes: int, mode: str, neighbours: str) -> None:
    rows = made(classes)
    facts = Facts(rows.layout, Promise(60.0, 1e-5, neighbours=neighbours))
    some = asked(rows, facts, mode)
    compared(rows, facts, some)
    compared(rows, facts, [some[1], some[2]])  # which today's curator totals in one fused pass
    if mode == "product":
        compared(rows, facts, some[:3], 0.3)


@pytest.mark.parametrize(
    ("weights", "sparse", "classes"),
    [(True, False, 2), (False, True, 3), (True, True, 2), (True, False, 3)],
)
def test_of_weights_and_of_sparse_rows_too(weights: bool, sparse: bool, classes: int) -> None:
    rows = made(classes, weights=weights, sparse=sparse)
    facts = Facts(rows.layout, Promise(60.0, 1e-5), 1.2 if weights else None)
    compared(rows, facts, asked(rows, facts, "product"))


@pytest.mark.parametrize(
    ("weights", "mode", "clips"),
    [
        (False, "product", (1.0, 2.0)),
        (True, "marginal", (0.3, None)),
        (True, "product", (None, None)),
        (False, "marginal", (0.5, 0.5)),
    ],
)
def test_of_sensitive_features_alone_too(weights: bool, mode: str, clips: Any) -> None:
    rows = made(weights=weights)
    promise = Promise(60.0, 1e-5, protects="sensitive_features")
    facts = Facts(rows.layout, promise, 1.2 if weights else None)
    some = asked(rows, facts, mode)
    clip, loss_clip = clips
    cells, rng = rows.cells(mode), np.random.default_rng(8)
    w = rng.normal(size=(1, 1 + rows.layout.width))
    for labels in (1, 2):
        costs = rng.normal(size=(cells.count, labels, 2))
        question = GradientSum(
            Linear(w[0]), clip, cells, costs, loss_weight=0.7, loss_clip=loss_clip
        )
        one = sums.gradient(facts, w, clip, cells, costs, pull=0.7, loss_clip=loss_clip)
        compared(rows, facts, [(question, one, 6.0), some[0], some[2]])


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_of_persons_too(neighbours: str) -> None:
    rng = np.random.default_rng(2)
    units = rng.integers(0, 150, ROWS)
    arrays = (rng.uniform(-1, 1, (ROWS, 3)), rng.integers(0, 2, ROWS), [rng.integers(0, 3, ROWS)])
    rows = Rows.from_arrays(
        *arrays, classes=(0, 1), groups=[(0, 1, 2)], sensitive_names=("g",), units=units
    )
    promise = Promise(60.0, 1e-5, neighbours=neighbours, unit=Unit("patient", 4))
    facts, cells = Facts(rows.layout, promise), rows.cells()
    w = rng.normal(size=(1, 4))
    squared = sums.gradient(facts, w, 0.4, loss="squared")
    kept = rows.by_person(4, NoiseSource.seeded(7).stream("units"), adds_by_person=True)
    some = [
        (GradientSum(Linear(w[0]), 0.4), sums.gradient(facts, w, 0.4), 8.0),
        (GradientSum(Linear(w[0]), 0.4, loss="squared"), squared, 8.0),
        (CellCounts(cells), sums.counts(facts, cells), 6.0),
        (CellCounts(), sums.counts(facts), 6.0),
        (PredictionHistogram(Linear(w[0]), cells), sums.decisions(facts, w, cells), 6.0),
        (GramMatrices(cells, 1.2), sums.gram_matrices(facts, 1.2, cells), 7.0),
    ]
    old = [(question, z) for question, _, z in some]
    event = new.event_of([(one, z) for _, one, z in some], facts)
    theirs = Curator(rows, promise, plan=[event], noise=NoiseSource.seeded(7)).answer(old)
    ours = new.Curator(Held(kept), facts, NoiseSource.seeded(7), plan=event)
    for mine, their in zip(ours.answer([(one, z) for _, one, z in some]), theirs, strict=True):
        np.testing.assert_array_equal(mine.values, their.reshape(mine.values.shape))
    fewer = Facts(rows.layout, Promise(60.0, 1e-5, neighbours=neighbours, unit=Unit("patient", 2)))
    one = sums.counts(fewer, cells)
    curator = new.Curator(Held(kept), fewer, NoiseSource.seeded(7), plan=Gaussian(6.0))
    with pytest.raises(PrivacyError, match="at most 2 rows"):
        curator.answer([(one, 6.0)])
    alone = Facts(rows.layout, Promise(60.0, 1e-5, neighbours=neighbours))
    with pytest.raises(PrivacyError, match="persons in both"):
        new.Curator(Held(kept), alone, NoiseSource.seeded(7), plan=Gaussian(6.0))


def test_no_run_cuts_a_person_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    rows = Rows.from_arrays(
        rng.uniform(-1, 1, (ROWS, 3)),
        rng.integers(0, 2, ROWS),
        classes=(0, 1),
        units=rng.integers(0, 90, ROWS),
    )
    facts = Facts(rows.layout, Promise(60.0, 1e-5, unit=Unit("patient", 9)))
    kept = rows.by_person(9, NoiseSource.seeded(7).stream("units"), adds_by_person=True)
    one = sums.gradient(facts, np.ones((1, 4)), 0.3)
    found = []
    for run in (1 << 14, 5):
        monkeypatch.setattr(new, "RUN", run)
        curator = new.Curator(Held(kept), facts, NoiseSource.seeded(7), plan=Gaussian(9.0))
        found.append(curator.answer([(one, 9.0)])[0].values)
    np.testing.assert_array_equal(*found)


def descend(curator: Any, facts: Facts, cells: Any, rounds: int = 4) -> Any:
    """A run whose questions are made of earlier answers: costs, weights, and what is asked for."""
    w = np.zeros((1, 1 + facts.layout.width))
    sizes = np.maximum(curator.answer([(sums.counts(facts, cells), 8.0)])[0].values, 20.0)
    for t in range(rounds):
        decided, slope = curator.answer(
            [
                (sums.decisions(facts, w, cells), 12.0),
                (
                    sums.gradient(
                        facts, w, 1.0, cells, np.outer(1 / sizes, [0.0, 1.0]).reshape(-1, 1, 2)
                    ),
                    15.0,
                ),
            ]
        )
        w = w - slope.values / ROWS - 0.01 * decided.values.sum()
        sizes = np.maximum(sizes + t * decided.values[:, 0], 20.0)
    return w


PROMISES = [
    Promise(60.0, 1e-5),
    Promise(60.0, 1e-5, neighbours="replace-one"),
    Promise(60.0, 1e-5, protects="sensitive_features"),
]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_plan_is_the_trace_of_a_run(promise: Promise) -> None:
    """Two different made-up answers give the same events, which are those that the run logs."""
    rows = made()
    facts, cells = Facts(rows.layout, promise), rows.cells()
    traces = [
        new.Trace(facts),
        new.Trace(facts, lambda shape, number: np.random.default_rng(number).normal(size=shape)),
    ]
    found = [descend(trace, facts, cells) for trace in traces]
    assert not np.array_equal(*found)
    assert traces[0].plan == traces[1].plan
    curator = new.Curator(Held(rows), facts, NoiseSource.seeded(1), plan=traces[0].plan)
    descend(curator, facts, cells)
    assert compose(entry.event for entry in curator.log) == traces[0].plan


class Told:
    def __init__(self, refuses: bool = False) -> None:
        self.heard: list[tuple[str, Any]] = []
        self._refuses = refuses

    def reserve(self, plan: Event | None) -> None:
        if self._refuses:
            raise BudgetError("no room")
        self.heard.append(("reserve", plan))

    def released(self, entry: Any) -> None:
        self.heard.append(("released", entry.event))

    def ended(self, log: Any) -> None:
        self.heard.append(("ended", len(log)))


def test_listeners_are_told_and_a_refusal_stops_the_run() -> None:
    rows = made()
    facts = Facts(rows.layout, Promise(60.0, 1e-5))
    plan, hook = compose([Gaussian(3.0)] * 2), Told()
    curator = new.Curator(Held(rows), facts, NoiseSource.seeded(1), plan, hooks=[hook])
    answer = curator.answer([(sums.counts(facts, rows.cells()), 3.0)])[0]
    assert answer.sd == pytest.approx(3.0)
    curator.close()
    curator.close()
    assert hook.heard == [("reserve", plan), ("released", Gaussian(3.0)), ("ended", 1)]
    with pytest.raises(InputError, match="goes on"):
        curator.answer([(sums.counts(facts, rows.cells()), 3.0)])
    with pytest.raises(BudgetError, match="no room"):
        new.Curator(Held(rows), facts, NoiseSource.seeded(1), plan, hooks=[Told(refuses=True)])


def test_an_answer_that_fails_half_way_is_charged_and_ends_the_run() -> None:
    rows, hook = made(), Told()
    facts = Facts(rows.layout, Promise(60.0, 1e-5))
    one = sums.counts(facts, rows.cells())

    def fails(run: Any, unit: float) -> Any:
        raise OSError("the disk")

    broken = sums.replace(one, total=fails)
    plan = compose([Gaussian(3.0)] * 3)
    curator = new.Curator(Held(rows), facts, NoiseSource.seeded(1), plan, hooks=[hook])
    curator.answer([(one, 3.0)])
    with pytest.raises(OSError, match="disk"):
        curator.answer([(broken, 3.0)])
    assert [entry.event for entry in curator.log] == [Gaussian(3.0)] * 2
    assert hook.heard[-1] == ("ended", 2)
    with pytest.raises(InputError, match="goes on"):
        curator.answer([(one, 3.0)])


def test_noise_by_cell_is_keyed_by_the_columns_of_the_cells() -> None:
    rows = made()
    facts = Facts(rows.layout, Promise(60.0, 1e-5))
    found = {}
    for names in (("g",), ("h",), ("g", "h"), ("h", "g")):
        cells = rows.cells("product", names)
        event = new.event_of([(sums.counts(facts, cells), [3.0] * cells.count)], facts)
        assert isinstance(event, PerCell)
        found[names] = event.column
    assert found[("g",)] == 0
    assert found[("h",)] == 1
    assert found[("g", "h")] == 0  # another number of cells than g alone
    assert found[("h", "g")] not in (0, 1)


def test_what_costs_nothing_is_exact_and_what_costs_is_not() -> None:
    rows = made()
    alone = Facts(rows.layout, Promise(1.0, 1e-5, protects="sensitive_features"))
    w = np.ones((1, 1 + rows.layout.width))
    free = [(sums.decisions(alone, w), 0.0), (sums.gradient(alone, w, None), 0.0)]
    curator = new.Curator(Held(rows), alone, NoiseSource.seeded(1), NoOp())
    assert new.event_of(free, alone) == NoOp()
    assert [answer.sd for answer in curator.answer(free)] == [0.0, 0.0]
    replaced = Facts(rows.layout, Promise(1.0, 1e-5, neighbours="replace-one"))
    size = [(sums.counts(replaced), 3.0)]  # of all rows it is public, of a secret batch it is not
    assert new.event_of(size, replaced) == NoOp()
    assert new.event_of(size, replaced, 0.5) == PoissonSampled(0.5, Gaussian(3.0), (0.0,))
    for facts, one in (
        (alone, sums.counts(alone, rows.cells())),
        (Facts(rows.layout, Promise(1.0, 1e-5)), sums.decisions(alone, w)),
    ):
        with pytest.raises(PrivacyError, match="numbers above 0"):
            new.event_of([(one, 0.0)], facts)


def test_what_the_promise_or_the_plan_has_no_room_for_is_refused_before_rows_are_read() -> None:
    rows = made()
    promise = Promise(1.0, 1e-5)
    facts, cells = Facts(rows.layout, promise), rows.cells()
    one, source = sums.counts(facts, cells), NoiseSource.seeded(1)

    def unread(run: Any, unit: float) -> Any:
        raise AssertionError("a row was read")

    one = sums.replace(one, total=unread)
    with pytest.raises(BudgetError, match="plan"):
        new.Curator(Held(rows), facts, source, plan=Gaussian(1.0))
    planned = new.Curator(Held(rows), facts, source, plan=Gaussian(9.0))
    for less in (8.0, 4.0):
        with pytest.raises(BudgetError, match="now"):
            planned.answer([(one, less)])
    capped = new.Curator(Held(rows), facts, source, cap=Filter.create(promise))
    with pytest.raises(BudgetError):
        capped.answer([(one, 2.0)])
    other = Filter.create(Promise(2.0, 1e-5))
    for wrong in ({}, {"plan": Gaussian(9.0), "cap": other}, {"cap": other}):
        with pytest.raises(InputError):
            new.Curator(Held(rows), facts, source, **wrong)
    weighted = made(weights=True)
    for held, said in ((weighted, facts), (rows, Facts(rows.layout, promise, 1.2))):
        with pytest.raises(InputError, match="weights and a cap"):
            new.Curator(Held(held), said, source, plan=Gaussian(9.0))
    tight = Facts(rows.layout, promise, 0.5)
    with pytest.raises(PrivacyError, match="within the cap"):
        new.Curator(Held(weighted), tight, source, plan=Gaussian(9.0))
    marginal = sums.counts(facts, rows.cells("marginal"))
    with pytest.raises(FairveilError, match="disjoint"):
        new.event_of([(marginal, [3.0] * 5)], facts)
