"""The encoding that a schema defines: from a table's values to coded rows, and from coefficients
back to the table's units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..core.errors import need
from ..errors import SchemaError, together
from ..facts.columns import Boolean, Category, Number
from ..facts.rows import RowBlock, RowLayout
from ..facts.schema import Schema
from ..tables.columns import Raw
from .coding import Place, category_codes, number_codes
from .persons import names_of

FORMAT = 1
PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Affine:
    """z = (x - center) / half: a number's scale from its bounds to [-1, 1].

    >>> Affine("age", center=50.0, half=25.0).undo(np.array([-1.0, 0.5])).tolist()
    [25.0, 62.5]
    """

    name: str
    center: float
    half: float

    def undo(self, codes: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """From [-1, 1] back to the units of the input."""
        return np.asarray(codes, dtype=np.float64) * self.half + self.center


@dataclass(frozen=True)
class Encoding:
    """How rows are coded: public facts only, so it may be printed, saved and shipped with a model.

    Numbers come first, scaled by their bounds and clipped to [-1, 1]; then categories and booleans
    as codes in the order of their lists. A class is its position in the list; a numeric target is
    scaled like any number. Sensitive columns are features only with `sensitive_as_feature`.

    >>> columns = {
    ...     "age": Number(0, 100),
    ...     "job": Category(("none", "some")),
    ...     "sex": Category(("f", "m")),
    ... }
    >>> Encoding(Schema(columns, sensitive="sex")).feature_names
    ('age', 'job=none', 'job=some')
    """

    schema: Schema
    sensitive_as_feature: bool = False
    precision: str = "float64"

    def __post_init__(self) -> None:
        _checks.one_of(PRECISIONS, precision=self.precision)
        self.schema.require_columns()

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The columns that are features, in the schema's order."""
        beside = self.schema.sensitive if self.sensitive_as_feature else ()
        chosen = {*self.schema.features, *beside}
        return tuple(name for name in self.schema.columns if name in chosen)

    @cached_property
    def numbers(self) -> tuple[Affine, ...]:
        """The scale of each numeric feature."""
        of = self.schema.columns
        return tuple(self._affine(name) for name in self.features if isinstance(of[name], Number))

    @cached_property
    def coded(self) -> tuple[str, ...]:
        """The features that are codes."""
        of = self.schema.columns
        return tuple(name for name in self.features if isinstance(of[name], Category | Boolean))

    @property
    def target(self) -> Affine | None:
        """The scale of a numeric target: `target.undo(prediction)` is in its units."""
        name = self.schema.target
        is_number = name is not None and isinstance(self.schema.columns[name], Number)
        return self._affine(str(name)) if is_number else None

    @cached_property
    def layout(self) -> RowLayout:
        """The public shape of the coded rows."""
        return RowLayout(
            numbers=len(self.numbers),
            code_sizes=tuple(len(self.schema.listed(name)) for name in self.coded),
            classes=self.schema.classes,
            sensitive=self.schema.groups,
            sensitive_names=self.schema.sensitive,
            sensitive_as_features=tuple(
                name for name in self.schema.sensitive if name in self.features
            ),
        )

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """One name a coefficient of a linear model: numbers, then "column=value"."""
        indicators = (
            f"{name}={value}" for name in self.coded for value in self.schema.listed(name)
        )
        return (*(scale.name for scale in self.numbers), *indicators)

    def _affine(self, name: str) -> Affine:
        column = self.schema.columns[name]
        assert isinstance(column, Number)
        # Halves first: the sum of two bounds near the largest float would overflow.
        return Affine(name, column.low / 2 + column.high / 2, column.high / 2 - column.low / 2)

    def in_input_units(
        self, coefficients: npt.ArrayLike, intercept: npt.ArrayLike
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Coefficients (..., width) and intercept (...) of coded rows, for rows in the units of the
        input.

        w.z + b = sum_j (w_j / half_j) x_j + (b - sum_j w_j center_j / half_j) for every x inside
        the bounds; the target's own scale is not undone (see `target`).
        """
        weights, width = np.array(coefficients, dtype=np.float64), self.layout.width
        right, fix = (
            weights.shape[-1:] == (width,),
            "Pass the coefficients of a model of these rows.",
        )
        expected, got = f"{width} coefficients, one for each of feature_names", weights.shape
        need(right, expected, of="coefficients", got=got, fix=fix, error=SchemaError)
        count = len(self.numbers)
        weights[..., :count] /= np.array([scale.half for scale in self.numbers])
        shift = weights[..., :count] @ np.array([scale.center for scale in self.numbers])
        return weights, np.asarray(intercept, dtype=np.float64) - shift

    # Rows

    def needed(self, *, target: bool = True, sensitive: bool = True) -> tuple[str, ...]:
        """The columns of a table that are read, each once."""
        goal = (self.schema.target,) if target and self.schema.target else ()
        groups = self.schema.sensitive if sensitive else ()
        return tuple(dict.fromkeys((*self.features, *goal, *groups)))

    @property
    def wished(self) -> tuple[str, ...]:
        """The columns that are read where they are there: of rows to fit, whose each is."""
        unit = self.schema.unit
        return () if unit is None or self.schema.target is None else (unit,)

    def block(
        self,
        raw: Mapping[str, Raw],
        *,
        rows: int,
        first_row: int = 0,
        target: bool = True,
        sensitive: bool = True,
        shows_values: bool = True,
    ) -> RowBlock:
        """A run of rows, coded; one error for the faults of all its columns. `shows_values`:
        whether it shows the values that the schema does not cover."""
        schema, unit, wrong = self.schema, self.schema.unit, list[SchemaError]()

        def coded(name: str) -> Any:
            place = Place(name, first_row, schema.missing_values, shows_values)
            column: Any = schema.columns[name]
            of: Any = number_codes if isinstance(column, Number) else category_codes
            try:
                return of(raw[name], column, place)
            except SchemaError as error:
                wrong.append(error)
                return 0

        numbers = np.empty((len(self.numbers), rows), dtype=self.precision)
        for line, scale in zip(numbers, self.numbers, strict=True):
            line[:] = coded(scale.name)
        largest = max(self.layout.code_sizes, default=0)
        codes = np.empty((len(self.coded), rows), dtype=_code_type(largest))
        for row, name in zip(codes, self.coded, strict=True):
            row[:] = coded(name)
        labels = coded(schema.target) if target and schema.target is not None else None
        groups: npt.NDArray[np.uint16] | None = None
        if sensitive and schema.sensitive:
            groups = np.empty((len(schema.sensitive), rows), dtype=np.uint16)
            for group, name in zip(groups, schema.sensitive, strict=True):
                group[:] = coded(name)
        if wrong:
            raise together(wrong) from None
        persons = None if unit is None or unit not in raw else names_of(raw[unit])
        return RowBlock(numbers, codes, labels, groups, None, persons)

    # Files

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "fairveil_encoding": FORMAT,
            "schema": self.schema.to_dict(),
            "fingerprint": self.schema.fingerprint,
            "sensitive_as_feature": self.sensitive_as_feature,
            "precision": self.precision,
        }

    @staticmethod
    def from_dict(values: object) -> Encoding:
        """The inverse of `to_dict`; a schema that does not have the fingerprint written beside it
        is an error."""
        keys = {"fairveil_encoding", "schema", "fingerprint", "sensitive_as_feature", "precision"}
        known, fix = dict(values) if isinstance(values, Mapping) else {}, "Write it anew."
        came = sorted(map(str, known)) if known else values
        right = set(known) == keys and known["fairveil_encoding"] == FORMAT
        expected = f"exactly {sorted(keys)}, fairveil_encoding {FORMAT}"
        need(right, expected, of="encoding", got=came, fix=fix, error=SchemaError)
        beside, precision = known["sensitive_as_feature"], known["precision"]
        right, got = isinstance(beside, bool) and isinstance(precision, str), [beside, precision]
        expected = "true or false, and a precision"
        need(right, expected, of="encoding", got=got, fix=fix, error=SchemaError)
        encoding = Encoding(Schema.from_dict(known["schema"]), beside, precision)
        own, got = encoding.schema.fingerprint, known["fingerprint"]
        of, fix = "fingerprint of the schema", "It was changed by hand: write it anew."
        need(got == own, own, of=of, got=got, fix=fix, error=SchemaError)
        return encoding


def _code_type(largest: int) -> type[np.integer]:
    if largest <= 2**8:
        return np.uint8
    return np.uint16 if largest <= 2**16 else np.int32
