"""The blocks of a fit, on their way to the curator: held, read again at each pass, or in shards,
which change them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from ...core.extra.sharded import Change
from ...facts import RowBlock, RowSource
from ...facts.rows import held_blocks, traits_of


class Blocks(Sequence[RowBlock]):
    """Blocks that are changed one by one.

    `of` a source: its blocks are held, in memory or as views of a file; those of one that
    `is_streamed` are read, and changed, at every pass; those of one that `is_sharded` are not here,
    and `changes` travel to them.
    """

    def __init__(
        self, held: Iterable[RowBlock] | None, source: Any = None, changes: tuple[Change, ...] = ()
    ) -> None:
        self._held = None if held is None else list(held)
        self.source, self.changes = source, changes

    @staticmethod
    def of(source: RowSource) -> Blocks:
        """All blocks of a source of rows."""
        away = traits_of(source).is_streamed or is_sharded(source)
        return Blocks(None, source) if away else Blocks(held_blocks(source), source)

    @property
    def are_sharded(self) -> bool:
        """Whether they are in shards: then there is none to look at."""
        return is_sharded(self.source)

    @property
    def are_streamed(self) -> bool:
        """Whether they are read again at each pass."""
        return self._held is None

    def then(self, change: Callable[[RowBlock], RowBlock]) -> Blocks:
        """The same, each changed so."""
        if self._held is not None:
            return Blocks(map(change, self._held), self.source)
        return Blocks(None, self.source, (*self.changes, change))

    def __iter__(self) -> Iterator[RowBlock]:
        if self._held is not None:
            yield from self._held
        elif not self.are_sharded:
            for block in self.source.blocks():
                for change in self.changes:
                    block = change(block)
                yield block

    def __len__(self) -> int:
        return len(self._held) if self._held is not None else sum(1 for _ in self)

    @overload
    def __getitem__(self, at: int) -> RowBlock: ...
    @overload
    def __getitem__(self, at: slice) -> list[RowBlock]: ...
    def __getitem__(self, at: int | slice) -> RowBlock | list[RowBlock]:
        if isinstance(at, slice):
            return list(itertools.islice(self, at.start, at.stop, at.step))
        return next(itertools.islice(self, at, None))


def is_sharded(source: object) -> bool:
    """Whether rows are in shards: other processes, other machines."""
    return traits_of(source).is_sharded
