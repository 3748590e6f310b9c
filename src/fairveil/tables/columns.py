"""One or several columns as users hold them (arrays, series, frames, mappings, lists), matched by
position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._types import ColumnsLike, Floats
from ..errors import InputError
from .given import as_array, numbers

if TYPE_CHECKING:
    import narwhals as nw

Values = npt.NDArray[Any]


def read_columns(sensitive_features: ColumnsLike) -> dict[str, Values]:
    """One or several named columns: an array, a series, a frame, a mapping, a 2-d array or a list
    of columns."""
    given = sensitive_features
    if given is None:
        remedy = "Pass a column, a list of columns, a mapping or a frame."
        raise InputError.expected(
            "at least one column", of="sensitive_features", got=given, remedy=remedy
        )
    if isinstance(given, Mapping):
        found = {str(name): one_column(column, str(name)) for name, column in given.items()}
    elif isinstance(given, (list, tuple)) and given and all(_is_column(item) for item in given):
        found = {
            name_of(item) or f"sensitive_{j}": one_column(item, f"column {j}")
            for j, item in enumerate(given)
        }
        if len(found) != len(given):
            remedy = "Pass a mapping from name to column."
            raise InputError.expected(
                "distinct names", of="sensitive_features", got=list(found), remedy=remedy
            )
    else:
        found = frame_or_array(given)
    if not found:
        remedy = "Pass a column, a list of columns, a mapping or a frame."
        raise InputError.expected(
            "at least one column", of="sensitive_features", got=given, remedy=remedy
        )
    return found


def frame_or_array(given: object) -> dict[str, Values]:
    """The columns of a frame, a series or an array by name."""
    if not isinstance(given, (np.ndarray, list, tuple)):
        import narwhals as nw

        try:
            wrapped: Any = nw.from_native(given, pass_through=True, allow_series=True)
        except Exception as error:
            # names twice, and what else a table of somebody else's does not bear
            remedy = f"{error}"
            raise InputError.expected(
                "columns with distinct names",
                of="sensitive_features",
                got="another table",
                remedy=remedy,
            ) from None
        if isinstance(wrapped, nw.LazyFrame):
            wrapped = wrapped.collect()
        if isinstance(wrapped, nw.DataFrame):
            return {
                str(name): _from_series(wrapped[:, j]) for j, name in enumerate(wrapped.columns)
            }
        if isinstance(wrapped, nw.Series):
            return {str(wrapped.name or "sensitive_0"): _from_series(wrapped)}
    array = as_array(given, "sensitive_features")
    if array.ndim == 2:
        return {f"sensitive_{j}": array[:, j] for j in range(array.shape[1])}
    return {"sensitive_0": one_column(given, "sensitive_features")}


def one_column(values: object, of: str) -> Values:
    """One column as an array; values of several kinds stay what they are."""
    if not isinstance(values, (np.ndarray, list, tuple)):
        import narwhals as nw

        wrapped: Any = nw.from_native(values, pass_through=True, series_only=True)
        values = _from_series(wrapped) if isinstance(wrapped, nw.Series) else values
    mixed = isinstance(values, (list, tuple)) and len({type(v) for v in values}) > 1
    array = as_array(values, of, dtype=object if mixed else None)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        remedy = "Pass one value a row."
        got = f"an array of shape {array.shape}" if array.ndim else type(values).__name__
        raise InputError.expected("a column", of=of, got=got, remedy=remedy)
    return array


def _from_series(series: nw.Series[Any]) -> Values:
    """A narwhals series as an array; whole numbers and texts stay what they are beside missing
    values."""
    if series.null_count() and not series.dtype.is_float():
        return np.asarray(series.to_list(), dtype=object)
    return np.asarray(series.to_numpy())


def read_weights(sample_weight: ColumnsLike, rows: int, *, of: str = "prediction") -> Floats | None:
    """Finite weights of at least 0, or None. `of`: what has so many rows."""
    if sample_weight is None:
        return None
    remedy = "Pass one finite number of at least 0 a row."
    weights = numbers(one_column(sample_weight, "sample_weight"), "sample_weight", remedy=remedy)
    same_length({of: rows, "sample_weight": len(weights)})
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError.expected(
            "weights", of="sample_weight", got="a negative or missing one", remedy=remedy
        )
    return weights


def read_numbers(values: object, of: str) -> Floats:
    """A column of finite numbers."""
    column = one_column(values, of)
    if column.dtype.kind not in "fiub" or not np.isfinite(column.astype(np.float64)).all():
        got, remedy = "others", "Pass one finite number a row."
        raise InputError.expected("finite numbers", of=of, got=got, remedy=remedy)
    return column.astype(np.float64)


def same_length(lengths: Mapping[str, int | None]) -> None:
    """Rows are matched by position, so all columns must be of one length."""
    given = {name: length for name, length in lengths.items() if length is not None}
    if len(set(given.values())) > 1:
        got = ", ".join(f"{name}: {length}" for name, length in given.items())
        remedy = "Rows are matched by position: pass columns of one length."
        raise InputError.expected("columns of one length", of="rows", got=got, remedy=remedy)


def _is_column(item: object) -> bool:
    return hasattr(item, "__len__") and not isinstance(item, (str, bytes))


def name_of(item: object) -> str:
    """The name that a column has of its own; "" where it has none."""
    name = getattr(item, "name", None)
    return name if isinstance(name, str) else ""
