"""What all sources share whose rows are in shards: how they are coded, and the pieces that they are
cut into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

from ..curator.rows.sharded import Shards
from ..data.encoding import ByEncoding
from ..data.files import PathLike
from ..data.pieces import pieces_of
from ..data.store import Store
from ..facts.rows import RowBlock, Traits
from ..facts.schema import Schema


class ShardedSource(ByEncoding, ABC):
    """A `RowSource` whose rows are elsewhere: pass it to `fit`. Abstract."""

    def __init__(
        self,
        source: PathLike | Store,
        schema: Schema | None,
        shards: int,
        sensitive_as_feature: bool,
        precision: str,
    ) -> None:
        self._encoding, self.pieces = pieces_of(
            source,
            schema,
            shards=shards,
            sensitive_as_feature=sensitive_as_feature,
            precision=precision,
        )

    @property
    def traits(self) -> Traits:
        """What a fit must know of these rows."""
        return Traits(is_sharded=True)

    def blocks(self) -> Iterator[RowBlock]:
        """The rows, read in this process: for what is done with each row, such as predictions. A
        fit does not call it."""
        for piece in self.pieces:
            yield from piece.open().blocks()

    @abstractmethod
    def shards(self) -> Shards:
        """The shards at work, opened for one fit."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what works for this source."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.pieces)} shards)"
