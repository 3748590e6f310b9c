"""Hostile inputs, each by a name: what people pass by mistake, and what must never become a wrong
result in silence.

A case is a place ("X", "y", "sensitive_features", "sample_weight", "option") and a function of a
good sample that gives what stands there instead. `FITS` lists those that are good after all. Used
by the tests, and at length by `benchmarks/hostile_inputs.py`.
"""

from __future__ import annotations

import contextlib
import decimal
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse
from sklearn.linear_model import LogisticRegression

import fairveil as fv
import ways
from fairveil.errors import FairveilError
from fairveil.ledger import Ledger
from knobs import made

ROWS = 120
Change = Callable[[Any], Any]
REGRESSORS = ("GroupObjectiveRegressor", "TailoredRegressor")


@dataclass(frozen=True)
class Sample:
    """A good table: two numbers, labels, targets, groups."""

    X: Any
    y: Any
    target: Any
    groups: Any


def sample(rows: int = ROWS) -> Sample:
    """Seeded."""
    rng = np.random.default_rng(8)
    X = np.clip(rng.normal(size=(rows, 2)), -1, 1)
    return Sample(
        X,
        (X[:, 0] + 0.3 * rng.normal(size=rows) > 0).astype(int),
        X[:, 0] / 2,
        rng.choice(["a", "b"], rows),
    )


def _base() -> Any:
    good = sample()
    return LogisticRegression().fit(good.X, good.y)


def makers() -> dict[str, Callable[..., Any]]:
    """All eight estimators, private, with as little work as they can do."""
    common: dict[str, Any] = {"epsilon": 1.0, "public_rows": ROWS, "random_state": 0}
    gap = fv.DemographicParity(max_gap=0.9)
    return {
        "FairClassifier": lambda **o: made(fv.FairClassifier, gap, **{**common, "rounds": 3, **o}),
        "FermiClassifier": lambda **o: made(ways.fermi, **{**common, "rounds": 3, **o}),
        "OracleGameClassifier": lambda **o: made(ways.game, gap, **{**common, "rounds": 3, **o}),
        "GroupObjectiveClassifier": lambda **o: made(
            ways.objective, **{**common, "rounds": 3, **o}
        ),
        "GroupObjectiveRegressor": lambda **o: made(
            ways.objective_regression, **{**common, "target_bounds": (-1, 1), **o}
        ),
        "TailoredClassifier": lambda **o: made(ways.tailored, **{**common, "rounds": 3, **o}),
        "TailoredRegressor": lambda **o: made(
            ways.tailored_regression, **{**common, "target_bounds": (-1, 1), **o}
        ),
        "FairPostProcessor": lambda **o: made(
            fv.FairPostProcessor, _base(), gap, **{**common, "public_base": True, **o}
        ),
    }


class Odd:
    """An object of no kind that a table could hold."""


def _cells(value: Any, *, at: int = 3) -> Change:
    """X with one cell replaced."""

    def change(X: Any) -> Any:
        out = X.astype(object) if not isinstance(value, float) else X.copy()
        out[at, 0] = value
        return out

    return change


def _entry(value: Any, *, at: int = 3) -> Change:
    """A column with one entry replaced."""

    def change(y: Any) -> Any:
        out = (
            np.array(y, dtype=object)
            if not isinstance(value, float)
            else np.array(y, dtype=np.float64)
        )
        out[at] = value
        return out

    return change


def _frame(of: Callable[[Any], Any], column: str = "b") -> Change:
    """X as a pandas table, with a column of another kind."""

    def change(X: Any) -> Any:
        frame = pd.DataFrame(X, columns=["a", "b"])
        return frame.assign(**{column: of(frame["b"])})

    return change


def _polars(kind: Any, of: Callable[[Any], list[Any]]) -> Change:
    return lambda X: pl.DataFrame({"a": X[:, 0], "b": pl.Series(of(X[:, 1].tolist()), dtype=kind)})


def _arrow(kind: Any, of: Callable[[Any], list[Any]]) -> Change:
    return lambda X: pa.table(
        {"a": X[:, 0], "b": pa.chunked_array([pa.array(of(X[:, 1].tolist()), kind)])}
    )


def _dates(rows: int, missing: bool) -> Any:
    days = np.datetime64("2020-01-01") + np.arange(rows)
    if missing:
        days[1] = np.datetime64("NaT")
    return days


