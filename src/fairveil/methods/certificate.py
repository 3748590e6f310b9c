"""What released counts of set-aside people certify about the population, and evidence against it
over periods: post-processing of a release of counts.

Certificates. A constraint holds in the population where the bound on sum c x rate is at most what
it allows. To certify that *all* constraints of *all* notions hold, each is tested at the whole
permitted miss alpha: if one of them is broken, that one is certified with probability at most
alpha, and so are all together (Berger 1982). For the same reason the bound on the largest of
several gaps is the largest of their bounds: the truly largest gap is one of them. Only the two
rates of one gap share alpha, by a staircase where they are independent (`shares`).

Margins. If a fit aims at the bound minus M on its own rows, the released value of the rows set
aside is about normal around that, with the sampling of both parts, and the certificate's bound lies
w above it. It is granted with probability `chance` where

    M = w + z(chance) x sd,     w = max over the corners of sum |c| z(1 - a) sd(rate),     sd^2 = sum c^2 (sd(rate)^2 + sd'^2),

sd' being that of the rate among the rows of the fit, at the people, groups and labels that are
supposed, and at rates of 1 / K for K classes. The margin decides how often a certificate is
granted, and nothing about whether one that is granted is true.

Monitors. Each period has a p-value of "all constraints hold in this period's population": L times
the smallest of L constraints, each by exact private bounds on a grid of levels. A calibrator turns
it into an e-value, whose mean is at most 1 if they hold:

    e(p) = (1 - p + p ln p) / (p (ln p)^2),     e(1) = 1/2.

A change may begin at any period s. The wealth bets 1 / (s (s + 1)) on each, and keeps the rest in
cash:

    R_t = e_t (R_(t-1) + 1 / (t (t + 1))),     M_t = R_t + 1 / (t + 1).

If the constraints hold in every period, M is a nonnegative supermartingale from 1, whatever the
periods have in common with what was decided after earlier ones. By Ville's inequality P(M_t >= 1 /
alpha for any t) <= alpha: an alarm at 1 / alpha is false with probability at most alpha over the
whole run (theory.md#monitor).

Guarantees (tests/methods/test_methods_certificate.py)
1. A notion that is broken in the population is certified with probability at most 1 - confidence,
   over people and noise.
2. The population's largest value lies above `at_most` with probability at most 1 - confidence,
   whichever comparison it is. The area of levels that a staircase refuses is at most alpha.
3. A group that may have nobody is refused, and is no number.
4. A margin reads public facts alone, and at the supposed rates a population that lies that far
   inside is certified with about the chance, or more often.
5. Where the constraints hold the p-value is at most u with probability at most u, and over a whole
   run an alarm is raised with probability at most alpha.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from .._types import Floats
from ..facts import Cells
from ..fairness import Notion
from ..fairness.notions import Rate, RateConstraint
from ..fairness.systems import resolve
from .counts import (
    CountedRate,
    CountNoise,
    Pair,
    distribution_of_sum,
    fewest_people,
    lower_bounds,
    upper_bounds,
)

Bools = npt.NDArray[np.bool_]
ANGLES = (0.245, 0.616, math.pi / 2 - 0.616, math.pi / 2 - 0.245)
"""Where the corners lie on the arc: chosen so that precisions that differ up to five times cost
about the same."""
MOST_PEOPLE = 10**10
LEVELS = tuple(2.0**-k for k in (1, 3, 6, 9, 13, 18, 24, 30))
"""Levels at which a monitor may refute a constraint."""

# -- what is counted -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """sum of coefficient x rate <= bound, of the notion of that number."""

    name: str
    notion: int
    terms: tuple[tuple[float, int], ...]
    bound: float


@dataclass(frozen=True, eq=False)
class Layout:
    """What is counted, and what it is for: rows by the coarsest parts that still tell every rate of
    a constraint, so that a rate is the sum of as few noises as possible. `part_of` (cells, labels,
    classes): the part of each row; rows that no rate looks at are in the last."""

    part_of: npt.NDArray[np.int64]
    rates: tuple[CountedRate, ...]
    lines: tuple[Line, ...]

    @property
    def parts(self) -> int:
        """How many counts are released."""
        return int(self.part_of.max()) + 1

    @property
    def needs_labels(self) -> bool:
        """Whether any rate looks at labels."""
        return bool((self.part_of != self.part_of[:, :1, :]).any())

    @property
    def needs_groups(self) -> bool:
        """Whether any rate tells groups apart."""
        return bool((self.part_of != self.part_of[:1]).any())


def layout_of(notions: Sequence[Notion], cells: Cells, classes: Sequence[Hashable]) -> Layout:
    """The parts, rates and lines of these notions, over product cells."""
    classes = tuple(classes)
    shape = (cells.count, len(classes), len(classes))
    size = math.prod(shape)
    rates: dict[tuple[bytes, bytes], tuple[str, Bools, Bools]] = {}

    @cache
    def masks(rate: Rate, mode: str) -> tuple[Bools, Bools]:
        """Its event, and where the outcome is so, over (cells, labels, classes)."""
        system = resolve(RateConstraint(((1.0, rate),), 2.0, groups=mode), cells, classes)
        event = np.asarray(system.members.toarray(), bool).reshape(shape[:2])
        hit = np.asarray(system.numerators.toarray(), bool).reshape(shape)
        return np.broadcast_to(event[:, :, np.newaxis], shape).copy(), hit

    def terms(constraint: RateConstraint) -> tuple[tuple[float, int], ...]:
        """Rates of one event that have one coefficient are taken together: their sum is a rate."""
        together: dict[tuple[bytes, float], tuple[Bools, Bools, list[str]]] = {}
        for coefficient, rate in constraint.terms:
            event, hit = masks(rate, constraint.groups)
            key = (event.tobytes(), coefficient)
            if key not in together:
                together[key] = (event, hit, [str(rate)])
            elif not (together[key][1] & hit).any():
                _, before, names = together[key]
                together[key] = (event, before | hit, [*names, str(rate)])
            else:
                together[(event.tobytes() + hit.tobytes(), coefficient)] = (event, hit, [str(rate)])
        summed: dict[int, float] = {}
        for (_, coefficient), (event, hit, names) in together.items():
            place = (event.tobytes(), hit.tobytes())
            rates.setdefault(place, (" + ".join(names), event, hit))
            at = list(rates).index(place)
            summed[at] = summed.get(at, 0.0) + coefficient
        return tuple((coefficient, at) for at, coefficient in summed.items() if coefficient)

    lines = [
        Line(str(constraint), at, terms(constraint), constraint.bound)
        for at, notion in enumerate(notions)
        for constraint in notion.constraints(cells, classes)
    ]
    looked_at = [mask.ravel() for _, event, hit in rates.values() for mask in (event, hit)]
    everything = np.array(looked_at or [np.zeros(size, bool)])
    used = everything.any(axis=0)
    _, codes = np.unique(everything[:, used], axis=1, return_inverse=True)
    part_of = np.full(size, int(codes.max(initial=-1)) + 1, dtype=np.int64)
    part_of[used] = codes.ravel()
    part_of = part_of.reshape(shape)

    def parts(mask: Bools) -> tuple[int, ...]:
        return tuple(map(int, np.unique(part_of[mask])))

    counted = (
        CountedRate(name, parts(hit), parts(event & ~hit)) for name, event, hit in rates.values()
    )
    return Layout(part_of, tuple(counted), tuple(lines))


# -- how the miss is shared ------------------------------------------------------------------------


@cache
def corners(alpha: float) -> tuple[tuple[float, float], ...]:
    """Pairs (a, b) of levels for two independent rates, whose staircase has area `alpha`.

    A sum of two rates of separate groups is bounded by the largest value that it takes while
    neither rate is refused. With p-values u and v of the two, which are independent, any set of
    pairs that is closed downwards and has area alpha may be refused: equal parts refuse where u or
    v is at most alpha / 2. Here the set is a staircase, whose corners lie on an arc of normal
    scores: pairs are kept where for one of the corners both u > a_j and v > b_j, so

        sup of c p + d q  =  max over j of  c end_p(a_j) + d end_q(b_j),     alpha = 1 - sum_j (a_(j+1) - a_j) (1 - b_j).

    For rates of equal precision the bound lies 1.30 times the normal one from what was released,
    and 1.69 times with equal parts. Nothing of the data decides the steps.

    >>> [(round(a, 4), round(b, 4)) for a, b in corners(0.05)]
    [(0.0174, 0.2988), (0.0379, 0.1043), (0.1043, 0.0379), (0.2988, 0.0174)]
    """

    def at(radius: float) -> tuple[tuple[float, float], ...]:
        scores = radius * np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
        return tuple((float(a), float(b)) for a, b in special.ndtr(-scores))

    found = float(optimize.brentq(lambda r: area(at(r)) - alpha, 1e-6, 40.0, xtol=1e-12))
    while area(at(found)) > alpha:  # outwards, if the root was found from the wrong side
        found *= 1.0 + 1e-12
    return at(found)


def area(steps: tuple[tuple[float, float], ...]) -> float:
    """P(a pair of independent uniform p-values is refused)."""
    first = [a for a, _ in steps] + [1.0]
    return 1.0 - math.fsum((first[j + 1] - first[j]) * (1.0 - b) for j, (_, b) in enumerate(steps))


def shares(terms: int, independent: bool, alpha: float) -> tuple[tuple[float, ...], ...]:
    """The corners for a sum of this many rates: a level for each of them in each corner."""
    if terms == 1:
        return ((alpha,),)
    if terms == 2 and independent:
        return corners(alpha)
    return ((alpha / terms,) * terms,)


# -- bounds ----------------------------------------------------------------------------------------


class Evidence:
    """Released counts and their noise; ends of intervals are found when they are asked for, and
    kept."""

    def __init__(
        self, layout: Layout, counts: Floats, noise: CountNoise, confidence: float
    ) -> None:
        self.layout, self.noise, self.alpha = layout, noise, 1.0 - confidence
        self.counted = [rate.counted(counts) for rate in layout.rates]
        self.fewest = [fewest_people(one, noise, self.alpha / 2.0) for one in self.counted]
        self._ends: dict[tuple[int, bool, float], float] = {}

    def end(self, rate: int, level: float, *, upper: bool) -> float:
        """A bound on a rate that fails with probability at most `level`."""
        key = (rate, upper, level)
        if key not in self._ends:
            find = upper_bounds if upper else lower_bounds
            self._ends[key] = float(find(self.counted[rate], self.noise, [level])[0])
        return self._ends[key]

    def value(self, rate: int) -> float | None:
        """A rate as released, moved into [0, 1]."""
        one = self.counted[rate]
        whole = one.selected + one.others
        if whole <= 0 or not self.fewest[rate]:
            return None
        return min(max(one.selected / whole, 0.0), 1.0)

    def released(self, line: Line) -> float:
        """The sum of a constraint as released."""
        return sum(c * (self.value(rate) or 0.0) for c, rate in line.terms)

    def lacking(self, line: Line) -> list[int]:
        """Its rates of events that may have nobody."""
        return [rate for _, rate in line.terms if not self.fewest[rate]]

    def steps(self, line: Line) -> tuple[tuple[float, ...], ...]:
        """How the miss is shared among the rates of a constraint."""
        rates = [self.layout.rates[rate] for _, rate in line.terms]
        events = [frozenset((*rate.hits, *rate.rest)) for rate in rates]
        # Rates of disjoint people have independent counts, and may share the miss in a closer way.
        apart = sum(map(len, events)) == len(frozenset().union(*events))
        return shares(len(line.terms), apart, self.alpha)

    def at_most(self, line: Line) -> float:
        """The bound on its sum."""
        return max(self._sum(line, step) for step in self.steps(line))

    def crude(self, line: Line) -> float:
        """No less than `at_most`, and quick: from one end of each rate, at the least level."""
        least = min(a for step in self.steps(line) for a in step)
        return self._sum(line, [least] * len(line.terms))

    def _sum(self, line: Line, levels: Sequence[float]) -> float:
        terms = zip(line.terms, levels, strict=True)
        return sum(c * self.end(rate, a, upper=c > 0) for (c, rate), a in terms)

    def away(self, line: Line, sd: Callable[[int], float]) -> float:
        """About how far its bound lies above its sum, where rates are normal with these deviations:
        the largest over the corners."""
        spread = [(abs(c), sd(rate)) for c, rate in line.terms]
        return max(
            sum(
                c * -float(special.ndtri(a)) * size
                for (c, size), a in zip(spread, step, strict=True)
            )
            for step in self.steps(line)
        )

    def deviation(self, rate: int, times: float) -> float:
        """About that of a released rate, if so many times as many people were set aside."""
        return deviation(self.counted[rate], self.noise, times)


@dataclass(frozen=True)
class RateInterval:
    """One rate: as released, and between which ends the population's lies, each failing with half
    of the permitted miss. `people`: of the event, as released; `fewest`: there are at least so
    many. None where there may be nobody."""

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
    None: no number would, or none is needed."""

    limit: float
    at_most: float | None
    value: float | None
    certified: bool
    worst: str
    ratio: float | None = None
    refused: str = ""
    people_needed: int | None = None


