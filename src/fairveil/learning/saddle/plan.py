"""What private descent-ascent asks, and at what price: made of public values alone, before any data
are touched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ... import _checks
from ...core.events import Composed, Event, Gaussian, Repeated, compose
from ...core.promise import Promise
from ...curator import FULL, Measurement, Part, Poisson, RowCount, RowFunction, describe
from ...errors import InputError
from ...facts import RowLayout
from ...privacy.accounting.calibration import calibrate, full_batch, split
from ..descent import Batch
from ..gaussian import budget_of
from .problem import Smoothness

ITERATES = ("last", "average", "uniform")
COUNT_SHARE = 0.02
"""Of the squared Gaussian budget, for the number of rows where it is neither public nor given."""


@dataclass(frozen=True, eq=False)
class RunPricing:
    """From the public choices of a run to its events and multipliers."""

    promise: Promise
    layout: RowLayout
    questions: tuple[RowFunction, RowFunction]
    rounds: int
    batch: Batch
    parts: int
    buys: bool
    cap: float | None

    def planned(
        self, share: float | None, weight: tuple[float, float] | None
    ) -> tuple[Event | None, tuple[Measurement, Measurement]]:
        """The events of the run and a round's asks, their noise the least that keeps the
        promise."""
        noisy = [
            self.promise.is_private and not self._free(question) for question in self.questions
        ]

        def at(z: float) -> tuple[Measurement, Measurement]:
            if not all(noisy):
                pair = tuple(z if needs else 0.0 for needs in noisy)
            elif share is None and weight is not None and weight[1] > 0:
                pair = split(z, *weight)
            else:
                given = 0.5 if share is None else share
                pair = (
                    z / math.sqrt(1.0 - given) * (1.0 + 1e-12),
                    z / math.sqrt(given) * (1.0 + 1e-12),
                )
            return Measurement(self.questions[0], pair[0]), Measurement(self.questions[1], pair[1])

        if not self.promise.is_private:
            return None, at(0.0)
        if not any(noisy):
            return self._events(at(0.0)), at(0.0)
        if not isinstance(self.batch, Poisson) and self.rounds % (self.parts or 1) == 0:
            beside = (
                [Gaussian(self.count.multiplier)]
                if self._releases_count and self.count is not None
                else []
            )
            found = at(full_batch(self.promise, self.rounds // (self.parts or 1), beside))
        else:
            found = at(calibrate(self.promise, lambda z: self._events(at(z))).multiplier)
        return self._events(found), found

    @property
    def count(self) -> Measurement | None:
        """The number of rows, released or, where it is public, read; None where it was given."""
        if not self.buys:
            return None
        if not self._releases_count:
            return Measurement(RowCount(), 0.0)
        return Measurement(RowCount(), 1.0 / (budget_of(self.promise) * math.sqrt(COUNT_SHARE)))

    @property
    def _releases_count(self) -> bool:
        return self.promise.is_private and not self.promise.rows_are_public

    def _free(self, question: RowFunction) -> bool:
        return self.promise.features_are_public and "sensitive" not in question.reads

    def _events(self, measurements: tuple[Measurement, Measurement]) -> Event:
        def event(measurements: Sequence[Measurement], batch: Batch = FULL) -> Event:
            return describe(
                measurements, self.layout, self.promise, batch, max_sample_weight=self.cap
            )

        first = [] if (count := self.count) is None else [event([count])]
        if not self.parts:
            return compose([*first, Repeated(event(measurements, self.batch), self.rounds)])
        turn = [event(measurements, Part(j, self.parts)) for j in range(self.parts)]
        turns, rest = divmod(self.rounds, self.parts)
        whole = [Repeated(Composed(tuple(turn)), turns)] if turns else []
        return compose([*first, *whole, *turn[:rest]])


def steps_of(
    step_theta: float | None, step_w: float | None, smoothness: Smoothness | None
) -> tuple[float, float]:
    if smoothness is None and (step_theta is None or step_w is None):
        remedy = (
            "Pass step_theta=0.1 and step_w=0.1, for example; or smoothness=Smoothness(...), from "
            "which the theorem's follow."
        )
        got = {"step_theta": step_theta, "step_w": step_w}
        raise InputError.expected(
            "both step sizes, or smoothness", of="SaddleDescent", got=got, remedy=remedy
        )
    if smoothness is not None:
        step_theta = smoothness.step_theta if step_theta is None else step_theta
        step_w = smoothness.step_w if step_w is None else step_w
    return _checks.positive(step_theta=step_theta), _checks.positive(step_w=step_w)


def handed_of(iterate: object, rounds: int, generator: np.random.Generator | None) -> int:
    """The number of the iterate that is returned, 0 for an average: known before anything is
    asked."""
    if isinstance(iterate, str):
        if _checks.one_of(ITERATES, iterate=iterate) == "uniform":
            return int(
                (np.random.default_rng() if generator is None else generator).integers(
                    1, rounds + 1
                )
            )
        return rounds if iterate == "last" else 0
    number = _checks.whole(
        at_least=1,
        iterate=iterate,
        remedy="Pass 'last', 'average', 'uniform', or a number from 1 on.",
    )
    if number > rounds:
        remedy = "The last iterate has the number of rounds."
        raise InputError.expected(
            f"a number of at most {rounds}", of="iterate", got=number, remedy=remedy
        )
    return number


def batch_of(
    promise: Promise, rate: float | None, parts: int | None, rows: int | None
) -> tuple[Batch, int]:
    """The batch of a round, or the first part and how many parts there are."""
    if rate is not None and parts is not None:
        remedy = "Poisson batches are drawn, parts are fixed: choose one."
        raise InputError.expected(
            "one of both", of="sampling_rate and parts", got="both", remedy=remedy
        )
    rows = None if rows is None else _checks.whole(at_least=1, public_rows=rows)
    batch: Batch = FULL if rate is None else Poisson(rate)
    parts = 0 if parts is None else _checks.whole(at_least=1, parts=parts)
    fraction = batch.rate if isinstance(batch, Poisson) else 1.0 / (parts or 1)
    if fraction * (math.inf if rows is None else rows) < 1.0:
        remedy = (
            "Such batches are empty as a rule, and teach nothing: draw more rows, or ask them all."
        )
        of = "sampling_rate" if parts == 0 else "parts"
        raise InputError.expected(
            "a batch of at least one row", of=of, got=rate or parts, remedy=remedy
        )
    if not promise.is_private:
        return FULL, 0
    if isinstance(batch, Poisson) and promise.features_are_public:
        remedy = (
            f"Who is there is public, so nothing is gained by drawing: pass "
            f"parts={max(1, round(1 / batch.rate))} instead."
        )
        raise InputError.expected("no sampling_rate", of="sampling_rate", got=rate, remedy=remedy)
    return (Part(0, parts), parts) if parts else (batch, 0)
