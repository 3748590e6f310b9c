"""A report: a decision statement on top, then each result as a section; a page and its JSON twin.

The decision statement says, in one block: warnings, the certified or required bound with its verdict,
level and people, privacy on a named scale, the error and what the constraint costs, what was not
assessed, and lines to sign. The command line prints the same facts.

Guarantees (tests/show/test_show_report.py):
1. "met" and "certified" stand first only where every verdict about the constraint is so, or where it
   says of which rows; never of a model that is not shown to be better than one answer for everybody.
2. Page and twin hold the same numbers: both are made of the same parts.
3. Page and twin reach the disk both whole, or what was there before stays.
"""

from __future__ import annotations

import html
import math
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _checks
from .._reading import write_files
from .._verdicts import MET, NOT_MET, UNCLEAR, Verdict, deviations, of_interval, of_noisy
from ..core.errors import need
from .charts import Axis, Row, Rows, Rule
from .numbers import (
    FACTOR,
    STAMP_WORDS,
    at_most,
    delta_words,
    number,
    percent,
    printable,
    promised,
    with_unit,
)
from .numbers import ends as between
from .parts import Column, Fact, Facts, Note, Part, Shown, Table, dict_of, render
from .scale import strength

FORMAT, VERSION = "fairveil-report", 2
GUARDED = {"records": "records", "sensitive_features": "the sensitive columns only"}
SET_ASIDE = "The people set aside"
NOTHING_REQUIRED = "No fairness constraint was required."
NOT_RATED = "How strong that is cannot be said: anyone with the seed can take the noise away."
NEAR_THE_BOUND = (
    "More rows, a larger epsilon or a larger bound leave room to aim inside it; a plan says how "
    "much would do."
)
TOO_NOISY = "The noise is wider than the bound: more rows, a larger epsilon or a larger bound help."
NO_GROUPS = (
    "Rates by group are not known: no rows were held out, and the fit released no group's rates. "
    "What is measured on held-out rows is exact, and not private."
)
EXPECTED = "Rates are expected ones: this classifier is randomized, and one draw varies."
ELSEWHERE = (
    "Gaps between groups that were not named, whether labels are right, and whether people "
    "elsewhere are like those of the table."
)
BEST_CONSTANT, FREE = "the best constant", "no constraint"
CERTIFIED, NOT_CERTIFIED, CONSTANT = "certified", "not certified", "no verdict"
TRAINING = "on the training rows"
RATES: dict[str, tuple[str, ...]] = {
    "demographic parity": ("selection_rate",),
    "equal opportunity": ("true_positive_rate",),
    "equalized odds": ("true_positive_rate", "false_positive_rate"),
    "false positive rate parity": ("false_positive_rate",),
    "error rate parity": ("error",),
}
"""The rates that a notion compares."""
MOST_GAPS, MOST_LETTERS = 4, 60
LISTED = ("required", "people", "sections", "not_covered", "notes", "verify")
GAP = Axis("gap", "points")
Said = Fact | str
"""A fact without a verdict is its words."""


