"""A worker process: reads requests from standard input, writes answers to standard output, and says
nothing else to anyone.

    python -c "from fairveil.curator.shards.serving import serve; serve()"

Guarantees (tests/curator/test_curator_shards.py):
1. Whatever is printed, warned of or raised here goes nowhere: both outputs that people read are
   closed before rows are opened.
2. It ends when the process that asks has ended.
"""

from __future__ import annotations

import hashlib
import os
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from .memory import keep_memory
from .shard import Failed, Shard, attempted, packed, unpacked

LENGTH = struct.Struct("<Q")
VERSION = "version"


@cache
def version() -> str:
    """What two processes must have in common to work on one fit: numpy, and the code that adds."""
    import numpy as np

    room = Path(__file__).parent.parent
    told = hashlib.blake2b(digest_size=8)
    for file in sorted(room.rglob("*.py")):
        # Integers are added across machines: code that differs by a line may clip or round
        # otherwise.
        told.update(file.relative_to(room).as_posix().encode() + file.read_bytes())
    return f"curator {told.hexdigest()}, numpy {np.__version__}"


class Worker:
    """The shards that one worker holds, wherever it runs."""

    def __init__(self, threads: int | None) -> None:
        keep_memory()
        self._threads = threads
        self._shards: dict[int, Shard] = {}

    def done(self, messages: list[tuple[int, str, Any]]) -> list[Any]:
        """What each message asked for, in turn: ("version", _), ("open", recipe), ("take", taking),
        ("read", reading), ("answer", request)."""
        return [self._one(*message) for message in messages]

    def _one(self, number: int, what: str, value: Any) -> Any:
        if what == VERSION:
            return version()
        if what == "open":
            made = attempted(lambda: Shard(value, self._threads), shows=True)
            if isinstance(made, Failed):
                return made
            self._shards[number] = made
            return attempted(made.opened, shows=True)
        shard = self._shards.get(number)
        if shard is None:
            return Failed()
        return attempted(lambda: shard.done(what, value))


def serve() -> None:
    """Answer until the other end is closed."""
    # Copies of both pipes; whatever prints to the usual descriptors afterwards reaches nobody.
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.tracebacklimit = 0
    threads = read(asked)
    worker = Worker(threads)
    while True:
        try:
            messages = read(asked)
        except (EOFError, OSError):
            return
        write(told, worker.done(messages))


def write(to: BinaryIO, value: object) -> None:
    """One message."""
    message = packed(value)
    to.write(LENGTH.pack(len(message)))
    to.write(message)
    to.flush()


def read(of: BinaryIO) -> Any:
    """The next message; `EOFError` where there is none any more."""
    return unpacked(_exactly(of, LENGTH.unpack(_exactly(of, LENGTH.size))[0]))


def _exactly(of: BinaryIO, count: int) -> bytes:
    found = of.read(count)
    if len(found) < count:
        raise EOFError
    return found
