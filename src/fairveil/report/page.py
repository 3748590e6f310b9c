"""The page: HTML without network and without JavaScript, from the twin and the figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from ..figures import (
    svg_budget,
    svg_course,
    svg_curves,
    svg_frontier,
    svg_gaps,
    svg_rate_panels,
    svg_rates,
)
from ..figures.budget import left_text, spent_text
from ..figures.dark import dark_rules
from ..figures.scales import ON_AXIS, number
from ..figures.words import percent
from ..privacy.shown import at_most, promised
from .certain import bound_text
from .contents import ReportContents
from .ledger import budget_figure, course_figure
from .numbers import to_dict
from .rates import panels_of, panels_title

FILES = ("report.html", "ledger.html", "tables.html", "ledger_tables.html", "report.css")
WIDE, NARROW = 640, 350
"""Every figure is drawn twice; the style sheet shows the one that fits, so that its letters stay
readable."""

UNDEFINED = "undefined"


def render(report: ReportContents, *, twin: str = "report.json") -> str:
    """The page of a report as HTML. `twin` is the name of the JSON file beside it.

    Guarantees (of the page, for whoever opens it):

    1. Nothing is loaded and nothing runs: no address is fetched, there is no script.
    2. Every text of the caller is escaped, in HTML and in SVG.
    3. Every number comes from the twin: in `<data value="...">` unrounded, in sentences letter for
       letter.
    """
    return page(report, to_dict(report, twin=twin))


def page(report: ReportContents, numbers: dict[str, Any]) -> str:
    """The page of a report whose twin has been made."""
    figures: dict[str, Any] = {
        "frontiers": [
            _twice(svg_frontier, figure, f"frontier-{k}")
            for k, figure in enumerate(report.frontiers, 1)
        ],
        "gaps": [_twice(svg_gaps, figure, f"gap-{k}") for k, figure in enumerate(report.gaps, 1)],
        "tables": [
            _twice(svg_rate_panels, panels_of(section.table, panels_title(section)), f"rates-{k}")
            for k, section in enumerate(report.tables, 1)
        ],
    }
    figures["terms"] = [
        _twice(svg_curves, figure, f"term-{k}") for k, figure in enumerate(report.terms, 1)
    ]
    if report.certificate is not None and report.certificate.rates is not None:
        figures["certificate"] = _twice(svg_rates, report.certificate.rates, "certificate")
    if report.private_table is not None:
        drawn = enumerate(report.private_table.rates, 1)
        figures["private_table"] = [
            _twice(svg_rates, figure, f"private-{k}") for k, figure in drawn
        ]
    if report.audit is not None:
        figures["audit"] = _twice(svg_curves, report.audit.curves, "audit")
    if report.ledger is not None:
        figures["budget"] = _twice(svg_budget, budget_figure(report.ledger), "budget")
        course = course_figure(report.ledger)
        figures["course"] = None if course is None else _twice(svg_course, course, "course")
    tables = {one["key"]: one["number"] for one in numbers["table_numbers"]}
    text: str = (
        _environment()
        .get_template("report.html")
        .render(page=numbers, figures=figures, tables=tables)
    )
    return text


@cache
def _environment() -> Environment:
    folder = resources.files(__package__)
    sources = {name: folder.joinpath(name).read_text("utf-8") for name in FILES}
    found = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "shown": shown,
        "counted": counted,
        "epsilon": epsilon,
        "paid": paid,
        "percent": percent,
    }
    found.filters |= {"part": part, "rest": rest, "bound": bound}
    found.globals |= {"units": ON_AXIS, "dark_rules": Markup(dark_rules("svg "))}
    return found


def shown(value: float | None, unit: str = "percent", missing: str = UNDEFINED) -> Markup | str:
    """A number rounded for the eye, with the unrounded one in `value`.

    >>> str(shown(0.16304))
    '<data value="0.16304">16.3</data>'
    """
    if value is None:
        return missing
    text = f"{value:.4g}".replace("-", "−") if unit == "weight" else number(value, unit)  # type: ignore[arg-type]
    return _data(value, text)


def counted(value: float) -> Markup:
    """A count with commas, a noisy one to the nearest whole number."""
    return _data(value, f"{value:,.0f}")


def epsilon(value: float | str) -> Markup | str:
    """An epsilon as it was given; infinity in words."""
    return "∞" if isinstance(value, str) or math.isinf(value) else _data(value, promised(value))


def paid(value: float | str, limit: float | str | None = None) -> Markup | str:
    """An epsilon that was found, rounded up, but not above the promise that it keeps; infinity in
    words.

    >>> str(paid(0.34561)), str(paid(0.9999, 1.0))
    ('<data value="0.34561">0.346</data>', '<data value="0.9999">1</data>')
    """
    most = None if isinstance(limit, str) else limit
    return "∞" if isinstance(value, str) else _data(value, at_most(value, most))


def bound(value: float | None, unit: str, missing: str = UNDEFINED) -> Markup | str:
    """A bound, rounded up.

    >>> str(bound(0.07031, "points"))
    '<data value="0.07031">7.1</data>'
    """
    return missing if value is None else _data(value, bound_text(value, unit))  # type: ignore[arg-type]


def part(value: float) -> Markup:
    """A share of a budget that is gone, in per cent with two decimals, rounded up.

    >>> str(part(0.13984)), str(part(0.0000052))
    ('<data value="0.13984">13.99</data>', '<data value="5.2e-06">0.01</data>')
    """
    return _data(value, spent_text(value))


def rest(value: float) -> Markup:
    """A share of a budget that is left, rounded down."""
    return _data(value, left_text(value))


def _data(value: float, text: str) -> Markup:
    return Markup('<data value="{}">{}</data>').format(repr(value), text)


def _twice(draw: Callable[..., str], figure: object, name: str) -> dict[str, Markup]:
    return {
        "wide": Markup(draw(figure, width=WIDE, name=f"{name}-wide")),
        "narrow": Markup(draw(figure, width=NARROW, name=f"{name}-narrow")),
    }
