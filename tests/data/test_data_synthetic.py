"""Synthetic data against their stated shares. Each comparison allows 5 standard errors: a false
alarm in 1.7 million cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairveil.data import encode
from fairveil.data.synthetic import GroupedClasses
from fairveil.errors import InputError

POPULATIONS: list[dict[str, Any]] = [
    {},
    {"classes": 5, "sensitive_sizes": (3, 4), "numbers": 2, "category_sizes": (3, 5)},
    {"classes": 2, "sensitive_sizes": (12,), "numbers": 1, "category_sizes": (), "shift": 2.0},
    {"classes": 3, "shift": 0.0, "slope": 0.0, "informative": 3.0},
]


@pytest.mark.parametrize("options", POPULATIONS)
def test_drawn_rows_have_the_stated_shares_and_means(options: dict[str, Any]) -> None:
    population = GroupedClasses(**options)
    rows = 200_000
    table = population.draw(rows, 3)
    sizes = population.sensitive_sizes
    group = np.ravel_multi_index([table[f"group{j}"] for j in range(len(sizes))], sizes)
    cells = np.zeros(population.weights.shape)
    np.add.at(cells, (group, table["label"]), 1)
    spread = 5 * np.sqrt(population.weights / rows)
    assert np.all(np.abs(cells / rows - population.weights) <= spread)
    along = sum(table[f"x{j}"] for j in range(population.numbers)) / np.sqrt(population.numbers)
    sums = np.zeros(cells.shape)
    np.add.at(sums, (group, table["label"]), along)
    assert np.all(np.abs(sums / cells - population.means) <= 5 / np.sqrt(cells))
    if population.category_sizes:
        values = np.zeros(population.category_chances.shape)
        np.add.at(values, (table["label"], table["c0"]), 1)
        found = values / values.sum(axis=1, keepdims=True)
        error = 5 * np.sqrt(0.25 / values.sum(axis=1, keepdims=True))
        assert np.all(np.abs(found - population.category_chances) <= error)
    some = {name: column[:100] for name, column in table.items()}
    assert encode(some, population.schema()).layout.code_sizes == population.category_sizes


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupedClasses(classes=1),
        lambda: GroupedClasses(sensitive_sizes=()),
        lambda: GroupedClasses(category_sizes=(1,)),
        lambda: GroupedClasses(shift=float("nan")),
    ],
)
def test_impossible_populations_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match=r"expected .*, got "):
        make()
