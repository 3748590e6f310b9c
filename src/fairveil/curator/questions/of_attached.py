"""What histograms of attached models and of attached codes share."""

from __future__ import annotations

import math
from typing import Protocol

from ... import _checks
from ...facts import Cells, RowLayout
from ..question import OwnJob, Scale, check_group, comes_or_goes


class Handle(Protocol):
    """What the curator keeps of each row, attached."""

    columns_read: frozenset[str]


class OfAttached(OwnJob):
    """A histogram by cell (and label) of what is attached to rows. Abstract. `group`: that one cell
    alone, of product cells."""

    attached: Handle
    cells: Cells | None
    by_label: bool
    group: int | None

    def __post_init__(self) -> None:
        _checks.normalise(self, group=check_group(self.cells, self.group))

    @property
    def reads(self) -> frozenset[str]:
        read = super().reads | self.attached.columns_read
        return (read | {"label"}) if self.by_label else read

    @property
    def within(self) -> float:
        return math.sqrt(2)

    def scale_of_change(self, layout: RowLayout, cap: float | None, order: int = 2) -> Scale:
        scale = self.scale(layout, cap, order)
        if self.group is None or self.cells is None:
            return scale
        fixed = "sensitive" not in self.attached.columns_read or set(self.cells.names) == set(
            layout.sensitive_names
        )
        return comes_or_goes(scale) if fixed else scale
