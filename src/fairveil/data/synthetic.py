"""Made-up people: classes and groups of known shares, for demonstrations and tests."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..core.errors import need
from ..facts.columns import Category, Column, Number
from ..facts.schema import Schema


@dataclass(frozen=True)
class GroupedClasses:
    """A population with groups, whose shares and means are known.

    Group a (a combination of the sensitive columns, drawn independently) has label y with P(y | a)
    proportional to exp(slope y a / (cells - 1)), so `slope=0` gives equal base rates. With m_y =
    separation (y - (classes - 1)/2) and s_a = shift (a/(cells - 1) - 1/2), the numbers are x = (m_y
    + s_a) u + N(0, I), u = (1, ..., 1)/sqrt(numbers), and the first category is v with P(v | y)
    proportional to exp(-|v/(size - 1) - y/(classes - 1)| informative); other categories are noise.

    >>> table = GroupedClasses(shift=1.0).draw(100, 0)
    >>> sorted(table)
    ['c0', 'group0', 'label', 'x0', 'x1', 'x2']
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
        for name in ("sensitive_sizes", "category_sizes"):
            given = getattr(self, name)
            sizes = tuple(_checks.whole(at_least=2, **{name: size}) for size in given)
            _checks.normalise(self, **{name: sizes})
        fix, some = "Pass (2,), for example.", bool(self.sensitive_sizes)
        need(some, "a sensitive column", of="sensitive_sizes", got=(), fix=fix)
        for name in ("separation", "shift", "slope", "informative"):
            value = getattr(self, name)
            finite = isinstance(value, int | float) and math.isfinite(value)
            need(finite, "a finite number", of=name, got=value, fix=f"Pass {name}=1.0.")

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The cells, in the order of a product of the sensitive columns."""
        return tuple(itertools.product(*(range(size) for size in self.sensitive_sizes)))

    @property
    def _place(self) -> Floats:
        return np.arange(len(self.groups)) / max(len(self.groups) - 1, 1)

    @cached_property
    def weights(self) -> Floats:
        """P(group a, label y). In each sensitive column, value j has weight 1/(j + 1)."""
        shares = np.array([math.prod(1.0 / (at + 1) for at in cell) for cell in self.groups])
        base = np.exp(self.slope * self._place[:, np.newaxis] * np.arange(self.classes))
        base /= base.sum(axis=1, keepdims=True)
        return np.asarray(shares[:, np.newaxis] / shares.sum() * base)

    @cached_property
    def means(self) -> Floats:
        """The mean of u.x given group and label."""
        levels = self.separation * (np.arange(self.classes) - (self.classes - 1) / 2)
        return np.asarray(levels + (self.shift * (self._place - 0.5))[:, np.newaxis])

    @cached_property
    def category_chances(self) -> Floats:
        """P(first category = v | label y), shape (classes, size); a column of ones without
        categories."""
        if not self.category_sizes:
            return np.ones((self.classes, 1))
        size, labels = self.category_sizes[0], np.arange(self.classes) / (self.classes - 1)
        apart = np.abs(np.arange(size) / (size - 1) - labels[:, np.newaxis])
        chances = np.exp(-self.informative * apart)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def schema(self, rows: int | None = None) -> Schema:
        """The public facts; bounds that fewer than one number in 10^9 exceeds."""
        bound = float(np.abs(self.means).max()) + 6.5
        columns: dict[str, Column] = {f"x{j}": Number(-bound, bound) for j in range(self.numbers)}
        groups = {f"group{j}": size for j, size in enumerate(self.sensitive_sizes)}
        listed = {f"c{j}": size for j, size in enumerate(self.category_sizes)} | groups
        listed["label"] = self.classes
        columns |= {name: Category(tuple(range(size))) for name, size in listed.items()}
        named = {"target": "label", "sensitive": tuple(groups), "name": "grouped classes"}
        return Schema(columns, rows=rows, **named)  # type: ignore[arg-type]

    def draw(
        self, rows: int, random_state: int | np.random.Generator
    ) -> dict[str, npt.NDArray[np.generic]]:
        """A table of rows drawn independently."""
        rng = np.random.default_rng(random_state)
        rows = _checks.whole(rows=rows)
        cells = rng.choice(self.weights.size, size=rows, p=self.weights.ravel())
        group, label = np.divmod(cells, self.classes)
        noise = rng.standard_normal((self.numbers, rows))
        numbers = noise + self.means[group, label] / math.sqrt(self.numbers)
        table: dict[str, npt.NDArray[np.generic]] = {f"x{j}": x for j, x in enumerate(numbers)}
        for j, size in enumerate(self.category_sizes):
            if j == 0:
                above = np.cumsum(self.category_chances, axis=1)[label]
                table["c0"] = (rng.random(rows)[:, np.newaxis] > above[:, :-1]).sum(axis=1)
            else:
                table[f"c{j}"] = rng.integers(size, size=rows)
        values = np.array(self.groups)[group]
        table |= {f"group{j}": values[:, j] for j in range(len(self.sensitive_sizes))}
        return {**table, "label": label}
