"""Commands about what holds: `audit`, `certify`, `lda`, `monitor`, `attack`, `verify`, `reproduce`,
`sign`."""

from __future__ import annotations

import importlib
import math
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .._verdicts import MET, NOT_MET, UNCLEAR, of_interval
from .._waiting import waiting
from .files import (
    named,
    opened,
    passphrase,
    print_facts,
    print_json,
    print_lines,
    require_files,
    require_words,
    typed,
    warnings_as_notes,
    write_file,
)
from .files import price as price_of
from .frame import Ask, command, no, wrong
from .words import PASSPHRASE_VARIABLE

EXACT = "exact counts of these rows: nothing in this table is private"
EXPECTED = "expected rates: this classifier is randomized, and one draw varies around them"
ONLY_NOISY = "delta confidence intervals depth protects seed ledger dataset purpose"
LARGEST = 64 << 20
CONSISTENT = {
    "released groups": "the release costs no more than the stated epsilon",
    "certificate": "the bounds follow from the counts and their noise",
    "private table": "the intervals follow from the counts and their noise",
    "search record": "every interval and verdict follows from the counts and the plan",
}
PROVES = "This does not prove who wrote it, nor that the events happened."
BY_KEY = "It was signed with that key: its holder stands by it, not that the events happened."


def _whose(ask: Ask, model: object) -> None:
    if (ask.prediction is None) == (model is None):
        remedy = "Say whose decisions: --prediction COLUMN, or a model."
        got = "none" if model is None else "both"
        raise wrong("prediction", "one of a model and --prediction", got, remedy)


@command(
    "Evidence",
    """TABLE --target --sensitive --prediction --model --constraint --epsilon --out | --schema --groups
    --query --delta --confidence --intervals --depth --protects --seed --ledger --dataset
    --purpose --json --force""",
    "fairveil audit t.csv --target hired --prediction decided --sensitive sex",
    "fairveil audit t.csv --model model --constraint demographic_parity:0.1",
    "fairveil audit t.csv --model model --epsilon 1 --out audit.html",
)
def audit(ask: Ask) -> None:
    """Show error and rates of every group, with counts and intervals; small groups are flagged. Of a
    randomized classifier the rates are expected ones.

    With --epsilon everything comes from one noisy count, and one draw of a randomized classifier.

    Exit status: 0, or 1 when a --constraint is not met on these rows, or undefined; 2 refused.
    """
    _whose(ask, ask.model)
    files = require_files(ask.out, force=ask.force, endings=(".html", ".json"))
    if ask.epsilon is None:
        for option in named(ask, ONLY_NOISY.replace("ledger", "")):
            remedy = "Add --epsilon 1, for example, for a table with noise, or leave it out."
            raise wrong(option, "--epsilon beside it", "none", remedy)
    elif ask.constraint:
        remedy = "fairveil certify says whether a bound holds, from private counts."
        raise wrong("constraint", "no --epsilon beside it", ask.constraint[0], remedy)
    from ..fairness.notions import parse

    notions = [parse(text) for text in ask.constraint or ()]
    if ask.epsilon is not None:
        _private_audit(ask, files)
        return
    from ..fairness import DemographicParity, EqualizedOdds
    from .models import decisions_of
    from .results import bound_of, measure, table_of, words_of
    from .tables import Place

    place, how = Place(ask.table, ask.query), ask.groups or "product"
    with waiting("Measuring"):
        truth, decisions, classes, expected = decisions_of(ask, place)
        table = table_of(truth, decisions, groups=how, classes=classes)
        usual = (DemographicParity(None, groups=how), EqualizedOdds(None, groups=how))
        found = [
            (one, bound_of(one), measure(one, truth, decisions, groups=how, classes=classes))
            for one in (*usual, *notions)
        ]
    holds = [one.value <= (bound or 0.0) + 1e-9 for _, bound, one in found[2:]]
    plain = _plain(table, found, holds, expected)
    if ".json" in files:
        write_file(files[".json"], _as_json(plain))
    if ".html" in files:
        lines = {words_of(one): (bound, seen) for one, bound, seen in found}
        write_file(files[".html"], _page(table, lines, place.shown, expected))
    if ask.json:
        print_json(plain)
    else:
        print_lines(f"{table}\n")
        for at, (notion, bound, one) in enumerate(found):
            click.echo(_gap_words(words_of(notion), bound, one, at < 2 or holds[at - 2]))
        click.echo(f"({EXACT}{f'; {EXPECTED}' if expected else ''})")
    _say_written(files, ask)
    if not all(holds):
        no()


