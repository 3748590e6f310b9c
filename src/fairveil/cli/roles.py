"""What is public about a table: its schema file, and which column is what.

Nothing heavy is imported here: a schema that is wrong is refused before anything is.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload

from ..errors import DataNotFoundError, InputError, within
from .frame import SchemaFileError, wrong

if TYPE_CHECKING:
    from ..facts import Schema


@overload
def schema_of(path: Path) -> Schema: ...


@overload
def schema_of(path: None) -> None: ...


def schema_of(path: Path | None) -> Schema | None:
    """The schema of a file, if there is one; an error about all that is wrong with it."""
    from ..facts import Schema

    if path is None:
        return None
    try:
        return Schema.load(path)
    except DataNotFoundError:
        raise
    except InputError as error:
        if not path.is_file() or path.suffix.lower() not in (".toml", ".json"):
            raise
        raise wrong_file(path, InputError(within(str(path), error))) from None


def wrong_file(path: Path, error: Exception) -> SchemaFileError:
    wrong = SchemaFileError(*error.args)
    wrong.edit = f"edit {path}, then run: fairveil schema check {shlex.quote(str(path))}"
    return wrong


@dataclass(frozen=True)
class Roles:
    """What is what in a table: its schema if there is one, and what the command line says beside it.
    `unit`: the column that tells persons apart, `most`: how many rows of each are read."""

    schema: Schema | None
    target: str
    sensitive: tuple[str, ...]
    ignore: tuple[str, ...] = ()
    unit: str | None = None
    most: int | None = None

    @staticmethod
    def of(
        schema: Schema | None,
        target: str | None,
        sensitive: Sequence[str] | None,
        ignore: Sequence[str] | None = None,
    ) -> Roles:
        """The command line's words first, then the schema's."""
        chosen = target or (None if schema is None else schema.target)
        if chosen is None:
            remedy = "Name the column to predict: --target hired, for example."
            raise wrong("target", "a column", None, remedy)
        groups = tuple(sensitive or (() if schema is None else schema.sensitive))
        ignored = tuple(ignore or ())
        if len({chosen, *groups, *ignored}) < 1 + len(groups) + len(set(ignored)):
            got = ", ".join((chosen, *groups, *ignored))
            raise wrong("roles", "distinct columns", got, "Name each column once.")
        if schema is not None:
            # sensitive columns that were not named are neither groups nor features
            unused = [name for name in schema.sensitive if name not in (*groups, chosen)]
            schema = schema.with_roles(target=chosen, sensitive=groups).without(
                *dict.fromkeys((*unused, *ignored))
            )
        return Roles(schema, chosen, groups, ignored)

    def with_unit(self, unit: str | None, most: int | None) -> Roles:
        """With the column that tells persons apart: the command line's words first, then the
        schema's. Coded rows then know whose they are."""
        schema = self.schema
        column = unit if unit is not None else None if schema is None else schema.unit
        if column is None:
            if most is not None:
                remedy = "Name the column that tells persons apart: --unit patient."
                raise wrong("max_rows_per_unit", "none without --unit", most, remedy)
            return self
        limit = most if most is not None or schema is None else schema.max_rows_per_unit
        schema = None if schema is None else schema.with_unit(column, limit)
        return replace(self, schema=schema, unit=column, most=limit)
