"""What is asked of rows, what it costs, and how much noise it gets: event, bound and noise of an
answer come from one place.

Guarantees (tests/curator/test_curator_pricing.py, test_curator_sensitivity.py):
1. An event is made of multipliers and public constants only, so `describe` gives before a run what
   the log holds after it.
2. The noise of an answer is multiplier x sensitivity under the promise's relation (full batch), or
   multiplier x largest norm of a row's contribution (Poisson batch, noise that differs by cell),
   and the event counts it in that same unit.
3. Multiplier 0 is accepted only for what nobody's privacy depends on.
4. Every bound that noise is made for is stated: its largest value in the run, its reason, and where
   it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import checks
from .attached import AttachedHistogram, ShiftedHistogram
from .bound import OUTWARDS, of_person, product_up
from .by_cell import Weighed, multipliers_of
from .errors import PrivacyError, need
from .events import (
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    NonPrivate,
    NoOp,
    OnPart,
    PerCell,
    PoissonSampled,
    VisiblySampled,
    compose,
)
from .layout import Floats, RowLayout, partition_of
from .passes import is_network, needs_rows, public_scales
from .promise import Promise, Protects
from .questions import ALONE, NOBODY, PERSONS, RECORDS, Facts, Question, Scale
from .rows import FULL, Batch, Full, Part, Poisson, Rows
from .sums import GroupLosses, PredictionHistogram, ScoreHistogram

DECIDING = (PredictionHistogram, AttachedHistogram, ShiftedHistogram, ScoreHistogram)
NOISES = ("gaussian", "discrete-laplace")
LARGEST_MULTIPLIER = 2.0**18
"""Beyond, an answer is noise and nothing else; the exact sampler ends at 2^50 grid units."""


# -- what is asked ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Measurement:
    """A question and its price: a noise multiplier, one for all or one a cell (tailored
    budgets)."""

    question: Question
    multiplier: Any
    noise: str = "gaussian"

    def __post_init__(self) -> None:
        if self.noise not in NOISES:
            checks.one_of(NOISES, noise=self.noise)
        given = self.multiplier
        if type(given) is float and 0.0 <= given <= LARGEST_MULTIPLIER:  # the common case
            return
        try:
            values = np.empty(0) if isinstance(given, str) else np.asarray(given, np.float64)
        except (TypeError, ValueError, OverflowError):
            values = np.empty(0)
        right = values.ndim < 2 and values.size and (values <= LARGEST_MULTIPLIER).all()
        right = right and ((values == 0).all() or (values > 0).all())
        words = "0, or numbers above 0 and at most 2^18, one for all or one a cell"
        fix = "A multiplier is the noise over the sensitivity; calibrate it to a guarantee."
        need(right, words, of="multiplier", got=given, fix=fix)
        if values.ndim == 0:
            checks.normalise(self, multiplier=float(values))

    def about(self, question: Question) -> Measurement:
        """The same price for a question of the same key (`Question.at`): a round of a run."""
        same, fix = question.key is self.question.key, "Make a new Measurement."
        need(same, "a question made by `at`", of="question", got=question.name, fix=fix)
        other = object.__new__(Measurement)
        other.__dict__.update(self.__dict__, question=question, key=self.key)
        return other

    @property
    def is_exact(self) -> bool:
        """Multiplier 0: no noise is asked for."""
        return bool((np.asarray(self.multiplier) == 0).all())

    @cached_property
    def key(self) -> tuple[Hashable, ...]:
        """All that the measurement's event and bound depend on."""
        vector = self.by_cell
        multiplier = self.multiplier if vector is None else tuple(vector.tolist())
        return (*self.question.key, self.noise, multiplier)

    @property
    def by_cell(self) -> Floats | None:
        """The vector of multipliers, when there is one."""
        one = isinstance(self.multiplier, float) or np.ndim(self.multiplier) != 1
        return None if one else np.asarray(self.multiplier, np.float64)

    @property
    def order(self) -> int:
        """The norm that the noise asks for."""
        return 1 if self.noise == "discrete-laplace" else 2

    @property
    def is_many(self) -> bool:
        """Whether its answer has a leading model axis."""
        return self.question.many


