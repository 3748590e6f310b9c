"""Ring 0: what is public. Schemas, groups as cells, the shape of coded rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..core.layout import GROUP_MODES as GROUP_MODES
    from ..core.layout import Cells as Cells
    from ..core.layout import GroupMode as GroupMode
    from ..core.layout import RowLayout as RowLayout
    from .columns import Boolean as Boolean
    from .columns import Category as Category
    from .columns import Column as Column
    from .columns import Ignored as Ignored
    from .columns import Number as Number
    from .columns import Value as Value
    from .reports import Reports as Reports
    from .rows import RowBlock as RowBlock
    from .rows import RowSource as RowSource
    from .schema import Schema as Schema

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
