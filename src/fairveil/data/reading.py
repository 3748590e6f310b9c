"""Tables where people have them, as runs of columns: CSV (gzip or not) and Parquet files, folders
and patterns of these, and databases.

Guarantees (tests/data/test_data_reading.py):
1. Rows come in the order of the files by name, and of each file; CSV is read by pyarrow where it is
   there, by the standard library elsewhere, to the same bits.
2. No error shows a cell, nor keeps one in its context: a parser's own words may repeat the whole
   row. It names the line, and how many cells there are.
3. Databases are opened for reading only, so none is made where there is none. No error shows a
   password.
"""

from __future__ import annotations

import csv
import glob
import gzip
import importlib.util
import io
import itertools
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, unquote

import numpy as np

from .._urls import scrubbed, without_password
from ..core.errors import need
from ..errors import DataNotFoundError, FairveilError, InputError, SchemaError
from ..facts.columns import Number
from ..facts.schema import Schema
from ..tables.columns import Plain, Raw
from ..tables.frames import from_arrow
from .rows import BLOCK_ROWS, Chunk, require_columns

PathLike = str | os.PathLike[str]
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".tab", ".txt")
STARS, BLANKS = "*?[", " \t"
NAME_ROWS = "Say which rows: query='people', a table, or a SELECT."
WELL_FORMED = "text in UTF-8 with as many cells in every row as in the header"
MEND = "Mend that line; a cell that holds the delimiter or a line break goes between quotes."
BROKEN_GZIP = (EOFError, gzip.BadGzipFile, zlib.error)
BROKEN = (OSError, ValueError, LookupError, TypeError, ArithmeticError, RuntimeError, MemoryError)
"""What pyarrow raises for bytes that it cannot read: its own errors are of these families."""


def kind_of(source: object, query: str | None = None, remedy: str = NAME_ROWS) -> str:
    """Where rows lie: "sql", "store", "parquet" or "csv"."""
    if not isinstance(source, str | os.PathLike):
        way = "Pass a path or an address; a table in memory goes to data.encode(table, schema)."
        raise InputError.expected(
            "a path or an address", of="source", got=type(source).__name__, remedy=way
        )
    address = os.fspath(source)
    if query is not None:
        return "sql"
    start, first = b"", Path()
    if "://" not in address:
        first = files_of(address, "a CSV or Parquet file, or a coded store", (*PARQUET, *CSV))[0]
        with first.open("rb") as opened:
            start = opened.read(16)
    if "://" in address or start == SQLITE_HEADER or start[8:12] == b"DUCK":
        shown = without_password(address)
        raise InputError.expected("a query beside a database", of=shown, got=None, remedy=remedy)
    if start.startswith(b"ARROW1"):
        return "store"
    named = first.name.lower().endswith(PARQUET)
    return "parquet" if start.startswith(b"PAR1") or named else "csv"


def delimiter_of(source: PathLike) -> str:
    """Of a CSV file: a tab where its name says so."""
    return "\t" if os.fspath(source).lower().removesuffix(".gz").endswith((".tsv", ".tab")) else ","


def chunks_of(
    source: PathLike,
    needed: Sequence[str],
    wished: Sequence[str] = (),
    *,
    schema: Schema | None = None,
    query: str | None = None,
    order_by: Sequence[str] = (),
    kind: str | None = None,
    **options: Any,
) -> Iterator[Chunk]:
    """The columns `needed` of a table, and of those `wished` what there are. `schema` says which
    are numbers, and what is missing; `options`: of `csv_chunks`."""
    match kind or kind_of(source, query):
        case "sql":
            return sql_chunks(source, str(query), needed, wished, order_by)
        case "parquet":
            return parquet_chunks(source, needed, wished)
        case "csv":
            delimiter = options.pop("delimiter", None) or delimiter_of(source)
            return csv_chunks(source, needed, wished, schema, delimiter=delimiter, **options)
    remedy = "Pass the table that it was made from."
    raise InputError.expected("a table", of=os.fspath(source), got="a coded store", remedy=remedy)


# Files


def existing(path: PathLike, what: str) -> Path:
    """A path to a file that is there."""
    found = Path(path)
    if not found.is_file():
        came = "a folder" if found.is_dir() else "nothing there"
        raise _nowhere(what, str(found), came)
    return found


