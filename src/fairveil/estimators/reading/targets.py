"""A target that is a number: its public bounds, and its scale from them to [-1, 1] and back.

Where records are protected bounds are stated (by a schema or an argument) or, as asked and as the
statement says, read from the rows; without any it is cut to [-1, 1], with a warning. Where it is
public, or nothing is private, its own range will do.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..._types import Floats
from ...core.promise import Promise
from ...data.encoding import Encoding
from ...errors import InputError, UnstatedBounds, complaint
from ...facts import RowBlock, Schema
from ...facts.columns import Number
from ...statement.document import Origin, PublicFact
from ...statement.form import READ_FROM_DATA


@dataclass(frozen=True)
class TargetScale:
    """code = (min(max(y, low), high) - centre) / half, in [-1, 1]. `origin`: where the bounds come
    from.

    >>> scale = TargetScale(0.0, 10.0)
    >>> scale.coded([0.0, 5.0, 12.0]).tolist(), scale.undone([-1.0, 0.5]).tolist()
    ([-1.0, 0.0, 1.0], [0.0, 7.5])
    """

    low: float
    high: float
    origin: Origin = "argument"

    @property
    def centre(self) -> float:
        """Half way between the bounds."""
        return self.low / 2 + self.high / 2

    @property
    def half(self) -> float:
        """Half their distance; 1 where they are one number."""
        return self.high / 2 - self.low / 2 or 1.0

    def coded(self, targets: npt.ArrayLike) -> Floats:
        """Targets in [-1, 1]."""
        cut = np.clip(np.asarray(targets, np.float64), self.low, self.high)
        return np.clip((cut - self.centre) / self.half, -1.0, 1.0)

    def undone(self, codes: npt.ArrayLike) -> Floats:
        """Predictions in the units of the input."""
        return np.asarray(codes, np.float64) * self.half + self.centre

    def in_input_units(self, weights: Floats, intercept: Floats) -> tuple[Floats, Floats]:
        """Coefficients and intercept of a model that predicts codes, for predictions in the units
        of the input."""
        return weights * self.half, intercept * self.half + self.centre

    def fact(self) -> PublicFact:
        """For the statement."""
        return PublicFact("bounds of the target", f"{self.low:g} to {self.high:g}", self.origin)


@dataclass(frozen=True)
class NumericTarget:
    """How a target that is a number is read. `bounds`: as given. `open_range`: its range is public,
    or nothing is private.

    `unsafe`: without other bounds the range of private targets is read all the same, as was asked.
    `as_number`: the rows of the curator have the target as their last number, too, to be scaled
    with the others.
    """

    bounds: tuple[float, float] | None = None
    open_range: bool = False
    unsafe: bool = False
    as_number: bool = False

    @staticmethod
    def of(facts: Schema, promise: Promise, *, as_number: bool) -> NumericTarget:
        """As a schema and a promise say."""
        public, unsafe = promise.features_are_public, facts.unsafe_data_dependent_bounds
        return NumericTarget(facts.target_bounds, public, unsafe, as_number)

    def scale(self, targets: Floats) -> TargetScale:
        """The scale of targets as they came."""
        if self.bounds is not None:
            return TargetScale(*self.bounds, "schema")
        if not (self.open_range or self.unsafe):
            text = complaint(
                expected="public bounds of the target, which protected targets must not say "
                "themselves",
                of="target_bounds",
                got=None,
                remedy="They were taken to be in [-1, 1], as numbers without a schema are, and cut "
                "to it. Pass "
                "schema=Schema(target_bounds=(low, high)), or a schema whose target is a "
                "Number(low, high); with unsafe_data_dependent_bounds=True it reads them from the "
                "rows, and says so.",
            )
            warnings.warn(text, UnstatedBounds, stacklevel=2)
            return TargetScale(-1.0, 1.0, "library default")
        origin: Origin = "public features" if self.open_range else READ_FROM_DATA
        return (
            TargetScale(float(targets.min()), float(targets.max()), origin)
            if len(targets)
            else TargetScale(-1.0, 1.0, "library default")
        )

    def refuse_both(self) -> None:
        """A schema states the bounds of its target: they are not given twice."""
        if self.bounds is not None:
            remedy = "Leave it out: the schema's target has its bounds."
            raise InputError.expected(
                "None beside a schema", of="target_bounds", got=self.bounds, remedy=remedy
            )


def scale_of(encoding: Encoding) -> TargetScale:
    """The scale by which a schema codes its target."""
    column = encoding.schema.columns[encoding.schema.target or ""]
    assert isinstance(column, Number)
    return TargetScale(column.low, column.high, "schema")


def need_number(is_number: bool, of: str) -> None:
    """An error where a target is one of several classes."""
    if not is_number:
        remedy = "Declare the target a Number(low, high), or fit a classifier."
        raise InputError.expected(
            "a target that is a number", of=of, got="classes, or none", remedy=remedy
        )


def with_codes(
    blocks: Sequence[RowBlock], way: NumericTarget
) -> tuple[list[RowBlock], TargetScale]:
    """Rows that were coded elsewhere without a schema, their targets scaled."""
    given = [
        np.zeros(0) if block.labels is None else np.asarray(block.labels, np.float64)
        for block in blocks
    ]
    scale = way.scale(np.concatenate([np.zeros(0), *given]))
    return [
        replace(block, labels=scale.coded(line)) for block, line in zip(blocks, given, strict=True)
    ], scale


def beside(block: RowBlock) -> RowBlock:
    """The target as the last number."""
    assert block.labels is not None
    line = np.asarray(block.labels, np.float64)
    if sparse.issparse(block.numbers):
        parts: list[Any] = [block.numbers, sparse.csr_array(line[:, np.newaxis])]
        return replace(block, numbers=sparse.csr_array(sparse.hstack(parts)))
    return replace(
        block, numbers=np.concatenate([np.asarray(block.numbers, np.float64), line[np.newaxis]])
    )


def within(block: RowBlock) -> RowBlock:
    """A block of a schema, its targets cut to the [-1, 1] that their encoding promises."""
    return (
        block if block.labels is None else replace(block, labels=np.clip(block.labels, -1.0, 1.0))
    )
