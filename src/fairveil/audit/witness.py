"""The strongest attack on a run of a curator: the log likelihood ratio of all its answers, between
two neighbouring data sets.

The attacker knows both data sets and the noise that was promised; what was asked depends on
released values alone, so she can recompute every noiseless answer on either, at the very parameters
of the run. For Gaussian noise of deviation s and noiseless answers a(D), a(D') the ratio of one
release x is <x - a(D), a(D') - a(D)> / s^2 - |a(D') - a(D)|^2 / (2 s^2), and the sum over releases
of a full-batch plan whose neighbours are as far apart as the bound allows is N(-mu^2/2, mu^2)
against N(mu^2/2, mu^2): nothing is lost (Neyman and Pearson; theory.md#t1). On a secret Poisson
batch the rows that both data sets hold count by their mean, which is exact where they contribute
nothing and otherwise an approximation that costs power.

Guarantees (tests/audit/test_audit_witness.py):
1. The score is a function of released answers, of the two data sets and of the promise: never of
   noise or batches.
2. It is exact, as said above; where it is not, it is still a score, and a bound from it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats
from ..core.promise import Promise
from ..curator import pricing
from ..curator.curator import Curator
from ..curator.measurements import Measurement, Measurements, as_measurements
from ..curator.question import Question, Scale
from ..curator.questions.by_cell import inner_of
from ..curator.questions.gradients import GradientSum
from ..curator.questions.of_rows import GramMatrices
from ..curator.rows.persons import of_person
from ..curator.rows.rows import Rows
from ..curator.rows.sampling import FULL, Batch, Poisson
from ..curator.totals import public_scale
from ..curator.totals.passes import totals
from ..errors import InputError
from .noise import Residual

# of an answer: noise below it is lost in the rounding of what is exact beside it
ROUNDED = 2.0**-40
MOST_KEPT = 2_048
"""Noiseless answers that are kept: of a few runs."""


@dataclass(frozen=True, eq=False)
class Heard:
    """One joint release: what was asked, of which rows, in which units (`Curator.scalings`), and
    the answers."""

    measurements: tuple[Measurement, ...]
    batch: Batch
    answers: tuple[Floats, ...]
    scalings: tuple[tuple[Floats, Floats], ...] = ()


@dataclass(frozen=True, eq=False)
class _Sides:
    """Both data sets, and what they have in common, in the units of a release."""

    rows: Rows
    neighbour: Rows
    common: Rows | None

    def rescaled(self, scale: Floats, shift: Floats) -> _Sides:
        """As the curator's rows were; what is one data set stays one."""
        rows, neighbour = (side.rescaled(scale, shift) for side in (self.rows, self.neighbour))
        of = {id(self.rows): rows, id(self.neighbour): neighbour}
        common = (
            None
            if self.common is None
            else of.get(id(self.common)) or self.common.rescaled(scale, shift)
        )
        return _Sides(rows, neighbour, common)


class Tape:
    """What a run released, in order: `tape.answer(curator, asks)` asks the curator and keeps what
    everybody may know.

    For code that makes its own curators, `tape.around(Curator.answer)` is a method that does the
    same, to put in its place.
    """

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    def answer(
        self,
        curator: Curator,
        measurements: Measurements,
        batch: Batch = FULL,
        *,
        purpose: str = "",
    ) -> list[Floats]:
        """`curator.answer(...)`, kept."""
        return self.around(Curator.answer)(curator, measurements, batch, purpose=purpose)

    def around(self, answer: Callable[..., list[Floats]]) -> Callable[..., list[Floats]]:
        """The unbound method `Curator.answer`, which also keeps what it answers."""

        def kept(
            curator: Curator,
            measurements: Measurements,
            batch: Batch = FULL,
            *,
            purpose: str = "",
        ) -> list[Floats]:
            wanted = as_measurements(measurements)
            answers = answer(curator, wanted, batch, purpose=purpose)
            kept_answers = tuple(np.array(values) for values in answers)
            self.heard.append(Heard(tuple(wanted), batch, kept_answers, curator.scalings))
            return answers

        return kept


