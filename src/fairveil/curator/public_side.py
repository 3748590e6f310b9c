"""What a curator tells without an answer: public facts, and the events of what may be asked."""

from __future__ import annotations

from collections.abc import Sequence

from .._types import Floats
from ..core.events import Event
from ..core.promise import Promise
from ..core.rows import FULL, Batch, Rows
from ..facts import Cells, RowLayout
from . import pricing
from .bounds import cap_of
from .measurements import Measurements
from .question import Question
from .refusals import no_public_rows


class PublicSide:
    """The part of a curator that asks no row. Abstract: see `Curator`."""

    promise: Promise
    layout: RowLayout
    _rows: Rows
    _public_rows: int | None
    _scalings: tuple[tuple[Floats, Floats], ...]

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
