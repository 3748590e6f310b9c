"""The first lines of a page: warnings, fairness, privacy, error, other gaps, and what a ledger or a
frontier says, in words.

Above all else, a line each, so that nobody has to look for what went wrong. `report.verdict`, the
JSON twin and the command line say the same words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .._verdicts import NOT_MET, deviations
from ..figures import GapFigure
from ..figures.contents import Unit
from ..figures.scales import AFTER, FACTOR, number, with_unit
from ..figures.words import percent
from ..privacy.shown import at_most, promised
from ..privacy.statement.statement import PrivacyStatement
from .baselines import SAME, AgainstConstant, against_constant
from .certificates import CertificateSection
from .contents import Baselines, GroupSection, ReportContents
from .ledger import ledger_left, ledger_verdict
from .other_gaps import gaps_of
from .phrases import GUARDED, alone, capital, count, delta_words, names_in_full, own_curves, stamps
from .rates import printable, rate_words
from .strength import strength

NOTHING_REQUIRED = "No fairness constraint was required."
NOT_HELD_OUT = "No held-out people were measured."
TARGETS_THE_BOUND = (
    "The fit targets the bound itself, where chance decides the verdict: with a confidence of 0.95 "
    "for the constraint it targets a tighter bound, and certifies the required one."
)
TOO_NOISY = "The noise is wider than the bound: more rows, a larger epsilon or a larger bound help."
UNCLEAR = "cannot be told"
NOT_RATED = "How strong that is cannot be said: whoever knows the seed can take the noise away."
ERROR_NOT_KNOWN = "Not known: no rows were held out, and the fit released none."
BEST_CONSTANT = "the best constant"
MOST_GAPS = 4
MOST_WORDS = 60
"""Letters of a group's name in a line."""


@dataclass(frozen=True)
class Clause:
    """Some words, and the verdict that they come to, if any."""

    words: str
    verdict: str | None = None

    def __str__(self) -> str:
        return self.words if self.verdict is None else f"{self.words}: {self.verdict}."


@dataclass(frozen=True)
class FirstLine:
    """A label, and what is said under it: a paragraph each constraint, or one."""

    label: str
    paragraphs: tuple[tuple[Clause, ...], ...]

    def __str__(self) -> str:
        return " ".join(str(part) for paragraph in self.paragraphs for part in paragraph)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        told = [
            [{"words": part.words, "verdict": part.verdict} for part in one]
            for one in self.paragraphs
        ]
        return {"label": self.label, "words": str(self), "paragraphs": told}


@dataclass
class _Lines:
    found: list[FirstLine] = field(default_factory=list)

    def add(self, label: str, paragraphs: list[list[Clause]]) -> None:
        kept = tuple(tuple(parts) for parts in paragraphs if parts)
        if kept:
            self.found.append(FirstLine(label, kept))


def first_lines(report: ReportContents) -> tuple[FirstLine, ...]:
    """What a reader is told first, in this order; lines about which nothing is known are left out,
    but for a model's error."""
    lines = _Lines()
    lines.add("Warning", [[Clause(sentence)] for sentence in warnings(report)])
    constant = constant_words(report)
    fairness = [list(_fairness(figure, constant, report.certificate)) for figure in report.gaps]
    if not fairness and report.method is not None:
        fairness = [[Clause(NOTHING_REQUIRED)]]
    lines.add("Fairness", fairness)
    lines.add("Privacy", [list(_privacy(report))])
    lines.add("Error", list(_errors(report)))
    lines.add("Other gaps", [list(_other_gaps(report, section)) for section in report.tables])
    if report.ledger is not None:
        lines.add(
            "Budget", [[Clause(ledger_verdict(report.ledger)), Clause(ledger_left(report.ledger))]]
        )
    lines.add("Frontier", [list(_frontiers(report))])
    return tuple(lines.found)


def verdict(report: ReportContents) -> str:
    """The page in one paragraph: its own verdict, else the first lines one after another."""
    return (
        report.verdict or " ".join(map(str, first_lines(report))) or "This page holds no results."
    )


def warnings(report: ReportContents) -> tuple[str, ...]:
    """What must not be overlooked, in whole sentences: a model that is worse than a constant first,
    then the flags."""
    found = list(report.warnings)
    if report.baselines is not None:
        found += _worse_in_training(report.baselines)
    for section in report.tables:
        found += _worse_held_out(section)
    return tuple(
        dict.fromkeys(
            [
                *found,
                *(
                    f"{words}."
                    for words in stamps(report.statement, report.all_models, of=report.ledger)
                ),
            ]
        )
    )


