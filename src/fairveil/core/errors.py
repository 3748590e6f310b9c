"""The errors of the trusted room: what was expected, of what, what came, and the way out.

A leak is an error, not a warning. A message never holds a value of a private row once a release has
begun; before any release the data holder sees what is wrong with the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self


class FairveilError(Exception):
    """The root of the family: catch this to catch everything that Fairveil raises on purpose."""

    @classmethod
    def expected(
        cls,
        expected: str,
        *,
        of: str,
        got: object,
        remedy: str,
        quote: bool = True,
        among: Iterable[object] | None = None,
    ) -> Self:
        """An error of this kind, in the words of `complaint`.

        >>> InputError.expected("a table", of="X", got=None, remedy="Pass a data frame.")
        InputError('X: expected a table, got None. Pass a data frame.')
        """
        text = complaint(expected=expected, of=of, got=got, remedy=remedy, quote=quote, among=among)
        return cls(text)


class InputError(FairveilError, ValueError):
    """An argument is not what was expected."""


class MissingBoundError(InputError):
    """A question needs a public bound that nobody stated."""


class PrivacyError(FairveilError, RuntimeError):
    """Going on would break, or could not honour, the promise."""


class BudgetError(PrivacyError):
    """The promise has no room for what was asked."""


class LedgerError(PrivacyError):
    """A ledger cannot be used so, or is not what it should be."""


class DataNotFoundError(FairveilError, FileNotFoundError):
    """A data set, file or database is not where it was looked for."""


LONGEST = 1000
"""Letters of what came that a message repeats: what came may be a whole file."""


class Complaint(str):
    """The text of an error that remembers its parts: a command line says the same in the shell's
    words.

    `expected`, `of`, `got`, `remedy` and `quote` are what `complaint` was given; `nearest`: names
    that are like the one that came.
    """

    expected: str
    of: str
    got: object
    remedy: str
    quote: bool
    nearest: tuple[str, ...]

    def __new__(cls, text: str) -> Complaint:
        return super().__new__(cls, text)


def complaint(
    *,
    expected: str,
    of: str,
    got: object,
    remedy: str,
    quote: bool = True,
    among: Iterable[object] | None = None,
) -> Complaint:
    """One sentence pattern for every error: expected what, of what, what came (`quote=False`: as it
    is), the way out. `among`: the names that there are; one that is like what came is suggested.

    >>> complaint(expected="a positive number", of="epsilon", got=-1, remedy="Pass epsilon=1.0.")
    'epsilon: expected a positive number, got -1. Pass epsilon=1.0.'
    >>> complaint(expected="a column", of="y", got="hird", remedy="Name one.", among=["hired"])
    "y: expected a column, got 'hird'. Did you mean 'hired'? Name one."
    """
    came = repr(got) if quote else str(got)
    came = came if len(came) <= LONGEST else f"{came[: LONGEST - 3]}..."
    near = () if among is None else nearest(got, among)
    suggested = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    text = Complaint(f"{of}: expected {expected}, got {came}. {suggested}{remedy}")
    text.expected, text.of, text.got, text.remedy = expected, of, got, remedy
    text.quote, text.nearest = quote, near
    return text


def nearest(got: object, among: Iterable[object]) -> tuple[str, ...]:
    """Names that are like what came, one for each name of it at most; none where nothing is.

    >>> nearest(["sexx", "zzz"], ["sex", "age"])
    ('sex',)
    """
    from difflib import get_close_matches

    known = [str(name) for name in among]
    folded = {name.casefold().replace("-", "_"): name for name in reversed(known)}
    found = []
    for word in got if isinstance(got, list | tuple) else [got]:
        if isinstance(word, str) and len(word) <= 200 and word not in known:
            name = word.partition(":")[0].casefold().replace("-", "_")
            found += get_close_matches(name, list(folded), n=1, cutoff=0.6)
    return tuple(dict.fromkeys(folded[name] for name in found))


def need(
    holds: object,
    expected: str,
    *,
    of: str,
    got: object,
    fix: str,
    error: type[FairveilError] = InputError,
    quote: bool = True,
) -> None:
    """Refuse in one sentence what does not hold. `quote`: whether `got` is shown as Python writes
    it.

    >>> need(2 > 1, "two above one", of="numbers", got=(2, 1), fix="Count again.")
    """
    if not holds:
        raise error.expected(expected, of=of, got=got, remedy=fix, quote=quote)
