"""How a command ends: which exit status, and what is said on standard error. Never a traceback, and
1 always means "no".

| status | |
|---|---|
| 0 | done |
| 1 | the answer is no: said by the command itself |
| 2 | refused: wrong input, or a file that cannot be read or written |
| 3 | spent, and not written where it was asked: see `rescue` |
| 70 | failed: an error of the library itself, or not enough memory |
| 130 | interrupted by Ctrl-C |
| 141 | whoever read standard output went away |

An error is two lines: what is wrong and where, and an option or a command that would do: see
`complaints`.

Guarantees (tests/cli/test_cli_ending.py):
1. What is unexpected is told by its type and its place in the library's code: its message could
   hold values of rows, and is shown only with FAIRVEIL_DEBUG set.
2. A stream that is closed, or cannot write a letter, ends no command: the letter is escaped.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from ..errors import FairveilError
from .complaints import Refused, Said, lines

REFUSED, FAILED, INTERRUPTED, NOBODY_READS = 2, 70, 130, 141
DEBUG = "FAIRVEIL_DEBUG"
ROOT = Path(__file__).parent.parent


class Ended(Exception):  # noqa: N818  # what happened
    """Leaves a command with this status and nothing said: no handler of the command line's
    framework may have its own view."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@contextmanager
def own_endings() -> Iterator[None]:
    """Keeps from the framework what it would end with status 1."""
    try:
        yield
    except BrokenPipeError:
        raise Ended(NOBODY_READS) from None
    except KeyboardInterrupt:
        raise Ended(INTERRUPTED) from None


def status_of(run: Callable[[], Any]) -> int:
    """Run the command line and say how it ended."""
    prepare_streams()
    try:
        with own_endings():
            status = _run(run)
            status = _flush() or status
    except Ended as ended:
        status = ended.status
    except (FairveilError, OSError) as error:
        status = _say(error, REFUSED)
    except MemoryError as error:
        hint = "take fewer rows or columns, or a machine with more memory"
        status = _say(Refused(Said("not enough memory", place_of(error), hint)), FAILED, error)
    except Exception as error:
        hint = f"please report it; {DEBUG}=1 shows the traceback, which may hold values of rows"
        status = _say(
            Refused(Said(f"internal error: {type(error).__name__}", place_of(error), hint)),
            FAILED,
            error,
        )
    if status != 0:
        _let_go(sys.stdout)
    return status


def _run(run: Callable[[], Any]) -> int:
    try:
        run()
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return int(left.code or 0)
        return _say(FairveilError(str(left.code)), REFUSED)
    return 0


def _flush() -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = "free space on that disk, or write to another place"
        return _say(Refused(Said(str(error.strerror), "standard output", hint)), REFUSED)
    return 0


def place_of(error: BaseException) -> str:
    """The innermost line of the library's own code on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame
        for frame in frames
        if Path(frame.filename).is_relative_to(ROOT) and frame.filename != __file__
    ]
    if not own:
        return "an unknown place"
    return f"{Path(own[-1].filename).relative_to(ROOT.parent).as_posix()}:{own[-1].lineno}"


def prepare_streams() -> None:
    """Streams that are there, and that write every letter in some way."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        # closed by whoever called: without this the next file that is opened would take its place
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            as_bytes = (
                stream.errors == "surrogateescape"
                and stream.encoding.lower().replace("-", "") == "utf8"
            )
            stream.reconfigure(errors=stream.errors if as_bytes else "backslashreplace")


def _say(wrong: BaseException, status: int, error: BaseException | None = None) -> int:
    """What is wrong and what would do, on standard error; nothing more can be done where that is
    gone, too."""
    with suppress(OSError, ValueError):
        print(*lines(wrong), sep="\n", file=sys.stderr)
        if error is not None and os.environ.get(DEBUG):
            traceback.print_exception(error, file=sys.stderr)
        sys.stderr.flush()
    return status


def _let_go(stream: TextIO) -> None:
    """What could not be written is not tried again when the interpreter ends, which would say so in
    its own words."""
    try:
        stream.flush()
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in (
            errno.EPIPE,
            errno.ENOSPC,
            errno.EBADF,
            errno.EIO,
            None,
        ):
            return
        with suppress(OSError, ValueError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
