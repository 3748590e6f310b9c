"""Steps of additive models: a row's codes are its own, edges are public, and what was there keeps
its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fairveil.data import Encoding, encode
from fairveil.estimators.coding import ANYWHERE, Additive, RowsCoding, SchemaCoding, Shapes, Side
from fairveil.facts import Category, Number, RowBlock, RowLayout, Schema

A, B = Side("a", 0, (-0.5, 0.0, 0.5), (-2.0, 0.0, 2.0)), Side("b", 1, (0.25,), (0.25,))
JOB = Side("job", 0, values=("x", "y", "z"))
SHAPES = Shapes((A, B), ((A, JOB), (B, A)))


def block(rows: int = 500, seed: int = 0, kind: type[np.integer] = np.uint8) -> RowBlock:
    rng = np.random.default_rng(seed)
    numbers = rng.choice([-1.0, -0.5, -0.1, 0.0, 0.25, 0.5, 1.0], (2, rows))
    return RowBlock(
        numbers,
        rng.integers(3, size=(1, rows)).astype(kind),
        rng.integers(2, size=rows),
        None,
        np.ones(rows),
    )


def by_hand(numbers: npt.NDArray[Any], job: int) -> list[int]:
    a = sum(float(numbers[0]) >= edge for edge in A.edges)
    b = sum(float(numbers[1]) >= edge for edge in B.edges)
    return [job, a, b, a * 3 + job, b * 4 + a]


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
def test_codes_are_those_of_a_plain_count_of_edges(kind: type[np.integer]) -> None:
    before = block(kind=kind)
    after = SHAPES.apply(before)
    expected = [by_hand(before.numbers[:, i], int(before.codes[0, i])) for i in range(before.rows)]
    assert after.codes.T.tolist() == expected
    assert after.codes.dtype in (np.uint8, np.uint16, np.int32)


def test_numbers_labels_weights_and_codes_keep_their_places() -> None:
    """Guarantee 2."""
    before = block()
    after = SHAPES.apply(before)
    assert after.numbers is before.numbers
    assert after.labels is before.labels
    assert after.weights is before.weights
    assert np.array_equal(after.codes[:1], before.codes)
    layout = RowLayout(2, (3,), classes=(0, 1))
    assert SHAPES.layout(layout) == replace(layout, code_sizes=(3, 4, 2, 12, 8))
    assert len(SHAPES.names) == 4 + 2 + 12 + 8 == len(set(SHAPES.names))
    assert (after.codes.max(axis=1) < np.array(SHAPES.layout(layout).code_sizes)).all()


def test_a_row_s_codes_are_the_same_beside_any_others() -> None:
    """Guarantee 1, for every neighbour of a table: each row left out, each row replaced."""
    before = block(60)
    whole = SHAPES.apply(before).codes
    for i in range(before.rows):
        left = np.delete(np.arange(before.rows), i)
        less = replace(
            before,
            numbers=before.numbers[:, left],
            codes=before.codes[:, left],
            labels=None,
            weights=None,
        )
        assert np.array_equal(SHAPES.apply(less).codes, whole[:, left])
        other = before.numbers.copy()
        other[:, i] = [1e300, -1e300]
        assert np.array_equal(
            SHAPES.apply(replace(before, numbers=other)).codes[:, left], whole[:, left]
        )


def test_many_cells_need_wider_codes() -> None:
    wide = Shapes(
        (Side("a", 0, tuple(np.linspace(-0.9, 0.9, 300)), tuple(np.linspace(-0.9, 0.9, 300))),)
    )
    found = wide.apply(block()).codes
    assert found.dtype == np.uint16
    assert found.max() == 300


@pytest.mark.parametrize("seed", range(20))
def test_a_number_on_a_declared_edge_lies_above_it(seed: int) -> None:
    """Edges are coded as numbers are, whatever the bounds: no rounding puts a value of the edge
    itself below it."""
    rng = np.random.default_rng(seed)
    low, high = sorted((rng.normal(size=2) * 10.0 ** rng.integers(-3, 6)).tolist())
    edges = sorted(set(rng.uniform(low, high, 9).tolist()) - {low, high})
    schema = Schema({"a": Number(low, high, edges=tuple(edges))})
    coding = SchemaCoding(Encoding(schema))
    shapes = Additive().shapes(coding, None)
    assert shapes is not None
    (coded,) = encode({"a": edges}, schema).blocks()
    assert shapes.apply(coded).codes[0].tolist() == list(range(1, len(edges) + 1))


RANGES = [(0, 1000, 0.0), (-1000, 0, 0.0), (-300, 700, 0.0), (17, 90, 17.0), (-9, -1, -1.0)]


@pytest.mark.parametrize(("low", "high", "finest_at"), RANGES)
def test_parts_of_a_range_are_equal_but_finer_next_to_zero(
    low: float, high: float, finest_at: float
) -> None:
    schema = Schema({"a": Number(low, high)})
    coding = SchemaCoding(Encoding(schema))
    shapes = Additive().shapes(coding, None)
    assert shapes is not None
    (side,) = shapes.steps
    marks = np.array([low, *side.marks, high])
    widths = np.diff(marks)
    assert (widths > 0).all()
    assert widths.max() <= (high - low) / 16 * (1 + 1e-9)
    assert (
        abs(marks[:-1][widths.argmin()] + marks[1:][widths.argmin()] - 2 * finest_at)
        <= 4 * widths.min()
    )
    if low < 0 < high:
        assert 0.0 in np.round(side.marks, 9)


def test_numbers_without_bounds_have_the_same_edges_everywhere() -> None:
    coding = RowsCoding(2, (3,))
    shapes = Additive(interactions=(("x0", "code0"),)).shapes(coding, None)
    assert shapes is not None
    assert [side.edges for side in shapes.steps] == [ANYWHERE, ANYWHERE]
    assert tuple(-edge for edge in reversed(ANYWHERE)) == ANYWHERE
    ((one, other),) = shapes.pairs
    assert (one.name, other.values) == ("x0", ("0", "1", "2"))


def test_numbers_without_bounds_lie_along_their_edges() -> None:
    """Guarantee 3: monotone, in [-1, 1], whatever comes; one with known bounds keeps its value."""
    coding = RowsCoding(2)
    shapes = Additive(columns=("x0",)).shapes(coding, None)
    assert shapes is not None
    numbers = np.array([[-1e300, -3.0, 0.0, 0.5, 40.0, 1e300]] * 2)
    found = shapes.apply(RowBlock(numbers, np.empty((0, 6), np.uint8))).numbers
    assert found[0, [0, 2, 5]].tolist() == [-1.0, 0.0, 1.0]
    assert (np.diff(found[0]) > 0).all()
    assert np.array_equal(found[1], numbers[1])
    halves = np.clip(numbers, -1e30, 1e30).astype(np.float32)
    single = shapes.apply(RowBlock(halves, np.empty((0, 6), np.uint8))).numbers
    assert single.dtype == np.float32


def test_categories_alone_have_no_steps() -> None:
    coding = SchemaCoding(
        Encoding(Schema({"job": Category(("x", "y")), "n": Number(0, 1, edges=())}))
    )
    assert Additive().shapes(coding, None) is None
