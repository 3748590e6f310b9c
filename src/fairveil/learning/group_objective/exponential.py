"""Exponential sampling from a finite list of decisions (Alabi, Algorithm 1 in the form of
theory.md#objectives).

    P(c) ~ exp(-epsilon u(c) / R),     u(c) = h(S(c) / n0) = f + G max(0, g),

S(c) exact counts of decisions by cell, label and class, n0 the public (or released) number of rows,
R the range over decisions of what one neighbour changes (`curator.ranges`): from the slopes of h,
so rates are divided by *released* shares, which h carries. The choice is exact (no sampler's
error), and epsilon-DP by itself. `Differs:` the paper's exponent has 2 D, D an L2 Lipschitz
constant times sqrt(K)/n, and for rates it takes them as averages, which they are not.

Counts come first, the choice then, and last how the chosen decision falls, for the report. At delta
= 0 counts have discrete Laplace noise, and all of it is pure.

**What is certain.** But for probability p, u(chosen) <= least u + e, e = R (ln m - ln p) / epsilon
for m decisions, rounding of scores included. Hence (Lemma 4.1) f(chosen) <= f(best feasible) + e,
and g(chosen) <= (e + span f) / G, span f the range of f. A tenth of 1 - confidence is for the
released shares, of which span f is made, and nine tenths are p. G: Corollary 4.2's for the `alpha`
asked for, where e is no more than alpha, so that the corollary says something; else the one for
which the larger of the two bounds is least, were span f `USUAL` times what it is: what a constraint
costs is mostly far below the whole range of f, and noise grows with G.

**A convex set** is sampled on a grid that is fixed without the data, exactly: another mechanism
than the continuous one, whose privacy is its own. A sampler that is only near its distribution
needs a proved bound on the distance, which enters delta (`privacy.events.SamplerError`);
diagnostics of a Markov chain prove none, so there is no such sampler here.

Guarantees (tests/learning/test_learning_exponential.py):
1. The log is the plan, event for event.
2. No neighbour changes the probability of a choice by more than a factor e^epsilon.
3. The bounds on f and g hold but for the chance that they state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from ... import _checks
from ..._types import Floats
from ...core.events import Event, Exponential, compose
from ...curator import Curator, Score, moved_by_one
from ...curator.choices import range_of_decisions
from ...fairness.functions import corollary_4_2, range_of
from ...privacy import calibrate
from ...show.bounds import NO_BOUND, Bound, bounds, points
from ...show.parts import Part, Shown
from ..descent import Progress, Reason
from ..oracles import (
    Class,
    LinearRule,
    Rule,
    audit_measurements,
    audited,
    count_rows,
    counting_event,
)
from .found import Found
from .planned import PlannedSearch
from .problem import Problem, ReleasedProblem

CHOICE_SHARE, COUNTS_SHARE = 0.8, 0.1  # of epsilon; the rest measures the chosen decision
PENALTIES = np.geomspace(0.2, 1000.0, 60)
USUAL = 0.02
CHANCE = 0.9  # of 1 - confidence, for the choice; the rest is for the counts


@dataclass(frozen=True, slots=True)
class Certain(Shown):
    """What holds but for probability 1 - `confidence`: the chosen f is above the best feasible one
    by at most `f`, and its g above 0 by at most `g`, or above the least that there is, where no
    decision is feasible. f and g are of exact counts over released shares: a rate over exact shares
    differs by their noise, and rates that noise hides take no part."""

    f: float
    g: float
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is None."""
        numbers = {"objective": self.f, "bound": self.g, "confidence": self.confidence}
        return {name: value if math.isfinite(value) else None for name, value in numbers.items()}

    def parts(self) -> Iterator[Part]:
        """The bounds, and what they are conditional on."""
        what = f"the objective of the chosen decision is not bounded: {NO_BOUND}"
        if math.isfinite(self.f):
            what = (
                f"the objective of the chosen decision is above that of the best one in the list by "
                f"at most {points(self.f)}"
            )
        yield from bounds(
            self.confidence,
            what,
            (
                Bound("objective above that of the best decision that keeps the bounds", self.f),
                Bound("furthest above a bound", self.g),
            ),
            "The best decision is that of the same list of decisions, which was fixed without the "
            "data. Where none of them keeps the bounds, what was chosen is compared with the one that "
            "comes nearest to them.",
            "Rates are taken over the released numbers of rows, without those of so few rows that "
            "noise hides them: a rate over exact numbers differs by their noise.",
        )


