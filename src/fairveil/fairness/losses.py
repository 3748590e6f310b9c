"""Bounds on the mean loss of each group, for losses that are not functions of decisions (log,
squared).

With S[c] the sum of the losses of the rows in cell c and N[c] their number, the constraint of group
g is

    sum_{c in g} S[c] / max(sum_{c in g} N[c], floor)  <=  bound_g.

S and N may be noisy; leading axes (many models) are carried through.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from .grouping import Grouping
from .notions import BoundedGroupLoss
from .rates import Notion
from .resolution import as_list


@dataclass(frozen=True, eq=False)
class LossBounds:
    """`members` (groups, cells): the cells of each group; `bounds` and `names` (groups,); `loss`:
    which loss."""

    loss: str
    members: npt.NDArray[np.bool_]
    bounds: Floats
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def values(
        self, loss_sums: npt.ArrayLike, counts: npt.ArrayLike, floor: float | None = None
    ) -> Floats:
        """The mean loss of each group, (..., groups); NaN for a group without rows when there is no
        floor."""
        return self._sum(loss_sums, "loss_sums") / self._sizes(counts, floor)

    def excess(self, values: npt.ArrayLike) -> Floats:
        """value - bound: above 0 where broken, NaN where undefined."""
        return np.asarray(values, dtype=np.float64) - self.bounds

    def row_weights(
        self, duals: npt.ArrayLike, counts: npt.ArrayLike, floor: float | None = None
    ) -> Floats:
        """d(sum_g duals_g (value_g - bound_g)) / d(loss of one row in that cell), (..., cells).

        Undefined groups add nothing.
        """
        shares = np.nan_to_num(
            np.asarray(duals, dtype=np.float64) / self._sizes(counts, floor), nan=0.0
        )
        return _sum_last(shares[..., np.newaxis, :] * self.members.T)

    def _sizes(self, counts: npt.ArrayLike, floor: float | None) -> Floats:
        sizes = self._sum(counts, "counts")
        if floor is not None:
            return np.maximum(sizes, _checks.positive(floor=floor))
        return np.where(sizes > 0, sizes, np.nan)

    def _sum(self, array: npt.ArrayLike, of: str) -> Floats:
        array = np.asarray(array, dtype=np.float64)
        cells = self.members.shape[1]
        if array.shape[-1:] != (cells,):
            remedy = "Sum over the cells that the bounds were resolved against."
            raise InputError.expected(
                f"an array of shape (..., {cells})", of=of, got=array.shape, remedy=remedy
            )
        return _sum_last(array[..., np.newaxis, :] * self.members)


def resolve_losses(notions: Notion | Iterable[Notion], cells: Cells) -> LossBounds:
    """The bounds that one or several `BoundedGroupLoss` of one loss ask for. Needs no classes, so
    it serves regression too."""
    listed = [notion for notion in as_list(notions) if isinstance(notion, BoundedGroupLoss)]
    if (
        not listed
        or len(listed) != len(as_list(notions))
        or len({notion.loss for notion in listed}) != 1
    ):
        remedy = "Resolve rate constraints with systems.resolve, and each loss apart."
        raise InputError.expected(
            "BoundedGroupLoss of one loss", of="constraints", got=notions, remedy=remedy
        )
    members, bounds, names = [], [], []
    for notion in listed:
        grouping = Grouping.of(cells, notion.groups)
        groups = range(len(grouping.keys))
        members.append(grouping.members)
        bound = math.inf if notion.max_loss is None else notion.max_loss
        bounds.append(np.full(len(grouping.keys), bound))
        names += [
            f"mean {notion.loss} loss of group {grouping.shown(g)} <= {bound:g}" for g in groups
        ]
    return LossBounds(listed[0].loss, np.concatenate(members), np.concatenate(bounds), tuple(names))


def _sum_last(array: Floats) -> Floats:
    """Sum over the last axis, one addition after the other: the bits do not depend on leading
    axes."""
    total = np.zeros(array.shape[:-1])
    for place in range(array.shape[-1]):
        total = total + array[..., place]
    return total
