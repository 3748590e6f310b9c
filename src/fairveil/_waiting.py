"""A line of words on standard error while something takes long: after two seconds, at a terminal
only, gone before all else is written. A bar of rounds (`estimators.progress`) takes its place while
one is shown.

>>> with waiting("Reading") as say:
...     say("Fitting")
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 2.0  # seconds before it is shown
EVERY = 0.5  # seconds between two pictures of it
CLEAR = "\r\x1b[K"


class Line:
    """What is shown of one command; `held`: how many bars stand in its place."""

    def __init__(self, stream: TextIO, words: str) -> None:
        self.words, self.held = words, 0
        self._stream, self._since, self._shown = stream, time.monotonic(), False
        self._lock = threading.Lock()

    def draw(self) -> None:
        """Show it, if it is time."""
        seconds = time.monotonic() - self._since
        with self._lock:
            if seconds >= PATIENCE and not self.held:
                self._stream.write(f"{CLEAR}{self.words} ... {seconds:.0f} s")
                self._stream.flush()
                self._shown = True

    def hide(self) -> None:
        """Take it away, until it is drawn again."""
        with self._lock:
            if self._shown:
                self._stream.write(CLEAR)
                self._stream.flush()
                self._shown = False


_current: list[Line] = []


@contextmanager
def waiting(words: str) -> Iterator[Callable[[str], None]]:
    """Around what may take long; what it gives changes the words."""
    stream = sys.stderr
    if not stream.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda _: None
        return
    line, done = Line(stream, words), threading.Event()

    def keep() -> None:
        while not done.wait(EVERY):
            line.draw()

    def say(other: str) -> None:
        line.words = other

    thread = threading.Thread(target=keep, name="fairveil-waiting", daemon=True)
    with replaced():  # one line at a time: the innermost
        _current.append(line)
        thread.start()
        try:
            yield say
        finally:
            done.set()
            thread.join()
            _current.remove(line)
            line.hide()


@contextmanager
def replaced() -> Iterator[None]:
    """While something else shows how far it is."""
    lines = list(_current)
    for line in lines:
        line.held += 1
        line.hide()
    try:
        yield
    finally:
        for line in lines:
            line.held -= 1
