"""How a table is handed in changes nothing: pandas, polars, Arrow and NumPy give one model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from configurations import CONFIGURATIONS, FEATURES, Configuration, Table, people
from observing import shown

import fairveil as fv

FRAMES: dict[str, Any] = {
    "polars": lambda table: pl.DataFrame(table),
    "arrow": lambda table: pa.table({name: pa.array(values) for name, values in table.items()}),
    "mapping": dict,
    "shuffled index": lambda table: (
        pd.DataFrame(table, index=np.random.default_rng(0).permutation(len(table["age"])))
        if "age" in table
        else pd.DataFrame(table)
    ),
    "categories": lambda table: pd.DataFrame(table).astype(
        {n: "category" for n, v in table.items() if v.dtype.kind == "U" and n in {"job", "sex"}}
    ),
}


# Every row has two kinds, every two kinds have a row: with and without a schema, of each estimator.
KINDS = [
    (CONFIGURATIONS[name], kind)
    for at, name in enumerate(CONFIGURATIONS)
    for kind in (list(FRAMES)[at % 5], list(FRAMES)[(at + 1 + at // 5 % 4) % 5])
]


@pytest.mark.parametrize(("one", "frame"), KINDS, ids=lambda one: getattr(one, "name", one))
def test_every_kind_of_table_gives_one_model(
    one: Configuration, frame: str, state: Any, table: Table
) -> None:
    row = one
    if row.name.startswith(("certify", "private-table")) and frame in {"mapping", "arrow"}:
        return  # the public rule of these rows reads frames
    assert shown(row.run(table, FRAMES[frame])) == state(row)


def test_with_a_schema_the_order_of_columns_counts_for_nothing(
    row: Configuration, fitted: Any, state: Any, table: Table
) -> None:
    if not row.schema:
        return
    turned = row.run(table, lambda t: pd.DataFrame({n: t[n] for n in reversed(t)}))
    found = shown(turned)
    assert row.statement(turned).to_json() == row.statement(fitted(row)).to_json()
    assert of_columns(found) == of_columns(state(row))


def of_columns(found: dict[str, str]) -> dict[str, str]:
    """All but the names in the order in which they came."""
    return {n: text for n, text in found.items() if "names_in_" not in n}


# Coins fall by place, networks add up in float32, and a game with public features in float64.
PLACES = (
    "batches",
    "certified",
    "persons",
    "network",
    "search",
    "certify",
    "release",
    "game-alone",
)


def test_the_order_of_rows_counts_for_nothing(
    row: Configuration, fitted: Any, state: Any, table: Table
) -> None:
    if any(word in row.name for word in PLACES):
        return
    order = np.random.default_rng(3).permutation(len(table["age"]))
    turned = row.run({name: column[order] for name, column in table.items()})
    found = shown(turned)
    assert row.statement(turned).to_json() == row.statement(fitted(row)).to_json()
    assert released(found) == released(state(row))


def released(found: dict[str, str]) -> dict[str, str]:
    wanted = (".coef_", ".intercept_", ".model_", ".mixing_", ".outcome_", ".counts")
    return {n: text for n, text in found.items() if n.startswith(wanted)}


def test_predictions_are_those_of_every_kind_of_table(
    estimator_row: Configuration, fitted: Any, table: Table
) -> None:
    clf, X = fitted(estimator_row), {name: table[name] for name in FEATURES}
    groups = estimator_row.groups(table)
    expected = decided(clf, pd.DataFrame(X), groups)
    for frame in ("polars", "arrow", "mapping"):
        assert decided(clf, FRAMES[frame](X), groups).tolist() == expected.tolist()
    half = {name: column[::2] for name, column in X.items()}
    other = {name: column[::2] for name, column in groups.items()}
    scores = getattr(clf, "decision_function", None) or getattr(clf, "predict_proba", None)
    if scores is None or "network" in estimator_row.tags:
        return
    kwargs = {"sensitive_features": groups} if reads_groups(scores) else {}
    part = {"sensitive_features": other} if reads_groups(scores) else {}
    alone = np.asarray(scores(pd.DataFrame(half), **part))
    assert alone.tobytes() == np.asarray(scores(pd.DataFrame(X), **kwargs))[::2].tobytes()


def reads_groups(method: Any) -> bool:
    return "sensitive_features" in method.__code__.co_varnames


def decided(clf: Any, X: Any, groups: Any) -> np.ndarray:
    options: dict[str, Any] = {}
    if reads_groups(clf.predict):
        options["sensitive_features"] = groups
    if "random_state" in clf.predict.__code__.co_varnames:
        options["random_state"] = 0
    return np.asarray(clf.predict(X, **options))


@pytest.mark.parametrize("way", ["store", "encoded"])
def test_a_coded_store_gives_the_model_of_the_table(
    estimator_row: Configuration, fitted: Any, state: Any, table: Table, way: str, tmp_path: Any
) -> None:
    if not estimator_row.schema or estimator_row.weights or "search" in estimator_row.tags:
        return
    source = {name: table[name] for name in estimator_row.facts.columns}
    out = tmp_path / "people.store" if way == "store" else None
    rows = fv.data.encode(source, estimator_row.facts, out)
    again = estimator_row.estimator().fit(rows)
    statement, found = estimator_row.statement, shown(again)
    assert statement(again).epsilon == statement(fitted(estimator_row)).epsilon
    assert released(found) == released(state(estimator_row))


def test_one_row_more_changes_the_model(row: Configuration, state: Any, table: Table) -> None:
    """Nothing of these checks is about a model that never looks at its rows."""
    other = people(seed=5)
    assert shown(row.run(other)) != state(row)
