"""What an epsilon means, in words: a scale that others published, and what somebody who guesses can
gain.

The scale is that of Ponomareva et al., "How to DP-fy ML" (Journal of Artificial Intelligence
Research 77, 2023), section 5.2: up to 1 strong, up to 10 reasonable, above weak. It is a
convention, not a theorem: no standard sets a threshold. The scale supposes a small delta, and two
guarantees are called weak whatever it says: a delta above `LARGEST_DELTA`, at which a mechanism
that publishes a row outright passes for tables of usual length, and a guess that is right with
probability above `SURE`.

The guess is a theorem. Under (epsilon, delta)-differential privacy, whoever sees all that was
released and has to say which of two neighbouring tables it was made of, each equally likely, is
right with probability at most 1 - (1 - delta) / (1 + e^epsilon), since false alarms plus misses are
at least 2 (1 - delta) / (1 + e^epsilon) of any test (Kairouz, Oh, Viswanath 2015).
"""

from __future__ import annotations

import math
from typing import Any

STRONG, REASONABLE = 1.0, 10.0
LARGEST_DELTA = 1e-4
SURE = 0.99
SOURCE = "by the scale of Ponomareva et al. (2023)"


def strength(epsilon: float, delta: float, promise: Any) -> str:
    """A word for both numbers, and what a guess can gain.

    >>> from fairveil import Promise
    >>> strength(1.0, 1e-6, Promise(1.0, 1e-6)).partition(". ")[0]
    'This is strong privacy by the scale of Ponomareva et al'
    """
    one = "row" if promise.unit is None else "person, with all of their rows,"
    two = "rows" if promise.unit is None else "persons, with all of their rows,"
    guessed = "which of two values one person's sensitive attribute has"
    if promise.protects == "records":
        adds = promise.neighbours == "add-remove"
        guessed = f"{f'whether one {one}' if adds else f'which of two {two}'} was in the table"
    sure = f"is right with probability at most {_up(right_guess(epsilon, delta))}"
    told = f"Whoever guesses, at even odds, {guessed} {sure}."
    said, by_scale = word(epsilon, delta), word(epsilon)
    if said == by_scale:
        return f"This is {said} privacy {SOURCE}. {told}"
    why = f"a guess may be right above {SURE:.0%}"
    why = f"delta is above {LARGEST_DELTA:g}" if delta > LARGEST_DELTA else why
    return f"This is {said} privacy: {why}, though epsilon alone is {by_scale} {SOURCE}. {told}"


def word(epsilon: float, delta: float | None = None) -> str:
    """
    >>> word(0.5), word(1.0), word(3.0), word(10.5), word(0.5, 0.1), word(7.0, 1e-6)
    ('strong', 'strong', 'reasonable', 'weak', 'weak', 'weak')
    """
    if delta is not None and (delta > LARGEST_DELTA or right_guess(epsilon, delta) > SURE):
        return "weak"
    return "strong" if epsilon <= STRONG else "reasonable" if epsilon <= REASONABLE else "weak"


def right_guess(epsilon: float, delta: float) -> float:
    """The largest probability of a right guess.

    >>> round(right_guess(math.log(3), 0.0), 3), right_guess(1e6, 0.0)
    (0.75, 1.0)
    """
    odds = math.exp(-epsilon)  # 1 / (1 + e^epsilon) without a large exponential
    return 1.0 - (1.0 - delta) * odds / (1.0 + odds)


def _up(probability: float) -> str:
    """In per cent, one decimal, rounded up: more where 100 % would be said of what is less."""
    for decimals in range(1, 7):
        whole = 10 ** (2 + decimals)
        shown = math.ceil(probability * whole - 1e-9)
        if shown < whole or probability >= 1.0 or decimals == 6:
            break
    return f"{shown / 10**decimals:.{decimals}f}%"
