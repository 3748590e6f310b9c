"""Synthetic data whose truth is known: the best classifier's rates and gaps, groups' lines and
losses, large streams, tints."""

from .classification import GroupedClasses, Rates
from .regression import GroupedLines
from .stream import ManyRows
from .tints import Tints

__all__ = ["GroupedClasses", "GroupedLines", "ManyRows", "Rates", "Tints"]
