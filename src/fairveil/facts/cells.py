"""Groups as cells: which cell, or cells, of a histogram a row falls in."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..errors import InputError

GroupMode = Literal["product", "marginal"]
"""One cell for each combination of sensitive values, or one for each value of each column."""

GROUP_MODES: tuple[GroupMode, ...] = ("product", "marginal")
"""The modes of groups."""

MOST_VALUES = 1 << 16
"""Values of one sensitive column at most: its codes are 16 bits wide."""


@dataclass(frozen=True)
class Cells:
    """The groups that one or several sensitive columns make. Holds public values only, in the order
    given.

    `"product"`: one cell for each combination of values; a row is in one. `"marginal"`: one cell
    for each value of each column; a row is in one cell a column.

    >>> Cells((("f", "m"), ("x", "y", "z"))).count
    6
    >>> Cells((("f", "m"), ("x", "y", "z")), mode="marginal").count
    5
    >>> Cells((("f", "m"),)).keys
    ('f', 'm')
    """

    columns: tuple[tuple[Hashable, ...], ...]
    mode: GroupMode = "product"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = tuple(tuple(column) for column in self.columns)
        if not columns or any(not column or len(set(column)) != len(column) for column in columns):
            raise InputError.expected(
                "at least one column, each a non-empty list of distinct values",
                of="groups",
                got=self.columns,
                remedy='Pass Cells((("f", "m"),)), for example.',
            )
        if max(map(len, columns)) > MOST_VALUES:
            got = f"a column of {max(map(len, columns)):,}"
            remedy = "Merge values that are rare; make ranges of a number first."
            raise InputError.expected(
                f"at most {MOST_VALUES:,} values a column", of="groups", got=got, remedy=remedy
            )
        _checks.normalise(self, columns=columns)
        _checks.one_of(GROUP_MODES, groups=self.mode)
        if not self.names:
            _checks.normalise(self, names=tuple(f"sensitive_{j}" for j in range(len(columns))))
        if len(self.names) != len(columns) or len(set(self.names)) != len(columns):
            raise InputError.expected(
                f"{len(columns)} distinct names",
                of="names",
                got=self.names,
                remedy="Name each sensitive column once.",
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(len(column) for column in self.columns)

    @property
    def count(self) -> int:
        """How many cells there are."""
        return math.prod(self.sizes) if self.mode == "product" else sum(self.sizes)

    @property
    def per_row(self) -> int:
        """How many cells one row is in."""
        return 1 if self.mode == "product" else len(self.columns)

    @property
    def keys(self) -> tuple[Hashable, ...]:
        """One key a cell: the value, a tuple of values (product of several), or (name, value)
        (marginal of several)."""
        if len(self.columns) == 1:
            return self.columns[0]
        if self.mode == "product":
            return tuple(itertools.product(*self.columns))
        return tuple(
            (name, value)
            for name, column in zip(self.names, self.columns, strict=True)
            for value in column
        )

    def ids(self, codes: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """Cell ids, shape (per_row, rows), from the codes of the sensitive columns, shape (columns,
        rows).

        32 bits wide where all ids fit, else 64: products of sizes are never wrapped.
        """
        if codes.ndim != 2 or codes.shape[0] != len(self.columns):
            raise InputError.expected(
                f"codes of shape ({len(self.columns)}, rows)",
                of="sensitive codes",
                got=codes.shape,
                remedy="Give one line of codes a sensitive column.",
            )
        if self.count > 1 << 63:
            remedy = "Make fewer groups: merge values that are rare, or ask for groups='marginal'."
            raise InputError.expected(
                "at most 2^63 cells", of="groups", got=self.count, remedy=remedy
            )
        # An id is below the count, so that products of sizes never wrap around.
        kind: Any = np.int32 if self.count <= 1 << 31 else np.int64
        if self.mode == "product":
            ids = np.zeros(codes.shape[1], dtype=kind)
            # Mixed radix: the last column changes fastest, as in `keys`.
            for size, line in zip(self.sizes, codes, strict=True):
                ids *= kind(size)
                ids += line.astype(kind)
            return ids[np.newaxis, :]
        offsets = np.cumsum((0, *self.sizes[:-1]), dtype=kind)
        return np.asarray(codes.astype(kind) + offsets[:, np.newaxis])

    def encode(self, values: list[npt.NDArray[np.object_]]) -> npt.NDArray[np.uint16]:
        """Codes of shape (columns, rows) from raw values; a value that is not listed is an error
        that names it."""
        lines = []
        for name, column, line in zip(self.names, self.columns, values, strict=True):
            code_of = {value: code for code, value in enumerate(column)}
            try:
                lines.append(
                    np.fromiter((code_of[value] for value in line.tolist()), np.uint16, len(line))
                )
            except (KeyError, TypeError):
                unknown = sorted(
                    {value for value in line.tolist() if value not in code_of}, key=repr
                )[:5]
                raise InputError.expected(
                    f"one of {list(column)}",
                    of=f"sensitive column {name!r}",
                    got=unknown,
                    remedy="List every group (a code for missing ones too) in the schema.",
                ) from None
        return np.stack(lines)
