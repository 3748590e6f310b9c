"""Groups with lines of their own: the budget-tailoring setting, with known coefficients, noise and
losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats
from ...errors import InputError
from ...facts.columns import Category, Column, Number
from ...facts.schema import Schema


@dataclass(frozen=True)
class GroupedLines:
    """y = slopes_k . x + intercepts_k + N(0, noise_k^2) in group k, with x uniform on [-1,
    1]^numbers.

    `shares`: how large the groups are, in any unit: (50, 1) makes the first one fifty times as
    large. A slope may be a number, or one number a feature.

    >>> lines = GroupedLines(shares=(3, 1), slopes=(-1.0, 3.0), noise=(1.0, 1.0))
    >>> lines.pooled[0].tolist(), lines.group_losses(*lines.pooled).round(3).tolist()
    ([0.0], [1.333, 4.0])
    """

    shares: tuple[float, ...] = (20.0, 1.0)
    slopes: tuple[float | tuple[float, ...], ...] = (-10.0, 10.0)
    intercepts: tuple[float, ...] = ()
    noise: tuple[float, ...] = (1.0, 1.0)

    def __post_init__(self) -> None:
        count = len(self.shares)
        if not self.intercepts:
            _checks.normalise(self, intercepts=(0.0,) * count)
        lengths = {
            "slopes": len(self.slopes),
            "intercepts": len(self.intercepts),
            "noise": len(self.noise),
        }
        if count < 1 or set(lengths.values()) != {count}:
            raise InputError.expected(
                f"{count} values each, one a group",
                of="groups",
                got=lengths,
                remedy="Match shares.",
            )
        for share in self.shares:
            _checks.positive(shares=share)
        for scale in self.noise:
            _checks.non_negative(noise=scale)
        if len({line.shape for line in map(np.atleast_1d, self.slopes)}) != 1 or not np.all(
            np.isfinite(self.coefficients)
        ):
            raise InputError.expected(
                "finite slopes, equally many a group",
                of="slopes",
                got=self.slopes,
                remedy="Pass (-1.0, 1.0), for example.",
            )

    @property
    def coefficients(self) -> Floats:
        """The slopes, shape (groups, numbers)."""
        return np.stack([np.atleast_1d(np.asarray(line, dtype=np.float64)) for line in self.slopes])

    @property
    def chances(self) -> Floats:
        """The share of each group."""
        shares: Floats = np.asarray(self.shares, dtype=np.float64) / math.fsum(self.shares)
        return shares

    @property
    def pooled(self) -> tuple[Floats, float]:
        """The best single line: since x is independent of the group, the mean of the groups' lines
        by share."""
        return self.chances @ self.coefficients, float(self.chances @ np.asarray(self.intercepts))

    def group_losses(self, slopes: npt.ArrayLike, intercept: float) -> Floats:
        """E (y - slopes.x - intercept)^2 in each group: noise^2 + (intercept difference)^2 + |slope
        difference|^2 / 3."""
        apart = self.coefficients - np.asarray(slopes, dtype=np.float64)
        shift = np.asarray(self.intercepts) - intercept
        losses: Floats = np.asarray(self.noise) ** 2 + shift**2 + (apart**2).sum(axis=1) / 3.0
        return losses

    def sizes(self, rows: int) -> tuple[int, ...]:
        """How many rows each group has: shares of `rows`, the rest to the largest remainders."""
        exact = self.chances * _checks.whole(rows=rows)
        sizes = np.floor(exact).astype(int)
        order = np.argsort(sizes - exact, kind="stable")
        sizes[order[: rows - int(sizes.sum())]] += 1
        return tuple(int(size) for size in sizes)

    def schema(self, rows: int | None = None) -> Schema:
        """The public facts; fewer than one target in 10^9 exceeds its bounds."""
        reach = (
            np.abs(self.coefficients).sum(axis=1)
            + np.abs(np.asarray(self.intercepts))
            + 6.5 * np.asarray(self.noise)
        )
        bound = float(reach.max()) or 1.0
        numbers = {f"x{j}": Number(-1, 1) for j in range(self.coefficients.shape[1])}
        columns: dict[str, Column] = {
            **numbers,
            "group": Category(tuple(range(len(self.shares)))),
            "y": Number(-bound, bound),
        }
        return Schema(columns, target="y", sensitive=("group",), rows=rows, name="grouped lines")

    def draw(
        self, rows: int, random_state: int | np.random.Generator
    ) -> dict[str, npt.NDArray[Any]]:
        """A table with exactly `sizes(rows)` rows a group, in random order."""
        rng = np.random.default_rng(random_state)
        group = rng.permutation(np.repeat(np.arange(len(self.shares)), self.sizes(rows)))
        numbers = rng.uniform(-1.0, 1.0, (self.coefficients.shape[1], rows))
        noise = rng.standard_normal(rows) * np.asarray(self.noise)[group]
        y = (
            (self.coefficients[group].T * numbers).sum(axis=0)
            + np.asarray(self.intercepts)[group]
            + noise
        )
        return {**{f"x{j}": line for j, line in enumerate(numbers)}, "group": group, "y": y}
