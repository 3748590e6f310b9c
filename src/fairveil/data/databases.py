"""Connections to databases, for reading only: one small class a driver, all with the same three
verbs."""

from __future__ import annotations

import importlib.util
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote

from .._urls import without_password
from ..errors import DataNotFoundError, InputError

SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://")
FILE_SCHEMES = ("sqlite", "duckdb")
SQLITE_HEADER = b"SQLite format 3\x00"


class Failure(Exception):  # noqa: N818  # never leaves this room: the reader turns it into one of the library's errors
    """What a driver says when it cannot go on. `connected`: whether the database had answered
    before."""

    def __init__(self, message: str, *, connected: bool) -> None:
        super().__init__(message)
        self.connected = connected


class Cursor(Protocol):
    """The answer to a query. Closing it closes its connection."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the answer."""
        ...

    def fetch(self, rows: int) -> Sequence[Sequence[object]]:
        """The next rows, at most so many."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Connector(Protocol):
    """Runs a query on a connection of its own."""

    def quoted(self, name: str) -> str:
        """A name between the quotes of this database."""
        ...

    def run(self, query: str) -> Cursor:
        """Its answer; a `Failure` when there is none."""
        ...


def connector_for(url: str) -> Connector:
    """The connector that an address asks for. A file that is not there is an error here: a driver
    might make one."""
    scheme = SCHEME.match(url)
    name = scheme["scheme"].lower() if scheme else "sqlite"
    file = file_of(url)
    if file is None:
        return _Sqlalchemy(url)
    if not file.is_file():
        raise DataNotFoundError.expected(
            f"a {name} database",
            of=without_password(url),
            got=f"no file {file}" if not file.is_dir() else f"a folder, {file}",
            remedy=(
                f"{name}:///people.db starts in {Path.cwd()}, {name}:////data/people.db at "
                f"the root."
            ),
        )
    return _Sqlite(file) if name == "sqlite" else _Duckdb(file)


def file_of(url: str) -> Path | None:
    """The file that an address names, or None for a server."""
    scheme = SCHEME.match(url)
    if scheme is None:
        if "@" in url:
            raise InputError.expected(
                "driver://user:password@host/database, or a file",
                of="url",
                got="an address without ://",
                remedy="Write postgresql://..., or sqlite:///people.db.",
            )
        return Path(url)
    if scheme["scheme"].lower().partition("+")[0] not in FILE_SCHEMES:
        return None
    rest = url[scheme.end() :].partition("?")[0]
    if rest in ("", "/", "/:memory:"):
        raise InputError.expected(
            "a database in a file",
            of="url",
            got=url,
            remedy="A database in memory belongs to its own connection: save it to a file.",
        )
    return Path(unquote(rest.removeprefix("/")))


class _Cursor:
    """A cursor of the common Python interface, with its connection."""

    def __init__(self, connection: Any, cursor: Any, errors: tuple[type[Exception], ...]) -> None:
        self._connection = connection
        self._cursor = cursor
        # a file may hold texts that are none
        self._errors: tuple[type[Exception], ...] = (*errors, UnicodeDecodeError)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(column[0]) for column in self._cursor.description)

    def fetch(self, rows: int) -> Sequence[Sequence[object]]:
        try:
            fetched: Sequence[Sequence[object]] = self._cursor.fetchmany(rows)
        except self._errors as error:
            raise Failure(own_words(error), connected=True) from None
        return fetched

    def close(self) -> None:
        self._cursor.close()
        self._connection.close()


class _Sqlite:
    def __init__(self, file: Path) -> None:
        self._file = file

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def run(self, query: str) -> Cursor:
        with self._file.open("rb") as opened:
            start = opened.read(len(SQLITE_HEADER))
        if start and start != SQLITE_HEADER:
            raise Failure("file is not a database", connected=False)
        connection = sqlite3.connect(f"file:{quote(str(self._file.absolute()))}?mode=ro", uri=True)
        try:
            return _Cursor(connection, connection.execute(query), (sqlite3.Error,))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            connection.close()
            raise Failure(own_words(error), connected=True) from None


class _Duckdb:
    def __init__(self, file: Path) -> None:
        if importlib.util.find_spec("duckdb") is None:
            raise InputError.expected(
                "duckdb", of="load_sql", got="no duckdb", remedy="pip install 'fairveil[data]'"
            )
        self._file = file

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def run(self, query: str) -> Cursor:
        import duckdb

        try:
            connection = duckdb.connect(str(self._file), read_only=True)
        except duckdb.Error as error:
            raise Failure(str(error), connected=False) from None
        try:
            return _Cursor(connection, connection.execute(query), (duckdb.Error,))
        except duckdb.Error as error:
            connection.close()
            raise Failure(own_words(error), connected=True) from None


class _Sqlalchemy:
    def __init__(self, url: str) -> None:
        if importlib.util.find_spec("sqlalchemy") is None:
            raise InputError.expected(
                "sqlalchemy",
                of="load_sql",
                got="no sqlalchemy",
                remedy="pip install 'fairveil[sql]'",
            )
        # The driver that the extra installs; SQLAlchemy's own choice would be another.
        self._engine = _engine(
            re.sub(r"^postgres(?:ql)?://", "postgresql+psycopg://", url, flags=re.IGNORECASE), url
        )

    def quoted(self, name: str) -> str:
        return str(self._engine.dialect.identifier_preparer.quote_identifier(name))

    def run(self, query: str) -> Cursor:
        import sqlalchemy

        try:
            connection = self._engine.connect()
        except (sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
            raise Failure(_own_words(error), connected=False) from None
        try:
            options = (
                {"postgresql_readonly": True} if self._engine.dialect.name == "postgresql" else {}
            )
            streaming = connection.execution_options(stream_results=True, **options)
            # Every colon is meant as it stands: a query takes no parameters.
            return _Result(streaming, streaming.execute(sqlalchemy.text(query.replace(":", "\\:"))))
        except sqlalchemy.exc.SQLAlchemyError as error:
            connection.close()
            raise Failure(own_words(error), connected=True) from None


def _engine(url: str, given: str) -> Any:
    import sqlalchemy

    try:
        return sqlalchemy.create_engine(
            url, poolclass=sqlalchemy.pool.NullPool, hide_parameters=True
        )
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError) as error:
        kind = type(error).__name__
    raise InputError.expected(
        "an address that SQLAlchemy reads, and its driver",
        of=without_password(given),
        got=kind,
        remedy=(
            "Write driver://user:password@host/database and install the driver, for PostgreSQL "
            "pip install 'fairveil[sql]'"
        ),
    )


ABOUT_THE_QUERY = re.compile(
    r"no such |near |unrecognized token|incomplete input|ambiguous column|file is not a "
    r"database|database disk image is"
    r"|database is locked|unable to open|attempt to write a readonly|not authorized|wrong number "
    r"of arguments"
)
"""How SQLite begins what it says of a query or a file; of rows it says other things, and repeats
their values."""
DUCKDB_ABOUT_THE_QUERY = (
    "CatalogException",
    "BinderException",
    "ParserException",
    "SyntaxException",
    "PermissionException",
)


def _inner(error: Exception) -> object:
    """The driver's own error, where SQLAlchemy has wrapped it."""
    return getattr(error, "orig", None) or error


