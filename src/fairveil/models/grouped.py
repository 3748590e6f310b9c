"""A linear model with an intercept of its own for every group: it reads the group, and says so."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from .groups import cell_ids, cells_from_values, cells_to_values
from .linear import LinearModel
from .model import Codes, Model, Parts, RandomState, fixed_array, one_hot


@dataclass(frozen=True, eq=False, init=False)
class GroupedLinearModel(Model):
    """score = linear score + offsets[group]. `offsets` (groups, outputs), of product cells; rows
    carry their sensitive codes.

    With zero weights it decides by the group alone: the paper's maximally discriminatory
    classifiers (its Assumption 4.1).
    """

    kind: ClassVar[str] = "grouped-linear"
    linear: LinearModel
    offsets: Floats
    cells: Cells

    def __init__(self, linear: LinearModel, offsets: npt.ArrayLike, cells: Cells) -> None:
        if cells.mode != "product":
            remedy = "Take the cells of combined values."
            raise InputError.expected("product groups", of="cells", got=cells.mode, remedy=remedy)
        _checks.normalise(
            self,
            linear=linear,
            offsets=fixed_array(offsets, (cells.count, len(linear.intercept)), "offsets"),
        )
        _checks.normalise(self, cells=cells)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self.linear.classes

    @property
    def is_randomised(self) -> bool:
        """A row and its group decide."""
        return False

    @property
    def reads_groups(self) -> bool:
        """Always."""
        return True

    def predict_proba(self, rows: object) -> Floats:
        """Zeros and ones: scores here are costs, not logits."""
        return self.decision_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """One for the class decided on, zero for the others."""
        return one_hot(self.predict_codes(rows), len(self.classes))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The class with the largest score; ties go to the first."""
        scores = self.linear.decision_scores(rows) + self.offsets[cell_ids(rows, self.cells)]
        return np.asarray(
            (scores[:, 0] > 0) if scores.shape[1] == 1 else scores.argmax(axis=1), np.intp
        )

    def to_parts(self) -> Parts:
        """The cells as values, the offsets as an array, and the linear model's parts."""
        return Parts(
            self.kind,
            cells_to_values(self.cells),
            {"offsets": self.offsets},
            (self.linear.to_parts(),),
        )

    @staticmethod
    def from_parts(parts: Parts, linear: Model) -> GroupedLinearModel:
        """The inverse of `to_parts`."""
        remedy = "It is not what was saved: save the model again."
        linear = _checks.instance(LinearModel, "model", linear, remedy, "a linear model")
        return GroupedLinearModel(linear, parts.arrays["offsets"], cells_from_values(parts.values))
