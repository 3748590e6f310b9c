"""Many rows that are never all in memory: a `RowSource` that makes each block from its seed and
number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ... import _checks
from ...facts.rows import RowBlock, RowLayout

ADULT_SIZES = (7, 16, 7, 14, 6, 5, 41)


@dataclass(frozen=True)
class ManyRows:
    """`rows` coded rows of Adult's shape (6 numbers, 7 codes), made block by block: the same bits
    at each pass.

    Group a of row i is uniform; numbers are uniform on [-1, 1], codes uniform on their lists. The
    label is 1 with probability 1/(1 + exp(-(w.x + sum of the codes' coefficients + group_effect (a
    - (groups - 1)/2)))), `coefficients` being in the order of a linear model of these rows.

    >>> many = ManyRows(rows=1000, seed=1, block_rows=300)
    >>> [block.rows for block in many.blocks()]
    [300, 300, 300, 100]
    """

    rows: int
    seed: int
    numbers: int = 6
    code_sizes: tuple[int, ...] = ADULT_SIZES
    groups: int = 2
    group_effect: float = 0.5
    block_rows: int = 65_536
    precision: str = "float64"

    def __post_init__(self) -> None:
        _checks.whole(rows=self.rows)
        _checks.whole(seed=self.seed)
        _checks.whole(numbers=self.numbers)
        _checks.whole(groups=self.groups, at_least=1)
        _checks.whole(block_rows=self.block_rows, at_least=1)
        _checks.one_of(("float64", "float32"), precision=self.precision)
        for size in self.code_sizes:
            _checks.whole(code_sizes=size, at_least=1)

    @property
    def layout(self) -> RowLayout:
        """The public shape."""
        return RowLayout(
            self.numbers, self.code_sizes, (0, 1), (tuple(range(self.groups)),), ("group",)
        )

    @cached_property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """The true coefficients, without the intercept, which is 0."""
        return np.random.default_rng([self.seed, 0]).normal(0.0, 0.5, self.layout.width)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows; block number b comes from (seed, b + 1) alone."""
        for number, start in enumerate(range(0, self.rows, self.block_rows)):
            yield self._block(number, min(self.block_rows, self.rows - start))

    def _block(self, number: int, rows: int) -> RowBlock:
        rng = np.random.default_rng([self.seed, number + 1])
        numbers = rng.uniform(-1.0, 1.0, (self.numbers, rows)).astype(self.precision, copy=False)
        narrow = np.uint8 if max(self.code_sizes, default=0) <= 256 else np.int32
        codes = np.empty((len(self.code_sizes), rows), dtype=narrow)
        score = np.zeros(rows)
        at = self.numbers
        for line, weight in zip(numbers, self.coefficients[: self.numbers], strict=True):
            score += line * weight
        for row, size in zip(codes, self.code_sizes, strict=True):
            row[:] = rng.integers(size, size=rows)
            score += self.coefficients[at : at + size][row]
            at += size
        group = rng.integers(self.groups, size=(1, rows)).astype(np.uint16)
        score += self.group_effect * (group[0] - (self.groups - 1) / 2)
        labels = (rng.random(rows) * (1.0 + np.exp(-score)) < 1.0).astype(np.int32)
        return RowBlock(numbers, codes, labels, group)
