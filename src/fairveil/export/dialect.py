"""A language in which one row is computed: how it writes literals, choices and columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from .program import NumberColumn, WordColumn

IN_A_ROW = 100
"""Terms of a sum that stand in a row: more are put into brackets, since databases bound how deep an
expression is."""


def plus(parts: Sequence[str]) -> str:
    """A sum.

    >>> plus(["a", "b"])
    'a + b'
    """
    if len(parts) <= IN_A_ROW:
        return " + ".join(parts)
    return " + ".join(
        f"({plus(parts[at : at + IN_A_ROW])})" for at in range(0, len(parts), IN_A_ROW)
    )


class Dialect(ABC):
    """A language. Abstract. Every method gives the text of an expression."""

    @abstractmethod
    def number(self, value: float) -> str:
        """A literal."""

    @abstractmethod
    def when(self, condition: str, then: str, otherwise: str) -> str:
        """One of two."""

    @abstractmethod
    def at(self, code: str, values: Sequence[float]) -> str:
        """The value at the place that a code names."""

    @abstractmethod
    def exp(self, of: str) -> str:
        """e to the power."""

    @abstractmethod
    def log(self, of: str) -> str:
        """The natural logarithm."""

    @abstractmethod
    def both(self, one: str, other: str) -> str:
        """Both conditions."""

    @abstractmethod
    def coded_number(self, column: NumberColumn) -> str:
        """The number that came, with what stands in for a missing one, inside its bounds; refused
        rows are marked."""

    @abstractmethod
    def coded_word(self, column: WordColumn) -> str:
        """The code of a word; refused rows are marked."""

    @abstractmethod
    def given(self, name: str) -> str:
        """A number that is no column of the table: refused where it is missing."""

    @abstractmethod
    def only(self, value: str, condition: str) -> str:
        """A value, refused where a condition does not hold."""

    @abstractmethod
    def finite(self, score: str) -> str:
        """A score, refused where it is not finite."""
