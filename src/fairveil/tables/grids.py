"""X as users hold it, looked at as columns: arrays, sparse arrays, data frames, mappings of
columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_array

from .._types import TableLike
from ..errors import InputError, KindError, complaint
from .frames import Table, table_of
from .given import as_array, column_names_of, is_masked, refuse_other_kinds
from .raw import Listed, Plain, Raw, is_missing

Values = npt.NDArray[Any]
# columns of tables up to here are kept once they were looked at; of larger ones memory matters more
REMEMBERED_ROWS = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """A table of features. `matrix`: all numbers, dense or CSR, where it came as such; else `table`
    has the columns.

    `named`: whether the columns have names of their own; otherwise they are called x0, x1, ...
    """

    names: tuple[str, ...]
    rows: int
    named: bool
    matrix: Any = None
    table: Table | None = None
    _seen: dict[str, Raw] = field(default_factory=dict)
    _own: tuple[str, ...] = ()

    @property
    def is_sparse(self) -> bool:
        """Whether the numbers are a CSR array."""
        return bool(sparse.issparse(self.matrix))

    def column(self, name: str) -> Raw:
        """One column."""
        if self.table is not None:
            own = dict(zip(self.names, self._own, strict=True)) if self._own else {}
            raw = self._seen.get(name) or self.table.run(own.get(name, name), 0, self.rows)
            if self.rows <= REMEMBERED_ROWS:
                self._seen[name] = raw
            return raw
        at = self.names.index(name)
        return Plain(
            np.asarray(
                self.matrix[:, [at]].toarray()[:, 0] if self.is_sparse else self.matrix[:, at]
            )
        )

    def renamed(self, names: tuple[str, ...]) -> FeatureTable:
        """The same columns under other names."""
        return replace(self, names=names, _seen={}, _own=self._own or self.names)


def grid_of(X: TableLike) -> FeatureTable:
    """Look at X. What is no table, no number or no finite number is an error."""
    if sparse.issparse(X):
        matrix = _checked(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
        return FeatureTable(_numbered(matrix.shape[1]), matrix.shape[0], False, matrix)
    if isinstance(X, Mapping) or (isinstance(X, np.ndarray) and X.dtype.names is not None):
        return _of_table(table_of(X))
    if _is_frame(X):
        return _of_table(table_of(_with_text_names(X)), named=_has_text_names(X))
    if is_masked(X):
        remedy = "Fill them in, or use a schema with a code for missing values."
        raise InputError.expected(
            "a value in every place", of="X", got="masked ones", remedy=remedy
        )
    raw = as_array(X, "X")
    if isinstance(X, (list, tuple)) and raw.dtype.kind in "US":
        raw = as_array(X, "X", dtype=object)  # numbers beside words stay numbers
    if raw.ndim == 0 and raw.dtype.kind == "O":  # an object that is no array at all
        remedy = (
            "Pass an array, a table or a mapping of columns; make a list of what can be walked "
            "through only once."
        )
        raise InputError.expected("a table", of="X", got=type(X).__name__, remedy=remedy)
    refuse_other_kinds(raw, "X", bytes_too=False)
    if raw.dtype.kind in "OUST":
        objects = _checked(raw, dtype=object, ensure_all_finite=False, input_name="X")
        names = _numbered(objects.shape[1])
        table = table_of({name: objects[:, at] for at, name in enumerate(names)})
        return FeatureTable(names, len(objects), False, table=table)
    matrix = _checked(raw, dtype=[np.float64, np.float32], input_name="X")
    return FeatureTable(_numbered(matrix.shape[1]), len(matrix), False, matrix)


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
            _refuse_numbers_beside_words(kinds, of)
            return None
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            listed = sorted(kind.__name__ for kind in kinds)
            raise KindError.expected(
                "numbers or words (each argument must be a string or a number)",
                of=of,
                got=listed,
                remedy="Turn dates and the like into numbers first.",
            ) from None
    if values.dtype.kind in "US":
        return None
    refuse_other_kinds(values, of)
    if values.dtype.kind == "f" and values.dtype.itemsize > 8:
        with np.errstate(over="ignore"):  # what is beyond float64 is infinite, and refused
            values = values.astype(np.float64)
    missing = raw.null is not None and bool(raw.null.any())
    if missing or (values.dtype.kind == "f" and not np.isfinite(values).all()):
        raise InputError.expected(
            "finite numbers in every row",
            of=of,
            got="missing (NaN) or infinite ones",
            remedy=(
                "Fill them in, or declare what they count as in a schema: Number(low, high, "
                "missing=...)."
            ),
        )
    return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)


def refuse_duplicates(table: object, of: str) -> None:
    """Columns are distinguished by their names."""
    # pandas or pyarrow; others hold no name twice
    of_names = "columns" if hasattr(table, "set_axis") else "column_names"
    given = (
        list(table)
        if isinstance(table, Mapping) and not sparse.issparse(table)
        else getattr(table, of_names, ())
    )
    names = list(given) if isinstance(given, Iterable) else []
    for name in names:
        if (
            isinstance(name, str)
            and not name.isprintable()
            and any(0xD800 <= ord(letter) <= 0xDFFF for letter in name)
        ):
            remedy = "Rename that column: its name holds half a character."
            raise InputError.expected(
                "names that can be written", of=of, got=ascii(name), remedy=remedy, quote=False
            )
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        kinds = sorted({type(name).__name__ for name in names})
        remedy = (
            "Feature names are only supported if all input features have string names: X.columns = "
            "X.columns.astype(str)."
        )
        raise KindError.expected("names of one kind", of=of, got=kinds, remedy=remedy)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError.expected(
            "distinct names of columns", of=of, got=twice, remedy="Rename or drop a column."
        )


def _refuse_numbers_beside_words(kinds: set[type], of: str) -> None:
    """Each number would become a word of its own."""
    if any(issubclass(kind, (int, float)) and not issubclass(kind, bool) for kind in kinds):
        remedy = (
            "Write numbers alone, with missing ones filled in; or make all of them texts: "
            "column.astype(str)."
        )
        got = "numbers beside words"
        raise KindError.expected("numbers or words in one column", of=of, got=got, remedy=remedy)


def _of_table(table: Table, *, named: bool = True) -> FeatureTable:
    names = table.names if named else _numbered(len(table.names))
    if not names or not table.rows:
        got = (
            f"{table.rows} rows and {len(names)} columns (Found array with 0 sample(s) or 0 "
            f"feature(s))"
        )
        raise InputError.expected(
            "at least one row and one column", of="X", got=got, remedy="Pass some rows."
        )
    return FeatureTable(names, table.rows, named, table=table)


def refuse_one_column(X: TableLike) -> None:
    """A column, or a row of a frame, has one axis, and is no table."""
    import narwhals as nw

    if isinstance(nw.from_native(X, pass_through=True, allow_series=True), nw.Series):
        remedy = (
            "Expected 2D array, got 1D array instead: pass X[['a']], for example, for a table of "
            "one column, X.iloc[[0]] for one of one row."
        )
        raise InputError.expected("a table", of="X", got="a column or a row", remedy=remedy)


def _is_frame(X: TableLike) -> bool:
    if isinstance(X, (list, tuple, np.ndarray)):
        return False
    import narwhals as nw

    refuse_one_column(X)
    wrapped = nw.from_native(X, pass_through=True)
    if isinstance(wrapped, nw.LazyFrame):
        remedy = (
            "Call .collect() first; of dask, .to_parquet(folder) and fairveil.distributed.DaskRows."
        )
        raise InputError.expected("a table in memory", of="X", got="a lazy frame", remedy=remedy)
    return isinstance(wrapped, nw.DataFrame)


def _has_text_names(X: TableLike) -> bool:
    return all(isinstance(name, str) for name in column_names_of(X)) or not hasattr(X, "set_axis")


def _with_text_names(X: Any) -> Any:
    """Only pandas has names that are no texts: they are replaced by x0, x1, ..."""
    return X if _has_text_names(X) else X.set_axis(list(_numbered(X.shape[1])), axis=1)


def _checked(raw: object, **options: object) -> Any:
    """An array as scikit-learn checks it, with its words for what is wrong."""
    try:
        return check_array(raw, **options)
    except (TypeError, ValueError, OverflowError) as error:
        got = type(raw).__name__
        family = KindError if isinstance(error, TypeError) else InputError
        raise family(
            complaint(
                expected="a 2-d array without missing or infinite numbers",
                of="X",
                got=got,
                remedy=f"{error}",
            )
        ) from None


def _numbered(columns: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(columns))
