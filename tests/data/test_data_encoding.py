"""Encoding by the schema alone: guarantees 1-3 of `coding`, tables of any make, the way back to
units."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.data import Encoding, encode
from fairveil.errors import InputError, SchemaError
from fairveil.facts import Boolean, Category, Ignored, Number, RowSource, Schema

Same = Callable[[Any, Any], bool]


def one(table: dict[str, Any], schema: Schema, **options: Any) -> Any:
    (block,) = encode(table, schema, **options).blocks()
    return block


def test_guarantee_1_an_outlier_moves_no_other_row(
    people: dict[str, Any], schema: Schema, same_bits: Same
) -> None:
    before = one(people, schema)
    for outlier in (1e300, -1e300, math.inf):
        odd = {**{name: column.copy() for name, column in people.items()}}
        odd["age"][0] = outlier
        after = one(odd, schema)
        assert after.numbers[:, 1:].tobytes() == before.numbers[:, 1:].tobytes()
        assert after.codes.tobytes() == before.codes.tobytes()
        assert after.numbers[0, 0] == math.copysign(1.0, outlier)
    alone = [
        one({name: column[at : at + 1] for name, column in people.items()}, schema)
        for at in range(20)
    ]
    assert np.array_equal(np.hstack([block.numbers for block in alone]), before.numbers[:, :20])
    assert np.array_equal(np.hstack([block.codes for block in alone]), before.codes[:, :20])


@given(
    st.floats(-1e308, 1e308),
    st.floats(-1e308, 1e308),
    st.lists(st.floats(allow_nan=False), min_size=1),
)
@settings(max_examples=80, deadline=None)
def test_guarantee_2_a_number_is_within_one(a: float, b: float, values: list[float]) -> None:
    low, high = min(a, b), max(a, b)
    if not low < high or high / 2 - low / 2 == 0:
        return
    for precision in ("float64", "float32"):
        codes = one(
            {"x": np.array(values)}, Schema({"x": Number(low, high)}), precision=precision
        ).numbers
        assert np.all(np.abs(codes) <= 1)


def test_numbers_scale_by_their_bounds() -> None:
    block = one({"x": [20, 30, 40, 99, -math.inf]}, Schema({"x": Number(20, 40)}))
    assert block.numbers.tolist() == [[-1.0, 0.0, 1.0, 1.0, -1.0]]
    assert one(
        {"x": [Decimal("25"), 10**400, -(10**400)]}, Schema({"x": Number(20, 40)})
    ).numbers.tolist() == [[-0.5, 1.0, -1.0]]


BAD = [
    (
        {"x": [1.0, math.nan]},
        {"x": Number(0, 1)},
        ["'x'", "a missing value", "row 2", "as `missing`"],
    ),
    ({"x": [1.0, None]}, {"x": Number(0, 1)}, ["'x'", "a missing value", "row 2"]),
    (
        {"x": pd.Series([1, pd.NA], dtype="Int64")},
        {"x": Number(0, 1)},
        ["'x'", "a missing value", "row 2"],
    ),
    ({"x": [1.0, "forty"]}, {"x": Number(0, 1)}, ["'x'", "'forty'", "row 2"]),
    ({"x": np.array([1j])}, {"x": Number(0, 1)}, ["'x'", "a number"]),
    (
        {"x": ["a", "z", "z"]},
        {"x": Category(("a", "b"))},
        ["'x'", "['a', 'b']", "'z'", "2 of the 3", "row 2", "as `unknown`"],
    ),
    ({"x": ["a", None]}, {"x": Category(("a", "b"))}, ["'x'", "a missing value", "as `missing`"]),
    ({"x": ["a", ""]}, {"x": Category(("a", "b"))}, ["'x'", "a missing value"]),
    ({"x": ["1.5", "2.0"]}, {"x": Category(("1", "2"))}, ["'1.5'", "1 of the 2"]),
    ({"x": ["1", "01.0"]}, {"x": Category(("1", "01"))}, ["'01.0'", "row 2"]),
    ({"x": ["inf"]}, {"x": Category(("Infinity", "b"))}, ["'inf'"]),
    (
        {"x": [1.0, "forty"], "y": ["a", "z"]},
        {"x": Number(0, 1), "y": Category(("a", "b"))},
        ["2 things are wrong", "'forty'", "'z'", "'x'", "'y'"],
    ),
    ({"x": [1, 7]}, {"x": Category((1, 2))}, ["'x'", "7"]),
    ({"x": np.array([1.0, 2.5])}, {"x": Category((1, 2))}, ["'x'", "2.5"]),
    ({"x": [1, [2]]}, {"x": Category((1, 2))}, ["'x'", "[2]"]),
    ({"x": [True, 2]}, {"x": Boolean()}, ["'x'", "2"]),
    ({"x": ["3"]}, {"x": Category((1, 2))}, ["'x'", "'3'"]),
    ({"z": [1]}, {"x": Number(0, 1)}, ["'x'", "['z']", "Rename"]),
    ({"x": [1, 2], "y": [1]}, {"x": Number(0, 1), "y": Number(0, 1)}, ["one length"]),
]


@pytest.mark.parametrize(("table", "columns", "words"), BAD)
def test_guarantee_3_what_is_not_declared_is_an_error(
    table: Any, columns: Any, words: list[str]
) -> None:
    with pytest.raises(SchemaError, match=r"expected .*, got ") as caught:
        encode(table, Schema(columns))
    for word in words:
        assert word in str(caught.value)


def test_the_row_is_counted_over_blocks() -> None:
    with pytest.raises(SchemaError, match="first in row 8"):
        encode({"x": [0.0] * 7 + [math.nan]}, Schema({"x": Number(0, 1)}), block_rows=3)


def test_declared_codes_take_missing_and_unknown_values() -> None:
    schema = Schema(
        {
            "n": Number(0, 4, missing=1),
            "c": Category(("a", "other", "?"), missing="?", unknown="other"),
            "k": Category((1, 2, 9), missing=9, unknown=9),
            "b": Boolean(missing=False),
        },
        missing_values=("", "NA"),
    )
    block = one(
        {
            "n": [None, math.nan, "NA"],
            "c": [None, "zzz", "NA"],
            "k": np.array([math.nan, 5.0, 2.0]),
            "b": [None, 1, ""],
        },
        schema,
    )
    assert block.numbers.tolist() == [[-0.5, -0.5, -0.5]]
    assert block.codes.tolist() == [[2, 1, 2], [2, 2, 1], [0, 1, 0]]


def test_a_listed_value_wins_over_a_marker_of_missing() -> None:
    assert one({"c": ["", "x"]}, Schema({"c": Category(("x", ""))})).codes.tolist() == [[1, 0]]


def test_whole_numbers_beyond_53_bits_are_distinguished() -> None:
    big = 2**53
    schema = Schema({"c": Category((big, big + 1))})
    assert one({"c": np.array([big + 1, big], dtype=np.int64)}, schema).codes.tolist() == [[1, 0]]
    with pytest.raises(SchemaError):
        one({"c": np.array([big + 2], dtype=np.int64)}, schema)


def test_every_make_of_table_gives_the_same_bits(
    people: dict[str, Any], schema: Schema, same_bits: Same
) -> None:
    expected = encode(people, schema, block_rows=300)
    frame = pd.DataFrame(people)
    structured = np.array(
        list(zip(*people.values(), strict=True)),
        dtype=[(name, column.dtype.str) for name, column in people.items()],
    )
    matrix = np.column_stack([column.astype(object) for column in people.values()])
    tables = [
        frame,
        frame.sample(frac=1, random_state=0).sort_index(),
        frame.astype(
            {"job": "category", "sex": "category", "visits": "Int64", "member": "boolean"}
        ),
        frame.astype({"job": object}),
        pl.DataFrame(people),
        pl.DataFrame(people).with_columns(
            pl.col("job").cast(pl.Categorical), pl.col("sex").cast(pl.Enum(["m", "f"]))
        ),
        pa.table(people),
        pa.table(people).set_column(2, "job", pa.array(people["job"]).dictionary_encode()),
        structured,
        {name: column.tolist() for name, column in people.items()},
        {name: frame[name] for name in people},
    ]
    for table in tables:
        assert same_bits(encode(table, schema, block_rows=300), expected)
    assert same_bits(encode(matrix, schema, names=list(people), block_rows=300), expected)


def test_nulls_of_every_make_are_missing() -> None:
    schema = Schema(
        {
            "n": Number(0, 2, missing=0),
            "c": Category(("a", "?"), missing="?"),
            "k": Category((5, 6), missing=6),
        }
    )
    columns = {"n": [1.0, None], "c": ["a", None], "k": [5, None]}
    for table in (
        columns,
        pd.DataFrame(columns),
        pd.DataFrame(columns, dtype=object),
        pl.DataFrame(columns),
        pa.table(columns),
    ):
        block = one(table, schema)
        assert block.numbers.tolist() == [[0.0, -1.0]]
        assert block.codes.tolist() == [[0, 1], [0, 1]]
    masked = np.ma.masked_array([1.0, 9.0], mask=[False, True])
    assert one({**columns, "n": masked}, schema).numbers.tolist() == [[0.0, -1.0]]


def test_blocks_hold_the_rows_in_order(people: dict[str, Any], schema: Schema) -> None:
    whole = one(people, schema)
    rows = encode(people, schema, block_rows=333)
    assert isinstance(rows, RowSource)
    assert [block.rows for block in rows.blocks()] == [333, 333, 333, 1]
    assert np.array_equal(np.hstack([block.codes for block in rows.blocks()]), whole.codes)
    assert all(
        block.numbers.flags.c_contiguous and block.codes.flags.c_contiguous
        for block in rows.blocks()
    )
    assert "1000" not in repr(rows)


def test_roles(people: dict[str, Any], schema: Schema, same_bits: Same) -> None:
    block = one(people, schema)
    assert block.codes.dtype == np.uint8
    assert block.labels.dtype == np.int32
    assert block.sensitive.dtype == np.uint16
    assert np.array_equal(block.labels, people["hired"])
    layout = encode(people, schema, sensitive_as_feature=True).layout
    assert layout.code_sizes == (7, 3, 2, 2)
    apart = {name: column for name, column in people.items() if name not in ("hired", "sex")}
    beside = encode(
        apart, schema, target=people["hired"], sensitive={"sex": pd.Series(people["sex"])}
    )
    assert same_bits(beside, encode(people, schema))
    unlabelled = one(apart, schema, with_target=False, with_sensitive=False)
    assert unlabelled.labels is None
    assert unlabelled.sensitive is None
    regression = one(people, schema.with_roles(target="age"))
    assert regression.labels.dtype == np.float64
    assert np.abs(regression.labels).max() <= 1


def test_wide_lists_get_wider_codes() -> None:
    for size, kind in ((256, np.uint8), (257, np.uint16)):
        assert (
            one({"c": [size - 1]}, Schema({"c": Category(tuple(range(size)))})).codes.dtype == kind
        )


def test_coefficients_go_back_to_the_units_of_the_input(
    people: dict[str, Any], schema: Schema
) -> None:
    encoding = Encoding(schema)
    rng = np.random.default_rng(0)
    coefficients, intercept = rng.normal(size=encoding.layout.width), 0.3
    weights, constant = encoding.in_input_units(coefficients, intercept)
    inside = {**people, "age": np.clip(people["age"], 10, 100)}
    block = one(inside, schema)

    def score(numbers: Any, coefficients: Any, intercept: Any) -> Any:
        total, at = numbers.T @ coefficients[:1] + intercept, 1
        for codes, size in zip(block.codes, encoding.layout.code_sizes, strict=True):
            total = total + coefficients[at : at + size][codes]
            at += size
        return total

    assert np.allclose(
        score(block.numbers, coefficients, intercept),
        score(inside["age"][np.newaxis], weights, constant),
        atol=1e-12,
    )
    assert encoding.feature_names[:2] == ("age", "visits=-3")
    assert len(encoding.feature_names) == encoding.layout.width
    with pytest.raises(SchemaError, match="13 coefficients"):
        encoding.in_input_units(coefficients[:-1], intercept)


def test_an_encoding_survives_its_values_and_an_edited_one_does_not(schema: Schema) -> None:
    encoding = Encoding(
        schema.with_roles(target="age"), sensitive_as_feature=True, precision="float32"
    )
    again = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict())))
    assert again == encoding
    assert again.target is not None
    assert again.target.undo([-1, 0, 1]).tolist() == [10, 55, 100]
    text = json.dumps(encoding.to_dict())
    with pytest.raises(SchemaError, match="fingerprint"):
        Encoding.from_dict(json.loads(text.replace('"high": 100.0', '"high": 101.0')))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: encode(np.zeros((3, 2)), s),
        lambda s: encode(np.zeros((3, 2)), s, names=["a"]),
        lambda s: encode(3, s),
        lambda s: encode(pl.DataFrame({"x": [1]}).lazy(), s),
        lambda s: encode({"x": [1]}, {"x": (0, 1)}),
        lambda s: encode({"x": [1]}, s, block_rows=0),
        lambda s: encode({"x": [1]}, s, precision="float16"),
        lambda s: encode({"x": [1]}, s, target=[1]),
        lambda s: encode({"x": [1]}, s, sensitive={"z": [1]}),
        lambda s: encode({"x": np.zeros((2, 2))}, s),
    ],
)
def test_wrong_arguments_are_distinguished(call: Any) -> None:
    with pytest.raises(InputError, match=r"expected .*, got "):
        call(Schema({"x": Number(0, 1)}))


def test_undeclared_and_ignored_columns_are_not_read() -> None:
    table = pd.DataFrame({"x": [0.0], "secret": ["s"], "id": ["i"]})
    rows = encode(table, Schema({"x": Number(-1, 1), "id": Ignored()}))
    assert rows.encoding.needed() == ("x",)
    assert rows.layout.width == 1


@pytest.mark.parametrize("kind", ["i1", "u1", "i4", "u4", "i8", "u8", "?", "f4", "f8"])
def test_codes_of_numbers_are_their_places_whatever_the_type(kind: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        listed = rng.choice(
            [-5, -1, 0, 1, 2, 3, 100, 70_000, 2**31, 2.0, 0.5], rng.integers(2, 7), replace=False
        ).tolist()
        numbers = dict.fromkeys(int(one) if one == int(one) else one for one in listed)
        column = Category((*numbers, "word"), unknown="word")
        ends = np.array([0, 1, 100, 70_000, 2**53 + 1, 2**31 + 1, -1]).astype(kind)
        values = np.concatenate([rng.integers(0, 120, 100).astype(kind), ends])
        told = [
            column.values.index(value) if value in column.values else len(numbers)
            for value in values.tolist()
        ]
        assert one({"c": values}, Schema({"c": column})).codes.tolist() == [told]


WRITTEN: list[Any] = [
    [1, 2, 1],
    [1.0, 2.0, 1.0],
    ["1", "2", "1"],
    ["1.0", "2.00", "+1"],
    [1, "2.0", Decimal("1")],
    np.array([1, 2, 1], np.uint8),
    np.array([1, 2, 1], np.float32),
    pd.Series(["1.0", "2", "01"], dtype="category"),
    pa.chunked_array([["1", "2.0", "1"]]),
]


@pytest.mark.parametrize("cells", WRITTEN, ids=range(len(WRITTEN)))
@pytest.mark.parametrize("values", [(2, 1), (2.0, 1.0), ("2", "1"), ("2.0", "1.0"), ("2", 1)])
def test_numerals_are_compared_by_value_however_they_are_written(cells: Any, values: Any) -> None:
    """A file of codes, a frame that was read from it with any types, and either way of listing."""
    columns = {"c": Category(values), "n": Number(0, 2)}
    block = one({"c": cells, "n": cells}, Schema(columns))
    assert block.codes.tolist() == [[1, 0, 1]]
    assert block.numbers.tolist() == [[0.0, 1.0, 0.0]]


def test_a_value_as_it_is_listed_comes_before_one_of_the_same_worth() -> None:
    schema = Schema({"c": Category(("1", "01", 2, "2", "x"), unknown="x")})
    cells = ["01", "1", 1, "2", 2, "2.0", True]
    assert one({"c": cells}, schema).codes.tolist() == [[1, 0, 4, 3, 2, 2, 4]]
    truths = Schema({"b": Boolean(missing=False), "c": Category((False, True, "1"))})
    block = one({"b": ["TRUE", "0", "nan"], "c": ["true", "1", True]}, truths)
    assert block.codes.tolist() == [[1, 0, 0], [1, 2, 1]]


def test_of_numbers_that_are_text_the_bad_ones_are_named_and_counted() -> None:
    cells = [*("59.0", "38.0") * 50, "n/a"]
    schema = Schema({"age": Number(0, 100)})
    with pytest.raises(SchemaError) as caught:
        encode(pd.DataFrame({"age": cells}), schema)
    said = str(caught.value)
    assert "got 'n/a' (in 1 of the 101 rows looked at; first in row 101)" in said
    assert "59.0" not in said
