"""The last lines of a command that wrote a folder: where it is, how to check it, where it is
recorded."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from ..ledger import Ledger
from ..ledger.balance import left_share
from ..statement.document import PrivacyStatement
from .printing import Fact


def written(
    out: Path, files: str, statement: PrivacyStatement, ledger: Ledger | None
) -> Iterator[Fact]:
    """What is there, the command that checks it, and the line of a ledger."""
    yield Fact("written", f"{out} ({files})")
    yield from recorded(out / "statement.json", statement, ledger)


def recorded(
    file: Path, statement: PrivacyStatement, ledger: Ledger | None, *, signed: bool = False
) -> Iterator[Fact]:
    """The command that checks a file, and the line of a ledger."""
    key = " --key PUBLIC_KEY" if signed else ""
    yield Fact("check", f"fairveil verify {shlex.quote(str(file))}{key}")
    if ledger is not None and statement.ledger is not None:
        where = f"line {statement.ledger.entry} of {ledger.dataset} in {ledger.shown}"
        yield Fact(
            "recorded", f"{where}; {left_share(ledger.balance().left_share)} of that budget is left"
        )
