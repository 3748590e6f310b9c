"""The log of a run, in memory and on disk: what was released is written down for good before
anybody sees it, so a run that was killed can go on.

One line of JSON an answer, after a header with promise, plan and filter; other lines are a stated
bound, a mark that the statement must carry, another sitting. Only public values: events, names,
bounds, and the noisy answers as they were released; never a row, never an exact answer about what
is protected.

A run that was killed begins anew, asks the same, and is given again what was released, at no
further price: it asks the rows only what was not asked yet.

Guarantees (tests/curator/test_curator_journal.py)
    1. A line is written, flushed and on the disk before its answer is returned; where that fails,
       there is no answer.
    2. A line that a crash cut short ends the run, which stays charged: its answer may have been
       seen.
    3. A journal of another promise, plan or filter is refused, as is one that somebody else is
       writing, and nothing is changed.
    4. No two sittings of a run number their answers alike, so a seeded source's streams are never
       used twice.
    5. What is given again is, to the bit, what was released: no row is read for it, nothing
       admitted, logged or charged. Where another question is asked than before the run ends, and
       stays charged.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from . import checks
from .cost import Filter, covers
from .errors import FairveilError, PrivacyError, need
from .events import Event, compose, from_dict, spelled_out, to_json_dict
from .layout import Floats
from .promise import Neighbours, Promise

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FORMAT, FORMAT_VERSION = "fairveil journal", 3
MAGIC = b'{"format":"fairveil journal"'
REMEDY = "Restore the file from a copy: what was released must stay charged."
LARGEST = 4 << 30
"""Bytes of a journal: millions of answers."""
MOST_EVENTS = 1 << 18
"""Events that one answer may be; a count in a changed file could keep the reader busy for ever."""
SITTING = 1 << 40
"""Answers of one sitting are numbered from a multiple of this: no sitting gives so many."""
PAID = "ledger"
"""The first word of the mark that says in which ledger a run is charged: then the data set, then
the spend."""


@dataclass(frozen=True)
class Bounded:
    """How far one person moves one released total, and why, for the statement: `norm` such as "L2",
    `reason` such as "clipped to norm 1"."""

    question: str
    norm: str
    sensitivity: float
    reason: str
    origin: str


# -- entries ---------------------------------------------------------------------------------------


def digest_of(*asked: object) -> str:
    """Of asks, batches and purposes: all their public fields, arrays by their values. Code of a
    caller counts by its name."""
    digest = hashlib.sha256()
    for part in _parts(asked):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:32]


def _parts(value: object) -> Iterator[bytes]:
    """A value as bytes, its parts in turn."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str} {value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, list | tuple):
        yield f"{len(value)} values".encode()
        for one in value:
            yield from _parts(one)
    elif isinstance(value, frozenset | set):
        yield from _parts(sorted(map(repr, value)))
    elif isinstance(value, Mapping):
        yield from _parts([part for pair in value.items() for part in pair])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield type(value).__qualname__.encode()
        own = checks.fields_of(value)
        for one in dataclasses.fields(value):
            if one.init and not one.name.startswith("_"):
                yield one.name.encode()
                yield from _parts(own[one.name])
    elif value is None or isinstance(value, str | bytes | bool | int | float | np.generic):
        yield repr(value).encode()
    else:
        yield getattr(value, "__qualname__", type(value).__qualname__).encode()


@dataclass(frozen=True)
class LogEntry:
    """One answer: its number, its one event, what was asked, of which rows, and why. In a journal
    also a digest of all that was asked, and the arrays that were returned."""

    number: int
    event: Event
    questions: tuple[str, ...]
    batch: str
    purpose: str = ""
    asked: str = field(default="", compare=False, repr=False)
    given: tuple[Floats, ...] = field(default=(), compare=False, repr=False)

    def to_line(self) -> dict[str, Any]:
        """Plain JSON values."""
        packed = [
            [list(a.shape), base64.b64encode(a.astype("<f8").tobytes()).decode("ascii")]
            for a in self.given
        ]
        line = {name: getattr(self, name) for name in ("number", "purpose", "batch", "asked")}
        return {
            "event": self.event.to_dict(),
            **line,
            "questions": list(self.questions),
            "given": packed,
        }

    @staticmethod
    def from_line(values: Mapping[str, Any]) -> LogEntry:
        """Read back; a `ValueError`, for example, where that cannot be."""
        event, number = from_dict(values["event"]), values["number"]
        # what showed nothing of anybody is not written
        _whole(0 < sum(1 for _ in islice(spelled_out(event), MOST_EVENTS + 1)) <= MOST_EVENTS)
        _whole(type(number) is int)
        given = tuple(
            np.frombuffer(base64.b64decode(data, validate=True), "<f8").reshape(shape)
            for shape, data in values["given"]
        )
        words = (tuple(values["questions"]), values["batch"], values["purpose"])
        return LogEntry(number, event, *words, str(values["asked"]), given)


