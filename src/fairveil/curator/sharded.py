"""Rows that lie in shards: other processes, other machines. The curator asks them for exact totals
and maxima; no row comes.

A shard is made from a *recipe*, which says where its rows are and never holds one. It answers
requests: public values go in (questions, grids, the places of a batch), integers come out. What
adds them up, draws noise, prices and logs stays here, and does not know how many shards there are.
Integers add without rounding, so the cut changes no bit of an answer.

Guarantees (tests/curator/test_curator_shards.py):
1. Answers are those of the same rows in one process, to the bit, however the rows are cut and
   whatever becomes of workers.
2. What would need rows in this process is refused before anything is charged.
3. A worker's answer that is not what was asked (counts, shapes, types) ends the run.
4. No row, and nothing that a shard has to say of one, comes back: integers and maxima alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from .._types import Floats, Ints, Mask
from ..core import persons
from ..core.rows import Block, Drawn, Maps, Part, Rows, Unmapped, public_order, require_few
from ..errors import InputError, PrivacyError
from ..facts import RowBlock, RowLayout, RowSource
from ..facts.rows import PERSON_BY_PERSON
from .question import Question, Scale

Change = Callable[[RowBlock], RowBlock]


class Recipe(Protocol):
    """Where the rows of a shard are: a value that may travel, of a file and a part of it."""

    def open(self) -> RowSource:
        """The rows, checked as when a table is loaded. Its errors show no value."""
        ...


@dataclass(frozen=True)
class Taking:
    """How a shard takes its rows: what is done to each block, the shape that they have then, the
    largest weight."""

    layout: RowLayout
    changes: tuple[Change, ...] = ()
    max_sample_weight: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """Which rows of a shard of persons are read from now on, under this number: bits of its rows,
    eight to a byte."""

    number: int
    inside: npt.NDArray[np.uint8]
    adds_by_person: bool
    one_group: bool = False


@dataclass(frozen=True)
class Total:
    """The integers of some questions. `places`: which rows, ascending from 0 within the shard;
    None: all of them. `reading`: the number of a `Reading`, where these are not all rows."""

    measurements: tuple[tuple[Question, tuple[Scale, ...]], ...]
    places: Ints | None = None
    maps: Maps = ()
    reading: int | None = None


@dataclass(frozen=True)
class Largest:
    """Where features are public: for each model the largest contribution, and move by sensitive
    values, of one row."""

    question: Question
    order: int
    exact: bool
    maps: Maps = ()
    reading: int | None = None


@dataclass(frozen=True)
class Extremes:
    """Where features are public: how many rows each group of a sensitive column has, and the ends
    of each feature there. `column` None: the largest |number| of all rows alone."""

    column: int | None = None


@dataclass(frozen=True)
class PublicRound:
    """Where features are public: sums of a round on grids that were guessed, and the maxima that
    tell whether these were right (`totals/public_pass.py`). One message a round, then."""

    questions: tuple[Question, ...]
    loss: Scale
    grids: tuple[int, ...]
    maps: Maps = ()
    reading: int | None = None


@dataclass(frozen=True)
class LongestRow:
    """Where features are public: the largest weight x |row|."""

    maps: Maps = ()
    reading: int | None = None


Request = Total | Largest | Extremes | PublicRound | LongestRow


@dataclass(frozen=True)
class ShardFacts:
    """What a shard says when it has taken its rows: the curator's to know."""

    rows: int
    labelled: bool
    weighted: bool
    sparse: bool
    largest_weight: float
    persons: npt.NDArray[Any] | None = None  # of rows that stand person by person


