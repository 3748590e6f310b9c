"""The curator: holds the rows, answers bounded questions with noise, and writes down what each
answer cost. What a run asks is its plan; a `Trace` is asked in place of a curator to find it.

Guarantees (tests/curator/test_curator_*.py):
1. Nothing that depends on a protected value leaves except through `answer` and `choose`, each with
   its event in the log.
2. One call of `answer` is one joint release on one batch, and one event.
3. Every coordinate of every answer gets noise of its own, from a stream named by the number of the
   release and the place of the question; models side by side get the noise that each gets alone.
4. An answer that the promise, or the plan, has no room for is refused before the rows are read.
5. The entry is in the log before the answer is returned; a run interrupted half way leaves a log
   of what was released.
6. With records protected the realised size of a Poisson batch is neither used nor released (else
   membership is priced as seen).
7. Under a promise about persons no more than its cap of a person's rows is read, and batches hold
   whole persons: see `persons`.
8. What is worked out once for the rounds of a run changes no bit of an answer, and no more of it is
   kept than `MOST_READY`: a run does not grow with its rounds.
9. An event of a trace is the event that a curator with such rows would log. That a search asks the
   same whatever it is answered is the search's to keep: two traces with other numbers show it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from . import checks, pricing
from .attached import (
    Attached,
    RowFunction,
    attached_codes,
    attached_model,
    given_codes,
    unclipped_function,
)
from .books import Books, Record, listener
from .choices import Chooser, Score
from .cost import Filter
from .errors import PrivacyError, need
from .events import Event, Exponential, NonPrivate, OnPart, compose
from .journal import Journal, LogEntry
from .layout import Cells, Floats, Ints, RowLayout, lines_of
from .noise import Gaussians, NoiseSource, Stream, symmetric_gaussians
from .passes import Passes, check_labels, is_network
from .pricing import Bounds, Measurement, Measurements, as_measurements
from .promise import Promise
from .public import PublicTable, public_facts, public_table
from .questions import Question, Scale, classes_of, heard
from .quiet import Troubles
from .rows import FULL, Batch, Block, Part, Poisson, Rows
from .sums import GradientSum, GramMatrices, RowCount, parted_question
from .threads import beside

WORTH_DRAWING_BESIDE = 1 << 13
"""Coordinates: below, another thread costs more than it saves."""
MOST_READY = 16
"""Joint answers that are kept laid out."""


# -- what a run asks, with rows or without ---------------------------------------------------------


class Asks:
    """What curators and traces have in common: layout, promise and cap say what an answer costs.
    Abstract."""

    promise: Promise
    layout: RowLayout
    _public_rows: int | None
    _scalings: tuple[tuple[Floats, Floats], ...] = ()

    @property
    def _cap(self) -> float | None:
        raise NotImplementedError

    def answer(
        self, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
    ) -> list[Floats]:
        """One joint noisy answer."""
        raise NotImplementedError

    def describe(self, measurements: Measurements, batch: Batch = FULL) -> Event:
        """The event that `answer` would log, for plans."""
        return pricing.describe(
            measurements, self.layout, self.promise, batch, max_sample_weight=self._cap
        )

    def describe_choice(self, question: Question | Sequence[Question], epsilon: float) -> Event:
        """The event that `choose` would log, for plans."""
        return pricing.describe_choice(question, epsilon, self.promise)

    def release_rows(self, multiplier: float) -> int:
        """One noisy count of the rows (of their weights, where they have weights), at least 1, kept
        as `public_rows`."""
        ((count,),) = self.answer([(RowCount(), multiplier)], purpose="number of rows")
        self._public_rows = max(1, round(float(count)))
        return self._public_rows

    @property
    def scalings(self) -> tuple[tuple[Floats, Floats], ...]:
        """Scale and shift of each `rescale` so far, in turn: public or released values, never the
        rows'."""
        return self._scalings

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of the rows' sensitive columns: public values only."""
        return self.layout.cells(mode, names)

    def close(self) -> None:
        """End the run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


MadeUp = Callable[[tuple[int, ...], int], Floats]
"""From the shape of an answer and the number of its release to numbers."""


@dataclass(frozen=True, eq=False)
class Asked:
    """One release of a trace: its measurements (none of a choice), its event, on which rows."""

    measurements: tuple[Measurement, ...]
    event: Event
    batch: Batch
    purpose: str


class Trace(Asks):
    """A curator without rows: it prices what it is asked, and answers made-up numbers.

    Parameters
    ----------
    layout : RowLayout
        The public shape of the rows.
    promise : Promise
        What answers would be priced under.
    max_sample_weight : float, default=None
        The cap, where rows have weights.
    public_rows : int, default=None
        The number of rows that a search is told. None: a made-up one.
    made_up : callable, default=None
        From the shape of an answer and the number of its release to numbers. None: hundreds.
    """

    def __init__(
        self,
        layout: RowLayout,
        promise: Promise,
        *,
        max_sample_weight: float | None = None,
        public_rows: int | None = None,
        made_up: MadeUp | None = None,
    ) -> None:
        self.layout, self.promise = layout, promise
        self.asked = list[Asked]()
        self._weights, self._public_rows = max_sample_weight, public_rows
        self._made_up = made_up or (lambda shape, number: np.full(shape, 100.0))
        self._priced = dict[Any, Event]()

    @property
    def _cap(self) -> float | None:
        return self._weights

    @property
    def plan(self) -> Event | None:
        """Everything that was asked so far, as one event; None without privacy."""
        return compose([one.event for one in self.asked]) if self.promise.is_private else None

    def repriced(self, multiplier: Callable[[Measurement], Any]) -> Event:
        """The same run at other multipliers: for a search of the noise that a budget allows, which
        need not be traced again."""
        found = dict[Any, Event]()

        def event(one: Asked) -> Event:
            key = (one.batch, *[part.key for part in one.measurements])
            if one.measurements and key not in found:
                again = [
                    Measurement(part.question, multiplier(part), part.noise)
                    for part in one.measurements
                ]
                found[key] = self.describe(again, one.batch)
            return found[key] if one.measurements else one.event

        return compose([event(one) for one in self.asked])

    @property
    def public_rows(self) -> int:
        """The number of rows that averages divide by."""
        return 1000 if self._public_rows is None else self._public_rows

    def answer(
        self, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
    ) -> list[Floats]:
        """Made-up numbers of the shapes that `Curator.answer` gives."""
        asked = tuple(as_measurements(measurements))
        key = (batch, *[one.key for one in asked])
        if key not in self._priced:
            self._priced[key] = self.describe(asked, batch)
        number, out = len(self.asked), list[Floats]()
        self.asked.append(Asked(asked, self._priced[key], batch, purpose))
        for one in asked:
            shape = one.question.shape(self.layout)
            shape = (one.question.models, *shape) if one.is_many else shape
            out.append(self._made_up(shape, number))
        return out

    def choose(
        self,
        question: Question | Sequence[Question],
        epsilon: float,
        *,
        purpose: str = "",
        **weighed: Any,
    ) -> int:
        """The first candidate; `weighed`: whatever `Curator.choose` weighs candidates by."""
        self.asked.append(Asked((), self.describe_choice(question, epsilon), FULL, purpose))
        return 0

    def attach(
        self, model: object, *, columns_read: Sequence[str] = ("features",), title: str = ""
    ) -> Attached:
        """A handle on a model that is never called."""
        return Attached(classes_of(self.layout, "an attached model"), columns_read, title)

    def public_table(self, cells: Cells | None = None, *, most: int = 0) -> PublicTable:
        """One row of each class, all of whose features are 0."""
        classes = len(self.layout.classes or ())
        features = np.eye(1, 1 + self.layout.width).repeat(classes, axis=0)
        return PublicTable(features, np.arange(classes), np.ones(classes), 1, None)

    def rescale(self, scale: object, shift: object) -> None:
        """Noted: the rows' numbers would have other units from now on."""
        pair = (np.asarray(scale, np.float64), np.asarray(shift, np.float64))
        self._scalings = (*self._scalings, pair)

    def finish(self) -> Event:
        """The whole run as one event."""
        return self.plan or NonPrivate()