def files_of(path: PathLike, what: str, endings: Sequence[str]) -> list[Path]:
    """The files of a file, a folder or a pattern, by name (`in_order`). Of a folder those with one
    of the endings; names that begin with a dot or an underscore are notes of the programs that wrote it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("part-10.csv", "part-2.csv", "_SUCCESS", ".part-2.csv.crc"):
    ...     (folder / name).touch()
    >>> [found.name for found in files_of(folder, "a CSV file", CSV)]
    ['part-2.csv', 'part-10.csv']
    """
    text = os.fspath(path)
    if Path(text).is_dir():
        named = [one for one in Path(text).iterdir() if one.name.lower().endswith(tuple(endings))]
    elif any(star in text for star in STARS) and not Path(text).exists():
        named = [Path(found) for found in glob.glob(text)]
    else:
        return [existing(path, what)]
    found = [one for one in named if one.is_file() and not one.name.startswith((".", "_"))]
    if not found:
        raise _nowhere(
            what, text, "a folder without one" if Path(text).is_dir() else "nothing there"
        )
    return sorted(found, key=in_order)


def in_order(path: Path) -> list[tuple[int, str]]:
    """By name, numbers in it by their size: part-2 comes before part-10."""
    parts = enumerate(re.split("([0-9]+)", str(path)))
    return [(int(part), "") if at % 2 else (0, part) for at, part in parts]


def _nowhere(what: str, of: str, got: str) -> DataNotFoundError:
    remedy = f"Look for its name; the current folder is {Path.cwd()}."
    return DataNotFoundError.expected(what, of=of, got=got, remedy=remedy)


def identity_of(path: Path) -> tuple[int, int, int]:
    """Changes when the file is written to or replaced."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def open_bytes(path: Path) -> IO[bytes]:
    """The file's bytes, decompressed when it is gzip: by its first bytes, not by its name."""
    with path.open("rb") as opened:
        is_gzip = opened.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzip else path.open("rb")  # type: ignore[return-value]


def open_text(path: Path) -> io.TextIOWrapper:
    """The file's text in UTF-8 (a byte order mark is skipped), newlines as they are."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def unreadable(path: Path, expected: str) -> InputError:
    """The error for a file whose bytes are not what they should be: guarantee 2."""
    got, remedy = "bytes that cannot be read as one", "Mend the file, or fetch it anew."
    return InputError.expected(expected, of=str(path), got=got, remedy=remedy, quote=False)


def need_package(name: str, of: str, extra: str = "data") -> None:
    """An error where a package is not installed."""
    there, fix = importlib.util.find_spec(name) is not None, f"pip install 'fairveil[{extra}]'"
    need(there, name, of=of, got=f"no {name}", fix=fix)


# CSV


def csv_chunks(
    path: PathLike,
    needed: Sequence[str],
    wished: Sequence[str] = (),
    schema: Schema | None = None,
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    skip_rows: int = 0,
) -> Iterator[Chunk]:
    """Columns of CSV files: see `opening.open`."""
    files = files_of(path, "a CSV file", CSV)
    is_letter, fix = len(delimiter) == 1 and delimiter not in '\r\n"', 'Pass "," or ";".'
    need(is_letter, "one letter", of="delimiter", got=delimiter, fix=fix)
    heads = [_Csv.of(file, delimiter, skip_rows, names, needed, wished) for file in files]
    arrow = importlib.util.find_spec("pyarrow") is not None
    found = (_by_arrow(one, schema) if arrow else _by_hand(one) for one in heads)
    return (chunk for chunks in found for chunk in chunks)


@dataclass(frozen=True)
class _Csv:
    """A file, how many lines stand before its first row, and where the columns to read are."""

    path: Path
    delimiter: str
    before: int
    width: int
    columns: Mapping[str, int]

    @staticmethod
    def of(
        path: Path,
        delimiter: str,
        skip: int,
        names: Sequence[str] | None,
        needed: Sequence[str],
        wished: Sequence[str],
    ) -> _Csv:
        """Of its header."""
        there, before = (tuple(names), skip) if names else header_of(path, delimiter, skip)
        require_columns(needed, there, str(path), headed(there, needed))
        read = (*needed, *(name for name in wished if name in there))
        twice = [name for name in dict.fromkeys(read) if there.count(name) > 1]
        expected = "declared columns that occur once"
        fix = "Pass names=[...] and skip_rows=1 to tell them apart."
        need(not twice, expected, of=str(path), got=twice, fix=fix, error=SchemaError)
        columns = {name: there.index(name) for name in read}
        return _Csv(path, delimiter, before, len(there), columns)


def header_of(path: Path, delimiter: str, skip: int = 0) -> tuple[tuple[str, ...], int]:
    """The names of the columns, and how many lines stand before the first row of data."""
    wrong: FairveilError
    try:
        with open_text(path) as text:
            for _ in range(skip):
                text.readline()
            lines = csv.reader(text, delimiter=delimiter)
            for row in lines:
                if row:
                    # A name with a line break in it makes the header longer than a line.
                    return tuple(cell.strip(BLANKS) for cell in row), skip + lines.line_num
        got, remedy = "an empty file", "Pass names=[...]."
        wrong = SchemaError.expected(
            "a line with the names of the columns", of=str(path), got=got, remedy=remedy
        )
    except (UnicodeDecodeError, csv.Error, OSError, *BROKEN_GZIP) as error:
        wrong = _broken(path, error)
    raise wrong


def headed(there: Sequence[str], needed: Collection[str]) -> object:
    """The names in a header for an error, where it is one: a file without a header begins with
    somebody's row. A header has a name that is looked for, or no cell that is empty or a number."""
    if set(there) & set(needed) or not any(map(_is_value, there)):
        return list(there)
    return f"a first line of {len(there)} cells that names none of them"


