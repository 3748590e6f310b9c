"""Rows put person by person, on the disk: no person then has rows in two blocks, and memory is that
of a part of the table.

Rows go into files by their person's bytes, so each file holds whole persons. There the first row of
each person is found, and rows go on into files by that place. These are read in turn, each sorted.
Persons stand in the order of their first rows, and a person's rows in the order of the table: the
order that a curator gives to rows in memory.

Guarantees (tests/data/test_data_person_stores.py):
1. All rows are there, once, person by person in the order of their first rows; blocks end where
   persons do.
2. Memory is that of one file (about 64 MiB up to 16 GiB of rows, and the rows of the person who has
   most); files are their owner's alone, and are removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..facts.rows import PERSON_BY_PERSON, RowBlock, RowSource
from .person_names import NAME, NOBODY
from .store_blocks import Shape

OF_A_FILE, MOST_FILES = 1 << 26, 256
FOLDER = "persons"

Records = npt.NDArray[Any]


class Grouped:
    """The rows of a source, person by person, in files of `folder`. `rows`: how many; `shape`: of a
    block before."""

    def __init__(
        self, source: RowSource, folder: Path, shape: Shape, rows: int, block_rows: int
    ) -> None:
        self._folder, self._block_rows, self._labels = folder / FOLDER, block_rows, shape.labels
        self._kind = _record(shape)
        self._files = min(MOST_FILES, 1 + rows * self._kind.itemsize // OF_A_FILE)
        self._rows = rows
        shutil.rmtree(self._folder, ignore_errors=True)  # of a run that was interrupted
        self._folder.mkdir(mode=0o700)
        self._by_person(source)
        self._by_place()
        self.sizes = tuple(block.rows for block in self.blocks())

    @staticmethod
    def room(shape: Shape, rows: int) -> int:
        """Bytes that the files take at most, beside the store."""
        return 2 * rows * _record(shape).itemsize

    def remove(self) -> None:
        """The files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, in blocks that hold whole persons: as many as fit `block_rows`, or one who has
        more."""
        for number in range(self._files):
            found = self._read("places", number)
            # Persons by the place of their first row, and each one's rows by their own places: the
            # order is that of the table.
            found = found[np.lexsort((found["place"], found["first"]))]
            begins = np.r_[True, found["first"][1:] != found["first"][:-1]][: len(found)]
            ends, start = np.r_[np.flatnonzero(begins)[1:], len(found)], 0
            while start < len(found):
                last = int(np.searchsorted(ends, start + self._block_rows, side="right"))
                first = int(np.searchsorted(ends, start, side="right"))
                # As many whole persons as fit, and one at least, however many rows she has.
                stop = int(ends[max(first, last - 1)])
                yield self._block(found[start:stop], begins[start:stop])
                start = stop

    def _block(self, found: Records, begins: npt.NDArray[np.bool_]) -> RowBlock:
        persons = np.empty(len(found), PERSON_BY_PERSON)
        persons["place"], persons["begins"] = found["place"], begins
        numbers, codes, groups = (
            np.ascontiguousarray(found[name].T) for name in ("numbers", "codes", "groups")
        )
        labels = np.ascontiguousarray(found["label"]) if self._labels else None
        return RowBlock(numbers, codes, labels, groups if len(groups) else None, None, persons)

    def _by_person(self, source: RowSource) -> None:
        place = 0
        for block in source.blocks():
            persons = block.persons
            if persons is None or persons.dtype != NAME or (persons == NOBODY).any():
                remedy = (
                    "Whose row it is must be known: give it a person of its own, or leave it out."
                )
                got = "missing values"
                raise InputError.expected(
                    "a person for every row", of="unit", got=got, remedy=remedy, quote=False
                )
            out = np.zeros(block.rows, self._kind)
            out["numbers"], out["codes"] = np.asarray(block.numbers).T, block.codes.T
            if block.sensitive is not None:
                out["groups"] = block.sensitive.T
            out["label"] = 0 if block.labels is None else block.labels
            out["person"], out["place"] = persons, np.arange(place, place + block.rows)
            place += block.rows
            # A name is a digest, so its first bytes deal persons evenly to files.
            eight = np.frombuffer(persons.tobytes(), np.uint8).reshape(-1, NAME.itemsize)[:, :8]
            self._write(
                "persons",
                out,
                np.ascontiguousarray(eight).view(np.uint64)[:, 0] % np.uint64(self._files),
            )

    def _by_place(self) -> None:
        each = max(1, -(-self._rows // self._files))
        for number in range(self._files):
            found = self._read("persons", number)
            _, at, inverse = np.unique(found["person"], return_index=True, return_inverse=True)
            found["first"] = found["place"][at][inverse.reshape(-1)]
            # Written again by the place of the first row, so that files follow each other in the
            # table's order.
            self._write("places", found, found["first"] // each)
            self._path("persons", number).unlink(missing_ok=True)

    def _write(self, stage: str, found: Records, files: npt.NDArray[Any]) -> None:
        order = np.argsort(files, kind="stable")
        cuts = np.searchsorted(files[order], np.arange(self._files + 1))
        for number in range(self._files):
            if cuts[number + 1] > cuts[number]:
                with open(self._path(stage, number), "ab", opener=_private) as file:
                    found[order[cuts[number] : cuts[number + 1]]].tofile(file)

    def _read(self, stage: str, number: int) -> Records:
        path = self._path(stage, number)
        return np.fromfile(path, self._kind) if path.exists() else np.empty(0, self._kind)

    def _path(self, stage: str, number: int) -> Path:
        return self._folder / f"{stage}-{number:03}"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _record(shape: Shape) -> np.dtype[Any]:
    """One row, as it lies in the files."""
    return np.dtype(
        [
            ("numbers", shape.types[0], (shape.numbers,)),
            ("codes", shape.types[1], (shape.codes,)),
            ("label", shape.types[2]),
            ("groups", "<u2", (shape.sensitive,)),
            ("person", NAME),
            ("place", "<i8"),
            ("first", "<i8"),
        ]
    )
