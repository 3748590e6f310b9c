"""How many of a model's decisions to replace by blind ones, so that what was refused is certified:
post-processing of a count.

A share s of all decisions is made by chance alone, with the same probabilities for everybody. Every
rate is then (1 - s) rate + s r, where r, the rate of the blind decisions, is a known number. A
constraint sum c x rate <= b whose bound at the count is U, and whose blind sum is L <= b, holds
wherever s is at least (U - b) / (U - L). The largest of these shares is taken.

One constraint needs most in the population, whatever the count. The share is too small only where
the bound on that one is below its sum. So all constraints hold with the confidence of one bound
(docs/theory/certificates.md#replaced-decisions). Which blind decisions these are must not depend on
the count: `blind` reads public facts, and shares of labels that the fit released.

Guarantees (tests/learning/test_learning_certificate_replacing.py):
1. If a constraint is broken by the mixture in the population, a bound has failed: probability at
   most 1 - confidence.
2. The mixture is certified by the same count; no smaller share (in thousandths) is.
3. Where no blind decision keeps all bounds, nothing is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ..counts.noise import CountNoise
from .certificate import Blind, Evidence
from .parts import Layout, Line

SAME = 1e-12
STEP = 1000
"""Shares are whole thousandths, upwards."""


@dataclass(frozen=True)
class Replaced:
    """The `share` of decisions that are made blindly, and the probability of each class in them."""

    share: float
    by: tuple[float, ...]

    def within(self, layout: Layout) -> Blind | None:
        """The same over rates; None where one of these is no known number."""
        rates = rates_of(layout, self.by)
        known = tuple(rate for rate in rates if rate is not None)
        return Blind(self.share, known) if len(known) == len(rates) else None

    def in_words(self, classes: Sequence[Hashable]) -> str:
        """The final model.

        >>> Replaced(0.073, (1.0, 0.0)).in_words(("no", "yes"))
        "7.3 % of the model's decisions are replaced, whoever it is, by 'no'"
        """
        sure = [k for k, p in enumerate(self.by) if p == 1.0]
        instead = (
            f"{classes[sure[0]]!r}"
            if sure
            else f"a class drawn at random, each of {len(self.by)} as often"
        )
        return (
            f"{100 * self.share:.3g} % of the model's decisions are replaced, whoever it is, by "
            f"{instead}"
        )


def rates_of(layout: Layout, by: Sequence[float]) -> tuple[float | None, ...]:
    """Each rate of blind decisions; None where it depends on how many people have which label."""
    out: list[float | None] = []
    for rate in layout.rates:
        hits = np.isin(layout.part_of, rate.hits)
        event = np.isin(layout.part_of, (*rate.hits, *rate.rest)).any(axis=2)
        found = (hits @ np.asarray(by, np.float64))[event]
        out.append(float(found[0]) if found.size and float(np.ptp(found)) <= SAME else None)
    return tuple(out)


def sums_of(layout: Layout, by: Sequence[float]) -> tuple[float, ...]:
    """Each constraint's sum of blind decisions; NaN where it is no known number."""
    rates = [math.nan if rate is None else rate for rate in rates_of(layout, by)]
    return tuple(sum(c * rates[at] for c, at in line.terms) for line in layout.lines)


def blind(layout: Layout, labels: Sequence[float] | None = None) -> tuple[float, ...] | None:
    """The blind decisions that keep all bounds and cost the least error if anything whatever had to
    be certified: one class, or all alike. `labels`: the shares of the labels, as far as they are
    known. None: none keeps them."""
    classes = layout.part_of.shape[2]
    options = [np.full(classes, 1.0 / classes), *np.eye(classes)]
    right = np.full(classes, 1.0 / classes) if labels is None else np.asarray(labels, np.float64)
    best, least = None, math.inf
    for by in options:
        sums = zip(layout.lines, sums_of(layout, by), strict=True)
        share = max((_share(_largest(line), line, own) for line, own in sums), default=0.0)
        cost = share * (1.0 - float(by @ right))
        # Ties go to the first option: the choice must not hang on a last digit.
        if cost < least - SAME:
            best, least = by, cost
    return None if best is None else tuple(map(float, best))


def least(
    layout: Layout, counts: Floats, noise: CountNoise, confidence: float, by: Sequence[float]
) -> Replaced | None:
    """The smallest share with which all is certified; None where no share does."""
    found = Evidence(layout.rates, counts, noise, confidence)
    lines = list(zip(layout.lines, sums_of(layout, by), strict=True))
    crude = sorted(
        ((_share(found.crude(line), line, own), at) for at, (line, own) in enumerate(lines)),
        reverse=True,
    )
    needed = 0.0
    for most, at in crude:
        # Sorted: what the quick bounds still ask for is less than what is needed already.
        if most <= needed:
            break
        line, own = lines[at]
        needed = max(needed, _share(found.at_most(line), line, own))
    if math.isinf(needed):
        return None
    return Replaced(
        min(1.0, math.ceil(STEP * needed + 1e-6) / STEP) if needed else 0.0, tuple(map(float, by))
    )


def _share(most: float, line: Line, own: float) -> float:
    """What a constraint needs whose sum is at most `most`, and of blind decisions `own`."""
    if most <= line.bound:
        return 0.0
    return (most - line.bound) / (most - own) if own <= line.bound else math.inf


def _largest(line: Line) -> float:
    """What its sum could be at most."""
    return sum(max(c, 0.0) for c, _ in line.terms)
