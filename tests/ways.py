"""Estimators by each solver, from flat options: `ways.fermi(strength=5.0, rounds=8)`.

Options that are no parameters of the estimator are knobs of the solver, or facts of the schema;
settings of one solver are taken for another's, where it has the knobs that were changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import fairveil as fv
from fairveil.estimators import settings
from fairveil.estimators.settings import Setting, changed
from fairveil.facts import Schema
from fairveil.fairness.objectives import LargestGroupLoss

SAME = "max_sample_weight target_bounds sensitive_as_feature unsafe_data_dependent_bounds unit"
FACTS = {"public_rows": "rows"} | {name: name for name in (*SAME.split(), "max_rows_per_unit")}
"""Options that a schema states, by their names there."""


def flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options with their facts in the schema, and a relation in what is protected."""
    facts = {FACTS[name]: value for name, value in options.items() if name in FACTS}
    given = {name: value for name, value in options.items() if name not in FACTS}
    relation = given.pop("neighbours", None)
    if relation is not None:
        given["protects"] = f"{given.get('protects', 'records')}:{relation}"
    facts = {name: value for name, value in facts.items() if value is not None}
    if facts and isinstance(given.get("schema"), Schema | None):
        given["schema"] = replace(given.get("schema") or Schema(), **facts)
    return given


def built(kind: Any, *given: Any, **options: Any) -> Any:
    """An estimator of these options."""
    return settings.built(kind, *given, **flat(options))


def told(estimator: Any, **options: Any) -> Any:
    """`set_params`, of these options."""
    own = {name: getattr(estimator, name) for name in ("schema", "protects")}
    told = flat(own | options)
    kept = {name for name, value in own.items() if told[name] == value and name not in options}
    return estimator.set_params(**{name: one for name, one in told.items() if name not in kept})


def classifier(*given: Any, **options: Any) -> fv.FairClassifier:
    """A classifier of the usual solver."""
    return fv.FairClassifier(*given, **flat(options))


def regressor(*given: Any, **options: Any) -> fv.FairRegressor:
    """A regressor of the usual solver."""
    return fv.FairRegressor(*given, **flat(options))


def post_processor(*given: Any, **options: Any) -> fv.FairPostProcessor:
    """A post-processor of the usual rule."""
    return fv.FairPostProcessor(*given, **flat(options))


def fermi(
    notion: object = "demographic_parity",
    strength: float | None = None,
    model: object = None,
    solver: Any = None,
    **options: Any,
) -> fv.FairClassifier:
    """DP-FERMI."""
    told = {"constraints": notion, "model": model, **stated(strength=strength)}
    return _made(fv.FairClassifier, fv.Fermi, **told, solver=solver, **options)


def game(constraints: object = None, solver: Any = None, **options: Any) -> fv.FairClassifier:
    """The oracle learner."""
    return _made(
        fv.FairClassifier, fv.OracleGame, constraints=constraints, solver=solver, **options
    )


def objective(
    objective: object = "error",
    constraint: object = None,
    method: str | None = None,
    decisions: object = None,
    solver: Any = None,
    **options: Any,
) -> fv.FairClassifier:
    """Functions of group losses."""
    told = {"objective": objective, "constraints": constraint}
    knobs = stated(method=method, decisions=decisions)
    return _made(fv.FairClassifier, fv.GroupObjective, **told, **knobs, solver=solver, **options)


def objective_regression(
    objective: object = "error",
    constraint: object = None,
    method: str | None = None,
    decisions: object = None,
    solver: Any = None,
    **options: Any,
) -> fv.FairRegressor:
    """Functions of groups' squared errors."""
    told = {"objective": objective, "constraints": constraint}
    knobs = stated(method=method, decisions=decisions)
    return _made(fv.FairRegressor, fv.GroupObjective, **told, **knobs, solver=solver, **options)


def tailored(
    allocation: object = "least-noise",
    bound: object = None,
    model: object = None,
    limits: Mapping[str, Any] | None = None,
    objective: object = None,
    solver: Any = None,
    **options: Any,
) -> fv.FairClassifier:
    """Group-aware budgets, of log losses."""
    told = {"constraints": bounds(bound), "model": model, **allocated(allocation)}
    told |= limited({**(limits or {}), **stated(objective=objective)})
    return _made(fv.FairClassifier, fv.Tailored, **told, solver=solver, **options)


def tailored_regression(
    allocation: object = "least-noise",
    bound: object = None,
    limits: Mapping[str, Any] | None = None,
    objective: object = None,
    solver: Any = None,
    **options: Any,
) -> fv.FairRegressor:
    """Group-aware budgets, of squared errors."""
    told = {"constraints": bounds(bound), **allocated(allocation)}
    told |= limited({**(limits or {}), **stated(objective=objective)})
    return _made(fv.FairRegressor, fv.Tailored, **told, solver=solver, **options)


def bounds(given: object) -> Any:
    """A number bounds every group's loss."""
    return LargestGroupLoss().at_most(given) if isinstance(given, int | float) else given


def stated(**knobs: Any) -> dict[str, Any]:
    """Those that were given: the solver may have others."""
    return {name: value for name, value in knobs.items() if value is not None}


def allocated(rule: object) -> dict[str, Any]:
    """The same of an allocation, which may be wrong."""
    return {} if rule == "least-noise" else {"allocation": rule}


def limited(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Knobs of groups, and whose losses count: "people" are everybody's, "groups" alike."""
    told = dict(given or {})
    if "objective" in told:
        known = {"people": "error", "groups": None}
        told["objective"] = known.get(told["objective"], told["objective"])
    return told


def solver_of(estimator: Any) -> type[Setting]:
    """The class of its solver."""
    return type(estimator._setting("solver", Setting))


def _made(face: Any, by: type[Setting], /, **options: Any) -> Any:
    options = flat(options)
    given = options.pop("solver", None)
    if given is None or isinstance(given, Setting):
        given = given if isinstance(given, by) else by(**changed(given) if given else {})
    return built(face, solver=given, **options)
