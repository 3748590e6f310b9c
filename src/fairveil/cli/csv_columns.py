"""Columns of a CSV file as they come, read a block of rows at a time: four bytes a row and column
while they are gathered."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 1 << 12
MOST_VALUES = 1 << 16
"""Distinct cells of a column that are kept once each; of a column with more, all cells are kept."""


class _Places(dict[str, int]):
    """The place of each text in the order of first sight."""

    def __missing__(self, text: str) -> int:
        self[text] = place = len(self)
        return place


class Gathered:
    """One column: each distinct cell once, and where each row's stands among them."""

    def __init__(self) -> None:
        self._places = _Places()
        self._codes = array("i")
        self._texts: list[str] | None = None

    def add(self, cells: Iterable[str]) -> None:
        """The cells of more rows."""
        stripped = (cell.strip() for cell in cells)
        if self._texts is not None:
            self._texts.extend(stripped)
            return
        self._codes.extend(map(self._places.__getitem__, stripped))
        if len(self._places) > MOST_VALUES:
            listed = list(self._places)
            self._texts = [listed[code] for code in self._codes]
            self._places, self._codes = _Places(), array("i")

    def typed(self, words: bool) -> npt.NDArray[Any]:
        """All cells as `typed` has them."""
        if self._texts is not None:
            return typed(self._texts, words)
        listed = typed(list(self._places), words)
        return listed[np.array(self._codes, dtype=np.intc)]


def columns_from(
    rows: Iterator[list[str]], names: list[str], only: Collection[str], words: Collection[str]
) -> dict[str, Any]:
    """The columns that are wanted of rows that each have as many cells as there are names."""
    wanted = {at: Gathered() for at, name in enumerate(names) if name in only}
    while block := list(islice(rows, BLOCK)):
        for at, column in wanted.items():
            column.add(row[at] for row in block)
    return {names[at]: wanted.pop(at).typed(names[at] in words) for at in list(wanted)}


def typed(cells: list[str], words: bool) -> npt.NDArray[Any]:
    """Whole numbers, numbers, or texts; None or NaN where a cell is empty."""
    full = [cell for cell in cells if cell]
    # Python would read 1_000 as a number
    if not words and full and not any("_" in cell for cell in full):
        try:
            numbers = np.array([float(cell) if cell else np.nan for cell in cells])
        except ValueError:
            numbers = None
        if numbers is not None:
            whole = (
                np.isfinite(numbers).all()
                and (np.abs(numbers) < 2**53).all()
                and (numbers == np.floor(numbers)).all()
            )
            return numbers.astype(np.int64) if whole else numbers
    return np.fromiter((cell or None for cell in cells), dtype=object, count=len(cells))
