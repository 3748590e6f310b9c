"""What `fairveil ledger check` looks at: all lines of a ledger, or of an exported one, and
statements that name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from .. import _urls
from .._reading import read_text
from ..errors import DataNotFoundError, FairveilError, LedgerError, StatementError
from ..ledger import Entry, Ledger, Terms, findings, statement_findings
from ..ledger.entries import parsed
from ..statement.check import Finding
from ..statement.document import UNPRICED, PrivacyStatement, Receipt, examine
from .printing import on_one_line, print_json

SQLITE_HEADER = b"SQLite format 3\x00"
STATEMENT = "statement.json"
LARGEST_FILE = 1 << 30
WHAT_IT_PROVES = (
    "This proves that the lines agree with each other, and with the statements that were given; "
    "not that all was recorded, nor "
    "that this is the newest copy: hold it against statements and exports that were kept elsewhere."
)


@dataclass(frozen=True)
class Checked:
    """One ledger: how many lines, the last one's hash, what was found, the lines of the spends that
    statements name, and how to read the first so many."""

    dataset: str
    entries: int
    last: str
    found: tuple[Finding, ...]
    lines: dict[str, list[Entry]]
    first: Callable[[int], Iterable[Entry]]


@dataclass(frozen=True)
class Compared:
    """One statement: what it names, what was found."""

    file: str
    receipt: Receipt | None
    found: tuple[Finding, ...]


@dataclass(frozen=True)
class Result:
    """All that was looked at."""

    shown: str
    ledgers: tuple[Checked, ...]
    statements: tuple[Compared, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing grave was found."""
        found = [finding for one in self.ledgers for finding in one.found]
        return not any(
            finding.grave
            for finding in (*found, *(two for one in self.statements for two in one.found))
        )


def checked(place: str, dataset: str | None, statements: Sequence[Path]) -> Result:
    """Check what is there, and the statements against it."""
    read = [(str(file), *_examined(file)) for file in statements]
    spends = {statement.ledger.spend for _, statement, _ in read if statement.ledger is not None}
    ledgers = (_exported if _is_exported(place) else _kept)(place, dataset, spends)
    compared = [_compared(file, statement, found, ledgers) for file, statement, found in read]
    return Result(_urls.without_password(place), tuple(ledgers), tuple(_twice(compared)))


def print_checked(result: Result, *, json: bool) -> None:
    """The findings, in words or numbers."""
    if json:
        print_json(_numbers(result))
        return
    for ledger in result.ledgers:
        lines = "1 line" if ledger.entries == 1 else f"{ledger.entries:,} lines"
        typer.echo(
            f"{ledger.dataset} in {result.shown}: {lines}, the last one's hash is "
            f"{ledger.last or '-'}"
        )
        _say(ledger.found)
    for one in result.statements:
        named = (
            "no receipt"
            if one.receipt is None
            else f"line {one.receipt.entry} of {on_one_line(one.receipt.dataset)}"
        )
        typer.echo(f"{one.file}: {named}")
        _say(one.found)
    typer.echo(f"Consistent. {WHAT_IT_PROVES}" if result.agrees else "Inconsistent.")


def text_of(file: Path) -> str:
    """A document in UTF-8."""
    remedy = "Pass what `fairveil ledger export` wrote."
    return read_text(
        file, what="a file that can be read", most=LARGEST_FILE, remedy=remedy, error=LedgerError
    )


def _is_exported(place: str) -> bool:
    """Whether it is a file that is no database. What is not there is for the store to say."""
    path = Path(place)
    if "://" in place or not path.is_file():
        return False
    with path.open("rb") as opened:
        start = opened.read(len(SQLITE_HEADER))
    return start not in (b"", SQLITE_HEADER)


def _kept(place: str, dataset: str | None, spends: set[str]) -> list[Checked]:
    names = Ledger.datasets(place)
    if not names or (dataset is not None and dataset not in names):
        Ledger.open(place, dataset, read_only=True)  # says what there is
    return [_of_store(place, name, spends) for name in names if dataset in (None, name)]


