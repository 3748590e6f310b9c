"""Arrays in an .npz file, as this library writes them: stored members, plain numbers, no more than
what was declared.

The file may come from anybody. Nothing is allocated for a size that the file only claims: a
member's bytes must be there, and must be as many as its declared type and shape need, before an
array is made of them.

Guarantees (tests/models/test_models_npz.py):
1. What `packed` wrote, and what `numpy.savez` wrote of such arrays, reads back to the last bit.
2. Everything else is an `InputError`: compressed, encrypted, overlapping, repeated or undeclared
   members, unknown versions of the container or of its headers, objects, headers that do not say
   what was declared.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from .._json import Document, Node, shown
from ..errors import FairveilError

TYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "<u2", "|b1")
LARGEST = 4 << 30
"""Bytes of all arrays of one file together: half a milliard weights of 8 bytes."""
MOST_ARRAYS = 4096
MOST_AXES = 8
_OVERHEAD = 1024  # of one member, beside its bytes and its name
_NEWEST = 45  # version of the container: 4.5 has sizes of 64 bits, which numpy asks for
_HEADER = re.compile(
    r"\{'descr': '([<>|=][a-zA-Z][0-9]{1,3})', 'fortran_order': (True|False), 'shape': \(([0-9, "
    r"]*)\), \} *\n?",
    re.ASCII,
)
_NUMBERS = re.compile(r"[<>|](?:b1|[iu][1248]|f[248])")
_LONGEST_HEADER = 1024

Arrays = dict[str, npt.NDArray[Any]]
Told = tuple[str, tuple[int, ...]]
"""Type and shape of an array."""
Facts = Mapping[str, Told]


def packed(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """An .npz archive without times in it: the same arrays make the same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            raw = io.BytesIO()
            np.lib.format.write_array(raw, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), raw.getvalue())
    return made.getvalue()


def declared(node: Node) -> Facts:
    """The types and shapes that a document says: `{"name": {"type": "<f8", "shape": [2, 3]}}`."""
    if len(node.mapping()) > MOST_ARRAYS:
        node.refuse(f"at most {MOST_ARRAYS} arrays", f"{len(node.mapping())}")
    found = {}
    for name in node.mapping():
        facts = node[name].only(("type", "shape"))
        sizes = facts["shape"].list()
        if len(sizes) > MOST_AXES:
            facts["shape"].refuse(f"at most {MOST_AXES} axes", len(sizes))
        found[name] = (facts["type"].one_of(TYPES), tuple(size.whole() for size in sizes))
    if sum(map(_bytes_of, found.values())) > LARGEST:
        node.refuse(f"arrays of at most {LARGEST} bytes together", "larger ones")
    return found


def largest_file(facts: Facts) -> int:
    """Bytes that a file of these arrays may have."""
    return 1024 + sum(
        _bytes_of(one) + 4 * len(name.encode()) + _OVERHEAD for name, one in facts.items()
    )


def read(raw: bytes, facts: Facts, of: Document) -> Arrays:
    """The arrays of a file: those that are declared, and no others."""
    return _read(raw, facts, of)


def read_undeclared(raw: bytes, names: Collection[str], of: Document) -> Arrays:
    """The same where only the names are declared: numbers of any type and shape, of all the bytes
    that are there."""
    return _read(raw, dict.fromkeys(names), of)


def _read(raw: bytes, facts: Mapping[str, Told | None], of: Document) -> Arrays:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = archive.infolist()
            _check_members(members, facts, len(raw), of)
            return {
                name: array_of(archive.read(f"{name}.npy"), name, one, of)
                for name, one in facts.items()
            }
    # A stranger's container may be wrong in any way that the standard library knows of.
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        ValueError,
        LookupError,
        RuntimeError,
    ) as error:
        if isinstance(error, FairveilError):
            raise
        found = type(error).__name__
    except (OverflowError, MemoryError, RecursionError) as error:
        found = type(error).__name__
    of.refuse("an .npz file of plain arrays", f"what cannot be read ({found})")


def _check_members(
    members: list[zipfile.ZipInfo], facts: Collection[str], size: int, of: Document
) -> None:
    names = [member.filename for member in members]
    if sorted(names) != sorted(f"{name}.npy" for name in facts):
        of.refuse(f"the arrays {shown(sorted(facts))}", names)
    for member in members:
        if member.flag_bits & ~0x800:  # 0x800: the name is in UTF-8
            of.refuse(
                "members that are neither encrypted nor streamed",
                f"{member.filename}, flags {member.flag_bits:#x}",
            )
        if max(member.extract_version, member.create_version) > _NEWEST:
            of.refuse(
                "a container of version 4.5 at most", f"version {member.extract_version / 10:g}"
            )
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            of.refuse("stored arrays", f"{member.filename}, compressed")
    if sum(member.file_size for member in members) > size:
        of.refuse(f"members of {size} bytes together", "larger ones")


def array_of(raw: bytes, name: str, facts: Told | None, of: Document) -> npt.NDArray[Any]:
    """One array from the bytes of its .npy file."""

    def refuse(expected: str, got: object) -> NoReturn:
        of.refuse(expected, got, name)

    if raw[:6] != b"\x93NUMPY" or raw[6:8] not in (b"\x01\x00", b"\x02\x00"):
        refuse("an .npy file of version 1 or 2", "another file")
    width = 2 if raw[6] == 1 else 4
    start = 8 + width
    length = int.from_bytes(raw[8:start], "little")
    if length > _LONGEST_HEADER or len(raw) < start + length:
        refuse(f"a header of at most {_LONGEST_HEADER} bytes", f"one of {length}")
    found = _HEADER.fullmatch(raw[start : start + length].decode("latin-1"))
    if found is None:
        refuse("a header with 'descr', 'fortran_order' and 'shape'", "another")
    type_, order, text = found.groups()
    # As many digits as 64 bits have: more are no size of anything.
    sizes = [size.strip() for size in text.split(",") if size.strip()]
    shape = tuple(int(size) if size.isdigit() and len(size) < 20 else -1 for size in sizes)
    got = f"type {type_} and shape {list(shape)}"
    if facts is not None and (type_, shape) != facts:
        refuse(f"{name} of type {facts[0]} and shape {list(facts[1])}", got)
    if not _NUMBERS.fullmatch(type_) or min(shape, default=0) < 0 or len(shape) > MOST_AXES:
        refuse(f"plain numbers on at most {MOST_AXES} axes", got)
    body = memoryview(raw)[start + length :]
    if len(body) != _bytes_of((type_, shape)):
        refuse(f"{_bytes_of((type_, shape))} bytes, as the shape needs", f"{len(body)}")
    flat = np.frombuffer(body, dtype=type_)
    if type_ == "|b1" and len(body) and np.frombuffer(body, np.uint8).max() > 1:
        refuse("truth values", "other bytes")
    array = flat.reshape(shape[::-1]).T if order == "True" else flat.reshape(shape)
    return array.copy(order="K")


def _bytes_of(facts: Told) -> int:
    size = np.dtype(facts[0]).itemsize
    for length in facts[1]:
        size *= length
    return size
