"""Commands about what holds: `audit`, `certify`, `lda`, `monitor`, `attack`, `verify`, `reproduce`,
`sign`."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from .._reading import read_text, write_files
from .._verdicts import MET, NOT_MET, UNCLEAR
from .._waiting import waiting
from ..errors import SignatureError, StatementError
from .files import deliver, opened, passphrase, print_facts, print_lines, typed, working
from .frame import Ask, command, need, no, wrong
from .words import PASSPHRASE_VARIABLE

EXACT = "exact counts of these rows: nothing in this table is private"
EXPECTED = "expected rates: this classifier is randomized, and one draw varies around them"
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
    got, fix = "none" if model is None else "both", "Say whose: --prediction COLUMN, or a model."
    one = (ask.prediction is None) != (model is None)
    need(one, "prediction", "one of a model and --prediction", got, fix)


@command(
    "Evidence",
    """TABLE --target --sensitive --prediction --model --constraint --out | --schema --groups --query
    --json --force""",
    "fairveil audit t.csv --target hired --prediction decided --sensitive sex",
    "fairveil audit t.csv --model model --constraint demographic_parity:0.1",
    "fairveil audit t.csv --model model --out audit.html",
)
def audit(ask: Ask) -> None:
    """Show error and rates of every group, with counts and intervals; small groups are flagged. Of a
    randomized classifier the rates are expected ones. Counts are exact, and not private.

    Exit status: 0, or 1 when a --constraint is not met on these rows, or undefined; 2 refused.
    """
    _whose(ask, ask.model)
    from ..fairness.notions import parse

    notions = [parse(text) for text in ask.constraint or ()]
    from ..estimators.pages import bound_of, words_of
    from ..fairness import DemographicParity, EqualizedOdds
    from ..show.parts import told
    from ..show.report import People, Report, Requirement
    from .judged import decisions_of, measure, table_of
    from .tables import Place

    place, how = Place(ask.table, ask.query), ask.groups or "product"
    with waiting("Measuring"):
        truth, decisions, classes, expected = decisions_of(ask, place)
        table = table_of(truth, decisions, groups=how, classes=classes)
        usual = (DemographicParity(None, groups=how), EqualizedOdds(None, groups=how))
        named = {one.kind for one in notions}
        found = {
            one: measure(one, truth, decisions, groups=how, classes=classes)
            for one in (*notions, *(one for one in usual if one.kind not in named))
        }
    defined = {one: seen for one, seen in found.items() if not math.isnan(seen[0])}
    blank = [words_of(one) for one in found if one not in defined]
    why = "gap is undefined on these rows: a group has no row of a kind that should be compared."
    page = Report(
        "Decisions, group by group",
        subject=f"Measured on {place.shown}: {EXACT}.",
        required=tuple(
            Requirement(words_of(one), bound_of(one), None, *seen, of="audited people")
            for one, seen in defined.items()
        ),
        people=(People(table, "audited people", expected),),
        notes=tuple(f"The {one} {why}" for one in blank),
    )

    def holds(one: Any) -> str:
        if one not in defined:
            return UNCLEAR
        return MET if defined[one][0] <= (bound_of(one) or 0.0) + 1e-9 else NOT_MET

    def words() -> None:
        print_lines(f"{table}\n")
        print_facts(*(("these rows", f"{holds(one)}: {words_of(one)}") for one in notions))
        print_facts(*((one.label.lower(), told(one)) for one in page.decision()))
        print_facts(*(("undefined", one) for one in page.notes))
        print_facts(("private", f"nothing: {EXACT}{f'; {EXPECTED}' if expected else ''}"))

    deliver(ask, page, words)
    if any(holds(one) != MET for one in notions):
        no()


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
    fix = "Pass --epsilon 1; --epsilon inf for people who are public or have consented."
    need(ask.epsilon is not None, "epsilon", "a privacy budget", "none", fix)
    from ..estimators import certify as certified
    from ..estimators.counted import notions_of
    from ..show.report import Report
    from .judged import drawn_decisions
    from .tables import Place

    notions, book = notions_of(ask.constraint or ()), opened(ask)
    place = Place(ask.table, ask.query)
    truth, made = drawn_decisions(ask, place)
    with working("Certifying"):
        found = certified(
            made,
            None,
            truth.labels,
            sensitive_features=truth.groups or None,
            constraints=notions,
            random_state=ask.seed,
            ledger=book,
            **ask.named("confidence epsilon delta protects"),
        )
    subject = f"Decisions of {found.model} about people set aside: {place.shown}."
    page = Report("Certificate", subject, statement=found.privacy_, certificate=found)
    deliver(ask, found, page=page)
    if not found.certified:
        no()


@command(
    "Evidence",
    """TABLE --candidate! --tolerance! --epsilon! --out | --model --prediction --target --sensitive
    --schema --query --measure=adverse_impact_ratio --reference --confidence=0.95
    --delta=0 --protects=records --plan --key --seed --ledger --dataset
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
    pairs = [text.partition("=")[::2] for text in ask.candidate]
    fix = "Pass --candidate new=decided, for example: a name, and a column or a folder."
    all_named = all(name and what for name, what in pairs)
    need(all_named, "candidate", "NAME=COLUMN or NAME=FOLDER", [*ask.candidate], fix)
    from ..estimators import lda as search
    from .judged import drawn_decisions
    from .tables import Place

    place, book = Place(ask.table, ask.query), opened(ask)

    def made(prediction: str | None, model: str | None) -> Any:
        asked = Ask(**{**vars(ask), "prediction": prediction, "model": model})
        truth, found = drawn_decisions(asked, place)
        return truth, found if prediction is None else replace(found, name=f"column {prediction}")

    truth, base = made(ask.prediction, ask.model)
    candidates = {
        name: made(None, what)[1] if Path(what).is_dir() else made(what, None)[1]
        for name, what in pairs
    }
    listed = {str(one): one for column in truth.groups.values() for one in {*column.tolist()}}
    with working("Searching"):
        found = search(
            base,
            None,
            truth.labels,
            sensitive_features=truth.groups,
            candidates=candidates,
            reference=listed.get(ask.reference, ask.reference),
            random_state=ask.seed,
            ledger=book,
            **ask.named("tolerance measure confidence epsilon delta protects plan key"),
        )
    title = "Search for a less discriminatory alternative"
    deliver(ask, found, title=title, record=partial(found.write, key=ask.key, overwrite=ask.force))
    if found.taken is None:
        no()


