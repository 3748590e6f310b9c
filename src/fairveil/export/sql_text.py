"""A `Program` as one SQL query: nothing but SELECT, CASE, EXP and LN of the standard.

Rows that `predict` refuses get NULL. Numbers are written with an exponent, which the standard reads
as floating point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import InputError
from .dialect import Sql, literal, name_of
from .lines import Line, Written, written
from .program import Classified, Program
from .reading import unnamed

PREDICTION = "prediction"
LONGEST = 1_000_000
"""Words of a query whose steps are put into one another, beyond which each is computed once:
databases end at such queries."""


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
