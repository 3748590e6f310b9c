"""What other libraries spent, as events of this accounting: opacus, dp_accounting and
jax_privacy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .documents import read_import as read_import
    from .dp_events import from_dp_event as from_dp_event
    from .imported import Imported as Imported
    from .opacus import from_opacus as from_opacus

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
