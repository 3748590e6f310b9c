"""A budget shared by many fits, that outlives them: every release reserved, settled and written
down (docs/ledger.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._lazy import lazily

if TYPE_CHECKING:
    from .ambient import current as current
    from .ambient import ledger as ledger
    from .balance import Balance as Balance
    from .handle import Ledger as Ledger
    from .spending import Spend as Spend
    from .spends import Spent as Spent
    from .stores.entries import Entry as Entry
    from .terms import Terms as Terms

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
