"""Parts of a table that may be read somewhere else: blocks of coded stores, row groups of Parquet
files, whole CSV files. A piece is a recipe for a shard: where the rows are, and what tells that the
file there is the one that was meant.

Guarantees (tests/data/test_data_pieces.py):
1. The pieces of a source, one after another, are its rows, none twice, to the bit, however many
   there are.
2. A file that is not the one that was cut, by its content, is refused where it is opened.
3. Rows of persons are cut between persons, which one store alone makes sure of.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import _checks
from ..errors import ChecksumError, InputError, PrivacyError
from ..facts.schema import Schema
from .encoding import Encoding
from .reading import (
    CSV,
    PARQUET,
    PathLike,
    csv_chunks,
    delimiter_of,
    files_of,
    in_order,
    kind_of,
    open_bytes,
    parquet_chunks,
    parquet_groups,
)
from .rows import BLOCK_ROWS, EncodedRows, coded, in_blocks_of
from .store import Facts, described_store, is_store, store_part


@dataclass(frozen=True)
class StoreBlocks:
    """Blocks `first` up to `last` of the coded store that has this `fingerprint`, and these
    `facts`."""

    path: str
    first: int
    last: int
    fingerprint: str
    facts: Facts = ()

    def open(self) -> EncodedRows:
        """The blocks, mapped, each checked against its digest."""
        return store_part(self.path, self.first, self.last, self.fingerprint)


@dataclass(frozen=True)
class FilePart:
    """Some of the rows of a Parquet file, or all of a CSV file. `groups`: row groups, from and to.
    `digest`: of its content."""

    path: str
    encoding: Encoding
    digest: str
    groups: tuple[int, int] | None = None

    def open(self) -> EncodedRows:
        """The rows, coded and kept where they are opened."""
        if _digest(Path(self.path)) != self.digest:
            remedy = "Use the same files on all machines, and leave them as they are."
            raise ChecksumError.expected(
                "the file that was cut into parts", of=self.path, got="another", remedy=remedy
            )
        needed, schema = self.encoding.needed(), self.encoding.schema
        if self.groups is None:
            delimiter = delimiter_of(self.path)
            chunks = csv_chunks(self.path, needed, schema=schema, delimiter=delimiter)
        else:
            chunks = parquet_chunks(self.path, needed, groups=self.groups)
        blocks = in_blocks_of(coded(chunks, self.encoding), BLOCK_ROWS)
        return EncodedRows(self.encoding, tuple(blocks))


Piece = StoreBlocks | FilePart


def pieces_of(
    source: PathLike | EncodedRows,
    schema: Schema | None,
    *,
    shards: int,
    sensitive_as_feature: bool = False,
    precision: str = "float64",
) -> tuple[Encoding, tuple[Piece, ...]]:
    """About so many pieces of a coded store, a folder of them, files, a folder or a pattern of
    these. Each file gives one piece at least."""
    most = _checks.whole(at_least=1, shards=shards)
    if isinstance(source, EncodedRows):
        source = source.path or ""
    path = Path(source)
    folder = sorted(filter(is_store, path.iterdir()), key=in_order) if path.is_dir() else [path]
    if stores := [described_store(one) for one in folder if is_store(one)]:
        encoding = stores[0].encoding
        asked = encoding if schema is None else Encoding(schema, sensitive_as_feature, precision)
        if (
            any(one.encoding != encoding for one in stores)
            or asked.schema.fingerprint != encoding.schema.fingerprint
        ):
            remedy = "Leave schema out: a store has its own; or write the stores again by one."
            raise InputError.expected("one schema", of="stores", got="several", remedy=remedy)
        if len(stores) > 1:
            _require_rows(encoding.schema, f"{len(stores)} stores that keep no names")
        return encoding, tuple(
            StoreBlocks(str(Path(str(one.path)).absolute()), a, b, str(one.fingerprint), one.facts)
            for one in stores
            for a, b in _cuts(len(list(one.blocks())), -(-most // len(stores)))
        )
    if not isinstance(schema, Schema):
        remedy = "Pass schema=Schema.load(path); a coded store has its own."
        raise InputError.expected("a Schema", of="schema", got=schema, remedy=remedy)
    _require_rows(schema, "files")
    encoding = Encoding(schema, sensitive_as_feature, precision)
    parts: list[Piece] = []
    for file in (found := files_of(source, "a Parquet or CSV file", (*PARQUET, *CSV))):
        where, digest = str(file.absolute()), _digest(file)
        if kind_of(file) == "parquet":
            cuts = _cuts(parquet_groups(file), -(-most // len(found)))
            parts += [FilePart(where, encoding, digest, cut) for cut in cuts]
        else:
            parts.append(FilePart(where, encoding, digest))
    return encoding, tuple(parts)


def _require_rows(schema: Schema, of: str) -> None:
    """A person whose rows lie in two parts would count as two: guarantee 3."""
    if schema.unit is not None:
        remedy = (
            "Encode all rows into one store, whose blocks hold whole persons: data.encode(folder, "
            "schema, out); or code by schema.without_unit(), which protects rows."
        )
        got = f"{of} with unit={schema.unit!r}"
        raise PrivacyError.expected("one store of all rows", of="X", got=got, remedy=remedy)


def _cuts(count: int, most: int) -> Sequence[tuple[int, int]]:
    """Runs of `count` things, at most `most` of them, as even as can be; one that is empty where
    there is nothing."""
    runs = min(most, max(1, count))
    return list(itertools.pairwise(count * i // runs for i in range(runs + 1)))


def _digest(file: Path) -> str:
    """Of a Parquet file's footer, which says where each page lies and how long it is, and its size;
    of another all bytes."""
    told = hashlib.blake2b(str(file.stat().st_size).encode(), digest_size=16)
    with open_bytes(file) as opened:
        if opened.read(4) == b"PAR1":
            opened.seek(-8, 2)
            length = int.from_bytes(opened.read(4), "little")
            opened.seek(max(0, file.stat().st_size - 8 - length))
        else:
            opened.seek(0)
        while part := opened.read(1 << 20):
            told.update(part)
    return told.hexdigest()
