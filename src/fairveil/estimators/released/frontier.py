"""A whole frontier from one release: a classifier for every gap, at one price."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ... import _checks
from ..._types import ColumnsLike, TableLike
from ...errors import ConstraintNotMet, InputError
from ...fairness import resolve
from ...fairness.notions import parse
from ...statement.document import PrivacyStatement
from .. import fitting
from .classifier import ReleasedClassifier, searched
from .released_counts import ReleasedCounts


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedFrontier:
    """`models`: a classifier for each of `gaps`. `privacy`: of the release, which is the price of
    looking at all of them."""

    gaps: tuple[float, ...]
    models: tuple[ReleasedClassifier, ...]
    privacy: PrivacyStatement

    def table(self) -> list[dict[str, float]]:
        """One line a gap: the exact error on the public rows, and the largest value at the release
        with its bounds."""
        out = []
        for gap, model in zip(self.gaps, self.models, strict=True):
            at = max(model.report_, key=lambda line: line.value)
            line = {"target": gap, "error": model.error_, "gap": at.value, "within": at.within}
            out.append(line | {"gap_high": max(one.high for one in model.report_)})
        return out

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[ReleasedClassifier]:
        return iter(self.models)

    def __repr__(self) -> str:
        return (
            f"ReleasedFrontier({len(self)} models from one release of epsilon "
            f"{self.privacy.epsilon:.3g})"
        )


def swept(
    released: ReleasedCounts,
    X: TableLike,
    y: ColumnsLike,
    constraint: object,
    gaps: Iterable[float | None],
    estimator: object,
    rounds: int,
) -> ReleasedFrontier:
    """One search, and a linear program a gap. `constraint`: a notion's name, or a function from a
    gap to constraints."""
    listed = tuple(_checks.non_negative(gaps=gap) for gap in gaps)
    if not listed:
        raise InputError.expected(
            "at least one gap", of="gaps", got=[], remedy="Pass gaps=(0.1, 0.05), for example."
        )
    asked = [
        fitting.notions_of(
            constraint(gap) if callable(constraint) else parse(f"{constraint}:{gap}")
        )
        for gap in listed
    ]
    found = searched(released, X, y, asked[int(np.argmin(listed))], estimator, rounds)
    models = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstraintNotMet)
        for notions in asked:
            one = ReleasedClassifier(notions, estimator=estimator, rounds=rounds)
            one.settle(found, resolve(notions, released.cells, released.classes).bounds, X, y)
            models.append(one)
    return ReleasedFrontier(listed, tuple(models), released.privacy)
