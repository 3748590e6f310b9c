"""A coded store: coded rows on this machine's disk, written once, mapped at every pass, so that
memory holds no table.

    people.store/           0700
      store.json            encoding, blocks: rows and checksum of each
      rows.bin              blocks one after another: numbers, codes, labels, groups, each array at
      a multiple of 64 bytes

Where the schema tells persons apart, rows stand person by person and no person has rows in two
blocks. A fifth array says where persons begin, and where each row stood in the table. Names are not
kept.

Both files are their owner's alone (0600). They hold rows of people: as private as the table itself,
and a copy of it.

Guarantees (tests/data/test_data_store.py):
1. A store gives the blocks that were written, to the bit; fits on it are those on the rows in
   memory, to the bit.
2. A store is there whole or not at all; one that was interrupted, also by kill -9, is resumed,
   and ends in the same bytes.
3. Bytes that changed are refused: by checksums when it is opened, by size and time of writing at
   every pass.
4. What it needs of the disk is taken before the first block is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .._json import Document, Node
from ..errors import (
    ChecksumError,
    DataNotFoundError,
    InputError,
    PrivacyError,
    SchemaError,
)
from ..facts.rows import RowBlock, Traits
from ..facts.schema import Schema
from ..models.folders import LARGEST_TEXT, read_folder
from .chosen_rows import ChosenRows
from .encoded import EncodedRows
from .encoding import ByEncoding, Encoding
from .files import PathLike, identity_of
from .store_blocks import Shape, checksum, read_block

FORMAT, VERSION, OF_PERSONS = "fairveil-store", 1, 2
STORE_FILE, ROWS_FILE = "store.json", "rows.bin"
FIELDS = (
    "format",
    "version",
    "encoding",
    "block_rows",
    "rows",
    "labels",
    "sensitive",
    "types",
    "sums",
)
DOCUMENT = Document(
    STORE_FILE, "It is not what was written: write the store again.", largest=LARGEST_TEXT
)
MOST_BLOCKS = 1 << 22


class Store(ByEncoding):
    """Coded rows on disk, as a `RowSource`: pass it to `fit`, to `Rows`, to a frontier. Made by
    `open_store`, `write_store`."""

    def __init__(
        self,
        path: Path,
        encoding: Encoding,
        shapes: tuple[Shape, ...],
        identity: object,
        digest: str,
        start: int = 0,
    ) -> None:
        self.path, self._encoding, self._shapes, self._identity = path, encoding, shapes, identity
        self.fingerprint, self._start = digest, start
        file = path / ROWS_FILE
        mapped = np.memmap(file, np.uint8, "r") if file.stat().st_size else np.empty(0, np.uint8)
        # A plain array over the mapping: views of it are cheaper than those of a memmap.
        self._bytes: npt.NDArray[np.uint8] = np.asarray(mapped)

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(
            is_mapped=True,
            require_same=self.require_same,
            fingerprint=self.fingerprint,
            identity=self._identity,
        )

    @property
    def nbytes(self) -> int:
        """What it takes on the disk; private where the number of rows is."""
        return int(self._bytes.nbytes)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, in their order: views of the file, read when they are used. Guarantee 3."""
        self.require_same()
        start = self._start
        for shape in self._shapes:
            yield read_block(self._bytes, start, shape)
            start += shape.nbytes
        self.require_same()

    @property
    def block_count(self) -> int:
        """How many blocks there are; private where the number of rows is."""
        return len(self._shapes)

    def rows(self, schema: Schema, *, sensitive_as_feature: bool = False) -> EncodedRows:
        """The rows as this schema has them: of the same features, and perhaps without the target or
        a sensitive column."""
        own, encoding = (
            self._encoding.schema,
            Encoding(schema, sensitive_as_feature, self._encoding.precision),
        )
        there = {name: own.columns.get(name) for name in encoding.needed()}
        same = encoding.features == self._encoding.features and there == {
            name: schema.columns[name] for name in there
        }
        if (
            not same
            or schema.target not in (None, own.target)
            or not set(schema.sensitive) <= set(own.sensitive)
        ):
            remedy = "Write the store by the schema and the roles that are asked for now."
            expected, got = (
                f"features {', '.join(one.features)}" for one in (encoding, self._encoding)
            )
            raise SchemaError.expected(
                expected, of="the store", got=f"{got}, or other roles", remedy=remedy, quote=False
            )
        at = [own.sensitive.index(name) for name in schema.sensitive]
        if schema.unit not in (None, own.unit):
            remedy = "Encode the table anew by a schema with that unit."
            raise SchemaError.expected(
                f"unit={own.unit!r}", of="the store", got=schema.unit, remedy=remedy
            )
        blocks = [
            _with_roles(block, schema.target is not None, at, schema.unit is not None)
            for block in self.blocks()
        ]
        return EncodedRows(encoding, tuple(blocks), is_mapped=True, require_same=self.require_same)

    def chosen(self, at: npt.NDArray[np.intp]) -> EncodedRows | ChosenRows:
        """Some of the rows, by their places in ascending order, gathered at each pass."""
        return self.rows(
            self._encoding.schema, sensitive_as_feature=self._encoding.sensitive_as_feature
        ).chosen(at)

    def delete(self) -> None:
        """Remove both files and the folder. What else lies there stays. The rows are then no longer
        readable through this."""
        self._bytes = np.empty(0, np.uint8)
        self._shapes = ()
        for name in (STORE_FILE, ROWS_FILE):
            (self.path / name).unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            self.path.rmdir()
        self._identity = None

    def require_same(self) -> None:
        file = self.path / ROWS_FILE
        if self._identity is None or not file.is_file() or identity_of(file) != self._identity:
            remedy = "Keep the store as it is while it is used; open it anew."
            raise PrivacyError.expected(
                "the rows that were checked", of="the store", got="others", remedy=remedy
            )

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {self._encoding!r})"


