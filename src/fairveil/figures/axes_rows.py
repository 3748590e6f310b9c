"""Numbers in rows on axes of matplotlib: rates by group, constraints, a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .axes import TO_POINTS, in_rows, legend, looks, measured, quiet, required
from .budget import SHADES, SHARE, BudgetFigure, CourseFigure, left_text, spent_text
from .constraints import Bounded, ConstraintsFigure
from .contents import Measure, Rate, RatesFigure
from .styles import AXIS, INK, OWN_COLOURS, QUIET, Style

if TYPE_CHECKING:
    from .axes import Axes

MOST_NAMED = 12  # releases of a budget


def draw_rates(figure: RatesFigure, axes: Axes) -> list[Any]:
    """One rate: a row a group with its interval, hollow where the group is small."""
    drawn = draw_rows(figure.rates, Measure(figure.name), axes)
    axes.set_xlim(left=0.0)
    return drawn


def draw_rows(rates: Sequence[Rate], measure: Measure, axes: Axes) -> list[Any]:
    """A row a group with its interval; a row without a value says so."""
    drawn = []
    for at, rate in enumerate(rates):
        if rate.value is None:
            _undefined(axes, at)
            continue
        look = looks(Style("circle", not rate.small, "", OWN_COLOURS[0], 2.0))
        if rate.low is not None and rate.high is not None:
            axes.hlines(at, rate.low, rate.high, color=OWN_COLOURS[0], linewidth=2.0 * TO_POINTS)
        drawn += axes.plot([rate.value], [at], **look)
    _in_rows(axes, [rate.label for rate in rates], measure)
    return drawn


def draw_constraints(figure: ConstraintsFigure, axes: Axes) -> list[Any]:
    """A row a constraint: its value, broad over the noise, thin with the sampling error; a dash at
    its bound."""
    drawn = []
    for at, one in enumerate(figure.lines):
        if one.bound is not None:
            label = "Required, at most" if at == 0 else "_nolegend_"
            axes.vlines(
                one.bound,
                at - 0.38,
                at + 0.38,
                color=INK,
                linewidth=1.4,
                linestyle=(0, (3, 2)),
                label=label,
            )
        if math.isnan(one.value):
            _undefined(axes, at)
            continue
        for ends, width in (
            (one.ends(figure.confidence, sampled=True), 1.0),
            (one.ends(figure.confidence), 3.4),
        ):
            if ends is not None:
                axes.hlines(at, *ends, color=OWN_COLOURS[0], linewidth=width)
        drawn += axes.plot([one.value], [at], **looks(_mark(one)))
    named = [one.label.replace(") - ", ")\n- ") for one in figure.lines]
    labels = [
        f"{label}\n{one.verdict}" if one.verdict else label
        for label, one in zip(named, figure.lines, strict=True)
    ]
    _in_rows(axes, labels, figure.measure)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.0), max(high, 0.0))
    axes.set_title(figure.title, loc="left", fontsize="medium")
    if any(one.bound is not None for one in figure.lines):
        legend(axes)
    return drawn


def _mark(one: Bounded) -> Style:
    """Filled where a verdict is known; a cross where it is bad."""
    shape = "cross" if one.verdict == "not met" else "circle"
    return Style(shape, one.verdict in ("met", "not met"), "", OWN_COLOURS[0], 2.0)


def draw_budget(figure: BudgetFigure, axes: Axes) -> list[Any]:
    """A row a release, the oldest on top, each beginning where the one before ends; the last row is
    what is left."""
    drawn: list[Any] = []
    labels: list[str] = []
    begins = 0.0
    segments = figure.segments
    named = sorted(sorted(range(len(segments)), key=lambda at: -segments[at].share)[:MOST_NAMED])
    for number, part in enumerate(segments):
        if number in named:
            drawn += axes.barh(
                len(labels), part.share, left=begins, height=0.7, color=SHADES[number % 2]
            )
            labels.append(f"{part.label}  {spent_text(part.share)}%")
        begins = min(1.0, begins + part.share)
    left = max(0.0, min(figure.left, 1.0 - begins))
    drawn += axes.barh(
        len(labels), left, left=1.0 - left, height=0.7, color="white", edgecolor=AXIS
    )
    labels.append(f"left  {left_text(figure.left)}%")
    _in_rows(axes, labels, SHARE)
    axes.set_xlim(0.0, 1.0)
    axes.set_title(figure.title, loc="left", fontsize="medium")
    return drawn


def draw_course(figure: CourseFigure, axes: Axes) -> list[Any]:
    """What was charged, over time, under the dashed line of the cap."""
    days, shares = zip(*((one.days, one.share) for one in figure.moments), strict=True)
    drawn: list[Any] = axes.step(
        days, shares, where="post", color=OWN_COLOURS[0], linewidth=2.0 * TO_POINTS
    )
    required(axes, 1.0, "the cap")
    measured(axes.yaxis, SHARE)
    axes.set_xticks(*zip(*figure.ticks(), strict=True))
    axes.set_xlabel(f"Time (UTC), from {figure.when(figure.moments[0].days):%Y-%m-%d} on")
    quiet(axes)
    axes.set_ylim(0.0, 1.08)
    axes.set_title(figure.title, loc="left", fontsize="medium")
    legend(axes)
    return drawn


def _undefined(axes: Axes, at: int) -> None:
    axes.text(
        0.01,
        at,
        "undefined",
        transform=axes.get_yaxis_transform(),
        va="center",
        color=QUIET,
        fontsize="small",
    )


def _in_rows(axes: Axes, labels: list[str], measure: Measure) -> None:
    measured(axes.xaxis, measure)
    quiet(axes)
    axes.grid(visible=False, axis="y")
    in_rows(axes, labels)
