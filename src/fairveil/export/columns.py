"""From an estimator's coding, and the groups that its model reads, to the columns of a
`Program`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

from ..data import Encoding
from ..estimators.reading.coding import Coding, RowsCoding, SchemaCoding, TableCoding
from ..estimators.reading.shapes import Shapes
from ..estimators.reading.shapes import Side as ShapeSide
from ..facts import Cells
from ..facts.columns import Boolean, Category, Number
from .program import Inputs, NumberColumn, Side, Step, WordColumn, WordStep
from .refusing import refusal

EXACT_WHOLE = 1 << 53


def inputs_of(coding: Coding, named: bool) -> Inputs:
    """The columns that a coding reads. `named`: whether the table of the fit had names of
    columns."""
    if isinstance(coding, SchemaCoding):
        found = _of_encoding(coding.encoding)
    elif isinstance(coding, TableCoding):
        found = _of_table(coding, named)
    else:
        found = _of_rows(coding)
    return _standardised(_with_shapes(found, coding.shapes), coding)


def _of_encoding(encoding: Encoding) -> Inputs:
    if encoding.precision != "float64":
        raise refusal(f"one of rows coded in {encoding.precision}", "Fit to rows coded in float64.")
    columns, markers = encoding.schema.columns, encoding.schema.missing_values
    numbers, words = [], []
    for scale in encoding.numbers:
        column = columns[scale.name]
        assert isinstance(column, Number)
        numbers.append(NumberColumn(scale.name, (column.low, column.high), column.missing))
    for name in encoding.coded:
        declared = columns[name]
        assert isinstance(declared, Category | Boolean)
        values = tuple(declared.values)
        missing = None if declared.missing is None else values.index(declared.missing)
        other = declared.unknown if isinstance(declared, Category) else None
        words.append(
            word_column(
                name, values, missing, None if other is None else values.index(other), markers
            )
        )
    return Inputs(tuple(numbers), tuple(words))


def _of_table(coding: TableCoding, named: bool) -> Inputs:
    numbers = tuple(NumberColumn(one.name) for one in coding.features if one.values is None)
    words = tuple(
        word_column(one.name, one.values) for one in coding.features if one.values is not None
    )
    whole = not named and not words and len(numbers) == len(coding.columns)
    return Inputs(numbers, words, matrix=len(coding.columns) if whole else None)


def _of_rows(coding: Coding) -> Inputs:
    assert isinstance(coding, RowsCoding)
    if coding.code_sizes:
        remedy = "Fit to a table, with a schema: an export then holds how its columns are coded."
        raise refusal("one of rows that were coded elsewhere", remedy)
    return Inputs(tuple(NumberColumn(name) for name in coding.own_names), matrix=coding.numbers)


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
    plain: Any = tuple(values)
    return WordColumn(name, plain, missing, unknown, markers if True in texts else ())


def with_groups(inputs: Inputs, cells: Cells, names: Sequence[str]) -> Inputs:
    """The same, for a model that reads the group: a missing or unknown one is refused."""
    groups = tuple(
        word_column(name, values) for name, values in zip(names, cells.columns, strict=True)
    )
    return replace(inputs, groups=groups)


def require_names(inputs: Inputs, others: Sequence[str]) -> None:
    """Refuse names that stand for two columns of different kinds, or for an input that is no
    column."""
    taken = [name for name in inputs.names if name in others]
    for group in inputs.groups:
        if any(number.name == group.name for number in inputs.numbers) and group.is_text:
            taken.append(group.name)
    if taken:
        raise refusal(
            f"one with a column {taken[0]!r}, which is a name of the export's own",
            "Rename that column, and fit again.",
        )


def _with_shapes(inputs: Inputs, shapes: Shapes | None) -> Inputs:
    if shapes is None:
        return inputs
    along = {side.place: side.edges for side in shapes.along}
    numbers = tuple(
        replace(one, along=along.get(place, ())) for place, one in enumerate(inputs.numbers)
    )
    pairs = tuple((_side(one), _side(other)) for one, other in shapes.pairs)
    steps = tuple(Step(side.place, side.edges) for side in shapes.steps)
    return replace(inputs, numbers=numbers, steps=steps, pairs=pairs)


def _side(side: ShapeSide) -> Side:
    return WordStep(side.place, side.size) if side.values else Step(side.place, side.edges)


def _standardised(inputs: Inputs, coding: Coding) -> Inputs:
    if coding.standard is None:
        return inputs
    pairs = zip(inputs.numbers, coding.standard.means, coding.standard.deviations, strict=True)
    return replace(
        inputs,
        numbers=tuple(
            replace(one, mean=mean, deviation=deviation) for one, mean, deviation in pairs
        ),
    )
