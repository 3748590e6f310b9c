"""Models as ONNX, run by onnxruntime: the same probabilities and classes, and a flag on the rows
that the estimator refuses."""

from __future__ import annotations

import json
from pathlib import Path
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
from fairveil.export import onnx_bytes
from fairveil.export.reading import read
from fairveil.privacy.statement.statement import PrivacyStatement

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'fairveil[export]'")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def session(model: bytes) -> Any:
    return runtime.InferenceSession(model, providers=["CPUExecutionProvider"])


def fed(made: Any, table: dict[str, Any]) -> dict[str, Any]:
    """Every input of a session, (rows, 1), in its type."""
    out = {}
    for one in made.get_inputs():
        column = np.asarray(table[one.name], dtype=object)
        kind = str if one.type == "tensor(string)" else np.float64
        out[one.name] = (
            column.astype(kind).astype(object if kind is str else kind).reshape(len(column), -1)
        )
    return out


def run(made: Any, table: dict[str, Any]) -> dict[str, Any]:
    names = [one.name for one in made.get_outputs()]
    return dict(zip(names, made.run(names, fed(made, table)), strict=True))


def answers(name: str, table: dict[str, Any], uniform: Any) -> list[tuple[Any, Any] | None]:
    """What the graph gives row by row; None where it flags the row."""
    made = session(onnx_bytes(sample(name)))
    columns = {**table, "uniform": uniform}
    if name in ARRAYS:
        columns["X"] = np.stack(
            [np.asarray(table[one], float) for one in ("age", "hours a week", "owns")], axis=1
        )
    found = run(made, columns)
    refused = found["refused"][:, 0]
    if name in REGRESSIONS:
        assert np.isnan(found["prediction"][refused]).all()
        return [
            None if lost else (None, value)
            for lost, value in zip(refused, found["prediction"][:, 0], strict=True)
        ]
    assert np.isnan(found["probabilities"][refused]).all()
    listed = zip(refused, found["probabilities"], found["label"][:, 0].tolist(), strict=True)
    return [None if lost else (law, label) for lost, law, label in listed]


@pytest.mark.parametrize("name", MAKERS)
def test_rows_are_decided_and_refused_as_the_estimator_does(name: str) -> None:
    for rows in (ordinary, strange):
        table, uniform, expected = rows(name)
        agree(answers(name, table, uniform), expected)


@pytest.mark.parametrize("name", MAKERS)
def test_inputs_are_the_columns_and_an_uniform_number_where_one_is_drawn(name: str) -> None:
    program, made = read(sample(name)), session(onnx_bytes(sample(name)))
    columns = ("X",) if name in ARRAYS else program.inputs.names
    assert {one.name for one in made.get_inputs()} == {
        *columns,
        *(("uniform",) if program.uniform else ()),
    }


def test_a_file_carries_its_statement_and_is_the_same_every_time(tmp_path: Path) -> None:
    clf = sample("linear")
    path = fv.export_onnx(clf, tmp_path / "model.onnx")
    told = {one.key: one.value for one in onnx.load(path).metadata_props}
    assert PrivacyStatement.from_json(told["fairveil.statement"]) == clf.privacy_
    assert json.loads(told["fairveil.classes"]) == clf.classes_.tolist()
    assert path.read_bytes() == onnx_bytes(clf)


@pytest.mark.parametrize("scores", [True, False])
def test_post_processing_of_another_library_takes_its_answers_as_inputs(scores: bool) -> None:
    clf, table = foreign(scores), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.decision_function(X) if scores else clf.estimator_.predict(X)
    columns = {
        "base_score" if scores else "base_decision": given,
        clf.model_.cells.names[0]: table["sex"],
        "uniform": X[:, 0] * 0,
    }
    found = run(session(onnx_bytes(clf)), columns)
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    assert np.abs(found["probabilities"] - expected).max() < 1e-9


@pytest.mark.parametrize("randomised", [True, False])
def test_probabilities_of_another_library_are_inputs_and_are_checked(randomised: bool) -> None:
    clf, table = foreign_moved(randomised=randomised), people(40, 2)
    X = np.column_stack([table["age"], table["hours a week"]])
    given = clf.estimator_.predict_proba(X)
    expected = clf.predict_proba(X, sensitive_features=table["sex"])
    given[0] += 1e-4
    given[1] = [1.5, -0.5, 0.0]
    given[2, 1] = np.nan
    columns = {
        f"base_probability[{value}]": column for value, column in zip("abc", given.T, strict=True)
    }
    columns |= {clf.model_.cells.names[0]: table["sex"]} | (
        {"uniform": np.zeros(40)} if randomised else {}
    )
    found = run(session(onnx_bytes(clf)), columns)
    assert found["refused"][:, 0].tolist() == [True] * 3 + [False] * 37
    assert np.abs(found["probabilities"] - expected)[3:].max() < 1e-9


def test_a_uniform_number_outside_of_its_range_is_refused() -> None:
    found = run(
        session(onnx_bytes(sample("game"))),
        {**people(4, 1), "uniform": [1.0, -0.5, float("nan"), 0.5]},
    )
    assert found["refused"][:, 0].tolist() == [True, True, True, False]


def test_every_operator_is_of_the_standard() -> None:
    for name in MAKERS:
        model = onnx.load_from_string(onnx_bytes(sample(name)))
        assert {node.domain for node in model.graph.node} <= {"", "ai.onnx.ml"}
        assert not any(node.op_type.startswith("Random") for node in model.graph.node)
