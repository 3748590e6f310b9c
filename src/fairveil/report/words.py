"""Sentences that the page writes by itself: the verdict, what is not covered, how to verify."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from ..fairness import GroupTable
from ..figures import GapFigure
from ..figures.scales import number, with_unit
from ..figures.words import percent
from ..privacy.statement import PrivacyStatement
from ..privacy.statement_words import STAMP_WORDS
from .contents import Report

GUARDED = {"records": "whole records", "sensitive_features": "the sensitive columns only"}
MORE_THAN_PROMISED = "MORE WAS SPENT THAN PROMISED"
NEIGHBOURS = {"add-remove": "one row added or removed", "replace-one": "one row replaced"}


def verdict(report: Report) -> str:
    """The page in one paragraph: what was promised, what was asked for and measured, how often the model is wrong."""
    if report.verdict is not None:
        return report.verdict
    parts: list[str] = []
    if report.statement is not None:
        parts.append(_privacy(report.statement))
    parts += [_gap(figure) for figure in report.gaps]
    for section in report.tables:
        parts += _table(section.table, section.of)
    if report.frontiers:
        own = sum(not one.published for figure in report.frontiers for one in figure.series)
        published = sum(one.published for figure in report.frontiers for one in figure.series)
        beside = f", beside {_count(published, 'published one')}" if published else ""
        parts.append(f"The frontiers show {_count(own, 'curve')} of this work{beside}.")
    return " ".join(parts) or "This page holds no results."


def stamps(statement: PrivacyStatement | None) -> list[str]:
    """What must not be overlooked, in capitals as the statement has it."""
    if statement is None:
        return []
    broken = statement.promise.is_private and statement.epsilon > statement.promise.epsilon
    return [*(STAMP_WORDS[stamp] for stamp in statement.stamps), *([MORE_THAN_PROMISED] if broken else [])]


def key_facts(report: Report) -> Iterator[tuple[str, str, str]]:
    """(name, value, remark) of the few facts at the head of the page."""
    statement = report.statement
    if statement is not None:
        spent = f"ε = {up(statement.epsilon)}" if statement.is_private else "none"
        yield "Privacy spent", spent, f"at δ = {delta_words(statement.delta)}"
        guarded = GUARDED[statement.promise.protects] if statement.promise.is_private else "nothing"
        yield "Protected", guarded, f"neighbours: {NEIGHBOURS[statement.promise.neighbours]}"
    for figure in report.gaps[:1]:
        if figure.held_out is not None:
            remark = (
                "no target" if figure.target is None else f"asked for at most {with_unit(figure.target, figure.measure.unit)}"
            )
            yield f"{_capital(figure.notion)} gap", with_unit(figure.held_out, figure.measure.unit), f"held out; {remark}"
    for section in report.tables[:1]:
        error = section.table.overall.rates["error"]
        if not math.isnan(error.value):
            yield "Error", with_unit(error.value, "percent"), f"of {section.table.overall.rows:,} {section.of}"


def not_covered(report: Report) -> list[str]:
    """What on this page lies outside the guarantee, beside what the statement lists itself."""
    found = list(report.not_covered)
    found += [
        f"The group table ({section.of}): exact counts and rates of these rows, without noise."
        for section in report.tables
        if section.exact
    ]
    if any(figure.held_out is not None for figure in report.gaps):
        found.append("The held-out gaps: measured exactly on the rows that were held out.")
    if any(not one.published for figure in report.frontiers for one in figure.series):
        found.append("The frontier figures: errors and gaps were measured exactly; to choose a model by them is a release too.")
    if report.statement is None:
        found.append("Everything: no privacy statement was handed to this page.")
    return found


def how_to_verify(report: Report, twin: str) -> Iterator[tuple[str, str | None]]:
    """(words, command or None)."""
    if report.statement_file is not None:
        words = (
            "Recompute the privacy statement's epsilon from the events that it lists. This proves that the statement is "
            "consistent, not who wrote it."
        )
        yield words, f"fairveil verify {shlex.quote(report.statement_file)}"
    for command in report.verify:
        yield "Run:", command
    yield f"Every number on this page stands unrounded in the file {twin} beside it.", None


def up(value: float) -> str:
    """At most four decimals, rounded up: words must not promise more than the number does.

    >>> up(0.99991), up(0.99999), up(float("inf"))
    ('1', '1', 'inf')
    >>> up(0.51681)
    '0.5169'
    """
    return "inf" if math.isinf(value) else f"{math.ceil(value * 10_000) / 10_000:.4f}".rstrip("0").rstrip(".")


def delta_words(delta: float) -> str:
    """
    >>> delta_words(1e-9)
    '1e-9'
    """
    return f"{delta:g}".replace("e-0", "e-")


def _privacy(statement: PrivacyStatement) -> str:
    warning = "".join(f"{words}. " for words in stamps(statement))
    if not statement.is_private:
        return f"{warning}Epsilon is infinite: nothing is promised to anybody."
    guarded = GUARDED[statement.promise.protects]
    promised = "" if not statement.promise.is_private else f" of {statement.promise.epsilon:g} promised"
    spent = f"epsilon = {up(statement.epsilon)}{promised} was spent at delta = {delta_words(statement.delta)}"
    return f"{warning}Privacy: {spent}; protected: {guarded}."


def _gap(figure: GapFigure) -> str:
    unit, notion = figure.measure.unit, figure.notion
    asked = "" if figure.target is None else f"Asked for was a {notion} gap of at most {with_unit(figure.target, unit)}"
    if figure.held_out is None:
        seen = (
            "" if figure.training_noisy is None else f"the noisy value in training is {with_unit(figure.training_noisy, unit)}"
        )
        parts = [part for part in (asked, seen, "no held-out people were measured") if part]
        return _capital("; ".join(parts)) + "."
    shown = with_unit(figure.held_out, unit)
    low, high = figure.held_out_low, figure.held_out_high
    if low is not None and high is not None:
        shown += f" ({percent(figure.confidence)} interval {number(low, unit)} to {with_unit(high, unit)})"
    if figure.target is None:
        return f"The {notion} gap on held-out people is {shown}."
    if figure.held_out <= figure.target:
        how = "as asked"
    elif low is not None and low <= figure.target:
        how = "above what was asked, though not certainly: the target lies in the interval"
    else:
        how = "above what was asked"
    return f"{asked}; on held-out people it is {shown}: {how}."


def _table(table: GroupTable, of: str) -> Iterator[str]:
    error = table.overall.rates["error"]
    if not math.isnan(error.value):
        ends = f"{percent(table.confidence)} interval {number(error.low, 'percent')} to {with_unit(error.high, 'percent')}"
        yield f"Of {table.overall.rows:,} {of}, {with_unit(error.value, 'percent')} are decided wrongly ({ends})."
    small = sum(row.small for row in table.rows)
    if small:
        which = "1 group has" if small == 1 else f"{small} groups have"
        yield f"{which} fewer than {table.small_below} rows: rates of so few mean little."


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
