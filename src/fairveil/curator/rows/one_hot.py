"""One-hot columns of numbers, read as codes: a knob of speed alone, for blocks that are passed over
again and again.

Where the last columns of a block's numbers hold ones and zeros, as many ones in each row, a pass
reads a byte for each one, in place of a column number and a value. A row's own arithmetic stays:
the same terms are added in the same order, and |row|^2 is added up as the kernels do. So no row's
contribution hangs on how other rows are stored, and no bit changes.

Guarantees (tests/curator/test_curator_one_hot.py):
1. The integers of a pass are those of the numbers as they came.
2. It takes no more memory than the numbers did; where it would, or rows are of another form, there
   is none.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from ..._types import Floats, Integers, Ints, Numbers

WORTH_CODING = 8  # passes over a block: so many must have come before, to code it is worth as many
ROWS = 4096  # looked at together
MOST_CODES = 1 << 8


@dataclass(frozen=True, slots=True)
class OneHot:
    """The same rows: `numbers` (columns, rows) before the ones, a code a one, where codes'
    coefficients begin, |row|^2."""

    numbers: Numbers
    codes: npt.NDArray[np.uint8]
    offsets: Ints
    sizes: Floats


class Repeats:
    """How often a block was passed over, and its rows as codes once that is worth it."""

    __slots__ = ("coded", "passes")

    def __init__(self) -> None:
        self.passes = 0
        self.coded: OneHot | None = None

    def again(self, numbers: Numbers, indptr: Integers, indices: Integers, columns: int) -> None:
        """One more pass is about to be made over these numbers."""
        self.passes += 1
        if self.passes == WORTH_CODING + 1:
            # Within a release neither a row nor a lack of room may warn, or fail.
            with np.errstate(all="ignore"), suppress(MemoryError):
                self.coded = one_hot(numbers, indptr, indices, columns)


def one_hot(numbers: Numbers, indptr: Integers, indices: Integers, columns: int) -> OneHot | None:
    """Numbers as a block has them, as codes; None where they are of another form."""
    sparse = len(indptr) > 0
    rows = len(indptr) - 1 if sparse else numbers.shape[1]
    first = _first_of_stored_ones(numbers[0], indices) if sparse else _first_of_ones(numbers)
    if columns - first < 2 or not rows:
        return None
    places = _places(
        partial(_stored_places, indptr, indices, first)
        if sparse
        else partial(_dense_places, numbers, first),
        rows,
    )
    held = sum(array.nbytes for array in (numbers, indptr, indices)) / rows
    # Guarantee 2: codes and |row|^2 must take no more than the numbers themselves.
    if places is None or first * numbers.itemsize + places.shape[1] + 8 > held:
        return None
    low = places.min(axis=0).astype(np.int64)
    if (places.max(axis=0) - low).max() >= MOST_CODES:
        return None
    codes = np.ascontiguousarray((places - low).T, dtype=np.uint8)
    if sparse:
        import scipy.sparse

        csr = scipy.sparse.csr_array((numbers[0], indices, indptr), shape=(rows, columns))
        numbers = csr[:, :first].toarray().T
    kept = np.ascontiguousarray(numbers[:first])
    # In the kernels' order (1, numbers, then 1 for each code), which decides the last bit of
    # |row|^2.
    sizes = np.ones(rows)
    for column in kept:
        sizes += np.square(column, dtype=np.float64)
    for _ in codes:
        sizes += 1.0
    return OneHot(kept, codes, 1 + low, sizes)


def _first_of_stored_ones(data: Numbers, indices: Integers) -> int:
    """From which column on all stored values are 1."""
    return int(indices[data != 1.0].max(initial=-1)) + 1


def _first_of_ones(numbers: Numbers) -> int:
    """From which column on all values are 0 or 1."""
    first = 0
    for lo in range(0, numbers.shape[1], ROWS):
        some = numbers[first:, lo : lo + ROWS]
        # x^2 = x holds for 0 and 1 alone; NaN fails it.
        others = np.flatnonzero((some * some != some).any(axis=1))
        first += int(others[-1]) + 1 if len(others) else 0
        if len(numbers) - first < 2:
            break
    return first


def _places(of: Callable[[int, int], Integers | None], rows: int) -> Integers | None:
    """The columns of the ones, (rows, ones): None where rows do not have as many."""
    found: list[Integers] = []
    for lo in range(0, rows, ROWS):
        some = of(lo, min(rows, lo + ROWS))
        if some is None or not some.shape[1] or (found and some.shape[1] != found[0].shape[1]):
            return None
        found.append(some.astype(np.int32))
    return np.concatenate(found)


def _stored_places(
    indptr: Integers, indices: Integers, first: int, a: int, b: int
) -> Integers | None:
    at = indices[indptr[a] : indptr[b]]
    late = at >= first
    upto = np.zeros(len(at) + 1, np.int64)
    np.cumsum(late, out=upto[1:])
    ones = np.diff(upto[indptr[a : b + 1] - indptr[a]])
    return at[late].reshape(b - a, ones[0]) if (ones == ones[0]).all() else None


def _dense_places(numbers: Numbers, first: int, a: int, b: int) -> Integers | None:
    bits = np.ascontiguousarray((numbers[first:, a:b] != 0.0).T)
    row, column = divmod(np.flatnonzero(bits), bits.shape[1])
    ones, left = divmod(len(row), b - a)
    if left or (row.reshape(b - a, ones) != np.arange(b - a)[:, np.newaxis]).any():
        return None
    places: Integers = first + column.reshape(b - a, ones)
    return places