def _gap_words(words: str, bound: float | None, one: Any, holds: bool) -> str:
    gap = f"{one.value:.4f} (95% interval {one.low:.4f} to {one.high:.4f})"
    told = f"{MET if holds else NOT_MET} on these rows"
    if math.isnan(one.value):
        gap, told = "undefined: a group has no row of a kind that should be compared", UNCLEAR
    elif bound is not None:
        told += f", {of_interval(one.low, one.high, bound)} for people like them"
    return f"{words} gap: {gap}" if bound is None else f"{words} <= {bound:g}: {gap}: {told}"


def _plain(table: Any, found: Any, holds: list[bool], expected: bool) -> dict[str, Any]:
    def numbers(one: Any) -> dict[str, Any]:
        return {name: None if math.isnan(value) else value for name, value in vars(one).items()}

    asked = [
        {
            "notion": notion.to_dict(),
            "holds": None if math.isnan(one.value) else held,
            "verdict": of_interval(one.low, one.high, bound),
        }
        | numbers(one)
        for (notion, bound, one), held in zip(found[2:], holds, strict=True)
    ]
    return {
        "table": table.to_dict(),
        "gaps": {notion.kind.replace("_", " "): numbers(one) for notion, _, one in found[:2]},
        "constraints": asked,
        "expected": expected,
        "private": False,
    }


def _page(table: Any, lines: dict[str, Any], source: str, expected: bool) -> str:
    from ..show.report import People, Report, Requirement

    required = tuple(
        Requirement(words, bound, None, one.value, one.low, one.high)
        for words, (bound, one) in lines.items()
        if not math.isnan(one.value)
    )
    undefined = [words for words, (_, one) in lines.items() if math.isnan(one.value)]
    return Report(
        "Decisions, group by group",
        subject=f"Measured on {source}: {EXACT}.",
        required=required,
        people=(People(table, "audited people", expected),),
        notes=tuple(f"The {words} gap is undefined on these rows." for words in undefined),
    ).to_html()


def _as_json(plain: object) -> str:
    import json

    return json.dumps(plain, indent=2, allow_nan=False) + "\n"


def _say_written(files: dict[str, Path], ask: Ask) -> None:
    for path in files.values():
        click.echo(f"Written: {path}", err=bool(ask.json))


def _private_audit(ask: Ask, files: dict[str, Path]) -> None:
    """Count once, with noise, and show everything that follows."""
    from ..estimators import private_audit
    from ..statement.form import READ_FROM_DATA
    from .models import drawn_decisions
    from .tables import Place

    book, place = opened(ask), Place(ask.table, ask.query)
    given = dict(named(ask, "epsilon delta confidence intervals depth protects"))
    if ask.groups == "marginal":
        given.setdefault("depth", 1)
    with waiting("Reading the table"):
        truth, made = drawn_decisions(ask, place)
    with warnings_as_notes(), waiting("Counting, and finding every interval"):
        found = private_audit(
            made,
            None,
            truth.labels,
            sensitive_features=truth.groups or None,
            random_state=ask.seed,
            ledger=book,
            **given,
        )
    if ".json" in files:
        found.write(files[".json"], overwrite=ask.force)
    if ".html" in files:
        from ..show.report import Report

        subject = f"Decisions of {found.model}, counted once with noise: {place.shown}."
        sections = (("Group by group, from private counts", found),)
        title, statement = "Decisions, group by group", found.privacy_
        page = Report(title, subject, statement=statement, sections=sections)
        write_file(files[".html"], page.to_html())
    if ask.json:
        click.echo(found.to_json(), nl=False)
    else:
        print_lines(f"{found}\n")
        for level, gaps in found.gaps.items():
            names = " and ".join(found.layout.cells.names[at] for at in level)
            for gap in gaps:
                print_lines(f"widest difference among groups of {names}, {gap}".replace("_", " "))
        statement = found.privacy_
        click.echo(
            f"({price_of(statement)}, {statement.promise.neighbours}; {found.ABOUT_ROWS}; "
            f"{found.ABOUT_PEOPLE})"
        )
        read = [one.name for one in statement.facts if one.origin == READ_FROM_DATA]
        if read:
            click.echo(
                f"NOT COVERED: {', '.join(read)}. They were read from these rows, so that a "
                f"value that one person alone has shows that person."
            )
    _say_written(files, ask)


