"""`tailoring_.shares` are those that were used: what the noise of the groups' releases says,
whatever limits did to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tailored_estimator_samples as t

from fairveil.core.events import PerCell, compose, spelled_out
from fairveil.methods.allocation import as_spent

GIVEN = {"f": 9.0, "m": 1.0}


def used(estimator: Any) -> Any:
    """Of the releases with a noise for each group: precisions, which add up to 1."""
    found = [
        event
        for event in spelled_out(compose(estimator.privacy_.events))
        if isinstance(event, PerCell)
    ]
    (multipliers,) = {event.multipliers[0] for event in found}
    precision = np.array(multipliers) ** -2.0
    return precision / precision.sum()


def fitted(kind: str, **options: Any) -> Any:
    if kind == "classifier":
        return t.quietly(t.classifier(GIVEN, **options), t.X, t.LABELS, sensitive_features=t.SEX)
    return t.quietly(t.regressor(GIVEN, method=kind, **options), t.X, t.Y, sensitive_features=t.SEX)


@pytest.mark.parametrize("kind", ["classifier", "moments", "descent"])
def test_shares_within_limits_are_those_of_the_noise(kind: str) -> None:
    free = fitted(kind)
    assert free.tailoring_.shares == pytest.approx((0.9, 0.1), rel=1e-9)
    assert free.tailoring_.shares == pytest.approx(used(free), rel=1e-6)
    assert "limits" not in free.tailoring_.why
    for limits in (
        {"max_epsilon": {"f": 1.5}},
        {"min_epsilon": {"m": 2.0}},
        {"max_epsilon": {"f": 2.0}, "min_epsilon": 1.9},
    ):
        held = fitted(kind, **limits)
        assert held.tailoring_.shares == pytest.approx(used(held), rel=1e-6)
        assert held.tailoring_.shares[0] < 0.85
        assert sum(held.tailoring_.shares) == pytest.approx(1.0)
        assert "limits" in held.tailoring_.why
        facts, table, *_ = held.tailoring_.parts()
        assert [row["share"] for row in table.rows()] == list(held.tailoring_.shares)
        assert "limits" in facts.facts[0].words


def test_shares_are_the_rules_where_nothing_is_charged_or_everything() -> None:
    shares, columns = np.array([0.75, 0.25, 0.5, 0.5]), [slice(0, 2), slice(2, 4)]
    assert as_spent(shares, np.full(4, np.inf), columns, "why") == (pytest.approx(shares), "why")
    assert as_spent(shares, np.zeros(4), columns, "why") == (pytest.approx(shares), "why")
    found, why = as_spent(shares, np.array([2.0, 2.0, 1.0, 1.0]), columns, "why")
    assert found.tolist() == [0.5, 0.5, 0.5, 0.5]
    assert why.startswith("why; ")