Measurements = Iterable[Measurement | tuple[Question, Any]]
"""A pair: a question, and its multiplier."""


def as_measurements(measurements: Measurements) -> list[Measurement]:
    """Measurements, from themselves or from pairs (question, multiplier)."""
    out: list[Measurement] = []
    given: Iterable[object] = measurements
    for one in given:
        pair = isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], Question)
        expected = "pairs (question, multiplier), or Measurements"
        fix = "Write answer([(CellCounts(cells), 20.0)]), for example."
        right, got = pair or isinstance(one, Measurement), type(one).__name__
        need(right, expected, of="measurements", got=got, fix=fix)
        out.append(one if isinstance(one, Measurement) else Measurement(*one))  # type: ignore[misc]
    need(out, "at least one question", of="measurements", got=[], fix="Ask something.")
    return out


def as_questions(question: object) -> tuple[Question, ...]:
    """Whose models a choice is among: one question about losses, or one or several about
    decisions."""
    given = tuple(question) if isinstance(question, list | tuple) else (question,)
    found = tuple(one for one in given if isinstance(one, Question))
    losses = len(found) == 1 and found[0].kind is GroupLosses
    right = len(found) == len(given) > 0
    right = right and (losses or all(one.kind in DECIDING for one in found))
    words = "a GroupLosses, or histograms of predictions, of scores and of attached models, one or "
    fix = "Ask about many models' losses or decisions: GroupLosses(Linear(weights), cells)."
    got = [one.name if isinstance(one, Question) else type(one).__name__ for one in given]
    need(right, f"{words}a list", of="question", got=got, fix=fix)
    return found


# -- what it costs ---------------------------------------------------------------------------------


def check_batch(batch: object, promise: Promise) -> None:
    """`Full()`, `Poisson(rate)`, or, where a row that comes cannot move others from part to part,
    `Part(number, parts)`."""
    fix = "Pass Poisson(0.1) for random batches, or leave it out for all rows."
    known = isinstance(batch, Full | Poisson | Part)
    need(known, "Full(), Poisson(rate) or Part(number, parts)", of="batch", got=batch, fix=fix)
    moves = isinstance(batch, Part) and batch.parts > 1 and promise.is_private
    if moves and not promise.units_are_public:
        fix = (
            "A row that comes moves others from part to part, so nobody is in one part only "
            "(theory.md#t8): draw Poisson(1 / parts), or pass neighbours='replace-one'."
        )
        words = "Full() or Poisson(rate) under add-remove"
        raise PrivacyError.expected(words, of="batch", got=batch, remedy=fix)


def require_features_apart(layout: RowLayout, protects: Protects) -> None:
    """Features are public where sensitive ones alone are protected: none may be one of those."""
    apart = protects != "sensitive_features" or not layout.sensitive_as_features
    words = "features without the sensitive columns that are protected"
    fix = "Code the rows without sensitive_as_feature=True, or pass protects='records'."
    got = list(layout.sensitive_as_features)
    need(apart, words, of="rows", got=got, fix=fix, error=PrivacyError)


def is_free(question: Question, promise: Promise) -> bool:
    """Whether no neighbour can move the answer: it does not read what is protected."""
    if promise.protects == "sensitive_features":
        return "sensitive" not in question.reads
    return False


