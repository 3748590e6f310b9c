"""From numbers to places on the page: round ticks, and the text of a number."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .contents import Measure, Unit

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
FACTOR: dict[Unit, float] = {"percent": 100.0, "points": 100.0, "plain": 1.0}
AFTER: dict[Unit, str] = {"percent": "%", "points": " points", "plain": ""}
ON_AXIS: dict[Unit, str] = {"percent": "per cent", "points": "percentage points", "plain": ""}
MARGIN = 0.05  # of the width, beyond the values
SPACE = 1e-9  # of a step: what rounding may add to an end


@dataclass(frozen=True)
class AxisScale:
    """A straight axis: values from `low` to `high` lie from `start` to `end` (pixels; `end` may be
    the smaller).

    >>> scale = AxisScale.over([0.03, 0.2], 0, 105, zero=True)
    >>> scale.ticks, round(scale(0.1), 6)
    ((0.0, 0.05, 0.1, 0.15, 0.2), 50.0)
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def over(
        cls, values: list[float], start: float, end: float, *, zero: bool = False, most: int = 6
    ) -> AxisScale:
        """An axis that holds all the values with a margin; `zero`: it begins there."""
        low, high = min(values), max(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
            width = abs(high) / 10 or 1.0
            low, high = (low if zero else low - width), high + width
        margin = MARGIN * (high - low)
        low, high = (low if zero and low == 0.0 else low - margin), high + margin
        return cls(low, high, start, end, round_ticks(low, high, most))

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def moved(self, start: float, end: float) -> AxisScale:
        """The same axis elsewhere."""
        return AxisScale(self.low, self.high, start, end, self.ticks)


def round_ticks(low: float, high: float, most: int = 6) -> tuple[float, ...]:
    """At most `most` round numbers from `low` to `high`, evenly apart: as many as there can be.

    >>> round_ticks(0.1464, 0.2304)
    (0.16, 0.18, 0.2, 0.22)
    """
    power = math.floor(math.log10(high - low)) - 1
    while True:
        for factor in STEPS:
            step = factor * 10.0**power
            first, last = math.ceil(low / step - SPACE), math.floor(high / step + SPACE)
            if last - first + 1 <= max(most, 3):
                # Rounded to the step's own digits: 3 x 0.1 shall be 0.3.
                return tuple(
                    round(number * step, max(0, 2 - power)) + 0.0
                    for number in range(first, last + 1)
                )
        power += 1


def tick_texts(ticks: tuple[float, ...], unit: Unit) -> tuple[str, ...]:
    """Each tick with as many decimals as tell them apart.

    >>> tick_texts((0.0, 0.025, 0.05), "points")
    ('0.0', '2.5', '5.0')
    """
    shown = [tick * FACTOR[unit] for tick in ticks]
    near = 1e-4 * ((shown[-1] - shown[0]) / max(len(shown) - 1, 1) or abs(shown[0]) or 1.0)
    for decimals in range(12):
        if all(abs(value - round(value, decimals)) <= near for value in shown):
            return tuple(minus(f"{value:.{decimals}f}") for value in shown)
    return tuple(minus(f"{value:g}") for value in shown)


def number(value: float, unit: Unit) -> str:
    """A value as figures and tables show it, without its unit: a tenth of a point where it counts
    in hundredths.

    >>> number(0.16304, "percent"), number(3.14159, "plain")
    ('16.3', '3.14')
    """
    text = f"{value:.3g}" if unit == "plain" else f"{value * FACTOR[unit]:.1f}"
    return minus("0.0" if text == "-0.0" else text)


def with_unit(value: float, unit: Unit) -> str:
    """`number` and its unit.

    >>> with_unit(0.16304, "percent"), with_unit(0.051, "points")
    ('16.3%', '5.1 points')
    """
    return number(value, unit) + AFTER[unit]


def axis_title(measure: Measure) -> str:
    """The name with its unit, with a capital letter.

    >>> axis_title(Measure("gap", "points"))
    'Gap (percentage points)'
    """
    unit = ON_AXIS[measure.unit]
    name = measure.name[:1].upper() + measure.name[1:]
    return f"{name} ({unit})" if unit else name


def minus(text: str) -> str:
    """With the sign that is as wide as a digit."""
    return text.replace("-", "−")
