"""A budget of one data set that many fits share and that outlives them: every release is reserved
before a row is read, settled afterwards, and written down for good (docs/ledger.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .ledger import Balance as Balance
    from .ledger import Ledger as Ledger
    from .ledger import Spend as Spend
    from .ledger import already_charged as already_charged
    from .ledger import current as current
    from .ledger import given_ledger as given_ledger
    from .lines import Entry as Entry
    from .lines import Spent as Spent
    from .lines import Terms as Terms
    from .lines import findings as findings
    from .lines import statement_findings as statement_findings

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
