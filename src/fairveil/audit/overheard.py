"""What the curators of one fit released, kept by curator; and its score: the likelihood ratio, as
far as that is known.

Guarantees (tests/audit/test_audit_targets.py):
1. The score of a run is a function of released answers, the two tables and the promise.
2. Curators whose questions are bound to their own rows (models made elsewhere, user code) are not
   scored: what they released is handed on as it is, to be projected on the line that parts pilot
   runs best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._types import Floats
from ..core.promise import Promise
from ..curator import AttachedHistogram, AttachedLosses, CodeHistogram, RowFunction
from ..curator.journal.listening import Scalings
from ..curator.measurements import Measurement
from ..curator.questions.by_cell import inner_of
from ..curator.rows.rows import Rows
from ..curator.rows.sampling import Batch, Part, Poisson
from .noise import Residual
from .witness import Heard, Witness

BOUND = (AttachedHistogram, AttachedLosses, CodeHistogram, RowFunction)


class Overheard:
    """A listener: the rows of each curator that was made, and what it released."""

    def __init__(self) -> None:
        self.rows: list[Rows] = []
        self.heard: list[list[Heard]] = []

    def opened(self, rows: Rows) -> None:
        self.rows.append(rows)
        self.heard.append([])

    def answered(
        self,
        measurements: Sequence[Measurement],
        batch: Batch,
        answers: Sequence[Floats],
        scalings: Scalings,
    ) -> None:
        self.heard[-1].append(
            Heard(
                tuple(measurements), batch, tuple(np.array(values) for values in answers), scalings
            )
        )

    @property
    def batches(self) -> set[type]:
        """Of which kinds the batches were."""
        return {type(one.batch) for book in self.heard for one in book}

    @property
    def questions(self) -> set[str]:
        """What was asked, by name: of sums told apart or weighed by group what is added there."""
        measurements = (
            measurement for book in self.heard for one in book for measurement in one.measurements
        )
        return {inner_of(measurement.question).name for measurement in measurements}


class Reader:
    """Scores runs on either table of a pair: made of one run on each, and of one on the rows that
    both hold."""

    def __init__(
        self, here: Overheard, there: Overheard, common: Overheard | None, promise: Promise
    ) -> None:
        self.witnesses: list[Witness | None] = []
        for at, (one, other) in enumerate(zip(here.rows, there.rows, strict=True)):
            shared = None if common is None else common.rows[at]
            known = can_be_scored([*here.heard[at], *there.heard[at]], promise, shared is not None)
            made = Witness(
                one, other, promise, common=shared if promise.neighbours == "replace-one" else None
            )
            self.witnesses.append(made if known else None)

    @property
    def is_exact(self) -> bool:
        """Whether all that is released is scored by its likelihood ratio."""
        return all(one is not None for one in self.witnesses)

    def distance(self, run: Overheard) -> float:
        """Of the scored curators; 0 where none is."""
        pairs = zip(self.witnesses, run.heard, strict=True)
        return float(
            np.sqrt(sum(one.distance(book) ** 2 for one, book in pairs if one is not None))
        )

    def residual(self, run: Overheard, *, there: bool) -> Residual:
        """The noise of a run, as far as it is known, and how far the other table is."""
        pairs = zip(self.witnesses, run.heard, strict=True)
        found = [one.residual(book, there=there) for one, book in pairs if one is not None]
        noise, towards = [one.noise for one in found], [one.towards for one in found]
        none = np.zeros(0)
        return Residual(np.concatenate([none, *noise]), np.concatenate([none, *towards]))

    def released(self, run: Overheard) -> Floats:
        """The log likelihood ratio of what is scored, then what is not."""
        ratio, rest = 0.0, [np.zeros(0)]
        for one, book in zip(self.witnesses, run.heard, strict=True):
            if one is not None:
                ratio += float(one.score(book))
            else:
                rest += [values.ravel() for heard in book for values in heard.answers]
        return np.concatenate([[ratio], *rest])


def can_be_scored(heard: list[Heard], promise: Promise, common: bool) -> bool:
    asked = [measurement.question for one in heard for measurement in one.measurements]
    if any(isinstance(inner_of(question), BOUND) or question.models != 1 for question in asked):
        return False
    secret = any(isinstance(one.batch, Poisson) and one.batch.rate < 1 for one in heard)
    if secret and (
        promise.protects != "records" or (promise.neighbours == "replace-one" and not common)
    ):
        return False
    return not any(isinstance(one.batch, Part) for one in heard)
