"""A coded store: one Arrow file of coded rows, written once and mapped, so that memory holds no
table. It is a copy of the rows, as private as the table itself, and its owner's alone (0600).

Each record batch is a block, in one row of lists: `numbers` (features, one after another), `codes`,
`labels`, `groups` and, where the schema tells persons apart, `persons`, which says where persons
begin and where each row stood in the table; then no person has rows in two blocks. Names of persons
are not kept. A batch's own metadata has the digest of its bytes, the file's metadata the encoding,
and what a statement about the rows says beside it, such as how they were joined.

Rows that do not fit memory lie in such a file without a name, whose space is free again when nobody
holds the rows, however the process ends.

Guarantees (tests/data/test_data_store.py):
1. A store gives the rows that were written, to the bit; fits on it are those on the rows in memory.
2. A store is there whole or not at all: a write that fails or is killed leaves nothing.
3. Bytes that changed are refused: by digests when it is opened, by size and time of writing at
   every pass.
4. That rows go to the disk, and where, is said before they do.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mmap
import os
import tempfile
import uuid
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from .. import _checks
from ..core.errors import need
from ..errors import ChecksumError, InputError, PrivacyError, RowsOnDisk, complaint
from ..facts.rows import PERSON_BY_PERSON, RowBlock, RowSource, held_blocks
from ..statement.document import PublicFact
from .encoding import Encoding
from .persons import person_by_person
from .reading import PathLike, existing, identity_of, need_package
from .rows import BLOCK_ROWS, EncodedRows, in_blocks_of, size_of

ENCODING, FACTS, DIGEST = b"fairveil_encoding", b"fairveil_facts", b"digest"
Facts = tuple[PublicFact, ...]
ARROW = b"ARROW1"
NUMBERS, CODES, LABELS = ("<f8", "<f4"), ("|u1", "<u2", "<i4"), ("<i4", "<f8")
LINES = ("numbers", "codes", "labels", "groups", "persons")
SHARE = 0.25  # of the memory of this machine, or of what the process may use of it
LIMIT, FOLDER = "FAIRVEIL_MEMORY", "FAIRVEIL_SPILL"
CGROUP = Path("/sys/fs/cgroup/memory.max")


def write_store(
    source: RowSource, path: PathLike, *, overwrite: bool = False, block_rows: int = BLOCK_ROWS
) -> EncodedRows:
    """Write coded rows (`encode`, `open`) to a file, whole or not
    at all, and map it.

    `overwrite`: replace a store that is there.
    """
    remedy = "Code the table first: data.open(path, schema), or data.encode(table, schema)."
    expected, own = "rows coded by a schema", getattr(source, "encoding", source)
    encoding = _checks.instance(Encoding, "source", own, remedy, expected)
    facts = getattr(source, "facts", ())
    return written(source.blocks(), encoding, path, overwrite, block_rows, facts)


def written(
    blocks: Iterable[RowBlock],
    encoding: Encoding,
    path: PathLike,
    overwrite: bool,
    block_rows: int = BLOCK_ROWS,
    facts: Facts = (),
) -> EncodedRows:
    """The rows in a new file of that name, mapped."""
    place, each = Path(path), _checks.whole(at_least=1, block_rows=block_rows)
    _require_free(place, overwrite)
    place.parent.mkdir(parents=True, exist_ok=True)
    blocks, unit = iter(blocks), encoding.schema.unit
    first = next(blocks, None)
    nobodys = first is not None and first.rows and first.persons is None and unit is not None
    fix = "Encode a table with that column and the target, or by schema.without_unit()."
    got = f"no column {unit!r} beside a target"
    need(not nobodys, "whose each row is", of="source", got=got, fix=fix, quote=False)
    with _whole_file(place, overwrite) as file:
        blocks = blocks if first is None else chain([first], blocks)
        _write(blocks, encoding, file, each, place.parent, facts)
    return described_store(place)


def open_store(path: PathLike) -> EncodedRows:
    """A store that `write_store` wrote, checked against its digests: this reads it once.

    >>> import tempfile
    >>> from fairveil.data import Category, Number, Schema, encode, write_store
    >>> schema = Schema({"age": Number(0, 100), "sex": Category(("f", "m"))}, sensitive="sex")
    >>> rows = encode({"age": [25, 50], "sex": ["m", "f"]}, schema)
    >>> path = tempfile.mkdtemp() + "/people.store"
    >>> _ = write_store(rows, path)
    >>> next(open_store(path).blocks()).numbers.tolist()
    [[-0.5, 0.0]]
    """
    return _mapped(Path(path))


def store_part(path: PathLike, first: int, last: int, fingerprint: str) -> EncodedRows:
    """Blocks `first` up to `last` of the store that has this fingerprint: these alone are read, and
    checked."""
    return _mapped(Path(path), first, last, fingerprint)


def described_store(path: PathLike) -> EncodedRows:
    """A store whose blocks are checked where they will be read: nothing of them is read here."""
    return _mapped(Path(path), checked=False)


def is_store(path: Path) -> bool:
    """By the first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(ARROW)) == ARROW


