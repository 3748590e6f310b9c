"""What is attacked: an estimator, fitted anew for each run, or a function of the user's. Each runs
on either table of a pair.

Guarantees (tests/audit/test_audit_targets.py):
1. The estimator that was handed in is not changed, nor is its ledger charged: each run fits a copy
   with made-up rows.
2. A run is a function of the table, the seed and the planted bug alone.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._types import Floats
from ..core.promise import Promise
from ..curator.journal.listening import heard_by
from ..curator.questions.gradients import GradientSum
from ..curator.questions.networks import NetworkGradient
from ..curator.rows.sampling import Poisson
from ..data import encode
from ..errors import InputError
from ..estimators.reading.coding import SchemaCoding
from ..estimators.reading.fitted_parts import parts_of
from ..facts import Schema
from ..ledger import already_charged
from ..statement.document import PrivacyStatement
from .claims import Claim, claim_of
from .corners import Pair, Table
from .noise import Residual
from .overheard import Overheard, Reader
from .planted import BATCH_SIZE, CLIP_BY_ROW, HALF_NOISE, NO_CLIP, SAME_SEED, planted, size_ratio

HERE, THERE = 0, 1
MOST_NUMBERS = 2_000


@dataclass(frozen=True)
class Bug:
    """What is planted: an epsilon that is so many times as large, or a bug of `planted`."""

    name: str
    fold: float = 1.0


class Target(ABC):
    """What is attacked, on one pair of tables. Abstract."""

    name: str
    promise: Promise
    claim: Claim
    exact: bool
    """Whether a run's release is its log likelihood ratio, so that 0 is the best threshold."""
    distance: float
    """Of the pair, as a share of the claim's where that is known; else 0."""

    sees_noise: bool = False
    """Whether all noise of a run is known: of curators' Gaussian releases about all rows."""

    @abstractmethod
    def run(self, side: int, seed: int, bug: Bug | None = None) -> Floats:
        """What one run released, as numbers."""

    def watched(
        self, side: int, seed: int, bug: Bug | None = None
    ) -> tuple[Floats, Residual | None]:
        """The same, with the noise of the run where that is known."""
        return self.run(side, seed, bug), None

    @property
    @abstractmethod
    def bugs(self) -> tuple[Bug, ...]:
        """What can be planted in it."""


class FitTarget(Target):
    """An estimator of ours with a schema: each run is a whole fit, whose curators are heard."""

    def __init__(self, estimator: BaseEstimator, schema: Schema, pair: Pair, seed: int) -> None:
        self.name = type(estimator).__name__
        self._estimator, self._schema = estimator, schema
        as_feature = bool(estimator.get_params(deep=False).get("sensitive_as_feature", False))
        self._rows = [
            encode(table, schema, sensitive_as_feature=as_feature)
            for table in (pair.here, pair.there)
        ]
        self._sizes = [_protected(table, schema) for table in (pair.here, pair.there)]
        fitted, here = self._fit(HERE, seed, 1.0)
        _, there = self._fit(THERE, seed, 1.0)
        self.statement: PrivacyStatement = fitted.privacy_
        self.promise = self.statement.promise
        if not self.statement.is_private:
            remedy = "Audit what is private: a finite epsilon."
            raise InputError.expected(
                "a private fit", of="TARGET", got="epsilon inf", remedy=remedy
            )
        common = None
        if (
            Poisson in here.batches
            and self.promise.neighbours == "replace-one"
            and self.promise.protects == "records"
        ):
            self._rows.append(encode(pair.common, schema, sensitive_as_feature=as_feature))
            common = self._fit(2, seed, 1.0)[1]
        self.claim = claim_of(self.statement, self.statement.delta)
        self._reader = Reader(here, there, common, self.promise)
        self.exact = self._reader.is_exact and bool(here.heard)
        self._asked, self._batches = here.questions, here.batches
        self.sees_noise = bool(self._reader.residual(here, there=False).noise.size)
        self.distance = self._reader.distance(here)
        if self._reader.released(here).size > MOST_NUMBERS:
            remedy = "Audit a smaller model: fewer features or groups."
            got = f"{self._reader.released(here).size} of them"
            raise InputError.expected(
                f"{MOST_NUMBERS} released numbers at most", of="TARGET", got=got, remedy=remedy
            )

    @property
    def bugs(self) -> tuple[Bug, ...]:
        found = [Bug("1.5-fold epsilon", 1.5), Bug("3-fold epsilon", 3.0), Bug(HALF_NOISE)]
        if self._asked & {GradientSum.name, NetworkGradient.name}:
            found.append(Bug(NO_CLIP))
            if self.promise.rows_per_unit > 1 and self.promise.protects == "records":
                found.append(Bug(CLIP_BY_ROW))
        if Poisson in self._batches and self.promise.protects == "records":
            found.append(Bug(BATCH_SIZE))
        return (*found, Bug(SAME_SEED))

    def run(self, side: int, seed: int, bug: Bug | None = None) -> Floats:
        return self.watched(side, seed, bug)[0]

    def watched(
        self, side: int, seed: int, bug: Bug | None = None
    ) -> tuple[Floats, Residual | None]:
        sizes: list[tuple[int, float]] = []
        with ExitStack() as stack:
            if bug is not None and bug.fold == 1.0:
                sizes = stack.enter_context(planted(bug.name))
            fitted, heard = self._fit(side, seed, 1.0 if bug is None else bug.fold)
        if not heard.heard:
            return np.asarray(_numbers_of(fitted), np.float64), None
        found = self._reader.released(heard)
        if sizes:
            found[0] += size_ratio(sizes, self._sizes[HERE], self._sizes[THERE])
        return found, self._reader.residual(heard, there=side == THERE) if self.sees_noise else None

    def _fit(self, side: int, seed: int, fold: float) -> tuple[Any, Overheard]:
        parameters = self._estimator.get_params(deep=False)
        changed = {
            "schema": self._schema,
            "random_state": seed,
            "ledger": None,
            "epsilon": parameters["epsilon"] * fold,
        }
        if "checkpoint" in parameters:
            changed["checkpoint"] = None
        one, heard = type(self._estimator)(**{**parameters, **changed}), Overheard()
        with (
            heard_by(heard),
            already_charged(),
            warnings.catch_warnings(),
        ):  # of rows that were made up
            warnings.simplefilter("ignore")
            one.fit(self._rows[side])
        return one, heard


