"""The one reader of an estimator's rows: what `fit` was given becomes the rows of a curator, and
what is public about them is listed with its origin, for the privacy statement.

A table is read by the facts of its schema; where there is none, its columns, classes, groups and
categories are read from the data, and the facts have that origin. Coded rows (`data.open`, shards,
another holder's) bring theirs. Everything is matched by position, never by an index. Columns of X
that are named as sensitive are no features, unless asked; nor is the column that tells persons
apart: a name says nothing that a model should learn. How many rows of a person are read is the
caller's to say.

A fit is planned by the very code that it runs by: `Unread` makes a `Training` of a schema alone.

Guarantees (tests/estimators: test_estimators_inputs.py, many_groups, persons, plan, sharded,
public_features; tests/methods/test_methods_reports.py):
1. Everything is checked before any release, and no error shows whose a row is or a cell that the
   caller did not hand in. A plan holds no row: a curator of it would have nothing to add up.
2. Groups that a schema or a source of rows states are compared with a constant alone: a refusal
   tells nothing of the rows. Those that are read from the data are compared with the number of
   rows, too, and listed as not covered; of classes the refusal does not say how many there are.
3. What is asked for persons is refused, before a row is read, where it names no one, has no number
   of rows, or is not the estimator's to give.
4. A drawn group (`SoftGroups`) depends on that row's distribution and its own coin alone.
5. A fit of shards is that of the same rows in memory, to the bit; what they cannot answer is refused.
6. A public feature that is a sensitive column over again is refused: it would be published exactly.
7. Another holder's labels, groups and weights are the holder's: others beside them are refused.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import assert_all_finite, column_or_1d

from .. import _checks
from .._types import ColumnsLike, Floats, Ints, TableLike
from ..core.errors import need
from ..core.extra.sharded import ShardedRows, Taking, refuse
from ..core.noise import NoiseSource
from ..core.persons import persons_of
from ..core.pricing import require_features_apart
from ..core.promise import Promise, Unit
from ..curator import Rows
from ..data import Encoding, encode
from ..data.elsewhere import Elsewhere
from ..errors import (
    InputError,
    KindError,
    OtherGroups,
    PrivacyError,
    SchemaError,
    UnstatedBounds,
    complaint,
    within,
)
from ..facts import Cells, RowBlock, RowLayout, RowSource, Schema
from ..facts.columns import Boolean, Category, Number
from ..facts.reports import ABOUT_ONE, Reports
from ..facts.rows import PERSON_BY_PERSON, CodedSource, Traits, held_blocks, schema_of, traits_of
from ..methods.forecast import Supposed
from ..models.model import known_classes
from ..statement.document import Origin, PublicFact
from ..statement.form import READ_FROM_DATA
from ..tables.columns import (
    Listed,
    Plain,
    Raw,
    as_array,
    distinct,
    in_words,
    is_missing,
    name_of,
    read_columns,
    read_weights,
    refuse_other_kinds,
    same_length,
)
from ..tables.frames import Table, grid_of, numbers_of, refuse_duplicates, table_of
from .cautions import is_inside, outside
from .coding import (
    BLOCK_ROWS,
    CODINGS,
    Additive,
    Coding,
    Feature,
    RowsCoding,
    SchemaCoding,
    Standard,
    TableCoding,
    Usual,
    words_of,
)
from .settings import stated

THIN = 0.25
"""Below this share of numbers that are not zero a dense matrix is kept sparse."""


# ------------------------------ labels, targets and groups as users hold them


def read_labels(y: ColumnsLike) -> npt.NDArray[Any]:
    """Labels as one array, from any container; a column of shape (rows, 1) warns, as in
    scikit-learn."""
    labels = _one_column(y, "class")
    if labels.dtype.kind == "O":
        known = str | int | float | np.generic
        strange = sorted({type(one).__name__ for one in labels if not isinstance(one, known)})
        expected, fix = "texts, numbers or truth values", "Make texts of them first."
        fix = f"{fix} Unknown label type."
        need(not strange, expected, of="y", got=strange, fix=fix, error=KindError)
    whole = labels.dtype.kind != "f" or bool((labels == np.floor(labels)).all())
    fix = "Unknown label type: continuous. Make classes of a number first."
    need(whole, "classes", of="y", got="fractions", fix=fix)
    return labels


def read_targets(y: ColumnsLike) -> npt.NDArray[np.float64]:
    """Targets that are numbers, as one array, from any container."""
    targets, found = _one_column(y, "number"), np.empty(0)
    listed = targets.tolist() if targets.dtype.kind == "O" else ()
    numbers = targets.dtype.kind in "biufO" and not any(isinstance(v, str | bytes) for v in listed)
    try:
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite
            found = targets.astype(np.float64) if numbers else found
    except (TypeError, ValueError, OverflowError):
        numbers = False
    fix = "Fit a classifier to words; turn dates and the like into numbers first."
    need(numbers, "numbers", of="y", got="others", fix=fix)
    # objects that are NaN or infinite
    fix = "Input y contains infinity or NaN: fill such targets in, or leave their rows out."
    finite = bool(np.isfinite(found).all())
    need(finite, "a finite number a row", of="y", got="others", fix=fix)
    return found


def _one_column(y: ColumnsLike, of: str) -> npt.NDArray[Any]:
    """One column without missing values; scikit-learn's words for what is wrong are kept."""
    fix = "This estimator requires y to be passed, but the target y is None."
    need(y is not None, "one label a row", of="y", got=None, fix=fix)
    if isinstance(y, list | tuple):
        mixed = len({type(value) for value in y}) > 1
        y = as_array(y, "y", dtype=object if mixed else None)
    elif not isinstance(y, np.ndarray):
        columns = list(read_columns(y).values())
        got, fix = f"{len(columns)} columns", "Pass one column of labels."
        need(len(columns) == 1, "one label a row", of="y", got=got, fix=fix)
        y = columns[0]
    y = as_array(y, "y")
    refuse_other_kinds(y, "y", bytes_too=False)
    try:
        labels: npt.NDArray[Any] = column_or_1d(y, warn=True)
        if labels.dtype.kind != "O":
            assert_all_finite(labels, input_name="y")
        elif not set(map(type, labels)) <= {str, bool, int} and any(map(is_missing, labels)):
            raise ValueError("Input y contains NaN or None.")
    except ValueError as error:
        raise InputError.expected(
            f"one {of} a row, none missing", of="y", got="others", remedy=f"{error}"
        ) from None
    return labels


def names_in(sensitive: object) -> tuple[str, ...] | None:
    """The names that were given, or None where columns were."""
    if isinstance(sensitive, str):
        return (sensitive,)
    if not isinstance(sensitive, (list, tuple)) or len(sensitive) == 0:
        return None
    return tuple(sensitive) if all(isinstance(item, str) for item in sensitive) else None


def no_such_columns(
    strange: Sequence[str], names: Sequence[str], there: Sequence[str]
) -> InputError:
    """The error of names that are no columns of X, or are named twice."""
    known = f"names out of {list(there)}" if there else "columns: an array has no names"
    known = known if strange else f"each column once, of {list(there)}"
    remedy = "Pass the sensitive columns themselves, or X as a data frame that has them."
    got = strange or list(names)
    one: Any = got[0] if len(got) == 1 else got
    return InputError.expected(known, of="sensitive_features", got=one, remedy=remedy, among=there)


def coded_groups(
    columns: Mapping[str, Raw], rows: int, listed: tuple[Hashable, ...] | None = None
) -> tuple[tuple[tuple[Hashable, ...], ...], npt.NDArray[np.uint16]]:
    """The groups of each sensitive column, sorted, and each row's codes. `listed`: those of the one
    column, where they were stated, in that order."""
    of = {name: f"sensitive column {name!r}" for name in columns}
    same_length({"X": rows} | {of[name]: column.rows for name, column in columns.items()})
    codes = np.empty((len(columns), rows), np.uint16)
    groups = []
    for line, (name, column) in zip(codes, columns.items(), strict=True):
        values, line[:] = distinct(column, of[name])
        if listed is not None:
            line[:] = np.array([listed.index(value) for value in values], np.uint16)[line]
        groups.append(values if listed is None else listed)
    require_few_values(dict(zip(columns, map(len, groups), strict=True)), rows)
    return tuple(groups), codes


