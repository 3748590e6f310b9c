"""What the door says no with: a status, a word for programs, and a sentence. Never a value of a
row, nor an inside of it.

Guarantees (tests/serving/test_serving_hostile.py):
1. A data set that is not there, one outside of a token's scope, and another's run are refused with
   the same bytes.
2. An error that nobody foresaw is told by one constant sentence.
3. What is wrong with the holder's rows, ledger or records is told by constant sentences; why, by
   the holder's log alone (tests/serving/test_serving_rows.py).
"""

from __future__ import annotations

import json
import re
import sqlite3

from ...errors import (
    BudgetError,
    DataNotFoundError,
    DoorError,
    FairveilError,
    InputError,
    LedgerAway,
    LedgerError,
    Overspent,
    PrivacyError,
)

NOBODY = (401, "no-token", "This token opens nothing: it is unknown, expired or revoked.")
UNKNOWN = (404, "not-found", "There is no such data set or run, or this token may not see it.")
FORBIDDEN = (403, "forbidden", "This token's scope does not allow it.")
TOO_LARGE = (413, "too-large", "The request is larger than this door takes.")
TOO_SLOW = (408, "too-slow", "The request took too long to arrive.")
TOO_MANY = (
    429,
    "too-many",
    "Too many requests or open runs for this token: wait, or finish a run.",
)
ENDED_RUN = (409, "ended", "The run has ended: nothing more is answered.")
REUSED = (409, "key-reused", "This key was used for another request.")
BUSY = (503, "busy", "The door is busy: try again with the same key.")
AWAY = (503, "ledger-away", "The holder's ledger does not answer now: try again with the same key.")
RECORDS_AWAY = (
    503,
    "records-away",
    "The door cannot write its records now: try again with the same key.",
)
ROWS_AWAY = (
    503,
    "rows-away",
    "The holder's rows cannot be read now. Tell the holder, whose log says why.",
)
ROWS_CHANGED = (
    409,
    "rows-changed",
    "The holder's rows are not those that this run or division began with: begin another.",
)
INSIDE = (
    500,
    "internal",
    "Something failed inside the door. Nothing that was not recorded was handed out.",
)


_OF_TERMS = re.compile(r"(ledger( '[^']*'[^:']*)?|promise|spend( \w+)?|events[^:]*): expected ")
"""How an error begins that is of a ledger's terms, and not of the place that it lies in."""


class Refusal(Exception):  # noqa: N818  # what happened, as in Overspent
    """An answer of the door that is a no. `detail`: for the holder's log, and nobody else."""

    def __init__(
        self,
        status: int,
        word: str,
        sentence: str,
        *,
        of: str = "",
        got: str = "",
        kind: str = "PrivacyError",
        detail: str = "",
    ) -> None:
        told = f"{sentence} ({of}: got {got})" if of else sentence
        super().__init__(told)
        self.status, self.word, self.sentence, self.kind = status, word, told, kind
        self.detail = detail
        self.figures: dict[str, float] | None = None

    @property
    def body(self) -> bytes:
        """As it is sent."""
        values: dict[str, object] = {
            "error": self.word,
            "message": self.sentence,
            "kind": self.kind,
        }
        if self.figures is not None:
            values["figures"] = self.figures
        return json.dumps(values).encode()


def refusal_of(error: Exception) -> Refusal:
    """What an error of the library is, told to an analyst. Its words are of the request and of
    public facts alone."""
    if isinstance(error, Refusal):
        return error
    detail = f"{type(error).__name__}: {error}"
    if isinstance(error, LedgerAway | DataNotFoundError) or (
        isinstance(error, LedgerError) and not _OF_TERMS.match(str(error))
    ):  # its own words say where the ledger is
        return Refusal(*AWAY, kind="LedgerAway", detail=detail)
    if isinstance(error, DoorError | sqlite3.OperationalError):
        return Refusal(*RECORDS_AWAY, kind="DoorError", detail=detail)
    if not isinstance(error, FairveilError):
        return Refusal(*INSIDE)
    statuses = (
        (Overspent, 402, "overspent"),
        (BudgetError, 409, "budget"),
        (LedgerError, 409, "ledger"),
    )
    found = next(
        ((status, word) for kind, status, word in statuses if isinstance(error, kind)), None
    )
    if found is None and not isinstance(error, InputError | PrivacyError):
        return Refusal(*INSIDE, detail=detail)
    if found is None:
        found = (422, "invalid") if isinstance(error, InputError) else (409, "refused")
    out = Refusal(*found, str(error), kind=type(error).__name__)
    if isinstance(error, Overspent):
        out.figures = error.figures
    return out
