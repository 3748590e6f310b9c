"""A run that a door holds in memory, and the words that records keep of how it ended."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from ...core.events import Event
from ...curator import Attached, AttachedCodes, Curator
from .data_sets import DataSet
from .run_journal import RunJournal

CLOSE, FINISH, FINISHED = "close", "finish", "finished"
KEPT_AFTER = 600.0
"""Seconds for which an ended run's curator is kept, for its statement."""
NEVER_BEGAN, REBOOTED = "never began", "the machine was started anew"
STOP = "to be stopped by the holder"
WHOLE = ", charged whole"


@dataclass(eq=False, repr=False)
class Run:
    """A run that is held in memory: its curator, and the lock that has one request at a time."""

    id: str
    token: str
    dataset: DataSet
    curator: Curator
    journal: RunJournal
    plan: Event
    handles: dict[int, Attached | AttachedCodes] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)
    ended: float | None = None
