"""`fairveil attribute`: for whoever holds the sensitive attribute of another's table: joined by id
here, and released once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import fit_options as asking
from . import options
from .completing import out_of
from .helping import DATA, OUTPUT, PRIVACY, add, group
from .release_groups import Clusters

if TYPE_CHECKING:
    from ..estimators import ReleasedGroups
    from ..facts import Schema
    from ..statement.document import PrivacyStatement

Attribute = Annotated[
    str,
    typer.Option(
        "--attribute",
        metavar="FILE",
        help="join the sensitive columns of this table: a CSV or Parquet file, or a database with "
        "--attribute-query",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Id = Annotated[
    str,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="join by this column, which both tables have",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
SchemaFile = Annotated[
    Path,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="read both tables by these public facts, in TOML or JSON",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Unmatched = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        help="count rows without an entry as the schema's missing value (group), or leave them "
        "out, unprotected (drop)",
        rich_help_panel=PRIVACY,
        autocompletion=out_of("group", "drop"),
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="of a coded store: read the ids here, in the order of its rows",
        rich_help_panel=DATA,
    ),
]
AttributeQuery = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="read this table of the attribute's database, or this SELECT",
        rich_help_panel=DATA,
    ),
]


def release(
    table: options.TableArgument,
    attribute: Attribute,
    id: Id,
    schema: SchemaFile,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="write the release to this file",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="sign it with this private key",
            show_default="not signed",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    note: Annotated[
        str | None,
        typer.Option(metavar="WORDS", help="sign this line of words, too", rich_help_panel=OUTPUT),
    ] = None,
    unmatched: Unmatched = "group",
    ids: Ids = None,
    query: options.Query = None,
    attribute_query: AttributeQuery = None,
    epsilon: asking.Epsilon = 1.0,
    delta: options.Delta = 0.0,
    clusters: Clusters = None,
    seed: options.Seed = None,
    ledger: options.LedgerUrl = None,
    dataset: options.LedgerDataset = None,
    purpose: options.Purpose = None,
    verbose: options.Verbose = False,
    force: options.Force = False,
) -> None:
    """Join your attribute to another's table by id, and release counts of groups once, as one
    signed file.

    Features and labels are public to whoever sent the table; only the sensitive columns are
    protected. Models are then fitted to the file at no further cost:
    ReleasedGroups.load(FILE).fit(X, y, "equalized_odds:0.05").

    Exit status: 0 written; 2 refused, nothing written or spent; 3 spent, but written to another
    folder, which is named on standard error.
    """
    from .._waiting import waiting
    from ..estimators import release_groups
    from ..estimators.released.saving import write
    from .folders import require_file
    from .ledger_option import opened
    from .printing import Fact, print_facts
    from .rescue import already_charged
    from .written import recorded

    require_file(out, force=force)
    private = _private_key(key, note)
    book = opened(ledger, dataset, purpose)
    known = _schema(schema)
    with waiting("Joining the tables"):
        from ..data import load_joined

        rows = load_joined(
            table, attribute, known, **_how(id, unmatched, ids, query, attribute_query)
        )
    done: list[ReleasedGroups] = []

    def paid() -> PrivacyStatement | None:
        return done[0].privacy if done else None

    with (
        already_charged(out, paid, lambda folder: done[0].save(folder), book),
        options.warnings_as_notes(),
        waiting("Releasing"),
    ):
        done.append(
            release_groups(
                rows,
                epsilon=epsilon,
                delta=delta,
                protects="sensitive_features",
                clusters=clusters,
                ledger=book,
                random_state=seed,
            )
        )
        write(done[0], out, private, note)
    released = done[0]
    if verbose:
        typer.echo(f"{released.privacy.summary()}\n")
    facts = [
        Fact("groups", ", ".join(map(str, released.groups))),
        Fact("clusters", f"{released.clusters.count} of public rows"),
        Fact("written", f"{out} ({'signed' if key is not None else 'not signed'})"),
    ]
    print_facts((*facts, *recorded(out, released.privacy, book, signed=key is not None)))


def check(
    table: options.TableArgument,
    attribute: Attribute,
    id: Id,
    schema: SchemaFile,
    unmatched: Unmatched = "group",
    ids: Ids = None,
    query: options.Query = None,
    attribute_query: AttributeQuery = None,
) -> None:
    """Count how many rows of a table have an entry of yours, before anything is spent. Exact
    counts: keep them to yourself.

    Exit status: 0 some rows have an entry, 1 none has, 2 refused.
    """
    from .._waiting import waiting
    from ..data.joined import matched
    from .printing import Fact, print_facts

    with waiting("Joining the tables"):
        how = _how(id, unmatched, ids, query, attribute_query)
        found = matched(table, attribute, _schema(schema), **how)
    print_facts(
        [
            Fact("matched", f"{found.matched:,} of {found.rows:,} rows have an entry"),
            Fact("unused", f"{found.unused:,} entries belong to no row"),
            Fact(
                "private", "these counts are exact, and for you alone: they are part of no release"
            ),
        ]
    )
    if not found.matched:
        raise typer.Exit(1)


def _how(
    id: str, unmatched: str, ids: str | None, query: str | None, attribute_query: str | None
) -> dict[str, Any]:
    return {
        "id": id,
        "unmatched": unmatched,
        "ids": ids,
        "query": query,
        "attribute_query": attribute_query,
    }


def _schema(path: Path) -> Schema:
    found = options.schema_of(path)
    assert found is not None
    return found


def _private_key(key: Path | None, note: str | None) -> Any:
    """Read before anything is spent."""
    from ..errors import InputError
    from ..statement import signing
    from .sign import asked_passphrase

    if key is None and note is not None:
        raise InputError.expected(
            "--key beside it", of="--note", got=note, remedy="Name the key that signs."
        )
    options.require_words(note=note)
    return None if key is None else signing.private_key(key, asked_passphrase)


app = group("attribute", "For whoever holds the sensitive attribute of another's table.")
add(
    app,
    release,
    "fairveil attribute release t.csv --attribute a.csv --id i --schema s --out r",
    "fairveil attribute release t --attribute a --id i --schema s --out r --key k",
    "fairveil attribute release st --ids f --attribute a --id i --schema s --out r",
    short="join an attribute by id, and release groups once",
)
add(
    app,
    check,
    "fairveil attribute check t.csv --attribute a.csv --id id --schema t.toml",
    "fairveil attribute check t.parquet --attribute a.parquet --id id --schema s",
    "fairveil attribute check store --ids f --attribute a.csv --id id --schema s",
    short="count who has an entry, for yourself alone",
)
