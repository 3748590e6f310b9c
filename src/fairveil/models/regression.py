"""Linear regression of coded rows: a number a row, in the units of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from .. import _checks
from .._types import Floats
from ..facts import RowLayout
from .linear import scores_of
from .model import Parts, Predictor, fixed_array


@dataclass(frozen=True, eq=False, init=False)
class RegressionModel(Predictor):
    """prediction = intercept + sum of number x weight + sum over category columns of weight[offset
    + code].

    `weights` (width,), in the order of `RowLayout`. A row's prediction is one fixed sequence of
    operations, as a `LinearModel`'s score is.

    >>> from fairveil.facts import RowBlock
    >>> model = RegressionModel([2.0, -1.0, 1.0], 0.5, layout=RowLayout(1, (2,)))
    >>> model.predict_numbers(
    ...     RowBlock(numbers=np.array([[1.0, -1.0]]), codes=np.array([[0, 1]]))
    ... ).tolist()
    [1.5, -0.5]
    """

    kind: ClassVar[str] = "linear-regression"
    weights: Floats
    intercept: float
    numbers: int
    code_sizes: tuple[int, ...]

    def __init__(
        self, weights: npt.ArrayLike, intercept: npt.ArrayLike, *, layout: RowLayout
    ) -> None:
        _checks.normalise(self, numbers=_checks.whole(numbers=layout.numbers))
        _checks.normalise(
            self,
            code_sizes=tuple(
                _checks.whole(at_least=1, code_size=size) for size in layout.code_sizes
            ),
        )
        width = self.numbers + sum(self.code_sizes)
        _checks.normalise(self, weights=fixed_array(np.atleast_1d(weights), (width,), "weights"))
        _checks.normalise(
            self, intercept=float(fixed_array(np.atleast_1d(intercept), (1,), "intercept")[0])
        )

    def predict_numbers(self, rows: object) -> Floats:
        """(rows,)."""
        weights, intercept = self.weights[np.newaxis], np.array([self.intercept])
        return scores_of(rows, weights, intercept, self.numbers, self.code_sizes)[:, 0]

    def to_parts(self) -> Parts:
        """The layout as values, weights and intercept as arrays."""
        arrays = {"weights": self.weights, "intercept": np.array([self.intercept])}
        return Parts(
            self.kind, {"numbers": self.numbers, "code_sizes": list(self.code_sizes)}, arrays
        )

    @staticmethod
    def from_parts(parts: Parts) -> RegressionModel:
        """The inverse of `to_parts`."""
        layout = RowLayout(parts.values["numbers"], tuple(parts.values["code_sizes"]))
        return RegressionModel(parts.arrays["weights"], parts.arrays["intercept"], layout=layout)
