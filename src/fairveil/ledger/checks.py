"""Does a ledger agree with itself, with receipts that were kept elsewhere, and with statements?
Everything is worked out again from its lines.

A line that was edited, or taken out of the middle, breaks the chain; who rewrites lines and hashes,
or takes the last ones off, is found by a receipt (each statement holds one) or an export.

Guarantees (tests/ledger/test_ledger_checks.py):
1. Every edit of one field of one line, and every line deleted from between others, added, doubled or
   moved is a grave finding; so is a charge below what its events cost, or a sum that is not that of
   its lines, chained or not. What a ledger wrote has none.
2. A statement whose receipt, relation or source of noise is not that of the line, whose spend was
   given back, whose plan holds a release that neither this line nor an earlier one reserved, or
   whose releases were settled as if they had not been made, has a grave finding. One that was
   written beside its spends has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.events import Composed, Event, NoOp, Repeated, from_dict
from ..core.promise import Promise
from ..errors import FairveilError, LedgerError
from ..statement.document import UNPRICED, is_whole
from ..statement.form import Finding
from .entries import (
    COMMITTED,
    CREATED,
    MOST,
    REFUNDED,
    RESERVED,
    Cost,
    Entry,
    Spent,
    checked_columns,
    misfits,
    standing,
)
from .terms import Terms, under

if TYPE_CHECKING:
    from ..statement.document import PrivacyStatement, Receipt

SLACK = 1e-9
"""A cost that is recomputed may differ by so much: another processor's last bits."""


def findings(lines: Iterable[Entry], receipts: Sequence[Receipt] = ()) -> list[Finding]:
    """All contradictions, the grave ones first."""
    book = _Book()
    for receipt in receipts:
        book.receipts.setdefault(receipt.entry, []).append(receipt)
    try:
        for line in lines:
            book.read(line)
        for number in sorted(book.receipts):
            book.say(f"a receipt names line {number}, which is not there: lines were taken off")
        waiting = sum(spent.is_open for spent in book.spends.values())
        if waiting:
            words = "running, or their process died, and charged as reserved"
            book.say(f"spends that are not settled ({words}): {waiting}", grave=False)
    except UNPRICED as error:  # what a stranger's lines may add up to
        at = book.before.number if book.before else 0
        book.found.append(_unreadable(f"at line {at}", error))
    return sorted(book.found, key=lambda one: not one.grave)


