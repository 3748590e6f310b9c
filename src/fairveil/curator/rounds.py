"""What a joint answer needs before rows are read, worked out once for all rounds of a run whose
asks have the same keys.

Guarantees (tests/curator/test_curator_steps.py, test_curator_books.py):
1. An answer from what was prepared is, to the bit, the answer of a curator that is asked for the
   first time.
2. Noise of every model comes from a stream of its own, named by the release and the question.
3. What depended on weights of a round before is forgotten: a run does not grow with its rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import is_

import numpy as np

from .._types import Floats, Ints
from ..core.events import OnPart
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..core.rows import Batch, Block, Drawn, Part, Rows, Unmapped
from . import noising, pricing
from .books import Books
from .bounds import Bounds
from .measurements import Measurement
from .prepared import Known, Prepared, Sizes, is_many, units_of, words_of
from .question import Question, Scale
from .questions.attached import RowFunction
from .questions.by_cell import CellwiseQuestion, Weighed, inner_of
from .questions.gradients import GradientSum
from .questions.histograms import PredictionHistogram
from .questions.networks import NetworkGradient, NetworkHistogram
from .questions.of_models import GroupLosses
from .questions.of_rows import FeatureSums, GramMatrices, NumberMoments
from .quiet import Troubles
from .refusals import require_shape
from .totals.passes import Passes

# what to total for a measurement: its place, itself, its grids, its noise
Job = tuple[int, Measurement, list[Scale], Sizes]
PLAIN = (GradientSum, PredictionHistogram)  # no network, and none inside
_NOTHING: Floats = np.zeros(0)


class Rounds:
    """Joint answers about these rows: events, grids and noise of each, and the passes that total
    them."""

    def __init__(
        self,
        rows: Rows,
        promise: Promise,
        sources: tuple[NoiseSource, ...],
        books: Books,
        bounds: Bounds,
        troubles: Troubles,
        threads: int | None,
    ) -> None:
        self._rows, self._promise, self._sources = rows, promise, sources
        self._books, self._bounds, self._troubles, self._threads = books, bounds, troubles, threads
        self.ready: dict[tuple[object, ...], Prepared] = {}
        self._before: tuple[tuple[object, ...], Prepared] | None = (
            None  # the key that was asked for last
        )
        self._latest: dict[tuple[object, ...], tuple[object, ...]] = {}

    def rescaled(self, rows: Rows) -> None:
        """The numbers of the rows have other units from now on."""
        self._rows = rows
        self._before = None
        self.ready.clear()
        self._latest.clear()

    def heard(self, measurement: Measurement) -> Measurement:
        """The ask itself; of a network, which is user code, with its troubles kept here."""
        question = measurement.question
        if type(question) in PLAIN or not isinstance(
            inner_of(question), NetworkGradient | NetworkHistogram
        ):
            return measurement
        self._books.trust(singles=True)
        if isinstance(question, CellwiseQuestion):
            return measurement.about(
                question.again(inner=question.inner.again(_troubles=self._troubles))
            )
        return measurement.about(question.again(_troubles=self._troubles))

    def prepared(self, measurements: list[Measurement], batch: Batch) -> Prepared:
        """Event, bounds and noise of a joint answer, its asks checked. The steps of a run differ in
        weights alone: once."""
        key = (batch, *[measurement.key for measurement in measurements])
        if (
            self._before is not None
            and len(key) == len(self._before[0])
            and all(map(is_, key, self._before[0]))
        ):
            return self._before[1]  # keys are long, and hashing them takes time
        self._before = (key, self._prepared(key, measurements, batch))
        return self._before[1]

    def _prepared(
        self, key: tuple[object, ...], measurements: list[Measurement], batch: Batch
    ) -> Prepared:
        ready = self.ready.get(key)
        if ready is None and any(
            isinstance(measurement.question, Weighed) for measurement in measurements
        ):
            self._forget(batch, measurements, key)
        # parts differ in their events alone
        if ready is None and isinstance(batch, Part) and batch.number > 0:
            ready = self.prepared(measurements, Part(0, batch.parts))
            event = ready.event
            if isinstance(event, OnPart):
                event = replace(event, part=batch.number)
            ready = self.ready[key] = replace(ready, event=event, words=words_of(batch))
        if ready is None:
            for measurement in measurements:
                require_shape(measurement, self._rows, len(self._sources))
            event = pricing.describe(
                measurements,
                self._rows.layout,
                self._promise,
                batch,
                max_sample_weight=self._bounds.cap,
            )
            known = tuple(self._known_job(measurement, batch) for measurement in measurements)
            jobs = [
                (measurement.question, job[0])
                for measurement, job in zip(measurements, known, strict=True)
                if job is not None
            ]
            passes = Passes(jobs, self._rows) if len(jobs) == len(measurements) else None
            laid, units = None, tuple[float | Floats, ...]()
            if passes is not None:
                needs = self._needs(self._all_jobs(measurements, known), passes.shapes, batch)
                laid = noising.NoisePlan.of(needs)
                units = tuple(
                    units_of(scales, len(shape))
                    for (_, scales), shape in zip(jobs, passes.shapes, strict=True)
                )
            many, names = (
                tuple(is_many(measurement.question) for measurement in measurements),
                tuple(measurement.question.name for measurement in measurements),
            )
            ready = Prepared(
                event,
                known,
                passes,
                laid,
                units,
                many,
                names,
                words_of(batch),
            )
            self.ready[key] = ready
        return ready

    def jobs(self, measurements: Sequence[Measurement], ready: Prepared) -> list[Job]:
        """What is to be totalled, where grids or noise were not found in advance: to be called
        before anything is charged."""
        if ready.noise is not None:
            return []
        return self._all_jobs(measurements, ready.known)

    def answers(
        self,
        measurements: Sequence[Measurement],
        ready: Prepared,
        jobs: list[Job],
        batch: Batch,
        chosen: Iterator[Block | Drawn | Unmapped],
        number: int,
    ) -> list[Floats]:
        """The noisy answer to each ask, models first, of the rows that were chosen for release
        `number`."""
        if ready.noise is None or ready.passes is None:
            return self._found(jobs, len(measurements), ready.passes, batch, chosen, number)
        begun = ready.noise.begin(self._sources, number)
        sums = ready.passes.run(
            [measurement.question for measurement in measurements], chosen, self._threads
        )
        ready.noise.add(sums, begun)
        return [np.asarray(total * unit) for total, unit in zip(sums, ready.units, strict=True)]

    def _forget(
        self, batch: Batch, measurements: list[Measurement], key: tuple[object, ...]
    ) -> None:
        """What was prepared for the round before, whose factors were others: else a run's rounds
        would all be kept."""
        forms = (
            measurement.question.form
            if isinstance(measurement.question, Weighed)
            else measurement.question.key
            for measurement in measurements
        )
        form = (batch, *forms)
        self.ready.pop(self._latest.get(form, ()), None)
        self._latest[form] = key

    def _known_job(self, measurement: Measurement, batch: Batch) -> Known | None:
        """Scales and size of noise, where they are constants; None where they depend on public rows
        or on user code."""
        if self._promise.features_are_public or isinstance(measurement.question, RowFunction):
            return None
        scales = self._bounds.scales(measurement)
        return scales, self._sizes(measurement, scales, batch)

    def _sizes(
        self, measurement: Measurement, scales: list[Scale], batch: Batch
    ) -> list[float | Floats] | None:
        """The scale of the noise for each of the measurement's scales, in grid units; None where
        no noise is needed."""
        if not self._promise.is_private or pricing.is_free(measurement.question, self._promise):
            return None
        shape = measurement.question.shape(self._rows.layout)
        sizes: list[float | Floats] = []
        for scale in scales:
            moves = pricing.unit_size(scale, self._promise, batch) > 0
            sizes.append(
                pricing.noise_scale(measurement, scale, self._promise, batch, shape)
                if moves
                else 0.0
            )
        return sizes

    def _all_jobs(
        self, measurements: Sequence[Measurement], known: Sequence[Known | None]
    ) -> list[Job]:
        jobs: list[Job] = []
        for i, (measurement, found) in enumerate(zip(measurements, known, strict=True)):
            jobs += self._jobs(i, measurement) if found is None else [(i, measurement, *found)]
        return jobs

    def _jobs(self, i: int, measurement: Measurement) -> list[Job]:
        """What is to be totalled for a measurement. With public rows a gradient's part that reads
        no group is exact."""
        question = measurement.question
        if isinstance(question, RowFunction):
            self._books.trust()
            question = question.again(_troubles=self._troubles)
            measurement = measurement.about(question)
            if not self._promise.is_private:
                return [
                    (
                        i,
                        wide := replace(measurement, question=question.unclipped(self._rows)),
                        self._bounds.scales(wide),
                        None,
                    )
                ]
        public = self._promise.protects == "sensitive_features"
        if public and isinstance(question, GradientSum):
            if "sensitive" not in question.reads:
                measurement = replace(
                    measurement,
                    question=replace(
                        question, clip=None if question.reads_cells else question.loss_clip
                    ),
                )
            elif question.loss != "none":  # the clip bounds the part that reads groups alone
                common, rest = question.parted()
                apart, exact = replace(measurement, question=rest), Measurement(common, 0.0)
                return [
                    (i, apart, self._bounds.scales(apart), None),
                    (i, exact, self._bounds.scales(exact), None),
                ]
        return [(i, measurement, self._bounds.scales(measurement), None)]

    def _found(
        self,
        jobs: list[Job],
        measurements: int,
        passes: Passes | None,
        batch: Batch,
        chosen: Iterator[Block | Drawn | Unmapped],
        number: int,
    ) -> list[Floats]:
        """The answers of jobs whose grids or noise were found for this answer alone."""
        passes = passes or Passes(
            [(measurement.question, scales) for _, measurement, scales, _ in jobs], self._rows
        )
        sums = passes.run(
            [measurement.question for _, measurement, _, _ in jobs], chosen, self._threads
        )
        return self._noised(jobs, sums, measurements, batch, number)

    def _noised(
        self, jobs: list[Job], sums: list[Ints], measurements: int, batch: Batch, number: int
    ) -> list[Floats]:
        """The answers from sums: noise, and units."""
        needs = self._needs(jobs, [total.shape for total in sums], batch)
        for need, noise in zip(needs, noising.draws(needs, self._sources, number), strict=True):
            sums[need.job][need.model] += noise
        answers: list[Floats] = [_NOTHING] * measurements
        for (i, _, scales, _), total in zip(jobs, sums, strict=True):
            values: Floats = np.multiply(total, units_of(scales, total.ndim), dtype=np.float64)
            answers[i] = values if answers[i] is _NOTHING else answers[i] + values
        return answers

    def _needs(
        self, jobs: list[Job], shapes: Sequence[tuple[int, ...]], batch: Batch
    ) -> list[noising.NoiseRequest]:
        """The noise of a joint answer: every model's from a stream of its own, named by the release
        and the question."""
        batched = len(self._sources) > 1
        out: list[noising.NoiseRequest] = []
        for j, ((i, measurement, scales, known), (models, *shape)) in enumerate(
            zip(jobs, shapes, strict=True)
        ):
            sizes = self._sizes(measurement, scales, batch) if known is None else known
            for m in range(0 if sizes is None else models):
                assert sizes is not None
                size = sizes[m] if len(sizes) > 1 else sizes[0]
                if type(size) is not float or size > 0.0:
                    path = (i,) if batched or models == 1 else (i, m)
                    out.append(
                        noising.NoiseRequest(
                            j, m, measurement, size, tuple(shape), m if batched else 0, path
                        )
                    )
        return out


def unclipped(question: Question) -> Question:
    """Without privacy nothing is clipped; a loss in [0, 1] has nothing to clip."""
    if isinstance(question, CellwiseQuestion):
        return replace(question, inner=unclipped(question.inner))
    if isinstance(question, GradientSum):
        return replace(question, clip=None, loss_clip=None)
    if isinstance(
        question, FeatureSums | GramMatrices | NumberMoments | GroupLosses | NetworkGradient
    ):
        return replace(question, clip=None)
    return question
