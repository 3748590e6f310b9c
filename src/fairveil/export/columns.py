"""Which columns a fitted estimator reads, how each is coded, and which estimators can be written in
another language at all.

Guarantees (tests/export/): what cannot be read so is refused with its reason: code of the user,
models of other libraries, rows that were coded elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..data import Encoding
from ..errors import InputError
from ..estimators import wrapped
from ..estimators.coding import RowsCoding, SchemaCoding, Shapes, Standard, TableCoding, parts_of
from ..estimators.faces import CodedEstimator
from ..estimators.post_processing import FairPostProcessor
from ..facts import Cells
from ..facts.columns import Boolean, Category, Number, Value
from ..models import PostProcessedModel, ShiftedModel
from ..models.model import Model

EXACT_WHOLE = 1 << 53
CODE = (
    "Only plain numbers are exported. Export the module itself with its own library, or fit a "
    "linear or an additive model."
)


@dataclass(frozen=True)
class NumberColumn:
    """A number. With bounds it is clipped and scaled to [-1, 1], and NaN counts as `missing` (None:
    the row is refused). Without bounds it must be finite, else the row is refused."""

    name: str
    bounds: tuple[float, float] | None = None
    missing: float | None = None

    @property
    def center(self) -> float:
        """Half way between the bounds."""
        assert self.bounds is not None
        return self.bounds[0] / 2 + self.bounds[1] / 2

    @property
    def half(self) -> float:
        """Half their distance."""
        assert self.bounds is not None
        return self.bounds[1] / 2 - self.bounds[0] / 2


@dataclass(frozen=True)
class WordColumn:
    """One of the listed values, whose code is its place. `missing`, `unknown`: the codes of what is
    missing and of what is not listed; None: the row is refused. `markers`: texts that mean missing
    where they are not listed."""

    name: str
    values: tuple[Value, ...]
    missing: int | None = None
    unknown: int | None = None
    markers: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether its values are texts; otherwise they are numbers or truth values."""
        return isinstance(self.values[0], str)


