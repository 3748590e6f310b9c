"""A `Program` as one SQL query: nothing but SELECT, CASE, EXP and LN of the standard.

Rows that `predict` refuses get NULL. Numbers are written with an exponent, which the standard reads
as floating point.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence

from ..errors import InputError
from .dialect import Dialect
from .lines import Line, Written, written
from .program import LARGEST, UNIFORM, Classified, NumberColumn, Program, WordColumn
from .reading import unnamed

PREDICTION = "prediction"
LONGEST = 1_000_000
"""Words of a query whose steps are put into one another, beyond which each is computed once:
databases end at such queries."""


class Sql(Dialect):
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


def sql_text(
    program: Program, *, table: str, keep: Sequence[str] = (), materialized: bool | None = None
) -> str:
    """The query. `keep`: columns of the table that it hands on. `materialized`: each step is
    computed once, by a word that is no standard; None: where it has to be."""
    program, dialect = unnamed(program), Sql()
    read = [*program.inputs.names, *program.others]
    prefix = "fv_"
    while any(name.casefold().startswith(prefix) for name in (*read, *keep)):
        prefix = f"{prefix}_"
    found = written(program, dialect, prefix)
    outputs = _outputs(program, found.probabilities, found.result, found.guards)
    taken = [name for name in keep if name in dict(outputs)]
    if taken or len(set(keep)) != len(keep):
        remedy = "Keep each other column once."
        raise InputError.expected(
            "names other than the results'", of="keep", got=taken or list(keep), remedy=remedy
        )
    named = ".".join(map(name_of, re.split(r"\.", table)))
    source = f"{prefix}rows"
    parts = [
        f"{source} AS (\n  SELECT {', '.join(map(name_of, dict.fromkeys((*keep, *read))))}\n  FROM "
        f"{named}\n)"
    ]
    for level in range(1, max((line.level for line in found.lines), default=0) + 1):
        parts.append(
            _step(
                f"{prefix}step{level}",
                source,
                [line for line in found.lines if line.level == level],
            )
        )
        source = f"{prefix}step{level}"
    chosen = [*map(name_of, keep), *(f"{text} AS {name_of(name)}" for name, text in outputs)]
    if _inlined(found, prefix) > LONGEST if materialized is None else materialized:
        parts = [part.replace(" AS (", " AS MATERIALIZED (", 1) for part in parts]
    return f"WITH {', '.join(parts)}\nSELECT " + ",\n  ".join(chosen) + f"\nFROM {source}\n"


def _inlined(found: Written, prefix: str) -> int:
    """Words of the results, with every name replaced by its expression, as a database may do it."""
    size: dict[str, int] = {}
    for line in found.lines:
        size[line.name] = sum(
            size.get(word, 1) for word in re.findall(rf"{prefix}\d+|[^\s()]+", line.text)
        )
    return sum(size[name] for name in (*found.probabilities, found.result, *found.guards))


def _step(name: str, source: str, lines: Sequence[Line]) -> str:
    added = "".join(f",\n    {line.text} AS {line.name}" for line in lines)
    return f"{name} AS (\n  SELECT {source}.*{added}\n  FROM {source}\n)"


def _outputs(
    program: Program, probabilities: Sequence[str], result: str, guards: Sequence[str]
) -> list[tuple[str, str]]:
    condition = " OR ".join(f"{guard} IS NULL" for guard in guards)

    def guarded(text: str) -> str:
        return f"CASE WHEN {condition} THEN NULL ELSE {text} END" if condition else text

    if not isinstance(program.result, Classified):
        return [(PREDICTION, guarded(f"CAST({result} AS DOUBLE PRECISION)"))]
    classes = program.result.classes
    decided = " ".join(f"WHEN {code} THEN {literal(value)}" for code, value in enumerate(classes))
    found = [(PREDICTION, guarded(f"CASE {result} {decided} END"))]
    return found + [
        (f"probability[{value}]", guarded(f"CAST({name} AS DOUBLE PRECISION)"))
        for value, name in zip(classes, probabilities, strict=True)
    ]