@dataclass(frozen=True)
class Requirement:
    """What was required of one gap or rate, and what is known of it: the noisy value in training, and
    the one of held-out people with its interval. None: not there.

    `training_noise`: the standard deviation of the noise. `training_verdict`: of all constraints of
    which `training_noisy` is the largest; None: that of the largest alone. `population_verdict`:
    about the people that the training rows were drawn from. `of`: whose value `held_out` is.
    `measure`: what is bounded, for what is no gap `Axis("rate", "percent")`. `sentence`: the constraint
    in words, without a full stop.
    """

    notion: str
    target: float | None
    training_noisy: float | None = None
    held_out: float | None = None
    held_out_low: float | None = None
    held_out_high: float | None = None
    confidence: float = 0.95
    notes: tuple[str, ...] = ()
    measure: Axis = GAP
    training_noise: float | None = None
    training_verdict: Verdict | None = None
    sentence: str = ""
    population_verdict: Verdict | None = None
    of: str = "held-out people"

    def __post_init__(self) -> None:
        seen = self.held_out, self.held_out_low, self.held_out_high
        known = [one for one in (self.target, self.training_noisy, *seen) if one is not None]
        fix = "Leave out what is undefined."
        need(all(map(math.isfinite, known)), "finite numbers", of=self.notion, got=known, fix=fix)
        value, noise = self.training_noisy, self.training_noise
        if None not in (self.target, value, noise) and self.training_verdict is None:
            told = of_noisy(value, self.target, noise, confidence=self.confidence)  # type: ignore[arg-type]
            _checks.normalise(self, training_verdict=told)

    @property
    def name(self) -> str:
        """What is bounded, such as "demographic parity gap"."""
        return f"{self.notion} {self.measure.name}"

    @property
    def held_out_verdict(self) -> Verdict | None:
        """Whether the people that the held-out ones were drawn from keep the bound; None: no bound,
        or not measured."""
        if self.target is None or self.held_out is None:
            return None
        return of_interval(self.held_out_low, self.held_out_high, self.target)

    @property
    def reach(self) -> float | None:
        """Half the interval of the training value over its noise."""
        known = self.training_noise
        return None if known is None else deviations(0.5 + self.confidence / 2) * known

    @property
    def training_ends(self) -> tuple[float, float] | None:
        """The interval of the training value over its noise."""
        value, reach, unit = self.training_noisy, self.reach, self.measure.unit
        if value is None or reach is None:
            return None
        return possible(value - reach, unit), possible(value + reach, unit)

    def chart(self) -> Rows:
        """The numbers that are often taken for one, under each other."""
        unit, noisy = self.measure.unit, self.training_noisy
        low, high = self.training_ends or (None, None)
        noisy = None if noisy is None else possible(noisy, unit)
        rows = (
            Row("training, noisy", noisy, low, high, hollow=True),
            Row(self.of, self.held_out, self.held_out_low, self.held_out_high),
        )
        rule = None
        if self.target is not None:
            rule = Rule(f"required: at most {with_unit(self.target, unit)}", self.target)
        known = tuple(row for row in rows if row.value is not None)
        title = f"{capital(self.name)}: required and measured"
        return Rows(title, Axis(self.name, unit), known, rule, self.confidence, half=True)


@dataclass(frozen=True)
class People:
    """A group table and whose it is: `of`, in the plural and without a number. `expected`: its rates
    are expected ones of a model that is randomized, not those of one draw."""

    table: Any
    of: str = "held-out people"
    expected: bool = False


