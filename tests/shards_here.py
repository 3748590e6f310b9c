"""Shards in this process, one after another: the same path through curator and estimators as on a
cluster, without workers to start."""

from __future__ import annotations

from typing import Any

from fairveil.data.pieces import pieces_of
from fairveil.distributed.dask_rows import Asking, Shard
from fairveil.facts.rows import Traits


class WorkersHere:
    """The simplest way to ask shards."""

    def __init__(self, threads: int | None = None) -> None:
        self._shards: dict[int, Shard] = {}
        self._threads = threads

    def close(self) -> None:
        """Forget the rows."""
        self._shards.clear()

    def holds(self, number: int) -> bool:
        return number in self._shards

    def exchanged(self, lines: dict[int, list[Any]], patience: float) -> dict[int, list[Any]]:
        return {number: self._said(number, line) for number, line in lines.items()}

    def _said(self, number: int, lines: list[Any]) -> list[Any]:
        return self._shards.setdefault(number, Shard(self._threads)).said(lines)


class ShardsHere(Asking):
    """Shards asked so."""

    def __init__(self, recipes: Any, workers: Any = None) -> None:
        super().__init__(recipes, workers or WorkersHere(), patience=0.0)


class Here:
    """A source whose rows are in such shards."""

    traits = Traits(is_sharded=True)

    def __init__(self, source: Any, schema: Any = None, shards: int = 4) -> None:
        self.encoding, self.pieces = pieces_of(source, schema, shards=shards)
        self.layout = self.encoding.layout

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def blocks(self) -> Any:
        for piece in self.pieces:
            yield from piece.open().blocks()

    def shards(self) -> Any:
        return ShardsHere(self.pieces)
