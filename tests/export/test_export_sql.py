"""Models as SQL, run by SQLite and DuckDB: the same probabilities and classes, and NULL for refused
rows."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from export_samples import (
    ARRAYS,
    MAKERS,
    REGRESSIONS,
    agree,
    foreign,
    foreign_moved,
    ordinary,
    people,
    sample,
    strange,
)

import fairveil as fv
from fairveil.errors import FairveilError
from fairveil.export import sql_query
from fairveil.export.reading import read
from fairveil.export.sql_text import name_of

KINDS = {
    "town": "TEXT",
    "sex": "TEXT",
    "owns": "BOOLEAN",
    "old": "BOOLEAN",
    "grade": "INTEGER",
    "id": "INTEGER",
}


def plain(value: Any) -> Any:
    """As a database holds it: no NaN."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


def asked(query: str, table: dict[str, Any], name: str = "rows") -> list[tuple[Any, ...]]:
    """The rows that a query gives, of a database of one table."""
    with closing(sqlite3.connect(":memory:")) as base:
        columns = ", ".join(f"{name_of(one)} {KINDS.get(one, 'DOUBLE PRECISION')}" for one in table)
        base.execute(f"CREATE TABLE {name_of(name)} ({columns})")
        places = ", ".join("?" * len(table))
        lines = [tuple(map(plain, line)) for line in zip(*table.values(), strict=True)]
        base.executemany(f"INSERT INTO {name_of(name)} VALUES ({places})", lines)
        return list(base.execute(query))


def asked_of_duckdb(query: str, table: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The same, of DuckDB."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    kinds = {**KINDS, "grade": "DOUBLE"}
    with duckdb.connect() as base:
        columns = ", ".join(
            f"{name_of(one)} {'BOOLEAN' if one == 'x2' else kinds.get(one, 'DOUBLE')}"
            for one in table
        )
        base.execute(f"CREATE TABLE rows ({columns})")
        lines = [tuple(map(plain, line)) for line in zip(*table.values(), strict=True)]
        base.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(table))})", lines)
        found: list[tuple[Any, ...]] = base.execute(query).fetchall()
        return found


def answers(
    name: str, table: dict[str, Any], uniform: Any, ask: Any
) -> list[tuple[Any, Any] | None]:
    """What the query gives row by row, in the types of the classes."""
    clf = sample(name)
    columns = {**table, "uniform": uniform, "id": np.arange(len(uniform))}
    if name in ARRAYS:
        columns |= {"x0": table["age"], "x1": table["hours a week"], "x2": table["owns"]}
    found = sorted(
        ask(
            sql_query(clf, keep=["id"], materialized=True if ask is asked_of_duckdb else None),
            columns,
        )
    )
    assert [line[0] for line in found] == list(range(len(uniform)))
    if name in REGRESSIONS:
        return [None if line[1] is None else (None, line[1]) for line in found]
    kind = type(clf.classes_.tolist()[0])
    return [None if line[1] is None else (list(line[2:]), kind(line[1])) for line in found]


@pytest.mark.parametrize("ask", [asked, asked_of_duckdb])
@pytest.mark.parametrize("name", MAKERS)
def test_rows_are_decided_and_refused_as_the_estimator_does(name: str, ask: Any) -> None:
    for rows in (ordinary, strange):
        table, uniform, expected = rows(name)
        agree(answers(name, table, uniform, ask), expected)


@pytest.mark.parametrize("scores", [True, False])
def test_post_processing_of_another_library_reads_its_answers_from_a_column(scores: bool) -> None:
    clf, table = foreign(scores), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.decision_function(X) if scores else clf.estimator_.predict(X)
    column = clf.model_.cells.names[0]
    columns = {
        "base_score" if scores else "base_decision": given,
        column: table["sex"],
        "uniform": np.zeros(40),
    }
    found = asked(sql_query(clf), columns)
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    assert np.abs(np.array([line[1:] for line in found]) - expected).max() < 1e-9


def test_probabilities_of_another_library_are_columns_and_are_checked() -> None:
    clf, table = foreign_moved(randomised=True), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.predict_proba(X)
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    given[0] += 1e-4
    given[1] = [1.5, -0.5, 0.0]
    columns = {
        f"base_probability[{value}]": column for value, column in zip("abc", given.T, strict=True)
    }
    columns |= {clf.model_.cells.names[0]: table["sex"], "uniform": np.zeros(40)}
    found = asked(sql_query(clf), columns)
    assert [line[0] is None for line in found] == [True] * 2 + [False] * 38
    assert np.abs(np.array([line[1:] for line in found[2:]]) - expected[2:]).max() < 1e-9


def test_long_queries_compute_each_step_once_unless_told_otherwise() -> None:
    """SQLite ended its process on this one with its steps put into one another."""
    assert "AS MATERIALIZED" in sql_query(sample("moved, three classes"))
    assert "MATERIALIZED" not in sql_query(sample("moved, three classes"), materialized=False)


def test_each_step_may_be_computed_once() -> None:
    table, _, expected = ordinary("linear")
    query = sql_query(sample("linear"), materialized=True)
    assert "AS MATERIALIZED" in query
    assert "MATERIALIZED" not in sql_query(sample("linear"))
    assert [line[0] for line in asked(query, table)] == [one[1] for one in expected if one]


def test_names_and_values_cannot_end_a_text() -> None:
    """Quotes inside of names and values are doubled: nothing after them is read as SQL."""
    table, uniform, expected = ordinary("linear")
    evil = 'r"; DROP TABLE rows; --'
    columns = {**table, evil: np.arange(len(uniform))}
    query = sql_query(sample("linear"), table=evil, keep=[evil])
    found = sorted(asked(query, columns, evil))
    assert [line[1] for line in found] == [one[1] for one in expected if one]
    assert "'so''uth'" in query


def test_columns_of_the_users_names_never_meet_the_querys() -> None:
    columns = {"fv_0": np.linspace(-1, 1, 50), "FV__1": np.linspace(1, 5, 50) ** 2}
    y = np.arange(50) % 2
    clf = fv.RateConstrainedClassifier(epsilon=float("inf")).fit(columns, y, sensitive_features=y)
    found = asked(sql_query(clf, keep=["fv_0"]), columns)
    assert np.abs(np.array([line[2:] for line in found]) - clf.predict_proba(columns)).max() < 1e-9


@pytest.mark.parametrize(
    "options",
    [
        {"table": ""},
        {"table": "a\n"},
        {"table": 3},
        {"keep": "id"},
        {"keep": [3]},
        {"keep": ["id", "id"]},
        {"keep": ["prediction"]},
        {"keep": [""]},
        {"table": "a..b"},
    ],
)
def test_bad_names_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(FairveilError):
        sql_query(sample("linear"), **options)


def test_a_uniform_number_outside_of_its_range_decides_nothing() -> None:
    table = people(4, 1)
    columns = {**table, "uniform": [1.0, -0.5, None, 0.5]}
    assert read(sample("game")).uniform
    assert [line[0] is None for line in asked(sql_query(sample("game")), columns)] == [
        True,
        True,
        True,
        False,
    ]
