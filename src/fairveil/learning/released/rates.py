"""Rates of public decisions by group, from group counts of public clusters: estimates, and how far
off they may be.

With q_i in [0, 1] what a row adds to a rate, q_c its mean in cluster c, m_c the event's members
there (released counts: m~_c),

    rate = sum_i A_i q_i / sum_c m_c  =  sum_c m_c q_c / sum_c m_c  +  sum_c cov_c / sum_c m_c,

where cov_c adds up what members of cluster c differ in from its mean. The first term is estimated
by putting m~ for m. Three numbers say how far off it may be, each under its own assumption
(docs/release_once.md):

- noise: `low` to `high` holds the first term, for all rates together, with the stated probability
  over the noise. It is the set of r with |sum_c m~_c (q_c - r)| <= t(r), t(r) the tail of sum_c Z_c
  (q_c - r): Chernoff's bound for the exact distribution of Z.
- `within`: the standard deviation of the second term if a cluster's members were drawn from it at
  random.
- `lowest` to `highest`: whatever the members are, with the stated probability over the noise.

Recorded groups may be true ones by chance (`reports`): m~ are then estimates, and all bounds cover
that chance, too.

Guarantees (tests/learning/test_learning_soft_rates.py):
1. Estimated numerators and denominators are unbiased, and [low, high] holds the first term as often
   as it says.
2. Without noise [lowest, highest] holds the true rate of every assignment with these counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._types import Floats
from ...fairness import ConstraintSystem
from .group_counts import GroupCounts, Parts

GRID = 41  # rates that are tried; the ends are then found by halving
TILTS = 24
HALVINGS = 50
HALVED = 8


@dataclass(frozen=True)
class SoftRate:
    """One rate: the estimate, the interval over the noise, the deviation by chance within clusters,
    and the widest bounds."""

    value: float
    low: float
    high: float
    within: float
    lowest: float
    highest: float


@dataclass(frozen=True)
class SoftValue:
    """A constraint's value, made of rates: see `SoftRate`."""

    name: str
    bound: float
    value: float
    low: float
    high: float
    within: float
    lowest: float
    highest: float


def values(
    counts: GroupCounts, codes: npt.NDArray[np.intp], labels: npt.NDArray[np.intp], law: Floats, system: ConstraintSystem,
    probability: float,
) -> list[SoftValue]:  # fmt: skip
    """Every constraint's value of decisions with these probabilities (rows, classes). `codes`: the
    cluster of each row; `labels` (clusters,): its label; `probability`: of an interval that fails,
    for all rates together."""
    asked = [_parts(system, j, labels) for j in range(system.numerators.shape[0])]
    # All rates hold together by the union bound.
    each = probability / max(1, len(asked))
    found = [rate_of(counts, codes, law, cells, outcome, each) for cells, outcome in asked]
    out = []
    coefficients = system.coefficients.toarray()
    for name, bound, line in zip(system.names, system.bounds.tolist(), coefficients, strict=True):
        kept = [(float(c), found[j]) for j, c in enumerate(line) if c]
        out.append(
            SoftValue(
                name,
                bound,
                sum(c * rate.value for c, rate in kept),
                sum(c * (rate.low if c > 0 else rate.high) for c, rate in kept),
                sum(c * (rate.high if c > 0 else rate.low) for c, rate in kept),
                sum(abs(c) * rate.within for c, rate in kept),
                sum(c * (rate.lowest if c > 0 else rate.highest) for c, rate in kept),
                sum(c * (rate.highest if c > 0 else rate.lowest) for c, rate in kept),
            )
        )
    return out


