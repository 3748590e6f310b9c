"""Few cases in place of all: every two values of two parameters meet in one of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any


def pairs(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Cases in which every value of an axis meets every value of every other axis, for
    `parametrize` over several names. Three axes of 3, 3 and 2 values make 9 cases, not 18."""
    values = [list(axis) for axis in axes]
    whole = list(itertools.product(*(range(len(axis)) for axis in values)))
    left = {pair for case in whole for pair in _met(case)}
    chosen = []
    while left:
        case = max(whole, key=lambda case: len(left.intersection(_met(case))))
        left.difference_update(_met(case))
        chosen.append(tuple(axis[at] for axis, at in zip(values, case, strict=True)))
    return chosen


def _met(case: tuple[int, ...]) -> list[tuple[Any, Any]]:
    return list(itertools.combinations(enumerate(case), 2))
