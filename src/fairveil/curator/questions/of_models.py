"""Questions about linear models: histograms of predictions, clipped gradients, group losses. See
`question` for guarantees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ... import _checks
from ...core import sums
from ...core.sums import Facts, Sum
from ...errors import InputError, MissingBoundError
from ...facts import Cells, RowLayout
from ..question import Linear, Question, cell_count

LOSSES = ("log", "squared", "zero-one")


def same_form(one: Linear, other: Linear) -> Linear:
    """The other model, which must differ from the one in its weights alone."""
    if (
        other.array.shape != one.array.shape
        or other.many != one.many
        or other.sharpness != one.sharpness
    ):
        remedy = "Make a new question."
        raise InputError.expected(
            f"weights of shape {one.array.shape}", of="model", got=str(other), remedy=remedy
        )
    return other


@dataclass(frozen=True, eq=False)
class GroupLosses(Question):
    """The sum of losses, each cut at `clip`, in each cell: shape (cells,). Many candidates at once:
    the model's leading axis.

    `loss`: "zero-one" (hard decision against label), "log" (the score's own log loss) or "squared".
    Losses are not negative.
    """

    name: ClassVar[str] = "group losses"
    columns: ClassVar[frozenset[str]] = frozenset({"features", "label"})
    model: Linear = field()
    cells: Cells | None = None
    loss: str = "zero-one"
    clip: float | None = None

    def __post_init__(self) -> None:
        _checks.one_of(LOSSES, loss=self.loss)
        if self.clip is not None:
            _checks.positive(clip=self.clip)

    @property
    def why(self) -> str:
        return f"losses are cut at {self.limit:g}"

    @property
    def models(self) -> int:
        return self.model.models

    @property
    def within(self) -> float:
        return 1.0

    def shape(self, layout: RowLayout) -> tuple[int, ...]:
        self.model.check(layout, classification=self.loss != "squared")
        return (cell_count(self.cells),)

    @property
    def limit(self) -> float:
        """Where losses are cut."""
        if self.loss == "zero-one":
            return 1.0 if self.clip is None else min(1.0, self.clip)
        if self.clip is None:
            raise MissingBoundError.expected(
                "a clip: the largest loss that counts",
                of="GroupLosses.clip",
                got=None,
                remedy=f"Pass clip=5.0, say: {self.loss} losses have no bound of their own.",
            )
        return self.clip

    def sum(self, facts: Facts, order: int = 2) -> Sum:
        lost = (self.cells, self.loss, self.clip)
        return sums.losses(facts, self.model.array, *lost, order)