@dataclass(frozen=True, eq=False)
class Sampling(PlannedSearch):
    """An exponential sampling that is planned and priced: public values alone. Made by
    `plan_sampling`."""

    of: Class
    epsilon: float
    counts_multiplier: float
    audit_multiplier: float
    noise: str = "gaussian"
    penalty: float | None = None
    alpha: float | None = None
    confidence: float = 0.9

    def events(self) -> Event:
        """Counts, the choice, and the measurement."""
        ground = self.ground
        rule = LinearRule(np.zeros((ground.outputs, 1 + ground.layout.width)))
        measurements = audit_measurements(ground, rule, [self.audit_multiplier], self.noise)
        measured = ground.event(measurements)
        choice = [] if ground.is_exact else [Exponential(self.epsilon)]
        return compose(
            [counting_event(ground, self.counts_multiplier, self.noise), *choice, measured]
        )

    def run(self, curator: Curator, progress: Progress | None = None) -> tuple[Found, Certain]:
        """Choose, with a curator that was made for the plan; the curator is closed afterwards, come
        what may."""
        with curator:
            found = self._run(curator, progress)
            curator.finish()
        return found

    def _run(self, curator: Curator, progress: Progress | None) -> tuple[Found, Certain]:
        ground = self.ground
        counts = count_rows(curator, ground, self.counts_multiplier, self.noise)
        posed = self.problem.pose(counts, self.counts_multiplier, 1.0)
        posed = replace(posed, h=replace(posed.h, penalty=self._penalty(posed)))
        questions, rules = self.of.gather(curator, ground)
        score = self._score(posed)
        certain = self._certain(posed, *curator.describe_range(questions, score))
        rule = rules[
            curator.choose(questions, self.epsilon, score=score, purpose="the choice of a decision")
        ]
        (measured,) = audited(curator, ground, rule, [self.audit_multiplier], counts, self.noise)
        if progress is not None:
            progress(1, 1)
        scale = 0.0 if ground.is_exact else self._deviation(self.audit_multiplier, rule)
        of_counts = 0.0 if ground.is_exact else self._deviation(self.counts_multiplier, None)
        excesses = posed.excesses(measured / posed.rows)
        found = Found.of(
            posed,
            (rule,),
            np.ones(1),
            measured[np.newaxis] / posed.rows,
            noise=scale,
            count_noise=of_counts,
            duals=np.where(
                (excesses == excesses.max(initial=-math.inf)) & (excesses >= 0.0),
                posed.h.penalty,
                0.0,
            ),
            reason=Reason.CHOSEN,
            rounds=1,
        )
        return found, certain

    def _score(self, posed: ReleasedProblem) -> Score:
        """h of sums."""
        h, rows = posed.h, posed.rows
        low, high = h.slopes

        def function(sums: Floats) -> Floats:
            return h.value(sums / rows)

        return Score(function, low / rows, high / rows, trusted=h.trusted)

    def _range(self, posed: ReleasedProblem, penalty: float) -> float:
        """R of the means: what one neighbour changes, over all decisions."""
        ground = self.ground
        low, high = replace(posed.h, penalty=penalty).slopes
        worst = range_of_decisions(
            low,
            high,
            ground.cells,
            ground.promise,
            ground.layout,
            reads_groups=self.of.reads_groups,
        )
        return float(worst) * (ground.heaviest or 1.0) / posed.rows

    def _excess(self, moves: float) -> float:
        """e of scores that one neighbour moves so far apart."""
        if self.ground.is_exact:
            return 0.0
        return (
            moves
            * (math.log(self.of.size) - math.log(CHANCE * (1.0 - self.confidence)))
            / self.epsilon
        )

    def _penalty(self, posed: ReleasedProblem) -> float:
        """G."""
        if self.penalty is not None or posed.h.g is None:
            return self.penalty or 1.0
        if self.alpha is not None:
            promising = corollary_4_2(posed.f, self.alpha, wide=self._wide(posed))
            if self._excess(self._range(posed, promising)) <= self.alpha:
                return promising
        if self.ground.is_exact:
            return float(PENALTIES[-1])
        cost = USUAL * self._wide(posed)
        bounds = [
            max(e := self._excess(self._range(posed, G)), (e + cost) / G)
            for G in PENALTIES.tolist()
        ]
        return float(PENALTIES[int(np.argmin(bounds))])

    def _wide(self, posed: ReleasedProblem) -> float:
        """A bound on the range of f, but for (1 - `CHANCE`) (1 - confidence): shares are released
        ones, and may be larger."""
        per_row, tail = (
            self.problem.cells.per_row,
            (1.0 - CHANCE) * (1.0 - self.confidence) / posed.shares.size,
        )
        above = (
            0.0
            if self.ground.is_exact
            else self._deviation(self.counts_multiplier, None) / posed.rows
        )
        above *= (
            float(ndtri(1.0 - tail))
            if self.noise == "gaussian"
            else -math.log(tail) / math.sqrt(2.0)
        )
        shares = posed.shares + max(0.0, above)
        exact = self.ground.promise.rows_are_public and self.ground.max_sample_weight is None
        return range_of(posed.f, shares, per_row) * (
            1.0 if exact else max(1.0, float(shares.sum()) / per_row)
        )

    def _certain(self, posed: ReleasedProblem, moves: float, step: float) -> Certain:
        """Of scores on a grid: two are rounded by half a step each, and arithmetic loses less than
        an eighth."""
        e = self._excess(moves) + (0.0 if self.ground.is_exact else 1.125 * step)
        g = 0.0 if posed.h.g is None else (e + self._wide(posed)) / posed.h.penalty
        return Certain(e, g, self.confidence)

    @property
    def deviations(self) -> tuple[float, float]:
        """Of each number that is reported of the decision, and of each count."""
        if self.ground.is_exact:
            return 0.0, 0.0
        rule = LinearRule(np.zeros((self.ground.outputs, 1 + self.ground.layout.width)))
        return self._deviation(self.audit_multiplier, rule), self._deviation(
            self.counts_multiplier, None
        )

    def _deviation(self, multiplier: float, rule: Rule | None) -> float:
        """The standard deviation of the noise in one number: of the counts, or of what a rule
        does."""
        ground = self.ground
        question = ground.counts if rule is None else rule.decisions(ground.cells, ground.by_label)
        if self.noise == "gaussian":
            return multiplier * ground.move(question)
        moved = moved_by_one(question, ground.layout, ground.promise, ground.max_sample_weight, 1)
        return math.sqrt(2.0) * multiplier * moved