@command(
    "Evidence",
    """MODEL TABLE --constraint --epsilon --confidence=0.95 --out | --prediction --target --sensitive
    --delta=0 --protects=records --query --seed --ledger --dataset --purpose --json
    --force""",
    "fairveil certify m t.csv --constraint demographic_parity:5% --epsilon 1",
    "fairveil certify m t.csv --constraint selection_rate_ratio:0.8 --epsilon 1",
    "fairveil certify m t.csv --constraint equalized_odds:5% --epsilon 1 --out c.json",
)
def certify(ask: Ask) -> None:
    """Certify that constraints hold for people like those of TABLE, whom the model has not seen, from
    one private count.

    Exit status: 0 certified; 1 not certified, which costs the same budget; 2 refused, nothing spent.
    """
    _whose(ask, None if ask.model == "-" else ask.model)
    if ask.epsilon is None:
        remedy = "Pass --epsilon 1; --epsilon inf for people who are public or have consented."
        raise wrong("epsilon", "a privacy budget", "none", remedy)
    files = require_files(ask.out, force=ask.force, endings=(".json", ".html"))
    from ..estimators import certify as certified
    from ..estimators.counted import notions_of
    from .models import drawn_decisions
    from .tables import Place

    notions, book = notions_of(ask.constraint or ()), opened(ask)
    place = Place(ask.table, ask.query)
    with waiting("Reading the table"):
        truth, made = drawn_decisions(ask, place)
    with warnings_as_notes(), waiting("Certifying"):
        found = certified(
            made,
            None,
            truth.labels,
            sensitive_features=truth.groups or None,
            constraints=notions,
            random_state=ask.seed,
            ledger=book,
            **named(ask, "confidence epsilon delta protects"),
        )
    if ".json" in files:
        found.write(files[".json"], overwrite=ask.force)
    if ".html" in files:
        from ..show.report import Report

        subject = f"Decisions of {found.model} about people set aside: {place.shown}."
        page = Report("Certificate", subject, statement=found.privacy_, certificate=found)
        write_file(files[".html"], page.to_html())
    if ask.json:
        click.echo(found.to_json(), nl=False)
    else:
        head = "certified" if found.certified else "not certified"
        print_facts(
            ("verdict", f"{head}, with {found.confidence:.6g} confidence"),
            *(
                ("" if bound.certified else "failed", words)
                for bound, words in zip(found.bounds, found.sentences, strict=True)
            ),
            ("people", f"{found.people:,.0f} set aside, as released"),
            ("privacy", f"{price_of(found.privacy_)}, {found.privacy_.promise.neighbours}"),
            *(("assumed" * (not at), words) for at, words in enumerate(found.assumptions)),
        )
    _say_written(files, ask)
    if not found.certified:
        no()


