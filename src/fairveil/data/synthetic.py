"""Classes and groups with known truth: the Bayes classifier, its rates in every group and its
gaps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts.columns import Category, Column, Number
from ..facts.schema import Schema

REACH = 12.0
GRID = 4_001


@dataclass(frozen=True)
class Rates:
    """What a classifier does: `rates[a, y, k]` = P(prediction = k | group a, label y), exact to
    about 1e-9.

    `weights[a, y]` = P(group a, label y).
    """

    rates: Floats
    weights: Floats

    @property
    def accuracy(self) -> float:
        """P(prediction = label)."""
        return float(np.einsum("ay,ayy->", self.weights, self.rates))

    @property
    def by_group(self) -> Floats:
        """P(prediction = k | group a), shape (groups, classes)."""
        shares: Floats = self.weights / self.weights.sum(axis=1, keepdims=True)
        rates: Floats = np.einsum("ay,ayk->ak", shares, self.rates)
        return rates

    @property
    def demographic_parity_gap(self) -> float:
        """The largest difference between two groups in the rate of any predicted class."""
        return float(np.ptp(self.by_group, axis=0).max())

    @property
    def equalized_odds_gap(self) -> float:
        """The same given each label."""
        return float(np.ptp(self.rates, axis=0).max())


@dataclass(frozen=True)
class GroupedClasses:
    """A population with groups, whose every rate is known.

    Group a (a combination of the sensitive columns, drawn independently) has label y with P(y | a)
    proportional to exp(slope y a / (cells - 1)), so `slope=0` gives equal base rates. With m_y =
    separation (y - (classes - 1)/2) and s_a = shift (a/(cells - 1) - 1/2), the numbers are x = (m_y
    + s_a) u + N(0, I), u = (1, ..., 1)/sqrt(numbers), and the first category is v with P(v | y)
    proportional to exp(-|v/(size - 1) - y/(classes - 1)| informative); other categories are noise.

    t = u.x and the first category are all that tells about y, so the best classifier that does not
    see the group maximises sum_a P(a, y) N(t; m_y + s_a, 1) P(v | y) over y; its rates are sums of
    normal probabilities between the points t at which the maximiser changes, which are found by
    bisection.

    >>> truth = GroupedClasses(shift=1.0).bayes
    >>> 0.1 < truth.demographic_parity_gap < 0.4
    True
    """

    classes: int = 2
    sensitive_sizes: tuple[int, ...] = (2,)
    numbers: int = 3
    category_sizes: tuple[int, ...] = (4,)
    separation: float = 2.0
    shift: float = 0.5
    slope: float = 0.5
    informative: float = 1.0

    def __post_init__(self) -> None:
        _checks.whole(classes=self.classes, at_least=2)
        _checks.whole(numbers=self.numbers, at_least=1)
        for name, given in _checks.named(self, ("sensitive_sizes", "category_sizes")).items():
            sizes = tuple(given)
            if any(
                isinstance(size, bool) or not isinstance(size, int) or size < 2 for size in sizes
            ):
                raise InputError.expected(
                    "whole numbers of at least 2", of=name, got=sizes, remedy="Pass (2, 3)."
                )
            _checks.normalise(self, **{name: sizes})
        if not self.sensitive_sizes:
            raise InputError.expected(
                "a sensitive column", of="sensitive_sizes", got=(), remedy="Pass (2,), for example."
            )
        numbers = _checks.named(self, ("separation", "shift", "slope", "informative"))
        for name, value in numbers.items():
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not math.isfinite(value)
            ):
                raise InputError.expected(
                    "a finite number", of=name, got=value, remedy=f"Pass {name}=1.0, for example."
                )

    # The population

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The cells, in the order of a product of the sensitive columns."""
        return tuple(itertools.product(*(range(size) for size in self.sensitive_sizes)))

    @cached_property
    def weights(self) -> Floats:
        """P(group a, label y). In each sensitive column, value j has weight 1/(j + 1)."""
        columns = [1.0 / np.arange(1, size + 1) for size in self.sensitive_sizes]
        shares = np.array(
            [
                math.prod(column[at] for column, at in zip(columns, cell, strict=True))
                for cell in self.groups
            ]
        )
        place = np.arange(len(self.groups)) / max(len(self.groups) - 1, 1)
        base = np.exp(self.slope * place[:, np.newaxis] * np.arange(self.classes))
        weights: Floats = (
            shares[:, np.newaxis] / shares.sum() * base / base.sum(axis=1, keepdims=True)
        )
        return weights

    @cached_property
    def means(self) -> Floats:
        """The mean of t given group and label."""
        place = np.arange(len(self.groups)) / max(len(self.groups) - 1, 1)
        levels = self.separation * (np.arange(self.classes) - (self.classes - 1) / 2)
        means: Floats = levels + (self.shift * (place - 0.5))[:, np.newaxis]
        return means

    @cached_property
    def category_chances(self) -> Floats:
        """P(first category = v | label y), shape (classes, size); one column of ones without
        categories."""
        if not self.category_sizes:
            return np.ones((self.classes, 1))
        size = self.category_sizes[0]
        apart = np.abs(
            np.arange(size) / (size - 1)
            - (np.arange(self.classes) / (self.classes - 1))[:, np.newaxis]
        )
        chances = np.exp(-self.informative * apart)
        normalised: Floats = chances / chances.sum(axis=1, keepdims=True)
        return normalised

    def schema(self, rows: int | None = None) -> Schema:
        """The public facts; bounds that fewer than one number in 10^9 exceeds."""
        bound = float(np.abs(self.means).max()) + 6.5
        numbers = {f"x{j}": Number(-bound, bound) for j in range(self.numbers)}
        categories = {
            f"c{j}": Category(tuple(range(size))) for j, size in enumerate(self.category_sizes)
        }
        groups = {
            f"group{j}": Category(tuple(range(size))) for j, size in enumerate(self.sensitive_sizes)
        }
        columns: dict[str, Column] = {
            **numbers,
            **categories,
            **groups,
            "label": Category(tuple(range(self.classes))),
        }
        return Schema(
            columns, target="label", sensitive=tuple(groups), rows=rows, name="grouped classes"
        )

    def draw(
        self, rows: int, random_state: int | np.random.Generator
    ) -> dict[str, npt.NDArray[Any]]:
        """A table of rows drawn independently."""
        rng = np.random.default_rng(random_state)
        rows = _checks.whole(rows=rows)
        cells = rng.choice(self.weights.size, size=rows, p=self.weights.ravel())
        group, label = np.divmod(cells, self.classes)
        noise = rng.standard_normal((self.numbers, rows))
        numbers = noise + self.means[group, label] / math.sqrt(self.numbers)
        table: dict[str, npt.NDArray[Any]] = {f"x{j}": line for j, line in enumerate(numbers)}
        for j, size in enumerate(self.category_sizes):
            if j == 0:
                above = np.cumsum(self.category_chances, axis=1)[label]
                table["c0"] = (rng.random(rows)[:, np.newaxis] > above[:, :-1]).sum(axis=1)
            else:
                table[f"c{j}"] = rng.integers(size, size=rows)
        values = np.array(self.groups)[group]
        table |= {f"group{j}": values[:, j] for j in range(len(self.sensitive_sizes))}
        return {**table, "label": label}

    # The truth

    @cached_property
    def bayes(self) -> Rates:
        """The rates of the best classifier that does not see the group."""
        return self._rates(self._best)

    def predict(self, table: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
        """The best classifier's predictions for drawn rows."""
        t: Floats = np.sum([table[f"x{j}"] for j in range(self.numbers)], axis=0) / math.sqrt(
            self.numbers
        )
        first = table["c0"] if self.category_sizes else np.zeros(len(t), dtype=np.int64)
        predictions = np.empty(len(t), dtype=np.int64)
        for value in range(self.category_chances.shape[1]):
            here = first == value
            predictions[here] = self._best(t[here], value)
        return predictions

    def _best(self, t: Floats, value: int) -> npt.NDArray[np.int64]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights) - (t[:, np.newaxis, np.newaxis] - self.means) ** 2 / 2
        return np.asarray(
            np.argmax(logsumexp(logs, axis=1) + np.log(self.category_chances[:, value]), axis=1),
            dtype=np.int64,
        )

    def _rates(self, choose: Callable[[Floats, int], npt.NDArray[np.int64]]) -> Rates:
        rates = np.zeros((*self.means.shape, self.classes))
        low, high = float(self.means.min()) - REACH, float(self.means.max()) + REACH
        for value in range(self.category_chances.shape[1]):

            def chosen_at(t: Floats, value: int = value) -> npt.NDArray[np.int64]:
                return choose(t, value)

            edges, chosen = _regions(chosen_at, np.linspace(low, high, GRID))
            mass = np.diff(ndtr(edges - self.means[..., np.newaxis]), axis=-1)
            for region, k in enumerate(chosen):
                rates[..., k] += self.category_chances[:, value] * mass[..., region]
        return Rates(rates, self.weights)


def _regions(
    choose: Callable[[Floats], npt.NDArray[np.int64]], grid: Floats
) -> tuple[Floats, list[int]]:
    """The edges of the intervals of t on which one choice is made, and the choices."""
    chosen = choose(grid)
    at = np.flatnonzero(np.diff(chosen))
    low, high, before = grid[at].copy(), grid[at + 1].copy(), chosen[at]
    for _ in range(60):
        middle = (low + high) / 2
        same = choose(middle) == before
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.concatenate([[-np.inf], low, [np.inf]]), [int(chosen[0]), *map(int, chosen[at + 1])]
