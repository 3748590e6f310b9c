"""Tables in memory, whatever made them, as columns that can be taken a run of rows at a time."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SchemaError
from .raw import Listed, Plain, Raw

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

LAZY = "A lazy frame: call .collect() first; of dask, .to_parquet(folder) and fairveil.distributed.DaskRows"
FRAMES = (
    "a pandas, polars or pyarrow table, a mapping of columns, a structured array, or a 2-D array "
    "with names="
)


class Table(Protocol):
    """Columns with names; a run of rows of one of them on request."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that there are."""
        ...

    @property
    def rows(self) -> int:
        """How many rows."""
        ...

    def run(self, name: str, start: int, stop: int) -> Raw:
        """Rows start to stop of one column."""
        ...


class Arrays:
    """Columns that are arrays or lists."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        for name, column in columns.items():
            if column.ndim != 1:
                raise InputError.expected(
                    "one dimension",
                    of=f"column {name!r}",
                    got=column.shape,
                    remedy="Pass one value a row.",
                )
        self._columns = columns
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise SchemaError.expected(
                "columns of one length",
                of="table",
                got=lengths,
                remedy="Align the columns by position.",
            )
        self._rows = next(iter(lengths.values()), 0)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    @property
    def rows(self) -> int:
        return self._rows

    def run(self, name: str, start: int, stop: int) -> Raw:
        values = self._columns[name][start:stop]
        if isinstance(values, np.ma.MaskedArray):
            return Plain(np.asarray(values.data), np.ma.getmaskarray(values))
        return Plain(values)


class Frame:
    """Any dataframe, through narwhals."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame = frame
        self._columns = {str(name): name for name in frame.columns}
        if len(self._columns) != len(frame.columns):
            raise SchemaError.expected(
                "columns with distinct names",
                of="table",
                got=list(map(str, frame.columns)),
                remedy="Rename them.",
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    @property
    def rows(self) -> int:
        return len(self._frame)

    def run(self, name: str, start: int, stop: int) -> Raw:
        series = self._frame[self._columns[name]][start:stop]
        kind = type(series.dtype).__name__
        if (
            kind in ("String", "Categorical", "Enum")
            and importlib.util.find_spec("pyarrow") is not None
        ):
            return from_arrow(series.to_arrow())
        # lists and structs stay whole: as an array they would be more columns, or none
        if series.dtype.is_nested():
            values = np.fromiter(series.to_list(), dtype=object, count=len(series))
        else:
            values = series.to_numpy()
        null = series.is_null().to_numpy().astype(bool)
        if values.dtype.kind not in "biuf":
            values = np.asarray(values, dtype=object)
        return Plain(values, null)


def from_arrow(column: pa.Array | pa.ChunkedArray) -> Raw:
    """An Arrow array or chunked array: text by its distinct values, numbers as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = (
                pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
            )
    if (
        pa.types.is_dictionary(column.type)
        or pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
    ):
        coded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        at = pc.fill_null(coded.indices.cast(pa.int64()), -1)
        return Listed(at.to_numpy(zero_copy_only=False), tuple(coded.dictionary.to_pylist()))
    null = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    if null is None and pa.types.is_integer(column.type):
        return Plain(column.to_numpy(zero_copy_only=False))
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        # Nulls would turn whole numbers into floats, and large ones into other numbers.
        return Plain(
            pc.fill_null(column, False if pa.types.is_boolean(column.type) else 0).to_numpy(
                zero_copy_only=False
            ),
            null,
        )
    if pa.types.is_floating(column.type):
        return Plain(column.to_numpy(zero_copy_only=False), null)
    return Plain(np.array([*column.to_pylist(), None], dtype=object)[:-1], null)


def table_of(given: object, names: Sequence[str] | None = None) -> Table:
    """Look at anything as a `Table`. Nothing is copied that need not be."""
    if isinstance(given, Mapping):
        return Arrays({str(name): column_of(column, str(name)) for name, column in given.items()})
    if isinstance(given, np.ndarray):
        return _from_array(given, names)
    import narwhals as nw

    try:
        frame: Any = nw.from_native(given, eager_only=True)
    except TypeError:
        raise InputError.expected(FRAMES, of="table", got=_kind(given), remedy=f"{LAZY}.") from None
    return Frame(frame)


def column_of(given: object, name: str) -> npt.NDArray[Any]:
    """One column from an array, a list or a series. Mixed values keep their types."""
    if isinstance(given, np.ndarray):
        column = given
    elif isinstance(given, list | tuple):
        # a masked value in a list is missing: see is_missing
        column = np.fromiter(given, dtype=object, count=len(given))
    else:
        import narwhals as nw

        series = nw.from_native(given, series_only=True, pass_through=True)
        if not isinstance(series, nw.Series):
            raise InputError.expected(
                "an array, a list or a series",
                of=f"column {name!r}",
                got=_kind(given),
                remedy="Convert it.",
            )
        raw = Frame(series.alias("column").to_frame()).run("column", 0, len(series))
        return _merged(raw)
    if column.ndim != 1:
        raise InputError.expected(
            "one dimension", of=f"column {name!r}", got=column.shape, remedy="Pass one value a row."
        )
    return column


def _merged(raw: Raw) -> npt.NDArray[Any]:
    if isinstance(raw, Listed):
        values: npt.NDArray[Any] = np.array([*raw.values, None], dtype=object)[raw.at]
        return values
    if raw.null is None or not raw.null.any():
        return raw.values
    values = raw.values.astype(object)
    values[raw.null] = None
    return values


def _from_array(given: npt.NDArray[Any], names: Sequence[str] | None) -> Table:
    if given.dtype.names is not None:
        return Arrays({name: given[name] for name in given.dtype.names})
    if (
        given.ndim != 2
        or names is None
        or len(names) != given.shape[1]
        or len(set(names)) != len(names)
    ):
        raise InputError.expected(
            "a 2-D array and a distinct name for each of its columns",
            of="table",
            got=f"shape {given.shape} and names {None if names is None else list(names)}",
            remedy='Pass names=["age", "income"], in the order of the columns.',
        )
    return Arrays({str(name): given[:, at] for at, name in enumerate(names)})


def _kind(given: object) -> str:
    return f"{type(given).__module__}.{type(given).__qualname__}"


def pandas_for(of: str) -> Any:
    """pandas, or an error of what makes a frame of it."""
    try:
        import pandas as pd
    except ImportError:
        remedy = "Install pandas, or use to_dict()."
        raise InputError.expected(
            "pandas to be installed", of=of, got=None, remedy=remedy
        ) from None
    return pd
