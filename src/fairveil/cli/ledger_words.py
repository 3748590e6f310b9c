"""What was said to `fairveil ledger`: the address, the name, a range of lines; and what must not be
said together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from . import options

if TYPE_CHECKING:
    from ..ledger import Entry, Ledger

USUAL = 20
Value = TypeVar("Value")


def place_of_ledger(url: str | None) -> str:
    """The address that was said, or the one that stands in for it."""
    from ..errors import InputError

    place = options.ledger_address(url)
    if place is None:
        remedy = f"Name a file, postgresql://..., or set {options.LEDGER_VARIABLE}."
        raise InputError.expected("an address", of="URL", got=None, remedy=remedy)
    return place


def place_and_name(
    url: str | None, dataset: str | None, *, restoring: bool
) -> tuple[str, str | None]:
    """Where an address stands in, a single word is the name."""
    if (
        dataset is None
        and url is not None
        and not restoring
        and (stands_in := options.ledger_address(None)) is not None
    ):
        return stands_in, url
    return place_of_ledger(url), dataset


def opened(place: str, dataset: str | None) -> Ledger:
    from ..ledger import Ledger

    return Ledger.open(place, dataset, read_only=True)


def chosen(
    ledger: Ledger, last: int | None, first: int | None, limit: int | None, purpose: str | None
) -> list[Entry]:
    """The last ones, or those from a number on; of those that hold the words, where some were
    said."""
    from collections import deque
    from itertools import islice

    from ..errors import InputError

    given = {"--last": (last, 1), "--first": (first, 0), "--limit": (limit, 1)}
    for name, (value, least) in given.items():
        if value is not None and value < least:
            raise InputError.expected(
                f"at least {least}", of=name, got=value, remedy=f"Say {name} {max(least, 20)}."
            )
    if last is not None and (first is not None or limit is not None):
        remedy = "Say --last 20, or --first 100 --limit 20."
        raise InputError.expected(
            "no --first or --limit beside it", of="--last", got=last, remedy=remedy
        )
    wanted = (purpose or "").casefold()
    if first is not None or limit is not None:
        lines = ledger.history(first or 0, None if wanted else limit)
        return list(islice((line for line in lines if wanted in line.purpose.casefold()), limit))
    number = last or USUAL
    if wanted:
        return list(
            deque((line for line in ledger.history() if wanted in line.purpose.casefold()), number)
        )
    return list(ledger.history(max(0, ledger.balance().entries - number), number))


def require_nothing(given: dict[str, Any]) -> None:
    from ..errors import InputError

    for name, value in given.items():
        if value is not None:
            got, remedy = str(value), "Leave it out: the exported ledger says it."
            raise InputError.expected("nothing beside --from", of=name, got=got, remedy=remedy)


def said(name: str, value: Value | None) -> Value:
    from ..errors import InputError

    if value is None:
        remedy = "Say: fairveil ledger create budget.db census --epsilon 1 --delta 1e-6."
        raise InputError.expected("to be said", of=name, got=None, remedy=remedy)
    return value
