"""Results as parts (facts, tables, charts, notes), and one way each to show them: text, HTML, JSON.

A result says `parts()`. Terminals, notebooks, pages and their JSON twins show the same parts, so that
nothing is said twice and no two of them can differ.

Guarantees (tests/show/test_show_parts.py):
1. Every text of a caller is escaped in HTML and in SVG; nothing is loaded, and nothing runs.
2. A cell that is not defined is shown as such and is null in JSON; no number is made up for it.
3. Text, HTML and JSON hold the same cells.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from textwrap import fill
from typing import Any, ClassVar, NamedTuple

from .. import _checks
from ..errors import InputError
from .numbers import FORMATS, printable

UNDEFINED = "undefined"
WIDE, NARROW = 680, 360
"""Pixels of a chart on a wide page and on a narrow one."""
INK = "#1a1a1a"
LETTERS = 12.0
FONTS = ("Arial", "Liberation Sans", "Helvetica", "DejaVu Sans")
DARK = (
    "<style>svg{color:#1a1a1a;background:#fff}@media (prefers-color-scheme:dark)"
    "{svg{color:#f1f3f5;background:#15191f}}</style>"
)
"""Ink of a file by itself. On a page it is that of the page: `currentColor`."""


class Fact(NamedTuple):
    """A label, its words, and the verdict that they come to, if any."""

    label: str
    words: str
    verdict: str = ""


@dataclass(frozen=True)
class Facts:
    """Labels and words, a pair a line."""

    facts: tuple[Fact, ...]
    title: str = ""

    @staticmethod
    def of(pairs: Iterable[tuple[str, object]], title: str = "") -> Facts:
        """The same of pairs that have no verdict."""
        return Facts(tuple(Fact(label, str(words)) for label, words in pairs), title)


@dataclass(frozen=True)
class Column:
    """Values under a name. `unit`: how they are shown, a name of `numbers.FORMATS`; `low` and
    `high`: the ends of their intervals, None where one is not known."""

    name: str
    values: tuple[Any, ...]
    unit: str = ""
    low: tuple[Any, ...] = ()
    high: tuple[Any, ...] = ()
    missing: str = UNDEFINED

    def __post_init__(self) -> None:
        _checks.one_of(tuple(FORMATS), unit=self.unit)

    @property
    def head(self) -> str:
        """The name as a reader wants it."""
        return self.name.replace("_", " ")

    def cells(self) -> Iterator[str]:
        """Each value in words, with its interval."""
        shown = FORMATS[self.unit]
        blank = (None,) * len(self.values)
        for value, low, high in zip(
            self.values, self.low or blank, self.high or blank, strict=True
        ):
            if undefined(value):
                yield self.missing
            elif undefined(low) or undefined(high):
                yield shown(value)
            else:
                after = "".join(one for one in shown(low) if not (one.isdigit() or one in ".,-"))
                yield f"{shown(value)} ({shown(low).removesuffix(after)} to {shown(high)})"


@dataclass(frozen=True)
class Table:
    """Columns of one length. `shown`: the lines that are shown where there are more; JSON has
    all. `tail`: the last line is about everyone."""

    columns: tuple[Column, ...]
    title: str = ""
    shown: int | None = None
    tail: bool = False

    def lines(self) -> list[tuple[str, ...]]:
        """The cells of each line that is shown, in words."""
        found = list(zip(*(column.cells() for column in self.columns), strict=True))
        return found if self.shown is None else found[: self.shown]

    @property
    def left_out(self) -> int:
        """How many lines are not shown."""
        return len(self.columns[0].values) - len(self.lines())

    def rows(self) -> list[dict[str, Any]]:
        """Every line as a mapping of plain values."""
        named: dict[str, tuple[Any, ...]] = {}
        for column in self.columns:
            named[column.name] = column.values
            if column.low:
                named |= {f"{column.name}_low": column.low, f"{column.name}_high": column.high}
        return [
            dict(zip(named, map(plain, line), strict=True))
            for line in zip(*named.values(), strict=True)
        ]


@dataclass(frozen=True)
class Note:
    """A sentence, or several."""

    words: str


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


Part = Facts | Table | Note | Chart


class Shown:
    """The mixin of results: says `parts()`, and gets everything that shows them.

    A result whose JSON is a file that is read again writes `to_dict` itself.
    """

    def parts(self) -> Iterable[Part]:
        """What is shown of the result, in order.

        Returns
        -------
        iterable of Facts, Table, Note and Chart
            The parts.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Describe the result as plain JSON values.

        Returns
        -------
        dict
            Facts by label, tables and charts by title; undefined is None.
        """
        return dict_of(self.parts())

    def to_json(self) -> str:
        """Write `to_dict()` as a JSON document.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_html(self, title: str | None = None) -> str:
        """Write the result as a page that needs no network.

        Parameters
        ----------
        title : str, default=None
            Title of the page. None: the kind of the result.

        Returns
        -------
        str
            The page.
        """
        kind = _kind(self)
        return render(title or kind, [(kind, self.parts())])

    def plot(self, ax: object = None) -> Any:
        """Draw the first chart.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Axes to draw on. None: new axes.

        Returns
        -------
        matplotlib axes
            The axes.
        """
        return first_chart(self.parts(), ax)

    def __str__(self) -> str:
        parts = list(self.parts())
        drawn = [part.description for part in parts if isinstance(part, Chart)]
        return text_of(parts) or "\n".join(drawn)

    def _repr_html_(self) -> str:
        return "".join(html_of(part, width=WIDE) for part in self.parts())


