"""Schemas: checked, written and read back with every type, distinguished by their fingerprints."""

from __future__ import annotations

import copy
import json
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.errors import DataNotFoundError, MissingBoundError, SchemaError
from fairveil.facts import Boolean, Category, Ignored, Number, Schema

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=8).filter(
    str.isprintable
)
VALUES = st.one_of(
    TEXTS,
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
)
FINITE = st.floats(-1e300, 1e300)


@st.composite
def columns(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["number", "category", "boolean", "ignored"]))
    if kind == "number":
        low, high = sorted(draw(st.lists(FINITE, min_size=2, max_size=2, unique=True)))
        return Number(low, high, missing=draw(st.sampled_from([None, low, high])))
    if kind == "category":
        values = draw(st.lists(VALUES, min_size=2, max_size=5, unique=True))
        options = st.sampled_from([None, *values])
        parts = draw(
            st.none() | st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values))
        )
        shares = None if parts is None else tuple(part / sum(parts) for part in parts)
        return Category(tuple(values), missing=draw(options), unknown=draw(options), shares=shares)
    if kind == "ignored":
        return Ignored()
    return Boolean(
        draw(st.sampled_from([None, True, False])),
        shares=draw(st.sampled_from([None, (0.25, 0.75)])),
    )


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    declared = draw(st.dictionaries(NAMES, columns(), min_size=1, max_size=5))
    listed = [name for name, column in declared.items() if isinstance(column, Category | Boolean)]
    target = draw(st.sampled_from([None, *listed]))
    sensitive = tuple(name for name in listed if name != target and draw(st.booleans()))
    rows = draw(st.none() | st.integers(1, 10**9))
    return Schema(
        declared,
        target,
        sensitive,
        rows,
        draw(TEXTS),
        tuple(draw(st.lists(TEXTS, max_size=3))),
        draw(TEXTS),
    )


@given(schemas())
@settings(max_examples=150, deadline=None)
def test_every_schema_survives_toml_json_pickle_and_copy(schema: Schema) -> None:
    for again in (
        Schema.from_toml(schema.to_toml()),
        Schema.from_json(schema.to_json()),
        pickle.loads(pickle.dumps(schema)),
        copy.deepcopy(schema),
    ):
        assert again == schema
        assert again.to_dict() == schema.to_dict()
        assert [type(v) for c in again.to_dict()["columns"] for v in c.get("values", [])] == [
            type(v) for c in schema.to_dict()["columns"] for v in c.get("values", [])
        ]
    assert all(name in schema.describe() for name in schema.columns)


def test_files_keep_everything_and_leave_nothing_else(tmp_path: Path) -> None:
    schema = Schema(
        {'a "quoted"\\ name': Number(0, 1), "s": Category(("x\ny", 1, 1.5, True and "t"))},
        sensitive="s",
    )
    for name in ("s.toml", "s.json"):
        schema.save(tmp_path / name)
        assert Schema.load(tmp_path / name) == schema
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.json", "s.toml"]


def test_the_fingerprint_tells_types_and_order_apart() -> None:
    def of(values: tuple[Any, ...]) -> Schema:
        return Schema({"c": Category(values)})

    assert (
        len(
            {
                of((1, 0)).fingerprint,
                of((True, False)).fingerprint,
                of((1.0, 0.0)).fingerprint,
                of(("1", "0")).fingerprint,
            }
        )
        == 4
    )
    ab, ba = Schema({"a": Boolean(), "b": Boolean()}), Schema({"b": Boolean(), "a": Boolean()})
    assert ab != ba
    assert ab.features == ("a", "b")
    assert of((np.int64(1), np.int64(0))) == of((1, 0))


def test_roles_decide_features_classes_and_cells() -> None:
    schema = Schema(
        {
            "n": Number(0, 1),
            "c": Category(("u", "v", "w")),
            "g": Boolean(),
            "y": Category((1, 2)),
            "id": Ignored(),
        },
        target="y",
        sensitive=["g"],
    )
    assert schema.features == ("n", "c")
    assert schema.classes == (1, 2)
    assert schema.cells().keys == (False, True)
    other = schema.with_roles(target="n", sensitive=["g", "c"])
    assert other.classes is None
    assert other.features == ("y",)
    assert other.cells().count == 6
    bare = schema.without("y", "g")
    assert (bare.features, bare.target, bare.sensitive) == (("n", "c"), None, ())
    with pytest.raises(SchemaError, match="'z'"):
        schema.without("z")


