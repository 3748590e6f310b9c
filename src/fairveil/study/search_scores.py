"""Scores of candidates from one private count of the rows set aside: group, label and decision of
each, with noise.

    score = - error,   - largest gap,   or   - (error + weight x max(0, largest excess over a bound))

Everything but the count is a function of released numbers; any function of the released table may
be a score.

The floor: two rules keep a search from being worse than one fit of the estimator as it was given
(theory/choices.md#the-floor-of-a-search):

1. Before any row is read: where the noise of the scores hides every gain below `WORTH`, nothing is
   searched, and the whole budget goes into one fit of the estimator as it was given.
2. After the scores: a candidate takes the place of the defaults only where its score is above
   theirs by more than noise and chance explain. The winner is fitted again with `KEPT` of the
   budget.

Guarantees (tests/study/test_study_search.py, test_study_search_floor.py):
1. A score is a function of one noisy histogram, which costs what the search's price says, and of
   nothing else.
2. An undefined score is the worst there is.
3. Both rules are functions of public facts and of released counts.
4. A candidate that decides as the defaults do takes their place with probability about `RISK` at
   most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from .._types import Floats
from ..core.cost import epsilon as epsilon_of
from ..core.noise import NoiseSource
from ..core.promise import Promise
from ..curator import CodeHistogram, Measurement
from ..data.elsewhere import curator_of
from ..errors import InputError
from ..estimators import wrapped
from ..estimators.fitting import notions_of
from ..estimators.reading import Whose
from ..estimators.wrapped import DecidedPeople as DecidedRows
from ..facts import Cells, Schema
from ..fairness import resolve
from ..methods.counts import CountPlan
from .search_price import SearchPrice

ERROR, GAP_OF, LAGRANGIAN = "error", "gap", "lagrangian"
SCORES = (ERROR, GAP_OF, LAGRANGIAN)
WORST = -1e9
KEPT = 0.85
"""Of the budget, for the last fit."""
WORTH = 0.04
"""The largest gain in error that a search may be unable to tell."""
RISK = 0.05
DRAWS = 200


@dataclass(frozen=True)
class Scoring:
    """What a candidate is scored by: a word, or a function of released counts (cells, labels,
    classes), larger is better."""

    kind: str | Callable[[Floats], float]
    constraint: Any = None
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.kind) and self.kind not in SCORES:
            remedy = "Pass scoring='error', or a function of the released counts."
            expected = f"one of {list(SCORES)}, or a function"
            raise InputError.expected(expected, of="scoring", got=self.kind, remedy=remedy)
        if self.kind in (GAP_OF, LAGRANGIAN) and not notions_of(self.constraint):
            remedy = "Pass constraint='demographic_parity:0.05', for example."
            raise InputError.expected(
                "a constraint to score by", of="constraint", got=None, remedy=remedy
            )

    @property
    def by_group(self) -> bool:
        """Whether counts are needed group by group: sums over groups would have more noise."""
        return self.kind != ERROR

    def shape(self, cells: int, classes: int) -> tuple[int, int, int]:
        """Of the counts that a score is found from: groups, labels, decisions. An error needs two
        alone, right and wrong: fewer counts have less noise together."""
        return (cells, classes, classes) if self.by_group else (1, 1, 2)

    def of(self, counts: Floats, cells: Cells, classes: Sequence[Hashable]) -> float:
        """The score of released counts."""
        table = np.maximum(counts, 0.0)
        if callable(self.kind):
            value = float(self.kind(table))
            return WORST if math.isnan(value) else value
        total = float(table.sum())
        if total <= 0.0:
            return WORST
        error = 1.0 - float(np.trace(table.sum(axis=0))) / total
        if self.kind == ERROR:
            return -error
        system = resolve(notions_of(self.constraint), cells, classes)
        values = system.exact_values(table, table.sum(axis=-1))
        if not len(values) or np.isnan(values).any():
            return WORST
        if self.kind == GAP_OF:
            return -float(np.max(values))
        return -(error + self.weight * max(0.0, float(np.max(values - system.bounds))))


@dataclass(frozen=True, eq=False)
class Counted:
    """Released counts of decisions, by group, label and decision, with what is public of them."""

    counts: Floats
    cells: Any
    classes: Any


def counted(
    model: object,
    rows: tuple[Any, Any, Any],
    scoring: Scoring,
    schema: Schema | None,
    promise: Promise,
    price: SearchPrice,
    noise: NoiseSource,
    seed: int | None,
    whose: Whose | None = None,
) -> Counted:
    """The noisy histogram of a fitted model's decisions about the rows set aside."""
    people = wrapped.people_of(model, *rows, schema, promise, seed, whose)
    shape = scoring.shape(people.cells.count, len(people.classes))
    if scoring.by_group:
        index = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
    else:
        index = 1 - np.eye(len(people.classes), dtype=np.int64)[None]
    read = (
        {"features", "label", "sensitive"}
        if people.rows.layout.sensitive
        else {"features", "label"}
    )
    with curator_of(people.rows, **_run_of(people, promise, price), noise=noise) as curator:
        codes = people.codes_by(
            lambda ids, labels, decisions: index[ids if scoring.by_group else 0, labels, decisions]
        )
        attached = curator.attach_codes(
            codes, math.prod(shape), columns_read=read, title="decisions of a candidate"
        )
        question = CodeHistogram(attached)
        if price.noise_multiplier is None:
            measurement = Measurement(question, 1.0 / price.epsilon, noise="discrete-laplace")
        else:
            measurement = Measurement(question, price.noise_multiplier)
        (found,) = curator.answer([measurement], purpose="score of a candidate")
        if people.rows.is_elsewhere:
            curator.finish()
    return Counted(np.asarray(found, np.float64).reshape(shape), people.cells, people.classes)


def _run_of(people: DecidedRows, promise: Promise, price: SearchPrice) -> dict[str, Any]:
    """The guarantee of one count, and its plan where another holder keeps the budget; here its cost
    is the search's affair."""
    if not people.rows.is_elsewhere:
        return {"promise": replace(promise, epsilon=4.0 * max(promise.epsilon, price.epsilon))}
    kind = (
        ("discrete-laplace", 1.0 / price.epsilon)
        if price.noise_multiplier is None
        else ("gaussian", price.noise_multiplier)
    )
    event = CountPlan(promise, *kind).event
    spent = epsilon_of(event, promise.delta, promise.neighbours)
    return {
        "promise": replace(promise, epsilon=spent * (1.0 + 1e-9)),
        "plan": event,
        "purpose": "score of a candidate",
    }


# the floor


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