def held(blocks: Iterable[RowBlock], encoding: Encoding) -> EncodedRows:
    """Rows in memory where they fit a quarter of it (or FAIRVEIL_MEMORY), else mapped from a file
    without a name."""
    kept: list[RowBlock] = []
    size, most, cut = 0, most_in_memory(), in_blocks_of(blocks, BLOCK_ROWS)
    for block in cut:
        kept.append(block)
        size += size_of(block)
        if size > most:
            return _spilled(chain(_taken(kept), cut), encoding, most)
    return EncodedRows(encoding, tuple(kept))


def most_in_memory() -> int:
    """Bytes of coded rows that are held: FAIRVEIL_MEMORY, or a quarter of what there is."""
    stated = os.environ.get(LIMIT)
    if stated is not None:
        with contextlib.suppress(ValueError):
            return _checks.whole(at_least=1, FAIRVEIL_MEMORY=int(stated))
        remedy = "Set it to a number of bytes: 2000000000, for example."
        raise InputError.expected("bytes", of=LIMIT, got=stated, remedy=remedy)
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no such question on this system
        found = 1 << 33
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(CGROUP.read_text("ascii")))
    return int(SHARE * found)


def _taken(kept: list[RowBlock]) -> Iterator[RowBlock]:
    """The blocks, each let go when it is taken."""
    kept.reverse()
    while kept:
        yield kept.pop()


def _spilled(blocks: Iterable[RowBlock], encoding: Encoding, most: int) -> EncodedRows:
    # /tmp may itself be memory
    large = Path("/var/tmp")
    usual = large if large.is_dir() and os.access(large, os.W_OK) else tempfile.gettempdir()
    folder = Path(os.environ.get(FOLDER) or usual)
    need(folder.is_dir(), "a folder", of=FOLDER, got=str(folder), fix="Name one with space.")
    expected = f"rows of at most {most / 2**30:.2f} GiB, to be held in memory"
    remedy, in_shell = (
        f"They are copied to a file in {folder}, for their owner alone, and gone after use. To "
        f"keep them use {name}; name another folder in {FOLDER}, or set {LIMIT} to more bytes."
        for name in ("data.write_store", "`data.encode` in Python")
    )
    warning = RowsOnDisk(
        complaint(expected=expected, of="X", got="more of them", remedy=remedy, quote=False)
    )
    warning.in_shell = f"the table is larger than memory should hold. {in_shell}"
    warnings.warn(warning, stacklevel=2)
    with tempfile.TemporaryFile(dir=folder) as file:
        _write(blocks, encoding, file, BLOCK_ROWS, folder)
        file.flush()
        *_, found = _read(file, "rows on the disk")
    return EncodedRows(encoding, tuple(block for block, _ in found), is_mapped=True)


# Writing


def _write(
    blocks: Iterable[RowBlock],
    encoding: Encoding,
    file: IO[bytes],
    each: int,
    folder: Path,
    facts: Facts = (),
) -> None:
    need_package("pyarrow", "a coded store")
    import pyarrow as pa

    told = {ENCODING: json.dumps(encoding.to_dict(), allow_nan=False)}
    if facts:
        told[FACTS] = json.dumps([fact.to_dict() for fact in facts])
    writer: Any = None
    first: list[str] = []
    try:
        for block in _in_order(iter(blocks), encoding, each, folder):
            lines = _lines(block)
            kinds = [line.dtype.str if len(line) else "none" for line in lines]
            columns = [pa.array([block.rows], pa.int64()), *map(_listed, lines)]
            if writer is None:
                fields = zip(("rows", *LINES), columns, strict=True)
                kept = pa.schema([(name, column.type) for name, column in fields], metadata=told)
                first, writer = kinds, pa.ipc.new_file(file, kept)
            fix = "Code all blocks alike: with labels and groups in all of them or in none."
            need(kinds == first, "blocks of one kind", of="source", got="several", fix=fix)
            batch = pa.record_batch(columns, schema=kept)
            writer.write_batch(batch, custom_metadata={DIGEST: _digest(lines, block.rows)})
        writer.close()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    else:
        return
    remedy = "Write it to another disk, or free space."
    raise InputError.expected("space on the disk", of=str(folder), got="none left", remedy=remedy)


