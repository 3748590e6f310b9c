"""Noise and weights that differ by cell, where persons are protected: enumerated, planted bugs.

A person is in one cell with all of their rows, so what is priced by cell of rows holds of persons
(theory.md#units). Persons are enumerated over a pool of rows near and far beyond the clip: each row
as often as a person may have rows, and many of mixed rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from curator_pools import COMBINATIONS, pool

from fairveil.core import by_cell
from fairveil.core.passes import public_scales, totals
from fairveil.core.pricing import constant_scale, noise_scale, of_persons
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
    Poisson,
    Rows,
    Weighed,
    describe,
)
from fairveil.errors import PrivacyError
from fairveil.privacy import NoiseSource, Promise, Unit

MOST = 3
UNIT = Unit("patient", MOST)
ADDED, REPLACED = (
    Promise(1.0, 1e-6, unit=UNIT),
    Promise(1.0, 1e-6, neighbours="replace-one", unit=UNIT),
)
SENSITIVE = Promise(1.0, 1e-6, "sensitive_features", unit=UNIT)
FACTORS = [1.0, 0.3, 0.0, 2.5, 0.3, 1e-9]
STEEP = np.array([0.0, 40.0, 0, 0, *[0] * 7])


def asked(rows: Rows) -> list[Measurement]:
    """Every kind of question by cell: noise that differs by cell, or one sum that weighs cells."""
    cells, steep = rows.cells(), Linear(STEEP)
    each = np.linspace(1.0, 4.0, cells.count)
    inners = [
        GradientSum(steep, 0.2),
        GramMatrices(None, 1.5, with_target=True),
        FeatureSums(None, 0.8, by_label=True),
    ]
    told = [GroupLosses(steep, cells), CellCounts(cells), CellCounts(cells, by_label=True)]
    out = [
        Measurement(question, each) for question in [*(ByCell(one, cells) for one in inners), *told]
    ]
    return [*out, *(Measurement(Weighed(one, cells, FACTORS), 3.0) for one in inners)]


def people_of(rows: Rows, rng: np.random.Generator) -> list[np.ndarray]:
    """Places of rows: each row three times over, and one to three rows of one cell, and of any."""
    count, cells = sum(block.rows for block in rows.blocks()), len(COMBINATIONS)
    alike = [np.full(MOST, i) for i in range(count)]
    mixed = [rng.integers(0, count, size) for size in (1, 2, 3) for _ in range(60)]
    same = [one // cells * cells + one[0] % cells for one in mixed]
    return [np.sort(one) for one in (*alike, *mixed, *same)]


def moves(
    measurement: Measurement,
    scale,
    rows: Rows,
    people,
    promise: Promise,
    *,
    one_group: bool = True,
    by_person: bool = True,
):
    """Each person's contribution in deviations of the noise, and the cell that they count in."""
    (whole,) = rows.blocks()
    shape = measurement.question.shape(rows.layout)
    noise = np.broadcast_to(noise_scale(measurement, scale, promise, FULL, shape), shape).ravel()
    rows.adds_by_person, vectors, cells = by_person and promise.protects == "records", [], []
    try:
        for one in people:
            block = replace(whole.take(one), persons=np.zeros(len(one), np.int64))
            block = block.in_one_group() if one_group else block
            vectors.append(
                totals([(measurement.question, [scale])], rows, [block])[0].ravel() / noise
            )
            cells.append(int(block.cells(measurement.question.cells)[0, 0]))
    finally:
        rows.adds_by_person = False
    return np.array(vectors), np.array(cells)


def squares(v: np.ndarray) -> np.ndarray:
    sizes = (v**2).sum(axis=1)
    return np.maximum(sizes[:, np.newaxis] + sizes - 2 * v @ v.T, 0.0)


def allowed(event, promise: Promise, cells: np.ndarray) -> np.ndarray:
    """What the event says that pairs of persons cost (`PerCell`); add-remove: a number a person."""
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


