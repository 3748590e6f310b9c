"""Published algorithms as they are printed, small. **None keeps its claimed guarantee**: what they
really spend is on the pages of `fairveil reproduce` (004:accountant, 003:noise, 002:noise, 001:constants) and, with
counterexamples, in docs/theory/papers.md. They are here to be compared with, on public rows; nothing
of the library calls them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtr

from fairveil.core import compose, curves
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


def standard_errors(x: Any, y: Any, groups: Any, tau: float, bound: float, seed: int) -> Any:
    """Algorithm 1 of Alabi and Wiggins: one released regression, then each group's sum of squared
    residuals; sizes are taken as public. One number x in [-1, 1], y within `bound`. Ones where
    the released Gram matrix or a sum is not positive.

    Printed as tau-zCDP with noise for sums that move by 1. Of one row that is replaced, x'x moves by 1 and
    xy by 2: 001:constants has the general factors, 2 and 4."""
    rng, count = np.random.default_rng(seed), int(np.max(groups)) + 1
    each = tau / (count + 1)
    gram = float(x @ x) + rng.normal() / math.sqrt(each)
    moment = float(x @ y) / bound + rng.normal() / math.sqrt(each)
    nothing = np.ones(count)
    if gram <= 0:
        return nothing
    squares = np.minimum((y - bound * moment / gram * x) ** 2, bound**2)
    sums = np.bincount(groups, squares, count)
    sums += rng.normal(size=count) * bound**2 / math.sqrt(2.0 * each)
    return np.sqrt(sums / np.bincount(groups)) if (sums > 0).all() else nothing


def _sigmoid(values: Any) -> Any:
    return 0.5 * (1.0 + np.tanh(0.5 * values))


def batches(q: float, sigma: float, b: float, rounds: int, delta: float, *, joint: bool) -> float:
    """Epsilon of so many Poisson batches whose gradient has Gaussian noise of deviation sigma and whose
    histogram has Laplace noise of scale b, in units of what one row adds: priced as one batch a round,
    or, as printed, as if each of the two had a batch of its own."""
    parts = [(1 / sigma, b)] if joint else [(1 / sigma, math.inf), (1e-9, b)]
    uses = [(_of_a_batch(q, mu, 1 / scale), rounds) for mu, scale in parts]
    tail = 1e-3 * delta / rounds / len(uses) / 10
    step = compose.step_for(uses, tail)
    pairs = [compose.on_grid(profile, step, tail) for profile, _ in uses]
    sides = [tuple((pair[side], rounds) for pair in pairs) for side in (0, 1)]
    return max(compose.Total(step, side).epsilon(delta) for side in sides)


def _of_a_batch(q: float, mu: float, s: float) -> curves.Profile:
    """Of (1 - q) Q + q P against Q, and back; Q and P are N(0, 1) and Laplace, moved by mu and s.

    Given Laplace's loss l, which is -s, s or between, P / Q = e^(a + l) with a normal of variance mu^2,
    and both divergences are two normal tails; the losses between are integrated at 64 nodes."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    at = s * (1 + nodes) / 2  # where the noise lies, between the two centres
    losses = np.array([-s, *(2 * at - s), s])
    mass = np.array([0.5, *(weights * s / 4 * np.exp(-at)), 0.5 * math.exp(-s)])

    def tails(e: Any) -> tuple[Any, Any, Any]:
        most = np.expm1(np.asarray(e, np.float64))[:, np.newaxis] + q
        cut = np.log(np.where(most > 0, most, 1.0) / q) - losses
        x = np.where(most > 0, (cut + mu * mu / 2) / mu, -np.inf)
        return np.exp(losses), x, np.exp(np.asarray(e, np.float64))[:, np.newaxis]

    def forward(e: Any) -> Any:
        odds, x, most = tails(e)
        return np.maximum((q * odds * ndtr(mu - x) + (1 - q - most) * ndtr(-x)) @ mass, 0.0)

    def backward(e: Any) -> Any:
        odds, x, most = tails(-np.asarray(e, np.float64))
        # at -e: 1 - e^e times the mixture is above 0 where the mixture is below e^-e
        inside = (most - (1 - q)) * ndtr(x) - q * odds * ndtr(x - mu)
        return np.maximum((inside / most) @ mass, 0.0)

    return curves.Profile(forward, backward)
