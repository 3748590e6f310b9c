"""Every way in which an analyst may have the rows coded, against every guarantee that a ledger may
give: what is answered without noise depends on nothing that is protected."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doors import PERSONS, SCHEMA, WHOLE, WIDE, Analyst, Refused, place_in, served

from fairveil import Additive
from fairveil.core.events import Gaussian
from fairveil.core.promise import Promise, Unit
from fairveil.curator import FeatureSums, GramMatrices, Measurement, RowCount
from fairveil.data import Encoding
from fairveil.estimators.coding import CODINGS, SchemaCoding
from fairveil.facts import Schema
from fairveil.serving.wire import View

RELATIONS = [("records", "add-remove"), ("records", "replace-one"), ("sensitive_features", None)]
SEED = "11" * 32


def steps(schema: Schema, as_feature: bool) -> str:
    encoding = Encoding(schema, as_feature)
    made = Additive(interactions=[("a", "town")]).shapes(SchemaCoding(encoding), 1500)
    return json.dumps(CODINGS.write(made))


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
                yield {**WHOLE, "sensitive_as_feature": as_feature, name: value}


def opened(one: Analyst, view: dict[str, Any], promise: Promise) -> str:
    if view.get("part") is not None:
        part = {"division": one.divide("divide-key", SEED, 0.5), "number": view["part"]}
        view = {**view, "part": part}
    return one.open(Gaussian(200.0), promise, view=view)


def told(one: Analyst, view: dict[str, Any], promise: Promise) -> list[Any]:
    """All that a run of this view answers without noise, or the error of opening it."""
    try:
        run = opened(one, view, promise)
    except Refused as refused:
        return [refused.word, re.sub(r"[0-9a-f]{32}", "", str(refused))]
    found: list[Any] = []
    for question in (RowCount(), FeatureSums(None), GramMatrices(None)):
        try:
            (answer,) = one.ask(run, Measurement(question, 0.0))
            found.append(np.asarray(answer).tolist())
        except Refused as refused:
            found.append(refused.word)
    one.act(run, "close", {})
    return found


@pytest.mark.parametrize("schema", [SCHEMA, WIDE, PERSONS], ids=["classes", "number", "persons"])
@pytest.mark.parametrize("relation", RELATIONS, ids=["add-remove", "replace-one", "groups"])
def test_what_is_free_depends_on_nothing_protected(
    schema: Schema, relation: Any, tmp_path: Path
) -> None:
    unit = None if schema.unit is None else Unit("person", 20)
    promise = Promise(1.0, 1e-6, *relation, unit=unit)
    terms = {"protects": relation[0], "neighbours": relation[1], "unit": schema.unit}
    answered, places = 0, []
    for name in ("one", "other"):  # two holders, who differ in the sex of one row
        place = place_in(tmp_path / name, epsilon=50.0, schema=schema, weights="weight", **terms)
        places.append(place)
    table = places[1].folder / "applicants.csv"
    head, first, *rest = table.read_text().splitlines()
    cells = first.split(",")
    cells[3] = {"f": "m", "m": "f"}[cells[3]]
    table.write_text("\n".join([head, ",".join(cells), *rest]) + "\n")
    with served(places[0]) as up, served(places[1]) as other:
        both = Analyst(*up), Analyst(*other)
        for view in views():
            found, same = (told(one, view, promise) for one in both)
            assert found == same, view
            answered += any(isinstance(answer, list) for answer in found)
    assert answered or not promise.rows_are_public


def test_a_protected_column_is_no_feature_whatever_the_analyst_says(tmp_path: Path) -> None:
    place = place_in(tmp_path, epsilon=1.0, protects="sensitive_features")
    promise = Promise(1.0, 1e-6, protects="sensitive_features")
    view = {**WHOLE, "sensitive_as_feature": True}
    with served(place) as up:
        with pytest.raises(Refused, match=r"\['sex'\].*sensitive_as_feature"):
            opened(Analyst(*up), view, promise)
        # records are protected: features have noise then
        opened(Analyst(*up), view, replace(promise, protects="records"))
    assert place.ledger().balance().spent <= 1.0
