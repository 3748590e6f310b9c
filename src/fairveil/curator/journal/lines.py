"""The lines of a journal: how an answer is written down, and what a file of them says.

The first line is the header: promise, plan (once), filter. Each other line is an answer, or begins
with a word of `AHEAD`: a stated bound, a mark that the statement must carry, another sitting. What
an answer cost comes first in its line, so that a line which a crash cut short still says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ..._json import Document
from ..._reading import read_bytes
from ...core.events import Event, compose, from_dict, from_json_dict, spelled_out, to_json_dict
from ...core.filters import Filter
from ...core.promise import Promise
from ...errors import FairveilError, PrivacyError
from ...statement.document import StatedBound
from .given import Given
from .log import LogEntry

FORMAT = "fairveil journal"
FORMAT_VERSION = 1
REMEDY = "Restore the file from a copy: what was released must stay charged."
MOST_EVENTS = 1 << 18
"""Events of the plan that one answer may be; a count in a changed file could keep the reader busy
for ever."""
LARGEST = 4 << 30
"""Bytes of a journal: some ten million answers."""
DOCUMENT = Document("journal", REMEDY, PrivacyError)
MAGIC = b'{"format":"fairveil journal"'
SITTING = 1 << 40
"""Answers of one sitting are numbered from a multiple of this: no sitting gives so many."""
PAID = "ledger"
"""The first word of the mark that says in which ledger a run is charged: then the data set, then
the spend."""
CUT = "an answer whose line in the journal was cut short"
AHEAD = ("bound", "mark", "sitting")


@dataclass
class Written:
    """What a journal says. `upto`: how many events of the plan were released; `unknown`: one line
    was cut before it said what it released; `open_line`: the last line has no end; `keeps`: answers
    are there, too."""

    header: dict[str, Any] | None = None
    planned: Event | None = None
    entries: list[LogEntry] = field(default_factory=list)
    bounds: list[StatedBound] = field(default_factory=list)
    secure: bool = True
    marks: set[str] = field(default_factory=set)
    unknown: bool = False
    open_line: bool = False
    keeps: bool = False
    upto: int = 0
    sitting: int = 0
    to_come: Iterator[Event] = field(default_factory=lambda: iter(()))

    def begin(self, header: dict[str, Any], plan: Event | None) -> None:
        """Of a new run."""
        self.header, self.planned = header, plan
        self.to_come = iter(()) if plan is None else spelled_out(plan)

    @property
    def ledger(self) -> tuple[str, str] | None:
        """The data set of the ledger that the run is charged in, and its spend there."""
        for mark in self.marks:
            word, _, rest = mark.partition(" ")
            if word == PAID:
                dataset, _, spend = rest.rpartition(" ")
                return dataset, spend
        return None

    def line_of(self, entry: LogEntry) -> dict[str, Any]:
        """An answer as a line. A planned one says up to which event of the plan answers were given,
        and repeats none; it says what was done where that is finer. The answer itself comes last,
        where it is kept."""
        words: dict[str, Any] = {
            "number": entry.number,
            "purpose": entry.purpose,
            "batch": entry.batch,
        }
        words |= {
            "questions": list(entry.questions),
            **({} if entry.given is None else entry.given.to_line()),
        }
        if self.planned is None:
            return {"event": entry.event.to_dict(), **words}
        done = list(spelled_out(entry.event))
        same = list(islice(self.to_come, len(done))) == done
        self.upto += len(done)
        return {"upto": self.upto, **({} if same else {"event": entry.event.to_dict()}), **words}

    def take(self, line: bytes, is_last: bool) -> None:
        """Read one line after the header."""
        values = parsed(line)
        if values is None and not is_last:
            raise damaged()
        if values is None:
            self._take_cut(line.decode(errors="replace"))
        elif "sitting" in values:
            self.sitting, self.secure = (
                int(values["sitting"]),
                self.secure and values["secure"] is True,
            )
        elif "bound" in values:
            self.bounds.append(StatedBound(**values["bound"]))
        elif "mark" in values:
            self.marks.add(values["mark"])
        else:
            event = self._done(values) if "event" in values else self._next(values["upto"])
            words = (tuple(values["questions"]), values["batch"], values["purpose"])
            given = Given.from_line(values) if "given" in values else None
            self.entries.append(LogEntry(values["number"], event, *words, given))

    def _take_cut(self, text: str) -> None:
        """A line that a crash cut short: charged when it says for what, and nothing goes on when it
        does not."""
        if len(text) > 2 and any(text.startswith(f'{{"{name}"'[: len(text)]) for name in AHEAD):
            return
        name = '{"event":' if self.planned is None else '{"upto":'
        try:
            value, end = DOCUMENT.beginning(text, len(name)) if text.startswith(name) else (None, 0)
            if value is None or text[end : end + 1] != ",":
                raise ValueError
            event = from_dict(value) if self.planned is None else self._next(value)
        except (ValueError, FairveilError):
            self.unknown = True
            return
        number = max(self.entries[-1].number + 1 if self.entries else 0, self.sitting * SITTING)
        self.entries.append(LogEntry(number, event, (CUT,), "unknown"))

    def _done(self, values: dict[str, Any]) -> Event:
        """What the line itself says; with a plan, in place of as many of its events."""
        event = from_dict(values["event"])
        if self.planned is not None:
            intended = self._next(values["upto"])
            if _length(intended) != _length(event):
                raise damaged()
        return event

    def _next(self, upto: object) -> Event:
        """The plan's events from where the last entry ended."""
        if type(upto) is not int or not self.upto < upto <= self.upto + MOST_EVENTS:
            raise damaged()
        events = list(islice(self.to_come, upto - self.upto))
        if len(events) != upto - self.upto:
            raise damaged()
        self.upto = upto
        return events[0] if len(events) == 1 else compose(events)


