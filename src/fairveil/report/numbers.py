"""The JSON twin: every number and every sentence of the page. The page is written from it, so that
the two cannot differ."""

from __future__ import annotations

import json
import math
from typing import Any

from .. import _checks
from ..figures import CurvesFigure, FrontierFigure, GapFigure, Measure, Point, Series
from ..figures.gaps import row_scale
from ..figures.panels import frontier_scales
from ..figures.rate_panels import panel_scale
from ..figures.scales import AxisScale
from ..figures.words import (
    PROTECTED,
    frontier_description,
    frontier_title,
    gap_description,
    gap_title,
)
from ..privacy.statement.checks import versions_now
from ..privacy.statement.mechanism_words import HEADS, MOST_RELEASES, table
from ..privacy.statement.statement import PrivacyStatement
from ..privacy.statement.words import items
from .baselines import against_constant
from .contents import Baselines, Certainty, GroupSection, Payments, ReportContents
from .first_lines import first_lines, warnings
from .ledger import course_figure, ledger_numbers
from .other_gaps import OtherGap, gaps_of
from .rates import columns, name_of, panels_note, panels_of, panels_title, printable, rate_words
from .words import how_to_verify, key_facts, not_covered, stamps, verdict

FORMAT, VERSION = "fairveil-report", 1
UNITS_SHOWN = (
    "Errors, rates and gaps are fractions here; the page shows per cent and percentage points, "
    "rounded to one decimal."
)
NO_GROUPS = (
    "Rates by group are not known: no rows were held out, and the fit released no group's rates. "
    "Hold out rows, or pass a test "
    "table, to see them; what is measured on such rows is exact, and not private."
)


def to_dict(report: ReportContents, *, twin: str = "report.json") -> dict[str, Any]:
    """Plain JSON values: what the page shows and more, numbers unrounded; undefined is null, an
    infinite epsilon "inf".

    `twin`: the name of the file that they go to, which the page mentions.
    """
    statement = report.statement
    return {
        "format": FORMAT,
        "version": VERSION,
        "language": report.language,
        "title": report.title,
        "subject": report.subject,
        "created": report.created,
        "method": report.method,
        "units": UNITS_SHOWN,
        "warnings": list(warnings(report)),
        "first_lines": [one.to_dict() for one in first_lines(report)],
        "stamps": stamps(statement, report.all_models, of=report.ledger),
        "verdict": verdict(report),
        "own_verdict": report.verdict is not None,
        "key_facts": [
            {"name": name, "value": value, "remark": remark}
            for name, value, remark in key_facts(report)
        ],
        "frontiers": [_frontier(figure) for figure in report.frontiers],
        "gaps": [_gap(figure) for figure in report.gaps],
        "tables": [_table(section, report.gaps) for section in report.tables],
        "no_groups": NO_GROUPS if report.method is not None and not report.tables else "",
        "baselines": None if report.baselines is None else _baselines(report.baselines),
        "guarantee": None if report.guarantee is None else _certainty(report.guarantee),
        "certificate": None if report.certificate is None else report.certificate.to_dict(),
        "private_table": None if report.private_table is None else report.private_table.to_dict(),
        "audit": None
        if report.audit is None
        else {**report.audit.to_dict(), "curves": _curves(report.audit.curves)},
        "payments": None if report.payments is None else _payments(report.payments),
        "ledger": None if report.ledger is None else ledger_numbers(report.ledger),
        "table_numbers": _numbered(report),
        "coefficients": [
            {"name": one.name, "weight": one.weight, "unit": one.unit}
            for one in report.coefficients
        ],
        "terms": [_curves(figure) for figure in report.terms],
        **_statement(statement),
        "all_models": None if report.all_models is None else report.all_models.to_dict(),
        "not_covered": not_covered(report),
        "verify": [
            {"words": words, "command": command} for words, command in how_to_verify(report, twin)
        ],
        "notes": list(report.notes),
        "versions": dict(versions_now()),
    }


def _statement(statement: PrivacyStatement | None) -> dict[str, Any]:
    """The statement, its words, and its table of releases."""
    if statement is None:
        return {"statement": None, "statement_words": [], "releases": None}
    words = [{"heading": heading, "words": words} for heading, words in items(statement)]
    rows = [list(row) for row in table(statement)[:MOST_RELEASES]]
    releases = {"heads": list(HEADS), "rows": rows}
    return {"statement": statement.to_dict(), "statement_words": words, "releases": releases}