def own_words(error: Exception) -> str:
    """What a driver says of a query. Where it may speak of the rows, and so repeat their values,
    only the kind of its error."""
    inner = _inner(error)
    kind, state = type(inner).__name__, getattr(inner, "sqlstate", None)
    if isinstance(inner, sqlite3.Error):
        safe = ABOUT_THE_QUERY.match(str(inner)) is not None
    elif type(inner).__module__.startswith(("duckdb", "_duckdb")):
        safe = kind in DUCKDB_ABOUT_THE_QUERY
    else:
        # classes of SQLSTATE: 42 is about the query, 25 about the transaction; 22, 23, P0 and
        # others quote what they found
        safe = isinstance(state, str) and state[:2] in ("42", "25")
    if safe:
        return _own_words(error)
    return (
        f"{kind}{f' ({state})' if isinstance(state, str) else ''}, whose text is left out because "
        f"it may show values of rows"
    )


def _own_words(error: Exception) -> str:
    """The driver's first line, without SQLAlchemy's query and links."""
    text = str(_inner(error)).strip()
    return text.splitlines()[0] if text else type(error).__name__


class _Result:
    def __init__(self, connection: Any, result: Any) -> None:
        self._connection = connection
        self._result = result

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self._result.keys()))

    def fetch(self, rows: int) -> Sequence[Sequence[object]]:
        import sqlalchemy

        try:
            fetched: Sequence[Sequence[object]] = self._result.fetchmany(rows)
        except sqlalchemy.exc.SQLAlchemyError as error:
            raise Failure(own_words(error), connected=True) from None
        return fetched

    def close(self) -> None:
        self._result.close()
        self._connection.close()
