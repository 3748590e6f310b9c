"""How far one who is protected moves the answer to a measurement, and on which grid: found once,
and stated in the run's books.

Guarantee (tests/curator/test_curator_sensitivity.py):
1. Every bound that noise is made for is stated: its largest value in the run, its reason, and where
   it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.promise import Promise
from ..core.rows import Rows
from ..statement.document import Origin, StatedBound
from . import pricing
from .books import Books
from .measurements import Measurement
from .question import Question, Scale, of_person
from .questions.by_cell import inner_of
from .questions.gradients import GradientSum
from .questions.networks import NetworkGradient
from .totals import public_scale


class Bounds:
    """Scales of asks about these rows, under this promise. Constants are kept; maxima over public
    rows are found each time.

    `stated_clips`: the clips that the caller chose; None where all are the caller's.
    """

    def __init__(
        self,
        rows: Rows,
        promise: Promise,
        books: Books,
        stated_clips: Sequence[float] | None,
        threads: int | None,
    ) -> None:
        self._rows, self._promise, self._books = rows, promise, books
        self._stated_clips, self._threads = stated_clips, threads
        self.known: dict[tuple[object, ...], list[Scale]] = {}

    def rescaled(self, rows: Rows) -> None:
        """The numbers of the rows have other units from now on."""
        self._rows = rows
        self.known.clear()

    @property
    def cap(self) -> float | None:
        """The largest weight of a row; None where each counts once."""
        return cap_of(self._rows, self._promise)

    def scales(self, measurement: Measurement) -> list[Scale]:
        """Bound and grid: one for all models, or, where they are maxima over public rows, one a
        model."""
        question = measurement.question
        free = pricing.is_free(question, self._promise) or not self._promise.is_private
        if self._promise.features_are_public and public_scale.needs_rows(question):
            scales = public_scale.of(
                question, self._rows, measurement.order, exact=free, threads=self._threads
            )
            scales = [of_person(scale, self._rows.most_of_one) for scale in scales]
            if not free:
                self._state(
                    measurement,
                    scales,
                    "largest over the public rows and all listed groups",
                    "public features",
                )
            return scales
        key = measurement.key
        if key not in self.known:
            self.known[key] = [
                pricing.constant_scale(
                    question, self._rows.layout, self._promise, self.cap, measurement.order
                )
            ]
            if not free:
                self._state(
                    measurement, self.known[key], self._why(question), self._origin_of(question)
                )
        return self.known[key]

    def _origin_of(self, question: Question) -> Origin:
        """Of a bound that is a constant: a caller's clip, a clip that the library chose, or what
        the question is."""
        clip = question.clipped_to
        if clip is None:
            return "by definition"
        return (
            "argument"
            if self._stated_clips is None or clip in self._stated_clips
            else "library default"
        )

    def _why(self, question: Question) -> str:
        rows = self._promise.rows_per_unit
        if rows == 1:
            return question.why
        one = ", all counted in one group" if self._rows.one_group else ""
        inner = inner_of(question)
        if adds_by_person(self._promise) and isinstance(inner, GradientSum | NetworkGradient):
            return f"a person's gradients are added, and the sum is clipped to norm {inner.clip:g}"
        return f"{question.why}; a person has at most {rows} rows{one}"

    def _state(
        self, measurement: Measurement, scales: list[Scale], reason: str, origin: Origin
    ) -> None:
        """For the statement: the largest over a measurement's models."""
        moved = max(scale.bound.sensitivity(self._promise.neighbours) for scale in scales)
        self._books.state(
            StatedBound(measurement.question.name, f"L{measurement.order}", moved, reason, origin)
        )


def adds_by_person(promise: Promise) -> bool:
    """Whether a person's gradients are added before they are clipped: not where loss and features
    are public."""
    return promise.protects == "records" and promise.rows_per_unit > 1


def cap_of(rows: Rows, promise: Promise) -> float | None:
    """The largest weight of a row; None where each counts once."""
    if not rows.weighted:
        return None
    if not promise.is_private:
        return max(rows.largest_weight, 1e-300)
    return rows.max_sample_weight