@command(
    "Evidence",
    """TABLE --candidate! --tolerance! --epsilon! --out | --model --prediction --target --sensitive
    --schema --query --measure=adverse_impact_ratio --costs --reference --smallest --draws
    --confidence=0.95 --delta=0 --protects=records --plan --key --seed --ledger --dataset
    --purpose --json --force""",
    "fairveil lda t.csv --prediction now --candidate new=new --tolerance 0.01 --epsilon 1",
    "fairveil lda t.csv --model m --candidate fair=m2 --tolerance 0.01 --epsilon 1 --out p.html",
    "fairveil verify record.json",
)
def lda(ask: Ask) -> None:
    """Search among candidates for a less discriminatory alternative of equal use, on people whom no
    model has seen, by one private count.

    Exit status: 0 one was shown; 1 none was, which costs the same budget; 2 refused, nothing spent.
    """
    _whose(ask, ask.model)
    files = require_files(ask.out, force=ask.force, endings=(".json", ".html"))
    pairs = [text.partition("=")[::2] for text in ask.candidate]
    if not all(name and what for name, what in pairs):
        remedy = "Pass --candidate new=decided, for example: a name, and a column or a folder."
        raise wrong("candidate", "NAME=COLUMN or NAME=FOLDER", list(ask.candidate), remedy)
    first, colon, second = (ask.costs or "1:1").partition(":")
    from ..estimators import lda as search
    from .models import drawn_decisions
    from .tables import Place

    place, book = Place(ask.table, ask.query), opened(ask)

    def made(prediction: str | None, model: str | None) -> Any:
        asked = Ask(**{**vars(ask), "prediction": prediction, "model": model})
        truth, found = drawn_decisions(asked, place)
        return truth, found if prediction is None else replace(found, name=f"column {prediction}")

    with waiting("Reading the table"):
        truth, base = made(ask.prediction, ask.model)
        found = {
            name: made(*((None, what) if Path(what).is_dir() else (what, None)))[1]
            for name, what in pairs
        }
    listed = {str(one): one for column in truth.groups.values() for one in set(column.tolist())}
    try:
        costs = float(first), float(second if colon else "nan")
    except ValueError:
        raise wrong("costs", "two numbers", ask.costs, "Pass --costs 1:5.") from None
    with warnings_as_notes(), waiting("Searching"):
        result = search(
            base,
            None,
            truth.labels,
            sensitive_features=truth.groups,
            candidates=found,
            costs=costs,
            reference=listed.get(ask.reference, ask.reference),
            draws=ask.draws,
            random_state=ask.seed,
            ledger=book,
            **named(
                ask,
                "tolerance measure smallest confidence epsilon delta protects plan key",
            ),
        )
    if ".json" in files:
        result.write(files[".json"], key=ask.key, overwrite=ask.force)
    if ".html" in files:
        title = "Search for a less discriminatory alternative"
        write_file(files[".html"], result.to_html(title))
    print_lines(result.to_json().rstrip("\n") if ask.json else str(result))
    _say_written(files, ask)
    if result.taken is None:
        no()


@command(
    "Evidence",
    """STATE TABLE? --period --prediction --target --constraint --group --classes --epsilon | --delta
    --false-alarm --unit --max-periods-per-unit --query --seed --ledger --dataset --purpose --json""",
    "fairveil monitor m --constraint ... --group sex:f,m --classes 0,1 --epsilon 1",
    "fairveil monitor m may.csv --period 2026-05 --prediction decided",
    "fairveil monitor m",
)
def monitor(ask: Ask) -> None:
    """Watch decisions after release: count each period once with noise, and raise an alarm when a
    constraint broke.

    Exit status: 0 no alarm; 1 alarm; 2 refused, nothing counted.
    """
    names = (
        "group classes false_alarm epsilon delta unit max_periods_per_unit ledger dataset purpose"
    )
    if not ask.constraint:
        for option, value in named(ask, names).items():
            if value:
                remedy = "It is fixed when a monitor begins: --constraint demographic_parity:10%."
                raise wrong(option, "--constraint beside it", "none", remedy)
    if ask.table is not None and (ask.period is None or ask.prediction is None):
        of = "period" if ask.period is None else "prediction"
        remedy = "Pass --period 2026-05 --prediction decided, for example."
        raise wrong(of, "a value beside TABLE", "none", remedy)
    groups = _groups(ask.group or [])
    from ..estimators import Monitor

    if ask.constraint:
        found = Monitor.create(
            ask.state,
            ask.constraint,
            groups=groups,
            classes=_values(ask.classes or "", "classes"),
            epsilon=ask.epsilon,
            ledger=opened(ask),
            **named(ask, "false_alarm delta unit max_periods_per_unit"),
        )
    else:
        found = Monitor.open(ask.state)
    if ask.table is not None:
        _count(found, ask)
    print_lines(found.to_json().rstrip("\n") if ask.json else str(found))
    if found.alarm is not None:
        no()


