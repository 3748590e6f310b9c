"""How far rates of the rows that were drawn are from those of the people that they were drawn from:
sampling error.

A constraint's value is a sum of quotients of counts. One more row in a place (cell, label,
decision) moves it by its influence there, and the rows in a place are as many as were drawn, so to
first order

    variance = sum over places of rows x influence^2.

Rates of few rows are moved towards each other first, by two rows for each place (Agresti and
Coull's correction): a group of ten rows without an error is not taken for one that makes none.
Post-processing of released counts, which may be noisy.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from .._types import Floats
from .systems import ConstraintSystem

ADDED = 2.0
"""Rows that are added to each place."""


def deviations(
    system: ConstraintSystem, histogram: Floats, counts: Floats, *, heaviest: float | None = None
) -> Floats:
    """The standard deviation of each constraint's value over draws of the rows; NaN where an event
    has no row.

    `histogram` (cells, labels, classes) of decisions, `counts` (cells, labels) of rows, as
    released. `heaviest`: the largest weight of a row, where rows have weights, which the counts are
    sums of.
    """
    sizes = np.maximum(np.asarray(counts, np.float64), 0.0)
    classes = system.shape[2]
    hits = np.clip(histogram, 0.0, sizes[..., np.newaxis]) + ADDED
    # Two rows more at each place: a rate of 0 in a small group is not known without error.
    rows = sizes[..., np.newaxis] * hits / (sizes[..., np.newaxis] + classes * ADDED)
    events = system.event_sizes(sizes)
    weights = 1.0 / events[system.event_of]
    rates = (system.numerators @ rows.ravel()) * weights
    members = sparse.csr_array(sparse.kron(system.members, np.ones((1, classes)), format="csr"))[
        system.event_of
    ]
    known = np.nan_to_num(weights)
    slopes = sparse.diags_array(known) @ (
        system.numerators - sparse.diags_array(np.nan_to_num(rates)) @ members
    )
    influence = sparse.csr_array(system.coefficients @ slopes)
    # The delta method: each row moves the value by its influence, and rows are independent draws.
    variance = np.asarray(influence.power(2) @ rows.ravel()) * (
        1.0 if heaviest is None else heaviest
    )
    undefined = np.asarray(abs(system.coefficients) @ np.isnan(weights).astype(np.float64)) > 0
    return np.where(undefined, math.nan, np.sqrt(variance))