@command(
    "Evidence",
    """STATE TABLE? --period --prediction --target --constraint --group@constraint --classes@constraint
    --epsilon@constraint | --delta@constraint
    --query --seed --ledger@constraint --dataset@constraint
    --purpose@constraint --json""",
    "fairveil monitor m --constraint ... --group sex:f,m --classes 0,1 --epsilon 1",
    "fairveil monitor m may.csv --period 2026-05 --prediction decided",
    "fairveil monitor m",
)
def monitor(ask: Ask) -> None:
    """Watch decisions after release: count each period once with noise, and raise an alarm when a
    constraint broke.

    Exit status: 0 no alarm; 1 alarm; 2 refused, nothing counted.
    """
    for name in ("period", "prediction") if ask.table is not None else ():
        fix = "Pass --period 2026-05 --prediction decided, for example."
        need(getattr(ask, name) is not None, name, "a value beside TABLE", "none", fix)
    groups = {}
    for text in ask.group or ():
        name, colon, values = text.partition(":")
        fix = "Pass --group sex:f,m: a column and its values, which are public."
        need(colon and name.strip(), "group", "COLUMN:VALUE,VALUE", text, fix)
        groups[name.strip()] = _values(values, "group")
    from ..estimators import Monitor

    if ask.constraint:
        found = Monitor.create(
            ask.state,
            ask.constraint,
            groups=groups,
            classes=_values(ask.classes or "", "classes"),
            epsilon=ask.epsilon,
            ledger=opened(ask),
            **ask.named("delta"),
        )
    else:
        found = Monitor.open(ask.state)
    if ask.table is not None:
        _count(found, ask)
    deliver(ask, found)
    if found.alarm is not None:
        no()


def _count(found: Any, ask: Ask) -> None:
    from .tables import Place, picked

    place, labels = Place(ask.table, ask.query), [ask.target] if ask.target else []
    known = dict(zip(found.watched.cells.names, found.watched.cells.columns, strict=True))
    known |= dict.fromkeys((ask.prediction, *labels), found.watched.classes)
    # what the monitor has as texts are texts in the table, too
    words = [name for name, values in known.items() if all(isinstance(one, str) for one in values)]
    with waiting("Counting"):
        columns = place.columns(words, only={*known})
        picked(columns, [ask.prediction], place.shown, "prediction")
        picked(columns, labels, place.shown, "target")
        found.add(
            ask.period,
            columns[ask.prediction],
            None,
            columns[ask.target] if labels else None,
            sensitive_features=picked(columns, found.watched.cells.names, place.shown, "group"),
            random_state=ask.seed,
        )


