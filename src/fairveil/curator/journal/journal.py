"""The log on disk: what was released is written down for good before anybody sees it, so a run that
was killed can go on.

One line of JSON an answer, after a header that holds the promise and the whole plan once. Only
public values: events, names, bounds, and with `answers=True` the noisy answers themselves, as they
were released; never a row, never an exact answer about what is protected.

Guarantees (tests/curator/test_curator_journal.py):
1. A line is written, flushed and on the disk before its answer is returned; where that fails,
   there is no answer.
2. A line cut short by a crash counts as released. One cut before it says what was released ends the
   run.
3. A journal of another promise, plan or filter is refused, as is one that somebody else is writing,
   and nothing is changed.
4. No two sittings of a run number their answers alike, so a seeded source's streams are never used
   twice.
5. A run that is charged in a ledger says so before its first answer: see `recording`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...core.events import Event
from ...core.filters import Filter
from ...core.promise import Promise
from ...errors import InputError
from ...statement.document import StatedBound
from .lines import PAID, SITTING, encoded, header_of, read, refused
from .log import LogEntry

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]


class Journal:
    """A run's log in a file. `Curator(..., earlier=Journal(path))` begins it, or goes on where it
    ends.

    Making one reads and changes nothing; writing begins with the curator that it is given to, one
    at a time. `answers`: keep them, so that a run that was killed is given them again (`given`).
    """

    def __init__(self, path: str | os.PathLike[str], *, answers: bool = False) -> None:
        self.path = Path(path)
        self.keeps_answers = answers
        self._file: int | None = None
        self._failed = False
        self._written = read(self.path)

    # -- what is in it -----------------------------------------------------------------------------

    @property
    def is_new(self) -> bool:
        """Whether nothing was written yet."""
        return self._written.header is None

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """Every answer so far, of all sittings, those whose line was cut short included."""
        return tuple(self._written.entries)

    @property
    def bounds(self) -> tuple[StatedBound, ...]:
        """The sensitivities that were stated, in turn: for the statement."""
        return tuple(self._written.bounds)

    @property
    def is_secure(self) -> bool:
        """Whether every sitting so far drew secure noise."""
        return self._written.secure

    @property
    def marks(self) -> frozenset[str]:
        """What the statement must say of any sitting: that code of the caller ran beside the rows,
        for example."""
        return frozenset(self._written.marks)

    @property
    def ledger(self) -> tuple[str, str] | None:
        """The data set of the ledger that the run is charged in, and its spend there."""
        return self._written.ledger

    def look_again(self) -> None:
        """Read what others wrote since. Only before `begin`."""
        if self._file is None:
            self._written = read(self.path)

    # -- writing -----------------------------------------------------------------------------------

    def begin(
        self,
        promise: Promise,
        plan: Event | None,
        cap: Filter | None,
        rows: int | None = None,
        *,
        secure: bool,
        agreed: Callable[[int], None] | None = None,
    ) -> int:
        """Open for writing, for a run of this promise, plan, filter and public number of rows. Its
        next answer's number.

        `agreed` is called with the number of this sitting once the file is ours and fits, before
        anything is written.
        """
        if self._file is not None:
            raise refused(
                "one that nobody writes", "one in use", "Give each curator a journal of its own."
            )
        if self.keeps_answers and not promise.is_private:
            remedy = (
                "Leave the checkpoint out, or give a finite epsilon: exact answers are written "
                "nowhere."
            )
            raise refused("a private run, whose answers are noisy", "epsilon=inf", remedy)
        self._written = read(self.path)
        self._check(header_of(promise, plan, cap, rows), promise)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(
                self.path,
                os.O_RDWR | os.O_CREAT | os.O_APPEND,
                0o600 if self.keeps_answers else 0o644,
            )
        except OSError as error:
            raise refused(
                "a place that can be written to", str(error), "Choose another folder."
            ) from error
        try:
            _lock(file)
            # Another process may have written between the first look and the lock.
            self._written = read(self.path)  # again: it is ours only now
            self._check(header_of(promise, plan, cap, rows), promise)
            if agreed is not None:
                agreed(0 if self.is_new else self._written.sitting + 1)
            self._open(file, header_of(promise, plan, cap, rows), plan, secure)
        except BaseException:
            os.close(file)
            raise
        self._file, self._failed = file, False
        return self._written.sitting * SITTING

    def _open(self, file: int, header: dict[str, Any], plan: Event | None, secure: bool) -> None:
        written = self._written
        if written.header is None:
            # A head that was cut short is no journal yet: nothing was released under it.
            os.ftruncate(file, 0)
            _write(
                file,
                {**header, "secure": secure, **({"answers": True} if self.keeps_answers else {})},
            )
            _sync_folder(self.path.parent)
            written.begin(header, plan)
        else:
            # The last line was cut short, and its answer may have been seen: it stays, and is
            # charged.
            if written.open_line:
                _write_all(file, b"\n")
            _write(file, {"sitting": written.sitting + 1, "secure": secure})
            written.sitting, written.open_line = written.sitting + 1, False
        written.secure = written.secure and secure

    def __call__(self, entry: LogEntry) -> None:
        """Write an entry down, for good: called before its answer is returned."""
        self._append(self._written.line_of(entry))
        self._written.entries.append(entry)

    def state(self, bound: StatedBound) -> None:
        """Write a sensitivity down. It is on the disk when the next answer is."""
        self._append({"bound": asdict(bound)}, sync=False)
        self._written.bounds.append(bound)

    def mark(self, name: str, *, sync: bool = False) -> None:
        """Write down what the statement must say, once. It is on the disk when the next answer is;
        with `sync` now."""
        if name not in self._written.marks:
            self._append({"mark": name}, sync=sync)
            self._written.marks.add(name)

    def mark_ledger(self, dataset: str, spend: str) -> None:
        """Write down in which ledger the run is charged: at once, or a run that dies before its
        first answer is charged twice."""
        self.mark(f"{PAID} {dataset} {spend}", sync=True)

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()

    # -- inside ------------------------------------------------------------------------------------

    def _append(self, line: dict[str, Any], *, sync: bool = True) -> None:
        if self._file is None or self._failed:
            got = (
                "one whose last line could not be written" if self._failed else "one that is closed"
            )
            raise refused(
                "one that can be written", got, "Give it to a new Curator: earlier=Journal(path)."
            )
        try:
            _write(self._file, line, sync=sync)
        except BaseException:
            self._failed = True  # half a line may be there: nothing may follow it
            raise

    def _check(self, header: dict[str, Any], promise: Promise) -> None:
        """The same promise, plan, filter and public number of rows as before; and every line says
        what it released."""
        if self._written.header is None:
            return
        for name, words in (
            ("promise", "promise"),
            ("plan", "plan"),
            ("cap", "filter"),
            ("rows", "number of rows"),
        ):
            if header[name] != self._written.header[name]:
                remedy = (
                    f"Make the curator with the {words} that the run began with, or begin another "
                    f"journal."
                )
                raise refused(f"one of this {words}", f"one of another {words}", remedy)
        if self._written.keeps is not self.keeps_answers:
            remedy = "Resume the run in the way in which it began, or begin another journal."
            kinds = {True: "one that keeps answers", False: "one that keeps no answers"}
            raise refused(kinds[self.keeps_answers], kinds[self._written.keeps], remedy)
        if self._written.unknown and promise.is_private:
            remedy = (
                "The run cannot go on, and its plan stays charged whole. Begin another with what "
                "is left of the budget."
            )
            raise refused(
                "lines that say what was released", "one that was cut short before it did", remedy
            )


def earlier_entries(earlier: object) -> tuple[LogEntry, ...]:
    """Entries of an earlier sitting, as they are given to a curator."""
    if isinstance(earlier, list | tuple) and all(isinstance(entry, LogEntry) for entry in earlier):
        return tuple(earlier)
    remedy = "Pass earlier=Journal(path), or the entries of an earlier log."
    raise InputError.expected(
        "a Journal, or entries", of="earlier", got=type(earlier).__name__, remedy=remedy
    )


def _write(file: int, line: dict[str, Any], *, sync: bool = True) -> None:
    _write_all(file, encoded(line))
    if sync:
        os.fsync(file)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _lock(file: int) -> None:
    """One writer at a time: two would each follow the plan, and release it twice."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise refused(
                "one that nobody writes",
                "one in use",
                "Let the other run end, or close its curator.",
            ) from None


def _sync_folder(folder: Path) -> None:
    """A new file's name is on the disk only when its folder is. Not every system can open a
    folder."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
