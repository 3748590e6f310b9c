"""Messages: to the last bit, or refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairveil.errors import FairveilError, InputError
from fairveil.serving.wire import MAGIC, Packing, packed, unpacked


def test_what_was_packed_is_unpacked_to_the_last_bit() -> None:
    packing = Packing()
    arrays = [
        np.array([[0.1, -0.0, np.inf]]),
        np.array(3.5),
        np.arange(6, dtype=np.int64).reshape(2, 3),
        np.array([True, False]),
        np.zeros((0, 4)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    ]
    content = {"x": [packing.put(array) for array in arrays], "words": "ä", "float": 0.1}
    message = unpacked(packing.packed(content))
    for node, array in zip(message.content["x"].list(), arrays, strict=True):
        found = message.array(node)
        assert found.dtype == array.dtype
        assert found.shape == array.shape
        assert found.tobytes() == np.ascontiguousarray(array).tobytes()
    assert message.content["words"].text() == "ä"
    assert message.content["float"].number() == 0.1


def head_of(content: object, arrays: list[object], tail: bytes = b"") -> bytes:
    head = json.dumps({"content": content, "arrays": arrays}).encode()
    return MAGIC + len(head).to_bytes(4, "little") + head + tail


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"FVD1",
        MAGIC + (1 << 31).to_bytes(4, "little"),
        MAGIC + b"\xff\xff\xff\xff" + b"{}",
        head_of({}, [{"type": "<f8", "shape": [1 << 40]}]),
        head_of({}, [{"type": "<f8", "shape": [1 << 40, 0]}]),
        head_of({}, [{"type": "|O", "shape": [1]}], bytes(8)),
        head_of({}, [{"type": "<f8", "shape": [-1]}], bytes(8)),
        head_of({}, [{"type": "<f8", "shape": [1, 1, 1, 1, 1, 1, 1, 1, 1]}], bytes(8)),
        head_of({}, [{"type": "|b1", "shape": [1]}], b"\x02"),
        head_of({}, [], b"more"),
        head_of({}, [{"type": "<f8", "shape": []}], bytes(7)),
        packed({"x": 1})[:-1],
        MAGIC + (6).to_bytes(4, "little") + b'{"a":1',
        head_of("[" * 0, [])[:8] + b"[" * 400,
    ],
)
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InputError):
        unpacked(raw)


def test_deep_values_are_refused_before_they_are_parsed() -> None:
    deep = b"[" * 10_000 + b"]" * 10_000
    raw = MAGIC + len(deep).to_bytes(4, "little") + deep
    with pytest.raises(InputError, match="levels"):
        unpacked(raw)


def test_an_array_that_is_not_there_is_refused() -> None:
    message = unpacked(packed({"x": {"array": 0}, "y": {"array": 3}}, [np.zeros(2)]))
    with pytest.raises(InputError, match="array below number 1"):
        message.array(message.content["y"])
    with pytest.raises(InputError, match="each named"):  # nothing names the second one
        unpacked(packed({"x": {"array": 0}}, [np.zeros(2), np.zeros(3)]))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
def test_changed_bytes_raise_nothing_but_the_family(tail: bytes, at: int, byte: int) -> None:
    raw = bytearray(
        packed({"asks": [{"kind": "row count"}], "x": {"array": 0}}, [np.arange(4.0)]) + tail
    )
    raw[at % len(raw)] = byte
    try:
        unpacked(bytes(raw))
    except FairveilError:
        return
