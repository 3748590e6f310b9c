"""fairlearn and opacus on the rows of `scale.py`: neither streams, so rows are one dense matrix.

fairlearn: `ExponentiatedGradient` with `LogisticRegression(solver="newton-cholesky")`, demographic
parity within 5 points, at its defaults, not private. opacus: logistic regression in torch,
`PrivacyEngine.make_private` with Poisson batches of 512 rows, noise multiplier 1, clip 1, one
epoch; not fair. A fit takes as many epochs as somebody chooses. Numbers are float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from fairveil.facts import RowBlock

BATCH = 512


def matrix(blocks: Iterator[RowBlock], sizes: tuple[int, ...], rows: int) -> tuple[Any, Any, Any]:
    """Numbers and indicators, labels, groups."""
    width = 6 + sum(sizes)
    X, y, groups = (
        np.zeros((rows, width), np.float32),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
    )
    start = 0
    for block in blocks:
        assert block.labels is not None
        assert block.sensitive is not None
        part = slice(start, start + block.rows)
        X[part, :6] = np.asarray(block.numbers).T
        at, first = np.arange(start, start + block.rows), 6
        for codes, size in zip(block.codes, sizes, strict=True):
            X[at, first + codes.astype(np.intp)] = 1.0
            first += size
        y[part], groups[part] = block.labels, block.sensitive[0]
        start += block.rows
    return X, y, groups


def fairlearn(X: Any, y: Any, groups: Any) -> str:
    """One fit; how often its learner was asked."""
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient
    from sklearn.linear_model import LogisticRegression

    learner = LogisticRegression(solver="newton-cholesky")
    model = ExponentiatedGradient(learner, DemographicParity(difference_bound=0.05))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sensitive_features=groups)
    return f"{model.n_oracle_calls_} fits of its learner"


def opacus(X: Any, y: Any, groups: Any) -> str:
    """One epoch; how many steps that was."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(0)
    model = torch.nn.Linear(X.shape[1], 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    rows = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    loader = torch.utils.data.DataLoader(rows, batch_size=BATCH)
    steps = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
        for batch, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
            steps += 1
    return f"{steps} steps of about {BATCH} rows, one epoch"


FITS = {"fairlearn": fairlearn, "opacus": opacus}
