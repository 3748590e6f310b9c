"""One line of a ledger: what happened to one spend, chained to the line before.

    hash = SHA-256 of the line's other fields, in order, as one JSON list with no spaces

The first line's `previous` is 64 zeros; a later one's is the hash of the line before. So a line
that was edited, or taken out from between others, no longer fits; one taken off the end no longer
fits the head that the store keeps beside, nor a receipt.

Guarantees (tests/privacy/ledger/test_ledger_entries.py):
1. `Entry.from_dict` reads what `to_dict` wrote and refuses everything else with a typed error:
   nothing is run or unpickled.
2. Any change of any field changes the hash.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from typing import Any

from .... import _checks
from ...._json import Document
from ....errors import LedgerError

CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED = (
    "created",
    "reserved",
    "resumed",
    "committed",
    "refunded",
)
KINDS = (CREATED, RESERVED, RESUMED, COMMITTED, REFUNDED)
FIRST_PREVIOUS = "0" * 64
MOST_TEXT = 1 << 26
DOCUMENT = Document(
    "ledger entry", "Only a ledger writes its entries.", LedgerError, largest=1 << 30
)
_WHOLE = ("number", "units", "leak", "spent", "leaked")


@dataclass(frozen=True)
class Entry:
    """One line. `units`, `leak`: what it adds to what is charged (below 0: gives back), of the
    budget and of delta's reserve; `spent`, `leaked`: what is charged after it. `under`: whose
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

    def sealed(self) -> Entry:
        """The same line with its hash."""
        return replace(self, hash=self.digest())

    def digest(self) -> str:
        """What the hash should be."""
        text = json.dumps(
            [*_checks.named(self, _HASHED).values()], separators=(",", ":"), ensure_ascii=True
        )
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
        return _checks.fields_of(self)

    @staticmethod
    def from_dict(values: object) -> Entry:
        """The inverse of `to_dict`: the right fields of the right types. Whether it fits the chain
        is `check`'s to say."""
        names = {field.name for field in fields(Entry)}
        if not isinstance(values, dict) or set(values) != names:
            raise malformed(
                f"the fields {sorted(names)}",
                sorted(values) if isinstance(values, dict) else values,
            )
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
    """JSON with no spaces and sorted names; half of a pair of surrogates, which no reader takes, is
    refused."""
    text = json.dumps(
        values, separators=(",", ":"), sort_keys=True, allow_nan=False, ensure_ascii=True
    )
    if "\\ud" in text:
        DOCUMENT.require_writable(values)
    return text


def parsed(text: str) -> Any:
    """A JSON document, strictly: names once, finite numbers, no size or depth that could keep the
    reader busy."""
    return DOCUMENT.json(text)


def malformed(expected: str, got: object) -> LedgerError:
    """The error of a file or row that no ledger wrote."""
    refusal = DOCUMENT.refusal(expected, got)
    assert isinstance(refusal, LedgerError)
    return refusal
