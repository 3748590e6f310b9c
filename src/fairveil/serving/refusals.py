"""What a server says no with: a closed list of words, each with its status and sentence. Never a
value of a row, a place of the holder's, nor an inside of the server.

Guarantees (tests/serving/test_serving_requests.py):
1. A data set that is not there, one outside of a token's scope, and another's run are refused with
   the same bytes.
2. Only what is wrong with a request, a promise or a plan is told in the library's own words. What
   is wrong with the holder's rows, ledger, records or code is one constant sentence; why, the
   holder's log alone says.
"""

from __future__ import annotations

import json
import re
import sqlite3

from ..errors import (
    BudgetError,
    DataNotFoundError,
    DoorError,
    InputError,
    LedgerAway,
    LedgerError,
    Overspent,
    PrivacyError,
)

AGAIN = "try again with the same key."
SAYINGS: dict[str, tuple[int, str]] = {
    "no-token": (401, "This token opens nothing: it is unknown, expired or revoked."),
    "not-found": (404, "There is no such data set or run, or this token may not see it."),
    "forbidden": (403, "This token's scope does not allow it."),
    "entered": (403, "Look at the page again: this form is not of it."),
    "too-large": (413, "The request is larger than this server takes."),
    "too-slow": (408, "The request took too long to arrive."),
    "too-many": (429, "Too many requests or open runs for this token: wait, or finish a run."),
    "no-room": (429, "What is kept for this token's open runs is full: finish or close one."),
    "too-costly": (422, "The plan takes this server too long to price: fewer different events."),
    "no-key": (422, "Send an Idempotency-Key of 8 to 64 letters, digits, - and _."),
    "resume": (409, "The run is not in memory: open it again, and ask it all again."),
    "ended": (409, "The run has ended: nothing more is answered."),
    "key-reused": (409, "This key was used for another request, or later ones followed it."),
    "rows-changed": (
        409,
        "The holder's rows are not those that this run or division began with: begin another.",
    ),
    "busy": (503, f"The server is busy: {AGAIN}"),
    "ledger-away": (503, f"The holder's ledger does not answer now: {AGAIN}"),
    "records-away": (503, f"The server cannot write its records now: {AGAIN}"),
    "rows-away": (
        503,
        "The holder's rows cannot be read now. Tell the holder, whose log says why.",
    ),
    "unhealthy": (503, "The records or a ledger cannot be read, or written."),
    "internal": (500, "Something failed inside. Nothing that was not recorded was handed out."),
    # in the library's own words, of the request and of public facts alone
    "invalid": (422, ""),
    "refused": (409, ""),
    "budget": (409, ""),
    "ledger": (409, ""),
    "overspent": (402, ""),
}
_OF_TERMS = re.compile(r"(ledger( '[^']*'[^:]*)?|promise|spend( \w+)?|events[^:]*): expected ")
"""How an error begins that is of a ledger's terms, and not of the place that it lies in."""


class Refusal(Exception):  # noqa: N818  # what happened, as in Overspent
    """An answer that is a no. `detail`: for the holder's log, and nobody else."""

    def __init__(
        self,
        word: str,
        *,
        got: str = "",
        said: str = "",
        kind: str = "PrivacyError",
        detail: str = "",
        figures: dict[str, float] | None = None,
    ) -> None:
        self.status, constant = SAYINGS[word]
        self.sentence = said or (f"{constant} (got {got})" if got else constant)
        super().__init__(self.sentence)
        self.word, self.kind, self.detail, self.figures = word, kind, detail, figures

    @property
    def body(self) -> bytes:
        """As it is sent."""
        values: dict[str, object] = {"error": self.word, "message": self.sentence}
        values["kind"] = self.kind
        return json.dumps(
            values if self.figures is None else {**values, "figures": self.figures}
        ).encode()


def refusal_of(error: BaseException) -> Refusal:
    """What an error is to an analyst: guarantee 2."""
    if isinstance(error, Refusal):
        return error
    kind, detail = type(error).__name__, f"{type(error).__name__}: {error}"
    if isinstance(error, Overspent):
        return Refusal("overspent", said=str(error), kind=kind, figures=error.figures)
    if isinstance(error, LedgerAway | DataNotFoundError) or (
        isinstance(error, LedgerError) and not _OF_TERMS.match(str(error))
    ):  # its own words say where the ledger is
        return Refusal("ledger-away", kind="LedgerAway", detail=detail)
    if isinstance(error, DoorError | sqlite3.OperationalError):
        return Refusal("records-away", kind="DoorError", detail=detail)
    for family, word in (
        (InputError, "invalid"),
        (LedgerError, "ledger"),
        (BudgetError, "budget"),
        (PrivacyError, "refused"),
    ):
        if isinstance(error, family):
            return Refusal(word, said=str(error), kind=kind)
    return Refusal("internal", detail=kind)
