"""A trace: what a search asks without rows is what a curator logs, at any multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from fairveil.core.promise import Promise
from fairveil.curator import Trace
from fairveil.facts import Cells, RowLayout
from fairveil.fairness import DemographicParity
from fairveil.methods import PrimalDual, Settings, descend
from fairveil.methods.primal_dual import planned

LAYOUT = RowLayout(3, (4,), (0, 1), (("f", "m", "x"),), ("sex",))
CELLS = Cells((("f", "m", "x"),), names=("sex",))
PROMISES = {
    "add-remove": Promise(1.0, 1e-6),
    "replace-one": Promise(1.0, 1e-6, neighbours="replace-one"),
    "groups alone": Promise(1.0, 1e-6, protects="sensitive_features"),
}


def noise(seed: int):
    rng = np.random.default_rng(seed)
    return lambda shape, number: rng.normal(300.0, 400.0, shape)


@pytest.mark.parametrize("rate", [None, 0.2])
@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
def test_a_trace_is_the_plan_whatever_is_answered(promise: Promise, rate: float | None) -> None:
    settings = Settings(rounds=7, sampling_rate=rate)
    known = (promise, LAYOUT, CELLS, [DemographicParity(0.05)], settings)
    search = PrimalDual(planned(*known, companion=rate is None))
    plans = []
    for made_up in (None, noise(1), noise(2)):
        trace = Trace(LAYOUT, promise, made_up=made_up)
        descend(trace, search.search())
        plans.append(trace.plan)
    assert plans[0] == plans[1] == plans[2] == search.plan
    # at other multipliers, as if it had been traced with them
    again = trace.repriced(lambda one: 3.0 * np.asarray(one.multiplier))
    louder = Trace(LAYOUT, promise)
    for one in trace.asked:
        louder.answer([(m.question, 3.0 * m.multiplier) for m in one.measurements], one.batch)
    assert again == louder.plan != trace.plan
