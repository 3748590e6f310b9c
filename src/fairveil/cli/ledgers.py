"""`fairveil ledger`: budgets that many releases share, in a file or a database: begin one, look, check."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import click

from .. import _urls
from .._waiting import waiting
from ..errors import DataNotFoundError, StatementError
from . import files
from .evidence import statement_text
from .frame import Ask, command, need, no, parts, wrong
from .words import LEDGER_VARIABLE

PROVES = """Lines and statements agree. That proves neither that all was recorded, nor that this is \
the newest copy: hold it against copies kept elsewhere."""

parts("ledger", "Budget", "Privacy budgets that many releases share.")


def _place(url: str | None) -> str:
    """The address that was said, or the one that stands in for it."""
    found = files.ledger_address(url)
    if found is None:
        fix = f"Name a file, postgresql://..., or set {LEDGER_VARIABLE}."
        raise wrong("url", "an address", None, fix)
    return found


def _opened(ask: Ask, *, read_only: bool = True) -> Any:
    from ..ledger import Ledger

    return Ledger.open(_place(ask.url), ask.dataset, read_only=read_only)


@command(
    "",
    """URL? DATASET? --epsilon --delta --protects --unit | --max-rows-per-unit --production
    --schema --sensitive""",
    "fairveil ledger create budget.db people --epsilon 4 --delta 1e-6",
    name="ledger create",
)
def ledger_create(ask: Ask) -> None:
    """Begin a budget of a data set, fixed for good.

    Exit status: 0 begun, 2 refused: then nothing was written.
    """
    from ..ledger import Ledger
    from .tables import schema_of

    elsewhere = files.ledger_address(None)
    if ask.dataset is None and ask.url is not None and elsewhere:
        ask.url, ask.dataset = elsewhere, ask.url  # a single word is the name
    said = ask.named("epsilon delta protects unit max_rows_per_unit")
    fix = "Say: fairveil ledger create budget.db census --epsilon 1 --delta 1e-6."
    for name in ("dataset", "epsilon", "delta"):
        need(getattr(ask, name) is not None, name, "a value", None, fix)
    said |= {"columns": ask.sensitive or None, "production": ask.production}
    begun = Ledger.create(_place(ask.url), ask.dataset, schema=schema_of(ask.schema), **said)
    files.print_lines(str(begun))
    where = f"--ledger {quote(begun.shown)} --dataset {quote(begun.dataset)}"
    files.print_facts(("use", f"fairveil fit ... {where}"))


@command(
    "",
    "URL? --dataset --out --json --force",
    "fairveil ledger show budget.db",
    "fairveil ledger show budget.db --out budget.html",
    name="ledger show",
)
def ledger_show(ask: Ask) -> None:
    """Show the budget, what is spent and left, and every release; of several data sets a line each.

    --json, or --out lines.json, has all lines.
    """
    from ..ledger import Ledger

    place, name = _place(ask.url), ask.dataset
    known = [name] if name or ask.files else Ledger.datasets(place)
    shown = [Ledger.open(place, one, read_only=True) for one in known or [name]]
    ledgers = [
        {
            "dataset": one.dataset,
            "terms": one.terms.to_dict(),
            "balance": one.balance().to_dict(),
            "lines": [line.to_dict() for line in one.history()],
        }
        for one in shown
    ]
    several = len(shown) > 1
    text = "\n".join(str(one.balance() if several else one) for one in shown)
    told, title = {"address": shown[0].shown, "ledgers": ledgers}, shown[0].dataset
    title = f"The budget of {files.on_one_line(title)}"

    def say() -> None:
        files.print_lines(text)

    files.deliver(ask, told, say, page=shown[0], title=title)


@command(
    "",
    "URL? --dataset --statement --json",
    "fairveil ledger check budget.db",
    "fairveil ledger check budget.db --statement model",
    name="ledger check",
)
def ledger_check(ask: Ask) -> None:
    """Work everything out again: the chain of lines, the sums, the price of every plan; and look
    statements up.

    Exit status: 0 all agrees, 1 there is a contradiction, 2 refused.
    """
    from ..ledger import findings, statement_findings
    from ..statement.form import Finding

    place, shown = _place(ask.url), _urls.without_password(_place(ask.url))
    told: list[tuple[dict[str, Any], str, list[Finding]]] = []
    first: dict[Any, str] = {}
    with waiting("Computing the lines again"):
        statements = [(str(file), *_examined(file)) for file in ask.statement]
        ledgers = _lines_of(place, ask.dataset)
        for name, (lines, unread) in ledgers.items():
            last = lines[-1].hash if lines else "-"
            words = f"{name} in {shown}: {len(lines):,} lines, the last one's hash is {last}"
            found = [*findings(lines), *(Finding(True, one) for one in unread)]
            told.append(({"dataset": name, "entries": len(lines), "last": last}, words, found))
        for file, statement, own in statements:
            receipt, found = statement.ledger, list(own)
            at = f"line {receipt.entry} of {receipt.dataset}" if receipt else "no receipt"
            if receipt and receipt.dataset not in ledgers:
                found.append(Finding(True, f"{receipt.dataset!r}, of its receipt, is not checked"))
            else:
                found += statement_findings(
                    statement, ledgers[receipt.dataset][0] if receipt else []
                )
            if receipt and first.setdefault(receipt, file) != file:
                words = f"{first[receipt]} has the same receipt: it holds one release"
                found.append(Finding(False, words))
            told.append(({"file": file}, f"{file}: {at}", found))
    agrees = not any(one.grave for *_, found in told for one in found)
    plain = [{**of, "findings": [vars(one) for one in found]} for of, _, found in told]
    lists = {"ledgers": plain[: len(ledgers)], "statements": plain[len(ledgers) :]}

    def say() -> None:
        for _, words, found in told:
            files.print_lines(words)
            for one in found:
                kind = "CONTRADICTION" if one.grave else "note"
                files.print_lines(f"  {kind}: {one.sentence}")
        click.echo(f"Consistent. {PROVES}" if agrees else "Inconsistent.")

    files.deliver(ask, {"consistent": agrees, "address": shown, **lists, "proves": PROVES}, say)
    if not agrees:
        no()


def _lines_of(place: str, dataset: str | None) -> dict[str, tuple[list[Any], list[str]]]:
    """The lines of each ledger of a store; and why no more of them can be read."""
    from ..ledger import Ledger
    from ..statement.document import UNPRICED

    found: dict[str, tuple[list[Any], list[str]]] = {}
    known = Ledger.datasets(place)
    if not known or dataset not in (None, *known):
        fix = f"Known in {_urls.without_password(place)}: {', '.join(known) or 'none'}."
        raise DataNotFoundError.expected("one that is there", of="dataset", got=dataset, remedy=fix)
    for name in known if dataset is None else [dataset]:
        lines, unread = list[Any](), list[str]()
        try:
            for line in Ledger.open(place, name, read_only=True).history():
                lines.append(line)
        except UNPRICED as error:
            unread = [f"its lines cannot be read: {error}"]
        found[name] = (lines, unread)
    return found


def _examined(file: Path) -> Any:
    """A statement's file, or a folder that a command wrote, and what contradicts itself in it."""
    from ..statement.document import examine

    try:
        return examine(statement_text(file))
    except StatementError as error:
        raise StatementError(f"{file}: {error}") from None