def _with_roles(block: RowBlock, labels: bool, at: list[int], persons: bool) -> RowBlock:
    groups = block.sensitive
    if groups is not None and at != list(range(len(groups))):
        groups = np.ascontiguousarray(groups[at]) if at else None
    told = block.persons if persons else None
    return replace(block, labels=block.labels if labels else None, sensitive=groups, persons=told)


def open_store(path: PathLike) -> Store:
    """A store that `write_store` wrote, checked against its checksums: this reads it once.

    >>> import tempfile
    >>> from fairveil.data import Category, Number, Schema, encode, write_store
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> rows = encode({"age": [25, 50], "sex": ["m", "f"]}, schema)
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_store(rows, folder + "/people.store")
    >>> next(open_store(folder + "/people.store").blocks()).numbers.tolist()
    [[-0.5, 0.0]]
    """
    return _opened(Path(path))


def open_blocks(path: PathLike, first: int, last: int, digest: str) -> Store:
    """Blocks `first` up to `last` of the store whose description has this digest: these alone are
    read, and checked."""
    return _opened(Path(path), (first, last), digest)


def describe_store(path: PathLike) -> Store:
    """A store whose blocks are checked where they will be read: nothing of them is read here."""
    return _opened(Path(path), checked=False)


def _opened(
    folder: Path,
    part: tuple[int, int] | None = None,
    digest: str | None = None,
    *,
    checked: bool = True,
) -> Store:
    text = read_folder(folder, (STORE_FILE,))[STORE_FILE]
    content = DOCUMENT.node(text)
    encoding, shapes = described(content)
    found = hashlib.blake2b(
        json.dumps(content.value, sort_keys=True).encode(), digest_size=16
    ).hexdigest()
    # Shards on other machines must be cut from the store that the plan was made for.
    if digest is not None and found != digest:
        remedy = "Use the same store on all machines, and leave it as it is."
        raise ChecksumError.expected(
            "the store that was cut into shards", of=str(folder), got="another", remedy=remedy
        )
    file = folder / ROWS_FILE
    if file.is_symlink() or not file.is_file():
        remedy = "Part of the store is missing: write it again."
        raise DataNotFoundError.expected(
            f"a plain file {ROWS_FILE}", of="path", got=str(folder), remedy=remedy
        )
    identity, size = identity_of(file), sum(shape.nbytes for shape in shapes)
    # Before the checksums: reading a map past the end of its file would kill the process.
    if file.stat().st_size != size:
        _damaged(f"{size} bytes", file.stat().st_size)
    first, last = (0, len(shapes)) if part is None else part
    start, wanted = (
        sum(shape.nbytes for shape in shapes[:first]),
        content["sums"].texts()[first:last],
    )
    mine = found if part is None else f"{found} {first} {last}"
    store = Store(folder, encoding, shapes[first:last], identity, mine, start)
    for shape, told in zip(store._shapes, wanted, strict=True) if checked else ():
        if checksum(store._bytes[start : start + shape.nbytes], shape) != told:
            _damaged("the bytes that were written", "others")
        start += shape.nbytes
    return store


