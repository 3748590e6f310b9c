"""Deciding for one class, whatever the row: the constraints' values of it, from released counts,
and how far these are off.

Rates of decisions are then 0 or 1, and nothing moves them. Rates of errors are shares of labels:
counts, with the counts' noise and the luck of the rows in them. All arrays are (classes,
constraints).

Guarantees (tests/methods/test_methods_comparison.py):
1. Values, noise and sampling errors are those of repeated draws; rates of 0 and 1 have neither
   noise nor sampling error.
"""

from __future__ import annotations

import numpy as np

from .._types import Floats
from ..fairness import ConstraintSystem, deviations
from .systems import slopes_of_constant

TINY = 1e-12


def values_of(system: ConstraintSystem, counts: Floats, floor: float | None) -> Floats:
    """Each constraint's value. `floor`: the least number of rows that an event is taken to have."""
    return system.exact_values(
        _decided(system, counts), np.broadcast_to(counts, (system.shape[2], *counts.shape)), floor
    )


def noise_of(system: ConstraintSystem, counts: Floats, floor: float | None, noise: float) -> Floats:
    """Its standard deviation, where each count has noise of this one."""
    return np.asarray(noise * _slopes(system, counts, floor))


def sampling_of(
    system: ConstraintSystem, counts: Floats, floor: float | None, heaviest: float | None
) -> Floats:
    """Its standard deviation over draws of the rows."""
    drawn = [deviations(system, one, counts, heaviest=heaviest) for one in _decided(system, counts)]
    return np.where(_slopes(system, counts, floor) > 0.0, drawn, 0.0)


def _decided(system: ConstraintSystem, counts: Floats) -> Floats:
    """How each of them decides: (classes, cells, labels, decisions)."""
    return np.asarray(
        counts[np.newaxis, ..., np.newaxis] * np.eye(system.shape[2])[:, np.newaxis, np.newaxis, :]
    )


def _slopes(system: ConstraintSystem, counts: Floats, floor: float | None) -> Floats:
    return np.stack(
        [slopes_of_constant(system, counts, floor or TINY, k) for k in range(system.shape[2])]
    )
