"""A chart as SVG, and on axes of matplotlib: letters are text, ink is that of the page, the same chart
gives the same bytes."""

from __future__ import annotations

import hashlib
import html
import io
import re
from textwrap import fill
from typing import Any, ClassVar

from .. import _checks
from .numbers import printable

WIDE, NARROW = 680, 360
"""Pixels of a chart on a wide page and on a narrow one."""
INK, LETTERS = "#1a1a1a", 12.0
FONTS = ("Arial", "Liberation Sans", "Helvetica", "DejaVu Sans")
DARK = (
    "<style>svg{color:#1a1a1a;background:#fff}@media (prefers-color-scheme:dark)"
    "{svg{color:#f1f3f5;background:#15191f}}</style>"
)
"""Ink of a file by itself. On a page it is that of the page: `currentColor`."""


class Chart:
    """A picture: what it is, its text alternative, its numbers, and how matplotlib draws it.
    `half`: two of them stand side by side on a wide page."""

    title: str
    half: bool = False
    legend: ClassVar[bool] = False
    """Whether it has a legend where there is one entry, too."""

    @property
    def description(self) -> str:
        """The picture in words, for those who do not see it."""
        raise NotImplementedError

    def draw(self, axes: Any) -> list[Any]:
        """Draw on axes of matplotlib; the artists, in the order of the numbers."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Its numbers, as plain JSON values."""
        raise NotImplementedError

    def height(self, width: int) -> float:
        """Pixels, of a drawing so wide."""
        return min(max(0.55 * width, 230.0), 380.0)

    def to_svg(self, width: int = WIDE, *, standalone: bool = True) -> str:
        """Draw as an SVG element with its text alternative.

        Parameters
        ----------
        width : int, default=680
            Pixels.
        standalone : bool, default=True
            Whether it is a file by itself: it then carries its colors for a dark screen.

        Returns
        -------
        str
            The element.
        """
        return svg_of(self, width, standalone=standalone)


def draw_on(chart: Chart, ax: object = None) -> Any:
    """Draw a chart on axes of matplotlib, or on new ones, with its title and a legend; the axes."""
    import matplotlib
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    axes: Any = pyplot.subplots(layout="constrained")[1] if ax is None else ax
    remedy = "Pass one pair of axes, such as pyplot.subplots()[1]."
    axes = _checks.instance(Axes, "ax", axes, remedy, "axes of matplotlib")
    with matplotlib.rc_context({"text.parse_math": False}):  # a group may be called "$50K$"
        chart.draw(axes)
        title = fill(chart.title, 60)
        axes.set_title(title, loc="left", fontsize="medium", parse_math=False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize="small", framealpha=0.85, edgecolor="none")
    return axes


def svg_of(chart: Chart, width: int, *, standalone: bool) -> str:
    """The chart as an SVG element; the same chart gives the same bytes."""
    drawn = _drawn(chart, _checks.whole(at_least=320, width=width), standalone)
    name = "c" + hashlib.sha256(drawn.encode()).hexdigest()[:10]
    body = drawn[drawn.index("<svg") :]
    inside = body[body.index(">") + 1 : body.rindex("</svg>")]
    for pattern, by, times in (
        (r"(?s)<(metadata|defs)>\s*(<style.*?</style>)?\s*(</\1>|(?=<))", "", 1),
        (r' id="(?!(?:m|p)[0-9a-f]{10})[^"]*"', "", 0),
        (r'(id="|#)((?:m|p)[0-9a-f]{10})', rf"\1{name}-\2", 0),
        (INK, "currentColor", 0),
    ):
        inside = re.sub(pattern, by, inside, count=times)
    size = re.search(r'viewBox="([^"]+)"', body)
    assert size is not None
    _, _, wide, high = size[1].split()
    title, words = (html.escape(printable(one)) for one in (chart.title, chart.description))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{size[1]}" width="{wide}" height="{high}" role="img" stroke-linejoin="round" '
        f'aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{title}</title>'
        f'<desc id="{name}-d">{words}</desc>{DARK if standalone else ""}{inside.strip()}</svg>'
    )


def _drawn(chart: Chart, width: int, titled: bool) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    rules: Any = {
        "svg.fonttype": "none",
        "text.parse_math": False,
        "svg.hashsalt": f"{chart.title}{width}",
        "font.family": "sans-serif",
        "font.sans-serif": list(FONTS),
        **dict.fromkeys(("font.size", "axes.labelsize"), LETTERS),
        **dict.fromkeys(inks, INK),
    }
    with matplotlib.rc_context(rules):
        figure = Figure(figsize=(width / 72, 1.0), dpi=72, layout="constrained")
        axes = figure.add_subplot()
        chart.draw(axes)
        letters = int(width / 6.6)
        handles, labels = axes.get_legend_handles_labels()
        named = [fill(label, letters - 6) for label in labels]
        several = bool(named) and (len(named) > 1 or chart.legend)
        high = chart.height(width)
        if several:
            figure.legend(handles, named, loc="outside lower left", frameon=False, fontsize=LETTERS)
            high += 18.0 * sum(one.count("\n") + 1 for one in named)
        if titled:
            head = fill(printable(chart.title), letters)
            figure.suptitle(head, x=0.01, ha="left", fontsize=LETTERS + 1)
            high += 18.0 * (head.count("\n") + 1)
        figure.set_size_inches(width / 72, high / 72)
        out, nothing = io.StringIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return out.getvalue()
