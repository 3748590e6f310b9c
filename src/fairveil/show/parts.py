"""Results as parts (facts, tables, charts, notes), and one way each to show them: text, HTML, JSON.

A result says `parts()`. Terminals, notebooks, pages and their JSON twins show the same parts, so that
nothing is said twice and no two of them can differ.

Guarantees (tests/show/test_show_parts.py):
1. Every text of a caller is escaped in HTML and in SVG; nothing is loaded, and nothing runs.
2. A cell that is not defined is shown as such and is null in JSON; no number is made up for it.
3. Text, HTML and JSON hold the same cells.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from .. import _checks
from ..core.errors import need
from .numbers import FORMATS
from .pictures import NARROW, WIDE, Chart, draw_on

UNDEFINED = "undefined"


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


def first_chart(parts: Iterable[Part], ax: object = None) -> Any:
    """Draws the first chart on these axes, or on new ones."""
    drawn = [part for part in parts if isinstance(part, Chart)]
    fix = "There is nothing to draw: print the result."
    need(drawn, "a result with a chart", of="plot", got="none", fix=fix)
    return draw_on(drawn[0], ax)


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
    match part:
        case Note(words):
            return [words]
        case Facts(facts, title):
            pairs = [(one.label, told(one)) for one in facts]
            return [*filter(None, [title]), *aligned(pairs)]
        case Table(columns, title) if columns[0].values:
            right = next((at for at, column in enumerate(columns) if column.unit), None)
            heads = tuple(column.head for column in columns)
            more = [f"and {part.left_out} more, in JSON"] if part.left_out else []
            return [*filter(None, [title]), *aligned([heads, *part.lines()], right), *more]
    return []


def markdown_of(parts: Iterable[Part]) -> Iterator[str]:
    """For a file of Markdown, a line each; charts are left out."""
    for part in parts:
        match part:
            case Note(words):
                yield f"- {marked(words)}"
            case Facts(facts):
                for one in facts:
                    head = f"- {marked(one.label)}: " if one.label else "  - "
                    yield f"{head}{marked(told(one))}"
            case Table(columns, title) if columns[0].values:
                yield from ("", f"{marked(title)}:" if title else "", "")
                heads = tuple(column.head for column in columns)
                for row in (heads, ("---",) * len(heads), *part.lines()):
                    yield f"| {' | '.join(marked(cell).replace('|', '/') for cell in row)} |"
                yield ""


def marked(value: object) -> str:
    """A value on one line, which cannot begin markup of its own."""
    return re.sub(r"([<>*_`\[\]])", r"\\\1", " ".join(str(value).split()))


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
    match part:
        case Note(words):
            return f"<p>{e(words)}</p>"
        case Facts(facts, title):
            rows = (f"<dt>{e(x.label)}</dt><dd>{badge(x.verdict)}{e(x.words)}</dd>" for x in facts)
            return f"{f'<h3>{e(title)}</h3>' if title else ''}<dl>{''.join(rows)}</dl>"
        case Table():
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
    e, lines = html.escape, part.lines()
    if not lines:
        return ""
    kinds = [' class="number"' if column.unit else "" for column in part.columns]
    heads = zip(part.columns, kinds, strict=True)
    head = "".join(f'<th scope="col"{kind}>{e(column.head)}</th>' for column, kind in heads)
    body = ""
    for at, (first, *rest) in enumerate(lines):
        cells = zip(rest, kinds[1:], strict=True)
        last = ' class="total"' if part.tail and at == len(lines) - 1 else ""
        body += f'<tr{last}><th scope="row">{e(first)}</th>'
        body += "".join(f"<td{kind}>{e(cell)}</td>" for cell, kind in cells) + "</tr>"
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


def render(
    title: str,
    sections: Iterable[tuple[str, Iterable[Part]]],
    decision: Iterable[Fact] = (),
    **about: Any,
) -> str:
    """The page. `about`: its `subject`, `method`, and whether it is to be `signed`."""
    from markupsafe import Markup

    found = [
        {"heading": heading, "id": f"s{at}", "body": [Markup(html_of(part)) for part in parts]}
        for at, (heading, parts) in enumerate(sections, 1)
    ]
    facts = [(one.label, one.words, Markup(badge(one.verdict))) for one in decision]
    known = {"subject": "", "method": None, "signed": False, **about}
    text: str = _template().render(title=title, sections=found, facts=facts, **known)
    return text


def _kind(result: object) -> str:
    """The class in words: "Privacy statement" of `PrivacyStatement`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(result).__name__).capitalize()


@cache
def _template() -> Any:
    """The page's file as a template; texts are escaped."""
    from jinja2 import Environment, StrictUndefined

    text = resources.files(__package__).joinpath("page.html").read_text("utf-8")
    how: Any = {"trim_blocks": True, "lstrip_blocks": True, "keep_trailing_newline": True}
    return Environment(autoescape=True, undefined=StrictUndefined, **how).from_string(text)