@dataclass(frozen=True)
class Certified:
    """All notions and all rates of one release."""

    notions: tuple[NotionBound, ...]
    rates: tuple[RateInterval, ...]

    @property
    def holds(self) -> bool:
        """Whether everything asked is certified."""
        return all(one.certified for one in self.notions)


def certified(
    layout: Layout,
    notions: int,
    counts: Floats,
    noise: CountNoise,
    confidence: float,
) -> Certified:
    """Every notion's bound and every rate's interval, from released counts (parts,)."""
    found = Evidence(layout, counts, noise, confidence)
    lines = [[line for line in layout.lines if line.notion == at] for at in range(notions)]
    return Certified(
        tuple(_of_notion(found, own, counts) for own in lines),
        tuple(_interval(found, rate) for rate in range(len(layout.rates))),
    )


def _interval(found: Evidence, rate: int) -> RateInterval:
    one = found.counted[rate]
    low = high = None
    if found.fewest[rate]:
        low, high = (found.end(rate, found.alpha / 2.0, upper=upper) for upper in (False, True))
    name, people = found.layout.rates[rate].name, one.selected + one.others
    return RateInterval(name, found.value(rate), low, high, people, found.fewest[rate])


def _of_notion(found: Evidence, lines: list[Line], counts: Floats) -> NotionBound:
    limit = max((line.bound for line in lines), default=0.0)
    if not lines:
        return NotionBound(limit, limit, limit, True, "nothing is compared")
    lacking = [rate for line in lines for rate in found.lacking(line)]
    if lacking:
        name = found.layout.rates[lacking[0]].name
        why = f"perhaps nobody set aside belongs to the event of {name}"
        return NotionBound(limit, None, None, False, "", refused=why)
    worst, most = lines[0], -math.inf
    crude = [(found.crude(line) - line.bound, line) for line in lines]
    for over, line in sorted(crude, key=lambda one: -one[0]):
        # Sorted by the quick bound: no later line can be worse, and exact tails are slow.
        if over <= most:
            break
        exact = found.at_most(line) - line.bound
        worst, most = (line, exact) if exact > most else (worst, most)
    value = max(found.released(line) - line.bound for line in lines) + worst.bound
    holds = most <= 0.0
    needed = None if holds else _people_needed(found, lines, counts)
    ratio, at_most = _ratio(found, lines), most + worst.bound
    return NotionBound(worst.bound, at_most, value, holds, worst.name, ratio, "", needed)


