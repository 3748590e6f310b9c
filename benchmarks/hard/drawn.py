"""Synthetic people of the hard cases. A distribution is fixed by its case; a seed draws rows of
it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairveil import data
from fairveil.facts import Category, Column, Number, Schema

Floats = npt.NDArray[np.float64]
BOUND = 4.0  # of every number, in its own standard deviations


@dataclass(frozen=True)
class Law:
    """Groups of these shares, and labels by a linear score of `width` normal features, the group
    being one of its causes.

    `lift`: how far the first group's merit lies above the last one's. `apart`: how far features
    tell groups apart otherwise. `steep`: of labels in the score; the smaller, the more of them are
    chance. `level`: moves the share of positive labels.
    """

    shares: tuple[float, ...]
    width: int = 12
    lift: float = 0.8
    apart: float = 0.5
    steep: float = 2.0
    level: float = -0.7
    classes: int = 2
    number: int = 7

    @property
    def schema(self) -> Schema:
        """Public facts; how many rows there are is released."""
        columns: dict[str, Column] = {f"x{j}": Number(-BOUND, BOUND) for j in range(self.width)}
        groups = Category(tuple(f"group {c}" for c in range(len(self.shares))))
        return Schema(
            {**columns, "group": groups, "y": Category(tuple(range(self.classes)))},
            sensitive=("group",),
            target="y",
        )

    def rows(self, count: int, seed: int) -> data.EncodedRows:
        """So many people."""
        fixed = np.random.default_rng(self.number)
        away = fixed.normal(size=(len(self.shares), self.width)) / np.sqrt(self.width)
        weights = fixed.normal(size=(self.width, self.classes - 1))
        weights /= np.linalg.norm(weights, axis=0)
        rng = np.random.default_rng((self.number, seed))
        group = rng.choice(len(self.shares), count, p=self.shares)
        merit = np.linspace(0.5, -0.5, len(self.shares)) * self.lift
        X = (
            rng.normal(size=(count, self.width))
            + self.apart * away[group]
            + merit[group, np.newaxis] * weights[:, 0]
        )
        scores = np.hstack([np.zeros((count, 1)), self.steep * X @ weights + self.level])
        y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        names = np.array(self.schema.columns["group"].values)  # type: ignore[union-attr]
        return data.encode(
            {**{f"x{j}": X[:, j] for j in range(self.width)}, "group": names[group], "y": y},
            self.schema,
        )
