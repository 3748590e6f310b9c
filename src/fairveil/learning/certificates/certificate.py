"""What released counts of set-aside people certify about the population: post-processing of one
release.

A constraint holds in the population where the bound on sum c x rate is at most what it allows. To
certify that *all* constraints of *all* notions hold, each is tested at the whole permitted miss
alpha: if one of them is broken, that one is certified with probability at most alpha, and so are
all together (Berger 1982). For the same reason the bound on the largest of several gaps is the
largest of their bounds: the truly largest gap is one of them. Only the two rates of one gap share
alpha (`certificate_levels`).

Guarantees (tests/learning/test_learning_certificate.py):
1. A notion that is broken in the population is certified with probability at most 1 - confidence,
   over people and noise.
2. The population's largest value lies above `at_most` with probability at most 1 - confidence,
   whichever comparison it is.
3. A group that may have nobody is refused, and is no number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..._types import Floats
from ..counts.distributions import distribution_of_sum
from ..counts.noise import CountNoise
from .levels import shares
from .parts import CountedRate, Line
from .tails import Counted, fewest_people, lower_bounds, upper_bounds

MOST_PEOPLE = 10**10


@dataclass(frozen=True)
class RateInterval:
    """One rate: as released, and between which ends the population's lies. `people`: of the event,
    as released; `fewest`: there are at least so many. None where there may be nobody."""

    name: str
    value: float | None
    low: float | None
    high: float | None
    people: float
    fewest: int


@dataclass(frozen=True)
class NotionBound:
    """What is certain of one notion. `limit`: what it allows; `value`: the largest released value
    of its comparisons, `worst` which one has the largest bound, `at_most` that bound. `ratio`: of
    notions of ratios, what the ratio is at least. `refused`: why there is no number.
    `people_needed`: about how many people set aside would do, at the released shares and rates;
    None: no number would, or none is needed; `in_each_group`: where a group is lacking, how many of
    each group would do at equal rates."""

    limit: float
    at_most: float | None
    value: float | None
    certified: bool
    worst: str
    ratio: float | None = None
    refused: str = ""
    people_needed: int | None = None
    in_each_group: int | None = None


@dataclass(frozen=True)
class Certified:
    """All notions and all rates of one release."""

    notions: tuple[NotionBound, ...]
    rates: tuple[RateInterval, ...]

    @property
    def holds(self) -> bool:
        """Whether everything asked is certified."""
        return all(one.certified for one in self.notions)


@dataclass(frozen=True)
class Blind:
    """A `share` of decisions is made without looking at anybody, and has these `rates`: all rates
    are mixtures with them."""

    share: float
    rates: tuple[float, ...]

    def mixed(self, rate: int, value: float) -> float:
        """A rate of the final model, from that of the model that was counted."""
        return (1.0 - self.share) * value + self.share * self.rates[rate]


class Evidence:
    """Released counts and their noise; ends of intervals are found when they are asked for, and
    kept."""

    def __init__(
        self,
        rates: Sequence[CountedRate],
        counts: Floats,
        noise: CountNoise,
        confidence: float,
        blind: Blind | None = None,
    ) -> None:
        self.rates, self.noise, self.alpha, self.blind = (
            tuple(rates),
            noise,
            1.0 - confidence,
            blind,
        )
        self.counted = [rate.counted(counts) for rate in rates]
        self.fewest = [fewest_people(one, noise, self.alpha / 2.0) for one in self.counted]
        self._ends: dict[tuple[int, bool, float], float] = {}

    def end(self, rate: int, level: float, *, upper: bool) -> float:
        """A bound on a rate that fails with probability at most `level`."""
        key = (rate, upper, level)
        if key not in self._ends:
            find = upper_bounds if upper else lower_bounds
            found = float(find(self.counted[rate], self.noise, [level])[0])
            self._ends[key] = found if self.blind is None else self.blind.mixed(rate, found)
        return self._ends[key]

    def term(self, coefficient: float, rate: int, level: float) -> float:
        """The most that coefficient x rate can be."""
        return coefficient * self.end(rate, level, upper=coefficient > 0)

    def value(self, rate: int) -> float | None:
        """A rate as released, moved into [0, 1]."""
        one = self.counted[rate]
        whole = one.selected + one.others
        if whole <= 0 or not self.fewest[rate]:
            return None
        found = min(max(one.selected / whole, 0.0), 1.0)
        return found if self.blind is None else self.blind.mixed(rate, found)

    def steps(self, line: Line) -> tuple[tuple[float, ...], ...]:
        """How the miss is shared among the rates of a constraint."""
        events = [self.rates[rate].event for _, rate in line.terms]
        # Rates of disjoint people have independent counts, and may share the miss in a closer way.
        apart = sum(map(len, events)) == len(frozenset().union(*events))
        return shares(len(line.terms), apart, self.alpha)

    def at_most(self, line: Line) -> float:
        """The bound on its sum."""
        return max(
            sum(self.term(c, rate, a) for (c, rate), a in zip(line.terms, step, strict=True))
            for step in self.steps(line)
        )

    def crude(self, line: Line) -> float:
        """No less than `at_most`, from one end of each rate."""
        # One level for all rates of the constraint: a bound that is quick, and never below the
        # exact one.
        least = min(a for step in self.steps(line) for a in step)
        return sum(self.term(c, rate, least) for c, rate in line.terms)


def certified(
    rates: Sequence[CountedRate],
    lines: Sequence[Line],
    notions: int,
    counts: Floats,
    noise: CountNoise,
    confidence: float,
    blind: Blind | None = None,
) -> Certified:
    """Every notion's bound and every rate's interval, from released counts (parts,). `blind`: what
    is certified is a mixture of the model that was counted with such decisions."""
    found = Evidence(rates, counts, noise, confidence, blind)
    of_notions = tuple(
        _of_notion(found, [line for line in lines if line.notion == at], counts)
        for at in range(notions)
    )
    return Certified(of_notions, tuple(interval(found, rate) for rate in range(len(rates))))


def interval(found: Evidence, rate: int) -> RateInterval:
    """One rate between its ends, each of which fails with half of the permitted miss."""
    one = found.counted[rate]
    low = high = None
    if found.fewest[rate]:
        low, high = (found.end(rate, found.alpha / 2.0, upper=upper) for upper in (False, True))
    return RateInterval(
        found.rates[rate].name,
        found.value(rate),
        low,
        high,
        one.selected + one.others,
        found.fewest[rate],
    )


def _of_notion(found: Evidence, lines: list[Line], counts: Floats) -> NotionBound:
    lacking = [rate for line in lines for _, rate in line.terms if not found.fewest[rate]]
    limit = max((line.bound for line in lines), default=0.0)
    if not lines:
        return NotionBound(limit, limit, limit, True, "nothing is compared")
    if lacking and found.blind is None:
        name = found.rates[lacking[0]].name
        why = f"perhaps nobody set aside belongs to the event of {name}"
        return NotionBound(
            limit, None, None, False, "", refused=why, in_each_group=_in_each_group(found, lines)
        )
    worst, most = lines[0], -math.inf
    for crude, line in sorted(
        ((found.crude(line) - line.bound, line) for line in lines), key=lambda one: -one[0]
    ):
        # Sorted by the quick bound: no later line can be worse, and exact tails are slow.
        if crude <= most:
            break
        over = found.at_most(line) - line.bound
        worst, most = (line, over) if over > most else (worst, most)
    value = (
        None if lacking else max(_value(found, line) - line.bound for line in lines) + worst.bound
    )
    holds = most <= 0.0
    needed = None if holds or found.blind is not None else _people_needed(found, lines, counts)
    return NotionBound(
        worst.bound,
        most + worst.bound,
        value,
        holds,
        worst.name,
        _ratio(found, lines),
        people_needed=needed,
    )


def _value(found: Evidence, line: Line) -> float:
    return sum(c * (found.value(rate) or 0.0) for c, rate in line.terms)


def _ratio(found: Evidence, lines: list[Line]) -> float | None:
    """Where all constraints are r x rate - other <= 0: what other / rate is at least."""
    least = math.inf
    for line in lines:
        if (
            line.bound != 0.0
            or len(line.terms) != 2
            or line.terms[1][0] != -1.0
            or line.terms[0][0] <= 0.0
        ):
            return None
        (_, rate), (_, other) = line.terms
        for a, b in found.steps(line):
            most = found.end(rate, a, upper=True)
            least = min(least, found.end(other, b, upper=False) / most if most > 0.0 else math.inf)
    return least


def _people_needed(found: Evidence, lines: list[Line], counts: Floats) -> int | None:
    """At the released shares and rates: by the normal distribution first, then by the exact bound
    of the worst line."""
    if max(_value(found, line) - line.bound for line in lines) >= -1e-9:
        return None
    people = float(counts.sum())
    hardest = max(
        lines,
        key=lambda line: (
            (_about(found, line, 1.0) - _value(found, line)) / (line.bound - _value(found, line))
        ),
    )
    low = high = 1.0
    while _about(found, hardest, high) > hardest.bound and people * high < MOST_PEOPLE:
        low, high = high, 2.0 * high
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if _about(found, hardest, middle) > hardest.bound else (low, middle)
        )
    for _ in range(20):
        more = Evidence(
            found.rates, np.rint(np.maximum(counts, 0.0) * high), found.noise, 1.0 - found.alpha
        )
        if people * high > MOST_PEOPLE:
            return None
        if more.at_most(hardest) <= hardest.bound:
            return rounded_up(people * high)
        high *= 1.06
    return None


def _about(found: Evidence, line: Line, factor: float) -> float:
    """The bound of a line if `factor` times as many people were set aside, by the normal
    distribution."""
    spread = [deviation(found.counted[rate], found.noise, factor) for _, rate in line.terms]
    middle = _value(found, line)
    return middle + max(
        sum(
            abs(c) * -float(special.ndtri(a)) * sd
            for (c, _), a, sd in zip(line.terms, step, spread, strict=True)
        )
        for step in found.steps(line)
    )


def deviation(one: Counted, noise: CountNoise, factor: float) -> float:
    """About the standard deviation of a released rate, if `factor` times as many people were set
    aside."""
    n = max((one.selected + one.others) * factor, 1.0)
    # One more of each, so that a rate of 0 has a deviation, too.
    p = (max(one.selected, 0.0) * factor + 1.0) / (n + 2.0)
    p = min(max(p, 0.0), 1.0)
    each = distribution_of_sum(noise, 1).variance
    return (
        math.sqrt(
            n * p * (1 - p) + each * ((1 - p) ** 2 * one.selected_noises + p**2 * one.others_noises)
        )
        / n
    )


def _in_each_group(found: Evidence, lines: list[Line]) -> int | None:
    """People of each group that would do if all rates were what they are together."""
    selected = sum(max(one.selected, 0.0) for one in found.counted)
    # Noise can make a count negative; a guess of people needs none that is.
    whole = sum(max(one.selected, 0.0) + max(one.others, 0.0) for one in found.counted)
    p = (selected + 1.0) / (whole + 2.0)
    n = 1.0
    while n < MOST_PEOPLE:
        like = [
            Counted(p * n, (1 - p) * n, one.selected_noises, one.others_noises)
            for one in found.counted
        ]
        if all(_even(found, line, like, p) <= line.bound for line in lines):
            return rounded_up(n)
        n *= 1.05
    return None


def _even(found: Evidence, line: Line, like: list[Counted], p: float) -> float:
    spread = [deviation(like[rate], found.noise, 1.0) for _, rate in line.terms]
    return sum(c for c, _ in line.terms) * p + max(
        sum(
            abs(c) * -float(special.ndtri(a)) * sd
            for (c, _), a, sd in zip(line.terms, step, spread, strict=True)
        )
        for step in found.steps(line)
    )


def rounded_up(number: float) -> int:
    """Two digits, upwards: it is a guess, and says no more than it knows.

    >>> rounded_up(8123.0), rounded_up(47.0)
    (8200, 47)
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / unit - 1e-9) * unit
