"""Sentences that the page writes by itself: the key facts, what is not covered, how to verify."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from ..core.promise import Promise
from ..figures.scales import with_unit
from .contents import ReportContents
from .first_lines import verdict
from .ledger import NOT_RECORDED, TO_CHECK, ledger_facts
from .phrases import GUARDED, alone, capital, delta_words, names_in_full, own_curves, spent, stamps

__all__ = [
    "GUARDED",
    "delta_words",
    "how_to_verify",
    "key_facts",
    "not_covered",
    "stamps",
    "verdict",
]

NEIGHBOURS = {"add-remove": "one row added or removed", "replace-one": "one row replaced"}


def neighbours_of(promise: Promise) -> str:
    """In what neighbouring tables differ, in few words."""
    words = NEIGHBOURS[promise.neighbours]
    return (
        words
        if promise.unit is None
        else f"{words.replace('row', 'person')}, with {promise.unit.extent}"
    )


def key_facts(report: ReportContents) -> Iterator[tuple[str, str, str]]:
    """(name, value, remark) of the few facts at the head of the page."""
    whole = report.all_models or report.statement
    if whole is not None:
        looked = "" if report.all_models is None else ", for looking at all models of this page"
        yield "Privacy spent", spent(whole), f"at δ = {delta_words(whole.delta)}{looked}"
        if report.all_models is not None:
            remark = "the one shown in full" if names_in_full(report) else "each by itself"
            yield "One model alone", alone(report), f"{remark}, had nobody seen the others"
        guarded = GUARDED[whole.promise.protects] if whole.promise.is_private else "nothing"
        yield "Protected", guarded, f"neighbours: {neighbours_of(whole.promise)}"
        if whole.ledger is not None:
            yield (
                "Recorded",
                f"line {whole.ledger.entry}",
                f"of the ledger of {whole.ledger.dataset}",
            )
    if report.ledger is not None:
        yield from ledger_facts(report.ledger)
        if whole is None:
            promise = report.ledger.terms.promise
            yield "Protected", GUARDED[promise.protects], f"neighbours: {neighbours_of(promise)}"
    for figure in report.gaps[:1]:
        if figure.held_out is not None:
            remark = (
                "no target"
                if figure.target is None
                else f"required: at most {with_unit(figure.target, figure.measure.unit)}; "
                f"{figure.held_out_verdict}"
            )
            yield (
                f"{capital(figure.name)}",
                with_unit(figure.held_out, figure.measure.unit),
                f"held out; {remark}",
            )
    for section in report.tables[:1]:
        error = section.table.overall.rates["error"]
        if not math.isnan(error.value):
            yield (
                "Error",
                with_unit(error.value, "percent"),
                f"of {section.table.overall.rows:,} {section.of}",
            )


def not_covered(report: ReportContents) -> list[str]:
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
        found.append(
            "The frontier figures: errors and gaps were measured exactly; to choose a model by "
            "them is a release too."
        )
    several = sum(len(one.points) for one in own_curves(report)) > 1
    if several and report.all_models is None and report.statement is not None:
        found.append(
            "The other models of the frontiers: what looking at all of them costs was not handed "
            "to this page."
        )
    if report.ledger is not None:
        found.append(NOT_RECORDED)
    elif report.statement is None and report.all_models is None:
        found.append("Everything: no privacy statement was handed to this page.")
    return found


def how_to_verify(report: ReportContents, twin: str) -> Iterator[tuple[str, str | None]]:
    """(words, command or None)."""
    if report.statement_file is not None:
        words = (
            "Recompute the privacy statement's epsilon from the events that it lists. This proves "
            "that the statement is "
            "consistent, not who wrote it."
        )
        yield words, f"fairveil verify {shlex.quote(report.statement_file)}"
        if any(
            one is not None and one.ledger is not None
            for one in (report.statement, report.all_models)
        ):
            words = (
                "Look the release up in the ledger that its receipt names; LEDGER stands for where "
                "that is."
            )
            yield (
                words,
                f"fairveil ledger check LEDGER --statement {shlex.quote(report.statement_file)}",
            )
    if report.ledger is not None:
        named = f"--dataset {shlex.quote(report.ledger.balance.dataset)}"
        yield TO_CHECK, f"fairveil ledger check {shlex.quote(report.ledger.place)} {named}"
    for command in report.verify:
        yield "Run:", command
    yield f"Every number on this page stands unrounded in the file {twin} beside it.", None
