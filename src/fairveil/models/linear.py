"""Linear models of coded rows: logistic with two classes, softmax with more, with an intercept for
each group, and regression, which gives a number a row."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

import numpy as np

from .. import _checks
from .._types import Floats
from ..core.errors import need
from ..facts import Cells, RowBlock, RowLayout
from .model import (
    Codes,
    Model,
    Predictor,
    RandomState,
    ScoredModel,
    cell_ids,
    decided,
    fitting,
    fixed_array,
    is_sparse,
    known_classes,
    need_product,
    plain_layout,
)

BLOCK = 8192  # rows at a time: one block of scores stays in the cache


@dataclass(frozen=True, eq=False)
class AffineMap:
    """How an encoder scales numbers: encoded = scale x input + shift, inside the bounds to which it
    clips."""

    scale: Floats
    shift: Floats

    def __post_init__(self) -> None:
        scale = np.atleast_1d(np.asarray(self.scale, dtype=np.float64))
        shift = fixed_array(np.atleast_1d(self.shift), (scale.size,), "shift")
        _checks.normalise(self, scale=fixed_array(scale, (scale.size,), "scale"), shift=shift)


@dataclass(frozen=True, eq=False)
class LinearModel(ScoredModel):
    """score = intercept + sum of number x weight + sum over category columns of weight[offset +
    code].

    `weights` (outputs, width), `intercept` (outputs,): one output with two classes (the score of
    the second against the first's 0), else one a class. Width is numbers + all category codes, in
    the order of `RowLayout`. Category columns are looked up, never made one-hot. A row's score is
    one fixed sequence of operations: the same bits alone, in any block, dense or sparse.

    >>> model = LinearModel(
    ...     [[2.0, -1.0, 1.0]], [0.5], classes=("no", "yes"), layout=RowLayout(1, (2,))
    ... )
    >>> rows = RowBlock(numbers=np.array([[1.0, -1.0]]), codes=np.array([[0, 1]]))
    >>> model.decision_scores(rows).tolist()
    [[1.5], [-0.5]]
    >>> model.predict(rows).tolist()
    ['yes', 'no']
    """

    kind: ClassVar[str] = "linear"
    weights: Floats
    intercept: Floats
    _: KW_ONLY
    classes: tuple[Hashable, ...]
    layout: RowLayout

    def __post_init__(self) -> None:
        classes, layout = known_classes(self.classes), plain_layout(self.layout)
        outputs = 1 if len(classes) == 2 else len(classes)
        weights = fixed_array(np.atleast_2d(self.weights), (outputs, layout.width), "weights")
        intercept = fixed_array(np.atleast_1d(self.intercept), (outputs,), "intercept")
        _checks.normalise(self, weights=weights, intercept=intercept)
        _checks.normalise(self, classes=classes, layout=layout)

    def decision_scores(self, rows: object) -> Floats:
        """(rows, outputs)."""
        return scores_of(rows, self.weights, self.intercept, self.layout)

    def in_input_units(self, affine: AffineMap) -> tuple[Floats, Floats]:
        """(coefficients, intercept) for unencoded numbers: w (a x + b) = (w a) x + w b. Category
        weights stay as they are."""
        numbers = self.layout.numbers
        words = f"a scale and a shift for each of {numbers} numbers"
        fix, fits = "Pass the map of the encoder that made the rows.", affine.scale.size == numbers
        need(fits, words, of="affine", got=affine.scale.size, fix=fix)
        coefficients = np.array(self.weights)
        coefficients[:, :numbers] *= affine.scale
        return coefficients, np.asarray(self.intercept + self.weights[:, :numbers] @ affine.shift)


@dataclass(frozen=True, eq=False)
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
    classes: tuple[Hashable, ...] = field(init=False)

    def __post_init__(self) -> None:
        need_product(self.cells)
        fix = "It is not what was saved: save the model again."
        linear = _checks.instance(LinearModel, "model", self.linear, fix, "a linear model")
        shape = (self.cells.count, len(linear.intercept))
        offsets = fixed_array(self.offsets, shape, "offsets")
        _checks.normalise(self, offsets=offsets, classes=linear.classes)

    @property
    def reads_groups(self) -> bool:
        """Always."""
        return True

    def predict_codes(self, rows: object, random_state: RandomState = None) -> Codes:
        """The class with the largest score; ties go to the first."""
        return decided(self.linear.decision_scores(rows) + self.offsets[cell_ids(rows, self.cells)])


@dataclass(frozen=True, eq=False)
class RegressionModel(Predictor):
    """prediction = intercept + sum of number x weight + sum over category columns of weight[offset
    + code].

    `weights` (width,), in the order of `RowLayout`. A row's prediction is one fixed sequence of
    operations, as a `LinearModel`'s score is.

    >>> model = RegressionModel([2.0, -1.0, 1.0], 0.5, layout=RowLayout(1, (2,)))
    >>> model.predict_numbers(
    ...     RowBlock(numbers=np.array([[1.0, -1.0]]), codes=np.array([[0, 1]]))
    ... ).tolist()
    [1.5, -0.5]
    """

    kind: ClassVar[str] = "linear-regression"
    weights: Floats
    intercept: float
    _: KW_ONLY
    layout: RowLayout

    def __post_init__(self) -> None:
        layout = plain_layout(self.layout)
        weights = fixed_array(np.atleast_1d(self.weights), (layout.width,), "weights")
        intercept = float(fixed_array(np.atleast_1d(self.intercept), (1,), "intercept")[0])
        _checks.normalise(self, weights=weights, intercept=intercept, layout=layout)

    def predict_numbers(self, rows: object) -> Floats:
        """(rows,)."""
        weights, intercept = self.weights[np.newaxis], np.array([self.intercept])
        return scores_of(rows, weights, intercept, self.layout)[:, 0]


def scores_of(rows: object, weights: Floats, intercept: Floats, layout: RowLayout) -> Floats:
    """(rows, outputs), of weights (outputs, width)."""
    block = fitting(rows, layout)
    scores = np.empty((block.rows, len(intercept)))
    for start in range(0, block.rows, BLOCK):
        run = slice(start, start + BLOCK)
        scores[run] = _scores(block, run, weights, intercept, layout)
    finite, fix = np.isfinite(scores).all(), "Encode missing and unbounded values by a schema."
    need(finite, "finite numbers", of="rows", got="a score that is none", fix=fix)
    return scores


def _scores(
    block: RowBlock, run: slice, weights: Floats, intercept: Floats, layout: RowLayout
) -> Floats:
    """Additions in one order: 0, numbers from first to last, codes from first to last,
    intercept."""
    codes, numbers = block.codes[:, run], layout.numbers
    if is_sparse(block.numbers):
        scores = np.ascontiguousarray(np.asarray(block.numbers[run] @ weights[:, :numbers].T).T)
    else:
        scores = np.zeros((len(intercept), codes.shape[1]))
        for j in range(numbers):
            scores += weights[:, j, np.newaxis] * block.numbers[j, run].astype(np.float64)
    # Codes are looked up: their columns of ones are never made.
    offset = numbers
    for line, size in zip(codes, layout.code_sizes, strict=True):
        scores += weights[:, offset : offset + size][:, line]
        offset += size
    return (scores + intercept[:, np.newaxis]).T
