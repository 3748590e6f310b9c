"""The run of every fit: a curator for its plan, the search that asks it, and a folder from which a
killed one goes on.

Guarantee (tests/estimators/test_estimators_kept_fits.py):
1. A fit that was killed, wherever, and went on has the plan as its log and the plan's price, in a
   ledger, too; what it was told before, it is told again to the bit. One that ended gives the same
   model again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ...core.events import Event
from ...curator import Curator, Journal
from ...errors import InputError
from ...learning.descent import Progress
from .opened_fit import OpenedFit
from .progress import progress

Found = TypeVar("Found")
FILE = "answers.jsonl"


def run(
    opened: OpenedFit,
    plan: Event | None,
    title: str,
    search: Callable[[Curator, Progress | None], Found],
    journal: Journal | None = None,
) -> tuple[Found, Curator]:
    """What the search found, and the curator that it asked, whose run has ended. `title`: of the
    bar that shows progress."""
    with progress(title) as tick, opened.curator(plan, earlier=journal) as curator:
        return search(curator, tick), curator


def journal_in(folder: str | os.PathLike[str] | None) -> Journal | None:
    """The journal of a search that keeps its answers there; None: nothing is kept."""
    return None if folder is None else Journal(folder_of(folder) / FILE, answers=True)


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
