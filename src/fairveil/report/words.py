"""Sentences that the page writes by itself: the verdict, what is not covered, how to verify."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from ..fairness import GroupTable
from ..figures import GapFigure, Series
from ..figures.contents import Unit
from ..figures.scales import number, with_unit
from ..figures.words import percent
from ..privacy.statement import PrivacyStatement
from ..privacy.statement_words import STAMP_WORDS
from .contents import LedgerSection, Report
from .ledger import CONTRADICTS, NOT_RECORDED, TO_CHECK, ledger_facts, ledger_verdict

GUARDED = {"records": "whole records", "sensitive_features": "the sensitive columns only"}
MORE_THAN_PROMISED = "MORE WAS SPENT THAN PROMISED"
NEIGHBOURS = {"add-remove": "one row added or removed", "replace-one": "one row replaced"}


def verdict(report: Report) -> str:
    """The page in one paragraph: what was required and measured, what was promised, how often the model is wrong."""
    if report.verdict is not None:
        return report.verdict
    parts = [_gap(figure) for figure in report.gaps]
    if report.all_models is not None:
        parts.append(_privacy_of_all(report, report.all_models))
    elif report.statement is not None:
        parts.append(_privacy(report.statement))
    if report.ledger is not None:
        parts.append(ledger_verdict(report.ledger))
    for section in report.tables:
        parts += _table(section.table, section.of)
    if report.frontiers:
        own = len(_own(report))
        published = sum(one.published for figure in report.frontiers for one in figure.series)
        beside = f", beside {_count(published, 'published one')}" if published else ""
        parts.append(f"The frontiers show {_count(own, 'curve')} of this work{beside}.")
    return " ".join(parts) or "This page holds no results."


def stamps(*statements: PrivacyStatement | None, of: LedgerSection | None = None) -> list[str]:
    """What must not be overlooked, in capitals as the statements have it; `of`: a ledger that may contradict itself."""
    found = [CONTRADICTS] if of is not None and any(one.grave for one in of.findings) else []
    for statement in statements:
        if statement is not None:
            broken = statement.promise.is_private and statement.epsilon > statement.promise.epsilon
            found += [*(STAMP_WORDS[stamp] for stamp in statement.stamps), *([MORE_THAN_PROMISED] if broken else [])]
    return list(dict.fromkeys(found))


def key_facts(report: Report) -> Iterator[tuple[str, str, str]]:
    """(name, value, remark) of the few facts at the head of the page."""
    whole = report.all_models or report.statement
    if whole is not None:
        looked = "" if report.all_models is None else ", for looking at all models of this page"
        yield "Privacy spent", _spent(whole), f"at δ = {delta_words(whole.delta)}{looked}"
        if report.all_models is not None:
            remark = "the one shown in full" if _one_in_full(report) else "each by itself"
            yield "One model alone", _alone(report), f"{remark}, had nobody seen the others"
        guarded = GUARDED[whole.promise.protects] if whole.promise.is_private else "nothing"
        yield "Protected", guarded, f"neighbours: {NEIGHBOURS[whole.promise.neighbours]}"
        if whole.ledger is not None:
            yield "Recorded", f"line {whole.ledger.entry}", f"of the ledger of {whole.ledger.dataset}"
    if report.ledger is not None:
        yield from ledger_facts(report.ledger)
        if whole is None:
            promise = report.ledger.terms.promise
            yield "Protected", GUARDED[promise.protects], f"neighbours: {NEIGHBOURS[promise.neighbours]}"
    for figure in report.gaps[:1]:
        if figure.held_out is not None:
            remark = (
                "no target"
                if figure.target is None
                else f"required: at most {with_unit(figure.target, figure.measure.unit)}; {figure.held_out_verdict}"
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
    several = sum(len(one.points) for one in _own(report)) > 1
    if several and report.all_models is None and report.statement is not None:
        found.append("The other models of the frontiers: what looking at all of them costs was not handed to this page.")
    if report.ledger is not None:
        found.append(NOT_RECORDED)
    elif report.statement is None and report.all_models is None:
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
        if any(one is not None and one.ledger is not None for one in (report.statement, report.all_models)):
            words = "Look the release up in the ledger that its receipt names; LEDGER stands for where that is."
            yield words, f"fairveil ledger check LEDGER --statement {shlex.quote(report.statement_file)}"
    if report.ledger is not None:
        named = f"--dataset {shlex.quote(report.ledger.balance.dataset)}"
        yield TO_CHECK, f"fairveil ledger check {shlex.quote(report.ledger.place)} {named}"
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


def _own(report: Report) -> list[Series]:
    """The curves that are not published ones."""
    return [one for figure in report.frontiers for one in figure.series if not one.published]


def _one_in_full(report: Report) -> bool:
    return report.statement is not None and report.statement != report.all_models


def _alone(report: Report) -> str:
    """The epsilon of one model by itself: of the one shown in full, else of each curve's."""
    if _one_in_full(report):
        assert report.statement is not None
        return _spent(report.statement)
    epsilons = dict.fromkeys(f"{series.epsilon:g}" for series in _own(report))
    return f"ε = {' or '.join(epsilons)}" if epsilons else "not known"


