"""A progress bar for fits that take long: after two seconds, on a terminal only, never on a
pipe. Before its first round a fit may compile its loops, once for all fits on a machine, and says
so."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..._waiting import replaced, waiting

PATIENCE = 2.0  # seconds before a bar is shown
EVERY = 0.1  # seconds between two pictures of it
COMPILING = "Compiling loops, once: later fits load them from the disk"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """What a search reports its rounds to; None where nobody would see it. The bar is gone
    afterwards, in every case.

    >>> with progress("Fitting") as tick:
    ...     tick is None or tick(1, 120)
    True
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(title)
    with waiting(title) as say, _compiling(title, say):
        try:
            yield bar.tick
        finally:
            bar.stop()


@contextmanager
def _compiling(title: str, say: Callable[[str], None]) -> Iterator[None]:
    """Inside, the waiting line says when loops are compiled, and not only loaded."""
    from numba.core import event

    class Heard(event.Listener):
        def on_start(self, event: Any) -> None:
            say(COMPILING)

        def on_end(self, event: Any) -> None:
            say(title)

    with event.install_listener("numba:compile", Heard()):
        yield


class _Bar:
    """Made by rich, loaded only when there is something to show."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._next = time.monotonic() + PATIENCE
        self._shown: Any = None
        self._task: Any = None
        self._aside = ExitStack()

    def tick(self, done: int, most: int) -> None:
        """A round was done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if self._shown is None:
            from rich.console import Console
            from rich.progress import Progress

            self._aside.enter_context(replaced())
            self._shown = Progress(console=Console(stderr=True), transient=True)
            self._task = self._shown.add_task(self._title, total=most)
            self._shown.start()
        self._shown.update(self._task, completed=done, total=most)

    def stop(self) -> None:
        """Take it away."""
        if self._shown is not None:
            self._shown.stop()
        self._aside.close()
