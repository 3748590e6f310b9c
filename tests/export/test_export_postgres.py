"""Models as SQL, run by PostgreSQL: the same probabilities and classes as SQLite and DuckDB, with
each step computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from export_samples import ARRAYS, MAKERS, REGRESSIONS, agree, ordinary, sample, strange
from test_export_sql import KINDS, plain

from fairveil.export import sql_query
from fairveil.export.sql_text import name_of

sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")


def answers(
    connection: Any, name: str, table: dict[str, Any], uniform: Any
) -> list[tuple[Any, Any] | None]:
    """What the query gives row by row, in the types of the classes."""
    clf = sample(name)
    columns = {**table, "uniform": uniform, "id": np.arange(len(uniform))}
    if name in ARRAYS:
        columns |= {
            "x0": table["age"],
            "x1": table["hours a week"],
            "x2": np.asarray(table["owns"], float),
        }
    # fitted without a schema: truth values are numbers, and PostgreSQL has no cast to these
    if name.startswith("table"):
        columns |= {one: np.asarray(table[one], float) for one in ("owns", "old")}
    kinds = {one: KINDS.get(one, "DOUBLE PRECISION") for one in columns} | {
        "grade": "DOUBLE PRECISION"
    }
    kinds |= dict.fromkeys(("owns", "old"), "DOUBLE PRECISION") if name.startswith("table") else {}
    cursor = connection.connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS rows")
    cursor.execute(
        f"CREATE TABLE rows ({', '.join(f'{name_of(one)} {kinds[one]}' for one in columns)})"
    )
    lines = [tuple(map(plain, line)) for line in zip(*columns.values(), strict=True)]
    cursor.executemany(f"INSERT INTO rows VALUES ({', '.join(['%s'] * len(columns))})", lines)
    cursor.execute(sql_query(clf, keep=["id"], materialized=True))
    found = sorted(cursor.fetchall())
    assert [line[0] for line in found] == list(range(len(uniform)))
    if name in REGRESSIONS:
        return [None if line[1] is None else (None, line[1]) for line in found]
    kind = type(clf.classes_.tolist()[0])
    return [None if line[1] is None else (list(line[2:]), kind(line[1])) for line in found]


@pytest.mark.parametrize("name", MAKERS)
def test_postgresql_decides_and_refuses_as_the_estimator_does(name: str, postgres_url: str) -> None:
    engine = sqlalchemy.create_engine(postgres_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        for rows in (ordinary, strange):
            table, uniform, expected = rows(name)
            agree(answers(connection, name, table, uniform), expected)
    engine.dispose()