def named_as_declared(sensitive: ColumnsLike, schema: Schema) -> dict[str, Any]:
    """Given columns under the schema's names: by name where all names fit, else in the schema's
    order."""
    columns, declared = read_columns(sensitive), schema.sensitive
    if set(columns) == set(declared):
        return dict(columns)
    expected = f"the schema's {len(declared)} sensitive columns {list(declared)}"
    of, fix = "sensitive_features", "Declare each sensitive column, and its groups, in the schema."
    need(len(columns) == len(declared), expected, of=of, got=list(columns), fix=fix)
    return dict(zip(declared, columns.values(), strict=True))


def weights_of(
    sample_weight: ColumnsLike, rows: int, *, are_private: bool = False
) -> npt.NDArray[np.float64] | None:
    """The weights of a fit, checked; None where all rows count once. Private ones may all be zero,
    as a table may be empty: a refusal would tell of one row."""
    weights = read_weights(sample_weight, rows, of="X")
    some = are_private or weights is None or not len(weights) or bool(weights.any())
    fix = "Sample weights must contain at least one number that is not zero."
    need(some, "some weight", of="sample_weight", got="zeros alone", fix=fix)
    return weights


@dataclass(frozen=True, eq=False, repr=False)  # it holds what is private
class SoftGroups:
    """A distribution over groups for each row, such as one from surname and place.

    `release_groups` takes it as `sensitive_features`. It draws one group for each row from that
    row's distribution, by secret coins, and counts the drawn groups. What is estimated are sums of
    these distributions, never the true groups (docs/theory/attribute_holder.md).

    Parameters
    ----------
    shares : array of shape (n_rows, n_groups)
        Probabilities; lines sum to 1.
    groups : sequence
        The groups, in the order of the columns.

    See Also
    --------
    release_groups : Takes it.
    Reports : Groups that were flipped with known rates.

    Examples
    --------
    >>> soft = SoftGroups([[0.9, 0.1], [0.2, 0.8]], ("a", "b"))
    >>> soft.rows
    2
    """

    shares: Floats
    groups: tuple[Hashable, ...]

    def __post_init__(self) -> None:
        shares, groups = np.array(self.shares, np.float64), tuple(self.groups)
        right = shares.ndim == 2 and shares.shape[1] == len(groups) >= 2
        right = right and len(set(groups)) == len(groups)
        right = right and bool(np.isfinite(shares).all() and (shares >= 0).all())
        right = right and np.abs(shares.sum(axis=1) - 1.0).max(initial=0.0) <= ABOUT_ONE
        got = f"an array of shape {shares.shape}, or lines of another sum"
        fix = "Pass one column for each group, probabilities that sum to 1 in every row."
        need(right, "probabilities of groups", of="shares", got=got, fix=fix, quote=False)
        _checks.normalise(self, shares=shares, groups=groups)

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.shares)

    @property
    def reports(self) -> Reports:
        """What drawn groups are: exact on average, and by chance."""
        exact = tuple(map(tuple, np.eye(len(self.groups)).tolist()))
        return Reports(self.groups, exact, drawn=True)

    def drawn(self, source: NoiseSource) -> Any:
        """One group a row, as a column of groups; guarantee 4.

        Parameters
        ----------
        source : NoiseSource
            Where coins come from.

        Returns
        -------
        ndarray
            The drawn groups.
        """
        coins = source.stream("sampling", "groups").words(self.rows) / 2.0**64
        ends = np.cumsum(self.shares, axis=1)[:, :-1]
        out = np.empty(self.rows, dtype=object)
        out[:] = [self.groups[j] for j in (coins[:, np.newaxis] >= ends).sum(axis=1).tolist()]
        return out


# ------------------------------ how many groups and classes rows can carry
# A group of a few rows has rates that drown in the noise, and work grows with the square of the
# groups: an income, or a date of birth, that is named as sensitive would cost hours and gigabytes.

MOST_CELLS = 1000
"""Cells at most, whoever states the groups."""
FEWEST_ROWS = 5
"""How many rows there must be for each group, on the average, where groups are read from the
data."""
MOST_NUMBERS = 20
"""Classes at most that are numbers, where they are read from the data: more are a quantity."""
ALWAYS = 16
"""So many groups are never too many."""
OTHERS = 'Category([...], unknown="other")'


