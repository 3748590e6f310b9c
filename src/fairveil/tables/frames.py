"""Tables in memory, whatever made them, as columns that can be taken a run of rows at a time: data
frames, mappings of columns, arrays, sparse arrays."""

from __future__ import annotations

import importlib.util
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._types import TableLike
from ..core.errors import need
from ..errors import InputError, KindError, SchemaError, complaint
from .columns import (
    Listed,
    Plain,
    Raw,
    Values,
    as_array,
    from_series,
    is_masked,
    is_missing,
    refuse_other_kinds,
)

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

LAZY = "call .collect() first; of dask, .to_parquet(folder) and fairveil.distributed.DaskRows."
FRAMES = (
    "a pandas, polars or pyarrow table, a mapping of columns, a structured array, or a 2-D array "
    "with names="
)
# columns of tables up to here are kept once they were looked at; of larger ones memory matters more
REMEMBERED_ROWS = 1 << 20
Run = Callable[[int, slice], Raw]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Columns with names. `matrix`: all numbers, dense or CSR, where they came as such.

    `named`: whether the columns have names of their own; otherwise they are called x0, x1, ...
    """

    names: tuple[str, ...]
    rows: int
    _run: Run
    named: bool = True
    matrix: Any = None
    _seen: dict[str, Raw] = field(default_factory=dict)

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array."""
        return bool(sparse.issparse(self.matrix))

    def run(self, name: str, start: int, stop: int) -> Raw:
        """Rows start to stop of one column."""
        return self._run(self.names.index(name), slice(start, stop))

    def column(self, name: str) -> Raw:
        """One column."""
        raw = self._seen.get(name) or self.run(name, 0, self.rows)
        if self.rows <= REMEMBERED_ROWS and self.matrix is None:
            self._seen[name] = raw
        return raw

    def renamed(self, names: Sequence[str], named: bool = True) -> Table:
        """The same columns under other names."""
        return replace(self, names=tuple(names), named=named, _seen={})


# ------------------------------ any table with names


def table_of(given: object, names: Sequence[str] | None = None) -> Table:
    """Look at anything as a `Table`. Nothing is copied that need not be. `names`: of the columns of
    a 2-D array."""
    if isinstance(given, Mapping):
        return _of_columns({str(name): column_of(one, str(name)) for name, one in given.items()})
    if isinstance(given, np.ndarray):
        if given.dtype.names is not None:
            return _of_columns({name: given[name] for name in given.dtype.names})
        listed = [] if names is None else list(map(str, names))
        right = names is not None and given.ndim == 2 and len(listed) == given.shape[1]
        right = right and len(set(listed)) == len(listed)
        expected = "a 2-D array and a distinct name for each of its columns"
        got = f"shape {given.shape} and names {None if names is None else list(names)}"
        fix = 'Pass names=["age", "income"], in the order of the columns.'
        need(right, expected, of="table", got=got, fix=fix)
        return _of_columns({name: given[:, at] for at, name in enumerate(listed)})
    import narwhals as nw

    try:
        frame: Any = nw.from_native(given, eager_only=True)
    except TypeError:
        remedy = f"A lazy frame: {LAZY}"
        raise InputError.expected(FRAMES, of="table", got=_kind(given), remedy=remedy) from None
    columns = list(frame.columns)
    texts, fix = tuple(map(str, columns)), "Rename them."
    expected, distinct = "columns with distinct names", len(set(texts)) == len(columns)
    need(distinct, expected, of="table", got=list(texts), fix=fix, error=SchemaError)
    return Table(texts, len(frame), lambda at, rows: _of_series(frame[columns[at]][rows]))


def _of_columns(columns: Mapping[str, Values]) -> Table:
    lengths = {name: len(one) if one.ndim else 0 for name, one in columns.items()}
    for name, one in columns.items():
        of, fix = f"column {name!r}", "Pass one value a row."
        need(one.ndim == 1, "one dimension", of=of, got=one.shape, fix=fix)
    alike, fix = len(set(lengths.values())) <= 1, "Align the columns by position."
    need(alike, "columns of one length", of="table", got=lengths, fix=fix, error=SchemaError)
    listed = list(columns.values())

    def run(at: int, rows: slice) -> Raw:
        values = listed[at][rows]
        if isinstance(values, np.ma.MaskedArray):
            return Plain(np.asarray(values.data), np.ma.getmaskarray(values))
        return Plain(values)

    return Table(tuple(columns), next(iter(lengths.values()), 0), run)


def _of_series(series: nw.Series[Any]) -> Raw:
    words = type(series.dtype).__name__ in ("String", "Categorical", "Enum")
    if words and importlib.util.find_spec("pyarrow") is not None:
        return from_arrow(series.to_arrow())
    # lists and structs stay whole: as an array they would be more columns, or none
    if series.dtype.is_nested():
        values: Values = np.fromiter(series.to_list(), dtype=object, count=len(series))
    else:
        values = series.to_numpy()
    values = values if values.dtype.kind in "biuf" else np.asarray(values, dtype=object)
    return Plain(values, series.is_null().to_numpy().astype(bool))