def _parts(
    system: ConstraintSystem, rate: int, labels: npt.NDArray[np.intp]
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which cells of each cluster are in the rate's event, (cells, clusters), and which decisions
    it counts there, (clusters, classes)."""
    cells, classes, decisions = system.shape
    members = system.members[[int(system.event_of[rate])]].toarray().reshape(cells, classes) > 0
    counted = system.numerators[[rate]].toarray().reshape(cells, classes, decisions).max(axis=0)
    return members[:, labels], counted[labels]


def rate_of(
    counts: GroupCounts,
    codes: npt.NDArray[np.intp],
    law: Floats,
    cells: npt.NDArray[np.bool_],
    outcome: Floats,
    probability: float,
) -> SoftRate:
    """One rate: of members `cells` (cells, clusters), counting decisions `outcome` (clusters,
    classes)."""
    q = np.clip((law * outcome[codes]).sum(axis=1), 0.0, 1.0)
    sizes = counts.sizes
    mean = np.bincount(codes, weights=q, minlength=len(sizes)) / np.maximum(sizes, 1.0)
    parts = counts.parts(cells)
    m = parts.members
    total = float(m.sum())
    if total <= 0:
        return SoftRate(math.nan, 0.0, 1.0, math.nan, 0.0, 1.0)
    value = float(m @ mean) / total
    low, high = _interval(counts, parts, mean, value, probability)
    squares = np.bincount(codes, weights=(q - mean[codes]) ** 2, minlength=len(sizes))
    likely = np.clip(m, 0.0, sizes)
    chance = (
        # The variance of a sample without replacement: which of a cluster's rows are members is
        # what nobody released.
        likely * (sizes - likely) / np.maximum(sizes - 1.0, 1.0) * squares / np.maximum(sizes, 1.0)
    )
    within = math.sqrt(float(chance.sum())) / total
    width = _widths(counts, parts, probability)
    least, most = np.clip(m - width, 0.0, sizes), np.clip(m + width, 0.0, sizes)
    highest = _extreme(q, codes, least, most)
    return SoftRate(value, low, high, within, 1.0 - _extreme(1.0 - q, codes, least, most), highest)


def _widths(counts: GroupCounts, parts: Parts, probability: float) -> Floats:
    """By how much the members of each cluster may be off: all clusters together with this
    probability at most."""
    by_chance = bool(parts.spread.any())
    each = probability / 2.0 if by_chance else probability
    noisy = int((parts.noises != 0).sum())
    width = np.abs(parts.noises).sum(axis=0) * (counts.noise.tail(each / noisy) if noisy else 0.0)
    # Flips of groups are independent coins, bounded a row at a time.
    if by_chance:  # Hoeffding, a cluster after another
        width = width + parts.spread * np.sqrt(
            counts.sizes / 2.0 * math.log(2.0 * len(counts.sizes) / each)
        )
    return np.asarray(width)


def _interval(
    counts: GroupCounts, parts: Parts, mean: Floats, value: float, probability: float
) -> tuple[float, float]:
    """The outermost rates that noise of this distribution, and flips, can explain: on a grid, and
    between its points by halving."""
    m, noise = parts.members, counts.noise
    if (noise.kind == "none" or not parts.noises.any()) and not parts.spread.any():
        return value, value
    noises = parts.noises if noise.kind != "none" else parts.noises[:0]
    by_chance = counts.sizes * parts.spread**2 / 8.0

    def fits(rates: Floats) -> npt.NDArray[np.bool_]:
        weights = mean[np.newaxis] - rates[:, np.newaxis]
        return np.asarray(
            np.abs(weights @ m) <= _tail(weights, noises, by_chance, noise.scale, probability)
        )

    rates = np.linspace(0.0, 1.0, GRID)
    found = np.flatnonzero(fits(rates))
    inside = min(1.0, max(0.0, value))
    first, last = (int(found[0]), int(found[-1])) if len(found) else (GRID, -1)
    ends = np.array(
        [
            min(inside, rates[first]) if len(found) else inside,
            max(inside, rates[last]) if len(found) else inside,
        ]
    )
    outer = np.array(
        [
            rates[max(0, np.searchsorted(rates, ends[0]) - 1)],
            rates[min(GRID - 1, np.searchsorted(rates, ends[1], "right"))],
        ]
    )
    for _ in range(HALVED):
        middle = (ends + outer) / 2.0
        good = fits(middle)
        ends, outer = np.where(good, middle, ends), np.where(good, outer, middle)
    return float(outer[0]), float(outer[1])


def _tail(
    weights: Floats, noises: Floats, by_chance: Floats, scale: float, probability: float
) -> Floats:
    """For each line w: t with P(|sum_c w_c (sum_j d_jc Z_jc + F_c)| > t) <= probability: Z
    independent discrete Laplace, d `noises`, and F_c a sum of the chance of rows, each between
    bounds; `by_chance`: their squared spreads / 8, added.

    Chernoff:  t = min over s of (sum_jc log E exp(s w_c d_jc Z) + s^2 sum_c w_c^2 by_chance_c + log
    2 / probability) / s, E exp(u Z) = (1 - r)^2 / ((1 - r e^u) (1 - r e^-u)),  r = exp(-1 / scale).
     Without noise the best s is known.
    """
    squares, log = (weights**2) @ by_chance, math.log(2.0 / probability)
    if not noises.any():
        # The minimum of s x squares + log / s.
        return np.asarray(2.0 * np.sqrt(squares * log))
    r = math.exp(-1.0 / scale)
    largest = np.maximum(np.abs(weights[:, np.newaxis, :] * noises).max(axis=(1, 2)), 1e-12)
    best = np.full(len(weights), np.inf)
    for part in np.linspace(0.0, 1.0, TILTS + 2)[1:-1] ** 2:
        s = part / scale / largest
        logs = s**2 * squares
        for line in noises:
            u = s[:, np.newaxis] * weights * line
            logs = logs + (
                2.0 * math.log1p(-r) - np.log1p(-r * np.exp(u)) - np.log1p(-r * np.exp(-u))
            ).sum(axis=1)
        best = np.minimum(best, (logs + log) / s)
    return best


def _extreme(q: Floats, codes: npt.NDArray[np.intp], least: Floats, most: Floats) -> float:
    """The largest mean of q over members, of whom each cluster has between `least` and `most`
    (Dinkelbach, by halving)."""
    order = np.lexsort((-q, codes))
    ordered, clusters = q[order], codes[order]
    starts = np.searchsorted(clusters, np.arange(len(least)))
    rank = np.arange(len(q)) - starts[clusters]
    # how much of a row must be taken, best rows first
    sure = np.clip(least[clusters] - rank, 0.0, 1.0)
    free = np.clip(most[clusters] - rank, 0.0, 1.0)
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        r = (low + high) / 2.0
        gain = ordered - r
        # At a guess r of the mean: rows above it as far as they may be taken, those below as far as
        # they must.
        taken = np.where(gain > 0, free, sure)
        low, high = (r, high) if float(taken @ gain) >= 0 else (low, r)
    return high
