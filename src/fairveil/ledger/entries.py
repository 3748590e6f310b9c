"""The lines of a ledger: how one is made and read, and where a spend stands after its lines.

    hash = SHA-256 of the line's other fields, in order, as one JSON list with no spaces

The first line's `previous` is 64 zeros, a later one's the hash of the line before: a line that was
edited, or taken out from between others, no longer fits. One that was taken off the end no longer
fits the receipts of it.

    reserved --> resumed* --> committed
        \\-------------------> refunded     (nothing was released)

A spend whose last line is not one of the last two stays charged as it was reserved: its process may
have died.

Guarantees (tests/ledger/test_ledger_handle.py, test_ledger_spends.py):
1. `Entry.from_dict` and `parsed` read what was written and refuse everything else with a typed
   error; nothing is run or unpickled. Any change of any field changes the hash.
2. A spend is settled once, and its charge never rises after it was reserved.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from .. import _checks
from .._json import Document
from .._urls import without_password
from ..errors import FairveilError, InputError, LedgerError

KINDS = ("created", "reserved", "resumed", "committed", "refunded")
CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED = KINDS
WHOLE = 1 << 60
"""All of a budget, in units."""
MOST = WHOLE + (1 << 20)
"""What may be charged: 1e-12 more, for decimals that binary numbers miss."""
FIRST_PREVIOUS = "0" * 64
FORMAT, FORMAT_VERSION = "fairveil ledger", 1
LAST_BITS = 1 << 31
"""A log may cost this part more than its plan: the order of sums, which is no overspending."""
MOST_WORDS, LONGEST_NAME, MOST_TEXT = 500, 200, 1 << 26
DOCUMENT = Document(
    "ledger entry", "Only a ledger writes its entries.", LedgerError, largest=1 << 30
)


def need(
    holds: object,
    of: str,
    expected: str,
    got: object,
    fix: str,
    kind: type[FairveilError] = LedgerError,
) -> None:
    """Refuse what does not hold, as "of: expected ..., got .... fix"."""
    if not holds:
        raise kind.expected(expected, of=of, got=got, remedy=fix)


def malformed(expected: str, got: object) -> FairveilError:
    """The error of a file or row that no ledger wrote."""
    return DOCUMENT.refusal(expected, got)


@dataclass(frozen=True)
class Cost:
    """Units of the budget, and of what may leak."""

    units: int
    leak: int

    def within(self, spent: int, leaked: int) -> bool:
        """Whether there is room beside what is charged."""
        return spent + self.units <= MOST and leaked + self.leak <= MOST


FREE = Cost(0, 0)


@dataclass(frozen=True)
class Entry:
    """One line. `units`, `leak`: what it adds to what is charged (below 0: gives back), of the
    budget and of what delta may leak; `spent`, `leaked`: what is charged after it. `under`: whose
    neighbours the events were priced for. `content`: JSON of what this kind of line holds (terms,
    plan, sitting, log)."""

    number: int
    kind: str
    spend: str
    at: str
    who: str
    code: str
    purpose: str
    under: str
    content: str
    units: int
    leak: int
    spent: int
    leaked: int
    previous: str
    hash: str = ""

    @staticmethod
    def following(
        head: Entry | None,
        kind: str,
        content: dict[str, Any],
        *,
        who: str,
        under: str,
        spend: str = "",
        purpose: str = "",
        change: Cost = FREE,
    ) -> Entry:
        """The line after `head` (None: the first one). `change`: of units and leak."""
        number, spent, leaked, previous = _after(head)
        at = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        words = (kind, spend, at, who, _code(), purpose, under, encoded(content))
        sums = (change.units, change.leak, spent + change.units, leaked + change.leak)
        return Entry(number, *words, *sums, previous).sealed()

    def sealed(self) -> Entry:
        """The same line with its hash."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """What the hash should be."""
        text = json.dumps([getattr(self, name) for name in NAMES[:-1]], separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged after it."""
        return self.spent == self.leaked == 0

    @property
    def values(self) -> dict[str, Any]:
        """The content, read strictly."""
        found = DOCUMENT.json(self.content)
        if not isinstance(found, dict):
            raise malformed("an object as content", found)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return _checks.fields_of(self)

    @staticmethod
    def from_dict(values: object) -> Entry:
        """The inverse of `to_dict`: the right fields of the right types. Whether it fits the chain
        is `check`'s to say."""
        if not isinstance(values, dict) or set(values) != set(NAMES):
            got = sorted(map(str, values)) if isinstance(values, dict) else values
            raise malformed(f"the fields {sorted(NAMES)}", got)
        for name, value in values.items():
            if name in NUMBERS:
                if type(value) is not int or abs(value) > 1 << 62:
                    raise malformed(f"a whole number for {name}", value)
            elif not isinstance(value, str) or len(value) > MOST_TEXT or not value.isprintable():
                raise malformed(f"printable text for {name}", value)
        if values["kind"] not in KINDS:
            raise malformed(f"a kind among {KINDS}", values["kind"])
        return Entry(**values)