# -- noise, and what is added up -------------------------------------------------------------------


class Job(NamedTuple):
    """What is totalled for an ask: its place among them, itself, and its grids, one for all models
    or one a model."""

    place: int
    asked: Measurement
    scales: list[Scale]


class Need(NamedTuple):
    """Noise that one model's answer to one job needs: of which scale (one, or one a coordinate) and
    shape, and from which stream."""

    job: int
    model: int
    size: float | Floats
    shape: tuple[int, ...]
    source: int
    path: tuple[int, ...]  # of the stream, after the number of the release


class LaidOut:
    """A joint answer laid out: what is totalled, on which grids, with which noise. `number` of a
    release and rows are all that its rounds differ in, but for weights.

    What is plainly Gaussian is drawn in one compiled pass, which gives what each stream gives by
    itself, to the bit; much of it beside the pass over the rows.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        rows: Rows,
        promise: Promise,
        batch: Batch,
        sources: tuple[NoiseSource, ...],
    ) -> None:
        self._jobs, self._sources = jobs, sources
        self._passes = Passes([(one.asked.question, one.scales) for one in jobs], rows)
        needs = [
            noise
            for j, (one, shape) in enumerate(zip(jobs, self._passes.shapes, strict=True))
            for noise in _needs(j, one, shape, promise, batch, len(sources) > 1)
        ]
        self._plain = [noise for noise in needs if self._is_plain(noise)]
        self._others = [noise for noise in needs if not self._is_plain(noise)]
        counts = [math.prod(noise.shape) for noise in self._plain]
        self._ends = list(accumulate(counts, initial=0))
        self._gaussians = Gaussians([float(noise.size) for noise in self._plain], counts)
        self._units = [
            one.scales[0].unit
            if len(one.scales) == 1
            else np.array([scale.unit for scale in one.scales]).reshape(-1, *(1,) * len(shape[1:]))
            for one, shape in zip(jobs, self._passes.shapes, strict=True)
        ]

    def answers(
        self,
        asked: Sequence[Measurement] | None,
        chosen: Iterator[Block],
        number: int,
        threads: int | None,
    ) -> list[Floats]:
        """The noisy answer to each ask, models first, of the rows that were chosen for release
        `number`. `asked`: this round's, with the keys of those laid out; None: these."""
        questions, begun = self._questions(asked), self._begin(number)
        sums = self._passes.run(questions, chosen, threads)
        noise = begun()
        for one, start, end in zip(self._plain, self._ends, self._ends[1:], strict=False):
            sums[one.job][one.model] += noise[start:end].reshape(one.shape)
        for one in self._others:
            drawn = _drawn(self._jobs[one.job].asked, one, self._stream(one, number))
            sums[one.job][one.model] += drawn.reshape(one.shape)
        out = dict[int, Floats]()
        for (place, *_), total, unit in zip(self._jobs, sums, self._units, strict=True):
            values = np.multiply(total, unit, dtype=np.float64)
            out[place] = out[place] + values if place in out else values
        return list(out.values())

    def check(self, asked: Sequence[Measurement] | None) -> None:
        """What is wrong with this round's numbers is an error before anything is charged."""
        self._passes.check(self._questions(asked))

    def _questions(self, asked: Sequence[Measurement] | None) -> list[Question]:
        return [one.question for one in asked or [job.asked for job in self._jobs]]

    def _is_plain(self, noise: Need) -> bool:
        one = self._jobs[noise.job].asked
        symmetric = one.question.innermost.kind is GramMatrices
        return one.noise == "gaussian" and not symmetric and type(noise.size) is float

    def _stream(self, noise: Need, number: int) -> Stream:
        return self._sources[noise.source].stream("noise", number, *noise.path)

    def _begin(self, number: int) -> Callable[[], Ints]:
        """Start to draw; the function waits for it."""
        if not self._plain:
            return lambda: np.empty(0, np.int64)
        draw = partial(self._gaussians.draw, [self._stream(one, number) for one in self._plain])
        return draw if self._ends[-1] < WORTH_DRAWING_BESIDE else beside(draw)


