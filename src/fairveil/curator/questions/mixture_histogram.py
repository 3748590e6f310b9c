"""How a mixture of linear rules decides, in expectation: one release for the whole mixture,
whatever it is made of.

Guarantees (tests/curator/test_curator_mixture_histogram.py):
1. A row adds a point of the simplex, so no neighbour moves the histogram further than `scale` and
   `scale_of_change` say.
2. A row's contribution is a function of that row alone, to the bit: no product of matrices decides
   in which order it is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats, Ints
from ...core import bound as sensitivity
from ...core.rows import Block
from ...errors import InputError
from ...facts import Cells, RowLayout
from ..question import OwnJob, Scale, cell_count, gridded, need_classes
from .attached import scattered


@dataclass(frozen=True, eq=False)
class MixtureHistogram(OwnJob):
    """The expected decisions of a mixture, by cell (and label): shape (cells[, labels], classes).

    `weights` (rules, outputs, 1 + width): linear rules, the intercept first. `shares` (rules,): how
    much of the mixture each is, not negative, 1 together. A row adds the share of rules that decide
    for each class: L1 and L2 as for any histogram.
    """

    name: ClassVar[str] = "histogram of a mixture"
    columns: ClassVar[frozenset[str]] = frozenset({"features"})
    weights: Any
    shares: Any
    cells: Cells | None = None
    by_label: bool = False

    def __post_init__(self) -> None:
        weights, shares = np.array(self.weights, np.float64), np.array(self.shares, np.float64)
        fits = weights.ndim == 3 and shares.shape == weights.shape[:1] and len(shares) > 0
        if (
            not fits
            or not np.isfinite(weights).all()
            or not (shares >= 0).all()
            or not abs(shares.sum() - 1.0) < 1e-6
        ):
            remedy = "One line a rule, and one share each; shares add up to 1."
            got = f"shapes {weights.shape} and {shares.shape}"
            raise InputError.expected(
                "rules and their shares", of=self.name, got=got, remedy=remedy
            )
        for name, array in (("weights", weights), ("shares", shares)):
            array.setflags(write=False)
            _checks.normalise(self, **{name: array})

    @property
    def why(self) -> str:
        return "a row's expected decision is a point of the simplex"

    @property
    def reads(self) -> frozenset[str]:
        return (super().reads | {"label"}) if self.by_label else super().reads

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        classes = need_classes(layout, self.name)
        wanted = (1 if classes <= 2 else classes, 1 + layout.width)
        if self.weights.shape[1:] != wanted:
            remedy = (
                "The intercept comes first, then numbers, then the categories of each coded "
                "feature."
            )
            raise InputError.expected(
                f"rules {wanted}", of=self.name, got=self.weights.shape[1:], remedy=remedy
            )
        return (cell_count(self.cells), *((classes,) if self.by_label else ()), classes)

    def scale(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        return gridded(
            sensitivity.of_histogram(cap or 1.0, self.per_row, order),
            self.per_row * len(layout.classes or ()),
        )

    def job(self, scale: Scale, layout: RowLayout) -> Callable[[Block, int, int], tuple[Ints, ...]]:
        """Scatter expected decisions by cell."""
        classes = len(layout.classes or ())
        labels = classes if self.by_label else 1

        def job(block: Block, a: int, b: int) -> tuple[Ints, ...]:
            law = np.zeros((b - a, classes))
            for weights, share in zip(self.weights, self.shares, strict=True):
                law[np.arange(b - a), decided(block, a, b, weights)] += share
            law /= np.maximum(1.0, law.sum(axis=1, keepdims=True))
            return (scattered(self.cells, block, a, b, law, labels, scale),)

        return job


def decided(block: Block, a: int, b: int, weights: Floats) -> npt.NDArray[np.intp]:
    """The class that a linear rule (outputs, 1 + width) decides for, rows a to b: sums in one fixed
    order a row."""
    scores = np.repeat(weights[:, :1], b - a, axis=1)
    if block.is_sparse:
        at = np.repeat(np.arange(b - a), np.diff(block.indptr[a : b + 1]))
        stored = slice(block.indptr[a], block.indptr[b])
        values = np.asarray(block.numbers[0, stored], np.float64)
        for line, w in zip(scores, weights, strict=True):
            np.add.at(line, at, w[1 + block.indices[stored]] * values)
    else:
        for j, column in enumerate(block.numbers[:, a:b]):
            scores += weights[:, 1 + j, np.newaxis] * np.asarray(column, np.float64)
    first = 1 + block.layout.numbers
    for column, size in zip(block.codes[:, a:b], block.layout.code_sizes, strict=True):
        scores += weights[:, first + column.astype(np.intp)]
        first += size
    return np.asarray(
        (scores[0] > 0).astype(np.intp) if len(scores) == 1 else scores.argmax(axis=0)
    )
