"""What a private choice is drawn from: weights, costs or scores, and how far scores may move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from .. import _checks
from ..core.promise import Promise
from ..errors import InputError
from .bounds import Bounds
from .choices import by_decisions as decisions
from .choices import by_function as choice_by_function
from .choices import choice
from .choices.by_function import Score
from .measurements import Measurement
from .pricing import Deciding
from .questions.of_models import GroupLosses
from .quiet.calls import Troubles
from .rows.refusals import MOST_ROWS
from .rows.rows import Rows
from .totals import public_scale


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Context:
    """What a curator scores candidates with."""

    rows: Rows
    promise: Promise
    bounds: Bounds
    decided: decisions.HistogramCache
    troubles: Troubles
    threads: int | None


def contest_of(
    context: Context,
    asked: tuple[GroupLosses] | tuple[Deciding, ...],
    cell_weights: Any,
    costs: object,
    score: Score | None,
) -> choice.ExponentialMechanism | choice_by_function.FunctionContest:
    """Scores and their range; what is wrong with weights, costs or slopes is an error before
    anything is charged."""
    question, rows, losses = asked[0], context.rows, isinstance(asked[0], GroupLosses)
    for name, given, fits in (
        ("cell_weights", cell_weights, losses),
        ("costs", costs, not losses),
    ):
        if given is not None and (score is not None or not fits):
            remedy = (
                "Losses are weighed by cell_weights, decisions have costs, and a score stands "
                "alone."
            )
            raise InputError.expected(
                f"none, for {question.name}", of=name, got=given, remedy=remedy
            )
    if score is not None:
        _checks.instance(Score, "score", score, "Pass Score(function, lowest, highest).")
    most, n = (
        rows.exact_count
        if context.promise.features_are_public or context.promise.rows_are_public
        else MOST_ROWS,
        context.threads,
    )
    if not isinstance(question, GroupLosses):
        deciding, cap = cast(tuple[Deciding, ...], asked), context.bounds.cap
        table = decisions.CandidateTable(deciding, context.decided, rows, cap, n)
        if score is not None:
            return decisions.by_score(table, score, context.promise, most, context.troubles)
        return decisions.by_decisions(table, costs, context.promise, most)
    scales = context.bounds.scales(Measurement(question, 1.0))
    scale = scales[0] if len(scales) == 1 else public_scale.shared(scales, question, rows)
    if score is not None:
        head = (question, score, scale, rows, context.promise, context.troubles)
        return choice_by_function.by_losses(*head, most_rows=most, threads=n)
    return choice.by_losses(
        question, cell_weights, scale, rows, context.promise, most_rows=most, threads=n
    )