def _needs(
    j: int, one: Job, shape: tuple[int, ...], promise: Promise, batch: Batch, sources: bool
) -> Iterator[Need]:
    """The noise of a job: every model's from a stream of its own, named by the release and the
    question. None where no neighbour can move the answer (theory.md#public): W = 0, equal costs."""
    models, shape = shape[0], shape[1:]
    if not promise.is_private or pricing.is_free(one.asked.question, promise):
        return
    for m in range(models):
        scale = one.scales[m] if len(one.scales) > 1 else one.scales[0]
        if pricing.unit_size(scale, promise, batch) > 0:
            size = pricing.noise_scale(one.asked, scale, promise, batch, shape)
            if np.max(size) > 0.0:
                path = (one.place,) if sources or models == 1 else (one.place, m)
                yield Need(j, m, size, shape, m if sources else 0, path)


def _drawn(one: Measurement, noise: Need, stream: Stream) -> Ints:
    """Noise of the given scale, every coordinate its own draw."""
    size: Any = noise.size
    if one.noise == "discrete-laplace":
        return stream.discrete_laplace(size, math.prod(noise.shape))
    if one.question.innermost.kind is GramMatrices:
        return symmetric_gaussians(stream, size, noise.shape)
    return stream.rounded_gaussian(size.ravel())


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the keys of a joint answer decide: its event, its names and words for the log, and,
    where no bound is a maximum over public rows or hangs on code of a caller, how it is totalled."""

    event: Event
    laid_out: LaidOut | None
    names: tuple[str, ...]
    words: str


def _words_of(batch: Batch) -> str:
    """Which rows were asked, in words for the log."""
    if isinstance(batch, Part):
        return f"part {batch.number + 1} of {batch.parts}"
    return f"a Poisson batch of rate {batch.rate:g}" if isinstance(batch, Poisson) else "all rows"


def _unclipped(question: Question) -> Question:
    """Without privacy nothing is clipped; a loss in [0, 1] has nothing to clip."""
    if question.inner is not None:
        return question.but(inner=_unclipped(question.inner))
    clips = [name for name in ("clip", "loss_clip") if name in question.values]
    if not clips or question.kind is RowFunction:
        return question
    return question.but(**dict.fromkeys(clips))


class Curator(Asks):
    """The only holder of rows: it answers bounded questions about them with noise, and logs what
    each answer cost.

    `promise`: what answers may cost in total. `plan`: the events of the whole run, fixed in advance
    and priced now; answers must follow it. Without a plan answers may be chosen as you go; `cap`, a
    filter, holds them (theory.md#t10). `facts`, `bounds`: for the statement. `noise`: a source, or
    one source a model for questions about many models side by side (each model then gets the noise
    that it would get alone). `public_rows`: the number to divide by, where the true one is private.
    `threads`: a knob of speed only. `heard`: called with each log entry before its answer is
    returned. `earlier`: the `Journal` of what earlier sittings of the run released, which is
    written on, or begun where it is new. `bounds`: of what was done to the rows before, for the
    statement. `ledger`: a `Ledger` where the run is recorded, for `purpose`; None: in that of a
    `with ledger.recording():` block, if there is one. A plan is reserved there now, and settled by
    `finish()`, or by `close()`, which the end of a `with` block calls, too. `one_group`: all rows
    of a person count in the group that most of those that are read are in; noise or weights that
    differ by cell need that of persons (theory.md#units).
    """

    def __init__(
        self,
        rows: Rows,
        promise: Promise,
        *,
        plan: Event | Iterable[Event] | None = None,
        cap: Filter | None = None,
        noise: NoiseSource | Sequence[NoiseSource] | None = None,
        public_rows: int | None = None,
        facts: Iterable[Any] = (),
        bounds: Iterable[Any] = (),
        threads: int | None = None,
        heard: Callable[[LogEntry], None] | None = None,
        earlier: Journal | None = None,
        ledger: Any = None,
        purpose: str = "",
        stated_clips: Sequence[float] | None = None,
        one_group: bool = False,
    ) -> None:
        _require(rows, promise)
        self.promise, self.layout, self._sources = promise, rows.layout, _sources_of(noise)
        self._threads = None if threads is None else checks.whole(at_least=1, threads=threads)
        known = None if public_rows is None else checks.whole(at_least=1, public_rows=public_rows)
        self._public_rows, self._troubles = known, Troubles()
        self._books = books = Books(
            promise,
            plan,
            cap,
            facts=public_facts(rows, known, facts),
            bounds=tuple(bounds),
            columns=self.layout.sensitive_names,
            secure=all(source.is_secure for source in self._sources),
            ledger=ledger,
            purpose=purpose,
        )
        if promise.unit is not None and promise.is_private:
            coins, given = self._sources[0].stream("units"), rows
            by_person = pricing.adds_by_person(promise)
            rows = given.by_person(
                promise.rows_per_unit, coins, adds_by_person=by_person, one_group=one_group
            )
            # where rows are public all else counts them, and how many a person has shows nothing
            kept = rows.exact_count == given.exact_count or not promise.features_are_public
            words = f"at least {given.most_per_person}, the most rows of one person"
            fix = "Features and labels are public here, and so is whose they are: pass as many as "
            fix += "the person who has most."
            need(kept, words, of="max_rows_per_unit", got=promise.rows_per_unit, fix=fix)
        self._rows = rows
        self._bounds = Bounds(rows, promise, books.state, stated_clips, self._threads)
        self._chooser = self._new_chooser()
        self._ready = dict[tuple[object, ...], Prepared]()
        counted = promise.rows_are_public or not promise.is_private
        books.open(heard, earlier, rows.exact_count if counted else None)
        self.journal, self.log = books.journal, books.log
        if (hears := listener()) is not None:
            hears.opened(rows)

    # -- what it tells without an answer -----------------------------------------------------------

    @property
    def public_rows(self) -> int:
        """The number of rows that averages divide by: the true one where it is public, else the one
        given or released."""
        if self._public_rows is not None:
            return self._public_rows
        known = self.promise.rows_are_public or not self.promise.is_private
        words, of = "a public number of rows", "public_rows"
        fix = (
            "Under add-remove it is private: pass public_rows=, or release_rows(multiplier) first."
        )
        need(known, words, of=of, got=None, fix=fix, error=PrivacyError)
        return self._rows.exact_count

    @property
    def _cap(self) -> float | None:
        return pricing.cap_of(self._rows, self.promise)

    def describe_range(
        self, question: Question | Sequence[Question], score: Score
    ) -> tuple[float, float]:
        """Of `choose` by that score: how far one person moves scores apart, what rounding adds
        among it, and the step that scores are rounded to. Public values alone: the mechanism is
        exp(-epsilon score / range) on that grid."""
        contest = self._chooser.contest(pricing.as_questions(question), score=score)
        return math.ldexp(contest.steps, contest.exponent), math.ldexp(1.0, contest.exponent)

    # -- answers -----------------------------------------------------------------------------------

    def answer(
        self, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
    ) -> list[Floats]:
        """One joint noisy answer: an array a question, with a leading model axis where the question
        has many models.

        Questions that do not read what is protected are answered exactly, for free, whatever their
        multiplier.
        """
        asked = as_measurements(measurements)
        wanted = [self._heard(one) for one in asked]
        pricing.check_batch(batch, self.promise)
        if isinstance(batch, Part):
            self._rows.check_part(batch)
        if not self.promise.is_private:
            wanted = [replace(one, question=_unclipped(one.question)) for one in wanted]
            batch = batch if isinstance(batch, Part) else FULL
        ready = self._prepared(wanted, batch)
        if (given := self._books.again(ready.event, asked, batch, purpose)) is not None:
            return given
        # what is found for this answer alone is found before anything is charged
        laid_out = ready.laid_out or self._laid_out(self._jobs(wanted), batch)
        again = wanted if ready.laid_out else None
        laid_out.check(again)
        with self._books.admitted(ready.event, purpose) as number:
            chosen = self._chosen(batch, number)
            answers = laid_out.answers(again, chosen, number, self._threads)
            out = [a if one.is_many else a[0] for a, one in zip(answers, wanted, strict=True)]
            entry = LogEntry(number, ready.event, ready.names, ready.words, purpose)
            self._books.release(entry, out, asked, batch, purpose)
        if (hears := listener()) is not None:
            hears.answered(asked, batch, out, self._scalings)
        return out

    def choose(
        self,
        question: Question | Sequence[Question],
        epsilon: float,
        *,
        cell_weights: Sequence[float] | None = None,
        costs: object = None,
        score: Score | None = None,
        purpose: str = "",
    ) -> int:
        """The exponential mechanism over the question's models: small scores are likely
        (theory.md#ranges). Their index.

        `GroupLosses`: the score is the sum of `cell_weights` x losses. A `PredictionHistogram` or
        an `AttachedHistogram` of hard decisions, a `ScoreHistogram` whose every direction and edge
        is a candidate (number: direction x edges + edge; it decides for the second class above the
        edge), or a list of them whose candidates then follow one another: the sum of `costs`
        (cells, labels or 1, classes), what one prediction of that class costs. Or, of either, a
        `Score`: any function of a candidate's sums whose slopes are bounded. Histograms are
        totalled once for as long as you hold the questions, so many rounds of other costs or scores
        should ask the same ones. See `choices` for how far one person moves the scores.
        Exact: no sampling error.
        """
        asked = pricing.as_questions(question)
        for one in asked:
            self._require_shape(Measurement(one, 1.0))
        event = self.describe_choice(asked, epsilon)
        contest = self._chooser.contest(asked, cell_weights, costs, score)
        if score is not None and score.trusted:
            self._books.trust()
        names = tuple(dict.fromkeys(f"choice by {one.name}" for one in asked))
        weighed = (asked, cell_weights, costs, score, purpose)
        if (given := self._books.again(event, *weighed)) is not None:
            return int(given[0])
        if isinstance(event, Exponential) and contest.stated is not None:
            why = "scores of candidates move apart by no more"
            self._books.state(names[0], "range", contest.stated, why, "by definition")
        with self._books.admitted(event, purpose) as number:
            if isinstance(event, Exponential):
                index = contest.drawn(event.epsilon, self._sources[0].stream("noise", number, 0))
            else:
                index = contest.best()
            entry = LogEntry(number, event, names, "all rows", purpose)
            self._books.release(entry, [index], *weighed)
        return index

    def attach(
        self,
        model: Callable[[Block], Any],
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "a model made elsewhere",
    ) -> Attached:
        """Score the rows with a model made elsewhere, inside: a handle to ask `AttachedHistogram`
        about.

        `model(block)` returns class codes (rows,) or probabilities (rows, classes). It is user code
        and trusted as such.
        """
        self._books.trust()
        return attached_model(model, self._rows, frozenset(columns_read), title, self._troubles)

    def attach_codes(
        self,
        codes: Callable[[Block], Any] | npt.NDArray[np.integer],
        count: int,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "codes made elsewhere",
    ) -> Attached:
        """Keep a code of each row, from 0 to `count` - 1, such as the bin of a score: a handle to
        ask `CodeHistogram` about.

        `codes(block)` returns them, (rows,). It is user code and trusted as such. Where features
        and labels are public, `codes` may be an array of one code a row, made of these alone: no
        code of a caller's then runs beside the rows.
        """
        if callable(codes):
            self._books.trust()
        function = codes if callable(codes) else given_codes(codes, self._rows, self.promise)
        reads = frozenset(columns_read)
        return attached_codes(function, self._rows, count, reads, title, self._troubles)

    def public_table(self, cells: Cells | None = None, *, most: int = 1 << 25) -> PublicTable:
        """Features, labels and weights of the rows, at most `most` numbers, where they are public:
        free, and never a sensitive column. Without privacy the memberships of `cells`, too."""
        return public_table(self._rows, self.promise, cells, most)

    def rescale(self, scale: object, shift: object) -> None:
        """From now on every number x of the rows is scale x + shift, for public or released values:
        inside, and for good.

        Contributions are clipped and bounded as before, in the new units. Models found are of the
        new units too. What leaves the range of its number type is put at its end, so no row makes
        this fail; rows with sparse numbers are refused.
        """
        scale, shift = (np.array(values, np.float64) for values in (scale, shift))
        got, numbers = (scale.shape, shift.shape), self.layout.numbers
        right = got == ((numbers,), (numbers,)) and np.isfinite([scale, shift]).all()
        words = f"{numbers} finite numbers each, scales above 0"
        fix = "Make them from an answer to NumberMoments."
        need(right and (scale > 0).all(), words, of="rescale", got=got, fix=fix)
        self._rows = self._rows.rescaled(scale, shift)
        for values in (scale, shift):
            values.setflags(write=False)
        self._scalings = (*self._scalings, (scale, shift))
        self._bounds.rescaled(self._rows)
        self._chooser = self._new_chooser()
        self._ready.clear()

    # -- its end -----------------------------------------------------------------------------------

    @property
    def has_failed(self) -> bool:
        """Whether an answer was admitted and did not come: a plan goes no further then."""
        return self._books.budget.failed

    def close(self) -> None:
        """End the run: nothing more is answered. What was reserved in a ledger is settled, by what
        was admitted."""
        self._books.close()

    def trouble(self) -> tuple[str, ...]:
        """What went wrong inside user code. For the data holder, once the run has ended: it may
        depend on private rows."""
        fix = "An error may depend on one private row: call finish(), or close(), first."
        words, got, ended = (
            "a run that has ended",
            "one that goes on",
            not self._books.budget.is_open,
        )
        need(ended, words, of="trouble", got=got, fix=fix, error=PrivacyError)
        return tuple(self._troubles)

    def finish(self) -> Event:
        """End the run and give the whole log as one event; with a plan, an error unless all of it
        was done."""
        return self._books.finish()

    @property
    def record(self) -> Record:
        """What was released so far, at what price, under which promise:
        `PrivacyStatement.of_run` states it."""
        return self._books.record

    # -- inside: what an answer needs before rows are read -----------------------------------------

    def _heard(self, one: Measurement) -> Measurement:
        """The ask itself; of a network, which is user code, with its troubles kept here."""
        if not is_network(one.question):
            return one
        self._books.trust(singles=True)
        return one.about(heard(one.question, self._troubles))

    def _prepared(self, asked: list[Measurement], batch: Batch) -> Prepared:
        """Event, bounds and noise of a joint answer, its asks checked. The steps of a run differ in
        weights alone: once. The latest are kept, so a run does not grow with its rounds."""
        key = (batch, *[one.key for one in asked])
        ready = self._ready.pop(key, None) or self._newly_prepared(asked, batch)
        self._ready[key] = ready
        if len(self._ready) > MOST_READY:
            del self._ready[next(iter(self._ready))]
        return ready

    def _newly_prepared(self, asked: list[Measurement], batch: Batch) -> Prepared:
        if isinstance(batch, Part) and batch.number > 0:  # parts differ in their events alone
            ready = self._prepared(asked, Part(0, batch.parts))
            event = ready.event
            if isinstance(event, OnPart):
                event = replace(event, part=batch.number)
            return replace(ready, event=event, words=_words_of(batch))
        for one in asked:
            self._require_shape(one)
        event, laid_out = self.describe(asked, batch), None
        # constants, but where they depend on public rows or on code of the caller
        public = self.promise.features_are_public
        if not public and not any(one.question.kind is RowFunction for one in asked):
            jobs = [Job(i, one, self._bounds.scales(one)) for i, one in enumerate(asked)]
            laid_out = self._laid_out(jobs, batch)
        names = tuple(one.question.name for one in asked)
        return Prepared(event, laid_out, names, _words_of(batch))

    def _laid_out(self, jobs: Sequence[Job], batch: Batch) -> LaidOut:
        return LaidOut(jobs, self._rows, self.promise, batch, self._sources)

    def _jobs(self, asked: Sequence[Measurement]) -> list[Job]:
        """What is totalled for this answer alone. With public rows a gradient's part that reads no
        group is exact."""
        out = list[Job]()
        alone = self.promise.protects == "sensitive_features"
        for i, one in enumerate(asked):
            question, parts = one.question, [one]
            if question.kind is RowFunction:
                self._books.trust()
                question = heard(question, self._troubles)
                parts = [one.about(question)]
                if not self.promise.is_private:
                    parts = [replace(one, question=unclipped_function(question, self._rows))]
            elif alone and question.kind is GradientSum and "sensitive" not in question.reads:
                costs, weights = question.cell_costs, question.cell_weights
                clip = question.loss_clip if costs is None and weights is None else None
                parts = [replace(one, question=question.but(clip=clip))]
            elif alone and question.kind is GradientSum and question.loss != "none":
                common, rest = parted_question(
                    question
                )  # the clip bounds the part that reads groups alone
                parts = [replace(one, question=rest), Measurement(common, 0.0)]
            out += [Job(i, part, self._bounds.scales(part)) for part in parts]
        return out

    def _require_shape(self, one: Measurement) -> None:
        """The question is about these rows, with a multiplier a cell and a noise source a model,
        where it has many."""
        question, vector, sources = one.question, one.by_cell, len(self._sources)
        shape, got = question.shape(self.layout), question.models
        check_labels(question, self._rows)
        own = question.attached is None or question.attached.is_of(self._rows)
        fix = "Attach the model to this curator: its predictions are of other rows."
        need(own, "a handle of this curator", of="attached", got="another's", fix=fix)
        if question.cells is not None:
            lines_of(question.cells, self.layout)
        by_cell = vector is not None or question.inner is not None
        own, of = self._rows.groups_are_own or not by_cell, f"the question {question.name!r}"
        fix = "Make the curator with one_group=True: all rows of a person then count in one group."
        words = "persons in one group each"
        need(own, words, of=of, got="any groups", fix=fix, error=PrivacyError)
        if vector is not None:
            words, many = f"{shape[0]} multipliers, one a cell", len(vector)
            need(many == shape[0], words, of="multiplier", got=many, fix="Count the cells.")
        words = f"questions about {sources} models, as many as there are noise sources"
        fix = "Give one noise source a model, or one for all."
        need(sources == 1 or got in (1, sources), words, of="answer", got=got, fix=fix)

    def _new_chooser(self) -> Chooser:
        return Chooser(self._rows, self.promise, self._bounds, self._troubles, self._threads)

    def _chosen(self, batch: Batch, number: int) -> Iterator[Block]:
        """The rows that are asked. Many models share a Poisson batch, so it comes from the first
        source."""
        if isinstance(batch, Part):
            return self._rows.part(batch)
        if not isinstance(batch, Poisson):
            return self._rows.blocks()
        stream = self._sources[0].stream("sampling", number)
        return self._rows.of_units(stream.poisson_batch(self._rows.exact_units, batch.rate))


# -- what is refused before a row is read ----------------------------------------------------------


def _sources_of(noise: NoiseSource | Sequence[NoiseSource] | None) -> tuple[NoiseSource, ...]:
    """One source for all models, or one a model; a secure one where none is given."""
    given: Any = NoiseSource.secure() if noise is None else noise
    sources = tuple(given) if isinstance(given, list | tuple) else (given,)
    right = sources and all(isinstance(source, NoiseSource) for source in sources)
    fix = "Leave noise=None for a secure source, or pass one noise source a model."
    need(right, "a NoiseSource, or a list of them", of="noise", got=type(noise).__name__, fix=fix)
    return sources


def _require(rows: Rows, promise: Promise) -> None:
    """Rows of this process and a guarantee, which agree on what is protected, of whom, and on the
    largest weight."""
    fix = "Wrap arrays with Rows.from_arrays(X, y, [groups]), a coded table with Rows(table)."
    checks.instance(Rows, "rows", rows, fix)
    checks.instance(Promise, "promise", promise, "Pass Promise(epsilon=1.0, delta=1e-6).")
    fix = "Make it with curator_of(rows, promise): their holder's curator is asked."
    here = not rows.is_elsewhere
    need(here, "rows that are here", of="rows", got="another holder's", fix=fix)
    pricing.require_features_apart(rows.layout, promise.protects)

    def private(holds: object, expected: str, of: str, got: object, fix: str) -> None:
        need(holds, expected, of=of, got=got, fix=fix, error=PrivacyError)

    unit, known = promise.unit, rows.knows_persons
    if unit is None:
        fix = "Pass Promise(..., unit=Unit('patient', max_rows=12)), or rows without units."
        private(not known, "a guarantee for persons", "promise", str(promise), fix)
    else:
        fix = "Say whose each row is: Rows(source, units=...)."
        private(known, "rows of known persons", "rows", "rows alone", fix)
        bounded = not promise.is_private or unit.max_rows is not None
        fix = "Pass max_rows_per_unit=12, for example: what one person adds must be bounded."
        private(bounded, "the most rows of one person", "unit", None, fix)
    held = not (rows.weighted and promise.is_private) or not math.isinf(rows.max_sample_weight)
    fix = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
    private(held, "a finite max_sample_weight", "rows", math.inf, fix)