def describe(
    measurements: Measurements,
    layout: RowLayout,
    promise: Promise,
    batch: Batch = FULL,
    *,
    max_sample_weight: float | None = None,
) -> Event:
    """The one event of a joint answer, before any data are read: for plans that are priced
    in advance.

    `max_sample_weight`: the cap, where rows have weights; None where every row counts once.

    Where the rows are public and a sensitivity is the largest over them, multipliers say all that
    an event needs.
    """
    check_batch(batch, promise)
    if not promise.is_private:
        return NonPrivate()
    alone, replaced = promise.protects == "sensitive_features", promise.neighbours == "replace-one"
    parts, spreads, cap = list[Event](), list[float](), max_sample_weight
    for one in as_measurements(measurements):
        question, scale = one.question, None
        _need_proof_for_persons(question, promise)
        if not (alone and needs_rows(question, layout)):
            scale = constant_scale(question, layout, promise, cap, one.order)
        # of the number of rows every neighbour by replacement gives one answer; of a batch's not
        still = scale is not None and replaced and scale.bound.diameter == 0.0
        if is_free(question, promise) or (still and not isinstance(batch, Poisson)):
            continue
        if one.is_exact:
            fix = "An exact answer is allowed only to questions that do not read what is protected."
            of = f"the question {question.name!r}"
            raise PrivacyError.expected("a multiplier above 0", of=of, got=0, remedy=fix)
        event = _noise_event(one, scale, promise, batch, layout)
        far = 2.0 if scale is None else scale.bound.diameter / scale.bound.norm * OUTWARDS
        parts.extend([event] * question.models)
        spreads.extend([min(2.0, far)] * question.models)
    if not parts:
        return NoOp()
    joint = compose(parts)
    if isinstance(batch, Part):
        return OnPart(joint, batch.number, batch.parts)
    # A public or full batch needs no amplification: the event is that of its releases.
    if not isinstance(batch, Poisson):
        return joint
    # exact public parts of the step may show who was drawn: theory.md#t4
    if alone:
        return VisiblySampled(batch.rate, joint)
    return PoissonSampled(batch.rate, joint, tuple(spreads) if replaced else None)


def describe_choice(
    question: Question | Sequence[Question], epsilon: float, promise: Promise
) -> Event:
    """The event of `Curator.choose`, by whatever score, for plans. Among candidates that read
    nothing protected it is free."""
    epsilon = checks.positive(epsilon=epsilon, allow_inf=True)
    if not promise.is_private:
        return NonPrivate()
    if all(is_free(one, promise) for one in as_questions(question)):
        return NoOp()
    finite, fix = not math.isinf(epsilon), "Only epsilon=inf chooses exactly."
    need(finite, "a finite epsilon", of="choose", got=epsilon, fix=fix, error=PrivacyError)
    return Exponential(epsilon)


def _need_proof_for_persons(question: Question, promise: Promise) -> None:
    """Refuse what is not proved for persons with several rows."""
    if promise.unit is None or not promise.is_private or question.inner is None:
        return
    words, of = "a question that is answered by person", f"unit {promise.unit.name!r}"
    got = "a network, and noise or weights that differ by cell"
    fix = "Fit a linear or an additive model; or protect rows: unit=None."
    proved = not is_network(question)
    need(proved, words, of=of, got=got, fix=fix, error=PrivacyError)


def _noise_event(
    one: Measurement, scale: Scale | None, promise: Promise, batch: Batch, layout: RowLayout
) -> Event:
    vector, question = one.by_cell, one.question
    if vector is not None:
        right = one.noise == "gaussian" and question.has_cells and question.models == 1
        words = "Gaussian noise, one model, and an answer by cells that do not overlap"
        got = f"{one.noise} noise, {question.name}, {question.models} models"
        fix = "Use product groups and a question with cells, or one multiplier for all."
        need(right, words, of="a multiplier for each cell", got=got, fix=fix)
        assert question.cells is not None
        within = _within(question, scale, promise, layout)
        column = partition_of(question.cells, layout)
        return PerCell((tuple(vector.tolist()),), (within,), column=column)
    multiplier = float(one.multiplier)
    if one.noise == "discrete-laplace":
        fix = "At equal cost it has less noise a cell (theory.md#raco)."
        words, plain = "Gaussian noise on a Poisson batch", not isinstance(batch, Poisson)
        need(plain, words, of="noise", got=one.noise, fix=fix)
        return DiscreteLaplace(multiplier, laplace_steps(one, scale, promise))
    if question.kind is not Weighed:
        return Gaussian(multiplier)
    # one noise for all, of which a person has the part that her cell's factor gives her
    alone, column = promise.protects == "sensitive_features", partition_of(question.cells, layout)
    under = PERSONS if added_by_person(question, promise) else ALONE if alone else RECORDS
    weighed = question.sum(Facts(layout, under, one_group=True))
    hidden, added = isinstance(batch, Poisson) and not alone, promise.neighbours == "add-remove"
    found = multipliers_of(weighed, multiplier, alone=alone, hidden=hidden, added=added)
    if alone:
        return PerCell((found,), (0.0,), (-1,), column)
    return PerCell((found,), (weighed.within,), (weighed.crossing,), column)


