"""Networks in groups that share a budget: what is asked of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fairveil.facts import Schema

torch = pytest.importorskip("torch")

import fairveil as fv  # noqa: E402


@pytest.mark.parametrize("objective", [None, "error"])
def test_without_privacy_a_round_of_a_part_of_the_rows_steps_as_far_as_one_of_all(
    objective: str | None,
) -> None:
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=8_000)
    X = rng.normal(size=(8_000, 2))
    y = (X[:, 0] + sex * X[:, 1] > 0).astype(int)
    net = torch.nn.Linear(2, 1)
    torch.nn.init.zeros_(net.weight)
    torch.nn.init.zeros_(net.bias)
    steps = []
    for rate in (1.0, 0.25):
        model = fv.FairClassifier(
            model=net,
            objective=objective,
            epsilon=math.inf,
            solver=fv.Tailored(rounds=1, sampling_rate=rate),
            schema=Schema(unsafe_data_dependent_bounds=True),
        )
        steps.append(np.asarray(model.fit(X, y, sensitive_features=sex).model_.parameters))
    assert np.linalg.norm(steps[1] - steps[0]) < 0.1 * np.linalg.norm(steps[0])