def test_public_shares_are_normalised_and_come_back_from_files() -> None:
    column = Category(("f", "m", "x"), shares=(0.33, 0.66, 0.02))
    assert column.shares is not None
    assert math.fsum(column.shares) == pytest.approx(1.0, abs=1e-12)
    assert Category(("f", "m"), shares=np.array([0.3, 0.7])).shares == (0.3, 0.7)
    schema = Schema(
        {"sex": column, "hired": Boolean(shares=(0.8, 0.2))}, target="hired", sensitive="sex"
    )
    assert Schema.from_json(schema.to_json()) == schema == Schema.from_toml(schema.to_toml())
    assert "about 32.7%, 65.3%, 2.0% of the rows" in schema.describe()


def test_a_schema_without_shares_is_the_file_that_it_was() -> None:
    schema = Schema(
        {"sex": Category(("f", "m")), "hired": Boolean()}, target="hired", sensitive="sex"
    )
    assert "shares" not in schema.to_json()
    assert schema.fingerprint == "995d8b01875cb49b08a7597dad8e8f27988a0b9f88704bbe2863d8208076ddb9"


GOOD = {"fairveil_schema": 1, "columns": [{"name": "a", "kind": "number", "low": 0, "high": 1}]}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Number(1, 1), "low < high"),
        (lambda: Number(0, math.inf), "finite"),
        (lambda: Number(0, True), "finite"),
        (lambda: Number(0, 1, missing=2), "between 0 and 1"),
        (lambda: Category(()), "non-empty"),
        (lambda: Category("abc"), "non-empty list"),
        (lambda: Category((1, True)), "distinct"),
        (lambda: Category((1, None)), "missing="),
        (lambda: Category((1, math.nan)), "finite"),
        (lambda: Category((1, 2), missing=3), "Add 3 to values"),
        (lambda: Category((1, 2), shares=(0.5,)), "2 numbers above 0"),
        (lambda: Category((1, 2), shares=(1.0, 0.0)), "2 numbers above 0"),
        (lambda: Category((1, 2), shares="12"), "2 numbers above 0"),
        (lambda: Category((1, 2), shares=(True, 0.5)), "2 numbers above 0"),
        (lambda: Category((1, 2), shares=(math.nan, 0.5)), "2 numbers above 0"),
        (lambda: Category((1, 2), shares=(30, 70)), "a sum of 100"),
        (lambda: Boolean(shares=(0.5, 0.6)), "a sum of 1.1"),
        (lambda: Category((1, 2**70)), "2^63"),
        (lambda: Boolean("no"), "true, false"),
        (lambda: Schema([]), "at least one column"),
        (lambda: Schema({"a": int}), "'a'"),
        (lambda: Schema({"a": Number(0, 1)}, target="b"), "'b'"),
        (lambda: Schema({"a": Number(0, 1)}, sensitive="a"), "category or boolean"),
        (lambda: Schema({"a": Boolean()}, target="a", sensitive="a"), "none of them the target"),
        (lambda: Schema({"a": Category((1,))}, target="a"), "two classes"),
        (lambda: Schema({"a": Boolean()}, rows=0), "at least 1"),
        (lambda: Schema({"a": Boolean()}, sensitive=3), "list of texts"),
        (lambda: Schema.from_dict({**GOOD, "colour": 1}), "colour"),
        (lambda: Schema.from_dict({**GOOD, "fairveil_schema": 2}), "fairveil_schema"),
        (lambda: Schema.from_dict({**GOOD, "columns": [{"name": "a", "kind": "numbr"}]}), "numbr"),
        (
            lambda: Schema.from_dict(
                {**GOOD, "columns": [{"name": "a", "kind": "boolean", "low": 1}]}
            ),
            "low",
        ),
        (lambda: Schema.from_toml("columns = ["), "TOML"),
        (lambda: Schema.from_json("{"), "JSON"),
    ],
)
def test_what_is_malformed_is_an_error_that_says_so(make: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=r"expected .*, got ") as caught:
        make()
    assert words in str(caught.value)


def test_a_bound_that_nobody_stated_has_an_error_of_its_own() -> None:
    text = json.dumps({**GOOD, "columns": [{"name": "age", "kind": "number", "low": 0}]})
    with pytest.raises(
        MissingBoundError, match=r"'age', high: expected a finite number, got None. State a bound"
    ):
        Schema.from_json(text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match="expected a schema file"):
        Schema.load(tmp_path / "none.toml")


def test_importing_facts_loads_no_heavy_library() -> None:
    code = (
        "import sys, fairveil.facts; print([m for m in ('numpy', 'pydantic', 'narwhals') if m in "
        "sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )
