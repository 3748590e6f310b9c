"""Whose each row is, and rows put person by person.

A person is seventeen bytes: enough to tell persons apart, and no name. Two names have the same
bytes where Python says that they are equal, as in a table in memory; else with probability 2^-128.
The last byte says whether a name is a text, a number or of another type: a person whose name is 7 in
one file and "7" in another would count as two (`require_one_kind`).

Beyond memory rows go into nameless files by their person's bytes, so each file holds whole persons.
There the first row of each person is found, and rows go on into files by that place. These are read
in turn, each sorted. So persons stand in the order of their first rows, and a person's rows in the
order of the table: the order that a curator gives to rows in memory.

Guarantees (tests/data/test_data_persons.py):
1. All rows are there, once, person by person in the order of their first rows; blocks end where
   persons do.
2. Memory is that of one file of 64, and the rows of the person who has most; files have no name, so
   nothing of them is left whatever ends the process.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SchemaError
from ..facts.rows import PERSON_BY_PERSON, RowBlock
from ..tables.columns import Listed, Raw, is_missing

BYTES = 16
NAME = np.dtype(f"S{BYTES + 1}")
NOBODY = b""
TEXT, NUMBER, OTHERS = b"s", b"n", 128
FILES = 64


def names_of(raw: Raw) -> npt.NDArray[Any]:
    """The bytes of each row's person; none where it is missing."""
    if isinstance(raw, Listed):
        return np.asarray(_named([*raw.values, None])[raw.at])  # -1, a missing one, is the last
    values = np.asarray(raw.values)
    if values.dtype.kind in "biuf":
        distinct, at = np.unique(values, return_inverse=True)
        found = _named(distinct.tolist())[at.reshape(-1)]
    else:
        known: dict[Any, int] = {}
        at = np.fromiter(
            (known.setdefault(value, len(known)) for value in values.tolist()), np.intp, len(values)
        )
        found = _named(known)[at]
    if raw.null is not None:
        found[raw.null] = NOBODY
    return found


def _named(values: Iterable[Any]) -> npt.NDArray[Any]:
    return np.array([_name(value) for value in values], NAME)


def _name(value: object) -> bytes:
    if is_missing(value) or value == "":
        return NOBODY
    kind = NUMBER
    if isinstance(value, str):
        told, kind = value.encode("utf-8", "surrogatepass"), TEXT
    elif isinstance(value, Integral):
        told = b"%d" % int(value)
    elif isinstance(value, Real | Decimal):
        told = _number(value)
    else:
        named = type(value).__qualname__.encode()
        told = named + f" {value!r}".encode()
        kind = bytes([hashlib.blake2b(named, digest_size=1).digest()[0] | OTHERS])
    # A letter for the kind: the person "1" is not the person 1. It is never zero, which numpy
    # drops at the end.
    return hashlib.blake2b(kind + told, digest_size=BYTES).digest() + kind


def _number(value: Any) -> bytes:
    """The same for equal numbers of any type: a column of whole numbers with a gap is read as
    floats."""
    try:
        top, bottom = value.as_integer_ratio()
    except (AttributeError, ArithmeticError, ValueError):  # infinite, or of a type without ratios
        return repr(value).encode()
    return b"%d" % top if bottom == 1 else b"%d/%d" % (top, bottom)


def require_one_kind(persons: npt.NDArray[Any], unit: str, before: set[int]) -> set[int]:
    """The kinds of names so far; an error where files, or rows of a database, write them in several
    ways."""
    last = np.frombuffer(persons.tobytes(), np.uint8).reshape(-1, NAME.itemsize)[:, BYTES]
    kinds = before | set(np.unique(last).tolist()) - {0}
    if len(kinds) > 1:
        remedy = "Write it in one way everywhere: as text in all files, or as numbers in all."
        got = "names of several kinds, so that one person may have two"
        raise SchemaError.expected(
            "names of one kind", of=f"unit {unit!r}", got=got, remedy=remedy, quote=False
        )
    return kinds


def person_by_person(
    blocks: Iterable[RowBlock], block_rows: int, folder: Path
) -> Iterator[RowBlock]:
    """The rows in blocks that hold whole persons: as many as fit `block_rows`, or one who has
    more."""
    by_person, rows = _Files(folder), 0
    labelled, grouped = False, False
    for block in blocks:
        if block.persons is None or (block.persons == NOBODY).any():
            remedy = "Whose row it is must be known: give it a person of its own, or leave it out."
            raise InputError.expected(
                "a person for every row", of="unit", got="missing ones", remedy=remedy, quote=False
            )
        labelled, grouped = block.labels is not None, block.sensitive is not None
        found = _records(block, rows)
        rows += block.rows
        # A name is a digest, so its first bytes deal persons evenly to files.
        eight = np.frombuffer(block.persons.tobytes(), np.uint8).reshape(-1, NAME.itemsize)[:, :8]
        by_person.add(found, np.ascontiguousarray(eight).view(np.uint64)[:, 0] % np.uint64(FILES))
    by_place, each = _Files(folder), max(1, -(-rows // FILES))
    for found in by_person.read():
        _, at, inverse = np.unique(found["person"], return_index=True, return_inverse=True)
        found["first"] = found["place"][at][inverse.reshape(-1)]
        by_place.add(found, found["first"] // each)
    rest: npt.NDArray[Any] | None = None
    parts: Iterator[npt.NDArray[Any] | None] = chain(by_place.read(), [None])
    for more in parts:  # None: nothing is to come
        if more is not None:
            more = more[np.lexsort((more["place"], more["first"]))]
            rest = more if rest is None else np.concatenate([rest, more])
        if rest is None:
            return
        begins = np.r_[True, rest["first"][1:] != rest["first"][:-1]]
        ends, start = np.r_[np.flatnonzero(begins)[1:], len(rest)], 0
        while len(rest) - start > (0 if more is None else block_rows):
            last = int(np.searchsorted(ends, start + block_rows, side="right"))
            first = int(np.searchsorted(ends, start, side="right"))
            # As many whole persons as fit, and one at least, however many rows she has.
            stop = int(ends[max(first, last - 1)])
            part = rest[start:stop]
            persons = np.empty(len(part), PERSON_BY_PERSON)
            persons["place"], persons["begins"] = part["place"], begins[start:stop]
            numbers, codes, groups = (
                np.ascontiguousarray(part[name].T) for name in ("numbers", "codes", "groups")
            )
            labels = np.ascontiguousarray(part["label"]) if labelled else None
            yield RowBlock(numbers, codes, labels, groups if grouped else None, None, persons)
            start = stop
        rest = rest[start:]


def _records(block: RowBlock, place: int) -> npt.NDArray[Any]:
    """One row after another, as they lie in the files."""
    labels = np.zeros(block.rows, np.int32) if block.labels is None else block.labels
    groups = np.zeros((0, block.rows), np.uint16) if block.sensitive is None else block.sensitive
    lines = {"numbers": block.numbers, "codes": block.codes, "groups": groups}
    kinds: list[Any] = [(name, line.dtype, (len(line),)) for name, line in lines.items()]
    kinds += [("label", labels.dtype), ("person", NAME), ("place", "<i8"), ("first", "<i8")]
    out = np.zeros(block.rows, kinds)
    for name, line in lines.items():
        out[name] = line.T
    out["label"], out["person"] = labels, block.persons
    out["place"] = np.arange(place, place + block.rows)
    return out


class _Files:
    """Records dealt to nameless files, whose space is free again once they were read."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files, self._kind = folder, dict[int, IO[bytes]](), np.dtype("u1")

    def add(self, found: npt.NDArray[Any], files: npt.NDArray[Any]) -> None:
        self._kind = found.dtype
        order = np.argsort(files, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(FILES + 1))
        for number in np.flatnonzero(np.diff(cuts)).tolist():
            if number not in self._files:
                self._files[number] = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            part = found[order[cuts[number] : cuts[number + 1]]]
            self._files[number].write(part.view(np.uint8).data)

    def read(self) -> Iterator[npt.NDArray[Any]]:
        for number in sorted(self._files):
            with self._files.pop(number) as file:
                file.seek(0)
                yield np.frombuffer(bytearray(file.read()), self._kind)
