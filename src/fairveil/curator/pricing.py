"""From asks to one event and the scale of its noise: the price and the answer come from the same
place.

Guarantees (tests/curator/test_curator_pricing.py):
1. An event is made of multipliers and public constants only, so `describe` gives before a run what
   the log holds after it.
2. The noise of an answer is multiplier x sensitivity under the promise's relation (full batch), or
   multiplier x largest norm of a row's contribution (Poisson batch, noise that differs by cell),
   and the event counts it in that same unit.
3. Multiplier 0 is accepted only for what nobody's privacy depends on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.bound import OUTWARDS, Bound, product_up
from ..core.events import (
    DiscreteGaussian,
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
from ..core.layout import partition_of
from ..core.promise import Promise
from ..core.rows import FULL, Batch, Full, Part, Poisson
from ..errors import InputError, PrivacyError
from ..facts import RowLayout
from .measurements import Measurement, Measurements, as_measurements
from .question import OwnJob, Question, Scale, need_order_two, of_person
from .questions.attached import AttachedHistogram
from .questions.by_cell import CellwiseQuestion, Weighed, inner_of
from .questions.gradients import GradientSum
from .questions.histograms import PredictionHistogram, ScoreHistogram
from .questions.networks import NetworkGradient
from .questions.of_models import GroupLosses
from .totals.person_pass import scale_by_person
from .totals.public_scale import needs_rows

Deciding = PredictionHistogram | AttachedHistogram | ScoreHistogram


def check_batch(batch: object, promise: Promise) -> None:
    """`Full()`, `Poisson(rate)`, or, where a row that comes cannot move others from part to part,
    `Part(number, parts)`."""
    if not isinstance(batch, Full | Poisson | Part):
        remedy = "Pass Poisson(0.1) for random batches, or leave it out for all rows."
        raise InputError.expected(
            "Full(), Poisson(rate) or Part(number, parts)", of="batch", got=batch, remedy=remedy
        )
    if (
        isinstance(batch, Part)
        and batch.parts > 1
        and promise.is_private
        and not promise.units_are_public
    ):
        raise PrivacyError.expected(
            "Full() or Poisson(rate) under add-remove",
            of="batch",
            got=batch,
            remedy=(
                "A row that comes moves others from part to part, so nobody is in one part "
                "only (theory.md#t8): draw "
                "Poisson(1 / parts), or pass neighbours='replace-one'."
            ),
        )


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
    public = promise.protects == "sensitive_features"
    parts: list[Event] = []
    spreads: list[float] = []
    for measurement in as_measurements(measurements):
        require_unit(measurement, promise)
        known = not (public and needs_rows(measurement.question))
        scale = (
            constant_scale(
                measurement.question, layout, promise, max_sample_weight, measurement.order
            )
            if known
            else None
        )
        if is_free(measurement.question, promise) or (
            scale is not None and _never_moves(scale.bound, promise, batch)
        ):
            continue
        if measurement.is_exact:
            raise PrivacyError.expected(
                "a multiplier above 0",
                of=f"the question {measurement.question.name!r}",
                got=0,
                remedy=(
                    "An exact answer is allowed only to questions that do not read what is "
                    "protected."
                ),
            )
        part = _noise_event(measurement, scale, promise, batch, layout)
        ratio = (
            2.0 if scale is None else min(2.0, scale.bound.diameter / scale.bound.norm * OUTWARDS)
        )
        parts.extend([part] * measurement.question.models)
        spreads.extend([ratio] * measurement.question.models)
    if not parts:
        return NoOp()
    joint = compose(parts)
    if isinstance(batch, Part):
        return OnPart(joint, batch.number, batch.parts)
    # A public or full batch needs no amplification: the event is that of its releases.
    if not isinstance(batch, Poisson):
        return joint
    # exact public parts of the step may show who was drawn: theory.md#t4
    if promise.protects == "sensitive_features":
        return VisiblySampled(batch.rate, joint)
    return PoissonSampled(
        batch.rate, joint, tuple(spreads) if promise.neighbours == "replace-one" else None
    )


def constant_scale(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None, order: int = 2
) -> Scale:
    """Bound and grid under the promise, for a question whose bound is no maximum over public rows.

    Of a person with several rows the bound is that of a row that counts so often, but of gradients:
    a person's are added, and the sum is clipped (theory.md#units).
    """
    if (
        not promise.is_private
        and isinstance(question, NetworkGradient | CellwiseQuestion)
        and isinstance(inner_of(question), NetworkGradient)
    ):
        return question.free_scale(cap)
    alone = promise.protects == "sensitive_features"
    rows = promise.rows_per_unit
    if added_by_person(question, promise):
        need_order_two(order, question.name)
        return scale_by_person(question, layout, cap)
    return of_person(
        (question.scale_of_change if alone else question.scale)(layout, cap, order), rows
    )


def added_by_person(question: Question, promise: Promise) -> bool:
    """Whether a person's contributions are added, and then clipped: gradients, also those told
    apart or weighed by cell."""
    inner = inner_of(question)
    clipped = isinstance(inner, GradientSum | NetworkGradient) and inner.clip is not None
    return clipped and promise.protects == "records" and promise.rows_per_unit > 1


def moved_by_one(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None, order: int = 2
) -> float:
    """How far one who is protected moves the answer to a question whose bound is a constant, for
    plans and reports."""
    rows = promise.rows_per_unit
    if rows > 1 and promise.protects == "records":
        return constant_scale(question, layout, promise, cap, order).bound.sensitivity(
            promise.neighbours
        )
    return of_person(question.scale(layout, cap, order), rows).bound.sensitivity(promise.neighbours)


def largest_of_one(
    question: Question, layout: RowLayout, promise: Promise, cap: float | None
) -> float:
    """The largest norm of what one who is protected adds to the answer, for plans: noise that
    differs by cell is over that."""
    if promise.protects == "records":
        return constant_scale(question, layout, promise, cap).bound.norm
    return of_person(question.scale(layout, cap), promise.rows_per_unit).bound.norm


def require_unit(measurement: Measurement, promise: Promise) -> None:
    """Refuse what is not proved for persons with several rows."""
    if promise.unit is None or not promise.is_private:
        return
    cellwise = isinstance(measurement.question, CellwiseQuestion)
    if cellwise and isinstance(inner_of(measurement.question), NetworkGradient):
        got = "a network, and noise or weights that differ by cell"
        remedy = "Fit a linear or an additive model; or protect rows: unit=None."
        raise PrivacyError.expected(
            "a question that is answered by person",
            of=f"unit {promise.unit.name!r}",
            got=got,
            remedy=remedy,
        )


def _never_moves(bound: Bound, promise: Promise, batch: Batch) -> bool:
    """True of the number of rows under replace-one: every neighbour gives the same answer. Not of a
    secret batch's size."""
    return (
        not isinstance(batch, Poisson)
        and promise.neighbours == "replace-one"
        and bound.diameter == 0.0
    )