def _values(text: str, of: str) -> list[object]:
    """Whole numbers where all of them are, else texts."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    need(words, of, "values", "none", "Pass --classes 0,1 --group sex:f,m, for example.")
    whole = all(word.removeprefix("-").isdecimal() for word in words)
    return [int(word) for word in words] if whole else list(words)


@command(
    "Evidence",
    """TARGET --schema --minutes=10 --epsilon --out | --trials --confidence=0.95
    --delta=1e-6 --protects=records --seed=0 --statement --json --force""",
    "fairveil attack model --minutes 10",
    "fairveil attack model --statement audited.json --out attack.html",
    "fairveil attack mine:fit --schema t.toml --epsilon 1 --delta 1e-5",
)
def attack(ask: Ask) -> None:
    """Attack a mechanism: run it many times on made-up neighbours, and hold what it leaks against its
    claim. It reads no table and spends nothing; an attack that fails is no proof.

    Exit status: 0 the claim was not refuted; 1 it was; 2 refused.
    """
    from .tables import schema_of

    schema = schema_of(ask.schema)
    attacked = _attacked(ask.target, schema)
    own = getattr(attacked, "privacy_", None)
    fix = "Name the folder of a saved model, whose statement then has the audit in it."
    has_one = ask.statement is None or own is not None
    need(has_one, "statement", "a model with a statement", ask.target, fix)
    from ..audit import run
    from ..show.report import Report

    how: Any = {"schema": schema, "confidence": ask.confidence}
    how |= ask.named("epsilon delta protects") if callable(attacked) else {}
    with working():
        found = run(attacked, **how, **ask.named("minutes trials seed"))
    told = None if own is None else found.attach(own)
    subject = f"{found.target}, run on rows that were made up: nobody's were read."
    sections = (("What an audit found", found),)
    page = Report("Attack", subject, statement=told, sections=sections)
    if ask.statement is not None and told is not None:
        write_files({ask.statement: told.to_json()})
        click.echo(f"Written: {ask.statement}", err=bool(ask.json))
    deliver(ask, found, lambda: print_facts(*found.facts()), page=page)
    if found.refuted:
        no()


def _attacked(target: str, schema: Any) -> Any:
    """An estimator of a folder, or a function."""
    module, colon, name = target.partition(":")
    if not colon or Path(target).exists():
        from ..estimators import load

        return load(Path(target))
    fix = "Pass --schema FILE: tables are made of its public facts."
    need(schema is not None, "schema", "a schema", "none", fix)
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name, None)
    except (ImportError, ValueError, TypeError):
        found = None
    finally:
        sys.path.pop(0)
    fix = "Name a function that can be imported here, as mine:fit in mine.py."
    need(callable(found), "target", "a function", target, fix)
    return found


@command(
    "Evidence",
    "FILE --key --json",
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
    from ..statement import command as answers

    text = statement_text(ask.file)
    cls, shown, found, plain = _examined(text)
    valid, said, signature = _signature(ask, text, cls)
    grave = any(one.grave for one in found)
    proves = BY_KEY if valid else answers.WHAT_IT_PROVES if cls is None else PROVES
    if ask.json and cls is None:
        print_lines(answers.as_json(plain, found, signature, proves))
    elif ask.json:
        findings = [{"grave": one.grave, "sentence": one.sentence} for one in found]
        out = {"consistent": not grave, **plain, "findings": findings}
        out |= {"recomputed": [*cls.FILE.recomputed], "taken_on_trust": [*cls.FILE.on_trust]}
        out |= {"signature": signature, "proves": proves}
        print_lines(json.dumps(out, indent=2, allow_nan=False))
    elif cls is None:
        print_lines("\n".join(answers.lines(plain, found, said, proves, refused=valid is False)))
    else:
        signed = {None: "", True: ". Signed by this key", False: ". Not signed by this key"}[valid]
        head = "Inconsistent" if grave else f"Consistent: {CONSISTENT[cls.FILE.what]}"
        noted = [f"{'CONTRADICTION' if one.grave else 'note'}: {one.sentence}" for one in found]
        recomputed, on_trust = map(", ".join, (cls.FILE.recomputed, cls.FILE.on_trust))
        print_lines(f"{head}{signed}. {'' if grave else proves}".rstrip())
        print_lines("\n".join([*noted, *said, "", shown, ""]))
        print_lines(f"Recomputed: {recomputed}; on trust: {on_trust}.")
    if grave or valid is False:
        no()


def statement_text(file: Path) -> str:
    """A statement's file, or that in a folder, as text."""
    file = file / "statement.json" if file.is_dir() else file
    fix = "Pass a statement's JSON file: it holds events, not data, and is small."
    what = "a file that can be read"
    return read_text(file, what=what, most=LARGEST, remedy=fix, error=StatementError)


