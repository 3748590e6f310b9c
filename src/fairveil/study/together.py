"""What all models of a frontier share: one price, one statement, and how each is measured on
held-out rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from .._types import Floats
from ..core.events import Event
from ..core.promise import Promise
from ..metrics.tables import largest, wilson
from ..privacy import epsilon as price
from ..show.numbers import at_most
from ..statement.document import ARITHMETICS, PrivacyStatement, StatedBound
from .families import Judge
from .held_out import error_of
from .result_contents import Key
from .runs import CONFIDENCE, Run

SHARED = (
    "models of one seed share their noise: the price of all of them together is that of secure "
    "noise alone (seeds=None)"
)


def promise_of_all(promises: Sequence[Promise], events: Sequence[Event]) -> Promise:
    """What models together keep; not private where one of them is not."""
    promise, spent = promises[0], math.inf
    if all(one.is_private for one in promises):
        spent = price(events, promise.delta, promise.neighbours) * (1.0 + 1e-9)
    return dataclasses.replace(promise, epsilon=max(spent, *(one.epsilon for one in promises)))


def tuning_of(keys: Iterable[Key], whole: Promise) -> str:
    """What each model's statement says of the others."""
    listed = list(keys)
    epsilons, gaps, seeds = (len({key[place] for key in listed}) for place in range(3))
    grid = (
        f"one of {len(listed)} models of a frontier ({epsilons} epsilons, {gaps} gaps, {seeds} "
        f"seeds)"
    )
    cost = (
        f"epsilon {at_most(whole.epsilon)} at delta {whole.delta:g}"
        if whole.is_private
        else "what no guarantee covers"
    )
    return f"{grid}; whoever saw them all, or chose this one by what was seen, was shown {cost}"


def held_out_words(rows: int) -> str:
    """What is not covered beside the models."""
    return (
        f"exact errors and gaps of {rows} held-out rows, shown beside the models: no guarantee "
        f"covers those rows"
    )


def statement_of_all(
    stated: Sequence[PrivacyStatement], events: Sequence[Event], whole: Promise
) -> PrivacyStatement:
    """The statement of all models together."""
    bounds: dict[str, StatedBound] = {}
    for bound in (bound for statement in stated for bound in statement.bounds):
        if bound.question not in bounds or bound.sensitivity > bounds[bound.question].sensitivity:
            bounds[bound.question] = bound
    secure = all(statement.noise == "secure" for statement in stated)
    not_covered = dict.fromkeys(
        sentence for statement in stated for sentence in statement.not_covered
    )
    together = PrivacyStatement.of(
        whole,
        events,
        plan=events if whole.is_private else None,
        facts=stated[0].facts,
        bounds=bounds.values(),
        not_covered=[*not_covered, *([] if secure else [SHARED])],
        tuning=f"the price of all {len(stated)} models of a frontier together: any of them may be "
        f"chosen by what was seen",
        noise="secure" if secure else "seeded",
        arithmetic=max(
            (statement.arithmetic for statement in stated), key=ARITHMETICS.index, default="exact"
        ),
        user_code=next(
            (statement.user_code for statement in stated if statement.user_code != "none"), "none"
        ),
        ledger=max(
            (one.ledger for one in stated if one.ledger is not None),
            key=lambda one: one.entry,
            default=None,
        ),
    )
    notes = dict.fromkeys(sentence for statement in stated for sentence in statement.notes)
    return dataclasses.replace(together, notes=tuple(notes))


def measured(run: Run, judge: Judge, histogram: Floats) -> Run:
    """The same with error and gap of held-out rows by (cell, label, decision)."""
    values = judge.system.exact_values(histogram, histogram.sum(axis=-1))
    error, rows = error_of(histogram), float(histogram.sum())
    below, above = wilson(error, rows, CONFIDENCE)
    _, low, high = largest(
        judge.system, histogram.sum(axis=-1), histogram, CONFIDENCE, chosen=judge.swept
    )
    return dataclasses.replace(
        run,
        error=error,
        gap=defined(judge.gap(values)),
        excess=defined(judge.excess(values)),
        error_low=below,
        error_high=above,
        gap_low=defined(low),
        gap_high=defined(high),
    )


def defined(value: float) -> float | None:
    """None of a value that is undefined."""
    return None if math.isnan(value) else value
