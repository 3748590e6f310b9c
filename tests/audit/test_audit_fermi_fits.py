"""`FermiClassifier` under attack by what it returns: coefficients of linear models, logits of
networks, and reported gaps.

False alarms: a test that a right claim stands fails for 5 % of fresh seeds at most (the bounds'
confidence); seeds are fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fairveil import Descent, FermiClassifier
from fairveil.audit import PointClaim, audit_fit

torch.set_num_threads(1)
FAR = [[0.0, 300.0]]


def handed_out(budget: float, protects: str, network: bool) -> Any:
    """What is fitted, as numbers: parameters, and the gaps that are reported."""

    def fit(rows: Any, seed: int) -> Any:
        X, y, A = rows
        model = None
        if network:
            model = nn.Linear(2, 1)
            nn.init.zeros_(model.weight)
            nn.init.zeros_(model.bias)
        clf = FermiClassifier(
            "demographic_parity", 3.0, model, epsilon=budget, delta=1e-5, protects=protects, random_state=seed, public_rows=100,
            solver=Descent(rounds=4, sampling_rate=1.0 if network else None),
        ).fit(X, y, sensitive_features=A)  # fmt: skip
        return np.concatenate([clf.outcome_.weights.ravel(), clf.outcome_.values])

    return fit


def pair(protects: str) -> tuple[Any, Any]:
    """One person more, far out; or in the other group."""
    rng = np.random.default_rng(1)
    X, y, A = rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    with_one = np.vstack([X, FAR]), np.append(y, 1)
    there = (*with_one, np.append(A, 1))
    return ((X, y, A) if protects == "records" else (*with_one, np.append(A, 0))), there


@pytest.mark.filterwarnings("ignore")  # small data warn of delta
@pytest.mark.parametrize(
    ("protects", "network"), [("records", False), ("records", True), ("sensitive_features", False)]
)
def test_the_final_model_tells_no_more_than_was_promised(protects: str, network: bool) -> None:
    """The same attack tells that epsilon 300 is not epsilon 1: it has power."""
    here, there = pair(protects)
    claim = PointClaim(1.0, 1e-5)
    kept = audit_fit(
        handed_out(1.0, protects, network), here, there, trials=100, delta=1e-5, claimed=claim
    )
    assert not kept.contradicts()
    broken = audit_fit(
        handed_out(300.0, protects, network), here, there, trials=100, delta=1e-5, claimed=claim
    )
    assert broken.contradicts()
