"""Does a ledger agree with itself, and with receipts that were kept elsewhere? Everything is worked
out again from its lines.

A line that was edited, or taken out of the middle, breaks the chain; lines taken off the end no
longer reach the head that is kept beside them; who rewrites lines, hashes and head together is
found by a receipt (each statement holds one) or an export.

Guarantees (tests/privacy/ledger/test_ledger_checking.py):
1. Every edit of one field of one line, every line deleted, added, doubled or moved is a grave
   finding.
2. A charge below what its events cost, or a sum that is not that of its lines, is a grave finding,
   chained or not.
3. What a ledger wrote has no grave finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...core.events import Event, from_dict
from ...core.promise import Promise
from ...errors import FairveilError, LedgerError
from ..statement.checks import Finding
from ..statement.pricing import UNPRICED
from .costs import MOST, Cost
from .lines import terms_of, under
from .names import checked_columns
from .spends import Spent, after, standing
from .stores.entries import COMMITTED, CREATED, FIRST_PREVIOUS, RESERVED, Entry
from .terms import Terms

if TYPE_CHECKING:
    from ..statement.parts import Receipt

SLACK = 1e-9
"""A cost that is recomputed may differ by so much: another processor's last bits."""


def findings(
    lines: Iterable[Entry], head: tuple[int, str], receipts: Sequence[Receipt] = ()
) -> list[Finding]:
    """All contradictions, the grave ones first."""
    book = _Book(receipts)
    try:
        for line in lines:
            book.read(line)
    except UNPRICED as error:  # what a stranger's lines may add up to
        words = (
            str(error) if isinstance(error, FairveilError) else f"{type(error).__name__}: {error}"
        )
        book.say(True, f"at line {book.number - 1}: {words}")
        return sorted(book.found, key=lambda one: not one.grave)
    if (book.number - 1, book.previous) != head:
        book.say(
            True,
            f"the last line is number {book.number - 1}, the head beside says {head[0]}: lines "
            f"were taken off or changed",
        )
    for number in sorted(book.receipts):
        book.say(True, f"a receipt names line {number}, which is not there: lines were taken off")
    waiting = sum(spent.is_open for spent in book.spends.values())
    if waiting:
        book.say(
            False,
            f"{waiting} spends are not settled: they run, or their process died; they are charged "
            f"as reserved",
        )
    return sorted(book.found, key=lambda one: not one.grave)


def past_the_head(line: Entry, head: tuple[int, str]) -> Finding:
    """Of a line that no head was ever moved to."""
    return Finding(
        True,
        f"line {line.number} is there, and the head beside says {head[0]}: lines were added, or "
        f"the head changed",
    )