def read(path: Path) -> Written:
    """What a file says; nothing, where there is none or a crash came before its header was
    whole."""
    if not path.exists():
        return Written()
    data = read_bytes(path, what="a journal", most=LARGEST, remedy=REMEDY, error=PrivacyError)
    first, newline, rest = data.partition(b"\n")
    if not newline and MAGIC[: len(first)] == first[: len(MAGIC)]:
        return Written()  # the header is on the disk before anything is released: here nothing was
    try:
        out = _begun(DOCUMENT.json(first))
        lines = [line for line in rest.split(b"\n") if line]
        out.open_line = not data.endswith(b"\n")
        for at, line in enumerate(lines):
            out.take(line, _ends_a_sitting(lines, at))
        return out
    except PrivacyError:
        raise
    except (
        FairveilError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise damaged() from error


def _length(event: Event) -> int:
    """How many events one answer was, counted no further than an answer can be."""
    return sum(1 for _ in islice(spelled_out(event), MOST_EVENTS + 1))


def _ends_a_sitting(lines: list[bytes], at: int) -> bool:
    """Whether a line is the last of its sitting: what follows is a new sitting, whose first line
    was perhaps cut short."""
    begins = b'{"sitting"'
    for line in lines[at + 1 :]:
        values = parsed(line)
        if values is not None:
            return "sitting" in values
        if not begins.startswith(line[: len(begins)]):
            return False
    return True


def _begun(header: dict[str, Any]) -> Written:
    if header["format"] != FORMAT or header["version"] != FORMAT_VERSION:
        raise damaged()
    secure = header.pop("secure") is True
    Promise.from_dict(header["promise"])
    out = Written(secure=secure, keeps=header.pop("answers", False) is True)
    out.begin(header, None if header["plan"] is None else from_json_dict(header["plan"]))
    return out


def header_of(
    promise: Promise, plan: Event | None, cap: Filter | None, rows: int | None
) -> dict[str, Any]:
    """The first line, but for the kind of noise. `rows`: how many, where that is public; None where
    it is not."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "promise": promise.to_dict(),
        "plan": None if plan is None else to_json_dict(plan),
        "cap": None if cap is None else cap.to_dict(),
        "rows": rows,
    }


def encoded(line: dict[str, Any]) -> bytes:
    """One line of JSON, its end included."""
    return (json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n").encode()


def parsed(line: bytes) -> dict[str, Any] | None:
    """A whole line's values; None for one that was cut short."""
    try:
        values = DOCUMENT.json(line)
    except FairveilError:
        return None
    return values if isinstance(values, dict) else None


def refused(expected: str, got: str, remedy: str) -> PrivacyError:
    """An error about a journal."""
    return PrivacyError.expected(expected, of="journal", got=got, remedy=remedy)


def damaged() -> PrivacyError:
    """Of a file that is no journal, or no longer."""
    return refused("a journal as it was written", "another file, or one that was changed", REMEDY)
