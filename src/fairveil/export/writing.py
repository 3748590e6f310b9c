"""Exports on disk: a file is written whole or not at all, and what was there stays unless it is to
be replaced.

Guarantees (tests/export/test_export_writing.py):
1. A refused export writes nothing and changes nothing.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from .. import _checks
from ..errors import InputError
from .reading import read


def export_sql(
    model: object,
    path: str | os.PathLike[str],
    *,
    table: str = "rows",
    keep: Sequence[str] = (),
    materialized: bool | None = None,
    overwrite: bool = False,
) -> Path:
    """Write a fitted estimator as one query of standard SQL over a table with the fit's columns.

    `sql_query` has the same text, and describes its columns.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library. Networks, and mixtures of classifiers made elsewhere,
        are refused.
    path : path
        The file.
    table : str, default="rows"
        The table; a dot separates its schema.
    keep : sequence of str, default=()
        Columns of the table that are handed on, such as its key.
    materialized : bool, default=None
        Whether to write ``AS MATERIALIZED``, which is not standard: PostgreSQL, SQLite and DuckDB
        then compute each step once. None: only where steps that are put into one another would
        become too long.
    overwrite : bool, default=False
        Whether an existing file is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the model cannot be exported, or the file is there already.

    See Also
    --------
    to_sklearn : Makes a pipeline of scikit-learn.
    """
    return _written(
        path,
        lambda: sql_query(model, table=table, keep=keep, materialized=materialized).encode(),
        overwrite,
    )


def sql_query(
    model: object,
    *,
    table: str = "rows",
    keep: Sequence[str] = (),
    materialized: bool | None = None,
) -> str:
    """One query, whose rows have `prediction` and, of classifiers, a column `probability[...]` for
    each class.

    Rows for which `predict` raises an error have NULL. A randomized model reads a column `uniform`
    of numbers in [0, 1).

    Parameters
    ----------
    model : estimator
        As in `export_sql`.
    table : str, default="rows"
        The table; a dot separates its schema.
    keep : list of str, default=()
        Columns of the table that are handed on: its key, for example.
    materialized : bool, default=None
        Write ``AS MATERIALIZED``, which is no standard SQL: PostgreSQL, SQLite and DuckDB then
        compute each step once. Without it they put the steps into one another, and mixtures and
        thresholds may take minutes. None: it is written only where that would make the query longer
        than a million words.
    """
    from .sql_text import sql_text

    if isinstance(keep, str) or not all(isinstance(name, str) for name in keep):
        remedy = "Pass keep=['id']."
        raise InputError.expected("a list of names of columns", of="keep", got=keep, remedy=remedy)
    if not isinstance(table, str):
        raise InputError.expected(
            "the name of a table", of="table", got=table, remedy="Pass table='applicants'."
        )
    once = None if materialized is None else _checks.truth(materialized=materialized)
    return sql_text(read(model), table=table, keep=tuple(keep), materialized=once)


def _written(path: str | os.PathLike[str], content: Callable[[], bytes], overwrite: bool) -> Path:
    target = Path(path)
    _checks.truth(overwrite=overwrite)
    if target.is_dir() or (target.exists() and not overwrite):
        remedy = (
            "Name another file."
            if target.is_dir()
            else "Name another file, or pass overwrite=True."
        )
        raise InputError.expected(
            "a file that is not there yet", of="path", got=str(target), remedy=remedy
        )
    if not target.absolute().parent.is_dir():
        remedy = "Make that folder first."
        raise InputError.expected(
            "a folder that is there", of="path", got=str(target.parent), remedy=remedy
        )
    made: bytes = content()
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with open(part, "xb") as stream:
            stream.write(made)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target
