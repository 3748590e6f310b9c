"""How far inside a bound a fit has to aim, so that a certificate of that bound will be granted:
from public facts alone.

If a fit aims at the bound minus M on its own rows, then the released value of the rows set aside is
about normal around that, with the sampling of both parts, and the certificate's bound lies w above
it. It is granted with probability `chance` where

    M = w + z(chance) x sd,     w = max over the corners of sum |c| z(1 - a) sd(rate),     sd^2 = sum c^2 (sd(rate)^2 + sd'^2),

sd' being that of the rate among the rows of the fit, at the people, groups and labels that are
supposed, and at rates of one half (of K classes: 1 / K), where rates vary most. The margin decides
how often a certificate is granted. It decides nothing about whether one that is granted is true.

Guarantees (tests/learning/test_learning_certificate_margin.py):
1. It reads public facts alone: notions, groups, classes, supposed shares, the noise.
2. At the supposed rates a population that lies the margin inside is certified with about the
   chance, or more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from ..._types import Floats
from ..counts.noise import CountNoise
from .certificate import Evidence, deviation
from .parts import Layout


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
    cells, labels, classes = layout.part_of.shape
    share = np.broadcast_to(supposed.shares[:, :, np.newaxis] / classes, (cells, labels, classes))
    counts = np.rint(
        supposed.people * np.bincount(layout.part_of.ravel(), share.ravel(), layout.parts)
    )
    found = Evidence(layout.rates, counts, noise, confidence)
    spread = [deviation(one, noise, 1.0) for one in found.counted]
    times = supposed.fitted
    of_fit = [0.0 if times is None else deviation(one, noise, times) for one in found.counted]
    out = []
    for at in range(notions):
        needed = 0.0
        for line in (one for one in layout.lines if one.notion == at):
            away = max(
                sum(
                    abs(c) * -float(special.ndtri(a)) * spread[rate]
                    for (c, rate), a in zip(line.terms, step, strict=True)
                )
                for step in found.steps(line)
            )
            # Sampling of both parts: of the rows set aside, and of those that the model was fitted
            # to.
            whole = math.sqrt(
                sum(c**2 * (spread[rate] ** 2 + of_fit[rate] ** 2) for c, rate in line.terms)
            )
            needed = max(needed, away + float(special.ndtri(chance)) * whole)
        out.append(needed)
    return tuple(out)


def even(
    cells: int,
    labels: int,
    of_cells: Sequence[float] | None = None,
    of_labels: Sequence[float] | None = None,
) -> Floats:
    """Shares (cells, labels): those that are stated, else all alike."""
    one = np.full(cells, 1.0 / cells) if of_cells is None else np.asarray(of_cells, np.float64)
    other = (
        np.full(labels, 1.0 / labels) if of_labels is None else np.asarray(of_labels, np.float64)
    )
    return np.asarray(np.outer(one, other))