class _Book:
    """What was read so far."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self.receipts: dict[int, list[Receipt]] = {}
        self.spends: dict[str, Spent] = {}
        self.before: Entry | None = None
        self.at = ""
        self.terms: Terms | None = None
        self.columns: tuple[str, ...] | None = None
        self.costs: dict[tuple[str, str], tuple[Event, Promise, Cost]] = {}

    def say(self, sentence: str, holds: object = False, *, grave: bool = True) -> None:
        """A finding where something does not hold."""
        if not holds:
            self.found.append(Finding(grave, sentence))

    def read(self, line: Entry) -> None:
        """One more line."""
        here = f"line {line.number}"
        for sentence in misfits(self.before, line):
            self.say(sentence)
        self.say(f"{here} is dated before the line above it", line.at >= self.at, grave=False)
        self.at = max(line.at, self.at)
        if self.terms is None:
            self.terms = Terms.of(line)
            bare = (line.units, line.leak, line.spend) == (0, 0, "")
            bare = bare and line.under == under(self.terms.promise)
            self.say(f"{here} begins the ledger, and says more than its terms", bare)
        else:
            self._spend(self.terms, line)
        for receipt in self.receipts.pop(line.number, []):
            words = f"and this is the ledger of {self.terms.dataset!r}"
            same = receipt.dataset == self.terms.dataset
            self.say(f"a receipt is of data set {receipt.dataset!r}, {words}", same)
            same = (receipt.hash, receipt.spend) == (line.hash, line.spend)
            words = "the ledger was written anew"
            self.say(f"{here} is not the one of which a receipt was given: {words}", same)
        self.before = line
        self.say(f"{here} passes the cap", max(line.spent, line.leaked) <= MOST)

    def _spend(self, terms: Terms, line: Entry) -> None:
        """Follow the spend's life, and price what it says again."""
        known, here = self.spends.get(line.spend), f"line {line.number}"
        if line.kind == CREATED:
            raise LedgerError(f"{here} begins the ledger a second time")
        if (known is None) != (line.kind == RESERVED):
            done = "reserves a spend a second time" if known else "settles one never reserved"
            raise LedgerError(f"{here} {done}: {line.spend}")
        now = standing([line]) if known is None else known.after(line)
        self.spends[line.spend], first = now, now.reserved
        if known is None:
            self._reserved(terms, line, now)
            return
        words = f"its spend was reserved under {first.under!r}"
        self.say(f"{here} is under {line.under!r}, and {words}", line.under == first.under)
        if line.kind == COMMITTED:
            events, kept = line.values.get("events"), (line.units, line.leak) == (0, 0)
            fair = kept or not (events is None or now.whole)
            self.say(f"{here} gives back a part of what was released", fair)
            if events is not None and not now.whole:
                cost = self._priced(terms, events, first.values.get("promise"), line)[2]
                self._compare(line, cost, now)

    def _reserved(self, terms: Terms, line: Entry, now: Spent) -> None:
        here, values = f"line {line.number}", line.values
        event, promise, cost = self._priced(terms, values.get("plan"), values.get("promise"), line)
        right = line.under == under(promise)
        self.say(f"{here} is under {line.under!r}, which is not its guarantee's", right)
        strict = (values.get("noise"), values.get("read_from_data")) == ("secure", [])
        words = "seeded noise, or something read from the data: in production none is taken"
        self.say(f"{here} has {words}", strict or not terms.production)
        named = values.get("columns")
        if named is not None:
            right = promise.protects == "sensitive_features"
            right = right and list(checked_columns(named)) == named
            self.say(f"{here} names protected columns that its guarantee does not have", right)
            self.columns = self.columns or terms.columns or tuple(named)
            missed = ", ".join(sorted(set(self.columns) - set(named)))
            self.say(f"{here} does not protect {missed}: its release published them", not missed)
        if not now.whole:
            self._compare(line, cost, now)
            return
        untouched = self.before is None or self.before.is_untouched
        all_of_it = untouched and (now.units, now.leak) == (MOST, MOST)
        fair = all_of_it and terms.fits_alone(event, promise)
        self.say(f"{here} was given the whole ledger, and could not be", fair)

    def _compare(self, line: Entry, cost: Cost, now: Spent) -> None:
        pairs = ((now.units, cost.units), (now.leak, cost.leak))
        enough = all(charged >= least * (1 - SLACK) - 1 for charged, least in pairs)
        words = f"is charged {now.units} units; its events cost {cost.units}"
        self.say(f"line {line.number} {words}", enough)

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


# -- a statement and its ledger --------------------------------------------------------------------


def statement_findings(
    statement: PrivacyStatement, lines: Sequence[Entry], earlier: Callable[[int], Iterable[Entry]]
) -> list[Finding]:
    """What does not fit. `lines`: of the spend that the receipt names, in order; `earlier(n)`: the
    first n lines of the ledger, which are read only where they are needed.

    A statement may be of several spends: a post-processor's of its base and its counts, one without
    a plan of each of its answers. And a line may be of several statements: of models that were
    fitted side by side. So what a statement's plan holds must be in the plan of its receipt's line
    and, where that is less, in those of earlier ones.
    """
    receipt = statement.ledger
    if receipt is None:
        return [Finding(True, "it has no receipt: nothing shows that a ledger holds this release")]
    at = f"its receipt names spend {receipt.spend} at line {receipt.entry}"
    if not lines:
        return [Finding(True, f"{at}, which is not there: lines were taken off")]
    try:
        now = standing(lines)
        first = now.reserved
        relation = under(Promise.from_dict(first.values["promise"]))
        own = (first.number, first.hash, first.digest()) == (
            receipt.entry,
            receipt.hash,
            first.hash,
        )
        n, ours, noise = first.number, under(statement.promise), first.values["noise"]
        anew, gone = "the ledger was written anew", "nothing of this release is charged"
        told = (
            (True, own, f"line {receipt.entry} is not the one of its receipt: {anew}"),
            (True, relation == ours, f"it is under {ours}, line {n} was reserved under {relation}"),
            (
                True,
                noise == statement.noise,
                f"its noise is stated as {statement.noise}, line {n} was reserved for {noise} noise",
            ),
            (True, now.last != REFUNDED, f"spend {receipt.spend} was given back: {gone}"),
            (
                False,
                not now.is_open,
                f"spend {receipt.spend} is not settled: it is charged as it was reserved",
            ),
        )
        found = [Finding(grave, sentence) for grave, holds, sentence in told if not holds]
        return [*found, *_charged(statement, now, lines[-1]), *_planned(statement, first, earlier)]
    except UNPRICED as error:  # what a stranger's lines may add up to
        return [_unreadable("its lines cannot be read", error)]