def describe_choice(
    question: Question | Sequence[Question], epsilon: float, promise: Promise
) -> Event:
    """The event of `Curator.choose`, by whatever score, for plans. Among candidates that read
    nothing protected it is free."""
    epsilon = _checks.positive(epsilon=epsilon, allow_inf=True)
    if not promise.is_private:
        return NonPrivate()
    if all(is_free(one, promise) for one in as_questions(question)):
        return NoOp()
    if math.isinf(epsilon):
        way_out = "Only epsilon=inf chooses exactly."
        raise PrivacyError.expected("a finite epsilon", of="choose", got=epsilon, remedy=way_out)
    return Exponential(epsilon)


def as_questions(question: object) -> tuple[GroupLosses] | tuple[Deciding, ...]:
    """Whose models a choice is among: one question about losses, or one or several about
    decisions."""
    given = tuple(question) if isinstance(question, list | tuple) else (question,)
    if len(given) == 1 and isinstance(given[0], GroupLosses):
        return (given[0],)
    deciding = tuple(one for one in given if isinstance(one, Deciding))
    if deciding and len(deciding) == len(given):
        return deciding
    raise InputError.expected(
        (
            "a GroupLosses, or histograms of predictions, of scores and of attached "
            "models, one or a list"
        ),
        of="question",
        got=[type(one).__name__ for one in given],
        remedy=("Ask about many models' losses or decisions: GroupLosses(Linear(weights), cells)."),
    )


def unit_size(scale: Scale, promise: Promise, batch: Batch) -> float:
    """What a multiplier multiplies: the sensitivity, or, on a secret Poisson batch, the largest
    norm of one row; outwards."""
    # On a secret batch the neighbour may have a row in it or none: the unit is one row's norm, and
    # how far a replaced row moves is in the event's `spreads` (docs/theory/model.md, multipliers).
    hidden = isinstance(batch, Poisson) and promise.protects == "records"
    return scale.bound.largest if hidden else scale.bound.sensitivity(promise.neighbours)