def to_json(twin: dict[str, Any]) -> str:
    """The twin as a JSON document."""
    return json.dumps(twin, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _numbered(report: ReportContents) -> list[dict[str, Any]]:
    """The tables at the end of the page, in order."""
    keys = [f"gap-{k}" for k in range(1, len(report.gaps) + 1)]
    keys += [
        f"{kind}-{k}" for k in range(1, len(report.tables) + 1) for kind in ("groups", "others")
    ]
    keys += [f"frontier-{k}" for k in range(1, len(report.frontiers) + 1)]
    if report.ledger is not None:
        account, course = report.ledger.account, course_figure(report.ledger)
        there = {
            "by-promise": True,
            "by-purpose": account.by_purpose,
            "course": course,
            "releases": account.spends,
        }
        keys += [key for key, content in there.items() if content]
    keys += ["coefficients"] if report.coefficients else []
    return [
        {"key": key, "number": number, "title": f"Table {number}"}
        for number, key in enumerate(keys, 1)
    ]


def _curves(figure: CurvesFigure) -> dict[str, Any]:
    """Points of curves, with the ends of their intervals."""
    curves = [
        {
            "label": one.label,
            "points": [list(point) for point in one.points],
            "low": list(one.low),
            "high": list(one.high),
        }
        for one in figure.curves
    ]
    return {
        "title": figure.title,
        "across": figure.across.name,
        "up": figure.up.name,
        "curves": curves,
        "notes": list(figure.notes),
    }


def _frontier(figure: FrontierFigure) -> dict[str, Any]:
    gap, error = frontier_scales(figure)
    floor = figure.floor
    return {
        "title": frontier_title(figure),
        "description": frontier_description(figure),
        "notion": figure.notion,
        "dataset": figure.dataset,
        "interval": figure.interval,
        "notes": list(figure.notes),
        "error": _axis(figure.error, error),
        "gap": _axis(figure.gap, gap),
        "floor": None
        if floor is None
        else {"label": floor.label, "points": [{"error": e, "gap": g} for e, g in floor.points]},
        "series": [_series(one) for one in figure.series],
    }


def _axis(measure: Measure, scale: AxisScale) -> dict[str, Any]:
    return {
        "name": measure.name,
        "unit": measure.unit,
        "low": scale.low,
        "high": scale.high,
        "ticks": list(scale.ticks),
    }


def _series(series: Series) -> dict[str, Any]:
    return {
        "label": series.label,
        "short": series.short,
        "epsilon": "inf" if math.isinf(series.epsilon) else series.epsilon,
        "protects": series.protects,
        "protected": PROTECTED[series.protects],
        "published": series.published,
        "source": series.source,
        "points": [_point(point) for point in series.points],
    }


def _point(point: Point) -> dict[str, Any]:
    names = ("error", "error_low", "error_high", "gap", "gap_low", "gap_high", "target", "seeds")
    return _checks.named(point, names)


def _gap(figure: GapFigure) -> dict[str, Any]:
    numbers = (
        figure.target,
        figure.training_noisy,
        figure.held_out,
        figure.held_out_low,
        figure.held_out_high,
    )
    of_training = (
        "notion",
        "target",
        "training_noisy",
        "training_noise",
        "training_verdict",
        "population_verdict",
    )
    names = (
        *of_training,
        "held_out",
        "held_out_low",
        "held_out_high",
        "held_out_verdict",
        "confidence",
    )
    low, high = figure.training_ends or (None, None)
    return {
        "title": gap_title(figure),
        "description": gap_description(figure),
        "axis": _axis(Measure(figure.name, figure.measure.unit), row_scale([*numbers, high])),
        "training_low": low,
        "training_high": high,
        "notes": list(figure.notes),
    } | _checks.named(figure, names)


def _baselines(found: Baselines) -> dict[str, Any]:
    names = ("name", "remark", "error", "difference", "noise", "verdict", "worse", "fair")
    lines = [_checks.named(one, names) for one in found.lines]
    return {
        "error": found.error,
        "noise": found.noise,
        "unit": found.unit,
        "handed_out": found.handed_out,
        "remark": found.remark,
        "lines": lines,
    }


def _certainty(found: Certainty) -> dict[str, Any]:
    lines: list[dict[str, Any]] = [
        {
            "name": one.name,
            "at_most": one.at_most,
            "released": one.released,
            "missing": one.missing,
            "unit": one.unit,
        }
        for one in found.lines
    ]
    return {
        "sentence": found.sentence,
        "confidence": found.confidence,
        "lines": lines,
        "conditions": list(found.conditions),
        "numbers": found.numbers,
    }


def _payments(found: Payments) -> dict[str, Any]:
    lines = [
        {
            "group": one.group,
            "share": one.share,
            "epsilon": "inf" if math.isinf(one.epsilon) else one.epsilon,
            "standard_error": one.standard_error,
            "count": one.count,
        }
        for one in found.lines
    ]
    return {"rule": found.rule, "lines": lines, "conditions": list(found.conditions)}


def _table(section: GroupSection, required: tuple[GapFigure, ...]) -> dict[str, Any]:
    table = section.table
    panels = panels_of(table, panels_title(section))
    values = table.to_dict()
    for row, values_of_row in zip(
        (*table.rows, table.overall), (*values["groups"], values["overall"]), strict=True
    ):
        values_of_row["name"] = name_of(row)
    constant = against_constant(table)
    return values | {
        "of": section.of,
        "exact": section.exact,
        "expected": section.expected,
        "positive": None if table.positive is None else printable(table.positive),
        "class_names": [printable(k) for k in table.classes],
        "columns": [{"rate": rate, "name": rate_words(rate)} for rate in columns(table)],
        "panels": {
            "title": panels.title,
            "description": panels.description,
            "note": panels_note(section),
            "axes": [
                _axis(Measure(one.name, "percent"), panel_scale(one)) for one in panels.panels
            ],
        },
        "gaps": [_other_gap(one) for one in gaps_of(table, required)],
        "constant": None if constant is None else vars(constant),
    }


def _other_gap(one: OtherGap) -> dict[str, Any]:
    return {
        "rate": one.rate,
        "name": rate_words(one.rate),
        "gap": one.gap,
        "low": one.low,
        "high": one.high,
        "most": name_of(one.most),
        "least": name_of(one.least),
        "required": one.required,
    }
