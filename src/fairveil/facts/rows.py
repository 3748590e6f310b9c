"""What rows look like, and where they come from (`core.layout`), and sources that a schema coded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..core.layout import PERSON_BY_PERSON as PERSON_BY_PERSON
from ..core.layout import RowBlock as RowBlock
from ..core.layout import RowLayout as RowLayout
from ..core.layout import RowSource as RowSource
from ..core.layout import Traits as Traits
from ..core.layout import held_blocks as held_blocks
from ..core.layout import traits_of as traits_of

if TYPE_CHECKING:
    from .schema import Schema


@runtime_checkable
class CodedSource(RowSource, Protocol):
    """A source whose rows were coded by a schema, which then states classes and groups."""

    @property
    def encoding(self) -> SchemaCoded:
        """How they were coded."""
        ...


class SchemaCoded(Protocol):
    """How a schema codes rows (`data.encoding.Encoding`)."""

    @property
    def schema(self) -> Schema:
        """The schema."""
        ...

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that are features."""
        ...


def schema_of(source: object) -> Schema | None:
    """The schema by which rows were coded; None where there was none, and of what is no source."""
    return source.encoding.schema if isinstance(source, CodedSource) else None
