"""Ctrl-C at a chosen step: an exception is raised where the interpreter would see a signal, between two steps of Python."""

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


def interrupted(action: Callable[[], object], at: int, *, opcodes: bool = False) -> Interrupted | None:
    """The action, interrupted before its line (or opcode) number `at` in the ledger's modules. None: it has no so many."""
    left = at

    def here(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == ("opcode" if opcodes else "line"):
            left -= 1
            if left < 0:
                raise Interrupted(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")
        return here

    def into(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PLACES):
            return None
        frame.f_trace_opcodes = opcodes
        return here

    before = sys.gettrace()
    sys.settrace(into)
    try:
        action()
    except Interrupted as error:
        return error
    finally:
        sys.settrace(before)
    return None
