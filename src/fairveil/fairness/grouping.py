"""Which cells of a histogram each group is made of, and which groups are compared."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..facts import Cells
from ..tables import keys as keys_module

COMPARISONS = ("pairs", "rest")


@dataclass(frozen=True, eq=False)
class Grouping:
    """Groups as sets of cells: `members[g, c]` says whether cell c belongs to group g.

    `columns[g]` is the sensitive column that group g comes from (marginal groups), or 0 for all
    (product groups). Only groups of one column are compared: across columns they overlap, and
    "women against Black people" compares nothing.
    """

    keys: tuple[Hashable, ...]
    columns: tuple[int, ...]
    members: npt.NDArray[np.bool_]

    @staticmethod
    def of(cells: Cells, mode: str) -> Grouping:
        """The groups of `mode` built from `cells`. Marginal groups are unions of product cells,
        never the other way round."""
        single = len(cells.columns) == 1
        if mode == "product" or single:
            if cells.mode == "marginal" and not single:
                raise InputError.expected(
                    "product cells, to build product groups from",
                    of="cells",
                    got=cells.mode,
                    remedy='Count Cells(..., mode="product"), or ask for groups="marginal".',
                )
            return Grouping(cells.keys, (0,) * cells.count, np.eye(cells.count, dtype=bool))
        marginal = Cells(cells.columns, mode="marginal", names=cells.names)
        columns = tuple(j for j, size in enumerate(cells.sizes) for _ in range(size))
        if cells.mode == "marginal":
            return Grouping(marginal.keys, columns, np.eye(cells.count, dtype=bool))
        grid = np.indices(cells.sizes).reshape(len(cells.sizes), -1)
        members = np.concatenate(
            [grid[j] == np.arange(size)[:, np.newaxis] for j, size in enumerate(cells.sizes)]
        )
        return Grouping(marginal.keys, columns, members)

    def index(self, key: Hashable) -> int:
        """Where a group stands; an unknown one is an error that lists the known."""
        try:
            return self._places[key]
        except (KeyError, TypeError):
            known = ", ".join(map(repr, self.keys[:20]))
            remedy = f"Known groups: {known}{', ...' if len(self.keys) > 20 else ''}."
            raise InputError.expected("a known group", of="group", got=key, remedy=remedy) from None

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        # the first of keys that are equal
        return {key: at for at, key in reversed(list(enumerate(self.keys)))}

    def blocks(self) -> list[list[int]]:
        """Groups that are compared with each other, one list a sensitive column."""
        return [
            [g for g, c in enumerate(self.columns) if c == column]
            for column in sorted(set(self.columns))
        ]

    def shown(self, group: int) -> str:
        """The group's key for a reader."""
        return keys_module.shown(self.keys[group])
