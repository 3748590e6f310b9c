"""Codes are stored in the narrowest type that holds them. What is computed from them must not wrap
in that type.

Layouts near the ends of 8, 16 and 31 bits, against plain Python integers, which have no end.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import plain_totals as reference
import pytest
import scipy.sparse

from fairveil.core.passes import public_scales, totals
from fairveil.core.rows import prepare
from fairveil.curator import CellCounts, FeatureSums, GradientSum, Linear, NumberMoments, Rows
from fairveil.data import encode
from fairveil.errors import InputError, SchemaError
from fairveil.facts import Category, Cells, RowBlock, RowLayout, Schema
from fairveil.metrics.histograms import cell_counts, hard_histogram
from fairveil.models import LinearModel
from fairveil.models.model import cell_ids

SIZES = [
    (200, 200),
    (200, 200, 200),
    (256, 256),
    (255, 1, 256),
    (1, 256, 2),
    (257, 3),
    (256, 257),
    (65_535, 2),
    (65_536, 1, 3),
    (65_537, 2),
    (200, 70_000),
]
KINDS = [np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def layouts() -> list[Any]:
    """Sizes of codes, and the types that can hold all of their codes."""
    return [
        (sizes, kind) for sizes in SIZES for kind in KINDS if max(sizes) - 1 <= np.iinfo(kind).max
    ]


def codes_at_the_ends(sizes: tuple[int, ...], kind: Any, rows: int) -> np.ndarray:
    """First, last and middle codes in every combination, then drawn ones."""
    rng = np.random.default_rng(3)
    ends = list(itertools.product(*({0, size // 2, size - 1} for size in sizes)))
    drawn = [
        tuple(int(rng.integers(size)) for size in sizes) for _ in range(max(0, rows - len(ends)))
    ]
    return np.array([*ends, *drawn][:rows]).T.astype(kind)


def one_hot(
    numbers: np.ndarray, codes: np.ndarray, sizes: tuple[int, ...], row: int
) -> dict[int, float]:
    """The entries of (1, numbers, indicators) that are not zero, by plain Python integers."""
    out = {0: 1.0, **{1 + j: float(numbers[j, row]) for j in range(len(numbers))}}
    first = 1 + len(numbers)
    for size, code in zip(sizes, codes[:, row].tolist(), strict=True):
        out[first + int(code)] = 1.0
        first += size
    return out


def source(layout: RowLayout, block: RowBlock) -> Any:
    class Source:
        def __init__(self) -> None:
            self.layout = layout

        def blocks(self) -> Any:
            yield block

    return Source()


@pytest.mark.parametrize(("sizes", "kind"), layouts())
def test_rows_written_out_are_those_that_the_codes_say(sizes: tuple[int, ...], kind: Any) -> None:
    pytest.importorskip("torch")
    from fairveil.models import torch_network

    rows = 4 if sum(sizes) > 10_000 else 40
    codes, numbers = (
        codes_at_the_ends(sizes, kind, rows),
        np.random.default_rng(1).normal(size=(2, rows)),
    )
    layout = RowLayout(2, sizes, (0, 1))
    raw = RowBlock(numbers, codes, np.zeros(rows, np.int32))
    dense = reference.dense(prepare(raw, layout, 0, 1.0))
    of_network = torch_network.row_major(raw, sizes, slice(0, rows))
    for row in range(rows):
        wanted = one_hot(numbers, codes, sizes, row)
        assert {int(at): float(dense[row, at]) for at in np.flatnonzero(dense[row])} == wanted
        found = {1 + int(at): float(of_network[row, at]) for at in np.flatnonzero(of_network[row])}
        assert found == {at: float(np.float32(value)) for at, value in wanted.items() if at > 0}


KERNEL_LAYOUTS = [
    ((200, 200, 200), np.uint8),
    ((65_536, 1, 3), np.uint16),
    ((200, 70_000), np.int32),
]


@pytest.mark.parametrize(("sizes", "kind"), KERNEL_LAYOUTS)
def test_models_and_sums_read_the_coefficient_that_the_code_says(
    sizes: tuple[int, ...], kind: Any
) -> None:
    rows = 40
    codes, numbers = (
        codes_at_the_ends(sizes, kind, rows),
        np.random.default_rng(1).normal(size=(2, rows)),
    )
    layout = RowLayout(2, sizes, (0, 1))
    raw = RowBlock(numbers, codes, np.arange(rows, dtype=np.int32) % 2)
    held = Rows(source(layout, raw))
    coef = np.random.default_rng(2).normal(size=(1, 1 + layout.width))
    written = [one_hot(numbers, codes, sizes, row) for row in range(rows)]

    scores = LinearModel(coef[:, 1:], coef[:, 0], classes=(0, 1), layout=layout).decision_scores(
        raw
    )[:, 0]
    expected = [sum(coef[0, at] * value for at, value in entries.items()) for entries in written]
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)

    clip = 1e3  # nothing is clipped
    for question, factor in (
        (FeatureSums(None, clip), [1.0] * rows),
        (
            GradientSum(Linear(coef), clip),
            [1 / (1 + math.exp(-z)) - row % 2 for row, z in enumerate(expected)],
        ),
    ):
        scale = question.scale(layout, None)
        (found,) = totals([(question, [scale])], held, held.blocks())
        wanted: dict[int, float] = {}
        for entries, by in zip(written, factor, strict=True):
            for at, value in entries.items():
                wanted[at] = wanted.get(at, 0.0) + by * value
        line = found.reshape(-1) * scale.unit
        assert set(np.flatnonzero(line).tolist()) <= set(wanted)
        assert max(abs(line[at] - value) for at, value in wanted.items()) < rows * (
            scale.unit + 1e-12
        )


@pytest.mark.parametrize("kind", [{}, {"sparse": True}])
@pytest.mark.parametrize(
    ("sizes", "of"), [((200, 200), np.uint8), ((200, 200, 200), np.uint8), ((40, 40), np.uint8)]
)
def test_bounds_of_moments_are_those_of_the_numbers(
    sizes: tuple[int, ...], of: Any, kind: Any
) -> None:
    """Rows public: the largest row decides the grid, and a number that is missed does not fit onto
    it."""
    rows = 60
    codes = codes_at_the_ends(sizes, of, rows)
    numbers: Any = np.random.default_rng(1).normal(size=(3, rows))
    numbers[1, 7] = 1000.0
    # 1 + 3 + 200 + 53 wraps onto a number
    codes[:, 7] = np.array([0, *(55 for _ in sizes[1:])]) % np.array(sizes)
    codes[-1, 7] = 54 % sizes[-1]
    largest = max(math.hypot(*x, *(value**2 for value in x)) for x in numbers.T.tolist())
    if kind:
        numbers = scipy.sparse.csr_array(numbers.T)
    held = Rows(
        source(RowLayout(3, sizes, (0, 1)), RowBlock(numbers, codes, np.zeros(rows, np.int32)))
    )
    question = NumberMoments(None)
    (scale,) = public_scales(question, held, exact=True)
    assert largest <= scale.bound.norm <= largest * (1 + 1e-9)
    (found,) = totals([(question, [scale])], held, held.blocks())
    plain = numbers.T.toarray() if kind else numbers
    np.testing.assert_allclose(
        found[0] * scale.unit, [plain.sum(axis=1), (plain**2).sum(axis=1)], rtol=1e-9, atol=1e-6
    )


CELL_SIZES = [
    (255,), (256,), (257,), (16, 16), (2, 128), (3, 86), (256, 256), (255, 257), (65_536,), (65_535, 2), (2, 32_768),
    (46_340, 46_341), (46_341, 46_341), (65_536, 32_767), (65_536, 32_768), (65_536, 32_769), (65_536, 65_536),
    (65_536, 65_536, 65_536), (65_536, 65_536, 32_768, 2), (2, 65_536, 65_536, 65_536, 32_768 // 2),
]  # fmt: skip


@pytest.mark.parametrize("sizes", CELL_SIZES)
@pytest.mark.parametrize("mode", ["product", "marginal"])
def test_cells_are_numbered_as_whole_numbers_are(sizes: tuple[int, ...], mode: Any) -> None:
    cells = Cells(tuple(tuple(range(size)) for size in sizes), mode)
    codes = codes_at_the_ends(sizes, np.uint16, 300)
    ids = cells.ids(codes)
    assert ids.shape == (cells.per_row, codes.shape[1])
    for row, line in enumerate(codes.T.tolist()):
        if mode == "product":
            wanted = 0
            for size, code in zip(sizes, line, strict=True):
                wanted = wanted * size + code
            assert int(ids[0, row]) == wanted
        else:
            assert ids[:, row].tolist() == [sum(sizes[:j]) + code for j, code in enumerate(line)]
    layout = RowLayout(0, (), (0, 1), cells.columns, cells.names)
    raw = RowBlock(
        np.zeros((0, codes.shape[1])), np.zeros((0, codes.shape[1]), np.uint8), None, codes
    )
    held = prepare(raw, layout, 0, 1.0).cells(cells)
    assert held.tolist() == ids.tolist()
    if mode == "product":
        assert cell_ids(raw, cells).tolist() == ids[0].tolist()


def test_more_cells_than_a_number_can_distinguish_are_refused() -> None:
    cells = Cells((tuple(range(65_536)),) * 4)
    with pytest.raises(InputError, match=r"at most 2\^63 cells"):
        cells.ids(np.zeros((4, 1), np.uint16))


@pytest.mark.parametrize("values", [65_536, 65_537, 70_000])
def test_codes_of_groups_do_not_wrap_at_16_bits(values: int) -> None:
    listed = tuple(f"v{value}" for value in range(values))
    columns = {"sex": Category(listed), "hired": Category(("no", "yes"))}
    if values <= 65_536:
        rows = encode(
            {"sex": [listed[-1]], "hired": ["no"]}, Schema(columns, target="hired", sensitive="sex")
        )
        block = next(rows.blocks())
        assert block.sensitive is not None
        assert block.sensitive.tolist() == [[values - 1]]
        assert Cells((listed,)).encode([np.array([listed[-1]], object)]).tolist() == [[values - 1]]
        return
    with pytest.raises(
        SchemaError,
        match=r"sensitive column 'sex': expected at most 65,536 values.*declare that one as "
        r"unknown",
    ):
        Schema(columns, target="hired", sensitive="sex")
    with pytest.raises(InputError, match=r"at most 65,536 values a column"):
        Cells((listed,))


@pytest.mark.parametrize(
    ("groups", "labels", "classes"), [(300, 256, 3), (65_000, 2, 2), (128, 2, 2), (2**15, 2**8, 2)]
)
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32])
def test_tables_of_cells_and_labels_are_counted_as_python_does(
    groups: int, labels: int, classes: int, kind: Any
) -> None:
    if groups - 1 > np.iinfo(kind).max:
        return
    rng = np.random.default_rng(5)
    ids, y, decided = (rng.integers(size, size=200) for size in (groups, labels, classes))
    ids[0], y[0], decided[0] = groups - 1, labels - 1, classes - 1
    narrow = (y.astype(np.uint8 if labels <= 256 else np.int32), ids.astype(kind)[np.newaxis])
    counts = cell_counts(*narrow, (groups, labels, classes))
    histogram = hard_histogram(decided.astype(np.uint8), *narrow, (groups, labels, classes))
    wanted: dict[tuple[int, ...], int] = {}
    for row in zip(ids.tolist(), y.tolist(), decided.tolist(), strict=True):
        wanted[row] = wanted.get(row, 0) + 1
    assert {
        tuple(map(int, at)): int(histogram[tuple(at)]) for at in np.argwhere(histogram)
    } == wanted
    assert counts.sum() == 200
    assert counts[groups - 1, labels - 1] >= 1


@pytest.mark.parametrize("groups", [255, 256, 257, 65_535, 65_536])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int32, np.uint64])
def test_counts_by_cell_and_label_are_counted_as_python_does(groups: int, kind: Any) -> None:
    if groups - 1 > np.iinfo(kind).max:
        return
    codes = codes_at_the_ends((groups,), kind, 50)
    labels = (np.arange(50) % 2).astype(np.int32)
    layout = RowLayout(0, (), (0, 1), (tuple(range(groups)),), ("g",))
    held = Rows(
        source(layout, RowBlock(np.zeros((0, 50)), np.zeros((0, 50), np.uint8), labels, codes))
    )
    question = CellCounts(held.cells(), by_label=True)
    scale = question.scale(layout, None)
    (found,) = totals([(question, [scale])], held, held.blocks())
    wanted: dict[tuple[int, int], float] = {}
    for group, label in zip(codes[0].tolist(), labels.tolist(), strict=True):
        wanted[group, label] = wanted.get((group, label), 0.0) + 1.0
    table = found[0] * scale.unit
    assert {tuple(map(int, at)): float(table[tuple(at)]) for at in np.argwhere(table)} == wanted