# Fairness


def constant_words(report: ReportContents) -> str | None:
    """That the model is one answer for everybody, or not shown to be better than one: it meets
    bounds on rates without being fair. None where it is better on held-out people or in
    training."""
    held_out = [against_constant(section.table) for section in report.tables]
    told = {one.verdict: one.answer for one in held_out if one is not None}
    found = report.baselines
    if SAME in told:
        return f"The model is a constant, always {_cut(told[SAME])}"
    if found is None or "better" in told:
        return None
    if found.handed_out == "constant":
        return f"The model is a constant, {found.remark}"
    best = next((one for one in found.lines if one.name == BEST_CONSTANT and one.fair), None)
    if best is None or best.verdict == "better":
        return None
    return f"The model is not shown to be better than a constant, {best.remark}"


def _fairness(
    figure: GapFigure, constant: str | None, certified: CertificateSection | None
) -> Iterator[Clause]:
    """What is required, and whether it is met: by a certificate, in training, through the noise,
    and by the people who were held out."""
    unit = figure.measure.unit
    if figure.sentence:
        yield Clause(f"Required: {figure.sentence}.")
    else:
        required = (
            "" if figure.target is None else f", required: at most {with_unit(figure.target, unit)}"
        )
        yield Clause(f"{capital(figure.name)}{required}.")
    if constant is not None:
        yield Clause(f"{constant}.")
    by_certificate = None if certified is None else _certified(figure, certified)
    if by_certificate is not None:
        yield by_certificate
    if figure.population_verdict is not None:
        yield _part("The people that the training rows were drawn from", figure.population_verdict)
    if figure.training_noisy is not None:
        ends = figure.training_ends
        within = (
            "noise unknown"
            if ends is None
            else f"{percent(figure.confidence)} interval over the noise {_ends(*ends, unit)}"
        )
        yield _part(
            f"Training rows: {_of_noisy(figure.training_noisy, unit)} ({within})",
            figure.training_verdict,
        )
        target = math.inf if figure.target is None else figure.target
        over, shown = figure.training_noisy - target, _of_noisy(figure.training_noisy, unit)
        if over > 0 and figure.training_verdict == NOT_MET and shown == with_unit(target, unit):
            yield Clause(f"Above its bound by {over * FACTOR[unit]:.2g}{AFTER[unit]}.")
    if figure.held_out is not None:
        yield _held_out(figure, unit)
    elif by_certificate is None:
        yield Clause(NOT_HELD_OUT)
    if by_certificate is None and UNCLEAR in (figure.training_verdict, figure.population_verdict):
        yield from _inconclusive(figure)


def _held_out(figure: GapFigure, unit: Unit) -> Clause:
    assert figure.held_out is not None
    shown, low, high = with_unit(figure.held_out, unit), figure.held_out_low, figure.held_out_high
    if low is not None and high is not None:
        shown += f" ({percent(figure.confidence)} interval {_ends(low, high, unit)})"
    return _part(f"Held-out people: {shown}", figure.held_out_verdict)


def _certified(figure: GapFigure, section: CertificateSection) -> Clause | None:
    """What the people set aside say of a constraint that is certified, or was to be."""
    for one in section.lines:
        if figure.sentence and one.sentence.startswith(f"{figure.sentence}: "):
            told = one.sentence.removeprefix(f"{figure.sentence}: ")
            people = f"The people set aside ({section.people:,.0f}, as released)"
            sure = f"with {percent(section.confidence)} confidence"
            return Clause(f"{people}: {told}, {sure}", "met" if one.certified else "cannot be told")
    return None


def _inconclusive(figure: GapFigure) -> Iterator[Clause]:
    """How near the bound the value is, why, and what helps."""
    noisy, noise, target = figure.training_noisy, figure.training_noise, figure.target
    if noisy is None or noise is None or target is None:
        return
    unit = figure.measure.unit
    shown, required = _of_noisy(noisy, unit), with_unit(target, unit)
    if figure.training_verdict != UNCLEAR:  # the noise alone leaves no doubt
        yield Clause(
            f"Inconclusive for the people that they were drawn from: {shown} on the training rows, "
            f"required {required}, and who is in the table is chance, too. {TARGETS_THE_BOUND}"
        )
        return
    reach = deviations(0.5 + figure.confidence / 2) * noise
    yield Clause(
        f"Inconclusive: {shown.removesuffix(AFTER[unit])} ± {with_unit(reach, unit)} over the "
        f"noise, required {required}. {TARGETS_THE_BOUND if reach < target else TOO_NOISY}"
    )


