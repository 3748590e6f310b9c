"""What a ledger says of itself, in numbers and in words that never promise more: its balance, its
terms, every release, and what a check of it found.

Guarantees (tests/ledger/test_ledger_handle.py):
1. Shares by kind of promise are sums of whole units: with what is left they make up the budget.
   What is spent is rounded up, what is left down.
2. A balance reads no line's content but the last one's. Lines that contradict each other are summed
   up as they stand: what is wrong with them is `check`'s to say.
3. All of it is in the ledger: names, purposes and plans, never a row or an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ..core.promise import Promise
from ..show.charts import Axis, Row, Rows
from ..show.numbers import at_least, delta_words, left, printable, promised, spent
from ..show.parts import Column, Facts, Note, Part, Shown, Table
from .entries import COMMITTED, CREATED, REFUNDED, RESERVED, RESUMED, WHOLE, Entry
from .terms import Terms

if TYPE_CHECKING:
    from ..statement.form import Finding

MOST_WAITING, MOST_SPENDS, MOST_PURPOSES, MOST_BARS = 100, 200, 50, 12
CONTRADICTS = "THE LEDGER CONTRADICTS ITSELF."
AGREES = "Its lines agree with each other: chain, sums and prices were recomputed."
NOT_RECORDED = (
    "Not covered: what was released from the same people and not recorded in this ledger: without "
    "one, in another, or by other means."
)
APART = (
    "Spends under different relations are kept apart: each is charged what it costs between the "
    "ledger's own neighbours."
)
NO_SUM = "Epsilons are those of one release of such a share; shares add up, epsilons do not."
GUARDED = {
    "records": "records: features, label and sensitive columns",
    "sensitive_features": "the sensitive columns only: all else, and the number of rows, is "
    "treated as public",
}
NEIGHBOURS = {
    "add-remove": "tables that differ by one row added or removed",
    "replace-one": "tables that differ in one row, which is replaced",
}
TAKES = {
    "renyi": "takes every event",
    "gaussian": "takes unsampled Gaussian releases and pure ones, no random batches",
    "zcdp": "takes what is zero-concentrated",
    "pure": "adds up epsilons",
}
STATES = {
    RESERVED: "not settled",
    RESUMED: "not settled, went on",
    COMMITTED: "committed",
    REFUNDED: "given back",
}
"""What happened to a spend last."""


# -- the balance -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Under:
    """What releases under one promise's kind add up to: `under` names who is protected, between
    which neighbours."""

    under: str
    spends: int
    share: float


@dataclass(frozen=True)
class Balance(Shown):
    """Shares are of the filter's budget. `spent` and `left` are epsilons at the ledger's delta, as
    one release each: what is left is what one more release may cost, and neither is a difference of
    the other. `open`: spends that nobody settled yet (running, or dead); they are charged as
    reserved. `waiting`: ids of these, the oldest first, at most 100 of them. `more`: how many
    releases like the newest one still fit; None where nothing is charged."""

    dataset: str
    epsilon: float
    delta: float
    entries: int
    spent_share: float
    left_share: float
    leaked_share: float
    spent: float
    left: float
    open: int
    committed: int
    refunded: int
    by_promise: tuple[Under, ...]
    last: str
    waiting: tuple[str, ...] = ()
    more: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def parts(self) -> Iterator[Part]:
        """The budget, what is spent of it and what is left."""
        made = f"{self.committed + self.open:,}, of them not settled: {self.open:,}"
        pairs = (*self._facts(), ("releases", made))
        yield Facts.of(pairs, self.dataset)

    def _facts(self) -> tuple[tuple[str, str], ...]:
        whole = f"epsilon = {promised(self.epsilon)} at delta = {delta_words(self.delta)}"
        more = "" if self.more is None else f": {more_words(self.more)}"
        rest = f"{left(self.left_share)} (as one release epsilon = {at_least(self.left)}){more}"
        return ("budget", whole), ("spent", spent(self.spent_share)), ("left", rest)

    def __str__(self) -> str:
        (_, whole), (_, gone), (_, rest) = self._facts()
        share, _, more = rest.partition(" ")
        waiting = f"; not settled: {self.open:,}" if self.open else ""
        return f"{self.dataset}: {gone} of {whole} spent, {share} left {more}{waiting}"


def balance_of(terms: Terms, last: Entry, charges: Iterable[tuple[str, str, str, int]]) -> Balance:
    """One pass over (kind, spend, under, units); the sums are the last line's."""
    kinds: Counter[str] = Counter()
    spends: Counter[str] = Counter()
    units: Counter[str] = Counter()
    now: Counter[str] = Counter()
    waiting: dict[str, None] = {}
    for kind, spend, under, amount in charges:
        kinds[kind] += 1
        units[under] += amount
        now[spend] += amount
        spends[under] += (kind == RESERVED) - (kind == REFUNDED)
        if kind == RESERVED:
            waiting[spend] = None
        elif kind in (COMMITTED, REFUNDED):
            waiting.pop(spend, None)
    newest = next((charged for charged in reversed(now.values()) if charged > 0), 0)
    room = max(0, WHOLE - last.spent)
    return Balance(
        dataset=terms.dataset,
        epsilon=terms.promise.epsilon,
        delta=terms.promise.delta,
        entries=last.number + 1,
        spent_share=share(last.spent),
        left_share=room / WHOLE,
        leaked_share=share(last.leaked),
        spent=terms.as_release(last.spent),
        left=terms.as_release(room),
        open=len(waiting),
        committed=kinds[COMMITTED],
        refunded=kinds[REFUNDED],
        by_promise=tuple(
            Under(name, spends[name], share(units[name])) for name in sorted(spends) if spends[name]
        ),
        last=last.at,
        waiting=tuple(waiting)[:MOST_WAITING],
        more=room // newest if newest else None,
    )