@pytest.mark.parametrize("kind", [{}, {"weights": True}], ids=str)
@pytest.mark.parametrize("promise", [ADDED, REPLACED], ids=str)
def test_no_pair_of_persons_is_further_apart_than_the_event_says_of_their_cells(promise, kind):
    rows = pool(2, **kind)
    cap = rows.max_sample_weight if rows.weighted else None
    people = people_of(rows, np.random.default_rng(0))
    for measurement in asked(rows):
        event = describe([measurement], rows.layout, promise, max_sample_weight=cap)
        scale = constant_scale(measurement.question, rows.layout, promise, cap)
        v, cells = moves(measurement, scale, rows, people, promise)
        limit = allowed(event, promise, cells)
        found = (v**2).sum(axis=1) if promise.neighbours == "add-remove" else squares(v)
        assert (found <= limit * (1 + 1e-9) + 1e-9).all(), (
            measurement.question,
            float((found - limit).max()),
        )
        assert found.max() >= (0.5 if kind else 0.8) * limit.max(), (
            measurement.question
        )  # few of these rows are heavy


def test_planted_a_person_in_two_cells_is_caught():
    """Rows that count in groups of their own are clipped cell by cell: a person then moves several
    sums by a clip each."""
    rows, others = pool(2), np.arange(len(COMBINATIONS))  # six persons of one row, in a cell each
    (whole,) = rows.blocks()
    question = ByCell(GradientSum(Linear(STEEP), 0.2), rows.cells())
    scale = constant_scale(question, rows.layout, ADDED, None)
    rows.adds_by_person = True
    for one_group in (True, False):
        moved = []
        for first in range(0, whole.rows, len(COMBINATIONS)):
            sums = []
            for person in ([], np.arange(first, first + MOST)):
                names = np.r_[others, np.full(len(person), 99)]
                block = replace(whole.take(np.r_[others, person].astype(int)), persons=names)
                sums.append(
                    totals(
                        [(question, [scale])], rows, [block.in_one_group() if one_group else block]
                    )[0]
                )
            moved.append(float(np.linalg.norm(sums[1] - sums[0])) * scale.unit)
        assert bool(max(moved) <= scale.bound.sensitivity("add-remove")) is one_group
        assert one_group or max(moved) >= 1.7 * scale.bound.norm  # three cells, a clip in each


def test_planted_clips_that_are_not_a_persons_are_caught():
    rows = pool(2)
    people = people_of(rows, np.random.default_rng(0))
    measurement = Measurement(
        ByCell(GradientSum(Linear(STEEP), 0.2), rows.cells()), np.full(6, 2.0)
    )
    event = describe([measurement], rows.layout, ADDED)
    scale = constant_scale(measurement.question, rows.layout, ADDED, None)
    v, found = moves(measurement, scale, rows, people, ADDED, by_person=False)
    assert ((v**2).sum(axis=1) > 2 * allowed(event, ADDED, found)).any()


def test_attribute_changes_of_any_rows_of_a_person_cost_what_the_event_says():
    """Sensitive features alone: the values of each row may change by itself, and the person then
    counts in another group."""
    rows, rng = pool(2, far=False), np.random.default_rng(2)
    cells, each = rows.cells(), len(COMBINATIONS)
    lists = [rng.integers(0, 14, MOST) for _ in range(12)]
    for question in (
        ByCell(FeatureSums(None, 1.5), cells),
        Weighed(GramMatrices(None, 1.5), cells, FACTORS),
    ):
        measurement = Measurement(
            question, np.linspace(1.0, 4.0, 6) if question.kind is ByCell else 3.0
        )
        event = describe([measurement], rows.layout, SENSITIVE)
        scale = of_persons(public_scales(question, rows)[0], MOST)
        for one in lists:
            people = [np.sort(one) * each + rng.integers(0, each, MOST) for _ in range(40)]
            v, found = moves(measurement, scale, rows, people, SENSITIVE)
            assert (squares(v) <= allowed(event, SENSITIVE, found) * (1 + 1e-9) + 1e-9).all()


