"""A long fit that can be killed and go on: the state of a search in a folder, beside the journal of
what was released.

The state is made of released answers, so it may lie on a disk as they may. The journal
(`curator.journal`) is written at every answer, the state every so many rounds: what was released
between the last state and a crash stays charged, and those rounds are lost, not done again. Nothing
is pickled: arrays are an npz file, the rest is JSON, and each is there whole or not at all.

Guarantees (tests/learning/test_learning_checkpoint.py):
1. A run that was killed and went on has the plan as its log and the plan's price; no event of it
   was released twice.
2. A state that was changed, or is of another search, is refused before anything is written or
   asked.
3. A folder whose run has finished takes no other run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .. import _checks
from .._json import Document, Node
from .._reading import MIB, read_bytes
from ..curator import Journal, LogEntry
from ..errors import ChecksumError, FairveilError, InputError, PrivacyError
from ..models import npz

FORMAT = "fairveil checkpoint"
FORMAT_VERSION = 1
FIELDS = (
    "format",
    "version",
    "search",
    "round",
    "entries",
    "finished",
    "arrays",
    "values",
    "checksum",
)
LARGEST_STATE = 256 * MIB
BEFORE, ROUND, AFTER = "before the first round", "a round", "after the last round"
BESIDE = "a model to compare with"
"""Why a search asks: the purposes in the log."""
Value = npt.NDArray[Any] | float | int | str


@dataclass(frozen=True, eq=False)
class Saved:
    """A state as it was saved: after how many rounds, and after how many entries of the log."""

    search: str
    round: int
    entries: int
    finished: bool
    values: Mapping[str, Value]


class Checkpoint:
    """The folder of one run. Give its `journal` to the curator, and itself to `descend`:

        checkpoint = Checkpoint("fit/", every=20)
        curator = Curator(rows, promise, plan=search.plan, earlier=checkpoint.journal)
        descend(curator, search, checkpoint=checkpoint)

    The same lines begin the run, and continue with it after a crash. `every`: rounds between two
    states.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int = 10) -> None:
        self.folder = folder_of(folder)
        self.every = _checks.whole(at_least=1, every=every)
        self.saved = _read(self.folder)
        if self.saved is not None and self.saved.finished:
            remedy = (
                "Its result was handed out. Choose another folder, or remove this one once its "
                "statement is kept."
            )
            raise InputError.expected(
                "a run to resume, or none", of="checkpoint", got="a finished one", remedy=remedy
            )
        self.journal = Journal(self.folder / "journal.jsonl")

    def require(self, search: str) -> None:
        """An error where the folder holds the state of another search; nothing is written."""
        if self.saved is not None and self.saved.search != search:
            remedy = (
                "Give the folder to the search that it is of, with all its choices, or choose "
                "another folder."
            )
            got = f"another of its choices or its kind: {search}"
            raise InputError.expected(
                f"the search {self.saved.search}", of="checkpoint", got=got, remedy=remedy
            )

    def resume(
        self, search: str, entries: Sequence[LogEntry], *, private: bool
    ) -> tuple[Mapping[str, Value], int] | None:
        """The values to resume, and the round at which: later than they were saved, by the
        rounds lost. None: a fresh run.

        `entries`: the log. An error where what was lost cannot be done without.
        """
        saved = self.saved
        if saved is None and not entries:
            return None
        if saved is None:
            raise _lost(
                "a state, saved before the first round", "answers released before it and no state"
            )
        self.require(search)
        if len(entries) < saved.entries:
            remedy = "Restore the whole folder from a copy: what was released must stay charged."
            got = f"{len(entries)} entries"
            raise PrivacyError.expected(
                f"at least {saved.entries} entries", of="journal", got=got, remedy=remedy
            )
        after = entries[saved.entries :]
        if any(entry.purpose == AFTER for entry in after):
            raise _lost(
                "a run whose last answer was not released",
                "one whose last answer was released and lost",
            )
        return {**saved.values, "frozen_at": saved.round}, saved.round + (
            len(after) if private else 0
        )

    def save(self, search: str, values: Mapping[str, Value], at: int, entries: int) -> None:
        """Keep a state, whole or not at all, in the place of the one before."""
        self.saved = Saved(search, at, entries, False, values)
        self._write(self.saved)

    def finish(self) -> None:
        """The result is about to be returned: the folder takes no other run."""
        assert self.saved is not None
        self.saved = Saved(self.saved.search, self.saved.round, self.saved.entries, True, {})
        self._write(self.saved)

    def _write(self, saved: Saved) -> None:
        arrays = {
            name: value for name, value in saved.values.items() if isinstance(value, np.ndarray)
        }
        packed = io.BytesIO()
        np.savez(
            packed, allow_pickle=False, **{f"v_{name}": value for name, value in arrays.items()}
        )
        data = packed.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        file = f"state-{saved.round:08d}-{digest[:12]}.npz"
        _durable(self.folder / file, data)
        state = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "search": saved.search,
            "round": saved.round,
            "entries": saved.entries,
            "finished": saved.finished,
            "arrays": {"file": file, "sha256": digest, "names": sorted(arrays)},
            "values": {
                name: _plain(value) for name, value in saved.values.items() if name not in arrays
            },
        }
        _durable(
            self.folder / "state.json",
            json.dumps({**state, "checksum": _checksum(state)}, indent=1).encode(),
        )
        for old in self.folder.glob("state-*.npz"):
            if old.name != file:
                with suppress(OSError):
                    old.unlink()


