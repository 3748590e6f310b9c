"""What released counts say of less discriminatory alternatives to a base model, and of what a further
search could still find: post-processing of one release of counts.

Of people whom no model has seen each candidate's counts are n[g, y, b, c]: group, favourable label,
favoured by the base, favoured by the candidate. A model's *loss* is the mean over people of
`costs[0]` for each false positive and `costs[1]` for each false negative; with costs 1 and 1 it is
the error. All that is compared is a sum of probabilities of events of these counts:

    loss(candidate) - loss(base) = c0 [P(0,0,1) - P(0,1,0)] + c1 [P(1,1,0) - P(1,0,1)],   of (y, b, c)
    rate_g(candidate) - rate_g(base) = P(b = 0, c = 1 | g) - P(b = 1, c = 0 | g),

so rows on which both decide alike add no width. Each probability has exact ends, sampling and noise
together (`counts.upper_bounds`), at level alpha / m, m the number of ends that are ever looked at:
all of them hold together with confidence 1 - alpha (Bonferroni), whatever is then chosen by them.

Value of a model: the least over compared pairs (g, r) of rate_g / rate_r ("ratio"), or of rate_g -
rate_r ("difference"): larger is better. A candidate's is above the base's where for *every* pair
either its lower end is above the upper end of the base's value, or the pair itself has moved up
(paired):

    ratio: d_g rate_r - d_r rate_g > 0,     difference: d_g - d_r > 0,     d the movement of a rate.

For the value of the base is at most that of each of its pairs.

What further search could find (docs/theory/lda.md has the proofs):

1. *Listed.* No other candidate that may be of equal use is better than the largest upper end.
2. *Redrawn.* If candidates were drawn independently from one procedure, with probability at least 1
   - delta, for all k at once, a further draw is of equal use and better than the (k+1)-th largest
   upper end with probability at most b_k, the upper Clopper-Pearson end of k out of n at level
   delta / 2^(k+1). A draw that certainly is not of equal use counts as the worst.
3. *Any model.* Moving group g's selection rate costs at least costs[0] for each person more and
   costs[1] for each one less than have a favourable label. So a model of loss at most E has a value
   of at most

       sup {t : min over m of sum_g c0 (t m p_g - q_g)+ + c1 (q_g - m p_g)+ <= E},

   p_g = P(g), q_g = P(g, y = 1); and nothing smaller is a bound without an assumption about the
   features. For rates given the label there is none below 1.

Guarantees (tests/methods/test_methods_alternatives.py)
1. All intervals, verdicts and the bounds of 1 and 3 hold together with the confidence; half of what
   is left to chance is 2's where there are draws.
2. Only counts, their noise and the rule are read, so whoever has them computes the same.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from .._types import Floats
from .._verdicts import MET, NOT_MET, UNCLEAR, Verdict, of_interval
from .counts import EXACT, CountNoise, lower_bounds, upper_bounds
from .counts import Pair as Counted

SELECTION, TRUE_POSITIVE = "selection_rate", "true_positive_rate"
RATIO, DIFFERENCE = "ratio", "difference"
KINDS = 8
"""Counts of a group: label, base's decision, candidate's decision."""
Bools = npt.NDArray[np.bool_]
Pair = tuple[int, int]


@dataclass(frozen=True)
class SearchRule:
    """What a search is asked, fixed before any held-out row is read. `reference`: the group that
    others are compared with, by number (None: each with each); `smallest`: groups of a smaller share
    are listed and not compared; `draws`: the candidates that were drawn independently from one
    procedure; `look`: the number of this look at the draws, where there may be more (None: the only
    one)."""

    tolerance: float
    costs: tuple[float, float] = (1.0, 1.0)
    rate: str = SELECTION
    compare: str = RATIO
    reference: int | None = None
    smallest: float = 0.0
    confidence: float = 0.95
    draws: tuple[int, ...] = ()
    look: int | None = None

    @property
    def best(self) -> float:
        """The value of equal rates, which is the largest where each group is compared with each."""
        equal = 1.0 if self.compare == RATIO else 0.0
        return equal if self.reference is None else math.inf

    @property
    def miss(self) -> float:
        """What is left to chance at this look: 1 / (t (t + 1)) of it, which add up to all."""
        left = 1.0 - self.confidence
        return left if self.look is None else left / (self.look * (self.look + 1))

    @property
    def of_draws(self) -> float:
        """The part of it that the statement about further draws has."""
        return self.miss / 2.0 if self.draws else 0.0

    def level(self, candidates: int, groups: int) -> float:
        """Of each end that is looked at: two of each rate of a loss, of each group's rate and of its
        two movements; the base's; and those of the bound on any model."""
        terms = 1 if self.costs[0] == self.costs[1] else 2
        of_each = 2 * (2 * terms + 3 * groups)
        of_base = 2 * groups + terms + 4 * groups
        return (self.miss - self.of_draws) / (candidates * of_each + of_base)