def _ratio(found: Evidence, lines: list[Line]) -> float | None:
    """Where all constraints are r x rate - other <= 0: what other / rate is at least."""
    least = math.inf
    for line in lines:
        signs = [c for c, _ in line.terms]
        if line.bound != 0.0 or len(signs) != 2 or signs[1] != -1.0 or signs[0] <= 0.0:
            return None
        (_, rate), (_, other) = line.terms
        for a, b in found.steps(line):
            most = found.end(rate, a, upper=True)
            least = min(least, found.end(other, b, upper=False) / most if most > 0.0 else math.inf)
    return least


def _people_needed(found: Evidence, lines: list[Line], counts: Floats) -> int | None:
    """At the released shares and rates: by the normal distribution first, then by the exact bound
    of the worst line."""

    def away(line: Line, times: float) -> float:
        return found.away(line, lambda rate: found.deviation(rate, times))

    rooms = [(line, line.bound - found.released(line)) for line in lines]
    if min(room for _, room in rooms) <= 1e-9:
        return None
    hardest, allowed = max(rooms, key=lambda one: away(one[0], 1.0) / one[1])
    people, low, high = float(counts.sum()), 1.0, 1.0
    while away(hardest, high) > allowed and people * high < MOST_PEOPLE:
        low, high = high, 2.0 * high
    for _ in range(30):
        middle = (low + high) / 2.0
        low, high = (middle, high) if away(hardest, middle) > allowed else (low, middle)
    for _ in range(20):
        if people * high > MOST_PEOPLE:
            return None
        supposed = np.rint(np.maximum(counts, 0.0) * high)
        more = Evidence(found.layout, supposed, found.noise, 1.0 - found.alpha)
        if more.at_most(hardest) <= hardest.bound:
            return rounded_up(people * high)
        high *= 1.06
    return None