def _in_order(
    blocks: Iterator[RowBlock], encoding: Encoding, each: int, folder: Path
) -> Iterator[RowBlock]:
    """Blocks as they are written: cut, or put person by person. Those of a store of persons stay."""
    first = next(blocks, None)
    if first is None:
        return held_blocks(EncodedRows(encoding, ()))
    blocks = chain([first], blocks)
    if first.persons is None:
        return in_blocks_of(blocks, each)
    if first.persons.dtype == PERSON_BY_PERSON:
        return blocks
    return person_by_person(blocks, each, folder)


def _lines(block: RowBlock) -> list[npt.NDArray[Any]]:
    """The arrays of a block, each one after another."""
    fix, of = "Write rows without weights; pass sample_weight to fit.", "source"
    need(block.weights is None, "rows without weights", of=of, got="weights", fix=fix)
    none = np.empty(0, np.int32)
    labels = none if block.labels is None else block.labels
    groups = np.empty((0, 0), np.uint16) if block.sensitive is None else block.sensitive
    persons = np.empty(0, PERSON_BY_PERSON) if block.persons is None else block.persons
    types = tuple(getattr(one, "dtype", None) for one in (block.numbers, block.codes, labels))
    kinds = zip(types, (NUMBERS, CODES, LABELS), strict=True)
    dense = not hasattr(block.numbers, "indptr") and all(one in known for one, known in kinds)
    fix = "Code the table with data.encode or data.open."
    need(dense, "dense coded rows", of=of, got="others", fix=fix)
    lines = (block.numbers, block.codes, labels, groups, persons.view(np.uint8))
    return [np.ascontiguousarray(one).reshape(-1) for one in lines]


def _listed(line: npt.NDArray[Any]) -> Any:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(np.array([0, len(line)], np.int64), pa.array(line))


def _digest(lines: list[npt.NDArray[Any]], rows: int) -> str:
    """Of a block's bytes and of what they are said to be: shows damage, not authorship."""
    shape = [(line.dtype.str, len(line)) for line in lines]
    told = hashlib.blake2b(f"{rows} {shape}".encode(), digest_size=16)
    for line in lines:
        told.update(line.data)
    return told.hexdigest()


