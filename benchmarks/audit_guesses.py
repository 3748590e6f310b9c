"""What right guesses about canaries of one run show of Gaussian noise: by a curve, and by one point.

    python benchmarks/audit_guesses.py [--epsilon 1] [--delta 1e-5] [--canaries 100,300,1000]

Each canary has a coordinate of its own in a sum with Gaussian noise, so that nothing is lost by the
attack: the coin of a canary is guessed from its coordinate. The number of right guesses is the one
that is expected. Lower bounds at 95 % confidence.
"""

from __future__ import annotations

import argparse
import math

from scipy import special

from fairveil.audit import canary_bounds as bounds
from fairveil.privacy import epsilon
from fairveil.privacy.accounting.routes import gaussian_mu
from fairveil.privacy.events import Gaussian


def right(canaries: int, guesses: int, mu: float) -> int:
    """How many of the surest guesses are right, as expected: scores are N(coin mu - mu / 2, 1)."""
    cut = 0.0
    if guesses < canaries:  # the share beyond the cut, on both sides
        low, high = 0.0, 10.0
        for _ in range(60):
            cut = (low + high) / 2.0
            beyond = special.ndtr(mu / 2.0 - cut) + special.ndtr(-mu / 2.0 - cut)
            low, high = (cut, high) if beyond > guesses / canaries else (low, cut)
    sure, wrong = special.ndtr(mu / 2.0 - cut), special.ndtr(-mu / 2.0 - cut)
    return math.floor(guesses * sure / (sure + wrong))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", default="1,3,8")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--canaries", default="100,300,1000")
    given = parser.parse_args()
    print("| claimed ε | canaries | guesses | right | ε as Gaussian noise | ε of any mechanism |")
    print("|---|---|---|---|---|---|")
    for claimed in map(float, given.epsilon.split(",")):
        mu = gaussian_mu(claimed, given.delta)
        for canaries in map(int, given.canaries.split(",")):
            best: tuple[float, ...] = (-1.0,)
            for share in (1.0, 0.5, 0.25):  # the largest of three, so a little too good
                guesses = round(share * canaries)
                found = right(canaries, guesses, mu)
                low = bounds.mu_lower(canaries, guesses, found, 0.05)
                any_mechanism = bounds.epsilon_lower(canaries, guesses, found, given.delta, 0.05)
                best = max(best, (low, guesses, found, any_mechanism))
            low, guesses, found, any_mechanism = best
            shown = epsilon(Gaussian(1.0 / low), given.delta, "add-remove") if low > 1e-9 else 0.0
            print(
                f"| {claimed:g} | {canaries} | {guesses:g} | {found:g} | {shown:.2f} | "
                f"{any_mechanism:.2f} |"
            )


if __name__ == "__main__":
    main()
