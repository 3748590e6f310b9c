"""A curator without rows: it prices what it is asked, and answers made-up numbers. What it was
asked in the end is the plan of the run.

Guarantees (tests/curator/test_curator_trace.py)
    1. An event of a trace is the event that a curator with such rows would log.
    2. Nothing is read: there are no rows. That a search asks the same whatever it is answered is
       the search's to keep; two traces with other numbers show whether it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._types import Floats
from ..core.events import Event, NonPrivate, compose
from ..core.promise import Promise
from ..core.rows import FULL, Batch
from ..facts import Cells, RowLayout
from . import pricing
from .measurements import Measurement, Measurements, as_measurements
from .prepared import is_many
from .public_table import PublicTable
from .question import Question
from .questions.attached import Attached
from .questions.of_rows import RowCount

MadeUp = Callable[[tuple[int, ...], int], Floats]
"""From the shape of an answer and the number of its release to numbers."""


def hundreds(shape: tuple[int, ...], number: int) -> Floats:
    """The answers of a trace, unless others are made up."""
    return np.full(shape, 100.0)


@dataclass(frozen=True, eq=False)
class Asked:
    """One release of a trace: its measurements (none of a choice), its event, on which rows."""

    measurements: tuple[Measurement, ...]
    event: Event
    batch: Batch
    purpose: str


class Trace:
    """What a search asks of a curator, event by event, without rows.

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
        self.scalings = tuple[tuple[Floats, Floats], ...]()
        self._cap, self._rows = max_sample_weight, public_rows
        self._made_up = made_up or hundreds
        self._priced = dict[Any, Event]()

    @property
    def plan(self) -> Event | None:
        """Everything that was asked so far, as one event; None without privacy."""
        return compose([one.event for one in self.asked]) if self.promise.is_private else None

    def repriced(self, multiplier: Callable[[Measurement], Any]) -> Event:
        """The same run at other multipliers: for a search of the noise that a budget allows, which
        need not be traced again."""
        found = dict[Any, Event]()
        events = []
        for one in self.asked:
            if not one.measurements:
                events.append(one.event)
                continue
            key = (one.batch, *[part.key for part in one.measurements])
            if key not in found:
                again = [
                    Measurement(part.question, multiplier(part), part.noise)
                    for part in one.measurements
                ]
                found[key] = self.describe(again, one.batch)
            events.append(found[key])
        return compose(events)

    @property
    def public_rows(self) -> int:
        """The number of rows that averages divide by."""
        return 1000 if self._rows is None else self._rows

    def cells(self, mode: str = "product", names: Sequence[str] | None = None) -> Cells:
        """The cells of the sensitive columns."""
        columns = dict(zip(self.layout.sensitive_names, self.layout.sensitive, strict=True))
        names = self.layout.sensitive_names if names is None else tuple(names)
        return Cells(tuple(columns[name] for name in names), mode=mode, names=names)  # type: ignore[arg-type]

    def describe(self, measurements: Measurements, batch: Batch = FULL) -> Event:
        """The event that `answer` would log."""
        return pricing.describe(
            measurements, self.layout, self.promise, batch, max_sample_weight=self._cap
        )

    def describe_choice(self, question: Question | Sequence[Question], epsilon: float) -> Event:
        """The event that `choose` would log."""
        return pricing.describe_choice(question, epsilon, self.promise)

    def answer(
        self, measurements: Measurements, batch: Batch = FULL, *, purpose: str = ""
    ) -> list[Floats]:
        """Made-up numbers of the shapes that `Curator.answer` gives."""
        asked = tuple(as_measurements(measurements))
        key = (batch, *[one.key for one in asked])
        if key not in self._priced:
            self._priced[key] = self.describe(asked, batch)
        number = len(self.asked)
        self.asked.append(Asked(asked, self._priced[key], batch, purpose))
        out = []
        for one in asked:
            shape = one.question.shape(self.layout)
            many = is_many(one.question)
            out.append(self._made_up((one.question.models, *shape) if many else shape, number))
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
        return Attached.unseen(self.layout, columns_read, title)

    def public_table(self, cells: Cells | None = None, *, most: int = 0) -> PublicTable:
        """One row of each class, all of whose features are 0."""
        classes = len(self.layout.classes or ())
        features = np.eye(1, 1 + self.layout.width).repeat(classes, axis=0)
        return PublicTable(features, np.arange(classes), np.ones(classes), 1, None)

    def release_rows(self, multiplier: float) -> int:
        """One count of the rows, made up."""
        ((count,),) = self.answer([(RowCount(), multiplier)], purpose="number of rows")
        self._rows = max(1, round(float(count)))
        return self._rows

    def rescale(self, scale: object, shift: object) -> None:
        """Noted: the rows' numbers would have other units from now on."""
        self.scalings = (
            *self.scalings,
            (np.asarray(scale, np.float64), np.asarray(shift, np.float64)),
        )

    def finish(self) -> Event:
        """The whole run as one event."""
        return compose([one.event for one in self.asked]) if self.plan else NonPrivate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass
