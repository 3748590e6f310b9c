"""What an additive model says of each number: its term of the score, as a curve with the noise of
its steps.

    term(x) = w x + f(x),    shifted so that its mean over the declared range (or between the outermost edges) is 0

Where the bounds of a number are not known, x is where it lies along its edges.

Guarantees (tests/estimators/test_curves.py):
1. Terms of all columns and one constant add up to the score.
2. Noise moves a step by no more than `noise` in standard deviation, to first order
   (`learning.plans.Plan.weight_noise`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..._types import Floats
from ...errors import InputError
from ...show.charts import Axis, Curve, Curves
from ...show.parts import Part, Shown
from ..reading.additive import ANYWHERE
from ..reading.coding import Coding, SchemaCoding
from ..reading.shapes import Side

DEVIATIONS = 2.0


@dataclass(frozen=True, eq=False)
class Term(Shown):
    """One number's part of a linear score. `ends`: of the intervals, low to high; `left`, `right`:
    the term at both ends of each interval; `noise`: the standard deviation of a step, at most;
    None: not known."""

    name: str
    ends: Floats
    left: Floats
    right: Floats
    noise: float | None

    def parts(self) -> Iterator[Part]:
        """The picture."""
        yield self.chart()

    def chart(self) -> Curves:
        """The term against the number, and two deviations of the noise of its steps."""
        gap = 1e-9 * float(self.ends[-1] - self.ends[0])
        across = np.column_stack([self.ends[:-1] + gap, self.ends[1:] - gap]).ravel()
        up = np.column_stack([self.left, self.right]).ravel()
        band = DEVIATIONS * (self.noise or 0.0)
        points = tuple(zip(across.tolist(), up.tolist(), strict=True))
        low, high = (tuple((up + sign * band).tolist()) if band else () for sign in (-1.0, 1.0))
        notes: tuple[str, ...] = ("Above 0 it moves decisions towards the second class.",)
        if band:
            notes += (f"Noise of privacy moves a step by {band:.2g} or less, in 95 of 100 fits.",)
        elif self.noise is None:
            notes += ("How much of it is noise is not known.",)
        name = self.name if self.name.isprintable() else ascii(self.name)
        return Curves(
            title=f"Term of {name} in the score",
            across=Axis(name),
            up=Axis("added to the log-odds"),
            curves=(Curve(name, points, low, high),),
            notes=notes,
        )


def terms_of(coding: Coding, weights: Floats, noise: float | None) -> tuple[Term, ...]:
    """Of each number that has steps; `weights` of one score, in the units of the table, as `coef_`
    has them."""
    if coding.shapes is None:
        remedy = 'Fit with model="additive", and a table whose numbers get steps.'
        raise InputError.expected(
            "an additive model", of="terms", got="a linear one", remedy=remedy
        )
    at = coding.own_layout.width
    found = []
    for side in coding.shapes.steps:
        found.append(
            _term(coding, side, float(weights[side.place]), weights[at : at + side.size], noise)
        )
        at += side.size
    return tuple(found)


def _term(coding: Coding, side: Side, slope: float, steps: Floats, noise: float | None) -> Term:
    low, high = _range(coding, side)
    ends = np.array([low, *side.marks, high])
    line = slope * (side.placed(ends) if side.along else ends)
    left, right = line[:-1] + steps, line[1:] + steps
    widths = np.diff(ends)
    middle = float(((left + right) / 2.0 * widths).sum() / widths.sum())
    return Term(side.name, ends, left - middle, right - middle, noise)


def _range(coding: Coding, side: Side) -> tuple[float, float]:
    """The declared bounds; without a schema, a little more than the edges."""
    if isinstance(coding, SchemaCoding):
        scale = coding.encoding.numbers[side.place]
        return scale.center - scale.half, scale.center + scale.half
    return 2.0 * ANYWHERE[0], 2.0 * ANYWHERE[-1]
