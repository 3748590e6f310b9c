"""Charts by matplotlib: curves, and numbers in rows. As SVG with title and description, letters as
text, readable in the dark and on a telephone.

Ink is `currentColor`, so that a drawing takes the color of the page that it stands on; other colors
have a contrast of 3:1 or more on white and on the dark page (tests/show/test_show_parts.py). Curves
differ in marks and dashes, too: a grey print loses nothing.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from textwrap import shorten
from typing import Any, ClassVar

from .. import _checks
from ..core.errors import need
from .numbers import FACTOR, axis_title, ends, number, percent, printable, with_unit
from .pictures import INK, LETTERS, Chart

COLORS = ("#2a78d0", "#d2521a", "#0e8a77", "#9558cc", "#a87600", "#d13a7d")
MARKS = "osD^v*Xp"
DASHES: tuple[Any, ...] = ("-", *((0, one) for one in ((6, 2), (1, 2), (6, 2, 1, 2), (3, 1, 1, 1))))
ROW = 42.0
FEW = 40
"""Points up to which each has a mark."""
OWN, PUBLISHED = "own", "published"


@dataclass(frozen=True)
class Axis:
    """What an axis measures. `unit`: "percent" and "points" show a fraction times 100."""

    name: str
    unit: str = "plain"
    log: bool = False

    @property
    def title(self) -> str:
        """The name with its unit."""
        return axis_title(self.name, self.unit)


@dataclass(frozen=True)
class Curve:
    """(across, up) pairs in any order, with the ends of intervals of `up`, and of `across`, for each
    of them or for none. `kind`: "own", or "published" for numbers of others. `joined`: by a line."""

    label: str
    points: tuple[tuple[float, float], ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    across_low: tuple[float, ...] = ()
    across_high: tuple[float, ...] = ()
    kind: str = OWN
    joined: bool = True

    def __post_init__(self) -> None:
        # A label that begins with "_" is none to matplotlib.
        label = printable(self.label)
        _checks.normalise(self, label=f" {label}" if label.startswith("_") else label)
        found = [(_finite(x), _finite(y)) for x, y in self.points]
        fix = "Pass points=[(1000, 0.8), (10000, 0.9)], for example."
        need(found, "points", of=self.label, got="none", fix=fix)
        order = sorted(range(len(found)), key=lambda at: found[at])
        _checks.normalise(self, points=tuple(found[at] for at in order))
        for names in (("low", "high"), ("across_low", "across_high")):
            low, high = (tuple(map(_finite, getattr(self, name))) for name in names)
            whole = len(low) == len(high) in (0, len(found))
            right = whole and all(one <= other for one, other in zip(low, high, strict=True))
            fix = "Pass as many ends as points, low <= high, or none."
            need(right, "two ends in order", of=", ".join(names), got=(low, high), fix=fix)
            for name, end in zip(names, (low, high), strict=True):
                _checks.normalise(self, **{name: tuple(end[at] for at in order) if end else ()})


@dataclass(frozen=True)
class Rule:
    """A straight line through the whole picture, at a value of the axis `up`, or `across`."""

    label: str
    at: float
    across: bool = False


@dataclass(frozen=True)
class Curves(Chart):
    """One number against another, a few curves on one pair of axes.

    Parameters
    ----------
    title : str
        What the chart is.
    across, up : Axis
        Axes.
    curves : tuple of Curve
        Curves.
    rules : tuple of Rule, default=()
        Values to compare them with.
    notes : tuple of str, default=()
        Sentences of the text alternative.
    half : bool, default=False
        Whether two of them stand side by side on a wide page.
    """

    title: str
    across: Axis
    up: Axis
    curves: tuple[Curve, ...]
    rules: tuple[Rule, ...] = ()
    notes: tuple[str, ...] = ()
    half: bool = False

    def __post_init__(self) -> None:
        _checks.normalise(self, curves=tuple(self.curves), rules=tuple(self.rules))
        for at, (of, axis) in enumerate((("across", self.across), ("up", self.up))):
            least = min((point[at] for one in self.curves for point in one.points), default=None)
            need(least is not None, "a curve or more", of=of, got=None, fix="Pass curves=[...].")
            right = not axis.log or (least or 0.0) > 0.0
            fix = "Pass log=False, or leave out what is not above 0."
            need(right, "numbers above 0 on a logarithmic axis", of=of, got=least, fix=fix)

    @property
    def description(self) -> str:
        """Where each curve begins and ends, and its extremes."""
        x, y = self.across.unit, self.up.unit
        said = [f"{self.up.title} against {self.across.name}."]
        for one in self.curves:
            first, last = (
                f"{with_unit(up, y)} at {with_unit(across, x)}"
                for across, up in (one.points[0], one.points[-1])
            )
            ups = [up for _, up in one.points]
            most = f"least {with_unit(min(ups), y)}, largest {with_unit(max(ups), y)}"
            said.append(f"{one.label}: {first}{f' to {last}; {most}' * (len(ups) > 1)}.")
        for rule in self.rules:
            said.append(f"A line at {with_unit(rule.at, x if rule.across else y)}: {rule.label}.")
        return " ".join((*said, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Points of all curves, and the rules."""
        return asdict(self)

    def draw(self, axes: Any) -> list[Any]:
        """A line a curve; the artists in their order."""
        drawn = [self._curve(axes, at, one) for at, one in enumerate(self.curves)]
        for rule in self.rules:
            line = axes.axvline if rule.across else axes.axhline
            line(rule.at, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), label=rule.label)
        for axis, of, scale in (
            (axes.xaxis, self.across, axes.set_xscale),
            (axes.yaxis, self.up, axes.set_yscale),
        ):
            if of.log:
                scale("log")
                axis.set_minor_formatter("")
            _measured(axis, of)
        _quiet(axes)
        return drawn

    def _curve(self, axes: Any, at: int, one: Curve) -> Any:
        across, up = zip(*one.points, strict=True)
        own = one.kind == OWN
        dash = DASHES[(at + at // len(MARKS)) % len(DASHES)] if one.joined else "none"
        look: dict[str, Any] = {"label": one.label, "linestyle": dash}
        look |= {"color": COLORS[at % len(COLORS)] if own else INK, "alpha": 1.0 if own else 0.65}
        look |= {"linewidth": 2.0 if own else 1.1}
        if len(one.points) <= FEW:
            look |= {"marker": MARKS[at % len(MARKS)], "markersize": 6.0}
            look |= {} if own else {"markerfacecolor": "none"}
        if one.across_low:  # both errors of each point
            up_by = _reach(up, one.low, one.high) if one.low else None
            bars = {"xerr": _reach(across, one.across_low, one.across_high), "yerr": up_by}
            return axes.errorbar(across, up, elinewidth=0.8, **bars, **look)
        if one.low:
            shade = {"color": look["color"], "alpha": 0.15, "linewidth": 0}
            axes.fill_between(across, one.low, one.high, **shade)
        (line,) = axes.plot(across, up, **look)
        return line


@dataclass(frozen=True)
class Row:
    """One number with the ends of its interval, and of a `wider` one. `bound`: what it should be at
    most. `hollow`: of few rows, or not decided."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None
    hollow: bool = False
    bound: float | None = None
    wider: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _checks.normalise(self, label=printable(self.label))
        if self.value is not None and not math.isfinite(self.value):  # nowhere on an axis
            _checks.normalise(self, value=None, low=None, high=None, wider=None)


@dataclass(frozen=True)
class Rows(Chart):
    """Numbers in rows, each with its interval; the name of a row stands over it.

    Parameters
    ----------
    title : str
        What the chart is.
    axis : Axis
        What is measured.
    rows : tuple of Row
        Rows, from the top.
    rule : Rule, default=None
        A value that all are to be compared with.
    confidence : float, default=None
        Of the intervals. None: there are none.
    half : bool, default=False
        Whether two of them stand side by side on a wide page.
    """

    title: str
    axis: Axis
    rows: tuple[Row, ...]
    rule: Rule | None = None
    confidence: float | None = None
    half: bool = False
    legend: ClassVar[bool] = True

    @property
    def description(self) -> str:
        """Each row in words; undefined is said."""
        unit = self.axis.unit
        of = "" if self.confidence is None else f", with {percent(self.confidence)} intervals"
        said = [f"{self.axis.title}{of}."]
        for row in self.rows:
            words = "undefined" if row.value is None else with_unit(row.value, unit)
            if row.low is not None and row.high is not None:
                words += f" ({ends(row.low, row.high, unit)})"
            if row.value is not None and row.bound is not None:
                words += f", at most {with_unit(row.bound, unit)} required"
            said.append(f"{row.label}: {words}{', of few rows' * row.hollow}.")
        if self.rule is not None:
            said.append(f"A line at {with_unit(self.rule.at, unit)}: {self.rule.label}.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """The rows."""
        return asdict(self)

    def height(self, width: int) -> float:
        """A row takes the same room on any page."""
        return ROW * len(self.rows) + 62.0 + (24.0 if self.rule is not None else 0.0)

    def draw(self, axes: Any) -> list[Any]:
        """A mark a row; the artists in their order, without those that are undefined."""
        unit, drawn, color = self.axis.unit, [], COLORS[0]
        room = {"va": "center", "color": INK, "transform": axes.get_yaxis_transform()}
        room |= {"fontsize": LETTERS}
        for at, row in enumerate(self.rows):
            axes.text(0.0, at - 0.34, shorten(row.label, 34, placeholder=" …"), **room)
            words = "undefined" if row.value is None else number(row.value, unit)
            if row.low is not None and row.high is not None:
                words += f" ({number(row.low, unit)}–{number(row.high, unit)})"
            axes.text(1.0, at - 0.34, words, ha="right", **room)
            if row.value is None:
                continue
            for between, width in ((row.wider, 1.2), ((row.low, row.high), 3.0)):
                if between is not None and None not in between:
                    axes.hlines(at, *between, color=color, linewidth=width)
            if row.bound is not None:
                axes.vlines(row.bound, at - 0.2, at + 0.25, color=INK, linewidth=1.6)
            mark = {"marker": "o", "markersize": 7.0, "linestyle": "none", "color": color}
            mark |= {"markerfacecolor": "none"} if row.hollow else {}
            drawn += axes.plot([row.value], [at], **mark)
        if self.rule is not None and self.rows:  # not through the letters
            low, high = ([at + by for at in range(len(self.rows))] for by in (-0.2, 0.3))
            places = [self.rule.at] * len(self.rows)
            axes.vlines(places, low, high, color=INK, label=self.rule.label)
        axes.set_yticks([])
        axes.set_ylim(len(self.rows) - 0.5, -0.7)
        _measured(axes.xaxis, self.axis)
        _quiet(axes)
        least, most = axes.get_xlim()
        if unit in FACTOR:
            known = [one for row in self.rows for one in (row.value, row.low) if one is not None]
            axes.set_xlim(
                min(0.0, least) if min(known, default=0.0) < 0.0 else 0.0, max(most, 0.01)
            )
        return drawn


def _finite(value: float) -> float:
    found, fix = float(value), "Leave out what is undefined."
    need(math.isfinite(found), "a finite number", of="points", got=value, fix=fix)
    return found


def _reach(values: Any, low: tuple[float, ...], high: tuple[float, ...]) -> list[list[float]]:
    below = [max(0.0, value - end) for value, end in zip(values, low, strict=True)]
    return [below, [max(0.0, end - value) for value, end in zip(values, high, strict=True)]]


def _measured(axis: Any, measure: Axis) -> None:
    """Names an axis with its unit, and writes its ticks in that unit."""
    from matplotlib.ticker import FuncFormatter

    factor = FACTOR.get(measure.unit, 1.0)
    axis.set_label_text(measure.title, parse_math=False)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:,.6g}"))


def _quiet(axes: Any) -> None:
    """A thin grid behind everything, and no frame but the ground."""
    axes.grid(visible=True, color=INK, alpha=0.15, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
