"""The curator: holds the rows, answers bounded questions with noise, and writes down what each answer cost.

Guarantees (tests/curator/test_curator_*.py):
1. Nothing that depends on a protected value leaves except through `answer` and `choose`, each with its event in the log.
2. One call of `answer` is one joint release on one batch, and one event.
3. Every coordinate of every answer gets noise of its own, from a stream named by the number of the release.
4. An answer that the promise, or the plan, has no room for is refused before the rows are read.
5. The entry is in the log before the answer is handed out; a run broken off half way leaves a log of what was released.
6. With records protected the realised size of a Poisson batch is neither used nor released (else membership is priced as seen).
7. With a ledger all that a run may cost is reserved there before a row is read, and settled when it ends: see `recording`.
8. Under a promise about persons no more than its cap of a person's rows is read, and batches hold whole persons: see `persons`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError, PrivacyError, complaint
from ..facts import Cells
from ..privacy.accounting.filters import Filter
from ..privacy.events import Event, Exponential, NoOp, OnPart, compose
from ..privacy.ledger import Ledger
from ..privacy.noise.sources import NoiseSource
from ..privacy.promise import Promise
from ..privacy.statement.releases import releases_of
from ..privacy.statement.statement import Arithmetic, NamedGroups, Origin, PrivacyStatement, PublicFact, StatedBound, names_read
from . import noising, pricing
from .budget import Budget
from .choices import by_decisions as decisions
from .choices import by_function as choice_by_function
from .choices import choice
from .choices.by_function import Score
from .journal import listening
from .journal.journal import Journal, earlier_entries
from .journal.lines import SITTING
from .journal.log import Entry, Log
from .journal.recording import Recording
from .prepared import Known, Prepared, Sizes, is_many, units_of, words_of
from .pricing import Ask, Deciding
from .question import Question, Scale
from .questions.attached import Attached
from .questions.attached_codes import AttachedCodes, given_codes
from .questions.by_cell import CellwiseQuestion, Weighed, inner_of
from .questions.networks import NetworkGradient, NetworkHistogram
from .questions.of_models import GradientSum, GroupLosses
from .questions.of_rows import FeatureSums, GramMatrices, NumberMoments, RowCount
from .questions.row_function import RowFunction
from .quiet.calls import Troubles
from .rows.block import Block, Drawn, lines_of
from .rows.persons import of_person
from .rows.public_facts import public_facts
from .rows.public_table import PublicTable, public_table
from .rows.rows import MOST_ROWS, Rows
from .rows.sampling import FULL, Batch, Part, Poisson
from .totals import public_scale
from .totals.passes import Passes, check_labels

Job = tuple[int, Ask, list[Scale], Sizes]  # what to total for an ask: its place, itself, its grids, its noise
_NOTHING: Floats = np.zeros(0)
USER_CODE, SINGLES, BY_ROW = "user code", "float32", "float32-by-row"  # marks in a journal; `SINGLES`: of earlier versions


class Curator:
    """The only holder of rows: it answers bounded questions about them with noise, and logs what each answer cost.

    `promise`: what answers may cost in total. `plan`: the events of the whole run, fixed beforehand and priced now; answers
    must follow it. Without a plan answers may be chosen as you go; `cap`, a filter, holds them (theory.md#t10).
    `noise`: a source, or one source a model for questions about many models side by side (each model then gets the noise
    that it would get alone). `public_rows`: the number to divide by, where the true one is private. `threads`: a knob of
    speed only. `journal`: called with each log entry before its answer is handed out. `earlier`: what an earlier sitting of the
    same run released, as its entries or as its `Journal`, which is then written on (or begun, where it is new).
    `bounds`: of what was done to the rows before, for the statement. `ledger`: where the run is recorded, for `purpose`; None:
    in that of a `with fairveil.ledger(...)` block, if there is one. A plan is reserved there now, and settled by `finish()`, or
    by `close()`, which the end of a `with` block calls, too.
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
        journal: Callable[[Entry], None] | None = None,
        earlier: Sequence[Entry] | Journal = (),
        ledger: Ledger | None = None,
        purpose: str = "",
        stated_clips: Sequence[float] | None = None,
    ) -> None:
        _need_type("rows", rows, Rows, "Wrap arrays with Rows.from_arrays(X, y, [groups]), a coded table with Rows(table).")
        _need_type("promise", promise, Promise, "Pass Promise(epsilon=1.0, delta=1e-6).")
        self.promise = promise
        self.layout = rows.layout
        self._rows = rows
        self._threads = None if threads is None else _checks.whole(at_least=1, threads=threads)
        self._sources = _sources(noise)
        self._require_unit()
        self._public_rows = None if public_rows is None else _checks.whole(at_least=1, public_rows=public_rows)
        self._facts = public_facts(rows, self._public_rows, facts)
        self._bounds_before = tuple(bounds)
        self._stated_clips = stated_clips
        self._scalings: tuple[tuple[Floats, Floats], ...] = ()
        self._bounds: dict[tuple[str, str], StatedBound] = {}
        self._ready: dict[tuple[object, ...], Prepared] = {}
        self._latest: dict[tuple[object, ...], tuple[object, ...]] = {}
        self._known: dict[tuple[object, ...], list[Scale]] = {}
        self._decided = decisions.HistogramCache()
        self._troubles = Troubles()
        self._trusted = False
        self._arithmetic: Arithmetic = "exact"  # a network's own float32 may have taken part
        if rows.weighted and math.isinf(rows.max_sample_weight) and promise.is_private:
            raise PrivacyError(
                complaint(
                    expected="a finite max_sample_weight",
                    of="rows",
                    got=math.inf,
                    remedy="The largest weight multiplies every sensitivity: cap it at 1.0, say.",
                )
            )
        self._budget = Budget(promise, None if plan is None else compose([plan] if isinstance(plan, Event) else plan), cap)
        self._recording = self._recorded(ledger, purpose)
        if promise.unit is not None and promise.is_private:
            coins = self._sources[0].stream("units")
            self._rows = rows.by_person(promise.rows_per_unit, coins, adds_by_person=self._adds_by_person)
            self._require_all_kept()
        self.journal: Journal | None = None
        self.log = self._opened(journal, earlier)
        listening.open_book(rows)

    def _recorded(self, ledger: Ledger | None, purpose: str) -> Recording:
        if ledger is not None:
            _need_type("ledger", ledger, Ledger, "Make one with Ledger.create, or find one with Ledger.open.")
        secure = all(source.is_secure for source in self._sources)
        read = names_read(self._facts, self._bounds_before)
        columns = self.layout.sensitive_names
        return Recording(ledger, self.promise, self._budget.plan, purpose, secure=secure, read_from_data=read, columns=columns)

    def _opened(self, journal: Callable[[Entry], None] | None, earlier: Sequence[Entry] | Journal) -> Log:
        """The log, and what an earlier sitting released charged: the last thing to be made, for it may write a file."""
        if isinstance(journal, Journal) and earlier != ():
            remedy = "A journal that is written on is given once: earlier=Journal(path)."
            raise InputError(complaint(expected="earlier= or journal=", of="journal", got="both", remedy=remedy))
        if isinstance(journal, Journal) and not journal.is_new:
            remedy = "To go on with its run pass earlier=Journal(path); else begin another."
            raise PrivacyError(complaint(expected="a new journal", of="journal", got="one with a run in it", remedy=remedy))
        book = journal if isinstance(journal, Journal) else earlier if isinstance(earlier, Journal) else None
        if book is None:
            entries = earlier_entries(earlier)
            first = 0 if not entries else (max(entry.number for entry in entries) // SITTING + 1) * SITTING
            events = [entry.event for entry in entries]
            self._budget.go_on(events, first)
            self._recording.begin(events)
            return Log(journal, entries)
        try:
            entries = self._begun(book)
        except BaseException:
            self._recording.withdraw()
            raise
        self.journal = book

        def write(entry: Entry) -> None:
            book(entry)
            if journal is not None and journal is not book:
                journal(entry)

        return Log(write, entries)

    def _begun(self, book: Journal) -> tuple[Entry, ...]:
        """What earlier sittings wrote, charged; and the journal, to be written on."""
        budget, secure = self._budget, all(source.is_secure for source in self._sources)
        plan = budget.plan if self.promise.is_private else None
        rows = self._rows.exact_count if self.promise.rows_are_public or not self.promise.is_private else None
        agreed = self._recording.take(book)
        first = book.begin(self.promise, plan, budget.room, rows, secure=secure, agreed=agreed)
        entries = book.entries
        try:
            budget.go_on([entry.event for entry in entries], first)
            self._recording.mark(book)
        except BaseException:
            book.close()
            raise
        self._bounds.update({(bound.question, bound.norm): bound for bound in book.bounds})
        self._trusted = USER_CODE in book.marks
        self._arithmetic = "float32" if SINGLES in book.marks else "float32-by-row" if BY_ROW in book.marks else "exact"
        return entries

    # -- what is public ----------------------------------------------------------------------------------------------------

    @property
    def public_rows(self) -> int:
        """The number of rows that averages divide by: the true one where it is public, else the one given or bought."""
        if self._public_rows is not None:
            return self._public_rows
        if self.promise.rows_are_public or not self.promise.is_private:
            return self._rows.exact_count
        raise PrivacyError(
            complaint(
                expected="a public number of rows",
                of="public_rows",
                got=None,
                remedy="Under add-remove it is private: pass public_rows=, or buy_rows(multiplier) first.",
            )
        )

    def buy_rows(self, multiplier: float) -> int:
        """One noisy count of the rows (of their weights, where they have weights), at least 1, kept as `public_rows`."""
        ((count,),) = self.answer([(RowCount(), multiplier)], purpose="number of rows")
        self._public_rows = max(1, round(float(count)))
        return self._public_rows

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of the rows' sensitive columns: public values only."""
        return self._rows.cells(mode, names)

    @property
    def scalings(self) -> tuple[tuple[Floats, Floats], ...]:
        """Scale and shift of each `rescale` so far, in turn: public or released values, never the rows'."""
        return self._scalings

    def describe(self, asks: Iterable[Ask | tuple[Question, Any]], batch: Batch = FULL) -> Event:
        """The event that `answer` would log, for plans."""
        return pricing.describe(asks, self.layout, self.promise, batch, max_sample_weight=self._cap)

    def describe_choice(self, question: Question | Sequence[Question], epsilon: float) -> Event:
        """The event that `choose` would log, for plans."""
        return pricing.describe_choice(question, epsilon, self.promise)

    def describe_range(self, question: Question | Sequence[Question], score: Score) -> tuple[float, float]:
        """Of `choose` by that score: how far one person moves scores apart, what rounding adds among it, and the step that
        scores are rounded to. Public values alone: the mechanism is exp(-epsilon score / range) on that grid."""
        contest = cast(choice_by_function.FunctionContest, self._contest(pricing.as_questions(question), None, None, score))
        return math.ldexp(contest.steps, contest.exponent), math.ldexp(1.0, contest.exponent)

    # -- answers -----------------------------------------------------------------------------------------------------------

    def answer(self, asks: Iterable[Ask | tuple[Question, Any]], batch: Batch = FULL, *, purpose: str = "") -> list[Floats]:
        """One joint noisy answer: an array a question, with a leading model axis where the question has many models.

        Questions that do not read what is protected are answered exactly, for free, whatever their multiplier.
        """
        asked = pricing.as_asks(asks)
        wanted = [self._overheard(ask) for ask in asked]
        pricing.check_batch(batch, self.promise)
        if isinstance(batch, Part):
            self._rows.check_part(batch)
        if not self.promise.is_private:
            wanted = [replace(ask, question=_unclipped(ask.question)) for ask in wanted]
            batch = batch if isinstance(batch, Part) else FULL
        ready = self._prepared(wanted, batch)
        jobs = [] if ready.noise is not None else self._all_jobs(wanted, ready.known)
        with self._admitted(ready.event, purpose) as number:
            chosen = self._chosen(batch, number)
            if ready.noise is not None and ready.passes is not None:
                begun = ready.noise.begin(self._sources, number)
                sums = ready.passes.run([ask.question for ask in wanted], chosen, self._threads)
                ready.noise.add(sums, begun)
                answers: list[Floats] = [np.asarray(total * unit) for total, unit in zip(sums, ready.units, strict=True)]
            else:
                answers = self._found(jobs, len(wanted), ready.passes, batch, chosen, number)
            out = [a if many else a[0] for a, many in zip(answers, ready.many, strict=True)]
            self._release(Entry(number, ready.event, ready.names, ready.words, purpose))
        listening.tell(asked, batch, out, self._scalings)
        return out

    def choose(
        self,
        question: Question | Sequence[Question],
        epsilon: float,
        *,
        cell_weights: Sequence[float] | None = None,
        costs: Any = None,
        score: Score | None = None,
        purpose: str = "",
    ) -> int:
        """The exponential mechanism over the question's models: small scores are likely (theory.md#ranges). Their index.

        `GroupLosses`: the score is the sum of `cell_weights` x losses. A `PredictionHistogram` or an `AttachedHistogram` of
        hard decisions, a `ScoreHistogram` whose every direction and edge is a candidate (number: direction x edges + edge; it
        decides for the second class above the edge), or a list of them whose candidates then follow one another: the sum of
        `costs` (cells, labels or 1, classes), what one prediction of that class costs. Or, of either, a `Score`: any function
        of a candidate's sums whose slopes are bounded. Histograms are totalled once for as long as you hold the questions, so
        many rounds of other costs or scores should ask the same ones. See `choice` and `ranges` for how far one person moves
        the scores. Exact: no sampling error.
        """
        asked = pricing.as_questions(question)
        for one in asked:
            self._check_shape(Ask(one, 1.0))
        event = self.describe_choice(asked, epsilon)
        contest = self._contest(asked, cell_weights, costs, score)
        if score is not None and score.trusted:
            self._trust()
        names = tuple(dict.fromkeys(f"choice by {one.name}" for one in asked))
        if isinstance(event, Exponential) and contest.stated is not None:
            self._widest(
                StatedBound(names[0], "range", contest.stated, "scores of candidates move apart by no more", "by definition")
            )
        with self._admitted(event, purpose) as number:
            if isinstance(event, Exponential):
                index = contest.drawn(event.epsilon, self._sources[0].stream("noise", number, 0))
            else:
                index = contest.best()
            self._release(Entry(number, event, names, "all rows", purpose))
        return index

    def _contest(
        self, asked: tuple[GroupLosses] | tuple[Deciding, ...], cell_weights: Any, costs: Any, score: Score | None
    ) -> choice.ExponentialMechanism | choice_by_function.FunctionContest:
        """Scores and their range; what is wrong with weights, costs or slopes is an error before anything is charged."""
        question, rows, losses = asked[0], self._rows, isinstance(asked[0], GroupLosses)
        for name, given, fits in (("cell_weights", cell_weights, losses), ("costs", costs, not losses)):
            if given is not None and (score is not None or not fits):
                remedy = "Losses are weighed by cell_weights, decisions have costs, and a score stands alone."
                raise InputError(complaint(expected=f"none, for {question.name}", of=name, got=given, remedy=remedy))
        if score is not None:
            _need_type("score", score, Score, "Pass Score(function, lowest, highest).")
        most, n = rows.exact_count if self._public or self.promise.rows_are_public else MOST_ROWS, self._threads
        if not isinstance(question, GroupLosses):
            deciding, cap = cast(tuple[Deciding, ...], asked), self._cap
            table = decisions.Table(deciding, self._decided, rows, cap, n)
            if score is not None:
                return decisions.by_score(table, score, self.promise, most, self._troubles)
            return decisions.by_decisions(table, costs, self.promise, most)
        scales = self._scales(Ask(question, 1.0))
        scale = scales[0] if len(scales) == 1 else public_scale.shared(scales, question, rows)
        if score is not None:
            head = (question, score, scale, rows, self.promise, self._troubles)
            return choice_by_function.by_losses(*head, most_rows=most, threads=n)
        return choice.by_losses(question, cell_weights, scale, rows, self.promise, most_rows=most, threads=n)

    def attach(
        self,
        model: Callable[[Block], Any],
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "a model made elsewhere",
    ) -> Attached:
        """Score the rows with a model made elsewhere, inside: a handle to ask `AttachedHistogram` and `AttachedLosses` about.

        `model(block)` returns class codes (rows,) or probabilities (rows, classes). It is user code and trusted as such.
        """
        self._trust()
        return Attached(model, self._rows, frozenset(columns_read), title, self._troubles)

    def attach_codes(
        self,
        codes: Callable[[Block], Any] | npt.NDArray[np.integer],
        count: int,
        *,
        columns_read: Iterable[str] = ("features",),
        title: str = "codes made elsewhere",
    ) -> AttachedCodes:
        """Keep a code of each row, from 0 to `count` - 1, such as the bin of a score: a handle to ask `CodeHistogram` about.

        `codes(block)` returns them, (rows,). It is user code and trusted as such. Where features and labels are public, `codes`
        may be an array of one code a row, made of these alone: no code of a caller's then runs beside the rows.
        """
        if callable(codes):
            self._trust()
            function = codes
        else:
            function = given_codes(codes, self._rows, self.promise)
        return AttachedCodes(function, self._rows, count, frozenset(columns_read), title, self._troubles)

    def public_table(self, cells: Cells | None = None, *, most: int = 1 << 25) -> PublicTable:
        """Features, labels and weights of the rows, at most `most` numbers, where they are public: free, and never a sensitive
        column. Without privacy the memberships of `cells`, too."""
        return public_table(self._rows, self.promise, cells, most)

    def rescale(self, scale: Any, shift: Any) -> None:
        """From now on every number x of the rows is scale x + shift, for public or released values: inside, and for good.

        Contributions are shortened and bounded as before, in the new units. Models found are of the new units too. What leaves
        the range of its number type is put at its end, so no row makes this fail; rows with sparse numbers are refused.
        """
        scale, shift = (np.array(values, np.float64) for values in (scale, shift))
        wanted = (self.layout.numbers,)
        if scale.shape != wanted or shift.shape != wanted or not np.isfinite([scale, shift]).all() or not (scale > 0).all():
            expected = f"{wanted[0]} finite numbers each, scales above 0"
            remedy = "Make them from an answer to NumberMoments."
            raise InputError(complaint(expected=expected, of="rescale", got=(scale.shape, shift.shape), remedy=remedy))
        self._rows = self._rows.rescaled(scale, shift)
        for values in (scale, shift):
            values.setflags(write=False)
        self._scalings = (*self._scalings, (scale, shift))
        self._ready.clear()
        self._latest.clear()
        self._known.clear()
        self._decided.clear()

    @property
    def has_failed(self) -> bool:
        """Whether an answer was admitted and did not come: a plan goes no further then."""
        return self._budget.failed

    def close(self) -> None:
        """End the run: nothing more is answered. What was reserved in a ledger is settled, by what was admitted."""
        self._budget.close()
        try:
            self._recording.end(self._budget.admitted, failed=self._budget.failed)
        finally:
            if self.journal is not None:
                self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def trouble(self) -> tuple[str, ...]:
        """What went wrong inside user code. For the data holder, once the run has ended: it may depend on private rows."""
        if self._budget.is_open:
            raise PrivacyError(
                complaint(
                    expected="a run that has ended",
                    of="trouble",
                    got="one that goes on",
                    remedy="An error may depend on one private row: call finish(), or close(), first.",
                )
            )
        return tuple(self._troubles)

    def finish(self) -> Event:
        """End the run and give the whole log as one event; with a plan, an error unless all of it was done."""
        if self._budget.plan is not None and self.promise.is_private:
            self.log.reconcile([self._budget.plan], self.promise.neighbours)
        self._budget.close()
        self._recording.finish(self.log.events)
        self.close()
        return compose(self.log.events)

    def statement(
        self,
        *,
        not_covered: Iterable[str] = (),
        tuning: str | None = None,
        earlier_releases: str | None = None,
        groups: Iterable[NamedGroups] = (),
    ) -> PrivacyStatement:
        """What was released so far, at what price, under which promise; `groups`: whose own prices to tell, one a column."""
        secure = all(source.is_secure for source in self._sources) and (self.journal is None or self.journal.is_secure)
        return PrivacyStatement.of(
            self.promise,
            self.log.events,
            plan=None if self._budget.plan is None or not self.promise.is_private else [self._budget.plan],
            cap=self._budget.room,
            facts=self._facts,
            bounds=[*self._bounds.values(), *self._bounds_before],
            not_covered=not_covered,
            tuning=tuning,
            earlier_releases=earlier_releases,
            noise="secure" if secure else "seeded",
            user_code="trusted" if self._trusted else "none",
            arithmetic=self._arithmetic,
            groups=groups,
            ledger=self._recording.receipt,
            releases=releases_of((entry.questions, entry.event) for entry in self.log.entries),
        )

    # -- inside ------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _admitted(self, event: Event, purpose: str) -> Iterator[int]:
        """An answer's number, once there is room for it everywhere. Meanwhile no row makes arithmetic warn, or raise."""
        spend, admitted = self._recording.answer(event, purpose), False
        try:
            with self._budget.release(event) as number, np.errstate(all="ignore"):
                admitted = True
                yield number
        finally:
            self._recording.answered(spend, admitted=admitted)

    @property
    def _public(self) -> bool:
        return self.promise.features_are_public

    @property
    def _cap(self) -> float | None:
        if not self._rows.weighted:
            return None
        if not self.promise.is_private:
            return max(self._rows.largest_weight, 1e-300)
        return self._rows.max_sample_weight

    def _scales(self, ask: Ask) -> list[Scale]:
        """Bound and grid: one for all models, or, where they are maxima over public rows, one a model."""
        question = ask.question
        free = pricing.is_free(question, self.promise) or not self.promise.is_private
        if self._public and public_scale.needs_rows(question):
            scales = public_scale.of(question, self._rows, ask.order, exact=free, threads=self._threads)
            scales = [of_person(scale, self._rows.most_of_one) for scale in scales]
            if not free:
                self._state(ask, scales, "largest over the public rows and all listed groups", "public features")
            return scales
        key = ask.key
        if key not in self._known:
            self._known[key] = [pricing.constant_scale(question, self.layout, self.promise, self._cap, ask.order)]
            if not free:
                self._state(ask, self._known[key], self._why(question), self._origin_of(question))
        return self._known[key]

    def _origin_of(self, question: Question) -> Origin:
        """Of a bound that is a constant: a caller's clip, a clip that the library chose, or what the question is."""
        clip = question.clipped_to
        if clip is None:
            return "by definition"
        return "argument" if self._stated_clips is None or clip in self._stated_clips else "library default"

    def _why(self, question: Question) -> str:
        rows = self.promise.rows_per_unit
        if rows == 1:
            return question.why
        if self._adds_by_person and isinstance(question, GradientSum):
            return f"a person's gradients are added, and the sum is shortened to norm {question.clip:g}"
        return f"{question.why}; a person has at most {rows} rows"

    @property
    def _adds_by_person(self) -> bool:
        """Whether a person's gradients are added before they are clipped: not where loss and features are public."""
        return self.promise.protects == "records" and self.promise.rows_per_unit > 1

    def _require_all_kept(self) -> None:
        """Where rows are public none may be dropped, as all else counts them; how many a person has shows nothing."""
        given = self._rows.given
        if not self.promise.features_are_public or self._rows.exact_count == given.exact_count:
            return
        remedy = "Features and labels are public here, and so is whose they are: pass as many as the person who has most."
        expected = f"at least {given.most_per_person}, the most rows of one person"
        got = self.promise.rows_per_unit
        raise InputError(complaint(expected=expected, of="max_rows_per_unit", got=got, remedy=remedy))

    def _require_unit(self) -> None:
        """The promise and the rows agree on who is protected; before anything is reserved."""
        rows, unit = self._rows, self.promise.unit
        if unit is None and not rows.knows_persons:
            return
        if unit is None:
            remedy = "Pass Promise(..., unit=Unit('patient', max_rows=12)), or rows without units."
            raise PrivacyError(
                complaint(expected="a promise about persons", of="promise", got=str(self.promise), remedy=remedy)
            )
        if not rows.knows_persons:
            remedy = "Say whose each row is: Rows(source, units=...)."
            raise PrivacyError(complaint(expected="rows of known persons", of="rows", got="rows alone", remedy=remedy))
        if self.promise.is_private and unit.max_rows is None:
            remedy = "Pass max_rows_per_unit=12, for example: what one person adds to a sum must be bounded."
            raise PrivacyError(complaint(expected="the most rows of one person", of="unit", got=None, remedy=remedy))

    def _state(self, ask: Ask, scales: list[Scale], reason: str, origin: Origin) -> None:
        """Write a sensitivity down for the statement: the largest of the run, where rounds or questions of one name differ."""
        moved = max(scale.bound.sensitivity(self.promise.neighbours) for scale in scales)
        self._widest(StatedBound(ask.question.name, f"L{ask.order}", moved, reason, origin))

    def _widest(self, bound: StatedBound) -> None:
        key = (bound.question, bound.norm)
        if key not in self._bounds or bound.sensitivity > self._bounds[key].sensitivity:
            if self.journal is not None:
                self.journal.state(bound)
            self._bounds[key] = bound

    def _trust(self, *, singles: bool = False) -> None:
        """The caller's code runs beside the rows (and its own float32): the statement says so."""
        self._trusted = True
        if singles and self._arithmetic == "exact":
            self._arithmetic = "float32-by-row"
        for name in (USER_CODE, BY_ROW) if singles else (USER_CODE,):
            if self.journal is not None:
                self.journal.mark(name)

    def _all_jobs(self, asks: Sequence[Ask], known: Sequence[Known | None]) -> list[Job]:
        jobs: list[Job] = []
        for i, (ask, found) in enumerate(zip(asks, known, strict=True)):
            jobs += self._jobs(i, ask) if found is None else [(i, ask, *found)]
        return jobs

    def _found(
        self, jobs: list[Job], asks: int, passes: Passes | None, batch: Batch, chosen: Iterator[Block | Drawn], number: int
    ) -> list[Floats]:
        """The answers of jobs whose grids or noise were found for this answer alone."""
        passes = passes or Passes([(ask.question, scales) for _, ask, scales, _ in jobs], self._rows)
        sums = passes.run([ask.question for _, ask, _, _ in jobs], chosen, self._threads)
        needs = self._needs(jobs, passes.shapes, batch)
        for need, noise in zip(needs, noising.draws(needs, self._sources, number), strict=True):
            sums[need.job][need.model] += noise
        answers: list[Floats] = [_NOTHING] * asks
        for (i, _, scales, _), total in zip(jobs, sums, strict=True):
            values: Floats = np.multiply(total, units_of(scales, total.ndim), dtype=np.float64)
            answers[i] = values if answers[i] is _NOTHING else answers[i] + values
        return answers

    def _jobs(self, i: int, ask: Ask) -> list[Job]:
        """What is to be totalled for an ask. With public rows a gradient's part that reads no group is exact."""
        question = ask.question
        if isinstance(question, RowFunction):
            self._trust()
            question = question.again(_troubles=self._troubles)
            ask = ask.about(question)
            if not self.promise.is_private:
                return [(i, wide := replace(ask, question=question.unclipped(self._rows)), self._scales(wide), None)]
        public = self.promise.protects == "sensitive_features"
        if public and isinstance(question, GradientSum):
            if "sensitive" not in question.reads:
                ask = replace(ask, question=replace(question, clip=None if question.reads_cells else question.loss_clip))
            elif question.loss != "none":  # the clip shortens the part that reads groups alone
                common, rest = question.parted()
                apart, exact = replace(ask, question=rest), Ask(common, 0.0)
                return [(i, apart, self._scales(apart), None), (i, exact, self._scales(exact), None)]
        return [(i, ask, self._scales(ask), None)]

    def _prepared(self, asks: list[Ask], batch: Batch) -> Prepared:
        """Event, bounds and noise of a joint answer, its asks checked. The steps of a run differ in weights alone: once."""
        key = (batch, *(ask.key for ask in asks))
        ready = self._ready.get(key)
        if ready is None and any(isinstance(ask.question, Weighed) for ask in asks):
            self._forget(batch, asks, key)
        if ready is None and isinstance(batch, Part) and batch.number > 0:  # parts differ in their events alone
            ready = self._prepared(asks, Part(0, batch.parts))
            event = ready.event
            if isinstance(event, OnPart):
                event = replace(event, part=batch.number)
            ready = self._ready[key] = replace(ready, event=event, words=words_of(batch))
        if ready is None:
            for ask in asks:
                self._check_shape(ask)
            event = self.describe(asks, batch)
            known = tuple(self._known_job(ask, batch) for ask in asks)
            jobs = [(ask.question, job[0]) for ask, job in zip(asks, known, strict=True) if job is not None]
            passes = Passes(jobs, self._rows) if len(jobs) == len(asks) else None
            laid, units = None, tuple[float | Floats, ...]()
            if passes is not None:
                needs = self._needs(self._all_jobs(asks, known), passes.shapes, batch)
                laid = noising.NoisePlan.of(needs)
                units = tuple(units_of(scales, len(shape)) for (_, scales), shape in zip(jobs, passes.shapes, strict=True))
            many, names = tuple(is_many(ask.question) for ask in asks), tuple(ask.question.name for ask in asks)
            ready = Prepared(event, known, passes, laid, units, many, names, words_of(batch))
            self._ready[key] = ready
        return ready

    def _forget(self, batch: Batch, asks: list[Ask], key: tuple[object, ...]) -> None:
        """What was prepared for the round before, whose factors were others: else a run's rounds would all be kept."""
        forms = (ask.question.form if isinstance(ask.question, Weighed) else ask.question.key for ask in asks)
        form = (batch, *forms)
        self._ready.pop(self._latest.get(form, ()), None)
        self._latest[form] = key

    def _overheard(self, ask: Ask) -> Ask:
        """Of a network: user code, whose troubles are kept here."""
        question = ask.question
        if not isinstance(inner_of(question), NetworkGradient | NetworkHistogram):
            return ask
        self._trust(singles=True)
        if isinstance(question, CellwiseQuestion):
            return ask.about(question.again(inner=question.inner.again(_troubles=self._troubles)))
        return ask.about(question.again(_troubles=self._troubles))

    def _known_job(self, ask: Ask, batch: Batch) -> Known | None:
        """Scales and size of noise, where they are constants; None where they depend on public rows or on user code."""
        if self._public or isinstance(ask.question, RowFunction):
            return None
        scales = self._scales(ask)
        return scales, self._sizes(ask, scales, batch)

    def _sizes(self, ask: Ask, scales: list[Scale], batch: Batch) -> list[float | Floats] | None:
        """The scale of the noise for each of the ask's scales, in grid units; None where no noise is needed."""
        if not self.promise.is_private or pricing.is_free(ask.question, self.promise):
            return None
        shape = ask.question.shape(self.layout)
        sizes: list[float | Floats] = []
        for scale in scales:
            moves = pricing.unit_size(scale, self.promise, batch) > 0
            sizes.append(pricing.noise_scale(ask, scale, self.promise, batch, shape) if moves else 0.0)
        return sizes

    def _check_shape(self, ask: Ask) -> None:
        shape = ask.question.shape(self.layout)
        check_labels(ask.question, self._rows)
        attached = getattr(ask.question, "attached", None)
        if attached is not None and not attached.is_of(self._rows):
            remedy = "Attach the model to this curator: its predictions are of other rows."
            raise InputError(complaint(expected="a handle of this curator", of="attached", got="another's", remedy=remedy))
        cells = getattr(ask.question, "cells", None)
        if cells is not None:
            lines_of(cells, self.layout)
        vector = ask.by_cell
        if vector is not None and len(vector) != shape[0]:
            raise InputError(
                complaint(
                    expected=f"{shape[0]} multipliers, one a cell", of="multiplier", got=len(vector), remedy="Count the cells."
                )
            )
        if len(self._sources) > 1 and ask.question.models not in (1, len(self._sources)):
            raise InputError(
                complaint(
                    expected=f"questions about {len(self._sources)} models, as many as there are noise sources",
                    of="answer",
                    got=ask.question.models,
                    remedy="Give one noise source a model, or one for all.",
                )
            )

    def _chosen(self, batch: Batch, number: int) -> Iterator[Block | Drawn]:
        """The rows that are asked. Many models share a Poisson batch, so it comes from the first source."""
        if isinstance(batch, Part):
            return self._rows.part(batch)
        if not isinstance(batch, Poisson):
            return self._rows.blocks()
        stream = self._sources[0].stream("sampling", number)
        return self._rows.of_units(stream.poisson_batch(self._rows.exact_units, batch.rate))

    def _needs(self, jobs: list[Job], shapes: Sequence[tuple[int, ...]], batch: Batch) -> list[noising.NoiseRequest]:
        """The noise of a joint answer: every model's from a stream of its own, named by the release and the question."""
        batched = len(self._sources) > 1
        out: list[noising.NoiseRequest] = []
        for j, ((i, ask, scales, known), (models, *shape)) in enumerate(zip(jobs, shapes, strict=True)):
            sizes = self._sizes(ask, scales, batch) if known is None else known
            for m in range(0 if sizes is None else models):
                assert sizes is not None
                size = sizes[m] if len(sizes) > 1 else sizes[0]
                if type(size) is not float or size > 0.0:
                    path = (i,) if batched or models == 1 else (i, m)
                    out.append(noising.NoiseRequest(j, m, ask, size, tuple(shape), m if batched else 0, path))
        return out

    def _release(self, entry: Entry) -> None:
        if not isinstance(entry.event, NoOp):
            self.log.append(entry)


def _unclipped(question: Question) -> Question:
    """Without privacy nothing is clipped; a loss in [0, 1] has nothing to clip."""
    if isinstance(question, CellwiseQuestion):
        return replace(question, inner=_unclipped(question.inner))
    if isinstance(question, GradientSum):
        return replace(question, clip=None, loss_clip=None)
    if isinstance(question, FeatureSums | GramMatrices | NumberMoments | GroupLosses | NetworkGradient):
        return replace(question, clip=None)
    return question


def _need_type(name: str, value: object, kind: type, remedy: str) -> None:
    if not isinstance(value, kind):
        raise InputError(complaint(expected=f"a {kind.__name__}", of=name, got=type(value).__name__, remedy=remedy))


def _sources(noise: NoiseSource | Sequence[NoiseSource] | None) -> tuple[NoiseSource, ...]:
    if noise is None:
        return (NoiseSource.secure(),)
    sources = (noise,) if isinstance(noise, NoiseSource) else tuple(noise) if isinstance(noise, list | tuple) else ()
    if not sources or not all(isinstance(source, NoiseSource) for source in sources):
        remedy = "Leave noise=None for a secure source, or pass one noise source a model."
        got = type(noise).__name__
        raise InputError(complaint(expected="a NoiseSource, or a list of them", of="noise", got=got, remedy=remedy))
    return sources
