"""What an estimator's `guarantee_` or `certain_` says, in words and numbers, and under which
conditions: for a page.

Every number is a bound on exact values of the training rows, or, where a condition says so, on
exact counts over released ones. Nothing here is private data: guarantees are made of released
values and of the noise's distribution alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..errors import InputError
from ..figures.contents import Unit
from ..figures.scales import FACTOR, minus
from ..figures.words import percent
from .contents import CertainLine, Certainty

if TYPE_CHECKING:
    from ..learning.game.bounds import Guarantee
    from ..learning.group_objective.exponential import Certain
    from ..learning.postprocessing.mixing_bounds import MixingGuarantee

TRAINING_ROWS = (
    "It speaks of the training rows, not of other people: for those see the held-out figures, "
    "where there are any."
)
BY_LAW = (
    "It is about expected rates, of the distribution of decisions: a single draw of all decisions "
    "varies around them."
)
BASE_AS_IT_IS = (
    "The base classifier is taken as it is: what it might have decided otherwise is not compared."
)
NO_TABLE = "not known: no table of chances is certain to keep the bounds"
OF_ITS_CLASS = (
    "The best mixture is that of the oracle's own class of rules. Some mixture of them is assumed "
    "to keep every bound, as a "
    "constant rule does where only gaps are bounded."
)
OF_THE_LIST = (
    "The best decision is that of the same list of decisions, which was fixed without the data. "
    "Where none of them keeps the "
    "bounds, what was chosen is compared with the one that comes nearest to them."
)
OVER_RELEASED = (
    "Rates are taken over the released numbers of rows, without those of so few rows that noise "
    "hides them: a rate over exact "
    "numbers differs by their noise."
)
POINTS: Unit = "points"
UNKNOWN_REGRET = "not known: this oracle's own regret is not"
NO_BOUND = "no bound could be given"


def certain(guarantee: object) -> Certainty:
    """The `guarantee_` of an `OddsPostProcessor` or an `OracleGameClassifier`, or the `certain_` of
    a `GroupObjectiveClassifier` that chose from a list, for `Report(guarantee=...)`.

    >>> from fairveil.learning.postprocessing.mixing_bounds import MixingGuarantee
    >>> bounds = MixingGuarantee(
    ...     0.95, ("a - b",), (0.05,), (0.05,), (0.01,), (0.07,), 0.2, 0.21, 0.02
    ... )
    >>> print(certain(bounds).sentence)
    With probability 95% over the noise of the fit, every constraint's training value is at most 7.0 points.
    """
    from ..learning.game.bounds import Guarantee
    from ..learning.group_objective.exponential import Certain
    from ..learning.postprocessing.mixing_bounds import MixingGuarantee

    if isinstance(guarantee, MixingGuarantee):
        return _of_mixing(guarantee)
    if isinstance(guarantee, Guarantee):
        return _of_game(guarantee)
    if isinstance(guarantee, Certain):
        return _of_choice(guarantee)
    remedy = (
        "Pass clf.guarantee_ of an OddsPostProcessor or an OracleGameClassifier, or clf.certain_ "
        "of a GroupObjectiveClassifier "
        "with method='exponential'; others have none."
    )
    raise InputError.expected(
        "a guarantee", of="guarantee", got=type(guarantee).__name__, remedy=remedy
    )


def _of_mixing(found: MixingGuarantee) -> Certainty:
    over = [
        value - bound
        for value, bound in zip(found.value_bounds, found.bounds, strict=True)
        if not math.isnan(value)
    ]
    return Certainty(
        sentence=f"{_with(found.confidence)}, every constraint's training value is at most "
        f"{_shown(found.gap_bound)}.",
        confidence=found.confidence,
        lines=(
            CertainLine(
                "Largest value of a constraint",
                _known(found.gap_bound),
                _known(found.gap),
                unit=POINTS,
            ),
            CertainLine(
                "Furthest above its bound", _known(max(0.0, max(over, default=0.0))), unit=POINTS
            ),
            CertainLine("Error", _known(found.error_bound), _known(found.error), unit="percent"),
            CertainLine(
                "Error above that of the best table without noise",
                _known(found.excess_bound),
                missing=NO_TABLE,
                unit=POINTS,
            ),
        ),
        conditions=(TRAINING_ROWS, BY_LAW, BASE_AS_IT_IS),
        numbers=found.to_dict(),
    )


def _of_game(found: Guarantee) -> Certainty:
    if math.isfinite(found.gap_excess):
        what = (
            f"no constraint's training value is above its bound by more than "
            f"{_shown(found.gap_excess)}"
        )
    else:
        what = f"the training values of constraints are not bounded: {NO_BOUND}"
    return Certainty(
        sentence=f"{_with(found.confidence)}, {what}.",
        confidence=found.confidence,
        lines=(
            CertainLine(
                "Largest value of a constraint", _known(found.worst), missing=NO_BOUND, unit=POINTS
            ),
            CertainLine(
                "Furthest above its bound", _known(found.gap_excess), missing=NO_BOUND, unit=POINTS
            ),
            CertainLine(
                "Error above that of the best mixture",
                _known(found.error_excess),
                missing=UNKNOWN_REGRET,
                unit=POINTS,
            ),
        ),
        conditions=(TRAINING_ROWS, BY_LAW, OF_ITS_CLASS),
        numbers=found.to_dict(),
    )


def _of_choice(found: Certain) -> Certainty:
    what = f"the objective of the chosen decision is not bounded: {NO_BOUND}"
    if math.isfinite(found.f):
        what = (
            f"the objective of the chosen decision is above that of the best one in the list by at "
            f"most {_shown(found.f)}"
        )
    return Certainty(
        sentence=f"{_with(found.confidence)}, {what}.",
        confidence=found.confidence,
        lines=(
            CertainLine(
                "Objective above that of the best decision that keeps the bounds",
                _known(found.f),
                missing=NO_BOUND,
                unit=POINTS,
            ),
            CertainLine("Furthest above a bound", _known(found.g), missing=NO_BOUND, unit=POINTS),
        ),
        conditions=(TRAINING_ROWS, OF_THE_LIST, OVER_RELEASED),
        numbers={
            "objective": _known(found.f),
            "bound": _known(found.g),
            "confidence": found.confidence,
        },
    )


def _with(confidence: float) -> str:
    return f"With probability {percent(confidence)} over the noise of the fit"


def _shown(value: float) -> str:
    """In percentage points, rounded up: words must not promise more than the number does."""
    return f"{bound_text(value, 'points')} points"


def bound_text(value: float, unit: Unit) -> str:
    """A bound without its unit: rounded up where `number` rounds to the nearest.

    >>> bound_text(0.07031, "points"), bound_text(0.07, "points"), bound_text(0.01234, "plain")
    ('7.1', '7.0', '0.0124')
    """
    if unit == "plain":
        place = 10.0 ** (2 - math.floor(math.log10(abs(value)))) if value else 1.0
        return minus(f"{math.ceil(value * place - 1e-9) / place:.3g}")
    return minus(f"{math.ceil(value * FACTOR[unit] * 10 - 1e-9) / 10:.1f}")


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
