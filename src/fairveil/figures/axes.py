"""Axes of matplotlib for the contents of figures: the same names, units, colours, marks and dashes
as in the SVGs.

Pages are drawn as SVG, without matplotlib: every mark there carries its unrounded number and its
words, and the same figure gives the same bytes. Axes are for whoever works in a notebook and goes
on drawing. Both read the same contents, styles and texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .. import _checks
from ..errors import InputError
from .contents import Measure
from .scales import FACTOR, axis_title, minus
from .styles import AXIS, GRID, INK, Style

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis

MARKS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "down": "v",
    "star": "*",
    "cross": "x",
    "plus": "+",
}
"""The marks of matplotlib for the shapes of `styles.SHAPES`."""
TO_POINTS = 0.75  # a point of a print is 4/3 of a pixel of a page


def axes_of(ax: object = None) -> Any:
    """The axes to draw on: those given, or one pair on a new figure. An `InputError` where
    matplotlib is not installed."""
    try:
        from matplotlib import pyplot
        from matplotlib.axes import Axes
    except ImportError:
        remedy = "pip install 'fairveil[report]', or take the SVG of a report."
        raise InputError.expected(
            "matplotlib to be installed", of="plot", got=None, remedy=remedy
        ) from None
    if ax is None:
        return pyplot.subplots(layout="constrained")[1]
    remedy = "Pass one pair of axes, such as pyplot.subplots()[1]."
    return _checks.instance(Axes, "ax", ax, remedy, "axes of matplotlib")


def measured(axis: Axis, measure: Measure) -> None:
    """Names an axis with its unit, and writes its ticks in that unit; what is drawn stays a plain
    number."""
    from matplotlib.ticker import FuncFormatter

    factor = FACTOR[measure.unit]
    axis.set_label_text(axis_title(measure))
    axis.set_major_formatter(FuncFormatter(lambda value, _: minus(f"{value * factor:.6g}")))


def quiet(axes: Axes) -> None:
    """A thin grid behind everything, and no frame but the ground."""
    axes.grid(visible=True, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(AXIS)


def looks(style: Style) -> dict[str, Any]:
    """A curve's look as options of `Axes.plot`."""
    width = style.width * TO_POINTS
    dashes = [float(length) / style.width for length in style.dash.split()]
    return {
        "color": style.colour,
        "linewidth": width,
        "linestyle": (0, dashes) if dashes else "-",
        "marker": MARKS[style.shape],
        "markersize": 7.0,
        "markerfacecolor": style.colour if style.filled else "white",
        "markeredgecolor": style.colour,
        "markeredgewidth": 1.2,
    }


def required(axes: Axes, value: float, label: str) -> Any:
    """The dashed line of a bound, from left to right."""
    return axes.axhline(value, color=INK, linewidth=1.0, linestyle=(0, (5, 4)), label=label)


def legend(axes: Axes, place: Literal["best", "lower right", "upper right"] = "best") -> None:
    """What is what, on a white ground."""
    axes.legend(fontsize="small", loc=place, framealpha=0.85, edgecolor="none", borderpad=0.2)


def in_rows(axes: Axes, labels: list[str]) -> None:
    """A row a label, the first on top."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