@dataclass(frozen=True)
class Between:
    """A number as released, and the ends between which the population's lies; None: undefined."""

    value: Any
    low: Any
    high: Any


@dataclass(frozen=True)
class ModelFound:
    """One model. `loss`: of the base its loss, of a candidate how much more that is than the base's;
    `rates`: of each group; `ratio`, `gap`: the smallest ratio and the largest difference of compared
    groups; `equal_use`, `fairer`: the verdicts on tolerance and base (of the base itself: met and
    inconclusive)."""

    loss: Between
    rates: tuple[Between, ...]
    ratio: Between
    gap: Between
    equal_use: Verdict = MET
    fairer: Verdict = UNCLEAR

    @property
    def is_alternative(self) -> bool:
        """Of equal use, and less discriminatory, both shown."""
        return self.equal_use == MET and self.fairer == MET


@dataclass(frozen=True)
class Redrawn:
    """With the confidence of the search a further draw is of equal use and has a ratio above `value`
    (a gap below it) with probability at most `at_most`; `value` None: is of equal use at all."""

    value: float | None
    at_most: float


@dataclass(frozen=True)
class Further:
    """What further search could find. `listed`: no other candidate that may be of equal use has a
    ratio above it (a gap below it; None: there is none). `any_model`: no model of equal use whatever
    has; None: nothing can be ruled out. `redrawn`: of one procedure, drawn again; `beyond`: the same
    at what the chosen candidate was shown to have."""

    listed: float | None
    any_model: float | None
    redrawn: tuple[Redrawn, ...]
    beyond: Redrawn | None


@dataclass(frozen=True)
class SearchFound:
    """All that follows. `taken`: the number of the alternative that was shown to have the largest
    ratio (the smallest gap); None: none was shown. `compared`: which groups are."""

    base: ModelFound
    candidates: tuple[ModelFound, ...]
    taken: int | None
    compared: tuple[int, ...]
    further: Further


