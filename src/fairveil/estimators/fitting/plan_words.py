"""Numbers of a plan in words: percentage points, noise, and figures that are rounded up."""

from __future__ import annotations

import math

from ...learning.forecasting.foretold import Line


def points(value: float) -> str:
    """A fraction in percentage points.

    >>> points(0.0531), points(0.00021), points(float("inf"))
    ('5.3', '0.02', 'inf')
    """
    if math.isinf(value):
        return "inf"
    return f"{100 * value:.2f}" if 0 < value < 0.001 else f"{100 * value:.1f}"


def from_points(bound: float) -> str:
    return (
        f"bounds of {points(bound)} points or more" if bound < 1.0 else "no bound below 100 points"
    )


def noise_in_words(line: Line) -> str:
    if math.isinf(line.noise):
        return f"{line.name}: too few rows to be told from none"
    return f"±{points(line.noise)} points (one standard deviation): {line.name}"


def up(value: float) -> str:
    """Two digits, rounded up: what is shown is enough."""
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / step - 1e-9) * step:.4g}"


def rows_up(rows: int) -> int:
    step = int(max(1, 10 ** (len(str(rows)) - 2)))
    return -(-rows // step) * step


def plain(value: float) -> float | str:
    return str(value) if math.isinf(value) else value
