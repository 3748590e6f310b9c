"""The strongest attack on a run of curators: the log likelihood ratio of all their answers, between
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
   Curators whose questions are bound to their own rows (models made elsewhere, user code) are not
   scored: what they released is handed on as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._types import Floats
from ..core import pricing
from ..core.books import Scalings
from ..core.curator import Curator
from ..core.passes import needs_rows, public_scales, totals
from ..core.pricing import Measurement, Measurements, as_measurements
from ..core.promise import Promise
from ..core.questions import Question, Scale
from ..core.rows import FULL, Batch, Part, Poisson, Rows
from ..core.sums import GradientSum, GramMatrices, parted_question
from ..curator import AttachedHistogram, CodeHistogram, RowFunction
from ..errors import InputError
from .betting import Residual

BOUND = (AttachedHistogram, CodeHistogram, RowFunction)
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
    scalings: Scalings = ()


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
            curator: Curator, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
        ) -> list[Floats]:
            wanted = as_measurements(measurements)
            answers = answer(curator, wanted, batch, purpose=purpose)
            copies = tuple(np.array(values) for values in answers)
            self.heard.append(Heard(tuple(wanted), batch, copies, curator.scalings))
            return answers

        return kept


@dataclass(frozen=True, eq=False)
class _Sides:
    """Both data sets, and what they have in common, in the units of a release."""

    rows: Rows
    neighbour: Rows
    common: Rows | None

    def rescaled(self, scale: Floats, shift: Floats) -> _Sides:
        """As the curator's rows were; what is one data set stays one."""
        moved: dict[int, Rows] = {}
        for side in (self.rows, self.neighbour, self.common):
            if side is not None and id(side) not in moved:
                moved[id(side)] = side.rescaled(scale, shift)
        common = None if self.common is None else moved[id(self.common)]
        return _Sides(moved[id(self.rows)], moved[id(self.neighbour)], common)


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
        total: Floats = np.zeros(1)
        for release in _releases(tape):
            total = total + self._ratio(release)
        return float(total[0]) if len(total) == 1 else total

    def distance(self, tape: Tape | Iterable[Heard]) -> float:
        """How far apart the two data sets were in what was heard: the root of the sum of |a(D') -
        a(D)|^2 / s^2, as if on full batches. For Gaussian noise on those it is the mu of this pair
        in this run, of which a claim is the most."""
        found = 0.0
        for release in _releases(tape):
            for _, _, (here, there), size in self._each(release):
                found += float(np.sum(_in_deviations(there - here, size) ** 2))
        return math.sqrt(found)

    def residual(self, tape: Tape | Iterable[Heard], *, there: bool) -> Residual:
        """Of a run on one of both tables: the noise of all Gaussian numbers that were released
        about all rows, and how far the other table's noiseless numbers are, in deviations of the
        stated noise."""
        noise, towards = [np.zeros(0)], [np.zeros(0)]
        for release in _releases(tape):
            whole = _rate(release.batch) == 1.0 and not isinstance(release.batch, Part)
            for measurement, answer, sides, size in self._each(release):
                if not whole or measurement.noise != "gaussian":
                    continue
                own, other = sides[::-1] if there else sides
                size = np.broadcast_to(size, own.shape)
                both = [
                    _in_deviations(off, size)
                    for off in (np.asarray(answer).reshape(own.shape) - own, other - own)
                ]
                if measurement.question.innermost.kind is GramMatrices:
                    # noise beside the diagonal has half of the variance, and is there twice
                    both, size = [_once(values) for values in both], _once(size)
                heard = size > ROUNDED * np.abs(own).max(initial=0.0)
                noise.append(both[0][heard])
                towards.append(both[1][heard])
        return Residual(np.concatenate(noise), np.concatenate(towards))

    def _each(
        self, release: Heard
    ) -> Iterator[tuple[Measurement, Floats, tuple[Floats, Floats], Floats]]:
        """What costs something: the measurement, its answer, both noiseless answers, and the scale
        of its noise."""
        held = self._held(release.scalings)
        for measurement, answer in zip(release.measurements, release.answers, strict=True):
            question = measurement.question
            if pricing.is_free(question, self.promise):
                continue
            here, there = (self._noiseless(question, rows) for rows in (held.rows, held.neighbour))
            size = self._noise(measurement, held.rows, release.batch, here.shape[1:])
            yield measurement, np.asarray(answer), (here, there), size

    def _ratio(self, release: Heard) -> Floats:
        """log of [(1 - q) p(x; shared) + q p(x; shared + there)] / [(1 - q) p(x; shared) + q p(x;
        shared + here)], a number a model; `shared` is q x the common rows' answer. A full batch is
        q = 1."""
        q, held = _rate(release.batch), self._held(release.scalings)
        if q < 1 and (held.common is None or self.promise.protects != "records"):
            remedy = (
                "Pass common=, the rows that both data sets hold; visible batches are not attacked "
                "here."
            )
            raise InputError.expected(
                "a full batch, or known common rows", of="Witness", got=f"rate {q:g}", remedy=remedy
            )
        absent, here, there = np.zeros(1), np.zeros(1), np.zeros(1)
        for measurement, answer, sides, size in self._each(release):
            question = measurement.question
            values = answer.reshape(question.models, *question.shape(held.rows.layout))
            shared = sides[0]
            if q < 1:
                assert held.common is not None
                shared = self._noiseless(question, held.common)
                absent = absent + _log_density(measurement, values - q * shared, size)
            off = values - q * shared
            here = here + _log_density(measurement, off - (sides[0] - shared), size)
            there = there + _log_density(measurement, off - (sides[1] - shared), size)
        if q == 1:
            return there - here
        mixed = (np.logaddexp(math.log1p(-q) + absent, math.log(q) + one) for one in (there, here))
        return np.asarray(np.subtract(*mixed))

    def _held(self, scalings: Scalings) -> _Sides:
        """Both data sets in the units that the curator's rows had then: the same maps, one after
        another, to the bit."""
        key = tuple(values.tobytes() for pair in scalings for values in pair)
        if key not in self._sides:
            self._sides[key] = self._held(scalings[:-1]).rescaled(*scalings[-1])
        return self._sides[key]

    def _noiseless(self, question: Question, rows: Rows) -> Floats:
        """The noiseless answer (models, *shape), kept for the score, the distance and the residuals
        of one run, which all need it."""
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
        """The exact sum over these rows, contributions clipped as the curator clips them."""
        if self.promise.protects != "sensitive_features" or question.kind is not GradientSum:
            return _sum(question, self._scales(Measurement(question, 1.0), rows), rows)
        costs = np.zeros(())
        if question.clip is not None:  # the clip bounds the part that reads groups alone
            question, part = parted_question(question)
            costs = _sum(part, public_scales(part, rows), rows)
        elif "sensitive" not in question.reads and not _differs_by_cell(question):
            question = question.but(cells=None, cell_costs=None, clip=question.loss_clip)
        split = question.loss != "none" and "sensitive" in question.reads
        # as a curator asks it of rows that are public, of the attacker's own two data sets
        for one in parted_question(question) if split else (question,):
            costs = costs + _sum(one, public_scales(one, rows, exact=True), rows)
        return costs

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
        question, order = measurement.question, measurement.order
        if self.promise.protects == "sensitive_features" and needs_rows(question, rows.layout):
            # what no group moves is exact: the rest alone gets noise
            if question.kind is GradientSum:
                question = parted_question(question)[1]
            found = public_scales(question, rows, order)
            return [pricing.of_persons(scale, rows.most_of_one) for scale in found]
        cap = rows.max_sample_weight if rows.weighted else None
        return [pricing.constant_scale(question, rows.layout, self.promise, cap, order)]