class Witness:
    """Scores what a run released: large where `neighbour` was more likely to have been its rows
    than `rows`.

    `promise`: the one that the run worked under; its noise is taken at its word. `common`: the rows
    that both hold, needed for Poisson batches under replace-one; under add-remove it is the smaller
    of the two.
    """

    def __init__(
        self, rows: Rows, neighbour: Rows, promise: Promise, *, common: Rows | None = None
    ) -> None:
        self.promise = promise
        if rows.layout != neighbour.layout:
            remedy = "Give both the same classes, groups and columns."
            raise InputError.expected(
                "rows of one layout", of="neighbour", got="another", remedy=remedy
            )
        if common is None and promise.neighbours == "add-remove":
            common = min(rows, neighbour, key=lambda side: side.exact_count)
        self._sides: dict[tuple[bytes, ...], _Sides] = {(): _Sides(rows, neighbour, common)}
        # noiseless answers of the last runs
        self._known: dict[tuple[int, int], tuple[Question, Rows, Floats]] = {}

    def score(self, tape: Tape | Iterable[Heard]) -> Any:
        """The log likelihood ratio of all that was heard: a float, or one a model where questions
        were about many."""
        heard = tape.heard if isinstance(tape, Tape) else tape
        total: Floats = np.zeros(1)
        for release in heard:
            total = total + self._ratio(release)
        return float(total[0]) if len(total) == 1 else total

    def distance(self, tape: Tape | Iterable[Heard]) -> float:
        """How far apart the two data sets were in what was heard: the root of the sum of |a(D') -
        a(D)|^2 / s^2, as if on full batches. For Gaussian noise on those it is the mu of this pair
        in this run, of which a claim is the most."""
        heard = tape.heard if isinstance(tape, Tape) else tape
        return math.sqrt(sum(self._squared(release) for release in heard))

    def residual(self, tape: Tape | Iterable[Heard], *, there: bool) -> Residual:
        """Of a run on one of both tables: the noise of all Gaussian numbers that were released
        about all rows, and how far the other table's noiseless numbers are, in deviations of the
        stated noise."""
        noise, towards = [np.zeros(0)], [np.zeros(0)]
        for release in tape.heard if isinstance(tape, Tape) else tape:
            held = self._held(release.scalings)
            for measurement, answer in zip(release.measurements, release.answers, strict=True):
                if (
                    not _is_whole(release.batch)
                    or measurement.noise != "gaussian"
                    or pricing.is_free(measurement.question, self.promise)
                ):
                    continue
                own, other = (
                    self._noiseless(measurement.question, rows)
                    for rows in (held.rows, held.neighbour)[:: -1 if there else 1]
                )
                size = np.broadcast_to(
                    self._noise(measurement, held.rows, release.batch, own.shape[1:]), own.shape
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    both = [
                        np.where(size > 0, off / size, 0.0)
                        for off in (np.asarray(answer).reshape(own.shape) - own, other - own)
                    ]
                if isinstance(
                    inner_of(measurement.question), GramMatrices
                ):  # noise beside the diagonal has half of the variance, and is there twice
                    both = [_once(values) for values in both]
                    size = _once(size)
                heard = size > ROUNDED * np.abs(own).max(initial=0.0)
                noise.append(both[0][heard])
                towards.append(both[1][heard])
        return Residual(np.concatenate(noise), np.concatenate(towards))

    def _squared(self, release: Heard) -> float:
        held, found = self._held(release.scalings), 0.0
        for measurement in release.measurements:
            if pricing.is_free(measurement.question, self.promise):
                continue
            here, there = (
                self._noiseless(measurement.question, rows) for rows in (held.rows, held.neighbour)
            )
            size = self._noise(measurement, held.rows, release.batch, here.shape[1:])
            with np.errstate(divide="ignore", invalid="ignore"):
                found += float(np.sum(np.where(size > 0, (there - here) / size, 0.0) ** 2))
        return found

    def _ratio(self, release: Heard) -> Floats:
        """log of [(1 - q) p(x; shared) + q p(x; shared + there)] / [(1 - q) p(x; shared) + q p(x;
        shared + here)], a number a model; `shared` is q x the common rows' answer. A full batch is
        q = 1."""
        q = release.batch.rate if isinstance(release.batch, Poisson) else 1.0
        held = self._held(release.scalings)
        if q < 1 and (held.common is None or self.promise.protects != "records"):
            remedy = (
                "Pass common=, the rows that both data sets hold; visible batches are not attacked "
                "here."
            )
            raise InputError.expected(
                "a full batch, or known common rows", of="Witness", got=f"rate {q:g}", remedy=remedy
            )
        absent, here, there = np.zeros(1), np.zeros(1), np.zeros(1)
        for measurement, answer in zip(release.measurements, release.answers, strict=True):
            if pricing.is_free(measurement.question, self.promise):
                continue
            models = measurement.question.models
            values = np.asarray(answer).reshape(
                models, *measurement.question.shape(held.rows.layout)
            )
            sides = [
                self._noiseless(measurement.question, rows) for rows in (held.rows, held.neighbour)
            ]
            shared = self._shared(measurement.question, held, sides) if q < 1 else sides[0]
            size = self._noise(measurement, held.rows, release.batch, values.shape[1:])
            if q < 1:
                absent = absent + _log_density(measurement, values - q * shared, size)
            here = here + _log_density(measurement, values - q * shared - (sides[0] - shared), size)
            there = there + _log_density(
                measurement, values - q * shared - (sides[1] - shared), size
            )
        if q == 1:
            return there - here
        return np.asarray(_mixed(q, absent, there) - _mixed(q, absent, here))

    def _held(self, scalings: tuple[tuple[Floats, Floats], ...]) -> _Sides:
        """Both data sets in the units that the curator's rows had then: the same maps, one after
        another, to the bit."""
        key = tuple(values.tobytes() for pair in scalings for values in pair)
        if key not in self._sides:
            self._sides[key] = self._held(scalings[:-1]).rescaled(*scalings[-1])
        return self._sides[key]

    def _shared(self, question: Question, held: _Sides, sides: list[Floats]) -> Floats:
        """What the rows that both hold contribute."""
        for rows, side in zip((held.rows, held.neighbour), sides, strict=True):
            if rows is held.common:
                return side
        assert held.common is not None
        return self._noiseless(question, held.common)

    def _noiseless(self, question: Question, rows: Rows) -> Floats:
        """The noiseless answer, kept for the score, the distance and the residuals of one run,
        which all need it."""
        key = (id(question), id(rows))
        known = self._known.get(key)
        # no other object of the same address
        if known is not None and known[0] is question and known[1] is rows:
            return known[2]
        if len(self._known) >= MOST_KEPT:
            self._known.clear()
        found = self._summed(question, rows)
        self._known[key] = (question, rows, found)
        return found

    def _summed(self, question: Question, rows: Rows) -> Floats:
        """(models, *shape): the exact sum over these rows, contributions clipped as the curator
        clips them."""
        if self.promise.protects == "sensitive_features" and isinstance(question, GradientSum):
            costs = np.zeros(())
            if question.clip is not None:  # the clip bounds the part that reads groups alone
                question, part = question.parted()
                costs = _sum(part, public_scale.of(part, rows), rows)
            elif "sensitive" not in question.reads and not question.reads_cells:
                question = question.of_everybody()
            parts = (
                question.parted()
                if question.loss != "none" and "sensitive" in question.reads
                else (question,)
            )
            # as a curator asks it of rows that are public, of the attacker's own two data sets
            for one in parts:
                costs = costs + _sum(one, public_scale.of(one, rows, exact=True), rows)
            return costs
        return _sum(question, self._scales(Measurement(question, 1.0), rows), rows)

    def _noise(
        self, measurement: Measurement, rows: Rows, batch: Batch, shape: tuple[int, ...]
    ) -> Floats:
        """(models or 1, ...): the scale of the promised noise, in the units of the question."""
        sizes = [
            pricing.noise_scale(measurement, scale, self.promise, batch, shape) * scale.unit
            for scale in self._scales(measurement, rows)
        ]
        return np.stack([np.broadcast_to(size, shape) for size in sizes])

    def _scales(self, measurement: Measurement, rows: Rows) -> list[Scale]:
        question = measurement.question
        if self.promise.protects == "sensitive_features" and public_scale.needs_rows(question):
            # what no group moves is exact: the rest alone gets noise
            if isinstance(question, GradientSum):
                question = question.parted()[1]
            return [
                of_person(scale, rows.most_of_one)
                for scale in public_scale.of(question, rows, measurement.order)
            ]
        return [
            pricing.constant_scale(
                question, rows.layout, self.promise, _cap(rows), measurement.order
            )
        ]


def _is_whole(batch: Batch) -> bool:
    return batch == FULL or (isinstance(batch, Poisson) and batch.rate == 1.0)


def _once(matrices: Floats) -> Floats:
    """Of symmetric matrices: what is beside the diagonal, once, times the root of 2. Norms stay."""
    at, to = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., at, to] * np.where(at == to, 1.0, math.sqrt(2.0)))


def _sum(question: Question, scales: list[Scale], rows: Rows) -> Floats:
    """(models, *shape): over all rows, on these grids."""
    (sums,) = totals([(question, scales)], rows, rows.blocks())
    return np.asarray(
        sums * np.array([scale.unit for scale in scales]).reshape(-1, *(1,) * (sums.ndim - 1))
    )


def _cap(rows: Rows) -> float | None:
    return rows.max_sample_weight if rows.weighted else None


def _log_density(measurement: Measurement, off: Floats, size: Floats) -> Floats:
    """The log density of noise `off`, up to a constant, summed over coordinates. Where no noise is
    added, `off` must vanish."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(size > 0, np.abs(off) / size, np.where(np.abs(off) > 1e-9, 1e150, 0.0))
    terms = -steps if measurement.noise == "discrete-laplace" else -0.5 * steps**2
    return np.asarray(terms.reshape(len(off), -1).sum(axis=1))


def _mixed(q: float, absent: Floats, present: Floats) -> Floats:
    return np.asarray(np.logaddexp(math.log1p(-q) + absent, math.log(q) + present))
