"""Short fits of penalised classifiers and small networks, for the tests of `FermiClassifier` and of
`model=`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import fairveil as fv

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is run as a program of its own
import ways
from knobs import made

torch.set_num_threads(1)  # bits are compared: sums of several threads are added in any order
Table = tuple[Any, Any, Any]


def penalised(
    notion: Any = "demographic_parity",
    strength: float = 3.0,
    model: Any = None,
    *,
    groups: str = "product",
    positive: Any = None,
    **options: Any,
) -> Any:
    """A seeded fit of few rounds."""
    if groups != "product" or positive is not None:
        kinds: dict[str, Any] = {
            "demographic_parity": fv.DemographicParity,
            "equalized_odds": fv.EqualizedOdds,
            "equal_opportunity": fv.EqualOpportunity,
        }
        named = {} if positive is None else {"positive": positive}
        notion = kinds[notion](None, groups=groups, **named)
    return made(
        ways.fermi,
        notion,
        strength,
        model,
        **{"random_state": 0, "rounds": 8, "epsilon": 3.0, **options},
    )


def unfair(
    rows: int = 1500, classes: int = 2, groups: int = 2, width: int = 3, seed: int = 0
) -> Table:
    """The first feature depends on the group, and labels on all of them: a model can do without the
    first."""
    rng = np.random.default_rng(seed)
    A = rng.integers(groups, size=rows)
    X = rng.normal(size=(rows, width))
    X[:, 0] += A - (groups - 1) / 2
    score = X.sum(axis=1) + rng.normal(size=rows)
    return X, np.digitize(score, np.quantile(score, np.arange(1, classes) / classes)), A


def net(width: int = 3, outputs: int = 1, hidden: int = 8, seed: int = 0) -> nn.Sequential:
    """Two layers, the same ones at every call."""
    generator = torch.Generator().manual_seed(seed)
    module = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, outputs))
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(0.5 * torch.randn(p.shape, generator=generator))
    return module


def numbers_of(module: nn.Module) -> dict[str, bytes]:
    """The state of a module, to the bit."""
    return {name: value.numpy().tobytes() for name, value in module.state_dict().items()}


def fit_kept_at(folder: str, **options: Any) -> Any:
    """A network's fit of 12 rounds whose answers are kept."""
    X, y, A = unfair(600)
    clf = penalised(model=net(), rounds=12, checkpoint=folder, **options)
    return clf.fit(X, y, sensitive_features=A)
