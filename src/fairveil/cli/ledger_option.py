"""The ledger of a command that fits: `--ledger`, `--dataset` and `--purpose` as a handle, and what
it says afterwards."""

from __future__ import annotations

from ..errors import InputError
from ..ledger import Ledger
from ..ledger.entries import MOST_WORDS
from . import options

ROOM = 100
"""Letters of a purpose that are left to what is done for it."""


def opened(url: str | None, dataset: str | None, purpose: str | None) -> Ledger | None:
    """The handle, before rows are read; None where nothing is to be recorded."""
    place = options.ledger_address(url)
    if place is None:
        for name, value in (("--dataset", dataset), ("--purpose", purpose)):
            if value is not None:
                remedy = f"Say --ledger budget.db, or set {options.LEDGER_VARIABLE}."
                raise InputError.expected("a ledger beside it", of=name, got=value, remedy=remedy)
        return None
    options.require_words(purpose=purpose)
    if purpose is not None and len(purpose) > MOST_WORDS - ROOM:
        expected, got = f"at most {MOST_WORDS - ROOM} letters", f"{len(purpose)}"
        raise InputError.expected(expected, of="--purpose", got=got, remedy="Say it shorter.")
    return Ledger.open(place, dataset, purpose=purpose or "")
