"""`fairveil encode`: a table coded once, onto the disk, for fits that hold no table in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .helping import DATA

if TYPE_CHECKING:
    from ..data import EncodedRows


def encode(
    table: options.TableArgument,
    out: options.Out,
    schema: options.SchemaFile = None,
    query: options.Query = None,
    single: Annotated[
        bool,
        typer.Option(
            "--float32",
            help="keep numbers in 4 bytes: half the space, 7 digits",
            rich_help_panel=DATA,
        ),
    ] = False,
    force: options.Force = False,
) -> None:
    """Code a table by its schema, once, into a file that `fit`, `predict` and the library read in
    place of the table.

    The file is a copy of the rows, readable by its owner alone; delete it when it is no longer
    needed.

    Exit status: 0 written; 2 refused, nothing written.
    """
    from .._waiting import waiting
    from ..data import encode as encode_rows
    from ..errors import InputError
    from .printing import Fact, print_facts

    known = options.schema_of(schema)
    if known is None:
        remedy = "Write one with `fairveil schema init`."
        raise InputError.expected("a schema", of="--schema", got=None, remedy=remedy)
    place = options.place_of(table, query)
    place.kind()  # which says what to do in words of the command line
    with waiting("Coding the table"):
        precision = "float32" if single else "float64"
        store: EncodedRows = encode_rows(
            place.address,
            known,
            out,
            query=query,
            precision=precision,
            overwrite=force,
        )
    print_facts(
        [
            Fact("store", str(out)),
            Fact("size", f"{store.nbytes / 2**20:,.1f} MiB, readable by its owner alone"),
            Fact(
                "use",
                f"fairveil fit {out} --schema {schema} ...; delete the file when it is no longer "
                f"needed",
            ),
        ]
    )