def _within(question: Question, scale: Scale | None, promise: Promise, layout: RowLayout) -> float:
    """How far one row moves its own cell: not at all where only sensitive features may change and
    nothing but the cell depends on them."""
    one = question.of_layout(layout)
    if promise.protects == "sensitive_features" and not one.is_own:
        return 0.0
    # Of persons a neighbour may have fewer rows in the cell, so one may lose all that she adds
    # there.
    least = 1.0 if promise.rows_per_unit > 1 else 0.0
    slack = 0.0 if scale is None else scale.slack
    return min(2.0, max(least, one.within) * OUTWARDS + slack)


# -- how far one who is protected moves it ---------------------------------------------------------


def constant_scale(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None, order: int = 2
) -> Scale:
    """Bound and grid under the promise, for a question whose bound is no maximum over public rows.

    Of a person with several rows the bound is that of a row that counts so often, but of gradients:
    a person's are added, and the sum is clipped (theory.md#units).
    """
    alone, rows = promise.protects == "sensitive_features", promise.rows_per_unit
    if added_by_person(question, promise):
        return question.scale(layout, cap, order, PERSONS)
    under = NOBODY if not promise.is_private else ALONE if alone else RECORDS
    return of_persons(question.scale(layout, cap, order, under), rows)


def of_persons(scale: Scale, rows: int) -> Scale:
    """The scale of a person with at most so many rows, of one of a row (theory.md#units)."""
    return scale if rows == 1 else replace(scale, bound=of_person(scale.bound, rows))


def adds_by_person(promise: Promise) -> bool:
    """Whether a person's gradients are added before they are clipped: not where loss and features
    are public."""
    return promise.protects == "records" and promise.rows_per_unit > 1


def added_by_person(question: Question, promise: Promise) -> bool:
    """Whether a person's contributions are added, and then clipped: gradients, also those told
    apart or weighed by cell."""
    inner = question.innermost
    clipped = inner.kind.is_gradient and inner.clip is not None
    return clipped and adds_by_person(promise)


def moved_by_one(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None, order: int = 2
) -> float:
    """How far one who is protected moves the answer to a question whose bound is a constant, for
    plans and reports."""
    if adds_by_person(promise):
        scale = constant_scale(question, layout, promise, cap, order)
    else:
        scale = of_persons(question.scale(layout, cap, order), promise.rows_per_unit)
    return scale.bound.sensitivity(promise.neighbours)


def largest_of_one(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None
) -> float:
    """The largest norm of what one who is protected adds to the answer, for plans: noise that
    differs by cell is over that."""
    if promise.protects == "records":
        return constant_scale(question, layout, promise, cap).bound.norm
    return of_persons(question.scale(layout, cap), promise.rows_per_unit).bound.norm


def cap_of(rows: Rows, promise: Promise) -> float | None:
    """The largest weight of a row; None where each counts once."""
    if not rows.weighted:
        return None
    return rows.max_sample_weight if promise.is_private else max(rows.largest_weight, 1e-300)


