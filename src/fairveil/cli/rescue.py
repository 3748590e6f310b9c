"""What was charged is not lost: a result that cannot be written where it was asked goes somewhere
else, and that is said.

Guarantees (tests/cli/test_cli_rescue.py):
1. Once a fit is done, no error and no Ctrl-C ends the command without its model and its statement
   being written, in the folder that was named or in another one, or without saying that they are
   not.
2. The message says what was spent, and where the files are; the exit status is 3 (130 after
   Ctrl-C).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..ledger import Ledger
from ..ledger.entries import RESERVED, WHOLE
from ..privacy.shown import at_most
from ..statement.document import PrivacyStatement
from .ending import INTERRUPTED, Ended

ELSEWHERE = 3


@contextmanager
def already_charged(
    out: Path,
    statement: Callable[[], PrivacyStatement | None],
    save: Callable[[Path], object],
    book: Ledger | None,
) -> Iterator[None]:
    """Around the fit and the writing. `statement`: of what is done, None before; `save`: writes it
    to a new folder."""
    before = None if book is None else book.balance().entries
    try:
        yield
    except BaseException as error:
        done = statement()
        if done is None:
            if book is not None and before is not None:
                _say_charged(book, before)
            raise
        status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else ELSEWHERE
        why = "interrupted" if status == INTERRUPTED else _line(f"{type(error).__name__}: {error}")
        _say(f"the fit is done, and {_line(str(out))} could not be written ({why}).")
        _say(_spent(done, book))
        _save_elsewhere(out, save, done)
        raise Ended(status) from None


def _save_elsewhere(out: Path, save: Callable[[Path], object], done: PrivacyStatement) -> None:
    for place in (tempfile.gettempdir, Path.home, Path.cwd):
        folder = None
        try:
            folder = Path(tempfile.mkdtemp(prefix=f"fairveil-{out.name[:40]}-", dir=place()))
            save(folder / "model")
        except Exception:  # the next place may do
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        _say(f"model and statement are in {folder / 'model'}: move them to where you want them.")
        return
    _say("no other folder could be written either: the model is lost. Its statement:")
    print(done.to_json(), file=sys.stderr)


def _spent(done: PrivacyStatement, book: Ledger | None) -> str:
    words = (
        f"it spent epsilon={at_most(done.epsilon, done.promise.epsilon)} at delta={done.delta:g}"
    )
    if book is not None and done.ledger is not None:
        words += f", line {done.ledger.entry} of {book.dataset} in {book.shown}"
    return f"{words}. A budget is not given back for a fit that ended."


def _say_charged(book: Ledger, before: int) -> None:
    """What the ledger charges for a fit that did not end."""
    new = [line for line in book.history(before) if line.kind == RESERVED and line.who == book.who]
    if new:
        share = sum(book.standing(line.spend).units for line in new) / WHOLE
        lines = ", ".join(str(line.number) for line in new[:5])
        _say(
            f"not finished; the ledger charges {share:.2%} of {book.dataset} for its plan (line "
            f"{lines})."
        )


def _say(text: str) -> None:
    print(f"fairveil: {text}", file=sys.stderr)


def _line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:300]
