"""Where features are public, no feature may be the sensitive column over again: it would be
published exactly, for free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import Floats
from ...errors import PrivacyError
from ...facts import RowBlock, RowLayout

Indices = npt.NDArray[np.intp]
FIRST_ROWS = 1000  # most features are cleared by so many rows; only the others are looked at in all
CHUNK = 1 << 22  # values of a sparse table that are made dense at a time
# so many rows must hold a rarer value before a feature that merges groups is no coincidence
FEWEST = 10


def refuse_copies(blocks: Sequence[RowBlock], layout: RowLayout, names: Sequence[str]) -> None:
    """An error where a feature is a function of one sensitive column, and not constant: the column
    recoded, or a part of it.

    `names`: of the features, numbers before codes. The error is seen by the data holder, before any
    release. Columns that hardly repeat a value tell nothing: everything is a function of them. A
    copy with noise is not found.
    """
    if any(block.sensitive is None for block in blocks):
        return
    for j, column in enumerate(layout.sensitive_names):
        counts = np.zeros(len(layout.sensitive[j]), np.int64)
        for block in blocks:
            counts += np.bincount(_groups(block, j), minlength=len(counts))
        if not repeats(counts):
            continue
        copies = [
            at
            for is_number in (True, False)
            for at in _functions(blocks, j, counts, is_number, layout.numbers)
        ]
        if copies:
            raise copy_of(column, names[copies[0]])


def refuse_weights(blocks: Iterable[RowBlock], layout: RowLayout) -> None:
    """The same of public weights: those that balance groups are told by the group alone."""
    for j, column in enumerate(layout.sensitive_names):
        counts = np.zeros(len(layout.sensitive[j]), np.int64)
        low = np.full((1, len(counts)), np.inf)
        high = -low
        for block in blocks:
            if block.sensitive is None or block.weights is None:
                return
            counts += np.bincount(_groups(block, j), minlength=len(counts))
            _widen(low, high, np.asarray(block.weights)[np.newaxis], _groups(block, j))
        if repeats(counts) and len(copies_among(low, high, counts)):
            expected = f"weights that do not depend on sensitive column {column!r}"
            remedy = "Weights are public here: leave them out, or pass protects='records'."
            got = "some that follow from the group"
            raise PrivacyError.expected(expected, of="sample_weight", got=got, remedy=remedy)


def copy_of(column: str, name: str) -> PrivacyError:
    """The error of a public feature that is a sensitive column over again."""
    got = f"column {name!r}, whose value follows from the group"
    expected = f"no public feature that is a copy of sensitive column {column!r}"
    remedy = (
        "Leave that column out of X, or give X as a table and name the column in "
        "sensitive_features."
    )
    return PrivacyError.expected(expected, of="X", got=got, remedy=remedy)


def repeats(counts: npt.NDArray[np.int64]) -> bool:
    """Whether a column with so many rows a group can have copies: one that hardly repeats a value
    tells nothing."""
    present = counts > 0
    return bool(present.sum() >= 2 and 2 * present.sum() <= counts.sum())


def copies_among(low: Floats, high: Floats, counts: npt.NDArray[np.int64]) -> Indices:
    """Which features (lines of their ends in each group) are functions of the group, and take
    several values."""
    seen = np.flatnonzero(counts > 0)
    same = (low[:, seen] == high[:, seen]).all(axis=1)
    return np.flatnonzero(
        same & np.array([_tells(line, counts[seen]) for line in low[:, seen]], bool)
    )


def _functions(
    blocks: Sequence[RowBlock], j: int, counts: npt.NDArray[np.int64], is_number: bool, numbers: int
) -> Iterator[int]:
    """The features (their places among all) that are functions of sensitive column j and take
    several values."""
    width = numbers if is_number else blocks[0].codes.shape[0]
    kept = np.arange(width)
    if is_number and any(sparse.issparse(block.numbers) for block in blocks):
        kept = _filled_alike(blocks, j, counts, numbers)
    for most in (FIRST_ROWS, None):
        parts = blocks if most is None else blocks[:1]
        seen = np.unique(np.concatenate([_groups(block, j)[:most] for block in parts]))
        size = max(min(block.rows, most or block.rows) for block in parts)
        alike = []
        for some in np.array_split(kept, max(1, -(-len(kept) * size // CHUNK))):
            low = np.full((len(some), len(counts)), np.inf)
            high = -low
            for block in parts:
                _widen(low, high, _lines(block, some, is_number, most), _groups(block, j)[:most])
            same = (low[:, seen] == high[:, seen]).all(axis=1)
            if most is None:
                same &= np.array([_tells(line, counts[seen]) for line in low[:, seen]], bool)
            alike.append(some[same])
        kept = np.concatenate(alike)
    yield from (kept if is_number else kept + numbers).tolist()


def _filled_alike(
    blocks: Sequence[RowBlock], j: int, counts: npt.NDArray[np.int64], numbers: int
) -> Indices:
    """The sparse columns that are stored in all rows of a group, or in none of it; not those that
    are empty."""
    filled = sparse.csr_array((len(counts), numbers), dtype=np.int64)
    for block in blocks:
        X = sparse.csr_array(block.numbers, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        X.data = np.ones(len(X.data), np.int64)
        ones = np.ones(block.rows, np.int64)
        member = sparse.csr_array(
            (ones, (_groups(block, j), np.arange(block.rows))), shape=(len(counts), block.rows)
        )
        filled = filled + member @ X
    entries = filled.tocoo()
    stored = np.bincount(entries.col, minlength=numbers)
    whole = np.bincount(entries.col[entries.data == counts[entries.row]], minlength=numbers)
    return np.flatnonzero((stored > 0) & (stored == whole))


def _widen(low: Floats, high: Floats, lines: npt.NDArray[Any], groups: Indices) -> None:
    """The least and the largest value of each feature in each group."""
    if not len(groups) or not len(lines):
        return
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    ordered = lines[:, order]
    low[:, present] = np.minimum(low[:, present], np.minimum.reduceat(ordered, starts, axis=1))
    high[:, present] = np.maximum(high[:, present], np.maximum.reduceat(ordered, starts, axis=1))


def _tells(values: Floats, counts: npt.NDArray[np.int64]) -> bool:
    """Whether a feature with one value a group is the sensitive column recoded, or merges groups by
    no coincidence."""
    found, at = np.unique(values, return_inverse=True)
    if len(found) == len(values):
        return True
    rows = np.bincount(at, weights=counts)
    return len(found) > 1 and bool(rows.sum() - rows.max() >= FEWEST)


def _lines(block: RowBlock, some: Indices, is_number: bool, most: int | None) -> npt.NDArray[Any]:
    if not is_number:
        return np.asarray(block.codes[some, :most])
    if sparse.issparse(block.numbers):
        numbers: Any = block.numbers
        return np.asarray(numbers[:most].tocsc()[:, some].toarray().T)
    return np.asarray(block.numbers[some, :most])


def _groups(block: RowBlock, j: int) -> Indices:
    assert block.sensitive is not None
    return np.asarray(block.sensitive[j], np.intp)
