"""Which tables a post-processor may choose: any chances for each of a base's decisions, or
thresholds on its score.

A table p[c, j, k] is the probability that class k is decided in cell c where the base answers j: a
decision, or a bin of its score. A solver's unknowns are weights, at least 0, of which some add up
to 1:

    any        p[c, j, k] itself, for each c and j
    thresholds w[c, t] for each c, t = 0..bins: the second class is decided from bin t on, so p[c, j, 1] = sum_{t <= j} w[c, t]

A mixture of thresholds never decides for the second class less often where the score is larger, so
it cannot follow the noise of a single bin. One table for all cells (`shared`) does not read the
group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ..._types import Floats


@dataclass(frozen=True, eq=False)
class Tables:
    """Allowed tables of `shape` (cells, answers, classes). `usual`: of thresholds, that of the base
    itself; None: any table. `shared`: one for all cells."""

    shape: tuple[int, int, int]
    usual: int | None = None
    shared: bool = False

    @property
    def parts(self) -> int:
        """How many tables are chosen: one a cell, or one for all."""
        return 1 if self.shared else self.shape[0]

    @cached_property
    def base(self) -> Floats:
        """The base's own decisions."""
        _, answers, classes = self.shape
        chosen = (
            np.arange(answers)
            if self.usual is None
            else (np.arange(answers) >= self.usual).astype(np.intp)
        )
        return np.broadcast_to(np.eye(classes)[chosen], self.shape)

    @cached_property
    def sums(self) -> Any:
        """Which unknowns add up to 1, (sums, unknowns)."""
        _, answers, classes = self.shape
        lines, each = (
            (self.parts * answers, classes) if self.usual is None else (self.parts, answers + 1)
        )
        return sparse.kron(sparse.eye_array(lines), np.ones((1, each)), format="csr")

    @property
    def unknowns(self) -> int:
        """How many."""
        return int(self.sums.shape[1])

    @cached_property
    def spread(self) -> Any:
        """The table of the unknowns, (cells x answers x classes, unknowns)."""
        cells, answers, classes = self.shape
        if self.usual is None:
            one: Any = sparse.eye_array(answers * classes)
        else:
            above = (np.arange(answers + 1) <= np.arange(answers)[:, np.newaxis]).astype(np.float64)
            one = np.stack([1.0 - above, above], axis=1).reshape(answers * classes, answers + 1)
        return sparse.csr_array(
            sparse.kron(np.ones((cells, 1)) if self.shared else sparse.eye_array(cells), one)
        )

    @cached_property
    def changed(self) -> Floats:
        """What each unknown changes of the base's decisions, (unknowns,): a little different for
        each, so that one table is best among equal ones."""
        _, answers, classes = self.shape
        if self.usual is None:
            c, j, k = np.indices((self.parts, answers, classes))
            apart = 1.0 + 0.1 * c / self.parts + 0.01 * (k + 1) / classes + 0.001 * j / answers
            return np.asarray(np.where(j != k, apart, 0.0) / (self.parts * answers)).ravel()
        c, t = np.indices((self.parts, answers + 1))
        apart = 1.0 + 0.1 * c / self.parts + 0.01 * (t > self.usual)
        return np.asarray(apart * np.abs(t - self.usual) / (self.parts * answers)).ravel()

    def table(self, unknowns: Floats) -> Floats:
        """The table, its rows probabilities to the last bit that sums allow."""
        p = np.clip(
            np.asarray(self.spread @ np.where(unknowns < 1e-9, 0.0, unknowns)).reshape(self.shape),
            0.0,
            1.0,
        )
        p = np.where(p < 1e-9, 0.0, p)
        return np.asarray(p / p.sum(axis=2, keepdims=True))

    def single(self) -> list[Floats]:
        """Tables without chance that are always there: one class for everybody, and the base's
        own."""
        constants = [np.broadcast_to(one, self.shape) for one in np.eye(self.shape[2])]
        return [*constants, self.base]

    def likeliest(self, unknowns: Floats) -> Floats:
        """The table without chance in which each sum is its largest unknown."""
        width = self.unknowns // self.sums.shape[0]
        best = unknowns.reshape(-1, width).argmax(axis=1)
        return self.table(np.eye(width)[best].ravel())
