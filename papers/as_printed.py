"""Published algorithms as they are printed, small. **None keeps its claimed guarantee**: what they
really spend is on the pages of `fairveil reproduce` (004:accountant, 003:noise, 002:noise, 001:constants) and, with
counterexamples, in docs/theory/papers.md. They are here to be compared with, on public rows; nothing
of the library calls them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fairveil.facts import Cells
from fairveil.fairness import DemographicParity, resolve
from fairveil.privacy import Promise, full_batch
from sets import Coded, dense

CLAIM = "does not keep its claimed guarantee"


def raco(
    rows: Coded,
    bound: float,
    *,
    hard: bool = True,
    epsilon: float = 1.0,
    rounds: int = 400,
    clip: float = 6.0,
    temperature: float = 1.0,
    seed: int = 0,
) -> float:
    """Algorithm 1 of RaCO-DP for demographic parity of two groups: the gap of the training rows.

    Descent and ascent on mean loss + sum_j duals_j (value_j - bound), each row's gradient of both parts
    clipped; softmax decisions in the gradient, duals that follow hard decisions or the soft ones; a
    Laplace histogram, as printed, each part priced as if it had a batch of its own.
    """
    rng = np.random.default_rng(seed)
    X = np.hstack([dense(rows, rows), np.ones((rows.block.rows, 1))])
    y, groups = rows.labels.astype(int), rows.sensitive[0].astype(int)
    n, lengths = len(y), np.linalg.norm(X, axis=1)
    system = resolve(DemographicParity(bound), Cells(((0, 1),)), (0, 1)).without_labels()
    counts = np.bincount(groups, minlength=2).astype(float).reshape(2, 1)
    # Half of the budget each; of the histogram 1 / (epsilon / 2 / rounds) a round, composed naively.
    of_gradient = full_batch(Promise(epsilon / 2.0, 1.0 / n**2), rounds=rounds) * clip
    of_histogram = 2.0 * rounds / epsilon
    w, velocity, duals = np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(len(system))
    late, kept = np.zeros(X.shape[1]), 0
    for round in range(rounds):
        score = X @ w
        soft = _sigmoid(score / temperature)
        decided = (score > 0).astype(float) if hard else soft
        ones = np.bincount(groups, decided, minlength=2).reshape(2, 1)
        histogram = np.stack([counts - ones, ones], axis=2)
        histogram += rng.laplace(scale=of_histogram, size=histogram.shape)
        costs = n * system.cell_costs(duals, counts)
        of_row = (costs[..., 1] - costs[..., 0]).ravel()[groups]
        pull = _sigmoid(score) - y + of_row * soft * (1.0 - soft) / temperature
        pull *= np.minimum(1.0, clip / np.maximum(np.abs(pull) * lengths, 1e-12))
        gradient = (X.T @ pull + of_gradient * rng.normal(size=len(w))) / n
        velocity = 0.9 * velocity - 0.05 * gradient
        w = w + velocity
        excess = system.exact_values(histogram, counts) - system.bounds
        duals = np.maximum(duals + 0.3 * excess, 0.0)
        if round >= 2 * rounds / 3:
            late, kept = late + w, kept + 1
    decided = X @ (late / kept) > 0
    return abs(float(decided[groups == 0].mean() - decided[groups == 1].mean()))


def fermi_noise(epsilon: float, delta: float, rounds: int, rate: float) -> float:
    """The multiplier of Theorem 3.3 of DP-FERMI, each player's: sqrt(2 T q^2 ln(1 / delta)) / eps."""
    return math.sqrt(2.0 * rounds * rate**2 * math.log(1.0 / delta)) / epsilon


def oracle_learner_noise(sizes: Any, rows: int, epsilon: float, delta: float, rounds: int) -> float:
    """The scale of the auditor's Laplace noise in Algorithm 3 of Jagielski et al.: it divides by the
    smallest share of group and label, which is read from the rows and never released."""
    least = float(np.min(sizes)) / rows
    per_round = epsilon / (4.0 * math.sqrt(rounds * math.log(1.0 / delta)))
    return 2.0 / (least * rows * per_round - 1.0)


def _sigmoid(values: Any) -> Any:
    return 0.5 * (1.0 + np.tanh(0.5 * values))
