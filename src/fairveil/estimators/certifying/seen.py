"""Which table an estimator was fitted to, as far as this process can tell: a certificate about the
same people says nothing.

Only the table's identity is remembered, weakly, beside the estimator and never in it: nothing of
the rows is kept or written. A copy of the table, a model from a file, and a subset by a mask are
not recognized.

Guarantees (tests/estimators/test_estimators_certify_seen.py):
1. What is refused is the object that was fitted to, or a block of its rows; rows beside it are not
   refused.
2. Neither table nor estimator is kept alive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn
from weakref import WeakKeyDictionary, ref

import numpy as np

from ..._types import TableLike
from ...data.elsewhere import Elsewhere
from ...errors import InputError


@dataclass(frozen=True)
class _Seen:
    """The table, or what owns its memory, and which bytes of that were fitted to; None: all of
    it."""

    owner: Callable[[], Any]
    bytes: tuple[int, int] | None


_SEEN: WeakKeyDictionary[Any, _Seen] = WeakKeyDictionary()
_ELSEWHERE: WeakKeyDictionary[Any, tuple[str, str, str | None, int]] = WeakKeyDictionary()
"""The same of another holder's rows: which data set, and which part of it."""


def remember(estimator: object, X: TableLike) -> None:
    """The estimator was fitted to this table."""
    if isinstance(X, Elsewhere):
        _ELSEWHERE[estimator] = X.identity
        _SEEN.pop(estimator, None)
        return
    _ELSEWHERE.pop(estimator, None)
    owner, part = _part_of(X)
    try:
        _SEEN[estimator] = _Seen(ref(owner), part)
    except TypeError:  # lists and mappings have no weak references
        _SEEN.pop(estimator, None)


def refuse(model: object, X: TableLike) -> None:
    """An error if the people set aside are some that the model was fitted to."""
    try:
        seen, of_holder = _SEEN.get(model), _ELSEWHERE.get(model)
    except TypeError:  # a model that cannot be a key
        return
    if isinstance(X, Elsewhere):
        if of_holder is not None and _overlap(of_holder, X.identity):
            _refuse()
        return
    if seen is None or X is None:
        return
    owner, part = _part_of(X)
    apart = (
        part is not None
        and seen.bytes is not None
        and (part[1] <= seen.bytes[0] or seen.bytes[1] <= part[0])
    )
    if seen.owner() is owner and (part is None) == (seen.bytes is None) and not apart:
        _refuse()


def _refuse() -> NoReturn:
    remedy = (
        "Set people aside before the fit; or give the constraint a confidence, and the fit sets "
        "them aside."
    )
    got = "rows that this model was fitted to"
    raise InputError.expected("people whom the model has not seen", of="X", got=got, remedy=remedy)


def _overlap(
    one: tuple[str, str, str | None, int], other: tuple[str, str, str | None, int]
) -> bool:
    """Whether two data sets elsewhere may have a person in common: all but the two parts of one
    division."""
    if one[:2] != other[:2]:
        return False
    return one[2] is None or one[2] != other[2] or one[3] == other[3]


def _part_of(X: TableLike) -> tuple[Any, tuple[int, int] | None]:
    """The owner of a table's memory, and the bytes of a block of whole rows; another view is an
    owner of its own."""
    if not isinstance(X, np.ndarray) or not X.flags.c_contiguous:
        return X, None
    owner: Any = X
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    start = int(X.__array_interface__["data"][0])
    return owner, (start, start + X.nbytes)
