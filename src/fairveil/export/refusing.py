"""What cannot be written in another language, and why."""

from __future__ import annotations

from ..errors import InputError


def refusal(
    got: str, remedy: str, *, expected: str = "a model that can be written in another language"
) -> InputError:
    """The error of a model that is not exported."""
    return InputError.expected(expected, of="model", got=got, remedy=remedy, quote=False)