def from_arrow(column: pa.Array | pa.ChunkedArray) -> Raw:
    """An Arrow array or chunked array: text by its distinct values, numbers as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            none = pa.array([], column.type)
            column = pa.concat_arrays(column.chunks) if column.num_chunks else none
    kind, types = column.type, pa.types
    is_listed = types.is_dictionary(kind)
    if is_listed or types.is_string(kind) or types.is_large_string(kind):
        coded = column if is_listed else pc.dictionary_encode(column)
        at = pc.fill_null(coded.indices.cast(pa.int64()), -1)
        return Listed(at.to_numpy(zero_copy_only=False), tuple(coded.dictionary.to_pylist()))
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if types.is_boolean(kind) or (types.is_integer(kind) and null is not None):
        # nulls would turn whole numbers into floats, and large ones into other numbers
        column = pc.fill_null(column, False if types.is_boolean(kind) else 0)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return Plain(column.to_numpy(zero_copy_only=False), null)
    return Plain(np.array([*column.to_pylist(), None], dtype=object)[:-1], null)


def column_of(given: object, name: str) -> npt.NDArray[Any]:
    """One column from an array, a list or a series. Mixed values keep their types."""
    of, fix = f"column {name!r}", "Pass one value a row."
    if isinstance(given, np.ndarray):
        column = given
    elif isinstance(given, list | tuple):
        # a masked value in a list is missing: see is_missing
        column = np.fromiter(given, dtype=object, count=len(given))
    else:
        import narwhals as nw

        series: Any = nw.from_native(given, series_only=True, pass_through=True)
        expected, is_series = "an array, a list or a series", isinstance(series, nw.Series)
        need(is_series, expected, of=of, got=_kind(given), fix="Convert it.")
        column = from_series(series)
    need(column.ndim == 1, "one dimension", of=of, got=column.shape, fix=fix)
    return column


def _kind(given: object) -> str:
    return f"{type(given).__module__}.{type(given).__qualname__}"


def pandas_for(of: str) -> Any:
    """pandas, or an error of what makes a frame of it."""
    there, fix = importlib.util.find_spec("pandas") is not None, "Install pandas, or use to_dict()."
    need(there, "pandas to be installed", of=of, got=None, fix=fix)
    import pandas as pd

    return pd


def shape_of(X: object) -> tuple[Any, ...] | None:
    """What X says of its shape, (rows, columns) of a table; None where it says nothing."""
    found = getattr(X, "shape", None)
    return found if isinstance(found, tuple) else None


def column_names_of(X: object) -> tuple[object, ...]:
    """The names of a frame's columns, of whatever kind; () of what has none."""
    found = getattr(X, "columns", ())
    return tuple(found) if isinstance(found, Iterable) else ()


# ------------------------------ a table of features, which need have no names


def grid_of(X: TableLike) -> Table:
    """Look at X. What is no table, no number or no finite number is an error."""
    if sparse.issparse(X):
        return _of_matrix(_checked(X, accept_sparse="csr", dtype=[np.float64, np.float32]))
    if isinstance(X, Mapping) or (isinstance(X, np.ndarray) and X.dtype.names is not None):
        return _with_rows(table_of(X))
    if _is_frame(X):
        given: Any = X
        # only pandas has names that are no texts: they are replaced by x0, x1, ...
        if all(isinstance(one, str) for one in column_names_of(X)) or not hasattr(X, "set_axis"):
            return _with_rows(table_of(X))
        names = _numbered(given.shape[1])
        return _with_rows(table_of(given.set_axis(list(names), axis=1))).renamed(names, False)
    fix = "Fill them in, or use a schema with a code for missing values."
    need(not is_masked(X), "a value in every place", of="X", got="masked ones", fix=fix)
    raw = as_array(X, "X")
    if isinstance(X, (list, tuple)) and raw.dtype.kind in "US":
        raw = as_array(X, "X", dtype=object)  # numbers beside words stay numbers
    fix = (
        "Pass an array, a table or a mapping of columns; make a list of what can be walked through "
        "only once."
    )
    is_array = raw.ndim > 0 or raw.dtype.kind != "O"
    need(is_array, "a table", of="X", got=type(X).__name__, fix=fix)
    refuse_other_kinds(raw, "X", bytes_too=False)
    if raw.dtype.kind in "OUST":
        objects = _checked(raw, dtype=object, ensure_all_finite=False)
        names = _numbered(objects.shape[1])
        return table_of(np.asarray(objects), names).renamed(names, False)
    return _of_matrix(_checked(raw, dtype=[np.float64, np.float32]))


def _of_matrix(matrix: Any) -> Table:
    def run(at: int, rows: slice) -> Raw:
        is_sparse = sparse.issparse(matrix)
        return Plain(
            np.asarray(matrix[rows, [at]].toarray()[:, 0] if is_sparse else matrix[rows, at])
        )

    return Table(_numbered(matrix.shape[1]), matrix.shape[0], run, named=False, matrix=matrix)


