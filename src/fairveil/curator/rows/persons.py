"""Whose each row is, and which of a person's rows are read, where a promise protects persons
(theory.md#units).

Rows are put person by person. Of a person with more rows than the promise's cap, as many as the cap
are kept, by coins: each row draws a number, and the smallest are kept. No coin depends on what a
row holds, on where it stands, or on who else is there, so the rows of all others are kept by the
same distribution whether a person is there or not. The first rows of a table would not do: in which
order a table gives a person's rows may depend on the others, as after a shuffle of the whole table.

Guarantees (tests/curator/test_curator_persons.py):
1. At most `max_rows` rows of a person are read, by the same ones in all answers of a curator.
2. Which rows are kept is uniform, whatever they hold, and independent from person to person.
3. Persons are numbered by the place of their first row, so that a person who is replaced keeps the
   numbers of all others.
4. A batch, and a part, holds all kept rows of a person or none.
   Blocks that stand person by person are of one table: two tables share places, and are refused.
   So are names of several kinds, where one person may have two.
5. In one group all kept rows of a person have the same sensitive values, whatever the rows of
   others are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._types import Ints, Mask
from ...core.bound import of_person as bound_of_person
from ...core.noise import Stream
from ...errors import InputError, PrivacyError
from ...facts.rows import PERSON_BY_PERSON
from ..question import Scale
from .block import EMPTY_INT, Block

NOBODY: Ints = np.empty(0, np.int64)
NUMBERS = (Real, Decimal, np.bool_)


def persons_of(units: object, rows: int) -> Ints:
    """A number for each row: that of its person, from 0, by first appearance."""
    values = _column(units)
    if len(values) != rows:
        remedy = "Pass one value a row, in the order of the rows."
        raise InputError.expected(
            f"{rows} values, one a row", of="unit", got=len(values), remedy=remedy
        )
    if _has_missing(values):
        remedy = "Whose row it is must be known: give it a person of its own, or leave it out."
        raise InputError.expected(
            "a person for every row", of="unit", got="missing values", remedy=remedy
        )
    if not rows:
        return NOBODY
    if values.dtype.kind == "O":
        number: dict[Any, int] = {}
        try:
            found = np.fromiter(
                (number.setdefault(value, len(number)) for value in values.tolist()), np.int64, rows
            )
        except TypeError:
            remedy = "Pass names or numbers."
            raise InputError.expected(
                "one name a row", of="unit", got="others", remedy=remedy
            ) from None
        if len(set(map(_kind, number))) > 1:
            remedy = "Write it in one way everywhere: all as text, or all as numbers."
            got = "names of several kinds, so that one person may have two"
            raise InputError.expected(
                "names of one kind", of="unit", got=got, remedy=remedy, quote=False
            )
        return found
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    # By the place of the first row, not by the sorted names: a name that goes would move all that
    # follow it.
    by_place = np.empty(len(first), np.int64)
    by_place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return np.asarray(by_place[inverse.reshape(-1)], np.int64)


def _column(units: Any) -> npt.NDArray[Any]:
    if np.ma.is_masked(units):
        masked = np.ma.asarray(units)
        units = masked.data.astype(object)
        units[np.ma.getmaskarray(masked)] = None
    to_numpy = getattr(units, "to_numpy", None)
    values = np.asarray(to_numpy() if callable(to_numpy) else units)
    if values.ndim != 1:
        remedy = "Pass the name of a column of X, or one value a row."
        got = f"{values.ndim} axes" if values.ndim else type(units).__name__
        raise InputError.expected("one column", of="unit", got=got, remedy=remedy)
    return values


def _kind(name: object) -> type:
    """Names of two kinds are never equal, so the person 7 is not the person "7"."""
    return str if isinstance(name, str) else Real if isinstance(name, NUMBERS) else type(name)


def _has_missing(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind in "fcmM":
        return bool((values != values).any())
    if values.dtype.kind in "US":
        return bool((values == values.dtype.type()).any())
    if values.dtype.kind != "O":
        return False
    return any(
        value is None or str(value) in ("", "<NA>") or bool(value != value)
        for value in values.tolist()
    )


def kept(persons: Ints, most: int, coins: Stream) -> Ints:
    """The places of the rows that are read, person by person: at most so many of each, by coins."""
    # A coin a row, whatever it holds. Ties of 64 bits are decided by place, once in 2^64
    # (docs/theory/units.md, the cap).
    keys = coins.words(len(persons))
    order = np.lexsort((keys, persons))
    sorted_persons = persons[order]
    new = (
        np.r_[True, sorted_persons[1:] != sorted_persons[:-1]] if len(order) else np.empty(0, bool)
    )
    starts = np.flatnonzero(new)
    # Which of her coins a row has: the smallest come first.
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    chosen = order[rank < most]
    return np.asarray(chosen[np.lexsort((chosen, persons[chosen]))], np.int64)


def by_person(
    blocks: Sequence[npt.NDArray[Any] | None], told: bool
) -> list[npt.NDArray[Any]] | None:
    """What blocks say of persons where their rows stand person by person, checked; else None.
    `told`: by others."""
    found = [block for block in blocks if block is not None]
    kinds = {None if block is None else block.dtype for block in blocks}
    if len(kinds) > 1:
        remedy = "Code all blocks alike."
        raise InputError.expected("blocks of one kind", of="unit", got="several", remedy=remedy)
    if PERSON_BY_PERSON not in kinds:
        return None
    if told:
        remedy = (
            "Leave them out, and name the column: unit='patient'; rows stand in another order than "
            "in the table."
        )
        raise InputError.expected(
            "whose each row is from the rows", of="unit", got="other values", remedy=remedy
        )
    if not all(block["begins"][0] for block in found if len(block)):
        remedy = "Write the store anew with data.encode(table, schema, out)."
        raise InputError.expected(
            "whole persons in each block", of="rows", got="parts of one", remedy=remedy
        )
    return found


def kept_in_blocks(blocks: Sequence[npt.NDArray[Any]], most: int, coins: Stream) -> list[Mask]:
    """`kept` of rows that stand person by person (`PERSON_BY_PERSON`, block by block): which rows
    of each block are read. The coins are those of the rows' places in the table, so the same rows
    are read however they lie."""
    rows = sum(map(len, blocks))
    keys, largest = (
        coins.words(rows),
        max((int(block["place"].max()) for block in blocks if len(block)), default=-1),
    )
    # The coins belong to places in the table, so that a store read in any order keeps the same
    # rows.
    if largest >= rows:  # of some of a table's rows: in their order
        places = np.concatenate([block["place"] for block in blocks])
        order = np.argsort(places, kind="stable")
        _require_one_table(bool((np.diff(places[order]) > 0).all()))
        of_place = np.empty_like(keys)
        of_place[order] = keys
        cuts = np.cumsum([0, *map(len, blocks)])
        found = [of_place[a:b] for a, b in itertools.pairwise(cuts)]
    else:
        there = np.zeros(rows, np.bool_)
        for block in blocks:
            there[block["place"]] = True
        _require_one_table(bool(there.all()))
        found = [keys[block["place"]] for block in blocks]
    out = []
    for block, mine in zip(blocks, found, strict=True):
        starts = np.flatnonzero(block["begins"])
        counts = np.diff(np.r_[starts, len(block)])
        order = np.lexsort((mine, np.repeat(np.arange(len(starts)), counts)))
        inside = np.zeros(len(block), np.bool_)
        inside[order[np.arange(len(block)) - np.repeat(starts, counts) < most]] = True
        out.append(inside)
    return out


def _require_one_table(is_one: bool) -> None:
    """A place stands for one row: blocks of two tables, where a person may have rows in both, share
    places, and coins."""
    if not is_one:
        remedy = "Encode all rows at once: data.encode(table, schema, out)."
        raise PrivacyError.expected(
            "rows of one table, put person by person",
            of="rows",
            got="places that are there twice",
            remedy=remedy,
            quote=False,
        )


def begins_in(blocks: Sequence[npt.NDArray[Any]], inside: Sequence[Mask]) -> Ints:
    """Where each person's rows begin, and the end, of the rows inside of all blocks together."""
    counts = []
    for block, mask in zip(blocks, inside, strict=True):
        starts = np.flatnonzero(block["begins"])
        counts.append(np.add.reduceat(mask.astype(np.int64), starts) if len(starts) else NOBODY)
    return np.cumsum(np.r_[0, *counts], dtype=np.int64)