def called(function: object) -> str:
    """A function's name; of another callable that of its class."""
    return str(getattr(function, "__name__", type(function).__name__))


class FunctionTarget(Target):
    """A function of the user's, from a table (a dictionary of columns) and a seed to released
    numbers, or to a fitted model."""

    def __init__(self, fit: Callable[..., Any], pair: Pair, promise: Promise, claim: Claim) -> None:
        self.name = called(fit)
        self.promise, self.claim, self.exact, self.distance = promise, claim, False, 0.0
        self._fit, self._tables = fit, (pair.here, pair.there)

    @property
    def bugs(self) -> tuple[Bug, ...]:
        folds = (
            (Bug("1.5-fold epsilon", 1.5), Bug("3-fold epsilon", 3.0))
            if _takes_epsilon(self._fit)
            else ()
        )
        return (*folds, Bug(SAME_SEED))

    def run(self, side: int, seed: int, bug: Bug | None = None) -> Floats:
        table: Table = {name: values.copy() for name, values in self._tables[side].items()}
        more = (
            {"epsilon": self.promise.epsilon * (1.0 if bug is None else bug.fold)}
            if _takes_epsilon(self._fit)
            else {}
        )
        with already_charged(), warnings.catch_warnings():  # of rows that were made up
            warnings.simplefilter("ignore")
            found = np.asarray(_numbers_of(self._fit(table, seed, **more)), np.float64).ravel()
        if not found.size or found.size > MOST_NUMBERS or not np.isfinite(found).all():
            remedy = "Return what is released: a model's coefficients, or a score."
            expected = f"from 1 to {MOST_NUMBERS} finite numbers"
            got = f"{found.size} numbers" if np.isfinite(found).all() else "NaN or inf"
            raise InputError.expected(expected, of="what fit returns", got=got, remedy=remedy)
        return found


def own_parameters(target: BaseEstimator) -> dict[str, Any]:
    """The parameters of an estimator of this library; an error of another."""
    parameters: dict[str, Any] = target.get_params(deep=False)
    if not {"epsilon", "delta", "protects", "neighbours", "schema", "random_state"} <= set(
        parameters
    ):
        remedy = "Pass a function fit(table, seed) that fits it, with schema=, epsilon= and delta=."
        raise InputError.expected(
            "an estimator of this library", of="TARGET", got=type(target).__name__, remedy=remedy
        )
    return parameters


def schema_of_coding(fitted: object) -> Any:
    """The schema that coded the rows of a fit; None where there was none."""
    coding = parts_of(fitted).coding
    return coding.encoding.schema if isinstance(coding, SchemaCoding) else None


def _protected(table: Table, schema: Schema) -> int:
    """How many are protected: rows, or persons."""
    return (
        len(next(iter(table.values())))
        if schema.unit is None
        else len(set(table[schema.unit].tolist()))
    )


def _takes_epsilon(fit: Callable[..., Any]) -> bool:
    try:
        return "epsilon" in inspect.signature(fit).parameters
    except (TypeError, ValueError):
        return False


def _numbers_of(released: object) -> Any:
    """The coefficients of a fitted model; anything else as it is."""
    if hasattr(released, "coef_"):
        return np.concatenate(
            [np.ravel(released.coef_), np.ravel(getattr(released, "intercept_", ()))]
        )
    return released
