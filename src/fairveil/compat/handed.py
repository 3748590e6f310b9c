"""A table as `fit` takes it, from other people's data sets."""

from __future__ import annotations

from typing import Any, NamedTuple


class Handed(NamedTuple):
    """`clf.fit(handed.X, handed.y, sensitive_features=handed.sensitive_features)`. It holds rows.

    `X`: a data frame of features; `y`: labels; `sensitive_features`: a data frame of the sensitive columns; `sample_weight`: or
    None, where all are 1.
    """

    X: Any
    y: Any
    sensitive_features: Any
    sample_weight: Any = None

    def __repr__(self) -> str:
        """Without the rows."""
        shape = getattr(self.X, "shape", "?")
        return f"Handed(X of shape {shape}, sensitive_features={list(self.sensitive_features)})"
