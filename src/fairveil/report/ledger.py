"""One ledger on a page: what it promises, what was spent of it and by whom, and whether its lines
agree.

Everything here is in the ledger: names, purposes and plans, never a row or an answer. Who reads the
page reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from .. import _checks
from ..errors import InputError
from ..figures import BudgetFigure, BudgetPart, CourseFigure, Moment
from ..figures.budget import share_scale
from ..privacy.ledger.balance import account_of, is_open
from ..privacy.ledger.terms_words import (
    APART,
    NO_SUM,
    STATES,
    delta_words,
    items,
    left_epsilon,
    left_share,
    spent_epsilon,
    spent_share,
    unsettled,
)
from ..privacy.shown import promised
from .contents import LedgerSection

if TYPE_CHECKING:
    from ..privacy.ledger import Ledger
    from ..privacy.ledger.balance import Told
    from ..privacy.statement.checks import Finding

MOST_SPENDS = 200
MOST_PURPOSES = 50
CONTRADICTS = "THE LEDGER CONTRADICTS ITSELF"
AGREES = "Its lines agree with each other: chain, sums and prices were recomputed."
NOT_RECORDED = (
    "What was released from the same people and not recorded in this ledger: without one, in "
    "another, or by other means."
)
TO_CHECK = (
    "Recompute whether the lines of the ledger agree; give it statements that were kept elsewhere, "
    "too."
)


def ledger(ledger: Ledger, findings: Sequence[Finding] | None = None) -> LedgerSection:
    """A ledger as it is now, for `Report(ledger=...)`. `findings`: of its `check()`, which is made
    here where it was not.

    >>> from fairveil.privacy.ledger import Ledger
    >>> from fairveil.core.events import Gaussian
    >>> budget = Ledger.create(None, "census of a page", 1.0, 1e-6)
    >>> budget.reserve(Gaussian(12.0), purpose="counts").commit()
    >>> [(spend.purpose, spend.state) for spend in ledger(budget).account.spends]
    [('counts', 'committed')]
    """
    from ..privacy.ledger import Ledger

    given: object = ledger
    remedy = "Pass Ledger.open('budget.db', read_only=True), for example."
    given = _checks.instance(Ledger, "ledger", given, remedy)
    first = next(ledger.history(0, 1))
    place = ledger.shown if "://" in ledger.shown else PurePath(ledger.shown).name
    found = ledger.check() if findings is None else findings
    account = account_of(ledger.history())
    return LedgerSection(
        place, ledger.terms, items(ledger.terms, first), ledger.balance(), account, tuple(found)
    )


def budget_figure(section: LedgerSection) -> BudgetFigure:
    """What each release took, and what is left; what was given back takes nothing."""
    balance = section.balance
    parts = tuple(
        BudgetPart(_name(one), one.share) for one in section.account.spends if one.share > 0
    )
    return BudgetFigure(balance.dataset, parts, balance.left_share)


def _name(spend: Told) -> str:
    waiting = " (not settled)" if is_open(spend) else ""
    return (
        _printable(spend.purpose).strip() + waiting
        if spend.purpose.strip()
        else f"line {spend.entry}{waiting}"
    )


def course_figure(section: LedgerSection) -> CourseFigure | None:
    """What was charged, over time; None where nothing was, or the dates are none."""
    steps = section.account.steps
    if len(steps) < 2:
        return None
    try:
        return CourseFigure(
            section.balance.dataset,
            steps[0].at,
            tuple(Moment(one.days, one.share) for one in steps),
        )
    except InputError:
        return None


def ledger_verdict(section: LedgerSection) -> str:
    """The ledger in one paragraph."""
    balance, promise = section.balance, section.terms.promise
    contradicts = any(one.grave for one in section.findings)
    made = balance.committed + balance.open
    spends = "one release" if made == 1 else f"{made:,} releases"
    waiting = f" Of them {unsettled(balance.open)}" if balance.open else ""
    whole = f"epsilon = {promised(promise.epsilon)} at delta = {delta_words(promise.delta)}"
    spent = (
        f"Of the budget of {balance.dataset}, {whole}, {spent_share(balance.spent_share)} is spent "
        f"by {spends}.{waiting}"
    )
    return f"{CONTRADICTS}. {spent}" if contradicts else f"{spent} {AGREES}"


def ledger_left(section: LedgerSection) -> str:
    """What is left, in one sentence."""
    balance = section.balance
    release = (
        f"one more release may cost at most epsilon = {left_epsilon(balance.left)} at delta = "
        f"{delta_words(balance.delta)}"
    )
    return f"Left: {left_share(balance.left_share)}; {release}."


def ledger_facts(section: LedgerSection) -> list[tuple[str, str, str]]:
    """(name, value, remark) for the head of the page."""
    balance = section.balance
    at, spent = (
        f"at δ = {delta_words(balance.delta)}",
        spent_epsilon(balance.spent, balance.epsilon),
    )
    return [
        (
            "Budget spent",
            spent_share(balance.spent_share),
            f"as one release ε = {spent} {at}",
        ),
        (
            "Budget left",
            left_share(balance.left_share),
            f"as one release ε = {left_epsilon(balance.left)} {at}",
        ),
        (
            "Releases",
            f"{balance.committed + balance.open:,}",
            f"{balance.open:,} not settled, {balance.refunded:,} given back",
        ),
    ]


def ledger_numbers(section: LedgerSection) -> dict[str, Any]:
    """Plain JSON values: all that the page shows of a ledger."""
    account, budget, course = section.account, budget_figure(section), course_figure(section)
    waiting = [one for one in account.spends if is_open(one)]
    purposes, spends = account.by_purpose[:MOST_PURPOSES], account.spends[: -MOST_SPENDS - 1 : -1]
    return {
        "dataset": section.balance.dataset,
        "place": section.place,
        "terms": section.terms.to_dict(),
        "terms_words": [
            {"heading": heading, "words": words} for heading, words in section.terms_words
        ],
        "balance": section.balance.to_dict(),
        "budget": {
            "title": budget.title,
            "description": budget.description,
            "ticks": list(share_scale().ticks),
        },
        "course": None if course is None else _course(course),
        "steps": [
            {"entry": one.entry, "at": one.at, "days": one.days, "share": one.share}
            for one in account.steps
        ],
        "by_purpose": [dict(vars(one)) for one in purposes],
        "purposes": len(account.by_purpose),
        "purposes_shown": len(purposes),
        "releases": section.balance.committed + section.balance.open,
        "spends": [_spend(one) for one in spends],
        "spends_in_all": len(account.spends),
        "spends_shown": len(spends),
        "open": [_spend(one) for one in waiting[:MOST_SPENDS]],
        "findings": [
            {"grave": one.grave, "sentence": _printable(one.sentence)} for one in section.findings
        ],
        "sentences": {
            "apart": APART,
            "no_sum": NO_SUM,
            "unsettled": unsettled(section.balance.open),
            "agrees": AGREES,
        },
    }


def _course(figure: CourseFigure) -> dict[str, Any]:
    ticks = [{"days": days, "text": text} for days, text in figure.ticks()]
    return {
        "title": figure.title,
        "description": figure.description,
        "begun": figure.begun,
        "ticks": ticks,
    }


def _spend(one: Told) -> dict[str, Any]:
    return {
        **vars(one),
        "when": one.at[:19].replace("T", " "),
        "state_words": STATES.get(one.state, one.state),
    }


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "�" for letter in text)
