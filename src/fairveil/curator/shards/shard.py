"""One shard at work: its rows, and the integers that it answers with. It runs where the rows are.

Guarantees (tests/curator/test_curator_shards.py):
1. What goes wrong after rows were taken says nothing of them: not what, not where. Only that there
   was no answer.
2. A shard that is made anew has the rows of the first, or is refused: their bytes are compared.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._types import Floats, Ints
from ...core.rows import Maps, Rows
from ...errors import FairveilError
from ...facts import RowBlock, RowLayout, RowSource
from ...facts.rows import Traits, traits_of
from ..sharded import (
    Change,
    Extremes,
    Largest,
    LongestRow,
    PublicRound,
    Reading,
    Recipe,
    Request,
    ShardFacts,
    Taking,
    Total,
)
from ..totals.passes import totals
from ..totals.public_pass import PublicPass
from ..totals.public_scale import found, longest_row


@dataclass(frozen=True)
class Opened:
    """What a recipe gave: how many rows, and what says that they are the same ones another time."""

    rows: int
    fingerprint: str


@dataclass(frozen=True)
class Failed:
    """No answer. `kind` and `words` only of what was found before rows were taken, whose errors
    show no value."""

    kind: str = ""
    words: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class _Changed:
    """Rows as they are taken: each block changed in turn."""

    layout: RowLayout
    source: RowSource
    changes: tuple[Change, ...]

    @property
    def traits(self) -> Traits:
        of = traits_of(self.source)
        return Traits(is_mapped=of.is_mapped, require_same=of.require_same)

    def blocks(self) -> Iterator[RowBlock]:
        for block in self.source.blocks():
            for change in self.changes:
                block = change(block)
            yield block


class Shard:
    """The rows of one recipe. `threads`: a knob of speed only."""

    def __init__(self, recipe: Recipe, threads: int | None = None) -> None:
        self._source = recipe.open()
        self._threads = threads
        self._rows: Rows | None = None
        self._rescaled: tuple[bytes, Rows] | None = None
        self._readings: dict[int, Rows] = {}

    def opened(self) -> Opened:
        """How many rows, and their fingerprint: that of the source where it knows one, else of
        every byte."""
        rows = sum(block.rows for block in self._source.blocks())
        known = traits_of(self._source).fingerprint
        return Opened(rows, _fingerprint(self._source) if known is None else known)

    def take(self, taking: Taking) -> ShardFacts:
        """From now on rows are these."""
        changed = _Changed(taking.layout, self._source, taking.changes)
        self._rows, self._rescaled = Rows(changed, max_sample_weight=taking.max_sample_weight), None
        rows, self._readings = self._rows, {}
        told = rows.person_by_person
        facts = (rows.exact_count, rows.labelled, rows.weighted, rows.sparse, rows.largest_weight)
        return ShardFacts(*facts, None if told is None else np.concatenate(told))

    def read(self, reading: Reading) -> None:
        """Some of the rows, under a number."""
        assert self._rows is not None
        assert self._rows.person_by_person is not None
        inside = np.unpackbits(reading.inside, count=self._rows.exact_count).astype(np.bool_)
        cuts = np.cumsum([len(one) for one in self._rows.person_by_person])[:-1]
        ways = {"adds_by_person": reading.adds_by_person, "one_group": reading.one_group}
        self._readings[reading.number] = self._rows.reading(np.split(inside, cuts), **ways)

    def done(self, what: str, value: Any) -> Any:
        """What a message asks for: "take", "read" or "answer"."""
        match what:
            case "take":
                return self.take(value)
            case "read":
                return self.read(value)
            case _:
                return self.answer(value)

    def answer(self, request: Request) -> Any:
        """Integers, or maxima."""
        # A warning about a number would be a message about a row.
        with np.errstate(all="ignore"):
            match request:
                case Total():
                    rows = self._in_units(request.maps, request.reading)
                    chosen = rows.passed() if request.places is None else rows.drawn(request.places)
                    return totals(request.measurements, rows, chosen, self._threads)
                case Largest():
                    rows = self._in_units(request.maps, request.reading)
                    return found(
                        request.question,
                        rows,
                        request.order,
                        exact=request.exact,
                        threads=self._threads,
                    )
                case PublicRound():
                    rows = self._in_units(request.maps, request.reading)
                    return PublicPass(request.questions, rows).passed(
                        request.questions, request.loss, request.grids, self._threads
                    )
                case LongestRow():
                    return longest_row(self._in_units(request.maps, request.reading))
                case Extremes():
                    rows = self._in_units(())
                    return (
                        rows.largest_number
                        if request.column is None
                        else extremes(rows, request.column)
                    )

    def _in_units(self, maps: Maps, reading: int | None = None) -> Rows:
        """The rows, rescaled as the curator has done it so far: once, for all rounds after."""
        assert self._rows is not None
        rows = self._rows if reading is None else self._readings[reading]
        if not maps:
            return rows
        key = b"".join(
            [str(reading).encode(), *(array.tobytes() for pair in maps for array in pair)]
        )
        if self._rescaled is None or self._rescaled[0] != key:
            for scale, shift in maps:
                rows = rows.rescaled(scale[:, 0], shift[:, 0])
            self._rescaled = (key, rows)
        return self._rescaled[1]


def extremes(rows: Rows, column: int) -> tuple[Ints, Floats, Floats]:
    """Of each group of a sensitive column: how many rows, and the ends of each feature (numbers,
    then codes) among them."""
    groups = len(rows.layout.sensitive[column])
    features = rows.layout.numbers + len(rows.layout.code_sizes)
    counts = np.zeros(groups, np.int64)
    low = np.full((features, groups), np.inf)
    high = -low
    for block in rows.blocks():
        at = block.sensitive[column].astype(np.intp)
        counts += np.bincount(at, minlength=groups)
        order = np.argsort(at, kind="stable")
        present, starts = np.unique(at[order], return_index=True)
        if not len(starts):
            continue
        lines = np.concatenate(
            [np.asarray(block.numbers, np.float64), np.asarray(block.codes, np.float64)]
        )[:, order]
        low[:, present] = np.minimum(low[:, present], np.minimum.reduceat(lines, starts, axis=1))
        high[:, present] = np.maximum(high[:, present], np.maximum.reduceat(lines, starts, axis=1))
    return counts, low, high


def attempted(work: Callable[[], object], *, shows: bool = False) -> Any:
    """What a call gives, or `Failed`. `shows`: an error of the family may say what is wrong, for it
    shows no value."""
    try:
        return work()
    except FairveilError as error:
        # After rows were taken not even the kind of error is told: it could depend on one of them.
        return Failed(type(error).__name__, str(error)) if shows else Failed()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return Failed(type(error).__name__) if shows else Failed()


def packed(value: object) -> bytes:
    """A message between processes of one fit."""
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def unpacked(message: bytes) -> Any:
    """What `packed` packed."""
    # Only between processes that one fit started or that a cluster trusts: never from a file or an
    # analyst.
    return pickle.loads(message)


def _fingerprint(source: RowSource) -> str:
    told = hashlib.blake2b(digest_size=16)
    for block in source.blocks():
        for array in (block.numbers, block.codes, block.labels, block.sensitive, block.weights):
            if array is not None:
                told.update(f"{array.dtype}{array.shape}".encode())
                told.update(np.ascontiguousarray(array).tobytes())
    return told.hexdigest()
