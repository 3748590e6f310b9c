"""Blocks whose numbers are mapped: guarantee 5 of `core/rows.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairveil.core.by_cell import ByCell
from fairveil.core.rows import mapped
from fairveil.curator import Curator, GradientSum, Linear, Poisson, PredictionHistogram, Rows
from fairveil.facts import RowBlock
from fairveil.facts.rows import Traits
from fairveil.privacy import NoiseSource, Promise

SCALE, SHIFT = np.array([[1.7], [1e30], [0.25]]), np.array([[0.01], [0.0], [-3.0]])


def numbers_by_formula(numbers: Any, scale: Any, shift: Any) -> Any:
    ends = np.finfo(numbers.dtype)
    with np.errstate(all="ignore"):
        found = numbers * scale + shift
        return np.clip(found, float(ends.min), float(ends.max)).astype(numbers.dtype)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_mapped_numbers_are_those_of_the_formula(rows_of: Any, kind: Any) -> None:
    (block,) = rows_of(n=1300, dtype=kind).blocks()
    twice = ((SCALE, SHIFT), (SHIFT + 2.0, SCALE - 1.0))
    wanted = numbers_by_formula(numbers_by_formula(block.numbers, *twice[0]), *twice[1])
    whole = mapped(block, twice).numbers
    np.testing.assert_array_equal(whole, wanted)
    assert whole.dtype == kind


class Stored:
    """Rows in blocks, said to be mapped from a file, so that passes scale them."""

    traits = Traits(is_mapped=True)

    def __init__(self, rows: Rows, size: int) -> None:
        (self.block,) = rows.blocks()
        self.layout, self.size = rows.layout, size

    def blocks(self) -> Any:
        for a in range(0, self.block.rows, self.size):
            part = slice(a, a + self.size)
            one = self.block
            yield RowBlock(
                one.numbers[:, part], one.codes[:, part], one.labels[part], one.sensitive[:, part]
            )


def asked(rows: Rows) -> list[Any]:
    """Two models' gradient and histogram, which share no pass, and a gradient of each cell."""
    rng, cells = np.random.default_rng(1), rows.cells()
    models = [Linear(rng.normal(size=1 + rows.layout.width)) for _ in range(2)]
    pairs = [(GradientSum(model, 1.0), PredictionHistogram(model, cells)) for model in models]
    apart = ByCell(GradientSum(models[0], 1.0), cells)
    return [(one, 1.0) for pair in pairs for one in pair] + [(apart, 1.0)]


@pytest.mark.parametrize("pieces", [None, 1, 3])
@pytest.mark.parametrize("protects", ["records", "sensitive_features"])
def test_a_pass_over_rows_of_a_file_has_the_bits_of_one_over_mapped_rows(
    rows_of: Any, pieces: int | None, protects: Any
) -> None:
    rows = rows_of(n=700, far=False)
    here, there = (
        one.rescaled(SCALE[:, 0], SHIFT[:, 0]) for one in (rows, Rows(Stored(rows, 200)))
    )
    found = []
    for one in (here, there):
        source = NoiseSource.seeded(3)
        curator = Curator(one, Promise(1e5, 1e-6, protects=protects), noise=source, threads=pieces)
        questions = asked(one)
        answers = [*curator.answer(questions), *curator.answer(questions)]
        if protects == "records":
            answers += curator.answer(questions, Poisson(0.3))
        found.append(answers)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)
