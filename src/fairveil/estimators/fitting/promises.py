"""The shared arguments of estimators as values: promise, noise, notions, the public number of
rows."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ... import _checks
from ...core.noise import NoiseSource
from ...core.promise import Promise
from ...errors import InputError, LedgerError, PrivacyError
from ...facts import Schema
from ...fairness import Notion
from ...fairness.notions import parse, uses_groups
from ...fairness.systems import as_list
from ...ledger import Ledger, current, given_ledger
from ...ledger.ledger import same_budget
from ..reading import units
from ..reading.additive import Additive
from ..reading.coding import SchemaCoding
from ..reading.training import ReadOptions, Training
from ..reading.units import Whose
from .recorded import remembered


def promise_of(
    epsilon: float, delta: float, protects: str, neighbours: str | None, whose: Whose | None = None
) -> Promise:
    """The promise, checked. `whose`: what was said of persons."""
    return Promise(epsilon, delta, protects, neighbours, None if whose is None else whose.unit)


def asked(estimator: BaseEstimator) -> tuple[Whose | None, Promise]:
    """What an estimator was told of persons, and its promise, checked."""
    whose, of = units.asked(estimator), estimator
    return whose, promise_of(of.epsilon, of.delta, of.protects, of.neighbours, whose)


def noise_of(random_state: object) -> NoiseSource:
    """None: secure. A whole number: a seed. A `RandomState` or `Generator` of NumPy gives a seed:
    insecure too."""
    return NoiseSource.of(seed_of(random_state))


def seed_of(random_state: object) -> int | None:
    """The seed that an estimator was given, or draws from the generator that it was given; None:
    secure."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(0, 2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    if random_state is None:
        return None
    return _checks.whole(random_state=random_state, remedy="Pass None for secure noise, or a seed.")


def ways_of(
    schema: Schema | None,
    sensitive_as_feature: bool,
    standardise: bool,
    max_sample_weight: object,
    promise: Promise,
    *,
    additive: Additive | None = None,
    public_rows: object = None,
    whose: Whose | None = None,
) -> ReadOptions:
    """How rows are read, and what of it the promise forbids. Without privacy no weight is cut."""
    if sensitive_as_feature and promise.protects == "sensitive_features":
        raise PrivacyError.expected(
            "protects='records'",
            of="sensitive_as_feature",
            got=promise.protects,
            remedy=(
                "Features are public where only sensitive features are protected: leave it False."
            ),
        )
    cap = _checks.positive(max_sample_weight=max_sample_weight, allow_inf=True)
    return ReadOptions(
        schema,
        bool(sensitive_as_feature),
        bool(standardise),
        cap if promise.is_private else math.inf,
        promise.protects == "sensitive_features",
        promise.is_private and promise.protects == "records",
        additive=additive,
        # anything else is refused later
        public_rows=int(public_rows) if isinstance(public_rows, numbers.Integral) else None,
        rows_are_public=promise.rows_are_public or not promise.is_private,
        whose=whose,
    )


def own_ways(
    estimator: BaseEstimator,
    promise: Promise,
    whose: Whose | None,
    steps: Additive | None,
    *,
    standardise: bool,
) -> ReadOptions:
    """`ways_of` what an estimator that fits a model of its own was told."""
    of = estimator
    return ways_of(
        of.schema,
        of.sensitive_as_feature,
        standardise,
        of.max_sample_weight,
        promise,
        additive=steps,
        public_rows=of.public_rows,
        whose=whose,
    )


def ledger_of(estimator: BaseEstimator, promise: Promise, inside: object = None) -> Ledger | None:
    """Where a fit is recorded: the estimator's own ledger, else the block's; None where there is
    neither. What it would refuse is refused now, before rows are read. `inside`: the ledger of an
    estimator that this one fits: there is one for both."""
    own, inner, block = given_ledger(estimator.ledger), given_ledger(inside), current()
    ledger = own or inner or block or remembered(estimator)
    if (
        own is not None
        and inner is not None
        and not same_budget(own, inner)
        and not (block is not None and same_budget(block, inner))
    ):
        remedy = "Both read the same rows: give the outer one a ledger, and the inner one None."
        raise LedgerError.expected(
            f"{own}, as around it", of="estimator.ledger", got=inner, remedy=remedy
        )
    if ledger is not None:
        unsafe = bool(estimator.unsafe_data_dependent_bounds) and not promise.features_are_public
        ledger.require(
            promise,
            secure=estimator.random_state is None,
            read_from_data=["bounds, by unsafe_data_dependent_bounds"] if unsafe else (),
            schema=estimator.schema if isinstance(estimator.schema, Schema) else False,
        )
    return ledger


