"""The face that estimators with settings share: parameters inside of them, and the names of earlier
versions.

    SETTINGS = {"solver": (Descent,)}          # a parameter, and the classes that it takes, the usual one first
    RENAMED = renamed(solver=[*knobs(Descent)])   # {"rounds": "solver.rounds", ...}: parameters of earlier versions

A search reaches `solver__rounds`: a settings value is frozen, so it is replaced. A parameter that
is None has the usual settings.
A name of an earlier version is taken as a keyword, by `set_params` and as an attribute, with a
warning that says the new one.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar, cast

from ...errors import InputError, KindError, RenamedParameter
from .setting import Setting, changed, checked, knobs, same, unchecked, values

Kind = TypeVar("Kind", bound=Setting)


def renamed(**slots: Iterable[str]) -> dict[str, str]:
    """Old names and their places, by parameter: lists of names that stayed, and mappings of old
    names to new ones."""
    listed = [
        (slot, dict(names if isinstance(names, dict) else zip(names, names, strict=True)))
        for slot, names in slots.items()
    ]
    return {old: f"{slot}.{new}" for slot, names in listed for old, new in names.items()}


class Renamed:
    """An attribute of earlier versions, `SLOT.KNOB` now; a plain parameter where there is no
    dot."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place

    def __get__(self, owner: Settled | None, kind: type) -> Any:
        if owner is None:
            return self
        slot, dot, knob = self.place.partition(".")
        _warn(f"{self.name} of {kind.__name__} is {self.place} now")
        return owner._part(slot, knob) if dot else getattr(owner, slot)

    def __set__(self, owner: Settled, value: object) -> None:
        owner._take({self.name: value})


class Settled:
    """The mixin of estimators whose parameters may be settings, before `BaseEstimator`."""

    SETTINGS: ClassVar[Mapping[str, tuple[type[Setting], ...]]] = {}
    PLAIN: ClassVar[Mapping[str, str]] = {"checkpoint": "folder", "certify_share": "share"}
    """The knob that such a parameter has in its plain form."""
    DECIDED: ClassVar[Mapping[str, str]] = {}
    """Parameters whose class another parameter decides, by its name. They may be set in any order:
    a value of another class is taken where the knobs that were changed are there."""
    RENAMED: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, **given: object) -> None:
        super().__init_subclass__(**given)
        own = cls.__dict__.get("RENAMED", {})
        for name, place in own.items():
            setattr(cls, name, Renamed(name, place))
        # the keyword that takes old names is no parameter: neither scikit-learn nor help() sees it
        if own:
            made: Any = cls.__init__
            whole = inspect.signature(made)
            shown = [one for one in whole.parameters.values() if one.kind is not one.VAR_KEYWORD]
            made.__signature__ = whole.replace(parameters=shown)

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
        moved = {name: params.pop(name) for name in list(params) if name in self.RENAMED}
        inside: dict[str, dict[str, Any]] = {}
        for name in list(params):
            slot, _, knob = name.partition("__")
            if knob and slot in self.SETTINGS:
                inside.setdefault(slot, {})[knob] = params.pop(name)
        super().set_params(**params)  # type: ignore[misc]
        for slot, knobs_of in inside.items():
            setattr(self, slot, self._replaced(slot, knobs_of))
        self._take(moved)
        return self

    # -- inside ------------------------------------------------------------------------------------

    def _kinds(self, slot: str) -> tuple[type[Setting], ...]:
        """The classes that this parameter takes, the usual one first. An estimator with several
        ways overrides it."""
        return self.SETTINGS[slot]

    def _setting(self, slot: str, kind: type[Kind]) -> Kind:
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
            return checked(_as(given, kind, self._others(slot)))
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

    def _take(self, given: Mapping[str, Any], *, warn: bool = True) -> None:
        """Parameters by names of earlier versions. An unknown name is an error."""
        if not given:
            return
        kind = type(self)
        deep = {
            name: value
            for name, value in given.items()
            if name.partition("__")[0] in self.SETTINGS and "__" in name
        }
        if deep:  # `Kind(**estimator.get_params())` has them beside what they are inside of
            self.set_params(**deep)
            self._take(
                {name: value for name, value in given.items() if name not in deep}, warn=warn
            )
            return
        for name in given:
            if name not in self.RENAMED:
                names = [*kind._get_param_names(), *self.RENAMED]  # type: ignore[attr-defined]
                remedy = f"Its parameters are {', '.join(names[: len(names) - len(self.RENAMED)])}."
                raise KindError.expected(
                    "a parameter", of=kind.__name__, got=name, remedy=remedy, among=names
                )
        for name in sorted(given, key=list(self.RENAMED).index):
            self._take_one(name, given[name])
        if warn:
            places = dict.fromkeys(self.RENAMED[name].partition(".")[0] for name in given)
            said = ", ".join(f"{slot}={_typed(getattr(self, slot))}" for slot in places)
            _warn(f"{kind.__name__}: {', '.join(given)} moved; pass {said}")

    def _take_one(self, name: str, value: object) -> None:
        slot, dot, knob = self.RENAMED[name].partition(".")
        if dot:
            self._take_part(slot, knob, value)
        else:
            setattr(self, slot, value)

    def _part(self, slot: str, knob: str) -> Any:
        """What stands in a parameter under this name."""
        return getattr(self._setting(slot, Setting), knob)

    def _take_part(self, slot: str, knob: str, value: object) -> None:
        """Take a knob by the name that it had as a parameter; its usual value says nothing."""
        held = getattr(self, slot)
        kind = next(one for one in (*self._kinds(slot), *self.SETTINGS[slot]) if knob in knobs(one))
        stated = isinstance(held, Setting) and knob in knobs(type(held))
        if stated or not same(value, knobs(kind)[knob]):
            if held is None or (isinstance(held, Setting) and not stated and not changed(held)):
                held = kind()
            elif isinstance(held, Setting):
                held = _as(held, kind, self._others(slot))
            elif slot not in self.PLAIN:
                return  # the fit refuses it
            else:
                held = unchecked(kind(), **{self.PLAIN[slot]: held})
            setattr(self, slot, unchecked(held, **{knob: value}))


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
    """The deep name of a parameter that an earlier version had: `solver__clip` of `clip`; any other
    as it is."""
    slot, dot, knob = estimator.RENAMED.get(name, name).partition(".")
    return f"{slot}__{knob}" if dot and slot in estimator.SETTINGS else name


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
    return unchecked(kind(), **changed(given)) if fits else given


def _typed(value: object) -> str:
    return f"fv.{value!r}" if type(value).__module__.startswith("fairveil.") else repr(value)


def _warn(text: str) -> None:
    warnings.warn(
        f"{text}. The old name goes with the next version.", RenamedParameter, stacklevel=4
    )