class Log:
    """An append-only list of entries. `heard`: who is told of each new one, in turn, before its
    answer is returned: a journal first."""

    def __init__(
        self,
        journal: Callable[[LogEntry], None] | None = None,
        earlier: Iterable[LogEntry] = (),
        heard: Callable[[LogEntry], None] | None = None,
    ) -> None:
        self._entries: list[LogEntry] = list(earlier)
        self._heard = [one for one in (journal, heard) if one is not None]

    def append(self, entry: LogEntry) -> None:
        """Write an entry down; durably first, if there is a journal."""
        for one in self._heard:
            one(entry)
        self._entries.append(entry)

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """All entries so far."""
        return tuple(self._entries)

    @property
    def events(self) -> tuple[Event, ...]:
        """What was released so far, one event an answer."""
        return tuple(entry.event for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def reconcile(self, plan: Iterable[Event], neighbours: Neighbours | None = None) -> None:
        """The log must be the plan, or finer under the relation that is given; an error says at
        which answer they part."""
        planned = list(spelled_out(compose(plan)))
        done = list(spelled_out(compose(self.events)))
        pairs = enumerate(zip(planned, done, strict=False))
        shorter = min(len(planned), len(done))
        at = next((i for i, (a, b) in pairs if not covers(a, b, neighbours)), shorter)
        words, of = f"the plan's {len(planned)} events", "log"
        got = f"{len(done)} events, which part from the plan at number {at}"
        fix = "A plan is fixed in advance: account for what was done instead."
        whole = at == len(planned) == len(done)
        need(whole, words, of=of, got=got, fix=fix, error=PrivacyError)


# -- the file --------------------------------------------------------------------------------------


class Journal:
    """A run's log in a file. `Curator(..., earlier=Journal(path))` begins it, or goes on where it
    ends.

    Making one reads and changes nothing; writing begins with the curator that it is given to, one
    at a time.

    Attributes
    ----------
    bounds : list of Bounded
        The sensitivities that were stated, in turn: for the statement.
    marks : set of str
        What the statement must say of any sitting: that code of the caller ran beside the rows,
        for example.
    is_secure : bool
        Whether every sitting so far drew secure noise.
    is_cut : bool
        Whether the last line was cut short: the run does not go on.
    sitting : int
        The number of the last sitting.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: int | None = None
        self._failed = False
        self.look_again()

    def look_again(self) -> None:
        """Read what others wrote since. Only before `begin`."""
        if self._file is not None:
            return
        self._header: dict[str, Any] | None = None
        self._entries, self.bounds, self.marks = list[LogEntry](), list[Bounded](), set[str]()
        self.is_secure, self.is_cut, self.sitting = True, False, 0
        data = _bytes_of(self.path)
        *lines, last = data.split(b"\n")
        if not lines and MAGIC[: len(last)] == last[: len(MAGIC)]:
            return  # the header is on the disk before anything is released: here nothing was
        wrong = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
        try:
            header, *rest = map(json.loads, lines)
            _whole((header["format"], header["version"]) == (FORMAT, FORMAT_VERSION))
            self.is_secure, self.is_cut = header.pop("secure") is True, last != b""
            Promise.from_dict(header["promise"])
            for values in rest:
                self._take(values)
        except PrivacyError:
            raise
        except (FairveilError, *wrong) as error:
            raise _refused(*_DAMAGED) from error
        self._header = header

    def _take(self, values: dict[str, Any]) -> None:
        """One line after the header."""
        if "sitting" in values:
            self.sitting = int(values["sitting"])
            self.is_secure = self.is_secure and values["secure"] is True
        elif "bound" in values:
            self.bounds.append(Bounded(**values["bound"]))
        elif "mark" in values:
            self.marks.add(str(values["mark"]))
        else:
            entry, after = LogEntry.from_line(values), [one.number for one in self._entries[-1:]]
            _whole(entry.number >= self.sitting * SITTING and [entry.number] > after)
            self._entries.append(entry)

    @property
    def is_new(self) -> bool:
        """Whether nothing was written yet."""
        return self._header is None

    @property
    def entries(self) -> tuple[LogEntry, ...]:
        """Every answer so far, of all sittings."""
        return tuple(self._entries)

    @property
    def ledger(self) -> tuple[str, str] | None:
        """The data set of the ledger that the run is charged in, and its spend there."""
        paid = (mark.removeprefix(f"{PAID} ") for mark in self.marks if mark.startswith(f"{PAID} "))
        return next(((one.rpartition(" ")[0], one.rpartition(" ")[2]) for one in paid), None)

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
            fix = "Give each curator a journal of its own."
            raise _refused("one that nobody writes", "one in use", fix)
        if not promise.is_private:
            fix = "Leave the checkpoint out, or give a finite epsilon: exact answers are not kept."
            raise _refused("a private run, whose answers are noisy", "epsilon=inf", fix)
        header = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "promise": promise.to_dict(),
            "plan": None if plan is None else to_json_dict(plan),
            "cap": None if cap is None else cap.to_dict(),
            "rows": rows,
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError as error:
            fix = "Choose another folder."
            raise _refused("a place that can be written to", str(error), fix) from error
        try:
            _lock(file)
            self.look_again()  # it is ours only now
            self._check(header)
            sitting = 0 if self.is_new else self.sitting + 1
            if agreed is not None:
                agreed(sitting)
            if self.is_new:
                # A head that was cut short is no journal yet: nothing was released under it.
                os.ftruncate(file, 0)
                _write(file, {**header, "secure": secure})
                _sync_folder(self.path.parent)
            else:
                _write(file, {"sitting": sitting, "secure": secure})
        except BaseException:
            os.close(file)
            raise
        self._header, self.sitting, self.is_secure = header, sitting, self.is_secure and secure
        self._file, self._failed = file, False
        return sitting * SITTING

    def _check(self, header: dict[str, Any]) -> None:
        """The same promise, plan, filter and public number of rows as before, and whole lines."""
        if self._header is None:
            return
        words = {"promise": "promise", "plan": "plan", "cap": "filter", "rows": "number of rows"}
        for name, word in words.items():
            if header[name] != self._header[name]:
                fix = f"Make the curator with the {word} that the run began with, or begin another"
                raise _refused(f"one of this {word}", f"one of another {word}", f"{fix} journal.")
        if self.is_cut:
            fix = "An answer may be lost, which is not drawn anew: the run cannot go on, and stays "
            fix += "charged whole. Begin another with what is left of the budget."
            raise _refused("whole lines", "one that was cut short", fix)

    def __call__(self, entry: LogEntry) -> None:
        """Write an entry down, for good: called before its answer is returned."""
        self._append(entry.to_line())
        self._entries.append(entry)

    def state(self, bound: Bounded) -> None:
        """Write a sensitivity down. It is on the disk when the next answer is."""
        self._append({"bound": asdict(bound)}, sync=False)
        self.bounds.append(bound)

    def mark(self, name: str, *, sync: bool = False) -> None:
        """Write down what the statement must say, once. It is on the disk when the next answer is;
        with `sync` now."""
        if name not in self.marks:
            self._append({"mark": name}, sync=sync)
            self.marks.add(name)

    def mark_ledger(self, dataset: str, spend: str) -> None:
        """Write down in which ledger the run is charged: at once, or a run that dies before its
        first answer is charged twice."""
        self.mark(f"{PAID} {dataset} {spend}", sync=True)

    def _append(self, line: dict[str, Any], *, sync: bool = True) -> None:
        if self._file is None or self._failed:
            got = "one whose last line could not be written" if self._failed else "a closed one"
            fix = "Give it to a new Curator: earlier=Journal(path)."
            raise _refused("one that can be written", got, fix)
        try:
            _write(self._file, line, sync=sync)
        except BaseException:
            self._failed = True  # half a line may be there: nothing may follow it
            raise

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.close()


def _bytes_of(path: Path) -> bytes:
    """A plain file's bytes; none where there is no file."""
    try:
        if not path.exists():
            return b""
        if not path.is_file():  # opening another kind may wait for ever
            raise _refused("a plain file", "another kind of file", REMEDY)
        if (size := path.stat().st_size) > LARGEST:
            raise _refused(f"at most {LARGEST} bytes", f"{size} bytes", REMEDY)
        return path.read_bytes()
    except OSError as error:
        raise _refused("a file that can be read", error.strerror or "another", REMEDY) from None


_DAMAGED = ("a journal as it was written", "another file, or one that was changed", REMEDY)


def _refused(expected: str, got: str, remedy: str) -> PrivacyError:
    return PrivacyError.expected(expected, of="journal", got=got, remedy=remedy)


def _whole(holds: bool) -> None:
    if not holds:
        raise _refused(*_DAMAGED)


def _write(file: int, line: dict[str, Any], *, sync: bool = True) -> None:
    data = (json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n").encode()
    while data:
        data = data[os.write(file, data) :]
    if sync:
        os.fsync(file)


def _lock(file: int) -> None:
    """One writer at a time: two would each follow the plan, and release it twice."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fix = "Let the other run end, or close its curator."
            raise _refused("one that nobody writes", "one in use", fix) from None


def _sync_folder(folder: Path) -> None:
    """A new file's name is on the disk only when its folder is. Not every system can open a
    folder."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