def _with_mask(values: Any) -> Any:
    mask = np.zeros(np.shape(values), bool)
    mask.flat[3] = True
    return np.ma.array(values, mask=mask)


def _with_names(names: list[Any]) -> Change:
    return lambda X: pd.DataFrame(X, columns=names)


def _matrix(values: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(values)


class Unreadable:
    """What raises when it is looked at."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("a disk that went away")


BAD_X: dict[str, Change] = {
    "None": lambda X: None,
    "a text": lambda X: "table",
    "a number": lambda X: 3.0,
    "a 0-d array": lambda X: np.array(1.0),
    "one axis": lambda X: X[:, 0],
    "three axes": lambda X: X[:, :, np.newaxis],
    "a set": lambda X: {1.0, 2.0},
    "a list of sets": lambda X: [{1.0}] * len(X),
    "a generator": lambda X: (row for row in X),
    "an iterator": lambda X: iter(X.tolist()),
    "a map": lambda X: map(list, X),
    "a dict of scalars": lambda X: {"a": 1.0, "b": 2.0},
    "a dict of ragged columns": lambda X: {"a": X[:, 0], "b": X[:5, 1]},
    "a dict of matrices": lambda X: {"a": X, "b": X},
    "a dict of generators": lambda X: {"a": (x for x in X[:, 0])},
    "an empty dict": lambda X: {},
    "an empty list": lambda X: [],
    "a list of empty lists": lambda X: [[] for _ in X],
    "ragged lists": lambda X: [*X[1:].tolist(), [1.0]],
    "nested lists of depth 3": lambda X: [[[value] for value in row] for row in X.tolist()],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "a frame of no rows": lambda X: pd.DataFrame(X[:0], columns=["a", "b"]),
    "a frame of no columns": lambda X: pd.DataFrame(index=range(len(X))),
    "one row": lambda X: X[:1],
    "a row too few": lambda X: X[:-1],
    "NaN": _cells(float("nan")),
    "inf": _cells(float("inf")),
    "-inf": _cells(float("-inf")),
    "1e400 as a text": _cells("1e400"),
    "None in a cell": _cells(None),
    "NA in a cell": _cells(pd.NA),
    "NaT in a cell": _cells(pd.NaT),
    "an object in a cell": _cells(Odd()),
    "a list in a cell": _cells([1.0]),
    "a dict in a cell": _cells({}),
    "complex": lambda X: X.astype(complex) * 1j,
    "a complex cell": _cells(1j),
    "bytes": lambda X: np.full(X.shape, b"x"),
    "bytes in a frame": _frame(lambda column: [b"x", b"y"] * (len(column) // 2)),
    "raw bytes": lambda X: np.full(X.shape, b"xy").astype("V2"),
    "structured, a date field": lambda X: np.zeros(len(X), [("a", "f8"), ("b", "M8[D]")]),
    "structured, a matrix field": lambda X: np.zeros(len(X), [("a", "f8", (2,))]),
    "datetime64": lambda X: np.stack([_dates(len(X), False)] * 2, axis=1),
    "datetime64 with NaT": lambda X: np.stack([_dates(len(X), True)] * 2, axis=1),
    "timedelta64": lambda X: np.stack(
        [_dates(len(X), False) - np.datetime64("2020-01-01")] * 2, axis=1
    ),
    "timedelta64 with NaT": lambda X: np.stack(
        [_dates(len(X), True) - np.datetime64("2020-01-01")] * 2, axis=1
    ),
    "a frame with datetime64": _frame(lambda column: _dates(len(column), False)),
    "a frame with NaT": _frame(lambda column: _dates(len(column), True)),
    "a frame with zones": _frame(
        lambda column: pd.date_range("2020", periods=len(column), tz="UTC")
    ),
    "a frame with timedelta64": _frame(
        lambda column: pd.to_timedelta(np.arange(len(column)), unit="D")
    ),
    "a frame with periods": _frame(
        lambda column: pd.period_range("2020", periods=len(column), freq="D")
    ),
    "a frame with intervals": _frame(lambda column: pd.cut(column, [-2, 0, 2])),
    "a frame with complex": _frame(lambda column: column.to_numpy() * 1j),
    "a dict with datetime64": lambda X: {"a": X[:, 0], "b": _dates(len(X), True)},
    "a dict with a masked column": lambda X: {"a": X[:, 0], "b": _with_mask(X[:, 1])},
    "a list of dates": lambda X: [[day, day] for day in pd.date_range("2020", periods=len(X))],
    "masked": lambda X: _with_mask(X),
    "masked whole numbers": lambda X: _with_mask((X * 9).astype(int)),
    "a masked list of rows": lambda X: [
        _with_mask(row) if at == 4 else row for at, row in enumerate(np.tile(X, 2))
    ],
    "Int64 with NA": _frame(lambda column: pd.array([None, *range(1, len(column))], dtype="Int64")),
    "Float64 with NA": _frame(lambda column: pd.array([None, *column[1:]], dtype="Float64")),
    "boolean with NA": _frame(
        lambda column: pd.array([None, *([True] * (len(column) - 1))], dtype="boolean")
    ),
    "a category with NaN": _frame(
        lambda column: pd.Categorical([None, *(["u"] * (len(column) - 1))], ["u", "v"])
    ),
    "strings with NA": _frame(
        lambda column: pd.array([None, *(["u"] * (len(column) - 1))], dtype="string")
    ),
    "arrow timestamps": _frame(
        lambda column: pd.array(
            list(pd.date_range("2020", periods=len(column))),
            dtype=pd.ArrowDtype(pa.timestamp("us")),
        )
    ),
    "arrow durations": _frame(
        lambda column: pd.array(
            list(pd.to_timedelta(np.arange(len(column)), unit="D")),
            dtype=pd.ArrowDtype(pa.duration("us")),
        )
    ),
    "arrow doubles with null": _frame(
        lambda column: pd.array([None, *column[1:]], dtype=pd.ArrowDtype(pa.float64()))
    ),
    "polars Datetime": _polars(
        pl.Datetime, lambda column: list(pd.date_range("2020", periods=len(column)))
    ),
    "polars Duration": _polars(pl.Duration, lambda column: [pd.Timedelta(days=1)] * len(column)),
    "polars List": _polars(pl.List(pl.Float64), lambda column: [[value] for value in column]),
    "polars Struct": _polars(
        pl.Struct({"u": pl.Float64}), lambda column: [{"u": value} for value in column]
    ),
    "polars Array": _polars(
        pl.Array(pl.Float64, 2), lambda column: [[value, value] for value in column]
    ),
    "polars Null": _polars(pl.Null, lambda column: [None] * len(column)),
    "polars Object": lambda X: pl.DataFrame(
        {"a": X[:, 0], "b": pl.Series([Odd() for _ in X], dtype=pl.Object)}
    ),
    "polars null": _polars(pl.Float64, lambda column: [None, *column[1:]]),
    "polars NaN": _polars(pl.Float64, lambda column: [float("nan"), *column[1:]]),
    "polars Binary": _polars(pl.Binary, lambda column: [b"x"] * len(column)),
    "a lazy polars table": lambda X: pl.LazyFrame({"a": X[:, 0], "b": X[:, 1]}),
    "arrow list": _arrow(pa.list_(pa.float64()), lambda column: [[value] for value in column]),
    "arrow struct": _arrow(
        pa.struct([("u", pa.float64())]), lambda column: [{"u": value} for value in column]
    ),
    "arrow timestamp": _arrow(
        pa.timestamp("us"), lambda column: list(pd.date_range("2020", periods=len(column)))
    ),
    "arrow duration": _arrow(pa.duration("us"), lambda column: list(range(len(column)))),
    "arrow date": _arrow(pa.date32(), lambda column: list(range(len(column)))),
    "arrow time": _arrow(pa.time64("us"), lambda column: list(range(len(column)))),
    "arrow null": _arrow(pa.null(), lambda column: [None] * len(column)),
    "arrow binary": _arrow(pa.binary(), lambda column: [b"x"] * len(column)),
    "arrow with a null": _arrow(pa.float64(), lambda column: [None, *column[1:]]),
    "a pyarrow array": lambda X: pa.array(X[:, 0].tolist()),
    "a series": lambda X: pd.Series(X[:, 0]),
    "a polars series": lambda X: pl.Series(X[:, 0]),
    "names twice": _with_names(["a", "a"]),
    "numbers as names twice": _with_names([1, 1]),
    "numbers and texts as names": _with_names([0, "b"]),
    "names that are one as texts": _with_names([1, "1"]),
    "a lone surrogate in a name": lambda X: {"a\ud800": X[:, 0], "b": X[:, 1]},
    "sparse COO with NaN": lambda X: sparse.coo_array(_cells(float("nan"))(X)),
    "sparse, three axes": lambda X: sparse.coo_array(X[:, :, np.newaxis]),
    "sparse complex": lambda X: sparse.csr_array(X * 1j),
    "sparse of no columns": lambda X: sparse.csr_array((len(X), 0)),
    "a number beyond a float": lambda X: [[10**400, 1.0], *X[1:].tolist()],
    "what cannot be read": lambda X: Unreadable(),
    "a type": lambda X: np.ndarray,
    "a function": lambda X: len,
    "a long double beyond a float": lambda X: np.where(
        np.arange(2) == 0, np.longdouble("1e4000"), X.astype(np.longdouble)
    ),
}

GOOD_X: dict[str, Change] = {
    "whole numbers": lambda X: (X * 9).astype(np.int8),
    "truth values": lambda X: X > 0,
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "big-endian": lambda X: X.astype(">f8"),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "a list of lists": lambda X: X.tolist(),
    "a list of arrays": lambda X: list(X),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "objects that are numbers": lambda X: X.astype(object),
    "objects that are decimals": lambda X: np.array(
        [[decimal.Decimal(str(v)) for v in row] for row in X.tolist()], object
    ),
    "words beside numbers": lambda X: np.column_stack(
        [X[:, 0].astype(object), np.where(X[:, 1] > 0, "u", "v")]
    ),
    "a mask without a masked cell": lambda X: np.ma.array(X, mask=np.zeros(X.shape, bool)),
    "a frame": _with_names(["a", "b"]),
    "a control character in a name": _with_names(["a\n\x1b[31m", "b"]),
    "whole numbers as names": _with_names([0, 1]),
    "Int64": _frame(lambda column: pd.array(range(len(column)), dtype="Int64")),
    "boolean": _frame(lambda column: pd.array([True, False] * (len(column) // 2), dtype="boolean")),
    "a category with levels that do not occur": _frame(
        lambda column: pd.Categorical(["u", "v"] * (len(column) // 2), ["u", "v", "w"])
    ),
    "a pandas sparse column": _frame(lambda column: pd.arrays.SparseArray(column)),
    "arrow strings": _frame(
        lambda column: pd.array(["u", "v"] * (len(column) // 2), dtype=pd.ArrowDtype(pa.string()))
    ),
    "arrow doubles": _frame(
        lambda column: pd.array(list(column), dtype=pd.ArrowDtype(pa.float64()))
    ),
    "arrow decimals": _arrow(
        pa.decimal128(10, 4), lambda column: [decimal.Decimal(f"{value:.4f}") for value in column]
    ),
    "polars decimals": _polars(
        pl.Decimal(10, 4), lambda column: [decimal.Decimal(f"{value:.4f}") for value in column]
    ),
    "polars": lambda X: pl.DataFrame({"a": X[:, 0], "b": X[:, 1]}),
    "polars words": _polars(pl.Categorical, lambda column: ["u", "v"] * (len(column) // 2)),
    "arrow": lambda X: pa.table({"a": X[:, 0], "b": X[:, 1]}),
    "arrow dictionary": lambda X: pa.table(
        {"a": X[:, 0], "b": pa.array(["u", "v"] * (len(X) // 2)).dictionary_encode()}
    ),
    "a dict of lists": lambda X: {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()},
    "a dict of series": lambda X: {"a": pd.Series(X[:, 0]), "b": pl.Series(X[:, 1])},
    "structured": lambda X: np.array(list(map(tuple, X)), [("a", "f8"), ("b", "f8")]),
    "one column": lambda X: X[:, :1],
    "sparse": lambda X: sparse.csr_array(X),
    "sparse COO": lambda X: sparse.coo_array(X),
    "sparse DOK": lambda X: sparse.dok_array(X),
    "a sparse matrix": lambda X: sparse.csc_matrix(X),
}

BAD_Y: dict[str, Change] = {
    "None": lambda y: None,
    "a text": lambda y: "labels",
    "a number": lambda y: 1,
    "a 0-d array": lambda y: np.array(1),
    "two columns": lambda y: np.stack([y, y], axis=1),
    "three axes": lambda y: np.asarray(y)[:, np.newaxis, np.newaxis],
    "a frame of two columns": lambda y: pd.DataFrame({"u": y, "v": y}),
    "too short": lambda y: y[:-1],
    "too long": lambda y: [*y, y[0]],
    "empty": lambda y: y[:0],
    "a generator": lambda y: (value for value in y),
    "an iterator": lambda y: iter(y.tolist()),
    "a set": lambda y: set(y.tolist()),
    "a dict": lambda y: dict(enumerate(y.tolist())),
    "a dict of a scalar": lambda y: {"y": 1},
    "ragged": lambda y: [[1], [1, 2], *y[2:].tolist()],
    "a missing one": _entry(None),
    "NaN": _entry(float("nan")),
    "inf": _entry(float("inf")),
    "NA": _entry(pd.NA),
    "NaT": _entry(pd.NaT),
    "a list in an entry": _entry([1]),
    "a dict in an entry": _entry({}),
    "an object in an entry": _entry(Odd()),
    "a complex entry": _entry(1j),
    "masked": lambda y: _with_mask(y),
    "a series of masked": lambda y: {"y": _with_mask(y)},
    "complex": lambda y: np.asarray(y) + 1j,
    "datetime64": lambda y: _dates(len(y), False),
    "datetime64 with NaT": lambda y: _dates(len(y), True),
    "timedelta64": lambda y: _dates(len(y), False) - np.datetime64("2020-01-01"),
    "periods": lambda y: pd.Series(pd.period_range("2020", periods=len(y), freq="D")),
    "raw bytes": lambda y: np.full(len(y), b"xy").astype("V2"),
    "structured": lambda y: np.zeros(len(y), [("y", "i8")]),
    "Int64 with NA": lambda y: pd.array([None, *range(1, len(y))], dtype="Int64"),
    "a category with NaN": lambda y: pd.Categorical([None, *(["u", "v"] * len(y))[: len(y) - 1]]),
    "polars null": lambda y: pl.Series([None, *y.tolist()[1:]]),
    "polars List": lambda y: pl.Series([[value] for value in y.tolist()]),
    "arrow null": lambda y: pa.array([None, *y.tolist()[1:]]),
    "arrow struct": lambda y: pa.array([{"u": value} for value in y.tolist()]),
    "what cannot be read": lambda y: Unreadable(),
    "a type": lambda y: int,
}

BAD_CLASSES: dict[str, Change] = {
    "one class": lambda y: np.zeros(len(y), int),
    "fractions": lambda y: np.linspace(0, 1, len(y)),
    "as many classes as rows": lambda y: np.arange(len(y)),
    "as many words as rows": lambda y: np.array([f"c{at}" for at in range(len(y))]),
    "bytes": lambda y: np.where(np.asarray(y) > 0, b"u", b"v"),
    "tuples": lambda y: np.array([*((int(v),) for v in y), None], dtype=object)[:-1],
}

BAD_TARGETS: dict[str, Change] = {
    "words": lambda y: np.where(np.asarray(y) > 0, "u", "v"),
    "bytes": lambda y: np.where(np.asarray(y) > 0, b"1", b"2"),
    "numbers as texts": lambda y: np.asarray(y).astype(str),
    "a long double beyond a float": lambda y: np.where(
        np.arange(len(y)) == 1, np.longdouble("1e4000"), 0
    ),
    "a whole number beyond a float": _entry(10**400),
}

BAD_GROUPS: dict[str, Change] = {
    "a name of an array's column": lambda g: "sex",
    "an empty name": lambda g: "",
    "names of an array's columns": lambda g: ["sex", "race"],
    "an empty list": lambda g: [],
    "an empty dict": lambda g: {},
    "an empty tuple": lambda g: (),
    "a number": lambda g: 1,
    "a 0-d array": lambda g: np.array("a"),
    "three axes": lambda g: np.asarray(g)[:, np.newaxis, np.newaxis],
    "no columns": lambda g: np.empty((len(g), 0)),
    "too short": lambda g: g[:-1],
    "too long": lambda g: [*g, "a"],
    "a generator": lambda g: (value for value in g),
    "an iterator": lambda g: iter(g.tolist()),
    "a set": lambda g: set(g.tolist()),
    "a dict of scalars": lambda g: {"sex": "a"},
    "a dict of ragged columns": lambda g: {"sex": g, "race": g[:-1]},
    "ragged columns": lambda g: [g, g[:-1]],
    "a missing one": _entry(None),
    "NA": _entry(pd.NA),
    "NaT": _entry(pd.NaT),
    "NaN": lambda g: _entry(float("nan"))((np.asarray(g) == "a").astype(float)),
    "inf": lambda g: _entry(float("inf"))((np.asarray(g) == "a").astype(float)),
    "a list in an entry": _entry(["a"]),
    "a dict in an entry": _entry({}),
    "an object in an entry": _entry(Odd()),
    "masked": lambda g: _with_mask(g),
    "a dict with a masked column": lambda g: {"sex": _with_mask(g)},
    "complex": lambda g: (np.asarray(g) == "a") * 1j,
    "bytes": lambda g: np.asarray(g).astype("S1"),
    "raw bytes": lambda g: np.full(len(g), b"xy").astype("V2"),
    "datetime64": lambda g: np.where(np.asarray(g) == "a", *_dates(2, False)),
    "datetime64 with NaT": lambda g: np.where(np.asarray(g) == "a", *_dates(2, True)),
    "timedelta64": lambda g: np.where(np.asarray(g) == "a", *np.array([1, 2], "m8[D]")),
    "continuous": lambda g: np.linspace(0, 1, len(g)),
    "as many words as rows": lambda g: np.array([f"g{at}" for at in range(len(g))]),
    "two columns of many values": lambda g: {
        "u": np.arange(len(g)) % 40,
        "v": np.arange(len(g)) // 3,
    },
    "periods": lambda g: pd.Series(
        pd.period_range("2020", periods=2, freq="D").take((np.asarray(g) == "a").astype(int))
    ),
    "a category with NaN": lambda g: pd.Categorical([None, *np.asarray(g)[1:]]),
    "polars null": lambda g: pl.Series([None, *g.tolist()[1:]]),
    "polars List": lambda g: pl.Series([[value] for value in g.tolist()]),
    "arrow null": lambda g: pa.array([None, *g.tolist()[1:]]),
    "arrow struct": lambda g: pa.array([{"u": value} for value in g.tolist()]),
    "names twice": lambda g: pd.DataFrame({"u": g, "v": g}).set_axis(["u", "u"], axis=1),
    "what cannot be read": lambda g: Unreadable(),
    "a type": lambda g: str,
}

GOOD_GROUPS: dict[str, Change] = {
    "a list": lambda g: g.tolist(),
    "a series": lambda g: pd.Series(g, name="sex"),
    "a category with levels that do not occur": lambda g: pd.Categorical(g, ["a", "b", "c"]),
    "polars": lambda g: pl.Series("sex", g),
    "arrow": lambda g: pa.array(g.tolist()),
    "arrow dictionary": lambda g: pa.array(g.tolist()).dictionary_encode(),
    "chunks": lambda g: pa.chunked_array([pa.array(g[:50].tolist()), pa.array(g[50:].tolist())]),
    "truth values": lambda g: g == "a",
    "boolean": lambda g: pd.array(g == "a", dtype="boolean"),
    "a dict": lambda g: {"sex": g, "race": np.roll(g, 1)},
    "a frame": lambda g: pd.DataFrame({"sex": g, "race": np.roll(g, 1)}),
    "a 2-d array": lambda g: np.stack([g, np.roll(g, 1)], axis=1),
    "numbers and words": lambda g: np.array([1 if value == "a" else "b" for value in g], object),
}

BAD_WEIGHTS: dict[str, Change] = {
    "negative": lambda w: -w,
    "one negative": lambda w: np.where(np.arange(len(w)) == 3, -1.0, w),
    "NaN": lambda w: np.where(np.arange(len(w)) == 3, np.nan, w),
    "inf": lambda w: np.where(np.arange(len(w)) == 3, np.inf, w),
    "zeros": lambda w: np.zeros(len(w)),
    "too short": lambda w: w[:-1],
    "too long": lambda w: [*w, 1.0],
    "empty": lambda w: [],
    "a number": lambda w: 2.0,
    "a text": lambda w: "balanced",
    "texts": lambda w: ["heavy"] * len(w),
    "numbers as texts": lambda w: ["1.0"] * len(w),
    "two columns": lambda w: np.stack([w, w], axis=1),
    "a dict": lambda w: {0: 1.0, 1: 2.0},
    "a generator": lambda w: (value for value in w),
    "None in an entry": lambda w: [None, *w[1:]],
    "a list in an entry": lambda w: [[1.0], *w[1:]],
    "complex": lambda w: w + 1j,
    "datetime64": lambda w: _dates(len(w), False),
    "timedelta64": lambda w: _dates(len(w), False) - np.datetime64("2019-01-01"),
    "masked": lambda w: _with_mask(w),
    "a whole number beyond a float": lambda w: [10**400, *w[1:].tolist()],
    "polars null": lambda w: pl.Series([None, *w.tolist()[1:]]),
    "Float64 with NA": lambda w: pd.array([None, *w[1:]], dtype="Float64"),
    "what cannot be read": lambda w: Unreadable(),
    "raw bytes": lambda w: np.full(len(w), b"xy").astype("V2"),
}

BAD_OPTIONS: list[tuple[str, Any]] = [
    *(
        ("epsilon", value)
        for value in (
            "1",
            None,
            True,
            float("nan"),
            -1.0,
            0.0,
            1j,
            [1.0],
            np.array([1.0]),
            b"1",
            {},
            10**400,
        )
    ),
    *(
        ("delta", value)
        for value in (
            "1e-6",
            None,
            True,
            float("nan"),
            -1e-6,
            1.0,
            2.0,
            1j,
            [1e-6],
            np.float64("nan"),
        )
    ),
    *(
        ("random_state", value)
        for value in ("0", 1.5, True, -1, float("nan"), [0], np.array([1, 2]), Odd(), b"0")
    ),
    *(("protects", value) for value in ("rows", None, 1, ["records"], b"records")),
    *(("neighbours", value) for value in ("swap", 1, ["add-remove"], True)),
    *(
        ("public_rows", value)
        for value in (0, -5, 1.5, "120", True, float("nan"), [120], float("inf"))
    ),
    *(("max_sample_weight", value) for value in (0, -1.0, "1", float("nan"), True, [1.0])),
    *(("schema", value) for value in ("schema.toml", {}, 1, Odd(), [])),
    *(("ledger", value) for value in ("ledger.db", 1, Odd(), [])),
]

BAD_CONSTRAINTS: list[Any] = [
    "parity", "demographic_parity:x", ":", "demographic_parity:nan", "demographic_parity:-1", 0.05, True,
    object(), [0.05], [None], {"demographic_parity": 0.05}, fv.DemographicParity, {1, 2}, b"demographic_parity:0.1", Odd(),
    (x for x in (1,)),
]  # fmt: skip

CONSTRAINED = ("FairClassifier", "OracleGameClassifier", "FairPostProcessor")


@dataclass
class Attempt:
    """What came of a call: the error, if any, and what was printed meanwhile."""

    error: BaseException | None
    printed: str
    value: Any = None

    @property
    def refused(self) -> bool:
        """By the library's own family of errors."""
        return isinstance(self.error, FairveilError)


@contextlib.contextmanager
def _heard(out: io.StringIO) -> Iterator[None]:
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def attempt(call: Callable[[], Any]) -> Attempt:
    """Call, with all that is printed kept."""
    out = io.StringIO()
    value, error = None, None
    with _heard(out):
        try:
            value = call()
        except Exception as raised:
            error = raised
    return Attempt(error, out.getvalue(), value)


def arguments(name: str, good: Sample) -> dict[str, Any]:
    """What a good fit is given."""
    return {
        "X": good.X,
        "y": good.target if name in REGRESSORS else good.y,
        "sensitive_features": good.groups,
    }


def empty_ledger(dataset: str) -> Ledger:
    """In memory, with room for everything."""
    return Ledger.create(None, dataset, 50.0, 1e-3)


def is_unfitted(estimator: Any) -> bool:
    """Whether a fit left nothing behind."""
    return not [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
