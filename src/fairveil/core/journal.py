"""The log of a run, in memory and on disk: what was released is written down for good before
anybody sees it, so a run that was killed can go on.

One line of JSON an answer, after a header with promise, plan and filter. Other lines begin with a
word of `AHEAD`: a stated bound, a mark that the statement must carry, another sitting. Only public
values: events, names, bounds, and with `answers=True` the noisy answers themselves, as they were
released; never a row, never an exact answer about what is protected.

Where answers are kept a run that was killed begins anew, asks the same, and is given again what was
released, at no further price: it asks the rows only what was not asked yet.

Guarantees (tests/curator/test_curator_journal.py)
    1. A line is written, flushed and on the disk before its answer is returned; where that fails,
       there is no answer.
    2. A line of an answer that a crash cut short ends the run, which stays charged: the answer may
       have been seen. Any other line that was cut short is taken away.
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
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from . import checks
from .cost import covers
from .errors import FairveilError, PrivacyError, need
from .events import Event, compose, from_dict, spelled_out, to_json_dict
from .filters import Filter
from .layout import Floats
from .promise import Neighbours, Promise

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

FORMAT, FORMAT_VERSION = "fairveil journal", 2
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
AHEAD = ("bound", "mark", "sitting")


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


@dataclass(frozen=True, eq=False)
class Given:
    """What was released: a digest of what was asked, and the arrays that were returned."""

    asked: str
    arrays: tuple[npt.NDArray[Any], ...]

    @staticmethod
    def of(asked: str, answers: Sequence[Floats] | int) -> Given:
        """Answers, or the index that was chosen."""
        if isinstance(answers, int):
            return Given(asked, (np.array(answers, "<i8"),))
        return Given(asked, tuple(np.array(array, "<f8") for array in answers))

    @property
    def answers(self) -> list[Floats]:
        """Arrays of the caller's own, as they were returned."""
        return [array.astype(np.float64) for array in self.arrays]

    @property
    def chosen(self) -> int:
        """The index that was chosen."""
        return int(self.arrays[0])


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
    """One answer: its number, its one event, what was asked, of which rows, and why; itself, where
    the journal keeps it."""

    number: int
    event: Event
    questions: tuple[str, ...]
    batch: str
    purpose: str = ""
    given: Given | None = field(default=None, compare=False, repr=False)

    def to_line(self) -> dict[str, Any]:
        """Plain JSON values."""
        line = {name: getattr(self, name) for name in ("number", "purpose", "batch")}
        line = {"event": self.event.to_dict(), **line, "questions": list(self.questions)}
        if self.given is not None:
            packed = [
                [a.dtype.str, list(a.shape), base64.b64encode(a.tobytes()).decode("ascii")]
                for a in self.given.arrays
            ]
            line |= {"asked": self.given.asked, "given": packed}
        return line

    @staticmethod
    def from_line(values: Mapping[str, Any]) -> LogEntry:
        """Read back; a `ValueError`, for example, where that cannot be."""

        def array(kind: str, shape: list[int], data: str) -> npt.NDArray[Any]:
            if kind not in ("<f8", "<i8"):
                raise ValueError(kind)
            return np.frombuffer(base64.b64decode(data, validate=True), kind).reshape(shape)

        event, number = from_dict(values["event"]), values["number"]
        # what showed nothing of anybody is not written
        _whole(0 < sum(1 for _ in islice(spelled_out(event), MOST_EVENTS + 1)) <= MOST_EVENTS)
        _whole(type(number) is int)
        given = None
        if "given" in values:
            arrays = tuple(array(*packed) for packed in values["given"])
            given = Given(str(values["asked"]), arrays)
        words = (tuple(values["questions"]), values["batch"], values["purpose"])
        return LogEntry(number, event, *words, given)


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


@dataclass
class Written:
    """What a journal says. `cut`: the line of an answer was cut short; `size`: bytes up to what
    was cut short and released nothing; `is_ended`: the last line has its end; `keeps`: answers are
    there, too."""

    header: dict[str, Any] | None = None
    entries: list[LogEntry] = field(default_factory=list)
    bounds: list[Bounded] = field(default_factory=list)
    secure: bool = True
    marks: set[str] = field(default_factory=set)
    cut: bool = False
    size: int | None = None
    is_ended: bool = True
    keeps: bool = False
    sitting: int = 0

    def take(self, values: dict[str, Any] | None) -> None:
        """Read one line after the header."""
        _whole(values is not None)
        assert values is not None
        if "sitting" in values:
            self.sitting = int(values["sitting"])
            self.secure = self.secure and values["secure"] is True
        elif "bound" in values:
            self.bounds.append(Bounded(**values["bound"]))
        elif "mark" in values:
            self.marks.add(values["mark"])
        else:
            entry, after = LogEntry.from_line(values), [one.number + 1 for one in self.entries[-1:]]
            _whole(entry.number >= max(self.sitting * SITTING, *after, 0))
            self.entries.append(entry)


