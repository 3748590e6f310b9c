"""What theory says of one fit, as parts: a sentence, its bounds, and what they are conditional on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from .numbers import AFTER, bound, percent, with_unit
from .parts import Column, Fact, Facts, Note, Part, Table

TRAINING_ROWS = (
    "It speaks of the training rows, not of other people: for those see what was certified, or "
    "measured on held-out people."
)
NO_BOUND = "no bound could be given"


class Bound(NamedTuple):
    """What a value is at most (infinite or NaN: not known, for the reason `missing`), and the value
    that was released, if any."""

    name: str
    at_most: float
    released: float = math.nan
    unit: str = "points"
    missing: str = NO_BOUND


def bounds(
    confidence: float, what: str, lines: tuple[Bound, ...], *conditions: str
) -> Iterator[Part]:
    """The parts; bounds are rounded up: words must not promise more than the number does.

    >>> facts, *_ = bounds(0.9, "the gap is small", (Bound("gap", 0.0701),))
    >>> print(facts.facts[0].words)
    With probability 90% over the noise of the fit, the gap is small.
    """
    sentence = f"With probability {percent(confidence)} over the noise of the fit, {what}."
    yield Facts((Fact("certain", sentence),))
    told = []
    for name, most, released, unit, missing in lines:
        known = f"not known: {missing}"
        if math.isfinite(most):
            known = f"{bound(most, unit)}{AFTER.get(unit, '')}"
        told.append((name, known, "-" if math.isnan(released) else with_unit(released, unit)))
    columns = zip(("what", "at most", "released"), zip(*told, strict=True), strict=True)
    yield Table(tuple(Column(*one) for one in columns), "Bounds that hold all at once")
    yield from map(Note, (TRAINING_ROWS, *conditions))


def points(value: float) -> str:
    """
    >>> points(0.0701)
    '7.1 points'
    """
    return f"{bound(value, 'points')} points"
