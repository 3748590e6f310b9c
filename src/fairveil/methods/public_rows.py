"""Rows whose features and labels are public, with what they are taken to add to each cell: what
rules cost on them.

A rule's expected histogram is P[c, y, k] = sum of M[i, c] over the rows of label y that it gives
class k, M the memberships. Nothing here asks a curator: the table is public, M is made of released
sums (`memberships`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax

from .._types import Floats

SMOOTH = 1e-3  # the ridge, in whitened coordinates
STEPS = 6  # of L-BFGS a round at most, from where the round before ended


@dataclass(frozen=True, eq=False)
class PublicRows:
    """`design` (rows, k), whitened, the intercept first; `basis` (k, 1 + width) makes it of coded
    rows. `labels` (rows,), `members` (rows, cells), weighted, scaled to all rows; `weights` (rows,)
    of the error, 1 together; `by_label`: whether cells tell labels apart."""

    design: Floats
    basis: Floats
    labels: npt.NDArray[np.intp]
    members: Floats
    weights: Floats
    classes: int
    by_label: bool

    @cached_property
    def halved(self) -> npt.NDArray[np.float32]:
        """The design in half of the memory, for steps of a search."""
        return self.design.astype(np.float32)

    @property
    def outputs(self) -> int:
        """1 for two classes, else one a class."""
        return 1 if self.classes <= 2 else self.classes

    def costs(self, cell_costs: Floats) -> Floats:
        """What the constraints make each decision cost, (rows, classes): without the error."""
        if not self.by_label:
            return np.asarray(self.members @ cell_costs[:, 0])
        out = np.zeros((len(self.labels), self.classes))
        for label in range(self.classes):
            at = self.labels == label
            out[at] = self.members[at] @ cell_costs[:, label]
        return out

    def errors(self) -> Floats:
        """What each decision adds to the error, (rows, classes)."""
        out = np.repeat(self.weights[:, np.newaxis], self.classes, axis=1)
        out[np.arange(len(out)), self.labels] = 0.0
        return out

    def decided(self, v: Floats) -> npt.NDArray[np.intp]:
        """The class that v (outputs, k) decides for, row by row."""
        scores = self.design @ v.T
        return np.asarray(
            (scores[:, 0] > 0).astype(np.intp) if len(v) == 1 else scores.argmax(axis=1)
        )

    def histogram(self, decided: npt.NDArray[np.intp]) -> Floats:
        """P, (cells, labels or 1, classes)."""
        labels = self.classes if self.by_label else 1
        out = np.zeros((labels * self.classes, self.members.shape[1]))
        bins = (self.labels if self.by_label else 0) * self.classes + decided
        for one in range(len(out)):
            out[one] = self.members[bins == one].sum(axis=0)
        return np.moveaxis(out.reshape(labels, self.classes, -1), -1, 0)

    def error(self, decided: npt.NDArray[np.intp]) -> float:
        """The share of rows that are decided wrong."""
        return float(self.weights[decided != self.labels].sum())

    def descended(self, start: Floats, costs: Floats, steps: int = STEPS) -> Floats:
        """A few steps down  mean log loss + sum of costs . softmax: smooth, and not convex."""
        return self.down(start, lambda scores: self._softened(scores, costs), steps)

    def relabelled(self, start: Floats, costs: Floats, steps: int = STEPS) -> Floats:
        """A few steps down the log loss of the cheapest class, each row weighed by what it saves
        (Agarwal et al.)."""
        saved = costs.max(axis=1) - costs.min(axis=1)
        total = max(float(saved.sum()), 1e-300)
        return self.down(
            start, lambda scores: log_losses(scores, costs.argmin(axis=1), saved / total), steps
        )

    def regressed(self, costs: Floats) -> Floats:
        """The least-squares regression of costs: the design is white."""
        slopes = costs.T @ self.design
        return np.asarray(slopes[:1] - slopes[1:2] if self.outputs == 1 else -slopes)

    def cut(self, v: Floats, costs: Floats) -> Floats:
        """The same direction with the intercept that costs least; two classes."""
        if not len(costs):
            return v.copy()
        scores = self.design[:, 1:] @ v[0, 1:]
        order = np.argsort(-scores, kind="stable")
        ranked, pulls = scores[order], (costs[:, 1] - costs[:, 0])[order]
        sums = np.concatenate([[0.0], np.cumsum(pulls)])
        # rows of one score go together
        ends = np.concatenate([[True], ranked[1:] < ranked[:-1], [True]])
        best = int(np.flatnonzero(ends)[np.argmin(sums[ends])])
        high = ranked[best - 1] if best > 0 else ranked[0] + 2.0
        low = ranked[best] if best < len(ranked) else ranked[-1] - 2.0
        out = v.copy()
        out[0, 0] = -0.5 * (high + low)
        return out

    def _softened(self, scores: Floats, costs: Floats) -> tuple[float, Floats]:
        value, slopes = log_losses(scores, self.labels, self.weights)
        if self.outputs == 1:
            p, pull = expit(scores[:, 0]), costs[:, 1] - costs[:, 0]
            return value + float(pull @ p), slopes + (pull * p * (1.0 - p))[:, np.newaxis]
        q = softmax(scores, axis=1)
        mean = (q * costs).sum(axis=1, keepdims=True)
        return value + float(mean.sum()), slopes + q * (costs - mean)

    def down(
        self, start: Floats, loss: Callable[[Floats], tuple[float, Floats]], steps: int
    ) -> Floats:
        """Steps of L-BFGS down a loss of scores, which gives its value and slopes, beside a small
        ridge."""

        def falls(flat: Floats) -> tuple[float, Floats]:
            v = flat.reshape(start.shape)
            value, slopes = loss((self.halved @ v.T.astype(np.float32)).astype(np.float64))
            gradient = (slopes.T.astype(np.float32) @ self.halved).astype(np.float64)
            gradient[:, 1:] += SMOOTH * v[:, 1:]
            return value + 0.5 * SMOOTH * float((v[:, 1:] ** 2).sum()), gradient.ravel()

        options: Any = {"maxiter": steps}
        return np.asarray(
            minimize(falls, start.ravel(), jac=True, method="L-BFGS-B", options=options).x.reshape(
                start.shape
            )
        )


def log_losses(
    scores: Floats, labels: npt.NDArray[np.intp], weights: Floats
) -> tuple[float, Floats]:
    """The weighted sum of log losses, and its slopes by score."""
    if scores.shape[1] == 1:
        signs = 2.0 * labels - 1.0
        margins = signs * scores[:, 0]
        return float(weights @ np.logaddexp(0.0, -margins)), (-weights * signs * expit(-margins))[
            :, np.newaxis
        ]
    level = logsumexp(scores, axis=1)
    slopes = np.exp(scores - level[:, np.newaxis])
    at = np.arange(len(scores))
    value = float(weights @ (level - scores[at, labels]))
    slopes[at, labels] -= 1.0
    return value, slopes * weights[:, np.newaxis]
