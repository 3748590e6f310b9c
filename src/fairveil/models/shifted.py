"""A classifier whose probabilities are moved by group before it decides (after DP2DP of
Denis, Pinot and Say, 2025)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import Cells
from .groups import cell_ids, cells_from_values, cells_to_values
from .model import Codes, Model, Parts, RandomState, draw_codes, fixed_array, known_classes, one_hot


@dataclass(frozen=True, eq=False, init=False)
class ShiftedModel(Model):
    """Decide by p(k | row) - offsets[c, k], for a row of group cell c.

    `base`: a model, or None for a classifier made elsewhere, whose probabilities are handed in: see
    `law`. `offsets`: (cells, classes). `temperature`: decisions are drawn from the softmax of these
    differences over it; None: the largest decides.

    >>> model = ShiftedModel(
    ...     [[0.0, 0.0], [0.2, -0.2]], ("no", "yes"), Cells((("f", "m"),)), temperature=None
    ... )
    >>> model.law(np.array([[0.6, 0.4], [0.6, 0.4]]), np.array([0, 1])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    kind: ClassVar[str] = "shifted"
    base: Model | None
    offsets: Floats
    cells: Cells
    temperature: float | None
    _classes: tuple[Hashable, ...]

    def __init__(
        self,
        offsets: npt.ArrayLike,
        classes: Sequence[Hashable],
        cells: Cells,
        temperature: float | None,
        base: Model | None = None,
    ) -> None:
        listed = known_classes(classes)
        if cells.mode != "product":
            remedy = "A person is in one product cell: build marginal groups from those."
            raise InputError.expected("product cells", of="cells", got=cells.mode, remedy=remedy)
        if base is not None and base.classes != listed:
            remedy = "Give the base's own classes, in its order."
            raise InputError.expected(
                f"the base's classes {base.classes}", of="classes", got=listed, remedy=remedy
            )
        table = fixed_array(offsets, (cells.count, len(listed)), "offsets")
        heat = None if temperature is None else _checks.positive(temperature=temperature)
        _checks.normalise(
            self, base=base, offsets=table, cells=cells, temperature=heat, _classes=listed
        )

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self._classes

    @property
    def is_randomised(self) -> bool:
        """Whether decisions are drawn."""
        return self.temperature is not None

    @property
    def reads_groups(self) -> bool:
        """Each group has offsets of its own."""
        return True

    def law(self, probabilities: Floats, ids: npt.NDArray[np.integer]) -> Floats:
        """The distribution of the decision, (rows, classes), from the base's probabilities and the
        rows' cells."""
        moved = np.asarray(probabilities, np.float64) - self.offsets[ids]
        if self.temperature is None:
            return one_hot(moved.argmax(axis=1), len(self.classes))
        return softened(moved, self.temperature)

    def predict_proba(self, rows: object) -> Floats:
        """The distribution of the decision: there is no other probability."""
        return self.decision_proba(rows)

    def decision_proba(self, rows: object) -> Floats:
        """The distribution of the decision for rows that carry sensitive codes."""
        if self.base is None:
            remedy = "Hand its probabilities to law(probabilities, ids)."
            raise InputError.expected("a base model", of="base", got=None, remedy=remedy)
        return self.law(self.base.predict_proba(rows), cell_ids(rows, self.cells))

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """One draw a row. The same seed and rows give the same draws."""
        return draw_codes(self.decision_proba(rows), random_state)

    def to_parts(self) -> Parts:
        """Offsets, classes, cells and temperature, and the parts of the base."""
        values = {
            "classes": list(self.classes),
            "cells": cells_to_values(self.cells),
            "temperature": self.temperature,
        }
        models = () if self.base is None else (self.base.to_parts(),)
        return Parts(self.kind, values, {"offsets": self.offsets}, models)

    @staticmethod
    def from_parts(parts: Parts, models: Sequence[Model]) -> ShiftedModel:
        """The inverse of `to_parts`."""
        values = parts.values
        cells, base = cells_from_values(values["cells"]), models[0] if models else None
        return ShiftedModel(
            parts.arrays["offsets"], tuple(values["classes"]), cells, values["temperature"], base
        )


def softened(moved: Floats, temperature: float) -> Floats:
    """Their softmax at a temperature, along the last axis; sums are at most 1 but for a rounding.

    >>> softened(np.array([[0.5, 0.5], [1.0, 0.0]]), 0.1).round(3).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    shares = np.exp((moved - moved.max(axis=-1, keepdims=True)) / temperature)
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
