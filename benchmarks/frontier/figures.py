"""The figures: which data, constraint, gaps and epsilons. The same model defaults everywhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

INF = math.inf
RECORDS = (0.1, 0.5, 1.0, 3.0, 9.0, INF)
SENSITIVE = (0.05, 0.1, 0.5, 1.0, 3.0, 9.0, INF)

JAGIELSKI = (0.5, 1.0, 2.0, 5.0, INF)
PUBLISHED = (0.5, 1.0, 3.0, 9.0)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

GAMMAS = (0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.02)


@dataclass(frozen=True)
class Wanted:
    """One figure. `gap`: the measure on its x axis. `bounds`: what is asked for, beside no
    constraint at all; `strengths`: of a method that is asked for those, beside strength 0."""

    dataset: str
    constraint: str
    gap: str
    words: str
    bounds: tuple[float, ...]
    delta: float | None = None  # 1 / n^2 of the training rows
    epsilons: tuple[float, ...] | None = None  # those of the protection
    strengths: tuple[float, ...] = STRENGTHS


FIGURES = {
    "adult-dp": Wanted(
        "adult",
        "demographic_parity",
        "parity",
        "demographic parity",
        (0.15, 0.12, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.001),
    ),
    "credit-dp": Wanted(
        "credit",
        "demographic_parity",
        "parity",
        "demographic parity",
        (0.02, 0.015, 0.01, 0.006, 0.003, 0.001),
    ),
    "parkinsons-dp": Wanted(
        "parkinsons",
        "demographic_parity",
        "parity",
        "demographic parity",
        (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.003),
    ),
    "adult-eo": Wanted(
        "adult",
        "equalized_odds",
        "odds",
        "equalized odds",
        (0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.001),
    ),
    "credit-eo": Wanted(
        "credit",
        "equalized_odds",
        "odds",
        "equalized odds",
        (0.03, 0.02, 0.015, 0.01, 0.006, 0.003),
    ),
    "communities-eo": Wanted(
        "communities", "equalized_odds", "odds", "equalized odds", GAMMAS, 1e-7, JAGIELSKI
    ),
    "communities-majority-eo": Wanted(
        "communities-majority", "equalized_odds", "odds", "equalized odds", GAMMAS, 1e-7, JAGIELSKI
    ),
    "adult-fnr": Wanted(
        "adult",
        "false_negative_rate",
        "misses",
        "false negative rate",
        (0.35, 0.3, 0.25, 0.2, 0.15, 0.1),
    ),
}
NAMES = {
    "adult": "Adult",
    "credit": "Credit-Card",
    "parkinsons": "Parkinsons",
    "communities": "Communities and Crime",
}
NAMES["communities-majority"] = "Communities and Crime, cut at 0.5"
"""As they are written under a figure."""
