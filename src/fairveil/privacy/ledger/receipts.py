"""Is a statement's release in its ledger? Its receipt, relation, noise and plan, against the lines
of spends.

A statement may be of several spends: a post-processor's of its base and its counts, one without a
plan of each of its answers. And a line may be of several statements: of models that were fitted
side by side. So what a statement's plan holds must be in the plan of its receipt's line and, where
that is less, in those of earlier ones.

Guarantees (tests/privacy/ledger/test_ledger_receipts.py):
1. A statement whose receipt, relation or source of noise is not that of the line, whose spend was
   given back, whose plan holds a release that neither this line nor an earlier one reserved, or
   whose releases were settled as if they had not been made, has a grave finding.
2. A statement as it was written beside its spends has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from ...core.events import Composed, Event, NoOp, Repeated, from_dict
from ...core.promise import Promise
from ...errors import FairveilError
from ..statement.checks import Finding
from ..statement.parts import Receipt
from ..statement.prefixes import is_whole
from ..statement.pricing import UNPRICED
from ..statement.statement import PrivacyStatement
from .lines import under
from .spends import Spent, standing
from .stores.entries import COMMITTED, REFUNDED, RESERVED, Entry

NO_RECEIPT = "it has no receipt: nothing shows that a ledger holds this release"


def findings_of(
    statement: PrivacyStatement, lines: Sequence[Entry], earlier: Callable[[int], Iterable[Entry]]
) -> list[Finding]:
    """What does not fit. `lines`: of the spend that the receipt names, in order; `earlier(n)`: the
    first n lines of the ledger, which are read only where they are needed."""
    receipt = statement.ledger
    if receipt is None:
        return [Finding(True, NO_RECEIPT)]
    if not lines:
        words = (
            f"its receipt names spend {receipt.spend} at line {receipt.entry}, which is not there: "
            f"lines were taken off"
        )
        return [Finding(True, words)]
    try:
        return _compared(statement, receipt, lines, earlier)
    except UNPRICED as error:  # what a stranger's lines may add up to
        words = (
            str(error) if isinstance(error, FairveilError) else f"{type(error).__name__}: {error}"
        )
        return [Finding(True, f"its lines cannot be read: {words}")]


def _compared(
    statement: PrivacyStatement,
    receipt: Receipt,
    lines: Sequence[Entry],
    earlier: Callable[[int], Iterable[Entry]],
) -> list[Finding]:
    now = standing(lines)
    first = now.reserved
    found: list[Finding] = []
    if (first.number, first.hash) != (receipt.entry, receipt.hash) or first.hash != first.digest():
        found.append(
            Finding(
                True,
                f"line {receipt.entry} is not the one of its receipt: the ledger was written anew",
            )
        )
    promise, noise = Promise.from_dict(first.values["promise"]), first.values["noise"]
    relation, ours = map(under, (promise, statement.promise))
    if relation != ours:
        found.append(
            Finding(
                True, f"it is under {ours}, and line {first.number} was reserved under {relation}"
            )
        )
    if noise != statement.noise:
        words = (
            f"its noise is stated as {statement.noise}, and line {first.number} was reserved for "
            f"{noise} noise"
        )
        found.append(Finding(True, words))
    if now.last == REFUNDED:
        found.append(
            Finding(
                True, f"spend {receipt.spend} was given back: nothing of this release is charged"
            )
        )
    elif now.is_open:
        found.append(
            Finding(
                False, f"spend {receipt.spend} is not settled: it is charged as it was reserved"
            )
        )
    return [*found, *_settled(statement, now, lines[-1]), *_plan(statement, first, earlier)]


def _settled(statement: PrivacyStatement, now: Spent, last: Entry) -> list[Finding]:
    """Whether what was given back had not been released: all of the plan was done, finer than
    planned, or what the statement lists is among what is charged."""
    charged = last.values.get("events") if last.kind == COMMITTED else None
    if charged is None or (now.units, now.leak) == (now.reserved.units, now.reserved.leak):
        return []
    events, plan = from_dict(charged), from_dict(now.reserved.values["plan"])
    if is_whole((events,), (plan,), statement.promise.neighbours):
        return []
    elsewhere = releases(statement.events if statement.plan is None else statement.plan) - releases(
        [plan]
    )
    lacking = releases(statement.events) - elsewhere - releases([events])
    if not lacking:
        return []
    words = (
        f"{sum(lacking.values())} of its releases are not among those that line {last.number} is "
        f"charged for"
    )
    return [Finding(True, words)]


def _plan(
    statement: PrivacyStatement, line: Entry, earlier: Callable[[int], Iterable[Entry]]
) -> list[Finding]:
    """Where the releases are that the statement is charged for."""
    wanted = releases(statement.events if statement.plan is None else statement.plan)
    here = releases([from_dict(line.values["plan"])])
    missing = wanted - here
    if not missing:
        if here == wanted:
            return []
        return [
            Finding(
                False,
                f"line {line.number} holds other releases beside it: they were reserved together",
            )
        ]
    numbers = [line.number]
    known = list(earlier(line.number))
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
    return [
        Finding(
            True,
            f"its plan is not in the ledger: neither line {line.number} nor earlier ones reserved "
            f"{lacking}",
        )
    ]


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
