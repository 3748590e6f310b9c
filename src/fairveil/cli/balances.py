"""What `fairveil ledger` shows of a budget: in words with a bar, in numbers, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from ..ledger import Balance, Entry, Ledger
from ..ledger.account import APART, NO_SUM, Told, items, told, unsettled
from ..ledger.balance import left_share, more_words, share, spent_share
from ..ledger.entries import CREATED, WHOLE
from ..show.numbers import at_least, at_most, delta_words, promised
from .printing import bar, on_one_line, print_table

MOST_OPEN = 20
BESIDE = 12


def about(ledger: Ledger) -> str:
    """Of one that was just begun."""
    lines = _headed((heading.lower(), words) for heading, words in _items(ledger))
    how = (
        f"Record fits in it: fairveil fit ... --ledger {quote(ledger.shown)} --dataset "
        f"{quote(ledger.dataset)}"
    )
    return "\n".join((f"Begun: {ledger.dataset} in {ledger.shown}", *lines, how))


def words(ledger: Ledger) -> str:
    """One budget: terms, a bar, what is spent and left, what is not settled."""
    balance = ledger.balance()
    spent, left = spent_share(balance.spent_share), left_share(balance.left_share)
    at = f"at delta = {delta_words(balance.delta)}"
    lines = [
        f"{ledger.dataset} in {ledger.shown}",
        *_headed((heading.lower(), words) for heading, words in _items(ledger)),
        *_headed([("lines", f"{balance.entries:,}, the last at {on_one_line(balance.last)}")]),
        "",
        f"{bar(balance.spent_share)} {spent} spent",
        *_headed(
            [
                (
                    "spent",
                    f"{spent:>7}, as one release epsilon = "
                    f"{at_most(balance.spent, balance.epsilon)} {at}",
                ),
                ("left", f"{left:>7}, as one release epsilon = {at_least(balance.left)} {at}"),
            ]
        ),
        *([] if balance.more is None else _headed([("", more_words(balance.more))])),
        f"{'':{BESIDE}}{NO_SUM}",
    ]
    if balance.leaked_share:
        lines += _headed(
            [("leaks", f"{spent_share(balance.leaked_share)} of the delta that is kept for them")]
        )
    if balance.by_promise:
        lines += ["", *_by_promise(balance)]
    if balance.open:
        lines += ["", *_open(ledger, balance)]
    return "\n".join(lines)


def several(ledgers: Sequence[Ledger]) -> None:
    """A line each."""
    rows = []
    for ledger in ledgers:
        balance, promise = ledger.balance(), ledger.promise
        terms = (
            promised(promise.epsilon),
            delta_words(promise.delta),
            f"{promise.protects}, {promise.neighbours}",
        )
        shares = (spent_share(balance.spent_share), left_share(balance.left_share))
        rows.append(
            (
                ledger.dataset,
                *terms,
                *shares,
                bar(balance.spent_share, 20),
                f"{balance.open:,}",
                balance.last[:19],
            )
        )
    print_table(
        ("dataset", "epsilon", "delta", "promise", "spent", "left", "", "open", "last (UTC)"), rows
    )


def numbers(ledger: Ledger) -> dict[str, Any]:
    """Plain JSON values: all that `words` says."""
    balance = ledger.balance()
    first = next(ledger.history(0, 1))
    return {
        "dataset": ledger.dataset,
        "terms": ledger.terms.to_dict(),
        "begun": {"at": first.at, "who": first.who, "code": first.code},
        "balance": balance.to_dict(),
        "open": [dict(vars(one)) for one in _waiting(ledger, balance.waiting)],
    }


def page(ledger: Ledger, path: Path) -> None:
    """A page of one budget, and its twin; every line is read, and checked."""
    from ..ledger.page import LedgerPage
    from ..show.report import Report

    title = f"The budget of {on_one_line(ledger.dataset)}"
    Report(title, sections=(("The ledger", LedgerPage.of(ledger)),)).write(path)


def lines_as_words(lines: Sequence[Entry]) -> None:
    """A table of lines."""
    heads = ("line", "when (UTC)", "who", "what", "purpose", "share", "charged", "spend")
    print_table(heads, [_line(entry) for entry in lines])


def lines_as_json(lines: Sequence[Entry]) -> list[dict[str, Any]]:
    """The lines as they are, with which their hashes can be made again, and what they mean as
    shares."""
    return [
        line.to_dict() | {"share": line.units / WHOLE, "spent_share": share(line.spent)}
        for line in lines
    ]


def _line(entry: Entry) -> tuple[str, ...]:
    change = (
        "" if entry.kind == CREATED or not entry.units else f"{100 * entry.units / WHOLE:+.4g}%"
    )
    what = f"{entry.kind}, {entry.under}" if entry.kind == CREATED else entry.kind
    when, charged = entry.at[:19].replace("T", " "), spent_share(share(entry.spent))
    return (
        str(entry.number),
        when,
        entry.who,
        what,
        entry.purpose or "-",
        change,
        charged,
        entry.spend[:8],
    )


def _items(ledger: Ledger) -> tuple[tuple[str, str], ...]:
    return items(ledger.terms, next(ledger.history(0, 1)))


def _headed(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{heading:{BESIDE}}{on_one_line(words)}" for heading, words in pairs]


def _by_promise(balance: Balance) -> list[str]:
    names = [on_one_line(one.under) for one in balance.by_promise]
    wide = max(map(len, (*names, "kind of guarantee")))
    lines = [f"{'kind of guarantee':{wide}}  {'releases':>8}  {'share':>7}"]
    for name, one in zip(names, balance.by_promise, strict=True):
        lines.append(f"{name:{wide}}  {one.spends:>8,}  {spent_share(one.share):>7}")
    return [*lines, APART]


def _open(ledger: Ledger, balance: Balance) -> list[str]:
    lines = [f"Of {balance.committed + balance.open:,} releases {unsettled(balance.open)}"]
    waiting = _waiting(ledger, balance.waiting)
    for one in waiting:
        since = one.at[:19].replace("T", " ")
        about = (
            f"line {one.entry}",
            f"since {since}",
            one.who,
            spent_share(one.share),
            one.purpose or "-",
            one.spend,
        )
        lines.append("  " + "  ".join(about))
    if balance.open > len(waiting):
        lines.append(f"  and {balance.open - len(waiting):,} more")
    return lines


def _waiting(ledger: Ledger, spends: Sequence[str]) -> list[Told]:
    """The oldest open spends; one that was settled meanwhile is left out."""
    found = []
    for spend in spends[:MOST_OPEN]:
        now = ledger.standing(spend)
        if now.is_open:
            found.append(told(now.reserved, now.last, now.units))
    return found
