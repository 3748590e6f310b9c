"""`fairveil ledger`: budgets that many releases share, in a file or a database: begin one, look, check,
keep a copy, charge what other libraries spent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any

import click

from .. import _urls
from .._waiting import waiting
from ..errors import DataNotFoundError, FairveilError, InputError, LedgerError, within
from .files import (
    ledger_address,
    named,
    on_one_line,
    print_facts,
    print_json,
    print_table,
    require_files,
    require_words,
    write_file,
)
from .frame import Ask, command, no, parts, wrong
from .words import LEDGER_VARIABLE

SQLITE = b"SQLite format 3\x00"
LARGEST = 1 << 30
USUAL = 20
PROVES = (
    "This proves that the lines agree with each other, and with the statements that were given; not "
    "that all was recorded, nor that this is the newest copy: hold it against copies kept elsewhere."
)

parts("ledger", "Budget", "Privacy budgets that many releases share, and their history.")


def _place(url: str | None) -> str:
    """The address that was said, or the one that stands in for it."""
    found = ledger_address(url)
    if found is None:
        remedy = f"Name a file, postgresql://..., or set {LEDGER_VARIABLE}."
        raise wrong("url", "an address", None, remedy)
    return found


def _opened(ask: Ask) -> Any:
    from ..ledger import Ledger

    return Ledger.open(_place(ask.url), ask.dataset, read_only=True)


@command(
    "",
    """URL? DATASET? --epsilon --delta --protects --unit | --max-rows-per-unit --production
    --schema --kind --order --sensitive --from""",
    "fairveil ledger create budget.db people --epsilon 4 --delta 1e-6",
    "fairveil ledger create budget.db people --epsilon 4 --delta 1e-6 --production",
    "fairveil ledger create copy.db --from people.json",
    name="ledger create",
)
def ledger_create(ask: Ask) -> None:
    """Begin a budget of a data set, fixed for good; or restore an exported one.

    Exit status: 0 begun, 2 refused: then nothing was written.
    """
    from ..ledger import Ledger

    export = vars(ask)["from"]
    if ask.dataset is None and ask.url is not None and export is None and ledger_address(None):
        ask.url, ask.dataset = ledger_address(None), ask.url  # a single word is the name
    if export is not None:
        given = named(
            ask,
            "dataset epsilon delta protects unit max_rows_per_unit schema kind order",
        )
        for name, value in given.items():
            remedy = "Leave it out: the exported ledger says it."
            raise wrong(name, "nothing beside --from", value, remedy)
        begun = Ledger.restore(_place(ask.url), _document(export))
    else:
        for name in ("dataset", "epsilon", "delta"):
            if getattr(ask, name) is None:
                remedy = "Say: fairveil ledger create budget.db census --epsilon 1 --delta 1e-6."
                raise wrong(name, "a value", None, remedy)
        from .roles import schema_of

        begun = Ledger.create(
            _place(ask.url),
            ask.dataset,
            production=ask.production,
            schema=schema_of(ask.schema),
            columns=ask.sensitive or None,
            **named(ask, "epsilon delta protects kind order unit max_rows_per_unit"),
        )
    where = f"--ledger {quote(begun.shown)} --dataset {quote(begun.dataset)}"
    print_facts(
        ("begun", f"{begun.dataset} in {begun.shown}"),
        *_terms(begun),
        ("use", f"fairveil fit ... {where}"),
    )


def _terms(ledger: Any) -> Iterator[tuple[str, str]]:
    from ..ledger.page import terms_in_words

    for heading, words in terms_in_words(ledger.terms, next(ledger.history(0, 1))):
        yield heading.lower(), words


@command(
    "",
    "URL? --dataset --out --json --force",
    "fairveil ledger show budget.db",
    "fairveil ledger show budget.db --dataset people --out budget.html",
    "fairveil ledger show postgresql://team@host/base --json",
    name="ledger show",
)
def ledger_show(ask: Ask) -> None:
    """Show the budget, what is spent and left, and what is not settled; of several data sets a line
    each."""
    from ..ledger import Ledger

    files = require_files(ask.out, force=ask.force, endings=(".html", ".json"))
    place = _place(ask.url)
    names = [ask.dataset] if ask.dataset else Ledger.datasets(place)
    one = bool(files) or len(names) <= 1
    shown = [_opened(ask)] if one else [Ledger.open(place, name, read_only=True) for name in names]
    told = {"address": shown[0].shown, "ledgers": [_numbers(ledger) for ledger in shown]}
    for ending, path in files.items():
        import json

        text = json.dumps(told, indent=2) if ending == ".json" else _page(shown[0])
        write_file(path, text)
    if ask.json:
        print_json(told)
    elif len(shown) > 1:
        for ledger in shown:
            click.echo(on_one_line(str(ledger.balance())))
    else:
        _show(shown[0])
    for path in files.values():
        click.echo(f"Written: {path}", err=ask.json)


def _show(ledger: Any) -> None:
    from ..ledger.page import APART, NO_SUM, unsettled

    balance = ledger.balance()
    full = min(40, max(0, -int(-balance.spent_share * 40 // 1)))
    print_facts(
        ("budget", f"{ledger.dataset} in {ledger.shown}"),
        *_terms(ledger),
        ("lines", f"{balance.entries:,}, the last at {balance.last}"),
        ("spent", f"[{'#' * full}{'.' * (40 - full)}]"),
        ("", str(balance)),
        ("", NO_SUM),
    )
    for one in balance.by_promise:
        print_facts(("", f"{one.under}: {one.spends:,} releases, {100 * one.share:.4g}%"))
    if len(balance.by_promise) > 1:
        print_facts(("", APART))
    if balance.open:
        print_facts(("open", unsettled(balance.open)))
        for one in _waiting(ledger, balance):
            words = f"line {one.entry}, since {one.at[:19]}, {one.who}, {one.purpose or '-'}"
            print_facts(("", f"{words}, {one.spend}"))


def _waiting(ledger: Any, balance: Any) -> Iterator[Any]:
    """The oldest open spends; one that was settled meanwhile is left out."""
    from ..ledger.page import Told

    for spend in balance.waiting[:USUAL]:
        now = ledger.standing(spend)
        if now.is_open:
            yield Told.of(now.reserved, now.last, now.units)


def _numbers(ledger: Any) -> dict[str, Any]:
    balance, first = ledger.balance(), next(ledger.history(0, 1))
    return {
        "dataset": ledger.dataset,
        "terms": ledger.terms.to_dict(),
        "begun": {"at": first.at, "who": first.who, "code": first.code},
        "balance": balance.to_dict(),
        "open": [dict(vars(one)) for one in _waiting(ledger, balance)],
    }


def _page(ledger: Any) -> str:
    from ..ledger.page import LedgerPage
    from ..show.report import Report

    title = f"The budget of {on_one_line(ledger.dataset)}"
    return Report(title, sections=(("The ledger", LedgerPage.of(ledger)),)).to_html()


@command(
    "",
    "URL? --dataset --last --first --limit --purpose --json",
    "fairveil ledger history budget.db",
    "fairveil ledger history budget.db --first 100 --limit 20",
    'fairveil ledger history budget.db --purpose "spring model"',
    name="ledger history",
)
def ledger_history(ask: Ask) -> None:
    """List lines: number, time, who, what happened, purpose, its share of the budget, and what was
    charged after it."""
    from ..ledger.entries import WHOLE
    from ..ledger.page import share

    for name, least in (("last", 1), ("first", 0), ("limit", 1)):
        value = getattr(ask, name)
        if value is not None and value < least:
            remedy = f"Pass --{name} 20."
            raise wrong(name, f"at least {least}", value, remedy)
    ranged = ask.first is not None or ask.limit is not None
    if ask.last is not None and ranged:
        remedy = "Pass --last 20, or --first 100 --limit 20."
        raise wrong("last", "no --first or --limit", ask.last, remedy)
    ledger, wanted = _opened(ask), (ask.purpose or "").casefold()
    lines = (line for line in ledger.history(ask.first or 0) if wanted in line.purpose.casefold())
    found = list(islice(lines, ask.limit) if ranged else deque(lines, ask.last or USUAL))
    if ask.json:
        entries = [
            line.to_dict() | {"share": line.units / WHOLE, "spent_share": share(line.spent)}
            for line in found
        ]
        print_json({"address": ledger.shown, "dataset": ledger.dataset, "entries": entries})
        return
    print_table(
        ("line", "when (UTC)", "who", "what", "purpose", "share", "charged", "spend"),
        [
            (
                str(line.number),
                line.at[:19].replace("T", " "),
                line.who,
                f"{line.kind}, {line.under}" if line.kind == "created" else line.kind,
                line.purpose or "-",
                f"{100 * line.units / WHOLE:+.4g}%" if line.units else "",
                f"{100 * share(line.spent):.4g}%",
                line.spend[:8],
            )
            for line in found
        ],
    )


@command(
    "",
    "URL? --dataset --statement --json",
    "fairveil ledger check budget.db",
    "fairveil ledger check budget.db --statement model",
    "fairveil ledger check people.json --json",
    name="ledger check",
)
def ledger_check(ask: Ask) -> None:
    """Work everything out again: the chain of lines, the sums, the price of every plan; and look
    statements up.

    Exit status: 0 all agrees, 1 there is a contradiction, 2 refused.
    """
    place = _place(ask.url)
    with waiting("Computing the lines again"):
        statements = [(str(file), *_examined(file)) for file in ask.statement]
        ledgers = list((_of_export if _is_export(place) else _of_store)(place, ask.dataset))
        compared = list(_compared(statements, ledgers))
    agrees = not any(one.grave for _, found in (*_told(ledgers), *compared) for one in found)
    if ask.json:
        print_json(_check_numbers(agrees, place, ledgers, statements, compared))
    else:
        shown = _urls.without_password(place)
        for name, entries, last, found, _ in ledgers:
            count = "1 line" if entries == 1 else f"{entries:,} lines"
            click.echo(
                on_one_line(f"{name} in {shown}: {count}, the last one's hash is {last or '-'}")
            )
            _say(found)
        for words, found in compared:
            click.echo(on_one_line(words))
            _say(found)
        click.echo(f"Consistent. {PROVES}" if agrees else "Inconsistent.")
    if not agrees:
        no()


def _told(ledgers: Any) -> Iterator[tuple[str, Any]]:
    return ((name, found) for name, _, _, found, _ in ledgers)


def _say(found: Any) -> None:
    for one in found:
        click.echo(f"  {'CONTRADICTION' if one.grave else 'note'}: {on_one_line(one.sentence)}")


def _check_numbers(
    agrees: bool, place: str, ledgers: Any, statements: Any, compared: Any
) -> dict[str, Any]:
    def plain(found: Any) -> list[dict[str, Any]]:
        return [{"grave": one.grave, "sentence": one.sentence} for one in found]

    return {
        "consistent": agrees,
        "address": _urls.without_password(place),
        "ledgers": [
            {"dataset": name, "entries": count, "last": last, "findings": plain(found)}
            for name, count, last, found, _ in ledgers
        ],
        "statements": [
            {
                "file": file,
                "receipt": None if statement.ledger is None else dict(vars(statement.ledger)),
                "findings": plain(found),
            }
            for (file, statement, _), (_, found) in zip(statements, compared, strict=True)
        ],
        "proves": PROVES,
    }


def _is_export(place: str) -> bool:
    """Whether it is a file that is no database; a file that is not there is the store's to say."""
    path = Path(place)
    if "://" in place or not path.is_file():
        return False
    with path.open("rb") as opened:
        return opened.read(len(SQLITE)) not in (b"", SQLITE)