class _Book:
    """What was read so far."""

    def __init__(self, receipts: Sequence[Receipt]) -> None:
        self.found: list[Finding] = []
        self.receipts: dict[int, list[Receipt]] = {}
        for receipt in receipts:
            self.receipts.setdefault(receipt.entry, []).append(receipt)
        self.spends: dict[str, Spent] = {}
        self.number, self.previous, self.at = 0, FIRST_PREVIOUS, ""
        self.spent = self.leaked = 0
        self.terms: Terms | None = None
        self.columns: tuple[str, ...] | None = None
        self.costs: dict[tuple[str, str], tuple[Event, Promise, Cost]] = {}

    def say(self, grave: bool, sentence: str) -> None:
        self.found.append(Finding(grave, sentence))

    def read(self, line: Entry) -> None:
        """One more line."""
        here = f"line {line.number}"
        if line.number != self.number:
            self.say(True, f"line {self.number} is missing: the next one is number {line.number}")
        if line.previous != self.previous:
            self.say(
                True,
                f"{here} does not follow the line before it: one of them was changed, or one "
                f"between was taken out",
            )
        if line.hash != line.digest():
            self.say(True, f"{here} is not what its hash was made of: it was changed")
        if line.at < self.at:
            self.say(False, f"{here} is dated before the line above it")
        self.number, self.previous, self.at = line.number + 1, line.hash, max(line.at, self.at)
        if self.terms is None:
            self.terms = terms_of(line)
            change = (line.units, line.leak)
            promise = self.terms.promise
            if change != (0, 0) or line.spend or line.under != under(promise):
                self.say(True, f"{here} begins the ledger, and says more than its terms")
            self._receipts(self.terms, line)
        else:
            self._receipts(self.terms, line)
            change = self._charge(self.terms, line)
        self.spent, self.leaked = self.spent + change[0], self.leaked + change[1]
        if (line.spent, line.leaked) != (self.spent, self.leaked):
            self.say(
                True,
                f"{here} says that {line.spent} units are spent; its lines add up to {self.spent}",
            )
            self.spent, self.leaked = line.spent, line.leaked
        if max(self.spent, self.leaked) > MOST:
            self.say(True, f"{here} passes the cap")

    def _receipts(self, terms: Terms, line: Entry) -> None:
        for receipt in self.receipts.pop(line.number, []):
            if receipt.dataset != terms.dataset:
                self.say(
                    True,
                    f"a receipt is of data set {receipt.dataset!r}, and this is the ledger of "
                    f"{terms.dataset!r}",
                )
            elif (receipt.hash, receipt.spend) != (line.hash, line.spend):
                self.say(
                    True,
                    f"line {line.number} is not the one of which a receipt was given: the ledger "
                    f"was written anew",
                )

    def _charge(self, terms: Terms, line: Entry) -> tuple[int, int]:
        """Follow the spend's life, and price what it says again."""
        if line.kind == CREATED:
            raise LedgerError(f"line {line.number} begins the ledger a second time")
        known = self.spends.get(line.spend)
        if line.kind == RESERVED:
            if known is not None:
                raise LedgerError(f"line {line.number} reserves spend {line.spend} a second time")
            now = standing([line])
            self._reserved(terms, line, now)
        elif known is None:
            raise LedgerError(
                f"line {line.number} settles spend {line.spend}, which was never reserved"
            )
        else:
            now = after(known, line)
            self._settled(terms, line, now)
        self.spends[line.spend] = now
        return line.units, line.leak

    def _reserved(self, terms: Terms, line: Entry, now: Spent) -> None:
        event, promise, cost = self._priced(
            terms, line.values.get("plan"), line.values.get("promise"), line
        )
        if line.under != under(promise):
            self.say(
                True, f"line {line.number} is under {line.under!r}, which is not its guarantee's"
            )
        if terms.production and (line.values.get("noise"), line.values.get("read_from_data")) != (
            "secure",
            [],
        ):
            self.say(
                True,
                f"line {line.number} has seeded noise, or something read from the data: in "
                f"production none is taken",
            )
        self._protected(terms, line, promise)
        if not now.whole:
            self._compare(line, cost, now)
        elif (self.spent, self.leaked, now.units, now.leak) != (
            0,
            0,
            MOST,
            MOST,
        ) or not terms.fits_alone(event, promise):
            self.say(True, f"line {line.number} was given the whole ledger, and could not be")

    def _protected(self, terms: Terms, line: Entry, promise: Promise) -> None:
        named = line.values.get("columns")
        if named is None:
            return
        if promise.protects != "sensitive_features" or list(checked_columns(named)) != named:
            self.say(
                True, f"line {line.number} names protected columns that its guarantee does not have"
            )
        self.columns = self.columns or terms.columns or tuple(named)
        if missed := set(self.columns) - set(named):
            self.say(
                True,
                f"line {line.number} does not protect {', '.join(sorted(missed))}: its release "
                f"published them",
            )

    def _settled(self, terms: Terms, line: Entry, now: Spent) -> None:
        if line.under != now.reserved.under:
            self.say(
                True,
                f"line {line.number} is under {line.under!r}, and its spend was reserved under "
                f"{now.reserved.under!r}",
            )
        if line.kind != COMMITTED:
            return
        events = line.values.get("events")
        if (line.units, line.leak) != (0, 0) and (events is None or now.whole):
            self.say(True, f"line {line.number} gives back a part of what was released")
        elif events is not None:
            cost = self._priced(terms, events, now.reserved.values.get("promise"), line)[2]
            if not now.whole:
                self._compare(line, cost, now)

    def _compare(self, line: Entry, cost: Cost, now: Spent) -> None:
        short = any(
            charged < least * (1 - SLACK) - 1
            for charged, least in ((now.units, cost.units), (now.leak, cost.leak))
        )
        if short:
            self.say(
                True,
                f"line {line.number} is charged {now.units} units; its events cost {cost.units}",
            )

    def _priced(
        self, terms: Terms, plan: object, promise: object, line: Entry
    ) -> tuple[Event, Promise, Cost]:
        key = (repr(plan), repr(promise))
        if key not in self.costs:
            if not isinstance(promise, dict):
                raise LedgerError(f"line {line.number} has no guarantee")
            event, asked = from_dict(plan), Promise.from_dict(promise)
            self.costs[key] = (event, asked, terms.cost(event, asked))
        return self.costs[key]
