"""The journal of one run, in the door's records: `Curator(..., earlier=RunJournal(records, run))`
begins it, or goes on.

A journal on disk writes an entry before its answer is returned. Here the entry waits until the
door writes it together with the reply, before that leaves: a server that is killed in between has
handed nothing out, and asks again.

Guarantees (tests/serving/test_serving_runs.py):
1. After a crash a run goes on behind the last reply that was written, with the plan's next event.
2. Its number of sitting rises before the ledger is told: a server killed in between can go on, and
   a copy of older records cannot.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from ...core.events import Event, from_json_dict
from ...core.filters import Filter
from ...core.promise import Promise
from ...curator import Journal, LogEntry
from ...curator.journal.lines import SITTING, Written, header_of
from ...statement.document import StatedBound
from .records import Records


class RunJournal(Journal):
    """A run's log in the records. `pending`: what was released and waits for its reply."""

    def __init__(self, records: Records, run: str) -> None:
        self.path = Path(run)
        self._records, self._run = records, run
        self.keeps_answers = False  # replies are in the records, with their releases
        self._file, self._failed = None, False
        self._written = self._read()
        self.pending: list[LogEntry] = []
        self.stated: list[StatedBound] = []
        self.marked: list[str] = []

    def _read(self) -> Written:
        found = self._records.run(self._run)
        assert found is not None
        out = Written(secure=found.secure)
        if found.header is None:
            return out
        header = json.loads(found.header)
        out.begin(header, None if header["plan"] is None else from_json_dict(header["plan"]))
        out.entries = self._records.entries(self._run)
        out.bounds = [
            StatedBound(**json.loads(words)) for words in self._records.notes(self._run, "bound")
        ]
        out.marks = set(self._records.notes(self._run, "mark"))
        out.sitting = found.sitting
        return out

    def look_again(self) -> None:
        """Read what is written now."""
        self._written = self._read()

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
        """Go on, or begin: guarantee 2."""
        header = header_of(promise, plan, cap, rows)
        self._written = self._read()
        self._check(header, promise)
        written, new = self._written, self.is_new
        sitting = 0 if new else written.sitting + 1
        if not new:
            self._records.put(self._run, sitting=sitting)
        if agreed is not None:
            # The number of the sitting is on the disk first: noise streams of two sittings never
            # agree.
            agreed(sitting)
        if new:
            written.begin(header, plan)
        written.secure = written.secure and secure
        told = {"header": json.dumps(header), "secure": int(written.secure), "sitting": sitting}
        self._records.put(self._run, **told)
        written.sitting = sitting
        return sitting * SITTING

    def __call__(self, entry: LogEntry) -> None:
        """The entry waits for its reply."""
        self.pending.append(entry)
        self._written.entries.append(entry)

    def state(self, bound: StatedBound) -> None:
        """A sensitivity waits for the reply."""
        self.stated.append(bound)
        self._written.bounds.append(bound)

    def mark(self, name: str, *, sync: bool = False) -> None:
        """A mark waits for the reply; with `sync` it is written now."""
        if name not in self._written.marks:
            self._written.marks.add(name)
            if sync:
                self._records.note(self._run, (), (name,))
            else:
                self.marked.append(name)

    def taken(self) -> tuple[list[LogEntry], list[StatedBound], list[str]]:
        """What waited, which the caller writes now."""
        found = self.pending, self.stated, self.marked
        self.pending, self.stated, self.marked = [], [], []
        return found

    def close(self) -> None:
        """Nothing is held."""