def _count(found: Any, ask: Ask) -> None:
    from .tables import Place, picked

    place, unit = Place(ask.table, ask.query), found.watched.promise.unit
    labels, whose = [ask.target] if ask.target else [], [] if unit is None else [unit.name]
    known = dict(zip(found.watched.cells.names, found.watched.cells.columns, strict=True))
    known |= dict.fromkeys((ask.prediction, *labels), found.watched.classes)
    # what the monitor has as texts are texts in the table, too
    words = [name for name, values in known.items() if all(isinstance(one, str) for one in values)]
    with waiting("Counting"):
        columns = place.columns(words, only={*known, *whose})
        picked(columns, [ask.prediction], place.shown, "prediction")
        picked(columns, labels, place.shown, "target")
        found.add(
            ask.period,
            columns[ask.prediction],
            None,
            columns[ask.target] if labels else None,
            sensitive_features=picked(columns, found.watched.cells.names, place.shown, "group"),
            random_state=ask.seed,
            unit=picked(columns, whose, place.shown, "unit") or None,
        )


def _groups(texts: list[str]) -> dict[str, list[object]]:
    found = {}
    for text in texts:
        name, colon, values = text.partition(":")
        if not colon or not name.strip():
            remedy = "Pass --group sex:f,m: a column and its values, which are public."
            raise wrong("group", "COLUMN:VALUE,VALUE", text, remedy)
        found[name.strip()] = _values(values, "group")
    return found