@dataclass(frozen=True)
class Report(Shown):
    """A decision statement and the results that it rests on. Everything but the title may be left
    out.

    Parameters
    ----------
    title : str
        What it is about.
    subject : str, default=""
        A sentence or two on data and model.
    method : str, default=None
        How the model was found.
    statement : PrivacyStatement, default=None
        Of the model; where the page shows numbers of several, of all of them together.
    statement_file : str, default=None
        Where the statement lies beside the page.
    required : tuple of Requirement, default=()
        What was required, and what is known of it.
    people : tuple of People, default=()
        Group tables of people whom the fit did not see: exact, and not private.
    baselines : BaselineReport, default=None
        What the model was compared with in training.
    certificate : Certificate, default=None
        What holds for people outside the table.
    sections : tuple of (str, result), default=()
        Further results, each under its heading.
    not_covered, notes : tuple of str, default=()
        Sentences: beside the statement's own, and at the end.
    verify : tuple of str, default=()
        Commands.
    """

    title: str
    subject: str = ""
    method: str | None = None
    statement: Any = None
    statement_file: str | None = None
    required: tuple[Requirement, ...] = ()
    people: tuple[People, ...] = ()
    baselines: Any = None
    certificate: Any = None
    sections: tuple[tuple[str, Shown], ...] = ()
    not_covered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for of, text in (("title", self.title), ("subject", self.subject)):
            right = text.isprintable() and (text or of == "subject")
            fix = f"Say {of} in words, without line breaks."
            need(right, "words on one line", of=of, got=text, fix=fix)
        for of in LISTED:
            given = getattr(self, of)
            need(isinstance(given, list | tuple), "a list", of=of, got=given, fix=f"{of}=[...].")
            _checks.normalise(self, **{of: tuple(given)})

    def decision(self) -> tuple[Fact, ...]:
        """What a reader is told first, a fact a line; labels are empty where a fact goes on.

        Returns
        -------
        tuple of Fact
            Warnings, fairness, privacy, error, other gaps, and what was not assessed.
        """
        said: dict[str, Iterable[Said]] = {
            "Warning": dict.fromkeys(self._warned()),
            "Fairness": self._fairness(),
            "Privacy": self._privacy(),
            "Error": self._error(),
            "Other gaps": self._other_gaps(),
            "Not assessed": self._not_assessed(),
        }
        out: list[Fact] = []
        for label, lines in said.items():
            for at, line in enumerate(lines):
                one = Fact("", line) if isinstance(line, str) else line
                out.append(one._replace(label=one.label or label * (not at)))
        return tuple(out)

    def parts(self) -> Iterator[Part]:
        """The decision, then each section."""
        yield Facts(self.decision())
        for heading, parts in self.under():
            yield Note(heading)
            yield from parts

    def under(self) -> Iterator[tuple[str, list[Part]]]:
        """Each section: its heading and its parts."""
        if self.certificate is not None:
            yield "What is certified", list(self.certificate.parts())
        if self.required:
            charts = [chart for one in self.required if (chart := one.chart()).rows]
            notes = [Note(note) for one in self.required for note in one.notes]
            yield "Required and measured", [*_table_of(self.required), *charts, *notes]
        for one in self.people:
            yield f"Group by group: {one.of}", [*one.table.parts(), *self._gaps_table(one)]
        if not self.people and self.method is not None:
            yield "Group by group", [Note(NO_GROUPS)]
        if self.baselines is not None:
            yield "Compared with", list(self.baselines.parts())
        for heading, result in self.sections:
            yield heading, list(result.parts())
        if self.statement is not None:
            yield "Privacy statement", list(self.statement.parts())
        uncovered = self._uncovered()
        if uncovered:
            yield "What is not covered", [Note(one) for one in uncovered]
        yield "How to verify", [Facts.of(self._commands())]
        if self.notes:
            yield "Notes", [Note(one) for one in self.notes]

    def to_dict(self) -> dict[str, Any]:
        """Describe the report as plain JSON values: what the page shows, unrounded.

        Returns
        -------
        dict
            Title, decision, sections; the statement and the tables of people as they are.
        """
        gaps = []
        for one in self.required:
            told = {name: value for name, value in vars(one).items() if name != "measure"}
            told |= {"name": one.name, "unit": one.measure.unit}
            gaps.append(told | {"held_out_verdict": one.held_out_verdict})
        results = ("certificate", "statement")
        return {
            "format": FORMAT,
            "version": VERSION,
            **_checks.named(self, ("title", "subject", "method")),
            "decision": [one._asdict() for one in self.decision()],
            "sections": [{"heading": name, "parts": dict_of(x)} for name, x in self.under()],
            "results": {heading: result.to_dict() for heading, result in self.sections},
            "gaps": gaps,
            "tables": [
                {"of": one.of, "expected": one.expected, **one.table.to_dict()}
                for one in self.people
            ],
            **{name: x and x.to_dict() for name, x in _checks.named(self, results).items()},
        }

    def to_html(self, title: str | None = None) -> str:
        """Write the report as a page that needs no network.

        Parameters
        ----------
        title : str, default=None
            Title of the page. None: the report's.

        Returns
        -------
        str
            The page.
        """
        signed = bool(self.required or self.method or self.certificate is not None)
        about = _checks.named(self, ("subject", "method"))
        return render(title or self.title, self.under(), self.decision(), signed=signed, **about)

    def _repr_html_(self) -> str:
        page, title = html.escape(self.to_html(), quote=True), html.escape(self.title)
        return f'<iframe title="{title}" srcdoc="{page}" width="100%" height="800"></iframe>'

    def write(self, path: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Write the page (`report.html`, or a folder for it) and its JSON twin beside it.

        Both are made in memory first: bad input, a full disk or an interruption leave what was
        there.

        Parameters
        ----------
        path : path
            File that ends in .html, or a folder. Files of these names are replaced.

        Returns
        -------
        tuple of Path
            The page, and the twin.
        """
        target = Path(path)
        target = target / "report.html" if target.is_dir() else target
        right, what = target.suffix.lower() in (".html", ".htm"), "a file that ends in .html, or a"
        fix = "Name the file report.html, for example."
        need(right, f"{what} folder", of="path", got=str(target), fix=fix)
        twin = target.with_suffix(".json")
        contents = {twin: self.to_json(), target: self.to_html()}
        bad = [one for text in contents.values() for one in text if "\ud800" <= one <= "\udfff"]
        fix = "Use texts that can be written as UTF-8."
        need(not bad, "letters that can be written", of="report", got=bad[:1], fix=fix)
        target.parent.mkdir(parents=True, exist_ok=True)
        for file in contents:
            free, fix = not file.is_dir(), "Pass another path."
            need(free, "a file name that is free", of="path", got=str(file), fix=fix)
        write_files(contents)
        return target, twin

    # what must not be overlooked

    def _warned(self) -> Iterator[str]:
        for _, result in self.sections:
            yield from getattr(result, "warnings", ())
        if self.baselines is not None:
            yield from _worse(self.baselines)
        for one in self.people:
            found, table = one.table.against_constant(), one.table
            verdict = "" if found is None else found.verdict
            if verdict == "the same":
                rows = f"{table.overall.rows:,} {one.of}"
                yield f"A CONSTANT: the model decides all {rows} equally, {cut(found.answer)}."
            elif verdict == "worse":
                error = with_unit(table.overall.rates["error"].value, "percent")
                mine, theirs = f"{error} of {one.of}", with_unit(found.error, "percent")
                told = f"{mine} are decided wrongly, {theirs} by answering always"
                yield f"WORSE THAN THE BEST CONSTANT: {told} {cut(found.answer)}."
        if (told := self.statement) is not None:
            yield from (f"{STAMP_WORDS[stamp]}." for stamp in told.stamps)
            if told.promise.is_private and told.epsilon > told.promise.epsilon:
                yield "MORE WAS SPENT THAN THE BUDGET."

    # fairness

    @property
    def constant(self) -> str | None:
        """That the model is one answer for everybody, or not shown to be better than one: it keeps
        bounds on rates without being fair. None where it is better, or nothing is known."""
        known = filter(None, (one.table.against_constant() for one in self.people))
        told = {found.verdict: found.answer for found in known}
        if "the same" in told:
            return f"The model is a constant, always {cut(told['the same'])}"
        if self.baselines is None or "better" in told:
            return None
        if self.baselines.handed_out == "constant":
            return f"The model is a constant, {printable(self.baselines.remark)}"
        for one in self.baselines.lines:
            if one.name == BEST_CONSTANT and one.fair:
                said = f"The model is not shown to be better than a constant, {one.remark}"
                return None if one.verdict == "better" else printable(said)
        return None

    def _fairness(self) -> Iterator[Said]:
        certified = self._certified()
        for one in self.required:
            yield from self._of_one(one, certified.pop(one.sentence, None))
        for sentence, fact in certified.items():
            yield Fact("Fairness", f"Required: {sentence}.", fact.verdict)
            yield fact
        if not self.required and self.certificate is None and self.method is not None:
            yield NOTHING_REQUIRED

    def _certified(self) -> dict[str, Fact]:
        """What the people set aside say of each constraint, by its sentence."""
        found, out = self.certificate, dict[str, Fact]()
        for words, bound in zip(found.sentences, found.bounds, strict=True) if found else ():
            asked, _, told = words.partition(": ")
            people = f"{SET_ASIDE} ({found.people:,.0f}, as released)"
            said = f"{people}: {told}, with {percent(found.confidence)} confidence."
            out[asked] = Fact("", said, CERTIFIED if bound.certified else NOT_CERTIFIED)
        return out

    def _of_one(self, one: Requirement, certified: Fact | None) -> Iterator[Said]:
        """The bound and the verdict about it, then what that rests on, a line each."""
        unit, target, sure = one.measure.unit, one.target, percent(one.confidence)
        known = {
            TRAINING: one.training_verdict,
            "for the people that they were drawn from": one.population_verdict,
            "on held-out people": one.held_out_verdict,
        }
        at = "" if target is None else f", required: at most {with_unit(target, unit)}"
        asked = f"Required: {one.sentence}." if one.sentence else f"{capital(one.name)}{at}."
        if self.constant is not None:
            yield Fact("Fairness", f"{self.constant}. {asked}", CONSTANT)
        else:
            said = overall(known, None if certified is None else certified.verdict)
            yield Fact("Fairness", asked, said)
        if certified is not None:
            yield certified
        if one.population_verdict is not None:
            drawn = "The people that the training rows were drawn from."
            yield Fact("", drawn, one.population_verdict)
        if one.training_noisy is not None:
            ends, shown = one.training_ends, with_unit(possible(one.training_noisy, unit), unit)
            within = "noise unknown"
            if ends is not None:
                within = f"{sure} interval over the noise {between(*ends, unit)}"
            over = one.training_noisy - (math.inf if target is None else target)
            close = over > 0 and shown == with_unit(target or 0.0, unit)
            by = f" Above its bound by {over * FACTOR.get(unit, 1.0):.2g}."
            by *= close and one.training_verdict == NOT_MET
            yield Fact("", f"Training rows: {shown} ({within}).{by}", one.training_verdict or "")
        if one.held_out is not None:
            shown, low, high = with_unit(one.held_out, unit), one.held_out_low, one.held_out_high
            if low is not None and high is not None:
                shown += f" ({sure} interval {between(low, high, unit)})"
            words = f"{capital(one.of)}{self._rows}: {shown}."
            yield Fact("", words, one.held_out_verdict or "")
        if certified is None and UNCLEAR in (one.training_verdict, one.population_verdict):
            yield from _inconclusive(one)

    @property
    def _rows(self) -> str:
        """How many people were held out, and in the smallest group."""
        if not self.people:
            return ""
        whole, rows = self.people[0].table.overall.rows, self.people[0].table.rows
        least = f"; {min(row.rows for row in rows):,} in the smallest group" if rows[1:] else ""
        return f" ({whole:,}{least})"

    # privacy

    def _privacy(self) -> Iterator[Said]:
        whole = self.statement
        if whole is None:
            return
        yield _spent(whole)
        if whole.is_private:
            seeded = whole.noise != "secure"
            yield NOT_RATED if seeded else strength(whole.epsilon, whole.delta, whole.promise)
        if whole.ledger is not None:
            line = f"line {whole.ledger.entry} of the ledger of {whole.ledger.dataset}"
            yield f"Recorded as {line}."

    # error

    def _error(self) -> Iterator[Said]:
        for one in self.people:
            table, error = one.table, one.table.overall.rates["error"]
            if math.isnan(error.value):
                continue
            ends = (
                f"{percent(table.confidence)} interval {between(error.low, error.high, 'percent')}"
            )
            rows = f"Of {table.overall.rows:,} {one.of}, {with_unit(error.value, 'percent')}"
            yield f"{rows} are decided wrongly ({ends})."
            yield from _against(table.against_constant())
            small = sum(row.small for row in table.rows)
            if small:
                which = "1 group has" if small == 1 else f"{small} groups have"
                yield f"{which} fewer than {table.small_below} rows: rates of so few mean little."
        if self.baselines is not None:
            yield from _in_training(self.baselines, beside=bool(self.people))
        elif not self.people and self.method is not None:
            yield "Not known: no rows were held out, and the fit released none."

    # other gaps

    def _gaps(self, people: People) -> list[Any]:
        bounded = [RATES.get(one.notion, ()) for one in self.required if one.target is not None]
        return list(people.table.gaps({rate for rates in bounded for rate in rates}))

    def _other_gaps(self) -> Iterator[Said]:
        for people in self.people:
            table, found, told = people.table, self._gaps(people), list[str]()
            others = [one for one in found if not one.required]
            for one in others[:MOST_GAPS]:
                name = one.words(short=table.positive is not None).lower()
                rates = [
                    f"{cut(who.name)} {with_unit(who.rates[one.rate].value, 'percent')}"
                    for who in (one.most, one.least)
                ]
                ends = f"{number(one.low, 'points')} to {number(one.high, 'points')}"
                told.append(f"{name} {with_unit(one.gap, 'points')} ({ends}; {', '.join(rates)})")
            which = f"Largest {'other ' * (len(others) < len(found))}gaps on {people.of}"
            if told:
                yield f"{which}, with {percent(table.confidence)} intervals: {', '.join(told)}."

    def _gaps_table(self, people: People) -> Iterator[Part]:
        found = self._gaps(people)
        if not found:
            return
        gaps, low, high = zip(*((one.gap, one.low, one.high) for one in found), strict=True)
        columns = (
            Column("rate", tuple(one.words() for one in found)),
            Column("gap", gaps, "points", low, high),
            Column("largest_in", tuple(one.most.name for one in found)),
            Column("smallest_in", tuple(one.least.name for one in found)),
            Column("required", tuple("yes" if one.required else "no" for one in found)),
        )
        yield Table(columns, "Gaps of every rate: the largest difference of two groups")
        if people.expected:
            yield Note(EXPECTED)

    # what was not assessed

    def _not_assessed(self) -> Iterator[str]:
        if self.method is None and not self.required:
            return
        if self.certificate is None:
            yield "No bound is certified for people outside the table."
        if not self.people and self.certificate is not None:
            yield "The error of people outside the table: no rows were held out."
        elif not self.people:
            yield "No held-out people were measured: their error and their gaps are not known."
        yield ELSEWHERE

    def _uncovered(self) -> list[str]:
        exact = "exact counts and rates of these rows, without noise."
        found = [*self.not_covered, *(f"The group table ({x.of}): {exact}" for x in self.people)]
        if any(one.held_out is not None for one in self.required):
            found.append("The held-out values: measured exactly on the rows that were held out.")
        if self.statement is None and not self.sections:
            found.append("Everything: no privacy statement was passed to this page.")
        return found

    def _commands(self) -> Iterator[tuple[str, str]]:
        if self.statement_file is not None:
            file = shlex.quote(self.statement_file)
            yield "recompute epsilon from the events listed", f"fairveil verify {file}"
            if self.statement is not None and self.statement.ledger is not None:
                command = f"fairveil ledger check LEDGER --statement {file}"
                yield "look the release up in its ledger", command
        yield from (("run", command) for command in self.verify)
        yield "every number, unrounded", "the JSON file beside this page"


def overall(known: dict[str, Verdict | None], certified: str | None) -> str:
    """The verdict that stands first. It is never better than one of those that it is made of.

    >>> overall({"on the training rows": "met", "on held-out people": "met"}, None)
    'met'
    >>> overall({"on the training rows": "met", "on held-out people": None}, None)
    'met on the training rows'
    >>> overall({"on the training rows": "met", "on held-out people": "not met"}, "certified")
    'certified, not met on held-out people'
    """
    told = {where: verdict for where, verdict in known.items() if verdict is not None}
    if certified is not None:
        against = next((where for where, one in told.items() if one == NOT_MET), None)
        return certified if against is None else f"{certified}, not met {against}"
    for worst in (NOT_MET, UNCLEAR):
        if worst in told.values():
            return worst
    outside = [where for where in told if where != TRAINING]
    return "" if not told else MET if outside else f"{MET} on the training rows"


def _table_of(required: Sequence[Requirement]) -> Iterator[Table]:
    """Every number, a line a constraint; a table for each unit."""
    for unit in dict.fromkeys(one.measure.unit for one in required):
        found = [one for one in required if one.measure.unit == unit]
        low, high = zip(*(one.training_ends or (None, None) for one in found), strict=True)
        names = ("target", "training_noisy", "held_out", "held_out_low", "held_out_high")
        target, noisy, held, least, most = (
            tuple(getattr(one, name) for one in found) for name in names
        )
        columns = (
            Column("constraint", tuple(one.sentence or one.name for one in found)),
            Column("at_most", target, unit, missing="-"),
            Column("training_noisy", noisy, unit, low, high, missing="-"),
            Column("held_out", held, unit, least, most, missing="not measured"),
        )
        yield Table(columns, "What was required, and what was measured of it")


def _inconclusive(one: Requirement) -> Iterator[Said]:
    """How near the bound the value is, why, and what helps."""
    noisy, reach, target, unit = one.training_noisy, one.reach, one.target, one.measure.unit
    if noisy is None or reach is None or target is None:
        return
    value, required = possible(noisy, unit), with_unit(target, unit)
    if one.training_verdict != UNCLEAR:  # the noise alone leaves no doubt
        why = f"{with_unit(value, unit)} on the training rows, required {required}, and who is in"
        whom = "Inconclusive for the people that they were drawn from"
        yield f"{whom}: {why} the table is chance, too. {NEAR_THE_BOUND}"
        return
    near = f"{number(value, unit)} ± {with_unit(reach, unit)} over the noise, required {required}"
    yield f"Inconclusive: {near}. {NEAR_THE_BOUND if reach < target else TOO_NOISY}"


def _spent(statement: Any) -> str:
    if not statement.is_private:
        return "Epsilon is infinite: nobody has a guarantee."
    promise = statement.promise
    of = f" of a budget of {promised(promise.epsilon)}" if promise.is_private else ""
    epsilon, delta = at_most(statement.epsilon, promise.epsilon), delta_words(statement.delta)
    whom = f"{GUARDED[promise.protects]}, {promise.neighbours}"
    return f"Epsilon = {epsilon}{of} was spent at delta = {delta}; protected: {whom}."


def _against(found: Any) -> Iterator[Said]:
    if found is None:
        return
    error = with_unit(found.error, "percent")
    constant = f"the best constant on these rows, always {cut(found.answer)}, {error}"
    if found.verdict == "the same":
        yield f"They are the decisions of {constant}."
        return
    by = f"{number(found.difference, 'points')} points"
    ends = between(found.low, found.high, "points")
    yield Fact("", f"Against {constant} (difference {by}, {ends}).", found.verdict)


def _in_training(found: Any, *, beside: bool) -> Iterator[Said]:
    """What the fit released of its error and of what the constraint costs. `beside`: held-out people
    stand above, and "Compared with" has the rest."""
    unit = "percent" if found.unit == "error" else "plain"
    if math.isfinite(found.error) and not beside:
        reach, within = deviations(0.975) * found.noise, "noise unknown"
        if math.isfinite(reach):
            ends = possible(found.error - reach, unit), possible(found.error + reach, unit)
            within = f"95% interval over the noise {between(*ends, unit)}"
        error = with_unit(possible(found.error, unit), unit)
        said = f"Of the training rows, {error} are decided wrongly"
        said = said if unit == "percent" else f"On the training rows, {error} is the {found.unit}"
        yield f"{said} ({within})."
    if found.handed_out != "model":
        yield f"Returned is not the model that was found, but {found.remark or found.handed_out}."
    for one in found.lines:
        remark = f", {one.remark}" if one.remark else ""
        known = math.isfinite(one.error)
        about = f"Against {one.name}{remark}"
        about += f", {with_unit(possible(one.error, unit), unit)}" if known else ""
        unfair = "" if one.fair else " (it satisfies the constraints less well)"
        if one.name == FREE:
            yield f"{about}: {found.cost(one)}."
        elif not beside:
            yield Fact("", f"{about}{unfair}.", one.verdict)


def _worse(found: Any) -> Iterator[str]:
    unit = "percent" if found.unit == "error" else "plain"
    for one in found.worse:
        both = one.error, found.error
        if all(map(math.isfinite, both)):
            theirs, mine = (with_unit(possible(value, unit), unit) for value in both)
            head = f"WORSE THAN {one.name.upper()}{f' ({one.remark})' if one.remark else ''}"
            told = f"{found.unit} {mine} against {theirs} on the training rows, through noise"
            yield f"{head}: {told}."


def possible(value: float, unit: str) -> float:
    """Noise may carry a share below 0 or above 1, where no share is."""
    return max(0.0, value if unit == "plain" else min(1.0, value))


def cut(name: str) -> str:
    """A group's name or an answer, in a line."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def capital(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
