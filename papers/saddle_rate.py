"""How stationary noisy descent-ascent is on a saddle problem of Theorem E.3's kind (002:thmE3): the
min-max form of the penalty for two classes and two groups, on made-up rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import expit

import fairveil as fv
from fairveil.core.noise import NoiseSource
from fairveil.curator import Curator, Rows
from fairveil.methods import SaddleDescent, SaddleProblem

GROUPS, NUMBERS, STRENGTH = 2, 4, 0.5
CLIP, CLIP_W, RADIUS, STEP, DELTA = 2.0, 3.0, 3.0, 0.5, 1e-6


@lru_cache(maxsize=4)
def problem(rows: int) -> tuple[Any, Any, Any]:
    """X in [-1, 1], labels and groups: both lie along the sum of the numbers."""
    rng = np.random.default_rng(7)
    groups = rng.integers(0, GROUPS, rows)
    X = np.clip((rng.normal(size=(rows, NUMBERS)) + groups[:, np.newaxis]) / 4.0, -1.0, 1.0)
    y = (X.sum(axis=1) + 0.3 * rng.normal(size=rows) > 0.5).astype(int)
    return X, y, groups


def stationarity(rows: int, epsilon: float, rounds: int, seed: int) -> float:
    """|grad Phi|^2 of one private run's uniform iterate, Phi(theta) = max over W of f(theta, W)."""
    X, y, groups = problem(rows)
    promise = fv.Promise(epsilon, DELTA)
    source = Rows.from_arrays(X, y, [groups], classes=(0, 1), groups=[tuple(range(GROUPS))])
    root = np.sqrt(np.bincount(groups, minlength=GROUPS) / rows)

    def descent(block: Any, theta: Any, w: Any) -> Any:
        p = expit(theta[0] + theta[1:] @ block.numbers)
        pull = _pull(p, block.labels, block.sensitive[0], w.reshape(GROUPS, 2), root)
        return (pull * np.concatenate([np.ones((1, block.rows)), block.numbers])).T

    def ascent(block: Any, theta: Any, w: Any) -> Any:
        p = expit(theta[0] + theta[1:] @ block.numbers)
        decisions = np.stack([1.0 - p, p], axis=1)
        own = np.eye(GROUPS)[block.sensitive[0]] / root
        pull = own[:, :, np.newaxis] - w.reshape(1, GROUPS, 2)
        return (2.0 * STRENGTH * pull * decisions[:, np.newaxis, :]).reshape(block.rows, -1)

    start = np.full((GROUPS, 2), root[:, np.newaxis]).ravel()
    asked = SaddleProblem(
        descent, ascent, np.zeros(1 + NUMBERS), start, CLIP, CLIP_W, radius_w=RADIUS
    )
    search = SaddleDescent.of(
        promise,
        source.layout,
        asked,
        rounds=rounds,
        step_theta=STEP,
        step_w=1.0 / (2.0 * STRENGTH),
        public_rows=rows,
        iterate="uniform",
        generator=np.random.default_rng([seed, rounds]),
    )
    noise = NoiseSource.seeded(seed)
    curator = Curator(source, promise, plan=search.plan, noise=noise, public_rows=rows)
    theta = np.asarray(search.run(curator).theta)
    return float((gradient(theta, X, y, groups, root) ** 2).sum())


def gradient(theta: Any, X: Any, y: Any, groups: Any, root: Any) -> Any:
    """Of Phi, exactly: W at its maximum (Danskin)."""
    p = expit(theta[0] + X @ theta[1:])
    joint = np.array([[np.sum(1 - p[groups == r]), np.sum(p[groups == r])] for r in range(GROUPS)])
    w = joint / joint.sum(axis=0) / root[:, np.newaxis]
    pull = _pull(p, y, groups, w, root)
    design = np.concatenate([np.ones((len(y), 1)), X], axis=1)
    return design.T @ pull / len(y)


def _pull(p: Any, y: Any, groups: Any, w: Any, root: Any) -> Any:
    """Each row's residual: the loss's, and the penalty's through its soft decision."""
    costs = 2.0 * w / root[:, np.newaxis] - (w**2).sum(axis=0)
    difference = (costs[:, 1] - costs[:, 0])[groups]
    return p - y + STRENGTH * difference * p * (1.0 - p)
