"""What a worker does with the shards that it holds, and what two processes must have in common."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from .memory import keep_memory
from .shard import Failed, Shard, attempted, packed, unpacked

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

    def answered(self, message: bytes) -> bytes:
        """The same as bytes. Nothing is raised: tracebacks carry values, and engines log them."""
        try:
            return packed(self.done(unpacked(message)))
        except Exception:
            return packed([Failed()])

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