NAMES = tuple(field.name for field in fields(Entry))
NUMBERS = frozenset(field.name for field in fields(Entry) if field.type == "int")


def _after(head: Entry | None) -> tuple[int, int, int, str]:
    """(number, units, leak, hash) that the line after `head` goes on from."""
    if head is None:
        return 0, 0, 0, FIRST_PREVIOUS
    return head.number + 1, head.spent, head.leaked, head.hash


def misfits(before: Entry | None, line: Entry) -> list[str]:
    """How a line does not follow the one before it, or none: in number, chain, hash and sums."""
    number, spent, leaked, previous = _after(before)
    sums, here = (spent + line.units, leaked + line.leak), f"line {line.number}"
    gap = "one of them was changed, or one between was taken out"
    rules = (
        (line.number == number, f"line {number} is missing: the next one is number {line.number}"),
        (line.previous == previous, f"{here} does not follow the line before it: {gap}"),
        (line.hash == line.digest(), f"{here} is not what its hash was made of: it was changed"),
        (
            (line.spent, line.leaked) == sums,
            f"{here} says that {line.spent} units are spent; its lines add up to {sums[0]}",
        ),
    )
    return [sentence for holds, sentence in rules if not holds]


@dataclass(frozen=True)
class Spent:
    """Where a spend stands. `units`, `leak`: what it is charged now; `last`: what happened to it
    last; `complete`: whether it did all of its plan."""

    reserved: Entry
    units: int
    leak: int
    last: str = RESERVED
    sitting: int = 0
    complete: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it may still be settled."""
        return self.last not in (COMMITTED, REFUNDED)

    @property
    def whole(self) -> bool:
        """Whether it was given all of an untouched ledger."""
        return self.reserved.values.get("whole") is True

    def charge(self, cost: Cost | None) -> Cost:
        """What it is charged once events of this cost were admitted (None: as reserved): that, and
        never more than was reserved.

        Units and leak go together: of two bounds on what was released one holds, and not the
        smaller half of each. A log that costs more than was reserved is an error, and leaves the
        spend open, charged as reserved; the last bits of a sum are none.
        """
        reserved = Cost(self.units, self.leak)
        # A spend that got the whole ledger was priced as one plan: no smaller part is known of it.
        if cost is None or self.whole:
            return reserved
        if cost.units <= self.units and cost.leak <= self.leak:
            return cost
        fix = "Reserve all that a release may cost, before it is asked. What was reserved stays "
        for charged, least in ((self.units, cost.units), (self.leak, cost.leak)):
            expected = f"a log that costs at most the {charged / WHOLE:.3%} reserved"
            enough = least <= charged + charged // LAST_BITS + 1
            need(enough, "spend", expected, f"{least / WHOLE:.3%} of the budget", f"{fix}charged.")
        return reserved

    def after(self, line: Entry) -> Spent:
        """Where it stands one line later; an error where no ledger could have written it."""
        if line.kind not in (RESUMED, COMMITTED, REFUNDED) or not self.is_open:
            raise malformed(f"nothing after a spend was {self.last}, or a step of it", line.kind)
        units, leak = self.units + line.units, self.leak + line.leak
        if line.kind == RESUMED:
            sitting = line.values.get("sitting")
            # Sittings rise: an old copy of a run cannot be resumed after a newer one
            # (docs/theory/composition.md, old copies).
            if type(sitting) is not int or sitting <= self.sitting or line.units or line.leak:
                raise malformed("a later sitting, for no more", sitting)
            return Spent(self.reserved, units, leak, RESUMED, sitting)
        within = line.units <= 0 and line.leak <= 0 and units >= 0 and leak >= 0
        if not within or (line.kind == REFUNDED and (units or leak)):
            raise malformed("a settlement within what was reserved", line.units)
        complete = line.kind == COMMITTED and line.values.get("complete") is True
        return Spent(self.reserved, units, leak, line.kind, self.sitting, complete)


def standing(lines: Sequence[Entry]) -> Spent:
    """Where a spend stands after its lines; an error where no ledger could have written them."""
    if not lines or lines[0].kind != RESERVED or lines[0].units < 0 or lines[0].leak < 0:
        raise malformed("a spend that begins by being reserved", lines[0].kind if lines else "none")
    now = Spent(lines[0], lines[0].units, lines[0].leak)
    for line in lines[1:]:
        now = now.after(line)
    return now


# -- documents and words ---------------------------------------------------------------------------


def written(lines: Iterable[Entry]) -> str:
    """An exported ledger: one JSON document, to keep elsewhere, to check, or to restore."""
    entries = [line.to_dict() for line in lines]
    values = {"format": FORMAT, "version": FORMAT_VERSION, "entries": entries}
    return json.dumps(values, indent=1, allow_nan=False) + "\n"


def parsed(document: str) -> list[Entry]:
    """The lines of an exported ledger as they stand; whether they agree is `findings`' to say."""
    node = DOCUMENT.node(document).only(("format", "version", "entries"))
    version = node["version"].whole()
    if node["format"].text() != FORMAT or version != FORMAT_VERSION:
        raise malformed(f"{FORMAT!r}, version {FORMAT_VERSION}", version)
    lines = [Entry.from_dict(line.value) for line in node["entries"].list()]
    if not lines:
        raise malformed("a list of lines", "none")
    return lines


