"""Thresholds of the models that a descent hands out, moved to where the constraints hold."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..._types import Floats
from .batches import EDGES
from .plan import Plan
from .threshold import choose


def moved(
    planned: Plan,
    found: Floats,
    answers: list[Floats],
    bounds: Floats,
    counted: Floats,
    rows: Floats,
) -> tuple[Floats, Floats, Floats, Floats, list[int]]:
    """Models with their thresholds where the constraints hold, if they do not at zero; their
    values, their noise and sampling error, and from how many thresholds each was picked by
    them."""
    assert planned.system is not None
    shape = planned.system.shape[:2]
    per_row = 1 if planned.cells is None else planned.cells.per_row
    weights, values, spread, looks = found.copy(), [], [], []
    sampling = []
    for m, counts in enumerate(counted):
        decisions = answers[0][m].reshape(shape)
        chosen = choose(
            EDGES,
            decisions,
            answers[1][m],
            partial(_values_at, planned, counts),
            bounds[m],
            planned.noise_of(counts, decisions[..., np.newaxis]),
            planned.bin_noise,
            float(rows[m]) * per_row,
        )
        weights[m, 0, 0] -= chosen.at
        values.append(chosen.values)
        spread.append(planned.noise_of(counts, chosen.decisions[..., np.newaxis])(chosen.bins))
        sampling.append(planned.sampling_of(counts, chosen.decisions[..., np.newaxis]))
        looks.append(chosen.looks)
    return weights, np.stack(values), np.stack(spread), np.stack(sampling), looks


def _values_at(planned: Plan, counts: Floats, decisions: Floats) -> Floats:
    """Constraint values (thresholds, constraints) of decisions for the second class
    (thresholds, cells, labels)."""
    assert planned.system is not None
    histogram = planned.by_class(decisions, np.broadcast_to(counts, decisions.shape))
    return planned.system.exact_values(histogram, counts, planned.floor)
