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
4. Blocks that stand person by person are of one table: two tables share places, and are refused.
   So are names of several kinds, where one person may have two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from .errors import InputError, PrivacyError, need
from .layout import PERSON_BY_PERSON, Array, Ints, Mask
from .noise import Stream

NOBODY: Ints = np.empty(0, np.int64)
NUMBERS = (Real, Decimal, np.bool_)


def persons_of(units: object, rows: int) -> Ints:
    """A number for each row: that of its person, from 0, by first appearance."""
    values = _column(units)
    fix = "Pass one value a row, in the order of the rows."
    need(len(values) == rows, f"{rows} values, one a row", of="unit", got=len(values), fix=fix)
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
        got = "names of several kinds, so that one person may have two"
        fix = "Write it in one way everywhere: all as text, or all as numbers."
        one_kind = len(set(map(_kind, number))) <= 1
        need(one_kind, "names of one kind", of="unit", got=got, fix=fix, quote=False)
        return found
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    # By the place of the first row, not by the sorted names: a name that goes would move all that
    # follow it.
    by_place = np.empty(len(first), np.int64)
    by_place[np.argsort(first, kind="stable")] = np.arange(len(first))
    return np.asarray(by_place[inverse.reshape(-1)], np.int64)


def _column(units: Any) -> Array:
    if np.ma.is_masked(units):
        masked = np.ma.asarray(units)
        units = masked.data.astype(object)
        units[np.ma.getmaskarray(masked)] = None
    to_numpy = getattr(units, "to_numpy", None)
    values = np.asarray(to_numpy() if callable(to_numpy) else units)
    got = f"{values.ndim} axes" if values.ndim else type(units).__name__
    fix = "Pass the name of a column of X, or one value a row."
    need(values.ndim == 1, "one column", of="unit", got=got, fix=fix)
    return values


def _kind(name: object) -> type:
    """Names of two kinds are never equal, so the person 7 is not the person "7"."""
    return str if isinstance(name, str) else Real if isinstance(name, NUMBERS) else type(name)


def _has_missing(values: Array) -> bool:
    if values.dtype.kind == "O":
        return any(
            value is None or str(value) in ("", "<NA>") or bool(value != value)
            for value in values.tolist()
        )
    if values.dtype.kind in "US":
        return bool((values == values.dtype.type()).any())
    return values.dtype.kind in "fcmM" and bool((values != values).any())


def kept(persons: Ints, most: int, coins: Stream) -> Ints:
    """The places of the rows that are read, person by person: at most so many of each, by coins."""
    # A coin a row, whatever it holds. Ties of 64 bits are decided by place, once in 2^64
    # (docs/theory/units.md, the cap).
    chosen = _smallest(persons, coins.words(len(persons)), most)
    return np.asarray(chosen[np.lexsort((chosen, persons[chosen]))], np.int64)


def _smallest(persons: Ints, keys: Array, most: int) -> Ints:
    """The places of each person's rows with the smallest keys."""
    order = np.lexsort((keys, persons))
    starts = starts_of(persons[order])
    rank = np.arange(len(order)) - np.repeat(starts[:-1], np.diff(starts))
    return np.asarray(order[rank < most], np.int64)


def by_person(blocks: Sequence[Array | None], told: bool) -> list[Array] | None:
    """What blocks say of persons where their rows stand person by person, checked; else None.
    `told`: by others."""
    found = [block for block in blocks if block is not None]
    kinds = {None if block is None else block.dtype for block in blocks}
    fix = "Code all blocks alike."
    need(len(kinds) <= 1, "blocks of one kind", of="unit", got="several", fix=fix)
    if PERSON_BY_PERSON not in kinds:
        return None
    fix = "Leave them out, and name the column: unit='patient'; the rows' order is not the table's."
    need(not told, "whose each row is from the rows", of="unit", got="other values", fix=fix)
    begun = all(block["begins"][0] for block in found if len(block))
    fix = "Write the store anew with data.encode(table, schema, out)."
    need(begun, "whole persons in each block", of="rows", got="parts of one", fix=fix)
    return found


def kept_in_blocks(blocks: Sequence[Array], most: int, coins: Stream) -> list[Mask]:
    """`kept` of rows that stand person by person (`PERSON_BY_PERSON`, block by block): which rows
    of each block are read. The coins are those of the rows' places in the table, so the same rows
    are read however they lie."""
    places = np.concatenate([NOBODY, *(block["place"] for block in blocks)])
    keys = coins.words(len(places))
    # The coins belong to places in the table, so that a store read in any order keeps the same
    # rows; of some of a table's rows they are in the order of places.
    order = np.argsort(places, kind="stable")
    # A place stands for one row: blocks of two tables, where a person may have rows in both, share
    # places, and coins.
    fix, got = (
        "Encode all rows at once: data.encode(table, schema, out).",
        "places that are there twice",
    )
    one, of = bool((np.diff(places[order]) > 0).all()), "rows"
    expected = "rows of one table, put person by person"
    need(one, expected, of=of, got=got, fix=fix, error=PrivacyError, quote=False)
    coin_of = np.empty_like(keys)
    coin_of[order] = keys
    out, first = [], 0
    for block in blocks:
        inside = np.zeros(len(block), np.bool_)
        mine, person = coin_of[first : first + len(block)], np.cumsum(block["begins"])
        inside[_smallest(person, mine, most)] = True
        out.append(inside)
        first += len(block)
    return out


def begins_in(blocks: Sequence[Array], inside: Sequence[Mask] | None = None) -> Ints:
    """Where each person's rows begin, and the end, of the rows inside of all blocks together."""
    masks = itertools.repeat(None) if inside is None else inside
    counts = []
    for block, mask in zip(blocks, masks, strict=False):
        starts = np.flatnonzero(block["begins"])
        rows = np.ones(len(block), np.int64) if mask is None else mask.astype(np.int64)
        counts.append(np.add.reduceat(rows, starts) if len(starts) else NOBODY)
    return np.cumsum(np.r_[0, *counts], dtype=np.int64)


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


def rows_of(starts: Ints, chosen: Array) -> Ints:
    """The places of all rows of some persons, in their order."""
    first, count = starts[chosen], starts[np.asarray(chosen) + 1] - starts[chosen]
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
    return np.asarray(np.repeat(first, count) + within, np.int64)
