"""This library's bounds and jax_privacy's auditor on the same scores, and how often each is above the truth.

    pip install --no-deps jax-privacy
    python benchmarks/audit_auditors.py [--runs 1000,10000] [--repeat 200]

jax_privacy is no dependency of this library; its auditor needs neither JAX nor a network. Scores are of
a Gaussian mechanism: N(0, 1) without a row, N(mu, 1) with it, mu of the claimed epsilon at delta 1e-5.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fairveil as fv
from fairveil.audit import canary_bounds
from fairveil.privacy import epsilon
from fairveil.privacy.accounting.routes import gaussian_mu
from fairveil.privacy.events import Gaussian

DELTA, RISK = 1e-5, 0.05
Bound = Callable[[Any, Any], float]


def theirs() -> Any:
    """The module of jax_privacy's auditor alone: the package around it imports JAX."""
    package = importlib.util.find_spec("jax_privacy")
    if package is None or package.origin is None:
        raise SystemExit("pip install --no-deps jax-privacy")
    path = Path(package.origin).with_name("auditing.py")
    spec = importlib.util.spec_from_file_location("jax_privacy_auditing", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ours_many(out: Any, there: Any) -> Any:
    """Of many runs, from scores alone."""
    return fv.audit.audit_scores(out, there, delta=DELTA, confidence=1.0 - RISK)


def ours_one(out: Any, there: Any, *, gaussian: bool) -> float:
    """Of one run with as many canaries: the surest quarter of the coins is guessed."""
    scores, coins = np.concatenate([out, there]), np.repeat([False, True], [len(out), len(there)])
    order, guesses = np.argsort(scores, kind="stable"), len(scores) // 4
    heads = guesses // 2
    right = int(coins[order[len(order) - heads :]].sum() + (~coins[order[: guesses - heads]]).sum())
    if not gaussian:
        return canary_bounds.epsilon_lower(len(scores), guesses, right, DELTA, RISK)
    mu = canary_bounds.mu_lower(len(scores), guesses, right, RISK)
    return epsilon(Gaussian(1.0 / mu), DELTA, "add-remove") if mu > 1e-9 else 0.0


def bounds(module: Any, *, one_run: bool) -> dict[str, Bound]:
    """What is compared: of any mechanism, and of Gaussian noise."""

    def auditor(out: Any, there: Any) -> Any:
        return module.CanaryScoreAuditor(there, out)

    split = module.Split(0.25, seed=0)
    if one_run:
        return {
            "ours, any mechanism": lambda out, there: ours_one(out, there, gaussian=False),
            "jax_privacy, epsilon_one_run": lambda out, there: auditor(out, there).epsilon_one_run(
                RISK, DELTA
            ),
            "ours, Gaussian": lambda out, there: ours_one(out, there, gaussian=True),
            "jax_privacy, epsilon_one_run_fdp": lambda out, there: auditor(
                out, there
            ).epsilon_one_run_fdp(RISK, DELTA),
        }
    return {
        "ours, any mechanism": lambda out, there: ours_many(out, there).epsilon_lower,
        "jax_privacy, epsilon_clopper_pearson, all thresholds": lambda out, there: auditor(
            out, there
        ).epsilon_clopper_pearson(RISK, DELTA),
        "jax_privacy, epsilon_clopper_pearson, a quarter to choose": lambda out, there: auditor(
            out, there
        ).epsilon_clopper_pearson(RISK, DELTA, threshold_strategy=split),
        "ours, Gaussian": lambda out, there: ours_many(out, there).gaussian_epsilon_lower,
        "jax_privacy, epsilon_from_gdp": lambda out, there: auditor(out, there).epsilon_from_gdp(
            RISK, DELTA
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", default="1000,10000")
    parser.add_argument("--canaries", default="300,1000")
    parser.add_argument("--epsilon", default="1,4")
    parser.add_argument("--repeat", type=int, default=100)
    given = parser.parse_args()
    module = theirs()
    print("| | scores of each | claimed ε | bound | mean | largest | above the truth |")
    print("|---|---|---|---|---|---|---|")
    for one_run, sizes in ((False, given.runs), (True, given.canaries)):
        for size in map(int, sizes.split(",")):
            for claimed in map(float, given.epsilon.split(",")):
                mu = gaussian_mu(claimed, DELTA)
                for name, bound in bounds(module, one_run=one_run).items():
                    found = []
                    for seed in range(given.repeat):
                        rng = np.random.default_rng([seed, size])
                        counts = [size, size]
                        if one_run:  # of so many canaries: coins say which are there
                            counts[1] = int(rng.binomial(size, 0.5))
                            counts[0] = size - counts[1]
                        found.append(
                            bound(rng.normal(size=counts[0]), mu + rng.normal(size=counts[1]))
                        )
                    above = np.mean(np.array(found) > claimed)
                    print(
                        f"| {'one run' if one_run else 'many runs'} | {size} | {claimed:g} | {name} | "
                        f"{np.mean(found):.2f} | {np.max(found):.2f} | {above:.0%} |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