def _with_rows(table: Table) -> Table:
    got = (
        f"{table.rows} rows and {len(table.names)} columns (Found array with 0 sample(s) or 0 "
        f"feature(s))"
    )
    some, fix = bool(table.names) and table.rows > 0, "Pass some rows."
    need(some, "at least one row and one column", of="X", got=got, fix=fix)
    return table


def numbers_of(raw: Raw, of: str) -> Values | None:
    """A column as float64 (float32 where it came so; truth values as 0 and 1), or None where it
    holds words.

    A missing or infinite number is an error, and so is a value that is neither number nor word.
    """
    if isinstance(raw, Listed):
        return None
    values = raw.values
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.tolist() if not is_missing(value)}
        if not kinds or any(issubclass(kind, (str, bytes)) for kind in kinds):
            # each number beside words would become a word of its own
            beside = (issubclass(kind, (int, float)) and kind is not bool for kind in kinds)
            fix = (
                "Write numbers alone, with missing ones filled in; or make all of them texts: "
                "column.astype(str)."
            )
            expected, got = "numbers or words in one column", "numbers beside words"
            need(not any(beside), expected, of=of, got=got, fix=fix, error=KindError)
            return None
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise KindError.expected(
                "numbers or words (each argument must be a string or a number)",
                of=of,
                got=sorted(kind.__name__ for kind in kinds),
                remedy="Turn dates and the like into numbers first.",
            ) from None
    if values.dtype.kind in "US":
        return None
    refuse_other_kinds(values, of)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what is beyond float64 is infinite, and refused
            values = values.astype(np.float64)
    missing = raw.null is not None and bool(raw.null.any())
    finite = values.dtype.kind != "f" or bool(np.isfinite(values).all())
    got = "missing (NaN) or infinite ones"
    fix = "Fill them in, or declare what they count as in a schema: Number(low, high, missing=...)."
    need(finite and not missing, "finite numbers in every row", of=of, got=got, fix=fix)
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def refuse_duplicates(table: object, of: str) -> None:
    """Columns are distinguished by their names."""
    # pandas or pyarrow; others hold no name twice
    of_names = "columns" if hasattr(table, "set_axis") else "column_names"
    is_mapping = isinstance(table, Mapping) and not sparse.issparse(table)
    given: Any = table if is_mapping else getattr(table, of_names, ())
    names = list(given) if isinstance(given, Iterable) else []
    texts = [isinstance(name, str) for name in names]
    half = [
        name
        for name, is_text in zip(names, texts, strict=True)
        if is_text and any(0xD800 <= ord(letter) <= 0xDFFF for letter in name)
    ]
    fix, got = "Rename that column: its name holds half a character.", ascii((half or [""])[0])
    need(not half, "names that can be written", of=of, got=got, fix=fix, quote=False)
    kinds = sorted({type(name).__name__ for name in names})
    fix = (
        "Feature names are only supported if all input features have string names: X.columns = "
        "X.columns.astype(str)."
    )
    one = not any(texts) or all(texts)
    need(one, "names of one kind", of=of, got=kinds, fix=fix, error=KindError)
    twice = [name for name, times in Counter(names).items() if times > 1]
    fix = "Rename or drop a column."
    need(not twice, "distinct names of columns", of=of, got=twice, fix=fix)


def refuse_one_column(X: TableLike) -> None:
    """A column, or a row of a frame, has one axis, and is no table."""
    import narwhals as nw

    found: Any = nw.from_native(X, pass_through=True, allow_series=True)
    fix = (
        "Expected 2D array, got 1D array instead: pass X[['a']], for example, for a table of one "
        "column, X.iloc[[0]] for one of one row."
    )
    is_column = isinstance(found, nw.Series)
    need(not is_column, "a table", of="X", got="a column or a row", fix=fix)


def _is_frame(X: TableLike) -> bool:
    if isinstance(X, (list, tuple, np.ndarray)):
        return False
    import narwhals as nw

    refuse_one_column(X)
    wrapped: Any = nw.from_native(X, pass_through=True)
    is_lazy, fix = isinstance(wrapped, nw.LazyFrame), f"{LAZY[0].upper()}{LAZY[1:]}"
    need(not is_lazy, "a table in memory", of="X", got="a lazy frame", fix=fix)
    return isinstance(wrapped, nw.DataFrame)


def _checked(raw: object, **options: object) -> Any:
    """An array as scikit-learn checks it, with its words for what is wrong."""
    from sklearn.utils.validation import check_array

    try:
        return check_array(raw, input_name="X", **options)
    except (TypeError, ValueError, OverflowError) as error:
        family = KindError if isinstance(error, TypeError) else InputError
        expected, got = "a 2-d array without missing or infinite numbers", type(raw).__name__
        text = complaint(expected=expected, of="X", got=got, remedy=f"{error}")
        raise family(text) from None


def _numbered(columns: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(columns))