@contextlib.contextmanager
def _whole_file(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """A file that has its name when all is on the disk. Until then it has none, where the system
    can do that: so nothing is left of a process that is killed."""
    folder = os.open(path.parent, os.O_RDONLY) if os.name == "posix" else None
    hidden: Path | None = None
    try:
        try:
            os.stat("/proc/self/fd")
            number = os.open(path.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
        except (AttributeError, OSError):
            number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            hidden = Path(name)
        with os.fdopen(number, "w+b") as file:
            yield file
            file.flush()
            os.fsync(number)
            _require_free(path, overwrite)  # another may have written it meanwhile
            if hidden is None:
                # A name of its own is only needed where one is replaced: in one step, by a rename.
                given = path
                if overwrite:
                    given = hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
                here = f"/proc/self/fd/{number}"
                os.link(here, given, src_dir_fd=folder, follow_symlinks=True)
            if hidden is not None:
                os.replace(hidden, path)
        if folder is not None:
            os.fsync(folder)  # the name is there, and has to reach the disk, too
    finally:
        if hidden is not None:
            hidden.unlink(missing_ok=True)
        if folder is not None:
            os.close(folder)


def _require_free(path: Path, overwrite: bool) -> None:
    """Only a store is ever replaced."""
    free = not path.exists() and not path.is_symlink()
    free = free or (overwrite and is_store(path) and not path.is_symlink())
    fix = "Pass another path, or overwrite=True where it is a store."
    need(free, "a file that is not there yet", of="path", got=str(path), fix=fix)


# Reading


def _mapped(
    path: Path,
    first: int = 0,
    last: int | None = None,
    fingerprint: str | None = None,
    *,
    checked: bool = True,
) -> EncodedRows:
    existing(path, "a coded store")
    need_package("pyarrow", "a coded store")
    identity = identity_of(path)
    with path.open("rb") as file:
        encoding, facts, found = _read(file, str(path))
    said = [fact.to_dict() for fact in facts]
    told = json.dumps([encoding.to_dict(), [digest for _, digest in found], *said]).encode()
    known = hashlib.blake2b(told, digest_size=16).hexdigest()
    # Parts on other machines must be cut from the store that the plan was made for.
    same, fix = fingerprint in (None, known), "Use one store on all machines; leave it as it is."
    expected = "the store that was cut into parts"
    need(same, expected, of=str(path), got="another", fix=fix, error=ChecksumError)
    mine = found[first:last]
    for block, digest in mine if checked else ():
        if _digest(_lines(block), block.rows) != digest:
            raise _damaged(str(path))

    def require_same() -> None:
        same, of = path.is_file() and identity_of(path) == identity, "the store"
        expected, fix = "the rows that were checked", "Keep it as it is while it is used."
        need(same, expected, of=of, got="others", fix=fix, error=PrivacyError)

    return EncodedRows(
        encoding,
        tuple(block for block, _ in mine),
        is_mapped=True,
        require_same=require_same,
        facts=facts,
        path=path,
        fingerprint=known if last is None else f"{known} {first} {last}",
    )


def _read(file: IO[bytes], of: str) -> tuple[Encoding, Facts, list[tuple[RowBlock, str]]]:
    """The encoding, what is said beside it, and each block, whose arrays are views of the file,
    with its digest as told."""
    import pyarrow as pa

    told: Any = None
    found: list[tuple[RowBlock, str]] = []
    try:
        # A private map: its arrays are of the kind that loops are compiled for, those in memory;
        # nothing that were written to them would reach the file.
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        whole = pa.py_buffer(mapped)
        reader = pa.ipc.open_file(whole)
        told = (reader.schema.metadata or {}).get(ENCODING)
        if told is not None:
            encoding = Encoding.from_dict(json.loads(told))
            said = json.loads(reader.schema.metadata.get(FACTS, b"[]"))
            facts = tuple(PublicFact(**fact) for fact in said)
            for number in range(reader.num_record_batches):
                batch, own = reader.get_batch_with_custom_metadata(number)
                batch.validate()
                found.append((_block(batch, encoding, mapped, whole), own[DIGEST].decode()))
            return encoding, facts, [one for one in found if one[0].rows]
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError):
        raise _damaged(of) from None
    remedy = "Write one with data.encode(table, schema, out)."
    raise InputError.expected("a coded store", of=of, got="another Arrow file", remedy=remedy)


def _block(batch: Any, encoding: Encoding, mapped: mmap.mmap, whole: Any) -> RowBlock:
    rows, layout, schema = batch.column("rows")[0].as_py(), encoding.layout, encoding.schema
    lines = [_view(batch.column(name).values, mapped, whole) for name in LINES]
    numbers, codes, labels, groups, persons = lines
    labelled = len(labels) > 0 or (rows == 0 and schema.target is not None)
    grouped = len(groups) > 0 or (rows == 0 and len(schema.sensitive) > 0)
    block = RowBlock(
        numbers.reshape(layout.numbers, rows),
        codes.reshape(len(layout.code_sizes), rows),
        labels if labelled else None,
        groups.reshape(len(schema.sensitive), rows) if grouped else None,
        None,
        persons.view(PERSON_BY_PERSON) if len(persons) else None,
    )
    if {len(one) for one in (block.labels, block.persons) if one is not None} - {rows}:
        raise ValueError
    return block


def _view(values: Any, mapped: mmap.mmap, whole: Any) -> npt.NDArray[Any]:
    """Numbers of a batch where they lie in the map."""
    line: npt.NDArray[Any] = values.to_numpy(zero_copy_only=True)
    if not len(line):
        return np.empty(0, line.dtype)
    start = line.__array_interface__["data"][0] - whole.address
    if not 0 <= start <= len(mapped) - line.nbytes:
        raise ValueError  # compressed, or of another endianness: no file of ours
    return np.frombuffer(mapped, line.dtype, len(line), start)


def _damaged(of: str) -> ChecksumError:
    remedy = "The file is damaged or was cut short: write the store again from its source."
    return ChecksumError.expected("the bytes that were written", of=of, got="others", remedy=remedy)