def notions_of(constraints: object, *, certified: bool = False) -> list[Notion]:
    """None, one, or several; each a notion or its name and bound, such as
    "demographic_parity:0.05". `certified`: whether they may have a confidence."""
    listed: Any = [constraints] if isinstance(constraints, (str, Notion)) else constraints
    # bounds would be lost, and a second fit would find nothing left
    if isinstance(listed, Mapping | Iterator):
        remedy = (
            "Pass DemographicParity(max_gap=0.05), 'demographic_parity:0.05', or a list of such."
        )
        got = "a mapping" if isinstance(listed, Mapping) else "an iterator"
        raise InputError.expected("notions of fairness", of="constraints", got=got, remedy=remedy)
    if isinstance(listed, Iterable):
        listed = [parse(item) if isinstance(item, str) else item for item in listed]
    found = as_list(listed)
    if not certified:
        refuse_confidence(found, "constraints")
    return found


def refuse_confidence(notions: Iterable[Notion], of: str) -> None:
    """Nothing is certified here."""
    if any(notion.confidence is not None for notion in notions):
        remedy = (
            "Pass the notion without confidence=; fv.certify certifies a finished model on other "
            "rows."
        )
        raise InputError.expected("no confidence here", of=of, got="a confidence", remedy=remedy)


def require_cap(training: Training, promise: Promise) -> None:
    """The largest weight multiplies every sensitivity, so under a promise there is one."""
    if (
        promise.is_private
        and training.rows.weighted
        and math.isinf(training.rows.max_sample_weight)
    ):
        remedy = "The largest weight multiplies every sensitivity: cap it at 1.0, for example."
        raise PrivacyError.expected(
            "a finite number", of="max_sample_weight", got=math.inf, remedy=remedy
        )


def require_groups(notions: Iterable[Notion], training: Training) -> None:
    """A constraint that tells groups apart needs groups."""
    if training.rows.layout.sensitive:
        return
    for notion in notions:
        if uses_groups(notion):
            raise InputError.expected(
                f"groups, which {type(notion).__name__} compares",
                of="sensitive_features",
                got=None,
                remedy=(
                    "Pass fit(X, y, sensitive_features=...): columns, or names of columns "
                    "of X; or constraints=None."
                ),
            )


def public_rows_of(given: object, training: Training, promise: Promise) -> int | None:
    """What averages divide by, where it is public: as given, as the schema states, or the true
    number where that is public.

    Rows with weights are counted by their weights, which only features that are public make public.
    None: it is released.
    """
    stated = None if given is None else _checks.whole(at_least=1, public_rows=given)
    rows = training.rows
    if promise.is_private and not promise.rows_are_public:
        # A schema's number is of all rows; of persons only so many of each are read, and how many
        # these are is released.
        return stated if stated is not None or promise.unit is not None else training.rows_stated
    if not rows.weighted:
        return training.exact_rows or None
    if promise.is_private and promise.protects == "sensitive_features":
        total = math.fsum(float(block.weights.sum()) for block in rows.blocks())
        return max(1, round(total))
    return stated if promise.is_private else None


def numbers_are_scalable(training: Training, promise: Promise) -> bool:
    """Whether numbers may be scaled by their released moments: they are dense, and bounded by a
    schema or public.

    Rows that were coded elsewhere are held to the bounds that they claim, here, before any release.
    That they keep them decides no plan: what is asked, and at what price, must not hang on one row.
    """
    if training.rows.sparse:
        return False
    if promise.features_are_public:
        return True
    if not isinstance(training.coding, SchemaCoding) or training.coding.standard is not None:
        return False
    if training.rows.largest_number > 1.0:
        remedy = (
            "Code them by that encoding, with data.encode, for example, which clips numbers to "
            "their bounds."
        )
        expected = "numbers in [-1, 1], as by their encoding"
        raise InputError.expected(expected, of="coded rows", got="others", remedy=remedy)
    return True
