"""One ledger on a page: what it promises, what was spent of it and by whom, and whether its lines
agree.

Everything here is in the ledger: names, purposes and plans, never a row or an answer. Who reads the
page reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..show.charts import Axis, Curve, Curves, Row, Rows, Rule
from ..show.numbers import printable
from ..show.parts import Column, Fact, Facts, Note, Part, Shown, Table
from .account import APART, NO_SUM, STATES, Account, Told, account_of, is_open, items, unsettled
from .balance import Balance

if TYPE_CHECKING:
    from ..statement.check import Finding
    from .ledger import Ledger

MOST_SPENDS = 200
MOST_PURPOSES = 50
MOST_BARS = 12
CONTRADICTS = "THE LEDGER CONTRADICTS ITSELF."
AGREES = "Its lines agree with each other: chain, sums and prices were recomputed."
NOT_RECORDED = (
    "Not covered: what was released from the same people and not recorded in this ledger: without "
    "one, in another, or by other means."
)


@dataclass(frozen=True)
class LedgerPage(Shown):
    """A ledger as it is now: where it is (without a password), its terms in words, what is spent,
    how it came to that, and what a check of it found."""

    place: str
    terms: tuple[tuple[str, str], ...]
    balance: Balance
    account: Account
    findings: tuple[Finding, ...]

    @staticmethod
    def of(ledger: Ledger, findings: Sequence[Finding] | None = None) -> LedgerPage:
        """The page of a handle. `findings`: of its `check()`, which is made here where it was not.

        >>> from fairveil.ledger import Ledger
        >>> from fairveil.core.events import Gaussian
        >>> budget = Ledger.create(None, "census of a page", 1.0, 1e-6)
        >>> budget.reserve(Gaussian(12.0), purpose="counts").commit()
        >>> [(spend.purpose, spend.state) for spend in LedgerPage.of(budget).account.spends]
        [('counts', 'committed')]
        """
        first = next(ledger.history(0, 1))
        place = ledger.shown if "://" in ledger.shown else PurePath(ledger.shown).name
        found = ledger.check() if findings is None else findings
        account = account_of(ledger.history())
        told = items(ledger.terms, first)
        return LedgerPage(place, told, ledger.balance(), account, tuple(found))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must not be overlooked."""
        return (CONTRADICTS,) if any(one.grave for one in self.findings) else ()

    def parts(self) -> Iterator[Part]:
        """Budget, check, terms; every release, and what was charged over time."""
        yield from self.balance.parts()
        if self.balance.open:
            yield Note(unsettled(self.balance.open))
        if self.findings:
            yield Facts(
                tuple(
                    Fact("grave" if one.grave else "also", printable(one.sentence))
                    for one in self.findings
                ),
                "What a check found",
            )
        else:
            yield Note(AGREES)
        yield Facts.of(self.terms, "What it promises")
        spends = self.account.spends
        charged = [one for one in spends if one.share > 0]
        if charged:
            yield self._budget(charged)
            if len(self.account.steps) > 1:
                yield self._course()
        if self.balance.by_promise:
            yield Table(
                (
                    Column("under", tuple(one.under for one in self.balance.by_promise)),
                    Column(
                        "releases", tuple(one.spends for one in self.balance.by_promise), "count"
                    ),
                    Column("share", tuple(one.share for one in self.balance.by_promise), "spent"),
                ),
                "By kind of promise",
            )
            yield Note(APART)
        purposes = self.account.by_purpose
        if purposes:
            yield Table(
                (
                    Column("purpose", tuple(printable(one.purpose) for one in purposes)),
                    Column("releases", tuple(one.spends for one in purposes), "count"),
                    Column("share", tuple(one.share for one in purposes), "spent"),
                ),
                "By purpose",
                MOST_PURPOSES,
            )
        if spends:
            yield self._releases(spends[::-1])
            yield Note(NO_SUM)
        yield Note(NOT_RECORDED)

    def _budget(self, charged: list[Told]) -> Rows:
        largest = sorted(charged, key=lambda one: -one.share)[:MOST_BARS]
        rows = [Row(_name(one), one.share) for one in charged if one in largest]
        rest = sum(one.share for one in charged) - sum(row.value or 0.0 for row in rows)
        others = [Row(f"{len(charged) - len(rows):,} smaller ones", rest)] if rest > 1e-12 else []
        left = Row("left", self.balance.left_share, hollow=True)
        title = f"The budget of {printable(self.balance.dataset)}, release by release"
        axis = Axis("share of the budget", "percent")
        return Rows(title, axis, (*rows, *others, left), bars=True)

    def _course(self) -> Curves:
        """Steps: a share stands until the next line."""
        steps = self.account.steps
        points = [(steps[0].days, min(1.0, steps[0].share))]
        for one in steps[1:]:
            points += [(one.days, points[-1][1]), (one.days, min(1.0, one.share))]
        curve = Curve("charged", tuple(dict.fromkeys(points)))
        title = f"What was charged to the budget of {printable(self.balance.dataset)}, over time"
        axes = Axis(f"days since {steps[0].at[:10]}"), Axis("share of the budget", "percent")
        return Curves(title, *axes, (curve,), (Rule("the cap", 1.0),))

    def _releases(self, spends: Sequence[Told]) -> Table:
        return Table(
            (
                Column("line", tuple(one.entry for one in spends)),
                Column("when (UTC)", tuple(one.at[:19].replace("T", " ") for one in spends)),
                Column("who", tuple(printable(one.who) for one in spends)),
                Column("purpose", tuple(printable(one.purpose) for one in spends)),
                Column("under", tuple(one.under for one in spends)),
                Column("state", tuple(STATES.get(one.state, one.state) for one in spends)),
                Column("share", tuple(one.share for one in spends), "spent"),
                Column("reserved", tuple(one.reserved_share for one in spends), "spent"),
            ),
            "Releases, the newest first",
            MOST_SPENDS,
        )


def _name(spend: Told) -> str:
    waiting = " (not settled)" if is_open(spend) else ""
    return (spend.purpose.strip() or f"line {spend.entry}") + waiting
