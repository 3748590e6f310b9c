"""Private descent: one loop for every search that asks the curator one joint question a round.

A search is a handful of pure functions of *released* answers: what is asked first, a state made of
the answers, what is asked in a round, the next state, whether to stop, what is asked last, and the
result. The loop below is the only place where a search and a curator meet, so a search cannot reach
a row, and what it does is post-processing of what was released.

Guarantees (tests/learning/test_learning_descent.py):
1. A run's log is the search's plan, event for event; one round is one joint release.
2. The result depends on the rows through the curator's answers alone.
3. A run that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. Begun again with a curator whose journal keeps answers, a run that was killed is told them again,
   and goes on from there: a state is made of answers alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from .._types import Floats
from ..core.events import Event
from ..core.rows import Batch as Batch
from ..curator import FULL, Curator, Measurement

Answers = Sequence[Floats]
Progress = Callable[[int, int], None]
"""Called with (rounds done, rounds at most) after each round; it sees nothing else."""
BEFORE, ROUND, AFTER = "before the first round", "a round", "after the last round"
BESIDE = "a model to compare with"
"""Why a search asks: the purposes in the log."""

S = TypeVar("S")
R = TypeVar("R")


class Reason(Enum):
    """Why a search stopped."""

    ROUNDS = "all rounds of the plan were done"
    CONVERGED = "the model no longer moved and every constraint held"
    LIMIT = "it was still moving after the largest number of rounds"
    BEST = "no decision is better than the mixture of those that were found"
    CHOSEN = "one decision was chosen from the list"
    HIDDEN = "noise hides what is constrained: the rounds went on without constraints"


class Search(ABC, Generic[S, R]):
    """How a model is looked for: `init`, `step`, `stop`, `finish`, and what is asked for them.
    Abstract.

    `plan`: the events of the whole run, priced before any data are read (None without privacy).
    `rounds`: at most so many.
    """

    plan: Event | None
    rounds: int
    batch: Batch = FULL

    @abstractmethod
    def first(self) -> list[Measurement]:
        """What is asked once, before the first round; may be nothing."""

    @abstractmethod
    def init(self, answers: Answers) -> S:
        """The state before the first round."""

    def scaling(self, state: S) -> tuple[Floats, Floats] | None:
        """Scale and shift for the rows' numbers, made of what was released first; None leaves them
        as they are."""
        return None

    def batch_for(self, state: S) -> Batch:
        """The rows that the next round asks: `batch`, unless what is asked is free and better known
        of all rows."""
        return self.batch

    @abstractmethod
    def measurements(self, state: S) -> list[Measurement]:
        """The joint question of a round."""

    @abstractmethod
    def step(self, state: S, answers: Answers) -> S:
        """The state after a round."""

    @abstractmethod
    def stop(self, state: S) -> Reason | None:
        """Why the search is over, or None while it goes on."""

    @abstractmethod
    def last(self, state: S) -> list[Measurement]:
        """What is asked once, after the last round; may be nothing."""

    @abstractmethod
    def finish(self, state: S, reason: Reason, answers: Answers) -> R:
        """The result."""

    def sequel(self, state: S, result: R) -> Search[Any, R] | None:
        """A search that follows on this one's result, with the same curator and inside the same
        plan; mostly none."""
        return None


def descend(curator: Curator, search: Search[S, R], progress: Progress | None = None) -> R:
    """Run a search to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case."""
    with curator:
        state, result = _searched(curator, search, (BEFORE, ROUND, AFTER), progress)
        following = search.sequel(state, result)
        if following is not None:
            result = follow(curator, following)[1]
        curator.finish()
    return result


def follow(curator: Curator, search: Search[S, R], purpose: str = BESIDE) -> tuple[S, R]:
    """Run a search inside the plan of another: it is short, and leaves the curator open. Its last
    state, and the result."""
    return _searched(curator, search, (purpose,) * 3)


def _searched(
    curator: Curator,
    search: Search[S, R],
    purposes: tuple[str, str, str],
    progress: Progress | None = None,
) -> tuple[S, R]:
    before, during, after = purposes
    first = search.first()
    state = search.init(curator.answer(first, purpose=before) if first else [])
    if (scaling := search.scaling(state)) is not None:
        curator.rescale(*scaling)
    done = 0
    while (reason := search.stop(state)) is None:
        measurements, batch = search.measurements(state), search.batch_for(state)
        state = search.step(state, curator.answer(measurements, batch, purpose=during))
        done += 1
        if progress is not None:
            progress(done, search.rounds)
    last = search.last(state)
    answers = curator.answer(last, purpose=after) if last else []
    return state, search.finish(state, reason, answers)


def run_to_the_end(
    curator: Curator,
    search: Any,
    finish: Callable[[Any, Reason], R],
    progress: Progress | None = None,
    *,
    watch: Callable[[Any], None] | None = None,
) -> R:
    """Run a search to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case. `finish`: what is found in the last state."""
    with curator:
        state = search.init(curator)
        while (reason := search.stop(state)) is None:
            state = search.step(curator, state)
            if watch is not None:
                watch(state)
            if progress is not None:
                progress(state.round, search.rounds)
        found = finish(state, reason)
        curator.finish()
    return found
