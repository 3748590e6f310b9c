"""Private descent: how a method and a curator meet.

A method is a generator: it yields an `Ask`, the joint question of a release, and is sent the
answers; what it returns is the result. So it cannot reach a row, and what it does is
post-processing of what was released. It knows one model; `in_step` puts the questions of several
runs into one pass. A curator without rows traces what it asks: that is its plan.

Guarantees (tests/methods/test_methods_descent.py):
1. A run's log is its plan, event for event; one `Ask` is one joint release.
2. The result depends on the rows through the curator's answers alone.
3. A run that is interrupted leaves a log that is a beginning of the plan, and the curator closed.
4. Begun again with a curator whose journal keeps answers, a run that was killed is told them again,
   and goes on from there.
5. Runs in step ask what each would ask alone, and are answered with noise of their own sources.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from .._types import Floats
from ..core.events import Composed, Event, NoOp, Repeated, compose
from ..core.promise import Promise
from ..core.rows import Batch as Batch
from ..curator import (
    FULL,
    CellCounts,
    Curator,
    GradientSum,
    Linear,
    Measurement,
    Part,
    RowCount,
    Trace,
)
from ..facts import RowLayout

Answers = Sequence[Floats]
Progress = Callable[[int, int], None]
"""Called with (rounds done, rounds at most) after each round; it sees nothing else."""
BEFORE, ROUND, AFTER = "before the first round", "a round", "after the last round"
BESIDE = "a model to compare with"
"""Why a search asks: the purposes in the log."""

R = TypeVar("R")


class Reason(Enum):
    """Why a search stopped."""

    ROUNDS = "all rounds of the plan were done"
    CONVERGED = "the model no longer moved and every constraint held"
    LIMIT = "it was still moving after the largest number of rounds"
    BEST = "no decision is better than the mixture of those that were found"
    CHOSEN = "one decision was chosen from the list"
    HIDDEN = "noise hides what is constrained: the model without constraints was kept"


@dataclass(frozen=True, eq=False, slots=True)
class Ask:
    """One joint release: what a method yields."""

    measurements: Sequence[Measurement]
    batch: Batch = FULL
    purpose: str = ROUND


@dataclass(frozen=True, eq=False, slots=True)
class Rescale:
    """Every number x of the rows is to be scale x + shift from now on; made of what was released
    before. No answer is sent."""

    scale: Floats
    shift: Floats


Method = Generator[Any, Answers, R]
"""What yields an `Ask` or a `Rescale` at a time, is sent answers, and returns its result."""


def descend(
    curator: Curator | Trace,
    method: Method[R],
    progress: Progress | None = None,
    rounds: int = 0,
) -> R:
    """Run a method to its end with a curator that was made for its plan; the curator is closed
    afterwards, in every case. `rounds`: at most so many, for `progress`."""
    with curator:
        found = follow(curator, method, progress=progress, rounds=rounds)
        curator.finish()
    return found


def follow(
    curator: Curator | Trace,
    method: Method[R],
    purpose: str | None = None,
    progress: Progress | None = None,
    rounds: int = 0,
) -> R:
    """Run a method inside the plan of another: the curator stays open. `purpose`: of all that it
    asks, in place of its own."""
    done = 0
    try:
        wanted = next(method)
        while True:
            if isinstance(wanted, Rescale):
                curator.rescale(wanted.scale, wanted.shift)
                wanted = method.send([])
                continue
            why = wanted.purpose if purpose is None else purpose
            answers = curator.answer(wanted.measurements, wanted.batch, purpose=why)
            if wanted.purpose == ROUND and progress is not None:
                done += 1
                progress(done, rounds)
            wanted = method.send(answers)
    except StopIteration as end:
        found: R = end.value
        return found


def traced(
    method: Method[Any], layout: RowLayout, promise: Promise, cap: float | None = None
) -> Trace:
    """What a method asks, without rows. `cap`: the largest weight of a row, where rows have
    weights."""
    trace = Trace(layout, promise, max_sample_weight=cap, made_up=_made_up)
    descend(trace, method)
    return trace


def plan_of(trace: Trace) -> Event | None:
    """Everything that was asked, as one event; None without privacy. Fixed parts that take turns
    are written as turns."""
    first = next((one for one in trace.asked if isinstance(one.batch, Part)), None)
    if first is None or isinstance(first.event, NoOp) or not isinstance(first.batch, Part):
        return trace.plan
    at, period = trace.asked.index(first), first.batch.parts
    turning = [one.event for one in trace.asked if isinstance(one.batch, Part)]
    turns, rest = divmod(len(turning), period)
    before = [one.event for one in trace.asked[:at]]
    after = [one.event for one in trace.asked[at + len(turning) :]]
    whole = [Repeated(Composed(tuple(turning[:period])), turns)] if turns else []
    return compose([*before, *whole, *turning[len(turning) - rest :], *after])


def in_step(methods: Sequence[Method[R]]) -> Method[list[R]]:
    """Several runs that ask alike, as one whose questions are about the models of all: each pass
    over the rows serves every model, and a curator with one source of noise a model gives each the
    noise that it would get alone."""
    joints, found = dict[int, tuple[Any, Measurement]](), list[R]()
    wanted: list[Any] = [next(method) for method in methods]
    while not found:
        first = wanted[0]
        sent: list[list[Floats]] = [[] for _ in methods]
        if isinstance(first, Rescale):
            yield first
        else:
            columns = zip(*(one.measurements for one in wanted), strict=True)
            joint = [_joint(parts, joints) for parts in columns]
            answers = yield Ask(joint, first.batch, first.purpose)
            for measurement, answer in zip(joint, answers, strict=True):
                many = measurement.is_many
                for m, own in enumerate(sent):
                    own.append(answer[m] if many else answer)
        wanted = []
        for method, own in zip(methods, sent, strict=True):
            try:
                wanted.append(method.send(own))
            except StopIteration as end:
                found.append(end.value)
    assert not wanted  # none goes on where others have ended
    return found


def _joint(parts: Sequence[Measurement], known: dict[int, tuple[Any, Measurement]]) -> Measurement:
    """One measurement of the models of all; of what no model is in, one for all. `known`: those of
    rounds before, by the key that their questions share."""
    one = parts[0]
    questions: list[Any] = [part.question for part in parts]
    first = questions[0]
    if first.kind in (CellCounts, RowCount):
        return replace(one, question=first.but(copies=len(parts)))
    if first.model is None:
        return one
    weights = np.stack([question.model.weights for question in questions])
    changed: dict[str, Any] = {}
    if first.kind is GradientSum:
        if first.cell_costs is not None:
            changed["cell_costs"] = np.stack([question.cell_costs for question in questions])
        if isinstance(first.loss_weight, np.ndarray):
            changed["loss_weight"] = np.concatenate([q.loss_weight for q in questions])
    if id(first.key) in known:
        before = known[id(first.key)][1]
        question: Any = before.question
        return before.about(question.at(model=question.model.at(weights), **changed))
    model = Linear(weights, first.model.sharpness)
    made = replace(one, question=first.but(model=model, **changed))
    known[id(first.key)] = first.key, made  # held, so that no other key takes its place
    return made


def _made_up(shape: tuple[int, ...], number: int) -> Floats:
    """Answers that differ from release to release, as gradients do."""
    return np.full(shape, 100.0 + number % 7)
