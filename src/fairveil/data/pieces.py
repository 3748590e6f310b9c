"""Parts of a table that may be read somewhere else: blocks of a coded store, row groups of Parquet
files, whole CSV files.

A piece is a recipe for a shard: where the rows are, and what tells that the file there is the one
that was meant.

Guarantees (tests/data/test_data_pieces.py):
1. The pieces of a source, one after another, are its rows, none twice, to the bit, however many
   there are.
2. A file that is not the one that was cut, by its content, is refused where it is opened.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from .. import _checks
from ..errors import ChecksumError, InputError, PrivacyError
from ..facts.schema import Schema
from .csv_files import load_csv
from .encoded import EncodedRows
from .encoding import Encoding
from .file_lists import CSV, PARQUET, files_of
from .files import PathLike, open_bytes
from .opening import delimiter_of
from .parquet_files import footer_of, groups_of, load_parquet
from .store import STORE_FILE, Store, describe_store, open_blocks
from .streamed import StreamedRows

READ_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class StoreBlocks:
    """Blocks `first` up to `last` of a coded store, whose description has this `digest`."""

    path: str
    first: int
    last: int
    digest: str

    def open(self) -> Store:
        """The blocks, mapped, each checked against its checksum."""
        return open_blocks(self.path, self.first, self.last, self.digest)


@dataclass(frozen=True)
class FilePart:
    """Some of the rows of a Parquet file, or all of a CSV file. `groups`: row groups, from and to.
    `digest`: of its content."""

    path: str
    encoding: Encoding
    digest: str
    groups: tuple[int, int] | None = None
    delimiter: str = ","

    def open(self) -> EncodedRows:
        """The rows, coded and kept where they are opened."""
        if _digest(Path(self.path)) != self.digest:
            remedy = "Use the same files on all machines, and leave them as they are."
            raise ChecksumError.expected(
                "the file that was cut into shards", of=self.path, got="another", remedy=remedy
            )
        schema, sensitive, precision = (
            self.encoding.schema,
            self.encoding.sensitive_as_feature,
            self.encoding.precision,
        )
        found: EncodedRows | StreamedRows
        if self.groups is None:
            found = load_csv(
                self.path,
                schema,
                delimiter=self.delimiter,
                in_memory=True,
                sensitive_as_feature=sensitive,
                precision=precision,
            )
        else:
            found = load_parquet(
                self.path,
                schema,
                row_groups=range(*self.groups),
                in_memory=True,
                sensitive_as_feature=sensitive,
                precision=precision,
            )
        assert isinstance(found, EncodedRows)
        return found


Piece = StoreBlocks | FilePart


def pieces_of(
    source: PathLike | Store,
    schema: Schema | None = None,
    *,
    shards: int,
    sensitive_as_feature: bool = False,
    precision: str = "float64",
) -> tuple[Encoding, tuple[Piece, ...]]:
    """Coded stores, Parquet or CSV files (one, a folder, a pattern), cut into pieces, about so
    many; how they are coded.

    A store is cut between blocks, Parquet between row groups, CSV between files. Each file gives
    one piece at least. Where persons are protected all rows must lie in one store: blocks of one
    have whole persons.
    """
    most = _checks.whole(at_least=1, shards=shards)
    stores = (
        [source]
        if isinstance(source, Store)
        else [describe_store(path) for path in _stores(Path(source))]
    )
    if stores or isinstance(source, Store):
        encoding = stores[0].encoding
        for store in stores:
            _require_schema(store.encoding, encoding, "one encoding in all stores")
        if len(stores) > 1 and encoding.schema.unit is not None:
            _refuse_several(len(stores), encoding.schema.unit)
        if schema is not None and schema != encoding.schema:
            _require_schema(encoding, Encoding(schema), "the store's own schema")
        each = -(-most // len(stores))
        return encoding, tuple(
            StoreBlocks(str(store.path.absolute()), a, b, store.fingerprint)
            for store in stores
            for a, b in _cuts(store.block_count, each)
        )
    if not isinstance(schema, Schema):
        remedy = "Pass schema=Schema.load(path); a coded store has its own."
        raise InputError.expected("a Schema", of="schema", got=schema, remedy=remedy)
    if schema.unit is not None:
        remedy = (
            "Encode all rows into one store, whose blocks hold whole persons: "
            "data.encode(folder, schema, out); or code by schema.without_unit(), which protects "
            "rows."
        )
        got = f"unit={schema.unit!r}"
        raise PrivacyError.expected("a schema of rows", of="schema", got=got, remedy=remedy)
    encoding = Encoding(schema, sensitive_as_feature, precision)
    found = files_of(source, "a Parquet or CSV file", (*PARQUET, *CSV))
    parts: list[FilePart] = []
    for file in found:
        path, digest = str(file.absolute()), _digest(file)
        if _is_parquet(file):
            parts += [
                FilePart(path, encoding, digest, (a, b))
                for a, b in _cuts(groups_of(file), -(-most // len(found)))
            ]
        else:
            parts.append(FilePart(path, encoding, digest, None, delimiter_of(file)))
    return encoding, tuple(parts)


def _stores(path: Path) -> list[Path]:
    """A store, or those of a folder, by name."""
    if (path / STORE_FILE).is_file():
        return [path]
    return (
        sorted(entry for entry in path.iterdir() if (entry / STORE_FILE).is_file())
        if path.is_dir()
        else []
    )


def _refuse_several(stores: int, unit: str) -> NoReturn:
    """Stores keep no names: whoever has rows in two of them would count as two persons."""
    remedy = (
        "Encode all rows at once, from one table or a folder of CSV or Parquet files: "
        "data.encode(folder, schema, out); or by schema.without_unit(), which protects rows."
    )
    got = f"{stores} stores with unit={unit!r}, which do not show who is in several"
    raise PrivacyError.expected(
        "one store of all rows", of="X", got=got, remedy=remedy, quote=False
    )


def _require_schema(own: Encoding, asked: Encoding, expected: str) -> None:
    if asked != own:
        remedy = "Leave schema out: a store has its own; or write the stores again by one schema."
        raise InputError.expected(expected, of="schema", got="another", remedy=remedy)


def _cuts(count: int, most: int) -> Sequence[tuple[int, int]]:
    """Runs of `count` things, at most `most` of them, as even as can be; one that is empty where
    there is nothing."""
    cuts = [count * i // min(most, max(1, count)) for i in range(min(most, max(1, count)) + 1)]
    return list(itertools.pairwise(cuts))


def _is_parquet(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(4) == b"PAR1"


def _digest(file: Path) -> str:
    """Of a Parquet file's footer, which says where each page lies and how long it is, and its size;
    of another all bytes."""
    told = hashlib.blake2b(str(os.path.getsize(file)).encode(), digest_size=16)
    if _is_parquet(file):
        told.update(footer_of(file))
        return told.hexdigest()
    with open_bytes(file) as opened:
        while part := opened.read(READ_AT_ONCE):
            told.update(part)
    return told.hexdigest()
