"""Write a coded store: block by block into a folder beside its place, moved there when all is on
the disk.

The folder under way is `.NAME.part`, with the rows, and a journal of the blocks that are on the
disk whole. A run that was interrupted, also by kill -9, leaves it there; the next run with the same
source goes on after the last block of the journal. Another source, or another way of coding, begins
anew.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .. import _checks
from ..errors import InputError, SchemaError
from ..facts.rows import PERSON_BY_PERSON, CodedSource, RowBlock, RowSource, traits_of
from .ahead import ahead
from .encoded import BLOCK_ROWS, in_blocks_of
from .encoding import Encoding
from .files import PathLike
from .grouping import FOLDER, Grouped
from .store import (
    ROWS_FILE,
    STORE_FILE,
    Store,
    describe_store,
    open_store,
    owner_only,
    require_room,
    written,
)
from .store_blocks import Shape, bytes_of, checksum, types_of

JOURNAL = "journal.jsonl"
SYNCED = 1 << 26  # bytes between two times that the disk is asked to have them
SPARE = 1 << 20  # bytes beside the rows

Told = Callable[[int, int], None]


def write_store(
    source: RowSource,
    path: PathLike,
    *,
    overwrite: bool = False,
    block_rows: int = BLOCK_ROWS,
    progress: Told | None = None,
) -> Store:
    """Write coded rows (`encode`, `load_csv`, `load_parquet`, `load_sql`) to a folder, whole or not
    at all, and open it.

    `overwrite`: replace a store that is there. `progress(blocks done, blocks)`: called after each
    block. A run that was interrupted is resumed where the source says that it is the same.
    """
    folder, encoding = Path(path), source.encoding if isinstance(source, CodedSource) else None
    if not isinstance(encoding, Encoding):
        remedy = (
            "Code the table first: data.load_csv(path, schema), load_parquet, load_sql or "
            "encode(table, schema)."
        )
        raise InputError.expected(
            "rows coded by a schema", of="source", got=type(source).__name__, remedy=remedy
        )
    each = _checks.whole(at_least=1, block_rows=block_rows)
    _refuse_taken(folder, overwrite)
    shape, types, rows = _measured(source, encoding, each)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = folder.with_name(f".{folder.name}.part")
    with (
        _held(part) as journal,
        _cleared(part),
        _in_order(source, part, shape, rows, each) as (given, sizes),
    ):
        shapes = tuple(map(shape.of_rows, sizes))
        head = {
            "encoding": encoding.to_dict(),
            "rows": rows,
            "block_rows": each,
            "types": list(types),
            "of": _identity(source),
        }
        sums = _journaled(journal, head)
        needed, resumed = sum(one.nbytes for one in shapes), bool(sums)
        with open(part / ROWS_FILE, "ab+") as out:
            owner_only(out.fileno())
            done = sum(one.nbytes for one in shapes[: len(sums)])
            # the journal is written after the rows: another's file
            if out.seek(0, os.SEEK_END) < done:
                sums, done = [], 0
                _begin(journal, head)
            out.truncate(done)
            require_room(part, needed - done + SPARE)
            _append(given, out, journal, shapes, sums, progress)
        content = json.dumps(written(encoding, shapes, each, types, sums), allow_nan=False)
        with open(part / STORE_FILE, "w", encoding="utf-8") as text:
            owner_only(text.fileno())
            text.write(content + "\n")
            text.flush()
            os.fsync(text.fileno())
        shutil.rmtree(part / FOLDER, ignore_errors=True)
        (part / JOURNAL).unlink()
        _move(part, folder)
    return open_store(folder) if resumed else describe_store(folder)


@contextmanager
def _cleared(part: Path) -> Iterator[None]:
    """What was written of a table with a fault cannot be resumed."""
    try:
        yield
    except SchemaError:
        shutil.rmtree(part, ignore_errors=True)
        raise


@contextmanager
def _in_order(
    source: RowSource, part: Path, shape: Shape, rows: int, each: int
) -> Iterator[tuple[Iterator[RowBlock], list[int]]]:
    """The blocks as they are written, and the rows of each: of a table of persons these are put
    person by person first."""
    if not shape.persons:
        yield (
            in_blocks_of(source.blocks(), each),
            [min(each, rows - start) for start in range(0, rows, each)],
        )
        return
    require_room(part, Grouped.room(shape, rows) + shape.of_rows(rows).nbytes + SPARE)
    grouped = Grouped(source, part, shape, rows, each)
    try:
        yield grouped.blocks(), list(grouped.sizes)
    finally:
        grouped.remove()


def _append(
    blocks: Iterator[RowBlock],
    out: IO[bytes],
    journal: IO[str],
    shapes: tuple[Shape, ...],
    sums: list[str],
    progress: Told | None,
) -> None:
    """Blocks after those that are there; the journal follows the disk."""
    waiting, size = list[str](), 0

    def settle() -> None:
        nonlocal size
        out.flush()
        os.fsync(out.fileno())
        for found in waiting:
            # After the rows are on the disk: a line of the journal never names a block that is not
            # whole.
            journal.write(json.dumps({"sum": found}) + "\n")
        journal.flush()
        # Else a machine that stops could keep the line and lose it again in the next run's count.
        os.fsync(journal.fileno())
        waiting.clear()
        size = 0

    before = len(sums)
    for number, (raw, found) in enumerate(ahead(lambda: _packed(blocks, shapes, before)), before):
        out.write(raw)
        sums.append(found)
        waiting.append(found)
        size += len(raw)
        if size >= SYNCED:
            settle()
        if progress is not None:
            progress(number + 1, len(shapes))
    settle()


def _packed(
    blocks: Iterator[RowBlock], shapes: tuple[Shape, ...], before: int
) -> Iterator[tuple[bytearray, str]]:
    """What is written of each block but the first ones, which are there, and its checksum."""
    seen = 0
    for number, block in enumerate(blocks):
        seen += 1
        if number < before:
            continue
        if number >= len(shapes) or block.rows != shapes[number].rows:
            _changed()
        raw = bytes_of(block, shapes[number])
        yield raw, checksum(raw, shapes[number])
    if seen != len(shapes):
        _changed()


def _measured(
    source: RowSource, encoding: Encoding, each: int
) -> tuple[Shape, tuple[str, ...], int]:
    """The shape of a block, the types of its arrays, and how many rows there are: one pass. Of a
    source that has counted its rows the first block is enough, for one encoding makes all of
    them."""
    rows, counted = 0, traits_of(source).row_count
    types: tuple[str, ...] | None = None
    first: tuple[bool, bool, bool] | None = None
    for block in source.blocks():
        told = (block.labels, block.sensitive, block.persons)
        found, held = (
            types_of(block),
            (told[0] is not None, told[1] is not None, told[2] is not None),
        )
        if told[2] is not None and told[2].dtype == PERSON_BY_PERSON:
            remedy = "Copy the folder of the store, or encode the table that it was made from."
            raise InputError.expected(
                "a table", of="source", got="a coded store of persons", remedy=remedy
            )
        types, first = types or found, first or held
        if block.weights is not None:
            remedy = "Write rows without weights; pass sample_weight to fit."
            raise InputError.expected(
                "rows without weights", of="source", got="weights", remedy=remedy
            )
        if found != types or held != first:
            got = f"{found} after {types}"
            remedy = "Code all blocks alike: with labels and groups in all of them or in none."
            raise InputError.expected(
                "blocks of one kind", of="source", got=got, remedy=remedy, quote=False
            )
        rows += block.rows
        if counted is not None:
            rows = counted
            break
    types, first = types or ("<f8", "|u1", "<i4"), first or (False, False, False)
    if encoding.schema.unit is not None and rows and not first[2]:
        got = f"no column {encoding.schema.unit!r} beside a target"
        remedy = (
            "Encode a table with that column and the target; or code by schema.without_unit(), "
            "which protects rows."
        )
        raise InputError.expected(
            "whose each row is", of="source", got=got, remedy=remedy, quote=False
        )
    shape = Shape.of(encoding.layout, each, first[0], first[1], types, first[2])
    if shape is None:
        got = f"numbers {types[0]}, codes {types[1]}, labels {types[2]}"
        remedy = "Code the table with data.encode or a loader."
        raise InputError.expected(
            "dense coded rows", of="source", got=got, remedy=remedy, quote=False
        )
    return shape, types, rows


def _identity(source: object) -> Any:
    """What says that a source is the same as in the run before; None: nothing does."""
    found = traits_of(source).identity
    return None if found is None else json.loads(json.dumps(found, default=str))


def _journaled(journal: IO[str], head: dict[str, Any]) -> list[str]:
    """Checksums of the blocks that an earlier run of the same source has written; the journal
    begins anew for another."""
    journal.seek(0)
    sums: list[str] = []
    lines = journal.read().split("\n")[:-1]  # a line that was cut short is none
    try:
        found = [json.loads(line) for line in lines]
        # A source without an identity may have changed: then everything is written anew.
        if found and found[0] == head and head["of"] is not None:
            sums = [str(one["sum"]) for one in found[1:]]
            return sums
    except (ValueError, KeyError, TypeError):
        pass
    _begin(journal, head)
    return []


def _begin(journal: IO[str], head: dict[str, Any]) -> None:
    journal.seek(0)
    journal.truncate()
    journal.write(json.dumps(head, allow_nan=False) + "\n")
    journal.flush()


@contextmanager
def _held(part: Path) -> Iterator[IO[str]]:
    """The journal of the folder under way, held against a second writer. Left there by an
    interrupt: to resume."""
    part.mkdir(mode=0o700, exist_ok=True)
    with open(part / JOURNAL, "a+", encoding="utf-8") as journal:
        owner_only(journal.fileno())
        try:
            import fcntl
        except ImportError:  # no such locks on this system
            yield journal
            return
        try:
            # A lock that the system drops when its process dies, however it dies.
            fcntl.flock(journal.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            remedy = "Wait for it to end, or write to another path."
            raise InputError.expected(
                "one writer", of=str(part), got="another, now", remedy=remedy
            ) from None
        yield journal


def _move(part: Path, folder: Path) -> None:
    if folder.exists():
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        # There is no rename that replaces a folder. A reader between these two lines finds no
        # store, never half of one.
        os.rename(folder, old)
        os.rename(part, folder)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(part, folder)
    if os.name == "posix":
        # The names are in the parent folder, which has to reach the disk, too.
        parent = os.open(folder.parent, os.O_RDONLY)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


def _refuse_taken(folder: Path, overwrite: bool) -> None:
    """Only a store, with nothing else in it, is ever replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        remedy = "Pass a path that is free."
        raise InputError.expected("a folder to write", of="path", got=str(folder), remedy=remedy)
    held = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
    if not held:
        if folder.exists():
            folder.rmdir()
        return
    if not overwrite or not set(held) <= {STORE_FILE, ROWS_FILE} or STORE_FILE not in held:
        remedy = "Pass another path, or overwrite=True where it is a store and nothing else."
        raise InputError.expected(
            "a folder that is not there yet", of="path", got=str(folder), remedy=remedy
        )


def _changed() -> None:
    remedy = "Read a copy that nobody writes to, and write the store anew."
    raise InputError.expected(
        "the rows of the first pass", of="source", got="others", remedy=remedy
    )
