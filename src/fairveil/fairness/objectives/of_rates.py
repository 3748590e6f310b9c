"""Rates of a system of constraints as lines over the vector of group losses."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache

from scipy import sparse

from ...errors import InputError
from ...facts import Cells
from .. import outer
from ..group_function import GroupFunction
from ..rates import Notion
from ..resolution import resolve
from ..systems import ConstraintSystem
from .objective import Frame


def require_pairs(system: ConstraintSystem, frame: Frame, of: str) -> None:
    if not len(system):
        got, remedy = (
            f"groups {list(frame.cells.keys)}",
            "Pass sensitive_features with several groups.",
        )
        raise InputError.expected("at least two groups to compare", of=of, got=got, remedy=remedy)


@lru_cache(maxsize=64)
def resolved(
    notions: tuple[Notion, ...], cells: Cells, classes: tuple[Hashable, ...]
) -> ConstraintSystem:
    return resolve(notions, cells, classes)


def of_system(
    system: ConstraintSystem, frame: Frame, function: outer.Outer, *, bounded: bool = False
) -> GroupFunction:
    """Combinations of rates as lines over l; less their bounds, if they are `bounded`."""
    lines = sparse.csr_array(system.jacobian(frame.shares, frame.least))
    if bounded:
        return GroupFunction(
            frame.shape, lines, function, names=system.names, offsets=system.bounds
        )
    return GroupFunction(
        frame.shape,
        lines,
        function,
        names=tuple(name.rsplit(" <= ", 1)[0] for name in system.names),
    )


def largest(sharpness: float | None, smooth: str) -> outer.Outer:
    if sharpness is None:
        return outer.Largest()
    return outer.SoftLargest(sharpness) if smooth == "exponential" else outer.Boltzmann(sharpness)
