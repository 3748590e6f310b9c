"""Ctrl-C at a chosen step: an exception is raised where the interpreter looks for signals."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import fairveil.privacy.ledger as ledgers

PLACES = (os.path.dirname(ledgers.__file__), contextlib.__file__)


class Interrupted(KeyboardInterrupt):
    """Raised by `interrupted`, and by nobody else."""


def interrupted(action: Callable[[], object], at: int) -> Interrupted | None:
    """The action, interrupted at the step number `at` in the ledger's modules. None: it has no so
    many.

    Steps are where a function begins and where compiled code has returned. Elsewhere no signal is
    seen: an exception between the last line of a `with lock:` and the end of the block would
    keep a lock that Ctrl-C cannot.
    """
    left, error = at, None

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal left, error
        if (
            event in ("call", "c_return")
            and error is None
            and frame.f_code.co_filename.startswith(PLACES)
        ):
            left -= 1
            if left < 0:
                error = Interrupted(
                    f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
                )
                raise error

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        action()
    except Interrupted as seen:
        return seen
    finally:
        sys.setprofile(before)
    return error