class _Ends:
    """Ends of probabilities of events, of counts (candidates, groups, 2, 2, 2); kept once found.
    `totals` (candidates, 2, 2, 2): the public sums over groups, where they are."""

    def __init__(
        self, counts: Floats, noise: CountNoise, totals: Floats | None, level: float
    ) -> None:
        self.counts, self.noise, self.totals, self.level = counts, noise, totals, level
        self._found: dict[tuple[int, bytes, bytes, bool], float] = {}

    def counted(self, at: int, hit: Bools, event: Bools) -> tuple[Counted, CountNoise]:
        one, rest = hit & event, event & ~hit
        if self.totals is not None and (hit == hit[:1]).all() and (event == event[:1]).all():
            known = self.totals[at]
            return Counted(float(known[one[0]].sum()), float(known[rest[0]].sum())), EXACT
        own = self.counts[at]
        found = float(own[one].sum()), float(own[rest].sum())
        return Counted(*found, int(one.sum()), int(rest.sum())), self.noise

    def end(self, at: int, hit: Bools, event: Bools, *, upper: bool) -> float:
        key = at, hit.tobytes(), event.tobytes(), upper
        if key not in self._found:
            find = upper_bounds if upper else lower_bounds
            self._found[key] = float(find(*self.counted(at, hit, event), [self.level])[0])
        return self._found[key]

    def value(self, at: int, hit: Bools, event: Bools) -> float:
        one, _ = self.counted(at, hit, event)
        whole = one.selected + one.others
        return min(max(one.selected / whole, 0.0), 1.0) if whole > 0 else math.nan

    def sum(self, at: int, terms: Sequence[tuple[float, Any]], event: Bools) -> Between:
        """Of coefficient x probability."""
        value = sum(c * self.value(at, hit, event) for c, hit in terms)
        ends = (
            sum(c * self.end(at, hit, event, upper=(c > 0) == upper) for c, hit in terms)
            for upper in (False, True)
        )
        return Between(_known(value), *ends)


def search(
    counts: Floats, noise: CountNoise, rule: SearchRule, totals: Floats | None = None
) -> SearchFound:
    """All that follows from released counts (candidates, groups, 2, 2, 2)."""
    candidates, groups = counts.shape[:2]
    ends = _Ends(counts, noise, totals, rule.level(candidates, groups))
    g, y, b, c = np.indices(counts.shape[1:])
    everyone = np.ones(g.shape, bool)
    given = [(g == at) & ((y == 1) | (rule.rate == SELECTION)) for at in range(groups)]
    sizes = counts[0].sum(axis=(1, 2, 3))
    enough = sizes >= rule.smallest * max(float(sizes.sum()), 1.0)
    compared = tuple(at for at in range(groups) if enough[at] or at == rule.reference)
    every = itertools.permutations(compared, 2)
    pairs = [pair for pair in every if rule.reference in (None, pair[1])]

    def by_cost(wrongly: Any, missed: Any, sign: float = 1.0) -> list[tuple[float, Any]]:
        first, second = (sign * cost for cost in rule.costs)
        if first == second:
            return [(first, wrongly | missed)]
        return [(first, wrongly), (second, missed)]

    def model(at: int, decided: Any, loss: Between) -> ModelFound:
        rates = tuple(ends.sum(at, [(1.0, decided == 1)], event) for event in given)
        worst = [
            _worst([_pair(rates, pair, kind) for pair in pairs], kind, rule.reference)
            for kind in (RATIO, DIFFERENCE)
        ]
        return ModelFound(loss, rates, worst[0], _turned(worst[1]))

    terms = by_cost((y == 0) & (b == 1), (y == 1) & (b == 0))
    most = sum(cost * ends.end(0, hit, everyone, upper=True) for cost, hit in terms)
    lost = sum(cost * ends.value(0, hit, everyone) for cost, hit in terms)
    base, found = model(0, b, Between(_known(lost), None, most)), list[ModelFound]()
    for at in range(candidates):
        more = by_cost((y == 0) & (c > b), (y == 1) & (c < b))
        less = by_cost((y == 0) & (c < b), (y == 1) & (c > b), -1.0)
        one = model(at, c, ends.sum(at, [*more, *less], everyone))
        moved = [ends.sum(at, [(1.0, c > b), (-1.0, c < b)], event) for event in given]
        equal = of_interval(one.loss.low, one.loss.high, rule.tolerance)
        fairer = _fairer(base, one, moved, pairs, rule)
        found.append(replace(one, equal_use=equal, fairer=fairer))
    taken = max(
        (at for at, one in enumerate(found) if one.is_alternative),
        key=lambda at: (_value(found[at], rule).low, -found[at].loss.high, -at),
        default=None,
    )
    bound = _any_model(ends, rule, compared, most + rule.tolerance)
    further = _further(base, found, taken, rule, bound)
    return SearchFound(base, tuple(found), taken, compared, further)