def share(units: int) -> float:
    """Of the whole budget; what the last bits of decimals went beyond it is not told."""
    return min(1.0, units / WHOLE)


def more_words(more: int) -> str:
    """What is left, in releases.

    >>> more_words(4), more_words(0)
    ('about 4 more fits like this one', 'no more fit like this one')
    """
    fits = f"about {more:,} more fit{'s' * (more != 1)}" if more else "no more fit"
    return f"{fits} like this one"


# -- the page --------------------------------------------------------------------------------------


def terms_in_words(terms: Terms, first: Entry) -> tuple[tuple[str, str], ...]:
    """(heading, words) of the terms, and of the line that began the ledger."""
    promise, leaks = terms.promise, ""
    if terms.kind != "pure":
        leaks = f"; {100 * terms.reserve:.3g}% of delta is kept for leaks"
    order = "" if terms.order is None else f" of order {terms.order:g}"
    columns = f" ({', '.join(terms.columns)})" if terms.columns else ""
    strict = "yes: no seeded noise, and nothing that was read from the data without privacy"
    usual = "no: seeded noise is taken, and facts that were read from the data"
    whole = f"epsilon = {promised(promise.epsilon)} at delta = {delta_words(promise.delta)}"
    only = f"only the one of fingerprint {terms.fingerprint}" if terms.fingerprint else "any"
    return (
        ("Guarantee", f"{whole}, for all that is recorded here together"),
        ("Protected", GUARDED[promise.protects] + columns),
        ("Neighbours", f"{_neighbours(promise)} ({promise.neighbours})"),
        ("Filter", f"{terms.kind}{order}, which {TAKES[terms.kind]}{leaks}"),
        ("Production", strict if terms.production else usual),
        ("Schema", only),
        ("Begun", f"{first.at} by {first.who} ({first.code})"),
    )


def _neighbours(promise: Promise) -> str:
    if promise.unit is None:
        return NEIGHBOURS[promise.neighbours]
    whole = NEIGHBOURS[promise.neighbours].replace("row", "person")
    return f"{whole}, with {promise.unit.extent}; persons are identified by {promise.unit.name!r}"


def unsettled(count: int) -> str:
    """What it means that so many spends are open."""
    verb = "is" if count == 1 else "are"
    return f"{count:,} {verb} not settled (running, or its process died), and charged as reserved."


@dataclass(frozen=True)
class Told:
    """One spend: the line that reserved it, what happened to it last (`state`), what it is charged
    now and was at first."""

    spend: str
    entry: int
    at: str
    who: str
    purpose: str
    under: str
    state: str
    share: float
    reserved_share: float

    @staticmethod
    def of(first: Entry, state: str, units: int) -> Told:
        """A spend in plain numbers, from the line that reserved it."""
        about = (first.spend, first.number, first.at, first.who, first.purpose, first.under)
        return Told(*about, state, share(units), share(first.units))


