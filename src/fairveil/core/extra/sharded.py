"""Rows that lie in shards: other processes, other machines. A curator asks them for exact totals and
maxima; no row comes.

Public values go to shards (questions, grids, the places of a batch), integers come out, and
`ShardedRows` adds them; noise, prices and logs stay with the curator that asks, which does not know
how many shards there are. Integers add without rounding, so the cut changes no bit of an answer.

Guarantees (tests/curator/test_curator_shards.py):
1. Answers are those of the same rows in one process, to the bit, however the rows are cut and
   whatever becomes of workers.
2. What would need rows in this process is refused before anything is charged.
3. A worker's answer that is not what was asked (counts, shapes, types) ends the run.
4. No row, and nothing that a shard has to say of one, comes back: integers and maxima alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from .. import persons
from ..errors import InputError, PrivacyError, need
from ..layout import (
    PERSON_BY_PERSON,
    Array,
    Floats,
    Ints,
    Mask,
    RowBlock,
    RowLayout,
    RowSource,
)
from ..questions import Question, Scale
from ..rows import Block, Maps, Part, Rows, require_few

Change = Callable[[RowBlock], RowBlock]


@dataclass(frozen=True)
class Taking:
    """How a shard takes its rows: what is done to each block, the shape that they have then, the
    largest weight."""

    layout: RowLayout
    changes: tuple[Change, ...] = ()
    max_sample_weight: float = 1.0


@dataclass(frozen=True)
class ShardFacts:
    """What a shard says when it has taken its rows: the curator's to know. `persons`: of rows that
    stand person by person."""

    rows: int
    labelled: bool
    weighted: bool
    sparse: bool
    largest_weight: float
    persons: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Request:
    """What is asked of a shard's rows: integers or maxima, by public `args`.

    `what`: "total" of questions, of the rows at `places` (ascending from 0 within the shard; None:
    all); and where features are public "largest" contribution and move of one row, the "longest"
    row, "extremes" of features by group, the largest "number". `maps`: units of numbers. `reading`:
    the number under which some rows of persons are read; None: all.
    """

    what: str
    args: tuple[Any, ...] = ()
    maps: Maps = ()
    reading: int | None = None
    places: Ints | None = None


class Chosen(Iterator[Block]):
    """Rows of shards that are asked: their places, ascending; None: all. They cannot be looked at
    here."""

    def __init__(self, places: Array | None = None) -> None:
        self.places = places

    def __next__(self) -> Block:
        refuse("what needs each row in this process")


class ShardedRows(Rows):
    """The rows of shards, as a curator holds them.

    `shards`: has the `counts` of their rows, in their order; `tell(what, values)` tells each how it
    takes its rows ("take") or which of them it reads ("read"), and `answers(requests)` gives one
    answer a shard, None where nothing was asked.
    """

    is_sharded = True

    def __init__(self, shards: Any, taking: Taking, source: RowSource) -> None:
        self.shards, self.layout, self._source = shards, taking.layout, source
        self.max_sample_weight, self._parts = taking.max_sample_weight, {}
        facts: list[ShardFacts] = shards.tell("take", [taking] * len(shards.counts))
        for number, (fact, count) in enumerate(zip(facts, shards.counts, strict=True)):
            told = fact.rows if fact.persons is None else len(fact.persons)
            if not fact.rows == count == told:
                _refuse_answer(number, f"what its {count} rows are")
        self._starts = [0, *np.cumsum([fact.rows for fact in facts], dtype=np.int64).tolist()]
        require_few(self._starts[-1])
        filled = [fact for fact in facts if fact.rows]
        alike = len({(fact.labelled, fact.weighted) for fact in filled}) <= 1
        fix = "Code all parts alike: with labels in all of them or in none."
        need(alike, "shards of one kind", of="rows", got="several", fix=fix)
        self.sparse = any(fact.sparse for fact in facts)
        self.weighted = any(fact.weighted for fact in filled)
        self.labelled = all(fact.labelled for fact in filled)
        self.largest_weight = max((fact.largest_weight for fact in facts), default=0.0)
        whose = persons.by_person([fact.persons for fact in filled], told=False)
        if whose is not None:  # one a shard: those without rows, too
            nobody = np.empty(0, PERSON_BY_PERSON)
            whose = [nobody if fact.persons is None else fact.persons for fact in facts]
        self._by_person = whose
        self._reading: int | None = None
        self._readings = itertools.count()

    def blocks(self) -> Iterator[Block]:
        """All rows, to be asked about."""
        return Chosen()

    def drawn(self, index: Array) -> Iterator[Block]:
        """The rows at the sorted places `index`, to be asked about."""
        return Chosen(index)

    def part(self, part: Part) -> Iterator[Block]:
        """The rows of a fixed part, to be asked about."""
        return Chosen(self._places_in(part))

    def reading(self, inside: list[Mask], *, adds_by_person: bool, one_group: bool = False) -> Rows:
        """Some rows of each shard, where rows stand person by person: told to shards as bits, eight
        to a byte."""
        other = super().reading(inside, adds_by_person=adds_by_person, one_group=one_group)
        assert isinstance(other, ShardedRows)
        other._reading = next(self._readings)
        ways = (adds_by_person, one_group)
        self.shards.tell("read", [(other._reading, np.packbits(one), *ways) for one in inside])
        return other

    def totals(
        self,
        measurements: Sequence[tuple[Question, Sequence[Scale]]],
        shapes: Sequence[Any],
        chosen: object,
    ) -> list[Ints]:
        """The integers of all shards, added."""
        assert isinstance(chosen, Chosen)
        asked = Request("total", (list(measurements),), self._maps, self._reading)
        requests = self._everywhere(asked)
        if chosen.places is not None:
            # places are ascending over all shards, so each shard's are one run
            cuts = np.searchsorted(chosen.places, self._starts)
            runs = zip(itertools.pairwise(cuts), self._starts, strict=False)
            inside = [np.asarray(chosen.places[a:b] - start, np.int64) for (a, b), start in runs]
            requests = [replace(asked, places=one) if len(one) else None for one in inside]
        out = [np.zeros(shape, np.int64) for shape in shapes]
        for number, found in enumerate(self.shards.answers(requests)):
            if requests[number] is None:  # none of its rows was drawn
                continue
            right = isinstance(found, list | tuple) and len(found) == len(out)
            # a number, or an array of another shape, would be added to every count
            right = right and all(
                isinstance(part, np.ndarray) and part.dtype == np.int64 and part.shape == one.shape
                for part, one in zip(found, out, strict=True)
            )
            if not right:
                _refuse_answer(number, "whole numbers of the shape that was asked")
            for whole, part in zip(out, found, strict=True):
                whole += part
        return out

    def largest(self, question: Question, order: int, exact: bool) -> tuple[Floats, Floats]:
        """Where features are public: for each model the largest contribution, and move by sensitive
        values, of one row."""
        found = [np.zeros((2, question.models)), *self._each("largest", question, order, exact)]
        norms, spreads = np.max(np.asarray(found), axis=0)
        return norms, spreads

    @property
    def longest(self) -> float:
        """Where features are public: the largest weight x |row|."""
        return float(max(self._each("longest"), default=0.0))

    def extremes(self, column: int) -> tuple[Ints, Floats, Floats]:
        """Where features are public: of each group how many rows, and the least and the largest
        value of each feature (features, groups)."""
        counts, low, high = zip(*self._each("extremes", column), strict=True)
        return np.sum(counts, axis=0), np.min(low, axis=0), np.max(high, axis=0)

    @property
    def largest_number(self) -> float:
        """The largest |number|, for the data holder's own check."""
        return float(max(self._each("number"), default=0.0))

    def refuse(self, got: str) -> NoReturn:
        """Of what cannot be asked of shards."""
        refuse(got)

    def _each(self, what: str, *args: Any) -> list[Any]:
        """The answers of all shards that have rows."""
        plain = what in ("extremes", "number")  # of the numbers as they came
        maps, reading = ((), None) if plain else (self._maps, self._reading)
        requests = self._everywhere(Request(what, args, maps, reading))
        return [one for one in self.shards.answers(requests) if one is not None]

    def _everywhere(self, asked: Request) -> list[Request | None]:
        return [asked if b > a else None for a, b in itertools.pairwise(self._starts)]


def _refuse_answer(shard: int, expected: str) -> NoReturn:
    """Of a worker that answers, and not what was asked: nothing of its answer is shown."""
    remedy = "Look at the versions and the files where the worker runs."
    got, of = "something else", f"shard {shard}"
    raise PrivacyError.expected(expected, of=of, got=got, remedy=remedy, quote=False)


def refuse(got: str) -> NoReturn:
    """Of what cannot be asked of shards."""
    remedy = "Hold the rows in memory, or in a coded store on this machine: data.write_store."
    expected = "questions that shards answer with sums"
    raise InputError.expected(expected, of="rows", got=got, remedy=remedy, quote=False)
