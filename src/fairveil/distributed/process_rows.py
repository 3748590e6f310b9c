"""Rows in worker processes of this machine."""

from __future__ import annotations

import os
import weakref

from ..curator.rows.sharded import Shards
from ..curator.shards.processes import PATIENCE, ShardsInProcesses
from ..data.files import PathLike
from ..data.store import Store
from ..facts.schema import Schema
from .source import ShardedSource


class ProcessRows(ShardedSource):
    """A coded store, a Parquet or CSV file, a folder or a pattern of these, read by `workers`
    processes: pass it to `fit`.

    `shards`: into how many parts it is cut at most, as many as workers unless you say otherwise;
    the answers are the same to the bit. `patience`: seconds after which a worker that has not
    answered is replaced. Use it as a context, or call `close()`.
    """

    def __init__(
        self,
        source: PathLike | Store,
        schema: Schema | None = None,
        *,
        workers: int | None = None,
        shards: int | None = None,
        threads: int | None = 1,
        patience: float = PATIENCE,
        sensitive_as_feature: bool = False,
        precision: str = "float64",
    ) -> None:
        self.workers = workers or os.cpu_count() or 1
        super().__init__(source, schema, shards or self.workers, sensitive_as_feature, precision)
        self._threads, self._patience = threads, patience
        self._open: weakref.WeakSet[ShardsInProcesses] = weakref.WeakSet()

    def shards(self) -> Shards:
        """Worker processes of their own for each fit: they end with the fit's rows."""
        found = ShardsInProcesses(
            self.pieces, self.workers, threads=self._threads, patience=self._patience
        )
        self._open.add(found)
        return found

    def close(self) -> None:
        """End all workers."""
        for found in list(self._open):
            found.close()
