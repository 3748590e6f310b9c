"""What one run with many canaries shows of a network, and which planted leaks.

python benchmarks/audit_canaries.py [--canaries 100] [--guesses 30] [--epsilon 1,10,40]
"""

from __future__ import annotations

import argparse
import warnings

import torch

import fairveil as fv
from fairveil.facts import Boolean, Category, Number, Schema

SCHEMA = Schema(
    {f"x{at}": Number(-1, 1) for at in range(6)}
    | {"sex": Category(("f", "m")), "hired": Boolean()},
    target="hired",
    sensitive="sex",
)


def network(epsilon: float) -> fv.RateConstrainedClassifier:
    """256 hidden units with large weights, so that gradients of canaries point apart; 4 rounds of
    all rows."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(6, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    with torch.no_grad():
        for parameters in module.parameters():
            parameters *= 4.0
    options = {
        "rounds": 4,
        "sampling_rate": 1.0,
        "public_rows": 150,
        "clip": 0.3,
        "delta": 1e-6,
        "schema": SCHEMA,
    }
    return fv.RateConstrainedClassifier(None, model=module, epsilon=epsilon, **options)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--canaries", type=int, default=100)
    parser.add_argument("--guesses", type=int, default=30)
    parser.add_argument("--epsilon", default="1,10,40")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for epsilon in map(float, given.epsilon.split(",")):
        found = fv.audit.one_run(
            network(epsilon), canaries=given.canaries, guesses=given.guesses, rows=100
        )
        named = ", ".join(name for name, there in found.planted if there) or "nothing"
        print(
            f"epsilon {epsilon:g}: {found.right} of {found.guesses} right, at least "
            f"{found.epsilon_lower:.2f}; found: {named}"
        )


if __name__ == "__main__":
    main()
