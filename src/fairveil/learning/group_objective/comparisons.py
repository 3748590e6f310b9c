"""Functions of group losses line by line: which lines take part, and what is reported of each
comparison."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..._types import Floats, Mask
from ...fairness.functions import (
    GroupFunction,
    Inequality,
    Largest,
    MeanOfRates,
    Stated,
    Total,
    gini,
)


def above_floor(function: GroupFunction, lower: GroupFunction) -> Mask:
    """The lines that a lower floor leaves as they are: they divide by no share below it. All, of
    functions that need all."""
    if isinstance(function.outer, Total | Stated) and not isinstance(function.outer, MeanOfRates):
        return np.ones(function.lines.shape[0], np.bool_)
    return np.asarray(np.diff((function.lines - lower.lines).tocsr().indptr) == 0)


def with_lines(function: GroupFunction, lines: Mask) -> GroupFunction:
    """The function of these rates alone; of nothing but zeros, if there are none."""
    if lines.all():
        return function
    if function.outer.keeps_lines:
        return replace(function, lines=function.lines.multiply(lines[:, np.newaxis]).tocsr())
    kept = lines if lines.any() else np.arange(len(lines)) == 0
    offsets = (
        function.offsets if np.ndim(function.offsets) == 0 else np.asarray(function.offsets)[kept]
    )
    names = tuple(itertools.compress(function.names, kept))
    return replace(
        function, lines=function.lines[kept] * float(lines.any()), offsets=offsets, names=names
    )


def shown_of(asked: Sequence[GroupFunction], told: Sequence[Mask]) -> list[GroupFunction]:
    """What values are reported of: all comparisons of a largest, and other functions of the rates
    that take part."""
    pairs = zip(asked, told, strict=True)
    return [
        one if isinstance(one.outer, Largest) else with_lines(one, lines) for one, lines in pairs
    ]


def each_value(function: GroupFunction, losses: Floats) -> Floats:
    if isinstance(function.outer, Largest):
        return np.asarray(function.rates(losses) - function.offsets - function.bound)
    return np.array([float(function.value(losses))])


def values_of(
    constraints: Sequence[GroupFunction], losses: Floats, titles: tuple[str, ...]
) -> tuple[tuple[str, ...], Floats, Floats]:
    """(names, bounds, values): a line for each comparison of a largest, one for any other
    function."""
    names: list[str] = []
    bounds: list[Floats] = []
    for title, function in zip(titles, constraints, strict=True):
        if isinstance(function.outer, Largest):
            offsets = np.broadcast_to(function.offsets, len(function.names))
            names += [
                name if np.ndim(function.offsets) else f"{name} <= {function.bound:g}"
                for name in function.names
            ]
            bounds.append(offsets + function.bound)
        else:
            names.append(title)
            bounds.append(
                np.array(
                    [
                        function.outer.theta
                        if isinstance(function.outer, Inequality)
                        else function.bound
                    ]
                )
            )
    return (
        tuple(names),
        np.concatenate(bounds) if bounds else np.zeros(0),
        measured_values(constraints, losses),
    )


def measured_values(constraints: Sequence[GroupFunction], losses: Floats) -> Floats:
    """The values alone: they are asked for again and again."""
    values: list[Any] = [np.zeros(0)]
    for function in constraints:
        if isinstance(function.outer, Largest):
            values.append(function.rates(losses))
        elif isinstance(function.outer, Inequality):
            values.append([float(gini(np.maximum(function.rates(losses), 0.0)))])
        else:
            values.append([float(function.value(losses)) + function.bound])
    return np.concatenate(values)
