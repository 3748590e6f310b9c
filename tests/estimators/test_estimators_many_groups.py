"""More groups than the rows can carry are refused: before any release, before a ledger is asked,
and with ways out."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import hostile_samples as hostile
import numpy as np
import pandas as pd
import pytest

import fairveil as fv
import ways
from fairveil import data
from fairveil.errors import InputError
from fairveil.estimators.reading import MOST_CELLS, most_groups
from fairveil.facts import Schema
from knobs import made

MAKERS = hostile.makers()
CLASSIFIERS = [name for name in MAKERS if name.endswith("Classifier")]


@pytest.mark.parametrize("name", MAKERS)
def test_a_continuous_column_is_no_column_of_groups(name: str) -> None:
    good, ledger = hostile.sample(), hostile.empty_ledger(f"continuous {name}")
    estimator = MAKERS[name](ledger=ledger)
    given = hostile.arguments(name, good) | {
        "sensitive_features": pd.Series(np.linspace(0, 1, len(good.y)), name="income")
    }
    with pytest.raises(
        InputError, match=r"'income': expected at most 24 groups.*120 distinct values.*unknown="
    ) as raised:
        estimator.fit(**given)
    assert not any(
        f"{value:.3f}"[:5] in str(raised.value) for value in np.linspace(0, 1, len(good.y))[1:-1]
    )
    assert hostile.is_unfitted(estimator)
    assert ledger.balance().spent == 0


@pytest.mark.parametrize("name", MAKERS)
def test_the_product_of_columns_counts(name: str) -> None:
    good, ledger = hostile.sample(), hostile.empty_ledger(f"product {name}")
    estimator = MAKERS[name](ledger=ledger)
    rows = np.arange(len(good.y))
    given = hostile.arguments(name, good) | {"sensitive_features": {"u": rows % 12, "v": rows % 7}}
    with pytest.raises(
        InputError,
        match=r"at most 24 groups, which is what 120 rows can carry, got 84 \('u': 12, 'v': 7\)",
    ):
        estimator.fit(**given)
    assert hostile.is_unfitted(estimator)
    assert ledger.balance().spent == 0


def test_groups_by_column_are_added_and_not_multiplied() -> None:
    good = hostile.sample()
    rows = np.arange(len(good.y))
    columns = {"u": rows % 12, "v": rows % 7}
    notion = fv.DemographicParity(max_gap=0.9, groups="marginal")
    clf = fv.FairClassifier(
        notion, epsilon=1.0, schema=Schema(rows=120), solver=fv.PrimalDual(rounds=2), random_state=0
    )
    assert len(clf.fit(good.X, good.y, sensitive_features=columns).groups_) == 19
    with pytest.raises(InputError, match="groups='marginal'"):
        clf.set_params(constraints=fv.DemographicParity(max_gap=0.9)).fit(
            good.X, good.y, sensitive_features=columns
        )


def test_how_many_groups_rows_carry() -> None:
    assert [most_groups(rows) for rows in (0, 1, 80, 85, 5000, 10**9)] == [
        16,
        16,
        16,
        17,
        1000,
        1000,
    ]
    good = hostile.sample()
    for groups, is_good in ((24, True), (25, False)):
        solver = fv.Tailored(rounds=2)
        clf = ways.tailored(epsilon=1.0, public_rows=120, solver=solver, random_state=0)
        A = np.arange(120) % groups
        fit = partial(clf.fit, good.X, good.y, sensitive_features=A)
        assert (hostile.attempt(fit).error is None) is is_good


def declared(values: list[str], **options: Any) -> data.Schema:
    columns = {
        "a": data.Number(-1, 1),
        "job": data.Category(values, **options),
        "y": data.Category((0, 1)),
    }
    return data.Schema(columns, target="y", sensitive="job", rows=120)


def test_what_a_schema_states_is_held_against_a_constant_alone() -> None:
    """So that neither a fit nor its refusal tells how many rows there are."""
    jobs = [f"job {at}" for at in range(MOST_CELLS + 1)]
    for rows in (40, 120):
        table = {"a": np.zeros(rows), "job": jobs[:rows], "y": [0, 1] * (rows // 2)}
        options: dict[str, Any] = {"epsilon": 1.0, "rounds": 2, "random_state": 0}
        clf = made(ways.tailored, schema=declared(jobs[:200]), **options).fit(table)
        assert len(clf.groups_) == 200
        with pytest.raises(
            InputError, match=r"at most 1,000 groups, whoever states them, got 1,001"
        ) as raised:
            made(ways.tailored, schema=declared(jobs), **options).fit(table)
        assert str(rows) not in str(raised.value)


def test_rare_values_are_merged_into_a_declared_one() -> None:
    jobs = ["clerk", "nurse", *(f"rare {at}" for at in range(80))]
    table = {"a": np.linspace(-1, 1, 120), "job": [*jobs, *["clerk"] * 38], "y": [0, 1] * 60}
    schema = declared(["clerk", "nurse", "other"], unknown="other")
    clf = ways.tailored(
        schema=schema, epsilon=1.0, solver=fv.Tailored(rounds=2), random_state=0
    ).fit(table)
    assert clf.groups_ == ("clerk", "nurse", "other")
    block = next(data.encode(table, schema).blocks())
    assert block.sensitive is not None
    assert np.bincount(block.sensitive[0]).tolist() == [39, 1, 80]


def test_pairs_of_groups_that_grow_with_their_square_are_refused() -> None:
    groups = np.arange(5000) % 400
    X, y = np.zeros((5000, 1)), np.arange(5000) % 2
    with pytest.raises(
        InputError,
        match=r"100,000 comparisons of groups, got 159,600 of 400 groups\. compare='rest'",
    ):
        fv.FairClassifier(fv.DemographicParity(0.05), schema=Schema(rows=5000)).fit(
            X, y, sensitive_features=groups
        )
    fv.FairClassifier(
        fv.DemographicParity(0.9, compare="rest"),
        schema=Schema(rows=5000),
        solver=fv.PrimalDual(rounds=1),
        random_state=0,
    ).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("groups", [np.arange(100_000), np.linspace(0, 1, 100_000)])
def test_measures_refuse_what_no_table_can_show(groups: Any) -> None:
    y = np.arange(100_000) % 2
    for measure in (fv.group_table, fv.demographic_parity_gap, fv.equalized_odds_gap):
        with pytest.raises(
            InputError,
            match=r"sensitive_features: expected at most 10,000 groups, got 100,000.*ranges",
        ):
            measure(y, y, groups)
    with pytest.raises(
        InputError,
        match=r"at most 10,000 groups, got 40,000 .*'u': 200, 'v': 200.*groups='marginal'",
    ):
        fv.group_table(y, y, {"u": np.arange(100_000) % 200, "v": np.arange(100_000) // 500})


def test_a_frontier_refuses_before_it_trains() -> None:
    good = hostile.sample()
    with pytest.raises(InputError, match=r"at most 24 groups"):
        fv.frontier(good.X, good.y, sensitive_features=np.arange(120), epsilons=[1.0], gaps=[0.1])


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("kind", [int, float, str])
def test_a_number_is_no_target_of_a_classifier_unless_a_schema_lists_it(
    name: str, kind: type
) -> None:
    good, ledger = hostile.sample(), hostile.empty_ledger(f"hours {name} {kind}")
    estimator = MAKERS[name](ledger=ledger)
    hours = [kind(value) for value in 1000 + np.arange(len(good.y)) % 21]
    with pytest.raises(
        InputError, match=r"a schema that lists the classes, or at most 20 distinct.*not covered"
    ) as raised:
        estimator.fit(**hostile.arguments(name, good) | {"y": np.array(hours)})
    assert not {"21", "1000", "1020"} & set(re.findall("[0-9]+", str(raised.value)))
    assert hostile.is_unfitted(estimator)
    assert ledger.balance().spent == 0


def test_twenty_numbers_and_more_words_are_classes() -> None:
    good = hostile.sample()
    for labels in (np.arange(120) % 20, np.array([f"grade {at % 24}" for at in range(120)])):
        clf = fv.FairClassifier(
            epsilon=1.0, schema=Schema(rows=120), solver=fv.PrimalDual(rounds=2), random_state=0
        )
        assert len(clf.fit(good.X, labels).classes_) == len(set(labels.tolist()))


def test_classes_of_a_schema_are_as_many_as_it_lists() -> None:
    good = hostile.sample()
    columns = {**{name: data.Number(-5, 5) for name in "ab"}, "y": data.Category(tuple(range(21)))}
    clf = fv.FairClassifier(
        schema=data.Schema(columns, target="y"), solver=fv.PrimalDual(rounds=2), random_state=0
    )
    assert len(clf.fit(good.X[:, :2], np.arange(120) % 21).classes_) == 21
