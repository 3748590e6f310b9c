"""Private descent: one loop for every search that asks the curator one joint question a round.

A search is a handful of pure functions of *released* answers: what is asked first, a state made of the answers, what is asked
in a round, the next state, whether to stop, what is asked last, and the result. The loop below is the only place where a
search and a curator meet, so a search cannot reach a row, and what it does is post-processing of what was released.

Guarantees (tests/learning/test_learning_descent.py):
1. A run's log is the search's plan, event for event; one round is one joint release.
2. The result depends on the rows through the curator's answers alone.
3. A run that is broken off leaves a log that is a beginning of the plan, and the curator closed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..curator import FULL, Ask, Curator, Full, Poisson
from ..privacy.events import Event

Floats = npt.NDArray[np.float64]
Batch = Full | Poisson
Answers = Sequence[Floats]
Progress = Callable[[int, int], None]
"""Called with (rounds done, rounds at most) after each round; it sees nothing else."""

S = TypeVar("S")
R = TypeVar("R")


class Reason(Enum):
    """Why a search stopped."""

    ROUNDS = "all rounds of the plan were done"
    CONVERGED = "the model no longer moved and every constraint held"
    LIMIT = "it was still moving after the largest number of rounds"


class Search(ABC, Generic[S, R]):
    """How a model is looked for: `init`, `step`, `stop`, `finish`, and what is asked for them. Abstract.

    `plan`: the events of the whole run, priced before any data are touched (None without privacy). `rounds`: at most so many.
    """

    plan: Event | None
    rounds: int
    batch: Batch = FULL

    @abstractmethod
    def first(self) -> list[Ask]:
        """What is asked once, before the first round; may be nothing."""

    @abstractmethod
    def init(self, answers: Answers) -> S:
        """The state before the first round."""

    def scaling(self, state: S) -> tuple[Floats, Floats] | None:
        """Scale and shift for the rows' numbers, made of what was released first; None leaves them as they are."""
        return None

    def batch_for(self, state: S) -> Batch:
        """The rows that the next round asks: `batch`, unless what is asked is free and better known of all rows."""
        return self.batch

    @abstractmethod
    def asks(self, state: S) -> list[Ask]:
        """The joint question of a round."""

    @abstractmethod
    def step(self, state: S, answers: Answers) -> S:
        """The state after a round."""

    @abstractmethod
    def stop(self, state: S) -> Reason | None:
        """Why the search is over, or None while it goes on."""

    @abstractmethod
    def last(self, state: S) -> list[Ask]:
        """What is asked once, after the last round; may be nothing."""

    @abstractmethod
    def finish(self, state: S, reason: Reason, answers: Answers) -> R:
        """The result."""


def descend(curator: Curator, search: Search[S, R], progress: Progress | None = None) -> R:
    """Run a search to its end with a curator that was made for its plan; the curator is closed afterwards, come what may."""
    try:
        first = search.first()
        state = search.init(curator.answer(first, purpose="before the first round") if first else [])
        if (scaling := search.scaling(state)) is not None:
            curator.rescale(*scaling)
        done = 0
        while (reason := search.stop(state)) is None:
            state = search.step(state, curator.answer(search.asks(state), search.batch_for(state), purpose="a round"))
            done += 1
            if progress is not None:
                progress(done, search.rounds)
        last = search.last(state)
        result = search.finish(state, reason, curator.answer(last, purpose="after the last round") if last else [])
        curator.finish()
    finally:
        curator.close()
    return result
