"""The JSON twin: every number and every sentence of the page. The page is written from it, so that the two cannot differ."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from typing import Any

from ..fairness import GroupRow, GroupTable
from ..fairness.keys import shown
from ..figures import FrontierFigure, GapFigure, Measure, Point, Rate, RatesFigure, Series
from ..figures.gaps import row_scale
from ..figures.panels import frontier_scales
from ..figures.scales import Scale
from ..figures.words import PROTECTED, frontier_description, frontier_title, gap_description, gap_title, rates_description
from ..privacy.statement_checks import versions_now
from ..privacy.statement_words import items
from .contents import Certainty, GroupSection, Payments, Report
from .ledger import ledger_numbers
from .words import how_to_verify, key_facts, not_covered, stamps, verdict

FORMAT, VERSION = "fairveil-report", 1
MOST_CLASSES = 6
"""Up to so many classes have a column of their own; the twin has all."""


def to_dict(report: Report, *, twin: str = "report.json") -> dict[str, Any]:
    """Plain JSON values: what the page shows and more, numbers unrounded; undefined is null, an infinite epsilon "inf".

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
        "stamps": stamps(statement, report.all_models, of=report.ledger),
        "verdict": verdict(report),
        "key_facts": [{"name": name, "value": value, "remark": remark} for name, value, remark in key_facts(report)],
        "frontiers": [_frontier(figure) for figure in report.frontiers],
        "gaps": [_gap(figure) for figure in report.gaps],
        "tables": [_table(section) for section in report.tables],
        "guarantee": None if report.guarantee is None else _certainty(report.guarantee),
        "payments": None if report.payments is None else _payments(report.payments),
        "ledger": None if report.ledger is None else ledger_numbers(report.ledger),
        "coefficients": [{"name": one.name, "weight": one.weight, "unit": one.unit} for one in report.coefficients],
        "statement": None if statement is None else statement.to_dict(),
        "statement_words": []
        if statement is None
        else [{"heading": heading, "words": words} for heading, words in items(statement)],
        "all_models": None if report.all_models is None else report.all_models.to_dict(),
        "not_covered": not_covered(report),
        "verify": [{"words": words, "command": command} for words, command in how_to_verify(report, twin)],
        "notes": list(report.notes),
        "versions": dict(versions_now()),
    }


def to_json(twin: dict[str, Any]) -> str:
    """The twin as a JSON document."""
    return json.dumps(twin, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def rates_figure(table: GroupTable, rate: str) -> RatesFigure:
    """One rate of a group table, group by group and for everyone."""

    def one(row: GroupRow) -> Rate:
        estimate, label = row.rates[rate], name_of(row)
        if math.isnan(estimate.value):
            return Rate(label, None, None, None, estimate.size, row.small)
        return Rate(label, estimate.value, estimate.low, estimate.high, estimate.size, row.small)

    return RatesFigure(rate_words(rate), tuple(one(row) for row in (*table.rows, table.overall)), table.confidence)


def columns(table: GroupTable) -> tuple[str, ...]:
    """The rates that the page shows: of the positive class where there is one, else selection rates; then the error."""
    if table.positive is not None:
        of = shown(table.positive)
        return (f"selection_rate[{of}]", f"true_positive_rate[{of}]", f"false_positive_rate[{of}]", "error")
    return (*(f"selection_rate[{shown(k)}]" for k in table.classes[:MOST_CLASSES]), "error")


def rate_words(rate: str) -> str:
    """
    >>> rate_words("selection_rate[>50K]"), rate_words("error")
    ('Selection rate of >50K', 'Error')
    """
    name, bracket, rest = rate.partition("[")
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] + (f" of {_printable(rest[:-1])}" if bracket else "")


def name_of(row: GroupRow) -> str:
    """The group as a reader wants it, without characters that cannot be printed."""
    return "Everyone" if row.group is None else _printable(row.group)


def _printable(key: Hashable) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in shown(key)) or "(empty)"


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
        "floor": None if floor is None else {"label": floor.label, "points": [{"error": e, "gap": g} for e, g in floor.points]},
        "series": [_series(one) for one in figure.series],
    }


def _axis(measure: Measure, scale: Scale) -> dict[str, Any]:
    return {"name": measure.name, "unit": measure.unit, "low": scale.low, "high": scale.high, "ticks": list(scale.ticks)}


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
    return {name: getattr(point, name) for name in names}


def _gap(figure: GapFigure) -> dict[str, Any]:
    numbers = (figure.target, figure.training_noisy, figure.held_out, figure.held_out_low, figure.held_out_high)
    of_training = ("notion", "target", "training_noisy", "training_noise", "training_verdict")
    names = (*of_training, "held_out", "held_out_low", "held_out_high", "held_out_verdict", "confidence")
    low, high = figure.training_ends or (None, None)
    return {
        "title": gap_title(figure),
        "description": gap_description(figure),
        "axis": _axis(Measure(f"{figure.notion} gap", figure.measure.unit), row_scale([*numbers, high])),
        "training_low": low,
        "training_high": high,
        "notes": list(figure.notes),
    } | {name: getattr(figure, name) for name in names}


def _certainty(found: Certainty) -> dict[str, Any]:
    lines = [
        {"name": one.name, "at_most": one.at_most, "released": one.released, "missing": one.missing} for one in found.lines
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


def _table(section: GroupSection) -> dict[str, Any]:
    table = section.table
    first = rates_figure(table, columns(table)[0])
    scale = row_scale([value for rate in first.rates for value in (rate.value, rate.low, rate.high)])
    values = table.to_dict()
    for row, values_of_row in zip((*table.rows, table.overall), (*values["groups"], values["overall"]), strict=True):
        values_of_row["name"] = name_of(row)
    return values | {
        "of": section.of,
        "exact": section.exact,
        "expected": section.expected,
        "positive": None if table.positive is None else _printable(table.positive),
        "class_names": [_printable(k) for k in table.classes],
        "columns": [{"rate": rate, "name": rate_words(rate)} for rate in columns(table)],
        "description": rates_description(first),
        "axis": _axis(Measure(first.name, "percent"), scale),
    }