class Overheard:
    """A listener to whole fits: the rows of each curator that was made, and what it released."""

    def __init__(self) -> None:
        self.rows: list[Rows] = []
        self.heard: list[list[Heard]] = []

    def opened(self, rows: Rows) -> None:
        """A curator was made."""
        self.rows.append(rows)
        self.heard.append([])

    def answered(
        self,
        measurements: Sequence[Measurement],
        batch: Batch,
        answers: Sequence[Floats],
        scalings: Scalings,
    ) -> None:
        """It answered."""
        copies = tuple(np.array(values) for values in answers)
        self.heard[-1].append(Heard(tuple(measurements), batch, copies, scalings))

    @property
    def batches(self) -> set[type]:
        """Of which kinds the batches were."""
        return {type(one.batch) for book in self.heard for one in book}

    @property
    def questions(self) -> set[str]:
        """What was asked, by name: of sums told apart or weighed by group what is added there."""
        asked = (one for book in self.heard for release in book for one in release.measurements)
        return {measurement.question.innermost.name for measurement in asked}


class Reader:
    """Scores runs on either table of a pair: made of one run on each, and of one on the rows that
    both hold."""

    def __init__(
        self, here: Overheard, there: Overheard, common: Overheard | None, promise: Promise
    ) -> None:
        self.witnesses: list[Witness | None] = []
        for at, (one, other) in enumerate(zip(here.rows, there.rows, strict=True)):
            shared = None if common is None else common.rows[at]
            known = _can_be_scored([*here.heard[at], *there.heard[at]], promise, shared is not None)
            replaced = shared if promise.neighbours == "replace-one" else None
            self.witnesses.append(Witness(one, other, promise, common=replaced) if known else None)

    @property
    def is_exact(self) -> bool:
        """Whether all that is released is scored by its likelihood ratio."""
        return all(one is not None for one in self.witnesses)

    def _scored(self, run: Overheard) -> Iterator[tuple[Witness, list[Heard]]]:
        pairs = zip(self.witnesses, run.heard, strict=True)
        return ((one, book) for one, book in pairs if one is not None)

    def distance(self, run: Overheard) -> float:
        """Of the scored curators; 0 where none is."""
        return math.hypot(*(one.distance(book) for one, book in self._scored(run)))

    def residual(self, run: Overheard, *, there: bool) -> Residual:
        """The noise of a run, as far as it is known, and how far the other table is."""
        found = [one.residual(book, there=there) for one, book in self._scored(run)]
        noise, towards = [one.noise for one in found], [one.towards for one in found]
        none = np.zeros(0)
        return Residual(np.concatenate([none, *noise]), np.concatenate([none, *towards]))

    def released(self, run: Overheard) -> Floats:
        """The log likelihood ratio of what is scored, then what is not."""
        ratio, rest = 0.0, [np.zeros(0)]
        for one, book in zip(self.witnesses, run.heard, strict=True):
            if one is not None:
                ratio += float(one.score(book))
            else:
                rest += [values.ravel() for heard in book for values in heard.answers]
        return np.concatenate([[ratio], *rest])


