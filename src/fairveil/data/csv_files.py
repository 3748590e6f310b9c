"""Rows from CSV files, plain or gzip: by pyarrow where it is there, by the standard library
elsewhere, to the same bits."""

from __future__ import annotations

import csv
import importlib.util
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _checks
from ..errors import FairveilError, InputError, SchemaError
from ..facts.columns import Number
from ..facts.schema import Schema
from ..tables.frames import from_arrow
from ..tables.raw import Plain, Raw
from .ahead import ahead
from .csv_rows import broken, headed, not_read, rows_from
from .encoded import BLOCK_ROWS, EncodedRows, require_columns
from .encoding import Encoding
from .file_lists import CSV, chained, files_of
from .files import BROKEN_GZIP, PathLike, identity_of, is_gzip, open_text
from .streamed import Chunk, Reader, StreamedRows, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

ENGINES = ("auto", "pyarrow", "csv")
BLANKS = " \t"


def load_csv(
    path: PathLike,
    schema: Schema,
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    skip_rows: int = 0,
    in_memory: bool | None = False,
    sensitive_as_feature: bool = False,
    block_rows: int = BLOCK_ROWS,
    precision: str = "float64",
    engine: str = "auto",
) -> StreamedRows | EncodedRows:
    """Rows of a CSV file (gzip or not), read block by block at each pass, or once with
    `in_memory=True`.

    `path`: a file, a folder of files, or a pattern (`"people/*.csv"`); files are read by name, one
    after another, and each has a header of its own. `in_memory=None`: held where they fit memory,
    else in a coded store that is deleted after use.

    The first line holds the names of the columns, unless `names` are given. Blanks around a cell do
    not count; a cell that is empty, or one of the schema's `missing_values`, or NaN, is missing
    unless the column lists it. Numbers are written as in -1.5e3; truth values as true, false, 1, 0.

    The whole file is checked here, before any release; see `StreamedRows` for what happens when it
    changes afterwards.
    """
    encoding = Encoding(schema, sensitive_as_feature, precision)
    options: dict[str, Any] = {
        "names": names,
        "delimiter": delimiter,
        "skip_rows": skip_rows,
        "engine": engine,
    }
    return rows_of(
        reader_of(path, schema, encoding.needed(), encoding.wished, **options),
        encoding,
        in_memory,
        block_rows,
    )


def reader_of(
    path: PathLike,
    schema: Schema,
    needed: Sequence[str],
    wished: Sequence[str] = (),
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    skip_rows: int = 0,
    engine: str = "auto",
) -> Reader:
    """The columns `needed` of a CSV file, and of those `wished` what there are, as `load_csv` reads
    them. The schema says which are numbers, and what is missing."""
    found = files_of(path, "a CSV file", CSV)
    _checks.one_of(ENGINES, engine=engine)
    skip_rows = _checks.whole(skip_rows=skip_rows)
    if len(delimiter) != 1 or delimiter in '\r\n"':
        raise InputError.expected(
            "one letter", of="delimiter", got=delimiter, remedy='Pass "," or ";", for example.'
        )
    arrow = importlib.util.find_spec("pyarrow") is not None
    if engine == "pyarrow" and not arrow:
        raise InputError.expected(
            "pyarrow", of="engine", got="no pyarrow", remedy="pip install 'fairveil[data]'"
        )
    kind = _ArrowReader if arrow and engine != "csv" else _PlainReader
    readers: list[_ArrowReader | _PlainReader] = []
    for file in found:
        dialect = _Dialect(file, delimiter, *_header(file, delimiter, skip_rows, names))
        readers.append(kind(dialect, schema, _positions(dialect, needed, wished)))
    return chained(readers, path)


@dataclass(frozen=True)
class _Dialect:
    path: Path
    delimiter: str
    names: tuple[str, ...]
    lines_before: int


def _header(
    path: Path, delimiter: str, skip: int, names: Sequence[str] | None
) -> tuple[tuple[str, ...], int]:
    """The names of the columns, and how many rows (blank ones too) stand before the first row of
    data."""
    try:
        with open_text(path) as text:
            for _ in range(skip):
                text.readline()
            if names is not None:
                return tuple(names), skip
            lines = csv.reader(text, delimiter=delimiter)
            for blank, row in enumerate(lines):
                if row:
                    # A name with a line break in it makes the header longer than a line.
                    return tuple(cell.strip(BLANKS) for cell in row), skip + blank + (
                        lines.line_num - blank
                    )
    except (UnicodeDecodeError, csv.Error, OSError, *BROKEN_GZIP) as error:
        wrong: FairveilError = broken(path, error)
    else:
        wrong = SchemaError.expected(
            "a line with the names of the columns",
            of=str(path),
            got="an empty file",
            remedy="Pass names=[...].",
        )
    raise wrong