def _is_value(cell: str) -> bool:
    try:
        float(cell or "0")
    except ValueError:
        return False
    return True


def rows_from(
    path: Path, delimiter: str, before: int = 0, width: int | None = None
) -> Iterator[list[str]]:
    """The rows that are not blank after so many lines, each of `width` cells (None: of as many as
    the first)."""
    try:
        with open_text(path) as text:
            for _ in range(before):
                text.readline()
            lines, line = csv.reader(text, delimiter=delimiter), before + 1
            for row in lines:
                # A row with one cell too many has its values in the wrong columns.
                width = len(row) if width is None and row else width
                if row and len(row) != width:
                    expected, got = (
                        f"{width} cells in every row",
                        f"{len(row)} cells in line {line}",
                    )
                    said: Any = {"of": str(path), "got": got, "fix": MEND, "quote": False}
                    need(False, f"{expected}, as in the header", error=SchemaError, **said)
                if row:
                    yield row
                line = before + 1 + lines.line_num
        return
    except (UnicodeDecodeError, csv.Error, OSError, *BROKEN_GZIP) as error:
        wrong = _broken(path, error)
    raise wrong


def _broken(path: Path, error: Exception) -> FairveilError:
    """The error for a file that cannot be read as text, with the line where that is known."""
    if isinstance(error, FairveilError):
        return error
    if isinstance(error, UnicodeDecodeError):
        got = f"a byte that is no UTF-8 in line {_undecodable(path)}"
    elif isinstance(error, csv.Error):
        got = str(error)  # of the standard library: fixed words, and a limit
    elif isinstance(error, OSError) and not isinstance(error, BROKEN_GZIP):
        got = error.strerror or "what cannot be read"
    else:
        got = "broken gzip"
    return InputError.expected(WELL_FORMED, of=str(path), got=got, remedy=MEND, quote=False)


def _undecodable(path: Path) -> int:
    try:
        # Decoded line by line, once more, only to name the line.
        with open_bytes(path) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError:
                    return number
    except (OSError, *BROKEN_GZIP):
        pass
    return 1


def _by_hand(told: _Csv) -> Iterator[Chunk]:
    """By the standard library."""
    lines = rows_from(told.path, told.delimiter, told.before, told.width)
    while rows := list(itertools.islice(lines, BLOCK_ROWS)):
        columns: dict[str, Raw] = {
            name: Plain(np.fromiter((row[at].strip(BLANKS) for row in rows), object, len(rows)))
            for name, at in told.columns.items()
        }
        yield Chunk(columns, len(rows))


