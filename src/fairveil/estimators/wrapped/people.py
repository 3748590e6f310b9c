"""People with what a model decides about them, as one private count takes them: see `decided_rows`
and `elsewhere`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...curator import Rows
from ...facts import Cells
from ...statement.document import PublicFact
from . import decided

Codes = npt.NDArray[np.intp]
PartOf = Callable[[Codes, Codes, Codes], npt.NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)  # it holds rows
class DecidedRows:
    """The rows for a curator, with labels, cells and decisions; `model`: in words; `labelled`:
    whether labels were given."""

    rows: Rows
    cells: Cells
    classes: tuple[Hashable, ...]
    labels: Codes
    ids: Codes
    decisions: Codes
    facts: tuple[PublicFact, ...]
    not_covered: tuple[str, ...]
    model: str
    labelled: bool
    by_group: bool

    def codes_by(self, part_of: PartOf) -> Any:
        """Each row's code, by its group, label and decision, as `Curator.attach_codes` takes it."""
        return decided.in_blocks(
            np.asarray(part_of(self.ids, self.labels, self.decisions), np.intp), self.rows
        )

    def parts(self, part_of: npt.NDArray[np.int64]) -> Any:
        """The same from a table."""
        return self.codes_by(lambda ids, labels, decisions: part_of[ids, labels, decisions])
