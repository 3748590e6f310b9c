"""How many rows of each group and class there are supposed to be: public numbers, from which noise
is foretold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...facts import Cells, RowLayout

KNOWN = 0.5
"""How far decisions are supposed to follow labels: half of the rows by their label, the rest as the
classes fall."""


@dataclass(frozen=True, eq=False)
class Supposed:
    """`rows` of which each sensitive column's values have these shares (`columns`, by name), and
    the classes theirs.

    Columns and labels are supposed to be independent of each other. Shares that nobody stated are
    equal: `guessed` names them.
    """

    rows: float
    columns: Mapping[str, Floats]
    classes: Floats
    guessed: tuple[str, ...] = ()

    @staticmethod
    def of(
        layout: RowLayout,
        rows: float,
        columns: Mapping[str, Sequence[float]] | None = None,
        classes: Sequence[float] | None = None,
    ) -> Supposed:
        """Of rows of this layout, with the shares that are known."""
        known = {} if columns is None else columns
        names = zip(layout.sensitive_names, layout.sensitive, strict=True)
        found = {name: _shares(known.get(name), len(values)) for name, values in names}
        guessed = [name for name in layout.sensitive_names if name not in known]
        count = max(1, len(layout.classes or ()))
        return Supposed(
            float(rows),
            found,
            _shares(classes, count),
            (*guessed, *(() if classes is not None else ("classes",))),
        )

    def at(self, rows: float) -> Supposed:
        """The same shares of another number of rows."""
        return Supposed(float(rows), self.columns, self.classes, self.guessed)

    def shares(self, cells: Cells | None) -> Floats:
        """Of the cells, in their order; of everyone where none are distinguished."""
        if cells is None:
            return np.ones(1)
        lines = [self.columns[name] for name in cells.names]
        if cells.mode == "marginal":
            return np.concatenate(lines)
        out = np.ones(1)
        for line in lines:
            out = np.multiply.outer(out, line).ravel()
        return out

    def counts(self, cells: Cells | None, *, by_label: bool) -> Floats:
        """(cells, labels), or one label where they are not distinguished."""
        labels = self.classes if by_label else np.ones(1)
        return np.asarray(self.rows * np.multiply.outer(self.shares(cells), labels))

    def decisions(self, counts: Floats) -> Floats:
        """(cells, labels, classes): how a model that has learnt something may decide about so many
        rows (`KNOWN`)."""
        classes = len(self.classes)
        fall = np.broadcast_to(self.classes, (counts.shape[1], classes))
        follow = (
            fall if counts.shape[1] != classes else KNOWN * np.eye(classes) + (1.0 - KNOWN) * fall
        )
        return np.asarray(counts[..., np.newaxis] * follow)


def _shares(given: Sequence[float] | None, count: int) -> Floats:
    return np.full(count, 1.0 / count) if given is None else np.asarray(given, np.float64)
