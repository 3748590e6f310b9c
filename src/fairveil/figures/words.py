"""What figures say in words: labels, protections, and the text alternatives."""

from __future__ import annotations

import math

from .contents import FrontierFigure, GapFigure, Point, Protects, RatesFigure, Series
from .scales import number, with_unit

PROTECTED: dict[Protects, str] = {
    "records": "record-level privacy",
    "sensitive_features": "attribute-level privacy",
    "nothing": "not private",
}


def epsilon_words(epsilon: float) -> str:
    """
    >>> epsilon_words(0.5), epsilon_words(float("inf"))
    ('ε = 0.5', 'not private')
    """
    return "not private" if math.isinf(epsilon) else f"ε = {epsilon:g}"


def legend_words(series: Series, *, split: bool) -> str:
    """Whose curve, at which epsilon (unless the panel says so), and what is protected."""
    if math.isinf(series.epsilon):
        return f"{series.label}: not private"
    whose = series.label if split else f"{series.label}, {epsilon_words(series.epsilon)}"
    return f"{whose}: {PROTECTED[series.protects]}"


def tag(series: Series, *, split: bool, alone: bool) -> str:
    """What stands beside the curve: short. `alone`: all curves of this kind have one owner, whose
    name the legend gives."""
    if math.isinf(series.epsilon):
        return f"{series.short}, not private"
    if split:
        return series.short
    return (
        epsilon_words(series.epsilon)
        if alone
        else f"{series.short}, {epsilon_words(series.epsilon)}"
    )


def point_words(figure: FrontierFigure, series: Series, point: Point) -> str:
    """One point as a sentence."""
    parts = [
        f"{figure.error.name} {with_unit(point.error, figure.error.unit)}",
        f"{figure.gap.name} {with_unit(point.gap, figure.gap.unit)}",
    ]
    if point.target is not None:
        parts.append(f"required: at most {with_unit(point.target, figure.gap.unit)}")
    return f"{legend_words(series, split=False)}: {', '.join(parts)}"


def frontier_title(figure: FrontierFigure) -> str:
    """What the figure is."""
    name = figure.error.name
    return f"{name[:1].upper()}{name[1:]} against {figure.notion} gap, {figure.dataset}"


def frontier_description(figure: FrontierFigure) -> str:
    """The figure for those who do not see it: what lies where, curve by curve."""
    curves = [f"{legend_words(one, split=False)}: {_course(figure, one)}" for one in figure.series]
    floor = "" if figure.floor is None else f" Dotted line: {figure.floor.label}."
    head = (
        f"{len(curves)} {'curve' if len(curves) == 1 else 'curves'}; lower and further left is "
        f"better."
    )
    return f"{head} {'; '.join(curves)}.{floor} The table below holds every point."


def gap_title(figure: GapFigure) -> str:
    """What the figure is."""
    return f"{figure.name[:1].upper()}{figure.name[1:]}: required, measured in training, held out"


def gap_description(figure: GapFigure) -> str:
    """The three numbers, apart."""
    unit = figure.measure.unit
    target = "none" if figure.target is None else f"at most {with_unit(figure.target, unit)}"
    seen = "not known" if figure.training_shown is None else with_unit(figure.training_shown, unit)
    if figure.held_out is None:
        held_out = "not measured"
    else:
        held_out = with_unit(figure.held_out, unit)
        if figure.held_out_low is not None and figure.held_out_high is not None:
            ends = f"{number(figure.held_out_low, unit)} to {with_unit(figure.held_out_high, unit)}"
            held_out += f" ({percent(figure.confidence)} interval {ends})"
    if figure.training_ends is not None:
        low, high = figure.training_ends
        seen += (
            f" ({percent(figure.confidence)} interval over the noise {number(low, unit)} to "
            f"{with_unit(high, unit)})"
        )
    told = [
        f", {verdict}" if verdict else ""
        for verdict in (figure.training_verdict, figure.held_out_verdict)
    ]
    return (
        f"Required: {target}. Noisy value in training: {seen}{told[0]}. On held-out people: "
        f"{held_out}{told[1]}."
    )


def rates_description(figure: RatesFigure) -> str:
    """Each group's rate; undefined is said."""
    parts = []
    for rate in figure.rates:
        if rate.value is None:
            parts.append(f"{rate.label}: undefined")
            continue
        ends = (
            ""
            if rate.low is None or rate.high is None
            else f" ({number(rate.low, 'percent')} to {with_unit(rate.high, 'percent')})"
        )
        parts.append(
            f"{rate.label}: "
            f"{with_unit(rate.value, 'percent')}{ends}{', small group' if rate.small else ''}"
        )
    return (
        f"{figure.name} by group, with {percent(figure.confidence)} intervals. {'; '.join(parts)}."
    )


def percent(fraction: float) -> str:
    """
    >>> percent(0.95), percent(0.995)
    ('95%', '99.5%')
    """
    return f"{100 * fraction:.6g}%"


def _course(figure: FrontierFigure, series: Series) -> str:
    error, gap = figure.error.unit, figure.gap.unit
    ends = sorted(series.points, key=lambda point: point.gap)
    texts = [
        f"{with_unit(end.error, error)} at {with_unit(end.gap, gap)}" for end in (ends[0], ends[-1])
    ]
    if len(ends) == 1:
        return f"one point, {figure.error.name} {texts[0]}"
    return f"{figure.error.name} from {texts[0]} to {texts[1]}"
