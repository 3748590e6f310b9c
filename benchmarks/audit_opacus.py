"""A network that opacus trains, audited in one run with many canaries; and the same with its noise
forgotten.

    pip install opacus
    python benchmarks/audit_opacus.py [--canaries 200] [--epsilon 1]

opacus is no dependency of this library. The script takes about a minute on one core.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from opacus.accountants.utils import get_noise_multiplier
from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch.nn.functional import binary_cross_entropy_with_logits as log_loss

import fairveil as fv
from fairveil.facts import Boolean, Number, Schema

NUMBERS = [f"x{at}" for at in range(20)]
SCHEMA = Schema({name: Number(-1, 1) for name in NUMBERS} | {"hired": Boolean()}, target="hired")
DELTA, ROUNDS, CLIP = 1e-5, 400, 1.0


def as_tensors(table: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and labels."""
    features = np.stack([np.asarray(table[name], np.float32) for name in NUMBERS], axis=1)
    return torch.tensor(features), torch.tensor(np.asarray(table["hired"]).astype(np.float32))


def fit(
    epsilon: float, noise: float
) -> Callable[[dict[str, Any], int], Callable[[dict[str, Any]], Any]]:
    """A user's own `fit`: full batches, `noise` times what the claim needs."""
    sigma = get_noise_multiplier(
        target_epsilon=epsilon, target_delta=DELTA, sample_rate=1.0, steps=ROUNDS
    )

    def trained(table: dict[str, Any], seed: int) -> Callable[[dict[str, Any]], Any]:
        torch.manual_seed(seed)
        plain = torch.nn.Sequential(
            torch.nn.Linear(len(NUMBERS), 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)
        )
        model = GradSampleModule(plain)
        X, y = as_tensors(table)
        steps = torch.optim.SGD(model.parameters(), lr=4.0)
        optimizer = DPOptimizer(
            steps, noise_multiplier=noise * sigma, max_grad_norm=CLIP, expected_batch_size=len(X)
        )
        for _ in range(ROUNDS):
            optimizer.zero_grad()
            log_loss(model(X)[:, 0], y).backward()
            optimizer.step()

        def membership(rows: dict[str, Any]) -> Any:
            features, labels = as_tensors(rows)
            with torch.no_grad():
                return -log_loss(plain(features)[:, 0], labels, reduction="none").numpy()

        return membership

    return trained


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--canaries", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, noise in (("as it is", 1.0), ("without its noise", 0.0)):
        options = {
            "schema": SCHEMA,
            "epsilon": given.epsilon,
            "delta": DELTA,
            "canaries": given.canaries,
            "rows": 100,
        }
        found = fv.audit.one_run(fit(given.epsilon, noise), guesses=given.canaries // 8, **options)
        print(
            f"opacus, {name}: {found.right} of {found.guesses} right, epsilon >= "
            f"{found.epsilon_lower:.2f} of {given.epsilon:g}"
        )
        print("    the claim is refuted" if found.refuted else "    the claim is not refuted")


if __name__ == "__main__":
    main()