def read(path: Path) -> Written:
    """What a file says; nothing, where there is none or a crash came before its header was
    whole."""
    if not path.exists():
        return Written()
    data = _bytes_of(path)
    first, newline, rest = data.partition(b"\n")
    if not newline and MAGIC[: len(first)] == first[: len(MAGIC)]:
        return Written()  # the header is on the disk before anything is released: here nothing was
    wrong = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError)
    try:
        header = _json(first)
        _whole((header["format"], header["version"]) == (FORMAT, FORMAT_VERSION))
        secure, keeps = header.pop("secure") is True, header.pop("answers", False) is True
        Promise.from_dict(header["promise"])
        out = Written(header, secure=secure, keeps=keeps, is_ended=data.endswith(b"\n"))
        *lines, last = rest.split(b"\n")
        for line in lines:
            out.take(_parsed(line))
        if (values := _parsed(last)) is not None:  # only its end is missing
            out.take(values)
        elif last:
            begins = [f'{{"{name}"'.encode() for name in AHEAD]
            ahead = any(last.startswith(one) or one.startswith(last) for one in begins)
            out.cut, out.size = not ahead or len(last) < 3, len(data) - len(last)
        return out
    except PrivacyError:
        raise
    except (FairveilError, *wrong) as error:
        raise _refused(*_DAMAGED) from error


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A whole line's values; None for one that was cut short."""
    try:
        values = _json(line)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _json(line: bytes) -> Any:
    """A line's value: each name once, finite numbers; else a `ValueError`."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name that occurs twice")
        return found

    def finite(digits: str) -> float:
        number = float(digits)
        if not math.isfinite(number):
            raise ValueError(digits)
        return number

    hooks: Any = {"object_pairs_hook": once, "parse_float": finite, "parse_constant": finite}
    return json.loads(line.decode("utf-8"), **hooks)


def _bytes_of(path: Path) -> bytes:
    """A plain file's bytes: opening it never waits, and a size beyond all journals is refused."""
    ways = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(path, ways)
    except OSError as error:
        raise _refused("a file that can be read", error.strerror or "another", REMEDY) from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _refused("a plain file", "another kind of file", REMEDY)
        if found.st_size > LARGEST:
            raise _refused(f"at most {LARGEST} bytes", f"{found.st_size} bytes", REMEDY)
        with open(file, "rb", closefd=False) as opened:
            return opened.read()
    finally:
        os.close(file)


_DAMAGED = ("a journal as it was written", "another file, or one that was changed", REMEDY)


def _refused(expected: str, got: str, remedy: str) -> PrivacyError:
    return PrivacyError.expected(expected, of="journal", got=got, remedy=remedy)


def _whole(holds: bool) -> None:
    if not holds:
        raise _refused(*_DAMAGED)


class Journal:
    """A run's log in a file. `Curator(..., earlier=Journal(path))` begins it, or goes on where it
    ends.

    Making one reads and changes nothing; writing begins with the curator that it is given to, one
    at a time. `answers`: keep them, so that a run that was killed is given them again.
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
        """Every answer so far, of all sittings."""
        return tuple(self._written.entries)

    @property
    def bounds(self) -> tuple[Bounded, ...]:
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
        paid = (mark.removeprefix(f"{PAID} ") for mark in self.marks if mark.startswith(f"{PAID} "))
        return next(((one.rpartition(" ")[0], one.rpartition(" ")[2]) for one in paid), None)

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
            fix = "Give each curator a journal of its own."
            raise _refused("one that nobody writes", "one in use", fix)
        if self.keeps_answers and not promise.is_private:
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
        self._written = read(self.path)
        self._check(header)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o600 if self.keeps_answers else 0o644
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
        except OSError as error:
            fix = "Choose another folder."
            raise _refused("a place that can be written to", str(error), fix) from error
        try:
            _lock(file)
            # Another process may have written between the first look and the lock.
            self._written = written = read(self.path)  # it is ours only now
            self._check(header)
            sitting = 0 if self.is_new else written.sitting + 1
            if agreed is not None:
                agreed(sitting)
            if written.header is None:
                # A head that was cut short is no journal yet: nothing was released under it.
                os.ftruncate(file, 0)
                kept = {"answers": True} if self.keeps_answers else {}
                _write(file, {**header, "secure": secure, **kept})
                _sync_folder(self.path.parent)
                written.header = header
            else:
                if written.size is not None:  # what was cut short released nothing
                    os.ftruncate(file, written.size)
                elif not written.is_ended:
                    _write_all(file, b"\n")
                _write(file, {"sitting": sitting, "secure": secure})
                written.size, written.is_ended = None, True
            written.sitting = sitting
            written.secure = written.secure and secure
        except BaseException:
            os.close(file)
            raise
        self._file, self._failed = file, False
        return self._written.sitting * SITTING

    def __call__(self, entry: LogEntry) -> None:
        """Write an entry down, for good: called before its answer is returned."""
        self._append(entry.to_line())
        self._written.entries.append(entry)

    def state(self, bound: Bounded) -> None:
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
            got = "one whose last line could not be written" if self._failed else "a closed one"
            fix = "Give it to a new Curator: earlier=Journal(path)."
            raise _refused("one that can be written", got, fix)
        try:
            _write(self._file, line, sync=sync)
        except BaseException:
            self._failed = True  # half a line may be there: nothing may follow it
            raise

    def _check(self, header: dict[str, Any]) -> None:
        """The same promise, plan, filter and public number of rows as before, and whole lines."""
        if self._written.header is None:
            return
        words = {"promise": "promise", "plan": "plan", "cap": "filter", "rows": "number of rows"}
        for name, word in words.items():
            if header[name] != self._written.header[name]:
                fix = f"Make the curator with the {word} that the run began with, or begin another"
                raise _refused(f"one of this {word}", f"one of another {word}", f"{fix} journal.")
        if self._written.keeps is not self.keeps_answers:
            kinds = {True: "one that keeps answers", False: "one that keeps no answers"}
            fix = "Resume the run in the way in which it began, or begin another journal."
            raise _refused(kinds[self.keeps_answers], kinds[self._written.keeps], fix)
        if self._written.cut:
            fix = (
                "An answer was lost, which is not drawn anew: the run cannot go on, and stays "
                "charged whole. Begin another with what is left of the budget."
            )
            raise _refused("whole lines", "one that was cut short", fix)


def _write(file: int, line: dict[str, Any], *, sync: bool = True) -> None:
    _write_all(file, (json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n").encode())
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
