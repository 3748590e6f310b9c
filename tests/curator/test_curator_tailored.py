"""Sums distinguished by cell and sums weighed by cell, by the guarantees of
curator/questions/by_cell.py.

A total is the sum of its rows' integers, so a neighbour moves it by one row's vector or by the
difference of two: all of them are enumerated over a small universe of rows, each under every
combination of sensitive values.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import plain_totals as reference
import pytest
from scipy import stats

from fairveil.core import by_cell as cells_of_core
from fairveil.core.events import Gaussian, PerCell, PoissonSampled, VisiblySampled
from fairveil.core.layout import partition_of
from fairveil.core.mechanisms import inventory
from fairveil.core.passes import public_scales, totals
from fairveil.core.pricing import constant_scale, noise_scale
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
    Part,
    Poisson,
    Rows,
    Weighed,
    describe,
)
from fairveil.errors import InputError, MissingBoundError, PrivacyError
from fairveil.facts import RowBlock
from fairveil.privacy import NoiseSource, Promise

NAMES, GROUPS = ("sex", "age"), ((0, 1), (0, 1, 2))
COMBINATIONS = list(itertools.product(*GROUPS))
ADDED = Promise(1.0, 1e-6)
REPLACED = Promise(1.0, 1e-6, neighbours="replace-one")
SENSITIVE = Promise(1.0, 1e-6, protects="sensitive_features")
PROMISES = [ADDED, REPLACED, SENSITIVE]
FREE = Promise(math.inf, 0.0)
FACTORS = {("sex",): [0.5, 2.0], ("age",): [1.5, 0.0, 0.25], NAMES: [1.0, 0.3, 0.0, 2.5, 0.3, 1e-9]}
GRID = 1e-7  # what rounding to the grid may take from a bound, relative to it
Z = 3.0


def table(X: Any, y: Any, sensitive: Any, **more: Any) -> Rows:
    facts: Any = {
        "classes": (0, 1),
        "groups": GROUPS,
        "sensitive_names": NAMES,
        "max_sample_weight": 1.5,
    }
    return Rows.from_arrays(X, y, [sensitive[:, 0], sensitive[:, 1]], **facts, **more)


def universe(weights: bool = False, sparse: bool = False) -> Rows:
    """Rows far beyond any clip, opposite ones and orthogonal ones among them, and near ones; with
    every label and group."""
    far = 1e6 * np.concatenate([np.eye(3), -np.eye(3)])
    near = np.random.default_rng(0).normal(size=(2, 3))
    X = np.concatenate([far, near, np.zeros((1, 3))])
    n, many = len(X), len(COMBINATIONS)
    X, y = np.repeat(X, 2 * many, axis=0), np.tile(np.repeat([0, 1], many), n)
    if sparse:
        import scipy.sparse

        X = scipy.sparse.csr_array(X)
    # a person keeps her weight
    by_person = np.repeat([2.0, 2.0, 0.7, 2.0, 2.0, 0.0, 1.2, 0.7, 2.0], 2 * many)
    return table(X, y, np.array(COMBINATIONS * 2 * n), sample_weight=by_person if weights else None)


def inners(clip: float | None = 0.5) -> list[Any]:
    rng = np.random.default_rng(1)
    return [
        GradientSum(Linear(np.zeros(4)), clip),
        GradientSum(Linear(rng.normal(size=4)), clip, loss_weight=np.array([2.0])),
        GramMatrices(None, clip, with_target=True),
        FeatureSums(None, clip, by_label=True),
        FeatureSums(None, clip, basis=rng.normal(size=(2, 4))),
    ]


def asked(rows: Rows, clip: float | None = 0.5) -> list[Any]:
    """Every question around every question, for the cells of a column among several and for product
    cells."""
    out: list[Any] = []
    for names, factors in list(FACTORS.items())[-1 if rows.sparse else 1 :]:
        cells = rows.cells(names=names)
        for inner in inners(clip):
            out += [ByCell(inner, cells), Weighed(inner, cells, factors)]
    return out


def cap_of(rows: Rows) -> float | None:
    return rows.max_sample_weight if rows.weighted else None


def scale_of(question: Any, rows: Rows, promise: Promise) -> Any:
    if promise.features_are_public:
        return public_scales(question, rows)[0]
    return constant_scale(question, rows.layout, promise, cap_of(rows))


def contributions(question: Any, scale: Any, rows: Rows) -> Any:
    """One row's integers, every row: (people, combinations of groups, coordinates), in units of
    one."""
    (whole,) = rows.blocks()
    each = [
        totals([(question, [scale])], rows, [whole.take(np.array([i]))])[0].ravel()
        for i in range(whole.rows)
    ]
    return np.array(each, np.float64).reshape(-1, len(COMBINATIONS), len(each[0])) * scale.unit


def cells_of(rows: Rows, question: Any) -> Any:
    (whole,) = rows.blocks()
    return whole.cells(question.cells)[0].astype(int)


def squares(v: Any, promise: Promise) -> Any:
    """Squared distances of neighbouring totals, (row, row): of the same person only, where
    sensitive features alone change."""
    flat = v.reshape(-1, v.shape[-1])
    found = ((flat[:, np.newaxis] - flat) ** 2).sum(axis=-1)
    if promise.features_are_public:
        person = np.arange(len(flat)) // len(COMBINATIONS)
        found = np.where(person[:, np.newaxis] == person, found, 0.0)
    return found


def moved(v: Any, promise: Promise) -> float:
    if promise.neighbours == "add-remove":
        return float(np.linalg.norm(v, axis=-1).max())
    return float(np.sqrt(squares(v, promise).max()))


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("kind", [{}, {"weights": True}, {"sparse": True}], ids=str)
def test_guarantee_1_no_neighbour_moves_a_total_further_than_its_bound_and_some_move_it_as_far(
    promise: Promise, kind: dict[str, bool]
) -> None:
    """The bounds by hand: c, w and the factors; on rows whose contributions are as long as c,
    opposite and orthogonal."""
    rows = universe(**kind)
    weight = 1.5 if rows.weighted else 1.0
    for question in asked(rows):
        scale = scale_of(question, rows, promise)
        v = contributions(question, scale, rows)
        bound, far = scale.bound.sensitivity(promise.neighbours), moved(v, promise)
        gram = question.inner.kind is GramMatrices
        c, within = weight * 0.5 ** (2 if gram else 1), math.sqrt(2) if gram else 2.0
        if question.kind is ByCell:
            by_hand = {"add-remove": c, "replace-one": within * c}[promise.neighbours]
            by_hand = math.sqrt(2) * c if promise.features_are_public else by_hand
        else:
            most, least = max(question.factors), min(question.factors)
            by_hand = {"add-remove": most * c, "replace-one": within * most * c}[promise.neighbours]
            by_hand = (most - least) * c if promise.features_are_public else by_hand
        assert far <= bound, question
        assert bound == pytest.approx(by_hand, rel=GRID), question
        if not (question.inner.kind is FeatureSums and question.inner.basis is not None):
            assert far == pytest.approx(by_hand, rel=GRID), question


@pytest.mark.parametrize("clip", [None, 0.5])
def test_guarantee_1_with_public_rows_the_clip_is_the_largest_of_them(clip: float | None) -> None:
    rows = universe()
    for question in asked(rows, clip):
        scale = scale_of(question, rows, SENSITIVE)
        far = moved(contributions(question, scale, rows), SENSITIVE)
        assert far <= scale.bound.sensitivity("replace-one"), question
        assert far == pytest.approx(scale.bound.sensitivity("replace-one"), rel=GRID), question


def allowed(event: Any, promise: Promise, cells: Any) -> Any:
    """What the event says that pairs of people cost, (row, row), by the formula of `PerCell`;
    add-remove: (row,)."""
    ((multipliers,), (spread,), (crossing,)) = (
        event.multipliers,
        event.spreads,
        event.crossings or (0,),
    )
    a = 1 / np.array(multipliers)[cells]
    if promise.neighbours == "add-remove":
        return a**2
    across = a[:, np.newaxis] ** 2 + a**2 + 2 * crossing * a[:, np.newaxis] * a
    return np.where(cells[:, np.newaxis] == cells, (spread * a) ** 2, across)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("batch", [FULL, Poisson(0.2)], ids=str)
def test_guarantee_2_no_pair_is_further_apart_in_the_noise_than_the_event_says_of_its_cells(
    promise: Promise, batch: Any
) -> None:
    """The distance that counts for Gaussian noise (Mahalanobis), squared, pair by pair; and the
    worst pair is as far."""
    rows = universe(weights=True)
    for question in asked(rows):
        multiplier: Any = (
            np.linspace(1.0, 4.0, question.cells.count) if question.kind is ByCell else Z
        )
        measurement, scale = (
            Measurement(question, multiplier),
            scale_of(question, rows, promise),
        )
        event: Any = describe(
            [measurement], rows.layout, promise, batch, max_sample_weight=cap_of(rows)
        )
        if isinstance(batch, Poisson):
            assert isinstance(
                event, VisiblySampled if promise.features_are_public else PoissonSampled
            )
            event = event.event
        assert isinstance(event, PerCell)
        assert event.column == partition_of(question.cells, rows.layout)
        shape = question.shape(rows.layout)
        noise = (
            np.broadcast_to(noise_scale(measurement, scale, promise, batch, shape), shape).ravel()
            * scale.unit
        )
        # of Grams, too: what is there twice has half the variance
        v = contributions(question, scale, rows) / noise
        cells = cells_of(rows, question)
        limit = allowed(event, promise, cells)
        found = (
            (v**2).sum(axis=-1).ravel()
            if promise.neighbours == "add-remove"
            else squares(v, promise)
        )
        assert (found <= limit * (1 + 1e-12) + 1e-200).all(), (
            question,
            float((found - limit).max()),
        )
        if not (question.inner.kind is FeatureSums and question.inner.basis is not None):
            assert found.max() == pytest.approx(limit.max(), rel=GRID), question


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_guarantee_2_a_weighed_question_costs_at_its_worst_what_its_multiplier_says(
    promise: Promise,
) -> None:
    """Equal factors, factors that nearly agree, tiny and huge ones, zeros: 1 / z^2, to a part in
    10^12."""
    rows = universe()
    cells = rows.cells()
    inner, gram = GradientSum(Linear(np.zeros(4)), 0.5), GramMatrices(None, 2.0)
    given = [
        [1.0, 1 + 1e-12, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1e-5],
        [1e300, 1, 0, 1e-300, 1e299, 5],
        [3, 2, 1, 2, 3, 1],
        [2.0] * 6,
    ]
    for around, factors, z in itertools.product((inner, gram), given, (0.3, 25.0)):
        event: Any = describe([(Weighed(around, cells, factors), z)], rows.layout, promise)
        if np.ptp(factors) == 0 and promise.features_are_public:
            assert event.kind == "no-op"
            continue
        assert isinstance(event, PerCell)
        assert inventory(event, promise.neighbours).gaussian * z**2 == pytest.approx(1.0, abs=1e-12)
        # who is weighed less spends less, and with factor 0 nothing
        if promise.neighbours == "add-remove":
            paid = 1 / np.array(event.multipliers[0])
            assert paid == pytest.approx(
                np.array(factors) / max(factors) / z, rel=GRID, abs=GRID / z
            )
            assert (paid[np.array(factors) == 0] ** 2 < 1e-190).all()


def test_events_of_one_number_for_sums_distinguished() -> None:
    rows = universe()
    question = ByCell(GradientSum(Linear(np.zeros(4)), 0.5), rows.cells())
    for promise in PROMISES:
        assert describe([(question, 4.0)], rows.layout, promise) == Gaussian(4.0)
    sampled = describe([(question, 4.0)], rows.layout, REPLACED, Poisson(0.1))
    assert sampled == PoissonSampled(0.1, Gaussian(4.0), (2.0,))
    by_cell: Any = describe([(question, np.full(6, 4.0))], rows.layout, SENSITIVE)
    assert (by_cell.spreads, by_cell.crossings, by_cell.column) == ((0.0,), (), 0)


def several(n: int = 3000, kind: str = "dense", seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    X, sensitive = (
        rng.normal(size=(n, 5)),
        np.stack([rng.integers(0, 2, n), rng.integers(0, 3, n)], axis=1),
    )
    sensitive[:, 1] = np.where(sensitive[:, 1] == 2, 0, sensitive[:, 1])  # nobody is in the last
    w = rng.uniform(0.0, 2.0, n) if kind == "weights" else None
    if kind == "sparse":
        import scipy.sparse

        X = scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.3, X, 0.0))
    X = X.astype(np.float32) if kind == "float32" else X
    codes = rng.integers(0, 4, (n, 1)).astype(np.uint8)
    return table(X, rng.integers(0, 2, n), sensitive, sample_weight=w, codes=codes, code_sizes=(4,))


def around(rows: Rows) -> list[Any]:
    rng = np.random.default_rng(4)
    out: list[Any] = []
    for names, factors in FACTORS.items():
        for inner in (
            GradientSum(Linear(rng.normal(size=10)), 0.7),
            GramMatrices(None, 2.0),
            FeatureSums(None, 1.5, by_label=True),
        ):
            cells = rows.cells(names=names)
            out += [ByCell(inner, cells), Weighed(inner, cells, factors)]
    return out


def integers(question: Any, rows: Rows, blocks: Any = None, threads: int | None = None) -> Any:
    scale = constant_scale(question, rows.layout, ADDED, cap_of(rows))
    return totals(
        [(question, [scale])], rows, rows.blocks() if blocks is None else blocks, threads
    )[0][0], scale


def by_hand(question: Any, block: Any) -> Any:
    """The sum over `reference.total` of each cell."""
    cells = block.cells(question.cells)[0]
    parts = [np.flatnonzero(cells == k) for k in range(question.cells.count)]
    nothing = np.zeros(question.inner.shape(block.layout))
    each = [
        reference.total(question.inner, block.take(part)) if len(part) else nothing
        for part in parts
    ]
    return (
        np.array(each) if question.kind is ByCell else np.tensordot(question.factors, each, axes=1)
    )


@pytest.mark.parametrize("kind", ["dense", "weights", "sparse", "float32"])
def test_guarantee_3_totals_are_those_of_the_reference_cell_by_cell(kind: str) -> None:
    """Of all rows, of a batch and of a part. A row may be off by half a grid step in each
    coordinate, and its last bits."""
    rows = several(kind=kind)
    (block,) = rows.blocks()
    drawn = np.flatnonzero(np.random.default_rng(5).random(block.rows) < 0.1)
    for question in around(rows):
        for places, blocks in (
            (np.arange(block.rows), None),
            (drawn, list(rows.drawn(drawn))),
            (np.arange(0), list(rows.drawn(drawn[:0]))),
        ):
            found, scale = integers(question, rows, blocks)
            assert found.shape == question.shape(rows.layout)
            wanted = by_hand(question, block.take(places))
            assert np.abs(found * scale.unit - wanted).max() <= len(places) * scale.unit, question
        found, _ = integers(question, rows, list(rows.part(Part(1, 3))))
        assert (
            found
            == integers(question, rows, [b.take(np.arange(b.rows)) for b in rows.part(Part(1, 3))])[
                0
            ]
        ).all()


def test_guarantee_3_integers_do_not_depend_on_order_blocks_threads_or_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = several(40_000, "weights")
    (block,) = rows.blocks()
    order = np.random.default_rng(6).permutation(block.rows)

    class InBlocks:
        layout = rows.layout

        def blocks(self) -> Any:
            for part in np.array_split(order, 7):
                b = block.take(part)
                yield RowBlock(b.numbers, b.codes, b.labels, b.sensitive, b.weights)

    others = [
        Rows(InBlocks(), max_sample_weight=1.5),
        Rows(InBlocks(), in_memory=False, max_sample_weight=1.5),
    ]
    for question in around(rows)[:4] + around(rows)[-2:]:
        wanted, _ = integers(question, rows)
        for other in others:
            assert (integers(question, other)[0] == wanted).all(), question
        assert (integers(question, rows, threads=3)[0] == wanted).all(), question
        with monkeypatch.context() as patched:  # a block too large to keep a second time
            patched.setattr(cells_of_core, "MOST_KEPT", 0)
            assert (integers(question, rows)[0] == wanted).all(), question
        halves = [
            integers(question, rows, [block.take(part)])[0] for part in (order[:9000], order[9000:])
        ]
        assert (sum(halves) == wanted).all(), question


def test_equal_factors_are_the_inner_question() -> None:
    rows = several()
    cells = rows.cells()
    for inner in (
        GradientSum(Linear(np.ones(10)), 0.7),
        GramMatrices(None, 2.0),
        FeatureSums(None, 1.5),
    ):
        alone, scale = integers(inner, rows)
        # powers of two move the grid along, and nothing is rounded otherwise
        for factor in (1.0, 4.0):
            found, other = integers(Weighed(inner, cells, [factor] * 6), rows)
            assert (found == alone).all()
            assert other.unit == factor * scale.unit
            assert other.bound.norm == pytest.approx(factor * scale.bound.norm, rel=GRID)
        told, other = integers(ByCell(inner, cells), rows)
        assert (told.sum(axis=0) == alone).all()
        assert other.unit == scale.unit


def test_where_nobody_can_move_it_an_answer_is_free_and_exact() -> None:
    rows = several()
    curator, cells = Curator(rows, SENSITIVE), rows.cells(names=["age"])
    inner = GradientSum(Linear(np.ones(10)), 0.7)
    (found,) = curator.answer([(Weighed(inner, cells, [2.0] * 3), 5.0)])
    assert not curator.log.events
    (block,) = rows.blocks()
    assert found == pytest.approx(2 * reference.total(inner, block), rel=1e-9)
    with pytest.raises(PrivacyError):
        curator.answer([(Weighed(inner, cells, [2.0, 2.0, 1.0]), 0.0)])
    for question in (ByCell(inner, cells), Weighed(inner, cells, [2.0, 0.5, 1.0])):
        (exact,) = Curator(rows, FREE).answer([(question, 0.0)])
        plain = GradientSum(Linear(np.ones(10)))  # without privacy nothing is clipped
        unclipped = (
            ByCell(plain, cells)
            if question.kind is ByCell
            else Weighed(plain, cells, question.factors)
        )
        assert exact == pytest.approx(by_hand(unclipped, block), rel=1e-6, abs=1e-6)


RATE = 1e-7  # of a false alarm, each time that a spread is measured


def is_spread(noise: Any, deviation: float) -> bool:
    """Whether independent Gaussians have this standard deviation: chi-square, two-sided; 1.5 times
    off is rejected."""
    found = float((noise**2).sum()) / deviation**2
    low, high = stats.chi2.ppf([RATE / 2, 1 - RATE / 2], noise.size)
    return bool(low <= found <= high)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_noise_by_cell_has_the_standard_deviation_that_it_is_priced_at(promise: Promise) -> None:
    """8 spreads a promise are measured, each at a false-alarm rate of 1e-7; 900 coordinates or more
    tell 1.5 times off."""
    rng = np.random.default_rng(7)
    rows = table(
        rng.normal(size=(40, 300)),
        rng.integers(0, 2, 40),
        np.stack([rng.integers(0, s, 40) for s in (2, 3)], axis=1),
    )
    cells, multipliers = rows.cells(names=["age"]), np.array([2.0, 0.5, 8.0])
    (block,) = rows.blocks()
    wide = Promise(1e9, 1e-6, protects=promise.protects, neighbours=promise.neighbours)
    for inner in (GradientSum(Linear(np.zeros(301)), 0.7), GramMatrices(None, 0.9)):
        curator = Curator(rows, wide, noise=NoiseSource.seeded(11))
        question = ByCell(inner, cells)
        told = [
            curator.answer([(question, multipliers)])[0] - by_hand(question, block)
            for _ in range(3)
        ]
        norm = scale_of(question, rows, promise).bound.norm
        for k, m in enumerate(multipliers):
            noise = np.concatenate([coordinates(one[k]) for one in told])
            assert is_spread(noise, m * norm)
            assert not is_spread(noise, m * norm * 1.5)
            assert not is_spread(noise, m * norm / 1.5)
        weighed = Weighed(inner, cells, [2.0, 0.0, 0.5])
        noise = np.concatenate(
            [
                coordinates(curator.answer([(weighed, 3.0)])[0] - by_hand(weighed, block))
                for _ in range(3)
            ]
        )
        deviation = 3.0 * scale_of(weighed, rows, promise).bound.sensitivity(promise.neighbours)
        assert is_spread(noise, deviation)
        assert not is_spread(noise, deviation * 1.5)


def coordinates(noise: Any) -> Any:
    """Independent coordinates of one deviation; of symmetric matrices the upper triangle."""
    if noise.shape[-1] != noise.shape[-2]:
        return noise.ravel()
    square = noise.reshape(noise.shape[-2:])
    assert (square == square.T).all()
    return np.concatenate([np.diag(square), math.sqrt(2) * square[np.triu_indices(len(square), 1)]])


def test_a_run_that_goes_from_round_to_round_gives_what_new_questions_give() -> None:
    """Weights change by `at`, factors change or stay: events, noise and totals are those of
    questions made for each round."""
    rows = several()
    cells, rng = rows.cells(names=["age"]), np.random.default_rng(8)
    wide = Promise(1e6, 1e-6)
    for batch in (FULL, Poisson(0.3)):
        run, fresh = (Curator(rows, wide, noise=NoiseSource.seeded(3)) for _ in range(2))
        by_cell = Measurement(
            ByCell(GradientSum(Linear(np.zeros(10)), 0.7), cells),
            np.array([2.0, 3.0, 4.0]),
        )
        weighed: Any = Weighed(GradientSum(Linear(np.zeros(10)), 0.7), cells, [1.0, 2.0, 3.0])
        kept = Measurement(weighed, 2.0)
        for t in range(6):
            weights, factors = (
                rng.normal(size=10),
                [1.0, 2.0, 3.0] if t < 3 else rng.uniform(size=3),
            )
            inner = GradientSum(Linear(weights), 0.7)
            by_cell = by_cell.about(
                by_cell.question.at(inner=by_cell.question.inner.at(model=Linear(weights)))
            )  # type: ignore[attr-defined]
            weighed = weighed.at(inner=weighed.inner.at(model=Linear(weights)), factors=factors)
            kept = kept.about(weighed) if t < 3 else Measurement(weighed, 2.0)
            new = [
                Measurement(ByCell(inner, cells), np.array([2.0, 3.0, 4.0])),
                Measurement(Weighed(inner, cells, factors), 2.0),
            ]
            for one, other in zip(
                run.answer([by_cell, kept], batch), fresh.answer(new, batch), strict=True
            ):
                assert (one == other).all()
            assert run.log.events[-1] == describe(new, rows.layout, wide, batch)
        assert run.log.events == fresh.log.events
        with pytest.raises(InputError, match="made by `at`"):
            kept.about(weighed.at(factors=[9.0, 9.0, 1.0]))


def test_other_questions_take_a_multiplier_for_each_cell_of_one_column_among_several() -> None:
    """Losses, counts and Grams; 9 spreads by cell are measured over 400 answers or more, each at a
    false-alarm rate of 1e-7."""
    rows = several(300)
    cells, multipliers = rows.cells(names=["age"]), np.array([20.0, 5.0, 80.0])
    (block,) = rows.blocks()
    curator = Curator(rows, Promise(1e9, 1e-6), noise=NoiseSource.seeded(2))
    losses = GroupLosses(Linear(np.ones(10)), cells, "log", 2.0)
    for question in (losses, CellCounts(cells), GramMatrices(cells, 1.5)):
        measurement = Measurement(question, multipliers)
        event: Any = describe([measurement], rows.layout, REPLACED)
        assert (event.multipliers, event.column) == ((tuple(multipliers),), 1)
        wanted = reference.total(question, block)
        told = np.array(
            [
                curator.answer([measurement])[0] - wanted
                for _ in range(400 if wanted.ndim == 1 else 20)
            ]
        )
        norm = question.scale(rows.layout, None).bound.norm
        for k, m in enumerate(multipliers):
            noise = (
                told[:, k].ravel()
                if wanted.ndim == 1
                else np.concatenate([coordinates(one) for one in told[:, k]])
            )
            assert is_spread(noise, m * norm), question
            assert not is_spread(noise, 1.5 * m * norm), question


def test_what_is_asked_wrongly_is_refused() -> None:
    rows = universe()
    cells, inner = rows.cells(), GradientSum(Linear(np.zeros(4)), 0.5)
    costs, weights = np.ones((6, 1, 2)), np.ones(6)
    for wrong in (
        CellCounts(cells),
        GramMatrices(cells, 1.0),
        FeatureSums(cells, 1.0),
        GradientSum(Linear(np.zeros(4)), 0.5, cells, costs),
        GradientSum(Linear(np.zeros(4)), 0.5, cells, cell_weights=weights),
        GradientSum(Linear(np.zeros((2, 1, 4))), 0.5),
        ByCell(inner, cells),
    ):
        with pytest.raises(InputError, match="without cells"):
            ByCell(wrong, cells).shape(rows.layout)
        with pytest.raises(InputError, match="without cells"):
            Weighed(wrong, cells, np.ones(6)).shape(rows.layout)
    with pytest.raises(InputError, match="a question"):
        ByCell("rows", cells).shape(rows.layout)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="once a sensitive column"):
        ByCell(inner, rows.cells("marginal")).shape(rows.layout)
    for factors in (
        [1.0] * 5,
        [0.0] * 6,
        [-1.0, *[1.0] * 5],
        [math.inf, *[1.0] * 5],
        "half",
        None,
        np.ones((6, 1)),
    ):
        with pytest.raises(InputError, match="factors"):
            Weighed(inner, cells, factors).shape(rows.layout)
    for question in (ByCell(inner, cells), Weighed(inner, cells, np.ones(6))):
        with pytest.raises(InputError, match="new question"):
            question.at(inner=GradientSum(Linear(np.zeros(4)), 0.6))
        with pytest.raises(InputError, match="Gaussian noise"):
            describe([Measurement(question, 2.0, "discrete-laplace")], rows.layout, ADDED)
    with pytest.raises(InputError, match="multiplier for each cell"):
        describe([(Weighed(inner, cells, np.ones(6)), np.ones(6))], rows.layout, ADDED)
    with pytest.raises(InputError, match="6 multipliers"):
        Curator(rows, ADDED).answer([(ByCell(inner, cells), np.full(5, 90.0))])
    with pytest.raises(InputError, match="sensitive columns"):
        Curator(table(np.zeros((2, 3)), [0, 1], np.zeros((2, 2), int)), ADDED).answer(
            [
                (
                    ByCell(
                        inner,
                        Rows.from_arrays(
                            np.zeros((2, 3)), [0, 1], [[0, 1]], groups=[(0, 1)]
                        ).cells(),
                    ),
                    90.0,
                )
            ]
        )
    with pytest.raises(MissingBoundError):
        describe([(ByCell(GradientSum(Linear(np.zeros(4))), cells), 2.0)], rows.layout, ADDED)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_networks_are_distinguished_and_weighed_row_by_row(promise: Promise) -> None:
    """Each cell's total is that of its rows alone, and no row, pair or change of groups is beyond
    bound and event."""
    torch = pytest.importorskip("torch")
    from fairveil.curator import Network, NetworkGradient
    from fairveil.models import Skeleton

    torch.manual_seed(5)
    rng = np.random.default_rng(9)
    people = np.concatenate([30 * rng.normal(size=(4, 3)), np.zeros((1, 3))])
    many = len(COMBINATIONS)
    X, y = np.repeat(people, 2 * many, axis=0), np.tile(np.repeat([0, 1], many), 5)
    rows = table(
        X, y, np.array(COMBINATIONS * 10), sample_weight=np.repeat(rng.uniform(0.5, 2.0, 10), many)
    )
    (block,) = rows.blocks()
    skeleton = Skeleton.of(
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2)), 3, 2
    )
    inner = NetworkGradient(Network(skeleton, skeleton.start), 0.5)
    for names, factors in FACTORS.items():
        cells = rows.cells(names=names)
        for question in (ByCell(inner, cells), Weighed(inner, cells, factors)):
            scale = constant_scale(question, rows.layout, promise, rows.max_sample_weight)
            found = totals([(question, [scale])], rows, rows.blocks())[0][0]
            ids = block.cells(cells)[0]
            parts = [block.take(np.flatnonzero(ids == k)) for k in range(cells.count)]
            if question.kind is ByCell:
                each = [totals([(inner, [scale])], rows, [part])[0][0] for part in parts]
                near = np.array(each)
            else:
                near = sum(totals([(question, [scale])], rows, [part])[0][0] for part in parts)
            assert (
                np.abs(found - near).max() * scale.unit < 1e-5
            )  # float32: a row's last bits may differ with the rows beside it
            v = contributions(question, scale, rows)
            assert moved(v, promise) <= scale.bound.sensitivity(promise.neighbours)
            vector: Any = np.linspace(1.0, 4.0, cells.count) if question.kind is ByCell else Z
            measurement = Measurement(question, vector)
            event: Any = describe([measurement], rows.layout, promise, max_sample_weight=1.5)
            shape = question.shape(rows.layout)
            noise = (
                np.broadcast_to(
                    noise_scale(measurement, scale, promise, FULL, shape), shape
                ).ravel()
                * scale.unit
            )
            limit, v = allowed(event, promise, ids.astype(int)), v / noise
            apart = (
                (v**2).sum(axis=-1).ravel()
                if promise.neighbours == "add-remove"
                else squares(v, promise)
            )
            assert (apart <= limit * (1 + 1e-12) + 1e-200).all()
            if question.kind is Weighed:
                assert inventory(event, promise.neighbours).gaussian * Z**2 == pytest.approx(
                    1.0, abs=1e-12
                )
    wide = Promise(1e9, 1e-6, protects=promise.protects, neighbours=promise.neighbours)
    run = Curator(rows, wide, noise=NoiseSource.seeded(1))
    told = Measurement(ByCell(inner, rows.cells()), np.full(6, 1e-3))
    other = told.about(told.question.at(inner=inner.at(model=Network(skeleton, skeleton.start))))  # type: ignore[attr-defined]
    weighed = Measurement(Weighed(inner, rows.cells(), FACTORS[NAMES]), 1e-3)
    first, again, one = run.answer([told, other, weighed])
    assert first == pytest.approx(again, abs=0.05)
    assert np.tensordot(FACTORS[NAMES], first, axes=1) == pytest.approx(one, abs=0.1)
    drawn, part = (
        run.answer([told], Poisson(0.9))[0],
        None if promise is ADDED else run.answer([told], Part(0, 2))[0],
    )
    assert drawn.shape == first.shape
    assert part is None or part.shape == first.shape