class Shards(Protocol):
    """All shards of a source, in the order of their rows. An implementation moves requests and
    answers, and nothing else."""

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each has."""
        ...

    def take(self, taking: Taking) -> list[ShardFacts]:
        """Let every shard take its rows so."""
        ...

    def answers(self, requests: Sequence[Request | None]) -> list[Any]:
        """One answer a shard; None where nothing was asked. A shard that is lost is made anew, and
        asked again."""
        ...

    def read(self, inside: Sequence[Mask], *, adds_by_person: bool, one_group: bool) -> int:
        """Let every shard read some of its rows, of persons; the number under which requests ask
        for them."""
        ...

    def close(self) -> None:
        """Let workers go."""
        ...


class Chosen(Iterator[Block | Drawn]):
    """Rows of shards that are asked: their places, ascending; None: all. They cannot be looked at
    here."""

    def __init__(self, places: npt.NDArray[np.integer] | None = None) -> None:
        self.places = places

    def __next__(self) -> Block | Drawn:
        refuse("what needs each row in this process")


class ShardedRows(Rows):
    """The rows of shards, as a curator holds them."""

    def __init__(self, shards: Shards, taking: Taking, source: RowSource) -> None:
        self.shards = shards
        self.layout, self.max_sample_weight, self._source = (
            taking.layout,
            taking.max_sample_weight,
            source,
        )
        facts = shards.take(taking)
        for number, (fact, count) in enumerate(zip(facts, shards.counts, strict=True)):
            persons_told = fact.rows if fact.persons is None else len(fact.persons)
            if not fact.rows == count == persons_told:
                _refuse_answer(number, f"what its {count} rows are")
        self._starts = [0, *np.cumsum([fact.rows for fact in facts], dtype=np.int64).tolist()]
        self.sparse = any(fact.sparse for fact in facts)
        self.largest_weight = max((fact.largest_weight for fact in facts), default=0.0)
        filled = [fact for fact in facts if fact.rows]
        self.weighted, self.labelled = (
            any(fact.weighted for fact in filled),
            all(fact.labelled for fact in filled),
        )
        if len({(fact.weighted, fact.labelled) for fact in filled}) > 1:
            remedy = "Code all parts alike: with labels in all of them or in none."
            raise InputError.expected("shards of one kind", of="rows", got="several", remedy=remedy)
        require_few(self._starts[-1])
        self._kept, self._is_mapped, self._require_same, self._maps = None, False, None, ()
        self._order, self._parts, self.largest_row = None, {}, None
        self.adds_by_person, self.one_group, self._begins, self._persons, self._given = (
            False,
            False,
            None,
            None,
            None,
        )
        self._by_person = persons.by_person(
            [fact.persons for fact in facts if fact.rows], told=False
        )
        if self._by_person is not None:  # one a shard: those without rows, too
            self._by_person = [
                np.empty(0, PERSON_BY_PERSON) if fact.persons is None else fact.persons
                for fact in facts
            ]
        self._inside: list[Mask] | None = None
        self._reading: int | None = None

    def blocks(self) -> Iterator[Block]:
        """All rows, to be asked about."""
        return Chosen()  # type: ignore[return-value]

    def passed(self) -> Iterator[Block | Unmapped]:
        """The same."""
        return self.blocks()

    def drawn(self, index: npt.NDArray[np.integer]) -> Iterator[Drawn]:
        """The rows at the sorted places `index`, to be asked about."""
        return Chosen(index)  # type: ignore[return-value]

    def of_units(self, index: npt.NDArray[np.integer]) -> Iterator[Drawn]:
        """The same, of persons with all that they have."""
        return self.drawn(index if self._begins is None else persons.rows_of(self._begins, index))

    def part(self, part: Part) -> Iterator[Block | Drawn]:
        """The rows of a fixed part, to be asked about."""
        if self._order is None:
            self._order = public_order(self.exact_units)
        index = np.sort(self._order[part.number :: part.parts])
        return Chosen(index if self._begins is None else persons.rows_of(self._begins, index))

    def reading(self, inside: list[Mask], *, adds_by_person: bool, one_group: bool = False) -> Rows:
        """Some rows of each shard, where rows stand person by person."""
        other = super().reading(inside, adds_by_person=adds_by_person, one_group=one_group)
        assert isinstance(other, ShardedRows)
        other._reading = self.shards.read(
            inside, adds_by_person=adds_by_person, one_group=one_group
        )
        return other

    def rescaled(self, scale: Floats, shift: Floats) -> Rows:
        """The same rows in other units: shards are told with each request, so one that is made anew
        knows."""
        if self.sparse:
            return super().rescaled(scale, shift)  # which refuses
        by = (
            np.array(scale, np.float64)[:, np.newaxis],
            np.array(shift, np.float64)[:, np.newaxis],
        )
        other = copy.copy(self)
        other._maps, other.largest_row = (*self._maps, by), None
        return other

    def totals(
        self,
        measurements: Sequence[tuple[Question, Sequence[Scale]]],
        shapes: Sequence[Any],
        chosen: object,
    ) -> list[Ints]:
        """The integers of all shards, added."""
        assert isinstance(chosen, Chosen)
        asked = Total(
            tuple((question, tuple(scales)) for question, scales in measurements),
            None,
            self._maps,
            self._reading,
        )
        out = [np.zeros(shape, np.int64) for shape in shapes]
        requests = self._requests(asked, chosen.places)
        for number, found in enumerate(self.shards.answers(requests)):
            # A shard that has none of the drawn rows was not asked, and adds nothing.
            if requests[number] is None:
                continue
            if not _is_totals(found, out):
                _refuse_answer(number, "whole numbers of the shape that was asked")
            for whole, part in zip(out, found, strict=True):
                whole += part
        return out

    def largest(self, question: Question, order: int, exact: bool) -> tuple[Floats, Floats]:
        """The largest of all shards: see `public_scale`."""
        found = self._maxima(Largest(question, order, exact, self._maps, self._reading))
        empty = np.zeros(question.models)
        norms, spreads = (np.max([empty, *(one[at] for one in found)], axis=0) for at in (0, 1))
        return norms, spreads

    def public_round(
        self, questions: Sequence[Question], loss: Scale, grids: Sequence[int]
    ) -> list[Any]:
        """Sums and maxima of each shard that has rows: see `PublicRound`."""
        asked = PublicRound(tuple(questions), loss, tuple(grids), self._maps, self._reading)
        return self._maxima(asked)

    @property
    def longest(self) -> float:
        """The largest weight x |row|."""
        return float(max(self._maxima(LongestRow(self._maps, self._reading)), default=0.0))

    def extremes(self, column: int) -> tuple[Ints, Floats, Floats]:
        """Of each group: how many rows, and the least and the largest value of each feature
        (features, groups)."""
        found = self._maxima(Extremes(column))
        counts = np.sum([one[0] for one in found], axis=0)
        low, high = (
            np.min([one[1] for one in found], axis=0),
            np.max([one[2] for one in found], axis=0),
        )
        return counts, low, high

    @property
    def largest_number(self) -> float:
        """The largest |number|, for the data holder's own check."""
        return float(max((one for one in self._maxima(Extremes())), default=0.0))

    def _maxima(self, request: Request) -> list[Any]:
        requests = [request if rows else None for rows in np.diff(self._starts)]
        return [one for one in self.shards.answers(requests) if one is not None]

    def _requests(
        self, asked: Total, places: npt.NDArray[np.integer] | None
    ) -> list[Request | None]:
        """What each shard is asked: nothing where it has none of the rows."""
        out: list[Request | None] = []
        # Places are ascending over all shards, so each shard's are one run.
        cuts = None if places is None else np.searchsorted(places, self._starts)
        for number, first in enumerate(self._starts[:-1]):
            if places is None or cuts is None:
                out.append(asked if self._starts[number + 1] > first else None)
                continue
            inside = places[cuts[number] : cuts[number + 1]]
            out.append(
                replace(asked, places=np.asarray(inside - first, np.int64)) if len(inside) else None
            )
        return out


def _is_totals(found: object, wanted: Sequence[Ints]) -> bool:
    """Whether a worker's answer is one array a question: a number, or an array of another shape,
    would be added to every count."""
    return (
        isinstance(found, list | tuple)
        and len(found) == len(wanted)
        and all(
            isinstance(part, np.ndarray) and part.dtype == np.int64 and part.shape == whole.shape
            for part, whole in zip(found, wanted, strict=True)
        )
    )


def _refuse_answer(shard: int, expected: str) -> NoReturn:
    """Of a worker that answers, and not what was asked: nothing of its answer is shown."""
    remedy = "Look at the versions and the files where the worker runs."
    raise PrivacyError.expected(
        expected, of=f"shard {shard}", got="something else", remedy=remedy, quote=False
    )


def refuse(got: str) -> NoReturn:
    """Of what cannot be asked of shards."""
    remedy = "Hold the rows in memory, or in a coded store on this machine: data.write_store."
    raise InputError.expected(
        "questions that shards answer with sums", of="rows", got=got, remedy=remedy, quote=False
    )
