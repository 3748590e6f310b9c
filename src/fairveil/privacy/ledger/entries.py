"""One line of a ledger: what happened to one spend, chained to the line before.

    hash = SHA-256 of the line's other fields, in order, as one JSON list with no spaces

The first line's `previous` is 64 zeros; a later one's is the hash of the line before. So a line that was edited, or taken out
from between others, no longer fits; one taken off the end no longer fits the head that the store keeps beside, nor a receipt.

Guarantees (tests/privacy/ledger/test_ledger_entries.py):
1. `Entry.from_dict` reads what `to_dict` wrote and refuses everything else with a typed error: nothing is run or unpickled.
2. Any change of any field changes the hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NoReturn

from ...errors import LedgerError, complaint

CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED = "created", "reserved", "resumed", "committed", "refunded"
KINDS = (CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED)
FIRST_PREVIOUS = "0" * 64
MOST_TEXT = 1 << 26
_WHOLE = ("number", "units", "leak", "spent", "leaked")


@dataclass(frozen=True)
class Entry:
    """One line. `units`, `leak`: what it adds to what is charged (below 0: gives back), of the budget and of delta's reserve;
    `spent`, `leaked`: what is charged after it. `under`: whose neighbours the events were priced for. `content`: JSON of what
    this kind of line holds (terms, plan, sitting, log)."""

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

    def sealed(self) -> Entry:
        """The same line with its hash."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """What the hash should be."""
        text = json.dumps([getattr(self, name) for name in _HASHED], separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_untouched(self) -> bool:
        """Whether nothing is charged after it."""
        return self.spent == self.leaked == 0

    @property
    def values(self) -> dict[str, Any]:
        """The content, read strictly."""
        found = parsed(self.content)
        if not isinstance(found, dict):
            raise malformed("an object as content", found)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_dict(values: object) -> Entry:
        """The inverse of `to_dict`: the right fields of the right types. Whether it fits the chain is `check`'s to say."""
        names = {field.name for field in fields(Entry)}
        if not isinstance(values, dict) or set(values) != names:
            raise malformed(f"the fields {sorted(names)}", sorted(values) if isinstance(values, dict) else values)
        for name, value in values.items():
            if name in _WHOLE:
                if type(value) is not int or abs(value) > 1 << 62:
                    raise malformed(f"a whole number for {name}", value)
            elif not isinstance(value, str) or len(value) > MOST_TEXT:
                raise malformed(f"text for {name}", value)
            elif not value.isprintable():
                raise malformed(f"printable text for {name}", value)
        if values["kind"] not in KINDS:
            raise malformed(f"a kind among {KINDS}", values["kind"])
        return Entry(**values)


_HASHED = tuple(field.name for field in fields(Entry) if field.name != "hash")


def encoded(values: object) -> str:
    """JSON with no spaces and sorted names."""
    return json.dumps(values, separators=(",", ":"), sort_keys=True, allow_nan=False, ensure_ascii=True)


def parsed(text: str) -> Any:
    """A JSON document, strictly: names once, finite numbers, no depth that could keep the reader busy."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant, parse_int=_whole, parse_float=_finite)
    except LedgerError:
        raise
    except (ValueError, RecursionError) as error:
        raise malformed("a JSON document", str(error)) from None


def malformed(expected: str, got: object) -> LedgerError:
    """The error of a file or row that no ledger wrote."""
    text = got if isinstance(got, str) and len(got) <= 200 else repr(got)[:200]
    return LedgerError(complaint(expected=expected, of="ledger entry", got=text, remedy="Only a ledger writes its entries."))


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise malformed("each field once", name)
        out[name] = value
    return out


def _no_constant(name: str) -> NoReturn:
    raise malformed('finite numbers (an infinite one is written "inf")', name)


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise malformed("whole numbers of at most 19 digits", digits[:40])
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise malformed("finite numbers", digits[:40])
    return value
