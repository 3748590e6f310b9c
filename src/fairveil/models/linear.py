"""Linear models of coded rows: logistic with two classes, softmax with more."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._types import Floats
from ..errors import InputError
from ..facts import RowBlock, RowLayout
from .model import Parts, ScoredModel, fixed_array, known_classes

BLOCK = 8192  # rows at a time: one block of scores stays in the cache


@dataclass(frozen=True, eq=False)
class AffineMap:
    """How an encoder scales numbers: encoded = scale x input + shift, inside the bounds to which it
    clips."""

    scale: Floats
    shift: Floats

    def __post_init__(self) -> None:
        scale = np.atleast_1d(np.asarray(self.scale, dtype=np.float64))
        _checks.normalise(self, scale=fixed_array(scale, (scale.size,), "scale"))
        _checks.normalise(
            self, shift=fixed_array(np.atleast_1d(self.shift), (scale.size,), "shift")
        )


@dataclass(frozen=True, eq=False, init=False)
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
    numbers: int
    code_sizes: tuple[int, ...]
    _classes: tuple[Hashable, ...]

    def __init__(
        self,
        weights: npt.ArrayLike,
        intercept: npt.ArrayLike,
        *,
        classes: Sequence[Hashable],
        layout: RowLayout,
    ) -> None:
        _checks.normalise(self, _classes=known_classes(classes))
        outputs = 1 if len(self._classes) == 2 else len(self._classes)
        _checks.normalise(self, numbers=_checks.whole(numbers=layout.numbers))
        _checks.normalise(
            self,
            code_sizes=tuple(
                _checks.whole(at_least=1, code_size=size) for size in layout.code_sizes
            ),
        )
        width = self.numbers + sum(self.code_sizes)
        _checks.normalise(
            self, weights=fixed_array(np.atleast_2d(weights), (outputs, width), "weights")
        )
        _checks.normalise(
            self, intercept=fixed_array(np.atleast_1d(intercept), (outputs,), "intercept")
        )

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The classes, in the order of their codes."""
        return self._classes

    @property
    def is_randomised(self) -> bool:
        """A linear model decides by its score alone."""
        return False

    def decision_scores(self, rows: object) -> Floats:
        """(rows, outputs)."""
        return scores_of(rows, self.weights, self.intercept, self.numbers, self.code_sizes)

    def in_input_units(self, affine: AffineMap) -> tuple[Floats, Floats]:
        """(coefficients, intercept) for unencoded numbers: w (a x + b) = (w a) x + w b. Category
        weights stay as they are."""
        if affine.scale.size != self.numbers:
            expected = f"a scale and a shift for each of {self.numbers} numbers"
            remedy = "Pass the map of the encoder that made the rows."
            raise InputError.expected(expected, of="affine", got=affine.scale.size, remedy=remedy)
        coefficients = np.array(self.weights)
        coefficients[:, : self.numbers] *= affine.scale
        return coefficients, np.asarray(
            self.intercept + self.weights[:, : self.numbers] @ affine.shift
        )

    def to_parts(self) -> Parts:
        """The layout and the classes as values, weights and intercept as arrays."""
        values = {
            "classes": list(self._classes),
            "numbers": self.numbers,
            "code_sizes": list(self.code_sizes),
        }
        return Parts(self.kind, values, {"weights": self.weights, "intercept": self.intercept})

    @staticmethod
    def from_parts(parts: Parts) -> LinearModel:
        """The inverse of `to_parts`."""
        layout = RowLayout(parts.values["numbers"], tuple(parts.values["code_sizes"]))
        weights, intercept = parts.arrays["weights"], parts.arrays["intercept"]
        return LinearModel(weights, intercept, classes=parts.values["classes"], layout=layout)


def scores_of(
    rows: object, weights: Floats, intercept: Floats, numbers: int, code_sizes: tuple[int, ...]
) -> Floats:
    """(rows, outputs), of weights (outputs, width)."""
    block = _fitting(rows, numbers, code_sizes)
    scores = np.empty((block.rows, len(intercept)))
    for start in range(0, block.rows, BLOCK):
        run = slice(start, start + BLOCK)
        scores[run] = _scores(block, run, weights, intercept, numbers, code_sizes)
    if not np.isfinite(scores).all():
        remedy = "Encode missing and unbounded values by a schema."
        raise InputError.expected(
            "finite numbers", of="rows", got="a score that is none", remedy=remedy
        )
    return scores


def _scores(
    block: RowBlock,
    run: slice,
    weights: Floats,
    intercept: Floats,
    numbers: int,
    code_sizes: tuple[int, ...],
) -> Floats:
    """Additions in one order: 0, numbers from first to last, codes from first to last,
    intercept."""
    codes = block.codes[:, run]
    if is_sparse(block.numbers):
        scores = np.ascontiguousarray(np.asarray(block.numbers[run] @ weights[:, :numbers].T).T)
    else:
        scores = np.zeros((len(intercept), codes.shape[1]))
        for j in range(numbers):
            scores += weights[:, j, np.newaxis] * block.numbers[j, run].astype(np.float64)
    # Codes are looked up: their columns of ones are never made.
    offset = numbers
    for line, size in zip(codes, code_sizes, strict=True):
        scores += weights[:, offset : offset + size][:, line]
        offset += size
    return (scores + intercept[:, np.newaxis]).T


def _fitting(rows: object, numbers: int, code_sizes: tuple[int, ...]) -> RowBlock:
    block = rows if isinstance(rows, RowBlock) else as_block(rows)
    found = block.numbers.shape[1] if is_sparse(block.numbers) else block.numbers.shape[0]
    if found != numbers or len(block.codes) != len(code_sizes):
        expected = f"{numbers} numbers and {len(code_sizes)} category columns"
        got = f"{found} and {len(block.codes)}"
        raise InputError.expected(
            expected, of="rows", got=got, remedy="Encode rows as those of the fit were."
        )
    for j, (line, size) in enumerate(zip(block.codes, code_sizes, strict=True)):
        if line.size and (int(line.max()) >= size or int(line.min()) < 0):
            expected = f"codes from 0 to {size - 1}"
            got, remedy = "a code outside", "Encode rows by the schema of the fit."
            raise InputError.expected(expected, of=f"category column {j}", got=got, remedy=remedy)
    return block


def as_block(rows: Any) -> RowBlock:
    if is_sparse(rows):
        numbers = rows.tocsr().astype(np.float64)
        if not numbers.has_sorted_indices:
            numbers = numbers.sorted_indices()
        return RowBlock(numbers, _no_codes(numbers.shape[0]))
    array = np.asarray(rows)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        got, remedy = f"{array.dtype} of shape {array.shape}", "Encode the rows first."
        raise InputError.expected(
            "numbers of shape (rows, numbers)", of="rows", got=got, remedy=remedy
        )
    return RowBlock(array.T, _no_codes(array.shape[0]))


def is_sparse(array: object) -> bool:
    return bool(sparse.issparse(array))


def _no_codes(rows: int) -> npt.NDArray[np.integer]:
    return np.zeros((0, rows), dtype=np.uint8)
