"""Epsilons in words, as `show.numbers` has them."""

from __future__ import annotations

from ..show.numbers import at_least, at_most, promised

__all__ = ["at_least", "at_most", "promised"]