def encoded(values: object) -> str:
    """JSON with no spaces and sorted names; half of a pair of surrogates is refused."""
    text = json.dumps(values, separators=(",", ":"), sort_keys=True, allow_nan=False)
    if "\\ud" in text:
        DOCUMENT.require_writable(values)
    return text


def checked_words(name: str, value: object) -> str:
    """Words that fit a line."""
    fits = isinstance(value, str) and len(value) <= MOST_WORDS and f"{value} ".isprintable()
    fix = f"Pass {name}='monthly model', for example."
    need(fits, name, f"at most {MOST_WORDS} printable letters", value, fix, InputError)
    return str(value)


def checked_name(dataset: object) -> str:
    """A name that can be printed on one line. An address, which may hold a password, is none: it
    came in the wrong place."""
    text = dataset if isinstance(dataset, str) else ""
    fix, got = "Pass the address first, and then dataset='credit-2026'.", without_password(text)
    need("://" not in text, "dataset", "a name, and no address", got, fix, InputError)
    fits = 0 < len(text) <= LONGEST_NAME and text.isprintable() and text == text.strip()
    expected = f"a name of at most {LONGEST_NAME} printable letters"
    need(fits, "dataset", expected, dataset, "Pass dataset='credit-2026'.", InputError)
    return text


def checked_columns(columns: object) -> tuple[str, ...]:
    """Names of sensitive columns, at least one, sorted."""
    listed = [columns] if isinstance(columns, str) else columns
    named = list(listed) if isinstance(listed, Iterable) else []
    fits = named and all(
        isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
        for name in named
    )
    fix = "Name the columns that are protected: ['sex'], for example."
    need(fits, "columns", "names of sensitive columns", columns, fix, InputError)
    return tuple(sorted(set(named)))


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
    from ..statement.document import versions_now

    return ", ".join(f"{name} {version}" for name, version in versions_now())
