"""What was required, constraint by constraint, beside what was released of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .. import _checks
from .._verdicts import deviations
from .checked import finite_if_given, line, several
from .contents import Measure
from .scales import number, with_unit
from .words import percent

VALUE = Measure("constrained value", "points")


@dataclass(frozen=True)
class Bounded:
    """One constraint: its released `value` (NaN: undefined), the standard deviation of its `noise`
    and of its `sampling` error (NaN: not known), its `bound` (None: none was required) and the
    verdict in words."""

    label: str
    value: float
    noise: float
    sampling: float = math.nan
    bound: float | None = None
    verdict: str = ""

    def __post_init__(self) -> None:
        line(label=self.label)
        line(empty=True, verdict=self.verdict)
        finite_if_given(self, "bound")

    def ends(self, confidence: float, *, sampled: bool = False) -> tuple[float, float] | None:
        """The interval over the noise, `sampled`: over noise and sampling error; None where that is
        not known."""
        spread = math.hypot(self.noise, self.sampling) if sampled else self.noise
        if not math.isfinite(self.value) or not math.isfinite(spread):
            return None
        reach = deviations(0.5 + confidence / 2) * spread
        return self.value - reach, self.value + reach


@dataclass(frozen=True)
class ConstraintsFigure:
    """Every constraint in a row, with its bound and both of its intervals."""

    title: str
    lines: tuple[Bounded, ...]
    measure: Measure = VALUE
    confidence: float = 0.95

    def __post_init__(self) -> None:
        line(title=self.title)
        _checks.normalise(self, lines=several(Bounded, "lines", self.lines))
        _checks.normalise(
            self,
            confidence=_checks.fraction(confidence=self.confidence, low_open=True, high_open=True),
        )

    @property
    def description(self) -> str:
        """The figure in words."""
        return f"{self.title}. " + " ".join(map(self._words, self.lines))

    def _words(self, one: Bounded) -> str:
        unit = self.measure.unit
        if math.isnan(one.value):
            return f"{one.label}: undefined."
        said = [f"{one.label}: {with_unit(one.value, unit)}"]
        ends = one.ends(self.confidence)
        if ends is not None:
            low, high = number(ends[0], unit), with_unit(ends[1], unit)
            said.append(f"{percent(self.confidence)} interval over the noise {low} to {high}")
        if one.bound is not None:
            said.append(f"required: at most {with_unit(one.bound, unit)}")
        return ", ".join([*said, *([one.verdict] if one.verdict else [])]) + "."
