"""The smooth maximum of absolute gaps, as Alabi's Definitions 1.14 and 8.8 and Example 8.10 write
it.

    phi(v) = sum_p u_p e^(eta u_p) / sum_p e^(eta u_p),        u_p = the largest of |v_j| over the lines j of comparison p

Definition 1.14 takes a, a' from A x A: both orders of every pair of groups, and every group with
itself, whose u is 0. Those zeros are part of its sums, and make phi smaller. Example 8.10 has two
groups and takes each absolute difference once.

Proofs. Let o be the overshoot of `outer.Boltzmann` for as many numbers as there are comparisons.
The partial derivatives of phi in the u's have negative parts that sum to at most o and positive
parts that sum to at most 1 + o. |.| and the largest of a comparison hand each of them, with either
sign, to one line. So a derivative lies in [-1 - o, 1 + o], and their sizes sum to at most 1 + 2o,
which bounds the L2 length too. There are kinks, at 0 and where two lines are the largest.

Guarantees (tests/fairness/test_fairness_objectives.py, test_fairness_published_odds.py):
1. Gradients are those of finite differences where there are any, and subgradients elsewhere.
2. No value or gradient that sampling finds breaks a stated constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from .. import _checks
from .._types import Floats
from .outer import Boltzmann, Outer


@dataclass(frozen=True)
class BoltzmannOfGaps(Outer):
    """Of m numbers, of which `lines` that follow each other make one comparison. `times`: how often
    each comparison counts; `zeros`: how many comparisons of a group with itself count beside."""

    sharpness: float
    lines: int = 1
    times: int = 1
    zeros: int = 0
    convex = False
    keeps_lines: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checks.normalise(self, sharpness=_checks.positive(sharpness=self.sharpness))

    def value(self, v: Floats) -> Floats:
        sizes = self._sizes(v).max(axis=-1)
        return np.asarray((self._parts(sizes) * sizes).sum(axis=-1))

    def gradient(self, v: Floats) -> Floats:
        each = self._sizes(v)
        sizes = each.max(axis=-1)
        parts = self._parts(sizes)
        of_sizes = parts * (
            1.0 + self.sharpness * (sizes - (parts * sizes).sum(axis=-1, keepdims=True))
        )
        largest = np.eye(self.lines)[each.argmax(axis=-1)] * of_sizes[..., np.newaxis]
        return np.asarray(largest.reshape(v.shape) * np.sign(v))

    def ranges(self, m: int) -> tuple[Floats, Floats]:
        most = 1.0 + self._overshoot(m)
        return np.full(m, -most), np.full(m, most)

    def slopes(self, lines: sparse.csr_array) -> tuple[Floats, Floats]:
        """Signed weights whose sizes sum to at most `steepness` mix the lines."""
        most = np.asarray(abs(lines).max(axis=0).todense(), np.float64).ravel() * self.steepness(
            lines.shape[0]
        )
        return -most, most

    def steepness(self, m: int) -> float:
        return 1.0 + 2.0 * self._overshoot(m)

    def lipschitz(self, lines: sparse.csr_array) -> float:
        lengths = np.sqrt(np.asarray(lines.power(2).sum(axis=1), np.float64).ravel())
        return self.steepness(lines.shape[0]) * float(lengths.max(initial=0.0))

    def bend(self, m: int) -> float:
        return math.inf

    def _overshoot(self, m: int) -> float:
        return Boltzmann(self.sharpness).overshoot(self.times * (m // self.lines) + self.zeros)

    def _sizes(self, v: Floats) -> Floats:
        """|v|, (..., comparisons, lines)."""
        return np.abs(v).reshape(*v.shape[:-1], -1, self.lines)

    def _parts(self, sizes: Floats) -> Floats:
        """What each comparison weighs, (..., comparisons); those of groups with themselves have the
        rest."""
        top = sizes.max(axis=-1, keepdims=True)
        powers = self.times * np.exp(self.sharpness * (sizes - top))
        return np.asarray(
            powers
            / (powers.sum(axis=-1, keepdims=True) + self.zeros * np.exp(-self.sharpness * top))
        )