def _by_arrow(told: _Csv, schema: Schema | None) -> Iterator[Chunk]:
    """By pyarrow: cells as text, so that the coding rules are the same ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    declared = {} if schema is None else schema.columns
    try:
        with _arrow_batches(told) as batches:
            for batch in batches:
                columns: dict[str, Raw] = {}
                for name, at in told.columns.items():
                    cells = pc.utf8_trim(batch.column(str(at)), BLANKS)
                    numbers = None
                    if schema is not None and isinstance(declared.get(name), Number):
                        numbers = _numbers_of(cells, schema.missing_values)
                    columns[name] = from_arrow(cells) if numbers is None else numbers
                if batch.num_rows:
                    yield Chunk(columns, batch.num_rows)
        return
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError):
        pass  # its words would show the row
    for _ in rows_from(told.path, told.delimiter, told.before, told.width):
        pass  # which finds what is wrong, and says it without a cell
    got = "a row that cannot be read"
    raise InputError.expected(WELL_FORMED, of=str(told.path), got=got, remedy=MEND, quote=False)


def _arrow_batches(told: _Csv) -> Any:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    stream = pa.OSFile(str(told.path))
    with told.path.open("rb") as opened:
        if opened.read(2) == b"\x1f\x8b":
            stream = pa.CompressedInputStream(stream, "gzip")
    # Columns go by position: a name may occur twice among those that are not read.
    wanted = list(dict.fromkeys(map(str, told.columns.values())))
    names = [str(at) for at in range(told.width)]
    return arrow_csv.open_csv(
        stream,
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=told.before),
        parse_options=arrow_csv.ParseOptions(delimiter=told.delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.string()),
            strings_can_be_null=False,
        ),
    )


def _numbers_of(cells: object, missing_values: Sequence[str]) -> Plain | None:
    """Numbers parsed by Arrow, correctly rounded as Python's are; None where only Python's rules
    can say."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(cells, value_set=pa.array(missing_values, pa.string()))
    try:
        found = pc.cast(pc.if_else(missing, pa.scalar("0"), cells), pa.float64())
    except pa.ArrowInvalid:
        return None
    numbers = found.to_numpy(zero_copy_only=False)
    null = missing.to_numpy(zero_copy_only=False)
    return None if np.isnan(numbers).any() else Plain(numbers, null)


# Parquet


def parquet_chunks(
    path: PathLike,
    needed: Sequence[str],
    wished: Sequence[str] = (),
    groups: tuple[int, int] | None = None,
) -> Iterator[Chunk]:
    """Columns of Parquet files. `groups`: of one file, row groups from and to."""
    files = files_of(path, "a Parquet file", PARQUET)
    read = []
    for file in files:
        names = parquet_schema(file).names
        require_columns(needed, names, str(file))
        read.append((*needed, *(name for name in wished if name in names)))
    found = (_of_parquet(*one, groups) for one in zip(files, read, strict=True))
    return (chunk for chunks in found for chunk in chunks)


def parquet_schema(path: Path) -> Any:
    """Names and types of a Parquet file, without a row."""
    with _parquet_file(path) as file:
        try:
            return file.schema_arrow
        except BROKEN:
            pass
    raise unreadable(path, "a whole Parquet file")


def parquet_groups(path: Path) -> int:
    """How many row groups a file has."""
    with _parquet_file(path) as file:
        return int(file.num_row_groups)


def _parquet_file(path: Path) -> Any:
    need_package("pyarrow", "Parquet files")
    from pyarrow import parquet

    try:
        # Not as pyarrow has it: a buffer of all row groups that are asked for, held until the end.
        return parquet.ParquetFile(path, pre_buffer=False)
    except BROKEN:
        pass
    raise unreadable(path, "a whole Parquet file")


def _of_parquet(path: Path, read: Sequence[str], groups: tuple[int, int] | None) -> Iterator[Chunk]:
    try:
        with _parquet_file(path) as file:
            wanted = None if groups is None else list(range(*groups))
            for batch in file.iter_batches(BLOCK_ROWS, wanted, list(read)):
                columns = {name: from_arrow(batch.column(name)) for name in read}
                yield Chunk(columns, batch.num_rows)
        return
    except FairveilError:
        raise
    except BROKEN:
        pass
    raise unreadable(path, "a whole Parquet file")


# Databases

SQLITE_HEADER = b"SQLite format 3\x00"
SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://")
SELECT = re.compile(r"\s*(?:select|with|values)\b", re.IGNORECASE)
OF_QUERIES = re.compile(
    r"no such |near |unrecognized token|incomplete input|ambiguous column|file is not a "
    r"database|database disk image is"
    r"|database is locked|unable to open|attempt to write a readonly|not authorized|wrong number "
    r"of arguments"
)
"""How SQLite begins what it says of a query or a file; of rows it says other things, and repeats
their values."""
DUCKDB_OF_QUERIES = ("Catalog", "Binder", "Parser", "Syntax", "Permission")