def _charged(statement: PrivacyStatement, now: Spent, last: Entry) -> list[Finding]:
    """Whether what was given back had not been released: all of the plan was done, finer than
    planned, or what the statement lists is among what is charged."""
    charged = last.values.get("events") if last.kind == COMMITTED else None
    if charged is None or (now.units, now.leak) == (now.reserved.units, now.reserved.leak):
        return []
    events, plan = from_dict(charged), from_dict(now.reserved.values["plan"])
    if is_whole((events,), (plan,), statement.promise.neighbours):
        return []
    stated = statement.events if statement.plan is None else statement.plan
    elsewhere = releases(stated) - releases([plan])
    lacking = sum((releases(statement.events) - elsewhere - releases([events])).values())
    words = f"{lacking} of its releases are not among those that line {last.number} is charged for"
    return [Finding(True, words)] if lacking else []


def _planned(
    statement: PrivacyStatement, line: Entry, earlier: Callable[[int], Iterable[Entry]]
) -> list[Finding]:
    """Where the releases are that the statement is charged for."""
    n = line.number
    wanted = releases(statement.events if statement.plan is None else statement.plan)
    here = releases([from_dict(line.values["plan"])])
    missing, numbers = wanted - here, [n]
    if not missing:
        words = f"line {n} holds other releases beside it: they were reserved together"
        return [] if here == wanted else [Finding(False, words)]
    known = list(earlier(n))
    refunded = {entry.spend for entry in known if entry.kind == REFUNDED}
    for entry in reversed(known):
        if missing and entry.kind == RESERVED and entry.spend not in refunded:
            there = releases([from_dict(entry.values["plan"])])
            if there and (there <= missing or missing <= there):
                missing = missing - there
                numbers.insert(0, entry.number)
    if not missing:
        return [Finding(False, f"it is of several spends: lines {', '.join(map(str, numbers))}")]
    lacking = f"{sum(missing.values())} of its {sum(wanted.values())} releases"
    words = f"neither line {n} nor earlier ones reserved {lacking}"
    return [Finding(True, f"its plan is not in the ledger: {words}")]


def releases(events: Iterable[Event], times: int = 1) -> Counter[Event]:
    """Every release that composition and repetition stand for, with how often it was made.

    >>> from fairveil.core.events import Gaussian, compose
    >>> releases([Gaussian(2.0), Repeated(compose([Gaussian(2.0), NoOp()]), 3)])
    Counter({Gaussian(noise_multiplier=2.0): 4})
    """
    found: Counter[Event] = Counter()
    for event in events:
        if isinstance(event, Composed):
            found.update(releases(event.events, times))
        elif isinstance(event, Repeated):
            found.update(releases([event.event], times * event.count))
        elif not isinstance(event, NoOp):
            found[event] += times
    return found


def _unreadable(where: str, error: BaseException) -> Finding:
    ours = isinstance(error, FairveilError)
    return Finding(True, f"{where}: {error if ours else f'{type(error).__name__}: {error}'}")
