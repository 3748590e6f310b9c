"""What is refused, and in which words: one table of calls. Nothing is released, nothing charged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from configurations import CONFIGURATIONS, Configuration, Table, other_rule, rule
from seam import recording

import fairveil as fv
import ways
from fairveil.data import Category, Number, Schema

# What is passed in place of the row's own, and a word of the message.
PARAMETERS: dict[str, tuple[dict[str, Any], str]] = {
    "no epsilon": ({"epsilon": 0.0}, "epsilon"),
    "negative epsilon": ({"epsilon": -1.0}, "epsilon"),
    "epsilon that is no number": ({"epsilon": float("nan")}, "epsilon"),
    "epsilon as a text": ({"epsilon": "1"}, "epsilon"),
    "delta of one": ({"delta": 1.0}, "delta"),
    "negative delta": ({"delta": -1e-9}, "delta"),
    "delta that is no number": ({"delta": float("nan")}, "delta"),
    "unknown protection": ({"protects": "rows"}, "protects"),
    "unknown relation": ({"neighbours": "swap"}, "protects"),
    "a seed that is no whole number": ({"random_state": 1.5}, "random_state"),
    "a negative seed": ({"random_state": -1}, "random_state"),
    "a ledger that is none": ({"ledger": "budget.db"}, "ledger"),
}


def refused(call: Any) -> str:
    with recording() as tape, pytest.raises(fv.errors.FairveilError) as told:
        call()
    assert not tape.entries, "refused after a release"
    return str(told.value)


@pytest.mark.parametrize("case", PARAMETERS)
def test_parameters(row: Configuration, table: Table, case: str) -> None:
    changes, word = PARAMETERS[case]
    if "neighbours" in changes and row.name.startswith("release-groups"):
        return  # they have no such parameter
    assert word in refused(lambda: row.run(table, **changes))


def test_add_remove_is_no_relation_of_sensitive_features(
    estimator_row: Configuration, table: Table
) -> None:
    words = refused(
        lambda: estimator_row.run(table, protects="sensitive_features", neighbours="add-remove")
    )
    assert "neighbours" in words or "add-remove" in words


CELLS: dict[str, tuple[str, Any, str]] = {
    "a missing number": ("age", float("nan"), "age"),
    "an infinite number": ("hours", float("inf"), "hours"),
    "an unknown word": ("job", "astronaut", "job"),
    "an unknown group": ("sex", "martian", "sex"),
    "a missing group": ("sex", None, "sex"),
}


@pytest.mark.parametrize("case", CELLS)
def test_cells(row: Configuration, table: Table, case: str) -> None:
    """What a schema does not cover, and what no fit can read, is refused before a release. The
    message names the column."""
    column, value, word = CELLS[case]
    if not row.schema and case.startswith("an unknown"):
        return  # it is read from the data, and is one more
    if row.schema and case == "an infinite number":
        return  # it is clipped to its bounds
    cells = table[column].astype(object)
    cells[7] = value
    changed = table | {column: cells.astype(float) if isinstance(value, float) else cells}
    assert word in refused(lambda: row.run(changed))


WEIGHTS: dict[str, Any] = {
    "negative": -0.5,
    "infinite": float("inf"),
    "no number": float("nan"),
}


@pytest.mark.parametrize("case", WEIGHTS)
@pytest.mark.parametrize("name", ["descent-weights", "game-weights", "objective-weights"])
def test_weights(name: str, case: str, table: Table) -> None:
    weight = table["weight"].copy()
    weight[3] = WEIGHTS[case]
    changed = table | {"weight": weight}
    assert "weight" in refused(lambda: CONFIGURATIONS[name].run(changed))
    longer = table | {"weight": np.append(table["weight"], 1.0)}
    assert "weight" in refused(lambda: CONFIGURATIONS[name].run(longer))


X, Y, A = np.zeros((6, 2)), np.array([0, 1] * 3), np.array(["f", "m", "f", "m", "m", "f"])
X[:, 0] = range(6)
FIT: dict[str, tuple[Any, str]] = {
    "a constraint without groups": (
        lambda: fv.FairClassifier("demographic_parity:0.1").fit(X, Y),
        "sensitive_features",
    ),
    "a bound above one": (
        lambda: fv.FairClassifier("demographic_parity:5").fit(X, Y, sensitive_features=A),
        "5",
    ),
    "a notion that is none": (
        lambda: fv.FairClassifier("demographic_parety:0.1").fit(X, Y, sensitive_features=A),
        "demographic_parity",
    ),
    "fewer labels than rows": (
        lambda: fv.FairClassifier().fit(X, Y[:5], sensitive_features=A),
        "5",
    ),
    "fewer groups than rows": (
        lambda: fv.FairClassifier("demographic_parity:0.1").fit(X, Y, sensitive_features=A[:5]),
        "5",
    ),
    "one class": (lambda: ways.fermi().fit(X, Y * 0, sensitive_features=A), "class"),
    "groups that repeat a public feature": (
        lambda: fv.FairClassifier("demographic_parity:0.1", protects="sensitive_features").fit(
            np.column_stack([X, A == "f"]).astype(float), Y, sensitive_features=A
        ),
        "sensitive",
    ),
    "sensitive columns as public features": (
        lambda: fv.FairClassifier(
            "demographic_parity:0.1",
            protects="sensitive_features",
            schema=Schema(sensitive_as_feature=True),
        ).fit(X, Y, sensitive_features=A),
        "sensitive_as_feature",
    ),
    "persons without a largest number": (
        lambda: fv.FairClassifier(schema=Schema(unit="who")).fit(
            {"a": X[:, 0], "who": A}, Y, sensitive_features=A
        ),
        "max_rows_per_unit",
    ),
    "persons in no column": (
        lambda: fv.FairClassifier(schema=Schema(unit="who", max_rows_per_unit=2)).fit(
            {"a": X[:, 0]}, Y, sensitive_features=A
        ),
        "who",
    ),
    "a search without privacy": (
        lambda: fv.PrivateSearchCV(
            fv.FairClassifier(), {"solver__clip": [1.0]}, epsilon=float("inf")
        ).fit(X, Y),
        "epsilon",
    ),
    "groups released under records": (
        lambda: fv.release_groups(X, Y, sensitive_features=A, protects="records"),
        "protects",
    ),
    "a schema without the target": (
        lambda: fv.FairClassifier(
            schema=Schema({"a": Number(0, 1), "s": Category(("f", "m"))}, sensitive=("s",))
        ).fit({"a": X[:, 0] / 6, "s": A}),
        "target",
    ),
    "rows coded by facts alone": (
        lambda: fv.data.encode({"a": X[:, 0]}, Schema(rows=3)),
        "one with columns",
    ),
    "a ledger of facts alone": (
        lambda: fv.Ledger.create(None, "p", 1.0, 1e-6, schema=Schema(rows=3)),
        "one with columns",
    ),
    "an audit of facts alone": (
        lambda: fv.audit.run(fv.FairClassifier(), schema=Schema(rows=3)),
        "one with columns",
    ),
}


@pytest.mark.parametrize("case", FIT)
def test_calls(case: str) -> None:
    call, word = FIT[case]
    assert word in refused(call)


@pytest.mark.parametrize("name", ["certify", "lda", "private-table"])
def test_rows_of_one_person_are_no_independent_people(name: str, table: Table) -> None:
    row = replace(CONFIGURATIONS[name], unit="person", most=2)
    assert "max_rows_per_unit" in refused(lambda: row.run(table))


def test_a_search_keeps_to_the_plan_that_was_written(tmp_path: Path, table: Table) -> None:
    row, plan = CONFIGURATIONS["lda"], tmp_path / "plan.json"
    args, kwargs = row.arguments(table)
    given = {**row.given, **kwargs, "candidates": {"older": other_rule}, "plan": plan}
    fv.lda(rule, *args, tolerance=0.1, **given)
    written = plan.read_bytes()
    assert "tolerance" in refused(lambda: fv.lda(rule, *args, tolerance=0.3, **given))
    assert plan.read_bytes() == written
