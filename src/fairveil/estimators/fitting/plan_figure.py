"""The picture of a plan: the noise of each group's comparisons against epsilon, and the bound that
is required."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...core.promise import Promise
from ...errors import InputError
from ...learning.forecasting.forecast import groups_of
from ...learning.forecasting.foretold import DEVIATIONS, Forecast
from ...learning.forecasting.supposed import Supposed
from ...show.charts import Axis, Curve, Curves, Rule
from ...tables import keys

PLACES = 9
MOST = 6
WIDEST = 40  # letters of a label


def chart(
    forecast: Forecast, supposed: Supposed, promise: Promise, again: Callable[..., Forecast]
) -> Curves:
    """What the picture shows, priced anew at every epsilon."""
    if not promise.is_private or not any(line.noise for line in forecast.lines):
        remedy = "There is nothing to draw: print the plan."
        raise InputError.expected(
            "a plan with noise", of="chart", got=forecast.why or "none", remedy=remedy
        )
    low, high = min(0.1, promise.epsilon / 3.0), max(10.0, promise.epsilon * 3.0)
    epsilons = sorted({*np.geomspace(low, high, PLACES).tolist(), promise.epsilon})
    found = [again(supposed, epsilon).by_group() for epsilon in epsilons]
    curves = _curves(forecast, supposed, epsilons, found)
    bounds = sorted({line.bound for line in forecast.lines if line.bound})
    rules = [Rule(f"required: {100 * bound:.3g} points", bound) for bound in bounds]
    rules.append(Rule(f"epsilon {promise.epsilon:.3g}", promise.epsilon, across=True))
    notes = [
        "Below the dashed line a group's comparison can be enforced: two deviations of its noise "
        "are within the bound."
    ]
    if len(curves) < len(set(forecast.by_group().values())):
        notes.append(
            f"{len(curves)} of {len(groups_of(forecast))} groups are drawn, from the least noise "
            f"to the most."
        )
    if supposed.guessed:
        notes.append(
            f"Nobody stated the shares of {', '.join(supposed.guessed)}: they are supposed to be "
            f"equal."
        )
    return Curves(
        title="Smallest bound that can be enforced, by epsilon",
        across=Axis("epsilon", log=True),
        up=Axis("two standard deviations of the noise", "points", log=True),
        curves=tuple(curves),
        notes=tuple(notes),
        rules=tuple(rules),
    )


def _curves(
    forecast: Forecast, supposed: Supposed, epsilons: list[float], found: list[dict[int, float]]
) -> list[Curve]:
    """One a group; groups whose noise is the same at every epsilon share a line."""
    shares, names = supposed.shares(forecast.cells), groups_of(forecast)
    lines: dict[tuple[float, ...], list[int]] = {}
    for cell in found[0]:
        lines.setdefault(tuple(round(one[cell], 12) for one in found), []).append(cell)
    drawn = [line for line in lines if any(map(_shows, line))]
    ranked = sorted(drawn, key=lambda line: [size for size in line if _shows(size)])
    picked = (
        ranked
        if len(ranked) <= MOST
        else [ranked[at] for at in np.linspace(0, len(ranked) - 1, MOST).round().astype(int)]
    )
    curves = []
    for line in reversed(picked):
        cells = lines[line]
        told = (
            [f"{keys.shown(names[cell])} ({shares[cell]:.1%})" for cell in cells]
            if forecast.cells
            else ["everyone"]
        )
        label = ", ".join(told)
        if len(label) > WIDEST and len(told) > 1:
            label = f"{told[0]} and {len(told) - 1} more"
        points = tuple(
            (x, DEVIATIONS * size) for x, size in zip(epsilons, line, strict=True) if _shows(size)
        )
        curves.append(Curve(label if label.isprintable() else ascii(label), points))
    return curves


def _shows(size: float) -> bool:
    return 0.0 < size < math.inf
