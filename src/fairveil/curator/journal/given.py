"""Answers beside their entries: a run that was killed asks again, and gets again what was released,
at no further price.

A search whose state is made of answers alone needs no state on disk: it begins anew, asks the same,
and is given the same. It asks the rows only what was not asked yet. So any search can go on,
`choose` included.

Guarantees (tests/curator/test_curator_given.py):
1. What is given again is, to the bit, what was released: no row is read for it, nothing admitted,
   logged or charged.
2. Where another question is asked than the earlier sittings asked, the run ends before anything is
   given.
3. An answer that a crash lost is not drawn anew: the run ends, and stays charged.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _checks
from ..._types import Floats

KINDS = {"<f8", "<i8"}


@dataclass(frozen=True, eq=False)
class Given:
    """What was released: a digest of what was asked, and the arrays that were returned."""

    asked: str
    arrays: tuple[npt.NDArray[Any], ...]

    @staticmethod
    def of(asked: str, arrays: Sequence[Floats] | int) -> Given:
        """Answers, or the index that was chosen."""
        many = (
            (np.array(arrays, "<i8"),)
            if isinstance(arrays, int)
            else tuple(np.array(a, "<f8") for a in arrays)
        )
        return Given(asked, many)

    @property
    def answers(self) -> list[Floats]:
        """Arrays of the caller's own, as they were returned."""
        return [array.astype(np.float64) for array in self.arrays]

    @property
    def chosen(self) -> int:
        """The index that was chosen."""
        return int(self.arrays[0])

    def to_line(self) -> dict[str, Any]:
        """The end of a line of a journal."""
        packed = [
            [a.dtype.str, list(a.shape), base64.b64encode(a.tobytes()).decode("ascii")]
            for a in self.arrays
        ]
        return {"asked": self.asked, "given": packed}

    @staticmethod
    def from_line(values: Mapping[str, Any]) -> Given:
        """Read back; a `ValueError` where that cannot be."""
        return Given(str(values["asked"]), tuple(_array(*packed) for packed in values["given"]))


def digest_of(*asked: object) -> str:
    """Of asks, batches and purposes: all their public fields, arrays by their values. Code of a
    caller counts by its name."""
    digest = hashlib.sha256()
    for part in _parts(asked):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:32]


def _array(kind: str, shape: list[int], data: str) -> npt.NDArray[Any]:
    if kind not in KINDS:
        raise ValueError(kind)
    return np.frombuffer(base64.b64decode(data, validate=True), kind).reshape(shape)


def _parts(value: object) -> Iterator[bytes]:
    """A value as bytes, its parts in turn."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list | tuple):
        yield f"{len(value)} values".encode()
        for one in value:
            yield from _parts(one)
    elif isinstance(value, frozenset | set):
        yield from _parts(sorted(map(repr, value)))
    elif isinstance(value, Mapping):
        yield from _parts([part for pair in value.items() for part in pair])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value).__qualname__.encode()
        own = _checks.fields_of(value)
        for field in dataclasses.fields(value):
            if field.init and not field.name.startswith("_"):
                yield field.name.encode()
                yield from _parts(own[field.name])
    elif value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        yield repr(value).encode()
    else:
        yield getattr(value, "__qualname__", type(value).__qualname__).encode()
