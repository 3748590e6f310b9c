"""Ring 4: data in, honestly. Encoding by a schema alone, files and databases, made-up people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ..facts.columns import Boolean as Boolean
    from ..facts.columns import Category as Category
    from ..facts.columns import Ignored as Ignored
    from ..facts.columns import Number as Number
    from ..facts.schema import Schema as Schema
    from . import synthetic as synthetic
    from .encoding import Encoding as Encoding
    from .joined import load_joined as load_joined
    from .opening import encode as encode
    from .opening import open as open
    from .rows import EncodedRows as EncodedRows
    from .store import open_store as open_store
    from .store import write_store as write_store

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