def begins_of_all(blocks: Sequence[npt.NDArray[Any]]) -> Ints:
    """The same of all rows."""
    return begins_in(blocks, [np.ones(len(block), np.bool_) for block in blocks])


def only(block: Block, persons: npt.NDArray[Any], inside: Mask) -> Block:
    """The rows inside of a block that stands person by person, which knows whose each is; without a
    copy where all are."""
    number = np.cumsum(persons["begins"], dtype=np.int64)
    if not inside.all():
        block, number = block.take(np.flatnonzero(inside)), number[inside]
    return replace(block, chosen=None, persons=number)


def in_one_group(block: Block) -> Block:
    """The same rows, each with the sensitive values that most rows of its person have, column by
    column; of equals the value that is listed first. Rows stand person by person, and whole persons
    are there."""
    if not block.rows or not len(block.sensitive):
        return block
    starts = starts_of(block.persons)
    number = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    sensitive = np.empty_like(block.sensitive)
    for line, values in enumerate(block.layout.sensitive):
        at = number * len(values) + block.sensitive[line].astype(np.int64)
        counts = np.bincount(at, minlength=(len(starts) - 1) * len(values)).reshape(-1, len(values))
        sensitive[line] = counts.argmax(axis=1)[number]
    return replace(block, sensitive=sensitive, _cells={})