def _can_be_scored(heard: list[Heard], promise: Promise, common: bool) -> bool:
    asked = [measurement.question for one in heard for measurement in one.measurements]
    if any(question.innermost.kind in BOUND or question.models != 1 for question in asked):
        return False
    secret = any(_rate(one.batch) < 1 for one in heard)
    known = promise.protects == "records" and (promise.neighbours != "replace-one" or common)
    return (known or not secret) and not any(isinstance(one.batch, Part) for one in heard)


def _differs_by_cell(question: Question) -> bool:
    return question.cell_costs is not None or question.cell_weights is not None


def _releases(tape: Tape | Iterable[Heard]) -> Iterable[Heard]:
    return tape.heard if isinstance(tape, Tape) else tape


def _rate(batch: Batch) -> float:
    return batch.rate if isinstance(batch, Poisson) else 1.0


def _in_deviations(off: Floats, size: Floats) -> Floats:
    """0 where there is no noise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 0, off / size, 0.0)


def _once(matrices: Floats) -> Floats:
    """Of symmetric matrices: what is beside the diagonal, once, times the root of 2. Norms stay."""
    at, to = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., at, to] * np.where(at == to, 1.0, math.sqrt(2.0)))


def _sum(question: Question, scales: list[Scale], rows: Rows) -> Floats:
    """(models, *shape): over all rows, on these grids."""
    (sums,) = totals([(question, scales)], rows, rows.blocks())
    units = np.array([scale.unit for scale in scales])
    return np.asarray(sums * units.reshape(-1, *(1,) * (sums.ndim - 1)))


def _log_density(measurement: Measurement, off: Floats, size: Floats) -> Floats:
    """The log density of noise `off`, up to a constant, summed over coordinates. Where no noise is
    added, `off` must vanish."""
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(size > 0, np.abs(off) / size, np.where(np.abs(off) > 1e-9, 1e150, 0.0))
    terms = -steps if measurement.noise == "discrete-laplace" else -0.5 * steps**2
    return np.asarray(terms.reshape(len(off), -1).sum(axis=1))
