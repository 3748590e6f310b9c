"""Rows and whose they are: what the trusted room lets in, and that no person is in two batches."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from fairveil.core.errors import InputError, PrivacyError
from fairveil.core.layout import PERSON_BY_PERSON, RowBlock, RowLayout
from fairveil.core.noise import NoiseSource
from fairveil.core.persons import kept
from fairveil.core.rows import Part, Rows

LAYOUT = RowLayout(1, (3,), classes=(0, 1), sensitive=(("a", "b"),), sensitive_names=("g",))


class Source:
    """Blocks as they are given."""

    def __init__(self, *blocks: RowBlock) -> None:
        self.layout, self._blocks = LAYOUT, blocks

    def blocks(self) -> Any:
        return iter(self._blocks)


def block(n: int, persons: Any = None, first: float = 0.0, **other: Any) -> RowBlock:
    """Rows that are told apart by their number."""
    given: dict[str, Any] = {
        "numbers": first + np.arange(n, dtype=np.float64)[np.newaxis],
        "codes": np.zeros((1, n), np.uint8),
        "labels": np.zeros(n, np.int32),
        "sensitive": np.zeros((1, n), np.uint16),
        "persons": persons,
    }
    return RowBlock(**given | other)


def coins(seed: int) -> Any:
    return NoiseSource.seeded(seed).stream("units")


@pytest.mark.parametrize(
    "wrong",
    [
        {"codes": np.array([[0, 1, 3]], np.uint8)},
        {"codes": np.array([[0, 1, -1]], np.int32)},
        {"sensitive": np.array([[0, 1, 2]], np.uint16)},
        {"labels": np.array([0, 1, 2], np.int32)},
        {"numbers": np.array([[0.0, np.nan, 1.0]])},
        {"weights": np.array([1.0, -1.0, 1.0])},
        {"numbers": np.zeros((1, 3), object)},
        {"codes": np.zeros((1, 3))},
    ],
)
def test_a_block_that_loops_cannot_bear_is_not_let_in(wrong: dict[str, Any]) -> None:
    Rows(Source(block(3)))
    with pytest.raises(InputError):
        Rows(Source(block(3, **wrong)))


def test_at_most_so_many_rows_of_a_person_are_read_by_coins_that_hang_on_nobody() -> None:
    people = np.array([0, 1, 0, 2, 0, 1, 0, 0])
    pairs = set()
    for seed in range(200):
        chosen = kept(people, 2, coins(seed))
        assert np.bincount(people[chosen]).tolist() == [2, 2, 1]
        # names and what rows hold are no part of it: the same places under any numbering
        renamed = np.array([5, 3, 4])[people]
        assert set(kept(renamed, 2, coins(seed)).tolist()) == set(chosen.tolist())
        pairs.add(tuple(chosen[people[chosen] == 0].tolist()))
    assert len(pairs) == 10  # each pair of five


def test_parts_and_batches_hold_whole_persons() -> None:
    people = np.random.default_rng(0).integers(0, 12, 60)
    for told in (people, None):
        persons = None if told is not None else by_person(people)
        rows = Rows(Source(block(60, persons)), units=told)
        read = rows.by_person(3, coins(1), adds_by_person=False)
        parts = []
        for number in range(4):
            blocks = [getattr(one, "gathered", one) for one in read.part(Part(number, 4))]
            parts.append({int(who) for one in blocks for who in one.persons})
        assert not any(a & b for a, b in itertools.combinations(parts, 2))
        assert len(set.union(*parts)) == read.exact_units == 12
        (batch,) = read.of_units(np.array([2, 7]))
        whose = batch.persons
        ((whole,),) = [list(read.blocks())]
        assert len(whose) == np.isin(whole.persons, np.unique(whose)).sum()


def by_person(people: Any) -> Any:
    """What a store says of rows that stand person by person."""
    order = np.argsort(people, kind="stable")
    told = np.empty(len(people), PERSON_BY_PERSON)
    told["place"] = order
    told["begins"] = np.r_[True, people[order][1:] != people[order][:-1]]
    return told


def test_blocks_of_two_tables_share_places_and_are_refused() -> None:
    people = np.repeat(np.arange(4), 3)
    twice = Rows(Source(block(12, by_person(people)), block(12, by_person(people))))
    with pytest.raises(PrivacyError, match="rows of one table"):
        twice.by_person(2, coins(0), adds_by_person=False)


def test_of_rows_that_are_chosen_each_persons_first_begins_her() -> None:
    """Also where the first row that she had is left out: else hers would be another's."""
    whole = block(8, by_person(np.repeat(np.arange(4), 2)))
    for places in (np.array([0, 1, 3, 5, 6]), slice(3, 8)):
        told = whole.at(places).persons
        assert told is not None
        person = np.repeat(np.arange(4), 2)[places]
        assert told["begins"].tolist() == [True, *(person[1:] != person[:-1]).tolist()]
        assert told["place"].tolist() == np.arange(8)[places].tolist()


def test_a_batch_has_all_of_its_own_rows_and_nothing_of_others() -> None:
    rng, n = np.random.default_rng(1), 40
    own = {
        "codes": rng.integers(0, 3, (1, n)).astype(np.uint8),
        "labels": rng.integers(0, 2, n).astype(np.int32),
        "sensitive": rng.integers(0, 2, (1, n)).astype(np.uint16),
        "weights": rng.random(n),
    }
    first, second = ({name: line[..., at] for name, line in own.items()} for at in HALVES)
    source = Source(block(17, **first), block(23, first=17.0, **second))
    for in_memory in (True, False):
        rows = Rows(source, in_memory=in_memory)
        places = np.array([0, 5, 16, 17, 30, 39])
        drawn = list(rows.drawn(places))
        for name, line in {"numbers": np.arange(40.0)[np.newaxis], **own}.items():
            found = np.concatenate([getattr(one, name) for one in drawn], axis=-1)
            assert np.array_equal(found, line[..., places]), name


HALVES = (slice(0, 17), slice(17, 40))