# -- values ----------------------------------------------------------------------------------------


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _over(one: Any, other: Any, empty: float) -> float:
    """A quotient; `empty` where it says nothing."""
    if one is None or other is None or one == other == 0.0:
        return empty
    return float(one / other) if other > 0.0 else math.inf


def _pair(rates: Sequence[Between], pair: Pair, kind: str) -> Between:
    """Its value and ends: larger is better."""
    one, other = (rates[at] for at in pair)
    if kind == DIFFERENCE:
        value = None if None in (one.value, other.value) else one.value - other.value
        return Between(value, one.low - other.high, one.high - other.low)
    value = _known(_over(one.value, other.value, math.nan))
    return Between(value, _over(one.low, other.high, 0.0), _over(one.high, other.low, math.inf))


def _worst(pairs: Sequence[Between], kind: str, reference: int | None) -> Between:
    """The least of them. Of each with each one is at most 1, or 0."""
    best = math.inf if reference is not None else 1.0 if kind == RATIO else 0.0
    values = [one.value for one in pairs]
    value = None if not values or None in values else min(values)
    low = min((one.low for one in pairs), default=None)
    return Between(value, low, _known(min([best, *(one.high for one in pairs)])))


def _turned(one: Between) -> Between:
    """The gap: of a difference that is larger where it is better."""
    turned = (None if end is None else 0.0 - end for end in (one.value, one.high, one.low))
    return Between(*turned)


def _value(one: ModelFound, rule: SearchRule) -> Between:
    return one.ratio if rule.compare == RATIO else _turned(one.gap)


def _shown(value: float | None, rule: SearchRule) -> float | None:
    """A value as it is told: a ratio, or a gap."""
    return value if rule.compare == RATIO or value is None else 0.0 - value


def _fairer(
    base: ModelFound,
    one: ModelFound,
    moved: Sequence[Between],
    pairs: Sequence[Pair],
    rule: SearchRule,
) -> Verdict:
    """Whether its value is above the base's."""
    if not pairs:
        return UNCLEAR
    before = _value(base, rule)
    top = math.inf if before.high is None else before.high
    ways = {pair: _movement(base, moved, pair, rule.compare) for pair in pairs}
    ends = {pair: _pair(one.rates, pair, rule.compare).low for pair in pairs}
    if all(ends[pair] > top or ways[pair][0] > 0.0 for pair in pairs):
        return MET
    worst = [pair for pair in pairs if _pair(base.rates, pair, rule.compare).low <= top]
    high = _value(one, rule).high
    below = high is not None and high <= before.low
    if below or (worst and all(ways[pair][1] <= 0.0 for pair in worst)):
        return NOT_MET
    return UNCLEAR


def _movement(
    base: ModelFound, moved: Sequence[Between], pair: Pair, kind: str
) -> tuple[float, float]:
    """Ends of how far a pair has moved, up to a factor above 0: for ratios d_g rate_r - d_r rate_g,
    least and largest in corners."""
    (one, other), (rate, by) = (moved[at] for at in pair), (base.rates[at] for at in pair)
    if kind == DIFFERENCE:
        return one.low - other.high, one.high - other.low

    def products(a: Between, b: Between) -> list[float]:
        return [x * z for x in (a.low, a.high) for z in (b.low, b.high)]

    first, second = products(one, by), products(other, rate)
    return min(first) - max(second), max(first) - min(second)


# -- what further search could find ----------------------------------------------------------------


