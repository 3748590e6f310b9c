"""Words of standard SQL in which one row is computed: literals, choices, columns."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..errors import InputError
from .program import LARGEST, UNIFORM, NumberColumn, WordColumn

IN_A_ROW = 100
"""Terms of a sum that stand in a row: more are put into brackets, since databases bound how deep an
expression is."""


def plus(parts: Sequence[str]) -> str:
    """A sum.

    >>> plus(["a", "b"])
    'a + b'
    """
    if len(parts) <= IN_A_ROW:
        return " + ".join(parts)
    return " + ".join(
        f"({plus(parts[at : at + IN_A_ROW])})" for at in range(0, len(parts), IN_A_ROW)
    )


class Sql:
    """Words of standard SQL."""

    def number(self, value: float) -> str:
        text = f"{float(value)!r}".replace("e", "E")
        text = text if "E" in text else f"{text}E0"
        return f"({text})" if value < 0 else text

    def when(self, condition: str, then: str, otherwise: str) -> str:
        return f"CASE WHEN {condition} THEN {then} ELSE {otherwise} END"

    def at(self, code: str, values: Sequence[float]) -> str:
        parts = (f"WHEN {place} THEN {self.number(value)}" for place, value in enumerate(values))
        return f"CASE {code} {' '.join(parts)} END"

    def exp(self, of: str) -> str:
        return f"EXP({of})"

    def log(self, of: str) -> str:
        return f"LN({of})"

    def both(self, one: str, other: str) -> str:
        return f"({one} AND {other})"

    def coded_number(self, column: NumberColumn) -> str:
        value = f"CAST({name_of(column.name)} AS DOUBLE PRECISION)"
        if column.bounds is None:
            return f"CASE WHEN ABS({value}) <= {self.number(LARGEST)} THEN {value} END"
        low, high = map(self.number, column.bounds)
        missing = "" if column.missing is None else f" ELSE {self.number(column.missing)}"
        ends = f"WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high}"
        return f"CASE {ends} WHEN {value} IS NOT NULL THEN {value}{missing} END"

    def coded_word(self, column: WordColumn) -> str:
        name = name_of(column.name)
        parts = [
            f"WHEN {name} = {literal(value)} THEN {code}"
            for code, value in enumerate(column.values)
        ]
        listed = "".join(f" OR {name} = {literal(marker)}" for marker in column.markers)
        parts.append(
            f"WHEN {name} IS NULL{listed} THEN "
            f"{'NULL' if column.missing is None else column.missing}"
        )
        unknown = "" if column.unknown is None else f" ELSE {column.unknown}"
        return f"CASE {' '.join(parts)}{unknown} END"

    def given(self, name: str) -> str:
        value = f"CAST({name_of(name)} AS DOUBLE PRECISION)"
        if name != UNIFORM:
            return value
        return (
            f"CASE WHEN {value} >= {self.number(0.0)} AND {value} < {self.number(1.0)} THEN "
            f"{value} END"
        )

    def only(self, value: str, condition: str) -> str:
        return f"CASE WHEN {condition} THEN {value} END"

    def finite(self, score: str) -> str:
        return f"CASE WHEN ABS({score}) <= {self.number(LARGEST)} THEN {score} END"


def name_of(name: str) -> str:
    """A quoted name.

    >>> name_of("hours a week")
    '"hours a week"'
    """
    if not name or any(ord(letter) < 32 for letter in name):
        remedy = "Rename that column or table."
        raise InputError.expected("a name that SQL can write", of="name", got=name, remedy=remedy)
    return '"' + name.replace('"', '""') + '"'


def literal(value: Hashable) -> str:
    """A value as SQL writes it.

    >>> [literal(value) for value in ("it's", 3, 2.5, True)]
    ["'it''s'", '3', '2.5E0', 'TRUE']
    """
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        if "\0" in value:
            remedy = "Rename it in the schema, and fit again."
            raise InputError.expected(
                "a value that SQL can write", of="values", got=value, remedy=remedy
            )
        return "'" + value.replace("'", "''") + "'"
    return str(value) if isinstance(value, int) else Sql().number(float(value))  # type: ignore[arg-type]
