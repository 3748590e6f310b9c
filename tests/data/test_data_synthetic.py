"""Synthetic data against their stated truth. Each comparison allows 5 standard errors: a false
alarm in 1.7 million cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fairveil.data import encode
from fairveil.data.synthetic import GroupedClasses, GroupedLines, ManyRows
from fairveil.errors import InputError
from fairveil.facts import RowSource

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


def test_no_other_cut_beats_the_best_classifier_and_equal_groups_have_no_gap() -> None:
    population = GroupedClasses(category_sizes=(), shift=1.0)
    best = max(population.threshold([cut]).accuracy for cut in np.linspace(-3, 3, 6001))
    assert population.bayes.accuracy == pytest.approx(best, abs=1e-6)
    equal = GroupedClasses(shift=0.0, slope=0.0).bayes
    assert max(equal.demographic_parity_gap, equal.equalized_odds_gap) < 1e-12
    one_cut = GroupedClasses(shift=1.0, slope=0.0, category_sizes=(), separation=2.0).threshold(
        [0.0]
    )
    assert one_cut.equalized_odds_gap == pytest.approx(norm.cdf(1.5) - norm.cdf(0.5), abs=1e-12)


def test_lines_have_the_stated_coefficients_and_losses() -> None:
    lines = GroupedLines(
        shares=(50, 1, 3),
        slopes=((-1.0, 2.0), (3.0, 0.0), (0.5, 0.5)),
        intercepts=(0.0, 1.0, -1.0),
        noise=(1.0, 0.5, 2.0),
    )
    rows = 108_000
    table = lines.draw(rows, 0)
    assert lines.sizes(rows) == (100_000, 2_000, 6_000)
    assert sum(lines.sizes(10)) == 10
    x = np.column_stack([table["x0"], table["x1"], np.ones(rows)])
    slopes, intercept = lines.pooled
    losses = lines.group_losses(slopes, intercept)
    for k in range(3):
        mine = table["group"] == k
        found, *_ = np.linalg.lstsq(x[mine], table["y"][mine], rcond=None)
        error = lines.noise[k] * np.sqrt(np.diag(np.linalg.inv(x[mine].T @ x[mine])))
        assert np.all(np.abs(found - [*lines.coefficients[k], lines.intercepts[k]]) <= 5 * error)
        squares = (table["y"][mine] - x[mine] @ [*slopes, intercept]) ** 2
        assert abs(squares.mean() - losses[k]) <= 5 * squares.std() / np.sqrt(mine.sum())
    block = next(encode(table, lines.schema()).blocks())
    assert np.abs(block.labels).max() < 1


def test_many_rows_are_the_same_at_each_pass_and_follow_their_model() -> None:
    many = ManyRows(rows=150_001, seed=5)
    assert isinstance(many, RowSource)
    first, again = list(many.blocks()), list(many.blocks())
    assert sum(block.rows for block in first) == 150_001
    for one, other in zip(first, again, strict=True):
        for name in ("numbers", "codes", "labels", "sensitive"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    shorter = next(ManyRows(rows=70_000, seed=5).blocks())
    assert shorter.numbers.tobytes() == first[0].numbers.tobytes()
    assert first[0].numbers.tobytes() != first[1].numbers[:, : first[0].rows].tobytes()
    residual = score_sum = 0.0
    for block in first:
        score, at = many.coefficients[:6] @ block.numbers + 0.5 * (block.sensitive[0] - 0.5), 6
        for row, size in zip(block.codes, many.code_sizes, strict=True):
            score, at = score + many.coefficients[at : at + size][row], at + size
        chance = 1 / (1 + np.exp(-score))
        residual += float(((block.labels - chance) * np.sign(score)).sum())
        score_sum += float((chance * (1 - chance)).sum())
    assert abs(residual) <= 5 * np.sqrt(score_sum)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroupedClasses(classes=1),
        lambda: GroupedClasses(sensitive_sizes=()),
        lambda: GroupedClasses(category_sizes=(1,)),
        lambda: GroupedClasses(shift=float("nan")),
        lambda: GroupedClasses().threshold([0.0, 1.0]),
        lambda: GroupedLines(shares=(1.0,)),
        lambda: GroupedLines(shares=(1.0, 0.0)),
        lambda: GroupedLines(slopes=((1.0, 2.0), 3.0)),
        lambda: ManyRows(rows=-1, seed=0),
        lambda: ManyRows(rows=1, seed=0, precision="half"),
    ],
)
def test_impossible_populations_are_refused(make: Any) -> None:
    with pytest.raises(InputError, match=r"expected .*, got "):
        make()