def _values(text: str, of: str) -> list[object]:
    """Whole numbers where all of them are, else texts."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise wrong(of, "values", "none", "Pass --classes 0,1 --group sex:f,m, for example.")
    if all(word.removeprefix("-").isdecimal() for word in words):
        return [int(word) for word in words]
    return list(words)


@command(
    "Evidence",
    """TARGET --schema --minutes=10 --epsilon --out | --trials --confidence=0.95
    --no-power --constraint --delta=1e-6 --protects=records --seed=0 --statement --json
    --force""",
    "fairveil attack model --minutes 10",
    "fairveil attack fermi --schema t.toml --epsilon 2 --out attack.svg",
    "fairveil attack mine:fit --schema t.toml --epsilon 1 --delta 1e-5",
)
def attack(ask: Ask) -> None:
    """Attack a mechanism: run it many times on made-up neighbours, and hold what it leaks against its
    claim. It reads no table and spends nothing; an attack that fails is no proof.

    Exit status: 0 the claim was not refuted; 1 it was; 2 refused.
    """
    files = require_files(ask.out, force=ask.force, endings=(".json", ".svg", ".html"))
    require_files(ask.statement, force=ask.force, of="statement")
    from .roles import schema_of

    claim = dict(named(ask, "epsilon delta protects"))
    schema = schema_of(ask.schema)
    attacked = _attacked(ask, schema, claim)
    from ..audit import run
    from ..estimators.reading.fitted_parts import parts_of

    own = parts_of(attacked).privacy
    if ask.statement is not None and own is None:
        remedy = "Name the folder of a saved model, whose statement then has the audit in it."
        raise wrong("statement", "a model with a statement", ask.target, remedy)
    how: Any = {"schema": schema, "confidence": ask.confidence, "power": not ask.no_power}
    claim = claim if callable(attacked) else {}
    with warnings_as_notes():
        found = run(attacked, **how, **named(ask, "minutes trials seed"), **claim)
    told = None if own is None else found.attach(own)
    for ending, path in files.items():
        made: Any = {".json": found.to_json, ".svg": lambda: found.chart().to_svg()}.get(ending)
        write_file(path, made() if made is not None else _attack_page(found, told))
    if ask.statement is not None and told is not None:
        write_file(ask.statement, told.to_json())
    if ask.json:
        print_json(found.to_dict())
    else:
        print_facts(*((label, words) for label, words in found.facts()))
    _say_written(files | ({".": ask.statement} if ask.statement else {}), ask)
    if found.refuted:
        no()


def _attack_page(found: Any, statement: Any) -> str:
    from ..show.report import Report

    subject = f"{found.target}, run on rows that were made up: nobody's were read."
    sections = (("What an audit found", found),)
    return Report("Attack", subject, statement=statement, sections=sections).to_html()


def _attacked(ask: Ask, schema: Any, claim: dict[str, Any]) -> Any:
    """An estimator, of a folder or a method, or a function."""
    from .fields import METHODS

    module, colon, name = ask.target.partition(":")
    function = bool(colon) and not Path(ask.target).exists()
    if schema is None and (function or ask.target in METHODS):
        remedy = "Pass --schema FILE: tables are made of its public facts."
        raise wrong("schema", "a schema", "none", remedy)
    if ask.target in METHODS:
        from .asked import asked

        wishes = Ask(**vars(ask), method=ask.target, model="linear", objective=None, set=None)
        wishes.epsilon = claim.setdefault("epsilon", 1.0)
        wishes.confidence = None
        return asked(wishes).built(schema=schema)
    if ask.constraint:
        remedy = "Leave it out: a folder and a function say that themselves."
        raise wrong("constraint", "none beside this target", ask.constraint[0], remedy)
    if function:
        return _function(module, name, ask.target)
    from ..estimators import load

    return load(Path(ask.target))


def _function(module: str, name: str, target: str) -> Any:
    """`module:function`, from this folder or what is installed."""
    import importlib

    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError, TypeError):
        found = None
    finally:
        sys.path.pop(0)
    if not callable(found):
        remedy = "Name a function that can be imported here, as mine:fit in mine.py."
        raise wrong("target", "a function", target, remedy)
    return found


@command(
    "Evidence",
    "FILE --key --signature --words --json",
    "fairveil verify model/statement.json",
    "fairveil verify model --key holder.pub",
    "fairveil verify model --json",
)
def verify(ask: Ask) -> None:
    """Recompute the epsilon of a privacy statement from its events, or a certificate from its counts;
    look for contradictions. The verdict comes first.

    Exit status: 0 consistent (and, with --key, signed by that key), 1 not, 2 unreadable. Without
    --key it proves consistency, not authorship.
    """
    if ask.signature is not None and ask.key is None:
        remedy = "Pass --key holder.pub, the public key of whoever signed it."
        raise wrong("signature", "--key beside it", "none", remedy)
    text = statement_text(ask.file / "statement.json" if ask.file.is_dir() else ask.file)
    kind, shown, found, recomputed, on_trust, plain = _examined(text)
    valid, said, signature = _signature(ask, text)
    grave = any(one.grave for one in found)
    if kind == "statement":
        from ..statement import command as answers

        proves = BY_KEY if valid else answers.WHAT_IT_PROVES
        if ask.json:
            print_lines(answers.as_json(plain, found, signature, proves))
        else:
            if ask.words:
                print_lines(f"{shown}\n")
            refused = valid is False
            print_lines("\n".join(answers.lines(plain, found, said, proves, refused=refused)))
    elif ask.json:
        findings = [{"grave": one.grave, "sentence": one.sentence} for one in found]
        out = {"consistent": not grave, **plain, "findings": findings}
        trust = {"recomputed": list(recomputed), "taken_on_trust": list(on_trust)}
        print_json({**out, **trust, "signature": signature, "proves": BY_KEY if valid else PROVES})
    else:
        head = "Inconsistent" if grave else f"Consistent: {CONSISTENT[kind]}"
        if valid is not None:
            head += ". Signed by this key" if valid else ". Not signed by this key"
        print_lines(f"{head}. {'' if grave else BY_KEY if valid else PROVES}".rstrip())
        for one in found:
            print_lines(f"{'CONTRADICTION' if one.grave else 'note'}: {one.sentence}")
        print_lines("\n".join([*said, "", shown, ""]))
        print_lines(f"Recomputed: {', '.join(recomputed)}; on trust: {', '.join(on_trust)}.")
    if grave or valid is False:
        no()


def statement_text(file: Path) -> str:
    """A statement's file, as text."""
    from .._reading import read_text
    from ..errors import StatementError

    remedy = "Pass a statement's JSON file: it holds events, not data, and is small."
    return read_text(
        file, what="a file that can be read", most=LARGEST, remedy=remedy, error=StatementError
    )