def _part(words: str, verdict: str | None) -> Clause:
    return Clause(f"{words}.") if verdict is None else Clause(words, verdict)


def _ends(low: float, high: float, unit: Unit) -> str:
    return f"{number(low, unit)} to {with_unit(high, unit)}"


# Privacy


def _privacy(report: ReportContents) -> Iterator[Clause]:
    if report.all_models is not None:
        yield Clause(_of_all(report, report.all_models))
        yield from _strength(report.all_models)
    elif report.statement is not None:
        yield Clause(_of_one(report.statement))
        yield from _strength(report.statement)
    whole = report.all_models or report.statement
    if whole is not None and whole.ledger is not None:
        yield Clause(
            f"Recorded as line {whole.ledger.entry} of the ledger of {whole.ledger.dataset}."
        )


def _strength(statement: PrivacyStatement) -> Iterator[Clause]:
    """Nothing is rated where the noise can be taken away."""
    if statement.is_private:
        rated = statement.noise == "secure"
        yield Clause(
            strength(statement.epsilon, statement.delta, statement.promise) if rated else NOT_RATED
        )


def _of_all(report: ReportContents, whole: PrivacyStatement) -> str:
    """What looking at the page has cost comes first, what one of its models costs alone stands
    beside it."""
    if whole.is_private:
        guarded, at = GUARDED[whole.promise.protects], delta_words(whole.delta)
        spent = at_most(whole.epsilon, whole.promise.epsilon)
        cost = f"Looking at all models of this page costs epsilon = {spent} at delta = {at}"
    else:
        guarded, cost = (
            "nothing",
            "Some models of this page are not private: nobody has a guarantee",
        )
    which = "the one shown in full" if names_in_full(report) else "one of them"
    return f"{cost}; {which} alone: {alone(report).replace('ε', 'epsilon')}; protected: {guarded}."


def _of_one(statement: PrivacyStatement) -> str:
    if not statement.is_private:
        return "Epsilon is infinite: nobody has a guarantee."
    of = (
        ""
        if not statement.promise.is_private
        else f" of a budget of {promised(statement.promise.epsilon)}"
    )
    epsilon = at_most(statement.epsilon, statement.promise.epsilon)
    spent = f"Epsilon = {epsilon}{of} was spent at delta = {delta_words(statement.delta)}"
    return f"{spent}; protected: {GUARDED[statement.promise.protects]}."


# Error


def _errors(report: ReportContents) -> Iterator[list[Clause]]:
    for section in report.tables:
        error = section.table.overall.rates["error"]
        if math.isnan(error.value):
            continue
        ends = (
            f"{percent(section.table.confidence)} interval "
            f"{_ends(error.low, error.high, 'percent')}"
        )
        rows = (
            f"Of {section.table.overall.rows:,} {section.of}, {with_unit(error.value, 'percent')} "
            f"are decided wrongly"
        )
        yield [
            Clause(f"{rows} ({ends})."),
            *_against(against_constant(section.table)),
            *_small(section),
        ]
    if report.baselines is not None:
        yield list(_in_training(report.baselines))
    elif not report.tables and report.method is not None:
        yield [Clause(ERROR_NOT_KNOWN)]


def _against(found: AgainstConstant | None) -> Iterator[Clause]:
    if found is None:
        return
    constant = (
        f"the best constant on these rows, always {_cut(found.answer)}, "
        f"{with_unit(found.error, 'percent')}"
    )
    if found.verdict == SAME:
        yield Clause(f"They are the decisions of {constant}.")
        return
    ends = (
        f"difference {number(found.difference, 'points')} points, "
        f"{_ends(found.low, found.high, 'points')}"
    )
    yield Clause(f"Against {constant} ({ends})", found.verdict)


def _small(section: GroupSection) -> Iterator[Clause]:
    small = sum(row.small for row in section.table.rows)
    if small:
        which = "1 group has" if small == 1 else f"{small} groups have"
        yield Clause(
            f"{which} fewer than {section.table.small_below} rows: rates of so few mean little."
        )


