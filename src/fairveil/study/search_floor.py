"""The floor of a search: the estimator's own parameters stay, unless a candidate is clearly better,
or nothing could tell.

Two rules keep a search from being worse than one fit with the defaults
(theory/choices.md#the-floor-of-a-search):

1. Before any row is read: where the noise of the scores hides every gain below `WORTH`, nothing is
   searched, and the whole budget goes into one fit of the estimator as it was given.
2. After the scores: a candidate takes the place of the defaults only where its score is above
   theirs by more than noise and chance explain. The winner is fitted again with `KEPT` of the
   budget.

Guarantees (tests/study/test_study_search_floor.py):
1. Both rules are functions of public facts and of released counts.
2. A candidate that decides as the defaults do takes their place with probability about `RISK` at
   most.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from .._types import Floats
from .search_price import SearchPrice
from .search_scores import WORST, Counted, Scoring

KEPT = 0.85
"""Of the budget, for the last fit."""
WORTH = 0.04
"""The largest gain in error that a search may be unable to tell."""
RISK = 0.05
DRAWS = 200


def deviations(runs: float) -> float:
    """How many standard errors above the defaults the best of so many candidates must be."""
    return float(stats.norm.isf(RISK / max(1.0, runs)))


def with_gain(
    price: SearchPrice, shape: tuple[int, ...], rows: float | None, holdout: float, move: float
) -> SearchPrice:
    """The price, with the least gain in error that noise lets one tell. `shape`: of the counts of a
    score; `rows`: public, all of them; `move`: how far one neighbour moves the counts, by which
    their noise is multiplied."""
    if rows is None:
        return price
    wrong = math.prod(shape) - shape[0] * min(shape[1:])
    one = noise_of(price, move) * math.sqrt(wrong) / max(1.0, holdout * rows)
    return replace(price, least_gain=deviations(price.mean) * math.sqrt(2.0) * one)


def noise_of(price: SearchPrice, move: float) -> float:
    """The standard deviation of a count's noise."""
    return (
        move * price.noise_multiplier
        if price.noise_multiplier is not None
        else math.sqrt(2.0) * move**2 / price.epsilon
    )


def is_clearly_better(
    best: Counted, defaults: Counted, scoring: Scoring, sigma: float, runs: float
) -> bool:
    """Whether the best of so many candidates has a score above the defaults' by more than noise and
    chance explain."""
    gain = scoring.of(best.counts, best.cells, best.classes) - scoring.of(
        defaults.counts, defaults.cells, defaults.classes
    )
    spread = math.hypot(*(spread_of(one, scoring, sigma) for one in (best, defaults)))
    return gain > deviations(runs) * spread


def spread_of(found: Counted, scoring: Scoring, sigma: float) -> float:
    """The standard error of a score: released counts are drawn again, as people and as noise.
    Infinite where one in twenty has no score. A function of released numbers, so it is free."""
    rng = np.random.default_rng(0)
    table: Floats = np.maximum(found.counts, 0.0)
    total = float(table.sum())
    if total < 1.0:
        return math.inf
    people = rng.multinomial(round(total), (table / total).ravel(), size=DRAWS).reshape(
        DRAWS, *table.shape
    )
    drawn = people + sigma * rng.normal(size=people.shape)
    scores = np.array([scoring.of(one, found.cells, found.classes) for one in drawn])
    known = scores[scores > WORST]
    return math.inf if len(known) < 0.95 * DRAWS else float(known.std(ddof=1))