def _examined(text: str) -> tuple[Any, str, Any, dict[str, Any]]:
    """The class of results of counts that a document is of (None: a statement), its words, what was
    found, and its numbers."""
    from ..estimators import Alternatives, Certificate, PrivateTable, ReleasedGroups
    from ..statement.document import examine

    kinds: tuple[Any, ...] = (Certificate, PrivateTable, ReleasedGroups, Alternatives)
    cls = next((one for one in kinds if f'"{one.FILE.format}"' in text[:200]), None)
    if cls is None:
        statement, found = examine(text)
        return None, "", found, statement.to_dict()
    made, found = cls.examine(text)
    told, names = made.to_dict()["results"], ("certified", "taken", "verdict", "plan_digest")
    words = str(made) if hasattr(made, "parts") else f"{made.privacy.summary()}\n\n{made!r}"
    return cls, words, found, {name: told[name] for name in names if name in told}


def _signature(ask: Ask, text: str, counted: Any) -> tuple[bool | None, list[str], Any]:
    """Whether the signature holds (None: not looked at), lines about it, and the same as values."""
    from ..statement import signing

    if ask.key is None:
        there = signing.signature_path(ask.file).is_file() if counted is None else None
        if there or (counted is not None and counted.signature_in(text) is not None):
            words = "note: there is a signature, which was not checked: pass --key holder.pub"
            return None, [words], {"valid": None}
        return None, [], None
    remarks: tuple[str, ...] = ()
    try:
        if counted is not None:
            found = counted.require_signed(text, signing.public_key(ask.key), str(ask.file))
        else:
            found = signing.verify_signature(ask.file, ask.key)
            remarks = signing.remarks(ask.file, found)
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
        fix = "Clone the repository, and call this inside of it: scripts are not installed."
        raise wrong("FIGURE", "papers/reproduce.py here or in a folder above", str(here), fix)
    words = [one for one in (ask.figure or "").split(",") if one]
    words += [f"--{name}={value}" for name, value in ask.named("seeds data out").items()]
    sys.path.insert(0, str(script.parent))
    status = importlib.import_module("reproduce").main(words + ["--quick"] * ask.quick)
    if status:
        raise click.exceptions.Exit(status)


@command(
    "Sharing",
    "FILE? --key --note --out --new-key | --passphrase@new-key --inconsistent --force",
    "fairveil sign --new-key holder.key",
    'fairveil sign model --key holder.key --note "spring model"',
    "fairveil sign model/statement.json --key holder.key",
)
def sign(ask: Ask) -> None:
    """Sign a privacy statement with an ed25519 key; `fairveil verify FILE --key holder.pub` checks the
    signature.

    Exit status: 0 signed, 2 refused.
    """
    from ..statement import signing

    beside = [*ask.named("file key note out"), *(["force"] * (ask.force or ask.inconsistent))]
    if ask.new_key is not None:
        fix = "Make the key first, and sign with another command."
        need(not beside, "new_key", "--new-key alone", beside, fix)
        word = os.environ.get(PASSPHRASE_VARIABLE) or None
        if ask.passphrase and word is None:
            word = typed(f"Passphrase of {ask.new_key}", twice=True)
        name, kept = signing.new_key(ask.new_key, passphrase=word), "not " * (not word)
        about = f"{kept}encrypted; keep it to yourself, and a copy of it safe"
        public = f"{signing.public_path(ask.new_key)} (for whoever verifies what you sign)"
        print_facts(
            ("private key", f"{ask.new_key} ({about})"),
            ("public key", public),
            ("fingerprint", name),
        )
        return
    fix = "fairveil sign statement.json --key holder.key; or --new-key holder.key."
    need(None not in (ask.file, ask.key), "key", "FILE and --key", "others", fix)
    more: Any = {"out": ask.out, "replace": ask.force, "inconsistent": ask.inconsistent}
    with working():
        made = signing.sign(ask.file, ask.key, passphrase=passphrase, note=ask.note, **more)
    where = signing.signature_path(ask.file) if ask.out is None else ask.out
    files = "" if made.files is None else f", with {len(made.files)} other files of {ask.file}"
    click.echo(f"Signed: {where}{files}\nSigner: {made.signer}")