def whole(persons: Ints, at: int) -> int:
    """The first row from `at` on that begins a person, where each person's rows stand together."""
    if at == 0 or at >= len(persons):
        return min(at, len(persons))
    last, reach = persons[at - 1], 64
    while not len(others := np.flatnonzero(persons[at : at + reach] != last)):
        if at + reach >= len(persons):
            return len(persons)
        reach *= 2
    return at + int(others[0])


def starts_of(persons: Ints) -> Ints:
    """Where each person's rows begin, and the end, for rows that stand person by person."""
    new = np.flatnonzero(np.r_[True, persons[1:] != persons[:-1]]) if len(persons) else NOBODY
    return np.asarray(np.r_[new, len(persons)], np.int64)


def rows_of(starts: Ints, chosen: npt.NDArray[np.integer]) -> Ints:
    """The places of all rows of some persons, in their order."""
    first, count = starts[chosen], starts[np.asarray(chosen) + 1] - starts[chosen]
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
    return np.asarray(np.repeat(first, count) + within, np.int64)


def gathered(blocks: Sequence[Block], index: Ints, persons: Ints) -> Block:
    """The rows at these places of all blocks together, as one block that knows whose each is."""
    whole = blocks[0] if len(blocks) == 1 else _joined(blocks)
    block = whole.take(index)
    return replace(block, number=0, chosen=None, persons=persons[index])


def _joined(blocks: Sequence[Block]) -> Block:
    first, rows = blocks[0], sum(block.rows for block in blocks)
    numbers, indptr, indices = _numbers(blocks)
    return Block(
        first.layout,
        rows,
        numbers,
        indptr,
        indices,
        np.concatenate([block.codes for block in blocks], axis=1),
        np.concatenate([block.labels for block in blocks]),
        np.concatenate([block.sensitive for block in blocks], axis=1),
        np.concatenate([block.weights for block in blocks]),
    )


def _numbers(
    blocks: Sequence[Block],
) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer], npt.NDArray[np.integer]]:
    if not any(block.is_sparse for block in blocks):
        return np.concatenate([block.numbers for block in blocks], axis=1), EMPTY_INT, EMPTY_INT
    import scipy.sparse

    def csr(block: Block) -> Any:
        if not block.is_sparse:
            return scipy.sparse.csr_array(block.numbers.T)
        shape = (block.rows, block.layout.numbers)
        return scipy.sparse.csr_array((block.numbers[0], block.indices, block.indptr), shape=shape)

    whole: Any = scipy.sparse.vstack([csr(block) for block in blocks], format="csr")
    return whole.data[np.newaxis, :], whole.indptr, whole.indices


def of_person(scale: Scale, rows: int) -> Scale:
    """The scale of a person with at most so many rows, of one of a row (theory.md#units)."""
    return scale if rows == 1 else replace(scale, bound=bound_of_person(scale.bound, rows))


def runs(starts: Ints) -> Iterator[tuple[int, int]]:
    """Each person's rows, from and to."""
    yield from zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