def sql_chunks(
    url: PathLike,
    query: str,
    needed: Sequence[str] | None,
    wished: Sequence[str] = (),
    order_by: Sequence[str] = (),
) -> Iterator[Chunk]:
    """Columns of a table or a SELECT (None: all of them): see `opening.open`."""
    database = Database(os.fspath(url), query)
    # SQLite would read a name that it does not know as a text, so the columns are looked up first.
    names = database.names()
    if needed is not None:
        require_columns((*needed, *order_by), names, database.place)
        names = (*needed, *(name for name in wished if name in names))

    def read() -> Iterator[Chunk]:
        for rows in database.rows(names, order_by):
            columns: dict[str, Raw] = {
                name: Plain(np.fromiter((row[at] for row in rows), dtype=object, count=len(rows)))
                for at, name in enumerate(names)
            }
            yield Chunk(columns, len(rows))

    return read()


class Database:
    """A table or a SELECT of a database: SQLite by the standard library, DuckDB by duckdb, every
    other one by SQLAlchemy. Guarantee 3."""

    def __init__(self, url: str, query: str) -> None:
        text = query.strip().rstrip(";").rstrip()
        need(text, "a table or a SELECT", of="query", got=query, fix='Pass "people", for example.')
        self.place = f"{without_password(url)}, {text.splitlines()[0][:60]}"
        self._url, self._driver = url, _driver_of(url)
        self.is_table = SELECT.match(text) is None
        self.what = f"({text}\n) AS fairveil_rows"
        if self.is_table:
            self.what = ".".join(map(self._driver.quoted, text.split(".")))

    def names(self) -> tuple[str, ...]:
        """The columns, without a row."""
        with closing(self._answer(f"SELECT * FROM {self.what} WHERE 1 = 0")) as answer:
            return next(answer)

    def sqlite_types(self) -> dict[str, str]:
        """What SQLite's catalogue says of a table's columns; {} of another database or a query."""
        if not self.is_table or self._driver.name != "sqlite":
            return {}
        _, *parts = self._answer(f"PRAGMA table_info({self.what})")
        return {str(row[1]): str(row[2]) for part in parts for row in part}

    def rows(self, names: Sequence[str], order_by: Sequence[str]) -> Iterator[list[Any]]:
        """All rows, a block at a time."""
        columns = ", ".join(map(self._driver.quoted, names)) or "1"
        order = ", ".join(map(self._driver.quoted, order_by))
        query = f"SELECT {columns} FROM {self.what}" + (f" ORDER BY {order}" if order else "")
        answer = self._answer(query)
        next(answer)
        return answer

    def _answer(self, query: str) -> Generator[Any, None, None]:
        """The columns of an answer, and then its rows, a block at a time."""
        with (
            closing(self._try(self._driver.connect, connected=False)) as connection,
            closing(self._try(lambda: self._driver.ask(connection, query))) as result,
        ):
            keys = getattr(result, "keys", lambda: [one[0] for one in result.description])
            yield tuple(map(str, keys()))
            while rows := self._try(lambda: result.fetchmany(BLOCK_ROWS)):
                yield rows

    def _try(self, work: Callable[[], Any], connected: bool = True) -> Any:
        """What a driver gives. Its error is made into one that shows no value; raised outside the
        `except`, so that no context holds the driver's own message."""
        try:
            return work()
        except self._driver.errors as error:
            got = scrubbed(own_words(error) if connected else _first_line(error), self._url)
        expected, of = "a table or a query that runs", self.place
        remedy = "Look for the table's name (schema.table), or mend the query."
        if not connected:
            expected, of = "a database that answers", without_password(self._url)
            remedy = "Check address, user and password, and that the server runs."
        raise DataNotFoundError.expected(expected, of=of, got=got, remedy=remedy)


@dataclass(frozen=True)
class _Driver:
    name: str
    connect: Callable[[], Any]
    errors: tuple[type[Exception], ...]
    ask: Callable[[Any, str], Any] = lambda connection, query: connection.execute(query)
    quoted: Callable[[str], str] = lambda name: '"' + name.replace('"', '""') + '"'