def _noise_event(
    measurement: Measurement, scale: Scale | None, promise: Promise, batch: Batch, layout: RowLayout
) -> Event:
    vector, question = measurement.by_cell, measurement.question
    if vector is not None:
        if measurement.noise != "gaussian" or not question.has_cells or question.models != 1:
            raise InputError.expected(
                ("Gaussian noise, one model, and an answer by cells that do not overlap"),
                of="a multiplier for each cell",
                got=f"{measurement.noise} noise, {question.name}, {question.models} models",
                remedy=("Use product groups and a question with cells, or one multiplier for all."),
            )
        assert question.cells is not None
        return PerCell(
            (tuple(vector.tolist()),),
            (_within(question, scale, promise),),
            column=partition_of(question.cells, layout),
        )
    multiplier = float(measurement.multiplier)
    if isinstance(question, Weighed) and measurement.noise == "gaussian":
        return _weighed(question, multiplier, promise, batch, layout)
    if measurement.noise == "discrete-gaussian":
        return DiscreteGaussian(multiplier)
    if measurement.noise == "discrete-laplace":
        if isinstance(batch, Poisson):
            raise InputError.expected(
                "Gaussian noise on a Poisson batch",
                of="noise",
                got=measurement.noise,
                remedy="At equal cost it has less noise a cell (theory.md#raco).",
            )
        return DiscreteLaplace(multiplier, laplace_steps(measurement, scale, promise))
    return Gaussian(multiplier)


def _weighed(
    question: Weighed,
    multiplier: float,
    promise: Promise,
    batch: Batch,
    layout: RowLayout,
) -> PerCell:
    """One noise for all, of which a person has the part that her cell's factor gives her."""
    alone, added = promise.protects == "sensitive_features", promise.neighbours == "add-remove"
    hidden = isinstance(batch, Poisson) and not alone
    by_person = added_by_person(question, promise)
    column = partition_of(question.cells, layout)
    found = question.multipliers(
        layout, multiplier, alone=alone, hidden=hidden, added=added, by_person=by_person
    )
    if alone:
        return PerCell((found,), (0.0,), (-1,), column)
    return PerCell((found,), (question.within,), (question.crossing,), column)


def _within(question: Question, scale: Scale | None, promise: Promise) -> float:
    """How far one row moves its own cell: not at all where only sensitive features may change and
    nothing but the cell depends on them."""
    if promise.protects == "sensitive_features" and not isinstance(question, OwnJob):
        return 0.0
    # Of persons a neighbour may have fewer rows in the cell, so one may lose all that she adds
    # there.
    within = (
        max(1.0, question.within) if promise.rows_per_unit > 1 else question.within
    )  # another may have fewer rows
    return min(2.0, within * OUTWARDS + (0.0 if scale is None else scale.slack))


def laplace_steps(measurement: Measurement, scale: Scale | None, promise: Promise) -> int:
    """The L1 sensitivity in grid steps, a whole number: discrete Laplace noise is for counts."""
    steps = (
        0.5
        if scale is None
        else scale.bound.norm
        if promise.neighbours == "add-remove"
        else scale.bound.diameter
    )
    if scale is None or scale.exponent != 0 or steps != int(steps):
        raise InputError.expected(
            "a question that counts whole rows",
            of="discrete Laplace noise",
            got=measurement.question.name,
            remedy="Use noise='gaussian' for sums that are not whole numbers.",
        )
    return int(steps)


def noise_scale(
    measurement: Measurement, scale: Scale, promise: Promise, batch: Batch, shape: tuple[int, ...]
) -> float | Floats:
    """The standard deviation (or Laplace scale) of the noise of one model's answer, in grid
    units."""
    vector = measurement.by_cell
    if vector is not None:
        grid = np.broadcast_to(vector.reshape(-1, *(1,) * (len(shape) - 1)), shape)
        return np.asarray(grid * (scale.bound.largest / scale.unit))
    if measurement.noise == "discrete-laplace":
        return product_up(float(measurement.multiplier), laplace_steps(measurement, scale, promise))
    return math.ldexp(
        float(measurement.multiplier) * unit_size(scale, promise, batch), scale.exponent
    )