def _counted(text: str) -> Any:
    """The class of results of counts that a file is of; None: it is another document."""
    from ..estimators import Alternatives, Certificate, PrivateTable, ReleasedGroups

    kinds: tuple[Any, ...] = (Certificate, PrivateTable, ReleasedGroups, Alternatives)
    return next((one for one in kinds if f'"{one.FILE.format}"' in text[:200]), None)


def _examined(text: str) -> tuple[str, str, Any, Any, Any, dict[str, Any]]:
    """What kind of document it is, its words, what was found, what was computed again and what is
    taken on trust, and numbers of its own."""
    if (cls := _counted(text)) is not None:
        made, found = cls.examine(text)
        told, names = made.to_dict()["results"], ("certified", "taken", "verdict", "plan_digest")
        plain = {name: told[name] for name in names if name in told}
        words = str(made) if hasattr(made, "parts") else f"{made.privacy.summary()}\n\n{made!r}"
        return cls.FILE.what, words, found, cls.FILE.recomputed, cls.FILE.on_trust, plain
    from ..statement.check import ON_TRUST, RECOMPUTED
    from ..statement.document import examine

    statement, found = examine(text)
    return "statement", statement.summary(), found, RECOMPUTED, ON_TRUST, statement.to_dict()


def _signature(ask: Ask, text: str) -> tuple[bool | None, list[str], Any]:
    """Whether the signature holds (None: not looked at), lines about it, and the same as values."""
    from ..errors import SignatureError
    from ..statement import signing as signatures

    counted = _counted(text)
    if counted is not None and ask.signature is not None:
        remedy = "Leave it out."
        raise wrong("signature", "none: it is in the file", str(ask.signature), remedy)
    if ask.key is None:
        beside = counted is None and signatures.signature_path(ask.file).is_file()
        there = beside or (counted is not None and counted.signature_in(text) is not None)
        words = "note: there is a signature, which was not checked: pass --key holder.pub"
        return None, [words] if there else [], {"valid": None} if there else None
    try:
        remarks: tuple[str, ...] = ()
        if counted is not None:
            public = signatures.public_key(ask.key)
            found = counted.require_signed(text, public, str(ask.file))
        else:
            found = signatures.verify_signature(ask.file, ask.key, signature=ask.signature)
            remarks = signatures.remarks(ask.file, found)
    except SignatureError as error:
        return False, [f"NOT SIGNED: {error}"], {"valid": False, "reason": str(error)}
    files = None if found.files is None else dict(found.files)
    noted = "" if found.note is None else f", with the note {found.note!r}"
    bound = "" if files is None else f", together with {len(files)} other files"
    lines = [f"Signed by {found.signer} at {found.time}{noted}{bound}: valid", *remarks]
    plain = {"signer": found.signer, "time": found.time, "note": found.note, "files": files}
    return True, lines, {"valid": True, **plain, "remarks": list(remarks)}