def _of_store(place: str, dataset: str | None) -> Iterator[Any]:
    """(name, lines, the last one's hash, findings, all lines) of each ledger. One of which not even
    the first line can be read is a contradiction, not a wrong question."""
    from ..ledger import Ledger
    from ..statement.document import UNPRICED

    names = Ledger.datasets(place)
    if not names or (dataset is not None and dataset not in names):
        Ledger.open(place, dataset, read_only=True)  # says what there is
    for name in names if dataset is None else [dataset]:
        try:
            ledger = Ledger.open(place, name, read_only=True)
            count = ledger.balance().entries
            last = next(ledger.history(count - 1, 1)).hash
            yield name, count, last, ledger.check(), ledger.history
        except UNPRICED as error:
            yield name, 0, "", [_unreadable(error)], None


def _of_export(place: str, dataset: str | None) -> Iterator[Any]:
    from ..ledger import Terms, findings
    from ..ledger.entries import parsed
    from ..statement.document import UNPRICED

    lines = parsed(_document(Path(place)))
    try:
        name = Terms.of(lines[0]).dataset
    except UNPRICED as error:
        yield dataset or "?", len(lines), lines[-1].hash, [_unreadable(error)], None
        return
    if dataset not in (None, name):
        remedy = "Leave --dataset out: an export is of one."
        raise DataNotFoundError.expected(
            f"{name!r}, which this is", of="dataset", got=dataset, remedy=remedy
        )
    found = findings(lines)
    yield name, len(lines), lines[-1].hash, found, lambda start=0, most=None: lines[start:most]


