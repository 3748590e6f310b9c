"""What was released, in order: the fact beside the plan's intention."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ...core.cost import covers
from ...core.events import Event, compose, spelled_out
from ...core.promise import Neighbours
from ...errors import PrivacyError
from .given import Given


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


class Log:
    """An append-only list of entries. `journal` is called with each new one before its answer is
    returned."""

    def __init__(
        self, journal: Callable[[LogEntry], None] | None = None, earlier: Iterable[LogEntry] = ()
    ) -> None:
        self._entries: list[LogEntry] = list(earlier)
        self._journal = journal

    def append(self, entry: LogEntry) -> None:
        """Write an entry down; durably first, if there is a journal."""
        if self._journal is not None:
            self._journal(entry)
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
        at = next(
            (i for i, (a, b) in pairs if not covers(a, b, neighbours)), min(len(planned), len(done))
        )
        if at < max(len(planned), len(done)):
            raise PrivacyError.expected(
                f"the plan's {len(planned)} events",
                of="log",
                got=f"{len(done)} events, which part from the plan at number {at}",
                remedy="A plan is fixed in advance: account for what was done instead.",
            )
