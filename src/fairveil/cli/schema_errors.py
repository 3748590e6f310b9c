"""A schema file that is wrong: everything at once, each with its place in the file, and the command
that checks it again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import DataNotFoundError, FairveilError, InputError, nearest
from .complaints import Refused, Said, all_said

if TYPE_CHECKING:
    from ..facts import Schema


class WrongSchema(Refused):
    """What a schema file says is wrong, left blank, or not about this table."""


def loaded(path: Path) -> Schema:
    """The schema of a file."""
    from ..facts import Schema

    try:
        return Schema.load(path)
    except DataNotFoundError:
        raise
    except InputError as error:
        if not path.is_file() or path.suffix.lower() not in (".toml", ".json"):
            raise
        raise WrongSchema(*_of_file(path, error)) from None


def lacking(schema: Schema, there: Collection[str], table: str) -> None:
    """An error where a table has not all the columns that a schema declares."""
    missing = [
        name
        for name, column in schema.columns.items()
        if column.kind != "ignored" and name not in there
    ]
    said = []
    for name in missing:
        near = nearest(name, there)
        hint = f"did you mean {near[0]}?" if near else "rename it in the schema, or take it out"
        said.append(Said(f"expected a column {name}, got none of that name", table, hint))
    if said:
        raise WrongSchema(*said)


def _of_file(path: Path, error: FairveilError) -> list[Said]:
    edit = f"edit {path}, then run: fairveil schema check {shlex.quote(str(path))}"
    out = []
    for one in all_said(error, "schema check"):
        inside = "" if one.where in ("schema", str(path)) else f", {place_in_file(one.where)}"
        out.append(
            Said(one.what, f"{path}{inside}", re.sub(r"^(did you mean) --\w+", r"\1", one.hint))
        )
    return [
        Said(one.what, one.where, one.hint if one.hint.startswith("did you mean") else edit)
        for one in out
    ]


def place_in_file(where: str) -> str:
    """A role is no option here."""
    return where.removeprefix("--") if where.startswith("--") and " " not in where else where
