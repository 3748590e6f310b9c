"""Every way in which an analyst may have the rows coded, against every guarantee that a ledger may
give: what is answered without noise depends on nothing that is protected."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import PERSONS, SCHEMA, WIDE, Place, place_in
from test_serving_runs import Analyst

from fairveil import Additive
from fairveil.core.events import Gaussian
from fairveil.core.promise import Promise, Unit
from fairveil.curator import FeatureSums, GramMatrices, Measurement, RowCount
from fairveil.data import Encoding
from fairveil.errors import FairveilError, PrivacyError
from fairveil.estimators.reading import shapes_json
from fairveil.estimators.reading.coding import SchemaCoding
from fairveil.facts import Schema
from fairveil.serving.door.data_sets import View
from fairveil.serving.door.door import Door
from fairveil.serving.door.refusals import Refusal
from fairveil.serving.wire.messages import packed, unpacked

RELATIONS = [("records", "add-remove"), ("records", "replace-one"), ("sensitive_features", None)]
SEED = "11" * 32


def steps(schema: Schema, as_feature: bool) -> str:
    encoding = Encoding(schema, as_feature)
    made = Additive(interactions=[("a", "town")]).shapes(
        SchemaCoding(encoding), encoding.layout, 1500
    )
    return json.dumps(shapes_json.to_dict(made))


FIELDS: dict[str, list[Any]] = {
    "sensitive": [None, [], ["sex"], ["town"], ["town", "sex"], ["hired"]],
    "sensitive_as_feature": [False, True],
    "steps": [None, steps(SCHEMA, False), steps(SCHEMA, True)],
    "weight_cap": [None, 2.0],
    "target_as_number": [False, True],
    "part": [None, 0, 1],
    "one_group": [False, True],
}


def test_every_field_of_a_view_is_tried() -> None:
    assert set(FIELDS) == {field.name for field in dataclasses.fields(View)}


def views() -> Iterator[dict[str, Any]]:
    """Each field by each of its values, beside sensitive columns that are features or not."""
    for as_feature in (False, True):
        for name, values in FIELDS.items():
            for value in values:
                yield {
                    "sensitive": None,
                    "sensitive_as_feature": as_feature,
                    "steps": None,
                    name: value,
                }


def opened(door: Door, view: dict[str, Any], promise: Promise) -> tuple[Analyst, str]:
    one = Analyst(door)
    if view.get("part") is not None:
        content = {"share": 0.5, "seed": SEED, "coins": "certificate"}
        reply = door.runs.divide(one.token, "applicants", "divide-key", packed(content))
        id = unpacked(reply).content["division"].text()
        view = {**view, "part": {"division": id, "part": view["part"]}}
    return one, one.open(Gaussian(200.0), promise, view=view)


def told(door: Door, view: dict[str, Any], promise: Promise) -> list[Any]:
    """All that a run of this view answers without noise, or the error of opening it."""
    try:
        one, run = opened(door, view, promise)
    except (FairveilError, Refusal) as refused:
        return [type(refused).__name__, str(refused)]
    found: list[Any] = []
    for question in (RowCount(), FeatureSums(None), GramMatrices(None)):
        try:
            (answer,) = one.ask(run, Measurement(question, 0.0))
            found.append(np.asarray(answer).tolist())
        except FairveilError as refused:
            found.append(type(refused).__name__)
    one.act(run, "close", {})
    return found


def doors_of(folder: Path, schema: Schema, **terms: Any) -> tuple[Door, Door]:
    """Two holders, who differ in the sex of one row."""
    places: list[Place] = []
    for name in ("one", "other"):
        place = place_in(folder / name, epsilon=50.0, schema=schema, weights="weight", **terms)
        if name == "other":
            table = folder / name / "applicants.csv"
            lines = table.read_text().splitlines()
            cells = lines[1].split(",")
            cells[3] = {"f": "m", "m": "f"}[cells[3]]
            table.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
        places.append(place)
    return places[0].door(), places[1].door()


@pytest.mark.parametrize("schema", [SCHEMA, WIDE, PERSONS], ids=["classes", "number", "persons"])
@pytest.mark.parametrize("relation", RELATIONS, ids=["add-remove", "replace-one", "groups"])
def test_what_is_free_depends_on_nothing_protected(
    schema: Schema, relation: Any, tmp_path: Path
) -> None:
    unit = None if schema.unit is None else Unit("person", 20)
    promise = Promise(1.0, 1e-6, *relation, unit=unit)
    terms = {"protects": relation[0], "neighbours": relation[1], "unit": schema.unit}
    one, other = doors_of(tmp_path, schema, **terms)
    answered = 0
    try:
        for view in views():
            first, second = told(one, view, promise), told(other, view, promise)
            assert first == second, view
            answered += any(isinstance(answer, list) for answer in first)
    finally:
        one.close()
        other.close()
    assert answered or not promise.rows_are_public


def test_a_protected_column_is_no_feature_whatever_the_analyst_says(tmp_path: Path) -> None:
    place = place_in(tmp_path, epsilon=1.0, protects="sensitive_features")
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    view = {"sensitive": None, "sensitive_as_feature": True, "steps": None}
    door = place.door()
    try:
        with pytest.raises(PrivacyError, match=r"\['sex'\].*sensitive_as_feature"):
            opened(door, view, promise)
        # records are protected: features have noise then
        opened(door, view, replace(promise, protects="records"))
    finally:
        door.close()
    assert place.ledger().balance().spent <= 1.0
