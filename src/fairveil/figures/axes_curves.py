"""Frontiers and curves on axes of matplotlib."""

from __future__ import annotations

from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Any

from .. import _checks
from .axes import legend, looks, measured, quiet, required
from .contents import FrontierFigure, Series
from .curves import CurvesFigure, styles_of
from .styles import QUIET, styles
from .words import frontier_title, legend_words

if TYPE_CHECKING:
    from .axes import Axes


def draw_frontier(figure: FrontierFigure, axes: Axes) -> list[Any]:
    """Every curve on one pair of axes, with the intervals of its points; the artists, a container a
    curve."""
    found = replace(figure, layout="together")
    style = styles(found.series, lambda one: one)
    drawn = [_series(axes, one, looks(style[one])) for one in found.series]
    if found.floor is not None:
        errors, gaps = zip(*found.floor.points, strict=True)
        label = fill(found.floor.label[:1].upper() + found.floor.label[1:], 40)
        axes.plot(gaps, errors, color=QUIET, linewidth=1.2, linestyle=":", label=label)
    measured(axes.xaxis, found.gap)
    measured(axes.yaxis, found.error)
    quiet(axes)
    axes.set_xlim(left=0.0)
    axes.set_title(frontier_title(found), loc="left", fontsize="medium")
    legend(axes, "upper right")
    return drawn


def _series(axes: Axes, series: Series, look: dict[str, Any]) -> Any:
    points = sorted(series.points, key=lambda point: (point.gap, point.error))

    def bars(name: str) -> list[list[float]]:
        ends = [
            tuple(_checks.named(one, (name, f"{name}_low", f"{name}_high")).values())
            for one in points
        ]
        below = [0.0 if low is None else max(0.0, value - low) for value, low, _ in ends]
        above = [0.0 if high is None else max(0.0, high - value) for value, _, high in ends]
        return [below, above]

    across, up = [one.gap for one in points], [one.error for one in points]
    words = legend_words(series, split=False)
    return axes.errorbar(
        across, up, yerr=bars("error"), xerr=bars("gap"), elinewidth=0.8, label=words, **look
    )


def draw_curves(figure: CurvesFigure, axes: Axes) -> list[Any]:
    """Curves with their intervals, and the rules that they are compared with; the artists, a line a
    curve."""
    drawn = []
    for curve, style in zip(figure.curves, styles_of(figure), strict=True):
        across, up = zip(*curve.points, strict=True)
        look = looks(style) | ({} if curve.joined else {"linestyle": "none"})
        drawn += axes.plot(across, up, label=curve.label, **look)
        if curve.low:
            axes.fill_between(
                across, curve.low, curve.high, color=style.colour, alpha=0.13, linewidth=0
            )
    for rule in figure.rules:
        if rule.across:
            axes.axvline(rule.at, color=QUIET, linewidth=0.9, linestyle=":", label=rule.label)
        else:
            required(axes, rule.at, rule.label)
    for axis, logarithmic, measure in (
        (axes.xaxis, figure.log_across, figure.across),
        (axes.yaxis, figure.log_up, figure.up),
    ):
        if logarithmic:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
            axis.set_minor_formatter("")
        measured(axis, measure)
    quiet(axes)
    axes.set_title(figure.title, loc="left", fontsize="medium")
    legend(axes)
    return drawn
