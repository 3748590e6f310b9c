"""The driver of PostgreSQL, psycopg: loaded when a server is named; its errors with ways out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ....errors import InputError

if TYPE_CHECKING:
    import psycopg

    Link = psycopg.Connection[tuple[Any, ...]]


PATIENCE = 60
TAKEN = ("55P03", "57014", "40P01")
WAYS_OUT: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        TAKEN,
        f"its turn within {PATIENCE} seconds",
        "Another session holds the ledger: find it in pg_stat_activity and end it.",
    ),
    (
        ("42501",),
        "a user who may do this",
        "Ask for the rights to the tables whose names begin with fairveil_ledger.",
    ),
    (
        ("25006",),
        "a server that may be written to",
        "Name the primary server, not a standby, or open it for reading only.",
    ),
    (
        ("53100", "53200"),
        "disk space on the server",
        "Nothing was written. Free space and try again.",
    ),
    (
        ("23",),
        "a line that keeps the rules of the tables",
        "Lines are only added, each one number further, and never charge more than all.",
    ),
    (
        ("42P07", "42723", "42710"),
        "a database without other tables of these names",
        "Use a database or a schema of its own.",
    ),
)


def driver() -> Any:
    """psycopg, loaded when a server is named."""
    try:
        import psycopg
    except ImportError as error:
        remedy = "pip install 'fairveil[sql]'"
        raise InputError.expected("psycopg 3", of="ledger", got=str(error), remedy=remedy) from None
    return psycopg


def rows_of(link: Link, statement: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
    cursor = link.execute(statement.replace("?", "%s").encode(), parameters)
    return cursor.fetchall() if cursor.description else []


def done(link: Link, statement: str) -> None:
    link.execute(statement.encode())


def is_open(link: Link) -> bool:
    return not link.closed
