"""Mixtures of linear rules, or of classifiers made elsewhere: what games and group objectives find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._types import Floats, TableLike
from ..core.promise import Promise
from ..errors import InputError
from ..facts import RowSource, Schema
from ..methods.oracles import AttachedRule, Begun, Descent, GroupedRule, LinearRule, Listed, Rule
from ..models import GroupedLinearModel, LinearModel, MixtureModel
from ..tables.columns import same_length
from . import fitting, wrapped
from .coding import Coding, SchemaCoding
from .reading import Training
from .wrapped import codes_of, in_blocks, names_of, unheard, without

MADE_ELSEWHERE = (
    "the candidates: it is assumed that they were made without these rows, or without what is "
    "protected of them; what they "
    "hold of them is not covered"
)

BOTH_ADD = (
    "where it was made from these rows, its epsilon adds to this epsilon, and its delta to this "
    "delta"
)
"""Valid also where this fit was chosen by looking at the candidate, which the tight price of both
as one plan is not."""

CANDIDATES = "a candidate's decisions"


def features_of_candidates(of: Any, X: TableLike, coding: Coding, sensitive: Sequence[str]) -> Any:
    """X as candidates of an estimator may read it: a schema's features, else what is not sensitive,
    or is a feature all the same."""
    if isinstance(coding, SchemaCoding) and (names := names_of(X)):
        return without(X, [name for name in names if name not in coding.encoding.features])
    return X if of._facts.sensitive_as_feature else without(X, sensitive)


def distribution_of_candidates(of: Any, X: TableLike) -> Floats:
    """The share of the mixture's candidates that decide for each class, (rows, classes)."""
    law: Floats = np.zeros((0, 0))
    names = () if of.cells_ is None else of.cells_.names
    X = features_of_candidates(of, X, of.coding_, names)
    for candidate, share in zip(of.candidates_, of.plays_, strict=True):
        if share == 0.0:
            continue
        codes = codes_of(candidate.predict(X), of.classes_.tolist(), CANDIDATES)
        law = np.zeros((len(codes), len(of.classes_))) if not law.size else law
        law[np.arange(len(codes)), codes] += share
    return law


def decided_by(of: Any, listed: Sequence[Any], training: Training, X: TableLike) -> Listed:
    """How the candidates decide for the rows of the fit; of a plan, which has none, only how
    many there are."""
    if training.supposed is not None:
        return Listed([_undecided] * len(listed))
    features = features_of_candidates(of, X, training.coding, training.rows.layout.sensitive_names)
    rows, seen = training.rows.exact_count, training.classes
    # of no rows nobody is asked: see `decided.decisions_of`
    decided = [
        codes_of(unheard(candidate, features) if rows else (), seen, CANDIDATES)
        for candidate in listed
    ]
    for codes in decided:
        same_length({"X": rows, CANDIDATES: len(codes)})
    return Listed([in_blocks(codes, training.rows) for codes in decided])


def needs_scale(promise: Promise, facts: Schema, X: TableLike) -> bool:
    """Whether public numbers come in any units: no schema states them, and rows are not coded."""
    stated = facts.declared is not None or isinstance(X, RowSource)
    return promise.protects == "sensitive_features" and not stated


def mixture_of_rules(rules: Sequence[Rule], shares: Floats, training: Training) -> MixtureModel:
    """Rules as one model."""
    return MixtureModel([model_of(rule, training) for rule in rules], shares)


def _undecided(block: Any) -> Any:
    """A candidate's decisions about rows that are not there."""
    raise AssertionError("a plan asks nothing")


def descent_of(promise: Promise, training: Training, clip: float | None) -> Descent:
    """The gradient oracle: where records are protected, from where a descent without constraints
    has ended."""
    if promise.features_are_public:
        return Descent(clip=clip)
    return Begun(clip=clip, scales=fitting.numbers_are_scalable(training, promise))


def candidates_of(given: Any, *, of: str, words: Sequence[str]) -> tuple[Any, ...]:
    """Fitted classifiers in a list."""
    listed = tuple(given) if isinstance(given, Sequence) else ()
    if not listed or not all(callable(getattr(candidate, "predict", None)) for candidate in listed):
        remedy = f"Pass a list of fitted classifiers, or {' or '.join(words)}."
        raise InputError.expected(
            "objects with predict(X)", of=of, got=type(given).__name__, remedy=remedy
        )
    return listed


def told_of(listed: Sequence[Any]) -> list[str]:
    """What the statement must say of candidates made elsewhere: what is assumed, and what their own
    fits cost."""
    if not listed:
        return []
    told = [MADE_ELSEWHERE]
    for candidate in listed:
        if wrapped.carries_a_promise(candidate):
            promise = wrapped.thawed(candidate).privacy_.promise
            price = (
                f"epsilon {promise.epsilon:g} and delta {promise.delta:g} for {promise.protects}"
            )
            told.append(f"a candidate's own fit, at {price}: {BOTH_ADD}")
    return list(dict.fromkeys(told))


def shares_of(rules: Sequence[Rule], weights: Sequence[float], listed: int) -> Floats:
    """How much of the mixture each given candidate is."""
    shares, total = np.zeros(listed), float(sum(weights))
    for rule, weight in zip(rules, weights, strict=True):
        if isinstance(rule, AttachedRule):
            shares[rule.place] += weight / total
    return shares


def model_of(rule: Rule, training: Training) -> LinearModel | GroupedLinearModel:
    """A rule as a model."""
    assert isinstance(rule, LinearRule | GroupedRule)
    weights = rule.weights
    linear = LinearModel(
        weights[:, 1:], weights[:, 0], classes=training.classes, layout=training.coding.layout
    )
    return (
        linear
        if isinstance(rule, LinearRule)
        else GroupedLinearModel(linear, rule.offsets, rule.of)
    )


def rule_of(model: object) -> Rule:
    """A model as a rule."""
    linear = model.linear if isinstance(model, GroupedLinearModel) else model
    assert isinstance(linear, LinearModel)
    weights = np.column_stack([linear.intercept, linear.weights])
    return (
        GroupedRule(weights, model.offsets, model.cells)
        if isinstance(model, GroupedLinearModel)
        else LinearRule(weights)
    )