def _of_store(place: str, name: str, spends: set[str]) -> Checked:
    """A ledger of which not even the first line can be read is a contradiction, not a wrong
    question."""
    try:
        ledger = Ledger.open(place, name, read_only=True)
        count = ledger.balance().entries
        last = next(ledger.history(count - 1, 1)).hash
        named = _lines_of(ledger.history() if spends else (), spends)
        return Checked(name, count, last, tuple(ledger.check()), named, partial(ledger.history, 0))
    except UNPRICED as error:
        return Checked(name, 0, "", (_unreadable(error),), {}, _nothing)


def _lines_of(lines: Iterable[Entry], spends: set[str]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for line in lines:
        if line.spend in spends:
            found.setdefault(line.spend, []).append(line)
    return found


def _exported(place: str, dataset: str | None, spends: set[str]) -> list[Checked]:
    lines = parsed(text_of(Path(place)))
    try:
        name = Terms.of(lines[0]).dataset
    except UNPRICED as error:
        return [
            Checked(dataset or "?", len(lines), lines[-1].hash, (_unreadable(error),), {}, _nothing)
        ]
    if dataset not in (None, name):
        remedy = "Leave --dataset out: an export is of one."
        raise DataNotFoundError.expected(
            f"{name!r}, which this is", of="--dataset", got=dataset, remedy=remedy
        )
    found = findings(lines)
    return [
        Checked(
            name,
            len(lines),
            lines[-1].hash,
            tuple(found),
            _lines_of(lines, spends),
            lambda number: lines[:number],
        )
    ]


def _nothing(number: int) -> Iterable[Entry]:
    return ()


def _unreadable(error: BaseException) -> Finding:
    words = str(error) if isinstance(error, FairveilError) else f"{type(error).__name__}: {error}"
    return Finding(True, f"its lines cannot be read: {words}")


def _examined(file: Path) -> tuple[PrivacyStatement, list[Finding]]:
    """A statement's file, or a folder that a command wrote, and what contradicts itself in it."""
    from .verify import text_of

    try:
        return examine(text_of(file / STATEMENT if file.is_dir() else file))
    except StatementError as error:
        words = f"{file}: {error}"
    raise StatementError(words)


def _compared(
    file: str, statement: PrivacyStatement, own: list[Finding], ledgers: Sequence[Checked]
) -> Compared:
    """A statement against the ledger that its receipt names, and against itself."""
    receipt = statement.ledger
    named = [one for one in ledgers if receipt is not None and one.dataset == receipt.dataset]
    if receipt is None or named:
        lines = named[0].lines.get(receipt.spend, []) if receipt is not None else []
        found = statement_findings(statement, lines, named[0].first if named else _nothing)
    else:
        found = [
            Finding(
                True,
                f"its receipt is of data set {receipt.dataset!r}, which is not among those that "
                f"were checked",
            )
        ]
    return Compared(file, receipt, tuple(sorted((*own, *found), key=lambda one: not one.grave)))


def _twice(compared: Sequence[Compared]) -> list[Compared]:
    """A receipt holds one release: where two files show the same one, that is worth knowing."""
    first: dict[Receipt, str] = {}
    out = []
    for one in compared:
        found = one.found
        if one.receipt is not None and first.setdefault(one.receipt, one.file) != one.file:
            found = (
                *found,
                Finding(False, f"{first[one.receipt]} has the same receipt: it holds one release"),
            )
        out.append(Compared(one.file, one.receipt, found))
    return out


def _say(found: Sequence[Finding]) -> None:
    for finding in found:
        typer.echo(
            f"  {'CONTRADICTION' if finding.grave else 'note'}: {on_one_line(finding.sentence)}"
        )


def _numbers(result: Result) -> dict[str, Any]:
    def told(found: Sequence[Finding]) -> list[dict[str, Any]]:
        return [{"grave": one.grave, "sentence": one.sentence} for one in found]

    return {
        "consistent": result.agrees,
        "address": result.shown,
        "ledgers": [
            {
                "dataset": one.dataset,
                "entries": one.entries,
                "last": one.last,
                "findings": told(one.found),
            }
            for one in result.ledgers
        ],
        "statements": [
            {
                "file": one.file,
                "receipt": None if one.receipt is None else dict(vars(one.receipt)),
                "findings": told(one.found),
            }
            for one in result.statements
        ],
        "proves": WHAT_IT_PROVES,
    }
