"""Ring 5: a curator behind a door. The holder serves data sets; analysts elsewhere fit models on
them, and see no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .client import RemoteData as RemoteData
    from .client import remote as remote

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
