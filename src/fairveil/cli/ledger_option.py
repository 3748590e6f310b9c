"""The ledger of a command that fits: `--ledger`, `--dataset` and `--purpose` as a handle, and what it says afterwards."""

from __future__ import annotations

import typer

from ..errors import InputError, complaint
from ..privacy.ledger import Ledger
from ..privacy.ledger.lines import MOST_WORDS
from ..privacy.ledger.terms_words import left_share
from ..privacy.statement import PrivacyStatement
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
                raise InputError(complaint(expected="a ledger beside it", of=name, got=value, remedy=remedy))
        return None
    options.require_words(purpose=purpose)
    if purpose is not None and len(purpose) > MOST_WORDS - ROOM:
        expected, got = f"at most {MOST_WORDS - ROOM} letters", f"{len(purpose)}"
        raise InputError(complaint(expected=expected, of="--purpose", got=got, remedy="Say it shorter."))
    return Ledger.open(place, dataset, purpose=purpose or "")


def tell(ledger: Ledger | None, statement: PrivacyStatement) -> None:
    """Where the release is recorded, and what is left."""
    if ledger is not None and statement.ledger is not None:
        where = f"line {statement.ledger.entry} of {ledger.dataset} in {ledger.shown}"
        typer.echo(f"Recorded: {where}; {left_share(ledger.balance().left_share)} of that budget is left.")