def _unreadable(error: BaseException) -> Any:
    from ..statement.form import Finding

    words = str(error) if isinstance(error, FairveilError) else f"{type(error).__name__}: {error}"
    return Finding(True, f"its lines cannot be read: {words}")


def _examined(file: Path) -> Any:
    """A statement's file, or a folder that a command wrote, and what contradicts itself in it."""
    from ..errors import StatementError
    from ..statement.document import examine
    from .evidence import statement_text

    try:
        return examine(statement_text(file / "statement.json" if file.is_dir() else file))
    except StatementError as error:
        words = f"{file}: {error}"
    raise StatementError(words)


def _compared(statements: Any, ledgers: Any) -> Iterator[tuple[str, Any]]:
    """Each statement against the ledger that its receipt names, and against itself."""
    from ..ledger import statement_findings
    from ..statement.form import Finding

    first: dict[Any, str] = {}
    for file, statement, own in statements:
        receipt, lines, history = statement.ledger, [], None
        if receipt is not None:
            history = next((one[4] for one in ledgers if one[0] == receipt.dataset), None)
        if receipt is not None and history is None:
            words = f"its receipt is of data set {receipt.dataset!r}, which was not checked"
            found = [Finding(True, words)]
        else:
            if history is not None:
                lines = [one for one in history() if receipt and one.spend == receipt.spend]
            read = partial(history, 0) if history is not None else _nothing
            found = statement_findings(statement, lines, read)
        if receipt is not None and first.setdefault(receipt, file) != file:
            twice = f"{first[receipt]} has the same receipt: it holds one release"
            found = [*found, Finding(False, twice)]
        at = "no receipt" if receipt is None else f"line {receipt.entry} of {receipt.dataset}"
        yield f"{file}: {at}", sorted((*own, *found), key=lambda one: not one.grave)


