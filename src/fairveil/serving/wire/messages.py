"""A message: JSON values and arrays of plain numbers, in one piece. No pickle, no code, nothing
that is imported by name.

    b"FVD1" | length of the head, 4 bytes | head, JSON in UTF-8 | the arrays' bytes, one after
    another

The head says `{"content": ..., "arrays": [{"type": "<f8", "shape": [2, 3]},
...]}`, and the content names an array by its place: `{"array": 0}`. All numbers are little-endian.
A message may come from anybody: it is read strictly.

Guarantees (tests/serving/test_serving_wire.py):
1. What was packed is unpacked to the last bit.
2. Nothing is allocated for a size that a message only claims; every byte of it must be used.
3. Whatever else comes is an `InputError`; no other exception leaves this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._json import Document, Node
from ...models.npz import TYPES

MAGIC = b"FVD1"
LARGEST_HEAD = 4 << 20
MOST_ARRAYS = 4096
MOST_AXES = 8
DEEPEST = 40
MESSAGE = Document(
    "message", "Speak to the door with fairveil.remote.", largest=LARGEST_HEAD, deepest=DEEPEST
)
Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Message:
    """What was unpacked: the content, and the arrays that it names."""

    content: Node
    arrays: tuple[Array, ...]

    def array(self, node: Node) -> Array:
        """The array that a value of the content names."""
        place = node.only(("array",))["array"].whole()
        if place >= len(self.arrays):
            node.refuse(f"an array below number {len(self.arrays)}", place)
        return self.arrays[place]


class Packing:
    """A message in the making: arrays are put in as they are met."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def put(self, array: object) -> dict[str, int]:
        """How the content names this array."""
        found = np.asarray(array)
        kind = found.dtype.newbyteorder("<") if found.dtype.str[0] == ">" else found.dtype
        if kind.str not in TYPES:
            kind = np.dtype("<i8" if kind.kind in "iu" else "<f8")
        # `ascontiguousarray` would give a number an axis.
        self.arrays.append(np.asarray(found, dtype=kind, order="C"))
        return {"array": len(self.arrays) - 1}

    def packed(self, content: object) -> bytes:
        """The whole message."""
        facts = [{"type": array.dtype.str, "shape": list(array.shape)} for array in self.arrays]
        values = {"content": content, "arrays": facts}
        head = json.dumps(
            values, allow_nan=False, separators=(",", ":"), ensure_ascii=True
        ).encode()
        return b"".join(
            (
                MAGIC,
                len(head).to_bytes(4, "little"),
                head,
                *(array.tobytes() for array in self.arrays),
            )
        )


def packed(content: object, arrays: Sequence[Any] = ()) -> bytes:
    """A message whose content names these arrays by their places."""
    packing = Packing()
    for array in arrays:
        packing.put(array)
    return packing.packed(content)


def unpacked(raw: bytes) -> Message:
    """The message in these bytes, all of them."""
    if raw[:4] != MAGIC or len(raw) < 8:
        MESSAGE.refuse("a message of this protocol", f"{len(raw)} other bytes")
    length = int.from_bytes(raw[4:8], "little")
    if length > LARGEST_HEAD or 8 + length > len(raw):
        MESSAGE.refuse(f"a head of at most {min(LARGEST_HEAD, len(raw) - 8)} bytes", length)
    head = MESSAGE.node(raw[8 : 8 + length]).only(("content", "arrays"))
    declared = head["arrays"].list()
    if len(declared) > MOST_ARRAYS:
        head["arrays"].refuse(f"at most {MOST_ARRAYS} arrays", len(declared))
    at, arrays = 8 + length, []
    for one in declared:
        array, at = _array(raw, at, one.only(("type", "shape")))
        arrays.append(array)
    if at != len(raw):
        MESSAGE.refuse(f"{at} bytes, as its head says", len(raw))
    return Message(head["content"], tuple(arrays))


def _array(raw: bytes, at: int, facts: Node) -> tuple[Array, int]:
    kind, sizes = facts["type"].one_of(TYPES), facts["shape"].list()
    if len(sizes) > MOST_AXES:
        facts["shape"].refuse(f"at most {MOST_AXES} axes", len(sizes))
    shape = tuple(size.whole() for size in sizes)
    item = np.dtype(kind).itemsize
    count = math.prod(shape)
    # A length of 0 makes any other length cost nothing here, and too much where the shape is used.
    if max(shape, default=0) > len(raw) or count * item > len(raw) - at:
        facts.refuse(
            f"an array of at most {len(raw) - at} bytes, which are there",
            f"shape {list(shape)[:8]}",
        )
    flat = np.frombuffer(raw, dtype=kind, count=count, offset=at)
    if kind == "|b1" and count and int(np.frombuffer(raw, np.uint8, count, at).max()) > 1:
        facts.refuse("truth values", "other bytes")
    array = flat.reshape(shape)
    array.setflags(write=False)
    return array, at + count * item