def plan_sampling(
    problem: Problem,
    of: Class,
    *,
    penalty: float | None = None,
    alpha: float | None = None,
    confidence: float = 0.9,
) -> Sampling:
    """The sampling whose noise is the least that keeps the promise."""
    from ...core.cost import gaussian_mu

    ground = problem.ground
    of.require(ground)
    pressed = None if penalty is None else _checks.positive(penalty=penalty)
    aim = None if alpha is None else _checks.positive(alpha=alpha)
    epsilon, delta = ground.promise.epsilon, ground.promise.delta
    rest = 1.0 - CHOICE_SHARE - COUNTS_SHARE
    noise = "gaussian" if delta > 0 or ground.is_exact else "discrete-laplace"

    def at(z: float) -> Sampling:
        if noise == "gaussian":
            counts, audit = (
                1.0 / gaussian_mu(share * epsilon, delta) for share in (COUNTS_SHARE, rest)
            )
        else:
            counts, audit = 1.0 / (COUNTS_SHARE * epsilon), 1.0 / (rest * epsilon)
        choice = CHOICE_SHARE * epsilon / z
        return Sampling(problem, of, choice, z * counts, z * audit, noise, pressed, aim, confidence)

    if ground.is_exact:
        return Sampling(problem, of, math.inf, 0.0, 0.0, noise, pressed, aim, confidence)

    def events(z: float) -> Event:
        return at(z).events()

    return at(calibrate(ground.promise, events, start=1.0).multiplier)
