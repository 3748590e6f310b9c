"""Models as SQL, run by SQLite, DuckDB and PostgreSQL: the same probabilities and classes, and NULL
for refused rows. What cannot be written is refused with its reason."""

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
    labels,
    mixture,
    ordinary,
    people,
    sample,
    strange,
)

import fairveil as fv
import ways
from fairveil.errors import FairveilError, InputError
from fairveil.facts import Category, Number, Schema
from knobs import made

TRUTHS = ("owns", "old")
KINDS = {
    **dict.fromkeys(("town", "sex", "base_decision"), "TEXT"),
    **dict.fromkeys(TRUTHS, "BOOLEAN"),
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plain(value: Any) -> Any:
    """As a database holds it: no NaN."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and math.isnan(value) else value


def asked(
    query: str, table: dict[str, Any], name: str = "rows", url: str = "", **kinds: str
) -> list[Any]:
    """The rows that a query gives, in order, of a database of one table: SQLite's, DuckDB's, or at
    a URL."""
    kinds = dict.fromkeys(table, "DOUBLE PRECISION") | KINDS | kinds
    columns = ", ".join(f"{quoted(one)} {kinds[one]}" for one in table)
    lines = [tuple(map(plain, line)) for line in zip(*table.values(), strict=True)]
    places = ", ".join(["%s" if url.startswith("postgres") else "?"] * len(table))
    if url == "duckdb":
        base: Any = pytest.importorskip("duckdb").connect()
    elif url:
        base = pytest.importorskip("psycopg").connect(url)
    else:
        base = sqlite3.connect(":memory:")
    with closing(base):
        cursor = base.cursor()
        cursor.execute(f"CREATE TEMPORARY TABLE {quoted(name)} ({columns})")
        cursor.executemany(f"INSERT INTO {quoted(name)} VALUES ({places})", lines)
        cursor.execute(query)
        return sorted(cursor.fetchall())


def answers(name: str, table: dict[str, Any], uniform: Any, url: str) -> list[Any]:
    """What the query gives row by row, in the types of the classes."""
    clf, kinds = sample(name), {}
    columns = {**table, "uniform": uniform, "id": np.arange(len(uniform))}
    if name in ARRAYS:
        numbers = ("age", "hours a week", "owns")
        columns |= {f"x{k}": np.asarray(table[one], float) for k, one in enumerate(numbers)}
    if name.startswith("table") and url.startswith("postgres"):
        # fitted without a schema: truth values are numbers, and PostgreSQL has no cast to these
        columns |= {one: np.asarray(table[one], float) for one in TRUTHS}
        kinds = dict.fromkeys(TRUTHS, "DOUBLE PRECISION")
    query = fv.export.sql_query(clf, keep=["id"], materialized=bool(url) or None)
    found = asked(query, columns, url=url, **kinds)
    assert [line[0] for line in found] == list(range(len(uniform)))
    if name in REGRESSIONS:
        return [None if line[1] is None else (None, line[1]) for line in found]
    kind = type(clf.classes_.tolist()[0])
    return [None if line[1] is None else (list(line[2:]), kind(line[1])) for line in found]


@pytest.mark.parametrize(
    ("name", "base"),
    [
        (name, base)
        for at, name in enumerate(MAKERS)
        for base in ("sqlite", ("duckdb", "postgresql")[at % 2])
    ],
)
def test_rows_are_decided_and_refused_as_the_estimator_does(
    name: str, base: str, request: pytest.FixtureRequest
) -> None:
    url = {"sqlite": "", "duckdb": "duckdb"}.get(base)
    url = request.getfixturevalue("postgres_url") if url is None else url
    for rows in (ordinary, strange):
        table, uniform, expected = rows(name)
        agree(answers(name, table, uniform, url), expected)


@pytest.mark.parametrize("scores", [True, False])
def test_post_processing_of_another_library_reads_its_answers_from_a_column(scores: bool) -> None:
    clf, table = foreign(scores), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.decision_function(X) if scores else clf.estimator_.predict(X)
    group = clf.model_.cells.names[0]
    columns = {"base_score" if scores else "base_decision": given, group: table["sex"]}
    columns |= {"id": np.arange(40), "uniform": np.zeros(40)}
    found = asked(fv.export.sql_query(clf, keep=["id"]), columns, **{group: "TEXT"})
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    assert np.abs(np.array([line[2:] for line in found]) - expected).max() < 1e-9


def test_probabilities_of_another_library_are_columns_and_are_checked() -> None:
    clf, table = foreign_moved(randomised=True), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.predict_proba(X)
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    given[0] += 1e-4
    given[1] = [1.5, -0.5, 0.0]
    columns = {f"base_probability[{value}]": one for value, one in zip("abc", given.T, strict=True)}
    columns |= {clf.model_.cells.names[0]: table["sex"], "uniform": np.zeros(40)}
    found = asked(fv.export.sql_query(clf, keep=["id"]), {**columns, "id": np.arange(40)})
    assert [line[1] is None for line in found] == [True] * 2 + [False] * 38
    assert np.abs(np.array([line[2:] for line in found[2:]]) - expected[2:]).max() < 1e-9


def test_steps_are_computed_once_where_they_have_to_be_or_are_told_to() -> None:
    """SQLite ended its process on the first one with its steps put into one another."""
    long = sample("moved, three classes")
    assert "AS MATERIALIZED" in fv.export.sql_query(long)
    assert "MATERIALIZED" not in fv.export.sql_query(long, materialized=False)
    assert "MATERIALIZED" not in fv.export.sql_query(sample("linear"))
    assert "AS MATERIALIZED" in fv.export.sql_query(sample("linear"), materialized=True)


def test_names_and_values_cannot_end_a_text() -> None:
    """Quotes inside of names and values are doubled: nothing after them is read as SQL."""
    table, uniform, expected = ordinary("linear")
    evil = 'r"; DROP TABLE rows; --'
    columns = {**table, evil: np.arange(len(uniform))}
    query = fv.export.sql_query(sample("linear"), table=evil, keep=[evil])
    assert [line[1] for line in asked(query, columns, evil)] == [one[1] for one in expected if one]
    assert "'so''uth'" in query


def test_columns_of_the_users_names_never_meet_the_querys() -> None:
    columns = {"fv_0": np.linspace(-1, 1, 50), "FV__1": np.linspace(1, 5, 50) ** 2}
    y = np.arange(50) % 2
    clf = fv.FairClassifier(epsilon=float("inf")).fit(columns, y, sensitive_features=y)
    found = asked(fv.export.sql_query(clf, keep=["fv_0"]), columns)
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
        {"materialized": 1},
    ],
)
def test_bad_names_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(FairveilError):
        fv.export.sql_query(sample("linear"), **options)


def test_a_uniform_number_outside_of_its_range_decides_nothing() -> None:
    columns = {**people(4, 1), "uniform": [1.0, -0.5, None, 0.5], "id": np.arange(4)}
    found = asked(fv.export.sql_query(sample("game"), keep=["id"]), columns)
    assert [line[1] is None for line in found] == [True, True, True, False]


# Refusals


class Decides:
    """A classifier that was made elsewhere."""

    classes_ = np.array(["no", "yes"])

    def fit(self, X: Any, y: Any = None) -> Decides:
        return self

    def predict(self, X: Any) -> Any:
        return np.where(np.asarray(X)[:, 0] > 40, "yes", "no")


def network() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return fv.FairClassifier(
        model=torch.nn.Linear(2, 1), epsilon=5.0, random_state=0, solver=fv.PrimalDual(rounds=2)
    )


def of_candidates() -> Any:
    return made(
        ways.game,
        "demographic_parity:0.2",
        oracle="exponential",
        solver=fv.OracleGame(candidates=[Decides()]),
        protects="sensitive_features",
        epsilon=3.0,
        random_state=0,
        rounds=5,
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "reason"), [(network, "code of yours"), (of_candidates, "made elsewhere")]
)
def test_code_of_others_is_refused_with_its_reason(estimator: Any, reason: str) -> None:
    table = people(200)
    X = np.column_stack([table["age"], table["hours a week"]]) / 80
    clf = estimator().fit(X, labels(table), sensitive_features=table["sex"])
    for export in (fv.export.sql_query, fv.export.to_sklearn):
        with pytest.raises(InputError, match=reason):
            export(clf)


def test_what_is_no_fitted_model_of_ours_is_refused() -> None:
    for model in (None, "model", Decides(), fv.FairClassifier):
        with pytest.raises(InputError, match="estimator of Fairveil"):
            fv.export.sql_query(model)
    with pytest.raises(ValueError, match="not fitted"):
        fv.export.sql_query(fv.FairClassifier())


def test_columns_that_no_other_language_has_are_refused_where_they_are_read() -> None:
    table = people(200)
    kinds: Any = {
        "uniform": Number(0, 100),
        "sex": Category(("f", "m")),
        "y": Category(("no", "yes")),
    }
    columns = {"uniform": table["age"], "sex": table["sex"]}
    clf = fv.FairClassifier(
        schema=Schema(kinds, target="y", sensitive=("sex",)), epsilon=5.0, random_state=0
    )
    clf.fit(columns, labels(table), sensitive_features=table["sex"])
    assert '"uniform"' in fv.export.sql_query(clf)
    with pytest.raises(InputError, match="of the export's own"):
        fv.export.sql_query(mixture(clf))
    for values in (("a", 1), (1, 2**60)):
        kept = Schema({**kinds, "x": Category(values)}, target="y", sensitive=("sex",))
        clf = fv.FairClassifier(schema=kept, epsilon=5.0, random_state=0)
        columns["x"] = np.array(list(values) * 100, dtype=object)
        clf.fit(columns, labels(table), sensitive_features=table["sex"])
        with pytest.raises(InputError, match="texts"):
            fv.export.sql_query(clf)
