"""What commands write and print: files whole or not at all, folders that are taken before a budget is
spent, results that cannot be written where they were asked, and words on a terminal.

Guarantees (tests/cli/test_cli_files.py):
1. A file or a folder appears whole or not at all. What is there is replaced with `--force` alone, and
   of folders only those that the same command wrote and that hold nothing else.
2. Once a fit is done, no error and no Ctrl-C ends the command without its model and its statement
   being written, in the folder that was named or in another one, or without saying that they are not.
   The message says what was spent, and where the files are; the exit status is 3 (130 after Ctrl-C).
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._reading import write_files
from .._waiting import replaced, waiting
from ..errors import FairveilWarning
from .frame import ELSEWHERE, INTERRUPTED, Ask, Ended, alone, wrong
from .words import LEDGER_VARIABLE, PASSPHRASE_VARIABLE

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..models.folders import Staged
    from ..statement.document import PrivacyStatement

ROOM = 8 << 20
"""Bytes that are taken before the work: more than a linear model and its report have."""


# where to write: refused before the work


def require_folder(path: Path, mark: str, *, force: bool) -> None:
    """An error where a folder may not be written: before hours of work, and before any budget is
    spent. With `force` only one that has the file `mark`, which an earlier run of the same command
    wrote, may be replaced."""
    parent = next(folder for folder in (path, *path.parents) if folder.exists())
    there = path.is_dir() and any(path.iterdir())
    expected, remedy = "", "Name another, or replace it with --force."
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        expected, remedy = "a folder to write", "Name a folder that is not there yet."
    elif not parent.is_dir() or not os.access(parent, os.W_OK):
        expected, remedy = "a folder that may be written", "Name a place where you may write."
    elif there and not force:
        expected = "a folder that is not there yet"
    elif there and not (path / mark).is_file():
        expected, remedy = f"a folder with {mark}", "Only what this command wrote is replaced."
    if expected:
        raise wrong("out", expected, str(path), remedy)
    if there:
        from ..models.folders import require_own

        require_own(path, of="out")


def deliver(
    ask: Ask,
    found: Any,
    words: Callable[[], None] | None = None,
    *,
    page: Any = None,
    title: str | None = None,
    record: Callable[[Path], object] | None = None,
) -> None:
    """The end of a command that shows a result, or plain values: its files by their endings, then
    JSON or words, then what was written. `words`: prints it [its text]; `page`: what has its HTML
    [the result]; `record`: writes its JSON file."""
    plain = isinstance(found, dict)
    document = json.dumps(found, indent=2, allow_nan=False) + "\n" if plain else found.to_json()
    for ending, path in ask.files.items():
        if ending == ".json" and record is not None:
            record(path)
        elif ending == ".html":
            write_files({path: (found if page is None else page).to_html(title)})
        else:
            write_files({path: document if ending == ".json" else f"{found}\n"})
    if ask.json or words is None:
        print_lines((document if ask.json else str(found)).rstrip("\n"))
    else:
        words()
    for path in ask.files.values():
        click.echo(f"Written: {path}", err=bool(ask.json))


# what was charged is not lost


@contextmanager
def spending(
    ask: Ask,
    mark: str | None,
    statement: Callable[[], PrivacyStatement | None],
    save: Callable[[Path], object],
    book: Ledger | None,
) -> Iterator[Staged | None]:
    """Around the fit and the writing: a place beside the folder, with room in it, is taken before
    any budget is spent (`mark`: see `require_folder`; None: a file is written). `statement`: of what
    is done, None before; `save`: writes it to a new folder."""
    from ..models.folders import Staged

    before = None if book is None else book.balance().entries
    with ExitStack() as held:
        made = None
        if mark is not None:
            require_folder(ask.out, mark, force=ask.force)
            place = Staged(ask.out, replaces=mark if ask.force else None, room=ROOM)
            made = held.enter_context(place)
        try:
            yield made
        except BaseException as error:
            done = statement()
            if done is None:
                if book is not None and before is not None:
                    _say_charged(book, before)
                raise
            status = INTERRUPTED if isinstance(error, KeyboardInterrupt) else ELSEWHERE
            why = "interrupted" if status == INTERRUPTED else f"{type(error).__name__}: {error}"
            note(f"the fit is done, and {ask.out} could not be written ({why[:300]}).")
            at = "" if book is None or done.ledger is None else f", {_line(done, book)}"
            note(f"it spent {price(done)}{at}. A budget is not given back for a fit that ended.")
            _save_elsewhere(ask.out, save, done)
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
        note(f"model and statement are in {folder / 'model'}: move them to where you want them.")
        return
    note("no other folder could be written either: the model is lost. Its statement:")
    print(done.to_json(), file=sys.stderr)


def _say_charged(book: Ledger, before: int) -> None:
    """What the ledger charges for a fit that did not end."""
    from ..ledger.lines import RESERVED, WHOLE

    new = [line for line in book.history(before) if line.kind == RESERVED and line.who == book.who]
    if new:
        share = sum(book.standing(line.spend).units for line in new) / WHOLE
        at = ", ".join(str(line.number) for line in new[:5])
        what = f"the ledger charges {share:.2%} of {book.dataset} for its plan (line {at})."
        note(f"not finished; {what}")


# the ledger of a command that spends


def opened(ask: Ask) -> Ledger | None:
    """`--ledger`, `--dataset` and `--purpose` as a handle, before rows are read; None where nothing
    is to be recorded."""
    address = ledger_address(ask.ledger)
    if address is None:
        for name in ask.named("dataset purpose"):
            raise alone(name, "a ledger", f"Say --ledger budget.db, or set {LEDGER_VARIABLE}.")
        return None
    from ..ledger import Ledger

    return Ledger.open(address, ask.dataset, purpose=ask.purpose or "")


def ledger_address(url: str | None) -> str | None:
    """What was said, else what stands in for it; it may hold a password."""
    return (os.environ.get(LEDGER_VARIABLE) if url is None else url) or None


# words


def passphrase() -> str:
    """Of a key that is encrypted: from the environment, or asked for."""
    found = os.environ.get(PASSPHRASE_VARIABLE)
    return found or typed("Passphrase of the key", twice=False)


def typed(words: str, *, twice: bool) -> str:
    """From the terminal; without one an error says how else."""
    if not sys.stdin.isatty():
        remedy = f"Put it into the environment as {PASSPHRASE_VARIABLE}."
        raise wrong("key", "a passphrase", "no terminal to ask at", remedy)
    return str(click.prompt(words, hide_input=True, confirmation_prompt=twice, err=True))


def note(text: str) -> None:
    """A line on standard error."""
    with replaced():
        click.echo(f"fairveil: {on_one_line(text)}", err=True)


@contextmanager
def working(what: str | None = None) -> Iterator[list[str]]:
    """Around the work: the library's warnings as lines on standard error, without the place in the
    code, all of them, once each, and each when it is given, so that one before a spend is read before
    it; and `what` is done, said where it takes long."""
    said: list[str] = []
    with warnings.catch_warnings(), ExitStack() as held:
        warnings.simplefilter("always", FairveilWarning)
        others = warnings.showwarning

        def show(message: Any, category: Any, *place: Any, **options: Any) -> None:
            if not isinstance(message, FairveilWarning):
                others(message, category, *place, **options)
                return
            text = message.in_shell or str(message).replace("; see constraint_report_.", ".")
            if text not in said:
                said.append(text)
                note(f"note: {text}")

        warnings.showwarning = show
        if what is not None:
            held.enter_context(waiting(what))
        yield said


def print_facts(*found: tuple[str, str]) -> None:
    """A line a fact, `label  words`."""
    for label, words in found:
        click.echo(f"{label:11} {on_one_line(words)}")


def print_lines(text: str) -> None:
    """Some lines, which may hold words of files: a terminal obeys some letters."""
    for line in text.split("\n"):
        click.echo(on_one_line(line))


def on_one_line(text: str) -> str:
    """Letters that cannot be printed as question marks: a terminal obeys some of them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def price(statement: PrivacyStatement) -> str:
    """What was spent, in a few words."""
    from ..show.numbers import at_most

    if not statement.is_private:
        return "epsilon inf: not private"
    spent = at_most(statement.epsilon, statement.promise.epsilon)
    return f"epsilon={spent} at delta={statement.delta:g}"


def written(
    out: Path, files: str, statement: PrivacyStatement, book: Ledger | None, check: str = ""
) -> Iterator[tuple[str, str]]:
    """The last lines of a command that spent: what is there, what checks it, where it is recorded."""
    file = out / "statement.json" if out.is_dir() else out
    checked = f"check: fairveil verify {shlex.quote(str(file))}{check}"
    yield "written", f"{out} ({files}); {checked}"
    if book is not None and statement.ledger is not None:
        left = math.floor(book.balance().left_share * 1e4) / 100
        yield "recorded", f"{_line(statement, book)}; {left:g}% of that budget is left"


def _line(statement: PrivacyStatement, book: Ledger) -> str:
    assert statement.ledger is not None
    return f"line {statement.ledger.entry} of {book.dataset} in {book.shown}"
