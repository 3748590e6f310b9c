"""Numbers scaled by the training rows themselves: what the papers do, and what no promise
covers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Floats
from ...errors import InputError
from ...facts import RowBlock


@dataclass(frozen=True)
class Standard:
    """z = (x - mean) / deviation for each number, both read from the training rows: what the papers
    do, and unsafe."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    @staticmethod
    def of(blocks: Sequence[RowBlock], numbers: int) -> Standard:
        """The means and deviations of coded rows. Sparse numbers keep their zeros: they are not
        shifted."""
        with np.errstate(over="ignore", invalid="ignore"):
            means, deviations = _moments(blocks, numbers)
        if not (np.isfinite(means).all() and np.isfinite(deviations).all()):
            raise InputError.expected(
                "numbers whose squares are finite",
                of="X",
                got="some that overflow",
                remedy="Scale those columns before, or declare their bounds in a schema.",
            )
        deviations[~(deviations > 0)] = 1.0
        return Standard(tuple(means.tolist()), tuple(deviations.tolist()))

    def apply(self, block: RowBlock) -> RowBlock:
        """The same rows, standardised."""
        numbers: Any = block.numbers
        if _is_sparse(numbers):
            data = numbers.data / np.asarray(self.deviations)[numbers.indices]
            return replace(
                block,
                numbers=sparse.csr_array(
                    (data, numbers.indices, numbers.indptr), shape=numbers.shape
                ),
            )
        means, deviations = (
            np.asarray(line)[:, np.newaxis] for line in (self.means, self.deviations)
        )
        return replace(
            block,
            numbers=np.ascontiguousarray((numbers - means) / deviations).astype(
                numbers.dtype, copy=False
            ),
        )

    def undone(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients for numbers as they were: w (x - m) / s + b = (w / s) x + (b - w m / s)."""
        out, count = np.array(weights), len(self.means)
        out[:, :count] /= np.asarray(self.deviations)
        return out, intercept - out[:, :count] @ np.asarray(self.means)


def _moments(blocks: Sequence[RowBlock], numbers: int) -> tuple[Floats, Floats]:
    rows = max(1, sum(block.rows for block in blocks))
    if any(_is_sparse(block.numbers) for block in blocks):
        means = np.zeros(numbers)
        firsts = (
            sum(np.asarray(block.numbers.sum(axis=0), np.float64).ravel() for block in blocks)
            / rows
        )
        squares = sum(_squares(block.numbers) for block in blocks) / rows
        deviations = np.sqrt(np.maximum(squares - firsts**2, 0.0))
    else:
        means = _sums(blocks, numbers, lambda lines: lines) / rows
        centred = _sums(blocks, numbers, lambda lines: (lines - means[:, np.newaxis]) ** 2)
        deviations = np.sqrt(centred / rows)
    return means, deviations


def _squares(lines: sparse.csr_array) -> Floats:
    exact = lines.astype(np.float64)
    return np.asarray(exact.multiply(exact).sum(axis=0)).ravel()


def _is_sparse(array: object) -> bool:
    return bool(sparse.issparse(array))


def _sums(blocks: Sequence[RowBlock], numbers: int, of: Callable[[Any], Any]) -> Floats:
    total = np.zeros(numbers)
    for block in blocks:
        total += of(block.numbers.astype(np.float64)).sum(axis=1)
    return total