def deviation(one: Pair, noise: CountNoise, factor: float) -> float:
    """About the standard deviation of a released rate, if `factor` times as many people were set
    aside."""
    n = max((one.selected + one.others) * factor, 1.0)
    # One more of each, so that a rate of 0 has a deviation, too.
    p = min(max((max(one.selected, 0.0) * factor + 1.0) / (n + 2.0), 0.0), 1.0)
    parts = (1 - p) ** 2 * one.selected_noises + p**2 * one.others_noises
    return math.sqrt(n * p * (1 - p) + distribution_of_sum(noise, 1).variance * parts) / n


def rounded_up(number: float) -> int:
    """Two digits, upwards: it is a guess, and says no more than it knows.

    >>> rounded_up(8123.0), rounded_up(47.0)
    (8200, 47)
    """
    unit: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / unit - 1e-9) * unit


# -- margins ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SupposedPeople:
    """About how many people will be set aside, and which share of them is in each cell and has each
    label (cells, labels). `fitted`: how many times as many the model is fitted to; None: it was
    made before, and its value is known."""

    people: float
    shares: Floats
    fitted: float | None = None


def margins(
    layout: Layout,
    notions: int,
    supposed: SupposedPeople,
    noise: CountNoise,
    confidence: float,
    chance: float,
) -> tuple[float, ...]:
    """The margin of each notion, in the unit of its constraints."""
    shape = layout.part_of.shape
    share = np.broadcast_to(supposed.shares[:, :, np.newaxis] / shape[2], shape)
    parts = np.bincount(layout.part_of.ravel(), share.ravel(), layout.parts)
    found = Evidence(layout, np.rint(supposed.people * parts), noise, confidence)
    rates, times = range(len(layout.rates)), supposed.fitted
    spread = [found.deviation(rate, 1.0) for rate in rates]
    of_fit = [0.0 if times is None else found.deviation(rate, times) for rate in rates]
    out = [0.0] * notions
    for line in layout.lines:
        # Sampling of both parts: of the rows set aside, and of those that the model was fitted to.
        both = sum(c**2 * (spread[rate] ** 2 + of_fit[rate] ** 2) for c, rate in line.terms)
        needed = found.away(line, spread.__getitem__) + special.ndtri(chance) * math.sqrt(both)
        out[line.notion] = max(out[line.notion], float(needed))
    return tuple(out)


