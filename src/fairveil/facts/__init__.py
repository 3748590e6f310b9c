"""Ring 0: what is public. Schemas, groups as cells, the shape of coded rows."""

from .cells import GROUP_MODES, Cells, GroupMode
from .rows import RowBlock, RowLayout, RowSource

__all__ = ["GROUP_MODES", "Cells", "GroupMode", "RowBlock", "RowLayout", "RowSource"]