def _positions(dialect: _Dialect, needed: Sequence[str], wished: Sequence[str]) -> dict[str, int]:
    require_columns(needed, dialect.names, str(dialect.path), headed(dialect.names, needed))
    read = (*needed, *(name for name in wished if name in dialect.names))
    twice = [name for name, count in Counter(dialect.names).items() if count > 1 and name in read]
    if twice:
        raise SchemaError.expected(
            "declared columns that occur once",
            of=str(dialect.path),
            got=twice,
            remedy="Pass names=[...] and skip_rows=1 to tell them apart.",
        )
    return {name: dialect.names.index(name) for name in read}


class _Reader:
    """What both readers know of their file."""

    def __init__(self, dialect: _Dialect, _: Schema, positions: dict[str, int]) -> None:
        self._dialect = dialect
        self._positions = positions

    @property
    def place(self) -> str:
        return str(self._dialect.path)

    def identity(self) -> object:
        return identity_of(self._dialect.path)

    def counted(self) -> None:
        """Nothing in the file says it."""


class _PlainReader(_Reader):
    """By the standard library."""

    def chunks(self) -> Iterator[Chunk]:
        told = self._dialect
        lines = rows_from(told.path, told.delimiter, told.lines_before, len(told.names))
        while rows := list(itertools.islice(lines, BLOCK_ROWS)):
            yield self._chunk(rows)

    def _chunk(self, rows: list[list[str]]) -> Chunk:
        columns: dict[str, Raw] = {
            name: Plain(
                np.fromiter((row[at].strip(BLANKS) for row in rows), dtype=object, count=len(rows))
            )
            for name, at in self._positions.items()
        }
        return Chunk(columns, len(rows), text=True)


class _ArrowReader(_Reader):
    """By pyarrow: cells as text, so that the coding rules are the same ones."""

    def __init__(self, dialect: _Dialect, schema: Schema, positions: dict[str, int]) -> None:
        super().__init__(dialect, schema, positions)
        self._numbers = {name for name in positions if isinstance(schema.columns.get(name), Number)}
        self._missing_values = schema.missing_values

    def chunks(self) -> Iterator[Chunk]:
        return ahead(self._chunks)

    def _chunks(self) -> Iterator[Chunk]:
        import pyarrow as pa

        try:
            with self._open() as batches:
                for batch in batches:
                    if batch.num_rows:
                        yield Chunk(
                            {name: self._raw(name, batch) for name in self._positions},
                            batch.num_rows,
                            text=True,
                        )
            return
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError):
            pass  # its words would show the row
        told = self._dialect
        raise not_read(told.path, told.delimiter, told.lines_before, len(told.names))

    def _open(self) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        path = str(self._dialect.path)
        stream = (
            pa.CompressedInputStream(pa.OSFile(path), "gzip")
            if is_gzip(self._dialect.path)
            else pa.OSFile(path)
        )
        # Columns go by position: a name may occur twice among those that are not read.
        wanted = [str(at) for at in self._positions.values()]
        return arrow_csv.open_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                column_names=[str(at) for at in range(len(self._dialect.names))],
                skip_rows=self._dialect.lines_before,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._dialect.delimiter, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(wanted)),
                column_types=dict.fromkeys(wanted, pa.string()),
                strings_can_be_null=False,
            ),
        )

    def _raw(self, name: str, batch: pa.RecordBatch) -> Raw:
        import pyarrow.compute as pc

        cells = pc.utf8_trim(batch.column(str(self._positions[name])), BLANKS)
        if name in self._numbers:
            numbers = self._numbers_of(cells)
            if numbers is not None:
                return numbers
        return from_arrow(cells)

    def _numbers_of(self, cells: object) -> Plain | None:
        """Numbers parsed by Arrow, correctly rounded as Python's are; None where only Python's
        rules can say."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing = pc.is_in(cells, value_set=pa.array(self._missing_values, pa.string()))
        try:
            numbers = pc.cast(pc.if_else(missing, pa.scalar("0"), cells), pa.float64()).to_numpy(
                zero_copy_only=False
            )
        except pa.ArrowInvalid:
            return None
        return (
            None
            if np.isnan(numbers).any()
            else Plain(numbers, missing.to_numpy(zero_copy_only=False))
        )
