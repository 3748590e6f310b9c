"""Private descent: one loop for every search that asks the curator one joint question a round.

A search is a handful of pure functions of *released* answers: what is asked first, a state made of
the answers, what is asked in a round, the next state, whether to stop, what is asked last, and the
result. The loop below is the only place where a search and a curator meet, so a search cannot reach
a row, and what it does is post-processing of what was released.

Guarantees (tests/learning/test_learning_descent.py):
1. A run's log is the search's plan, event for event; one round is one joint release.
2. The result depends on the rows through the curator's answers alone.
3. A run that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. With a checkpoint a run that was killed goes on from its last state; rounds released after that
   are charged, lost, and not done again (tests/learning/test_learning_checkpoint.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Generic, TypeVar

from .._types import Floats
from ..core.events import Event, NoOp
from ..curator import FULL, Curator, Measurement
from ..curator.rows.sampling import Batch as Batch
from ..errors import InputError, PrivacyError
from .checkpoint import AFTER, BEFORE, BESIDE, ROUND, Checkpoint, Value, check_values

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

    def identity(self) -> str:
        """Which search this is, for a state on disk: a run continues with the search that began it,
        and no other."""
        return type(self).__qualname__

    def freeze(self, state: S) -> Mapping[str, Value]:
        """All that `thaw` needs of a state, as arrays of numbers, numbers and words by name: for a
        checkpoint on disk.

        A state is made of released answers and public values, so this may be kept. A pure function:
        it changes no state.
        """
        raise _no_way_back(self)

    def thaw(self, values: Mapping[str, Value], round: int) -> S:
        """The state to resume: the inverse of `freeze`, moved on to `round`.

        `round` is how many rounds are done, counted as `progress` counts them: the number at which
        `values` were frozen, or more where rounds were released and lost. Those are charged and not
        asked again, so the state must ask next what the plan has next: counters, schedules and
        batches follow `round`; what the lost answers would have moved stays where it was. What
        `scaling` gives must be the same as before. `values["frozen_at"]` is the round at which they
        were frozen.
        """
        raise _no_way_back(self)


def descend(
    curator: Curator,
    search: Search[S, R],
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> R:
    """Run a search to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case.

    `checkpoint`: where its state is kept every so often, and gone on from (the curator needs
    `earlier=checkpoint.journal`).
    """
    with curator:
        state, done = _begin(curator, search, checkpoint)
        # whether the rounds that cost something have begun: what comes before is free, and not in
        # the log
        charged = False
        while (reason := search.stop(state)) is None:
            measurements, batch = search.measurements(state), search.batch_for(state)
            if (
                checkpoint is not None
                and not charged
                and not isinstance(curator.describe(measurements, batch), NoOp)
            ):
                # lost rounds are counted from here: the state must be one of charged rounds
                charged = True
                _save(curator, search, checkpoint, state, done)
            state = search.step(state, curator.answer(measurements, batch, purpose=ROUND))
            done += 1
            if checkpoint is not None and done % checkpoint.every == 0:
                _save(curator, search, checkpoint, state, done)
            if progress is not None:
                progress(done, search.rounds)
        last = search.last(state)
        if checkpoint is not None:
            _save(curator, search, checkpoint, state, done)
        result = search.finish(state, reason, curator.answer(last, purpose=AFTER) if last else [])
        following = search.sequel(state, result)
        if following is not None:
            result = follow(curator, following)[1]
        curator.finish()
        if checkpoint is not None:
            checkpoint.finish()
    return result


def follow(curator: Curator, search: Search[S, R], purpose: str = BESIDE) -> tuple[S, R]:
    """Run a search inside the plan of another: it is short, kept nowhere, and leaves the curator
    open. Its last state, and the result."""
    first = search.first()
    state = search.init(curator.answer(first, purpose=purpose) if first else [])
    if (scaling := search.scaling(state)) is not None:
        curator.rescale(*scaling)
    while (reason := search.stop(state)) is None:
        state = search.step(
            state,
            curator.answer(search.measurements(state), search.batch_for(state), purpose=purpose),
        )
    last = search.last(state)
    return state, search.finish(
        state, reason, curator.answer(last, purpose=purpose) if last else []
    )


def _begin(curator: Curator, search: Search[S, R], checkpoint: Checkpoint | None) -> tuple[S, int]:
    """The state before the next round, and how many rounds are done."""
    found = None
    if checkpoint is not None:
        _check_way_back(curator, search, checkpoint)
        found = checkpoint.resume(
            search.identity(), curator.log.entries, private=curator.promise.is_private
        )
    if found is not None:
        values, done = found
        state = search.thaw(values, done)
    else:
        first, done = search.first(), 0
        state = search.init(curator.answer(first, purpose=BEFORE) if first else [])
        if checkpoint is not None:
            _save(curator, search, checkpoint, state, done)
    if (scaling := search.scaling(state)) is not None:
        curator.rescale(*scaling)
    return state, done


def _save(
    curator: Curator, search: Search[S, R], checkpoint: Checkpoint, state: S, done: int
) -> None:
    checkpoint.save(search.identity(), check_values(search.freeze(state)), done, len(curator.log))


def _check_way_back(curator: Curator, search: Search[S, R], checkpoint: Checkpoint) -> None:
    """Before anything is asked: whether this search, with this curator, could go on after a
    crash."""
    if type(search).freeze is Search.freeze or type(search).thaw is Search.thaw:
        raise _no_way_back(search)
    if curator.journal is not checkpoint.journal:
        remedy = (
            "Make the curator with earlier=checkpoint.journal: else nobody would know what was "
            "released."
        )
        raise PrivacyError.expected(
            "the checkpoint's journal", of="curator", got="another or none", remedy=remedy
        )


def _no_way_back(search: object) -> InputError:
    remedy = "Leave checkpoint=None, or give the search `freeze` and `thaw`."
    expected = "a search that can be kept on disk"
    return InputError.expected(expected, of="checkpoint", got=type(search).__name__, remedy=remedy)


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
