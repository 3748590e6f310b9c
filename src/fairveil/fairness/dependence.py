"""Exponential Renyi mutual information of prediction and group, and its min-max form (DP-FERMI,
Lowy et al.).

With P[r, j] the share of rows of group r whose prediction is class j,

    D(Yhat; S) = sum_{r, j} P[r, j]^2 / (P[j] p[r]) - 1                        (Definition 3.1)
               = max over W of  sum_j ( -|W_j|^2 P[j] + 2 sum_r W[r, j] P[r, j] / sqrt(p[r]) ) - 1        (Theorem C.1)

which is attained at W[r, j] = P[r, j] / (sqrt(p[r]) P[j]). It is at least 0, 0 where predictions do
not depend on groups, and above the square of every gap of demographic parity up to a constant. One
row of group s whose soft prediction is F adds

    psi = sum_j F_j c[s, j] - 1,     c[s, j] = -|W_j|^2 + 2 W[s, j] / sqrt(p[s])

so its gradient is that of a *cost of predictions*, and W's is made of the histogram of soft
predictions by group alone (Lemma D.1). Given the label (equalized odds) there is one W a label, and
D = sum_y p[y] D_y; several sensitive columns are one product of groups, or, with marginal groups, a
W a column, whose D add up. A group's share is at least `least_share`, a public constant.

Everything here is post-processing. H (cells, labels, classes) and N (cells, labels) are in one
unit, noisy or not. Leading axes (many models at once) are carried through.

`Differs:` the appendix subtracts 1 once from the sum over labels of p[y] D_y + p[y], which is the
same for labels that occur.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from .._types import Floats
from ..errors import InputError
from ..facts import Cells

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Dependence:
    """What predictions are not to depend on: public values, the shapes and weights of the penalty.

    `blocks`: the cells of each sensitive column (one block for product groups). `labels`: which
    labels count; `weighted`: each with its share p[y], as the papers have it, else with weight 1,
    which is the conditional information itself.
    """

    blocks: tuple[slice, ...]
    labels: tuple[int, ...]
    weighted: bool = True
    least_share: float = 0.01

    @staticmethod
    def of(
        cells: Cells,
        labels: tuple[int, ...] = (0,),
        *,
        weighted: bool = True,
        least_share: float = 0.01,
    ) -> Dependence:
        """The dependence on these cells, given these labels ((0,): labels are not
        distinguished)."""
        if not 0.0 < least_share <= 0.5:
            remedy = "It is the share that a group of no rows is taken to have: 0.01, for example."
            expected = "a number above 0, at most 0.5"
            raise InputError.expected(expected, of="least_share", got=least_share, remedy=remedy)
        sizes = (cells.count,) if cells.mode == "product" else tuple(cells.sizes)
        ends = itertools.accumulate(sizes, initial=0)
        blocks = tuple(slice(a, b) for a, b in itertools.pairwise(ends))
        return Dependence(blocks, labels, weighted, least_share)

    def shares(self, counts: Floats) -> Floats:
        """p[r | y], (..., cells, labels): of each sensitive column's cells, at least
        `least_share`."""
        parts = [counts[..., block, :] for block in self.blocks]
        totals = [np.maximum(part.sum(axis=-2, keepdims=True), TINY) for part in parts]
        shares = np.concatenate(
            [part / total for part, total in zip(parts, totals, strict=True)], axis=-2
        )
        # 1 / sqrt(p) is a row's cost: a share of nearly 0 would let one row of a small group cost
        # without bound.
        return np.asarray(np.clip(shares, self.least_share, 1.0))

    def best(self, histogram: Floats, counts: Floats, floor: float = TINY) -> Floats:
        """The maximising W, (..., cells, labels, classes): H[r, y, j] / (sqrt(p[r | y]) H[y, j]),
        H[y, j] at least `floor`."""
        return self.at(counts).best(histogram, floor)

    def at(self, counts: Floats) -> FixedShares:
        """The same at counts that do not change from round to round."""
        roots = np.sqrt(self.shares(counts))[..., np.newaxis]
        weights = self._weights(counts)[..., np.newaxis, :, np.newaxis]
        return FixedShares(self.blocks, roots, None if (weights == 1.0).all() else weights)

    def value(self, w: Floats, histogram: Floats, counts: Floats) -> Floats:
        """The penalty at W, a number a model: mean of psi over the rows, by label as `weighted`
        says. (...,)"""
        costs = self.costs(w, counts)
        rows = counts[..., self.blocks[0], :].sum(axis=(-2, -1))
        inside = (costs * histogram).sum(axis=(-3, -2, -1)) / np.maximum(rows, TINY)
        of_label = counts[..., self.blocks[0], :].sum(axis=-2)
        ones = (of_label * self._weights(counts)).sum(axis=-1) / np.maximum(rows, TINY)
        return np.asarray(inside - len(self.blocks) * ones)

    def information(self, histogram: Floats, counts: Floats) -> Floats:
        """D itself: the largest value over all W. (...,)"""
        return self.value(self.best(histogram, counts), histogram, counts)

    def costs(self, w: Floats, counts: Floats) -> Floats:
        """c[s, y, j], (..., cells, labels, classes): what a prediction of class j costs a row, in
        units of the strength."""
        return self.at(counts).costs(w)

    def gradient(self, w: Floats, histogram: Floats, counts: Floats) -> Floats:
        """d value / d W (Lemma D.1, summed over rows): (2 / rows) (H[r, j] / sqrt(p[r]) - W[r, j]
        H[j]), by label."""
        share = np.sqrt(self.shares(counts))[..., np.newaxis]
        sums = [
            np.broadcast_to(
                (part := histogram[..., block, :, :]).sum(axis=-3, keepdims=True), part.shape
            )
            for block in self.blocks
        ]
        rows = np.maximum(counts[..., self.blocks[0], :].sum(axis=(-2, -1)), TINY)[
            ..., np.newaxis, np.newaxis, np.newaxis
        ]
        weights = self._weights(counts)[..., np.newaxis, :, np.newaxis]
        return np.asarray(
            2.0 / rows * weights * (histogram / share - w * np.concatenate(sums, axis=-3))
        )

    def _weights(self, counts: Floats) -> Floats:
        """What a row of each label counts, (..., labels): 0 for labels that are left out."""
        chosen = np.zeros(counts.shape[-1])
        chosen[list(self.labels)] = 1.0
        if self.weighted:
            return np.broadcast_to(chosen, (*counts.shape[:-2], len(chosen)))
        of_label = counts[..., self.blocks[0], :].sum(axis=-2)
        shares = of_label / np.maximum(of_label.sum(axis=-1, keepdims=True), TINY)
        return np.asarray(chosen / np.maximum(shares, self.least_share))


@dataclass(frozen=True, eq=False, slots=True)
class FixedShares:
    """`best` and `costs` of a dependence, with what depends on the counts alone worked out once.

    `roots`: sqrt(p[r | y]), (..., cells, labels, 1). `weights`: what a row of each label counts,
    (..., 1, labels, 1); None: 1.
    """

    blocks: tuple[slice, ...]
    roots: Floats
    weights: Floats | None

    def best(self, histogram: Floats, floor: float = TINY) -> Floats:
        """The maximising W: see `Dependence.best`."""
        parts = [
            # Released histograms may be negative, and their sums near 0.
            np.maximum(part, 0.0) / np.maximum(np.add.reduce(part, axis=-3, keepdims=True), floor)
            for part in self._by_block(histogram)
        ]
        return np.asarray(_joined(parts) / self.roots)

    def costs(self, w: Floats) -> Floats:
        """What a prediction costs a row: see `Dependence.costs`."""
        squares = w * w
        sums = [np.add.reduce(part, axis=-3, keepdims=True) for part in self._by_block(squares)]
        if len(sums) > 1:
            sums = [
                np.broadcast_to(total, part.shape)
                for total, part in zip(sums, self._by_block(squares), strict=True)
            ]
        # 2 W[s, j] / sqrt(p[s]) - sum_r W[r, j]^2: psi without its constant, which moves no
        # gradient (Lowy et al.).
        costs = 2.0 * w / self.roots - _joined(sums)
        return np.asarray(costs if self.weights is None else costs * self.weights)

    def _by_block(self, values: Floats) -> list[Floats]:
        return (
            [values]
            if len(self.blocks) == 1
            else [values[..., block, :, :] for block in self.blocks]
        )


def _joined(parts: list[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-3)


def projected(w: Floats, radius: float) -> Floats:
    """The nearest W, label by label, whose Frobenius norm is at most `radius`. (..., cells, labels,
    classes)"""
    sizes = np.sqrt(np.add.reduce(w * w, axis=(-3, -1), keepdims=True))
    return np.asarray(w * np.minimum(1.0, radius / np.maximum(sizes, TINY)))