def even_shares(
    cells: int,
    labels: int,
    of_cells: Sequence[float] | None = None,
    of_labels: Sequence[float] | None = None,
) -> Floats:
    """Shares (cells, labels): those that are stated, else all alike."""
    one = np.full(cells, 1.0 / cells) if of_cells is None else of_cells
    other = np.full(labels, 1.0 / labels) if of_labels is None else of_labels
    return np.asarray(np.outer(one, other), np.float64)


# -- monitors --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bet:
    """What stands after a period: what rides on changes that began, what is in cash, and all of it
    at its highest."""

    periods: int = 0
    riding: float = 0.0
    highest: float = 1.0

    @property
    def wealth(self) -> float:
        """All of it."""
        return self.riding + 1.0 / (self.periods + 1.0)

    def after(self, e: float) -> Bet:
        """After a period with this e-value."""
        t = self.periods + 1
        riding = min(e * (self.riding + 1.0 / (t * (t + 1.0))), 1e300)
        return Bet(t, riding, max(self.highest, riding + 1.0 / (t + 1.0)))


def p_value(layout: Layout, counts: Floats, noise: CountNoise) -> float:
    """Of "every constraint holds": the smallest grid level at which, as at all larger ones, one is
    refuted, times how many."""

    @cache
    def at(level: float) -> Evidence:
        return Evidence(layout, counts, noise, 1.0 - level)

    smallest, first = 1.0, at(LEVELS[0])
    for line in layout.lines:
        if first.lacking(line) or first.released(line) <= line.bound:
            continue
        turned = Line(line.name, line.notion, tuple((-c, rate) for c, rate in line.terms), 0.0)
        for level in LEVELS:
            if -at(level).at_most(turned) <= line.bound:
                break
            smallest = min(smallest, level)
    return min(1.0, len(layout.lines) * smallest)


def e_value(p: float) -> float:
    """The calibrator: the mean of k p^(k - 1) over k from 0 to 1.

    >>> round(e_value(0.01), 3), e_value(1.0)
    (4.451, 0.5)
    """
    if p >= 1.0 - 1e-6:
        return 0.5
    log = math.log(p)
    return (1.0 - p + p * log) / (p * log * log)
