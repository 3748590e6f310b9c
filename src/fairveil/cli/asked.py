"""What `fairveil fit` and its sisters ask of an estimator: the options that its class has, and
`--set` for every other parameter and knob. All of it is checked before an estimator is imported.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.promise import Promise
from ..fairness.notions import Notion, parse
from ..fairness.objectives import parse_constraint, parse_objective
from .fields import ADDITIVE, METHODS, fields_of, parameters
from .frame import Ask, alone, need, settable

CONFIDENCE = 0.95
OBJECTIVES = ("group-objective", "tailored")
"""Methods that minimize what they are told."""
ONCE = "Pass --set rounds=100, each name once."


@dataclass(frozen=True)
class Asked:
    """`arguments`: of the estimator and its settings; `search`: of a private search over `grid`."""

    method: str
    arguments: dict[str, Any]
    search: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)

    def built(self, **more: Any) -> Any:
        """The estimator."""
        from .. import estimators
        from ..estimators.settings import built

        _, name, solvers = METHODS[self.method]
        given = {**self.arguments, **more}
        if len(solvers) == 1:
            given = {"solver": getattr(estimators, solvers[0])(), **given}
        return built(getattr(estimators, name), **given)


def asked(ask: Ask) -> Asked:
    """What was asked, checked as far as that needs no rows and no estimator."""
    fields, grid = parameters(ask.method), _grid(ask.grid or ())
    given, promise = _settings(ask), ask.named("epsilon delta protects")
    Promise(**promise)
    own, listed = settable(ask.method, ask.model), f"fairveil fit --method {ask.method} --help"
    search = {name: given.pop(name) for name in list(given) if name not in own}
    search |= ask.named("scoring")
    if search and not grid:
        fix = "Add --grid clip=0.5,1,2, for example, or leave it out."
        raise alone(next(iter(search)), "--grid", fix)
    for name in grid:
        need(name in own, "grid", "a parameter", name, f"{listed} lists them.", own)
    able, fix = ask.method != "post-processing", "Pass another --method, or search in Python."
    need(able or not grid, "method", "a method that can be searched", ask.method, fix)
    arguments = {} if grid else dict(promise)
    if ask.objective is not None:
        fix = f"Pass --method {OBJECTIVES[0]}, or leave it out: {ask.method} has its own."
        expected = f"nothing: it is of {', '.join(OBJECTIVES)}"
        need(ask.method in OBJECTIVES, "objective", expected, ask.objective, fix)
        arguments["objective"] = ask.objective
    wanted = _required(ask, fields)
    if "share" in given and ask.confidence is None and "certify" not in wanted:
        raise alone("set share", "--confidence")
    arguments |= {**wanted, **_model(ask, fields, given), **given}
    return Asked(ask.method, arguments, search, grid)


def _sure(notion: Any, level: float) -> Any:
    return replace(notion, confidence=level)


def _required(ask: Ask, fields: Any) -> dict[str, Any]:
    """The arguments that say what is required or certified, which is read here as far as to refuse
    it."""
    listed, certify = ask.constraint or [], ask.certify or []
    others = ", ".join(name for name in METHODS if "certify" in parameters(name))
    fix = f"Leave it out: {ask.method} does not read it."
    need(not certify or "certify" in fields, "certify", f"nothing: it is of {others}", certify, fix)
    option = "--certify" if ask.method in ("fermi", "tailored") else "--constraint"
    if ask.confidence is not None and not (certify or (listed and option == "--constraint")):
        fix = f"Pass {option} demographic_parity:5%: what is to be certified."
        raise alone("confidence", option, fix)
    level = CONFIDENCE if ask.confidence is None else ask.confidence
    found: dict[str, Any] = {}
    if certify:
        found = {"certify": [_sure(parse(text), level) for text in certify]}
    if ask.method == "fermi":
        fix, plain = "Pass --constraint equalized_odds; --certify has a bound.", "".join(listed)
        one = len(listed) < 2 and ":" not in plain
        need(one, "constraint", "no bound: the name of one notion", listed, fix)
        return found | ({"constraints": plain.replace("-", "_")} if listed else {})
    if ask.method not in OBJECTIVES:
        aimed: list[Any] = [parse(text) for text in listed]
    else:
        parse_objective(ask.objective or "error")
        both = parse_constraint(listed or None)
        both = both.of_decisions() if ask.method == OBJECTIVES[0] else both
        aimed = [*both.bounds, *both.notions]
    if ask.confidence is not None and not certify:
        fix = "Pass --constraint demographic_parity:5% too: what is to be certified."
        rates = [isinstance(one, Notion) for one in aimed]
        need(any(rates), "confidence", "a --constraint on rates of decisions", listed, fix)
        aimed = [_sure(one, level) if of else one for one, of in zip(aimed, rates, strict=True)]
    return found | {"constraints": aimed or None}


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


def _settings(ask: Ask) -> dict[str, Any]:
    """`--set NAME=VALUE` as values by name: TOML's, else a text."""
    found: dict[str, Any] = {}
    known = settable(ask.method, ask.model, search=True)
    for text in ask.set or ():
        name, _, value = text.partition("=")
        name = name.strip().replace("-", "_")
        need(value.strip(), "set", "NAME=VALUE", text, ONCE)
        fix = f"fairveil fit --method {ask.method} --help lists them."
        need(name in known, "set", f"a parameter of {ask.method}", name, fix, known)
        need(name not in found, "set", "each name once", name, ONCE)
        found[name] = _value(value)
    return found


def _grid(given: Any) -> dict[str, list[Any]]:
    """`clip=0.5,1` as values by name: numbers and truth values where they can be read as such."""
    found: dict[str, list[Any]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        name, values = name.strip(), [part.strip() for part in listed.split(",")]
        fix = "Pass --grid clip=0.5,1,2: a parameter, once, and its values."
        need(name and all(values) and name not in found, "grid", "NAME=VALUE,...", text, fix)
        found[name] = [_value(part) for part in values]
    return found


def _value(text: str) -> Any:
    """What TOML reads of it, else the text."""
    try:
        found = tomllib.loads(f"x = {text}")
    except tomllib.TOMLDecodeError:
        return text.strip()
    return found["x"] if len(found) == 1 else text.strip()