def _spent(statement: PrivacyStatement) -> str:
    return f"ε = {up(statement.epsilon)}" if statement.is_private else "none"


def _privacy_of_all(report: Report, whole: PrivacyStatement) -> str:
    """What looking at the page has cost comes first, what one of its models costs alone stands beside it."""
    warning = "".join(f"{words}. " for words in stamps(whole, report.statement))
    if whole.is_private:
        guarded, at = GUARDED[whole.promise.protects], delta_words(whole.delta)
        cost = f"looking at all models of this page costs epsilon = {up(whole.epsilon)} at delta = {at}"
    else:
        guarded, cost = "nothing", "some models of this page are not private: nothing is promised to anybody"
    alone = _alone(report).replace("ε", "epsilon")
    which = "the one shown in full" if _one_in_full(report) else "one of them"
    return f"{warning}Privacy: {cost}; {which} alone: {alone}; protected: {guarded}."


def _privacy(statement: PrivacyStatement) -> str:
    warning = "".join(f"{words}. " for words in stamps(statement))
    if not statement.is_private:
        return f"{warning}Epsilon is infinite: nothing is promised to anybody."
    guarded = GUARDED[statement.promise.protects]
    promised = "" if not statement.promise.is_private else f" of {statement.promise.epsilon:g} promised"
    spent = f"epsilon = {up(statement.epsilon)}{promised} was spent at delta = {delta_words(statement.delta)}"
    return f"{warning}Privacy: {spent}; protected: {guarded}."


def _gap(figure: GapFigure) -> str:
    """What is required, and whether it is met: in training, through the noise, and by the people who were held out."""
    unit = figure.measure.unit
    required = "" if figure.target is None else f", required: at most {with_unit(figure.target, unit)}"
    said = [f"{_capital(figure.notion)} gap{required}."]
    if figure.training_noisy is not None:
        ends = figure.training_ends
        over = "noise unknown" if ends is None else f"{percent(figure.confidence)} interval over the noise {_ends(*ends, unit)}"
        seen = f"Training rows: {with_unit(figure.training_noisy, unit)} ({over})"
        said.append(seen + ("." if figure.training_verdict is None else f": {figure.training_verdict}."))
    if figure.held_out is None:
        return " ".join([*said, "No held-out people were measured."])
    shown, low, high = with_unit(figure.held_out, unit), figure.held_out_low, figure.held_out_high
    if low is not None and high is not None:
        shown += f" ({percent(figure.confidence)} interval {_ends(low, high, unit)})"
    told = figure.held_out_verdict
    return " ".join([*said, f"Held-out people: {shown}" + ("." if told is None else f": {told}.")])


def _ends(low: float, high: float, unit: Unit) -> str:
    return f"{number(low, unit)} to {with_unit(high, unit)}"


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