def _driver_of(url: str) -> _Driver:
    """A file that is not there is an error here: a driver might make one."""
    scheme = SCHEME.match(url)
    name = scheme["scheme"].lower().partition("+")[0] if scheme else "sqlite"
    got, fix = "an address without ://", "Write postgresql://..., or sqlite:///people.db."
    expected = "driver://user:password@host/database, or a file"
    need(scheme is not None or "@" not in url, expected, of="url", got=got, fix=fix)
    if name not in ("sqlite", "duckdb"):
        return _sqlalchemy(url)
    rest = url[scheme.end() :].partition("?")[0] if scheme else f"/{url}"
    kept, fix = rest not in ("", "/", "/:memory:"), "Save a database in memory to a file."
    need(kept, "a database in a file", of="url", got=url, fix=fix)
    file = Path(unquote(rest.removeprefix("/")) if scheme else url)
    got, of = f"a folder, {file}" if file.is_dir() else f"no file {file}", without_password(url)
    fix = f"{name}:///people.db starts in {Path.cwd()}, {name}:////data/people.db at the root."
    need(file.is_file(), f"a {name} database", of=of, got=got, fix=fix, error=DataNotFoundError)
    if name == "duckdb":
        need_package("duckdb", "a database")
        import duckdb

        def connected() -> Any:
            return duckdb.connect(str(file), read_only=True)

        return _Driver(name, connected, (duckdb.Error,))

    def opened() -> Any:
        with file.open("rb") as start:
            if (start.read(len(SQLITE_HEADER)) or SQLITE_HEADER) != SQLITE_HEADER:
                raise sqlite3.DatabaseError("file is not a database")
        return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)

    # a file may hold texts that are none
    return _Driver(name, opened, (sqlite3.Error, UnicodeDecodeError))


def _sqlalchemy(url: str) -> _Driver:
    need_package("sqlalchemy", "a database", "sql")
    import sqlalchemy

    # The driver that the extra installs; SQLAlchemy's own choice would be another.
    address = re.sub(r"^postgres(?:ql)?://", "postgresql+psycopg://", url, flags=re.IGNORECASE)
    pool: Any = sqlalchemy.pool.NullPool
    try:
        engine = sqlalchemy.create_engine(address, poolclass=pool, hide_parameters=True)
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError) as error:
        kind = type(error).__name__
    else:
        options = {"postgresql_readonly": True} if engine.dialect.name == "postgresql" else {}

        def asked(connection: Any, query: str) -> Any:
            # Every colon is meant as it stands: a query takes no parameters.
            text = sqlalchemy.text(query.replace(":", "\\:"))
            return connection.execution_options(stream_results=True, **options).execute(text)

        quoted = engine.dialect.identifier_preparer.quote_identifier
        errors = (sqlalchemy.exc.SQLAlchemyError, ImportError)
        return _Driver(engine.dialect.name, engine.connect, errors, asked, quoted)
    remedy = (
        "Write driver://user:password@host/database and install the driver, for PostgreSQL pip "
        "install 'fairveil[sql]'"
    )
    raise InputError.expected(
        "an address that SQLAlchemy reads, and its driver",
        of=without_password(url),
        got=kind,
        remedy=remedy,
    )


def own_words(error: Exception) -> str:
    """What a driver says of a query. Where it may speak of the rows, and so repeat their values,
    only the kind of its error."""
    inner = getattr(error, "orig", None) or error  # SQLAlchemy has wrapped the driver's own
    kind, state = type(inner).__name__, getattr(inner, "sqlstate", None)
    if isinstance(inner, sqlite3.Error):
        safe = OF_QUERIES.match(str(inner)) is not None
    elif type(inner).__module__.startswith(("duckdb", "_duckdb")):
        safe = kind.removesuffix("Exception") in DUCKDB_OF_QUERIES
    else:
        # classes of SQLSTATE: 42 is about the query, 25 about the transaction; 22, 23, P0 and
        # others quote what they found
        safe = isinstance(state, str) and state[:2] in ("42", "25")
    if safe:
        return _first_line(error)
    shown = f"{kind}{f' ({state})' if isinstance(state, str) else ''}"
    return f"{shown}, whose text is left out because it may show values of rows"


def _first_line(error: Exception) -> str:
    """Without SQLAlchemy's query and links."""
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
