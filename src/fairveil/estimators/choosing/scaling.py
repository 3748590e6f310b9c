"""When cuts and steps of fixed size meet numbers in units that nobody stated."""

from __future__ import annotations

from ..._types import TableLike
from ...core.promise import Promise
from ...facts import RowSource


def needs_scale(promise: Promise, schema: object, X: TableLike) -> bool:
    """Whether public numbers come in any units: no schema states them, and rows are not coded."""
    return (
        promise.protects == "sensitive_features" and schema is None and not isinstance(X, RowSource)
    )
