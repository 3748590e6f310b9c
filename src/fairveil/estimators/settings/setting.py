"""What all settings are: frozen values that check themselves, written as they would be typed.

A class has the knobs that its methods read and no others, so that a value which nothing reads
cannot be passed. Knobs are given by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from ...errors import KindError, complaint

Kind = TypeVar("Kind", bound="type[Setting]")
UNCHECKED = "_unchecked"


class Setting:
    """A frozen value of knobs. Abstract. `widens`: a class whose values are taken in its place,
    where knobs agree."""

    widens: ClassVar[type[Setting] | None] = None

    def __post_init__(self) -> None:
        for name, check in self._rules().items():
            if getattr(self, name) is not None:
                check(getattr(self, name))

    def _rules(self) -> dict[str, Callable[[Any], object]]:
        """What each knob must be, where it is not None."""
        return {}

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in changed(self).items())
        return f"{type(self).__name__}({said})"


@dataclass_transform(frozen_default=True, kw_only_default=True)
def setting(cls: Kind) -> Kind:
    """A class decorator: a frozen dataclass of knobs, and an error that names a knob which is not
    there."""
    made: Any = dataclass(frozen=True, kw_only=True, repr=False)(cls)
    plain, known = made.__init__, tuple(one.name for one in fields(made))

    @wraps(plain)
    def init(self: object, **given: object) -> None:
        for name in given:
            if name not in known:
                remedy = f"It has {', '.join(known)}."
                text = complaint(
                    expected="a knob that it reads",
                    of=made.__name__,
                    got=name,
                    remedy=remedy,
                    among=known,
                )
                raise KindError(text)
        plain(self, **given)

    made.__init__ = init
    return made  # type: ignore[no-any-return]


def unchecked(given: Setting, **changed_to: object) -> Any:
    """A frozen value with other numbers, checked by the fit that reads it: so names of earlier
    versions always were."""
    made = object.__new__(type(given))
    vars(made).update({**vars(given), **changed_to, UNCHECKED: True})
    return made


def checked(given: Setting) -> Setting:
    """The value; an error if it was not checked yet, and cannot be meant."""
    if UNCHECKED in vars(given):
        type(given)(**{name: value for name, value in vars(given).items() if name != UNCHECKED})
    return given


def strange(given: Setting) -> dict[str, Any]:
    """What an unchecked value was given beside its knobs."""
    return {
        name: value
        for name, value in vars(given).items()
        if name not in (*knobs(type(given)), UNCHECKED)
    }


def knobs(kind: type[Setting]) -> dict[str, Any]:
    """Names and defaults of the knobs of a class."""
    return {one.name: one.default for one in fields(kind)}  # type: ignore[arg-type]


def values(given: Setting) -> dict[str, Any]:
    """All knobs, by name."""
    return {name: getattr(given, name) for name in knobs(type(given))}


def changed(given: Setting) -> dict[str, Any]:
    """The knobs that are not their defaults."""
    usual = knobs(type(given))
    return {name: value for name, value in values(given).items() if not same(value, usual[name])}


def same(one: object, other: object) -> bool:
    """Whether two values of a knob are the same: plain ones by their value, others by being one."""
    kinds = int | float | str | np.generic
    return one is other or (
        isinstance(one, kinds) and isinstance(other, kinds) and bool(one == other)
    )