class Bounds:
    """Scales of asks about these rows, under this promise. Constants are kept; maxima over public
    rows are found each time.

    `state`: is told question, norm, sensitivity, reason and origin of each bound that noise is made
    for. `stated_clips`: the clips that the caller chose; None where all are the caller's.
    """

    def __init__(
        self,
        rows: Rows,
        promise: Promise,
        state: Callable[[str, str, float, str, str], None],
        stated_clips: Sequence[float] | None,
        threads: int | None,
    ) -> None:
        self._rows, self._promise, self._state = rows, promise, state
        self._stated_clips, self._threads = stated_clips, threads
        self.known: dict[tuple[object, ...], list[Scale]] = {}
        self.cap = cap_of(rows, promise)

    def rescaled(self, rows: Rows) -> None:
        """The numbers of the rows have other units from now on."""
        self._rows = rows
        self.known.clear()

    def scales(self, one: Measurement) -> list[Scale]:
        """Bound and grid: one for all models, or, where they are maxima over public rows, one a
        model."""
        question, promise, key = one.question, self._promise, one.key
        free = is_free(question, promise) or not promise.is_private
        public = promise.features_are_public and needs_rows(question, self._rows.layout)
        if not public and key in self.known:
            return self.known[key]
        if public:
            scales = public_scales(
                question, self._rows, one.order, exact=free, threads=self._threads
            )
            scales = [of_persons(scale, self._rows.most_of_one) for scale in scales]
            why, origin = "largest over the public rows and all listed groups", "public features"
        else:
            scales = [constant_scale(question, self._rows.layout, promise, self.cap, one.order)]
            self.known[key], clip = scales, question.clipped_to
            named = self._stated_clips is None or clip in self._stated_clips
            origin = "argument" if named else "library default"
            origin, why = "by definition" if clip is None else origin, ""
        if not free:
            moved = max(scale.bound.sensitivity(promise.neighbours) for scale in scales)
            why = why or self._why(question)
            self._state(question.name, f"L{one.order}", moved, why, origin)
        return scales

    def _why(self, question: Question) -> str:
        rows, inner = self._promise.rows_per_unit, question.innermost
        if rows == 1:
            return question.why
        if adds_by_person(self._promise) and inner.kind.is_gradient:
            return f"a person's gradients are added, and the sum is clipped to norm {inner.clip:g}"
        one = ", all counted in one group" if self._rows.one_group else ""
        return f"{question.why}; a person has at most {rows} rows{one}"


# -- how much noise it gets ------------------------------------------------------------------------


def unit_size(scale: Scale, promise: Promise, batch: Batch) -> float:
    """What a multiplier multiplies: the sensitivity, or, on a secret Poisson batch, the largest
    norm of one row; outwards."""
    # On a secret batch the neighbour may have a row in it or none: the unit is one row's norm, and
    # how far a replaced row moves is in the event's `spreads` (docs/theory/model.md, multipliers).
    hidden = isinstance(batch, Poisson) and promise.protects == "records"
    return scale.bound.largest if hidden else scale.bound.sensitivity(promise.neighbours)


def laplace_steps(one: Measurement, scale: Scale | None, promise: Promise) -> int:
    """The L1 sensitivity in grid steps, a whole number: discrete Laplace noise is for counts."""
    steps, added = 0.5, promise.neighbours == "add-remove"
    if scale is not None and scale.exponent == 0:
        steps = scale.bound.norm if added else scale.bound.diameter
    words, of = "a question that counts whole rows", "discrete Laplace noise"
    fix = "Use noise='gaussian' for sums that are not whole numbers."
    need(steps == int(steps), words, of=of, got=one.question.name, fix=fix)
    return int(steps)


def noise_scale(
    one: Measurement, scale: Scale, promise: Promise, batch: Batch, shape: tuple[int, ...]
) -> float | Floats:
    """The standard deviation (or Laplace scale) of the noise of one model's answer, in grid
    units."""
    vector = one.by_cell
    if vector is not None:
        grid = np.broadcast_to(vector.reshape(-1, *(1,) * (len(shape) - 1)), shape)
        return np.asarray(grid * (scale.bound.largest / scale.unit))
    multiplier = float(one.multiplier)
    if one.noise == "discrete-laplace":
        return product_up(multiplier, laplace_steps(one, scale, promise))
    return math.ldexp(multiplier * unit_size(scale, promise, batch), scale.exponent)
