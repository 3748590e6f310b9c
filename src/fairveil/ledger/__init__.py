"""A budget of one data set that many fits share and that outlives them: every release is reserved
before a row is read, settled afterwards, and written down for good (docs/ledger.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .checks import findings as findings
    from .checks import statement_findings as statement_findings
    from .entries import Entry as Entry
    from .entries import Spent as Spent
    from .ledger import Ledger as Ledger
    from .ledger import Spend as Spend
    from .ledger import already_charged as already_charged
    from .ledger import current as current
    from .ledger import given_ledger as given_ledger
    from .page import Balance as Balance
    from .terms import Terms as Terms

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
