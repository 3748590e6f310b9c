"""Plain arrays as a source of rows: what `Rows.from_arrays` reads."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...errors import InputError
from ...facts import Cells, RowBlock, RowLayout
from ...facts.rows import Traits

BLOCK_ROWS = 1 << 18


class ArrayRows:
    """Arrays in memory as a `RowSource`."""

    def __init__(
        self,
        X: Any,
        y: ColumnsLike,
        sensitive: Sequence[Any],
        codes: object,
        code_sizes: Sequence[int],
        classes: Sequence[Hashable] | None,
        groups: Sequence[Sequence[Hashable]] | None,
        sensitive_names: Sequence[str],
        regression: bool,
        sample_weight: ColumnsLike,
    ) -> None:
        import scipy.sparse

        self.read_from_data: list[str] = []
        self._sparse = scipy.sparse.issparse(X)
        self._X = scipy.sparse.csr_array(X) if self._sparse else _as_numbers(X)
        n = int(self._X.shape[0])
        self._codes = np.empty((0, n), np.uint8) if codes is None else _codes(codes)
        self._labels, known = self._encode_labels(y, classes, regression)
        columns = [np.asarray(column, dtype=object) for column in sensitive]
        for j, column in enumerate(columns):
            if column.ndim != 1:
                remedy = "Pass a list with one array a sensitive column: [sex], for example."
                raise InputError.expected(
                    "one value a row",
                    of=f"sensitive[{j}]",
                    got=f"{column.ndim} axes",
                    remedy=remedy,
                )
        if groups is None:
            groups = [_distinct(column, f"sensitive[{j}]") for j, column in enumerate(columns)]
            if columns:
                self.read_from_data.append("groups")
        _need_lists(classes, groups, code_sizes)
        names = tuple(sensitive_names) or tuple(f"sensitive_{j}" for j in range(len(columns)))
        self._sensitive = (
            Cells(tuple(map(tuple, groups)), names=names).encode(columns)
            if columns
            else np.empty((0, n), np.uint16)
        )
        self._weights = None if sample_weight is None else _floats(sample_weight, "sample_weight")
        for name, length in (
            ("y", None if self._labels is None else len(self._labels)),
            ("sensitive_features", self._sensitive.shape[1]),
            ("codes", self._codes.shape[1]),
            ("sample_weight", None if self._weights is None else len(self._weights)),
        ):
            if length is not None and length != n:
                raise InputError.expected(
                    f"{n} entries, as many as X has rows", of=name, got=length, remedy="Align them."
                )
        self.layout = RowLayout(
            int(self._X.shape[1]), tuple(code_sizes), known, tuple(map(tuple, groups)), names
        )

    def _encode_labels(
        self, y: ColumnsLike, classes: Sequence[Hashable] | None, regression: bool
    ) -> tuple[npt.NDArray[Any] | None, tuple[Hashable, ...] | None]:
        if y is None:
            return None, None if classes is None else tuple(classes)
        if regression:
            return _floats(y, "y"), None
        labels = np.asarray(y)
        if labels.ndim != 1:
            remedy = "Pass one label a row."
            raise InputError.expected("one axis", of="y", got=f"{labels.ndim} axes", remedy=remedy)
        if classes is None:
            classes = _distinct(labels, "y")
            self.read_from_data.append("classes")
        code_of = {label: code for code, label in enumerate(classes)}
        try:
            coded = np.fromiter(
                (code_of[label] for label in labels.tolist()), np.int32, len(labels)
            )
        except KeyError as unknown:
            raise InputError.expected(
                f"one of {list(classes)}",
                of="label",
                got=unknown.args[0],
                remedy="List every class in classes= or in the schema.",
            ) from None
        return coded, tuple(classes)

    @property
    def traits(self) -> Traits:
        """What was read from these rows."""
        return Traits(read_from_data=tuple(self.read_from_data))

    def blocks(self) -> Iterator[RowBlock]:
        """Runs of BLOCK_ROWS rows. One of no rows where there are none: that rows have weights does
        not hang on whether somebody is there."""
        n = int(self._X.shape[0])
        for a in range(0, max(n, 1), BLOCK_ROWS):
            b = min(n, a + BLOCK_ROWS)
            yield RowBlock(
                self._X[a:b] if self._sparse else np.array(self._X[a:b].T, order="C"),
                np.ascontiguousarray(self._codes[:, a:b]),
                None if self._labels is None else self._labels[a:b],
                np.ascontiguousarray(self._sensitive[:, a:b]),
                None if self._weights is None else self._weights[a:b],
            )


def _as_numbers(X: TableLike) -> npt.NDArray[Any]:
    if np.ma.is_masked(X):
        remedy = "Fill them in, or code them by a schema."
        raise InputError.expected(
            "numbers in every place", of="X", got="masked ones", remedy=remedy
        )
    numbers = np.asarray(X)
    if numbers.dtype not in (np.float32, np.float64):
        try:
            if np.iscomplexobj(numbers):
                raise TypeError
            numbers = numbers.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError.expected(
                "numbers",
                of="X",
                got=f"values of type {numbers.dtype}",
                remedy=(
                    "Encode words with a schema (fairveil.data.encode), or pass them as codes."
                ),
            ) from None
    if numbers.ndim != 2:
        raise InputError.expected(
            "a table of shape (rows, numbers)",
            of="X",
            got=f"shape {numbers.shape}",
            remedy="Reshape X.",
        )
    return numbers


def _distinct(values: npt.NDArray[Any], name: str) -> tuple[Hashable, ...]:
    """The values that occur, sorted; a missing one is not a value of its own unless somebody lists
    it."""
    try:
        found = set(values.tolist())
    except TypeError:
        found = {None}
    if any(value is None or value != value for value in found):
        raise InputError.expected(
            "a value in every row",
            of=name,
            got="missing ones",
            remedy=(
                "List the values yourself (classes=, groups=), with a word for missing "
                "ones, or use a schema."
            ),
        )
    try:
        return tuple(sorted(found))
    except TypeError:
        return tuple(sorted(found, key=repr))


def _floats(values: object, name: str) -> npt.NDArray[np.float64]:
    try:
        floats = np.array(values, np.float64)
    except (TypeError, ValueError):
        floats = np.empty((0, 0))
    if floats.ndim != 1:
        remedy = "Pass one number a row."
        raise InputError.expected(
            "one number a row", of=name, got=type(values).__name__, remedy=remedy
        )
    return floats


def _codes(codes: object) -> npt.NDArray[Any]:
    """(coded features, rows), a copy in native byte order."""
    lines = np.atleast_2d(np.asarray(codes).T)
    if lines.ndim != 2 or lines.dtype.kind not in "iub":
        remedy = "Pass whole numbers, a column for each coded feature."
        raise InputError.expected("whole numbers", of="codes", got=str(lines.dtype), remedy=remedy)
    native = np.uint8 if lines.dtype.kind == "b" else lines.dtype.newbyteorder("=")
    return np.array(lines, dtype=native, order="C")


def _need_lists(
    classes: Sequence[Hashable] | None,
    groups: Sequence[Sequence[Hashable]],
    code_sizes: Sequence[int],
) -> None:
    """Distinct classes, a list of groups a column, whole sizes."""
    if classes is not None and len(set(classes)) != len(tuple(classes)):
        raise InputError.expected(
            "distinct classes", of="classes", got=classes, remedy="Name each class once."
        )
    for values in cast(Sequence[object], groups):
        if (
            isinstance(values, str)
            or not isinstance(values, Sequence | np.ndarray)
            or len(values) > 1 << 16
        ):
            remedy = 'Pass groups=[["f", "m"]], one list a sensitive column.'
            raise InputError.expected(
                "a list of at most 65,536 groups a column", of="groups", got=values, remedy=remedy
            )
    for size in code_sizes:
        _checks.whole(at_least=1, code_sizes=size)
