"""What `fairveil fit` and its sisters ask of an estimator: the options that its class has, and
`--set` for every other parameter and knob. All of it is checked before an estimator is imported.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..core.promise import Promise
from ..errors import InputError
from .fields import ADDITIVE, METHODS, fields_of, knobs, parameters
from .frame import Ask, alone, settable, wrong

if TYPE_CHECKING:
    from ..fairness import Notion

CONFIDENCE = 0.95
OBJECTIVES = ("group-objective", "tailored")
"""Methods that minimize what they are told."""
ONCE = "Pass --set rounds=100, each name once."


@dataclass(frozen=True)
class Asked:
    """`notions`: what is required, for the page; `arguments`: of the estimator and its settings;
    `search`: of a private search over `grid`; `by_group`: numbers by the names of groups."""

    method: str
    notions: tuple[Notion, ...]
    arguments: dict[str, Any]
    search: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    by_group: dict[str, dict[str, float]] = field(default_factory=dict)

    def built(self, **more: Any) -> Any:
        """The estimator."""
        from .. import estimators
        from ..estimators.settings import built

        _, name, solvers = METHODS[self.method]
        given = {**self.arguments, **more}
        if len(solvers) == 1:
            given = {"solver": getattr(estimators, solvers[0])(), **given}
        return built(getattr(estimators, name), **given)

    def for_groups(self, rows: Any) -> dict[str, dict[Hashable, float]]:
        """Numbers by the values that groups have in these rows: they are named as reports name
        them."""
        if not self.by_group:
            return {}
        from ..tables.keys import shown

        mode: Any = self.arguments.get("groups", "product")
        cells = rows.encoding.schema.cells(mode)
        known = {shown(key): key for key in cells.keys} if rows.layout.sensitive else {}
        found: dict[str, dict[Hashable, float]] = {}
        for name, numbers in self.by_group.items():
            for group in numbers:
                if group not in known:
                    remedy, words = "Name groups as the audit's table does.", ", ".join(known)
                    raise wrong(name, f"groups out of {words}", group, remedy, known)
            found[name] = {known[group]: number for group, number in numbers.items()}
        return found


def asked(ask: Ask) -> Asked:
    """What was asked, checked as far as that needs no rows and no estimator."""
    fields, grid = parameters(ask.method), _grid(ask.grid or ())
    given = _settings(ask)
    promise = ask.named("epsilon delta protects")
    Promise(**promise)
    own = settable(ask.method, ask.model)
    search = {name: given.pop(name) for name in list(given) if name not in own}
    search |= ask.named("scoring")
    if search and not grid:
        remedy = "Add --grid clip=0.5,1,2, for example, or leave it out."
        raise alone(next(iter(search)), "--grid", remedy)
    for name in grid:
        if name not in own:
            remedy = f"fairveil fit --method {ask.method} --help lists them."
            raise wrong("grid", "a parameter", name, remedy, own)
    if grid and ask.method == "post-processing":
        remedy = "Pass another --method, or search the base in Python."
        raise wrong("method", "a method that can be searched", ask.method, remedy)
    arguments = {} if grid else dict(promise)
    if ask.objective is not None:
        if ask.method not in OBJECTIVES:
            remedy = f"Pass --method {OBJECTIVES[0]}, or leave it out: {ask.method} has its own."
            expected = f"nothing: it is of {', '.join(OBJECTIVES)}"
            raise wrong("objective", expected, ask.objective, remedy)
        arguments["objective"] = ask.objective
    notions, wanted = _required(ask, fields)
    if "share" in given and ask.confidence is None and "certify" not in wanted:
        raise alone("set share", "--confidence")
    arguments |= {**wanted, **_model(ask, fields, given)}
    by_group = {name: value for name, value in given.items() if isinstance(value, dict)}
    arguments |= {name: value for name, value in given.items() if name not in by_group}
    return Asked(ask.method, notions, arguments, search, grid, by_group)


def _required(ask: Ask, fields: Any) -> tuple[tuple[Notion, ...], dict[str, Any]]:
    """The notions of the page, and the arguments that say what is required or certified."""
    from ..fairness.notions import parse
    from ..fairness.objectives import parse_constraint, parse_objective

    def sure(notion: Any, confidence: float | None) -> Any:
        return replace(notion, confidence=confidence)

    listed, certify = ask.constraint or [], ask.certify or []
    if certify and "certify" not in fields:
        raise _not_of(ask.method, "certify", certify)
    if ask.confidence is not None and not (listed or certify):
        option = "--certify" if ask.method in ("fermi", "tailored") else "--constraint"
        remedy = f"Pass {option} demographic_parity:5%: what is to be certified."
        raise alone("confidence", option, remedy)
    kept = None if certify else ask.confidence  # of what is aimed at
    level = CONFIDENCE if ask.confidence is None else ask.confidence
    after = {"certify": [sure(parse(text), level) for text in certify]} if certify else {}
    if ask.method == "fermi":
        if len(listed) > 1 or ":" in "".join(listed):
            remedy = "Pass --constraint equalized_odds, and --certify what is to be certified."
            raise wrong("constraint", "no bound: the name of one notion", listed, remedy)
        return (), after | ({"constraints": listed[0].replace("-", "_")} if listed else {})
    if ask.method == "tailored":
        return (), after | {"constraints": list(parse_constraint(listed).bounds) or None}
    if ask.method == "group-objective":
        parse_objective(ask.objective or "error")
        parsed = parse_constraint(listed or None).of_decisions()
        if kept is not None and not parsed.notions:
            remedy = "Pass --constraint demographic_parity:5% too: what is to be certified."
            raise wrong("confidence", "a --constraint on rates of decisions", listed, remedy)
        aimed = [sure(one, kept) for one in parsed.notions]
        return parsed.notions, after | {"constraints": [*parsed.bounds, *aimed] or None}
    notions = tuple(parse(text) for text in listed)
    return notions, after | {"constraints": [sure(one, kept) for one in notions] or None}


def _model(ask: Ask, fields: Any, given: dict[str, Any]) -> dict[str, Any]:
    """A linear model, or an additive one with its own knobs; what post-processes has a base of
    it."""
    if ask.model == "auto":
        return {}
    from ..estimators import Additive, FairClassifier

    model: Any = ask.model
    if model == "additive":
        of = {name: given.pop(name) for name in list(given) if name in fields_of(*ADDITIVE)}
        pairs = [tuple(pair) for pair in of.get("interactions", ())]
        model = Additive(**{**of, "interactions": tuple(pairs)})
    if "model" in fields:
        return {"model": model}
    return {"estimator": FairClassifier(model=model)}


def _not_of(method: str, option: str, got: object) -> InputError:
    others = [name for name in METHODS if option in {**parameters(name), **knobs(name)}]
    remedy = f"Pass --method {others[0]}, or leave it out: {method} does not read it."
    return wrong(option, f"nothing: it is of {', '.join(others)}", got, remedy)


def _settings(ask: Ask) -> dict[str, Any]:
    """`--set NAME=VALUE` as values by name: TOML's, else a text; `max_epsilon.f=0.5` is a number of
    one group."""
    found: dict[str, Any] = {}
    known = settable(ask.method, ask.model, search=True)
    for text in ask.set or ():
        name, _, value = text.partition("=")
        first, _, group = name.strip().partition(".")
        first = first.replace("-", "_")
        if not value.strip():
            raise wrong("set", "NAME=VALUE", text, ONCE)
        if first not in known:
            remedy = f"fairveil fit --method {ask.method} --help lists them."
            raise wrong("set", f"a parameter of {ask.method}", first, remedy, known)
        kept = found.setdefault(first, {}) if group else found
        if not isinstance(kept, dict) or (group or first) in kept:
            raise wrong("set", "each name once", name, ONCE)
        kept[group or first] = _value(value)
    return found


def _grid(given: Any) -> dict[str, list[Any]]:
    """`clip=0.5,1` as values by name: numbers and truth values where they can be read as such."""
    found: dict[str, list[Any]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        values = [part.strip() for part in listed.split(",")]
        if not name.strip() or not all(values) or name.strip() in found:
            remedy = "Pass --grid clip=0.5,1,2: a parameter, once, and its values."
            raise wrong("grid", "NAME=VALUE,...", text, remedy)
        found[name.strip()] = [_value(part) for part in values]
    return found


def _value(text: str) -> Any:
    """What TOML reads of it, else the text."""
    try:
        found = tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return text.strip()
    return found["x"] if len(found) == 1 else text.strip()