def _further(
    base: ModelFound,
    found: Sequence[ModelFound],
    taken: int | None,
    rule: SearchRule,
    any_model: float | None,
) -> Further:
    def high(one: ModelFound) -> float:
        """No less than its value, or the worst where it certainly is not of equal use."""
        end = _value(one, rule).high
        return -math.inf if one.equal_use == NOT_MET else math.inf if end is None else end

    listed = max((high(one) for at, one in enumerate(found) if at != taken), default=-math.inf)
    chosen = _value(base if taken is None else found[taken], rule).low
    tops = sorted((high(found[at]) for at in rule.draws), reverse=True)
    bounds = draws_above(len(tops), rule.of_draws) if tops else []
    redrawn = tuple(
        Redrawn(_shown(_known(top), rule), bound)
        for top, bound in zip(tops, bounds, strict=True)
        if bound < 1.0 and top < rule.best
    )
    beyond = None
    if tops and chosen is not None:
        above = sum(top > chosen for top in tops)
        beyond = Redrawn(_shown(chosen, rule), bounds[above] if above < len(tops) else 1.0)
    return Further(_shown(_known(listed), rule), _shown(any_model, rule), redrawn, beyond)


def draws_above(draws: int, miss: float) -> list[float]:
    """For each k below `draws`: what the probability of a further draw above the (k+1)-th largest of
    them is at most; all at once but with probability `miss`.

    F(U) of a draw is at least uniform in the order of probabilities, so the probability above the
    (k+1)-th largest is at most that of uniform draws, whose law is Beta(k + 1, n - k).

    >>> [round(one, 3) for one in draws_above(50, 0.05)[:3]]
    [0.071, 0.121, 0.168]
    """
    k = np.arange(draws)
    found = special.betaincinv(k + 1.0, draws - k, 1.0 - miss * 0.5 ** (k + 1.0))
    return [float(one) for one in np.maximum.accumulate(found)]


def _any_model(ends: _Ends, rule: SearchRule, compared: Sequence[int], most: float) -> float | None:
    """The largest value of any model of loss at most `most`; None: nothing can be ruled out."""
    if rule.rate != SELECTION or len(compared) < 2:
        return None
    g, y, _, _ = np.indices(ends.counts.shape[1:])
    everyone = np.ones(g.shape, bool)
    boxes = {
        at: [
            ends.end(0, hit, everyone, upper=upper)
            for hit in (g == at, (g == at) & (y == 1))
            for upper in (False, True)
        ]
        for at in compared
    }
    return largest_value(boxes, rule, most)


def largest_value(boxes: dict[int, list[float]], rule: SearchRule, most: float) -> float | None:
    """The largest value at which the least cost is at most `most`, where the share of each group and
    of its favourable labels lie in `boxes` (low, high, low, high)."""
    best, worst = (1.0, 0.0) if rule.compare == RATIO else (0.0, -1.0)
    if _least_cost(best, boxes, rule) <= most:
        return None
    low, high = worst, best
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if _least_cost(middle, boxes, rule) <= most else (low, middle)
    return high


def _least_cost(value: float, boxes: dict[int, list[float]], rule: SearchRule) -> float:
    """No more than what a model of this value costs: convex and piecewise linear in the largest
    rate m, so least in a corner."""

    def floor(m: float) -> float:
        return value * m if rule.compare == RATIO else max(0.0, m + value)

    corners = {0.0, 1.0, -value if rule.compare == DIFFERENCE else 1.0}
    for few, many, good, better in boxes.values():
        for at in (better / few if few else 1.0, good / many if many else 1.0):
            corners |= {at, at - value if rule.compare == DIFFERENCE else at / max(value, 1e-12)}
    return min(sum(_costs(m, floor(m), boxes, rule)) for m in corners if 0.0 <= m <= 1.0)


def _costs(
    m: float, floor: float, boxes: dict[int, list[float]], rule: SearchRule
) -> Iterator[float]:
    for at, (few, many, good, better) in boxes.items():
        # with a reference its rate is m, and others are not bounded from above
        least = m if at == rule.reference else floor
        if rule.reference in (None, at):
            yield rule.costs[1] * max(0.0, good - m * many)
        yield rule.costs[0] * max(0.0, least * few - better)
