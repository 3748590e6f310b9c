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
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import Any

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
_WRONG = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, LookupError),
    *(RuntimeError, OverflowError, MemoryError, RecursionError),
)
"""A stranger's container may be wrong in any way that the standard library knows of."""

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
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            _check_members(archive.infolist(), facts, len(raw), of)
            return {
                name: _array_of(archive.read(f"{name}.npy"), name, one, of)
                for name, one in facts.items()
            }
    except FairveilError:
        raise
    except _WRONG as error:
        found = type(error).__name__
    of.refuse("an .npz file of plain arrays", f"what cannot be read ({found})")


def _check_members(
    members: list[zipfile.ZipInfo], facts: Collection[str], size: int, of: Document
) -> None:
    names = [member.filename for member in members]
    if sorted(names) != sorted(f"{name}.npy" for name in facts):
        of.refuse(f"the arrays {shown(sorted(facts))}", names)
    for member in members:
        name = member.filename
        if member.flag_bits & ~0x800:  # 0x800: the name is in UTF-8
            got = f"{name}, flags {member.flag_bits:#x}"
            of.refuse("members that are neither encrypted nor streamed", got)
        if max(member.extract_version, member.create_version) > _NEWEST:
            got = f"version {member.extract_version / 10:g}"
            of.refuse("a container of version 4.5 at most", got)
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            of.refuse("stored arrays", f"{name}, compressed")
    if sum(member.file_size for member in members) > size:
        of.refuse(f"members of {size} bytes together", "larger ones")


def _array_of(raw: bytes, name: str, told: Told, of: Document) -> npt.NDArray[Any]:
    """One array from the bytes of its .npy file, whose header says what was declared, and nothing
    else."""
    kind, shape = told
    end = 10 + int.from_bytes(raw[8:10], "little")
    header, body = raw[10:end].strip(), memoryview(raw)[end:]
    said = {
        f"{{'descr': '{kind}', 'fortran_order': {turned}, 'shape': {shape}, }}".encode(): turned
        for turned in (False, True)
    }
    if raw[:8] != b"\x93NUMPY\x01\x00" or header not in said:
        got = header[:200].decode("latin-1")
        of.refuse(f"{name} of type {kind} and shape {list(shape)}, version 1", got, name)
    if len(body) != _bytes_of(told):
        of.refuse(f"{_bytes_of(told)} bytes, as the shape needs", f"{len(body)}", name)
    flat = np.frombuffer(body, dtype=kind)
    if kind == "|b1" and len(body) and np.frombuffer(body, np.uint8).max() > 1:
        of.refuse("truth values", "other bytes", name)
    array = flat.reshape(shape[::-1]).T if said[header] else flat.reshape(shape)
    return array.copy(order="K")


def _bytes_of(facts: Told) -> int:
    size = np.dtype(facts[0]).itemsize
    for length in facts[1]:
        size *= length
    return size
