"""Partitions of a dask dataframe as coded stores, written by the workers that have them: no row
comes to this process.

Guarantees (tests/curator/test_curator_dask_frames.py):
1. The stores, by name, hold the rows of the partitions in their order, to the bit.
2. What goes wrong on a worker comes back as the kind of an error, the partition and the column:
   never a value of a row.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

from ..curator.shards.shard import Failed, attempted
from ..data.encoded import encode_table
from ..data.files import PathLike
from ..data.store_writer import write_store
from ..errors import InputError, PrivacyError
from ..facts.schema import Schema

NAME = "part-{:05}"


def write_partitions(
    client: Any,
    frame: Any,
    schema: Schema,
    folder: PathLike,
    *,
    sensitive_as_feature: bool,
    precision: str,
    overwrite: bool,
) -> None:
    """One store a partition. They are written on workers, so `folder` must be theirs, too."""
    _require_writable(frame, schema)
    place = Path(folder).absolute()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(place.iterdir()) and not overwrite:
        remedy = "Pass another folder, or overwrite=True where it holds nothing but such stores."
        raise InputError.expected("an empty folder", of="folder", got=str(place), remedy=remedy)
    parts = frame.to_delayed()
    strange = {entry.name for entry in place.iterdir()} - {
        NAME.format(number) for number in range(len(parts))
    }
    if strange:  # a store more would be rows more
        remedy = "Remove it, or pass another folder."
        raise InputError.expected(
            "stores of these partitions alone", of="folder", got=min(strange), remedy=remedy
        )
    options = {"sensitive_as_feature": sensitive_as_feature, "precision": precision}
    writing = [  # a partition is let go when it is written
        client.submit(
            _written,
            client.compute(part),
            schema,
            str(place / NAME.format(number)),
            options,
            pure=False,
        )
        for number, part in enumerate(parts)
    ]
    for number, future in enumerate(writing):
        try:
            found = future.result()
        except Exception as error:
            # of the frame's own graph, or of the cluster: its words may show values
            found = Failed(type(error).__name__)
        if isinstance(found, Failed):
            _refuse(number, found)


def _require_writable(frame: object, schema: object) -> None:
    """A dask dataframe, and a schema whose rows may lie in any partition."""
    if not hasattr(frame, "to_delayed"):
        remedy = "Pass a dask dataframe; a table in memory goes to data.encode(table, schema)."
        raise InputError.expected(
            "a dask dataframe", of="frame", got=type(frame).__name__, remedy=remedy
        )
    if not isinstance(schema, Schema):
        raise InputError.expected(
            "a Schema", of="schema", got=schema, remedy="Read one with Schema.load(path)."
        )
    if schema.unit is not None:
        remedy = (
            "Write it as Parquet, and data.encode(folder, schema, out), which puts rows person by "
            "person."
        )
        got = f"unit={schema.unit!r}: a person's rows may lie in any partition"
        raise PrivacyError.expected(
            "a schema of rows", of="schema", got=got, remedy=remedy, quote=False
        )


def _written(part: object, schema: Schema, path: str, options: dict[str, Any]) -> Failed | None:
    """Runs on a worker: it raises nothing, for tracebacks carry values and dask logs them."""

    def write() -> None:
        write_store(
            encode_table(part, schema, shows_values=False, **options),
            path,
            overwrite=os.path.isdir(path),
        )

    found = attempted(write, shows=True)
    return found if isinstance(found, Failed) else None


def _refuse(number: int, failed: Failed) -> NoReturn:
    remedy = (
        "Look at what the frame computes, whether the workers see the folder, and whether they "
        "have this version of fairveil."
    )
    got = failed.words or failed.kind or "a failure"
    expected, of = "rows that the schema covers, written by a worker", f"partition {number}"
    raise InputError.expected(expected, of=of, got=got, remedy=remedy, quote=False) from None