@dataclass(frozen=True)
class Listed(Shown):
    """Parts that are a result by themselves."""

    given: tuple[Part, ...]

    def parts(self) -> Iterator[Part]:
        """The parts, in order."""
        yield from self.given


def listed(*given: Part) -> Listed:
    """Parts as a result, for a section of a report."""
    return Listed(given)


def undefined(value: object) -> bool:
    """Whether there is no such value."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def plain(value: object) -> Any:
    """As JSON has it: undefined is null, an infinite number a word."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def aligned(rows: Sequence[Sequence[str]], right_from: int | None = None) -> list[str]:
    """Rows of words as lines of text, with columns of one width each. `right_from`: the first column
    whose cells end, rather than begin, in one line.

    >>> aligned([("group", "rows"), ("f", "12")], right_from=1)
    ['group  rows', 'f        12']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(widths) if right_from is None else right_from
    return [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def text_of(parts: Iterable[Part]) -> str:
    """For a terminal: a paragraph a part; a chart has none, its numbers are in the tables."""
    return "\n\n".join("\n".join(lines) for lines in map(_lines, parts) if lines)


def _lines(part: Part) -> list[str]:
    if isinstance(part, Note):
        return [part.words]
    if isinstance(part, Facts):
        pairs = [(one.label, told(one)) for one in part.facts]
        return [*([part.title] if part.title else []), *aligned(pairs)]
    if isinstance(part, Table):
        if not part.columns[0].values:
            return []
        right = next((at for at, column in enumerate(part.columns) if column.unit), None)
        heads = tuple(column.head for column in part.columns)
        more = [f"and {part.left_out} more, in JSON"] if part.left_out else []
        return [
            *([part.title] if part.title else []),
            *aligned([heads, *part.lines()], right),
            *more,
        ]
    return []


def told(fact: Fact) -> str:
    """
    >>> told(Fact("fairness", "4.1 points", "met")), told(Fact("error", "16.0%"))
    ('met: 4.1 points', '16.0%')
    """
    return f"{fact.verdict}: {fact.words}" if fact.verdict else fact.words


def html_of(part: Part, *, width: int | None = None) -> str:
    """For a page or a notebook. `width`: charts are drawn once, so wide; None: for wide pages and for
    narrow ones."""
    e = html.escape
    if isinstance(part, Note):
        return f"<p>{e(part.words)}</p>"
    if isinstance(part, Facts):
        said = "".join(
            f"<dt>{e(one.label)}</dt><dd>{badge(one.verdict)}{e(one.words)}</dd>"
            for one in part.facts
        )
        return (f"<h3>{e(part.title)}</h3>" if part.title else "") + f"<dl>{said}</dl>"
    if isinstance(part, Table):
        return _table(part)
    if width is None and not part.half:
        drawn = "".join(
            f'<div class="{name}">{part.to_svg(size, standalone=False)}</div>'
            for name, size in (("wide", WIDE), ("narrow", NARROW))
        )
    else:
        drawn = part.to_svg(NARROW if width is None else width, standalone=False)
    half = ' class="half"' if part.half else ""
    return f"<figure{half}><figcaption>{e(part.title)}</figcaption>{drawn}</figure>"


def _table(part: Table) -> str:
    e = html.escape
    if not part.columns[0].values:
        return ""
    kinds = [' class="number"' if column.unit else "" for column in part.columns]
    head = "".join(
        f'<th scope="col"{kind}>{e(column.head)}</th>'
        for column, kind in zip(part.columns, kinds, strict=True)
    )
    lines = part.lines()
    body = ""
    for at, line in enumerate(lines):
        cells = "".join(
            f"<td{kind}>{e(cell)}</td>" for cell, kind in zip(line[1:], kinds[1:], strict=True)
        )
        last = ' class="total"' if part.tail and at == len(lines) - 1 else ""
        body += f'<tr{last}><th scope="row">{e(line[0])}</th>{cells}</tr>'
    more = f"<p>And {part.left_out} more, in the JSON file.</p>" if part.left_out else ""
    caption = f"<caption>{e(part.title)}</caption>" if part.title else ""
    return (
        f'<div class="scroll" tabindex="0"><table>{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>{more}"
    )


def badge(verdict: str) -> str:
    """A verdict, marked as such."""
    kind = html.escape(verdict.replace(" ", "-"))
    return f'<span class="badge {kind}">{html.escape(verdict)}</span> ' if verdict else ""


def dict_of(parts: Iterable[Part]) -> dict[str, Any]:
    """Facts by label, notes in a list, tables and charts by title."""
    out: dict[str, Any] = {}
    notes: list[str] = []
    for part in parts:
        if isinstance(part, Facts):
            for one in part.facts:
                out[_free(out, one.label or "also")] = told(one)
        elif isinstance(part, Note):
            notes.append(part.words)
        elif isinstance(part, Table):
            out[_free(out, part.title or "table")] = part.rows()
        else:
            out[_free(out, part.title)] = part.to_dict()
    return out | ({_free(out, "notes"): notes} if notes else {})


def _free(taken: dict[str, Any], name: str) -> str:
    """A name that no other part has."""
    names = (name, *(f"{name} {number}" for number in range(2, len(taken) + 3)))
    return next(one for one in names if one not in taken)


# Pages


def page(*results: Shown, title: str | None = None) -> str:
    """Write one result, or several, as a page.

    Parameters
    ----------
    *results : results
        Whatever says `parts()`. A `Report` has its decision statement on top.
    title : str, default=None
        Title of the page. None: a report's own, else the kind of the first result.

    Returns
    -------
    str
        HTML that loads nothing and runs nothing.
    """
    if len(results) == 1:
        return results[0].to_html(title)
    return render(title or _kind(results[0]), [(_kind(one), one.parts()) for one in results])


def render(
    title: str,
    sections: Iterable[tuple[str, Iterable[Part]]],
    decision: Iterable[Fact] = (),
    **about: Any,
) -> str:
    """The page. `about`: its `subject`, `method`, `created`, and whether it is to be `signed`."""
    from markupsafe import Markup

    found = [
        {"heading": heading, "id": f"s{at}", "body": [Markup(html_of(part)) for part in parts]}
        for at, (heading, parts) in enumerate(sections, 1)
    ]
    facts = [(one.label, one.words, Markup(badge(one.verdict))) for one in decision]
    known = {"subject": "", "method": None, "created": None, "signed": False, **about}
    text: str = template("page.html").render(title=title, sections=found, facts=facts, **known)
    return text


def _kind(result: object) -> str:
    """The class in words: "Privacy statement" of `PrivacyStatement`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(result).__name__).capitalize()