def most_groups(rows: int) -> int:
    """How many groups may be read from so many rows.

    >>> most_groups(40), most_groups(1000), most_groups(10**9)
    (16, 200, 1000)
    """
    return min(MOST_CELLS, max(ALWAYS, rows // FEWEST_ROWS))


def require_few_values(sizes: Mapping[str, int], rows: int) -> None:
    """Distinct values of sensitive columns that were read from the data."""
    most = most_groups(rows)
    expected = f"at most {most} groups, which is what {rows:,} rows can carry"
    fix = (
        "Make ranges of a number first (ages by decade, for example). Or declare the frequent "
        f"values in a schema, where one value stands for the others: {OTHERS}."
    )
    for name, size in sizes.items():
        of, got = f"sensitive column {name!r}", f"{size:,} distinct values"
        need(size <= most, expected, of=of, got=got, fix=fix, quote=False)


def require_few_classes(classes: Sequence[Hashable], rows: int) -> None:
    """Classes that were read from the data: a number that was meant for a regressor has dozens, and
    work grows with their square. Neither a value nor how many there are is shown."""

    def is_numeral(value: Any) -> bool:
        try:
            float(value)
        except (TypeError, ValueError):
            return False
        return True

    most, got = most_groups(rows), "more values, and no schema"
    if all(map(is_numeral, classes)):
        most, got = min(most, MOST_NUMBERS), "a number with more, and no schema"
    expected = f"a schema that lists the classes, or at most {most} distinct values"
    fix = (
        "Without a schema classes are read from the data, not covered. Fit a regressor to a number "
        "(FairRegressor), make ranges of it, or declare its classes: "
        "Schema({'grade': Category([...])}, target='grade')."
    )
    need(len(classes) <= most, expected, of="y", got=got, fix=fix, quote=False)


def groups_of(training: Training, mode: str = "product", *, either: bool = True) -> Cells | None:
    """The cells of a fit's sensitive columns; None where there are none. `either`: whether the user
    may choose the mode. Guarantee 2."""
    if not training.rows.layout.sensitive:
        return None
    cells = training.rows.cells(mode)
    named = [fact for fact in training.facts if fact.name.startswith("groups of ")]
    most, carried = MOST_CELLS, "whoever states them"
    if any(fact.origin == READ_FROM_DATA for fact in named):
        rows = training.exact_rows
        most, carried = most_groups(rows), f"which is what {rows:,} rows can carry"
    sizes = zip(cells.names, cells.sizes, strict=True)
    got = f"{cells.count:,} ({', '.join(f'{name!r}: {size}' for name, size in sizes)})"
    fix = f"Merge values that are rare: {OTHERS} in a schema, or ranges of a number."
    if either and mode == "product" and len(cells.columns) > 1:
        fix += " Or look at one column at a time: groups='marginal', in the constraint or the "
        fix += "estimator."
    expected = f"at most {most:,} groups, {carried}"
    need(cells.count <= most, expected, of="sensitive_features", got=got, fix=fix, quote=False)
    return cells


def need_classes(layout: RowLayout) -> None:
    """An error where labels are numbers, or all alike."""
    classes = layout.classes or ()
    got = f"one class: {in_words(classes)}" if classes else "numbers"
    fix = "Declare the target a Category, or fit a FairRegressor."
    if classes:
        fix = "Pass labels of at least two classes; a schema may list classes that do not occur."
    need(len(classes) >= 2, "labels of at least two classes", of="y", got=got, fix=fix)
    known_classes(classes)


# ------------------------------ whose each row is


@dataclass(frozen=True, eq=False, repr=False)  # it may hold whose each row is
class Whose:
    """What a promise says of persons, and where whose each row is comes from: `column`, a name in
    X, or `values`, one a row."""

    unit: Unit
    column: str | None = None
    values: Any = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of X that are no features."""
        return () if self.column is None else (self.column,)

    def of_table(self, X: TableLike, grid: Table | None, rows: int) -> Any:
        """One value a row, from X as it was given; what is missing or of another length is refused
        where rows are made. Coded rows know whose they are, or do not."""
        name = self.column
        if name is None:
            return self.values
        if isinstance(X, RowSource):
            schema = schema_of(X)
            own = None if schema is None else schema.unit
            got = f"rows that know {'no column' if own is None else repr(own)}"
            fix = (
                f"Encode a table with it, by schema.with_unit({name!r}); or pass one value a row: "
                f"unit=ids."
            )
            need(own == name, f"rows coded with {name!r}", of="unit", got=got, fix=fix, quote=False)
            return None
        if grid is not None and grid.named and name in grid.names:
            return _values(grid.column(name))
        has_names = isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")
        if grid is None and has_names and name in (table := table_of(X)).names:
            return _values(table.run(name, 0, rows))
        known = list(grid.names) if grid is not None and grid.named else "no such column"
        remedy = f"Name a column of X, or pass one value a row: unit=ids. X has {known}."
        raise InputError.expected("a column of X", of="unit", got=name, remedy=remedy)


def _values(raw: Raw) -> Any:
    """A column's values, None where one is missing."""
    if isinstance(raw, Listed):
        names: list[Any] = [*raw.values, None]
        return np.array(names, object)[np.where(raw.at < 0, len(raw.values), raw.at)]
    if raw.null is None or not raw.null.any():
        return raw.values
    values = raw.values.astype(object)
    values[raw.null] = None
    return values


def persons_asked(estimator: BaseEstimator) -> Whose | None:
    """What an estimator's schema says of persons, checked."""
    return whose(None, None, estimator._facts, estimator.epsilon)


def whose(
    unit: ColumnsLike, most: int | None, schema: object, epsilon: object = 1.0
) -> Whose | None:
    """The same of arguments; guarantee 3."""
    known = schema if isinstance(schema, Schema) else Schema()
    given: Any = known.unit if unit is None else unit
    most = known.max_rows_per_unit if most is None else most
    of = "max_rows_per_unit"
    if given is None:
        fix = "Name the column that tells persons apart: unit='patient'."
        need(most is None, "None without a unit", of=of, got=most, fix=fix)
        return None
    fix = (
        "Pass max_rows_per_unit=12, for example: a number that is public, never the largest among "
        "the rows."
    )
    told = most is not None or epsilon == float("inf")
    need(told, "the most rows of one person to read", of=of, got=None, fix=fix)
    if isinstance(given, str):
        _require_no_role(given, known)
        return Whose(Unit(given, most), column=given)
    if isinstance(given, Mapping) and len(given) == 1 and isinstance(next(iter(given)), str):
        ((name, values),) = given.items()
        _require_no_role(name, known)
        return Whose(Unit(name, most), values=values)
    if hasattr(given, "to_numpy") and (name := name_of(given)):
        return Whose(Unit(name, most), values=given)
    a_row = hasattr(given, "__len__") or hasattr(given, "to_numpy")
    right = a_row and not isinstance(given, bool | int | float)
    fix = "Pass unit='patient', the name of a column of X, or one value a row."
    need(right, "a name, or one value a row", of="unit", got=given, fix=fix)
    return Whose(Unit("person", most), values=given)


def _require_no_role(name: str, schema: Schema) -> None:
    if name != schema.unit and name in schema.columns:
        schema.with_unit(name)  # which says what is wrong with its role


def person_numbers(told: Whose, X: TableLike, rows: int) -> Ints:
    """Whose each row of a table in memory is, as numbers from 0 by first appearance: for parts that
    are set aside by person."""
    values = told.of_table(X, None, rows)
    if isinstance(X, RowSource) and values is None:
        found = [block.persons for block in X.blocks()]
        apart = not any(one is None or one.dtype == PERSON_BY_PERSON for one in found)
        fix = "Pass a table in memory, in place of one that is coded person by person."
        expected = "rows whose persons can be set aside"
        need(apart, expected, of="X", got="a store", fix=fix)
        values = np.concatenate([one for one in found if one is not None])
    return persons_of(values, rows)


def refuse_persons(estimator: BaseEstimator, got: str = "") -> None:
    """Of an estimator that protects rows alone, whose sums are not bounded by person."""
    told, of = estimator._facts.unit, f"{type(estimator).__name__}{got}"
    expected = "unit=None: it protects rows, not persons"
    fix = "Fit a linear or an additive model, which protects persons; or give each person one row."
    need(told is None, expected, of=of, got=told, fix=fix, error=PrivacyError)


def require_heeded(schema: Schema | None, told: Whose | None) -> None:
    """A schema that says who is protected is not read by what protects rows alone."""
    unit = None if schema is None else schema.unit
    fix = "What is asked for protects rows, not persons: pass schema.without_unit() to accept that."
    of, got, error = "schema", f"unit={unit!r}", PrivacyError
    right = unit is None or told is not None
    need(right, "a schema of rows", of=of, got=got, fix=fix, error=error)


def require_apart(column: str | None, sensitive: tuple[str, ...]) -> None:
    """Nobody's name is a group."""
    apart = column is None or column not in sensitive
    fix = "Name another column of groups; the unit tells persons apart."
    need(apart, "a column that is no sensitive feature", of="unit", got=column, fix=fix)


# ------------------------------ targets that are numbers
# Where records are protected bounds are stated (by a schema or an argument) or, as asked and as the
# statement says, read from the rows; without any a target is cut to [-1, 1], with a warning. Where it
# is public, or nothing is private, its own range will do.


@dataclass(frozen=True)
class TargetScale:
    """code = (min(max(y, low), high) - centre) / half, in [-1, 1]. `origin`: where the bounds come
    from.

    >>> scale = TargetScale(0.0, 10.0)
    >>> scale.coded([0.0, 5.0, 12.0]).tolist(), scale.undone([-1.0, 0.5]).tolist()
    ([-1.0, 0.0, 1.0], [0.0, 7.5])
    """

    low: float
    high: float
    origin: Origin = "argument"

    @property
    def centre(self) -> float:
        """Half way between the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half their distance; 1 where they are one number."""
        return self.high / 2 - self.low / 2 or 1.0

    def coded(self, targets: npt.ArrayLike) -> Floats:
        """Targets in [-1, 1]."""
        cut = np.clip(np.asarray(targets, np.float64), self.low, self.high)
        return np.clip((cut - self.centre) / self.half, -1.0, 1.0)

    def undone(self, codes: npt.ArrayLike) -> Floats:
        """Predictions in the units of the input."""
        return np.asarray(codes, np.float64) * self.half + self.centre

    def in_input_units(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercept of a model that predicts codes, for predictions in the units
        of the input."""
        return weights * self.half, intercept * self.half + self.centre

    def fact(self) -> PublicFact:
        """For the statement."""
        return PublicFact("bounds of the target", f"{self.low:g} to {self.high:g}", self.origin)


@dataclass(frozen=True)
class NumericTarget:
    """How a target that is a number is read. `bounds`: as given. `open_range`: its range is public,
    or nothing is private.

    `unsafe`: without other bounds the range of private targets is read all the same, as was asked.
    `as_number`: the rows of the curator have the target as their last number, too, to be scaled
    with the others.
    """

    bounds: tuple[float, float] | None = None
    open_range: bool = False
    unsafe: bool = False
    as_number: bool = False

    @staticmethod
    def of(facts: Schema, promise: Promise, *, as_number: bool) -> NumericTarget:
        """As a schema and a promise say."""
        public, unsafe = promise.features_are_public, facts.unsafe_data_dependent_bounds
        return NumericTarget(facts.target_bounds, public, unsafe, as_number)

    def scale(self, targets: Floats) -> TargetScale:
        """The scale of targets as they came."""
        if self.bounds is not None:
            return TargetScale(*self.bounds, "schema")
        if self.open_range or self.unsafe:
            origin: Origin = "public features" if self.open_range else READ_FROM_DATA
            if len(targets):
                return TargetScale(float(targets.min()), float(targets.max()), origin)
        else:
            text = complaint(
                expected="public bounds of the target, which protected targets must not say "
                "themselves",
                of="target_bounds",
                got=None,
                remedy="They were taken to be in [-1, 1], as numbers without a schema are, and cut "
                "to it. Pass schema=Schema(target_bounds=(low, high)), or a schema whose target is a "
                "Number(low, high); with unsafe_data_dependent_bounds=True it reads them from the "
                "rows, and says so.",
            )
            warnings.warn(text, UnstatedBounds, stacklevel=2)
        return TargetScale(-1.0, 1.0, "library default")

    def refuse_both(self) -> None:
        """A schema states the bounds of its target: they are not given twice."""
        fix, got = "Leave it out: the schema's target has its bounds.", self.bounds
        need(got is None, "None beside a schema", of="target_bounds", got=got, fix=fix)


def scale_of(encoding: Encoding) -> TargetScale:
    """The scale by which a schema codes its target."""
    column = encoding.schema.columns[encoding.schema.target or ""]
    assert isinstance(column, Number)
    return TargetScale(column.low, column.high, "schema")


def need_number(is_number: bool, of: str) -> None:
    """An error where a target is one of several classes."""
    fix = "Declare the target a Number(low, high), or fit a classifier."
    need(is_number, "a target that is a number", of=of, got="classes, or none", fix=fix)


def beside(block: RowBlock) -> RowBlock:
    """The target as the last number."""
    assert block.labels is not None
    line = np.asarray(block.labels, np.float64)
    if sparse.issparse(block.numbers):
        parts: list[Any] = [block.numbers, sparse.csr_array(line[:, np.newaxis])]
        return replace(block, numbers=sparse.csr_array(sparse.hstack(parts)))
    numbers = np.asarray(block.numbers, np.float64)
    return replace(block, numbers=np.concatenate([numbers, line[np.newaxis]]))


def _cut(block: RowBlock) -> RowBlock:
    """A block of a schema, its targets cut to the [-1, 1] that their encoding promises."""
    if block.labels is None:
        return block
    return replace(block, labels=np.clip(block.labels, -1.0, 1.0))


# ------------------------------ rows of a fit


@dataclass(frozen=True)
class ReadOptions:
    """How rows are to be read: the arguments of an estimator that say so.

    `features_are_public`: sensitive features alone are protected, so no feature may be one of them.
    `groups`: those of the one sensitive column, where they were stated without a schema. `thin`:
    numbers are never shifted inside, so mostly empty ones may be kept sparse, which is
    faster and gives the same bits. `target`: how y is read where it is a number; None: it is one of
    several classes. `additive`: the steps that are wanted, if any; whether there are to be steps
    may hang on the number of rows, where that was passed (`public_rows`) or is public.
    """

    schema: Schema | None = None
    sensitive_as_feature: bool = False
    standardise: bool = False
    max_sample_weight: float = 1.0
    features_are_public: bool = False
    thin: bool = False
    target: NumericTarget | None = None
    additive: Additive | None = None
    public_rows: int | None = None
    rows_are_public: bool = False
    whose: Whose | None = None
    groups: tuple[Hashable, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Training:
    """The rows of a fit, and what is public about them.

    `columns`: the names of X's columns (with a schema, of those that are features), none where X
    had no names. `n_features`: how many such columns there are. `rows_stated`: the schema's number
    of rows, if any. `target`: the scale of a target that is a number. `schema`: as it was given, or
    as coded rows have it. `supposed`: of a plan, how many rows there may be: it has none.
    """

    rows: Rows
    coding: Coding
    facts: tuple[PublicFact, ...]
    not_covered: tuple[str, ...]
    columns: tuple[str, ...]
    n_features: int
    rows_stated: int | None = None
    target: TargetScale | None = None
    schema: Schema | None = None
    supposed: int | None = None

    @property
    def exact_rows(self) -> int:
        """How many rows there are; of a plan, which has none, how many are supposed."""
        return self.rows.exact_count if self.supposed is None else self.supposed

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.rows.layout.classes or ()


@dataclass(frozen=True, eq=False, repr=False)
class Coded:
    """Coded rows with their weights, as a `RowSource`. `of`: what the source that they come from
    tells of itself."""

    layout: RowLayout
    _blocks: Iterable[RowBlock]
    of: Traits = field(default_factory=Traits)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows."""
        return iter(self._blocks)

    @property
    def traits(self) -> Traits:
        """Of a file: that it is one, and the error where it has changed."""
        return Traits(is_mapped=self.of.is_mapped, require_same=self.of.require_same)


class Blocks:
    """Blocks on their way to the curator, changed one by one.

    `of` a source: its blocks are held, in memory or as views of a file; those of one that
    `is_streamed` are read, and changed, at every pass; those of one that `is_sharded` are not here,
    and `changes` travel to them.
    """

    def __init__(self, held: Iterable[RowBlock] | None, source: Any = None, *changes: Any) -> None:
        self._held = None if held is None else list(held)
        self.source, self.changes = source, changes
        self.are_sharded, self.are_streamed = traits_of(source).is_sharded, held is None

    @staticmethod
    def of(source: RowSource) -> Blocks:
        """All blocks of a source of rows."""
        traits = traits_of(source)
        away = traits.is_streamed or traits.is_sharded
        return Blocks(None if away else held_blocks(source), source)

    @property
    def rows(self) -> int:
        """How many rows are here."""
        return sum(block.rows for block in self)

    def then(self, change: Callable[[RowBlock], RowBlock]) -> Blocks:
        """The same, each changed so."""
        if self._held is not None:
            return Blocks(map(change, self._held), self.source)
        return Blocks(None, self.source, *self.changes, change)

    def __iter__(self) -> Iterator[RowBlock]:
        if self._held is not None:
            yield from self._held
        elif not self.are_sharded:
            for block in self.source.blocks():
                for change in self.changes:
                    block = change(block)
                yield block


@dataclass(frozen=True, eq=False, repr=False)
class _Found:
    """Blocks without weights, how features were coded, and what is public."""

    coding: Coding
    layout: RowLayout
    blocks: Blocks
    facts: list[PublicFact]
    columns: tuple[str, ...]
    n_features: int
    target: TargetScale | None = None
    grid: Table | None = None


def read(
    X: Any,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
) -> Training:
    """The rows of a fit, checked before any release."""
    if isinstance(X, Elsewhere):
        return training_of(X, y, sensitive_features, sample_weight, ways)
    schema = schema_of(X) if ways.schema is None else ways.schema
    require_heeded(schema, ways.whose)
    for of, table in (("X", X), ("sensitive_features", sensitive_features)):
        refuse_duplicates(table, of)
    if isinstance(X, RowSource):
        found = _from_rows(X, y, sensitive_features, ways)
    elif ways.schema is not None:
        found = _by_schema(X, y, sensitive_features, ways.schema, ways)
    else:
        found = _as_it_comes(X, y, sensitive_features, ways)
    if ways.target is None:
        need_classes(found.layout)
    coding, layout, blocks, facts = found.coding, found.layout, found.blocks, found.facts
    from_table, stated_rows, shards = isinstance(coding, TableCoding), ways.public_rows, None
    if stated_rows is not None:
        facts[:] = [fact for fact in facts if fact.name != "number of rows"]
        facts.append(PublicFact("number of rows", str(stated_rows), "schema"))
    elif isinstance(coding, SchemaCoding):
        stated_rows = coding.encoding.schema.rows
    if blocks.are_sharded:
        for given, got in (
            (sample_weight is not None, "sample_weight, one a row"),
            (ways.whose is not None and ways.whose.column is None, "unit=, one value a row"),
            (ways.standardise, "unsafe_data_dependent_bounds=True"),
        ):
            if given:
                refuse(got)
        shards = X.shards()
    if ways.additive is not None:
        known = stated_rows
        if ways.rows_are_public:
            known = blocks.rows if shards is None else sum(shards.counts)
        coding, layout = _with_steps(ways, facts, coding, layout, known, blocks)
        if coding.shapes is not None:
            blocks = blocks.then(coding.shapes.apply)
    not_covered: tuple[str, ...] = ()
    if ways.standardise:
        standard = Standard.of(blocks, found.layout.numbers)
        coding, blocks = replace(coding, standard=standard), blocks.then(standard.apply)  # type: ignore[type-var]
        not_covered = _of_scale(facts, ways)
    if found.target is not None:
        facts.append(found.target.fact())
        if found.target.origin == READ_FROM_DATA:
            words = "the bounds of the target are its own range, as asked by"
            not_covered += (f"unsafe: {words} unsafe_data_dependent_bounds=True",)
    if ways.thin and from_table and coding.standard is None:
        blocks = blocks.then(_thinned)
    if sample_weight is not None:
        are_private = not from_table and not ways.features_are_public
        weights = weights_of(sample_weight, blocks.rows, are_private=are_private)
        blocks = Blocks(_with_weights(blocks, weights), blocks.source)
    if ways.target is not None and ways.target.as_number:
        layout, blocks = replace(layout, numbers=layout.numbers + 1), blocks.then(beside)
    rows = _rows_of(X, found, ways, layout, blocks, shards)
    if ways.features_are_public:
        names = found.coding.names_coded
        if isinstance(rows, ShardedRows):
            _refuse_copies_in_shards(rows, found.layout, names)
        else:
            refuse_copies(found.blocks, found.layout, names)
        if rows.weighted:
            if sample_weight is not None:
                refuse_weights(blocks, layout)
            words = "public: must not depend on the sensitive columns"
            facts.append(PublicFact("sample weights", words, "argument"))
    return Training(
        rows,
        coding,
        tuple(facts),
        not_covered,
        found.columns,
        found.n_features,
        stated_rows,
        found.target,
        schema,
    )


def _as_it_comes(X: TableLike, y: ColumnsLike, sensitive: Any, ways: ReadOptions) -> _Found:
    """A table without a schema: what is public about its columns is read from the data."""
    grid, number, listed = grid_of(X), ways.target, ways.groups
    labels = read_labels(y) if number is None else read_targets(y)
    same_length({"X": grid.rows, "y": len(labels)})
    classes: tuple[Hashable, ...] | None = None
    scale = None if number is None else number.scale(labels)
    codes: Any = None if scale is None else scale.coded(labels)
    if scale is None:
        classes, codes = distinct(Plain(labels), "y")
        require_few_classes(classes, grid.rows)
    columns = _sensitive_columns(sensitive, grid)
    groups, group_codes = coded_groups(columns, grid.rows, listed)
    # also where they were given as columns: by their names
    unit = None if ways.whose is None else ways.whose.column
    taken = {unit, *(() if ways.sensitive_as_feature else columns)}
    names = [name for name in grid.names if not grid.named or name not in taken]
    features = tuple(Feature(name, _words_of(grid, name)) for name in names)
    fix = "Pass features beside the sensitive columns, or sensitive_as_feature=True."
    need(features, "at least one feature", of="X", got="sensitive columns only", fix=fix)
    coding = TableCoding(features, grid.names)
    layout = replace(
        coding.layout,
        classes=classes,
        sensitive=groups,
        sensitive_names=tuple(columns),
        sensitive_as_features=tuple(name for name in names if name in columns),
    )
    of_groups: Origin = READ_FROM_DATA if listed is None else "argument"
    facts = [
        PublicFact("number of features", str(len(features)), READ_FROM_DATA),
        *_roles(layout, READ_FROM_DATA, of_groups),
    ]
    facts += [
        PublicFact(f"categories of {in_words([name])}", in_words(values), READ_FROM_DATA)
        for name, values in coding.words_known
    ]
    blocks, a = [], 0
    for block in coding.grid_blocks(grid):
        b = a + block.rows
        part = np.ascontiguousarray(group_codes[:, a:b])
        blocks.append(replace(block, labels=codes[a:b], sensitive=part))
        a = b
    named = grid.names if grid.named else ()
    return _Found(coding, layout, Blocks(blocks), facts, named, len(grid.names), scale, grid)


def _sensitive_columns(sensitive: Any, grid: Table) -> dict[str, Raw]:
    """By name in X, or as they were given. A list of texts as long as X that are not its columns is
    a column of groups."""
    names = names_in(sensitive)
    as_groups = not isinstance(sensitive, str) and len(names or ()) == grid.rows
    if names is None or (as_groups and set(names) - set(grid.names)):
        given = {} if sensitive is None else read_columns(sensitive)
        return {name: Plain(column) for name, column in given.items()}
    strange = [name for name in names if not grid.named or name not in grid.names]
    if strange or len(set(names)) != len(names):
        raise no_such_columns(strange, names, grid.names if grid.named else ())
    return {name: grid.column(name) for name in names}


def _words_of(grid: Table, name: str) -> Any:
    """The distinct values of a column of words; None of one of numbers."""
    if grid.matrix is not None or numbers_of(grid.column(name), f"column {name!r}") is not None:
        return None
    return distinct(grid.column(name), f"column {name!r}")[0]


def _by_schema(
    X: TableLike, y: ColumnsLike, sensitive: Any, schema: Schema, ways: ReadOptions
) -> _Found:
    """A table by the facts of its schema."""
    names, given, number = names_in(sensitive), None, ways.target
    declared = schema.sensitive
    if names is not None:
        unused = [name for name in declared if name not in names]
        schema = schema.with_roles(sensitive=names).without(*unused)
        if declared and not set(names) <= set(declared):
            left = f", and {in_words(unused)} is no feature either" if unused else ""
            _warn_of_others(names, declared, f"These make the groups now{left}.")
    elif sensitive is not None:
        given = named_as_declared(sensitive, schema)
        known = [name for name in read_columns(sensitive) if name in schema.columns]
        if not set(known) <= set(declared):
            taken = f"They were read as {in_words(declared)}, in this order."
            _warn_of_others(known, declared, taken)
    if sensitive is None and schema.sensitive and not _has_columns(X, schema.sensitive):
        schema = schema.without(*schema.sensitive)
    labels = None if y is None else read_labels(y) if number is None else read_targets(y)
    fix = 'Say which column y is, and its classes: Schema(columns, target="hired"), for example.'
    there = y is None or schema.target is not None
    need(there, "a schema with a target", of="schema", got=schema, fix=fix)
    encoding = Encoding(schema, ways.sensitive_as_feature)
    if number is not None:
        need_number(encoding.target is not None, "the schema's target")
    coded = encode(
        X,
        schema,
        names=encoding.features,
        target=labels,
        sensitive=given,
        sensitive_as_feature=ways.sensitive_as_feature,
        block_rows=BLOCK_ROWS,
    )
    features = encoding.features if _has_columns(X, encoding.features) else ()
    return _Found(
        SchemaCoding(encoding),
        coded.layout,
        Blocks.of(coded),
        facts_of_schema(encoding),
        features,
        len(encoding.features),
        None if number is None else scale_of(encoding),
    )


def _from_rows(source: RowSource, y: Any, sensitive: Any, ways: ReadOptions) -> _Found:
    """Rows that are coded already, with labels and groups."""
    layout, number, names, by = source.layout, ways.target, names_in(sensitive), schema_of(source)
    asked = ways.schema
    other = asked is not None and by is not None and asked.fingerprint != by.fingerprint
    other |= y is not None or (sensitive is not None and names is None)
    fix = (
        "Leave y, sensitive_features and schema out: pass only the names of sensitive columns "
        "among the source's."
    )
    need(not other, "labels and groups from the rows", of="X", got="others beside", fix=fix)
    blocks = Blocks.of(source)
    if names is not None:
        known, of = list(layout.sensitive_names), "sensitive_features"
        strange = [name for name in names if name not in known]
        fix = "Code the rows with these columns declared sensitive."
        need(not strange, f"names among {known}", of=of, got=strange, fix=fix)
        at = [known.index(name) for name in names]
        chosen = tuple(layout.sensitive[j] for j in at)
        layout = replace(layout, sensitive=chosen, sensitive_names=tuple(names))
        blocks = blocks.then(partial(_of_columns, at))
    if number is not None:
        labelled = layout.classes is None and all(block.labels is not None for block in blocks)
        need_number(labelled, "X")
    encoding, scale = source.encoding if isinstance(source, CodedSource) else None, None
    if isinstance(encoding, Encoding):
        if number is not None:
            number.refuse_both()
            need_number(encoding.target is not None, "the target of X")
            blocks, scale = blocks.then(_cut), scale_of(encoding)
        joined = getattr(source, "facts", ())
        features, facts = encoding.features, [*facts_of_schema(encoding), *joined]
        of_schema = SchemaCoding(encoding)
        found = _Found(of_schema, layout, blocks, facts, features, len(features), scale)
    else:
        if number is not None:
            scale = number.scale(np.concatenate([np.zeros(0), *map(_targets, blocks)]))
            coded = [replace(one, labels=scale.coded(_targets(one))) for one in blocks]
            blocks = Blocks(coded, source)
        told = traits_of(source).read_from_data
        origins: list[Any] = [
            READ_FROM_DATA if role in told else "argument" for role in ("classes", "groups")
        ]
        coding = RowsCoding(layout.numbers, tuple(layout.code_sizes))
        facts = _roles(layout, *origins)
        found = _Found(coding, layout, blocks, facts, (), layout.width, scale)
    if ways.features_are_public:
        require_features_apart(layout, "sensitive_features")
    return found


def _targets(block: RowBlock) -> Floats:
    return np.zeros(0) if block.labels is None else np.asarray(block.labels, np.float64)


def _of_columns(at: Sequence[int], block: RowBlock) -> RowBlock:
    """With some of the sensitive columns."""
    if block.sensitive is None:
        return block
    return replace(block, sensitive=np.ascontiguousarray(block.sensitive[at]))


def _warn_of_others(names: Sequence[str], declared: Sequence[str], done: str) -> None:
    if is_inside():  # of a post-processor, which has said it of the same rows
        return
    text = complaint(
        expected=f"columns among the schema's sensitive ones, {in_words(declared)}",
        of="sensitive_features",
        got=in_words(names),
        remedy=f"{done} Leave sensitive_features out, or declare the columns in the schema: "
        f"schema.with_roles(sensitive={list(names)}).",
        quote=False,
    )
    warnings.warn(text, OtherGroups, stacklevel=outside())


def _has_columns(X: TableLike, names: Sequence[str]) -> bool:
    """Whether a table has all these columns; an array has features alone."""
    if isinstance(X, list | tuple) or (isinstance(X, np.ndarray) and X.dtype.names is None):
        return False
    return set(names) <= set(table_of(X).names)


def _roles(layout: RowLayout, of_classes: Origin, of_groups: Origin) -> list[PublicFact]:
    told = zip(layout.sensitive_names, layout.sensitive, strict=True)
    return [
        PublicFact("classes", in_words(layout.classes or ("a number",)), of_classes),
        *(PublicFact(f"groups of {in_words([n])}", in_words(of), of_groups) for n, of in told),
    ]


def facts_of_schema(encoding: Encoding) -> list[PublicFact]:
    """What a schema says of the rows that it codes."""
    schema = encoding.schema
    facts = [
        PublicFact("features", in_words(encoding.features), "schema"),
        *_roles(encoding.layout, "schema", "schema"),
    ]
    if schema.rows is not None:
        facts.append(PublicFact("number of rows", str(schema.rows), "schema"))
    for name in (*schema.sensitive, *(() if schema.target is None else (schema.target,))):
        column = schema.columns[name]
        if isinstance(column, Category | Boolean) and column.shares is not None:
            pairs = zip(column.values, column.shares, strict=True)
            told = in_words(f"{value} {share:.3g}" for value, share in pairs)
            facts.append(PublicFact(f"shares of {in_words([name])}", told, "schema"))
    return facts


def _with_steps(
    ways: ReadOptions,
    facts: list[PublicFact],
    coding: Coding,
    layout: RowLayout,
    rows: int | None,
    blocks: Iterable[RowBlock] = (),
) -> tuple[Coding, RowLayout]:
    """A coding that adds the steps of an additive model, and the shape of its rows. `rows`: how
    many, where that is public."""
    assert ways.additive is not None
    usual = isinstance(ways.additive, Usual)
    dense = not any(sparse.issparse(block.numbers) for block in blocks)
    fix = "Pass the columns that matter as a dense table; or model='linear'."
    need(
        dense or usual, "a dense table, for an additive model", of="X", got="a sparse one", fix=fix
    )
    known = rows if ways.public_rows is None else ways.public_rows
    shapes = ways.additive.shapes(coding, known) if dense else None
    if usual and shapes is None:
        return coding, layout
    facts.append(PublicFact("model", words_of(shapes), "argument"))
    coding = replace(coding, shapes=shapes)  # type: ignore[type-var]
    return coding, layout if shapes is None else shapes.layout(layout)


def _of_scale(facts: list[PublicFact], ways: ReadOptions) -> tuple[str, ...]:
    """What the statement says of numbers scaled by the rows: a public fact, or what it does not
    cover."""
    if ways.features_are_public:  # then their means and deviations are, too
        words = "means and standard deviations of the features"
        facts.append(PublicFact("scale of the numbers", words, "public features"))
        return ()
    return (
        "unsafe: numbers were scaled by the training rows' own means and standard deviations, as "
        "asked by unsafe_data_dependent_bounds=True",
    )


def _rows_of(
    X: Any, found: _Found, ways: ReadOptions, layout: RowLayout, blocks: Blocks, shards: Any
) -> Rows:
    """The rows of a curator, with whose each row is."""
    units, cap = None, ways.max_sample_weight
    if ways.whose is not None:
        require_apart(ways.whose.column, layout.sensitive_names)
        units = ways.whose.of_table(X, found.grid, blocks.rows)
    if shards is not None:
        return ShardedRows(shards, Taking(layout, blocks.changes, cap), blocks.source)
    coded, in_memory = Coded(layout, blocks, traits_of(blocks.source)), not blocks.are_streamed
    return Rows(coded, max_sample_weight=cap, units=units, in_memory=in_memory)


def _thinned(block: RowBlock) -> RowBlock:
    """Numbers as a sparse array where fewer than a quarter are not zero: indicators that came as a
    dense matrix."""
    numbers = block.numbers
    if sparse.issparse(numbers) or np.count_nonzero(numbers) >= THIN * numbers.size:
        return block
    return replace(block, numbers=sparse.csr_array(numbers.T))


def _with_weights(blocks: Blocks, weights: Any) -> Iterator[RowBlock]:
    a = 0
    for block in blocks:
        yield replace(block, weights=np.ascontiguousarray(weights[a : a + block.rows]))
        a += block.rows


# ------------------------------ public features that are a sensitive column over again

FIRST_ROWS = 1000  # most features are cleared by so many rows; only the others are looked at in all
CHUNK = 1 << 22  # values that are looked at at a time
# so many rows must hold a rarer value before a feature that merges groups is no coincidence
FEWEST = 10
Indices = npt.NDArray[np.intp]


def refuse_copies(blocks: Iterable[RowBlock], layout: RowLayout, names: Sequence[str]) -> None:
    """An error where a feature is a function of one sensitive column, and not constant: the column
    recoded, or a part of it.

    `names`: of the features, numbers before codes. The error is seen by the data holder, before any
    release. Columns that hardly repeat a value tell nothing: everything is a function of them. A
    copy with noise is not found.
    """
    first = next(iter(blocks), None)
    if first is None or any(block.sensitive is None for block in blocks):
        return
    for j, column in enumerate(layout.sensitive_names):
        counts = _counts(blocks, j, layout)
        if not _repeats(counts):
            continue
        kept = np.arange(layout.numbers + len(first.codes))
        if any(sparse.issparse(block.numbers) for block in blocks):
            filled = _filled_alike(blocks, j, counts, layout.numbers)
            kept = np.concatenate([filled, kept[layout.numbers :]])
        for most in (FIRST_ROWS, None):
            parts: Iterable[RowBlock] = blocks if most is None else (first,)
            left: list[Indices] = []
            size = max(min(block.rows, most or block.rows) for block in parts)
            for some in np.array_split(kept, max(1, -(-len(kept) * size // CHUNK))):
                low = np.full((len(some), len(counts)), np.inf)
                high = -low
                for block in parts:
                    lines = _lines(block, some, layout.numbers, most)
                    _widen(low, high, lines, _groups(block, j)[:most])
                alike = np.flatnonzero((low >= high).all(axis=1))  # a group without rows is alike
                left.append(some[alike if most else _copies_among(low, high, counts)])
            kept = np.concatenate(left)
        if len(kept):
            raise _copy_of(column, names[kept[0]])


def refuse_weights(blocks: Iterable[RowBlock], layout: RowLayout) -> None:
    """The same of public weights: those that balance groups are told by the group alone."""
    if any(block.sensitive is None or block.weights is None for block in blocks):
        return
    for j, column in enumerate(layout.sensitive_names):
        counts = _counts(blocks, j, layout)
        low = np.full((1, len(counts)), np.inf)
        high = -low
        for block in blocks:
            _widen(low, high, np.asarray(block.weights)[np.newaxis], _groups(block, j))
        copied = _repeats(counts) and len(_copies_among(low, high, counts)) > 0
        expected = f"weights that do not depend on sensitive column {column!r}"
        fix = "Weights are public here: leave them out, or pass protects='records'."
        of, got, error = "sample_weight", "some that follow from the group", PrivacyError
        need(not copied, expected, of=of, got=got, fix=fix, error=error)


def _refuse_copies_in_shards(rows: ShardedRows, before: RowLayout, names: Sequence[str]) -> None:
    """`refuse_copies` of shards. `before`: the layout without what a fit adds."""
    own = np.r_[np.arange(before.numbers), rows.layout.numbers + np.arange(len(before.code_sizes))]
    for j, column in enumerate(rows.layout.sensitive_names):
        counts, low, high = rows.extremes(j)
        found = _copies_among(low[own], high[own], counts)
        if _repeats(counts) and len(found):
            raise _copy_of(column, names[found[0]])


def _copy_of(column: str, name: str) -> PrivacyError:
    got = f"column {name!r}, whose value follows from the group"
    expected = f"no public feature that is a copy of sensitive column {column!r}"
    remedy = (
        "Leave that column out of X, or give X as a table and name the column in "
        "sensitive_features."
    )
    return PrivacyError.expected(expected, of="X", got=got, remedy=remedy)


def _counts(blocks: Iterable[RowBlock], j: int, layout: RowLayout) -> npt.NDArray[np.int64]:
    counts = np.zeros(len(layout.sensitive[j]), np.int64)
    for block in blocks:
        counts += np.bincount(_groups(block, j), minlength=len(counts))
    return counts


def _repeats(counts: npt.NDArray[np.int64]) -> bool:
    """Whether a column with so many rows a group can have copies: one that hardly repeats a value
    tells nothing."""
    present = counts > 0
    return bool(present.sum() >= 2 and 2 * present.sum() <= counts.sum())


def _copies_among(low: Floats, high: Floats, counts: npt.NDArray[np.int64]) -> Indices:
    """Which features (lines of their ends in each group) are functions of the group, and take
    several values."""
    seen = np.flatnonzero(counts > 0)
    same = (low[:, seen] == high[:, seen]).all(axis=1)
    told = [bool(same[at]) and _tells(line, counts[seen]) for at, line in enumerate(low[:, seen])]
    return np.flatnonzero(np.array(told, bool))


def _tells(values: Floats, counts: npt.NDArray[np.int64]) -> bool:
    """Whether a feature with one value a group is the sensitive column recoded, or merges groups by
    no coincidence."""
    found, at = np.unique(values, return_inverse=True)
    if len(found) == len(values):
        return True
    rows = np.bincount(at, weights=counts)
    return len(found) > 1 and bool(rows.sum() - rows.max() >= FEWEST)


def _filled_alike(
    blocks: Iterable[RowBlock], j: int, counts: npt.NDArray[np.int64], numbers: int
) -> Indices:
    """The sparse columns that are stored in all rows of a group, or in none of it; not those that
    are empty."""
    filled = sparse.csr_array((len(counts), numbers), dtype=np.int64)
    for block in blocks:
        X = sparse.csr_array(block.numbers, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        X.data = np.ones(len(X.data), np.int64)
        of = np.ones(block.rows, np.int64), (_groups(block, j), np.arange(block.rows))
        filled = filled + sparse.csr_array(of, shape=(len(counts), block.rows)) @ X
    entries = filled.tocoo()
    stored = np.bincount(entries.col, minlength=numbers)
    whole = np.bincount(entries.col[entries.data == counts[entries.row]], minlength=numbers)
    return np.flatnonzero((stored > 0) & (stored == whole))


def _widen(low: Floats, high: Floats, lines: npt.NDArray[Any], groups: Indices) -> None:
    """The least and the largest value of each feature in each group."""
    if not len(groups) or not len(lines):
        return
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    ordered = lines[:, order]
    low[:, present] = np.minimum(low[:, present], np.minimum.reduceat(ordered, starts, axis=1))
    high[:, present] = np.maximum(high[:, present], np.maximum.reduceat(ordered, starts, axis=1))


def _lines(block: RowBlock, some: Indices, numbers: int, most: int | None) -> Floats:
    """Some of the features, numbers before codes, of the first rows."""
    of_numbers = some[some < numbers]
    X: Any = block.numbers
    are_sparse = sparse.issparse(block.numbers)
    lines = X[:most].tocsc()[:, of_numbers].toarray().T if are_sparse else X[of_numbers, :most]
    codes = np.asarray(block.codes)[some[some >= numbers] - numbers, :most]
    return np.concatenate([lines.astype(np.float64), codes.astype(np.float64)])


def _groups(block: RowBlock, j: int) -> Indices:
    assert block.sensitive is not None
    return np.asarray(block.sensitive[j], np.intp)


# ------------------------------ plans: a schema, and no rows

Read = Callable[[ReadOptions], Training]


@dataclass(frozen=True)
class Unread:
    """A schema, and about how many rows its table will have. A fit knows them where the schema
    states a number, or they are public for another reason; else it releases a noisy count, and is
    planned so."""

    schema: Schema
    rows: int

    @staticmethod
    def of(schema: object, own: object, rows: object, sensitive: Iterable[str] | None) -> Unread:
        """Checked. `own`: the estimator's schema."""
        found = own if schema is None else schema
        if not isinstance(found, Schema) or found.declared is None:
            other = "one without columns" if isinstance(found, Schema) else type(found).__name__
            got, way = None if found is None else other, 'Schema.load("schema.toml"), say'
            remedy = f"Pass the schema of the table that is to be fitted: {way}."
            raise InputError.expected("a Schema", of="plan(schema)", got=got, remedy=remedy)
        if sensitive is not None:
            names = (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
            unused = [name for name in found.sensitive if name not in names]
            found = found.with_roles(sensitive=names).without(*unused)
        known = found.rows if rows is None else rows
        fix = "Pass rows=10_000, say: about how many there will be, or let the schema state them"
        need(known is not None, "a number of rows", of="rows", got=None, fix=f"{fix} (rows=).")
        return Unread(found, _checks.whole(at_least=1, rows=known))

    def read(self, ways: ReadOptions) -> Training:
        """What `read` would make of rows of this schema, without any."""
        encoding = Encoding(self.schema, ways.sensitive_as_feature)
        layout, target = encoding.layout, None
        fix = 'Say which column is to be predicted: Schema(columns, target="hired"), for example.'
        there = self.schema.target is not None
        need(there, "a schema with a target", of="schema", got=None, fix=fix)
        if ways.target is None:
            need_classes(layout)
        else:
            need_number(encoding.target is not None, "the schema's target")
            target, more = scale_of(encoding), int(ways.target.as_number)
            layout = replace(layout, numbers=layout.numbers + more)
        facts = facts_of_schema(encoding)
        coding: Coding = SchemaCoding(encoding)
        if ways.additive is not None:
            known = self.rows if ways.rows_are_public else self.schema.rows
            coding, layout = _with_steps(ways, facts, coding, layout, known)
        if ways.standardise:
            standard = Standard.of((), len(encoding.numbers))
            coding = replace(coding, standard=standard)  # type: ignore[type-var]
        units = None if ways.whose is None else ()
        return Training(
            Rows(Coded(layout, ()), max_sample_weight=ways.max_sample_weight, units=units),
            coding,
            tuple(facts),
            (),
            encoding.features,
            len(encoding.features),
            None if self.schema.rows is None else self.rows,
            target,
            self.schema,
            supposed=self.rows,
        )

    def supposed(self, shares: Mapping[str, Any] | None) -> Supposed:
        """Groups and classes of the size that the schema says, or `shares`, which come first."""
        schema, given = self.schema, self._checked(shares or {})
        known = {}
        for name in self._roles:
            column = schema.columns[name]
            own = column.shares if isinstance(column, Category | Boolean) else None
            if (found := given.get(name) or own) is not None:
                known[name] = found
        columns = {name: share for name, share in known.items() if name in schema.sensitive}
        classes = None if schema.classes is None else known.get(schema.target or "")
        return Supposed.of(Encoding(schema).layout, self.rows, columns, classes)

    @property
    def _roles(self) -> tuple[str, ...]:
        target = self.schema.target
        return (*self.schema.sensitive, *(() if target is None else (target,)))

    def _checked(self, shares: object) -> dict[str, tuple[float, ...]]:
        """Shares by column, in the order of its values."""
        fix, came = 'Pass shares={"sex": {"f": 0.3, "m": 0.7}}, for example.', type(shares).__name__
        need(isinstance(shares, Mapping), "shares by column", of="shares", got=came, fix=fix)
        assert isinstance(shares, Mapping)
        found = {}
        for name, given in shares.items():
            expected, fix = f"one of {list(self._roles)}", "State shares of a sensitive column, or"
            fix = f"{fix} of the target."
            need(name in self._roles, expected, of="shares", got=name, fix=fix)
            values, right = self.schema.listed(name), isinstance(given, Mapping)
            fix = f"Pass shares={{{name!r}: {{{values[0]!r}: 0.3, ...}}}}: one for each value."
            expected = f"a share for each value of {name!r}: {list(values)}"
            got = list(given) if right else given
            right = right and set(given) == set(values)
            need(right, expected, of="shares", got=got, fix=fix)
            try:
                column = Category(values, shares=tuple(given[value] for value in values))
            except SchemaError as error:
                raise InputError(within(f"column {name!r}", error)) from None
            assert column.shares is not None
            found[name] = column.shares
        return found


# ------------------------------ rows of another holder: a schema, and nothing to read


def training_of(
    data: Elsewhere,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    ways: ReadOptions,
) -> Training:
    """What `read` makes of rows that are here; guarantee 7."""
    names = names_in(sensitive_features)
    given = {
        "y": y,
        "sample_weight": sample_weight,
        "sensitive_features": None if names else sensitive_features,
    }
    for of, one in given.items():
        fix = (
            "Leave it out: labels and groups are the holder's. sensitive_features= may name "
            "columns of the schema."
        )
        need(one is None, "None beside remote data", of=of, got=type(one).__name__, fix=fix)
    same = ways.schema is None or ways.schema.fingerprint == data.schema.fingerprint
    fix = "Leave schema=None: the holder's is used."
    need(same, "the holder's schema", of="schema", got="another", fix=fix)
    _require_served(
        not ways.standardise, "a scale read from the data", "Leave it out of the schema."
    )
    _require_unit(data, ways.whose)
    if ways.target is not None:
        ways.target.refuse_both()
    unread = Unread.of(data.schema, None, data.exact_rows or data.schema.rows or 1, names)
    found = unread.read(replace(ways, max_sample_weight=1.0))
    assert found.schema is not None
    rows = data.rows(
        found.rows.layout,
        found.schema,
        ways.sensitive_as_feature,
        None if found.coding.shapes is None else CODINGS.write(found.coding.shapes),
        target_as_number=ways.target is not None and ways.target.as_number,
    )
    known = data.schema.rows if ways.public_rows is None else ways.public_rows
    return replace(found, rows=rows, rows_stated=known, supposed=None)


def refuse_functions(X: TableLike, method: str) -> None:
    """A choice by a function of sums, which would run beside the holder's rows: refused before a
    run is opened."""
    got = "a choice by a function of the rows' losses, which would run beside them"
    fix = "Choose another method: method='linear-oracle' asks sums alone."
    _require_served(not (isinstance(X, Elsewhere) and method == "exponential"), got, fix)


def _require_served(holds: bool, got: str, fix: str) -> None:
    need(holds, "what a door can do", of="remote data", got=got, fix=fix, quote=False)


def _require_unit(data: Elsewhere, told: Whose | None) -> None:
    """Whose each row is, is the holder's to say."""
    own = data.schema.unit
    require_heeded(data.schema, told)
    if told is None or (told.column is not None and told.column == own):
        return
    expected = "None: this data set has one row a person"
    expected = expected if own is None else f"the holder's column {own!r}"
    remedy = "Leave unit=None." if own is None else f"Pass schema=Schema(unit={own!r}, ...)."
    got = "one value a row" if told.column is None else told.column
    raise InputError.expected(expected, of="unit", got=got, remedy=remedy)


# ------------------------------ where an estimator's public numbers come from
# An argument that was passed with its default's value is told as the default: nobody can see the
# difference.


def of_argument(estimator: object, name: str) -> Origin:
    """Of one argument of an estimator's constructor."""
    default = inspect.signature(type(estimator).__init__).parameters[name].default
    given = getattr(estimator, name)
    same = given is default or (type(given) is type(default) and given == default)
    return "library default" if same else "argument"


def stated_clips(estimator: BaseEstimator) -> tuple[float, ...]:
    """The clips that the caller passed; what else bounds a row is the library's."""
    clip = stated(estimator, "clip")
    # what is no number is refused where it is used
    return (float(clip),) if isinstance(clip, Real) else ()


def facts_of(estimator: BaseEstimator, training: Training) -> tuple[PublicFact, ...]:
    """Delta, and the cap of sample weights, with where they come from."""
    facts = [PublicFact("delta", f"{float(estimator.delta):g}", of_argument(estimator, "delta"))]
    if training.rows.weighted:
        own = estimator._facts.max_sample_weight == 1.0
        cap, origin = training.rows.max_sample_weight, "library default" if own else "schema"
        facts.append(PublicFact("largest sample weight", f"{cap:g}", origin))  # type: ignore[arg-type]
    return tuple(facts)
