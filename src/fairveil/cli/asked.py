"""What `fairveil fit` and its sisters ask of an estimator: the options that its class has, and
`--set` for every other parameter and knob. All of it is checked before an estimator is imported.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..core.promise import Promise
from ..errors import InputError
from .fields import METHODS, knobs, parameters
from .files import named
from .frame import Ask, alone, settable, wrong
from .roles import Roles, schema_of

if TYPE_CHECKING:
    from ..fairness import Notion
    from .rows import Sample

CONFIDENCE = 0.95
OBJECTIVES = ("group-objective", "tailored")
"""Methods that minimize what they are told."""


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

    def for_groups(self, sample: Sample) -> dict[str, dict[Hashable, float]]:
        """Numbers by the values that groups have in these rows: they are named as reports name
        them."""
        if not self.by_group:
            return {}
        from ..estimators.reading import inputs
        from ..tables.keys import shown

        rows = inputs.read(*sample.fit_arguments, None, sample.options).rows
        cells: Any = rows.cells(self.arguments.get("groups", "product"))
        known = {shown(key): key for key in cells.keys} if rows.layout.sensitive else {}
        found: dict[str, dict[Hashable, float]] = {}
        for name, numbers in self.by_group.items():
            unknown = [group for group in numbers if group not in known]
            if unknown:
                remedy = "Name groups as the audit's table does."
                raise wrong(name, f"groups out of {', '.join(known)}", unknown[0], remedy, known)
            found[name] = {known[group]: number for group, number in numbers.items()}
        return found


def asked(ask: Ask) -> Asked:
    """What was asked, checked as far as that needs no rows and no estimator."""
    fields, grid = parameters(ask.method), _grid(getattr(ask, "grid", None) or ())
    given = _settings(ask, search=bool(grid))
    promise = named(ask, "epsilon delta protects")
    Promise(**promise)
    own = settable(ask.method, ask.model)
    search = {name: given.pop(name) for name in list(given) if name not in own}
    if getattr(ask, "scoring", None) is not None:
        search["scoring"] = ask.scoring
    if search and not grid:
        remedy = "Add --grid clip=0.5,1,2, for example, or leave it out."
        raise wrong(next(iter(search)), "--grid beside it", "none", remedy)
    unknown = [name for name in grid if name not in own]
    if unknown:
        remedy = f"fairveil fit --method {ask.method} --help lists them."
        raise wrong("grid", "a parameter", unknown[0], remedy, own)
    if grid and ask.method == "post-processing":
        remedy = "Pass another --method, or search the base in Python."
        raise wrong("method", "a method that can be searched", ask.method, remedy)
    arguments = {} if grid else dict(promise)
    if ask.objective is not None:
        if ask.method not in OBJECTIVES:
            remedy = f"Pass --method {OBJECTIVES[0]}, or leave it out: {ask.method} has its own."
            raise wrong(
                "objective", f"nothing: it is of {', '.join(OBJECTIVES)}", ask.objective, remedy
            )
        arguments["objective"] = ask.objective
    notions, wanted = _required(ask, fields)
    sets_aside = getattr(ask, "confidence", None) is not None or "certify" in wanted
    if "share" in given and not sets_aside:
        raise alone("set share", "--confidence")
    arguments |= {**wanted, **_model(ask, fields, given)}
    by_group = {name: value for name, value in given.items() if isinstance(value, dict)}
    arguments |= {name: value for name, value in given.items() if name not in by_group}
    return Asked(ask.method, notions, arguments, search, grid, by_group)


def _required(ask: Ask, fields: Any) -> tuple[tuple[Notion, ...], dict[str, Any]]:
    """The notions of the page, and the arguments that say what is required or certified."""
    from ..fairness.notions import parse
    from ..fairness.objectives import parse_constraint, parse_objective

    confidence = getattr(ask, "confidence", None)
    listed, certify = ask.constraint or [], getattr(ask, "certify", None) or []
    if certify and "certify" not in fields:
        raise _not_of(ask.method, "certify", certify)
    if confidence is not None and not (listed or certify):
        option = "--certify" if ask.method in ("fermi", "tailored") else "--constraint"
        remedy = f"Pass {option} demographic_parity:5%: what is to be certified."
        raise wrong("confidence", f"{option} beside it", "none", remedy)
    sure = CONFIDENCE if certify and confidence is None else confidence
    kept = None if certify else confidence  # of what is aimed at
    after = {"certify": [_sure(parse(text), sure) for text in certify]} if certify else {}
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
        aimed = [_sure(one, kept) for one in parsed.notions]
        return parsed.notions, after | {"constraints": [*parsed.bounds, *aimed] or None}
    notions = tuple(parse(text) for text in listed)
    return notions, after | {"constraints": [_sure(one, kept) for one in notions] or None}


def _sure(notion: Any, confidence: float | None) -> Any:
    return replace(notion, confidence=confidence)


def _model(ask: Ask, fields: Any, given: dict[str, Any]) -> dict[str, Any]:
    """An additive model, with its own knobs; what post-processes has a base of it."""
    if ask.model == "linear":
        return {}
    from ..estimators import Additive
    from .fields import ADDITIVE, fields_of

    of = {name: given.pop(name) for name in list(given) if name in fields_of(*ADDITIVE)}
    pairs = [tuple(pair) for pair in of.get("interactions", ())]
    model = Additive(**{**of, "interactions": tuple(pairs)})
    if "model" in fields:
        return {"model": model}
    from ..estimators import FairClassifier

    return {"estimator": FairClassifier(model=model)}


def _not_of(method: str, option: str, got: object) -> InputError:
    others = [name for name in METHODS if option in {**parameters(name), **knobs(name)}]
    return wrong(
        option,
        f"nothing: it is of {', '.join(others)}",
        got,
        f"Pass --method {others[0]}, or leave it out: {method} does not read it.",
    )


def _settings(ask: Ask, *, search: bool) -> dict[str, Any]:
    """`--set NAME=VALUE` as values by name: TOML's, else a text; `max_epsilon.f=0.5` is a number of
    one group."""
    lines: dict[str, str] = {}
    known = settable(ask.method, ask.model, search=True)
    for text in ask.set or ():
        name, equals, value = text.partition("=")
        first = name.strip().partition(".")[0].replace("-", "_")
        if not equals or not value.strip() or name in lines:
            remedy = "Pass --set rounds=100, each name once."
            raise wrong("set", "NAME=VALUE", text, remedy)
        if first not in known:
            remedy = f"fairveil fit --method {ask.method} --help lists them."
            raise wrong("set", f"a parameter of {ask.method}", first, remedy, known)
        try:
            tomllib.loads(f"x = {value}")
        except tomllib.TOMLDecodeError:
            value = json.dumps(value.strip())
        group = name.strip().partition(".")[2]
        lines[name] = f"{first}{f'.{json.dumps(group)}' if group else ''} = {value}"
    try:
        return tomllib.loads("\n".join(lines.values()))
    except tomllib.TOMLDecodeError as error:
        remedy = "Pass --set rounds=100, each name once."
        raise wrong("set", "each name once", str(error), remedy) from None


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
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except tomllib.TOMLDecodeError:
        return text


def roles_of(ask: Ask) -> Roles:
    """What is what in the table, and whose rows are told apart."""
    roles = Roles.of(schema_of(ask.schema), ask.target, ask.sensitive, ask.ignore)
    unit, most = getattr(ask, "unit", None), getattr(ask, "max_rows_per_unit", None)
    return roles.with_unit(unit, most)
