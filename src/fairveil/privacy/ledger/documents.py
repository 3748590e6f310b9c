"""A ledger as one JSON document: to keep elsewhere, to check, to restore into another store. Strict
reading, nothing run.

Guarantees (tests/privacy/ledger/test_ledger_documents.py):
1. What was written reads back as the same lines.
2. A document that no ledger wrote, or that was changed, is refused with a typed error, whatever is
   in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ...errors import LedgerError
from .checking import findings
from .stores.entries import Entry, malformed, parsed

FORMAT = "fairveil ledger"
FORMAT_VERSION = 1


def written(lines: Iterable[Entry]) -> str:
    """The document."""
    entries = [line.to_dict() for line in lines]
    return (
        json.dumps(
            {"format": FORMAT, "version": FORMAT_VERSION, "entries": entries},
            indent=1,
            allow_nan=False,
        )
        + "\n"
    )


def parse(document: str) -> list[Entry]:
    """The lines as they stand; whether they agree is `findings`' to say."""
    if not isinstance(document, str):
        raise malformed("the text of an exported ledger", type(document).__name__)
    values = parsed(document)
    if not isinstance(values, dict) or set(values) != {"format", "version", "entries"}:
        raise malformed(
            f"a document of format {FORMAT!r}",
            values if isinstance(values, str) else type(values).__name__,
        )
    if (
        values["format"] != FORMAT
        or values["version"] != FORMAT_VERSION
        or type(values["version"]) is not int
    ):
        raise malformed(
            f"{FORMAT!r}, version {FORMAT_VERSION}", (values["format"], values["version"])
        )
    if not isinstance(values["entries"], list) or not values["entries"]:
        raise malformed("a list of lines", values["entries"])
    return [Entry.from_dict(line) for line in values["entries"]]


def read(document: str) -> list[Entry]:
    """The lines of a document without a grave finding."""
    lines = parse(document)
    grave = [
        finding.sentence
        for finding in findings(lines, (lines[-1].number, lines[-1].hash))
        if finding.grave
    ]
    if grave:
        remedy = "Ask for a fresh export; `fairveil ledger check` says all that does not fit."
        raise LedgerError.expected(
            "lines that agree", of="exported ledger", got=grave[0][:300], remedy=remedy
        )
    return lines
