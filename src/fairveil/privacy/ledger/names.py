"""Names that a ledger holds, checked: of data sets, and of sensitive columns."""

from __future__ import annotations

from collections.abc import Iterable

from ..._urls import without_password
from ...errors import InputError

LONGEST_NAME = 200


def checked_name(dataset: object) -> str:
    """A name that can be printed on one line. An address, which may hold a password, is none: it
    came in the wrong place."""
    if isinstance(dataset, str) and "://" in dataset:
        remedy = "Pass the address first, and then dataset='credit-2026', for example."
        got = without_password(dataset)
        raise InputError.expected("a name, and no address", of="dataset", got=got, remedy=remedy)
    if (
        isinstance(dataset, str)
        and 0 < len(dataset) <= LONGEST_NAME
        and dataset.isprintable()
        and dataset == dataset.strip()
    ):
        return dataset
    remedy = "Pass dataset='credit-2026', for example."
    expected = f"a name of at most {LONGEST_NAME} printable letters"
    raise InputError.expected(expected, of="dataset", got=dataset, remedy=remedy)


def checked_columns(columns: object) -> tuple[str, ...]:
    """Names of sensitive columns, at least one, sorted."""
    named = (
        [columns]
        if isinstance(columns, str)
        else list(columns)
        if isinstance(columns, Iterable)
        else []
    )
    if named and all(
        isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
        for name in named
    ):
        return tuple(sorted(set(named)))
    remedy = "Name the columns that are protected: ['sex'], for example."
    raise InputError.expected(
        "names of sensitive columns", of="columns", got=columns, remedy=remedy
    )
