"""Archives of arrays that anybody may have written: both guarantees of `models/npz.py`."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from fairveil._json import Document
from fairveil.errors import InputError
from fairveil.models import npz

HERE = Document("arrays.npz", "Save it again.")
ARRAYS = {
    "weights": np.arange(6.0).reshape(2, 3),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "one": np.array(3.5),
    "none": np.zeros((0, 4), "<f4"),
    "codes": np.array([1, 2], "<i4"),
    "bits": np.array([True, False]),
    "bytes": np.array([1, 255], "|u1"),
}
FACTS = {name: (array.dtype.str, array.shape) for name, array in ARRAYS.items()}
ONE = {"a": ("<f8", (3,))}


def archive(
    content: bytes, *, name: str = "a.npy", how: int = zipfile.ZIP_STORED, more: bytes | None = None
) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", how) as made:
        made.writestr(name, content)
        if more is not None:
            made.writestr("b.npy", more)
    return packed.getvalue()


def npy(array: np.ndarray) -> bytes:
    raw = io.BytesIO()
    np.lib.format.write_array(raw, array, allow_pickle=True)
    return raw.getvalue()


def header(shape: str, kind: str = "<f8", order: str = "False", more: str = "") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, {more}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_guarantee_1_what_was_written_reads_back() -> None:
    made = io.BytesIO()
    np.savez(made, **ARRAYS)
    for raw in (npz.packed(ARRAYS), made.getvalue()):
        found = npz.read(raw, FACTS, HERE)
        for name, array in ARRAYS.items():
            assert found[name].tobytes() == array.tobytes()
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].flags.writeable
    assert npz.packed(ARRAYS) == npz.packed(dict(ARRAYS))
    assert len(npz.packed(ARRAYS)) <= npz.largest_file(FACTS)


GOOD = npy(np.arange(3.0))
BAD_MEMBERS = {
    "objects": npy(np.array([1, 2, 3], dtype=object)),
    "another type": npy(np.arange(3, dtype=">f8")),
    "another shape": npy(np.arange(4.0)),
    "a huge shape": header("(1000000000000000,)"),
    "a shape of 5,000 digits": header(f"({'9' * 500},)"),
    "a negative shape": header("(-3,)") + bytes(24),
    "a computed shape": header("(1 + 2,)") + bytes(24),
    "brackets": header("(" * 300),
    "code": header("(3,)", more="'x': print(1), "),
    "too few bytes": GOOD[:-1],
    "too many bytes": GOOD + b"\0",
    "no header": b"\x93NUMPY\x01\x00",
    "a header of 4 GiB": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"(" * 100,
    "version 3": b"\x93NUMPY\x03\x00" + GOOD[8:],
    "version 9": b"\x93NUMPY\x09\x00" + GOOD[8:],
    "another file": b"\x80\x04" + GOOD,
    "nothing": b"",
}


@pytest.mark.parametrize("kind", BAD_MEMBERS)
def test_guarantee_2_members_that_are_refused(kind: str) -> None:
    with pytest.raises(InputError, match=r"^arrays\.npz"):
        npz.read(archive(BAD_MEMBERS[kind]), ONE, HERE)
    if kind in ("too few bytes", "too many bytes"):
        with pytest.raises(InputError, match="24 bytes, as the shape needs"):
            npz.read(archive(BAD_MEMBERS[kind]), ONE, HERE)


def patched(raw: bytes, place: int, changed: bytes, *, local: int | None = None) -> bytes:
    """Other bytes in the central directory's first entry, and at `local` in the member's own
    header."""
    out = bytearray(raw)
    at = out.find(b"PK\x01\x02")
    out[at + place : at + place + len(changed)] = changed
    if local is not None:
        out[local : local + len(changed)] = changed
    return bytes(out)


STORED = archive(GOOD)
BAD_ARCHIVES = {
    "compressed": archive(GOOD, how=zipfile.ZIP_DEFLATED),
    "compressed by bzip2": archive(GOOD, how=zipfile.ZIP_BZIP2),
    "a bomb": archive(npy(np.zeros(100_000)), how=zipfile.ZIP_DEFLATED),
    "encrypted": patched(STORED, 8, b"\x01\x00", local=6),
    "streamed": patched(STORED, 8, b"\x08\x00"),
    "version 20": patched(STORED, 6, b"\xc8\x00"),
    "version 6.3": patched(STORED, 6, b"\x3f\x00"),
    "an unknown method": patched(STORED, 10, b"\x63\x00"),
    "sizes of 2 GiB": patched(STORED, 20, struct.pack("<II", 2**31 - 1, 2**31 - 1)),
    "another checksum": patched(STORED, 16, b"\0\0\0\0"),
    "a name out of the folder": archive(GOOD, name="../a.npy"),
    "more members": archive(GOOD, more=GOOD),
    "no members": archive(b"", name="b"),
    "cut": STORED[:-30],
    "nothing": b"",
    "text": b"PK and nothing more",
}


@pytest.mark.parametrize("kind", BAD_ARCHIVES)
def test_guarantee_2_archives_that_are_refused(kind: str) -> None:
    assert npz.read(STORED, ONE, HERE)["a"].tolist() == [0.0, 1.0, 2.0]
    words = "members of .* bytes together" if kind == "sizes of 2 GiB" else ""
    with pytest.raises(InputError, match=rf"^arrays\.npz.*{words}"):
        npz.read(BAD_ARCHIVES[kind], ONE, HERE)


def test_members_that_share_their_bytes_are_refused() -> None:
    """A thousand names of one run of bytes unpack to a thousand times as many."""
    content = npy(np.arange(1000.0))
    packed = archive(content)
    at, end = packed.find(b"PK\x01\x02"), packed.find(b"PK\x05\x06")
    entry = packed[at:end]
    many = b"".join(entry.replace(b"a.npy", f"{chr(97 + j)}.npy".encode()) for j in range(26))
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 26, 26, len(many), at, 0)
    facts = {chr(97 + j): ("<f8", (1000,)) for j in range(26)}
    with pytest.raises(InputError, match=r"members of \d+ bytes together|cannot be read"):
        npz.read(packed[:at] + many + tail, facts, HERE)


def test_nothing_is_allocated_for_a_size_that_is_only_claimed() -> None:
    tracemalloc.start()
    for shape in ("(100000000,)", "(4611686018427387904, 4)", "(0, 1000000000000000)"):
        with pytest.raises(InputError):
            npz.read(archive(header(shape)), {"a": ("<f8", (100_000_000,))}, HERE)
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "told",
    [
        {"a": {"type": "<f8", "shape": [2**40, 2**40]}},
        {"a": {"type": "<f8", "shape": [-1]}},
        {"a": {"type": "<f8", "shape": [1.0]}},
        {"a": {"type": "|O", "shape": [1]}},
        {"a": {"type": ["<f8"], "shape": [1]}},
        {"a": {"type": "<f8", "shape": "3"}},
        {"a": {"type": "<f8", "shape": [1] * 40}},
        {"a": {"type": "<f8"}},
        {"a": None},
        {str(j): {"type": "<f8", "shape": []} for j in range(5000)},
        [],
    ],
)
def test_what_a_document_declares_is_checked(told: object) -> None:
    from fairveil._json import Node

    with pytest.raises(InputError, match=r"^arrays\.npz"):
        npz.declared(Node(told, "arrays", HERE))
