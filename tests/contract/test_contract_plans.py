"""A plan before a fit: it reads no row, changes nothing, and is what the fit then does."""

from __future__ import annotations

from typing import Any

import numpy as np
from configurations import ROWS, Configuration
from observing import shown
from seam import recording


def test_a_plan_is_what_the_fit_releases(estimator_row: Configuration, fitted: Any) -> None:
    """The same noise multipliers in the same number, and no row is asked."""
    row = estimator_row
    if not row.schema or "search" in row.tags or "certified" in row.name:
        return  # a plan of a certified fit is refused, by name
    estimator = row.estimator()
    before = shown(estimator)
    with recording() as tape:
        plan = estimator.plan(row.facts, rows=ROWS)
    assert not tape.entries
    assert shown(estimator) == before
    assert plan.promise == row.statement(fitted(row)).promise
    assert plan.releases
    with recording() as tape:
        row.run()
    if row.protects == "records" and row.name not in BY_GROUP:
        made = sum(len(one.names) for one in tape.entries if one.event is not None)
        planned = sum(release.times for release in plan.releases)
        assert planned == made, row.name
    noisy = [
        np.min(m) for one in tape.entries for m in one.multipliers if np.all(np.asarray(m) > 0)
    ]
    least = min(r.multiplier for r in plan.releases if r.multiplier)
    assert row.name in BY_GROUP or np.isclose(min(noisy), least, rtol=1e-6)


# Shares by group are made of released counts: a plan holds their bound. Bases of post-processing
# are planned as fits of their own.
BY_GROUP = {
    "tailored-alone",
    "tailored-persons",
    "tailored-regressor",
    "odds-decisions",
    "odds-alone",
    "parity-grades",
    "objective-exponential",
}
