"""How a line is written: by whom, when, with which code, after which line.

Guarantees (tests/privacy/ledger/test_ledger_handle.py):
1. A line's words are printable and short, whoever names them.
"""

from __future__ import annotations

import getpass
import os
import socket
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ...core.promise import Promise
from ...errors import InputError
from .spends import Spent
from .stores.entries import CREATED, FIRST_PREVIOUS, Entry, encoded, malformed
from .terms import Terms

MOST_WORDS = 500


def created(terms: Terms, who: str) -> Entry:
    """The first line."""
    text = (_now(), who, _code(), "", under(terms.promise), encoded({"terms": terms.to_dict()}))
    return Entry(0, CREATED, "", *text, 0, 0, 0, 0, FIRST_PREVIOUS).sealed()


def terms_of(first: Entry) -> Terms:
    """What the first line says."""
    if first.kind != CREATED or first.number != 0:
        raise malformed("a first line that begins the ledger", first.kind)
    values = first.values
    if set(values) != {"terms"}:
        raise malformed("terms", values)
    return Terms.from_dict(values["terms"])


def following(
    head: Entry,
    who: str,
    kind: str,
    spend: str,
    purpose: str,
    content: dict[str, Any],
    change: tuple[int, int],
    under: str,
) -> Entry:
    """The line after `head`; `change`: of units and leak."""
    text = (_now(), who, _code(), purpose, under, encoded(content))
    sums = (*change, head.spent + change[0], head.leaked + change[1])
    return Entry(head.number + 1, kind, spend, *text, *sums, head.hash).sealed()


def step(
    head: Entry, who: str, kind: str, now: Spent, content: dict[str, Any], change: tuple[int, int]
) -> Entry:
    """One more line of a spend."""
    first = now.reserved
    return following(head, who, kind, first.spend, first.purpose, content, change, first.under)


def under(promise: Promise) -> str:
    """What is protected, between which neighbours."""
    unit = "" if promise.unit is None else f", by {promise.unit.name}"
    return f"{promise.protects}, {promise.neighbours}{unit}"


def checked_words(name: str, value: object) -> str:
    """Words that fit a line."""
    if isinstance(value, str) and len(value) <= MOST_WORDS and (value == "" or value.isprintable()):
        return value
    expected = f"at most {MOST_WORDS} printable letters"
    raise InputError.expected(
        expected, of=name, got=value, remedy=f"Pass {name}='monthly model', for example."
    )


def user_and_machine() -> str:
    """Who writes, unless told."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such account, in a container say
        name = f"user {os.getuid()}"
    words = f"{name}@{socket.gethostname()}"
    return "".join(letter for letter in words if letter.isprintable())[:MOST_WORDS]


@lru_cache(maxsize=1)
def _code() -> str:
    from ..statement.checks import versions_now

    return ", ".join(f"{name} {version}" for name, version in versions_now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
