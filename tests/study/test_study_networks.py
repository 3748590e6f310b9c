"""Frontiers of networks, and of what they are not made for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fairveil as fv
import ways
from fairveil.curator import Curator
from fairveil.errors import InputError
from knobs import made

torch.set_num_threads(1)


@pytest.fixture(name="rows")
def some_rows() -> Any:
    rng = np.random.default_rng(0)
    A = rng.integers(2, size=600)
    X = rng.normal(size=(600, 3)) + 0.5 * A[:, np.newaxis]
    return X, (X.sum(axis=1) + rng.normal(size=600) > 1).astype(int), A


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


@pytest.mark.filterwarnings("ignore::fairveil.errors.ConstraintNotMet")
def test_networks_are_swept_one_by_one_and_each_is_the_fit_alone(rows: Any) -> None:
    X, y, A = (part[:500] for part in rows)
    shared: dict[str, Any] = {"model": network(), "rounds": 30}
    found = fv.frontier(
        X, y, A, gaps=(0.9, 0.5), epsilons=(20.0,), seeds=2, estimator=made(fv.FairClassifier, **shared),
        test=tuple(part[500:] for part in rows),
    )  # fmt: skip
    assert len(found.models) == 4
    one = found.models[20.0, 0.9, 1]
    alone = made(
        fv.FairClassifier,
        fv.DemographicParity(0.9),
        epsilon=20.0,
        random_state=1,
        **shared,
    )
    alone.fit(X, y, sensitive_features=A)
    assert one.model_.parameters.tobytes() == alone.model_.parameters.tobytes()
    assert one.privacy_.events == alone.privacy_.events
    assert all(0 <= line["error"] <= 1 for line in found.table())
    # that of all of them says what each of them says
    for statement in (one.privacy_, found.privacy):
        assert "user-code-trusted" in statement.stamps
        assert statement.arithmetic == "float32-by-row"
        assert not statement.check()


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (
            ways.fermi(),
            "got 'FairClassifier by Fermi'.*what is swept is a bound",
        ),
        (fv.FairClassifier(checkpoint=Path("here")), "checkpoint: expected None"),
    ],
    ids=str,
)
def test_what_a_frontier_is_not_made_for_is_refused_before_anything_is_asked(
    rows: Any, estimator: Any, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(Curator, "answer", lambda *_, **__: asked.append(1))
    with pytest.raises(InputError, match=match):
        fv.frontier(*rows, estimator=estimator)
    assert not asked


def test_images_are_refused_in_words(rows: Any) -> None:
    X, y, A = rows
    template = fv.FairClassifier(model=network(), solver=fv.PrimalDual(rounds=3))
    with pytest.raises(InputError):
        fv.frontier(
            X.reshape(600, 1, 3, 1), y, A, gaps=(0.5,), epsilons=(1.0,), seeds=1, estimator=template
        )
