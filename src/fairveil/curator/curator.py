"""The curator: holds the rows, answers bounded questions with noise, and writes down what each
answer cost.

Guarantees (tests/curator/test_curator_*.py):
1. Nothing that depends on a protected value leaves except through `answer` and `choose`, each with
   its event in the log.
2. One call of `answer` is one joint release on one batch, and one event.
3. Every coordinate of every answer gets noise of its own, from a stream named by the number of the
   release.
4. An answer that the promise, or the plan, has no room for is refused before the rows are read.
5. The entry is in the log before the answer is returned; a run interrupted half way leaves a log
   of what was released.
6. With records protected the realised size of a Poisson batch is neither used nor released (else
   membership is priced as seen).
7. With a ledger all that a run may cost is reserved there before a row is read, and settled when it
   ends: see `recording`.
8. Under a promise about persons no more than its cap of a person's rows is read, and batches hold
   whole persons: see `persons`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..core.events import Event, Exponential
from ..core.filters import Filter
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..core.rows import FULL, Batch, Block, Drawn, Part, Poisson, Rows, Unmapped
from ..facts import Cells
from ..statement.document import NamedGroups, PrivacyStatement, PublicFact, StatedBound
from . import listening, pricing
from .books import Books, RunLedger
from .bounds import Bounds, adds_by_person, cap_of
from .choices import Contest, Context, HistogramCache, Score, contest_of
from .journal import Journal, LogEntry
from .measurements import Measurement, Measurements, as_measurements
from .pricing import Deciding
from .public_table import PublicTable, public_facts, public_table
from .question import Question
from .questions.attached import Attached, AttachedCodes, given_codes
from .questions.of_models import GroupLosses
from .questions.of_rows import RowCount
from .quiet import Troubles
from .refusals import (
    no_public_rows,
    require_all_kept,
    require_ended,
    require_features_apart,
    require_kinds,
    require_scales,
    require_shape,
    require_unit,
    require_weights,
    sources_of,
)
from .rounds import Rounds, unclipped


class Curator:
    """The only holder of rows: it answers bounded questions about them with noise, and logs what
    each answer cost.

    `promise`: what answers may cost in total. `plan`: the events of the whole run, fixed in advance
    and priced now; answers must follow it. Without a plan answers may be chosen as you go; `cap`, a
    filter, holds them (theory.md#t10). `noise`: a source, or one source a model for questions about
    many models side by side (each model then gets the noise that it would get alone).
    `public_rows`: the number to divide by, where the true one is private. `threads`: a knob of
    speed only. `journal`: called with each log entry before its answer is returned. `earlier`:
    what an earlier sitting of the same run released, as its entries or as its `Journal`, which is
    then written on (or begun, where it is new). `bounds`: of what was done to the rows before, for
    the statement. `ledger`: where the run is recorded, for `purpose`; None: in that of a
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
        facts: Iterable[PublicFact] = (),
        bounds: Iterable[StatedBound] = (),
        threads: int | None = None,
        journal: Callable[[LogEntry], None] | None = None,
        earlier: Sequence[LogEntry] | Journal = (),
        ledger: RunLedger | None = None,
        purpose: str = "",
        stated_clips: Sequence[float] | None = None,
        one_group: bool = False,
    ) -> None:
        require_kinds(rows, promise)
        require_features_apart(rows.layout, promise.protects)
        self.promise = promise
        self.layout = rows.layout
        self._rows = rows
        self._threads = None if threads is None else _checks.whole(at_least=1, threads=threads)
        self._sources = sources_of(noise)
        require_unit(rows, promise)
        self._public_rows = (
            None if public_rows is None else _checks.whole(at_least=1, public_rows=public_rows)
        )
        told = public_facts(rows, self._public_rows, facts)
        self._scalings: tuple[tuple[Floats, Floats], ...] = ()
        self._decided = HistogramCache()
        self._troubles = Troubles()
        require_weights(rows, promise)
        self._books = books = Books(
            promise,
            plan,
            cap,
            facts=told,
            bounds=tuple(bounds),
            columns=self.layout.sensitive_names,
            secure=all(source.is_secure for source in self._sources),
            ledger=ledger,
            purpose=purpose,
        )
        if promise.unit is not None and promise.is_private:
            coins = self._sources[0].stream("units")
            by_person = adds_by_person(promise)
            self._rows = rows.by_person(
                promise.rows_per_unit, coins, adds_by_person=by_person, one_group=one_group
            )
            require_all_kept(self._rows, promise)
        self._bounds = Bounds(self._rows, promise, books, stated_clips, self._threads)
        self._rounds = Rounds(
            self._rows, promise, self._sources, books, self._bounds, self._troubles, self._threads
        )
        counted = promise.rows_are_public or not promise.is_private
        books.open(journal, earlier, self._rows.exact_count if counted else None)
        self.journal, self.log = books.journal, books.log
        listening.open_book(self._rows)

    def release_rows(self, multiplier: float) -> int:
        """One noisy count of the rows (of their weights, where they have weights), at least 1, kept
        as `public_rows`."""
        ((count,),) = self.answer([(RowCount(), multiplier)], purpose="number of rows")
        self._public_rows = max(1, round(float(count)))
        return self._public_rows

    def describe_range(
        self, question: Question | Sequence[Question], score: Score
    ) -> tuple[float, float]:
        """Of `choose` by that score: how far one person moves scores apart, what rounding adds
        among it, and the step that scores are rounded to. Public values alone: the mechanism is
        exp(-epsilon score / range) on that grid."""
        contest = self._contest(pricing.as_questions(question), None, None, score)
        return math.ldexp(contest.steps, contest.exponent), math.ldexp(1.0, contest.exponent)

    # -- what it tells without an answer -------------------------------------------------------------

    @property
    def public_rows(self) -> int:
        """The number of rows that averages divide by: the true one where it is public, else the one
        given or released."""
        if self._public_rows is not None:
            return self._public_rows
        if self.promise.rows_are_public or not self.promise.is_private:
            return self._rows.exact_count
        raise no_public_rows()

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of the rows' sensitive columns: public values only."""
        return self._rows.cells(mode, names)

    @property
    def scalings(self) -> tuple[tuple[Floats, Floats], ...]:
        """Scale and shift of each `rescale` so far, in turn: public or released values, never the
        rows'."""
        return self._scalings

    def describe(self, measurements: Measurements, batch: Batch = FULL) -> Event:
        """The event that `answer` would log, for plans."""
        return pricing.describe(
            measurements, self.layout, self.promise, batch, max_sample_weight=self._cap
        )

    def describe_choice(self, question: Question | Sequence[Question], epsilon: float) -> Event:
        """The event that `choose` would log, for plans."""
        return pricing.describe_choice(question, epsilon, self.promise)

    @property
    def _cap(self) -> float | None:
        return cap_of(self._rows, self.promise)

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
        wanted = [self._rounds.heard(measurement) for measurement in asked]
        pricing.check_batch(batch, self.promise)
        if isinstance(batch, Part):
            self._rows.check_part(batch)
        if not self.promise.is_private:
            wanted = [replace(one, question=unclipped(one.question)) for one in wanted]
            batch = batch if isinstance(batch, Part) else FULL
        ready = self._rounds.prepared(wanted, batch)
        if (given := self._books.again(ready.event, asked, batch, purpose)) is not None:
            return given.answers
        jobs = self._rounds.jobs(wanted, ready)
        with self._books.admitted(ready.event, purpose) as number:
            answers = self._rounds.answers(
                wanted, ready, jobs, batch, self._chosen(batch, number), number
            )
            out = [a if many else a[0] for a, many in zip(answers, ready.many, strict=True)]
            entry = LogEntry(number, ready.event, ready.names, ready.words, purpose)
            self._books.release(entry, out, asked, batch, purpose)
        listening.tell(asked, batch, out, self._scalings)
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
            require_shape(Measurement(one, 1.0), self._rows, len(self._sources))
        event = self.describe_choice(asked, epsilon)
        contest = self._contest(asked, cell_weights, costs, score)
        if score is not None and score.trusted:
            self._books.trust()
        names = tuple(dict.fromkeys(f"choice by {one.name}" for one in asked))
        if (
            given := self._books.again(event, asked, cell_weights, costs, score, purpose)
        ) is not None:
            return given.chosen
        if isinstance(event, Exponential) and contest.stated is not None:
            self._books.state(
                StatedBound(
                    names[0],
                    "range",
                    contest.stated,
                    "scores of candidates move apart by no more",
                    "by definition",
                )
            )
        with self._books.admitted(event, purpose) as number:
            if isinstance(event, Exponential):
                index = contest.drawn(event.epsilon, self._sources[0].stream("noise", number, 0))
            else:
                index = contest.best()
            entry = LogEntry(number, event, names, "all rows", purpose)
            self._books.release(entry, int(index), asked, cell_weights, costs, score, purpose)
        return index

    def _contest(
        self,
        asked: tuple[GroupLosses] | tuple[Deciding, ...],
        cell_weights: Any,
        costs: object,
        score: Score | None,
    ) -> Contest:
        """Scores and their range; what is wrong with weights, costs or slopes is an error before
        anything is charged."""
        context = Context(
            self._rows, self.promise, self._bounds, self._decided, self._troubles, self._threads
        )
        return contest_of(context, asked, cell_weights, costs, score)

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
        return Attached(model, self._rows, frozenset(columns_read), title, self._troubles)

    def attach_codes(
        self,
        codes: Callable[[Block], Any] | npt.NDArray[np.integer],
        count: int,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "codes made elsewhere",
    ) -> AttachedCodes:
        """Keep a code of each row, from 0 to `count` - 1, such as the bin of a score: a handle to
        ask `CodeHistogram` about.

        `codes(block)` returns them, (rows,). It is user code and trusted as such. Where features
        and labels are public, `codes` may be an array of one code a row, made of these alone: no
        code of a caller's then runs beside the rows.
        """
        if callable(codes):
            self._books.trust()
            function = codes
        else:
            function = given_codes(codes, self._rows, self.promise)
        return AttachedCodes(
            function, self._rows, count, frozenset(columns_read), title, self._troubles
        )

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
        require_scales(scale, shift, self.layout.numbers)
        self._rows = self._rows.rescaled(scale, shift)
        for values in (scale, shift):
            values.setflags(write=False)
        self._scalings = (*self._scalings, (scale, shift))
        self._bounds.rescaled(self._rows)
        self._rounds.rescaled(self._rows)
        self._decided.clear()

    @property
    def has_failed(self) -> bool:
        """Whether an answer was admitted and did not come: a plan goes no further then."""
        return self._books.budget.failed

    def close(self) -> None:
        """End the run: nothing more is answered. What was reserved in a ledger is settled, by what
        was admitted."""
        self._books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def trouble(self) -> tuple[str, ...]:
        """What went wrong inside user code. For the data holder, once the run has ended: it may
        depend on private rows."""
        require_ended(self._books.budget.is_open)
        return tuple(self._troubles)

    def finish(self) -> Event:
        """End the run and give the whole log as one event; with a plan, an error unless all of it
        was done."""
        return self._books.finish()

    def statement(
        self,
        *,
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        groups: Iterable[NamedGroups] = (),
    ) -> PrivacyStatement:
        """What was released so far, at what price, under which promise; `groups`: whose own prices
        to tell, one a column."""
        return self._books.statement(not_covered, tuning, earlier_releases, groups)

    # -- inside ------------------------------------------------------------------------------------

    def _chosen(self, batch: Batch, number: int) -> Iterator[Block | Drawn | Unmapped]:
        """The rows that are asked. Many models share a Poisson batch, so it comes from the first
        source."""
        if isinstance(batch, Part):
            return self._rows.part(batch)
        if not isinstance(batch, Poisson):
            return self._rows.passed()
        stream = self._sources[0].stream("sampling", number)
        return self._rows.of_units(stream.poisson_batch(self._rows.exact_units, batch.rate))
