"""A small search that can be killed and go on, and a program that kills itself: for
test_learning_checkpoint.py."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairveil.core.events import Composed, Repeated
from fairveil.curator import (
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    Measurement,
    Part,
    PredictionHistogram,
    Rows,
    describe,
)
from fairveil.learning import Reason, Search, descend
from fairveil.learning.checkpoint import Checkpoint
from fairveil.privacy import NoiseSource, Promise

PROMISE = Promise(3.0, 1e-6, neighbours="replace-one")
PARTS, EPOCHS = 4, 3
ROUNDS = PARTS * EPOCHS


@dataclass(frozen=True, eq=False)
class State:
    """Between two rounds."""

    weights: np.ndarray
    counts: np.ndarray
    round: int
    heard: tuple[float, ...] = ()  # the first number of every round's answer, for the test


class Small(Search[State, State]):
    """Counts, then gradients on part after part of the rows, then decisions."""

    def __init__(
        self, rows: Rows, promise: Promise = PROMISE, *, multiplier: float = 30.0, ends: bool = True
    ) -> None:
        self.rows, self.multiplier, self.ends = rows, multiplier, ends
        self.rounds = ROUNDS
        events = [
            describe(self.measurements(self.start), rows.layout, promise, Part(p, PARTS))
            for p in range(PARTS)
        ]
        outer = [
            describe(measurements, rows.layout, promise)
            for measurements in (self.first(), self.last(self.start))
            if measurements
        ]
        self.plan = Composed((outer[0], Repeated(Composed(tuple(events)), EPOCHS), *outer[1:]))

    @property
    def start(self) -> State:
        return State(np.zeros(3), np.zeros(2), 0)

    def first(self) -> list[Measurement]:
        return [Measurement(CellCounts(self.rows.cells()), self.multiplier)]

    def init(self, answers: Any) -> State:
        return replace(self.start, counts=answers[0])

    def batch_for(self, state: State) -> Part:
        return Part(state.round % PARTS, PARTS)

    def measurements(self, state: State) -> list[Measurement]:
        return [Measurement(GradientSum(Linear(state.weights), 1.0), self.multiplier)]

    def step(self, state: State, answers: Any) -> State:
        moved, first = state.weights - 0.01 * answers[0].ravel(), float(answers[0].ravel()[0])
        return replace(state, weights=moved, round=state.round + 1, heard=(*state.heard, first))

    def stop(self, state: State) -> Reason | None:
        return Reason.ROUNDS if state.round >= self.rounds else None

    def last(self, state: State) -> list[Measurement]:
        if not self.ends:
            return []
        return [
            Measurement(
                PredictionHistogram(Linear(state.weights), self.rows.cells(), "hard"),
                self.multiplier,
            )
        ]

    def finish(self, state: State, reason: Reason, answers: Any) -> State:
        return state

    def freeze(self, state: State) -> Mapping[str, Any]:
        return {"weights": state.weights, "counts": state.counts, "heard": np.array(state.heard)}

    def thaw(self, values: Mapping[str, Any], round: int) -> State:
        assert len(values["heard"]) <= values["frozen_at"] <= round
        return State(values["weights"], values["counts"], round, tuple(values["heard"].tolist()))


def make_rows(n: int = 60) -> Rows:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return Rows.from_arrays(
        X, (X[:, 0] > 0).astype(int), [rng.integers(0, 2, n)], classes=(0, 1), groups=[(0, 1)]
    )


def curator_for(
    search: Small, checkpoint: Checkpoint, promise: Promise = PROMISE, seed: int = 0
) -> Curator:
    return Curator(
        search.rows,
        promise,
        plan=search.plan,
        earlier=checkpoint.journal,
        noise=NoiseSource.seeded(seed),
    )


def kill_at(round: int, folder: str) -> None:
    """A fit whose process ends at this round, without a word."""

    def progress(done: int, rounds: int) -> None:
        if done == round:
            os._exit(17)

    search, checkpoint = Small(make_rows()), Checkpoint(Path(folder), every=5)
    descend(curator_for(search, checkpoint), search, progress, checkpoint)


if __name__ == "__main__":
    kill_at(int(sys.argv[1]), sys.argv[2])