@command(
    "Evidence",
    "FIGURE? --quick --seeds --data --out",
    "fairveil reproduce",
    "fairveil reproduce 004:fig3 --data sets --out figures",
    "fairveil reproduce all --quick",
)
def reproduce(ask: Ask) -> None:
    """Reproduce a figure or a table of the five papers: published beside ours, and a verdict.

    It runs the scripts in papers/ of a clone of the repository, from anywhere inside it. Without
    FIGURE it lists what there is. Rows are in files that you hold.

    Exit status: 0 all stated verdicts hold; 1 one no longer holds; 2 refused, or rows are missing.
    """
    here = Path.cwd()
    scripts = [one / "papers" / "reproduce.py" for one in (here, *here.parents)]
    script = next((one for one in scripts if one.is_file()), None)
    if script is None:
        remedy = "Clone the repository, and call this inside of it: scripts are not installed."
        raise wrong("FIGURE", "papers/reproduce.py here or in a folder above", str(here), remedy)
    words = [one for one in (ask.figure or "").split(",") if one]
    given = {"seeds": ask.seeds, "data": ask.data, "out": ask.out}
    more = [f"--{name}={value}" for name, value in given.items() if value is not None]
    sys.path.insert(0, str(script.parent))
    status = importlib.import_module("reproduce").main(words + more + ["--quick"] * ask.quick)
    if status:
        raise click.exceptions.Exit(status)


@command(
    "Sharing",
    "FILE? --key --note --out --new-key | --passphrase --inconsistent --force",
    "fairveil sign --new-key holder.key",
    'fairveil sign model --key holder.key --note "spring model"',
    "fairveil sign model/statement.json --key holder.key",
)
def sign(ask: Ask) -> None:
    """Sign a privacy statement with an ed25519 key; `fairveil verify FILE --key holder.pub` checks the
    signature.

    Exit status: 0 signed, 2 refused.
    """
    if ask.new_key is not None:
        beside = named(ask, "file key note out")
        if beside or ask.force or ask.inconsistent:
            got = ", ".join(beside) or "--force"
            remedy = "Make the key first, and sign with another command."
            raise wrong("new_key", "--new-key alone", got, remedy)
        _new_key(ask)
        return
    if ask.file is None or ask.key is None or ask.passphrase:
        remedy = "fairveil sign statement.json --key holder.key; or --new-key holder.key."
        of, expected = "key", "FILE and --key, and no --passphrase"
        raise wrong(of, expected, "others", remedy)
    require_words(note=ask.note)
    from ..statement import signing as signatures

    with warnings_as_notes():
        made = signatures.sign(
            ask.file,
            ask.key,
            passphrase=passphrase,
            note=ask.note,
            out=ask.out,
            replace=ask.force,
            inconsistent=ask.inconsistent,
        )
    where = signatures.signature_path(ask.file) if ask.out is None else ask.out
    files = "" if made.files is None else f", with {len(made.files)} other files of {ask.file}"
    click.echo(f"Signed: {where}{files}\nSigner: {made.signer}")


def _new_key(ask: Ask) -> None:
    from ..statement import signing as signing_keys

    word = os.environ.get(PASSPHRASE_VARIABLE) or None
    if ask.passphrase and word is None:
        word = typed(f"Passphrase of {ask.new_key}", twice=True)
    name = signing_keys.new_key(ask.new_key, passphrase=word)
    kept = "encrypted" if word else "not encrypted"
    public = signing_keys.public_path(ask.new_key)
    print_facts(
        ("private key", f"{ask.new_key} ({kept}; keep it to yourself, and a copy of it safe)"),
        ("public key", f"{public} (for whoever verifies what you sign)"),
        ("fingerprint", name),
    )
