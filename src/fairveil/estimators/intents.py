"""What a fit is about to do: arguments checked, rows read, the search planned and priced, nothing asked yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..curator import Curator, Journal
from ..facts import Cells
from ..learning import LinearDescent, NetworkDescent
from ..privacy.ledger import Ledger
from ..privacy.noise import NoiseSource
from ..privacy.promise import Promise
from .inputs import Training
from .publish import curator_of

Descent = LinearDescent | NetworkDescent


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class Intent:
    """A fit that has not begun. `public_rows`: what averages divide by, if public; `rows_given`: it was an argument; `ledger`:
    where it is recorded, for `purpose`."""

    promise: Promise
    training: Training
    cells: Cells | None
    search: Descent
    public_rows: int | None
    rows_given: bool
    ledger: Ledger | None = None
    purpose: str = ""

    def curator(
        self,
        noise: NoiseSource | Sequence[NoiseSource],
        *,
        search: LinearDescent | None = None,
        promise: Promise | None = None,
        earlier: Journal | None = None,
        purpose: str | None = None,
    ) -> Curator:
        """A curator for this search, or for one of several models side by side under the promise that holds them all."""
        return curator_of(
            promise or self.promise,
            self.training,
            (search or self.search).plan,
            noise,
            self.public_rows,
            rows_given=self.rows_given,
            earlier=earlier,
            ledger=self.ledger,
            purpose=self.purpose if purpose is None else purpose,
        )
