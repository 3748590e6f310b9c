"""The rows of a CSV file as texts, and where one of them is broken: line and number of cells, never
what stands in it.

Guarantees (tests/data/test_data_broken_files.py):
1. No error shows a cell, nor keeps one in its context: a parser's own words may repeat the whole
   row.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ..errors import FairveilError, InputError, SchemaError
from .files import BROKEN_GZIP, open_bytes, open_text

WELL_FORMED = "text in UTF-8 with as many cells in every row as in the header"
REMEDY = "Mend that line; a cell that holds the delimiter or a line break goes between quotes."


def rows_from(
    path: Path, delimiter: str, before: int = 0, width: int | None = None
) -> Iterator[list[str]]:
    """The rows that are not blank after so many lines, each of `width` cells (None: of as many as
    the first)."""
    try:
        with open_text(path) as text:
            for _ in range(before):
                text.readline()
            yield from _checked(csv.reader(text, delimiter=delimiter), path, before, width)
        return
    except (UnicodeDecodeError, csv.Error, OSError, *BROKEN_GZIP) as error:
        wrong = broken(path, error)
    raise wrong


def _checked(
    lines: Iterator[list[str]], path: Path, before: int, width: int | None
) -> Iterator[list[str]]:
    line = before + 1
    for row in lines:
        if row:
            # A row with one cell too many has its values in the wrong columns: it is refused, with
            # its line.
            width = len(row) if width is None else width
            if len(row) != width:
                expected, got = (
                    f"{width} cells in every row, as in the header",
                    f"{len(row)} cells in line {line}",
                )
                raise SchemaError.expected(
                    expected, of=str(path), got=got, remedy=REMEDY, quote=False
                )
            yield row
        line = before + 1 + lines.line_num  # type: ignore[attr-defined]


def broken(path: Path, error: Exception) -> FairveilError:
    """The error for a file that cannot be read as text, with the line where that is known."""
    if isinstance(error, FairveilError):
        return error
    if isinstance(error, UnicodeDecodeError):
        got = f"a byte that is no UTF-8 in line {_undecodable(path)}"
    elif isinstance(error, csv.Error):
        got = str(error)  # of the standard library: fixed words, and a limit
    elif isinstance(error, OSError) and not isinstance(error, BROKEN_GZIP):
        got = error.strerror or "what cannot be read"
    else:
        got = "broken gzip"
    return InputError.expected(WELL_FORMED, of=str(path), got=got, remedy=REMEDY, quote=False)


def not_read(path: Path, delimiter: str, before: int, width: int) -> FairveilError:
    """The error for a file that another parser refused: what the standard library finds wrong with
    it."""
    try:
        for _ in rows_from(path, delimiter, before, width):
            pass
    except FairveilError as error:
        return error
    got = "a row that cannot be read"
    return InputError.expected(WELL_FORMED, of=str(path), got=got, remedy=REMEDY, quote=False)


def headed(there: Sequence[str], needed: Collection[str]) -> object:
    """The names in a header for an error, where it is one: a file without a header begins with
    somebody's row. A header has a name that is looked for, or no cell that is empty or a number."""
    if set(there) & set(needed) or not any(_is_value(name) for name in there):
        return list(there)
    return f"a first line of {len(there)} cells that names none of them"


def _is_value(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True


def _undecodable(path: Path) -> int:
    try:
        # Decoded line by line, once more, only to name the line.
        with open_bytes(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return number
    except (OSError, *BROKEN_GZIP):
        pass
    return 1
