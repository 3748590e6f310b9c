"""Confidence bounds of a population rate from two noisy counts, by exact tails: how many were
selected, and how many were not.

Of n independent people S are selected with probability p each and N = n - S are not; released are s
= S + Z and m = N + Z', with independent whole-number noises of known distribution. At the true p

    T(p) = (1 - p) (S + Z) - p (N + Z')

has mean 0 whatever n is. A rate p is refused as too large where T(p) is as small as it was seen
with probability at most `level`, for every n in a confidence set, whose own miss is added:

    u(p) = max over n near s + m of P(T(p) <= t(p))  +  P(n is not near s + m)  +  what the noises'
    tables miss.

T(p) <= t(p) is S <= s - Z + p (n + Z + Z' - s - m), so given the noises it is a tail of the
binomial distribution. The upper bound is the end of the set of rates that are not refused. Nothing
is assumed of how u(p) runs: u is bounded over whole intervals of p (and of n) at a time, because S
grows with p and n (a coupling) and the right side is linear in p. See docs/certificates.md.

Guarantees (tests/learning/test_learning_certificate_tails.py):
1. For every n, p, kind and size of noise the bound lies below p with probability at most its level:
   exact, by enumeration.
2. Every rate above the bound was refused; what is left out of the tables is added to u, never
   rescaled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..._types import Floats, Ints
from ..counts.distributions import NoiseLaw, distribution_of_sum
from ..counts.noise import CountNoise

FOR_SIZE = 0.02
"""The part of the smallest level that is charged for not knowing how many people there are."""
FOR_TABLES = 0.002
"""The part of the smallest level that the noises' tables may miss."""
FINE = 0.008  # of a standard deviation: how near a bound is found
MOST_AT_ONCE = 1 << 21  # numbers of a table


@dataclass(frozen=True)
class Counted:
    """Two released counts of one event, and of how many noises each is the sum."""

    selected: float
    others: float
    selected_noises: int = 1
    others_noises: int = 1

    @property
    def turned(self) -> Counted:
        """The others as the selected ones."""
        return Counted(self.others, self.selected, self.others_noises, self.selected_noises)


def upper_bounds(counted: Counted, noise: CountNoise, levels: Sequence[float]) -> Floats:
    """For each level a number that the population rate exceeds with at most that probability.

    >>> upper_bounds(Counted(30, 270), CountNoise("none", 0.0), [0.025]).round(4)
    array([0.1398])
    """
    search = _Search(counted, noise, min(levels))
    found = {}
    top = 1.0
    for level in sorted(set(levels)):
        top = search.down(top, level)
        found[level] = top
    return np.array([found[level] for level in levels])


def lower_bounds(counted: Counted, noise: CountNoise, levels: Sequence[float]) -> Floats:
    """For each level a number that the population rate falls below with at most that
    probability."""
    return 1.0 - upper_bounds(counted.turned, noise, levels)


def fewest_people(counted: Counted, noise: CountNoise, level: float) -> int:
    """A number that the people counted fall below with at most this probability; 0 where there may
    be none."""
    law = distribution_of_sum(noise, counted.selected_noises + counted.others_noises)
    return max(0, math.ceil(counted.selected + counted.others) - law.radius(2.0 * level))


