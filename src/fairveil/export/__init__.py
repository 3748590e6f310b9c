"""Ring 5: finished models elsewhere: as SQL, and as steps of scikit-learn. Nothing here reads training
rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .sklearn_steps import to_sklearn as to_sklearn
    from .writing import export_sql as export_sql
    from .writing import sql_query as sql_query

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazily(__name__)