@cache
def template(name: str, **filters: Callable[[Any], str]) -> Any:
    """A file of this folder as a template; texts are escaped where it is a page."""
    from jinja2 import Environment, StrictUndefined

    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    made = Environment(
        autoescape=name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {"json": partial(json.dumps, ensure_ascii=False), **filters}
    return made.from_string(text)


# Pictures


def first_chart(parts: Iterable[Part], ax: object = None) -> Any:
    """Draws the first chart on these axes, or on new ones."""
    chart = next((part for part in parts if isinstance(part, Chart)), None)
    if chart is None:
        remedy = "There is nothing to draw: print the result."
        raise InputError.expected("a result with a chart", of="plot", got="none", remedy=remedy)
    return draw_on(chart, ax)


def draw_on(chart: Chart, ax: object = None) -> Any:
    """Draw a chart with matplotlib, with its title and a legend.

    Parameters
    ----------
    chart : Chart
        What is drawn.
    ax : matplotlib axes, default=None
        Axes to draw on. None: new axes.

    Returns
    -------
    matplotlib axes
        The axes.
    """
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
    width = _checks.whole(at_least=320, width=width)
    drawn = _drawn(chart, width, standalone)
    name = "c" + hashlib.sha256(drawn.encode()).hexdigest()[:10]
    body = drawn[drawn.index("<svg") :]
    inside = body[body.index(">") + 1 : body.rindex("</svg>")]
    inside = re.sub(
        r"<(metadata|defs)>\s*(<style.*?</style>)?\s*(</\1>|(?=<))", "", inside, count=1, flags=re.S
    )
    inside = re.sub(r' id="(?!(?:m|p)[0-9a-f]{10})[^"]*"', "", inside)
    inside = re.sub(r'(id="|#)((?:m|p)[0-9a-f]{10})', rf"\1{name}-\2", inside).replace(
        INK, "currentColor"
    )
    size = re.search(r'viewBox="([^"]+)"', body)
    assert size is not None
    _, _, wide, high = size[1].split()
    words = (
        f'<title id="{name}-t">{html.escape(printable(chart.title))}</title>'
        f'<desc id="{name}-d">{html.escape(printable(chart.description))}</desc>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{size[1]}" width="{wide}" height="{high}" role="img" stroke-linejoin="round" '
        f'aria-labelledby="{name}-t {name}-d">{words}{DARK if standalone else ""}{inside.strip()}</svg>'
    )


def _drawn(chart: Chart, width: int, titled: bool) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    rules: Any = {
        "svg.fonttype": "none",
        "text.parse_math": False,
        "svg.hashsalt": f"{chart.title}{width}",
        "font.family": "sans-serif",
        "font.sans-serif": list(FONTS),
        "font.size": LETTERS,
        "axes.labelsize": LETTERS,
        "axes.edgecolor": INK,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    }
    with matplotlib.rc_context(rules):
        figure = Figure(figsize=(width / 72, 1.0), dpi=72, layout="constrained")
        axes = figure.add_subplot()
        chart.draw(axes)
        letters = int(width / 6.6)
        handles, labels = axes.get_legend_handles_labels()
        named = [fill(label, letters - 6) for label in labels]
        several = len(named) > 1 or chart.legend
        lines = sum(one.count("\n") + 1 for one in named) if several else 0
        head = fill(printable(chart.title), letters) if titled else ""
        if several and named:
            figure.legend(handles, named, loc="outside lower left", frameon=False, fontsize=LETTERS)
        if head:
            figure.suptitle(head, x=0.01, ha="left", fontsize=LETTERS + 1)
        high = chart.height(width) + 18.0 * lines + (18.0 * (head.count("\n") + 1) if head else 0.0)
        figure.set_size_inches(width / 72, high / 72)
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    return out.getvalue()
