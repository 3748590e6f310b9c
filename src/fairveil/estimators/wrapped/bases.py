"""The classifier inside a post-processor: used as it is or fitted, and what its making cost of the
promise.

| base | sensitive features protected | records protected |
|---|---|---|
| None | our linear classifier, exact on public rows, free | the same at a share of the promise |
| ours, not fitted | a clone, its promise set here | the same |
| ours, fitted | its statement's events; free if it never read the groups | its statement's events, under the same relation |
| another's, not fitted | a clone, fitted on public features and labels | refused |
| another's, fitted | as it is; the statement says what is assumed | only with `public_base=True`; the statement says so |

Guarantees (tests/estimators/test_estimators_odds_privacy.py):
1. A fitted base is never fitted again or changed; one that is not is cloned first.
2. `Base.spent` is what the base's own statement charges, under the post-processor's relation, or
   nothing where the base does not depend on what is protected; every assumption for that is a
   sentence in `Base.not_covered`.
3. A base that was fitted before counts as looked at: what is asked beside it is priced as chosen
   afterwards. One that is fitted here was planned together with the rest.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ..._types import ColumnsLike, TableLike
from ...core.events import Approximate, Event
from ...core.promise import Promise
from ...errors import InputError, PrivacyError
from ...ledger import Ledger
from ...statement.document import PrivacyStatement
from ..faces import CodedEstimator
from ..reading.fitted_parts import parts_of
from ..reading.units import Whose
from ..reading.unread import Read
from ..settings import stated

PROMISED = {"epsilon", "delta", "protects", "neighbours"}
FITTED_ELSEWHERE = (
    "the base classifier was fitted before: it is assumed that its training, its choice and its "
    "features did not read the "
    "sensitive columns"
)
SAID_TO_BE_PUBLIC = (
    "public_base=True: it is assumed, as declared, that the base classifier was made without these "
    "rows; what it holds of them "
    "is not covered"
)


@dataclass(frozen=True, eq=False)
class Base:
    """A fitted classifier; `statement`: of its making, where that is charged; `spent`: the events
    that are; `looked_at`: it was fitted before, so that everything that is asked for now may have
    been chosen by what was seen of it (theory.md#t10)."""

    estimator: Any
    statement: PrivacyStatement | None
    spent: tuple[Event, ...]
    not_covered: tuple[str, ...] = ()
    looked_at: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether the library made it, so that no other code is trusted."""
        inside = thawed(self.estimator)
        return (
            carries_a_promise(inside)
            and type(inside).__module__.split(".")[0] == __name__.split(".")[0]
        )


@dataclass(frozen=True)
class BaseOptions:
    """What an estimator was told about its base. `share`: of the promise, for a base that reads
    what is protected."""

    promise: Promise
    share: float
    public_base: bool
    given: dict[str, Any]
    """Shared arguments that an unfitted base of ours takes over where it leaves its own at None or
    at their defaults."""
    seed: int | None
    default: Callable[[], Any]
    """Makes the base where none is given: a classifier without constraints, which promises like all
    of ours."""
    ledger: Ledger | None = None
    whose: Whose | None = None


def carries_a_promise(estimator: object) -> bool:
    """Whether an estimator is one of ours, frozen or not, by its parameters."""
    inside = thawed(estimator)
    return isinstance(inside, BaseEstimator) and set(inside.get_params(deep=False)) >= PROMISED


def thawed(estimator: object) -> Any:
    """What `FrozenEstimator` holds, which answers for it in everything; any other estimator
    itself."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def is_randomised(estimator: object) -> bool:
    """Whether a fitted base of ours is randomized, with draws that can be seeded; its
    `predict_proba` is then the distribution."""
    inside = thawed(estimator)
    draws = (
        carries_a_promise(inside) and "random_state" in inspect.signature(inside.predict).parameters
    )
    return draws and (not isinstance(inside, CodedEstimator) or inside._is_randomized)


def is_fitted(estimator: object) -> bool:
    """scikit-learn's own answer; what cannot be fitted is."""
    if isinstance(estimator, type):  # a class where one of its objects is wanted: `check` says so
        return False
    if not hasattr(estimator, "fit"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def check(estimator: object, wishes: BaseOptions) -> None:
    """Refuse what can be refused before any row is read."""
    inside = thawed(estimator)
    if carries_a_promise(inside) and isinstance(getattr(inside, "way", None), str):
        remedy = "Fit the search, and pass its best_estimator_: it carries what the search cost."
        raise InputError.expected(
            "a classifier", of="estimator", got=type(inside).__name__, remedy=remedy
        )
    reads = _reads_groups(estimator)
    if reads is not None:
        remedy = (
            "Give the post-processor all constraints, and a base that does not read the group at "
            "prediction."
        )
        raise InputError.expected(
            "a base that decides without groups", of="estimator", got=reads, remedy=remedy
        )
    if isinstance(estimator, FrozenEstimator) and not is_fitted(estimator):
        remedy = "Fit it first, or pass it without FrozenEstimator."
        raise InputError.expected(
            "a fitted classifier", of="estimator", got="one frozen before", remedy=remedy
        )
    _refuse_unit(estimator)
    if estimator is None or carries_a_promise(estimator):
        if wishes.public_base and (estimator is None or not is_fitted(estimator)):
            raise _not_fitted_in_public(type(estimator).__name__)
        return
    _check_foreign(estimator, wishes)


def _refuse_unit(estimator: object) -> None:
    """A base that is to be fitted is told of persons by the post-processor."""
    told = (
        thawed(estimator).get_params(deep=False).get("unit")
        if carries_a_promise(estimator) and not is_fitted(estimator)
        else None
    )
    if told is not None:
        remedy = (
            "Tell the post-processor alone whose each row is: it hands unit and max_rows_per_unit "
            "to its base."
        )
        got = f"unit={told!r}" if isinstance(told, str) else "one with units"
        raise PrivacyError.expected(
            "a base without a unit of its own", of="estimator", got=got, remedy=remedy
        )


def _check_foreign(estimator: object, wishes: BaseOptions) -> None:
    """A base of another library."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        remedy = "Pass a classifier, such as LogisticRegression(), or None."
        raise InputError.expected(
            "a classifier", of="estimator", got=type(estimator).__name__, remedy=remedy
        )
    private = wishes.promise.is_private and wishes.promise.protects == "records"
    fitted = is_fitted(estimator)
    if wishes.public_base and not fitted:
        raise _not_fitted_in_public(type(estimator).__name__)
    if private and not fitted:
        raise PrivacyError.expected(
            "a base classifier that is private itself",
            of="estimator",
            got=f"{type(estimator).__name__}, which would be fitted on the private rows",
            remedy=(
                "Leave estimator=None, pass a classifier of Fairveil, or "
                "protects='sensitive_features'."
            ),
        )
    if (
        private
        and not wishes.public_base
        and not isinstance(parts_of(estimator).privacy, PrivacyStatement)
    ):
        raise PrivacyError.expected(
            "a fitted base classifier with a privacy statement",
            of="estimator",
            got=f"{type(estimator).__name__}, which has none",
            remedy=(
                "Pass public_base=True if it was made without these rows, or a classifier "
                "of Fairveil."
            ),
        )


def prepare(
    estimator: object,
    wishes: BaseOptions,
    X: TableLike,
    y: ColumnsLike,
    sensitive_features: ColumnsLike,
    sample_weight: ColumnsLike,
    spare: bool,
) -> Base:
    """The base, fitted where it was not. `spare`: whether anything must be left of the promise for
    counts.

    `X` is without sensitive columns for classifiers of others; ours leave them out by themselves.
    """
    if estimator is not None and is_fitted(estimator):
        return _as_it_is(estimator, wishes)
    if estimator is None or carries_a_promise(estimator):
        chosen = _promised(estimator, wishes, spare)
        groups = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        chosen.fit(X, y, **groups, **_weights(sample_weight))
        # no statement: an error, and nothing is published
        return Base(chosen, chosen.privacy_, _events(chosen.privacy_))
    chosen = clone(estimator)
    chosen.fit(X, y, **_weights(sample_weight))
    # features and labels are public, or nothing is promised: `check` refuses the rest
    return Base(chosen, None, ())


def planned(estimator: object, wishes: BaseOptions, read: Read, *, spare: bool) -> tuple[Base, Any]:
    """What the base will have cost, before there are rows; and its search, where it is fitted under
    a promise of its own."""
    if estimator is not None and is_fitted(estimator):
        return _as_it_is(estimator, wishes), None
    if estimator is None or carries_a_promise(estimator):
        chosen = copy.copy(_promised(estimator, wishes, spare))
        search = chosen._search(read)
        plan = search.plan if wishes.promise.is_private else None
        return Base(chosen, None, () if plan is None else (plan,)), search
    return Base(estimator, None, ()), None


def derived_seed(seed: int | None, what: int) -> int | None:
    """A seed of its own for each part of a fit: the same stream must never make the noise of two
    releases."""
    return (
        None
        if seed is None
        else int(np.random.SeedSequence([seed, what]).generate_state(1, np.uint32)[0])
    )


def _reads_groups(estimator: object) -> str | None:
    """In words, why a base of ours is group-aware: its decisions are then no public function of
    public features."""
    inside = thawed(estimator)
    if not carries_a_promise(inside):
        return None
    if hasattr(inside, "public_base"):
        return "a post-processor"
    return "one with group_aware=True" if stated(inside, "group_aware") else None


def _weights(sample_weight: ColumnsLike) -> dict[str, Any]:
    return {} if sample_weight is None else {"sample_weight": sample_weight}


def _promised(estimator: object, wishes: BaseOptions, spare: bool) -> Any:
    """A clone (or our default) under its share of the promise."""
    promise = wishes.promise
    chosen: Any = wishes.default() if estimator is None else clone(estimator)
    params = chosen.get_params(deep=False)
    share = wishes.share if promise.is_private and spare else 1.0
    chosen.set_params(
        epsilon=promise.epsilon * share,
        delta=promise.delta * share,
        protects=promise.protects,
        neighbours=promise.neighbours,
    )
    if wishes.whose is not None:
        chosen.set_params(unit=wishes.whose.given, max_rows_per_unit=wishes.whose.unit.max_rows)
    defaults = type(chosen)().get_params(deep=False)
    taken = {
        name: value
        for name, value in wishes.given.items()
        if name in params and _same(params[name], defaults.get(name))
    }
    chosen.set_params(**taken)
    # its score is wanted: not one class for all, nor a mixture, that errs less
    if spare and params.get("randomised") is True:
        chosen.set_params(randomised=None)
    if "ledger" in params:
        chosen.set_params(ledger=wishes.ledger)
    if "random_state" in params and params["random_state"] is None:
        chosen.set_params(random_state=derived_seed(wishes.seed, 1))
    return chosen


def _same(one: object, other: object) -> bool:
    return one is other or (
        type(one) is type(other) and isinstance(one, (bool, int, float, str)) and one == other
    )


def _as_it_is(estimator: object, wishes: BaseOptions) -> Base:
    promise = wishes.promise
    statement = parts_of(estimator).privacy
    if not promise.is_private:
        return Base(estimator, None, ())
    if wishes.public_base:
        return Base(estimator, None, (), (SAID_TO_BE_PUBLIC,))
    if not isinstance(statement, PrivacyStatement):
        # sensitive features: `check` refuses the rest
        return Base(estimator, None, (), (FITTED_ELSEWHERE,))
    _refuse_contradictions(statement)
    made = statement.promise
    if (made.protects, made.neighbours, _who(made)) == (
        promise.protects,
        promise.neighbours,
        _who(promise),
    ):
        return Base(estimator, statement, _events(statement), looked_at=True)
    if promise.protects == "sensitive_features" and parts_of(estimator).groups == ():
        return Base(estimator, None, (), (FITTED_ELSEWHERE,))
    raise PrivacyError.expected(
        (
            f"a base classifier under the same guarantee: {promise.protects}, "
            f"{promise.neighbours}{_by(promise)}"
        ),
        of="estimator",
        got=f"one under {made.protects}, {made.neighbours}{_by(made)}",
        remedy=(
            "Fit it under the same relation, pass it unfitted, or fit it without "
            "sensitive_features."
        ),
    )


def _who(promise: Promise) -> str | None:
    """Who is protected. How many rows of a person are read does not matter: both guarantees are of
    all rows of a person."""
    return None if promise.unit is None else promise.unit.name


def _by(promise: Promise) -> str:
    return "" if promise.unit is None else f", by {promise.unit.name}"


def _refuse_contradictions(statement: PrivacyStatement) -> None:
    """What a statement charges is taken from it, so it must agree with itself; who made it up is
    another matter."""
    grave = [finding.sentence for finding in statement.check() if finding.grave]
    if grave:
        raise PrivacyError.expected(
            "a base classifier whose privacy statement agrees with itself",
            of="estimator",
            got=grave[0],
            remedy="Fit it again, or load it from where it was saved.",
        )


def _events(statement: PrivacyStatement) -> tuple[Event, ...]:
    """What a statement charges: its plan; where a filter capped what was chosen as it went, the cap
    (theory.md#t10)."""
    if statement.plan is not None:
        return statement.plan
    if statement.cap is not None and math.isfinite(statement.epsilon):
        return (Approximate(statement.epsilon, statement.delta),)
    return statement.events


def _not_fitted_in_public(name: str) -> PrivacyError:
    remedy = "Fit it on the public data first, or leave public_base=False."
    got = "None" if name == "NoneType" else f"{name}, not fitted"
    return PrivacyError.expected(
        "a fitted base classifier", of="public_base=True", got=got, remedy=remedy
    )