def _in_training(found: Baselines) -> Iterator[Clause]:
    unit: Unit = "percent" if found.unit == "error" else "plain"
    if found.error is not None:
        between = (
            "noise unknown" if found.noise is None else _between(found.error, found.noise, unit)
        )
        error = _of_noisy(found.error, unit)
        what = "are decided wrongly" if found.unit == "error" else f"is the {found.unit}"
        rows = "Of the training rows" if found.unit == "error" else "On the training rows"
        yield Clause(f"{rows}, {error} {what} ({between}).")
    if found.handed_out != "model":
        yield Clause(
            f"Handed out is not the model that was found, but {found.remark or found.handed_out}."
        )
    for one in found.lines:
        told = [f"Against {one.name}", *([one.remark] if one.remark else [])]
        told += [] if one.error is None else [_of_noisy(one.error, unit)]
        unfair = "" if one.fair else " (it does not keep the constraints as well)"
        yield Clause(f"{', '.join(told)}{unfair}", one.verdict)


def _between(value: float, noise: float, unit: Unit) -> str:
    reach = deviations(0.975) * noise
    ends = (_of_noisy(value - reach, unit), _of_noisy(value + reach, unit))
    return f"95% interval over the noise {ends[0].removesuffix(AFTER[unit])} to {ends[1]}"


def _of_noisy(value: float, unit: Unit) -> str:
    """Noise may carry a share below 0 or above 1, where no share is."""
    return with_unit(max(0.0, value if unit == "plain" else min(1.0, value)), unit)


def _worse_in_training(found: Baselines) -> Iterator[str]:
    unit: Unit = "percent" if found.unit == "error" else "plain"
    for one in found.lines:
        if one.worse and one.error is not None and found.error is not None:
            remark = f" ({one.remark})" if one.remark else ""
            told = f"{_of_noisy(found.error, unit)} against {_of_noisy(one.error, unit)}"
            yield (
                f"WORSE THAN {one.name.upper()}{remark}: {found.unit} {told} on the training rows, "
                f"through noise."
            )


def _worse_held_out(section: GroupSection) -> Iterator[str]:
    found = against_constant(section.table)
    if found is None:
        return
    if found.verdict == SAME:
        yield (
            f"A CONSTANT: the model decides all {section.table.overall.rows:,} {section.of} alike, "
            f"{_cut(found.answer)}."
        )
    elif found.verdict == "worse":
        error = with_unit(section.table.overall.rates["error"].value, "percent")
        told = (
            f"{error} of {section.of} are decided wrongly, {with_unit(found.error, 'percent')} by "
            f"answering"
        )
        yield f"WORSE THAN THE BEST CONSTANT: {told} always {_cut(found.answer)}."


# Other gaps


def _other_gaps(report: ReportContents, section: GroupSection) -> Iterator[Clause]:
    found = [one for one in gaps_of(section.table, report.gaps) if not one.required]
    if not found:
        return
    told = []
    for one in found[:MOST_GAPS]:
        name = (
            rate_words(one.rate)
            if section.table.positive is None
            else rate_words(one.rate.partition("[")[0])
        )
        most, least = (_cut(printable(row.group)) for row in (one.most, one.least))
        rates = [with_unit(row.rates[one.rate].value, "percent") for row in (one.most, one.least)]
        ends = f"{number(one.low, 'points')} to {number(one.high, 'points')}"
        told.append(
            f"{name[:1].lower()}{name[1:]} {with_unit(one.gap, 'points')} ({ends}; {most} "
            f"{rates[0]}, {least} {rates[1]})"
        )
    beside = (
        "other gaps" if any(one.required for one in gaps_of(section.table, report.gaps)) else "gaps"
    )
    yield Clause(
        f"Largest {beside} on {section.of}, with {percent(section.table.confidence)} intervals: "
        f"{', '.join(told)}."
    )


def _cut(name: str) -> str:
    return name if len(name) <= MOST_WORDS else f"{name[: MOST_WORDS - 1]}…"


# Frontiers


def _frontiers(report: ReportContents) -> Iterator[Clause]:
    if report.frontiers:
        published = sum(one.published for figure in report.frontiers for one in figure.series)
        beside = f", beside {count(published, 'published one')}" if published else ""
        yield Clause(
            f"The frontiers show {count(len(own_curves(report)), 'curve')} of this work{beside}."
        )
