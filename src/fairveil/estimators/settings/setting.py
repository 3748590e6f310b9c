"""What all settings are: frozen values that check themselves, written as they would be typed; and
the mixin of the estimators that take them.

A class has the knobs that its methods read and no others, so that a value which nothing reads
cannot be passed. Knobs are given by name.

    SETTINGS = {"solver": (Descent,)}          # a parameter, and the classes that it takes, the usual one first

A search reaches `solver__rounds`: a settings value is frozen, so it is replaced. A parameter that
is None has the usual settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np

from ...errors import InputError, KindError, complaint
from ..words import extended

Kind = TypeVar("Kind", bound="type[Setting]")
Value = TypeVar("Value", bound="Setting")


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
    """A class decorator: a frozen dataclass of knobs, whose docstring has the words of those that
    it inherits, and an error that names a knob which is not there."""
    made: Any = dataclass(frozen=True, kw_only=True, repr=False)(cls)
    made.__doc__ = extended(cls)
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


class Settled:
    """The mixin of estimators whose parameters may be settings, before `BaseEstimator`."""

    SETTINGS: ClassVar[Mapping[str, tuple[type[Setting], ...]]] = {}
    PLAIN: ClassVar[Mapping[str, str]] = {"certify_share": "share"}
    """The knob that such a parameter has in its plain form."""
    DECIDED: ClassVar[Mapping[str, str]] = {}
    """Parameters whose class another parameter decides, by its name. They may be set in any order:
    a value of another class is taken where the knobs that were changed are there."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether parameters inside of others are there too, such as ``solver__rounds``.

        Returns
        -------
        dict
            Values by name.
        """
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep:
            for slot in self.SETTINGS:
                inside = self._held(slot)
                if inside is not None:
                    found |= {f"{slot}__{name}": value for name, value in values(inside).items()}
        return found

    def set_params(self, **params: object) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            Values by name. ``solver__rounds=5`` replaces the settings; where ``solver`` is None,
            the usual ones are made first.

        Returns
        -------
        self
            This estimator.

        Raises
        ------
        InputError
            If there is no such parameter.
        """
        inside: dict[str, dict[str, Any]] = {}
        for name in list(params):
            slot, _, knob = name.partition("__")
            if knob and slot in self.SETTINGS:
                inside.setdefault(slot, {})[knob] = params.pop(name)
        super().set_params(**params)  # type: ignore[misc]
        for slot, knobs_of in inside.items():
            setattr(self, slot, self._replaced(slot, knobs_of))
        return self

    # -- inside ------------------------------------------------------------------------------------

    def _kinds(self, slot: str) -> tuple[type[Setting], ...]:
        """The classes that this parameter takes, the usual one first. An estimator with several
        ways overrides it."""
        return self.SETTINGS[slot]

    def _setting(self, slot: str, kind: type[Value]) -> Value:
        """The settings in a parameter, checked; `kind`: what is expected here."""
        wanted = self._kinds(slot)[0]
        given = self._made(slot, wanted)
        if not isinstance(given, kind):
            remedy = f"Pass {slot}=fv.{wanted.__name__}(...), or leave it out."
            got = repr(given) if isinstance(given, Setting) else type(given).__name__
            odd = (
                [name for name in changed(given) if name not in knobs(wanted)]
                if isinstance(given, Setting)
                else []
            )
            remedy = (
                f"{', '.join(odd)} is not used with {wanted.__name__}. {remedy}" if odd else remedy
            )
            raise InputError.expected(
                f"{wanted.__name__}(...)", of=slot, got=got, remedy=remedy, quote=False
            )
        return given

    def _made(self, slot: str, kind: type[Setting]) -> Any:
        """A parameter as settings of this kind, where it is None, has its plain form, or is a
        `Descent` of fewer knobs."""
        given = getattr(self, slot)
        if given is None:
            return kind()
        if isinstance(given, Setting):
            return _as(given, kind, self._others(slot))
        return kind(**{self.PLAIN[slot]: given}) if slot in self.PLAIN else given

    def _held(self, slot: str) -> Setting | None:
        """What deep parameters are of; None of a plain form, and of what is no settings value."""
        given = getattr(self, slot)
        if given is None and slot not in self.PLAIN:
            return self._kinds(slot)[0]()
        if not isinstance(given, Setting):
            return None
        return _as(given, self._kinds(slot)[0], self._others(slot))

    def _others(self, slot: str) -> tuple[type[Setting], ...]:
        """Classes whose values are taken for those of another one of this parameter."""
        return tuple(self.SETTINGS[slot]) if slot in self.DECIDED else ()

    def _replaced(self, slot: str, given: Mapping[str, Any]) -> Setting:
        """The settings in a parameter with other knobs."""
        held: Any = self._setting(slot, Setting)
        kinds = (type(held), *self._others(slot))
        wanted = {*given, *changed(held)}
        fitting = next((one for one in kinds if wanted <= set(knobs(one))), type(held))
        held = _as(held, fitting, kinds)
        known = knobs(type(held))
        for name in given:
            if name not in known:
                kind = type(held).__name__
                remedy = f"{kind} has {', '.join(known)}."
                raise InputError.expected(
                    f"a knob of {kind}", of=slot, got=name, remedy=remedy, among=known
                )
        return cast(Setting, replace(held, **given))


def built(kind: Any, *given: Any, **options: Any) -> Any:
    """An estimator with these options: parameters as they are, and knobs, by their own names, in
    their settings."""
    names = inspect.signature(kind).parameters
    estimator = kind(*given, **{name: value for name, value in options.items() if name in names})
    inside = {
        placed(estimator, name): value for name, value in options.items() if name not in names
    }
    return estimator.set_params(**inside)


def placed(estimator: Settled, name: str) -> str:
    """The deep name of a knob: `solver__clip` of `clip`; any other name as it is."""
    for slot, kinds in estimator.SETTINGS.items():
        if any(name in knobs(kind) for kind in kinds):
            return f"{slot}__{name}"
    return name


def stated(estimator: Settled, knob: str) -> Any:
    """What a caller said of a knob, in settings or as a parameter; None where nobody did."""
    inside = (getattr(estimator, slot, None) for slot in estimator.SETTINGS)
    found = next(
        (one for one in inside if isinstance(one, Setting) and knob in knobs(type(one))), None
    )
    return vars(estimator).get(knob) if found is None else getattr(found, knob)


def _as(given: Setting, kind: type[Setting], others: Sequence[type[Setting]] = ()) -> Setting:
    """A value of the class that this one widens, or of these others, as one of this class, if it
    has the knobs that were changed."""
    taken = type(given) is not kind and type(given) in (kind.widens, *others)
    fits = taken and set(changed(given)) <= set(knobs(kind))
    return kind(**changed(given)) if fits else given
