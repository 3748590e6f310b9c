"""Shards in this process, one after another, each with all threads: for files that are read part by
part, and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..rows.sharded import Recipe
from .asking import Asking
from .shard import Shard, attempted


class ShardsHere(Asking):
    """The simplest way to ask shards."""

    def __init__(self, recipes: Sequence[Recipe], threads: int | None = None) -> None:
        self._shards: dict[int, Shard] = {}
        self._threads = threads
        super().__init__(recipes, patience=0.0)

    def close(self) -> None:
        """Forget the rows."""
        self._shards.clear()

    def _asked(self, wanted: dict[int, tuple[str, Any]]) -> dict[int, Any]:
        return {number: self._one(number, *one) for number, one in wanted.items()}

    def _one(self, number: int, what: str, value: object) -> Any:
        if what == "open":
            made = attempted(lambda: Shard(self.recipes[number], self._threads), shows=True)
            if not isinstance(made, Shard):
                return made
            self._shards[number] = made
            return attempted(made.opened, shows=True)
        shard = self._shards[number]
        return attempted(lambda: shard.done(what, value))