@dataclass(frozen=True)
class Inputs:
    """The columns of a model: numbers, then the codes of words, as weights have them; after these
    come the codes of `shapes`, and numbers are standardised last.

    `groups`: the sensitive columns of a model that reads the group; the row's cell counts through
    them, the last one fastest. `matrix`: whether the fit's table was an array without names, of
    which all columns are read.
    """

    numbers: tuple[NumberColumn, ...] = ()
    words: tuple[WordColumn, ...] = ()
    groups: tuple[WordColumn, ...] = ()
    shapes: Shapes | None = None
    standard: Standard | None = None
    matrix: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, each once."""
        columns: list[NumberColumn | WordColumn] = [*self.numbers, *self.words, *self.groups]
        return tuple(dict.fromkeys(column.name for column in columns))

    @property
    def code_sizes(self) -> tuple[int, ...]:
        """Of all codes, in the order of the weights."""
        added = () if self.shapes is None else self.shapes.sizes
        return (*(len(word.values) for word in self.words), *added)


def refusal(
    got: str, remedy: str, *, expected: str = "a model that can be written in another language"
) -> InputError:
    """The error of a model that is not exported."""
    return InputError.expected(expected, of="model", got=got, remedy=remedy, quote=False)


def opened(model: object) -> Any:
    """The fitted estimator of this library that is inside, if its model is plain numbers."""
    inside = wrapped.thawed(model)
    ours = CodedEstimator | FairPostProcessor
    if not isinstance(inside, ours):
        remedy = "Pass a fitted estimator of Fairveil, or fairveil.load(folder)."
        raise InputError.expected(
            "an estimator of Fairveil", of="model", got=type(model).__name__, remedy=remedy
        )
    check_is_fitted(inside, "model_")
    if inside.model_ is None:
        remedy = "Export each of them with its own library."
        raise refusal("one of classifiers that were made elsewhere", remedy)
    if inside.model_.kind == "network":
        raise refusal("a network, whose module is code of yours", CODE)
    return inside


def plain(classes: object) -> tuple[Any, ...]:
    """Classes as values of Python."""
    return tuple(np.asarray(classes).tolist())


def own_base(estimator: Any) -> Any:
    """The base of a post-processor, opened, if it is of this library; None where it is another's,
    whose answers are inputs then."""
    base = wrapped.thawed(estimator.estimator_)
    if not isinstance(base, CodedEstimator):
        return None
    base = opened(base)
    if plain(base.classes_) != plain(estimator.classes_):
        remedy = "Fit the base to the same labels again."
        raise refusal("one whose base has its classes in another order", remedy)
    if base.model_.reads_groups:
        raise refusal("one whose base reads the group, too", "Export the base alone.")
    return base


def _cells(estimator: object) -> Cells | None:
    """The cells of groups that a fitted estimator reads when it predicts."""
    parts = parts_of(estimator)
    if isinstance(parts.model, PostProcessedModel | ShiftedModel):
        return parts.model.cells
    return parts.cells if isinstance(parts.model, Model) and parts.model.reads_groups else None


def columns_of_groups(estimator: object) -> tuple[str, ...]:
    """The names of the sensitive columns that a fitted estimator reads when it predicts."""
    cells = _cells(wrapped.thawed(estimator))
    return () if cells is None else tuple(cells.names)


def inputs_of(estimator: Any) -> Inputs:
    """The columns that an opened estimator reads. Of a post-processor those of its base; then those
    of the group."""
    reader, cells = estimator, _cells(estimator)
    if isinstance(estimator, FairPostProcessor):
        reader = own_base(estimator)
    groups = () if cells is None else tuple(map(word_column, cells.names, cells.columns))
    if reader is None:
        return Inputs(groups=groups)
    coding, matrix = reader.coding_, False
    if isinstance(coding, SchemaCoding):
        numbers, words = _of_encoding(coding.encoding)
    elif isinstance(coding, TableCoding):
        numbers = tuple(NumberColumn(one.name) for one in coding.features if one.values is None)
        listed = ((one.name, one.values) for one in coding.features if one.values is not None)
        words = tuple(word_column(name, values) for name, values in listed)
        whole = not words and len(numbers) == len(coding.columns)
        matrix = whole and not hasattr(reader, "feature_names_in_")
    else:
        assert isinstance(coding, RowsCoding)
        if coding.code_sizes:
            remedy = (
                "Fit to a table, with a schema: an export then holds how its columns are coded."
            )
            raise refusal("one of rows that were coded elsewhere", remedy)
        numbers, words, matrix = tuple(map(NumberColumn, coding.own_names)), (), True
    return Inputs(numbers, words, groups, coding.shapes, coding.standard, matrix)


def _of_encoding(
    encoding: Encoding,
) -> tuple[tuple[NumberColumn, ...], tuple[WordColumn, ...]]:
    if encoding.precision != "float64":
        raise refusal(f"one of rows coded in {encoding.precision}", "Fit to rows coded in float64.")
    columns, markers = encoding.schema.columns, encoding.schema.missing_values
    numbers, words = [], []
    for scale in encoding.numbers:
        number = columns[scale.name]
        assert isinstance(number, Number)
        numbers.append(NumberColumn(scale.name, (number.low, number.high), number.missing))
    for name in encoding.coded:
        word = columns[name]
        assert isinstance(word, Category | Boolean)
        values: list[Any] = list(word.values)
        missing, unknown = (
            None if stands is None else values.index(stands)
            for stands in (word.missing, word.unknown if isinstance(word, Category) else None)
        )
        words.append(word_column(name, values, missing, unknown, markers))
    return tuple(numbers), tuple(words)


def word_column(
    name: str,
    values: Sequence[Hashable],
    missing: int | None = None,
    unknown: int | None = None,
    markers: tuple[str, ...] = (),
) -> WordColumn:
    """A column of listed values, all texts or all numbers."""
    texts = {isinstance(value, str) for value in values}
    strange = [value for value in values if not isinstance(value, str | bool | int | float)]
    large = [value for value in values if isinstance(value, int) and abs(value) > EXACT_WHOLE]
    if len(texts) != 1 or strange or large:
        got = "a number beyond 2^53" if large else "texts beside numbers"
        remedy = "List its values as texts in the schema, and fit again."
        raise refusal(f"one whose column {name!r} has {got}", remedy)
    listed: Any = tuple(values)
    return WordColumn(name, listed, missing, unknown, markers if True in texts else ())


def require_names(inputs: Inputs, others: Sequence[str]) -> None:
    """Refuse names that stand for two columns of different kinds, or for an input that is no
    column."""
    numbers = {number.name for number in inputs.numbers}
    taken = [name for name in inputs.names if name in others]
    taken += [group.name for group in inputs.groups if group.name in numbers and group.is_text]
    if taken:
        got = f"one with a column {taken[0]!r}, which is a name of the export's own"
        raise refusal(got, "Rename that column, and fit again.")
