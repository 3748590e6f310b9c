"""What a dask worker holds: one shard. Bytes in, bytes out; nothing is raised, for tracebacks carry
values, and dask logs."""

from __future__ import annotations

from ..curator.shards.serving import Worker
from ..curator.shards.shard import Failed, packed, unpacked


class ShardActor:
    """A shard as an actor."""

    def __init__(self, threads: int | None) -> None:
        self._worker = Worker(threads)

    def done(self, message: bytes) -> bytes:
        """The answers to some messages."""
        try:
            return packed(self._worker.done(unpacked(message)))
        except Exception:
            return packed([Failed()])