def folder_of(given: object) -> Path:
    """The folder of a run, which need not be there yet."""
    if given == "" or not isinstance(given, str | os.PathLike):
        remedy = "Name a folder of its own: 'fit/', for example."
        raise InputError.expected(
            "the path of a folder", of="checkpoint", got=repr(given), remedy=remedy
        )
    folder = Path(given)
    if next((place for place in (folder, *folder.parents) if place.exists()), Path()).is_file():
        remedy = "Name a folder, which is made where it is not there."
        raise InputError.expected("a folder", of="checkpoint", got=str(folder), remedy=remedy)
    return folder


def identity_of(search: object, *choices: object) -> str:
    """A class's name and a digest of the public choices that make its runs: arrays and plain
    values, in dataclasses or not."""
    return (
        f"{type(search).__qualname__} "
        f"{hashlib.sha256(repr([_told(choice) for choice in choices]).encode()).hexdigest()[:16]}"
    )


def _told(value: object) -> object:
    """Values as `repr` writes them in full."""
    if isinstance(value, np.ndarray):
        return value.shape, value.tolist()
    if sparse.issparse(value):
        return _told(value.toarray())  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        own = _checks.fields_of(value)
        return type(value).__qualname__, [(name, _told(one)) for name, one in own.items()]
    return value


def check_values(values: object) -> Mapping[str, Value]:
    """What `Search.freeze` gives: names, and arrays of numbers, numbers or words. `frozen_at` is
    the checkpoint's own."""
    if not isinstance(values, Mapping) or not all(_is_name(name) for name in values):
        remedy = "Return {'weights': weights, 'round': 3}, for example."
        raise InputError.expected(
            "values by names", of="freeze", got=type(values).__name__, remedy=remedy
        )
    for name, value in values.items():
        if not (
            value.dtype.kind in "biuf"
            if isinstance(value, np.ndarray)
            else isinstance(value, int | float | str | np.number)
        ):
            remedy = "A state on disk is plain: nothing is pickled."
            got = type(value).__name__
            raise InputError.expected(
                "an array of numbers, a number or a word", of=name, got=got, remedy=remedy
            )
    return values


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name.isidentifier() and name != "frozen_at"


def _plain(value: Value) -> Any:
    """JSON that is the same number again: a float as its hexadecimal digits, which have infinities
    and NaN."""
    if isinstance(value, str | bool | int):
        return value
    number = value.item() if isinstance(value, np.generic) else value
    return {"float": float(number).hex()} if isinstance(number, float) else number


def _read(folder: Path) -> Saved | None:
    """The state in a folder, if there is one; an error for one that was changed."""
    path = folder / "state.json"
    if not path.exists():
        return None
    try:
        state = Document(path.name, "").node(read_bytes(path, what="a state", most=LARGEST_STATE))
        checksum = state["checksum"].text()
        told = {
            name: value
            for name, value in state.only(FIELDS).mapping().items()
            if name != "checksum"
        }
        known = state["format"].value == FORMAT and state["version"].whole() == FORMAT_VERSION
        file = state["arrays"].only(("file", "sha256", "names"))["file"].text()
        if (
            not known
            or checksum != _checksum(told)
            or not re.fullmatch(r"state-[0-9a-f-]+\.npz", file)
        ):
            raise ValueError(path.name)
        data = read_bytes(folder / file, what="arrays", most=npz.LARGEST)
        if hashlib.sha256(data).hexdigest() != state["arrays"]["sha256"].text():
            raise ValueError(file)
        names = state["arrays"]["names"].texts()
        values: dict[str, Value] = {
            name: _value(state["values"][name]) for name in state["values"].mapping()
        }
        arrays = npz.read_undeclared(data, [f"v_{name}" for name in names], Document(file, ""))
        values |= {name: arrays[f"v_{name}"] for name in names}
        at, entries = state["round"].whole(), state["entries"].whole()
        return Saved(state["search"].text(), at, entries, state["finished"].truth(), values)
    except (FairveilError, OSError, ValueError, OverflowError) as error:
        remedy = "Restore the folder from a copy; what its journal holds stays charged."
        got = f"another ({error})"
        raise ChecksumError.expected(
            "a state as it was saved", of=str(folder), got=got, remedy=remedy
        ) from error


def _value(node: Node) -> Value:
    """A word, a number, or the hexadecimal digits of one."""
    if isinstance(node.value, dict):
        return float.fromhex(node.only(("float",))["float"].text())
    if not isinstance(node.value, str | bool | int | float):
        node.refuse("a number or a word", node.value)
    return node.value


def _checksum(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(
        json.dumps(state, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _durable(path: Path, data: bytes) -> None:
    """Write beside, flush to disk, rename: a reader, and whoever comes after a crash, sees the old
    file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _lost(expected: str, got: str) -> PrivacyError:
    remedy = (
        "This run cannot go on, and stays charged whole: its journal says what was released. Begin "
        "another in a new folder."
    )
    return PrivacyError.expected(expected, of="checkpoint", got=got, remedy=remedy)
