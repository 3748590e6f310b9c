"""How a schema's parts are checked, read from files and said in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import InputError, SchemaError, together, within
from .columns import KINDS, OPTIONS, Boolean, Category, Column, Ignored, Number

BLANK = "?"
"""What `fairveil schema init` writes where a fact is to be filled in."""
TO_FILL_IN = ("kind", "low", "high", "values")


def in_words(column: Column) -> str:
    """One column in plain words."""
    options = column.facts()
    listed, shares = options.pop("values", None), options.pop("shares", None)
    words = column.kind
    if isinstance(column, Number):
        words += f" from {options.pop('low'):g} to {options.pop('high'):g}"
    if listed is not None:
        shown = ", ".join(map(str, listed[:6])) + (
            f", ... ({len(listed)} values)" if len(listed) > 6 else ""
        )
        words += f": {shown}"
    words += "".join(f"; {option} counts as {value!r}" for option, value in options.items())
    return (
        words
        if shares is None
        else f"{words}; about {', '.join(f'{share:.1%}' for share in shares[:6])} of the rows"
    )


def texts(given: object, of: str) -> tuple[str, ...]:
    """A tuple of texts from one text or several."""
    texts = (given,) if isinstance(given, str) else given
    if not isinstance(texts, Iterable):
        texts = (texts,)
    listed = tuple(texts)
    if not all(isinstance(text, str) for text in listed):
        raise SchemaError.expected(
            "a list of texts", of=of, got=given, remedy=f'Pass {of}=["..."].'
        )
    return listed


def checked_columns(given: object) -> dict[str, Column]:
    """The declared columns, each with a printable name."""
    if not isinstance(given, Mapping):
        raise SchemaError.expected(
            "at least one column",
            of="columns",
            got=given,
            remedy='Pass {"age": Number(0, 120)}, for example.',
        )
    for name, column in given.items():
        if not isinstance(name, str) or not name.isprintable():
            raise SchemaError.expected(
                "a printable text",
                of="column name",
                got=name,
                remedy="Rename that column of the table.",
            )
        if not isinstance(column, Number | Category | Boolean | Ignored):
            raise SchemaError.expected(
                "Number, Category, Boolean or Ignored",
                of=f"column {name!r}",
                got=column,
                remedy="Declare its kind with one of those.",
            )
    return dict(given)


def columns_of(given: object) -> dict[str, Column]:
    """Columns from the plain values of a file, every option checked."""
    if not isinstance(given, list) or not all(isinstance(row, Mapping) for row in given):
        raise SchemaError.expected(
            "a list of tables, each with name and kind",
            of="columns",
            got=given,
            remedy=(
                'In TOML: [[columns]], then name = "age", kind = "number", low = 0, high = 120.'
            ),
        )
    columns: dict[str, Column] = {}
    wrong: list[InputError] = []
    for row in given:
        try:
            name, column = _column_of(row)
            if name in columns:
                raise _named_once(name)
            columns[name] = column
        except InputError as error:
            wrong.append(error)
    if wrong:
        raise together(wrong) from None
    return columns


def _column_of(row: Mapping[str, Any]) -> tuple[str, Column]:
    """One column from its plain values."""
    options = dict(row)
    name, kind = options.pop("name", None), options.pop("kind", None)
    of = f"column {name!r}"
    blanks = [
        option
        for option, value in {"kind": kind, **options}.items()
        if value == BLANK and option in TO_FILL_IN
    ]
    if blanks:
        listed = f": {', '.join(KINDS)}" if "kind" in blanks else ""
        remedy = "Fill in what is public knowledge, never what stands in the rows."
        raise SchemaError.expected(
            f"{' and '.join(blanks)}{listed}", of=of, got="a blank", remedy=remedy, quote=False
        )
    if not isinstance(kind, str) or kind not in KINDS:
        expected = f"a kind from {list(KINDS)}"
        raise SchemaError.expected(expected, of=of, got=kind, remedy="Write its kind.", among=KINDS)
    if not isinstance(name, str):
        raise _named_once(name)
    strange = sorted(set(options) - set(OPTIONS[kind]))
    if strange:
        expected = f"options from {list(OPTIONS[kind])}"
        remedy = "Check the spelling."
        raise SchemaError.expected(expected, of=of, got=strange, remedy=remedy, among=OPTIONS[kind])
    required = {"number": {"low": None, "high": None}, "category": {"values": None}}.get(kind, {})
    try:
        return name, KINDS[kind](**{**required, **options})
    except InputError as error:
        raise type(error)(within(of, error)) from None


def _named_once(name: object) -> SchemaError:
    return SchemaError.expected(
        "a name of its own", of=f"column {name!r}", got=name, remedy="Name each column once."
    )


def suffix(path: Path) -> str:
    """`.toml` or `.json`, or an error."""
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".json"):
        raise InputError.expected(
            "a file ending in .toml or .json", of="path", got=str(path), remedy="Rename the file."
        )
    return suffix
