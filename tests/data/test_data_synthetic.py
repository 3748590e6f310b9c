"""Synthetic data against their stated truth. Each comparison allows 5 standard errors: a false
alarm in 1.7 million cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

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
def test_drawn_rows_have_the_stated_rates(options: dict[str, Any]) -> None:
    population = GroupedClasses(**options)
    rows = 200_000
    table = population.draw(rows, 3)
    group = np.ravel_multi_index(
        [table[f"group{j}"] for j in range(len(population.sensitive_sizes))],
        population.sensitive_sizes,
    )
    counts = np.zeros((*population.weights.shape, population.classes))
    np.add.at(counts, (group, table["label"], population.predict(table)), 1)
    cells = counts.sum(axis=-1)
    assert np.all(
        np.abs(cells / rows - population.weights) <= 5 * np.sqrt(population.weights / rows)
    )
    truth = population.bayes
    error = 5 * np.sqrt(np.maximum(truth.rates * (1 - truth.rates), 1e-4) / cells[..., np.newaxis])
    assert np.all(np.abs(counts / cells[..., np.newaxis] - truth.rates) <= error)
    accuracy = np.einsum("ayy->", counts) / rows
    assert abs(accuracy - truth.accuracy) <= 5 * 0.5 / np.sqrt(rows)
    layout = encode(
        {name: column[:100] for name, column in table.items()}, population.schema()
    ).layout
    assert layout.code_sizes == population.category_sizes


def test_the_bayes_accuracy_is_that_of_an_independent_integral() -> None:
    population = GroupedClasses(
        classes=3, sensitive_sizes=(3,), numbers=2, category_sizes=(4,), shift=1.5
    )
    total = 0.0
    for value in range(4):
        chances = population.weights * population.category_chances[:, value]

        def best(t: float, chances: Any = chances) -> float:
            return float((chances * norm.pdf(t - population.means)).sum(axis=0).max())

        total += quad(best, -15, 15, limit=500, epsabs=1e-10)[0]
    assert total == pytest.approx(population.bayes.accuracy, abs=1e-7)


def test_equal_groups_have_no_gap() -> None:
    equal = GroupedClasses(shift=0.0, slope=0.0).bayes
    assert max(equal.demographic_parity_gap, equal.equalized_odds_gap) < 1e-12


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