def described(content: Node) -> tuple[Encoding, tuple[Shape, ...]]:
    """The encoding of a store, and the shape of each of its blocks."""
    found, version = content.mapping().get("format"), content.mapping().get("version")
    if found != FORMAT or version not in (VERSION, OF_PERSONS):
        content.refuse(f"{FORMAT!r}, version {VERSION} or {OF_PERSONS}", found)
    by_person = version == OF_PERSONS
    content.only((*FIELDS, "sizes") if by_person else FIELDS)
    encoding = Encoding.from_dict(content["encoding"].value)
    layout, most = encoding.layout, content["block_rows"].whole(at_least=1)
    rows, sums = content["rows"].whole(), content["sums"].texts()
    # Compared before any list is made: a few bytes may ask for 2**62 blocks.
    blocks = len(content["sizes"].list()) if by_person else -(-rows // most)
    if len(sums) > MOST_BLOCKS or len(sums) != blocks:
        content["sums"].refuse(f"{blocks} checksums, one a block", len(sums))
    if by_person:
        sizes = [one.whole(at_least=1) for one in content["sizes"].list()]
        if sum(sizes) != rows or encoding.schema.unit is None:
            content["sizes"].refuse(f"{rows} rows in all, of a schema of persons", sum(sizes))
    else:
        sizes = [min(most, rows - start) for start in range(0, rows, most)]
    types = tuple(content["types"].texts())
    labelled, grouped = content["labels"].truth(), content["sensitive"].truth()
    whole = Shape.of(layout, most, labelled, grouped, types, by_person)
    if whole is None:
        content["types"].refuse(
            "types of numbers, codes and labels that this version knows", list(types)
        )
    assert whole is not None
    return encoding, tuple(map(whole.of_rows, sizes))


def written(
    encoding: Encoding,
    shapes: tuple[Shape, ...],
    block_rows: int,
    types: tuple[str, ...],
    sums: list[str],
) -> dict[str, Any]:
    """What `described` reads."""
    first = shapes[0] if shapes else None
    by_person = first is not None and first.persons
    return {
        "format": FORMAT,
        "version": OF_PERSONS if by_person else VERSION,
        "encoding": encoding.to_dict(),
        "block_rows": block_rows,
        "rows": sum(shape.rows for shape in shapes),
        "labels": bool(first and first.labels),
        "sensitive": bool(first and first.sensitive),
        "types": list(types),
        "sums": sums,
        **({"sizes": [shape.rows for shape in shapes]} if by_person else {}),
    }


def _damaged(expected: str, got: object) -> None:
    remedy = "The file is damaged or was cut short: write the store again from its source."
    raise ChecksumError.expected(expected, of=ROWS_FILE, got=got, remedy=remedy, quote=False)


def require_room(folder: Path, needed: int) -> None:
    """An error, before anything is written, where the disk has no room."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        remedy = "Write it to another disk, or free space."
        got = f"{free / 2**30:.2f} GiB"
        raise InputError.expected(
            f"{needed / 2**30:.2f} GiB of space",
            of=str(folder),
            got=got,
            remedy=remedy,
            quote=False,
        )


def owner_only(descriptor: int) -> None:
    """Where the system knows owners."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)
