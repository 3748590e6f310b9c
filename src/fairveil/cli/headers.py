"""The names and kinds of a table's columns, without a value of any row: a header, a Parquet file's
schema, a catalogue.

Guarantee (tests/cli/test_cli_schema.py):
1. No row is read: of a CSV file its first line, of Parquet its metadata, of a database the names of
   a query that yields no row, and what SQLite's catalogue says of kinds.
2. A first line that may be a person's is not taken for a header, nor shown.
"""

from __future__ import annotations

import csv
import io
import re

from ..data.reading import BROKEN_GZIP, Database, headed, open_bytes
from ..errors import SchemaError
from .tables import Place

NUMBERS = re.compile(r"int|float|double|decimal|numeric|real|halffloat", re.IGNORECASE)
TRUTHS = re.compile(r"bool", re.IGNORECASE)
WORDS = re.compile(r"string|char|text|dictionary|enum|utf8", re.IGNORECASE)


def kinds(place: Place) -> dict[str, str | None]:
    """Each column's kind, by what the table says of itself; None where it says nothing."""
    how = place.kind()
    if how == "sql":
        return _of_database(place)
    return _of_parquet(place) if how == "parquet" else dict.fromkeys(_of_csv(place))


def _of_csv(place: Place) -> list[str]:
    with io.TextIOWrapper(
        open_bytes(place.files[0]), encoding="utf-8-sig", errors="replace", newline=""
    ) as text:
        # a block of bytes is decoded at once: what is no UTF-8 in a later row is not looked at
        try:
            names = [name.strip() for name in next(csv.reader(text, delimiter=place.delimiter), [])]
        except (csv.Error, *BROKEN_GZIP):
            names = []
    if (got := _strange(names)) is not None:
        remedy = "Give the table a first line with a name of its own for every column."
        raise SchemaError.expected("a header", of=place.shown, got=got, remedy=remedy, quote=False)
    return names


def _strange(names: list[str]) -> str | None:
    """Why a first line is not surely a header, by the places of its cells; None where it is."""
    if not names:
        return "no first line"
    for at, name in enumerate(names, 1):
        first = names.index(name) + 1
        why = (
            f"column {at} has no name"
            if not name
            else f"the name of column {at} is a number"
            if not isinstance(headed([name], ()), list)
            else f"columns {first} and {at} have one name"
            if first < at
            else f"the name of column {at} has letters that cannot be printed"
            if not name.isprintable() or "\ufffd" in name
            else None
        )
        if why is not None:
            return f"none that is surely one: {why}"
    return None


def _of_parquet(place: Place) -> dict[str, str | None]:
    found = place.parquet_schema()
    return {str(field.name): _kind(str(field.type)) for field in found}


def _of_database(place: Place) -> dict[str, str | None]:
    database = Database(place.address, str(place.query))
    known = database.sqlite_types()
    return {name: _kind(known.get(name, "")) for name in database.names()}


def _kind(type_name: str) -> str | None:
    for pattern, kind in ((TRUTHS, "boolean"), (WORDS, "category"), (NUMBERS, "number")):
        if pattern.search(type_name):
            return kind
    return None