def table(n=900, people=250, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.r_[np.arange(people), rng.integers(0, people, n - people)]
    return (
        rng.normal(size=(n, 2)) * 3,
        rng.integers(0, 2, n),
        rng.integers(0, 3, n),
        rng.permutation(ids),
    )


def rows_of(X, y, a, ids):
    return Rows.from_arrays(X, y, [a], classes=[0, 1], groups=[[0, 1, 2]], units=ids)


def test_sums_by_cell_are_those_by_hand_however_rows_lie(monkeypatch):
    """Order of the table, threads, strips of a block too large to keep: the same integers; and they
    are what is described."""
    X, y, a, ids = table()
    usual = np.array([np.bincount(a[ids == one], minlength=3).argmax() for one in range(250)])
    model = GradientSum(Linear(np.array([0.1, 0.5, -1.0])), 2.0)
    rest = (1 / (1 + np.exp(-(0.1 + X @ [0.5, -1.0]))) - y)[:, np.newaxis] * np.c_[
        np.ones(len(X)), X
    ]
    rest *= np.minimum(1.0, 2.0 / np.linalg.norm(rest, axis=1))[:, np.newaxis]
    sums = np.array([rest[ids == one].sum(axis=0) for one in range(250)])
    sums *= np.minimum(1.0, 2.0 / np.linalg.norm(sums, axis=1))[:, np.newaxis]
    order, found = np.random.default_rng(9).permutation(len(X)), []
    for at, threads, most in ((np.arange(len(X)), 1, None), (order, 3, None), (order, 2, 0)):
        if most is not None:
            monkeypatch.setattr(by_cell, "MOST_KEPT", most)
        rows = rows_of(X[at], y[at], a[at], ids[at])
        stream = NoiseSource.seeded(0).stream("units")
        rows = rows.by_person(10_000, stream, adds_by_person=True, one_group=True)
        questions = [ByCell(model, rows.cells()), Weighed(model, rows.cells(), [1.0, 0.25, 3.0])]
        scales = [constant_scale(one, rows.layout, ADDED, None) for one in questions]
        measurements = [(one, [scale]) for one, scale in zip(questions, scales, strict=True)]
        found.append([*totals(measurements, rows, rows.blocks(), threads)])
        by_hand = np.array([sums[usual == cell].sum(axis=0) for cell in range(3)])
        assert np.allclose(found[-1][0].reshape(3, -1) * scales[0].unit, by_hand, atol=1e-4)
        assert np.allclose(
            found[-1][1].ravel() * scales[1].unit, [1.0, 0.25, 3.0] @ by_hand, atol=1e-4
        )
    assert all(
        (one == other).all()
        for again in found[1:]
        for one, other in zip(found[0], again, strict=True)
    )


def test_guarantee_5_a_persons_group_is_that_of_most_rows_and_hangs_on_nobody_else():
    X, y, _, _ = table(8, 3)
    ids, a = np.array([0, 0, 0, 1, 1, 2, 2, 2]), np.array([1, 2, 2, 2, 0, 0, 1, 2])
    rows = rows_of(X, y, a, ids).by_person(
        9, NoiseSource.seeded(0).stream("units"), adds_by_person=True, one_group=True
    )
    (block,) = rows.blocks()
    assert block.sensitive[0].tolist() == [
        2,
        2,
        2,
        0,
        0,
        0,
        0,
        0,
    ]  # of equals the one that is listed first
    alone = rows_of(X[3:5], y[3:5], a[3:5], ids[3:5])
    alone = alone.by_person(
        9, NoiseSource.seeded(0).stream("units"), adds_by_person=True, one_group=True
    )
    assert next(alone.blocks()).sensitive[0].tolist() == [0, 0]


@pytest.mark.parametrize("batch", [FULL, Poisson(0.3)], ids=str)
def test_a_curator_answers_by_cell_where_persons_are_in_one_group(batch):
    X, y, a, ids = table(300, 100)
    plain = Curator(rows_of(X, y, a, ids), ADDED, noise=NoiseSource.seeded(1))
    gradient = GradientSum(Linear(np.zeros(3)), 1.0)
    measurements = [
        Measurement(CellCounts(plain.cells()), [5.0, 6.0, 7.0]),
        Measurement(ByCell(gradient, plain.cells()), 5.0),
    ]
    for measurement in measurements:
        with pytest.raises(PrivacyError, match="persons in one group each"):
            plain.answer([measurement], batch)
    assert plain.log.events == ()
    roomy = replace(ADDED, epsilon=9.0)
    curator = Curator(rows_of(X, y, a, ids), roomy, noise=NoiseSource.seeded(1), one_group=True)
    counts, sums = curator.answer(measurements, batch)
    assert counts.shape == (3,)
    assert sums.shape == (3, 1, 3)
    assert curator.log.events == (curator.describe(measurements, batch),)
    assert math.isfinite(float(sums.sum()))