@dataclass(frozen=True)
class LedgerPage(Shown):
    """A ledger as it is now: where it is (without a password), its terms in words, what is spent,
    every spend (the newest last), and what a check of it found."""

    place: str
    terms: tuple[tuple[str, str], ...]
    balance: Balance
    spends: tuple[Told, ...]
    findings: tuple[Finding, ...]

    @staticmethod
    def of(ledger: Any, findings: Sequence[Finding] | None = None) -> LedgerPage:
        """The page of a `Ledger`. `findings`: of its `check()`, which is made here where it was not.

        >>> from fairveil.ledger import Ledger
        >>> from fairveil.core.events import Gaussian
        >>> budget = Ledger.create(None, "census of a page", 1.0, 1e-6)
        >>> budget.reserve(Gaussian(12.0), purpose="counts").commit()
        >>> [(spend.purpose, spend.state) for spend in LedgerPage.of(budget).spends]
        [('counts', 'committed')]
        """
        found: dict[str, tuple[Entry, str, int]] = {}
        for line in ledger.history():
            if line.kind == RESERVED:
                found[line.spend] = (line, RESERVED, line.units)
            elif line.kind != CREATED and line.spend in found:
                first, _, units = found[line.spend]
                found[line.spend] = (first, line.kind, units + line.units)
        place = ledger.shown if "://" in ledger.shown else PurePath(ledger.shown).name
        return LedgerPage(
            place,
            terms_in_words(ledger.terms, next(ledger.history(0, 1))),
            ledger.balance(),
            tuple(Told.of(*one) for one in found.values()),
            tuple(ledger.check() if findings is None else findings),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must not be overlooked."""
        return (CONTRADICTS,) if any(one.grave for one in self.findings) else ()

    def parts(self) -> Iterator[Part]:
        """Budget, check, terms, and every release."""
        yield from self.balance.parts()
        told = [("grave" if x.grave else "also", printable(x.sentence)) for x in self.findings]
        yield Facts.of(told, "What a check found") if told else Note(AGREES)
        yield Facts.of(self.terms, "What it promises")
        if any(one.share for one in self.spends):
            yield self._budget()
        kinds = self.balance.by_promise
        if kinds:
            rows = [(one.under, one.spends, one.share) for one in kinds]
            yield _shares("under", rows, "By kind of promise")
            yield Note(APART)
        if self.spends:
            yield _shares("purpose", self._purposes(), "By purpose")
            yield self._releases(self.spends[::-1])
            yield Note(NO_SUM)
        yield Note(NOT_RECORDED)

    def _purposes(self) -> list[tuple[str, int, float]]:
        """Releases and their share by purpose, the dearest first."""
        made: dict[str, tuple[int, float]] = {}
        for one in self.spends:
            count, share = made.get(one.purpose, (0, 0.0))
            made[one.purpose] = count + (one.state != REFUNDED), share + one.share
        dearest = sorted((-share, name, count) for name, (count, share) in made.items() if count)
        return [(name, count, -share) for share, name, count in dearest]

    def _budget(self) -> Rows:
        """The largest spends in their order, all others, and what is left."""
        largest = {one.spend for one in sorted(self.spends, key=lambda one: -one.share)[:MOST_BARS]}
        rows = [Row(_name(x), x.share) for x in self.spends if x.share and x.spend in largest]
        rest = [one.share for one in self.spends if one.share and one.spend not in largest]
        rows += [Row(f"{len(rest):,} smaller ones", sum(rest))] if rest else []
        rows.append(Row("left", self.balance.left_share, hollow=True))
        title = f"The budget of {printable(self.balance.dataset)}, release by release"
        return Rows(title, Axis("share of the budget", "percent"), tuple(rows), bars=True)

    def _releases(self, spends: Sequence[Told]) -> Table:
        def column(name: str, of: Callable[[Told], Any], unit: str = "") -> Column:
            return Column(name, tuple(map(of, spends)), unit)

        columns = (
            column("line", lambda one: one.entry),
            column("when (UTC)", lambda one: one.at[:19].replace("T", " ")),
            column("who", lambda one: printable(one.who)),
            column("purpose", lambda one: printable(one.purpose)),
            column("under", lambda one: one.under),
            column("state", lambda one: STATES.get(one.state, one.state)),
            column("share", lambda one: one.share, "spent"),
            column("reserved", lambda one: one.reserved_share, "spent"),
        )
        return Table(columns, "Releases, the newest first", MOST_SPENDS)


def _shares(name: str, rows: Sequence[tuple[str, int, float]], title: str) -> Table:
    names, counts, shares = zip(*rows, strict=True) if rows else ((), (), ())
    told = Column(name, tuple(map(printable, names)))
    columns = (told, Column("releases", counts, "count"), Column("share", shares, "spent"))
    return Table(columns, title, MOST_PURPOSES)


def _name(spend: Told) -> str:
    waiting = " (not settled)" if spend.state in (RESERVED, RESUMED) else ""
    return (spend.purpose.strip() or f"line {spend.entry}") + waiting