class _Search:
    """The descent from 1, with all that does not depend on p."""

    def __init__(self, counted: Counted, noise: CountNoise, smallest: float) -> None:
        self.seen, self.rest = float(counted.selected), float(counted.others)
        self.total = self.seen + self.rest
        spare = FOR_TABLES * smallest / 2.0
        laws = [
            distribution_of_sum(noise, k) for k in (counted.selected_noises, counted.others_noises)
        ]
        (self.first, one_missed), (self.second, other_missed) = (
            Steps.of(law.cut(spare)) for law in laws
        )
        whole = distribution_of_sum(noise, counted.selected_noises + counted.others_noises)
        share = 0.0 if noise.kind == "none" else FOR_SIZE * smallest
        radius = whole.radius(share) if share else 0
        # What the tables and the set of sizes n leave out counts against every level, and is never
        # scaled away.
        self.added = one_missed + other_missed + share
        self.fewest = max(0, math.ceil(self.total - radius - 1e-9))
        self.most = max(self.fewest, math.floor(self.total + radius + 1e-9))
        n = max(self.total, 1.0)
        self.guess = min(max(self.seen / n, 0.0), 1.0)
        # Only a scale for the search: one more of each keeps it above 0 where nobody was selected.
        p = (self.guess * n + 1.0) / (n + 2.0)
        parts = (1 - p) ** 2 * laws[0].variance + p**2 * laws[1].variance
        self.deviation = math.sqrt(n * p * (1 - p) + parts)
        self.step = self.deviation / n

    def down(self, top: float, level: float) -> float:
        """The least rate such that all above it, from `top` on, are refused at `level`."""
        # The level is used up by what is not known: no rate can be refused.
        if self.added >= level:
            return top
        margin = FINE * self.step
        low = self._crossing(top, level) + margin
        while low < top:
            if self._clear(low, top, level):
                return low
            # The guess was too low. Ever larger steps, so that the search ends.
            low, margin = low + margin, 2.0 * margin
        return top

    def _crossing(self, top: float, level: float) -> float:
        """About where u(p) is `level`: with the most people alone, which proves nothing and saves
        time."""
        people, wanted = np.array([self.most]), float(special.ndtri(level))

        def over(p: float) -> float:
            tail = self._tails(people, people, p, p)[0] + self.added
            return float(special.ndtri(min(max(tail, 1e-300), 1.0 - 1e-16))) - wanted

        low, high, near = self.guess, top, 0.3 * FINE * self.step
        p = self.guess - wanted * self.step
        for _ in range(40):
            if not low < p < high:
                p = (low + high) / 2.0
            far = over(p) * self.step  # the normal score falls by about 1 a standard deviation
            low, high = (p, high) if far > 0.0 else (low, p)
            if abs(far) <= near or high - low <= near:
                break
            p += far
        return high if high - low <= near else p

    def _clear(self, low: float, top: float, level: float) -> bool:
        """Whether every rate from `low` to `top` is refused, interval by interval."""
        width = 0.1 * self.step
        while low < top:
            high = min(low + width, top)
            if self._refuses(low, high, level):
                low, width = high, 16.0 * width
            elif width < 0.002 * self.step:
                return False
            else:
                width /= 5.0
        return True

    def _refuses(self, low: float, high: float, level: float) -> bool:
        """Whether every rate from `low` to `high` is refused, for every n."""
        starts, ends = np.array([self.fewest]), np.array([self.most])
        while len(starts):
            failed = self._tails(starts, ends, low, high) + self.added > level
            starts, ends = starts[failed], ends[failed]
            if (
                len(starts)
                and ((ends - starts) * min(low, 1.0 - low) <= 0.01 * self.deviation).any()
            ):
                # A bound over a block of n takes the worst n and the worst p of it by themselves:
                # cutting blocks makes it closer.
                return False  # so narrow that cutting it would win nothing
            starts, ends = _quarters(starts, ends)
        return True

    def _tails(self, starts: Ints, ends: Ints, low: float, high: float) -> Floats:
        """At least P(T <= t) for each block of n and every p from `low` to `high`.

        With y = Z + Z' and t = n + y the event is S <= a(t) - Z, a(t) = floor(s + p (t - s - m)),
        which has the same value for a run of y; given the run and Z, Z' lies in an interval. Above
        one half it is written for N = n - S instead.
        """
        below = low < 0.5
        one, other = (self.first, self.second) if below else (self.second, self.first)
        reach = one.reach + other.reach
        y = np.arange(-reach, reach + 1)
        # S grows with n and p (a coupling), so a block's smallest n bounds its tail, and its
        # largest n the threshold.
        away = (ends if below else starts)[:, np.newaxis] + y - self.total
        if below:
            places = np.floor(self.seen + np.maximum(low * away, high * away) + 1e-9)
        else:
            places = np.ceil(self.rest + np.minimum((1.0 - low) * away, (1.0 - high) * away) - 1e-9)
        places = places.astype(np.int64)
        people, p = (starts, low) if below else (ends, 1.0 - low)
        out = np.empty(len(starts))
        width = int((places[:, -1] - places[:, 0]).max()) + 1
        chunk = max(1, MOST_AT_ONCE // (width * len(one.values)))
        for a in range(0, len(starts), chunk):
            part = slice(a, a + chunk)
            out[part] = _expected(places[part], people[part], p, y, one, other, below=below)
        return out


def _expected(
    places: Ints, people: Ints, p: float, y: Ints, one: Steps, other: Steps, *, below: bool
) -> Floats:
    """The sum over Z and runs of y of P(S <= a - Z), or P(N >= a - Z), for each block."""
    first = places[:, :1]
    runs = np.arange(int((places[:, -1] - first[:, 0]).max()) + 2)
    edges = (
        np.stack(
            [
                np.searchsorted(line, start + runs)
                for line, start in zip(places, first[:, 0], strict=True)
            ]
        )
        + y[0]
    )
    # For each run of y and each Z: how likely Z' puts y into the run.
    upto = other.below(edges[:, :, np.newaxis] - one.values)
    weights = upto[:, 1:] - upto[:, :-1]
    span = np.arange(-one.reach, len(runs) - 1 + one.reach + 1)
    table = _binomial(first + span, people[:, np.newaxis], p, below=below)
    picked = runs[:-1, np.newaxis] - one.values + one.reach
    return np.asarray(np.einsum("bak,bak,k->b", weights, table[:, picked], one.weights))


def _binomial(k: Ints, n: Ints, p: float, *, below: bool) -> Floats:
    """P(X <= k), or P(X >= k), of a binomial X."""
    if below:
        # The incomplete beta function is P(X <= k) = I(n - k, k + 1; 1 - p), for 0 <= k < n.
        inside = np.clip(k, 0, np.maximum(n - 1, 0))
        found = special.betainc(np.maximum(n - inside, 1.0), inside + 1.0, 1.0 - p)
        return np.asarray(np.where(k < 0, 0.0, np.where(k >= n, 1.0, found)))
    inside = np.clip(k, 1, np.maximum(n, 1))
    found = special.betainc(inside, np.maximum(n - inside, 0) + 1.0, p)
    return np.asarray(np.where(k <= 0, 1.0, np.where(k > n, 0.0, found)))


def _quarters(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Blocks of whole numbers, each cut into at most four."""
    if not len(starts):
        return starts, ends
    cuts = np.stack([starts + (ends + 1 - starts) * k // 4 for k in range(5)])
    left, right = cuts[:-1].ravel(), cuts[1:].ravel() - 1
    kept = left <= right
    return left[kept], right[kept]


@dataclass(frozen=True, eq=False)
class Steps:
    """A noise as a table, with the sums of its weights."""

    values: Ints
    weights: Floats
    sums: Floats

    @staticmethod
    def of(law: NoiseLaw) -> tuple[Steps, float]:
        """The steps, and what they miss."""
        return Steps(
            law.values, law.weights, np.concatenate([[0.0], np.cumsum(law.weights)])
        ), law.missed

    @property
    def reach(self) -> int:
        """The largest value."""
        return int(self.values[-1])

    def below(self, edges: Ints) -> Floats:
        """P(noise < edge), of the values in the table."""
        return np.asarray(self.sums[np.clip(edges - self.values[0], 0, len(self.values))])
