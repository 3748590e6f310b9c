"""Keyword validators; they are defined in the trusted room."""

from __future__ import annotations

from .core.checks import fields_of as fields_of
from .core.checks import fraction as fraction
from .core.checks import instance as instance
from .core.checks import named as named
from .core.checks import non_negative as non_negative
from .core.checks import normalise as normalise
from .core.checks import one_of as one_of
from .core.checks import positive as positive
from .core.checks import whole as whole
from .errors import InputError


def truth(**named: object) -> bool:
    """True or False, and not a number that stands for it."""
    ((name, value),) = named.items()
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy's own, too, without loading it
        remedy = f"Pass {name}=True or {name}=False."
        raise InputError.expected("True or False", of=name, got=value, remedy=remedy)
    return bool(value)
