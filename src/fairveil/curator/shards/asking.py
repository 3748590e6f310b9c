"""What all who ask shards share: what is kept of each, what is sent to make it anew, and what is
said when it cannot answer.

Guarantees (tests/curator/test_curator_shards.py):
1. An answer is kept by the number of its shard: one that comes twice counts once.
2. A worker that ended, or has not answered in time, is replaced, and its shards are made anew;
   after `TRIES` times the fit ends with an error that shows no value, and what was spent stays
   spent.
3. A shard whose rows are others than at first is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from ... import errors
from ..._types import Mask
from ...errors import FairveilError, InputError, PrivacyError
from ..sharded import Reading, Recipe, Request, ShardFacts, Taking
from .shard import Failed, Opened

TRIES = 4


class Workers(Protocol):
    """What moves requests to shards, and answers back."""

    def asked(self, asking: Asking, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        """Answers by shard; a shard that is missing was lost, and must be made anew by what is
        asked next: see `Asking.remade`."""
        ...

    def close(self) -> None:
        """Let workers go."""
        ...


class Asking:
    """Shards that are asked by workers.

    `patience`: seconds after which a worker that has not answered is taken for lost, and replaced.
    """

    def __init__(self, recipes: Sequence[Recipe], workers: Workers, patience: float) -> None:
        self.workers = workers
        if not recipes:
            raise InputError.expected(
                "at least one shard", of="source", got="none", remedy="Pass rows."
            )
        self.recipes, self.patience = tuple(recipes), patience
        self._taking: Taking | None = None
        # All that was told after opening, in order: a shard that is made anew is told it again.
        self._readings: list[list[Reading]] = []
        self._opened: tuple[Opened, ...] = ()
        found = self._all([("open", None)] * len(self.recipes))
        self._opened = tuple(found)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many rows each shard has."""
        return tuple(one.rows for one in self._opened)

    def take(self, taking: Taking) -> list[ShardFacts]:
        """Let every shard take its rows so."""
        self._taking = taking
        return self._all([("take", taking)] * len(self.recipes))

    def answers(self, requests: Sequence[Request | None]) -> list[Any]:
        """One answer a shard."""
        return self._all([None if request is None else ("answer", request) for request in requests])

    def read(self, inside: Sequence[Mask], *, adds_by_person: bool, one_group: bool) -> int:
        """Let every shard read some of its rows, of persons; the number under which requests ask
        for them."""
        number = len(self._readings)
        self._readings.append(
            [Reading(number, np.packbits(one), adds_by_person, one_group) for one in inside]
        )
        self._all([("read", one) for one in self._readings[-1]])
        return number

    def close(self) -> None:
        """Let workers go."""
        self.workers.close()

    def _all(self, wanted: Sequence[tuple[str, Any] | None]) -> list[Any]:
        answers: dict[int, Any] = {}
        for _ in range(TRIES):
            missing = {
                number: one
                for number, one in enumerate(wanted)
                if one is not None and number not in answers
            }
            if not missing:
                break
            for number, answer in self.workers.asked(self, missing).items():
                if isinstance(answer, Failed):
                    self.refuse(number, answer)
                # Guarantee 1: a lost worker's answer may come late, beside that of its successor.
                answers.setdefault(number, answer)
        lacking = [
            number for number, one in enumerate(wanted) if one is not None and number not in answers
        ]
        if lacking:
            remedy = (
                "Give workers more memory, or cut the rows into more shards; resume with "
                "checkpoint=."
            )
            got = f"none after {TRIES} workers: they ended, or took longer than {self.patience:g} s"
            of = f"shard {lacking[0]}"
            raise PrivacyError.expected("an answer", of=of, got=got, remedy=remedy, quote=False)
        return [answers.get(number) for number in range(len(wanted))]

    def remade(self, number: int) -> list[tuple[str, Any]]:
        """What a shard must be told before it can answer, when it is made anew."""
        taking = [] if self._taking is None else [("take", self._taking)]
        return [
            ("open", None),
            *taking,
            *(("read", readings[number]) for readings in self._readings),
        ]

    def require_same(self, number: int, opened: object) -> None:
        if isinstance(opened, Failed):
            self.refuse(number, opened)
        # Sums over other rows would be priced as those of the first, so a changed file ends the
        # fit.
        if self._opened and opened != self._opened[number]:
            remedy = "Keep files as they are while a fit runs, and the same on all machines."
            raise PrivacyError.expected(
                "the rows of the first time", of=f"shard {number}", got=_Others(), remedy=remedy
            )

    def refuse(self, number: int, failed: Failed) -> NoReturn:
        family = getattr(errors, failed.kind, None)
        if failed.words and isinstance(family, type) and issubclass(family, FairveilError):
            raise family(f"shard {number}: {failed.words}") from None
        remedy = (
            "Look at files and versions where the worker runs; what it said itself might show a "
            "row."
        )
        got = failed.kind or "a failure"
        raise PrivacyError.expected(
            "an answer", of=f"shard {number}", got=got, remedy=remedy, quote=False
        ) from None


class _Others:
    def __repr__(self) -> str:
        return "others"