def _nothing(most: int) -> tuple[()]:
    return ()


def _document(file: Path) -> str:
    from .._reading import read_text

    remedy = "Pass what `fairveil ledger export` wrote."
    return read_text(
        file, what="a file that can be read", most=LARGEST, remedy=remedy, error=LedgerError
    )


@command(
    "",
    "URL? --dataset --out --force",
    "fairveil ledger export budget.db --out people.json",
    "fairveil ledger export budget.db --dataset people --out people.json",
    "fairveil ledger export postgresql://team@host/base -o people.json",
    name="ledger export",
)
def ledger_export(ask: Ask) -> None:
    """Write all lines as one JSON document, readable by you alone: to keep where others cannot write.

    Exit status: 0 written, 2 refused.
    """
    require_files(ask.out, force=ask.force)
    document = _opened(ask).export()
    if ask.out is None:
        click.echo(document, nl=False)
        return
    write_file(ask.out, document, mode=0o600)
    click.echo(f"Written: {ask.out}. Check it: fairveil ledger check {quote(str(ask.out))}")


@command(
    "",
    "FILE URL? --dataset --purpose --fixed-in-advance --look --json",
    "fairveil ledger import spent.json budget.db",
    'fairveil ledger import spent.json --dataset people --purpose "opacus fit"',
    "fairveil ledger import spent.json budget.db --look",
    name="ledger import",
)
def ledger_import(ask: Ask) -> None:
    """Charge a budget what another library has spent: opacus, dp_accounting or jax_privacy, or any
    library whose event the file names.

    Exit status: 0 charged, 2 refused: then nothing was written.
    """
    require_words(purpose=ask.purpose)
    from ..ledger import Ledger
    from ..statement.importing import read_import

    try:
        found = read_import(ask.file)
    except InputError as error:
        raise type(error)(within(str(ask.file), error)) from None
    ledger = Ledger.open(_place(ask.url), ask.dataset, read_only=ask.look)
    fixed, charged = ask.fixed_in_advance, None
    fits = ledger.fits(found.events, found.promise(ledger), fixed=fixed)
    if not ask.look:
        charged = found.record(ledger, ask.purpose or "", fixed_in_advance=fixed).entry
    price = found.price(ledger.promise.delta)
    if ask.json:
        told = {"library": found.library, "neighbours": found.neighbours, "fits": fits}
        told |= {"epsilon": price.epsilon, "delta": price.delta}
        print_json({**told, "dataset": ledger.dataset, "line": charged})
        return
    from ..show.numbers import at_most

    head = f"line {charged} of" if charged is not None else "not charged:"
    alone = f"epsilon={at_most(price.epsilon)} at delta={price.delta:g} alone"
    suffices = "the budget suffices" if fits else "the budget does not suffice"
    print_facts(
        ("charged", f"{head} {ledger.dataset} in {ledger.shown}"),
        (found.library, f"{alone} ({found.neighbours})"),
        *([("fits", suffices)] if ask.look else []),
        ("budget", str(ledger.balance())),
    )
