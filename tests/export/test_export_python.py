"""Models as Python: the same probabilities and classes, row by row, and the same rows refused; no
import but math."""

from __future__ import annotations

import ast
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

from fairveil.export import python_source
from fairveil.export.reading import read

NAMES = {"x0": "age", "x1": "hours a week", "x2": "owns"}


def loaded(source: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(source, "exported.py", "exec"), names)
    return names


def answers(name: str, table: dict[str, Any], uniform: Any) -> list[tuple[Any, Any] | None]:
    """What the file gives row by row; None where it raises."""
    made, drawn = loaded(python_source(sample(name))), read(sample(name)).uniform
    out: list[tuple[Any, Any] | None] = []
    for at, chance in enumerate(uniform):
        row = {column: values[at] for column, values in table.items()}
        row |= {x: row[column] for x, column in NAMES.items()} if name in ARRAYS else {}
        try:
            if name in REGRESSIONS:
                out.append((None, made["predict"](row)))
            else:
                decided = made["predict"](row, chance) if drawn else made["predict"](row)
                out.append((made["predict_proba"](row), decided))
        except ValueError:
            out.append(None)
    return out


@pytest.mark.parametrize("name", MAKERS)
def test_guarantee_1_and_2_rows_are_decided_and_refused_as_the_estimator_does(name: str) -> None:
    for rows in (ordinary, strange):
        table, uniform, expected = rows(name)
        assert any(one is None for one in expected) == (rows is strange)
        assert any(one is not None for one in expected)
        agree(answers(name, table, uniform), expected)


@pytest.mark.parametrize("name", MAKERS)
def test_a_file_imports_nothing_but_math(name: str) -> None:
    tree = ast.parse(python_source(sample(name)))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert [ast.unparse(node) for node in imported] == ["import math"]
    assert ast.get_docstring(tree)


def test_a_uniform_number_is_never_drawn_by_the_file() -> None:
    made = loaded(python_source(sample("game")))
    row = {column: values[0] for column, values in people(1).items()}
    with pytest.raises(TypeError):
        made["predict"](row)
    for wrong in (1.0, -0.1, float("nan"), None):
        with pytest.raises(ValueError, match="uniform"):
            made["predict"](row, wrong)


@pytest.mark.parametrize("scores", [True, False])
def test_post_processing_of_another_library_takes_its_answers_as_inputs(scores: bool) -> None:
    clf, table = foreign(scores), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    made = loaded(python_source(clf))
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    given = clf.estimator_.decision_function(X) if scores else clf.estimator_.predict(X)
    name = "base_score" if scores else "base_decision"
    column = clf.model_.cells.names[0]
    for answer, sex, law in zip(given, table["sex"], expected, strict=True):
        assert made["predict_proba"]({name: answer, column: sex}) == pytest.approx(law, abs=1e-9)


def test_probabilities_of_another_library_are_inputs_and_are_checked() -> None:
    clf, table = foreign_moved(randomised=True), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    made, column = loaded(python_source(clf)), clf.model_.cells.names[0]
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    for given, sex, law in zip(
        clf.estimator_.predict_proba(X), table["sex"], expected, strict=True
    ):
        row = {
            f"base_probability[{value}]": share for value, share in zip("abc", given, strict=True)
        } | {column: sex}
        assert made["predict_proba"](row) == pytest.approx(law, abs=1e-9)
    for wrong in (1.5, -0.1, float("nan"), None):
        with pytest.raises(ValueError, match="base_probability"):
            made["predict_proba"]({**row, "base_probability[a]": wrong})


def test_a_planted_error_would_be_found() -> None:
    """The comparison is of numbers, not of a fit with itself."""
    source = python_source(sample("linear"))
    table, uniform, expected = ordinary("linear")
    made = loaded(source.replace("math.exp((0 - ", "math.exp((0.001 - "))
    rows = [{column: values[at] for column, values in table.items()} for at in range(len(uniform))]
    found: list[Any] = [(made["predict_proba"](row), made["predict"](row)) for row in rows]
    with pytest.raises(AssertionError):
        agree(found, expected)
