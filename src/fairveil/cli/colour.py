"""Colour for people at a terminal: none where a stream is a pipe or a file, with NO_COLOR, or on a
terminal that has none.

https://no-color.org: NO_COLOR counts where it is set and not empty. TERM=dumb says that a terminal
shows no colours.
"""

from __future__ import annotations

import os
from typing import TextIO

END = "\x1b[0m"
STYLES = {
    "bad": "\x1b[1;31m",
    "good": "\x1b[1;32m",
    "unclear": "\x1b[1;33m",
    "hint": "\x1b[36m",
    "strong": "\x1b[1m",
}
VERDICTS = {
    "met": "good",
    "not met": "bad",
    "inconclusive": "unclear",
    "better": "good",
    "worse": "bad",
}


def allowed(stream: TextIO) -> bool:
    """Whether letters that go to this stream may have a colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, style: str, stream: TextIO) -> str:
    """The text in a style of `STYLES`, or as it is.

    >>> import io
    >>> painted("met", "good", io.StringIO())
    'met'
    """
    return f"{STYLES[style]}{text}{END}" if allowed(stream) else text


def verdict(word: str, stream: TextIO) -> str:
    """A word of a verdict in its colour."""
    return painted(word, VERDICTS[word], stream) if word in VERDICTS else word
